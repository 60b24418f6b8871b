"""GPU metrics: what the exporter collects, how it runs, who scrapes it and how it is shown."""

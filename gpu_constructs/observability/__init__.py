"""GPU metrics: the exporters, the objects that scrape them, alerts and dashboards."""

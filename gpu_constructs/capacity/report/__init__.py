"""The reports on the capacity plan of an app: text, JSON, an SVG picture and an HTML page."""

"""Functions that check an app and write its manifests and reports to dist/."""

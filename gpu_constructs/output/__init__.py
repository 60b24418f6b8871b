"""From an app to the files in dist/: checks over the whole app, manifests, reports."""

"""Data about an app that the library derives from its manifests and from its constructs."""

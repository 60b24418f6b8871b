"""The edge to the construct tree: the one object that emits manifests, and how constructs check arguments."""

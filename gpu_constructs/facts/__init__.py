"""What manifests of any origin, and the app around them, say: read once, without a construct tree."""

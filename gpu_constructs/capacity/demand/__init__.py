"""Who asks for GPUs in an app, and how many pods of each there are at once."""

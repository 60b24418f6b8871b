"""The capacity plan: a computation that shows whether the GPU nodes of a cluster have room for the pods of an app."""

"""Whether what an app asks for fits the GPUs a cluster has: computed from plain data, before anything is applied."""

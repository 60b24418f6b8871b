"""Power limits of GPUs."""

"""`PowerLimit`, a DaemonSet that sets power limits on GPUs, and its options."""

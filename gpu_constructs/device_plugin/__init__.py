"""The NVIDIA device plugin: advertises GPUs to the kubelet."""

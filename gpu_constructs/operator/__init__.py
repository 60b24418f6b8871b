"""What the NVIDIA GPU Operator needs beside it."""

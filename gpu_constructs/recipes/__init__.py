"""Ready-made workloads for well-known programs, such as Ollama, vLLM and PyTorch."""

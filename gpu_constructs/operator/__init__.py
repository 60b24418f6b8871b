"""The NVIDIA GPU Operator: its Helm values, the method that installs its chart, and the validation bridge."""

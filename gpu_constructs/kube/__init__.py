"""Plain Kubernetes data, without a construct tree: pods, objects, names, quantities and YAML."""

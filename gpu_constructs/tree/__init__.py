"""The interface to cdk8s: the class that emits manifests, and the checks of the arguments of constructs."""

"""The interface to cdk8s: the class that emits manifests, and the base classes and decorators of constructs."""

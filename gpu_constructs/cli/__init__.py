"""The command ``gpu-constructs``: answers about manifests, values files and live clusters.

Each module of this package with a function ``run`` is a command. The commands need neither Node.js nor jsii.
"""

"""Two kernels of jsii in one process: one starts Node.js at once, and one only if a message needs it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import Any

from jsii import _reference_map, _runtime
from jsii._kernel.providers.process import ProcessProvider
from jsii._kernel.types import LoadRequest

from gpu_constructs.tree.deferred import DeferredProvider

_LIBRARIES = [import_module(f"{name}._jsii") for name in ("constructs", "cdk8s", "cdk8s_plus_27")]


class Kernel:
    """A provider of jsii, and the Python objects that it refers to."""

    def __init__(self, provider: Any) -> None:
        self.provider = provider
        self.objects: dict[str, Any] = {}
        for library in _LIBRARIES:
            made = library.__jsii_assembly__
            tarball = files(library.__name__).joinpath(made.filename)
            provider.load(LoadRequest(made.name, made.version, os.fspath(tarball)))

    @contextmanager
    def used(self) -> Iterator[None]:
        """Send the messages of the block to this kernel."""
        kernel, references = _runtime.kernel, _reference_map._refs
        before = kernel.provider, references._refs
        kernel.provider, references._refs = self.provider, self.objects
        try:
            yield
        finally:
            kernel.provider, references._refs = before


@cache
def stock() -> Kernel:
    """Return the kernel that sends every message to Node.js."""
    return Kernel(ProcessProvider())


@contextmanager
def deferred() -> Iterator[Kernel]:
    """Use a new kernel that has not started Node.js yet."""
    kernel = Kernel(DeferredProvider())
    try:
        with kernel.used():
            yield kernel
    finally:
        kernel.provider.close()

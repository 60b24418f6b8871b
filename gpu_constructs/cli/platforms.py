"""The values of the option ``--platform``, and what a cluster on each platform contains before you apply manifests."""

from __future__ import annotations

from gpu_constructs.catalog.platforms import Kubernetes, Talos
from gpu_constructs.cli.exits import CommandError
from gpu_constructs.facts.provided import Provided

NAMES = ("talos", "kubernetes", "k3s", "rke2")
"""Names of the platforms for the option ``--platform``."""

# The control plane creates the RuntimeClass nvidia, and the runtime is not the default one:
# k3s-io/k3s@c77d0b8:manifests/runtimes.yaml, rancher/rke2@000ca7b:charts/chart_versions.yaml (rke2-runtimeclasses)
WITH_RUNTIME_CLASS = ("k3s", "rke2")


def platform_of(text: str) -> Talos | Kubernetes:
    """Return the platform for a name with an optional release, such as ``talos:1.13``.

    Raises:
        CommandError: The name is not among ``NAMES``.
        GpuConstructsError: The library does not support the release.
    """
    name, _, version = text.partition(":")
    if name not in NAMES:
        raise CommandError(f"--platform must be one of {', '.join(NAMES)}, got {name!r}. Example: talos:1.13")
    made = Talos if name == "talos" else Kubernetes
    return made(version) if version else made()


def provided_on(text: str) -> Provided:
    """Return what a cluster on a platform contains before you apply manifests, as a ``Provided``.

    For example, clusters on K3s contain the RuntimeClass ``nvidia``.

    Args:
        text: Name of the platform with an optional release, such as ``talos:1.13``.
    """
    platform, name = platform_of(text), text.partition(":")[0]
    if name in WITH_RUNTIME_CLASS:
        return Provided(platform=platform, runtime_classes=("nvidia",), gpu_runtime="runtime-class")
    return Provided(platform=platform, gpu_runtime="runtime-class" if isinstance(platform, Talos) else None)

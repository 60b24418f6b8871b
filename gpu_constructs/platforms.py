"""What differs between Talos releases and plain Kubernetes, in one place: constructs ask, none tests a version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from gpu_constructs import _fields
from gpu_constructs.errors import GpuConstructsError, ShortErrors
from gpu_constructs.versions import KUBERNETES_RELEASES

GPU_PRESENT = "nvidia.com/gpu.present"
"""The node label our constructs select on; who publishes it is checked at synth."""

TALOS_GPU_EXTENSIONS = (
    "nvidia-open-gpu-kernel-modules-production",
    "nvidia-open-gpu-kernel-modules-lts",
    "nonfree-kmod-nvidia-production",
    "nonfree-kmod-nvidia-lts",
)
"""System extensions with kernel modules; Talos labels a node ``extensions.talos.dev/<name>`` for each."""


@dataclass(frozen=True, kw_only=True)
class _TalosFacts:
    kubernetes: str
    gpu_operator_needs_bridge: bool
    supports_cdi: bool
    mig_needs_privileged: bool
    mps_is_doubtful: bool = False


# siderolabs/talos release notes and siderolabs/extensions nvidia-gpu/vars.yaml of each release line.
# Until 1.12 the driver's libraries lie under /usr/local/glibc, where neither the operator's validator nor
# a generated CDI spec looks; since 1.13 they lie under /usr/local/lib and containerd reads /run/cdi.
_TALOS: Mapping[str, _TalosFacts] = {
    "1.10": _TalosFacts(
        kubernetes="1.33", gpu_operator_needs_bridge=True, supports_cdi=False, mig_needs_privileged=False
    ),
    "1.11": _TalosFacts(
        kubernetes="1.34", gpu_operator_needs_bridge=True, supports_cdi=False, mig_needs_privileged=False
    ),
    "1.12": _TalosFacts(
        kubernetes="1.35",
        gpu_operator_needs_bridge=True,
        supports_cdi=False,
        mig_needs_privileged=True,
        mps_is_doubtful=True,
    ),
    "1.13": _TalosFacts(
        kubernetes="1.36", gpu_operator_needs_bridge=False, supports_cdi=True, mig_needs_privileged=True
    ),
    "1.14": _TalosFacts(
        kubernetes="1.37", gpu_operator_needs_bridge=False, supports_cdi=True, mig_needs_privileged=True
    ),
}


@dataclass(frozen=True)
class Talos(metaclass=ShortErrors):
    """A cluster of Talos Linux nodes.

    The NVIDIA driver and the container toolkit come as system extensions. The toolkit registers a
    containerd runtime named ``nvidia`` that is not the default one, so every GPU pod names a runtime class.

    Attributes:
        version: ``"1.10"`` to ``"1.14"``; a patch release (``"1.12.4"``) is taken for its line.

    Raises:
        GpuConstructsError: The version is none we know.
    """

    version: str = "1.12"

    def __post_init__(self) -> None:
        _fields.members(self, "platform")
        line = ".".join(self.version.removeprefix("v").split(".")[:2])
        parts = self.version.removeprefix("v").split(".")
        if line not in _TALOS or len(parts) > 3 or not all((part.isascii() and part.isdigit()) for part in parts):
            raise GpuConstructsError(
                f"platform.version must be one of {', '.join(map(repr, _TALOS))} or a patch release of them; "
                f"got {self.version!r}; take the nearest of them to the Talos you run"
            )

    @property
    def _facts(self) -> _TalosFacts:
        return _TALOS[".".join(self.version.removeprefix("v").split(".")[:2])]

    def __str__(self) -> str:
        return f"Talos {self.version}"

    @property
    def kubernetes(self) -> str:
        """The Kubernetes release this Talos line installs by default."""
        return self._facts.kubernetes

    @property
    def runtime_class(self) -> str | None:
        """The runtime class GPU pods need: the extension's handler is not containerd's default."""
        return "nvidia"

    @property
    def device_list_strategy(self) -> tuple[str, ...]:
        """How the plugin hands devices to the runtime: by environment, which every Talos toolkit honours.

        CDI specs name host paths that do not exist until 1.12; from 1.13 on CDI is possible, and asked for
        explicitly.
        """
        return ("envvar",)

    @property
    def device_discovery_strategy(self) -> str | None:
        """How GPUs are found: through NVML; ``auto`` probes host paths that Talos does not have."""
        return "nvml"

    @property
    def supports_cdi(self) -> bool:
        """Whether a CDI spec written by the plugin can work."""
        return self._facts.supports_cdi

    @property
    def pod_security_default(self) -> str | None:
        """The Pod Security level Talos enforces on namespaces that state none."""
        return "baseline"

    @property
    def mig_needs_privileged(self) -> bool:
        """Whether the extension's toolkit lets only privileged containers watch MIG devices.

        True for the toolkit releases 1.18 to 1.20.0 (NVIDIA/nvidia-container-toolkit#1740).
        """
        return self._facts.mig_needs_privileged

    @property
    def mps_is_doubtful(self) -> bool:
        """Whether MPS is reported not to start (NVIDIA/k8s-device-plugin#1614, on 1.12)."""
        return self._facts.mps_is_doubtful

    @property
    def nvidia_driver_root(self) -> str | None:
        """Where the driver's files lie on the node, for a CDI spec written by the plugin."""
        return "/usr/local" if self.supports_cdi else None

    @property
    def gpu_operator_needs_bridge(self) -> bool:
        """Whether the GPU Operator's own validator can never pass and needs the validation bridge."""
        return self._facts.gpu_operator_needs_bridge

    @property
    def gpu_node_selector(self) -> Mapping[str, str]:
        """The labels that keep GPU pods on GPU nodes."""
        return {GPU_PRESENT: "true"}

    @property
    def driver_node_labels(self) -> tuple[str, ...]:
        """Labels of which a node with an installed driver carries one, before any pod runs on it."""
        return tuple(f"extensions.talos.dev/{extension}" for extension in TALOS_GPU_EXTENSIONS)


@dataclass(frozen=True)
class Kubernetes(metaclass=ShortErrors):
    """A cluster whose nodes have the driver and the container toolkit installed some other way.

    Nothing is assumed: no runtime class, no discovery of nodes; constructs take ``runtime_class=`` and
    ``node_selector=``. What is emitted today is the same for every release and valid on all of them.

    Attributes:
        version: Kubernetes release, ``"1.27"`` to the newest we check with, which is the default.

    Raises:
        GpuConstructsError: The version is none we know.
    """

    version: str = KUBERNETES_RELEASES[-1]

    def __post_init__(self) -> None:
        _fields.members(self, "platform")
        _fields.one_of("platform.version", self.version, KUBERNETES_RELEASES)

    def __str__(self) -> str:
        return f"Kubernetes {self.version}"

    @property
    def kubernetes(self) -> str:
        """The Kubernetes release itself."""
        return self.version

    @property
    def runtime_class(self) -> str | None:
        """None: the nodes' default runtime is taken to know NVIDIA devices."""
        return None

    @property
    def device_list_strategy(self) -> tuple[str, ...]:
        """Empty: the plugin's own default applies."""
        return ()

    @property
    def device_discovery_strategy(self) -> str | None:
        """None: the plugin's own default applies."""
        return None

    @property
    def supports_cdi(self) -> bool:
        """CDI is up to the nodes."""
        return True

    @property
    def pod_security_default(self) -> str | None:
        """None: the API server's own default, which is to enforce nothing, may have been changed."""
        return None

    @property
    def mig_needs_privileged(self) -> bool:
        """SYS_ADMIN is enough for the toolkit."""
        return False

    @property
    def mps_is_doubtful(self) -> bool:
        """Nothing is known against it."""
        return False

    @property
    def nvidia_driver_root(self) -> str | None:
        """The root of the node's file system, for a CDI spec written by the plugin."""
        return "/"

    @property
    def gpu_operator_needs_bridge(self) -> bool:
        """The operator's validator is taken to work."""
        return False

    @property
    def gpu_node_selector(self) -> Mapping[str, str]:
        """Empty: the resource request alone leads a pod to a GPU node."""
        return {}

    @property
    def driver_node_labels(self) -> tuple[str, ...]:
        """None is known."""
        return ()


Platform = Talos | Kubernetes
DEFAULT_PLATFORM = Talos("1.12")

DeviceListStrategy = Literal["envvar", "volume-mounts", "cdi-annotations", "cdi-cri"]
DeviceDiscoveryStrategy = Literal["auto", "nvml", "tegra"]

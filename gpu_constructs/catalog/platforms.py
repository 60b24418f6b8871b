"""What differs between Talos releases and plain Kubernetes, in one place: constructs ask, none tests a version."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath
from typing import ClassVar, Literal, NamedTuple

from gpu_constructs.catalog.versions import KUBERNETES_RELEASES, rows
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.kube import fields, placement

RuntimeMode = Literal["legacy", "cdi"]
MachineConfigShape = Literal["v1alpha1", "multi-document"]
TALOS_GPU_EXTENSIONS = (
    "nvidia-open-gpu-kernel-modules-production",
    "nvidia-open-gpu-kernel-modules-lts",
    "nonfree-kmod-nvidia-production",
    "nonfree-kmod-nvidia-lts",
)
"""System extensions with kernel modules; Talos labels a node ``extensions.talos.dev/<name>`` for each."""


Route = Literal["device-plugin", "device-plugin-cdi", "gpu-operator", "gpu-operator-bridge", "dra"]
ROUTES: Mapping[Route, str] = {
    "device-plugin": "the device plugin alone, devices by environment (DevicePluginChart)",
    "device-plugin-cdi": "the device plugin alone, devices by CDI (DevicePluginChart, device_list_strategy='cdi-cri')",
    "gpu-operator": "the GPU Operator alone (GpuOperator)",
    "gpu-operator-bridge": "the GPU Operator beside a ValidationBridge (GpuOperator, ValidationBridge)",
    "dra": "NVIDIA's DRA driver",
}
"""The ways to bring GPUs into a cluster."""

_NO_CDI_PATHS = (
    "until Talos 1.12 driver libraries and nvidia-ctk lie where no CDI spec looks for them (siderolabs/talos#13021)"
)
_GLIBC_LAYOUT: Mapping[Route, str] = {
    "device-plugin-cdi": _NO_CDI_PATHS,
    "gpu-operator": (
        "until Talos 1.12 no folder holds both driver libraries and nvidia-smi, so the operator's validator never "
        "passes (siderolabs/extensions#527)"
    ),
    "dra": f"its devices are handed out by CDI, and {_NO_CDI_PATHS}",
}
_USR_LOCAL_LAYOUT: Mapping[Route, str] = {
    "gpu-operator-bridge": (
        "from Talos 1.13 on the operator's own validator passes with driver.enabled=false, toolkit.enabled=false and "
        "hostPaths.driverInstallDir=/usr/local, and a bridge would hide what it finds; leave the bridge out"
    ),
}


class _TalosLine(NamedTuple):
    """A release line of Talos.

    Until 1.12 the driver's libraries lie under /usr/local/glibc, where neither the operator's validator nor a generated
    CDI spec looks; since 1.13 they lie under /usr/local/lib and containerd reads /run/cdi.
    """

    line: str
    kubernetes: str
    runtime_mode: RuntimeMode
    machine_config: MachineConfigShape
    has_gdrdrv: bool
    mig_needs_privileged: bool
    mps_is_doubtful: bool
    source: str


_TALOS = {row["line"]: _TalosLine(**row) for row in rows("talos")}
_TALOS_VERSION = re.compile(r"v?[0-9]+\.[0-9]+(?:\.[0-9]+(?:-(?:alpha|beta|rc)\.[0-9]+)?)?\Z")


@dataclass(frozen=True)
class Talos(fields.Options):
    """A cluster of Talos Linux nodes.

    The NVIDIA driver and the container toolkit come as system extensions. The toolkit registers a
    containerd runtime named ``nvidia`` that is not the default one, so every GPU pod names a runtime class.

    Attributes:
        version: ``"1.10"`` to ``"1.14"``; a patch release (``"1.12.4"``), or one before it (``"1.14.0-rc.1"``), is
            taken for its line.

    Raises:
        GpuConstructsError: The version is none we know.
    """

    version: str = "1.12"

    _NAME: ClassVar[str] = "platform"

    def _conflicts(self) -> Iterable[fields.Conflict]:
        yield (
            not _TALOS_VERSION.match(self.version) or self.line not in _TALOS,
            f"platform.version must be one of {', '.join(map(repr, _TALOS))} or a patch release of them; "
            f"got {self.version!r}; take the nearest of them to the Talos you run",
        )

    @property
    def _facts(self) -> _TalosLine:
        return _TALOS[self.line]

    def __str__(self) -> str:
        return f"Talos {self.version}"

    @property
    def line(self) -> str:
        """The release line: ``1.12`` for ``v1.12.4``."""
        return ".".join(self.version.removeprefix("v").split(".")[:2])

    @property
    def kubernetes(self) -> str:
        """The Kubernetes release this Talos line installs by default."""
        return self._facts.kubernetes

    brings_driver: ClassVar[bool] = True
    """Whether driver and container toolkit belong to the nodes' image: nothing else may install them."""

    runtime_class: ClassVar[str | None] = "nvidia"
    """The runtime class GPU pods need: the extension's handler is not containerd's default."""

    device_list_strategy: ClassVar[tuple[DeviceListStrategy, ...]] = ("envvar",)
    """How the plugin hands devices to the runtime: by environment, which every Talos toolkit honours.

    CDI specs name host paths that do not exist until 1.12; from 1.13 on CDI is possible, and asked for
    explicitly.
    """

    accepts_volume_mounts: ClassVar[bool] = False
    """Whether the toolkit takes devices from mounts: off by default, and Talos' file of settings is read-only.

    Source:
        siderolabs/extensions@v1.12.11:nvidia-gpu/nvidia-container-toolkit/nvidia-container-runtime
    """

    device_discovery_strategy: ClassVar[DeviceDiscoveryStrategy | None] = "nvml"
    """How GPUs are found: through NVML; ``auto`` probes host paths that Talos does not have."""

    @property
    def supports_cdi(self) -> bool:
        """Whether a CDI spec written by the plugin can work."""
        return self.runtime_mode == "cdi"

    @property
    def runtime_mode(self) -> RuntimeMode:
        """How the toolkit extension's runtime brings a driver into a container.

        ``legacy`` runs nvidia-container-cli; ``cdi`` reads the spec that the node writes at boot.
        """
        return self._facts.runtime_mode

    @property
    def driver_install_dir(self) -> str | None:
        """The folder that holds libraries and programs of the driver alike; None where there is none."""
        return "/usr/local" if self.supports_cdi else None

    @property
    def driver_library_path(self) -> str | None:
        """Where the extension puts the driver's libraries on the node."""
        return "/usr/local/lib" if self.supports_cdi else "/usr/local/glibc/usr/lib"

    driver_program_path: ClassVar[str | None] = "/usr/local/bin"
    """Where the extension puts nvidia-smi on the node."""

    @property
    def machine_config(self) -> MachineConfigShape:
        """The shape of a machine configuration patch: one v1alpha1 document, or one document for each matter."""
        return self._facts.machine_config

    @property
    def needs_bpf_jit_harden(self) -> bool:
        """Whether the sysctl net.core.bpf_jit_harden must be 1: nvidia-container-cli loads a BPF program."""
        return self.runtime_mode == "legacy"

    @property
    def has_gdrdrv(self) -> bool:
        """Whether there is an extension with the kernel module of GDRCopy."""
        return self._facts.has_gdrdrv

    @property
    def node_taints_reach_workers(self) -> bool:
        """Whether taints of the machine configuration are there when a worker registers.

        Before, the worker set them later by its own rights, which NodeRestriction refuses (siderolabs/talos#13443).
        """
        return self.machine_config == "multi-document"

    pod_security_default: ClassVar[str | None] = "baseline"
    """The Pod Security level Talos enforces on namespaces that state none."""

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
        return self.driver_install_dir

    def dev_root_of(self, driver_root: str | None) -> str | None:
        """Return the root of the device nodes that the device plugin must use beside a driver root.

        The plugin takes the driver root by default (NVIDIA/k8s-device-plugin@v0.20.0:api/config/v1/config.go). Talos
        has no ``/usr/local/dev``: CDI specs and device specs would name device nodes that do not exist.

        Args:
            driver_root: Root of the driver's files on the node.

        Returns:
            ``/``, or None if the plugin's default works.
        """
        return "/" if driver_root and PurePosixPath(driver_root).is_relative_to("/usr/local") else None

    @property
    def gpu_operator_needs_bridge(self) -> bool:
        """Whether the GPU Operator's own validator can never pass and needs the validation bridge."""
        return self.refusal_of("gpu-operator") is not None

    def refusal_of(self, route: Route) -> str | None:
        """Why a route does not work here; None where it does."""
        return (_USR_LOCAL_LAYOUT if self.supports_cdi else _GLIBC_LAYOUT).get(route)

    gpu_node_selector: ClassVar[Mapping[str, str]] = {placement.GPU_PRESENT: "true"}
    """The labels that keep GPU pods on GPU nodes."""

    driver_node_labels: ClassVar[tuple[str, ...]] = tuple(
        f"extensions.talos.dev/{extension}" for extension in TALOS_GPU_EXTENSIONS
    )
    """Labels of which a node with an installed driver carries one, before any pod runs on it."""


@dataclass(frozen=True)
class Kubernetes(fields.Options):
    """A cluster whose nodes have the driver and the container toolkit installed some other way.

    Nothing is assumed: no runtime class, no discovery of nodes; constructs take ``runtime_class=`` and
    ``node_selector=``. What is emitted today is the same for every release and valid on all of them.

    Attributes:
        version: Kubernetes release, ``"1.27"`` to the newest we check with, which is the default.

    Raises:
        GpuConstructsError: The version is none we know.
    """

    version: str = KUBERNETES_RELEASES[-1]

    _NAME: ClassVar[str] = "platform"
    _CHECKS: ClassVar[fields.Checks] = {"version": partial(fields.one_of, allowed=KUBERNETES_RELEASES)}

    def __str__(self) -> str:
        return f"Kubernetes {self.version}"

    @property
    def kubernetes(self) -> str:
        """The Kubernetes release itself."""
        return self.version

    brings_driver: ClassVar[bool] = False
    """Whether the nodes' image cannot do without its own: not known here."""

    runtime_class: ClassVar[str | None] = None
    """None: the nodes' default runtime is taken to know NVIDIA devices."""

    device_list_strategy: ClassVar[tuple[DeviceListStrategy, ...]] = ()
    """Empty: the plugin's own default applies."""

    accepts_volume_mounts: ClassVar[bool] = True
    """Whether the toolkit takes devices from mounts is up to the nodes."""

    device_discovery_strategy: ClassVar[DeviceDiscoveryStrategy | None] = None
    """None: the plugin's own default applies."""

    supports_cdi: ClassVar[bool] = True
    """CDI is up to the nodes."""

    pod_security_default: ClassVar[str | None] = None
    """None: the API server's own default, which is to enforce nothing, may have been changed."""

    mig_needs_privileged: ClassVar[bool] = False
    """SYS_ADMIN is enough for the toolkit."""

    mps_is_doubtful: ClassVar[bool] = False
    """Nothing is known against it."""

    driver_install_dir: ClassVar[str | None] = None
    """None: where the driver lies is not known."""

    driver_library_path: ClassVar[str | None] = None
    """None: where the driver lies is not known."""

    driver_program_path: ClassVar[str | None] = None
    """None: where the driver lies is not known."""

    has_gdrdrv: ClassVar[bool] = True
    """GDRCopy is up to the nodes."""

    nvidia_driver_root: ClassVar[str | None] = "/"
    """The root of the node's file system, for a CDI spec written by the plugin."""

    def dev_root_of(self, driver_root: str | None) -> str | None:
        """Return None: the plugin's default, the driver root, also suits a driver container."""
        return None

    gpu_operator_needs_bridge: ClassVar[bool] = False
    """The operator's validator is taken to work."""

    def refusal_of(self, route: Route) -> str | None:
        """Why a route does not work here; None where it does."""
        if route == "dra" and KUBERNETES_RELEASES.index(self.version) < KUBERNETES_RELEASES.index(_FIRST_WITH_DRA):
            return f"the API resource.k8s.io/v1 is served from Kubernetes {_FIRST_WITH_DRA} on"
        return None

    gpu_node_selector: ClassVar[Mapping[str, str]] = {}
    """Empty: the resource request alone leads a pod to a GPU node."""

    driver_node_labels: ClassVar[tuple[str, ...]] = ()
    """None is known."""


_FIRST_WITH_DRA = "1.34"

Platform = Talos | Kubernetes
DEFAULT_PLATFORM = Talos("1.12")


def routes(platform: Platform) -> tuple[Route, ...]:
    """Return the routes that work on a platform."""
    return tuple(route for route in ROUTES if platform.refusal_of(route) is None)


def require(platform: Platform, route: Route) -> None:
    """Raise if a route does not work on a platform.

    Raises:
        GpuConstructsError: With the reason and the routes that do work there.
    """
    why = platform.refusal_of(route)
    if why:
        listed = "; ".join(ROUTES[other] for other in routes(platform))
        raise GpuConstructsError(
            f"platform {platform} does not go with {ROUTES[route]}: {why}. Supported there: {listed}"
        )


NO_VOLUME_MOUNTS = (
    "the container toolkit there does not accept devices as volume mounts "
    "(accept-nvidia-visible-devices-as-volume-mounts is false)"
)
"""Why the strategy ``volume-mounts`` gives containers no GPU where a platform does not accept it."""

DeviceListStrategy = Literal["envvar", "volume-mounts", "cdi-annotations", "cdi-cri"]
DeviceDiscoveryStrategy = Literal["auto", "nvml", "tegra"]

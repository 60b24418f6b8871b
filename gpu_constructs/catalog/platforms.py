"""Platforms: `Talos` (releases of Talos Linux) and `Kubernetes` (Kubernetes on any other operating system).

Constructs read the differences between platforms from the attributes of these classes instead of comparing versions. A
*route* is a method to install GPU support in a cluster, such as the device plugin or the GPU Operator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import PurePosixPath
from typing import ClassVar, Literal, NamedTuple

from gpu_constructs.catalog.versions import KUBERNETES_RELEASES, rows
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.kube import fields, placement
from gpu_constructs.records import dataclass, regex

RuntimeMode = Literal["legacy", "cdi"]
MachineConfigShape = Literal["v1alpha1", "multi-document"]
TALOS_GPU_EXTENSIONS = (
    "nvidia-open-gpu-kernel-modules-production",
    "nvidia-open-gpu-kernel-modules-lts",
    "nonfree-kmod-nvidia-production",
    "nonfree-kmod-nvidia-lts",
)
"""Talos system extensions with NVIDIA kernel modules. Talos sets a node label ``extensions.talos.dev/<name>`` for each.
"""


Route = Literal["device-plugin", "device-plugin-cdi", "gpu-operator", "gpu-operator-bridge", "dra"]
ROUTES: Mapping[Route, str] = {
    "device-plugin": "the device plugin, with devices in environment variables (DevicePluginChart)",
    "device-plugin-cdi": "the device plugin, with devices by CDI (DevicePluginChart, device_list_strategy='cdi-cri')",
    "gpu-operator": "the GPU Operator without a bridge (GpuOperator)",
    "gpu-operator-bridge": "the GPU Operator with a ValidationBridge (GpuOperator, ValidationBridge)",
    "dra": "NVIDIA's DRA driver",
}
"""Description of each route (method to install GPU support in a cluster) for messages."""

_NO_CDI_PATHS = "up to Talos 1.12, CDI specs do not find the driver libraries and nvidia-ctk (siderolabs/talos#13021)"
_GLIBC_LAYOUT: Mapping[Route, str] = {
    "device-plugin-cdi": _NO_CDI_PATHS,
    "gpu-operator": (
        "up to Talos 1.12, no folder contains both the driver libraries and nvidia-smi, so the validator of the "
        "operator fails (siderolabs/extensions#527)"
    ),
    "dra": f"it uses CDI, and {_NO_CDI_PATHS}",
}
_USR_LOCAL_LAYOUT: Mapping[Route, str] = {
    "gpu-operator-bridge": (
        "from Talos 1.13 on, a bridge hides what the validator of the operator finds. Leave the bridge out, and set "
        "driver.enabled=false, toolkit.enabled=false and hostPaths.driverInstallDir=/usr/local"
    ),
}


class _TalosLine(NamedTuple):
    """The properties of a minor release of Talos, such as Talos 1.12.

    In Talos 1.12 and earlier, the libraries of the NVIDIA driver are in /usr/local/glibc, but the validator of the GPU
    Operator and generated CDI specs refer to other folders. In Talos 1.13 and later, the libraries are in
    /usr/local/lib, and containerd reads /run/cdi.
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
_TALOS_VERSION = regex(r"v?[0-9]+\.[0-9]+(?:\.[0-9]+(?:-(?:alpha|beta|rc)\.[0-9]+)?)?\Z")


@dataclass(frozen=True)
class Talos(fields.Options):
    """A Kubernetes cluster whose nodes run Talos Linux.

    System extensions provide the NVIDIA driver and the NVIDIA Container Toolkit. The toolkit registers a containerd
    runtime with the name ``nvidia``, which is not the default runtime. Every GPU pod therefore needs a runtime class.

    Attributes:
        version: Minor release of Talos from ``"1.10"`` to ``"1.14"``, or a patch release or prerelease, such as
            ``"1.12.4"`` or ``"1.14.0-rc.1"``; ``"1.12"`` by default.

    Raises:
        GpuConstructsError: The library does not support the version.
    """

    version: str = "1.12"

    _NAME: ClassVar[str] = "platform"

    def _conflicts(self) -> Iterable[fields.Conflict]:
        yield (
            not _TALOS_VERSION.match(self.version) or self.line not in _TALOS,
            f"platform.version must be one of {', '.join(map(repr, _TALOS))} or a patch release of one, "
            f"got {self.version!r}. Pass the one that is nearest to your Talos release",
        )

    @property
    def _facts(self) -> _TalosLine:
        return _TALOS[self.line]

    def __str__(self) -> str:
        return f"Talos {self.version}"

    @property
    def line(self) -> str:
        """Minor release of Talos, such as ``1.12`` for ``v1.12.4``."""
        return ".".join(self.version.removeprefix("v").split(".")[:2])

    @property
    def kubernetes(self) -> str:
        """Kubernetes release that the minor release of Talos installs by default."""
        return self._facts.kubernetes

    brings_driver: ClassVar[bool] = True
    """Whether the image of the nodes contains the NVIDIA driver and the NVIDIA Container Toolkit. True for Talos."""

    runtime_class: ClassVar[str | None] = "nvidia"
    """Name of the RuntimeClass that GPU pods need, because ``nvidia`` is not the default runtime of containerd."""

    device_list_strategy: ClassVar[tuple[DeviceListStrategy, ...]] = ("envvar",)
    """Default device list strategies of the device plugin. Every Talos release supports ``envvar``.

    Up to Talos 1.12, CDI specs contain host paths that do not exist. From Talos 1.13 on, the user can select a CDI
    strategy.
    """

    accepts_volume_mounts: ClassVar[bool] = False
    """Whether the device list strategy ``volume-mounts`` works. False: the NVIDIA Container Toolkit disables it.

    Source:
        siderolabs/extensions@v1.12.11:nvidia-gpu/nvidia-container-toolkit/nvidia-container-runtime
    """

    device_discovery_strategy: ClassVar[DeviceDiscoveryStrategy | None] = "nvml"
    """Default device discovery strategy of the device plugin. ``auto`` does not work, because it needs host paths that
    Talos does not have."""

    @property
    def supports_cdi(self) -> bool:
        """Whether the CDI specs that the device plugin generates work on the platform."""
        return self.runtime_mode == "cdi"

    @property
    def runtime_mode(self) -> RuntimeMode:
        """Mode in which the NVIDIA runtime injects the NVIDIA driver into a container.

        ``legacy`` runs nvidia-container-cli. ``cdi`` reads the CDI spec that the node writes at boot.
        """
        return self._facts.runtime_mode

    @property
    def driver_install_dir(self) -> str | None:
        """Folder on the node that contains both the libraries and the programs of the NVIDIA driver.

        None if the libraries and the programs are in different folders.
        """
        return "/usr/local" if self.supports_cdi else None

    @property
    def driver_library_path(self) -> str | None:
        """Folder on the node with the libraries of the NVIDIA driver; never None on Talos."""
        return "/usr/local/lib" if self.supports_cdi else "/usr/local/glibc/usr/lib"

    driver_program_path: ClassVar[str | None] = "/usr/local/bin"
    """Folder on the node with nvidia-smi."""

    @property
    def machine_config(self) -> MachineConfigShape:
        """Format of a machine configuration patch: ``v1alpha1`` (one YAML document) or ``multi-document`` (several)."""
        return self._facts.machine_config

    @property
    def needs_bpf_jit_harden(self) -> bool:
        """Whether the sysctl ``net.core.bpf_jit_harden`` must be 1, because nvidia-container-cli loads BPF programs."""
        return self.runtime_mode == "legacy"

    @property
    def has_gdrdrv(self) -> bool:
        """Whether a system extension provides the kernel module of GDRCopy."""
        return self._facts.has_gdrdrv

    @property
    def node_taints_reach_workers(self) -> bool:
        """Whether the taints in the machine configuration take effect on worker nodes of the Kubernetes cluster.

        If False, a worker node sets the taints only after its registration, and the admission plugin NodeRestriction
        rejects this change (siderolabs/talos#13443).
        """
        return self.machine_config == "multi-document"

    pod_security_default: ClassVar[str | None] = "baseline"
    """Pod Security level that Talos enforces in namespaces that set no level."""

    @property
    def mig_needs_privileged(self) -> bool:
        """Whether only privileged containers can read the state of MIG devices.

        True for Talos releases with the NVIDIA Container Toolkit 1.18 to 1.20.0 (NVIDIA/nvidia-container-toolkit#1740).
        """
        return self._facts.mig_needs_privileged

    @property
    def mps_is_doubtful(self) -> bool:
        """Whether users report that MPS sometimes does not start on the platform.

        The report is NVIDIA/k8s-device-plugin#1614, for Talos 1.12.
        """
        return self._facts.mps_is_doubtful

    @property
    def nvidia_driver_root(self) -> str | None:
        """Root folder of the NVIDIA driver on the node, from which the device plugin generates CDI specs.

        None if the libraries and the programs of the driver are in different folders.
        """
        return self.driver_install_dir

    def dev_root_of(self, driver_root: str | None) -> str | None:
        """Return the value of the device plugin option ``nvidiaDevRoot``: the node folder that contains ``dev``.

        By default, this folder is the driver root (NVIDIA/k8s-device-plugin@v0.20.0:api/config/v1/config.go). A driver
        root in ``/usr/local`` on Talos contains no device nodes, so the option must be ``/``.

        Args:
            driver_root: Root folder of the NVIDIA driver on the node; None if no option sets it.

        Returns:
            ``/``, or None if the default of the device plugin works.
        """
        return "/" if driver_root and PurePosixPath(driver_root).is_relative_to("/usr/local") else None

    @property
    def gpu_operator_needs_bridge(self) -> bool:
        """Whether the GPU Operator needs a ``ValidationBridge``, because its validator fails without the bridge.

        The bridge is a DaemonSet that copies the files of the NVIDIA driver, and writes the marker files that the
        validator expects.
        """
        return self.refusal_of("gpu-operator") is not None

    def refusal_of(self, route: Route) -> str | None:
        """Return the reason why a route does not work on the platform. Return None if it works.

        A route is a method to install GPU support in a cluster, such as the device plugin or the GPU Operator.
        """
        return (_USR_LOCAL_LAYOUT if self.supports_cdi else _GLIBC_LAYOUT).get(route)

    gpu_node_selector: ClassVar[Mapping[str, str]] = {placement.GPU_PRESENT: "true"}
    """Default node selector of GPU pods: the label of GPU nodes, ``nvidia.com/gpu.present``."""

    driver_node_labels: ClassVar[tuple[str, ...]] = tuple(
        f"extensions.talos.dev/{extension}" for extension in TALOS_GPU_EXTENSIONS
    )
    """Keys of node labels, of which Talos sets one on each node with the NVIDIA driver, before pods run."""


@dataclass(frozen=True)
class Kubernetes(fields.Options):
    """A Kubernetes cluster whose administrator installs the NVIDIA driver and Container Toolkit on the nodes.

    The library assumes no runtime class and no node labels. If GPU pods of the cluster need them, pass
    ``runtime_class=`` and ``node_selector=`` to the constructs. The manifests are the same for every supported
    Kubernetes release.

    Attributes:
        version: Kubernetes release, from ``"1.27"`` to the newest release that the library supports (the default).

    Raises:
        GpuConstructsError: The library does not support the version.
    """

    version: str = KUBERNETES_RELEASES[-1]

    _NAME: ClassVar[str] = "platform"
    _CHECKS: ClassVar[fields.Checks] = {"version": partial(fields.one_of, allowed=KUBERNETES_RELEASES)}

    def __str__(self) -> str:
        return f"Kubernetes {self.version}"

    @property
    def kubernetes(self) -> str:
        """Kubernetes release of the cluster."""
        return self.version

    brings_driver: ClassVar[bool] = False
    """Whether the image of the nodes contains the NVIDIA driver. False, because a pod can also install the driver."""

    runtime_class: ClassVar[str | None] = None
    """RuntimeClass of GPU pods. None, because the library assumes that ``nvidia`` is the default runtime of the nodes.
    """

    device_list_strategy: ClassVar[tuple[DeviceListStrategy, ...]] = ()
    """Default device list strategies. Empty, so that the default of the device plugin applies."""

    accepts_volume_mounts: ClassVar[bool] = True
    """Whether the library assumes that the device list strategy ``volume-mounts`` works. It depends on the nodes."""

    device_discovery_strategy: ClassVar[DeviceDiscoveryStrategy | None] = None
    """Default device discovery strategy. None, so that the default of the device plugin applies."""

    supports_cdi: ClassVar[bool] = True
    """Whether the library assumes that CDI specs of the device plugin work. It depends on the nodes."""

    pod_security_default: ClassVar[str | None] = None
    """Pod Security level in namespaces that set no level. None, because it depends on the cluster."""

    mig_needs_privileged: ClassVar[bool] = False
    """Whether a container must be privileged to read the state of MIG devices. False, because SYS_ADMIN is enough.
    """

    mps_is_doubtful: ClassVar[bool] = False
    """Whether users report that MPS does not start. False, because there are no such reports."""

    driver_install_dir: ClassVar[str | None] = None
    """Folder on the node with the NVIDIA driver. None, because the library does not know it."""

    driver_library_path: ClassVar[str | None] = None
    """Folder on the node with the libraries of the NVIDIA driver. None, because the library does not know it."""

    driver_program_path: ClassVar[str | None] = None
    """Folder on the node with nvidia-smi. None, because the library does not know it."""

    has_gdrdrv: ClassVar[bool] = True
    """Whether the library assumes that nodes can have GDRCopy, which depends on their administrator."""

    nvidia_driver_root: ClassVar[str | None] = "/"
    """Root folder of the NVIDIA driver on the node, from which the device plugin generates CDI specs."""

    def dev_root_of(self, driver_root: str | None) -> str | None:
        """Return None: the device plugin needs no value for the option ``nvidiaDevRoot``."""
        return None

    gpu_operator_needs_bridge: ClassVar[bool] = False
    """Whether the GPU Operator needs a ``ValidationBridge``. False, because only some Talos releases need it."""

    def refusal_of(self, route: Route) -> str | None:
        """Return the reason why a route does not work on the platform. Return None if it works.

        A route is a method to install GPU support in a cluster, such as the device plugin or the GPU Operator.
        """
        if route == "dra" and KUBERNETES_RELEASES.index(self.version) < KUBERNETES_RELEASES.index(_FIRST_WITH_DRA):
            return f"Kubernetes serves the API resource.k8s.io/v1 from {_FIRST_WITH_DRA} on"
        return None

    gpu_node_selector: ClassVar[Mapping[str, str]] = {}
    """Default node selector of GPU pods. Empty, because a request for a GPU resource already selects GPU nodes."""

    driver_node_labels: ClassVar[tuple[str, ...]] = ()
    """Keys of labels of nodes with the NVIDIA driver. Empty, because not all clusters have such labels."""


_FIRST_WITH_DRA = "1.34"

Platform = Talos | Kubernetes
DEFAULT_PLATFORM = Talos("1.12")


def routes(platform: Platform) -> tuple[Route, ...]:
    """Return the routes (methods to install GPU support, such as ``device-plugin``) that work on a platform."""
    return tuple(route for route in ROUTES if platform.refusal_of(route) is None)


def require(platform: Platform, route: Route) -> None:
    """Raise if a route (a method to install GPU support, such as ``gpu-operator``) does not work on a platform.

    Raises:
        GpuConstructsError: The route does not work. The message states the reason and the routes that work.
    """
    why = platform.refusal_of(route)
    if why:
        listed = "; ".join(ROUTES[other] for other in routes(platform))
        raise GpuConstructsError(
            f"platform {platform} does not support {ROUTES[route]}: {why}. Supported there: {listed}"
        )


NO_VOLUME_MOUNTS = (
    "the container toolkit there does not accept devices as volume mounts "
    "(accept-nvidia-visible-devices-as-volume-mounts is false)"
)
"""Reason in messages why a platform does not support the device list strategy ``volume-mounts``."""

DeviceListStrategy = Literal["envvar", "volume-mounts", "cdi-annotations", "cdi-cri"]
DeviceDiscoveryStrategy = Literal["auto", "nvml", "tegra"]

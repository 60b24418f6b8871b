"""The upstream releases that each of our releases was checked with, and what differs between them.

Every release names where its image tag was read; the tags of the two base images were read in public
Dockerfiles. No registry was asked. Digests are never invented: pass ``image=`` with a digest to pin one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from gpu_constructs import _fields
from gpu_constructs.errors import GpuConstructsError, ShortErrors


@dataclass(frozen=True, kw_only=True)
class NodeFeatureDiscoveryRelease:
    """A release of Node Feature Discovery.

    Attributes:
        version: Release without the leading v.
        image: ``repository:tag`` of all its programs.
        has_http_health: One port 8080 serves ``/healthz`` and metrics (from 0.18.0); before, gRPC health is
            on 8082, but for the garbage collector, and metrics are on 8081.
        has_owner_refs: The worker is told who owns what it publishes (from 0.19.0); before, always its pod
            and DaemonSet.
        watches_pods: The topology updater lists and watches the pods of its node (from 0.19.0); before, it
            asked for each.
        awaits_topology_definition: The topology updater waits for its custom resource definition (from
            0.19.0); before, it failed without.
        source: Where the facts were read.
    """

    version: str
    image: str
    has_http_health: bool
    has_owner_refs: bool
    watches_pods: bool
    awaits_topology_definition: bool
    source: str

    def is_at_least(self, version: str) -> bool:
        """Tell whether this release is that one or a later one."""
        mine, other = ([int(part) for part in release.split(".")] for release in (self.version, version))
        return mine >= other

    def require(self, field: str, first: str) -> None:
        """Refuse what came with a later release.

        Raises:
            GpuConstructsError: This release is older than the first one that knows it.
        """
        if not self.is_at_least(first):
            raise GpuConstructsError(
                f"{field} needs Node Feature Discovery {first}, and this is {self.version}; leave it out or take a "
                "later release of the device plugin"
            )


@dataclass(frozen=True, kw_only=True)
class DevicePluginRelease:
    """A release of the NVIDIA device plugin and GPU Feature Discovery, which share one image.

    Attributes:
        version: Release without the leading v.
        image: ``repository:tag`` of all its programs.
        node_feature_discovery: The NFD release that NVIDIA's chart bundles with it.
        sets_owner_references: GFD makes its DaemonSet and pod the owners of what it publishes, so it reads
            its pod (from 0.19.0).
        has_infinite_sleep_interval: GFD takes ``infinite`` for its sleep interval (from 0.19.0).
        has_shared_devices_allocation_policy: The plugin knows ``packed`` beside ``distributed`` (from 0.20.0).
        cdi_feature_flags: What the plugin reads in ``CDI_FEATURE_FLAGS``; it skips all else.
        has_cdi_disable_hooks: The plugin reads ``CDI_DISABLE_HOOKS`` (from 0.20.0).
        honours_mps_fail_requests: ``failRequestsGreaterThanOne: false`` means something under MPS (from
            0.20.0); before, it was always true.
        names_mig_attributes: A MIG device with attributes has them in its resource name under the MIG strategy
            ``mixed`` (from 0.20.0); before, ``1g.10gb+me`` was advertised as ``nvidia.com/mig-1g.10gb``
            (NVIDIA/k8s-device-plugin#1807).
        config_manager_survives_host_pid: config-manager skips processes without a command line, which it
            meets under ``hostPID`` (from 0.20.0); before, it panicked.
        source: Where the facts were read.
    """

    version: str
    image: str
    node_feature_discovery: NodeFeatureDiscoveryRelease
    sets_owner_references: bool
    has_infinite_sleep_interval: bool
    has_shared_devices_allocation_policy: bool
    cdi_feature_flags: tuple[str, ...]
    has_cdi_disable_hooks: bool
    honours_mps_fail_requests: bool
    names_mig_attributes: bool
    config_manager_survives_host_pid: bool
    source: str


@dataclass(frozen=True, kw_only=True)
class DcgmExporterRelease:
    """A release of dcgm-exporter.

    Attributes:
        version: Chart and exporter release; never an image tag by itself.
        behaves_like: The known release whose metrics and labels it has: itself, unless it is unverified.
        image: ``repository:tag``; the tag is DCGM release, exporter release and base system.
        source: Where the facts were read.
    """

    version: str
    behaves_like: str
    image: str
    source: str


@dataclass(frozen=True, kw_only=True)
class NvidiaGpuExporterRelease:
    """A release of nvidia_gpu_exporter.

    Attributes:
        version: Release of the program, without the leading v; its chart counts one major release further.
        behaves_like: The known release whose metrics it has: itself, unless it is unverified.
        image: ``repository:tag``; the image that reads the driver's library has ``-nvml`` behind the tag.
        source: Where the facts were read.
    """

    version: str
    behaves_like: str
    image: str
    source: str


@dataclass(frozen=True, kw_only=True)
class GpuOperatorRelease:
    """A release of the NVIDIA GPU Operator and its Helm chart.

    Attributes:
        version: Release without the leading v.
        behaves_like: The known release whose chart keys it has: itself, unless it is unverified.
        node_feature_discovery: The release of the bundled chart of Node Feature Discovery.
        device_plugin: The release of the device plugin that it runs.
        source: Where the facts were read.
    """

    version: str
    behaves_like: str
    node_feature_discovery: str
    device_plugin: DevicePluginRelease
    source: str

    def is_at_least(self, version: str) -> bool:
        """Tell whether this release is that one or a later one."""
        mine, other = (
            [int(part) for part in re.findall(r"[0-9]+", release)[:3]] for release in (self.version, version)
        )
        return mine >= other


@dataclass(frozen=True)
class Unverified(metaclass=ShortErrors):
    """A release that this library has not checked: rendered like a known one, at the user's own risk.

    ``Unverified("0.20.1", like="0.20.0")`` uses the image tag of 0.20.1 and the behaviour of 0.20.0.

    Attributes:
        version: The release to run, without a leading v.
        like: The known release whose behaviour to assume.
        image: ``repository:tag`` when it does not follow the known release's pattern.
    """

    version: str
    like: str
    image: str | None = None

    def __post_init__(self) -> None:
        _fields.members(self, "version")
        if not re.match(r"[0-9]+\.[0-9]", self.version):
            raise GpuConstructsError(f"version must be a release like '0.20.1', without a 'v'; got {self.version!r}")
        _fields.label_value("version", self.version)
        if self.image is not None:
            _fields.image("version.image", self.image)


_NFD_0_17_3 = NodeFeatureDiscoveryRelease(
    version="0.17.3",
    image="registry.k8s.io/nfd/node-feature-discovery:v0.17.3",
    has_http_health=False,
    has_owner_refs=False,
    watches_pods=False,
    awaits_topology_definition=False,
    source="NVIDIA/k8s-device-plugin@v0.18.2 and @v0.19.3, bundled chart node-feature-discovery-chart-0.17.3",
)
_NFD_0_19_0 = NodeFeatureDiscoveryRelease(
    version="0.19.0",
    image="registry.k8s.io/nfd/node-feature-discovery:v0.19.0",
    has_http_health=True,
    has_owner_refs=True,
    watches_pods=True,
    awaits_topology_definition=True,
    source="NVIDIA/k8s-device-plugin@v0.20.0, bundled chart node-feature-discovery-0.19.0",
)

_CDI_FEATURE_FLAGS = (
    "disable-nvsandbox-utils",
    "disable-nvsandboxutils",
    "enable-coherent-annotations",
    "enable-explicit-driver-libraries",
)
_CDI_FEATURE_FLAGS_FROM_0_19 = (
    *_CDI_FEATURE_FLAGS,
    "disable-ipc-discoverer",
    "disable-multiple-csv-devices",
    "no-additional-gids-for-device-nodes",
)

DEVICE_PLUGIN: Mapping[str, DevicePluginRelease] = {
    "0.18.2": DevicePluginRelease(
        version="0.18.2",
        image="nvcr.io/nvidia/k8s-device-plugin:v0.18.2",
        node_feature_discovery=_NFD_0_17_3,
        sets_owner_references=False,
        has_infinite_sleep_interval=False,
        has_shared_devices_allocation_policy=False,
        cdi_feature_flags=_CDI_FEATURE_FLAGS,
        has_cdi_disable_hooks=False,
        honours_mps_fail_requests=False,
        names_mig_attributes=False,
        config_manager_survives_host_pid=False,
        source="NVIDIA/k8s-device-plugin@v0.18.2:deployments/helm/nvidia-device-plugin",
    ),
    "0.19.3": DevicePluginRelease(
        version="0.19.3",
        image="nvcr.io/nvidia/k8s-device-plugin:v0.19.3",
        node_feature_discovery=_NFD_0_17_3,
        sets_owner_references=True,
        has_infinite_sleep_interval=True,
        has_shared_devices_allocation_policy=False,
        cdi_feature_flags=_CDI_FEATURE_FLAGS_FROM_0_19,
        has_cdi_disable_hooks=False,
        honours_mps_fail_requests=False,
        names_mig_attributes=False,
        config_manager_survives_host_pid=False,
        source="NVIDIA/k8s-device-plugin@v0.19.3: deployments/helm/nvidia-device-plugin, cmd, api/config/v1, and "
        "vendor/github.com/NVIDIA/nvidia-container-toolkit/pkg/nvcdi/api.go",
    ),
    "0.20.0": DevicePluginRelease(
        version="0.20.0",
        image="nvcr.io/nvidia/k8s-device-plugin:v0.20.0",
        node_feature_discovery=_NFD_0_19_0,
        sets_owner_references=True,
        has_infinite_sleep_interval=True,
        has_shared_devices_allocation_policy=True,
        cdi_feature_flags=_CDI_FEATURE_FLAGS_FROM_0_19,
        has_cdi_disable_hooks=True,
        honours_mps_fail_requests=True,
        names_mig_attributes=True,
        config_manager_survives_host_pid=True,
        source="NVIDIA/k8s-device-plugin@v0.20.0:deployments/helm/nvidia-device-plugin",
    ),
}
DEFAULT_DEVICE_PLUGIN = "0.20.0"

RDMA_ON_BY_DEFAULT = ("0.19.0", "0.19.1", "0.19.2")
"""Releases of the device plugin that hand GDS, GDRCopy and MOFED devices to every container unless told not to,
which fails where a node has none (NVIDIA/k8s-device-plugin#1692)."""

DCGM_EXPORTER: Mapping[str, DcgmExporterRelease] = {
    "3.4.2": DcgmExporterRelease(
        version="3.4.2",
        behaves_like="3.4.2",
        image="nvcr.io/nvidia/k8s/dcgm-exporter:3.3.6-3.4.2-ubuntu22.04",
        source="NVIDIA/dcgm-exporter@3.3.6-3.4.2:deployment/values.yaml",
    ),
    "4.8.2": DcgmExporterRelease(
        version="4.8.2",
        behaves_like="4.8.2",
        image="nvcr.io/nvidia/k8s/dcgm-exporter:4.5.3-4.8.2-distroless",
        source="NVIDIA/dcgm-exporter@4.5.3-4.8.2:deployment/values.yaml",
    ),
    "4.8.3": DcgmExporterRelease(
        version="4.8.3",
        behaves_like="4.8.3",
        image="nvcr.io/nvidia/k8s/dcgm-exporter:4.6.0-4.8.3-distroless",
        source="NVIDIA/gpu-operator@v26.7.0:deployments/gpu-operator/values.yaml, dcgmExporter.version",
    ),
}
DEFAULT_DCGM_EXPORTER = "4.8.3"

NVIDIA_GPU_EXPORTER: Mapping[str, NvidiaGpuExporterRelease] = {
    "1.14.0": NvidiaGpuExporterRelease(
        version="1.14.0",
        behaves_like="1.14.0",
        image="docker.io/utkuozdemir/nvidia_gpu_exporter:1.14.0",
        source="utkuozdemir/nvidia_gpu_exporter@v1.14.0:charts/nvidia-gpu-exporter, .goreleaser.yml",
    ),
}
DEFAULT_NVIDIA_GPU_EXPORTER = "1.14.0"

GPU_OPERATOR: Mapping[str, GpuOperatorRelease] = {
    "25.10.1": GpuOperatorRelease(
        version="25.10.1",
        behaves_like="25.10.1",
        node_feature_discovery="0.18.2",
        device_plugin=replace(DEVICE_PLUGIN["0.18.2"], version="0.18.1"),
        source="NVIDIA/gpu-operator@v25.10.1:deployments/gpu-operator",
    ),
    "26.3.3": GpuOperatorRelease(
        version="26.3.3",
        behaves_like="26.3.3",
        node_feature_discovery="0.18.3",
        device_plugin=DEVICE_PLUGIN["0.19.3"],
        source="NVIDIA/gpu-operator@v26.3.3:deployments/gpu-operator",
    ),
    "26.7.0": GpuOperatorRelease(
        version="26.7.0",
        behaves_like="26.7.0",
        node_feature_discovery="0.19.0",
        device_plugin=DEVICE_PLUGIN["0.20.0"],
        source="NVIDIA/gpu-operator@v26.7.0:deployments/gpu-operator",
    ),
}
DEFAULT_GPU_OPERATOR = "26.7.0"

FAILS_ON_TALOS = ("26.3.0",)
"""Releases of the GPU Operator that cannot read a Talos version such as v1.12.6 (NVIDIA/gpu-operator#2239)."""

FIRST_GPU_OPERATOR_FOR_CDI_ON_TALOS = "26.3.1"
"""The first release that Sidero documents for Talos 1.13 and later."""

BUSYBOX_IMAGE = "docker.io/library/busybox:1.37.0"
"""A shell and nothing else, for the validation bridge (Docker official image, release 1.37.0)."""

DEBIAN_IMAGE = "docker.io/library/debian:bookworm-20250929-slim"
"""A glibc system small enough to carry the injected nvidia-smi, which is linked against glibc."""

KUBERNETES_RELEASES = tuple(f"1.{minor}" for minor in range(27, 38))
"""The Kubernetes releases whose schemas every manifest is checked with."""

_Release = TypeVar("_Release", DevicePluginRelease, DcgmExporterRelease, NvidiaGpuExporterRelease, GpuOperatorRelease)


def release_of(known: Mapping[str, _Release], version: str | Unverified, what: str) -> _Release:
    """Look up a release.

    Args:
        known: One of this module's tables.
        version: A version of the table, or an ``Unverified`` one.
        what: The component's name for the message.

    Raises:
        GpuConstructsError: The table does not hold the version, or the image of an unverified one cannot be
            told from its version.
    """
    if not isinstance(version, Unverified):
        if version not in known:
            raise GpuConstructsError(_unknown(known, version, f"version of {what}", can_be_forced=True))
        return known[version]
    if version.version in known:
        raise GpuConstructsError(
            f"version of {what} must not be Unverified for a release that this library knows; "
            f"got {version.version!r}; pass version={version.version!r}"
        )
    if version.like not in known:
        raise GpuConstructsError(_unknown(known, version.like, f"version.like of {what}", can_be_forced=False))
    release = known[version.like]
    if isinstance(release, GpuOperatorRelease):
        if version.image is not None:
            raise GpuConstructsError(
                f"version.image is not for {what}, whose images are values of its chart; got {version.image!r}"
            )
        return replace(release, version=version.version, source="not verified by this library")
    image = version.image
    if image is None:
        tag = release.image.rpartition(":")[2]
        if tag != f"v{release.version}":
            raise GpuConstructsError(
                f"version.image of {what} is required for a release we have not checked, since its tag names more "
                f"than the release; got None, e.g. image={release.image!r}"
            )
        image = release.image.replace(tag, f"v{version.version}")
    return replace(release, version=version.version, image=image, source="not verified by this library")


def _unknown(known: Mapping[str, _Release], version: str, field: str, *, can_be_forced: bool) -> str:
    problem = f"{field} must be one of {', '.join(map(repr, known))}; got {version!r}"
    bare = version.removeprefix("v")
    if bare in known:
        return f"{problem} (did you mean {bare!r}?)"
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)+", bare):
        return problem + _fields.did_you_mean(version, known)
    oldest = next(iter(known))
    if [int(part) for part in bare.split(".")] < [int(part) for part in oldest.split(".")]:
        return f"{problem}; it is older than anything supported: move up to {oldest!r} or later"
    if not can_be_forced:
        return problem
    if bare in RDMA_ON_BY_DEFAULT and known is DEVICE_PLUGIN:
        problem += "; it hands GDS, GDRCopy and MOFED devices to every container (NVIDIA/k8s-device-plugin#1692)"
    line = bare.rpartition(".")[0]
    newest = known[next((other for other in reversed(list(known)) if other.startswith(f"{line}.")), list(known)[-1])]
    is_plain = isinstance(newest, GpuOperatorRelease) or newest.image.endswith(f":v{newest.version}")
    image = "" if is_plain else ", image='...'"
    return f"{problem}; force it with Unverified({bare!r}, like={newest.version!r}{image})"

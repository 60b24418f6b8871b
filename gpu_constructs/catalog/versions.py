"""The upstream releases that each of our releases was checked with, and what differs between them.

Every release names where its image tag was read; the tags of the two base images were read in public
Dockerfiles. No registry was asked. Digests are never invented: pass ``image=`` with a digest to pin one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeVar

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.kube import fields


def numbers(version: str) -> list[int]:
    """Return the numbers of a release without what comes behind them."""
    return [int(part) for part in re.findall(r"[0-9]+", version)[:3]]


class NodeFeatureDiscoveryRelease(NamedTuple):
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
        """Check whether this release is that one or a later one."""
        return numbers(self.version) >= numbers(version)

    def require(self, field: str, first: str) -> None:
        """Raise if a later release brought the option.

        Raises:
            GpuConstructsError: This release is older than the first one that knows it.
        """
        if not self.is_at_least(first):
            raise GpuConstructsError(
                f"{field} needs Node Feature Discovery {first}, and this is {self.version}; leave it out or take a "
                "later release of the device plugin"
            )


class DevicePluginRelease(NamedTuple):
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


class ExporterRelease(NamedTuple):
    """A release of dcgm-exporter or of nvidia_gpu_exporter.

    Attributes:
        version: Release of the program, without the leading v; never an image tag by itself. The chart of
            nvidia_gpu_exporter counts one major release further.
        behaves_like: The known release whose metrics and labels it has: itself, unless it is unverified.
        image: ``repository:tag``. The tag of dcgm-exporter is DCGM release, exporter release and base system; the
            image of nvidia_gpu_exporter that reads the driver's library has ``-nvml`` behind the tag.
        source: Where the facts were read.
    """

    version: str
    behaves_like: str
    image: str
    source: str


class GpuOperatorRelease(NamedTuple):
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
        """Check whether this release is that one or a later one."""
        return numbers(self.version) >= numbers(version)


@dataclass(frozen=True)
class Unverified(fields.Options):
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

    _NAME: ClassVar[str] = "version"
    _CHECKS: ClassVar[fields.Checks] = {"image": fields.image}

    def _conflicts(self) -> Iterable[fields.Conflict]:
        is_release = re.match(r"[0-9]+\.[0-9]", self.version)
        yield not is_release, f"version must be a release like '0.20.1', without a 'v'; got {self.version!r}"
        fields.label_value("version", self.version)


@cache
def rows(table: str) -> list[dict[str, Any]]:
    """Return the rows of a table of ``releases.json``."""
    tables: dict[str, list[dict[str, Any]]] = json.loads(Path(__file__).with_name("releases.json").read_text())
    return tables[table]


def _plugin(row: Mapping[str, Any]) -> DevicePluginRelease:
    flags, companion = tuple(row["cdi_feature_flags"]), _NODE_FEATURE_DISCOVERY[row["node_feature_discovery"]]
    return DevicePluginRelease(**{**row, "cdi_feature_flags": flags, "node_feature_discovery": companion})


def _operator(row: Mapping[str, Any]) -> GpuOperatorRelease:
    like, version = row["device_plugin"]["like"], row["device_plugin"]["version"]
    plugin = DEVICE_PLUGIN[like] if like == version else DEVICE_PLUGIN[like]._replace(version=version)
    return GpuOperatorRelease(**{**row, "device_plugin": plugin}, behaves_like=row["version"])


def _exporters(table: str) -> Mapping[str, ExporterRelease]:
    return {row["version"]: ExporterRelease(**row, behaves_like=row["version"]) for row in rows(table)}


_NODE_FEATURE_DISCOVERY = {row["version"]: NodeFeatureDiscoveryRelease(**row) for row in rows("node_feature_discovery")}
DEVICE_PLUGIN: Mapping[str, DevicePluginRelease] = {row["version"]: _plugin(row) for row in rows("device_plugin")}
DEFAULT_DEVICE_PLUGIN = "0.20.0"

RDMA_ON_BY_DEFAULT = ("0.19.0", "0.19.1", "0.19.2")
"""Releases of the device plugin that hand GDS, GDRCopy and MOFED devices to every container unless told not to,
which fails where a node has none (NVIDIA/k8s-device-plugin#1692)."""

DCGM_EXPORTER = _exporters("dcgm_exporter")
DEFAULT_DCGM_EXPORTER = "4.8.3"

NVIDIA_GPU_EXPORTER = _exporters("nvidia_gpu_exporter")
DEFAULT_NVIDIA_GPU_EXPORTER = "1.14.0"

GPU_OPERATOR: Mapping[str, GpuOperatorRelease] = {row["version"]: _operator(row) for row in rows("gpu_operator")}
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

_Release = TypeVar("_Release", DevicePluginRelease, ExporterRelease, GpuOperatorRelease)


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
    if version.like not in known:
        raise GpuConstructsError(_unknown(known, version.like, f"version.like of {what}", can_be_forced=False))
    release, image = known[version.like], version.image
    tag = "" if isinstance(release, GpuOperatorRelease) else release.image.rpartition(":")[2]
    fields.refuse_first(
        (
            (
                version.version in known,
                f"version of {what} must not be Unverified for a release that this library knows; "
                f"got {version.version!r}; pass version={version.version!r}",
            ),
            (
                not tag and image is not None,
                f"version.image is not for {what}, whose images are values of its chart; got {image!r}",
            ),
            (
                tag and image is None and tag != f"v{release.version}",
                f"version.image of {what} is required for a release we have not checked, since its tag names more "
                f"than the release; got None, e.g. image={getattr(release, 'image', None)!r}",
            ),
        )
    )
    changed: dict[str, Any] = {"version": version.version, "source": "not verified by this library"}
    if not isinstance(release, GpuOperatorRelease):
        changed["image"] = image or release.image.replace(tag, f"v{version.version}")
    return release._replace(**changed)


def _unknown(known: Mapping[str, _Release], version: str, field: str, *, can_be_forced: bool) -> str:
    problem = f"{field} must be one of {', '.join(map(repr, known))}; got {version!r}"
    bare = version.removeprefix("v")
    if bare in known:
        return f"{problem} (did you mean {bare!r}?)"
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)+", bare):
        return problem + fields.did_you_mean(version, known)
    oldest = next(iter(known))
    if numbers(bare) < numbers(oldest):
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

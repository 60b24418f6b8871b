"""Releases of the device plugin, the GPU Operator and other components that this library supports.

The tables describe the differences between the releases. Each row contains the source of its data. The tables contain
no image digests. To use a digest, pass ``image=`` to the construct.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.kube import fields
from gpu_constructs.records import dataclass

if TYPE_CHECKING:
    from packaging.version import Version


@cache
def comparable(version: str) -> Version:
    """Return the version number of a release for comparisons, without the text after the number.

    For example, ``0.20.1-mybuild`` counts as 0.20.1, and ``26.7.0-rc.1`` counts as 26.7.0, because such builds have
    the features of their release. A text without a number counts as release 0.
    """
    from packaging.version import Version

    found = re.match(r"v?([0-9]+(?:\.[0-9]+)*)", version)
    return Version(found[1] if found else "0")


class NodeFeatureDiscoveryRelease(NamedTuple):
    """A release of Node Feature Discovery.

    Attributes:
        version: Release without the leading v.
        image: Image of all components, as ``repository:tag``.
        definitions: Release of Node Feature Discovery from which the library takes the CRDs, such as ``0.17.3``. The
            release ``version`` has equal CRDs.
        has_http_health: Whether port 8080 serves ``/healthz`` and metrics (from 0.18.0). In older releases, all
            components serve metrics on port 8081. All except the garbage collector serve gRPC health checks on port
            8082.
        has_health_flag: Whether a flag sets the port of gRPC health checks (0.16.5 to 0.17.4).
        reads_own_pod: Whether nfd-worker reads its pod, to set its DaemonSet as an owner of NodeFeatures (from 0.16.2).
        has_owner_refs: Whether a flag sets the owners of the NodeFeatures that nfd-worker creates (from 0.19.0). In
            older releases, the owners are always the pod and, from 0.16.2, the DaemonSet of nfd-worker.
        watches_pods: Whether the topology updater needs the right to list and watch pods (from 0.19.0). Older releases
            read each pod separately.
        awaits_topology_definition: Whether the topology updater waits for the CRD NodeResourceTopology (from 0.19.0).
            Older releases exit if the CRD does not exist.
        source: Source of these values.
    """

    version: str
    image: str
    definitions: str
    has_http_health: bool
    has_health_flag: bool
    reads_own_pod: bool
    has_owner_refs: bool
    watches_pods: bool
    awaits_topology_definition: bool
    source: str

    def is_at_least(self, version: str) -> bool:
        """Check whether this release is not older than the given release."""
        return comparable(self.version) >= comparable(version)

    def require(self, field: str, first: str) -> None:
        """Raise if this release does not support an option.

        Args:
            field: Name of the option in the message.
            first: First release that supports the option.

        Raises:
            GpuConstructsError: This release is older than ``first``.
        """
        if not self.is_at_least(first):
            raise GpuConstructsError(
                f"{field} needs Node Feature Discovery {first}, got {self.version}. Leave it out, or use a later "
                "release of the device plugin, which contains a later Node Feature Discovery"
            )


class DevicePluginRelease(NamedTuple):
    """A release of the NVIDIA device plugin and GPU Feature Discovery, which share one image.

    Attributes:
        version: Release without the leading v.
        image: Image of the device plugin, GPU Feature Discovery and the MPS control daemon, as ``repository:tag``.
        node_feature_discovery: Release of Node Feature Discovery that the library installs with the device plugin: the
            release in the Helm chart of the device plugin, but at least 0.17.3.
        bundled_node_feature_discovery: Release of Node Feature Discovery in the Helm chart of the device plugin.
        kubernetes: Range of the Kubernetes releases that the Helm chart of the device plugin accepts.
        sets_owner_references: Whether GPU Feature Discovery reads its pod, to set its DaemonSet and pod as owners of
            its NodeFeatures (from 0.19.0).
        has_infinite_sleep_interval: Whether GPU Feature Discovery accepts the sleep interval ``infinite`` (from
            0.19.0).
        has_gdrcopy_enabled: Whether the device plugin reads ``gdrcopyEnabled`` (from 0.18.0).
        has_enabled_healthchecks: Whether the device plugin reads ``DP_ENABLE_HEALTHCHECKS`` (from 0.18.0).
        has_shared_devices_allocation_policy: Whether the device plugin supports the policy ``packed`` besides
            ``distributed`` (from 0.20.0).
        cdi_feature_flags: Flags in ``CDI_FEATURE_FLAGS`` that the device plugin supports. It ignores all other flags.
            Releases before 0.18.2 support no flags.
        has_cdi_disable_hooks: Whether the device plugin reads ``CDI_DISABLE_HOOKS`` (from 0.20.0).
        honours_mps_fail_requests: Whether the device plugin supports ``failRequestsGreaterThanOne: false`` with MPS
            (from 0.20.0). Older releases treat false as true.
        hands_out_rdma: Whether the device plugin passes GDS, GDRCopy and MOFED devices to every container by default
            (0.19.0 to 0.19.2). Containers then fail on nodes without such devices (NVIDIA/k8s-device-plugin#1692).
        names_mig_attributes: Whether resource names contain the attributes of MIG devices with the MIG strategy
            ``mixed`` (from 0.20.0). Older releases advertise ``1g.10gb+me`` as ``nvidia.com/mig-1g.10gb``
            (NVIDIA/k8s-device-plugin#1807).
        chart_shows_mps_host_pid: Whether the MPS control daemon of the Helm chart runs with ``hostPID`` by default
            (from 0.18.0). In older Helm charts, it never runs with ``hostPID``.
        config_manager_needs_label: Whether config-manager can wait forever on a node without the label
            ``nvidia.com/device-plugin.config`` (before 0.18.2).
        config_manager_survives_host_pid: Whether config-manager works with ``hostPID`` (from 0.20.0). Older releases
            panic at processes without a command line.
        source: Source of these values.
    """

    version: str
    image: str
    node_feature_discovery: NodeFeatureDiscoveryRelease
    bundled_node_feature_discovery: str
    kubernetes: str
    sets_owner_references: bool
    has_infinite_sleep_interval: bool
    has_gdrcopy_enabled: bool
    has_enabled_healthchecks: bool
    has_shared_devices_allocation_policy: bool
    cdi_feature_flags: tuple[str, ...]
    has_cdi_disable_hooks: bool
    honours_mps_fail_requests: bool
    hands_out_rdma: bool
    names_mig_attributes: bool
    chart_shows_mps_host_pid: bool
    config_manager_needs_label: bool
    config_manager_survives_host_pid: bool
    source: str


class ExporterRelease(NamedTuple):
    """A release of dcgm-exporter or of nvidia_gpu_exporter.

    Attributes:
        version: Release of the exporter without the leading v. The image tag and the Helm chart can have other version
            numbers.
        behaves_like: Supported release with the same metrics and labels: this release itself, or the value of
            ``Unverified.like``.
        image: Image as ``repository:tag``. The tag of dcgm-exporter contains the DCGM release, the exporter release and
            the base system. The tag of nvidia_gpu_exporter ends in ``-nvml`` for the image that uses NVML.
        source: Source of these values.
        kubernetes: Range of the Kubernetes releases that the Helm chart of dcgm-exporter accepts. This attribute and
            all following attributes have values only for dcgm-exporter.
        writes_to_image: Whether the start script changes files of the image: the linker cache up to 4.5.2, and the
            capabilities of the executable file up to 4.6.0.
        chart_file: Filename of a list of metrics in the image. The exporter of the Helm chart uses this filename.
        chart_mounts_list: Whether the Helm chart mounts its own list of metrics in place of ``chart_file`` (from
            3.6.0).
        chart_list_lacks: DCGM fields that are in the list of metrics of the image but not in that of the Helm chart.
        chart_list_counts: DCGM fields that are counters in the list of metrics of the Helm chart but not in that of the
            image.
        default_file_pcie: Name of the DCGM fields for PCIe traffic in ``default-counters.csv``, with ``{}`` in place of
            ``TX`` and ``RX``. Empty if ``chart_file`` is ``default-counters.csv``.
        chart_hardens: Whether the Helm chart drops all capabilities, sets requests and limits, and tolerates the taint
            of control planes (from 4.7.0).
        chart_memory_limit: Memory limit in the Helm chart. Empty if the chart sets none.
    """

    version: str
    behaves_like: str
    image: str
    source: str
    kubernetes: str = ""
    writes_to_image: bool = False
    chart_file: str = ""
    chart_mounts_list: bool = False
    chart_list_lacks: Sequence[str] = ()
    chart_list_counts: Sequence[str] = ()
    default_file_pcie: str = ""
    chart_hardens: bool = False
    chart_memory_limit: str = ""


class GpuOperatorRelease(NamedTuple):
    """A release of the NVIDIA GPU Operator and its Helm chart.

    Attributes:
        version: Release without the leading v.
        behaves_like: Supported release whose Helm chart has the same keys: this release itself, or the value of
            ``Unverified.like``.
        node_feature_discovery: Release of Node Feature Discovery in the Helm chart of the GPU Operator.
        device_plugin: Release of the device plugin that the GPU Operator installs.
        dcgm_exporter: Release of the DCGM exporter that the GPU Operator installs.
        kubernetes: Range of the Kubernetes releases that the Helm chart accepts.
        uses_cdi_by_default: Whether the Helm chart enables CDI by default (from 25.10.0).
        reads_version_of_talos: Whether the GPU Operator can parse a Talos version such as v1.12.6. Release 26.3.0
            cannot (NVIDIA/gpu-operator#2239).
        source: Source of these values.
    """

    version: str
    behaves_like: str
    node_feature_discovery: str
    device_plugin: DevicePluginRelease
    dcgm_exporter: str
    kubernetes: str
    uses_cdi_by_default: bool
    reads_version_of_talos: bool
    source: str

    def is_at_least(self, version: str) -> bool:
        """Check whether this release is not older than the given release."""
        return comparable(self.version) >= comparable(version)


@dataclass(frozen=True)
class Unverified(fields.Options):
    """A release of a component that this library does not support, which the user installs at their own risk.

    For example, ``version=Unverified("0.20.1", like="0.20.0")`` of ``DevicePluginChart`` uses the image tag of release
    0.20.1 with the manifests for 0.20.0.

    Attributes:
        version: Release to install, without a leading v.
        like: Supported release with the same options.
        image: Image as ``repository:tag``. Required if the image tag of the component contains more than the version,
            as for the DCGM exporter; otherwise None (the default).

    Raises:
        GpuConstructsError: The version does not have the form of a release, or the image has no tag.
    """

    version: str
    like: str
    image: str | None = None

    _NAME: ClassVar[str] = "version"
    _CHECKS: ClassVar[fields.Checks] = {"image": fields.image}

    def _conflicts(self) -> Iterable[fields.Conflict]:
        is_release = re.match(r"[0-9]+\.[0-9]", self.version)
        yield not is_release, f"version must be a release like '0.20.1', without a 'v', got {self.version!r}"
        fields.label_value("version", self.version)


@cache
def rows(table: str) -> list[dict[str, Any]]:
    """Return the rows of a table in ``releases.json``, such as ``device_plugin``. Each row maps columns to values."""
    tables: dict[str, list[dict[str, Any]]] = json.loads(Path(__file__).with_name("releases.json").read_text())
    return tables[table]


def releases_in(table: str, releases: str, column: str = "version") -> tuple[str, ...]:
    """Return the releases in a table of ``releases.json`` whose version in a column is in the given range.

    Args:
        table: Name of the table, such as ``device_plugin``.
        releases: Range as a version specifier of Python packages, for example ``>=0.18.1,<0.20``.
        column: Name of the column: ``version`` (the default) for the release itself, or a column with the version of
            another component, such as ``node_feature_discovery``.
    """
    from packaging.specifiers import SpecifierSet

    return tuple(row["version"] for row in rows(table) if row[column] in SpecifierSet(releases))


def _plugin(row: Mapping[str, Any]) -> DevicePluginRelease:
    flags, companion = tuple(row["cdi_feature_flags"]), NODE_FEATURE_DISCOVERY[row["node_feature_discovery"]]
    return DevicePluginRelease(**{**row, "cdi_feature_flags": flags, "node_feature_discovery": companion})


def _operator(row: Mapping[str, Any]) -> GpuOperatorRelease:
    return GpuOperatorRelease(
        **{**row, "device_plugin": DEVICE_PLUGIN[row["device_plugin"]]}, behaves_like=row["version"]
    )


def _exporters(table: str) -> Mapping[str, ExporterRelease]:
    return {row["version"]: ExporterRelease(**row, behaves_like=row["version"]) for row in rows(table)}


NODE_FEATURE_DISCOVERY: Mapping[str, NodeFeatureDiscoveryRelease] = {
    row["version"]: NodeFeatureDiscoveryRelease(**row) for row in rows("node_feature_discovery")
}
DEFAULT_NODE_FEATURE_DISCOVERY = "0.19.0"

DEVICE_PLUGIN: Mapping[str, DevicePluginRelease] = {row["version"]: _plugin(row) for row in rows("device_plugin")}
DEFAULT_DEVICE_PLUGIN = "0.20.0"

DCGM_EXPORTER = _exporters("dcgm_exporter")
DEFAULT_DCGM_EXPORTER = "4.8.3"

NVIDIA_GPU_EXPORTER = _exporters("nvidia_gpu_exporter")
DEFAULT_NVIDIA_GPU_EXPORTER = "1.14.0"

GPU_OPERATOR: Mapping[str, GpuOperatorRelease] = {row["version"]: _operator(row) for row in rows("gpu_operator")}
DEFAULT_GPU_OPERATOR = "26.7.0"

FIRST_GPU_OPERATOR_FOR_CDI_ON_TALOS = "26.3.1"
"""First release of the GPU Operator that the documentation of Talos specifies for Talos 1.13 and later."""

BUSYBOX_IMAGE = "docker.io/library/busybox:1.37.0"
"""Image with a shell for the DaemonSet of ``ValidationBridge`` (Docker official image, release 1.37.0)."""

DEBIAN_IMAGE = "docker.io/library/debian:bookworm-20250929-slim"
"""Small image with glibc, which the nvidia-smi that the NVIDIA runtime mounts into containers needs."""

KUBERNETES_RELEASES = tuple(f"1.{minor}" for minor in range(27, 38))
"""Kubernetes releases that this library supports. The tests validate manifests with the schemas of these releases."""

_Release = TypeVar("_Release", DevicePluginRelease, ExporterRelease, GpuOperatorRelease, NodeFeatureDiscoveryRelease)


def release_of(known: Mapping[str, _Release], version: str | Unverified, what: str) -> _Release:
    """Return the data of the release that the user specifies.

    Args:
        known: Data of the supported releases of one component, by version.
        version: Supported version, or an ``Unverified`` release.
        what: Name of the component in messages, such as ``the device plugin``.

    Raises:
        GpuConstructsError: ``known`` does not contain the version, or an ``Unverified`` release needs an ``image``.
    """
    if not isinstance(version, Unverified):
        if version not in known:
            raise GpuConstructsError(_unknown(known, version, what, "version", can_be_forced=True))
        return known[version]
    if version.like not in known:
        raise GpuConstructsError(_unknown(known, version.like, what, "version.like", can_be_forced=False))
    release, image = known[version.like], version.image
    tag = "" if isinstance(release, GpuOperatorRelease) else release.image.rpartition(":")[2]
    fields.refuse_first(
        (
            (
                version.version in known,
                f"version of {what} must be text for a supported release, got {version.version!r}. Pass "
                f"version={version.version!r}",
            ),
            (
                not tag and image is not None,
                f"version.image must be None for {what}, whose chart values set the images, got {image!r}",
            ),
            (
                tag and image is None and tag != f"v{release.version}",
                f"version.image of {what} must be an image for an unverified release, because its tag contains more "
                f"than the release, got None. Pass for example image={getattr(release, 'image', None)!r}",
            ),
        )
    )
    changed: dict[str, Any] = {"version": version.version, "source": "not verified by this library"}
    if not isinstance(release, GpuOperatorRelease):
        changed["image"] = image or release.image.replace(tag, f"v{version.version}")
    return release._replace(**changed)


def _unknown(known: Mapping[str, _Release], version: str, what: str, field: str, *, can_be_forced: bool) -> str:
    problem = f"{field} of {what} must be one of {', '.join(map(repr, known))}, got {version!r}"
    bare = re.sub(r"^(v|[\^~<>= ]+)|(\.[xX*])+$", "", version)
    inside = [other for other in known if f"{other}.".startswith(f"{bare}.") or bare == "*"]
    if inside:
        return f"{problem} (did you mean {inside[-1]!r}?)"
    oldest = next(iter(known))
    if re.match("[0-9]", bare) and comparable(bare) < comparable(oldest):
        changes = _changes(what, bare, oldest)
        return f"{problem}, which is older than all supported releases{changes}. Use {oldest!r} or later"
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)+", bare):
        return problem + fields.did_you_mean(version, known)
    if not can_be_forced:
        return problem
    line = bare.rpartition(".")[0]
    newest = known[next((other for other in reversed(list(known)) if other.startswith(f"{line}.")), list(known)[-1])]
    is_plain = isinstance(newest, GpuOperatorRelease) or newest.image.endswith(f":v{newest.version}")
    image = "" if is_plain else ", image='...'"
    return f"{problem}. To use it anyway, pass Unverified({bare!r}, like={newest.version!r}{image})"


def _changes(what: str, version: str, oldest: str) -> str:
    """Return a sentence for a message that lists the changes between an old release and the oldest supported release.

    The sentence begins with a period and a space. Return an empty text if there are no known changes.
    """
    known = [row for row in rows("changes") if row["of"] == what]
    later = [row["what"] for row in known if comparable(version) < comparable(row["since"])]
    changes = "; ".join(later) or (f"{oldest} reads the same values" if known else "")
    return f". Release {changes}" if changes else ""

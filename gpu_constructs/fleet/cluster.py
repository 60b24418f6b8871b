"""``Cluster`` and ``ClusterGroup``: what a user declares about the clusters of a fleet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from gpu_constructs.catalog.inventory import GpuInventory, GpuNode
from gpu_constructs.catalog.platforms import DEFAULT_PLATFORM, Kubernetes, Talos
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.kube import fields
from gpu_constructs.kube.side_files import FOLDERS
from gpu_constructs.records import dataclass, field, replace

_REQUIRED: Any = object()


@dataclass(frozen=True, kw_only=True)
class ClusterGroup(fields.Options):
    """Settings for all clusters of a fleet that have certain labels.

    Attributes:
        match: Labels that a cluster must have to belong to the group. Without labels (the default), the group contains
            every cluster.
        platform: Platform of the clusters in the group that declare no platform themselves; None by default.
        values: Data by key, which ``Cluster.value`` returns; none by default. If a cluster declares the same key, the
            value of the cluster takes precedence.

    Raises:
        GpuConstructsError: A value has the wrong type, or Kubernetes would reject a label.
    """

    match: Mapping[str, str] = field(default_factory=dict)
    platform: Talos | Kubernetes | None = None
    values: Mapping[str, Any] = field(default_factory=dict)

    _CHECKS: ClassVar[fields.Checks] = {"match": fields.labels}
    _KEPT: ClassVar[fields.Kept] = {"match": dict, "values": dict}


@dataclass(frozen=True, kw_only=True)
class Cluster(fields.Options):
    """A cluster of a fleet. For each cluster, ``Fleet`` calls a function of the user that adds constructs to an App.

    Attributes:
        name: Name of the cluster and of its folder in ``dist/``. The name must be a DNS label.
        platform: Platform of the cluster, such as ``Talos("1.12")``. You can omit it if a ``ClusterGroup`` of the
            cluster declares a platform. In the function of the user, the platform is never None.
        nodes: GPU nodes of the cluster; none by default.
        rack_watts: A dict from the name of a rack to the power limit of all its boards together, in watts; empty by
            default.
        labels: Labels of the cluster, such as ``{"region": "eu"}``; none by default. A ``ClusterGroup`` selects
            clusters by labels. ``Fleet(totals_by=...)`` selects the labels for sums in the capacity report.
        values: Data for the function of the user, by key; none by default.

    Raises:
        GpuConstructsError: The name is not a DNS label, or the library uses a folder of this name in ``dist/`` for
            other files, such as ``reports``. Also raised if a value has the wrong type, or if Kubernetes would reject a
            label.
    """

    name: str
    if TYPE_CHECKING:
        # The function of the user always gets a platform, so it does not need to check for None.
        platform: Talos | Kubernetes = DEFAULT_PLATFORM
    else:
        platform: Talos | Kubernetes | None = None
    nodes: Sequence[GpuNode] = ()
    rack_watts: Mapping[str, int] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)

    _CHECKS: ClassVar[fields.Checks] = {"name": fields.dns_label, "labels": fields.labels}
    _KEPT: ClassVar[fields.Kept] = {"nodes": tuple, "rack_watts": dict, "labels": dict, "values": dict}

    def _conflicts(self) -> Iterable[fields.Conflict]:
        yield (
            self.name in FOLDERS,
            f"cluster.name must not be a folder for other files ({', '.join(FOLDERS)}), got {self.name!r}. Choose "
            "another name",
        )
        if self.nodes or self.rack_watts:
            # The inventory checks the nodes together, for example that their names differ.
            _ = self.inventory

    @property
    def inventory(self) -> GpuInventory:
        """The GPU nodes of the cluster as an inventory, for capacity plans and checks.

        Raises:
            GpuConstructsError: The cluster declares no nodes.
        """
        if not self.nodes:
            raise GpuConstructsError(f"cluster {self.name!r} has no nodes. Declare GPU nodes with nodes=")
        return GpuInventory(nodes=self.nodes, rack_watts=self.rack_watts)

    def value(self, key: str, default: Any = _REQUIRED) -> Any:
        """Return a value of the cluster or of its groups.

        Args:
            key: Key of the value.
            default: Value to return if neither the cluster nor a group declares the key. If you pass no default, the
                key is required.

        Raises:
            GpuConstructsError: The key is required, and neither the cluster nor a group declares it.
        """
        if key in self.values or default is not _REQUIRED:
            return self.values.get(key, default)
        raise GpuConstructsError(
            f"cluster {self.name!r} has no value {key!r}{fields.did_you_mean(key, list(self.values))}. Add "
            "the key to the values of the cluster or of a group"
        )

    def in_groups(self, groups: Sequence[ClusterGroup]) -> Cluster:
        """Return a copy of the cluster that also has the platform and the values of its groups.

        For each key, a value of the cluster takes precedence, then the value of the last group with this key. The
        method does not merge nested values.

        Args:
            groups: All groups of the fleet, in their order.

        Raises:
            GpuConstructsError: Neither the cluster nor a group declares the platform.
        """
        own: list[ClusterGroup | Cluster] = [group for group in groups if group.match.items() <= self.labels.items()]
        platforms = [one.platform for one in [*own, self] if one.platform is not None]
        if not platforms:
            raise GpuConstructsError(
                f"cluster {self.name!r} must have a platform, got none. Set platform of the cluster or one of its "
                "groups"
            )
        values = {key: value for one in [*own, self] for key, value in one.values.items()}
        return replace(self, platform=platforms[-1], values=values)


Fill = Callable[[Any, Cluster], object]
"""Function of the user that adds the constructs of a cluster to its App."""

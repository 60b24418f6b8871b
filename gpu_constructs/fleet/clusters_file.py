"""Reader of files that declare the clusters of a fleet. Each error message states the line in the file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import yaml

from gpu_constructs.catalog.inventory_file import InventoryFile, check_names
from gpu_constructs.catalog.platforms import Kubernetes, Talos
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.fleet.cluster import Cluster, ClusterGroup
from gpu_constructs.kube import fields
from gpu_constructs.kube.located_yaml import Refused, Value
from gpu_constructs.records import dataclass

_PLATFORMS: Mapping[str, type[Talos | Kubernetes]] = {"talos": Talos, "kubernetes": Kubernetes}


@dataclass(frozen=True, kw_only=True)
class Clusters(fields.Options):
    """The content of a YAML file that declares the clusters of a fleet.

    Attributes:
        clusters: Clusters, as the file declares them.
        groups: Settings for clusters with certain labels, in the order of the file; none by default.
    """

    clusters: Sequence[Cluster]
    groups: Sequence[ClusterGroup] = ()


def read(text: str) -> Clusters:
    """Return the clusters and groups in a YAML text.

    Raises:
        GpuConstructsError: The text is not valid YAML, or declares an invalid cluster or group.
    """
    top = _ClustersFile().root(text)
    if top is None:
        raise GpuConstructsError("text is empty. Write a list of clusters, such as 'clusters: [{name: lab}]'")
    try:
        check_names(top, "clusters", "Choose another name")
        made: Clusters = top.struct(Clusters)
    except Refused as refused:
        raise GpuConstructsError(refused.problem) from None
    return made


def _platform(value: Value) -> Talos | Kubernetes:
    """Return the platform that a YAML value such as ``{talos: "1.13"}`` declares by its name and version."""
    members = value.members(tuple(_PLATFORMS))
    if len(members) != 1:
        raise value.must_be('a platform and its version, such as {talos: "1.13"}')
    [(name, version)] = members.items()
    number: str = version.as_hinted(str)
    return version.at(lambda: _PLATFORMS[name](version=number))


def _plain(value: Value) -> Any:
    """Return a YAML value as plain Python data: dicts, lists and scalars."""
    if isinstance(value.node, yaml.MappingNode):
        return {key: _plain(member) for key, member in value.items().items()}
    if isinstance(value.node, yaml.SequenceNode):
        return [_plain(element) for element in value.elements()]
    return value.scalar()


class _ClustersFile(InventoryFile):
    """The reader of a YAML file with clusters. A file can have platforms, and deeper nesting than an inventory file."""

    deepest = 16
    called = "a file with clusters"
    required: ClassVar[Mapping[str, str]] = {"clusters": ": a list of clusters, each with its name"}
    readers: ClassVar[Mapping[Any, Callable[[Value], Any]]] = {
        **InventoryFile.readers,
        Talos: _platform,
        Kubernetes: _platform,
        Any: _plain,
    }

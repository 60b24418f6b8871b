"""Effects of plain manifests on a cluster, such as the GPU resources that a device plugin advertises.

The constructs of this library declare such effects as ``Provided``. For manifests that the library did not create, this
package derives the declarations. If the manifests do not contain the configuration of a component, such as a device
plugin, the declaration includes all effects that the component can have. So checks report no false problems.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gpu_constructs.cli.seen.files import Files
from gpu_constructs.facts.helm_releases import APPLICATION, HELM_RELEASE
from gpu_constructs.facts.provided import Provided
from gpu_constructs.facts.readable import kind_of, readable


def provided_by(manifests: Sequence[Mapping[str, Any]]) -> list[Provided]:
    """Return the effects of manifests on the cluster, for example the GPU resources that a device plugin advertises.

    Each result declares the effects of one component, such as a device plugin or the GPU Operator.

    Args:
        manifests: Kubernetes objects as plain data.
    """
    return [provided for _, provided in effects(manifests)]


def effects(manifests: Sequence[Mapping[str, Any]]) -> list[tuple[int, Provided]]:
    """Return pairs: the index of a manifest in ``manifests``, and a declaration of its effects on the cluster.

    Args:
        manifests: Kubernetes objects as plain data.
    """
    objects, origins = readable(manifests)
    files = Files(objects)
    return [(origins[index], _neutral(one)) for index, one in _effects(objects, files)]


def _effects(objects: Sequence[Mapping[str, Any]], files: Files) -> Iterator[tuple[int, Provided]]:
    # The imported modules import a large part of this library, and most charts have none of these objects.
    for index, manifest in enumerate(objects):
        kind = kind_of(manifest)
        if kind == ("apps", "DaemonSet"):
            from gpu_constructs.cli.seen import agents

            yield from ((index, one) for one in agents.provided(manifest, files))
        elif kind == ("nvidia.com", "ClusterPolicy"):
            from gpu_constructs.cli.seen import operators

            yield index, operators.of_policy(manifest, files)
        elif kind in (HELM_RELEASE, APPLICATION):
            from gpu_constructs.cli.seen import operators

            yield from ((index, one) for one in operators.of_releases(manifest, files))


def _neutral(provided: Provided) -> Provided:
    """Return a copy of a declaration without the platform and the requirements that depend on the platform.

    Plain manifests do not state the platform of the nodes.
    """
    return replace(provided, platform=None, needs={}, refuses={}, unwanted_node_labels={}, driver_install_dir=None)

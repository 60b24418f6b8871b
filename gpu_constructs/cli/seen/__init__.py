"""Effects of plain manifests on a cluster: the declarations that constructs of this library make for themselves.

A program with a configuration that the manifests do not contain has effects that are not known. The declarations then
allow everything that the program can do, so that checks report no false problems.
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
    """Return what the device plugins, operators and other programs among manifests change in the cluster.

    Each result is a declaration, as a construct of this library would make it: for example, the GPU resources that a
    device plugin advertises on nodes.

    Args:
        manifests: Kubernetes objects as plain data.
    """
    return [provided for _, provided in effects(manifests)]


def effects(manifests: Sequence[Mapping[str, Any]]) -> list[tuple[int, Provided]]:
    """Return pairs: the index of a manifest, and a declaration of what this manifest changes in the cluster.

    Args:
        manifests: Kubernetes objects as plain data.
    """
    objects, origins = readable(manifests)
    files = Files(objects)
    return [(origins[index], _neutral(one)) for index, one in _effects(objects, files)]


def _effects(objects: Sequence[Mapping[str, Any]], files: Files) -> Iterator[tuple[int, Provided]]:
    # The modules with the programs import a large part of this library, and most charts have none of these objects.
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
    """Return a declaration without the content that plain manifests cannot show.

    This content is the platform, and the advice that depends on the platform.
    """
    return replace(provided, platform=None, needs={}, refuses={}, unwanted_node_labels={}, driver_install_dir=None)

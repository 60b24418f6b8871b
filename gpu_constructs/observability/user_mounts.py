"""What a user mounts into an exporter, beside what the exporter itself needs there."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from typing import Any

from gpu_constructs.errors import GpuConstructsError

Objects = Sequence[Mapping[str, Any]]


def beside_own(own: Objects, mounts: Objects, volumes: Objects) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Give the user's mounts and volumes, those renamed whose names the exporter has for its own.

    Args:
        own: The exporter's own mounts.
        mounts: The user's, named after their paths.
        volumes: The user's, one for each mount.

    Raises:
        GpuConstructsError: A path at which the exporter has something.
    """
    places = {mount["mountPath"] for mount in own}
    for mount in mounts:
        # Two slashes in front mean something else to normpath.
        if posixpath.normpath("/" + mount["mountPath"].lstrip("/")) in places:
            raise GpuConstructsError(
                f"volumes must not hold {mount['mountPath']!r}: the exporter has its own there; take another path"
            )
    taken = {mount["name"] for mount in own}
    names: dict[str, str] = {}
    for volume in volumes:
        name = volume["name"]
        while name in taken:
            name += "-x"
        taken.add(name)
        names[volume["name"]] = name
    return (
        [{**mount, "name": names[mount["name"]]} for mount in mounts],
        [{**volume, "name": names[volume["name"]]} for volume in volumes],
    )

"""Conversion of the arguments and volumes of a container in Helm values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.kube import fields, pods
from gpu_constructs.kube.plain_data import shown
from gpu_constructs.kube.volume import Volume, mounts
from gpu_constructs.migration.chart_values import Values
from gpu_constructs.records import dataclass


def arguments(
    read: Values, path: str, words: Sequence[Any], takes_next: Callable[[str, str], bool]
) -> Iterator[tuple[str, str, str | None]]:
    """Yield a tuple for each command-line flag in a list: Helm key of the argument, name of the flag, and value.

    The value is None if the flag has none. At an argument that is not a flag, the function reports a problem and ends.

    Args:
        read: Values of the chart.
        path: Helm key of the list of arguments.
        words: List of arguments.
        takes_next: Function that checks whether the next word is the value of a flag. Its arguments are the flag and
            the next word.
    """
    place = 0
    while place < len(words):
        word, key = words[place], f"{path}[{place}]"
        if not isinstance(word, str) or not word.startswith("-") or not word.strip("-"):
            read.refuse(key, f"must be a flag, got {word!r}: the exporter ignores it and all later arguments")
            return
        flag, is_joined, value = word.lstrip("-").partition("=")
        following = words[place + 1] if place + 1 < len(words) else None
        if not is_joined and isinstance(following, str) and takes_next(flag, following):
            is_joined, value, place = "=", following, place + 1
        yield key, flag, value if is_joined else None
        place += 1


@dataclass(frozen=True)
class Mount:
    """A volume mount of a container in Helm values.

    Attributes:
        key: Key of the mount in the values.
        path: Mount path in the container.
        volume: Name of the volume.
        source: Source of the volume.
        sub_path: Path in the volume to mount; empty (the default) for its root.
        read_only: Whether the mount prevents writes; False by default.
    """

    key: str
    path: str
    volume: str
    source: Mapping[str, Any]
    sub_path: str = ""
    read_only: bool = False


Entries = dict[str, Any]
"""Entries of lists in the Helm values, by key, such as ``volumes[0]``."""


def entries(read: Values, path: str, default: Sequence[Any] = ()) -> Entries:
    """Return the items of a list in the Helm values, as a dict by Helm key, such as ``volumes[0]``.

    Args:
        read: Values of the chart.
        path: Helm key of the list.
        default: List of the chart, if the values do not contain the key; empty by default.
    """
    return {f"{path}[{place}]": entry for place, entry in enumerate(read.get(path, () if path in read else default))}


def mounts_of(read: Values, volumes: Entries, mounted: Entries) -> tuple[list[Mount], dict[str, str]]:
    """Return the volume mounts in Helm values, and a dict from the name of each volume without a mount to its Helm key.

    Args:
        read: Values of the chart.
        volumes: Items of the list of volumes, by Helm key, such as ``volumes[0]``.
        mounted: Items of the list of mounts, by Helm key.
    """
    sources: dict[str, tuple[str, Mapping[str, Any]]] = {}
    for key, entry in volumes.items():
        made = read.attempt(key, partial(_source, entry))
        if made is not None and made[0] in sources:
            read.refuse(key, f"must have a unique name, got {made[0]!r} again")
        elif made is not None:
            sources[made[0]] = key, made[1]
    known = {name: source for name, (_, source) in sources.items()}
    found = [read.attempt(key, partial(_mount, key, entry, known)) for key, entry in mounted.items()]
    used = {mount.volume for mount in found if mount is not None}
    return [mount for mount in found if mount], {n: key for n, (key, _) in sources.items() if n not in used}


def taken_over(read: Values, given: Iterable[Mount], unused: Mapping[str, str]) -> dict[str, Volume]:
    """Return the ``Volume`` objects for the given mounts, by mount path.

    Record a problem in ``read`` for each mount that the library cannot convert, and for each volume without a mount.

    Args:
        read: Values of the chart.
        given: Mounts in the values.
        unused: Helm keys of the volumes without a mount, by name of the volume.
    """
    found: dict[str, Volume] = {}
    for mount in given:
        volume = Volume(source=mount.source, read_only=mount.read_only)
        if mount.sub_path:
            read.refuse(
                mount.key, "is not convertible with subPath, which the kubelet never refreshes. Mount the folder"
            )
        elif mount.path in found:
            read.refuse(mount.key, f"must have a unique path, got {mount.path!r} again")
        elif read.accepts(mount.key, partial(mounts, {mount.path: volume}, shared_memory=None)):
            found[mount.path] = volume
    for key in unused.values():
        read.refuse(key, "has no mount. Leave it out")
    return found


def _source(entry: Any) -> tuple[str, Mapping[str, Any]]:
    fields.of_type("volume", entry, Mapping[str, Any])
    source = {key: value for key, value in entry.items() if key != "name"}
    if isinstance(source.get("hostPath"), str):
        source["hostPath"] = {"path": source["hostPath"]}
    if not isinstance(entry.get("name"), str):
        raise GpuConstructsError(f"a volume must be a mapping with a name, got {shown(entry)}")
    volume = Volume.of_source(source)
    if "hostPath" in source:
        fields.absolute_path("hostPath", volume.source["hostPath"].get("path"))
    return entry["name"], volume.source


def _mount(key: str, entry: Any, sources: Mapping[str, Mapping[str, Any]]) -> Mount:
    fields.of_type("mount", entry, Mapping[str, Any])
    pods.keys_among(("name", "mountPath", "readOnly", "subPath"))("mount", entry)
    name, path = entry.get("name"), entry.get("mountPath")
    if name not in list(sources) or not isinstance(path, str):
        raise GpuConstructsError(
            f"a mount must have a mountPath and the name of one of the extra volumes, got {shown(dict(entry))}"
        )
    fields.absolute_path("mountPath", path)
    fields.of_type("readOnly", entry.get("readOnly", False), bool)
    fields.of_type("subPath", entry.get("subPath", ""), str)
    return Mount(key, path, name, sources[name], entry.get("subPath", ""), entry.get("readOnly", False))

"""Conversion of the command-line arguments and the volumes of a container in Helm values."""

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
    """Yield the Helm key, the name and the value of each command-line flag in a list of arguments.

    For example, the result for ``--port=9400`` is ``("arguments[0]", "port", "9400")``. The value of a flag without a
    value is None. At an argument that is not a flag, the function reports a problem and ends.

    Args:
        read: Helm values, to which the function reports problems.
        path: Helm key of the list of arguments, such as ``arguments``.
        words: Arguments in this list.
        takes_next: Function that checks whether the next argument is the value of a flag. Its arguments are the name of
            the flag and the next argument.
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
        key: Helm key of the mount, such as ``extraVolumeMounts[0]``.
        path: Mount path in the container.
        volume: Name of the volume.
        source: Source of the volume as in a manifest, such as ``{"configMap": …}``.
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
"""Items of a list in the Helm values, by Helm key of the item, such as ``volumes[0]``."""


def entries(read: Values, path: str, default: Sequence[Any] = ()) -> Entries:
    """Return the items of a list in the Helm values, by Helm key of the item, such as ``volumes[0]``.

    Args:
        read: Helm values.
        path: Helm key of the list.
        default: Default list of the Helm chart, which applies if the Helm values do not contain the key.
    """
    return {f"{path}[{place}]": entry for place, entry in enumerate(read.get(path, () if path in read else default))}


def mounts_of(read: Values, volumes: Entries, mounted: Entries) -> tuple[list[Mount], dict[str, str]]:
    """Return the volume mounts in Helm values, and the Helm keys of volumes without a mount, by name of the volume.

    Args:
        read: Helm values, to which the function reports problems.
        volumes: Items of the list of volumes, by Helm key, such as ``volumes[0]``.
        mounted: Items of the list of volume mounts, by Helm key.
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
    """Return a ``Volume`` for each volume mount in Helm values, by mount path.

    Report a problem for each mount that the library cannot convert, and for each volume without a mount.

    Args:
        read: Helm values, to which the function reports problems.
        given: Volume mounts in the Helm values.
        unused: Helm keys of volumes without a mount, by name of the volume.
    """
    found: dict[str, Volume] = {}
    for mount in given:
        volume = Volume(source=mount.source, read_only=mount.read_only)
        if mount.sub_path:
            read.refuse(
                mount.key, "is not convertible with subPath, which the kubelet never refreshes. Mount the whole volume"
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

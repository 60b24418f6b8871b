"""What the pages of recipes have in common: programs that run, commands about what they make."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from test_troubleshooting import CLUSTER_WIDE, read, selects, target

import documents

Manifest = Mapping[str, Any]


def commands(page: Path) -> list[str]:
    """The commands in a page's tables."""
    rows = (line for line in documents.prose(page).splitlines() if line.startswith("| `kubectl "))
    return [row.split("|")[1].strip().strip("`") for row in rows]


def wrong_commands(page: Path, manifests: Sequence[Manifest]) -> list[str]:
    """The commands that are about something that is not there."""
    return [text for text in commands(page) if not _fits(shlex.split(text), manifests)]


def _fits(words: list[str], manifests: Sequence[Manifest]) -> bool:
    there = {(m["kind"], m["metadata"].get("namespace"), m["metadata"]["name"]) for m in manifests}
    if words[1:4] == ["create", "secret", "generic"]:
        wanted = (words[4], words[words.index("-n") + 1])
        return wanted in {(name, m["metadata"]["namespace"]) for m in manifests for name in _secrets(m)}
    call = read(words)
    kind, name = target(call)
    namespace = call.flags.get("namespace")
    if kind in CLUSTER_WIDE.values():
        return (kind, None, name) in there
    if ("Namespace", None, namespace) not in there:
        return False
    if "selector" in call.flags:
        wanted_labels = selects(call.flags["selector"]).items()
        return any(wanted_labels <= m["metadata"].get("labels", {}).items() for m in manifests if m["kind"] != "Pod")
    return name is None or (kind, namespace, name) in there


def _secrets(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if "secretKeyRef" in value:
            yield value["secretKeyRef"]["name"]
        for one in value.values():
            yield from _secrets(one)
    elif isinstance(value, list):
        for one in value:
            yield from _secrets(one)


def container(manifests: Sequence[Manifest]) -> dict[str, Any]:
    """The container of the only Deployment in a list that holds a GPU."""
    (only,) = (
        one
        for m in manifests
        if m["kind"] == "Deployment"
        for one in m["spec"]["template"]["spec"]["containers"]
        if "nvidia.com/gpu" in one["resources"].get("limits", {})
    )
    return dict(only)

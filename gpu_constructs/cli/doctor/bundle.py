"""Folders with the state of a cluster, from ``doctor --bundle``, ``kubectl get`` or must-gather.sh."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gpu_constructs.cli import documents
from gpu_constructs.cli.doctor.must_gather import is_must_gather, logs_of, nodes_of
from gpu_constructs.cli.doctor.snapshot import READABLE, Plan, Snapshot, by_kind, cleaned_log
from gpu_constructs.cli.exits import CommandError, Exit

_INDEX = "bundle.json"
_SCHEMATIC = re.compile(r"^# Schematic ([0-9a-f]{64})", re.MULTILINE)


def read(path: str, namespace: str, plan: Plan | None) -> tuple[Snapshot, Sequence[documents.Broken]]:
    """Return the state of a cluster from a file or a folder, and the parts that the command could not read.

    Args:
        path: Folder or file; ``-`` for standard input.
        namespace: Namespace of the workloads; empty for all namespaces.
        plan: Expected state of the cluster from the option ``--plan``; None without this option.

    Raises:
        CommandError: The path does not exist, or contains nothing that the command can read.
    """
    found, folder = documents.read([path], with_owned=True), Path(path)
    is_gathered = is_must_gather(folder)
    objects = by_kind([*(nodes_of(folder) if is_gathered else ()), *found.manifests])
    index = _index(folder)
    if not objects and not index and not found.broken:
        problem = f"{path} must contain Kubernetes objects, and it contains none"
        raise CommandError(f"{problem}. Pass a folder of doctor --bundle", Exit.COULD_NOT_LOOK)
    logs = logs_of(folder) if is_gathered else _logs(folder)
    index = index or _stated(path, {*objects, *(["logs"] if logs else [])})
    # A bundle has a file only for a kind with objects.
    has_none = [one for one in READABLE if one[0].isupper() and one not in {*objects, *index["unread"]}]
    objects |= {kind: [] for kind in has_none}
    partial, services = index["partial"], index["services"]
    return Snapshot(index["where"], objects, index["unread"], partial, logs, services, namespace, plan), found.broken


def _stated(path: str, has: Collection[str]) -> dict[str, Any]:
    """Return data in the form of ``bundle.json`` for a file or folder that ``doctor --bundle`` did not write.

    In the result, ``where`` is the path. ``unread`` has a reason for each kind without objects, and for missing logs.

    Args:
        path: Path of the file or folder.
        has: Kinds of the objects in the file or folder, and ``logs`` if there are logs.
    """
    unread = {one: _absent(path, one) for one in READABLE if one not in has}
    return {"where": path, "unread": unread, "partial": {}, "services": {}}


def _absent(path: str, name: str) -> str:
    what = "states of Talos services" if name == "services" else name
    return f"{path} contains no {what}"


def _index(folder: Path) -> dict[str, Any]:
    """Return the content of ``bundle.json`` in a folder that ``doctor --bundle`` wrote.

    The keys ``where``, ``unread``, ``partial`` and ``services`` are attributes of ``Snapshot``. Return an empty dict if
    the file does not exist or has another form.
    """
    try:
        read: Any = json.loads((folder / _INDEX).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    texts = ("unread", "partial")
    is_known = isinstance(read, dict) and isinstance(read.get("where"), str)
    is_known = is_known and all(_are_texts(read.get(name)) for name in texts) and isinstance(read.get("services"), dict)
    is_known = is_known and all(map(_are_texts, read["services"].values()))
    return {**read, "where": f"{folder}, a copy of {read['where']}"} if is_known else {}


def _are_texts(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(one, str) for one in value.values())


def _logs(folder: Path) -> dict[tuple[str, str], str]:
    """Return the logs in the files ``logs/<namespace>/<pod>.log`` of a folder, by namespace and name of the pod."""
    files = sorted((folder / "logs").glob("*/*.log")) if folder.is_dir() else []
    return {(file.parent.name, file.stem): _text(file) for file in files}


def _text(file: Path) -> str:
    return cleaned_log(file.read_bytes().decode("utf-8", "replace"))


def write(snapshot: Snapshot, folder: Path) -> None:
    """Write the state of a cluster to a new or empty folder, which ``doctor --from`` can read.

    Raises:
        CommandError: The folder is not empty, or the user has no permission to write to it.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CommandError(f"--bundle must name an empty or new folder, got {folder}. Name another folder")
    index = {
        "version": 1,
        "where": snapshot.where,
        "unread": snapshot.unread,
        "partial": snapshot.partial,
        "services": snapshot.services,
    }
    files = {_INDEX: index, **{f"objects/{kind}.json": _list(one) for kind, one in snapshot.objects.items() if one}}
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, content in files.items():
            _write(folder / name, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
        for (namespace, pod), text in snapshot.logs.items():
            _write(folder / "logs" / namespace / f"{pod}.log", text)
    except OSError as error:
        raise CommandError(f"cannot write {error.filename}: {error.strerror}. Name another folder") from None


def _list(items: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "List", "items": list(items)}


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


# --- the plan ----------------------------------------------------------------------------------------------------


def read_plan(path: str) -> tuple[Plan, Sequence[documents.Broken]]:
    """Return the expected state of a cluster, and the parts of the manifests that the command could not read.

    Args:
        path: Folder with the manifests that ``synth`` wrote for the cluster, such as ``dist/home``. For this folder,
            the function also reads ``dist/reports/home/capacity-plan.json`` and ``dist/machine-config/home/*.yaml``.

    Raises:
        CommandError: The folder does not exist, or the capacity plan is not readable.
    """
    folder = Path(path)
    found = documents.read([path])
    manifests = [one for members in by_kind(found.manifests).values() for one in members]
    beside = folder.resolve().parent
    machine = sorted((beside / "machine-config" / folder.resolve().name).glob("*.yaml"))
    texts = [file.read_text(encoding="utf-8") for file in machine]
    schematics = [one for text in texts for one in _SCHEMATIC.findall(text)]
    labels = {name: value for text in texts for name, value in _node_labels(text)}
    report = beside / "reports" / folder.resolve().name / "capacity-plan.json"
    return Plan(path, manifests, _report(report), labels, schematics, _slots(found.manifests)), found.broken


def _slots(manifests: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return the number of slots that nodes advertise for each GPU, by name of the resource.

    The function ignores device plugins whose configuration is not known. It also ignores device plugins with several
    configurations, because a node label selects the configuration.
    """
    from gpu_constructs.cli.seen import provided_by

    known = (one for one in provided_by(manifests) if len(one.gpu_offers) == 1)
    offers = ((name, sharing) for one in known for name, sharing in one.gpu_resources.items())
    return {name: sharing.resources.get(name, 1) for name, sharing in offers}


def _report(file: Path) -> dict[str, Any] | None:
    try:
        read: Any = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise CommandError(f"cannot read {file}: {error}. Run synth again", Exit.COULD_NOT_LOOK) from None
    return read if isinstance(read, dict) else None


def _node_labels(text: str) -> Iterator[tuple[str, str]]:
    """Yield the names and values of the node labels in a machine configuration of Talos."""
    import yaml

    try:
        given = [one for one in yaml.safe_load_all(text) if isinstance(one, dict)]
    except yaml.YAMLError:
        return
    for one in given:
        machine = one.get("machine")
        labels = machine.get("nodeLabels") if isinstance(machine, dict) else one.get("labels")
        if isinstance(labels, dict):
            yield from ((str(name), str(value)) for name, value in labels.items())

"""Reader of folders that the script must-gather.sh of the GPU Operator writes.

Such a folder contains no Node objects. The reader builds them from the text files ``gpu_nodes.labels`` and
``gpu_nodes.descr``. The latter contains the output of ``kubectl describe nodes``.

Source:
    NVIDIA/gpu-operator@v26.7.0:hack/must-gather.sh
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gpu_constructs.cli.doctor.snapshot import cleaned_log

_LABELS, _DESCRIPTION = "gpu_nodes.labels", "gpu_nodes.descr"
_POD_LOG = "gpu_operand_pod_"
_OF_POD = re.compile(r"^\[pod/([^/]+)/[^\]]+\] ?")
_NAMESPACE = re.compile(r"^\s*namespace:\s*(\S+)", re.MULTILINE)
_SECTION = re.compile(r"^(\S[^:]*):\s*(.*)$")


def is_must_gather(folder: Path) -> bool:
    """Check whether a folder contains a file of the script ``must-gather.sh``, such as ``gpu_nodes.labels``."""
    return any((folder / name).is_file() for name in (_LABELS, _DESCRIPTION, "gpu_operand_pods.yaml"))


def nodes_of(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield Node objects with labels, taints and resources, from the text files in a folder of ``must-gather.sh``."""
    labels = dict(_labels(_text(folder / _LABELS)))
    described = {str(node["metadata"]["name"]): node for node in _described(_text(folder / _DESCRIPTION))}
    for name in {**labels, **described}:
        node = described.get(name) or {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
        has = {**labels.get(name, {}), **(node["metadata"].get("labels") or {})}
        yield {**node, "metadata": {**node["metadata"], "labels": has}}


def _text(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""


def _labels(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield a pair for each node in the file ``gpu_nodes.labels`` of must-gather.sh: name and labels.

    A node has a line with its name, and then a line ``- key=value`` for each label. Empty lines separate nodes.
    """
    for block in filter(None, (part.strip() for part in text.split("\n\n"))):
        name, *rest = block.splitlines()
        pairs = (line.lstrip("- ").partition("=") for line in rest if "=" in line)
        yield name.strip(), {label: value.strip() for label, _, value in pairs}


def _described(text: str) -> Iterator[dict[str, Any]]:
    """Yield a Node object for each node in the output of ``kubectl describe nodes``."""
    for block in re.split(r"^(?=Name:\s)", text, flags=re.MULTILINE):
        sections = _sections(block)
        name = " ".join(sections.get("Name", []))
        if name:
            yield _node(name, sections)


def _sections(block: str) -> dict[str, list[str]]:
    """Return the lines of each section in the output of ``kubectl describe node``, by the title of the section."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in block.splitlines():
        heading = _SECTION.match(line)
        if heading:
            lines = found[heading[1]] = [heading[2]] if heading[2] else []
        elif line.strip():
            lines.append(line.strip())
    return found


def _node(name: str, sections: Mapping[str, list[str]]) -> dict[str, Any]:
    pairs = (line.partition("=") for line in sections.get("Labels", ()) if "=" in line)
    about = dict(_pairs(sections.get("System Info", ())))
    amounts = {part: dict(_pairs(sections.get(part.title(), ()))) for part in ("capacity", "allocatable")}
    rows = [re.split(r"\s{2,}", line) for line in sections.get("Conditions", ())]
    conditions = [dict(zip(_CONDITION, row, strict=False)) for row in rows if len(row) > 1 and row[1] in _STATUSES]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {label: value for label, _, value in pairs}},
        "spec": {
            "taints": [taint for line in sections.get("Taints", ()) if (taint := _taint(line))],
            "unschedulable": sections.get("Unschedulable") == ["true"],
        },
        "status": {**amounts, "conditions": conditions, "nodeInfo": {"osImage": about.get("OS Image", "")}},
    }


_CONDITION = ("type", "status", "lastHeartbeatTime", "lastTransitionTime", "reason", "message")
_STATUSES = ("True", "False", "Unknown")


def _pairs(lines: Any) -> Iterator[tuple[str, str]]:
    for line in lines:
        name, _, value = line.partition(":")
        yield name.strip(), value.strip()


def _taint(line: str) -> dict[str, str] | None:
    rest, colon, effect = line.rpartition(":")
    name, _, value = rest.partition("=")
    return {"key": name, "value": value, "effect": effect} if colon else None


def logs_of(folder: Path) -> dict[tuple[str, str], str]:
    """Return the logs in a folder of ``must-gather.sh``, by pairs of namespace and pod name.

    These are logs of the pods that the GPU Operator creates, such as pods of the device plugin.
    """
    namespace = _NAMESPACE.search(_text(folder / "gpu_operator_pod.yaml"))
    where, found = namespace[1] if namespace else "", dict[tuple[str, str], str]()
    for file in sorted(folder.glob(f"{_POD_LOG}*.log")):
        pod = file.name.removeprefix(_POD_LOG).removesuffix(".log").removesuffix(".previous")
        lines = (_OF_POD.sub("", line) for line in _text(file).splitlines())
        found[where, pod] = "\n".join([found.get((where, pod), ""), cleaned_log("\n".join(lines))])
    return found

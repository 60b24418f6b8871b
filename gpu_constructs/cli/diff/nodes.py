"""Changes of files that ``kubectl apply`` does not read: Talos machine configuration files and Helm values files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

import yaml

from gpu_constructs.cli.diff.comparing import changes_of
from gpu_constructs.cli.diff.model import MISSING, Change, Effect
from gpu_constructs.cli.documents import Broken
from gpu_constructs.kube.tables import table
from gpu_constructs.records import dataclass

FOLDERS = ("machine-config", "helm-values")
"""Folders in the output folder of synth that contain machine configuration files and Helm values files."""
_PATCH = "talosctl --nodes <node-ip> apply-config --file <machine configuration with {file}>"


@dataclass(frozen=True)
class FileDifference:
    """A machine configuration file of Talos nodes or a Helm values file that differs.

    Attributes:
        path: Path of the file relative to the compared folder.
        changes: Settings that differ.
        effects: Effects of the change on nodes or on the Helm release.
        steps: Commands that apply the change to the nodes or to the Helm release, in the order to run them.
    """

    path: str
    changes: Sequence[Change]
    effects: Sequence[Effect]
    steps: Sequence[str]


def of_files(old: Mapping[str, str], new: Mapping[str, str], root: str) -> tuple[list[FileDifference], list[Broken]]:
    """Return the machine configuration files and Helm values files that differ, and the files that are not YAML.

    Args:
        old: Texts of the files before the change, by path of the file relative to the compared folder.
        new: Texts of the files after the change, by path of the file relative to the compared folder.
        root: Path of the folder with the new files. Commands contain file paths that start with it.
    """
    found, broken = [], []
    for path in sorted({*old, *new}):
        try:
            changes = list(changes_of(_settings(old.get(path, "")), _settings(new.get(path, ""))))
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            problem = f"is not YAML: {getattr(error, 'problem', None) or type(error).__name__}. Correct it"
            broken.append(Broken(path, mark.line + 1 if mark else 1, problem))
            continue
        if changes and path not in new:
            text = "the file no longer exists. The nodes and the Helm releases keep its settings until you remove them"
            found.append(FileDifference(path, (), [Effect("node", text)], ()))
        elif changes:
            file = str(PurePosixPath(root, path))
            found.append(_helm(path, file, changes) if FOLDERS[1] in path else _machine(path, file, changes))
    return found, broken


def _settings(text: str) -> dict[str, Any]:
    """Return the settings in all YAML documents of a machine configuration file or Helm values file as one dict.

    A document with the key ``kind`` and without the key ``machine`` is at ``[kind][name]`` of the dict. If it has no
    key ``name``, the name is empty, as in ``["KubeletConfig"][""]``. The settings of all remaining documents are at the
    top level.
    """
    found: dict[str, Any] = {}
    for document in yaml.load_all(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        if isinstance(document, dict) and "kind" in document and "machine" not in document:
            kind = found.setdefault(str(document["kind"]), {})
            kind[str(document.get("name", ""))] = document
        elif isinstance(document, dict):
            found.update({str(key): value for key, value in document.items()})
    return found


def _helm(path: str, file: str, changes: Sequence[Change]) -> FileDifference:
    release = PurePosixPath(path).name.split(".")[0]
    effect = Effect("node", "helm upgrade applies these values, and the Helm chart decides which pods restart")
    step = f"helm upgrade {release} <chart> --namespace <namespace> --version <version> --values {file}"
    return FileDifference(path, changes, [effect], [step])


def _machine(path: str, file: str, changes: Sequence[Change]) -> FileDifference:
    effects: dict[str, Effect] = {}
    steps: dict[str, None] = {}
    for row, change in _matched(changes):
        effects[row["text"]] = Effect("node", row["text"])
        value = "<image>" if change.new is MISSING else change.new
        steps.update(dict.fromkeys(step.format(file=file, value=value) for step in row.get("steps", ())))
    is_schematic = path.endswith(".schematic.yaml")
    patch = () if is_schematic else (_PATCH.format(file=file),)
    upgrades = [step for step in steps if " upgrade " in step or step.startswith("curl")]
    later = [step for step in steps if step not in upgrades]
    return FileDifference(path, changes, list(effects.values()), [*upgrades, *patch, *later])


def _matched(changes: Sequence[Change]) -> Iterator[tuple[Mapping[str, Any], Change]]:
    """Yield a pair for each changed setting: the first row of the table ``nodes.yaml`` that applies, and the change.

    A row states what happens to a Talos node if the setting changes. The pairs are in the order of the rows.
    """
    rows = table("gpu_constructs.cli.diff", "nodes.yaml")
    pairs = [
        (number, change)
        for change in changes
        for place in (".".join(step for step in change.path if step),)
        for number in [next(i for i, row in enumerate(rows) if any(place.startswith(one) for one in row["at"]))]
    ]
    yield from ((rows[number], change) for number, change in sorted(pairs, key=lambda one: one[0]))

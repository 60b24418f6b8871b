"""Names of namespaces behind a prefix, so that a shared cluster tells the suite's namespaces from those of others.

Tests say ``ollama``; with the prefix ``e2e-`` the cluster has ``e2e-ollama``.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

_OF_THE_CLUSTER = ("kube-system", "kube-public", "kube-node-lease")
_FLAGS = ("-n", "--namespace")
_LABEL = "kubernetes.io/metadata.name"
# What the admission configuration of Talos means for a namespace without labels.
_TALOS_LEVELS = {
    "pod-security.kubernetes.io/audit": "restricted",
    "pod-security.kubernetes.io/enforce": "baseline",
    "pod-security.kubernetes.io/warn": "restricted",
}


class Namespaces:
    """A prefix, and where it belongs.

    Attributes:
        prefix: The prefix; an empty one changes nothing.
    """

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix

    def outward(self, name: str) -> str:
        """Return the name that the cluster knows a namespace by."""
        is_kept = name in _OF_THE_CLUSTER or name.startswith(self.prefix)
        return name if not self.prefix or is_kept else self.prefix + name

    def in_manifest(self, value: Any) -> Any:
        """Return a manifest, or a list of manifests, with the names that the cluster knows."""
        if not self.prefix or not isinstance(value, dict):
            return value
        if "items" in value:
            return {**value, "items": [self.in_manifest(item) for item in value["items"]]}
        changed = self._renamed(value)
        if changed.get("kind") == "Namespace":
            metadata = changed["metadata"]
            labels = {**_TALOS_LEVELS, **metadata.get("labels", {})}
            changed["metadata"] = {**metadata, "name": self.outward(metadata["name"]), "labels": labels}
        return changed

    def inward(self, found: dict[str, Any]) -> dict[str, Any]:
        """Return what the cluster answered with the names that tests know."""
        if not self.prefix:
            return found
        for one in (found, *(found.get("items") or ())):
            metadata = one.get("metadata") or {}
            if "namespace" in metadata:
                metadata["namespace"] = metadata["namespace"].removeprefix(self.prefix)
        return found

    def manifests_in(self, args: Sequence[str], folder: Path) -> list[dict[str, Any]]:
        """Return the manifests in the files that ``kubectl apply -f`` or ``kubectl create -f`` reads."""
        if not self.prefix or not {"apply", "create"} & set(args):
            return []
        named = [folder / arg for before, arg in pairwise(args) if before == "-f" and arg != "-"]
        paths = [path for one in named for path in (one.glob("*") if one.is_dir() else [one]) if path.is_file()]
        return [one for path in paths for one in yaml.safe_load_all(path.read_text()) if one is not None]

    def in_arguments(self, args: Sequence[str], folder: Path, copies: Path) -> list[str]:
        """Return the arguments of kubectl with the names that the cluster knows.

        Args:
            args: The arguments.
            folder: Folder that relative paths start from.
            copies: Folder for changed copies of the files that ``-f`` names.
        """
        if not self.prefix:
            return list(args)
        changed, before = [], ""
        for arg in args:
            if before in _FLAGS:
                changed.append(self.outward(arg))
            elif before == "-f" and arg != "-":
                changed.append(str(self._copy(folder / arg, copies)))
            elif arg.startswith("--namespace="):
                changed.append(f"--namespace={self.outward(arg.partition('=')[2])}")
            else:
                changed.append(arg)
            before = arg
        return changed

    def in_shell(self, line: str, folder: Path, copies: Path) -> str:
        """Return a line of shell with the names that the cluster knows."""
        if not self.prefix:
            return line
        line = re.sub(r"(?<= -n )[\w-]+|(?<= namespace )[\w-]+", lambda name: self.outward(name[0]), line)
        return re.sub(r"(?<= -f )\S+", lambda path: str(self._copy(folder / path[0], copies)), line)

    def in_text(self, text: str) -> str:
        """Return the text of a YAML file with the names that the cluster knows."""
        if not self.prefix:
            return text
        documents = [self.in_manifest(one) for one in yaml.safe_load_all(text) if one is not None]
        return yaml.safe_dump_all(documents)

    def _renamed(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._renamed(one) for one in value]
        if not isinstance(value, dict):
            return value
        return {
            key: self.outward(one) if key in ("namespace", _LABEL) and isinstance(one, str) else self._renamed(one)
            for key, one in value.items()
        }

    def _copy(self, source: Path, copies: Path) -> Path:
        target = copies / source.resolve().relative_to("/")
        paths = sorted(source.glob("*")) if source.is_dir() else [source]
        shutil.rmtree(target, ignore_errors=True)
        for path in paths:
            if path.is_file():
                copy = target / path.name if source.is_dir() else target
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_text(self.in_text(path.read_text()))
        return target

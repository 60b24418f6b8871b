"""Files for people and other tools, written beside the manifests where kubectl never reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

Folder = Literal["helm-values", "machine-config"]

FOLDERS: dict[Folder, str] = {"helm-values": ".values.yaml", "machine-config": ".yaml"}
"""The folders of dist/ that hold them, with what their names end in."""


@dataclass(frozen=True, kw_only=True)
class SideFile:
    """One file.

    Attributes:
        folder: Where it goes: ``dist/<folder>/``, below that the cluster's folder where there are several.
        stem: Its name without the ending that the folder gives.
        text: What it holds, without the first line that says it is generated.
    """

    folder: Folder
    stem: str
    text: str


@runtime_checkable
class WritesSideFiles(Protocol):
    """A construct that has files to write."""

    def side_files(self) -> Sequence[SideFile]:
        """Give the files."""

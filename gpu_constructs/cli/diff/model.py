"""The result of a comparison: pairs of objects, the fields that differ, and the consequences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from gpu_constructs.cli.documents import Broken, Document
from gpu_constructs.records import dataclass, field

Topic = Literal["immutable", "restart", "capacity", "broadening", "narrowing", "node", "note"]
TOPICS: Mapping[Topic, str] = {
    "immutable": "The API server refuses the change",
    "restart": "Pods restart or stop",
    "capacity": "GPUs, slots or the room for pods change",
    "broadening": "Rights or access grow",
    "narrowing": "Rights or access shrink",
    "node": "A node needs an action that no apply performs",
    "note": "The object changes",
}
"""Topics of consequences in the order in which the command shows them, each with a title."""

Action = Literal["created", "removed", "replaced", "changed", "moved", "same"]

MISSING: Any = type("Missing", (), {"__repr__": lambda _: "(not set)"})()
"""The value of a field that an object does not have."""

Path = tuple[str, ...]


@dataclass(frozen=True)
class Change:
    """A field whose value differs.

    Attributes:
        path: Keys from the root of the object. An item of a list is a key in brackets, such as ``[ollama]``.
        old: Value before the change; ``MISSING`` if the object did not have the field.
        new: Value after the change; ``MISSING`` if the object no longer has the field.
    """

    path: Path
    old: Any
    new: Any

    @property
    def place(self) -> str:
        """Path as text, such as ``spec.template.spec.containers[ollama].image``."""
        return ".".join(self.path).replace(".[", "[")

    def is_below(self, *path: str) -> bool:
        """Check whether the changed field is at the given path of the object, or below it.

        Args:
            path: Keys from the root of the object, such as ``"spec", "template"``.
        """
        return self.path[: len(path)] == path


@dataclass(frozen=True)
class Effect:
    """A consequence of the difference.

    Attributes:
        topic: What the consequence is about, such as ``restart`` or ``capacity``: a key of ``TOPICS``.
        text: Sentence without a period that states the consequence.
    """

    topic: Topic
    text: str


@dataclass(frozen=True)
class Difference:
    """An object before and after the change, and the consequences of the change.

    Attributes:
        action: What happens to the object.
        old: Object before the change; None if it is created.
        new: Object after the change; None if the change removes it.
        changes: Fields that differ.
        effects: Consequences; the most important comes first.
    """

    action: Action
    old: Document | None
    new: Document | None
    changes: Sequence[Change] = ()
    effects: Sequence[Effect] = field(default_factory=list)

    @property
    def document(self) -> Document:
        """Object after the change, or before it if the change removes the object."""
        found = self.new or self.old
        assert found is not None
        return found

    @property
    def kind(self) -> str:
        """Kind of the object."""
        return str(self.document.manifest["kind"])

    def has(self, *topics: Topic) -> bool:
        """Check whether the change has a consequence with one of the given topics, such as ``restart``."""
        return any(effect.topic in topics for effect in self.effects)


@dataclass(frozen=True)
class Side:
    """One of the two versions that the command compares, for example the content of a folder.

    Attributes:
        objects: Kubernetes objects.
        texts: Texts of the files for nodes and for Helm, by their path below the folder.
        root: Path of the folder; empty if the version does not come from a folder.
    """

    objects: Sequence[Document]
    texts: Mapping[str, str] = field(default_factory=dict)
    root: str = ""

    def path_of(self, document: Document) -> str:
        """Return the path of the file that contains an object, relative to the compared folder.

        Return an empty text if this version does not come from a folder.
        """
        return document.file.removeprefix(self.root).lstrip("/") if self.root else ""

    def manifests(self) -> list[dict[str, Any]]:
        """Return all objects as plain data."""
        return [dict(one.manifest) for one in self.objects]


Key = tuple[str, str, str, str]
"""API group, kind, namespace and name of an object."""


@dataclass(frozen=True)
class Sides:
    """The two versions that the command compares, and what it could not read.

    Attributes:
        old: Version before the change.
        new: Version after the change.
        broken: Parts of the input that the command could not read.
        how: Sentence that states what the command compares; empty for files.
        refusals: Messages of the API server in a dry run, by API group, kind, namespace and name of the refused object.
            None without a dry run: the table of immutable fields then predicts the refusals.
        notes: Further sentences about objects, by API group, kind, namespace and name.
    """

    old: Side
    new: Side
    broken: Sequence[Broken] = ()
    how: str = ""
    refusals: Mapping[Key, str] | None = None
    notes: Mapping[Key, str] = field(default_factory=dict)

"""Data classes of the command ``diff``: old and new objects, the fields that differ, and the effects of the change."""

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
    "node": "A node or a Helm release needs a command other than kubectl apply",
    "note": "The object changes",
}
"""Topics of effects in the order in which the command shows them, each with a title."""

Action = Literal["created", "removed", "replaced", "changed", "moved", "same"]

MISSING: Any = type("Missing", (), {"__repr__": lambda _: "(not set)"})()
"""The value of a field that an object does not have."""

Path = tuple[str, ...]


@dataclass(frozen=True)
class Change:
    """A field whose value differs between the old and the new object.

    Attributes:
        path: Keys from the root of the object to the field. Brackets enclose the key of a list item: ``[ollama]``.
        old: Value before the change; ``MISSING`` if the object did not have the field.
        new: Value after the change; ``MISSING`` if the object no longer has the field.
    """

    path: Path
    old: Any
    new: Any

    @property
    def place(self) -> str:
        """Path of the field as text, such as ``spec.template.spec.containers[ollama].image``."""
        return ".".join(self.path).replace(".[", "[")

    def is_below(self, *path: str) -> bool:
        """Check whether the changed field is at the given path of the object, or below it.

        Args:
            path: Keys from the root of the object, such as ``"spec", "template"``.
        """
        return self.path[: len(path)] == path


@dataclass(frozen=True)
class Effect:
    """An effect of the change from old to new objects, such as a restart of pods.

    Attributes:
        topic: Topic of the effect, such as ``restart`` or ``capacity``: a key of ``TOPICS``.
        text: Sentence that states the effect, without a period at the end.
    """

    topic: Topic
    text: str


@dataclass(frozen=True)
class Difference:
    """An object before and after the change, and the effects of the change.

    Attributes:
        action: What the change does to the object, such as ``created``. ``replaced``: the new object has another name.
            ``moved``: the same object, but in another file. ``same``: the same object in the same file.
        old: Object before the change; None if the change creates the object.
        new: Object after the change; None if the change removes the object.
        changes: Fields that differ.
        effects: Effects of the change; the most important effect comes first.
    """

    action: Action
    old: Document | None
    new: Document | None
    changes: Sequence[Change] = ()
    effects: Sequence[Effect] = field(default_factory=list)

    @property
    def document(self) -> Document:
        """New object, or the old object if the change removes the object."""
        found = self.new or self.old
        assert found is not None
        return found

    @property
    def kind(self) -> str:
        """Kind of the object."""
        return str(self.document.manifest["kind"])

    def has(self, *topics: Topic) -> bool:
        """Check whether the change has an effect with one of the given topics, such as ``restart``."""
        return any(effect.topic in topics for effect in self.effects)


@dataclass(frozen=True)
class Side:
    """The old or the new objects of a comparison, for example all manifests in a folder.

    Attributes:
        objects: Kubernetes objects.
        texts: Texts of machine configuration files and Helm values files, by path of the file relative to the folder.
        root: Path of the folder; empty if the objects do not come from a folder.
    """

    objects: Sequence[Document]
    texts: Mapping[str, str] = field(default_factory=dict)
    root: str = ""

    def path_of(self, document: Document) -> str:
        """Return the path of the manifest file that contains an object, relative to the compared folder.

        Return an empty text if the objects do not come from a folder.
        """
        return document.file.removeprefix(self.root).lstrip("/") if self.root else ""

    def manifests(self) -> list[dict[str, Any]]:
        """Return all objects as plain data."""
        return [dict(one.manifest) for one in self.objects]


Key = tuple[str, str, str, str]
"""API group, kind, namespace and name of an object."""


@dataclass(frozen=True)
class Sides:
    """The old and the new objects that the command compares, and the parts of the input that it could not read.

    Attributes:
        old: Objects before the change.
        new: Objects after the change.
        broken: Parts of the input that the command could not read.
        how: Sentence that states how the command compares a cluster with manifests; empty without a cluster.
        refusals: Messages of the API server in a dry run, by API group, kind, namespace and name of the refused object.
            None without a dry run: the command then predicts refusals from the table ``immutable.yaml``.
        notes: Notes about objects, by API group, kind, namespace and name. A note states, for example, that a Helm
            release owns the object.
    """

    old: Side
    new: Side
    broken: Sequence[Broken] = ()
    how: str = ""
    refusals: Mapping[Key, str] | None = None
    notes: Mapping[Key, str] = field(default_factory=dict)

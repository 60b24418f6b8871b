"""Pairs each old object with its new version, and compares the two objects of a pair field by field."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpu_constructs.cli.diff.model import MISSING, Change, Key, Path, Side
from gpu_constructs.cli.diff.stored import by_key, stored
from gpu_constructs.cli.documents import Broken, Document
from gpu_constructs.kube import kinds
from gpu_constructs.kube.plain_data import at
from gpu_constructs.records import dataclass

_GUESSED = ("name", "alert")
"""Keys that identify the items of lists in custom resources."""
_HASH = re.compile(r"-[0-9a-f]{8,64}$")


def changes_of(old: Any, new: Any, path: Path = ()) -> Iterator[Change]:
    """Yield the fields that differ between two values.

    If the items of a list have a key, such as the ``name`` of containers, the function compares items with equal keys.
    Otherwise, the whole list is one field.

    Args:
        old: Value before the change, in the form in which the API server stores it.
        new: Value after the change, in the same form.
        path: Path of the field that contains the values, such as ``("spec", "replicas")``; empty for whole objects.
    """
    if old == new and type(old) is type(new):
        return
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in [*old, *(key for key in new if key not in old)]:
            yield from changes_of(old.get(key, MISSING), new.get(key, MISSING), (*path, str(key)))
        return
    before, after = (by_key(path[-1], one, _GUESSED) if isinstance(one, list) and path else None for one in (old, new))
    if before is None or after is None:
        yield Change(path, old, new)
    else:
        yield from _changes_of_items(before, after, path)


def _changes_of_items(before: Mapping[str, Any], after: Mapping[str, Any], path: Path) -> Iterator[Change]:
    """Yield the fields that differ between the items of two lists, and a change of the order of the items.

    Args:
        before: Items of the old list, by the key that identifies each item, such as the name of a container.
        after: Items of the new list, by the same keys.
        path: Path of the list in the object.
    """
    for key in [*before, *(key for key in after if key not in before)]:
        yield from changes_of(before.get(key, MISSING), after.get(key, MISSING), (*path, f"[{key}]"))
    if [key for key in before if key in after] != [key for key in after if key in before]:
        yield Change((*path, "(order)"), list(before), list(after))


@dataclass(frozen=True)
class Pair:
    """An object before and after the change.

    Attributes:
        old: Object before the change; None if the change creates the object.
        new: Object after the change; None if the change removes the object.
        before: Object before the change as the API server stores it; empty if the change creates the object.
        after: Object after the change as the API server stores it; empty if the change removes the object.
    """

    old: Document | None
    new: Document | None
    before: Mapping[str, Any]
    after: Mapping[str, Any]

    @property
    def document(self) -> Document:
        """New object, or the old object if the change removes the object."""
        found = self.new or self.old
        assert found is not None
        return found


def readable(objects: Sequence[Document]) -> tuple[dict[Key, tuple[Document, dict[str, Any]]], list[Broken]]:
    """Return the objects that the command can compare, and the problems that it finds in the given objects.

    Returns:
        First, the objects by API group, kind, namespace and name. Each value is a pair: the object with its file, and
        the object as the API server stores it. Second, a problem for each object with a value of a wrong type, and for
        each object with the same key as an earlier object.
    """
    found: dict[Key, tuple[Document, dict[str, Any]]] = {}
    broken = []
    for document in objects:
        key = kinds.identity_of(document.manifest)
        if key in found:
            first = found[key][0]
            problem = f"{document.name} is also in {first.file}:{first.line}. Remove one of the two objects"
            broken.append(Broken(document.file, document.line, problem))
        try:
            found[key] = document, stored(document.manifest)
        except (AttributeError, KeyError, TypeError, ValueError, ArithmeticError) as error:
            problem = f"{document.name} has a value of a wrong type ({error}). Correct it"
            broken.append(Broken(document.file, document.line, problem))
    return found, broken


def pairs_of(old: Side, new: Side) -> tuple[list[Pair], list[Broken]]:
    """Return a pair for each object (before and after the change), and the problems with unreadable objects.

    A removed object and the new object that replaces it under another name form one pair. The pairs are in the order of
    the new objects. Pairs of removed objects come last.
    """
    before, broken = readable(old.objects)
    after, more = readable(new.objects)
    gone = {key: one for key, one in before.items() if key not in after}
    pairs = []
    for key, (document, manifest) in after.items():
        former = before.get(key) or _replaced(key, manifest, gone)
        pairs.append(Pair(former and former[0], document, former[1] if former else {}, manifest))
    pairs += [Pair(document, None, manifest, {}) for document, manifest in gone.values()]
    return pairs, [*broken, *more]


def _replaced(
    key: Key, manifest: Mapping[str, Any], gone: dict[Key, tuple[Document, dict[str, Any]]]
) -> tuple[Document, dict[str, Any]] | None:
    """Return the removed object that a new object replaces under another name.

    The function deletes the returned object from ``gone``. It returns None if no removed object matches the new object,
    or if several match.

    Args:
        key: API group, kind, namespace and name of the new object.
        manifest: New object as the API server stores it.
        gone: Removed objects by API group, kind, namespace and name. Each value is a pair: the object with its file,
            and the object as the API server stores it.
    """
    similar = [old for old in gone if old[:2] == key[:2] and _is_the_same(old, gone[old][1], key, manifest)]
    return gone.pop(similar[0]) if len(similar) == 1 else None


def _is_the_same(old_key: Key, old: Mapping[str, Any], key: Key, new: Mapping[str, Any]) -> bool:
    """Check whether an old and a new object are the same object under another name or in another namespace.

    Workloads are the same if they are in the same namespace, and their selectors or their pod specs are equal. For
    other objects, one of two conditions is enough. First: they are in the same namespace, and their names differ only
    in a hash at the end, such as ``config-1a2b3c4d``. Second: all fields except ``metadata`` are equal, and the objects
    have the same name or the same namespace.

    Args:
        old_key: API group, kind, namespace and name of the old object.
        old: Old object as the API server stores it.
        key: API group, kind, namespace and name of the new object.
        new: New object as the API server stores it.
    """
    if at(new, "spec.template") is not None and at(old, "spec.selector") is not None:
        same = [at(old, path) == at(new, path) for path in ("spec.selector", "spec.template.spec")]
        return old_key[2] == key[2] and any(same)
    stems = [_HASH.sub("", one[3]) for one in (old_key, key)]
    if old_key[2] == key[2] and stems[0] == stems[1]:
        return True
    rest = [{name: value for name, value in one.items() if name != "metadata"} for one in (old, new)]
    return rest[0] == rest[1] and len(rest[0]) > 2 and (old_key[3] == key[3] or old_key[2] == key[2])

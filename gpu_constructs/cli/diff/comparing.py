"""The comparison of two objects field by field, and the pairs of objects of two sides."""

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

    If the items of a list have a key, the function compares them by key.

    Args:
        old: Value before the change, in the form in which the API server stores it.
        new: Value after the change, in the same form.
        path: Path of the values in the object.
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
    """Yield the fields that differ between the items of two lists, by the keys of the items."""
    for key in [*before, *(key for key in after if key not in before)]:
        yield from changes_of(before.get(key, MISSING), after.get(key, MISSING), (*path, f"[{key}]"))
    if [key for key in before if key in after] != [key for key in after if key in before]:
        yield Change((*path, "(order)"), list(before), list(after))


@dataclass(frozen=True)
class Pair:
    """An object before and after the change.

    Attributes:
        old: Object before the change; None if it is created.
        new: Object after the change; None if the change removes it.
        before: Object before the change as the API server stores it; empty if it is created.
        after: Object after the change as the API server stores it; empty if the change removes it.
    """

    old: Document | None
    new: Document | None
    before: Mapping[str, Any]
    after: Mapping[str, Any]

    @property
    def document(self) -> Document:
        """Object after the change, or before it if the change removes the object."""
        found = self.new or self.old
        assert found is not None
        return found


def readable(objects: Sequence[Document]) -> tuple[dict[Key, tuple[Document, dict[str, Any]]], list[Broken]]:
    """Return two results: the comparable objects, and the problems of the others.

    The first is a dict. Its key is API group, kind, namespace and name. Its value is a pair: the document as read, and
    the object as the API server stores it. The second lists the objects that have a value of a wrong type, or that have
    the same key as a later object.
    """
    found: dict[Key, tuple[Document, dict[str, Any]]] = {}
    broken = []
    for document in objects:
        key = kinds.identity_of(document.manifest)
        if key in found:
            first = found[key][0]
            problem = f"{document.name} is also in {first.file}:{first.line}. Leave one of them out"
            broken.append(Broken(document.file, document.line, problem))
        try:
            found[key] = document, stored(document.manifest)
        except (AttributeError, KeyError, TypeError, ValueError, ArithmeticError) as error:
            problem = f"{document.name} has a value of a wrong type ({error}). Correct it"
            broken.append(Broken(document.file, document.line, problem))
    return found, broken


def pairs_of(old: Side, new: Side) -> tuple[list[Pair], list[Broken]]:
    """Return two results: each object before and after the change, and the problems of objects that are not comparable.

    An object that disappears and a new object that replaces it form one pair. The pairs are in the order of the new
    objects. Removed objects come last.
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
    """Return the removed object that a new object replaces, and delete it from ``gone``.

    Return None if the new object replaces none, or if it can replace several.

    Args:
        key: API group, kind, namespace and name of the new object.
        manifest: New object.
        gone: Removed objects by their API group, kind, namespace and name.
    """
    similar = [old for old in gone if old[:2] == key[:2] and _is_the_same(old, gone[old][1], key, manifest)]
    return gone.pop(similar[0]) if len(similar) == 1 else None


def _is_the_same(old_key: Key, old: Mapping[str, Any], key: Key, new: Mapping[str, Any]) -> bool:
    """Check whether an old and a new object are the same object under another name or in another namespace.

    They are the same if they have equal selectors or pods, or equal names apart from a hash at the end, or equal
    content. Each key contains API group, kind, namespace and name.
    """
    if at(new, "spec.template") is not None and at(old, "spec.selector") is not None:
        same = [at(old, path) == at(new, path) for path in ("spec.selector", "spec.template.spec")]
        return old_key[2] == key[2] and any(same)
    stems = [_HASH.sub("", one[3]) for one in (old_key, key)]
    if old_key[2] == key[2] and stems[0] == stems[1]:
        return True
    rest = [{name: value for name, value in one.items() if name != "metadata"} for one in (old, new)]
    return rest[0] == rest[1] and len(rest[0]) > 2 and (old_key[3] == key[3] or old_key[2] == key[2])

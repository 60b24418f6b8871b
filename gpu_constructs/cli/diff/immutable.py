"""Fields that the API server refuses to change, and the effects of deleting an object of each kind."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from gpu_constructs.cli.diff.comparing import Pair, changes_of
from gpu_constructs.cli.diff.stored import mappings_at
from gpu_constructs.kube import fields, kinds
from gpu_constructs.kube.plain_data import at
from gpu_constructs.kube.tables import table

_PACKAGE = "gpu_constructs.cli.diff"
STRATEGY = "spec.strategy.type"
"""Field of a Deployment that changes to Recreate only after a patch, which removes the default of rollingUpdate."""
_REQUEST = "spec.resources.requests.storage"


def refused_fields(pair: Pair) -> list[str]:
    """Return the paths of the changed fields that the API server refuses to change, such as ``spec.selector``."""
    if not pair.before or not pair.after:
        return []
    group, kind, *_ = kinds.identity_of(pair.after)
    rows = [row for row in table(_PACKAGE, "immutable.yaml") if row["group"] == group and kind in row["kinds"]]
    found = [place for row in rows for place in _refused_by(row, pair)]
    if kind == "PersistentVolumeClaim" and _storage(pair.after) < _storage(pair.before):
        found.append(_REQUEST)
    return list(dict.fromkeys(found))


def _refused_by(row: Mapping[str, Any], pair: Pair) -> Iterator[str]:
    """Yield the paths of the changed fields that the API server refuses to change, according to one row of a table.

    Args:
        row: Row of the table ``immutable.yaml``, which lists fields that cannot change.
        pair: Object before and after the change.
    """
    path = row["path"]
    old, new = (_compared(row, one) for one in (pair.before, pair.after))
    if not _applies(row, pair) or (row.get("if_given") and new is None) or new != row.get("to", new):
        return
    for name in row.get("additions", ()):
        given = at(new, name, [])
        if all(one in given for one in at(old, name, [])):
            old, new = ({**side, name: given} for side in (old, new))
    for change in changes_of({"": old}, {"": new}):
        yield ".".join(filter(None, (path, change.place[1:]))).replace(".[", "[")


def _applies(row: Mapping[str, Any], pair: Pair) -> bool:
    """Check whether the change of an object meets the conditions ``if`` and ``unless_set`` of a row.

    ``if`` contains values that the old object must have, including defaults of the API server. ``unless_set`` lists
    fields of which the manifest of the old object must lack at least one. A row without conditions always applies.

    Args:
        row: Row of the table ``immutable.yaml``, which lists fields that cannot change.
        pair: Object before and after the change.
    """
    given = pair.old.manifest if pair.old else {}
    unset = [place for place in row.get("unless_set", ()) if at(given, place) is None]
    holds = all(at(pair.before, place) == value for place, value in row.get("if", {}).items())
    return holds and (bool(unset) or "unless_set" not in row)


def _compared(row: Mapping[str, Any], manifest: Mapping[str, Any]) -> Any:
    """Return the value of an object at the path that ``row`` states, without the fields that the user can change.

    Args:
        row: Row of the table ``immutable.yaml``. Its column ``except`` lists the fields that the user can change.
        manifest: Object before or after the change.
    """
    value = copy.deepcopy(at(manifest, row["path"]))
    for path in row.get("except", ()):
        parent, _, name = path.rpartition(".")
        for holder in mappings_at(value, parent):
            holder.pop(name, None)
        if parent and at(value, parent) == {}:
            above, _, last = parent.rpartition(".")
            next(mappings_at(value, above)).pop(last)
    return value


def _storage(manifest: Mapping[str, Any]) -> Any:
    given = at(manifest, _REQUEST)
    return fields.amount(given) if isinstance(given, str) else 0


def is_growing(pair: Pair) -> bool:
    """Check whether a PersistentVolumeClaim requests more storage than before."""
    is_claim = pair.after.get("kind") == pair.before.get("kind") == "PersistentVolumeClaim"
    return is_claim and _storage(pair.after) > _storage(pair.before)


def effect_of_deletion(kind: str) -> str:
    """Return the effect of deleting an object of a kind, such as ``stops all its pods`` for a Deployment.

    Return an empty text if the deletion removes only the object.
    """
    return str(table(_PACKAGE, "kinds.yaml").get(kind, ""))

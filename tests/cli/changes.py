"""The changes of ``tables/changes.yaml``, for the tests of the command and for those against a real control plane."""

import copy
from pathlib import Path

import pytest
import yaml

TABLE = yaml.safe_load((Path(__file__).parent / "tables" / "changes.yaml").read_text(encoding="utf-8"))


def changed(manifest, changes):
    """Return a copy of a manifest with values at dotted paths. None removes the field."""
    made = copy.deepcopy(manifest)
    for path, value in changes.items():
        *parents, last = path.split(".") if path not in made else [path]
        holder = made
        for key in parents:
            holder = holder[int(key)] if isinstance(holder, list) else holder.setdefault(key, {})
        if value is None:
            del holder[last]
        else:
            holder[last] = value
    return made


def changes():
    """Return the rows of the table as parameters of a test: the row, the object before, and the object after."""
    rows = [(row, TABLE["objects"][row["of"]]) for row in TABLE["changes"]]
    return [pytest.param(row, old, changed(old, row["change"]), id=row["about"]) for row, old in rows]

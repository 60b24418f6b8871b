"""Tables of facts that lie as YAML and CSV files beside the modules that read them."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any

import yaml

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@cache
def table(package: str, name: str) -> Any:
    """Return the content of a YAML file of a package; callers must not change it."""
    text = (resources.files(package) / name).read_text(encoding="utf-8")
    return yaml.load(text, Loader=_LOADER)


@cache
def rows(package: str, name: str) -> Sequence[dict[str, str]]:
    """Return the rows of a CSV file of a package, by column; callers must not change them.

    Lines that begin with ``#`` say where the facts come from.
    """
    text = (resources.files(package) / name).read_text(encoding="utf-8")
    return list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))

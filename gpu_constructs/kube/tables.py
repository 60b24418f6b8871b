"""Readers of the YAML and CSV tables in the data files of this package."""

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
    """Return the content of a YAML data file ``name`` of a Python package. Callers must not change it."""
    text = (resources.files(package) / name).read_text(encoding="utf-8")
    return yaml.load(text, Loader=_LOADER)


@cache
def rows(package: str, name: str) -> Sequence[dict[str, str]]:
    """Return the rows of a CSV file from the data files of a Python package, each as values by column name.

    Callers must not change the rows. Lines that begin with ``#`` are comments, for example with the sources of facts.
    """
    text = (resources.files(package) / name).read_text(encoding="utf-8")
    return list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))

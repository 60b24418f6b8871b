"""Readers of the YAML and CSV tables in the data files of this package."""

from __future__ import annotations

import csv
import marshal
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib import resources
from importlib.util import cache_from_source, source_hash
from pathlib import Path
from typing import Any

import yaml

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@cache
def table(package: str, name: str) -> Any:
    """Return the content of a YAML file from the data files of a Python package. Callers must not change it.

    Reading YAML is slow, so the function caches the content in the folder ``__pycache__`` of the package.
    """
    file = resources.files(package) / name
    text = file.read_bytes()
    compiled, key = Path(cache_from_source(f"{file}.py")), source_hash(text)
    with suppress(OSError, ValueError, EOFError, TypeError):
        kept = compiled.read_bytes()
        if kept.startswith(key):
            return marshal.loads(kept[len(key) :])
    content = yaml.load(text, Loader=_LOADER)
    with suppress(OSError, ValueError):
        if not sys.dont_write_bytecode:
            # Another process that sees a part of the file reads the YAML again.
            compiled.write_bytes(key + marshal.dumps(content))
    return content


@cache
def rows(package: str, name: str) -> Sequence[dict[str, str]]:
    """Return the rows of a CSV file from the data files of a Python package, each as values by column name.

    Callers must not change the rows. Lines that begin with ``#`` are comments, for example with the sources of facts.
    """
    text = (resources.files(package) / name).read_text(encoding="utf-8")
    return list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))

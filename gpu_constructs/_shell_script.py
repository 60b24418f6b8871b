"""A shell script shipped with the library, run from a ConfigMap so that a reviewer reads what will run."""

from __future__ import annotations

from functools import lru_cache
from importlib import resources

SCRIPT_MODE = 0o555
"""Readable and executable by everyone, writable by nobody."""


@lru_cache(maxsize=8)
def shell_script(package: str, name: str) -> str:
    """Give the text of a script that lies beside the module that uses it."""
    return (resources.files(package) / name).read_text(encoding="utf-8")

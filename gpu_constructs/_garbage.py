"""Fewer garbage collections while much is made that stays."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_MANY_OBJECTS = 100_000


@contextmanager
def collected_rarely() -> Iterator[None]:
    """Look for garbage less often: among modules, and the objects of an app, it takes a tenth of a run.

    Who has turned collection off, or made it rarer still, keeps that.
    """
    threshold = gc.get_threshold()
    gc.set_threshold(threshold[0] and max(threshold[0], _MANY_OBJECTS), *threshold[1:])
    try:
        yield
    finally:
        gc.set_threshold(*threshold)

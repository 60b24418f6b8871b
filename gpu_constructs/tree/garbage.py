"""Functions that make Python's garbage collector do less while a Python program creates many long-lived objects."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_MANY_OBJECTS = 100_000


@contextmanager
def collected_rarely() -> Iterator[None]:
    """Run Python's garbage collector less often in the ``with`` block.

    With its normal settings, the collector takes a tenth of the time of ``synth``, and frees no memory.

    If the collector is off, or already has a higher threshold, the function does not change its settings.
    """
    threshold = gc.get_threshold()
    gc.set_threshold(threshold[0] and max(threshold[0], _MANY_OBJECTS), *threshold[1:])
    try:
        yield
    finally:
        _move_to_oldest_generation()
        gc.set_threshold(*threshold)


@contextmanager
def kept_until_exit() -> Iterator[None]:
    """Exempt from garbage collection, until Python exits, all modules that the ``with`` block imports.

    Otherwise, Python frees the objects of these modules one by one at exit, which takes a fifth of the time of a small
    program. The function has no effect if the collector is off, or if the user has frozen objects with ``gc.freeze``.
    """
    # Python counts all frozen objects one by one, so the function asks only at the first call.
    is_frozen_by_user = not _kept and gc.get_freeze_count()
    with collected_rarely():
        yield
    if gc.isenabled() and not is_frozen_by_user:
        _kept.append(True)
        gc.freeze()


_kept: list[bool] = []
"""List that is not empty if ``kept_until_exit`` has frozen objects with ``gc.freeze``."""


def _move_to_oldest_generation() -> None:
    """Move all new Python objects to the oldest generation, so that the next garbage collections skip them."""
    # If the user has frozen objects with gc.freeze, they stay frozen.
    if gc.isenabled() and not _kept and not gc.get_freeze_count():
        gc.freeze()
        gc.unfreeze()

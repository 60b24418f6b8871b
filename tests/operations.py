"""Counts what Python does, in the place of the time that it takes: a busy machine changes the time only."""

import sys
from collections.abc import Callable
from typing import Any


def lines_run(work: Callable[[], object]) -> int:
    """Return how many lines of Python a call runs, those of the functions below it included."""
    count = 0

    def trace(*_: Any) -> Any:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def grows_with(work: Callable[[int], Callable[[], object]], size: int) -> float:
    """Return how many times as many lines run for twice the size: 2 is linear, 4 is quadratic.

    Args:
        work: Prepares a call for a size; only the call is counted.
        size: The smaller of both sizes.
    """
    return lines_run(work(2 * size)) / lines_run(work(size))

"""Conversion of durations from and to the text format of Go, such as ``90s`` and ``1h30m``."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

from gpu_constructs.errors import refuse_if
from gpu_constructs.records import regex

LONGEST = timedelta(microseconds=2**63 // 1000)
"""Longest duration in Go, 292 years. Go stores a duration as a signed 64-bit number of nanoseconds."""

_NANOSECONDS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_PART = regex(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|[µμ]s|ms|s|m|h)")
_DURATION = regex(rf"[-+]?(?:0|(?:{_PART.pattern})+)\Z")


def go_duration(span: timedelta) -> str:
    """Return a duration in the text format of Go, such as ``1h30m``, exact to the microsecond."""
    if span % timedelta(seconds=1):
        return f"{span // timedelta(microseconds=1)}us"
    return f"{span // timedelta(seconds=1)}s"


def from_go_duration(field: str, text: str) -> timedelta:
    """Parse a text in the duration format of Go, and return the duration, exact to the microsecond.

    Args:
        field: Name of the field in messages.
        text: Duration, for example ``90s``.

    Raises:
        GpuConstructsError: Go cannot parse the text.
    """
    refuse_if(not _DURATION.match(text), field, "be a duration with a unit, like '60s' or '1h30m'", text)
    span = sum((Decimal(number) * _NANOSECONDS[unit] for number, unit in _PART.findall(text)), Decimal(0))
    refuse_if(span >= 2**63, field, "be a duration of at most 292 years", text)
    return (-1 if text.startswith("-") else 1) * timedelta(microseconds=int(span / 1000))

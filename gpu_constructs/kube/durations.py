"""Spans of time as Go's programs read them: ``90s``, ``1h30m``."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal

from gpu_constructs.errors import refuse_if

LONGEST = timedelta(microseconds=2**63 // 1000)
"""The longest span Go knows, in nanoseconds of 64 bits: 292 years."""

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
_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|[µμ]s|ms|s|m|h)")
_DURATION = re.compile(rf"[-+]?(?:0|(?:{_PART.pattern})+)\Z")


def go_duration(span: timedelta) -> str:
    """Return the text for a span, exact to the microsecond."""
    if span % timedelta(seconds=1):
        return f"{span // timedelta(microseconds=1)}us"
    return f"{span // timedelta(seconds=1)}s"


def from_go_duration(field: str, text: str) -> timedelta:
    """Read a span, exact to the microsecond.

    Raises:
        GpuConstructsError: Go would not read it.
    """
    refuse_if(not _DURATION.match(text), field, "be a duration with a unit, like '60s' or '1h30m'", text)
    span = sum((Decimal(number) * _NANOSECONDS[unit] for number, unit in _PART.findall(text)), Decimal(0))
    refuse_if(span >= 2**63, field, "be a duration of at most 292 years", text)
    return (-1 if text.startswith("-") else 1) * timedelta(microseconds=int(span / 1000))

"""What refused input is told, row by row of a table."""

import re

import pytest

from gpu_constructs import GpuConstructsError


def refusal(make, *given, **named):
    """Return the one line that refuses input."""
    try:
        make(*given, **named)
    except GpuConstructsError as error:
        said = str(error)
    else:
        pytest.fail(f"nothing is refused of {given or named}")
    assert len(said.splitlines()) == 1, said
    return said


def check_refusals(make, rows, *, at=""):
    """Check each row of input and message; in a message ``…`` stands for any words."""
    for given, message in rows:
        said = refusal(make, **given)
        assert re.match(re.escape(at + message).replace("…", ".*"), said), f"{given}: {said}"

"""What refused input is told, row by row of a table."""

import re

import pytest

from gpu_constructs import GpuConstructsError, SynthesisError
from tables import replaced, table


def refused(make, *given, **named):
    """Return the error for input."""
    try:
        make(*given, **named)
    except (GpuConstructsError, SynthesisError) as error:
        return error
    pytest.fail(f"nothing is refused of {given or named}")


def refusal(make, *given, **named):
    """Return the one line that refuses input."""
    said = str(refused(make, *given, **named))
    assert len(said.splitlines()) == 1, said
    return said


def problem(make, *given, **named):
    """Return the one line that refuses input, without the path of a construct."""
    refusal(make, *given, **named)
    return refused(make, *given, **named).problem


def problems(make, *given, **named):
    """Return all problems for which input is refused."""
    return refused(make, *given, **named).problems


def check_refusals(make, rows, *, at=""):
    """Check each row of input and message; in a message ``…`` stands for any words."""
    for given, message in rows:
        said = refusal(make, **given) if isinstance(given, dict) else refusal(make, *given)
        assert re.fullmatch(re.escape(at + message).replace("…", ".*"), said), f"{given}: {said}"


def check_refused(test, *makes, at="", **short):
    """Check each row of a test's table: all of ``makes`` refuse it, or those that the row names under ``of``.

    In what is given, the names of ``short`` stand for what no table can hold.
    """
    for row in replaced(table(test), short):
        of = row.get("of", "").split()
        asked = [make for make in makes if not of or make.__name__ in of]
        assert len(asked) == len(of or makes), row
        for make in asked:
            check_refusals(make, [(row["given"], row["says"])], at=at)

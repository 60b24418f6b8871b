"""What refused input is told, row by row of a table."""

import builtins
import re
from datetime import timedelta
from typing import Any

import pytest
import yaml

import gpu_constructs
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


class _Names(dict[str, Any]):
    """Names of a test module, and of the package."""

    def __missing__(self, name: str) -> Any:
        return getattr(builtins if hasattr(builtins, name) else gpu_constructs, name)


class _Rows(yaml.SafeLoader):
    """Reads rows in which ``!py`` stands before what the names of a test make of a value."""

    names: _Names


_Rows.add_constructor("!py", lambda loader, node: eval(loader.construct_scalar(node), {}, loader.names))


def check_refused(request, *makes, at=""):
    """Check each row that ``refused/`` beside a test file holds for a test: what is given is refused in its words.

    All of ``makes`` refuse it, or those that the row names under ``of``. ``<any>`` stands for any words.
    """
    file = request.path.parent / "refused" / f"{request.path.stem.removeprefix('test_')}.yaml"
    loader = _Rows(file.read_text(encoding="utf-8"))
    loader.names = _Names(vars(request.module), timedelta=timedelta)
    for row in loader.get_data()[request.function.__name__.removeprefix("test_")]:
        given, of = row["given"], row.get("of", "").split()
        asked = [make for make in makes if not of or make.__name__ in of]
        assert len(asked) == len(of or makes), row
        for make in asked:
            said = refusal(make, **given) if isinstance(given, dict) else refusal(make, *given)
            assert re.fullmatch(re.escape(at + row["says"]).replace("<any>", ".*"), said), f"{given}: {said}"

"""Tables of cases: YAML in a folder beside their tests, a table for each test that has one.

``!Run.job {completions: 2}`` is a call of a name of the package, and ``!Run.job`` the name itself. What is not public
is found in the modules below or has a dotted name, and ``!tuple`` and ``!datetime.timedelta`` are Python's. Under
``short`` a table names values that it repeats: each text that is such a name stands for the value.
"""

import inspect
from functools import cache
from pathlib import Path
from pydoc import locate

import pytest
import yaml

FOUND_IN = (
    "gpu_constructs.",
    "gpu_constructs.facts.provided.",
    "gpu_constructs.capacity.planned.",
    "gpu_constructs.capacity.plan.",
    "",
)


class _Loader(yaml.CSafeLoader):
    """YAML with names of the package as tags."""


def _named(loader, name, node):
    found = next(filter(None, (locate(f"{module}{name}") for module in FOUND_IN)))
    if isinstance(node, yaml.MappingNode):
        return found(**loader.construct_mapping(node, deep=True))
    if isinstance(node, yaml.SequenceNode):
        return found(*loader.construct_sequence(node, deep=True))
    return found


_Loader.add_multi_constructor("!", _named)


@cache
def read(path):
    """Return what stands in a file of such YAML."""
    found = yaml.load(path.read_text(encoding="utf-8"), _Loader)
    short = {}
    for name, value in (found.pop("short", {}) if isinstance(found, dict) else {}).items():
        short[name] = replaced(value, short)
    return replaced(found, short) if short else found


def replaced(value, short):
    """Return a value with what short names in it stand for."""
    if isinstance(value, dict):
        return {key: replaced(one, short) for key, one in value.items()}
    if isinstance(value, list):
        return [replaced(one, short) for one in value]
    return short.get(value, value) if isinstance(value, str) else value


def beside(module, name):
    """Return the tables of a file in the folder beside a module, by the module's ``__file__``."""
    return read(Path(module).parent / "tables" / f"{name}.yaml")


def table(test):
    """Return the table of a test: the one of its name in the file called like its module."""
    module = Path(inspect.getfile(test))
    return beside(module, module.stem.removeprefix("test_"))[test.__name__.removeprefix("test_")]


def cases(test):
    """Run a test once for each row of its table, whose columns are its arguments: None is what a row leaves out.

    What a row is about, where it says so, is the name of its case.
    """
    rows = table(test)
    columns = [column for column in dict.fromkeys(key for row in rows for key in row) if column != "about"]
    values = [pytest.param(*map(row.get, columns), id=row.get("about")) for row in rows]
    return pytest.mark.parametrize(columns, values)(test)

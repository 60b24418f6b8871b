"""Tables of cases: YAML in a folder beside their tests, a table for each test that has one."""

import inspect
from functools import cache
from pathlib import Path
from pydoc import locate

import pytest
import yaml


class _Loader(yaml.CSafeLoader):
    """YAML where ``!Run.job {completions: 2}`` is a call of a name of the package, and ``!Run.job`` the name itself."""


def _named(loader, name, node):
    found = locate(f"gpu_constructs.{name}")
    if isinstance(node, yaml.MappingNode):
        return found(**loader.construct_mapping(node, deep=True))
    if isinstance(node, yaml.SequenceNode):
        return found(*loader.construct_sequence(node, deep=True))
    return found


_Loader.add_multi_constructor("!", _named)


@cache
def read(path):
    """Return what stands in a file of such YAML."""
    return yaml.load(path.read_text(encoding="utf-8"), _Loader)


def table(test):
    """Return the table of a test: the one of its name in the file called like its module."""
    module = Path(inspect.getfile(test))
    path = module.parent / "tables" / f"{module.stem.removeprefix('test_')}.yaml"
    return read(path)[test.__name__.removeprefix("test_")]


def cases(test):
    """Run a test once for each row of its table, whose columns are its arguments: None is what a row leaves out.

    What a row is about, where it says so, is the name of its case.
    """
    rows = table(test)
    columns = [column for column in dict.fromkeys(key for row in rows for key in row) if column != "about"]
    values = [pytest.param(*map(row.get, columns), id=row.get("about")) for row in rows]
    return pytest.mark.parametrize(columns, values)(test)

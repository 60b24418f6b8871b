"""Tables of cases: YAML in a folder beside their tests, a table for each test that has one."""

import inspect
from functools import cache
from pathlib import Path
from pydoc import locate

import pytest
import yaml


class _Loader(yaml.SafeLoader):
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
def _tables(path):
    return yaml.load(path.read_text(encoding="utf-8"), _Loader)


def table(test):
    """Return the table of a test: the one of its name in the file called like its module."""
    module = Path(inspect.getfile(test))
    path = module.parent / "tables" / f"{module.stem.removeprefix('test_')}.yaml"
    return _tables(path)[test.__name__.removeprefix("test_")]


def cases(test):
    """Run a test once for each row of its table, whose columns are arguments of the test."""
    rows = table(test)
    return pytest.mark.parametrize(list(rows[0]), [list(row.values()) for row in rows])(test)

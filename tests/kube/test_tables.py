"""Tests of the content that the library keeps of its data files."""

import sys

import pytest

from gpu_constructs.kube import tables


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A Python package with a data file, whose bytecode goes to a folder of its own."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "bytecode"))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    folder = tmp_path / "with_a_table"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "rows.yaml").write_text("a: [1, 2.5, null, true]\nb: text\n")
    monkeypatch.delitem(sys.modules, "with_a_table", raising=False)
    return folder


def read():
    return tables.table.__wrapped__("with_a_table", "rows.yaml")


def kept(package):
    return [one for one in (package.parent / "bytecode").rglob("*rows*") if one.is_file()]


CONTENT = {"a": [1, 2.5, None, True], "b": "text"}


@pytest.mark.usefixtures("package")
def test_the_second_read_gives_the_same_without_a_parser(monkeypatch):
    assert read() == CONTENT
    (read_before,) = [read()]
    monkeypatch.setattr(tables.yaml, "load", None)
    assert read() == read_before == CONTENT


def test_a_changed_file_is_read_again(package):
    read()
    (package / "rows.yaml").write_text("c: 3\n")
    assert read() == {"c": 3}
    assert len(kept(package)) == 1


@pytest.mark.parametrize("cut", [0, 4, 9, -1], ids=["empty", "a part of the key", "a part of the content", "no end"])
def test_a_damaged_copy_is_replaced(package, cut):
    read()
    (copy,) = kept(package)
    whole = copy.read_bytes()
    copy.write_bytes(whole[:cut])
    assert read() == CONTENT
    assert copy.read_bytes() == whole


def test_nothing_is_kept_if_python_must_not_write_bytecode(package, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert read() == CONTENT
    assert kept(package) == []


def test_a_folder_without_permission_is_no_error(package):
    (package.parent / "bytecode").write_text("a file")
    assert read() == CONTENT

"""Tests of the content that the library keeps of its data files."""

import sys

import pytest

from gpu_constructs.kube import tables

CONTENT = {"a": [1, 2.5, None, True], "b": "text"}


@pytest.fixture
def read(tmp_path, monkeypatch):
    """A function that reads the data file of a new package, whose bytecode goes to a folder of its own."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "bytecode"))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    (tmp_path / "with_a_table").mkdir()
    (tmp_path / "with_a_table" / "__init__.py").touch()
    (tmp_path / "with_a_table" / "rows.yaml").write_text("a: [1, 2.5, null, true]\nb: text\n")
    monkeypatch.delitem(sys.modules, "with_a_table", raising=False)
    return lambda: tables.table.__wrapped__("with_a_table", "rows.yaml")


def kept(folder):
    return [one for one in (folder / "bytecode").rglob("*rows*") if one.is_file()]


def test_the_second_read_gives_the_same_without_a_parser(read, monkeypatch):
    assert read() == CONTENT
    monkeypatch.setattr(tables.yaml, "load", None)
    assert read() == CONTENT


def test_a_changed_file_is_read_again(read, tmp_path):
    read()
    (tmp_path / "with_a_table" / "rows.yaml").write_text("c: 3\n")
    assert (read(), len(kept(tmp_path))) == ({"c": 3}, 1)


@pytest.mark.parametrize("cut", [0, 4, 9, -1], ids=["empty", "a part of the key", "a part of the content", "no end"])
def test_a_damaged_copy_is_replaced(read, tmp_path, cut):
    read()
    (copy,) = kept(tmp_path)
    whole = copy.read_bytes()
    copy.write_bytes(whole[:cut])
    assert (read(), copy.read_bytes()) == (CONTENT, whole)


def test_nothing_is_kept_if_python_must_not_write_bytecode(read, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert (read(), kept(tmp_path)) == (CONTENT, [])


def test_a_folder_without_permission_is_no_error(read, tmp_path):
    (tmp_path / "bytecode").write_text("a file")
    assert read() == CONTENT

"""Inventories in YAML files."""

import subprocess
import sys
from pathlib import Path

import pytest

from gpu_constructs.catalog.inventory import GpuInventory
from gpu_constructs.errors import GpuConstructsError
from refusals import refusal
from tables import cases

TEXT = Path(__file__).with_name("inventory.yaml").read_text(encoding="utf-8")


def test_the_keys_are_the_attributes(keywords):
    assert GpuInventory.from_yaml(TEXT) == GpuInventory(**keywords)


@cases
def test_sharing_has_the_keywords_of_its_class_method(text, sharing):
    (node,) = GpuInventory.from_yaml(f"nodes: [{{name: a, sharing: {text}}}]").nodes
    assert node.sharing == sharing


def test_an_error_has_its_line_and_its_path(rows):
    for right, wrong, says in rows:
        assert refusal(GpuInventory.from_yaml, TEXT.replace(right, wrong)) == says


def test_a_text_that_is_not_an_inventory_is_rejected(rows):
    for text, says in rows:
        assert refusal(GpuInventory.from_yaml, text) == says
    assert refusal(GpuInventory.from_yaml, "[" * 1000) == (
        "line 1: text must not have deeper nesting than the keys of an inventory"
    )


def test_an_error_names_the_file_before_the_line(tmp_path):
    path = tmp_path / "gpus.yaml"
    path.write_text(TEXT)
    assert GpuInventory.from_file(path) == GpuInventory.from_file(str(path)) == GpuInventory.from_yaml(TEXT)
    path.write_text(TEXT.replace("gpus: 2", "gpus: 0"))
    with pytest.raises(GpuConstructsError, match=r"^gpus\.yaml line 5: nodes\[0\]\.gpus must be at least 1, got 0$"):
        GpuInventory.from_file(path)


def test_an_error_names_a_file_that_is_not_readable(tmp_path):
    assert refusal(GpuInventory.from_file, tmp_path / "gpus.yaml") == (
        f"path must be a readable YAML file, got '{tmp_path}/gpus.yaml': No such file or directory"
    )
    (tmp_path / "latin.yaml").write_bytes(b"nodes: [{name: \xfc}]")
    with pytest.raises(GpuConstructsError, match=r"latin\.yaml': not a UTF-8 text file$"):
        GpuInventory.from_file(tmp_path / "latin.yaml")


@pytest.mark.parametrize(("method", "word"), [("from_file", "path"), ("from_yaml", "text")])
def test_a_value_that_is_not_text_is_rejected(method, word):
    with pytest.raises(GpuConstructsError, match=rf"^{word} must be .*, got int: 3$"):
        getattr(GpuInventory, method)(3)


def test_a_declared_inventory_does_not_import_the_yaml_reader():
    code = "import sys, gpu_constructs.catalog.inventory; print({'yaml', 'json', 'typeguard'} & {*sys.modules})"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "set()\n"


def test_a_file_can_contain_observed_nodes():
    (node,) = GpuInventory.from_yaml("nodes: [{name: a, is_observed: true}]").nodes
    assert node.is_observed
    with pytest.raises(GpuConstructsError, match=r"nodes\[0\]\.is_observed must be true or false, got 1"):
        GpuInventory.from_yaml("nodes: [{name: a, is_observed: 1}]")

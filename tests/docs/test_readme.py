"""The README: its code runs, writes what it says, and its tables, links and commands are true."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import dist
import documents
import gpu_constructs
from gpu_constructs import GpuConstructsError, Kubernetes, Talos
from gpu_constructs.catalog import versions
from gpu_constructs.catalog.platforms import DEFAULT_PLATFORM
from gpu_constructs.kube.side_files import FOLDERS

PYTHON = [block.text for block in documents.blocks(documents.README, "python")]
FIRST_APP = PYTHON[0]
ERROR_HEADING = "plugin: "
PROJECT = tomllib.loads((dist.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def program(block: str) -> str:
    """A block that makes no App of its own continues the first app."""
    return block if "App(" in block else FIRST_APP.replace("synth(app)\n", f"{block}synth(app)\n")


def refused_block() -> str:
    (block,) = (block for block in PYTHON if '"envvars"' in block)
    return block


def test_the_first_six_constructs_are_the_ones_that_the_package_shows_first() -> None:
    named = [row[0].strip("`") for row in documents.table(documents.README, "construct")]
    assert named[:6] == gpu_constructs.__all__[:6]
    assert set(named) <= set(gpu_constructs.__all__)
    assert len(named) == len(set(named))


def test_the_first_app_has_eleven_lines() -> None:
    assert len(FIRST_APP.splitlines()) == 11


def test_the_first_app_writes_the_files_that_are_listed_and_says_so_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(FIRST_APP, encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if name != "CDK8S_OUTDIR"}
    environment["PYTHONPATH"] = str(dist.ROOT)
    ran = subprocess.run(
        [sys.executable, "app.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "wrote 7 files to dist/\n")
    listing = next(block.text for block in documents.blocks(documents.README, "text"))
    listed = [line.split()[0] for line in listing.splitlines()]
    assert sorted(listed) == [f"dist/{name}" for name in sorted(dist.all_texts(tmp_path / "dist"))]
    read_by_kubectl = [path.relative_to(tmp_path).as_posix() for path in dist.files(tmp_path / "dist")]
    assert listed[:-1] == read_by_kubectl, "kubectl reads all but the last, in this order"


@pytest.mark.parametrize("number", [n for n, block in enumerate(PYTHON) if block != refused_block()])
def test_a_python_block_runs_as_written(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(program(PYTHON[number]), f"README block {number}", "exec"), {})
    assert list(tmp_path.rglob("*.k8s.yaml"))


def test_the_refused_block_gives_the_error_that_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(GpuConstructsError) as refused:
        exec(program(refused_block()), {})
    shown = [block.text for block in documents.blocks(documents.README, "text") if block.text.startswith(ERROR_HEADING)]
    assert shown == [f"{refused.value}\n"]
    assert not list(tmp_path.iterdir())


def test_the_support_table_is_the_one_in_the_code() -> None:
    titles = "device plugin, GPU Feature Discovery | Node Feature Discovery | DCGM exporter | GPU Operator | Kubernetes"
    assert f"| gpu-constructs | {titles} | Talos |" in documents.prose(documents.README)
    (row,) = documents.table(documents.README, "gpu-constructs")
    talos = [line for line in (f"1.{minor}" for minor in range(30)) if _is_known(line)]
    assert row == [
        PROJECT["version"].rpartition(".")[0],
        ", ".join(versions.DEVICE_PLUGIN),
        ", ".join(dict.fromkeys(r.node_feature_discovery.version for r in versions.DEVICE_PLUGIN.values())),
        ", ".join(versions.DCGM_EXPORTER),
        ", ".join(versions.GPU_OPERATOR),
        f"{versions.KUBERNETES_RELEASES[0]} to {versions.KUBERNETES_RELEASES[-1]}",
        f"{talos[0]} to {talos[-1]}",
    ]


def _is_known(talos: str) -> bool:
    try:
        Talos(talos)
    except GpuConstructsError:
        return False
    return True


def test_the_defaults_are_the_ones_that_are_stated() -> None:
    assert "The newest is the default, except Talos, which is 1.12" in documents.prose(documents.README)
    assert list(versions.DEVICE_PLUGIN)[-1] == versions.DEFAULT_DEVICE_PLUGIN
    assert list(versions.DCGM_EXPORTER)[-1] == versions.DEFAULT_DCGM_EXPORTER
    assert list(versions.GPU_OPERATOR)[-1] == versions.DEFAULT_GPU_OPERATOR
    assert Kubernetes().version == versions.KUBERNETES_RELEASES[-1]
    assert Talos("1.12") == DEFAULT_PLATFORM


def test_links_within_the_repository_lead_somewhere() -> None:
    for document in documents.DOCUMENTS:
        dead = []
        for target in documents.links(document):
            name, _, anchor = target.partition("#")
            path = (document.parent / name).resolve() if name else document
            if not path.exists() or (anchor and anchor not in documents.anchors(path)):
                dead.append(target)
        assert not dead


def test_every_folder_that_kubectl_does_not_read_is_named() -> None:
    text = documents.prose(documents.README)
    assert all(f"`dist/{folder}/`" in text for folder in FOLDERS)
    assert f"`{dist.NEEDS_CRDS}/`" in text
    assert all((dist.DIST / folder).is_dir() for folder in FOLDERS)


def test_every_page_is_linked() -> None:
    pages = {path.relative_to(dist.ROOT).as_posix() for path in documents.DOCUMENTS} - {"README.md"}
    assert pages <= set(documents.links(documents.README))


def test_field_notes_are_corrected_in_one_place() -> None:
    corrected = {row[0] for row in documents.table(documents.README, "field notes say")}
    elsewhere = {row[0] for row in documents.table(dist.ROOT / "docs" / "which-route.md", "claim")}
    assert corrected
    assert not corrected & elsewhere


def test_the_cluster_table_names_every_cluster() -> None:
    rows = documents.table(documents.README, "folder")
    assert sorted(row[0].strip("`") for row in rows) == [f"dist/{cluster}" for cluster in dist.CLUSTERS]


# Every shell command of the README is one of these; kubectl's are in test_troubleshooting.


def _app_py_exists(_: str) -> bool:
    return (dist.ROOT / "app.py").is_file()


def _extra_exists(command: str) -> bool:
    (extra,) = re.findall(r"\[(\w+)\]$", command)
    return extra in PROJECT["optional-dependencies"]


def _wheel_is_named_so(command: str) -> bool:
    wheel = f"{PROJECT['name'].replace('-', '_')}-{PROJECT['version']}-py3-none-any.whl"
    return f"build/{wheel}[" in command and _extra_exists(command)


def _helm_installs_our_values(command: str) -> bool:
    (values,) = re.findall(r"--values (\S+)", command)
    (namespace,) = re.findall(r"--namespace (\S+)", command)
    cluster = Path(values).parent.name
    release = Path(values).name.removesuffix(".values.yaml")
    namespaces = [m["metadata"]["name"] for m in dist.objects(cluster) if m["kind"] == "Namespace"]
    return (dist.ROOT / values).is_file() and namespace in namespaces and command.startswith(f"helm install {release} ")


CHECKS: dict[str, Any] = {
    r"(python3 -m |\.venv/bin/)?uv run python app\.py": _app_py_exists,
    r"(python3 -m |\.venv/bin/)?uv run pytest": lambda _: True,
    r"python3 -m pip (--python \.venv )?install -qq uv": lambda _: True,
    r"python3 -m venv --without-pip \.venv": lambda _: True,
    r"pip install \.\./gpu-constructs\[\w+\]": _extra_exists,
    r"uv build --wheel --out-dir build": lambda _: "build/" in (dist.ROOT / ".gitignore").read_text(encoding="utf-8"),
    r"pip install build/\S+": _wheel_is_named_so,
    r"git diff dist/": lambda _: dist.DIST.is_dir(),
    r"helm install .*": _helm_installs_our_values,
    r"kubectl .*": lambda _: True,
}


def unchecked(command: str) -> bool:
    """Whether no rule knows the command, or the one that does finds it wrong."""
    return not any(re.fullmatch(rule, command) and holds(command) for rule, holds in CHECKS.items())


def test_every_shell_command_is_known_and_right() -> None:
    found = [" ".join(words) for words in documents.commands(documents.README)]
    assert not [command for command in found if unchecked(command)]


def test_a_wrong_command_would_be_found(rows) -> None:
    for (command,) in rows:
        assert unchecked(command)


def test_the_flags_of_pytest_and_venv_exist(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    assert "`uv run pytest --snapshot-update`" in documents.prose(documents.README)
    assert pytestconfig.getoption("update_snapshots") in (True, False)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    assert (tmp_path / "venv" / "pyvenv.cfg").is_file()

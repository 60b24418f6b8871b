"""The page on Talos nodes: its files, identifiers, commands, tables and quotes are real; both pages' diagrams hold."""

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from cdk8s import App, Chart

import dist
import documents
import gpu_constructs
import tables
from gpu_constructs import (
    DevicePluginChart,
    GpuNamespace,
    GpuWorkload,
    Talos,
    ValidationBridge,
    synthesize,
)
from gpu_constructs.catalog.platforms import TALOS_GPU_EXTENSIONS
from gpu_constructs.talos.installer import TalosSchematic, driver_branch, driver_version, gpu_extensions
from gpu_constructs.talos.options import NVIDIA_MODULES, check_node_labels
from refusals import problems, refusal

PAGE = dist.ROOT / "docs" / "talos-gpu-node.md"
TEXT = PAGE.read_text(encoding="utf-8")
SCHEMATIC, PATCH, DOCUMENTS = (block.text for block in documents.blocks(PAGE, "yaml"))
MESSAGES = [block.text for block in documents.blocks(PAGE, "text")]
# This one names a kubectl command, which has to be a whole one in a block.
MESSAGES += re.findall(r"`(node_labels must not [^`]+)`", " ".join(TEXT.split()))
TALOS_LINES = [f"1.{minor}" for minor in range(10, 15)]


def test_the_schematic_is_the_factory_s_own_form_and_has_the_id_that_the_page_names() -> None:
    extensions = gpu_extensions(
        platform=Talos("1.12.11"),
        kernel_module_type="open",
        branch="production",
        fabric_manager=False,
        gdrdrv=False,
        further=(),
        gpu_architecture=None,
    )
    schematic = TalosSchematic(official_extensions=extensions)
    assert schematic.to_yaml() == SCHEMATIC
    assert hashlib.sha256(SCHEMATIC.encode()).hexdigest() == schematic.id
    assert set(re.findall(r"\b[0-9a-f]{64}\b", TEXT)) == {schematic.id}
    (answer,) = documents.blocks(PAGE, "json")
    assert json.loads(answer.text) == {"id": schematic.id}


def test_the_drivers_are_the_ones_in_the_code() -> None:
    rows = {row[0]: row[1:] for row in documents.table(PAGE, "Talos")}
    assert [release.rpartition(".")[0] if "-" not in release else "1.14" for release in rows] == TALOS_LINES
    for release, found in rows.items():
        platform = Talos(release.partition("-")[0])
        if "-" in release:
            branches = [driver_branch(platform, "production"), driver_branch(platform, "lts")]
            assert [int(version.partition(".")[0]) for version in found] == branches
        else:
            assert found == [driver_version(platform, "production"), driver_version(platform, "lts")], release


def test_the_patches_hold_what_the_platform_asks_for() -> None:
    machine = yaml.safe_load(PATCH)["machine"]
    kinds = list(yaml.safe_load_all(DOCUMENTS))
    assert [module["name"] for module in machine["kernel"]["modules"]] == list(NVIDIA_MODULES)
    assert [(document["kind"], document["name"]) for document in kinds] == [
        ("KernelModuleConfig", name) for name in NVIDIA_MODULES
    ]
    assert machine["sysctls"] == {"net.core.bpf_jit_harden": "1"}
    assert [Talos(line).needs_bpf_jit_harden for line in TALOS_LINES] == [True, True, True, False, False]
    assert [Talos(line).machine_config for line in TALOS_LINES] == ["v1alpha1"] * 4 + ["multi-document"]
    assert [Talos(line).node_taints_reach_workers for line in TALOS_LINES] == [False] * 4 + [True]
    assert [Talos(line).has_gdrdrv for line in TALOS_LINES] == [False, False, True, True, True]


def test_a_taint_that_is_said_once_goes_to_the_node_and_to_the_pods() -> None:
    ((said, name),) = re.findall(r"after `(ai = Taint\([^`]+\))`, `taints=\[(\w+)\]`", " ".join(TEXT.split()))
    names: dict[str, Any] = {"Taint": gpu_constructs.Taint}
    exec(said, names)
    gpu_constructs.TalosGpuNode(App(), "gpu-node", platform=Talos("1.13"), taints=[names[name]])
    assert f"`tolerations=[{name}.toleration]`" in TEXT
    DevicePluginChart(App(), "plugin", platform=Talos("1.13"), tolerations=[names[name].toleration])


def test_the_construct_writes_the_schematic_and_the_patches_that_are_shown(tmp_path: Path) -> None:
    without_sysctls = yaml.safe_load(PATCH)
    del without_sysctls["machine"]["sysctls"]
    without_sysctls["machine"]["install"]["image"] = without_sysctls["machine"]["install"]["image"].replace(
        "v1.12.11", "v1.13.9"
    )
    shown = {
        "1.12.11": [yaml.safe_load(PATCH)],
        "1.13.9": [without_sysctls],
        "1.14.0": list(yaml.safe_load_all(DOCUMENTS)),
    }
    for release, expected in shown.items():
        node = gpu_constructs.TalosGpuNode(App(), "gpu-node", platform=Talos(release))
        assert sorted(map(json.dumps, map(_sorted, node.machine_config))) == sorted(
            map(json.dumps, map(_sorted, expected))
        )
        assert node.schematic.to_yaml() == SCHEMATIC


def _sorted(value: Any) -> Any:
    return json.loads(json.dumps(value, sort_keys=True))


def test_the_program_writes_the_files_that_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (program,) = documents.blocks(PAGE, "python")
    monkeypatch.chdir(tmp_path)
    exec(compile(program.text, "talos-gpu-node.md", "exec"), {})
    for row in documents.table(PAGE, "file"):
        assert (tmp_path / row[0].strip("`")).is_file(), row[0]


def test_the_installer_image_is_the_one_that_the_patch_names() -> None:
    assert f"{yaml.safe_load(PATCH)['machine']['install']['image']}\n" in MESSAGES


FLAGS_OF_TALOSCTL = tables.read(Path(__file__).with_name("talosctl.yaml"))
OFFLINE = {"gen config", "machineconfig patch", "validate"}


def talosctl_problem(words: list[str]) -> str | None:
    """What is wrong with a talosctl command, or None."""
    rest = words[1:]
    has_node = rest[:2] == ["--nodes", "<node-ip>"]
    rest = rest[2:] if has_node else rest
    verb = next((verb for verb in FLAGS_OF_TALOSCTL if rest[: len(verb.split())] == verb.split()), None)
    if verb is None:
        return "unknown verb"
    if has_node == (verb in OFFLINE):
        return "no node" if not has_node else "needs no node"
    unknown = {word for word in rest if word.startswith("-")} - set(FLAGS_OF_TALOSCTL[verb])
    return f"unknown flags {sorted(unknown)}" if unknown else None


def test_the_talosctl_commands_exist_in_every_release() -> None:
    for page in documents.DOCUMENTS:
        inline = re.findall(r"`(talosctl [^`]+)`", page.read_text(encoding="utf-8"))
        found = [words for words in documents.commands(page) if words[0] == "talosctl"]
        found += [documents.simple_commands(command)[0] for command in inline]
        problems = {" ".join(words): talosctl_problem(words) for words in found}
        assert page != PAGE or len(problems) > 12
        assert not any(problems.values()), problems


def test_a_wrong_talosctl_command_would_be_found(rows) -> None:
    for line, says in rows:
        assert talosctl_problem(documents.simple_commands(line)[0]) == says


def test_every_shell_command_is_one_of_talosctl_kubectl_grep_and_the_one_that_registers() -> None:
    others = [c for c in documents.commands(PAGE) if c[0] not in ("talosctl", "kubectl", "grep")]
    (curl,) = others
    assert curl[:4] == ["curl", "-X", "POST", "--data-binary"]
    listed = [row[0].strip("`") for row in documents.table(PAGE, "file")]
    assert curl[4] == f"@{listed[0]}"
    files = re.findall(r"@(dist/\S+)", "".join(b.text for b in documents.blocks(PAGE, "bash")))
    assert set(files) == set(listed)


def _of_the_app(make: Callable[[App], object]) -> Callable[[Path], str]:
    def problem(tmp_path: Path) -> str:
        app = App(outdir=str(tmp_path))
        make(app)
        return "\n".join(problems(synthesize, app))

    return problem


def _of_a_construct(make: Callable[[], object]) -> Callable[[Path], str]:
    def problem(_: Path) -> str:
        return refusal(make)

    return problem


def _ollama(app: App, **options: Any) -> None:
    chart = Chart(app, "ollama", namespace="ollama")
    GpuNamespace(chart, "namespace", name="ollama", pod_security="baseline")
    GpuWorkload(chart, "ollama", image="docker.io/ollama/ollama:0.32.15", platform=Talos("1.12"), **options)


def _bridge(app: App) -> None:
    chart = Chart(app, "b", namespace="gpu-operator")
    namespace = GpuNamespace(chart, "n", name="gpu-operator", pod_security="baseline")
    ValidationBridge(chart, "bridge", platform=Talos("1.12"), namespace=namespace.name)


QUOTES: dict[str, Callable[[Path], str]] = {
    "device_list_strategy 'cdi-cri'": _of_a_construct(
        lambda: DevicePluginChart(App(), "plugin", platform=Talos("1.12"), device_list_strategy="cdi-cri")
    ),
    "got 'envvars'": _of_a_construct(
        lambda: DevicePluginChart(App(), "plugin", platform=Talos("1.12"), device_list_strategy="envvars")
    ),
    "selects nodes by the label 'node-role": _of_the_app(
        lambda app: _ollama(app, node_selector={"node-role.kubernetes.io/gpu": "true"})
    ),
    "NodeRestriction": _of_a_construct(
        lambda: check_node_labels("node_labels", {"node-role.kubernetes.io/gpu": "true"}, "worker")
    ),
    "the API server would reject the pods": _of_the_app(_bridge),
    "NVIDIA_VISIBLE_DEVICES": _of_a_construct(lambda: _ollama(App(), env={"NVIDIA_VISIBLE_DEVICES": "all"})),
}


@pytest.mark.parametrize("part", QUOTES)
def test_a_quoted_message_is_one_that_the_library_gives(part: str, tmp_path: Path) -> None:
    (shown,) = (message for message in MESSAGES if part in message)
    assert shown.strip() in QUOTES[part](tmp_path)


def test_no_quote_is_unchecked() -> None:
    image = yaml.safe_load(PATCH)["machine"]["install"]["image"]
    unchecked = [m for m in MESSAGES if m.strip() != image and not any(part in m for part in QUOTES)]
    assert not unchecked


def test_the_node_labels_and_extensions_named_are_the_ones_in_the_code() -> None:
    named = set(re.findall(r"extensions\.talos\.dev/([\w-]+)", TEXT))
    assert named <= set(TALOS_GPU_EXTENSIONS)
    assert named


# Mermaid itself is no dependency: its parser accepted the diagrams once. What is drawn is checked against the code.

DIAGRAMS = [block.text for page in documents.DOCUMENTS for block in documents.blocks(page, "mermaid")]
_NODE = re.compile(r'^(\w+)\["([^"\[\]]+)"\]$')
_EDGE = re.compile(r'^(\w+) -(?:- "([^"]+)" -)?->? (\w+)$')
_GROUP = re.compile(r'^subgraph (\w+)\["([^"\[\]]+)"\]$')


def test_a_diagram_joins_boxes_that_it_has_and_leaves_none_alone() -> None:
    for text in DIAGRAMS:
        first, *lines = (line.strip() for line in text.strip().splitlines())
        assert first in ("flowchart LR", "flowchart TB")
        boxes = {match[1] for line in lines if (match := _NODE.match(line))}
        edges = [(match[1], match[3]) for line in lines if (match := _EDGE.match(line))]
        groups = [line for line in lines if _GROUP.match(line)]
        assert lines.count("end") == len(groups)
        assert len(boxes) + len(edges) + 2 * len(groups) == len(lines), "a line is none of these"
        assert {box for edge in edges for box in edge} == boxes


def test_the_layouts_are_drawn_as_the_code_has_them() -> None:
    for line, block in zip(("1.12", "1.13"), documents.blocks(PAGE, "mermaid"), strict=True):
        platform = Talos(line)
        assert f"libraries in {platform.driver_library_path}<" in block.text
        assert f"programs in {platform.driver_program_path}" in block.text
        assert f"handler {platform.runtime_class}," in block.text
        assert ("legacy mode" in block.text) == (platform.runtime_mode == "legacy")
        assert ("/run/cdi" in block.text) == platform.supports_cdi
        assert ("net.core.bpf_jit_harden" in block.text) == platform.needs_bpf_jit_harden
        assert all(module in block.text for module in NVIDIA_MODULES)

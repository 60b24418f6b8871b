"""The pages on capacity plans, sharing, the device plugin and power limits: their tables and numbers are the code's."""

import dataclasses
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from cdk8s import App, Chart
from test_power_limit_script import Node, script

import dist
import documents
from documents import Page
from gpu_constructs import (
    AlertThresholds,
    Backend,
    CapacityPlan,
    DevicePluginChart,
    GpuConstructsError,
    GpuConstructsWarning,
    GpuInventory,
    GpuNamespace,
    GpuNode,
    GpuProfile,
    GpuRequest,
    GpuWorkload,
    Kubernetes,
    Sharing,
    Talos,
    synthesize,
)
from gpu_constructs.capacity.planned import VramVerdict
from gpu_constructs.catalog import versions
from gpu_constructs.catalog.gpu_models import GPU_MODELS
from gpu_constructs.catalog.mig_profiles import MIG_PROFILES
from gpu_constructs.kube.pod_specs import pod_specs
from gpu_constructs.power.options import power_requests
from refusals import problems
from shell import launcher
from tables import beside

PLAN, SHARING, PLUGIN, POWER = map(Page, ("capacity-plan", "sharing", "device-plugin", "power"))


def refuses(make: Any) -> bool:
    try:
        make()
    except GpuConstructsError:
        return True
    return False


# --- capacity plans -------------------------------------------------------------------------------------------


def test_each_program_of_the_plan_does_what_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, from_nodes, recommends, manifests = PLAN.programs
    PLAN.run(first, tmp_path)
    plan = json.loads((tmp_path / "dist-plan/reports/capacity-plan.json").read_text())
    assert plan["verdict"]["vram"] == "safe"
    labels = {"nvidia.com/gpu.product": "NVIDIA-L4", "nvidia.com/gpu.count": "1", "nvidia.com/gpu.memory": "23034"}
    node = {"metadata": {"name": "n", "labels": labels}, "status": {"allocatable": {"nvidia.com/gpu": "1"}}}
    (tmp_path / "nodes.json").write_text(json.dumps({"kind": "List", "items": [node]}))
    assert PLAN.run(from_nodes, tmp_path)["inventory"].gpus == 1
    capsys.readouterr()
    PLAN.run(recommends, tmp_path)
    assert capsys.readouterr().out.startswith("home ")
    (tmp_path / "rendered.yaml").write_text((dist.DIST / "talos-rtx5070ti" / "ollama.k8s.yaml").read_text())
    PLAN.run(manifests, tmp_path)
    assert "ollama/ollama" in capsys.readouterr().out
    file = tmp_path / "gpus.yaml"
    file.write_text(*PLAN.blocks("yaml"))
    nodes = [(node.name, node.count) for node in GpuInventory.from_file(file).nodes]
    assert nodes == [("workstation", 1), ("a100-pool", 2)]


def test_the_gate_of_a_pipeline_is_a_command_that_runs() -> None:
    (command,) = [text for text in PLAN.blocks("bash") if "python3" in text]
    for cluster, code in (("talos-rtx3090", 0), ("talos-rtx5070ti", 1)):
        gate = command.replace("python3", sys.executable).replace("talos-rtx3090", cluster)
        assert subprocess.run(["bash", "-c", gate], cwd=dist.ROOT, check=False).returncode == code


def test_the_refused_plan_is_what_synth_says(tmp_path: Path) -> None:
    sharing, app, platform = Sharing.time_slicing(replicas=3), App(outdir=str(tmp_path)), Kubernetes()
    without = {"node_feature_discovery": False, "gpu_feature_discovery": False}
    DevicePluginChart(app, "plugin", platform=platform, sharing=sharing, **without)
    chart = Chart(app, "chat", namespace="chat")
    GpuNamespace(chart, "namespace", name="chat", pod_security="baseline")
    profile = GpuProfile(platform=platform, sharing=sharing)
    for name in "abcd":
        GpuWorkload(chart, name, image="a/b:1", profile=profile, gpus=GpuRequest(vram="1Gi"))
    CapacityPlan(app, GpuInventory(nodes=[GpuNode(name="one", vram="24Gi")]))
    assert problems(synthesize, app) == [text.strip() for text in PLAN.blocks("text")]


def test_members_of_a_node_and_verdicts_are_the_code_s() -> None:
    named = [name.strip(" `") for row in PLAN.table("`GpuNode(...)`") for name in row[0].split(",")]
    assert sorted(named) == sorted(field.name for field in dataclasses.fields(GpuNode))
    # A search that gives up is told elsewhere.
    assert set(PLAN.column("memory is")) == {*get_args(VramVerdict)} - {"undecided"}


def test_the_plans_of_dist_have_the_numbers_of_field_notes() -> None:
    expected = {
        "talos-rtx5070ti": (5, 5, "overcommitted"),
        "talos-rtx3090": (8, 9, "safe"),
        "talos-gpu-operator": (15, 15, "safe"),
        "kubernetes-basic": (1, 1, "safe"),
    }
    reports = dist.DIST / "reports"
    plans = {name: json.loads((reports / name / "capacity-plan.json").read_text()) for name in dist.CLUSTERS}
    for name, plan in plans.items():
        stock = plan["stock"]["nvidia.com/gpu"]
        assert (stock["total"], stock["wanted"], plan["verdict"]["vram"]) == expected[name]
        assert f"](../dist/reports/{name}/capacity-plan.txt)" in PLAN.raw
    plan = plans["talos-rtx5070ti"]
    ((device,),) = (node["devices"] for node in plan["nodes"])
    assert device["vramMiB"] == 16303
    assert 10 * 1024 <= device["typicalMiB"] <= 12 * 1024
    names = [one["name"] for one in plan["consumers"]]
    assert ["comfyui", "ollama"] in [sorted(names[pod["consumer"]] for pod in c["pods"]) for c in plan["conflicts"]]


# --- sharing --------------------------------------------------------------------------------------------------

MODES = ("exclusive", "time-slicing", "slices of memory", "MPS", "MIG", "vGPU", "DRA")
ROWS = {row[0]: dict(zip(MODES, row[1:], strict=True)) for row in SHARING.table("property")}


def test_the_pods_of_each_mode_ask_for_what_is_said(tmp_path: Path) -> None:
    for number, (resource, count) in enumerate(
        [("gpu", 1), ("gpu.shared", 1), ("gpu", 20), ("gpu", 1), ("mig-1g.10gb", 1)]
    ):
        (folder := tmp_path / str(number)).mkdir()
        asked: Counter[str] = Counter()
        for pod in (pod for one in SHARING.written(number, folder) for pod in pod_specs(one)):
            for container in pod["containers"]:
                given = (container.get("resources") or {}).get("limits", {})
                asked.update({name: int(amount) for name, amount in given.items() if name.startswith("nvidia.com/")})
        assert asked == {f"nvidia.com/{resource}": count}
        assert f"`nvidia.com/{resource}`" in ROWS["pods request"][MODES[number]]


def test_the_units_of_the_example_do_not_fit_together(tmp_path: Path) -> None:
    made = SHARING.written(2, tmp_path)
    (config,) = (yaml.safe_load(one["data"]["config.yaml"]) for one in made if "config.yaml" in one.get("data", {}))
    ((replicas,),) = ([one["replicas"] for one in config["sharing"]["timeSlicing"]["resources"]],)
    assert f"which is {replicas} slots of 1Gi" in SHARING.text
    pods = {one["metadata"]["name"]: one for one in made if one["kind"] == "Deployment"}
    rows = SHARING.table("pod")
    assert set(SHARING.column("pod")) == {name for name in pods if "node-feature-discovery" not in name}
    for name, takes, asks in rows:
        deployment = pods[name.strip("`")]
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        assert deployment["metadata"]["annotations"]["gpu-constructs/vram"] == takes
        assert f"`nvidia.com/gpu: {container['resources']['limits']['nvidia.com/gpu']}`" == asks
    budgets = [int(takes.removesuffix("Gi")) for _, takes, _ in rows]
    assert f"{budgets[0]} + {budgets[1]} slots are more than {replicas}" in SHARING.text
    assert max(budgets) <= replicas < sum(budgets)


def test_every_mode_is_said_as_in_the_table() -> None:
    said = {mode: text.strip("`") for mode, text in ROWS["set by"].items()}
    known = {"Sharing": Sharing, "Backend": Backend}
    made = {mode: eval(said[mode], known) for mode in MODES if mode not in ("MIG", "vGPU")}
    assert [made[mode].strategy for mode in ("exclusive", "time-slicing", "MPS")] == ["none", "time-slicing", "mps"]
    assert made["slices of memory"].vram_unit == "1Gi"
    assert made["DRA"].is_dra
    assert eval(f"dict({said['MIG']})") == {"mig_strategy": "mixed"}


def test_the_most_slots_and_units_are_the_code_s() -> None:
    for way, made in (("MPS", Sharing.mps), ("time-slicing", Sharing.time_slicing)):
        most = int(ROWS["maximum for each GPU"][way].split()[0])
        assert [refuses(lambda made=made, n=n: made(replicas=n)) for n in (1, 2, most, most + 1)] == [1, 0, 0, 1]
        assert made(replicas=2).fail_requests_greater_than_one
    assert "The minimum of `replicas` is 2" in SHARING.text
    assert "This library turns the option on by default" in SHARING.text
    most = int(ROWS["maximum for each GPU"]["slices of memory"].removesuffix(" slots"))
    many = int(re.findall(r"With more than (\d+) slots, `synth` warns", SHARING.text)[0])
    assert f"at most {most} slots" in SHARING.text
    for units in (most, many + 1):
        with pytest.warns(GpuConstructsWarning):
            Sharing.vram_units(vram=f"{units}Mi", unit="1Mi")
    assert refuses(lambda: Sharing.vram_units(vram=f"{most + 1}Mi", unit="1Mi"))
    assert not refuses(lambda: Sharing.vram_units(vram=f"{many}Mi", unit="1Mi"))
    budget, units = re.findall(r"([\d.]+Gi) requests (\d+) slots of 1Gi\.", SHARING.text)[0]
    assert Sharing.vram_units(vram="16303Mi").units(budget) == int(units)


def test_mig_and_dra_are_where_it_is_said() -> None:
    assert (ROWS["combines with"]["time-slicing"], ROWS["combines with"]["MPS"]) == ("MIG", "")
    device = {"nvidia.com/mig-1g.10gb": 2}
    assert not refuses(lambda: Sharing.time_slicing(resources=device))
    assert refuses(lambda: Sharing(strategy="mps", resources=device))
    assert ROWS["GeForce boards"]["MIG"] == "no"
    assert all(profiles == () for name, profiles in MIG_PROFILES.items() if "GeForce" in name)
    for name in ("A10G", "L4", "L40S"):
        assert name in SHARING.text
        assert MIG_PROFILES[f"NVIDIA {name}"] == ()
    for profile in ("1g.10gb", "3g.40gb"):
        assert f"`{profile}`" in SHARING.text
        assert profile in MIG_PROFILES["NVIDIA H100 80GB HBM3"]
    lines, backend = [f"1.{minor}" for minor in range(10, 15)], Backend.dra_claims()
    serving = [line for line in lines if not refuses(lambda v=line: GpuProfile(platform=Talos(v), backend=backend))]
    assert ROWS["Talos"]["DRA"].removesuffix(" and later") == serving[0]
    assert ROWS["Talos"]["exclusive"].removesuffix(" and later") == lines[0]
    assert "on Kubernetes 1.34 or later" in SHARING.text
    assert not refuses(lambda: GpuProfile(platform=Kubernetes("1.34"), backend=backend))
    assert refuses(lambda: GpuProfile(platform=Kubernetes("1.33"), backend=backend))


# --- the device plugin ----------------------------------------------------------------------------------------

FACTS = beside(__file__, "plan_pages")["facts"]


def test_the_table_of_the_plugin_s_releases_is_the_one_in_the_code() -> None:
    releases = versions.DEVICE_PLUGIN
    (head,) = re.findall(r"\| setting \| (.+) \|\n", PLUGIN.raw)
    columns = {title: documents.releases_of(title, releases) for title in head.split(" | ")}
    assert [version for column in columns.values() for version in column] == list(releases)
    rows = {row[0]: dict(zip(columns, row[1:], strict=True)) for row in PLUGIN.table("setting")}
    for name, fact in FACTS.items():
        for title, cell in rows.pop(name).items():
            facts = {getattr(releases[version], fact) for version in columns[title]}
            assert facts == {cell == "yes"}, (name, title)
    for title, cell in rows.pop("`cdi_feature_flags`").items():
        assert {len(releases[version].cdi_feature_flags) for version in columns[title]} == {int(cell.split()[0])}, title
    nfd = rows.pop("Node Feature Discovery")
    assert rows == {}
    for title, cell in nfd.items():
        assert {releases[version].node_feature_discovery.version for version in columns[title]} == {cell}
    (kept,) = re.findall(r"dp_disable_healthchecks=\[([\d, ]+)\]", "".join(PLUGIN.programs))
    # A GPU that must be reset is no example.
    assert not {int(xid) for xid in kept.split(",")} & set(AlertThresholds().xid_critical)


# --- power limits ---------------------------------------------------------------------------------------------


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with launcher(("sh",), tmp_path) as scripts:
        yield Node(tmp_path, scripts)


def test_each_program_has_an_agent_for_each_pool(tmp_path: Path) -> None:
    for number, app in enumerate(POWER.apps):
        (folder := tmp_path / str(number)).mkdir()
        agents = [
            one["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/name"]
            for one in POWER.written(number, folder)
            if one["kind"] == "DaemonSet" and next(pod_specs(one))["containers"][0]["name"] == "powerlimit"
        ]
        assert agents == ["nvidia-powerlimit"] * (2 if "for pool" in app else 1)


def test_boards_and_keys_are_listed_as_the_code_has_them() -> None:
    assert POWER.table("name") == [
        [one.name, str(one.default_watts or "?"), one.watts_in_words() or "?", str(one.vram_mib or "?")]
        for one in GPU_MODELS.values()
    ]
    keys = [key.strip(":") for key in POWER.column("key")]
    given = {"name:*": 1, "index:0": 1, "pci:01:00.0": 1, "uuid:GPU-1": 1}
    assert [request.target for request in power_requests(1, given)] == [*keys, None]
    for number, row in enumerate(POWER.table("key"), start=1):
        assert row[2] == ", ".join([*(f"`{key}:`" for key in keys[number:]), "`watts`"])


def test_the_log_that_is_shown_is_the_agent_s(node: Node) -> None:
    node.gpu(0)
    node.gpu(1, name="NVIDIA GeForce RTX 5090", limit="575.00", low="400.00", high="600.00", default="575.00")
    written = node.once(0, POWER_LIMIT="300") + node.once(0, POWER_LIMIT="300")
    shown, found = (re.sub(r"^ts=\S+ ", "", text, flags=re.M) for text in (POWER.blocks("text")[1], written))
    assert shown == found


def test_what_the_log_and_the_exit_codes_say_is_in_the_script() -> None:
    for said in POWER.column("in the log"):
        code = re.fullmatch(r"set failed rc=(\d+)", said)
        if said == "not supported, set failed rc=3":
            assert 'problem="not supported, set failed rc=$rc"' in script()
        else:
            assert (f"        {code[1]}) hint=" if code else said) in script(), said
    assert "rounded down to whole watts" in POWER.text
    assert "the container ends with exit code 69" in POWER.text
    assert "Exit code 64 means that" in POWER.text
    assert {"exit 64", "exit 69"} <= {line.strip() for line in re.findall(r"exit \d+", script())}


def test_the_metrics_and_their_labels_are_the_agent_s(node: Node) -> None:
    node.gpu()
    node.once(0, POWER_LIMIT="300", METRICS_FILE=str(node.metrics))
    lines = [line for line in node.metrics.read_text().splitlines() if not line.startswith("#")]
    assert [line.partition("{")[0] for line in lines] == POWER.column("metric")
    assert "Each metric has the labels `{}`, `{}` and `{}`".format(*re.findall(r"(\w+)=", lines[0])) in POWER.text

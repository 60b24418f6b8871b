"""NVIDIA's device plugin: with the pods that the library renders, a node offers what a capacity plan says."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster import Cluster, Manifest, eventually
from container import Containers, Host, device_plugin_image, pod_of
from device_manager import DeviceManager, RefusedError
from gpu_constructs import (
    App,
    CapacityPlan,
    Configs,
    DevicePlugin,
    DevicePluginChart,
    GpuInventory,
    GpuNode,
    Kubernetes,
    PluginConfig,
    Sharing,
    Talos,
)
from gpu_constructs.catalog.platforms import Platform
from gpu_host import gpu_host
from kubelet import Node
from mock_driver import DRIVER

NAMESPACE, NODE = "nvidia-device-plugin", "gpu-node"
PLUGIN, CONTAINER, SIDECAR = "nvidia-device-plugin", "nvidia-device-plugin-ctr", "nvidia-device-plugin-sidecar"
GPU, SHARED = "nvidia.com/gpu", "nvidia.com/gpu.shared"
LABEL = "nvidia.com/device-plugin.config"
RTX_3090, H100, A100 = "NVIDIA GeForce RTX 3090", "NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-40GB"
PRO_6000 = "NVIDIA RTX PRO 6000 Blackwell Server Edition"
DIST = Path(__file__).parents[2] / "dist"

# What the MPS control daemon starts and asks; it writes down what it is told.
MPS_CONTROL = """#!/bin/sh
if [ "$1" = -d ]; then : >"$CUDA_MPS_LOG_DIRECTORY/control.log"; exit; fi
read -r line
echo "$line" >>"$CUDA_MPS_PIPE_DIRECTORY/told"
"""


@dataclass(frozen=True)
class Case:
    """A node, and the chart of the device plugin."""

    node: GpuNode
    chart: Mapping[str, Any] = field(default_factory=dict)

    @property
    def platform(self) -> Platform:
        return self.chart.get("platform", Talos("1.12.11"))


def case(gpu_model: str | None = RTX_3090, gpus: int = 2, mig: Any = None, labels: Any = None, **chart: Any) -> Case:
    """Return a case; without more than this, two boards that are not shared, on Talos."""
    return Case(GpuNode(name=NODE, gpu_model=gpu_model, gpus=gpus, mig_layout=mig, labels=labels or {}), chart)


class Rendered:
    """The objects of a chart, and what a capacity plan says about its node.

    Attributes:
        objects: The objects.
        plan: How many of each resource the node offers.
        devices: The devices of the node.
    """

    def __init__(self, folder: Path, version: str, case: Case) -> None:
        app = App(outdir=str(folder / "dist"))
        chart = {"platform": case.platform, **case.chart}
        DevicePluginChart(app, PLUGIN, namespace=NAMESPACE, version=version, **chart)
        plan = CapacityPlan(app, GpuInventory(nodes=[case.node]))
        self.objects = list(yaml.load_all(app.synth_yaml(), yaml.CSafeLoader))
        self.plan = dict(plan.plan.nodes[0].offer.allocatable)
        self.devices = plan.plan.nodes[0].offer.devices

    def daemonset(self, name: str = PLUGIN) -> Manifest:
        return next(one for one in self.objects if (one["kind"], one["metadata"]["name"]) == ("DaemonSet", name))


class Running:
    """A node where the device plugin runs.

    Attributes:
        host: The node.
        manager: The device manager of its kubelet.
        plugin: The containers of the device plugin.
    """

    def __init__(self, host: Host, manager: DeviceManager, plugin: Containers) -> None:
        self.host, self.manager, self.plugin = host, manager, plugin

    def until(self, offered: Mapping[str, int]) -> None:
        """Wait until the node offers this and nothing else."""
        eventually(lambda: self.manager.allocatable() == offered, f"the node offers {offered}", state=self.state)

    def cdi(self) -> Mapping[str, Any]:
        """Return the CDI specification that the plugin wrote on the node."""
        (path,) = (self.host.root / "var/run/cdi").iterdir()
        return json.loads(path.read_text())

    def state(self) -> str:
        """Return what the node offers, and the end of what the plugin printed."""
        return f"{self.manager.allocatable()}\n{self.plugin[CONTAINER].output()[-1500:]}"


@contextmanager
def node_of(folder: Path, nvidia: Any, case: Case) -> Iterator[tuple[Host, DeviceManager]]:
    """Start a node without pods."""
    tools = {"nvidia-cuda-mps-control": MPS_CONTROL}
    host = gpu_host(folder, nvidia, device_plugin_image(nvidia), case.node, case.platform, tools=tools)
    with host, DeviceManager(host.root) as manager:
        yield host, manager


@contextmanager
def running(folder: Path, nvidia: Any, case: Case, rendered: Rendered | None = None) -> Iterator[Running]:
    """Run the device plugin of a chart, with the MPS control daemon where the chart has one."""
    rendered = rendered or Rendered(folder, nvidia.version, case)
    with node_of(folder, nvidia, case) as (host, manager):
        if case.chart.get("sharing", Sharing.none()).strategy == "mps":
            start_mps(host, rendered)
        plugin = host.run(pod_of(rendered.daemonset(), NODE), rendered.objects)
        yield Running(host, manager, plugin)


def start_mps(host: Host, rendered: Rendered) -> Containers:
    """Run the MPS control daemon until it is ready."""
    daemon = host.run(pod_of(rendered.daemonset(f"{PLUGIN}-mps-control-daemon"), NODE), rendered.objects)
    program = daemon["mps-control-daemon-ctr"]
    program.wait_until(lambda: any((host.root / "run/nvidia/mps").rglob(".started")) or "healthy" in program.output())
    return daemon


def config(text: str) -> PluginConfig:
    return PluginConfig.from_yaml(f"version: v1\n{text}")


TWICE = Sharing.time_slicing(replicas=2)
H100_SPLIT = [{"1g.10gb": 7}, {"1g.10gb": 7}]
H100_MIXED = [{"1g.10gb+me": 1, "1g.10gb": 3}, {"1g.20gb": 4}]
CASES = {
    "whole": case(),
    "whole-on-kubernetes": case(platform=Kubernetes()),
    "time-slicing": case(sharing=Sharing.time_slicing(replicas=5)),
    "time-slicing-renamed": case(sharing=Sharing.time_slicing(replicas=4, rename_by_default=True)),
    "time-slicing-on-kubernetes": case(platform=Kubernetes(), sharing=TWICE),
    "vram-units": case(gpus=1, sharing=Sharing.vram_units(vram="24576Mi")),
    "vram-units-renamed": case(gpus=1, sharing=Sharing.vram_units(vram="24Gi", rename_by_default=True)),
    "mps": case(platform=Kubernetes(), sharing=Sharing.mps(replicas=8)),
    "mps-renamed": case(platform=Kubernetes(), sharing=Sharing.mps(replicas=4, rename_by_default=True)),
    "a-file": case(config=config("sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 3}]}}")),
    "mig-undivided": case(H100, mig_strategy="mixed"),
    "mig-not-told": case(H100, mig=H100_SPLIT),
    "mig-single": case(H100, mig=H100_SPLIT, mig_strategy="single"),
    "mig-single-shared": case(H100, mig=H100_SPLIT, mig_strategy="single", sharing=TWICE),
    "mig-mixed": case(A100, mig=[{"1g.5gb": 3, "2g.10gb": 2}, {"3g.20gb": 2}], mig_strategy="mixed"),
    "mig-mixed-beside-a-board": case(A100, mig=[{"1g.5gb": 7}, {}], mig_strategy="mixed"),
    "mig-mixed-attributes": case(H100, mig=H100_MIXED, mig_strategy="mixed"),
    "mig-mixed-shared": case(
        H100,
        mig=H100_MIXED,
        mig_strategy="mixed",
        sharing=Sharing.time_slicing(resources={"nvidia.com/mig-1g.10gb": 2}),
    ),
    "by-cdi": case(platform=Talos("1.13"), device_list_strategy="cdi-cri"),
    "by-mounts": case(platform=Kubernetes(), device_list_strategy="volume-mounts"),
    "by-two-strategies": case(platform=Kubernetes(), device_list_strategy=["envvar", "cdi-annotations"]),
    "device-nodes": case(platform=Kubernetes(), config=config("flags: {plugin: {passDeviceSpecs: true}}")),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_node_offers_what_the_plan_says(nvidia, tmp_path, case):
    rendered = Rendered(tmp_path, nvidia.version, case)
    assert rendered.plan
    with running(tmp_path, nvidia, case, rendered) as node:
        node.until(rendered.plan)
        assert node.manager.capacity() == rendered.plan


def dist(cluster: str) -> tuple[Case, list[Manifest], dict[str, int]]:
    """Return the node of a cluster of dist/, the objects of its device plugin, and what its report says."""
    (planned,) = json.loads((DIST / "reports" / cluster / "capacity-plan.json").read_text())["nodes"]
    gpus = len({device["gpu"] for device in planned["devices"]})
    path = DIST / cluster / "nvidia-device-plugin.k8s.yaml"
    objects = list(yaml.load_all(path.read_text(), yaml.CSafeLoader)) if path.exists() else []
    platform = Kubernetes() if cluster.startswith("kubernetes") else Talos("1.12.11")
    return case(planned["gpuModel"] or None, gpus, platform=platform), objects, planned["allocatable"]


@pytest.mark.parametrize("name", ["kubernetes-basic", "talos-rtx3090", "talos-rtx5070ti"])
def test_a_cluster_of_dist_offers_what_its_report_says(nvidia, tmp_path, name):
    like, objects, planned = dist(name)
    plugin = next(one for one in objects if (one["kind"], one["metadata"]["name"]) == ("DaemonSet", PLUGIN))
    assert planned
    with node_of(tmp_path, nvidia, like) as (host, manager):
        node = Running(host, manager, host.run(pod_of(plugin, NODE), objects))
        node.until(planned)


def test_the_gpu_operator_of_dist_gets_a_configuration_that_offers_what_its_report_says(nvidia, tmp_path):
    like, _, planned = dist("talos-gpu-operator")
    values = yaml.safe_load((DIST / "helm-values/talos-gpu-operator/gpu-operator.values.yaml").read_text())
    (text,) = values["devicePlugin"]["config"]["data"].values()
    with running(tmp_path, nvidia, Case(like.node, {"config": PluginConfig.from_yaml(text)})) as node:
        node.until(planned)


# --- what a container gets -----------------------------------------------------------------------------------------

UUID = "GPU-00000000-0000-4000-8000-000000000000"
CDI_NAME = f"k8s.device-plugin.nvidia.com/gpu={UUID}"
MOUNTED = "/var/run/nvidia-container-devices"
NODES = ["/dev/nvidia-modeset", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia0", "/dev/nvidiactl"]


def reply(answer: Any) -> dict[str, Any]:
    """Return what a container gets, without what is empty."""
    found = {
        "env": dict(answer.envs),
        "mounts": {mount.container_path: mount.host_path for mount in answer.mounts},
        "devices": sorted(device.host_path for device in answer.devices),
        "annotations": sorted(answer.annotations.values()),
        "cdi": [device.name for device in answer.cdi_devices],
    }
    return {key: value for key, value in found.items() if value}


BY_ENV = {"env": {"NVIDIA_VISIBLE_DEVICES": UUID}}
REPLIES = {
    "envvar": (case(gpus=1), BY_ENV),
    "volume-mounts": (
        case(gpus=1, platform=Kubernetes(), device_list_strategy="volume-mounts"),
        {"env": {"NVIDIA_VISIBLE_DEVICES": MOUNTED}, "mounts": {f"{MOUNTED}/{UUID}": "/dev/null"}},
    ),
    "cdi-annotations": (
        case(gpus=1, platform=Talos("1.13"), device_list_strategy="cdi-annotations"),
        {"annotations": [CDI_NAME]},
    ),
    "cdi-cri": (case(gpus=1, platform=Talos("1.13"), device_list_strategy="cdi-cri"), {"cdi": [CDI_NAME]}),
    "cdi-cri-on-kubernetes": (case(gpus=1, platform=Kubernetes(), device_list_strategy="cdi-cri"), {"cdi": [CDI_NAME]}),
    "envvar-and-cdi": (
        case(gpus=1, platform=Talos("1.13"), device_list_strategy=["envvar", "cdi-annotations"]),
        {**BY_ENV, "annotations": [CDI_NAME]},
    ),
    "device-nodes": (
        case(gpus=1, platform=Talos("1.13"), config=config("flags: {plugin: {passDeviceSpecs: true}}")),
        {**BY_ENV, "devices": NODES},
    ),
    "a-slot": (case(gpus=1, sharing=TWICE), BY_ENV),
    "mps": (
        case(gpus=1, platform=Kubernetes(), sharing=Sharing.mps(replicas=8)),
        {
            "env": {**BY_ENV["env"], "CUDA_MPS_PIPE_DIRECTORY": f"/mps/{GPU}/pipe"},
            "mounts": {f"/mps/{GPU}/pipe": f"/run/nvidia/mps/{GPU}/pipe", "/dev/shm": "/run/nvidia/mps/shm"},
        },
    ),
}


@pytest.mark.parametrize(("case", "expected"), REPLIES.values(), ids=REPLIES)
def test_a_container_gets_its_gpu_as_the_strategy_promises(nvidia, tmp_path, case, expected):
    with running(tmp_path, nvidia, case) as node:
        node.until({GPU: case.chart.get("sharing", Sharing.none()).replicas})
        answer = reply(node.manager.allocate(GPU, 1))
        assert answer == expected
        for path in (*answer.get("devices", ()), *answer.get("mounts", {}).values()):
            assert path == "/dev/null" or (node.host.root / path.lstrip("/")).exists(), path


@pytest.mark.parametrize("replicas", [2, 8])
def test_the_mps_control_daemon_limits_a_slot_to_its_part_of_the_memory(nvidia, tmp_path, replicas):
    shared = case(gpus=1, platform=Kubernetes(), sharing=Sharing.mps(replicas=replicas))
    rendered = Rendered(tmp_path, nvidia.version, shared)
    with running(tmp_path, nvidia, shared, rendered) as node:
        node.until({GPU: replicas})
        told = (node.host.root / f"run/nvidia/mps/{GPU}/pipe/told").read_text().splitlines()
        assert f"set_default_device_pinned_mem_limit 0 {rendered.devices[0].vram_each_mib}M" in told
        assert f"set_default_active_thread_percentage {100 // replicas}" in told
        mounts = (Path(node.host.mount_namespace).parents[1] / "mountinfo").read_text()
        assert f"{node.host.root}/run/nvidia/mps/shm " in mounts


SEVERAL = Sharing.time_slicing(replicas=4, fail_requests_greater_than_one=False)
MOST_ONE = [
    pytest.param(Sharing.time_slicing(replicas=4), GPU, True, id="slots-by-default"),
    pytest.param(Sharing.time_slicing(replicas=4, rename_by_default=True), SHARED, True, id="renamed-slots"),
    pytest.param(
        Sharing.time_slicing(replicas=4, fail_requests_greater_than_one=False), GPU, False, id="several-slots"
    ),
    pytest.param(Sharing.vram_units(vram="8Gi"), GPU, False, id="units-of-memory"),
    pytest.param(Sharing.mps(replicas=4), GPU, True, id="mps"),
]


@pytest.mark.parametrize(("sharing", "resource", "is_refused"), MOST_ONE)
def test_two_slots_for_a_container_are_refused_where_the_plan_says_so(nvidia, tmp_path, sharing, resource, is_refused):
    shared = case(gpus=1, platform=Kubernetes(), sharing=sharing)
    with running(tmp_path, nvidia, shared) as node:
        node.until({resource: sharing.replicas})
        assert node.manager.allocate(resource, 1).envs
        if is_refused:
            with pytest.raises(RefusedError, match="maximum request size for shared resources is 1"):
                node.manager.allocate(resource, 2)
        else:
            assert node.manager.allocate(resource, 2).envs


# --- CDI -----------------------------------------------------------------------------------------------------------


def host_paths(specification: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the paths of the node that a CDI specification names: device nodes, files and hooks."""
    edits = [specification["containerEdits"], *(one["containerEdits"] for one in specification["devices"])]
    return {
        "nodes": [node.get("hostPath", node["path"]) for one in edits for node in one.get("deviceNodes", ())],
        "files": [mount["hostPath"] for one in edits for mount in one.get("mounts", ())],
        "hooks": [hook["path"] for one in edits for hook in one.get("hooks", ())],
    }


@pytest.mark.parametrize("platform", [Talos("1.13"), Talos("1.14"), Kubernetes()], ids=str)
@pytest.mark.parametrize("strategy", ["cdi-annotations", "cdi-cri"])
def test_a_cdi_specification_names_what_is_on_the_node(nvidia, tmp_path, platform, strategy):
    with running(tmp_path, nvidia, case(platform=platform, device_list_strategy=strategy)) as node:
        node.until({GPU: 2})
        named = host_paths(node.cdi())
        assert {"/dev/nvidia0", "/dev/nvidia1", "/dev/nvidiactl"} <= {*named["nodes"]}
        assert any(path.endswith(f"libcuda.so.{DRIVER}") for path in named["files"])
        missing = [path for paths in named.values() for path in paths if not (node.host.root / path[1:]).exists()]
        assert not missing


def test_a_cdi_specification_names_mig_devices_of_the_node(nvidia, tmp_path):
    split = case(H100, mig=H100_SPLIT, platform=Talos("1.13"), mig_strategy="mixed", device_list_strategy="cdi-cri")
    with running(tmp_path, nvidia, split) as node:
        node.until({"nvidia.com/mig-1g.10gb": 14})
        named = {f"{node.cdi()['kind']}={device['name']}" for device in node.cdi()["devices"]}
        answer = reply(node.manager.allocate("nvidia.com/mig-1g.10gb", 1))
        assert {*answer["cdi"]} <= named
        nodes = host_paths(node.cdi())["nodes"]
        assert any("nvidia-cap" in path for path in nodes)
        assert not [path for path in nodes if not (node.host.root / path[1:]).exists()]


# --- health --------------------------------------------------------------------------------------------------------


def healthy(node: Running, resource: str = GPU) -> list[bool]:
    return [state == "Healthy" for _, state in sorted(node.manager.devices(resource).items())]


XIDS = [
    pytest.param({}, 79, False, id="an-error-of-the-gpu"),
    pytest.param({}, 13, True, id="an-error-of-a-program"),
    pytest.param({"dp_disable_healthchecks": [79, 94]}, 79, True, id="disabled"),
    pytest.param({"dp_disable_healthchecks": [94]}, 79, False, id="another-disabled"),
    pytest.param({"dp_enable_healthchecks": [13]}, 13, False, id="enabled"),
    pytest.param({"dp_enable_healthchecks": "all"}, 31, False, id="all-enabled"),
]


@pytest.mark.parametrize(("options", "xid", "is_kept"), XIDS)
def test_an_xid_takes_a_gpu_away_unless_it_is_ignored(nvidia, tmp_path, options, xid, is_kept):
    with running(tmp_path, nvidia, case(device_plugin=DevicePlugin(**options))) as node:
        node.until({GPU: 2})
        node.host.driver.report_xid(0, xid)
        # The plugin reads them in this order, so it has seen the first when it acts on the second.
        node.host.driver.report_xid(1, 48)
        eventually(lambda: healthy(node) == [is_kept, False], "the second GPU is unhealthy", state=node.state)
        assert node.manager.capacity() == {GPU: 2}


ONE_BOARD = [
    pytest.param(case(gpus=1, sharing=Sharing.time_slicing(replicas=4)), GPU, id="slots"),
    pytest.param(case(H100, 1, mig=[{"1g.10gb": 7}], mig_strategy="mixed"), "nvidia.com/mig-1g.10gb", id="mig-devices"),
]


@pytest.mark.parametrize(("case", "resource"), ONE_BOARD)
def test_an_xid_takes_one_part_of_a_gpu_away(nvidia, tmp_path, case, resource):
    with running(tmp_path, nvidia, case) as node:
        node.until(rendered := Rendered(tmp_path / "again", nvidia.version, case).plan)
        for xid in (79, 79):
            node.host.driver.report_xid(0, xid)
        eventually(lambda: node.plugin[CONTAINER].output().count("Xid=79") == 2, "both were seen", state=node.state)
        node.until({resource: rendered[resource] - 1})


def test_a_plugin_that_ends_takes_its_gpus_away(nvidia, tmp_path):
    with running(tmp_path, nvidia, case()) as node:
        node.until({GPU: 2})
        node.plugin.stop()
        node.until({GPU: 0})
        assert node.manager.capacity() == {GPU: 2}


def test_a_plugin_that_ends_costs_a_node_the_gpus_of_another_one(nvidia, tmp_path):
    """The pods of two configurations keep apart on a node, since this is what would happen."""
    with running(tmp_path, nvidia, case()) as node:
        node.until({GPU: 2})
        shared = case(sharing=TWICE)
        rendered = Rendered(tmp_path / "shared", nvidia.version, shared)
        node.host.run(pod_of(rendered.daemonset(), NODE), rendered.objects)
        node.until({GPU: 4})
        node.plugin.stop()
        node.until({GPU: 0})


def test_a_plugin_registers_again_when_the_kubelet_restarts(nvidia, tmp_path):
    with running(tmp_path, nvidia, case()) as node:
        node.until({GPU: 2})
        node.manager.stop()
        node.manager.start()
        eventually(lambda: len(node.manager.registrations) == 2, "the plugin registers again", state=node.state)
        node.until({GPU: 2})


# --- several configurations ---------------------------------------------------------------------------------------

POOLS = {
    "whole": PluginConfig(),
    "shared": PluginConfig(sharing=TWICE),
    "more": PluginConfig(sharing=Sharing.time_slicing(replicas=4, rename_by_default=True)),
}


class Pools:
    """A cluster with a node, and a device plugin with several configurations.

    Attributes:
        host: The node.
        manager: The device manager of its kubelet.
    """

    def __init__(self, cluster: Cluster, host: Host, manager: DeviceManager, configs: Configs) -> None:
        self.host, self.manager, self._cluster, self._configs = host, manager, cluster, configs
        self._running: dict[str, Containers] = {}

    def apply(self, folder: Path, version: str) -> None:
        """Apply the chart: the plugin with what it needs."""
        alone = {"node_feature_discovery": "external", "gpu_feature_discovery": False}
        rendered = Rendered(folder, version, case(config=self._configs, **alone))
        self._cluster.apply(*rendered.objects)

    def relabel(self, name: str | None) -> None:
        """Label the node with the name of a configuration."""
        self._cluster.patch({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}, labelled(name))

    def follow(self) -> Containers | None:
        """Run the plugin pods that the node has now, and end others, as a kubelet does; return the newest."""
        pods = [pod for pod in self._cluster.pods(NAMESPACE) if pod["spec"].get("nodeName") == NODE]
        now = {pod["metadata"]["uid"]: pod for pod in pods}
        for uid in [*self._running]:
            if uid not in now:
                self._running.pop(uid).stop()
        for uid, pod in now.items():
            if uid not in self._running:
                self._running[uid] = self.host.run(pod, cluster=self._cluster)
        return [*self._running.values()][-1] if self._running else None

    def until(self, offered: Mapping[str, int]) -> Containers:
        """Follow the pods until the node offers this, and return the plugin."""

        def check() -> Containers | None:
            plugin = self.follow()
            return plugin if {name: n for name, n in self.manager.allocatable().items() if n} == offered else None

        return eventually(check, f"the node offers {offered}", state=self.manager.allocatable)


def labelled(name: str | None) -> Manifest:
    return {"metadata": {"labels": {LABEL: name}}}


@pytest.fixture
def pools(cluster, kubelets, nvidia, tmp_path) -> Iterator[Callable[[Configs], Pools]]:
    with node_of(tmp_path, nvidia, case()) as (host, manager):

        def make(configs: Configs) -> Pools:
            made = Pools(cluster, host, manager, configs)
            made.apply(tmp_path, nvidia.version)
            kubelets.register(Node(NODE, {"nvidia.com/gpu.present": "true"}))
            return made

        yield make


# That is what the library has to say about every Configs.managed.
RACY = pytest.mark.filterwarnings("ignore:.*config-manager first selects the default configuration")


@RACY
def test_a_managed_node_changes_its_configuration_without_a_new_pod(pools):
    node = pools(Configs.managed(POOLS, default="whole"))
    first = node.until({GPU: 2})
    for name, offered in (("shared", {GPU: 4}), ("more", {SHARED: 8}), (None, {GPU: 2})):
        node.relabel(name)
        assert node.until(offered) is first
        assert first[CONTAINER].exit_status is None


@RACY
def test_a_managed_node_with_an_unknown_configuration_keeps_its_gpus(pools):
    node = pools(Configs.managed(POOLS, default="shared"))
    plugin = node.until({GPU: 4})
    node.relabel("unknown")
    assert plugin[SIDECAR].wait() == 1
    assert "unknown does not exist" in plugin[SIDECAR].output()
    # The kubelet starts it again and again, and so it ends each time.
    assert plugin.run(SIDECAR).wait() == 1
    assert node.until({GPU: 4}) is plugin
    node.relabel("whole")
    plugin.run(SIDECAR)
    node.until({GPU: 2})


def test_a_node_gets_the_plugin_of_the_configuration_that_its_label_names(pools):
    node = pools(Configs.named(POOLS, default="whole"))
    seen = {id(node.until({GPU: 2}))}
    for name, offered in (("shared", {GPU: 4}), ("more", {SHARED: 8}), ("unknown", {GPU: 2})):
        node.relabel(name)
        seen.add(id(node.until(offered)))
    assert len(seen) == 4

"""NVIDIA's GPU Feature Discovery publishes the labels that plans, rules and selectors count on.

It runs as the rendered pod states, against a real API server that enforces the rendered rights.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from assets import Nvidia
from cluster import Cluster, Found, eventually, is_bound
from container import Containers, device_plugin_image
from gpu_constructs import App, CapacityPlan, DevicePluginChart, GpuInventory, GpuNode, Kubernetes, Sharing, Talos
from gpu_constructs.capacity.node_labels import labels_of, measured_mig_mib
from gpu_constructs.catalog.gpu_models import GPU_MODELS
from gpu_constructs.catalog.mig_layouts import profiles_of
from gpu_constructs.catalog.mig_profiles import mig_resource
from gpu_constructs.catalog.platforms import Platform
from gpu_host import gpu_host
from kubelet import Node
from mock_driver import MockDriver, boards_of
from processes import Program

NAMESPACE, NODE = "nvidia-device-plugin", "gpu-node"
CONTAINER, COMPONENT = "gpu-feature-discovery-ctr", "gpu-feature-discovery"
NODE_FEATURE = "nfd.k8s-sigs.io/v1alpha1"
LONGEST_LABEL = 63
# The labels that the library derives from an inventory; the others are about driver, machine and engines.
DERIVED = re.compile(
    r"nvidia\.com/((gpu|mig-[^/]*)\.(count|memory|product|replicas|sharing-strategy)"
    r"|gpu\.(family|compute\.(major|minor))|mig\.(capable|strategy)|mps\.capable)"
)
OWNERS = {"0.18.2": [], "0.20.0": ["DaemonSet", "Pod"]}

RTX_5070_TI, RTX_3090 = "NVIDIA GeForce RTX 5070 Ti", "NVIDIA GeForce RTX 3090"
A100, H100, L40S = "NVIDIA A100-SXM4-40GB", "NVIDIA H100 80GB HBM3", "NVIDIA L40S"
SERVER, WORKSTATION, MAX_Q = (
    f"NVIDIA RTX PRO 6000 Blackwell {edition} Edition" for edition in ("Server", "Workstation", "Max-Q Workstation")
)
PRODUCT = "nvidia.com/gpu.product"
OF_THE_BOARD = {PRODUCT, *(f"nvidia.com/gpu.{one}" for one in ("memory", "family", "compute.major", "compute.minor"))}


@dataclass(frozen=True)
class Case:
    """A node, how the chart shares its GPUs, and the labels that cannot be derived from it."""

    node: GpuNode
    chart: Mapping[str, Any] = field(default_factory=dict)
    not_derived: frozenset[str] = frozenset()

    @property
    def platform(self) -> Platform:
        return self.chart.get("platform", Talos("1.12.11"))


def case(
    model: str | None, gpus: int = 1, *, mig: Any = None, not_derived: set[str] | None = None, **chart: Any
) -> Case:
    node = GpuNode(name=NODE, gpu_model=model, gpus=gpus, mig_layout=mig)
    return Case(node, chart, frozenset(not_derived or ()))


def shared(replicas: int = 4, **options: Any) -> Sharing:
    return Sharing.time_slicing(replicas=replicas, **options)


SINGLE, MIXED = {"mig_strategy": "single"}, {"mig_strategy": "mixed"}
SLICES = Sharing.time_slicing(resources={"nvidia.com/mig-1g.10gb": 2, "nvidia.com/gpu": 3})
CASES = {
    # The example clusters of app.py.
    "talos-rtx5070ti": case(RTX_5070_TI, sharing=shared(5)),
    "talos-rtx3090": case(RTX_3090, 2, sharing=shared()),
    "talos-gpu-operator": case(RTX_5070_TI, sharing=Sharing.vram_units(vram="16303Mi")),
    "kubernetes-basic": case(None, platform=Kubernetes(), not_derived=OF_THE_BOARD | {"nvidia.com/mig.capable"}),
    # Whole boards.
    "four L40S": case(L40S, 4),
    "renamed slots": case(RTX_3090, sharing=shared(rename_by_default=True)),
    "MPS": case(L40S, 2, platform=Kubernetes(), sharing=Sharing.mps(replicas=8)),
    "renamed slots of MPS": case(
        RTX_3090, platform=Kubernetes(), sharing=Sharing.mps(replicas=8, rename_by_default=True)
    ),
    "a board with MIG that is not divided": case(H100, 2, sharing=shared()),
    "no MIG, with a strategy": case(L40S, **SINGLE),
    # Divided boards.
    "divided boards without a strategy": case(H100, 2, mig={"1g.10gb": 7}),
    "single": case(H100, 2, mig={"1g.10gb": 7}, **SINGLE),
    "single, shared": case(A100, 2, mig={"3g.20gb": 2}, sharing=shared(), **SINGLE),
    "single, renamed": case(A100, 2, mig={"3g.20gb": 2}, sharing=shared(rename_by_default=True), **SINGLE),
    "single with a board that is not divided": case(H100, 2, mig=[{"1g.10gb": 7}, {}], **SINGLE),
    "single with two profiles": case(H100, mig={"1g.10gb": 3, "3g.40gb": 1}, **SINGLE),
    "mixed": case(H100, 2, mig=[{"1g.10gb+me": 1, "1g.10gb": 3}, {"1g.20gb": 4}], **MIXED),
    "mixed, shared": case(H100, mig={"1g.10gb": 3, "3g.40gb": 1}, sharing=SLICES, **MIXED),
    "mixed with a board that is not divided": case(H100, 2, mig=[{"3g.40gb": 2}, {}], sharing=shared(), **MIXED),
    "RTX PRO 6000, mixed": case(SERVER, 2, mig=[{"1g.24gb": 4}, {"1g.24gb+gfx": 2, "2g.48gb": 1}], **MIXED),
    # What Node Feature Discovery drops, for its length.
    "a product of 67 characters": case(MAX_Q, mig={"1g.24gb": 4}, not_derived={PRODUCT}, **SINGLE),
    "a product of 68 characters": case(
        WORKSTATION, mig={"1g.24gb": 4}, sharing=shared(), not_derived={PRODUCT}, **SINGLE
    ),
}


@dataclass(frozen=True)
class Running:
    """GPU Feature Discovery on a node.

    Attributes:
        containers: Its pod.
        derived: Labels that a capacity plan derives for the node.
    """

    cluster: Cluster
    containers: Containers
    derived: Mapping[str, str]

    @property
    def program(self) -> Program:
        return self.containers[CONTAINER]

    def restart(self) -> None:
        self.containers.run(CONTAINER)

    def node_feature(self) -> Found:
        """Return the object with the labels, as soon as there is one."""
        self.program.wait_until(lambda: self.find() is not None)
        return self.find() or {}

    def find(self) -> Found | None:
        return self.cluster.find(NODE_FEATURE, "NodeFeature", f"nvidia-features-for-{NODE}", NAMESPACE)


class Discovery:
    """A cluster with one node, on which GPU Feature Discovery runs as its chart states."""

    def __init__(self, cluster: Cluster, nvidia: Nvidia) -> None:
        self.cluster, self._nvidia = cluster, nvidia

    @contextmanager
    def of(self, one: Case, folder: Path, *, without: str = "") -> Iterator[Running]:
        """Apply the chart without the objects of a kind, and run the pod that its DaemonSet makes."""
        manifests, derived = rendered(one, self._nvidia, folder)
        self.cluster.apply(*[each for each in manifests if each["kind"] != without])
        image = device_plugin_image(self._nvidia)
        try:
            with gpu_host(folder / "node", self._nvidia, image, one.node, one.platform) as host:
                pod = eventually(self._pod, "the DaemonSet's pod has a node")
                eventually(lambda: self._has_rights() == (without != "RoleBinding"), "the rights are as applied")
                yield Running(self.cluster, host.run(pod, cluster=self.cluster), derived)
        finally:
            self._clean_up()

    def _has_rights(self) -> bool:
        account = f"{NAMESPACE}-{COMPONENT}"
        return self.cluster.may(account, NAMESPACE, "get", "nodefeatures.nfd.k8s-sigs.io")

    def _pod(self) -> Found | None:
        labels = f"app.kubernetes.io/component={COMPONENT}"
        return next(filter(is_bound, self.cluster.pods(NAMESPACE, labels=labels)), None)

    def _clean_up(self) -> None:
        for daemon_set in self.cluster.list("apps/v1", "DaemonSet", NAMESPACE):
            self.cluster.delete(daemon_set, propagation="Foreground")
        eventually(lambda: not self.cluster.list("v1", "Pod", NAMESPACE), "the pod is gone")
        for kind, api in (("NodeFeature", NODE_FEATURE), ("RoleBinding", "rbac.authorization.k8s.io/v1")):
            for one in self.cluster.list(api, kind, NAMESPACE):
                self.cluster.delete(one)
        # The next test would take these rights for its own.
        eventually(lambda: not self._has_rights(), "the rights are gone")


def rendered(one: Case, nvidia: Nvidia, folder: Path) -> tuple[list[Found], dict[str, str]]:
    """Return the objects that GPU Feature Discovery needs, and the labels that a plan derives for its node."""
    app = App(outdir=str(folder / "dist"))
    chart = {"platform": one.platform, "namespace": NAMESPACE, "version": nvidia.version, **one.chart}
    DevicePluginChart(app, NAMESPACE, **chart)
    plan = CapacityPlan(app, GpuInventory(nodes=[one.node]))
    manifests = [each for each in yaml.load_all(app.synth_yaml(), yaml.CSafeLoader) if is_needed(each)]
    labels = plan.plan.nodes[0].offer.labels
    return manifests, derivable(labels)


def is_needed(manifest: Found) -> bool:
    component = manifest["metadata"].get("labels", {}).get("app.kubernetes.io/component", COMPONENT)
    return component == COMPONENT or manifest["metadata"]["name"] == f"{NAMESPACE}-config"


def derivable(labels: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in labels.items() if DERIVED.fullmatch(key)}


@pytest.fixture(scope="module")
def discovery(sites, release, nvidia):
    """A cluster that is cleaned up after all tests of a release."""
    site = sites.site(release, "talos")
    site.kubelets.register(Node(NODE, {"nvidia.com/gpu.present": "true"}))
    yield Discovery(site.cluster, nvidia)
    site.cluster.reset()
    site.kubelets.forget()


@pytest.mark.parametrize("one", CASES.values(), ids=CASES)
def test_a_node_gets_the_labels_that_a_plan_derives(discovery, one, tmp_path):
    with discovery.of(one, tmp_path) as gfd:
        labels = derivable(gfd.node_feature()["spec"]["labels"])
        assert {key: value for key, value in labels.items() if key not in one.not_derived} == gfd.derived
        assert one.not_derived <= labels.keys()
        assert "forbidden" not in gfd.program.output()


@pytest.mark.parametrize("one", [one for name, one in CASES.items() if "characters" in name])
def test_a_label_that_is_too_long_for_a_node_is_none_that_a_plan_derives(discovery, one, tmp_path):
    with discovery.of(one, tmp_path) as gfd:
        assert len(gfd.node_feature()["spec"]["labels"][PRODUCT]) > LONGEST_LABEL
        assert PRODUCT not in gfd.derived


def test_the_labels_belong_to_daemonset_and_pod_from_0_20_0_on(discovery, nvidia, tmp_path):
    with discovery.of(CASES["talos-rtx3090"], tmp_path) as gfd:
        owners = gfd.node_feature()["metadata"].get("ownerReferences", [])
        assert [owner["kind"] for owner in owners] == OWNERS[nvidia.version]


def test_labels_that_somebody_changed_come_back_with_the_next_start(discovery, tmp_path):
    with discovery.of(CASES["talos-rtx3090"], tmp_path) as gfd:
        gfd.node_feature()
        gfd.program.stop()
        changed = gfd.node_feature()
        changed["spec"]["labels"] = {PRODUCT: "another"}
        discovery.cluster.replace(changed)
        gfd.restart()
        eventually(lambda: derivable(gfd.node_feature()["spec"]["labels"]) == gfd.derived, "the labels come back")


def test_without_the_rights_of_the_chart_there_are_no_labels(discovery, tmp_path):
    with discovery.of(CASES["talos-rtx3090"], tmp_path, without="RoleBinding") as gfd:
        assert gfd.program.wait() != 0
        assert "forbidden" in gfd.program.output()
        assert gfd.find() is None


@pytest.mark.parametrize("model", GPU_MODELS)
def test_every_board_of_the_library_has_the_labels_that_it_derives(nvidia, model, tmp_path):
    node = GpuNode(name=NODE, gpu_model=model)
    unknown = {"nvidia.com/gpu.memory"} if node.vram_mib is None else set()
    found = derivable(discovered(nvidia, node, "none", tmp_path))
    assert {key: value for key, value in found.items() if key not in unknown} == derivable(
        labels_of(node, Sharing.none())
    )


@pytest.mark.parametrize("model", [model for model in GPU_MODELS if profiles_of(model)])
def test_every_mig_profile_of_a_board_has_the_name_that_the_library_expects(nvidia, model, tmp_path):
    for number, profile in enumerate(profiles_of(model)):
        if measured_mig_mib(GPU_MODELS[model], profile) is not None:
            node = GpuNode(name=NODE, gpu_model=model, mig_layout={profile: 1})
            found = discovered(nvidia, node, "mixed", tmp_path / str(number))
            assert found.get(f"{mig_resource(profile)}.count") == "1", profile


def discovered(nvidia: Nvidia, node: GpuNode, mig_strategy: str, folder: Path) -> dict[str, str]:
    """Return the labels that GPU Feature Discovery writes to a file, without a cluster."""
    driver = MockDriver(folder / "driver", nvidia.folder / "libnvidia-ml.so.1", boards_of(node))
    flags = ["--oneshot", "--use-node-feature-api=false", f"--mig-strategy={mig_strategy}", "--output-file="]
    argv = [nvidia.program("gpu-feature-discovery"), *flags]
    done = subprocess.run(argv, env=driver.environment(), capture_output=True, text=True, check=True, timeout=120)
    return dict(line.split("=", 1) for line in done.stdout.splitlines())

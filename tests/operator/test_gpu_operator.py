from collections import OrderedDict
from functools import partial
from types import MappingProxyType

import pytest
import yaml
from cdk8s import App, Chart, JsonPatch, Testing

import refusals
from gpu_constructs import (
    DcgmExporter,
    Delivery,
    DevicePluginChart,
    External,
    GpuConstructsError,
    GpuConstructsWarning,
    GpuNamespace,
    GpuOperator,
    GpuWorkload,
    Kubernetes,
    NvidiaRuntimeClass,
    Sharing,
    SynthesisError,
    Talos,
    Toleration,
    Unverified,
    ValidationBridge,
    synthesize,
)
from gpu_constructs.capacity.supply import node_offers
from gpu_constructs.catalog.inventory import GpuInventory, GpuNode
from gpu_constructs.catalog.versions import GPU_OPERATOR
from gpu_constructs.kube.placement import Taint
from gpu_constructs.operator.chart_keys import check_keys
from tables import cases

OLD_TALOS, NEW_TALOS = Talos("1.12"), Talos("1.13")
TAINT = Toleration(key="dedicated", value="ai", effect="NoSchedule")
VALUES = Delivery.values()
NAMESPACE = "nvidia-gpu-operator"


def operator(scope=None, **given):
    return GpuOperator(scope or Chart(App(), "gpu"), "operator", **{"delivery": VALUES, **given})


def values(**given):
    return operator(**given).values


refusal = partial(refusals.refusal, operator)


def synthesized(app):
    try:
        synthesize(app)
    except SynthesisError as error:
        return error.problems
    return []


def cluster(tmp_path, **given):
    """Return an app with only a namespace and the operator."""
    app = App(outdir=str(tmp_path))
    chart = Chart(app, "gpu")
    namespace = GpuNamespace(chart, "namespace", name=NAMESPACE)
    return app, chart, operator(chart, **{"namespace": namespace, "platform": NEW_TALOS, **given})


OFF_ON_TALOS = {"driver": {"enabled": False}, "toolkit": {"enabled": False}, "migManager": {"enabled": False}}


def test_the_platform_decides_driver_toolkit_cdi_and_the_path_of_the_driver(expected):
    for version, release in GPU_OPERATOR.items():
        assert values(platform=Kubernetes(), version=version) == {}
        for line in ("1.10", "1.11", "1.12") if release.reads_version_of_talos else ():
            assert values(platform=Talos(line), version=version) == {**OFF_ON_TALOS, "cdi": {"enabled": False}}
    for version in ("26.3.1", "26.3.2", "26.3.3", "26.7.0"):
        for line in ("1.13", "1.14"):
            assert values(platform=Talos(line), version=version) == expected


def test_a_staging_bridge_decides_the_path_of_the_driver():
    chart = Chart(App(), "gpu")
    bridge = ValidationBridge(chart, "bridge", strategy="stage", platform=OLD_TALOS)
    assert operator(chart, bridge=bridge).values["hostPaths"] == {"driverInstallDir": bridge.driver_install_dir}


@pytest.mark.parametrize("own", [{"driver": True}, {"values": {"cdi": {"enabled": True}}}], ids=str)
def test_on_plain_kubernetes_a_bridge_disables_driver_and_toolkit(own):
    chart = Chart(App(), "gpu")
    bridge = ValidationBridge(chart, "bridge", platform=Kubernetes())
    off = {"driver": {"enabled": False}, "toolkit": {"enabled": False}, "cdi": {"enabled": False}}
    assert operator(chart, bridge=bridge, platform=Kubernetes()).values == off
    assert "with a ValidationBridge" in refusal(bridge=bridge, platform=Kubernetes(), **own)


def test_mps_warns_on_platforms_with_reported_failures():
    with pytest.warns(
        GpuConstructsWarning, match=r"^gpu/operator: users report that MPS does not start on Talos 1\.12"
    ):
        operator(platform=OLD_TALOS, sharing=Sharing.mps(replicas=4))


@pytest.mark.parametrize("name", ["", "nvidia", None])
def test_an_empty_runtime_class_means_the_default_of_the_operator(name):
    assert operator(values={"operator": {"runtimeClass": name}}).runtime_class == "nvidia"
    assert operator(values={"operator": {"runtimeClass": "gpu"}}, platform=Kubernetes()).runtime_class == "gpu"


@pytest.mark.parametrize("kind", [OrderedDict, MappingProxyType])
def test_values_can_be_any_mapping(tmp_path, kind):
    own = kind({"daemonsets": kind({"labels": kind({"a": "b"})})})
    app, _, made = cluster(tmp_path, values=own, delivery=Delivery.flux())
    synthesized(app)
    assert made.values["daemonsets"] == {"labels": {"a": "b"}}
    (file,) = tmp_path.glob("helm-values/*")
    assert yaml.safe_load(file.read_text()) == made.values


@pytest.mark.parametrize("delivery", [Delivery.flux(), Delivery.argo_cd()], ids=["flux", "argo-cd"])
@cases
def test_every_delivery_of_every_release(objects, snapshot, delivery, version, platform):
    chart = Chart(App(), "gpu")
    operator(chart, delivery=delivery, version=version, platform=platform, tolerations=[TAINT])
    assert objects(chart) == snapshot


@cases
def test_a_patch_of_the_values_changes_the_file_too(delivery, path):
    made = operator(delivery=delivery)
    made.api_object.add_json_patch(JsonPatch.add(f"{path}/keyOfTomorrow", {"enabled": True}))
    assert made.api_object.kind in ("HelmRelease", "Application")
    (file,) = made.side_files()
    assert yaml.safe_load(file.text) == {**made.values, "keyOfTomorrow": {"enabled": True}}


def test_the_attribute_values_is_a_copy(tmp_path):
    app, _, made = cluster(tmp_path)
    made.values["driver"]["enabled"] = True
    assert made.values["driver"] == {"enabled": False}
    synthesized(app)
    assert yaml.safe_load(next(tmp_path.glob("helm-values/*")).read_text()) == made.values


def test_api_object_without_a_main_object_is_an_error():
    with pytest.raises(GpuConstructsError) as refused:
        operator().api_object  # noqa: B018
    assert str(refused.value) == (
        "gpu/operator: api_object needs a delivery that emits a HelmRelease, an Application or a ClusterPolicy, but "
        "this delivery emits no such object. Use Delivery.flux(), Delivery.argo_cd() or Delivery.helm(...) with a "
        "ClusterPolicy. To change the Helm values, pass values="
    )


CHART_OF_26_7 = "apiVersion: v2\nname: gpu-operator\nversion: v26.7.0\n"
CLUSTER_POLICY = {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "cluster-policy"}}


@pytest.fixture
def rendering(tmp_path):
    """Return a delivery with a helm program that prints a fixed text."""

    def make(*objects):
        folder, program = tmp_path / "gpu-operator", tmp_path / "helm"
        folder.mkdir()
        (folder / "Chart.yaml").write_text(CHART_OF_26_7)
        (tmp_path / "rendered").write_text(yaml.safe_dump_all(objects))
        program.write_text(f"#!/bin/sh\ncat {tmp_path}/rendered\n")
        program.chmod(0o755)
        return Delivery.helm(chart=str(folder), executable=str(program))

    return make


def test_no_rendered_object_is_lost_and_the_cluster_policy_is_the_main_one(rendering):
    def config_map(name, **metadata):
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}

    others = [
        config_map("a"),
        config_map("a", namespace="b"),
        {**config_map("a", namespace=NAMESPACE), "apiVersion": "a.example/v1"},
        {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "a"}},
        {"apiVersion": "a.example/v1", "kind": "ClusterPolicy", "metadata": {"name": "first"}},
        {**CLUSTER_POLICY, "metadata": {"name": "second"}},
    ]
    made = operator(delivery=rendering(*others[3:5], CLUSTER_POLICY, *others[:3], others[5]), namespace=NAMESPACE)
    identities = [
        (one["apiVersion"], one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"])
        for one in Testing.synth(Chart.of(made))
    ]
    assert len(set(identities)) == 7
    assert (made.api_object.api_version, made.api_object.name) == ("nvidia.com/v1", "cluster-policy")


def test_a_gpu_cluster_can_be_the_main_object(rendering):
    gpu_cluster = {"apiVersion": "nvidia.com/v1alpha1", "kind": "GPUCluster", "metadata": {"name": "a"}}
    own = {"gpuCluster": {"deployCR": True}, "clusterPolicy": {"deployCR": False}}
    made = operator(delivery=rendering(gpu_cluster), platform=Kubernetes(), driver=False, values=own)
    assert made.api_object.kind == "GPUCluster"


def test_cluster_scoped_objects_get_no_namespace(rendering, keywords):
    definition = keywords
    rule = {"apiVersion": "a.example/v1", "kind": "Rule", "metadata": {"name": "a"}}
    chart = Chart(App(), "gpu", namespace="elsewhere")
    operator(chart, delivery=rendering(definition, rule, CLUSTER_POLICY))
    assert [one for one in Testing.synth(chart) if "namespace" in one["metadata"]] == []


def test_an_unverified_release_gets_the_values_of_the_named_one():
    made = operator(version=Unverified("26.7.2", like="26.7.0"), delivery=Delivery.flux())
    assert Testing.synth(Chart.of(made))[1]["spec"]["chart"]["spec"]["version"] == "v26.7.2"


def test_a_namespace_that_is_not_privileged_is_rejected():
    namespace = GpuNamespace(Chart(App(), "other"), "namespace", name="x", pod_security="baseline")
    assert refusal(namespace=namespace) == (
        "gpu/operator: namespace must be privileged, because the operator's pods mount host paths, got GpuNamespace "
        "'x' with pod_security='baseline'. Set pod_security='privileged' for it"
    )


def test_synth_checks_a_namespace_that_is_a_name(tmp_path):
    app = App(outdir=str(tmp_path))
    chart = Chart(app, "gpu")
    GpuNamespace(chart, "namespace", name="gpu-operator", pod_security="baseline")
    operator(chart, namespace="gpu-operator", platform=NEW_TALOS)
    (problem,) = synthesized(app)
    assert problem.startswith("gpu/namespace: enforces 'baseline', which rejects the pods that gpu/operator creates")


@pytest.mark.parametrize("line", ["1.13", "1.14"])
def test_a_bridge_is_rejected_on_platforms_on_which_the_validator_passes(line):
    bridge = ValidationBridge(Chart(App(), "other"), "bridge", platform=OLD_TALOS)
    assert "a bridge hides what the validator of the operator finds" in refusal(bridge=bridge, platform=Talos(line))


def test_up_to_talos_1_12_the_operator_needs_a_bridge(tmp_path, expected):
    app, chart, _ = cluster(tmp_path, platform=OLD_TALOS)
    assert synthesized(app) == expected
    assert not list(tmp_path.glob("**/*.yaml"))
    ValidationBridge(chart, "bridge", platform=OLD_TALOS)
    External(app, "labels", node_labels=["nvidia.com/gpu.deploy.operator-validator"])
    assert synthesized(app) == []


def test_the_operator_provides_the_runtime_class_and_labels_of_workloads(tmp_path, keywords):
    app, chart, made = cluster(tmp_path)
    GpuNamespace(chart, "workloads", name="work", pod_security="baseline")
    GpuWorkload(chart, "train", **keywords)
    assert made.runtime_class == "nvidia"
    assert synthesized(app) == []


def test_labels_of_disabled_components_are_missing(tmp_path):
    app, chart, _ = cluster(tmp_path, gpu_feature_discovery=False)
    GpuNamespace(chart, "workloads", name="work", pod_security="baseline")
    selector = {"nvidia.com/gpu.product": "NVIDIA-L4"}
    GpuWorkload(chart, "train", image="a:1", namespace="work", platform=NEW_TALOS, node_selector=selector)
    (problem,) = synthesized(app)
    assert "selects nodes by the label 'nvidia.com/gpu.product', which nothing in this app publishes" in problem


def test_workloads_use_the_resources_that_the_operator_advertises(tmp_path):
    app, chart, _ = cluster(tmp_path, sharing=Sharing.time_slicing(replicas=4, rename_by_default=True))
    GpuNamespace(chart, "workloads", name="work", pod_security="baseline")
    GpuWorkload(chart, "train", image="a:1", namespace="work", platform=NEW_TALOS)
    (problem,) = synthesized(app)
    assert problem.endswith("Request nvidia.com/gpu.shared [R08]")


def test_the_operator_declares_its_gpu_resources(tmp_path):
    _, _, made = cluster(tmp_path, sharing=Sharing.time_slicing(replicas=4))
    (offer,) = made.provides.gpu_offers
    assert (offer.sharing.replicas, offer.mig_strategy) == (4, "single")
    _, _, made = cluster(tmp_path, mig_strategy="mixed")
    assert [offer.mig_strategy for offer in made.provides.gpu_offers] == ["mixed"]


def operator_offer(values, labels=None, taints=(), **options):
    _, _, made = cluster(values.pop("tmp"), values=values, platform=Kubernetes(), **options)
    node = GpuNode(name="n", labels=labels or {}, taints=taints)
    [offer] = node_offers(GpuInventory(nodes=[node]), [made.provides])
    return offer


OFF = {"sandboxWorkloads": {"enabled": True}}
VM = {"sandboxWorkloads": {"enabled": True, "defaultWorkload": "vm-passthrough"}}
WORKLOAD = "nvidia.com/gpu.workload.config"


@cases
def test_the_operator_declares_the_nodes_of_its_device_plugin(tmp_path, values, labels, is_served):
    offer = operator_offer({"tmp": tmp_path, **values}, labels)
    assert bool(offer.devices) == is_served
    assert not any("declare" in note for note in offer.notes)


@pytest.mark.filterwarnings("ignore:.*values.daemonsets.tolerations lacks")
def test_the_device_plugin_has_the_tolerations_of_the_operands(tmp_path):
    taints = [Taint(key="dedicated", value="ai")]
    assert not operator_offer({"tmp": tmp_path}, taints=taints).devices
    for tolerations, is_served in (([], False), ([{"operator": "Exists"}], True)):
        listed = {"tolerations": tolerations}
        values = {"tmp": tmp_path, "daemonsets": listed, "node-feature-discovery": {"worker": listed}}
        assert bool(operator_offer(values, taints=taints).devices) == is_served
        assert operator_offer({**values, "tmp": tmp_path}, taints=[Taint(key="nvidia.com/gpu")]).devices
    assert operator_offer(
        {"tmp": tmp_path}, taints=taints, tolerations=[Toleration(key="dedicated", value="ai")]
    ).devices


@pytest.mark.parametrize("mig_manager", [True, False])
def test_the_operator_declares_its_mig_manager(tmp_path, mig_manager):
    _, _, made = cluster(tmp_path, platform=Kubernetes(), mig_manager=mig_manager)
    assert made.provides.has_mig_manager == mig_manager
    _, _, made = cluster(tmp_path)
    assert not made.provides.has_mig_manager


def test_another_runtime_class_conflicts_with_that_of_the_operator(tmp_path):
    app, chart, _ = cluster(tmp_path)
    NvidiaRuntimeClass(chart, "runtime-class")
    (problem,) = synthesized(app)
    assert problem.startswith("gpu/runtime-class: RuntimeClass 'nvidia' already comes from gpu/operator")


@pytest.mark.parametrize(
    ("beside", "named"),
    [
        (
            lambda app, chart: DevicePluginChart(app, "plugin", platform=Kubernetes()),
            "the device plugin, GPU Feature Discovery and Node Feature Discovery",
        ),
        (
            lambda app, chart: DcgmExporter(chart, "exporter", platform=NEW_TALOS, namespace=NAMESPACE),
            "the DCGM exporter",
        ),
    ],
    ids=["plugin", "exporter"],
)
def test_a_component_conflicts_with_the_same_one_of_the_operator(tmp_path, beside, named):
    app, chart, _ = cluster(tmp_path, release_name="other")
    made = beside(app, chart)
    assert (
        f"gpu/operator: runs {named} on every GPU node, and so does {made.node.path}. Remove one of the two, or "
        "disable the component in one of them"
    ) in synthesized(app)


def test_a_separate_exporter_works_with_an_operator_without_one(tmp_path):
    app, chart, _ = cluster(tmp_path, dcgm_exporter=False)
    DcgmExporter(chart, "exporter", platform=NEW_TALOS, namespace=NAMESPACE)
    assert synthesized(app) == []


def test_two_operators_conflict(tmp_path):
    app, chart, _ = cluster(tmp_path)
    GpuOperator(chart, "second", delivery=VALUES, platform=NEW_TALOS, release_name="second")
    (problem,) = synthesized(app)
    assert problem.startswith("gpu/operator: runs the GPU Operator, the device plugin,")


def test_bad_input_raises_one_error(refused):
    refused(operator, at="gpu/operator: ")


def test_every_keyword_writes_a_key_that_the_chart_reads():
    given = {
        "tolerations": [TAINT],
        "sharing": Sharing.time_slicing(replicas=2),
        "mig_strategy": "none",
        "device_list_strategy": "envvar",
        **dict.fromkeys(("cdi", "driver", "toolkit", "mig_manager"), False),
        **dict.fromkeys(("gpu_feature_discovery", "node_feature_discovery", "dcgm_exporter", "service_monitor"), True),
    }
    for version, release in GPU_OPERATOR.items():
        for platform in (OLD_TALOS, Kubernetes()) if release.reads_version_of_talos else (Kubernetes(),):
            check_keys(values(version=version, platform=platform, **given), release)

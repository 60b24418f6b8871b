import math
from collections import OrderedDict
from types import MappingProxyType

import pytest
import yaml
from cdk8s import App, Chart, JsonPatch, Testing

from gpu_constructs import (
    Configs,
    DcgmExporter,
    Delivery,
    DevicePluginChart,
    External,
    Flags,
    GpuConstructsError,
    GpuConstructsWarning,
    GpuNamespace,
    GpuOperator,
    GpuWorkload,
    Kubernetes,
    NvidiaRuntimeClass,
    PluginConfig,
    Sharing,
    SynthesisError,
    Talos,
    Toleration,
    Unverified,
    ValidationBridge,
    synthesize,
)
from gpu_constructs.capacity.supply import node_offers
from gpu_constructs.inventory import GpuInventory, GpuNode
from gpu_constructs.operator.chart_keys import check_keys
from gpu_constructs.taint import Taint
from gpu_constructs.versions import GPU_OPERATOR

OLD_TALOS, NEW_TALOS = Talos("1.12"), Talos("1.13")
TAINT = Toleration(key="dedicated", value="ai", effect="NoSchedule")
VALUES = Delivery.values()
NAMESPACE = "nvidia-gpu-operator"


def operator(scope=None, **given):
    return GpuOperator(scope or Chart(App(), "gpu"), "operator", **{"delivery": VALUES, **given})


def values(**given):
    return operator(**given).values


def refusal(**given):
    with pytest.raises(GpuConstructsError) as refused:
        operator(**given)
    return str(refused.value)


def synthesized(app):
    try:
        synthesize(app)
    except SynthesisError as error:
        return error.problems
    return []


def cluster(tmp_path, **given):
    """An app with nothing but a namespace and the operator."""
    app = App(outdir=str(tmp_path))
    chart = Chart(app, "gpu")
    namespace = GpuNamespace(chart, "namespace", name=NAMESPACE)
    return app, chart, operator(chart, **{"namespace": namespace, "platform": NEW_TALOS, **given})


@pytest.mark.parametrize("version", GPU_OPERATOR)
@pytest.mark.parametrize("line", ["1.10", "1.11", "1.12"])
def test_until_talos_1_12_it_installs_neither_driver_nor_toolkit_and_uses_no_cdi(version, line):
    assert values(platform=Talos(line), version=version) == {
        "driver": {"enabled": False},
        "toolkit": {"enabled": False},
        "cdi": {"enabled": False},
        "migManager": {"enabled": False},
    }


@pytest.mark.parametrize("version", ["26.3.3", "26.7.0"])
@pytest.mark.parametrize("line", ["1.13", "1.14"])
def test_from_talos_1_13_on_its_validator_finds_the_driver_by_itself(version, line):
    assert values(platform=Talos(line), version=version) == {
        "driver": {"enabled": False},
        "toolkit": {"enabled": False},
        "hostPaths": {"driverInstallDir": "/usr/local"},
        "migManager": {"enabled": False},
    }


def test_plain_kubernetes_gets_what_the_chart_has():
    assert values(platform=Kubernetes()) == {}


def test_tolerations_reach_both_places_of_the_chart():
    told = values(tolerations=[TAINT])
    for tolerations in (
        told["daemonsets"]["tolerations"],
        told["node-feature-discovery"]["worker"]["tolerations"],
    ):
        assert TAINT.to_manifest() in tolerations
        assert {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"} in tolerations


def test_a_bridge_that_stages_the_driver_tells_the_validator_where():
    chart = Chart(App(), "gpu")
    bridge = ValidationBridge(chart, "bridge", strategy="stage", platform=OLD_TALOS)
    assert operator(chart, bridge=bridge).values["hostPaths"] == {"driverInstallDir": bridge.driver_install_dir}


@pytest.mark.parametrize("own", [{"driver": True}, {"values": {"cdi": {"enabled": True}}}], ids=str)
def test_on_plain_kubernetes_a_bridge_answers_for_the_nodes_own_driver(own):
    chart = Chart(App(), "gpu")
    bridge = ValidationBridge(chart, "bridge", platform=Kubernetes())
    off = {"driver": {"enabled": False}, "toolkit": {"enabled": False}, "cdi": {"enabled": False}}
    assert operator(chart, bridge=bridge, platform=Kubernetes()).values == off
    assert "beside a ValidationBridge" in refusal(bridge=bridge, platform=Kubernetes(), **own)


def test_a_bridge_that_writes_markers_changes_no_value():
    chart = Chart(App(), "gpu")
    bridge = ValidationBridge(chart, "bridge", platform=OLD_TALOS)
    assert operator(chart, bridge=bridge).values == values()


def test_what_is_off_is_told_the_chart():
    told = values(gpu_feature_discovery=False, node_feature_discovery=True, dcgm_exporter=True, service_monitor=False)
    assert (told["gfd"], told["nfd"]) == ({"enabled": False}, {"enabled": True})
    assert told["dcgmExporter"] == {"enabled": True, "serviceMonitor": {"enabled": False}}


def test_the_device_list_strategy_can_be_stated():
    told = values(device_list_strategy="envvar")
    assert told["devicePlugin"]["env"] == [{"name": "DEVICE_LIST_STRATEGY", "value": "envvar"}]


def test_sharing_is_a_configuration_of_the_plugin():
    sharing = Sharing.time_slicing(replicas=4)
    config = values(sharing=sharing)["devicePlugin"]["config"]
    assert config["create"] is True
    assert config["data"] == {config["default"]: PluginConfig(sharing=sharing).to_yaml()}


def test_mps_needs_mig_off_which_is_on_in_the_chart():
    assert values(platform=Kubernetes(), sharing=Sharing.mps(replicas=4))["mig"] == {"strategy": "none"}


def test_mps_is_warned_of_where_it_is_reported_not_to_start():
    with pytest.warns(GpuConstructsWarning, match=r"^gpu/operator: MPS is reported not to start on Talos 1\.12"):
        operator(platform=OLD_TALOS, sharing=Sharing.mps(replicas=4))


def test_sharing_of_mig_devices_goes_with_the_mig_strategy():
    sharing = Sharing.time_slicing(resources={"nvidia.com/mig-1g.5gb": 2})
    told = values(sharing=sharing, mig_strategy="mixed", platform=Kubernetes())
    assert told["mig"] == {"strategy": "mixed"}


def test_an_external_configuration_leaves_the_mig_strategy_to_its_keyword():
    told = values(config=Configs.external("theirs", default="a"), mig_strategy="mixed")
    assert told["mig"] == {"strategy": "mixed"}
    assert told["devicePlugin"]["config"] == {"name": "theirs", "default": "a"}


def test_a_configuration_written_as_text_is_looked_at():
    config = {"create": True, "name": "a", "default": "b", "data": {"b": "version: v1\nodd: 1"}}
    with pytest.warns(
        GpuConstructsWarning, match=r"^gpu/operator: values\.devicePlugin\.config\.data\['b'\] may not do"
    ):
        operator(values={"devicePlugin": {"config": config}})


@pytest.mark.parametrize("name", ["", "nvidia", None])
def test_no_name_of_a_runtime_class_is_the_operators_own(name):
    assert operator(values={"operator": {"runtimeClass": name}}).runtime_class == "nvidia"
    assert operator(values={"operator": {"runtimeClass": "gpu"}}, platform=Kubernetes()).runtime_class == "gpu"


def test_values_that_hold_themselves_are_refused():
    own = {}
    own["daemonsets"] = own
    assert "values must not hold itself" in refusal(values=own)


def test_own_values_are_laid_over():
    told = values(values={"dcgmExporter": {"resources": {"limits": {"memory": "1Gi"}}}, "cdi": {"enabled": False}})
    assert told["dcgmExporter"] == {"resources": {"limits": {"memory": "1Gi"}}}
    assert told["driver"] == {"enabled": False}


@pytest.mark.parametrize("kind", [OrderedDict, MappingProxyType])
def test_own_values_may_be_a_mapping_of_any_kind(tmp_path, kind):
    own = kind({"daemonsets": kind({"labels": kind({"a": "b"})})})
    app, _, made = cluster(tmp_path, values=own, delivery=Delivery.flux())
    synthesized(app)
    assert made.values["daemonsets"] == {"labels": {"a": "b"}}
    (file,) = tmp_path.glob("helm-values/*")
    assert yaml.safe_load(file.read_text()) == made.values


@pytest.mark.parametrize(
    ("own", "problem"),
    [
        ({"operator": {"affinity": {"a": object}}}, "values.operator.affinity.a must be what YAML can hold; got "),
        ({"operator": {"affinity": {"a": math.nan}}}, "values.operator.affinity.a must be a number within 2**53; got "),
        ({"operator": {"affinity": {None: "a"}}}, "values.operator.affinity must have text for keys; got None"),
        (
            {"daemonsets": {"labels": {"a\nb": None}}},
            "values.daemonsets.labels must have printable text for keys; got ",
        ),
    ],
)
def test_what_no_values_file_holds_is_refused(own, problem):
    assert refusal(values=own).startswith(f"gpu/operator: {problem}")
    assert "\n" not in refusal(values=own)


def test_the_values_are_written_beside_the_manifests(tmp_path):
    app, _, made = cluster(tmp_path)
    assert synthesized(app) == []
    (file,) = tmp_path.glob("helm-values/*")
    assert file.name == "gpu-operator.values.yaml"
    assert yaml.safe_load(file.read_text()) == made.values


@pytest.mark.parametrize("delivery", [Delivery.flux(), Delivery.argo_cd()], ids=["flux", "argo-cd"])
@pytest.mark.parametrize(
    ("version", "platform"), [("25.10.1", OLD_TALOS), ("26.3.3", NEW_TALOS), ("26.7.0", Kubernetes())]
)
def test_every_delivery_of_every_release(objects, snapshot, delivery, version, platform):
    chart = Chart(App(), "gpu")
    operator(chart, delivery=delivery, version=version, platform=platform, tolerations=[TAINT])
    assert objects(chart) == snapshot


def test_flux_installs_what_the_values_file_says():
    made = operator(delivery=Delivery.flux())
    (source, release) = Testing.synth(Chart.of(made))
    assert (source["kind"], release["kind"]) == ("HelmRepository", "HelmRelease")
    assert release["spec"]["values"] == made.values
    assert release["spec"]["chart"]["spec"]["version"] == "v26.7.0"
    assert made.api_object.kind == "HelmRelease"


def test_argo_cd_installs_what_the_values_file_says():
    made = operator(delivery=Delivery.argo_cd())
    (application,) = Testing.synth(Chart.of(made))
    assert application["spec"]["source"]["helm"]["valuesObject"] == made.values
    assert made.api_object.kind == "Application"


@pytest.mark.parametrize(
    ("delivery", "path"),
    [(Delivery.flux(), "/spec/values"), (Delivery.argo_cd(), "/spec/source/helm/valuesObject")],
    ids=["flux", "argo-cd"],
)
def test_a_patch_of_the_values_reaches_the_file_too(delivery, path):
    made = operator(delivery=delivery)
    made.api_object.add_json_patch(JsonPatch.add(f"{path}/keyOfTomorrow", {"enabled": True}))
    (file,) = made.side_files()
    assert yaml.safe_load(file.text) == {**made.values, "keyOfTomorrow": {"enabled": True}}


def test_what_was_told_cannot_be_changed_by_who_reads_it(tmp_path):
    app, _, made = cluster(tmp_path)
    made.values["driver"]["enabled"] = True
    assert made.values["driver"] == {"enabled": False}
    synthesized(app)
    assert yaml.safe_load(next(tmp_path.glob("helm-values/*")).read_text()) == made.values


def test_without_a_main_object_there_is_none_to_give():
    with pytest.raises(GpuConstructsError) as refused:
        operator().api_object  # noqa: B018
    assert str(refused.value) == (
        "gpu/operator: api_object must be asked of a delivery with a main object; got one that emits none; use "
        "Delivery.flux(), Delivery.argo_cd() or Delivery.helm(...) with a ClusterPolicy, or change values="
    )


CHART_OF_26_7 = "apiVersion: v2\nname: gpu-operator\nversion: v26.7.0\n"
CLUSTER_POLICY = {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "cluster-policy"}}


@pytest.fixture
def rendering(tmp_path):
    """A delivery by a helm that prints what it is given."""

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


def test_a_gpu_cluster_is_a_main_object_too(rendering):
    gpu_cluster = {"apiVersion": "nvidia.com/v1alpha1", "kind": "GPUCluster", "metadata": {"name": "a"}}
    own = {"gpuCluster": {"deployCR": True}, "clusterPolicy": {"deployCR": False}}
    made = operator(delivery=rendering(gpu_cluster), platform=Kubernetes(), driver=False, values=own)
    assert made.api_object.kind == "GPUCluster"


def test_a_chart_with_a_namespace_gives_none_to_what_lives_outside(rendering):
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "rules.a.example"},
        "spec": {"group": "a.example", "names": {"kind": "Rule"}, "scope": "Cluster", "versions": []},
    }
    rule = {"apiVersion": "a.example/v1", "kind": "Rule", "metadata": {"name": "a"}}
    chart = Chart(App(), "gpu", namespace="elsewhere")
    operator(chart, delivery=rendering(definition, rule, CLUSTER_POLICY))
    assert [one for one in Testing.synth(chart) if "namespace" in one["metadata"]] == []


def test_the_file_of_a_rendered_chart_says_what_was_rendered(rendering):
    made = operator(delivery=rendering(CLUSTER_POLICY))
    assert made.values["operator"] == {"upgradeCRD": False, "cleanupCRD": False}
    (file,) = made.side_files()
    assert yaml.safe_load(file.text) == made.values


def test_a_rendered_chart_is_asked_for_no_hook(rendering):
    hooks = {"operator": {"cleanupCRD": True}}
    assert "values.operator.cleanupCRD must be false" in refusal(delivery=rendering(CLUSTER_POLICY), values=hooks)


def test_values_alone_emit_nothing():
    assert Testing.synth(Chart.of(operator())) == []


def test_a_release_that_was_not_checked_is_told_like_one_that_was():
    made = operator(version=Unverified("26.7.2", like="26.7.0"), delivery=Delivery.flux())
    assert Testing.synth(Chart.of(made))[1]["spec"]["chart"]["spec"]["version"] == "v26.7.2"


@pytest.mark.parametrize("version", ["26.3.0", "v26.3.0", Unverified("26.3.0", like="26.3.3")], ids=str)
@pytest.mark.parametrize("platform", [OLD_TALOS, NEW_TALOS], ids=str)
def test_the_release_that_cannot_read_the_version_of_talos_is_refused(version, platform):
    listed = "'26.3.3' or '26.7.0'" if platform is NEW_TALOS else "'25.10.1' or '26.3.3' or '26.7.0'"
    assert refusal(version=version, platform=platform) == (
        f"gpu/operator: version '26.3.0' of the GPU Operator fails on {platform}: it cannot read Talos' version label "
        f"(NVIDIA/gpu-operator#2239); take {listed}"
    )


def test_from_talos_1_13_on_old_releases_are_refused():
    assert refusal(version="25.10.1", platform=NEW_TALOS) == (
        "gpu/operator: version of the GPU Operator must be at least '26.3.1' on Talos 1.13, where the driver lies in "
        "/usr/local; got '25.10.1'; take '26.3.3' or '26.7.0'"
    )


def test_an_unknown_release_is_refused_with_those_we_know():
    assert refusal(version="26.7.1", platform=Kubernetes()) == (
        "gpu/operator: version of the GPU Operator must be one of '25.10.1', '26.3.3', '26.7.0'; got '26.7.1'; force "
        "it with Unverified('26.7.1', like='26.7.0')"
    )


def test_the_image_of_the_operator_is_a_value_of_its_chart():
    version = Unverified("26.7.2", like="26.7.0", image="example.com/operator:1")
    assert "version.image is not for the GPU Operator" in refusal(version=version)


def test_a_namespace_that_is_not_privileged_is_refused():
    namespace = GpuNamespace(Chart(App(), "other"), "namespace", name="x", pod_security="baseline")
    assert refusal(namespace=namespace) == (
        "gpu/operator: namespace must be privileged, since the operator's pods mount host paths; got GpuNamespace 'x' "
        "with pod_security='baseline'; pass pod_security='privileged' there"
    )


def test_a_namespace_given_by_name_is_looked_at_at_synth(tmp_path):
    app = App(outdir=str(tmp_path))
    chart = Chart(app, "gpu")
    GpuNamespace(chart, "namespace", name="gpu-operator", pod_security="baseline")
    operator(chart, namespace="gpu-operator", platform=NEW_TALOS)
    (problem,) = synthesized(app)
    assert problem.startswith("gpu/namespace: enforces 'baseline', under which the pods that gpu/operator brings")


@pytest.mark.parametrize("line", ["1.13", "1.14"])
def test_a_bridge_is_refused_where_the_validator_passes(line):
    bridge = ValidationBridge(Chart(App(), "other"), "bridge", platform=OLD_TALOS)
    assert "and a bridge would hide what it finds" in refusal(bridge=bridge, platform=Talos(line))


def test_until_talos_1_12_a_bridge_must_stand_beside_it(tmp_path):
    app, chart, _ = cluster(tmp_path, platform=OLD_TALOS)
    assert synthesized(app) == [
        "gpu/operator: needs the validation bridge beside it: on Talos 1.12 its own validator can never pass; add "
        "ValidationBridge(chart, 'validation-bridge', platform=..., namespace=...) and hand it over with bridge=..., "
        "or declare one with External(app, 'existing', components=['validation-bridge'])"
    ]
    assert not list(tmp_path.glob("**/*.yaml"))
    ValidationBridge(chart, "bridge", platform=OLD_TALOS)
    External(app, "labels", node_labels=["nvidia.com/gpu.deploy.operator-validator"])
    assert synthesized(app) == []


def test_it_makes_the_runtime_class_and_labels_that_workloads_ask_for(tmp_path):
    app, chart, made = cluster(tmp_path)
    GpuNamespace(chart, "workloads", name="work", pod_security="baseline")
    GpuWorkload(
        chart,
        "train",
        image="a:1",
        namespace="work",
        platform=NEW_TALOS,
        node_selector={
            "nvidia.com/gpu.product": "NVIDIA-L4",
            "feature.node.kubernetes.io/pci-10de.present": "true",
        },
    )
    assert made.runtime_class == "nvidia"
    assert synthesized(app) == []


def test_labels_of_what_is_switched_off_are_missed(tmp_path):
    app, chart, _ = cluster(tmp_path, gpu_feature_discovery=False)
    GpuNamespace(chart, "workloads", name="work", pod_security="baseline")
    selector = {"nvidia.com/gpu.product": "NVIDIA-L4"}
    GpuWorkload(chart, "train", image="a:1", namespace="work", platform=NEW_TALOS, node_selector=selector)
    (problem,) = synthesized(app)
    assert "selects nodes by the label 'nvidia.com/gpu.product', which nothing in this app publishes" in problem


def test_workloads_ask_for_what_its_sharing_advertises(tmp_path):
    app, chart, _ = cluster(tmp_path, sharing=Sharing.time_slicing(replicas=4, rename_by_default=True))
    GpuNamespace(chart, "workloads", name="work", pod_security="baseline")
    GpuWorkload(chart, "train", image="a:1", namespace="work", platform=NEW_TALOS)
    (problem,) = synthesized(app)
    assert problem.endswith("ask for nvidia.com/gpu.shared [R08]")


def test_a_mixed_mig_strategy_advertises_profiles(tmp_path):
    _, _, made = cluster(tmp_path, mig_strategy="mixed")
    assert "nvidia.com/mig-*" in made.provides.gpu_resources


def test_it_says_how_gpus_are_advertised(tmp_path):
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


@pytest.mark.parametrize(
    ("values", "labels", "is_served"),
    [
        ({}, {}, True),
        ({}, {"nvidia.com/gpu.deploy.device-plugin": "true"}, True),
        ({}, {"nvidia.com/gpu.deploy.device-plugin": "false"}, False),
        ({}, {"nvidia.com/gpu.deploy.operands": "false"}, False),
        ({}, {"nvidia.com/gpu.deploy.operands": "true"}, True),
        ({}, {WORKLOAD: "vm-passthrough"}, True),
        (OFF, {}, True),
        (OFF, {WORKLOAD: "vm-passthrough"}, False),
        (OFF, {WORKLOAD: "container"}, True),
        (VM, {}, False),
        (VM, {WORKLOAD: "container"}, True),
    ],
)
def test_it_says_which_nodes_its_device_plugin_runs_on(tmp_path, values, labels, is_served):
    offer = operator_offer({"tmp": tmp_path, **values}, labels)
    assert bool(offer.devices) == is_served
    assert [note for note in offer.notes if "nobody declares" in note] == []


@pytest.mark.filterwarnings("ignore:.*values.daemonsets.tolerations lacks")
def test_its_device_plugin_tolerates_what_its_operands_do(tmp_path):
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
def test_it_says_whether_it_divides_gpus(tmp_path, mig_manager):
    _, _, made = cluster(tmp_path, platform=Kubernetes(), mig_manager=mig_manager)
    assert made.provides.has_mig_manager == mig_manager
    _, _, made = cluster(tmp_path)
    assert not made.provides.has_mig_manager


def test_our_runtime_class_has_no_place_beside_that_of_the_operator(tmp_path):
    app, chart, _ = cluster(tmp_path)
    NvidiaRuntimeClass(chart, "runtime-class")
    (problem,) = synthesized(app)
    assert problem.startswith("gpu/runtime-class: RuntimeClass 'nvidia' comes from gpu/operator already")


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
def test_what_the_operator_runs_is_not_run_beside_it(tmp_path, beside, named):
    app, chart, _ = cluster(tmp_path, release_name="other")
    made = beside(app, chart)
    assert (
        f"gpu/operator: brings {named} to every GPU node, and so does {made.node.path}; keep one of the two, or switch "
        "the component off in one of them"
    ) in synthesized(app)


def test_an_exporter_of_ours_goes_with_an_operator_without(tmp_path):
    app, chart, _ = cluster(tmp_path, dcgm_exporter=False)
    DcgmExporter(chart, "exporter", platform=NEW_TALOS, namespace=NAMESPACE)
    assert synthesized(app) == []


def test_two_operators_are_one_too_many(tmp_path):
    app, chart, _ = cluster(tmp_path)
    GpuOperator(chart, "second", delivery=VALUES, platform=NEW_TALOS, release_name="second")
    (problem,) = synthesized(app)
    assert problem.startswith("gpu/operator: brings the GPU Operator, the device plugin,")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"config": PluginConfig(), "sharing": Sharing.none()},
            "sharing must be left out beside config, which holds it; got both",
        ),
        (
            {"config": PluginConfig(), "mig_strategy": "none"},
            "mig_strategy must be left out beside config, which holds it; got 'none'; say it there, by PluginConfig",
        ),
        ({"release_name": "Operator"}, "release_name must be a DNS label"),
        (
            {"delivery": "flux"},
            "delivery must be made by Delivery.flux(), Delivery.argo_cd(), Delivery.helm(chart=...) or",
        ),
        ({"delivery": None}, "Delivery.values(); got None; pass one of them"),
        ({"delivery": Delivery}, "Delivery.values(); got the class itself; pass one of them"),
        ({"namespace": "default"}, "namespace must not be 'default'"),
        (
            {"values": {"driver": {"enabled": True}}, "driver": False},
            "values.driver.enabled is True, and the keyword driver",
        ),
        ({"values": {"devicePlugin": {"nodeSelector": {}}}}, "values.devicePlugin.nodeSelector"),
        ({"values": {"mig": {"stratgy": "none"}}}, "values.mig.stratgy"),
        ({"values": []}, "values must be"),
        ({"device_list_strategy": "envvars"}, "device_list_strategy must be one of"),
        ({"driver": True}, "gpu/operator: driver must be False on Talos; got True; "),
        ({"toolkit": True}, "gpu/operator: toolkit must be False on Talos; got True; "),
        ({"cdi": True, "platform": OLD_TALOS}, "gpu/operator: cdi must be False on Talos 1.12; got True; "),
        (
            {"cdi": True, "platform": NEW_TALOS, "device_list_strategy": "envvar"},
            "gpu/operator: device_list_strategy must be a cdi- strategy while CDI is on, as it is by default; got",
        ),
        (
            {"service_monitor": True, "dcgm_exporter": False},
            "gpu/operator: service_monitor must be False while dcgm_exporter is False; got True; ",
        ),
        (
            {"sharing": Sharing.mps(replicas=4), "values": {"mig": {"strategy": "mixed"}}, "platform": Kubernetes()},
            "values.mig.strategy is 'mixed', and the keyword sharing says 'none'; leave one of the two out",
        ),
        (
            {"values": {"devicePlugin": {"config": {"create": True, "name": "a", "data": {"b": "a: ["}}}}},
            "values.devicePlugin.config.data['b'] must be YAML; got ",
        ),
        ({"config": Configs.named({"a": PluginConfig()}, default="a")}, "config must be a PluginConfig"),
        ({"config": PluginConfig(flags=Flags(fail_on_init_error=False))}, "config 'default' must not state"),
        ({"drivr": True}, "drivr is no keyword of GpuOperator (did you mean 'driver'?)"),
    ],
    ids=str,
)
def test_bad_input_gets_one_error(given, message):
    told = refusal(**given)
    assert told.startswith("gpu/operator: ")
    assert message in told
    assert "\n" not in told


def test_nothing_is_made_of_refused_input():
    chart = Chart(App(), "gpu")
    refusal(scope=chart, values={"mig": {"stratgy": "none"}})
    assert chart.node.children == []


@pytest.mark.parametrize("version", GPU_OPERATOR)
@pytest.mark.parametrize("platform", [OLD_TALOS, Kubernetes()], ids=str)
def test_every_keyword_is_written_under_a_key_that_the_chart_reads(version, platform):
    told = values(
        version=version,
        platform=platform,
        tolerations=[TAINT],
        sharing=Sharing.time_slicing(replicas=2),
        mig_strategy="none",
        device_list_strategy="envvar",
        cdi=False,
        driver=False,
        toolkit=False,
        mig_manager=False,
        gpu_feature_discovery=True,
        node_feature_discovery=True,
        dcgm_exporter=True,
        service_monitor=True,
    )
    check_keys(told, GPU_OPERATOR[version])

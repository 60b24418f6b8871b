import json
import sys
import warnings
from dataclasses import replace
from datetime import timedelta
from functools import cache

import cdk8s_plus_27 as kplus
import pytest
import yaml
from cdk8s import ApiObject, ApiObjectMetadata, App, Chart, JsonPatch, Testing

from gpu_constructs import (
    Configs,
    DevicePlugin,
    DevicePluginChart,
    External,
    Flags,
    GfdFlags,
    GpuConstructsError,
    GpuConstructsWarning,
    GpuFeatureDiscovery,
    GpuNamespace,
    Kubernetes,
    MpsControlDaemon,
    NodeFeatureDiscovery,
    NvidiaRuntimeClass,
    PluginConfig,
    PluginFlags,
    Sharing,
    SynthesisError,
    Talos,
    Toleration,
    Unverified,
    UpdateStrategy,
    synthesize,
    versions,
)
from gpu_constructs._config_map import sha256
from gpu_constructs.feature_discovery.node_feature_discovery import NfdMaster
from gpu_constructs.provided import GpuOffer

NAME = "nvidia-device-plugin"
GFD = "nvidia-device-plugin-gpu-feature-discovery"
MPS = "nvidia-device-plugin-mps-control-daemon"
WORKER = "nvidia-device-plugin-node-feature-discovery-worker"
TAINT = Toleration(key="dedicated", value="ai", effect="NoSchedule")
ALONE = {"node_feature_discovery": False, "gpu_feature_discovery": False}
CDI = ["cdi-cri", "cdi-annotations"]
BESIDE = {"node_feature_discovery": "external", "platform": Kubernetes()}
LABEL = "nvidia.com/device-plugin.config"


ROOTED = Flags(nvidia_driver_root="/usr/local", nvidia_dev_root="/")
DRIVEN = PluginConfig(flags=Flags(nvidia_driver_root="/usr/local"))


def plugin(app=None, **given):
    return DevicePluginChart(app or App(), NAME, **given)


def alone(app=None, **given):
    return plugin(app, **{**ALONE, **given})


def rendered(**given):
    return Testing.synth(alone(**given))


@cache
def default():
    """What the chart renders with nothing said; not to be changed."""
    return Testing.synth(plugin())


def refusal(**given):
    with pytest.raises(GpuConstructsError) as refused:
        alone(**given)
    return str(refused.value)


def find(manifests, kind, name=NAME):
    (found,) = (m for m in manifests if m["kind"] == kind and m["metadata"]["name"] == name)
    return found


def kinds(manifests):
    return [manifest["kind"] for manifest in manifests]


def pod(manifests, name=NAME):
    return find(manifests, "DaemonSet", name)["spec"]["template"]["spec"]


def container(manifests, name=NAME):
    (only,) = pod(manifests, name)["containers"]
    return only


def environment(manifests, name=NAME):
    return {entry["name"]: entry.get("value") for entry in container(manifests, name)["env"]}


def config(manifests):
    return yaml.safe_load(find(manifests, "ConfigMap", f"{NAME}-config")["data"]["config.yaml"])


def affinity_terms(manifests, name=NAME):
    node_affinity = pod(manifests, name)["affinity"]["nodeAffinity"]
    terms = node_affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    return [expression for term in terms for expression in term["matchExpressions"]]


def without_definitions(manifests):
    """The custom resource definitions are facts of a file; nobody would read them in a snapshot."""
    return [manifest for manifest in manifests if manifest["kind"] != "CustomResourceDefinition"]


# --- whole renderings --------------------------------------------------------


@pytest.mark.parametrize("version", versions.DEVICE_PLUGIN)
def test_time_slicing_on_talos_with_both_discoveries(version, objects, snapshot):
    sharing = Sharing.time_slicing(replicas=5)
    manifests = objects(plugin(version=version, sharing=sharing, tolerations=[TAINT]))
    assert without_definitions(manifests) == snapshot


def test_plain_kubernetes_gets_the_plugin_alone(objects, snapshot):
    chart = alone(platform=Kubernetes(), namespace="nvidia-device-plugin", fail_on_init_error=False)
    assert objects(chart) == snapshot


@pytest.mark.parametrize("strategy", ["single", "mixed"])
@pytest.mark.parametrize(
    "platform", [Talos("1.11"), Talos("1.13"), Kubernetes()], ids=["talos-1.11", "talos-1.13", "kubernetes"]
)
def test_mig(strategy, platform, objects, snapshot):
    chart = plugin(mig_strategy=strategy, platform=platform, node_feature_discovery="external")
    assert objects(chart) == snapshot


@pytest.mark.parametrize("version", ["0.18.2", "0.20.0"])
def test_mps(version, objects, snapshot):
    assert objects(plugin(sharing=Sharing.mps(replicas=4), version=version, **BESIDE)) == snapshot


FILES = {
    "plain": PluginConfig(),
    "MPS_4": PluginConfig(sharing=Sharing.mps(replicas=4)),
    "split": PluginConfig(flags=Flags(mig_strategy="mixed", fail_on_init_error=False)),
}


def test_several_named_configurations(objects, snapshot):
    config = Configs.named(FILES, default="plain")
    chart = plugin(config=config, platform=Talos("1.13"), node_feature_discovery="external")
    assert objects(chart) == snapshot


def test_several_configurations_by_config_manager(objects, snapshot):
    with pytest.warns(GpuConstructsWarning, match="config-manager"):
        chart = plugin(config=Configs.managed(FILES, default="plain"), **BESIDE)
    assert objects(chart) == snapshot


def test_an_external_config_map(objects, snapshot):
    config = Configs.external(
        "theirs",
        default="plain",
        flags=Flags(
            fail_on_init_error=False,
            nvidia_driver_root="/usr/local",
            plugin=PluginFlags(device_id_strategy="index"),
            gfd=GfdFlags(sleep_interval=timedelta(minutes=5)),
        ),
        may_use=["mig", "mps", "volume-mounts", "cdi", "pass-device-specs", "imex"],
    )
    with pytest.warns(GpuConstructsWarning, match="config-manager"):
        chart = plugin(config=config, platform=Talos("1.13"), node_feature_discovery="external")
    assert objects(chart) == snapshot


def test_gpu_feature_discovery_alone(objects, snapshot):
    assert objects(plugin(device_plugin=False, platform=Talos("1.13"), node_feature_discovery="external")) == snapshot


def test_node_feature_discovery_of_somebody_else(objects, snapshot):
    assert objects(plugin(node_feature_discovery="external")) == snapshot


def test_cdi_on_talos_1_13(objects, snapshot):
    assert objects(alone(platform=Talos("1.13"), device_list_strategy=CDI)) == snapshot


def test_cdi_on_plain_kubernetes(objects, snapshot):
    assert objects(alone(platform=Kubernetes(), device_list_strategy="cdi-annotations")) == snapshot


def test_volume_mounts_take_sys_admin(objects, snapshot):
    assert objects(alone(device_list_strategy="volume-mounts", platform=Kubernetes())) == snapshot


def test_vgpu_discovery_takes_a_privileged_container(objects, snapshot):
    chart = plugin(gpu_feature_discovery=GpuFeatureDiscovery(vgpu=True), device_plugin=False, **BESIDE)
    assert objects(chart) == snapshot


EVERYTHING = {
    "namespace": "gpu",
    "platform": Kubernetes(),
    "name": "accelerators",
    "instance": "east",
    "config": PluginConfig(
        flags=Flags(nvidia_driver_root="/opt/driver", plugin=PluginFlags(pass_device_specs=True)),
        sharing=Sharing.mps(replicas=8, rename_by_default=True),
    ),
    "device_plugin": DevicePlugin(
        env={"NVIDIA_VISIBLE_DEVICES": "0,1", "KUBELET_SOCKET": "/run/kubelet.sock"},
        host_network=True,
        node_selector={"disk": "ssd"},
        resources={"requests": {"cpu": "20m"}},
        security_context={"privileged": True},
        cdi_feature_flags=["disable-nvsandbox-utils"],
        cdi_disable_hooks=["all"],
        dp_disable_healthchecks=[48, 79],
        dp_enable_healthchecks=[13],
        kubelet_device_plugins_dir="/var/lib/k0s/kubelet/device-plugins",
    ),
    "gpu_feature_discovery": GpuFeatureDiscovery(vgpu=True, env={"KUBE_API_QPS": "10"}),
    "node_feature_discovery": "external",
    "mps_control_daemon": MpsControlDaemon(root="/var/lib/mps", host_pid=False),
    "runtime_class": "nvidia",
    "tolerations": [TAINT],
    "node_selector": {"pool": "gpu"},
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "gpus", "operator": "Exists"}]}]
            }
        }
    },
    "image": "registry.example/k8s-device-plugin@sha256:" + "0" * 64,
    "image_pull_policy": "Always",
    "image_pull_secrets": ["registry"],
    "resources": {"limits": {"memory": "1Gi"}},
    "priority_class_name": None,
    "update_strategy": UpdateStrategy.rolling_update(max_unavailable="25%"),
    "pod_annotations": {"team": "ml"},
    "pod_security_context": {"fsGroup": 0},
}


def test_everything_that_can_be_said_about_the_pods(objects, snapshot):
    assert objects(plugin(**EVERYTHING)) == snapshot


# --- which objects -----------------------------------------------------------


def test_its_objects_keep_the_names_that_commands_use():
    manifests = default()
    assert [m["metadata"]["name"] for m in manifests if m["kind"] == "DaemonSet"] == [NAME, GFD, WORKER]
    assert find(manifests, "ConfigMap", "nvidia-device-plugin-config")
    assert find(manifests, "Namespace", "nvidia-gpu-operator")
    assert find(manifests, "RuntimeClass", "nvidia")


def test_the_plugin_is_its_main_object():
    chart = alone()
    assert chart.api_object.name == ApiObject.of(chart).name == NAME
    assert chart.api_object.kind == "DaemonSet"


def test_without_a_plugin_gpu_feature_discovery_is_its_main_object():
    chart = plugin(device_plugin=False, node_feature_discovery="external")
    assert (chart.api_object.kind, chart.api_object.name) == ("DaemonSet", GFD)


def test_the_daemonset_of_the_default_configuration_is_its_main_object():
    chart = alone(config=Configs.named({"a": PluginConfig(), "b": PluginConfig()}, default="b"))
    assert chart.api_object.name == NAME


@pytest.mark.filterwarnings("ignore::gpu_constructs.GpuConstructsWarning")
def test_a_chart_without_pods_has_its_first_object_as_main_one_or_says_that_there_is_none():
    assert alone(device_plugin=False).api_object.kind == "Namespace"
    chart = alone(device_plugin=False, platform=Kubernetes(), namespace="kube-system")
    assert Testing.synth(chart) == []
    with pytest.raises(GpuConstructsError) as refused:
        _ = chart.api_object
    assert str(refused.value) == "nvidia-device-plugin: this chart makes no object"


def test_a_patch_reaches_the_plugin(app):
    chart = alone(app)
    chart.api_object.add_json_patch(JsonPatch.add("/spec/minReadySeconds", 10))
    assert find(Testing.synth(chart), "DaemonSet")["spec"]["minReadySeconds"] == 10


def test_namespace_and_runtime_class_come_before_those_who_need_them():
    manifests = default()
    assert kinds(manifests)[:2] == ["Namespace", "RuntimeClass"]


def test_accounts_and_rights_come_before_the_pods_that_use_them():
    manifests = default()
    position = {(m["kind"], m["metadata"]["name"]): index for index, m in enumerate(manifests)}
    for kind in ("ServiceAccount", "Role", "RoleBinding"):
        assert position[kind, GFD] < position["DaemonSet", GFD]
        assert position[kind, WORKER] < position["DaemonSet", WORKER]


def test_without_node_feature_discovery_nothing_of_it_is_emitted():
    assert kinds(rendered()) == ["Namespace", "RuntimeClass", "ConfigMap", "DaemonSet"]


def test_without_gpu_feature_discovery_only_its_objects_are_missing():
    with_it, without = default(), Testing.synth(plugin(gpu_feature_discovery=False))
    missing = [m for m in with_it if m not in without]
    assert [(m["kind"], m["metadata"]["name"]) for m in missing] == [
        ("ServiceAccount", GFD),
        ("Role", GFD),
        ("RoleBinding", GFD),
        ("DaemonSet", GFD),
    ]


def test_without_a_plugin_there_is_no_mps_daemon_either():
    manifests = Testing.synth(plugin(device_plugin=False, sharing=Sharing.mps(replicas=4), **BESIDE))
    assert [m["metadata"]["name"] for m in manifests if m["kind"] == "DaemonSet"] == [GFD]


def test_each_named_configuration_brings_a_file_and_the_pods_it_needs():
    manifests = Testing.synth(plugin(config=Configs.named(FILES, default="plain"), **BESIDE))
    assert [m["metadata"]["name"] for m in manifests if m["kind"] == "ConfigMap"] == [
        f"{NAME}-config",
        f"{NAME}-config-mps-4",
        f"{NAME}-config-split",
    ]
    assert [m["metadata"]["name"] for m in manifests if m["kind"] == "DaemonSet"] == [
        NAME,
        f"{NAME}-mps-4",
        f"{MPS}-mps-4",
        f"{NAME}-split",
        GFD,
        f"{GFD}-mps-4",
        f"{GFD}-split",
    ]


@pytest.mark.filterwarnings("ignore::gpu_constructs.GpuConstructsWarning")
def test_an_account_and_the_right_to_read_nodes_are_there_for_config_manager_only():
    for config, accounts in (
        (Configs.named(FILES, default="plain"), [GFD]),
        (Configs.managed(FILES, default="plain"), [NAME, GFD]),
        (Configs.external("theirs"), [NAME, GFD]),
    ):
        manifests = Testing.synth(plugin(config=config, **BESIDE))
        assert [m["metadata"]["name"] for m in manifests if m["kind"] == "ServiceAccount"] == accounts
        readers = [m["metadata"]["name"] for m in manifests if m["kind"] == "ClusterRole"]
        assert readers == [name for name in accounts if len(accounts) > 1]
        assert pod(manifests)["automountServiceAccountToken"] is (NAME in accounts)
        assert pod(manifests).get("serviceAccountName") == (NAME if NAME in accounts else None)


@pytest.mark.parametrize(("version", "nfd"), [("0.18.2", "0.17.3"), ("0.19.3", "0.17.3"), ("0.20.0", "0.19.0")])
def test_a_release_brings_its_discovery_releases_and_their_definitions(version, nfd):
    manifests = Testing.synth(plugin(version=version))
    assert container(manifests)["image"] == f"nvcr.io/nvidia/k8s-device-plugin:v{version}"
    assert container(manifests, GFD)["image"] == f"nvcr.io/nvidia/k8s-device-plugin:v{version}"
    assert container(manifests, WORKER)["image"] == f"registry.k8s.io/nfd/node-feature-discovery:v{nfd}"
    definitions = [m["metadata"]["name"] for m in manifests if m["kind"] == "CustomResourceDefinition"]
    assert definitions == [f"node{thing}.nfd.k8s-sigs.io" for thing in ("features", "featuregroups", "featurerules")]


def test_the_newest_release_is_the_default():
    assert rendered() == rendered(version="0.20.0")


def test_an_unverified_release_is_rendered_like_the_one_it_names():
    manifests = rendered(version=Unverified("0.20.1", like="0.20.0"))
    assert container(manifests)["image"] == "nvcr.io/nvidia/k8s-device-plugin:v0.20.1"
    labels = find(manifests, "DaemonSet")["metadata"]["labels"]
    assert labels["app.kubernetes.io/version"] == "0.20.1"


# --- namespace and runtime class of the caller ---------------------------------


def test_a_namespace_of_the_caller_is_used_and_not_made_again(app):
    namespace = GpuNamespace(Chart(app, "base"), "namespace", name="gpu")
    manifests = Testing.synth(plugin(app, namespace=namespace))
    assert "Namespace" not in kinds(manifests)
    assert {m["metadata"]["namespace"] for m in manifests if "namespace" in m["metadata"]} == {"gpu"}


def test_a_namespace_of_cdk8s_plus_is_used_and_not_made_again(app):
    namespace = kplus.Namespace(Chart(app, "base"), "namespace")
    manifests = Testing.synth(plugin(app, namespace=namespace))
    assert "Namespace" not in kinds(manifests)
    assert find(manifests, "DaemonSet")["metadata"]["namespace"] == namespace.name


def test_a_runtime_class_of_the_caller_is_used_and_not_made_again(app):
    runtime_class = NvidiaRuntimeClass(Chart(app, "base"), "runtime-class", name="gpu-runtime")
    manifests = Testing.synth(plugin(app, runtime_class=runtime_class))
    assert "RuntimeClass" not in kinds(manifests)
    assert pod(manifests)["runtimeClassName"] == pod(manifests, GFD)["runtimeClassName"] == "gpu-runtime"


def test_a_runtime_class_by_name_is_made():
    manifests = rendered(platform=Kubernetes(), runtime_class="nvidia")
    assert find(manifests, "RuntimeClass", "nvidia")["handler"] == "nvidia"
    assert pod(manifests)["runtimeClassName"] == "nvidia"


def test_shared_namespace_and_runtime_class_stand_once_in_a_cluster(app):
    base = Chart(app, "base")
    namespace, runtime_class = GpuNamespace(base, "namespace"), NvidiaRuntimeClass(base, "runtime-class")
    plugin(app, namespace=namespace, runtime_class=runtime_class)
    synthesize(app)


def test_kube_system_is_used_and_not_made_since_every_cluster_has_it(app):
    manifests = Testing.synth(plugin(app, namespace="kube-system"))
    assert "Namespace" not in kinds(manifests)
    assert {m["metadata"]["namespace"] for m in manifests if "namespace" in m["metadata"]} == {"kube-system"}
    synthesize(app)


def test_default_is_taken_where_the_user_says_so_and_not_made_since_every_cluster_has_it(app):
    chart = plugin(app, namespace="default", allow_default_namespace=True, platform=Kubernetes())
    manifests = Testing.synth(chart)
    assert "Namespace" not in kinds(manifests)
    assert {m["metadata"]["namespace"] for m in manifests if "namespace" in m["metadata"]} == {"default"}
    synthesize(app)


def test_on_talos_the_level_of_default_would_still_refuse_the_pods(app):
    plugin(app, namespace="default", allow_default_namespace=True)
    with pytest.raises(SynthesisError) as refused:
        synthesize(app)
    assert "namespace 'default' states no Pod Security level, so 'baseline' holds" in str(refused.value)


def test_node_feature_discovery_can_live_in_a_namespace_of_its_own_which_is_made_too(app):
    chart = plugin(app, node_feature_discovery=NodeFeatureDiscovery(namespace="nfd"))
    manifests = Testing.synth(chart)
    assert [m["metadata"]["name"] for m in manifests if m["kind"] == "Namespace"] == ["nvidia-gpu-operator", "nfd"]
    homes = {m["metadata"]["namespace"] for m in manifests if m["kind"] == "Deployment"}
    assert homes == {"nfd"}


def test_a_namespace_made_by_name_is_privileged():
    labels = find(rendered(namespace="gpu"), "Namespace", "gpu")["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "privileged"


# --- platforms ---------------------------------------------------------------


def test_talos_states_strategy_discovery_and_runtime_class():
    manifests = rendered(platform=Talos("1.10"))
    assert environment(manifests)["DEVICE_LIST_STRATEGY"] == "envvar"
    assert environment(manifests)["DEVICE_DISCOVERY_STRATEGY"] == "nvml"
    assert pod(manifests)["runtimeClassName"] == "nvidia"


def test_plain_kubernetes_leaves_them_to_the_plugin_and_the_node():
    manifests = rendered(platform=Kubernetes())
    assert environment(manifests).keys().isdisjoint({"DEVICE_LIST_STRATEGY", "DEVICE_DISCOVERY_STRATEGY"})
    assert "RuntimeClass" not in kinds(manifests)
    assert "runtimeClassName" not in pod(manifests)


def test_talos_is_the_default():
    assert rendered() == rendered(platform=Talos("1.12"))


def test_with_node_feature_discovery_gpu_nodes_are_found_by_its_labels():
    assert affinity_terms(default()) == [
        {"key": "feature.node.kubernetes.io/pci-10de.present", "operator": "In", "values": ["true"]},
        {"key": "nvidia.com/gpu.present", "operator": "In", "values": ["true"]},
    ]


def test_of_somebody_elses_node_feature_discovery_the_labels_of_its_own_defaults_count_too():
    terms = affinity_terms(Testing.synth(plugin(node_feature_discovery="external")))
    assert [term["key"].rpartition("/")[2] for term in terms] == [
        "pci-10de.present",
        "gpu.present",
        "pci-0300_10de.present",
        "pci-0302_10de.present",
    ]


@pytest.mark.parametrize(
    ("given", "is_possible"),
    [
        ({}, True),
        ({"device_discovery_strategy": "nvml"}, False),
        ({"device_discovery_strategy": "tegra"}, True),
        ({"config": PluginConfig(flags=Flags(device_discovery_strategy="nvml"))}, False),
        ({"config": PluginConfig(flags=Flags(device_discovery_strategy="auto")), "platform": Talos()}, True),
        ({"platform": Talos()}, False),
    ],
    ids=str,
)
def test_tegra_nodes_count_where_their_gpus_could_be_found(given, is_possible):
    terms = affinity_terms(Testing.synth(plugin(**{**BESIDE, **given})))
    tegra = {"key": "feature.node.kubernetes.io/cpu-model.vendor_id", "operator": "In", "values": ["NVIDIA"]}
    assert (tegra in terms) is is_possible


def test_an_affinity_of_the_user_replaces_ours_and_an_empty_one_takes_every_node():
    own = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}
    assert pod(Testing.synth(plugin(affinity=own, **BESIDE)))["affinity"] == own
    assert "affinity" not in pod(Testing.synth(plugin(affinity={}, **BESIDE)))


def test_several_configurations_add_to_the_users_affinity():
    config = Configs.named({"a": PluginConfig(), "b": PluginConfig()}, default="a")
    terms = affinity_terms(rendered(affinity={}, config=config), f"{NAME}-b")
    assert terms == [{"key": LABEL, "operator": "In", "values": ["b"]}]


def test_without_it_talos_finds_them_by_the_driver_extension():
    terms = affinity_terms(rendered())
    assert {term["operator"] for term in terms} == {"Exists"}
    assert {term["key"].rpartition("/")[0] for term in terms} == {"extensions.talos.dev"}
    assert len(terms) == 4


def test_without_it_plain_kubernetes_runs_the_plugin_everywhere():
    assert "affinity" not in pod(rendered(platform=Kubernetes()))


# --- what every keyword does -------------------------------------------------


def test_one_list_of_tolerations_reaches_plugin_and_both_discoveries():
    manifests = Testing.synth(plugin(tolerations=[TAINT]))
    gpu_taint = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    pods = [m["spec"]["template"]["spec"] for m in manifests if m["kind"] in ("DaemonSet", "Deployment")]
    assert len(pods) == 5
    for spec in pods:
        assert TAINT.to_manifest() in spec["tolerations"]
        assert gpu_taint in spec["tolerations"]


def test_a_toleration_given_twice_is_written_once():
    again = Toleration(key="nvidia.com/gpu", operator="Exists", effect="NoSchedule")
    assert pod(rendered(tolerations=[again, TAINT, TAINT]))["tolerations"] == [
        {"key": "CriticalAddonsOnly", "operator": "Exists"},
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
        TAINT.to_manifest(),
    ]


def test_a_node_selector_narrows_plugin_and_gpu_feature_discovery():
    manifests = Testing.synth(plugin(node_selector={"pool": "gpu"}))
    assert pod(manifests)["nodeSelector"] == pod(manifests, GFD)["nodeSelector"] == {"pool": "gpu"}
    assert "nodeSelector" not in pod(manifests, WORKER)


def test_every_object_carries_the_name_and_the_instance():
    manifests = Testing.synth(plugin(name="gpus", instance="east", sharing=Sharing.mps(replicas=2), **BESIDE))
    ours = [m for m in manifests if m["kind"] != "Namespace"]
    assert {m["metadata"]["name"].removeprefix("gpus") for m in ours} == {
        "",
        "-config",
        "-gpu-feature-discovery",
        "-mps-control-daemon",
    }
    assert {m["metadata"]["labels"]["app.kubernetes.io/instance"] for m in ours} == {"east"}
    selectors = [m["spec"]["selector"]["matchLabels"] for m in ours if m["kind"] == "DaemonSet"]
    assert {selector["app.kubernetes.io/instance"] for selector in selectors} == {"east"}


def test_the_instance_is_the_charts_id_unless_told_otherwise():
    chart = DevicePluginChart(App(), "my-gpus", **ALONE)
    labels = find(Testing.synth(chart), "DaemonSet")["metadata"]["labels"]
    assert labels["app.kubernetes.io/instance"] == "my-gpus"


def test_pull_secrets_are_named_or_handed_over(app):
    secret = kplus.Secret(Chart(app, "base"), "registry", metadata=ApiObjectMetadata(name="registry"))
    manifests = Testing.synth(plugin(app, image_pull_secrets=["other", secret], **BESIDE))
    for name in (NAME, GFD):
        assert pod(manifests, name)["imagePullSecrets"] == [{"name": "other"}, {"name": "registry"}]


def test_what_all_pods_share_leaves_node_feature_discovery_alone():
    shared = {
        "image": "registry.example/plugin:1",
        "image_pull_policy": "Always",
        "image_pull_secrets": ["registry"],
        "update_strategy": UpdateStrategy.on_delete(),
        "pod_annotations": {"team": "ml"},
        "pod_security_context": {"fsGroup": 5},
        "resources": {"limits": {"memory": "1Gi"}},
        "priority_class_name": "gpu-critical",
        "affinity": {"podAffinity": {}},
    }
    told, untold = Testing.synth(plugin(**shared)), default()
    changed = [m["metadata"]["name"] for m, before in zip(told, untold, strict=True) if m != before]
    assert changed == [NAME, GFD]


def test_image_resources_and_priority_can_be_replaced():
    digest = "registry.example/plugin@sha256:" + "0" * 64
    given = {"limits": {"memory": "1Gi", "cpu": 1}}
    manifests = Testing.synth(plugin(image=digest, resources=given, priority_class_name="gpu-critical"))
    for name in (NAME, GFD):
        assert container(manifests, name)["image"] == digest
        assert container(manifests, name)["resources"] == {"limits": {"memory": "1Gi", "cpu": "1"}}
        assert pod(manifests, name)["priorityClassName"] == "gpu-critical"


def test_without_them_the_pods_are_critical_and_have_a_memory_limit_but_none_of_cpu():
    manifests = rendered()
    assert pod(manifests)["priorityClassName"] == "system-node-critical"
    assert container(manifests)["resources"] == {
        "requests": {"cpu": "10m", "memory": "64Mi"},
        "limits": {"memory": "512Mi"},
    }


@pytest.mark.parametrize(("given", "written"), [(None, None), (True, "true"), (False, "false")])
def test_fail_on_init_error_is_stated_only_when_given(given, written):
    assert environment(rendered(fail_on_init_error=given)).get("FAIL_ON_INIT_ERROR") == written


def test_a_discovery_strategy_given_wins_over_the_platform():
    assert environment(rendered(device_discovery_strategy="auto"))["DEVICE_DISCOVERY_STRATEGY"] == "auto"


def test_several_list_strategies_are_joined():
    listed = environment(rendered(device_list_strategy=["envvar", "cdi-cri"], platform=Talos("1.13")))
    assert listed["DEVICE_LIST_STRATEGY"] == "envvar,cdi-cri"


def test_a_setting_stands_in_the_file_or_in_the_environment_but_not_in_both():
    manifests = rendered(
        sharing=Sharing.time_slicing(replicas=2), mig_strategy="single", fail_on_init_error=True, platform=Talos("1.13")
    )
    assert config(manifests)["flags"].keys() == {"migStrategy"}
    assert "MIG_STRATEGY" not in environment(manifests)


def test_what_a_configuration_states_is_in_the_file_and_what_the_platform_needs_beside_it():
    flags = Flags(device_discovery_strategy="auto", fail_on_init_error=False)
    manifests = Testing.synth(plugin(config=PluginConfig(flags=flags), node_feature_discovery="external"))
    assert config(manifests)["flags"] == {"failOnInitError": False, "deviceDiscoveryStrategy": "auto"}
    for name, told in ((NAME, {"DEVICE_LIST_STRATEGY": "envvar"}), (GFD, {})):
        settings = environment(manifests, name).keys() & {
            "DEVICE_DISCOVERY_STRATEGY",
            "DEVICE_LIST_STRATEGY",
            "FAIL_ON_INIT_ERROR",
        }
        assert settings == told.keys()


def test_a_pod_of_one_configuration_waits_until_the_pod_of_another_is_gone_from_its_node():
    manifests = Testing.synth(plugin(config=Configs.named(FILES, default="plain"), **BESIDE))
    pods = {m["metadata"]["name"]: m["spec"]["template"] for m in manifests if m["kind"] == "DaemonSet"}

    def excluded(name):
        """The DaemonSets whose pods may not run beside those of another."""
        rules = pods[name]["spec"]["affinity"].get("podAntiAffinity", {})
        found = set()
        for term in rules.get("requiredDuringSchedulingIgnoredDuringExecution", ()):
            assert term["topologyKey"] == "kubernetes.io/hostname"
            (component,) = term["labelSelector"]["matchExpressions"]
            assert component["operator"] == "In"
            for other, template in pods.items():
                labels = template["metadata"]["labels"]
                is_meant = term["labelSelector"]["matchLabels"].items() <= labels.items()
                found |= {other} if is_meant and labels[component["key"]] in component["values"] else set()
        return found

    plugins = {NAME, f"{NAME}-mps-4", f"{NAME}-split"}
    for name in plugins:
        assert excluded(name) == plugins - {name}
    assert excluded(GFD) == set()


def test_a_user_s_own_anti_affinity_holds_beside_that_between_configurations():
    own = {"labelSelector": {"matchLabels": {"app": "mine"}}, "topologyKey": "kubernetes.io/hostname"}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    manifests = rendered(
        config=Configs.named(FILES, default="plain"),
        platform=Kubernetes(),
        affinity={"podAntiAffinity": {required: [own]}},
    )
    assert pod(manifests)["affinity"]["podAntiAffinity"][required][0] == own
    assert len(pod(manifests)["affinity"]["podAntiAffinity"][required]) == 2


def test_a_right_or_a_mount_that_one_configuration_needs_is_not_given_to_the_pods_of_another():
    manifests = Testing.synth(plugin(config=Configs.named(FILES, default="plain"), **BESIDE))
    mounted = {
        name: [volume["name"] for volume in pod(manifests, name)["volumes"]]
        for name in (NAME, f"{NAME}-mps-4", f"{NAME}-split")
    }
    assert mounted == {
        NAME: ["config", "device-plugins"],
        f"{NAME}-mps-4": ["config", "device-plugins", "mps-root", "mps-shm"],
        f"{NAME}-split": ["config", "device-plugins"],
    }
    for name in (NAME, GFD):
        held = {
            suffix: container(manifests, name + suffix)["securityContext"]["capabilities"].get("add")
            for suffix in ("", "-mps-4", "-split")
        }
        assert held == {"": None, "-mps-4": None, "-split": ["SYS_ADMIN"]}
        watching = [
            suffix
            for suffix in ("", "-mps-4", "-split")
            if "NVIDIA_MIG_MONITOR_DEVICES" in environment(manifests, name + suffix)
        ]
        assert watching == ["-split"]


@pytest.mark.parametrize("release", ["1.13", "1.14"])
@pytest.mark.parametrize("strategy", CDI)
def test_cdi_names_the_driver_root_of_talos(strategy, release):
    manifests = rendered(platform=Talos(release), device_list_strategy=strategy)
    assert environment(manifests)["NVIDIA_DRIVER_ROOT"] == "/usr/local"


_SHARED_VARIABLES = {
    "CONFIG_FILE",
    "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_DRIVER_CAPABILITIES",
    "NVIDIA_MIG_MONITOR_DEVICES",
}
READ = {
    "nvidia-device-plugin-ctr": """MIG_STRATEGY FAIL_ON_INIT_ERROR NVIDIA_DRIVER_ROOT NVIDIA_DEV_ROOT PASS_DEVICE_SPECS
        DEVICE_LIST_STRATEGY DEVICE_ID_STRATEGY GDRCOPY_ENABLED GDS_ENABLED MOFED_ENABLED CDI_ANNOTATION_PREFIX
        NVIDIA_CDI_HOOK_PATH NVIDIA_CTK_PATH DRIVER_ROOT_CTR_PATH CONTAINER_DRIVER_ROOT MPS_ROOT
        DEVICE_DISCOVERY_STRATEGY IMEX_CHANNEL_IDS IMEX_REQUIRED KUBELET_SOCKET CDI_FEATURE_FLAGS
        DP_DISABLE_HEALTHCHECKS DP_ENABLE_HEALTHCHECKS SHARED_DEVICES_ALLOCATION_POLICY CDI_DISABLE_HOOKS""",
    "gpu-feature-discovery-ctr": """GFD_MIG_STRATEGY MIG_STRATEGY GFD_FAIL_ON_INIT_ERROR FAIL_ON_INIT_ERROR GFD_ONESHOT
        GFD_NO_TIMESTAMP GFD_SLEEP_INTERVAL GFD_OUTPUT_FILE GFD_MACHINE_TYPE_FILE GFD_CONFIG_FILE
        GFD_USE_NODE_FEATURE_API USE_NODE_FEATURE_API DEVICE_DISCOVERY_STRATEGY DRIVER_ROOT_CTR_PATH
        CONTAINER_DRIVER_ROOT NAMESPACE NODE_NAME POD_NAME""",
    "mps-control-daemon-ctr": "MIG_STRATEGY",
}
"""What each program of the image reads. Source: NVIDIA/k8s-device-plugin@v0.18.2 and @v0.20.0, cmd/*/main.go,
internal/flags/node.go and internal/rm/health.go; SHARED_DEVICES_ALLOCATION_POLICY and CDI_DISABLE_HOOKS from 0.20.0."""


@pytest.mark.parametrize("version", ["0.18.2", "0.20.0"])
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"platform": Talos("1.13"), "device_list_strategy": "cdi-cri", "mig_strategy": "mixed"},
        {"platform": Talos("1.13"), "config": Configs.named(FILES, default="plain")},
        {
            "platform": Talos("1.14"),
            "config": Configs.external(
                "theirs",
                may_use=["cdi", "mig"],
                flags=Flags(nvidia_driver_root="/usr/local", fail_on_init_error=False, mps_root="/mps"),
            ),
        },
    ],
    ids=["default", "cdi", "named", "external"],
)
def test_each_program_is_given_only_variables_that_it_reads(given, version):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GpuConstructsWarning)
        manifests = Testing.synth(plugin(**given, version=version, node_feature_discovery="external"))
    for manifest in manifests:
        for one in manifest["spec"]["template"]["spec"]["containers"] if manifest["kind"] == "DaemonSet" else ():
            if one["name"] in READ:
                assert {entry["name"] for entry in one["env"]} <= {*READ[one["name"]].split(), *_SHARED_VARIABLES}


@pytest.mark.parametrize(
    ("given", "root"),
    [
        ({"device_list_strategy": "cdi-cri"}, "/"),
        ({"device_list_strategy": "cdi-annotations", "platform": Talos("1.14")}, "/"),
        # Device specs name nodes below the same root.
        ({"config": PluginConfig(flags=Flags(nvidia_driver_root="/usr/local"))}, "/"),
        ({"config": Configs.external("theirs", default="a", may_use=["cdi"])}, "/"),
        ({"config": Configs.managed({"a": DRIVEN, "b": replace(DRIVEN, flags=ROOTED)}, default="a")}, "/"),
        # A value that the user states wins, and other roots keep the plugin's default: the driver root.
        ({"config": PluginConfig(flags=Flags(nvidia_driver_root="/usr/local", nvidia_dev_root="/host"))}, None),
        ({"config": PluginConfig(flags=Flags(nvidia_driver_root="/run/nvidia/driver"))}, None),
        ({"platform": Kubernetes(), "device_list_strategy": "cdi-cri"}, None),
        ({}, None),
    ],
)
def test_device_nodes_are_found_beside_a_driver_root_that_holds_none(given, root):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GpuConstructsWarning)
        manifests = rendered(**{"platform": Talos("1.13"), **given})
    (main,) = [one for one in pod(manifests)["containers"] if one["name"] == "nvidia-device-plugin-ctr"]
    assert {entry["name"]: entry.get("value") for entry in main["env"]}.get("NVIDIA_DEV_ROOT") == root


def test_cdi_names_the_driver_root_of_plain_kubernetes():
    manifests = rendered(platform=Kubernetes(), device_list_strategy="cdi-cri")
    assert environment(manifests)["NVIDIA_DRIVER_ROOT"] == "/"


def test_without_cdi_no_driver_root_is_mounted():
    manifests = rendered(platform=Talos("1.13"))
    assert "NVIDIA_DRIVER_ROOT" not in environment(manifests)
    assert [volume["name"] for volume in pod(manifests)["volumes"]] == ["config", "device-plugins"]


# --- the configuration file ----------------------------------------------------


def test_the_file_holds_the_sharing_and_the_mig_strategy():
    manifests = rendered(sharing=Sharing.time_slicing(replicas=5), mig_strategy="mixed")
    assert config(manifests) == {
        "version": "v1",
        "flags": {"migStrategy": "mixed"},
        "sharing": {
            "timeSlicing": {
                "renameByDefault": False,
                "failRequestsGreaterThanOne": True,
                "resources": [{"name": "nvidia.com/gpu", "replicas": 5}],
            }
        },
    }


def test_both_programs_mount_the_file_and_carry_its_checksum():
    manifests = Testing.synth(plugin(sharing=Sharing.time_slicing(replicas=5)))
    text = find(manifests, "ConfigMap", f"{NAME}-config")["data"]["config.yaml"]
    for name in (NAME, GFD):
        template = find(manifests, "DaemonSet", name)["spec"]["template"]
        assert template["metadata"]["annotations"] == {"gpu-constructs/config-sha256": sha256(text)}
        assert {"name": "config", "configMap": {"name": f"{NAME}-config"}} in template["spec"]["volumes"]


def test_another_file_changes_the_checksum_and_no_name():
    four, five = (Testing.synth(plugin(sharing=Sharing.time_slicing(replicas=n))) for n in (4, 5))
    names = [[(m["kind"], m["metadata"]["name"]) for m in manifests] for manifests in (four, five)]
    assert names[0] == names[1]
    for name in (NAME, GFD):
        first, second = (find(m, "DaemonSet", name)["spec"]["template"]["metadata"] for m in (four, five))
        assert first["annotations"] != second["annotations"]
        assert first["labels"] == second["labels"]
    assert find(four, "DaemonSet", WORKER) == find(five, "DaemonSet", WORKER)


@pytest.mark.parametrize("component", ["master", "worker"])
def test_node_feature_discovery_mounts_its_file_where_it_looks_for_it(component):
    manifests = Testing.synth(plugin(gpu_feature_discovery=False))
    name = f"{NAME}-node-feature-discovery-{component}"
    kind = "DaemonSet" if component == "worker" else "Deployment"
    (data,) = [m["data"] for m in manifests if m["kind"] == "ConfigMap" and m["metadata"]["name"] == f"{name}-conf"]
    template = find(manifests, kind, name)["spec"]["template"]
    assert list(data) == [f"nfd-{component}.conf"]
    assert {"name": "config", "configMap": {"name": f"{name}-conf"}} in template["spec"]["volumes"]
    assert template["metadata"]["annotations"]["gpu-constructs/config-sha256"] == sha256(*data.values())


# --- least privilege -----------------------------------------------------------


def test_a_shared_gpu_needs_no_right_of_any_container():
    manifests = Testing.synth(plugin(sharing=Sharing.time_slicing(replicas=5)))
    for manifest in manifests:
        for part in manifest.get("spec", {}).get("template", {}).get("spec", {}).get("containers", ()):
            security = part["securityContext"]
            assert security["capabilities"] == {"drop": ["ALL"]}
            assert security["allowPrivilegeEscalation"] is False
            assert security["readOnlyRootFilesystem"] is True
            assert "privileged" not in security


def test_no_pod_shares_a_namespace_of_the_host():
    text = json.dumps(default())
    assert not any(field in text for field in ("hostPID", "hostNetwork", "hostIPC"))


def test_only_pods_that_ask_the_api_server_hold_a_token():
    manifests = default()
    holders = [
        m["metadata"]["name"]
        for m in manifests
        if m.get("spec", {}).get("template", {}).get("spec", {}).get("automountServiceAccountToken")
    ]
    nfd = f"{NAME}-node-feature-discovery"
    assert sorted(holders) == [GFD, f"{nfd}-gc", f"{nfd}-master", f"{nfd}-worker"]


def test_rights_over_the_cluster_are_those_of_two_parts_of_node_feature_discovery():
    manifests = default()
    nfd = f"{NAME}-node-feature-discovery"
    names = [m["metadata"]["name"] for m in manifests if m["kind"] == "ClusterRole"]
    assert sorted(names) == [f"{nfd}-gc", f"{nfd}-master"]
    assert "nodes/proxy" not in json.dumps(manifests)
    assert not any(m["kind"] in ("ClusterRole", "Role") for m in rendered())


# --- what it says to the cluster checks ------------------------------------------


def test_it_publishes_gpu_present_only_with_node_feature_discovery():
    assert plugin().provides.publishes("nvidia.com/gpu.present")
    assert plugin(node_feature_discovery="external").provides.publishes("nvidia.com/gpu.present")
    assert not alone().provides.publishes("nvidia.com/gpu.present")


def test_it_publishes_gpu_labels_only_with_gpu_feature_discovery():
    assert "nvidia.com/gpu.product" in plugin().provides.node_labels
    assert "nvidia.com/gpu.product" not in plugin(gpu_feature_discovery=False).provides.node_labels


def test_it_advertises_the_resource_that_its_sharing_names():
    sharing = Sharing.time_slicing(replicas=2, rename_by_default=True)
    assert alone(sharing=sharing).provides.gpu_resources == {"nvidia.com/gpu.shared": sharing}
    assert alone().provides.gpu_resources == {"nvidia.com/gpu": Sharing.none()}


def test_mixed_mig_advertises_a_resource_for_each_profile_besides():
    sharing = Sharing.time_slicing(replicas=2)
    assert alone(mig_strategy="mixed", sharing=sharing).provides.gpu_resources == {
        "nvidia.com/gpu": sharing,
        "nvidia.com/mig-*": Sharing.none(),
    }
    assert alone(mig_strategy="single").provides.gpu_resources == {"nvidia.com/gpu": Sharing.none()}


def test_the_label_that_chooses_a_configuration_counts_as_published_where_it_chooses():
    assert (
        LABEL
        in alone(config=Configs.named({"a": PluginConfig(), "b": PluginConfig()}, default="a")).provides.node_labels
    )
    assert LABEL not in alone(config=PluginConfig()).provides.node_labels
    with pytest.warns(GpuConstructsWarning):
        assert LABEL in alone(config=Configs.external("theirs")).provides.node_labels


def test_nodes_that_differ_offer_what_any_of_them_offers_and_refuse_what_all_of_them_refuse():
    strict, lenient = (
        Sharing.time_slicing(replicas=2, fail_requests_greater_than_one=refuses) for refuses in (True, False)
    )
    renamed = Sharing.mps(replicas=2, rename_by_default=True)
    configs = {
        "strict": PluginConfig(sharing=strict),
        "lenient": PluginConfig(sharing=lenient),
        "renamed": PluginConfig(sharing=renamed),
    }
    offered = alone(config=Configs.named(configs, default="strict"), platform=Kubernetes()).provides.gpu_resources
    assert offered == {"nvidia.com/gpu": lenient, "nvidia.com/gpu.shared": renamed}
    mixed = PluginConfig(
        flags=Flags(mig_strategy="mixed"), sharing=Sharing.time_slicing(resources={"nvidia.com/mig-1g.5gb": 2})
    )
    assert alone(config=mixed).provides.gpu_resources == {
        "nvidia.com/gpu": Sharing.none(),
        "nvidia.com/mig-1g.5gb": mixed.sharing,
        "nvidia.com/mig-*": Sharing.none(),
    }


def test_an_external_config_map_may_offer_anything():
    with pytest.warns(GpuConstructsWarning):
        offered = alone(config=Configs.external("theirs")).provides.gpu_resources
    assert offered.keys() == {"nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-*"}


def bare(chart):
    return [replace(offer, pod_spec=None) for offer in chart.provides.gpu_offers]


@pytest.mark.parametrize("made_by", [Configs.named, Configs.managed])
@pytest.mark.filterwarnings("ignore:.*config-manager")
def test_it_says_which_nodes_the_pods_of_each_configuration_run_on(made_by):
    configs = {"strict": PluginConfig(), "shared": PluginConfig(sharing=Sharing.time_slicing(replicas=4))}
    chart = alone(
        config=made_by(configs, default="strict"),
        platform=Kubernetes(),
        node_selector={"pool": "a"},
        tolerations=[Toleration(key="dedicated", operator="Exists")],
        gpu_feature_discovery=False,
    )
    rendered = {
        one["metadata"]["name"]: one["spec"]["template"]["spec"]
        for one in Testing.synth(chart)
        if one["kind"] == "DaemonSet"
    }
    of_default = rendered["nvidia-device-plugin"]
    pods = [of_default, rendered.get("nvidia-device-plugin-shared", of_default)]
    told = [offer.pod_spec for offer in chart.provides.gpu_offers]
    kept = ("nodeSelector", "affinity", "tolerations")
    assert told == [{key: one[key] for key in kept if one.get(key)} for one in pods]
    assert [one["nodeSelector"] for one in told] == [{"pool": "a"}] * 2


def test_it_says_how_each_configuration_advertises_gpus():
    sharing = Sharing.time_slicing(replicas=4)
    assert bare(alone(sharing=sharing)) == [GpuOffer(sharing=sharing)]
    configs = {"strict": PluginConfig(), "shared": PluginConfig(sharing=sharing)}
    assert bare(alone(config=Configs.named(configs, default="strict"), platform=Kubernetes())) == [
        GpuOffer(sharing=Sharing.none(), config="strict"),
        GpuOffer(sharing=sharing, config="shared", is_default=False),
    ]
    assert alone(mig_strategy="single").provides.gpu_offers[0].mig_strategy == "single"
    assert plugin(device_plugin=False).provides.gpu_offers == ()


def test_without_a_plugin_nothing_is_offered():
    assert plugin(device_plugin=False).provides.gpu_resources == {}


# --- what synth says --------------------------------------------------------------


def problems(app):
    with pytest.raises(SynthesisError) as refused:
        synthesize(app)
    return refused.value.problems


def test_mps_without_gpu_feature_discovery_needs_a_label_that_nobody_publishes(app):
    plugin(app, sharing=Sharing.mps(replicas=4), gpu_feature_discovery=False, platform=Kubernetes())
    (problem,) = problems(app)
    assert problem.startswith(
        f"{NAME}/mps-control-daemon: selects nodes by the label 'nvidia.com/mps.capable', which nothing in this app "
        "publishes, so its pods would never be scheduled; "
    )
    assert problem.endswith("External(app, 'existing', node_labels=['nvidia.com/mps.capable']) [R12]")
    External(app, "existing", node_labels=["nvidia.com/mps.capable"])
    synthesize(app)


def test_mps_with_gpu_feature_discovery_has_all_the_labels_it_needs(app):
    plugin(app, sharing=Sharing.mps(replicas=4), platform=Kubernetes())
    synthesize(app)


def test_a_node_feature_discovery_that_labels_no_node_leaves_the_plugin_without_nodes(app):
    plugin(app, node_feature_discovery=NodeFeatureDiscovery(worker=None))
    said = problems(app)
    assert [problem.partition(":")[0] for problem in said] == [NAME, f"{NAME}/gpu-feature-discovery/daemonset"]
    for problem in said:
        assert "selects nodes by the label 'nvidia.com/gpu.present', which nothing in this app publishes" in problem


def test_a_runtime_class_of_another_app_is_missed(app):
    runtime_class = NvidiaRuntimeClass(Chart(App(), "elsewhere"), "runtime-class", name="gpu-runtime")
    alone(app, runtime_class=runtime_class)
    (problem,) = problems(app)
    assert problem.startswith(f"{NAME}: runtime_class 'gpu-runtime' is used but no RuntimeClass of that name")


def test_several_configurations_make_an_app_that_can_be_applied(app):
    plugin(app, config=Configs.named(FILES, default="plain"), platform=Talos("1.13"))
    synthesize(app)


# --- warnings --------------------------------------------------------------------


WARNED = {
    "device_plugin and gpu_feature_discovery are both False: nothing looks at a GPU": {"device_plugin": False},
    "config-manager takes the default": {"config": Configs.managed({"a": PluginConfig()}, default="a")},
    "MPS is reported not to start on Talos 1.12": {"sharing": Sharing.mps(replicas=2)},
    "device_list_strategy 'volume-mounts' overwrites": {
        "device_list_strategy": ["envvar", "volume-mounts"],
        "platform": Kubernetes(),
    },
    "release 0.19.1 of the device plugin hands": {"version": Unverified("0.19.1", like="0.18.2")},
}


@pytest.mark.parametrize(("message", "given"), WARNED.items())
def test_what_works_badly_is_warned_of_once_with_the_charts_id(message, given):
    with pytest.warns(GpuConstructsWarning) as caught:
        alone(**given)
    (warning,) = caught
    assert str(warning.message).startswith(f"{NAME}: {message}")


def test_a_warning_points_at_the_line_that_makes_the_chart():
    for given in WARNED.values():
        options = {**ALONE, **given}
        line = sys._getframe().f_lineno + 2
        with pytest.warns(GpuConstructsWarning) as caught:
            DevicePluginChart(App(), NAME, **options)
        assert [(warning.filename, warning.lineno) for warning in caught] == [(__file__, line)]


def test_nothing_else_is_warned_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plugin()
        alone()
        plugin(**EVERYTHING)
        plugin(config=Configs.named(FILES, default="plain"), platform=Talos("1.13"))


# --- refusals --------------------------------------------------------------------

STRATEGIES = "'envvar', 'volume-mounts', 'cdi-annotations', 'cdi-cri'"
RELEASES = "'0.18.2', '0.19.3', '0.20.0'"
DNS_LABEL = "a DNS label (a-z, 0-9 and '-', at most 63 characters, letter or digit at both ends)"
SUBDOMAIN = "a DNS subdomain (DNS labels joined by '.', at most 253 characters)"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"device_list_strategy": "envvars"},
            f"device_list_strategy must be one of {STRATEGIES}; got 'envvars' (did you mean 'envvar'?)",
        ),
        (
            {"device_list_strategy": ["envvar", "cdi"]},
            f"device_list_strategy[1] must be one of {STRATEGIES}; got 'cdi' (did you mean 'cdi-cri'?)",
        ),
        (
            {"device_list_strategy": []},
            "device_list_strategy must name at least one strategy, got an empty list: pods would get no GPU; "
            "leave it out for the platform's default",
        ),
        (
            {"device_list_strategy": ["envvar", "envvar"]},
            "device_list_strategy must not repeat a strategy; got ['envvar', 'envvar']",
        ),
        (
            {"mig_strategy": "singel"},
            "mig_strategy must be one of 'none', 'single', 'mixed'; got 'singel' (did you mean 'single'?)",
        ),
        (
            {"device_discovery_strategy": "nvlm"},
            "device_discovery_strategy must be one of 'auto', 'nvml', 'tegra'; got 'nvlm' (did you mean 'nvml'?)",
        ),
        (
            {"namespace": "default"},
            "namespace must not be 'default': GPU components need a namespace whose Pod Security level is "
            "privileged; leave it out for 'nvidia-gpu-operator' or name one of your own",
        ),
        ({"namespace": "GPU_Operator"}, f"namespace must be {DNS_LABEL}; got 'GPU_Operator'"),
        ({"namespace": ""}, f"namespace must be {DNS_LABEL}; got ''"),
        ({"namespace": "a" * 64}, f"namespace must be {DNS_LABEL}; got '{'a' * 64}'"),
        ({"namespace": 5}, "namespace must be the name of a Namespace or a Namespace object; got int"),
        (
            {"version": "0.15.0"},
            f"version of the device plugin must be one of {RELEASES}; got '0.15.0'; it is older than anything "
            "supported: move up to '0.18.2' or later",
        ),
        (
            {"version": "0.21.0"},
            f"version of the device plugin must be one of {RELEASES}; got '0.21.0'; force it with "
            "Unverified('0.21.0', like='0.20.0')",
        ),
        (
            {"version": Unverified("0.21.0", like="0.19.0")},
            f"version.like of the device plugin must be one of {RELEASES}; got '0.19.0'",
        ),
        (
            {"version": "v0.18.2"},
            f"version of the device plugin must be one of {RELEASES}; got 'v0.18.2' (did you mean '0.18.2'?)",
        ),
        ({"platform": "talos"}, "platform must be one of (Talos, Kubernetes); got str: 'talos'"),
        ({"sharing": {"replicas": 5}}, "sharing must be one of (Sharing, None); got dict: {'replicas': 5}"),
        ({"tolerations": [{"key": "a"}]}, "tolerations[0] must be Toleration; got dict: {'key': 'a'}"),
        ({"node_selector": {"pool": 1}}, "node_selector['pool'] must be str; got int: 1"),
        ({"node_selector": {"a b": "c"}}, "node_selector has a key that is no label key; got 'a b'"),
        (
            {"gpu_feature_discovery": 1},
            "gpu_feature_discovery must be one of (bool, GpuFeatureDiscovery); got int: 1",
        ),
        ({"device_plugin": {}}, "device_plugin must be one of (bool, DevicePlugin); got dict: {}"),
        (
            {"mps_control_daemon": True},
            "mps_control_daemon must be one of (MpsControlDaemon, None); got bool: True",
        ),
        (
            {"node_feature_discovery": "extern"},
            "node_feature_discovery must be one of 'external'; got 'extern' (did you mean 'external'?)",
        ),
        ({"config": {}}, "config must be one of (PluginConfig, Configs, None); got dict: {}"),
        (
            {"gpu_feature_discovery": True},
            "gpu_feature_discovery publishes through Node Feature Discovery, which is False; leave "
            "node_feature_discovery out to install it, pass node_feature_discovery='external' if the cluster runs one, "
            "or pass gpu_feature_discovery=False",
        ),
        ({"name": "GPU"}, f"name must be {SUBDOMAIN}; got 'GPU'"),
        ({"name": ""}, f"name must be {SUBDOMAIN}; got ''"),
        (
            {"instance": "a b"},
            "instance must be a label value (letters, digits, '-', '_', '.', at most 63 characters, letter or digit at "
            "both ends); got 'a b'",
        ),
        (
            {"name": "a" * 64},
            f"name must be {SUBDOMAIN}; got '{'a' * 64}'",
        ),
        (
            {"name": "a" * 60 + ".b" * 2},
            f"name must be shorter: DaemonSet '{'a' * 60}.b.b' would have 64 characters of at most 63; shorten name= "
            "or the names of the configurations",
        ),
        (
            {"image_pull_policy": "always"},
            "image_pull_policy must be one of 'Always', 'IfNotPresent', 'Never'; got 'always' (did you mean 'Always'?)",
        ),
        (
            {"image_pull_secrets": "registry"},
            "image_pull_secrets must be a list, got 'registry' (str)",
        ),
        (
            {"image_pull_secrets": [5]},
            "image_pull_secrets must be the name of a Secret or a Secret object; got int",
        ),
        (
            {"update_strategy": "OnDelete"},
            "update_strategy must be one of (UpdateStrategy, None); got str: 'OnDelete'",
        ),
        ({"pod_annotations": {"a b": "c"}}, "pod_annotations has a key that is no label key; got 'a b'"),
        ({"pod_annotations": {"a": True}}, "pod_annotations['a'] must be str; got bool: True"),
        *(
            (
                {"pod_annotations": {key: "0"}},
                f"pod_annotations must not hold {key!r}: this library sets it; leave it out",
            )
            for key in ("gpu-constructs/config-sha256", "a.gpu-constructs/config-sha256")
        ),
        (
            {"affinity": {"nodeaffinity": {}}},
            "affinity key must be one of 'nodeAffinity', 'podAffinity', 'podAntiAffinity'; got 'nodeaffinity' (did you "
            "mean 'nodeAffinity'?)",
        ),
        (
            {"affinity": {"nodeAffinity": [5]}},
            "affinity['nodeAffinity'] must be one of (Mapping[str, Any], None); got list: [5]",
        ),
        *(
            ({"affinity": {"nodeAffinity": {REQUIRED: terms}}}, f"affinity['nodeAffinity']['{REQUIRED}']{problem}")
            for terms, problem in (
                (5, " must be Mapping; got int: 5"),
                ({"nodeSelectorTerms": [5]}, "['nodeSelectorTerms'][0] must be Mapping; got int: 5"),
                (
                    {"nodeSelectorTerms": []},
                    " must hold 'nodeSelectorTerms' with at least one term; got {'nodeSelectorTerms': []}",
                ),
                ({}, " must hold 'nodeSelectorTerms' with at least one term; got {}"),
            )
        ),
        ({"vgpu": True}, "vgpu is no keyword of DevicePluginChart"),
        (
            {
                "gpu_feature_discovery": True,
                "node_feature_discovery": NodeFeatureDiscovery(
                    master=NfdMaster(config={"restrictions": {"denyNodeFeatureLabels": True}})
                ),
            },
            "node_feature_discovery.master.config.restrictions.denyNodeFeatureLabels must not be True beside "
            "gpu_feature_discovery, whose labels the master would drop without a word; leave it out",
        ),
        (
            {"mig_strategy": "single", "device_plugin": DevicePlugin(security_context={"runAsUser": 0})},
            "device_plugin.security_context must hold privileged=True for mig; got {'runAsUser': 0}; leave it out for "
            "what the configuration needs",
        ),
        (
            {"device_plugin": DevicePlugin(cdi_disable_hooks=["all"]), "version": "0.18.2"},
            "device_plugin.cdi_disable_hooks needs release 0.20.0 of the device plugin, which 0.18.2 would ignore or "
            "refuse; leave it out or move up",
        ),
        (
            {"config": PluginConfig(flags=Flags(device_discovery_strategy="vfio"))},
            "flags.device_discovery_strategy 'vfio' is for GPU Feature Discovery alone, the plugin refuses it; use "
            "'nvml' or pass device_plugin=False",
        ),
        (
            {
                "config": PluginConfig(flags=Flags(mps_root="/a"), sharing=Sharing.mps(replicas=2)),
                "mps_control_daemon": MpsControlDaemon(root="/b"),
            },
            "mps_control_daemon.root must be flags.mps_root of the configuration, '/a'; got '/b'; say it in one place",
        ),
        (
            {"image": "k8s-device-plugin:latest"},
            "image must be pinned as 'repository:tag' or 'repository@sha256:...', never 'latest'; "
            "got 'k8s-device-plugin:latest'",
        ),
        (
            {"runtime_class": "NVIDIA"},
            "runtime_class must be a DNS subdomain (DNS labels joined by '.', at most 253 characters); got 'NVIDIA'",
        ),
        (
            {"priority_class_name": "very high"},
            "priority_class_name must be a DNS subdomain (DNS labels joined by '.', at most 253 characters); "
            "got 'very high'",
        ),
        (
            {"resources": {"limit": {"memory": "1Gi"}}},
            "resources key must be one of 'requests', 'limits'; got 'limit' (did you mean 'limits'?)",
        ),
        (
            {"resources": {"limits": {"memory": "1GB"}}},
            "resources['limits']['memory'] must be a Kubernetes quantity like '500m' or '16Gi'; got '1GB'",
        ),
        (
            {"resources": {"limits": {"nvidia.com/gpu": 1}}},
            "resources['limits']['nvidia.com/gpu'] must not be set here; got 1; leave it out: this "
            "pod needs no GPU of its own, and would take one from the workloads",
        ),
        ({"replicas": 5}, "replicas is no keyword of DevicePluginChart"),
        (
            {"toleration": []},
            "toleration is no keyword of DevicePluginChart (did you mean 'tolerations'?)",
        ),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, dict) else "",
)
def test_bad_input_gets_one_error_that_names_the_way_out(given, message):
    assert refusal(**given) == f"nvidia-device-plugin: {message}"


@pytest.mark.parametrize("beside", [PluginConfig(), Configs.named({"a": PluginConfig()}, default="a")])
@pytest.mark.parametrize(
    ("keyword", "value", "home"),
    [
        ("sharing", Sharing.none(), "sharing"),
        ("mig_strategy", "none", "flags.mig_strategy"),
        ("device_list_strategy", "envvar", "flags.plugin.device_list_strategy"),
        ("device_discovery_strategy", "nvml", "flags.device_discovery_strategy"),
        ("fail_on_init_error", False, "flags.fail_on_init_error"),
    ],
)
def test_a_setting_of_the_configuration_is_not_said_beside_it(beside, keyword, value, home):
    assert refusal(config=beside, **{keyword: value}) == (
        f"nvidia-device-plugin: {keyword} must be left out beside config, got {value!r}: a setting has one place; set "
        f"{home} in config"
    )


@pytest.mark.parametrize(
    ("name", "kind", "of"),
    [
        ("gpu-feature-discovery", "DaemonSet", GFD),
        ("MPS_control.daemon", "DaemonSet", MPS),
        ("node-feature-discovery-worker", "DaemonSet", WORKER),
    ],
)
def test_a_configuration_is_not_called_like_a_program(name, kind, of):
    configs = {"default": PluginConfig(sharing=Sharing.mps(replicas=2)), name: PluginConfig()}
    with pytest.raises(GpuConstructsError) as refused:
        plugin(config=Configs.named(configs, default="default"), platform=Kubernetes())
    assert str(refused.value) == (
        f"nvidia-device-plugin: configs must have names that no program has: {kind} {of!r} would be made twice; call "
        "the configuration something else"
    )
    assert alone(config=Configs.named({"default": PluginConfig(), name: PluginConfig()}, default="default"))


def test_names_are_measured_with_all_that_stands_behind_them():
    fitting = "a" * (63 - len("-gpu-feature-discovery-split"))
    config = Configs.named({"plain": PluginConfig(), "split": PluginConfig()}, default="plain")
    assert plugin(name=fitting, config=config, **BESIDE)
    with pytest.raises(GpuConstructsError) as refused:
        plugin(name=f"{fitting}a", config=config, **BESIDE)
    assert str(refused.value) == (
        f"nvidia-device-plugin: name must be shorter: DaemonSet '{fitting}a-gpu-feature-discovery-split' would have 64 "
        "characters of at most 63; shorten name= or the names of the configurations"
    )


def test_config_manager_of_an_old_release_does_not_share_by_mps():
    with (
        pytest.warns(GpuConstructsWarning),
        pytest.raises(GpuConstructsError, match="cannot share by MPS on release 0"),
    ):
        plugin(config=Configs.managed(FILES, default="plain"), version="0.18.2", **BESIDE)


def test_cdi_fields_of_the_runtime_interface_are_refused_on_a_kubernetes_without_them():
    assert refusal(platform=Kubernetes("1.27"), device_list_strategy="cdi-cri") == (
        "nvidia-device-plugin: device_list_strategy 'cdi-cri' cannot work on Kubernetes 1.27: kubelets hand no CDI "
        "devices to the runtime before Kubernetes 1.28; use 'cdi-annotations'"
    )


@pytest.mark.parametrize("strategy", CDI)
@pytest.mark.parametrize("release", ["1.10", "1.11", "1.12"])
def test_cdi_is_refused_where_the_paths_of_a_spec_do_not_exist(release, strategy):
    assert refusal(platform=Talos(release), device_list_strategy=["envvar", strategy]) == (
        f"nvidia-device-plugin: device_list_strategy '{strategy}' cannot work on Talos {release}: a CDI spec would "
        "name host paths that exist from Talos 1.13 on; use 'envvar'"
    )


def test_an_object_of_another_kind_is_no_namespace(app):
    other = kplus.ConfigMap(Chart(app, "base"), "other")
    assert refusal(namespace=other) == (
        "nvidia-device-plugin: namespace must be the name of a Namespace or a Namespace object; got a ConfigMap"
    )


def test_a_namespace_object_named_default_is_refused_as_well(app):
    assert "must not be 'default'" in refusal(namespace=GpuNamespace(Chart(app, "base"), "ns", name="default"))


def test_a_refused_chart_leaves_the_app_as_it_was(app):
    with pytest.raises(GpuConstructsError):
        alone(app, version="0.15.0")
    assert list(app.node.children) == []
    assert alone(app)


@pytest.mark.parametrize(
    "release",
    [
        {"version": "1.\N{SUPERSCRIPT TWO}", "like": "0.20.0"},
        {"version": 5, "like": "0.20.0"},
        {"version": "0.21.0", "like": None},
        {"version": "0.21.0", "like": ["0.20.0"]},
        {"version": "0.21.0", "like": "0.20.0", "image": "k8s-device-plugin"},
        {"version": "0.21 beta", "like": "0.20.0"},
    ],
    ids=str,
)
def test_an_unverified_release_is_checked_like_any_other_value(release):
    with pytest.raises(GpuConstructsError, match="version"):
        alone(version=Unverified(**release))


def test_a_version_in_digits_of_another_script_is_unknown_like_any_other():
    assert refusal(version="1.\N{SUPERSCRIPT TWO}").startswith(
        "nvidia-device-plugin: version of the device plugin must"
    )


def test_configurations_beside_the_default_leave_its_selectors_as_they_were():
    one = PluginConfig(sharing=Sharing.time_slicing(replicas=2))

    def selectors(config):
        chart = DevicePluginChart(App(), NAME, platform=Kubernetes(), config=config)
        return {m["metadata"]["name"]: m["spec"]["selector"] for m in Testing.synth(chart) if m["kind"] == "DaemonSet"}

    before = selectors(one)
    after = selectors(Configs.named({"shared": one, "whole": PluginConfig()}, default="shared"))
    assert {name: after[name] for name in before} == before
    assert len({str(selector) for selector in after.values()}) == len(after)


def test_a_master_that_denies_features_of_others_is_refused_beside_gpu_feature_discovery():
    master = NfdMaster(config={"restrictions": {"denyNodeFeatureLabels": True}})
    discovery = NodeFeatureDiscovery(master=master)
    with pytest.raises(GpuConstructsError) as refused:
        DevicePluginChart(App(), NAME, node_feature_discovery=discovery)
    assert str(refused.value) == (
        f"{NAME}: node_feature_discovery.master.config.restrictions.denyNodeFeatureLabels must not be True beside "
        "gpu_feature_discovery, whose labels the master would drop without a word; leave it out"
    )
    DevicePluginChart(App(), NAME, node_feature_discovery=discovery, gpu_feature_discovery=False)


def test_two_plugins_on_one_node_are_refused():
    with pytest.raises(GpuConstructsError) as refused:
        DevicePluginChart(App(), NAME, update_strategy=UpdateStrategy.rolling_update(max_unavailable=0, max_surge=1))
    assert str(refused.value) == (
        f"{NAME}: update_strategy must not surge: two plugins on a node would share one socket, which the old one "
        "removes when it ends; got max_surge=1; use max_unavailable"
    )


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"release_name": None}, "release_name must be str; got None"),
        ({"release_name": 5}, "release_name must be str; got int: 5"),
        ({"version": 20}, "version must be one of (str, Unverified); got int: 20"),
        ({"strict": "no"}, "strict must be bool; got str: 'no'"),
        ({"values": {"gfd": 1}}, "values.gfd must be a mapping, got 1: "),
    ],
)
def test_what_helm_values_are_taken_with_is_checked_and_refused_with_the_charts_path(given, problem):
    options = {"values": {}, "release_name": "nvdp", "namespace": "gpu", "version": "0.20.0", **given}
    with pytest.raises(GpuConstructsError) as refused:
        DevicePluginChart.from_helm_values(App(), NAME, options.pop("values"), **options)
    assert str(refused.value).startswith(f"{NAME}: {problem}")

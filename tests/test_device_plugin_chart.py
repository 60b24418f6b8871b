import json
import sys
import warnings
from functools import cache

import cdk8s_plus_27 as kplus
import pytest
import yaml
from cdk8s import ApiObject, App, Chart, Testing

from gpu_constructs import (
    DevicePluginChart,
    GpuConstructsError,
    GpuConstructsWarning,
    GpuNamespace,
    Kubernetes,
    NvidiaRuntimeClass,
    Sharing,
    Talos,
    Toleration,
    Unverified,
    synthesize,
)
from gpu_constructs._config_map import sha256

NAME = "nvidia-device-plugin"
GFD = "nvidia-device-plugin-gpu-feature-discovery"
WORKER = "nvidia-device-plugin-node-feature-discovery-worker"
TAINT = Toleration(key="dedicated", value="ai", effect="NoSchedule")
ALONE = {"node_feature_discovery": False, "gpu_feature_discovery": False}
CDI = ["cdi-cri", "cdi-annotations"]


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


@pytest.mark.parametrize("version", ["0.18.2", "0.20.0"])
def test_time_slicing_on_talos_with_both_discoveries(version, objects, snapshot):
    sharing = Sharing.time_slicing(replicas=5)
    manifests = objects(plugin(version=version, sharing=sharing, tolerations=[TAINT]))
    assert without_definitions(manifests) == snapshot


def test_plain_kubernetes_gets_the_plugin_alone(objects, snapshot):
    chart = alone(platform=Kubernetes(), namespace="nvidia-device-plugin", fail_on_init_error=False)
    assert objects(chart) == snapshot


def test_mig_on_talos_1_11_takes_sys_admin(objects, snapshot):
    with pytest.warns(GpuConstructsWarning):
        chart = alone(platform=Talos("1.11"), mig_strategy="mixed", gpu_feature_discovery=True)
    assert objects(chart) == snapshot


def test_mig_on_talos_1_12_takes_a_privileged_container(objects, snapshot):
    with pytest.warns(GpuConstructsWarning):
        chart = alone(platform=Talos("1.12"), mig_strategy="single", gpu_feature_discovery=True)
    assert objects(chart) == snapshot


def test_cdi_on_talos_1_13(objects, snapshot):
    assert objects(alone(platform=Talos("1.13"), device_list_strategy=CDI)) == snapshot


def test_volume_mounts_take_sys_admin(objects, snapshot):
    assert objects(alone(device_list_strategy="volume-mounts")) == snapshot


def test_vgpu_discovery_takes_a_privileged_container(objects, snapshot):
    with pytest.warns(GpuConstructsWarning):
        chart = alone(vgpu=True, gpu_feature_discovery=True)
    assert objects(chart) == snapshot


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


@pytest.mark.parametrize(("version", "nfd"), [("0.18.2", "0.17.3"), ("0.20.0", "0.19.0")])
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
    manifests = rendered(version=Unverified("0.19.3", like="0.20.0"))
    assert container(manifests)["image"] == "nvcr.io/nvidia/k8s-device-plugin:v0.19.3"
    labels = find(manifests, "DaemonSet")["metadata"]["labels"]
    assert labels["app.kubernetes.io/version"] == "0.19.3"


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
    listed = environment(rendered(device_list_strategy=["envvar", "volume-mounts"]))
    assert listed["DEVICE_LIST_STRATEGY"] == "envvar,volume-mounts"


def test_a_setting_stands_in_the_file_or_in_the_environment_but_not_in_both():
    manifests = rendered(
        sharing=Sharing.time_slicing(replicas=2), mig_strategy="single", fail_on_init_error=True, platform=Talos("1.13")
    )
    assert config(manifests)["flags"].keys() == {"migStrategy"}
    assert "MIG_STRATEGY" not in environment(manifests)


@pytest.mark.parametrize("release", ["1.13", "1.14"])
@pytest.mark.parametrize("strategy", CDI)
def test_cdi_names_the_driver_root_of_talos(strategy, release):
    manifests = rendered(platform=Talos(release), device_list_strategy=strategy)
    assert environment(manifests)["NVIDIA_DRIVER_ROOT"] == "/usr/local"


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
    assert "nvidia.com/gpu.present" in plugin().provides.node_labels
    assert "feature.node.kubernetes.io/*" in plugin().provides.node_labels
    assert alone().provides.node_labels == ()


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


# --- warnings --------------------------------------------------------------------


def test_gpu_feature_discovery_without_node_feature_discovery_is_warned_of_at_the_line_of_the_caller():
    line = sys._getframe().f_lineno + 2
    with pytest.warns(GpuConstructsWarning) as caught:
        DevicePluginChart(App(), NAME, node_feature_discovery=False)
    (warning,) = caught
    assert str(warning.message) == (
        "nvidia-device-plugin: gpu_feature_discovery publishes through Node Feature Discovery, which this chart was "
        "told not to install; the cluster must run one, or pass gpu_feature_discovery=False"
    )
    assert (warning.filename, warning.lineno) == (__file__, line)


def test_nothing_else_is_warned_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plugin()
        alone()


# --- refusals --------------------------------------------------------------------

STRATEGIES = "'envvar', 'volume-mounts', 'cdi-annotations', 'cdi-cri'"
RELEASES = "'0.18.2', '0.20.0'"
LABEL = "a DNS label (a-z, 0-9 and '-', at most 63 characters, letter or digit at both ends)"


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
        ({"namespace": "GPU_Operator"}, f"namespace must be {LABEL}; got 'GPU_Operator'"),
        ({"namespace": ""}, f"namespace must be {LABEL}; got ''"),
        ({"namespace": "a" * 64}, f"namespace must be {LABEL}; got '{'a' * 64}'"),
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
        ({"sharing": {"replicas": 5}}, "sharing must be Sharing; got dict: {'replicas': 5}"),
        ({"tolerations": [{"key": "a"}]}, "tolerations[0] must be Toleration; got dict: {'key': 'a'}"),
        ({"node_selector": {"pool": 1}}, "node_selector['pool'] must be str; got int: 1"),
        ({"node_selector": {"a b": "c"}}, "node_selector has a key that is no label key; got 'a b'"),
        ({"gpu_feature_discovery": 1}, "gpu_feature_discovery must be bool; got int: 1"),
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
            "resources['limits']['nvidia.com/gpu'] must not be set here; ask for GPUs with gpus=",
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

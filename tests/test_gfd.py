import dataclasses
import fnmatch

import pytest

from gpu_constructs import (
    Configs,
    Flags,
    GpuConstructsError,
    GpuFeatureDiscovery,
    Kubernetes,
    PluginConfig,
    Sharing,
    Talos,
)
from gpu_constructs.feature_discovery import gfd
from test_delivery import EVERY_FLAG, TALOS, delivered
from test_gpu_agent import AGENT, PRIVILEGED, UNPRIVILEGED, WITH_SYS_ADMIN

NAME = "agent-gpu-feature-discovery"
PLAIN = PluginConfig()
MIG = PluginConfig(flags=Flags(mig_strategy="single"))
MANAGED = Configs.managed({"a": PLAIN, "b": MIG}, default="a")
PUBLISHES = {"apiGroups": ["nfd.k8s-sigs.io"], "resources": ["nodefeatures"]}


def manifests(config=PLAIN, component=None, platform=Kubernetes(), **changes):  # noqa: B008
    agent = dataclasses.replace(AGENT, platform=platform, **changes)
    found = delivered(config, platform=platform, defaults=TALOS)
    return gfd.gpu_feature_discovery(agent, found, component=component or GpuFeatureDiscovery())


def pod(*args, **changes):
    return manifests(*args, **changes)["daemonset"]["spec"]["template"]["spec"]


def container(*args, **changes):
    return pod(*args, **changes)["containers"][-1]


def environment(*args, **changes):
    return {entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in container(*args, **changes)["env"]}


# --- what it may do -------------------------------------------------------------------------------------------


def test_its_rights_are_node_features_and_its_own_pod_in_its_own_namespace():
    role = manifests()["role"]
    assert role["kind"] == "Role"
    assert role["metadata"]["namespace"] == "gpu"
    assert role["rules"] == [
        {**PUBLISHES, "verbs": ["get", "create", "update", "delete"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
    ]


def test_a_release_that_sets_no_owner_needs_neither_its_pod_nor_the_right_to_delete():
    old = manifests(sets_owner_references=False)
    assert old["role"]["rules"] == [{**PUBLISHES, "verbs": ["get", "create", "update"]}]
    assert "POD_NAME" not in environment(sets_owner_references=False)


def test_it_reads_nodes_only_where_config_manager_does():
    assert "cluster-role" not in manifests()
    assert manifests(MANAGED)["cluster-role"]["rules"] == [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}
    ]
    assert manifests(MANAGED)["role"] == manifests()["role"]


def test_its_rights_are_bound_to_its_own_account_only():
    made = manifests(MANAGED)
    for child, kind in (("role-binding", "Role"), ("cluster-role-binding", "ClusterRole")):
        assert made[child]["roleRef"] == {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": NAME}
        assert made[child]["subjects"] == [{"kind": "ServiceAccount", "name": NAME, "namespace": "gpu"}]


def test_the_token_is_mounted_by_the_pod_and_not_by_whoever_else_uses_the_account():
    assert manifests()["service-account"]["automountServiceAccountToken"] is False
    assert pod()["automountServiceAccountToken"] is True
    assert pod()["serviceAccountName"] == NAME


def test_every_program_that_shares_a_node_has_an_account_of_its_own():
    assert manifests()["service-account"]["metadata"]["name"] == NAME != AGENT.name


# --- what it holds --------------------------------------------------------------------------------------------


def test_it_mounts_nothing_but_its_configuration_whatever_the_plugin_mounts():
    everything = Configs.external("theirs", may_use=["mps", "cdi", "volume-mounts"])
    for config, mounted in ((PLAIN, ["config"]), (everything, ["available-configs", "config"])):
        assert sorted(volume["name"] for volume in pod(config)["volumes"]) == mounted
        assert not any("hostPath" in volume for volume in pod(config)["volumes"])


@pytest.mark.parametrize(
    "config",
    [PLAIN, Configs.external("theirs", may_use=["mps", "cdi", "volume-mounts", "pass-device-specs"])],
    ids=["nothing", "everything but MIG"],
)
def test_without_vgpu_or_mig_it_holds_no_right_on_the_node(config):
    assert container(config)["securityContext"] == UNPRIVILEGED


def test_recognising_vgpus_takes_a_privileged_container_and_watches_no_mig():
    component = GpuFeatureDiscovery(vgpu=True)
    assert container(component=component)["securityContext"] == PRIVILEGED
    assert "NVIDIA_MIG_MONITOR_DEVICES" not in environment(component=component)


@pytest.mark.parametrize(
    ("platform", "rights"),
    [(Talos("1.11"), WITH_SYS_ADMIN), (Talos("1.12"), PRIVILEGED), (Kubernetes(), WITH_SYS_ADMIN)],
    ids=str,
)
def test_it_watches_mig_with_the_same_rights_as_the_plugin(platform, rights):
    assert container(MIG, platform=platform)["securityContext"] == rights
    assert environment(MIG, platform=platform)["NVIDIA_MIG_MONITOR_DEVICES"] == "all"


def test_rights_of_the_user_that_are_too_few_are_refused():
    with pytest.raises(GpuConstructsError, match=r"^gpu_feature_discovery\.security_context must hold capabilities"):
        manifests(MIG, GpuFeatureDiscovery(security_context=UNPRIVILEGED))


# --- what it is told ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sets_owner_references", [True, False])
def test_it_publishes_through_node_feature_objects_in_every_release(sets_owner_references):
    assert environment(sets_owner_references=sets_owner_references)["GFD_USE_NODE_FEATURE_API"] == "true"


def test_it_knows_its_node_its_pod_and_its_namespace():
    expected = {"NAMESPACE": "metadata.namespace", "NODE_NAME": "spec.nodeName", "POD_NAME": "metadata.name"}
    assert {name: environment()[name] for name in expected} == {
        name: {"fieldRef": {"fieldPath": path}} for name, path in expected.items()
    }


def test_it_finds_gpus_as_the_plugin_does_and_is_not_told_how_the_plugin_hands_them_out():
    told = environment()
    assert told["DEVICE_DISCOVERY_STRATEGY"] == "nvml"
    assert told["FAIL_ON_INIT_ERROR"] == "false"
    assert told["CONFIG_FILE"] == "/config/config.yaml"
    assert "DEVICE_LIST_STRATEGY" not in told


def test_flags_beside_an_external_config_map_reach_it_where_it_reads_them():
    flags = dataclasses.replace(EVERY_FLAG, gfd=dataclasses.replace(EVERY_FLAG.gfd, oneshot=None, output_file=None))
    told = environment(Configs.external("theirs", flags=flags))
    assert {name: value for name, value in told.items() if isinstance(value, str)} == {
        "CONFIG_FILE": "/config/config.yaml",
        "DEVICE_DISCOVERY_STRATEGY": "nvml",
        "FAIL_ON_INIT_ERROR": "true",
        "GFD_MACHINE_TYPE_FILE": "/sys/machine",
        "GFD_NO_TIMESTAMP": "true",
        "GFD_SLEEP_INTERVAL": "300s",
        "GFD_USE_NODE_FEATURE_API": "true",
        "MIG_STRATEGY": "none",
        "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
        "NVIDIA_VISIBLE_DEVICES": "all",
    }


@pytest.mark.parametrize("config", [PLAIN, MIG, MANAGED])
def test_its_environment_is_sorted(config):
    names = [variable["name"] for variable in container(config)["env"]]
    assert names == sorted(set(names))


# --- several configurations -----------------------------------------------------------------------------------


def test_each_named_configuration_has_a_daemonset_and_all_of_them_one_account():
    shared = PluginConfig(sharing=Sharing.time_slicing(replicas=2))
    made = manifests(Configs.named({"a": PLAIN, "b": shared, "c": MIG}, default="b"))
    assert list(made) == ["service-account", "role", "role-binding", "daemonset", "daemonset-a", "daemonset-c"]
    daemonsets = [made[child] for child in ("daemonset", "daemonset-a", "daemonset-c")]
    assert [m["metadata"]["name"] for m in daemonsets] == [NAME, f"{NAME}-a", f"{NAME}-c"]
    assert {m["spec"]["template"]["spec"]["serviceAccountName"] for m in daemonsets} == {NAME}
    rights = [m["spec"]["template"]["spec"]["containers"][0]["securityContext"] for m in daemonsets]
    assert rights == [UNPRIVILEGED, UNPRIVILEGED, WITH_SYS_ADMIN]


def test_config_manager_signals_it_by_the_name_it_gives_itself():
    spec = pod(MANAGED)
    assert spec["shareProcessNamespace"] is True
    assert {"name": "PROCESS_TO_SIGNAL", "value": "gpu-feature-discovery"} in spec["containers"][0]["env"]
    assert pod()["shareProcessNamespace"] is None


# --- labels ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "label",
    [
        "nvidia.com/gpu.product",
        "nvidia.com/gpu.memory",
        "nvidia.com/gpu.count",
        "nvidia.com/gpu.replicas",
        "nvidia.com/gpu.sharing-strategy",
        "nvidia.com/gpu.compute.major",
        "nvidia.com/cuda.driver-version.full",
        "nvidia.com/mig.strategy",
        "nvidia.com/mig-1g.10gb.count",
        "nvidia.com/mps.capable",
        "nvidia.com/vgpu.present",
    ],
)
def test_a_label_it_publishes_counts_as_published(label):
    assert any(fnmatch.fnmatchcase(label, pattern) for pattern in gfd.LABELS)


@pytest.mark.parametrize("label", ["nvidia.com/gpu.present", "nvidia.com/device-plugin.config"])
def test_a_label_of_others_does_not_count_as_published_by_it(label):
    assert not any(fnmatch.fnmatchcase(label, pattern) for pattern in gfd.LABELS)

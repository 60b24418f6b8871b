import dataclasses
import fnmatch

import pytest

from gpu_constructs import Kubernetes, Talos
from gpu_constructs.feature_discovery import gfd
from test_gpu_agent import AGENT

NAME = "nvidia-device-plugin-gpu-feature-discovery"


def manifests(vgpu=False, **changes):
    agent = dataclasses.replace(AGENT, **changes)
    return gfd.gpu_feature_discovery(agent, name=NAME, selector={"app.kubernetes.io/name": NAME}, vgpu=vgpu)


def pod(**changes):
    return manifests(**changes)["daemonset"]["spec"]["template"]["spec"]


def container(**changes):
    (only,) = pod(**changes)["containers"]
    return only


def environment(**changes):
    return {entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in container(**changes)["env"]}


def test_its_rights_are_node_features_and_its_own_pod_in_its_own_namespace():
    role = manifests()["role"]
    assert role["kind"] == "Role"
    assert role["metadata"]["namespace"] == "gpu"
    assert role["rules"] == [
        {
            "apiGroups": ["nfd.k8s-sigs.io"],
            "resources": ["nodefeatures"],
            "verbs": ["get", "create", "update", "delete"],
        },
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
    ]


def test_the_role_is_bound_to_its_own_account_only():
    binding = manifests()["role-binding"]
    assert binding["roleRef"] == {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": NAME}
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": NAME, "namespace": "gpu"}]


def test_the_token_is_mounted_by_the_pod_and_not_by_whoever_else_uses_the_account():
    assert manifests()["service-account"]["automountServiceAccountToken"] is False
    assert pod()["automountServiceAccountToken"] is True
    assert pod()["serviceAccountName"] == NAME


def test_it_mounts_nothing_but_its_configuration():
    assert [volume["name"] for volume in pod()["volumes"]] == ["config"]
    assert [mount["name"] for mount in container()["volumeMounts"]] == ["config"]


def test_it_publishes_through_node_feature_objects_in_every_release():
    assert environment()["GFD_USE_NODE_FEATURE_API"] == "true"


def test_it_knows_its_node_its_pod_and_its_namespace():
    expected = {"NAMESPACE": "metadata.namespace", "NODE_NAME": "spec.nodeName", "POD_NAME": "metadata.name"}
    assert {name: environment()[name] for name in expected} == {
        name: {"fieldRef": {"fieldPath": path}} for name, path in expected.items()
    }


def test_it_finds_gpus_as_the_plugin_does():
    assert environment()["DEVICE_DISCOVERY_STRATEGY"] == "nvml"
    assert environment()["CONFIG_FILE"] == "/config/config.yaml"


def test_its_environment_is_sorted():
    names = [variable["name"] for variable in container()["env"]]
    assert names == sorted(names)


def test_without_vgpu_or_mig_it_holds_no_right_on_the_node():
    assert container()["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }


def test_recognising_vgpus_takes_a_privileged_container():
    security = container(vgpu=True, platform=Kubernetes())["securityContext"]
    assert security == {"privileged": True, "readOnlyRootFilesystem": True}
    assert "NVIDIA_MIG_MONITOR_DEVICES" not in environment(vgpu=True)


@pytest.mark.parametrize("strategy", ["single", "mixed"])
def test_it_watches_mig_with_the_same_rights_as_the_plugin(strategy):
    with_capability = container(mig_strategy=strategy, platform=Talos("1.11"))["securityContext"]
    assert with_capability["capabilities"]["add"] == ["SYS_ADMIN"]
    assert container(mig_strategy=strategy, platform=Talos("1.12"))["securityContext"]["privileged"] is True


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

import dataclasses

import pytest

from gpu_constructs import Kubernetes, Talos
from gpu_constructs.device_plugin.agent import GpuAgent

LABELS = {"app.kubernetes.io/name": "agent"}
AGENT = GpuAgent(
    namespace="gpu",
    image="registry.example/agent:1.2.3",
    version="1.2.3",
    runtime_class="nvidia",
    affinity={"nodeAffinity": {}},
    node_selector={"pool": "gpu"},
    tolerations=[{"operator": "Exists"}],
    priority_class_name="system-node-critical",
    resources={"limits": {"memory": "1Gi"}},
    config_map="agent-config",
    config_sha256="0" * 64,
    mig_strategy="none",
    device_discovery_strategy="nvml",
    fail_on_init_error=None,
    platform=Talos("1.12"),
)
UNPRIVILEGED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}
WITH_SYS_ADMIN = {**UNPRIVILEGED, "capabilities": {"drop": ["ALL"], "add": ["SYS_ADMIN"]}}
PRIVILEGED = {"privileged": True, "readOnlyRootFilesystem": True}


def agent(**changes):
    return dataclasses.replace(AGENT, **changes)


def environment(**changes):
    return {variable["name"]: variable["value"] for variable in agent(**changes).environment()}


def pod(manifest):
    return manifest["spec"]["template"]["spec"]


def daemonset(service_account=None, **changes):
    return agent(**changes).daemonset(
        name="agent", selector=LABELS, container={"name": "agent"}, service_account=service_account
    )


def test_without_mig_it_holds_no_right_at_all():
    assert AGENT.security_context() == UNPRIVILEGED


@pytest.mark.parametrize("strategy", ["single", "mixed"])
@pytest.mark.parametrize(
    ("platform", "rights"),
    [
        (Talos("1.10"), WITH_SYS_ADMIN),
        (Talos("1.11"), WITH_SYS_ADMIN),
        (Talos("1.12"), PRIVILEGED),
        (Talos("1.13"), PRIVILEGED),
        (Talos("1.14"), PRIVILEGED),
        (Kubernetes(), WITH_SYS_ADMIN),
    ],
    ids=str,
)
def test_watching_mig_takes_what_the_toolkit_of_the_platform_asks_for(strategy, platform, rights):
    assert agent(mig_strategy=strategy, platform=platform).security_context() == rights


@pytest.mark.parametrize("platform", [Talos("1.11"), Talos("1.12"), Kubernetes()], ids=str)
@pytest.mark.parametrize("strategy", ["none", "single", "mixed"])
def test_mig_devices_are_asked_for_exactly_when_the_rights_to_watch_them_are_there(platform, strategy):
    security = agent(mig_strategy=strategy, platform=platform).security_context()
    may_watch = security.get("privileged", False) or "SYS_ADMIN" in security["capabilities"].get("add", ())
    asks = environment(mig_strategy=strategy, platform=platform).get("NVIDIA_MIG_MONITOR_DEVICES") == "all"
    assert asks == may_watch == (strategy != "none")


def test_an_added_capability_stands_once_beside_the_one_for_mig():
    security = agent(mig_strategy="single", platform=Kubernetes()).security_context(add=("SYS_ADMIN",))
    assert security["capabilities"]["add"] == ["SYS_ADMIN"]


def test_a_program_can_ask_for_privileges_of_its_own():
    assert AGENT.security_context(privileged=True) == PRIVILEGED


def test_it_sees_every_gpu_without_taking_one():
    assert environment()["NVIDIA_VISIBLE_DEVICES"] == "all"
    assert environment()["NVIDIA_DRIVER_CAPABILITIES"] == "compute,utility"
    assert "nvidia.com/gpu" not in str(pod(daemonset())["containers"][0]["resources"])


def test_both_programs_read_the_one_configuration_file():
    assert environment()["CONFIG_FILE"] == "/config/config.yaml"
    spec = pod(daemonset())
    assert spec["volumes"] == [{"name": "config", "configMap": {"name": "agent-config"}}]
    assert spec["containers"][0]["volumeMounts"] == [{"name": "config", "mountPath": "/config", "readOnly": True}]


def test_what_is_not_decided_is_left_to_the_program():
    names = environment(device_discovery_strategy=None, fail_on_init_error=None).keys()
    assert names.isdisjoint({"DEVICE_DISCOVERY_STRATEGY", "FAIL_ON_INIT_ERROR"})


@pytest.mark.parametrize(("given", "written"), [(True, "true"), (False, "false")])
def test_a_boolean_is_written_as_the_program_reads_it(given, written):
    assert environment(fail_on_init_error=given)["FAIL_ON_INIT_ERROR"] == written


def test_no_variable_is_written_empty():
    assert all(environment(mig_strategy="mixed", fail_on_init_error=True).values())


def test_a_changed_file_restarts_the_pods():
    annotations = daemonset()["spec"]["template"]["metadata"]["annotations"]
    assert annotations == {"gpu-constructs/config-sha256": "0" * 64}


def test_the_token_is_mounted_only_with_a_service_account():
    without, with_account = pod(daemonset()), pod(daemonset(service_account="agent"))
    assert (without["automountServiceAccountToken"], without["serviceAccountName"]) == (False, None)
    assert (with_account["automountServiceAccountToken"], with_account["serviceAccountName"]) == (True, "agent")


def test_placement_image_and_resources_arrive_in_the_pod():
    spec = pod(daemonset())
    (container,) = spec["containers"]
    assert container["image"] == "registry.example/agent:1.2.3"
    assert container["resources"] == {"limits": {"memory": "1Gi"}}
    assert spec["runtimeClassName"] == "nvidia"
    assert spec["affinity"] == {"nodeAffinity": {}}
    assert spec["nodeSelector"] == {"pool": "gpu"}
    assert spec["tolerations"] == [{"operator": "Exists"}]
    assert spec["priorityClassName"] == "system-node-critical"
    assert spec["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}}
    assert spec["enableServiceLinks"] is False


def test_its_selector_is_part_of_its_pod_labels_and_without_the_version_which_changes():
    manifest = daemonset()
    selector = manifest["spec"]["selector"]["matchLabels"]
    assert selector == LABELS
    assert manifest["spec"]["template"]["metadata"]["labels"] == {
        **selector,
        "app.kubernetes.io/version": "1.2.3",
        "app.kubernetes.io/managed-by": "cdk8s",
    }

import dataclasses

import pytest

from gpu_constructs import (
    Configs,
    DevicePlugin,
    EnvValue,
    Flags,
    GpuConstructsError,
    GpuFeatureDiscovery,
    Kubernetes,
    PluginConfig,
    PluginFlags,
    Sharing,
    Talos,
    UpdateStrategy,
)
from gpu_constructs.device_plugin.agent import GpuAgent
from gpu_constructs.device_plugin.component import Component
from test_delivery import delivered, only

AGENT = GpuAgent(
    namespace="gpu",
    name="agent",
    instance="one",
    image="registry.example/agent:1.2.3",
    image_pull_policy="IfNotPresent",
    image_pull_secrets=[],
    version="1.2.3",
    sets_owner_references=True,
    runtime_class="nvidia",
    affinity=None,
    node_selector={"pool": "gpu"},
    tolerations=[{"operator": "Exists"}],
    priority_class_name="system-node-critical",
    pod_annotations={},
    pod_security_context={},
    update_strategy=UpdateStrategy.rolling_update(),
    resources={"limits": {"memory": "1Gi"}},
    platform=Kubernetes(),
)
PLAIN = PluginConfig()
MIG = PluginConfig(flags=Flags(mig_strategy="single"))
VOLUME_MOUNTS = PluginConfig(flags=Flags(plugin=PluginFlags(device_list_strategy="volume-mounts")))
UNPRIVILEGED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}
WITH_SYS_ADMIN = {**UNPRIVILEGED, "capabilities": {"drop": ["ALL"], "add": ["SYS_ADMIN"]}}
PRIVILEGED = {"privileged": True, "readOnlyRootFilesystem": True}


def agent(**changes):
    return dataclasses.replace(AGENT, **changes)


def environment(component=None, config=PLAIN, variables=None):
    given = AGENT.environment(component or Component(), only(config), variables or {})
    names = [variable["name"] for variable in given]
    assert names == sorted(set(names))
    return {variable["name"]: variable.get("value", variable.get("valueFrom")) for variable in given}


def daemonset(component=None, config=PLAIN, delivery=None, label="agent", changes=None, **given):
    own = agent(**(changes or {}))
    component, delivery = component or Component(), delivery or only(config)
    main = own.container(
        component,
        delivery=delivery,
        name="agent-ctr",
        command=["agent"],
        env=[],
        securityContext=own.security_context(component, delivery),
    )
    return own.daemonset(component, name="agent", label=label, delivery=delivery, container=main, **given)


def pod(*args, **given):
    return daemonset(*args, **given)["spec"]["template"]["spec"]


# --- rights ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "platform", "rights"),
    [
        (PLAIN, Talos("1.13"), UNPRIVILEGED),
        (MIG, Talos("1.11"), WITH_SYS_ADMIN),
        (MIG, Talos("1.13"), PRIVILEGED),
        (MIG, Kubernetes(), WITH_SYS_ADMIN),
    ],
    ids=str,
)
def test_a_container_holds_what_the_configuration_needs_on_the_platform(config, platform, rights):
    assert agent(platform=platform).security_context(Component(), only(config, platform=platform)) == rights


@pytest.mark.parametrize("context", [{}, {"runAsUser": 0}, {"privileged": True}, {"capabilities": {"add": ["ALL"]}}])
def test_the_users_own_rights_replace_ours_where_nothing_is_needed(context):
    assert AGENT.security_context(DevicePlugin(security_context=context), only(PLAIN)) == context


@pytest.mark.parametrize(
    ("platform", "context"),
    [
        (Kubernetes(), {"privileged": True}),
        (Kubernetes(), {"capabilities": {"add": ["SYS_ADMIN", "SYS_PTRACE"]}}),
        (Kubernetes(), {"capabilities": {"add": ["ALL"]}}),
        (Talos("1.12"), {"privileged": True, "runAsUser": 0}),
    ],
    ids=str,
)
def test_the_users_own_rights_may_be_more_than_what_is_needed(platform, context):
    component, delivery = DevicePlugin(security_context=context), only(MIG, platform=platform)
    assert agent(platform=platform).security_context(component, delivery) == context


@pytest.mark.parametrize(
    ("component", "config", "platform", "needed", "why"),
    [
        (DevicePlugin, MIG, Kubernetes(), "capabilities.add SYS_ADMIN", "mig"),
        (DevicePlugin, MIG, Talos("1.12"), "privileged=True", "mig"),
        (DevicePlugin, VOLUME_MOUNTS, Kubernetes(), "capabilities.add SYS_ADMIN", "volume-mounts"),
        (
            DevicePlugin,
            PluginConfig(flags=Flags(plugin=PluginFlags(pass_device_specs=True))),
            Kubernetes(),
            "privileged=True",
            "pass-device-specs",
        ),
        (
            DevicePlugin,
            Configs.external("theirs", may_use=["volume-mounts", "pass-device-specs", "mig"]),
            Kubernetes(),
            "privileged=True",
            "mig, pass-device-specs, volume-mounts",
        ),
        (GpuFeatureDiscovery, MIG, Kubernetes(), "capabilities.add SYS_ADMIN", "mig"),
    ],
)
@pytest.mark.parametrize("context", [{}, {"privileged": False, "capabilities": {"drop": ["ALL"], "add": ["NET_RAW"]}}])
def test_the_users_own_rights_that_lack_what_is_needed_are_refused(component, config, platform, needed, why, context):
    own = component(security_context=context)
    with pytest.raises(GpuConstructsError) as refused:
        agent(platform=platform).security_context(own, only(config, platform=platform))
    assert str(refused.value) == (
        f"{own._NAME}.security_context must hold {needed} for {why}; got {context!r}; leave it out for what the "
        "configuration needs"
    )


def test_rights_for_vgpus_are_asked_for_by_that_name_and_none_for_what_the_plugin_alone_does():
    with pytest.raises(GpuConstructsError) as refused:
        AGENT.security_context(GpuFeatureDiscovery(vgpu=True, security_context={}), only(VOLUME_MOUNTS))
    assert str(refused.value) == (
        "gpu_feature_discovery.security_context must hold privileged=True for vgpu; got {}; leave it out for what the "
        "configuration needs"
    )
    assert AGENT.security_context(GpuFeatureDiscovery(security_context={}), only(VOLUME_MOUNTS)) == {}


# --- variables ------------------------------------------------------------------------------------------------


def test_it_reads_the_file_and_sees_every_gpu_without_taking_one():
    assert environment() == {
        "CONFIG_FILE": "/config/config.yaml",
        "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
        "NVIDIA_VISIBLE_DEVICES": "all",
    }
    assert "nvidia.com/gpu" not in str(pod()["containers"][0]["resources"])


@pytest.mark.parametrize("config", [PLAIN, VOLUME_MOUNTS, MIG, Configs.external("theirs", may_use=["mig"])])
def test_mig_devices_are_watched_exactly_where_mig_is_used(config):
    is_used = "mig" in only(config).uses
    assert environment(config=config).get("NVIDIA_MIG_MONITOR_DEVICES") == ("all" if is_used else None)


def test_the_user_has_the_last_word_on_the_two_variables_of_the_container_runtime():
    given = {"NVIDIA_VISIBLE_DEVICES": "0,1", "NVIDIA_DRIVER_CAPABILITIES": EnvValue.field("metadata.name"), "A": "b"}
    assert environment(DevicePlugin(env=given), variables={"MIG_STRATEGY": "none"}) == {
        "A": "b",
        "CONFIG_FILE": "/config/config.yaml",
        "MIG_STRATEGY": "none",
        "NVIDIA_DRIVER_CAPABILITIES": {"fieldRef": {"fieldPath": "metadata.name"}},
        "NVIDIA_VISIBLE_DEVICES": "0,1",
    }


# --- the pod --------------------------------------------------------------------------------------------------


def test_what_is_the_same_for_all_programs_arrives_in_the_pod():
    spec = pod(changes={"affinity": {"nodeAffinity": {}}, "image_pull_secrets": ["a", "b"]})
    (container,) = spec["containers"]
    assert container["image"] == "registry.example/agent:1.2.3"
    assert container["imagePullPolicy"] == "IfNotPresent"
    assert container["resources"] == {"limits": {"memory": "1Gi"}}
    assert container["volumeMounts"] == [{"name": "config", "mountPath": "/config", "readOnly": True}]
    assert spec["volumes"] == [{"name": "config", "configMap": {"name": "plugin-config"}}]
    assert spec["runtimeClassName"] == "nvidia"
    assert spec["affinity"] == {"nodeAffinity": {}}
    assert spec["nodeSelector"] == {"pool": "gpu"}
    assert spec["tolerations"] == [{"operator": "Exists"}]
    assert spec["priorityClassName"] == "system-node-critical"
    assert spec["imagePullSecrets"] == [{"name": "a"}, {"name": "b"}]
    assert spec["enableServiceLinks"] is False


def test_what_nobody_asked_for_is_not_written():
    spec = pod(changes={"node_selector": {}, "runtime_class": None, "priority_class_name": None})
    optional = (
        "affinity dnsPolicy hostNetwork hostPID imagePullSecrets initContainers nodeSelector priorityClassName "
        "runtimeClassName serviceAccountName shareProcessNamespace"
    ).split()
    assert {name: spec[name] for name in optional} == dict.fromkeys(optional)


def test_a_component_says_what_is_special_about_its_pods():
    component = Component(
        host_network=True, node_selector={"disk": "ssd"}, resources={"limits": {"memory": "2Gi", "cpu": 1}}
    )
    spec = pod(component)
    assert spec["hostNetwork"] is True
    assert spec["dnsPolicy"] == "ClusterFirstWithHostNet"
    assert spec["nodeSelector"] == {"pool": "gpu", "disk": "ssd"}
    assert spec["containers"][0]["resources"] == {"limits": {"memory": "2Gi", "cpu": "1"}}


def test_a_component_can_ask_for_no_resources_at_all():
    assert pod(Component(resources={}))["containers"][0]["resources"] == {}


def test_the_token_is_mounted_only_with_a_service_account():
    without, with_account = pod(), pod(service_account="agent")
    assert (without["automountServiceAccountToken"], without["serviceAccountName"]) == (False, None)
    assert (with_account["automountServiceAccountToken"], with_account["serviceAccountName"]) == (True, "agent")


def test_the_pods_security_context_adds_to_the_seccomp_profile_or_replaces_it():
    default = {"seccompProfile": {"type": "RuntimeDefault"}}
    assert pod()["securityContext"] == default
    assert pod(changes={"pod_security_context": {"fsGroup": 5}})["securityContext"] == {**default, "fsGroup": 5}
    own = {"seccompProfile": {"type": "Unconfined"}}
    assert pod(changes={"pod_security_context": own})["securityContext"] == own


def test_the_users_annotations_stand_beside_the_checksum_that_restarts_the_pods():
    metadata = daemonset(changes={"pod_annotations": {"team": "ml"}})["spec"]["template"]["metadata"]
    assert metadata["annotations"] == {"team": "ml", **only(PLAIN).checksum}
    external = daemonset(delivery=only(Configs.external("theirs")))["spec"]["template"]["metadata"]
    assert external["annotations"] is None


def test_the_update_strategy_is_the_users():
    strategy = daemonset(changes={"update_strategy": UpdateStrategy.on_delete()})["spec"]["updateStrategy"]
    assert strategy == {"type": "OnDelete"}


def test_its_selector_is_part_of_its_pod_labels_and_without_the_version_which_changes():
    manifest = daemonset()
    selector = manifest["spec"]["selector"]["matchLabels"]
    assert selector == {
        "app.kubernetes.io/name": "nvidia-device-plugin",
        "app.kubernetes.io/instance": "one",
        "app.kubernetes.io/component": "agent",
    }
    assert manifest["spec"]["template"]["metadata"]["labels"] == {
        **selector,
        "app.kubernetes.io/version": "1.2.3",
        "app.kubernetes.io/managed-by": "cdk8s",
    }


# --- config-manager -------------------------------------------------------------------------------------------

MANAGED = Configs.managed({"a": PLAIN, "b": MIG}, default="a")


def config_managers(config=MANAGED, **given):
    spec = pod(config=config, **given)
    (init,), (sidecar, main) = spec["initContainers"], spec["containers"]
    return init, sidecar, main


def variables(container):
    return {variable["name"]: variable.get("value", variable.get("valueFrom")) for variable in container["env"]}


def test_config_manager_runs_once_before_the_program_and_then_beside_it():
    init, sidecar, main = config_managers()
    assert [part["name"] for part in (init, sidecar, main)] == ["agent-init", "agent-sidecar", "agent-ctr"]
    assert init["command"] == sidecar["command"] == ["config-manager"]
    assert init["image"] == sidecar["image"] == main["image"]
    assert init["resources"] == sidecar["resources"] == main["resources"]
    assert init["imagePullPolicy"] == sidecar["imagePullPolicy"] == "IfNotPresent"


def test_config_manager_knows_where_to_look_and_only_the_sidecar_signals():
    init, sidecar, _ = config_managers()
    common = {
        "CONFIG_FILE_DST": "/config/config.yaml",
        "CONFIG_FILE_SRCDIR": "/available-configs",
        "DEFAULT_CONFIG": "a",
        "NODE_LABEL": "nvidia.com/device-plugin.config",
        "NODE_NAME": {"fieldRef": {"fieldPath": "spec.nodeName"}},
    }
    assert variables(init) == {**common, "ONESHOT": "true", "SEND_SIGNAL": "false"}
    assert variables(sidecar) == {
        **common,
        "ONESHOT": "false",
        "SEND_SIGNAL": "true",
        "PROCESS_TO_SIGNAL": "agent",  # what the program calls itself, without the directory it lies in
        "SIGNAL": "1",
    }


def test_config_manager_leaves_out_what_is_not_said_since_an_empty_variable_counts():
    init, sidecar, _ = config_managers(Configs.external("theirs"))
    for part in (init, sidecar):
        assert "DEFAULT_CONFIG" not in variables(part)
        assert variables(part)["FALLBACK_STRATEGIES"] == "named,single"
        assert all(variables(part).values())


def test_config_manager_may_write_the_link_and_the_program_may_not():
    init, sidecar, main = config_managers()
    for part, read_only in ((init, None), (sidecar, None), (main, True)):
        assert part["volumeMounts"] == [
            {"name": "config", "mountPath": "/config", "readOnly": read_only},
            {"name": "available-configs", "mountPath": "/available-configs", "readOnly": True},
        ]


@pytest.mark.parametrize(
    ("config", "rights"),
    [(Configs.managed({"a": PLAIN, "b": VOLUME_MOUNTS}, default="a"), UNPRIVILEGED), (MANAGED, WITH_SYS_ADMIN)],
)
def test_only_the_sidecar_is_the_equal_of_the_program_that_it_signals(config, rights):
    init, sidecar, main = config_managers(config)
    assert init["securityContext"] == UNPRIVILEGED
    assert sidecar["securityContext"] == main["securityContext"] == rights


def test_config_manager_runs_after_what_the_program_needs_first():
    first = {"name": "first"}
    assert [part["name"] for part in pod(config=MANAGED, init_containers=[first])["initContainers"]] == [
        "first",
        "agent-init",
    ]


# --- named configurations -------------------------------------------------------------------------------------


def test_a_named_configuration_tells_its_pods_apart_and_asks_for_its_nodes():
    config = Configs.named({"a": PLAIN, "b": PluginConfig(sharing=Sharing.time_slicing(replicas=2))}, default="a")
    for delivery, suffix, operator in zip(delivered(config), ["", "-b"], ["NotIn", "In"], strict=True):
        manifest = daemonset(delivery=delivery)
        component = manifest["spec"]["selector"]["matchLabels"]["app.kubernetes.io/component"]
        assert component.endswith("-b") == bool(suffix)
        (term,) = manifest["spec"]["template"]["spec"]["affinity"]["nodeAffinity"][
            "requiredDuringSchedulingIgnoredDuringExecution"
        ]["nodeSelectorTerms"]
        assert term["matchExpressions"] == [
            {"key": "nvidia.com/device-plugin.config", "operator": operator, "values": ["b"]}
        ]

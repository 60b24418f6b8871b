import fnmatch

import cdk8s_plus_27 as kplus
import pytest
from installed import DAEMON, LABELER, NEW, OLD, PLAIN, PLUGIN, container, manifests, pod, variables

from gpu_constructs import (
    Configs,
    DevicePlugin,
    EnvValue,
    Flags,
    GpuConstructsWarning,
    GpuFeatureDiscovery,
    Kubernetes,
    MpsControlDaemon,
    PluginConfig,
    PluginFlags,
    Sharing,
    Talos,
    Unverified,
    UpdateStrategy,
)
from gpu_constructs.catalog import versions
from gpu_constructs.device_plugin.config import environment_variables
from gpu_constructs.device_plugin.manifests import GFD_LABELS
from refusals import refusal
from tables import cases

MPS = PluginConfig(sharing=Sharing.mps(replicas=4))
MIG = PluginConfig(flags=Flags(mig_strategy="single"))
DEVICE_SPECS = PluginConfig(flags=Flags(plugin=PluginFlags(pass_device_specs=True)))
MANAGED = Configs.managed({"a": PLAIN, "b": MIG}, default="a")
MPS_MANAGED = Configs.managed({"mps": MPS, "mig": MIG}, default="mps")
EVERYTHING = Configs.external("theirs", may_use=["mig", "mps", "cdi", "volume-mounts", "pass-device-specs"])
UNPRIVILEGED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True}
WITH_SYS_ADMIN = {**UNPRIVILEGED, "capabilities": {"drop": ["ALL"], "add": ["SYS_ADMIN"]}}
PRIVILEGED = {"privileged": True, "readOnlyRootFilesystem": True}
NOTHING = kplus.EnvValue.from_value("")
WRITING = {"privileged": True, "readOnlyRootFilesystem": False}

STRUCTS = {PLUGIN: DevicePlugin, LABELER: GpuFeatureDiscovery, DAEMON: MpsControlDaemon}
NAMES = {PLUGIN: "device_plugin", LABELER: "gpu_feature_discovery", DAEMON: "mps_control_daemon"}


def strategies(*listed):
    return PluginConfig(flags=Flags(plugin=PluginFlags(device_list_strategy=listed)))


# --- options of every component -------------------------------------------------------------------------------


def test_values_that_kubernetes_or_the_program_would_reject_are_rejected(refused):
    refused(*STRUCTS.values(), NOTHING=NOTHING)


def test_the_error_for_a_variable_that_overrides_the_file_names_its_setting():
    assert len(environment_variables()) > 25
    for variable, member in environment_variables().items():
        for which, struct in STRUCTS.items():
            assert refusal(struct, env={variable: "x"}) == (
                f"{NAMES[which]}.env[{variable!r}] must be absent: it would silently override {member} of the "
                f"configuration. Set {member} in config=PluginConfig(...)"
            )


@cases
def test_a_variable_with_a_keyword_is_rejected(variable):
    assert refusal(DevicePlugin, env={variable: "x"}) == (
        f"device_plugin.env[{variable!r}] must be absent: the library sets it. Remove it"
    )
    assert variables(container(LABELER, component=GpuFeatureDiscovery(env={variable: "x"})))[variable] == "x"


def test_the_user_can_override_the_variables_of_the_container_runtime(expected):
    given = {"NVIDIA_VISIBLE_DEVICES": "0,1", "NVIDIA_DRIVER_CAPABILITIES": EnvValue.field("metadata.name"), "A": "b"}
    assert variables(container(PLUGIN, component=DevicePlugin(env=given))) == expected


def test_options_of_a_component_override_those_of_the_chart():
    options = {"node_selector": {"pool": "gpu"}, "resources": {"limits": {"memory": "1Gi"}}}
    for which, struct in STRUCTS.items():
        special = struct(
            host_network=True, node_selector={"disk": "ssd"}, resources={"limits": {"memory": "2Gi", "cpu": 1}}
        )
        spec = pod(which, MPS, special, **options)
        assert (spec["hostNetwork"], spec["dnsPolicy"]) == (True, "ClusterFirstWithHostNet")
        assert {"pool": "gpu", "disk": "ssd"}.items() <= spec["nodeSelector"].items()
        assert spec["containers"][0]["resources"] == {"limits": {"memory": "2Gi", "cpu": "1"}}
        assert pod(which, MPS, struct(resources={}), **options)["containers"][0]["resources"] == {}


# --- what all pods have in common -----------------------------------------------------------------------------


def test_the_users_annotations_stay_with_the_checksum():
    metadata = manifests(pod_annotations={"team": "ml"})[PLUGIN]["spec"]["template"]["metadata"]
    assert metadata["annotations"].items() > {"team": "ml"}.items()
    made = manifests(update_strategy=UpdateStrategy.on_delete(), pod_labels={"team": "ml"})[PLUGIN]
    assert made["spec"]["updateStrategy"] == {"type": "OnDelete"}
    assert made["spec"]["template"]["metadata"]["labels"]["team"] == "ml"


def test_the_revision_history_limit_applies():
    for limit in (None, 0, 3):
        made = manifests(revision_history_limit=limit, config=MPS)
        assert [made[which]["spec"]["revisionHistoryLimit"] for which in (PLUGIN, LABELER, DAEMON)] == [limit] * 3


# --- rights ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("which", "config", "platform", "rights"),
    [
        (PLUGIN, PLAIN, Talos("1.13"), UNPRIVILEGED),
        (PLUGIN, MPS, Kubernetes(), UNPRIVILEGED),
        *((PLUGIN, strategies(one), Kubernetes(), UNPRIVILEGED) for one in ("envvar", "cdi-cri", "cdi-annotations")),
        *(
            (PLUGIN, strategies(*listed), Kubernetes(), WITH_SYS_ADMIN)
            for listed in (("volume-mounts",), ("envvar", "volume-mounts"))
        ),
        (PLUGIN, DEVICE_SPECS, Kubernetes(), PRIVILEGED),
        *(
            (which, MIG, platform, rights)
            for which in (PLUGIN, LABELER)
            for platform, rights in (
                (Talos("1.11"), WITH_SYS_ADMIN),
                (Talos("1.12"), PRIVILEGED),
                (Talos("1.14"), PRIVILEGED),
                (Kubernetes(), WITH_SYS_ADMIN),
            )
        ),
        (LABELER, strategies("volume-mounts"), Kubernetes(), UNPRIVILEGED),
        (LABELER, DEVICE_SPECS, Kubernetes(), UNPRIVILEGED),
        (DAEMON, MPS, Talos("1.13"), WRITING),
    ],
)
def test_a_container_has_the_rights_that_its_configuration_and_platform_need(which, config, platform, rights):
    found = container(which, config, platform=platform)
    assert found["securityContext"] == rights
    assert variables(found).get("NVIDIA_MIG_MONITOR_DEVICES") == ("all" if config is MIG else None)


@pytest.mark.parametrize(
    ("component", "config", "platform", "needed", "why"),
    [
        (DevicePlugin, MIG, Kubernetes(), "capabilities.add SYS_ADMIN", "mig"),
        (DevicePlugin, MIG, Talos("1.12"), "privileged=True", "mig"),
        (DevicePlugin, strategies("volume-mounts"), Kubernetes(), "capabilities.add SYS_ADMIN", "volume-mounts"),
        (DevicePlugin, DEVICE_SPECS, Kubernetes(), "privileged=True", "pass-device-specs"),
        (DevicePlugin, EVERYTHING, Kubernetes(), "privileged=True", "mig, pass-device-specs, volume-mounts"),
        (GpuFeatureDiscovery, MIG, Kubernetes(), "capabilities.add SYS_ADMIN", "mig"),
        (lambda **own: GpuFeatureDiscovery(vgpu=True, **own), PLAIN, Kubernetes(), "privileged=True", "vgpu"),
    ],
)
def test_a_security_context_without_necessary_rights_is_rejected(component, config, platform, needed, why):
    for context in ({}, {"privileged": False, "capabilities": {"drop": ["ALL"], "add": ["NET_RAW"]}}):
        own = component(security_context=context)
        assert refusal(manifests, config, own, platform=platform) == (
            f"{own._NAME}.security_context must contain {needed} for {why}, got {context!r}. Remove "
            "security_context, so that the library sets the rights that the configuration needs"
        )


def test_a_sufficient_security_context_replaces_the_default(rows):
    for platform, config, context in rows:
        found = container(PLUGIN, config, DevicePlugin(security_context=context), platform=platform)
        assert found["securityContext"] == context
    own = {"privileged": True, "readOnlyRootFilesystem": True}
    assert container(DAEMON, MPS, MpsControlDaemon(security_context=own))["securityContext"] == own


# --- config-manager -------------------------------------------------------------------------------------------


def config_managers(which=PLUGIN, config=MANAGED):
    spec = pod(which, config)
    return spec["initContainers"][-1], *spec["containers"]


def test_config_manager_gets_no_empty_variable():
    for part in config_managers(config=Configs.external("theirs"))[:2]:
        assert "DEFAULT_CONFIG" not in variables(part)
        assert variables(part)["FALLBACK_STRATEGIES"] == "named,single"
        assert all(variables(part).values())


# --- the device plugin ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/", "/config", "/config/", "/dev/shm", "/mps", "/var/lib/kubelet/device-plugins"])
def test_a_driver_root_at_the_path_of_another_mount_is_rejected(path):
    flags = Flags(nvidia_driver_root="/opt", plugin=PluginFlags(container_driver_root=path))
    assert refusal(manifests, PluginConfig(flags=flags, sharing=Sharing.mps(replicas=2))) == (
        "flags.plugin.container_driver_root must be a separate directory in the container of the plugin, got "
        f"{path!r}, which is the path of another mount. Remove it"
    )


def test_settings_that_the_plugin_would_ignore_or_misread_are_rejected(refused):
    refused(DevicePlugin)


def test_settings_that_a_release_does_not_have_raise_or_warn(expected):
    forced = versions.release_of(versions.DEVICE_PLUGIN, Unverified("0.19.4", like="0.19.3"), "it")
    component = DevicePlugin(cdi_disable_hooks=["all"])
    component.check_release(NEW)
    DevicePlugin().check_release(OLD)
    for release in (OLD, forced):
        assert refusal(component.check_release, release) == (
            f"device_plugin.cdi_disable_hooks needs release 0.20.0 of the device plugin: release {release.version} "
            "ignores or rejects it. Remove it, or use a later release"
        )
    flags = DevicePlugin(cdi_feature_flags=["disable-nvsandboxutils", "disable-ipc-discoverer"])
    flags.check_release(NEW)
    with pytest.warns(GpuConstructsWarning) as caught:
        flags.check_release(OLD)
    assert [str(warning.message) for warning in caught] == expected


# --- GPU Feature Discovery ------------------------------------------------------------------------------------


def test_only_labels_of_gpu_feature_discovery_count_as_published():
    published = "gpu.product gpu.memory gpu.count gpu.replicas gpu.sharing-strategy gpu.compute.major mps.capable \
        cuda.driver-version.full mig.strategy mig-1g.10gb.count vgpu.present"
    for label in published.split():
        assert any(fnmatch.fnmatchcase(f"nvidia.com/{label}", pattern) for pattern in GFD_LABELS), label
    for label in ("nvidia.com/gpu.present", "nvidia.com/device-plugin.config"):
        assert not any(fnmatch.fnmatchcase(label, pattern) for pattern in GFD_LABELS), label


# --- the MPS control daemon -----------------------------------------------------------------------------------


def test_the_daemon_uses_the_process_namespace_of_the_node_or_of_its_pod():
    for config in (MPS, MPS_MANAGED):
        for host_pid, seen in ((True, (True, None)), (False, (None, True))):
            spec = pod(DAEMON, config, MpsControlDaemon(host_pid=host_pid))
            assert (spec["hostPID"], spec["shareProcessNamespace"]) == seen


def test_config_manager_of_an_old_release_does_not_support_host_pid():
    for config in (MPS_MANAGED, Configs.external("theirs", may_use=["mps"])):
        assert refusal(manifests, config, release=OLD) == (
            "sharing by MPS does not work with config-manager of release 0.18.2 and host_pid=True: its sidecar fails "
            "on processes without a command line. Use Configs.named, release 0.20.0 or MpsControlDaemon(host_pid=False)"
        )
        assert manifests(config, MpsControlDaemon(host_pid=False), release=OLD)
    assert manifests(MPS, release=OLD)


def test_settings_with_which_the_daemon_could_not_run_are_rejected(refused):
    refused(MpsControlDaemon)

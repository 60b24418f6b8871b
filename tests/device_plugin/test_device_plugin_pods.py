import fnmatch

import cdk8s_plus_27 as kplus
import pytest
from installed import DAEMON, LABELER, NEW, OLD, PLAIN, PLUGIN, container, manifests, pod, variables

from gpu_constructs import (
    Configs,
    DevicePlugin,
    EnvValue,
    Flags,
    GpuConstructsError,
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


def refusal(make, *args, **given):
    with pytest.raises(GpuConstructsError) as refused:
        make(*args, **given)
    return str(refused.value)


# --- options of every component -------------------------------------------------------------------------------


def test_a_value_that_kubernetes_or_the_program_would_not_take_is_refused(refused):
    refused(*STRUCTS.values())


def test_every_variable_that_would_override_the_file_is_refused_with_its_place_there():
    assert len(environment_variables()) > 25
    for variable, member in environment_variables().items():
        for which, struct in STRUCTS.items():
            assert refusal(struct, env={variable: "x"}) == (
                f"{NAMES[which]}.env[{variable!r}] must not be set: it would override {member} of the configuration "
                f"silently; set {member} in config=PluginConfig(...)"
            )


@pytest.mark.parametrize(
    "variable", ["CDI_FEATURE_FLAGS", "CDI_DISABLE_HOOKS", "DP_DISABLE_HEALTHCHECKS", "DP_ENABLE_HEALTHCHECKS"]
)
def test_a_variable_that_has_a_keyword_is_refused_where_it_has_one(variable):
    assert refusal(DevicePlugin, env={variable: "x"}) == (
        f"device_plugin.env[{variable!r}] must not be set: this library sets it; leave it out"
    )
    assert variables(container(LABELER, component=GpuFeatureDiscovery(env={variable: "x"})))[variable] == "x"


def test_the_user_has_the_last_word_on_the_two_variables_of_the_container_runtime():
    given = {"NVIDIA_VISIBLE_DEVICES": "0,1", "NVIDIA_DRIVER_CAPABILITIES": EnvValue.field("metadata.name"), "A": "b"}
    assert variables(container(PLUGIN, component=DevicePlugin(env=given))) == {
        "A": "b",
        "CONFIG_FILE": "/config/config.yaml",
        "NVIDIA_DRIVER_CAPABILITIES": {"fieldRef": {"fieldPath": "metadata.name"}},
        "NVIDIA_VISIBLE_DEVICES": "0,1",
    }


def test_a_component_says_what_is_special_about_its_pods():
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


def test_the_users_annotations_stand_beside_the_checksum_that_restarts_the_pods():
    metadata = manifests(pod_annotations={"team": "ml"})[PLUGIN]["spec"]["template"]["metadata"]
    assert metadata["annotations"].items() > {"team": "ml"}.items()
    made = manifests(update_strategy=UpdateStrategy.on_delete(), pod_labels={"team": "ml"})[PLUGIN]
    assert made["spec"]["updateStrategy"] == {"type": "OnDelete"}
    assert made["spec"]["template"]["metadata"]["labels"]["team"] == "ml"


def test_old_revisions_are_kept_as_many_as_asked_for():
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
def test_a_container_holds_what_the_configuration_needs_on_the_platform_and_watches_mig_where_it_is_used(
    which, config, platform, rights
):
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
def test_the_users_own_rights_that_lack_what_is_needed_are_refused(component, config, platform, needed, why):
    for context in ({}, {"privileged": False, "capabilities": {"drop": ["ALL"], "add": ["NET_RAW"]}}):
        own = component(security_context=context)
        assert refusal(manifests, config, own, platform=platform) == (
            f"{own._NAME}.security_context must hold {needed} for {why}; got {context!r}; leave it out for what the "
            "configuration needs"
        )


def test_the_users_own_rights_replace_ours_where_they_suffice():
    for platform, config, context in (
        (Kubernetes(), PLAIN, {}),
        (Kubernetes(), PLAIN, {"runAsUser": 0}),
        (Kubernetes(), MIG, {"privileged": True}),
        (Kubernetes(), MIG, {"capabilities": {"add": ["SYS_ADMIN", "SYS_PTRACE"]}}),
        (Kubernetes(), MIG, {"capabilities": {"add": ["ALL"]}}),
        (Talos("1.12"), MIG, {"privileged": True, "runAsUser": 0}),
    ):
        found = container(PLUGIN, config, DevicePlugin(security_context=context), platform=platform)
        assert found["securityContext"] == context
    own = {"privileged": True, "readOnlyRootFilesystem": True}
    assert container(DAEMON, MPS, MpsControlDaemon(security_context=own))["securityContext"] == own


# --- config-manager -------------------------------------------------------------------------------------------


def config_managers(which=PLUGIN, config=MANAGED):
    spec = pod(which, config)
    return spec["initContainers"][-1], *spec["containers"]


def test_config_manager_leaves_out_what_is_not_said_since_an_empty_variable_counts():
    for part in config_managers(config=Configs.external("theirs"))[:2]:
        assert "DEFAULT_CONFIG" not in variables(part)
        assert variables(part)["FALLBACK_STRATEGIES"] == "named,single"
        assert all(variables(part).values())


# --- the device plugin ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/", "/config", "/config/", "/dev/shm", "/mps", "/var/lib/kubelet/device-plugins"])
def test_a_driver_root_over_something_else_is_refused(path):
    flags = Flags(nvidia_driver_root="/opt", plugin=PluginFlags(container_driver_root=path))
    assert refusal(manifests, PluginConfig(flags=flags, sharing=Sharing.mps(replicas=2))) == (
        "flags.plugin.container_driver_root must be a directory of its own in the plugin's container; got "
        f"{path!r}, where something else is mounted; leave it out"
    )


def test_a_setting_that_the_plugin_would_ignore_or_misread_is_refused(refused):
    refused(DevicePlugin)


def test_what_a_release_does_not_have_is_refused_or_warned_of():
    forced = versions.release_of(versions.DEVICE_PLUGIN, Unverified("0.19.4", like="0.19.3"), "it")
    component = DevicePlugin(cdi_disable_hooks=["all"])
    component.check_release(NEW)
    DevicePlugin().check_release(OLD)
    for release in (OLD, forced):
        assert refusal(component.check_release, release) == (
            f"device_plugin.cdi_disable_hooks needs release 0.20.0 of the device plugin, which {release.version} would "
            "ignore or refuse; leave it out or move up"
        )
    flags = DevicePlugin(cdi_feature_flags=["disable-nvsandboxutils", "disable-ipc-discoverer"])
    flags.check_release(NEW)
    with pytest.warns(GpuConstructsWarning) as caught:
        flags.check_release(OLD)
    assert [str(warning.message) for warning in caught] == [
        "device_plugin.cdi_feature_flags: release 0.18.2 of the device plugin skips 'disable-ipc-discoverer'"
    ]


# --- GPU Feature Discovery ------------------------------------------------------------------------------------


def test_a_label_it_publishes_counts_as_published_and_one_of_others_does_not():
    published = "gpu.product gpu.memory gpu.count gpu.replicas gpu.sharing-strategy gpu.compute.major mps.capable \
        cuda.driver-version.full mig.strategy mig-1g.10gb.count vgpu.present"
    for label in published.split():
        assert any(fnmatch.fnmatchcase(f"nvidia.com/{label}", pattern) for pattern in GFD_LABELS), label
    for label in ("nvidia.com/gpu.present", "nvidia.com/device-plugin.config"):
        assert not any(fnmatch.fnmatchcase(label, pattern) for pattern in GFD_LABELS), label


# --- the MPS control daemon -----------------------------------------------------------------------------------


def test_it_sees_the_nodes_processes_or_those_of_its_pod_and_never_both():
    for config in (MPS, MPS_MANAGED):
        for host_pid, seen in ((True, (True, None)), (False, (None, True))):
            spec = pod(DAEMON, config, MpsControlDaemon(host_pid=host_pid))
            assert (spec["hostPID"], spec["shareProcessNamespace"]) == seen


def test_config_manager_of_an_old_release_would_die_of_the_nodes_processes():
    for config in (MPS_MANAGED, Configs.external("theirs", may_use=["mps"])):
        assert refusal(manifests, config, release=OLD) == (
            "config with config-manager cannot share by MPS on release 0.18.2 of the device plugin: its sidecar panics "
            "on processes without a command line, which host_pid=True shows it; use Configs.named, release 0.20.0 or "
            "MpsControlDaemon(host_pid=False)"
        )
        assert manifests(config, MpsControlDaemon(host_pid=False), release=OLD)
    assert manifests(MPS, release=OLD)


def test_a_setting_the_daemon_could_not_run_with_is_refused(refused):
    refused(MpsControlDaemon)

import dataclasses

import pytest

from gpu_constructs import (
    Configs,
    Flags,
    GpuConstructsError,
    Kubernetes,
    MpsControlDaemon,
    PluginConfig,
    Sharing,
    Talos,
    versions,
)
from gpu_constructs.device_plugin.daemonset import mps_volumes
from gpu_constructs.device_plugin.mps_control_daemon import mps_control_daemon
from test_delivery import EVERY_FLAG, only
from test_gpu_agent import AGENT

OLD, NEW = (versions.DEVICE_PLUGIN[version] for version in ("0.18.2", "0.20.0"))
PRIVILEGED = {"privileged": True, "readOnlyRootFilesystem": False}
MPS = PluginConfig(sharing=Sharing.mps(replicas=4))
MIG = PluginConfig(flags=Flags(mig_strategy="single"))
MANAGED = Configs.managed({"mps": MPS, "mig": MIG}, default="mps")
EXTERNAL = Configs.external("theirs", flags=dataclasses.replace(EVERY_FLAG, mps_root=None), may_use=["mps"])


def daemonset(config=MPS, component=None, release=NEW, service_account=None, platform=Kubernetes()):  # noqa: B008
    return mps_control_daemon(
        dataclasses.replace(AGENT, platform=platform),
        only(config, platform=platform),
        component=component or MpsControlDaemon(),
        release=release,
        service_account=service_account,
    )


def pod(*args, **given):
    return daemonset(*args, **given)["spec"]["template"]["spec"]


def environment(*args, **given):
    main = pod(*args, **given)["containers"][-1]
    return {variable["name"]: variable["value"] for variable in main["env"]}


def refusal(make):
    with pytest.raises(GpuConstructsError) as refused:
        make()
    return str(refused.value)


def test_it_runs_where_gpu_feature_discovery_found_mps_and_the_user_wants_it():
    assert pod()["nodeSelector"] == {"nvidia.com/mps.capable": "true", "pool": "gpu"}
    component = MpsControlDaemon(node_selector={"disk": "ssd"})
    assert pod(component=component)["nodeSelector"] == {
        "nvidia.com/mps.capable": "true",
        "pool": "gpu",
        "disk": "ssd",
    }


def test_the_memory_is_mounted_first_where_the_node_sees_it():
    (init,) = pod()["initContainers"]
    assert init["command"] == ["mps-control-daemon", "mount-shm"]
    assert init["volumeMounts"] == [{"name": "mps-root", "mountPath": "/mps", "mountPropagation": "Bidirectional"}]
    assert init["securityContext"] == PRIVILEGED


def test_the_daemon_is_privileged_and_mounts_what_it_shares_with_the_plugin():
    spec = pod()
    (main,) = spec["containers"]
    assert main["command"] == ["mps-control-daemon"]
    assert main["securityContext"] == PRIVILEGED
    assert main["volumeMounts"] == [
        {"name": "config", "mountPath": "/config", "readOnly": True},
        {"name": "mps-root", "mountPath": "/mps"},
        {"name": "mps-shm", "mountPath": "/dev/shm"},
    ]
    assert spec["volumes"][1:] == mps_volumes("/run/nvidia/mps")


def test_a_root_of_the_configuration_is_followed():
    spec = pod(PluginConfig(flags=Flags(mps_root="/var/mps"), sharing=MPS.sharing))
    assert spec["volumes"][1:] == mps_volumes("/var/mps")


@pytest.mark.parametrize("host_pid", [True, False])
@pytest.mark.parametrize("config", [MPS, MANAGED], ids=["one", "managed"])
def test_it_sees_the_nodes_processes_or_those_of_its_pod_and_never_both(config, host_pid):
    spec = pod(config, component=MpsControlDaemon(host_pid=host_pid))
    assert (spec["hostPID"], spec["shareProcessNamespace"]) == ((True, None) if host_pid else (None, True))


def test_it_reads_the_file_and_is_told_nothing_that_only_others_read():
    assert environment() == {
        "CONFIG_FILE": "/config/config.yaml",
        "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
        "NVIDIA_VISIBLE_DEVICES": "all",
    }
    assert environment(EXTERNAL) == {**environment(), "MIG_STRATEGY": "none"}


def test_it_asks_no_api_server_unless_config_manager_does():
    assert pod()["automountServiceAccountToken"] is False
    managed = pod(MANAGED, service_account="agent")
    assert (managed["automountServiceAccountToken"], managed["serviceAccountName"]) == (True, "agent")


def test_config_manager_signals_it_by_the_name_it_gives_itself():
    sidecar = pod(MANAGED)["containers"][0]
    assert {"name": "PROCESS_TO_SIGNAL", "value": "mps-control-daemon"} in sidecar["env"]
    assert sidecar["securityContext"] == PRIVILEGED
    assert [part["name"] for part in pod(MANAGED)["initContainers"]] == [
        "mps-control-daemon-mounts",
        "mps-control-daemon-init",
    ]


@pytest.mark.parametrize("config", [MANAGED, EXTERNAL], ids=["managed", "external"])
def test_config_manager_of_an_old_release_would_die_of_the_nodes_processes(config):
    assert refusal(lambda: daemonset(config, release=OLD)) == (
        "config with config-manager cannot share by MPS on release 0.18.2 of the device plugin: its sidecar panics on "
        "processes without a command line, which host_pid=True shows it; use Configs.named, release 0.20.0 or "
        "MpsControlDaemon(host_pid=False)"
    )
    assert daemonset(config, release=OLD, component=MpsControlDaemon(host_pid=False))
    assert daemonset(config, release=NEW)
    assert daemonset(MPS, release=OLD)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"root": "run/mps"}, "root must be an absolute path without '..'; got 'run/mps'"),
        ({"root": ""}, "root must be an absolute path without '..'; got ''"),
        ({"root": "/run/../mps"}, "root must be an absolute path without '..'; got '/run/../mps'"),
        ({"host_pid": "yes"}, "host_pid must be bool; got str: 'yes'"),
        *(
            (
                {"security_context": context},
                "security_context must be privileged: the daemon changes the GPUs' compute mode; got "
                f"{context!r}; leave it out",
            )
            for context in ({}, {"privileged": False}, {"capabilities": {"add": ["SYS_ADMIN"]}})
        ),
    ],
    ids=str,
)
def test_a_setting_it_could_not_run_with_is_refused(given, message):
    assert refusal(lambda: MpsControlDaemon(**given)) == f"mps_control_daemon.{message}"


def test_the_users_own_security_context_arrives():
    context = {"privileged": True, "readOnlyRootFilesystem": True}
    assert pod(component=MpsControlDaemon(security_context=context))["containers"][0]["securityContext"] == context


@pytest.mark.parametrize("platform", [Talos("1.11"), Talos("1.13"), Kubernetes()], ids=str)
def test_it_watches_mig_only_beside_a_configuration_that_uses_it(platform):
    assert "NVIDIA_MIG_MONITOR_DEVICES" not in environment(MPS, platform=platform)
    assert environment(MANAGED, platform=platform)["NVIDIA_MIG_MONITOR_DEVICES"] == "all"


@pytest.mark.parametrize("root", ["/", "//"])
def test_the_root_of_the_node_is_no_directory_for_the_daemon(root):
    with pytest.raises(GpuConstructsError) as refused:
        MpsControlDaemon(root=root)
    assert str(refused.value) == (
        "mps_control_daemon.root must be a directory of its own: it is mounted writable into a privileged pod; got "
        f"{root!r}; leave it out for '/run/nvidia/mps'"
    )

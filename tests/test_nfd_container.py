from datetime import timedelta

import pytest

from gpu_constructs import versions
from gpu_constructs.feature_discovery import nfd_container
from gpu_constructs.feature_discovery.node_feature_discovery import (
    NfdGarbageCollector,
    NfdMaster,
    NfdProbe,
    NfdTopologyUpdater,
    NfdWorker,
    NodeFeatureDiscovery,
)
from gpu_constructs.workload.env import EnvValue

OLD, NEW = (versions.DEVICE_PLUGIN[release].node_feature_discovery for release in ("0.18.2", "0.20.0"))
RELEASES = pytest.mark.parametrize("release", [OLD, NEW], ids=lambda release: release.version)
COMPONENTS = {
    "master": NfdMaster,
    "worker": NfdWorker,
    "gc": NfdGarbageCollector,
    "topology-updater": NfdTopologyUpdater,
}
EVERY = pytest.mark.parametrize("name", COMPONENTS)


def container(component, release=NEW, **installation):
    return nfd_container.container(component, NodeFeatureDiscovery(**installation), release)


def arguments(component, release=NEW, **installation):
    return container(component, release, **installation)["args"]


def changed(component, release=NEW, **installation):
    """What differs from the default container of the same component."""
    ours, theirs = container(type(component)(), release), container(component, release, **installation)
    assert ours.keys() == theirs.keys()
    return {key: theirs[key] for key in ours if ours[key] != theirs[key]}


def variable(name, path):
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


# --- what the charts of both releases say too -----------------------------------------------------------------

HTTP = {"httpGet": {"path": "/healthz", "port": "http"}}
GRPC = {"grpc": {"port": 8082}}
NO_RIGHTS = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}
DEFAULTS = {
    "master": {
        "command": ["nfd-master"],
        "env": [variable("NODE_NAME", "spec.nodeName")],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "4Gi"}},
        "securityContext": {**NO_RIGHTS, "runAsNonRoot": True},
    },
    "worker": {
        "command": ["nfd-worker"],
        "env": [
            variable("NODE_NAME", "spec.nodeName"),
            variable("POD_NAME", "metadata.name"),
            variable("POD_UID", "metadata.uid"),
        ],
        "resources": {"requests": {"cpu": "5m", "memory": "64Mi"}, "limits": {"memory": "512Mi"}},
        "securityContext": {**NO_RIGHTS, "runAsNonRoot": True},
    },
    "gc": {
        "command": ["nfd-gc"],
        "env": [variable("NODE_NAME", "spec.nodeName")],
        "resources": {"requests": {"cpu": "10m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}},
        "securityContext": {**NO_RIGHTS, "runAsNonRoot": True},
    },
    "topology-updater": {
        "command": ["nfd-topology-updater"],
        "env": [variable("NODE_NAME", "spec.nodeName"), variable("NODE_ADDRESS", "status.hostIP")],
        "resources": {"requests": {"cpu": "50m", "memory": "40Mi"}, "limits": {"memory": "60Mi"}},
        "securityContext": {**NO_RIGHTS, "runAsUser": 0},
    },
}
TOPOLOGY_FLAGS = [
    "-podresources-socket=/host-var/lib/kubelet-podresources/kubelet.sock",
    "-sleep-interval=60s",
    "-watch-namespace=*",
]
BY_RELEASE = {
    "0.17.3": {
        "master": {
            "args": ["-metrics=8081", "-grpc-health=8082"],
            "startupProbe": {**GRPC, "failureThreshold": 30},
            "livenessProbe": GRPC,
            "readinessProbe": {**GRPC, "failureThreshold": 10},
        },
        "worker": {
            "args": ["-metrics=8081", "-grpc-health=8082"],
            "livenessProbe": {**GRPC, "initialDelaySeconds": 10},
            "readinessProbe": {**GRPC, "initialDelaySeconds": 5, "failureThreshold": 10},
        },
        "gc": {"args": ["-gc-interval=1h"]},
        "topology-updater": {
            "args": [*TOPOLOGY_FLAGS, "-metrics=8081", "-grpc-health=8082"],
            "livenessProbe": {**GRPC, "initialDelaySeconds": 10},
            "readinessProbe": {**GRPC, "initialDelaySeconds": 5, "failureThreshold": 10},
        },
    },
    "0.19.0": {
        "master": {
            "args": ["-port=8080"],
            "startupProbe": {**HTTP, "failureThreshold": 30},
            "livenessProbe": HTTP,
            "readinessProbe": {**HTTP, "failureThreshold": 10},
        },
        "worker": {
            "args": ["-owner-refs=pod,ds", "-port=8080"],
            "livenessProbe": {**HTTP, "initialDelaySeconds": 10},
            "readinessProbe": {**HTTP, "initialDelaySeconds": 5, "failureThreshold": 10},
        },
        "gc": {
            "args": ["-gc-interval=1h"],
            "livenessProbe": {**HTTP, "initialDelaySeconds": 10},
            "readinessProbe": {**HTTP, "initialDelaySeconds": 5},
        },
        "topology-updater": {
            "args": [*TOPOLOGY_FLAGS, "-port=8080"],
            "livenessProbe": {**HTTP, "initialDelaySeconds": 10},
            "readinessProbe": {**HTTP, "initialDelaySeconds": 5, "failureThreshold": 10},
        },
    },
}


def ports_of(name, release):
    if release is NEW:
        return [{"name": "http", "containerPort": 8080}]
    metrics = {"name": "metrics", "containerPort": 8081}
    return [metrics] if name == "gc" else [metrics, {"name": "health", "containerPort": 8082}]


@RELEASES
@EVERY
def test_every_program_runs_as_in_its_chart(name, release):
    assert container(COMPONENTS[name](), release) == {
        "name": name,
        "image": f"registry.k8s.io/nfd/node-feature-discovery:v{release.version}",
        "imagePullPolicy": "IfNotPresent",
        "ports": ports_of(name, release),
        **DEFAULTS[name],
        **BY_RELEASE[release.version][name],
    }


@RELEASES
@EVERY
def test_every_probe_asks_a_port_that_the_container_opens(name, release):
    part = container(COMPONENTS[name](), release)
    opened = {value for port in part["ports"] for value in (port["name"], port["containerPort"])}
    probes = [part[probe] for probe in ("startupProbe", "readinessProbe", "livenessProbe") if probe in part]
    assert {probe[check]["port"] for probe in probes for check in ("httpGet", "grpc") if check in probe} <= opened


# --- options of every component -------------------------------------------------------------------------------


@RELEASES
@EVERY
def test_image_and_pull_policy_are_those_of_the_installation(name, release):
    found = changed(COMPONENTS[name](), release, image="registry.example/nfd:v1", image_pull_policy="Always")
    assert found == {"image": "registry.example/nfd:v1", "imagePullPolicy": "Always"}


@RELEASES
@EVERY
def test_further_flags_come_last(name, release):
    component = COMPONENTS[name](extra_args=["-v", "4"])
    assert changed(component, release) == {"args": [*arguments(COMPONENTS[name](), release), "-v", "4"]}


@RELEASES
@EVERY
def test_further_variables_come_after_ours(name, release):
    given = {"A": "b", "C": EnvValue.secret("s", key="k")}
    further = [
        {"name": "A", "value": "b"},
        {"name": "C", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
    ]
    assert changed(COMPONENTS[name](extra_envs=given), release) == {"env": [*DEFAULTS[name]["env"], *further]}


@RELEASES
@EVERY
def test_resources_are_replaced_as_a_whole(name, release):
    given = {"limits": {"memory": "2Gi"}}
    assert changed(COMPONENTS[name](resources=given), release) == {"resources": given}


@RELEASES
@EVERY
def test_the_security_context_is_laid_over_ours(name, release):
    given = {"capabilities": {"add": ["SYS_PTRACE"]}, "readOnlyRootFilesystem": None, "runAsGroup": 5}
    ours = dict(DEFAULTS[name]["securityContext"])
    del ours["readOnlyRootFilesystem"]
    expected = {**ours, "capabilities": {"drop": ["ALL"], "add": ["SYS_PTRACE"]}, "runAsGroup": 5}
    assert changed(COMPONENTS[name](security_context=given), release) == {"securityContext": expected}


@pytest.mark.parametrize(
    ("name", "release", "probe"),
    [
        (name, release, probe)
        for name in COMPONENTS
        for release in (OLD, NEW)
        for probe in ("startup", "liveness", "readiness")
        if f"{probe}Probe" in BY_RELEASE[release.version][name]
    ],
    ids=lambda value: getattr(value, "version", value),
)
def test_numbers_of_a_probe_are_laid_over_ours(name, release, probe):
    ours = BY_RELEASE[release.version][name][f"{probe}Probe"]
    given = {f"{probe}_probe": NfdProbe(period_seconds=7, failure_threshold=2)}
    expected = {**ours, "periodSeconds": 7, "failureThreshold": 2}
    assert changed(COMPONENTS[name](**given), release) == {f"{probe}Probe": expected}


@EVERY
def test_one_port_of_the_newer_release_moves_with_its_flag(name):
    found = changed(COMPONENTS[name](port=9000), NEW)
    assert found.keys() == {"args", "ports"}
    assert found["ports"] == [{"name": "http", "containerPort": 9000}]
    assert found["args"][-1] == "-port=9000"
    assert "-port=8080" not in found["args"]


@EVERY
def test_the_port_of_metrics_of_the_older_release_moves_with_its_flag(name):
    found = changed(COMPONENTS[name](metrics_port=9001), OLD)
    assert found.keys() == {"args", "ports"}
    assert found["ports"][0] == {"name": "metrics", "containerPort": 9001}
    assert "-metrics=9001" in found["args"]
    assert "-metrics=8081" not in found["args"]


@pytest.mark.parametrize("name", [name for name in COMPONENTS if name != "gc"])
def test_the_port_of_health_of_the_older_release_moves_with_its_flag_and_probes(name):
    found = changed(COMPONENTS[name](health_port=9002), OLD)
    assert found["ports"][1] == {"name": "health", "containerPort": 9002}
    assert found["args"][-1] == "-grpc-health=9002"
    assert {probe["grpc"]["port"] for key, probe in found.items() if key.endswith("Probe")} == {9002}


@RELEASES
@pytest.mark.parametrize(("name", "knows_gates"), [("master", 1), ("worker", 1), ("gc", 0), ("topology-updater", 0)])
def test_feature_gates_reach_the_programs_that_know_them(name, knows_gates, release):
    gates = {"NodeFeatureGroupAPI": True, "DisableAutoPrefix": False}
    flags = ["-feature-gates=DisableAutoPrefix=false", "-feature-gates=NodeFeatureGroupAPI=true"]
    found = arguments(COMPONENTS[name](), release, feature_gates=gates)
    assert [flag for flag in found if "feature-gates" in flag] == flags * knows_gates
    assert [flag for flag in found if "feature-gates" not in flag] == arguments(COMPONENTS[name](), release)


# --- options of one component ---------------------------------------------------------------------------------


@RELEASES
@pytest.mark.parametrize(
    ("given", "flag"),
    [
        ({"instance": "blue"}, "-instance=blue"),
        ({"replica_count": 2}, "-enable-leader-election"),
        ({"extra_label_ns": ["a.b", "c.d"]}, "-extra-label-ns=a.b,c.d"),
        ({"deny_label_ns": ["a.b", "*.c"]}, "-deny-label-ns=a.b,*.c"),
        ({"enable_taints": True}, "-enable-taints"),
        ({"resync_period": "2h"}, "-resync-period=2h"),
        ({"resync_period": timedelta(0)}, "-resync-period=0s"),
        ({"nfd_api_parallelism": 5}, "-nfd-api-parallelism=5"),
    ],
    ids=str,
)
def test_each_option_of_the_master_is_one_flag(given, flag, release):
    assert changed(NfdMaster(**given), release) == {"args": [flag, *arguments(NfdMaster(), release)]}


@pytest.mark.parametrize(
    ("owners", "flag"),
    [(None, "-owner-refs=pod,ds"), ([], "-owner-refs="), (["node"], "-owner-refs=node"), (["ds"], "-owner-refs=ds")],
    ids=str,
)
def test_the_newer_worker_is_told_who_owns_its_objects(owners, flag):
    assert arguments(NfdWorker(owner_refs=owners)) == [flag, "-port=8080"]


@RELEASES
def test_the_garbage_collector_looks_as_often_as_it_is_told(release):
    assert changed(NfdGarbageCollector(interval=timedelta(minutes=10)), release) == {"args": ["-gc-interval=600s"]}


@RELEASES
@pytest.mark.parametrize(
    ("given", "flags"),
    [
        ({"update_interval": "5s"}, {1: "-sleep-interval=5s"}),
        ({"watch_namespace": "ml"}, {2: "-watch-namespace=ml"}),
        ({"pod_set_fingerprint": False}, {3: "-pods-fingerprint=false"}),
        ({"kubelet_config_path": "/k.yaml"}, {3: "-kubelet-config-uri=file:///host-var/kubelet-config"}),
        ({"kubelet_state_dir": ""}, {3: "-kubelet-state-dir="}),
        (
            {"kubelet_pod_resources_sock_path": "/run/kubelet/pods.sock"},
            {0: "-podresources-socket=/host-var/lib/kubelet-podresources/pods.sock"},
        ),
    ],
    ids=str,
)
def test_each_option_of_the_topology_updater_is_one_flag(given, flags, release):
    expected = list(arguments(NfdTopologyUpdater(), release))
    for position, flag in flags.items():
        if position == 3:
            expected.insert(3, flag)
        else:
            expected[position] = flag
    assert changed(NfdTopologyUpdater(**given), release) == {"args": expected}


# --- what it sees of the node ---------------------------------------------------------------------------------


def files(component):
    """What a component sees of the node, by where it sees it."""
    volumes, mounts = nfd_container.volumes(component, "files")
    assert all(mount["readOnly"] for mount in mounts)
    sources = {volume["name"]: volume for volume in volumes}
    assert {mount["name"] for mount in mounts} == sources.keys()
    paths = {mount["mountPath"]: sources[mount["name"]] for mount in mounts}
    return {inside: source["hostPath"]["path"] for inside, source in paths.items() if "hostPath" in source}


WORKER_FILES = {
    "/host-boot": "/boot",
    "/host-etc/os-release": "/etc/os-release",
    "/host-lib": "/lib",
    "/host-proc/swaps": "/proc/swaps",
    "/host-sys": "/sys",
    "/host-usr/lib": "/usr/lib",
}
FEATURES_D = "/etc/kubernetes/node-feature-discovery/features.d"


def test_the_worker_sees_what_it_looks_at_and_cannot_write_it():
    assert files(NfdWorker()) == WORKER_FILES


@pytest.mark.parametrize(
    ("given", "inside", "path"),
    [
        ({"mount_usr_src": True}, "/host-usr/src", "/usr/src"),
        ({"mount_features_d": True}, FEATURES_D, FEATURES_D),
    ],
)
def test_the_worker_sees_more_when_it_is_told(given, inside, path):
    assert files(NfdWorker(**given)) == {**WORKER_FILES, inside: path}


TOPOLOGY_FILES = {
    "/host-sys": "/sys",
    "/host-var/lib/kubelet-podresources": "/var/lib/kubelet/pod-resources",
    "/host-var/lib/kubelet": "/var/lib/kubelet",
}


@pytest.mark.parametrize(
    ("given", "difference"),
    [
        ({}, {}),
        ({"kubelet_state_dir": "/data/kubelet"}, {"/host-var/lib/kubelet": "/data/kubelet"}),
        ({"kubelet_state_dir": ""}, {"/host-var/lib/kubelet": None}),
        ({"kubelet_config_path": "/k.yaml"}, {"/host-var/kubelet-config": "/k.yaml"}),
        (
            {"kubelet_pod_resources_sock_path": "/run/kubelet/pods.sock"},
            {"/host-var/lib/kubelet-podresources": "/run/kubelet"},
        ),
    ],
    ids=str,
)
def test_the_topology_updater_sees_the_sockets_folder_and_what_it_is_told(given, difference):
    expected = {inside: path for inside, path in {**TOPOLOGY_FILES, **difference}.items() if path}
    assert files(NfdTopologyUpdater(**given)) == expected


@pytest.mark.parametrize("component", [NfdMaster(), NfdGarbageCollector()], ids=["master", "gc"])
def test_what_runs_once_sees_nothing_of_its_node(component):
    assert files(component) == {}


@pytest.mark.parametrize(("name", "reads_a_file"), [("master", 1), ("worker", 1), ("gc", 0), ("topology-updater", 1)])
def test_a_component_mounts_its_file_where_its_program_looks(name, reads_a_file):
    volumes, mounts = nfd_container.volumes(COMPONENTS[name](), "files")
    assert [v for v in volumes if "configMap" in v] == [
        {"name": "config", "configMap": {"name": "files"}}
    ] * reads_a_file
    where = {"name": "config", "mountPath": "/etc/kubernetes/node-feature-discovery", "readOnly": True}
    assert [mount for mount in mounts if mount["name"] == "config"] == [where] * reads_a_file

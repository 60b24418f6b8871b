import dataclasses
import re
from pathlib import Path

import pytest
import yaml
from test_nfd import MEMBERS, NEW, OLD, installation, pod, refusal, saying

from gpu_constructs import NodeFeatureDiscovery
from gpu_constructs.feature_discovery.node_feature_discovery import (
    NfdMaster,
    NfdTopologyUpdater,
    NfdWorker,
)
from tables import cases

RELEASES = pytest.mark.parametrize("release", [OLD, NEW], ids=lambda release: release.version)


def container(name, release=NEW, whole=None, **options):
    """Return the container of a component with options, without its mounts."""
    given = {"topology_updater": NfdTopologyUpdater(), MEMBERS[name][0]: MEMBERS[name][1](**options), **(whole or {})}
    (found,) = pod(installation(NodeFeatureDiscovery(**given), release)[name])["containers"]
    return {key: value for key, value in found.items() if key != "volumeMounts"}


def changed(name, release=NEW, whole=None, **options):
    """Return the differences from the default container of the same component."""
    ours, theirs = container(name, release), container(name, release, whole, **options)
    assert ours.keys() == theirs.keys()
    return {key: theirs[key] for key in ours if ours[key] != theirs[key]}


# --- what the charts of both releases say too -----------------------------------------------------------------


# --- options of every component -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MEMBERS)
def test_a_port_changes_its_flag_and_its_probes(name):
    found = changed(name, NEW, port=9000)
    assert found == {"args": found["args"], "ports": [{"name": "http", "containerPort": 9000}]}
    assert (found["args"][-1], "-port=8080" in found["args"]) == ("-port=9000", False)
    found = changed(name, OLD, metrics_port=9001)
    assert found.keys() == {"args", "ports"}
    assert found["ports"][0] == {"name": "metrics", "containerPort": 9001}
    assert ("-metrics=9001" in found["args"], "-metrics=8081" in found["args"]) == (True, False)
    if name != "gc":
        found = changed(name, OLD, health_port=9002)
        assert (found["ports"][1]["containerPort"], found["args"][-1]) == (9002, "-grpc-health=9002")
        assert {probe["grpc"]["port"] for key, probe in found.items() if key.endswith("Probe")} == {9002}


@RELEASES
def test_feature_gates_are_flags_of_the_programs_that_have_them(release):
    gates = {"feature_gates": {"NodeFeatureGroupAPI": True, "DisableAutoPrefix": False}}
    flags = ["-feature-gates=DisableAutoPrefix=false", "-feature-gates=NodeFeatureGroupAPI=true"]
    for name, knows in (("master", True), ("worker", True), ("gc", False), ("topology-updater", False)):
        found = container(name, release, gates)["args"]
        assert [flag for flag in found if "feature-gates" in flag] == (flags if knows else [])


# --- options of one component ---------------------------------------------------------------------------------


@RELEASES
@cases
def test_each_option_of_a_program_is_one_flag(name, given, flag, release):
    before, found = container(name, release)["args"], changed(name, release, **given)
    assert found.keys() == {"args"}
    assert [argument for argument in found["args"] if argument not in before] == [flag]
    assert [argument for argument in before if argument not in found["args"]] in (
        [],
        [argument for argument in before if argument.partition("=")[0] == flag.partition("=")[0]],
    )


@cases
def test_the_newer_worker_gets_the_owners_of_its_objects(owners, flag):
    assert container("worker", owner_refs=owners)["args"] == [flag, "-port=8080"]


# --- what it sees of the node ---------------------------------------------------------------------------------


def files(name, **options):
    """Return the host paths of a component by mount path."""
    spec = pod(saying(name, **options)[name])
    mounts = spec["containers"][0]["volumeMounts"]
    assert all(mount["readOnly"] for mount in mounts)
    sources = {volume["name"]: volume for volume in spec["volumes"]}
    assert {mount["name"] for mount in mounts} == sources.keys()
    paths = {mount["mountPath"]: sources[mount["name"]] for mount in mounts}
    return {inside: source["hostPath"]["path"] for inside, source in paths.items() if "hostPath" in source}


FEATURES_D = "/etc/kubernetes/node-feature-discovery/features.d"


def test_the_worker_mounts_the_paths_that_it_reads(keywords):
    seen = keywords
    assert files("worker") == seen
    assert files("worker", mount_usr_src=True) == {**seen, "/host-usr/src": "/usr/src"}
    assert files("worker", mount_features_d=True) == {**seen, FEATURES_D: FEATURES_D}


def test_the_topology_updater_mounts_the_folder_of_the_socket():
    state, socket = "/host-var/lib/kubelet", "/host-var/lib/kubelet-podresources"
    seen = {"/host-sys": "/sys", socket: "/var/lib/kubelet/pod-resources", state: "/var/lib/kubelet"}
    for given, difference in (
        ({}, {}),
        ({"kubelet_state_dir": "/data/kubelet"}, {state: "/data/kubelet"}),
        ({"kubelet_state_dir": ""}, {state: None}),
        ({"kubelet_config_path": "/k.yaml"}, {"/host-var/kubelet-config": "/k.yaml"}),
        ({"kubelet_pod_resources_sock_path": "/run/kubelet/pods.sock"}, {socket: "/run/kubelet"}),
    ):
        expected = {inside: path for inside, path in {**seen, **difference}.items() if path is not None}
        assert files("topology-updater", **given) == expected, given


def test_master_and_garbage_collector_mount_no_path_of_the_node():
    assert (files("master"), pod(installation()["gc"])["volumes"]) == ({}, None)


# --- rights ---------------------------------------------------------------------------------------------------


def rights(name, release=NEW, whole=None, **options):
    """Return the rights of a component in the cluster and in its namespace."""
    given = {"topology_updater": NfdTopologyUpdater(), MEMBERS[name][0]: MEMBERS[name][1](**options), **(whole or {})}
    made = installation(NodeFeatureDiscovery(**given), release)
    return tuple(
        [
            " ".join((*rule["apiGroups"], *rule["resources"], *rule["verbs"], *rule.get("resourceNames", ())))
            for rule in made.get(f"{name}-{role}", {"rules": ()})["rules"]
        ]
        for role in ("cluster-role", "role")
    )


NODES = [" nodes get list patch", " nodes/status patch", "nfd.k8s-sigs.io nodefeatures nodefeaturerules list watch"]
LEASE = ["coordination.k8s.io leases create", "coordination.k8s.io leases get update nfd-master.nfd.kubernetes.io"]
GROUPS = ["nfd.k8s-sigs.io nodefeaturegroups get", "nfd.k8s-sigs.io nodefeaturegroups/status update"]
FEATURES, OWN_POD = "nfd.k8s-sigs.io nodefeatures create delete get update", " pods get"
SELECTOR = {"restrictions": {"nodeFeatureNamespaceSelector": {"matchLabels": {"a": "b"}}}}


@RELEASES
def test_the_rights_of_the_master_follow_its_options(release, rows):
    assert rights("master", release) == (NODES, [])
    assert rights("master", release, replica_count=2) == (NODES, LEASE)
    assert rights("master", release, config=SELECTOR) == ([*NODES, " namespaces list watch"], [])
    gates = {"feature_gates": {"NodeFeatureGroupAPI": True}}
    assert rights("master", release, gates) == ([*NODES, "nfd.k8s-sigs.io nodefeaturegroups list watch"], GROUPS)
    for (given,) in rows:
        assert rights("master", release, {"feature_gates": {"DisableAutoPrefix": True}}, **given) == (NODES, [])


@pytest.mark.parametrize(
    ("release", "given", "expected"),
    [
        (OLD, {}, ([], [FEATURES, OWN_POD])),
        (NEW, {}, ([], [FEATURES, OWN_POD])),
        (NEW, {"owner_refs": []}, ([], [FEATURES])),
        (NEW, {"owner_refs": ["pod"]}, ([], [FEATURES])),
        (NEW, {"owner_refs": ["ds"]}, ([], [FEATURES, OWN_POD])),
        (NEW, {"owner_refs": ["node"]}, ([" nodes get"], [FEATURES])),
        (NEW, {"owner_refs": ["node", "pod", "ds"]}, ([" nodes get"], [FEATURES, OWN_POD])),
        (OLD, {"config": {"core": {"noOwnerRefs": True}}}, ([], [FEATURES])),
    ],
    ids=str,
)
def test_the_worker_can_write_features_and_read_their_owners(release, given, expected):
    assert rights("worker", release, **given) == expected


@RELEASES
def test_the_rights_of_garbage_collector_and_topology_updater_follow_the_release(release):
    topologies = "topology.node.k8s.io noderesourcetopologies"
    gone = [" nodes list watch", "nfd.k8s-sigs.io nodefeatures delete list", f"{topologies} delete list"]
    assert rights("gc", release) == (gone, [])
    newer = [
        "apiextensions.k8s.io customresourcedefinitions get noderesourcetopologies.topology.node.k8s.io",
    ]
    pods = " pods get list watch" if release is NEW else " pods get"
    held = [f"{topologies} create get update", pods, " namespaces get gpu", " nodes/configz get"]
    held += newer if release is NEW else []
    assert rights("topology-updater", release) == (held, [])
    assert rights("topology-updater", release, kubelet_config_path="/k.yaml")[0] == [
        right for right in held if "configz" not in right
    ]


# --- flags of the user ----------------------------------------------------------------------------------------

FLAGS = yaml.safe_load((Path(__file__).parent / "flags.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", MEMBERS)
def test_every_flag_is_allowed_or_its_error_names_an_existing_option(name):
    member, struct = MEMBERS[name]
    for flag in FLAGS[name]["all"]:
        if flag in FLAGS[name]["free"]:
            assert container(name, extra_args=[f"-{flag}=1"])["args"][-1] == f"-{flag}=1"
            continue
        with pytest.raises(ValueError, match="extra_args") as refused:
            struct(extra_args=[f"-{flag}=1"])
        message = str(refused.value)
        assert message.startswith(f"{member}.extra_args[0] must not contain -{flag}. ")
        owner = NodeFeatureDiscovery if "NodeFeatureDiscovery" in message else struct
        named = re.findall(r"Set (\w+)", message)
        assert {*named} <= {field.name for field in dataclasses.fields(owner)}
        assert named or flag in ("oneshot", "prune", "version"), flag
    for others in FLAGS.values():
        for flag in {*others["free"]} - {*FLAGS[name]["all"]}:
            with pytest.raises(ValueError, match=f"must be a flag of nfd-{name}, which exits if it gets an unknown"):
                struct(extra_args=[f"-{flag}=1"])
    for arguments in (["--v=4"], ["-v", "4"], ["-logtostderr"], ["-vmodule=nfd=3", "-v=1"]):
        assert container(name, OLD, extra_args=arguments)["args"][-len(arguments) :] == arguments


def test_a_word_that_is_not_a_flag_is_rejected(refused):
    refused(NfdMaster)


def test_the_error_for_a_flag_of_a_later_release_names_that_release():
    late = NodeFeatureDiscovery(worker=NfdWorker(extra_args=["-legacy_stderr_threshold_behavior=false"]))
    assert installation(late, NEW)
    assert refusal(late, OLD) == (
        "worker.extra_args[0] -legacy_stderr_threshold_behavior needs Node Feature Discovery 0.19.0, got 0.17.3. Leave "
        "it out, or use a later release of the device plugin, which contains a later Node Feature Discovery"
    )

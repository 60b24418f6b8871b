import pytest

from gpu_constructs import versions
from gpu_constructs.feature_discovery import nfd_rights
from gpu_constructs.feature_discovery.node_feature_discovery import (
    NfdGarbageCollector,
    NfdMaster,
    NfdTopologyUpdater,
    NfdWorker,
    NodeFeatureDiscovery,
)

OLD, NEW = (versions.DEVICE_PLUGIN[release].node_feature_discovery for release in ("0.18.2", "0.20.0"))
RELEASES = pytest.mark.parametrize("release", [OLD, NEW], ids=lambda release: release.version)

NODES = ("", "nodes", "get list patch")
STATUS = ("", "nodes/status", "patch")
FEATURES = ("nfd.k8s-sigs.io", "nodefeatures nodefeaturerules", "list watch")
OWN_FEATURES = ("nfd.k8s-sigs.io", "nodefeatures", "create delete get update")
OWN_POD = ("", "pods", "get")
TOPOLOGIES = ("topology.node.k8s.io", "noderesourcetopologies", "create get update")


def flat(rules):
    return [
        (
            " ".join(rule["apiGroups"]),
            " ".join(rule["resources"]),
            " ".join(rule["verbs"]),
            *rule.get("resourceNames", ()),
        )
        for rule in rules
    ]


def rights(component, release=NEW, **installation):
    found = nfd_rights.rights(component, NodeFeatureDiscovery(**installation), release, "gpu")
    return flat(found.cluster), flat(found.namespace)


# --- the master -----------------------------------------------------------------------------------------------


@RELEASES
def test_the_master_patches_nodes_and_reads_features(release):
    assert rights(NfdMaster(), release) == ([NODES, STATUS, FEATURES], [])


@RELEASES
def test_several_masters_hold_one_lease_in_their_own_namespace(release):
    cluster, namespace = rights(NfdMaster(replica_count=2), release)
    assert cluster == [NODES, STATUS, FEATURES]
    assert namespace == [
        ("coordination.k8s.io", "leases", "create"),
        ("coordination.k8s.io", "leases", "get update", "nfd-master.nfd.kubernetes.io"),
    ]


@RELEASES
def test_a_master_that_selects_namespaces_reads_them(release):
    selector = {"restrictions": {"nodeFeatureNamespaceSelector": {"matchLabels": {"a": "b"}}}}
    cluster, namespace = rights(NfdMaster(config=selector), release)
    assert (cluster, namespace) == ([NODES, STATUS, FEATURES, ("", "namespaces", "list watch")], [])


def test_a_master_with_other_restrictions_reads_no_namespaces():
    assert rights(NfdMaster(config={"restrictions": {"allowOverwrite": False}})) == ([NODES, STATUS, FEATURES], [])


@RELEASES
def test_the_feature_gate_of_groups_brings_their_rights(release):
    cluster, namespace = rights(NfdMaster(), release, feature_gates={"NodeFeatureGroupAPI": True})
    assert cluster == [NODES, STATUS, FEATURES, ("nfd.k8s-sigs.io", "nodefeaturegroups", "list watch")]
    assert namespace == [
        ("nfd.k8s-sigs.io", "nodefeaturegroups", "get"),
        ("nfd.k8s-sigs.io", "nodefeaturegroups/status", "update"),
    ]


@pytest.mark.parametrize("gates", [{"NodeFeatureGroupAPI": False}, {"DisableAutoPrefix": True}], ids=str)
def test_no_other_gate_brings_rights(gates):
    assert rights(NfdMaster(), feature_gates=gates) == ([NODES, STATUS, FEATURES], [])


@pytest.mark.parametrize(
    "options",
    [{"enable_taints": True}, {"instance": "a"}, {"deny_label_ns": ["a.b"]}, {"resync_period": "1m"}],
    ids=str,
)
def test_no_other_option_changes_the_masters_rights(options):
    assert rights(NfdMaster(**options)) == ([NODES, STATUS, FEATURES], [])


# --- the worker -----------------------------------------------------------------------------------------------


@RELEASES
def test_the_worker_writes_features_of_its_own_namespace_and_nothing_of_the_cluster(release):
    assert rights(NfdWorker(), release) == ([], [OWN_FEATURES, OWN_POD])


@pytest.mark.parametrize(
    ("owners", "cluster", "namespace"),
    [
        ([], [], [OWN_FEATURES]),
        (["pod"], [], [OWN_FEATURES]),
        (["ds"], [], [OWN_FEATURES, OWN_POD]),
        (["node"], [("", "nodes", "get")], [OWN_FEATURES]),
        (["node", "pod", "ds"], [("", "nodes", "get")], [OWN_FEATURES, OWN_POD]),
    ],
    ids=str,
)
def test_each_owner_brings_the_right_to_look_it_up(owners, cluster, namespace):
    assert rights(NfdWorker(owner_refs=owners)) == (cluster, namespace)


def test_an_older_worker_told_to_name_no_owner_looks_up_none():
    assert rights(NfdWorker(config={"core": {"noOwnerRefs": True}}), OLD) == ([], [OWN_FEATURES])


# --- the garbage collector and the topology updater -----------------------------------------------------------


@RELEASES
def test_the_garbage_collector_deletes_what_gone_nodes_left(release):
    expected = [
        ("", "nodes", "list watch"),
        ("nfd.k8s-sigs.io", "nodefeatures", "delete list"),
        ("topology.node.k8s.io", "noderesourcetopologies", "delete list"),
    ]
    assert rights(NfdGarbageCollector(), release) == (expected, [])


def test_the_older_topology_updater_gets_each_pod():
    expected = [TOPOLOGIES, ("", "pods", "get"), ("", "namespaces", "get", "gpu"), ("", "nodes/configz", "get")]
    assert rights(NfdTopologyUpdater(), OLD) == (expected, [])


def test_the_newer_topology_updater_watches_pods_and_awaits_its_definition():
    expected = [
        TOPOLOGIES,
        ("", "pods", "get list watch"),
        ("", "namespaces", "get", "gpu"),
        ("", "nodes/configz", "get"),
        (
            "apiextensions.k8s.io",
            "customresourcedefinitions",
            "get",
            "noderesourcetopologies.topology.node.k8s.io",
        ),
    ]
    assert rights(NfdTopologyUpdater(), NEW) == (expected, [])


@RELEASES
def test_a_topology_updater_that_reads_the_kubelets_file_asks_no_kubelet(release):
    cluster, _ = rights(NfdTopologyUpdater(kubelet_config_path="/etc/kubernetes/kubelet.yaml"), release)
    assert ("", "nodes/configz", "get") not in cluster
    assert len(cluster) == len(rights(NfdTopologyUpdater(), release)[0]) - 1


EVERY = {
    "master": NfdMaster(
        replica_count=3, config={"restrictions": {"nodeFeatureNamespaceSelector": {"matchLabels": {"a": "b"}}}}
    ),
    "worker": NfdWorker(owner_refs=["node", "pod", "ds"]),
    "gc": NfdGarbageCollector(replica_count=2),
    "topology_updater": NfdTopologyUpdater(),
}


@pytest.mark.parametrize("component", EVERY.values(), ids=EVERY)
def test_no_right_reaches_into_kubelets_or_takes_everything(component):
    found = nfd_rights.rights(component, NodeFeatureDiscovery(feature_gates={"NodeFeatureGroupAPI": True}), NEW, "gpu")
    for rule in [*found.cluster, *found.namespace]:
        assert "nodes/proxy" not in rule["resources"]
        assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]
        assert "secrets" not in rule["resources"]

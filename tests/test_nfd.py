import json

import pytest
import yaml
from cdk8s import Chart

from gpu_constructs import GpuConstructsError, Toleration, UpdateStrategy, versions
from gpu_constructs._config_map import sha256
from gpu_constructs._manifest import Manifest
from gpu_constructs.feature_discovery import nfd
from gpu_constructs.feature_discovery.node_feature_discovery import (
    NfdGarbageCollector,
    NfdMaster,
    NfdNetworkPolicy,
    NfdPodDisruptionBudget,
    NfdPodMonitor,
    NfdProbe,
    NfdServiceAccount,
    NfdTopologyUpdater,
    NfdWorker,
    NodeFeatureDiscovery,
)
from gpu_constructs.workload.env import EnvValue

OLD, NEW = (versions.DEVICE_PLUGIN[release].node_feature_discovery for release in ("0.18.2", "0.20.0"))
RELEASES = pytest.mark.parametrize("release", [OLD, NEW], ids=lambda release: release.version)
MEMBERS = {
    "master": ("master", NfdMaster),
    "gc": ("gc", NfdGarbageCollector),
    "worker": ("worker", NfdWorker),
    "topology-updater": ("topology_updater", NfdTopologyUpdater),
}
COMPONENTS = pytest.mark.parametrize("component", MEMBERS)
ONCE = ("master", "gc")
DEFINITIONS = ["nodefeatures", "nodefeaturegroups", "nodefeaturerules"]

TAINT = {"key": "dedicated", "operator": "Equal", "value": "ai", "effect": "NoSchedule"}
CONTROL_PLANE = {"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"}


def installation(given=None, release=NEW, tolerations=()):
    return nfd.node_feature_discovery(
        given or NodeFeatureDiscovery(topology_updater=NfdTopologyUpdater()),
        release=release,
        namespace="gpu",
        default_prefix="nfd",
        instance="plugin",
        tolerations=tolerations,
    )


def saying(component, release=NEW, **options):
    """An installation of all components, of which one is told something."""
    member, struct = MEMBERS[component]
    given = {"topology_updater": NfdTopologyUpdater(), member: struct(**options)}
    return installation(NodeFeatureDiscovery(**given), release)


def written(value):
    """What is left of a manifest when it is written: nothing that is None."""
    if isinstance(value, dict):
        return {key: written(member) for key, member in value.items() if member is not None}
    return [written(item) for item in value] if isinstance(value, list | tuple) else value


def changes(before, after):
    """Give the objects that differ, and those that are new."""
    before, after = written(before), written(after)
    assert before.keys() <= after.keys()
    return {child: manifest for child, manifest in after.items() if manifest != before.get(child)}


def pod(manifest):
    return manifest["spec"]["template"]["spec"]


def pod_metadata(manifest):
    return manifest["spec"]["template"]["metadata"]


def changed_pod_fields(component, release=NEW, **options):
    """What an option changes in the pods of its component, which must be all it changes."""
    before, after = installation(release=release), saying(component, release, **options)
    found = changes(before, after)
    assert found.keys() == {component}
    ours, theirs = written(before[component]), written(after[component])
    ours_pod, theirs_pod = pod(ours), pod(theirs)
    ours["spec"]["template"]["spec"] = theirs["spec"]["template"]["spec"] = {}
    assert ours == theirs
    keys = ours_pod.keys() | theirs_pod.keys()
    return {key: theirs_pod.get(key) for key in keys if ours_pod.get(key) != theirs_pod.get(key)}


def refusal(given, release=NEW):
    with pytest.raises(GpuConstructsError) as refused:
        installation(given, release)
    return str(refused.value)


# --- definitions ----------------------------------------------------------------------------------------------


@RELEASES
def test_the_definitions_are_those_of_the_release(release):
    definitions = nfd.custom_resource_definitions(release.version)
    assert [definition["spec"]["names"]["plural"] for definition in definitions] == DEFINITIONS
    assert {definition["spec"]["group"] for definition in definitions} == {"nfd.k8s-sigs.io"}


def test_the_definition_of_topologies_says_who_approved_its_protected_group():
    (definition,) = nfd.topology_definitions()
    assert definition["metadata"] == {
        "name": "noderesourcetopologies.topology.node.k8s.io",
        "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes/enhancements/pull/1870"},
    }
    served = {version["name"]: version["storage"] for version in definition["spec"]["versions"]}
    assert (definition["spec"]["scope"], served) == ("Cluster", {"v1alpha1": False, "v1alpha2": True})


def test_the_definitions_hold_structure_and_no_prose():
    assert '"description": "' not in json.dumps(
        [nfd.custom_resource_definitions(NEW.version), nfd.topology_definitions()]
    )


@RELEASES
def test_the_topology_updater_brings_its_definition_unless_told_not_to(release):
    assert list(installation(NodeFeatureDiscovery(), release))[:4] == [*DEFINITIONS, "master-config"]
    assert list(installation(release=release))[:4] == [*DEFINITIONS, "noderesourcetopologies"]
    without = saying("topology-updater", release, create_crds=False)
    assert written(installation(release=release)) == written(
        {"noderesourcetopologies": nfd.topology_definitions()[0], **without}
    )


# --- which objects --------------------------------------------------------------------------------------------


@RELEASES
def test_a_plain_installation_has_these_objects_in_this_order(release):
    assert list(installation(NodeFeatureDiscovery(), release))[3:] == [
        "master-config",
        "worker-config",
        "master-service-account",
        "worker-service-account",
        "gc-service-account",
        "master-cluster-role",
        "master-cluster-role-binding",
        "gc-cluster-role",
        "gc-cluster-role-binding",
        "worker-role",
        "worker-role-binding",
        "master",
        "gc",
        "worker",
    ]


@RELEASES
def test_the_topology_updater_adds_objects_of_its_own_only(release):
    found = changes(installation(NodeFeatureDiscovery(), release), installation(release=release))
    assert list(found) == [
        "noderesourcetopologies",
        "topology-updater-config",
        "topology-updater-service-account",
        "topology-updater-cluster-role",
        "topology-updater-cluster-role-binding",
        "topology-updater",
    ]


@RELEASES
@COMPONENTS
def test_a_component_that_is_left_out_leaves_nothing_behind(component, release):
    member, _ = MEMBERS[component]
    everything = {"topology_updater": NfdTopologyUpdater()}
    found = installation(NodeFeatureDiscovery(**{**everything, member: None}), release)
    gone = changes(found, installation(release=release))
    topologies = {"noderesourcetopologies"} if component == "topology-updater" else set()
    assert {child for child in gone if not child.startswith(component)} == topologies
    assert not any(child == component or child.startswith(f"{component}-") for child in found)


@RELEASES
@COMPONENTS
def test_rights_that_are_there_already_are_not_made(component, release):
    before = installation(release=release)
    after = saying(component, release, rbac_create=False)
    assert before.keys() - after.keys() == {
        child for child in before if child.startswith(f"{component}-") and "role" in child
    }
    assert written(after) == {child: manifest for child, manifest in written(before).items() if child in after}


def test_labels_are_published_with_a_master_and_a_worker_only():
    assert nfd.published_labels(NodeFeatureDiscovery()).publishes("nvidia.com/gpu.present")
    assert nfd.published_labels(NodeFeatureDiscovery(worker=None)) is None
    assert nfd.published_labels(NodeFeatureDiscovery(master=None)) is None


# --- names and labels -----------------------------------------------------------------------------------------


@RELEASES
def test_every_object_says_what_it_is(release):
    for child, manifest in installation(release=release).items():
        if manifest["kind"] != "CustomResourceDefinition":
            component = next(name for name in MEMBERS if child.startswith(name))
            assert manifest["metadata"]["labels"] == {
                "app.kubernetes.io/name": "node-feature-discovery",
                "app.kubernetes.io/instance": "plugin",
                "app.kubernetes.io/component": component,
                "app.kubernetes.io/version": release.version,
                "app.kubernetes.io/managed-by": "cdk8s",
            }
            assert manifest["metadata"]["name"].startswith(f"nfd-{component}")
            is_cluster_scoped = manifest["kind"].startswith("Cluster")
            assert manifest["metadata"].get("namespace") == (None if is_cluster_scoped else "gpu")


def test_every_part_selects_its_own_pods_only():
    manifests = installation()
    for component in MEMBERS:
        selector = manifests[component]["spec"]["selector"]["matchLabels"]
        selected = [other for other in MEMBERS if selector.items() <= pod_metadata(manifests[other])["labels"].items()]
        assert selected == [component]


def test_a_prefix_renames_every_object_and_what_points_to_it():
    renamed = installation(NodeFeatureDiscovery(fullname="mine", topology_updater=NfdTopologyUpdater()))
    assert json.loads(json.dumps(renamed).replace("mine-", "nfd-")) == json.loads(json.dumps(installation()))


def test_another_namespace_moves_every_object_and_what_points_to_it():
    moved = installation(NodeFeatureDiscovery(namespace="mine", topology_updater=NfdTopologyUpdater()))
    assert json.loads(json.dumps(moved).replace('"mine"', '"gpu"')) == json.loads(json.dumps(installation()))


# --- files ----------------------------------------------------------------------------------------------------


@RELEASES
@pytest.mark.parametrize(
    ("component", "config", "expected"),
    [
        ("master", {"enableTaints": True}, {"extraLabelNs": ["nvidia.com"], "enableTaints": True}),
        ("topology-updater", {"excludeList": {"*": ["cpu"]}}, {"excludeList": {"*": ["cpu"]}}),
        ("topology-updater", {}, {}),
    ],
    ids=str,
)
def test_a_component_gets_its_file_and_its_checksum(component, config, expected, release):
    manifests = saying(component, release, config=config)
    config_map = manifests[f"{component}-config"]
    assert config_map["metadata"]["name"] == f"nfd-{component}-conf"
    text = config_map["data"][f"nfd-{component}.conf"]
    assert yaml.safe_load(text) == expected
    annotations = pod_metadata(manifests[component])["annotations"]
    assert annotations == {"gpu-constructs/config-sha256": sha256(text)}
    assert {"name": "config", "configMap": {"name": f"nfd-{component}-conf"}} in pod(manifests[component])["volumes"]


@RELEASES
def test_a_changed_file_changes_the_file_and_the_pods_that_read_it(release):
    found = changes(installation(release=release), saying("worker", release, config={"core": {"sleepInterval": "5m"}}))
    assert found.keys() == {"worker-config", "worker"}


def test_the_garbage_collector_reads_no_file():
    assert pod_metadata(installation()["gc"])["annotations"] is None
    assert pod(installation()["gc"])["volumes"] is None


# --- accounts -------------------------------------------------------------------------------------------------


@COMPONENTS
def test_every_part_has_an_account_of_its_own_whose_token_it_alone_mounts(component):
    manifests = installation()
    account = manifests[f"{component}-service-account"]
    assert account["metadata"]["name"] == pod(manifests[component])["serviceAccountName"] == f"nfd-{component}"
    assert account["automountServiceAccountToken"] is False
    assert pod(manifests[component])["automountServiceAccountToken"] is True


@RELEASES
@COMPONENTS
def test_an_account_of_another_name_gets_the_rights(component, release):
    account = NfdServiceAccount(name="mine", annotations={"a": "b"})
    manifests = saying(component, release, service_account=account)
    metadata = manifests[f"{component}-service-account"]["metadata"]
    assert (metadata["name"], metadata["annotations"]) == ("mine", {"a": "b"})
    assert pod(manifests[component])["serviceAccountName"] == "mine"
    bindings = [child for child in manifests if child.startswith(f"{component}-") and child.endswith("binding")]
    for child in bindings:
        assert manifests[child]["subjects"] == [{"kind": "ServiceAccount", "name": "mine", "namespace": "gpu"}]
    changed = changes(installation(release=release), manifests)
    assert changed.keys() == {component, f"{component}-service-account", *bindings}


@COMPONENTS
def test_an_account_that_is_there_is_used_and_not_made(component):
    manifests = saying(component, service_account=NfdServiceAccount(create=False, name="mine"))
    assert f"{component}-service-account" not in manifests
    assert pod(manifests[component])["serviceAccountName"] == "mine"


@COMPONENTS
def test_rights_are_bound_to_the_account_of_the_part(component):
    manifests = installation()
    for child, binding in manifests.items():
        if child.startswith(f"{component}-") and child.endswith("-binding"):
            role = manifests[child.removesuffix("-binding")]
            assert binding["roleRef"] == {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": role["kind"],
                "name": role["metadata"]["name"],
            }
            assert binding["subjects"] == [{"kind": "ServiceAccount", "name": f"nfd-{component}", "namespace": "gpu"}]


def test_several_masters_and_groups_bring_a_role_beside_the_cluster_role():
    given = NodeFeatureDiscovery(master=NfdMaster(replica_count=2), feature_gates={"NodeFeatureGroupAPI": True})
    manifests = installation(given)
    assert [rule["resources"] for rule in manifests["master-role"]["rules"]] == [
        ["nodefeaturegroups"],
        ["nodefeaturegroups/status"],
        ["leases"],
        ["leases"],
    ]
    assert manifests["master-role"]["metadata"]["namespace"] == "gpu"
    assert manifests["master-role-binding"]["roleRef"]["kind"] == "Role"


# --- workloads ------------------------------------------------------------------------------------------------


@RELEASES
@COMPONENTS
def test_every_pod_is_confined_and_gets_no_service_links(component, release):
    spec = written(pod(installation(release=release)[component]))
    assert spec["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}}
    assert spec["enableServiceLinks"] is False
    assert spec.keys() - {"volumes", "tolerations", "affinity"} == {
        "automountServiceAccountToken",
        "containers",
        "enableServiceLinks",
        "securityContext",
        "serviceAccountName",
    }


@RELEASES
@COMPONENTS
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"host_users": False}, {"hostUsers": False}),
        ({"dns_policy": "Default"}, {"dnsPolicy": "Default"}),
        (
            {"pod_security_context": {"fsGroup": 5, "seccompProfile": None}},
            {"securityContext": {"fsGroup": 5}},
        ),
        (
            {"init_containers": [{"name": "wait", "image": "a:1", "command": ("true",)}]},
            {"initContainers": [{"name": "wait", "image": "a:1", "command": ["true"]}]},
        ),
        ({"priority_class_name": "high"}, {"priorityClassName": "high"}),
        ({"node_selector": {"pool": "gpu"}}, {"nodeSelector": {"pool": "gpu"}}),
        ({"affinity": {"podAffinity": {}}}, {"affinity": {"podAffinity": {}}}),
    ],
    ids=lambda value: next(iter(value)),
)
def test_each_option_of_the_pods_changes_its_field_and_nothing_else(component, options, expected, release):
    assert changed_pod_fields(component, release, **options) == expected


@RELEASES
@COMPONENTS
def test_pods_in_the_nodes_network_resolve_names_of_the_cluster(component, release):
    assert changed_pod_fields(component, release, host_network=True) == {
        "hostNetwork": True,
        "dnsPolicy": "ClusterFirstWithHostNet",
    }
    own = changed_pod_fields(component, release, host_network=True, dns_policy="Default")
    assert own == {"hostNetwork": True, "dnsPolicy": "Default"}


@COMPONENTS
def test_options_of_the_container_reach_it(component):
    assert changed_pod_fields(component, extra_envs={"A": "b"}).keys() == {"containers"}


@RELEASES
@COMPONENTS
def test_further_tolerations_come_after_the_charts(component, release):
    own = Toleration(key="own", operator="Exists")
    member, struct = MEMBERS[component]
    given = NodeFeatureDiscovery(**{member: struct(tolerations=[own, Toleration(**TAINT)])})
    expected = [CONTROL_PLANE, TAINT] if component in ONCE else [TAINT]
    found = pod(installation(given, release, [TAINT])[component])["tolerations"]
    assert found == [*expected, {"key": "own", "operator": "Exists"}]


@COMPONENTS
def test_a_taint_of_the_gpu_nodes_is_tolerated_by_every_component(component):
    expected = [CONTROL_PLANE, TAINT] if component in ONCE else [TAINT]
    assert pod(installation(tolerations=[TAINT])[component])["tolerations"] == expected


def test_the_single_pods_find_a_node_in_a_cluster_of_tainted_nodes_only():
    tolerated = {component: pod(installation()[component])["tolerations"] for component in MEMBERS}
    assert tolerated == {
        "master": [CONTROL_PLANE],
        "gc": [CONTROL_PLANE],
        "worker": None,
        "topology-updater": None,
    }


def test_the_master_alone_prefers_the_control_plane():
    manifests = installation()
    assert [component for component in MEMBERS if pod(manifests[component])["affinity"]] == ["master"]
    (preferred,) = pod(manifests["master"])["affinity"]["nodeAffinity"][
        "preferredDuringSchedulingIgnoredDuringExecution"
    ]
    assert preferred == {
        "weight": 1,
        "preference": {"matchExpressions": [{"key": CONTROL_PLANE["key"], "operator": "Exists"}]},
    }


def test_an_empty_affinity_takes_the_masters_preference_away():
    assert changed_pod_fields("master", affinity={}) == {"affinity": None}


@RELEASES
@COMPONENTS
def test_labels_and_annotations_go_on_the_pods_beside_ours(component, release):
    before = installation(release=release)
    after = saying(component, release, labels={"team": "ml"}, annotations={"a": "b"})
    assert changes(before, after).keys() == {component}
    ours, theirs = pod_metadata(before[component]), pod_metadata(after[component])
    assert theirs["labels"] == {"team": "ml", **ours["labels"]}
    assert theirs["annotations"] == {"a": "b", **(ours["annotations"] or {})}
    assert after[component]["metadata"] == before[component]["metadata"]


@RELEASES
@COMPONENTS
def test_annotations_of_the_object_go_on_it_alone(component, release):
    before = installation(release=release)
    option = "deployment_annotations" if component in ONCE else "daemonset_annotations"
    after = saying(component, release, **{option: {"a": "b"}})
    assert changes(before, after).keys() == {component}
    assert after[component] == {
        **before[component],
        "metadata": {**before[component]["metadata"], "annotations": {"a": "b"}},
    }


@COMPONENTS
def test_old_revisions_are_kept_as_many_as_told(component):
    assert "revisionHistoryLimit" not in written(installation())[component]["spec"]
    assert saying(component, revision_history_limit=0)[component]["spec"]["revisionHistoryLimit"] == 0


@RELEASES
def test_every_component_takes_the_priority_class_of_all_unless_it_has_its_own(release):
    given = NodeFeatureDiscovery(
        priority_class_name="high",
        topology_updater=NfdTopologyUpdater(),
        worker=NfdWorker(priority_class_name="system-node-critical"),
    )
    found = {name: pod(installation(given, release)[name])["priorityClassName"] for name in MEMBERS}
    assert found == {"master": "high", "gc": "high", "worker": "system-node-critical", "topology-updater": "high"}


@COMPONENTS
def test_secrets_for_the_registry_reach_every_component(component):
    given = NodeFeatureDiscovery(topology_updater=NfdTopologyUpdater(), image_pull_secrets=["a", "b"])
    assert pod(installation(given)[component])["imagePullSecrets"] == [{"name": "a"}, {"name": "b"}]


@pytest.mark.parametrize("component", ONCE)
def test_never_two_of_one_part_run_at_once_unless_several_are_asked_for(component):
    spec = installation()[component]["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})
    spec = saying(component, replica_count=2)[component]["spec"]
    assert (spec["replicas"], spec["strategy"]) == (2, {"type": "RollingUpdate"})


def test_a_tenth_of_the_workers_is_replaced_at_a_time_and_one_topology_updater():
    manifests = installation()
    assert manifests["worker"]["spec"]["updateStrategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": "10%"},
    }
    assert manifests["topology-updater"]["spec"]["updateStrategy"] == {"type": "RollingUpdate"}


@pytest.mark.parametrize("component", ["worker", "topology-updater"])
def test_pods_on_every_node_are_replaced_as_told(component):
    manifests = saying(component, update_strategy=UpdateStrategy.on_delete())
    assert manifests[component]["spec"]["updateStrategy"] == {"type": "OnDelete"}


# --- around the workloads -------------------------------------------------------------------------------------


def egress(*ports):
    tcp = [{"protocol": "TCP", "port": port} for port in (80, 443, 53, 6443, *ports)]
    return [{"ports": [*tcp, {"protocol": "UDP", "port": 53}]}]


@RELEASES
@COMPONENTS
def test_a_network_policy_lets_names_the_api_server_and_the_components_ports_through(component, release):
    found = changes(installation(release=release), saying(component, release, network_policy=NfdNetworkPolicy()))
    assert found.keys() == {f"{component}-network-policy"}
    policy = found[f"{component}-network-policy"]
    ports = ["http"] if release is NEW else ["metrics"] if component == "gc" else ["metrics", "health"]
    assert policy["metadata"]["name"] == f"nfd-{component}-network-policy"
    assert policy["spec"] == {
        "podSelector": {"matchLabels": installation()[component]["spec"]["selector"]["matchLabels"]},
        "policyTypes": ["Egress", "Ingress"],
        "egress": egress(10250) if component == "topology-updater" else egress(),
        "ingress": [{"ports": [{"protocol": "TCP", "port": port} for port in ports]}],
    }


def test_a_topology_updater_that_reads_the_kubelets_file_need_not_reach_the_kubelet():
    options = {"network_policy": NfdNetworkPolicy(), "kubelet_config_path": "/etc/kubernetes/kubelet.yaml"}
    policy = saying("topology-updater", **options)["topology-updater-network-policy"]
    assert policy["spec"]["egress"] == egress()


@COMPONENTS
def test_rules_of_a_network_policy_take_the_place_of_ours(component):
    policy = NfdNetworkPolicy(egress=[{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}], ingress=[])
    spec = saying(component, network_policy=policy)[f"{component}-network-policy"]["spec"]
    assert spec["egress"] == [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}]
    assert spec["ingress"] == []


@RELEASES
@pytest.mark.parametrize("component", ONCE)
def test_a_budget_counts_the_pods_of_its_component(component, release):
    budget = NfdPodDisruptionBudget(max_unavailable=1)
    found = changes(installation(release=release), saying(component, release, pod_disruption_budget=budget))
    assert found.keys() == {f"{component}-pod-disruption-budget"}
    manifest = found[f"{component}-pod-disruption-budget"]
    assert (manifest["apiVersion"], manifest["kind"]) == ("policy/v1", "PodDisruptionBudget")
    assert manifest["metadata"]["name"] == f"nfd-{component}"
    assert manifest["spec"] == {
        "maxUnavailable": 1,
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
        "selector": {"matchLabels": installation()[component]["spec"]["selector"]["matchLabels"]},
    }


@RELEASES
def test_a_pod_monitor_asks_every_component(release):
    monitor = NfdPodMonitor(scrape_interval="30s", labels={"release": "prometheus"})
    given = NodeFeatureDiscovery(topology_updater=NfdTopologyUpdater(), prometheus=monitor)
    found = changes(installation(release=release), installation(given, release))
    assert found.keys() == {"pod-monitor"}
    manifest = found["pod-monitor"]
    assert manifest["metadata"]["name"] == "nfd"
    assert manifest["metadata"]["labels"]["release"] == "prometheus"
    (endpoint,) = manifest["spec"]["podMetricsEndpoints"]
    assert (endpoint["interval"], endpoint["path"], endpoint["honorLabels"]) == ("30s", "/metrics", True)
    selector = manifest["spec"]["selector"]["matchLabels"]
    for component in MEMBERS:
        workload = installation(given, release)[component]
        assert selector.items() <= pod_metadata(workload)["labels"].items()
        (container,) = pod(workload)["containers"]
        assert endpoint["port"] in [port["name"] for port in container["ports"]]


# --- releases and ports ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "field", "first"),
    [
        (NodeFeatureDiscovery(master=NfdMaster(port=9000)), "master.port", "0.18.0"),
        (NodeFeatureDiscovery(gc=NfdGarbageCollector(port=9000)), "gc.port", "0.18.0"),
        (NodeFeatureDiscovery(worker=NfdWorker(owner_refs=[])), "worker.owner_refs", "0.19.0"),
        (NodeFeatureDiscovery(gc=NfdGarbageCollector(liveness_probe=NfdProbe())), "gc.liveness_probe", "0.18.0"),
        (NodeFeatureDiscovery(gc=NfdGarbageCollector(readiness_probe=NfdProbe())), "gc.readiness_probe", "0.18.0"),
        (
            NodeFeatureDiscovery(gc=NfdGarbageCollector(extra_args=["-list-size=5"])),
            "gc.extra_args[0] -list-size",
            "0.18.0",
        ),
        (
            NodeFeatureDiscovery(worker=NfdWorker(config={"core": {"noPublishFeatures": ["pci.*"]}})),
            "worker.config.core.noPublishFeatures",
            "0.19.0",
        ),
        (
            NodeFeatureDiscovery(master=NfdMaster(config={"informerPageSize": 5})),
            "master.config.informerPageSize",
            "0.18.0",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_came_later_is_refused_with_its_first_release(given, field, first):
    assert installation(given, NEW)
    assert refusal(given, OLD) == (
        f"{field} needs Node Feature Discovery {first}, and this is 0.17.3; leave it out or take a later release of "
        "the device plugin"
    )


@pytest.mark.parametrize(
    ("given", "field"),
    [
        (NodeFeatureDiscovery(master=NfdMaster(metrics_port=9000)), "master.metrics_port"),
        (NodeFeatureDiscovery(worker=NfdWorker(health_port=9000)), "worker.health_port"),
        (NodeFeatureDiscovery(gc=NfdGarbageCollector(metrics_port=9000)), "gc.metrics_port"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_ports_of_the_older_release_are_refused_by_the_newer(given, field):
    assert installation(given, OLD)
    assert refusal(given, NEW) == (
        f"{field} is gone since Node Feature Discovery 0.18.0, and this is 0.19.0; set {field.partition('.')[0]}.port, "
        "which serves metrics and health"
    )


def test_one_port_cannot_serve_two_purposes():
    given = NodeFeatureDiscovery(master=NfdMaster(metrics_port=8082))
    assert refusal(given, OLD) == "master.health_port must differ from master.metrics_port; both are 8082"


def test_two_components_cannot_share_a_port_of_the_node():
    given = NodeFeatureDiscovery(
        worker=NfdWorker(host_network=True), topology_updater=NfdTopologyUpdater(host_network=True)
    )
    assert refusal(given) == "topology_updater.port must differ from worker.port in the node's network; both are 8080"
    assert refusal(given, OLD) == (
        "topology_updater.metrics_port must differ from worker.metrics_port in the node's network; both are 8081"
    )


def test_two_components_may_share_the_nodes_network_on_ports_of_their_own():
    given = NodeFeatureDiscovery(
        worker=NfdWorker(host_network=True), topology_updater=NfdTopologyUpdater(host_network=True, port=8081)
    )
    assert installation(given)


def test_a_master_that_does_not_look_at_its_workers_namespace_is_refused():
    selector = {"matchLabels": {"kubernetes.io/metadata.name": "other"}}
    master = NfdMaster(config={"restrictions": {"nodeFeatureNamespaceSelector": selector}})
    assert installation(NodeFeatureDiscovery(master=master, namespace="other"))
    assert refusal(NodeFeatureDiscovery(master=master)).startswith(
        "master.config.restrictions.nodeFeatureNamespaceSelector must take the namespace 'gpu' of the workers, "
    )


# --- in a chart -----------------------------------------------------------------------------------------------


def every_option(release):
    ports = {"port": 9000} if release is NEW else {"metrics_port": 9000, "health_port": 9001}
    for_all = {
        "extra_args": ["-v=4"],
        "extra_envs": {"A": "b", "C": EnvValue.config_map("settings", key="c")},
        "host_users": False,
        "dns_policy": "ClusterFirst",
        "annotations": {"example.com/a": "b"},
        "labels": {"team": "ml"},
        "pod_security_context": {"fsGroup": 1000},
        "security_context": {"runAsUser": 65532},
        "init_containers": [{"name": "wait", "image": "docker.io/library/busybox:1.37.0", "command": ["true"]}],
        "service_account": NfdServiceAccount(annotations={"example.com/role": "nfd"}),
        "revision_history_limit": 3,
        "resources": {"requests": {"cpu": "20m"}, "limits": {"memory": "1Gi"}},
        "node_selector": {"kubernetes.io/os": "linux"},
        "tolerations": [Toleration(key="own", operator="Exists")],
        "network_policy": NfdNetworkPolicy(),
    }
    several = {
        "replica_count": 2,
        "pod_disruption_budget": NfdPodDisruptionBudget(),
        "deployment_annotations": {"a": "b"},
    }
    probes = {"liveness_probe": NfdProbe(period_seconds=20), "readiness_probe": NfdProbe(success_threshold=2)}
    newer = release is NEW
    return NodeFeatureDiscovery(
        image="registry.example/nfd@sha256:" + "0" * 64,
        image_pull_policy="Always",
        image_pull_secrets=["registry"],
        fullname="discovery",
        namespace="nfd",
        feature_gates={"NodeFeatureGroupAPI": True},
        priority_class_name="system-cluster-critical",
        master=NfdMaster(
            **for_all,
            **several,
            **ports,
            **probes,
            startup_probe=NfdProbe(failure_threshold=60),
            config={"restrictions": {"nodeFeatureNamespaceSelector": {"matchLabels": {"team": "gpu"}}}},
            instance="blue",
            resync_period="2h",
            deny_label_ns=["example.com"],
            extra_label_ns=["nvidia.com"],
            enable_taints=True,
            nfd_api_parallelism=5,
        ),
        worker=NfdWorker(
            **for_all,
            **ports,
            **probes,
            config={"sources": {"custom": [{"name": "mine", "labels": {"example.com/mine": True}}]}},
            owner_refs=["node"] if newer else None,
            mount_usr_src=True,
            mount_features_d=True,
            priority_class_name="system-node-critical",
            daemonset_annotations={"a": "b"},
        ),
        gc=NfdGarbageCollector(
            **for_all,
            **several,
            **(probes if newer else {}),
            **({"port": 9000} if newer else {"metrics_port": 9000}),
            interval="30m",
        ),
        topology_updater=NfdTopologyUpdater(
            **{**for_all, "security_context": {}},
            **ports,
            **probes,
            config={"excludeList": {"*": ["cpu"]}},
            update_interval="10s",
            watch_namespace="ml",
            kubelet_config_path="/etc/kubernetes/kubelet.yaml",
            pod_set_fingerprint=False,
            daemonset_annotations={"a": "b"},
        ),
        prometheus=NfdPodMonitor(labels={"release": "prometheus"}),
    )


def in_a_chart(app, manifests):
    chart = Chart(app, "nfd")
    for child, manifest in manifests.items():
        Manifest(chart, child, manifest)
    return chart


@RELEASES
def test_an_installation_of_which_nothing_is_said_is_what_kubernetes_takes(release, app, objects):
    assert objects(in_a_chart(app, installation(release=release, tolerations=[TAINT])))


@RELEASES
def test_an_installation_of_which_everything_is_said_is_what_kubernetes_takes(release, app, objects, snapshot):
    rendered = objects(in_a_chart(app, installation(every_option(release), release, [TAINT])))
    assert [manifest for manifest in rendered if manifest["kind"] != "CustomResourceDefinition"] == snapshot

import json
from functools import partial

import pytest
from cdk8s import Chart

import refusals
from gpu_constructs import GpuConstructsError, Toleration
from gpu_constructs.catalog import versions
from gpu_constructs.feature_discovery import manifests as nfd
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
from gpu_constructs.kube.env import EnvValue
from gpu_constructs.tree.manifest import Manifest
from tables import beside

OLD, NEW = (versions.DEVICE_PLUGIN[release].node_feature_discovery for release in ("0.18.2", "0.20.0"))
RELEASES = pytest.mark.parametrize(
    "release", [OLD, versions.NODE_FEATURE_DISCOVERY["0.18.3"], NEW], ids=lambda release: release.version
)
MEMBERS = beside(__file__, "nfd")["members"]
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
    """Return an installation of all components. One component has options."""
    member, struct = MEMBERS[component]
    given = {"topology_updater": NfdTopologyUpdater(), member: struct(**options)}
    return installation(NodeFeatureDiscovery(**given), release)


def written(value):
    """Return a manifest without members that are None, which are not written."""
    if isinstance(value, dict):
        return {key: written(member) for key, member in value.items() if member is not None}
    return [written(item) for item in value] if isinstance(value, list | tuple) else value


def changes(before, after):
    """Return the objects that differ, and those that are new."""
    before, after = written(before), written(after)
    assert before.keys() <= after.keys()
    return {child: manifest for child, manifest in after.items() if manifest != before.get(child)}


def pod(manifest):
    return manifest["spec"]["template"]["spec"]


def changed_pod_fields(component, release=NEW, **options):
    """Return the changes of an option in the pods of its component. Raise if it changes other objects."""
    before, after = installation(release=release), saying(component, release, **options)
    found = changes(before, after)
    assert found.keys() == {component}
    ours, theirs = written(before[component]), written(after[component])
    ours_pod, theirs_pod = pod(ours), pod(theirs)
    ours["spec"]["template"]["spec"] = theirs["spec"]["template"]["spec"] = {}
    assert ours == theirs
    keys = ours_pod.keys() | theirs_pod.keys()
    return {key: theirs_pod.get(key) for key in keys if ours_pod.get(key) != theirs_pod.get(key)}


refusal = partial(refusals.refusal, installation)


# --- definitions ----------------------------------------------------------------------------------------------


@RELEASES
def test_the_topology_updater_has_its_crd_by_default(release):
    assert list(installation(NodeFeatureDiscovery(), release))[:4] == [*DEFINITIONS, "master-config"]
    assert list(installation(release=release))[:4] == [*DEFINITIONS, "noderesourcetopologies"]
    without = saying("topology-updater", release, create_crds=False)
    assert written(installation(release=release)) == written(
        {"noderesourcetopologies": nfd.topology_definitions()[0], **without}
    )


# --- which objects --------------------------------------------------------------------------------------------


@COMPONENTS
def test_without_a_component_all_its_objects_are_missing(component):
    member, _ = MEMBERS[component]
    everything = {"topology_updater": NfdTopologyUpdater()}
    found = installation(NodeFeatureDiscovery(**{**everything, member: None}))
    gone = changes(found, installation())
    topologies = {"noderesourcetopologies"} if component == "topology-updater" else set()
    assert {child for child in gone if not child.startswith(component)} == topologies
    assert not any(child == component or child.startswith(f"{component}-") for child in found)


@COMPONENTS
def test_existing_roles_are_not_created(component):
    before = installation()
    after = saying(component, rbac_create=False)
    assert before.keys() - after.keys() == {
        child for child in before if child.startswith(f"{component}-") and "role" in child
    }
    assert written(after) == {child: manifest for child, manifest in written(before).items() if child in after}


# --- names and labels -----------------------------------------------------------------------------------------


def test_a_prefix_renames_every_object_and_every_reference():
    renamed = installation(NodeFeatureDiscovery(fullname="mine", topology_updater=NfdTopologyUpdater()))
    assert json.loads(json.dumps(renamed).replace("mine-", "nfd-")) == json.loads(json.dumps(installation()))


def test_another_namespace_moves_every_object_and_every_reference():
    moved = installation(NodeFeatureDiscovery(namespace="mine", topology_updater=NfdTopologyUpdater()))
    assert json.loads(json.dumps(moved).replace('"mine"', '"gpu"')) == json.loads(json.dumps(installation()))


# --- accounts -------------------------------------------------------------------------------------------------


@COMPONENTS
def test_an_account_of_another_name_gets_the_rights(component):
    account = NfdServiceAccount(name="mine", annotations={"a": "b"})
    manifests = saying(component, service_account=account)
    metadata = manifests[f"{component}-service-account"]["metadata"]
    assert (metadata["name"], metadata["annotations"]) == ("mine", {"a": "b"})
    assert pod(manifests[component])["serviceAccountName"] == "mine"
    bindings = [child for child in manifests if child.startswith(f"{component}-") and child.endswith("binding")]
    for child in bindings:
        assert manifests[child]["subjects"] == [{"kind": "ServiceAccount", "name": "mine", "namespace": "gpu"}]
    changed = changes(installation(), manifests)
    assert changed.keys() == {component, f"{component}-service-account", *bindings}


@COMPONENTS
def test_an_existing_account_is_not_created(component):
    manifests = saying(component, service_account=NfdServiceAccount(create=False, name="mine"))
    assert f"{component}-service-account" not in manifests
    assert pod(manifests[component])["serviceAccountName"] == "mine"


# --- workloads ------------------------------------------------------------------------------------------------


@COMPONENTS
def test_pods_in_the_nodes_network_resolve_names_of_the_cluster(component, expected):
    assert changed_pod_fields(component, host_network=True) == expected
    own = changed_pod_fields(component, host_network=True, dns_policy="Default")
    assert own == {"hostNetwork": True, "dnsPolicy": "Default"}


@COMPONENTS
def test_tolerations_of_a_component_follow_those_of_the_chart(component):
    own = Toleration(key="own", operator="Exists")
    member, struct = MEMBERS[component]
    given = NodeFeatureDiscovery(**{member: struct(tolerations=[own, Toleration(**TAINT)])})
    expected = [CONTROL_PLANE, TAINT] if component in ONCE else [TAINT]
    found = pod(installation(given, tolerations=[TAINT])[component])["tolerations"]
    assert found == [*expected, {"key": "own", "operator": "Exists"}]
    # A single pod must be able to run in a cluster with only tainted nodes.
    assert pod(installation()[component])["tolerations"] == ([CONTROL_PLANE] if component in ONCE else None)


def test_only_the_master_prefers_the_control_plane():
    manifests = installation()
    assert [component for component in MEMBERS if pod(manifests[component])["affinity"]] == ["master"]
    (preferred,) = pod(manifests["master"])["affinity"]["nodeAffinity"][
        "preferredDuringSchedulingIgnoredDuringExecution"
    ]
    assert preferred == {
        "weight": 1,
        "preference": {"matchExpressions": [{"key": CONTROL_PLANE["key"], "operator": "Exists"}]},
    }
    assert changed_pod_fields("master", affinity={}) == {"affinity": None}


def test_options_of_all_components_apply_unless_a_component_has_its_own(keywords):
    given = NodeFeatureDiscovery(**keywords)
    manifests = installation(given)
    found = {name: pod(manifests[name])["priorityClassName"] for name in MEMBERS}
    assert found == {"master": "high", "gc": "high", "worker": "system-node-critical", "topology-updater": "high"}
    for name in MEMBERS:
        assert pod(manifests[name])["imagePullSecrets"] == [{"name": "a"}, {"name": "b"}]
        assert "revisionHistoryLimit" not in written(manifests)[name]["spec"]
        assert saying(name, revision_history_limit=0)[name]["spec"]["revisionHistoryLimit"] == 0


@pytest.mark.parametrize("component", ONCE)
def test_an_update_never_runs_two_pods_of_a_single_replica(component):
    spec = installation()[component]["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})
    spec = saying(component, replica_count=2)[component]["spec"]
    assert (spec["replicas"], spec["strategy"]) == (2, {"type": "RollingUpdate"})


def test_a_tenth_of_the_workers_is_replaced_at_a_time_and_one_topology_updater(expected):
    manifests = installation()
    assert manifests["worker"]["spec"]["updateStrategy"] == expected
    assert manifests["topology-updater"]["spec"]["updateStrategy"] == {"type": "RollingUpdate"}


# --- around the workloads -------------------------------------------------------------------------------------


def egress(*ports):
    tcp = [{"protocol": "TCP", "port": port} for port in (80, 443, 53, 6443, *ports)]
    return [{"ports": [*tcp, {"protocol": "UDP", "port": 53}]}]


def test_a_topology_updater_with_the_kubelets_file_has_no_egress_to_the_kubelet():
    options = {"network_policy": NfdNetworkPolicy(), "kubelet_config_path": "/etc/kubernetes/kubelet.yaml"}
    policy = saying("topology-updater", **options)["topology-updater-network-policy"]
    assert policy["spec"]["egress"] == egress()


@COMPONENTS
def test_rules_of_a_network_policy_replace_the_default(component):
    policy = NfdNetworkPolicy(egress=[{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}], ingress=[])
    spec = saying(component, network_policy=policy)[f"{component}-network-policy"]["spec"]
    assert spec["egress"] == [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}]
    assert spec["ingress"] == []


# --- releases and ports ---------------------------------------------------------------------------------------


def matching(**terms):
    return {"sources": {"custom": [{"vars": {"a": "b"}, **terms}]}}


LATE = beside(__file__, "nfd")["late"]
GONE = beside(__file__, "nfd")["gone"]


@pytest.mark.parametrize(("rows", "other", "release"), [(LATE, NEW, OLD), (GONE, OLD, NEW)], ids=["late", "gone"])
def test_the_error_for_an_option_of_another_release_names_that_release(rows, other, release, snapshot):
    """The snapshot contains one message for each row."""
    given = [NodeFeatureDiscovery(**row) for row in rows]
    assert all(installation(one, other) for one in given)
    assert "\n".join(refusal(one, release) for one in given) == snapshot


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


NAME = "kubernetes.io/metadata.name"


def test_a_master_that_does_not_read_the_namespace_of_its_workers_is_rejected(rows):
    def selecting(selector):
        master = NfdMaster(config={"restrictions": {"nodeFeatureNamespaceSelector": selector}})
        return NodeFeatureDiscovery(master=master)

    for (selector,) in rows:
        assert installation(selecting(selector))
    for selector, got in (
        ({"matchLabels": {NAME: "other"}}, ["other"]),
        ({"matchExpressions": [{"key": NAME, "operator": "In", "values": ["a", "b"]}]}, ["a", "b"]),
    ):
        assert refusal(selecting(selector)) == (
            "master.config.restrictions.nodeFeatureNamespaceSelector must select the namespace 'gpu' of the workers, "
            f"otherwise no node gets nvidia.com/gpu.present, got {got}"
        )


# --- in a chart -----------------------------------------------------------------------------------------------


def every_option(release):
    ports = {"port": 9000} if release.has_http_health else {"metrics_port": 9000, "health_port": 9001}
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
    newer = release.has_owner_refs
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
            **(probes if release.has_http_health else {}),
            **({"port": 9000} if release.has_http_health else {"metrics_port": 9000}),
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
def test_an_installation_without_options_is_valid(release, app, objects):
    assert objects(in_a_chart(app, installation(release=release, tolerations=[TAINT])))


@RELEASES
def test_an_installation_with_all_options_is_valid(release, app, objects, snapshot):
    rendered = objects(in_a_chart(app, installation(every_option(release), release, [TAINT])))
    assert [manifest for manifest in rendered if manifest["kind"] != "CustomResourceDefinition"] == snapshot


def test_releases_of_a_line_render_the_same_objects():
    def rendered(version):
        return json.dumps(installation(release=versions.NODE_FEATURE_DISCOVERY[version])).replace(version, "VERSION")

    lines = {version: version.rpartition(".")[0] for version in versions.NODE_FEATURE_DISCOVERY}
    by_line = {line: {rendered(version) for version in lines if lines[version] == line} for line in lines.values()}
    assert {line: len(texts) for line, texts in by_line.items()} == {"0.16": 3, "0.17": 1, "0.18": 1, "0.19": 1}
    assert len({text for texts in by_line.values() for text in texts}) == 5


def test_release_0_18_has_one_port_and_no_owner_references():
    release = versions.NODE_FEATURE_DISCOVERY["0.18.0"]
    worker = installation(release=release)["worker"]["spec"]["template"]["spec"]["containers"][0]
    assert [port["name"] for port in worker["ports"]] == ["http"]
    assert "-owner-refs" not in str(worker["args"])
    with pytest.raises(GpuConstructsError, match=r"needs Node Feature Discovery 0\.19\.0, got 0\.18\.0"):
        saying("worker", release, owner_refs=["pod"])
    saying("gc", release, port=8081)


def test_release_0_16_gets_only_the_flags_rights_and_options_that_it_supports(rows):
    for patch, has_flag, reads_pod in ((0, False, False), (1, False, False), (2, False, True), (5, True, True)):
        release = versions.NODE_FEATURE_DISCOVERY[f"0.16.{patch}"]
        made = installation(release=release)
        worker = made["worker"]["spec"]["template"]["spec"]["containers"][0]
        assert worker["image"].endswith(f":v0.16.{patch}")
        assert worker["livenessProbe"]["grpc"] == {"port": 8082}
        assert [arg for arg in worker["args"] if arg.startswith("-grpc-health")] == ["-grpc-health=8082"] * has_flag
        assert [rule["verbs"] for rule in made["worker-role"]["rules"] if "pods" in rule["resources"]] == [
            ["get"]
        ] * reads_pod
    for patch, part, option, first in rows:
        with pytest.raises(GpuConstructsError, match=rf"needs Node Feature Discovery {first}, got 0\.16\.{patch}"):
            saying(part, versions.NODE_FEATURE_DISCOVERY[f"0.16.{patch}"], **option)


def test_an_old_release_is_rejected_with_the_keys_that_the_oldest_supported_chart_lacks():
    says = r"older than all supported releases\. Release 0\.14\.0 renames topologyGC to gc\. Use '0\.16\.0' or later"
    with pytest.raises(GpuConstructsError, match=says):
        versions.release_of(versions.NODE_FEATURE_DISCOVERY, "0.13.6", "Node Feature Discovery")

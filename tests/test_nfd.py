import json
import re

import pytest
import yaml

from gpu_constructs import versions
from gpu_constructs._config_map import yaml_text
from gpu_constructs.feature_discovery import nfd

RELEASES = [release.node_feature_discovery for release in versions.DEVICE_PLUGIN.values()]
OLD, NEW = sorted(RELEASES, key=lambda release: release.version)


class CoreSchemaLoader(yaml.SafeLoader):
    """Takes plain scalars for what YAML 1.2 takes them for: 02 and 0300 are numbers there, too."""


CoreSchemaLoader.yaml_implicit_resolvers = {}
for tag, pattern in {
    "null": r"~|null|Null|NULL|",
    "bool": r"true|True|TRUE|false|False|FALSE",
    "int": r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+",
    "float": r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
}.items():
    CoreSchemaLoader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"(?:{pattern})\\Z"), None)


def installation(release=NEW, tolerations=()):
    return nfd.NodeFeatureDiscovery(
        release=release,
        namespace="gpu",
        prefix="nfd",
        instance="plugin",
        tolerations=tolerations,
        worker_config_sha256="a" * 64,
        master_config_sha256="b" * 64,
    ).manifests()


def pod(manifest):
    return manifest["spec"]["template"]["spec"]


def container(manifest):
    (only,) = pod(manifest)["containers"]
    return only


WORKLOADS = ("master", "gc", "worker")


@pytest.mark.parametrize("loader", [yaml.SafeLoader, CoreSchemaLoader], ids=["yaml-1.1", "yaml-1.2"])
def test_device_classes_stay_text_for_every_yaml_reader(loader):
    read = yaml.load(yaml_text(nfd.WORKER_CONFIG), loader)
    assert read["sources"]["pci"]["deviceClassWhitelist"] == ["02", "03"]
    rule = read["sources"]["custom"][0]["matchFeatures"][0]["matchExpressions"]
    assert rule["class"] == {"op": "In", "value": ["0300", "0302"]}
    assert rule["vendor"] == {"op": "In", "value": ["10de"]}


def test_the_reader_for_yaml_1_2_would_notice_a_class_without_quotes():
    assert [type(item) for item in yaml.load("[0300, 02, 10de, yes]", CoreSchemaLoader)] == [int, int, str, str]


@pytest.mark.parametrize("loader", [yaml.SafeLoader, CoreSchemaLoader], ids=["yaml-1.1", "yaml-1.2"])
def test_the_label_of_the_rule_is_text_and_not_a_boolean(loader):
    read = yaml.load(yaml_text(nfd.WORKER_CONFIG), loader)
    assert read["sources"]["custom"][0]["labels"] == {"nvidia.com/gpu.present": "true"}


def test_the_vendor_alone_makes_the_pci_label_that_the_plugin_selects():
    assert nfd.WORKER_CONFIG["sources"]["pci"]["deviceLabelFields"] == ["vendor"]


def test_the_master_allows_labels_of_nvidia():
    assert yaml.safe_load(yaml_text(nfd.MASTER_CONFIG)) == {"extraLabelNs": ["nvidia.com"]}


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.version)
def test_the_definitions_are_those_of_the_release(release):
    definitions = nfd.custom_resource_definitions(release.version)
    assert [definition["spec"]["names"]["kind"] for definition in definitions] == [
        "NodeFeature",
        "NodeFeatureGroup",
        "NodeFeatureRule",
    ]
    assert {definition["spec"]["group"] for definition in definitions} == {"nfd.k8s-sigs.io"}


def test_the_definitions_hold_structure_and_no_prose():
    assert '"description": "' not in json.dumps(nfd.custom_resource_definitions(NEW.version))


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.version)
@pytest.mark.parametrize("component", WORKLOADS)
def test_every_part_runs_the_release_without_root_or_capabilities(release, component):
    part = container(installation(release)[component])
    assert part["image"] == f"registry.k8s.io/nfd/node-feature-discovery:v{release.version}"
    assert part["command"] == [f"nfd-{component}"]
    assert part["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
    }


@pytest.mark.parametrize("component", WORKLOADS)
def test_every_part_selects_its_own_pods_only(component):
    manifests = installation()
    selector = manifests[component]["spec"]["selector"]["matchLabels"]
    matching = [
        other
        for other in WORKLOADS
        if selector.items() <= manifests[other]["spec"]["template"]["metadata"]["labels"].items()
    ]
    assert matching == [component]


@pytest.mark.parametrize("component", WORKLOADS)
def test_every_part_has_an_account_of_its_own(component):
    manifests = installation()
    account = manifests[f"{component}-service-account"]
    assert account["metadata"]["name"] == pod(manifests[component])["serviceAccountName"] == f"nfd-{component}"
    assert account["automountServiceAccountToken"] is False
    assert pod(manifests[component])["automountServiceAccountToken"] is True


def test_the_worker_may_write_node_features_in_its_own_namespace_and_nothing_of_the_cluster():
    manifests = installation()
    assert manifests["worker-role"]["rules"] == [
        {
            "apiGroups": ["nfd.k8s-sigs.io"],
            "resources": ["nodefeatures"],
            "verbs": ["create", "delete", "get", "update"],
        },
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
    ]
    bound = [
        subject["name"]
        for manifest in manifests.values()
        if manifest["kind"] == "ClusterRoleBinding"
        for subject in manifest["subjects"]
    ]
    assert bound == ["nfd-master", "nfd-gc"]


def test_the_master_may_change_nodes_and_only_read_features():
    rules = installation()["master-cluster-role"]["rules"]
    assert rules == [
        {"apiGroups": [""], "resources": ["nodes", "nodes/status"], "verbs": ["get", "list", "patch", "update"]},
        {
            "apiGroups": ["nfd.k8s-sigs.io"],
            "resources": ["nodefeatures", "nodefeaturerules"],
            "verbs": ["get", "list", "watch"],
        },
    ]


def test_the_garbage_collector_may_delete_what_gone_nodes_left():
    assert installation()["gc-cluster-role"]["rules"] == [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "watch"]},
        {"apiGroups": ["nfd.k8s-sigs.io"], "resources": ["nodefeatures"], "verbs": ["delete", "list"]},
        {
            "apiGroups": ["topology.node.k8s.io"],
            "resources": ["noderesourcetopologies"],
            "verbs": ["delete", "list"],
        },
    ]


def test_no_part_may_reach_kubelets_through_their_nodes():
    resources = [
        resource
        for manifest in installation().values()
        if manifest["kind"] in ("Role", "ClusterRole")
        for rule in manifest["rules"]
        for resource in rule["resources"]
    ]
    assert "nodes/proxy" not in resources
    assert "*" not in resources


@pytest.mark.parametrize("component", ["master", "gc"])
def test_cluster_rights_are_bound_to_the_account_of_the_part(component):
    binding = installation()[f"{component}-cluster-role-binding"]
    assert binding["roleRef"]["name"] == installation()[f"{component}-cluster-role"]["metadata"]["name"]
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": f"nfd-{component}", "namespace": "gpu"}]


TAINT = {"key": "dedicated", "operator": "Equal", "value": "ai", "effect": "NoSchedule"}
CONTROL_PLANE = {"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"}


def test_the_worker_goes_where_gpu_pods_go():
    assert pod(installation(tolerations=[TAINT])["worker"])["tolerations"] == [TAINT]


@pytest.mark.parametrize("component", ["master", "gc"])
def test_the_single_pods_find_a_node_in_a_cluster_of_tainted_nodes_only(component):
    assert pod(installation(tolerations=[TAINT])[component])["tolerations"] == [CONTROL_PLANE, TAINT]
    assert pod(installation()[component])["tolerations"] == [CONTROL_PLANE]


def test_the_master_alone_prefers_the_control_plane():
    manifests = installation()
    assert [component for component in WORKLOADS if "affinity" in pod(manifests[component])] == ["master"]
    (preferred,) = pod(manifests["master"])["affinity"]["nodeAffinity"][
        "preferredDuringSchedulingIgnoredDuringExecution"
    ]
    assert preferred["preference"] == {"matchExpressions": [{"key": CONTROL_PLANE["key"], "operator": "Exists"}]}


def test_the_worker_reads_the_host_and_writes_nothing_there():
    worker = installation()["worker"]
    mounts = container(worker)["volumeMounts"]
    assert all(mount["readOnly"] for mount in mounts)
    assert {mount["name"] for mount in mounts} == {volume["name"] for volume in pod(worker)["volumes"]}


@pytest.mark.parametrize(("component", "checksum"), [("worker", "a" * 64), ("master", "b" * 64)])
def test_a_changed_file_restarts_its_reader(component, checksum):
    annotations = installation()[component]["spec"]["template"]["metadata"]["annotations"]
    assert annotations == {"gpu-constructs/config-sha256": checksum}


def test_the_garbage_collector_reads_no_file():
    assert installation()["gc"]["spec"]["template"]["metadata"]["annotations"] is None
    assert "volumes" not in pod(installation()["gc"])


@pytest.mark.parametrize("component", ["master", "gc"])
def test_never_two_of_one_part_run_at_once(component):
    spec = installation()[component]["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})


@pytest.mark.parametrize("component", ["master", "worker"])
def test_the_newer_release_is_probed_over_http_and_the_older_over_grpc(component):
    newer, older = container(installation(NEW)[component]), container(installation(OLD)[component])
    assert newer["readinessProbe"]["httpGet"] == {"path": "/healthz", "port": "http"}
    assert newer["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "http"}
    assert "-port=8080" in newer["args"]
    assert older["readinessProbe"]["grpc"] == older["livenessProbe"]["grpc"] == {"port": 8082}
    assert "-grpc-health=8082" in older["args"]


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.version)
@pytest.mark.parametrize("component", WORKLOADS)
def test_every_probe_asks_a_port_that_the_container_opens(release, component):
    part = container(installation(release)[component])
    opened = {value for port in part["ports"] for value in (port["name"], port["containerPort"])}
    probes = [part[name] for name in ("startupProbe", "readinessProbe", "livenessProbe") if name in part]
    asked = {probe[check]["port"] for probe in probes for check in ("httpGet", "grpc") if check in probe}
    assert asked <= opened


def test_only_the_newer_worker_is_told_who_owns_its_objects():
    assert "-owner-refs=pod,ds" in container(installation(NEW)["worker"])["args"]
    assert "-owner-refs=pod,ds" not in container(installation(OLD)["worker"])["args"]

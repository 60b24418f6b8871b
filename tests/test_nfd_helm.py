"""The values of Node Feature Discovery in NVIDIA's chart: every key goes where it should, or is refused."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import pytest
import yaml
from cdk8s import App, Testing
from hypothesis import given
from hypothesis import strategies as st

import helm_keys
from gpu_constructs import DevicePluginChart, GpuConstructsError, GpuConstructsWarning, versions
from gpu_constructs._helm import Values
from gpu_constructs.device_plugin.helm import KEYS as ALL_KEYS
from gpu_constructs.feature_discovery import nfd
from gpu_constructs.feature_discovery.helm import KEYS, node_feature_discovery
from test_device_plugin_helm import laid, nested
from test_properties import assert_house_style, quickly

OLD, MIDDLE, NEW = helm_keys.RELEASES
NAME = "nvdp-node-feature-discovery"
COMPONENTS = {"master": "master", "worker": "worker", "gc": "gc", "topologyUpdater": "topology-updater"}
UPDATER = {"topologyUpdater": {"enable": True}}


def options(values, *, version=NEW, strict=True, release="nvdp", namespace="nvidia", gpu_namespace="nvidia", **others):
    """What the values below ``nfd`` say, beside others."""
    read = Values({"nfd": values, **others}, ALL_KEYS, release=version, strict=strict)
    return node_feature_discovery(
        read,
        release_name=release,
        namespace=namespace,
        gpu_namespace=gpu_namespace,
        release=versions.DEVICE_PLUGIN[version].node_feature_discovery,
    )


def rendered(values, *, version=NEW, **given):
    """The objects by kind and name."""
    made = options(values, version=version, **given)
    manifests = nfd.node_feature_discovery(
        made,
        release=versions.DEVICE_PLUGIN[version].node_feature_discovery,
        namespace="nvidia",
        default_prefix="unused",
        instance="nvdp",
        tolerations=(),
    )
    return {(m["kind"], m["metadata"]["name"]): m for m in manifests.values()}


def refusal(values, **given):
    with pytest.raises(GpuConstructsError) as refused:
        rendered(values, **given)
    (line,) = str(refused.value).splitlines()
    return line


def dropped(values, **given):
    """What is warned of, and what is made all the same."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        objects = rendered(values, strict=False, **given)
    assert {warning.category for warning in caught} <= {GpuConstructsWarning}
    return [str(warning.message) for warning in caught], objects


def workload_of(objects, component):
    kind = "Deployment" if component in ("master", "gc") else "DaemonSet"
    return objects[kind, f"{NAME}-{COMPONENTS[component]}"]


def pod_of(objects, component):
    return workload_of(objects, component)["spec"]["template"]["spec"]


def container_of(objects, component):
    return pod_of(objects, component)["containers"][0]


def file_of(objects, component):
    name = COMPONENTS[component]
    return yaml.safe_load(objects["ConfigMap", f"{NAME}-{name}-conf"]["data"][f"nfd-{name}.conf"])


# --- every key ---------------------------------------------------------------------------------------------------


class Sample(NamedTuple):
    """A value that is not the chart's own, and what must come of it.

    Attributes:
        value: Of the key.
        shows: What the changed objects hold as YAML, and held nowhere before; what is gone begins with a dash.
        changes: The kinds of the component's objects that differ; ``workload`` is its Deployment or DaemonSet.
        values: What must be said of the component besides.
    """

    value: Any
    shows: str
    changes: str = "workload"
    values: Mapping[str, Any] = {}


RULES = [{"ports": [{"protocol": "TCP", "port": 7777}]}]
POLICY = {"networkPolicy": {"enabled": True}}
BUDGET = {"replicaCount": 3, "podDisruptionBudget": {"enable": True}}
OF_ALL = {
    "extraArgs": Sample(["-v=4"], "- -v=4"),
    "extraEnvs": Sample([{"name": "A", "value": "b c"}], "value: b c"),
    "hostNetwork": Sample(True, "hostNetwork: true"),
    "hostUsers": Sample(False, "hostUsers: false"),
    "dnsPolicy": Sample("Default", "dnsPolicy: Default"),
    "port": Sample(7777, "containerPort: 7777"),
    "metricsPort": Sample(7777, "containerPort: 7777"),
    "annotations": Sample({"example.com/a": "b"}, "example.com/a: b"),
    "labels": Sample({"example.com/a": "b"}, "example.com/a: b"),
    "podSecurityContext": Sample({"runAsGroup": 77}, "runAsGroup: 77"),
    "initContainers": Sample([{"name": "first", "image": "busybox:1"}], "image: busybox:1"),
    "revisionHistoryLimit": Sample(7, "revisionHistoryLimit: 7"),
    "nodeSelector": Sample({"pool": "gpu"}, "pool: gpu"),
    "resources": Sample({"limits": {"memory": "777Mi"}}, "memory: 777Mi"),
    "tolerations": Sample([{"key": "dedicated", "operator": "Exists"}], "key: dedicated"),
    "affinity": Sample({"podAntiAffinity": {"x": 77}}, "x: 77"),
    "serviceAccount.create": Sample(
        False, "-automountServiceAccountToken: false", "ServiceAccount", {"serviceAccount": {"name": "there"}}
    ),
    "serviceAccount.name": Sample("mine", "name: mine", "ServiceAccount bindings workload"),
    "serviceAccount.annotations": Sample({"example.com/a": "b"}, "example.com/a: b", "ServiceAccount"),
    "rbac.create": Sample(False, "-rules:", "roles bindings"),
    "networkPolicy.enabled": Sample(True, "kind: NetworkPolicy", "NetworkPolicy"),
    "networkPolicy.egress": Sample(RULES, "port: 7777", "NetworkPolicy", POLICY),
    "networkPolicy.ingress": Sample(RULES, "port: 7777", "NetworkPolicy", POLICY),
    **{
        f"{probe}.{number}": Sample(77, f"{number}: 77")
        for probe in ("startupProbe", "livenessProbe", "readinessProbe")
        for number in ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "failureThreshold")
    },
    "readinessProbe.successThreshold": Sample(77, "successThreshold: 77"),
}
OF_SOME = {
    "master": {
        "config": Sample({"resyncPeriod": "77m"}, 'resyncPeriod: "77m"', "ConfigMap workload"),
        "replicaCount": Sample(7, "replicas: 7", "roles bindings workload"),
        "instance": Sample("blue", "- -instance=blue"),
        "resyncPeriod": Sample("77m", "- -resync-period=77m"),
        "denyLabelNs": Sample(["a.example"], "- -deny-label-ns=a.example"),
        "extraLabelNs": Sample(["a.example", "nvidia.com"], "- -extra-label-ns=a.example,nvidia.com"),
        "enableTaints": Sample(True, "- -enable-taints"),
        "nfdApiParallelism": Sample(77, "- -nfd-api-parallelism=77"),
    },
    "worker": {
        "config": Sample({"core": {"sleepInterval": "77s"}}, 'sleepInterval: "77s"', "ConfigMap workload"),
        "ownerRefs": Sample(["node"], "- -owner-refs=node", "roles bindings workload"),
        "mountUsrSrc": Sample(True, "path: /usr/src"),
        "priorityClassName": Sample("mine", "priorityClassName: mine"),
        "updateStrategy": Sample({"rollingUpdate": {"maxUnavailable": "77%"}}, "maxUnavailable: 77%"),
    },
    "gc": {"interval": Sample("77m", "- -gc-interval=77m"), "replicaCount": Sample(7, "replicas: 7")},
    "topologyUpdater": {
        "config": Sample({"excludeList": {"*": ["memory"]}}, "- memory", "ConfigMap workload"),
        "createCRDs": Sample(True, "kind: NodeResourceTopology", "CustomResourceDefinition"),
        "updateInterval": Sample("77s", "- -sleep-interval=77s"),
        "watchNamespace": Sample("mine", "- -watch-namespace=mine"),
        "kubeletStateDir": Sample("/srv/kubelet", "path: /srv/kubelet"),
        "kubeletConfigPath": Sample("/srv/config.yaml", "path: /srv/config.yaml", "roles workload"),
        "kubeletPodResourcesSockPath": Sample("/srv/pods/kubelet.sock", "path: /srv/pods"),
        "podSetFingerprint": Sample(False, "- -pods-fingerprint=false"),
    },
}
for _component in ("master", "gc"):
    OF_SOME[_component] |= {
        "deploymentAnnotations": Sample({"example.com/a": "b"}, "example.com/a: b"),
        "podDisruptionBudget.enable": Sample(
            True, "kind: PodDisruptionBudget", "PodDisruptionBudget", {"replicaCount": 3}
        ),
        "podDisruptionBudget.minAvailable": Sample(2, "minAvailable: 2", "PodDisruptionBudget", BUDGET),
        "podDisruptionBudget.maxUnavailable": Sample(
            "50%",
            "maxUnavailable: 50%",
            "PodDisruptionBudget",
            laid(BUDGET, {"podDisruptionBudget": {"minAvailable": None}}),
        ),
        "podDisruptionBudget.unhealthyPodEvictionPolicy": Sample(
            "IfHealthyBudget", "unhealthyPodEvictionPolicy: IfHealthyBudget", "PodDisruptionBudget", BUDGET
        ),
    }
for _component in ("worker", "topologyUpdater"):
    OF_SOME[_component] |= {"daemonsetAnnotations": Sample({"example.com/a": "b"}, "example.com/a: b")}
for _component in ("master", "worker", "topologyUpdater"):
    OF_SOME[_component] |= {
        "healthPort": Sample(7777, "port: 7777"),
        "securityContext": Sample({"runAsUser": 77}, "runAsUser: 77"),
    }
SAMPLES = {
    (component, key): {**OF_ALL, **OF_SOME[component]}[key]
    for component in COMPONENTS
    for key in {**OF_ALL, **OF_SOME[component]}
    if f"nfd.{component}.{key}" in KEYS
}

OF_THE_WHOLE = {
    "nfd.image.repository": ("registry.example/nfd", "image: registry.example/nfd:v"),
    "nfd.image.tag": ("v0.99.0-minimal", "image: registry.k8s.io/nfd/node-feature-discovery:v0.99.0-minimal"),
    "nfd.image.pullPolicy": ("Always", "imagePullPolicy: Always"),
    "nfd.imagePullSecrets": ([{"name": "registry"}], "- name: registry"),
    "nfd.global.imagePullSecrets": ([{"name": "registry"}], "- name: registry"),
    "global.imagePullSecrets": ([{"name": "registry"}], "- name: registry"),
    "nfd.priorityClassName": ("mine", "priorityClassName: mine"),
    "nfd.featureGates": ({"NodeFeatureGroupAPI": True}, "- -feature-gates=NodeFeatureGroupAPI=true"),
}
"""Keys that reach every component."""

ON_THEIR_OWN = {
    "nfd.nameOverride",
    "nfd.fullnameOverride",
    "nfd.namespaceOverride",
    "nfd.prometheus.enable",
    "nfd.prometheus.scrapeInterval",
    "nfd.prometheus.labels",
    *(f"nfd.{component}.enable" for component in COMPONENTS),
}
"""Keys with tests of their own."""

NOWHERE = {
    "nfd.checksumValuesOnly": True,
    "nfd.postDeleteCleanup": True,
    "nfd.master.featureApi": True,
    "nfd.master.featureRulesController": True,
    **{path: 9999 for path in KEYS if path.endswith(".grpc.port")},
}
"""Keys that are refused, with a value that says something."""


def test_every_key_has_a_test():
    tested = [*(f"nfd.{c}.{k}" for c, k in SAMPLES), *OF_THE_WHOLE, *ON_THEIR_OWN, *NOWHERE]
    assert sorted(tested) == sorted(KEYS)


KINDS = {
    "Deployment": "workload",
    "DaemonSet": "workload",
    "Role": "roles",
    "ClusterRole": "roles",
    "RoleBinding": "bindings",
    "ClusterRoleBinding": "bindings",
}


def changed(before, after):
    return {identity for identity in {*before, *after} if before.get(identity) != after.get(identity)}


def text_of(manifests):
    """The objects as one text, files of ConfigMaps unwrapped; CustomResourceDefinitions by their name alone."""
    manifests = list(manifests)
    files = [text for m in manifests if m["kind"] == "ConfigMap" for text in m["data"].values()]
    definitions = [f"kind: {m['spec']['names']['kind']}" for m in manifests if m["kind"] == "CustomResourceDefinition"]
    plain = [m for m in manifests if m["kind"] != "CustomResourceDefinition"]
    return "\n".join([*files, *definitions, yaml.dump_all(plain, Dumper=_Dumper, width=1000)])


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):
    """Writes what is said twice twice, and tuples as lists."""

    def ignore_aliases(self, _):
        return True


_Dumper.add_representer(tuple, lambda dumper, value: dumper.represent_list(list(value)))


def alone(component):
    """Values that turn the other components off."""
    return {other: {"enable": other == component} for other in COMPONENTS}


@cache
def unsaid(component, key, release):
    return rendered(laid(alone(component), {component: SAMPLES[component, key].values}), version=release)


@pytest.mark.parametrize(
    ("component", "key", "release"),
    [
        (component, key, release)
        for component, key in SAMPLES
        for release in KEYS[f"nfd.{component}.{key}"].releases or helm_keys.RELEASES
    ],
)
def test_a_key_of_a_component_changes_what_it_is_about_and_no_other(component, key, release):
    sample = SAMPLES[component, key]
    before = unsaid(component, key, release)
    said = {component: laid(sample.values, nested(key, sample.value))}
    after = rendered(laid(alone(component), said), version=release)
    differ = changed(before, after)
    assert {KINDS.get(kind, kind) for kind, _ in differ} == set(sample.changes.split())
    own = [f"{NAME}-{COMPONENTS[component]}", "mine", "there", "noderesourcetopologies"]
    assert all(name.startswith(tuple(own)) for _, name in differ)
    texts = [text_of(side[identity] for identity in differ if identity in side) for side in (before, after)]
    shows = sample.shows.removeprefix("-") if sample.shows.startswith("-") and sample.shows[1] != " " else sample.shows
    assert [shows in text for text in texts] == ([False, True] if shows is sample.shows else [True, False])


@pytest.mark.parametrize(
    ("path", "release"), [(path, r) for path in OF_THE_WHOLE for r in KEYS[path].releases or helm_keys.RELEASES]
)
def test_a_key_of_the_whole_reaches_every_component(path, release):
    value, shows = OF_THE_WHOLE[path]
    said = nested(path, value)
    objects = rendered(
        laid(UPDATER, said.get("nfd", {})), version=release, **{k: v for k, v in said.items() if k != "nfd"}
    )
    missing = [c for c in COMPONENTS if shows not in text_of([workload_of(objects, c)])]
    assert missing == ([] if path != "nfd.featureGates" else ["gc", "topologyUpdater"])


@pytest.mark.parametrize("path", NOWHERE)
def test_a_key_that_goes_nowhere_is_refused_with_the_reason(path):
    release = KEYS[path].releases[0]
    values = nested(path, NOWHERE[path])["nfd"]
    assert refusal(values, version=release) == f"values.{path} {KEYS[path].why_not}; or pass strict=False to drop it"
    texts, objects = dropped(values, version=release)
    assert texts == [f"values.{path} is dropped: it {KEYS[path].why_not}"]
    assert objects == rendered({}, version=release)


def test_the_reasons_are_these():
    assert {path: KEYS[path].why_not for path in NOWHERE} == {
        "nfd.checksumValuesOnly": "has no meaning here: pods carry the checksum of their file alone; leave it out",
        "nfd.postDeleteCleanup": "cannot be True: the hook is a Job that kubectl would start at once, and it takes "
        "NFD's labels off the nodes; leave it out",
        "nfd.master.featureApi": "is never read by the chart; leave it out",
        "nfd.master.featureRulesController": "becomes a flag that nfd-master does not know, so it would exit; leave it "
        "out",
        **{
            f"nfd.{component}.{probe}.grpc.port": "is never read by the chart; leave it out"
            for component, probe in (
                ("master", "startupProbe"),
                *((c, p) for c in ("master", "worker", "topologyUpdater") for p in ("livenessProbe", "readinessProbe")),
            )
        },
    }


# --- what is wrong -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "path", "problem"),
    [
        (
            {"worker": {"toleration": []}},
            "worker.toleration",
            "is no key of the chart, which would skip it without a word (did you mean 'nfd.worker.tolerations'?)",
        ),
        (
            {"workers": {"tolerations": []}},
            "workers",
            "is no key of the chart, which would skip it without a word (did you mean 'nfd.worker'?)",
        ),
        (
            {"master": {"replicaCount": "2"}},
            "master.replicaCount",
            "must be a whole number, got '2'; write it without quotes",
        ),
        ({"gc": {"interval": 3600}}, "gc.interval", "must be text, got 3600; quote it"),
        ({"worker": {"config": "core: {}"}}, "worker.config", "must be a mapping, got 'core: {}'"),
        ({"master": None}, "master", "must be a mapping, got None: the chart would fail; leave it out"),
        (
            {"worker": {"serviceAccount": None}},
            "worker.serviceAccount",
            "must be a mapping, got None: the chart would fail; leave it out",
        ),
    ],
)
def test_what_the_chart_would_not_take_is_refused_with_its_key_or_dropped_alone(values, path, problem):
    assert refusal(values) == f"values.nfd.{path} {problem}; or pass strict=False to drop it"
    texts, objects = dropped({**values, "priorityClassName": "kept"})
    assert texts == [f"values.nfd.{path} is dropped: it {problem}"]
    assert pod_of(objects, "gc")["priorityClassName"] == "kept"


@pytest.mark.parametrize(
    ("release", "values", "path", "problem"),
    [
        (
            NEW,
            {"image": {"pullPolicy": "Sometimes"}},
            "image.pullPolicy",
            "node_feature_discovery.image_pull_policy must be",
        ),
        (
            NEW,
            {"image": {"tag": "latest"}},
            "image",
            "node_feature_discovery.image must be pinned as 'repository:tag' or",
        ),
        (NEW, {"imagePullSecrets": ["a"]}, "imagePullSecrets", "imagePullSecrets must list mappings like"),
        (
            NEW,
            {"featureGates": {"NodeFeatureGroupAPI": "true"}},
            "featureGates",
            "node_feature_discovery.feature_gates[",
        ),
        (
            NEW,
            {"namespaceOverride": "A b"},
            "namespaceOverride",
            "node_feature_discovery.namespace must be a DNS label",
        ),
        (NEW, {"fullnameOverride": "A b"}, "fullnameOverride", "nfd.fullnameOverride must be a DNS subdomain"),
        (
            NEW,
            {"prometheus": {"enable": True, "scrapeInterval": "often"}},
            "prometheus",
            "prometheus.scrape_interval must",
        ),
        (
            NEW,
            {"master": {"replicaCount": 0}},
            "master.replicaCount",
            "master.replica_count must be at least 1, got 0; pass",
        ),
        (NEW, {"master": {"extraArgs": ["-prune"]}}, "master.extraArgs", "master.extra_args[0] must not hold -prune"),
        (NEW, {"worker": {"config": {"cor": {}}}}, "worker.config", "worker.config"),
        (
            NEW,
            {"worker": {"extraEnvs": [{"value": "b"}]}},
            "worker.extraEnvs[0]",
            "variable must have a name, got {'value'",
        ),
        (
            NEW,
            {"worker": {"extraEnvs": [{"name": "A", "value": 1}]}},
            "worker.extraEnvs[0]",
            "value must be text, got 1",
        ),
        (NEW, {"worker": {"extraEnvs": ["A=b"]}}, "worker.extraEnvs[0]", "variable must be "),
        (
            NEW,
            {"worker": {"livenessProbe": {"failureThreshold": 0}}},
            "worker.livenessProbe",
            "probe.failure_threshold must",
        ),
        (
            NEW,
            {"worker": {"tolerations": [{}]}},
            "worker.tolerations[0]",
            "toleration.key is required with operator 'Equal'",
        ),
        (
            NEW,
            {"worker": {"serviceAccount": {"create": False}}},
            "worker.serviceAccount",
            "service_account.name is required",
        ),
        (
            NEW,
            {"gc": {"podDisruptionBudget": {"enable": True}}},
            "gc.podDisruptionBudget",
            "gc.pod_disruption_budget lets",
        ),
        (
            NEW,
            {"gc": {"hostNetwork": True, "networkPolicy": {"enabled": True}}},
            "gc.networkPolicy",
            "gc.network_policy must be left out",
        ),
        (
            NEW,
            {"worker": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": {"maxUnavailable": 1}}}},
            "worker.updateStrategy",
            "update_strategy takes no numbers with OnDelete",
        ),
        (OLD, {"master": {"metricsPort": 8082}}, "master.metricsPort", "master.health_port must differ from"),
        (
            OLD,
            {"master": {"config": {"informerPageSize": 7}}},
            "master.config",
            "master.config.informerPageSize needs Node",
        ),
        (
            OLD,
            {"gc": {"extraArgs": ["-list-size=7"]}},
            "gc.extraArgs",
            "gc.extra_args[0] -list-size needs Node Feature",
        ),
    ],
)
def test_what_our_options_refuse_is_the_keys_fault(release, values, path, problem):
    assert refusal(values, version=release).startswith(f"values.nfd.{path} cannot be taken over: {problem}")
    (text,), objects = dropped({**values, "priorityClassName": "kept"}, version=release)
    assert text.startswith(f"values.nfd.{path} is dropped: it cannot be taken over: {problem}")
    assert pod_of(objects, "gc")["priorityClassName"] == "kept"


def test_a_master_that_drops_the_labels_of_gpu_feature_discovery_is_refused_beside_it():
    values = {"master": {"config": {"restrictions": {"denyNodeFeatureLabels": True}}}}
    assert rendered(values)
    assert refusal(values, gfd={"enabled": True}) == (
        "values.nfd.master.config cannot be taken over: master.config.restrictions.denyNodeFeatureLabels must not be "
        "True beside GPU Feature Discovery, whose labels the master would drop without a word; or pass strict=False to "
        "drop it"
    )


def test_values_that_go_together_are_judged_together():
    ports = {"metricsPort": 8082, "healthPort": 8081}
    assert rendered({"master": ports}, version=OLD)
    budget = {"replicaCount": 2, "podDisruptionBudget": {"enable": True}}
    assert ("PodDisruptionBudget", f"{NAME}-gc") in rendered({"gc": budget})


def test_of_values_that_do_not_go_together_the_last_is_dropped():
    (text,), objects = dropped({"gc": {"hostNetwork": True, **POLICY, "interval": "7m"}})
    assert text.startswith("values.nfd.gc.networkPolicy is dropped: it cannot be taken over: ")
    assert pod_of(objects, "gc")["hostNetwork"] is True
    assert "-gc-interval=7m" in container_of(objects, "gc")["args"]


# --- as Helm lays them over its defaults -------------------------------------------------------------------------


def test_resources_are_laid_over_the_charts():
    resources = {"limits": {"memory": "1Gi", "cpu": 1}, "requests": {"cpu": None}}
    laid_over = container_of(rendered({"worker": {"resources": resources}}), "worker")["resources"]
    assert laid_over == {"limits": {"memory": "1Gi", "cpu": "1"}, "requests": {"memory": "64Mi"}}
    for nothing, left in (({}, True), (None, False)):
        found = container_of(rendered({"worker": {"resources": nothing}}), "worker")["resources"]
        assert bool(found) is left


def test_a_security_context_is_laid_over_the_charts_and_null_takes_it_away():
    given = {"runAsUser": 7, "readOnlyRootFilesystem": None}
    held = container_of(rendered({"worker": {"securityContext": given}}), "worker")["securityContext"]
    assert held == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "runAsUser": 7,
    }
    for component in ("master", "worker", "topologyUpdater"):
        objects = rendered(laid(UPDATER, {component: {"securityContext": None}}))
        assert container_of(objects, component)["securityContext"] == {}


def test_the_file_of_the_worker_is_laid_over_the_charts():
    pci = {"deviceClassWhitelist": ["0300"]}
    sources = file_of(rendered({"worker": {"config": {"sources": {"pci": pci, "usb": {}}}}}), "worker")["sources"]
    assert sources["pci"] == {"deviceClassWhitelist": ["0300"], "deviceLabelFields": ["vendor"]}
    assert "usb" in sources


@pytest.mark.parametrize("nothing", [None, {"sources": None}, {"sources": {"pci": None}}])
def test_null_takes_the_charts_part_of_the_workers_file_away_and_leaves_the_rule_that_marks_gpu_nodes(nothing):
    sources = file_of(rendered({"worker": {"config": nothing}}), "worker")["sources"]
    assert list(sources) == ["custom"]


def test_the_file_of_the_master_is_laid_over_the_charts_and_null_takes_it_away():
    assert file_of(rendered({"master": {"config": {"enableTaints": True}}}), "master") == {
        "extraLabelNs": ["nvidia.com"],
        "enableTaints": True,
    }
    assert file_of(rendered({"master": {"config": {"extraLabelNs": ["a.example"]}}}), "master") == {
        "extraLabelNs": ["a.example"]
    }
    assert not file_of(rendered({"master": {"config": None}}), "master")


@pytest.mark.parametrize(
    ("release", "roles"),
    [(OLD, ["master", "control-plane"]), (MIDDLE, ["master", "control-plane"]), (NEW, ["control-plane"])],
)
def test_the_affinity_of_the_master_is_laid_over_the_charts(release, roles):
    both = pod_of(rendered({"master": {"affinity": {"podAffinity": {}}}}, version=release), "master")["affinity"]
    terms = both["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    keys = [term["preference"]["matchExpressions"][0]["key"] for term in terms]
    assert (keys, both["podAffinity"]) == ([f"node-role.kubernetes.io/{role}" for role in roles], {})
    ours = pod_of(rendered({}, version=release), "master")["affinity"]
    stated = {"nodeAffinity": both["nodeAffinity"]}
    for said, made in (({}, ours), (stated, stated), (None, None), ([], None)):
        assert pod_of(rendered({"master": {"affinity": said}}, version=release), "master")["affinity"] == made


def test_null_takes_away_what_only_some_components_have():
    for nothing in (None, {}):
        assert pod_of(rendered({"worker": {"affinity": nothing}}), "worker")["affinity"] is None


@pytest.mark.parametrize(
    ("given", "strategy"),
    [
        ({"type": "RollingUpdate"}, {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}}),
        ({"rollingUpdate": {"maxUnavailable": 1}}, {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}}),
        ({"rollingUpdate": None}, {"type": "RollingUpdate"}),
        (None, {"type": "RollingUpdate"}),
        ({"type": "OnDelete"}, {"type": "OnDelete"}),
        ({"type": "OnDelete", "rollingUpdate": None}, {"type": "OnDelete"}),
    ],
)
def test_the_update_strategy_of_the_worker_is_laid_over_the_charts(given, strategy):
    objects = rendered({"worker": {"updateStrategy": given}})
    assert workload_of(objects, "worker")["spec"]["updateStrategy"] == strategy


@pytest.mark.parametrize(
    ("given", "egress"),
    [({}, 5), ({"egress": None}, 0), ({"egress": []}, 0), ({"egress": RULES}, 1)],
)
def test_the_rules_of_a_network_policy_replace_the_charts(given, egress):
    objects = rendered({"worker": {"networkPolicy": {"enabled": True, **given}}})
    policy = objects["NetworkPolicy", f"{NAME}-worker-network-policy"]["spec"]
    assert sum(len(rule["ports"]) for rule in policy["egress"]) == egress
    assert sum(len(rule["ports"]) for rule in policy["ingress"]) == 1


def test_a_budget_by_pods_that_may_go_needs_null_for_the_charts_other_number():
    values = {"gc": {"replicaCount": 2, "podDisruptionBudget": {"enable": True, "maxUnavailable": 1}}}
    problem = "needs minAvailable: null beside it: the chart has 1, and both are refused"
    path = "values.nfd.gc.podDisruptionBudget.maxUnavailable"
    assert refusal(values) == f"{path} {problem}; or pass strict=False to drop it"
    texts, objects = dropped(values)
    assert texts == [f"{path} is dropped: it {problem}"]
    assert objects["PodDisruptionBudget", f"{NAME}-gc"]["spec"]["minAvailable"] == 1
    objects = rendered(laid(values, {"gc": {"podDisruptionBudget": {"minAvailable": None}}}))
    budget = objects["PodDisruptionBudget", f"{NAME}-gc"]["spec"]
    assert (budget.get("minAvailable"), budget["maxUnavailable"]) == (None, 1)


@pytest.mark.parametrize(
    ("given", "account", "is_made"),
    [
        ({}, f"{NAME}-master", True),
        ({"name": "mine"}, "mine", True),
        ({"name": None}, f"{NAME}-master", True),
        ({"create": False}, "node-feature-discovery", False),
        ({"create": None}, "node-feature-discovery", False),
        ({"create": False, "name": "there"}, "there", False),
    ],
)
def test_the_account_of_a_master_that_makes_none_is_the_one_that_the_chart_names(given, account, is_made):
    objects = rendered({"master": {"serviceAccount": given}})
    assert pod_of(objects, "master")["serviceAccountName"] == account
    assert (("ServiceAccount", account) in objects) is is_made


@pytest.mark.parametrize(
    ("component", "probe", "given", "left"),
    [
        ("master", "startupProbe", {"failureThreshold": None}, {"failureThreshold": 3}),
        ("master", "startupProbe", {"failureThreshold": 30}, {"failureThreshold": 30}),
        ("master", "livenessProbe", {"failureThreshold": None}, {}),
        ("worker", "livenessProbe", {"initialDelaySeconds": None}, {"initialDelaySeconds": 0}),
        ("worker", "readinessProbe", {"failureThreshold": None}, {"initialDelaySeconds": 5, "failureThreshold": 3}),
        ("worker", "readinessProbe", {"timeoutSeconds": None}, {"initialDelaySeconds": 5, "failureThreshold": 10}),
        ("gc", "livenessProbe", {"initialDelaySeconds": None}, {"initialDelaySeconds": 0}),
        ("topologyUpdater", "livenessProbe", {"initialDelaySeconds": None}, {"initialDelaySeconds": 0}),
    ],
)
def test_null_leaves_of_a_probes_number_what_kubernetes_has(component, probe, given, left):
    found = container_of(rendered(laid(UPDATER, {component: {probe: given}})), component)[probe]
    assert {key: value for key, value in found.items() if key != "httpGet"} == left


def test_nobody_owns_what_a_worker_publishes_where_null_or_nothing_says_so():
    for nobody in (None, []):
        assert "-owner-refs=" in container_of(rendered({"worker": {"ownerRefs": nobody}}), "worker")["args"]


@pytest.mark.parametrize(
    ("given", "flags"),
    [
        ({}, ["-sleep-interval=60s"]),
        ({"updateInterval": ""}, ["-sleep-interval=3s"]),
        ({"updateInterval": None}, ["-sleep-interval=3s"]),
        ({"kubeletStateDir": ""}, ["-sleep-interval=60s", "-kubelet-state-dir="]),
        ({"kubeletStateDir": None}, ["-sleep-interval=60s", "-kubelet-state-dir="]),
        ({"watchNamespace": ""}, ["-sleep-interval=60s"]),
    ],
)
def test_empty_text_means_to_the_topology_updater_what_it_means_in_the_chart(given, flags):
    container = container_of(rendered(laid(UPDATER, {"topologyUpdater": given})), "topologyUpdater")
    assert [a for a in container["args"] if a.startswith(("-sleep", "-kubelet-state"))] == flags
    assert "-watch-namespace=*" in container["args"]


# --- which objects, and where ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "running"),
    [
        ({}, {"master", "worker", "gc"}),
        (UPDATER, {"master", "worker", "gc", "topology-updater"}),
        ({"master": {"enable": False}}, {"worker", "gc"}),
        ({"worker": {"enable": None}}, {"master", "gc"}),
        ({"gc": {"enable": False}, "worker": {"enable": True}}, {"master", "worker"}),
    ],
)
def test_components_are_turned_on_as_in_the_chart(values, running):
    objects = rendered(values)
    names = {name.removeprefix(f"{NAME}-") for kind, name in objects if kind in ("Deployment", "DaemonSet")}
    assert names == running


def test_nothing_is_made_where_every_component_is_off():
    assert options({c: {"enable": False} for c in ("master", "worker", "gc")}) is None


@pytest.mark.parametrize(
    ("values", "release", "name"),
    [
        ({}, "nvdp", "nvdp-node-feature-discovery"),
        ({}, "node-feature-discovery", "node-feature-discovery"),
        ({}, "gpu.plugin.v1", "gpu.plugin.v1-node-feature-discovery"),
        ({"nameOverride": "node-feature-discovery"}, "nvdp", "nvdp-node-feature-discovery"),
        ({"nameOverride": ""}, "nvdp", "nvdp-nfd"),
        ({"nameOverride": None}, "nvdp", "nvdp-nfd"),
        ({"nameOverride": "labels"}, "nvdp", "nvdp-labels"),
        ({"fullnameOverride": "mine"}, "nvdp", "mine"),
        ({}, "a" * 53, "a" * 46),
        ({"fullnameOverride": "a" * 45 + "-b"}, "nvdp", "a" * 45),
    ],
)
def test_names_are_the_charts_shortened_for_what_stands_behind(values, release, name):
    names = {n for k, n in rendered(laid(UPDATER, values), release=release) if k in ("Deployment", "DaemonSet")}
    assert names == {f"{name}-{component}" for component in COMPONENTS.values()}
    assert all(len(n) <= 63 for n in names)


@pytest.mark.parametrize(
    ("values", "gpu_namespace", "namespace"),
    [
        ({}, "nvidia", None),
        ({}, "gpu", "nvidia"),
        ({"namespaceOverride": "gpu"}, "gpu", None),
        ({"namespaceOverride": "n"}, "gpu", "n"),
    ],
)
def test_it_lives_in_the_releases_namespace_wherever_the_gpu_pods_live(values, gpu_namespace, namespace):
    assert options(values, gpu_namespace=gpu_namespace).namespace == namespace


@pytest.mark.parametrize(
    ("given", "interval", "labels"),
    [({}, "10s", {}), ({"scrapeInterval": "1m", "labels": {"release": "kps"}}, "1m", {"release": "kps"})],
)
def test_a_pod_monitor_is_made_where_prometheus_is_on(given, interval, labels):
    assert ("PodMonitor", NAME) not in rendered({"prometheus": given})
    monitor = rendered({"prometheus": {"enable": True, **given}})["PodMonitor", NAME]
    assert monitor["spec"]["podMetricsEndpoints"][0]["interval"] == interval
    assert labels.items() <= monitor["metadata"]["labels"].items()


def test_global_pull_secrets_give_way_in_the_order_of_helm():
    def secret(values, **others):
        return pod_of(rendered(values, **others), "worker")["imagePullSecrets"]

    outer, inner = ({"imagePullSecrets": [{"name": name}]} for name in ("outer", "inner"))
    assert secret({"global": inner}) == [{"name": "inner"}]
    assert secret({"global": inner}, **{"global": outer}) == [{"name": "outer"}]
    assert secret({"imagePullSecrets": [{"name": "own"}]}, **{"global": outer}) == [{"name": "own"}]


# --- whatever is said --------------------------------------------------------------------------------------------

ANYTHING: list[Any] = [
    *(None, True, False, 0, 1, -1, 7, 2.5, 8081, 8082, 70000, "", "x", "A b", "-", "a" * 70, "/", "/x", "10ms", "1h"),
    *([], ["x"], [1], [None], [{}], [{"name": "x"}], [{"name": "A", "value": "b"}], ["-v=4"], ["node"], ["-oneshot"]),
    *([{"key": "a", "operator": "Exists"}], [{"name": "i", "image": "b:1"}], RULES, [{"valueFrom": {}, "name": "A"}]),
    *({}, {"a": "b"}, {"a": 1}, {"a": None}, {1: "x"}, {"type": "OnDelete"}, {"rollingUpdate": 5}, {"sources": None}),
    *({"nodeAffinity": None}, {"privileged": True}, {"runAsUser": 0}, {"limits": {"memory": "1x"}}, {"limits": None}),
    *(
        {"core": {"noPublish": True}},
        {"extraLabelNs": "x"},
        {"NodeFeatureGroupAPI": True},
        {"excludeList": {"a": ["b"]}},
    ),
]
"""Values for any key, right for some and wrong for most."""

PATHS = [path for path in KEYS if path.startswith("nfd.")]
one_key = st.builds(lambda path, value: nested(path, value)["nfd"], st.sampled_from(PATHS), st.sampled_from(ANYTHING))


@quickly
@given(layers=st.lists(one_key, max_size=4), release=st.sampled_from(helm_keys.RELEASES), strict=st.booleans())
def test_any_values_become_objects_or_are_refused_in_the_house_style(layers, release, strict):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            objects = rendered(laid(UPDATER, *layers), version=release, strict=strict)
        except GpuConstructsError as error:
            assert_house_style(error)
            return
    assert all(len(name) <= 63 for kind, name in objects if kind in ("Deployment", "DaemonSet"))


@pytest.mark.parametrize("path", PATHS)
def test_one_bad_key_is_never_in_the_way_when_not_strict(path):
    component = path.split(".")[1]
    only = alone(component) if component in COMPONENTS else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for value in ANYTHING[PATHS.index(path) % 15 :: 15]:
            release = NEW if NEW in (KEYS[path].releases or (NEW,)) else OLD
            options(laid(only, nested(path, value)["nfd"]), version=release, strict=False)


@pytest.mark.parametrize(
    ("name", "value", "is_refused"),
    [
        ("DB_PASSWORD", "hunter2", True),
        ("SETTING", "postgresql://a:hunter2@db", True),
        ("DB_PASSWORD", "", False),
        ("HTTPS_PROXY", "http://proxy:3128", False),
    ],
)
def test_credentials_in_plain_text_are_refused_with_the_way_out(name, value, is_refused):
    values = {"nfd": {"enabled": True, "worker": {"extraEnvs": [{"name": name, "value": value}]}}}

    def chart(strict):
        return DevicePluginChart.from_helm_values(
            App(), "p", values, release_name="r", namespace="gpu", version="0.20.0", strict=strict
        )

    if not is_refused:
        chart(True)
        return
    with pytest.raises(GpuConstructsError) as refused:
        chart(True)
    problem = (
        f"cannot be taken over: {name} must not be a credential in plain text; got {len(value)} characters "
        f"({'its name says so' if name == 'DB_PASSWORD' else 'a URL with a password'}); use valueFrom.secretKeyRef, or "
        "not_a_secret(...) where it is public"
    )
    assert str(refused.value) == f"p: values.nfd.worker.extraEnvs[0] {problem}; or pass strict=False to drop it"
    with pytest.warns(GpuConstructsWarning) as told:
        made = chart(False)
    assert [str(w.message) for w in told] == [f"values.nfd.worker.extraEnvs[0] is dropped: it {problem}"]
    assert value not in str(Testing.synth(made))

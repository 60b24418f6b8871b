import re
from datetime import timedelta

import pytest
from cdk8s_plus_27 import EnvValue as PlusEnvValue

from gpu_constructs import GpuConstructsError, Toleration
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
    duration_text,
)
from gpu_constructs.workload.env import EnvValue

COMPONENTS = {
    "master": NfdMaster,
    "worker": NfdWorker,
    "gc": NfdGarbageCollector,
    "topology_updater": NfdTopologyUpdater,
}
DURATION = "must be a duration with a unit, like '60s' or '1h30m'"


def refusal(struct, **given):
    with pytest.raises(GpuConstructsError) as refused:
        struct(**given)
    return str(refused.value)


# --- every component ------------------------------------------------------------------------------------------

CHECKSUM = "gpu-constructs/config-sha256"


@pytest.mark.parametrize("name", COMPONENTS)
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"extra_args": "-v=4"}, ".extra_args must be a list, got '-v=4' (str)"),
        ({"extra_args": ["-port=80"]}, ".extra_args[0] must not hold -port; set port, which the probes and "),
        ({"extra_envs": {"X": 5}}, ".extra_envs: env['X'] must be str or an EnvValue; got int"),
        ({"extra_envs": {"1X": "5"}}, ".extra_envs: env name must be a variable name (letters, digits, '_'); got '1X'"),
        (
            {"extra_envs": {"NODE_NAME": "a"}},
            ".extra_envs must not hold 'NODE_NAME': this library sets it; leave it out",
        ),
        ({"host_network": "yes"}, ".host_network must be bool; got str: 'yes'"),
        (
            {"host_network": True, "host_users": False},
            ".host_users must not be False with host_network, which Kubernetes refuses; leave one out",
        ),
        (
            {"host_network": True, "network_policy": NfdNetworkPolicy()},
            ".network_policy must be left out with host_network: in the node's network none holds",
        ),
        (
            {"dns_policy": "None"},
            ".dns_policy must be one of 'ClusterFirst', 'ClusterFirstWithHostNet', 'Default'; got 'None'",
        ),
        ({"port": 0}, ".port must be at least 1, got 0"),
        ({"metrics_port": 65536}, ".metrics_port must be at most 65535, got 65536"),
        ({"annotations": {"a b": "c"}}, ".annotations has a key that is no label key; got 'a b'"),
        ({"annotations": {"a": 5}}, ".annotations['a'] must be str; got int: 5"),
        (
            {"annotations": {CHECKSUM: "c"}},
            f".annotations must not hold {CHECKSUM!r}: this library sets it; leave it out",
        ),
        (
            {"labels": {"app.kubernetes.io/name": "c"}},
            ".labels must not hold 'app.kubernetes.io/name': this library sets it; leave it out",
        ),
        ({"labels": {"a": "b c"}}, ".labels['a'] must be a label value (letters, digits, '-', '_', '.', at most 63 "),
        ({"pod_security_context": {"runAsUsr": 5}}, ".pod_security_context key must be one of 'appArmorProfile', "),
        ({"security_context": {"runAsUsr": 5}}, ".security_context key must be one of 'allowPrivilegeEscalation', "),
        (
            {"security_context": {"privileged": True}},
            ".security_context must also hold 'allowPrivilegeEscalation': None with privileged: Kubernetes refuses a "
            "privileged container that is forbidden to gain rights",
        ),
        ({"init_containers": [{"name": "a"}]}, ".init_containers[0]['image'] is required as text; got None"),
        (
            {"init_containers": [{"name": "a", "image": "b"}]},
            ".init_containers[0]['image'] must be pinned as 'repository:tag' or 'repository@sha256:...', never "
            "'latest'; got 'b'",
        ),
        (
            {"init_containers": [{"name": "a", "image": "b:1"}, {"name": "a", "image": "b:1"}]},
            ".init_containers[1]['name'] is taken by another container; got 'a'",
        ),
        ({"service_account": "mine"}, ".service_account must be NfdServiceAccount; got str: 'mine'"),
        ({"rbac_create": None}, ".rbac_create must be bool; got NoneType: None"),
        ({"revision_history_limit": -1}, ".revision_history_limit must be at least 0, got -1"),
        (
            {"priority_class_name": "very high"},
            ".priority_class_name must be a DNS subdomain (DNS labels joined by '.', at most 253 characters); got "
            "'very high'",
        ),
        (
            {"resources": {"limits": {"memory": "1GB"}}},
            ".resources['limits']['memory'] must be a Kubernetes quantity like '500m' or '16Gi'; got '1GB'",
        ),
        ({"node_selector": {"a b": "c"}}, ".node_selector has a key that is no label key; got 'a b'"),
        ({"tolerations": [{"key": "a"}]}, ".tolerations[0] must be Toleration; got dict: {'key': 'a'}"),
        (
            {"affinity": {"nodeAffinty": {}}},
            ".affinity key must be one of 'nodeAffinity', 'podAffinity', 'podAntiAffinity'; got 'nodeAffinty' (did you "
            "mean 'nodeAffinity'?)",
        ),
        (
            {"liveness_probe": NfdProbe(success_threshold=2)},
            ".liveness_probe.success_threshold must be 1, as Kubernetes takes no other here; got 2",
        ),
    ],
    ids=lambda value: str(value)[:50] if isinstance(value, dict) else "",
)
def test_what_the_program_or_kubernetes_would_refuse_is_refused_for_every_component(name, given, message):
    assert refusal(COMPONENTS[name], **given).startswith(f"{name}{message}")


@pytest.mark.parametrize("name", COMPONENTS)
def test_an_init_container_may_not_have_the_components_own_name(name):
    own = name.replace("_", "-")
    assert refusal(COMPONENTS[name], init_containers=[{"name": own, "image": "a:1"}]) == (
        f"{name}.init_containers[0]['name'] is taken by another container; got {own!r}"
    )


@pytest.mark.parametrize("name", COMPONENTS)
@pytest.mark.parametrize(
    "given",
    [
        {"extra_envs": {"A": "b", "C": EnvValue.field("spec.nodeName"), "D": PlusEnvValue.from_value("e")}},
        {"security_context": {"privileged": True, "allowPrivilegeEscalation": None}},
        {"readiness_probe": NfdProbe(success_threshold=2)},
        {"host_users": False},
        {"host_network": True, "host_users": True},
        {"tolerations": [Toleration(operator="Exists")]},
        {"resources": {"requests": {"cpu": "1"}}},
    ],
    ids=lambda value: re.sub(r" object at 0x[0-9a-f]+", "", str(value)),
)
def test_every_component_takes_what_kubernetes_takes(name, given):
    assert COMPONENTS[name](**given)


@pytest.mark.parametrize(
    ("name", "has_health_port"), [("master", True), ("worker", True), ("gc", False), ("topology_updater", True)]
)
def test_the_garbage_collector_alone_has_no_port_for_health(name, has_health_port):
    assert ("health_port" in COMPONENTS[name]().ports()) is has_health_port


def test_the_garbage_collector_says_why_it_has_no_port_for_health():
    assert refusal(NfdGarbageCollector, health_port=8082) == (
        "health_port is no member of NfdGarbageCollector: no release of the garbage collector has a port for health "
        "alone"
    )


@pytest.mark.parametrize("name", COMPONENTS)
def test_a_component_is_left_out_by_none(name):
    assert refusal(COMPONENTS[name], enable=False).endswith(
        {
            "gc": ": pass gc=None to leave the garbage collector out",
            "topology_updater": ": pass topology_updater=None to leave the topology updater out",
        }.get(name, f": pass {name}=None to leave the {name} out")
    )


@pytest.mark.parametrize(
    ("name", "member"),
    [
        ("master", "deployment_annotations"),
        ("gc", "deployment_annotations"),
        ("worker", "daemonset_annotations"),
        ("topology_updater", "daemonset_annotations"),
    ],
)
def test_annotations_of_the_object_are_checked_too(name, member):
    assert refusal(COMPONENTS[name], **{member: {"a b": "c"}}) == (
        f"{name}.{member} has a key that is no label key; got 'a b'"
    )


# --- components that run once ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["master", "gc"])
def test_a_component_of_no_pod_is_refused(name):
    assert refusal(COMPONENTS[name], replica_count=0) == (
        f"{name}.replica_count must be at least 1, got 0; pass {name}=None to leave it out"
    )


@pytest.mark.parametrize("name", ["master", "gc"])
@pytest.mark.parametrize(
    ("replicas", "budget"),
    [
        (1, {}),
        (1, {"min_available": "1%"}),
        (2, {"min_available": 2}),
        (3, {"min_available": "67%"}),
        (2, {"max_unavailable": 0}),
        (2, {"max_unavailable": "0%"}),
    ],
    ids=str,
)
def test_a_budget_that_would_block_every_drain_is_refused(name, replicas, budget):
    given = {"replica_count": replicas, "pod_disruption_budget": NfdPodDisruptionBudget(**budget)}
    assert refusal(COMPONENTS[name], **given) == (
        f"{name}.pod_disruption_budget lets none of {replicas} go, so no node that runs one could be drained; raise "
        "replica_count or pass max_unavailable=1"
    )


@pytest.mark.parametrize(
    ("replicas", "budget", "manifest"),
    [
        (2, {}, {"minAvailable": 1}),
        (1, {"min_available": 0}, {"minAvailable": 0}),
        (1, {"max_unavailable": 1}, {"maxUnavailable": 1}),
        (3, {"min_available": "66%"}, {"minAvailable": "66%"}),
        (1, {"max_unavailable": "1%"}, {"maxUnavailable": "1%"}),
    ],
    ids=str,
)
def test_a_budget_that_lets_a_pod_go_is_written_as_it_is_given(replicas, budget, manifest):
    made = NfdMaster(replica_count=replicas, pod_disruption_budget=NfdPodDisruptionBudget(**budget))
    assert made.pod_disruption_budget.to_manifest() == {**manifest, "unhealthyPodEvictionPolicy": "AlwaysAllow"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"min_available": 1, "max_unavailable": 1},
            " takes min_available or max_unavailable, not both; leave one out",
        ),
        ({"min_available": "half"}, ".min_available must be a number or a percentage like '50%'; got 'half'"),
        ({"max_unavailable": "101%"}, ".max_unavailable must be a number or a percentage like '50%'; got '101%'"),
        ({"max_unavailable": -1}, ".max_unavailable must be at least 0, got -1"),
        (
            {"unhealthy_pod_eviction_policy": "Always"},
            ".unhealthy_pod_eviction_policy must be one of 'AlwaysAllow', 'IfHealthyBudget'; got 'Always' (did you "
            "mean 'AlwaysAllow'?)",
        ),
    ],
    ids=str,
)
def test_a_budget_that_kubernetes_would_refuse_is_refused(given, message):
    assert refusal(NfdPodDisruptionBudget, **given) == f"pod_disruption_budget{message}"


# --- the master -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"instance": "A_b"},
            "master.instance must be a DNS subdomain (DNS labels joined by '.', at most 253 characters); got 'A_b'",
        ),
        ({"resync_period": "60"}, f"master.resync_period {DURATION}; got '60'"),
        ({"resync_period": "-1s"}, "master.resync_period must be at least zero; got '-1s'"),
        ({"nfd_api_parallelism": 0}, "master.nfd_api_parallelism must be at least 1, got 0"),
        (
            {"extra_label_ns": ["*.a"]},
            "master.extra_label_ns[0] must be a DNS subdomain (DNS labels joined by '.', at most 253 characters); got "
            "'*.a'",
        ),
        (
            {"deny_label_ns": ["a,b"]},
            "master.deny_label_ns[0] must be a DNS subdomain (DNS labels joined by '.', at most 253 characters); got "
            "'a,b'",
        ),
        (
            {"deny_label_ns": ["nvidia.com"], "extra_label_ns": ["a.b"]},
            "master.deny_label_ns must not deny 'nvidia.com', else no node would get nvidia.com/gpu.present and no GPU "
            "pod a node; got 'nvidia.com'; name 'nvidia.com' among the extra domains as well",
        ),
        (
            {"config": {"denyLabelNS": []}},
            "master.config has no key 'denyLabelNS', which the program would skip without a word (did you mean "
            "'denyLabelNs'?)",
        ),
        (
            {"startup_probe": NfdProbe(success_threshold=2)},
            "master.startup_probe.success_threshold must be 1, as Kubernetes takes no other here; got 2",
        ),
        (
            {"feature_rules_controller": True},
            "feature_rules_controller is no member of NfdMaster: the chart's flag for it is none that nfd-master "
            "0.17.3 knows, so it would exit",
        ),
        ({"feature_api": True}, "feature_api is no member of NfdMaster: no release of the chart reads it"),
    ],
    ids=lambda value: str(value)[:50] if isinstance(value, dict) else "",
)
def test_what_the_master_would_refuse_or_ignore_is_refused(given, message):
    assert refusal(NfdMaster, **given) == message


@pytest.mark.parametrize(
    ("member", "value", "key"),
    [
        ("deny_label_ns", ["a.b"], "denyLabelNs"),
        ("extra_label_ns", ["a.b"], "extraLabelNs"),
        ("enable_taints", True, "enableTaints"),
        ("resync_period", "1h", "resyncPeriod"),
        ("nfd_api_parallelism", 5, "nfdApiParallelism"),
    ],
)
def test_a_setting_may_be_made_in_one_place_only(member, value, key):
    written = 5 if key == "nfdApiParallelism" else value
    assert NfdMaster(**{member: value})
    assert NfdMaster(config={key: written}).document()[key] == written
    assert refusal(NfdMaster, **{member: value}, config={key: written}) == (
        f"master.{member} overrides master.config.{key} without a word; keep one of them"
    )


@pytest.mark.parametrize("domains", [["*"], ["*.example.com"], ["*example.com"], ["nvidia.com"]], ids=str)
def test_domains_may_be_denied_while_ours_stays_allowed(domains):
    assert NfdMaster(deny_label_ns=domains).deny_label_ns == domains


# --- the worker -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"owner_refs": "pod"}, "worker.owner_refs must be a list, got 'pod' (str)"),
        ({"owner_refs": ["deployment"]}, "worker.owner_refs[0] must be one of 'pod', 'ds', 'node'; got 'deployment'"),
        ({"owner_refs": ["ds", "ds"]}, "worker.owner_refs must not repeat an owner; got ['ds', 'ds']"),
        (
            {"config": {"sources": {"pci": {"deviceClassWhitelist": []}}}},
            "worker.config.sources.pci.deviceClassWhitelist must not be empty: no PCI device would be labelled; leave "
            "it out for ours",
        ),
        ({"update_strategy": "OnDelete"}, "worker.update_strategy must be UpdateStrategy; got str: 'OnDelete'"),
    ],
    ids=lambda value: str(value)[:50] if isinstance(value, dict) else "",
)
def test_what_the_worker_would_refuse_or_ignore_is_refused(given, message):
    assert refusal(NfdWorker, **given) == message


# --- the garbage collector and the topology updater -----------------------------------------------------------


@pytest.mark.parametrize("interval", ["0s", "-1h", timedelta(0)])
def test_an_interval_with_which_the_garbage_collector_would_not_start_is_refused(interval):
    assert refusal(NfdGarbageCollector, interval=interval) == f"gc.interval must be above zero; got {interval!r}"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"update_interval": "1 minute"}, f".update_interval {DURATION}; got '1 minute'"),
        (
            {"update_interval": "0s", "kubelet_state_dir": ""},
            ".update_interval must be above zero without kubelet_state_dir: nothing would ever be published",
        ),
        (
            {"watch_namespace": ""},
            ".watch_namespace must be a DNS label (a-z, 0-9 and '-', at most 63 characters, letter or digit at both "
            "ends); got ''",
        ),
        ({"kubelet_state_dir": "kubelet"}, ".kubelet_state_dir must be an absolute path without '..'; got 'kubelet'"),
        ({"kubelet_config_path": ""}, ".kubelet_config_path must be an absolute path without '..'; got ''"),
        (
            {"kubelet_pod_resources_sock_path": "/kubelet.sock"},
            ".kubelet_pod_resources_sock_path must lie in a directory of its own, which is mounted; got "
            "'/kubelet.sock'",
        ),
        (
            {"config": {"excludelist": {}}},
            ".config has no key 'excludelist', which the program would skip without a word (did you mean "
            "'excludeList'?)",
        ),
    ],
    ids=lambda value: str(value)[:50] if isinstance(value, dict) else "",
)
def test_what_the_topology_updater_would_refuse_or_ignore_is_refused(given, message):
    assert refusal(NfdTopologyUpdater, **given) == f"topology_updater{message}"


def test_the_topology_updater_may_publish_on_changes_alone():
    assert NfdTopologyUpdater(update_interval="0s").kubelet_state_dir == "/var/lib/kubelet"


# --- parts of components --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"create": False},
            "service_account.name is required with create=False; got None; name='default' would give the rights to "
            "every pod of the namespace that names no account",
        ),
        (
            {"create": False, "name": "mine", "annotations": {"a": "b"}},
            "service_account.annotations need create=True; annotate the account where it is made",
        ),
        (
            {"name": "Mine"},
            "service_account.name must be a DNS subdomain (DNS labels joined by '.', at most 253 characters); got "
            "'Mine'",
        ),
        ({"annotations": {"a b": "c"}}, "service_account.annotations has a key that is no label key; got 'a b'"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_an_account_that_cannot_be_is_refused(given, message):
    assert refusal(NfdServiceAccount, **given) == message


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"period_seconds": 0}, "probe.period_seconds must be at least 1, got 0"),
        ({"initial_delay_seconds": -1}, "probe.initial_delay_seconds must be at least 0, got -1"),
        ({"failure_threshold": "3"}, "probe.failure_threshold must be an int, got '3' (str)"),
        ({"timeout_seconds": True}, "probe.timeout_seconds must be an int, got True (bool)"),
        ({"grpc": {}}, "grpc is no member of NfdProbe"),
    ],
    ids=str,
)
def test_numbers_that_kubernetes_would_refuse_are_refused(given, message):
    assert refusal(NfdProbe, **given) == message


def test_a_probe_gives_the_numbers_it_was_given():
    assert NfdProbe().to_manifest() == {}
    assert NfdProbe(
        initial_delay_seconds=0, timeout_seconds=1, period_seconds=2, failure_threshold=3, success_threshold=4
    ).to_manifest() == {
        "initialDelaySeconds": 0,
        "timeoutSeconds": 1,
        "periodSeconds": 2,
        "failureThreshold": 3,
        "successThreshold": 4,
    }


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"egress": [{}, {"from": []}]},
            "network_policy.egress[1] key must be one of 'ports', 'to'; got 'from'",
        ),
        (
            {"ingress": [{"port": []}]},
            "network_policy.ingress[0] key must be one of 'ports', 'from'; got 'port' (did you mean 'ports'?)",
        ),
    ],
    ids=str,
)
def test_a_rule_that_kubernetes_would_not_read_is_refused(given, message):
    assert refusal(NfdNetworkPolicy, **given) == message


@pytest.mark.parametrize("interval", ["1.5s", "", "10", "1s1m", timedelta(milliseconds=500)])
def test_an_interval_that_prometheus_does_not_read_is_refused(interval):
    assert refusal(NfdPodMonitor, scrape_interval=interval) == (
        "prometheus.scrape_interval must be whole seconds, or a Prometheus duration like '30s' or '1m'; got "
        f"{interval!r}"
    )


@pytest.mark.parametrize("interval", ["10s", "1m30s", "500ms", "1d", timedelta(seconds=30)])
def test_an_interval_that_prometheus_reads_is_taken(interval):
    assert NfdPodMonitor(scrape_interval=interval).scrape_interval == interval


def test_labels_of_a_pod_monitor_are_labels():
    assert refusal(NfdPodMonitor, labels={"a b": "c"}) == "prometheus.labels has a key that is no label key; got 'a b'"


@pytest.mark.parametrize(
    ("span", "text"),
    [("1h", "1h"), ("60s", "60s"), (timedelta(hours=1), "3600s"), (timedelta(seconds=1.5), "1500000us")],
)
def test_a_span_given_as_text_is_written_as_it_is_given(span, text):
    assert duration_text(span) == text


# --- all of them ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"image": "nfd:latest"},
            ".image must be pinned as 'repository:tag' or 'repository@sha256:...', never 'latest'; got 'nfd:latest'",
        ),
        (
            {"image_pull_policy": "always"},
            ".image_pull_policy must be one of 'Always', 'IfNotPresent', 'Never'; got 'always' (did you mean "
            "'Always'?)",
        ),
        ({"image_pull_secrets": [{"name": "a"}]}, ".image_pull_secrets[0] must be str; got dict: {'name': 'a'}"),
        ({"image_pull_secrets": "registry"}, ".image_pull_secrets must be a list, got 'registry' (str)"),
        (
            {"image_pull_secrets": ["A"]},
            ".image_pull_secrets[0] must be a DNS subdomain (DNS labels joined by '.', at most 253 characters); got "
            "'A'",
        ),
        (
            {"fullname": "NFD"},
            ".fullname must be a DNS subdomain (DNS labels joined by '.', at most 253 characters); got 'NFD'",
        ),
        (
            {"fullname": "a" * 47},
            f".fullname must have at most 46 characters, since '-topology-updater' follows; got '{'a' * 47}'",
        ),
        (
            {"namespace": "default"},
            ".namespace must not be 'default': the worker mounts host paths, which only a privileged namespace allows; "
            "leave it out for the chart's",
        ),
        (
            {"namespace": "a.b"},
            ".namespace must be a DNS label (a-z, 0-9 and '-', at most 63 characters, letter or digit at both ends); "
            "got 'a.b'",
        ),
        (
            {"feature_gates": {"NodeFeatureAPI": False}},
            ".feature_gates must not hold 'NodeFeatureAPI', which is always on; leave it out",
        ),
        (
            {"feature_gates": {"NodeFeatureGroupApi": True}},
            ".feature_gates key must be one of 'DisableAutoPrefix', 'NodeFeatureGroupAPI'; got 'NodeFeatureGroupApi' "
            "(did you mean 'NodeFeatureGroupAPI'?)",
        ),
        (
            {"feature_gates": {"DisableAutoPrefix": "true"}},
            ".feature_gates['DisableAutoPrefix'] must be bool; got str: 'true'",
        ),
        (
            {"priority_class_name": ""},
            ".priority_class_name must be a DNS subdomain (DNS labels joined by '.', at most 253 characters); got ''",
        ),
        ({"master": {"port": 1}}, ".master must be one of (NfdMaster, None); got dict: {'port': 1}"),
        ({"worker": NfdMaster()}, ".worker must be one of (NfdWorker, None); got NfdMaster: NfdMaster("),
        (
            {"master": None, "worker": None, "gc": None},
            " must have a component; pass node_feature_discovery=False for none",
        ),
    ],
    ids=lambda value: str(value)[:50] if isinstance(value, dict) else "",
)
def test_an_installation_that_cannot_be_is_refused(given, message):
    assert refusal(NodeFeatureDiscovery, **given).startswith(f"node_feature_discovery{message}")


@pytest.mark.parametrize(
    ("member", "why"),
    [
        (
            "post_delete_cleanup",
            "the chart's hook is a Job that kubectl apply would start at once, and it takes every label of NFD off the "
            "nodes",
        ),
        ("checksum_values_only", "pods carry the checksum of their file alone"),
        ("name_override", "set fullname"),
        ("fullname_override", "set fullname"),
        ("namespace_override", "set namespace"),
    ],
)
def test_a_value_of_the_chart_that_is_not_offered_says_why(member, why):
    assert refusal(NodeFeatureDiscovery, **{member: True}) == f"{member} is no member of NodeFeatureDiscovery: {why}"


def test_nfd_labels_nodes_with_a_master_and_a_worker_only():
    assert NodeFeatureDiscovery().labels_nodes
    assert NodeFeatureDiscovery(gc=None).labels_nodes
    assert not NodeFeatureDiscovery(master=None).labels_nodes
    assert not NodeFeatureDiscovery(worker=None).labels_nodes


def test_its_components_are_master_worker_and_garbage_collector_unless_told_otherwise():
    assert list(NodeFeatureDiscovery().components) == ["master", "worker", "gc"]
    assert list(NodeFeatureDiscovery(gc=None, topology_updater=NfdTopologyUpdater()).components) == [
        "master",
        "worker",
        "topology_updater",
    ]


def test_options_cannot_be_changed_after_they_were_checked():
    with pytest.raises(AttributeError):
        NodeFeatureDiscovery().master = None
    with pytest.raises(AttributeError):
        NfdMaster().replica_count = 2

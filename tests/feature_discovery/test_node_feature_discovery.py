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
)
from gpu_constructs.kube.env import EnvValue

COMPONENTS = {
    "master": NfdMaster,
    "worker": NfdWorker,
    "gc": NfdGarbageCollector,
    "topology_updater": NfdTopologyUpdater,
}


def refusal(struct, **given):
    with pytest.raises(GpuConstructsError) as refused:
        struct(**given)
    return str(refused.value)


# --- every component ------------------------------------------------------------------------------------------


def test_what_the_program_or_kubernetes_would_refuse_is_refused_for_every_component(refused):
    refused(*COMPONENTS.values())


def test_every_component_takes_what_kubernetes_takes():
    for struct in COMPONENTS.values():
        for given in (
            {"extra_envs": {"A": "b", "C": EnvValue.field("spec.nodeName"), "D": PlusEnvValue.from_value("e")}},
            {"security_context": {"privileged": True, "allowPrivilegeEscalation": None}},
            {"readiness_probe": NfdProbe(success_threshold=2)},
            {"host_users": False},
            {"host_network": True, "host_users": True},
            {"tolerations": [Toleration(operator="Exists")]},
            {"resources": {"requests": {"cpu": "1"}}},
        ):
            assert struct(**given)


def test_what_one_component_would_refuse_or_ignore_is_refused(refused):
    refused(*COMPONENTS.values())


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
def test_a_budget_that_would_block_every_drain_is_refused(replicas, budget):
    given = {"replica_count": replicas, "pod_disruption_budget": NfdPodDisruptionBudget(**budget)}
    for name in ("master", "gc"):
        assert refusal(COMPONENTS[name], **given) == (
            f"{name}.pod_disruption_budget lets none of {replicas} go, so no node that runs one could be drained; "
            "raise replica_count or pass max_unavailable=1"
        )


def test_a_budget_that_lets_a_pod_go_is_written_as_it_is_given():
    for replicas, budget, manifest in (
        (2, {}, {"minAvailable": 1}),
        (1, {"min_available": 0}, {"minAvailable": 0}),
        (1, {"max_unavailable": 1}, {"maxUnavailable": 1}),
        (3, {"min_available": "66%"}, {"minAvailable": "66%"}),
        (1, {"max_unavailable": "1%"}, {"maxUnavailable": "1%"}),
    ):
        made = NfdMaster(replica_count=replicas, pod_disruption_budget=NfdPodDisruptionBudget(**budget))
        assert made.pod_disruption_budget.to_manifest() == {**manifest, "unhealthyPodEvictionPolicy": "AlwaysAllow"}


def test_a_setting_may_be_made_in_one_place_only():
    for member, value, key, written in (
        ("deny_label_ns", ["a.b"], "denyLabelNs", ["a.b"]),
        ("extra_label_ns", ["a.b"], "extraLabelNs", ["a.b"]),
        ("enable_taints", True, "enableTaints", True),
        ("resync_period", "1h", "resyncPeriod", "1h"),
        ("nfd_api_parallelism", 5, "nfdApiParallelism", 5),
    ):
        assert NfdMaster(**{member: value})
        assert NfdMaster(config={key: written}).document()[key] == written
        assert refusal(NfdMaster, **{member: value}, config={key: written}) == (
            f"master.{member} overrides master.config.{key} silently; keep one of them"
        )


# --- parts of components --------------------------------------------------------------------------------------


def test_a_part_that_cannot_be_is_refused(refused):
    refused(NfdServiceAccount, NfdProbe, NfdNetworkPolicy, NfdPodMonitor, NfdPodDisruptionBudget)


# --- all of them ----------------------------------------------------------------------------------------------


def test_an_installation_that_cannot_be_is_refused(refused):
    refused(NodeFeatureDiscovery)


def test_a_value_of_the_chart_that_is_not_offered_says_why():
    for member, why in {
        "post_delete_cleanup": "the chart's hook is a Job that kubectl apply would start at once, and it takes every "
        "label of NFD off the nodes",
        "checksum_values_only": "pods carry the checksum of their file alone",
        "name_override": "set fullname",
        "fullname_override": "set fullname",
        "namespace_override": "set namespace",
    }.items():
        message = f"{member} is not a member of NodeFeatureDiscovery: {why}"
        assert refusal(NodeFeatureDiscovery, **{member: True}) == message

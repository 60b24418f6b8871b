from cdk8s_plus_27 import EnvValue as PlusEnvValue

from gpu_constructs import Toleration
from gpu_constructs.feature_discovery.node_feature_discovery import (
    NfdMaster,
    NfdNetworkPolicy,
    NfdPodDisruptionBudget,
    NfdPodMonitor,
    NfdProbe,
    NfdServiceAccount,
    NodeFeatureDiscovery,
)
from gpu_constructs.kube.env import EnvValue
from refusals import refusal
from tables import beside, cases

COMPONENTS = beside(__file__, "node_feature_discovery")["components"]


# --- every component ------------------------------------------------------------------------------------------


def test_values_that_the_program_or_kubernetes_would_reject_are_rejected(refused):
    refused(*COMPONENTS.values())


def test_every_component_accepts_valid_values():
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


def test_values_that_one_component_would_reject_or_ignore_are_rejected(refused):
    refused(*COMPONENTS.values())


@cases
def test_a_budget_that_would_block_every_drain_is_rejected(replicas, budget):
    given = {"replica_count": replicas, "pod_disruption_budget": NfdPodDisruptionBudget(**budget)}
    for name in ("master", "gc"):
        assert refusal(COMPONENTS[name], **given) == (
            f"{name}.pod_disruption_budget must allow the eviction of one of {replicas} pods, so that nodes can drain. "
            "Raise replica_count or pass max_unavailable=1"
        )


def test_a_budget_that_allows_a_drain_is_written_unchanged(rows):
    for replicas, budget, manifest in rows:
        made = NfdMaster(replica_count=replicas, pod_disruption_budget=NfdPodDisruptionBudget(**budget))
        assert made.pod_disruption_budget.to_manifest() == {**manifest, "unhealthyPodEvictionPolicy": "AlwaysAllow"}


def test_a_setting_can_have_one_place_only(rows):
    for member, value, key, written in rows:
        assert NfdMaster(**{member: value})
        assert NfdMaster(config={key: written}).document()[key] == written
        assert refusal(NfdMaster, **{member: value}, config={key: written}) == (
            f"master.{member} overrides master.config.{key} silently. Remove one of them"
        )


# --- parts of components --------------------------------------------------------------------------------------


def test_an_impossible_part_is_rejected(refused):
    refused(NfdServiceAccount, NfdProbe, NfdNetworkPolicy, NfdPodMonitor, NfdPodDisruptionBudget)


# --- all of them ----------------------------------------------------------------------------------------------


def test_an_impossible_installation_is_rejected(refused):
    refused(NodeFeatureDiscovery)


def test_the_error_for_a_missing_option_of_the_chart_gives_the_reason(expected):
    for member, why in expected.items():
        message = f"{member} is not a member of NodeFeatureDiscovery: {why}"
        assert refusal(NodeFeatureDiscovery, **{member: True}) == message

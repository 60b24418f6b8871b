"""The function that runs all checks and all rules on the objects of an app.

A finding is a problem that a check or a rule reports: a message, and the object that has the problem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from gpu_constructs.checks import admission, components, conflicts
from gpu_constructs.checks.amounts import amounts_are_meant
from gpu_constructs.checks.quotas import pods_fit_their_namespace, quotas_fit_and_count
from gpu_constructs.checks.references import references_exist
from gpu_constructs.checks.rules.table import DEFAULT_SETTINGS, RuleSettings, broken_rules
from gpu_constructs.checks.scrape_targets import targets_are_scraped_once
from gpu_constructs.facts.app import Facts
from gpu_constructs.facts.finding import Finding as Finding
from gpu_constructs.facts.provided import Provided

Manifest = Mapping[str, Any]


def check(
    manifests: Sequence[Manifest], provided: Sequence[Provided], settings: RuleSettings = DEFAULT_SETTINGS
) -> list[Finding]:
    """Return the findings of all checks, and after them the findings of all rules, such as ``R07``.

    Args:
        manifests: All manifests of the app.
        provided: Declarations of the constructs about their effects on the cluster.
        settings: Codes of the rules to ignore, and the inventory of GPU nodes.
    """
    facts = Facts(manifests, provided, settings.inventory)
    found = [finding.about(facts.origins) for each in CHECKS for finding in each(facts)]
    return [*found, *broken_rules(facts, ignore=settings.ignore)]


CHECKS: tuple[Callable[[Facts], Iterator[Finding]], ...] = (
    components.objects_are_made_once,
    components.namespaces_exist,
    components.runtime_classes_exist,
    components.values_of_releases_are_readable,
    admission.pods_satisfy_their_namespace,
    targets_are_scraped_once,
    components.components_run_once,
    components.needed_components_are_there,
    components.refused_components_are_not_there,
    components.drivers_are_looked_for_where_they_are_staged,
    components.wanted_node_labels_are_set,
    components.unwanted_node_labels_are_not_set,
    components.labels_of_the_operator_are_left_to_it,
    admission.later_pods_find_a_privileged_namespace,
    admission.pods_pass_the_guards,
    admission.later_pods_pass_the_guards,
    pods_fit_their_namespace,
    conflicts.platforms_are_one,
    conflicts.gpu_clusters_are_not_on_talos,
    conflicts.one_priority_class_is_the_default,
    conflicts.nodes_have_one_device_plugin,
    conflicts.charts_make_objects_of_their_own,
    conflicts.gpus_are_profiled_by_one,
    conflicts.power_limits_are_kept_by_one,
    conflicts.katib_can_collect,
    conflicts.exporters_know_of_sharing,
    conflicts.sharing_is_stated_alike,
    conflicts.the_guard_sees_all_ways_to_gpus,
    amounts_are_meant,
    quotas_fit_and_count,
    references_exist,
)
"""All checks except the rules, in the order in which their findings appear."""

"""The table of all rules for GPU workloads, and the function that runs the rules that the user does not ignore."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from typing import Literal, NamedTuple

from gpu_constructs.catalog.inventory import GpuInventory
from gpu_constructs.checks.rules import asking, models, placing, running, seeing
from gpu_constructs.errors import GpuConstructsError, did_you_mean
from gpu_constructs.facts.app import Facts
from gpu_constructs.facts.finding import Finding
from gpu_constructs.facts.readable import annotations_of
from gpu_constructs.kube.annotations import IGNORE_RULES


class Rule(NamedTuple):
    """A rule for GPU workloads.

    Attributes:
        code: Code of the rule, such as ``R01``, which never changes. Annotations and the documentation use this code.
        severity: Severity of a certain violation: ``warning`` if the app can still be correct, otherwise ``error``. An
            uncertain violation is always a warning.
        title: Statement of the rule, such as ``A request of GPUs has a limit``.
        check: Function that yields a finding (a problem with its message) for each violation of the rule.
    """

    code: str
    severity: Literal["error", "warning"]
    title: str
    check: Callable[[Facts], Iterator[Finding]]


RULES = (
    Rule("R01", "error", "An amount of GPUs is a whole number above 0", asking.amounts_are_whole_numbers),
    Rule("R02", "error", "A request of GPUs equals the limit", asking.requests_equal_limits),
    Rule("R03", "error", "A request of GPUs has a limit", asking.requests_have_limits),
    Rule("R04", "error", "A GPU pod names the runtime class it needs", seeing.gpu_pods_name_the_runtime_class),
    Rule("R05", "error", "Nothing overrides the allocated GPU", seeing.allocated_gpus_are_not_overridden),
    Rule("R06", "warning", "Containers that request no GPU have no access to one", seeing.other_containers_see_no_gpu),
    Rule("R07", "error", "A pod requests one slot of a shared GPU", asking.shared_gpus_are_asked_for_one_by_one),
    Rule("R08", "error", "A device plugin advertises the requested resource", asking.gpus_asked_for_are_advertised),
    Rule("R09", "error", "A GPU has the requested MIG profile", asking.mig_profiles_are_known),
    Rule("R10", "warning", "Pods select the product name of shared GPUs", placing.products_are_those_of_shared_gpus),
    Rule("R11", "error", "Pods do not select the old node role", placing.old_role_is_not_selected),
    Rule("R12", "error", "The user or a program sets the selected node label", placing.selected_labels_are_published),
    Rule("R13", "warning", "A GPU container is not privileged", seeing.gpu_containers_are_not_privileged),
    Rule("R14", "error", "Pods that use MPS mount nothing at /dev/shm", seeing.memory_shared_with_mps_is_not_hidden),
    Rule("R15", "warning", "Pods that share by MPS run as one user", seeing.users_of_mps_are_one),
    Rule("R16", "error", "An update finds a free GPU", running.updates_find_a_free_gpu),
    Rule("R17", "warning", "A disruption budget allows evictions of GPU pods", running.disruption_budgets_let_a_pod_go),
    Rule("R18", "error", "A namespace adds no GPUs to containers by default", asking.namespaces_give_no_gpus_away),
    Rule("R19", "warning", "A GPU container has a memory limit", running.memory_is_limited),
    Rule("R20", "warning", "A model has time to load before a restart", running.models_have_time_to_load),
    Rule("R21", "error", "A GPU pod has no user namespace", seeing.users_of_the_node_are_the_pods),
    Rule(
        "R22",
        "error",
        "A pod that requests a part of a GPU uses a scheduler that supports it",
        asking.parts_of_gpus_have_a_scheduler,
    ),
    Rule("R23", "warning", "One container of a pod holds the GPUs", seeing.gpus_are_held_by_one_container),
    Rule("R24", "warning", "A pod on a shared GPU has a controller", running.refused_pods_come_back),
    Rule(
        "R25", "error", "GPU pods tolerate the taints of GPU nodes", placing.gpu_pods_tolerate_the_taints_of_gpu_nodes
    ),
    Rule("R26", "warning", "The image has a fixed tag", running.images_are_pinned),
    Rule("R27", "error", "A pod requests GPUs in one way only", asking.gpus_come_by_one_way),
    Rule("R28", "error", "A memory budget and a model fit the GPUs", models.memory_fits),
    Rule("R29", "warning", "Runs of a CronJob do not overlap", running.runs_do_not_overlap),
    Rule("R30", "error", "Autoscaling stays within the GPUs", running.autoscaling_stays_within_the_gpus),
    Rule("R31", "warning", "A credential is in a Secret", seeing.credentials_stay_in_secrets),
    Rule("R32", "warning", "A NodeFeatureRule has Node Feature Discovery", placing.rules_of_features_have_a_reader),
)
"""All rules, in the order of their codes."""

CODES = tuple(rule.code for rule in RULES)


class RuleSettings(NamedTuple):
    """The settings of the rules for an app: the rules to ignore, and the inventory of GPU nodes.

    Attributes:
        ignore: Codes of the rules to ignore in the whole app; none by default.
        inventory: GPU nodes of the cluster; None if the user does not declare them.
    """

    ignore: frozenset[str] = frozenset()
    inventory: GpuInventory | None = None


DEFAULT_SETTINGS = RuleSettings()


def broken_rules(facts: Facts, *, ignore: Collection[str] = ()) -> list[Finding]:
    """Return a finding for each violation of a rule, and for each annotation that names an unknown rule.

    The user can ignore a rule for the whole app (``ignore``), or for one object by an annotation.

    Args:
        facts: Facts that the library derives from the objects of the app.
        ignore: Codes of the rules to ignore in the whole app; none by default.
    """
    left_out, findings = _left_out(facts)
    for rule in RULES:
        if rule.code not in ignore:
            for finding in rule.check(facts):
                if finding.subject is None or rule.code not in left_out.get(finding.subject, ()):
                    is_warning = finding.is_warning or rule.severity == "warning"
                    findings.append(replace(finding, code=rule.code, is_warning=is_warning))
    return list(dict.fromkeys(finding.about(facts.origins) for finding in findings))


def _left_out(facts: Facts) -> tuple[dict[int, list[str]], list[Finding]]:
    """Return two results: the rules that annotations of objects ignore, and problems with these annotations.

    The first result is a dict from the index of an object in ``Facts.objects`` to the codes of the ignored rules. The
    second result contains a finding for each annotation with an unknown code.

    Args:
        facts: Facts that the library derives from the objects of the app.
    """
    named: dict[int, list[str]] = {}
    wrong: list[Finding] = []
    for index, manifest in enumerate(facts.objects):
        text = annotations_of(manifest).get(IGNORE_RULES)
        if text is not None:
            named[index] = [code.strip() for code in str(text).split(",") if code.strip()]
            try:
                require_codes(f"annotation {IGNORE_RULES}", named[index])
            except GpuConstructsError as error:
                wrong.append(Finding(index, error.problem))
    return named, wrong


def require_codes(field: str, codes: Iterable[str]) -> None:
    """Raise an error unless all texts are codes of rules, such as ``R01``.

    Raises:
        GpuConstructsError: A text is not a code. The message suggests a similar code.
    """
    for code in codes:
        if code not in CODES:
            meant = f"R{re.sub('[^0-9]', '', str(code)):0>2}"
            near = did_you_mean(meant, CODES)
            raise GpuConstructsError(
                f"{field} must be codes of rules from {CODES[0]} to {CODES[-1]}, got {code!r}{near}. See docs/rules.md"
            )

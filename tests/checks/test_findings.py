"""Findings of the checks and their messages. The cases are in ``tables``, with one file for each check."""

import pytest

from app_tables import check_findings
from gpu_constructs.checks.amounts import amounts_are_meant
from gpu_constructs.checks.cluster_checks import check
from gpu_constructs.checks.quotas import quotas_fit_and_count
from gpu_constructs.checks.references import references_exist
from gpu_constructs.checks.rules.table import CODES, RuleSettings
from tables import beside

# The checks that use the declarations of providers. test_rules.py tests the others.
OF_PROVIDERS = RuleSettings(ignore=frozenset(CODES) - {"R05", "R07", "R08", "R12", "R14", "R25"})


def all_checks(facts):
    return check(facts.manifests, facts.provided, OF_PROVIDERS._replace(inventory=facts.inventory))


CHECKS = {
    "amounts": (amounts_are_meant, None),
    "apps": (all_checks, None),
    "quotas": (quotas_fit_and_count, "team"),
    "references": (references_exist, "team"),
}
TABLES = {name: beside(__file__, name) for name in CHECKS}


@pytest.mark.parametrize(("name", "sentence"), [(name, each) for name, rows in TABLES.items() for each in rows])
def test_a_check_finds_only_violations(name, sentence):
    find, namespace = CHECKS[name]
    check_findings(find, TABLES[name][sentence], namespace)

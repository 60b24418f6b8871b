"""What the checks find in an app and what they say of it: the cases are in ``tables``, one file a check."""

import pytest

from app_tables import check_findings, table
from gpu_constructs.checks.amounts import amounts_are_meant
from gpu_constructs.checks.cluster_checks import check
from gpu_constructs.checks.quotas import quotas_fit_and_count
from gpu_constructs.checks.references import references_exist
from gpu_constructs.checks.rules.table import CODES, RuleSettings

# Those that look at what providers say; the others have their tests in test_rules.py.
OF_PROVIDERS = RuleSettings(ignore=frozenset(CODES) - {"R05", "R07", "R08", "R12", "R14", "R25"})


def all_checks(facts):
    return check(facts.manifests, facts.provided, OF_PROVIDERS._replace(inventory=facts.inventory))


CHECKS = {
    "amounts": (amounts_are_meant, None),
    "apps": (all_checks, None),
    "quotas": (quotas_fit_and_count, "team"),
    "references": (references_exist, "team"),
}
TABLES = {name: table(__file__, name) for name in CHECKS}


@pytest.mark.parametrize(("name", "sentence"), [(name, each) for name, rows in TABLES.items() for each in rows])
def test_a_check_finds_what_is_wrong_and_leaves_the_rest_alone(name, sentence):
    find, namespace = CHECKS[name]
    check_findings(find, TABLES[name][sentence], namespace)

from refusals import refusal
from tables import cases

DEFAULTS = {"initialDelaySeconds": None, "periodSeconds": 10, "timeoutSeconds": 5, "failureThreshold": 3}


@cases
def test_a_probe_has_a_timeout_that_a_busy_node_can_meet(probe, check):
    assert probe.to_manifest() == {**check, **DEFAULTS}


@cases
def test_an_invalid_probe_is_rejected(make, given, problem):
    assert refusal(make, **given).startswith(problem)

from refusals import refusal
from tables import cases

DEFAULTS = {"initialDelaySeconds": None, "periodSeconds": 10, "timeoutSeconds": 5, "failureThreshold": 3}


@cases
def test_a_check_is_written_with_a_timeout_that_a_busy_host_can_keep(probe, check):
    assert probe.to_manifest() == {**check, **DEFAULTS}


@cases
def test_a_probe_that_could_not_ask_is_refused(make, given, problem):
    assert refusal(make, **given).startswith(problem)

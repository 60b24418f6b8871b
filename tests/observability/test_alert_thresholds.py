from gpu_constructs.observability.alert_thresholds import AlertThresholds
from tables import beside

# Source: docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html, column "Immediate Action".
RESET_GPU = {46, 62, 64, 95, 109, 110, 119, 120, 136, 140, 143, 155, 156, 158}
RESTART_BM = {79}
RESET_BY_ITS_TEXT = {48, 74}
OF_A_GPU_THAT_WORKS = {155, 156}


def test_the_critical_xids_are_those_that_require_a_reset_in_the_catalog_of_nvidia():
    demanded = (RESET_GPU | RESTART_BM | RESET_BY_ITS_TEXT) - OF_A_GPU_THAT_WORKS
    assert set(AlertThresholds().xid_critical) == demanded


CASES = beside(__file__, "alert_thresholds")["cases"]


def test_a_value_at_its_limit_is_valid():
    for given in CASES:
        thresholds = AlertThresholds(**given)
        assert {name: getattr(thresholds, name) for name in given} == given, given


def test_a_bad_value_gets_one_error(refused):
    refused(AlertThresholds)

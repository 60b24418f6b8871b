import pytest

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.observability.alert_thresholds import AlertThresholds


def refusal(**given):
    with pytest.raises(GpuConstructsError) as refused:
        AlertThresholds(**given)
    return refused.value.problem


# Source: docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html, column "Immediate Action".
RESET_GPU = {46, 62, 64, 95, 109, 110, 119, 120, 136, 140, 143, 155, 156, 158}
RESTART_BM = {79}
RESET_BY_ITS_TEXT = {48, 74}
OF_A_GPU_THAT_WORKS = {155, 156}


def test_the_critical_xids_are_those_for_which_the_catalogue_of_nvidia_demands_a_reset():
    demanded = (RESET_GPU | RESTART_BM | RESET_BY_ITS_TEXT) - OF_A_GPU_THAT_WORKS
    assert set(AlertThresholds().xid_critical) == demanded


CASES = [
    {"temperature_warning": 40, "temperature_critical": 41},
    {"temperature_warning": 109, "temperature_critical": 110},
    {"temperatures_by_model": {"*RTX 3090*": (80, 88)}},
    {"vram_ratio": 0.999},
    {"idle": 300},
    {"idle": "720h"},
    {"xid_critical": [], "xid_warning": [], "xid_ignored": []},
    {"pending": {"GpuLost": 0}},
    {"power_throttled_utilization": 0},
]


def test_a_value_at_its_limit_is_taken():
    for given in CASES:
        thresholds = AlertThresholds(**given)
        assert {name: getattr(thresholds, name) for name in given} == given, given


BAD_VALUE_CASES = [
    ({"temperature_warning": 39}, "thresholds.temperature_warning must be at least 40, got 39"),
    ({"temperature_critical": 111}, "thresholds.temperature_critical must be at most 110, got 111"),
    (
        {"temperature_warning": 92},
        "thresholds.temperature_critical must be above the 92 of the warning; got 92",
    ),
    (
        {"temperatures_by_model": {"*RTX 3090*": (90, 80)}},
        "thresholds.temperatures_by_model['*RTX 3090*'][1] must be above the 90 of the warning; got 80",
    ),
    (
        {"temperatures_by_model": {"*RTX 3090*": (90, 180)}},
        "thresholds.temperatures_by_model['*RTX 3090*'][1] must be at most 110, got 180",
    ),
    (
        {"temperatures_by_model": {"": (80, 90)}},
        "thresholds.temperatures_by_model must have names like '*RTX 3090*' as keys; got ''",
    ),
    (
        {"temperatures_by_model": {'"': (80, 90)}},
        "thresholds.temperatures_by_model must have names like '*RTX 3090*' as keys; got '\"'",
    ),
    ({"slowdown_margin": -1}, "thresholds.slowdown_margin must be at least 0, got -1"),
    ({"vram_ratio": 1.0}, "thresholds.vram_ratio must be a share above 0 and below 1, like 0.97; got 1.0"),
    ({"vram_ratio": 97.0}, "thresholds.vram_ratio must be a share above 0 and below 1, like 0.97; got 97.0"),
    (
        {"thermal_throttled_ratio": 0.0},
        "thresholds.thermal_throttled_ratio must be a share above 0 and below 1, like 0.97; got 0.0",
    ),
    (
        {"power_throttled_ratio": -0.5},
        "thresholds.power_throttled_ratio must be a share above 0 and below 1, like 0.97; got -0.5",
    ),
    ({"power_throttled_utilization": 100}, "thresholds.power_throttled_utilization must be at most 99, got 100"),
    ({"power_limit_tolerance": 0}, "thresholds.power_limit_tolerance must be at least 1, got 0"),
    ({"ecc_corrected_per_hour": 0}, "thresholds.ecc_corrected_per_hour must be at least 1, got 0"),
    ({"pcie_replays_per_minute": 0}, "thresholds.pcie_replays_per_minute must be at least 1, got 0"),
    (
        {"vram_ignored_namespaces": ['a"b']},
        "thresholds.vram_ignored_namespaces[0] must be a DNS label (a-z, 0-9 and '-', at most 63 characters, "
        "letter or digit at both ends); got 'a\"b'",
    ),
    ({"xid_critical": [0]}, "thresholds.xid_critical must be at least 1, got 0"),
    (
        {"xid_warning": [79]},
        "thresholds.xid_warning must not hold what xid_critical holds; got 79 in both; leave one of them out",
    ),
    (
        {"idle": "2 hours"},
        "thresholds.idle must be a duration with a unit, like '60s' or '1h30m'; got '2 hours'",
    ),
    ({"idle": "1.5s"}, "thresholds.idle must be in whole seconds; got '1.5s'"),
    ({"idle": 299}, "thresholds.idle must be from 300 seconds to 30 days; got 299"),
    ({"idle": "721h"}, "thresholds.idle must be from 300 seconds to 30 days; got '721h'"),
    ({"xid_window": "30s"}, "thresholds.xid_window must be from 60 seconds to 30 days; got '30s'"),
    ({"lost_window": 60}, "thresholds.lost_window must be from 600 seconds to 30 days; got 60"),
    ({"collection_stale": 0}, "thresholds.collection_stale must be from 60 seconds to 30 days; got 0"),
    (
        {"pending": {"GpuLost": "-1m"}},
        "thresholds.pending['GpuLost'] must be from 0 seconds to 30 days; got '-1m'",
    ),
]


def test_a_bad_value_gets_one_error():
    for given, problem in BAD_VALUE_CASES:
        assert refusal(**given).startswith(problem), given

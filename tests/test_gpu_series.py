from itertools import product

import promql_parser
import pytest

from gpu_constructs.observability.gpu_series import QUANTITIES, dcgm_series, nvidia_smi_series
from gpu_constructs.observability.metrics import metric_set
from gpu_constructs.observability.nvidia_smi_fields import exported_metrics

DCGM = dcgm_series(
    job="exporter",
    metrics=[metric.field for metric in metric_set("profiling", "4.8.3") if metric.prometheus_type != "label"],
    hostname_label="hostname",
    pods="all",
)


def every_metric_of(series):
    return {name for name in map(series.name_of, QUANTITIES) if name}


SMI = nvidia_smi_series(
    job="smi", metrics=["nvidia_smi_gpu_info", *every_metric_of(nvidia_smi_series(job=None, metrics=()))]
)
BOTH = pytest.mark.parametrize("series", [DCGM, SMI], ids=["dcgm", "nvidia_smi"])


def selectors(expr):
    """Every series that an expression reads: name, and matchers as (label, operator, value)."""
    return [
        (found.name, {(m.name, str(m.op), m.value) for m in found.matchers.matchers})
        for found in nodes(promql_parser.parse(expr))
        if isinstance(found, promql_parser.VectorSelector)
    ]


def nodes(node):
    yield node
    for part in ("expr", "lhs", "rhs", "vector_selector"):
        child = getattr(node, part, None)
        if child is not None:
            yield from nodes(child)
    for argument in getattr(node, "args", None) or ():
        yield from nodes(argument)


@BOTH
@pytest.mark.parametrize("quantity", QUANTITIES)
def test_every_question_is_promql(series, quantity):
    overs, wheres, groups = ("{}", "rate({}[5m])", "avg_over_time({}[1h])"), ("", 'pod!=""'), ((), ("pod", "namespace"))
    choices = ({}, {"node": "$node"}, {"gpu": "0|1"}, {"node": "a.*", "gpu": ".*"})
    for over, where, by, chosen in product(overs, wheres, groups, choices):
        query = series.quantity(quantity, over=over, where=where, by=by, **chosen)
        if query is None:
            assert series.name_of(quantity) not in series.metrics
            continue
        promql_parser.parse(query.expr)
        assert series.can(query)


def test_dcgm_answers_every_quantity_and_nvidia_smi_all_but_the_slowdown_temperature():
    assert [name for name in QUANTITIES if DCGM.quantity(name) is None] == []
    assert [name for name in QUANTITIES if SMI.quantity(name) is None] == ["slowdown_temperature"]


def test_nvidia_smis_names_are_those_that_its_exporter_publishes():
    assert every_metric_of(SMI) | {"nvidia_smi_gpu_info"} <= exported_metrics("nvml")


DEVICE = "hostname, gpu, UUID, modelName"


def test_the_copies_of_a_shared_gpu_are_one_value_again():
    query = DCGM.quantity("power")
    assert query.expr == f'max by ({DEVICE}) (DCGM_FI_DEV_POWER_USAGE{{job="exporter"}})'
    assert query.needs == {"DCGM_FI_DEV_POWER_USAGE"}


@BOTH
@pytest.mark.parametrize("quantity", QUANTITIES)
def test_no_answer_is_told_apart_by_pod_unless_asked(series, quantity):
    query = series.quantity(quantity)
    assert query is None or "pod" not in query.expr


@pytest.mark.parametrize(
    "name",
    [
        "DCGM_FI_DEV_FB_USED",
        "DCGM_FI_DEV_FB_FREE",
        "DCGM_FI_DEV_FB_RESERVED",
        "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
        "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
        "DCGM_FI_PROF_DRAM_ACTIVE",
        "DCGM_FI_PROF_SM_ACTIVE",
    ],
)
def test_what_each_mig_instance_has_of_its_own_is_kept_apart(name):
    assert DCGM.metric(name).expr == f'max by ({DEVICE}, GPU_I_ID) ({name}{{job="exporter"}})'


@pytest.mark.parametrize("name", ["DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_GPU_UTIL"])
def test_what_the_whole_gpu_has_is_not_repeated_for_its_mig_instances(name):
    assert DCGM.metric(name).expr == f'max by ({DEVICE}) ({name}{{job="exporter"}})'


def test_further_labels_are_kept_apart_in_order():
    assert DCGM.quantity("utilization", by=("pod", "namespace")).expr == (
        f'max by ({DEVICE}, pod, namespace) (DCGM_FI_DEV_GPU_UTIL{{job="exporter"}})'
    )


def test_nodes_gpus_and_further_matchers_choose_the_series():
    query = DCGM.quantity("utilization", node="a|b", gpu="0", where='pod!=""', over="rate({}[5m])")
    assert query.expr == (
        f'max by ({DEVICE}) (rate(DCGM_FI_DEV_GPU_UTIL{{job="exporter",hostname=~"a|b",gpu=~"0",pod!=""}}[5m]))'
    )


def test_the_node_label_of_earlier_releases_is_used_throughout():
    series = dcgm_series(job=None, metrics=["DCGM_FI_DEV_GPU_UTIL"], hostname_label="Hostname", pods="one")
    assert series.quantity("utilization", node="a").expr == (
        'max by (Hostname, gpu, UUID, modelName) (DCGM_FI_DEV_GPU_UTIL{Hostname=~"a"})'
    )


@BOTH
@pytest.mark.parametrize("quantity", QUANTITIES)
def test_every_series_is_of_the_exporters_job(series, quantity):
    query = series.quantity(quantity)
    if query is not None:
        found = selectors(query.expr)
        assert series.name_of(quantity) in dict(found)
        for _, matchers in found:
            assert [value for label, _, value in matchers if label == "job"] == [series.job]


def test_where_nobody_knows_the_job_none_is_asked_for():
    series = dcgm_series(job=None, metrics=["DCGM_FI_DEV_GPU_UTIL"], hostname_label="hostname", pods="none")
    assert series.quantity("utilization").expr == f"max by ({DEVICE}) (DCGM_FI_DEV_GPU_UTIL)"
    smi = nvidia_smi_series(job=None, metrics=["nvidia_smi_temperature_gpu"])
    assert smi.quantity("temperature").expr == (
        "(max by (node, uuid) (nvidia_smi_temperature_gpu) * on (node, uuid) group_left (index, name) "
        "topk by (node, uuid) (1, max by (node, index, uuid, name) (nvidia_smi_gpu_info)))"
    )


@pytest.mark.parametrize(
    ("quantity", "dcgm", "smi"),
    [
        ("utilization", "", " * 100"),
        ("copy_utilization", "", " * 100"),
        ("encoder_utilization", "", " * 100"),
        ("decoder_utilization", "", " * 100"),
        ("fan_speed", "", " * 100"),
        ("vram_used", "", " / 2^20"),
        ("vram_free", "", " / 2^20"),
        ("vram_reserved", "", " / 2^20"),
        ("sm_clock", "", " / 1e6"),
        ("memory_clock", "", " / 1e6"),
        ("energy", " / 1e3", ""),
        ("power_throttled", " / 1e9", ""),
        ("thermal_throttled", " / 1e9", ""),
        ("power", "", ""),
        ("temperature", "", ""),
    ],
)
def test_both_exporters_answer_in_the_same_unit(quantity, dcgm, smi):
    for series, scale in ((DCGM, dcgm), (SMI, smi)):
        plain = series.metric(series.name_of(quantity)).expr
        assert series.quantity(quantity).expr == (f"({plain}{scale})" if scale else plain)


def test_nvidia_smi_names_gpus_by_joining_their_description():
    query = SMI.quantity("temperature", node="a", gpu="0", by=("pod",), where='pod!=""')
    assert query.expr == (
        '(max by (node, uuid, pod) (nvidia_smi_temperature_gpu{job="smi",node=~"a",pod!=""}) '
        "* on (node, uuid) group_left (index, name) "
        "topk by (node, uuid) (1, max by (node, index, uuid, name) "
        '(nvidia_smi_gpu_info{job="smi",node=~"a",index=~"0"})))'
    )


@BOTH
def test_every_answer_carries_the_labels_that_tell_gpus_apart(series):
    expr = series.quantity("temperature").expr
    assert all(label in expr for label in series.labels)


def test_a_metric_that_is_not_exported_is_no_answer():
    series = dcgm_series(job="x", metrics=["DCGM_FI_DEV_GPU_UTIL"], hostname_label="hostname", pods="none")
    assert series.quantity("power") is None
    assert series.name_of("power") == "DCGM_FI_DEV_POWER_USAGE"
    assert not series.can(series.metric("DCGM_FI_DEV_POWER_USAGE"))
    assert not series.can(series.quantity("utilization"), series.metric("DCGM_FI_DEV_POWER_USAGE"))
    assert series.has("DCGM_FI_DEV_GPU_UTIL")
    assert not series.has("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_POWER_USAGE")


def test_metrics_changed_afterwards_change_nothing():
    metrics = ["DCGM_FI_DEV_GPU_UTIL"]
    series = dcgm_series(job="x", metrics=metrics, hostname_label="hostname", pods="none")
    metrics.append("DCGM_FI_DEV_POWER_USAGE")
    assert not series.has("DCGM_FI_DEV_POWER_USAGE")
    assert series == dcgm_series(job="x", metrics=metrics[:1], hostname_label="hostname", pods="none")
    assert len({series, series}) == 1


def test_nvidia_smi_knows_no_pods():
    assert (SMI.pods, SMI.dialect) == ("none", "nvidia_smi")
    assert (DCGM.pods, DCGM.dialect) == ("all", "dcgm")


def test_how_often_it_is_scraped_is_told_and_thirty_seconds_where_nobody_knows():
    assert {DCGM.scrape_interval_seconds, SMI.scrape_interval_seconds} == {30}
    told = {"job": "x", "metrics": ["DCGM_FI_DEV_GPU_UTIL"], "scrape_interval_seconds": 15}
    assert nvidia_smi_series(**told).scrape_interval_seconds == 15
    assert dcgm_series(**told, hostname_label="hostname", pods="none").scrape_interval_seconds == 15

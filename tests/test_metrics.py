from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.observability.dcgm_fields import known_fields
from gpu_constructs.observability.metrics import (
    Metric,
    check_metrics,
    counters_csv,
    default_metrics,
    exported_metrics,
    hostname_label,
    metric_set,
    needs_profiling,
)

# DCGM field ids, from NVIDIA/go-dcgm@ec245c09fe3e:pkg/dcgm/const_fields.go (exporter 4.5.3-4.8.2), the same
# in @3385e277e49f:pkg/dcgm/const.go (exporter 3.3.6-3.4.2).
FIELD_IDS = {
    "DCGM_FI_DRIVER_VERSION": 1,
    "DCGM_FI_DEV_SM_CLOCK": 100,
    "DCGM_FI_DEV_MEM_CLOCK": 101,
    "DCGM_FI_DEV_MEMORY_TEMP": 140,
    "DCGM_FI_DEV_GPU_TEMP": 150,
    "DCGM_FI_DEV_POWER_USAGE": 155,
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": 156,
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": 202,
    "DCGM_FI_DEV_GPU_UTIL": 203,
    "DCGM_FI_DEV_MEM_COPY_UTIL": 204,
    "DCGM_FI_DEV_ENC_UTIL": 206,
    "DCGM_FI_DEV_DEC_UTIL": 207,
    "DCGM_FI_DEV_XID_ERRORS": 230,
    "DCGM_FI_DEV_FB_FREE": 251,
    "DCGM_FI_DEV_FB_USED": 252,
    "DCGM_FI_DEV_FB_RESERVED": 253,
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": 393,
    "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS": 394,
    "DCGM_FI_DEV_ROW_REMAP_FAILURE": 395,
    "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL": 449,
    "DCGM_FI_DEV_VGPU_LICENSE_STATUS": 526,
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": 1001,
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": 1004,
    "DCGM_FI_PROF_DRAM_ACTIVE": 1005,
    "DCGM_FI_PROF_PCIE_TX_BYTES": 1009,
    "DCGM_FI_PROF_PCIE_RX_BYTES": 1010,
}

COUNTERS = {
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
    "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS",
}


def upstream_types(*, counters: set[str], without: tuple[str, ...] = ()) -> dict[str, str]:
    types = {name: "counter" if name in counters else "gauge" for name in FIELD_IDS if name not in without}
    return types | {"DCGM_FI_DRIVER_VERSION": "label"}


# The active lines of the list that each image reads by default, from NVIDIA/dcgm-exporter:
# @3.3.6-3.4.2:etc/dcp-metrics-included.csv, @4.5.3-4.8.2:etc/default-counters.csv and
# @7ad58324 (release 4.6.0-4.8.3):etc/default-counters.csv.
UPSTREAM = {
    "3.4.2": upstream_types(
        counters=COUNTERS | {"DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL"}, without=("DCGM_FI_DEV_FB_RESERVED",)
    ),
    "4.8.2": upstream_types(counters=COUNTERS | {"DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL"}),
    "4.8.3": upstream_types(counters=COUNTERS),
}

RELEASES = list(UPSTREAM)


def read_as_go_does(text: str) -> list[tuple[str, ...]]:
    """Read CSV as Go's encoding/csv does (comment '#', lazy quotes off), with the exporter's trimming."""
    records = []
    for line in text.split("\n"):
        if line == "" or line.startswith("#"):
            continue
        if '"' in line or "\r" in line:
            raise ValueError(f"the reader stops at a quote or carriage return: {line!r}")
        records.append(tuple(part.strip(" ") for part in line.split(",")))
    return records


def metric(field: str = "DCGM_FI_DEV_GPU_UTIL", kind: str = "gauge", text: str = "") -> Metric:
    return Metric(field=field, prometheus_type=kind, help=text)  # type: ignore[arg-type]


@pytest.mark.parametrize("release", RELEASES)
def test_each_release_publishes_what_its_image_does_with_the_same_types(release):
    published = {one.field: one.prometheus_type for one in default_metrics(release)}
    assert published == UPSTREAM[release]


@pytest.mark.parametrize("release", RELEASES)
def test_utilisation_vram_temperature_power_and_clocks_are_gauges_of_every_release(release):
    gauges = {one.field for one in default_metrics(release) if one.prometheus_type == "gauge"}
    assert gauges >= {
        "DCGM_FI_DEV_GPU_UTIL",
        "DCGM_FI_DEV_FB_USED",
        "DCGM_FI_DEV_GPU_TEMP",
        "DCGM_FI_DEV_POWER_USAGE",
        "DCGM_FI_DEV_SM_CLOCK",
        "DCGM_FI_DEV_MEM_CLOCK",
    }


@pytest.mark.parametrize("release", RELEASES)
def test_the_csv_has_three_fields_a_line_as_the_exporter_reads_it(release):
    metrics = default_metrics(release)
    read = read_as_go_does(counters_csv(metrics))
    assert sorted(read) == sorted((one.field, one.prometheus_type, one.help) for one in metrics)


@pytest.mark.parametrize("release", RELEASES)
def test_the_csv_stays_a_readable_block_in_yaml(release):
    text = counters_csv(default_metrics(release))
    assert text.endswith("\n")
    assert not text.endswith("\n\n")
    assert "\t" not in text
    assert [line for line in text.splitlines() if line != line.rstrip()] == []


def test_every_group_of_the_csv_opens_with_a_comment():
    blocks = counters_csv(default_metrics("4.8.3")).rstrip("\n").split("\n\n")
    titles = [block.splitlines()[0] for block in blocks]
    assert all(title.startswith("# ") for title in titles)
    assert len(set(titles)) == len(titles) == 10


def test_a_metric_outside_the_default_list_gets_a_group_too():
    extra = metric("DCGM_FI_DEV_COUNT", text="GPUs of the node")
    profiling = metric("DCGM_FI_PROF_SM_ACTIVE", text="Busy multiprocessors")
    label = metric("DCGM_FI_DEV_SERIAL", "label", "Serial number")
    assert counters_csv([label, extra, profiling]).split("\n\n")[1:] == [
        "# Others\nDCGM_FI_DEV_COUNT, gauge, GPUs of the node",
        "# Profiling (data centre GPUs; GeForce from Blackwell on; needs SYS_ADMIN)\n"
        "DCGM_FI_PROF_SM_ACTIVE, gauge, Busy multiprocessors",
        "# Labels on every series\nDCGM_FI_DEV_SERIAL, label, Serial number\n",
    ]


def test_profiling_is_needed_exactly_for_fields_of_dcgms_profiling_module():
    for one in default_metrics("4.8.3"):
        assert needs_profiling([one]) == (1000 <= FIELD_IDS[one.field] < 1100)
    assert needs_profiling(default_metrics("4.8.3"))
    assert not needs_profiling([])


@given(
    field=st.from_regex(r"DCGM_(FI|EXP)_[A-Z0-9_]{1,30}", fullmatch=True) | st.text(max_size=30),
    kind=st.sampled_from(["gauge", "counter"]),
    text=st.text(max_size=60) | st.text(alphabet='a b,"#\n\r', max_size=10),
)
def test_any_accepted_metric_is_read_back_unchanged_and_any_other_is_refused_in_one_line(field, kind, text):
    try:
        accepted = metric(field, kind, text)
    except GpuConstructsError as error:
        message = str(error)
    else:
        message = ""
        assert read_as_go_does(counters_csv([accepted])) == [(field, kind, text.strip(" "))]
    assert "\n" not in message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("DCGM_FI_DEV_GPU_UTIL", "guage", ""),
            "metric.prometheus_type must be one of 'gauge', 'counter', 'label'; got 'guage' (did you mean 'gauge'?)",
        ),
        (
            ("DCGM_FI_DEV_GPU_UTIL", "histogram", ""),
            "metric.prometheus_type must be one of 'gauge', 'counter', 'label'; got 'histogram'",
        ),
        (
            ("", "gauge", ""),
            "metric.field must be a DCGM name such as 'DCGM_FI_DEV_GPU_UTIL' (capital letters, digits and '_'); got ''",
        ),
        (
            ("GPU_UTIL", "gauge", ""),
            "metric.field must be a DCGM name such as 'DCGM_FI_DEV_GPU_UTIL' "
            "(capital letters, digits and '_'); got 'GPU_UTIL'",
        ),
        (
            ("DCGM_FI_DEV_GPU_UTIL", "gauge", "busy, in %"),
            "metric.help of DCGM_FI_DEV_GPU_UTIL must not contain ',': "
            "the exporter reads comma-separated lines; got 'busy, in %'; write ';' or another word",
        ),
        (
            ("DCGM_FI_DEV_GPU_UTIL", "gauge", 'how "busy"\n'),
            "metric.help of DCGM_FI_DEV_GPU_UTIL must not contain '\\n', '\"': "
            "the exporter reads comma-separated lines; got 'how \"busy\"\\n'; write ';' or another word",
        ),
    ],
)
def test_a_metric_the_exporter_would_not_take_is_refused(arguments, message):
    with pytest.raises(GpuConstructsError) as refused:
        metric(*arguments)
    assert str(refused.value) == message


def test_a_wrong_type_is_named_as_the_python_type():
    with pytest.raises(GpuConstructsError, match=r"^metric\.help must be str; got int: 7$"):
        metric(text=7)  # type: ignore[arg-type]


def test_a_metric_named_twice_is_refused():
    with pytest.raises(GpuConstructsError, match=r"^metrics must name each field once; got 'DCGM_FI_DEV_GPU_UTIL'"):
        counters_csv([*default_metrics("4.8.3"), metric()])


@pytest.mark.parametrize("metrics", [[], [metric("DCGM_FI_DRIVER_VERSION", "label")]])
def test_a_list_that_publishes_nothing_is_refused(metrics):
    with pytest.raises(GpuConstructsError, match=r"^metrics must hold at least one gauge or counter; got \["):
        check_metrics(metrics)


@pytest.mark.parametrize(
    ("release", "label"),
    [("3.4.2", "Hostname"), ("4.8.2", "Hostname"), ("4.8.3", "hostname"), ("4.10.0", "hostname")],
)
def test_the_node_label_changes_its_spelling_with_4_8_3(release, label):
    assert hostname_label(release) == label


@pytest.mark.parametrize("release", ["4.8", "v4.8.3", "4.6.0-4.8.3", "4.8.3\n", ""])
def test_an_unreadable_release_is_refused(release):
    with pytest.raises(GpuConstructsError, match=r"^release must be an exporter release such as '4\.8\.3'; got "):
        default_metrics(release)


# The lists by name.

SETS = ["seed", "default", "recommended", "profiling"]


def fields(metrics):
    return [one.field for one in metrics]


@pytest.mark.parametrize("release", RELEASES)
def test_each_list_holds_the_one_before_with_the_same_types(release):
    lists = [metric_set(name, release) for name in SETS]
    for smaller, larger in pairwise(lists):
        assert set(smaller) < set(larger)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("name", SETS)
def test_each_list_is_one_that_the_image_takes(name, release):
    metrics = metric_set(name, release)
    assert set(fields(metrics)) <= known_fields(release)
    check_metrics(metrics)
    assert len(read_as_go_does(counters_csv(metrics))) == len(metrics)


@pytest.mark.parametrize(
    ("name", "counts"),
    [("seed", (6, 6, 6)), ("default", (25, 26, 26)), ("recommended", (44, 46, 46)), ("profiling", (51, 53, 53))],
)
def test_each_list_has_as_many_metrics_as_ever(name, counts):
    assert tuple(len(metric_set(name, release)) for release in RELEASES) == counts


def test_the_first_list_is_six_gauges():
    assert {(one.field, one.prometheus_type) for one in metric_set("seed", "4.8.3")} == {
        (f"DCGM_FI_DEV_{name}", "gauge")
        for name in ("GPU_UTIL", "FB_USED", "GPU_TEMP", "POWER_USAGE", "SM_CLOCK", "MEM_CLOCK")
    }


def test_only_the_last_list_goes_beyond_the_images_own_profiling():
    def profiled(name):
        return {one.field for one in metric_set(name, "4.8.3") if needs_profiling([one])}

    assert profiled("seed") == set()
    assert profiled("default") == profiled("recommended") == {name for name in FIELD_IDS if "_PROF_" in name}
    assert profiled("profiling") - profiled("default") == {
        f"DCGM_FI_PROF_{name}"
        for name in (
            "SM_ACTIVE",
            "SM_OCCUPANCY",
            "PIPE_FP64_ACTIVE",
            "PIPE_FP32_ACTIVE",
            "PIPE_FP16_ACTIVE",
            "NVLINK_TX_BYTES",
            "NVLINK_RX_BYTES",
        )
    }


def test_what_only_rises_is_a_counter_and_a_window_is_none():
    types = {one.field: one.prometheus_type for one in metric_set("recommended", "4.8.3")}
    added = {name: kind for name, kind in types.items() if name not in UPSTREAM["4.8.3"]}
    assert {name for name, kind in added.items() if kind == "counter"} == {
        f"DCGM_FI_DEV_{name}"
        for name in (
            "POWER_VIOLATION",
            "THERMAL_VIOLATION",
            "RELIABILITY_VIOLATION",
            "BOARD_LIMIT_VIOLATION",
            "ECC_SBE_VOL_TOTAL",
            "ECC_DBE_VOL_TOTAL",
        )
    }
    assert set(added.values()) == {"gauge", "counter"}


def test_groups_of_the_largest_list_come_in_a_fixed_order_with_labels_last():
    blocks = counters_csv(metric_set("profiling", "4.8.3")).split("\n\n")[1:]
    assert [block.partition("\n")[0] for block in blocks] == [
        "# Clocks",
        "# Temperature",
        "# Power",
        "# Utilisation",
        "# Memory",
        "# Errors",
        "# NVLink and vGPU",
        "# Throttling",
        "# PCIe",
        "# Profiling (data centre GPUs; GeForce from Blackwell on; needs SYS_ADMIN)",
        "# Labels on every series",
    ]


# What a user wants exported.


def exported(given, release="4.8.3", **options):
    return exported_metrics(given, release, known_as=options.pop("known_as", release), **options)


@pytest.mark.parametrize("name", SETS)
def test_a_list_by_name_is_that_list(name):
    assert exported(name) == metric_set(name, "4.8.3")


@pytest.mark.parametrize("name", SETS)
def test_a_list_by_name_can_do_without_profiling(name):
    metrics = exported(name, is_profiled=False)
    assert not needs_profiling(metrics)
    assert set(metric_set(name, "4.8.3")) - set(metrics) == {
        one for one in metric_set(name, "4.8.3") if needs_profiling([one])
    }


def test_a_field_by_name_has_the_type_and_text_of_its_release():
    by_name = ["DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "DCGM_FI_PROF_SM_ACTIVE"]
    for release in RELEASES:
        ours = {one.field: one for one in metric_set("profiling", release)}
        assert exported(by_name, release) == tuple(ours[name] for name in by_name)


def test_names_and_metrics_mix_in_the_order_given():
    own, foreign = metric(text="Mine"), metric("DCGM_FI_DEV_SERIAL", "label", "Serial number")
    assert exported([foreign, "DCGM_FI_DEV_GPU_TEMP", own]) == (foreign, *exported(["DCGM_FI_DEV_GPU_TEMP"]), own)


def test_a_field_that_an_earlier_image_knows_but_does_not_publish_can_be_named():
    assert fields(exported(["DCGM_FI_DEV_FB_RESERVED"], "3.4.2")) == ["DCGM_FI_DEV_FB_RESERVED"]


UNKNOWN = "metrics must name fields that the DCGM exporter {} knows: it would end at an unknown one; got {!r}{}"
BY_NAME = "metrics can hold a field by its name alone only where this library knows its type; got {0!r}{1}"
OF_A_LATER_DCGM = (
    "; for a field of a later DCGM keep the list in a ConfigMap of your own: metrics=MetricsConfigMap(...)"
)
OTHERS = "; pass Metric(field=..., prometheus_type=..., help=...)"
LATER = "; it came with a later release: take version='4.8.3' instead of '3.4.2'"
RECOVERY = "DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION"


@pytest.mark.parametrize(
    ("given", "release", "problem"),
    [
        (
            "recomended",
            "4.8.3",
            "metrics must be one of 'seed', 'default', 'recommended', 'profiling'; got 'recomended' (did you mean "
            "'recommended'?)",
        ),
        (
            ["DCGM_FI_DEV_GPU_UTL"],
            "4.8.3",
            UNKNOWN.format("4.8.3", "DCGM_FI_DEV_GPU_UTL", " (did you mean 'DCGM_FI_DEV_GPU_UTIL'?)"),
        ),
        (
            ["DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL"],
            "4.8.3",
            BY_NAME.format("DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", OTHERS),
        ),
        (["recommended"], "4.8.3", BY_NAME.format("recommended", OTHERS)),
        (
            [metric("DCGM_FI_DEV_GPU_UTL")],
            "4.8.3",
            UNKNOWN.format("4.8.3", "DCGM_FI_DEV_GPU_UTL", " (did you mean 'DCGM_FI_DEV_GPU_UTIL'?)"),
        ),
        ([metric("DCGM_FI_ZZZZZZZZZZZZZ")], "4.8.3", UNKNOWN.format("4.8.3", "DCGM_FI_ZZZZZZZZZZZZZ", OF_A_LATER_DCGM)),
        ([metric(RECOVERY)], "3.4.2", UNKNOWN.format("3.4.2", RECOVERY, LATER)),
        ([RECOVERY], "3.4.2", UNKNOWN.format("3.4.2", RECOVERY, LATER)),
        (
            ["DCGM_FI_DEV_GPU_UTIL", metric("DCGM_FI_DEV_GPU_UTIL")],
            "4.8.3",
            "metrics must name each field once; got 'DCGM_FI_DEV_GPU_UTIL' more than once",
        ),
        ([], "4.8.3", "metrics must hold at least one gauge or counter; got []"),
        (
            [metric("DCGM_FI_DEV_SERIAL", "label")],
            "4.8.3",
            "metrics must hold at least one gauge or counter; got ['DCGM_FI_DEV_SERIAL']",
        ),
        ("default", "4.8", "release must be an exporter release such as '4.8.3'; got '4.8'"),
    ],
    ids=str,
)
def test_what_the_image_would_not_export_is_refused(given, release, problem):
    with pytest.raises(GpuConstructsError) as refused:
        exported(given, release)
    assert str(refused.value) == problem


def test_an_unverified_release_is_named_as_the_user_named_it():
    with pytest.raises(GpuConstructsError, match=r"^metrics must name fields that the DCGM exporter 4\.9\.0 knows: "):
        exported([metric("DCGM_FI_DEV_GPU_UTL")], known_as="4.9.0")

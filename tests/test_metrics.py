import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.observability.metrics import (
    Metric,
    check_metrics,
    counters_csv,
    default_metrics,
    hostname_label,
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
    extra = metric("DCGM_EXP_XID_ERRORS_COUNT", text="XIDs in the window")
    profiling = metric("DCGM_FI_PROF_SM_ACTIVE", text="Busy multiprocessors")
    label = metric("DCGM_FI_DEV_SERIAL", "label", "Serial number")
    assert counters_csv([label, extra, profiling]).split("\n\n")[1:] == [
        "# Profiling (data centre GPUs; GeForce from Blackwell on; needs SYS_ADMIN)\n"
        "DCGM_FI_PROF_SM_ACTIVE, gauge, Busy multiprocessors",
        "# Labels on every series\nDCGM_FI_DEV_SERIAL, label, Serial number",
        "# Others\nDCGM_EXP_XID_ERRORS_COUNT, gauge, XIDs in the window\n",
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
            "the exporter reads comma-separated lines; got 'busy, in %'",
        ),
        (
            ("DCGM_FI_DEV_GPU_UTIL", "gauge", 'how "busy"\n'),
            "metric.help of DCGM_FI_DEV_GPU_UTIL must not contain '\\n', '\"': "
            "the exporter reads comma-separated lines; got 'how \"busy\"\\n'",
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

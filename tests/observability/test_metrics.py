import hashlib
from itertools import pairwise

import pytest
from hypothesis import given as supposing
from hypothesis import strategies as st

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.kube.tables import rows
from gpu_constructs.observability.metrics import (
    Metric,
    counters_csv,
    exported_metrics,
    hostname_label,
    metric_set,
    needs_profiling,
)

COUNTERS = "TOTAL_ENERGY_CONSUMPTION PCIE_REPLAY_COUNTER UNCORRECTABLE_REMAPPED_ROWS CORRECTABLE_REMAPPED_ROWS".split()
GAUGES = (
    "SM_CLOCK MEM_CLOCK MEMORY_TEMP GPU_TEMP POWER_USAGE GPU_UTIL MEM_COPY_UTIL ENC_UTIL DEC_UTIL XID_ERRORS FB_FREE "
    "FB_USED ROW_REMAP_FAILURE VGPU_LICENSE_STATUS"
).split()
PROFILED = "GR_ENGINE_ACTIVE PIPE_TENSOR_ACTIVE DRAM_ACTIVE PCIE_TX_BYTES PCIE_RX_BYTES".split()
ALWAYS = {
    **{f"DCGM_FI_DEV_{name}": "counter" for name in COUNTERS},
    **{f"DCGM_FI_DEV_{name}": "gauge" for name in GAUGES},
    **{f"DCGM_FI_PROF_{name}": "gauge" for name in PROFILED},
    "DCGM_FI_DRIVER_VERSION": "label",
}
RESERVED = {"DCGM_FI_DEV_FB_RESERVED": "gauge"}
NVLINK = "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL"
# The active lines of the list that each image reads by default, from NVIDIA/dcgm-exporter:
# @3.3.6-3.4.2:etc/dcp-metrics-included.csv, @4.5.3-4.8.2:etc/default-counters.csv and
# @7ad58324 (release 4.6.0-4.8.3):etc/default-counters.csv.
UPSTREAM = {
    "3.4.2": {**ALWAYS, NVLINK: "counter"},
    "4.8.2": {**ALWAYS, **RESERVED, NVLINK: "counter"},
    "4.8.3": {**ALWAYS, **RESERVED, NVLINK: "gauge"},
}
SETS = ["seed", "default", "recommended", "profiling"]
COUNTS = {"seed": (6, 6, 6), "default": (25, 26, 26), "recommended": (44, 46, 46), "profiling": (51, 53, 53)}


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


def known_fields(release):
    table = rows("gpu_constructs.observability", "dcgm_fields.csv")
    return {row["field"] for row in table if release[0] in row["releases"]}


def fields(metrics):
    return [one.field for one in metrics]


# Number of names, and SHA-256 of their sorted list with one name in each line. The names come from
# NVIDIA/go-dcgm@3385e277e49f:pkg/dcgm/const.go and @ec245c09fe3e:pkg/dcgm/const_fields.go, with aliases in capital
# letters, without DCGM_FI_UNKNOWN and DCGM_FI_MAX_FIELDS, and with the exporter's own DCGM_EXP_*.
CATALOGUES = {
    "3.4.2": (416, "727227a4bd5a21c2fb8fb39bde23bfbf4a917df9f044624569e067c3e1738eb7"),
    "4.8.3": (679, "bba6b8c88533f0883a834544fe017d50efcc3f0afdffca88472792b50a782a26"),
}


def test_the_catalog_has_the_names_of_the_dcgm_in_the_image_and_accepts_each():
    for release, expected in CATALOGUES.items():
        names = sorted(known_fields(release))
        assert (len(names), hashlib.sha256("\n".join(names).encode()).hexdigest()) == expected, release
        labels = [metric(name, "label") for name in names if name.startswith("DCGM_FI")]
        assert exported([metric(), *(one for one in labels if one.field != metric().field)], release)


def test_each_release_exports_the_list_of_its_image_with_the_same_types():
    for release, listed in UPSTREAM.items():
        assert {one.field: one.prometheus_type for one in metric_set("default", release)} == listed, release


def test_each_list_contains_the_one_before_and_the_image_accepts_it():
    for number, release in enumerate(UPSTREAM):
        lists = {name: metric_set(name, release) for name in SETS}
        assert all(set(smaller) < set(larger) for smaller, larger in pairwise(lists.values()))
        for name, metrics in lists.items():
            assert len(metrics) == COUNTS[name][number], (name, release)
            assert set(fields(metrics)) <= known_fields(release)
            assert exported(name, release) == metrics
            text = counters_csv(metrics)
            read = sorted((one.field, one.prometheus_type, one.help) for one in metrics)
            assert sorted(read_as_go_does(text)) == read
            # The text is a readable block in YAML.
            assert text == text.rstrip() + "\n"
            assert "\t" not in text
            assert [line for line in text.splitlines() if line != line.rstrip()] == []


def test_what_the_lists_add():
    seed = {f"DCGM_FI_DEV_{name}" for name in "GPU_UTIL FB_USED GPU_TEMP POWER_USAGE SM_CLOCK MEM_CLOCK".split()}
    assert set(fields(metric_set("seed", "4.8.3"))) == seed
    profiled = [{one for one in fields(metric_set(name, "4.8.3")) if "_PROF_" in one} for name in SETS]
    assert profiled[:3] == [set(), *[{f"DCGM_FI_PROF_{name}" for name in PROFILED}] * 2]
    more = "SM_ACTIVE SM_OCCUPANCY PIPE_FP64_ACTIVE PIPE_FP32_ACTIVE PIPE_FP16_ACTIVE NVLINK_TX_BYTES NVLINK_RX_BYTES"
    assert profiled[3] - profiled[2] == {f"DCGM_FI_PROF_{name}" for name in more.split()}
    types = {one.field: one.prometheus_type for one in metric_set("recommended", "4.8.3")}
    # A value that only rises is a counter, but a window is not.
    held_back = (f"{reason}_VIOLATION" for reason in ("POWER", "THERMAL", "RELIABILITY", "BOARD_LIMIT"))
    counters = {f"DCGM_FI_DEV_{name}" for name in (*held_back, "ECC_SBE_VOL_TOTAL", "ECC_DBE_VOL_TOTAL")}
    assert {name for name in types if types[name] == "counter"} - UPSTREAM["4.8.3"].keys() == counters


def test_groups_come_in_a_fixed_order_with_labels_last(expected):
    blocks = counters_csv(metric_set("profiling", "4.8.3")).split("\n\n")[1:]
    assert [block.partition("\n")[0] for block in blocks] == expected
    extra = metric("DCGM_FI_DEV_COUNT", text="GPUs of the node")
    profiling = metric("DCGM_FI_PROF_SM_ACTIVE", text="Busy multiprocessors")
    label = metric("DCGM_FI_DEV_SERIAL", "label", "Serial number")
    assert counters_csv([label, extra, profiling]).split("\n\n")[1:] == [
        "# Others\nDCGM_FI_DEV_COUNT, gauge, GPUs of the node",
        "# Profiling (data center GPUs; GeForce from Blackwell on; needs SYS_ADMIN)\n"
        "DCGM_FI_PROF_SM_ACTIVE, gauge, Busy multiprocessors",
        "# Labels on every series\nDCGM_FI_DEV_SERIAL, label, Serial number\n",
    ]


@supposing(
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


def test_a_metric_that_the_exporter_rejects_is_rejected(refused):
    refused(metric)


def test_the_node_label_changes_its_spelling_with_4_8_3():
    releases = ("3.4.2", "4.8.2", "4.8.3", "4.10.0")
    assert [hostname_label(release) for release in releases] == ["Hostname", "Hostname", "hostname", "hostname"]


# Metrics that a user chooses.


def exported(given, release="4.8.3", **options):
    return exported_metrics(given, release, known_as=options.pop("known_as", release), **options)


def test_a_list_by_name_can_omit_profiling():
    for name in SETS:
        without = {one for one in metric_set(name, "4.8.3") if not needs_profiling([one])}
        assert set(exported(name, is_profiled=False)) == without


def test_fields_by_name_have_the_type_of_their_release_and_mix_with_metrics():
    for release in UPSTREAM:
        ours = {one.field: one for one in metric_set("profiling", release)}
        assert exported([NVLINK, "DCGM_FI_PROF_SM_ACTIVE"], release) == (ours[NVLINK], ours["DCGM_FI_PROF_SM_ACTIVE"])
    own, foreign = metric(text="Mine"), metric("DCGM_FI_DEV_SERIAL", "label", "Serial number")
    assert exported([foreign, "DCGM_FI_DEV_GPU_TEMP", own]) == (foreign, *exported(["DCGM_FI_DEV_GPU_TEMP"]), own)
    # A field that an earlier image knows but does not export.
    assert fields(exported(list(RESERVED), "3.4.2")) == list(RESERVED)


RECOVERY = "DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION"


def test_metrics_that_the_image_does_not_export_are_rejected(refused):
    refused(exported)


def test_an_unverified_release_is_named_as_the_user_named_it():
    with pytest.raises(GpuConstructsError, match=r"^metrics must name fields that the DCGM exporter 4\.9\.0 knows, "):
        exported([metric("DCGM_FI_DEV_GPU_UTL")], known_as="4.9.0")

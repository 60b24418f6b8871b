import hashlib
import re

import pytest

from gpu_constructs import GpuConstructsError
from gpu_constructs.observability.dcgm_fields import is_text, known_fields, require

# Of the names in NVIDIA/go-dcgm@3385e277e49f:pkg/dcgm/const.go and @ec245c09fe3e:pkg/dcgm/const_fields.go, aliases
# in capital letters among them, DCGM_FI_UNKNOWN and DCGM_FI_MAX_FIELDS not, and of the exporter's own DCGM_EXP_*:
# how many there are, and the SHA-256 of them sorted, one a line.
CATALOGUES = {
    "3.4.2": (416, "727227a4bd5a21c2fb8fb39bde23bfbf4a917df9f044624569e067c3e1738eb7"),
    "4.8.2": (679, "bba6b8c88533f0883a834544fe017d50efcc3f0afdffca88472792b50a782a26"),
}
CATALOGUES["4.8.3"] = CATALOGUES["4.8.2"]


@pytest.mark.parametrize("release", list(CATALOGUES))
def test_the_catalogue_is_that_of_the_dcgm_in_the_image(release):
    names = sorted(known_fields(release))
    assert (len(names), hashlib.sha256("\n".join(names).encode()).hexdigest()) == CATALOGUES[release]


@pytest.mark.parametrize("release", list(CATALOGUES))
def test_every_name_is_one_that_a_metric_takes(release):
    assert [name for name in known_fields(release) if not re.fullmatch(r"DCGM_(FI|EXP)_[A-Z0-9_]+", name)] == []


@pytest.mark.parametrize(
    ("field", "releases"),
    [
        ("DCGM_FI_DEV_GPU_UTIL", {"3.4.2", "4.8.2", "4.8.3"}),
        ("DCGM_FI_PROF_SM_ACTIVE", {"3.4.2", "4.8.2", "4.8.3"}),
        ("DCGM_FI_DEV_FB_RESERVED", {"3.4.2", "4.8.2", "4.8.3"}),
        ("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", {"3.4.2", "4.8.2", "4.8.3"}),
        ("DCGM_EXP_XID_ERRORS_COUNT", {"3.4.2", "4.8.2", "4.8.3"}),
        ("DCGM_EXP_GPU_HEALTH_STATUS", {"4.8.2", "4.8.3"}),
        ("DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION", {"4.8.2", "4.8.3"}),
        ("DCGM_FI_DEV_NVSWITCH_LINK_DEVICE_UUID", {"3.4.2"}),
        ("DCGM_FI_UNKNOWN", set()),
        ("dcgm_gpu_utilization", set()),
    ],
)
def test_a_name_is_known_to_the_releases_whose_dcgm_has_it(field, releases):
    assert {release for release in CATALOGUES if field in known_fields(release)} == releases


@pytest.mark.parametrize("release", list(CATALOGUES))
def test_a_known_name_is_not_refused(release):
    for name in known_fields(release):
        require(name, "label", release, known_as=release)


PROBLEM = "metrics must name fields that the DCGM exporter {} knows: it would end at an unknown one; got {!r}{}"


@pytest.mark.parametrize(
    ("field", "release", "known_as", "way_out"),
    [
        ("DCGM_FI_DEV_GPU_UTL", "4.8.3", "4.8.3", " (did you mean 'DCGM_FI_DEV_GPU_UTIL'?)"),
        ("DCGM_FI_DEV_GPU_UTL", "4.8.3", "4.9.0", " (did you mean 'DCGM_FI_DEV_GPU_UTIL'?)"),
        (
            "DCGM_FI_ZZZZZZZZZZZZZZ",
            "4.8.3",
            "4.8.3",
            "; for a field of a later DCGM keep the list in a ConfigMap of your own: metrics=MetricsConfigMap(...)",
        ),
        (
            "DCGM_EXP_GPU_HEALTH_STATUS",
            "3.4.2",
            "3.4.2",
            "; it came with a later release: take version='4.8.3' instead of '3.4.2'",
        ),
        (
            "DCGM_FI_DEV_NVSWITCH_LINK_DEVICE_UUID",
            "4.8.2",
            "4.8.2",
            " (did you mean 'DCGM_FI_DEV_NVSWITCH_DEVICE_UUID'?)",
        ),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest_or_the_release(field, release, known_as, way_out):
    with pytest.raises(GpuConstructsError) as refused:
        require(field, "gauge", release, known_as=known_as)
    assert str(refused.value) == PROBLEM.format(known_as, field, way_out)


@pytest.mark.parametrize("field", ["DCGM_FI_DEV_SERIAL", "DCGM_FI_DRIVER_VERSION", "DCGM_FI_DEV_NAME"])
def test_text_goes_on_series_as_a_label_only(field):
    require(field, "label", "4.8.3", known_as="4.8.3")
    with pytest.raises(GpuConstructsError) as refused:
        require(field, "gauge", "4.8.3", known_as="4.8.3")
    assert str(refused.value) == (
        f"metrics must take {field} as a label: its value is text, which as a gauge would spoil the whole scrape; pass "
        "prometheus_type='label'"
    )


@pytest.mark.parametrize("release", list(CATALOGUES))
def test_fields_of_text_are_in_a_catalogue_and_marks_of_ranges_are_not(release):
    texts = {name for name in known_fields("4.8.2") | known_fields("3.4.2") if is_text(name)}
    assert len(texts) > 20
    assert not [name for name in known_fields(release) if "_FIELD_ID" in name or "INTERNAL_FIELDS" in name]

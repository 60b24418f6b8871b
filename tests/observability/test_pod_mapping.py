from gpu_constructs import Sharing
from gpu_constructs.observability.pod_mapping import PodMapping, pod_mapping
from refusals import refusal
from tables import beside

SHARED = "nvidia.com/gpu.shared"
SLICED = Sharing.time_slicing(replicas=4)


# Variables and rights.


OPTIONS = beside(__file__, "pod_mapping")["options"]


def test_each_option_is_the_variable_that_the_exporter_reads_and_takes_no_more_rights_than_it_needs(snapshot):
    made = [PodMapping(**options) for options in OPTIONS]
    assert [
        {"given": options, "environment": mapping.environment(), "rules": mapping.rules(), "pods": mapping.reads_pods}
        for options, mapping in zip(OPTIONS, made, strict=True)
    ] == snapshot


# Time slicing.


TRUE_TAKES_CASES = beside(__file__, "pod_mapping")["true_takes_cases"]


def test_true_selects_the_mapping_for_the_sharing_strategy_and_the_release():
    for sharing, release, mapping in TRUE_TAKES_CASES:
        assert pod_mapping(True, sharing, release) == mapping, sharing


# First releases: the first tag of NVIDIA/dcgm-exporter whose pkg/cmd/app.go reads the variable.
REFUSED = beside(__file__, "pod_mapping")["refused"]


def test_an_option_is_rejected_before_its_first_release():
    for option, value, before, first in REFUSED:
        mapping = PodMapping(**{option: value})
        assert pod_mapping(mapping, None, first) is mapping, option
        assert refusal(pod_mapping, mapping, None, before) == (
            f"pod_mapping.{option} needs version {first!r} or later of the DCGM exporter, got {before!r}. "
            f"Use a later version, or leave {option} out"
        ), option


# Errors.


def test_options_that_the_exporter_rejects_are_rejected(refused):
    refused(PodMapping, at="pod_mapping.")

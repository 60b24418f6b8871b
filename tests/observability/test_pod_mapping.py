from gpu_constructs import Sharing
from gpu_constructs.observability.pod_mapping import PodMapping, pod_mapping
from refusals import refusal

SHARED = "nvidia.com/gpu.shared"
SLICED = Sharing.time_slicing(replicas=4)


# Variables and rights.


OPTIONS = [
    {},
    {"enable_pod_labels": True},
    {"enable_pod_labels": True, "pod_label_allowlist_regex": ["^app$", "team-.*"]},
    {"enable_pod_uid": True},
    {"virtual_gpus": True},
    {"host_pid": True},
    {"nvidia_resource_names": [SHARED, "example.com/gpu"]},
    {"enable_dra": True},
    {"enable_dra": True, "enable_pod_uid": True},
    {"gpu_id_type": "device-name"},
    {"kubelet_path": "/var/lib/k0s/kubelet/pod-resources"},
]


def test_each_option_is_the_variable_that_the_exporter_reads_and_takes_no_more_rights_than_it_needs(snapshot):
    made = [PodMapping(**options) for options in OPTIONS]
    assert [
        {"given": options, "environment": mapping.environment(), "rules": mapping.rules(), "pods": mapping.reads_pods}
        for options, mapping in zip(OPTIONS, made, strict=True)
    ] == snapshot


# Time slicing.


TRUE_TAKES_CASES = [
    (None, "4.8.3", PodMapping()),
    (Sharing.none(), "3.4.2", PodMapping()),
    (SLICED, "4.8.3", PodMapping.time_slicing()),
    (SLICED, "4.8.2", PodMapping.time_slicing()),
    (SLICED, "4.8.1", PodMapping(virtual_gpus=True)),
    (SLICED, "4.0.3", PodMapping(virtual_gpus=True)),
    (Sharing.mps(replicas=4), "4.8.3", PodMapping.time_slicing()),
    (
        Sharing.time_slicing(replicas=4, rename_by_default=True),
        "4.8.3",
        PodMapping.time_slicing(nvidia_resource_names=[SHARED]),
    ),
    (
        Sharing.time_slicing(resources={"nvidia.com/mig-1g.10gb": 2}, rename_by_default=True),
        "4.8.1",
        PodMapping(virtual_gpus=True),
    ),
]


def test_true_selects_the_mapping_for_the_sharing_strategy_and_the_release():
    for sharing, release, mapping in TRUE_TAKES_CASES:
        assert pod_mapping(True, sharing, release) == mapping, sharing


# First releases: the first tag of NVIDIA/dcgm-exporter whose pkg/cmd/app.go reads the variable.
REFUSED = [
    ("nvidia_resource_names", [SHARED], "3.4.2", "3.5.0"),
    ("virtual_gpus", True, "4.0.2", "4.0.3"),
    ("enable_pod_labels", True, "4.1.3", "4.2.0"),
    ("enable_dra", True, "4.3.9", "4.4.0"),
    ("enable_pod_uid", True, "4.4.9", "4.5.0"),
    ("host_pid", True, "4.8.1", "4.8.2"),
]


def test_an_option_is_rejected_before_its_first_release():
    for option, value, before, first in REFUSED:
        mapping = PodMapping(**{option: value})
        assert pod_mapping(mapping, None, first) is mapping, option
        assert refusal(pod_mapping, mapping, None, before) == (
            f"pod_mapping.{option} needs version {first!r} or later, got version {before!r}. "
            f"Use a later version, or leave {option} out"
        ), option


# Errors.


def test_options_that_the_exporter_rejects_are_rejected(refused):
    refused(PodMapping, at="pod_mapping.")

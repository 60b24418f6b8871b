import pytest

from gpu_constructs import GpuConstructsError, Sharing
from gpu_constructs.observability.pod_mapping import PodMapping, pod_mapping

SHARED = "nvidia.com/gpu.shared"
SLICED = Sharing.time_slicing(replicas=4)


def refusal(make, *given, **options):
    with pytest.raises(GpuConstructsError) as refused:
        make(*given, **options)
    return str(refused.value)


# What the exporter is told.


CASES = [
    ({}, {}),
    ({"enable_pod_labels": True}, {"DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS": "true"}),
    (
        {"enable_pod_labels": True, "pod_label_allowlist_regex": ["^app$", "team-.*"]},
        {
            "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS": "true",
            "DCGM_EXPORTER_KUBERNETES_POD_LABEL_ALLOWLIST_REGEX": "^app$,team-.*",
        },
    ),
    ({"enable_pod_uid": True}, {"DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID": "true"}),
    ({"virtual_gpus": True}, {"KUBERNETES_VIRTUAL_GPUS": "true"}),
    ({"host_pid": True}, {}),
    (
        {"nvidia_resource_names": [SHARED, "example.com/gpu"]},
        {"NVIDIA_RESOURCE_NAMES": f"{SHARED},example.com/gpu"},
    ),
    ({"enable_dra": True}, {"KUBERNETES_ENABLE_DRA": "true"}),
    ({"gpu_id_type": "device-name"}, {"DCGM_EXPORTER_KUBERNETES_GPU_ID_TYPE": "device-name"}),
    ({"kubelet_path": "/var/lib/k0s/kubelet/pod-resources"}, {}),
]


def test_each_option_is_the_variable_that_the_exporter_reads():
    for options, environment in CASES:
        assert PodMapping(**options).environment() == environment, options


PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}
SLICES = {"apiGroups": ["resource.k8s.io"], "resources": ["resourceslices"], "verbs": ["get", "list", "watch"]}


EXPORTER_MAY_CASES = [
    ({}, []),
    ({"virtual_gpus": True, "host_pid": True}, []),
    ({"enable_pod_labels": True}, [PODS]),
    ({"enable_pod_uid": True}, [PODS]),
    ({"enable_dra": True}, [SLICES]),
    ({"enable_dra": True, "enable_pod_uid": True}, [PODS, SLICES]),
]


def test_the_exporter_may_read_no_more_than_its_options_need():
    for options, rules in EXPORTER_MAY_CASES:
        mapping = PodMapping(**options)
        assert mapping.rules() == rules, options
        assert mapping.reads_pods is (PODS in rules), options


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


def test_true_takes_what_fits_the_sharing_as_far_as_the_release_can():
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


def test_an_option_is_refused_before_the_release_that_brought_it():
    for option, value, before, first in REFUSED:
        mapping = PodMapping(**{option: value})
        assert pod_mapping(mapping, None, first) is mapping, option
        assert refusal(pod_mapping, mapping, None, before) == (
            f"pod_mapping.{option} must be left out with version {before!r}: it came with {first}; take a later version"
        ), option


# What is refused.


def test_what_the_exporter_would_not_take_is_refused(refused):
    refused(PodMapping, at="pod_mapping.")

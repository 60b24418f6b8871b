import pytest

from gpu_constructs import GpuConstructsError, Sharing
from gpu_constructs.observability.pod_mapping import PodMapping

SHARED = "nvidia.com/gpu.shared"
SLICED = Sharing.time_slicing(replicas=4)


def refusal(make, *given, **options):
    with pytest.raises(GpuConstructsError) as refused:
        make(*given, **options)
    return str(refused.value)


# What the exporter is told.


@pytest.mark.parametrize(
    ("options", "environment"),
    [
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
    ],
    ids=str,
)
def test_each_option_is_the_variable_that_the_exporter_reads(options, environment):
    assert PodMapping(**options).environment() == environment


PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}
SLICES = {"apiGroups": ["resource.k8s.io"], "resources": ["resourceslices"], "verbs": ["get", "list", "watch"]}


@pytest.mark.parametrize(
    ("options", "rules"),
    [
        ({}, []),
        ({"virtual_gpus": True, "host_pid": True}, []),
        ({"enable_pod_labels": True}, [PODS]),
        ({"enable_pod_uid": True}, [PODS]),
        ({"enable_dra": True}, [SLICES]),
        ({"enable_dra": True, "enable_pod_uid": True}, [PODS, SLICES]),
    ],
    ids=str,
)
def test_the_exporter_may_read_no_more_than_its_options_need(options, rules):
    mapping = PodMapping(**options)
    assert mapping.rules() == rules
    assert mapping.reads_pods is (PODS in rules)


def test_the_rules_of_one_mapping_are_not_those_of_the_next():
    mapping = PodMapping(enable_pod_uid=True)
    mapping.rules()[0]["verbs"].append("delete")
    assert mapping.rules() == [PODS]


def test_lists_changed_afterwards_change_nothing():
    names, expressions = [SHARED], ["app"]
    mapping = PodMapping(nvidia_resource_names=names, enable_pod_labels=True, pod_label_allowlist_regex=expressions)
    names.append("example.com/other")
    expressions.append("team")
    assert (mapping.nvidia_resource_names, mapping.pod_label_allowlist_regex) == ((SHARED,), ("app",))


def test_mappings_of_the_same_options_are_equal_and_can_be_keys():
    assert len({PodMapping(nvidia_resource_names=[SHARED]), PodMapping(nvidia_resource_names=(SHARED,))}) == 1


# Time slicing.


def test_time_slicing_switches_on_what_goes_together():
    assert PodMapping.time_slicing(nvidia_resource_names=[SHARED], kubelet_path="/k") == PodMapping(
        virtual_gpus=True, host_pid=True, enable_pod_uid=True, nvidia_resource_names=[SHARED], kubelet_path="/k"
    )


@pytest.mark.parametrize(
    ("sharing", "release", "mapping"),
    [
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
    ],
)
def test_true_takes_what_fits_the_sharing_as_far_as_the_release_can(sharing, release, mapping):
    assert PodMapping.of(True, sharing, release) == mapping


def test_false_is_no_mapping():
    assert PodMapping.of(False, SLICED, "3.4.2") is None


def test_a_mapping_stays_what_it_is_whatever_the_sharing():
    mapping = PodMapping(enable_dra=True)
    assert PodMapping.of(mapping, SLICED, "4.8.3") is mapping


def test_a_release_that_names_one_pod_of_a_shared_gpu_is_refused_with_sharing():
    assert refusal(PodMapping.of, True, SLICED, "4.0.2") == (
        "sharing must be left out with version '4.0.2', which names one of the pods that share a GPU and no other; "
        "got 'time-slicing'; take version '4.8.2' or later"
    )


# First releases: the first tag of NVIDIA/dcgm-exporter whose pkg/cmd/app.go reads the variable.
@pytest.mark.parametrize(
    ("option", "value", "before", "first"),
    [
        ("nvidia_resource_names", [SHARED], "3.4.2", "3.5.0"),
        ("virtual_gpus", True, "4.0.2", "4.0.3"),
        ("enable_pod_labels", True, "4.1.3", "4.2.0"),
        ("enable_dra", True, "4.3.9", "4.4.0"),
        ("enable_pod_uid", True, "4.4.9", "4.5.0"),
        ("host_pid", True, "4.8.1", "4.8.2"),
    ],
)
def test_an_option_is_refused_before_the_release_that_brought_it(option, value, before, first):
    mapping = PodMapping(**{option: value})
    assert PodMapping.of(mapping, None, first) is mapping
    assert refusal(PodMapping.of, mapping, None, before) == (
        f"pod_mapping.{option} must be left out with version {before!r}: it came with {first}; take a later version"
    )


def test_the_list_of_pod_labels_is_younger_than_the_labels():
    mapping = PodMapping(enable_pod_labels=True, pod_label_allowlist_regex=["app"])
    assert PodMapping.of(mapping, None, "4.6.0") is mapping
    assert refusal(PodMapping.of, mapping, None, "4.5.2") == (
        "pod_mapping.pod_label_allowlist_regex must be left out with version '4.5.2': it came with 4.6.0; take a "
        "later version"
    )


# What is refused.

STOPS = (
    "must be left out with virtual_gpus=True: the exporter then writes one series for each pod and stops before it; "
    "choose one of the two"
)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"pod_label_allowlist_regex": "app"}, "pod_label_allowlist_regex must be a list, got 'app' (str)"),
        ({"pod_label_allowlist_regex": [5]}, "pod_label_allowlist_regex[0] must be str; got int: 5"),
        (
            {"pod_label_allowlist_regex": ["app"]},
            "pod_label_allowlist_regex must be left out without enable_pod_labels=True: no label is taken then; "
            "got ['app']",
        ),
        (
            {"pod_label_allowlist_regex": ["a{1,2}"], "enable_pod_labels": True},
            "pod_label_allowlist_regex must hold expressions without a comma, at which the exporter splits its list; "
            "got 'a{1,2}'; write them apart",
        ),
        (
            {"pod_label_allowlist_regex": ["("], "enable_pod_labels": True},
            "pod_label_allowlist_regex must hold regular expressions that RE2 reads; got '(': missing ), unterminated "
            "subpattern",
        ),
        (
            {"pod_label_allowlist_regex": ["(?!x)app"], "enable_pod_labels": True},
            "pod_label_allowlist_regex must hold regular expressions that RE2 reads; got '(?!x)app': RE2 has no '(?!'",
        ),
        (
            {"nvidia_resource_names": SHARED},
            "nvidia_resource_names must be a list, got 'nvidia.com/gpu.shared' (str)",
        ),
        (
            {"nvidia_resource_names": ["gpu"]},
            "nvidia_resource_names must hold resources like 'nvidia.com/gpu.shared'; got 'gpu'",
        ),
        (
            {"nvidia_resource_names": [f"{SHARED},example.com/gpu"]},
            "nvidia_resource_names must hold resources like 'nvidia.com/gpu.shared'; "
            "got 'nvidia.com/gpu.shared,example.com/gpu'",
        ),
        ({"virtual_gpus": True, "enable_pod_labels": True}, f"enable_pod_labels {STOPS}"),
        ({"virtual_gpus": True, "enable_dra": True}, f"enable_dra {STOPS}"),
        (
            {"gpu_id_type": "uuid"},
            "gpu_id_type must be one of 'uid', 'device-name'; got 'uuid' (did you mean 'uid'?)",
        ),
        ({"kubelet_path": "var/lib"}, "kubelet_path must be an absolute path without '..'; got 'var/lib'"),
        ({"kubelet_path": "/var/../etc"}, "kubelet_path must be an absolute path without '..'; got '/var/../etc'"),
        ({"enable_pod_uid": "yes"}, "enable_pod_uid must be bool; got str: 'yes'"),
        ({"host_pid": 1}, "host_pid must be bool; got int: 1"),
    ],
    ids=str,
)
def test_what_the_exporter_would_not_take_is_refused(given, problem):
    assert refusal(PodMapping, **given) == f"pod_mapping.{problem}"


def test_a_member_it_does_not_have_is_refused_with_the_nearest():
    assert refusal(PodMapping, pod_labels=True) == (
        "pod_labels is no member of PodMapping (did you mean 'enable_pod_labels'?)"
    )


def test_time_slicing_takes_nothing_that_contradicts_it():
    assert refusal(PodMapping.time_slicing, enable_dra=True) == "enable_dra is no keyword of PodMapping.time_slicing"


@pytest.mark.parametrize("expression", [r"[(?=]+", r"\pL+", r"(?i)app", r"(?<n>a)", r"[[:alpha:]]+"])
def test_expressions_that_re2_reads_are_left_alone(expression):
    mapping = PodMapping(enable_pod_labels=True, pod_label_allowlist_regex=[expression])
    assert mapping.environment()["DCGM_EXPORTER_KUBERNETES_POD_LABEL_ALLOWLIST_REGEX"] == expression

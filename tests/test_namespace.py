import cdk8s_plus_27 as kplus
import pytest
from cdk8s import ApiObjectMetadata, Chart

from gpu_constructs import (
    DevicePluginChart,
    External,
    GpuConstructsError,
    GpuConstructsWarning,
    GpuNamespace,
    GpuWorkload,
    Kubernetes,
    synthesize,
)
from gpu_constructs.namespace import component_namespace, namespace_name

MODES = ("enforce", "audit", "warn")
NOT_DEFAULT = (
    "namespace must not be 'default': GPU components need a namespace whose Pod Security level is privileged; "
    "leave it out for 'nvidia-gpu-operator' or name one of your own"
)


def refusal(chart, **given):
    with pytest.raises(GpuConstructsError) as refused:
        GpuNamespace(chart, "namespace", **given)
    return refused.value.problem


def test_a_namespace_states_its_pod_security_level(chart, objects, snapshot):
    GpuNamespace(chart, "namespace")
    assert objects(chart) == snapshot


@pytest.mark.parametrize("level", ["privileged", "baseline", "restricted"])
def test_the_level_chosen_is_enforced_audited_and_warned_of(chart, objects, level):
    GpuNamespace(chart, "namespace", name="ollama", pod_security=level)
    (namespace,) = objects(chart)
    assert namespace["metadata"] == {
        "name": "ollama",
        "labels": {f"pod-security.kubernetes.io/{mode}": level for mode in MODES},
    }


def test_further_labels_stand_beside_the_level(chart, objects):
    version = "pod-security.kubernetes.io/enforce-version"
    GpuNamespace(chart, "namespace", labels={"team": "ml", version: "v1.33"})
    (namespace,) = objects(chart)
    labels = namespace["metadata"]["labels"]
    assert labels["team"] == "ml"
    assert labels[version] == "v1.33"
    assert labels["pod-security.kubernetes.io/enforce"] == "privileged"


def test_a_namespace_lies_in_no_namespace(app, objects):
    chart = Chart(app, "gpu", namespace="team")
    GpuNamespace(chart, "namespace")
    (namespace,) = objects(chart)
    assert "namespace" not in namespace["metadata"]


def test_a_construct_knows_its_name_and_level(chart):
    namespace = GpuNamespace(chart, "namespace", name="ollama", pod_security="restricted")
    assert (namespace.name, namespace.pod_security) == ("ollama", "restricted")


@pytest.mark.parametrize("name", ["", "GPU", "a.b", "a_b", "-a", "x" * 64])
def test_a_name_that_is_no_dns_label_is_refused(chart, name):
    assert refusal(chart, name=name) == (
        "name must be a DNS label (a-z, 0-9 and '-', at most 63 characters, letter or digit at both ends); "
        f"got {name!r}"
    )


def test_a_misspelt_level_is_refused_with_the_one_that_was_meant(chart):
    assert refusal(chart, pod_security="privleged") == (
        "pod_security must be one of 'privileged', 'baseline', 'restricted'; got 'privleged' "
        "(did you mean 'privileged'?)"
    )


@pytest.mark.parametrize("mode", MODES)
def test_a_label_that_restates_the_level_is_refused(chart, mode):
    label = f"pod-security.kubernetes.io/{mode}"
    assert refusal(chart, labels={"a": "b", label: "baseline"}) == (
        f"labels must not hold {label!r}; set pod_security instead"
    )


def test_a_label_that_restates_the_level_is_refused_behind_one_that_does_not(chart):
    labels = {"pod-security.kubernetes.io/enforce-version": "v1.33", "pod-security.kubernetes.io/warn": "baseline"}
    assert refusal(chart, labels=labels) == (
        "labels must not hold 'pod-security.kubernetes.io/warn'; set pod_security instead"
    )


@pytest.mark.parametrize(
    ("labels", "problem"),
    [
        ({"a b": "c"}, "labels has a key that is no label key; got 'a b'"),
        ({"a": 1}, "labels['a'] must be str; got int: 1"),
    ],
)
def test_labels_kubernetes_refuses_are_refused(chart, labels, problem):
    assert refusal(chart, labels=labels) == problem


def test_a_name_of_another_type_is_refused_as_a_python_type(chart):
    assert refusal(chart, name=5) == "name must be str; got int: 5"


def test_a_namespace_is_named_by_text_or_object(chart):
    plus = kplus.Namespace(chart, "plus", metadata=ApiObjectMetadata(name="from-plus"))
    assert namespace_name("team") == "team"
    assert namespace_name(GpuNamespace(chart, "ours", name="ours")) == "ours"
    assert namespace_name(plus) == "from-plus"
    assert namespace_name("default") == "default"


@pytest.mark.parametrize("given", ["a.b", "Team", ""])
def test_a_namespace_named_by_text_must_be_a_dns_label(given):
    with pytest.raises(GpuConstructsError, match=r"^namespace must be a DNS label"):
        namespace_name(given)


def test_gpu_components_do_not_live_in_default_by_name_or_object(chart):
    plus = kplus.Namespace(chart, "plus", metadata=ApiObjectMetadata(name="default"))
    for given in ("default", GpuNamespace(chart, "ours", name="default"), plus):
        with pytest.raises(GpuConstructsError) as refused:
            component_namespace(given)
        assert str(refused.value) == NOT_DEFAULT


def test_the_plugin_refuses_default_before_it_joins_the_app(app):
    with pytest.raises(GpuConstructsError) as refused:
        DevicePluginChart(app, "plugin", namespace="default")
    assert str(refused.value) == f"plugin: {NOT_DEFAULT}"
    assert app.charts == []


def test_default_is_allowed_by_name_or_object_where_the_user_says_so(chart):
    for given in ("default", GpuNamespace(chart, "ours", name="default")):
        assert component_namespace(given, allow_default=True) == "default"


def test_leave_to_take_default_changes_nothing_for_other_namespaces():
    assert component_namespace("gpu", allow_default=True) == component_namespace("gpu") == "gpu"
    with pytest.raises(GpuConstructsError, match=r"^namespace must be a DNS label"):
        component_namespace("Default", allow_default=True)


def workloads(app, chart, *namespaces):
    External(app, "labels", node_labels=["nvidia.com/*"])
    for number, namespace in enumerate(namespaces):
        GpuWorkload(chart, f"w{number}", image="a:1", platform=Kubernetes(), namespace=namespace)


def test_a_chart_whose_workloads_go_to_default_by_silence_is_warned_of_once(app):
    workloads(app, Chart(app, "team"), None, None, "default")
    said = "team: states no namespace, so its workloads go to 'default'; pass namespace= to the Chart"
    with pytest.warns(GpuConstructsWarning) as told:
        synthesize(app)
    assert [str(one.message).startswith(said) for one in told] == [True]


@pytest.mark.parametrize(("of_chart", "own"), [("default", None), (None, "default")])
def test_default_may_be_stated(app, of_chart, own):
    workloads(app, Chart(app, "team", namespace=of_chart), own)
    synthesize(app)

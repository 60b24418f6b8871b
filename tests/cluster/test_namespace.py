import cdk8s_plus_27 as kplus
import pytest
from cdk8s import ApiObjectMetadata, Chart

import refusals
from gpu_constructs import (
    External,
    GpuConstructsError,
    GpuConstructsWarning,
    GpuNamespace,
    GpuWorkload,
    Kubernetes,
    synthesize,
)
from gpu_constructs.cluster.namespace import component_namespace, namespace_name
from tables import cases

MODES = ("enforce", "audit", "warn")
NOT_DEFAULT = (
    "namespace must not be 'default', because GPU components need the Pod Security level privileged. Leave it out for "
    "'nvidia-gpu-operator' or use another namespace"
)


def refusal(chart, **given):
    return refusals.refusal(GpuNamespace, chart, "namespace", **given).removeprefix("gpu/namespace: ")


def test_a_namespace_states_its_pod_security_level(chart, objects, snapshot):
    GpuNamespace(chart, "namespace")
    assert objects(chart) == snapshot


def test_further_labels_stand_beside_the_level(chart, objects):
    version = "pod-security.kubernetes.io/enforce-version"
    GpuNamespace(chart, "namespace", labels={"team": "ml", version: "v1.33"})
    (namespace,) = objects(chart)
    labels = namespace["metadata"]["labels"]
    assert labels["team"] == "ml"
    assert labels[version] == "v1.33"
    assert labels["pod-security.kubernetes.io/enforce"] == "privileged"


@pytest.mark.parametrize("name", ["", "GPU", "a.b", "a_b", "-a", "x" * 64])
def test_a_name_that_is_no_dns_label_is_refused(chart, name):
    assert refusal(chart, name=name) == (
        "name must be a DNS label (a-z, 0-9 and '-', at most 63 characters, letter or digit at both ends), "
        f"got {name!r}"
    )


@pytest.mark.parametrize("mode", MODES)
def test_a_label_that_restates_the_level_is_refused(chart, mode):
    label = f"pod-security.kubernetes.io/{mode}"
    assert refusal(chart, labels={"a": "b", label: "baseline"}) == (
        f"labels must not contain {label!r}. Set pod_security instead"
    )


@cases
def test_labels_kubernetes_refuses_are_refused(chart, labels, problem):
    assert refusal(chart, labels=labels) == problem


def test_a_namespace_is_named_by_text_or_object(chart):
    plus = kplus.Namespace(chart, "plus", metadata=ApiObjectMetadata(name="from-plus"))
    assert namespace_name("team") == "team"
    assert namespace_name(GpuNamespace(chart, "ours", name="ours")) == "ours"
    assert namespace_name(plus) == "from-plus"
    assert namespace_name("default") == "default"


def test_a_namespace_named_by_text_must_be_a_dns_label():
    for given in ["a.b", "Team", ""]:
        with pytest.raises(GpuConstructsError, match=r"^namespace must be a DNS label"):
            namespace_name(given)


def test_gpu_components_do_not_live_in_default_by_name_or_object(chart):
    plus = kplus.Namespace(chart, "plus", metadata=ApiObjectMetadata(name="default"))
    for given in ("default", GpuNamespace(chart, "ours", name="default"), plus):
        assert refusals.refusal(component_namespace, given) == NOT_DEFAULT


def test_default_is_allowed_by_name_or_object_if_the_caller_allows_it(chart):
    for given in ("default", GpuNamespace(chart, "ours", name="default")):
        assert component_namespace(given, allow_default=True) == "default"


def workloads(app, chart, *namespaces):
    External(app, "labels", node_labels=["nvidia.com/*"])
    for number, namespace in enumerate(namespaces):
        GpuWorkload(chart, f"w{number}", image="a:1", platform=Kubernetes(), namespace=namespace)


def test_a_chart_without_a_namespace_causes_one_warning(app):
    workloads(app, Chart(app, "team"), None, None, "default")
    said = "team: has no namespace, so its workloads go to 'default'. Pass namespace= to the Chart"
    with pytest.warns(GpuConstructsWarning) as told:
        synthesize(app)
    assert [str(one.message).startswith(said) for one in told] == [True]


@pytest.mark.parametrize(("of_chart", "own"), [("default", None), (None, "default")])
def test_default_may_be_stated(app, of_chart, own):
    workloads(app, Chart(app, "team", namespace=of_chart), own)
    synthesize(app)

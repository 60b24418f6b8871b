import pytest
from cdk8s import Chart, Testing

import cel
import refusals
import schemas
from gpu_constructs import GpuNamespace, Kubernetes, NvidiaRuntimeClass, Talos, Toleration
from gpu_constructs.cluster.admission.runtime_injection import GpuRuntimeInjection
from tables import cases

NEW = Talos("1.13")
OLD = Talos("1.12")
DEDICATED = Toleration(key="dedicated", value="ai", effect="NoSchedule")
DEFAULT_TOLERATIONS = [
    {"key": f"node.kubernetes.io/{why}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for why in ("not-ready", "unreachable")
]


def container(limits=None, **more):
    return {"name": "main", "image": "a:1", **({} if limits is None else {"resources": {"limits": limits}}), **more}


def pod(*containers, **spec):
    return {"metadata": {"name": "pod"}, "spec": {"containers": list(containers), **spec}}


def policy_of(chart, **given):
    GpuRuntimeInjection(chart, "injection", **{"platform": NEW, **given})
    return Testing.synth(chart)[0]


def refusal(chart, **given):
    return refusals.refusal(GpuRuntimeInjection, chart, "injection", **{"platform": NEW, **given}).removeprefix(
        "gpu/injection: "
    )


def test_the_policy_and_its_binding_are_as_before(chart, snapshot):
    GpuRuntimeInjection(chart, "injection", platform=NEW)
    assert Testing.synth(chart) == snapshot


@pytest.mark.parametrize("release", ["1.36", "1.37"])
def test_every_kubernetes_that_serves_the_policy_takes_it(chart, release):
    GpuRuntimeInjection(chart, "injection", platform=NEW)
    for manifest in Testing.synth(chart):
        assert schemas.kubernetes_errors(manifest, release) == []


def test_a_toleration_is_added_behind_those_that_are_there(chart):
    policy = policy_of(chart, tolerations=[DEDICATED, Toleration(key="nvidia.com/gpu", operator="Exists")])
    found = cel.mutated(policy, pod(container({"nvidia.com/gpu": 1}), tolerations=DEFAULT_TOLERATIONS))
    assert found["spec"]["tolerations"] == [
        *DEFAULT_TOLERATIONS,
        {"key": "dedicated", "operator": "Equal", "value": "ai", "effect": "NoSchedule"},
        {"key": "nvidia.com/gpu", "operator": "Exists"},
    ]


@cases
@pytest.mark.parametrize("kind", ["containers", "initContainers"])
def test_every_gpu_resource_counts_in_every_container(chart, limits, kind):
    given = pod(container())
    given["spec"].setdefault(kind, []).append(container(limits))
    assert cel.mutated(policy_of(chart), given)["spec"]["runtimeClassName"] == "nvidia"


@cases
def test_other_pods_are_unchanged(chart, given):
    assert cel.mutated(policy_of(chart), given) == given


def test_a_second_injection_changes_nothing(chart):
    policy = policy_of(chart)
    once = cel.mutated(policy, pod(container({"nvidia.com/gpu": "1"})))
    assert cel.mutated(policy, once) == once
    assert policy["spec"]["reinvocationPolicy"] == "IfNeeded"


@cases
def test_a_toleration_is_added_if_the_pod_tolerates_less(chart, there, asked, is_enough):
    found = cel.mutated(
        policy_of(chart, tolerations=[asked]), pod(container({"nvidia.com/gpu": "1"}), tolerations=[there])
    )
    assert found["spec"]["tolerations"] == [there] if is_enough else [there, asked.to_manifest()]


def test_without_tolerations_the_runtime_class_alone_is_set(chart):
    policy = policy_of(chart, tolerations=[])
    found = cel.mutated(policy, pod(container({"nvidia.com/gpu": "1"})))
    assert "tolerations" not in found["spec"]
    assert found["spec"]["runtimeClassName"] == "nvidia"


def selector_of(chart, **given):
    GpuRuntimeInjection(chart, "injection", platform=NEW, **given)
    binding = next(m for m in Testing.synth(chart) if m["kind"].endswith("Binding"))
    return binding["spec"]["matchResources"]["namespaceSelector"]


def test_all_namespaces_but_the_excluded_ones_are_selected(chart):
    selector = selector_of(chart, excluded_namespaces=["kube-system", GpuNamespace(chart, "n", name="gpu")])
    assert [cel.selects(selector, name) for name in ("team", "kube-system", "gpu")] == [True, False, False]


def test_namespaces_can_be_named(chart):
    selector = selector_of(chart, namespaces=["kubeflow", "kube-system"])
    assert [cel.selects(selector, name) for name in ("kubeflow", "team", "kube-system")] == [True, False, False]


def test_a_failure_refuses_the_pod_inside_the_api_server_and_not_at_a_webhook(app):
    found = [
        policy_of(Chart(app, f"c{number}"), **given)["spec"]["failurePolicy"]
        for number, given in enumerate(
            [{}, {"flavor": "kyverno"}, {"failure_policy": "Ignore"}, {"flavor": "kyverno", "failure_policy": "Fail"}]
        )
    ]
    assert found == ["Fail", "Ignore", "Ignore", "Fail"]


def test_the_policy_of_kyverno_decides_the_same_for_pods_only(app):
    native, kyverno = Chart(app, "native"), Chart(app, "kyverno")
    expected = policy_of(native)["spec"]
    selector = Testing.synth(native)[1]["spec"]["matchResources"]["namespaceSelector"]
    GpuRuntimeInjection(kyverno, "injection", platform=OLD, flavor="kyverno")
    (found,) = Testing.synth(kyverno)
    assert (found["apiVersion"], found["kind"]) == ("policies.kyverno.io/v1", "MutatingPolicy")
    assert found["metadata"] == {"name": "gpu-runtime-injection"}
    assert found["spec"] == {
        **expected,
        "matchConstraints": {**expected["matchConstraints"], "namespaceSelector": selector},
        "failurePolicy": "Ignore",
        "autogen": {"podControllers": {"controllers": []}},
    }


@cases
def test_an_older_kubernetes_is_refused(chart, platform, shown):
    assert refusal(chart, platform=platform, runtime_class="nvidia") == (
        f"platform must have Kubernetes 1.36 or later, which serves MutatingAdmissionPolicy, got {shown}. "
        "Use flavor='kyverno', which needs Kyverno 1.17"
    )


def test_a_platform_without_a_runtime_class_needs_one(chart):
    assert refusal(chart, platform=Kubernetes("1.36")) == (
        "runtime_class must be set on platform Kubernetes 1.36, because the platform has no default, got None. Set the "
        "runtime class to inject"
    )
    given = NvidiaRuntimeClass(chart, "runtime", name="nvidia-cdi")
    GpuRuntimeInjection(chart, "injection", platform=Kubernetes("1.36"), runtime_class=given)
    policy = Testing.synth(chart)[1]
    assert cel.mutated(policy, pod(container({"nvidia.com/gpu": "1"})))["spec"]["runtimeClassName"] == "nvidia-cdi"


@cases
def test_invalid_input_is_rejected(chart, given, problem):
    assert refusal(chart, **given) == problem

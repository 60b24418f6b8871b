"""Workloads in the values of Helm releases, as rules, plans and GpuAccess see them."""

import pytest
import yaml
from cdk8s import ApiObject, App, Chart, JsonPatch, Testing

from gpu_constructs import (
    Backend,
    GpuAccess,
    GpuConstructsError,
    GpuInventory,
    GpuNode,
    GpuProfile,
    Kubernetes,
    plan_capacity,
)
from gpu_constructs.checks.cluster_checks import check
from gpu_constructs.checks.rules.table import broken_rules
from gpu_constructs.facts.app import Facts
from gpu_constructs.facts.provided import Provided
from tables import beside

TABLE = beside(__file__, "charts")
WHERE = ("runtimeClassName", "nodeSelector", "tolerations")
CLASSES = [
    {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name}, "handler": "nvidia"}
    for name in ("nvidia", "own")
]
FLUX = beside(__file__, "charts")["flux"]
NODES = GpuInventory(nodes=[GpuNode(name="n", gpu_model="RTX 3090", gpus=64)])


def flux(values, **more):
    return {**FLUX, "spec": {**more, "values": values}}


def argo(source, **helm):
    """Return an Application with one source, or with the source as the second of several."""
    made = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": "app", "namespace": "argo"},
    }
    inner = {**source, "helm": helm}
    sources = (
        {"sources": [{"repoURL": "https://a", "ref": "values"}, inner]} if "repoURL" in source else {"source": inner}
    )
    return {**made, "spec": {"destination": {"namespace": "ai"}, **sources}}


def source(kind, **spec):
    return {
        "apiVersion": "source.toolkit.fluxcd.io/v1",
        "kind": kind,
        "metadata": {"name": "src", "namespace": "ai"},
        "spec": spec,
    }


def forms(chart, values):
    """Yield the objects of a release in each way that the library reads, and the path of its values."""
    yield [flux(values, chart={"spec": {"chart": chart}})], "spec.values"
    for kind, spec in (("OCIRepository", {"url": f"oci://a/b/{chart}"}), ("HelmChart", {"chart": f"./charts/{chart}"})):
        release = flux(values, chartRef={"kind": kind, "name": "src"})
        yield [source(kind, **spec), release], "spec.values"
    yield [argo({"chart": chart}, valuesObject=values, values="not: read")], "spec.source.helm.valuesObject"
    yield [argo({"path": f"charts/{chart}"}, values=yaml.safe_dump(values))], "spec.source.helm.values"
    yield [argo({"repoURL": "a", "chart": chart}, valuesObject=values)], "spec.sources[1].helm.valuesObject"


def planned(objects):
    """Return the pods of a plan: their number and devices, and where they run."""
    found = {}
    for one in plan_capacity(objects, NODES).consumers:
        consumer = one.consumer
        asks = " ".join(f"{count} {resource}" for resource, count in consumer.asks.items())
        where = {key: consumer.pod_spec[key] for key in WHERE if consumer.pod_spec.get(key)}
        found[f"{consumer.kind} {consumer.title}"] = {"pods": f"{consumer.copies} x {asks}", **where}
    return found


@pytest.mark.parametrize("row", TABLE["charts"], ids=lambda row: row["about"])
def test_plans_and_rules_see_the_workloads_of_a_known_chart_in_each_form_of_a_release(row):
    for objects, _ in forms(row["chart"], row["values"]):
        plan = plan_capacity(objects, NODES)
        assert planned(objects) == row["plan"]
        assert not plan.conditions
        provided = [Provided(gpu_runtime="runtime-class", node_labels=("gpu",))]
        broken = {one.code for one in broken_rules(Facts([*CLASSES, *objects], provided)) if one.code != "R26"}
        assert broken == set(row.get("rules", ()))


@pytest.mark.parametrize("row", TABLE["uncounted"], ids=lambda row: row["about"])
def test_a_plan_lists_the_values_that_ask_for_gpus_that_it_cannot_count(row):
    for objects, place in forms(row["chart"], row["values"]):
        kind, named = objects[-1]["kind"], objects[-1]["metadata"]["namespace"]
        says = [condition.what for condition in plan_capacity(objects, NODES).conditions]
        assert len(says) == len(row["at"])
        for text, path in zip(says, row["at"], strict=True):
            assert f"{kind} {named}/app that request nvidia.com/gpu at {place}.{path}:" in text


def test_a_plan_states_that_values_elsewhere_can_change_gpus():
    gpus = {"ollama": {"gpu": {"enabled": True}}}
    further = flux(gpus, chart={"spec": {"chart": "ollama"}}, valuesFrom=[{"kind": "ConfigMap", "name": "x"}])
    files = argo({"chart": "ollama"}, valuesObject=gpus, valueFiles=["$values/a.yaml"])
    parameters = argo({"chart": "ollama"}, valuesObject=gpus, parameters=[{"name": "replicaCount", "value": "9"}])
    for release, place in (
        (further, "spec.valuesFrom"),
        (files, "spec.source.helm.valueFiles"),
        (parameters, "spec.source.helm.parameters"),
    ):
        (condition,) = plan_capacity([release], NODES).conditions
        assert f"reads through {place}, and that the plan does not read, leave" in condition.what


def test_values_that_are_not_a_mapping_are_an_error():
    for values, got in (("a: b: c", "text that YAML readers reject in line 1"), ("- a", "list"), ("word", "str")):
        found = check([argo({"chart": "ollama"}, values=values)], ())
        problem = f"spec.source.helm.values must be a YAML mapping, got {got}. Correct the values"
        assert problem in [one.problem for one in found if not one.is_warning]


def test_the_annotations_of_a_release_apply_to_its_workloads():
    release = flux({"ollama": {"gpu": {"enabled": True}}}, chart={"spec": {"chart": "ollama"}})
    annotations = {"gpu-constructs/vram": "8Gi", "gpu-constructs/ignore-rules": "R04,R19"}
    release["metadata"] = {**release["metadata"], "annotations": annotations}
    assert plan_capacity([release], NODES).consumers[0].consumer.vram_mib == 8192
    found = broken_rules(Facts([*CLASSES, release], [Provided(gpu_runtime="runtime-class")]))
    assert not {one.code for one in found} & {"R04", "R19"}


def in_tree(chart, manifests):
    """Return the objects of a chart that cdk8s renders as these manifests."""
    made = []
    for number, one in enumerate(manifests):
        parts = {"api_version": one["apiVersion"], "kind": one["kind"], "metadata": one["metadata"]}
        made.append(ApiObject(chart, f"{one['kind']}-{number}", **parts))
        made[-1].add_json_patch(JsonPatch.add("/spec", one["spec"]))
    return made


def values_at(manifest, place):
    for step in place.replace("[", ".").replace("]", "").split("."):
        manifest = manifest[int(step) if step.isdecimal() else step]
    return yaml.safe_load(manifest) if place.endswith("helm.values") else manifest


@pytest.mark.parametrize("row", TABLE["access"], ids=lambda row: row["about"])
def test_gpu_access_writes_gpus_into_the_values_of_a_known_chart(row):
    for number, (manifests, place) in enumerate(forms(row["chart"], row["values"])):
        chart = Chart(App(), f"c{number}")
        release = in_tree(chart, manifests)[-1]
        access = GpuAccess(count=1, container=row.get("container"))
        access.apply_to(release)
        access.apply_to(chart)
        made = Testing.synth(chart)
        assert values_at(made[-1], place) == row["gives"]
        assert {**made[-1], "spec": None} == {**manifests[-1], "spec": None}
        assert all(pods["runtimeClassName"] == "nvidia" for pods in planned(made).values())
        assert planned(made)


def test_gpu_access_explains_why_a_release_cannot_have_gpus():
    gpu = {"ollama": {"gpu": {"enabled": True, "number": 2}}}
    both = {"controllers": {name: {"containers": {"app": {}}} for name in ("one", "two")}}
    claims = GpuProfile(platform=Kubernetes("1.35"), backend=Backend.dra_claims())
    for chart, values, options, problem in (
        (
            "other",
            {},
            {"count": 1},
            "GpuAccess knows only the Helm values of the charts app-template",
        ),
        ("app-template", both, {"count": 1}, "container must be the name of a container in one workload of the chart"),
        ("ollama", {}, {"shared_memory": "1Gi"}, "because the Helm values of the chart have no key for this field"),
        ("ollama", {}, {"profile": claims}, "pods of a HelmRelease have no field for claims"),
        ("ollama", gpu, {"count": 1}, "nvidia.com/gpu"),
    ):
        release = flux(values, chart={"spec": {"chart": chart}})
        with pytest.raises(GpuConstructsError) as refused:
            GpuAccess(**options).apply_to(in_tree(Chart(App(), "c"), [release])[0])
        assert str(refused.value).startswith("c/HelmRelease-0: ")
        assert problem in str(refused.value)

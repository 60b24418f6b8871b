"""Findings of the checks about the constructs of an app, with their paths. test_findings.py has plain manifests."""

import cdk8s_plus_27 as kplus
import pytest
from cdk8s import ApiObject, ApiObjectMetadata, App, Chart, Include, JsonPatch, Testing
from constructs import Construct

import cel
from gpu_constructs import (
    DcgmExporter,
    DenyVisibleDevicesOverride,
    DevicePluginChart,
    External,
    GpuNamespace,
    GpuRules,
    GpuWorkload,
    Kubernetes,
    NvidiaRuntimeClass,
    PowerLimit,
    Run,
    Sharing,
    SynthesisError,
    Talos,
    synthesize,
)
from gpu_constructs.checks.cluster_checks import check as check_app
from gpu_constructs.checks.rules.table import CODES, RuleSettings
from gpu_constructs.cluster.admission.visible_devices import ALLOW_LABEL
from gpu_constructs.facts.provided import Provided
from gpu_constructs.tree.manifest import Manifest
from tables import beside, cases

GPU = "nvidia.com/gpu"
SLOT = "nvidia.com/gpu.shared"
PROFILE = "nvidia.com/mig-1g.10gb"
PRESENT = "nvidia.com/gpu.present"
PRODUCT = "nvidia.com/gpu.product"
SHARED = Sharing.time_slicing(replicas=4)
# The checks that use the declarations of providers. test_rules.py tests the others.
OF_PROVIDERS = RuleSettings(ignore=frozenset(CODES) - {"R05", "R07", "R08", "R12", "R14", "R25"})


def obj(api_version, kind, name="x", namespace=None, **more):
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **more}


def namespace(name, **labels):
    made = obj("v1", "Namespace", name)
    if labels:
        made["metadata"]["labels"] = {f"pod-security.kubernetes.io/{mode}": level for mode, level in labels.items()}
    return made


def main(limits=None, **more):
    return {"name": "main", "image": "a:1"} | ({"resources": {"limits": limits}} if limits else {}) | more


def pod(limits=None, **spec):
    return {"containers": [main(limits)], **spec}


def deployment(name="x", namespace=None, **more):
    return obj("apps/v1", "Deployment", name, namespace, spec={"template": {"spec": pod(**more)}})


def check(manifests, provided):
    return check_app(manifests, provided, OF_PROVIDERS)


def problems_of(*apps):
    """Return all problems that a synth of the apps finds; an empty list if it succeeds."""
    try:
        synthesize(*apps)
    except SynthesisError as error:
        return error.problems
    return []


VISIBLE = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]


# An admission policy that rejects pods of the app.

CLASS = obj("node.k8s.io/v1", "RuntimeClass", "nvidia", handler="nvidia")


def guard_of(app, **given):
    """Return the declaration of an admission policy, and the policy."""
    chart = Chart(app, "guard")
    made = DenyVisibleDevicesOverride(chart, "policy", **given)
    return made.provides, Testing.synth(chart)[0]


def refused(provides, spec, namespace="team", labels=None):
    """Return the findings about a pod in a namespace of the app, which has a device plugin."""
    where = obj("v1", "Namespace", namespace) | {"metadata": {"name": namespace, "labels": labels}}
    made = obj("batch/v1", "Job", "x", namespace, spec={"template": {"spec": spec}})
    return [
        f
        for f in check_app([CLASS, where, made], [provides], OF_PROVIDERS)
        if "would not pass the policy of" in f.problem
    ]


UNSEEN = {"envFrom": [{"configMapRef": {"name": "a"}}]}
UNDER = {"runtimeClassName": "nvidia"}
JUDGED = beside(__file__, "cluster_checks")["judged"]


@cases
def test_synth_rejects_the_pods_that_the_policy_rejects(app, given):
    provides, policy = guard_of(app, **given)
    for spec in JUDGED:
        assert bool(refused(provides, spec)) is bool(cel.denials(policy, {"spec": spec})), spec


def test_a_pod_that_the_policy_rejects_is_reported_with_both_solutions(app):
    provides, _ = guard_of(app)
    (finding,) = refused(provides, JUDGED[0])
    assert (finding.subject, finding.providers, finding.is_warning) == (2, (0,), False)
    assert finding.problem == (
        "pods would not pass the policy of {0}: container 'main' sets NVIDIA_VISIBLE_DEVICES. If they need access to "
        "every GPU, add 'team' to its excluded_namespaces, or label the namespace with "
        f"GpuNamespace(..., labels={{{ALLOW_LABEL!r}: 'true'}})"
    )
    assert refused(provides, JUDGED[0], labels={ALLOW_LABEL: "false"})
    assert refused(provides, JUDGED[0], labels={ALLOW_LABEL: "true"}) == []
    assert refused(provides, JUDGED[0], namespace="kube-system") == []
    for kind in ("ServingRuntime", "ClusterServingRuntime"):
        # A runtime of KServe creates no pods.
        assert check([obj("serving.kserve.io/v1alpha1", kind, spec=JUDGED[0])], [provides]) == []
    # The runtime of an InferenceService can contain what is missing.
    predictor = {**UNDER, "model": {"modelFormat": {"name": "a"}}}
    service = obj("serving.kserve.io/v1beta1", "InferenceService", namespace="team", spec={"predictor": predictor})
    assert check([CLASS, namespace("team"), service, quota("limits.cpu")], [provides]) == []


def test_a_policy_that_admits_the_pods_is_not_reported(rows):
    for (given,) in rows:
        assert refused(guard_of(App(), **given)[0], JUDGED[0]) == []


def test_daemonsets_of_the_app_are_rejected_until_their_namespaces_are_exempt(app):
    labelled = App(outdir=app.outdir)
    for made, labels, said in [
        (app, {}, ["gpu/exporter: pods would not pass the policy of gpu/deny"]),
        (labelled, {ALLOW_LABEL: "true"}, []),
    ]:
        External(made, "labels", node_labels=[PRESENT])
        chart = Chart(made, "gpu")
        monitoring = GpuNamespace(chart, "monitoring", name="monitoring", pod_security="privileged", labels=labels)
        DcgmExporter(chart, "exporter", platform=Kubernetes(), namespace=monitoring)
        DenyVisibleDevicesOverride(chart, "deny")
        assert [problem.split(": container")[0] for problem in problems_of(made)] == said


def test_the_later_pods_of_an_operator_are_checked():
    later = Provided(privileged_namespaces=("operator",))
    provides, _ = guard_of(App())
    (finding,) = check([namespace("operator")], [later, provides])
    assert finding.problem.startswith(
        "creates pods in namespace 'operator' with access to every GPU, and {1} would reject"
    )
    assert finding.providers == (0, 1)
    provides, _ = guard_of(App(), excluded_namespaces=["operator"])
    assert check([namespace("operator")], [later, provides]) == []


# The Pod Security levels of namespaces in the app.


def quota(*keys, where="team", **spec):
    return obj("v1", "ResourceQuota", "x", where, spec={"hard": dict.fromkeys(keys, "9Gi"), **spec})


def test_an_invalid_manifest_does_not_crash_the_checks():
    for gone in [None, 3, {}, {"labels": ["a"], "name": 3}]:
        kinds = [("v1", "Namespace"), ("node.k8s.io/v1", "RuntimeClass"), ("apps/v1", "Deployment"), ("v1", "List")]
        check([{"apiVersion": api, "kind": kind, "metadata": gone} for api, kind in kinds], [])
    broken = deployment(namespace="default", containers=[None, 3, main(env=[None], securityContext=[])], volumes=[None])
    check([broken], [Provided(platform=Talos())])


# Objects of an app from any source, with construct paths.


def kplus_deployment(scope, patches, folder):
    made = kplus.Deployment(
        scope, "foreign", metadata=ApiObjectMetadata(namespace="team"), containers=[kplus.ContainerProps(image="a:1")]
    )
    ApiObject.of(made).add_json_patch(*patches)
    return "gpu/foreign"


def raw_deployment(scope, patches, folder):
    where = ApiObjectMetadata(name="foreign", namespace="team")
    made = ApiObject(scope, "foreign", api_version="apps/v1", kind="Deployment", metadata=where)
    made.add_json_patch(
        JsonPatch.add("/spec", {"strategy": {"type": "Recreate"}, "template": {"spec": pod()}}), *patches
    )
    return made.node.path


def included_deployment(scope, patches, folder):
    file = folder / "foreign.yaml"
    file.write_text(
        "{apiVersion: apps/v1, kind: Deployment, metadata: {name: foreign, namespace: team}, spec: {strategy: {type: "
        "Recreate}, template: {spec: {containers: [{name: main, image: 'a:1'}]}}}}"
    )
    (made,) = Include(scope, "foreign", url=str(file)).api_objects
    made.add_json_patch(*patches)
    return made.node.path


@pytest.mark.parametrize("make", [kplus_deployment, raw_deployment, included_deployment])
def test_a_problem_of_an_object_from_another_library_is_reported_with_its_path(app, chart, tmp_path, make):
    spec = {"runtimeClassName": "nvidia", "nodeSelector": {PRODUCT: "x"}, "hostNetwork": True}
    container = {"resources": {"limits": {"memory": "8Gi", PROFILE: 1}}, "env": VISIBLE}
    values = [*spec.items(), *((f"containers/0/{key}", value) for key, value in container.items())]
    path = make(chart, [JsonPatch.add(f"/spec/template/spec/{key}", value) for key, value in values], tmp_path)

    def said():
        return [problem.removeprefix(f"{path}: ") for problem in problems_of(app)]

    # cdk8s-plus drops an unknown limit.
    holds_gpu = make is not kplus_deployment
    for expected in [
        "namespace 'team' is not in this app",
        "runtime_class 'nvidia' has no RuntimeClass object in this app",
        *(["container 'main' has a GPU and sets NVIDIA_VISIBLE_DEVICES to 'all'"] if holds_gpu else []),
        f"selects nodes by the label {PRODUCT!r}, which nothing in this app publishes",
    ]:
        assert any(problem.startswith(expected) for problem in said()), expected
    kplus.Namespace(chart, "namespace", metadata=ApiObjectMetadata(name="team"))
    DevicePluginChart(app, "plugin", platform=Talos())
    problems = said()
    assert problems[0].startswith(
        "the API server would reject the pods: namespace 'team' of gpu/namespace sets no Pod Security level"
    )
    # Options of this library are not a solution for an object from another library.
    assert "Gpu" not in problems[0]
    assert "run_as_user" not in problems[0]
    held = ["container 'main' has a GPU and sets NVIDIA_VISIBLE_DEVICES", f"requests 1 x {PROFILE}"]
    said_of_gpus = [problem.split(" to 'all'")[0].split(", which no")[0] for problem in problems[1:]]
    assert said_of_gpus == (held if holds_gpu else [])


def test_a_duplicate_object_is_reported_with_both_paths(app):
    east, west = Chart(app, "east"), Chart(app, "west")
    GpuNamespace(east, "namespace", name="team")
    for chart in (east, west):
        Manifest(Construct(chart, "config"), "Default", obj("v1", "ConfigMap", namespace="team"))
    kplus.Namespace(west, "again", metadata=ApiObjectMetadata(name="team"))
    for scope, id in ((east, "a"), (Chart(east, "inner"), "b")):
        NvidiaRuntimeClass(scope, id)
    assert {problem.partition(". ")[0] for problem in problems_of(app)} == {
        "west/config: ConfigMap 'x' in namespace 'team' already exists in east/config",
        "west/again: Namespace 'team' already exists in east/namespace",
        "east/inner/b: RuntimeClass 'nvidia' already exists in east/a",
    }


def test_a_passed_namespace_and_runtime_class_are_emitted_once(app, chart):
    shared = {"namespace": GpuNamespace(chart, "namespace"), "runtime_class": NvidiaRuntimeClass(chart, "runtime")}
    DevicePluginChart(app, "plugin", **shared)
    GpuWorkload(chart, "train", image="a:1", kind="Job", **shared)
    PowerLimit(chart, "limit")
    DcgmExporter(chart, "exporter")
    assert problems_of(app) == []


def test_a_talos_workload_alone_needs_a_runtime_class_and_a_label(app, chart, expected):
    GpuWorkload(chart, "train", namespace="default", image="a:1", kind="Job")
    assert [problem.split(" ")[:2] for problem in problems_of(app)] == expected
    DevicePluginChart(app, "plugin")
    assert problems_of(app) == []


def test_without_node_feature_discovery_the_label_of_the_workloads_is_missing(app, chart):
    DevicePluginChart(app, "plugin", node_feature_discovery=False, gpu_feature_discovery=False)
    GpuWorkload(chart, "train", image="a:1", kind="Job")
    assert [problem.split(",")[0] for problem in problems_of(app)] == [
        f"gpu/train: selects nodes by the label {PRESENT!r}"
    ]


def test_a_restricted_namespace_admits_a_workload_as_a_user_and_rejects_it_as_root(app):
    chart = Chart(app, "gpu", namespace="team")
    GpuNamespace(chart, "namespace", name="team", pod_security="restricted")
    GpuWorkload(chart, "user", image="a:1", kind="Job", platform=Kubernetes(), run_as_user=1000)
    assert problems_of(app) == []
    GpuWorkload(chart, "root", image="a:1", kind="Job", platform=Kubernetes())
    (problem,) = problems_of(app)
    assert problem.startswith(
        "gpu/root: the API server would reject the pods: namespace 'team' of gpu/namespace enforces 'restricted', and "
    )
    assert "run_as_user=..." in problem


def test_requested_slots_are_compared_with_the_sharing_of_the_plugin(app, chart, expected):
    DevicePluginChart(app, "plugin", sharing=SHARED)
    GpuWorkload(chart, "train", image="a:1", kind="Job", gpus=2)
    made = GpuWorkload(chart, "patched", image="a:1", kind="Job")
    limits = "/spec/template/spec/containers/0/resources/limits"
    made.api_object.add_json_patch(JsonPatch.add(f"{limits}/nvidia.com~1gpu.shared", 1))
    assert problems_of(app) == expected


@cases
def test_a_workload_must_request_what_the_plugin_advertises(app, chart, plugin, given, is_found):
    DevicePluginChart(app, "plugin", **plugin)
    GpuWorkload(chart, "train", namespace="default", image="a:1", kind="Job", **given)
    GpuRules.enforce(app, ignore=["R07"])
    said = [problem.partition(" of this app")[0].partition(" x ")[2] for problem in problems_of(app)]
    resource = given.get("gpu_resource", GPU)
    assert said == ([f"{resource}, which no device plugin"] if is_found else [])


def test_an_unmanaged_workload_can_choose_its_gpus(app, chart):
    for kind in ["Deployment", "StatefulSet", "Job", "CronJob", "Pod"]:
        more = {"run": Run.cron_job(schedule="@daily")} if kind == "CronJob" else {"kind": kind}
        GpuWorkload(
            chart,
            kind.lower(),
            namespace="default",
            image="a:1",
            platform=Kubernetes(),
            env={"NVIDIA_VISIBLE_DEVICES": "all"},
            visible_devices="unmanaged",
            **more,
        )
    assert problems_of(app) == []


def test_the_facts_of_another_cluster_do_not_apply(tmp_path, expected):
    shared, own = (App(outdir=str(tmp_path / name)) for name in ("shared", "own"))
    DevicePluginChart(shared, "plugin", sharing=SHARED)
    GpuWorkload(Chart(own, "gpu"), "train", image="a:1", kind="Job", gpus=2)
    assert [problem.split(" ")[:3:2] for problem in problems_of(shared, own)] == expected


WANTED = {"runtime_classes": "nvidia", "node_labels": PRESENT, "namespaces": "team"}
SIGNS = {"runtime_classes": "runtime_class", "node_labels": "selects", "namespaces": "namespace"}


@pytest.mark.parametrize("declared", [(), *((keyword,) for keyword in WANTED), tuple(WANTED)])
def test_an_external_silences_exactly_what_it_declares(app, declared):
    """The declaration applies in the whole app, and only to its name."""
    GpuWorkload(Chart(app, "train", namespace="team"), "train", image="a:1", kind="Job")
    External(Construct(Chart(app, "deep"), "a"), "existing", **{keyword: [WANTED[keyword]] for keyword in declared})
    External(app, "other", runtime_classes=["other"], node_labels=["nvidia.com/gpu.count"], namespaces=["teams"])
    signs = {problem.split(" ")[1] for problem in problems_of(app)}
    assert signs == {SIGNS[keyword] for keyword in WANTED if keyword not in declared}


def test_a_runtime_class_has_one_owner(app, chart):
    External(app, "operator", runtime_classes=["nvidia"])
    NvidiaRuntimeClass(chart, "own", name="nvidia-own")
    assert problems_of(app) == []
    NvidiaRuntimeClass(chart, "runtime-class")
    assert problems_of(app) == [
        f"{chart.node.path}/runtime-class: RuntimeClass 'nvidia' already comes from operator, and two owners overwrite "
        "each other. Remove one of them"
    ]

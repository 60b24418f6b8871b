import importlib
import inspect
import traceback

import jsii
import pytest
import yaml
from cdk8s import ApiObject, ApiObjectMetadata, App, Chart, Include, JsonPatch, Testing
from constructs import Construct, IValidation

import schemas
from gpu_constructs import (
    Backend,
    DcgmExporter,
    External,
    GpuAccess,
    GpuConstructsError,
    GpuConstructsWarning,
    GpuProfile,
    GpuRequest,
    GpuResourceClaim,
    GpuWorkload,
    Kubernetes,
    Sharing,
    SynthesisError,
    synthesize,
)
from imports.org.kubeflow import Notebook, NotebookSpec, NotebookSpecTemplate
from refusals import check_refusals, problems
from tables import beside, cases

GPU = "nvidia.com/gpu"
RELEASES = (27, 33, 34)
CLAIMS = GpuProfile(platform=Kubernetes("1.35"), backend=Backend.dra_claims())
NEW = schemas.SUPPORTED_RELEASES[-1:]
KINDS = ("Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob", "Pod")


@pytest.fixture
def kplus():
    return importlib.import_module(f"cdk8s_plus_{RELEASES[-1]}")


def workload(kplus, chart, kind, **more):
    if kind == "CronJob":
        more["schedule"] = importlib.import_module("cdk8s").Cron.daily()
    return getattr(kplus, kind)(chart, "app", containers=[kplus.ContainerProps(image="a:1", port_number=80)], **more)


def typed(kplus, chart):
    k8s = kplus.k8s
    pod = k8s.PodSpec(containers=[k8s.Container(name="main", image="a:1")])
    template = k8s.PodTemplateSpec(metadata=k8s.ObjectMeta(labels={"app": "x"}), spec=pod)
    spec = k8s.DeploymentSpec(selector=k8s.LabelSelector(match_labels={"app": "x"}), template=template)
    return k8s.KubeDeployment(chart, "app", metadata=k8s.ObjectMeta(name="app"), spec=spec)


def raw(chart, manifest, id="app"):
    made = ApiObject(
        chart,
        id,
        api_version=manifest["apiVersion"],
        kind=manifest["kind"],
        metadata=ApiObjectMetadata(name=manifest.get("metadata", {}).get("name", "app")),
    )
    made.add_json_patch(JsonPatch.add("/spec", manifest["spec"]))
    return made


DEPLOYMENT = beside(__file__, "gpu_access")["deployment"]


def pod_of(manifest):
    spec = manifest["spec"]
    if manifest["kind"] == "CronJob":
        spec = spec["jobTemplate"]["spec"]
    return spec if manifest["kind"] == "Pod" else spec["template"]["spec"]


def rendered(chart, kind=None):
    made = [one for one in Testing.synth(chart) if kind in (None, one["kind"])]
    return made[0] if len(made) == 1 else made


def limits(manifest, container=0):
    return (pod_of(manifest)["containers"][container].get("resources") or {}).get("limits") or {}


@pytest.mark.parametrize("release", RELEASES)
def test_every_kind_of_cdk8s_plus_gets_the_fields_of_a_gpu_pod(release, app):
    kplus = importlib.import_module(f"cdk8s_plus_{release}")
    for kind in KINDS if release == RELEASES[-1] else KINDS[:1]:
        chart = Chart(app, f"plain-{kind}".lower())
        workload(kplus, chart, kind).with_(GpuAccess(count=1))
        made = rendered(chart, kind)
        pod = pod_of(made)
        assert limits(made)[GPU] == 1
        assert pod["runtimeClassName"] == "nvidia"
        assert pod["nodeSelector"] == {"nvidia.com/gpu.present": "true"}
        assert {"key": GPU, "operator": "Exists", "effect": "NoSchedule"} in pod["tolerations"]
        assert "env" not in pod["containers"][0]
        assert schemas.schema_errors(made, NEW) == []


@pytest.mark.parametrize("release", RELEASES)
def test_every_kind_of_cdk8s_plus_gets_a_claim(release, app):
    kplus = importlib.import_module(f"cdk8s_plus_{release}")
    for kind in KINDS if release == RELEASES[-1] else KINDS[:1]:
        chart = Chart(app, f"claim-{kind}".lower())
        workload(kplus, chart, kind).with_(GpuAccess(count=2, profile=CLAIMS))
        made, template = rendered(chart, kind), rendered(chart, "ResourceClaimTemplate")
        pod, name = pod_of(made), f"{made['metadata']['name']}-gpu"
        assert pod["resourceClaims"] == [{"name": "gpu", "resourceClaimTemplateName": name}]
        assert pod["containers"][0]["resources"]["claims"] == [{"name": "gpu", "request": "gpu"}]
        assert (GPU in limits(made), "runtimeClassName" in pod) == (False, False)
        assert template["metadata"]["name"] == name
        assert template["spec"]["spec"]["devices"]["requests"][0]["exactly"]["count"] == 2
        assert schemas.schema_errors(made, NEW) == schemas.schema_errors(template, NEW) == []


def test_later_changes_of_the_workload_are_in_the_output(kplus, chart):
    made = workload(kplus, chart, "Deployment")
    made.with_(GpuAccess(count=1))
    made.add_container(image="b:1", name="late", port_number=81)
    made.containers[0].env.add_variable("A", kplus.EnvValue.from_value("b"))
    made.scheduling.tolerate(kplus.Node.tainted(kplus.NodeTaintQuery.is_("dedicated", "ai")))
    made.scheduling.attract(kplus.Node.labeled(kplus.NodeLabelQuery.is_("zone", "a")))
    made.metadata.add_label("late", "yes")
    ApiObject.of(made).metadata.add_annotation("later", "yes")
    found = rendered(chart)
    pod = pod_of(found)
    assert [container["name"] for container in pod["containers"]] == ["main", "late"]
    assert pod["containers"][0]["env"] == [{"name": "A", "value": "b"}]
    assert pod["containers"][1]["env"] == [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]
    assert {toleration["key"] for toleration in pod["tolerations"]} == {"dedicated", GPU}
    assert found["metadata"]["labels"] == {"late": "yes"}
    assert found["metadata"]["annotations"] == {"later": "yes"}
    assert limits(found)[GPU] == 1


def test_services_and_dependencies_still_refer_to_the_workload(kplus, chart):
    made = workload(kplus, chart, "Deployment")
    before = ApiObject.of(made)
    service = made.expose_via_service()
    ApiObject.of(service).add_dependency(before)
    made.with_(GpuAccess(count=1))
    objects = rendered(chart)
    assert [one["kind"] for one in objects] == ["Deployment", "Service"]
    assert objects[1]["spec"]["selector"] == objects[0]["spec"]["selector"]["matchLabels"]
    assert ApiObject.of(made).name == before.name == objects[0]["metadata"]["name"]


def test_the_same_access_twice_changes_nothing(kplus, chart):
    made = workload(kplus, chart, "Deployment")
    made.with_(GpuAccess(count=1))
    once = rendered(chart)
    made.with_(GpuAccess(count=1))
    GpuAccess(count=1).apply_to(made)
    assert rendered(chart) == once


def test_a_chart_gives_gpus_to_each_workload_in_it(kplus, chart):
    access = GpuAccess(count=1)
    workload(kplus, chart, "Deployment")
    kplus.ConfigMap(chart, "config")
    chart.with_(access)
    late = kplus.Job(chart, "job", containers=[kplus.ContainerProps(image="a:1")])
    late.with_(access)
    assert [limits(one).get(GPU) for one in rendered(chart) if one["kind"] != "ConfigMap"] == [1, 1]


def test_a_container_can_be_added_after_its_gpu(kplus, chart):
    made = kplus.Deployment(chart, "app")
    made.with_(GpuAccess(count=1))
    made.add_container(image="a:1", port_number=80)
    made.with_(GpuAccess(count=1, container="late"))
    made.add_container(image="b:1", name="late", port_number=81)
    found = rendered(chart)
    assert [limits(found, place)[GPU] for place in (0, 1)] == [1, 1]


def test_two_containers_of_one_pod_can_each_get_a_gpu(kplus, chart):
    made = workload(kplus, chart, "Deployment")
    made.add_container(image="b:1", name="second", port_number=81)
    made.with_(GpuAccess(count=1), GpuAccess(count=2, container="second"))
    pod = pod_of(rendered(chart))
    assert [one["resources"]["limits"][GPU] for one in pod["containers"]] == [1, 2]
    assert not any("env" in one for one in pod["containers"])


def test_a_typed_object_accepts_plain_patches_later(kplus, chart):
    made = typed(kplus, chart)
    made.with_(GpuAccess(count=1))
    made.add_json_patch(JsonPatch.add("/spec/replicas", 3))
    ApiObject.of(chart.node.find_child("app")).add_json_patch(
        JsonPatch.replace(f"/spec/template/spec/containers/0/resources/limits/{GPU.replace('/', '~1')}", 1)
    )
    found = rendered(chart)
    assert found["spec"]["replicas"] == 3
    assert limits(found)[GPU] == 1


def test_a_raw_object_gets_gpus(chart):
    raw(chart, DEPLOYMENT).with_(GpuAccess(count=1, container="side"))
    made = rendered(chart)
    assert limits(made, 1) == {GPU: 1}
    assert pod_of(made)["containers"][0]["env"] == [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]


def test_objects_of_an_include_get_gpus(chart, tmp_path):
    path = tmp_path / "upstream.yaml"
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [{"port": 1}]}}
    path.write_text(yaml.safe_dump_all([{**DEPLOYMENT, "metadata": {"name": "d"}}, service]))
    Include(chart, "include", url=str(path)).with_(GpuAccess(count=1))
    assert limits(rendered(chart, "Deployment")) == {GPU: 1}
    assert rendered(chart, "Service") == service


def custom(kind, version, spec):
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "app"}, "spec": spec}


def template(*names):
    return {"spec": {"containers": [{"name": name, "image": "a:1"} for name in names]}}


def holders(value):
    """Yield the names of all containers with a GPU, at any depth."""
    if isinstance(value, dict):
        if GPU in ((value.get("resources") or {}).get("limits") or {}):
            yield value["name"]
        for member in value.values():
            yield from holders(member)
    elif isinstance(value, list):
        for member in value:
            yield from holders(member)


def test_custom_resources_get_gpus_in_the_container_of_their_operator(app, rows):
    for number, (kind, version, spec, expected) in enumerate(rows):
        chart = Chart(app, f"custom-{number}")
        raw(chart, custom(kind, version, spec)).with_(GpuAccess(count=1))
        made = rendered(chart)
        assert list(holders(made)) == expected, kind
        assert str(made).count("'runtimeClassName': 'nvidia'") == len(expected)
        assert kind in ("MPIJob", "RayCluster") or schemas.schema_errors(made) == []


@pytest.mark.parametrize("kind", ["ServingRuntime", "ClusterServingRuntime"])
def test_the_warning_for_a_serving_runtime_names_the_object_with_a_runtime_class(chart, kind):
    containers = [{"name": "kserve-container", "image": "a:1"}]
    manifest = custom(kind, "serving.kserve.io/v1alpha1", {"containers": containers})
    target = raw(chart, manifest)
    with pytest.warns(GpuConstructsWarning, match="gpu/app: .*InferenceService"):
        GpuAccess(count=1).apply_to(target)
    made = rendered(chart)
    assert list(holders(made)) == ["kserve-container"]
    assert "runtimeClassName" not in str(made)
    assert schemas.schema_errors(made) == []


def test_the_error_for_a_kind_without_gpus_names_the_right_object(chart, rows):
    for number, (kind, version, spec, message) in enumerate(rows):
        target = raw(chart, custom(kind, version, spec), id=f"app-{number}")
        refused = [({"construct": target}, message)]
        check_refusals(GpuAccess(profile=CLAIMS).apply_to, refused, at=f"gpu/app-{number}: ")


def test_an_unknown_kind_gets_gpus_by_the_path_of_its_pods(chart):
    groups = [{"template": template("a")}, {"template": template("b")}]
    target = raw(chart, custom("Fleet", "example.com/v1", {"groups": groups}))
    with pytest.raises(GpuConstructsError, match="a Fleet contains no pod template"):
        GpuAccess(count=1).apply_to(target)
    target.with_(GpuAccess(count=1, pod_spec="spec.groups[*].template.spec"))
    assert list(holders(rendered(chart))) == ["a", "b"]


def test_shared_memory_is_mounted_in_the_container_with_the_gpu(kplus, chart):
    made = workload(kplus, chart, "Job")
    made.with_(GpuAccess(count=1, shared_memory="1Gi"))
    made.with_(GpuAccess(count=1, shared_memory="1Gi"))
    pod = pod_of(rendered(chart))
    assert pod["volumes"] == [{"name": "dev-shm", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}]
    assert pod["containers"][0]["volumeMounts"] == [{"name": "dev-shm", "mountPath": "/dev/shm"}]


def test_tolerations_runtime_class_and_profile_apply(chart, keywords):
    profile = GpuProfile(**keywords)
    raw(chart, DEPLOYMENT).with_(GpuAccess(profile=profile, runtime_class="mine"))
    made = rendered(chart)
    pod = pod_of(made)
    assert limits(made) == {"nvidia.com/gpu.shared": 1}
    assert pod["runtimeClassName"] == "mine"
    assert pod["nodeSelector"] == {"nvidia.com/gpu.present": "true", "pool": "gpu"}
    assert [toleration["key"] for toleration in pod["tolerations"]] == ["dedicated", GPU]


def test_budgets_and_ignored_rules_are_annotations_of_the_object(chart, expected):
    target = raw(chart, DEPLOYMENT)
    target.with_(GpuAccess(request=GpuRequest(vram="6Gi"), ignore_rules=["R26"], visible_devices="unmanaged"))
    target.with_(GpuAccess(request=GpuRequest(vram="6Gi"), ignore_rules=["R19"], visible_devices="unmanaged"))
    assert rendered(chart)["metadata"]["annotations"] == expected


def deployment_with(**container):
    containers = [{"name": "main", "image": "a:1", **container}]
    template = {**DEPLOYMENT["spec"]["template"], "spec": {"containers": containers}}
    return {**DEPLOYMENT, "spec": {**DEPLOYMENT["spec"], "template": template}}


VISIBLE = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]


def test_apply_to_raises_at_once_for_a_conflict(chart, rows):
    for number, (container, given, message) in enumerate(rows):
        target = raw(chart, deployment_with(**container), id=f"app-{number}")
        with pytest.raises(GpuConstructsError) as refused:
            GpuAccess(**given).apply_to(target)
        assert not any("jsii" in line for line in traceback.format_exception(refused.value))
        check_refusals(GpuAccess(**given).apply_to, [({"construct": target}, message)], at=f"gpu/app-{number}: ")


def test_synth_reports_a_conflict_of_with_and_its_line(app, chart):
    target = raw(chart, deployment_with(env=VISIBLE))
    line = inspect.currentframe().f_lineno + 1
    target.with_(GpuAccess(count=1))
    assert problems(synthesize, app) == [
        f"gpu/app: GpuAccess at test_gpu_access.py:{line}: container 'main' must not set NVIDIA_VISIBLE_DEVICES, got "
        "'all': it overrides the allocated GPU, and 'all' shows every GPU of the node. Remove it, or set "
        "visible_devices='unmanaged'"
    ]


def test_synth_reports_a_construct_without_pods(kplus, app, chart):
    kplus.ConfigMap(chart, "config").with_(GpuAccess(count=1))
    with pytest.raises(
        SynthesisError, match=r"gpu/config: GpuAccess at test_gpu_access\.py:\d+: a ConfigMap contains no"
    ):
        synthesize(app)
    # cdk8s fails on it too.
    with pytest.raises(
        RuntimeError,
        match="a ConfigMap contains no pod template",
    ):
        app.synth()


def test_synth_reports_a_missing_container(kplus, app, chart):
    workload(kplus, chart, "Job").with_(GpuAccess(container="mian"))
    with pytest.raises(SynthesisError, match=r"gpu/app: container must be one of 'main', got 'mian' \(did you mean"):
        synthesize(app)


UNITS = GpuProfile(platform=Kubernetes(), sharing=Sharing.vram_units(vram="16303Mi"))


def test_only_the_default_update_strategy_is_changed(app, rows):
    for number, (spec, given, expected) in enumerate(rows):
        chart = Chart(app, f"update-{number}")
        raw(chart, {**DEPLOYMENT, "spec": {**DEPLOYMENT["spec"], **spec}}).with_(GpuAccess(count=1, **given))
        assert rendered(chart)["spec"].get("strategy") == expected, number


@cases
def test_two_conflicting_accesses_raise_and_change_nothing(chart, first, second, message):
    target = raw(chart, DEPLOYMENT)
    first.apply_to(target)
    before = Testing.synth(chart)
    for _ in range(2):
        with pytest.raises(GpuConstructsError, match=message):
            second.apply_to(target)
    assert Testing.synth(chart) == before


def test_slots_of_memory_follow_the_budget(chart):
    raw(chart, DEPLOYMENT).with_(GpuAccess(request=GpuRequest(vram="7.5Gi", vram_typical="4Gi"), profile=UNITS))
    assert limits(rendered(chart)) == {GPU: 8}


def test_constructs_that_cannot_hold_gpus_are_rejected(chart):
    for target, message in (
        ("deployment", "GpuAccess needs a construct, got str"),
        (Chart(App(), "gpu"), "gpu: the construct must contain a pod template"),
        (GpuWorkload(chart, "app", image="a:1", profile=CLAIMS), "the pod has another claim with the name 'gpu'"),
        (
            raw(chart, deployment_with(resources={"claims": [{"name": "gpu", "request": "nic"}]}), id="claim"),
            "container 'main' has another claim with the name 'gpu'",
        ),
    ):
        with pytest.raises(GpuConstructsError, match=message):
            GpuAccess(count=4, profile=CLAIMS, claim_name="more").apply_to(target)
    claim = GpuResourceClaim(chart, "shared", profile=CLAIMS, namespace="b")
    with pytest.raises(GpuConstructsError, match="is in the namespace 'b', and pods of 'default' cannot use it"):
        GpuAccess(request=GpuRequest(resource_claim=claim), profile=CLAIMS).apply_to(raw(chart, DEPLOYMENT, id="other"))


def test_bad_input_raises_a_one_line_error(rows):
    check_refusals(GpuAccess, rows)


def test_a_typed_custom_resource_gets_gpus(chart):
    spec = NotebookSpec(template=NotebookSpecTemplate(spec=template("nb")["spec"]))
    notebook = Notebook(chart, "app", metadata=ApiObjectMetadata(name="app"), spec=spec)
    notebook.with_(GpuAccess(count=1))
    made = rendered(chart)
    assert list(holders(made)) == ["nb"]
    assert schemas.schema_errors(made) == []


def test_a_custom_construct_gets_gpus_in_the_construct_that_it_wraps(kplus, chart):
    class Service(Construct):
        def __init__(self, scope, id):
            super().__init__(scope, id)
            self.deployment = kplus.Deployment(self, "web", containers=[kplus.ContainerProps(image="a:1")])
            kplus.ConfigMap(self, "config")

    Service(chart, "svc").with_(GpuAccess(count=1))
    assert limits(rendered(chart, "Deployment"))[GPU] == 1


# Parts of the object that must stay unchanged.


def test_a_volume_of_the_user_keeps_its_name_and_its_content(chart, expected):
    mine = {"name": "dev-shm", "hostPath": {"path": "/data"}}
    manifest = deployment_with(volumeMounts=[{"name": "dev-shm", "mountPath": "/data"}])
    manifest["spec"]["template"]["spec"]["volumes"] = [mine]
    raw(chart, manifest).with_(GpuAccess(shared_memory="1Gi"))
    pod = pod_of(rendered(chart))
    assert pod["volumes"] == [mine, {"name": "dev-shm-1", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}]
    assert {one["mountPath"]: one["name"] for one in pod["containers"][0]["volumeMounts"]} == expected


def test_an_object_with_child_constructs_is_rejected_and_keeps_them(chart):
    target = raw(chart, DEPLOYMENT)
    ApiObject(target, "config", api_version="v1", kind="ConfigMap")
    with pytest.raises(
        GpuConstructsError,
        match=r"must have no child constructs \(gpu/app/config\), which would not be in the manifests",
    ):
        GpuAccess().apply_to(target)
    assert len(Testing.synth(chart)) == 2


def test_synth_runs_validations_of_the_object_and_reports_later_children(app, chart):
    @jsii.implements(IValidation)
    class Never:
        def validate(self):
            return ["never right"]

    target = raw(chart, DEPLOYMENT)
    target.node.add_validation(Never())
    target.with_(GpuAccess())
    ApiObject(target, "config", api_version="v1", kind="ConfigMap")
    with pytest.raises(SynthesisError) as refusal:
        synthesize(app)
    lost = "gpu/app/config: is a child of an object with GPUs, so it would not be in the manifests. Create it "
    lost += "outside of that object"
    assert refusal.value.problems == [lost, "gpu/app: never right"]


@pytest.mark.parametrize("is_late", [False, True])
def test_dependencies_of_the_object_still_precede_it(chart, is_late):
    target = raw(chart, DEPLOYMENT)
    last = ApiObject(chart, "last", api_version="v1", kind="ConfigMap")
    if not is_late:
        target.add_dependency(last)
    target.with_(GpuAccess())
    very_last = ApiObject(chart, "very-last", api_version="v1", kind="Secret")
    if is_late:
        target.add_dependency(very_last)
    kinds = [one["kind"] for one in Testing.synth(chart)]
    assert kinds.index("Deployment") > kinds.index("Secret" if is_late else "ConfigMap")


def test_a_conflict_in_a_chart_leaves_all_its_objects_unchanged(chart):
    raw(chart, DEPLOYMENT, id="a")
    raw(chart, deployment_with(env=VISIBLE), id="b")
    with pytest.raises(GpuConstructsError, match="gpu/b: container 'main' must not set"):
        GpuAccess().apply_to(chart)
    assert list(holders(Testing.synth(chart))) == []


def test_claim_templates_have_the_name_of_the_rendered_object(chart):
    target = raw(chart, DEPLOYMENT)
    target.with_(GpuAccess(profile=CLAIMS))
    raw(chart, DEPLOYMENT, id="own").with_(GpuAccess(profile=CLAIMS, claim_name="one-board"))
    target.add_json_patch(JsonPatch.add("/metadata/namespace", "team"), JsonPatch.replace("/metadata/name", "renamed"))
    (made, _), (template, own) = rendered(chart, "Deployment"), rendered(chart, "ResourceClaimTemplate")
    assert (template["metadata"]["name"], template["metadata"]["namespace"]) == ("renamed-gpu", "team")
    assert pod_of(made)["resourceClaims"][0]["resourceClaimTemplateName"] == "renamed-gpu"
    assert own["metadata"]["name"] == "one-board"


def test_objects_of_this_library_in_a_chart_stay_unchanged(kplus, chart):
    DcgmExporter(chart, "exporter")
    workload(kplus, chart, "Job")
    GpuAccess().apply_to(chart)
    assert [one["kind"] for one in Testing.synth(chart) if list(holders(one))] == ["Job"]


def test_every_workload_of_a_construct_gets_gpus(chart):
    class Pair(Construct):
        def __init__(self, scope, id):
            super().__init__(scope, id)
            raw(self, DEPLOYMENT, id="Default")
            raw(self, DEPLOYMENT, id="worker")

    Pair(chart, "pair").with_(GpuAccess())
    assert len(list(holders(Testing.synth(chart)))) == 2


# Later patches.


def test_a_patch_that_removes_a_gpu_field_is_reported():
    spec, gave = "/spec/template/spec", "GpuAccess sets pod."
    limit = f"{spec}/containers/0/resources/limits/nvidia.com~1gpu"
    gone = "but it is None after a JSON patch. Remove that patch or the GpuAccess"
    for patch, problem in (
        (JsonPatch.remove(limit), f"{gave}containers[0].resources.limits.{GPU} to 1, {gone}"),
        (JsonPatch.remove(f"{spec}/runtimeClassName"), f"{gave}runtimeClassName to 'nvidia', {gone}"),
        (JsonPatch.add(f"{spec}/containers/0/env", VISIBLE), "container 'main' must not set NVIDIA_VISIBLE_DEVICES"),
        (JsonPatch.remove("/spec/template"), "a Deployment contains no pod template"),
        (JsonPatch.remove(f"{spec}/containers/0/resources"), f"{gave}containers[0].resources to"),
    ):
        app = App()
        External(app, "nodes", runtime_classes=["nvidia"], node_labels=["nvidia.com/*"])
        chart = Chart(app, "gpu")
        raw(chart, DEPLOYMENT).with_(GpuAccess())
        ApiObject.of(chart.node.find_child("app")).add_json_patch(patch)
        (said,) = problems(synthesize, app)
        assert said.startswith(f"gpu/app: {problem}")


def test_a_later_conflict_stops_plain_cdk8s_before_it_writes(kplus, app, tmp_path):
    kplus.ConfigMap(Chart(app, "a"), "config")
    made = workload(kplus, Chart(app, "b"), "Job")
    made.with_(GpuAccess())
    made.containers[0].env.add_variable("NVIDIA_VISIBLE_DEVICES", kplus.EnvValue.from_value("all"))
    with pytest.raises(RuntimeError, match="must not set NVIDIA_VISIBLE_DEVICES"):
        app.synth()
    assert not list((tmp_path / "dist").glob("*.yaml"))

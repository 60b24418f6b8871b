"""The schema checks catch what they are there for, and the committed CRDs and bindings belong together."""

import copy
import importlib
import re
from pathlib import Path

import cdk8s
import yaml

import dist
from imports.com.coreos.monitoring import ServiceMonitor, ServiceMonitorSpec, ServiceMonitorSpecSelector
from imports.org.kubeflow import Experiment, Notebook, NotebookSpec, NotebookSpecTemplate
from imports.reduce import open_field, reduced_crd, with_equal_parts_shared
from schemas import (
    CRD_FOLDER,
    SUPPORTED_RELEASES,
    committed_crds,
    custom_resource_errors,
    custom_resources,
    kubernetes_errors,
    load_yaml,
    schema_errors,
)
from tables import beside

ROOT = CRD_FOLDER.parents[1]
HERE = Path(__file__).parent
RESOURCES = {row["is"]: row for row in yaml.safe_load((HERE / "custom_resources.yaml").read_text(encoding="utf-8"))}
CUSTOM = {name: row["manifest"] for name, row in RESOURCES.items()}
PODS = {name: row["pods"] for name, row in RESOURCES.items() if "pods" in row}
DAEMON_SET = dist.find("talos-rtx5070ti", "DaemonSet", "dcgm-exporter")
MISSING = object()


def with_value(manifest: dict, path: str, value: object) -> dict:
    """Return a copy of the manifest with the value at a path such as `spec.containers.0.name` set or missing."""
    changed = copy.deepcopy(manifest)
    *parents, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    node = changed
    for parent in parents:
        node = node[parent]
    if value is MISSING:
        del node[last]
    else:
        node[last] = value
    return changed


def custom(kind: str, spec: dict) -> dict:
    """Return a custom resource of a kind such as `kubeflow.org/v1 Notebook`."""
    api_version, _, name = kind.partition(" ")
    return {"apiVersion": api_version, "kind": name, "metadata": {"name": "x"}, "spec": spec}


def with_native_sidecar(name: str) -> dict:
    return with_value(CUSTOM[name], f"{PODS[name]}.initContainers", [{"name": "a", "restartPolicy": "Always"}])


def test_the_releases_run_from_1_27_to_the_newest_without_a_gap():
    minors = [int(release.removeprefix("1.")) for release in SUPPORTED_RELEASES]
    assert minors == list(range(27, 27 + len(minors)))
    assert minors[-1] >= 37


def test_a_good_custom_resource_is_accepted_by_every_release():
    for name, manifest in CUSTOM.items():
        assert (name, schema_errors(manifest)) == (name, [])


def test_a_mistake_is_named_once_with_its_place():
    manifests = {"DaemonSet": DAEMON_SET, **CUSTOM}
    for row in beside(__file__, "schemas")["mistakes"]:
        (error,) = schema_errors(with_value(manifests[row["of"]], row["path"], row.get("value", MISSING)))
        assert re.search(row["message"], error)
    assert schema_errors(with_value(DAEMON_SET, "specc", {}))[0].endswith(f"1.27 to {SUPPORTED_RELEASES[-1]})")


def test_a_misspelt_field_is_named_once_in_each_place_of_a_kind_that_makes_pods():
    for name, pod in PODS.items():
        for place in ("spec", pod, f"{pod}.containers.0", f"{pod}.containers.0.resources", f"{pod}.tolerations.0"):
            (error,) = schema_errors(with_value(CUSTOM[name], f"{place}.limitz", {}))
            assert error.startswith(re.sub(r"\.(\d+)", r"[\1]", place) + ": ")
            assert "'limitz' was unexpected" in error


def test_a_kind_that_nothing_serves_is_an_error():
    for kind in ("apps/v1 Deploymnet", "apps/v1 DaemonSetSpec", "nvidia.com/v1 ClusterPolicy"):
        manifest = custom(kind, {})
        (error,) = schema_errors(manifest)
        assert error.startswith(f"{kind}: neither a kind of Kubernetes 1.27 to")
        assert kubernetes_errors(manifest, "1.35") == [f"{kind}: not served"]
        assert custom_resource_errors(manifest, committed_crds()) == [f"{kind}: no CRD defines it"]


def test_what_came_later_is_refused_for_the_releases_before_it_only():
    policy = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy"}
    (error,) = schema_errors(policy)
    assert error == f"{policy['apiVersion']} {policy['kind']}: not served (Kubernetes 1.27 to 1.29)"
    assert schema_errors(policy, ["1.30", "1.36"]) == []
    for name in ("PyTorchJob", "TrainingRuntime", "ClusterTrainingRuntime", "JobSet", "LeaderWorkerSet"):
        (error,) = schema_errors(with_native_sidecar(name))
        assert error.endswith("('restartPolicy' was unexpected) (Kubernetes 1.27)")
        assert schema_errors(with_native_sidecar(name), SUPPORTED_RELEASES[1:]) == []


def test_the_crd_of_the_notebook_knows_no_native_sidecar():
    late = with_native_sidecar("Notebook")
    assert custom_resource_errors(late, committed_crds()) == schema_errors(late) != []


def test_structural_schemas_of_an_app_are_read_as_the_api_server_reads_them():
    (crd,) = load_yaml((CRD_FOLDER / "helm.toolkit.fluxcd.io.yaml").read_text())
    for row in yaml.safe_load((HERE / "structural_schemas.yaml").read_text(encoding="utf-8")):
        place = "spec.versions.0.schema.openAPIV3Schema"
        schema = {"type": "object", "properties": {"spec": row["schema"]}}
        crds = custom_resources([with_value(with_value(crd, "spec.group", "example.com"), place, schema), DAEMON_SET])
        for value in row["taken"]:
            assert schema_errors(custom("example.com/v2 HelmRelease", value), app_crds=crds) == [], row
        for value in row["refused"]:
            assert schema_errors(custom("example.com/v2 HelmRelease", value), app_crds=crds) != [], row


def test_a_crd_of_the_app_cannot_loosen_the_committed_one():
    (loose,) = load_yaml((CRD_FOLDER / "helm.toolkit.fluxcd.io.yaml").read_text())
    open_field(loose, "spec")
    wrong = custom("helm.toolkit.fluxcd.io/v2 HelmRelease", {"interval": "1h", "value": {}})
    assert custom_resource_errors(wrong, custom_resources([loose])) == []
    assert schema_errors(wrong, app_crds=custom_resources([loose])) != []


def test_text_that_only_yaml_takes_for_something_else_stays_text(expected):
    assert load_yaml("operator: =\nday: 2026-11-20\n---\nport: 80\n") == expected


def test_a_crd_file_holds_one_group_reduced_to_its_structure_and_valid_for_every_release():
    for file in sorted(CRD_FOLDER.glob("*.yaml")):
        text = file.read_text()
        crds = load_yaml(text)
        assert {crd["spec"]["group"] for crd in crds} == {file.stem}
        assert crds == [reduced_crd(crd) for crd in crds], file
        sources = dict(re.findall(r"^# (\w+): (\S+/\S+@v[\w.-]+:\S+\.yaml)$", text, re.MULTILINE))
        assert set(sources) == {crd["spec"]["names"]["kind"] for crd in crds}
        assert [error for crd in crds for error in schema_errors(crd)] == []


def test_reducing_keeps_fields_that_are_called_like_prose_and_writes_equal_parts_once():
    (crd,) = load_yaml((CRD_FOLDER / "helm.toolkit.fluxcd.io.yaml").read_text())
    field = {"type": "string", "description": "prose"}
    spec = {"type": "object", "properties": {"description": field}, "title": "prose"}
    schema = {"type": "object", "properties": {"spec": spec, "status": {"type": "object"}}}
    (version,) = reduced_crd(with_value(crd, "spec.versions.0.schema.openAPIV3Schema", schema))["spec"]["versions"]
    assert version["schema"]["openAPIV3Schema"]["properties"] == {
        "spec": {"type": "object", "properties": {"description": {"type": "string"}}}
    }
    part = {"type": "object", "properties": {name: {"type": "string"} for name in ("a", "b", "c", "d")}}
    repeated = {"small": {"type": "string"}, "other": {"type": "string"}, "one": part, "list": [copy.deepcopy(part)]}
    shared = with_equal_parts_shared(repeated)
    assert shared == repeated
    assert yaml.safe_dump(shared).count("&") == yaml.safe_dump(shared).count("*") == 1


def test_bindings_leave_only_the_pod_template_of_a_notebook_open():
    experiment, notebook, _ = load_yaml((CRD_FOLDER / "kubeflow.org.yaml").read_text())
    open_field(notebook, "spec.template.spec")
    opened = load_yaml((CRD_FOLDER.parent / "open" / "kubeflow.org.yaml").read_text())
    assert opened == [experiment, notebook]


def test_the_bindings_have_the_kinds_of_their_crd_file():
    for file in load_yaml((ROOT / "cdk8s.yaml").read_text())[0]["imports"]:
        crds = load_yaml((ROOT / file).read_text())
        group = crds[0]["spec"]["group"]
        module = importlib.import_module("imports." + ".".join(reversed(group.split("."))))
        kinds = [one.GVK for one in vars(module).values() if isinstance(one, type) and issubclass(one, cdk8s.ApiObject)]
        assert {(gvk.api_version, gvk.kind) for gvk in kinds} == set(custom_resources(crds))


def test_objects_made_with_the_bindings_satisfy_the_crds():
    chart = cdk8s.Chart(cdk8s.App(), "chart")
    metadata = cdk8s.ApiObjectMetadata(name="made")
    pod = CUSTOM["Notebook"]["spec"]["template"]["spec"]
    tried = CUSTOM["Experiment of a Job"]["spec"]
    selector = ServiceMonitorSpecSelector(match_labels={"app": "x"})
    spec = NotebookSpec(template=NotebookSpecTemplate(spec=pod))
    Notebook(chart, "notebook", metadata=metadata, spec=spec)
    Experiment(chart, "experiment", metadata=metadata, spec=tried)
    ServiceMonitor(chart, "monitor", metadata=metadata, spec=ServiceMonitorSpec(selector=selector, endpoints=[]))
    manifests = cdk8s.Testing.synth(chart)
    assert manifests[0]["spec"]["template"]["spec"] == pod
    assert manifests[1]["spec"] == tried
    assert [error for manifest in manifests for error in schema_errors(manifest)] == []

"""The schema checks catch what they are there for, and the committed CRDs and bindings belong together."""

from __future__ import annotations

import copy
import importlib
import re
from pathlib import Path

import cdk8s
import pytest
import yaml

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

CRD_FILES = sorted(CRD_FOLDER.glob("*.yaml"))
ROOT = CRD_FOLDER.parents[1]


def with_value(manifest: dict, path: str, value: object) -> dict:
    """A copy of the manifest with the value at a path such as `spec.containers.0.name` set."""
    changed = copy.deepcopy(manifest)
    *parents, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    node = changed
    for parent in parents:
        node = node[parent]
    node[last] = value
    return changed


DAEMON_SET = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "metadata": {"name": "nvidia-device-plugin", "namespace": "gpu", "labels": {"app": "plugin"}},
    "spec": {
        "selector": {"matchLabels": {"app": "plugin"}},
        "template": {
            "metadata": {"labels": {"app": "plugin"}},
            "spec": {
                "runtimeClassName": "nvidia",
                "containers": [
                    {
                        "name": "plugin",
                        "image": "nvcr.io/nvidia/k8s-device-plugin:v0.18.2",
                        "env": [{"name": "FAIL_ON_INIT_ERROR", "value": "false"}],
                        "resources": {"limits": {"nvidia.com/gpu": 1, "memory": "64Mi"}},
                        "livenessProbe": {"httpGet": {"path": "/", "port": "metrics"}},
                    }
                ],
            },
        },
    },
}
SERVICE_MONITOR = {
    "apiVersion": "monitoring.coreos.com/v1",
    "kind": "ServiceMonitor",
    "metadata": {"name": "dcgm-exporter", "namespace": "gpu"},
    "spec": {
        "selector": {"matchLabels": {"app": "dcgm-exporter"}},
        "endpoints": [{"port": "metrics", "interval": "15s", "targetPort": 9400}],
    },
}
NOTEBOOK = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "Notebook",
    "metadata": {"name": "jupyter", "namespace": "kubeflow-user"},
    "spec": {"template": {"spec": {"containers": [{"name": "jupyter", "image": "jupyter:1"}]}}},
}
POD = {
    "runtimeClassName": "nvidia",
    "nodeSelector": {"nvidia.com/gpu.present": "true"},
    "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
    "containers": [{"name": "node", "image": "torch:1", "resources": {"limits": {"nvidia.com/gpu": 1}}}],
}
JOB_SET = {"replicatedJobs": [{"name": "node", "template": {"spec": {"template": {"spec": POD}}}}]}
RUNTIME_POD = {key: value for key, value in POD.items() if key != "runtimeClassName"}
RUNTIME = {**RUNTIME_POD, "supportedModelFormats": [{"name": "huggingface", "version": "1", "autoSelect": True}]}
TRIED = "spec.trialTemplate.trialSpec"


def custom(kind: str, spec: dict) -> dict:
    """A custom resource of a kind such as `kubeflow.org/v1 Notebook`."""
    api_version, _, name = kind.partition(" ")
    return {"apiVersion": api_version, "kind": name, "metadata": {"name": "x"}, "spec": spec}


PYTORCH_JOB = custom(
    "kubeflow.org/v1 PyTorchJob",
    {"pytorchReplicaSpecs": {"Worker": {"replicas": 2, "template": {"spec": POD}}}},
)
TRAIN_JOB = custom(
    "trainer.kubeflow.org/v1alpha1 TrainJob",
    {
        "runtimeRef": {"kind": "TrainingRuntime", "name": "x"},
        "trainer": {"numNodes": 1, "resourcesPerNode": {"limits": {"nvidia.com/gpu": 1}}},
        "runtimePatches": [
            {
                "manager": "example.com/app",
                "trainingRuntimeSpec": {
                    "template": {
                        "spec": {
                            "replicatedJobs": [
                                {
                                    "name": "node",
                                    "template": {"spec": {"template": {"spec": {"nodeSelector": POD["nodeSelector"]}}}},
                                }
                            ]
                        }
                    }
                },
            }
        ],
    },
)
JOB = {"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": {"spec": {**POD, "restartPolicy": "Never"}}}}
POD_KINDS = {
    "Notebook": (custom("kubeflow.org/v1 Notebook", {"template": {"spec": POD}}), "spec.template.spec"),
    "PyTorchJob": (PYTORCH_JOB, "spec.pytorchReplicaSpecs.Worker.template.spec"),
    "TrainingRuntime": (
        custom("trainer.kubeflow.org/v1alpha1 TrainingRuntime", {"template": {"spec": JOB_SET}}),
        "spec.template.spec.replicatedJobs.0.template.spec.template.spec",
    ),
    "ClusterTrainingRuntime": (
        custom("trainer.kubeflow.org/v1alpha1 ClusterTrainingRuntime", {"template": {"spec": JOB_SET}}),
        "spec.template.spec.replicatedJobs.0.template.spec.template.spec",
    ),
    "JobSet": (
        custom("jobset.x-k8s.io/v1alpha2 JobSet", JOB_SET),
        "spec.replicatedJobs.0.template.spec.template.spec",
    ),
    "LeaderWorkerSet": (
        custom(
            "leaderworkerset.x-k8s.io/v1 LeaderWorkerSet",
            {"leaderWorkerTemplate": {"size": 2, "workerTemplate": {"spec": POD}}},
        ),
        "spec.leaderWorkerTemplate.workerTemplate.spec",
    ),
    "InferenceService": (
        custom(
            "serving.kserve.io/v1beta1 InferenceService",
            {
                "predictor": {
                    **POD,
                    "minReplicas": 1,
                    "model": {
                        "modelFormat": {"name": "huggingface"},
                        "resources": {"limits": {"nvidia.com/gpu": 1}},
                    },
                }
            },
        ),
        "spec.predictor",
    ),
    "ServingRuntime": (custom("serving.kserve.io/v1alpha1 ServingRuntime", RUNTIME), "spec"),
    "ClusterServingRuntime": (custom("serving.kserve.io/v1alpha1 ClusterServingRuntime", RUNTIME), "spec"),
}
POLICY = custom(
    "policies.kyverno.io/v1 MutatingPolicy",
    {
        "matchConstraints": {
            "resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]},
            ],
        },
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": "[]"}}],
    },
)
EXPERIMENT = custom(
    "kubeflow.org/v1beta1 Experiment",
    {"maxTrialCount": 3, "trialTemplate": {"trialSpec": JOB}},
)
CUSTOM = {
    "ServiceMonitor": SERVICE_MONITOR,
    **{kind: manifest for kind, (manifest, _) in POD_KINDS.items()},
    "TrainJob": TRAIN_JOB,
    "ClusterPolicy": POLICY,
    "Experiment of a Job": EXPERIMENT,
    "Experiment of a PyTorchJob": with_value(EXPERIMENT, TRIED, PYTORCH_JOB),
    "Experiment of a TrainJob": with_value(EXPERIMENT, TRIED, TRAIN_JOB),
}
CONTAINER = "spec.template.spec.containers.0"


def without(manifest: dict, path: str) -> dict:
    changed = with_value(manifest, path, None)
    *parents, last = path.split(".")
    node = changed
    for parent in parents:
        node = node[parent]
    del node[last]
    return changed


def test_the_releases_run_from_1_27_to_the_newest_without_a_gap():
    minors = [int(release.removeprefix("1.")) for release in SUPPORTED_RELEASES]
    assert minors == list(range(27, 27 + len(minors)))
    assert minors[-1] >= 37


@pytest.mark.parametrize("release", SUPPORTED_RELEASES)
def test_a_good_daemon_set_is_accepted_by_every_release(release):
    assert kubernetes_errors(DAEMON_SET, release) == []


BAD_BUILT_IN = {
    "misspelt-field": (
        with_value(DAEMON_SET, "spec.template.spec.runtimeClasName", "nvidia"),
        r"spec\.template\.spec: .*'runtimeClasName' was unexpected",
    ),
    "field-of-another-kind": (with_value(DAEMON_SET, "spec.replicas", 1), r"spec: .*'replicas'"),
    "boolean-for-a-string": (
        with_value(DAEMON_SET, f"{CONTAINER}.env.0.value", True),
        r"spec\.template\.spec\.containers\[0\]\.env\[0\]\.value: True is not of type 'string'",
    ),
    "string-for-an-integer": (
        with_value(DAEMON_SET, f"{CONTAINER}.ports", [{"containerPort": "9400"}]),
        r"ports\[0\]\.containerPort: '9400' is not of type 'integer'",
    ),
    "integer-for-a-string": (
        with_value(DAEMON_SET, "metadata.labels.app", 5),
        r"metadata\.labels\.app: 5 is",
    ),
    "boolean-for-a-quantity": (
        with_value(DAEMON_SET, f"{CONTAINER}.resources.limits.memory", True),
        r"limits\.memory: True is not valid",
    ),
    "list-for-an-integer-or-string": (
        with_value(DAEMON_SET, f"{CONTAINER}.livenessProbe.httpGet.port", [80]),
        r"httpGet\.port: \[80\] is not valid",
    ),
    "missing-selector": (without(DAEMON_SET, "spec.selector"), "spec: 'selector' is a required property"),
    "misspelt-top-level-field": (with_value(DAEMON_SET, "specc", {}), r"\(object\): .*'specc'"),
    "misspelt-key-of-a-crd-schema": (
        with_value(
            load_yaml((CRD_FOLDER / "helm.toolkit.fluxcd.io.yaml").read_text())[0],
            "spec.versions.0.schema.openAPIV3Schema.propertyz",
            {},
        ),
        "'propertyz' was unexpected",
    ),
}


@pytest.mark.parametrize(("manifest", "message"), BAD_BUILT_IN.values(), ids=BAD_BUILT_IN)
def test_a_mistake_in_a_built_in_object_is_named_with_its_place(manifest, message):
    (error,) = schema_errors(manifest)
    assert re.search(message, error)
    assert error.endswith(f"(Kubernetes 1.27 to {SUPPORTED_RELEASES[-1]})")


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        ("apps/v1", "Deploymnet"),
        ("policy/v1beta1", "PodSecurityPolicy"),
        ("apps/v1", "DaemonSetSpec"),
        ("apps.example.com/v1", "DaemonSet"),
        ("nvidia.com/v1", "ClusterPolicy"),
        ("monitoring.coreos.com/v2", "ServiceMonitor"),
    ],
)
def test_a_kind_that_nothing_serves_is_an_error(api_version, kind):
    manifest = {**DAEMON_SET, "apiVersion": api_version, "kind": kind}
    (error,) = schema_errors(manifest)
    assert error.startswith(f"{api_version} {kind}: neither a kind of Kubernetes 1.27 to")
    assert kubernetes_errors(manifest, "1.35") == [f"{api_version} {kind}: not served"]
    assert custom_resource_errors(manifest, committed_crds()) == [f"{api_version} {kind}: no CRD defines it"]


def test_an_object_without_kind_is_an_error():
    assert schema_errors({"metadata": {"name": "x"}})


def test_a_kind_that_came_later_is_refused_for_the_releases_before_it_only():
    policy = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy"}
    assert schema_errors(policy) == [
        "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy: not served (Kubernetes 1.27 to 1.29)"
    ]
    assert schema_errors(policy, ["1.30", "1.36"]) == []


def test_a_field_that_came_later_is_refused_for_the_releases_before_it_only():
    sidecar = with_value(DAEMON_SET, "spec.template.spec.initContainers", [{"name": "a", "image": "a:1"}])
    sidecar = with_value(sidecar, "spec.template.spec.initContainers.0.restartPolicy", "Always")
    (error,) = schema_errors(sidecar)
    assert error.endswith("('restartPolicy' was unexpected) (Kubernetes 1.27)")
    assert schema_errors(sidecar, SUPPORTED_RELEASES[1:]) == []


@pytest.mark.parametrize("manifest", CUSTOM.values(), ids=CUSTOM)
def test_a_good_custom_resource_is_accepted(manifest):
    assert schema_errors(manifest) == []


BAD_CUSTOM = {
    "misspelt-field": (
        with_value(SERVICE_MONITOR, "spec.endpointz", []),
        r"spec: .*'endpointz' was unexpected",
    ),
    "misspelt-field-in-a-list": (
        with_value(SERVICE_MONITOR, "spec.endpoints.0.intervall", "15s"),
        r"spec\.endpoints\[0\]: .*'intervall'",
    ),
    "missing-field": (without(SERVICE_MONITOR, "spec.selector"), "'selector' is a required property"),
    "pattern": (
        with_value(SERVICE_MONITOR, "spec.endpoints.0.interval", "15"),
        r"interval: '15' does not match",
    ),
    "enum": (with_value(SERVICE_MONITOR, "spec.endpoints.0.scheme", "ftp"), r"scheme: 'ftp' is not one of"),
    "boolean-for-an-integer-or-string": (
        with_value(SERVICE_MONITOR, "spec.endpoints.0.targetPort", True),
        r"targetPort: True is not of type 'integer', 'string'",
    ),
    "null": (with_value(SERVICE_MONITOR, "spec.endpoints.0.port", None), r"port: None is not of type"),
    "status": (with_value(SERVICE_MONITOR, "status", {}), r"\(object\): .*'status'"),
    "label-that-is-no-string": (
        with_value(SERVICE_MONITOR, "metadata.labels", {"gpu": True}),
        r"metadata\.labels\.gpu: True is not of type 'string'",
    ),
    "misspelt-metadata": (with_value(SERVICE_MONITOR, "metadata.label", {}), r"metadata: .*'label'"),
    "misspelt-pod-field": (
        with_value(NOTEBOOK, "spec.template.spec.runtimeClasName", "nvidia"),
        r"spec\.template\.spec: .*'runtimeClasName'",
    ),
}


@pytest.mark.parametrize(("manifest", "message"), BAD_CUSTOM.values(), ids=BAD_CUSTOM)
def test_a_mistake_in_a_custom_resource_is_named_with_its_place(manifest, message):
    (error,) = schema_errors(manifest)
    assert re.search(message, error)


@pytest.mark.parametrize(("manifest", "pod"), POD_KINDS.values(), ids=POD_KINDS)
def test_a_misspelt_field_is_named_once_in_each_place_of_a_kind_that_makes_pods(manifest, pod):
    for place in ("spec", pod, f"{pod}.containers.0", f"{pod}.containers.0.resources", f"{pod}.tolerations.0"):
        (error,) = schema_errors(with_value(manifest, f"{place}.limitz", {}))
        assert error.startswith(re.sub(r"\.(\d+)", r"[\1]", place) + ": ")
        assert "'limitz' was unexpected" in error


@pytest.mark.parametrize(
    ("manifest", "place"),
    [
        (TRAIN_JOB, "spec.trainer.resourcesPerNode.limit"),
        (POLICY, "spec.mutation"),
        (POLICY, "spec.matchConstraints.resourceRules.0.resource"),
        (CUSTOM["InferenceService"], "spec.predictor.model.resource"),
    ],
    ids=["TrainJob", "MutatingPolicy", "match of a MutatingPolicy", "model of an InferenceService"],
)
def test_a_misspelt_field_beside_the_pods_is_refused(manifest, place):
    (error,) = schema_errors(with_value(manifest, place, {}))
    assert f"'{place.rpartition('.')[2]}' was unexpected" in error


@pytest.mark.parametrize(
    ("manifest", "place"),
    [
        (CUSTOM["ServingRuntime"], "spec"),
        (CUSTOM["ClusterServingRuntime"], "spec"),
        (
            TRAIN_JOB,
            "spec.runtimePatches.0.trainingRuntimeSpec.template.spec.replicatedJobs.0.template.spec.template.spec",
        ),
    ],
    ids=["ServingRuntime", "ClusterServingRuntime", "TrainJob"],
)
def test_kinds_whose_pods_can_name_no_runtime_class_refuse_one(manifest, place):
    (error,) = schema_errors(with_value(manifest, f"{place}.runtimeClassName", "nvidia"))
    assert "'runtimeClassName' was unexpected" in error


@pytest.mark.parametrize(
    "kind", ["PyTorchJob", "TrainingRuntime", "ClusterTrainingRuntime", "JobSet", "LeaderWorkerSet"]
)
def test_a_pod_field_of_a_custom_resource_has_to_be_known_to_each_release(kind):
    manifest, pod = POD_KINDS[kind]
    late = with_value(manifest, f"{pod}.initContainers", [{"name": "a", "restartPolicy": "Always"}])
    (error,) = schema_errors(late)
    assert error.endswith("('restartPolicy' was unexpected) (Kubernetes 1.27)")
    assert schema_errors(late, SUPPORTED_RELEASES[1:]) == []


def test_the_crd_of_the_notebook_knows_no_native_sidecar():
    manifest, pod = POD_KINDS["Notebook"]
    late = with_value(manifest, f"{pod}.initContainers", [{"name": "a", "restartPolicy": "Always"}])
    assert custom_resource_errors(late, committed_crds()) == schema_errors(late) != []


@pytest.mark.parametrize(
    ("tried", "pod"),
    [
        (JOB, "spec.template.spec"),
        (PYTORCH_JOB, "spec.pytorchReplicaSpecs.Worker.template.spec"),
        (TRAIN_JOB, "spec.trainer"),
    ],
    ids=["Job", "PyTorchJob", "TrainJob"],
)
def test_what_an_experiment_tries_is_checked_though_its_crd_leaves_it_open(tried, pod):
    wrong = with_value(EXPERIMENT, TRIED, with_value(tried, f"{pod}.runtimeClasName", "nvidia"))
    assert custom_resource_errors(wrong, committed_crds()) == []
    (error,) = schema_errors(wrong)
    assert error.startswith(f"{TRIED}.{pod}: ")
    assert "'runtimeClasName' was unexpected" in error


def test_a_kind_that_an_experiment_cannot_try_is_an_error():
    (error,) = schema_errors(with_value(EXPERIMENT, f"{TRIED}.kind", "Jobb"))
    assert error.startswith(f"{TRIED}.batch/v1 Jobb: neither a kind of Kubernetes")


def gadget_crd(spec: dict) -> dict:
    schema = {"type": "object", "properties": {"spec": spec}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Gadget", "plural": "gadgets"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


STRUCTURAL_CASES = {
    "nullable": ({"type": "string", "nullable": True}, [None, "a"], [1]),
    "nullable-enum": ({"type": "string", "enum": ["a"], "nullable": True}, [None, "a"], ["b"]),
    "int-or-string": (
        {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
        [1, "1"],
        [None, 1.5, True, []],
    ),
    "nullable-int-or-string": (
        {
            "x-kubernetes-int-or-string": True,
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "nullable": True,
        },
        [None, 1, "1"],
        [True],
    ),
    "empty-object": ({"type": "object"}, [{}], [{"a": 1}]),
    "open-object": ({"type": "object", "x-kubernetes-preserve-unknown-fields": True}, [{"a": 1}], ["a"]),
    "half-open-object": (
        {
            "type": "object",
            "properties": {"a": {"type": "integer"}},
            "x-kubernetes-preserve-unknown-fields": True,
        },
        [{"a": 1, "b": 2}],
        [{"a": "x"}],
    ),
    "map": (
        {
            "type": "object",
            "additionalProperties": {"type": "object", "properties": {"a": {"type": "integer"}}},
        },
        [{"x": {"a": 1}}],
        [{"x": {"b": 1}}],
    ),
    "list": (
        {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "integer"}}}},
        [[{"a": 1}]],
        [[{"b": 1}]],
    ),
    "embedded-resource": (
        {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "properties": {"spec": {"type": "object"}},
        },
        [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {}}],
        [{"spec": {}, "apiVersion": "v1"}, {"apiVersion": "v1", "kind": "Pod", "data": {}}],
    ),
    "one-of-two-fields": (
        {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
        },
        [{"a": 1}, {"b": 1}],
        [{}, {"a": 1, "b": 1}],
    ),
}


@pytest.mark.parametrize(("schema", "good", "bad"), STRUCTURAL_CASES.values(), ids=STRUCTURAL_CASES)
def test_structural_schemas_are_read_as_the_api_server_reads_them(schema, good, bad):
    crds = custom_resources([gadget_crd(schema), DAEMON_SET])
    gadget = {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "x"}}
    for value in good:
        assert custom_resource_errors({**gadget, "spec": value}, crds) == []
    for value in bad:
        assert custom_resource_errors({**gadget, "spec": value}, crds) != []


def test_the_app_may_bring_crds_of_its_own():
    crds = custom_resources([gadget_crd({"type": "object"})])
    gadget = {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "x"}, "spec": {}}
    assert schema_errors(gadget, app_crds=crds) == []
    assert schema_errors(with_value(gadget, "spec.a", 1), app_crds=crds) != []


def test_a_crd_of_the_app_cannot_loosen_the_committed_one():
    (loose,) = load_yaml((CRD_FOLDER / "helm.toolkit.fluxcd.io.yaml").read_text())
    open_field(loose, "spec")
    release = {"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": {"name": "x"}}
    wrong = {**release, "spec": {"interval": "1h", "value": {}}}
    assert custom_resource_errors(wrong, custom_resources([loose])) == []
    assert schema_errors(wrong, app_crds=custom_resources([loose])) != []


def test_a_key_given_twice_is_refused_when_reading():
    with pytest.raises(yaml.YAMLError, match="duplicate key 'name'"):
        load_yaml("metadata:\n  name: a\n  name: b\n")


def test_text_that_only_yaml_takes_for_something_else_stays_text():
    assert load_yaml("operator: =\nday: 2026-11-20\n---\nport: 80\n") == [
        {"operator": "=", "day": "2026-11-20"},
        {"port": 80},
    ]


@pytest.mark.parametrize("file", CRD_FILES, ids=lambda file: file.stem)
def test_a_crd_file_holds_one_group_reduced_to_its_structure(file: Path):
    text = file.read_text()
    crds = load_yaml(text)
    assert {crd["spec"]["group"] for crd in crds} == {file.stem}
    assert crds == [reduced_crd(crd) for crd in crds]
    sources = dict(re.findall(r"^# (\w+): (\S+/\S+@v[\w.-]+:\S+\.yaml)$", text, re.MULTILINE))
    assert set(sources) == {crd["spec"]["names"]["kind"] for crd in crds}


@pytest.mark.parametrize("file", CRD_FILES, ids=lambda file: file.stem)
def test_a_crd_file_is_schema_valid_for_every_release(file: Path):
    assert [error for crd in load_yaml(file.read_text()) for error in schema_errors(crd)] == []


def test_reducing_keeps_a_field_that_is_called_description():
    field = {"type": "string", "description": "prose"}
    crd = gadget_crd({"type": "object", "properties": {"description": field}, "title": "prose"})
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"] = {"type": "object"}
    crd["spec"]["names"]["singular"] = "gadget"
    crd["spec"]["versions"].insert(0, {"name": "v1beta1", "served": True, "storage": False})
    (version,) = reduced_crd(crd)["spec"]["versions"]
    assert version["schema"]["openAPIV3Schema"]["properties"] == {
        "spec": {"type": "object", "properties": {"description": {"type": "string"}}}
    }


def test_what_a_crd_says_twice_is_written_once_and_reads_the_same():
    part = {"type": "object", "properties": {name: {"type": "string"} for name in ("a", "b", "c", "d")}}
    schema = {"small": {"type": "string"}, "other": {"type": "string"}, "one": part, "list": [copy.deepcopy(part)]}
    shared = with_equal_parts_shared(schema)
    assert shared == schema
    assert yaml.safe_dump(shared).count("&") == yaml.safe_dump(shared).count("*") == 1


def test_bindings_leave_only_the_pod_template_of_a_notebook_open():
    experiment, notebook, _ = load_yaml((CRD_FOLDER / "kubeflow.org.yaml").read_text())
    open_field(notebook, "spec.template.spec")
    assert load_yaml((CRD_FOLDER.parent / "open" / "kubeflow.org.yaml").read_text()) == [
        experiment,
        notebook,
    ]


@pytest.mark.parametrize(
    "file", load_yaml((ROOT / "cdk8s.yaml").read_text())[0]["imports"], ids=lambda file: Path(file).stem
)
def test_the_bindings_have_the_kinds_of_their_crd_file(file: str):
    crds = load_yaml((ROOT / file).read_text())
    group = crds[0]["spec"]["group"]
    module = importlib.import_module("imports." + ".".join(reversed(group.split("."))))
    classes = [value for value in vars(module).values() if isinstance(value, type)]
    bound = {(gvk.api_version, gvk.kind) for gvk in (kind.GVK for kind in classes if issubclass(kind, cdk8s.ApiObject))}
    assert bound == set(custom_resources(crds))


def test_objects_made_with_the_bindings_satisfy_the_crds():
    chart = cdk8s.Chart(cdk8s.App(), "chart")
    pod = {"runtimeClassName": "nvidia", "containers": [{"name": "jupyter", "image": "jupyter:1"}]}
    Notebook(
        chart,
        "notebook",
        metadata=cdk8s.ApiObjectMetadata(name="jupyter"),
        spec=NotebookSpec(template=NotebookSpecTemplate(spec=pod)),
    )
    Experiment(
        chart,
        "experiment",
        metadata=cdk8s.ApiObjectMetadata(name="tuning"),
        spec={"maxTrialCount": 3, "trialTemplate": {"trialSpec": JOB}},
    )
    ServiceMonitor(
        chart,
        "monitor",
        metadata=cdk8s.ApiObjectMetadata(name="dcgm-exporter"),
        spec=ServiceMonitorSpec(selector=ServiceMonitorSpecSelector(match_labels={"app": "x"}), endpoints=[]),
    )
    manifests = cdk8s.Testing.synth(chart)
    assert manifests[0]["spec"]["template"]["spec"] == pod
    assert manifests[1]["spec"]["trialTemplate"] == {"trialSpec": JOB}
    assert [error for manifest in manifests for error in schema_errors(manifest)] == []

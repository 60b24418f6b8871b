"""Each invariant is shown failing once, on a small set of objects that satisfies all of them."""

from __future__ import annotations

import json
from copy import deepcopy
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import yaml

import dist
import invariants

Manifest = dict[str, Any]

LABELS = {"app": "agent"}
SECURITY = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
CONFIG = "level: info\n"
TEMPLATE: Manifest = {
    "metadata": {"labels": LABELS, "annotations": {"checksum": sha256(CONFIG.encode()).hexdigest()}},
    "spec": {
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "nvidia.com/gpu.present", "operator": "In", "values": ["true"]}]}
                    ]
                }
            }
        },
        "containers": [
            {
                "name": "agent",
                "image": "registry.example:5000/agent:v1",
                "imagePullPolicy": "IfNotPresent",
                "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
                "readinessProbe": {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 10},
                "livenessProbe": {"tcpSocket": {"port": 8080}},
                "resources": {"limits": {"memory": "1Gi", "nvidia.com/gpu": 1}},
                "securityContext": SECURITY,
                "volumeMounts": [{"name": "config", "mountPath": "/config"}, {"name": "data", "mountPath": "/data"}],
            }
        ],
        "restartPolicy": "Always",
        "priorityClassName": "system-node-critical",
        "runtimeClassName": "nvidia",
        "serviceAccountName": "agent",
        "tolerations": [{"key": "dedicated", "operator": "Equal", "value": "ai", "effect": "NoSchedule"}],
        "volumes": [
            {"name": "config", "configMap": {"name": "agent"}},
            {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
        ],
    },
}
NFD_CONFIG = yaml.safe_dump(
    {"sources": {"pci": {"deviceLabelFields": ["vendor"]}, "custom": [{"labels": {"nvidia.com/gpu.present": "true"}}]}}
)


def metadata(name: str, **fields: object) -> Manifest:
    return {"name": name, "namespace": "gpu", **fields}


def good() -> dict[str, Manifest]:
    """One small cluster with nothing wrong, by a short name for each object."""
    levels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "audit", "warn")}
    service_ports = [{"name": "http", "port": 80, "targetPort": "http"}]
    config_labels = {"app.kubernetes.io/managed-by": "cdk8s"}
    subject = {"kind": "ServiceAccount", "name": "agent", "namespace": "gpu"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "agent"}
    worker: Manifest = {
        "metadata": {"labels": {"app": "worker"}},
        "spec": {
            "containers": [
                {
                    "name": "worker",
                    "image": "nfd:v1",
                    "command": ["nfd-worker"],
                    "securityContext": SECURITY,
                    "volumeMounts": [{"name": "config", "mountPath": "/config"}],
                }
            ],
            "volumes": [{"name": "config", "configMap": {"name": "worker"}}],
        },
    }
    storage = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    made: dict[str, Manifest] = {
        "namespace": {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gpu", "labels": levels}},
        "runtime-class": {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "handler": "nvidia"},
        "config": {"apiVersion": "v1", "kind": "ConfigMap", "data": {"config.yaml": CONFIG}},
        "account": {"apiVersion": "v1", "kind": "ServiceAccount"},
        "role": {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "rules": []},
        "binding": {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "roleRef": role,
            "subjects": [subject],
        },
        "claim": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": storage},
        "agent": {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "spec": {"selector": {"matchLabels": LABELS}, "template": TEMPLATE, "updateStrategy": {"type": "OnDelete"}},
        },
        "service": {"apiVersion": "v1", "kind": "Service", "spec": {"selector": LABELS, "ports": service_ports}},
        "worker-config": {"apiVersion": "v1", "kind": "ConfigMap", "data": {"nfd-worker.conf": NFD_CONFIG}},
        "worker": {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "spec": {"selector": {"matchLabels": {"app": "worker"}}, "template": worker},
        },
        "pod": {"apiVersion": "v1", "kind": "Pod", "spec": {**worker["spec"], "serviceAccountName": "agent"}},
        "monitor": {
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "ServiceMonitor",
            "spec": {"selector": {"matchLabels": {"scrape": "yes"}}, "endpoints": [{"port": "http"}]},
        },
    }
    names = {
        "namespace": "gpu",
        "runtime-class": "nvidia",
        "claim": "data",
        "worker-config": "worker",
        "worker": "worker",
    }
    for short, manifest in made.items():
        manifest.setdefault("metadata", metadata(names.get(short, "agent")))
    del made["runtime-class"]["metadata"]["namespace"]
    made["config"]["metadata"]["labels"] = config_labels
    made["service"]["metadata"]["labels"] = {"scrape": "yes"}
    return deepcopy(made)


def changed(objects: dict[str, Manifest], path: str, value: object) -> dict[str, Manifest]:
    """Set the field at a path such as ``agent/spec/containers/0/name``; None removes it."""
    *parents, last = [int(step) if step.isdigit() else step.replace("~", "/") for step in path.split("/")]
    holder: Any = objects
    for step in parents:
        holder = holder[step]
    if value is None:
        del holder[last]
    else:
        holder[last] = value
    return objects


def notebook(**container: object) -> Manifest:
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "Notebook",
        "metadata": metadata("notebook"),
        "spec": {"template": {"spec": {"containers": [{"name": "notebook", **container}]}}},
    }


STATEFUL_SET: Manifest = {
    "apiVersion": "apps/v1",
    "kind": "StatefulSet",
    "metadata": metadata("set"),
    "spec": {
        "serviceName": "set",
        "selector": {"matchLabels": {"app": "set"}},
        "template": {
            "metadata": {"labels": {"app": "set"}},
            "spec": {"containers": [{"name": "set", "image": "set:v1", "securityContext": SECURITY}]},
        },
    },
}
POD = "agent/spec/template/spec"
CONTAINER = f"{POD}/containers/0"
TERM = f"{POD}/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms"


def test_the_small_cluster_satisfies_every_invariant(tmp_path: Path) -> None:
    invariants.hold_for([*good().values()])
    invariants.hold_for_cluster(written(tmp_path, good()))


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        ("agent/spec/replicas", 1, r"Additional properties are not allowed \('replicas'"),
        ("agent/apiVersion", "apps/v1beta1", "neither a kind of Kubernetes"),
        ("monitor/spec/endpointz", [], r"\('endpointz' was unexpected"),
        ("runtime-class/metadata/namespace", "gpu", "cluster-scoped but carries a namespace"),
        ("agent/metadata/namespace", None, "DaemonSet -/agent: carries no namespace"),
        ("monitor/metadata/namespace", None, "ServiceMonitor -/agent: carries no namespace"),
        ("worker-config/metadata/name", "agent", "ConfigMap gpu/agent: emitted twice"),
        (f"{CONTAINER}/image", "registry.example:5000/agent", "'registry.example:5000/agent' is not pinned"),
        (f"{CONTAINER}/image", "agent:latest", "'agent:latest' is not pinned"),
        ("monitor", notebook(image="jupyter"), "Notebook gpu/notebook: image 'jupyter' is not pinned"),
        ("monitor", notebook(image="jupyter:v1", imagePullPolicy="always"), "imagePullPolicy is 'always'"),
        ("namespace/metadata/labels/pod-security.kubernetes.io~enforce", None, "no Pod Security level to enforce"),
        ("namespace/metadata/labels/pod-security.kubernetes.io~audit", None, "no Pod Security level to audit"),
        ("namespace/metadata/labels/pod-security.kubernetes.io~warn", "priviliged", "to warn; has 'priviliged'"),
        ("agent/spec/selector/matchLabels", {"app": "other"}, "does not match its pods' labels"),
        ("worker/spec/template/metadata/labels/app", "agent", "DaemonSet gpu/agent: selects the pods of .*gpu/worker"),
        ("pod/metadata/labels", LABELS, "DaemonSet gpu/agent: selects the pods of v1 Pod gpu/agent"),
        ("service/spec/selector", {"app": "nobody"}, "selects the pods of 0 workloads"),
        ("service/metadata/namespace", "other", "selects the pods of 0 workloads"),
        ("service/spec/ports/0/targetPort", "https", "targetPort 'https' is no port of its pods"),
        ("config/data/config.yaml", "level: debug\n", "no checksum of config.yaml in ConfigMap 'agent'"),
        ("agent/spec/template/metadata/annotations", None, "no checksum of config.yaml in ConfigMap 'agent'"),
        (f"{CONTAINER}/volumeMounts/0/name", "settings", "mounts volume 'settings', which the pod does not have"),
        (f"{CONTAINER}/volumeMounts/0/name", "data", "volume 'config' is mounted nowhere"),
        (f"{CONTAINER}/volumeMounts/0/mountPath", "/data", "mountPath '/data' given twice"),
        (f"{POD}/volumes/0/name", "data", "volume name 'data' given twice"),
        (f"{CONTAINER}/ports", [{"name": "http", "containerPort": p} for p in (1, 2)], "port name 'http' given twice"),
        (f"{CONTAINER}/ports", [{"name": n, "containerPort": 1} for n in "ab"], r"port \(1, 'TCP'\) given twice"),
        (f"{CONTAINER}/ports/0/containerPort", 99999, "containerPort is 99999"),
        (f"{CONTAINER}/ports/0/name", "sixteen-letters-", "more than 15 characters"),
        (f"{CONTAINER}/ports/0/protocol", "tcp", "protocol is 'tcp'"),
        (f"{CONTAINER}/env", [{"name": "A", "value": v} for v in "12"], "variable 'A' given twice"),
        (f"{POD}/initContainers", [{"name": "agent", "image": "agent:v1"}], "container name 'agent' given twice"),
        (f"{CONTAINER}/imagePullPolicy", "ifNotPresent", "imagePullPolicy is 'ifNotPresent'"),
        (f"{CONTAINER}/securityContext/seccompProfile/type", "Default", "seccompProfile.type is 'Default'"),
        ("agent/spec/updateStrategy/type", "Recreate", "updateStrategy.type is 'Recreate'"),
        ("service/spec/type", "Headless", "spec.type is 'Headless'"),
        (f"{POD}/restartPolicy", "Never", "restartPolicy is 'Never'"),
        ("pod/spec/restartPolicy", "never", "restartPolicy is 'never'"),
        (f"{POD}/tolerations/0/operator", "Equals", "toleration operator is 'Equals'"),
        (f"{POD}/tolerations/0/operator", "Exists", "Exists takes no value"),
        (f"{POD}/tolerations/0/key", None, "without a key must use Exists"),
        (f"{POD}/tolerations/0/effect", "NoShedule", "toleration effect is 'NoShedule'"),
        (f"{POD}/tolerations/0/tolerationSeconds", 5, "needs effect NoExecute"),
        (TERM, [], "required node affinity without a term"),
        (f"{TERM}/0/matchExpressions/0/operator", "Is", "operator 'Is' with values"),
        (f"{TERM}/0/matchExpressions/0/operator", "Exists", "operator 'Exists' with values"),
        (f"{TERM}/0/matchExpressions/0/operator", "Gt", "operator 'Gt' with values"),
        (f"{TERM}/0/matchExpressions/0/values", [], r"operator 'In' with values \[\]"),
        (f"{CONTAINER}/readinessProbe/exec", {"command": ["true"]}, r"have one handler; has \['exec', 'httpGet'\]"),
        (f"{CONTAINER}/readinessProbe/httpGet", None, r"must have one handler; has \[\]"),
        (f"{CONTAINER}/readinessProbe/httpGet/port", "https", "asks port 'https', which container 'agent' does not"),
        (f"{CONTAINER}/livenessProbe/tcpSocket/port", 0, "livenessProbe asks port 0"),
        (f"{CONTAINER}/readinessProbe/periodSeconds", 0, "readinessProbe.periodSeconds is 0"),
        (f"{CONTAINER}/livenessProbe/successThreshold", 2, "livenessProbe.successThreshold must be 1"),
        (f"{CONTAINER}/resources/limits/nvidia.com~gpu", "1.5", "must be a whole number of 1 or more; got '1.5'"),
        (f"{CONTAINER}/resources/limits/nvidia.com~gpu", 0, "must be a whole number of 1 or more; got 0"),
        (f"{CONTAINER}/resources/requests", {"nvidia.com/gpu": 2}, "must equal its limit 1; got 2"),
        (f"{CONTAINER}/resources", {"requests": {"nvidia.com/gpu": 1}}, "limit of nvidia.com/gpu must be .*got None"),
        (f"{CONTAINER}/env", [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}], "sets NVIDIA_VISIBLE_DEVICES"),
    ],
)  # fmt: skip
def test_an_object_with_one_thing_wrong_is_refused(path: str, value: object, problem: str) -> None:
    objects = changed(good(), path, value)
    with pytest.raises(AssertionError, match=problem):
        invariants.hold_for([*objects.values()])


def test_every_problem_is_told_with_the_object_it_is_about() -> None:
    objects = changed(changed(good(), f"{CONTAINER}/image", "agent"), "pod/spec/restartPolicy", "never")
    with pytest.raises(AssertionError) as failure:
        invariants.hold_for([*objects.values()])
    assert len(str(failure.value).splitlines()) == 2
    assert "apps/v1 DaemonSet gpu/agent: image 'agent' is not pinned" in str(failure.value)


def test_a_job_must_say_what_a_failed_pod_does() -> None:
    spec = {"containers": [{"name": "job", "image": "job:v1"}]}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata("job"), "spec": {"template": {"spec": spec}}}
    with pytest.raises(AssertionError, match="restartPolicy is None"):
        invariants.hold_for([job])


# --- a whole cluster ------------------------------------------------------------------------------------------


def written(folder: Path, objects: dict[str, Manifest], name: str = "20-all.k8s.yaml") -> Path:
    """A cluster's folder: Namespaces first, custom resources apart, the rest in one file."""
    files: dict[str, list[Manifest]] = {"00-namespaces.k8s.yaml": [], name: [], "needs-crds/all.k8s.yaml": []}
    for short, manifest in objects.items():
        file = {"namespace": "00-namespaces.k8s.yaml", "monitor": "needs-crds/all.k8s.yaml"}.get(short, name)
        files[file].append(manifest)
    cluster = folder / "cluster"
    for file, documents in files.items():
        (cluster / file).parent.mkdir(parents=True, exist_ok=True)
        (cluster / file).write_text("---\n".join(json.dumps(document) + "\n" for document in documents))
    return cluster


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        (f"{POD}/volumes/0/configMap/name", "other", "needs ConfigMap 'other' in namespace 'gpu'"),
        ("config/metadata/namespace", "kube-system", "needs ConfigMap 'agent' in namespace 'gpu'"),
        (f"{CONTAINER}/envFrom", [{"secretRef": {"name": "token"}}], "needs Secret 'token' in namespace 'gpu'"),
        (f"{POD}/volumes/1/persistentVolumeClaim/claimName", "x", "needs PersistentVolumeClaim 'x' in namespace"),
        (f"{POD}/serviceAccountName", "other", "needs ServiceAccount 'other' in namespace 'gpu'"),
        (f"{POD}/runtimeClassName", "kata", "needs RuntimeClass 'kata', which is not there"),
        (f"{POD}/priorityClassName", "high", "needs PriorityClass 'high', which is not there"),
        ("binding/roleRef/name", "other", "RoleBinding gpu/agent: needs Role 'other' in namespace 'gpu'"),
        ("binding/subjects/0/namespace", "other", "needs ServiceAccount 'agent' in namespace 'other'"),
        ("pod", STATEFUL_SET, "StatefulSet gpu/set: needs Service 'set' in namespace 'gpu'"),
        ("claim/metadata/namespace", "other", "needs Namespace 'other', which is not there"),
        (f"{POD}/nodeSelector", {"disk": "ssd"}, "nothing labels nodes with disk"),
        ("worker-config/data/nfd-worker.conf", NFD_CONFIG.replace("gpu.present", "x"), "nothing labels nodes with"),
        ("monitor/spec/selector/matchLabels", {"scrape": "no"}, "no Service that it selects has a port 'http'"),
        ("monitor/spec/endpoints/0/port", "metrics", "no Service that it selects has a port 'metrics'"),
        (f"{CONTAINER}/securityContext/privileged", True, "namespace 'gpu' enforces restricted: privileged"),
        (f"{POD}/hostPID", True, "namespace 'gpu' enforces restricted: hostNamespaces"),
        ("pod/spec/serviceAccountName", None, "Pod gpu/agent: is applied before ServiceAccount 'default'"),
    ],
)  # fmt: skip
def test_a_cluster_with_one_thing_wrong_is_refused(path: str, value: object, problem: str, tmp_path: Path) -> None:
    folder = written(tmp_path, changed(good(), path, value))
    with pytest.raises(AssertionError, match=problem):
        invariants.hold_for_cluster(folder)


def test_what_a_cluster_gets_from_elsewhere_is_a_row_of_the_table(tmp_path: Path) -> None:
    folder = written(tmp_path, changed(good(), f"{POD}/nodeSelector", {"disk": "ssd"}))
    row = dist.External("cluster", "node label", "disk", "somebody labels nodes")
    invariants.hold_for_cluster(folder, externals=[row])
    with pytest.raises(AssertionError, match="nothing labels nodes with disk"):
        invariants.hold_for_cluster(folder, externals=[row._replace(cluster="another")])


def test_nfd_labels_devices_by_vendor_alone_when_its_file_says_so(tmp_path: Path) -> None:
    objects = changed(good(), f"{POD}/nodeSelector", {"feature.node.kubernetes.io/pci-10de.present": "true"})
    invariants.hold_for_cluster(written(tmp_path, objects))
    changed(objects, "worker-config/data/nfd-worker.conf", NFD_CONFIG.replace("- vendor", "- class\n    - vendor"))
    with pytest.raises(AssertionError, match=r"nothing labels nodes with .*pci-10de\.present"):
        invariants.hold_for_cluster(written(tmp_path, objects))


def test_a_namespace_that_kubectl_reads_later_is_refused(tmp_path: Path) -> None:
    folder = written(tmp_path, good(), name="00-all.k8s.yaml")
    with pytest.raises(AssertionError, match="ConfigMap gpu/agent: is applied before Namespace 'gpu'"):
        invariants.hold_for_cluster(folder)


def test_a_custom_resource_beside_the_built_in_objects_is_refused(tmp_path: Path) -> None:
    objects = good()
    folder = written(tmp_path, {"other-monitor": objects.pop("monitor"), **objects})
    with pytest.raises(AssertionError, match=r"ServiceMonitor gpu/agent needs a CRD and belongs in needs-crds/"):
        invariants.hold_for_cluster(folder)


def test_a_custom_resource_beside_the_crd_that_defines_it_is_refused(tmp_path: Path) -> None:
    objects = good()
    objects["crd"] = crd()
    objects["new"] = {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": metadata("new"), "spec": {}}
    with pytest.raises(AssertionError, match=r"Gadget gpu/new needs a CRD and belongs in needs-crds/"):
        invariants.hold_for_cluster(written(tmp_path, objects))


def crd() -> Manifest:
    spec_schema = {"type": "object", "properties": {"size": {"type": "integer"}}}
    schema = {"type": "object", "properties": {"spec": spec_schema}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "Gadget", "plural": "gadgets"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.example.com"},
        "spec": {"group": "example.com", "names": names, "scope": "Namespaced", "versions": [version]},
    }


def test_a_custom_resource_is_checked_against_the_crd_beside_it() -> None:
    gadget = {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": metadata("new"), "spec": {"size": 1}}
    invariants.hold_for([crd(), gadget])
    gadget["spec"] = {"sise": 1}
    with pytest.raises(AssertionError, match=r"\('sise' was unexpected"):
        invariants.hold_for([crd(), gadget])


def test_a_built_in_object_among_the_custom_resources_is_refused(tmp_path: Path) -> None:
    objects = good()
    folder = written(tmp_path, objects | {"monitor": objects["claim"], "claim": objects["monitor"]})
    with pytest.raises(AssertionError, match=r"PersistentVolumeClaim gpu/data needs no CRD and belongs one folder up"):
        invariants.hold_for_cluster(folder)


@pytest.mark.parametrize("name", ["values.yaml", "report.json", "notes.yml", "needs-crds/values.yaml"])
@pytest.mark.parametrize("text", ["driver:\n  enabled: false\n", "[]\n", "---\n---\nkind: Pod\n"])
def test_a_file_that_is_no_manifest_is_refused_where_kubectl_reads(tmp_path: Path, name: str, text: str) -> None:
    folder = written(tmp_path, good())
    (folder / name).write_text(text)
    with pytest.raises(AssertionError, match="kubectl would read a document that is no manifest"):
        invariants.hold_for_cluster(folder)


def test_a_key_given_twice_is_refused(tmp_path: Path) -> None:
    folder = written(tmp_path, good())
    (folder / "twice.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nkind: Secret\nmetadata: {}\n")
    with pytest.raises(yaml.YAMLError, match="duplicate key 'kind'"):
        invariants.hold_for_cluster(folder)


def test_files_are_read_as_kubectl_reads_them_by_name_without_subfolders(tmp_path: Path) -> None:
    for name in ("b.yaml", "a.json", "c.yml", "README.md", "sub/d.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}\n")
    assert [path.name for path in dist.files(tmp_path)] == ["a.json", "b.yaml", "c.yml"]

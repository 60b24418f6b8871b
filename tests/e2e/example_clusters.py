"""The clusters of dist/: their nodes, the commands that apply them, and what other parties bring to them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import dist
import documents
import plans
import schemas
from cluster import Answer, Cluster, Found, condition, eventually
from dist import DIST, ROOT
from kubelet import Kubelets, Node

GPU = "nvidia.com/gpu"
OPERATOR = "talos-gpu-operator"
# Talos labels a node with each of its extensions.
TALOS_LABELS = {OPERATOR: {"extensions.talos.dev/nvidia-open-gpu-kernel-modules-production": "610.43.03-v1.12.11"}}
# Nothing in it publishes labels.
WITHOUT_DISCOVERY = "kubernetes-basic"

# NVIDIA/gpu-operator@v25.10.1:controllers/state_manager.go, assets/pre-requisites/0400_runtimeclass.yaml.
_RUNTIME_CLASS = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "nvidia", "labels": {"app.kubernetes.io/component": "gpu-operator"}},
    "handler": "nvidia",
}


def nodes(name: str) -> list[Node]:
    """Return the GPU nodes that a cluster was planned for, with what its feature discovery publishes."""
    found = nodes_in(DIST / "reports" / name)
    return [
        replace(node, labels={} if name == WITHOUT_DISCOVERY else {**node.labels, **TALOS_LABELS.get(name, {})})
        for node in found
    ]


def nodes_in(reports: Path) -> list[Node]:
    """Return the nodes of the capacity plan in a folder of reports."""
    report = json.loads((reports / "capacity-plan.json").read_text(encoding="utf-8"))
    return [
        Node(
            node["title"],
            node["labels"],
            tuple(node["taints"]),
            node["allocatable"],
            frozenset(device["resource"] for device in node["devices"] if device["mostEach"] == 1),
        )
        for node in report["nodes"]
    ]


def waiting(name: str) -> int:
    """Return how many pods find no place by the capacity plan."""
    report = json.loads((DIST / "reports" / name / "capacity-plan.json").read_text(encoding="utf-8"))
    return sum(consumer["waiting"] for consumer in report["consumers"])


def apply_commands(name: str) -> list[list[str]]:
    """Return the commands by which the documents apply a cluster, each as words without kubectl."""
    first, *_ = documents.blocks(documents.EXAMPLE_CLUSTERS, "bash", f"## {name}")
    lines = [line.split() for line in first.text.splitlines()]
    return [words[1:] for words in lines if words[:2] == ["kubectl", "apply"]]


def apply_as_documented(cluster: Cluster, name: str, *flags: str) -> Answer:
    """Apply a cluster by the commands of the documents, with more flags, and return all that they print."""
    answers = []
    for command in apply_commands(name):
        answers.append(cluster.kubectl(*command, *flags, folder=ROOT))
        if name == OPERATOR and command[-1].endswith("/needs-crds/"):
            cluster.apply(_RUNTIME_CLASS)
    return Answer(
        max(answer.status for answer in answers),
        "".join(answer.stdout for answer in answers),
        "".join(answer.stderr for answer in answers),
    )


def bring_definitions(cluster: Cluster, name: str) -> None:
    """Apply the definitions of custom resources that a cluster of dist/ takes for granted."""
    found = [one for documents in dist.files(DIST / name / dist.NEEDS_CRDS).values() for one in documents]
    bring_definitions_of(cluster, found)


def bring_definitions_of(cluster: Cluster, manifests: Iterable[Found]) -> None:
    """Apply the definitions of custom resources that are among these objects."""
    needed = {(one["apiVersion"], one["kind"]) for one in manifests}
    groups = {version.partition("/")[0] for version, _ in needed}
    found = [one for one in _definitions() if one["spec"]["group"] in groups]
    cluster.apply(*found)
    for version, kind in needed & {_defined(one) for one in found}:
        cluster.list(version, kind)


def _defined(definition: Found) -> tuple[str, str]:
    spec = definition["spec"]
    return f"{spec['group']}/{spec['versions'][0]['name']}", spec["names"]["kind"]


@cache
def _definitions() -> Sequence[Found]:
    """Return the definitions in imports/, which leave the status of their objects open."""
    files = sorted(schemas.CRD_FOLDER.glob("*.yaml"))
    found = [one for file in files for one in schemas.load_yaml(file.read_text(encoding="utf-8"))]
    for definition in found:
        for version in definition["spec"]["versions"]:
            properties = version["schema"]["openAPIV3Schema"].setdefault("properties", {})
            properties["status"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
            version["subresources"] = {"status": {}}
    return found


def controllers(cluster: Cluster, manifests: Iterable[Found]) -> Iterator[Found]:
    """Return the controllers of pods among these objects, as they are now."""
    for one in manifests:
        if one["kind"] in ("DaemonSet", "Deployment", "Job", "StatefulSet"):
            yield cluster.get(one["apiVersion"], one["kind"], one["metadata"]["name"], one["metadata"]["namespace"])


def has_its_pods(controller: Found) -> bool:
    """Check whether a controller has created all pods that it wants, wherever they are."""
    status, spec, generation = controller.get("status", {}), controller["spec"], controller["metadata"]["generation"]
    if status.get("observedGeneration", generation) != generation:
        return False
    match controller["kind"]:
        case "DaemonSet":
            wanted = status.get("desiredNumberScheduled", 0)
            return 0 < wanted == status.get("numberReady", 0) == status.get("updatedNumberScheduled", 0)
        case "Deployment":
            return status.get("updatedReplicas", 0) == status.get("replicas", 0) == spec["replicas"]
        case "StatefulSet":
            wanted = spec["replicas"] if spec["podManagementPolicy"] == "Parallel" else 1
            return status.get("replicas", 0) >= wanted
    is_complete = condition(controller, "Complete").get("status") == "True"
    return is_complete or spec["suspend"] or status.get("active", 0) == spec["parallelism"]


def wait_for_pods(cluster: Cluster, manifests: Sequence[Found]) -> None:
    """Wait until every controller has created its pods, and each pod runs or has found no node."""

    def lacking() -> dict[str, Any]:
        found = controllers(cluster, manifests)
        return {_title(one): one.get("status") for one in found if not has_its_pods(one)}

    def unsettled() -> list[str]:
        return [_title(pod) for pod in cluster.pods() if not _is_settled(pod)]

    eventually(lambda: not lacking(), "every controller has its pods", state=lacking)
    eventually(lambda: not unsettled(), "every pod runs or waits", state=unsettled)


def _title(one: Found) -> str:
    return f"{one['kind']} {one['metadata']['namespace']}/{one['metadata']['name']}"


def refusals(cluster: Cluster) -> list[str]:
    """Return what the API server said to controllers whose pods it refused.

    A Namespace gets its default ServiceAccount a moment after it was made, and admission learns of a PriorityClass a
    moment after it was stored; controllers try again.
    """
    soon = ('serviceaccount "default" not found', "no PriorityClass with name")
    said = plans.reports(cluster, "FailedCreate")
    return [message for message in said if not any(words in message for words in soon)]


def _is_settled(pod: Found) -> bool:
    if pod["spec"].get("nodeName"):
        return pod["status"]["phase"] != "Pending"
    return condition(pod, "PodScheduled").get("status") == "False"


def register(kubelets: Kubelets, name: str, *others: Node) -> None:
    """Register the nodes of a cluster, and others beside them."""
    kubelets.register(*nodes(name), *others)


def identity(one: Found) -> tuple[Any, ...]:
    """Return what tells an object from all others."""
    return one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"]


def stored(cluster: Cluster, name: str) -> dict[tuple[Any, ...], Found]:
    """Return every object of a cluster, without what controllers report in its status."""
    return {identity(one): _without_status(one, cluster) for one in dist.objects(name)}


def _without_status(manifest: Found, cluster: Cluster) -> Found:
    metadata = manifest["metadata"]
    found = cluster.get(manifest["apiVersion"], manifest["kind"], metadata["name"], metadata.get("namespace"))
    if "status" in found:
        # It counts reports, too; who changed anything else when stands in managedFields.
        del found["status"], found["metadata"]["resourceVersion"]
        managers = found["metadata"]["managedFields"]
        found["metadata"]["managedFields"] = [one for one in managers if one.get("subresource") != "status"]
    return found


def settled(cluster: Cluster, name: str) -> dict[tuple[Any, ...], Found]:
    """Return what is stored once each claim has a volume and no controller changes an object any more."""
    claims = [one for one in dist.objects(name) if one["kind"] == "PersistentVolumeClaim"]

    def unchanged_for_a_second() -> dict[tuple[Any, ...], Found] | None:
        before = stored(cluster, name)
        time.sleep(1)
        has_volumes = all("volumeName" in before[identity(claim)]["spec"] for claim in claims)
        return before if has_volumes and stored(cluster, name) == before else None

    found = eventually(unchanged_for_a_second, "no controller changes an object any more")
    assert found is not None
    return found

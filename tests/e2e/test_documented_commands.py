"""The kubectl commands of the documents, run as they are written on the clusters that they are about."""

import re
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest

import dist
import documented
import documents
import example_clusters as examples
from cluster import condition, eventually
from kubelet import Node

ALL = [line for page in documented.PAGES for line in documented.lines(page)]
# One cluster after the other, each with its commands in the order of the pages.
RUN = sorted((line for line in ALL if line.reason is None), key=lambda line: dist.CLUSTERS.index(line.cluster))
NAMESPACE = "nvidia-gpu-operator"
DEDICATED = {"key": "dedicated", "value": "ai", "effect": "NoSchedule"}

CLUSTER_POLICIES = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "clusterpolicies.nvidia.com"},
    "spec": {
        "group": "nvidia.com",
        "names": {"kind": "ClusterPolicy", "plural": "clusterpolicies", "singular": "clusterpolicy"},
        "scope": "Cluster",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
CLUSTER_POLICY = {
    "apiVersion": "nvidia.com/v1",
    "kind": "ClusterPolicy",
    "metadata": {"name": "cluster-policy"},
    "spec": {"hostPaths": {"driverInstallDir": "/var/lib/gpu-constructs/driver"}},
    "status": {"state": "ready"},
}


def controller(kind, name, api_version="apps/v1", **pod):
    """Return an object whose pods other parties would make."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "none:1"}], **pod}}
    selector = {"selector": {"matchLabels": labels}} if kind != "Job" else {}
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": {**selector, "template": template}}


def the_operator_runs(cluster):
    """Stand in for Flux and for the operator that it installs."""
    (release,) = cluster.list("helm.toolkit.fluxcd.io/v2", "HelmRelease")
    ready = {"type": "Ready", "status": "True", "reason": "InstallSucceeded", "message": "", "observedGeneration": 1}
    cluster.patch(release, {"status": {"conditions": [ready]}}, part="status")
    on_gpus = {"nodeSelector": {"nvidia.com/gpu.present": "true"}}
    cluster.apply(
        CLUSTER_POLICIES, CLUSTER_POLICY, controller("DaemonSet", "nvidia-device-plugin-daemonset", **on_gpus)
    )


def something_is_wrong(cluster):
    """Bring what the commands of a diagnosis look for: a refused pod, a pod that waits, an old label."""
    refused = {"restartPolicy": "Never", "runtimeClassName": "does-not-exist"}
    env = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]
    waiting = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "mine", "namespace": "default"},
        "spec": {
            "containers": [{"name": "main", "image": "none:1", "env": env}],
            "nodeSelector": {"no-such": "label"},
            "runtimeClassName": "nvidia",
            "tolerations": [{"operator": "Exists"}],
        },
    }
    cluster.apply(controller("Job", "refused", "batch/v1", **refused), waiting)
    cluster.patch({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "cpu"}}, OLD_LABEL)
    eventually(lambda: examples.refusals(cluster), "a pod is refused")


OLD_LABEL = {"metadata": {"labels": {"node-role.kubernetes.io/gpu": "true"}}}
BESIDE = {"talos-gpu-operator": the_operator_runs, "talos-rtx5070ti": something_is_wrong}


class World(NamedTuple):
    """A cluster of dist/ on which everything runs."""

    name: str
    cluster: Any
    kubelets: Any


@pytest.fixture(scope="module")
def world(request, sites, release):
    name, (cluster, kubelets) = request.param, sites.site(release, "talos")
    examples.register(kubelets, name, Node("cpu"))
    examples.bring_definitions(cluster, name)
    assert examples.apply_as_documented(cluster, name).status == 0
    if name in BESIDE:
        BESIDE[name](cluster)
    examples.wait_for_pods(cluster, dist.objects(name))
    yield World(name, cluster, kubelets)
    cluster.reset()
    kubelets.forget()


@contextmanager
def node_for(line, world):
    """Return the node for a line: the GPU node, or one that may be changed."""
    gpu_node = examples.nodes(world.name)[0].name
    if line.verb not in ("label", "taint"):
        yield gpu_node
        return
    labels = {"nvidia.com/gpu.deploy.operator-validator": "true"}
    new = Node("new", labels, (DEDICATED,) if line.text.endswith("dedicated-") else ())
    world.kubelets.register(new)
    try:
        yield new.name
    finally:
        world.cluster.delete(new.manifest())


def pod_for(line, world):
    if "<namespace>" in line.text:
        return "mine"
    return world.cluster.pods(NAMESPACE, labels="app.kubernetes.io/name=dcgm-exporter")[0]["metadata"]["name"]


def start_jobs_again(world):
    """Start the Jobs of dist/ that an earlier command finished or deleted, and wait until all pods run or wait."""
    for job in (one for one in dist.objects(world.name) if one["kind"] == "Job"):
        found = world.cluster.find("batch/v1", "Job", job["metadata"]["name"], job["metadata"]["namespace"])
        if found is None or condition(found, "Complete").get("status") == "True":
            restart(world.cluster, job)
    examples.wait_for_pods(world.cluster, dist.objects(world.name))


def restart(cluster, job):
    name, namespace = job["metadata"]["name"], job["metadata"]["namespace"]
    cluster.delete(job)
    eventually(
        lambda: not cluster.list("v1", "Pod", namespace, labels=f"job-name={name}"), "the pods of a Job are deleted"
    )
    eventually(lambda: cluster.find("batch/v1", "Job", name, namespace) is None, "a Job is deleted")
    cluster.apply(job)


def finish(world, namespace, name):
    """Have the pods of a Job succeed until the Job is complete."""

    def is_complete():
        for pod in world.cluster.pods(namespace, labels=f"job-name={name}"):
            if pod["status"]["phase"] == "Running":
                world.kubelets.finish(pod)
        return condition(world.cluster.get("batch/v1", "Job", name, namespace), "Complete").get("status") == "True"

    eventually(is_complete, f"{name} is complete")


def command(line, world, node):
    """Return what a reader types: a line with their own names, and what it stores shown."""
    text = line.text.replace("<node>", node)
    if "<pod>" in text:
        text = text.replace("<pod>", pod_for(line, world)).replace("<namespace>", "default")
    if stored := re.match(r"(\w+)=\$\(", text):
        text += f'; echo "${stored[1]}"'
    return text


def shows_something(line, answer):
    """Check whether a command found what it asks for."""
    if "custom-columns" in line.text:
        return any("<none>" not in row for row in answer.lines[1:])
    if labels := re.search(r" -L (\S+)", line.text):
        return any(row.split()[-1] in ("true", "false") for row in answer.lines[1:]) and bool(labels)
    return bool(answer.stdout.strip())


@pytest.mark.parametrize(
    ("world", "line"),
    # Commands for one cluster run on one worker, which installs it once.
    [
        pytest.param(line.cluster, line, marks=pytest.mark.xdist_group(f"commands for {line.cluster}"), id=line.where)
        for line in RUN
    ],
    indirect=["world"],
    scope="module",
)
def test_a_documented_command_works_as_written(world, line):
    start_jobs_again(world)
    if job := re.search(r"condition=complete job/(\S+) -n (\S+)|wait job/(\S+) -n (\S+)", line.text):
        name, namespace = (found for found in job.groups() if found)
        finish(world, namespace, name)
    with node_for(line, world) as node:
        text = command(line, world, node)
        assert not re.search(r"<[a-z-]+>", text)
        answer = world.cluster.shell(text, dist.ROOT)
        assert answer.status == 0, answer.stderr
        assert shows_something(line, answer), answer.stdout


@pytest.mark.parametrize("page", documented.PAGES, ids=lambda page: page.stem)
def test_no_command_of_a_page_is_forgotten(page):
    written = "".join(block.text for block in documents.blocks(page)).count("kubectl ")
    written += documents.prose(page).count("`kubectl ")
    assert written == sum(line.text.count("kubectl ") for line in ALL if line.page == page) > 0


def test_every_reason_is_needed():
    used = {line.text for line in ALL if line.reason is not None}
    assert set(documented.NOT_FOR_A_CLUSTER) <= used

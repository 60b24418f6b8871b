"""The example clusters, applied as documented, with nodes as their capacity plans have them."""

import time
from dataclasses import replace
from typing import NamedTuple

import pytest

import dist
import example_clusters as examples
from cluster import eventually, is_bound, is_unschedulable
from kubelet import Node

DEDICATED = {"key": "dedicated", "value": "ai", "effect": "NoSchedule"}
CPU = Node("cpu")


class Installed(NamedTuple):
    """A cluster of dist/ on a control plane."""

    name: str
    cluster: object
    kubelets: object
    first: object


# Tests of one cluster run on one worker, which installs it once.
@pytest.fixture(
    scope="module", params=[pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in dist.CLUSTERS]
)
def installed(request, sites, release):
    """Apply a cluster as documented, on its nodes and one without a GPU."""
    name, (cluster, kubelets) = request.param, sites.site(release, "talos")
    examples.register(kubelets, name, CPU)
    examples.bring_definitions(cluster, name)
    yield Installed(name, cluster, kubelets, examples.apply_as_documented(cluster, name))
    cluster.reset()
    kubelets.forget()


def test_every_object_is_created_and_nothing_is_warned_of(installed):
    assert (installed.first.status, installed.first.stderr) == (0, "")
    verbs = {line.rpartition(" ")[2] for line in installed.first.lines}
    # What a later command of the page applies a second time.
    assert verbs <= {"created", "unchanged"}
    created = [line for line in installed.first.lines if line.endswith(" created")]
    assert len(created) == len(dist.objects(installed.name))


def test_every_controller_creates_its_pods(installed):
    examples.wait_for_pods(installed.cluster, dist.objects(installed.name))
    assert examples.refusals(installed.cluster) == []


def test_as_many_pods_wait_as_the_plan_says_and_no_other_fails(installed):
    examples.wait_for_pods(installed.cluster, dist.objects(installed.name))
    planned = ({"Running"}, examples.waiting(installed.name))

    def found():
        pods = installed.cluster.pods()
        return {pod["status"]["phase"] for pod in pods if is_bound(pod)}, sum(map(is_unschedulable, pods))

    def is_as_planned_and_stays_so():
        if found() != planned:
            return False
        # A pod that waited for its volume is tried again within two seconds.
        time.sleep(3)
        return found() == planned

    eventually(is_as_planned_and_stays_so, "as many pods wait as the plan says", state=found)


def test_a_second_apply_changes_nothing(installed):
    examples.wait_for_pods(installed.cluster, dist.objects(installed.name))
    before = examples.settled(installed.cluster, installed.name)
    again = examples.apply_as_documented(installed.cluster, installed.name)
    assert (again.status, again.stderr) == (0, "")
    assert [line for line in again.lines if not line.endswith(" unchanged")] == []
    assert examples.stored(installed.cluster, installed.name) == before


def others(name):
    """Return nodes of other kinds than those that a cluster was planned for: with GPUs, without, tainted, open."""
    (gpu,) = (replace(node, devices={}) for node in examples.nodes(name))
    own_driver = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    control_plane = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}
    return [
        replace(gpu, name="gpu-open", taints=()),
        replace(gpu, name="gpu-dedicated", taints=(DEDICATED,)),
        replace(gpu, name="gpu-tainted", taints=(own_driver,)),
        Node("cpu-dedicated", taints=(DEDICATED,)),
        Node("control-plane", taints=(control_plane,)),
    ]


OPEN, DEDICATED_ONES = {"gpu-open", "gpu-tainted"}, {"gpu-dedicated"}
EXPECTED = {
    "kubernetes-basic": {"nvidia-device-plugin": {"gpu-node", "cpu"} | OPEN},
    "talos-gpu-operator": {"nvidia-validation-bridge": {"k8s-worker4"} | OPEN},
    "talos-rtx3090": {
        "nvidia-device-plugin": {"gpu-node"} | OPEN,
        "nvidia-device-plugin-gpu-feature-discovery": {"gpu-node"} | OPEN,
        "nvidia-device-plugin-node-feature-discovery-worker": {"gpu-node", "cpu"} | OPEN,
        "nvidia-gpu-exporter": {"gpu-node"} | OPEN,
        "nvidia-powerlimit": {"gpu-node"} | OPEN,
    },
    "talos-rtx5070ti": {
        "dcgm-exporter": {"k8s-worker4"} | OPEN | DEDICATED_ONES,
        "nvidia-device-plugin": {"k8s-worker4"} | OPEN | DEDICATED_ONES,
        "nvidia-device-plugin-gpu-feature-discovery": {"k8s-worker4"} | OPEN | DEDICATED_ONES,
        "nvidia-device-plugin-node-feature-discovery-worker": (
            {"k8s-worker4", "cpu", "cpu-dedicated"} | OPEN | DEDICATED_ONES
        ),
    },
}


def places(cluster, name):
    """Return the nodes of the running pods of each DaemonSet, where DESIRED says as many."""
    found = {}
    for one in examples.controllers(cluster, dist.objects(name)):
        if one["kind"] == "DaemonSet":
            labels = ",".join(f"{key}={value}" for key, value in one["spec"]["selector"]["matchLabels"].items())
            pods = cluster.pods(one["metadata"]["namespace"], labels=labels)
            running = {pod["spec"]["nodeName"] for pod in pods if pod["status"]["phase"] == "Running"}
            is_counted = one["status"]["desiredNumberScheduled"] == len(running) == one["status"]["numberReady"]
            found[one["metadata"]["name"]] = running if is_counted else one["status"]
    return found


def test_daemon_sets_want_pods_on_the_nodes_that_they_are_for(installed):
    more = others(installed.name)
    installed.kubelets.register(*more)
    eventually(
        lambda: places(installed.cluster, installed.name) == EXPECTED[installed.name],
        "the pods of each DaemonSet are on its nodes",
        state=lambda: places(installed.cluster, installed.name),
    )
    for node in more:
        installed.cluster.delete(node.manifest())


# What other parties brought, or the stand-in for a provisioner of volumes.
NOT_FROM_DIST = {"CustomResourceDefinition", "Node", "PersistentVolume"}
BY_OTHERS = {examples.OPERATOR: {("RuntimeClass", None, "nvidia")}}


def left(installed):
    found = {examples.identity(one) for one in installed.cluster.leftovers() if one["kind"] not in NOT_FROM_DIST}
    return found - BY_OTHERS.get(installed.name, set())


def test_deletion_leaves_nothing(installed):
    folders = (f"dist/{installed.name}/{dist.NEEDS_CRDS}/", f"dist/{installed.name}/")
    for folder in filter(lambda each: (dist.ROOT / each).exists(), folders):
        done = installed.cluster.kubectl("delete", "-f", folder, folder=dist.ROOT)
        assert (done.status, done.stderr) == (0, "")
    eventually(lambda: not left(installed), "nothing is left", state=lambda: left(installed))

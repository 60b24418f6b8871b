"""A few objects of the library, what the capacity plan expects of them, and what a cluster makes of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from cluster import Cluster, Found, condition, eventually
from gpu_constructs import App, Chart, GpuInventory, GpuNode, Testing
from gpu_constructs.capacity.plan import Plan
from gpu_constructs.capacity.planner import plan_capacity
from kubelet import Node, nodes_of

Maker = Callable[[Chart], object]
IMAGE = "e2e.invalid/none:1"
_NAME = "app.kubernetes.io/name"
_MAKES_PODS = (
    ("apps/v1", "DaemonSet"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"),
    ("batch/v1", "CronJob"),
    ("batch/v1", "Job"),
)


def rendered(*makers: Maker, namespace: str = "default") -> list[Found]:
    """Return what the library renders of constructs in one chart."""
    chart = Chart(App(), "objects", namespace=namespace)
    for make in makers:
        make(chart)
    return list(Testing.synth(chart))


def planned(manifests: Iterable[Found], nodes: Sequence[GpuNode]) -> Plan:
    """Return the plan of objects on nodes."""
    return plan_capacity(manifests, GpuInventory(nodes=nodes))


def nodes_of_plan(plan: Plan) -> list[Node]:
    """Return the nodes that a plan is made for, to be registered."""
    return nodes_of({one.offer.name: one.offer for one in plan.nodes}.values())


def placed(plan: Plan) -> dict[str, int]:
    """Return how many pods of each workload run by the plan, of those that have any."""
    found = Counter[str]()
    for one in plan.consumers:
        found[one.consumer.name] += one.placed
    return dict(+found)


def waiting(plan: Plan) -> set[str]:
    """Return the workloads of which a pod waits by the plan."""
    return {one.consumer.name for one in plan.consumers if one.waiting}


def running(pods: Iterable[Found]) -> Mapping[str, int]:
    """Return how many pods of each name run."""
    return dict(Counter(name_of(pod) for pod in pods if pod["status"]["phase"] == "Running"))


def name_of(pod: Found) -> str:
    """Return the name of the workload of a pod."""
    return str(pod["metadata"]["labels"][_NAME])


def wait_for(cluster: Cluster, expected: Mapping[str, int], waiting: Iterable[str] = ()) -> None:
    """Wait until just so many pods of each name run, and the scheduler has found no place for any other.

    Args:
        cluster: The cluster.
        expected: Pods that run, by the name of their workload.
        waiting: Workloads of which a pod must be there by then, and wait.
    """

    def is_settled() -> bool:
        pods = cluster.pods()
        others = [pod for pod in pods if pod["status"]["phase"] != "Running"]
        are_there = {name_of(pod) for pod in others} >= set(waiting)
        return running(pods) == expected and are_there and all(map(_has_no_place, others))

    # A Job makes another pod in place of an evicted one after ten seconds at the earliest.
    what = f"pods run as expected, {expected}"
    eventually(is_settled, what, state=lambda: summary(cluster.pods()))


def _has_no_place(pod: Found) -> bool:
    # Beside "Unschedulable" there is an error of the scheduler, such as of a claim that a quota refuses. A pod with a
    # nominated node waits for those that it evicts.
    is_refused = condition(pod, "PodScheduled").get("status") == "False"
    return is_refused and "nominatedNodeName" not in pod["status"]


def reports(cluster: Cluster, reason: str) -> list[str]:
    """Return what events with a reason say of pods and controllers that are there, and not of earlier tests."""
    there = cluster.pods()
    for api_version, kind in _MAKES_PODS:
        there += cluster.list(api_version, kind)
    uids = {one["metadata"]["uid"] for one in there}
    return [event["message"] for event in cluster.events(reason) if event["involvedObject"]["uid"] in uids]


def summary(pods: Iterable[Found]) -> list[tuple[str, str, str]]:
    """Return what an error shows of pods: the workload, the phase and why a pod has no node."""
    return [(name_of(pod), pod["status"]["phase"], why(pod)) for pod in pods]


def why(pod: Found) -> str:
    """Return why the scheduler found no node for a pod."""
    return str(condition(pod, "PodScheduled").get("message", ""))

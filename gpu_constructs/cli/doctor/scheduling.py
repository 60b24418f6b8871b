"""Checks of GPU pods that the API server refused, that stay Pending, or that a node did not admit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from gpu_constructs.cli.doctor.checking import CHECKS, Check, Problem, check, rows, shortened
from gpu_constructs.cli.doctor.snapshot import TABLES, Manifest
from gpu_constructs.cli.doctor.view import (
    View,
    asked,
    condition,
    container_states,
    key,
    offered,
    spec,
    status,
    title,
    unmatched,
    untolerated,
)

_REFUSALS: Sequence[tuple[str, re.Pattern[str]]] = [
    (one["check"], re.compile(one["pattern"])) for one in TABLES["refusals"]
]
_VOLUME = re.compile(r"persistentvolumeclaim|volume node affinity|no available persistent volumes", re.IGNORECASE)
_CLAIM = re.compile(r"resourceclaim|cannot allocate all claims|DeviceClass", re.IGNORECASE)
# kubernetes/kubernetes@v1.36.2:pkg/scheduler/framework/plugins: texts of the scheduler, if the nodes do not explain it.
_BY_MESSAGE = {"Too many pods": "pending-full", "Insufficient": "pending-full", "affinity/selector": "pending-label"}
_AT_ADMISSION = ("UnexpectedAdmissionError", "OutOf", "NodeAffinity", "TopologyAffinityError")


# --- pods that the API server refuses ----------------------------------------------------------------------------


def refused_by(message: str) -> str:
    """Return the ID of the check, such as ``refused-quota``, that reports why a controller could not create a pod.

    Args:
        message: Message of the controller's event.
    """
    return next(name for name, pattern in _REFUSALS if pattern.search(message))


def lacks_pods(controller: Manifest) -> bool:
    """Check whether an object, such as a DaemonSet, has fewer pods than its spec requires."""
    has, wants = status(controller), spec(controller)
    if controller["kind"] == "DaemonSet":
        return int(has.get("currentNumberScheduled", 0)) < int(has.get("desiredNumberScheduled", 1))
    if controller["kind"] == "Job":
        created = sum(int(has.get(name) or 0) for name in ("active", "succeeded", "failed"))
        return created < int(wants.get("parallelism") or 1) and not has.get("completionTime")
    return int(has.get("replicas") or 0) < int(1 if wants.get("replicas") is None else wants["replicas"])


def refusals(view: View, *, programs: bool) -> Iterator[tuple[Manifest, str]]:
    """Yield pairs: an object that lacks pods, and the message by which the API server refused to create a pod for it.

    Args:
        view: Objects of the cluster.
        programs: True for GPU components, such as the device plugin. False for workloads.
    """
    for one, _ in view.controllers(programs=programs):
        messages = view.messages(one, "FailedCreate")
        if messages and lacks_pods(one):
            yield one, messages[0]


@check
def program_refused(view: View) -> Iterator[Problem]:
    """Yield a problem for each GPU component, such as the device plugin, whose pods the API server refuses."""
    by_id = {row.id: row for row in rows()}
    for one, message in refusals(view, programs=True):
        row = by_id[refused_by(message)]
        yield Problem(title(one), f"the API server refuses its pods: {_cause(message)}", row.way_out, row.link)


def _cause(message: str) -> str:
    """Return the part of an event message that states the cause, without ``Error creating:`` and the pod name."""
    return shortened(re.sub(r'^Error creating: (pods "[^"]*" is forbidden: )?', "", message))


def _refused(name: str) -> Check:
    return lambda view: (
        Problem(title(one), f"the API server refuses its pods: {_cause(message)}")
        for one, message in refusals(view, programs=False)
        if refused_by(message) == name
    )


# --- pods without a node -----------------------------------------------------------------------------------------


def cause_of(view: View, pod: Manifest) -> tuple[str, str] | None:
    """Return the reason why a pod has no node: ID of the check that reports it, such as ``pending-gpu``, and a text.

    Return None if the pod has a node or is not Pending.
    """
    scheduled, pod_spec = condition(pod, "PodScheduled"), spec(pod)
    if status(pod).get("phase", "Pending") != "Pending" or pod_spec.get("nodeName"):
        return None
    message = str(scheduled.get("message") or next(iter(view.messages(pod, "FailedScheduling")), ""))
    if scheduled.get("reason") == "SchedulingGated" or (pod_spec.get("schedulingGates") and not message):
        gates = ", ".join(one.get("name", "") for one in pod_spec.get("schedulingGates") or ())
        return "pending-gate", f"the pod waits for the scheduling gate {gates or 'of its controller'}"
    for name, pattern in (("pending-volume", _VOLUME), ("pending-claim", _CLAIM)):
        if pattern.search(message):
            return name, shortened(message.partition("preemption:")[0])
    return _by_nodes(view, pod_spec, message)


def _by_nodes(view: View, pod_spec: Mapping[str, Any], message: str) -> tuple[str, str]:
    """Return the reason why no node accepts a pod: the ID of the check that reports it, and a text.

    Args:
        view: Objects of the cluster.
        pod_spec: Spec of the pod.
        message: Message of the scheduler. The function uses it only if no label, taint or lack of GPUs is the reason.
    """
    wanted = asked(pod_spec)
    nodes = view.gpu_nodes if wanted else list(view.nodes.values())
    labeled = [node for node in nodes if unmatched(pod_spec, node) is None]
    if nodes and not labeled:
        kind = "GPU node" if wanted else "node"
        return "pending-label", f"no {kind} has the label {unmatched(pod_spec, nodes[0])}, which the pod selects"
    tolerated = [node for node in labeled if untolerated(pod_spec, node) is None]
    if labeled and not tolerated:
        taint, node = untolerated(pod_spec, labeled[0]), title(labeled[0])
        return "pending-taint", f"the pod does not tolerate the taint {taint} of {node}"
    if reason := _shortage(view, wanted, tolerated):
        return "pending-gpu", reason
    found = next((name for text, name in _BY_MESSAGE.items() if text in message), "pending-other")
    return found, shortened(message) or "the scheduler has not reported a result for the pod"


def _shortage(view: View, wanted: Mapping[str, int], nodes: Sequence[Manifest]) -> str:
    """Return a sentence about the first GPU resource that is short: a pod requests more of it than any node has free.

    Return an empty text if no resource is short.

    Args:
        view: Objects of the cluster.
        wanted: Amounts of GPU resources that the pod requests, by name of the resource.
        nodes: Nodes whose labels and taints accept the pod.
    """
    for name, amount in wanted.items():
        offers = [(offered(node).get(name, 0), view.held.get((key(node)[1], name), 0)) for node in nodes]
        most = max((total - held for total, held in offers), default=0)
        if amount > most:
            total = sum(total for total, _ in offers)
            reason = f"the pod requests {amount} {name}; nodes that accept it advertise {total}, and at most "
            return f"{reason}{most} is free on one node"
    return ""


@lru_cache(maxsize=1)
def _causes(view: View) -> list[tuple[Manifest, tuple[str, str]]]:
    """Return a pair for each GPU pod of a workload that has no node: the pod, and the reason.

    The reason is also a pair: the ID of the check that reports it, such as ``pending-gpu``, and a text.
    """
    return [(pod, cause) for pod in view.workloads if (cause := cause_of(view, pod))]


def _pending(name: str) -> Check:
    return lambda view: (Problem(title(pod), cause[1]) for pod, cause in _causes(view) if cause[0] == name)


CHECKS |= {row.id: _refused(row.id) for row in rows() if row.id.startswith("refused-")}
CHECKS |= {row.id: _pending(row.id) for row in rows() if row.id.startswith("pending-")}


@check
def preempted(view: View) -> Iterator[Problem]:
    """Return a problem for each pod that the scheduler preempted for a pod of higher priority."""
    return (Problem(name, "a pod of higher priority preempted it") for name in view.preempted())


@check
def admission(view: View) -> Iterator[Problem]:
    """Yield a problem for each GPU pod that the kubelet did not admit, with the command that deletes the pod."""
    failed = (pod for pod in view.gpu_pods if status(pod).get("phase") == "Failed")
    for pod in (pod for pod in failed if str(status(pod).get("reason")).startswith(_AT_ADMISSION)):
        stated = f"{status(pod)['reason']}: {status(pod).get('message')}"
        way_out = f"The pod does not recover. Delete it: kubectl delete pod {key(pod)[1]} -n {key(pod)[0]}"
        yield Problem(title(pod), f"the node did not admit the pod: {shortened(stated)}", way_out)


def stopped(pod: Manifest) -> Iterator[tuple[str, str, str]]:
    """Return a triple for each container state with a reason that a check reports, such as ``OOMKilled``.

    A triple contains the ID of this check, the name of the container, and a message.
    """
    states = ((container, state, str(state.get("reason"))) for container, state in container_states(pod))
    return (
        (name, container, ": ".join(filter(None, (reason, str(state.get("message") or "")))))
        for container, state, reason in states
        for name, reasons in TABLES["states"].items()
        if reason in reasons
    )

"""Checks of pods that have a node: images, containers, memory, and the GPUs that they see."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpu_constructs.cli.doctor.checking import CHECKS, Check, Problem, check, shortened
from gpu_constructs.cli.doctor.plugin_checks import state_of
from gpu_constructs.cli.doctor.runtime_checks import strategies
from gpu_constructs.cli.doctor.scheduling import stopped
from gpu_constructs.cli.doctor.snapshot import TABLES, Manifest
from gpu_constructs.cli.doctor.view import (
    View,
    asked,
    container_states,
    is_ready,
    key,
    metadata,
    spec,
    status,
    title,
    variable,
)

_MEMORY = re.compile(r"CUDA out of memory|CUDA_ERROR_OUT_OF_MEMORY|torch\.OutOfMemoryError")
_RUNTIME = [(re.compile(one["pattern"], re.IGNORECASE), one) for one in TABLES["runtime"]]
_POWER = re.compile(r'msg="(nvidia-smi -L failed|set failed|clamped|accepted but not applied|not supported)')
_VISIBLE = "NVIDIA_VISIBLE_DEVICES"


def explained(message: str) -> tuple[str, str]:
    """Return what to do about a message of the container runtime, and its documentation; empty if not known."""
    row = next((row for pattern, row in _RUNTIME if pattern.search(message)), None)
    return (row["way_out"], f"docs/{row['link']}") if row else ("", "")


def _stopped(name: str) -> Check:
    def run(view: View) -> Iterator[Problem]:
        for pod in view.workloads:
            causes = [
                one for one in stopped(pod) if one[0] == name and not (is_ready(pod) and name == "workload-crash")
            ]
            if not causes or status(pod).get("phase") == "Succeeded":
                continue
            _, container, message = causes[0]
            full = " ".join([message, *(str(state.get("message") or "") for _, state in container_states(pod))])
            yield Problem(title(pod), f"the container {container} stops: {shortened(message)}", *explained(full))

    return run


CHECKS |= {name: _stopped(name) for name in TABLES["states"] if name != "workload-runtime"}


@check
def workload_runtime(view: View) -> Iterator[Problem]:
    """Yield a problem for each pod whose containers the runtime cannot create."""
    yield from _stopped("workload-runtime")(view)
    for pod in view.workloads:
        message = next(iter(view.messages(pod, "FailedCreatePodSandBox")), "")
        if message and status(pod).get("phase") == "Pending":
            yield Problem(title(pod), shortened(message), *explained(message))


@check
def workload_blind(view: View) -> Iterator[Problem]:
    """Yield a problem for each running pod that holds a GPU and does not see it."""
    talos = {metadata(node)["name"] for node in view.talos}
    has_cdi = any("cdi" in name for one in view.programs("device plugin") for name in strategies(one))
    for pod in view.workloads:
        pod_spec = spec(pod)
        hidden = sorted(variable(pod_spec, _VISIBLE) & {"none", "void"})
        if status(pod).get("phase") != "Running" or not asked(pod_spec):
            continue
        if hidden:
            yield Problem(title(pod), f"{_VISIBLE}={hidden[0]} hides the GPU that the pod holds")
        elif pod_spec.get("nodeName") in talos and not has_cdi and not pod_spec.get("runtimeClassName"):
            yield Problem(title(pod), "it holds a GPU, and without a RuntimeClass the container does not get it")


@check
def workload_all(view: View) -> Iterator[Problem]:
    """Yield a problem for each pod whose environment asks for all GPUs of the node."""
    for pod in view.workloads:
        if "all" in variable(spec(pod), _VISIBLE) and status(pod).get("phase") in ("Running", "Pending"):
            yield Problem(title(pod), f"{_VISIBLE}=all overrides the allocation, so the pod sees every GPU of its node")


@check
def workload_memory(view: View) -> Iterator[Problem]:
    """Yield a problem for each pod that ran out of GPU memory, and for pods that the plan does not fit together."""
    for pod in view.workloads:
        messages = [str(state.get("message") or "") for _, state in container_states(pod)]
        if any(map(_MEMORY.search, messages)):
            yield Problem(title(pod), "its last message says that CUDA is out of memory")
    report = (view.plan.report if view.plan else None) or {}
    consumers = [(one.get("namespace") or "", str(one.get("name"))) for one in report.get("consumers") or ()]
    for conflict in report.get("conflicts") or ():
        names = [consumers[one["consumer"]] for one in conflict.get("pods") or ()]
        if all(_runs(view.workloads, *name) for name in names):
            together = " and ".join("/".join(filter(None, name)) for name in names)
            reason = f"{together} run, and together they can use {conflict.get('togetherMiB')} of "
            yield Problem("", f"{reason}{conflict.get('vramMiB')} MiB of {conflict.get('device')}")


def _runs(pods: list[Manifest], namespace: str, name: str) -> bool:
    """Check whether a pod runs whose name begins with that of an object."""
    running = (key(pod) for pod in pods if status(pod).get("phase") == "Running")
    return any(where == namespace and pod.startswith(name) for where, pod in running)


@check
def power_limit(view: View) -> Iterator[Problem]:
    """Yield a problem for each pod of PowerLimit that is not ready, with the last line of its log that says why."""
    for pod in view.program_pods("PowerLimit"):
        if not is_ready(pod):
            lines = [line for line in view.snapshot.logs.get(key(pod), "").splitlines() if _POWER.search(line)]
            yield Problem(title(pod), f"its log says: {shortened(lines[-1])}" if lines else state_of(view, pod))

"""Checks of GPU pods that have a node: images, containers, memory, and the GPUs that the containers see."""

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
    """Return two texts for an error message of the container runtime: the solution, and a page of the documentation.

    If the library does not know the error message, both texts are empty.
    """
    row = next((row for pattern, row in _RUNTIME if pattern.search(message)), None)
    return (row["way_out"], f"docs/{row['link']}") if row else ("", "")


def _stopped(name: str) -> Check:
    def run(view: View) -> Iterator[Problem]:
        for pod in (pod for pod in view.workloads if status(pod).get("phase") != "Succeeded"):
            causes = [
                one for one in stopped(pod) if one[0] == name and not (is_ready(pod) and name == "workload-crash")
            ]
            full = " ".join([*(cause[2] for cause in causes), *_last_words(pod)])
            for _, container, message in causes[:1]:
                yield Problem(title(pod), f"the container {container} stops: {shortened(message)}", *explained(full))

    return run


def _last_words(pod: Manifest) -> list[str]:
    """Return the messages in the states ``waiting`` and ``terminated`` of the containers of a pod."""
    return [str(state.get("message") or "") for _, state in container_states(pod)]


CHECKS |= {name: _stopped(name) for name in TABLES["states"] if name != "workload-runtime"}


@check
def workload_runtime(view: View) -> Iterator[Problem]:
    """Yield a problem for each GPU pod whose containers the container runtime cannot create."""
    yield from _stopped("workload-runtime")(view)
    waiting = (pod for pod in view.workloads if status(pod).get("phase") == "Pending")
    for pod, messages in ((pod, view.messages(pod, "FailedCreatePodSandBox")) for pod in waiting):
        yield from (Problem(title(pod), shortened(one), *explained(one)) for one in messages[:1])


@check
def workload_blind(view: View) -> Iterator[Problem]:
    """Yield a problem for each running pod whose containers do not see the GPU that Kubernetes allocated to the pod."""
    talos = {metadata(node)["name"] for node in view.talos}
    has_cdi = any("cdi" in name for one in view.programs("device plugin") for name in strategies(one))
    holding = (pod for pod in view.workloads if status(pod).get("phase") == "Running" and asked(spec(pod)))
    for pod in holding:
        is_bare = spec(pod).get("nodeName") in talos and not spec(pod).get("runtimeClassName")
        if hidden := sorted(variable(spec(pod), _VISIBLE) & {"none", "void"}):
            yield Problem(title(pod), f"{_VISIBLE}={hidden[0]} hides the GPU of the pod from its containers")
        elif is_bare and not has_cdi:
            yield Problem(title(pod), "it requests a GPU, but without a RuntimeClass its containers do not see it")


@check
def workload_all(view: View) -> Iterator[Problem]:
    """Return a problem for each pod that gets all GPUs of its node by ``NVIDIA_VISIBLE_DEVICES=all``."""
    pods = (pod for pod in view.workloads if status(pod).get("phase") in ("Running", "Pending"))
    reason = f"{_VISIBLE}=all overrides the allocation, so the pod sees every GPU of its node"
    return (Problem(title(pod), reason) for pod in pods if "all" in variable(spec(pod), _VISIBLE))


@check
def workload_memory(view: View) -> Iterator[Problem]:
    """Yield a problem for each pod that ran out of GPU memory, and for each group of pods that can run out of it.

    The pods of such a group run, share a GPU, and together can use more memory than the GPU has.
    """
    ended = (pod for pod in view.workloads if any(map(_MEMORY.search, _last_words(pod))))
    yield from (Problem(title(pod), "the last message of a container says that CUDA is out of memory") for pod in ended)
    yield from _conflicts(view)


def _conflicts(view: View) -> Iterator[Problem]:
    """Yield a problem for each group of running pods that together can use more memory than their GPU has.

    The capacity plan (option ``--plan``) states these groups.
    """
    report = view.plan.report if view.plan and view.plan.report else {}
    consumers = [(str(one.get("namespace", "")), str(one.get("name"))) for one in report.get("consumers", ())]
    running = [key(pod) for pod in view.workloads if status(pod).get("phase") == "Running"]
    for conflict in report.get("conflicts", ()):
        names = [consumers[one["consumer"]] for one in conflict["pods"]]
        together = " and ".join("/".join(filter(None, name)) for name in names)
        reason = f"{together} run, and together they can use {conflict['togetherMiB']} of {conflict['vramMiB']} MiB of "
        if all(any(at == where and pod.startswith(name) for at, pod in running) for where, name in names):
            yield Problem("", f"{reason}{conflict['device']}")


@check
def power_limit(view: View) -> Iterator[Problem]:
    """Yield a problem for each pod of the construct ``PowerLimit`` that is not ready. The problem states why."""
    for pod in (pod for pod in view.program_pods("PowerLimit") if not is_ready(pod)):
        lines = [line for line in view.snapshot.logs.get(key(pod), "").splitlines() if _POWER.search(line)]
        yield Problem(title(pod), f"its log says: {shortened(lines[-1])}" if lines else state_of(view, pod))

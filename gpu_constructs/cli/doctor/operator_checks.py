"""Checks of the GPU Operator, its validator and the validation bridge."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from gpu_constructs.cli.doctor.checking import Problem, check, shortened
from gpu_constructs.cli.doctor.conditions import is_of_the_operator
from gpu_constructs.cli.doctor.snapshot import Manifest
from gpu_constructs.cli.doctor.view import View, condition, is_ready, labels, program_of, spec, status, title
from gpu_constructs.kube.pod_specs import containers

# NVIDIA/gpu-operator@v26.7.0:controllers/clusterpolicy_controller.go
_NO_NODES = re.compile("No NFD labels found|No GPU node found")
_OPERANDS, _VALIDATOR = "nvidia.com/gpu.deploy.operands", "nvidia.com/gpu.deploy.operator-validator"
# Values that the chart copies to the same place of the ClusterPolicy.
# NVIDIA/gpu-operator@v26.7.0:deployments/gpu-operator/templates/clusterpolicy.yaml
_COPIED = ("hostPaths", "cdi", "daemonsets")
_ENABLED = ("driver", "toolkit", "devicePlugin", "dcgm", "dcgmExporter", "gfd", "migManager", "nodeStatusExporter")
# NVIDIA/gpu-operator@v26.7.0:assets/state-operator-validation/0500_daemonset.yaml
_STEPS = {
    "driver-validation": "the driver files are not in hostPaths.driverInstallDir, or nvidia-smi does not run",
    "toolkit-validation": "nvidia-smi does not run in a pod of the RuntimeClass nvidia",
    "cuda-validation": "a pod that adds vectors fails",
    "plugin-validation": "the node does not advertise nvidia.com/gpu",
}


@check
def operator_release(view: View) -> Iterator[Problem]:
    """Yield a problem for each HelmRelease of the GPU Operator that is not ready."""
    for release in filter(is_of_the_operator, view.all("HelmRelease")):
        ready = condition(release, "Ready")
        if ready.get("status") != "True":
            stated = ": ".join(filter(None, (ready.get("reason"), ready.get("message"))))
            yield Problem(title(release), f"it is not ready: {shortened(stated) or 'Flux has not reconciled it'}")


@check
def operator_nodes(view: View) -> Iterator[Problem]:
    """Yield a problem if the GPU Operator finds no GPU node, or if a label keeps its operands away."""
    for policy in view.all("ClusterPolicy"):
        messages = [str(one.get("message")) for one in status(policy).get("conditions") or ()]
        if found := next((one for one in messages if _NO_NODES.search(one)), None):
            yield Problem(title(policy), f"its condition says: {shortened(found)}")
    for node in view.gpu_nodes:
        if labels(node).get(_OPERANDS) == "false":
            yield Problem(title(node), f"the label {_OPERANDS}=false keeps all operands away")


@check
def operator_values(view: View) -> Iterator[Problem]:
    """Yield a problem for each value of the HelmRelease that the ClusterPolicy does not have."""
    for release in filter(is_of_the_operator, view.all("HelmRelease")):
        values = spec(release).get("values") or {}
        wanted = {name: values[name] for name in _COPIED if isinstance(values.get(name), Mapping)}
        enabled = {name: values[name] for name in _ENABLED if isinstance(values.get(name), Mapping)}
        wanted |= {name: {"enabled": one["enabled"]} for name, one in enabled.items() if "enabled" in one}
        for policy in view.all("ClusterPolicy"):
            for path in _missing(wanted, spec(policy)):
                yield Problem(title(policy), f"it lacks the value {path} of {title(release)}")


def _missing(wanted: Mapping[str, Any], has: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Yield the paths of the scalar values that are absent or different."""
    for name, value in wanted.items():
        if isinstance(value, Mapping):
            inside = has.get(name)
            yield from _missing(value, inside if isinstance(inside, Mapping) else {}, f"{path}{name}.")
        elif isinstance(value, str | bool | int) and value != "" and has.get(name) != value:
            yield f"{path}{name}"


@check
def operator_markers(view: View) -> Iterator[Problem]:
    """Yield a problem for each node on which the validator deletes the files that a bridge with markers writes."""
    bridges = {spec(pod).get("nodeName") for pod in view.program_pods("validation bridge") if not _stages(pod)}
    for pod in view.program_pods("operator validator"):
        if spec(pod).get("nodeName") in bridges:
            reason = f"it runs beside a bridge with markers on Node {spec(pod)['nodeName']}, whose files it deletes"
            yield Problem(title(pod), reason)


def _stages(pod: Manifest) -> bool:
    """Check whether a bridge copies the driver files, so that the validator writes the marker files."""
    return any(one.get("name") == "STAGE_DIR" for each in containers(spec(pod)) for one in each.get("env") or ())


@check
def operator_validator(view: View) -> Iterator[Problem]:
    """Yield a problem for each pod of the validator that stops at one of its steps."""
    for pod in view.program_pods("operator validator"):
        if not is_ready(pod) and (stopped := waits_in(pod)):
            number, total, name = stopped
            yield Problem(
                title(pod), f"it stays in Init:{number}/{total} ({name}): {_STEPS.get(name, 'its step fails')}"
            )


def waits_in(pod: Manifest) -> tuple[int, int, str] | None:
    """Return the number, the total and the name of the init container that a pod waits in; None if in none."""
    states = status(pod).get("initContainerStatuses") or ()
    for number, one in enumerate(states):
        ended = (one.get("state") or {}).get("terminated") or {}
        if ended.get("exitCode") != 0:
            return number, len(states), str(one.get("name"))
    return None


@check
def operator_plugin(view: View) -> Iterator[Problem]:
    """Yield a problem for each operand that waits for a marker file."""
    for pod in view.program_pods():
        stopped = None if is_ready(pod) or program_of(pod) == "operator validator" else waits_in(pod)
        if stopped and stopped[2].endswith("-validation"):
            number, total, name = stopped
            node = view.nodes.get(spec(pod).get("nodeName", ""))
            value = labels(node).get(_VALIDATOR, "not set") if node else "not known"
            reason = f"it stays in Init:{number}/{total} ({name}), because a marker file is missing"
            yield Problem(title(pod), f"{reason}; the label {_VALIDATOR} of its node is {value}")


@check
def operator_policy(view: View) -> Iterator[Problem]:
    """Yield a problem for each ClusterPolicy that is not ready."""
    for policy in view.all("ClusterPolicy"):
        if status(policy).get("state") != "ready":
            stated = condition(policy, "Error").get("message") or condition(policy, "Ready").get("message") or ""
            state = status(policy).get("state") or "not known"
            yield Problem(title(policy), f"its state is {state}" + (f": {shortened(str(stated))}" if stated else ""))

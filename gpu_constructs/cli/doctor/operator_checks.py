"""Checks of the GPU Operator, its validator, and the validation bridge of this library on Talos."""

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
    """Yield a problem for each HelmRelease of Flux that installs the GPU Operator and is not ready."""
    for release in filter(is_of_the_operator, view.all("HelmRelease")):
        ready = condition(release, "Ready")
        stated = shortened(f"{ready.get('reason')}: {ready.get('message')}") if ready else "Flux has not reconciled it"
        if ready.get("status") != "True":
            yield Problem(title(release), f"the release is not ready: {stated}")


@check
def operator_nodes(view: View) -> Iterator[Problem]:
    """Yield a problem if the GPU Operator finds no GPU node, and for each GPU node that the user excludes.

    The label ``nvidia.com/gpu.deploy.operands=false`` keeps all pods of the GPU Operator off a node.
    """
    stated = ((policy, one) for policy in view.all("ClusterPolicy") for one in status(policy).get("conditions") or ())
    messages = ((policy, str(one.get("message"))) for policy, one in stated)
    yield from (
        Problem(title(one), f"its condition says: {shortened(text)}")
        for one, text in messages
        if _NO_NODES.search(text)
    )
    excluded = (node for node in view.gpu_nodes if labels(node).get(_OPERANDS) == "false")
    yield from (
        Problem(title(node), f"the label {_OPERANDS}=false keeps all pods of the GPU Operator off this node")
        for node in excluded
    )


@check
def operator_values(view: View) -> Iterator[Problem]:
    """Yield a problem for each Helm value that a HelmRelease of the GPU Operator sets and that a ClusterPolicy lacks.

    The check looks only at values that the Helm chart copies to the ClusterPolicy, such as ``driver.enabled``.
    """
    for release in filter(is_of_the_operator, view.all("HelmRelease")):
        values = spec(release).get("values") or {}
        wanted = {name: values[name] for name in _COPIED if isinstance(values.get(name), Mapping)}
        switches = {name: values[name] for name in _ENABLED if isinstance(values.get(name), Mapping)}
        wanted |= {name: {"enabled": one["enabled"]} for name, one in switches.items() if "enabled" in one}
        missing = ((policy, path) for policy in view.all("ClusterPolicy") for path in _missing(wanted, spec(policy)))
        yield from (
            Problem(title(policy), f"this object lacks the value {path}, which {title(release)} sets")
            for policy, path in missing
        )


def _missing(wanted: Mapping[str, Any], has: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Yield the path of each value in ``wanted`` that ``has`` lacks or sets to another value.

    The function ignores lists and empty texts in ``wanted``.

    Args:
        wanted: Helm values of the GPU Operator.
        has: Spec of the ClusterPolicy.
        path: Prefix of the paths, such as ``hostPaths.``; empty at the top level.
    """
    for name, value in wanted.items():
        if isinstance(value, Mapping):
            yield from _missing(value, has.get(name) or {}, f"{path}{name}.")
        elif isinstance(value, str | bool | int) and value != "" and has.get(name) != value:
            yield f"{path}{name}"


@check
def operator_markers(view: View) -> Iterator[Problem]:
    """Return a problem for each validator pod on a node where a pod of ``ValidationBridge`` writes marker files.

    A marker file states that a validation step of the GPU Operator passed. The validator deletes the marker files of
    ``ValidationBridge``.
    """
    bridges = {spec(pod).get("nodeName") for pod in view.program_pods("validation bridge") if not _stages(pod)}
    beside = [pod for pod in view.program_pods("operator validator") if spec(pod).get("nodeName") in bridges]
    reason = "it deletes the marker files that a validation bridge writes on Node"
    return (Problem(title(pod), f"{reason} {spec(pod)['nodeName']}") for pod in beside)


def _stages(pod: Manifest) -> bool:
    """Check whether a pod of ``ValidationBridge`` has the strategy ``stage``, which writes no marker files."""
    return any(one.get("name") == "STAGE_DIR" for each in containers(spec(pod)) for one in each.get("env") or ())


@check
def operator_validator(view: View) -> Iterator[Problem]:
    """Return a problem for each validator pod of the GPU Operator that waits in one of its validation steps."""
    waiting = ((pod, *one) for pod in view.program_pods("operator validator") if (one := waits_in(pod)))
    return (Problem(title(pod), f"it stays in {at}: {_STEPS.get(name, 'its step fails')}") for pod, at, name in waiting)


def waits_in(pod: Manifest) -> tuple[str, str] | None:
    """Return the state of a pod and the name of the init container for which the pod waits.

    An example of a state is ``Init:0/4 (driver-validation)``. Return None if the pod is ready, or if all its init
    containers have succeeded.
    """
    states = () if is_ready(pod) else status(pod).get("initContainerStatuses") or ()
    ended = [((one.get("state") or {}).get("terminated") or {}).get("exitCode") == 0 for one in states]
    if all(ended):
        return None
    name = str(states[ended.index(False)].get("name"))
    return f"Init:{ended.index(False)}/{len(states)} ({name})", name


@check
def operator_plugin(view: View) -> Iterator[Problem]:
    """Yield a problem for each pod of the GPU Operator, except its validator, that waits for a marker file.

    The validator or a validation bridge writes a marker file when a validation step on the node passes.
    """
    operands = (pod for pod in view.program_pods() if program_of(pod) != "operator validator")
    for pod, (at, name) in ((pod, one) for pod in operands if (one := waits_in(pod))):
        value = labels(view.node_of(pod) or {}).get(_VALIDATOR, "not set")
        reason = f"it stays in {at}, because a marker file is missing; the label {_VALIDATOR} of its node is {value}"
        if name.endswith("-validation"):
            yield Problem(title(pod), reason)


@check
def operator_policy(view: View) -> Iterator[Problem]:
    """Yield a problem for each ClusterPolicy of the GPU Operator that is not ready."""
    for policy in (one for one in view.all("ClusterPolicy") if status(one).get("state") != "ready"):
        stated = condition(policy, "Error").get("message") or condition(policy, "Ready").get("message") or "no reason"
        yield Problem(
            title(policy), f"its state is {status(policy).get('state') or 'not known'}: {shortened(str(stated))}"
        )

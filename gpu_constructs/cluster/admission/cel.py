"""Conditions of the admission policies, in the Common Expression Language that the API server evaluates."""

from __future__ import annotations

import json
from collections.abc import Sequence

from gpu_constructs.kube.placement import Toleration

VISIBLE_DEVICES = "NVIDIA_VISIBLE_DEVICES"
HARMLESS_DEVICES = ("", "none", "void")
"""Values of the environment variable ``NVIDIA_VISIBLE_DEVICES`` with which a container gets no GPU."""

_INIT = "(has(object.spec.initContainers) ? object.spec.initContainers : [])"

HAS_NO_RUNTIME_CLASS = "!has(object.spec.runtimeClassName)"

GPU_RESOURCES = ("nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-*")
"""Resources that the device plugin can advertise. Other NVIDIA resources, such as network adapters, are not GPUs."""


def asks_for_gpu(resources: Sequence[str] = GPU_RESOURCES) -> str:
    """Return a CEL expression that is true if a container or init container has a limit on a GPU resource.

    A limit of 0 does not count. The LimitRange of ``ContainerLimits`` sets the limit 0 on containers without a GPU.

    Args:
        resources: Names of GPU resources, for example ``nvidia.com/gpu``. In ``nvidia.com/mig-*``, the trailing ``*``
            matches the rest of a name.
    """
    names = [name for name in resources if not name.endswith("*")]
    is_one = [f"r in {json.dumps(names)}"] if names else []
    is_one += [f"r.startsWith({json.dumps(name[:-1])})" for name in resources if name.endswith("*")]
    return (
        f"(dyn(object.spec.containers) + dyn({_INIT})).exists(c, has(c.resources) && has(c.resources.limits) && "
        f'c.resources.limits.exists(r, ({" || ".join(is_one)}) && string(c.resources.limits[r]) != "0"))'
    )


# The type checker of the API server treats kinds of containers as different types, so the lists need dyn. An update can
# only add ephemeral containers. The policy checked the other containers when the pod was new.
CONTAINERS = (
    f'(request.operation == "CREATE" ? dyn(object.spec.containers) + dyn({_INIT}) : dyn([])) + '
    "dyn(has(object.spec.ephemeralContainers) ? object.spec.ephemeralContainers : [])"
)

KEEPS_ALLOCATED_DEVICES = (
    f"variables.containers.all(c, !has(c.env) || c.env.all(e, e.name != {json.dumps(VISIBLE_DEVICES)} || "
    f"(!has(e.valueFrom) && (!has(e.value) || e.value in {json.dumps(HARMLESS_DEVICES)}))))"
)


def uses_runtime(classes: Sequence[str]) -> str:
    """Return a CEL expression that is true if the ``runtimeClassName`` of a pod is one of the names in ``classes``."""
    return f"has(object.spec.runtimeClassName) && object.spec.runtimeClassName in {json.dumps(list(classes))}"


def asks_if_it_uses(classes: Sequence[str], resources: Sequence[str]) -> str:
    """Return a CEL expression that is false for a new pod with a RuntimeClass in ``classes`` but no GPU.

    Args:
        classes: Names of RuntimeClasses.
        resources: Names of GPU resources. A pod has a GPU if a container has a limit on one of these resources.
    """
    return f'request.operation != "CREATE" || !({uses_runtime(classes)}) || {asks_for_gpu(resources)}'


def is_scheduled_if_it_uses(classes: Sequence[str]) -> str:
    """Return a CEL expression that is false for a new pod that sets ``nodeName`` and a RuntimeClass in ``classes``.

    If a pod sets ``nodeName``, the kubelet may ignore the GPU request of the pod.
    """
    return f'request.operation != "CREATE" || !({uses_runtime(classes)}) || !has(object.spec.nodeName)'


def takes_no_environment_unseen(classes: Sequence[str]) -> str:
    """Return a CEL expression that is false for a pod in which ``envFrom`` can set ``NVIDIA_VISIBLE_DEVICES``.

    In such a pod, a container has ``envFrom``, and its ``env`` does not set this variable. A value in ``env``
    takes precedence over ``envFrom``.

    Args:
        classes: Names of RuntimeClasses. For pods with other RuntimeClasses, the expression is true.
    """
    return (
        f"!({uses_runtime(classes)}) || variables.containers.all(c, !has(c.envFrom) || "
        f"(has(c.env) && c.env.exists(e, e.name == {json.dumps(VISIBLE_DEVICES)})))"
    )


def is_tolerated(toleration: Toleration) -> str:
    """Return a CEL expression that is true if a pod already has ``toleration``, or a more general toleration.

    For example, a toleration without ``key`` is more general than one for the key ``nvidia.com/gpu``.
    """
    key = "!has(t.key)"
    if toleration.key is not None:
        key = f"(!has(t.key) || t.key == {json.dumps(toleration.key)})"
    exists = 'has(t.operator) && t.operator == "Exists"'
    if toleration.operator == "Equal":
        value = json.dumps(toleration.value or "")
        exists = f'(({exists}) || (has(t.key) && (has(t.value) ? t.value : "") == {value}))'
    effect = "!has(t.effect)" + (f" || t.effect == {json.dumps(toleration.effect)}" if toleration.effect else "")
    return f"has(object.spec.tolerations) && object.spec.tolerations.exists(t, {key} && {exists} && ({effect}))"


def injection(runtime_class: str, tolerations: Sequence[Toleration]) -> str:
    """Return the CEL expression of a JSON patch that sets the ``runtimeClassName`` of a pod and adds tolerations.

    The patch adds only tolerations that the pod does not already have.
    """
    parts = [f"[{_add('/spec/runtimeClassName', json.dumps(runtime_class))}]"]
    if tolerations:
        parts.append(f"(has(object.spec.tolerations) ? [] : [{_add('/spec/tolerations', '[]')}])")
    for toleration in tolerations:
        members = ", ".join(f"{key}: {json.dumps(value)}" for key, value in toleration.to_manifest().items())
        added = _add("/spec/tolerations/-", f"Object.spec.tolerations{{{members}}}")
        parts.append(f"({is_tolerated(toleration)} ? [] : [{added}])")
    return " + ".join(parts)


def _add(path: str, value: str) -> str:
    return f'JSONPatch{{op: "add", path: "{path}", value: {value}}}'

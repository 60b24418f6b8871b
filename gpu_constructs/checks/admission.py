"""Checks that find pods which Pod Security or an admission policy of the app rejects.

A guard is an admission policy that rejects pods which have access to GPUs that the kubelet did not allocate to them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from gpu_constructs.errors import then
from gpu_constructs.facts.app import Facts, Pod
from gpu_constructs.facts.finding import Finding
from gpu_constructs.facts.provided import DeviceGuard
from gpu_constructs.facts.readable import Manifest, amounts, is_gpu_name, namespace_of
from gpu_constructs.kube import pod_security, pod_specs
from gpu_constructs.kube.labels import is_ours

_NAMESPACE = ("", "Namespace")
_LEVEL = "pod-security.kubernetes.io/enforce"
# These kinds create no pods. Objects in other namespaces use their pod specs.
_NO_PODS = {
    ("serving.kserve.io", "ClusterServingRuntime"),
    ("serving.kserve.io", "ServingRuntime"),
    ("trainer.kubeflow.org", "ClusterTrainingRuntime"),
}


def _labels(namespace: Manifest) -> Mapping[str, Any]:
    labels: Mapping[str, Any] = namespace["metadata"].get("labels") or {}
    return labels


def _default_level(facts: Facts) -> str | None:
    """Return the Pod Security level that namespaces without a Pod Security label have on the app's platform.

    Return None if the level is unknown: the platform is not Talos, or no construct declares the platform.
    """
    return next((offer.pod_security_default for offer in facts.provided if offer.pod_security_default), None)


def _what_holds(stated: str | None, default: str | None) -> str:
    """Return a clause for messages that states the Pod Security level of a namespace.

    Args:
        stated: Level that the label of the namespace sets; None if the namespace has no such label.
        default: Level of namespaces without such a label.
    """
    return f"enforces {stated!r}" if stated else f"sets no Pod Security level, so {default!r} applies"


def pods_satisfy_their_namespace(facts: Facts) -> Iterator[Finding]:
    """Yield problems: pods that the Pod Security level of their namespace rejects."""
    default = _default_level(facts)
    levels: dict[str, tuple[str | None, tuple[int, ...]]] = {"default": (None, ())} if default else {}
    for index, namespace in facts.of_kind(_NAMESPACE):
        levels[namespace["metadata"].get("name")] = (_labels(namespace).get(_LEVEL), (index,))
    for pod in facts.pods:
        stated, made_by = levels.get(namespace_of(pod.manifest), ("privileged", ()))
        level: Any = stated or default
        violations = pod_security.violations(pod.spec, level) if level in ("baseline", "restricted") else []
        if violations:
            yield Finding(
                pod.index,
                "the API server would reject the pods: namespace "
                f"{namespace_of(pod.manifest)!r}{' of {0}' if made_by else ''} "
                f"{_what_holds(stated, default)}, and {'; '.join(violations)}{then(_way_to_satisfy(pod, level))}",
                made_by,
            )


def _way_to_satisfy(pod: Pod, level: Literal["baseline", "restricted"]) -> str:
    """Return an instruction for messages: how a pod can satisfy a Pod Security level."""
    if is_ours(pod.manifest):
        return (
            "remove the options that need these rights (set run_as_user=... for a user other than root), or use "
            "another GpuNamespace(pod_security=...)"
        )
    return (
        f"write {', '.join(pod_security.ways_out(pod.spec, level))} in the pod, or give its namespace another {_LEVEL}"
    )


def later_pods_find_a_privileged_namespace(facts: Facts) -> Iterator[Finding]:
    """Yield problems: namespaces whose Pod Security level rejects pods of the GPU Operator or of ``ValidationBridge``.

    The GPU Operator and the DaemonSet of ``ValidationBridge`` create these pods later, in the cluster.
    """
    default = _default_level(facts)
    wanted = {name: index for index, offer in enumerate(facts.provided) for name in offer.privileged_namespaces}
    for index, namespace in facts.of_kind(_NAMESPACE):
        stated, name = _labels(namespace).get(_LEVEL), namespace["metadata"].get("name")
        if name in wanted and (stated or default) not in (None, "privileged"):
            yield Finding(
                index,
                f"{_what_holds(stated, default)}, which rejects the pods that {{0}} creates later, because they mount "
                "host paths. Use GpuNamespace(pod_security='privileged')",
                providers=(wanted[name],),
            )


def _guards(facts: Facts) -> Iterator[tuple[int, DeviceGuard, set[str]]]:
    """Yield a triple for each guard (admission policy of the app that restricts access to GPUs).

    The triple contains three values: the index of the guard's construct in ``Facts.provided``, the guard, and the names
    of the namespaces that the guard exempts.
    """
    for index, offer in enumerate(facts.provided):
        guard = offer.device_guard
        if guard is not None:
            namespaces = [namespace for _, namespace in facts.of_kind(_NAMESPACE)]
            labelled = [one for one in namespaces if _labels(one).get(guard.allow_label) == "true"]
            names = {str(one["metadata"].get("name")) for one in labelled}
            yield index, guard, names | set(guard.excluded_namespaces)


def pods_pass_the_guards(facts: Facts) -> Iterator[Finding]:
    """Yield problems: pods that an admission policy of the app rejects because of their access to GPUs."""
    for provider, guard, left_alone in _guards(facts):
        for pod in facts.pods:
            namespace = namespace_of(pod.manifest)
            if namespace in left_alone or facts.kinds[pod.index] in _NO_PODS:
                continue
            why = _refused(facts, pod, guard)
            if why:
                yield Finding(
                    pod.index,
                    f"pods would not pass the policy of {{0}}: {why}{then(_let_through(guard, namespace))}",
                    providers=(provider,),
                )


def later_pods_pass_the_guards(facts: Facts) -> Iterator[Finding]:
    """Yield problems: admission policies that reject pods of the GPU Operator or of ``ValidationBridge``.

    The GPU Operator and the DaemonSet of ``ValidationBridge`` create these pods later, in the cluster.
    """
    for provider, guard, left_alone in _guards(facts):
        for index, offer in enumerate(facts.provided):
            for namespace in offer.privileged_namespaces:
                if namespace not in left_alone:
                    yield Finding(
                        None,
                        f"creates pods in namespace {namespace!r} with access to every GPU, and {{1}} would reject "
                        f"them{then(_let_through(guard, namespace))}",
                        providers=(index, provider),
                    )


def _refused(facts: Facts, pod: Pod, guard: DeviceGuard) -> str | None:
    """Return the reason why an admission policy rejects a pod. Return None if the policy admits the pod."""
    each = list(pod_specs.containers(pod.spec))
    showing = next((container for container in each if _shows_devices(container, guard)), None)
    if showing is not None:
        return f"container {showing.get('name')!r} sets {guard.variable}"
    runtime_class = pod.spec.get("runtimeClassName")
    if runtime_class not in guard.runtime_classes:
        return None
    under = f"under runtimeClassName {runtime_class!r}"
    # A runtime of KServe or Kubeflow Trainer completes the pod spec.
    is_whole = facts.kinds[pod.index][0] not in ("serving.kserve.io", "trainer.kubeflow.org")
    if guard.requires_gpu and is_whole and not any(map(_has_gpu_limit, each)):
        return f"no container requests a GPU {under}"
    if guard.requires_gpu and pod.spec.get("nodeName"):
        return f"it sets nodeName {under}"
    from_elsewhere = [one.get("name") for one in each if one.get("envFrom") and guard.variable not in _names(one)]
    if guard.forbids_env_from and from_elsewhere:
        return f"container {from_elsewhere[0]!r} has envFrom {under}"
    return None


def _names(container: Manifest) -> list[object]:
    return [variable.get("name") for variable in container.get("env") or ()]


def _shows_devices(container: Manifest, guard: DeviceGuard) -> bool:
    """Check whether an environment variable of a container makes GPUs visible in a way that the policy rejects."""
    variables = container.get("env") or ()
    shown = [one.get("valueFrom") or one.get("value") or "" for one in variables if one.get("name") == guard.variable]
    return any(value not in guard.harmless_values for value in shown)


def _has_gpu_limit(container: Manifest) -> bool:
    """Check whether a container sets a limit above 0 for GPUs."""
    return any(is_gpu_name(name) and str(count) != "0" for name, count in amounts(container, "limits").items())


def _let_through(guard: DeviceGuard, namespace: str) -> str:
    """Return an instruction for messages: how to exempt a namespace from an admission policy for GPU access."""
    return (
        f"if they need access to every GPU, add {namespace!r} to its excluded_namespaces, or label the namespace with "
        f"GpuNamespace(..., labels={{{guard.allow_label!r}: 'true'}})"
    )

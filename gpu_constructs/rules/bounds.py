"""What the LimitRanges and ResourceQuotas of an app refuse of its own pods."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from gpu_constructs.pod_specs import containers
from gpu_constructs.rules.facts import Facts, Manifest, Pod, amounts, limits_of, namespace_of
from gpu_constructs.rules.finding import Finding
from gpu_constructs.rules.limit_range import breaches, defaults

# kubernetes/kubernetes:pkg/quota/v1/evaluator/core/pods.go: a quota on one of these has every container state it.
_DEMANDED = {
    **{resource: ("requests", resource) for resource in ("cpu", "memory")},
    **{f"{part}.{resource}": (part, resource) for part in ("requests", "limits") for resource in ("cpu", "memory")},
}
# A runtime, or an operator's own defaults, add what is not written in these.
_COMPLETED = ("serving.kserve.io", "trainer.kubeflow.org")

_Limit = tuple[int, Mapping[str, Any]]


def pods_fit_their_namespace(facts: Facts) -> Iterator[Finding]:
    """Compare the pods of each namespace with what the app says of it."""
    ranges: dict[str, list[_Limit]] = defaultdict(list)
    for index, manifest in facts.of_kind(("", "LimitRange")):
        each = [(index, limit) for limit in limits_of(manifest) if limit.get("type") == "Container"]
        ranges[namespace_of(manifest)] += each
    quotas: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for index, manifest in facts.of_kind(("", "ResourceQuota")):
        spec = manifest.get("spec") or {}
        # With a scope it counts some pods only.
        if not spec.get("scopes") and not spec.get("scopeSelector"):
            quotas[namespace_of(manifest)] += [(index, key) for key in spec.get("hard") or () if key in _DEMANDED]
    for pod in facts.pods if ranges or quotas else ():
        namespace = namespace_of(pod.manifest)
        limits = ranges.get(namespace, [])
        yield from _above_the_most(pod, limits)
        if facts.kinds[pod.index][0] not in _COMPLETED:
            yield from _unstated(pod, quotas.get(namespace, []), limits)


def _above_the_most(pod: Pod, limits: list[_Limit]) -> Iterator[Finding]:
    for index, limit in limits:
        told: set[tuple[str | None, str]] = set()
        for breach in breaches(pod.spec, limit):
            if breach.bound == "max" and (breach.container, breach.resource) not in told:
                told.add((breach.container, breach.resource))
                yield Finding(
                    pod.index,
                    f"pods would be refused: {breach.section}[{breach.resource!r}] of container {breach.container!r} "
                    f"is {breach.given}, and {{0}} allows a container of namespace {namespace_of(pod.manifest)!r} at "
                    f"most {breach.allowed}; ask for less, or raise ContainerLimits(max=...)",
                    (index,),
                )


def _unstated(pod: Pod, quotas: list[tuple[int, str]], limits: list[_Limit]) -> Iterator[Finding]:
    for index, key in quotas:
        section, resource = _DEMANDED[key]
        if _states(pod.spec, section, resource) or any(_gives(limit, section, resource) for _, limit in limits):
            continue
        for container in containers(pod.spec):
            if not _states(container, section, resource):
                yield Finding(
                    pod.index,
                    f"pods would be refused: container {container.get('name')!r} states no {section}[{resource!r}], "
                    f"which {{0}} demands of every container of namespace {namespace_of(pod.manifest)!r} by {key!r}; "
                    "state it, or give a default with GpuNamespace(limit_range=ContainerLimits(default=...))",
                    (index,),
                )


def _states(holder: Manifest, section: str, resource: str) -> bool:
    # Kubernetes takes the limit for the request where that is not given.
    return any(resource in amounts(holder, part) for part in {section, "limits"})


def _gives(limit: Manifest, section: str, resource: str) -> bool:
    return resource in defaults(limit, section)

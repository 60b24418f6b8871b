"""What the LimitRanges and ResourceQuotas of an app refuse of its own pods, and what quotas do not count."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from gpu_constructs.facts.app import Facts, Pod, most_at_once
from gpu_constructs.facts.finding import Finding
from gpu_constructs.facts.limit_range import breaches, defaults
from gpu_constructs.facts.provided import is_among
from gpu_constructs.facts.readable import Manifest, amounts, namespace_of, quantity
from gpu_constructs.kube.pod_specs import containers

_OF_CLAIMS = "requests.storage"
_OF_CLASS = ".storageclass.storage.k8s.io/requests.storage"
_OF_PODS = frozenset({"pods", "count/pods"})
_REQUESTED = frozenset({"cpu", "memory", "ephemeral-storage"})
_MIG = "nvidia.com/mig-"
# kubernetes/kubernetes:pkg/quota/v1/evaluator/core/pods.go: a quota on one of these has every container state it.
_DEMANDED = {
    **{resource: ("requests", resource) for resource in ("cpu", "memory")},
    **{f"{part}.{resource}": (part, resource) for part in ("requests", "limits") for resource in ("cpu", "memory")},
}
# A runtime, or an operator's own defaults, add what is not written in these.
_COMPLETED = ("serving.kserve.io", "trainer.kubeflow.org")

_Limit = tuple[int, Manifest]


@dataclass(frozen=True)
class _Bound:
    """One key of a quota.

    Attributes:
        index: Of the ResourceQuota.
        key: As it is written.
        most: What it allows, as it is written.
        number: The same as a number.
    """

    index: int
    key: str
    most: object
    number: Decimal

    @property
    def counts(self) -> tuple[str, str] | None:
        """The section and the resource of containers that it counts; None where it counts something else."""
        for section in ("requests", "limits"):
            if self.key.startswith(f"{section}."):
                return None if self.key == _OF_CLAIMS else (section, self.key.removeprefix(f"{section}."))
        is_requested = self.key in _REQUESTED or self.key.startswith("hugepages-")
        return ("requests", self.key) if is_requested else None


def pods_fit_their_namespace(facts: Facts) -> Iterator[Finding]:
    """Compare the pods of each namespace with what the app says of it."""
    for pod in facts.pods if facts.limit_ranges or facts.quotas else ():
        namespace = namespace_of(pod.manifest)
        limits = [one for one in facts.limit_ranges.get(namespace, ()) if one[1].get("type") == "Container"]
        yield from _above_the_most(pod, limits)
        if facts.kinds[pod.index][0] not in _COMPLETED:
            demanded = [(index, key) for index, key, _ in facts.quotas.get(namespace, ()) if key in _DEMANDED]
            yield from _unstated(pod, demanded, limits)


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
        if _states(pod.spec, section, resource) or any(resource in defaults(limit, section) for _, limit in limits):
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


def quotas_fit_and_count(facts: Facts) -> Iterator[Finding]:
    """Compare what each workload asks for with the quotas of its namespace."""
    bounds = _bounds(facts)
    if not bounds:
        return
    for pod in (*facts.pods, *facts.completed_pods):
        # A runtime is completed by what uses it, maybe in another namespace.
        if not facts.kinds[pod.index][1].endswith("Runtime"):
            for bound in bounds.get(namespace_of(pod.manifest), ()):
                yield from _larger_than(pod, bound)
    yield from _workloads(facts, bounds)
    yield from _claims(facts, bounds)
    for namespace, each in bounds.items():
        yield from _uncounted(facts, namespace, each)


def _bounds(facts: Facts) -> dict[str, list[_Bound]]:
    bounds: dict[str, list[_Bound]] = {}
    for namespace, quotas in facts.quotas.items():
        each = [(index, key, most, quantity(most)) for index, key, most in quotas]
        bounds[namespace] = [_Bound(index, key, most, known) for index, key, most, known in each if known is not None]
    return bounds


def _asked(pod: Pod, bound: _Bound) -> Decimal:
    """Return the least that a quota counts for one pod: defaults of the namespace may add to it."""
    if bound.key in _OF_PODS:
        return Decimal(1)
    if bound.counts is None:
        return Decimal(0)
    section, resource = bound.counts
    of_pod = _stated(pod.spec, section, resource)
    held = {id(one): _stated(one, section, resource) or Decimal(0) for one in containers(pod.spec)}
    return of_pod or most_at_once(pod.spec, held)


def _stated(holder: Manifest, section: str, resource: str) -> Decimal | None:
    # Kubernetes takes the limit for the request where that is not given.
    given = amounts(holder, section).get(resource)
    if given is None and section == "requests":
        given = amounts(holder, "limits").get(resource)
    return quantity(given)


def _larger_than(pod: Pod, bound: _Bound) -> Iterator[Finding]:
    asked = _asked(pod, bound)
    if asked > bound.number:
        yield Finding(
            pod.index,
            f"pods would be refused: one counts {_shown(asked)} of {bound.key!r}, and {{0}} allows all pods of "
            f"namespace {namespace_of(pod.manifest)!r} {bound.most} together; ask for less, or raise the quota",
            (bound.index,),
        )


def _shown(number: Decimal) -> str:
    for factor, unit in ((2**30, "Gi"), (2**20, "Mi")):
        if number >= factor and not number % factor:
            return f"{number // factor}{unit}"
    return f"{number.normalize():f}"


def _workloads(facts: Facts, bounds: dict[str, list[_Bound]]) -> Iterator[Finding]:
    """Check what all pods that a workload runs at once count."""
    # Only an app with quotas needs to know how many pods each kind makes.
    from gpu_constructs.capacity.demand.app_objects import App
    from gpu_constructs.capacity.demand.copies import pod_groups

    app = App(facts)
    for index, manifest in enumerate(facts.objects):
        for bound in bounds.get(namespace_of(manifest), ()):
            groups = [group for group in pod_groups(manifest, app) if not group.is_stopped]
            each = [(_asked(Pod(index, manifest, group.spec), bound), group) for group in groups]
            together = sum(asked * group.pods_each * group.least_copies for asked, group in each)
            pods = sum(group.pods_each * group.least_copies for asked, group in each if asked)
            if together > bound.number and all(asked <= bound.number for asked, _ in each):
                yield Finding(
                    index,
                    f"its {pods} pods count {_shown(Decimal(together))} of {bound.key!r}, and {{0}} allows all pods of "
                    f"namespace {namespace_of(manifest)!r} {bound.most} together, so some would be refused; run fewer, "
                    "or raise the quota",
                    (bound.index,),
                    is_warning=True,
                )


def _claims(facts: Facts, bounds: dict[str, list[_Bound]]) -> Iterator[Finding]:
    for index, namespace, spec in _volume_claims(facts):
        counted = {_OF_CLAIMS, f"{spec.get('storageClassName')}{_OF_CLASS}"}
        asked = _stated(spec, "requests", "storage")
        for bound in bounds.get(namespace, ()):
            if asked is not None and bound.key in counted and asked > bound.number:
                yield Finding(
                    index,
                    f"its volume claim would be refused: it asks for {amounts(spec, 'requests')['storage']}, and {{0}} "
                    f"allows all claims of namespace {namespace!r} {bound.most} together by {bound.key!r}; ask for "
                    "less, or raise the quota",
                    (bound.index,),
                )


def _volume_claims(facts: Facts) -> Iterator[tuple[int, str, Manifest]]:
    for index, manifest in facts.of_kind(("", "PersistentVolumeClaim")):
        yield index, namespace_of(manifest), manifest.get("spec") or {}
    for index, manifest in facts.of_kind(("apps", "StatefulSet")):
        for template in (manifest.get("spec") or {}).get("volumeClaimTemplates") or ():
            yield index, namespace_of(manifest), template.get("spec") or {}


def _uncounted(facts: Facts, namespace: str, bounds: Sequence[_Bound]) -> Iterator[Finding]:
    """Check for GPUs under names that a quota on GPUs does not count."""
    counted = {bound.counts[1]: bound for bound in bounds if bound.counts and bound.counts[0] == "requests"}
    of_gpus = {resource: bound for resource, bound in counted.items() if facts.is_gpu(resource)}
    if not of_gpus:
        return
    missed = _missed(facts, namespace, of_gpus.keys())
    if missed:
        keys = ", ".join(f"requests.{name}".replace("*", "<profile>") for name in missed)
        yield Finding(
            next(iter(of_gpus.values())).index,
            f"limits GPUs as {', '.join(sorted(of_gpus))} only, and a quota counts each name for itself, so pods take "
            f"any number of {' and '.join(missed)}; add {keys}, 0 where none is allowed",
            is_warning=True,
        )


def _missed(facts: Facts, namespace: str, counted: Collection[str]) -> list[str]:
    """Return the names of GPUs of pods and nodes that are not counted; a star is for profiles that nothing names."""
    asks = [ask for pod in (*facts.gpu_pods, *facts.completed_pods) for ask in pod.asks]
    names = {ask.resource for ask in asks if namespace_of(ask.pod.manifest) == namespace} | set(_advertised(facts))
    patterns = sorted(name for name in names if name.endswith("*"))
    exact = sorted(names - {*patterns, *counted})
    return exact + [one for one in patterns if not any(is_among(name, [one]) for name in {*exact, *counted})]


def _advertised(facts: Facts) -> Iterator[str]:
    """Return the names of GPUs on the nodes, where the configuration of the plugin is known."""
    for offer in (one for provider in facts.provided for one in provider.gpu_offers):
        yield offer.sharing.gpu_resource
        yield from (offer.sharing.resource_name(name) for name in offer.sharing.resources if name.startswith(_MIG))
        if offer.mig_strategy == "mixed":
            yield f"{_MIG}*"

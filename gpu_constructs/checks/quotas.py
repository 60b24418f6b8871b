"""Checks that pods and volume claims do not exceed the LimitRanges and ResourceQuotas in the app."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from decimal import Decimal

from gpu_constructs.facts.app import Facts, Pod
from gpu_constructs.facts.finding import Finding
from gpu_constructs.facts.limit_range import breaches, defaults
from gpu_constructs.facts.provided import is_among
from gpu_constructs.facts.readable import Manifest, amounts, namespace_of, quantity
from gpu_constructs.kube.pod_specs import containers, most_at_once
from gpu_constructs.records import dataclass

_OF_CLAIMS = "requests.storage"
_OF_CLASS = ".storageclass.storage.k8s.io/requests.storage"
_OF_PODS = frozenset({"pods", "count/pods"})
_REQUESTED = frozenset({"cpu", "memory", "ephemeral-storage"})
_MIG = "nvidia.com/mig-"
# If a ResourceQuota limits one of the following resources, every container must set an amount of it:
# kubernetes/kubernetes:pkg/quota/v1/evaluator/core/pods.go
_DEMANDED = {
    **{resource: ("requests", resource) for resource in ("cpu", "memory")},
    **{f"{part}.{resource}": (part, resource) for part in ("requests", "limits") for resource in ("cpu", "memory")},
}
# In objects of these groups, a runtime or an operator adds fields to the pod specs.
_COMPLETED = ("serving.kserve.io", "trainer.kubeflow.org")

_Limit = tuple[int, Manifest]


@dataclass(frozen=True)
class _Bound:
    """One limit of a ResourceQuota.

    Attributes:
        index: Index of the ResourceQuota in ``Facts.objects``.
        key: Key of the limit in ``spec.hard``, such as ``requests.cpu``.
        most: Value of the limit, as the manifest states it.
        number: Value of the limit, as a number.
    """

    index: int
    key: str
    most: object
    number: Decimal

    @property
    def counts(self) -> tuple[str, str] | None:
        """Section and resource that the limit counts in each container, such as ``("requests", "cpu")``.

        None if the limit counts something else, such as pods or the storage of volume claims.
        """
        for section in ("requests", "limits"):
            if self.key.startswith(f"{section}."):
                return None if self.key == _OF_CLAIMS else (section, self.key.removeprefix(f"{section}."))
        is_requested = self.key in _REQUESTED or self.key.startswith("hugepages-")
        return ("requests", self.key) if is_requested else None


def pods_fit_their_namespace(facts: Facts) -> Iterator[Finding]:
    """Yield problems: pods that a LimitRange rejects, and pods that lack an amount that a ResourceQuota requires."""
    for pod in facts.pods if facts.limit_ranges or facts.quotas else ():
        namespace = namespace_of(pod.manifest)
        limits = [one for one in facts.limit_ranges.get(namespace, ()) if one[1].get("type") == "Container"]
        yield from _above_the_most(pod, limits)
        if facts.kinds[pod.index][0] not in _COMPLETED:
            demanded = [(index, key) for index, key, _ in facts.quotas.get(namespace, ()) if key in _DEMANDED]
            yield from _unstated(pod, demanded, limits)


def _above_the_most(pod: Pod, limits: list[_Limit]) -> Iterator[Finding]:
    """Yield a problem for each amount of a pod that exceeds ``max`` of a LimitRange.

    Args:
        pod: Pod spec.
        limits: Items of LimitRanges in the namespace, as pairs: index of the LimitRange in ``Facts.objects``, and item.
    """
    for index, limit in limits:
        reported: set[tuple[str | None, str]] = set()
        for breach in breaches(pod.spec, limit):
            if breach.bound == "max" and (breach.container, breach.resource) not in reported:
                reported.add((breach.container, breach.resource))
                yield Finding(
                    pod.index,
                    f"the API server would reject the pods: {breach.section}[{breach.resource!r}] of container "
                    f"{breach.container!r} "
                    f"is {breach.given}, and {{0}} allows a container of namespace {namespace_of(pod.manifest)!r} at "
                    f"most {breach.allowed}. Request less, or raise ContainerLimits(max=...)",
                    (index,),
                )


def _unstated(pod: Pod, quotas: list[tuple[int, str]], limits: list[_Limit]) -> Iterator[Finding]:
    """Yield a problem for each amount that a ResourceQuota requires and that a container does not set.

    Args:
        pod: Pod spec.
        quotas: Limits of the ResourceQuotas in the namespace, as pairs: index of the ResourceQuota in
            ``Facts.objects``, and key of the limit, such as ``requests.cpu``.
        limits: Items of LimitRanges in the namespace, as pairs: index of the LimitRange in ``Facts.objects``, and item.
            The defaults in an item replace missing amounts.
    """
    for index, key in quotas:
        section, resource = _DEMANDED[key]
        if _states(pod.spec, section, resource) or any(resource in defaults(limit, section) for _, limit in limits):
            continue
        for container in containers(pod.spec):
            if not _states(container, section, resource):
                yield Finding(
                    pod.index,
                    f"the API server would reject the pods: container {container.get('name')!r} does not set "
                    f"{section}[{resource!r}], but {{0}} limits {key!r}, so each container of namespace "
                    f"{namespace_of(pod.manifest)!r} must set it. Set it, or set a default with "
                    "GpuNamespace(limit_range=ContainerLimits(default=...))",
                    (index,),
                )


def _states(holder: Manifest, section: str, resource: str) -> bool:
    """Check whether a container or a pod sets the request or the limit for a resource.

    A limit also counts as a request, because Kubernetes copies a limit to a missing request.

    Args:
        holder: Container or pod spec.
        section: ``requests`` or ``limits``.
        resource: Name of the resource.
    """
    # Kubernetes copies the limit to a missing request.
    return any(resource in amounts(holder, part) for part in {section, "limits"})


def quotas_fit_and_count(facts: Facts) -> Iterator[Finding]:
    """Yield problems: workloads and volume claims that exceed a ResourceQuota, and GPUs that no ResourceQuota limits.

    The function reports GPU resources without a limit only in a namespace that limits another GPU resource.
    """
    bounds = _bounds(facts)
    if not bounds:
        return
    for pod in (*facts.pods, *facts.completed_pods):
        # A training or serving runtime creates no pods. The objects that use it can be in other namespaces.
        if not facts.kinds[pod.index][1].endswith("Runtime"):
            for bound in bounds.get(namespace_of(pod.manifest), ()):
                yield from _larger_than(pod, bound)
    yield from _workloads(facts, bounds)
    yield from _claims(facts, bounds)
    for namespace, each in bounds.items():
        yield from _uncounted(facts, namespace, each)


def _bounds(facts: Facts) -> dict[str, list[_Bound]]:
    """Return the limits of all ResourceQuotas that have no scopes, by namespace."""
    bounds: dict[str, list[_Bound]] = {}
    for namespace, quotas in facts.quotas.items():
        each = [(index, key, most, quantity(most)) for index, key, most in quotas]
        bounds[namespace] = [_Bound(index, key, most, known) for index, key, most, known in each if known is not None]
    return bounds


def _asked(pod: Pod, bound: _Bound) -> Decimal:
    """Return the amount that a limit of a ResourceQuota counts for one pod, without default amounts.

    In the cluster, the defaults of a LimitRange can make the amount larger.
    """
    if bound.key in _OF_PODS:
        return Decimal(1)
    if bound.counts is None:
        return Decimal(0)
    section, resource = bound.counts
    of_pod = _stated(pod.spec, section, resource)
    held = {id(one): _stated(one, section, resource) or Decimal(0) for one in containers(pod.spec)}
    return of_pod or most_at_once(pod.spec, held)


def _stated(holder: Manifest, section: str, resource: str) -> Decimal | None:
    """Return the amount of a resource that a container, pod spec or volume claim sets; None if it sets no amount.

    Args:
        holder: Container, pod spec, or spec of a volume claim.
        section: ``limits`` or ``requests``. A limit also counts as a request if there is no request.
        resource: Name of the resource.
    """
    # Kubernetes copies the limit to a missing request.
    given = amounts(holder, section).get(resource)
    if given is None and section == "requests":
        given = amounts(holder, "limits").get(resource)
    return quantity(given)


def _larger_than(pod: Pod, bound: _Bound) -> Iterator[Finding]:
    """Yield a problem if a single pod exceeds a limit of a ResourceQuota."""
    asked = _asked(pod, bound)
    if asked > bound.number:
        yield Finding(
            pod.index,
            f"the API server would reject the pods: one pod takes {_shown(asked)} of {bound.key!r}, but {{0}} limits "
            f"all pods of namespace {namespace_of(pod.manifest)!r} together to {bound.most}. Request less, or raise "
            "the quota",
            (bound.index,),
        )


def _shown(number: Decimal) -> str:
    """Return an amount of a resource as text, with the unit ``Gi`` or ``Mi`` if this unit needs no fraction."""
    for factor, unit in ((2**30, "Gi"), (2**20, "Mi")):
        if number >= factor and not number % factor:
            return f"{number // factor}{unit}"
    return f"{number.normalize():f}"


def _workloads(facts: Facts, bounds: dict[str, list[_Bound]]) -> Iterator[Finding]:
    """Yield a problem for each workload whose pods together exceed a limit of a ResourceQuota.

    Args:
        facts: Facts that the library derives from the objects of the app.
        bounds: Limits of the ResourceQuotas, by namespace.
    """
    # These imports are slow, and only an app with quotas needs them.
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
                    f"its {pods} pods take {_shown(Decimal(together))} of {bound.key!r}, but {{0}} limits all pods of "
                    f"namespace {namespace_of(manifest)!r} together to {bound.most}, so the API server would reject "
                    "some. Run fewer pods, or raise the quota",
                    (bound.index,),
                    is_warning=True,
                )


def _claims(facts: Facts, bounds: dict[str, list[_Bound]]) -> Iterator[Finding]:
    """Yield a problem for each volume claim that exceeds a limit of a ResourceQuota.

    Args:
        facts: Facts that the library derives from the objects of the app.
        bounds: Limits of the ResourceQuotas, by namespace.
    """
    for index, namespace, spec in _volume_claims(facts):
        counted = {_OF_CLAIMS, f"{spec.get('storageClassName')}{_OF_CLASS}"}
        asked = _stated(spec, "requests", "storage")
        for bound in bounds.get(namespace, ()):
            if asked is not None and bound.key in counted and asked > bound.number:
                yield Finding(
                    index,
                    "the API server would reject its volume claim: it requests "
                    f"{amounts(spec, 'requests')['storage']}, but {{0}} limits all claims of namespace {namespace!r} "
                    f"together to {bound.most} ({bound.key}). Request less, or raise the quota",
                    (bound.index,),
                )


def _volume_claims(facts: Facts) -> Iterator[tuple[int, str, Manifest]]:
    """Yield a tuple for each volume claim: the index of its object in ``Facts.objects``, its namespace, and its spec.

    The object is a PersistentVolumeClaim, or a StatefulSet with ``volumeClaimTemplates``.
    """
    for index, manifest in facts.of_kind(("", "PersistentVolumeClaim")):
        yield index, namespace_of(manifest), manifest.get("spec") or {}
    for index, manifest in facts.of_kind(("apps", "StatefulSet")):
        for template in (manifest.get("spec") or {}).get("volumeClaimTemplates") or ():
            yield index, namespace_of(manifest), template.get("spec") or {}


def _uncounted(facts: Facts, namespace: str, bounds: Sequence[_Bound]) -> Iterator[Finding]:
    """Yield a problem if the ResourceQuotas of a namespace limit some GPU resources, but not all that pods can use.

    For example, a limit of ``requests.nvidia.com/gpu`` does not count ``nvidia.com/gpu.shared``.

    Args:
        facts: Facts that the library derives from the objects of the app.
        namespace: Name of the namespace.
        bounds: Limits of the ResourceQuotas in the namespace.
    """
    counted = {bound.counts[1]: bound for bound in bounds if bound.counts and bound.counts[0] == "requests"}
    of_gpus = {resource: bound for resource, bound in counted.items() if facts.is_gpu(resource)}
    if not of_gpus:
        return
    missed = _missed(facts, namespace, of_gpus.keys())
    if missed:
        keys = ", ".join(f"requests.{name}".replace("*", "<profile>") for name in missed)
        yield Finding(
            next(iter(of_gpus.values())).index,
            f"limits only the GPU resources {', '.join(sorted(of_gpus))}. A quota counts each name separately, "
            f"so pods can take any number of {' and '.join(missed)}. Add {keys}, with 0 to forbid these resources",
            is_warning=True,
        )


def _missed(facts: Facts, namespace: str, counted: Collection[str]) -> list[str]:
    """Return the names of the GPU resources that no ResourceQuota of a namespace limits.

    The name ``nvidia.com/mig-*`` stands for all MIG profiles.

    Args:
        facts: Facts that the library derives from the objects of the app.
        namespace: Name of the namespace.
        counted: Names of the GPU resources that a ResourceQuota of the namespace limits.
    """
    asks = [ask for pod in (*facts.gpu_pods, *facts.completed_pods) for ask in pod.asks]
    names = {ask.resource for ask in asks if namespace_of(ask.pod.manifest) == namespace} | set(_advertised(facts))
    patterns = sorted(name for name in names if name.endswith("*"))
    exact = sorted(names - {*patterns, *counted})
    return exact + [one for one in patterns if not any(is_among(name, [one]) for name in {*exact, *counted})]


def _advertised(facts: Facts) -> Iterator[str]:
    """Yield the names of the GPU resources that device plugins with a known configuration advertise.

    For the MIG strategy ``mixed``, the name ``nvidia.com/mig-*`` stands for all MIG profiles.
    """
    for offer in (one for provider in facts.provided for one in provider.gpu_offers):
        yield offer.sharing.gpu_resource
        yield from (offer.sharing.resource_name(name) for name in offer.sharing.resources if name.startswith(_MIG))
        if offer.mig_strategy == "mixed":
            yield f"{_MIG}*"

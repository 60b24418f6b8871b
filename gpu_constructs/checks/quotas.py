"""What the ResourceQuotas of an app refuse, and what they do not count."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from gpu_constructs.pod_specs import containers
from gpu_constructs.rules.facts import Facts, Manifest, Pod, amounts, is_among, namespace_of, quantity
from gpu_constructs.rules.finding import Finding

_OF_CLAIMS = "requests.storage"
_OF_CLASS = ".storageclass.storage.k8s.io/requests.storage"
_OF_PODS = frozenset({"pods", "count/pods"})
_REQUESTED = frozenset({"cpu", "memory", "ephemeral-storage"})
_MIG = "nvidia.com/mig-"


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
    bounds: dict[str, list[_Bound]] = defaultdict(list)
    for index, manifest in facts.of_kind(("", "ResourceQuota")):
        spec = manifest.get("spec") or {}
        # With a scope it counts some pods only.
        if not spec.get("scopes") and not spec.get("scopeSelector"):
            for key, most in (spec.get("hard") or {}).items():
                number = quantity(most)
                if number is not None:
                    bounds[namespace_of(manifest)].append(_Bound(index, key, most, number))
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
    return of_pod or pod.at_once(held)


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
    pods = (*facts.gpu_pods, *facts.completed_pods)
    held = {ask.resource for pod in pods if namespace_of(pod.manifest) == namespace for ask in pod.asks}
    names = held | set(_advertised(facts))
    # A star is for profiles that nothing here names.
    patterns = {name for name in names if name.endswith("*")}
    exact = names - patterns
    missed = sorted(exact - of_gpus.keys()) + sorted(p for p in patterns if not _names_one(p, exact | of_gpus.keys()))
    if missed:
        keys = ", ".join(f"requests.{name}".replace("*", "<profile>") for name in missed)
        yield Finding(
            next(iter(of_gpus.values())).index,
            f"limits GPUs as {', '.join(sorted(of_gpus))} only, and a quota counts each name for itself, so pods take "
            f"any number of {' and '.join(missed)}; add {keys}, 0 where none is allowed",
            is_warning=True,
        )


def _names_one(pattern: str, names: Iterable[str]) -> bool:
    return any(is_among(name, [pattern]) for name in names)


def _advertised(facts: Facts) -> Iterator[str]:
    """Return the names of GPUs on the nodes, where the configuration of the plugin is known."""
    for offer in (one for provider in facts.provided for one in provider.gpu_offers):
        yield offer.sharing.gpu_resource
        yield from (offer.sharing.resource_name(name) for name in offer.sharing.resources if name.startswith(_MIG))
        if offer.mig_strategy == "mixed":
            yield f"{_MIG}*"

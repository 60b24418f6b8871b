"""Who asks for GPUs in an app, and how many pods of each there are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from gpu_constructs.annotations import VRAM, VRAM_TYPICAL
from gpu_constructs.capacity.consumer import Consumer
from gpu_constructs.capacity.demand.apart import most_per_node, placement_notes
from gpu_constructs.capacity.demand.app_objects import IMPLICIT, App
from gpu_constructs.capacity.demand.claims import PodClaims, claim_asks, pod_claims
from gpu_constructs.capacity.demand.copies import pod_groups
from gpu_constructs.capacity.demand.pod_asks import pod_asks
from gpu_constructs.capacity.demand.pod_group import PodGroup, mapping
from gpu_constructs.rules.facts import Facts, Manifest, annotations_of, namespace_of, quantity

_MEBIBYTE = 1024 * 1024
_QUEUE = "kueue.x-k8s.io/queue-name"
_NAMED = 5


@dataclass(frozen=True)
class _Holder:
    """Pods that have a claim together with others."""

    manifest: Manifest
    group: PodGroup
    containers: int
    vram: _Vram

    @property
    def pods(self) -> int:
        return 1 if self.group.is_for_each_node else self.group.copies * self.group.pods_each

    @property
    def title(self) -> str:
        return f"{self.manifest['kind']} {_name(self.manifest)}"


@dataclass(frozen=True)
class _Vram:
    """GPU memory in MiB that each container says it takes."""

    most: int | None
    typical: int | None
    notes: tuple[str, ...]


def consumers(facts: Facts) -> list[Consumer]:
    """Give everyone who asks for GPUs, in the order of ``facts.objects``.

    What makes no pods at all, as a Deployment of no replicas, is left out.
    """
    app = App(facts)
    found: list[Consumer] = []
    holders: dict[int, list[_Holder]] = {}
    for index, manifest in enumerate(facts.objects):
        for group in pod_groups(manifest, app):
            if not group.is_for_each_node and not group.copies * group.pods_each:
                continue
            vram = _vram(manifest, group)
            says_vram = vram.most is not None
            claims = pod_claims(group.spec, namespace_of(manifest), app, says_vram=says_vram)
            for claim, containers in claims.shared.items():
                holders.setdefault(claim, []).append(_Holder(manifest, group, containers, vram))
            asks = _asks(group, claims, app)
            if asks:
                found.append(_consumer(index, manifest, group, asks, claims, vram, app))
    found.extend(one for claim in holders for one in _shared(claim, holders[claim], app))
    return sorted(found, key=lambda consumer: consumer.subject)


def _asks(group: PodGroup, claims: PodClaims, app: App) -> dict[str, int]:
    given = pod_asks(group.spec, app.is_gpu) if group.asks is None else group.asks
    asks = dict(claims.asks)
    for resource, count in given.items():
        # Kubernetes makes a claim of its class for such a resource.
        name = resource.removeprefix(IMPLICIT)
        asks[name] = asks.get(name, 0) + count
    return {name: count for name, count in asks.items() if count}


def _consumer(
    index: int,
    manifest: Manifest,
    group: PodGroup,
    asks: Mapping[str, int],
    claims: PodClaims,
    vram: _Vram,
    app: App,
) -> Consumer:
    apart = most_per_node(group.spec, group.labels, namespace_of(manifest))
    notes = [
        *group.notes,
        *vram.notes,
        *claims.notes,
        *(f"it holds ResourceClaim {_name(app.facts.objects[claim])} too, wherever that is" for claim in claims.shared),
        *placement_notes(group.spec, is_apart=apart is not None),
        *_waiting_notes(manifest, group, asks, app),
    ]
    return Consumer(
        subject=index,
        kind=str(manifest["kind"]),
        namespace=namespace_of(manifest),
        name=_name(manifest),
        part=group.part,
        asks=asks,
        pod_spec=group.spec,
        labels=group.labels,
        copies=group.copies,
        least_copies=group.least_copies,
        pods_each=group.pods_each,
        surge=group.surge,
        surge_is_needed=group.surge_is_needed,
        is_gang=group.is_gang,
        is_for_each_node=group.is_for_each_node,
        most_per_node=apart,
        vram_mib=None if vram.most is None else vram.most * claims.holders,
        typical_vram_mib=None if vram.typical is None else vram.typical * claims.holders,
        notes=tuple(dict.fromkeys(notes)),
    )


def _shared(index: int, holders: list[_Holder], app: App) -> Iterator[Consumer]:
    """Give the claim that several pods have together as one consumer."""
    manifest = app.facts.objects[index]
    asks, notes = claim_asks(mapping(manifest.get("spec")), app)
    if not asks:
        return
    titles = [holder.title for holder in holders]
    named = ", ".join(titles[:_NAMED]) + (f" and {len(titles) - _NAMED} more" if titles[_NAMED:] else "")
    told = [f"{sum(holder.pods for holder in holders)} pods hold it together: those of {named}"]
    if len(holders) > 1:
        told.append(f"its node must take all of them, and only what {titles[0]} demands of a node is looked at")
    first = holders[0].group
    vram_notes = (note for holder in holders for note in holder.vram.notes)
    yield Consumer(
        subject=index,
        kind=str(manifest["kind"]),
        namespace=namespace_of(manifest),
        name=_name(manifest),
        asks=asks,
        pod_spec=first.spec,
        labels=first.labels,
        least_copies=int(any(holder.group.least_copies for holder in holders)),
        vram_mib=_sum(None if h.vram.most is None else h.vram.most * h.pods * h.containers for h in holders),
        typical_vram_mib=_sum(
            None if h.vram.typical is None else h.vram.typical * h.pods * h.containers for h in holders
        ),
        notes=tuple(dict.fromkeys([*told, *notes, *vram_notes, *placement_notes(first.spec, is_apart=False)])),
    )


def _sum(amounts: Iterable[int | None]) -> int | None:
    total = 0
    for amount in amounts:
        if amount is None:
            return None
        total += amount
    return total


def _name(manifest: Manifest) -> str:
    return str(mapping(manifest.get("metadata")).get("name"))


def _vram(manifest: Manifest, group: PodGroup) -> _Vram:
    own = annotations_of(manifest)
    found: list[int | None] = []
    notes = []
    for annotation in (VRAM, VRAM_TYPICAL):
        said = own.get(annotation, group.annotations.get(annotation))
        amount = quantity(said)
        if amount is not None and amount >= _MEBIBYTE:
            # Half a mebibyte more is one more.
            found.append(-(-int(amount) // _MEBIBYTE))
        else:
            found.append(None)
            if said is not None:
                notes.append(f"annotation {annotation} is no amount of memory: {said!r}"[:200])
    return _Vram(found[0], found[1], tuple(notes))


def _waiting_notes(manifest: Manifest, group: PodGroup, asks: Mapping[str, int], app: App) -> Iterator[str]:
    """Tell what else decides when its pods start."""
    labels = mapping(mapping(manifest.get("metadata")).get("labels"))
    queue = labels.get(_QUEUE, group.labels.get(_QUEUE))
    if queue is not None:
        yield f"when it starts is up to the queue {queue} of Kueue, whose quota is not looked at"
    counted = {f"requests.{name}" for name in asks} | {f"{name}.deviceclass.resource.k8s.io/devices" for name in asks}
    for name, hard in app.quotas.get(namespace_of(manifest), ()):
        if counted & hard:
            yield f"ResourceQuota {name} of its namespace is not looked at"

"""Who asks for GPUs in an app, and how many pods of each there are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from gpu_constructs.annotations import VRAM, VRAM_TYPICAL
from gpu_constructs.capacity.condition import Condition
from gpu_constructs.capacity.consumer import Choice, Consumer
from gpu_constructs.capacity.demand.apart import is_apart_by_revision, most_per_node, placement_notes
from gpu_constructs.capacity.demand.app_objects import IMPLICIT, App
from gpu_constructs.capacity.demand.claims import PodClaims, claim_choices, pod_claims
from gpu_constructs.capacity.demand.copies import pod_groups
from gpu_constructs.capacity.demand.pod_asks import asked, most_asked, pod_asks
from gpu_constructs.capacity.demand.pod_group import PodGroup, mapping, members
from gpu_constructs.capacity.demand.present import present
from gpu_constructs.capacity.demand.priority import priority_of
from gpu_constructs.capacity.demand.quota import device_names, quota_names, quota_shares
from gpu_constructs.pod_specs import containers
from gpu_constructs.rules.facts import Facts, Manifest, annotations_of, namespace_of, quantity
from gpu_constructs.rules.limit_range import breaches, completed

_MEBIBYTE = 1024 * 1024
_QUEUE = "kueue.x-k8s.io/queue-name"
_NAMED = 5
_STOPPED = "it is suspended, paused, gated or stopped: not counted until that is taken back"
_REVISIONS = (
    "only pods of one revision keep apart: whether an update finds a place beside the old ones is not looked at"
)
_TWICE = "it stands among the objects more than once: the first counts"


@dataclass(frozen=True)
class _Holder:
    """Pods that have a claim together with others."""

    manifest: Manifest
    group: PodGroup
    vram: _Vram

    @property
    def pods(self) -> int:
        return 1 if self.group.is_for_each_node else self.group.copies * self.group.pods_each

    @property
    def title(self) -> str:
        return f"{self.manifest['kind']} {_name(self.manifest)}"


@dataclass(frozen=True)
class _Vram:
    """Memory of each GPU in MiB that a pod says it takes."""

    most: int | None
    typical: int | None
    notes: tuple[str, ...]


def consumers(facts: Facts) -> list[Consumer]:
    """Give everyone who asks for GPUs, in the order of ``facts.objects``.

    What makes no pods at all, as a Deployment of no replicas, is left out, and so is what has ended and what another
    one of the objects has made.
    """
    app = App(facts)
    found: list[Consumer] = []
    holders: dict[int, list[_Holder]] = {}
    there = present(app)
    for index in there.indexes:
        manifest = facts.objects[index]
        for made in pod_groups(manifest, app):
            group, refused = _admitted(made, namespace_of(manifest), app)
            if not group.is_for_each_node and not group.copies * group.pods_each:
                continue
            vram = _vram(manifest, group)
            says_vram = vram.most is not None
            claims = pod_claims(group.spec, namespace_of(manifest), app, says_vram=says_vram)
            for claim in claims.shared:
                holders.setdefault(claim, []).append(_Holder(manifest, group, vram))
            choices = _choices(group, claims, app)
            if choices:
                one = replace(_consumer(index, manifest, group, choices, claims, vram, app), refused=refused)
                found.append(replace(one, notes=(*one.notes, _TWICE)) if index in there.repeated else one)
    found.extend(one for claim in holders for one in _shared(claim, holders[claim], app))
    return sorted(found, key=lambda consumer: consumer.subject)


def _admitted(group: PodGroup, namespace: str, app: App) -> tuple[PodGroup, str]:
    """Return pods as the LimitRanges of their namespace make them, and why they refuse them."""
    ranges = app.limit_ranges.get(namespace)
    if not ranges:
        return group, ""
    spec = completed(group.spec, [limit for _, limit in ranges])
    refused = next((f"LimitRange {name}: {one.text}" for name, limit in ranges for one in breaches(spec, limit)), "")
    if group.asks is not None:
        return group, refused
    before, after = ([asked(one, app.is_gpu) for one in containers(each)] for each in (group.spec, spec))
    given = [one for one, had, has in zip(containers(spec), before, after, strict=True) if had != has]
    if not given:
        return group, refused
    names = " and ".join(dict.fromkeys(name for name, _ in ranges))
    those = " and ".join(str(one.get("name")) for one in given)
    note = f"LimitRange {names} gives GPUs to containers that ask for none: {those}"
    return replace(group, spec=spec, notes=(*group.notes, note)), refused


def _choices(group: PodGroup, claims: PodClaims, app: App) -> list[Choice]:
    """Return what a pod takes of GPUs, the best first where its claims leave a choice; nothing where it takes none."""
    given = _by_class(pod_asks(group.spec, app.is_gpu) if group.asks is None else group.asks)
    found = []
    for choice in claims.choices:
        asks = {name: choice.asks.get(name, 0) + given.get(name, 0) for name in (*choice.asks, *given)}
        found.append(replace(choice, asks={name: count for name, count in asks.items() if count}))
    return found if any(one.asks for one in found) else []


def _by_class(asks: Mapping[str, int]) -> dict[str, int]:
    """Give resources for which Kubernetes makes a claim of a class by the name of that."""
    found: dict[str, int] = {}
    for resource, count in asks.items():
        name = resource.removeprefix(IMPLICIT)
        found[name] = found.get(name, 0) + count
    return found


def _most_asked(group: PodGroup, asks: Mapping[str, int], app: App) -> dict[str, int]:
    """Give the most that one container asks for, nothing where that is all."""
    most = {**asks, **_by_class(most_asked(group.spec, app.is_gpu))} if group.asks is None else {}
    return {} if most == asks else most


def _consumer(
    index: int,
    manifest: Manifest,
    group: PodGroup,
    choices: list[Choice],
    claims: PodClaims,
    vram: _Vram,
    app: App,
) -> Consumer:
    asks, namespace = choices[0].asks, namespace_of(manifest)
    apart = most_per_node(group.spec, group.labels, namespace)
    labels = mapping(mapping(manifest.get("metadata")).get("labels"))
    queue = labels.get(_QUEUE, group.labels.get(_QUEUE))
    # Kueue suspends what waits in its queues, and lets it run by itself.
    gates = ", ".join(str(gate.get("name")) for gate in members(group.spec.get("schedulingGates")))
    stopped = (group.is_stopped or bool(gates)) and queue is None
    surge = 0 if stopped else group.surge
    is_unclear = (
        apart is not None and group.surge_is_needed and is_apart_by_revision(group.spec, group.labels, namespace)
    )
    priority = priority_of(group.spec, app)
    notes = [
        *vram.notes,
        *group.notes,
        *((f"the scheduling gate {gates} holds its pods back",) if stopped and gates else ()),
        *((_STOPPED,) if stopped else ()),
        *claims.notes,
        *priority["notes"],
        *(f"it holds ResourceClaim {_name(app.facts.objects[claim])} too, wherever that is" for claim in claims.shared),
        *placement_notes(group.spec),
        *((_REVISIONS,) if is_unclear else ()),
        *_waiting_notes(queue),
    ]
    return Consumer(
        subject=index,
        kind=str(manifest["kind"]),
        namespace=namespace,
        name=_name(manifest),
        part=group.part,
        asks=asks,
        most_asked=_most_asked(group, asks, app),
        choices=_left_open(choices),
        pod_spec=group.spec,
        labels=group.labels,
        copies=group.copies,
        least_copies=0 if stopped else group.least_copies,
        pods_each=group.pods_each,
        surge=surge,
        surge_is_needed=group.surge_is_needed and surge > 0 and not is_unclear,
        surge_together=group.surge_together,
        is_gang=group.is_gang,
        starts_with=group.starts_with,
        is_stopped=stopped,
        priority=priority["priority"],
        preempts=priority["preempts"],
        is_for_each_node=group.is_for_each_node,
        most_per_node=apart,
        quotas=tuple(
            quota_shares(group.spec, {"count/pods": 1, "pods": 1, **quota_names(_at_least(choices))}, namespace, app)
        ),
        vram_mib=vram.most,
        typical_vram_mib=vram.typical,
        notes=tuple(dict.fromkeys(notes)),
    )


def _shared(index: int, holders: list[_Holder], app: App) -> Iterator[Consumer]:
    """Give the claim that several pods have together as one consumer."""
    manifest = app.facts.objects[index]
    choices, notes = claim_choices(mapping(manifest.get("spec")), app)
    if not any(one.asks for one in choices):
        return
    titles = [holder.title for holder in holders]
    named = ", ".join(titles[:_NAMED]) + (f" and {len(titles) - _NAMED} more" if titles[_NAMED:] else "")
    told = [f"{sum(holder.pods for holder in holders)} pods hold it together: those of {named}"]
    if len(holders) > 1:
        told.append(f"its node must take all of them, and only what {titles[0]} demands of a node is looked at")
    if any(holder.group.is_for_each_node for holder in holders):
        told.append("pods of a DaemonSet that hold it stay Pending on all nodes but its own")
    first = holders[0].group
    priority = priority_of(first.spec, app)
    vram_notes = (note for holder in holders for note in holder.vram.notes)
    yield Consumer(
        subject=index,
        kind=str(manifest["kind"]),
        namespace=namespace_of(manifest),
        name=_name(manifest),
        asks=choices[0].asks,
        choices=_left_open(choices),
        pod_spec=first.spec,
        labels=first.labels,
        least_copies=int(any(one.group.least_copies and not one.group.is_stopped for one in holders)),
        is_stopped=all(holder.group.is_stopped for holder in holders),
        priority=priority["priority"],
        preempts=priority["preempts"],
        quotas=tuple(quota_shares({}, device_names(_at_least(choices)), namespace_of(manifest), app)),
        vram_mib=_sum(None if h.vram.most is None else h.vram.most * h.pods for h in holders),
        typical_vram_mib=_sum(None if h.vram.typical is None else h.vram.typical * h.pods for h in holders),
        notes=tuple(dict.fromkeys([*vram_notes, *told, *notes, *placement_notes(first.spec)])),
    )


def _at_least(choices: Sequence[Choice]) -> dict[str, int]:
    """Return what is asked for whichever choice a node gives."""
    names = [name for name in choices[0].asks if all(name in one.asks for one in choices)]
    return {name: min(one.asks[name] for one in choices) for name in names}


def _left_open(choices: Sequence[Choice]) -> tuple[Choice, ...]:
    """Return choices where there are several, or where a node decides how many devices one is."""
    return tuple(choices) if choices[1:] or choices[0].takes_all else ()


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


def _waiting_notes(queue: object) -> Iterator[Condition]:
    """Return what else decides when its pods start."""
    if queue is not None:
        yield Condition(f"the queue {queue} of Kueue, whose quota is not looked at, lets it start")

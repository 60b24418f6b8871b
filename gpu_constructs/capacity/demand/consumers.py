"""The GPU workloads of an app: the pods that request GPUs, and how many of them run at the same time.

A consumer is a GPU workload as the capacity plan sees it: all pods of one object that have the same pod spec. A
ResourceClaim that several pods share is a consumer too, because its devices count only once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from gpu_constructs.capacity.consumer import Choice, Condition, Consumer, Pods
from gpu_constructs.capacity.demand.app_objects import (
    IMPLICIT,
    App,
    PodClaims,
    claim_choices,
    device_names,
    pod_claims,
    priority_of,
    quota_names,
    quota_shares,
)
from gpu_constructs.capacity.demand.copies import pod_groups
from gpu_constructs.capacity.demand.pod_group import PodGroup, asked, most_asked, pod_asks
from gpu_constructs.capacity.demand.pod_rules import is_apart_by_revision, most_per_node, placement_notes
from gpu_constructs.capacity.demand.present import present
from gpu_constructs.capacity.gathered import summed
from gpu_constructs.facts.app import Facts
from gpu_constructs.facts.limit_range import breaches, completed
from gpu_constructs.facts.readable import (
    Manifest,
    annotations_of,
    labels_of,
    mapping,
    members,
    name_of,
    namespace_of,
    quantity,
)
from gpu_constructs.kube.annotations import VRAM, VRAM_TYPICAL
from gpu_constructs.kube.pod_specs import containers
from gpu_constructs.records import dataclass, fields, replace

_MEBIBYTE = 1024 * 1024
_QUEUE = "kueue.x-k8s.io/queue-name"
_NAMED = 5
_STOPPED = (
    "the app suspends, pauses or stops it, or a scheduling gate holds the pods back: the plan does not count them"
)
_REVISIONS = (
    "the anti-affinity of the pods is only for the same revision: the plan does not check whether an update has room"
)
_WAITS = "the Kueue queue {}, whose quota the plan cannot check, lets it start"
_TWICE = "the app contains the object more than once: the plan counts only the first one"


@dataclass(frozen=True)
class _Holder:
    """Pods of one object that have the same pod spec, with the GPU memory that their annotations state."""

    index: int
    manifest: Manifest
    group: PodGroup
    vram: int | None
    typical_vram: int | None
    vram_notes: Sequence[str]

    @property
    def pods(self) -> int:
        return 1 if self.group.is_for_each_node else self.group.pods


def consumers(facts: Facts) -> list[Consumer]:
    """Return the GPU workloads of the user's app, in the order of their objects in ``facts.objects``.

    The result omits objects without pods, for example a Deployment with 0 replicas. It also omits objects that have
    ended, and objects that another object of the app creates.

    Args:
        facts: Manifests of the app, and data that the library derives from them.
    """
    app = App(facts)
    found: list[Consumer] = []
    holders: dict[int, list[_Holder]] = {}
    for index, is_repeated in present(app).items():
        for made in pod_groups(facts.objects[index], app):
            one, refused = _holder(index, made, app)
            if not one.pods:
                continue
            claims = pod_claims(one.group.spec, namespace_of(one.manifest), app, says_vram=one.vram is not None)
            for claim in claims.shared:
                holders.setdefault(claim, []).append(one)
            choices = _choices(one.group, claims, app)
            if choices:
                notes = (_TWICE,) if is_repeated else ()
                found.append(replace(_consumer(one, choices, claims, notes, app), refused=refused))
    found.extend(one for claim in holders for one in _shared(claim, holders[claim], app))
    return sorted(found, key=lambda consumer: consumer.subject)


def _holder(index: int, made: PodGroup, app: App) -> tuple[_Holder, str]:
    """Return the pods of an object, and the reason why a LimitRange rejects these pods.

    The pods include the GPU requests that LimitRanges add by default. The reason is empty if no LimitRange rejects the
    pods.

    Args:
        index: Index of the object among the objects of the app.
        made: Pods that the object creates.
        app: Objects of the app.
    """
    manifest = app.facts.objects[index]
    group, refused = _admitted(made, namespace_of(manifest), app)
    stated = {**group.annotations, **annotations_of(manifest)}
    vram = {name: _mebibytes(stated.get(name)) for name in (VRAM, VRAM_TYPICAL)}
    wrong = [name for name, mib in vram.items() if mib is None and stated.get(name) is not None]
    notes = [f"annotation {name} is not an amount of memory: {stated[name]!r}"[:200] for name in wrong]
    return _Holder(index, manifest, group, vram[VRAM], vram[VRAM_TYPICAL], notes), refused


def _mebibytes(stated_text: object) -> int | None:
    """Return an amount of memory, such as ``8Gi``, in MiB.

    Return None if the text is not an amount, or if the amount is less than 1 MiB.
    """
    amount = quantity(stated_text)
    # Round up to whole MiB.
    return None if amount is None or amount < _MEBIBYTE else -(-int(amount) // _MEBIBYTE)


def _admitted(group: PodGroup, namespace: str, app: App) -> tuple[PodGroup, str]:
    """Return the pods of ``group``, and the reason why a LimitRange rejects these pods.

    The pods include the GPU requests that LimitRanges add by default. The reason is empty if no LimitRange rejects the
    pods.
    """
    ranges = [(name_of(app.facts.objects[index]), limit) for index, limit in app.facts.limit_ranges.get(namespace, ())]
    spec = completed(group.spec, [limit for _, limit in ranges])
    refused = next((f"LimitRange {name}: {one.text}" for name, limit in ranges for one in breaches(spec, limit)), "")
    before, after = ([asked(one, app.is_gpu) for one in containers(each)] for each in (group.spec, spec))
    given = [one for one, had, has in zip(containers(spec), before, after, strict=True) if had != has]
    if group.asks is not None or not given:
        return group, refused
    names = " and ".join(dict.fromkeys(name for name, _ in ranges))
    those = " and ".join(str(one.get("name")) for one in given)
    note = f"LimitRange {names} adds GPUs to containers that request none: {those}"
    return replace(group, spec=spec, notes=(*group.notes, note)), refused


def _choices(group: PodGroup, claims: PodClaims, app: App) -> list[Choice]:
    """Return the alternative sets of devices for a pod, the preferred set first; empty if the pod requests no GPU."""
    given = _by_class(pod_asks(group.spec, app.is_gpu) if group.asks is None else group.asks)
    found = [replace(one, asks=dict(Counter(one.asks) + Counter(given))) for one in claims.choices]
    return found if any(one.asks for one in found) else []


def _by_class(asks: Mapping[str, int]) -> dict[str, int]:
    """Return the requested amounts, with the names of DRA device classes in place of their extended resources.

    For example, ``deviceclass.resource.kubernetes.io/gpu.nvidia.com`` becomes ``gpu.nvidia.com``.
    """
    return summed((resource.removeprefix(IMPLICIT), count) for resource, count in asks.items())


def _consumer(holder: _Holder, choices: list[Choice], claims: PodClaims, remarks: Sequence[str], app: App) -> Consumer:
    """Return the pods of an object as a workload of the capacity plan.

    Args:
        holder: Pods of the object.
        choices: Alternative sets of devices for each pod.
        claims: ResourceClaims of each pod.
        remarks: Assumptions about the workload that the other arguments do not contain, as sentences.
        app: Objects of the app.
    """
    group, namespace, asks = holder.group, namespace_of(holder.manifest), choices[0].asks
    apart = most_per_node(group.spec, group.labels, namespace)
    queue = labels_of(holder.manifest).get(_QUEUE, group.labels.get(_QUEUE))
    # Kueue suspends and resumes the workloads in its queues itself, so a suspended workload counts.
    gates = ", ".join(str(gate.get("name")) for gate in members(group.spec.get("schedulingGates")))
    stopped = (group.is_stopped or bool(gates)) and queue is None
    is_unclear = (
        apart is not None and group.surge_is_needed and is_apart_by_revision(group.spec, group.labels, namespace)
    )
    priority, assumed = priority_of(group.spec, app)
    notes = [
        *holder.vram_notes,
        *group.notes,
        *(_stopped_by(gates) if stopped else ()),
        *claims.notes,
        *assumed,
        *_holding(claims, app),
        *placement_notes(group.spec),
        *((_REVISIONS,) if is_unclear else ()),
        *((Condition(_WAITS.format(queue)),) if queue is not None else ()),
        *remarks,
    ]
    most = {**asks, **_by_class(most_asked(group.spec, app.is_gpu))} if group.asks is None else asks
    taken = {"count/pods": 1, "pods": 1, **quota_names(_at_least(choices))}
    return Consumer(
        **{
            **{one.name: getattr(group, one.name) for one in fields(Pods)},
            "surge_is_needed": group.surge_is_needed and group.surge > 0 and not is_unclear,
            **({"least_copies": 0, "surge": 0, "surge_is_needed": False} if stopped else {}),
            "is_stopped": stopped,
            "notes": tuple(dict.fromkeys(notes)),
        },
        **_common(holder.index, choices, app),
        **priority,
        most_asked={} if most == asks else most,
        pod_spec=group.spec,
        most_per_node=apart,
        quotas=tuple(quota_shares(group.spec, taken, namespace, app)),
        vram_mib=holder.vram,
        typical_vram_mib=holder.typical_vram,
    )


def _holding(claims: PodClaims, app: App) -> list[str]:
    """Return a note for each ResourceClaim that a pod shares with other pods.

    The note states that the pod runs on the node to which the scheduler allocated the claim.
    """
    names = [name_of(app.facts.objects[claim]) for claim in claims.shared]
    return [f"the pods also use ResourceClaim {name}, so they run on the node of that claim" for name in names]


def _stopped_by(gates: str) -> list[str]:
    """Return texts that state why the plan does not count the pods of a stopped workload.

    Args:
        gates: Names of the scheduling gates of the pods, separated by commas; empty if they have none.
    """
    return [*([f"the scheduling gate {gates} holds the pods back"] if gates else []), _STOPPED]


def _common(index: int, choices: Sequence[Choice], app: App) -> dict[str, Any]:
    """Return the arguments of ``Consumer`` that describe an object and its pods' devices, as a dict by argument name.

    Args:
        index: Index of the object among the objects of the app.
        choices: Alternative sets of devices for each pod, the preferred set first.
        app: Objects of the app.
    """
    manifest = app.facts.objects[index]
    return {
        "subject": index,
        "kind": str(manifest["kind"]),
        "namespace": namespace_of(manifest),
        "name": name_of(manifest),
        "asks": choices[0].asks,
        # With takes_all, the number of devices depends on the node, so even a single set of devices is a choice.
        "choices": tuple(choices) if choices[1:] or choices[0].takes_all else (),
    }


def _shared(index: int, holders: list[_Holder], app: App) -> Iterator[Consumer]:
    """Yield a ResourceClaim that several pods share, as one workload of the capacity plan.

    Yield nothing if the claim requests no GPU.

    Args:
        index: Index of the ResourceClaim among the objects of the app.
        holders: Pods that use the ResourceClaim.
        app: Objects of the app.
    """
    manifest = app.facts.objects[index]
    choices, notes = claim_choices(mapping(manifest.get("spec")), app)
    if not any(one.asks for one in choices):
        return
    first = holders[0].group
    vram_notes = (note for holder in holders for note in holder.vram_notes)
    remarks = [*vram_notes, *_held_by(holders), *notes, *placement_notes(first.spec)]
    yield Consumer(
        **_common(index, choices, app),
        **priority_of(first.spec, app)[0],
        pod_spec=first.spec,
        labels=first.labels,
        least_copies=int(any(one.group.least_copies and not one.group.is_stopped for one in holders)),
        is_stopped=all(holder.group.is_stopped for holder in holders),
        quotas=tuple(quota_shares({}, device_names(_at_least(choices)), namespace_of(manifest), app)),
        vram_mib=_sum((holder.vram, holder.pods) for holder in holders),
        typical_vram_mib=_sum((holder.typical_vram, holder.pods) for holder in holders),
        notes=tuple(dict.fromkeys(remarks)),
    )


def _held_by(holders: Sequence[_Holder]) -> list[str]:
    """Return notes about a ResourceClaim that the pods in ``holders`` share, for example how many pods share it."""
    titles = [f"{holder.manifest['kind']} {name_of(holder.manifest)}" for holder in holders]
    named = ", ".join(titles[:_NAMED]) + (f" and {len(titles) - _NAMED} more" if titles[_NAMED:] else "")
    notes = (
        (True, f"{sum(holder.pods for holder in holders)} pods share the claim: those of {named}"),
        (
            len(holders) > 1,
            "the node of the claim must accept all these pods, but the plan checks only the node requirements of "
            f"{titles[0]}",
        ),
        (
            any(holder.group.is_for_each_node for holder in holders),
            "pods of a DaemonSet that use the claim stay Pending on all other nodes",
        ),
    )
    return [note for holds, note in notes if holds]


def _at_least(choices: Sequence[Choice]) -> dict[str, int]:
    """Return the smallest number of devices by class in ``choices``. Omit a class that is not in every choice."""
    names = [name for name in choices[0].asks if all(name in one.asks for one in choices)]
    return {name: min(one.asks[name] for one in choices) for name in names}


def _sum(each: Iterable[tuple[int | None, int]]) -> int | None:
    """Return the GPU memory of all pods, from pairs: memory of a pod (None: not known), and number of such pods.

    Return None if the memory of some pods is not known.
    """
    amounts = [None if amount is None else amount * pods for amount, pods in each]
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if len(known) == len(amounts) else None

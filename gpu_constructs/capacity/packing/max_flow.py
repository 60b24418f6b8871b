"""The largest flow from sources to sinks that each source may use some of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gpu_constructs.capacity.packing.part import bits


@dataclass
class Flow:
    """A flow.

    Attributes:
        sent: What each source sends to each sink.
        unmet: What each source has left over.
        blocked: Sets of sources that together have more than their sinks take; empty where all is sent, the first of
            every region that is full.
        work: Sources and sinks looked at.
    """

    sent: list[dict[int, int]]
    unmet: list[int]
    blocked: list[list[int]]
    work: int


def max_flow(
    supplies: Sequence[int],
    masks: Sequence[int],
    capacities: Sequence[int],
    *,
    limit: Callable[[int, int], int] | None = None,
    most_work: int,
) -> Flow | None:
    """Send as much as possible, sources one after the other: a later one never takes anything away from an earlier.

    Args:
        supplies: What each source has.
        masks: The sinks that each source may use, as bits.
        capacities: What each sink takes.
        limit: What a source may send to a sink that it may use, at most; above 0.
        most_work: Where to give up.

    Returns:
        The flow, or None where it would take more work.
    """
    sent: list[dict[int, int]] = [{} for _ in supplies]
    unmet = [0] * len(supplies)
    blocked: list[list[int]] = []
    room = list(capacities)
    users: list[dict[int, None]] = [{} for _ in capacities]
    full = [0] * len(supplies)
    with_room = sum(1 << k for k, free in enumerate(room) if free > 0)
    dead = 0
    work = 0
    for source, need in enumerate(supplies):
        while need > 0:
            came_from: dict[int, int] = {}
            rerouted: dict[int, int] = {source: -1}
            queue = [source]
            seen = dead
            end = -1
            touches_dead = False
            for at in queue:
                touches_dead = touches_dead or bool(masks[at] & dead)
                new = masks[at] & ~seen & ~full[at]
                work += 1
                if new & with_room:
                    end = ((new & with_room) & -(new & with_room)).bit_length() - 1
                    came_from[end] = at
                    break
                seen |= new
                for k in bits(new):
                    came_from[k] = at
                    work += 1 + len(users[k])
                    for other in users[k]:
                        if other not in rerouted:
                            rerouted[other] = k
                            queue.append(other)
            if work > most_work:
                return None
            if end < 0:
                unmet[source] = need
                if not touches_dead:
                    blocked.append(sorted(rerouted))
                dead = seen
                break
            amount, k = min(need, room[end]), end
            while True:
                at = came_from[k]
                if limit:
                    amount = min(amount, limit(at, k) - sent[at].get(k, 0))
                if at == source:
                    break
                k = rerouted[at]
                amount = min(amount, sent[at][k])
            room[end] -= amount
            if not room[end]:
                with_room ^= 1 << end
            k = end
            while True:
                at = came_from[k]
                sent[at][k] = sent[at].get(k, 0) + amount
                users[k][at] = None
                if limit and sent[at].get(k, 0) >= limit(at, k):
                    full[at] |= 1 << k
                if at == source:
                    break
                k = rerouted[at]
                sent[at][k] -= amount
                full[at] &= ~(1 << k)
                if not sent[at][k]:
                    del sent[at][k], users[k][at]
            need -= amount
    return Flow(sent, unmet, blocked, work)

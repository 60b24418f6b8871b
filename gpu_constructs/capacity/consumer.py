"""Who asks for GPUs: pods that are alike, and how many of them there are at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Choice:
    """What the claims of a pod may be given.

    Attributes:
        asks: How many devices of each class; one at least of those in ``takes_all``.
        takes_all: Classes of which it takes all that a node has.
    """

    asks: Mapping[str, int]
    takes_all: frozenset[str] = frozenset()

    def wanted(self, allocatable: Mapping[str, int]) -> dict[str, int]:
        """Return what this comes to on a node that has so many of each."""
        # Beside all devices of a class there is none for another request.
        return {
            name: count + max(0, allocatable.get(name, 0) - 1) if name in self.takes_all else count
            for name, count in self.asks.items()
        }

    def on(self, allocatable: Mapping[str, int]) -> dict[str, int] | None:
        """Return the same; None where the node has too few."""
        wanted = self.wanted(allocatable)
        return wanted if all(allocatable.get(name, 0) >= count for name, count in wanted.items()) else None


@dataclass(frozen=True, kw_only=True)
class QuotaShare:
    """What each pod takes of one amount of a ResourceQuota.

    Attributes:
        quota: What the quota is called in a sentence.
        resource: The amount, as the quota names it.
        hard: The most of it that the quota admits.
        takes: How much of it each pod takes.
    """

    quota: str
    resource: str
    hard: int
    takes: int


@dataclass(frozen=True, kw_only=True)
class Consumer:
    """Pods of one pod spec that hold GPUs.

    An object has copies (the replicas of a Deployment, the trials of an Experiment, the one run of a Job), and a copy
    has pods of this spec.

    Attributes:
        subject: Index of the object among those looked at.
        kind: Of the object, as ``Deployment``.
        namespace: Of the object.
        name: Of the object.
        part: Which of its pod specs this is, as ``Worker``; empty where it has one.
        asks: Extended resources that each pod takes, by the formula of the scheduler; a device class of DRA stands
            here by its name, without a slash.
        most_asked: The most of each that one of its containers asks for; empty where that is all of it.
        choices: What it may be given instead, the best first, where there is more than one or it depends on the node;
            ``asks`` is then the first of them.
        only_on: Indexes of the nodes and pools that its pods may go to; None: any.
        pod_spec: What decides which nodes take it.
        labels: Of its pods.
        copies: How many there are when all that may run runs, without what an update adds.
        least_copies: How many of them run for as long as nobody stops them; 0 for work that ends.
        pods_each: Pods of this spec in a copy.
        surge: Pods that an update makes before it takes old ones away.
        surge_is_needed: Whether an update waits for such pods before any old one may go.
        surge_together: How many copies of these must be there at once before any old one may go: 1 of a Deployment, all
            of what is replaced as a whole.
        is_gang: Whether a copy gets nowhere before its pods run together, those of the object's other parts among them.
        starts_with: How many pods of this spec in a copy of a gang are enough to start; None: all.
        is_stopped: Whether it is suspended, paused, stopped or held by a gate: its copies run once that is taken back.
        refused: Why the API server refuses its pods; empty where it does not.
        priority: Of its pods, as their PriorityClass says; the scheduler takes lower ones away for it.
        preempts: Whether it does.
        is_for_each_node: Whether every node that takes it gets one; copies then do not count.
        most_per_node: How many of its pods a node takes at most, where it keeps them apart.
        vram_mib: What a pod takes of the memory of each GPU that it holds, at most; None where it does not say.
        typical_vram_mib: The same most of the time; None where it does not say.
        quotas: What each of its pods takes of the quotas that count it.
        notes: What was assumed about it, each a sentence without a full stop.
    """

    subject: int
    kind: str
    namespace: str
    name: str
    part: str = ""
    asks: Mapping[str, int]
    most_asked: Mapping[str, int] = field(default_factory=dict)
    choices: tuple[Choice, ...] = ()
    only_on: frozenset[int] | None = None
    pod_spec: Mapping[str, Any]
    labels: Mapping[str, Any] = field(default_factory=dict)
    copies: int = 1
    least_copies: int = 0
    pods_each: int = 1
    surge: int = 0
    surge_is_needed: bool = False
    surge_together: int = 1
    is_gang: bool = False
    starts_with: int | None = None
    is_stopped: bool = False
    refused: str = ""
    priority: int = 0
    preempts: bool = True
    is_for_each_node: bool = False
    most_per_node: int | None = None
    vram_mib: int | None = None
    typical_vram_mib: int | None = None
    quotas: tuple[QuotaShare, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def pods(self) -> int:
        """Pods when all that may run runs."""
        return self.copies * self.pods_each

    @property
    def least_pods(self) -> int:
        """Pods that run for as long as nobody stops them."""
        return self.least_copies * self.pods_each

    @property
    def title(self) -> str:
        """What it is called in a sentence."""
        part = f" {self.part}" if self.part else ""
        return f"{self.namespace}/{self.name}{part}"

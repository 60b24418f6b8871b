"""Who asks for GPUs: pods that are alike, and how many of them there are at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any


class Condition(str):
    """A note on which the verdict rests: a clause that reads after "fits, if".

    A plan with one never says that everything fits. Any other note says how something was counted.

    Attributes:
        way_out: How to make the plan sure of it.
    """

    way_out: str

    def __new__(cls, clause: str, way_out: str = "leave it where you know that it holds") -> Condition:
        """Return the clause with its way out."""
        made = super().__new__(cls, clause)
        made.way_out = way_out
        return made


@dataclass(frozen=True)
class Choice:
    """What the claims of a pod may be given.

    Attributes:
        asks: Number of devices of each class; one at least of those in ``takes_all``.
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
        """Return the same; None if the node has too few."""
        wanted = self.wanted(allocatable)
        return wanted if all(allocatable.get(name, 0) >= count for name, count in wanted.items()) else None


@dataclass(frozen=True, kw_only=True)
class QuotaShare:
    """What each pod takes of one amount of a ResourceQuota.

    Attributes:
        quota: Name of the quota in a sentence.
        resource: Name of the amount, as the quota names it.
        hard: The most of it that the quota admits.
        takes: Amount of it that each pod takes.
    """

    quota: str
    resource: str
    hard: int
    takes: int


@dataclass(frozen=True, kw_only=True)
class Pods:
    """Pods of one pod spec, and how many there are.

    An object has copies (the replicas of a Deployment, the trials of an Experiment, the one run of a Job), and a copy
    has pods of this spec. What starts or is replaced as a whole is one copy, so that its parts have as many.

    Attributes:
        part: Name of the pod spec among those of its object, as ``Worker``; empty if the object has one.
        labels: Labels of the pods.
        copies: Number of copies when all that may run runs, without what an update adds.
        least_copies: Number of copies that run until they are stopped; 0 for work that ends.
        pods_each: Number of pods of this spec in a copy.
        surge: Number of pods that an update makes before it takes old ones away.
        surge_is_needed: Whether an update waits for such pods before any old one may go.
        surge_together: Number of new copies that an update needs at once before any old one may go: 1 of a
            Deployment, all of what is replaced as a whole.
        is_gang: Whether a copy needs all its pods to run together, those of the object's other parts among them.
        starts_with: Number of pods of this spec in a copy of a gang that are enough to start; None: all.
        is_stopped: Whether it is suspended, paused, stopped or held by a gate: its copies run once that is taken back.
        is_for_each_node: Whether every node that takes it gets one; copies then do not count.
        notes: Assumptions about it, each a sentence without a full stop.
    """

    part: str = ""
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
    is_for_each_node: bool = False
    notes: tuple[str, ...] = ()

    @property
    def pods(self) -> int:
        """Number of pods when all that may run runs."""
        return self.copies * self.pods_each

    @property
    def least_pods(self) -> int:
        """Number of pods that run until they are stopped."""
        return self.least_copies * self.pods_each

    @property
    def makes_pods(self) -> bool:
        """Whether there are pods at all."""
        return self.pods > 0 or self.is_for_each_node

    @property
    def lasts(self) -> bool:
        """Whether some run until they are stopped."""
        return self.is_for_each_node or self.least_copies > 0

    @property
    def starting(self) -> int:
        """Number of pods that must have a place before any of them gets on: of a gang several."""
        if not self.is_gang:
            return 1
        return self.pods_each if self.starts_with is None else min(self.starts_with, self.pods_each)

    @property
    def updating(self) -> int:
        """Number of new pods that an update must find a place for at once, before any old one goes."""
        return self.surge_together * self.starting if self.surge and self.surge_is_needed else 0


@dataclass(frozen=True, kw_only=True)
class Consumer(Pods):
    """Pods of one pod spec that hold GPUs.

    Attributes:
        subject: Index of the object among those looked at.
        kind: Kind of the object, as ``Deployment``.
        namespace: Namespace of the object.
        name: Name of the object.
        asks: Extended resources that each pod takes, by the formula of the scheduler; a device class of DRA stands
            here by its name, without a slash.
        most_asked: The most of each that one container of a pod asks for; empty if that is all of it.
        choices: Devices that it may be given instead, the best first, if there is more than one choice or it depends
            on the node; ``asks`` is then the first of them.
        only_on: Indexes of the nodes and pools that its pods may go to; None: any.
        pod_spec: Pod spec, which decides which nodes take it.
        refused: Reason why the API server refuses its pods; empty if it does not.
        priority: Priority of its pods, as their PriorityClass says; the scheduler takes lower ones away for it.
        preempts: Whether the scheduler does so.
        most_per_node: Number of its pods that a node takes at most, if they keep apart.
        vram_mib: Memory that a pod takes of each GPU that it holds, at most; None if it does not say.
        typical_vram_mib: Memory that it takes most of the time; None if it does not say.
        quotas: Shares of the quotas that count its pods.
    """

    subject: int
    kind: str
    namespace: str
    name: str
    asks: Mapping[str, int]
    most_asked: Mapping[str, int] = field(default_factory=dict)
    choices: tuple[Choice, ...] = ()
    only_on: frozenset[int] | None = None
    pod_spec: Mapping[str, Any]
    refused: str = ""
    priority: int = 0
    preempts: bool = True
    most_per_node: int | None = None
    vram_mib: int | None = None
    typical_vram_mib: int | None = None
    quotas: tuple[QuotaShare, ...] = ()

    @property
    def title(self) -> str:
        """Name of it in a sentence."""
        part = f" {self.part}" if self.part else ""
        return f"{self.namespace}/{self.name}{part}"

    @property
    def most_on_node(self) -> int:
        """Number of pods that a node may have, those that an update adds among them."""
        if self.is_for_each_node:
            return 1 + self.surge
        pods = self.pods + self.surge if self.pods else 0
        return pods if self.most_per_node is None else min(pods, self.most_per_node)

    @property
    def usual_vram_mib(self) -> int | None:
        """Memory that a pod usually takes of each GPU: as much as at most, if only that is stated."""
        return self.vram_mib if self.typical_vram_mib is None else self.typical_vram_mib

    def as_it_runs(self) -> Consumer:
        """Return the consumer, without pods if it is stopped."""
        if not self.is_stopped:
            return self
        return replace(self, copies=0, least_copies=0, surge=0, is_for_each_node=False)

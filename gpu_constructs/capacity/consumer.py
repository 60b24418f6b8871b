"""Consumers: workloads as the plan sees them.

A consumer is a set of equal pods of one object, all with the same GPU request. An object with several pod specs, such
as a RayCluster, has one consumer for each of them. Pods of a Deployment are long-running: they run until someone
deletes them. Pods of a Job end by themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpu_constructs.records import dataclass, field, replace


class Condition(str):
    """An assumption that the plan cannot check, and on which its answers depend, for example a label of a node.

    The text is a clause that follows "fits, if". A plan with a condition never states that everything fits. Notes of
    the type ``str`` do not have this effect.

    Attributes:
        way_out: Instruction after which the plan no longer depends on the condition.
    """

    way_out: str

    def __new__(cls, clause: str, way_out: str = "ignore this if you know that the condition is true") -> Condition:
        """Return a condition with the text ``clause`` and the attribute ``way_out``."""
        made = super().__new__(cls, clause)
        made.way_out = way_out
        return made


@dataclass(frozen=True)
class Choice:
    """One of several alternative sets of devices in the ResourceClaims of a pod.

    Attributes:
        asks: Number of devices of each DRA device class that the claims request; at least 1 for the classes in
            ``takes_all``.
        takes_all: Device classes of which the claims take all devices of a node (``allocationMode: All``).
    """

    asks: Mapping[str, int]
    takes_all: frozenset[str] = frozenset()

    def wanted(self, allocatable: Mapping[str, int]) -> dict[str, int]:
        """Return the number of devices of each device class that the claims take on a node.

        Args:
            allocatable: Number of devices of each device class that the node has.
        """
        # A claim that takes all devices of a class leaves none for a second request of the pod, which then never fits.
        return {
            name: count + max(0, allocatable.get(name, 0) - 1) if name in self.takes_all else count
            for name, count in self.asks.items()
        }

    def on(self, allocatable: Mapping[str, int]) -> dict[str, int] | None:
        """Return the number of devices of each device class that the claims take on a node.

        Return None if the node has too few devices.

        Args:
            allocatable: Number of devices of each device class that the node has.
        """
        wanted = self.wanted(allocatable)
        return wanted if all(allocatable.get(name, 0) >= count for name, count in wanted.items()) else None


@dataclass(frozen=True, kw_only=True)
class QuotaShare:
    """The part of one limit in a ResourceQuota that each pod of a workload uses.

    Attributes:
        quota: Phrase that names the ResourceQuota in messages.
        resource: Name of the limited amount in the quota, such as ``requests.nvidia.com/gpu``.
        hard: Limit of the quota for this amount.
        takes: Amount that each pod uses.
    """

    quota: str
    resource: str
    hard: int
    takes: int


@dataclass(frozen=True, kw_only=True)
class Pods:
    """The pods of one pod spec, and how many of them exist.

    An object has copies, for example the replicas of a Deployment or the trials of an Experiment. Pods that start
    together, or that a controller replaces together, form one copy. A gang is a copy whose pods must all run at the
    same time, for example the workers of a training.

    Attributes:
        part: Name of the pod spec in its object, such as ``Worker``; empty if the object has only one pod spec.
        labels: Labels of the pods.
        copies: Number of copies when all pods run. It does not include the copies that an update adds.
        least_copies: Number of copies that run until someone deletes them; 0 for work that ends, such as a Job.
        pods_each: Number of pods of this spec in a copy.
        surge: Number of pods that an update creates before it deletes old pods.
        surge_is_needed: Whether an update must wait until these new pods run before it deletes an old pod.
        surge_together: Number of new copies that must run before an update deletes an old pod. It is 1 for a
            Deployment, and the number of all copies if a controller replaces them as a whole.
        is_gang: Whether all pods of a copy must run at the same time, including pods of the object's other pod specs.
        starts_with: Smallest number of pods of this spec with which a gang starts; None means every pod.
        is_stopped: Whether a suspension, a pause or a scheduling gate keeps the pods from running now.
        is_for_each_node: Whether every node that accepts the pod gets one, as for a DaemonSet. If True, the plan
            ignores ``copies``.
        notes: Assumptions about the pods, each a sentence without a period.
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
        """Number of pods when all copies of the object run, for example all replicas."""
        return self.copies * self.pods_each

    @property
    def least_pods(self) -> int:
        """Number of pods that run until someone deletes them."""
        return self.least_copies * self.pods_each

    @property
    def makes_pods(self) -> bool:
        """Whether the object creates any pods."""
        return self.pods > 0 or self.is_for_each_node

    @property
    def lasts(self) -> bool:
        """Whether some pods are long-running: they run until someone deletes them."""
        return self.is_for_each_node or self.least_copies > 0

    @property
    def starting(self) -> int:
        """Number of pods that must have room before the first of them starts: 1, or more for a gang."""
        if not self.is_gang:
            return 1
        return self.pods_each if self.starts_with is None else min(self.starts_with, self.pods_each)

    @property
    def updating(self) -> int:
        """Number of new pods that must all have room before an update deletes an old pod."""
        return self.surge_together * self.starting if self.surge and self.surge_is_needed else 0


@dataclass(frozen=True, kw_only=True)
class Consumer(Pods):
    """A workload as the plan sees it: equal pods of one object that request GPUs.

    Attributes:
        subject: Index of the object among the objects of the app.
        kind: Kind of the object, such as ``Deployment``.
        namespace: Namespace of the object.
        name: Name of the object.
        asks: Amount of each extended resource that the scheduler reserves for a pod. For DRA, the key is the name of a
            device class, which has no slash, and the value is the number of its devices.
        most_asked: Largest amount of each resource that one container requests; empty if ``asks`` has the same amounts.
        choices: Alternative sets of devices that the pod's claims list, the preferred set first; empty if there is no
            alternative. If there are alternatives, ``asks`` is the first of them.
        only_on: Indices (in the inventory) of the nodes and pools that the pods can use. None means all.
        pod_spec: Pod spec, which decides which nodes accept the pods.
        refused: Reason why the API server rejects the pods; empty if it accepts them.
        priority: Priority of the pods from their PriorityClass. The scheduler evicts pods of lower priority for them.
        preempts: Whether the scheduler evicts other pods to make room for these pods.
        most_per_node: Largest number of these pods on one node, if their rules limit it; otherwise None.
        vram_mib: Largest GPU memory in MiB that a pod takes on each of its GPUs; None if the pod states no memory.
        typical_vram_mib: Usual GPU memory in MiB that a pod takes on each of its GPUs; None if the pod states no usual
            memory.
        quotas: Amount of each ResourceQuota that a pod uses.
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
        """Name of the workload in a sentence: namespace, name and, if there are several, the pod spec."""
        part = f" {self.part}" if self.part else ""
        return f"{self.namespace}/{self.name}{part}"

    @property
    def most_on_node(self) -> int:
        """Largest number of pods on one node, including those that an update adds."""
        if self.is_for_each_node:
            return 1 + self.surge
        pods = self.pods + self.surge if self.pods else 0
        return pods if self.most_per_node is None else min(pods, self.most_per_node)

    @property
    def usual_vram_mib(self) -> int | None:
        """GPU memory in MiB that a pod usually takes on each GPU. Default: the largest memory of the pod."""
        return self.vram_mib if self.typical_vram_mib is None else self.typical_vram_mib

    def as_it_runs(self) -> Consumer:
        """Return a copy of the workload with only the pods that run now: none if ``is_stopped`` is True."""
        if not self.is_stopped:
            return self
        return replace(self, copies=0, least_copies=0, surge=0, is_for_each_node=False)

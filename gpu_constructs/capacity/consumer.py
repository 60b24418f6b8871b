"""Consumers: workloads whose pods request GPUs, as the capacity plan sees them.

A consumer is a set of equal pods of one object, all with the same GPU request. An object with several pod specs, such
as a RayCluster, has one consumer for each pod spec. Pods of a Deployment are long-running: they run until someone
deletes them. Pods of a Job end by themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpu_constructs.records import dataclass, field, replace


class Condition(str):
    """An assumption that the capacity plan cannot check, and on which the answers of the plan depend.

    The text is a clause that completes the sentence "it fits, if …", for example "a device of class example.com is free
    for the pod". A condition changes the answer "yes" of the plan to "conditional". An assumption that is a plain
    ``str`` changes no answer.

    Attributes:
        way_out: Instruction for the user. If the user follows it, the plan no longer depends on the condition.
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
        asks: Number of devices that the claims request, by DRA device class. A request for all devices of a class
            counts as 1 here.
        takes_all: Device classes of which the claims take all devices of a node (``allocationMode: All``).
    """

    asks: Mapping[str, int]
    takes_all: frozenset[str] = frozenset()

    def wanted(self, allocatable: Mapping[str, int]) -> dict[str, int]:
        """Return the number of devices that a pod needs on a node if its claims use this alternative, by device class.

        If a claim takes all devices of a class (``takes_all``), the number includes all these devices of the node. A
        second request for this class then makes the number larger than the node has, so the pod does not fit.

        Args:
            allocatable: Number of devices that the node has, by DRA device class.

        Returns:
            A dict from DRA device class to number of devices, for example ``{"gpu.nvidia.com": 2}``.
        """
        # A claim that takes all devices of a class leaves none for a second request of the pod, which then never fits.
        return {
            name: count + max(0, allocatable.get(name, 0) - 1) if name in self.takes_all else count
            for name, count in self.asks.items()
        }

    def on(self, allocatable: Mapping[str, int]) -> dict[str, int] | None:
        """Return the devices that a pod takes on a node if its claims use this alternative, as a dict by device class.

        Return None if the node has fewer devices than the pod needs.

        Args:
            allocatable: Number of devices that the node has, by DRA device class.
        """
        wanted = self.wanted(allocatable)
        return wanted if all(allocatable.get(name, 0) >= count for name, count in wanted.items()) else None


@dataclass(frozen=True, kw_only=True)
class QuotaShare:
    """The part of one limit in a ResourceQuota that each pod of a workload uses.

    Attributes:
        quota: Name of the ResourceQuota in messages, for example ``ResourceQuota default/gpus``.
        resource: Key of the limit in the ResourceQuota, such as ``requests.nvidia.com/gpu``.
        hard: Limit of the ResourceQuota for this key.
        takes: Amount of the limit that each pod uses.
    """

    quota: str
    resource: str
    hard: int
    takes: int


@dataclass(frozen=True, kw_only=True)
class Pods:
    """The pods of one pod spec, and how many of them exist.

    An object has copies, for example the replicas of a Deployment or the trials of an Experiment. Pods that start
    together, or that a controller replaces together, form one copy. A gang is a copy that starts only if enough of its
    pods have room, for example the workers of a training.

    Attributes:
        part: Name of the pod spec in its object, such as ``Worker``; empty if the object has only one pod spec.
        labels: Labels of the pods.
        copies: Number of copies when all pods run. It does not include the copies that an update adds.
        least_copies: Number of copies that run until someone deletes them; 0 for work that ends, such as a Job.
        pods_each: Number of pods of this spec in a copy.
        surge: Number of extra pods of this spec during an update.
        surge_is_needed: Whether an update deletes an old pod only after new pods run. If False, an update can delete an
            old pod first.
        surge_together: Number of new copies that must run before an update deletes an old pod, if ``surge_is_needed``
            is True. The number is 1 for a Deployment. If a controller replaces all copies as a whole, the number is
            that of all copies.
        is_gang: Whether each copy is a gang. The pods of the object's other pod specs can belong to the gang too.
        starts_with: Number of pods of this spec that must have room before a gang starts; None means all these pods.
        is_stopped: Whether a suspension, a pause or a scheduling gate keeps the pods from running now.
        is_for_each_node: Whether every node that accepts the pod gets one, as for a DaemonSet. If True, the capacity
            plan ignores ``copies``.
        notes: Assumptions about the pods, each a sentence without a period, or a ``Condition``.
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
        """Whether the object with this pod spec creates any pods."""
        return self.pods > 0 or self.is_for_each_node

    @property
    def lasts(self) -> bool:
        """Whether some pods are long-running: they run until someone deletes them."""
        return self.is_for_each_node or self.least_copies > 0

    @property
    def starting(self) -> int:
        """Number of pods that must have room before the first pod starts.

        The number is 1 for pods that start one by one. For a gang, the attribute ``starts_with`` determines the number.
        """
        if not self.is_gang:
            return 1
        return self.pods_each if self.starts_with is None else min(self.starts_with, self.pods_each)

    @property
    def updating(self) -> int:
        """Number of new pods that must all have room before an update deletes an old pod.

        The number is 0 if the update can delete an old pod before its new pods run.
        """
        return self.surge_together * self.starting if self.surge and self.surge_is_needed else 0


@dataclass(frozen=True, kw_only=True)
class Consumer(Pods):
    """A workload as the capacity plan sees it: equal pods of one object that request GPUs.

    Attributes:
        subject: Index of the object among the objects of the app.
        kind: Kind of the object, such as ``Deployment``.
        namespace: Namespace of the object.
        name: Name of the object.
        asks: Amount of each extended resource that the scheduler reserves for a pod. For DRA, the key is the name of a
            device class, which has no slash, and the value is the number of its devices.
        most_asked: Largest amount of each resource that one container requests; empty if ``asks`` has the same amounts.
        choices: Alternative sets of devices that the pod's claims list, the preferred set first; empty if there is no
            alternative. If there are alternatives, ``asks`` contains the devices of the first.
        only_on: Indices (in the inventory) of the nodes and pools that the pods can use. None means all.
        pod_spec: Pod spec, which decides which nodes accept the pods.
        refused: Reason why the API server rejects the pods; empty if it accepts them.
        priority: Priority of the pods, for example from their PriorityClass; 0 if it is not known.
        preempts: Whether the scheduler evicts pods of lower priority to make room for these pods.
        most_per_node: Largest number of these pods on one node, if rules such as anti-affinity limit this number;
            otherwise None.
        vram_mib: Largest GPU memory in MiB that a pod takes on each of its GPUs; None if the pod states no memory.
        typical_vram_mib: Usual GPU memory in MiB that a pod takes on each of its GPUs; None if the pod states no usual
            memory.
        quotas: Limits of the ResourceQuotas that count the pods, each with the amount that one pod uses.
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
        """Name of the workload in messages, such as ``default/llm``: namespace and name of its object.

        If the object has several pod specs, the name of the pod spec follows, for example ``default/trainer Worker``.
        """
        part = f" {self.part}" if self.part else ""
        return f"{self.namespace}/{self.name}{part}"

    @property
    def most_on_node(self) -> int:
        """Largest number of pods of the workload on one node, including the pods that an update adds."""
        if self.is_for_each_node:
            return 1 + self.surge
        pods = self.pods + self.surge if self.pods else 0
        return pods if self.most_per_node is None else min(pods, self.most_per_node)

    @property
    def usual_vram_mib(self) -> int | None:
        """GPU memory in MiB that a pod usually takes on each GPU.

        This is ``typical_vram_mib`` if the pod states this amount; otherwise ``vram_mib``.
        """
        return self.vram_mib if self.typical_vram_mib is None else self.typical_vram_mib

    def as_it_runs(self) -> Consumer:
        """Return a copy of the workload with only the pods that run now: none if ``is_stopped`` is True."""
        if not self.is_stopped:
            return self
        return replace(self, copies=0, least_copies=0, surge=0, is_for_each_node=False)

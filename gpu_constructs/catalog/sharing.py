"""How the pods of a node share its GPUs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Literal

from gpu_constructs.errors import GpuConstructsError, ShortErrors, refuse_if, short_errors, warn
from gpu_constructs.kube import fields

GPU = "nvidia.com/gpu"
"""The resource of whole GPUs, and of MIG devices under the strategy ``single``."""

_SHARED_SUFFIX = ".shared"
_LONGEST_NAME = 63
_MIG_DEVICE = re.compile(r"nvidia\.com/mig-[0-9]+g\.[0-9]+gb(?:[.-][a-z]+)*\Z")
_MEBIBYTE = 1024 * 1024
# NVIDIA/k8s-device-plugin@v0.20.0:internal/rm/allocate.go looks at every free slot for each slot it hands out: a
# thousand of them are a moment, sixteen thousand half a minute.
_MANY_UNITS = 1024
# A slot of a GPU on NUMA node 1 or later takes 66 bytes of the list that the plugin sends to the kubelet, which reads
# 4 MiB of it at most, the default of gRPC (observed with 0.20.0: 65,536 slots are 4,314,266 bytes).
MOST_SLOTS = 63_550
_MOST_REPLICAS = {
    "time-slicing": (MOST_SLOTS, "the kubelet does not read a longer list of slots from the plugin"),
    "mps": (
        48,
        "MPS serves 48 clients of a GPU (16 below compute capability 7.5); use Sharing.time_slicing for more",
    ),
}
"""The most slots of a device by strategy, and what to say about more."""


@dataclass(frozen=True, kw_only=True)
class Sharing(metaclass=ShortErrors):
    """How many pods may hold one GPU: ``Sharing.none()``, ``.time_slicing()``, ``.vram_units()`` or ``.mps()``.

    Attributes:
        strategy: ``none``, ``time-slicing`` or ``mps``.
        resources: Slots that each device of a resource is advertised as; empty without sharing.
        fail_requests_greater_than_one: Whether a container that asks for more than one slot is refused.
        rename_by_default: Whether slots are advertised under the resource's name with ``.shared`` behind it.
        vram_unit: The memory that each slot stands for, where slots count memory (``1Gi``). None: they count turns. The
            plugin does not know of it.

    Raises:
        GpuConstructsError: A resource that the plugin does not advertise, fewer than 2 slots, more than 48
            under MPS, MIG devices under MPS, a unit of memory with anything but time-slicing of whole GPUs.
    """

    strategy: Literal["none", "time-slicing", "mps"]
    resources: Mapping[str, int] = field(default_factory=dict)
    fail_requests_greater_than_one: bool = False
    rename_by_default: bool = False
    vram_unit: str | None = None

    def __post_init__(self) -> None:
        fields.one_of("sharing.strategy", self.strategy, ("none", "time-slicing", "mps"))
        name = f"sharing.{self.strategy.replace('-', '_')}"
        fields.of_type(f"{name}.fail_requests_greater_than_one", self.fail_requests_greater_than_one, bool)
        fields.of_type(f"{name}.rename_by_default", self.rename_by_default, bool)
        is_shared = self.strategy != "none"
        further = (self.resources, self.fail_requests_greater_than_one, self.rename_by_default)
        fields.refuse_first(
            (
                (
                    self.vram_unit is not None and self.strategy != "time-slicing",
                    f"sharing.vram_unit needs the strategy 'time-slicing', got {self.strategy!r}; use "
                    "Sharing.vram_units",
                ),
                (
                    not is_shared and further != ({}, False, False),
                    "sharing without a strategy takes nothing else; use Sharing.none()",
                ),
                (
                    is_shared and not (isinstance(self.resources, Mapping) and self.resources),
                    f"{name}.resources must name what is shared, like {{{GPU!r}: 4}}; got {self.resources!r}; "
                    "use Sharing.none() for exclusive GPUs",
                ),
            )
        )
        object.__setattr__(self, "resources", dict(self.resources))
        for resource, replicas in self.resources.items():
            fields.refuse_first(self._conflicts_of(f"{name}.resources", resource))
            self._check_replicas(name, resource, replicas)
        if self.vram_unit is not None:
            _check_mebibytes("sharing.vram_unit", self.vram_unit)
            fields.refuse_first(self._conflicts_of_units(name))

    def _conflicts_of_units(self, name: str) -> Iterable[fields.Conflict]:
        yield (
            list(self.resources) != [GPU],
            f"{name}.resources must be {GPU!r} alone with vram_unit, since a node with MIG devices has several "
            f"memories; got {', '.join(map(repr, self.resources))}",
        )
        yield (
            self.fail_requests_greater_than_one,
            f"{name}.fail_requests_greater_than_one must be False with vram_unit, where a container asks for as "
            "many slots as it takes memory; leave it out",
        )

    def _conflicts_of(self, where: str, resource: object) -> Iterable[fields.Conflict]:
        # To look for a near one takes long.
        if not isinstance(resource, str) or (resource != GPU and not _MIG_DEVICE.match(resource)):
            near = fields.did_you_mean(resource, (GPU, "nvidia.com/mig-1g.5gb"))
            yield (
                True,
                f"{where} must hold {GPU!r} or MIG devices like 'nvidia.com/mig-1g.5gb', which are all the plugin "
                f"advertises; got {resource!r}{near}",
            )
        yield (
            resource != GPU and self.strategy == "mps",
            f"{where} must be {GPU!r}: MPS does not share MIG devices; got {resource!r}; "
            "use Sharing.time_slicing for them",
        )
        added = _SHARED_SUFFIX if self.rename_by_default else ""
        why = f" with rename_by_default, which adds {added!r}" if added else ""
        longest = _LONGEST_NAME - len(added)
        yield (
            len(str(resource)) > longest,
            f"{where} must have names of at most {longest} characters{why}; got {resource!r}",
        )

    def _check_replicas(self, name: str, resource: str, replicas: object) -> None:
        most, why = _MOST_REPLICAS[self.strategy]
        way_out = why if isinstance(replicas, int) and replicas > most else "use Sharing.none() for exclusive GPUs"
        where = f"{name}.replicas" if resource == GPU else f"{name}.resources[{resource!r}]"
        fields.whole_number(where, replicas, minimum=2, maximum=most, way_out=way_out)

    @classmethod
    @short_errors
    def none(cls) -> Sharing:
        """Return each GPU to one container at a time."""
        return cls(strategy="none")

    @classmethod
    @short_errors
    def time_slicing(
        cls,
        *,
        replicas: int | None = None,
        resources: Mapping[str, int] | None = None,
        fail_requests_greater_than_one: bool = True,
        rename_by_default: bool = False,
    ) -> Sharing:
        """Let containers take turns on each GPU. Memory is neither divided nor protected.

        A node advertises GPUs times replicas. Two slots may be two turns on one GPU: they are never more
        GPU than one slot.

        Args:
            replicas: Slots for each GPU, 2 or more; short for ``resources={"nvidia.com/gpu": replicas}``.
            resources: Slots for each device of a resource, for MIG devices (``nvidia.com/mig-1g.5gb``, with
                the MIG strategy ``mixed``) or several resources.
            fail_requests_greater_than_one: Refuse containers that ask for several slots. The plugin's own
                default is False; ours is True because such a request is always a misunderstanding.
            rename_by_default: Advertise ``nvidia.com/gpu.shared`` instead of ``nvidia.com/gpu``.

        Raises:
            GpuConstructsError: Both or neither of replicas and resources, a number of slots that is not an int
                from 2 to 63550, a resource that the plugin does not advertise.

        Source:
            NVIDIA/k8s-device-plugin@v0.20.0:README.md, "Shared Access to GPUs"
        """
        return cls(
            strategy="time-slicing",
            resources=_slots("sharing.time_slicing", replicas, resources),
            fail_requests_greater_than_one=fail_requests_greater_than_one,
            rename_by_default=rename_by_default,
        )

    @classmethod
    @short_errors
    def vram_units(cls, *, vram: str, unit: str = "1Gi", rename_by_default: bool = False) -> Sharing:
        """Let containers take turns on a GPU, and let the scheduler add up their memory.

        A GPU is advertised as ``vram / unit`` slots, rounded down, and ``GpuRequest(vram="8Gi")`` asks for as many as
        it takes, rounded up: what does not fit beside the others waits as Pending. Nothing holds a pod to what it
        asked for once it runs. Right only where every node has one GPU: of several the plugin may give a pod slots
        of two, and it sees both.

        Args:
            vram: Memory of the GPU, less what shall stay free (``16303Mi``, as ``nvidia-smi`` shows it).
            unit: Memory that a slot stands for, in whole MiB.
            rename_by_default: Advertise ``nvidia.com/gpu.shared`` instead of ``nvidia.com/gpu``: what asks for
                ``nvidia.com/gpu`` and means a whole GPU then gets none.

        Raises:
            GpuConstructsError: An amount that is none, a unit that is more than half the memory, or so small that
                there are more than 63550 slots.

        Source:
            NVIDIA/k8s-device-plugin@v0.20.0:internal/rm/allocate.go, internal/plugin/server.go
        """
        _check_mebibytes("sharing.vram_units.unit", unit)
        fields.of_type("sharing.vram_units.vram", vram, str)
        fields.size("sharing.vram_units.vram", vram)
        replicas = int(fields.amount(vram) // fields.amount(unit))
        if replicas < 2:
            raise GpuConstructsError(
                f"sharing.vram_units.vram must be at least two units of {unit!r}; got {vram!r}; take a smaller unit, "
                "or use Sharing.none() for exclusive GPUs"
            )
        if replicas > MOST_SLOTS:
            raise GpuConstructsError(
                f"sharing.vram_units.unit must give at most {MOST_SLOTS} slots, more than which the kubelet does not "
                f"read from the plugin; got {unit!r}, {replicas} of {vram!r}; take a larger unit"
            )
        if replicas > _MANY_UNITS:
            warn(
                f"sharing.vram_units makes {replicas} slots of {unit!r} of each GPU, and the plugin looks at all that "
                "are free for each one that it hands out, so large pods start late; take a larger unit"
            )
        return cls(
            strategy="time-slicing",
            resources={GPU: replicas},
            rename_by_default=rename_by_default,
            vram_unit=unit,
        )

    @classmethod
    @short_errors
    def mps(
        cls,
        *,
        replicas: int,
        fail_requests_greater_than_one: bool = True,
        rename_by_default: bool = False,
    ) -> Sharing:
        """Let containers use each GPU at once through the Multi-Process Service (MPS).

        Each slot gets its part of the GPU's memory and threads. The chart adds the MPS control daemon, a
        privileged pod on every node that shares this way; it puts the GPUs into the compute mode
        ``EXCLUSIVE_PROCESS``. A workload gets the daemon's ``/dev/shm``, so it must not mount its own.

        Args:
            replicas: Slots for each GPU, 2 to 48 (16 at most on GPUs before compute capability 7.5).
            fail_requests_greater_than_one: Refuse containers that ask for several slots. True in the plugin
                too; only releases from 0.20.0 can be told otherwise.
            rename_by_default: Advertise ``nvidia.com/gpu.shared`` instead of ``nvidia.com/gpu``.

        Raises:
            GpuConstructsError: Replicas is not an int from 2 to 48.

        Source:
            NVIDIA/k8s-device-plugin@v0.20.0:cmd/mps-control-daemon/mps/device.go, README.md "With CUDA MPS"
        """
        return cls(
            strategy="mps",
            resources={GPU: replicas},
            fail_requests_greater_than_one=fail_requests_greater_than_one,
            rename_by_default=rename_by_default,
        )

    @property
    def replicas(self) -> int:
        """How many slots each whole GPU is advertised as; 1 when it is not shared."""
        return self.resources.get(GPU, 1)

    @property
    def vram_unit_mib(self) -> int | None:
        """The memory that each slot stands for in MiB; None where slots count turns."""
        return None if self.vram_unit is None else int(fields.amount(self.vram_unit) // _MEBIBYTE)

    @short_errors
    def units(self, vram: str) -> int:
        """Return how many slots a container asks for that takes so much memory.

        Args:
            vram: What it takes, as a quantity; part of a unit counts as a whole one.

        Raises:
            GpuConstructsError: Slots count turns here, an amount that is none, or more than a GPU has.
        """
        if self.vram_unit is None:
            raise GpuConstructsError(
                f"units are of Sharing.vram_units alone; got a sharing of strategy {self.strategy!r}"
            )
        fields.of_type("vram", vram, str)
        fields.quantity("vram", vram)
        amount = fields.amount(vram)
        refuse_if(amount < _MEBIBYTE, "vram", "be at least 1Mi", vram, way_out="write the unit, as in '8Gi'")
        units = ceil(amount / fields.amount(self.vram_unit))
        if units > self.replicas:
            raise GpuConstructsError(
                f"vram must be at most {self.replicas} units of {self.vram_unit}, which is all that is handed out of a "
                f"GPU; got {vram!r}, which is {units}; take less, or a larger GPU"
            )
        return units

    @property
    def gpu_resource(self) -> str:
        """The resource name that a container asks for under this sharing."""
        return self.resource_name(GPU)

    def resource_name(self, resource: str) -> str:
        """The name under which a resource is advertised with this sharing."""
        return resource + _SHARED_SUFFIX if self.rename_by_default and resource in self.resources else resource


def _check_mebibytes(field: str, given: str) -> None:
    fields.of_type(field, given, str)
    fields.quantity(field, given)
    amount = fields.amount(given)
    if amount < _MEBIBYTE or amount % _MEBIBYTE:
        raise GpuConstructsError(f"{field} must be whole MiB, at least one; got {given!r}; write '1Gi' or '512Mi'")


def _slots(name: str, replicas: int | None, resources: Mapping[str, int] | None) -> Mapping[str, int]:
    if (replicas is None) == (resources is None):
        got = "neither" if replicas is None else "both"
        raise GpuConstructsError(f"{name} takes either replicas or resources; got {got}")
    return {GPU: replicas} if replicas is not None else resources or {}

"""Sharing of GPUs between pods: time-slicing, time-slicing with memory units, and MPS.

A slot is one unit of an extended resource, such as ``nvidia.com/gpu``, that a node advertises. With sharing, a node
advertises several slots for each GPU.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import ceil
from typing import Literal

from gpu_constructs.errors import GpuConstructsError, ShortErrors, refuse_if, short_errors, warn
from gpu_constructs.kube import fields
from gpu_constructs.records import dataclass, field, regex

GPU = "nvidia.com/gpu"
"""Name of the extended resource for whole GPUs. With the MIG strategy ``single``, it is also for MIG devices."""

_SHARED_SUFFIX = ".shared"
_LONGEST_NAME = 63
_MIG_DEVICE = regex(r"nvidia\.com/mig-[0-9]+g\.[0-9]+gb(?:[.-][a-z]+)*\Z")
_MEBIBYTE = 1024 * 1024
# NVIDIA/k8s-device-plugin@v0.20.0:internal/rm/allocate.go iterates over all free slots for each slot that it allocates.
# A thousand slots take an instant, sixteen thousand take half a minute.
_MANY_UNITS = 1024
# In the list that the plugin sends to the kubelet, a slot of a GPU on NUMA node 1 or later takes 66 bytes. The kubelet
# reads at most 4 MiB, the default of gRPC. A measurement with 0.20.0: 65,536 slots take 4,314,266 bytes.
MOST_SLOTS = 63_550
_MOST_REPLICAS = {
    "time-slicing": (MOST_SLOTS, "the kubelet does not read a longer list of slots from the plugin"),
    "mps": (
        48,
        "MPS serves 48 clients of a GPU (16 below compute capability 7.5). Use Sharing.time_slicing for more",
    ),
}
"""Largest number of slots of a device by sharing strategy, and the reason for this limit in messages."""


@dataclass(frozen=True, kw_only=True)
class Sharing(metaclass=ShortErrors):
    """The sharing of GPUs between pods, with the settings of the NVIDIA device plugin.

    Create an instance with ``Sharing.none``, ``Sharing.time_slicing``, ``Sharing.vram_units`` or ``Sharing.mps``. A
    slot is one unit of an extended resource, such as ``nvidia.com/gpu``, that a node advertises.

    Attributes:
        strategy: Sharing strategy: ``none``, ``time-slicing`` or ``mps``.
        resources: Number of slots of each GPU or MIG device, by name of the extended resource, for example
            ``{"nvidia.com/gpu": 4}``; empty if pods do not share GPUs.
        fail_requests_greater_than_one: Whether the device plugin rejects containers that request more than one slot.
        rename_by_default: Whether the device plugin adds ``.shared`` to the names of shared resources.
        vram_unit: GPU memory that one slot represents, such as ``1Gi``. None if slots do not represent memory. Only
            this library uses this setting, not the device plugin.

    Raises:
        GpuConstructsError: If the device plugin cannot advertise a resource, if the number of slots is out of range, or
            if MPS shares MIG devices. Also raised if ``vram_unit`` has a value, but the strategy is not time-slicing of
            whole GPUs.
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
                    f"sharing.vram_unit needs the strategy 'time-slicing', got {self.strategy!r}. Use "
                    "Sharing.vram_units",
                ),
                (
                    not is_shared and further != ({}, False, False),
                    "sharing must have no other options with the strategy 'none'. Use Sharing.none()",
                ),
                (
                    is_shared and not (isinstance(self.resources, Mapping) and self.resources),
                    f"{name}.resources must name the shared resources, like {{{GPU!r}: 4}}, got {self.resources!r}. "
                    "Use Sharing.none() for exclusive GPUs",
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
            f"{name}.resources must be {GPU!r} alone with vram_unit, because MIG devices differ in memory, got "
            f"{', '.join(map(repr, self.resources))}",
        )
        yield (
            self.fail_requests_greater_than_one,
            f"{name}.fail_requests_greater_than_one must be False with vram_unit, because containers request several "
            "slots. Leave it out",
        )

    def _conflicts_of(self, where: str, resource: object) -> Iterable[fields.Conflict]:
        # The search for similar names is slow.
        if not isinstance(resource, str) or (resource != GPU and not _MIG_DEVICE.match(resource)):
            near = fields.did_you_mean(resource, (GPU, "nvidia.com/mig-1g.5gb"))
            yield (
                True,
                f"{where} must name {GPU!r} or MIG devices like 'nvidia.com/mig-1g.5gb', got {resource!r}{near}",
            )
        yield (
            resource != GPU and self.strategy == "mps",
            f"{where} must be {GPU!r}, got {resource!r}, because MPS does not share MIG devices. "
            "Use Sharing.time_slicing for MIG devices",
        )
        added = _SHARED_SUFFIX if self.rename_by_default else ""
        why = f" with rename_by_default, which adds {added!r}" if added else ""
        longest = _LONGEST_NAME - len(added)
        yield (
            len(str(resource)) > longest,
            f"{where} must have names of at most {longest} characters{why}, got {resource!r}",
        )

    def _check_replicas(self, name: str, resource: str, replicas: object) -> None:
        most, why = _MOST_REPLICAS[self.strategy]
        way_out = why if isinstance(replicas, int) and replicas > most else "use Sharing.none() for exclusive GPUs"
        where = f"{name}.replicas" if resource == GPU else f"{name}.resources[{resource!r}]"
        fields.whole_number(where, replicas, minimum=2, maximum=most, way_out=way_out)

    @classmethod
    @short_errors
    def none(cls) -> Sharing:
        """Create a setting for exclusive GPUs: the device plugin allocates each GPU to only one container at a time."""
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
        """Create a setting for time-slicing: the containers on a GPU run one after the other for short times.

        Each container can use all memory of the GPU, because time-slicing does not isolate memory.

        A node advertises ``replicas`` slots for each GPU. A container with two slots does not get more time on a GPU
        than a container with one slot.

        Args:
            replicas: Number of slots of each GPU, from 2 to 63550. It has the same effect as
                ``resources={"nvidia.com/gpu": replicas}``.
            resources: Number of slots of each device, by name of the resource. Use it for several resources, or for
                MIG devices with the MIG strategy ``mixed``, such as ``nvidia.com/mig-1g.5gb``.
            fail_requests_greater_than_one: Whether the device plugin rejects containers that request several slots.
                True by default, because several slots have no benefit. The default of the device plugin is False.
            rename_by_default: Whether nodes advertise ``nvidia.com/gpu.shared`` instead of ``nvidia.com/gpu``; False
                by default.

        Raises:
            GpuConstructsError: If both ``replicas`` and ``resources`` or neither of them have a value. Also raised if
                ``replicas`` or a value of ``resources`` is not an int from 2 to 63550, or if the device plugin cannot
                advertise a resource.

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
        """Create a setting for time-slicing in which each slot represents a unit of GPU memory.

        A GPU has ``vram / unit`` slots, rounded down. ``GpuRequest(vram="8Gi")`` requests enough slots for 8Gi of
        memory. A pod stays pending until the GPU has enough free slots. Nothing limits the memory that a running pod
        takes.

        Use this setting only if every node has one GPU. On a node with several GPUs, the device plugin can allocate
        slots of two GPUs to one pod. The pod then has access to both GPUs.

        Args:
            vram: Memory of one GPU that pods can use, as a quantity. Take the total memory that ``nvidia-smi`` prints,
                such as ``16303Mi``, and subtract the memory that must stay free, for example for a display.
            unit: Memory that one slot represents, as a quantity of whole MiB; ``1Gi`` by default.
            rename_by_default: Whether nodes advertise ``nvidia.com/gpu.shared`` instead of ``nvidia.com/gpu``; False
                by default. If True, pods that request a whole GPU as ``nvidia.com/gpu`` stay pending.

        Raises:
            GpuConstructsError: If ``vram`` or ``unit`` is not a quantity, if the unit is more than half of the memory,
                or if there are more than 63550 slots.

        Source:
            NVIDIA/k8s-device-plugin@v0.20.0:internal/rm/allocate.go, internal/plugin/server.go
        """
        _check_mebibytes("sharing.vram_units.unit", unit)
        fields.of_type("sharing.vram_units.vram", vram, str)
        fields.size("sharing.vram_units.vram", vram)
        replicas = int(fields.amount(vram) // fields.amount(unit))
        if replicas < 2:
            raise GpuConstructsError(
                f"sharing.vram_units.vram must be at least two units of {unit!r}, got {vram!r}. Use a smaller unit, or "
                "Sharing.none() for exclusive GPUs"
            )
        if replicas > MOST_SLOTS:
            raise GpuConstructsError(
                f"sharing.vram_units.unit must give at most {MOST_SLOTS} slots, the limit of the kubelet, got "
                f"{unit!r}, {replicas} of {vram!r}. Use a larger unit"
            )
        if replicas > _MANY_UNITS:
            warn(
                f"sharing.vram_units makes {replicas} slots of {unit!r} for each GPU, and the device plugin iterates "
                "over all free slots for each allocation, so large pods start late. Use a larger unit"
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
        """Create a setting for MPS (Multi-Process Service), with which containers use a GPU at the same time.

        Each slot has an equal share of the memory and the threads of the GPU. ``DevicePluginChart`` adds the MPS
        control daemon, a privileged pod on every node with this setting. The daemon sets the compute mode of the GPUs
        to ``EXCLUSIVE_PROCESS``. The device plugin mounts the daemon's ``/dev/shm`` into the containers of a workload,
        so the workload must not mount another volume at this path.

        Args:
            replicas: Number of slots of each GPU, from 2 to 48. GPUs with a compute capability below 7.5 support at
                most 16.
            fail_requests_greater_than_one: Whether the device plugin rejects containers that request several slots;
                True by default, as in the device plugin. False needs release 0.20.0 of the device plugin or later.
            rename_by_default: Whether nodes advertise ``nvidia.com/gpu.shared`` instead of ``nvidia.com/gpu``; False
                by default.

        Raises:
            GpuConstructsError: If ``replicas`` is not an int from 2 to 48.

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
        """Number of slots of each whole GPU; 1 if pods do not share GPUs."""
        return self.resources.get(GPU, 1)

    @property
    def vram_unit_mib(self) -> int | None:
        """GPU memory that one slot represents, in MiB. None if slots do not represent memory."""
        return None if self.vram_unit is None else int(fields.amount(self.vram_unit) // _MEBIBYTE)

    @short_errors
    def units(self, vram: str) -> int:
        """Return the number of slots that a pod requests for an amount of GPU memory, rounded up.

        Args:
            vram: GPU memory as a quantity.

        Raises:
            GpuConstructsError: If slots do not represent memory, if the amount is not a quantity, or if the amount is
                more than the memory of a GPU.
        """
        if self.vram_unit is None:
            raise GpuConstructsError(f"sharing.units(...) needs Sharing.vram_units, got the strategy {self.strategy!r}")
        fields.of_type("vram", vram, str)
        fields.quantity("vram", vram)
        amount = fields.amount(vram)
        refuse_if(amount < _MEBIBYTE, "vram", "be at least 1Mi", vram, way_out="Write the unit, as in '8Gi'")
        units = ceil(amount / fields.amount(self.vram_unit))
        if units > self.replicas:
            raise GpuConstructsError(
                f"vram must be at most {self.replicas} units of {self.vram_unit}, the total of a GPU, got {vram!r}, "
                f"which is {units}. Request less, or use a larger GPU"
            )
        return units

    @property
    def gpu_resource(self) -> str:
        """Name of the extended resource that a container requests for a GPU, such as ``nvidia.com/gpu.shared``."""
        return self.resource_name(GPU)

    def resource_name(self, resource: str) -> str:
        """Return the name under which nodes with this sharing advertise an extended resource.

        For example, ``nvidia.com/gpu`` becomes ``nvidia.com/gpu.shared`` if ``rename_by_default`` is True.
        """
        return resource + _SHARED_SUFFIX if self.rename_by_default and resource in self.resources else resource


def _check_mebibytes(field: str, given: str) -> None:
    fields.of_type(field, given, str)
    fields.quantity(field, given)
    amount = fields.amount(given)
    if amount < _MEBIBYTE or amount % _MEBIBYTE:
        raise GpuConstructsError(f"{field} must be whole MiB, at least one, got {given!r}. Write '1Gi' or '512Mi'")


def _slots(name: str, replicas: int | None, resources: Mapping[str, int] | None) -> Mapping[str, int]:
    if (replicas is None) == (resources is None):
        got = "neither" if replicas is None else "both"
        raise GpuConstructsError(f"{name} must have either replicas or resources, got {got}")
    return {GPU: replicas} if replicas is not None else resources or {}

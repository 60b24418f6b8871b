"""The GPU nodes a cluster has, for the checks and plans that must know how many GPUs there are and of what kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import Any, Literal

from gpu_constructs import _fields
from gpu_constructs.errors import GpuConstructsError, ShortErrors, short_errors
from gpu_constructs.gpu_models import GpuModel, board_called, near_boards
from gpu_constructs.mig_layouts import layout_problem
from gpu_constructs.mig_profiles import MIG_PROFILES, normal_profile, require_mig_profile
from gpu_constructs.sharing import Sharing
from gpu_constructs.taint import Taint

MEBIBYTE = 1024 * 1024
_MOST_BOARDS = 128


@dataclass(frozen=True, kw_only=True)
class GpuNode(metaclass=ShortErrors):
    """A node with GPUs of one kind, or a pool of such nodes that are alike.

    Attributes:
        name: Of the node or the pool, as ``talos-1`` or ``a100-pool``.
        gpu_model: The board, one of ``gpu_models.GPU_MODELS``, as ``nvidia-smi`` prints it or a node label has it, with
            or without ``NVIDIA`` and ``GeForce``, in whatever case. None where it is not known.
        gpus: Boards in each node; 1 by default, 128 at most.
        count: Nodes of this kind; 1 by default.
        vram: Memory of one board (``24Gi``), at most what is known of the model. None: what is known of the model.
        vram_reserved: Memory of each board that no pod gets, for a display or the driver (``500Mi``). None by default:
            pods get all of it.
        sharing: How pods share the node's GPUs. None by default: as the device plugin of the app says.
        mig_layout: The MIG devices that each board is divided into, as ``{"1g.5gb": 2, "3g.20gb": 1}``; or a list with
            one such mapping for each board, an empty one for a board that is not divided. None: none is.
        mig_strategy: How the device plugin advertises MIG devices: ``single`` as ``nvidia.com/gpu``, ``mixed`` as
            ``nvidia.com/mig-1g.5gb``. None by default: as the device plugin of the app says.
        labels: Of the node, beyond those that GPU Feature Discovery and the kubelet write; none by default.
        taints: Of the node; none by default.
        power_limit: Watts that each board is held at, within what is known of the model. None by default: what it comes
            with.
        rack: Where it stands, as in ``GpuInventory.rack_watts``. None by default: nobody says.
        is_observed: Whether sharing, strategy and labels were read from a running cluster: what the device plugin of
            the app says goes before them. False by default.

    Raises:
        GpuConstructsError: A model that is not known, an amount that is none, fewer than one GPU or node, memory or
            watts that the board does not have, MIG devices that it cannot be divided into or that are shared by MPS,
            slots that count memory which a board does not have or of several boards, labels or taints that Kubernetes
            would not take.
    """

    name: str
    gpu_model: str | None = None
    gpus: int = 1
    count: int = 1
    vram: str | None = None
    vram_reserved: str | None = None
    sharing: Sharing | None = None
    mig_layout: Mapping[str, int] | Sequence[Mapping[str, int]] | None = None
    mig_strategy: Literal["single", "mixed"] | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Taint] = ()
    power_limit: int | None = None
    rack: str | None = None
    is_observed: bool = False

    def __post_init__(self) -> None:
        _refuse_one_alone("gpu_node.taints", self.taints, Taint)
        if isinstance(self.mig_layout, str):
            raise GpuConstructsError(
                f"gpu_node.mig_layout must be a mapping of profiles to numbers, or a list of such; got "
                f"{self.mig_layout!r}; write {{{self.mig_layout!r}: 1}}"
            )
        _fields.whole_number("gpu_node.gpus", self.gpus, minimum=1, maximum=_MOST_BOARDS)
        _fields.whole_number("gpu_node.count", self.count, minimum=1)
        _fields.members(self, "gpu_node")
        _fields.dns_subdomain("gpu_node.name", self.name)
        _fields.labels("gpu_node.labels", self.labels)
        object.__setattr__(self, "labels", dict(self.labels))
        object.__setattr__(self, "taints", tuple(self.taints))
        self._check_taints()
        if self.gpu_model is not None and self.model is None:
            raise GpuConstructsError(
                f"gpu_node.gpu_model must be a board of gpu_models.GPU_MODELS; got {self.gpu_model!r}"
                f"{near_boards(self.gpu_model)}; leave it out and pass vram='...' for another"
            )
        self._check_vram()
        self._check_units()
        self._check_power_limit()
        self._check_mig()
        if self.rack is not None and not (self.rack.strip() and self.rack.isprintable()):
            raise GpuConstructsError(f"gpu_node.rack must be a name of printable characters; got {self.rack!r}")

    def _check_taints(self) -> None:
        seen: set[tuple[str, str]] = set()
        for taint in self.taints:
            if (taint.key, taint.effect) in seen:
                raise GpuConstructsError(
                    f"gpu_node.taints must have each key once for an effect; got {taint.key!r} with {taint.effect!r} "
                    "twice; Kubernetes takes one value for them"
                )
            seen.add((taint.key, taint.effect))

    def _check_vram(self) -> None:
        for name in ("vram", "vram_reserved"):
            amount = getattr(self, name)
            if amount is None:
                continue
            _fields.quantity(f"gpu_node.{name}", amount)
            if _fields.amount(amount) < MEBIBYTE and (name == "vram" or _fields.amount(amount) != 0):
                raise GpuConstructsError(
                    f"gpu_node.{name} must be at least 1Mi; got {amount!r}; write the unit, as in '24Gi'"
                )
        known = None if self.model is None else self.model.vram_mib
        if self.vram is not None and known is not None and _fields.amount(self.vram) > known * MEBIBYTE:
            raise GpuConstructsError(
                f"gpu_node.vram must be at most the {known}Mi that {self.model.name} has; got {self.vram!r}; "  # type: ignore[union-attr]
                f"leave it out, or pass '{known}Mi'; leave gpu_model out for a board that differs"
            )
        if self.vram_reserved is not None and self.vram_mib is None:
            raise GpuConstructsError(
                f"gpu_node.vram_reserved is taken off the memory of a board, which is not known here; got "
                f"{self.vram_reserved!r}; pass vram='...' too"
            )
        if self.vram_reserved is not None and self.vram_mib is not None and (self.usable_vram_mib or 0) < 1:
            raise GpuConstructsError(
                f"gpu_node.vram_reserved must be less than the {self.vram_mib}Mi that a board has; got "
                f"{self.vram_reserved!r}"
            )

    def _check_units(self) -> None:
        sharing = self.sharing
        if sharing is None or sharing.vram_unit_mib is None:
            return
        if self.gpus > 1:
            raise GpuConstructsError(
                f"gpu_node.gpus must be 1 with Sharing.vram_units, since a pod may get units of several boards; got "
                f"{self.gpus}; use Sharing.time_slicing or Sharing.none"
            )
        usable = self.usable_vram_mib
        if usable is not None and sharing.replicas * sharing.vram_unit_mib > usable:
            right = (
                f"pass vram='{usable}Mi' to Sharing.vram_units"
                if usable >= 2 * sharing.vram_unit_mib
                else "take a smaller unit"
            )
            raise GpuConstructsError(
                f"gpu_node.sharing must hand out no more than the {usable}Mi that pods get of a board; got "
                f"{sharing.replicas} units of {sharing.vram_unit}; {right}"
            )

    def _check_power_limit(self) -> None:
        if self.power_limit is None:
            return
        _fields.whole_number("gpu_node.power_limit", self.power_limit, minimum=1)
        model = self.model
        if model is not None and not (
            (model.min_watts or self.power_limit) <= self.power_limit <= (model.max_watts or self.power_limit)
        ):
            raise GpuConstructsError(
                f"gpu_node.power_limit must be watts that {model.name} takes ({model.watts_in_words()}); "
                f"got {self.power_limit}"
            )

    def _check_mig(self) -> None:
        if self.mig_strategy is not None and self.mig_profiles == () and not self.mig_layout:
            raise GpuConstructsError(
                f"gpu_node.mig_strategy must be left out for {self.model.name}, which has no MIG; got "  # type: ignore[union-attr]
                f"{self.mig_strategy!r}"
            )
        if self.mig_layout is None:
            return
        is_one = isinstance(self.mig_layout, Mapping)
        given: Sequence[Mapping[str, int]] = (
            (self.mig_layout,) if isinstance(self.mig_layout, Mapping) else self.mig_layout
        )
        if not is_one and len(given) != self.gpus:
            raise GpuConstructsError(
                f"gpu_node.mig_layout must be one mapping, or one for each of the node's {self.gpus} boards; "
                f"got {len(given)}; write {{}} for a board that is not divided"
            )
        frozen = [
            self._checked_layout("gpu_node.mig_layout" if is_one else f"gpu_node.mig_layout[{number}]", layout)
            for number, layout in enumerate(given)
        ]
        object.__setattr__(self, "mig_layout", frozen[0] if is_one else tuple(frozen))
        profiles = dict.fromkeys(profile for layout in frozen for profile in layout)
        shares = self.sharing
        if profiles and shares is not None and (shares.strategy == "mps" or shares.vram_unit is not None):
            named = "mps" if shares.strategy == "mps" else "vram_units"
            raise GpuConstructsError(
                f"gpu_node.mig_layout must be left out with Sharing.{named}, which does not share MIG devices; use "
                "Sharing.time_slicing for them"
            )
        if profiles and self.mig_strategy == "single" and (len(profiles) > 1 or not all(frozen)):
            got = " and ".join(map(repr, profiles)) + ("" if all(frozen) else " beside boards that are not divided")
            raise GpuConstructsError(
                f"gpu_node.mig_layout must divide every board into devices of one profile with mig_strategy 'single'; "
                f"got {got}, of which the device plugin advertises none; use 'mixed'"
            )

    def _checked_layout(self, name: str, layout: Mapping[str, int]) -> Mapping[str, int]:
        normal: dict[str, int] = {}
        for profile, count in layout.items():
            require_mig_profile(name, profile)
            _fields.whole_number(f"{name}[{profile!r}]", count, minimum=1)
            normal[normal_profile(profile)] = normal.get(normal_profile(profile), 0) + count
        problem = layout_problem(None if self.model is None else self.model.name, normal)
        if problem is not None:
            raise GpuConstructsError(
                f"{name} must be devices that the board can be divided into; got {normal}: {problem}"
            )
        return normal

    @property
    def model(self) -> GpuModel | None:
        """What is known of the board."""
        return None if self.gpu_model is None else board_called(self.gpu_model)

    @property
    def vram_mib(self) -> int | None:
        """Memory of one board in MiB; None where it is not known."""
        if self.vram is not None:
            return int(_fields.amount(self.vram) / MEBIBYTE)
        return None if self.model is None else self.model.vram_mib

    @property
    def usable_vram_mib(self) -> int | None:
        """Memory of one board in MiB that pods get; None where it is not known."""
        if self.vram_mib is None or self.vram_reserved is None:
            return self.vram_mib
        return self.vram_mib - ceil(_fields.amount(self.vram_reserved) / MEBIBYTE)

    @property
    def mig_profiles(self) -> tuple[str, ...] | None:
        """The MIG profiles of the board, none where it has no MIG; None where it is not known."""
        return None if self.model is None else MIG_PROFILES.get(self.model.name)

    @property
    def layouts(self) -> tuple[Mapping[str, int], ...]:
        """The MIG devices of each board by profile, with a plus before its attributes; empty for one not divided."""
        if self.mig_layout is None or isinstance(self.mig_layout, Mapping):
            return (self.mig_layout or {},) * self.gpus
        return tuple(self.mig_layout)


@dataclass(frozen=True, kw_only=True)
class GpuInventory(metaclass=ShortErrors):
    """All nodes with GPUs of one cluster.

    Attributes:
        nodes: The nodes and pools, each name once.
        rack_watts: Watts that the boards of a rack may draw together, by the rack's name; none by default. A rack that
            is not named has no such limit.

    Raises:
        GpuConstructsError: No node, a name that is there twice, or a rack that no node stands in.
    """

    nodes: Sequence[GpuNode]
    rack_watts: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _refuse_one_alone("gpu_inventory.nodes", self.nodes, GpuNode)
        _fields.members(self, "gpu_inventory")
        object.__setattr__(self, "nodes", tuple(self.nodes))
        object.__setattr__(self, "rack_watts", dict(self.rack_watts))
        if not self.nodes:
            raise GpuConstructsError("gpu_inventory.nodes must hold at least one GpuNode; got none")
        seen: set[str] = set()
        for node in self.nodes:
            if node.name in seen:
                raise GpuConstructsError(
                    f"gpu_inventory.nodes must have names of their own; got {node.name!r} twice; use count= for nodes "
                    "that are alike"
                )
            seen.add(node.name)
        racks = list(dict.fromkeys(node.rack for node in self.nodes if node.rack is not None))
        for rack, watts in self.rack_watts.items():
            _fields.whole_number(f"gpu_inventory.rack_watts[{rack!r}]", watts, minimum=1)
            if rack not in racks:
                raise GpuConstructsError(
                    f"gpu_inventory.rack_watts must name racks of nodes; got {rack!r}"
                    f"{_fields.did_you_mean(rack, racks)}; say rack= of the nodes that stand in it"
                )

    @classmethod
    @short_errors
    def from_file(cls, path: str | Path) -> GpuInventory:
        """Read an inventory from a file of YAML, as ``from_yaml`` does; its errors begin with the file's name.

        Args:
            path: The file.

        Raises:
            GpuConstructsError: A file that cannot be read, or as ``from_yaml``.
        """
        from gpu_constructs.inventory_file import inventory_from_file

        return inventory_from_file(path)

    @classmethod
    @short_errors
    def from_yaml(cls, text: str) -> GpuInventory:
        """Read an inventory from YAML: the keys are the members of ``GpuInventory`` and ``GpuNode``.

        ``sharing`` has ``strategy`` (``none``, ``time-slicing``, ``vram-units``, ``mps``) beside the keywords of that
        factory of ``Sharing``; a taint has the members of ``Taint``.

        Args:
            text: The YAML.

        Raises:
            GpuConstructsError: A key that there is not or that is given twice, a value that ``GpuInventory`` or
                ``GpuNode`` refuses, text that is no plain YAML. Each with its line.
        """
        from gpu_constructs.inventory_file import inventory_from_yaml

        return inventory_from_yaml(text)

    @classmethod
    @short_errors
    def from_nodes(cls, nodes: str | Path | Mapping[str, Any]) -> GpuInventory:
        """Take the nodes with GPUs of a running cluster, as GPU Feature Discovery labels them.

        A node that is cordoned or not ready is taken too: its taints keep pods off. How a node shares its GPUs is what
        it was seen to do (``GpuNode.is_observed``): what the device plugin of the app says goes before it. Of what
        labels do not say: a plan lets containers ask for several slots of a shared GPU where only labels tell how it is
        shared; under the MIG strategy ``single`` there are as few boards as can hold the devices, under ``mixed`` the
        devices are spread evenly where that can be. Warns of a node that does not offer what its labels promise, and of
        one whose GPUs cannot be told.

        Args:
            nodes: What ``kubectl get nodes -o json`` prints, as text or read, or a ``Path`` of a file of it.

        Raises:
            GpuConstructsError: No list of nodes, no node with GPUs, MIG devices that its boards cannot hold.
        """
        from gpu_constructs.inventory_of_nodes import inventory_of_nodes

        return inventory_of_nodes(nodes)

    @property
    def gpus(self) -> int:
        """How many boards there are."""
        return sum(node.gpus * node.count for node in self.nodes)

    @property
    def has_single_gpu_nodes_only(self) -> bool:
        """Whether no node has a second GPU."""
        return all(node.gpus == 1 for node in self.nodes)

    @property
    def vram_mib(self) -> int | None:
        """Memory of the largest board whose memory is known, in MiB."""
        return max((node.vram_mib for node in self.nodes if node.vram_mib is not None), default=None)

    def slots(self, sharing: Sharing) -> int:
        """How many containers may hold a GPU, a slot of a shared one or a MIG device, at a time and at most.

        Args:
            sharing: That of the nodes which say none themselves, or of which it was only read.
        """
        return sum(
            node.count
            * max(node.gpus, sum(sum(layout.values()) for layout in node.layouts))
            * (sharing if node.is_observed else node.sharing or sharing).replicas
            for node in self.nodes
        )


def _refuse_one_alone(field: str, got: object, kind: type) -> None:
    if isinstance(got, kind):
        raise GpuConstructsError(f"{field} must be a list of {kind.__name__}; got one alone; put it in a list: [...]")

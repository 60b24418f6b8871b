"""The GPU nodes a cluster has, for the checks and plans that must know how many GPUs there are and of what kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import Any, ClassVar, Literal

from gpu_constructs.catalog.gpu_models import GpuModel, board_called, near_boards
from gpu_constructs.catalog.mig_layouts import layout_problem
from gpu_constructs.catalog.mig_profiles import MIG_PROFILES, normal_profile, require_mig_profile
from gpu_constructs.catalog.sharing import Sharing
from gpu_constructs.errors import GpuConstructsError, short_errors
from gpu_constructs.kube import fields
from gpu_constructs.kube.placement import Taint

MEBIBYTE = 1024 * 1024
_MOST_BOARDS = 128


@dataclass(frozen=True, kw_only=True)
class GpuNode(fields.Options):
    """A node with GPUs of one kind, or a pool of such nodes that are alike.

    Attributes:
        name: Name of the node or the pool, as ``talos-1`` or ``a100-pool``.
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
        labels: Labels of the node, beyond those that GPU Feature Discovery and the kubelet write; none by default.
        taints: Taints of the node; none by default.
        power_limit: Watts that each board is held at, within what is known of the model. None by default: what it comes
            with.
        rack: Rack of the node, as in ``GpuInventory.rack_watts``. None by default: not known.
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

    _CHECKS: ClassVar[fields.Checks] = {
        "name": fields.dns_subdomain,
        "labels": fields.labels,
        "power_limit": fields.positive,
        "vram": fields.quantity,
        "vram_reserved": fields.quantity,
    }
    _KEPT: ClassVar[fields.Kept] = {"labels": dict, "taints": tuple}

    def __post_init__(self) -> None:
        _refuse_one_alone("gpu_node.taints", self.taints, Taint)
        if isinstance(self.mig_layout, str):
            raise GpuConstructsError(
                f"gpu_node.mig_layout must be a mapping of profiles to numbers, or a list of such; got "
                f"{self.mig_layout!r}; write {{{self.mig_layout!r}: 1}}"
            )
        fields.whole_number("gpu_node.gpus", self.gpus, minimum=1, maximum=_MOST_BOARDS)
        fields.whole_number("gpu_node.count", self.count, minimum=1)
        super().__post_init__()
        self._check_mig()

    def _conflicts(self) -> Iterator[fields.Conflict]:
        for (key, effect), count in Counter((taint.key, taint.effect) for taint in self.taints).items():
            yield (
                count > 1,
                f"gpu_node.taints must have each key once for an effect; got {key!r} with {effect!r} twice; "
                "Kubernetes takes one value for them",
            )
        # To look for near ones takes long.
        if self.gpu_model is not None and self.model is None:
            yield (
                True,
                f"gpu_node.gpu_model must be a board of gpu_models.GPU_MODELS; got {self.gpu_model!r}"
                f"{near_boards(self.gpu_model)}; leave it out and pass vram='...' for another",
            )
        yield from self._conflicts_of_vram()
        yield from self._conflicts_of_units()
        yield from self._conflicts_of_power()
        yield (
            self.rack is not None and not (self.rack.strip() and self.rack.isprintable()),
            f"gpu_node.rack must be a name of printable characters; got {self.rack!r}",
        )

    def _conflicts_of_vram(self) -> Iterator[fields.Conflict]:
        for name in ("vram", "vram_reserved"):
            amount = getattr(self, name)
            if amount is not None:
                yield (
                    fields.amount(amount) < MEBIBYTE and (name == "vram" or fields.amount(amount) != 0),
                    f"gpu_node.{name} must be at least 1Mi; got {amount!r}; write the unit, as in '24Gi'",
                )
        model = self.model
        if model and model.vram_mib is not None and self.vram is not None:
            yield (
                fields.amount(self.vram) > model.vram_mib * MEBIBYTE,
                f"gpu_node.vram must be at most the {model.vram_mib}Mi that {model.name} has; got {self.vram!r}; "
                f"leave it out, or pass '{model.vram_mib}Mi'; leave gpu_model out for a board that differs",
            )
        if self.vram_reserved is not None:
            yield (
                self.vram_mib is None,
                "gpu_node.vram_reserved is taken off the memory of a board, which is not known here; got "
                f"{self.vram_reserved!r}; pass vram='...' too",
            )
            yield (
                (self.usable_vram_mib or 0) < 1,
                f"gpu_node.vram_reserved must be less than the {self.vram_mib}Mi that a board has; got "
                f"{self.vram_reserved!r}",
            )

    def _conflicts_of_units(self) -> Iterator[fields.Conflict]:
        sharing, usable = self.sharing, self.usable_vram_mib
        if sharing is None or sharing.vram_unit_mib is None:
            return
        yield (
            self.gpus > 1,
            "gpu_node.gpus must be 1 with Sharing.vram_units, since a pod may get units of several boards; got "
            f"{self.gpus}; use Sharing.time_slicing or Sharing.none",
        )
        if usable is not None:
            is_unit_small = usable >= 2 * sharing.vram_unit_mib
            right = f"pass vram='{usable}Mi' to Sharing.vram_units" if is_unit_small else "take a smaller unit"
            yield (
                sharing.replicas * sharing.vram_unit_mib > usable,
                f"gpu_node.sharing must hand out no more than the {usable}Mi that pods get of a board; got "
                f"{sharing.replicas} units of {sharing.vram_unit}; {right}",
            )

    def _conflicts_of_power(self) -> Iterator[fields.Conflict]:
        model, limit = self.model, self.power_limit
        if model is not None and limit is not None:
            yield (
                not (model.min_watts or limit) <= limit <= (model.max_watts or limit),
                f"gpu_node.power_limit must be watts that {model.name} takes ({model.watts_in_words()}); got {limit}",
            )

    def _check_mig(self) -> None:
        if self.mig_strategy is not None and self.mig_profiles == () and not self.mig_layout:
            raise GpuConstructsError(
                f"gpu_node.mig_strategy must be left out for {self.model and self.model.name}, which has no MIG; got "
                f"{self.mig_strategy!r}"
            )
        if isinstance(self.mig_layout, Mapping):
            object.__setattr__(self, "mig_layout", self._checked_layout("gpu_node.mig_layout", self.mig_layout))
        elif self.mig_layout is not None:
            if len(self.mig_layout) != self.gpus:
                raise GpuConstructsError(
                    f"gpu_node.mig_layout must be one mapping, or one for each of the node's {self.gpus} boards; "
                    f"got {len(self.mig_layout)}; write {{}} for a board that is not divided"
                )
            numbered = enumerate(self.mig_layout)
            frozen = [self._checked_layout(f"gpu_node.mig_layout[{number}]", one) for number, one in numbered]
            object.__setattr__(self, "mig_layout", tuple(frozen))
        self._check_sharing_of_mig(dict.fromkeys(profile for layout in self.layouts for profile in layout))

    def _check_sharing_of_mig(self, profiles: Mapping[str, None]) -> None:
        shares = self.sharing or Sharing.none()
        named = "mps" if shares.strategy == "mps" else "vram_units"
        beside = "" if all(self.layouts) else " beside boards that are not divided"
        fields.refuse_first(
            (
                (
                    profiles and (shares.strategy == "mps" or shares.vram_unit is not None),
                    f"gpu_node.mig_layout must be left out with Sharing.{named}, which does not share MIG devices; use "
                    "Sharing.time_slicing for them",
                ),
                (
                    profiles and self.mig_strategy == "single" and (len(profiles) > 1 or beside),
                    "gpu_node.mig_layout must divide every board into devices of one profile with mig_strategy "
                    f"'single'; got {' and '.join(map(repr, profiles))}{beside}, of which the device plugin advertises "
                    "none; use 'mixed'",
                ),
            )
        )

    def _checked_layout(self, name: str, layout: Mapping[str, int]) -> Mapping[str, int]:
        normal: dict[str, int] = {}
        for profile, count in layout.items():
            require_mig_profile(name, profile)
            fields.whole_number(f"{name}[{profile!r}]", count, minimum=1)
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
            return int(fields.amount(self.vram) / MEBIBYTE)
        return None if self.model is None else self.model.vram_mib

    @property
    def usable_vram_mib(self) -> int | None:
        """Memory of one board in MiB that pods get; None where it is not known."""
        if self.vram_mib is None or self.vram_reserved is None:
            return self.vram_mib
        return self.vram_mib - ceil(fields.amount(self.vram_reserved) / MEBIBYTE)

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
class GpuInventory(fields.Options):
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

    _CHECKS: ClassVar[fields.Checks] = {"rack_watts": fields.entries(fields.positive)}
    _KEPT: ClassVar[fields.Kept] = {"nodes": tuple, "rack_watts": dict}

    def __post_init__(self) -> None:
        _refuse_one_alone("gpu_inventory.nodes", self.nodes, GpuNode)
        super().__post_init__()

    def _conflicts(self) -> Iterator[fields.Conflict]:
        yield not self.nodes, "gpu_inventory.nodes must hold at least one GpuNode; got none"
        for name, count in Counter(node.name for node in self.nodes).items():
            yield (
                count > 1,
                f"gpu_inventory.nodes must have names of their own; got {name!r} twice; use count= for nodes that are "
                "alike",
            )
        racks = list(dict.fromkeys(node.rack for node in self.nodes if node.rack is not None))
        for rack in self.rack_watts:
            yield (
                rack not in racks,
                f"gpu_inventory.rack_watts must name racks of nodes; got {rack!r}{fields.did_you_mean(rack, racks)}; "
                "say rack= of the nodes that stand in it",
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
        fields.of_type("path", path, str | Path)
        path = Path(path)
        text = _text_of(path, "path", "YAML")
        try:
            return cls.from_yaml(text)
        except GpuConstructsError as error:
            raise GpuConstructsError(f"{path.name} {error.problem}") from None

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
                ``GpuNode`` refuses, text that is not plain YAML. Each with its line.
        """
        from gpu_constructs.catalog import inventory_file

        return inventory_file.read(text, cls)

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
        from gpu_constructs.catalog.inventory_of_nodes import gpu_nodes

        fields.of_type("nodes", nodes, str | Path | Mapping)
        given = _text_of(nodes, "nodes", "JSON") if isinstance(nodes, Path) else nodes
        return cls(nodes=gpu_nodes(given, GpuNode))

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


def _text_of(path: Path, field: str, language: str) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        # A path with a null byte, and text that is not UTF-8, are not an OSError.
        reason = error.strerror if isinstance(error, OSError) else "it is not a file of UTF-8 text"
        raise GpuConstructsError(
            f"{field} must be a file of {language} that can be read; got {str(path)!r}: {reason}"
        ) from None

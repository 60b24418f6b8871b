"""`GpuInventory`: a description of the GPU nodes in a cluster, for checks and capacity plans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import Any, ClassVar, Literal

from gpu_constructs.catalog.gpu_models import GpuModel, board_called, near_boards
from gpu_constructs.catalog.mig_layouts import layout_problem
from gpu_constructs.catalog.mig_profiles import MIG_PROFILES, normal_profile, require_mig_profile
from gpu_constructs.catalog.sharing import Sharing
from gpu_constructs.errors import GpuConstructsError, short_errors, then
from gpu_constructs.kube import fields
from gpu_constructs.kube.placement import Taint
from gpu_constructs.records import dataclass, field

MEBIBYTE = 1024 * 1024
_MOST_BOARDS = 128


@dataclass(frozen=True, kw_only=True)
class GpuNode(fields.Options):
    """A GPU node, or a pool of equal GPU nodes, that the user declares.

    Attributes:
        name: Name of the node or the pool, such as ``talos-1`` or ``a100-pool``.
        gpu_model: Name of a board in ``gpu_models.GPU_MODELS``, as ``nvidia-smi`` or a node label states it. The case
            does not matter, and the name can omit ``NVIDIA``, ``GeForce`` and ``Tesla``. None (the default) stands for
            a board that is not in ``GPU_MODELS``, or that you do not know.
        gpus: Number of boards in each node, from 1 (the default) to 128.
        count: Number of nodes in the pool; 1 by default.
        vram: Memory of one board, such as ``24Gi``. The default and the maximum are the memory of ``gpu_model``.
        vram_reserved: Memory of each board that pods cannot use, such as ``500Mi``, for example because of a display
            or the NVIDIA driver; none by default.
        sharing: Sharing of the GPUs of the node; by default the setting of the device plugin in the app.
        mig_layout: Number of MIG devices on each board by profile, such as ``{"1g.5gb": 2, "3g.20gb": 1}``, or a list
            with such a mapping for each board. An empty mapping is a board without MIG; by default no board uses MIG.
        mig_strategy: MIG strategy of the device plugin: ``single`` (``nvidia.com/gpu``) or ``mixed``
            (``nvidia.com/mig-1g.5gb``); by default the setting of the device plugin in the app.
        labels: Labels of the node, besides the labels that GPU Feature Discovery and the kubelet set; none by default.
        taints: Taints of the node; none by default.
        power_limit: Power limit of each board in watts, in the range that ``gpu_model`` allows; by default the default
            limit of ``gpu_model``.
        rack: Name of the rack, as in ``GpuInventory.rack_watts``; None (the default) if the rack is unknown.
        is_observed: Whether ``sharing``, ``mig_strategy`` and ``labels`` come from a running cluster; False by default.
            If True, the settings of the device plugin in the app take precedence over the sharing and MIG strategy.

    Raises:
        GpuConstructsError: If a value has an invalid format, or if ``GPU_MODELS`` lacks ``gpu_model``. Also raised if
            the board does not support the memory, the power limit, the MIG devices or the sharing.
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
                "gpu_node.mig_layout must be a mapping of profiles to numbers, or a list of mappings, got "
                f"{self.mig_layout!r}. Write {{{self.mig_layout!r}: 1}}"
            )
        fields.whole_number("gpu_node.gpus", self.gpus, minimum=1, maximum=_MOST_BOARDS)
        fields.whole_number("gpu_node.count", self.count, minimum=1)
        super().__post_init__()
        self._check_mig()

    def _conflicts(self) -> Iterator[fields.Conflict]:
        for (key, effect), count in Counter((taint.key, taint.effect) for taint in self.taints).items():
            yield (
                count > 1,
                f"gpu_node.taints must not repeat a key with the same effect, got {key!r} with {effect!r} twice. "
                "Remove one of them",
            )
        # The search for similar names is slow.
        if self.gpu_model is not None and self.model is None:
            yield (
                True,
                f"gpu_node.gpu_model must be a board of gpu_models.GPU_MODELS, got {self.gpu_model!r}"
                f"{near_boards(self.gpu_model)}. For another board, pass vram='...' instead",
            )
        yield from self._conflicts_of_vram()
        yield from self._conflicts_of_units()
        yield from self._conflicts_of_power()
        yield (
            self.rack is not None and not (self.rack.strip() and self.rack.isprintable()),
            f"gpu_node.rack must be a name of printable characters, got {self.rack!r}",
        )

    def _conflicts_of_vram(self) -> Iterator[fields.Conflict]:
        for name in ("vram", "vram_reserved"):
            amount = getattr(self, name)
            if amount is not None:
                yield (
                    fields.amount(amount) < MEBIBYTE and (name == "vram" or fields.amount(amount) != 0),
                    f"gpu_node.{name} must be at least 1Mi, got {amount!r}. Write the unit, as in '24Gi'",
                )
        model = self.model
        if model and model.vram_mib is not None and self.vram is not None:
            yield (
                fields.amount(self.vram) > model.vram_mib * MEBIBYTE,
                f"gpu_node.vram must be at most the {model.vram_mib}Mi that {model.name} has, got {self.vram!r}. Pass "
                f"at most '{model.vram_mib}Mi', or leave gpu_model out for a different board",
            )
        if self.vram_reserved is not None:
            yield (
                self.vram_mib is None,
                "gpu_node.vram_reserved needs a board with a known memory, got "
                f"{self.vram_reserved!r}. Pass vram='...' too",
            )
            yield (
                (self.usable_vram_mib or 0) < 1,
                f"gpu_node.vram_reserved must be less than the {self.vram_mib}Mi that a board has, got "
                f"{self.vram_reserved!r}",
            )

    def _conflicts_of_units(self) -> Iterator[fields.Conflict]:
        sharing, usable = self.sharing, self.usable_vram_mib
        if sharing is None or sharing.vram_unit_mib is None:
            return
        yield (
            self.gpus > 1,
            "gpu_node.gpus must be 1 with Sharing.vram_units, because a pod could get slots of several boards, got "
            f"{self.gpus}. Use Sharing.time_slicing or Sharing.none",
        )
        if usable is not None:
            is_unit_small = usable >= 2 * sharing.vram_unit_mib
            right = f"pass vram='{usable}Mi' to Sharing.vram_units" if is_unit_small else "use a smaller unit"
            yield (
                sharing.replicas * sharing.vram_unit_mib > usable,
                f"gpu_node.sharing must advertise at most the {usable}Mi that pods can use on a board, got "
                f"{sharing.replicas} units of {sharing.vram_unit}{then(right)}",
            )

    def _conflicts_of_power(self) -> Iterator[fields.Conflict]:
        model, limit = self.model, self.power_limit
        if model is not None and limit is not None:
            yield (
                not (model.min_watts or limit) <= limit <= (model.max_watts or limit),
                f"gpu_node.power_limit must be in the range of {model.name} ({model.watts_in_words()}), got {limit}",
            )

    def _check_mig(self) -> None:
        if self.mig_strategy is not None and self.mig_profiles == () and not self.mig_layout:
            raise GpuConstructsError(
                f"gpu_node.mig_strategy must be None for {self.model and self.model.name}, which does not support MIG, "
                f"got {self.mig_strategy!r}"
            )
        if isinstance(self.mig_layout, Mapping):
            object.__setattr__(self, "mig_layout", self._checked_layout("gpu_node.mig_layout", self.mig_layout))
        elif self.mig_layout is not None:
            if len(self.mig_layout) != self.gpus:
                raise GpuConstructsError(
                    f"gpu_node.mig_layout must be one mapping, or one for each of the node's {self.gpus} boards, "
                    f"got {len(self.mig_layout)}. Write {{}} for a board without MIG"
                )
            numbered = enumerate(self.mig_layout)
            frozen = [self._checked_layout(f"gpu_node.mig_layout[{number}]", one) for number, one in numbered]
            object.__setattr__(self, "mig_layout", tuple(frozen))
        self._check_sharing_of_mig(dict.fromkeys(profile for layout in self.layouts for profile in layout))

    def _check_sharing_of_mig(self, profiles: Mapping[str, None]) -> None:
        shares = self.sharing or Sharing.none()
        named = "mps" if shares.strategy == "mps" else "vram_units"
        beside = "" if all(self.layouts) else " and boards without MIG"
        fields.refuse_first(
            (
                (
                    profiles and (shares.strategy == "mps" or shares.vram_unit is not None),
                    f"gpu_node.mig_layout must be None with Sharing.{named}, which does not share MIG devices. Use "
                    "Sharing.time_slicing for them",
                ),
                (
                    profiles and self.mig_strategy == "single" and (len(profiles) > 1 or beside),
                    "gpu_node.mig_layout must have one and the same profile on all boards with mig_strategy 'single', "
                    f"got {' and '.join(map(repr, profiles))}{beside}, which the device plugin does not advertise. Use "
                    "'mixed'",
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
            raise GpuConstructsError(f"{name} must be MIG devices that fit on the board, got {normal}: {problem}")
        return normal

    @property
    def model(self) -> GpuModel | None:
        """Data of the board in the catalog of the library. None if ``gpu_model`` is None."""
        return None if self.gpu_model is None else board_called(self.gpu_model)

    @property
    def vram_mib(self) -> int | None:
        """Memory of one board, in MiB. None if it is unknown."""
        if self.vram is not None:
            return int(fields.amount(self.vram) / MEBIBYTE)
        return None if self.model is None else self.model.vram_mib

    @property
    def usable_vram_mib(self) -> int | None:
        """Memory of one board that pods can use, in MiB. None if it is unknown."""
        if self.vram_mib is None or self.vram_reserved is None:
            return self.vram_mib
        return self.vram_mib - ceil(fields.amount(self.vram_reserved) / MEBIBYTE)

    @property
    def mig_profiles(self) -> tuple[str, ...] | None:
        """MIG profiles that the board supports; empty if it does not support MIG, and None for an unknown board."""
        return None if self.model is None else MIG_PROFILES.get(self.model.name)

    @property
    def layouts(self) -> tuple[Mapping[str, int], ...]:
        """MIG devices on each board of the node: their number by MIG profile, such as ``{"1g.10gb+me": 1}``.

        The mapping of a board without MIG devices is empty.
        """
        if self.mig_layout is None or isinstance(self.mig_layout, Mapping):
            return (self.mig_layout or {},) * self.gpus
        return tuple(self.mig_layout)


@dataclass(frozen=True, kw_only=True)
class GpuInventory(fields.Options):
    """All GPU nodes of one cluster.

    Attributes:
        nodes: Nodes and pools of nodes, each with a unique name.
        rack_watts: Power limit of all boards in a rack together, in watts, by name of the rack. By default no rack has
            a limit.

    Raises:
        GpuConstructsError: If there is no node, if two nodes have the same name, or if ``rack_watts`` names a rack
            without nodes.
    """

    nodes: Sequence[GpuNode]
    rack_watts: Mapping[str, int] = field(default_factory=dict)

    _CHECKS: ClassVar[fields.Checks] = {"rack_watts": fields.entries(fields.positive)}
    _KEPT: ClassVar[fields.Kept] = {"nodes": tuple, "rack_watts": dict}

    def __post_init__(self) -> None:
        _refuse_one_alone("gpu_inventory.nodes", self.nodes, GpuNode)
        super().__post_init__()

    def _conflicts(self) -> Iterator[fields.Conflict]:
        yield not self.nodes, "gpu_inventory.nodes must have at least one GpuNode, got none"
        for name, count in Counter(node.name for node in self.nodes).items():
            yield (
                count > 1,
                f"gpu_inventory.nodes must have different names, got {name!r} twice. Use count= for equal nodes",
            )
        racks = list(dict.fromkeys(node.rack for node in self.nodes if node.rack is not None))
        for rack in self.rack_watts:
            yield (
                rack not in racks,
                f"gpu_inventory.rack_watts must name racks of nodes, got {rack!r}{fields.did_you_mean(rack, racks)}. "
                "Set GpuNode(rack=...) of its nodes",
            )

    @classmethod
    @short_errors
    def from_file(cls, path: str | Path) -> GpuInventory:
        """Return the inventory in a YAML file. ``from_yaml`` describes the format. Errors begin with the filename.

        Args:
            path: Path of the YAML file.

        Raises:
            GpuConstructsError: If the file is not readable, or ``from_yaml`` rejects its content.
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
        """Return the inventory in a YAML text, whose keys are the attributes of ``GpuInventory`` and ``GpuNode``.

        ``sharing`` has the key ``strategy`` (``none``, ``time-slicing``, ``vram-units`` or ``mps``). Its other keys are
        the keywords of ``Sharing.time_slicing``, ``Sharing.vram_units`` or ``Sharing.mps``. A taint has the attributes
        of ``Taint``.

        Args:
            text: Inventory as YAML, without anchors and tags.

        Raises:
            GpuConstructsError: If the text is not YAML, if a key is unknown or a duplicate, or if ``GpuInventory`` or
                ``GpuNode`` rejects a value. The message states the line.
        """
        from gpu_constructs.catalog import inventory_file

        return inventory_file.read(text, cls)

    @classmethod
    @short_errors
    def from_nodes(cls, nodes: str | Path | Mapping[str, Any]) -> GpuInventory:
        """Create an inventory from the nodes of a running cluster and their labels from GPU Feature Discovery.

        The result includes cordoned nodes and nodes that are not ready, with their taints. In the result,
        ``GpuNode.is_observed`` is True. The labels do not contain all data, so the method assumes the following:

        - The device plugin accepts containers that request several slots.
        - With the MIG strategy ``single``, a node has the smallest number of boards that can have its MIG devices.
        - With the MIG strategy ``mixed``, all boards of a node have the same MIG devices if possible.

        The method warns if a node advertises a different number of slots than its labels state. It also warns if it
        ignores a node because nothing describes the GPUs of the node.

        Args:
            nodes: Output of ``kubectl get nodes -o json``, as text, as parsed JSON, or as the ``Path`` of a file.

        Raises:
            GpuConstructsError: If the value is not a list of nodes, if no node has a GPU, or if the boards of a node
                do not support its MIG devices.
        """
        from gpu_constructs.catalog.inventory_of_nodes import gpu_nodes

        fields.of_type("nodes", nodes, str | Path | Mapping)
        given = _text_of(nodes, "nodes", "JSON") if isinstance(nodes, Path) else nodes
        return cls(nodes=gpu_nodes(given, GpuNode))

    @property
    def gpus(self) -> int:
        """Number of boards in all nodes."""
        return sum(node.gpus * node.count for node in self.nodes)

    @property
    def has_single_gpu_nodes_only(self) -> bool:
        """Whether every node in the inventory has only one GPU."""
        return all(node.gpus == 1 for node in self.nodes)

    @property
    def vram_mib(self) -> int | None:
        """Largest memory of a board in the inventory, in MiB. None if the memory of all boards is unknown."""
        return max((node.vram_mib for node in self.nodes if node.vram_mib is not None), default=None)

    def slots(self, sharing: Sharing) -> int:
        """Return the total number of slots: units of GPU resources, such as ``nvidia.com/gpu``, that nodes advertise.

        Args:
            sharing: Sharing on nodes without their own ``sharing``, and on nodes whose ``is_observed`` is True.
        """
        return sum(
            node.count
            * max(node.gpus, sum(sum(layout.values()) for layout in node.layouts))
            * (sharing if node.is_observed else node.sharing or sharing).replicas
            for node in self.nodes
        )


def _refuse_one_alone(field: str, got: object, kind: type) -> None:
    if isinstance(got, kind):
        raise GpuConstructsError(
            f"{field} must be a list of {kind.__name__}, got a single one. Put it in a list: [...]"
        )


def _text_of(path: Path, field: str, language: str) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        # A null byte in the path raises a ValueError, and so does a file that is not UTF-8.
        reason = error.strerror if isinstance(error, OSError) else "not a UTF-8 text file"
        raise GpuConstructsError(f"{field} must be a readable {language} file, got {str(path)!r}: {reason}") from None

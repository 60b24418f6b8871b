"""The GPU nodes a cluster has, for the checks that must know how many GPUs there are and of what kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpu_constructs import _fields
from gpu_constructs.errors import GpuConstructsError, ShortErrors
from gpu_constructs.gpu_models import GPU_MODELS, GpuModel
from gpu_constructs.gpu_models import gpu_model as known_model
from gpu_constructs.mig_profiles import MIG_PROFILES
from gpu_constructs.sharing import GPU, Sharing

MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class GpuNode(metaclass=ShortErrors):
    """A node with GPUs of one kind, or a pool of such nodes that are alike.

    Attributes:
        name: Of the node or the pool, as ``talos-1`` or ``a100-pool``.
        gpu_model: The board, as ``nvidia-smi`` prints it, with or without ``NVIDIA`` or ``GeForce`` in front; one of
            ``gpu_models.GPU_MODELS``. None where it is not known.
        gpus: Boards in each node.
        count: Nodes of this kind.
        vram: Memory of one board (``24Gi``). None: what is known of the model.

    Raises:
        GpuConstructsError: A model that is not known, an amount that is none, fewer than one GPU or node.
    """

    name: str
    gpu_model: str | None = None
    gpus: int = 1
    count: int = 1
    vram: str | None = None

    def __post_init__(self) -> None:
        _fields.members(self, "gpu_node")
        _fields.dns_subdomain("gpu_node.name", self.name)
        _fields.whole_number("gpu_node.gpus", self.gpus, minimum=1)
        _fields.whole_number("gpu_node.count", self.count, minimum=1)
        if self.vram is not None:
            _fields.quantity("gpu_node.vram", self.vram)
            if _fields.amount(self.vram) < MEBIBYTE:
                raise GpuConstructsError(
                    f"gpu_node.vram must be at least 1Mi; got {self.vram!r}; write the unit, as in '24Gi'"
                )
        if self.gpu_model is not None and self.model is None:
            near = _fields.did_you_mean(self.gpu_model, (*GPU_MODELS, *(n.removeprefix("NVIDIA ") for n in GPU_MODELS)))
            raise GpuConstructsError(
                f"gpu_node.gpu_model must be a board of gpu_models.GPU_MODELS; got {self.gpu_model!r}{near}; leave it "
                "out and pass vram='...' for another"
            )

    @property
    def model(self) -> GpuModel | None:
        """What is known of the board."""
        return None if self.gpu_model is None else known_model(self.gpu_model)

    @property
    def vram_mib(self) -> int | None:
        """Memory of one board in MiB; None where it is not known."""
        if self.vram is not None:
            return int(_fields.amount(self.vram) / MEBIBYTE)
        return None if self.model is None else self.model.vram_mib

    @property
    def mig_profiles(self) -> tuple[str, ...] | None:
        """The MIG profiles of the board, none where it has no MIG; None where it is not known."""
        return None if self.model is None else MIG_PROFILES.get(self.model.name)


@dataclass(frozen=True, kw_only=True)
class GpuInventory(metaclass=ShortErrors):
    """All nodes with GPUs of one cluster.

    Attributes:
        nodes: The nodes and pools, each name once.

    Raises:
        GpuConstructsError: No node, or a name that is there twice.
    """

    nodes: Sequence[GpuNode]

    def __post_init__(self) -> None:
        _fields.members(self, "gpu_inventory")
        object.__setattr__(self, "nodes", tuple(self.nodes))
        if not self.nodes:
            raise GpuConstructsError("gpu_inventory.nodes must hold at least one GpuNode; got none")
        names = [node.name for node in self.nodes]
        for name in names:
            if names.count(name) > 1:
                raise GpuConstructsError(
                    f"gpu_inventory.nodes must have names of their own; got {name!r} twice; use count= for nodes that "
                    "are alike"
                )

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
        """How many containers may hold one GPU, or one slot of a shared one, at a time."""
        return self.gpus * sharing.resources.get(GPU, 1)

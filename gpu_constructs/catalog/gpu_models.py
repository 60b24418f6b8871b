"""Catalog of GPU boards (physical cards) with their memory and power limits, by the name that ``nvidia-smi`` prints.

The library uses this data for checks and estimates during ``synth``. Because board makers change power limits, the pods
of ``PowerLimit`` read the limits of a board from the NVIDIA driver.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import NamedTuple

_MPS_CLIENTS = 48
_MPS_CLIENTS_OF = {"Maxwell": 16, "Pascal": 16, "Volta": 16}
# Characters that GPU Feature Discovery removes from the name of a board for its label.
_NOT_IN_LABELS = re.compile(r"[^A-Za-z0-9-_. ]")


def mps_clients(architecture: str) -> int:
    """Return the largest number of MPS clients that the MPS control daemon of the device plugin allows on a GPU.

    From compute capability 7.5 on, the daemon allows 48 clients. For earlier GPUs, it allows 16 clients. If the
    configuration sets a larger number, the daemon exits.

    Args:
        architecture: Architecture of the GPU, such as ``Ampere``. For an unknown architecture, the result is 48.

    Source:
        NVIDIA/k8s-device-plugin@v0.20.0:cmd/mps-control-daemon/mps/device.go
    """
    return _MPS_CLIENTS_OF.get(architecture, _MPS_CLIENTS)


class GpuModel(NamedTuple):
    """The data of a GPU board (a physical card) in the catalog. A number that is unknown is None.

    Attributes:
        name: Name that ``nvidia-smi`` prints.
        architecture: Name of the architecture, such as ``Ampere``.
        vram_mib: Total memory that ``nvidia-smi`` prints, in MiB. It is less than the memory on the data sheet.
        default_watts: Default power limit, in watts.
        min_watts: Lowest power limit that the board accepts, in watts.
        max_watts: Highest power limit that a source reports for a board of this name, in watts.
    """

    name: str
    architecture: str
    vram_mib: int | None
    default_watts: int | None
    min_watts: int | None
    max_watts: int | None

    def watts_in_words(self) -> str:
        """Return the range of allowed power limits as text for messages, such as ``100 to 480 W``.

        Return an empty text if both the minimum and the maximum are unknown.
        """
        if self.min_watts is not None and self.max_watts is not None:
            return f"{self.min_watts} to {self.max_watts} W"
        if self.min_watts is not None:
            return f"{self.min_watts} W or more"
        return "" if self.max_watts is None else f"{self.max_watts} W or less"


# Source: captured output of nvidia-smi, with three exceptions: the minimum of the 3090 (influxdata/telegraf, test data
# of its nvidia_smi input), the default of the 5070 Ti (data sheets of board makers) and the memory of the A10G
# (inferred). A maximum is the highest value in a source. Makers of the 5070 Ti allow up to 116 % of different defaults,
# so it has none. Boards with the same name and different memory (3060, 3080, 4060 Ti, 5060 Ti) have None. Professional
# boards with GDDR memory have their default setting of ECC, which takes a sixteenth of the memory: off for workstation
# boards, on for data center boards.
_MODELS = (
    ("NVIDIA GeForce RTX 2080 SUPER", "Turing", 8192, 250, 105, 350),
    ("NVIDIA GeForce RTX 3060", "Ampere", None, 170, None, None),
    ("NVIDIA GeForce RTX 3060 Ti", "Ampere", 8192, None, None, None),
    ("NVIDIA GeForce RTX 3070", "Ampere", 8192, None, None, None),
    ("NVIDIA GeForce RTX 3070 Ti", "Ampere", 8192, None, None, None),
    ("NVIDIA GeForce RTX 3080", "Ampere", None, None, None, None),
    ("NVIDIA GeForce RTX 3080 Ti", "Ampere", 12288, None, None, None),
    ("NVIDIA GeForce RTX 3090", "Ampere", 24576, 350, 100, 480),
    ("NVIDIA GeForce RTX 3090 Ti", "Ampere", 24564, None, None, None),
    ("NVIDIA GeForce RTX 4060", "Ada Lovelace", 8188, None, None, None),
    ("NVIDIA GeForce RTX 4060 Ti", "Ada Lovelace", None, None, None, None),
    ("NVIDIA GeForce RTX 4070", "Ada Lovelace", 12282, None, None, None),
    ("NVIDIA GeForce RTX 4070 SUPER", "Ada Lovelace", 12282, None, None, None),
    ("NVIDIA GeForce RTX 4070 Ti", "Ada Lovelace", 12282, None, None, None),
    ("NVIDIA GeForce RTX 4070 Ti SUPER", "Ada Lovelace", 16376, None, None, None),
    ("NVIDIA GeForce RTX 4080", "Ada Lovelace", 16376, None, None, None),
    ("NVIDIA GeForce RTX 4080 SUPER", "Ada Lovelace", 16376, 320, 150, 400),
    ("NVIDIA GeForce RTX 4090", "Ada Lovelace", 24564, 450, 150, 600),
    ("NVIDIA GeForce RTX 5060", "Blackwell", 8151, None, None, None),
    ("NVIDIA GeForce RTX 5060 Ti", "Blackwell", None, 180, 150, None),
    ("NVIDIA GeForce RTX 5070", "Blackwell", 12227, None, None, None),
    ("NVIDIA GeForce RTX 5070 Ti", "Blackwell", 16303, 300, None, None),
    ("NVIDIA GeForce RTX 5080", "Blackwell", 16303, 360, None, None),
    ("NVIDIA GeForce RTX 5090", "Blackwell", 32607, 575, 400, 600),
    ("NVIDIA RTX A6000", "Ampere", 49140, None, None, None),
    ("NVIDIA RTX 6000 Ada Generation", "Ada Lovelace", 49140, None, None, None),
    ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "Blackwell", 97887, None, None, None),
    ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "Blackwell", 97887, 600, None, None),
    ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "Blackwell", 97887, None, None, None),
    ("Tesla T4", "Turing", 15360, None, None, None),
    ("NVIDIA A10", "Ampere", 23028, None, None, None),
    ("NVIDIA A10G", "Ampere", 23028, 300, 100, 300),
    ("NVIDIA A30", "Ampere", 24576, None, None, None),
    ("NVIDIA A40", "Ampere", 46068, None, None, None),
    ("NVIDIA A100-PCIE-40GB", "Ampere", 40960, None, None, None),
    ("NVIDIA A100-SXM4-40GB", "Ampere", 40960, 400, 100, 400),
    ("NVIDIA A100 80GB PCIe", "Ampere", 81920, None, None, None),
    ("NVIDIA A100-SXM4-80GB", "Ampere", 81920, 400, 100, 500),
    ("NVIDIA L4", "Ada Lovelace", 23034, 72, 40, 72),
    ("NVIDIA L40", "Ada Lovelace", 46068, None, None, None),
    ("NVIDIA L40S", "Ada Lovelace", 46068, 350, 100, 350),
    ("NVIDIA H100 80GB HBM3", "Hopper", 81559, 700, 200, 700),
    ("NVIDIA H100 NVL", "Hopper", 95830, 400, None, None),
    ("NVIDIA H100 PCIe", "Hopper", 81559, None, None, None),
    ("NVIDIA H200", "Hopper", 143771, 700, 200, 700),
    ("NVIDIA H200 NVL", "Hopper", 143771, None, None, None),
    ("NVIDIA GH200 480GB", "Hopper", 97871, None, None, None),
    ("NVIDIA B200", "Blackwell", 183359, 1000, None, None),
    ("NVIDIA B300 SXM6 AC", "Blackwell", 275040, None, None, None),
    ("NVIDIA GB200", "Blackwell", 189471, None, None, None),
)

GPU_MODELS: Mapping[str, GpuModel] = MappingProxyType({row[0]: GpuModel(*row) for row in _MODELS})
"""Catalog of GPU boards, by the name that ``nvidia-smi`` prints."""

_VENDOR = "NVIDIA "
_FULL_NAMES = ("NVIDIA", "Tesla", "Quadro", "GRID", "TITAN")
# Names of notebook GPUs before RTX end in M or MX, or have three digits.
_GEFORCE = r"GeForce (?:(RTX|GTX|GTS|GT|MX) ?)?([0-9]{3,4})(?:MX?)?(?: |\Z)"
# Model numbers of workstation boards end in two zeros, so these patterns match only GeForce boards.
_GEFORCE_NUMBER = r"(?:RTX [2-9]0[5-9]0|GTX 1[06][5-9]0)(?: |\Z)"
_TITAN = r"(?:GeForce GTX )?T(?i:itan)(?: |\Z)"
# Volta and later. A name with a dash and digits is a vGPU profile (A40-48Q), which does not match.
_PROFESSIONAL = (
    r"(?:Tesla )?(?:V100S?|T4|A2|A10G?|A16|A30X?|A40|A100X?|A800|L2|L4|L20|L40[SG]?|H20|H100|H200|H800|GH200"
    r"|B200|B300|GB200|GB300)(?![0-9A-Za-z]|-[0-9])"
    r"|Quadro (?:RTX [0-9]{4}|GV100)(?: |\Z)"
    r"|RTX A[0-9]{4}(?: |\Z)"
    r"|RTX [0-9]{4} (?:SFF )?Ada Generation(?: |\Z)"
    r"|RTX PRO [0-9]{4} Blackwell(?: |\Z)"
)


def _words(name: str) -> tuple[str, ...]:
    words = name.casefold().replace("-", " ").split()
    return tuple(word for word in words if word not in ("nvidia", "geforce", "tesla"))


_BY_WORDS = {_words(name): board for name, board in GPU_MODELS.items()}


def board_called(name: str) -> GpuModel | None:
    """Return the board of the catalog with the given name. Return None if the catalog does not contain it.

    The name can omit ``NVIDIA``, ``GeForce`` and ``Tesla``, for example ``rtx 3090``. The case does not matter.
    """
    return _BY_WORDS.get(_words(name))


def near_boards(name: str) -> str:
    """Return text for the end of a message that suggests boards of the catalog, such as `` (did you mean 'x'?)``.

    Return an empty text if no board of the catalog has a similar name.
    """
    glued = {"".join(words): board.name for words, board in _BY_WORDS.items()}
    near = _boards_with_words_of(name) or [glued[one] for one in get_close_matches("".join(_words(name)), glued, n=2)]
    return f" (did you mean {' or '.join(map(repr, near[:4]))}?)" if near else ""


def is_full_name(name: str) -> bool:
    """Check whether the name of a board begins like names from the NVIDIA driver, for example with ``NVIDIA``."""
    return name.startswith(_FULL_NAMES)


def doubt_of(name: str) -> str | None:
    """Return None for a plausible name of a board. Otherwise, return a suggestion such as `` (did you mean 'x'?)``.

    The suggestion is an empty text if the catalog has no similar name. All names in the catalog are plausible. A name
    with a prefix such as ``NVIDIA`` is also plausible if it resembles no name in the catalog.
    """
    if board_called(name) is not None or (is_full_name(name) and not _boards_with_words_of(name)):
        return None
    return near_boards(name)


def _boards_with_words_of(name: str) -> list[str]:
    asked = {*_words(name)}
    return [board.name for words, board in _BY_WORDS.items() if asked and asked <= {*words}]


def has_profiling_metrics(name: str) -> bool | None:
    """Check whether DCGM supports profiling metrics (``DCGM_FI_PROF_*``) for a board.

    Return None if the support is unknown for the name. DCGM supports these metrics for data center and workstation
    boards since Volta, and for GeForce boards since Blackwell.

    Source:
        NVIDIA/dcgm-exporter issues 152, 365, 404, 506; NVIDIA/DCGM issue 234
    """
    bare = re.sub(f"^{_VENDOR}", "", name, flags=re.IGNORECASE)
    if re.match(_GEFORCE_NUMBER, bare, re.IGNORECASE):
        bare = f"GeForce {bare}"
    if re.match(_TITAN, bare, re.IGNORECASE):
        return False
    if geforce := re.match(_GEFORCE, bare, re.IGNORECASE):
        family, number = (geforce[1] or "").upper(), int(geforce[2])
        if family != "RTX" or number < 5000:
            return False
        return True if number < 6000 else None
    return True if re.match(_PROFESSIONAL, bare, re.IGNORECASE) else None


def known_board(product: str) -> GpuModel | None:
    """Return the board of the catalog for a product name. Return None if the catalog does not contain the board.

    Args:
        product: Name that ``nvidia-smi`` prints, or value of the node label ``nvidia.com/gpu.product``.
    """
    return board_called(product.removesuffix("-SHARED"))


def product_label(product: str) -> str:
    """Return the value of the node label ``nvidia.com/gpu.product`` for a board, such as ``NVIDIA-GeForce-RTX-3090``.

    The result does not contain the suffix ``-SHARED``, which the label has if pods share the GPUs.

    Args:
        product: Name of the board.
    """
    model = known_board(product)
    name = product if model is None else model.name
    return "-".join(_NOT_IN_LABELS.sub("", name).split()).removesuffix("-SHARED")

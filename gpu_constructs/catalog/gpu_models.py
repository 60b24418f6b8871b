"""What is known of GPU boards by the name that ``nvidia-smi`` gives them.

For checks and estimates before anything runs. Board makers vary limits, so what runs on a node asks the driver.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import NamedTuple

_MPS_CLIENTS = 48
_MPS_CLIENTS_OF = {"Maxwell": 16, "Pascal": 16, "Volta": 16}
# What GPU Feature Discovery strips from a board's name before it makes a label of it.
_NOT_IN_LABELS = re.compile(r"[^A-Za-z0-9-_. ]")


def mps_clients(architecture: str) -> int:
    """Return how many clients of MPS the device plugin's control daemon allows on a GPU.

    It allows 48 from compute capability 7.5 on, whatever the driver does, and exits where it is told of more.

    Source:
        NVIDIA/k8s-device-plugin@v0.20.0:cmd/mps-control-daemon/mps/device.go
    """
    return _MPS_CLIENTS_OF.get(architecture, _MPS_CLIENTS)


class GpuModel(NamedTuple):
    """A board; None where it is not known.

    Attributes:
        name: As ``nvidia-smi`` prints it.
        architecture: NVIDIA's name of the chip's generation.
        vram_mib: Memory that ``nvidia-smi`` shows in all, which is less than what is sold.
        default_watts: The power limit it comes with.
        min_watts: The lowest power limit it takes.
        max_watts: The highest power limit that a board of this name was seen to take.
    """

    name: str
    architecture: str
    vram_mib: int | None
    default_watts: int | None
    min_watts: int | None
    max_watts: int | None

    def watts_in_words(self) -> str:
        """Return the range of its power limit as a phrase; empty where neither end is known."""
        if self.min_watts is not None and self.max_watts is not None:
            return f"{self.min_watts} to {self.max_watts} W"
        if self.min_watts is not None:
            return f"{self.min_watts} W or more"
        return "" if self.max_watts is None else f"{self.max_watts} W or less"


# Captured output of nvidia-smi, but for: the 3090's lower end (influxdata/telegraf, test data of its nvidia_smi
# input), the 5070 Ti's default (its makers' data sheets), the A10G's memory (inferred). A maximum is the highest
# that was seen; makers of the 5070 Ti allow up to 116 %, which is not one number. Where boards of one name have
# different memory (3060, 3080, 4060 Ti, 5060 Ti), none is known. Professional boards with GDDR memory are as shipped:
# ECC, which takes a sixteenth, is off on workstation boards and on in the data centre.
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
"""The boards that are known, by name."""

_VENDOR = "NVIDIA "
_FULL_NAMES = ("NVIDIA", "Tesla", "Quadro", "GRID", "TITAN")
# Notebook chips before the RTX boards end in M or MX, or have a number of three digits.
_GEFORCE = r"GeForce (?:(RTX|GTX|GTS|GT|MX) ?)?([0-9]{3,4})(?:MX?)?(?: |\Z)"
# No workstation board has such a number: theirs end in two zeros.
_GEFORCE_NUMBER = r"(?:RTX [2-9]0[5-9]0|GTX 1[06][5-9]0)(?: |\Z)"
_TITAN = r"(?:GeForce GTX )?T(?i:itan)(?: |\Z)"
# Volta and later. A dash and digits behind the name is a virtual GPU's profile (A40-48Q), which is another matter.
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
    """Return what is known of a board by its name, however much of the makers' names stands in it."""
    return _BY_WORDS.get(_words(name))


def near_boards(name: str) -> str:
    """Return `` (did you mean 'x' or 'y'?)`` for boards that a name may stand for, or nothing."""
    glued = {"".join(words): board.name for words, board in _BY_WORDS.items()}
    near = _boards_with_words_of(name) or [glued[one] for one in get_close_matches("".join(_words(name)), glued, n=2)]
    return f" (did you mean {' or '.join(map(repr, near[:4]))}?)" if near else ""


def is_full_name(name: str) -> bool:
    """Check whether a board's name begins as those that a driver reports."""
    return name.startswith(_FULL_NAMES)


def doubt_of(name: str) -> str | None:
    """Return None for a name that a board may have, else the boards that may be meant, as ``near_boards`` does."""
    if board_called(name) is not None or (is_full_name(name) and not _boards_with_words_of(name)):
        return None
    return near_boards(name)


def _boards_with_words_of(name: str) -> list[str]:
    asked = {*_words(name)}
    return [board.name for words, board in _BY_WORDS.items() if asked and asked <= {*words}]


def has_profiling_metrics(name: str) -> bool | None:
    """Check whether DCGM gives profiling metrics (``DCGM_FI_PROF_*``) of a board; None where the name does not tell.

    It does for data-centre and workstation boards since Volta, and for GeForce boards since Blackwell.

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
    """Return what is known of a board, in whatever case and as ``nvidia-smi`` or a node label has its name."""
    return board_called(product.removesuffix("-SHARED"))


def product_label(product: str) -> str:
    """Return a board's name as GPU Feature Discovery writes it into ``nvidia.com/gpu.product``, without ``-SHARED``."""
    model = known_board(product)
    name = product if model is None else model.name
    return "-".join(_NOT_IN_LABELS.sub("", name).split()).removesuffix("-SHARED")

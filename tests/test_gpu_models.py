"""What is known of GPU boards."""

import subprocess
import sys

import pytest

from gpu_constructs.gpu_models import GPU_MODELS, GpuModel, gpu_model, has_profiling_metrics


def test_a_board_is_found_by_its_very_name_with_or_without_the_vendor():
    board = GpuModel("NVIDIA GeForce RTX 3090", "Ampere", 24576, 350, 100, 480)
    assert gpu_model("NVIDIA GeForce RTX 3090") == board
    assert gpu_model("GeForce RTX 3090") is gpu_model("NVIDIA GeForce RTX 3090") is gpu_model("RTX 3090")
    assert gpu_model("T4") is gpu_model("Tesla T4") is not None


@pytest.mark.parametrize(
    "name",
    [
        "RTX 4000",
        "NVIDIA GeForce RTX 3090 Super",
        "nvidia geforce rtx 3090",
        "NVIDIA NVIDIA L4",
        "NVIDIA",
        "",
        " NVIDIA L4",
    ],
)
def test_a_name_that_is_nearly_one_is_none(name):
    assert gpu_model(name) is None


@pytest.mark.parametrize("board", GPU_MODELS.values(), ids=GPU_MODELS)
def test_what_is_known_of_a_board_makes_sense(board):
    assert board is GPU_MODELS[board.name]
    assert board.name.startswith(("NVIDIA ", "Tesla "))
    assert board.architecture in ("Turing", "Ampere", "Ada Lovelace", "Hopper", "Blackwell")
    least, default, most = board.min_watts or 1, board.default_watts, board.max_watts or 10_000
    assert least <= (default or least) <= most
    assert board.vram_mib is None or 8_000 < board.vram_mib < 300_000
    assert has_profiling_metrics(board.name) is ("GeForce" not in board.name or board.architecture == "Blackwell")


@pytest.mark.parametrize(
    ("least", "most", "words"),
    [(40, 72, "40 to 72 W"), (150, None, "150 W or more"), (None, 300, "300 W or less"), (None, None, "")],
)
def test_a_range_is_told_as_far_as_it_is_known(least, most, words):
    assert GpuModel("a", "b", None, None, least, most).watts_in_words() == words


def test_the_table_cannot_be_changed():
    with pytest.raises(TypeError):
        GPU_MODELS["a"] = None


@pytest.mark.parametrize(
    ("name", "has"),
    [
        ("NVIDIA GeForce RTX 5090", True),
        ("NVIDIA GeForce RTX 5070 Ti Laptop GPU", True),
        ("GeForce RTX 5060", True),
        ("NVIDIA GeForce RTX 4090", False),
        ("NVIDIA GeForce RTX 4090 D", False),
        ("NVIDIA GeForce RTX 3050", False),
        ("NVIDIA GeForce RTX 2080 SUPER", False),
        ("GeForce GTX 1080 Ti", False),
        ("RTX 3090", False),
        ("nvidia geforce rtx 3090", False),
        ("nvidia h200", True),
        ("RTX 3090 Ti", False),
        ("GTX 1080", False),
        ("RTX 5090", True),
        ("RTX 4000", None),
        ("NVIDIA GeForce GTX 1660", False),
        ("NVIDIA GeForce GT 1030", False),
        ("NVIDIA GeForce MX450", False),
        ("GeForce GTX 980M", False),
        ("NVIDIA TITAN RTX", False),
        ("TITAN V", False),
        ("NVIDIA TITAN Xp", False),
        ("GeForce GTX TITAN X", False),
        ("NVIDIA GeForce RTX 6090", None),
        ("NVIDIA A100-SXM4-80GB", True),
        ("NVIDIA A100 80GB PCIe", True),
        ("NVIDIA A10", True),
        ("NVIDIA L40", True),
        ("Tesla T4", True),
        ("Tesla V100-SXM2-16GB", True),
        ("NVIDIA GH200 480GB", True),
        ("NVIDIA H100 NVL", True),
        ("NVIDIA RTX A6000", True),
        ("NVIDIA RTX 6000 Ada Generation", True),
        ("NVIDIA RTX 4000 SFF Ada Generation", True),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", True),
        ("Quadro RTX 8000", True),
        ("Tesla P100-PCIE-16GB", None),
        ("Quadro P2000", None),
        ("NVIDIA A40-48Q", None),
        ("NVIDIA L400", None),
        ("NVIDIA Orin", None),
        ("A1000", None),
        ("", None),
    ],
)
def test_a_name_tells_whether_there_are_profiling_metrics(name, has):
    assert has_profiling_metrics(name) is has


def test_the_table_needs_no_construct_tree():
    code = (
        "import sys, gpu_constructs.gpu_models; print([m for m in ('jsii', 'cdk8s', 'typeguard') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"

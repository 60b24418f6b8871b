"""What is known of GPU boards."""

from gpu_constructs.catalog.gpu_models import GPU_MODELS, GpuModel, board_called, has_profiling_metrics


def test_a_board_is_known_by_its_words_and_not_by_nearly_all_of_them():
    board = GpuModel("NVIDIA GeForce RTX 3090", "Ampere", 24576, 350, 100, 480)
    for name in ("NVIDIA GeForce RTX 3090", "GeForce RTX 3090", "RTX 3090", "nvidia-geforce-rtx-3090"):
        assert board_called(name) == board, name
    for name in ("RTX 4000", "NVIDIA GeForce RTX 3090 Super", "NVIDIA", ""):
        assert board_called(name) is None, name


def test_what_is_known_of_a_board_makes_sense():
    for board in GPU_MODELS.values():
        assert board is GPU_MODELS[board.name] is board_called(board.name), board
        assert board.name.startswith(("NVIDIA ", "Tesla ")), board
        assert board.architecture in ("Turing", "Ampere", "Ada Lovelace", "Hopper", "Blackwell"), board
        least, default, most = board.min_watts or 1, board.default_watts, board.max_watts or 10_000
        assert least <= (default or least) <= most, board
        assert board.vram_mib is None or 8_000 < board.vram_mib < 300_000
        assert has_profiling_metrics(board.name) is ("GeForce" not in board.name or board.architecture == "Blackwell")


PROFILED = {
    True: [
        *("NVIDIA GeForce RTX 5090", "NVIDIA GeForce RTX 5070 Ti Laptop GPU", "GeForce RTX 5060", "nvidia h200"),
        *("RTX 5090", "NVIDIA A100-SXM4-80GB", "NVIDIA A100 80GB PCIe", "NVIDIA A10", "NVIDIA L40", "Tesla T4"),
        *("Tesla V100-SXM2-16GB", "NVIDIA GH200 480GB", "NVIDIA H100 NVL", "NVIDIA RTX A6000"),
        *("NVIDIA RTX 6000 Ada Generation", "NVIDIA RTX 4000 SFF Ada Generation"),
        *("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "Quadro RTX 8000"),
    ],
    False: [
        *("NVIDIA GeForce RTX 4090", "NVIDIA GeForce RTX 4090 D", "NVIDIA GeForce RTX 3050"),
        *("NVIDIA GeForce RTX 2080 SUPER", "GeForce GTX 1080 Ti", "RTX 3090", "nvidia geforce rtx 3090"),
        *("RTX 3090 Ti", "GTX 1080", "NVIDIA GeForce GTX 1660", "NVIDIA GeForce GT 1030", "NVIDIA GeForce MX450"),
        *("GeForce GTX 980M", "NVIDIA TITAN RTX", "TITAN V", "NVIDIA TITAN Xp", "GeForce GTX TITAN X"),
    ],
    None: [
        *("RTX 4000", "NVIDIA GeForce RTX 6090", "Tesla P100-PCIE-16GB", "Quadro P2000", "NVIDIA A40-48Q"),
        *("NVIDIA L400", "NVIDIA Orin", "A1000", ""),
    ],
}


def test_a_name_tells_whether_there_are_profiling_metrics():
    for has, names in PROFILED.items():
        assert [name for name in names if has_profiling_metrics(name) is not has] == [], has

"""Facts about GPU boards."""

from gpu_constructs.catalog.gpu_models import GPU_MODELS, GpuModel, board_called, has_profiling_metrics


def test_a_board_is_found_by_all_words_of_its_name_only():
    board = GpuModel("NVIDIA GeForce RTX 3090", "Ampere", 24576, 350, 100, 480)
    for name in ("NVIDIA GeForce RTX 3090", "GeForce RTX 3090", "RTX 3090", "nvidia-geforce-rtx-3090"):
        assert board_called(name) == board, name
    for name in ("RTX 4000", "NVIDIA GeForce RTX 3090 Super", "NVIDIA", ""):
        assert board_called(name) is None, name


def test_the_facts_about_a_board_are_consistent():
    for board in GPU_MODELS.values():
        assert board is GPU_MODELS[board.name] is board_called(board.name), board
        assert board.name.startswith(("NVIDIA ", "Tesla ")), board
        assert board.architecture in ("Turing", "Ampere", "Ada Lovelace", "Hopper", "Blackwell"), board
        least, default, most = board.min_watts or 1, board.default_watts, board.max_watts or 10_000
        assert least <= (default or least) <= most, board
        assert board.vram_mib is None or 8_000 < board.vram_mib < 300_000
        assert has_profiling_metrics(board.name) is ("GeForce" not in board.name or board.architecture == "Blackwell")


def test_the_name_determines_whether_there_are_profiling_metrics(rows):
    for has, names in rows:
        assert [name for name in names if has_profiling_metrics(name) is not has] == [], has

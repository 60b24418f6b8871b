from __future__ import annotations

import pytest

from capacity_consumers import gpus, job, node, planned, texts, told, wants

MAY = "memory of a GPU may run out, depending on which pods get it: "
NOBODY = "nobody can say whether memory of a GPU runs out: "


def half(name, **given):
    return wants(name, vram_mib=9_000, **given)


RUNS_OUT = [
    ([half("a"), half("b")], [node("n", gpus(1, 2))]),
    ([half("a", copies=2), half("b")], [node("n", gpus(3, 2))]),
    ([half("a"), half("b"), wants("c")], [node("n", gpus(4, 3))]),
    ([half("a"), wants("b")], [node("n", gpus(1, 2))]),
    ([wants("a"), wants("b")], [node("n", gpus(1, 2))]),
    ([half("a")], [node("n", gpus(1, 2, None)), node("m", gpus(1, 1, None))]),
    ([wants("a", vram_mib=20_000)], [node("n"), node("m", gpus(1, 1, 40_000))]),
    ([half("a")], [node("n", gpus(1, 2, vram_each_mib=8_000)), node("m")]),
    ([wants(name, vram_mib=4_000) for name in "abcdef"], [node("n", gpus(1, 6))]),
]


def test_memory_that_runs_out(snapshot):
    """The messages, one a row of RUNS_OUT, are in the snapshot."""
    assert "\n".join(told(consumers, nodes) for consumers, nodes in RUNS_OUT) == snapshot


@pytest.mark.parametrize(
    ("devices", "why"),
    [
        (gpus(1, 2), "each of n and m has GPU memory 16000Mi, of which a pod wants 20000Mi (gpu-constructs/vram)"),
        (gpus(1, 1), "each of n and m has GPU memory 16000Mi, of which a pod wants 20000Mi (gpu-constructs/vram)"),
        (
            gpus(1, 2, vram_each_mib=8_000),
            "each of n and m has GPU memory 16000Mi, of which MPS gives each holder 8000Mi and a pod wants 20000Mi "
            "(gpu-constructs/vram)",
        ),
    ],
)
def test_a_pod_too_large_for_every_gpu_is_said_once(devices, why):
    plan = planned([wants("a", vram_mib=20_000)], [node("n", devices), node("m", devices)])
    (problem,) = plan.problems
    assert problem.text == f"its pods want more memory than any GPU that they may get: {why}"
    assert problem.way_out == "take a smaller model or quantization, or a larger GPU"
    assert plan.vram == "overcommitted"
    assert plan.conflicts


def test_racks_that_draw_too_much():
    nodes = [node("n", gpu_watts=[300], rack="r", count=2), node("m", gpu_watts=[300], rack="s")]
    (problem,) = planned([], nodes, r=599, s=300, t=1).problems
    assert (problem.kind, problem.text) == (
        "power",
        "the GPUs of rack 'r' draw 600 W at their power limits, and it has 599 W",
    )


def test_racks_of_which_nobody_can_tell():
    nodes = [node("n", gpu_watts=[300, None], rack="r", count=2), node("m", gpu_watts=[None], rack="s")]
    (problem,) = planned([], nodes, r=700).problems
    assert (problem.kind, problem.text, problem.way_out) == (
        "power",
        "whether the GPUs of rack 'r' draw more than the 700 W that it has cannot be told: the power of 2 boards (n) "
        "is not known, and the others draw 600 W at their power limits",
        "name the board with GpuNode(gpu_model=...), or hold it with GpuNode(power_limit=...)",
    )
    (text,) = texts(planned([], nodes, s=1), "power")
    assert "of rack 's' draw more than the 1 W that it has cannot be told: the power of 1 board (m) is" in text
    (text,) = texts(planned([], nodes, r=500), "power")
    assert text.endswith("draw 600 W at their power limits, and it has 500 W; the power of 2 boards (n) is not known")


def test_a_pod_meets_its_own_new_one_while_it_is_updated():
    plan = planned([half("a", surge=1)], [node("n", gpus(1, 4))])
    assert plan.vram == "depends"
    (problem,) = plan.problems
    assert "too much for one GPU: 2 x ml/a (while it is updated)" in problem.text
    assert problem.way_out.startswith("an update that takes old pods away first (Recreate, or maxSurge 0), or ")
    assert planned([half("a", surge=1)], [node("n", gpus(2, 1))]).vram == "safe"


def test_pods_that_wait_for_slots_are_named():
    jobs = [job(name, vram_mib=vram) for name, vram in (("a", 9_000), ("b", 9_000), ("c", 1_000))]
    plan = planned(jobs, [node("n", gpus(1, 2))])
    assert plan.vram == "depends"
    assert texts(plan, "vram") == [
        f"{MAY}pods that may meet on one GPU take up to 18000 of its 16000 MiB (113 %); too much for one GPU: ml/a and "
        "ml/b; not all run at once: pods of ml/c wait for slots"
    ]


def test_what_is_too_much_by_itself_is_no_reason_of_those_that_say_nothing():
    plan = planned([wants("a", vram_mib=9_000), wants("b")], [node("n", gpus(1, 2, vram_each_mib=8_000))])
    assert plan.vram == "overcommitted"
    assert texts(plan, "vram")[1:] == [f"{NOBODY}ml/b states no budget"]


def test_slots_that_count_memory_are_not_told_to_do_so():
    consumers = [wants(name, 1, vram_mib=9_000) for name in "ab"]
    (problem,) = planned(consumers, [node("n", gpus(1, 16), vram_unit_mib=1_024)]).problems
    assert problem.way_out == "smaller budgets, or MIG"

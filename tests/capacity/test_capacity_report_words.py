from dataclasses import replace

import pytest

import capacity_examples as examples
from gpu_constructs.capacity.planned import Problem
from gpu_constructs.capacity.report import words
from gpu_constructs.capacity.report.verdict import verdict
from tables import cases

SHARED = "Memory is safe: it suffices for any pods that can share a device."
NOT_SHARED = "No two pods share a device. The memory of some devices is not known."
SILENT, BLANK = "not every pod states how much it takes", "the inventory does not state the memory of k8s-worker4"


def memory_of(plan):
    return verdict(plan)[1]


def on_boards(*devices, vram="safe", **given):
    """Return the example of one GPU with a changed device, once for each change."""
    plan = examples.one_gpu()
    (node,) = plan.nodes
    (planned,) = node.devices
    changed = [replace(planned, **given, device=replace(planned.device, **changes)) for changes in devices]
    return replace(plan, vram=vram, nodes=[replace(node, devices=changed)])


def silent(plan, *indices):
    """Return a plan in which some consumers state no memory."""
    changed = [
        replace(one, consumer=replace(one.consumer, vram_mib=None, typical_vram_mib=None)) if at in indices else one
        for at, one in enumerate(plan.consumers)
    ]
    return replace(plan, consumers=changed)


def test_safe_memory_has_sentences_for_shared_and_unshared_devices(rows):
    for devices, says in rows:
        assert memory_of(on_boards(*devices)).text == says
    alone = on_boards({"vram_mib": None})
    assert memory_of(replace(alone, consumers=alone.consumers[:1])).text == NOT_SHARED
    empty = on_boards({"slots": 1}, seats=())
    assert memory_of(empty) == ("unknown", "No pod has a place, so the plan did not check memory.")
    unplaced = [replace(one, placed=0, waiting=0) for one in empty.consumers]
    assert memory_of(replace(empty, consumers=unplaced)).text == "Memory is safe: no two pods share a device."


def test_unknown_memory_is_attributed_to_pods_or_boards(rows):
    for device, is_silent, says in rows:
        said = memory_of(on_boards(device, vram="unknown", has_unknown=is_silent))
        assert said == ("unknown", f"Memory is not known: {says}.")


def test_whether_memory_can_run_out_is_a_sentence(rows):
    for vram, level, begins in rows:
        said = memory_of(replace(examples.one_gpu(), vram=vram))
        assert (said.level, said.text.startswith(begins)) == (level, True)


def test_whether_it_fits_is_a_sentence(rows):
    for always, everything, says in rows:
        plan = replace(examples.waiting(), always_fits=always, all_fits=everything)
        assert verdict(plan)[0].text == says


def test_a_sentence_begins_with_a_capital_and_a_name_stays_as_it_is():
    assert words.sentence("no node takes it") == "No node takes it"
    for text in ("1 of 9 waits", "ml/a wants", "k8s-worker4 has", "maxSurge 0", "GpuNode(vram=...)", ""):
        assert words.sentence(text) == text


def test_control_characters_are_replaced_and_others_kept():
    for char in "\x00\x1b\x7f\x9b\u061c\u200e\u202e\u2066\u2028\ud800\uffff":
        assert words.readable(f"a{char}b") == "a\ufffdb", ascii(char)
    for text in ("a b", "\u4e16\u754c", "na\u00efve", "\u05d0"):
        assert words.readable(text) == text
    assert words.readable("a\nb\tc\rd") == "a b c d"


def test_a_problem_has_a_title_with_its_kind_and_its_object():
    named = words.subjects(examples.waiting())
    for subject, says in ((0, "Too few GPUs: Deployment ai/inference"), (99, "Too few GPUs"), (None, "Too few GPUs")):
        assert words.problem_title(Problem("slots", subject, "", ""), named) == says


def test_a_percentage_above_100_is_never_rounded_to_100():
    shares = [words.percent(*one) for one in ((30720, 16303), (1001, 1000), (1000, 1000), (1, 0))]
    assert shares == [188, 101, 100, 0]


def test_the_state_of_a_device_follows_its_memory():
    device = examples.one_gpu().nodes[0].devices[0]
    safe = replace(device, seated_mib=100, worst_mib=16303)
    blind = replace(device, device=replace(device.device, vram_mib=None))
    those = (device, replace(device, seated_mib=16303), safe, replace(safe, has_unknown=True), blind)
    assert [words.state(one).level for one in those] == ["bad", "warn", "good", "unknown", "unknown"]


def test_equal_notes_are_listed_once():
    plan = examples.one_gpu()
    noted = [replace(one, consumer=replace(one.consumer, notes=("is guessed",))) for one in plan.consumers]
    said = words.assumptions(replace(plan, consumers=noted, notes=["ai/ollama: is guessed"]))
    assert said[:2] == ["ai/ollama: is guessed", "k8s-worker4: has the 16303 MiB that its board is known to have"]
    assert said[2:] == ["ai/comfyui, ai/notebook, ai/train Worker and 1 more: is guessed"]


def test_pods_without_a_budget_are_not_shown_as_zero_memory():
    plan = examples.one_gpu()
    planned = plan.nodes[0].devices[0]
    nothing = replace(planned, typical_mib=0, seated_mib=0, worst_mib=12288)
    everyone = silent(plan, *range(len(plan.consumers)))
    some = replace(planned, typical_mib=1024, seated_mib=2048, worst_mib=12288)
    for short in (False, True):
        assert words.amounts(everyone, nothing, short=short)[:2] == [("typical", "?"), ("at most", "?")]
    assert words.amounts(silent(plan, 0), some) == [
        ("typical", "at least 1.0 GiB (6 %)"),
        ("at most", "at least 2.0 GiB (13 %)"),
        ("worst case", "at least 12.0 GiB (75 %)"),
    ]
    assert (
        words.taken(silent(plan, 0), some)
        == "typical \u2265 1.0 GiB; at most \u2265 2.0 GiB; worst \u2265 12.0 GiB (75 %)"
    )
    assert words.amounts(plan, some)[0] == ("typical", "1.0 GiB (6 %)")
    free = replace(planned, seats=(), typical_mib=0, seated_mib=0, worst_mib=0, has_unknown=True)
    assert [amount for _, amount in words.amounts(plan, free)] == ["0 MiB (0 %)", "0 MiB (0 %)", "?"]


@cases
def test_a_conflict_of_similar_amounts_is_stated_in_mib(together, has, says):
    plan = examples.one_gpu()
    assert says in words.conflict(plan, replace(plan.conflicts[0], together_mib=together, vram_mib=has))


@pytest.mark.parametrize("form", ["to_text", "to_html", "to_svg"])
def test_no_form_of_the_report_shows_unknown_memory_as_zero(form):
    plan = on_boards({}, typical_mib=0, seated_mib=0, worst_mib=12288, vram="unknown")
    made = getattr(silent(plan, *range(len(plan.consumers))), form)("home")
    assert "0 MiB" not in made
    assert "at most ?" in " ".join(made.replace("[" + "." * 30 + "]", "").split())

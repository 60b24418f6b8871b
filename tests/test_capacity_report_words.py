import json
from dataclasses import replace

import pytest

import capacity_examples as examples
from gpu_constructs.capacity.plan import Problem
from gpu_constructs.capacity.report import words


def memory_of(plan):
    return words.verdict(plan)[1]


def on_boards(*devices, vram="safe", **given):
    """Give the example of one GPU with its device changed, once for each of the changes."""
    plan = examples.one_gpu()
    (node,) = plan.nodes
    (planned,) = node.devices
    changed = [replace(planned, **given, device=replace(planned.device, **changes)) for changes in devices]
    return replace(plan, vram=vram, nodes=[replace(node, devices=changed)])


@pytest.mark.parametrize(
    ("devices", "says"),
    [
        ([{"slots": 5}], "Memory is safe: whichever pods meet on a device, it holds them."),
        ([{"slots": 1}, {"slots": 1}], "Memory is safe: no two pods share a device."),
        (
            [{"slots": 1}, {"slots": 1, "vram_mib": None}],
            "No two pods share a device; how much memory some of them have is not known.",
        ),
        ([{"slots": 1}, {"slots": 2}], "Memory is safe: whichever pods meet on a device, it holds them."),
    ],
)
def test_safe_memory_is_said_of_devices_that_are_shared_or_not(devices, says):
    assert memory_of(on_boards(*devices)).text == says


def test_one_pod_alone_shares_with_nobody():
    plan = on_boards({"vram_mib": None})
    assert memory_of(replace(plan, consumers=plan.consumers[:1])).text.startswith("No two pods share a device")


@pytest.mark.parametrize(
    ("devices", "is_silent", "says"),
    [
        ([{}], True, "not every pod says how much it takes"),
        ([{"vram_mib": None}], False, "nobody says how much the GPUs of k8s-worker4 have"),
        (
            [{"vram_mib": None}],
            True,
            "not every pod says how much it takes, and nobody says how much the GPUs of k8s-worker4 have",
        ),
        ([{}], False, "not every pod says how much it takes"),
    ],
)
def test_what_is_unknown_of_memory_is_said_of_pods_or_of_boards(devices, is_silent, says):
    said = memory_of(on_boards(*devices, vram="unknown", has_unknown=is_silent))
    assert said == ("unknown", f"Memory is not known: {says}.")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("no node takes it", "No node takes it"),
        ("1 of 9 waits", "1 of 9 waits"),
        ("ml/a wants", "ml/a wants"),
        ("k8s-worker4 has", "k8s-worker4 has"),
        ("maxSurge 0", "maxSurge 0"),
        ("GpuNode(vram=...)", "GpuNode(vram=...)"),
        ("", ""),
    ],
)
def test_a_sentence_begins_with_a_capital_and_a_name_stays_as_it_is(text, says):
    assert words.sentence(text) == says


@pytest.mark.parametrize(
    "char", ["\x00", "\x1b", "\x7f", "\x9b", "\u061c", "\u200e", "\u202e", "\u2066", "\u2028", "\ud800", "\uffff"]
)
def test_a_character_that_turns_or_commands_is_replaced(char):
    assert words.readable(f"a{char}b") == "a\ufffdb"


@pytest.mark.parametrize("text", ["a b", "\u4e16\u754c", "na\u00efve", "\u05d0"])
def test_any_other_text_stays_as_it_is(text):
    assert words.readable(text) == text


def test_a_line_break_is_a_space():
    assert words.readable("a\nb\tc\rd") == "a b c d"


def test_a_problem_is_called_by_its_kind_and_its_object():
    named = words.subjects(examples.waiting())
    assert words.problem_title(Problem("slots", 0, "", ""), named) == "Too few GPUs: Deployment ai/inference"
    assert words.problem_title(Problem("slots", 99, "", ""), named) == "Too few GPUs"
    assert words.problem_title(Problem("slots", None, "", ""), named) == "Too few GPUs"


@pytest.mark.parametrize(
    ("always", "everything", "says"),
    [
        ("yes", "yes", "Everything fits: every pod has a place at once."),
        ("yes", "no", "Everything fits, but not at once: 1 of 9 pods waits."),
        ("yes", "undecided", "What always runs fits; whether everything does at once is undecided."),
        ("no", "no", "Does not fit: not even what always runs has a place."),
        ("undecided", "no", "Undecided: neither a place for all that always runs was found, nor that none is."),
    ],
)
def test_whether_it_fits_is_a_sentence(always, everything, says):
    plan = replace(examples.waiting(), always_fits=always, all_fits=everything)
    assert words.verdict(plan)[0].text == says


@pytest.mark.parametrize(
    ("vram", "level", "begins"),
    [
        ("safe", "good", "Memory is safe"),
        ("depends", "warn", "Memory depends on who meets whom"),
        ("overcommitted", "bad", "Memory is overcommitted"),
        ("unknown", "unknown", "Memory is not known"),
        ("undecided", "unknown", "Memory is undecided"),
    ],
)
def test_whether_memory_can_run_out_is_a_sentence(vram, level, begins):
    said = words.verdict(replace(examples.one_gpu(), vram=vram))[1]
    assert (said.level, said.text.startswith(begins)) == (level, True)


def test_a_share_is_never_rounded_to_all_when_it_is_too_much():
    assert words.percent(30720, 16303) == 188
    assert words.percent(1001, 1000) == 101
    assert words.percent(1000, 1000) == 100
    assert words.percent(1, 0) == 0


def test_the_state_of_a_device_follows_its_memory():
    (node,) = examples.one_gpu().nodes
    (device,) = node.devices
    assert words.state(device).level == "bad"
    assert words.state(replace(device, seated_mib=16303)).level == "warn"
    safe = replace(device, seated_mib=100, worst_mib=16303)
    assert words.state(safe).level == "good"
    assert words.state(replace(safe, has_unknown=True)).level == "unknown"
    assert words.state(replace(device, device=replace(device.device, vram_mib=None))).level == "unknown"


def test_a_note_that_several_share_is_said_once():
    plan = examples.one_gpu()
    noted = [replace(one, consumer=replace(one.consumer, notes=("is guessed",))) for one in plan.consumers]
    said = words.assumptions(replace(plan, consumers=noted, notes=["ai/ollama is there"]))
    assert "ai/ollama, ai/comfyui, ai/notebook and 2 more: is guessed" in said
    assert sum("is guessed" in one for one in said) == 1


def test_a_note_that_the_plan_has_already_is_not_said_again():
    plan = replace(examples.one_gpu(), notes=["ai/notebook: takes 4 GiB, as nobody says"])
    assert sum("nobody says" in one for one in words.assumptions(plan)) == 1


def silent(plan, *indices):
    """Let some of the consumers of a plan say nothing of memory."""
    changed = [
        replace(one, consumer=replace(one.consumer, vram_mib=None, typical_vram_mib=None)) if at in indices else one
        for at, one in enumerate(plan.consumers)
    ]
    return replace(plan, consumers=changed)


def test_memory_of_pods_that_say_nothing_is_not_said_to_be_none():
    plan = examples.one_gpu()
    planned = plan.nodes[0].devices[0]
    everyone = range(len(plan.consumers))
    nothing = replace(planned, typical_mib=0, seated_mib=0, worst_mib=12288)
    assert words.amounts(silent(plan, *everyone), nothing)[:2] == [("typical", "?"), ("at most", "?")]
    assert words.short_amounts(silent(plan, *everyone), nothing)[:2] == [("typical", "?"), ("at most", "?")]
    some = replace(planned, typical_mib=1024, seated_mib=2048, worst_mib=12288)
    seat = planned.seats[0].consumer
    assert words.amounts(silent(plan, seat), some) == [
        ("typical", "at least 1.0 GiB (6 %)"),
        ("at most", "at least 2.0 GiB (13 %)"),
        ("worst case", "at least 12.0 GiB (75 %)"),
    ]
    assert words.short_amounts(silent(plan, seat), some) == [
        ("typical", "\u2265 1.0 GiB"),
        ("at most", "\u2265 2.0 GiB"),
        ("worst", "\u2265 12.0 GiB (75 %)"),
    ]
    assert words.amounts(plan, some)[0] == ("typical", "1.0 GiB (6 %)")
    free = replace(planned, seats=(), typical_mib=0, seated_mib=0, worst_mib=0, has_unknown=True)
    assert [amount for _, amount in words.amounts(plan, free)] == ["0 MiB (0 %)", "0 MiB (0 %)", "?"]


@pytest.mark.parametrize(
    ("together", "has", "says"),
    [(24576, 24564, "want 24576 MiB of the 24564 MiB of"), (30720, 24564, "want 30.0 GiB of the 24.0 GiB of")],
)
def test_a_conflict_of_two_amounts_that_look_alike_is_said_in_mib(together, has, says):
    plan = examples.one_gpu()
    assert says in words.conflict(plan, replace(plan.conflicts[0], together_mib=together, vram_mib=has))


def test_memory_is_not_safe_where_no_pod_has_a_place():
    plan = on_boards({"slots": 1}, seats=())
    assert memory_of(plan) == ("unknown", "No pod has a place, so memory was not looked at.")
    nobody = [replace(one, placed=0, waiting=0) for one in plan.consumers]
    assert memory_of(replace(plan, consumers=nobody)).text == "Memory is safe: no two pods share a device."


def test_other_programs_are_told_which_amounts_are_the_least():
    plan = examples.one_gpu()
    said = json.loads(silent(plan, 0).to_json("home"))["nodes"][0]["devices"][0]
    told = json.loads(plan.to_json("home"))["nodes"][0]["devices"][0]
    assert (said["isAtLeast"], told["isAtLeast"]) == (True, False)


@pytest.mark.parametrize("form", ["to_text", "to_html", "to_svg"])
def test_no_form_of_the_report_says_that_silent_pods_take_nothing(form):
    plan = on_boards({}, typical_mib=0, seated_mib=0, worst_mib=12288, vram="unknown")
    made = getattr(silent(plan, *range(len(plan.consumers))), form)("home")
    assert "0 MiB" not in made
    assert "at most ?" in " ".join(made.replace("[" + "." * 30 + "]", "").split())

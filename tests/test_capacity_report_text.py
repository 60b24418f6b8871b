from dataclasses import replace

import pytest

import capacity_examples as examples
from gpu_constructs.capacity.report import words
from gpu_constructs.capacity.report.as_text import COLUMNS, text


@pytest.mark.parametrize("name", examples.PLANS)
def test_it_is_never_wider_than_100_columns_and_the_same_each_time(name):
    made = text(examples.PLANS[name](), name)
    assert max(map(len, made.splitlines())) <= COLUMNS
    assert made == text(examples.PLANS[name](), name)
    assert made.endswith("\n")
    assert not any(line.endswith(" ") for line in made.splitlines())


def test_it_says_the_verdict_first(snapshot):
    assert text(examples.one_gpu(), "home") == snapshot


def test_a_pod_that_waits_is_said_with_why_and_a_way_out(snapshot):
    assert text(examples.waiting(), "workstation") == snapshot


def test_divided_boards_that_are_alike_are_one_entry(snapshot):
    assert text(examples.mig(), "mig") == snapshot


def test_it_says_which_node_refuses_a_pod_and_why():
    made = " ".join(text(examples.refused(), "refused").split())
    assert "k8s-worker4: it has 1 nvidia.com/gpu and a pod asks for 2" in made
    assert "old: the pod does not tolerate its taint" in made
    assert "nowhere" in made


def test_a_plan_of_nothing_says_so():
    assert text(examples.empty(), "none") == "GPU capacity: none\n\n[ok] Nothing asks for GPUs.\n"


def test_a_fleet_is_said_whole():
    made = text(examples.fleet(), "fleet")
    assert "render 1 to 600 (each of 600 nodes)" in made
    assert all(f"gpu-{number:03}:" in made for number in range(400))
    assert all(f"/team-{number % 40:02}-service-{number:04} (" in made for number in range(5_000))


def test_no_name_makes_a_line_of_its_own_or_turns_one_round():
    made = text(examples.hostile(), "a\nb\u202ec\x1b[31m")
    assert made.startswith("GPU capacity: a b\ufffdc\ufffd[31m\n")
    assert not {"\u202e", "\x00", "\ud800", "\x1b"} & set(made)
    assert "\nsecond line" not in made


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

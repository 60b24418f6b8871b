from dataclasses import replace
from functools import cache

import pytest

import capacity_examples as examples
from gpu_constructs.capacity.plan import Problem
from gpu_constructs.capacity.report.as_text import COLUMNS, text


@cache
def made_of(name):
    """Write an example once: one of them is of a whole fleet."""
    return text(examples.PLANS[name](), name)


@pytest.mark.parametrize("name", examples.PLANS)
def test_it_is_never_wider_than_100_columns_and_the_same_each_time(name):
    made = made_of(name)
    assert max(map(len, made.splitlines())) <= COLUMNS
    if name != "fleet":
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


def test_memory_that_is_not_known_is_said_to_be_once():
    (line,) = [one for one in text(examples.mig(), "mig").splitlines() if "slots 1/1" in one and "each" not in one][-1:]
    assert line == "  GPU 0: nvidia.com/gpu, slots 1/1, memory not known"


def test_a_plan_of_nothing_says_so():
    assert text(examples.empty(), "none") == "GPU capacity: none\n\n[ok] Nothing asks for GPUs.\n"


def test_a_fleet_is_said_whole():
    made = made_of("fleet")
    assert "render 1 to 600 (each of 600 nodes)" in made
    starts = {line.split(" ", 1)[0] for line in made.splitlines()}
    assert {f"gpu-{number:03}:" for number in range(400)} <= starts
    assert {f"team-{number % 40:02}/team-{number % 40:02}-service-{number:04}" for number in range(5_000)} <= starts


def test_no_name_makes_a_line_of_its_own_or_turns_one_round():
    made = text(examples.hostile(), "a\nb\u202ec\x1b[31m")
    assert made.startswith("GPU capacity: a b\ufffdc\ufffd[31m\n")
    assert not {"\u202e", "\x00", "\ud800", "\x1b"} & set(made)
    assert "\nsecond line" not in made


def with_names(namespace, name):
    plan = examples.one_gpu()
    renamed = [replace(one.consumer, namespace=namespace, name=f"{name}{i}") for i, one in enumerate(plan.consumers)]
    return replace(
        plan, consumers=[replace(one, consumer=new) for one, new in zip(plan.consumers, renamed, strict=True)]
    )


def test_a_name_is_never_broken_at_its_hyphens():
    made = text(with_names("kubeflow-user", "gpu-training-job-of-a-team-"), "home")
    held = made[made.index("held by") : made.index("Who asks")]
    assert [held.count(f"kubeflow-user/gpu-training-job-of-a-team-{number}") for number in range(5)] == [1] * 5
    assert len(held.splitlines()) > 3


def test_one_wide_character_does_not_narrow_the_sentence_about_it():
    plan = examples.waiting()
    problem = Problem("slots", None, "a \u4e16 " + "word " * 60, "wait")
    lines = text(replace(plan, problems=[problem]), "home").splitlines()
    begin = next(i for i, line in enumerate(lines) if "Why: A \u4e16" in line)
    assert len(lines[begin]) > 90


def test_wide_characters_take_two_columns_each():
    sentence = "\u4e16\u754c" * 60
    lines = [one for one in text(replace(examples.empty(), advice=[sentence]), "x").splitlines() if "\u4e16" in one]
    assert [len(one) for one in lines] == [51, 51, 24]
    assert "".join(one.strip("- ") for one in lines) == sentence


def test_a_problem_says_why_and_what_to_do_in_sentences():
    made = text(examples.one_gpu(), "home")
    assert "     Why: The pods that always run want 24.0 GiB of the 15.9 GiB of k8s-worker4 GPU 0\n" in made
    assert "     Way out: Share it by slices of memory, lower a budget, or add a board\n" in made


def test_no_problem_turns_a_line_round_or_writes_to_the_terminal():
    evil = "a\u202eb\x1b[31mc\nd\u061c"
    plan = replace(examples.waiting(), problems=[Problem("slots", None, evil, evil)], advice=[evil], notes=[evil])
    assert not {"\u202e", "\x1b", "\u061c"} & set(text(plan, evil))

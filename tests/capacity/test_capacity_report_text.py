import subprocess
import sys
from dataclasses import replace

import capacity_examples as examples
from gpu_constructs.capacity.planned import Problem
from gpu_constructs.capacity.report.written import COLUMNS, text


def test_no_plan_is_wider_than_100_columns():
    for name, plan in examples.PLANS.items():
        made = text(plan(), name)
        assert max(map(len, made.splitlines())) <= COLUMNS, name
        assert made.endswith("\n"), name
        assert not any(line.endswith(" ") for line in made.splitlines()), name


def test_the_report_begins_with_the_verdict(snapshot):
    assert text(examples.one_gpu(), "home") == snapshot


def test_a_waiting_pod_has_a_reason_and_an_instruction(snapshot):
    assert text(examples.waiting(), "workstation") == snapshot


def test_equal_divided_boards_are_one_entry(snapshot):
    assert text(examples.mig(), "mig") == snapshot


def test_the_report_states_which_node_rejects_a_pod_and_why():
    made = " ".join(text(examples.refused(), "refused").split())
    assert "k8s-worker4: it has 1 nvidia.com/gpu and a pod asks for 2" in made
    assert "old: the pod does not tolerate its taint" in made
    assert "nowhere" in made


def test_an_empty_plan_states_that_it_is_empty():
    assert text(examples.empty(), "none") == "GPU capacity: none\n\n[ok] No pod requests GPUs.\n"


def test_the_report_of_a_fleet_is_complete():
    made = text(examples.fleet(), "fleet")
    assert "render 1 to 600 (each of 600 nodes)" in made
    starts = {line.split(" ", 1)[0] for line in made.splitlines()}
    assert {f"gpu-{number:03}:" for number in range(200)} <= starts
    assert {f"team-{number % 40:02}/team-{number % 40:02}-service-{number:04}" for number in range(1_000)} <= starts


def test_no_name_breaks_or_reverses_a_line():
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
    held = made[made.index("held by") : made.index("Pods that request")]
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


def test_no_problem_reverses_a_line_or_controls_the_terminal():
    evil = "a\u202eb\x1b[31mc\nd\u061c"
    plan = replace(examples.waiting(), problems=[Problem("slots", None, evil, evil)], advice=[evil], notes=[evil])
    assert not {"\u202e", "\x1b", "\u061c"} & set(text(plan, evil))


def test_only_reports_load_the_template_engine():
    modules = "gpu_constructs.output.capacity_plan, gpu_constructs.capacity.planner"
    code = f"import sys, {modules}; print('jinja2' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"

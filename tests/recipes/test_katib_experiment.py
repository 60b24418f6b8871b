import os
import shutil
import subprocess

import pytest

from gpu_constructs import KatibExperiment, KatibParameter, TrainingPod
from recipe_objects import Recipe
from shell import PATIENCE, SHELLS
from tables import cases

ARGS = ["--lr=${trialParameters.lr}"]
TRIAL = TrainingPod(script="print('loss=1')", args=ARGS)
LR = {"lr": KatibParameter.double(min=0.01, max=0.05)}


SEARCH = Recipe(KatibExperiment, "gpu/search", trial=TRIAL, parameters=LR, objective_metric_name="loss")
chart_with = SEARCH.chart


def spec(**given):
    return SEARCH.manifests(**given)[-1]["spec"]


def test_an_experiment_with_required_options(objects, snapshot):
    assert objects(chart_with()) == snapshot


def test_an_experiment_with_all_options(objects, snapshot, keywords):
    made = chart_with(**keywords)
    assert objects(made) == snapshot


def test_failures_end_the_experiment():
    for given, failures in (({}, 3), ({"max_trial_count": 2}, 2), ({"max_failed_trial_count": 0}, 0)):
        assert spec(**given)["maxFailedTrialCount"] == failures


def test_a_parameter_can_be_in_any_text_of_the_pod(rows):
    for (text,) in rows:
        trial = TrainingPod(image="registry.example/a:1", **text)
        assert spec(trial=trial)["trialTemplate"]["trialParameters"] == [{"name": "lr", "reference": "lr"}]


def test_words_stay_unchanged_without_a_shell():
    trial = TrainingPod(script="print()", args=[*ARGS, "two words"])
    assert spec(trial=trial, metrics_collector_spec={"collector": {"kind": "Push"}})


def under_katib(container, katib):
    """Return the command that Katib 0.19 makes of a container, with the folder that its collector reads."""
    words = [*container["command"], *container.get("args", ())]
    command = ["sh", "-c"]
    if words[0] in ("sh", "bash") and words[1] == "-c":
        command, words = words[:2], words[2:]
    text = " ".join([*words, f"1>{katib}/metrics.log 2>&1 && echo completed > {katib}/$$.pid"])
    return [*command, text.replace("${trialParameters.lr}", "0.02")]


def collected(command, shell, folder):
    """Run a command as a trial does. Return the text that the collector reads, and the exit code."""
    katib, binaries = folder / "katib", folder / "bin"
    katib.mkdir()
    binaries.mkdir()
    (binaries / "sh").symlink_to(shutil.which(shell[0]))
    trial = TrainingPod(image="registry.example/a:1", command=command)
    template = spec(trial=trial)["trialTemplate"]["trialSpec"]["spec"]["template"]
    done = subprocess.run(
        under_katib(template["spec"]["containers"][0], katib),
        env={"PATH": f"{binaries}:{os.environ['PATH']}"},
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    marks = [path.read_text() for path in katib.glob("*.pid")]
    assert (marks == ["completed\n"]) is (done.returncode == 0)
    assert done.stdout == ""
    return (katib / "metrics.log").read_text(), done.returncode


@pytest.mark.parametrize("shell", SHELLS)
@cases
def test_the_whole_output_of_a_shell_text_is_collected(text, shell, tmp_path):
    assert collected(["sh", "-c", text], shell, tmp_path) == ("loss=0.02\n", 0)


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("text", ["echo ${trialParameters.lr}; exit 3", "echo ${trialParameters.lr}\n(exit 3)\n"])
def test_a_shell_text_that_fails_is_a_failed_trial(text, shell, tmp_path):
    assert collected(["sh", "-c", text], shell, tmp_path) == ("0.02\n", 3)


def test_a_text_runs_in_its_shell(tmp_path):
    text = 'set -o pipefail; words=(loss "${trialParameters.lr}"); echo "${words[0]}=${words[1]}"'
    assert collected(["bash", "-c", text], ("bash",), tmp_path) == ("loss=0.02\n", 0)


def test_a_shell_text_can_be_in_args():
    trial = TrainingPod(image="registry.example/a:1", command=["sh"], args=["-c", "a ${trialParameters.lr}; b"])
    template = spec(trial=trial)["trialTemplate"]["trialSpec"]["spec"]["template"]
    (container,) = template["spec"]["containers"]
    assert container["command"] == ["sh", "-c", "sh -c 'a ${trialParameters.lr}; b'"]
    assert "args" not in container


def test_without_a_shell_a_value_can_be_any_text():
    trial = TrainingPod(script="print()", env={"LR": "${trialParameters.lr}"})
    assert spec(trial=trial, parameters=CATEGORY)["parameters"][0]["feasibleSpace"]["list"] == ["a b"]


CATEGORY = {"lr": KatibParameter.categorical("a b")}


def test_options_that_katib_would_reject_or_break_are_rejected(rows):
    SEARCH.refuses(rows)

"""The page on searches: its program runs as written, its tables are those of the code."""

from __future__ import annotations

import inspect
import warnings
from pathlib import Path

import pytest
import yaml
from cdk8s import App, Chart, Testing

import dist
import documents
from gpu_constructs.recipes.katib_experiment import COLLECTOR_INJECTION, KatibExperiment
from gpu_constructs.recipes.katib_parameter import KatibParameter
from gpu_constructs.recipes.training_pod import TrainingPod

PAGE = dist.ROOT / "docs" / "katib-experiment.md"
TEXT = " ".join(documents.prose(PAGE).split())
(PROGRAM,) = (block.text for block in documents.blocks(PAGE, "python"))


def test_the_block_searches_in_a_namespace_where_katib_collects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec(compile(PROGRAM, "katib-experiment.md", "exec"), {})
    written = [one for path in tmp_path.rglob("*.k8s.yaml") for one in yaml.safe_load_all(path.read_text())]
    (experiment,) = (one for one in written if one["kind"] == "Experiment")
    assert experiment["spec"]["trialTemplate"]["primaryContainerName"] == "training"
    labels = [one["metadata"]["labels"] for one in written if one["metadata"]["name"] == "kubeflow-user"]
    assert any(COLLECTOR_INJECTION.items() <= one.items() for one in labels)
    (label,) = COLLECTOR_INJECTION.items()
    assert f"`{': '.join(label)}`" in TEXT
    (script,) = (one["data"]["train.py"] for one in written if "train.py" in (one.get("data") or {}))
    compile(script, "train.py", "exec")


@pytest.mark.parametrize("row", documents.table(PAGE, "factory"), ids=lambda row: row[0])
def test_every_factory_is_called_as_the_table_says(row: list[str]) -> None:
    made = eval(row[0].strip("`"), {"KatibParameter": KatibParameter})
    assert (made.choices is None) is ("needs one" in row[2])


def test_the_defaults_are_those_of_the_code() -> None:
    keywords = inspect.signature(KatibExperiment.__init__).parameters
    chart = Chart(App(), "search")
    trial = TrainingPod(script="print()", args=["${trialParameters.x}"])
    parameters = {"x": KatibParameter.discrete(1, 2)}
    KatibExperiment(chart, "x", trial=trial, parameters=parameters, objective_metric_name="loss")
    failures = Testing.synth(chart)[-1]["spec"]["maxFailedTrialCount"]
    for row in documents.table(PAGE, "keyword"):
        name, default = row[0].strip("`"), keywords[row[0].strip("`")].default
        shown = {"max_failed_trial_count": failures, "early_stopping": "none"}.get(name, default)
        assert row[1].strip("`") == str(shown), name

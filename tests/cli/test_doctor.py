"""The command ``doctor`` on copies of clusters: faults of the table, bundles, and input that it cannot read."""

import copy
import json
from pathlib import Path

import pytest

import tables
from gpu_constructs.cli.doctor import checking
from gpu_constructs.cli.main import main

HERE = Path(__file__).with_name("doctor")
CASES = tables.read(HERE / "cases.yaml")
NOT_OK = ("failed", "warning")


def merged(value, patch):
    """Return a value after a JSON merge patch."""
    if not isinstance(patch, dict):
        return patch
    base = value if isinstance(value, dict) else {}
    changed = {name: merged(base.get(name), one) for name, one in patch.items()}
    return {name: one for name, one in {**base, **changed}.items() if one is not None}


def cluster(case):
    """Return the objects of a case: those of its base, changed."""
    found = copy.deepcopy(tables.read(HERE / f"{case.get('base', 'healthy')}.yaml"))
    for change in case.get("change", ()):
        (kind, name), *rest = change.items()
        (at,) = [at for at, one in enumerate(found) if (one["kind"], one["metadata"]["name"]) == (kind, name)]
        found[at] = merged(found[at], dict(rest))
    gone = {*case.get("delete", ())}
    kept = [one for one in found if f"{one['kind']} {one['metadata']['name']}" not in gone]
    return [*kept, *case.get("add", ())]


def write(folder, case):
    """Write a case as a bundle and, if it has one, a plan beside it, and return the arguments that name them."""
    index = {"version": 1, "where": "fixture", "unread": {}, "partial": {}, "services": case.get("services", {})}
    files = {"bundle.json": index, "all.json": {"apiVersion": "v1", "kind": "List", "items": cluster(case)}}
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))
    for name, text in case.get("logs", {}).items():
        (folder / "logs" / name).parent.mkdir(parents=True)
        (folder / "logs" / f"{name}.log").write_text(text)
    if "plan" not in case:
        return ["--from", str(folder)]
    plan, beside = case["plan"], folder.parent / "dist"
    for name in ("home", "reports/home", "machine-config/home"):
        (beside / name).mkdir(parents=True)
    (beside / "home" / "all.json").write_text(
        json.dumps({"apiVersion": "v1", "kind": "List", "items": plan["manifests"]})
    )
    if "report" in plan:
        (beside / "reports/home/capacity-plan.json").write_text(json.dumps(plan["report"]))
    (beside / "machine-config/home/a.schematic.yaml").write_text(f"# Schematic {plan.get('schematic', '')}\n")
    (beside / "machine-config/home/a.yaml").write_text(json.dumps({"machine": {"nodeLabels": plan.get("labels", {})}}))
    return ["--from", str(folder), "--plan", str(beside / "home")]


@pytest.fixture
def looked(tmp_path, capsys):
    """A function that runs the command on a case, and returns its exit status and its report as data."""
    folder = tmp_path / "bundle"
    folder.mkdir()

    def run(case, *options):
        status = main(["doctor", *write(folder, case), "--format=json", *options])
        return status, json.loads(capsys.readouterr().out)

    return run


def name_of(case):
    return " ".join(filter(None, (case["fails"], case.get("about"))))


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_a_fault_fails_its_check_and_no_check_of_a_cause(case, looked):
    status, report = looked(case, "--fail-on=warning")
    not_ok = [one["id"] for one in report["checks"] if one["status"] in NOT_OK]
    assert not_ok[:1] == [case["fails"]], report["findings"]
    assert case.get("says", "") in report["findings"][0]["reason"]
    assert status == 1


@pytest.mark.parametrize("base", ["healthy", "operator", "dra"])
def test_the_command_is_quiet_about_a_cluster_on_which_everything_works(base, looked):
    status, report = looked({"base": base}, "--fail-on=warning")
    assert (status, report["findings"], report["success"]) == (0, [], True)


def test_each_check_has_a_case_that_fails_and_a_cluster_that_passes(tmp_path, capsys):
    ids = [row.id for row in checking.rows()]
    assert sorted({case["fails"] for case in CASES}) == sorted(ids)
    passed = set()
    planned = next(case for case in CASES if case["fails"] == "plan-slots")
    services = {"gpu-1": {"ext-nvidia-persistenced": "Running"}}
    for base in ({"services": services}, {"base": "operator"}, {"base": "dra"}, {**planned, "about": "plan"}):
        folder = tmp_path / str(len(passed)) / "bundle"
        folder.mkdir(parents=True)
        if "plan" in base:
            base = copy.deepcopy(base)
            base["plan"]["report"]["nodes"][0]["allocatable"] = {"nvidia.com/gpu": 4}
        main(["doctor", *write(folder, base), "--format=json"])
        passed |= {one["id"] for one in json.loads(capsys.readouterr().out)["checks"] if one["status"] == "ok"}
    assert sorted(set(ids) - passed) == []

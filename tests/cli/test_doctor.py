"""The command ``doctor`` on copies of clusters: faults of the table, bundles, and input that it cannot read."""

import copy
import json
from pathlib import Path
from unittest.mock import ANY

import pytest
import recording
import yaml

import dist
import documents
import explanations
import tables
from gpu_constructs.cli.doctor import checking, snapshot
from gpu_constructs.cli.main import main

HERE = Path(__file__).with_name("doctor")
CASES = tables.read(HERE / "cases.yaml")
IDLE = tables.read(HERE / "idle.yaml")
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


@pytest.mark.parametrize("case", IDLE, ids=lambda case: " ".join(filter(None, (case["because"], case.get("about")))))
def test_a_check_without_an_object_to_look_at_does_not_pass(case, looked):
    checks = {one["id"]: one for one in looked(case)[1]["checks"]}
    assert {name: checks[name].get("because") for name in case["silent"]} == dict.fromkeys(
        case["silent"], case["because"]
    )


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


def test_each_section_of_the_troubleshooting_page_has_a_check_or_a_reason():
    page = dist.ROOT / "docs" / "troubleshooting.md"
    links = [*(row.link for row in checking.rows()), *(f"docs/{row['link']}" for row in snapshot.TABLES["runtime"])]
    for link in links:
        name, _, anchor = link.partition("#")
        assert anchor in documents.anchors(dist.ROOT / name), link
    unseen = tables.read(HERE / "unseen.yaml")
    headings = [line.removeprefix("## ") for line in page.read_text().splitlines() if line.startswith("## ")]
    used = {link.partition("#")[2] for link in links if "troubleshooting.md" in link}
    assert [one for one in headings if (explanations.anchor(one) in used) == (one in unseen)] == []
    assert set(unseen) <= set(headings)


def test_a_check_waits_only_for_checks_before_it():
    known = []
    for row in checking.rows():
        assert [one for one in row.after if one not in known] == [], row.id
        assert [one for one in row.needs if one not in snapshot.READABLE] == [], row.id
        known += [row.id, row.category]


# --- sources ------------------------------------------------------------------------------------------------------


def test_a_bundle_has_no_secret_and_leads_to_the_same_report(tmp_path, capsys):
    token = "hf_" + "a1B2" * 10
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "c2VjcmV0"}}
    pod = next(one for one in cluster({}) if one["metadata"]["name"] == "ollama-1-x")
    pod["metadata"] |= {"managedFields": [{"manager": "me"}]}
    pod["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": "{}", "note": token}
    pod["spec"]["containers"][0] |= {"env": [{"name": "MODE", "value": "private-value"}], "args": [f"--token={token}"]}
    (tmp_path / "dump.json").write_text(
        json.dumps({"apiVersion": "v1", "kind": "List", "items": [*cluster({}), secret, pod]})
    )
    reports = []
    for source, options in (("dump.json", [f"--bundle={tmp_path / 'bundle'}"]), ("bundle", [])):
        main(["doctor", "--from", str(tmp_path / source), "--format=json", *options])
        reports.append(json.loads(capsys.readouterr().out))
    text = "".join(file.read_text() for file in (tmp_path / "bundle").rglob("*") if file.is_file())
    assert "MODE" in text
    for hidden in (token, "c2VjcmV0", "private-value", "managedFields", "last-applied"):
        assert hidden not in text
    assert reports[0]["checks"] == reports[1]["checks"]


def test_a_folder_of_must_gather_is_read(capsys):
    assert main(["doctor", "--from", str(HERE / "must-gather"), "--format=json"]) == 1
    report = json.loads(capsys.readouterr().out)
    states = {one["id"]: one["status"] for one in report["checks"]}
    assert [(one["code"], one["object"], one["reason"][:60]) for one in report["findings"]] == [
        ("node-ready", "Node gpu-1", "the node is not ready: KubeletNotReady: PLEG is not healthy"),
        ("driver-nvml", "Pod gpu-operator/nvidia-device-plugin-daemonset-x", ANY),
    ]
    assert (states["runtimeclass"], states["program-pods"]) == ("unread", "blocked")


@pytest.mark.parametrize(("form", "says"), [("markdown", "| error daemonset-desired |"), ("github", "::error title=")])
def test_other_formats_state_the_problem_and_where_the_command_looked(capsys, form, says):
    folder = dist.ROOT / "docs" / "bundles" / "home"
    assert main(["doctor", "--from", str(folder), f"--format={form}"]) == 1
    printed = capsys.readouterr().out
    assert says in printed
    assert f"Looked at {folder}, a copy of context home" in printed


@pytest.fixture
def live(tmp_path, monkeypatch):
    """A stand-in for kubectl, and the folder with its answers."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "kubectl").symlink_to(HERE / "kubectl.sh")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("FAKE", str(tmp_path))
    monkeypatch.setenv("TALOSCONFIG", "/nowhere")

    def answer(case):
        found = cluster(case)
        for kind, group, resource, *optional in snapshot.KINDS:
            items = [one for one in found if one["kind"] == kind]
            if items or not optional:
                name = f"{resource}.{group}" if group else resource
                (tmp_path / f"{name}.json").write_text(json.dumps({"items": items}))
        config = next(one for one in found if one["kind"] == "ConfigMap")
        (tmp_path / f"configmap.{config['metadata']['name']}.json").write_text(json.dumps(config))

    return answer, tmp_path


def test_a_live_cluster_is_read_by_kubectl(live, capsys):
    live[0]({})
    assert main(["doctor", "--fail-on=warning"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Looked at context home, server https://10.0.0.1:6443\n")
    assert "because talosctl is not installed, or has no configuration: talos-services" in " ".join(out.split())


def test_the_log_of_a_program_that_does_not_work_is_read(live, capsys):
    live[0](next(case for case in CASES if case["fails"] == "driver-nvml"))
    (live[1] / "log").write_text("Failed to initialize NVML: hf_" + "a1B2" * 10)
    assert main(["doctor", f"--bundle={live[1] / 'bundle'}"]) == 1
    assert "Failed to initialize NVML: [removed]" in " ".join(capsys.readouterr().out.split())


SERVICES = """\
NODE        SERVICE                   STATE     HEALTH   LAST CHANGE   LAST EVENT
10.0.0.11   ext-nvidia-persistenced   Running   ?        1m0s ago      Started task
10.0.0.11   ext-nvidia-cdi-gen        Waiting   ?        1m0s ago      Waiting for service
"""


def test_talosctl_shows_the_services_of_a_node(live, capsys, monkeypatch):
    live[0]({})
    talosctl = live[1] / "bin" / "talosctl"
    talosctl.write_text(f"#!/bin/sh\ncat <<'END'\n{SERVICES}END\n")
    talosctl.chmod(0o755)
    monkeypatch.setenv("TALOSCONFIG", str(talosctl))
    assert main(["doctor"]) == 1
    printed = " ".join(capsys.readouterr().out.split())
    assert "Node gpu-1: the service ext-nvidia-cdi-gen is in the state Waiting instead of Finished" in printed


@pytest.mark.parametrize(
    ("denied", "options", "status", "says"),
    [
        ("events", [], 0, "you have no right to list events: "),
        ("nodes", [], 3, "you have no right to list nodes: node-found"),
        ("pods", [], 3, "you have no right to list pods: cdi-devices"),
        ("pods", ["--namespace=ollama"], 0, "list pods only in the namespace ollama: plugin-found"),
    ],
)
def test_a_kind_without_rights_is_not_looked_at(live, capsys, denied, options, status, says):
    live[0]({})
    (live[1] / f"{denied}.denied").touch()
    assert main(["doctor", *options]) == status
    assert says in " ".join(capsys.readouterr().out.split())


@pytest.mark.usefixtures("live")
def test_a_kubeconfig_that_does_not_exist_is_named_with_a_way_out(capsys):
    assert main(["doctor", "--kubeconfig=/nope"]) == 3
    printed = capsys.readouterr().err
    assert all(word in printed for word in ("'/nope'", "--context", "--from"))


def test_waiting_ends_when_no_check_fails(live, capsys, monkeypatch):
    live[0](next(case for case in CASES if case["fails"] == "advertised"))
    monkeypatch.setattr("time.sleep", lambda _: live[0]({}))
    assert main(["doctor", "--wait=10m"]) == 0
    assert main(["doctor", "--from=a", "--wait=10m"]) == 2
    assert "--from excludes" in capsys.readouterr().err


def test_the_rights_are_to_read_only_and_include_no_secrets(capsys):
    assert main(["doctor", "--rights"]) == 0
    rules = yaml.safe_load(capsys.readouterr().out)["rules"]
    assert {verb for rule in rules for verb in rule["verbs"]} == {"get", "list"}
    assert "secrets" not in {name for rule in rules for name in rule["resources"]}


@pytest.mark.parametrize(
    ("name", "text", "status", "says"),
    [
        ("a.yaml", "kind: [", 3, "a.yaml:2: is not YAML"),
        ("a.txt", "", 3, "must contain Kubernetes objects, and it contains none"),
        ("a.yaml", "{apiVersion: v1, kind: Node, metadata: {name: a, labels: 3}}", 3, ""),
    ],
)
def test_input_that_cannot_be_read_is_named(tmp_path, capsys, name, text, status, says):
    (tmp_path / name).write_text(text)
    assert main(["doctor", "--from", str(tmp_path)]) == status
    assert says in capsys.readouterr().err


def test_the_page_lists_every_check():
    written = documents.table(dist.ROOT / "docs" / "command-doctor.md", "category")
    rows = checking.rows()
    assert written == [[one.category, f"[{one.id}]({one.link.removeprefix('docs/')})", one.title] for one in rows]


def test_the_recording_shows_what_the_command_prints(monkeypatch):
    monkeypatch.chdir(dist.ROOT)
    drawn = recording.svg(recording.output_of("gpu-constructs doctor --from docs/bundles/home --short"))
    assert drawn == (dist.ROOT / "docs" / "images" / "doctor.svg").read_text(encoding="utf-8")

"""``gpu-constructs lint``: all rules and checks over manifests of any origin."""

import io
import json
import re
import subprocess
import sys

import pytest
import sarif

import app_tables
import documents
import tables
from dist import ROOT
from gpu_constructs.checks.cluster_checks import CHECKS, check
from gpu_constructs.checks.rules.table import CODES, RuleSettings
from gpu_constructs.cli import lint
from gpu_constructs.cli.findings import FORMATS
from gpu_constructs.cli.lint.advice import for_manifests
from gpu_constructs.cli.lint.codes import codes
from gpu_constructs.cli.main import main
from tables import cases

INVENTORY = "nodes: [{name: box, gpu_model: RTX 3090}]\n"
BAD = """\
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec: {template: {spec: {containers: [{name: a, image: a, resources: {limits: {nvidia.com/gpu: "0.5", memory: 1Gi}}}]}}}
"""
OF_CONSTRUCTS = re.compile(
    r"\b(?:External|Gpu(?!Cluster)[A-Z]\w+|Sharing\.|Talos\w+\(|this app|the app\b)|\b[a-z_]+=\.\.\.|chart,"
)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gpus.yaml").write_text(INVENTORY, encoding="utf-8")
    (tmp_path / "a.yaml").write_text(BAD, encoding="utf-8")
    return tmp_path


def linted(capsys, *arguments):
    status = main(["lint", *arguments, "--format", "json"])
    return status, json.loads(capsys.readouterr().out)


@cases
def test_the_findings_have_a_code_an_object_and_a_line(folder, capsys, manifests, options, found, status):
    (folder / "a.yaml").write_text(manifests, encoding="utf-8")
    got, report = linted(capsys, "a.yaml", *(options or ()))
    seen = [f"{one['severity']} {one['code']} {one['object']} {one['line']}" for one in report["findings"]]
    assert (seen, got) == (found, status or 0)
    assert all(one["file"] == "a.yaml" and one["reason"] and one["way_out"] for one in report["findings"])
    assert report["version"] == 1


@cases
def test_a_wrong_argument_is_one_line_with_the_way_out(capsys, options, status, says):
    try:
        got = main(["lint", "a.yaml", *options])
    except SystemExit as ended:
        got = ended.code
    output, error = capsys.readouterr()
    assert (got, output) == (status or 2, "")
    assert says in error
    assert error.startswith("usage:") or error.count("\n") == 1


@cases
def test_the_advice_of_a_check_names_the_options_of_lint(says, becomes):
    assert for_manifests(says) == becomes


def test_no_advice_speaks_of_constructs():
    rows = [row for rule in tables.beside(f"{ROOT}/tests/checks/x", "rules").values() for row in rule.get("broken", ())]
    for name in ("apps", "references", "amounts", "quotas"):
        rows += [
            row
            for part in tables.beside(f"{ROOT}/tests/checks/x", name).values()
            if isinstance(part, list)
            for row in part
        ]
    messages = {
        for_manifests(found.problem)
        for row in rows
        if isinstance(row, dict) and "objects" in row
        for found in check(
            app_tables.objects(row["objects"]), row.get("provided", ()), RuleSettings(inventory=row.get("inventory"))
        )
    }
    assert len(messages) > 100
    assert [message for message in messages if OF_CONSTRUCTS.search(message)] == []


def test_every_check_has_a_code_and_its_link_leads_to_a_section():
    names = [check.__name__.replace("_", "-") for check in CHECKS]
    assert list(codes()) == [*CODES, *names, "ignored-rules-are-known"]
    for one in codes().values():
        page, anchor = one.link.split("#")
        assert anchor in documents.anchors(ROOT / page), one.link


def test_the_page_lists_the_other_checks():
    rows = documents.table(ROOT / "docs" / "command-lint.md", "code")
    known = {code: one for code, one in codes().items() if one.reason}
    assert [[code.strip("`"), reason] for code, reason, _ in rows] == [
        [code, one.reason] for code, one in known.items()
    ]
    assert [re.findall(r"\((.*)\)", link)[0] for *_, link in rows] == [one.link[5:] for one in known.values()]


@pytest.mark.parametrize("name", FORMATS)
def test_each_format_states_code_place_and_way_out(capsys, name):
    assert main(["lint", "a.yaml", "--format", name, "--report", f"json={name}.json"]) == 1
    output = capsys.readouterr().out
    assert all(
        text in " ".join(output.split()) for text in ("R01", "Job train", "must be a whole number", "Share GPUs")
    )
    assert name == "markdown" or "a.yaml" in output
    with open(f"{name}.json", encoding="utf-8") as file:
        assert [one["code"] for one in json.load(file)["findings"]] == ["R01", "R26"]


def test_sarif_has_the_members_that_the_standard_requires(capsys):
    main(["lint", "a.yaml", "--format", "sarif"])
    assert sarif.problems(json.loads(capsys.readouterr().out)) == []


def test_text_fits_80_columns_and_has_color_only_on_a_terminal(capsys, monkeypatch):
    main(["lint", "a.yaml"])
    output = capsys.readouterr().out
    assert all(len(line) <= 80 for line in output.splitlines())
    assert "\x1b" not in output
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    main(["lint", "a.yaml"])
    assert "\x1b[31merror R01\x1b[0m" in capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    main(["lint", "a.yaml"])
    assert capsys.readouterr().out == output


def test_known_findings_are_counted_and_entries_that_no_longer_occur_are_named(folder, capsys):
    assert linted(capsys, "a.yaml", "--write-baseline", "known.json")[0] == 0
    (folder / "a.yaml").write_text("\n" + BAD.replace("image: a", "image: b:1"), encoding="utf-8")
    status, report = linted(capsys, "a.yaml", "--baseline", "known.json")
    assert (status, report["findings"], report["baseline"]["known"]) == (0, [], 1)
    assert [one["code"] for one in report["baseline"]["gone"]] == ["R26"]
    assert (
        "Known from the baseline: 1 finding. No longer found, remove from the baseline: R26 of Job train"
        in report["summary"]
    )


def test_the_summary_states_what_was_not_checked(capsys):
    _, report = linted(capsys, "a.yaml")
    assert [re.findall(r"--\w+|no device plugin", gap)[0] for gap in report["not_checked"]] == [
        "--inventory",
        "no device plugin",
        "--platform",
    ]


def test_each_folder_is_a_cluster_of_its_own_on_request(folder, capsys):
    for cluster in "ab":
        (folder / "all" / cluster).mkdir(parents=True)
        (folder / "all" / cluster / "x.yaml").write_text(
            BAD.replace('"0.5"', "1").replace(": a,", ": a:1,"), encoding="utf-8"
        )
    status, report = linted(capsys, "all")
    assert (status, [one["code"] for one in report["findings"]]) == (1, ["objects-are-made-once"])
    assert report["findings"][0]["way_out"].endswith("pass --each.")
    assert "all/a/x.yaml:1" in report["findings"][0]["reason"]
    assert linted(capsys, "all", "--each")[0] == 0


def test_a_broken_document_is_named_and_the_rest_is_checked(folder, capsys):
    (folder / "a.yaml").write_text("a: [\n---\n" + BAD, encoding="utf-8")
    assert main(["lint", "a.yaml"]) == 3
    output, error = capsys.readouterr()
    assert "error R01" in output
    assert error.startswith("a.yaml:2: is not YAML")


def test_no_objects_is_not_the_same_as_no_problems(folder, capsys):
    (folder / "empty").mkdir()
    assert main(["lint", "empty"]) == 3
    assert capsys.readouterr().err == (
        "gpu-constructs lint: found no Kubernetes objects in empty. Name files with manifests\n"
    )


def test_a_check_that_fails_is_named_and_the_others_run(capsys, monkeypatch):
    def broken_check(_):
        raise KeyError("x")

    monkeypatch.setattr("gpu_constructs.cli.lint.examination.CHECKS", (broken_check,))
    assert main(["lint", "a.yaml"]) == 3
    output = " ".join(capsys.readouterr().out.split())
    assert "check broken-check could not look at these manifests (KeyError: 'x')" in output
    assert "error R01" in output


def test_helm_output_comes_from_standard_input(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(BAD.encode())))
    assert [one["file"] for one in linted(capsys, "-")[1]["findings"]] == ["<stdin>", "<stdin>"]


def test_the_examples_of_this_repository_have_no_errors(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert linted(capsys, "dist", "--each")[0] == 0


def test_it_starts_without_jsii():
    program = "import sys; from gpu_constructs.cli.main import main; main(['lint', 'a.yaml']); "
    program += "print({'jsii', 'cdk8s', 'constructs', 'typeguard', 'importlib.metadata'} & {*sys.modules})"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.endswith("set()\n")
    assert "lint" in lint.EXAMPLES

"""docs/rules.md: its table is the rules, and each of its blocks does what the page says."""

import re
from textwrap import indent

import pytest
import yaml

import dist
import documents
from gpu_constructs.checks.rules.table import RULES, broken_rules
from gpu_constructs.facts.app import Facts

PAGE = dist.ROOT / "docs" / "rules.md"
BLOCKS = documents.blocks(PAGE)
PYTHON = [block.text for block in BLOCKS if block.language == "python"]
YAML = [block.text for block in BLOCKS if block.language == "yaml"]


def test_the_table_lists_every_rule_as_it_is():
    rows = documents.table(PAGE, "code")
    assert [row[:3] for row in rows] == [[rule.code, rule.severity, rule.title] for rule in RULES]
    assert all(len(row) == 5 and all(row) for row in rows)


def test_every_block_is_run_by_a_test_below():
    assert {block.language for block in BLOCKS} == {"python", "yaml", "text"}
    assert (len(PYTHON), len(YAML), len(BLOCKS)) == (5, 2, 8)


def run(program, folder, rendered):
    file = folder / "rendered.yaml"
    file.write_text(rendered)
    # A program of its own has its files where it starts; cdk8s here has started elsewhere.
    program = program.replace('url="rendered.yaml"', f"url={str(file)!r}").replace('outdir="', f'outdir="{folder}/')
    exec(compile(program, "page.py", "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize("program", PYTHON, ids=lambda program: re.findall(r'outdir="([^"]+)"', program)[0])
def test_each_program_runs(program, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    right = YAML[1].replace('"0.5"', "1").replace("spec:\n", "spec:\n  strategy: {type: Recreate}\n", 1)
    run(program, tmp_path, right)
    assert any(path.is_dir() for path in tmp_path.iterdir()) is ("Chart(" in program)


def test_the_rendered_chart_gets_the_message_of_the_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (program,) = (program for program in PYTHON if "rendered.yaml" in program)
    with pytest.raises(SystemExit):
        run(program, tmp_path, YAML[1])
    (said,) = (block.text.strip() for block in BLOCKS if block.language == "text")
    assert capsys.readouterr().err.splitlines() == [
        "1 problem found, nothing was written",
        *indent(said, "  ").splitlines(),
    ]


def test_the_annotated_job_breaks_no_other_rule_and_both_of_these_without_the_annotation():
    job = yaml.safe_load(YAML[0])
    assert broken_rules(Facts([job])) == []
    del job["metadata"]["annotations"]
    assert [finding.code for finding in broken_rules(Facts([job]))] == ["R13", "R26"]


def test_every_link_within_the_page_leads_to_a_heading():
    headings = re.findall(r"^## (.+)$", PAGE.read_text(encoding="utf-8"), re.M)
    anchors = {"#" + heading.lower().replace(" ", "-") for heading in headings}
    assert {link for link in documents.links(PAGE) if link.startswith("#")} == anchors

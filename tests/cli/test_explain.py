"""``gpu-constructs explain``: what the documents say about a name, from a file in the package."""

import json

import explanations
from gpu_constructs.cli.explain import explanations as known
from gpu_constructs.cli.main import main
from tables import cases


def test_the_file_in_the_package_is_current():
    written = explanations.TARGET.read_text(encoding="utf-8")
    assert written == explanations.written(), "run: python -m tests.explanations"


@cases
def test_a_name_is_explained_with_the_section_of_the_documents(capsys, name, says, link):
    assert main(["explain", *name.split()]) == 0
    output = capsys.readouterr().out
    assert says.casefold() in " ".join(output.split()).casefold()
    assert output.endswith(f"\ndocs/{link}\n")
    assert "](" not in output
    assert "**" not in output
    assert all(len(line) <= 80 or line.startswith("    ") for line in output.splitlines())


@cases
def test_an_unknown_name_gets_a_suggestion_and_the_list_of_groups(capsys, name, near):
    assert main(["explain", name]) == 2
    error = capsys.readouterr().err
    assert f"does not explain '{name}' (did you mean '{near}'?). It has rules, deviations" in error
    assert error.count("\n") == 1


def test_the_list_has_every_name(capsys):
    assert main(["explain", "--list"]) == 0
    words = capsys.readouterr().out.replace(",", " ").split()
    assert all(word in words for name in known() for word in name.split())
    assert main(["explain", "--list", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["alerts"][0] == "GpuXidCritical"
    assert main(["explain"]) == 2

"""``gpu-constructs explain``: what the documents say about a name, from a file in the package."""

import json

import explanations
from gpu_constructs.cli.doctor.checking import rows
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


def test_several_names_are_explained_one_after_another(capsys):
    separate = ""
    for name in ("nvidia.com/mig-1g.10gb", "r7"):
        assert main(["explain", name]) == 0
        separate += f"\n{capsys.readouterr().out}"
    assert main(["explain", "nvidia.com/mig-1g.10gb", "r7"]) == 0
    assert capsys.readouterr().out == separate.removeprefix("\n")
    assert main(["explain", "R07", "D12", "--format", "json"]) == 0
    assert [one["name"] for one in json.loads(capsys.readouterr().out)["names"]] == ["R07", "D12"]
    assert main(["explain", "R07", "R77"]) == 2
    assert "does not explain 'R77'" in capsys.readouterr().err


def test_every_check_of_doctor_has_an_explanation():
    assert [row.id for row in rows() if row.id not in known()] == []
    assert len({name.lower() for name in known()}) == len(known())


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

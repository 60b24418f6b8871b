"""``gpu-constructs explain``: what the documents say about a name, from a file in the package."""

import json

import pytest

import explanations
from gpu_constructs.cli.explain import explanations as known
from gpu_constructs.cli.main import main


def test_the_file_in_the_package_is_current():
    written = explanations.TARGET.read_text(encoding="utf-8")
    assert written == explanations.written(), "run: python -m tests.explanations"


@pytest.mark.parametrize(
    ("name", "says", "link"),
    [
        ("R07", "R07: A pod requests one slot of a shared GPU (error)", "docs/rules.md#the-rules"),
        ("r7", "R07: A pod requests one slot", "docs/rules.md#the-rules"),
        ("D12", "Why: Without requests", "docs/coming-from-helm.md#what-is-different-on-purpose"),
        ("E3", "the kubelet never refreshes a subPath", "docs/coming-from-helm.md#what-is-different-in-the-exporter"),
        ("gpulost", "GpuLost: Alert, critical", "docs/runbook.md#gpulost"),
        ("runtime-classes-exist", "never creates such a pod", "docs/troubleshooting.md#runtimeclass-nvidia-not-found"),
        ("nvidia.com/gpu", "One slot of a GPU", "docs/command-explain.md#resource-names-and-node-labels"),
        (
            "nvidia.com/gpu.shared",
            "stays free for whole GPUs",
            "docs/command-explain.md#resource-names-and-node-labels",
        ),
        ("nvidia.com/mig-1g.10gb", "NVIDIA H100 PCIe", "docs/command-explain.md#resource-names-and-node-labels"),
        (
            "nvidia.com/mig-9g.1gb",
            "none that the library knows",
            "docs/command-explain.md#resource-names-and-node-labels",
        ),
        (
            "nvidia.com/gpu.compute.major",
            "compute capability",
            "docs/command-explain.md#resource-names-and-node-labels",
        ),
        ("MIG device", "A part of a GPU", "docs/glossary.md#mig-device"),
    ],
)
def test_a_name_is_explained_with_the_section_of_the_documents(capsys, name, says, link):
    assert main(["explain", *name.split()]) == 0
    output = capsys.readouterr().out
    assert says.casefold() in " ".join(output.split()).casefold()
    assert output.endswith(f"\n{link}\n")
    assert "](" not in output
    assert "**" not in output
    assert all(len(line) <= 80 or line.startswith("    ") for line in output.splitlines())


@pytest.mark.parametrize(
    ("name", "near"), [("R77", "R27"), ("GpuLst", "GpuLost"), ("nvidia.com/gpus", "nvidia.com/gpu")]
)
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

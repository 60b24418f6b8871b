"""The page on admission policies: its programs run, its pods fare as said, its commands name what is there."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

import cel
import dist
import documents

PAGE = dist.ROOT / "docs" / "admission-policies.md"
TEXT = PAGE.read_text(encoding="utf-8")
PROGRAMS = [block.text for block in documents.blocks(PAGE, "python")]
COMMANDS = [shlex.split(row[0].strip("`")) for row in documents.table(PAGE, "command")]


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    """The objects of all programs, by folder and kind."""
    monkeypatch.chdir(tmp_path)
    for number, program in enumerate(PROGRAMS):
        exec(compile(program, f"admission-policies.md block {number}", "exec"), {})
    return {
        f"{path.relative_to(tmp_path).parts[0]}/{one['kind']}": one
        for path in tmp_path.rglob("*.k8s.yaml")
        for one in yaml.safe_load_all(path.read_text())
    }


def test_the_programs_make_the_policies_that_are_said(written: dict[str, dict[str, Any]]) -> None:
    assert sorted(written) == [
        "dist-guard/Namespace",
        "dist-guard/ValidatingAdmissionPolicy",
        "dist-guard/ValidatingAdmissionPolicyBinding",
        "dist-injection/MutatingAdmissionPolicy",
        "dist-injection/MutatingAdmissionPolicyBinding",
        "dist-kyverno/MutatingPolicy",
    ]


def test_the_label_that_is_shown_lets_the_namespace_of_the_program_through(written: dict[str, dict[str, Any]]) -> None:
    selector = written["dist-guard/ValidatingAdmissionPolicyBinding"]["spec"]["matchResources"]["namespaceSelector"]
    metadata = written["dist-guard/Namespace"]["metadata"]
    assert not cel.selects(selector, metadata["name"], metadata["labels"])
    assert cel.selects(selector, metadata["name"])
    (label,) = set(re.findall(r"`(gpu-constructs/[a-z-]+)=true`", TEXT))
    assert metadata["labels"][label] == "true"


def test_every_named_object_is_one_that_a_program_makes(written: dict[str, dict[str, Any]]) -> None:
    there = {(m["kind"].lower(), m["metadata"]["name"]) for m in written.values()}
    named = {(words[2], words[3]) for words in COMMANDS if words[1] == "get" and words[2] != "events"}
    assert named
    assert named <= there


def pod_of(words: list[str]) -> dict[str, Any]:
    """The pod of a ``kubectl run`` command, as far as the policies look at it."""
    flags = dict(word.lstrip("-").split("=", 1) for word in words if word.startswith("--") and "=" in word)
    if "overrides" in flags:
        overridden: dict[str, Any] = json.loads(flags["overrides"])
        return overridden
    name, value = flags["env"].split("=")
    return {"spec": {"containers": [{"name": "probe", "env": [{"name": name, "value": value}]}]}}


def test_the_pods_that_are_tried_fare_as_is_said(written: dict[str, dict[str, Any]]) -> None:
    refused, completed = (words for words in COMMANDS if words[1] == "run")
    assert all("--dry-run=server" in words for words in (refused, completed))
    guard = written["dist-guard/ValidatingAdmissionPolicyBinding"]["spec"]["matchResources"]["namespaceSelector"]
    assert cel.selects(guard, refused[refused.index("-n") + 1])
    assert len(cel.denials(written["dist-guard/ValidatingAdmissionPolicy"], pod_of(refused))) == 1
    injection = written["dist-injection/MutatingAdmissionPolicyBinding"]["spec"]["matchResources"]["namespaceSelector"]
    assert cel.selects(injection, completed[completed.index("-n") + 1])
    spec = cel.mutated(written["dist-injection/MutatingAdmissionPolicy"], pod_of(completed))["spec"]
    assert spec["runtimeClassName"] == "nvidia"
    assert {toleration["key"] for toleration in spec["tolerations"]} == {"nvidia.com/gpu", "dedicated"}


@pytest.mark.parametrize("value", ["void", "none"])
def test_the_values_that_are_allowed_are(written: dict[str, dict[str, Any]], value: str) -> None:
    assert f"`{value}`" in documents.table(PAGE, "refused")[0][0]
    pod = pod_of([f"--env=NVIDIA_VISIBLE_DEVICES={value}"])
    assert cel.denials(written["dist-guard/ValidatingAdmissionPolicy"], pod) == []

"""The page on admission policies: its programs run, its pods fare as said, its commands name what is there."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

import cel
from documents import Page, objects_in

PAGE = Page("admission-policies")
COMMANDS = [shlex.split(command) for command in PAGE.column("command")]


@pytest.fixture
def written(tmp_path: Path) -> dict[str, dict[str, Any]]:
    """The objects of all programs, by folder and kind."""
    for program in PAGE.apps:
        PAGE.run(program, tmp_path)
    return {f"{folder.name}/{one['kind']}": one for folder in tmp_path.iterdir() for one in objects_in(folder)}


def pod_of(words: list[str]) -> dict[str, Any]:
    """The pod of a ``kubectl run`` command, as far as the policies look at it."""
    flags = dict(word.lstrip("-").split("=", 1) for word in words if word.startswith("--") and "=" in word)
    if "overrides" in flags:
        overridden: dict[str, Any] = json.loads(flags["overrides"])
        return overridden
    name, value = flags["env"].split("=")
    return {"spec": {"containers": [{"name": "probe", "env": [{"name": name, "value": value}]}]}}


def test_the_programs_make_what_is_said_and_the_commands_name(written: dict[str, dict[str, Any]], expected) -> None:
    assert sorted(written) == expected
    there = {(m["kind"].lower(), m["metadata"]["name"]) for m in written.values()}
    named = {(words[2], words[3]) for words in COMMANDS if words[1] == "get" and words[2] != "events"}
    assert named
    assert named <= there


def test_pods_and_namespaces_fare_as_is_said(written: dict[str, dict[str, Any]]) -> None:
    def selector(name: str) -> dict[str, Any]:
        found: dict[str, Any] = written[name]["spec"]["matchResources"]["namespaceSelector"]
        return found

    guard = selector("dist-guard/ValidatingAdmissionPolicyBinding")
    injection = selector("dist-injection/MutatingAdmissionPolicyBinding")
    metadata = written["dist-guard/Namespace"]["metadata"]
    assert not cel.selects(guard, metadata["name"], metadata["labels"])
    assert cel.selects(guard, metadata["name"])
    (label,) = set(re.findall(r"`(gpu-constructs/[a-z-]+)=true`", PAGE.raw))
    assert metadata["labels"][label] == "true"
    refused, completed = (words for words in COMMANDS if words[1] == "run")
    assert all("--dry-run=server" in words for words in (refused, completed))
    assert cel.selects(guard, refused[refused.index("-n") + 1])
    policy = written["dist-guard/ValidatingAdmissionPolicy"]
    assert len(cel.denials(policy, pod_of(refused))) == 1
    for value in ("void", "none"):
        assert f"`{value}`" in PAGE.table("rejected")[0][0]
        assert cel.denials(policy, pod_of([f"--env=NVIDIA_VISIBLE_DEVICES={value}"])) == []
    assert cel.selects(injection, completed[completed.index("-n") + 1])
    spec = cel.mutated(written["dist-injection/MutatingAdmissionPolicy"], pod_of(completed))["spec"]
    assert spec["runtimeClassName"] == "nvidia"
    assert {toleration["key"] for toleration in spec["tolerations"]} == {"nvidia.com/gpu", "dedicated"}

"""The page on namespaces: its programs run as written, its tables are the code's, its commands name what is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

import dist
import documents
from gpu_constructs import GpuConstructsError
from gpu_constructs.namespace import PodSecurityLevel
from gpu_constructs.namespace_limits import NamespaceQuota
from gpu_constructs.priority_classes import DEFAULT_VALUES

PAGE = dist.ROOT / "docs" / "namespaces.md"
PROGRAMS = [block.text for block in documents.blocks(PAGE, "python")]
COMMANDS = [row[0].strip("`").split() for row in documents.table(PAGE, "command")]
KINDS = {
    "resourcequota": "ResourceQuota",
    "limitrange": "LimitRange",
    "namespace": "Namespace",
    "priorityclass": "PriorityClass",
}


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    monkeypatch.chdir(tmp_path)
    exec(compile(PROGRAMS[0], "namespaces.md", "exec"), {})
    return [one for path in tmp_path.rglob("*.k8s.yaml") for one in yaml.safe_load_all(path.read_text())]


def test_the_program_makes_what_is_said(written: list[dict[str, Any]]) -> None:
    assert sorted((m["kind"], m["metadata"]["name"]) for m in written) == [
        ("LimitRange", "container-limits"),
        ("Namespace", "research"),
        ("PriorityClass", "gpu-batch"),
        ("PriorityClass", "gpu-notebook"),
        ("PriorityClass", "gpu-serving"),
        ("ResourceQuota", "namespace-quota"),
    ]


def test_the_commands_name_what_the_program_makes(written: list[dict[str, Any]]) -> None:
    there = {(m["kind"], m["metadata"]["name"]) for m in written}
    named = {
        (KINDS[words[2]], name)
        for words in COMMANDS
        if words[2] in KINDS
        for name in words[3:]
        if not name.startswith("-") and (name != "research" or words[2] == "namespace")
    }
    assert named == there
    assert all(words[0] == "kubectl" for words in COMMANDS)
    assert all("research" in words for words in COMMANDS if words[2] != "priorityclass")


def test_a_quota_on_memory_stands_beside_a_default(written: list[dict[str, Any]]) -> None:
    (quota,) = (m for m in written if m["kind"] == "ResourceQuota")
    (limits,) = (m["spec"]["limits"][0] for m in written if m["kind"] == "LimitRange")
    assert "requests.memory" in quota["spec"]["hard"]
    assert "memory" in limits["defaultRequest"]


def test_the_refused_block_gives_the_error_that_is_shown() -> None:
    (error,) = (block.text for block in documents.blocks(PAGE, "text"))
    with pytest.raises(GpuConstructsError) as refused:
        exec(PROGRAMS[1], {})
    assert f"{refused.value}\n" == error


def test_the_keys_are_those_that_are_written() -> None:
    for given, key in documents.table(PAGE, "given"):
        quota = eval(f"NamespaceQuota({given.strip('`')})", {"NamespaceQuota": NamespaceQuota})
        assert list(quota.to_manifest()) == [key.strip("`")]


def test_every_level_has_its_row() -> None:
    assert [row[0].strip("`") for row in documents.table(PAGE, "level")] == list(get_args(PodSecurityLevel))


def test_the_classes_are_the_ones_in_the_code(written: list[dict[str, Any]]) -> None:
    classes = {m["metadata"]["name"]: m for m in written if m["kind"] == "PriorityClass"}
    rows = {row[0].strip("`"): row for row in documents.table(PAGE, "class")}
    assert list(rows) == [f"gpu-{tier}" for tier in DEFAULT_VALUES]
    for name, row in rows.items():
        assert row[1] == str(classes[name]["value"])
        assert row[2].startswith("no" if classes[name]["preemptionPolicy"] == "Never" else "yes")

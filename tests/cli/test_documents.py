"""How the commands read manifests."""

from __future__ import annotations

import io
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from gpu_constructs.cli.documents import read
from gpu_constructs.cli.exits import CommandError, Exit

CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {}\n"


def written(folder: Path, text: str, name: str = "all.yaml") -> str:
    """Write a file, and return its path."""
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return str(file)


def test_each_object_has_the_line_on_which_it_begins(tmp_path: Path) -> None:
    file = written(tmp_path, f"# Source: chart\n{CONFIG_MAP.format('a')}---\n\n{CONFIG_MAP.format('b')}---\n")
    found = read([file])
    assert [(one.name, one.file, one.line) for one in found.objects] == [
        ("ConfigMap a", file, 2),
        ("ConfigMap b", file, 8),
    ]
    assert found.broken == []


def test_the_items_of_lists_are_objects_with_lines(tmp_path: Path) -> None:
    text = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: p, namespace: n}\n"
    text += "---\napiVersion: apps/v1\nkind: DeploymentList\nitems:\n- metadata: {name: d}\n- metadata: {name: e}\n"
    found = read([written(tmp_path, text)]).objects
    assert [(one.name, one.line) for one in found] == [("Pod n/p", 4), ("Deployment d", 11), ("Deployment e", 12)]
    assert found[2].manifest["apiVersion"] == "apps/v1"


def test_json_with_tabs_is_read(tmp_path: Path) -> None:
    text = '{\n\t"apiVersion": "v1",\n\t"kind": "Pod",\n\t"metadata": {"name": "p"}\n}'
    assert [one.name for one in read([written(tmp_path, text, "pod.json")]).objects] == ["Pod p"]


def test_a_broken_document_is_named_by_line_and_the_rest_is_read(tmp_path: Path) -> None:
    file = written(
        tmp_path, f"{CONFIG_MAP.format('a')}---\na: [\n---\n{CONFIG_MAP.format('b')}---\nkey: {{{{ .Values.x }}}}\n"
    )
    found = read([file])
    assert [one.name for one in found.objects] == ["ConfigMap a", "ConfigMap b"]
    unfinished, template = map(str, found.broken)
    assert unfinished.startswith(f"{file}:7: is not YAML: ")
    assert template.startswith(f"{file}:13: is not YAML: ")
    assert template.endswith(". Render the chart first: helm template")


def test_a_folder_is_read_without_what_is_not_an_object(tmp_path: Path) -> None:
    written(tmp_path, CONFIG_MAP.format("a"), "deep/a.yml")
    written(tmp_path, "replicas: 2\n", "values.yaml")
    written(tmp_path, CONFIG_MAP.format("hidden"), ".git/b.yaml")
    written(tmp_path, "no manifest", "notes.txt")
    found = read([str(tmp_path)])
    assert [one.name for one in found.objects] == ["ConfigMap a"]
    assert found.broken == []


def test_a_file_that_the_user_names_must_contain_objects(tmp_path: Path) -> None:
    file = written(tmp_path, "replicas: 2\n", "values.yaml")
    (broken,) = read([file]).broken
    assert str(broken) == (
        f"{file}:1: is not a Kubernetes object, because it has no apiVersion or no kind. Leave it out"
    )


def test_a_dash_stands_for_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(CONFIG_MAP.format("a").encode())))
    (found,) = read(["-"]).objects
    assert (found.file, found.line) == ("<stdin>", 1)


def test_objects_that_belong_to_another_object_of_a_dump_are_left_out(tmp_path: Path) -> None:
    owner = "{apiVersion: apps/v1, kind: ReplicaSet, name: r, uid: u, controller: true}"
    pod = f"apiVersion: v1\nkind: Pod\nmetadata: {{name: p, uid: x, ownerReferences: [{owner}]}}\n"
    owning = "---\napiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: r, uid: u}\n"
    assert [one.name for one in read([written(tmp_path, pod + owning)]).objects] == ["ReplicaSet r"]
    assert [one.name for one in read([written(tmp_path, pod)]).objects] == ["Pod p"]


def test_a_path_that_does_not_exist_ends_the_command() -> None:
    with pytest.raises(CommandError, match=r"^cannot read missing\.yaml: No such file or directory\. Name a") as error:
        read(["missing.yaml"])
    assert error.value.status == Exit.COULD_NOT_LOOK


@pytest.mark.parametrize(
    "text",
    [
        "[" * 5000,
        "&a [*a, *a]",
        "apiVersion: v1\nkind: Pod\nmetadata: null\n",
        "apiVersion: v1\nkind: List\nitems: [1, null, {kind: Pod}]\n",
        "apiVersion: v1\nkind: Pod\nmetadata: {ownerReferences: [1, {controller: true}]}\n",
        "a: &a [x, x, x, x, x, x]\n"
        + "".join(f"{c}: &{c} [*{p}, *{p}, *{p}, *{p}]\n" for p, c in pairwise("abcdefghijklmn"))
        + "apiVersion: v1\nkind: Pod\n",
        "\x00",
        "apiVersion: v1\nkind: Pod\nmetadata: {name: 2026-02-31}\n",
    ],
)
def test_odd_text_never_ends_the_reader(tmp_path: Path, text: str) -> None:
    found = read([written(tmp_path, text)])
    assert found.objects or found.broken
    assert all(one.name for one in found.objects)


def test_files_of_other_programs_in_a_folder_are_skipped(tmp_path: Path) -> None:
    talos = "apiVersion: v1alpha1\nkind: KernelModuleConfig\nname: nvidia\n"
    kustomize = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [a.yaml]\n"
    file = written(tmp_path, f"{talos}---\n{kustomize}")
    assert read([str(tmp_path)]).broken == []
    assert [(one.line, "is not a Kubernetes object" in one.problem) for one in read([file]).broken] == [
        (1, True),
        (5, True),
    ]

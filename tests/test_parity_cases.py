import json

import pytest

from parity_cases import UnreadableCase, find_cases, load

FACTS = {"chart": "c", "version": "1", "release": "r", "namespace": "n", "values": "v.yaml", "render": "r.yaml"}


def write(folder, *, index=None, values="a: 1", render="kind: A"):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cases.json").write_text(json.dumps({"one": FACTS}) if index is None else index)
    (folder / "v.yaml").write_text(values)
    (folder / "r.yaml").write_text(render)
    return folder


def test_cases_are_found_at_any_depth(tmp_path):
    write(tmp_path / "a")
    write(tmp_path / "b" / "c")
    assert [case.name for case in find_cases(tmp_path)] == [f"{tmp_path.name}/a/one", f"{tmp_path.name}/b/c/one"]


def test_a_case_tells_its_facts_values_and_objects(tmp_path):
    write(
        tmp_path,
        values="a: {1: x, yes: z}",
        render="# Source: x\n---\nkind: A # a---b\nof: ---c\n---\n\n--- # next\nkind: B\n--- {kind: C}\n---\n",
    )
    (case,) = find_cases(tmp_path)
    assert (case.chart, case.version, case.release, case.namespace) == ("c", "1", "r", "n")
    assert case.read_values() == {"a": {"1": "x", "true": "z"}}
    assert case.read_objects() == [{"kind": "A", "of": "---c"}, {"kind": "B"}, {"kind": "C"}]


@pytest.mark.parametrize("values", ["", "# nothing", "{}"])
def test_empty_values_are_none(tmp_path, values):
    (case,) = find_cases(write(tmp_path, values=values))
    assert case.read_values() == {}


def test_several_documents_of_values_are_merged_as_helm_does(tmp_path):
    (case,) = find_cases(write(tmp_path, values="a: {b: 1, c: 2}\nd: [1]\n---\na: {b: 3}\nd: [2]\n"))
    assert case.read_values() == {"a": {"b": 3, "c": 2}, "d": [2]}


def read_all(folder):
    for case in find_cases(folder):
        case.read_values()
        case.read_objects()


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ({"index": "{"}, "cases.json"),
        ({"index": "[]"}, "must map"),
        ({"index": json.dumps({"one": {**FACTS, "render": "none.yaml"}})}, "No such file"),
        ({"index": json.dumps({"one": {"chart": "c"}})}, "lacks namespace, release, render, values, version"),
        ({"values": "[]"}, "no mapping"),
        ({"values": "a: ["}, "v.yaml"),
        ({"render": "kind: A\n---\n- b"}, "no object"),
        ({"render": "kind: ["}, "r.yaml"),
    ],
)
def test_a_case_that_cannot_be_read_says_so(tmp_path, written, message):
    write(tmp_path, **written)
    with pytest.raises(UnreadableCase, match=message):
        read_all(tmp_path)


def test_text_of_another_document_is_not_mixed_up():
    assert load("a: 1") == {"a": 1}
    assert load("a: 2") == {"a": 2}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("n", False),
        ("y", True),
        ("yes", True),
        ("off", False),
        ("~", None),
        ("", None),
        ("017", 15),
        ("0o17", 15),
        ("0x1f", 31),
        ("-7", -7),
        ("+1_000", 1000),
        ("1e3", 1000),
        ("1.0", 1),
        ("1.5", 1.5),
        ("2024-01-02", "2024-01-02"),
        ("12:30", "12:30"),
        ("1.2.3", "1.2.3"),
        ("'n'", "n"),
        ("08", 8),
        ("nvidia", "nvidia"),
    ],
)
def test_plain_words_are_read_as_kubernetes_reads_them(text, value):
    read = load(f"a: {text}")["a"]
    assert (type(read), read) == (type(value), value)


def test_merged_mappings_are_read_as_one():
    assert load("a: &a {b: 1}\nc: {<<: *a, d: 2}")["c"] == {"b": 1, "d": 2}

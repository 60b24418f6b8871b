from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.kube import fields

LETTERS_AND_DIGITS = "abcdefghijklmnopqrstuvwxyz0123456789"


def problem_of(check, *arguments, **keywords):
    """The message a check refuses its arguments with; None when it takes them."""
    try:
        check(*arguments, **keywords)
    except GpuConstructsError as error:
        return str(error)
    return None


def test_a_misspelt_word_is_refused_with_the_words_and_the_nearest_of_them():
    assert problem_of(fields.one_of, "scrape", "ServceMonitor", ["ServiceMonitor", "none"]) == (
        "scrape must be one of 'ServiceMonitor', 'none'; got 'ServceMonitor' (did you mean 'ServiceMonitor'?)"
    )


@pytest.mark.parametrize(
    ("got", "problem"),
    [
        (2, None),
        (1, "replicas must be at least 2, got 1; use none"),
        (-1, "replicas must be at least 2, got -1; use none"),
        ("5", "replicas must be an int, got '5' (str); use none"),
        (2.5, "replicas must be an int, got 2.5 (float); use none"),
        (2.0, "replicas must be an int, got 2.0 (float); use none"),
        (True, "replicas must be an int, got True (bool); use none"),
        (None, "replicas must be an int, got None (NoneType); use none"),
    ],
)
def test_a_whole_number_is_an_int_of_a_least_size_and_no_bool(got, problem):
    assert problem_of(fields.whole_number, "replicas", got, minimum=2, way_out="use none") == problem


TEXTS = {
    fields.dns_label: (
        ["a", "0", "nvidia-gpu-operator", "a--b", "x" * 63],
        ["", "-a", "a-", "A", "a.b", "a_b", "ä", "a\n", "٣", "x" * 64],
        "a DNS label (a-z, 0-9 and '-', at most 63 characters, letter or digit at both ends)",
    ),
    fields.dns_subdomain: (
        ["nvidia", "a.b-c.d", "0.0", ".".join(["x" * 62] * 4)],
        ["", ".", "a.", ".a", "a..b", "a.-b", "A.b", ".".join(["x" * 63] * 4)],
        "a DNS subdomain (DNS labels joined by '.', at most 253 characters)",
    ),
    fields.label_value: (
        ["", "true", "A_b.c-d"],
        ["a b", "-a", "a-", "a/b", "a\n", "x" * 64],
        "a label value (letters, digits, '-', '_', '.', at most 63 characters, letter or digit at both ends)",
    ),
    fields.environment_name: (
        ["PATH", "_x", "a1"],
        ["", "1A", "A-B", "A B", "A=B", "A\n"],
        "a variable name (letters, digits, '_')",
    ),
    fields.quantity: (
        ["0", "1", "500m", "1.5", "16Gi", "64Mi", "2k", "1T"],
        ["", "16GB", "16 Gi", "gi", "-1", "1.", "16gi", "1\n"],
        "a Kubernetes quantity like '500m' or '16Gi'",
    ),
    fields.image: (
        [
            "busybox:1.37.0",
            "registry.home:5000/team/app:v1",
            f"a.b:5000/c/d@sha256:{'0' * 64}",
            f"a:1@sha256:{'0' * 64}",
        ],
        [
            "",
            "busybox",
            "busybox:latest",
            "registry.home:5000/app",
            ":1",
            "a:1 ",
            "a:",
            "a b:1",
            "App:1",
            "app@sha256:0",
        ],
        "pinned as 'repository:tag' or 'repository@sha256:...', never 'latest'",
    ),
    fields.absolute_path: (
        ["/", "/data", "/a..b/c"],
        ["", "data", "./data", "/a/../b", "/.."],
        "an absolute path without '..'",
    ),
    fields.capability: (
        ["SYS_PTRACE"],
        ["CAP_SYS_ADMIN", "sys ptrace", ""],
        "a capability like 'SYS_PTRACE', without 'CAP_'",
    ),
    fields.port_name: (
        ["http", "a-b", "80a"],
        ["80", "a--b", "a" * 16, ""],
        "a port name (a-z, 0-9 and single '-', at most 15 characters, at least one letter)",
    ),
}


@pytest.mark.parametrize("check", TEXTS, ids=lambda check: str(TEXTS[check][0][0]))
def test_a_text_of_another_form_is_refused_with_the_form(check):
    taken, refused, form = TEXTS[check]
    assert [text for text in taken if problem_of(check, "field", text)] == []
    for text in refused:
        assert problem_of(check, "field", text) == f"field must be {form}; got {text!r}"


def test_labels_have_keys_and_values_of_kubernetes():
    assert problem_of(fields.labels, "labels", {"team": "ml", "nvidia.com/gpu.present": "true", "A_b.c-d": ""}) is None
    for key in ("", "a b", "/a", "a/", "a/b/c", "A.com/x", "-a", "a-", "x" * 64):
        assert (
            problem_of(fields.labels, "labels", {key: "x"}) == f"labels has a key that is not a label key; got {key!r}"
        )
    assert problem_of(fields.labels, "labels", {"team": "a b"}).startswith("labels['team'] must be a label value")


@given(st.text(alphabet=LETTERS_AND_DIGITS + "-._A\nä", max_size=66))
def test_a_dns_label_is_what_rfc_1123_says(name):
    is_label = (
        0 < len(name) <= 63
        and set(name) <= set(LETTERS_AND_DIGITS + "-")
        and name[0] in LETTERS_AND_DIGITS
        and name[-1] in LETTERS_AND_DIGITS
    )
    assert (problem_of(fields.dns_label, "name", name) is None) == is_label


@pytest.mark.parametrize(
    ("quantity", "number"),
    [
        ("500m", Fraction(1, 2)), ("1.5", Fraction(3, 2)), ("1k", 1000), ("1Ki", 1024), ("2M", 2 * 10**6),
        ("2Mi", 2 * 2**20), ("1G", 10**9), ("1Gi", 2**30), ("1T", 10**12), ("1Ti", 2**40), ("1P", 10**15),
        ("1Pi", 2**50), ("1E", 10**18), ("1Ei", 2**60),
    ],
)  # fmt: skip
def test_a_quantity_says_a_number(quantity, number):
    assert fields.amount(quantity) == number


@pytest.mark.parametrize(
    ("annotation", "got"),
    [
        (str, "x"),
        (bool, True),
        (int | None, None),
        (int | None, 5),
        (Literal["a", "b"], "a"),
        (Literal["a", "b"] | None, None),
        (Literal["a", "b"] | Sequence[Literal["a", "b"]] | None, ["a", "b"]),
        (Sequence[str], ()),
        (Sequence[str], ("a",)),
        (Sequence[int] | Mapping[str, int], {"http": 80}),
        (Sequence[int] | Mapping[str, int], [80]),
        (Mapping[str, Mapping[str, str | int]] | None, {"limits": {"cpu": 1, "memory": "1Gi"}}),
    ],
)
def test_a_value_of_the_annotated_type_is_taken(annotation, got):
    assert problem_of(fields.of_type, "field", got, annotation) is None


@pytest.mark.parametrize(
    ("annotation", "got", "problem"),
    [
        (str, 5, "field must be str; got int: 5"),
        (bool, "yes", "field must be bool; got str: 'yes'"),
        (bool, 1, "field must be bool; got int: 1"),
        (int | None, True, "field must be an int, got True (bool)"),
        (Literal["red", "green"], "gren", "field must be one of 'red', 'green'; got 'gren' (did you mean 'green'?)"),
        (Literal["red", "blue"] | None, "rde", "field must be one of 'red', 'blue'; got 'rde' (did you mean 'red'?)"),
        (Sequence[Literal["a", "b"]], ["a", "c"], "field[1] must be one of 'a', 'b'; got 'c'"),
        (Sequence[str], "abc", "field must be a list, got 'abc' (str)"),
        (Sequence[str] | None, "abc", "field must be a list, got 'abc' (str)"),
        (Sequence[str], ["a", 5], "field[1] must be str; got int: 5"),
        (Mapping[str, str], {"a": 1}, "field['a'] must be str; got int: 1"),
        (Mapping[str, str], {1: "a"}, "field key must be str; got int: 1"),
    ],
)
def test_a_value_of_another_type_is_refused_in_python_words(annotation, got, problem):
    assert problem_of(fields.of_type, "field", got, annotation) == problem


def test_a_class_is_named_without_its_module():
    assert problem_of(fields.of_type, "field", 5, Sample) == "field must be Sample; got int: 5"


@dataclass(frozen=True)
class Sample:
    size: int | None = None
    colour: Literal["red", "green"] = "red"

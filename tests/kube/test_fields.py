from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.kube import fields
from tables import cases

LETTERS_AND_DIGITS = "abcdefghijklmnopqrstuvwxyz0123456789"


def problem_of(check, *arguments, **keywords):
    """Return the message with which a check rejects its arguments, or None if it accepts them."""
    try:
        check(*arguments, **keywords)
    except GpuConstructsError as error:
        return str(error)
    return None


def test_a_misspelled_word_is_rejected_with_the_allowed_words_and_a_suggestion():
    assert problem_of(fields.one_of, "scrape", "ServceMonitor", ["ServiceMonitor", "none"]) == (
        "scrape must be one of 'ServiceMonitor', 'none', got 'ServceMonitor' (did you mean 'ServiceMonitor'?)"
    )


@cases
def test_a_whole_number_is_an_int_above_the_minimum_and_not_a_bool(got, problem):
    assert problem_of(fields.whole_number, "replicas", got, minimum=2, way_out="use none") == problem


@cases
def test_a_text_in_another_format_is_rejected_with_the_format(check, taken, refused, form):
    assert [text for text in taken if problem_of(check, "field", text)] == []
    for text in refused:
        assert problem_of(check, "field", text) == f"field must be {form}, got {text!r}"


def test_a_name_has_as_many_characters_as_kubernetes_stores():
    for check, longest, longer in (
        (fields.dns_label, "x" * 63, "x" * 64),
        (fields.dns_subdomain, ".".join(["x" * 62] * 4), ".".join(["x" * 63] * 4)),
        (fields.label_value, "x" * 63, "x" * 64),
    ):
        assert problem_of(check, "field", longest) is None
        assert problem_of(check, "field", longer).endswith(f", got {longer!r}")


def test_labels_have_keys_and_values_that_kubernetes_allows():
    assert problem_of(fields.labels, "labels", {"team": "ml", "nvidia.com/gpu.present": "true", "A_b.c-d": ""}) is None
    for key in ("", "a b", "/a", "a/", "a/b/c", "A.com/x", "-a", "a-", "x" * 64):
        assert problem_of(fields.labels, "labels", {key: "x"}) == f"labels must have valid label keys, got {key!r}"
    assert problem_of(fields.labels, "labels", {"team": "a b"}).startswith("labels['team'] must be a label value")


@given(st.text(alphabet=LETTERS_AND_DIGITS + "-._A\nä", max_size=66))
def test_a_dns_label_follows_rfc_1123(name):
    is_label = (
        0 < len(name) <= 63
        and set(name) <= set(LETTERS_AND_DIGITS + "-")
        and name[0] in LETTERS_AND_DIGITS
        and name[-1] in LETTERS_AND_DIGITS
    )
    assert (problem_of(fields.dns_label, "name", name) is None) == is_label


@cases
def test_a_quantity_becomes_a_number(quantity, number):
    assert fields.amount(quantity) == Fraction(number)


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
def test_a_value_of_the_annotated_type_is_accepted(annotation, got):
    assert problem_of(fields.of_type, "field", got, annotation) is None


@pytest.mark.parametrize(
    ("annotation", "got", "problem"),
    [
        (str, 5, "field must be str, got int: 5"),
        (bool, "yes", "field must be bool, got str: 'yes'"),
        (bool, 1, "field must be bool, got int: 1"),
        (int | None, True, "field must be an int, got True (bool)"),
        (Literal["red", "green"], "gren", "field must be one of 'red', 'green', got 'gren' (did you mean 'green'?)"),
        (Literal["red", "blue"] | None, "rde", "field must be one of 'red', 'blue', got 'rde' (did you mean 'red'?)"),
        (Sequence[Literal["a", "b"]], ["a", "c"], "field[1] must be one of 'a', 'b', got 'c'"),
        (Sequence[str], "abc", "field must be a list, got 'abc' (str)"),
        (Sequence[str] | None, "abc", "field must be a list, got 'abc' (str)"),
        (Sequence[str], ["a", 5], "field[1] must be str, got int: 5"),
        (Mapping[str, str], {"a": 1}, "field['a'] must be str, got int: 1"),
        (Mapping[str, str], {1: "a"}, "field key must be str, got int: 1"),
    ],
)
def test_a_value_of_another_type_is_rejected_with_python_types(annotation, got, problem):
    assert problem_of(fields.of_type, "field", got, annotation) == problem


def test_a_class_is_named_without_its_module():
    assert problem_of(fields.of_type, "field", 5, Sample) == "field must be Sample, got int: 5"


@dataclass(frozen=True)
class Sample:
    size: int | None = None
    colour: Literal["red", "green"] = "red"

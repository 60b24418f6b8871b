import math
from collections import OrderedDict
from enum import IntEnum, StrEnum
from types import MappingProxyType

import refusals
from gpu_constructs.kube.plain_data import plain


class Word(StrEnum):
    A = "a"


class Number(IntEnum):
    ONE = 1


def refusal(value, **given):
    return refusals.refusal(plain, "values", value, **given)


def test_a_value_of_a_subclass_becomes_the_plain_type():
    for given, made in [
        (OrderedDict(a=1), {"a": 1}),
        (MappingProxyType({"a": MappingProxyType({"b": 0.5})}), {"a": {"b": 0.5}}),
        ((1, True, "a\nb"), [1, True, "a\nb"]),
        ({Word.A: Word.A}, {"a": "a"}),
        ([Number.ONE], [1]),
        (2**53, 2**53),
    ]:
        copied = plain("values", given)
        assert copied == made, (given, made)
        assert repr(copied) == repr(made), (given, made)


def test_a_later_change_of_the_original_has_no_effect():
    given = {"a": [{}]}
    copied = plain("values", given)
    given["a"][0]["b"] = 1
    assert copied == {"a": [{}]}


def test_none_is_kept_if_it_is_a_valid_value():
    assert plain("values", {"a": [None]}, may_be_none=True) == {"a": [None]}
    assert refusal({"a": [None]}) == "values.a[0] must have a value, got None. Set a value, or leave it out"


def test_a_number_that_json_cannot_represent_is_rejected():
    for number in [math.nan, math.inf, 10**30, -(2**53) - 1, 1e300]:
        assert refusal({"a": number}) == f"values.a must be a number within 2**53, got {number!r}. Write it as text"


def test_a_value_that_yaml_or_json_cannot_contain_is_rejected():
    for given, message in [
        ({"a": {1}}, "values.a must be a value that YAML supports, got {1} (set)"),
        ([b"a"], "values[0] must be a value that YAML supports, got b'a' (bytes)"),
        ({None: 1}, "values must have text keys, got None"),
        ({"a": {"b\nc": 1}}, "values.a must have printable keys, got 'b\\nc'"),
    ]:
        assert refusal(given, may_be_none=True) == message, (given, message)


def test_a_recursive_value_is_rejected():
    whole = {}
    whole["daemonsets"] = [whole]
    message = refusal(whole)
    assert message.startswith("values must have at most 64 nested levels, got more, or a recursive value, at values.")
    assert message.endswith(".... Flatten it")


def test_a_character_that_breaks_a_manifest_is_rejected():
    for letter in ["\x7f", "\x85", "\x9f", "\u2028", "\u2029", "\ufffe", "\uffff", "\ud800"]:
        text = f"b{letter}c"
        assert refusal({"a": text}) == (
            f"values.a must be text that every YAML reader accepts, got {text!r}. Remove the control character or line "
            "separator"
        )


def test_every_other_character_is_kept():
    for letter in ["\t", "\n", "\0", "\xa0", "\u200b", "\U0001f600"]:
        assert plain("values", f"b{letter}c") == f"b{letter}c", letter

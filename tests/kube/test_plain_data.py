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


def test_whatever_class_it_is_of_it_becomes_the_plain_one():
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


def test_what_is_given_may_change_later():
    given = {"a": [{}]}
    copied = plain("values", given)
    given["a"][0]["b"] = 1
    assert copied == {"a": [{}]}


def test_none_is_kept_where_it_means_something():
    assert plain("values", {"a": [None]}, may_be_none=True) == {"a": [None]}
    assert refusal({"a": [None]}) == "values.a[0] must have a value; got None; leave it out"


def test_a_number_that_json_does_not_keep_is_refused():
    for number in [math.nan, math.inf, 10**30, -(2**53) - 1, 1e300]:
        assert refusal({"a": number}) == f"values.a must be a number within 2**53; got {number!r}; write it as text"


def test_what_yaml_and_json_do_not_both_hold_is_refused():
    for given, message in [
        ({"a": {1}}, "values.a must be what YAML can hold; got {1} (set)"),
        ([b"a"], "values[0] must be what YAML can hold; got b'a' (bytes)"),
        ({None: 1}, "values must have text for keys; got None"),
        ({"a": {"b\nc": 1}}, "values.a must have printable text for keys; got 'b\\nc'"),
    ]:
        assert refusal(given, may_be_none=True) == message, (given, message)


def test_what_holds_itself_is_refused():
    whole = {}
    whole["daemonsets"] = [whole]
    message = refusal(whole)
    assert message.startswith(
        "values must be nested at most 64 deep; got one that is deeper, or holds itself, at values."
    )
    assert message.endswith("...; flatten it")


def test_a_letter_that_breaks_a_manifest_is_refused():
    for letter in ["\x7f", "\x85", "\x9f", "\u2028", "\u2029", "\ufffe", "\uffff", "\ud800"]:
        text = f"b{letter}c"
        assert refusal({"a": text}) == (
            f"values.a must be text that every reader of YAML takes; got {text!r}; leave out the control character or "
            "line "
            "separator in it"
        )


def test_every_other_letter_is_kept():
    for letter in ["\t", "\n", "\0", "\xa0", "\u200b", "\U0001f600"]:
        assert plain("values", f"b{letter}c") == f"b{letter}c", letter

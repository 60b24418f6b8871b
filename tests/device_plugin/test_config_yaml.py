"""Text that the YAML parser of the plugin reads in an unexpected way, or rejects."""

import math
from functools import partial

import yaml

import refusals
from gpu_constructs.device_plugin.config import PluginConfig
from gpu_constructs.device_plugin.config_reader import PluginYaml


def compose(text):
    found = PluginYaml().root(text)
    return found and found.node


def value_of(text):
    found = PluginYaml().root(text)
    return found and found.scalar()


refusal = partial(refusals.refusal, compose)


SCALARS = {
    True: "y Y yes Yes YES on On ON true True TRUE",
    False: "n N no No NO off Off OFF false False FALSE",
    None: "~ null Null NULL",
    5: "5 +5 0b101 0x5 05 0o5 0_5",
    1000: "1_000",
    0.5: ".5 5e-1 5E-1 0.5",
    8.0: "08 8.",
    float("inf"): ".inf +.INF",
}
TEXTS = "yEs nO tRUE nULL t f none 1:30 190:20:30 2020-01-01 2001-12-14t21:59:43.10-05:00 = << 1.2.3 0o9 08x 0xg 1e e1"


def test_scalars_have_the_values_that_the_plugin_reads():
    rows = [(word, value) for value, words in SCALARS.items() for word in words.split()]
    rows += [(word, word) for word in TEXTS.split()] + [("'yes'", "yes"), ('"5"', "5"), ("'~'", "~"), ("''", "")]
    for text, value in rows:
        found = value_of(text)
        assert (type(found), found) == (type(value), value), text
    assert all(math.isnan(value_of(text)) for text in (".nan", ".NaN", ".NAN"))


def test_text_that_is_not_yaml_is_rejected_in_one_line(refused):
    refused(compose, SURROGATE="\ud800")


def test_text_that_parsers_read_differently_is_rejected(refused):
    refused(compose, DEEP="[" * 3000, STEPS="".join(" " * n + "- \n" for n in range(17)))


def test_text_that_all_parsers_read_alike_is_accepted(rows):
    for (text,) in rows:
        assert isinstance(compose(text), yaml.Node), text


def test_nested_aliases_take_time_proportional_to_their_length():
    bomb = "a: &a [x, x]\n" + "".join(
        f"{new}: &{new} [*{old}, *{old}]\n" for old, new in zip("abcdefghijkl", "bcdefghijklm", strict=True)
    )
    for text in (bomb, bomb.replace("a: &a", "flags: &a"), f"flags: {{mpsRoot: &x [1]}}\n{bomb}"):
        assert len(refusals.refusal(PluginConfig.from_yaml, text)) < 200


def test_json_can_have_tabs_as_indentation():
    text = '\n{\n\t"a":\n\t\t"b"\n}\n'
    assert yaml.SafeLoader("").construct_document(compose(text)) == {"a": "b"}


def test_tabs_are_rejected_in_indentation_and_between_tokens():
    for text in ("a: {}\nb:\n\tc: 1", '\t{"a": 1}', '{"a": 1}\n\t', '{"a": 1}\n\t# x', '{"a":\t1}'):
        assert refusal(text).endswith("found character '\\t' that cannot start any token. Use spaces"), text

import re

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gpu_constructs import _yaml
from gpu_constructs._yaml import manifest_text, yaml_text


class Yaml12(yaml.SafeLoader):
    """Takes plain scalars for what YAML 1.2 (the core schema) takes them for."""


class PluginYaml(yaml.SafeLoader):
    """Takes plain scalars for what go.yaml.in/yaml/v2 takes them for."""


_FLOAT = r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
for loader, patterns in (
    (
        Yaml12,
        {
            "null": r"~|null|Null|NULL|",
            "bool": r"true|True|TRUE|false|False|FALSE",
            "int": r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+",
            "float": _FLOAT,
        },
    ),
    (
        PluginYaml,
        {
            "null": r"~|null|Null|NULL|",
            "bool": r"y|Y|yes|Yes|YES|n|N|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF",
            "int": r"[-+]?(0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|[0-9][0-9_]*)",
            "float": _FLOAT,
        },
    ),
):
    loader.yaml_implicit_resolvers = {}
    for tag, pattern in patterns.items():
        loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"(?:{pattern})\\Z"), None)

READERS = [yaml.SafeLoader, Yaml12, PluginYaml]
every_reader = pytest.mark.parametrize("reader", READERS, ids=["yaml-1.1", "yaml-1.2", "plugin"])

TEMPTING = (
    "y Y yes No on OFF true False null Null ~ 0 012 0o14 0x1F 0b1 1_000 1e3 .5 .5e3 5. 0e10 -0 +1 .inf -.INF .nan NaN "
    "inf 1:30 190:20:30 2020-01-01 2001-12-14t21:59:43.10-05:00 = << - ? : # & * ! | > % @ ` [] {} none . .. a:b a#b"
).split()


every_writer = pytest.mark.parametrize("write", [yaml_text, manifest_text])


@every_writer
@every_reader
@pytest.mark.parametrize(
    "text", ["", " ", "a ", " a", "a: b", "a #b", "a\nb", "a\n", "\n", "\ta", 'a"b', "a'b", "é", "\u2028", *TEMPTING]
)
def test_text_stays_text_for_every_reader(write, reader, text):
    assert yaml.load(write({"key": text, "list": [text]}), reader) == {"key": text, "list": [text]}


@every_writer
@every_reader
def test_other_values_stay_what_they_are_for_every_reader(write, reader):
    document = {"t": True, "f": False, "n": None, "i": 48, "neg": -1, "x": 1.5, "l": [1, {"a": "b"}], "e": [], "m": {}}
    assert yaml.load(write(document), reader) == document


@every_writer
@every_reader
@given(text=st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=12))
def test_any_text_stays_text_for_every_reader(write, reader, text):
    assert yaml.load(write({"key": [text]}), reader) == {"key": [text]}


@every_writer
@every_reader
@given(text=st.text("0123456789.eExob_+-:yntf", max_size=6))
def test_text_that_looks_like_a_number_stays_text_for_every_reader(write, reader, text):
    assert yaml.load(write({text: [text]}), reader) == {text: [text]}


@pytest.mark.parametrize("word", ["none", "time-slicing", "nvidia.com/gpu", "/driver-root", "60s"])
def test_only_plain_words_go_without_quotes(word):
    quoted = word if not word[0].isdigit() else f'"{word}"'
    assert yaml_text({"key": word}) == f"key: {quoted}\n"


def test_the_same_list_twice_is_written_twice_and_not_by_reference():
    shared = ["a"]
    assert yaml_text({"x": shared, "y": shared}) == 'x:\n  - a\n"y":\n  - a\n'


def test_keys_keep_their_order_and_lists_are_indented():
    assert yaml_text({"b": 1, "a": [{"name": 1}]}) == "b: 1\na:\n  - name: 1\n"


def test_long_lines_are_not_broken():
    assert len(yaml_text({"key": "word " * 100}).splitlines()) == 1


def test_text_of_several_lines_is_a_block():
    assert yaml_text({"key": "one\ntwo\n"}) == "key: |\n  one\n  two\n"


@pytest.mark.parametrize("word", ["16Gi", "500m", "a b", "--flag=value", "sum by (gpu) (x)", "nvidia.com/gpu"])
def test_a_manifest_leaves_bare_what_nobody_takes_for_a_number(word):
    assert manifest_text({"key": word}) == f"key: {word}\n"


@pytest.mark.parametrize("first", ["0", "1e", "a", "f0"])
def test_a_checksum_in_a_manifest_is_always_quoted(first):
    checksum = first + "b" * (64 - len(first))
    assert manifest_text({"sum": checksum}) == f'sum: "{checksum}"\n'


def test_whole_numbers_in_a_manifest_are_written_as_in_json():
    assert manifest_text({"a": 1.0, "b": 0.5, "c": -3}) == "a: 1\nb: 0.5\nc: -3\n"


@given(
    st.recursive(
        st.one_of(
            st.none(),
            st.booleans(),
            st.integers(-9, 9),
            st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cc", "Cs"]), max_size=6),
            st.sampled_from(["a\nb\n", "a\nb", "x " * 90]),
        ),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.text("abcdef-/.", min_size=1, max_size=4), inner, max_size=3)
        ),
        max_leaves=8,
    )
)
def test_a_manifest_is_written_the_same_with_and_without_the_library_in_c(value):
    class Slow(yaml.SafeDumper):
        ignore_aliases = _yaml._ManifestDumper.ignore_aliases
        yaml_representers = _yaml._ManifestDumper.yaml_representers

    slow = yaml.dump(
        {"key": value}, Dumper=Slow, sort_keys=False, width=10**6, allow_unicode=True, default_flow_style=False
    )
    assert manifest_text({"key": value}) == slow

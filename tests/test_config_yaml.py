"""Text that the plugin's YAML reader takes for something else than it looks, or does not take at all."""

import math

import pytest
import yaml

from gpu_constructs import GpuConstructsError
from gpu_constructs.device_plugin.config import PluginConfig
from gpu_constructs.device_plugin.config_yaml import compose, scalar


def value_of(text):
    return scalar(compose(text))


def refusal(text):
    with pytest.raises(GpuConstructsError) as refused:
        compose(text)
    assert str(refused.value).isprintable()
    return str(refused.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *((word, True) for word in ("y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE")),
        *((word, False) for word in ("n", "N", "no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE")),
        *((word, None) for word in ("~", "null", "Null", "NULL")),
        *((word, word) for word in ("yEs", "nO", "tRUE", "nULL", "t", "f", "none", "1:30", "190:20:30", "2020-01-01")),
        *(
            (word, word)
            for word in ("2001-12-14t21:59:43.10-05:00", "=", "<<", "1.2.3", "0o9", "08x", "0xg", "1e", "e1")
        ),
        *(("'yes'", "yes"), ('"5"', "5"), ("'~'", "~"), ("''", "")),
        *(
            ("5", 5),
            ("+5", 5),
            ("-5", -5),
            ("0", 0),
            ("010", 8),
            ("0o10", 8),
            ("0x1F", 31),
            ("-0b11", -3),
            ("1_000", 1000),
        ),
        *(("5.", 5.0), (".5", 0.5), ("-1.5", -1.5), ("1e3", 1000.0), (".5e3", 500.0), ("1E-1", 0.1), ("08", 8.0)),
        *((".inf", float("inf")), ("-.INF", float("-inf"))),
    ],
)
def test_a_scalar_means_what_it_means_to_the_plugin(text, value):
    found = value_of(text)
    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize("text", [".nan", ".NaN", ".NAN"])
def test_what_is_no_number_is_no_text_either(text):
    assert math.isnan(value_of(text))


def test_nothing_is_no_document():
    assert compose("") is None
    assert compose("# only a comment\n") is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: b: c", "line 1: text is no YAML: mapping values are not allowed here"),
        ("a: 1\n b: 2", "line 2: text is no YAML: mapping values are not allowed here"),
        ("a: [1\nb: 2", "line 2: text is no YAML: while parsing a flow sequence, expected ',' or ']', but got ':'"),
        ("a: 'x", "line 1: text is no YAML: while scanning a quoted scalar, found unexpected end of stream"),
        ("a\nb: 1", "line 2: text is no YAML: mapping values are not allowed here"),
        ("a: *b", "line 1: text is no YAML: found undefined alias 'b'"),
        (
            "a: &x 1\nb: &x 2",
            "line 2: text is no YAML: found duplicate anchor 'x'; first occurrence, second occurrence",
        ),
        (
            "a:\n\tb: 1",
            "line 2: text is no YAML: while scanning for the next token, found character '\\t' that cannot start any "
            "token; use spaces",
        ),
        (
            "a: @b",
            "line 1: text is no YAML: while scanning for the next token, found character '@' that cannot start any "
            "token",
        ),
        (
            "a: 1\nb: \x00",
            "line 2: text is no YAML: unacceptable character #x0000: special characters are not allowed",
        ),
        ("\ud800", "line 1: text is no YAML: unacceptable character #xd800: special characters are not allowed"),
        (
            'a: "\\q"',
            "line 1: text is no YAML: while scanning a double-quoted scalar, found unknown escape character 'q'",
        ),
    ],
)
def test_what_is_no_yaml_is_refused_in_one_line(text, problem):
    assert refusal(text) == problem


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("a: 1\n---\nb: 2", 2, "be one document: the plugin would read the first alone; delete the others"),
        ("a: 1\n---\n", 2, "be one document: the plugin would read the first alone; delete the others"),
        ("%YAML 1.2\n---\na: 1", 1, "have no directives, the plugin refuses most; delete the line"),
        ("\n%FOO bar\n---\na: 1", 2, "have no directives, the plugin refuses most; delete the line"),
        ("# x\n%FOO bar\n---\na: 1", 2, "have no directives, the plugin refuses most; delete the line"),
        ("a: !!str 5", 1, "have no tags; got 'tag:yaml.org,2002:str'; write the value alone"),
        ("a:\n  - !foo 5", 2, "have no tags; got '!foo'; write the value alone"),
        ("a: ! 5", 1, "have no tags; got '!'; write the value alone"),
        ("!!map {}", 1, "have no tags; got 'tag:yaml.org,2002:map'; write the value alone"),
        (
            "a: !!python/object/apply:os.system [ls]",
            1,
            "have no tags; got 'tag:yaml.org,2002:python/object/apply:os.system'; write the value alone",
        ),
        ("a: !!binary aGk=", 1, "have no tags; got 'tag:yaml.org,2002:binary'; write the value alone"),
        ("a: !!timestamp 5", 1, "have no tags; got 'tag:yaml.org,2002:timestamp'; write the value alone"),
        ("!!int a: 5", 1, "have no tags; got 'tag:yaml.org,2002:int'; write the value alone"),
        ("a: &x [*x]", 1, "not hold itself; got *x"),
        ("a: &x\n  b: {c: *x}", 2, "not hold itself; got *x"),
        ("{a:{b: 1}}", 1, "have a space after each colon; got 'a:{'"),
        ("{a:[b]}", 1, "have a space after each colon; got 'a:['"),
        ("{a:}", 1, "have a space after each colon; got 'a:}'"),
        ('{"a": "\\/b"}', 1, "not escape '/', which the plugin cannot read; got '\\/'"),
        ('a: "\\\\\\/b"', 1, "not escape '/', which the plugin cannot read; got '\\/'"),
        ("[" * 17 + "]" * 17, 1, "not be nested deeper than any key of the file"),
        ("[" * 3000, 1, "not be nested deeper than any key of the file"),
        ("".join(f"{' ' * n}- \n" for n in range(17)), 17, "not be nested deeper than any key of the file"),
    ],
)
def test_what_readers_take_for_different_things_is_refused(text, line, problem):
    assert refusal(text) == f"line {line}: text must {problem}"


@pytest.mark.parametrize(
    "text",
    ["[" * 16 + "]" * 16, '{"a":{"b":1}}', "a: http://x:y", 'a: "\\\\/"', "a: '\\/'", "a: \\/", "a: &x 1\nb: *x"],
)
def test_what_every_reader_takes_for_the_same_thing_is_taken(text):
    assert isinstance(compose(text), yaml.Node)


def test_aliases_of_aliases_cost_no_more_than_they_are_long():
    bomb = "a: &a [x, x]\n" + "".join(
        f"{new}: &{new} [*{old}, *{old}]\n" for old, new in zip("abcdefghijkl", "bcdefghijklm", strict=True)
    )
    for text in (bomb, bomb.replace("a: &a", "flags: &a"), f"flags: {{mpsRoot: &x [1]}}\n{bomb}"):
        with pytest.raises(GpuConstructsError) as refused:
            PluginConfig.from_yaml(text)
        assert len(str(refused.value)) < 200


def test_json_may_be_indented_with_tabs():
    text = '\n{\n\t"a":\n\t\t"b"\n}\n'
    assert yaml.SafeLoader("").construct_document(compose(text)) == {"a": "b"}


@pytest.mark.parametrize("text", ["a: {}\nb:\n\tc: 1", '\t{"a": 1}', '{"a": 1}\n\t', '{"a": 1}\n\t# x', '{"a":\t1}'])
def test_tabs_are_refused_where_the_plugin_would_refuse_them_and_between_tokens(text):
    assert refusal(text).endswith("found character '\\t' that cannot start any token; use spaces")

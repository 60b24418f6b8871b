import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gpu_constructs.kube import yaml_text as _yaml
from gpu_constructs.kube.yaml_text import manifest_text, yaml_text
from yaml_readers import READERS

every_writer = pytest.mark.parametrize("write", [yaml_text, manifest_text])

TEMPTING = (
    "y Y yes No on OFF true False null Null ~ 0 012 0o14 0x1F 0b1 1_000 1e3 .5 .5e3 5. 0e10 -0 +1 .inf -.INF .nan NaN "
    "inf 1:30 190:20:30 2020-01-01 2001-12-14t21:59:43.10-05:00 = << - ? : # & * ! | > % @ ` [] {} none . .. a:b a#b"
).split()
ODD = ["", " ", "a ", " a", "a: b", "a #b", "a\nb", "a\n", "\n", "a\n\n", "\ta", 'a"b', "a'b", "é", "\u2028", *TEMPTING]


def is_read_as_written(write, document):
    return all(yaml.load(write(document), reader) == document for reader in READERS)


@every_writer
def test_text_stays_text_for_every_reader(write):
    for text in ODD:
        assert is_read_as_written(write, {"key": text, "list": [text, [text]], "map": {text: text}}), text


@every_writer
def test_other_values_stay_what_they_are_for_every_reader(write):
    document = {"t": True, "f": False, "n": None, "i": 48, "neg": -1, "x": 1.5, "l": [1, {"a": "b"}], "e": [], "m": {}}
    assert is_read_as_written(write, document)


@every_writer
@given(
    text=st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=12)
    | st.text("0123456789.eExob_+-:yntf", max_size=6)
)
def test_any_text_stays_text_for_every_reader(write, text):
    assert is_read_as_written(write, {"key": [text], text: text})


def test_only_plain_words_have_no_quotes():
    words = {"a": "none", "b": "time-slicing", "c": "nvidia.com/gpu", "d": "/driver-root", "e": "60s"}
    assert yaml_text(words) == 'a: none\nb: time-slicing\nc: nvidia.com/gpu\nd: /driver-root\ne: "60s"\n'


def test_a_manifest_does_not_quote_text_that_no_reader_takes_for_a_number():
    for word in ("16Gi", "500m", "a b", "--flag=value", "sum by (gpu) (x)", "nvidia.com/gpu"):
        assert manifest_text({"key": word}) == f"key: {word}\n"


def test_a_checksum_in_a_manifest_is_always_quoted():
    for first in ("0", "1e", "a", "f0"):
        checksum = first + "b" * (64 - len(first))
        assert manifest_text({"sum": checksum}) == f'sum: "{checksum}"\n'


def test_whole_numbers_in_a_manifest_are_written_as_in_json():
    assert manifest_text({"a": 1.0, "b": 0.5, "c": -3}) == "a: 1\nb: 0.5\nc: -3\n"


def dumped(document, dumper):
    return yaml.dump(
        document, Dumper=dumper, sort_keys=False, width=10**6, allow_unicode=True, default_flow_style=False
    )


@pytest.mark.parametrize(("write", "dumper"), [(yaml_text, _yaml._Dumper), (manifest_text, _yaml._ManifestDumper)])
@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-9, 9)
        | st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cc", "Cs"]), max_size=6)
        | st.sampled_from([*ODD, "a\nb", " a\nb\n", "a \nb", "x " * 90]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.text("abcdef-/.", max_size=4) | st.sampled_from([*ODD, "k" * 130]), inner, max_size=3)
        ),
        max_leaves=8,
    )
)
def test_documents_are_the_same_as_those_of_pyyaml(write, dumper, value):
    document = {"key": value}
    assert write(document) == dumped(document, dumper)


def test_a_manifest_is_written_the_same_with_and_without_the_library_in_c():
    class Slow(yaml.SafeDumper):
        ignore_aliases = _yaml._ManifestDumper.ignore_aliases
        yaml_representers = _yaml._ManifestDumper.yaml_representers

    document = {"texts": [text for text in ODD if not text.endswith("\n")], "long": "x " * 90, "block": "a\n b\n"}
    assert manifest_text(document) == dumped(document, Slow)

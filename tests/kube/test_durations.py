from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_constructs import GpuConstructsError
from gpu_constructs.kube.durations import LONGEST, from_go_duration, go_duration


def test_a_span_is_read_as_go_reads_it():
    for text, span in [
        ("60s", timedelta(seconds=60)),
        ("1h30m", timedelta(hours=1, minutes=30)),
        ("1.5h", timedelta(minutes=90)),
        ("100ms", timedelta(milliseconds=100)),
        ("200us", timedelta(microseconds=200)),
        ("200µs", timedelta(microseconds=200)),
        ("200μs", timedelta(microseconds=200)),
        ("5000ns", timedelta(microseconds=5)),
        (".5s", timedelta(milliseconds=500)),
        ("5.s", timedelta(seconds=5)),
        ("1s1s", timedelta(seconds=2)),
        ("+90s", timedelta(seconds=90)),
        ("-5s", timedelta(seconds=-5)),
        ("0", timedelta(0)),
        ("-0", timedelta(0)),
        ("0.1s", timedelta(milliseconds=100)),
        ("1.0000019s", timedelta(seconds=1, microseconds=1)),
        ("2562047h47m16.854775807s", LONGEST),
    ]:
        assert from_go_duration("field", text) == span, (text, span)


def test_text_that_go_would_refuse_is_refused():
    for text in [
        *("", "60", "s", ".s", "60 s", " 60s", "60s ", "60s\n", "1d", "1w", "infinite", "1e3s", "1S", "--5s", "+", "-"),
        *("1:30", "\u0661s", "5s5"),
    ]:
        with pytest.raises(GpuConstructsError) as refused:
            from_go_duration("flags.gfd.sleepInterval", text)
        assert str(refused.value) == (
            f"flags.gfd.sleepInterval must be a duration with a unit, like '60s' or '1h30m'; got {text!r}"
        )


def test_spans_beyond_64_bits_of_nanoseconds_are_refused():
    for text in ["2562047h47m16.854775808s", "99999999h", "-99999999h", "9" * 500 + "s"]:
        with pytest.raises(GpuConstructsError) as refused:
            from_go_duration("wait", text)
        assert str(refused.value) == f"wait must be a duration of at most 292 years; got {text!r}", text


@given(st.timedeltas(-LONGEST, LONGEST))
def test_what_is_written_is_read_back_the_same(span):
    assert from_go_duration("field", go_duration(span)) == span

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from depth import at_depth
from gpu_constructs.kube.durations import LONGEST, from_go_duration, go_duration
from refusals import refusal


def test_a_duration_has_the_meaning_of_go(rows):
    for text, seconds in rows:
        assert from_go_duration("field", text) == timedelta(seconds=seconds), text
    assert from_go_duration("field", "2562047h47m16.854775807s") == LONGEST


def test_text_that_go_cannot_parse_is_rejected():
    for text in [
        *("", "60", "s", ".s", "60 s", " 60s", "60s ", "60s\n", "1d", "1w", "infinite", "1e3s", "1S", "--5s", "+", "-"),
        *("1:30", "\u0661s", "5s5"),
    ]:
        assert refusal(from_go_duration, "flags.gfd.sleepInterval", text) == (
            f"flags.gfd.sleepInterval must be a duration with a unit, like '60s' or '1h30m', got {text!r}"
        )


def test_durations_beyond_64_bits_of_nanoseconds_are_rejected():
    for text in ["2562047h47m16.854775808s", "99999999h", "-99999999h", "9" * 500 + "s"]:
        assert (
            refusal(from_go_duration, "wait", text) == f"wait must be a duration of at most 292 years, got {text!r}"
        ), text


@at_depth(300, quick=30)
@given(st.timedeltas(-LONGEST, LONGEST))
def test_a_written_duration_is_read_back_unchanged(span):
    assert from_go_duration("field", go_duration(span)) == span

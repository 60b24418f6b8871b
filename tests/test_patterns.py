"""Tests that late regular expressions behave like those of the standard library."""

import re

import pytest

from gpu_constructs.patterns import regex

USES = {
    "a match": lambda made: made.fullmatch("AB")["second"],
    "no match": lambda made: made.match("c"),
    "a replacement": lambda made: made.sub("-", "xaby"),
    "parts": lambda made: made.split("xAy", maxsplit=1),
    "the text": lambda made: made.pattern,
    "the number of groups": lambda made: made.groups,
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_late_expression_gives_what_the_standard_library_gives(use):
    given = r"a(?P<second>b)?", re.IGNORECASE
    assert use(regex(*given)) == use(re.compile(*given))


def test_an_expression_is_compiled_at_its_first_use():
    broken = regex("(")
    with pytest.raises(re.error):
        broken.match("")

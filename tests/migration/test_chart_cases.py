"""What values of the charts become: the cases lie in ``cases/``, one row a fact."""

from __future__ import annotations

from typing import Any

import chart_cases as cases
import pytest

from gpu_constructs import GpuConstructsError
from gpu_constructs.migration.chart import chart
from house_style import assert_house_style

FILES = {
    name: name if name in cases.CHARTS else "nvidia-device-plugin"
    for name in sorted(path.stem for path in cases.CASES.glob("*.yaml"))
}


def rows(name: str, *, refused: bool) -> list[dict[str, Any]]:
    return [case for case in cases.read(name) if ("refused" in case) == refused]


@pytest.mark.parametrize(("name", "of"), FILES.items())
def test_values_go_into_their_keywords_and_nowhere_else(name, of):
    wrong = []
    for case in rows(name, refused=False):
        gives, warned = cases.changes(of, case, strict=True)
        if (gives, warned) != (case["gives"], case.get("warns", [])):
            wrong.append((case["values"], gives, warned, case))
    assert wrong == []


@pytest.mark.parametrize(("name", "of"), FILES.items())
def test_what_cannot_be_taken_over_is_refused_with_its_key_or_dropped_with_the_same_words(name, of):
    wrong = []
    for case in rows(name, refused=True):
        with pytest.raises(GpuConstructsError) as refused:
            cases.changes(of, case, strict=True)
        assert_house_style(refused.value)
        text = str(refused.value)
        if text.removesuffix(cases.WAY_OUT) != case["refused"]:
            wrong.append((case["values"], text, case["refused"]))
        elif text.endswith(cases.WAY_OUT):
            left, warned = cases.changes(of, case, strict=False)
            if case["refused"] not in [one.replace(" is dropped: it ", " ", 1) for one in warned] or left != case.get(
                "instead", left
            ):
                wrong.append((case["values"], warned, left, case))
    assert wrong == []


def said(values: Any, prefix: str = "") -> set[str]:
    found = {prefix.rstrip(".")}
    for key, value in values.items() if isinstance(values, dict) else ():
        found |= said(value, f"{prefix}{key}.")
    return found


@pytest.mark.parametrize("name", cases.CHARTS)
def test_every_key_that_goes_somewhere_has_a_case_that_shows_it(name):
    shown = set().union(
        *(said(case["values"]) for file, of in FILES.items() if of == name for case in cases.read(file))
    )
    assert [path for path in chart(name).keys if path not in shown and not chart(name).keys[path].why_not] == []

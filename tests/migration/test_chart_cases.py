"""Conversion of the values of charts. The cases are in ``cases/``, with one row for each fact."""

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


def rows(name: str, kind: str) -> list[dict[str, Any]]:
    return [case for case in cases.read(name) if kind in case]


@pytest.mark.parametrize(("name", "of"), FILES.items())
def test_values_become_only_their_keywords(name, of):
    wrong = []
    for case in rows(name, "gives"):
        gives, warned = cases.changes(of, case, strict=True)
        if (gives, warned) != (case["gives"], case.get("warns", [])):
            wrong.append((case["values"], gives, warned, case))
    assert wrong == []


@pytest.mark.parametrize(("name", "of"), FILES.items())
def test_unsupported_values_are_rejected_or_dropped_with_the_same_message(name, of):
    wrong = []
    for case in rows(name, "refused"):
        with pytest.raises(GpuConstructsError) as refused:
            cases.changes(of, case, strict=True)
        assert_house_style(refused.value)
        texts = refused.value.problems
        expected = case["refused"] if isinstance(case["refused"], list) else [case["refused"]]
        if [text.removesuffix(cases.WAY_OUT) for text in texts] != expected:
            wrong.append((case["values"], texts, expected))
        elif all(text.endswith(cases.WAY_OUT) for text in texts):
            left, warned = cases.changes(of, case, strict=False)
            dropped = {one.replace(" is dropped: it ", " ", 1) for one in warned}
            if not dropped.issuperset(expected) or left != case.get("instead", left):
                wrong.append((case["values"], warned, left, case))
    assert wrong == []


@pytest.mark.parametrize(("name", "of"), FILES.items())
def test_a_key_that_the_chart_ignores_too_is_dropped_with_a_warning(name, of):
    for case in rows(name, "ignored"):
        for strict in (True, False):
            left, warned = cases.changes(of, case, strict=strict)
            assert case["ignored"] in [one.replace(" is dropped: it ", " ", 1) for one in warned]
            assert left == case.get("instead", left)


def said(values: Any, prefix: str = "") -> set[str]:
    found = {prefix.rstrip(".")}
    for key, value in values.items() if isinstance(values, dict) else ():
        found |= said(value, f"{prefix}{key}.")
    return found


@pytest.mark.parametrize("name", cases.CHARTS)
def test_every_supported_key_has_a_case(name):
    shown = set().union(
        *(said(case["values"]) for file, of in FILES.items() if of == name for case in cases.read(file))
    )
    assert [path for path in chart(name).keys if path not in shown and not chart(name).keys[path].why_not] == []

"""The intended differences between the charts and this library, on renders like Helm's: each explains its own alone.

The cases lie in ``deviation_cases.yaml``.
"""

import copy
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

import deviations
import helm_like
import parity_exporter
from gpu_constructs.cli.compare.fields import show
from parity_chart import Release
from parity_compare import ABSENT, Context, Difference, Result, compare, same
from parity_exporter import DcgmRelease
from parity_smi_exporter import SmiRelease
from tables import beside

CASES = yaml.safe_load((Path(__file__).parent / "deviation_cases.yaml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Chart:
    """What is compared of a chart, and with what."""

    letter: str
    table: deviations.Table
    release: type[Any]

    def result_of(self, case: Mapping[str, Any], *, warned: list[str] | None = None) -> Result:
        version = case.get("version", list(self.release.versions)[-1])
        release, chart, made, warnings = _sides(self.letter, version, json.dumps(case["values"]))
        chart, made = changed(chart, case.get("theirs", ())), changed(made, case.get("ours", ()))
        chart, made = release.told(chart, is_ours=False), release.told(made, is_ours=True)
        return compare(release, chart, made, warnings if warned is None else warned, self.table)


@cache
def _sides(letter: str, version: str, values: str) -> tuple[Any, list[Any], list[Any], list[str]]:
    """Return a release with what the chart and what this library make of its values."""
    chart, given = of(letter), json.loads(values)
    name = chart.release.chart
    where = {"release": helm_like.RELEASES[name], "namespace": helm_like.NAMESPACE}
    release = chart.release(**where, version=version, values=given)
    made, warnings = release.synthesize()
    return release, helm_like.render(name, given, version), made, warnings


CHARTS = {
    "device-plugin": Chart("D", deviations.PLUGIN, Release),
    "dcgm-exporter": Chart("E", deviations.EXPORTER, DcgmRelease),
    "nvidia-gpu-exporter": Chart("N", deviations.SMI, SmiRelease),
}


def changed(manifests: list[dict[str, Any]], changes: Any) -> list[dict[str, Any]]:
    """Objects after changes: a member at a path of one object has another value, or goes; lists know names too."""
    made = copy.deepcopy(manifests) if changes else manifests
    for change in changes:
        kind, name = change["object"].split()
        (place,) = [m for m in made if (m["kind"], m["metadata"]["name"]) == (kind, name)]
        *parents, last = change["at"]
        for word in parents:
            is_name = isinstance(place, list) and isinstance(word, str)
            place = next(one for one in place if one["name"] == word) if is_name else place[word]
        if "to" in change:
            place[last] = change["to"]
        else:
            del place[last]
    return made


def of(number: str) -> Chart:
    return next(chart for chart in CHARTS.values() if chart.letter == number[0])


def numbers_in(result: Result) -> set[str]:
    return {number for number, _ in (*result.intended, *result.dropped)}


def test_every_deviation_has_a_case_that_shows_it_and_is_numbered_once():
    every = [deviation.number for chart in CHARTS.values() for deviation in chart.table.deviations]
    assert list(CASES["shown"]) == every


@pytest.mark.parametrize("number", CASES["shown"])
def test_a_deviation_shows_in_a_case_and_explains_it(number):
    result = of(number).result_of(CASES["shown"][number])
    assert result.unexplained == []
    assert number in numbers_in(result)


@pytest.mark.parametrize("name", CHARTS)
def test_values_that_are_taken_over_leave_nothing_unexplained(name):
    for case in CASES["explained"]:
        if case["chart"] == name:
            assert (case, CHARTS[name].result_of(case).unexplained) == (case, [])


@pytest.mark.parametrize("name", CHARTS)
def test_what_a_deviation_does_not_say_stays_unexplained(name):
    for case in CASES["unexplained"]:
        if case["chart"] == name:
            found = [str(difference) for difference in CHARTS[name].result_of(case).unexplained]
            told = case["unexplained"]
            assert [text for text in found if told in text or (name == "device-plugin" and re.search(told, text))], case


class Remembers(deviations.Table):
    """Keeps what a comparison looks at."""

    context: Context

    def explain(self, difference: Difference, context: Context) -> str | None:
        object.__setattr__(self, "context", context)
        return super().explain(difference, context)


RICH = beside(__file__, "deviations")["rich"]
# What each side calls its own way.
MAY_DIFFER = {
    "metadata.name",
    "metadata.labels[app.kubernetes.io/name]",
    "pod.labels[app.kubernetes.io/name]",
    "spec.selector.matchLabels[app.kubernetes.io/name]",
}


@pytest.mark.parametrize("name", CHARTS)
def test_no_field_in_which_both_sides_agree_could_change_unexplained(name):
    table = Remembers(CHARTS[name].table.deviations)
    replace(CHARTS[name], table=table).result_of({"values": RICH[name]})
    missed = set()
    for (side, role, kind, config), chart in list(table.context.fields.items()):
        ours = table.context.fields["ours", role, kind, config] if side == "chart" and chart else {}
        for path in (path for path, value in chart.items() if path in ours and same(ours[path], value)):
            for odd in (ABSENT, "odd"):
                difference = Difference(f"{role} {kind}", config, path, chart[path], odd)
                if table.explain(difference, table.context) and show(path) not in MAY_DIFFER:
                    missed.add(str(difference))
    assert sorted(missed) == []


@pytest.mark.parametrize("name", CHARTS)
@pytest.mark.parametrize("warning", ["values.x is dropped: it is odd", "values.x is changed", "values.x is odd"])
def test_a_warning_that_no_deviation_is_about_is_unexplained(name, warning):
    result = CHARTS[name].result_of({"values": {}}, warned=[warning])
    assert [difference.ours for difference in result.unexplained] == [warning]


def test_advice_is_no_difference():
    result = CHARTS["device-plugin"].result_of({"values": {}}, warned=["nvidia-device-plugin: think twice"])
    assert (result.unexplained, result.advice) == ([], ["nvidia-device-plugin: think twice"])


def test_every_condition_is_asked_by_a_rule():
    text = "".join(path.read_text(encoding="utf-8") for path in deviations.FOLDER.glob("*.yaml"))
    made = re.findall(r"^def ([a-z]\w+)", Path(deviations.on.__file__).read_text(encoding="utf-8"), re.MULTILINE)
    assert [name for name in made if name not in text] == []


def test_a_deviation_says_what_and_why_in_one_cell_each():
    for chart in CHARTS.values():
        heading, line, *rows = chart.table.markdown().splitlines()
        assert heading.count("|") == line.count("|") == 4
        for deviation, row in zip(chart.table.deviations, rows, strict=True):
            assert row == f"| {deviation.number} | {deviation.what} | {deviation.why} |"
            for text in (deviation.what, deviation.why):
                assert text
                assert not re.search(r"[|\n]|\s\s|\.\Z|\A\s|\s\Z", text), deviation.number


def test_the_lists_of_metrics_are_the_ones_that_the_library_knows():
    from gpu_constructs.observability.dcgm_program_values import chart_metrics
    from gpu_constructs.observability.metrics import metric_set

    for version in DcgmRelease.versions:
        chart = {metric.field: metric.prometheus_type for metric in chart_metrics(version)}
        assert chart == parity_exporter.CHART_LIST[version]
        image = {metric.field: metric.prometheus_type for metric in metric_set("default", version)}
        assert image in list(parity_exporter.IMAGE_LISTS[version].values())

"""Checks of the values of a chart against its keys, and their merge with the defaults like in Helm."""

from functools import partial
from pathlib import Path

import pytest

import refusals
import tables
from gpu_constructs import GpuConstructsError, GpuConstructsWarning
from gpu_constructs.kube import fields
from gpu_constructs.migration.chart import Chart, Reading, full_name
from gpu_constructs.migration.chart_values import coalesced
from tables import cases

KEYS = tables.read(Path(__file__).with_name("keys.yaml"))


def read(values, *, release="2.0", strict=True):
    return Reading(Chart("example", KEYS, {}, {}), values, release=release, strict=strict)


def refusal(values, **given):
    return refusals.refusal(read, values, **given)


def test_a_value_is_found_by_its_dotted_key_or_the_default_is_returned():
    found = read({"driverRoot": "/", "worker": {"replicaCount": 2, "enableDebug": False, "config": {"root": {"x": 1}}}})
    assert (found.get("worker.replicaCount"), found.get("worker.enableDebug")) == (2, False)
    assert (found.get("worker.config"), found.get("driverRoot")) == ({"root": {"x": 1}}, "/")
    assert (found.get("root"), found.get("root", "/"), "root" in found) == (None, "/", False)


@cases
def test_an_invalid_value_is_rejected_with_a_similar_key_or_the_type(values, problem):
    assert refusal(values) == f"values.{problem}. Pass strict=False to drop it"
    with pytest.warns(GpuConstructsWarning) as caught:
        read(values, strict=False)
    key, _, rest = problem.partition(" ")
    assert [str(warning.message) for warning in caught] == [f"values.{key} is dropped: it {rest}"]


@cases
@pytest.mark.parametrize("strict", [True, False])
def test_a_key_that_the_chart_ignores_too_is_dropped_with_a_warning(values, warning, strict):
    with pytest.warns(GpuConstructsWarning) as caught:
        read(values, release="1.0", strict=strict)
    assert [str(one.message) for one in caught] == [f"values.{warning}"]


def test_a_suggested_key_is_supported_in_the_release():
    with pytest.warns(GpuConstructsWarning, match="would silently skip it. Leave it out$"):
        read({"driverRot": "/"}, release="1.0")
    assert "did you mean 'interval'?" in refusal({"intervall": "1s"})


def test_an_unsupported_key_can_be_empty_or_have_the_default_of_the_chart():
    for nothing in (None, "", {}, [], "60s"):
        assert "worker.interval" not in read({"worker": {"interval": nothing}})
    assert "global.secrets" not in read({"global": None})


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ("x" * 200, f"values must be a mapping, got '{'x' * 79}…. Parse it: yaml.safe_load(text)"),
        (None, "values must be a mapping, got None; for an empty file pass {}"),
        ([{}], "values must be a mapping, got [{}]"),
    ],
)
def test_values_that_are_not_a_mapping_are_rejected_with_a_solution(values, problem, strict):
    assert refusal(values, strict=strict) == problem


def test_a_value_that_overrides_a_file_is_rejected_or_wins_with_a_warning():
    state = "is 'single', but values.config.map.a has 'none' for flags.mig_strategy"
    assert refusals.refusal(read({}).contradict, "mig", "config.map.a", "flags.mig_strategy", "none", "single") == (
        f"values.mig {state}: the chart silently uses values.mig. Keep one of the two, or pass strict=False to use "
        "values.mig here too"
    )
    with pytest.warns(
        GpuConstructsWarning, match=f"^values.mig {state}. Both the chart and this library use values.mig$"
    ):
        read({}, strict=False).contradict("mig", "config.map.a", "flags.mig_strategy", "none", "single")


# --- merge with the defaults -----------------------------------------------------------------------------------


@cases
def test_mappings_merge_lists_replace_and_null_deletes(default, given, laid):
    before = repr((default, given))
    assert coalesced(default, given) == laid
    assert repr((default, given)) == before


def test_a_mapping_is_merged_with_that_of_the_chart():
    found = read({"affinity": {"node": {"required": [7], "preferred": None}, "pod": {}}})
    assert found.get("affinity") == {"node": {"required": [7]}, "pod": {}}
    assert read({"affinity": {"node": {"required": [1]}}}).get("affinity") == KEYS["affinity"].default
    assert "affinity" not in read({"affinity": {}})
    assert read({"priority": "high"}).get("priority") == "high"


@pytest.mark.parametrize("strict", [True, False])
def test_an_empty_value_removes_the_default_of_the_chart(strict):
    given = [("affinity", empty) for empty in ([], "", 0, False, None)]
    for path, empty in [*given, *(("tolerations", empty) for empty in ({}, [], "", 0, False, None))]:
        found = read({path: empty}, strict=strict)
        assert (path in found, bool(found.get(path))) == (True, False), (path, empty)
    assert read({"priority": None}).get("priority") == ""
    assert read({"worker": {"enabled": None}}).get("worker.enabled") is False
    assert read({"security": None}).get("security") == {"privileged": None}
    assert (read({"root": None}).get("root", "default"), "root" in read({"root": None})) == ("default", True)


# --- options ---------------------------------------------------------------------------------------------------


def test_each_key_becomes_its_keyword_and_errors_name_the_key():
    found = read({"root": "a.b", "interval": "1m", "tolerations": [{"key": "a", "operator": "Exists"}]})
    assert found.members("scrape") == {"interval": ("interval", 60)}
    assert found.options()["root"] == "a.b"
    with pytest.raises(GpuConstructsError, match=r"^values\.root is not convertible: root must be a DNS subdomain"):
        read({"root": "A B"}).options()
    with pytest.warns(GpuConstructsWarning, match=r"^values\.tolerations\[1\] is dropped: it is not convertible: "):
        made = read({"tolerations": [{"key": "a"}, {"key": "b", "effect": "Never"}]}, strict=False).options()
    assert [toleration.key for toleration in made["tolerations"]] == ["a"]


def test_the_last_of_conflicting_members_is_dropped():
    def apart(**members):
        fields.whole_number("sum", sum(members.values()), minimum=0, maximum=90)
        return members

    values = {"interval": "1m", "timeout": "40s"}
    assert read(values).struct("scrape", dict) == {"interval": 60, "timeout": 40}
    with pytest.warns(GpuConstructsWarning, match=r"^values\.timeout is dropped: it is not convertible: sum must be"):
        assert read(values, strict=False).struct("scrape", apart) == {"interval": 60}


# --- names -----------------------------------------------------------------------------------------------------


@cases
def test_names_are_those_of_the_chart_with_a_maximum_length(values, release, longest, name):
    assert read(values).name(release, "example", longest, fields.dns_subdomain) == name


def test_an_invalid_release_name_is_rejected():
    with pytest.raises(GpuConstructsError, match=r"^values\.fullnameOverride is not convertible: "):
        read({"fullnameOverride": "A B"}).name("nvdp", "example", 63, fields.dns_subdomain)
    with pytest.raises(GpuConstructsError, match="release_name must have at most 53 characters, like in Helm"):
        full_name("a" * 54, "example")
    assert read({"root": "x"}).attempt("root", partial(int, "7")) == 7

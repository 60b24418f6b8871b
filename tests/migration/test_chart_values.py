"""The values of a chart held against its keys, as Helm lays them over the chart's defaults."""

from __future__ import annotations

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


def test_a_value_is_found_by_its_dotted_key_and_else_the_default_of_whoever_asks():
    found = read({"driverRoot": "/", "worker": {"replicaCount": 2, "enableDebug": False, "config": {"root": {"x": 1}}}})
    assert (found.get("worker.replicaCount"), found.get("worker.enableDebug")) == (2, False)
    assert (found.get("worker.config"), found.get("driverRoot")) == ({"root": {"x": 1}}, "/")
    assert (found.get("root"), found.get("root", "/"), "root" in found) == (None, "/", False)


@cases
def test_what_the_chart_would_not_take_is_refused_with_the_nearest_key_or_what_it_must_be(values, problem):
    assert refusal(values) == f"values.{problem}; or pass strict=False to drop it"
    with pytest.warns(GpuConstructsWarning) as caught:
        read(values, strict=False)
    key, _, rest = problem.partition(" ")
    assert [str(warning.message) for warning in caught] == [f"values.{key} is dropped: it {rest}"]


def test_no_key_is_proposed_that_the_release_does_not_read_or_that_goes_nowhere():
    assert "driverRoot" not in refusal({"driverRot": "/"}, release="1.0")
    assert "did you mean 'interval'?" in refusal({"intervall": "1s"})
    assert "values.driverRoot is not a key of release 1.0" in refusal({"driverRoot": "/x"}, release="1.0")


def test_a_key_that_goes_nowhere_may_say_nothing_or_what_the_chart_has_anyway():
    for nothing in (None, "", {}, [], "60s"):
        assert "worker.interval" not in read({"worker": {"interval": nothing}})
    assert "global.secrets" not in read({"global": None})


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ("x" * 200, f"values must be a mapping, got '{'x' * 79}…; parse it: yaml.safe_load(text)"),
        (None, "values must be a mapping, got None; for an empty file pass {}"),
        ([{}], "values must be a mapping, got [{}]"),
    ],
)
def test_values_that_are_no_mapping_are_refused_with_the_way_to_one(values, problem, strict):
    assert refusal(values, strict=strict) == problem


def test_a_value_that_overrides_a_file_is_refused_or_wins_with_a_warning():
    says = "says 'single' and values.config.map.a says 'none' for flags.mig_strategy"
    assert refusals.refusal(read({}).contradict, "mig", "config.map.a", "flags.mig_strategy", "none", "single") == (
        f"values.mig {says}: the chart lets the former win silently; keep one of them, or pass strict=False to "
        "let it win here too"
    )
    with pytest.warns(GpuConstructsWarning, match=f"^values.mig wins: it {says}$"):
        read({}, strict=False).contradict("mig", "config.map.a", "flags.mig_strategy", "none", "single")


# --- as Helm lays them over its defaults -----------------------------------------------------------------------


@cases
def test_mappings_merge_lists_replace_and_null_deletes(default, given, laid):
    before = repr((default, given))
    assert coalesced(default, given) == laid
    assert repr((default, given)) == before


def test_a_mapping_is_laid_over_the_charts_and_to_state_what_it_has_is_a_statement():
    found = read({"affinity": {"node": {"required": [7], "preferred": None}, "pod": {}}})
    assert found.get("affinity") == {"node": {"required": [7]}, "pod": {}}
    assert read({"affinity": {"node": {"required": [1]}}}).get("affinity") == KEYS["affinity"].default
    assert "affinity" not in read({"affinity": {}})
    assert read({"priority": "high"}).get("priority") == "high"


@pytest.mark.parametrize("strict", [True, False])
def test_what_is_empty_takes_what_the_chart_has_away(strict):
    given = [("affinity", empty) for empty in ([], "", 0, False, None)]
    for path, empty in [*given, *(("tolerations", empty) for empty in ({}, [], "", 0, False, None))]:
        found = read({path: empty}, strict=strict)
        assert (path in found, bool(found.get(path))) == (True, False), (path, empty)
    assert read({"priority": None}).get("priority") == ""
    assert read({"worker": {"enabled": None}}).get("worker.enabled") is False
    assert read({"security": None}).get("security") == {"privileged": None}
    assert (read({"root": None}).get("root", "default"), "root" in read({"root": None})) == ("default", True)


# --- options ---------------------------------------------------------------------------------------------------


def test_each_key_makes_its_keyword_and_what_makes_none_is_the_keys_fault():
    found = read({"root": "a.b", "interval": "1m", "tolerations": [{"key": "a", "operator": "Exists"}]})
    assert found.members("scrape") == {"interval": ("interval", 60)}
    assert found.options()["root"] == "a.b"
    with pytest.raises(GpuConstructsError, match=r"^values\.root cannot be taken over: root must be a DNS subdomain"):
        read({"root": "A B"}).options()
    with pytest.warns(GpuConstructsWarning, match=r"^values\.tolerations\[1\] is dropped: it cannot be taken over: "):
        made = read({"tolerations": [{"key": "a"}, {"key": "b", "effect": "Never"}]}, strict=False).options()
    assert [toleration.key for toleration in made["tolerations"]] == ["a"]


def test_of_members_that_do_not_go_together_the_last_is_dropped():
    def apart(**members):
        fields.whole_number("sum", sum(members.values()), minimum=0, maximum=90)
        return members

    values = {"interval": "1m", "timeout": "40s"}
    assert read(values).struct("scrape", dict) == {"interval": 60, "timeout": 40}
    with pytest.warns(GpuConstructsWarning, match=r"^values\.timeout is dropped: it cannot be taken over: sum must be"):
        assert read(values, strict=False).struct("scrape", apart) == {"interval": 60}


# --- names -----------------------------------------------------------------------------------------------------


@cases
def test_names_are_made_as_the_chart_makes_them_and_cut_for_what_stands_behind(values, release, longest, name):
    assert read(values).name(release, "example", longest, fields.dns_subdomain) == name


def test_a_name_that_is_none_is_refused():
    with pytest.raises(GpuConstructsError, match=r"^values\.fullnameOverride cannot be taken over: "):
        read({"fullnameOverride": "A B"}).name("nvdp", "example", 63, fields.dns_subdomain)
    with pytest.raises(GpuConstructsError, match="release_name must have at most 53 characters, as Helm has it"):
        full_name("a" * 54, "example")
    assert read({"root": "x"}).attempt("root", partial(int, "7")) == 7

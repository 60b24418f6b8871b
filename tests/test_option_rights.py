"""Least privilege of DevicePluginChart and ValidationBridge as tables: computed from the options, with reasons."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import dist
from option_rights import (
    REASONS,
    added,
    held_by,
    held_by_bridge,
    held_by_default,
    table_of_defaults,
    table_of_options,
    table_of_the_bridge,
)

PAGE = dist.ROOT / "docs" / "security.md"


def test_every_right_that_some_option_takes_has_a_reason_and_no_reason_is_stale() -> None:
    computed = held_by_default().union(*added().values(), *held_by_bridge().values())
    assert sorted(computed - set(REASONS)) == []
    assert sorted(set(REASONS) - computed) == []
    assert all(REASONS.values())


def test_time_slicing_and_a_daemonset_for_each_configuration_take_nothing() -> None:
    assert added()["sharing=Sharing.time_slicing(...)"] == set()
    assert added()["config=Configs.named(...)"] == set()


def test_only_options_make_anything_privileged() -> None:
    assert [
        rule for _, rule in held_by_default() if "privileged" in rule or "capability" in rule or "host PID" in rule
    ] == []


def test_no_strategy_of_the_bridge_takes_more_than_paths_and_root() -> None:
    rules = {rule for held in held_by_bridge().values() for _, rule in held}
    assert {rule for rule in rules if not rule.startswith("host path ")} == {"may run as root"}
    for held in held_by_bridge().values():
        assert len([rule for _, rule in held if rule.endswith(", writable")]) == 1


def test_a_right_shows_with_the_scope_it_reaches() -> None:
    role = {
        "kind": "ClusterRole",
        "metadata": {"name": "r", "labels": {"app.kubernetes.io/component": "master"}},
        "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}],
    }
    assert held_by([role]) == {("NFD master", "may get nodes in every namespace")}
    assert held_by([{**role, "kind": "Role"}]) == {("NFD master", "may get nodes in its namespace")}


TABLES = {"defaults": table_of_defaults, "options": table_of_options, "bridge": table_of_the_bridge}


@pytest.mark.parametrize("table", TABLES.values(), ids=list(TABLES))
def test_the_page_shows_the_whole_table(table: Callable[[], str]) -> None:
    assert table() in PAGE.read_text(encoding="utf-8"), f"put this into {PAGE.name}:\n\n{table()}"

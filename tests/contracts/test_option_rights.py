"""Least privilege of DevicePluginChart and ValidationBridge: what each option takes is on the page, with a reason."""

from documents import Page
from option_rights import BRIDGES, added, held_by, held_by_bridge, held_by_default

PAGE = Page("security")


def test_the_page_shows_what_is_held_with_nothing_asked_for_and_why() -> None:
    rows = PAGE.table("Pod")
    assert {(pod, rule) for pod, rule, _ in rows} == held_by_default()
    assert all(reason for *_, reason in rows)
    rules = [rule for _, rule in held_by_default()]
    assert [rule for rule in rules if "privileged" in rule or "capability" in rule or "host PID" in rule] == []


def test_the_page_shows_what_each_option_takes_and_why() -> None:
    shown: dict[str, set[tuple[str, str]]] = {}
    for option, pod, rule, reason in PAGE.table("Option"):
        rights = shown.setdefault(option.strip("`"), set())
        assert (rule == "nothing") or reason
        rights |= {(pod, rule)} if reason else set()
    assert shown == added()
    assert added()["sharing=Sharing.time_slicing(...)"] == added()["config=Configs.named(...)"] == set()


def test_the_page_shows_what_the_bridge_holds_which_is_paths_and_root_only() -> None:
    base = held_by_bridge()[next(iter(BRIDGES))]
    computed = {
        (option, rule)
        for option, found in held_by_bridge().items()
        for _, rule in (found if option.startswith("strategy") else found - base)
    }
    rows = PAGE.table("With")
    assert {(option.strip("`"), rule) for option, rule, _ in rows} == computed
    assert all(reason for *_, reason in rows)
    assert {rule for _, rule in computed if not rule.startswith("host path ")} == {"may run as root"}
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

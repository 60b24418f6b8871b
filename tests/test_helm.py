"""The values of a chart held against its keys, as Helm lays them over the chart's defaults."""

from __future__ import annotations

import warnings
from functools import partial

import pytest

from gpu_constructs import GpuConstructsError, GpuConstructsWarning, Toleration, UpdateStrategy, _fields
from gpu_constructs._helm import (
    Key,
    Values,
    coalesced,
    full_name,
    named,
    object_name,
    secret_names,
    tolerations,
    update_strategy,
)

KEYS = {
    "root": Key(type="text", to="root="),
    "driverRoot": Key(type="text", to="driver_root=", releases=("2.0",)),
    "priority": Key(type="text", to="priority=", default="high"),
    "interval": Key(type="text", to="interval="),
    "tolerations": Key(type="list", to="tolerations=", default=[{"key": "gpu"}]),
    "affinity": Key(type="map", to="affinity=", default={"node": {"required": [1], "preferred": [2]}}),
    "security": Key(type="map", to="security="),
    "worker.enabled": Key(type="bool", to="worker=", default=True),
    "worker.enableDebug": Key(type="bool", to="debug="),
    "worker.replicaCount": Key(type="number", to="replicas="),
    "worker.budget": Key(type="number or text", to="budget="),
    "worker.config": Key(type="map", to="config="),
    "worker.probe.period": Key(type="number", to="probe="),
    "worker.probe.timeout": Key(type="number", to="probe="),
    "worker.interval": Key(type="text", why_not="is never read; the chart reads 'interval'", default="60s"),
    "global.secrets": Key(type="list", to="secrets="),
}


def read(values, *, release="2.0", strict=True):
    return Values(values, KEYS, release=release, strict=strict)


def refusal(values, **given):
    with pytest.raises(GpuConstructsError) as refused:
        read(values, **given)
    (line,) = str(refused.value).splitlines()
    return line


def dropped(values, **given):
    """What is warned of, and what is read all the same."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = read(values, strict=False, **given)
    assert {warning.category for warning in caught} <= {GpuConstructsWarning}
    return [str(warning.message) for warning in caught], found


# --- what is read ----------------------------------------------------------------------------------------------


def test_a_value_is_found_by_its_dotted_key():
    found = read({"root": "/", "worker": {"replicaCount": 2, "enableDebug": False}})
    assert (found.get("root"), found.get("worker.replicaCount"), found.get("worker.enableDebug")) == ("/", 2, False)


def test_a_key_that_is_not_given_has_the_default_of_whoever_asks():
    found = read({})
    assert (found.get("root"), found.get("root", "/"), "root" in found) == (None, "/", False)


def test_what_stands_below_a_section_is_given_by_what_follows_it_without_what_is_null():
    found = read({"worker": {"probe": {"period": 5, "timeout": None}, "replicaCount": 1}})
    assert found.below("worker.probe") == {"period": 5}


def test_a_mapping_is_one_value_where_the_chart_takes_any_keys():
    assert read({"worker": {"config": {"root": {"x": 1}}}}).get("worker.config") == {"root": {"x": 1}}


def test_a_release_reads_its_own_keys():
    assert read({"driverRoot": "/x"}, release="2.0").get("driverRoot") == "/x"


# --- what is not -----------------------------------------------------------------------------------------------

SKIPPED = "is no key of the chart, which would skip it without a word"


@pytest.mark.parametrize(
    ("values", "path", "hint"),
    [
        ({"rooot": 1}, "rooot", "root"),
        ({"priorty": "x"}, "priorty", "priority"),
        ({"Priority": "x"}, "Priority", "priority"),
        ({"worker": {"enable": True}}, "worker.enable", "worker.enabled"),
        ({"worker": {"replicas": 2}}, "worker.replicas", "worker.replicaCount"),
        ({"workers": {"replicaCount": 2}}, "workers", "worker"),
        ({"replicaCount": 2}, "replicaCount", "worker.replicaCount"),
        ({"worker": {"priority": "x"}}, "worker.priority", "priority"),
        ({"worker": {"probes": {"period": 5}}}, "worker.probes", "worker.probe"),
        ({"probe": {"period": 5}}, "probe", "worker.probe"),
        ({"worker": {"probe": {"periods": 5}}}, "worker.probe.periods", "worker.probe.period"),
        ({"wroker": {}}, "wroker", "worker"),
    ],
)
def test_a_mistyped_key_is_refused_with_the_nearest_that_there_is(values, path, hint):
    assert refusal(values) == f"values.{path} {SKIPPED} (did you mean {hint!r}?); or pass strict=False to drop it"


@pytest.mark.parametrize("path", ["toolkit", "x-anchors", "mig"])
def test_a_key_like_none_is_refused_without_a_guess(path):
    assert refusal({path: {}}) == f"values.{path} {SKIPPED}; or pass strict=False to drop it"


def test_no_key_is_proposed_that_the_release_does_not_read_or_that_goes_nowhere():
    assert "driverRoot" not in refusal({"driverRot": "/"}, release="1.0")
    assert "did you mean 'interval'?" in refusal({"intervall": "1s"})


@pytest.mark.parametrize("key", [1, True, None, 1.5])
def test_a_key_that_is_no_text_is_refused_like_any_other(key):
    assert refusal({key: "x"}) == f"values.{key} {SKIPPED}; or pass strict=False to drop it"


def test_a_key_of_another_release_is_refused_with_the_release():
    assert refusal({"driverRoot": "/x"}, release="1.0") == (
        "values.driverRoot is no key of release 1.0, which would skip it without a word; leave it out; or pass "
        "strict=False to drop it"
    )


def test_a_key_that_goes_nowhere_is_refused_with_the_reason():
    assert refusal({"worker": {"interval": "30s"}}) == (
        "values.worker.interval is never read; the chart reads 'interval'; or pass strict=False to drop it"
    )


@pytest.mark.parametrize("nothing", [None, "", {}, [], "60s"])
def test_a_key_that_goes_nowhere_may_say_nothing_or_what_the_chart_has_anyway(nothing):
    assert "worker.interval" not in read({"worker": {"interval": nothing}})


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"root": 1.1}, "root must be text, got 1.1; quote it"),
        ({"root": True}, "root must be text, got True; quote it"),
        ({"root": ["/"]}, "root must be text, got ['/']"),
        (
            {"worker": {"enabled": "false"}},
            "worker.enabled must be true or false, got 'false'; write it without quotes",
        ),
        ({"worker": {"enabled": 1}}, "worker.enabled must be true or false, got 1"),
        (
            {"worker": {"replicaCount": "2"}},
            "worker.replicaCount must be a whole number, got '2'; write it without quotes",
        ),
        ({"worker": {"replicaCount": True}}, "worker.replicaCount must be a whole number, got True"),
        ({"worker": {"replicaCount": 2.5}}, "worker.replicaCount must be a whole number, got 2.5"),
        ({"worker": {"budget": False}}, "worker.budget must be a whole number or text, got False"),
        ({"tolerations": {"key": "a"}}, "tolerations must be a list, got {'key': 'a'}"),
        ({"tolerations": "a"}, "tolerations must be a list, got 'a'"),
        ({"affinity": "x" * 200}, f"affinity must be a mapping, got '{'x' * 79}…"),
        ({"worker": "on"}, "worker must be a mapping, got 'on': the chart would fail; leave it out"),
        ({"worker": None}, "worker must be a mapping, got None: the chart would fail; leave it out"),
        ({"worker": {"probe": [1]}}, "worker.probe must be a mapping, got [1]: the chart would fail; leave it out"),
    ],
)
def test_a_value_of_another_type_is_refused_with_what_it_must_be(values, problem):
    assert refusal(values) == f"values.{problem}; or pass strict=False to drop it"


@pytest.mark.parametrize(("path", "value"), [("budget", 1), ("budget", "50%")])
def test_some_keys_take_a_number_or_text(path, value):
    assert read({"worker": {path: value}}).get(f"worker.{path}") == value


def test_global_values_may_be_null():
    assert "global.secrets" not in read({"global": None})


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ("root: /", "values must be a mapping, got 'root: /'; parse it: yaml.safe_load(text)"),
        ("x" * 200, f"values must be a mapping, got '{'x' * 79}…; parse it: yaml.safe_load(text)"),
        (None, "values must be a mapping, got None; for an empty file pass {}"),
        ([{}], "values must be a mapping, got [{}]"),
    ],
)
@pytest.mark.parametrize("strict", [True, False])
def test_values_that_are_no_mapping_are_refused_with_the_way_to_one(values, problem, strict):
    assert refusal(values, strict=strict) == problem


# --- not strict ------------------------------------------------------------------------------------------------


def test_what_is_refused_is_dropped_with_a_warning_each_and_the_rest_is_read():
    texts, found = dropped(
        {"rooot": 1, "root": "/", "driverRoot": "/x", "worker": {"interval": "1s", "enabled": "no", "replicaCount": 2}},
        release="1.0",
    )
    assert texts == [
        f"values.rooot is dropped: it {SKIPPED} (did you mean 'root'?)",
        "values.driverRoot is dropped: it is no key of release 1.0, which would skip it without a word; leave it out",
        "values.worker.interval is dropped: it is never read; the chart reads 'interval'",
        "values.worker.enabled is dropped: it must be true or false, got 'no'; write it without quotes",
    ]
    assert (found.get("root"), found.get("worker.replicaCount")) == ("/", 2)
    assert not any(path in found for path in ("driverRoot", "worker.interval", "worker.enabled"))


def test_what_cannot_be_made_of_a_value_is_the_keys_fault():
    found = read({"root": "x"})
    with pytest.raises(GpuConstructsError) as refused:
        found.attempt("root", partial(_fields.whole_number, "n", 0, minimum=1))
    assert str(refused.value) == (
        "values.root cannot be taken over: n must be at least 1, got 0; or pass strict=False to drop it"
    )
    assert found.attempt("root", lambda: 7) == 7
    with pytest.warns(GpuConstructsWarning, match=r"^values\.root is dropped: it cannot be taken over: n must be "):
        assert read({}, strict=False).attempt("root", partial(_fields.whole_number, "n", 0, minimum=1)) is None


def test_a_check_passes_even_if_it_gives_nothing():
    assert read({}).accepts("root", lambda: None)
    with pytest.warns(GpuConstructsWarning):
        assert not read({}, strict=False).accepts("root", partial(_fields.one_of, "root", "x", ("y",)))


def test_a_value_that_overrides_a_file_is_refused_or_wins_with_a_warning():
    with pytest.raises(GpuConstructsError) as refused:
        read({}).contradict("mig", "config.map.a", "flags.mig_strategy", "none", "single")
    says = "says 'single' and values.config.map.a says 'none' for flags.mig_strategy"
    assert str(refused.value) == (
        f"values.mig {says}: the chart lets the former win without a word; keep one of them, or pass strict=False to "
        "let it win here too"
    )
    with pytest.warns(GpuConstructsWarning) as caught:
        read({}, strict=False).contradict("mig", "config.map.a", "flags.mig_strategy", "none", "single")
    assert [str(warning.message) for warning in caught] == [f"values.mig wins: it {says}"]


# --- as Helm lays them over its defaults -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("default", "given", "laid"),
    [
        ({"a": 1, "b": 2}, {"b": 3}, {"a": 1, "b": 3}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"c": 3}}, {"a": {"b": 1, "c": 3}}),
        ({"a": {"b": 1}}, {"a": {}}, {"a": {"b": 1}}),
        ({"a": 1}, {}, {"a": 1}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": [1]}, {"a": []}, {"a": []}),
        ({"a": 1, "b": 2}, {"a": None}, {"b": 2}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": None}}, {"a": {"c": 2}}),
        ({"a": {"b": 1}}, {"a": None}, {}),
        ({"a": {"b": 1}}, {"a": 5}, {"a": 5}),
        ({"a": 5}, {"a": {"b": 1}}, {"a": {"b": 1}}),
        ({}, {"a": {"b": None}}, {"a": {"b": None}}),
        ([1], [2], [2]),
        ("x", "y", "y"),
    ],
)
def test_mappings_merge_lists_replace_and_null_deletes(default, given, laid):
    before = repr((default, given))
    assert coalesced(default, given) == laid
    assert repr((default, given)) == before


def test_a_mapping_is_laid_over_the_charts():
    found = read({"affinity": {"node": {"required": [7], "preferred": None}, "pod": {}}})
    assert found.get("affinity") == {"node": {"required": [7]}, "pod": {}}


@pytest.mark.parametrize(
    ("values", "path", "stated"),
    [
        ({"affinity": {"node": {"required": [1], "preferred": [2]}}}, "affinity", KEYS["affinity"].default),
        ({"affinity": {"node": {"required": [1]}}}, "affinity", KEYS["affinity"].default),
        ({"tolerations": [{"key": "gpu"}]}, "tolerations", [{"key": "gpu"}]),
        ({"priority": "high"}, "priority", "high"),
        ({"worker": {"enabled": True}}, "worker.enabled", True),
    ],
)
def test_to_state_what_the_chart_has_anyway_is_a_statement(values, path, stated):
    found = read(values)
    assert path in found
    assert found.get(path) == stated


def test_an_empty_mapping_laid_over_the_charts_states_nothing():
    assert "affinity" not in read({"affinity": {}})


@pytest.mark.parametrize("is_strict", [True, False])
@pytest.mark.parametrize(
    ("path", "empty"),
    [(path, empty) for path, own in (("affinity", {}), ("tolerations", [])) for empty in ({}, [], "", 0, False, None)
     if empty != own or path == "tolerations"],
)  # fmt: skip
def test_what_is_empty_takes_a_mapping_or_a_list_of_the_charts_away(path, empty, is_strict):
    found = read({path: empty}, strict=is_strict)
    assert path in found
    assert not found.get(path)


@pytest.mark.parametrize(
    ("path", "nothing"),
    [("priority", ""), ("tolerations", ()), ("affinity", {}), ("worker.enabled", False)],
)
def test_null_takes_what_the_chart_has_away(path, nothing):
    values = None
    for word in reversed(path.split(".")):
        values = {word: values}
    found = read(values)
    assert path in found
    assert found.get(path) == nothing


@pytest.mark.parametrize("path", ["root", "security"])
def test_null_where_the_chart_has_nothing_says_nothing_but_that_it_was_given(path):
    found = read({path: None})
    assert (path in found, found.get(path, "default")) == (True, "default")


# --- names -----------------------------------------------------------------------------------------------------

LONG = "abcdefghijklmnopqrstuvwxyz-abcdefghijklmnopqrstuvw-xy"


@pytest.mark.parametrize(
    ("release", "chart", "name"),
    [
        ("nvdp", "nvidia-device-plugin", "nvdp-nvidia-device-plugin"),
        ("nvidia-device-plugin", "nvidia-device-plugin", "nvidia-device-plugin"),
        ("prod-nvidia-device-plugin-eu", "nvidia-device-plugin", "prod-nvidia-device-plugin-eu"),
        ("gpu.plugin.v1", "nvidia-device-plugin", "gpu.plugin.v1-nvidia-device-plugin"),
        ("my-plugin-x", "plugin", "my-plugin-x"),
        (LONG, "node-feature-discovery", f"{LONG}-node-feat"),
        (LONG[:42], "nvidia-device-plugin", f"{LONG[:42]}-nvidia-device-plugin"),
        (LONG[:41], "nvidia-device-plugin-for-us", f"{LONG[:41]}-nvidia-device-plugin"),
    ],
)
def test_a_name_is_made_of_release_and_chart_as_helm_makes_it(release, chart, name):
    assert full_name(release, chart) == name
    assert len(name) <= 63


def test_a_release_name_that_helm_refuses_is_refused():
    assert len(LONG) == 53
    with pytest.raises(GpuConstructsError) as refused:
        full_name(f"{LONG}z", "x")
    assert str(refused.value) == f"release_name must have at most 53 characters, as Helm has it; got '{LONG}z'"


NAMES = {
    "nameOverride": Key(type="text", to="name="),
    "fullnameOverride": Key(type="text", to="name="),
    "sub.nameOverride": Key(type="text", to="name="),
    "sub.fullnameOverride": Key(type="text", to="name="),
}


def object_names(values, *, section="", release="nvdp", longest=63, strict=True):
    found = Values(values, NAMES, release="2.0", strict=strict)
    return object_name(
        found, section, release_name=release, default="chart", longest=longest, check=_fields.dns_subdomain
    )


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({}, "nvdp-chart"),
        ({"nameOverride": "gpu"}, "nvdp-gpu"),
        ({"nameOverride": "vd"}, "nvdp"),
        ({"nameOverride": ""}, "nvdp-chart"),
        ({"fullnameOverride": "mine"}, "mine"),
        ({"fullnameOverride": "mine.of-all"}, "mine.of-all"),
        ({"fullnameOverride": "mine", "nameOverride": "gpu"}, "mine"),
        ({"fullnameOverride": "m" * 70}, "m" * 63),
        ({"fullnameOverride": "m" * 62 + "-x"}, "m" * 62),
        ({"sub": {"fullnameOverride": "other"}}, "nvdp-chart"),
    ],
)
def test_names_can_be_overridden(values, name):
    assert object_names(values) == name


def test_a_sections_names_are_its_own():
    values = {"fullnameOverride": "mine", "sub": {"nameOverride": "gpu"}}
    assert object_names(values, section="sub.") == "nvdp-gpu"


@pytest.mark.parametrize(
    ("release", "longest", "name"),
    [("nvdp", 10, "nvdp-chart"), ("nvdp", 9, "nvdp-char"), ("nvdp", 5, "nvdp"), ("a.b", 2, "a")],
)
def test_names_are_shorter_where_more_stands_behind_them(release, longest, name):
    assert object_names({}, release=release, longest=longest) == name


def test_an_overriding_name_is_cut_too():
    assert object_names({"fullnameOverride": "abc.-def"}, longest=5) == "abc"


@pytest.mark.parametrize(
    ("values", "path", "instead"),
    [
        ({"fullnameOverride": "Bad Name"}, "fullnameOverride", "nvdp-chart"),
        ({"fullnameOverride": "-"}, "fullnameOverride", "nvdp-chart"),
        ({"fullnameOverride": "Bad Name", "nameOverride": "gpu"}, "fullnameOverride", "nvdp-gpu"),
        ({"nameOverride": "a/b"}, "nameOverride", "nvdp-chart"),
    ],
)
def test_a_name_that_kubernetes_would_not_take_is_refused_or_left_out(values, path, instead):
    with pytest.raises(
        GpuConstructsError, match=rf"^values\.{path} cannot be taken over: {path} must be a DNS subdomain "
    ):
        object_names(values)
    with pytest.warns(GpuConstructsWarning, match=rf"^values\.{path} is dropped: it cannot be taken over: "):
        assert object_names(values, strict=False) == instead


def test_a_name_elsewhere_is_checked_too():
    assert named(read({"root": "mine"}), "root", _fields.dns_label) == "mine"
    assert named(read({"root": ""}), "root", _fields.dns_label) is None
    assert named(read({}), "root", _fields.dns_label) is None
    with pytest.warns(
        GpuConstructsWarning, match=r"^values\.root is dropped: it cannot be taken over: root must be a DNS"
    ):
        assert named(read({"root": "My Root"}, strict=False), "root", _fields.dns_label) is None


# --- as Kubernetes writes them ---------------------------------------------------------------------------------


def test_secrets_are_named_by_references():
    assert secret_names([{"name": "a"}, {"name": "b.c"}]) == ["a", "b.c"]


@pytest.mark.parametrize("secret", ["a", None, {}, {"name": 1}, {"secret": "a"}, {"name": "a", "key": "b"}])
def test_a_secret_that_is_no_reference_is_refused(secret):
    with pytest.raises(GpuConstructsError) as refused:
        secret_names([secret])
    assert str(refused.value) == f"imagePullSecrets must list mappings like {{'name': 'registry'}}; got {secret!r}"


def test_a_secrets_name_is_checked():
    with pytest.raises(GpuConstructsError, match=r"^name must be a DNS subdomain .*; got 'A'$"):
        secret_names([{"name": "A"}])


@pytest.mark.parametrize(
    ("given", "strategy"),
    [
        ({}, UpdateStrategy.rolling_update()),
        ({"type": None}, UpdateStrategy.rolling_update()),
        ({"type": "RollingUpdate"}, UpdateStrategy.rolling_update()),
        ({"type": "OnDelete"}, UpdateStrategy.on_delete()),
        ({"rollingUpdate": None}, UpdateStrategy.rolling_update()),
        ({"rollingUpdate": {"maxUnavailable": "50%"}}, UpdateStrategy.rolling_update(max_unavailable="50%")),
        (
            {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
            UpdateStrategy.rolling_update(max_unavailable=0, max_surge=1),
        ),
    ],
)
def test_an_update_strategy_is_read(given, strategy):
    assert update_strategy(given) == strategy


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"types": "OnDelete"}, "updateStrategy key must be one of 'type', 'rollingUpdate'; got 'types' (did you mean"),
        ({"type": "Sometimes"}, "update_strategy.type must be one of 'RollingUpdate', 'OnDelete'; got 'Sometimes'"),
        ({"rollingUpdate": 5}, "updateStrategy.rollingUpdate must be "),
        (
            {"rollingUpdate": {"maxUnavailble": 1}},
            "updateStrategy.rollingUpdate key must be one of 'maxUnavailable', 'maxSurge'; got 'maxUnavailble'",
        ),
        ({"type": "OnDelete", "rollingUpdate": {"maxSurge": 1}}, "update_strategy takes no numbers with OnDelete"),
    ],
)
def test_an_update_strategy_that_kubernetes_does_not_have_is_refused(given, problem):
    with pytest.raises(GpuConstructsError) as refused:
        update_strategy(given)
    assert str(refused.value).startswith(problem)


def test_tolerations_are_read_and_what_is_empty_in_them_is_left_out():
    found = read(
        {
            "tolerations": [
                {"operator": "Exists"},
                {"key": "a", "operator": "Equal", "value": "", "effect": "NoSchedule"},
                {"key": "b", "value": "c"},
                {"key": "d", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0},
            ]
        }
    )
    assert tolerations(found, "tolerations") == [
        Toleration(operator="Exists"),
        Toleration(key="a", effect="NoSchedule"),
        Toleration(key="b", value="c"),
        Toleration(key="d", operator="Exists", effect="NoExecute", toleration_seconds=0),
    ]


def test_a_toleration_that_is_none_is_dropped_by_its_place_and_the_others_stay():
    found = read({"tolerations": [{"key": "a"}, {"keys": "b"}, "c", {"key": "d", "value": True}]}, strict=False)
    with pytest.warns(GpuConstructsWarning) as caught:
        assert tolerations(found, "tolerations") == [Toleration(key="a")]
    assert [str(warning.message).partition(": it cannot be taken over: ")[0] for warning in caught] == [
        f"values.tolerations[{index}] is dropped" for index in (1, 2, 3)
    ]

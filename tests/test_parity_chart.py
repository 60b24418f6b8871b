import pytest

from parity_chart import Release, merged, object_suffix, unquoted


def release(values=None, *, name="nvdp", namespace="gpu", version="0.20.0"):
    return Release(release=name, namespace=namespace, version=version, values=values or {})


@pytest.mark.parametrize(
    ("name", "values", "fullname"),
    [
        ("nvdp", {}, "nvdp-nvidia-device-plugin"),
        ("my-nvidia-device-plugin", {}, "my-nvidia-device-plugin"),
        ("nvdp", {"nameOverride": "plugin"}, "nvdp-plugin"),
        ("my-plugin", {"nameOverride": "plugin"}, "my-plugin"),
        ("nvdp", {"fullnameOverride": "gpu"}, "gpu"),
        ("nvdp", {"fullnameOverride": "", "nameOverride": None}, "nvdp-nvidia-device-plugin"),
        ("a" * 53, {}, f"{'a' * 53}-nvidia-de"),
        ("a" * 46, {"nameOverride": "b" * 15 + "-c"}, f"{'a' * 46}-{'b' * 15}"),
    ],
)
def test_objects_are_called_as_the_chart_calls_them(name, values, fullname):
    assert release(values, name=name).fullname == fullname


@pytest.mark.parametrize(
    ("values", "theirs", "ours"),
    [
        ({}, "nvdp-node-feature-discovery", "nvdp-node-feature-discovery"),
        ({"nfd": {"nameOverride": "x"}}, "nvdp-x", "nvdp-x"),
        ({"nfd": {"nameOverride": ""}}, "nvdp-nfd", "nvdp-nfd"),
        ({"nfd": None}, "nvdp-nfd", "nvdp-nfd"),
        ({"nfd": {"fullnameOverride": "y" * 60}}, "y" * 60, "y" * 46),
    ],
)
def test_the_chart_inside_goes_by_its_alias(values, theirs, ours):
    assert (release(values).nfd_fullname, release(values).our_nfd_fullname) == (theirs, ours)


def test_our_names_leave_room_for_what_stands_behind_them():
    values = {"fullnameOverride": "f" * 63, "config": {"default": "a", "map": {"a": "", "long-name": ""}}}
    assert release(values).our_fullname == "f" * (63 - len("-gpu-feature-discovery") - len("-long-name"))


@pytest.mark.parametrize(
    ("config", "theirs", "ours"),
    [
        ({}, None, None),
        ({"map": {"default": "", "x": ""}}, "default", "default"),
        ({"map": {"x": ""}}, "x", "x"),
        ({"map": {"x": "", "y": ""}, "default": "y"}, "y", "y"),
        ({"map": {"1": "", "2": ""}, "default": 2}, "2", "2"),
        ({"map": {"x": "", "y": ""}, "fallbackStrategies": ["named", "empty"]}, None, None),
        ({"map": {"x": "", "default": ""}, "fallbackStrategies": ["empty", "named"]}, None, None),
        ({"map": {"x": ""}, "default": "z"}, "z", "x"),
    ],
)
def test_the_default_configuration_is_found_as_config_manager_finds_it(config, theirs, ours):
    found = release({"config": config})
    assert (found.default_config, found.our_default) == (theirs, ours)


def test_values_lie_over_defaults_as_helm_lays_them():
    defaults = {"a": {"b": 1, "c": 2}, "d": [1], "e": 3, "f": {"g": 1}}
    given = {"a": {"b": None, "x": 4}, "d": [2], "e": None, "f": 5}
    assert merged(defaults, given) == {"a": {"c": 2, "x": 4}, "d": [2], "f": 5}
    assert defaults == {"a": {"b": 1, "c": 2}, "d": [1], "e": 3, "f": {"g": 1}}


def test_a_null_reaches_the_chart_inside_only_where_it_deletes_nothing_of_this_one():
    found = release({"nfd": {"master": {"affinity": None}, "nameOverride": None, "worker": {"tolerations": None}}})
    assert found.value("nfd.master.affinity") is None
    assert found.value("nfd.master.securityContext.runAsNonRoot") is True
    assert found.nfd_fullname == "nvdp-nfd"
    assert found.value("nfd.worker.tolerations") is None


def test_a_value_is_given_or_default_and_null_is_neither():
    found = release({"mps": {"root": "/x"}, "nfd": {"master": {"serviceAccount": {"name": None}}}})
    assert found.value("mps.root") == found.given_value("mps.root") == "/x"
    assert found.value("mps.enableHostPID") is True
    assert found.given_value("mps.enableHostPID") is None
    assert found.value("nfd.master.serviceAccount.name", "none") == "none"
    assert found.value("mps.root.x", "none") == "none"


def test_an_objects_role_is_told_by_its_kind_and_name():
    found = release({"config": {"map": {"a": "", "B_2": ""}, "default": "a"}})
    theirs, ours = found.chart_roles(), found.our_roles()
    full = "nvdp-nvidia-device-plugin"
    assert theirs["DaemonSet", full] == ours["DaemonSet", full] == ["plugin"]
    assert ours["DaemonSet", f"{full}-b-2"] == ["plugin@B_2"]
    assert ours["ConfigMap", f"{full}-config-b-2"] == ["configs@B_2"]
    assert theirs["ConfigMap", f"{full}-configs"] == ["configs"]
    assert theirs["ServiceAccount", "node-feature-discovery"] == ["nfd-master"]
    assert theirs["Job", "nvdp-node-feature-discovery-prune"] == ["nfd-prune"]
    assert ("Deployment", full) not in theirs


def test_long_names_make_one_of_three_daemonsets_in_the_chart_and_stay_apart_in_ours():
    found = release(name="a" * 52)
    assert found.chart_roles()["DaemonSet", f"{'a' * 52}-nvidia-dev"] == ["plugin", "gfd", "mps"]
    assert len([roles for roles in found.our_roles().values() if len(roles) > 1]) == 0


@pytest.mark.parametrize(("name", "suffix"), [("a", "a"), ("A100.80GB_x", "a100-80gb-x"), ("größe", "gr-e")])
def test_configurations_are_named_in_names_as_kubernetes_can_take_them(name, suffix):
    assert object_suffix(name) == suffix


@pytest.mark.parametrize(
    ("text", "value"), [("a", "a"), ("1", 1), ("yes", True), ("", None), ("a: b", "a: b"), ("{", "{")]
)
def test_unquoted_text_is_what_yaml_reads(text, value):
    assert unquoted(text) == value


@pytest.mark.parametrize(
    ("dropped", "switched"),
    [
        (["gfd.enabled"], {"gfd": {"enabled": True}, "migStrategy": "x"}),
        (["migStrategy"], None),
        ([], None),
    ],
)
def test_switches_are_read_as_templates_read_them(dropped, switched):
    values = {"gfd": {"enabled": "false"}, "migStrategy": "x"}
    read = release(values).as_read(dropped)
    assert (read.given if read else None) == switched
    assert values["gfd"]["enabled"] == "false"


def test_a_switch_of_the_right_type_is_left_alone():
    assert release({"gfd": {"enabled": True}}).as_read(["gfd.enabled"]) is None

import pytest

from gpu_constructs import GpuConstructsError
from gpu_constructs.talos.config_merge import Deletion, deletions, merged, without_deletions

DELETED = {"$patch": "delete"}


def nested(place, value):
    for key in reversed(place.split(".")):
        value = {key: value}
    return value


def refusal(function, *given):
    with pytest.raises(GpuConstructsError) as refused:
        function(*given)
    return str(refused.value)


def test_the_later_value_wins_maps_join_and_lists_grow():
    first = {"a": {"x": 1, "y": "old"}, "list": [1], "flag": True}
    second = {"a": {"y": "new", "z": 2}, "list": [1, 2], "flag": False}
    assert merged("f", None, first, second) == {
        "a": {"x": 1, "y": "new", "z": 2},
        "list": [1, 1, 2],
        "flag": False,
    }


@pytest.mark.parametrize(
    ("kind", "place"),
    [
        (None, "cluster.network.podSubnets"),
        (None, "cluster.network.serviceSubnets"),
        ("NetworkRuleConfig", "portSelector.ports"),
        ("NetworkRuleConfig", "ingress"),
        ("KubeNetworkConfig", "podSubnets"),
        (None, "machine.kubelet.extraArgs.feature-gates"),
    ],
)
def test_some_lists_take_each_others_place(kind, place):
    assert merged("f", kind, nested(place, [1]), nested(place, [2])) == nested(place, [2])


def test_the_audit_policy_takes_the_place_of_another():
    place = "cluster.apiServer.auditPolicy"
    assert merged("f", None, nested(place, {"a": 1}), nested(place, {"b": 2})) == nested(place, {"b": 2})
    assert merged("f", "Other", nested(place, {"a": 1}), nested(place, {"b": 2})) == nested(place, {"a": 1, "b": 2})


def test_interfaces_and_their_vlans_are_joined_by_name():
    place = "machine.network.interfaces"
    first = [{"interface": "eth0", "mtu": 1500, "vlans": [{"vlanId": 1, "mtu": 9}]}, {"interface": "eth1"}]
    second = [{"interface": "eth0", "dhcp": True, "vlans": [{"vlanId": 1, "dhcp": True}, {"vlanId": 2}]}, {"a": 1}]
    assert merged("f", None, nested(place, first), nested(place, second)) == nested(
        place,
        [
            {
                "interface": "eth0",
                "mtu": 1500,
                "dhcp": True,
                "vlans": [{"vlanId": 1, "mtu": 9, "dhcp": True}, {"vlanId": 2}],
            },
            {"interface": "eth1"},
            {"a": 1},
        ],
    )


def test_a_rule_for_the_same_images_takes_the_place_of_another():
    first, second = ({"rules": [{"image": "a", key: True}]} for key in ("skip", "deny"))
    assert merged("f", "ImageVerificationConfig", first, second) == second


@pytest.mark.parametrize("value", [{"b": 1}, [1], "text"])
def test_a_value_of_another_shape_is_refused(value):
    other = [2] if not isinstance(value, list) else "text"
    assert refusal(merged, "f", None, {"a": value}, {"a": other}).startswith("f.a must be ")


@pytest.mark.parametrize("empty", ["", 0])
def test_a_value_that_talos_would_not_empty_is_refused(empty):
    assert refusal(merged, "f", None, {"a": "b"}, {"a": empty}) == (
        f"f.a must not be emptied after a patch that sets it, whose value Talos keeps; got {empty!r} beside 'b'; "
        "leave the first out"
    )


def test_all_deletions_are_found():
    document = {"a": DELETED, "b": {"c.d": DELETED, "e": 1}, "f": [{"name": "g", **DELETED}, {"h": 1}]}
    assert deletions("f", document) == [Deletion(("a",)), Deletion(("b", "c.d")), Deletion(("f",), ("name", "g"))]
    assert without_deletions(document) == {"b": {"e": 1}, "f": [{"h": 1}]}
    assert deletions("f", {"kind": "K", "name": "n", **DELETED}) == [Deletion(())]


def test_levels_that_deletions_leave_empty_go_too_and_others_stay():
    assert without_deletions({"a": {"b": {"c": DELETED}}, "d": [{"x": "y", **DELETED}]}) == {}
    assert without_deletions({"a": {}, "b": [], "c": "", "d": 0, "e": False}) == {
        "a": {},
        "b": [],
        "c": "",
        "d": 0,
        "e": False,
    }


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"a": {"$patch": "replace"}}, "f.a.$patch must be 'delete', Talos' only one; got 'replace'"),
        (
            {"a": {"b": 1, **DELETED}},
            "f.a must not set anything beside $patch: delete, with which Talos drops it; got ['b']; delete the "
            "entries one by one, or give the deletion to talosctl in a patch before this one",
        ),
        (
            {"kind": "K", "labels": {}, **DELETED},
            "f must not set anything beside $patch: delete, with which Talos drops it; got ['labels']; delete the "
            "entries one by one, or give the deletion to talosctl in a patch before this one",
        ),
        (
            DELETED,
            "f.$patch must not delete the whole document without a kind, which Talos keeps; got "
            "{'$patch': 'delete'}; delete what lies in it",
        ),
        (
            {"a": [{"b": DELETED}]},
            "f.a[0].b.$patch must not stand within an item of a list, of which Talos deletes whole ones; got "
            "{'$patch': 'delete'}; delete the item",
        ),
        (
            {"a": [{"b": [{"c": "d", **DELETED}]}]},
            "f.a[0].b[0].$patch must not stand within an item of a list, of which Talos deletes whole ones; got "
            "{'c': 'd', '$patch': 'delete'}; delete the item",
        ),
        *(
            (
                {"a": [{**item, **DELETED}]},
                "f.a[0] must name the item to delete by one key with a text, of which Talos takes the first; "
                f"got {item!r}",
            )
            for item in ({}, {"b": 1}, {"b": "c", "d": "e"})
        ),
    ],
)
def test_a_directive_that_talos_would_not_follow_is_refused(document, message):
    assert refusal(deletions, "f", document) == message


@pytest.mark.parametrize(
    ("first", "second", "place"),
    [
        ({"a": {"b": "c"}}, {"a": DELETED}, "a"),
        ({"a": {"b": "c"}}, {"a": {"b": DELETED}}, "a.b"),
        ({"a": DELETED}, {"a": {"b": "c"}}, "a"),
        ({"a": [{"b": "c"}]}, {"a": [{"b": "c", **DELETED}]}, "a[b=c]"),
        ({"a": {"b": DELETED}}, {"a": DELETED}, "a.b"),
        ({"a": DELETED}, {"a": {"b": DELETED}}, "a.b"),
    ],
)
def test_what_no_one_patch_can_do_is_refused(first, second, place):
    assert refusal(merged, "config_patches[1]", None, first, second) == (
        f"config_patches[1] and the patches before it must not both set and delete {place}: in one patch Talos "
        "deletes first; leave one of them out, or give the deletion to talosctl in a patch of its own"
    )


def test_deletions_of_two_patches_are_made_in_one():
    first = {"a": {"b": DELETED}, "c": [{"d": "e", **DELETED}]}
    second = {"a": {"b": DELETED, "f": 1}, "c": [{"d": "e", **DELETED}, {"d": "e"}], "g": DELETED}
    assert merged("f", None, first, second) == {
        "a": {"b": DELETED, "f": 1},
        "c": [{"d": "e", **DELETED}, {"d": "e"}],
        "g": DELETED,
    }

"""Power limits as wishes: what they say, which come first, and what boards make of them."""

import fnmatch

import pytest

from gpu_constructs import GpuConstructsError
from gpu_constructs.power.boards import check_boards
from gpu_constructs.power.wish import PowerWish, power_wishes

RTX_3090, RTX_5090 = "NVIDIA GeForce RTX 3090", "NVIDIA GeForce RTX 5090"


def refusal(watts=300, **limits):
    with pytest.raises(GpuConstructsError) as refused:
        power_wishes(watts, {key.replace("__", ":"): value for key, value in limits.items()} or {})
    return str(refused.value)


def key_refusal(key):
    with pytest.raises(GpuConstructsError) as refused:
        power_wishes(300, {key: 250})
    return str(refused.value)


@pytest.mark.parametrize(
    ("wish", "rule", "keyword"),
    [
        (PowerWish("uuid", "GPU-1", watts=250), "uuid:GPU-1=250", "limits['uuid:GPU-1']"),
        (PowerWish("pci", "0000:01:00.0", percent=80), "pci:0000:01:00.0=80%", "limits['pci:0000:01:00.0']"),
        (PowerWish("index", "0"), "index:0=default", "limits['index:0']"),
        (PowerWish("name", "*RTX 3090", watts=250), "name:*RTX 3090=250", "limits['name:*RTX 3090']"),
        (PowerWish(watts=300), "300", "watts"),
        (PowerWish(percent=80), "80%", "watts"),
        (PowerWish(), "default", "watts"),
    ],
)
def test_a_wish_is_the_text_that_the_agent_reads(wish, rule, keyword):
    assert wish.to_rule() == rule
    assert wish.keyword == keyword


def test_the_most_specific_wish_comes_first_and_names_keep_their_order():
    limits = {"name:*3090": 1, "index:0": 2, "name:*": 3, "uuid:GPU-1": 4, "pci:01:00.0": 5, "index:1": 6}
    assert [wish.to_rule() for wish in power_wishes("80%", limits)] == [
        "uuid:GPU-1=4",
        "pci:01:00.0=5",
        "index:0=2",
        "index:1=6",
        "name:*3090=1",
        "name:*=3",
        "80%",
    ]


def test_without_a_fallback_there_are_only_the_limits():
    assert [wish.target for wish in power_wishes(None, {"index:0": 250})] == ["index"]


@pytest.mark.parametrize(
    ("wish", "default", "watts"),
    [
        (PowerWish(watts=300), None, 300),
        (PowerWish(percent=80), 350, 280),
        (PowerWish(percent=33), 350, 115),
        (PowerWish(percent=80), None, None),
        (PowerWish(), 350, 350),
        (PowerWish(), None, None),
    ],
)
def test_a_wish_means_watts_where_the_default_is_known(wish, default, watts):
    assert wish.watts_of(default) == watts


LIMIT = "whole watts, a share of the board's default like '80%', or 'default'"
SHARE = "from '1%' to '200%', which is more than any board takes"


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        (0, "must be at least 1, got 0"),
        (-1, "must be at least 1, got -1"),
        (10_000, "must be at most 9999, got 10000"),
        ("0%", f"must be {SHARE}; got '0%'"),
        ("201%", f"must be {SHARE}; got '201%'"),
        ("300", f"must be {LIMIT}; got '300'; give the number 300"),
        ("300W", f"must be {LIMIT}; got '300W'; watts are an int, without a unit"),
        ("80 %", f"must be {LIMIT}; got '80 %'; watts are an int, without a unit"),
        ("80.5%", f"must be {LIMIT}; got '80.5%'; watts are an int, without a unit"),
        ("Default", f"must be {LIMIT}; got 'Default'; watts are an int, without a unit"),
        ("", f"must be {LIMIT}; got ''; watts are an int, without a unit"),
        ("80%\n", f"must be {LIMIT}; got '80%\\n'; watts are an int, without a unit"),
    ],
)
def test_a_limit_that_is_none_is_refused(limit, message):
    assert refusal(index__0=limit) == f"limits['index:0'] {message}"
    assert refusal(limit).startswith(f"watts {message}")


@pytest.mark.parametrize("limit", [1, 9999, "1%", "200%", "default"])
def test_a_limit_up_to_twice_the_default_is_taken(limit):
    assert power_wishes(limit, {})[0].to_rule() == str(limit)


UUID = "limits key must be 'uuid:GPU-' and the rest of what nvidia-smi -L shows"
PCI = "limits key must be 'pci:' and a bus id like 0000:01:00.0"
INDEX = "limits key must be 'index:' and the number nvidia-smi -L shows"
GLOB = "limits key must be 'name:' and a name, or a pattern with *, ? and [...], without blanks at its ends"
START = "limits key must start with one of 'uuid:', 'pci:', 'index:', 'name:'"


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("uuid:0", f"{UUID}; got 'uuid:0'"),
        ("uuid:GPU-", f"{UUID}; got 'uuid:GPU-'"),
        ("pci:01", f"{PCI}; got 'pci:01'"),
        ("pci:01:00", f"{PCI}; got 'pci:01:00'"),
        ("pci:zz:00.0", f"{PCI}; got 'pci:zz:00.0'"),
        ("index:a", f"{INDEX}; got 'index:a'"),
        ("index:01", f"{INDEX}; got 'index:01'"),
        ("index:0\n", f"{INDEX}; got 'index:0\\n'"),
        ("name:", f"{GLOB}; got 'name:'"),
        ("name: a", f"{GLOB}; got 'name: a'"),
        ("name:a=1\nb", f"{GLOB}; got 'name:a=1\\nb'"),
        ("name:$(POD)", f"{GLOB}; got 'name:$(POD)'"),
        ("GPU-1", f"{START}; got 'GPU-1'"),
        ("name", f"{START}; got 'name' (did you mean 'name'?)"),
        ("uid:GPU-1", f"{START}; got 'uid:GPU-1' (did you mean 'uuid'?)"),
        ("nane:*", f"{START}; got 'nane:*' (did you mean 'name'?)"),
    ],
)
def test_a_key_that_chooses_no_gpu_is_refused(key, message):
    assert key_refusal(key) == message


def test_one_uuid_in_two_spellings_is_refused():
    with pytest.raises(GpuConstructsError) as refused:
        power_wishes(300, {"uuid:GPU-ab": 250, "uuid:GPU-AB": 280})
    assert str(refused.value) == "limits must name a device once; got 'GPU-ab' and 'GPU-AB'; leave one of them out"


def test_one_device_in_two_spellings_is_refused():
    with pytest.raises(GpuConstructsError) as refused:
        power_wishes(300, {"pci:0A:00.0": 250, "pci:0000:0a:00.0": 280})
    assert str(refused.value) == (
        "limits must name a device once; got '0A:00.0' and '0000:0a:00.0'; leave one of them out"
    )
    assert len(power_wishes(300, {"pci:0000:0a:00.0": 250, "pci:0001:0a:00.0": 280})) == 3


def test_no_limit_at_all_is_refused():
    assert refusal(None) == (
        "watts must be given where there are no limits; got None; name a limit, or leave the PowerLimit out for the "
        "boards' own"
    )


def said(watts, names, limits=None, out_of_range="clamp"):
    return check_boards(power_wishes(watts, limits or {}), names, out_of_range=out_of_range)


def refused(watts, names, limits=None):
    with pytest.raises(GpuConstructsError) as found:
        said(watts, names, limits, "refuse")
    return str(found.value)


@pytest.mark.parametrize(
    ("watts", "name", "range_and_result"),
    [
        (300, RTX_5090, (f"{RTX_5090} (400 to 600 W)", 400)),
        (300, "NVIDIA L4", ("NVIDIA L4 (40 to 72 W)", 72)),
        ("20%", RTX_3090, (f"{RTX_3090} (100 to 480 W)", 100)),
        (149, "GeForce RTX 5060 Ti", ("NVIDIA GeForce RTX 5060 Ti (150 W or more)", 150)),
    ],
)
def test_a_limit_out_of_the_range_of_a_board_is_warned_of_or_refused(watts, name, range_and_result):
    board, result = range_and_result
    text = f"{watts} W" if isinstance(watts, int) else watts
    assert said(watts, [name]) == [f"watts: {text} is out of the range of {board}, so the limit becomes {result} W"]
    assert refused(watts, [name]) == (
        f"watts must be a limit that the board takes; got {text} for {board}; give another limit, one for that board "
        "alone in limits, or out_of_range='clamp' for the nearest it takes"
    )


@pytest.mark.parametrize(("watts", "name"), [(400, RTX_5090), (72, "NVIDIA L4"), (40, "L4"), ("default", RTX_5090)])
def test_a_limit_in_the_range_of_a_board_is_fine(watts, name):
    assert said(watts, [name], out_of_range="refuse") == []


def test_nothing_is_said_of_a_board_that_is_not_known_or_has_no_known_range():
    assert said(9999, ["NVIDIA Something", "NVIDIA B300 SXM6 AC"], out_of_range="refuse") == []
    assert said(300, [], out_of_range="refuse") == []


def test_a_limit_above_the_default_is_warned_of():
    assert said(400, [RTX_3090], out_of_range="refuse") == [
        f"watts: 400 W is above the default of {RTX_3090} (350 W): cooling and power supply must be made for it"
    ]
    assert said("110%", [], out_of_range="refuse") == [
        "watts: 110% is above the default of every board: cooling and power supply must be made for it"
    ]
    assert said("100%", [RTX_3090]) == []


def test_a_limit_by_name_takes_its_boards_from_the_fallback_and_the_first_name_wins():
    limits = {"name:*5090": 450, "name:*": 250}
    assert said(300, [RTX_3090, RTX_5090], limits, "refuse") == []
    assert "limits['name:*'] must be" in refused(300, [RTX_3090, RTX_5090], dict(reversed(limits.items())))


def test_a_limit_by_a_name_that_no_board_has_is_warned_of():
    assert said(300, [RTX_3090], {"name:RTX 3090": 250}) == [
        f"limits['name:RTX 3090'] is for none of gpu_models '{RTX_3090}'"
    ]


@pytest.mark.parametrize("key", ["uuid:GPU-1", "pci:01:00.0", "index:0"])
def test_a_limit_of_one_device_counts_where_it_is_wrong_for_every_board(key):
    assert said(None, [RTX_3090, "NVIDIA L4"], {key: 60}, "refuse") == []
    assert said(None, ["NVIDIA L4", "NVIDIA Something"], {key: 300}, "refuse") == []
    assert f"limits['{key}'] must be" in refused(None, ["NVIDIA L4", "NVIDIA A10G"], {key: 400})
    assert said(None, ["NVIDIA L4", "NVIDIA A10G"], {key: 400}) == [
        f"limits['{key}']: 400 W is out of the range of NVIDIA L4 (40 to 72 W) and NVIDIA A10G (100 to 300 W), so the "
        "limit becomes 72 W and 300 W"
    ]


def test_names_are_matched_as_a_shell_does():
    assert fnmatch.fnmatchcase("NVIDIA L4", "NVIDIA L[!5]")
    assert said(60, ["NVIDIA L4"], {"name:NVIDIA L[!5]": 50}, "refuse") == []
    assert said(60, ["NVIDIA L4"], {"name:nvidia l4": 50}) == [
        "limits['name:nvidia l4'] is for none of gpu_models 'NVIDIA L4'"
    ]

"""Any configuration is refused in one line, or NVIDIA's programs take the whole of it as it was meant.

Each drawn file is handed to the plugin and to GPU Feature Discovery, which say what they run with before they look for
GPUs.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import tempfile
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assets import Nvidia
from gpu_constructs import GpuConstructsError, Sharing
from gpu_constructs.catalog.versions import DEVICE_PLUGIN
from gpu_constructs.device_plugin.config import Flags, GfdFlags, Imex, PluginConfig, PluginFlags

# Another draw would hide a real difference.
pytestmark = pytest.mark.flaky(reruns=0)
quickly = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])

# --- what must hold ----------------------------------------------------------

_SAYS_WHERE = re.compile(r"\b(flags|sharing|imex|config)\b")
_SAYS_LINE = re.compile(r"line [0-9]+: \S|text (is|must) ")
_LEAK = re.compile(r"<class|jsii|typeguard|Traceback|gpu_constructs\.")
_PYTHON = re.compile(r"\b(be|got) (NoneType|dict|list|str|bool|bytes|tuple|datetime)\b")


def says_what_is_wrong(error):
    assert str(error).isprintable()
    assert _SAYS_WHERE.search(str(error)), str(error)
    assert not _LEAK.search(str(error)), str(error)


def says_where_in_the_text(error):
    assert str(error).isprintable()
    assert _SAYS_LINE.match(str(error)), str(error)
    assert not _LEAK.search(str(error)), str(error)
    assert not _PYTHON.search(str(error)), str(error)


PROGRAMS = {"plugin": "nvidia-device-plugin", "gfd": "gpu-feature-discovery"}


def running_with(nvidia: Nvidia, program: str, text: str) -> dict | None:
    """What a program says that it runs with; None if it refuses the file."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "config.yaml"
        file.write_text(text, encoding="utf-8")
        told = {
            "CONFIG_FILE": str(file),
            "FAIL_ON_INIT_ERROR": "true",
            # Without a cluster it ends there, and writes no file of the machine.
            "GFD_USE_NODE_FEATURE_API": "true",
            # Some settings are for machines with NVIDIA's driver alone.
            "LD_LIBRARY_PATH": str(nvidia.folder),
            "KUBELET_SOCKET": f"{folder}/kubelet.sock",
            "MPS_ROOT": "/run/nvidia/mps",
            "PATH": os.environ["PATH"],
        }
        command = [str(nvidia.folder / PROGRAMS[program])]
        with subprocess.Popen(command, env=told, stderr=subprocess.PIPE, text=True, encoding="utf-8") as process:
            said = None
            for line in process.stderr:
                if line.startswith("Running with config:"):
                    said = ""
                elif said is not None:
                    said += line
                    if line == "}\n":
                        break
            process.kill()
    return json.loads(said) if said else None


def stated(config, program):
    """The settings that a program reads of a file, but for spans, which it spells its own way."""
    flags = dict(config.document().get("flags", {}))
    sections = {name: flags.pop(name, {}) for name in ("plugin", "gfd")}
    own = {key: value for key, value in sections[program].items() if key != "sleepInterval"}
    listed = own.get("deviceListStrategy")
    return flags, {**own, **({"deviceListStrategy": [listed]} if isinstance(listed, str) else {})}


# Given as variables, which beat the file.
OVERRIDDEN = {"failOnInitError", "mpsRoot", "useNodeFeatureAPI"}


def taken_whole(nvidia, config, text):
    """Check that each program takes the text for what the options say."""
    for program in programs_of(config):
        meant, read = running_with(nvidia, program, config.to_yaml()), running_with(nvidia, program, text)
        assert read is not None, text
        assert read == meant, text
        flags, own = stated(config, program)
        for said, found in ((flags, read["flags"]), (own, read["flags"][program])):
            assert {key: found.get(key) for key in said if key not in OVERRIDDEN} == {
                key: value for key, value in said.items() if key not in OVERRIDDEN
            }
        strategy = {"time-slicing": "timeSlicing", "mps": "mps"}.get(config.sharing.strategy)
        if strategy:
            shared = {one["name"]: one["replicas"] for one in read["sharing"][strategy]["resources"]}
            assert shared == config.sharing.resources


def programs_of(config):
    return ("gfd",) if config.flags.device_discovery_strategy == "vfio" else ("plugin", "gfd")


# --- option trees ------------------------------------------------------------

junk = st.one_of(
    st.sampled_from(
        ["", " ", "None", "/", "nvml ", "infinite", "a\nb", "\ud800", "0", "nan", "é", "/a/../b", "..", "x" * 70]
    ),
    st.sampled_from([0, 1, -1, 2**31, 2**63, 2**70, 0.5, float("nan"), float("inf"), 1e300, True, False]),
    st.sampled_from([b"uuid", (), [], [None], {}, {"a": 1}, {1: 2}, {"uuid"}, range(1), Ellipsis, Exception("x")]),
    st.sampled_from([timedelta(0), timedelta(-1), timedelta.max, timedelta.min, timedelta(microseconds=1)]),
    st.text(max_size=8),
    st.lists(st.sampled_from(["envvar", "cdi-cri", 0, None, ["envvar"]]), max_size=3),
)
paths = st.sampled_from(["/", "/driver-root", "/usr/local", "/a b", "/é", "/run/nvidia/driver/"])
switches = st.booleans()
strategies = st.sampled_from(["envvar", "volume-mounts", "cdi-annotations", "cdi-cri"])
mig_devices = ["nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "nvidia.com/mig-2g.10gb", "nvidia.com/mig-1g.10gb.me"]

GOOD = {
    Flags: {
        "mig_strategy": st.sampled_from(["none", "single", "mixed"]),
        "fail_on_init_error": switches,
        "mps_root": paths,
        "nvidia_driver_root": paths,
        "nvidia_dev_root": paths,
        "gdrcopy_enabled": switches,
        "gds_enabled": switches,
        "mofed_enabled": switches,
        "use_node_feature_api": switches,
        "device_discovery_strategy": st.sampled_from(["auto", "nvml", "tegra", "vfio"]),
    },
    PluginFlags: {
        "pass_device_specs": switches,
        "device_list_strategy": strategies | st.lists(strategies, min_size=1, unique=True).map(tuple),
        "device_id_strategy": st.sampled_from(["uuid", "index"]),
        "cdi_annotation_prefix": st.sampled_from(["cdi.k8s.io/", "example.com/"]),
        "nvidia_ctk_path": paths,
        "container_driver_root": paths,
        "shared_devices_allocation_policy": st.sampled_from(["distributed", "packed"]),
    },
    GfdFlags: {
        "oneshot": switches,
        "no_timestamp": switches,
        "sleep_interval": st.timedeltas(timedelta(seconds=1), timedelta(days=100000)) | st.just("infinite"),
        "output_file": st.sampled_from(["", "/no/such/folder/labels"]),
        "machine_type_file": paths,
    },
    Imex: {"channel_ids": st.sampled_from([(), (0,), [0]]), "required": switches},
}


def test_every_member_is_drawn():
    for struct, members in GOOD.items():
        assert {field.name for field in dataclasses.fields(struct)} - {"plugin", "gfd"} == members.keys()


numbers = st.integers(2, 48)
sharing_switches = dict.fromkeys(("fail_requests_greater_than_one", "rename_by_default"), switches)
sharings = st.one_of(
    st.just((Sharing.none, {})),
    st.tuples(
        st.just(Sharing.time_slicing),
        st.fixed_dictionaries(
            {"resources": st.dictionaries(st.sampled_from(mig_devices), numbers, min_size=1, max_size=3)},
            optional=sharing_switches,
        ),
    ),
    st.tuples(
        st.sampled_from([Sharing.time_slicing, Sharing.mps]),
        st.fixed_dictionaries({"replicas": numbers}, optional=sharing_switches),
    ),
)
good_trees = st.tuples(
    *(st.fixed_dictionaries({}, optional=GOOD[struct]) for struct in (Flags, PluginFlags, GfdFlags, Imex)), sharings
)


@st.composite
def bad_trees(draw):
    """Good options, with one or two members replaced by anything."""
    tree = draw(good_trees)
    sections = [*zip(tree[:4], map(GOOD.get, (Flags, PluginFlags, GfdFlags, Imex)), strict=True)]
    sections += [(tree[4][1], tree[4][1])] if tree[4][1] else []
    for _ in range(draw(st.integers(1, 2))):
        section, names = draw(st.sampled_from(sections))
        section[draw(st.sampled_from(sorted(names)))] = draw(junk)
    resources = tree[4][1].get("resources")
    if isinstance(resources, dict) and draw(switches):
        resources[draw(st.sampled_from([*mig_devices, "gpu", None, 5]))] = draw(junk)
    return tree


def config_of(tree):
    flags, plugin, gfd, imex, (make_sharing, shared) = tree
    return PluginConfig(
        flags=Flags(**flags, plugin=PluginFlags(**plugin), gfd=GfdFlags(**gfd)),
        sharing=make_sharing(**shared),
        imex=Imex(**imex),
    )


def refused_by(make, *given):
    """Return what is made, or why it was refused."""
    try:
        return make(*given), None
    except GpuConstructsError as error:
        return None, error


@quickly
@given(tree=bad_trees() | good_trees)
def test_options_are_refused_in_one_line_or_the_programs_take_all_of_them(nvidia, tree):
    config, error = refused_by(config_of, tree)
    if error:
        says_what_is_wrong(error)
        return
    assert PluginConfig.from_yaml(config.to_yaml()) == config
    _, error = refused_by(config.check_release, DEVICE_PLUGIN[nvidia.version])
    if error:
        says_what_is_wrong(error)
    else:
        taken_whole(nvidia, config, config.to_yaml())


# --- texts -------------------------------------------------------------------

VALID = [
    [("version", "v1"), ("flags", [("migStrategy", "none")])],
    [
        ("version", "v1"),
        (
            "flags",
            [("migStrategy", "mixed"), ("failOnInitError", "false"), ("plugin", [("deviceListStrategy", "envvar")])],
        ),
        (
            "sharing",
            [
                (
                    "timeSlicing",
                    [
                        ("renameByDefault", "false"),
                        ("failRequestsGreaterThanOne", "true"),
                        (
                            "resources",
                            (
                                [("name", "nvidia.com/gpu"), ("replicas", "4")],
                                [("name", "nvidia.com/mig-1g.5gb"), ("replicas", "2")],
                            ),
                        ),
                    ],
                )
            ],
        ),
    ],
    [
        ("flags", [("mpsRoot", "/run/nvidia/mps"), ("gfd", [("sleepInterval", "60s"), ("noTimestamp", "true")])]),
        ("sharing", [("mps", [("resources", ([("name", "gpu"), ("replicas", "10")],))])]),
    ],
    [
        (
            "flags",
            [
                ("deviceDiscoveryStrategy", "nvml"),
                (
                    "plugin",
                    [
                        ("passDeviceSpecs", "true"),
                        ("deviceListStrategy", ("envvar", "cdi-cri")),
                        ("deviceIDStrategy", "index"),
                        ("sharedDevicesAllocationPolicy", "packed"),
                    ],
                ),
            ],
        ),
        ("imex", [("channelIDs", ("0",)), ("required", "true")]),
        ("resources", "{}"),
    ],
]
KEYS = [
    *(field.metadata["key"] for struct in (Flags, PluginFlags, GfdFlags) for field in dataclasses.fields(struct)),
    *"sharedDevicesAllocationPolicy version flags plugin gfd sharing timeSlicing mps imex channelIDs required".split(),
    *"resources gpus mig renameByDefault failRequestsGreaterThanOne name replicas rename devices pattern kind".split(),
    *["yes", "1", "null", '"flags"', "migStrategy ", "flag"],
]
TOKENS = [
    *"none single mixed SINGLE true false yes NO n Y on tRue null ~ v1 v2 envvar envvars cdi-cri uuid packed".split(),
    *"auto nvml vfio infinite Infinite 60s 1h30m 500ms 1.5s -5s +90s 1d 60 0 1 2 4 48 49 -1 010 0x10".split(),
    *"0o10 0b11 1_0 1:30 1e2 2.0 2.5 .5 5. 1e30 .inf .nan 9223372036854775808 2020-01-01 gpu all".split(),
    *"nvidia.com/gpu mig-1g.5gb nvidia.com/mig-1g.5gb amd.com/gpu gpu.shared GPU a/b cdi.k8s.io/".split(),
    *"/ /dev relative /usr/../lib = 0:1".split(),
    *[
        "",
        "''",
        "'4'",
        '"60"',
        "'0'",
        "'true'",
        "[]",
        "[0]",
        "[0, 0]",
        "[1]",
        "[false]",
        "[null]",
        "{}",
        "{a: b}",
        "[envvar]",
    ],
    *[
        "[envvar, cdi-cri]",
        "[envvar, envvar]",
        "'envvar,cdi-cri'",
        "{name: gpu, replicas: 2}",
        "[gpu]",
        "[{name: gpu, replicas: 3}]",
    ],
    *["&x none", "*x", "text  # comment", "'a\n  b'", "x" * 70, "[{pattern: '*', name: gpu}]", "2 # two"],
]


def mappings(node):
    """Return every mapping of a tree: mappings are lists of pairs, sequences are tuples, scalars are text."""
    if isinstance(node, list):
        yield node
        for _, child in node:
            yield from mappings(child)
    elif isinstance(node, tuple):
        for child in node:
            yield from mappings(child)


def copied(node):
    if isinstance(node, list):
        return [(key, copied(child)) for key, child in node]
    return tuple(map(copied, node)) if isinstance(node, tuple) else node


def rendered(node, indent=0):
    pad = "  " * indent
    if isinstance(node, str):
        return f" {node}\n"
    if not node:
        return " {}\n" if isinstance(node, list) else " []\n"
    if isinstance(node, list):
        return "\n" * bool(indent) + "".join(f"{pad}{key}:{rendered(child, indent + 1)}" for key, child in node)
    lines = (f"{pad}-{rendered(child, indent + 1)}" for child in node)
    return "\n" + "".join(re.sub(r"-\n\s+", "- ", line, count=1) for line in lines)


@st.composite
def texts(draw):
    tree = copied(draw(st.sampled_from(VALID)))
    for _ in range(draw(st.integers(0, 3))):
        places = list(mappings(tree))
        place = draw(st.sampled_from(places))
        if not place:
            continue
        index = draw(st.integers(0, len(place) - 1))
        key, child = place[index]
        match draw(st.sampled_from(["rename", "fold", "move", "double", "retype", "retype", "add", "drop"])):
            case "rename":
                place[index] = (draw(st.sampled_from(KEYS)), child)
            case "fold":
                place[index] = (draw(st.sampled_from([str.lower, str.upper, str.title]))(key), child)
            case "move":
                draw(st.sampled_from(places)).append((key, copied(child)))
            case "double":
                place.append((key, draw(st.sampled_from(TOKENS)) if draw(switches) else copied(child)))
            case "retype":
                place[index] = (key, draw(st.sampled_from(TOKENS)))
            case "add":
                place.append((draw(st.sampled_from(KEYS)), draw(st.sampled_from(TOKENS))))
            case "drop":
                del place[index]
    return draw(st.sampled_from(["", "", "", "---\n", "# a comment\n", "---\r\n"])) + rendered(tree)


@quickly
@given(text=texts())
def test_a_text_is_refused_or_means_to_the_programs_what_was_read(nvidia, text):
    config, error = refused_by(PluginConfig.from_yaml, text)
    if error:
        says_where_in_the_text(error)
    elif not refused_by(config.check_release, DEVICE_PLUGIN[nvidia.version])[1]:
        taken_whole(nvidia, config, text)


@quickly
@given(text=st.text(alphabet="flags:mig{}[],\"' \n\t#&*!|>-<%@v1\\?~\x00é", max_size=60))
def test_any_text_is_read_or_refused(text):
    _, error = refused_by(PluginConfig.from_yaml, text)
    if error:
        says_where_in_the_text(error)

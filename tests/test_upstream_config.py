"""The statement of upstream's rules. Every row was compared with the programs built from both releases."""

from pathlib import Path

import pytest

import upstream_config
from upstream_config import NotModelledError, Reading, parse_duration, read

BOTH = ("0.18.2", "0.20.0")
both = pytest.mark.parametrize("release", BOTH)
SUBDOMAIN = "incorrect format for resource name '{}': ["


def entry(text):
    return f"sharing: {{timeSlicing: {{resources: [{text}]}}}}"


REFUSED = [
    ("version: v2", "unknown version: v2"),
    ("version: 1", "unknown version: 1"),
    ("version: yes", "unknown version: true"),
    (
        "flags: {plugin: {deviceListStrategy: envvars}}",
        "invalid --device-list-strategy option: invalid strategy: envvars",
    ),
    ("flags: {plugin: {deviceListStrategy: ''}}", "invalid --device-list-strategy option: invalid strategy: "),
    (
        "flags: {plugin: {deviceListStrategy: 'envvar,cdi-cri'}}",
        "invalid --device-list-strategy option: invalid strategy: envvar,cdi-cri",
    ),
    ("flags: {plugin: {deviceListStrategy: [null]}}", "invalid --device-list-strategy option: invalid strategy: "),
    ("flags: {plugin: {deviceListStrategy: 1}}", "invalid deviceListStrategy: "),
    ("flags: {plugin: {deviceListStrategy: {a: b}}}", "invalid deviceListStrategy: "),
    ("flags: {plugin: {deviceIDStrategy: UUID}}", "invalid --device-id-strategy option: UUID"),
    (
        "flags: {mpsRoot: /m, migStrategy: mixed}\nsharing: {mps: {resources: [{name: gpu, replicas: 2}]}}",
        "using --mig-strategy=mixed is not supported with MPS",
    ),
    ("sharing: {mps: {resources: [{name: gpu, replicas: 2}]}}", "using MPS requires --mps-root to be specified"),
    ("flags: {deviceDiscoveryStrategy: vfio}", "invalid --device-discovery-strategy option vfio"),
    ("flags: {deviceDiscoveryStrategy: NVML}", "invalid --device-discovery-strategy option NVML"),
    ("flags: {migStrategy: SINGLE}", "unknown MIG strategy: SINGLE"),
    ("flags: {migStrategy: ''}", "unknown MIG strategy: "),
    (
        "imex: {channelIDs: [1]}",
        "invalid IMEX channel IDs: invalid IMEX config: channelIDs must be [] or [0]; found [1]",
    ),
    (
        "imex: {channelIDs: [0, 0]}",
        "invalid IMEX channel IDs: invalid IMEX config: channelIDs must be [] or [0]; found [0 0]",
    ),
    ("flags: {failOnInitError: 'yes'}", "json: cannot unmarshal string"),
    ("flags: {failOnInitError: 1}", "json: cannot unmarshal number"),
    ("flags: {migStrategy: no}", "json: cannot unmarshal bool"),
    ("flags: {mpsRoot: 010}", "json: cannot unmarshal number"),
    ("flags: []", "json: cannot unmarshal array"),
    ("flags: x", "json: cannot unmarshal string"),
    ("[a]", "json: cannot unmarshal array"),
    ("resources: []", "json: cannot unmarshal array"),
    ("flags: {gfd: {sleepInterval: '60'}}", 'time: missing unit in duration "60"'),
    ("flags: {gfd: {sleepInterval: 1d}}", 'time: unknown unit "d" in duration "1d"'),
    ("flags: {gfd: {sleepInterval: Infinite}}", 'time: invalid duration "Infinite"'),
    ("flags: {gfd: {sleepInterval: true}}", "invalid duration"),
    ("flags: {gfd: {sleepInterval: 2562047h47m16.854775808s}}", 'time: invalid duration "2562047h47m16.854775808s"'),
    ("sharing: {timeSlicing: null}", "no resources specified"),
    ("sharing: {timeSlicing: {}}", "no resources specified"),
    ("sharing: {mps: {resources: []}}", "no resources specified"),
    ("sharing: {mps: {resources: null}}", "no resources specified"),
    ("sharing: {timeSlicing: {Resources: [{name: gpu, replicas: 2}]}}", "no resources specified"),
    (entry("{replicas: 2}"), "no resource name specified"),
    (entry("null"), "no resource name specified"),
    (entry("{name: gpu}"), "no replicas specified"),
    *((entry(f"{{name: gpu, replicas: {n}}}"), "number of replicas must be >= 2") for n in ("1", "0", "-1", "null")),
    (entry("{name: gpu, replicas: '4'}"), "json: cannot unmarshal string"),
    (entry("{name: gpu, replicas: 1:30}"), "json: cannot unmarshal string"),
    (entry("{name: gpu, replicas: 2.5}"), "json: cannot unmarshal number"),
    (entry(f"{{name: gpu, replicas: {2**63}}}"), "json: cannot unmarshal number"),
    (entry("{name: amd.com/gpu, replicas: 2}"), SUBDOMAIN.format("nvidia.com/amd.com/gpu")),
    (entry("{name: GPU, replicas: 2}"), SUBDOMAIN.format("nvidia.com/GPU")),
    (entry("{name: null, replicas: 2}"), SUBDOMAIN.format("nvidia.com/")),
    (entry("{name: gpu, replicas: 2, rename: ''}"), SUBDOMAIN.format("nvidia.com/")),
    (
        entry(f"{{name: {'a' * 53}, replicas: 2}}"),
        f"fully-qualified resource name must be 63 characters or less: nvidia.com/{'a' * 53}",
    ),
    (entry("{name: gpu, replicas: 2, devices: x}"), "devices set as 'x' but the only valid string input is 'all'"),
    (entry("{name: gpu, replicas: 2, devices: 0}"), "devices set as '0' but a count of devices must be > 0"),
    (entry("{name: gpu, replicas: 2, devices: {a: b}}"), "unrecognized type for devices spec: "),
    (entry("{name: gpu, replicas: 2, devices: [x]}"), "unsupported type for device in devices list: "),
    (
        "sharing: {mps: {failRequestsGreaterThanOne: 'true', resources: [{name: gpu, replicas: 2}]}}",
        "json: cannot unmarshal string",
    ),
    ("resources: {gpus: [{name: gpu}]}", "resources must have a 'pattern' field set"),
    ("resources: {mig: [{pattern: '*'}]}", "resources must have a 'name' field set"),
    ("flags: {mpsRoot: .inf}", "error converting YAML to JSON: json: unsupported value"),
    ("a: b: c", "error converting YAML to JSON: yaml: "),
    ("%YAML 1.2\n---\nversion: v1", "error converting YAML to JSON: yaml: found incompatible YAML document"),
    ("null: x", "error converting YAML to JSON: unsupported map key of type"),
    ("? [a]\n: b", "error converting YAML to JSON: yaml: invalid map key"),
    # Flags of all programs below a section of flags are reset to zero, not read.
    ("flags: {plugin: {migStrategy: single}}", "unknown MIG strategy: "),
    ("flags: {gfd: {deviceDiscoveryStrategy: nvml}}", "invalid --device-discovery-strategy option "),
]

TAKEN = [
    ("", {}, ()),
    ("version: null", {}, ()),
    ("version: v1\n...\nversion: v2", {}, ("every document but the first",)),
    ("kind: ConfigMap\ndata: {config.yaml: 'version: v2'}", {}, ("data", "kind")),
    ("FLAGS: {MIGSTRATEGY: single}", {"flags.migStrategy": "single"}, ()),
    ("flags: {migStrategy: single, foo: 1}", {"flags.migStrategy": "single"}, ("flags.foo",)),
    ("flags: {migStrategy: none, migStrategy: single}", {"flags.migStrategy": "single"}, ("flags.migStrategy",)),
    ("flags: {MIGSTRATEGY: mixed, migStrategy: single}", {"flags.migStrategy": "single"}, ("flags.MIGSTRATEGY",)),
    ("renameByDefault: true", {}, ("renameByDefault",)),
    (
        "flags: {plugin: {failOnInitError: true}}",
        {"flags.failOnInitError": False},
        ("flags.plugin.failOnInitError",),
    ),
    ("flags: {failOnInitError: y, gdsEnabled: Off}", {"flags.failOnInitError": True, "flags.gdsEnabled": False}, ()),
    ("flags: {mpsRoot: 2020-01-01}", {"flags.mpsRoot": "2020-01-01"}, ()),
    ("flags: {plugin: {deviceListStrategy: []}}", {"flags.plugin.deviceListStrategy": ()}, ()),
    ("flags: {plugin: {deviceListStrategy: envvar}}", {"flags.plugin.deviceListStrategy": ("envvar",)}, ()),
    ("flags: {gfd: {sleepInterval: 60}}", {"flags.gfd.sleepInterval": 60}, ()),
    ("flags: {gfd: {sleepInterval: 1h30m}}", {"flags.gfd.sleepInterval": 5400 * 10**9}, ()),
    ("flags: {gfd: {sleepInterval: -5s}}", {"flags.gfd.sleepInterval": -5 * 10**9}, ()),
    ("resources: {gpus: [{pattern: '*', name: gpu}]}", {}, ("resources.gpus",)),
    ("resources: {gpus: []}", {}, ()),
    ("sharing: {mps: null}", {}, ()),
    ("imex: {channelIDs: [null], required: true}", {"imex.channelIDs": (0,), "imex.required": True}, ()),
]


def sharing(strategy, replicas, *, fails=False, renames=False):
    return {
        "sharing.strategy": strategy,
        "sharing.resources": replicas,
        "sharing.renameByDefault": renames,
        "sharing.failRequestsGreaterThanOne": fails,
    }


ONE = {"nvidia.com/gpu": 2}
PATH = "sharing.timeSlicing.resources"
TAKEN += [
    (entry("{name: gpu, replicas: 2}"), sharing("time-slicing", ONE), ()),
    (entry("{name: gpu, replicas: 2.0}"), sharing("time-slicing", ONE), ()),
    (entry("{name: gpu, replicas: 0o2}"), sharing("time-slicing", ONE), ()),
    (entry("{name: gpu, replicas: 2, devices: all}"), sharing("time-slicing", ONE), ()),
    (entry("{name: gpu, replicas: 2, devices: [0, '0:1']}"), sharing("time-slicing", ONE), (f"{PATH}[0].devices",)),
    (entry("{name: gpu, replicas: 2, devices: 1}"), sharing("time-slicing", ONE), (f"{PATH}[0].devices",)),
    (entry("{name: gpu, replicas: 2, rename: x}"), sharing("time-slicing", ONE), (f"{PATH}[0].rename",)),
    (entry("{name: gpu, replicas: 2, NAME: x}"), sharing("time-slicing", ONE), (f"{PATH}[0].NAME",)),
    (
        entry("{name: gpu, replicas: 3}, {name: nvidia.com/gpu, replicas: 2}"),
        sharing("time-slicing", {"nvidia.com/gpu": 3}),
        (f"{PATH}[1]",),
    ),
    (entry("{name: foo, replicas: 2}"), sharing("time-slicing", {"nvidia.com/foo": 2}), ("nvidia.com/foo",)),
    (
        "sharing: {TIMESLICING: {renameByDefault: yes, resources: [{name: gpu, replicas: 2, rename: gpu.shared}]}}",
        sharing("time-slicing", ONE, renames=True),
        (),
    ),
    (
        "flags: {mpsRoot: /m}\nsharing: {mps: {resources: [{name: gpu, replicas: 2}]}}",
        {"flags.mpsRoot": "/m", **sharing("mps", ONE, fails=True)},
        (),
    ),
    (
        "flags: {mpsRoot: /m}\nsharing: {mps: {resources: [{name: gpu, replicas: 2}]}, "
        "timeSlicing: {resources: [{name: gpu, replicas: 3}]}}",
        {"flags.mpsRoot": "/m", **sharing("mps", ONE, fails=True)},
        ("sharing.timeSlicing",),
    ),
]

POLICY = "flags: {plugin: {sharedDevicesAllocationPolicy: %s}}"
MPS_LENIENT = (
    "flags: {mpsRoot: /m}\nsharing: {mps: {failRequestsGreaterThanOne: false, resources: [{name: gpu, replicas: 2}]}}"
)
BY_RELEASE = [
    (POLICY % "packed", "0.18.2", Reading(ignored=("flags.plugin.sharedDevicesAllocationPolicy",))),
    (POLICY % "packed", "0.20.0", Reading(settings={"flags.plugin.sharedDevicesAllocationPolicy": "packed"})),
    (POLICY % "x", "0.18.2", Reading(ignored=("flags.plugin.sharedDevicesAllocationPolicy",))),
    (POLICY % "x", "0.20.0", Reading(refusal="invalid --shared-devices-allocation-policy option: x")),
    ("flags: {gfd: {sleepInterval: infinite}}", "0.18.2", Reading(refusal='time: invalid duration "infinite"')),
    ("flags: {gfd: {sleepInterval: infinite}}", "0.20.0", Reading(settings={"flags.gfd.sleepInterval": 2**63 - 1})),
    (
        MPS_LENIENT,
        "0.18.2",
        Reading(
            settings={"flags.mpsRoot": "/m", **sharing("mps", ONE, fails=True)},
            ignored=("sharing.mps.failRequestsGreaterThanOne",),
        ),
    ),
    (MPS_LENIENT, "0.20.0", Reading(settings={"flags.mpsRoot": "/m", **sharing("mps", ONE, fails=False)})),
]


@both
@pytest.mark.parametrize(("text", "refusal"), REFUSED)
def test_the_plugin_refuses(release, text, refusal):
    assert read(text, release) == Reading(refusal=refusal)


@both
@pytest.mark.parametrize(("text", "settings", "ignored"), TAKEN)
def test_the_plugin_takes(release, text, settings, ignored):
    reading = read(text, release)
    assert (reading.refusal, reading.settings, set(reading.ignored)) == (None, settings, set(ignored))


@pytest.mark.parametrize(("text", "release", "reading"), BY_RELEASE)
def test_releases_differ(text, release, reading):
    assert read(text, release) == reading


@both
def test_gpu_feature_discovery_looks_at_the_discovery_strategy_alone(release):
    assert read("flags: {deviceDiscoveryStrategy: vfio}", release, "gfd").refusal is None
    assert read("flags: {deviceDiscoveryStrategy: x}", release, "gfd").refusal == (
        "invalid --device-discovery-strategy option x"
    )
    assert read("flags: {migStrategy: x}", release, "gfd").refusal is None
    assert read("flags: {plugin: {deviceListStrategy: x}}", release, "gfd").refusal is None
    assert read("version: v2", release, "gfd").refusal == "unknown version: v2"


@both
def test_the_variable_for_the_mps_root_overrides_the_file(release):
    text = "flags: {mpsRoot: /m}\nsharing: {mps: {resources: [{name: gpu, replicas: 2}]}}"
    assert read(text, release, mps_root="/other").settings["flags.mpsRoot"] == "/other"
    assert read(text.replace("/m", "''"), release, mps_root="/other").refusal is None


@pytest.mark.parametrize("text", ["a: !!str b", "a: {<<: {}}", "{a:{b: c}}", "a: &x 1\nb: &x 2"])
def test_what_the_statement_leaves_out_is_said(text):
    with pytest.raises(NotModelledError):
        read(text, "0.20.0")


@pytest.mark.parametrize(
    ("text", "nanoseconds"), [("1ns", 1), ("1.5us", 1500), (".5ms", 500000), ("-1m1s", -61 * 10**9)]
)
def test_a_duration_is_counted_in_nanoseconds(text, nanoseconds):
    assert parse_duration(text) == nanoseconds


def test_the_statement_knows_nothing_of_the_library():
    assert "gpu_constructs" not in Path(upstream_config.__file__).read_text()

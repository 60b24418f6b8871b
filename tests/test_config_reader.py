"""A user's file, read more strictly than the plugin does. Each refusal names its line and the way out."""

import re
import textwrap
from datetime import timedelta

import pytest

from gpu_constructs import GpuConstructsError, Sharing
from gpu_constructs.device_plugin import config_reader
from gpu_constructs.device_plugin.config import Flags, GfdFlags, Imex, PluginConfig, PluginFlags

FLAGS = (
    "migStrategy, failOnInitError, mpsRoot, nvidiaDriverRoot, nvidiaDevRoot, gdrcopyEnabled, gdsEnabled, mofedEnabled, "
    "useNodeFeatureAPI, deviceDiscoveryStrategy, plugin, gfd"
)
SKIPPED = "the plugin would skip it without a word"
MISPLACED = "the plugin would not take it from there"
SPELLING = "the plugin takes other spellings of some keys and skips those of others"
THROWN_AWAY = "the plugin reads it, warns and throws it away"

EVERYTHING = """
version: v1
flags:
  migStrategy: mixed
  failOnInitError: false
  mpsRoot: /run/nvidia/mps
  nvidiaDriverRoot: /usr/local
  nvidiaDevRoot: /
  gdrcopyEnabled: true
  gdsEnabled: false
  mofedEnabled: true
  useNodeFeatureAPI: true
  deviceDiscoveryStrategy: nvml
  plugin:
    passDeviceSpecs: true
    deviceListStrategy: [envvar, cdi-cri]
    deviceIDStrategy: index
    cdiAnnotationPrefix: cdi.k8s.io/
    nvidiaCTKPath: /usr/bin/nvidia-ctk
    containerDriverRoot: /driver-root
    sharedDevicesAllocationPolicy: packed
  gfd:
    oneshot: false
    noTimestamp: true
    sleepInterval: 1h30m
    outputFile: ""
    machineTypeFile: /sys/class/dmi/id/product_name
sharing:
  timeSlicing:
    renameByDefault: true
    failRequestsGreaterThanOne: true
    resources:
      - name: nvidia.com/gpu
        replicas: 4
      - name: mig-1g.5gb
        replicas: 2
imex:
  channelIDs: [0]
  required: true
"""


def read(text):
    return PluginConfig.from_yaml(textwrap.dedent(text))


def refusal(text):
    with pytest.raises(GpuConstructsError) as refused:
        read(text)
    assert type(refused.value) is GpuConstructsError
    return str(refused.value)


def test_every_key_of_the_file_is_read():
    assert read(EVERYTHING) == PluginConfig(
        flags=Flags(
            mig_strategy="mixed",
            fail_on_init_error=False,
            mps_root="/run/nvidia/mps",
            nvidia_driver_root="/usr/local",
            nvidia_dev_root="/",
            gdrcopy_enabled=True,
            gds_enabled=False,
            mofed_enabled=True,
            use_node_feature_api=True,
            device_discovery_strategy="nvml",
            plugin=PluginFlags(
                pass_device_specs=True,
                device_list_strategy=["envvar", "cdi-cri"],
                device_id_strategy="index",
                cdi_annotation_prefix="cdi.k8s.io/",
                nvidia_ctk_path="/usr/bin/nvidia-ctk",
                container_driver_root="/driver-root",
                shared_devices_allocation_policy="packed",
            ),
            gfd=GfdFlags(
                oneshot=False,
                no_timestamp=True,
                sleep_interval=timedelta(hours=1.5),
                output_file="",
                machine_type_file="/sys/class/dmi/id/product_name",
            ),
        ),
        sharing=Sharing.time_slicing(
            resources={"nvidia.com/gpu": 4, "nvidia.com/mig-1g.5gb": 2}, rename_by_default=True
        ),
        imex=Imex(channel_ids=[0], required=True),
    )


def test_a_file_with_an_mps_section_shares_by_mps():
    assert read("sharing: {mps: {resources: [{name: gpu, replicas: 10}]}}") == PluginConfig(
        sharing=Sharing.mps(replicas=10)
    )


@pytest.mark.parametrize(("strategy", "fails"), [("timeSlicing", False), ("mps", True)])
@pytest.mark.parametrize("nothing", ["", "failRequestsGreaterThanOne: null, renameByDefault: ~, "])
def test_what_a_sharing_leaves_open_is_what_the_plugin_defaults_to(strategy, fails, nothing):
    sharing = read(f"sharing: {{{strategy}: {{{nothing}resources: [{{name: gpu, replicas: 4}}]}}}}").sharing
    assert (sharing.fail_requests_greater_than_one, sharing.rename_by_default) == (fails, False)


@pytest.mark.parametrize(
    "text",
    [
        "version: v1",
        "version:",
        "flags:",
        "flags: {}",
        "flags: {plugin: null, gfd: ~}",
        "flags: {migStrategy: null, gfd: {sleepInterval: }, plugin: {deviceListStrategy: null}}",
        "sharing:",
        "sharing: {}",
        "sharing: {mps: null}",
        "imex:",
        "imex: {channelIDs: [], required: false}",
        "imex: {channelIDs: null, required: null}",
        "resources:",
        "resources: {}",
    ],
)
def test_sections_that_say_nothing_say_nothing(text):
    assert read(text) == PluginConfig()


@pytest.mark.parametrize(
    "text",
    [
        "flags: {migStrategy: single}",
        '{"flags": {"migStrategy": "single"}}',
        '{\n\t"flags": {\n\t\t"migStrategy": "single"\n\t}\n}\n',
        "version: v1\r\nflags:\r\n  migStrategy: single\r\n",
        "# first\nflags: # here\n  # and\n  migStrategy: single # there\n",
        "---\nflags: {migStrategy: single}\n...\n",
        "\ufeffflags: {migStrategy: single}",
        "flags: {\"migStrategy\": 'single'}",
        "flags: &anchor\n  migStrategy: single\n",
        "flags:\n  migStrategy: &strategy single\n  deviceDiscoveryStrategy: nvml\n",
    ],
)
def test_one_file_can_be_written_in_many_ways(text):
    assert read(text).mig_strategy == "single"


def test_an_alias_stands_for_what_it_names():
    text = "flags: {nvidiaDriverRoot: &root /usr/local, nvidiaDevRoot: *root}"
    assert read(text).flags == Flags(nvidia_driver_root="/usr/local", nvidia_dev_root="/usr/local")


@pytest.mark.parametrize("word", ["yes", "Yes", "on", "ON", "y", "Y", "true", "TRUE"])
def test_a_boolean_may_be_any_word_that_the_plugin_takes_for_true(word):
    assert read(f"flags: {{gdsEnabled: {word}}}").flags.gds_enabled is True


@pytest.mark.parametrize("word", ["no", "NO", "off", "n", "N", "false", "False"])
def test_a_boolean_may_be_any_word_that_the_plugin_takes_for_false(word):
    assert read(f"flags: {{gdsEnabled: {word}}}").flags.gds_enabled is False


@pytest.mark.parametrize(("written", "replicas"), [("010", 8), ("0o10", 8), ("0x10", 16), ("0b11", 3), ("1_0", 10)])
def test_a_number_is_what_the_plugin_takes_it_for(written, replicas):
    assert read(f"sharing: {{mps: {{resources: [{{name: gpu, replicas: {written}}}]}}}}").sharing.replicas == replicas


# --- keys --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("foo: 1", f"line 1: foo is no key of the file, {SKIPPED}; it has version, flags, sharing, imex, resources"),
        ("flag: {}", f"line 1: flag is no key of the file, {SKIPPED} (did you mean 'flags'?)"),
        (
            "flags:\n  migStategy: none",
            f"line 2: migStategy is no key of flags, {SKIPPED} (did you mean 'migStrategy'?)",
        ),
        ("flags:\n  foo: 1", f"line 2: foo is no key of flags, {SKIPPED}; it has {FLAGS}"),
        (
            "flags:\n  plugin:\n    deviceIdStategy: uuid",
            f"line 3: deviceIdStategy is no key of flags.plugin, {SKIPPED} (did you mean 'deviceIDStrategy'?)",
        ),
        (
            "flags:\n  gfd:\n    foo: uuid",
            f"line 3: foo is no key of flags.gfd, {SKIPPED}; it has oneshot, noTimestamp, sleepInterval, outputFile, "
            "machineTypeFile",
        ),
        (
            "sharing:\n  timeSlice: {}",
            f"line 2: timeSlice is no key of sharing, {SKIPPED} (did you mean 'timeSlicing'?)",
        ),
        (
            "sharing:\n  mps:\n    foo: 1",
            f"line 3: foo is no key of sharing.mps, {SKIPPED}; it has renameByDefault, failRequestsGreaterThanOne, "
            "resources",
        ),
        (
            "sharing:\n  mps:\n    resources:\n      - name: gpu\n        foo: 2",
            f"line 5: foo is no key of sharing.mps.resources[0], {SKIPPED}; it has name, replicas, rename, devices",
        ),
        ("imex:\n  foo: 1", f"line 2: foo is no key of imex, {SKIPPED}; it has channelIDs, required"),
        (
            "foo:\n  bar:\n    baz: 1",
            f"line 1: foo is no key of the file, {SKIPPED}; it has version, flags, sharing, imex, resources",
        ),
        ("1: 2", f"line 1: 1 is no key of the file, {SKIPPED}; it has version, flags, sharing, imex, resources"),
        ("'': 2", f"line 1: '' is no key of the file, {SKIPPED}; it has version, flags, sharing, imex, resources"),
        ('"flags\\n": {}', f"line 1: 'flags\\n' is no key of the file, {SKIPPED} (did you mean 'flags'?)"),
        (
            "flags:\n  'migStrategy ': none",
            f"line 2: 'migStrategy ' is no key of flags, {SKIPPED} (did you mean 'migStrategy'?)",
        ),
    ],
)
def test_an_unknown_key_is_refused_at_its_line(text, problem):
    assert refusal(text) == problem


@pytest.mark.parametrize(
    ("text", "key", "where", "home"),
    [
        ("renameByDefault: true", "renameByDefault", "the file", "sharing.timeSlicing or sharing.mps"),
        ("flags:\n  renameByDefault: true", "renameByDefault", "flags", "sharing.timeSlicing or sharing.mps"),
        ("sharing:\n  renameByDefault: true", "renameByDefault", "sharing", "sharing.timeSlicing or sharing.mps"),
        ("migStrategy: single", "migStrategy", "the file", "flags"),
        ("flags:\n  plugin:\n    migStrategy: single", "migStrategy", "flags.plugin", "flags"),
        ("flags:\n  gfd:\n    failOnInitError: true", "failOnInitError", "flags.gfd", "flags"),
        ("flags:\n  passDeviceSpecs: true", "passDeviceSpecs", "flags", "flags.plugin"),
        ("flags:\n  gfd:\n    deviceListStrategy: envvar", "deviceListStrategy", "flags.gfd", "flags.plugin"),
        ("flags:\n  sleepInterval: 60s", "sleepInterval", "flags", "flags.gfd"),
        ("plugin: {}", "plugin", "the file", "flags"),
        ("gfd: {}", "gfd", "the file", "flags"),
        ("flags:\n  channelIDs: [0]", "channelIDs", "flags", "imex"),
        ("required: true", "required", "the file", "imex"),
        ("timeSlicing: {}", "timeSlicing", "the file", "sharing"),
        ("flags:\n  mps: {}", "mps", "flags", "sharing"),
        ("flags:\n  sharing: {}", "sharing", "flags", "the top of the file"),
        ("imex:\n  flags: {}", "flags", "imex", "the top of the file"),
        ("sharing:\n  imex: {}", "imex", "sharing", "the top of the file"),
        (
            "sharing:\n  timeSlicing:\n    replicas: 4",
            "replicas",
            "sharing.timeSlicing",
            "an entry of sharing.timeSlicing.resources or sharing.mps.resources",
        ),
        ("sharing:\n  resources: []", "resources", "sharing", "sharing.timeSlicing or sharing.mps"),
    ],
)
def test_a_key_in_the_wrong_place_is_told_its_home(text, key, where, home):
    line = text.count("\n") + 1
    assert refusal(text) == f"line {line}: {key} is no key of {where}, {MISPLACED}; it belongs to {home}"


@pytest.mark.parametrize(
    ("text", "key", "where", "right"),
    [
        ("FLAGS: {}", "FLAGS", "the file", "flags"),
        ("flags:\n  migstrategy: none", "migstrategy", "flags", "migStrategy"),
        ("flags:\n  plugin:\n    deviceIdStrategy: uuid", "deviceIdStrategy", "flags.plugin", "deviceIDStrategy"),
        ("flags:\n  GFD: {}", "GFD", "flags", "gfd"),
        ("sharing:\n  timeslicing: {}", "timeslicing", "sharing", "timeSlicing"),
        ("sharing:\n  mps:\n    Resources: []", "Resources", "sharing.mps", "resources"),
        (
            "sharing:\n  mps:\n    resources:\n    - name: gpu\n      Replicas: 2",
            "Replicas",
            "sharing.mps.resources[0]",
            "replicas",
        ),
        ("imex:\n  channelIds: [0]", "channelIds", "imex", "channelIDs"),
    ],
)
def test_a_key_in_another_case_is_told_the_right_one(text, key, where, right):
    line = text.count("\n") + 1
    assert refusal(text) == f"line {line}: {key} of {where} must be written {right}: {SPELLING}"


@pytest.mark.parametrize(
    ("text", "path", "line", "before"),
    [
        ("version: v1\nflags: {}\nversion: v1", "version", 3, 1),
        ("flags:\n  migStrategy: none\n  gdsEnabled: no\n  'migStrategy': single", "flags.migStrategy", 4, 2),
        ("sharing:\n  mps:\n    resources:\n    - name: gpu\n      name: gpu", "sharing.mps.resources[0].name", 5, 4),
        ("imex:\n  required: true\n  required: true", "imex.required", 3, 2),
    ],
)
def test_a_key_given_twice_is_refused_with_both_lines(text, path, line, before):
    assert refusal(text) == (
        f"line {line}: {path} is given twice (before on line {before}): the plugin would take the last one without a "
        "word; keep one"
    )


@pytest.mark.parametrize(
    ("text", "line", "where"),
    [
        ("version: v1\nflags: &x {}\nimex:\n  <<: *x", 4, "imex"),
        ("flags:\n  ? [a]\n  : 1", 2, "flags"),
        ("? {a: b}\n: 1", 1, "the file"),
    ],
)
def test_merged_and_composed_keys_are_refused(text, line, where):
    assert refusal(text) == f"line {line}: {where} must have plain keys, neither merged (<<) nor composed"


@pytest.mark.parametrize(
    "text",
    [
        "apiVersion: v1\nkind: ConfigMap\ndata:\n  config.yaml: |\n    version: v1\n",
        "kind: Secret\nstringData: {}\n",
        '{"kind": "ConfigMap", "data": {}}',
    ],
)
def test_a_whole_kubernetes_object_is_refused(text):
    assert refusal(text) == (
        "text is a whole Kubernetes object, of which the plugin would read nothing; pass the text below a key of its "
        "data"
    )


@pytest.mark.parametrize("text", ["", " \n", "# nothing\n", "---\n", "null", "~\n", "--- # nothing\n"])
def test_an_empty_text_is_refused(text):
    assert refusal(text) == "text is empty: the plugin would run with its defaults; say so with PluginConfig()"


@pytest.mark.parametrize(("text", "got"), [("[a]", "a list"), ("- flags", "a list"), ("v1", "'v1'"), ("5", "5")])
def test_a_text_without_keys_is_refused(text, got):
    assert refusal(text) == f"line 1: the file must hold keys and values; got {got}"


@pytest.mark.parametrize(("text", "kind"), [(b"version: v1", "bytes"), (None, "NoneType"), ({}, "dict")])
def test_what_is_no_text_is_refused(text, kind):
    with pytest.raises(GpuConstructsError) as refused:
        PluginConfig.from_yaml(text)
    assert str(refused.value) == f"text must be str; got {kind}: {text!r}"


# --- values ------------------------------------------------------------------


@pytest.mark.parametrize(("version", "got"), [("v2", "'v2'"), ("V1", "'V1'"), ("1", "1"), ("''", "''"), ("yes", "yes")])
def test_only_version_v1_is_known(version, got):
    assert refusal(f"flags: {{}}\nversion: {version}") == f"line 2: version must be 'v1'; got {got}"


@pytest.mark.parametrize("section", ["flags", "flags.plugin", "flags.gfd", "sharing", "sharing.mps", "imex"])
@pytest.mark.parametrize(("value", "got"), [("[]", "a list"), ("none", "'none'"), ("5", "5"), ("yes", "yes")])
def test_a_section_must_hold_keys_and_values(section, value, got):
    *above, last = section.split(".")
    text = "".join(f"{'  ' * depth}{key}:\n" for depth, key in enumerate(above)) + f"{'  ' * len(above)}{last}: {value}"
    assert refusal(text) == f"line {len(above) + 1}: {section} must hold keys and values; got {got}"


SWITCHES = [
    *(
        f"flags.{key}"
        for key in ("failOnInitError", "gdrcopyEnabled", "gdsEnabled", "mofedEnabled", "useNodeFeatureAPI")
    ),
    "flags.plugin.passDeviceSpecs",
    "flags.gfd.oneshot",
    "flags.gfd.noTimestamp",
    "imex.required",
    "sharing.timeSlicing.renameByDefault",
    "sharing.mps.failRequestsGreaterThanOne",
]
PATHS = [
    *(f"flags.{key}" for key in ("mpsRoot", "nvidiaDriverRoot", "nvidiaDevRoot")),
    "flags.plugin.nvidiaCTKPath",
    "flags.plugin.containerDriverRoot",
    "flags.gfd.outputFile",
    "flags.gfd.machineTypeFile",
]
WORDS = {
    "flags.migStrategy": ("flags.mig_strategy", "'none', 'single', 'mixed'"),
    "flags.deviceDiscoveryStrategy": ("flags.device_discovery_strategy", "'auto', 'nvml', 'tegra', 'vfio'"),
    "flags.plugin.deviceIDStrategy": ("flags.plugin.device_id_strategy", "'uuid', 'index'"),
    "flags.plugin.sharedDevicesAllocationPolicy": (
        "flags.plugin.shared_devices_allocation_policy",
        "'distributed', 'packed'",
    ),
    "flags.plugin.deviceListStrategy": (
        "flags.plugin.device_list_strategy",
        "'envvar', 'volume-mounts', 'cdi-annotations', 'cdi-cri'",
    ),
}


def nested(path, value):
    *sections, key = path.split(".")
    shared = ", resources: [{name: gpu, replicas: 2}]" if sections[0] == "sharing" else ""
    return "".join(f"{{{section}: " for section in sections)[1:] + f"{{{key}: {value}{shared}" + "}" * len(sections)


@pytest.mark.parametrize("path", SWITCHES)
@pytest.mark.parametrize(("value", "got"), [("'yes'", "'yes'"), ("1", "1"), ("nO", "'nO'"), ("maybe", "'maybe'")])
def test_a_switch_must_be_true_or_false(path, value, got):
    assert refusal(nested(path, value)) == f"line 1: {path} must be true or false; got {got}"


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("value", ["1", "1e3", "0x10", ".5", "yes", ".inf", "123456789012"])
def test_a_path_must_be_text(path, value):
    assert refusal(nested(path, value)) == f"line 1: {path} must be text; got {value}; quote it"


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("value", ["relative", "/usr/../lib", "2020-01-01", "12:30:45", "'~/x'"])
def test_a_path_must_be_absolute(path, value):
    member = "".join(f"_{c.lower()}" if c.isupper() else c for c in path).replace("_c_t_k_", "_ctk_")
    assert refusal(nested(path, value)) == (
        f"line 1: {member} must be an absolute path without '..'; got {value.strip(chr(39))!r}"
    )


@pytest.mark.parametrize("path", [*SWITCHES, *PATHS, *WORDS])
def test_a_plain_value_holds_no_keys(path):
    assert refusal(nested(path, "{a: b}")) == f"line 1: {path} must be a plain value; got keys and values"


@pytest.mark.parametrize("path", [*SWITCHES, *PATHS, *(path for path in WORDS if not path.endswith("ListStrategy"))])
def test_a_plain_value_is_no_list(path):
    assert refusal(nested(path, "[a]")) == f"line 1: {path} must be a plain value; got a list"


@pytest.mark.parametrize("path", WORDS)
@pytest.mark.parametrize(
    ("value", "got"), [("x", "'x'"), ("''", "''"), ("1", "1"), ("no", "False"), ("'a\n b'", "'a b'")]
)
def test_a_word_must_be_one_of_those_that_the_programs_know(path, value, got):
    member, words = WORDS[path]
    assert refusal(nested(path, value)) == f"line 1: {member} must be one of {words}; got {got}"


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (
            "envvars",
            "line 1: flags.plugin.device_list_strategy must be one of 'envvar', 'volume-mounts', 'cdi-annotations', "
            "'cdi-cri'; got 'envvars' (did you mean 'envvar'?)",
        ),
        (
            "[envvar, cdi]",
            "line 1: flags.plugin.device_list_strategy[1] must be one of 'envvar', 'volume-mounts', "
            "'cdi-annotations', 'cdi-cri'; got 'cdi' (did you mean 'cdi-cri'?)",
        ),
        (
            "[]",
            "line 1: flags.plugin.device_list_strategy must name at least one strategy, got an empty list: pods would "
            "get no GPU; leave it out for the platform's default",
        ),
        (
            "[envvar, envvar]",
            "line 1: flags.plugin.device_list_strategy must not repeat a strategy; got ['envvar', 'envvar']",
        ),
        (
            "'envvar,cdi-cri'",
            "line 1: flags.plugin.deviceListStrategy must be a list in the file, not text with commas; got "
            "'envvar,cdi-cri'",
        ),
        ("[[envvar]]", "line 1: flags.plugin.deviceListStrategy[0] must be a plain value; got a list"),
    ],
)
def test_device_list_strategies_are_refused_where_the_plugin_would_fail_or_hand_out_nothing(value, problem):
    assert refusal(nested("flags.plugin.deviceListStrategy", value)) == problem


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (
            "60",
            "flags.gfd.sleepInterval must have a unit: the plugin takes 60 for nanoseconds; write '60s' for seconds",
        ),
        (
            "1.5",
            "flags.gfd.sleepInterval must have a unit: the plugin takes 1.5 for nanoseconds; write '1.5s' for seconds",
        ),
        ("'60'", "flags.gfd.sleepInterval must be a duration with a unit, like '60s' or '1h30m'; got '60'"),
        ("Infinite", "flags.gfd.sleepInterval must be a duration with a unit, like '60s' or '1h30m'; got 'Infinite'"),
        ("1d", "flags.gfd.sleepInterval must be a duration with a unit, like '60s' or '1h30m'; got '1d'"),
        ("1:30", "flags.gfd.sleepInterval must be a duration with a unit, like '60s' or '1h30m'; got '1:30'"),
        ("''", "flags.gfd.sleepInterval must be a duration with a unit, like '60s' or '1h30m'; got ''"),
        ("yes", "flags.gfd.sleepInterval must be a duration like '60s'; got yes"),
        ("[60s]", "flags.gfd.sleepInterval must be a plain value; got a list"),
        ("99999999h", "flags.gfd.sleepInterval must be a duration of at most 292 years; got '99999999h'"),
        (
            "500ms",
            "flags.gfd.sleep_interval must be at least one second; got '500000us'; a shorter one keeps a core busy "
            "reading labels that change once a day",
        ),
        (
            "-60s",
            "flags.gfd.sleep_interval must be at least one second; got '-60s'; a shorter one keeps a core busy "
            "reading labels that change once a day",
        ),
    ],
)
def test_sleep_intervals_that_would_busy_a_core_or_fail_are_refused(value, problem):
    assert refusal(f"flags:\n  gfd:\n    sleepInterval: {value}") == f"line 3: {problem}"


def test_the_longest_sleep_is_a_word():
    assert read("flags: {gfd: {sleepInterval: infinite}}").flags.gfd.sleep_interval == "infinite"


@pytest.mark.parametrize(("value", "got"), [("cdi.k8s.io", "'cdi.k8s.io'"), ("a/b", "'a/b'"), ("/", "'/'")])
def test_the_annotation_prefix_must_be_a_domain_and_a_slash(value, got):
    assert refusal(nested("flags.plugin.cdiAnnotationPrefix", value)) == (
        f"line 1: flags.plugin.cdi_annotation_prefix must be a domain and a slash, like 'cdi.k8s.io/'; got {got}"
    )


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("0", "imex.channelIDs must be a list; got 0"),
        ("{a: b}", "imex.channelIDs must be a list; got keys and values"),
        ("[1]", "imex.channel_ids must be [] or [0], the one channel there is; got [1]"),
        ("[0, 0]", "imex.channel_ids must be [] or [0], the one channel there is; got [0, 0]"),
        ("['0']", "imex.channelIDs[0] must be a whole number; got '0'"),
        ("[0.0]", "imex.channelIDs[0] must be a whole number; got 0.0"),
        ("[false]", "imex.channelIDs[0] must be a whole number; got false"),
        ("[null]", "imex.channelIDs[0] must be a whole number; got null"),
        ("[[0]]", "imex.channelIDs[0] must be a plain value; got a list"),
        (f"[{2**64}]", f"imex.channelIDs[0] must be a number of at most 64 bits; got {2**64}"),
    ],
)
def test_imex_knows_channel_zero_and_no_other(value, problem):
    assert refusal(f"imex:\n  channelIDs: {value}") == f"line 2: {problem}"


def test_an_imex_channel_that_is_required_must_be_named():
    assert refusal("flags: {}\nimex:\n  required: true") == (
        "line 2: imex.required needs channel_ids=[0]; got required=True without a channel"
    )


# --- sharing -----------------------------------------------------------------


def entry(*lines, strategy="timeSlicing"):
    head = ["sharing:", f"  {strategy}:", "    resources:"]
    return "\n".join([*head, *(f"{'      ' if n else '    - '}{line}" for n, line in enumerate(lines))])


@pytest.mark.parametrize("strategy", ["timeSlicing", "mps"])
@pytest.mark.parametrize(
    ("below", "line"),
    [("{}", 2), ("\n    resources:", 3), ("\n    resources: []", 3), ("\n    renameByDefault: true", 2)],
)
def test_a_sharing_must_name_what_is_shared(strategy, below, line):
    assert refusal(f"sharing:\n  {strategy}: {below}") == (
        f"line {line}: sharing.{strategy}.resources must name what is shared; the plugin refuses to start"
    )


def test_an_empty_time_slicing_fails_the_plugin_where_an_empty_mps_does_not():
    assert refusal("sharing:\n  timeSlicing:\n") == (
        "line 2: sharing.timeSlicing.resources must name what is shared; the plugin refuses to start"
    )
    assert read("sharing:\n  mps:\n").sharing == Sharing.none()


def test_the_resources_are_a_list_of_keys_and_values():
    assert refusal("sharing: {mps: {resources: {name: gpu}}}") == (
        "line 1: sharing.mps.resources must be a list; got keys and values"
    )
    assert refusal("sharing: {mps: {resources: [gpu]}}") == (
        "line 1: sharing.mps.resources[0] must hold keys and values; got 'gpu'"
    )
    assert refusal("sharing:\n  mps:\n    resources:\n    -") == (
        "line 4: sharing.mps.resources[0] must hold keys and values; got nothing"
    )
    assert refusal("sharing: {mps: {resources: [null]}}") == (
        "line 1: sharing.mps.resources[0] must hold keys and values; got null"
    )


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (["replicas: 2"], "line 4: sharing.timeSlicing.resources[0].name is required"),
        (["name:", "replicas: 2"], "line 4: sharing.timeSlicing.resources[0].name is required"),
        (["name: gpu"], "line 4: sharing.timeSlicing.resources[0].replicas is required"),
        (["name: gpu", "replicas: null"], "line 4: sharing.timeSlicing.resources[0].replicas is required"),
        (
            ["name: 5", "replicas: 2"],
            "line 4: sharing.timeSlicing.resources[0].name must be text like 'nvidia.com/gpu'; got 5",
        ),
        (
            ["name: gpu", "replicas: '4'"],
            "line 5: sharing.timeSlicing.resources[0].replicas must be a whole number; got '4'",
        ),
        (
            ["name: gpu", "replicas: 2.5"],
            "line 5: sharing.timeSlicing.resources[0].replicas must be a whole number; got 2.5",
        ),
        (
            ["name: gpu", "replicas: 1:30"],
            "line 5: sharing.timeSlicing.resources[0].replicas must be a whole number; got '1:30'",
        ),
        (
            ["name: gpu", "replicas: true"],
            "line 5: sharing.timeSlicing.resources[0].replicas must be a whole number; got true",
        ),
        (
            ["name: gpu", "replicas: 0b_"],
            "line 5: sharing.timeSlicing.resources[0].replicas must be a number that can be read; got 0b_",
        ),
        (
            ["name: gpu", f"replicas: 0x{'f' * 5000}"],
            f"line 5: sharing.timeSlicing.resources[0].replicas must be a number of at most 64 bits; got 0x{'f' * 78}…",
        ),
        (
            ["name: gpu", f"replicas: {'9' * 80}"],
            f"line 5: sharing.timeSlicing.resources[0].replicas must be a number of at most 64 bits; got {'9' * 80}",
        ),
        (
            ["name: gpu", f"replicas: {'9' * 5000}"],
            f"line 5: sharing.timeSlicing.resources[0].replicas must be a number that can be read; got {'9' * 80}…",
        ),
        (
            ["name: gpu", "replicas: 1"],
            "line 4: sharing.time_slicing.replicas must be at least 2, got 1; use Sharing.none() for exclusive GPUs",
        ),
        (
            ["name: gpu", "replicas: -1"],
            "line 4: sharing.time_slicing.replicas must be at least 2, got -1; use Sharing.none() for exclusive GPUs",
        ),
        (
            ["name: amd.com/gpu", "replicas: 2"],
            "line 4: sharing.time_slicing.resources must hold 'nvidia.com/gpu' or MIG devices like "
            "'nvidia.com/mig-1g.5gb', which are all the plugin advertises; got 'nvidia.com/amd.com/gpu' (did you mean "
            "'nvidia.com/gpu'?)",
        ),
        (
            ["name: gpu", "replicas: 2", "rename: fraction"],
            f"line 6: sharing.timeSlicing.resources[0].rename must be left out: {THROWN_AWAY}; delete it, or use "
            "renameByDefault",
        ),
        (
            ["name: gpu", "replicas: 2", "rename: all"],
            f"line 6: sharing.timeSlicing.resources[0].rename must be left out: {THROWN_AWAY}; delete it, or use "
            "renameByDefault",
        ),
        (
            ["name: gpu", "replicas: 2", "devices: [0]"],
            "line 6: sharing.timeSlicing.resources[0].devices must be left out: the plugin reads it, warns and shares "
            "every device alike; delete it",
        ),
        (
            ["name: gpu", "replicas: 2", "devices: ''"],
            "line 6: sharing.timeSlicing.resources[0].devices must be left out: the plugin reads it, warns and shares "
            "every device alike; delete it",
        ),
    ],
)
def test_an_entry_that_the_plugin_would_refuse_or_ignore_is_refused(lines, problem):
    assert refusal(entry(*lines)) == problem


def test_all_devices_is_what_the_plugin_shares_anyway():
    assert read(entry("name: gpu", "replicas: 2", "devices: all")).sharing.replicas == 2


def test_a_name_without_a_domain_is_nvidias():
    assert read(entry("name: gpu", "replicas: 2")) == read(entry("name: nvidia.com/gpu", "replicas: 2"))


def test_a_resource_listed_twice_is_refused_under_either_name():
    text = entry("name: gpu", "replicas: 2") + "\n    - name: nvidia.com/gpu\n      replicas: 4"
    assert refusal(text) == (
        "line 6: sharing.timeSlicing.resources[1].name 'nvidia.com/gpu' is listed twice; the plugin would take the "
        "larger number"
    )


def test_mps_takes_48_replicas_at_most():
    assert refusal(entry("name: gpu", "replicas: 49", strategy="mps")) == (
        "line 4: sharing.mps.replicas must be at most 48, got 49; MPS serves 48 clients of a GPU (16 below "
        "compute capability 7.5); use Sharing.time_slicing for more"
    )


def test_mps_beside_time_slicing_is_refused():
    resources = "{resources: [{name: gpu, replicas: 2}]}"
    text = f"sharing:\n  timeSlicing: {resources}\n  mps: {resources}"
    assert refusal(text) == (
        "line 2: sharing must hold timeSlicing or mps: with both the plugin takes mps without a word; delete one"
    )


@pytest.mark.parametrize("mig", ["single", "mixed"])
def test_mps_beside_mig_is_refused_at_the_sharing(mig):
    assert refusal(f"flags: {{migStrategy: {mig}}}\n" + entry("name: gpu", "replicas: 2", strategy="mps")) == (
        "line 2: flags.mig_strategy must be 'none' with Sharing.mps: MPS does not share MIG devices; got "
        f"{mig!r}; use Sharing.time_slicing"
    )


@pytest.mark.parametrize("mig", ["none", "single"])
def test_mig_devices_are_shared_under_the_mixed_strategy_alone(mig):
    assert refusal(f"flags: {{migStrategy: {mig}}}\n" + entry("name: mig-1g.5gb", "replicas: 2")) == (
        "line 2: sharing.resources names 'nvidia.com/mig-1g.5gb', which exists with flags.mig_strategy 'mixed' only; "
        f"got {mig!r}"
    )


@pytest.mark.parametrize("value", ["{gpus: [{pattern: '*', name: gpu}]}", "{gpus: []}", "[]", "''", "0"])
def test_naming_resources_is_refused_because_the_plugin_throws_the_names_away(value):
    assert refusal(f"version: v1\nresources: {value}") == (
        f"line 2: resources must be left out: {THROWN_AWAY}, so resources keep their names; delete it"
    )


# --- reading what can be read ------------------------------------------------


def read_without(text):
    dropped = []
    return config_reader.read_without(textwrap.dedent(text), dropped.append), dropped


def test_without_what_is_refused_the_rest_is_read():
    config, dropped = read_without(
        """\
        version: v2
        flags:
          migStrategy: mixed
          plugin:
            migStrategy: single
            deviceIDStrategy: name
            passDeviceSpecs: true
          gfd: {sleepInterval: 60}
        resources: {gpus: [{pattern: "*", name: gpu}]}
        sharing:
          timeSlicing:
            resources:
              - {name: gpu, replicas: 4, rename: x}
              - {name: mig-1g.5gb, replicas: 2}
              - {name: mig-2g.10gb, replicas: 1}
        """
    )
    assert config == PluginConfig(
        flags=Flags(mig_strategy="mixed", plugin=PluginFlags(pass_device_specs=True)),
        sharing=Sharing.time_slicing(
            resources={"nvidia.com/gpu": 4, "nvidia.com/mig-1g.5gb": 2}, fail_requests_greater_than_one=False
        ),
    )
    assert sorted(int(re.findall(r"line ([0-9]+): ", problem)[0]) for problem in dropped) == [
        1,
        5,
        6,
        8,
        9,
        13,
        15,
    ]


def test_what_is_dropped_is_told_in_the_words_of_the_refusal():
    text = "flags: {foo: 1}"
    assert read_without(text) == (PluginConfig(), [f"flags.foo: {refusal(text)}"])


@pytest.mark.parametrize("text", ["a: b: c", "[a]", "kind: ConfigMap\ndata: {}"])
def test_a_text_that_cannot_be_read_at_all_is_dropped_whole(text):
    assert read_without(text) == (PluginConfig(), [refusal(text)])


def test_nothing_is_dropped_from_a_good_file_or_an_empty_one():
    assert read_without(EVERYTHING) == (read(EVERYTHING), [])
    assert read_without("") == (PluginConfig(), [])


def test_of_two_sharings_the_one_that_the_plugin_takes_is_kept():
    both = (
        "sharing: {timeSlicing: {resources: [{name: gpu, replicas: 3}]}, mps: {resources: [{name: gpu, replicas: 2}]}}"
    )
    config, dropped = read_without(both)
    assert (config.sharing, len(dropped)) == (Sharing.mps(replicas=2), 1)


def test_of_a_key_given_twice_the_last_is_kept_as_the_plugin_does():
    config, dropped = read_without("flags: {migStrategy: single, migStrategy: mixed}")
    assert (config.mig_strategy, len(dropped)) == ("mixed", 1)


def test_a_sharing_left_without_resources_is_dropped_too():
    config, dropped = read_without("sharing: {timeSlicing: {resources: [{name: gpu, replicas: 1}]}}")
    assert (config, len(dropped)) == (PluginConfig(), 2)


def test_what_is_left_out_is_told_with_the_keys_that_lead_to_it():
    text = """
flags:
  renameByDefault: true
  gfd: {sleepInterval: 60}
sharing:
  timeSlicing:
    resources:
      - {name: nvidia.com/gpu, replicas: 1}
"""
    config, told = read_without(text)
    assert config == PluginConfig()
    assert [problem.partition(": ")[0] for problem in told] == [
        "flags.renameByDefault",
        "flags.gfd.sleepInterval",
        "sharing.timeSlicing.resources[0]",
        "sharing.timeSlicing",
    ]

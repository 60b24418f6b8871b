"""The typed configuration: what each member writes, what is refused, what comes back from the text."""

import dataclasses
import re
from datetime import timedelta

import pytest
import yaml

from gpu_constructs import GpuConstructsError, Sharing
from gpu_constructs.device_plugin.config import (
    CONFIG_FILE,
    Flags,
    GfdFlags,
    Imex,
    PluginConfig,
    PluginFlags,
    environment_variables,
)
from gpu_constructs.versions import DEVICE_PLUGIN

OLD, NEW = DEVICE_PLUGIN["0.18.2"], DEVICE_PLUGIN["0.20.0"]
GPU, MIG = "nvidia.com/gpu", "nvidia.com/mig-1g.5gb"


class Yaml12(yaml.SafeLoader):
    """Takes plain scalars for what YAML 1.2 takes them for."""


Yaml12.yaml_implicit_resolvers = {}
for tag, pattern in {
    "null": r"~|null|Null|NULL|",
    "bool": r"true|True|TRUE|false|False|FALSE",
    "int": r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+",
    "float": r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
}.items():
    Yaml12.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"(?:{pattern})\\Z"), None)


def refusal(make, *given, **options):
    with pytest.raises(GpuConstructsError) as refused:
        make(*given, **options)
    return str(refused.value)


# --- what is written ---------------------------------------------------------

WRITTEN = [
    (Flags, "mig_strategy", "single", ("flags", "migStrategy"), "single"),
    (Flags, "fail_on_init_error", False, ("flags", "failOnInitError"), False),
    (Flags, "mps_root", "/mps", ("flags", "mpsRoot"), "/mps"),
    (Flags, "nvidia_driver_root", "/usr/local", ("flags", "nvidiaDriverRoot"), "/usr/local"),
    (Flags, "nvidia_dev_root", "/", ("flags", "nvidiaDevRoot"), "/"),
    (Flags, "gdrcopy_enabled", True, ("flags", "gdrcopyEnabled"), True),
    (Flags, "gds_enabled", False, ("flags", "gdsEnabled"), False),
    (Flags, "mofed_enabled", True, ("flags", "mofedEnabled"), True),
    (Flags, "use_node_feature_api", False, ("flags", "useNodeFeatureAPI"), False),
    (Flags, "device_discovery_strategy", "nvml", ("flags", "deviceDiscoveryStrategy"), "nvml"),
    (PluginFlags, "pass_device_specs", False, ("flags", "plugin", "passDeviceSpecs"), False),
    (PluginFlags, "device_list_strategy", "envvar", ("flags", "plugin", "deviceListStrategy"), "envvar"),
    (
        PluginFlags,
        "device_list_strategy",
        ["envvar", "cdi-cri"],
        ("flags", "plugin", "deviceListStrategy"),
        ["envvar", "cdi-cri"],
    ),
    (PluginFlags, "device_list_strategy", ("cdi-cri",), ("flags", "plugin", "deviceListStrategy"), ["cdi-cri"]),
    (PluginFlags, "device_id_strategy", "index", ("flags", "plugin", "deviceIDStrategy"), "index"),
    (PluginFlags, "cdi_annotation_prefix", "cdi.k8s.io/", ("flags", "plugin", "cdiAnnotationPrefix"), "cdi.k8s.io/"),
    (PluginFlags, "nvidia_ctk_path", "/bin/x", ("flags", "plugin", "nvidiaCTKPath"), "/bin/x"),
    (PluginFlags, "container_driver_root", "/driver", ("flags", "plugin", "containerDriverRoot"), "/driver"),
    (
        PluginFlags,
        "shared_devices_allocation_policy",
        "packed",
        ("flags", "plugin", "sharedDevicesAllocationPolicy"),
        "packed",
    ),
    (GfdFlags, "oneshot", True, ("flags", "gfd", "oneshot"), True),
    (GfdFlags, "no_timestamp", False, ("flags", "gfd", "noTimestamp"), False),
    (GfdFlags, "sleep_interval", timedelta(minutes=1), ("flags", "gfd", "sleepInterval"), "60s"),
    (GfdFlags, "sleep_interval", timedelta(seconds=1.5), ("flags", "gfd", "sleepInterval"), "1500000us"),
    (GfdFlags, "sleep_interval", "infinite", ("flags", "gfd", "sleepInterval"), "infinite"),
    (GfdFlags, "output_file", "", ("flags", "gfd", "outputFile"), ""),
    (GfdFlags, "output_file", "/out", ("flags", "gfd", "outputFile"), "/out"),
    (GfdFlags, "machine_type_file", "/machine", ("flags", "gfd", "machineTypeFile"), "/machine"),
]
every_member = pytest.mark.parametrize(
    ("struct", "member", "value", "keys", "written"), WRITTEN, ids=[f"{row[1]}={row[2]}" for row in WRITTEN]
)


def config_of(struct, options):
    made = struct(**options)
    if struct is Flags:
        return PluginConfig(flags=made)
    return PluginConfig(flags=Flags(**{"plugin" if struct is PluginFlags else "gfd": made}))


def test_every_member_of_every_section_of_flags_is_in_the_table():
    for struct in (Flags, PluginFlags, GfdFlags):
        named = {field.name for field in dataclasses.fields(struct)} - {"plugin", "gfd"}
        assert named == {member for owner, member, *_ in WRITTEN if owner is struct}


@every_member
def test_a_member_writes_its_key_and_no_other(struct, member, value, keys, written):
    expected = written
    for key in reversed(keys):
        expected = {key: expected}
    assert config_of(struct, {member: value}).document() == {"version": "v1", **expected}


@every_member
@pytest.mark.parametrize("reader", [yaml.SafeLoader, Yaml12], ids=["yaml-1.1", "yaml-1.2"])
def test_a_member_reads_the_same_in_every_yaml(reader, struct, member, value, keys, written):
    found = yaml.load(config_of(struct, {member: value}).to_yaml(), reader)
    for key in keys:
        found = found[key]
    assert (type(found), found) == (type(written), written)


@every_member
def test_a_member_comes_back_from_its_text(struct, member, value, keys, written):
    config = config_of(struct, {member: value})
    assert PluginConfig.from_yaml(config.to_yaml()) == config


@every_member
def test_a_member_left_to_the_programs_is_not_written(struct, member, value, keys, written):
    assert config_of(struct, {member: None}).document() == {"version": "v1"}


def test_a_configuration_that_says_nothing_writes_its_version():
    assert PluginConfig().to_yaml() == "version: v1\n"


SHARED = [
    (
        Sharing.time_slicing(replicas=5),
        {
            "timeSlicing": {
                "renameByDefault": False,
                "failRequestsGreaterThanOne": True,
                "resources": [{"name": GPU, "replicas": 5}],
            }
        },
    ),
    (
        Sharing.time_slicing(resources={MIG: 2, GPU: 3}, rename_by_default=True, fail_requests_greater_than_one=False),
        {
            "timeSlicing": {
                "renameByDefault": True,
                "failRequestsGreaterThanOne": False,
                "resources": [{"name": MIG, "replicas": 2}, {"name": GPU, "replicas": 3}],
            }
        },
    ),
    (
        Sharing.mps(replicas=10, rename_by_default=True, fail_requests_greater_than_one=False),
        {
            "mps": {
                "renameByDefault": True,
                "failRequestsGreaterThanOne": False,
                "resources": [{"name": GPU, "replicas": 10}],
            }
        },
    ),
]


@pytest.mark.parametrize(("sharing", "written"), SHARED, ids=["time-slicing", "mig", "mps"])
def test_a_sharing_writes_both_switches_and_the_plain_names(sharing, written):
    flags = Flags(mig_strategy="mixed") if MIG in sharing.resources else Flags()
    config = PluginConfig(flags=flags, sharing=sharing)
    assert config.document()["sharing"] == written
    assert PluginConfig.from_yaml(config.to_yaml()) == config


def test_without_sharing_there_is_no_section():
    assert "sharing" not in PluginConfig(sharing=Sharing.none()).document()


@pytest.mark.parametrize("required", [True, False])
@pytest.mark.parametrize("channels", [[0], (0,)])
def test_a_channel_is_written_with_whether_it_is_required(channels, required):
    config = PluginConfig(imex=Imex(channel_ids=channels, required=required))
    assert config.document()["imex"] == {"channelIDs": [0], "required": required}
    assert PluginConfig.from_yaml(config.to_yaml()) == config


@pytest.mark.parametrize("channels", [[], ()])
def test_without_a_channel_there_is_no_section(channels):
    config = PluginConfig(imex=Imex(channel_ids=channels))
    assert config.document() == {"version": "v1"}
    assert config == PluginConfig()


def test_the_whole_file_is_plain_to_read():
    config = PluginConfig(
        flags=Flags(
            mig_strategy="none",
            plugin=PluginFlags(device_list_strategy=["envvar"]),
            gfd=GfdFlags(sleep_interval=timedelta(seconds=90)),
        ),
        sharing=Sharing.time_slicing(replicas=4),
        imex=Imex(channel_ids=[0]),
    )
    assert config.to_yaml() == (
        "version: v1\n"
        "flags:\n"
        "  migStrategy: none\n"
        "  plugin:\n"
        "    deviceListStrategy:\n"
        "      - envvar\n"
        "  gfd:\n"
        '    sleepInterval: "90s"\n'
        "sharing:\n"
        "  timeSlicing:\n"
        "    renameByDefault: false\n"
        "    failRequestsGreaterThanOne: true\n"
        "    resources:\n"
        "      - name: nvidia.com/gpu\n"
        "        replicas: 4\n"
        "imex:\n"
        "  channelIDs:\n"
        "    - 0\n"
        "  required: false\n"
    )


@pytest.mark.parametrize("span", [timedelta(seconds=1), timedelta(days=3), timedelta(seconds=1, microseconds=1)])
def test_a_span_is_never_a_bare_number_which_would_be_nanoseconds(span):
    text = config_of(GfdFlags, {"sleep_interval": span}).to_yaml()
    assert re.search(r'sleepInterval: "[0-9]+u?s"\n', text)


def test_the_file_lies_where_the_config_map_is_mounted():
    assert CONFIG_FILE == "/config/config.yaml"


@pytest.mark.parametrize(
    ("struct", "options"), [(PluginFlags, {"device_list_strategy": ["envvar"]}), (Imex, {"channel_ids": [0]})]
)
def test_a_list_changed_afterwards_does_not_change_the_options(struct, options):
    (given,) = options.values()
    made = struct(**options)
    given.append("envvar")
    assert made == struct(**{name: value[:1] for name, value in options.items()})


@pytest.mark.parametrize("struct", [PluginConfig, Flags, PluginFlags, GfdFlags, Imex])
def test_options_are_given_by_name_and_do_not_change(struct):
    made = struct()
    (first, *_) = dataclasses.fields(struct)
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(made, first.name, None)
    with pytest.raises(GpuConstructsError) as refused:
        struct(None)
    assert str(refused.value).startswith(
        f"{struct.__name__} takes everything by keyword; got None without one; it has "
    )


# --- what is asked of it -----------------------------------------------------


def test_the_mig_strategy_includes_the_programs_default():
    assert PluginConfig().mig_strategy == "none"
    assert PluginConfig(flags=Flags(mig_strategy="mixed")).mig_strategy == "mixed"


@pytest.mark.parametrize(
    ("given", "strategies"),
    [(None, ()), ("cdi-cri", ("cdi-cri",)), (["envvar"], ("envvar",)), (("envvar", "cdi-cri"), ("envvar", "cdi-cri"))],
)
def test_the_device_list_strategies_are_a_tuple_however_they_were_given(given, strategies):
    config = PluginConfig(flags=Flags(plugin=PluginFlags(device_list_strategy=given)))
    assert config.device_list_strategy == strategies


def test_every_variable_that_overrides_the_file_is_known_with_what_it_overrides():
    assert environment_variables() == {
        "MIG_STRATEGY": "flags.mig_strategy",
        "GFD_MIG_STRATEGY": "flags.mig_strategy",
        "FAIL_ON_INIT_ERROR": "flags.fail_on_init_error",
        "GFD_FAIL_ON_INIT_ERROR": "flags.fail_on_init_error",
        "MPS_ROOT": "flags.mps_root",
        "NVIDIA_DRIVER_ROOT": "flags.nvidia_driver_root",
        "NVIDIA_DEV_ROOT": "flags.nvidia_dev_root",
        "GDRCOPY_ENABLED": "flags.gdrcopy_enabled",
        "GDS_ENABLED": "flags.gds_enabled",
        "MOFED_ENABLED": "flags.mofed_enabled",
        "GFD_USE_NODE_FEATURE_API": "flags.use_node_feature_api",
        "USE_NODE_FEATURE_API": "flags.use_node_feature_api",
        "DEVICE_DISCOVERY_STRATEGY": "flags.device_discovery_strategy",
        "PASS_DEVICE_SPECS": "flags.plugin.pass_device_specs",
        "DEVICE_LIST_STRATEGY": "flags.plugin.device_list_strategy",
        "DEVICE_ID_STRATEGY": "flags.plugin.device_id_strategy",
        "CDI_ANNOTATION_PREFIX": "flags.plugin.cdi_annotation_prefix",
        "NVIDIA_CDI_HOOK_PATH": "flags.plugin.nvidia_ctk_path",
        "NVIDIA_CTK_PATH": "flags.plugin.nvidia_ctk_path",
        "DRIVER_ROOT_CTR_PATH": "flags.plugin.container_driver_root",
        "CONTAINER_DRIVER_ROOT": "flags.plugin.container_driver_root",
        "SHARED_DEVICES_ALLOCATION_POLICY": "flags.plugin.shared_devices_allocation_policy",
        "GFD_ONESHOT": "flags.gfd.oneshot",
        "GFD_NO_TIMESTAMP": "flags.gfd.no_timestamp",
        "GFD_SLEEP_INTERVAL": "flags.gfd.sleep_interval",
        "GFD_OUTPUT_FILE": "flags.gfd.output_file",
        "GFD_MACHINE_TYPE_FILE": "flags.gfd.machine_type_file",
        "IMEX_CHANNEL_IDS": "imex.channel_ids",
        "IMEX_REQUIRED": "imex.required",
    }


# --- what is refused ---------------------------------------------------------

SECTIONS = {Flags: "flags", PluginFlags: "flags.plugin", GfdFlags: "flags.gfd"}
SWITCHES = [(owner, member) for owner, member, value, *_ in WRITTEN if isinstance(value, bool)]
PATHS = [(owner, member) for owner, member, value, *_ in WRITTEN if str(value).startswith("/")]
WORDS = {
    (Flags, "mig_strategy"): "'none', 'single', 'mixed'",
    (Flags, "device_discovery_strategy"): "'auto', 'nvml', 'tegra', 'vfio'",
    (PluginFlags, "device_id_strategy"): "'uuid', 'index'",
    (PluginFlags, "shared_devices_allocation_policy"): "'distributed', 'packed'",
    (PluginFlags, "device_list_strategy"): "'envvar', 'volume-mounts', 'cdi-annotations', 'cdi-cri'",
}


@pytest.mark.parametrize(("struct", "member"), SWITCHES)
@pytest.mark.parametrize("given", ["yes", "true", 1, 0.0, [True]])
def test_a_switch_must_be_a_bool(struct, member, given):
    assert refusal(struct, **{member: given}) == (
        f"{SECTIONS[struct]}.{member} must be one of (bool, None); got {type(given).__name__}: {given!r}"
    )


@pytest.mark.parametrize(("struct", "member"), PATHS)
@pytest.mark.parametrize("given", [5, b"/", ["/"], True])
def test_a_path_must_be_text(struct, member, given):
    assert refusal(struct, **{member: given}) == (
        f"{SECTIONS[struct]}.{member} must be one of (str, None); got {type(given).__name__}: {given!r}"
    )


@pytest.mark.parametrize(("struct", "member"), PATHS)
@pytest.mark.parametrize("given", ["relative", "~/x", "/usr/../lib", " /", "..", "C:\\"])
def test_a_path_must_be_absolute(struct, member, given):
    assert refusal(struct, **{member: given}) == (
        f"{SECTIONS[struct]}.{member} must be an absolute path without '..'; got {given!r}"
    )


@pytest.mark.parametrize(("struct", "member"), [path for path in PATHS if path[1] != "output_file"])
def test_a_path_must_not_be_empty(struct, member):
    assert refusal(struct, **{member: ""}) == (
        f"{SECTIONS[struct]}.{member} must be an absolute path without '..'; got ''"
    )


@pytest.mark.parametrize(("struct", "member"), PATHS)
@pytest.mark.parametrize("given", ["/a\nb", "/a\x00", "/a\t", "/\ufeffa"])
def test_a_path_must_be_printable(struct, member, given):
    assert refusal(struct, **{member: given}) == (
        f"{SECTIONS[struct]}.{member} must be a path of printable characters; got {given!r}"
    )


@pytest.mark.parametrize(("struct", "member"), WORDS)
@pytest.mark.parametrize("given", ["x", "", 5, True, {}])
def test_a_word_must_be_one_of_those_that_the_programs_know(struct, member, given):
    assert refusal(struct, **{member: given}) == (
        f"{SECTIONS[struct]}.{member} must be one of {WORDS[struct, member]}; got {given!r}"
    )


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (
            "envvars",
            " must be one of 'envvar', 'volume-mounts', 'cdi-annotations', 'cdi-cri'; got 'envvars' (did you mean "
            "'envvar'?)",
        ),
        (
            "envvar,cdi-cri",
            " must be one of 'envvar', 'volume-mounts', 'cdi-annotations', 'cdi-cri'; got 'envvar,cdi-cri' (did you "
            "mean 'cdi-cri'?)",
        ),
        (
            ["envvar", None],
            "[1] must be one of 'envvar', 'volume-mounts', 'cdi-annotations', 'cdi-cri'; got None",
        ),
        (
            [],
            " must name at least one strategy, got an empty list: pods would get no GPU; leave it out for the "
            "platform's default",
        ),
        (["cdi-cri", "cdi-cri"], " must not repeat a strategy; got ['cdi-cri', 'cdi-cri']"),
    ],
)
def test_device_list_strategies_that_would_fail_or_hand_out_nothing_are_refused(given, problem):
    assert refusal(PluginFlags, device_list_strategy=given) == f"flags.plugin.device_list_strategy{problem}"


@pytest.mark.parametrize("given", ["cdi.k8s.io", "/", "a/b", "a//", "Cdi/", "-a/", "a-/", "a b/", "", "a/\n"])
def test_the_annotation_prefix_must_be_a_domain_and_a_slash(given):
    assert refusal(PluginFlags, cdi_annotation_prefix=given) == (
        f"flags.plugin.cdi_annotation_prefix must be a domain and a slash, like 'cdi.k8s.io/'; got {given!r}"
    )


@pytest.mark.parametrize("given", [60, 1.5, True, "60s", "60", "Infinite", ""])
def test_a_sleep_interval_must_be_a_timedelta(given):
    assert refusal(GfdFlags, sleep_interval=given) == (
        f"flags.gfd.sleep_interval must be a datetime.timedelta or 'infinite'; got {given!r}; write "
        "timedelta(seconds=60)"
    )


@pytest.mark.parametrize(
    ("given", "got"),
    [(timedelta(0), "0s"), (timedelta(seconds=-5), "-5s"), (timedelta(milliseconds=999), "999000us")],
)
def test_a_sleep_below_a_second_is_refused(given, got):
    assert refusal(GfdFlags, sleep_interval=given) == (
        f"flags.gfd.sleep_interval must be at least one second; got {got!r}; a shorter one keeps a core busy reading "
        "labels that change once a day"
    )


def test_a_sleep_beyond_64_bits_of_nanoseconds_is_refused():
    assert GfdFlags(sleep_interval=timedelta(days=106751))
    assert refusal(GfdFlags, sleep_interval=timedelta(days=106752)) == (
        "flags.gfd.sleep_interval must be at most 292 years, all that fits 64 bits; got "
        "datetime.timedelta(days=106752); 'infinite' looks once (from release 0.19.0)"
    )


@pytest.mark.parametrize(("given", "got"), [([1], "[1]"), ([0, 0], "[0, 0]"), ((-1,), "[-1]"), (range(2), "[0, 1]")])
def test_imex_knows_channel_zero_and_no_other(given, got):
    assert refusal(Imex, channel_ids=given) == (
        f"imex.channel_ids must be [] or [0], the one channel there is; got {got}"
    )


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ([False], "imex.channel_ids[0] must be an int, got False (bool)"),
        ([0.0], "imex.channel_ids[0] must be int; got float: 0.0"),
        (["0"], "imex.channel_ids[0] must be int; got str: '0'"),
        ("0", "imex.channel_ids must be a list, got '0' (str)"),
        (0, "imex.channel_ids must be a sequence; got int: 0"),
    ],
)
def test_channels_are_a_list_of_whole_numbers(given, problem):
    assert refusal(Imex, channel_ids=given) == problem


def test_an_imex_channel_that_is_required_must_be_named():
    assert refusal(Imex, required=True) == ("imex.required needs channel_ids=[0]; got required=True without a channel")


@pytest.mark.parametrize("mig", ["single", "mixed"])
def test_mps_beside_mig_is_refused(mig):
    assert refusal(PluginConfig, flags=Flags(mig_strategy=mig), sharing=Sharing.mps(replicas=2)) == (
        f"flags.mig_strategy must be 'none' with Sharing.mps: MPS does not share MIG devices; got {mig!r}; use "
        "Sharing.time_slicing"
    )


@pytest.mark.parametrize("mig", [None, "none", "single"])
def test_mig_devices_are_shared_under_the_mixed_strategy_alone(mig):
    sharing = Sharing.time_slicing(resources={GPU: 2, MIG: 2})
    assert PluginConfig(flags=Flags(mig_strategy="mixed"), sharing=sharing)
    assert refusal(PluginConfig, flags=Flags(mig_strategy=mig), sharing=sharing) == (
        f"sharing.resources names {MIG!r}, which exists with flags.mig_strategy 'mixed' only; got {mig or 'none'!r}"
    )


@pytest.mark.parametrize(
    ("struct", "options", "problem"),
    [
        (
            PluginConfig,
            {"flags": {"migStrategy": "none"}},
            "config.flags must be Flags; got dict: {'migStrategy': 'none'}",
        ),
        (PluginConfig, {"flags": PluginFlags()}, f"config.flags must be Flags; got PluginFlags: {PluginFlags()!r}"),
        (PluginConfig, {"sharing": 4}, "config.sharing must be Sharing; got int: 4"),
        (PluginConfig, {"imex": [0]}, "config.imex must be Imex; got list: [0]"),
        (Flags, {"plugin": {}}, "flags.plugin must be PluginFlags; got dict: {}"),
        (Flags, {"gfd": "60s"}, "flags.gfd must be GfdFlags; got str: '60s'"),
    ],
)
def test_sections_are_options_of_their_own(struct, options, problem):
    assert refusal(struct, **options) == problem


# --- releases ----------------------------------------------------------------

LATE = [
    (
        PluginConfig(flags=Flags(plugin=PluginFlags(shared_devices_allocation_policy="distributed"))),
        "flags.plugin.shared_devices_allocation_policy",
        "0.20.0",
    ),
    (
        PluginConfig(flags=Flags(gfd=GfdFlags(sleep_interval="infinite"))),
        "flags.gfd.sleep_interval 'infinite'",
        "0.19.0",
    ),
    (
        PluginConfig(sharing=Sharing.mps(replicas=2, fail_requests_greater_than_one=False)),
        "sharing.mps.fail_requests_greater_than_one=False",
        "0.20.0",
    ),
]


@pytest.mark.parametrize(("config", "field", "first"), LATE, ids=["policy", "infinite", "mps"])
def test_what_came_with_a_later_release_is_refused_for_an_earlier_one(config, field, first):
    config.check_release(NEW)
    assert refusal(config.check_release, OLD) == (
        f"{field} needs release {first} of the device plugin, which 0.18.2 would ignore or refuse; leave it out or "
        "move up"
    )


@pytest.mark.parametrize(
    "config",
    [
        PluginConfig(),
        PluginConfig(sharing=Sharing.mps(replicas=2)),
        PluginConfig(sharing=Sharing.time_slicing(replicas=2, fail_requests_greater_than_one=False)),
        PluginConfig(flags=Flags(gfd=GfdFlags(sleep_interval=timedelta(seconds=1)))),
    ],
)
def test_what_every_release_knows_is_taken_by_every_release(config):
    config.check_release(OLD)
    config.check_release(NEW)

"""The typed configuration: the output of each member, its errors, and the result of reading it back."""

import dataclasses
from datetime import timedelta

import pytest
import yaml

from gpu_constructs import Sharing
from gpu_constructs.device_plugin.config import (
    Flags,
    GfdFlags,
    Imex,
    PluginConfig,
    PluginFlags,
    environment_variables,
)
from refusals import refusal
from tables import beside
from yaml_readers import Yaml12

GPU, MIG = "nvidia.com/gpu", "nvidia.com/mig-1g.5gb"


# --- what is written ---------------------------------------------------------

WRITTEN = beside(__file__, "device_plugin_config")["written"]


def config_of(struct, options):
    made = struct(**options)
    if struct is Flags:
        return PluginConfig(flags=made)
    return PluginConfig(flags=Flags(**{"plugin" if struct is PluginFlags else "gfd": made}))


def test_the_table_contains_every_member_of_flags():
    for struct in (Flags, PluginFlags, GfdFlags):
        named = {field.name for field in dataclasses.fields(struct)} - {"plugin", "gfd"}
        assert named == {member for owner, member, *_ in WRITTEN if owner is struct}


def test_each_member_writes_one_key_and_every_parser_reads_it_back():
    for struct, member, value, keys, written in WRITTEN:
        config, expected = config_of(struct, {member: value}), written
        for key in reversed(keys):
            expected = {key: expected}
        assert config.document() == {"version": "v1", **expected}
        for reader in (yaml.SafeLoader, Yaml12):
            found = yaml.load(config.to_yaml(), reader)
            for key in keys:
                found = found[key]
            assert (type(found), found) == (type(written), written), member
        assert PluginConfig.from_yaml(config.to_yaml()) == config
        assert config_of(struct, {member: None}).document() == {"version": "v1"}


SHARED = beside(__file__, "device_plugin_config")["shared"]


def test_a_sharing_writes_both_switches_and_the_original_names(snapshot):
    flags = [Flags(mig_strategy="mixed") if MIG in sharing.resources else Flags() for sharing in SHARED]
    configs = [PluginConfig(flags=one, sharing=sharing) for one, sharing in zip(flags, SHARED, strict=True)]
    assert [config.document()["sharing"] for config in configs] == snapshot
    for config in configs:
        assert PluginConfig.from_yaml(config.to_yaml()) == config


def test_a_channel_is_written_with_its_required_flag():
    for required in (True, False):
        for channels in ([0], (0,)):
            config = PluginConfig(imex=Imex(channel_ids=channels, required=required))
            assert config.document()["imex"] == {"channelIDs": [0], "required": required}
            assert PluginConfig.from_yaml(config.to_yaml()) == config
    assert PluginConfig(imex=Imex(channel_ids=[])) == PluginConfig()
    assert PluginConfig(imex=Imex(channel_ids=())).document() == {"version": "v1"}


def test_the_whole_file(snapshot, keywords):
    config = PluginConfig(**keywords)
    assert config.to_yaml() == snapshot


@pytest.mark.parametrize(
    ("struct", "options"), [(PluginFlags, {"device_list_strategy": ["envvar"]}), (Imex, {"channel_ids": [0]})]
)
def test_a_list_changed_afterwards_does_not_change_the_options(struct, options):
    (given,) = options.values()
    made = struct(**options)
    given.append("envvar")
    assert made == struct(**{name: value[:1] for name, value in options.items()})


# --- what is asked of it -----------------------------------------------------


def test_every_variable_that_overrides_the_file_has_its_setting(snapshot):
    assert environment_variables() == snapshot


# --- what is refused ---------------------------------------------------------

SECTIONS = {Flags: "flags", PluginFlags: "flags.plugin", GfdFlags: "flags.gfd"}
WORDS = {
    (Flags, "mig_strategy"): "'none', 'single', 'mixed'",
    (Flags, "device_discovery_strategy"): "'auto', 'nvml', 'tegra', 'vfio'",
    (PluginFlags, "device_id_strategy"): "'uuid', 'index'",
    (PluginFlags, "shared_devices_allocation_policy"): "'distributed', 'packed'",
    (PluginFlags, "device_list_strategy"): "'envvar', 'volume-mounts', 'cdi-annotations', 'cdi-cri'",
}


def test_every_switch_path_and_word_is_checked():
    def expect(struct, member, given, problem):
        assert refusal(struct, **{member: given}) == f"{SECTIONS[struct]}.{member} {problem}"

    for struct, member, value, *_ in WRITTEN:
        if isinstance(value, bool):
            for given in ("true", 1, [True]):
                kind = type(given).__name__
                expect(struct, member, given, f"must be one of (bool, None), got {kind}: {given!r}")
        elif str(value).startswith("/"):
            expect(struct, member, 5, "must be one of (str, None), got int: 5")
            for given in ("relative", "~/x", "/usr/../lib", " /", *([] if member == "output_file" else [""])):
                expect(struct, member, given, f"must be an absolute path without '..', got {given!r}")
            for given in ("/a\nb", "/a\x00", "/\ufeffa"):
                expect(struct, member, given, f"must be a path of printable characters, got {given!r}")
    for (struct, member), words in WORDS.items():
        for given in ("x", "", 5, {}):
            expect(struct, member, given, f"must be one of {words}, got {given!r}")


MANY = Sharing.time_slicing(resources={GPU: 2, MIG: 2})


def test_settings_that_the_programs_would_reject_or_ignore_are_rejected(refused):
    refused(PluginFlags, GfdFlags, Imex, PluginConfig, Flags)


def test_limits_are_inclusive():
    assert GfdFlags(sleep_interval=timedelta(days=106751))
    assert PluginConfig(flags=Flags(mig_strategy="mixed"), sharing=MANY)

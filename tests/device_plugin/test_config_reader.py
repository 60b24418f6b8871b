"""The reader of a user's file, which is stricter than the plugin. Each error contains the line and advice."""

import dataclasses
import re
import textwrap
import typing
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
import yaml

import refusals
from gpu_constructs import GpuConstructsError, Sharing
from gpu_constructs.device_plugin import config_reader
from gpu_constructs.device_plugin.config import Flags, GfdFlags, Imex, PluginConfig, PluginFlags
from tables import cases

EVERYTHING = (Path(__file__).parent / "everything.yaml").read_text(encoding="utf-8")


def read(text):
    return PluginConfig.from_yaml(textwrap.dedent(text))


refusal = partial(refusals.refusal, read)


def test_the_reader_supports_every_key():
    config = read(EVERYTHING)
    assert config.document() == yaml.safe_load(EVERYTHING)
    assert config.flags.gfd.sleep_interval == timedelta(hours=1.5)
    assert config.flags.plugin.device_list_strategy == ("envvar", "cdi-cri")


@pytest.mark.parametrize(("strategy", "fails"), [("timeSlicing", False), ("mps", True)])
@pytest.mark.parametrize("nothing", ["", "failRequestsGreaterThanOne: null, renameByDefault: ~, "])
def test_a_sharing_has_the_defaults_of_the_plugin(strategy, fails, nothing):
    sharing = read(f"sharing: {{{strategy}: {{{nothing}resources: [{{name: gpu, replicas: 4}}]}}}}").sharing
    assert (sharing.fail_requests_greater_than_one, sharing.rename_by_default) == (fails, False)


@cases
def test_an_empty_section_has_no_effect(text):
    assert read(text) == PluginConfig()


@pytest.mark.parametrize(
    "text",
    [
        '{\n\t"flags": {\n\t\t"migStrategy": "single"\n\t}\n}\n',
        "version: v1\r\nflags:\r\n  migStrategy: single\r\n",
        "# first\n---\nflags: # here\n  # and\n  migStrategy: single # there\n...\n",
        "\ufeffflags: {\"migStrategy\": 'single'}",
        "flags: &anchor\n  migStrategy: &strategy single\n",
    ],
)
def test_equivalent_forms_of_a_file_give_the_same_configuration(text):
    assert read(text).mig_strategy == "single"


# --- keys --------------------------------------------------------------------


def test_the_error_for_an_unknown_key_names_the_right_one(refused):
    refused(read)


def test_a_configuration_must_be_text():
    with pytest.raises(GpuConstructsError, match=r"^text must be str, got bytes: b'version: v1'$"):
        PluginConfig.from_yaml(b"version: v1")


# --- values ------------------------------------------------------------------


def nested(path, value):
    *sections, key = path.split(".")
    shared = ", resources: [{name: gpu, replicas: 2}]" if sections[0] == "sharing" else ""
    return "".join(f"{{{section}: " for section in sections)[1:] + f"{{{key}: {value}{shared}" + "}" * len(sections)


def members(hint):
    return [path for path, one in MEMBERS.items() if hint in (typing.get_args(one) or (one,))]


MEMBERS = {
    **{
        f"{where}.{field.metadata['key']}": typing.get_type_hints(struct)[field.name]
        for where, struct in (("flags", Flags), ("flags.plugin", PluginFlags), ("flags.gfd", GfdFlags), ("imex", Imex))
        for field in dataclasses.fields(struct)
    },
    "sharing.timeSlicing.renameByDefault": bool,
    "sharing.mps.failRequestsGreaterThanOne": bool,
}


def test_a_switch_must_be_true_or_false():
    assert len(members(bool)) == 11
    for path in members(bool):
        for value, got in (("'yes'", "'yes'"), ("1", "1")):
            assert refusal(nested(path, value)) == f"line 1: {path} must be true or false, got {got}"


def test_a_text_must_be_text_and_a_plain_value():
    assert len(members(str)) == 8
    for path in members(str):
        assert refusal(nested(path, "0x10")) == f"line 1: {path} must be text, got 0x10. Quote it"
        assert refusal(nested(path, "[a]")) == f"line 1: {path} must be a single value, got a list"
        assert refusal(nested(path, "{a: b}")) == f"line 1: {path} must be a single value, got keys and values"


def test_the_error_for_a_value_that_the_programs_would_reject_names_its_line(refused):
    refused(read)


# --- sharing -----------------------------------------------------------------


def entry(*lines, strategy="timeSlicing"):
    head = ["sharing:", f"  {strategy}:", "    resources:"]
    return "\n".join([*head, *(f"{'      ' if n else '    - '}{line}" for n, line in enumerate(lines))])


def test_an_empty_sharing_is_none():
    assert read("sharing:\n  mps:\n").sharing == Sharing.none()


def test_an_entry_that_the_plugin_would_reject_or_ignore_is_rejected(refused):
    long = "replicas: 0x" + "f" * 5000
    refused(lambda *lines: read(entry(*lines).replace("          - ", "    - ")), LONG=long)


def test_all_devices_is_the_default_of_the_plugin():
    assert read(entry("name: gpu", "replicas: 2", "devices: all")).sharing.replicas == 2


def test_a_resource_without_a_domain_gets_that_of_nvidia():
    assert read(entry("name: gpu", "replicas: 2")) == read(entry("name: nvidia.com/gpu", "replicas: 2"))


# --- reading what can be read ------------------------------------------------


def read_without(text):
    dropped = []
    return config_reader.read_without(textwrap.dedent(text), PluginConfig, dropped.append), dropped


def test_reading_without_rejected_keys_keeps_the_rest(expected):
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
    assert sorted(int(re.findall(r"line ([0-9]+): ", problem)[0]) for problem in dropped) == expected


def test_a_text_that_is_not_readable_is_dropped():
    for text in ("a: b: c", "[a]", "kind: ConfigMap\ndata: {}"):
        assert read_without(text) == (PluginConfig(), [refusal(text)])
    assert read_without(EVERYTHING) == (read(EVERYTHING), [])
    assert read_without("") == (PluginConfig(), [])


def test_of_duplicate_keys_the_one_that_the_plugin_reads_is_kept():
    both = (
        "sharing: {timeSlicing: {resources: [{name: gpu, replicas: 3}]}, mps: {resources: [{name: gpu, replicas: 2}]}}"
    )
    config, dropped = read_without(both)
    assert (config.sharing, len(dropped)) == (Sharing.mps(replicas=2), 1)
    config, dropped = read_without("flags: {migStrategy: single, migStrategy: mixed}")
    assert (config.mig_strategy, len(dropped)) == ("mixed", 1)

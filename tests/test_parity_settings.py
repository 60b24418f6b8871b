import pytest

from parity_settings import effective, file_settings, variables

NEW, OLD = "0.20.0", "0.18.2"


def run(program="plugin", *, env=None, file="", version=NEW):
    read = None if file is None else file_settings(file, version)
    return {".".join(path): value for path, value in effective(program, env or {}, read, version).items()}


def test_a_program_runs_with_its_defaults():
    assert run() == {
        "flags.migStrategy": "none",
        "flags.failOnInitError": True,
        "flags.mpsRoot": "",
        "flags.nvidiaDriverRoot": "/",
        "flags.nvidiaDevRoot": "/",
        "flags.gdrcopyEnabled": False,
        "flags.gdsEnabled": False,
        "flags.mofedEnabled": False,
        "flags.deviceDiscoveryStrategy": "auto",
        "flags.plugin.passDeviceSpecs": False,
        "flags.plugin.deviceListStrategy": "envvar",
        "flags.plugin.deviceIDStrategy": "uuid",
        "flags.plugin.cdiAnnotationPrefix": "cdi.k8s.io/",
        "flags.plugin.nvidiaCTKPath": "/usr/bin/nvidia-ctk",
        "flags.plugin.containerDriverRoot": "/driver-root",
        "flags.plugin.sharedDevicesAllocationPolicy": "distributed",
        "imex.channelIDs": "",
        "imex.required": False,
        "sharing.strategy": "none",
    }
    assert "flags.plugin.sharedDevicesAllocationPolicy" not in run(version=OLD)


@pytest.mark.parametrize(("version", "publishes"), [(OLD, False), (NEW, True)])
def test_gfd_has_settings_and_defaults_of_its_own(version, publishes):
    settings = run("gfd", version=version)
    assert settings["flags.useNodeFeatureAPI"] is publishes
    assert settings["flags.gfd.sleepInterval"] == "60s"
    assert "flags.plugin.deviceIDStrategy" not in settings


def test_the_mps_daemon_reads_little():
    assert run("mps") == {"flags.migStrategy": "none", "sharing.strategy": "none"}
    assert variables("mps", NEW) == {"MIG_STRATEGY"}


def test_a_variable_overrides_the_file_which_overrides_the_default():
    file = "flags: {migStrategy: single}"
    assert run(file=file)["flags.migStrategy"] == "single"
    assert run(file=file, env={"MIG_STRATEGY": "mixed"})["flags.migStrategy"] == "mixed"
    assert run(file=file, env={"MIG_STRATEGY": ""})["flags.migStrategy"] == ""


def test_of_two_variables_the_first_counts():
    env = {"USE_NODE_FEATURE_API": "true", "GFD_USE_NODE_FEATURE_API": "false"}
    assert run("gfd", env=env)["flags.useNodeFeatureAPI"] is False


@pytest.mark.parametrize(
    ("file", "variable", "setting"),
    [
        ("flags: {failOnInitError: false}", ("FAIL_ON_INIT_ERROR", "F"), "flags.failOnInitError"),
        (
            "flags: {plugin: {deviceListStrategy: [envvar, cdi-cri]}}",
            ("DEVICE_LIST_STRATEGY", "cdi-cri, envvar"),
            "flags.plugin.deviceListStrategy",
        ),
        ("imex: {channelIDs: [0]}", ("IMEX_CHANNEL_IDS", "0"), "imex.channelIDs"),
    ],
)
def test_file_and_variable_say_the_same_in_their_own_spelling(file, variable, setting):
    assert run(file=file)[setting] == run(env=dict([variable]))[setting]


@pytest.mark.parametrize(
    ("text", "span"),
    [("sleepInterval: 1m30s", "90s"), ("sleepInterval: 60", "0.00000006s"), ("sleepInterval: infinite", "infinite")],
)
def test_durations_are_compared_by_their_length(text, span):
    assert run("gfd", file=f"flags: {{gfd: {{{text}}}}}")["flags.gfd.sleepInterval"] == span


def test_the_device_root_follows_the_driver_root():
    assert run(env={"NVIDIA_DRIVER_ROOT": "/run/driver"})["flags.nvidiaDevRoot"] == "/run/driver"
    assert run(file="flags: {nvidiaDevRoot: /dev-root}")["flags.nvidiaDevRoot"] == "/dev-root"


def test_keys_of_structs_are_found_whatever_their_case():
    assert run(file="FLAGS: {MIGStrategy: mixed, Plugin: {deviceidstrategy: index}}") == {
        **run(),
        "flags.migStrategy": "mixed",
        "flags.plugin.deviceIDStrategy": "index",
    }


SHARED = "sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}"


def test_sharing_is_told_by_what_it_does():
    assert run(file=SHARED) == {
        **run(),
        "sharing.strategy": "time-slicing",
        "sharing.renameByDefault": False,
        "sharing.failRequestsGreaterThanOne": False,
        "sharing.resources.[nvidia.com/gpu]": 4,
    }
    assert run(file=SHARED.replace("nvidia.com/gpu", "gpu")) == run(file=SHARED)
    assert run(file=SHARED.replace("4", "5")) != run(file=SHARED)


@pytest.mark.parametrize(("version", "fails"), [(OLD, True), (NEW, False)])
def test_mps_refuses_several_before_0_20_whatever_is_said(version, fails):
    file = SHARED.replace("timeSlicing: {", "mps: {failRequestsGreaterThanOne: false, ")
    assert run(file=file, version=version)["sharing.failRequestsGreaterThanOne"] is fails
    assert run(file=file.replace("failRequestsGreaterThanOne: false, ", ""))["sharing.failRequestsGreaterThanOne"]


@pytest.mark.parametrize(
    ("file", "ignored"),
    [
        ("version: v2", "version"),
        ("timeSlicing: {}", "timeSlicing"),
        ("flags: {timeSlicing: 1}", "flags.timeSlicing"),
        ("resources: {gpus: []}", "resources"),
        (SHARED.replace("replicas", "rename: x, replicas"), "sharing.timeSlicing.resources.[0].rename"),
        (SHARED.replace("replicas", "devices: [0], replicas"), "sharing.timeSlicing.resources.[0].devices"),
        (SHARED.replace("resources:", "renamebydefault: true, resources:"), "sharing.timeSlicing.renamebydefault"),
        ("sharing: {mps: {resources: []}, timeSlicing: {}}", "sharing.timeSlicing"),
        ("sharing: nonsense", "sharing"),
    ],
)
def test_what_the_programs_skip_is_not_lost(file, ignored):
    assert f"ignored.{ignored}" in run(file=file)


@pytest.mark.parametrize("file", ["a: [", "- a", "just text"])
def test_a_file_that_nobody_can_read_is_no_file_of_defaults(file):
    assert run(file=file)["unreadable"] == file


@pytest.mark.parametrize("file", ["", "# nothing", "version: v1"])
def test_an_empty_file_is_one_of_defaults(file):
    assert run(file=file) == run()


def test_of_a_file_that_nobody_knows_only_the_variables_count():
    assert run(env={"MIG_STRATEGY": "single"}, file=None) == {"flags.migStrategy": "single"}

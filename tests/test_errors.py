import functools
import traceback
from pathlib import Path

import pytest
from cdk8s import App

import gpu_constructs
from gpu_constructs import (
    Configs,
    Delivery,
    DevicePluginChart,
    EnvValue,
    Probe,
    Sharing,
    Talos,
    Toleration,
    Unverified,
    Volume,
)
from gpu_constructs.device_plugin.config import Flags, GfdFlags, Imex, PluginConfig, PluginFlags
from gpu_constructs.errors import GpuConstructsError, GpuConstructsWarning, ShortErrors, SynthesisError

LIBRARY = str(Path(gpu_constructs.__file__).parent)


def test_an_error_names_the_construct_before_the_problem():
    error = GpuConstructsError("gpus must be at least 1, got 0", path="ollama/server")
    assert str(error) == "ollama/server: gpus must be at least 1, got 0"
    assert (error.path, error.problem) == ("ollama/server", "gpus must be at least 1, got 0")


def test_an_error_of_a_value_outside_a_construct_tree_is_the_problem_alone():
    error = GpuConstructsError("gpus must be at least 1, got 0")
    assert str(error) == "gpus must be at least 1, got 0"
    assert error.path == ""


def test_a_path_is_added_if_there_is_none():
    assert str(GpuConstructsError("no").at("chart/child")) == "chart/child: no"


def test_the_innermost_path_stays():
    assert str(GpuConstructsError("no", path="chart/child").at("chart")) == "chart/child: no"


def test_errors_can_be_caught_as_value_errors():
    with pytest.raises(ValueError, match=r"^no$"):
        raise GpuConstructsError("no")


def test_one_error_lists_all_problems_of_a_synth_by_line():
    error = SynthesisError(["a: one", "b: two"])
    assert str(error) == "2 problems found, nothing was written\n  a: one\n  b: two"
    assert error.problems == ["a: one", "b: two"]
    assert isinstance(error, GpuConstructsError)


def test_a_single_problem_is_counted_in_the_singular():
    assert str(SynthesisError(["a: one"])) == "1 problem found, nothing was written\n  a: one"


def frames_of(error):
    """Return the functions of the library in the traceback, after the line of this file that calls them."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if frame.filename.startswith(LIBRARY)]
    assert frames[-len(ours) :] == ours
    assert frames[-len(ours) - 1].filename == __file__
    return [frame.name for frame in ours]


def test_a_rejected_option_shows_the_line_of_the_user_and_one_frame_of_the_library():
    for make in [
        lambda: Sharing(strategy="time_slicing"),
        lambda: Talos("1.9"),
        lambda: Talos(1.12),
        lambda: Toleration(key="a b"),
        lambda: Toleration(key=5),
        lambda: Probe(check={"exec": {}}, period_seconds=0),
        lambda: Probe(check=5),
        lambda: Unverified("v1.0.0", like="0.20.0"),
        lambda: Unverified("1.0.0", like=None),
    ]:
        with pytest.raises(GpuConstructsError) as refused:
            make()
        assert frames_of(refused.value) == ["__call__"], make


def test_an_option_that_its_factory_rejects_shows_no_more():
    for make in [
        lambda: Sharing.time_slicing(replicas=1),
        lambda: Probe.http_get("/", port=80, period_seconds=0),
        lambda: Probe.tcp_socket("HTTP"),
        lambda: Probe.exec(["true"], failure_threshold="3"),
        lambda: EnvValue.secret("A_", key="k"),
        lambda: Volume.empty_dir(size_limit="x"),
    ]:
        with pytest.raises(GpuConstructsError) as refused:
            make()
        assert frames_of(refused.value) == ["wrapper"], make


def test_the_traceback_of_a_rejected_option_shows_only_the_mistake():
    with pytest.raises(GpuConstructsError) as refused:
        Toleration(key=5)
    printed = "".join(traceback.format_exception(refused.value))
    assert printed.count(LIBRARY) == 1
    assert "    Toleration(key=5)\n" in printed
    assert "another exception occurred" not in printed
    assert "direct cause" not in printed


def test_a_shortened_error_is_the_one_that_was_raised_and_other_exceptions_keep_their_frames():
    refused = GpuConstructsError("no", path="chart")

    class Raising(metaclass=ShortErrors):
        def __init__(self, error):
            raise error

    with pytest.raises(GpuConstructsError) as raised:
        Raising(refused)
    assert raised.value is refused
    with pytest.raises(ZeroDivisionError) as bug:
        Raising(ZeroDivisionError("a bug"))
    assert traceback.extract_tb(bug.value.__traceback__)[-1].name == "__init__"


def test_valid_options_create_the_object():
    class Option(metaclass=ShortErrors):
        def __init__(self, *given, **more):
            self.given = (given, more)

    assert Option(1, a=2).given == ((1,), {"a": 2})


def test_an_unknown_member_of_an_option_is_rejected_in_the_house_style():
    for make, problem in [
        (lambda: Flags(migstrategy="none"), "migstrategy is not a member of Flags (did you mean 'mig_strategy'?)"),
        (lambda: Flags(migStrategy="none"), "migStrategy is not a member of Flags (did you mean 'mig_strategy'?)"),
        (
            lambda: PluginFlags(device_list=[]),
            "device_list is not a member of PluginFlags (did you mean 'device_list_strategy'?)",
        ),
        (lambda: GfdFlags(sleep="60s"), "sleep is not a member of GfdFlags"),
        (lambda: Imex(channels=[0]), "channels is not a member of Imex (did you mean 'channel_ids'?)"),
        (
            lambda: PluginConfig(resources={}),
            "resources is not a member of PluginConfig: the plugin warns about it and ignores it, so resources keep "
            "their names. Remove it",
        ),
        (lambda: PluginConfig(version="v1"), "version is not a member of PluginConfig"),
        (lambda: Toleration(keys="a"), "keys is not a member of Toleration (did you mean 'key'?)"),
    ]:
        with pytest.raises(GpuConstructsError) as refused:
            make()
        assert str(refused.value) == problem, (make, problem)


def test_only_option_structs_reject_unknown_members():
    class Open(metaclass=ShortErrors):
        def __init__(self, **given):
            self.given = given

    assert Open(anything=1).given == {"anything": 1}


def test_warnings_can_be_filtered_as_the_users_own():
    assert issubclass(GpuConstructsWarning, UserWarning)


NOTHING = {"device_plugin": False, "gpu_feature_discovery": False, "node_feature_discovery": False}


def nothing_looks_at_a_gpu(scope, **given):
    """Run the code of a user around a chart that warns."""
    options = {**NOTHING, **given}
    return DevicePluginChart(scope, "plugin", **options)


def test_a_warning_points_at_the_line_of_the_user_that_called_the_library():
    with pytest.warns(GpuConstructsWarning) as caught:
        nothing_looks_at_a_gpu(App())
    (warning,) = caught
    assert warning.filename == __file__
    assert Path(__file__).read_text(encoding="utf-8").splitlines()[warning.lineno - 1].strip() == (
        'return DevicePluginChart(scope, "plugin", **options)'
    )


def test_the_line_of_a_warning_ignores_modules_with_similar_names():
    for filename in [f"{LIBRARY}-demo/app.py", f"{LIBRARY}_demo.py", "/home/me/jsii/app.py", "<stdin>"]:
        code = compile("\n\nmake(App())", filename, "exec")
        with pytest.warns(GpuConstructsWarning) as caught:
            exec(code, {"App": App, "make": functools.partial(DevicePluginChart, id="plugin", **NOTHING)})
        assert [(warning.filename, warning.lineno) for warning in caught] == [(filename, 3)], filename


def test_a_rejected_chart_shows_one_line_of_the_library_and_warns_at_the_call():
    with pytest.warns(GpuConstructsWarning) as caught, pytest.raises(GpuConstructsError) as refused:
        nothing_looks_at_a_gpu(App(), priority_class_name="very high")
    assert frames_of(refused.value) == ["__call__"]
    assert [warning.filename for warning in caught] == [__file__]


def test_an_invalid_call_is_rejected_in_one_line_at_the_line_of_the_caller():
    for make, problem in [
        (lambda: Toleration("dedicated"), "Toleration takes only keywords, got 'dedicated' without a keyword. "),
        (lambda: Unverified("0.21.0"), "like is required by Unverified"),
        (lambda: Sharing.mps(replica=4), "replica is not a keyword of Sharing.mps (did you mean 'replicas'?)"),
        (lambda: Sharing.mps(replicas=4, resources={}), "resources is not a keyword of Sharing.mps"),
        (lambda: Sharing.mps(4), "Sharing.mps takes only keywords, got 4 without a keyword. Its keywords: replicas"),
        (lambda: Sharing.mps(cls=4), "cls is not a keyword of Sharing.mps"),
        (lambda: Delivery.helm(), "chart is required by Delivery.helm. Pass chart=..."),
        (lambda: Configs.managed({}), "default is required by Configs.managed. Pass default=..."),
        (lambda: Configs.named(default="a"), "configs is required by Configs.named. Pass configs=..."),
        (
            lambda: Configs.named({}, "a"),
            "Configs.named takes only configs without a keyword, got 'a' without a keyword. Its keywords:",
        ),
        (lambda: Configs.named({}, configs={}, default="a"), "configs is given twice to Configs.named. Pass it once"),
    ]:
        with pytest.raises(GpuConstructsError) as refused:
            make()
        assert str(refused.value).startswith(problem), (make, problem)
        assert "\n" not in str(refused.value), (make, problem)


def test_shown_problems_are_wrapped_and_listed_problems_are_not():
    problems = ["a/b: " + "too long " * 40 + "end", "c: short\n  its reason", "d: " + "x" * 300]
    error = SynthesisError(problems)
    assert error.problems == problems
    head, *lines = str(error).splitlines()
    assert head == "3 problems found, nothing was written"
    assert max(map(len, lines)) <= 200
    assert [line for line in lines if not line.startswith("    ")][:2] == [lines[0], "  c: short"]
    assert " ".join(line.strip() for line in lines[: lines.index("  c: short")]) == problems[0]

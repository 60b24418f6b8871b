import pytest

from gpu_constructs.errors import GpuConstructsError, GpuConstructsWarning, SynthesisError


def test_an_error_names_the_construct_before_the_problem():
    error = GpuConstructsError("gpus must be at least 1, got 0", path="ollama/server")
    assert str(error) == "ollama/server: gpus must be at least 1, got 0"
    assert (error.path, error.problem) == ("ollama/server", "gpus must be at least 1, got 0")


def test_an_error_of_a_value_outside_a_construct_tree_is_the_problem_alone():
    error = GpuConstructsError("gpus must be at least 1, got 0")
    assert str(error) == "gpus must be at least 1, got 0"
    assert error.path == ""


def test_a_path_is_added_where_there_is_none():
    assert str(GpuConstructsError("no").at("chart/child")) == "chart/child: no"


def test_the_innermost_path_stays():
    assert str(GpuConstructsError("no", path="chart/child").at("chart")) == "chart/child: no"


def test_errors_can_be_caught_as_value_errors():
    with pytest.raises(ValueError, match=r"^no$"):
        raise GpuConstructsError("no")


def test_all_problems_of_a_synth_stand_in_one_error_a_line_each():
    error = SynthesisError(["a: one", "b: two"])
    assert str(error) == "2 problems found, nothing was written\n  a: one\n  b: two"
    assert error.problems == ["a: one", "b: two"]
    assert isinstance(error, GpuConstructsError)


def test_a_single_problem_is_counted_in_the_singular():
    assert str(SynthesisError(["a: one"])) == "1 problem found, nothing was written\n  a: one"


def test_warnings_can_be_filtered_as_the_users_own():
    assert issubclass(GpuConstructsWarning, UserWarning)

"""How each error of the library reads."""

from gpu_constructs import GpuConstructsError
from gpu_constructs.errors import ValuesError


def assert_house_style(error: GpuConstructsError, path: str = "") -> None:
    """Check that an error begins with the path of its construct, and that each of its problems is one good line."""
    assert error.path == path
    assert str(error) == (f"{path}: {error.problem}" if path else error.problem)
    for problem in error.problems if isinstance(error, ValuesError) else [error.problem]:
        assert problem.splitlines() == [problem]
        assert problem[0].islower()
        assert not problem.endswith(".")

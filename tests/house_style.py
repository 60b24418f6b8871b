"""How each error of the library reads."""

from __future__ import annotations

from gpu_constructs import GpuConstructsError


def assert_house_style(error: GpuConstructsError, path: str = "") -> None:
    """Check that an error is one good line that begins with the path of its construct."""
    assert error.path == path
    assert str(error) == (f"{path}: {error.problem}" if path else error.problem)
    assert str(error).splitlines() == [str(error)]
    assert error.problem[0].islower()
    assert not error.problem.endswith(".")

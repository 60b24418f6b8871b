"""The function that returns the version of this library."""

from __future__ import annotations

from pathlib import Path


def version() -> str:
    """Return the version of the installed package, or of the source tree if the package is not installed."""
    # The import takes longer than all others of a command.
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as version_of

    try:
        return version_of("gpu-constructs")
    except PackageNotFoundError:
        import tomllib

        project = Path(__file__).parents[1] / "pyproject.toml"
        return str(tomllib.loads(project.read_text())["project"]["version"])

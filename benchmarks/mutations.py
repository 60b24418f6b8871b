"""Break the package in one place at a time, and check whether a test notices.

Run it before and after a change of structure: the same rows must be caught:

    uv run python benchmarks/mutations.py [--only WORD] [--nearest]
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Mutation:
    """A harmful change.

    Attributes:
        breaks: What no longer holds.
        old: Text that occurs once in the package.
        new: Text in its place.
        tests: Names of the nearest test files, without ``test_`` and ``.py``.
    """

    breaks: str
    old: str
    new: str
    tests: str

    def place(self, package: Path) -> Path:
        """Return the module or table with the old text."""
        files = [path for path in sorted(package.rglob("*")) if path.suffix in (".py", ".yaml")]
        found = [path for path in files if self.old in path.read_text(encoding="utf-8")]
        if len(found) != 1 or found[0].read_text(encoding="utf-8").count(self.old) != 1:
            raise SystemExit(f"{self.breaks}: {self.old!r} must occur once in the package; it is in {found}")
        return found[0]


def mutations() -> list[Mutation]:
    """Return all rows of the table."""
    rows = yaml.safe_load((ROOT / "benchmarks/mutations.yaml").read_text(encoding="utf-8"))
    return [Mutation(**row) for row in rows]


def caught_by(mutation: Mutation, *, only_nearest: bool) -> str | None:
    """Return the test that fails with a mutation, or None if none does."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        _copy_project(copy)
        place = mutation.place(copy / "gpu_constructs")
        place.write_text(place.read_text(encoding="utf-8").replace(mutation.old, mutation.new), encoding="utf-8")
        failed = _first_failure(copy, ["-n", "0", *_nearest(copy, [mutation])])
        return failed if failed or only_nearest else _first_failure(copy, [])


def failing_before(chosen: Sequence[Mutation], *, only_nearest: bool) -> str | None:
    """Return a test that fails without any mutation, or None. Such a test would seem to catch every mutation."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        _copy_project(copy)
        return _first_failure(copy, _nearest(copy, chosen) if only_nearest else [])


def _copy_project(folder: Path) -> None:
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, tracked.split("\0")):
        if (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)


def _nearest(folder: Path, chosen: Sequence[Mutation]) -> list[str]:
    names = dict.fromkeys(name for one in chosen for name in one.tests.split())
    return [str(next(folder.rglob(f"tests/**/test_{name}.py"))) for name in names]


def _first_failure(folder: Path, arguments: list[str]) -> str | None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "--no-header",
        "--tb=no",
        *arguments,
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return None
    lines = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return lines[0].split(" - ")[0] if lines else f"exit status {done.returncode}"


def main() -> int:
    """Print the test that catches each mutation, and fail if one is not caught."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="mutations whose description has this word")
    parser.add_argument("--nearest", action="store_true", help="run the nearest tests only, not the rest of the suite")
    parser.add_argument("--jobs", type=int, default=2, help="mutations at a time; 2 by default")
    given = parser.parse_args()
    chosen = [one for one in mutations() if given.only in one.breaks]
    for one in chosen:
        one.place(ROOT / "gpu_constructs")
    if failed := failing_before(chosen, only_nearest=given.nearest):
        raise SystemExit(f"fails without any mutation: {failed}")
    missed = 0
    with ThreadPoolExecutor(given.jobs) as pool:
        answers = pool.map(lambda one: caught_by(one, only_nearest=given.nearest), chosen)
        for one, test in zip(chosen, answers, strict=True):
            missed += test is None
            print(f"{'NOT CAUGHT' if test is None else 'caught'}: {one.breaks}: {test or one.old}", flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} mutations are caught")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

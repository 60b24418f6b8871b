"""CPU time of ``lint`` for the manifests of a device plugin, beyond Python itself: the fastest of runs in turn.

``uv run python benchmarks/commands.py`` prints the time and exits with 1 if it exceeds the limit. The limit is a ratio
to the start of Python with the modules of the standard library and PyYAML, which a slow machine slows down too.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

LIMIT = 4.5
ROUNDS = 15
MANIFESTS = Path(__file__).parent.parent / "dist" / "kubernetes-basic"


def cpu(environment: dict[str, str], *arguments: str) -> float:
    """Return the CPU milliseconds of a Python process."""
    started = subprocess.Popen([sys.executable, *arguments], env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(started.pid, 0)
    started.returncode = os.waitstatus_to_exitcode(status)
    if started.returncode:
        raise subprocess.CalledProcessError(started.returncode, arguments)
    return 1000 * (usage.ru_utime + usage.ru_stime)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        # An installed package has its bytecode.
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        programs = {
            "python": ("-c", "pass"),
            "python with what any such command imports": ("-c", "import argparse, dataclasses, json, yaml"),
            "lint": ("-m", "gpu_constructs", "lint", str(MANIFESTS)),
        }
        for arguments in programs.values():
            cpu(environment, *arguments)
        times = {name: [] for name in programs}
        for _ in range(ROUNDS):
            for name, arguments in programs.items():
                times[name].append(cpu(environment, *arguments))
    bare, usual, lint = (min(one) for one in times.values())
    ratio = (lint - bare) / (usual - bare)
    print(f"lint starts in {lint - bare:.0f} ms of CPU beyond Python, {ratio:.2f} times argparse, json and PyYAML")
    print(f"limit {LIMIT}: {'over' if ratio > LIMIT else 'kept'}")
    return int(ratio > LIMIT)


if __name__ == "__main__":
    sys.exit(main())

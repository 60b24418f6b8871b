"""A node whose driver the validation bridge watches: its files, and the bridge itself."""

import os
from collections.abc import Mapping
from pathlib import Path

import yaml

from shell import Launcher, RunningScript, Watched, wait_until

DEFAULTS = Path(__file__).parent / "operator" / "bridge_defaults.yaml"
VERSION = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.133.20  Release Build\n"
    "GCC version:  gcc version 14.2.0 (GCC)\n"
)


class BridgedNode(Watched):
    """The files of a node that every strategy of the bridge looks at."""

    def __init__(self, root: Path, scripts: Launcher, text: str) -> None:
        self.root, self.scripts, self.text = root, scripts, text
        self.state = root / "state"
        self.devices = root / "dev"
        self.devices.mkdir()

    def module(self, name: str, state: str) -> None:
        directory = self.root / "sys" / "module" / name
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "initstate").write_text(f"{state}\n")

    def unload(self, name: str) -> None:
        (self.root / "sys" / "module" / name / "initstate").unlink()

    def version(self, text: str) -> None:
        file = self.root / "proc" / "driver" / "nvidia" / "version"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def bind_gpu(self) -> None:
        (self.root / "proc" / "driver" / "nvidia" / "gpus" / "0000:01:00.0").mkdir(parents=True)

    def load_driver(self) -> None:
        self.module("nvidia", "live")
        self.module("nvidia_uvm", "live")
        self.version(VERSION)
        self.bind_gpu()

    def paths(self) -> Mapping[str, str]:
        """The variables that are about one strategy alone."""
        raise NotImplementedError

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        return {
            **self.paths(),
            "STATE_DIR": str(self.state),
            "SYS_ROOT": str(self.root / "sys"),
            "PROC_ROOT": str(self.root / "proc"),
            "DEV_ROOT": str(self.devices),
            "INTERVAL_SECONDS": "0.02",
            **env,
        }

    def start(self, text: str | None = None, /, **env: str) -> RunningScript:
        return self.scripts.start(text or self.text, self.environment(env))

    def start_with(self, replaced: str, /, **env: str) -> RunningScript:
        """Start the script with a function in the place of one of its tools."""
        shebang, rest = self.text.split("\n", 1)
        return self.start("\n".join([shebang, replaced, rest]), **env)

    def start_on_a_full_disk(self) -> RunningScript:
        return self.scripts.start(self.text, self.environment({}), full_disk=True)

    def start_ready(self, **env: str) -> RunningScript:
        bridge = self.start(**env)
        self.wait_ready()
        return bridge

    def wait_turns(self, turns: int = 3) -> None:
        """Alive comes back that many times after it was taken away, as the liveness probe does."""
        alive = self.state / "alive"
        for _ in range(turns):
            wait_until(alive.exists, "alive")
            alive.unlink()
        wait_until(alive.exists, "alive")

    def check_defaults(self, strategy: str) -> None:
        """The script itself says what a variable is where nothing is said."""
        defaults = yaml.safe_load(DEFAULTS.read_text(encoding="utf-8"))[strategy]
        before_the_first_file, _ = self.text.split("trap leave", 1)
        show = "".join(f'echo "{name}=${name}"\n' for name in defaults)
        bridge = self.scripts.start(f"{before_the_first_file}\n{show}", {})
        assert bridge.wait() == 0
        assert bridge.log.splitlines() == [f"{name}={value}" for name, value in defaults.items()]


def files_below(directory: Path) -> list[str]:
    """The files of a directory and of all below it, by their paths in it."""
    return sorted(
        os.path.relpath(os.path.join(folder, name), directory)
        for folder, _, names in os.walk(directory)
        for name in names
    )

"""Runs the text of a shell script under the shells a container image may bring, and follows its log."""

import os
import resource
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

SHELLS = [
    pytest.param(("sh",), id="sh"),
    *(
        pytest.param(tuple(shell.split()), id=shell, marks=pytest.mark.system_tools)
        for shell in ("dash", "busybox sh", "bash --posix")
    ),
]

# No file may grow. With SIGXFSZ ignored a write then fails as on a full disk: an empty file is left.
FULL_DISK = ["sh", "-c", 'ulimit -S -f 0 && exec "$@"', "sh"]


# Seconds after which a test gives up on what hangs: no test passes or fails by how busy the machine is.
PATIENCE = 120


def wait_until(condition: Callable[[], object], what: str, log: Callable[[], str] = str) -> None:
    """Poll every 10 ms; a condition that stays false fails the test with ``what`` and the log."""
    give_up = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > give_up:
            pytest.fail(f"still waiting after {PATIENCE} s for {what}\n{log()}")
        time.sleep(0.01)


class Watched:
    """What a script says of itself in its state directory."""

    state: Path

    @property
    def ready(self) -> bool:
        return (self.state / "ready").exists()

    def wait_ready(self) -> None:
        wait_until(lambda: self.ready, "ready")

    def wait_not_ready(self) -> None:
        wait_until(lambda: not self.ready, "not ready")


class RunningScript:
    """A script that runs in the background, standard error mixed into its log."""

    def __init__(self, command: list[str], env: Mapping[str, str], full_disk: bool) -> None:
        self.process = subprocess.Popen(
            [*FULL_DISK, *command] if full_disk else command,
            env={"PATH": os.environ["PATH"], **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            restore_signals=not full_disk,  # Python ignores SIGXFSZ, and so will the script
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout
        self.lines.extend(self.process.stdout)  # line by line, as they come

    @property
    def log(self) -> str:
        return "".join(self.lines)

    def count(self, text: str) -> int:
        return self.log.count(text)

    def wait_for_log(self, text: str) -> None:
        wait_until(lambda: text in self.log, f"{text!r} in the log", lambda: self.log)

    def make_room(self) -> None:
        hard = resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE)[1]
        resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, (hard, hard))

    def _ended(self) -> int:
        """The exit code, once the script itself has ended."""
        wait_until(lambda: self.process.poll() is not None, "the end of the script", lambda: self.log)
        return self.process.returncode

    def _log_is_complete(self) -> None:
        """Wait for the end of everything that the script started: it holds the log open."""
        wait_until(lambda: not self._reader.is_alive(), "the end of what the script started", lambda: self.log)

    def wait(self) -> int:
        """The exit code, once the log is complete."""
        code = self._ended()
        self._log_is_complete()
        return code

    def _is_asleep(self) -> bool:
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                pid, _, rest = stat.read_text().partition(" ")
                state, _, group = rest.rpartition(") ")[2].split()[:3]
                if int(group) == self.process.pid != int(pid) and state == "S":
                    return True
        return False

    def terminate(self) -> None:
        """Signal the script alone, which must exit with 0."""
        self.process.terminate()
        assert self._ended() == 0, self.log
        # A sleep that was being started when the signal came may have missed its own.
        self._kill_group()
        self._log_is_complete()

    def terminate_in_its_sleep(self, signum: signal.Signals = signal.SIGTERM) -> None:
        """Signal the script alone while it sleeps for longer than a test waits, which must end the sleep too."""
        wait_until(self._is_asleep, "the script's sleep", lambda: self.log)
        self.process.send_signal(signum)
        assert self.wait() == 0, self.log

    def kill(self) -> None:
        """Kill -9 the script alone; its sleep goes on."""
        self.process.kill()
        self._ended()

    def _kill_group(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def close(self) -> None:
        self._kill_group()
        self._ended()
        self._log_is_complete()
        assert self.process.stdout
        self.process.stdout.close()


class Launcher:
    """Starts one script text, as often as a test likes."""

    def __init__(self, shell: tuple[str, ...], directory: Path) -> None:
        self._shell, self._directory = shell, directory
        self._started: list[RunningScript] = []

    def start(self, text: str, env: Mapping[str, str], *, full_disk: bool = False) -> RunningScript:
        path = self._directory / "script.sh"
        path.write_text(text)
        running = RunningScript([*self._shell, str(path)], env, full_disk)
        self._started.append(running)
        return running

    def close(self) -> None:
        for running in self._started:
            running.close()


@contextmanager
def launcher(shell: tuple[str, ...], directory: Path) -> Iterator[Launcher]:
    """A launcher that leaves no process behind."""
    scripts = Launcher(shell, directory)
    try:
        yield scripts
    finally:
        scripts.close()


def shellcheck(text: str) -> str:
    """What shellcheck has to say about a script read from standard input; empty when nothing."""
    result = subprocess.run(
        ["shellcheck", "--shell=sh", "--severity=style", "-"],
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    return result.stdout + result.stderr

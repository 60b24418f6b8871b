"""Programs that end with the test run, however it ends."""

from __future__ import annotations

import ctypes
import os
import secrets
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


class ProgramError(Exception):
    """A program that ended, or did not become ready."""


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent ends. Runs in the child, before the program starts."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Program:
    """A running program whose output goes to a file."""

    def __init__(
        self,
        argv: Sequence[str],
        log: Path,
        *,
        env: Mapping[str, str] | None = None,
        prepare: Callable[[], None] | None = None,
    ) -> None:
        """Start the program.

        Args:
            argv: Path of the program and its arguments.
            log: File that takes its output.
            env: Its environment. Default: nothing but PATH.
            prepare: What the child does before it becomes the program.
        """
        self.name, self.log = Path(argv[0]).name, log

        def first() -> None:
            die_with_parent()
            if prepare is not None:
                prepare()

        with log.open("ab") as output:
            self._process = subprocess.Popen(
                argv,
                env={"PATH": os.environ["PATH"]} if env is None else dict(env),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                preexec_fn=first,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Process ID."""
        return self._process.pid

    @property
    def exit_status(self) -> int | None:
        """Exit status, or None while the program runs."""
        return self._process.poll()

    def output(self) -> str:
        """Return everything that the program has printed."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def wait_until(self, ready: Callable[[], bool], *, timeout: float = 120) -> None:
        """Wait until the program is ready.

        Raises:
            ProgramError: It ended, or was not ready in time; with the end of its output.
        """
        end = time.monotonic() + timeout
        while not ready():
            if self.exit_status is not None:
                if "address already in use" in self.output().lower():
                    raise ProgramError(f"another program took a port that {self.name} was to use. Run the tests again")
                raise ProgramError(f"{self.name} ended with {self.exit_status}: {self._tail()}")
            if time.monotonic() > end:
                raise ProgramError(f"{self.name} was not ready after {timeout} s: {self._tail()}")
            time.sleep(0.05)

    def wait(self, timeout: float = 120) -> int:
        """Wait until the program ends, and return its exit status.

        Raises:
            ProgramError: It still runs.
        """
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise ProgramError(f"{self.name} still runs after {timeout} s: {self._tail()}") from None

    def signal(self, number: signal.Signals) -> None:
        """Send the program a signal."""
        if self.exit_status is None:
            self._process.send_signal(number)

    def stop(self, *, grace: float = 5) -> None:
        """End the program: by SIGTERM, then by SIGKILL."""
        self.signal(signal.SIGTERM)
        try:
            self._process.wait(grace)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _tail(self) -> str:
        return "\n".join(self.output().splitlines()[-20:])


def free_port() -> int:
    """Return a port of the loopback interface that nothing listens on.

    It is none that the kernel gives to connections: one of these could take it before a program listens on it.
    """
    while True:
        port = 16384 + secrets.randbelow(16384)
        with socket.socket() as listener, suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return port


def is_listening(port: int) -> bool:
    """Check whether something listens on a port of the loopback interface."""
    with socket.socket() as client:
        client.settimeout(1)
        return client.connect_ex(("127.0.0.1", port)) == 0

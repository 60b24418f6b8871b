"""How the kubelet asks a container whether it is well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpu_constructs import _fields
from gpu_constructs.errors import GpuConstructsError, ShortErrors, short_errors


@dataclass(frozen=True, kw_only=True)
class Probe(metaclass=ShortErrors):
    """A check of a container; made by ``Probe.http_get``, ``Probe.tcp_socket`` or ``Probe.exec``.

    All durations are seconds. Loading a model takes minutes: give the time to ``startup_probe``
    (``period_seconds`` times ``failure_threshold``), which holds the others back.

    Attributes:
        check: What is asked, as Kubernetes writes it.
        initial_delay_seconds: Pause before the first check.
        period_seconds: Time from one check to the next; 10 by default, as in Kubernetes.
        timeout_seconds: How long an answer may take; 5 by default, since a busy GPU host is slow to answer and
            Kubernetes' single second kills healthy pods.
        failure_threshold: Failed checks in a row that count as a failure; 3 by default, as in Kubernetes.

    Raises:
        GpuConstructsError: A number below what Kubernetes takes, or a port outside 1 to 65535.
    """

    check: Mapping[str, Any] = field(repr=False)
    initial_delay_seconds: int = 0
    period_seconds: int = 10
    timeout_seconds: int = 5
    failure_threshold: int = 3

    def __post_init__(self) -> None:
        _fields.members(self, "probe")
        _fields.whole_number("probe.initial_delay_seconds", self.initial_delay_seconds, minimum=0)
        for name in ("period_seconds", "timeout_seconds", "failure_threshold"):
            _fields.whole_number(f"probe.{name}", getattr(self, name), minimum=1)

    @classmethod
    @short_errors
    def http_get(cls, path: str, *, port: int | str, **timing: int) -> Probe:
        """Ask for a path over HTTP; any status from 200 to 399 is well.

        Args:
            path: Path of the request.
            port: A port's number or its name in ``ports``.
            timing: ``initial_delay_seconds``, ``period_seconds``, ``timeout_seconds``,
                ``failure_threshold``.
        """
        _fields.of_type("probe path", path, str)
        if not path.startswith("/"):
            raise GpuConstructsError(f"probe path must start with '/'; got {path!r}")
        return cls(check={"httpGet": {"path": path, "port": _port(port)}}, **timing)

    @classmethod
    @short_errors
    def tcp_socket(cls, port: int | str, **timing: int) -> Probe:
        """Open a connection to a port; one that opens is well."""
        return cls(check={"tcpSocket": {"port": _port(port)}}, **timing)

    @classmethod
    @short_errors
    def exec(cls, command: Sequence[str], **timing: int) -> Probe:
        """Run a command in the container; exit status 0 is well."""
        _fields.of_type("probe command", command, Sequence[str])
        if not command:
            raise GpuConstructsError("probe command must name a program; got an empty list")
        return cls(check={"exec": {"command": list(command)}}, **timing)

    @property
    def port(self) -> int | str | None:
        """The port it asks, by number or name; None for a command."""
        (check,) = self.check.values()
        port: int | str | None = check.get("port")
        return port

    def to_manifest(self) -> dict[str, Any]:
        """Give the probe as Kubernetes writes it."""
        timing = {
            "initialDelaySeconds": self.initial_delay_seconds or None,
            "periodSeconds": self.period_seconds,
            "timeoutSeconds": self.timeout_seconds,
            "failureThreshold": self.failure_threshold,
        }
        return {**self.check, **timing}


def _port(port: int | str) -> int | str:
    if isinstance(port, str):
        _fields.port_name("probe port", port)
    else:
        _fields.port_number("probe port", port)
    return port

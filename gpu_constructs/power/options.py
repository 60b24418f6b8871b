"""Options of `PowerLimit`: the requested limits, and the settings of the script that sets them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Literal

from gpu_constructs.errors import GpuConstructsError, did_you_mean, refuse_if
from gpu_constructs.kube import fields
from gpu_constructs.records import dataclass, regex

OutOfRange = Literal["clamp", "refuse"]
Target = Literal["uuid", "pci", "index", "name"]

_FORMS: Mapping[Target, tuple[re.Pattern[str], str]] = {
    "uuid": (regex(r"GPU-[0-9A-Za-z-]+\Z"), "'uuid:GPU-' and the rest of the UUID from nvidia-smi -L"),
    "pci": (
        regex(r"(?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]\Z"),
        "'pci:' and a bus ID like 0000:01:00.0",
    ),
    "index": (regex(r"(?:0|[1-9][0-9]{0,3})\Z"), "'index:' and the number from nvidia-smi -L"),
    # Only characters without a special meaning in Kubernetes and in the shell.
    "name": (
        regex(r"(?! )[\w *?\[\]!().,/+-]+(?<! )\Z", re.ASCII),
        "'name:' and a name or a pattern with *, ? and [...], without leading or trailing blanks",
    ),
}
"""Properties by which a key of ``limits`` selects GPUs, from the most to the least specific property.

If several keys select a GPU, the earlier property in this mapping takes precedence. Each value is a pattern for the
text after the colon of the key, and its description for messages.
"""

_PERCENT = regex(r"([0-9]{1,4})%\Z", re.ASCII)
_HIGHEST_PERCENT = 200
_HIGHEST_WATTS = 9999
_WAY_OUT = "Leave out the PowerLimit to keep the limit of the board"


@dataclass(frozen=True)
class PowerRequest:
    """A requested power limit, and the GPUs that it applies to.

    If ``watts`` and ``percent`` are None, the request is for the default limit of the board.

    Attributes:
        target: Property that selects the GPUs: ``uuid``, ``pci``, ``index`` or ``name``. None selects all GPUs that no
            other request of the ``PowerLimit`` selects.
        pattern: Value of the property, for example ``0`` for ``index``. For ``name``, it is a shell pattern such as
            ``*RTX 3090``. Empty if ``target`` is None.
        watts: Limit in watts. None if the limit is not in watts.
        percent: Limit as a percentage of the board's default limit. None if the limit is not a percentage.
    """

    target: Target | None = None
    pattern: str = ""
    watts: int | None = None
    percent: int | None = None

    @property
    def limit(self) -> str:
        """The limit as text for the script of the pods, for example ``300`` (watts), ``80%`` or ``default``."""
        if self.percent is not None:
            return f"{self.percent}%"
        return "default" if self.watts is None else str(self.watts)

    @property
    def in_words(self) -> str:
        """The limit as text for messages, for example ``300 W``, ``80%`` or ``default``."""
        return self.limit if self.watts is None else f"{self.watts} W"

    @property
    def is_for_one(self) -> bool:
        """Whether the request selects a single GPU, by UUID, PCI bus ID or index."""
        return self.target not in ("name", None)

    @property
    def keyword(self) -> str:
        """The keyword of ``PowerLimit`` that contains this request, such as ``watts`` or ``limits['index:0']``."""
        return "watts" if self.target is None else f"limits['{self.target}:{self.pattern}']"

    def to_rule(self) -> str:
        """Return the text for this request in the environment variables of the script.

        If ``target`` is None, the text is the value of POWER_LIMIT, such as ``300``. Otherwise, the text is one line of
        POWER_LIMITS, such as ``index:0=300``.
        """
        return self.limit if self.target is None else f"{self.target}:{self.pattern}={self.limit}"

    def watts_of(self, default_watts: int | None) -> int | None:
        """Return the requested limit in watts for a board whose default limit is ``default_watts``.

        Return None if the request depends on the default limit (``80%`` or ``default``) and ``default_watts`` is None.
        """
        if self.percent is None:
            return default_watts if self.watts is None else self.watts
        return None if default_watts is None else default_watts * self.percent // 100


def power_requests(watts: int | str | None, limits: Mapping[str, int | str]) -> tuple[PowerRequest, ...]:
    """Return all requested power limits of a ``PowerLimit`` in order of precedence.

    Limits by UUID come first, then limits by PCI bus ID, index and name, and last ``watts``. Limits by the same
    property keep the order of ``limits``.

    Args:
        watts: Limit of every GPU that ``limits`` does not select. If None, those GPUs keep their limit.
        limits: Limits by a key that selects GPUs. A key starts with ``uuid:``, ``pci:``, ``index:`` or ``name:``.

    Raises:
        GpuConstructsError: If a limit or a key is invalid, two keys have the same UUID, PCI bus ID, index or name, or
            ``watts`` and ``limits`` contain no limit.
    """
    if watts is None and not limits:
        raise GpuConstructsError(
            "watts must have a value if there are no limits, got None. Set a limit, or leave out the PowerLimit to "
            "keep the limits of the boards"
        )
    requests = [_request(*_target(key), f"limits[{key!r}]", limit) for key, limit in limits.items()]
    seen: dict[tuple[Target | None, str], PowerRequest] = {}
    for request in requests:
        same = seen.setdefault((request.target, _device(request)), request)
        if same is not request:
            raise GpuConstructsError(
                f"limits must name a device once, got {same.pattern!r} and {request.pattern!r}. Leave one of them out"
            )
    order: list[Target | None] = list(_FORMS)
    fallback = [] if watts is None else [_request(None, "", "watts", watts)]
    return (*sorted(requests, key=lambda request: order.index(request.target)), *fallback)


def _device(request: PowerRequest) -> str:
    if request.target != "pci":
        return request.pattern.lower() if request.target == "uuid" else request.pattern
    domain, bus, device = f"0:{request.pattern}".lower().split(":")[-3:]
    return f"{domain.lstrip('0')}:{bus}:{device}"


def _target(key: str) -> tuple[Target, str]:
    prefix, colon, pattern = key.partition(":")
    for target, (form, description) in _FORMS.items():
        if colon and prefix == target:
            refuse_if(not form.match(pattern), "limits key", f"be {description}", key)
            return target, pattern
    words = ", ".join(f"'{target}:'" for target in _FORMS)
    raise GpuConstructsError(f"limits key must start with one of {words}, got {key!r}{did_you_mean(prefix, _FORMS)}")


def _request(target: Target | None, pattern: str, field: str, limit: int | str) -> PowerRequest:
    if not isinstance(limit, str):
        fields.whole_number(field, limit, minimum=1, maximum=_HIGHEST_WATTS, way_out=_WAY_OUT if target is None else "")
        return PowerRequest(target, pattern, watts=limit)
    if limit == "default":
        return PowerRequest(target, pattern)
    percent = _PERCENT.match(limit)
    if percent is None:
        way_out = f"Pass the number {limit}" if limit.isdecimal() else "Write watts as an int, without a unit"
        raise GpuConstructsError(
            f"{field} must be whole watts, a share of the board's default like '80%', or 'default', got {limit!r}. "
            f"{way_out}"
        )
    if not 1 <= int(percent[1]) <= _HIGHEST_PERCENT:
        raise GpuConstructsError(f"{field} must be from '1%' to '{_HIGHEST_PERCENT}%', got {limit!r}")
    return PowerRequest(target, pattern, percent=int(percent[1]))


# Largest number of digits that the script accepts.
_MOST_SECONDS = 9_999_999
_LEAST_SECONDS = {"interval_seconds": 10, "start_timeout_seconds": 0}
_WAYS_OUT = {"interval_seconds": "Leave it out to check every 1800 seconds"}


@dataclass(frozen=True, kw_only=True)
class AgentSettings:
    """Settings of the script that checks and sets power limits.

    The keywords of ``PowerLimit`` with the same names explain the settings.

    Raises:
        GpuConstructsError: If a duration is out of its range.
    """

    interval_seconds: int
    retry_seconds: int
    start_timeout_seconds: int
    command_timeout_seconds: int
    out_of_range: OutOfRange
    persistence_mode: bool
    restore_on_exit: bool

    def __post_init__(self) -> None:
        for name in (one.name for one in dataclasses.fields(self) if one.name.endswith("_seconds")):
            fields.whole_number(
                name,
                getattr(self, name),
                minimum=_LEAST_SECONDS.get(name, 1),
                maximum=_MOST_SECONDS,
                way_out=_WAYS_OUT.get(name, ""),
            )

    def variables(self) -> dict[str, str]:
        """Return the settings as environment variables of the script, for example ``INTERVAL_SECONDS``: ``1800``."""
        settings = {one.name.upper(): getattr(self, one.name) for one in dataclasses.fields(self)}
        return {name: str(int(value) if isinstance(value, bool) else value) for name, value in settings.items()}

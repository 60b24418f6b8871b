"""What a user may say about power limits and the agents that keep them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from gpu_constructs.errors import GpuConstructsError, did_you_mean, refuse_if
from gpu_constructs.kube import fields

OutOfRange = Literal["clamp", "refuse"]
Target = Literal["uuid", "pci", "index", "name"]

_FORMS: Mapping[Target, tuple[re.Pattern[str], str]] = {
    "uuid": (re.compile(r"GPU-[0-9A-Za-z-]+\Z"), "'uuid:GPU-' and the rest of what nvidia-smi -L shows"),
    "pci": (
        re.compile(r"(?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]\Z"),
        "'pci:' and a bus id like 0000:01:00.0",
    ),
    "index": (re.compile(r"(?:0|[1-9][0-9]{0,3})\Z"), "'index:' and the number nvidia-smi -L shows"),
    # No letter that Kubernetes or a shell would read as something else.
    "name": (
        re.compile(r"(?! )[\w *?\[\]!().,/+-]+(?<! )\Z", re.ASCII),
        "'name:' and a name, or a pattern with *, ? and [...], without blanks at its ends",
    ),
}
"""How a GPU is chosen, the most specific way first: the order in which limits win."""

_PERCENT = re.compile(r"([0-9]{1,4})%\Z", re.ASCII)
_HIGHEST_PERCENT = 200
_HIGHEST_WATTS = 9999
_WAY_OUT = "leave the PowerLimit out for the board's own limit"


@dataclass(frozen=True)
class PowerWish:
    """A power limit for the GPUs of one description; with neither watts nor percent, the board's default.

    Attributes:
        target: What chooses the GPUs; None for all that no other limit is for.
        pattern: Value that it must have; for ``name`` a shell pattern. Empty without a target.
        watts: Limit in watts.
        percent: Limit as a share of the board's default.
    """

    target: Target | None = None
    pattern: str = ""
    watts: int | None = None
    percent: int | None = None

    @property
    def limit(self) -> str:
        """The limit as the agent reads it: ``300``, ``80%`` or ``default``."""
        if self.percent is not None:
            return f"{self.percent}%"
        return "default" if self.watts is None else str(self.watts)

    @property
    def in_words(self) -> str:
        """The limit as a message has it: ``300 W``, ``80%`` or ``default``."""
        return self.limit if self.watts is None else f"{self.watts} W"

    @property
    def is_for_one(self) -> bool:
        """Whether the limit is for one device."""
        return self.target not in ("name", None)

    @property
    def keyword(self) -> str:
        """Keyword and key that a user wrote."""
        return "watts" if self.target is None else f"limits['{self.target}:{self.pattern}']"

    def to_rule(self) -> str:
        """Return the line of POWER_LIMITS; without a target, the value of POWER_LIMIT."""
        return self.limit if self.target is None else f"{self.target}:{self.pattern}={self.limit}"

    def watts_of(self, default_watts: int | None) -> int | None:
        """Return the watts on a board with that default, or None if they depend on a default that is not known."""
        if self.percent is None:
            return default_watts if self.watts is None else self.watts
        return None if default_watts is None else default_watts * self.percent // 100


def power_wishes(watts: int | str | None, limits: Mapping[str, int | str]) -> tuple[PowerWish, ...]:
    """Return the limits in the order in which they win; those by name in the order given.

    Args:
        watts: Limit of every GPU that ``limits`` does not name; None leaves those alone.
        limits: Limits by ``uuid:``, ``pci:``, ``index:`` or ``name:`` and what that must be.

    Raises:
        GpuConstructsError: A value that is not a limit, a key that chooses no GPU, one device twice, no limit at all.
    """
    if watts is None and not limits:
        raise GpuConstructsError(
            "watts must be given where there are no limits; got None; name a limit, or leave the PowerLimit out for "
            "the boards' own"
        )
    wishes = [_wish(*_target(key), f"limits[{key!r}]", limit) for key, limit in limits.items()]
    seen: dict[tuple[Target | None, str], PowerWish] = {}
    for wish in wishes:
        same = seen.setdefault((wish.target, _device(wish)), wish)
        if same is not wish:
            raise GpuConstructsError(
                f"limits must name a device once; got {same.pattern!r} and {wish.pattern!r}; leave one of them out"
            )
    order: list[Target | None] = list(_FORMS)
    fallback = [] if watts is None else [_wish(None, "", "watts", watts)]
    return (*sorted(wishes, key=lambda wish: order.index(wish.target)), *fallback)


def _device(wish: PowerWish) -> str:
    if wish.target != "pci":
        return wish.pattern.lower() if wish.target == "uuid" else wish.pattern
    domain, bus, device = f"0:{wish.pattern}".lower().split(":")[-3:]
    return f"{domain.lstrip('0')}:{bus}:{device}"


def _target(key: str) -> tuple[Target, str]:
    prefix, colon, pattern = key.partition(":")
    for target, (form, description) in _FORMS.items():
        if colon and prefix == target:
            refuse_if(not form.match(pattern), "limits key", f"be {description}", key)
            return target, pattern
    words = ", ".join(f"'{target}:'" for target in _FORMS)
    raise GpuConstructsError(f"limits key must start with one of {words}; got {key!r}{did_you_mean(prefix, _FORMS)}")


def _wish(target: Target | None, pattern: str, field: str, limit: int | str) -> PowerWish:
    if not isinstance(limit, str):
        fields.whole_number(field, limit, minimum=1, maximum=_HIGHEST_WATTS, way_out=_WAY_OUT if target is None else "")
        return PowerWish(target, pattern, watts=limit)
    if limit == "default":
        return PowerWish(target, pattern)
    percent = _PERCENT.match(limit)
    if percent is None:
        way_out = f"give the number {limit}" if limit.isdecimal() else "watts are an int, without a unit"
        raise GpuConstructsError(
            f"{field} must be whole watts, a share of the board's default like '80%', or 'default'; got {limit!r}; "
            f"{way_out}"
        )
    if not 1 <= int(percent[1]) <= _HIGHEST_PERCENT:
        raise GpuConstructsError(
            f"{field} must be from '1%' to '{_HIGHEST_PERCENT}%', which is more than any board takes; got {limit!r}"
        )
    return PowerWish(target, pattern, percent=int(percent[1]))


# The script reads no more digits.
_MOST_SECONDS = 9_999_999
_LEAST_SECONDS = {"interval_seconds": 10, "start_timeout_seconds": 0}
_WAYS_OUT = {"interval_seconds": "leave it out for a look every 1800 seconds"}


@dataclass(frozen=True, kw_only=True)
class AgentSettings:
    """Settings of the script that an agent runs; their meaning is that of the keywords of ``PowerLimit``.

    Raises:
        GpuConstructsError: A number of seconds is out of its range.
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
        """Return the settings as environment variables of the script."""
        settings = {one.name.upper(): getattr(self, one.name) for one in dataclasses.fields(self)}
        return {name: str(int(value) if isinstance(value, bool) else value) for name, value in settings.items()}

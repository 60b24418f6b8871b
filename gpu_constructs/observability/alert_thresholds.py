"""Values from which on an alert is raised, and how long its condition must hold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import ClassVar

from gpu_constructs.errors import refuse_if
from gpu_constructs.kube import durations, fields

Duration = int | str
"""Seconds, or a text like ``90s`` or ``1h30m``."""

_DURATIONS = {"idle": 300, "xid_window": 60, "lost_window": 600, "collection_stale": 60}
"""The shortest that make sense, in seconds: at 60 seconds between scrapes, less would see one sample."""

_UNLIMITED = 2**31 - 1
_NUMBERS = {
    "slowdown_margin": (0, 40),
    "power_throttled_utilization": (0, 99),
    "power_limit_tolerance": (1, _UNLIMITED),
    "ecc_corrected_per_hour": (1, _UNLIMITED),
    "pcie_replays_per_minute": (1, _UNLIMITED),
}
"""Least and most of each number."""

_RATIOS = ("vram_ratio", "thermal_throttled_ratio", "power_throttled_ratio")
_LONGEST = 30 * 24 * 3600
_COOLEST, _HOTTEST = 40, 110
_LEVELS = ("thresholds.temperature_warning", "thresholds.temperature_critical")
_BOARD = re.compile(r"[\w *?\[\]!().,/+-]+\Z", re.ASCII)


def seconds(name: str, duration: Duration) -> int:
    """Return a duration in seconds.

    Raises:
        GpuConstructsError: It cannot be read, or has a fraction of a second.
    """
    if not isinstance(duration, str):
        return duration
    number, rest = divmod(durations.from_go_duration(name, duration), timedelta(seconds=1))
    refuse_if(rest, name, "be in whole seconds", duration)
    return number


def _check_duration(name: str, duration: Duration, shortest: int) -> None:
    bounds = f"be from {shortest} seconds to 30 days"
    refuse_if(not shortest <= seconds(name, duration) <= _LONGEST, name, bounds, duration)


def _ratio(name: str, share: float) -> None:
    refuse_if(not 0 < share < 1, name, "be a share above 0 and below 1, like 0.97", share)


@dataclass(frozen=True, kw_only=True)
class AlertThresholds(fields.Options):
    """What the alerts of ``GpuAlerts`` compare with.

    Durations are seconds or a text like ``90s`` or ``1h30m``, in whole seconds. A window that is too short for four
    scrapes is as long as four.

    Attributes:
        temperature_warning: Degrees Celsius; 85 by default, below where an A100 (89) or RTX 3090 (95) slows down.
        temperature_critical: Degrees Celsius; 92 by default. Where a GPU tells at what temperature it slows down,
            that less ``slowdown_margin`` counts instead.
        slowdown_margin: Degrees Celsius below the slowdown temperature; 2 by default.
        temperatures_by_model: Warning and critical temperature of some models, by a pattern of their name with
            ``*``, ``?`` and ``[...]``; the first that fits wins, over the slowdown temperature too.
        vram_ratio: Share of the memory in use; 0.97 by default: inference servers take 0.9 and more on purpose.
        vram_ignored_namespaces: Whose GPUs may be full; takes an exporter that names pods.
        idle: How long a pod may hold a GPU without using it; 2 hours by default.
        thermal_throttled_ratio: Share of time held back by heat; 0.1 by default.
        power_throttled_ratio: Share of time held back by the power limit; 0.5 by default, since a limit is there
            to hold back.
        power_throttled_utilization: Percent of utilisation below which being held back does not count; 50 by
            default. An idle RTX 3090 says that it is held back.
        power_limit_tolerance: Watts by which a power limit may be off; 1 by default, what rounding to whole watts
            takes.
        ecc_corrected_per_hour: Corrected memory errors in an hour; 100 by default.
        pcie_replays_per_minute: PCIe packets sent again in a minute; 10 by default, a good link has none.
        xid_critical: XIDs after which NVIDIA's catalogue demands a reset of the GPU or a restart of the node.
        xid_warning: XIDs that cost one application, or announce worse.
        xid_ignored: XIDs that are no fault of a GPU: errors of an application, and notes of the driver.
        xid_window: How long an XID counts as news; 15 minutes by default.
        lost_window: How long a missing GPU is missed; 6 hours by default.
        collection_stale: Age of the last good reading (nvidia_gpu_exporter only); 5 minutes by default.
        pending: How long an alert's condition must hold before it fires, where another time than its own is
            wanted, by name: ``{"GpuMemoryNearlyFull": "1h"}``.

    Raises:
        GpuConstructsError: A number out of its range, critical not above warning, an XID in two lists, or a
            duration that cannot be read.

    Sources: docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html, column "Immediate Action": RESET_GPU and
    RESTART_BM are critical, and so are 48 and 74 by their text; 155 (a link that was taken down) and 156 (a spare
    that the next reset takes into use) are not. NVIDIA/DCGM@v4.5.3:modules/health/DcgmHealthWatch.cpp: the warnings.
    """

    temperature_warning: int = 85
    temperature_critical: int = 92
    slowdown_margin: int = 2
    temperatures_by_model: Mapping[str, tuple[int, int]] | None = None
    vram_ratio: float = 0.97
    vram_ignored_namespaces: Sequence[str] = ()
    idle: Duration = "2h"
    thermal_throttled_ratio: float = 0.1
    power_throttled_ratio: float = 0.5
    power_throttled_utilization: int = 50
    power_limit_tolerance: int = 1
    ecc_corrected_per_hour: int = 100
    pcie_replays_per_minute: int = 10
    xid_critical: Sequence[int] = (46, 48, 62, 64, 74, 79, 95, 109, 110, 119, 120, 136, 140, 143, 158)
    xid_warning: Sequence[int] = (32, 38, 39, 42, 54, 56, 57, 58, 60, 61, 67, 73, 94, 121, 137)
    xid_ignored: Sequence[int] = (13, 31, 43, 45, 63, 92)
    xid_window: Duration = "15m"
    lost_window: Duration = "6h"
    collection_stale: Duration = "5m"
    pending: Mapping[str, Duration] | None = None

    _NAME: ClassVar[str] = "thresholds"
    _CHECKS: ClassVar[fields.Checks] = {
        **dict.fromkeys(_RATIOS, _ratio),
        **{name: partial(fields.whole_number, minimum=least, maximum=most) for name, (least, most) in _NUMBERS.items()},
        **{name: partial(_check_duration, shortest=shortest) for name, shortest in _DURATIONS.items()},
        "vram_ignored_namespaces": partial(fields.each, fields.dns_label),
        "pending": fields.entries(partial(_check_duration, shortest=0)),
    }

    def _conflicts(self) -> Iterable[fields.Conflict]:
        temperatures = {_LEVELS: (self.temperature_warning, self.temperature_critical)}
        for pattern, levels in (self.temperatures_by_model or {}).items():
            yield (
                not _BOARD.match(pattern),
                f"thresholds.temperatures_by_model must have names like '*RTX 3090*' as keys; got {pattern!r}",
            )
            place = f"thresholds.temperatures_by_model[{pattern!r}]"
            temperatures[f"{place}[0]", f"{place}[1]"] = levels
        for names, (warning, critical) in temperatures.items():
            for name, value in zip(names, (warning, critical), strict=True):
                fields.whole_number(name, value, minimum=_COOLEST, maximum=_HOTTEST)
            yield critical <= warning, f"{names[1]} must be above the {warning} of the warning; got {critical}"
        seen: dict[int, str] = {}
        for name in ("xid_critical", "xid_warning", "xid_ignored"):
            for xid in getattr(self, name):
                fields.whole_number(f"thresholds.{name}", xid, minimum=1, maximum=999)
                other = seen.setdefault(xid, name)
                yield (
                    other != name,
                    f"thresholds.{name} must not hold what {other} holds; got {xid} in both; leave one of them out",
                )


def prometheus_duration(number: int) -> str:
    """Return seconds as Prometheus writes them: ``1h30m``."""
    parts = []
    for unit, size in (("h", 3600), ("m", 60), ("s", 1)):
        count, number = divmod(number, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"

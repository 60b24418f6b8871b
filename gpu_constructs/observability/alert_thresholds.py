"""Thresholds of the GPU alerts, and the times for which a value must exceed its threshold before an alert fires."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import ClassVar

from gpu_constructs.errors import refuse_if
from gpu_constructs.kube import durations, fields
from gpu_constructs.records import dataclass, regex

Duration = int | str
"""A time: seconds as an int, or a text such as ``90s`` or ``1h30m``."""

_DURATIONS = {"idle": 300, "xid_window": 60, "lost_window": 600, "collection_stale": 60}
"""Shortest window of each alert, in seconds. With a scrape every 60 seconds, a shorter window has only one sample."""

_UNLIMITED = 2**31 - 1
_NUMBERS = {
    "slowdown_margin": (0, 40),
    "power_throttled_utilization": (0, 99),
    "power_limit_tolerance": (1, _UNLIMITED),
    "ecc_corrected_per_hour": (1, _UNLIMITED),
    "pcie_replays_per_minute": (1, _UNLIMITED),
}
"""Lowest and highest allowed value of each threshold that is a number."""

_RATIOS = ("vram_ratio", "thermal_throttled_ratio", "power_throttled_ratio")
_LONGEST = 30 * 24 * 3600
_COOLEST, _HOTTEST = 40, 110
_LEVELS = ("thresholds.temperature_warning", "thresholds.temperature_critical")
_BOARD = regex(r"[\w *?\[\]!().,/+-]+\Z", re.ASCII)


def seconds(name: str, duration: Duration) -> int:
    """Convert a duration (seconds as an int, or a text such as ``1h30m``) to seconds.

    ``name`` is the name of the option, such as ``idle``, for error messages.

    Raises:
        GpuConstructsError: If the duration is not valid, or has a fraction of a second.
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
    """Thresholds for the alerts of ``GpuAlerts``.

    A duration is an int in seconds, or a text such as ``90s`` or ``1h30m``. Fractions of a second are not allowed. A
    query over the last ``idle``, ``xid_window`` or ``lost_window`` covers at least four scrapes, even if you set less.

    Attributes:
        temperature_warning: Temperature for a warning, in degrees Celsius. 85 by default, which is below the
            temperature at which an A100 (89) or an RTX 3090 (95) slows down.
        temperature_critical: Temperature for a critical alert, in degrees Celsius. 92 by default. If a GPU reports the
            temperature at which it slows down, the alert uses that temperature minus ``slowdown_margin`` instead.
        slowdown_margin: Degrees Celsius to subtract from the slowdown temperature of a GPU. 2 by default.
        temperatures_by_model: Pairs (warning, critical) of temperatures for some GPU models, by a pattern of the model
            name with ``*``, ``?`` and ``[...]``. The first matching pattern wins. Its temperatures also replace the
            slowdown temperature that the GPU reports.
        vram_ratio: Share of GPU memory in use above which the alert fires. 0.97 by default, because inference servers
            use 0.9 and more on purpose.
        vram_ignored_namespaces: Namespaces whose pods may fill the memory of a GPU. Needs an exporter
            whose series have pod labels.
        idle: Time for which a pod may have a GPU and not use it. 2 hours by default.
        thermal_throttled_ratio: Share of time in which heat slows a GPU down, above which the alert fires. 0.1 by
            default.
        power_throttled_ratio: Share of time in which the power limit slows a GPU down, above which the alert fires. 0.5
            by default, because a limit slows GPUs down on purpose.
        power_throttled_utilization: Percentage of GPU use above which the alert counts throttling by the power limit.
            50 by default, because an idle RTX 3090 also reports throttling.
        power_limit_tolerance: Difference between the requested and the actual power limit that the alert accepts, in
            watts. 1 by default, because of rounding to whole watts.
        ecc_corrected_per_hour: Number of corrected memory errors per hour above which the alert fires. 100 by default.
        pcie_replays_per_minute: Number of PCIe packets sent again per minute above which the alert fires. 10 by
            default. A good connection has none.
        xid_critical: XIDs (error numbers of the NVIDIA driver) of the alert ``GpuXidCritical``. For most of them,
            NVIDIA's catalog requires a reset of the GPU or a restart of the node.
        xid_warning: XIDs of the alert ``GpuXidWarning``. They end one application, or precede worse errors.
        xid_ignored: XIDs without an alert, because they report errors of an application, or no error at all.
        xid_window: Time for which an alert stays active after an XID. 15 minutes by default.
        lost_window: Time for which an alert stays active after a GPU disappears. 6 hours by default.
        collection_stale: Age of the last successful reading above which the alert fires. Only nvidia_gpu_exporter
            reports it. 5 minutes by default.
        pending: Time for which a value must exceed its threshold before the alert fires, by name of the alert. It
            replaces the default of the alert. For example ``{"GpuMemoryNearlyFull": "1h"}``.

    Raises:
        GpuConstructsError: If a number is out of its range, a critical temperature is not above the warning
            temperature, an XID is in two lists, or a duration is not valid.

    Sources: docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html, column "Immediate Action": XIDs with
        RESET_GPU or RESTART_BM are critical, except 155 (an inactive link) and 156 (a spare that the next reset
        activates). 48 and 74 are critical because of their description.
        NVIDIA/DCGM@v4.5.3:modules/health/DcgmHealthWatch.cpp: ``xid_warning``.
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
                f"thresholds.temperatures_by_model must have names like '*RTX 3090*' as keys, got {pattern!r}",
            )
            place = f"thresholds.temperatures_by_model[{pattern!r}]"
            temperatures[f"{place}[0]", f"{place}[1]"] = levels
        for names, (warning, critical) in temperatures.items():
            for name, value in zip(names, (warning, critical), strict=True):
                fields.whole_number(name, value, minimum=_COOLEST, maximum=_HOTTEST)
            yield critical <= warning, f"{names[1]} must be above the {warning} of the warning, got {critical}"
        seen: dict[int, str] = {}
        for name in ("xid_critical", "xid_warning", "xid_ignored"):
            for xid in getattr(self, name):
                fields.whole_number(f"thresholds.{name}", xid, minimum=1, maximum=999)
                other = seen.setdefault(xid, name)
                yield (
                    other != name,
                    f"thresholds.{name} must not contain an XID of {other}, got {xid} in both. Remove it from one",
                )


def prometheus_duration(number: int) -> str:
    """Return seconds as a duration in the format of Prometheus, for example ``1h30m``."""
    parts = []
    for unit, size in (("h", 3600), ("m", 60), ("s", 1)):
        count, number = divmod(number, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"

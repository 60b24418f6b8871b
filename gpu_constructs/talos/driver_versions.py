"""Which NVIDIA driver each Talos release ships."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gpu_constructs.platforms import Talos

Branch = Literal["production", "lts"]


@dataclass(frozen=True)
class _Drivers:
    line: str
    first: int
    last: int
    lts: str
    production: str
    candidate: str = ""


# siderolabs/extensions@v1.10.0..v1.14.0-rc.1:nvidia-gpu/vars.yaml; a row for the patch releases that share a pair,
# and for a candidate where no release of the line is known yet.
_DRIVERS = (
    _Drivers("1.10", 0, 1, "535.230.02", "570.124.06"),
    _Drivers("1.10", 2, 3, "535.247.01", "570.133.20"),
    _Drivers("1.10", 4, 9, "535.247.01", "570.148.08"),
    _Drivers("1.11", 0, 6, "535.247.01", "570.172.08"),
    _Drivers("1.12", 0, 1, "580.105.08", "570.195.03"),
    _Drivers("1.12", 2, 3, "580.126.09", "570.211.01"),
    _Drivers("1.12", 4, 5, "580.126.16", "570.211.01"),
    _Drivers("1.12", 6, 11, "580.126.20", "570.211.01"),
    _Drivers("1.13", 0, 0, "580.126.20", "595.58.03"),
    _Drivers("1.13", 1, 2, "580.159.03", "595.71.05"),
    _Drivers("1.13", 3, 4, "580.159.04", "595.71.05"),
    _Drivers("1.13", 5, 6, "580.167.08", "595.71.05"),
    _Drivers("1.13", 7, 8, "580.173.02", "595.71.05"),
    _Drivers("1.13", 9, 9, "580.178.04", "595.91.07"),
    _Drivers("1.14", 0, -1, "580.178.04", "595.91.07", candidate="1.14.0-rc.1"),
)


def patch_release(platform: Talos) -> str | None:
    """Give ``1.12.4`` for ``Talos("v1.12.4")``, ``1.14.0-rc.1`` for that candidate, None for a mere line."""
    rest = platform.version.removeprefix("v").removeprefix(platform.line).removeprefix(".")
    patch, dash, candidate = rest.partition("-")
    return f"{platform.line}.{int(patch)}{dash}{candidate}" if patch else None


def newest_known_release(platform: Talos) -> str:
    """Give the newest patch release of the platform's line that we know, or a candidate for its first."""
    row = [row for row in _DRIVERS if row.line == platform.line][-1]
    return row.candidate or f"{row.line}.{row.last}"


def driver_version(platform: Talos, branch: Branch) -> str | None:
    """Give the driver of a branch in a patch release; None for a line or a release we do not know."""
    release = patch_release(platform)
    for row in _DRIVERS:
        releases = [row.candidate, *(f"{row.line}.{patch}" for patch in range(row.first, row.last + 1))]
        if release in releases:
            return row.lts if branch == "lts" else row.production
    return None


def driver_branch(platform: Talos, branch: Branch) -> int:
    """Give NVIDIA's number of a branch, 570 for 570.211.01; it is the same for a whole line."""
    row = next(row for row in _DRIVERS if row.line == platform.line)
    return int((row.lts if branch == "lts" else row.production).partition(".")[0])

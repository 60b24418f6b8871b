"""Functions that check which combinations of MIG devices a board supports.

The memory of a board has slices of equal size. Each MIG device takes adjacent slices. A *layout* is the number of MIG
devices on a board by MIG profile, such as ``{"1g.5gb": 2, "3g.20gb": 1}``. *Attributes* of a MIG profile are suffixes
such as ``+me``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gpu_constructs.catalog.mig_profiles import MIG_PROFILES, normal_profile, size_of

_MOST_COMPUTE_SLICES = 7


class Placement(NamedTuple):
    """The memory slices of a board that a MIG device of one profile can take.

    Attributes:
        width: Number of adjacent memory slices that the device takes.
        starts: Numbers of the memory slices that can be the first slice of the device. The first slice of a board is 0.
    """

    width: int
    starts: tuple[int, ...]


# The placements are in the order of the profiles in MIG_PROFILES. Only a device with two or more memory slices can use
# the last slice.
# Source: output of nvidia-smi mig -lgipp for A30, A100 and H100 in NVIDIA Multi-Instance GPU User Guide, "Creating GPU
# Instances"; NVIDIA/go-nvml@v0.13.3-0:pkg/nvml/mock/gpus/a30.go and a100.go (h100.go and later files differ from the
# output of boards). For H200, B200 and later, the fractions and numbers of devices in the guide imply the placements.
_IN_EIGHTHS = (
    Placement(1, (0, 1, 2, 3, 4, 5, 6)),
    Placement(2, (0, 2, 4, 6)),
    Placement(2, (0, 2, 4)),
    Placement(4, (0, 4)),
    Placement(4, (0,)),
    Placement(8, (0,)),
)
_IN_FOURTHS = (Placement(1, (0, 1, 2, 3)), Placement(2, (0, 2)), Placement(4, (0,)))

# Source: NVIDIA Multi-Instance GPU User Guide, "Supported MIG Profiles"
_ATTRIBUTES_OF_A30 = (("", "+me"), ("", "+me"), ("",))
_ATTRIBUTES_IN_EIGHTHS = (("", "+me"), *[("",)] * 5)
_ATTRIBUTES_OF_RTX_PRO_6000 = (
    ("", "+me", "+gfx", "+me.all", "-me"),
    ("", "+gfx", "+me.all", "-me"),
    ("", "+gfx"),
)


def placements(model_name: str | None) -> Mapping[str, Placement] | None:
    """Return the memory slices of a board that a MIG device can take, by MIG profile of the device.

    Return an empty mapping if the board does not support MIG. Return None if the MIG profiles of the board are unknown.
    The profiles in the result have no attributes such as ``+me``, which do not change the slices of a device.
    """
    profiles = MIG_PROFILES.get(model_name or "")
    if not profiles:
        return None if profiles is None else {}
    return dict(zip(profiles, _IN_FOURTHS if len(profiles) == len(_IN_FOURTHS) else _IN_EIGHTHS, strict=True))


def profiles_of(model_name: str) -> tuple[str, ...]:
    """Return the MIG profiles that a board supports, with and without attributes, such as ``1g.5gb`` and ``1g.5gb+me``.

    Return an empty tuple if the board is unknown or does not support MIG.
    """
    profiles = MIG_PROFILES.get(model_name, ())
    if len(profiles) == len(_IN_EIGHTHS):
        attributes: Sequence[tuple[str, ...]] = _ATTRIBUTES_IN_EIGHTHS
    else:
        attributes = _ATTRIBUTES_OF_A30 if model_name == "NVIDIA A30" else _ATTRIBUTES_OF_RTX_PRO_6000
    return tuple(size + each for size, some in zip(profiles, attributes, strict=False) for each in some)


def _unknown_profile(model_name: str, profile: str, known: Sequence[str]) -> str:
    has = [one for one in known if one == size_of(one) or size_of(one) == size_of(profile)]
    return f"{model_name} has no {profile!r}: it has {', '.join(has)}"


def layout_problem(model_name: str | None, layout: Mapping[str, int]) -> str | None:
    """Return the reason why a board does not support a layout of MIG devices. Return None if it supports the layout.

    Args:
        model_name: Name of the board, as in ``GPU_MODELS``. If the name is None, or the MIG profiles of the board are
            unknown, the function checks only that the devices have at most seven compute slices.
        layout: Number of MIG devices by MIG profile.
    """
    layout = {normal_profile(profile): count for profile, count in layout.items() if count}
    slices = sum(_compute_slices(profile) * count for profile, count in layout.items())
    where = placements(model_name)
    if model_name is None or where is None:
        most = _MOST_COMPUTE_SLICES
        return f"it takes {slices} compute slices, and no board has more than {most}" if slices > most else None
    if layout and not where:
        return f"{model_name} does not support MIG"
    known = profiles_of(model_name)
    unknown = next((profile for profile in layout if profile not in known), None)
    if unknown is not None:
        return _unknown_profile(model_name, unknown, known)
    most = max((_compute_slices(profile) for profile in known), default=0)
    if slices > most:
        return f"it takes {slices} compute slices, and {model_name} has {most}"
    return _engines_problem(layout) or _placement_problem(model_name, where, layout)


def fits(model_name: str | None, layout: Mapping[str, int]) -> bool:
    """Check whether a board supports a layout of MIG devices."""
    return layout_problem(model_name, layout) is None


def _compute_slices(profile: str) -> int:
    return int(profile.partition("g.")[0])


def _engines_problem(layout: Mapping[str, int]) -> str | None:
    """Return the reason why a board cannot assign its media engines to the MIG devices of a layout, otherwise None.

    Media engines are for example video decoders. Only one MIG device of a board can have a profile with ``+me`` or
    ``+me.all``. With ``+me.all``, all other devices need a profile with ``-me``.
    """
    extended = [profile for profile in layout if profile.endswith(("+me", "+me.all"))]
    if sum(layout[profile] for profile in extended) > 1:
        return f"only one device of a board has the media extensions of {' and '.join(map(repr, extended))}"
    others = [profile for profile in layout if not profile.endswith(("+me.all", "-me"))]
    if others and any(profile.endswith("+me.all") for profile in extended):
        return (
            f"{extended[0]!r} takes all media engines of the board, so all other devices need a profile without them, "
            f"like '{size_of(others[0])}-me', not {others[0]!r}"
        )
    return None


def _placement_problem(model_name: str, where: Mapping[str, Placement], layout: Mapping[str, int]) -> str | None:
    devices = sorted(
        (profile for profile, count in layout.items() for _ in range(count)),
        key=lambda profile: (len(where[size_of(profile) or ""].starts), profile),
    )
    spans = [where[size_of(profile) or ""] for profile in devices]
    for number, last in enumerate(devices):
        if not _have_place(spans[: number + 1]):
            starts = " or ".join(str(start) for start in spans[number].starts)
            beside = devices[:number]
            others = " and ".join(f"{beside.count(profile)} x {profile!r}" for profile in dict.fromkeys(beside))
            return (
                f"{last!r} does not fit beside {others}: of the {max(place.width for place in where.values())} memory "
                f"slices of {model_name}, it needs {spans[number].width} in a row, beginning with number {starts}"
            )
    return None


def _have_place(devices: Sequence[Placement], taken: int = 0) -> bool:
    """Check whether a board has enough memory slices for all given MIG devices.

    Args:
        devices: Memory slices that each device can take.
        taken: Bit mask of the memory slices that other devices already take: bit 0 is the first slice.
    """
    if not devices:
        return True
    first, *rest = devices
    spans = (((1 << first.width) - 1) << start for start in first.starts)
    return any(_have_place(rest, taken | span) for span in spans if not taken & span)

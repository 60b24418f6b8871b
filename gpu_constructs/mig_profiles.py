"""The profiles by which Multi-Instance GPU (MIG) divides a board."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from gpu_constructs import _fields
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.gpu_models import GPU_MODELS

# Memory in GB that a profile of so many compute slices has on one board or another: NVIDIA/mig-parted@v0.9.1,
# deployments/ and the profiles its code names.
_MEMORY = {
    1: (5, 6, 10, 12, 16, 18, 20, 23, 24, 34, 35, 36, 45, 47, 67, 70),
    2: (10, 12, 20, 24, 32, 35, 36, 45, 47, 48, 67, 70),
    3: (20, 40, 47, 48, 71, 72, 90, 93, 95, 135, 139),
    4: (20, 24, 40, 47, 48, 71, 72, 90, 93, 95, 96, 135, 139),
    7: (40, 80, 94, 96, 141, 144, 180, 186, 189, 269, 278),
}
_SIZES = tuple(f"{slices}g.{memory}gb" for slices, sizes in _MEMORY.items() for memory in sizes)
_A100_40GB = ("1g.5gb", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb")
_80GB = ("1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb")
_H200 = ("1g.18gb", "1g.35gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb")

MIG_PROFILES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "NVIDIA A100-SXM4-40GB": _A100_40GB,
        "NVIDIA A100-SXM4-80GB": _80GB,
        "NVIDIA H100 80GB HBM3": _80GB,
        "NVIDIA H200": _H200,
        **{name: () for name in GPU_MODELS if "GeForce" in name},
        **dict.fromkeys(("NVIDIA A10G", "NVIDIA L4", "NVIDIA L40S"), ()),
    }
)
"""The MIG profiles of a board without their attributes, none for a board without MIG; others are not known.

Source: NVIDIA/mig-parted@v0.9.1:deployments/container/nvidia-mig-manager-example-hopper.yaml and -example.yaml
"""

_SIZE = re.compile(r"[0-9]g\.[0-9]+gb")
_ATTRIBUTES = re.compile(r"([0-9]g\.[0-9]+gb)((?:[+.-](?:me\.all|me|gfx))*)\Z")


def require_mig_profile(field: str, got: str) -> None:
    """Refuse a profile that no board has.

    Raises:
        GpuConstructsError: With the nearest one.
    """
    match = _ATTRIBUTES.match(got)
    if match is None or match[1] not in _SIZES:
        near = _fields.did_you_mean(got, _SIZES)
        raise GpuConstructsError(
            f"{field} must be a MIG profile of a board, like '1g.10gb' or '1g.10gb+me'; got {got!r}{near}"
        )


def size_of(profile: str) -> str | None:
    """Give a profile without its attributes, whatever follows; None where the text is none."""
    match = _SIZE.match(profile)
    return match[0] if match else None


def memory_gb(size: str) -> int:
    """Give the memory that a profile names, which a device has at most."""
    return int(size.partition("g.")[2].removesuffix("gb"))


def mig_resource(profile: str) -> str:
    """Give the extended resource of a profile under the MIG strategy ``mixed``: ``+`` is not allowed in one."""
    return f"nvidia.com/mig-{profile.replace('+', '.')}"

"""MIG (Multi-Instance GPU) profiles that each board supports, and the memory of MIG devices with these profiles.

The name of a profile such as ``1g.10gb+me`` states the number of compute slices (1), the memory (10 GB) and attributes
(``+me``: media engines) of a MIG device.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from gpu_constructs.catalog.gpu_models import GPU_MODELS
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.kube import fields

# Memory sizes of all profiles in GB, by number of compute slices: NVIDIA/mig-parted@v0.9.1, deployments/ and the
# profiles in its code.
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
_RTX_PRO_6000 = ("1g.24gb", "2g.48gb", "4g.96gb")
_RTX_PRO_6000_EDITIONS = ("Max-Q Workstation", "Server", "Workstation")

MIG_PROFILES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "NVIDIA A30": ("1g.6gb", "2g.12gb", "4g.24gb"),
        "NVIDIA A100-PCIE-40GB": _A100_40GB,
        "NVIDIA A100-SXM4-40GB": _A100_40GB,
        "NVIDIA A100 80GB PCIe": _80GB,
        "NVIDIA A100-SXM4-80GB": _80GB,
        "NVIDIA H100 80GB HBM3": _80GB,
        "NVIDIA H100 PCIe": _80GB,
        "NVIDIA H100 NVL": ("1g.12gb", "1g.24gb", "2g.24gb", "3g.47gb", "4g.47gb", "7g.94gb"),
        "NVIDIA GH200 480GB": ("1g.12gb", "1g.24gb", "2g.24gb", "3g.48gb", "4g.48gb", "7g.96gb"),
        "NVIDIA H200": _H200,
        "NVIDIA H200 NVL": _H200,
        "NVIDIA B200": ("1g.23gb", "1g.45gb", "2g.45gb", "3g.90gb", "4g.90gb", "7g.180gb"),
        "NVIDIA GB200": ("1g.23gb", "1g.47gb", "2g.47gb", "3g.93gb", "4g.93gb", "7g.186gb"),
        "NVIDIA B300 SXM6 AC": ("1g.34gb", "1g.67gb", "2g.67gb", "3g.135gb", "4g.135gb", "7g.269gb"),
        **{f"NVIDIA RTX PRO 6000 Blackwell {edition} Edition": _RTX_PRO_6000 for edition in _RTX_PRO_6000_EDITIONS},
        **{name: () for name in GPU_MODELS if "GeForce" in name},
        **dict.fromkeys(("NVIDIA A10", "NVIDIA A10G", "NVIDIA A40", "NVIDIA L4", "NVIDIA L40", "NVIDIA L40S"), ()),
        **dict.fromkeys(("NVIDIA RTX 6000 Ada Generation", "NVIDIA RTX A6000", "Tesla T4"), ()),
    }
)
"""MIG profiles without attributes, by name of the board. The value is empty if the board does not support MIG.

A board whose MIG profiles are unknown has no entry. The profiles of a board with seven compute slices have 1, 1 (with
twice the memory), 2, 3, 4 and 7 slices, in this order. The profiles of a board with four compute slices have 1, 2 and
4 slices.

Source: NVIDIA/mig-parted@v0.9.1:deployments/container/nvidia-mig-manager-example-hopper.yaml and -example.yaml,
NVIDIA/mig-parted@bd7160f:deployments/systemd/config-default.yaml; NVIDIA Multi-Instance GPU User Guide, "Supported MIG
Profiles"
"""

# Memory of a device of each profile in MiB, by architecture and largest profile. The value is the smallest one that
# nvidia-smi prints with several drivers, or None for an unknown value.
# Source: output of nvidia-smi mig -lgip in NVIDIA/mig-parted issues and pull requests 101 (H100 NVL), 120 (H200), 166
# and 187 (B200), NVIDIA/gpu-operator 1303 (GB200), GoogleCloudPlatform/container-engine-accelerators 564 and
# bigstack-oss/cubecos 312 (RTX PRO 6000), and in many places for A30 and A100;
# NVIDIA/go-nvml@v0.13.3-0:pkg/nvml/mock/gpus/a100.go (7g.80gb of the A100);
# utkuozdemir/nvidia_gpu_exporter:internal/captures (H100)
_DEVICE_MIB: Mapping[tuple[str, str], tuple[int | None, ...]] = {
    ("Ampere", "4g.24gb"): (5952, 11968, 24000),
    ("Ampere", "7g.40gb"): (4864, 9856, 9856, 19968, 19968, 40192),
    ("Ampere", "7g.80gb"): (9728, 19968, 19968, 40192, 40192, 80384),
    ("Hopper", "7g.80gb"): (9984, 20096, 20096, 40448, 40448, 81152),
    ("Hopper", "7g.94gb"): (11008, 22144, 22144, 47488, 47488, 95360),
    ("Hopper", "7g.141gb"): (16384, 33024, 33024, 71168, 71168, None),
    ("Blackwell", "4g.96gb"): (23680, 48512, 97280),
    ("Blackwell", "7g.180gb"): (20992, 45312, 45312, None, None, None),
    ("Blackwell", "7g.186gb"): (20480, 46592, 46592, None, None, None),
}

_SIZE = fields.regex(r"[0-9]g\.[0-9]+gb")
_ATTRIBUTES = fields.regex(r"([0-9]g\.[0-9]+gb)((?:[+.-](?:me\.all|me|gfx))*)\Z")


def require_mig_profile(field: str, got: str) -> None:
    """Raise if no board supports a MIG profile.

    Args:
        field: Name of the option in the message.
        got: Name of the MIG profile, such as ``1g.10gb+me``.

    Raises:
        GpuConstructsError: No board supports the profile. The message suggests a similar profile.
    """
    match = _ATTRIBUTES.match(got)
    if match is None or match[1] not in _SIZES:
        # A useful suggestion has the same number of slices or the same memory.
        slices, _, memory = got.partition("g.")
        alike = [one for one in _SIZES if one.startswith(f"{slices}g.") or one.endswith(f".{memory}")]
        near = fields.did_you_mean(got, alike if memory else _SIZES)
        raise GpuConstructsError(
            f"{field} must be a MIG profile of a board, like '1g.10gb' or '1g.10gb+me', got {got!r}{near}"
        )


def size_of(profile: str) -> str | None:
    """Return a MIG profile without its attributes, for example ``1g.10gb`` for ``1g.10gb+me``.

    Return None if the text does not start with the name of a MIG profile.
    """
    match = _SIZE.match(profile)
    return match[0] if match else None


def normal_profile(profile: str) -> str:
    """Convert a MIG profile in a resource name, such as ``1g.10gb.me``, to the form of NVIDIA tools, ``1g.10gb+me``."""
    return profile.replace("gb.", "gb+")


def memory_gb(size: str) -> int:
    """Return the memory that the name of a MIG profile states, for example 10 GB for ``1g.10gb``.

    A MIG device with this profile can have less memory.
    """
    return int(size.partition("g.")[2].removesuffix("gb"))


def mig_vram_mib(model_name: str | None, profile: str) -> int:
    """Return the memory of a MIG device with the given MIG profile, in MiB.

    If the memory is unknown, the result is the memory that the name of the profile states, which is an upper limit.

    Args:
        model_name: Name of the board, as in ``GPU_MODELS``; None for an unknown board.
        profile: Name of the MIG profile, with or without attributes. Attributes take no memory.
    """
    size = size_of(profile) or ""
    profiles, most = MIG_PROFILES.get(model_name or "", ()), memory_gb(size) * 1024
    if size not in profiles:
        return most
    model = GPU_MODELS[model_name or ""]
    seen = _DEVICE_MIB.get((model.architecture, profiles[-1]), (None,) * len(profiles))
    return seen[profiles.index(size)] or min(most, model.vram_mib or most)


def mig_resource(profile: str) -> str:
    """Return the resource name of devices with a MIG profile, such as ``nvidia.com/mig-1g.10gb.me`` for ``1g.10gb+me``.

    Nodes advertise this extended resource if the MIG strategy is ``mixed``.
    """
    return f"nvidia.com/mig-{profile.replace('+', '.')}"

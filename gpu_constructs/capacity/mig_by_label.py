"""How NVIDIA's MIG manager divides the GPUs of a node, by the configuration that the node's label names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.inventory import GpuNode
from gpu_constructs.mig_layouts import fits
from gpu_constructs.mig_profiles import MIG_PROFILES, normal_profile, require_mig_profile
from gpu_constructs.provided import Provided

MIG_CONFIG = "nvidia.com/mig.config"

_DISABLED = "all-disabled"
_EVEN = "all-"
_MOST_DEVICES = 7


def divided_by_label(
    node: GpuNode, provided: Sequence[Provided], labels: Mapping[str, str]
) -> tuple[GpuNode, list[str]]:
    """Give a node as its label says it is divided, unless the inventory says how it is, and what was assumed.

    Args:
        node: The node.
        provided: What the app's constructs say of themselves.
        labels: Of the node.
    """
    config = labels.get(MIG_CONFIG, "")
    if config in ("", _DISABLED) or node.mig_layout is not None or node.mig_profiles == ():
        return node, []
    way_out = "declare it with mig_layout= of the node"
    if not any(one.has_mig_manager for one in provided):
        return node, [f"nothing in this app divides GPUs by {MIG_CONFIG}={config}: taken as whole; {way_out}"]
    layout = _layout(None if node.model is None else node.model.name, config)
    if layout is None:
        return node, [f"{MIG_CONFIG}={config} names a configuration that is not known here: taken as whole; {way_out}"]
    try:
        divided = replace(node, mig_layout=layout)
    except GpuConstructsError as error:
        return node, [f"{MIG_CONFIG}={config} does not go with the node, which is taken as whole: {error.problem}"]
    listed = " and ".join(f"{count} x {profile}" for profile, count in layout.items())
    return divided, [f"each of its GPUs is divided into {listed}, as {MIG_CONFIG}={config} says"]


def _layout(board: str | None, config: str) -> Mapping[str, int] | None:
    """Give the MIG devices that a configuration makes of each board; None where that is not known.

    Source:
        NVIDIA/mig-parted@v0.9.1:deployments/systemd/config-default.yaml
    """
    profiles = MIG_PROFILES.get(board or "", ())
    if config == "all-balanced" and len(profiles) == 6:
        return {profiles[0]: 2, profiles[2]: 1, profiles[3]: 1}
    if config == "all-balanced" and board == "NVIDIA A30":
        return {profiles[0]: 2, profiles[1]: 1}
    profile = normal_profile(config.removeprefix(_EVEN))
    try:
        require_mig_profile(MIG_CONFIG, profile)
    except GpuConstructsError:
        return None
    most = max((count for count in range(1, _MOST_DEVICES + 1) if fits(board, {profile: count})), default=0)
    return {profile: most} if most and config.startswith(_EVEN) else None

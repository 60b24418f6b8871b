"""What the nodes of an inventory offer to pods, by what is declared of them and what the app does to them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TypeVar

from gpu_constructs.capacity.eligibility import taint_text
from gpu_constructs.capacity.node_labels import MigStrategy, labels_of, measured_mig_mib, single_profile
from gpu_constructs.capacity.node_offer import Device, NodeOffer
from gpu_constructs.inventory import GpuInventory, GpuNode
from gpu_constructs.mig_profiles import mig_resource, mig_vram_mib
from gpu_constructs.provided import GpuNodes, GpuOffer, PowerCap, Provided
from gpu_constructs.sharing import GPU, Sharing

GPU_CLASS = "gpu.nvidia.com"
MIG_CLASS = "mig.nvidia.com"

_CONFIG_CHOICE = "nvidia.com/device-plugin.config"
_MIG = "nvidia.com/mig-"
_One = TypeVar("_One")


@dataclass(frozen=True)
class _Plugin:
    """How the device plugin serves a node.

    Attributes:
        sharing: How it shares GPUs.
        mig_strategy: How it calls MIG devices.
        notes: What was assumed.
        is_running: Whether it comes up at all.
    """

    sharing: Sharing
    mig_strategy: MigStrategy
    notes: tuple[str, ...] = ()
    is_running: bool = True


@dataclass(frozen=True)
class _Said:
    """What the app says of device plugins.

    Attributes:
        sharing: How they share GPUs; None where nothing or more than one thing is said.
        mig_strategy: How they call MIG devices; None likewise.
        doubt: Why the sharing is not known.
        failure: Why the plugin does not start; empty where it does.
    """

    sharing: Sharing | None = None
    mig_strategy: MigStrategy | None = None
    doubt: str = "this app shares GPUs in more than one way, and nothing says which holds here"
    failure: str = ""


@dataclass(frozen=True)
class _Configured:
    """Labels and taints that the app's configuration of GPU nodes gives them, and what it leaves open."""

    nodes: GpuNodes
    open_labels: tuple[str, ...] = ()
    open_taints: tuple[str, ...] = ()


def node_offers(
    inventory: GpuInventory, provided: Sequence[Provided] = (), device_classes: Collection[str] = ()
) -> list[NodeOffer]:
    """Give what each node or pool of an inventory offers, in its order.

    Args:
        inventory: The nodes.
        provided: What the app's constructs say of themselves: sharing, MIG strategies, node configuration, power.
        device_classes: Classes of DRA that pods ask for. Without a device plugin in the app they stand in place of
            its resources; a board never counts for both.
    """
    configured = _configured(provided)
    has_plugin = any(one.gpu_offers or one.gpu_resources for one in provided)
    classes = () if has_plugin else tuple(sorted(device_classes))
    caps = [cap for one in provided for cap in one.power_caps]
    return [_offer(node, provided, configured, classes, caps) for node in inventory.nodes]


def _offer(
    node: GpuNode,
    provided: Sequence[Provided],
    configured: _Configured,
    classes: Sequence[str],
    caps: Sequence[PowerCap],
) -> NodeOffer:
    declared = {**configured.nodes.labels, **node.labels}
    notes: list[str] = [*_left_open(node, configured)]
    if classes and node.sharing is None:
        sharing = Sharing.none()
        devices, said = _devices_of_classes(node, classes)
        notes += said
        labels = labels_of(node, sharing, declared=declared)
    else:
        plugin = _plugin(node, provided, declared)
        sharing = plugin.sharing
        devices, said = _devices(node, plugin)
        notes += (*plugin.notes, *said)
        labels = labels_of(node, sharing, plugin.mig_strategy, declared)
    return NodeOffer(
        name=node.name,
        count=node.count,
        devices=devices,
        labels=labels,
        taints=_taints(node, configured.nodes),
        gpu_model="" if node.model is None else node.model.name,
        sharing=_in_words(sharing),
        gpu_watts=(_watts(node, labels, caps),) * node.gpus,
        rack=node.rack or "",
        notes=tuple(dict.fromkeys(notes)),
    )


def _in_words(sharing: Sharing) -> str:
    parts = [
        f"{sharing.strategy} x {replicas}{'' if resource == GPU else f' of {resource}'}"
        for resource, replicas in sharing.resources.items()
    ]
    return ", ".join(parts)


# How the plugin of the app serves a node


def _plugin(node: GpuNode, provided: Sequence[Provided], declared: Mapping[str, str]) -> _Plugin:
    said = _said(provided, declared.get(_CONFIG_CHOICE, ""))
    notes = []
    sharing = node.sharing or said.sharing
    if sharing is None:
        sharing = Sharing.none()
        notes.append(f"{said.doubt}: taken as exclusive; declare it with sharing= of the node")
    strategy: MigStrategy | None = node.mig_strategy or said.mig_strategy
    if strategy is None and any(node.layouts):
        strategy = "mixed"
        notes.append(
            "nothing in this app says by which strategy MIG devices are called here: taken as mixed; declare it with "
            "mig_strategy= of the node"
        )
    # Who says how its GPUs are shared knows of a plugin that runs.
    is_running = not said.failure or node.sharing is not None
    return _Plugin(sharing, strategy or "none", tuple(notes) if is_running else (said.failure,), is_running)


def _said(provided: Sequence[Provided], config: str) -> _Said:
    offers = [offer for one in provided for offer in one.gpu_offers]
    if offers:
        return _said_of(_configurations(offers, config), config)
    sharings: list[Sharing] = []
    is_mixed = False
    for resources in (one.gpu_resources for one in provided if one.gpu_resources):
        if _is_unseen(resources):
            return _Said(doubt="the configuration of this app's device plugin is not seen")
        is_mixed = is_mixed or any(name.startswith(_MIG) for name in resources)
        shared = [one for one in resources.values() if one.strategy != "none"]
        # Whole GPUs that are not shared, where GPUs are shared too, are those of another configuration.
        is_split = GPU in resources and resources[GPU] not in shared and any(GPU in one.resources for one in shared)
        sharings += [*shared, *([Sharing.none()] if is_split or not shared else [])]
    if not sharings:
        return _Said(doubt="no device plugin in this app says how GPUs are shared")
    return _Said(_only(sharings), "mixed" if is_mixed else None)


def _said_of(offers: Sequence[GpuOffer], config: str) -> _Said:
    if not offers:
        return _Said(
            Sharing.none(),
            failure=f"{_CONFIG_CHOICE}={config} names no configuration of this app's device plugin, which does not "
            "start there and offers nothing",
        )
    return _Said(_only([offer.sharing for offer in offers]), _only([offer.mig_strategy for offer in offers]))


def _configurations(offers: Sequence[GpuOffer], config: str) -> list[GpuOffer]:
    """Give those that may serve a node: one, unless the app has several plugins or chooses none."""
    if config and all(offer.config for offer in offers):
        return [offer for offer in offers if offer.config == config]
    return [offer for offer in offers if offer.is_default] or list(offers)


def _is_unseen(resources: Mapping[str, Sharing]) -> bool:
    """Tell whether a plugin with a configuration of somebody else may advertise anything."""
    return f"{GPU}.shared" in resources and resources[f"{GPU}.shared"].strategy == "none"


def _only(said: Sequence[_One]) -> _One | None:
    return said[0] if all(one == said[0] for one in said) else None


# Devices


def _devices(node: GpuNode, plugin: _Plugin) -> tuple[tuple[Device, ...], list[str]]:
    """Give what the plugin advertises, and what was assumed.

    Source:
        NVIDIA/k8s-device-plugin@v0.20.0:internal/rm/device_map.go, cmd/mps-control-daemon/mps/daemon.go
    """
    if not plugin.is_running:
        return (), []
    layouts = node.layouts
    is_divided = any(layouts)
    strategy, sharing = plugin.mig_strategy, plugin.sharing
    if is_divided and sharing.strategy == "mps":
        return (), ["MPS does not share GPUs of a node with MIG: its device plugin offers nothing"]
    if is_divided and strategy == "single" and single_profile(layouts) is None:
        why = "not every GPU is divided" if not all(layouts) else "there is more than one MIG profile"
        return (), [f"{why}, with which the MIG strategy single does not work: the device plugin offers nothing"]
    notes = _of_guessed_memory(node)
    if is_divided and strategy == "none":
        notes.append(
            "the device plugin's MIG strategy is none: it hands out divided GPUs whole, of which a container uses one "
            "MIG device"
        )
    devices: list[Device] = []
    for gpu, layout in enumerate(layouts):
        if not layout or strategy == "none":
            # CUDA takes one MIG device of a divided board, and nothing says which.
            mib = min((_mig_mib(node, profile) for profile in layout), default=node.usable_vram_mib)
            devices.append(_slots(GPU, sharing, mib, gpu, node.vram_mib))
            continue
        for profile, count in layout.items():
            resource = GPU if strategy == "single" else mig_resource(profile)
            devices += [_slots(resource, sharing, _mig_mib(node, profile), gpu, None, profile)] * count
    return tuple(devices), notes


def _slots(
    resource: str, sharing: Sharing, mib: int | None, gpu: int, total_mib: int | None, profile: str = ""
) -> Device:
    replicas = sharing.resources.get(resource, 1)
    # The daemon divides the memory of the board, whatever else is on it.
    each = total_mib // replicas if sharing.strategy == "mps" and replicas > 1 and total_mib is not None else None
    return Device(sharing.resource_name(resource), replicas, mib, gpu, profile, each)


def _mig_mib(node: GpuNode, profile: str) -> int:
    return mig_vram_mib(None if node.model is None else node.model.name, profile)


def _of_guessed_memory(node: GpuNode) -> list[str]:
    profiles = dict.fromkeys(profile for layout in node.layouts for profile in layout)
    guessed = [profile for profile in profiles if measured_mig_mib(node.model, profile) is None]
    return [f"the memory of MIG devices {', '.join(guessed)} is the most that their name allows"] if guessed else []


def _devices_of_classes(node: GpuNode, classes: Sequence[str]) -> tuple[tuple[Device, ...], list[str]]:
    """Give boards and MIG devices as a driver of DRA publishes them, each for one class only."""
    whole = [name for name in classes if name != MIG_CLASS]
    of_boards = GPU_CLASS if GPU_CLASS in whole or not whole else whole[0]
    notes = [
        f"no device plugin in this app: its GPUs are taken to come by DRA, as {of_boards}",
        *_of_guessed_memory(node),
    ]
    others = [name for name in whole if name != of_boards]
    if others:
        notes.append(f"a GPU counts for one device class only, so there is nothing for {', '.join(others)}")
    devices: list[Device] = []
    for gpu, layout in enumerate(node.layouts):
        if not layout:
            devices.append(Device(of_boards, 1, node.usable_vram_mib, gpu))
        for profile, count in layout.items():
            devices += [Device(MIG_CLASS, 1, _mig_mib(node, profile), gpu, profile)] * count
    return tuple(devices), notes


# Labels and taints of the app's node configuration


def _configured(provided: Sequence[Provided]) -> _Configured:
    found: list[GpuNodes] = [one.gpu_nodes for one in provided if one.gpu_nodes is not None]
    if not found:
        return _Configured(GpuNodes())
    if all(_plain(one) == _plain(found[0]) for one in found):
        return _Configured(found[0])
    labels = dict.fromkeys(f"{key}={value}" for one in found for key, value in one.labels.items())
    taints = dict.fromkeys(taint_text(t["key"], t.get("value", ""), t["effect"]) for one in found for t in one.taints)
    return _Configured(GpuNodes(), tuple(labels), tuple(taints))


def _plain(nodes: GpuNodes) -> tuple[dict[str, str], frozenset[tuple[str, str, str]]]:
    return dict(nodes.labels), frozenset((t["key"], t.get("value", ""), t["effect"]) for t in nodes.taints)


def _left_open(node: GpuNode, configured: _Configured) -> Iterator[str]:
    own = {taint.key for taint in node.taints}
    labels = [label for label in configured.open_labels if label.partition("=")[0] not in node.labels]
    taints = [taint for taint in configured.open_taints if taint.partition(":")[0].partition("=")[0] not in own]
    for what, missing in (("labels", labels), ("taints", taints)):
        if missing:
            yield (
                f"the app configures nodes in different ways, and nothing says which is this one: none of their {what} "
                f"is counted ({', '.join(missing)}); declare them with {what}= of the node"
            )


def _taints(node: GpuNode, configured: GpuNodes) -> tuple[Mapping[str, str], ...]:
    own = [taint.to_manifest() for taint in node.taints]
    named = {(taint["key"], taint["effect"]) for taint in own}
    return (*own, *(dict(taint) for taint in configured.taints if (taint["key"], taint["effect"]) not in named))


# Power


def _watts(node: GpuNode, labels: Mapping[str, str], caps: Sequence[PowerCap]) -> int | None:
    if node.power_limit is not None:
        return node.power_limit
    default = None if node.model is None else node.model.default_watts
    for cap in caps:
        if all(labels.get(key) == value for key, value in cap.node_selector.items()):
            for pattern, limit in cap.limits.items():
                if node.model is None and pattern.strip("*"):
                    return None
                if fnmatchcase("" if node.model is None else node.model.name, pattern):
                    return _limit(limit, default)
    return default


def _limit(limit: str, default: int | None) -> int | None:
    if limit == "default":
        return default
    if limit.endswith("%"):
        return None if default is None else default * int(limit[:-1]) // 100
    return int(limit)

"""What the nodes of an inventory offer to pods, by what is declared of them and what the app does to them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from gpu_constructs.capacity.condition import Condition
from gpu_constructs.capacity.eligibility import taint_text
from gpu_constructs.capacity.mig_by_label import divided_by_label
from gpu_constructs.capacity.node_labels import is_of_sharing, labels_of, measured_mig_mib, single_profile
from gpu_constructs.capacity.node_offer import Device, NodeOffer
from gpu_constructs.capacity.serving import Service, in_words, service_of
from gpu_constructs.gpu_models import mps_clients
from gpu_constructs.inventory import GpuInventory, GpuNode
from gpu_constructs.mig_profiles import mig_resource, mig_vram_mib, size_of
from gpu_constructs.provided import GpuNodes, PowerCap, Provided
from gpu_constructs.sharing import GPU, Sharing

GPU_CLASS = "gpu.nvidia.com"
MIG_CLASS = "mig.nvidia.com"


@dataclass(frozen=True)
class _Configured:
    """Labels and taints that the app's configuration of GPU nodes gives them, and what it leaves open."""

    nodes: GpuNodes
    open_labels: tuple[str, ...] = ()
    open_taints: tuple[str, ...] = ()


def node_offers(
    inventory: GpuInventory,
    provided: Sequence[Provided] = (),
    device_classes: Collection[str] = (),
    unpublished: Collection[str] = (),
) -> list[NodeOffer]:
    """Give what each node or pool of an inventory offers, in its order.

    Args:
        inventory: The nodes.
        provided: What the app's constructs say of themselves: sharing, MIG strategies, node configuration, power.
        device_classes: Classes of DRA that pods ask for. Where no device plugin of the app runs they stand in place of
            its resources; a board never counts for both.
        unpublished: Labels that the app's own discovery is known not to publish.
    """
    configured = _configured(provided)
    classes = tuple(sorted(device_classes))
    caps = [cap for one in provided for cap in one.power_caps]
    offers = [_offer(node, provided, configured, classes, caps) for node in inventory.nodes]
    return [replace(offer, absent=frozenset({*unpublished} - {*offer.labels})) for offer in offers]


def _offer(
    given: GpuNode,
    provided: Sequence[Provided],
    configured: _Configured,
    classes: Sequence[str],
    caps: Sequence[PowerCap],
) -> NodeOffer:
    declared = {**configured.nodes.labels, **given.labels}
    nfd = next((one.nfd_labels for one in provided if one.nfd_labels is not None), None)
    notes: list[str] = [*_left_open(given, configured)]
    taints = _taints(given, configured.nodes)
    node, said = divided_by_label(given, provided, declared)
    notes += said
    plugin = service_of(node, provided, labels_of(node, Sharing.none(), declared=declared, nfd=nfd), taints)
    has_plugin = any(one.gpu_offers or one.gpu_resources for one in provided)
    is_stated = node.sharing is not None and not node.is_observed
    is_by_class = bool(classes) and not is_stated and not (plugin.is_running and has_plugin)
    if node.is_observed and not (plugin.is_as_observed and plugin.is_running):
        declared = {key: value for key, value in declared.items() if not is_of_sharing(key)}
    if is_by_class:
        sharing = Sharing.none()
        notes += plugin.notes if has_plugin else ()
        devices, said = _devices_of_classes(node, classes, has_plugin=has_plugin)
        labels = labels_of(node, sharing, declared=declared, nfd=nfd)
    else:
        sharing = plugin.sharing
        devices, said = _devices(node, plugin)
        notes += plugin.notes
        if classes and devices:
            said.append(
                f"a device plugin serves its GPUs, so there is nothing for {', '.join(classes)}; keep the plugin's "
                "pods off nodes for DRA, by node_selector= or a taint"
            )
        labels = labels_of(node, sharing, plugin.mig_strategy, declared, nfd)
    return NodeOffer(
        name=node.name,
        count=node.count,
        devices=devices,
        labels=labels,
        taints=taints,
        gpu_model="" if node.model is None else node.model.name,
        sharing=in_words(sharing),
        vram_unit_mib=sharing.vram_unit_mib if devices else None,
        gpu_watts=(_watts(node, labels, caps),) * node.gpus,
        rack=node.rack or "",
        notes=tuple(dict.fromkeys([*notes, *said])),
    )


# Devices


def _devices(node: GpuNode, plugin: Service) -> tuple[tuple[Device, ...], list[str]]:
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
    if sharing.strategy == "mps":
        replicas, model = max(sharing.resources.values()), node.model
        least = mps_clients("Volta" if model is None else model.architecture)
        if replicas > least and model is not None:
            return (), [f"MPS serves {least} clients of {model.name}, and {replicas} replicas make its daemon exit"]
        if replicas > least:
            clause = f"its GPUs have compute capability 7.5 or more: of older ones MPS serves {least} clients"
            notes.append(Condition(f"{clause}, and {replicas} replicas make its daemon exit", "declare gpu_model="))
    if is_divided and strategy == "none":
        notes.append(
            "the device plugin's MIG strategy is none: it hands out divided GPUs whole, of which a container uses one "
            "MIG device"
        )
    nameless = [] if plugin.names_mig_attributes or strategy != "mixed" else _with_attributes(layouts)
    if nameless:
        notes.append(
            f"this release of the device plugin leaves the attributes of {', '.join(nameless)} out of the resource "
            "name (NVIDIA/k8s-device-plugin#1807)"
        )
    devices: list[Device] = []
    for gpu, layout in enumerate(layouts):
        if not layout or strategy == "none":
            # CUDA takes one MIG device of a divided board, and nothing says which.
            mib = min((_mig_mib(node, profile) for profile in layout), default=node.usable_vram_mib)
            devices.append(_slots(GPU, sharing, mib, gpu, node.vram_mib))
            continue
        for profile, count in layout.items():
            named = profile if plugin.names_mig_attributes else size_of(profile) or profile
            resource = GPU if strategy == "single" else mig_resource(named)
            devices += [_slots(resource, sharing, _mig_mib(node, profile), gpu, None, profile)] * count
    return tuple(devices), notes


def _with_attributes(layouts: Sequence[Mapping[str, int]]) -> list[str]:
    return list(dict.fromkeys(profile for layout in layouts for profile in layout if profile != size_of(profile)))


def _slots(
    resource: str, sharing: Sharing, mib: int | None, gpu: int, total_mib: int | None, profile: str = ""
) -> Device:
    replicas = sharing.resources.get(resource, 1)
    # The daemon divides the memory of the board, whatever else is on it.
    each = total_mib // replicas if sharing.strategy == "mps" and replicas > 1 and total_mib is not None else None
    # NVIDIA/k8s-device-plugin@v0.20.0:internal/rm/rm.go
    most = 1 if replicas > 1 and sharing.fail_requests_greater_than_one else None
    return Device(sharing.resource_name(resource), replicas, mib, gpu, profile, each, most)


def _mig_mib(node: GpuNode, profile: str) -> int:
    return mig_vram_mib(None if node.model is None else node.model.name, profile)


def _of_guessed_memory(node: GpuNode) -> list[str]:
    profiles = dict.fromkeys(profile for layout in node.layouts for profile in layout)
    guessed = [profile for profile in profiles if measured_mig_mib(node.model, profile) is None]
    return [f"the memory of MIG devices {', '.join(guessed)} is the most that their name allows"] if guessed else []


def _devices_of_classes(
    node: GpuNode, classes: Sequence[str], *, has_plugin: bool
) -> tuple[tuple[Device, ...], list[str]]:
    """Give boards and MIG devices as a driver of DRA publishes them, each for one class only."""
    whole = [name for name in classes if name != MIG_CLASS]
    of_boards = GPU_CLASS if GPU_CLASS in whole or not whole else whole[0]
    where = "here" if has_plugin else "in this app"
    notes = [
        f"no device plugin {where}: its GPUs are taken to come by DRA, as {of_boards}",
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

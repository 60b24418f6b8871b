"""Functions that compute which devices, labels and taints the nodes of an inventory have after you apply the app.

An *offer* is a node or a node pool with the devices that it advertises.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property

from gpu_constructs.capacity.consumer import Condition
from gpu_constructs.capacity.eligibility import taint_text
from gpu_constructs.capacity.node_labels import is_of_sharing, labels_of, measured_mig_mib, single_profile
from gpu_constructs.capacity.planned import Device, NodeOffer
from gpu_constructs.capacity.serving import Service, in_words, is_stated, service_of
from gpu_constructs.catalog.gpu_models import mps_clients
from gpu_constructs.catalog.inventory import GpuInventory, GpuNode
from gpu_constructs.catalog.mig_layouts import fits
from gpu_constructs.catalog.mig_profiles import (
    MIG_PROFILES,
    mig_resource,
    mig_vram_mib,
    normal_profile,
    require_mig_profile,
    size_of,
)
from gpu_constructs.catalog.nfd_labels import NfdLabels
from gpu_constructs.catalog.sharing import GPU, Sharing
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.facts.provided import GpuNodes, Provided
from gpu_constructs.records import dataclass, replace

GPU_CLASS = "gpu.nvidia.com"
MIG_CLASS = "mig.nvidia.com"
MIG_CONFIG = "nvidia.com/mig.config"
_EVEN = "all-"
_MOST_DEVICES = 7


@dataclass(frozen=True)
class _App:
    """The data of an app that applies to all nodes.

    Attributes:
        provided: Declarations of the app's constructs about their effects on the cluster.
        classes: DRA device classes that pods request.
        nodes: Labels and taints from the app's configuration of GPU nodes.
        open_labels: Labels that only some of the app's node configurations set.
        open_taints: Taints that only some of the app's node configurations set.
    """

    provided: Sequence[Provided]
    classes: Sequence[str]
    nodes: GpuNodes
    open_labels: Collection[str] = ()
    open_taints: Collection[str] = ()

    @cached_property
    def has_plugin(self) -> bool:
        return any(one.gpu_offers or one.gpu_resources for one in self.provided)

    @cached_property
    def nfd_labels(self) -> NfdLabels | None:
        return next((one.nfd_labels for one in self.provided if one.nfd_labels is not None), None)


def node_offers(
    inventory: GpuInventory,
    provided: Sequence[Provided] = (),
    device_classes: Collection[str] = (),
    unpublished: Collection[str] = (),
    published: frozenset[str] = frozenset(),
) -> list[NodeOffer]:
    """Return each node or pool with the devices that it advertises, in the order of the inventory.

    Args:
        inventory: GPU nodes.
        provided: Declarations of the app's constructs about their effects on the cluster. Default: none.
        device_classes: DRA device classes that pods request. The DRA driver serves these classes on nodes without a
            device plugin. Default: none.
        unpublished: Labels of Node Feature Discovery that the app does not publish. A node has such a label only if the
            app or the inventory sets it. Default: none.
        published: Labels that components of the cluster publish on some nodes, for example because of a
            NodeFeatureRule. The function does not know which nodes have them. Default: none.
    """
    app = _app(provided, tuple(sorted(device_classes)))
    offers = [_offer(node, app) for node in inventory.nodes]
    return [replace(offer, absent=frozenset({*unpublished} - {*offer.labels}), published=published) for offer in offers]


def _offer(given: GpuNode, app: _App) -> NodeOffer:
    declared = {**app.nodes.labels, **given.labels}
    taints = _taints(given, app.nodes)
    node, of_label = _divided_by_label(given, app.provided, declared)
    known = labels_of(node, Sharing.none(), declared=declared, nfd=app.nfd_labels)
    plugin = service_of(node, app.provided, known, taints)
    if node.is_observed and not (plugin.is_as_observed and plugin.is_running):
        declared = {key: value for key, value in declared.items() if not is_of_sharing(key)}
    is_served = plugin.is_running and app.has_plugin
    if app.classes and not is_served and not is_stated(node):
        plugin = replace(
            plugin, sharing=Sharing.none(), mig_strategy="none", notes=plugin.notes if app.has_plugin else ()
        )
        devices, remarks = _of_classes(node, app)
    else:
        devices, remarks = _of_plugin(node, plugin, app.classes)
    labels = labels_of(node, plugin.sharing, plugin.mig_strategy, declared, app.nfd_labels)
    return NodeOffer(
        name=node.name,
        count=node.count,
        devices=tuple(devices),
        labels=labels,
        taints=taints,
        gpu_model="" if node.model is None else node.model.name,
        sharing=in_words(plugin.sharing),
        vram_unit_mib=plugin.sharing.vram_unit_mib if devices else None,
        gpu_watts=(_watts(node, labels, app.provided),) * node.gpus,
        rack=node.rack or "",
        notes=tuple(dict.fromkeys([*_left_open(given, app), *of_label, *plugin.notes, *remarks])),
    )


# Devices


def _of_plugin(node: GpuNode, plugin: Service, classes: Sequence[str]) -> tuple[list[Device], list[str]]:
    """Return the devices that the device plugin advertises on a node, and assumptions about these devices as texts.

    Args:
        node: Node of the inventory.
        plugin: Settings with which the device plugin advertises the GPUs of the node.
        classes: Names of the DRA device classes that pods request.
    """
    if not plugin.is_running:
        return [], []
    if why := _why_nothing(node, plugin):
        return [], [why]
    notes = [*_of_guessed_memory(node), *_of_service(node, plugin)]
    if classes:
        notes.append(
            f"a device plugin serves the GPUs of the node, so the node has no devices for {', '.join(classes)}. Keep "
            "the plugin's pods off nodes for DRA with node_selector= or a taint"
        )
    return [*_devices(node, plugin)], notes


def _why_nothing(node: GpuNode, plugin: Service) -> str:
    """Return the reason why the device plugin advertises no device on a node; empty if it advertises at least one.

    Source:
        NVIDIA/k8s-device-plugin@v0.20.0:internal/rm/device_map.go, cmd/mps-control-daemon/mps/daemon.go
    """
    layouts = node.layouts
    if any(layouts) and plugin.sharing.strategy == "mps":
        return "MPS does not share GPUs of a node with MIG: the device plugin advertises no GPU"
    if any(layouts) and plugin.mig_strategy == "single" and single_profile(layouts) is None:
        why = "not every GPU has MIG devices" if not all(layouts) else "the node has several MIG profiles"
        return f"the MIG strategy single does not work, because {why}: the device plugin advertises no GPU"
    least = _clients_exceeded(node, plugin.sharing)
    if least is not None and node.model is not None:
        return f"MPS serves {least} clients on {node.model.name}, and {_exits(plugin.sharing)}"
    return ""


def _clients_exceeded(node: GpuNode, sharing: Sharing) -> int | None:
    """Return the MPS client limit of a node's boards if the sharing has more replicas; otherwise None.

    For an unknown board, the limit is the lowest limit of all boards that support MPS.
    """
    least = mps_clients("Volta" if node.model is None else node.model.architecture)
    return least if sharing.strategy == "mps" and sharing.resources[GPU] > least else None


def _exits(sharing: Sharing) -> str:
    return f"{sharing.resources[GPU]} replicas make the MPS daemon exit"


def _of_service(node: GpuNode, plugin: Service) -> Iterator[str]:
    """Yield the assumptions of the capacity plan about the device plugin on a node, as sentences."""
    least = _clients_exceeded(node, plugin.sharing)
    if least is not None:
        clause = f"its GPUs have compute capability 7.5 or more: on older ones MPS serves {least} clients"
        yield Condition(f"{clause}, and {_exits(plugin.sharing)}", "declare gpu_model=")
    if any(node.layouts) and plugin.mig_strategy == "none":
        yield (
            "the device plugin's MIG strategy is none: it allocates whole GPUs, on which a container uses one MIG "
            "device"
        )
    nameless = [one for one in _profiles(node) if one != size_of(one)]
    if nameless and not plugin.names_mig_attributes and plugin.mig_strategy == "mixed":
        yield (
            f"this release of the device plugin omits the attributes of {', '.join(nameless)} from the resource "
            "name (NVIDIA/k8s-device-plugin#1807)"
        )


def _devices(node: GpuNode, plugin: Service) -> Iterator[Device]:
    strategy, sharing = plugin.mig_strategy, plugin.sharing
    for gpu, layout in enumerate(node.layouts):
        if not layout or strategy == "none":
            # On a board with MIG devices, CUDA uses one device, and which one is not known. Assume the smallest.
            mib = min((_mig_mib(node, profile) for profile in layout), default=node.usable_vram_mib)
            yield _slots(GPU, sharing, mib, gpu, node.vram_mib)
            continue
        for profile, count in layout.items():
            named = profile if plugin.names_mig_attributes else size_of(profile) or profile
            resource = GPU if strategy == "single" else mig_resource(named)
            yield from [_slots(resource, sharing, _mig_mib(node, profile), gpu, None, profile)] * count


def _profiles(node: GpuNode) -> list[str]:
    return list(dict.fromkeys(profile for layout in node.layouts for profile in layout))


def _slots(
    resource: str, sharing: Sharing, mib: int | None, gpu: int, total_mib: int | None, profile: str = ""
) -> Device:
    replicas = sharing.resources.get(resource, 1)
    # The MPS daemon divides the memory of the whole board.
    each = total_mib // replicas if sharing.strategy == "mps" and replicas > 1 and total_mib is not None else None
    # NVIDIA/k8s-device-plugin@v0.20.0:internal/rm/rm.go
    most = 1 if replicas > 1 and sharing.fail_requests_greater_than_one else None
    return Device(sharing.resource_name(resource), replicas, mib, gpu, profile, each, most)


def _mig_mib(node: GpuNode, profile: str) -> int:
    return mig_vram_mib(None if node.model is None else node.model.name, profile)


def _of_guessed_memory(node: GpuNode) -> list[str]:
    guessed = [profile for profile in _profiles(node) if measured_mig_mib(node.model, profile) is None]
    return [f"the memory of MIG devices {', '.join(guessed)} is an upper bound from their names"] if guessed else []


def _of_classes(node: GpuNode, app: _App) -> tuple[list[Device], list[str]]:
    """Return the boards and MIG devices that a DRA driver publishes on a node, and assumptions about them as texts.

    Each device counts for one device class only, even if the selectors of several classes match the device.
    """
    whole = [name for name in app.classes if name != MIG_CLASS]
    of_boards = GPU_CLASS if GPU_CLASS in whole or not whole else whole[0]
    where = "here" if app.has_plugin else "in this app"
    notes = [f"no device plugin {where}: the plan assumes DRA devices of class {of_boards}", *_of_guessed_memory(node)]
    others = [name for name in whole if name != of_boards]
    if others:
        notes.append(f"a GPU counts for one device class only, so the node has none for {', '.join(others)}")
    parts = ((gpu, *part) for gpu, layout in enumerate(node.layouts) for part in (layout or {"": 1}).items())
    devices = [
        Device(MIG_CLASS, 1, _mig_mib(node, profile), gpu, profile)
        if profile
        else Device(of_boards, 1, node.usable_vram_mib, gpu)
        for gpu, profile, count in parts
        for _ in range(count)
    ]
    return devices, notes


# Labels and taints from the node configuration of the app


def _app(provided: Sequence[Provided], classes: Sequence[str]) -> _App:
    found: list[GpuNodes] = [one.gpu_nodes for one in provided if one.gpu_nodes is not None]
    if all(_plain(one) == _plain(found[0]) for one in found):
        return _App(provided, classes, found[0] if found else GpuNodes())
    labels = dict.fromkeys(f"{key}={value}" for one in found for key, value in one.labels.items())
    taints = dict.fromkeys(taint_text(t["key"], t.get("value", ""), t["effect"]) for one in found for t in one.taints)
    return _App(provided, classes, GpuNodes(), tuple(labels), tuple(taints))


def _plain(nodes: GpuNodes) -> tuple[dict[str, str], frozenset[tuple[str, str, str]]]:
    return dict(nodes.labels), frozenset((t["key"], t.get("value", ""), t["effect"]) for t in nodes.taints)


def _left_open(node: GpuNode, app: _App) -> Iterator[str]:
    own = {taint.key for taint in node.taints}
    labels = [label for label in app.open_labels if label.partition("=")[0] not in node.labels]
    taints = [taint for taint in app.open_taints if taint.partition(":")[0].partition("=")[0] not in own]
    for what, missing in (("labels", labels), ("taints", taints)):
        if missing:
            yield (
                f"the app has several node configurations, and nothing assigns one to this node: the plan ignores "
                f"their {what} ({', '.join(missing)}). Declare them with GpuNode({what}=...)"
            )


def _taints(node: GpuNode, configured: GpuNodes) -> tuple[Mapping[str, str], ...]:
    own = [taint.to_manifest() for taint in node.taints]
    named = {(taint["key"], taint["effect"]) for taint in own}
    return (*own, *(dict(taint) for taint in configured.taints if (taint["key"], taint["effect"]) not in named))


# The MIG layout that MIG manager applies because of a node label


def _divided_by_label(
    node: GpuNode, provided: Sequence[Provided], labels: Mapping[str, str]
) -> tuple[GpuNode, list[str]]:
    """Return a node with the MIG layout that its label ``nvidia.com/mig.config`` names, and assumptions as texts.

    A layout in the inventory takes precedence over the label. The assumptions concern the layout.

    Args:
        node: Node of the inventory.
        provided: Declarations of the app's constructs about their effects on the cluster.
        labels: Labels of the node.
    """
    config = labels.get(MIG_CONFIG, "")
    if config in ("", "all-disabled") or node.mig_layout is not None or node.mig_profiles == ():
        return node, []
    way_out = "Declare the layout with GpuNode(mig_layout=...)"
    if not any(one.has_mig_manager for one in provided):
        return node, [f"nothing in this app applies {MIG_CONFIG}={config}: the plan assumes whole GPUs. {way_out}"]
    layout = _layout(None if node.model is None else node.model.name, config)
    if layout is None:
        return node, [f"{MIG_CONFIG}={config} names an unknown configuration: the plan assumes whole GPUs. {way_out}"]
    try:
        divided = replace(node, mig_layout=layout)
    except GpuConstructsError as error:
        return node, [f"{MIG_CONFIG}={config} does not suit the node, so the plan assumes whole GPUs: {error.problem}"]
    listed = " and ".join(f"{count} x {profile}" for profile, count in layout.items())
    return divided, [f"each GPU of the node has {listed}, as {MIG_CONFIG}={config} specifies"]


def _layout(board: str | None, config: str) -> Mapping[str, int] | None:
    """Return the number of MIG devices of each profile that a configuration of MIG manager creates on a board.

    Return None if the configuration is not known.

    Args:
        board: Name of the board; None if it is not known.
        config: Name of the configuration, such as ``all-1g.10gb``.

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


# Power


def _watts(node: GpuNode, labels: Mapping[str, str], provided: Sequence[Provided]) -> int | None:
    if node.power_limit is not None:
        return node.power_limit
    default = None if node.model is None else node.model.default_watts
    caps = (cap for one in provided for cap in one.power_caps if cap.node_selector.items() <= labels.items())
    for pattern, limit in (row for cap in caps for row in cap.limits.items()):
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

"""Reader that creates the nodes of a `GpuInventory` from the nodes of a running cluster.

The reader uses node labels of GPU Feature Discovery, and allocatable resources that the device plugin advertises.

Source: NVIDIA/k8s-device-plugin@v0.20.0:internal/lm/resource.go, internal/lm/mig-strategy.go
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

from gpu_constructs.catalog.gpu_models import GpuModel, known_board
from gpu_constructs.catalog.mig_layouts import fits
from gpu_constructs.catalog.mig_profiles import MIG_PROFILES, normal_profile, require_mig_profile
from gpu_constructs.catalog.sharing import GPU, Sharing
from gpu_constructs.errors import GpuConstructsError, refuse_if, warn
from gpu_constructs.kube.placement import Taint
from gpu_constructs.records import dataclass, regex

_Node = TypeVar("_Node")

_WAY_OUT = "Pass what 'kubectl get nodes -o json' prints"
_MIG = "nvidia.com/mig-"
# Labels with which the GPU Operator pauses its components on a node:
# NVIDIA/gpu-operator@v26.7.0:controllers/state_manager.go, addGPUStateLabels
_DEPLOY = "nvidia.com/gpu.deploy."
_PAUSED = "paused-for-"
_SHARED = ".shared"
_UNSCHEDULABLE = Taint(key="node.kubernetes.io/unschedulable")
_MIG_PRODUCT = regex(r"(.+)-MIG-([^-].*)\Z")
_NUMBER = regex(r"[0-9]{1,9}\Z")
_MOST_SLICES = 7
_MOST_STEPS = 50_000


@dataclass(frozen=True)
class _Resource:
    """An extended resource of a node, such as ``nvidia.com/gpu``, with its devices and their sharing.

    Attributes:
        count: Number of GPUs or MIG devices.
        replicas: Number of slots of each device; 1 if pods do not share the device.
        strategy: Sharing strategy: ``none``, ``time-slicing`` or ``mps``.
        is_renamed: Whether the node advertises the slots under a name that ends in ``.shared``.
    """

    count: int
    replicas: int = 1
    strategy: str = "none"
    is_renamed: bool = False


def gpu_nodes(nodes: str | Mapping[str, Any], make: Callable[..., _Node]) -> list[_Node]:
    """Return a ``GpuNode`` for each node with GPUs in a running cluster.

    Args:
        nodes: Output of ``kubectl get nodes -o json``, as text or as parsed JSON.
        make: The class ``GpuNode``, whose module imports this module.

    Raises:
        GpuConstructsError: The value is not a list of nodes, or no node has a GPU.
    """
    items = _items(nodes)
    found = [node for item in items if (node := _gpu_node(item, make)) is not None]
    if not found:
        raise GpuConstructsError(
            f"nodes must include at least one GPU node, got {len(items)} nodes without labels nvidia.com/gpu.* and "
            "without nvidia.com/ resources. Run the device plugin with GPU Feature Discovery first"
        )
    return found


def _items(nodes: str | Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    if isinstance(nodes, str):
        try:
            nodes = json.loads(nodes)
        except (ValueError, RecursionError) as error:
            raise GpuConstructsError(f"nodes must be JSON, got other text: {error}. {_WAY_OUT}") from None
    items = nodes.get("items") if isinstance(nodes, Mapping) else None
    if not isinstance(nodes, Mapping) or nodes.get("kind") not in ("List", "NodeList") or not isinstance(items, list):
        got = nodes.get("kind") if isinstance(nodes, Mapping) else type(nodes).__name__
        raise GpuConstructsError(f"nodes must be a List of nodes, got {got!r}. {_WAY_OUT}")
    for number, item in enumerate(items):
        # The items of a NodeList have no kind.
        if (
            not isinstance(item, Mapping)
            or item.get("kind", "Node") != "Node"
            or not _mapping(item, "metadata").get("name")
        ):
            got = item.get("kind") if isinstance(item, Mapping) else item
            raise GpuConstructsError(f"nodes.items[{number}] must be a Node with a name, got {got!r}. {_WAY_OUT}")
    return items


def _mapping(of: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    for key in keys:
        below = of.get(key)
        of = below if isinstance(below, Mapping) else {}
    return of


def _gpu_node(item: Mapping[str, Any], make: Callable[..., _Node]) -> _Node | None:
    name = item["metadata"]["name"]
    labels = {
        str(key): str(value)
        for key, value in _mapping(item, "metadata", "labels").items()
        if not (key.startswith(_DEPLOY) and str(value).startswith(_PAUSED))
    }
    allocatable = {
        key: int(amount)
        for key, amount in _mapping(item, "status", "allocatable").items()
        if key.startswith((GPU, _MIG)) and _NUMBER.match(str(amount))
    }
    try:
        given = _given(name, labels, allocatable)
        if given is None:
            return None
        return make(name=name, labels=labels, taints=_taints(item), is_observed=True, **given)
    except GpuConstructsError as error:
        raise GpuConstructsError(f"node {name!r}: {error.problem.replace('gpu_node.', '')}") from None


def _given(name: str, labels: Mapping[str, str], allocatable: Mapping[str, int]) -> dict[str, Any] | None:
    labelled = _labelled(labels)
    resources = labelled or _advertised(name, allocatable)
    if not resources:
        _warn_of_unknown(name, labels)
        return None
    _compare(name, resources, allocatable)
    product = labels.get("nvidia.com/gpu.product", "").removesuffix("-SHARED")
    divided = _MIG_PRODUCT.match(product)
    model = known_board(divided[1] if divided else product)
    board: str | None = getattr(model, "name", None)
    given: dict[str, Any] = {"gpu_model": board} if board else {}
    if not divided:
        given |= _memory(labels.get("nvidia.com/gpu.memory", ""), model)
    given["sharing"] = _sharing(resources)
    strategy = labels.get("nvidia.com/mig.strategy")
    # The GPU Operator sets the label for boards without MIG too.
    if strategy in ("single", "mixed") and MIG_PROFILES.get(board or "") != ():
        given["mig_strategy"] = strategy
    if divided:
        return given | _boards_of_single(name, board, normal_profile(divided[2]), resources[GPU].count)
    of_mig = {_profile(resource): one.count for resource, one in resources.items() if resource != GPU and one.count}
    if not of_mig:
        return given | {"gpus": resources[GPU].count}
    whole = resources.get(GPU, _Resource(0))
    offered = allocatable.get(GPU) or allocatable.get(GPU + _SHARED, 0)
    return given | _boards_of_mixed(board, of_mig, whole, offered, is_counted=GPU in labelled)


def _warn_of_unknown(name: str, labels: Mapping[str, str]) -> None:
    if labels.get("nvidia.com/gpu.present") == "true" or "nvidia.com/gpu.product" in labels:
        product = labels.get("nvidia.com/gpu.product", "no product")
        warn(
            f"node {name!r} is ignored: the node has a GPU, but its labels ({product}) and resources do not describe "
            "the GPU. Describe the node as a GpuNode"
        )


def _labelled(labels: Mapping[str, str]) -> dict[str, _Resource]:
    """Return the extended resources of a node, as the node labels of GPU Feature Discovery describe them.

    Args:
        labels: Labels of the node.

    Returns:
        Resources by name, without the suffix ``.shared``, for example ``nvidia.com/gpu``.
    """
    found: dict[str, _Resource] = {}
    for key in labels:
        resource = key.removesuffix(".count")
        if resource == key or not (resource == GPU or resource.startswith(_MIG)):
            continue
        count, replicas = (_number(labels.get(f"{resource}.{word}", "")) for word in ("count", "replicas"))
        strategy, product = (labels.get(f"{resource}.{word}", "") for word in ("sharing-strategy", "product"))
        if not count:
            continue
        is_shared = replicas > 1 and strategy in ("time-slicing", "mps")
        found[resource] = _Resource(
            count=count,
            replicas=replicas if is_shared else 1,
            strategy=strategy if is_shared else "none",
            is_renamed=is_shared and not product.endswith("-SHARED"),
        )
    return found


def _advertised(name: str, allocatable: Mapping[str, int]) -> dict[str, _Resource]:
    """Return the extended resources of a node without labels of GPU Feature Discovery.

    Args:
        name: Name of the node, for warnings.
        allocatable: Amounts in ``status.allocatable`` of the node, by resource name.

    Returns:
        Resources by name, without the suffix ``.shared``, for example ``nvidia.com/gpu``.
    """
    found: dict[str, _Resource] = {}
    for resource, amount in allocatable.items():
        if amount and resource.endswith(_SHARED):
            warn(
                f"node {name!r} advertises {amount} of {resource}, and no label states the number of devices, so the "
                "inventory counts all as slots of one device. Run GPU Feature Discovery"
            )
            if amount > 1:
                found[resource.removesuffix(_SHARED)] = _Resource(1, amount, "time-slicing", is_renamed=True)
        elif amount and (resource == GPU or resource.startswith(_MIG)):
            found[resource] = _Resource(amount)
    return found


def _number(text: str) -> int:
    return int(text) if _NUMBER.match(text) else 0


def _compare(name: str, resources: Mapping[str, _Resource], allocatable: Mapping[str, int]) -> None:
    """Warn if a node advertises a different number of slots than its labels state.

    On a node with the MIG strategy ``mixed``, the function does not check the resource ``nvidia.com/gpu``, because no
    label states the number of GPUs without MIG.

    Args:
        name: Name of the node.
        resources: Extended resources of the node by name, as its labels describe them.
        allocatable: Amounts in ``status.allocatable`` of the node, by resource name.
    """
    is_mixed = any(resource != GPU for resource in resources)
    for resource, one in resources.items():
        if resource == GPU and is_mixed:
            continue
        called = f"{resource}{_SHARED}" if one.is_renamed else resource
        offered, promised = allocatable.get(called, 0), one.count * one.replicas
        if offered != promised:
            warn(
                f"node {name!r} advertises {offered} of {called}, but its labels state {promised}, which the inventory "
                "uses. Check that all GPUs are healthy and that the device plugin runs"
            )


def _memory(label: str, model: GpuModel | None) -> dict[str, str]:
    """Return the keyword argument ``vram`` of ``GpuNode`` as a dict, for example ``{"vram": "24576Mi"}``.

    Return an empty dict if the label is not a number. Also return an empty dict if the label is at least the memory of
    ``model``. ``GpuNode`` then uses the memory of ``model``.

    Args:
        label: Value of the node label ``nvidia.com/gpu.memory``.
        model: Data of the board in the catalog of the library; None for an unknown board.
    """
    mib, known = _number(label), None if model is None else model.vram_mib
    return {"vram": f"{mib}Mi"} if mib and (known is None or mib < known) else {}


def _sharing(resources: Mapping[str, _Resource]) -> Sharing:
    shared = {resource: one for resource, one in resources.items() if one.strategy != "none"}
    if not shared:
        return Sharing.none()
    first = next(iter(shared.values()))
    if first.strategy == "mps":
        return Sharing.mps(replicas=first.replicas, rename_by_default=first.is_renamed)
    return Sharing.time_slicing(
        resources={resource: one.replicas for resource, one in shared.items()}, rename_by_default=first.is_renamed
    )


def _profile(resource: str) -> str:
    profile = normal_profile(resource.removeprefix(_MIG))
    require_mig_profile(resource, profile)
    return profile


def _boards_of_single(name: str, board: str | None, profile: str, devices: int) -> dict[str, Any]:
    require_mig_profile("the label nvidia.com/gpu.product", profile)
    most = max((count for count in range(1, _MOST_SLICES + 1) if fits(board, {profile: count})), default=0)
    refuse_if(
        not most,
        "mig_layout",
        f"not contain {profile!r}, which {board} does not support. Describe the node as a GpuNode",
    )
    boards = -(-devices // most)
    if devices % boards:
        warn(
            f"node {name!r} has {devices} MIG devices of {profile!r}, and no label states the number of boards. The "
            f"inventory assumes {boards} with at most {most} on each"
        )
    each, more = divmod(devices, boards)
    return {"gpus": boards, "mig_layout": [{profile: each + (number < more)} for number in range(boards)]}


def _boards_of_mixed(
    board: str | None, devices: Mapping[str, int], whole: _Resource, offered: int, *, is_counted: bool
) -> dict[str, Any]:
    """Return the keyword arguments ``mig_strategy``, ``gpus`` and ``mig_layout`` of ``GpuNode`` for a node.

    The node has the MIG strategy ``mixed``. If no label states the number of its boards, the function assumes the
    smallest number that can have the MIG devices.

    Args:
        board: Name of the board; None if the board is unknown.
        devices: Number of MIG devices on the node by MIG profile.
        whole: The resource ``nvidia.com/gpu``, as the labels describe it.
        offered: Number of slots of ``nvidia.com/gpu`` that the node advertises.
        is_counted: Whether a label states the number of boards.
    """
    undivided = min(offered // whole.replicas, whole.count if is_counted else offered)
    boards = whole.count
    if not is_counted:
        boards = undivided + next((some for some in range(1, 129) if _spread(board, devices, some) is not None), 0)
    layouts = _spread(board, devices, boards - undivided)
    if layouts is None:
        listed = " and ".join(f"{count} x {profile!r}" for profile, count in devices.items())
        raise GpuConstructsError(
            f"mig_layout must be MIG devices that fit on the boards, got {listed} on {boards - undivided} x "
            f"{board or 'an unknown board'}. The node labels can be old. Wait for their next update, or describe "
            "the node as a GpuNode"
        )
    return {"mig_strategy": "mixed", "gpus": boards, "mig_layout": [*layouts, *[{}] * undivided]}


def _spread(board: str | None, devices: Mapping[str, int], boards: int) -> list[dict[str, int]] | None:
    """Return a possible assignment of the MIG devices of a node to its boards. Return None if the search finds none.

    The boards have the same MIG devices if possible.

    Args:
        board: Name of the board; None if the board is unknown.
        devices: Number of MIG devices on the node by MIG profile.
        boards: Number of boards with MIG devices.

    Returns:
        Number of MIG devices by MIG profile, for each board.
    """
    if boards < 1 or sum(int(profile[0]) * count for profile, count in devices.items()) > boards * _MOST_SLICES:
        return None
    order = sorted(devices, key=lambda profile: (-int(profile[0]), profile))
    even = {profile: devices[profile] // boards for profile in order}
    if all(count % boards == 0 for count in devices.values()) and fits(board, even):
        return [even] * boards
    wanted = [profile for profile in order for _ in range(devices[profile])]
    layouts: list[dict[str, int]] = [{} for _ in range(boards)]
    return layouts if _place(board, wanted, layouts, iter(range(_MOST_STEPS))) else None


@cache
def _fits(board: str | None, layout: frozenset[tuple[str, int]]) -> bool:
    return fits(board, dict(layout))


def _place(board: str | None, wanted: Sequence[str], layouts: list[dict[str, int]], steps: Iterator[int]) -> bool:
    """Assign each MIG device to one of the boards, and add it to the layout of this board in ``layouts``.

    Return True if all devices fit. Return False if they do not fit, or if the search takes too many steps.

    Args:
        board: Name of the board; None if the board is unknown.
        wanted: MIG profile of each device that has no board yet.
        layouts: Number of MIG devices by MIG profile, for each board. The function changes this list.
        steps: Iterator with one item for each remaining step of the search.
    """
    if not wanted:
        return True
    profile, *rest = wanted
    for number, layout in enumerate(layouts):
        if layout in layouts[:number]:
            continue
        layouts[number] = {**layout, profile: layout.get(profile, 0) + 1}
        if next(steps, None) is None:
            return False
        if _fits(board, frozenset(layouts[number].items())) and _place(board, rest, layouts, steps):
            return True
        layouts[number] = layout
    return False


def _taints(item: Mapping[str, Any]) -> list[Taint]:
    given = _mapping(item, "spec").get("taints")
    taints = [
        Taint(key=one.get("key", ""), value=one.get("value") or "", effect=one.get("effect", ""))
        for one in (given if isinstance(given, list) else ())
        if isinstance(one, Mapping)
    ]
    is_cordoned = _mapping(item, "spec").get("unschedulable") is True
    return [*taints, *([_UNSCHEDULABLE] if is_cordoned and _UNSCHEDULABLE not in taints else [])]

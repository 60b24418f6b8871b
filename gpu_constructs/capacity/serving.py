"""Functions that find the settings of the device plugin on a node, such as the sharing of GPUs.

The function ``nodes_taking`` returns the nodes of the inventory or the app that accept the pods of a DaemonSet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpu_constructs.capacity.eligibility import refusal, unknown_labels
from gpu_constructs.capacity.node_labels import MigStrategy, is_of_sharing, labels_of
from gpu_constructs.capacity.placement_keys import daemon_key, offer_key
from gpu_constructs.capacity.planned import NodeOffer
from gpu_constructs.catalog.inventory import GpuInventory, GpuNode
from gpu_constructs.catalog.sharing import GPU, Sharing
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.facts.provided import GpuNodes, GpuOffer, Provided
from gpu_constructs.records import dataclass, replace

CONFIG_CHOICE = "nvidia.com/device-plugin.config"

# Labels that only the user sets. Feature discovery programs publish other labels of the same domain.
_SET_BY_HAND = frozenset((CONFIG_CHOICE, "nvidia.com/gpu.workload.config"))
_MIG = "nvidia.com/mig-"
_PRODUCT = f"{GPU}.product"
_SHARED = "-SHARED"
_IN_SEVERAL_WAYS = "this app shares GPUs in several ways, and nothing specifies which one applies here"


@dataclass(frozen=True)
class Service:
    """The settings with which the device plugin of a node advertises the GPUs of the node.

    Attributes:
        sharing: Sharing of the GPUs.
        mig_strategy: MIG strategy, which decides the resource names of MIG devices.
        notes: Assumptions about the device plugin, each a sentence without a period.
        is_running: Whether a pod of the device plugin runs on the node.
        is_as_observed: Whether ``sharing`` and ``mig_strategy`` agree with the values of the node in the inventory.
        names_mig_attributes: Whether resource names contain the attributes of MIG devices, such as ``me`` in
            ``nvidia.com/mig-1g.10gb.me``, if the MIG strategy is ``mixed``.
    """

    sharing: Sharing
    mig_strategy: MigStrategy
    notes: tuple[str, ...] = ()
    is_running: bool = True
    is_as_observed: bool = True
    names_mig_attributes: bool = True


@dataclass(frozen=True)
class _PluginFacts:
    """What the constructs of the app declare about the device plugin of a node.

    Attributes:
        sharings: Sharing settings that may apply on the node; empty if the app declares none.
        mig_strategy: MIG strategy; None if the app declares none or several.
        doubt: Reason why the sharing is not known; without effect if ``sharings`` has exactly one member.
        failure: Reason why the device plugins of the app do not run on the node; empty if one may run there.
        notes: Assumptions about the device plugin, each a sentence without a period.
        is_sure: Whether the device plugin certainly runs on the node, and only one sharing setting is possible.
        names_mig_attributes: Whether resource names contain the attributes of MIG devices, such as ``me`` in
            ``nvidia.com/mig-1g.10gb.me``, if the MIG strategy is ``mixed``.
    """

    sharings: tuple[Sharing, ...] = ()
    mig_strategy: MigStrategy | None = None
    doubt: str = ""
    failure: str = ""
    notes: tuple[str, ...] = ()
    is_sure: bool = False
    names_mig_attributes: bool = True


def service_of(
    node: GpuNode, provided: Sequence[Provided], labels: Mapping[str, str], taints: Sequence[Mapping[str, str]]
) -> Service:
    """Return the settings with which the device plugin of a node advertises the GPUs of the node.

    Args:
        node: Node or node pool.
        provided: Declarations of the app's constructs about their effects on the cluster.
        labels: Known labels of the node, without those that depend on the sharing of GPUs.
        taints: Taints of the node.

    Raises:
        GpuConstructsError: If ``GpuNode.sharing`` differs from the sharing of the app's device plugin on the node.
    """
    plugin = _plugin_facts(_Place(node, provided, labels, taints), provided)
    if plugin.is_sure and is_stated(node) and _looks(node.sharing) != _looks(plugin.sharings[0]):
        raise GpuConstructsError(
            f"gpu_node.sharing of {node.name!r} must be {in_full(plugin.sharings[0])}, as in the app's device plugin, "
            f"got {in_full(node.sharing or Sharing.none())}. Remove gpu_node.sharing. To change the sharing, change "
            "sharing= of the DevicePluginChart or GpuOperator, and of the GpuProfile"
        )
    notes = plugin.notes
    if plugin.failure and node.sharing is None:
        return Service(Sharing.none(), "none", (plugin.failure,), is_running=False)
    if plugin.failure:
        # If the inventory specifies a sharing, a device plugin runs on the node.
        seen = "as the inventory observed it" if node.is_observed else "as GpuNode(sharing=...) specifies"
        notes = (*notes, f"{plugin.failure}: the plan assumes another device plugin, {seen}")
        plugin = _PluginFacts()
    sharing, of_sharing = _sharing(node, plugin)
    strategy, of_strategy = _strategy(node, plugin)
    return Service(
        sharing,
        strategy or "none",
        (*notes, *_of_change(node, plugin), *of_sharing, *of_strategy),
        is_as_observed=_looks(sharing) == _looks(node.sharing) and strategy == (node.mig_strategy or strategy),
        names_mig_attributes=plugin.names_mig_attributes,
    )


def is_stated(node: GpuNode) -> bool:
    """Check whether the user sets the sharing of a node in the inventory.

    Return False for a sharing that the library read from the running cluster.
    """
    return node.sharing is not None and not node.is_observed


def _strategy(node: GpuNode, plugin: _PluginFacts) -> tuple[MigStrategy | None, list[str]]:
    stated: tuple[MigStrategy | None, ...] = (node.mig_strategy, plugin.mig_strategy)
    strategy = next((one for one in (reversed(stated) if node.is_observed else stated) if one is not None), None)
    if strategy is not None or not any(node.layouts):
        return strategy, []
    note = (
        "nothing in this app specifies the MIG strategy of this node: the plan assumes mixed. Declare it with "
        "GpuNode(mig_strategy=...)"
    )
    return "mixed", [note]


def _sharing(node: GpuNode, plugin: _PluginFacts) -> tuple[Sharing, list[str]]:
    """Return the sharing of the GPUs of a node, and assumptions about the sharing as texts.

    If several sharing settings are possible, the result is the setting with the most slots.
    """
    if node.sharing is not None and is_stated(node):
        return node.sharing, []
    if node.sharing is not None and not plugin.sharings:
        # No label of a node shows this option, so assume the default of the plugin, False.
        return replace(node.sharing, fail_requests_greater_than_one=False), []
    if len(plugin.sharings) == 1:
        return plugin.sharings[0], []
    able = [one for one in plugin.sharings if one.strategy != "mps" or not any(node.layouts)]
    # The sharing is an assumption, and an assumption must not make the plan reject pods. So ignore this option.
    most = max(able, key=lambda one: sum(one.resources.values()), default=Sharing.none())
    guess = replace(most, fail_requests_greater_than_one=False)
    return guess, [f"{plugin.doubt}: the plan assumes {in_full(guess)}. Declare it with GpuNode(sharing=...)"]


def _of_change(node: GpuNode, plugin: _PluginFacts) -> Iterator[str]:
    if not node.is_observed:
        return
    if node.sharing is not None and plugin.sharings and _looks(node.sharing) not in map(_looks, plugin.sharings):
        will = " or ".join(map(in_full, plugin.sharings))
        yield f"the inventory observed {in_full(node.sharing)} GPUs, but the plan uses {will}, which this app sets"
    if node.mig_strategy is not None and plugin.mig_strategy not in (None, node.mig_strategy):
        yield (
            f"the inventory observed the MIG strategy {node.mig_strategy}, but the plan uses {plugin.mig_strategy}, "
            "which this app sets"
        )


def _looks(sharing: Sharing | None) -> object:
    """Return a value that is equal for two sharing settings if both settings lead to the same labels on a node."""
    return None if sharing is None else (sharing.strategy, dict(sharing.resources), sharing.rename_by_default)


def in_words(sharing: Sharing) -> str:
    """Return a sharing setting as a phrase, such as ``time-slicing x 5``; empty for exclusive GPUs."""
    if sharing.vram_unit is not None:
        return f"{sharing.replicas} units of {sharing.vram_unit}"
    parts = [
        f"{sharing.strategy} x {replicas}{'' if resource == GPU else f' of {resource}'}"
        for resource, replicas in sharing.resources.items()
    ]
    return ", ".join(parts)


def in_full(sharing: Sharing) -> str:
    """Return a sharing setting as a phrase, such as ``time-slicing x 5 with names that end in .shared``.

    For exclusive GPUs, the phrase begins with ``exclusive``.
    """
    return (in_words(sharing) or "exclusive") + (" with names that end in .shared" if sharing.rename_by_default else "")


# Facts that the app declares


class _Place:
    """The labels and taints of a node that decide where the pods of device plugins run."""

    def __init__(
        self,
        node: GpuNode,
        provided: Sequence[Provided],
        labels: Mapping[str, str],
        taints: Sequence[Mapping[str, str]],
    ) -> None:
        known = {key: value for key, value in labels.items() if not is_of_sharing(key)}
        product = labels.get(_PRODUCT, "").removesuffix(_SHARED)
        # The product label has the suffix ``-SHARED`` or not, depending on the sharing. MIG also changes the label.
        products = (product, product + _SHARED) if product and not any(node.layouts) else ()
        self._offered = [
            replace(
                offer_key(NodeOffer(name=node.name, count=node.count, devices=(), labels=each, taints=taints)),
                absent=_SET_BY_HAND,
            )
            for each in ([{**known, _PRODUCT: one} for one in products] or [known])
        ]
        self._provided = provided
        self.config = labels.get(CONFIG_CHOICE, "")

    def refusal(self, offer: GpuOffer) -> str | None:
        """Return the reason why no pod of a device plugin runs on the node.

        Return None if a pod runs there, or if the pod spec of the device plugin is not known.

        Args:
            offer: Configuration of the device plugin, with the pod spec of its DaemonSet.
        """
        if offer.pod_spec is None:
            return None
        refusals = [refusal(daemon_key(offer.pod_spec), one) for one in self._offered]
        return None if None in refusals else refusals[0]

    def doubts(self, offer: GpuOffer) -> list[str]:
        """Return the node labels that the pods of a device plugin need, but that neither the node nor the app sets.

        Args:
            offer: Configuration of the device plugin, with the pod spec of its DaemonSet.
        """
        demands = daemon_key(offer.pod_spec or {})
        unknown = dict.fromkeys(label for one in self._offered for label in unknown_labels(demands, one))
        return [label for label in unknown if not any(one.publishes(label) for one in self._provided)]


def _plugin_facts(place: _Place, provided: Sequence[Provided]) -> _PluginFacts:
    """Return the sharing and MIG settings that the app declares for the device plugin of a node.

    Args:
        place: Labels and taints of the node, which decide whether a device plugin runs there.
        provided: Declarations of the app's constructs about their effects on the cluster.
    """
    if any(one.gpu_offers for one in provided):
        plugin = _of_offers(place, [one.gpu_offers for one in provided if one.gpu_offers])
        others = [one for one in provided if one.gpu_resources and not one.gpu_offers]
        return _of_resources(others) if plugin.failure and others else plugin
    return _of_resources([one for one in provided if one.gpu_resources])


def _of_offers(place: _Place, plugins: Sequence[Sequence[GpuOffer]]) -> _PluginFacts:
    refusals: dict[str, None] = {}
    notes: list[str] = []
    reaching: list[GpuOffer] = []
    for offers in plugins:
        whys = [place.refusal(offer) for offer in offers]
        refusals |= dict.fromkeys(filter(None, whys))
        there = [offer for offer, why in zip(offers, whys, strict=True) if why is None]
        chosen = _configurations(there, place.config)
        notes += _of_config(place.config, chosen) if len(there) > 1 else ()
        reaching += chosen
    if not reaching:
        return _PluginFacts(failure=f"this app's device plugin does not run there: {'; '.join(refusals)}")
    return _of_serving(place, reaching, notes)


def _of_config(config: str, chosen: Sequence[GpuOffer]) -> Iterator[str]:
    if config and chosen[0].config not in ("", config):
        yield (
            f"{CONFIG_CHOICE}={config} names no configuration of this app's device plugin: the plugin pod starts "
            f"with {chosen[0].config!r}, and the config-manager container in it restarts repeatedly"
        )


def _of_serving(place: _Place, reaching: Sequence[GpuOffer], notes: Sequence[str]) -> _PluginFacts:
    doubts = [place.doubts(offer) for offer in reaching]
    sure = [offer for offer, labels in zip(reaching, doubts, strict=True) if not labels]
    if not sure:
        listed = ", ".join(dict.fromkeys(label for labels in doubts for label in labels))
        notes = [
            *notes,
            f"the plan assumes that this app's device plugin runs there, although the node does not declare {listed}",
        ]
    serving = sure or reaching
    different = _different([offer.sharing for offer in serving])
    strategies = {offer.mig_strategy for offer in serving}
    return _PluginFacts(
        different,
        strategies.pop() if len(strategies) == 1 else None,
        doubt=_IN_SEVERAL_WAYS,
        notes=tuple(notes),
        names_mig_attributes=all(offer.names_mig_attributes for offer in serving),
        is_sure=bool(sure) and len(different) == 1 and all(offer.pod_spec is not None for offer in sure),
    )


def _configurations(offers: Sequence[GpuOffer], config: str) -> list[GpuOffer]:
    """Return the configurations that a device plugin may apply to a node.

    The node label ``nvidia.com/device-plugin.config`` names the configuration. If it names none of the given
    configurations, config-manager applies the default configuration. Without a default, the result contains all given
    configurations.

    Args:
        offers: Configurations of the device plugin pods that run on the node.
        config: Value of the label; empty if the node does not have the label.

    Source:
        NVIDIA/k8s-device-plugin@v0.20.0:cmd/config-manager/main.go, observed with 0.18.2 and 0.20.0
    """
    return (
        [offer for offer in offers if offer.config == config]
        or [offer for offer in offers if offer.is_default]
        or list(offers)
    )


def _of_resources(plugins: Sequence[Provided]) -> _PluginFacts:
    sharings: list[Sharing] = []
    is_mixed = False
    for one in plugins:
        resources = one.gpu_resources
        if _is_unseen(resources):
            return _PluginFacts(
                mig_strategy=one.mig_strategy, doubt="this app does not contain the configuration of its device plugin"
            )
        is_mixed = is_mixed or any(name.startswith(_MIG) for name in resources)
        shared = [one for one in resources.values() if one.strategy != "none"]
        # If a plugin advertises exclusive and shared GPUs, they come from different configurations.
        is_split = GPU in resources and resources[GPU] not in shared and any(GPU in one.resources for one in shared)
        sharings += [*shared, *([Sharing.none()] if is_split or not shared else [])]
    if not sharings:
        return _PluginFacts(doubt="no device plugin of the app specifies the sharing of GPUs")
    return _PluginFacts(_different(sharings), "mixed" if is_mixed else None, doubt=_IN_SEVERAL_WAYS)


def _is_unseen(resources: Mapping[str, Sharing]) -> bool:
    """Check whether the configuration of a device plugin is in a ConfigMap outside of the app.

    Other modules mark such a device plugin: they set ``resources["nvidia.com/gpu.shared"]`` to ``Sharing.none()``.

    Args:
        resources: Sharing of the GPUs, by name of the resource that the device plugin advertises.
    """
    return f"{GPU}.shared" in resources and resources[f"{GPU}.shared"].strategy == "none"


def _different(sharings: Sequence[Sharing]) -> tuple[Sharing, ...]:
    return tuple(one for number, one in enumerate(sharings) if one not in sharings[:number])


# Known nodes of an app


def nodes_taking(
    pod_spec: Mapping[str, Any], inventory: GpuInventory | None, configured: Sequence[GpuNodes]
) -> frozenset[str]:
    """Return the names of the nodes in the inventory or the app that accept the pods of a DaemonSet.

    Args:
        pod_spec: Pod spec of the DaemonSet, as in its manifest.
        inventory: GPU nodes; None if the app declares none.
        configured: Labels and taints from the node configurations of the app. If the inventory is None, each node
            configuration stands for one node, with the name ``#0``, ``#1`` and so on.
    """
    demands = daemon_key(pod_spec)
    return frozenset(node.name for node in _known(inventory, configured) if refusal(demands, offer_key(node)) is None)


def _known(inventory: GpuInventory | None, configured: Sequence[GpuNodes]) -> Iterator[NodeOffer]:
    for node in inventory.nodes if inventory is not None else ():
        # The sharing of the GPUs is not known here, so omit the labels that depend on it.
        labels = {key: value for key, value in labels_of(node, Sharing.none()).items() if not is_of_sharing(key)}
        taints = [taint.to_manifest() for taint in node.taints]
        yield NodeOffer(name=node.name, count=node.count, devices=(), labels=labels, taints=taints)
    if inventory is None:
        for number, nodes in enumerate(configured):
            yield NodeOffer(name=f"#{number}", count=1, devices=(), labels=nodes.labels, taints=nodes.taints)

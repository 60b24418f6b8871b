"""How the device plugins of an app serve a node: which one reaches it, and what it makes of its GPUs.

The same question of any DaemonSet: ``nodes_taking`` returns the known nodes that its pods reach.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gpu_constructs.capacity.eligibility import refusal, unknown_labels
from gpu_constructs.capacity.node_labels import MigStrategy, is_of_sharing, labels_of
from gpu_constructs.capacity.placement_keys import daemon_key, offer_key
from gpu_constructs.capacity.planned import NodeOffer
from gpu_constructs.catalog.inventory import GpuInventory, GpuNode
from gpu_constructs.catalog.sharing import GPU, Sharing
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.facts.provided import GpuNodes, GpuOffer, Provided

CONFIG_CHOICE = "nvidia.com/device-plugin.config"

# Only the user sets them, though they stand in domains of discoveries.
_SET_BY_HAND = frozenset((CONFIG_CHOICE, "nvidia.com/gpu.workload.config"))
_MIG = "nvidia.com/mig-"
_PRODUCT = f"{GPU}.product"
_SHARED = "-SHARED"
_IN_SEVERAL_WAYS = "this app shares GPUs in more than one way, and nothing says which holds here"


@dataclass(frozen=True)
class Service:
    """How a device plugin serves a node.

    Attributes:
        sharing: How it shares GPUs.
        mig_strategy: How it calls MIG devices.
        notes: What was assumed.
        is_running: Whether its pods come up there at all.
        is_as_observed: Whether labels that were read from the node still hold.
        names_mig_attributes: Whether MIG devices with attributes have them in their resource name under ``mixed``.
    """

    sharing: Sharing
    mig_strategy: MigStrategy
    notes: tuple[str, ...] = ()
    is_running: bool = True
    is_as_observed: bool = True
    names_mig_attributes: bool = True


@dataclass(frozen=True)
class _Said:
    """What the app says of the device plugin of a node.

    Attributes:
        sharings: The ways in which it may share GPUs; none where nothing is said.
        mig_strategy: How it calls MIG devices; None where nothing or more than one thing is said.
        doubt: Why the sharing is not known.
        failure: Why none serves the node; empty where one does.
        notes: What was assumed.
        is_sure: Whether it is known which pods serve the node.
        names_mig_attributes: Whether MIG devices with attributes have them in their resource name under ``mixed``.
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
    """Return how a node is served.

    Args:
        node: The node.
        provided: What the app's constructs say of themselves.
        labels: All that are known of the node but those that hang on how it is served.
        taints: Of the node.

    Raises:
        GpuConstructsError: The node says one thing of its sharing, and the app's plugin there does another.
    """
    said = _said(_Place(node, provided, labels, taints), provided)
    if said.is_sure and is_stated(node) and _looks(node.sharing) != _looks(said.sharings[0]):
        raise GpuConstructsError(
            f"gpu_node.sharing of {node.name!r} must be what the app's device plugin makes of its GPUs, "
            f"{in_full(said.sharings[0])}; got {in_full(node.sharing or Sharing.none())}; leave it out, and give the "
            "sharing to the DevicePluginChart or GpuOperator, and to the GpuProfile"
        )
    notes = said.notes
    if said.failure and node.sharing is None:
        return Service(Sharing.none(), "none", (said.failure,), is_running=False)
    if said.failure:
        # Who says how its GPUs are shared knows of a plugin that runs, and who saw it shared has seen one.
        seen = "as it was seen to be" if node.is_observed else "as sharing= of the node says"
        notes = (*notes, f"{said.failure}: taken to be served by another, {seen}")
        said = _Said()
    sharing, of_sharing = _sharing(node, said)
    strategy, of_strategy = _strategy(node, said)
    return Service(
        sharing,
        strategy or "none",
        (*notes, *_of_change(node, said), *of_sharing, *of_strategy),
        is_as_observed=_looks(sharing) == _looks(node.sharing) and strategy == (node.mig_strategy or strategy),
        names_mig_attributes=said.names_mig_attributes,
    )


def is_stated(node: GpuNode) -> bool:
    """Check whether a node says how its GPUs are to be shared, not only how they were seen."""
    return node.sharing is not None and not node.is_observed


def _strategy(node: GpuNode, said: _Said) -> tuple[MigStrategy | None, list[str]]:
    stated: tuple[MigStrategy | None, ...] = (node.mig_strategy, said.mig_strategy)
    strategy = next((one for one in (reversed(stated) if node.is_observed else stated) if one is not None), None)
    if strategy is not None or not any(node.layouts):
        return strategy, []
    note = (
        "nothing in this app says by which strategy MIG devices are called here: taken as mixed; declare it with "
        "mig_strategy= of the node"
    )
    return "mixed", [note]


def _sharing(node: GpuNode, said: _Said) -> tuple[Sharing, list[str]]:
    """Return how a node shares its GPUs; of several ways that the app names the one with the most slots."""
    if node.sharing is not None and is_stated(node):
        return node.sharing, []
    if node.sharing is not None and not said.sharings:
        # No label says so, and it is the plugin's default.
        return replace(node.sharing, fail_requests_greater_than_one=False), []
    if len(said.sharings) == 1:
        return said.sharings[0], []
    able = [one for one in said.sharings if one.strategy != "mps" or not any(node.layouts)]
    # A guess must not refuse pods.
    most = max(able, key=lambda one: sum(one.resources.values()), default=Sharing.none())
    guess = replace(most, fail_requests_greater_than_one=False)
    return guess, [f"{said.doubt}: taken as {in_full(guess)}; declare it with sharing= of the node"]


def _of_change(node: GpuNode, said: _Said) -> Iterator[str]:
    if not node.is_observed:
        return
    if node.sharing is not None and said.sharings and _looks(node.sharing) not in map(_looks, said.sharings):
        will = " or ".join(map(in_full, said.sharings))
        yield f"its GPUs were seen as {in_full(node.sharing)}, and this app makes them {will}, which counts"
    if node.mig_strategy is not None and said.mig_strategy not in (None, node.mig_strategy):
        yield (
            f"its MIG strategy was seen as {node.mig_strategy}, and this app makes it {said.mig_strategy}, which counts"
        )


def _looks(sharing: Sharing | None) -> object:
    """Return all of a sharing that the labels of a node tell."""
    return None if sharing is None else (sharing.strategy, dict(sharing.resources), sharing.rename_by_default)


def in_words(sharing: Sharing) -> str:
    """Return a sharing as a phrase; empty where there is none."""
    if sharing.vram_unit is not None:
        return f"{sharing.replicas} units of {sharing.vram_unit}"
    parts = [
        f"{sharing.strategy} x {replicas}{'' if resource == GPU else f' of {resource}'}"
        for resource, replicas in sharing.resources.items()
    ]
    return ", ".join(parts)


def in_full(sharing: Sharing) -> str:
    """Return a sharing as a phrase, with what it calls the resource."""
    return (in_words(sharing) or "exclusive") + (" with names that end in .shared" if sharing.rename_by_default else "")


# What the app says


class _Place:
    """A node as the pods of device plugins see it."""

    def __init__(
        self,
        node: GpuNode,
        provided: Sequence[Provided],
        labels: Mapping[str, str],
        taints: Sequence[Mapping[str, str]],
    ) -> None:
        known = {key: value for key, value in labels.items() if not is_of_sharing(key)}
        product = labels.get(_PRODUCT, "").removesuffix(_SHARED)
        # Shared or not, the board is this one; MIG makes other names of it.
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
        """Return why no pod of a plugin runs here; None where one does, or nothing is known of its pods."""
        if offer.pod_spec is None:
            return None
        refusals = [refusal(daemon_key(offer.pod_spec), one) for one in self._offered]
        return None if None in refusals else refusals[0]

    def doubts(self, offer: GpuOffer) -> list[str]:
        """Return the labels that a plugin's pods want, that are not declared and that nothing in the app publishes."""
        demands = daemon_key(offer.pod_spec or {})
        unknown = dict.fromkeys(label for one in self._offered for label in unknown_labels(demands, one))
        return [label for label in unknown if not any(one.publishes(label) for one in self._provided)]


def _said(place: _Place, provided: Sequence[Provided]) -> _Said:
    """Return what is said of a node by the plugins that reach it, those of others among them."""
    if any(one.gpu_offers for one in provided):
        said = _of_offers(place, [one.gpu_offers for one in provided if one.gpu_offers])
        others = [one for one in provided if one.gpu_resources and not one.gpu_offers]
        return _of_resources(others) if said.failure and others else said
    return _of_resources([one for one in provided if one.gpu_resources])


def _of_offers(place: _Place, plugins: Sequence[Sequence[GpuOffer]]) -> _Said:
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
        return _Said(failure=f"this app's device plugin does not run there: {'; '.join(refusals)}")
    return _of_serving(place, reaching, notes)


def _of_config(config: str, chosen: Sequence[GpuOffer]) -> Iterator[str]:
    if config and chosen[0].config not in ("", config):
        yield (
            f"{CONFIG_CHOICE}={config} names no configuration of this app's device plugin, which starts with "
            f"{chosen[0].config!r} while its config-manager restarts again and again"
        )


def _of_serving(place: _Place, reaching: Sequence[GpuOffer], notes: Sequence[str]) -> _Said:
    doubts = [place.doubts(offer) for offer in reaching]
    sure = [offer for offer, labels in zip(reaching, doubts, strict=True) if not labels]
    if not sure:
        listed = ", ".join(dict.fromkeys(label for labels in doubts for label in labels))
        notes = [*notes, f"this app's device plugin is taken to run there, though nobody declares {listed}"]
    serving = sure or reaching
    different = _different([offer.sharing for offer in serving])
    strategies = {offer.mig_strategy for offer in serving}
    return _Said(
        different,
        strategies.pop() if len(strategies) == 1 else None,
        doubt=_IN_SEVERAL_WAYS,
        notes=tuple(notes),
        names_mig_attributes=all(offer.names_mig_attributes for offer in serving),
        is_sure=bool(sure) and len(different) == 1 and all(offer.pod_spec is not None for offer in sure),
    )


def _configurations(offers: Sequence[GpuOffer], config: str) -> list[GpuOffer]:
    """Return those of one plugin that may serve a node which its pods reach.

    config-manager's init container always takes the default. A label that names no configuration ends its sidecar only.

    Source:
        NVIDIA/k8s-device-plugin@v0.20.0:cmd/config-manager/main.go, observed with 0.18.2 and 0.20.0
    """
    return (
        [offer for offer in offers if offer.config == config]
        or [offer for offer in offers if offer.is_default]
        or list(offers)
    )


def _of_resources(plugins: Sequence[Provided]) -> _Said:
    sharings: list[Sharing] = []
    is_mixed = False
    for one in plugins:
        resources = one.gpu_resources
        if _is_unseen(resources):
            return _Said(
                mig_strategy=one.mig_strategy, doubt="the configuration of this app's device plugin is not seen"
            )
        is_mixed = is_mixed or any(name.startswith(_MIG) for name in resources)
        shared = [one for one in resources.values() if one.strategy != "none"]
        # Whole GPUs that are not shared, where GPUs are shared too, are those of another configuration.
        is_split = GPU in resources and resources[GPU] not in shared and any(GPU in one.resources for one in shared)
        sharings += [*shared, *([Sharing.none()] if is_split or not shared else [])]
    if not sharings:
        return _Said(doubt="no device plugin of the app says how GPUs are shared")
    return _Said(_different(sharings), "mixed" if is_mixed else None, doubt=_IN_SEVERAL_WAYS)


def _is_unseen(resources: Mapping[str, Sharing]) -> bool:
    """Check whether a plugin with a configuration of another author may advertise anything."""
    return f"{GPU}.shared" in resources and resources[f"{GPU}.shared"].strategy == "none"


def _different(sharings: Sequence[Sharing]) -> tuple[Sharing, ...]:
    return tuple(one for number, one in enumerate(sharings) if one not in sharings[:number])


# Nodes that an app knows


def nodes_taking(
    pod_spec: Mapping[str, Any], inventory: GpuInventory | None, configured: Sequence[GpuNodes]
) -> frozenset[str]:
    """Return the names of known nodes that take the pods of a DaemonSet.

    Args:
        pod_spec: Pod spec, as Kubernetes writes it.
        inventory: The GPU nodes; None where they are not declared.
        configured: Nodes whose configuration the app makes, which stand for themselves without an inventory.
    """
    demands = daemon_key(pod_spec)
    return frozenset(node.name for node in _known(inventory, configured) if refusal(demands, offer_key(node)) is None)


def _known(inventory: GpuInventory | None, configured: Sequence[GpuNodes]) -> Iterator[NodeOffer]:
    for node in inventory.nodes if inventory is not None else ():
        # How its GPUs are shared, and so what these labels say, is not settled here.
        labels = {key: value for key, value in labels_of(node, Sharing.none()).items() if not is_of_sharing(key)}
        taints = [taint.to_manifest() for taint in node.taints]
        yield NodeOffer(name=node.name, count=node.count, devices=(), labels=labels, taints=taints)
    if inventory is None:
        for number, nodes in enumerate(configured):
            yield NodeOffer(name=f"#{number}", count=1, devices=(), labels=nodes.labels, taints=nodes.taints)

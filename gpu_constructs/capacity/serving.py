"""How the device plugins of an app serve a node: which one reaches it, and what it makes of its GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from gpu_constructs.capacity.eligibility import daemon_key, offer_key, refusal_of, unknown_labels_of
from gpu_constructs.capacity.node_labels import MigStrategy, is_of_sharing
from gpu_constructs.capacity.node_offer import NodeOffer
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.inventory import GpuNode
from gpu_constructs.provided import GpuOffer, Provided
from gpu_constructs.sharing import GPU, Sharing

CONFIG_CHOICE = "nvidia.com/device-plugin.config"

# Nobody but the user sets them, though they stand in domains of discoveries.
_SET_BY_HAND = frozenset((CONFIG_CHOICE, "nvidia.com/gpu.workload.config"))
_MIG = "nvidia.com/mig-"
_PRODUCT = f"{GPU}.product"
_SHARED = "-SHARED"
_One = TypeVar("_One")


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
    """Give how a node is served.

    Args:
        node: The node.
        provided: What the app's constructs say of themselves.
        labels: All that are known of the node but those that hang on how it is served.
        taints: Of the node.

    Raises:
        GpuConstructsError: The node says one thing of its sharing, and the app's plugin there does another.
    """
    said = _said(_Place(node, provided, labels, taints), provided)
    notes = list(said.notes)
    is_stated = node.sharing is not None and not node.is_observed
    if node.sharing is not None and is_stated and said.is_sure and _looks(node.sharing) != _looks(said.sharings[0]):
        raise GpuConstructsError(
            f"gpu_node.sharing of {node.name!r} must be what the app's device plugin makes of its GPUs, "
            f"{in_full(said.sharings[0])}; got {in_full(node.sharing)}; leave it out, and give the sharing to the "
            "DevicePluginChart or GpuOperator, and to the GpuProfile"
        )
    if said.failure:
        if node.sharing is None:
            return Service(Sharing.none(), "none", (said.failure,), is_running=False)
        # Who says how its GPUs are shared knows of a plugin that runs, and who saw it shared has seen one.
        seen = "as it was seen to be" if node.is_observed else "as sharing= of the node says"
        notes.append(f"{said.failure}: taken to be served by another, {seen}")
        said = _Said()
    is_seen = node.is_observed and not said.sharings and node.sharing is not None
    notes += _of_change(node, said)
    sharing = node.sharing if is_stated or is_seen else None
    if is_seen and sharing is not None:
        # No label says so, and it is the plugin's default.
        sharing = replace(sharing, fail_requests_greater_than_one=False)
    if sharing is None:
        sharing, note = _chosen(said, node)
        notes += note
    strategy, note = _strategy(node, said)
    is_as_observed = _looks(sharing) == _looks(node.sharing) and strategy == (node.mig_strategy or strategy)
    return Service(
        sharing,
        strategy or "none",
        (*notes, *note),
        is_as_observed=is_as_observed,
        names_mig_attributes=said.names_mig_attributes,
    )


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


def _chosen(said: _Said, node: GpuNode) -> tuple[Sharing, list[str]]:
    """Give how a node shares its GPUs by what the app says; of several ways the one with the most slots."""
    if len(said.sharings) == 1:
        return said.sharings[0], []
    able = [one for one in said.sharings if one.strategy != "mps" or not any(node.layouts)]
    # A guess refuses nobody.
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
    """Give all of a sharing that the labels of a node tell."""
    return None if sharing is None else (sharing.strategy, dict(sharing.resources), sharing.rename_by_default)


def in_words(sharing: Sharing) -> str:
    """Give a sharing as a phrase; empty where there is none."""
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
        """Give why no pod of a plugin runs here; None where one does."""
        demands = daemon_key(offer.pod_spec or {})
        refusals = [refusal_of(demands, one) for one in self._offered]
        return None if None in refusals else refusals[0]

    def doubts(self, offer: GpuOffer) -> list[str]:
        """Give the labels that a plugin's pods want, nobody declares, and nothing in the app publishes."""
        demands = daemon_key(offer.pod_spec or {})
        unknown = dict.fromkeys(label for one in self._offered for label in unknown_labels_of(demands, one))
        return [label for label in unknown if not any(one.publishes(label) for one in self._provided)]


def _said(place: _Place, provided: Sequence[Provided]) -> _Said:
    """Give what is said of a node by the plugins that reach it, those of others among them."""
    if any(one.gpu_offers for one in provided):
        said = _of_offers(place, [one.gpu_offers for one in provided if one.gpu_offers])
        others = [one for one in provided if one.gpu_resources and not one.gpu_offers]
        return _of_resources(others) if said.failure and others else said
    return _of_resources([one for one in provided if one.gpu_resources])


def _of_offers(place: _Place, plugins: Sequence[Sequence[GpuOffer]]) -> _Said:
    refusals: list[str] = []
    mislabelled: list[str] = []
    reaching: list[tuple[list[str], GpuOffer]] = []
    for offers in plugins:
        there: list[GpuOffer] = []
        for offer in offers:
            why = place.refusal(offer) if offer.pod_spec is not None else None
            there += [offer] if why is None else []
            refusals += [] if why is None else [why]
        chosen = _configurations(there, place.config)
        if len(there) > 1 and place.config and chosen[0].config not in ("", place.config):
            mislabelled.append(
                f"{CONFIG_CHOICE}={place.config} names no configuration of this app's device plugin, which starts "
                f"with {chosen[0].config!r} while its config-manager restarts again and again"
            )
        reaching += [(place.doubts(offer), offer) for offer in chosen]
    if not reaching:
        listed = "; ".join(dict.fromkeys(refusals))
        return _Said(failure=f"this app's device plugin does not run there: {listed}")
    sure = [offer for doubts, offer in reaching if not doubts]
    labels = dict.fromkeys(label for doubts, _ in reaching for label in doubts)
    notes = (
        () if sure else (f"this app's device plugin is taken to run there, though nobody declares {', '.join(labels)}",)
    )
    serving = sure or [offer for _, offer in reaching]
    different = _different([offer.sharing for offer in serving])
    return _Said(
        different,
        _only([offer.mig_strategy for offer in serving]),
        doubt="this app shares GPUs in more than one way, and nothing says which holds here",
        notes=(*mislabelled, *notes),
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
    doubt = "this app shares GPUs in more than one way, and nothing says which holds here"
    return _Said(_different(sharings), "mixed" if is_mixed else None, doubt=doubt)


def _is_unseen(resources: Mapping[str, Sharing]) -> bool:
    """Tell whether a plugin with a configuration of somebody else may advertise anything."""
    return f"{GPU}.shared" in resources and resources[f"{GPU}.shared"].strategy == "none"


def _different(sharings: Sequence[Sharing]) -> tuple[Sharing, ...]:
    return tuple(one for number, one in enumerate(sharings) if one not in sharings[:number])


def _only(said: Sequence[_One]) -> _One | None:
    return said[0] if all(one == said[0] for one in said) else None

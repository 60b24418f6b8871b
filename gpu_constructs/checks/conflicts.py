"""What two constructs of an app contradict each other in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, islice
from typing import Any, Literal

from gpu_constructs.catalog.platforms import Platform, Talos
from gpu_constructs.catalog.sharing import Sharing
from gpu_constructs.facts.app import Facts
from gpu_constructs.facts.finding import Finding
from gpu_constructs.facts.provided import Component, GpuOffer, Provided, listed
from gpu_constructs.facts.readable import namespace_of
from gpu_constructs.kube.annotations import COLLECTOR_INJECTION

_APART = "select different nodes with node_selector"


_OF_A_NODE: tuple[Component, ...] = ("device-plugin", "gpu-feature-discovery")
_MADE_ONCE = {
    "Namespace": "one GpuNamespace to both",
    "RuntimeClass": "one NvidiaRuntimeClass to both",
    "CustomResourceDefinition": "node_feature_discovery='external' to the second",
}
"""What is handed to two charts of the device plugin that would both make an object of a kind."""


def nodes_have_one_device_plugin(facts: Facts) -> Iterator[Finding]:
    """Find charts that bring the device plugin, or GPU Feature Discovery, to one node twice."""
    for one, other, both in _charts(facts):
        meeting = _meeting(facts, one, other) if both else None
        if meeting:
            yield Finding(
                None,
                f"brings {listed(both)} to nodes of {{1}} too, where they would replace each other's devices; leave "
                f"one out, use Configs.named(...), or {_APART}",
                providers=(one, other),
                is_warning=meeting == "perhaps",
            )


def charts_make_objects_of_their_own(facts: Facts) -> Iterator[Finding]:
    """Find charts for different nodes that make the same objects."""
    for one, other, both in _charts(facts):
        shared = sorted(set(facts.provided[one].makes) & set(facts.provided[other].makes))
        if shared and not (both and _meeting(facts, one, other) == "surely"):
            kinds = dict.fromkeys(kind for _, kind, _, _ in shared)
            ways_out = [_MADE_ONCE[kind] for kind in kinds if kind in _MADE_ONCE]
            if kinds.keys() - _MADE_ONCE.keys():
                ways_out.append("another name= to the second")
            yield Finding(
                None,
                f"makes {len(shared)} objects that {{1}} makes too, {shared[0][1]} {shared[0][3]!r} among them; pass "
                f"{', '.join(ways_out)}",
                providers=(other, one),
            )


def _charts(facts: Facts) -> Iterator[tuple[int, int, list[Component]]]:
    """Return each pair of charts of the device plugin, with what both run on the nodes they select."""
    charts = [index for index, offer in enumerate(facts.provided) if offer.makes]
    for one, other in combinations(charts, 2):
        theirs = facts.provided[other].components
        yield one, other, [name for name in facts.provided[one].components if name in theirs and name in _OF_A_NODE]


def gpus_are_profiled_by_one(facts: Facts) -> Iterator[Finding]:
    """Find exporters of which one at a time can profile the GPUs of a node."""
    return _in_each_others_way(
        facts,
        [index for index, offer in enumerate(facts.provided) if offer.profiles_gpus],
        "exports profiling metrics (DCGM_FI_PROF_*) of nodes whose GPUs {1} profiles too, and only one can at a time: "
        f"the other fails; leave them out of one's metrics, or {_APART}",
    )


def power_limits_are_kept_by_one(facts: Facts) -> Iterator[Finding]:
    """Find agents that would set the limits of one GPU in turn."""
    return _in_each_others_way(
        facts,
        [index for index, offer in enumerate(facts.provided) if offer.power_caps],
        "limits the power of GPUs on nodes that {1} limits too, so they would set their limits in turn; join them with "
        f"limits={{...}}, or {_APART}",
    )


def _in_each_others_way(facts: Facts, constructs: Sequence[int], problem: str) -> Iterator[Finding]:
    """Return a finding for each two of some constructs that may run on one node."""
    for pair in combinations(constructs, 2):
        meeting = _meeting(facts, *pair)
        if meeting:
            yield Finding(None, problem, providers=pair, is_warning=meeting == "perhaps")


def exporters_know_of_sharing(facts: Facts) -> Iterator[Finding]:
    """Find exporters that name one pod of a GPU that several hold."""
    for index, offer in enumerate(facts.provided):
        if offer.names_one_pod:
            for other, plugin in _plugins_beside(facts, offer):
                if any(one.sharing.strategy != "none" for one in plugin):
                    yield Finding(
                        None,
                        "names one of the pods that share a GPU, since it is not told that {1} shares GPUs; pass it "
                        "the same sharing=, or a PodMapping of your own",
                        providers=(index, other),
                        is_warning=True,
                    )


def sharing_is_stated_alike(facts: Facts) -> Iterator[Finding]:
    """Find what was told of another sharing than the device plugin of its nodes has."""
    for index, offer in enumerate(facts.provided):
        if offer.assumed_sharing is None or _is_shared_by_all(facts, offer.assumed_sharing):
            continue
        plugins = _plugins_beside(facts, offer)
        has = [one.sharing for _, plugin in plugins for one in plugin]
        if has and _advertised(offer.assumed_sharing) not in map(_advertised, has):
            from gpu_constructs.capacity.serving import in_full

            yield Finding(
                None,
                f"takes GPUs as {in_full(offer.assumed_sharing)}, and {{1}} advertises them as {in_full(has[0])}; pass "
                "one Sharing to both",
                providers=(index, plugins[0][0]),
                is_warning=True,
            )


def _is_shared_by_all(facts: Facts, sharing: Sharing) -> bool:
    """Check whether each plugin of the app has a sharing, which takes less than asking for the nodes of each."""
    advertised = _advertised(sharing)
    return all(_advertised(one.sharing) == advertised for plugin in facts.provided for one in plugin.gpu_offers)


def _advertised(sharing: Sharing) -> Sharing:
    """Return a sharing without what no metric and no label tells of it."""
    return replace(sharing, fail_requests_greater_than_one=False)


def _plugins_beside(facts: Facts, offer: Provided) -> list[tuple[int, list[GpuOffer]]]:
    """Return how the device plugins advertise the GPUs of the nodes that a construct's pods may run on.

    Nothing, where a plugin is there of which nothing is known.
    """
    found: list[tuple[int, list[GpuOffer]]] = []
    for index, plugin in enumerate(facts.provided):
        if "device-plugin" in plugin.components and not plugin.gpu_offers:
            return []
        reached = [
            one
            for one in plugin.gpu_offers
            if not offer.runs_on
            or one.pod_spec is None
            or any(nodes_in_common(facts, one.pod_spec, placement) for placement in offer.runs_on)
        ]
        found += [(index, reached)] if reached else []
    return found


def platforms_are_one(facts: Facts) -> Iterator[Finding]:
    """Find constructs made for another platform than the nodes, or than most constructs, of the app have.

    Nodes may have different releases while an upgrade lasts; what runs on a node is for one of them.
    """
    of_nodes: list[tuple[int, Platform]] = []
    of_others: list[tuple[int, Platform]] = []
    for at, offer in enumerate(facts.provided):
        if offer.platform is not None:
            (of_others if offer.gpu_nodes is None else of_nodes).append((at, offer.platform))
    lines = Counter(_line(platform) for _, platform in of_nodes or of_others)
    allowed = set(lines) if of_nodes else {line for line, _ in lines.most_common(1)}
    references = [(at, platform) for at, platform in of_nodes or of_others if _line(platform) in allowed]
    for at, platform in of_others:
        if _line(platform) not in allowed:
            yield from islice(_of_another_platform(facts, at, platform, references), 1)


def _of_another_platform(
    facts: Facts, at: int, platform: Platform, references: Iterable[tuple[int, Platform]]
) -> Iterator[Finding]:
    for other, reference in references:
        if _may_meet(facts, at, other) and not _need_nothing_of(facts, at, platform, reference):
            both_talos = isinstance(platform, Talos) and isinstance(reference, Talos)
            # Until 1.12 the driver lies elsewhere, and nothing hands it out by CDI.
            has_other_layout = both_talos and platform.supports_cdi != reference.supports_cdi
            yield Finding(
                None,
                f"platform must be the same for all that is on a node; got {platform}, and {{1}} has {reference}; "
                f"pass {type(reference).__name__}({reference.version!r}) here too, or {_APART}",
                providers=(at, other),
                is_warning=not has_other_layout or facts.provided[at].is_workload,
            )


def _line(platform: Platform) -> str:
    return platform.line if isinstance(platform, Talos) else "Kubernetes"


def _need_nothing_of(facts: Facts, at: int, *platforms: Platform) -> bool:
    """Check whether a construct may name no runtime class, as one for plain Kubernetes does, beside one for Talos."""
    names_differ = len({platform.runtime_class for platform in platforms}) > 1
    return names_differ and (facts.provided[at].is_workload or facts.gpu_runtime in ("default", "cdi"))


def _may_meet(facts: Facts, one: int, other: int) -> bool:
    has_pods = facts.provided[one].runs_on and facts.provided[other].runs_on
    return not has_pods or _meeting(facts, one, other) is not None


def gpu_clusters_are_not_on_talos(facts: Facts) -> Iterator[Finding]:
    """Find a GPUCluster of the GPU Operator in an app for Talos.

    Source:
        NVIDIA/gpu-operator@v26.7.0:cmd/nvidia-validator/driver.go, manifests/state-dra-driver/0500_daemonset.yaml
    """
    platforms = [offer.platform for offer in facts.provided if offer.platform is not None and not offer.is_workload]
    talos = next((platform for platform in platforms if platform.brings_driver), None)
    for index, _ in facts.of_kind(("nvidia.com", "GPUCluster")) if talos else ():
        yield Finding(
            index,
            f"cannot work on {talos}: the operator's validator tells its DRA driver the root '/', and the driver lies "
            "in /usr/local; make a ClusterPolicy, or install the DRA driver by its own chart",
        )


def one_priority_class_is_the_default(facts: Facts) -> Iterator[Finding]:
    """Find a second PriorityClass for all pods that name none, which the API server refuses.

    Source:
        kubernetes/kubernetes:plugin/pkg/admission/priority/admission.go
    """
    classes = facts.of_kind(("scheduling.k8s.io", "PriorityClass"))
    defaults = [index for index, made in classes if made.get("globalDefault") is True]
    for index in defaults[1:]:
        yield Finding(
            index,
            "must not have globalDefault: true beside {0}, since a cluster has one default; set it on one of the two",
            (defaults[0],),
        )


_WITHOUT_SIDECAR = ("None", "Push")
"""Collectors for which Katib adds no container to a trial's pod."""


def katib_can_collect(facts: Facts) -> Iterator[Finding]:
    """Find experiments whose trials get no collector, or one that their namespace refuses.

    Source:
        kubeflow/katib@v0.19.0:pkg/webhook/v1beta1/pod/inject_webhook.go, and the namespaceSelector of its webhook in
        manifests/v1beta1/components/webhook/webhooks.yaml
    """
    namespaces = {str(made["metadata"].get("name")): (at, made) for at, made in facts.of_kind(("", "Namespace"))}
    for index, experiment in facts.of_kind(("kubeflow.org", "Experiment")):
        at, namespace = namespaces.get(namespace_of(experiment), (0, None))
        collector = ((experiment.get("spec") or {}).get("metricsCollectorSpec") or {}).get("collector") or {}
        kind = collector.get("kind", "StdOut")
        if namespace is None or kind in _WITHOUT_SIDECAR:
            continue
        labels = namespace["metadata"].get("labels") or {}
        if not COLLECTOR_INJECTION.items() <= labels.items():
            yield Finding(
                index,
                "its trials would end without metrics: Katib adds its collector only in a namespace with a label that "
                f"{{0}} lacks; pass GpuNamespace(labels={COLLECTOR_INJECTION!r})",
                (at,),
            )
        if labels.get("pod-security.kubernetes.io/enforce") == "restricted" and kind != "Custom":
            yield Finding(
                index,
                "its namespace, made by {0}, enforces 'restricted', which refuses Katib's collector, and with it the "
                "trials' pods, unless KatibConfig has injectSecurityContext: true; pass "
                "GpuNamespace(pod_security='baseline')",
                (at,),
                is_warning=True,
            )


def the_guard_sees_all_ways_to_gpus(facts: Facts) -> Iterator[Finding]:
    """Find ways to NVIDIA's runtime that a policy leaves out: it judges images by their pod's runtime class."""
    guards = [
        (index, offer.device_guard)
        for index, offer in enumerate(facts.provided)
        if offer.device_guard is not None and (offer.device_guard.requires_gpu or offer.device_guard.forbids_env_from)
    ]
    guarded = {name for _, guard in guards for name in guard.runtime_classes}
    for index, guard in guards:
        judged = " or ".join(map(repr, guard.runtime_classes))
        for other, offer in enumerate(facts.provided):
            if offer.gpu_runtime == "default":
                yield Finding(
                    None,
                    f"judges pods with runtime class {judged} alone, and {{1}} makes that runtime the "
                    f"default: an image with {guard.variable}=all sees every GPU; leave default_runtime=True out",
                    providers=(index, other),
                    is_warning=True,
                )
        for name in facts.nvidia_runtime_classes if index == guards[0][0] else ():
            if name not in guarded:
                yield Finding(
                    None,
                    f"judges pods with runtime class {judged} alone, and RuntimeClass {name!r} of this app leads to "
                    f"NVIDIA's runtime too; pass runtime_class={[*guard.runtime_classes, name]!r}",
                    providers=(index,),
                    is_warning=True,
                )


def _meeting(facts: Facts, one: int, other: int) -> Literal["surely", "perhaps"] | None:
    """Check whether pods of two providers come to one node; None where they do not."""
    meeting = [
        (first, second)
        for first in facts.provided[one].runs_on
        for second in facts.provided[other].runs_on
        if nodes_in_common(facts, first, second)
    ]
    if not meeting:
        return None
    # Taints, of which the app need not know, may keep them apart.
    return "surely" if any(_tolerations(a) == _tolerations(b) for a, b in meeting) else "perhaps"


def _tolerations(placement: Mapping[str, Any]) -> list[str]:
    return sorted(map(repr, placement.get("tolerations") or ()))


def nodes_in_common(facts: Facts, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Check whether there can be a node that takes the pods of both.

    Nodes that the app knows prove the opposite: where each runs on some of them, and no node takes both.

    Args:
        facts: The app.
        one: What decides which nodes take the pods of one: ``nodeSelector``, ``affinity`` and ``tolerations``.
        other: The same for the other.
    """
    # Only an app with two agents of a sort needs the rules of the scheduler.
    from gpu_constructs.capacity.eligibility import may_share_a_node
    from gpu_constructs.capacity.serving import nodes_taking

    if not may_share_a_node(one, other):
        return False
    configured = [nodes for _, nodes in facts.gpu_nodes]
    first, second = (nodes_taking(each, facts.inventory, configured) for each in (one, other))
    return not first or not second or bool(first & second)

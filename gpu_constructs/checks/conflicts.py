"""Checks that find contradictions between two constructs of an app.

A provider is a construct that declares its effects on the cluster, such as the extended resources that it advertises.
"""

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
"""Text after "Pass" in the message about two constructs that emit the same object, by kind of the object."""


def nodes_have_one_device_plugin(facts: Facts) -> Iterator[Finding]:
    """Yield problems: two constructs that both run the device plugin, or GPU Feature Discovery, on the same node."""
    for one, other, both in _charts(facts):
        meeting = _meeting(facts, one, other) if both else None
        if meeting:
            yield Finding(
                None,
                f"runs {listed(both)} on nodes of {{1}} too, so the two overwrite each other. Remove one, "
                f"use Configs.named(...), or {_APART}",
                providers=(one, other),
                is_warning=meeting == "perhaps",
            )


def charts_make_objects_of_their_own(facts: Facts) -> Iterator[Finding]:
    """Yield problems: pairs of constructs, such as two ``DevicePluginChart``, that emit objects with the same names."""
    for one, other, both in _charts(facts):
        shared = sorted(set(facts.provided[one].makes) & set(facts.provided[other].makes))
        if shared and not (both and _meeting(facts, one, other) == "surely"):
            kinds = dict.fromkeys(kind for _, kind, _, _ in shared)
            ways_out = [_MADE_ONCE[kind] for kind in kinds if kind in _MADE_ONCE]
            if kinds.keys() - _MADE_ONCE.keys():
                ways_out.append("another name= to the second")
            yield Finding(
                None,
                f"emits {len(shared)} objects that {{1}} emits too, such as {shared[0][1]} {shared[0][3]!r}. Pass "
                f"{', '.join(ways_out)}",
                providers=(other, one),
            )


def _charts(facts: Facts) -> Iterator[tuple[int, int, list[Component]]]:
    """Yield the indices of two constructs with ``makes``, and which of the components ``_OF_A_NODE`` both run."""
    charts = [index for index, offer in enumerate(facts.provided) if offer.makes]
    for one, other in combinations(charts, 2):
        theirs = facts.provided[other].components
        yield one, other, [name for name in facts.provided[one].components if name in theirs and name in _OF_A_NODE]


def gpus_are_profiled_by_one(facts: Facts) -> Iterator[Finding]:
    """Yield problems: pairs of DCGM exporters that export profiling metrics of the GPUs of the same node.

    Only one process can profile a GPU at a time.
    """
    return _in_each_others_way(
        facts,
        [index for index, offer in enumerate(facts.provided) if offer.profiles_gpus],
        "exports profiling metrics (DCGM_FI_PROF_*) of GPUs that {1} profiles too, but only one can do this at a time. "
        f"Remove them from the metrics of one, or {_APART}",
    )


def power_limits_are_kept_by_one(facts: Facts) -> Iterator[Finding]:
    """Yield problems: pairs of constructs that set the power limits of the same GPUs."""
    return _in_each_others_way(
        facts,
        [index for index, offer in enumerate(facts.provided) if offer.power_caps],
        "sets power limits on nodes of {1} too, so each overwrites the limits of the other. Combine them with "
        f"limits={{...}}, or {_APART}",
    )


def _in_each_others_way(facts: Facts, constructs: Sequence[int], problem: str) -> Iterator[Finding]:
    """Yield a finding for each pair of the given constructs whose pods can run on the same node.

    Args:
        facts: Facts that the library derives from the objects of the app.
        constructs: Indices of the given constructs in ``Facts.provided``.
        problem: Message of each finding. In it, ``{1}`` stands for the path of the second construct of the pair.
    """
    for pair in combinations(constructs, 2):
        meeting = _meeting(facts, *pair)
        if meeting:
            yield Finding(None, problem, providers=pair, is_warning=meeting == "perhaps")


def exporters_know_of_sharing(facts: Facts) -> Iterator[Finding]:
    """Yield problems: exporters whose metrics name only one pod for each GPU, although several pods share each GPU."""
    for index, offer in enumerate(facts.provided):
        if offer.names_one_pod:
            for other, plugin in _plugins_beside(facts, offer):
                if any(one.sharing.strategy != "none" for one in plugin):
                    yield Finding(
                        None,
                        "names only one of the pods that share a GPU, because it has no sharing= but {1} shares GPUs. "
                        "Pass the same sharing=, or a PodMapping",
                        providers=(index, other),
                        is_warning=True,
                    )


def sharing_is_stated_alike(facts: Facts) -> Iterator[Finding]:
    """Yield problems: constructs whose sharing settings differ from those of the device plugin on the same nodes."""
    for index, offer in enumerate(facts.provided):
        if offer.assumed_sharing is None or _is_shared_by_all(facts, offer.assumed_sharing):
            continue
        plugins = _plugins_beside(facts, offer)
        has = [one.sharing for _, plugin in plugins for one in plugin]
        if has and _advertised(offer.assumed_sharing) not in map(_advertised, has):
            from gpu_constructs.capacity.serving import in_full

            yield Finding(
                None,
                f"expects GPUs as {in_full(offer.assumed_sharing)}, but {{1}} advertises them as {in_full(has[0])}. "
                "Pass "
                "one Sharing to both",
                providers=(index, plugins[0][0]),
                is_warning=True,
            )


def _is_shared_by_all(facts: Facts, sharing: Sharing) -> bool:
    """Check whether all device plugins in the app have the given sharing settings.

    If so, the caller need not compute the nodes of each device plugin, which is slow.
    """
    advertised = _advertised(sharing)
    return all(_advertised(one.sharing) == advertised for plugin in facts.provided for one in plugin.gpu_offers)


def _advertised(sharing: Sharing) -> Sharing:
    """Return a copy of sharing settings in which ``fail_requests_greater_than_one`` is False.

    This attribute changes neither metrics nor labels, so comparisons of sharing settings ignore it.
    """
    return replace(sharing, fail_requests_greater_than_one=False)


def _plugins_beside(facts: Facts, offer: Provided) -> list[tuple[int, list[GpuOffer]]]:
    """Return the device plugins that can run on the same nodes as the pods of the construct ``offer``.

    Each is a pair: the index in ``Facts.provided`` of the construct that runs the device plugin, and the configurations
    of the device plugin on these nodes. If the configurations of any device plugin are unknown, the list is empty.
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
    """Yield problems: constructs whose platform (operating system and release) no node configuration in the app has.

    In an app without node configurations, report constructs whose platform is not the most common platform.
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
    """Yield problems: a construct can share nodes with constructs of another platform.

    Args:
        facts: Facts that the library derives from the objects of the app.
        at: Index of the construct in ``Facts.provided``.
        platform: Platform of the construct.
        references: Constructs of other platforms, as pairs: index in ``Facts.provided``, and platform.
    """
    for other, reference in references:
        if _may_meet(facts, at, other) and not _need_nothing_of(facts, at, platform, reference):
            both_talos = isinstance(platform, Talos) and isinstance(reference, Talos)
            # Up to Talos 1.12, the driver is in another folder, and CDI does not work.
            has_other_layout = both_talos and platform.supports_cdi != reference.supports_cdi
            yield Finding(
                None,
                f"platform must be the platform of the nodes, got {platform}, but {{1}} has {reference}. "
                f"Pass {type(reference).__name__}({reference.version!r}) here too, or {_APART}",
                providers=(at, other),
                is_warning=not has_other_layout or facts.provided[at].is_workload,
            )


def _line(platform: Platform) -> str:
    """Return the release line of a platform in words, such as ``Talos 1.13``."""
    return platform.line if isinstance(platform, Talos) else "Kubernetes"


def _need_nothing_of(facts: Facts, at: int, *platforms: Platform) -> bool:
    """Check whether platforms differ in their RuntimeClass, but a construct is a workload or needs no RuntimeClass.

    No construct needs a RuntimeClass if ``Facts.gpu_runtime`` is ``default`` or ``cdi``.

    Args:
        facts: Facts that the library derives from the objects of the app.
        at: Index of the construct in ``facts.provided``.
        platforms: Platforms to compare.
    """
    names_differ = len({platform.runtime_class for platform in platforms}) > 1
    return names_differ and (facts.provided[at].is_workload or facts.gpu_runtime in ("default", "cdi"))


def _may_meet(facts: Facts, one: int, other: int) -> bool:
    """Check whether pods of two constructs (by index in ``Facts.provided``) can run on the same node."""
    has_pods = facts.provided[one].runs_on and facts.provided[other].runs_on
    return not has_pods or _meeting(facts, one, other) is not None


def gpu_clusters_are_not_on_talos(facts: Facts) -> Iterator[Finding]:
    """Yield problems: GPUCluster objects of the GPU Operator, which do not work on Talos.

    Source: NVIDIA/gpu-operator@v26.7.0:cmd/nvidia-validator/driver.go, manifests/state-dra-driver/0500_daemonset.yaml
    """
    platforms = [offer.platform for offer in facts.provided if offer.platform is not None and not offer.is_workload]
    talos = next((platform for platform in platforms if platform.brings_driver), None)
    for index, _ in facts.of_kind(("nvidia.com", "GPUCluster")) if talos else ():
        yield Finding(
            index,
            f"does not work on {talos}: the GPU Operator passes '/' to its DRA driver as the folder of the NVIDIA "
            "driver. On Talos, this folder is /usr/local. Replace the GPUCluster with a ClusterPolicy, or install the "
            "DRA driver with its own Helm chart",
        )


def one_priority_class_is_the_default(facts: Facts) -> Iterator[Finding]:
    """Yield problems: PriorityClasses with ``globalDefault: true`` besides the first one. The API server rejects them.

    Source: kubernetes/kubernetes:plugin/pkg/admission/priority/admission.go
    """
    classes = facts.of_kind(("scheduling.k8s.io", "PriorityClass"))
    defaults = [index for index, made in classes if made.get("globalDefault") is True]
    for index in defaults[1:]:
        yield Finding(
            index,
            "must not have globalDefault: true, because {0} has it too and a cluster has only one default. Set it in "
            "one of the two",
            (defaults[0],),
        )


_WITHOUT_SIDECAR = ("None", "Push")
"""Kinds of Katib metrics collectors that add no container to the pods of a trial."""


def katib_can_collect(facts: Facts) -> Iterator[Finding]:
    """Yield problems: Katib Experiments whose trials would end without metrics.

    Katib adds its metrics collector only to pods in namespaces with a certain label (``COLLECTOR_INJECTION``). The Pod
    Security level ``restricted`` can reject pods with the collector. The function checks only namespaces of the app.

    Source: kubeflow/katib@v0.19.0:pkg/webhook/v1beta1/pod/inject_webhook.go, and the namespaceSelector of this webhook
    in manifests/v1beta1/components/webhook/webhooks.yaml
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
                f"{{0}} does not have. Pass GpuNamespace(labels={COLLECTOR_INJECTION!r})",
                (at,),
            )
        if labels.get("pod-security.kubernetes.io/enforce") == "restricted" and kind != "Custom":
            yield Finding(
                index,
                "its namespace, from {0}, enforces 'restricted', which rejects the pods with the collector of Katib "
                "unless KatibConfig has injectSecurityContext: true. Pass "
                "GpuNamespace(pod_security='baseline')",
                (at,),
                is_warning=True,
            )


def the_guard_sees_all_ways_to_gpus(facts: Facts) -> Iterator[Finding]:
    """Yield problems: admission policies for GPU access that do not check all pods with the NVIDIA runtime.

    A policy checks only pods with the RuntimeClasses that the user specifies. Pods can also get the NVIDIA runtime by
    another RuntimeClass, or because it is the default runtime of the nodes.
    """
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
                    f"checks only pods with runtime class {judged}, but {{1}} makes that runtime the default, so an "
                    f"image with {guard.variable}=all has access to every GPU. Leave default_runtime=True out",
                    providers=(index, other),
                    is_warning=True,
                )
        for name in facts.nvidia_runtime_classes if index == guards[0][0] else ():
            if name not in guarded:
                yield Finding(
                    None,
                    f"checks only pods with runtime class {judged}, but RuntimeClass {name!r} of this app uses the "
                    f"NVIDIA runtime too. Pass runtime_class={[*guard.runtime_classes, name]!r}",
                    providers=(index,),
                    is_warning=True,
                )


def _meeting(facts: Facts, one: int, other: int) -> Literal["surely", "perhaps"] | None:
    """Return None if pods of two constructs (by index in ``Facts.provided``) cannot run on the same node.

    Otherwise, return ``perhaps`` if their tolerations differ, because a taint can then separate the pods. If their
    tolerations are equal, return ``surely``.
    """
    meeting = [
        (first, second)
        for first in facts.provided[one].runs_on
        for second in facts.provided[other].runs_on
        if nodes_in_common(facts, first, second)
    ]
    if not meeting:
        return None
    # With different tolerations, a taint that the app does not declare can separate the pods.
    return "surely" if any(_tolerations(a) == _tolerations(b) for a, b in meeting) else "perhaps"


def _tolerations(placement: Mapping[str, Any]) -> list[str]:
    """Return the tolerations of a pod spec as sorted texts, for a comparison that ignores their order."""
    return sorted(map(repr, placement.get("tolerations") or ()))


def nodes_in_common(facts: Facts, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Check whether pods of two DaemonSets can run on the same node.

    The result is False if the node selections contradict each other. It is also False if the app declares nodes for
    each of the two DaemonSets, but no node for both.

    Args:
        facts: Facts that the library derives from the objects of the app.
        one: Fields of the first pod spec that determine its nodes: ``nodeSelector``, ``affinity``, ``tolerations``.
        other: Fields ``nodeSelector``, ``affinity`` and ``tolerations`` of the second pod spec.
    """
    # The following import is slow, and only few apps need it.
    from gpu_constructs.capacity.eligibility import may_share_a_node
    from gpu_constructs.capacity.serving import nodes_taking

    if not may_share_a_node(one, other):
        return False
    configured = [nodes for _, nodes in facts.gpu_nodes]
    first, second = (nodes_taking(each, facts.inventory, configured) for each in (one, other))
    return not first or not second or bool(first & second)

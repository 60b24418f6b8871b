"""Facts that only the whole app knows, checked over plain manifests of any origin."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpu_constructs import _kinds, pod_security
from gpu_constructs.platforms import GPU_PRESENT
from gpu_constructs.pod_specs import containers, node_labels_required, pod_specs
from gpu_constructs.provided import COMPONENTS, Component, GpuNodes, Provided
from gpu_constructs.scrape_targets import scrape_targets

Manifest = Mapping[str, Any]

VISIBLE_DEVICES_ANNOTATION = "gpu-constructs/visible-devices"
"""On an object that chooses its GPUs by itself: ``unmanaged``."""

SCRAPED_TWICE_ANNOTATION = "gpu-constructs/scraped-twice"
"""On a scrape object whose targets another one has too, for another store: ``intended``."""

_GPU = re.compile(r"nvidia\.com/(gpu|gpu\.shared|mig-.+)\Z")
_OF_GPU_NODES = ("nvidia.com/", "extensions.talos.dev/n", "feature.node.kubernetes.io/pci-")
_DISCOVERED = ("nvidia.com/", "feature.node.kubernetes.io/", "node-role.kubernetes.io/gpu")


@dataclass(frozen=True)
class Finding:
    """One problem.

    Attributes:
        subject: Index of the manifest it is about; None where it is about the first of the providers.
        problem: The message, without the construct path.
        others: Indexes of further manifests to name, in the order of ``{0}``, ``{1}`` in the message.
        providers: Indexes of providers to name likewise, after the manifests.
        is_warning: Whether the app may be right all the same.
    """

    subject: int | None
    problem: str
    others: tuple[int, ...] = ()
    providers: tuple[int, ...] = ()
    is_warning: bool = False


def check(manifests: Sequence[Manifest], provided: Sequence[Provided]) -> list[Finding]:
    """Run every check.

    Args:
        manifests: All objects of one App.
        provided: What its constructs say they provide.
    """
    return [
        *_one_object_of_one_identity(manifests),
        *_namespaces_exist(manifests, provided),
        *_runtime_classes_exist(manifests, provided),
        *_selected_labels_are_published(manifests, provided),
        *_pods_satisfy_their_namespace(manifests, provided),
        *_gpus_asked_for_are_advertised(manifests, provided),
        *_shared_gpus_are_asked_for_one_by_one(manifests, provided),
        *_memory_shared_with_mps_is_not_hidden(manifests, provided),
        *_allocated_gpus_are_not_overridden(manifests),
        *_targets_are_scraped_once(manifests),
        *_components_run_once(provided),
        *_gpus_are_profiled_by_one(provided),
        *_needed_components_are_there(provided),
        *_refused_components_are_not_there(provided),
        *_drivers_are_looked_for_where_they_are_staged(provided),
        *_wanted_node_labels_are_set(provided),
        *_unwanted_node_labels_are_not_set(provided),
        *_gpu_pods_tolerate_the_taints_of_gpu_nodes(manifests, provided),
        *_labels_of_the_operator_are_left_to_it(provided),
        *_later_pods_find_a_privileged_namespace(manifests, provided),
    ]


def _annotations(manifest: Manifest) -> Mapping[str, str]:
    return manifest.get("metadata", {}).get("annotations") or {}


def _identity(manifest: Manifest) -> tuple[str, str, str | None, str]:
    metadata = manifest.get("metadata", {})
    group = _kinds.group_of(manifest["apiVersion"])
    return group, manifest["kind"], metadata.get("namespace"), metadata.get("name", "")


def _one_object_of_one_identity(manifests: Sequence[Manifest]) -> Iterator[Finding]:
    seen: dict[tuple[str, str, str, str], int] = {}
    for index, manifest in enumerate(manifests):
        group, kind, namespace, name = _identity(manifest)
        first = seen.setdefault((group, kind, namespace or "default", name), index)
        if first != index:
            where = f" in namespace {namespace!r}" if namespace else ""
            yield Finding(
                index,
                f"{kind} {name!r}{where} is already made by {{0}}; make it once and hand it to the others",
                (first,),
            )


def _namespaces_exist(manifests: Sequence[Manifest], provided: Sequence[Provided]) -> Iterator[Finding]:
    known = set(_kinds.NAMESPACES_OF_EVERY_CLUSTER)
    known.update(m["metadata"]["name"] for m in manifests if _identity(m)[:2] == ("", "Namespace"))
    for offer in provided:
        known.update(offer.namespaces)
    reported: set[str] = set()
    for index, manifest in enumerate(manifests):
        namespace = manifest.get("metadata", {}).get("namespace")
        if namespace and namespace not in known and namespace not in reported:
            reported.add(namespace)
            yield Finding(
                index,
                f"namespace {namespace!r} is not in this app; add GpuNamespace(chart, 'namespace', "
                f"name={namespace!r}) or declare it with External(app, 'existing', namespaces=[{namespace!r}])",
            )
    for provider, offer in enumerate(provided):
        for namespace in offer.privileged_namespaces:
            if namespace not in known and namespace not in reported:
                reported.add(namespace)
                yield Finding(
                    None,
                    f"namespace {namespace!r}, which its pods go to, is not in this app; add GpuNamespace(chart, "
                    f"'namespace', name={namespace!r}) or declare it with External(app, 'existing', "
                    f"namespaces=[{namespace!r}])",
                    providers=(provider,),
                )


def _runtime_classes_exist(manifests: Sequence[Manifest], provided: Sequence[Provided]) -> Iterator[Finding]:
    known = {m["metadata"]["name"] for m in manifests if _identity(m)[:2] == ("node.k8s.io", "RuntimeClass")}
    for offer in provided:
        known.update(offer.runtime_classes)
    for index, manifest in enumerate(manifests):
        for spec in pod_specs(manifest):
            wanted = spec.get("runtimeClassName")
            if wanted and wanted not in known:
                yield Finding(
                    index,
                    f"runtime_class {wanted!r} is used but no RuntimeClass of that name is in this app; add an "
                    f"NvidiaRuntimeClass, declare it with External(app, 'existing', runtime_classes=[{wanted!r}]), or "
                    "pass platform=Kubernetes() where the nodes' default runtime knows NVIDIA devices",
                )

    elsewhere = {name: index for index, offer in enumerate(provided) for name in offer.runtime_classes}
    for index, manifest in enumerate(manifests):
        if _identity(manifest)[:2] == ("node.k8s.io", "RuntimeClass"):
            name = manifest["metadata"]["name"]
            if name in elsewhere:
                yield Finding(
                    index,
                    f"RuntimeClass {name!r} comes from {{0}} already, and two owners undo each other's; leave one out",
                    providers=(elsewhere[name],),
                )


def _is_among(name: str, offered: Iterable[str]) -> bool:
    """Tell whether a name is offered, a trailing star standing for the rest of it."""
    return any(name == offer or (offer.endswith("*") and name.startswith(offer[:-1])) for offer in offered)


def _selected_labels_are_published(manifests: Sequence[Manifest], provided: Sequence[Provided]) -> Iterator[Finding]:
    published = {label for offer in provided for label in offer.node_labels}
    published.update(label for _, gpu_nodes in _gpu_nodes(provided) for label in gpu_nodes.labels)
    operators = tuple(index for index, offer in enumerate(provided) if "gpu-operator" in offer.components)[:1]
    for index, manifest in enumerate(manifests):
        for spec in pod_specs(manifest):
            for alternatives in node_labels_required(spec):
                discovered = sorted(label for label in alternatives if label.startswith(_DISCOVERED))
                if len(discovered) < len(alternatives) or any(_is_among(x, published) for x in discovered):
                    continue
                label = discovered[-1]
                # Of nvidia.com/, Node Feature Discovery publishes this one alone.
                is_of_gfd = label.startswith("nvidia.com/") and label != GPU_PRESENT
                way_out = "gpu_feature_discovery=True" if is_of_gfd else "node_feature_discovery=True"
                maker = "make {0} with" if operators else "add a DevicePluginChart with"
                yield Finding(
                    index,
                    f"selects nodes by the label {label!r}, which nothing in this app publishes, so its pods "
                    f"would never be scheduled; {maker} {way_out} or "
                    f"declare it with External(app, 'existing', node_labels=[{label!r}])",
                    providers=operators,
                )


def _pods_satisfy_their_namespace(manifests: Sequence[Manifest], provided: Sequence[Provided]) -> Iterator[Finding]:
    default = next((offer.pod_security_default for offer in provided if offer.pod_security_default), None)
    levels: dict[str, tuple[str | None, int]] = {}
    for index, manifest in enumerate(manifests):
        if _identity(manifest)[:2] == ("", "Namespace"):
            labels = manifest["metadata"].get("labels") or {}
            levels[manifest["metadata"]["name"]] = (labels.get("pod-security.kubernetes.io/enforce"), index)
    if default:
        levels.setdefault("default", (None, -1))
    for index, manifest in enumerate(manifests):
        namespace = manifest.get("metadata", {}).get("namespace", "default")
        if namespace not in levels:
            continue
        stated, made_by = levels[namespace]
        level = stated or default
        if level != "baseline" and level != "restricted":
            continue
        for spec in pod_specs(manifest):
            violations = pod_security.violations(spec, level)
            if violations:
                maker = " of {0}" if made_by >= 0 else ""
                says = f"enforces {stated!r}" if stated else f"states no Pod Security level, so {default!r} holds"
                yield Finding(
                    index,
                    f"pods would be refused: namespace {namespace!r}{maker} {says}, and {'; '.join(violations)}; take "
                    "the pods' rights back (leave out the options that need them; run_as_user=... for a workload's "
                    "user that is not root) or choose another "
                    "GpuNamespace(pod_security=...)",
                    (made_by,) if made_by >= 0 else (),
                )


def _gpu_limits(manifest: Manifest) -> Iterator[tuple[Manifest, str, str]]:
    """Give each container that holds GPUs, with the resource and how many."""
    for spec in pod_specs(manifest):
        for container in containers(spec):
            for resource, count in ((container.get("resources") or {}).get("limits") or {}).items():
                if _GPU.match(resource) and str(count) != "0":
                    yield container, resource, str(count)


def _gpus_asked_for_are_advertised(manifests: Sequence[Manifest], provided: Sequence[Provided]) -> Iterator[Finding]:
    offered = sorted({resource for offer in provided for resource in offer.gpu_resources})
    if not offered:
        return
    for index, manifest in enumerate(manifests):
        for _, resource, count in _gpu_limits(manifest):
            if not _is_among(resource, offered):
                yield Finding(
                    index,
                    f"asks for {count} x {resource}, which no device plugin of this app advertises, so its pods would "
                    f"never be scheduled; ask for {' or '.join(offered)}",
                )


def _shared_gpus_are_asked_for_one_by_one(
    manifests: Sequence[Manifest], provided: Sequence[Provided]
) -> Iterator[Finding]:
    refusing: dict[str, tuple[int, str]] = {}
    for provider, offer in enumerate(provided):
        for resource, sharing in offer.gpu_resources.items():
            if sharing.fail_requests_greater_than_one:
                refusing.setdefault(resource, (provider, sharing.strategy.replace("-", "_")))
    for index, manifest in enumerate(manifests):
        for _, resource, count in _gpu_limits(manifest):
            if resource in refusing and count.isdigit() and int(count) > 1:
                provider, factory = refusing[resource]
                yield Finding(
                    index,
                    f"asks for {count} x {resource} but {{0}} shares it with fail_requests_greater_than_one: two "
                    "slots are not two GPUs; ask for 1, or pass "
                    f"Sharing.{factory}(..., fail_requests_greater_than_one=False)",
                    providers=(provider,),
                )


def _memory_shared_with_mps_is_not_hidden(
    manifests: Sequence[Manifest], provided: Sequence[Provided]
) -> Iterator[Finding]:
    """The plugin mounts the MPS daemon's shared memory into every container that holds a slot."""
    shared = {
        resource: provider
        for provider, offer in enumerate(provided)
        for resource, sharing in offer.gpu_resources.items()
        if sharing.strategy == "mps"
    }
    for index, manifest in enumerate(manifests):
        for container, resource, _ in _gpu_limits(manifest):
            mounted = {str(mount.get("mountPath")).rstrip("/") for mount in container.get("volumeMounts") or ()}
            if resource in shared and "/dev/shm" in mounted:
                yield Finding(
                    index,
                    f"container {container.get('name')!r} mounts a volume of its own at /dev/shm, where {{0}}, which "
                    "shares GPUs by MPS, mounts the memory through which containers reach the MPS server; leave "
                    "shared_memory= and volumes at /dev/shm out",
                    providers=(shared[resource],),
                )


def _allocated_gpus_are_not_overridden(manifests: Sequence[Manifest]) -> Iterator[Finding]:
    for index, manifest in enumerate(manifests):
        if _annotations(manifest).get(VISIBLE_DEVICES_ANNOTATION) == "unmanaged":
            continue
        for container, _, _ in _gpu_limits(manifest):
            for variable in container.get("env") or ():
                if variable.get("name") == "NVIDIA_VISIBLE_DEVICES":
                    yield Finding(
                        index,
                        f"container {container.get('name')!r} holds a GPU and sets NVIDIA_VISIBLE_DEVICES to "
                        f"{variable.get('value', 'a value from elsewhere')!r}: it overrides the GPU that was "
                        "allocated, and 'all' shows every GPU of the node; leave it out, or annotate the object with "
                        f"{VISIBLE_DEVICES_ANNOTATION}=unmanaged",
                    )


def _targets_are_scraped_once(manifests: Sequence[Manifest]) -> Iterator[Finding]:
    scraped = [
        (index, targets)
        for index, targets in scrape_targets(manifests).items()
        if _annotations(manifests[index]).get(SCRAPED_TWICE_ANNOTATION) != "intended"
    ]
    for place, (index, targets) in enumerate(scraped):
        for other, others in scraped[:place]:
            both = sorted(targets & others)
            if both:
                yield Finding(
                    index,
                    f"scrapes port {both[0].port} of {{0}}, and so does {{1}}: every series would be there twice, also "
                    "where the VictoriaMetrics operator converts a Prometheus object; keep one of the two, or annotate "
                    f"one with {SCRAPED_TWICE_ANNOTATION}=intended where they are for two stores",
                    others=(both[0].pods, other),
                )


def _components_run_once(provided: Sequence[Provided]) -> Iterator[Finding]:
    for index, offer in enumerate(provided):
        if not offer.is_alone:
            continue
        for other, rival in enumerate(provided):
            both = [component for component in offer.components if component in rival.components]
            if other != index and both and not (rival.is_alone and other < index):
                yield Finding(
                    None,
                    f"brings {_listed(both)} to every GPU node, and so does {{1}}; keep one of the two, or switch the "
                    "component off in one of them",
                    providers=(index, other),
                )


def _gpus_are_profiled_by_one(provided: Sequence[Provided]) -> Iterator[Finding]:
    profiling = [
        (index, offer.profiled_nodes) for index, offer in enumerate(provided) if offer.profiled_nodes is not None
    ]
    for place, (index, nodes) in enumerate(profiling):
        for other, others in profiling[place + 1 :]:
            if all(others.get(key, value) == value for key, value in nodes.items()):
                yield Finding(
                    None,
                    "exports profiling metrics (DCGM_FI_PROF_*) of nodes whose GPUs {1} profiles too, and only one "
                    "can at a time: the other fails; leave them out of one's metrics, or give the two "
                    "node_selectors that no node matches both of",
                    providers=(index, other),
                )


def _needed_components_are_there(provided: Sequence[Provided]) -> Iterator[Finding]:
    there = {component for offer in provided for component in offer.components}
    for index, offer in enumerate(provided):
        for component, way_out in offer.needs.items():
            if component not in there:
                yield Finding(None, f"needs {COMPONENTS[component]} beside it: {way_out}", providers=(index,))


def _listed(components: Sequence[Component]) -> str:
    *first, last = (COMPONENTS[component] for component in components)
    return f"{', '.join(first)} and {last}" if first else last


def _refused_components_are_not_there(provided: Sequence[Provided]) -> Iterator[Finding]:
    for index, offer in enumerate(provided):
        for component, why in offer.refuses.items():
            for other, rival in enumerate(provided):
                if component in rival.components:
                    yield Finding(
                        None,
                        f"does not go with {COMPONENTS[component]}, which {{1}} is: {why}",
                        providers=(index, other),
                    )


def _drivers_are_looked_for_where_they_are_staged(provided: Sequence[Provided]) -> Iterator[Finding]:
    staged = [(index, offer.stages_driver_in) for index, offer in enumerate(provided) if offer.stages_driver_in]
    for index, offer in enumerate(provided):
        for bridge, folder in staged:
            # Of one that only was declared nothing is known.
            if "gpu-operator" in offer.components and offer.is_alone and offer.driver_install_dir != folder:
                yield Finding(
                    None,
                    f"its validator does not look in {folder}, where {{1}} puts the driver's files; hand the bridge to "
                    "it: GpuOperator(..., bridge=...)",
                    providers=(index, bridge),
                )


def _gpu_nodes(provided: Sequence[Provided]) -> list[tuple[int, GpuNodes]]:
    return [(index, offer.gpu_nodes) for index, offer in enumerate(provided) if offer.gpu_nodes is not None]


def _has(nodes: GpuNodes, label: str) -> bool:
    key, _, value = label.partition("=")
    return nodes.labels.get(key) == value


def _wanted_node_labels_are_set(provided: Sequence[Provided]) -> Iterator[Finding]:
    # A pattern for all labels of NVIDIA says nothing about this one.
    by_hand = [offer for offer in provided if "gpu-operator" not in offer.components]
    declared = [label for offer in by_hand for label in offer.node_labels if label.rstrip("*") != "nvidia.com/"]
    nodes = _gpu_nodes(provided)
    for index, offer in enumerate(provided):
        for label, else_happens in offer.wants_node_labels.items():
            if _is_among(label.partition("=")[0], declared):
                continue
            without = tuple(node for node, gpu_nodes in nodes if not _has(gpu_nodes, label))
            if without or not nodes:
                who = "{1} does not set" if without else "nothing in this app sets"
                yield Finding(
                    None,
                    f"wants the node label {label}, which {who}: {else_happens}",
                    providers=(index, *without[:1]),
                    is_warning=True,
                )


def _unwanted_node_labels_are_not_set(provided: Sequence[Provided]) -> Iterator[Finding]:
    for index, offer in enumerate(provided):
        for label, why in offer.unwanted_node_labels.items():
            for node, gpu_nodes in _gpu_nodes(provided):
                if _has(gpu_nodes, label):
                    yield Finding(
                        None,
                        f"cannot work with the node label {label}, which {{1}} sets: {why}",
                        providers=(index, node),
                        is_warning=True,
                    )


def _gpu_pods_tolerate_the_taints_of_gpu_nodes(
    manifests: Sequence[Manifest], provided: Sequence[Provided]
) -> Iterator[Finding]:
    """Kubernetes says nothing about a DaemonSet whose pods a node does not take."""
    nodes = _gpu_nodes(provided)
    for index, manifest in enumerate(manifests):
        is_for_each = manifest["kind"] == "DaemonSet"
        for spec in pod_specs(manifest):
            if not _is_for_gpu_nodes(spec):
                continue
            found = _repelling(_selected(nodes, spec), spec.get("tolerations") or (), is_for_each=is_for_each)
            if found:
                node, taint = found
                yield Finding(index, _repelled(taint, "{0}"), providers=(node,), is_warning=True)
    for index, offer in enumerate(provided):
        if offer.later_tolerations is not None:
            found = _repelling(nodes, offer.later_tolerations, is_for_each=True)
            if found:
                node, taint = found
                yield Finding(None, _repelled(taint, "{1}"), providers=(index, node), is_warning=True)


def _selected(nodes: Sequence[tuple[int, GpuNodes]], spec: Manifest) -> list[tuple[int, GpuNodes]]:
    """Give the nodes that a pod may be meant for: none where it selects by a label that no node here is given."""
    wanted = {k: v for k, v in (spec.get("nodeSelector") or {}).items() if not k.startswith(_OF_GPU_NODES)}
    given = {key for _, gpu_nodes in nodes for key in gpu_nodes.labels}
    if wanted.keys() - given:
        return []
    return [(node, has) for node, has in nodes if all(has.labels.get(key, v) == v for key, v in wanted.items())]


def _repelling(
    nodes: Sequence[tuple[int, GpuNodes]], tolerations: Sequence[Manifest], *, is_for_each: bool
) -> tuple[int, Mapping[str, str]] | None:
    """Give a taint that keeps pods away: from one of the nodes where each needs one, else from all of them."""
    repelling = [(node, taint) for node, has in nodes for taint in _untolerated(has, tolerations)]
    is_kept_away = repelling and (is_for_each or {node for node, _ in repelling} == {node for node, _ in nodes})
    return repelling[0] if is_kept_away else None


def _repelled(taint: Mapping[str, str], node: str) -> str:
    text = f"{taint['key']}={taint.get('value', '')}:{taint['effect']}"
    return (
        f"does not tolerate the taint {text} of {node}, so its pods would never run there; pass "
        f"tolerations=[Toleration(key={taint['key']!r}, operator='Exists', effect={taint['effect']!r})]"
    )


def _is_for_gpu_nodes(spec: Manifest) -> bool:
    limits = ((container.get("resources") or {}).get("limits") or {} for container in containers(spec))
    if any(_GPU.match(resource) and str(count) != "0" for each in limits for resource, count in each.items()):
        return True
    required = (label for alternatives in node_labels_required(spec) for label in alternatives)
    return any(label.startswith(_OF_GPU_NODES) for label in required)


def _untolerated(nodes: GpuNodes, tolerations: Sequence[Manifest]) -> list[Mapping[str, str]]:
    return [
        taint
        for taint in nodes.taints
        if taint["effect"] != "PreferNoSchedule" and not any(_tolerates(one, taint) for one in tolerations)
    ]


def _tolerates(toleration: Manifest, taint: Mapping[str, str]) -> bool:
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", taint["key"])
    return toleration.get("key") == taint["key"] and (toleration.get("value") or "") == (taint.get("value") or "")


def _labels_of_the_operator_are_left_to_it(provided: Sequence[Provided]) -> Iterator[Finding]:
    operators = [index for index, offer in enumerate(provided) if "gpu-operator" in offer.components]
    for node, gpu_nodes in _gpu_nodes(provided):
        if operators and GPU_PRESENT in gpu_nodes.labels:
            yield Finding(
                None,
                f"gives nodes the label {GPU_PRESENT}, which {{1}} sets and removes by what it finds: the two undo "
                "each other's; leave it to the operator",
                providers=(node, operators[0]),
                is_warning=True,
            )


def _later_pods_find_a_privileged_namespace(
    manifests: Sequence[Manifest], provided: Sequence[Provided]
) -> Iterator[Finding]:
    default = next((offer.pod_security_default for offer in provided if offer.pod_security_default), None)
    wanted = {name: index for index, offer in enumerate(provided) for name in offer.privileged_namespaces}
    for index, manifest in enumerate(manifests):
        if _identity(manifest)[:2] != ("", "Namespace") or manifest["metadata"]["name"] not in wanted:
            continue
        stated = (manifest["metadata"].get("labels") or {}).get("pod-security.kubernetes.io/enforce")
        level = stated or default
        if level not in (None, "privileged"):
            says = f"enforces {stated!r}" if stated else f"states no Pod Security level, so {default!r} holds"
            yield Finding(
                index,
                f"{says}, under which the pods that {{0}} brings would be refused, since they mount host paths; make "
                "it GpuNamespace(pod_security='privileged')",
                providers=(wanted[manifest["metadata"]["name"]],),
            )

"""Checks for missing and duplicate objects, components and node labels.

A component is software that runs on the GPU nodes of a cluster, such as the device plugin. A provider is a construct
that declares its effects on the cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from gpu_constructs.facts import publishing
from gpu_constructs.facts.app import Facts
from gpu_constructs.facts.finding import Finding
from gpu_constructs.facts.provided import COMPONENTS, GpuNodes, is_among, listed
from gpu_constructs.kube import kinds
from gpu_constructs.kube.placement import GPU_PRESENT


def components_run_once(facts: Facts) -> Iterator[Finding]:
    """Yield problems: components, such as the device plugin, that two constructs of the app run on every GPU node."""
    for index, offer in enumerate(facts.provided):
        if not offer.is_alone:
            continue
        for other, rival in enumerate(facts.provided):
            both = [component for component in offer.components if component in rival.components]
            if other != index and both and not (rival.is_alone and other < index):
                yield Finding(
                    None,
                    f"runs {listed(both)} on every GPU node, and so does {{1}}. Remove one of the two, or disable the "
                    "component in one of them",
                    providers=(index, other),
                )


def needed_components_are_there(facts: Facts) -> Iterator[Finding]:
    """Yield problems: constructs that need a component, such as the device plugin, that the app does not have."""
    there = {component for offer in facts.provided for component in offer.components}
    for index, offer in enumerate(facts.provided):
        for component, way_out in offer.needs.items():
            if component not in there:
                yield Finding(None, f"needs {COMPONENTS[component]} too: {way_out}", providers=(index,))


def refused_components_are_not_there(facts: Facts) -> Iterator[Finding]:
    """Yield problems: constructs that do not work with a component that the app runs, such as the device plugin."""
    for index, offer in enumerate(facts.provided):
        for component, why in offer.refuses.items():
            for other, rival in enumerate(facts.provided):
                if component in rival.components:
                    yield Finding(
                        None,
                        f"does not work with {COMPONENTS[component]}, which {{1}} runs: {why}",
                        providers=(index, other),
                    )


def drivers_are_looked_for_where_they_are_staged(facts: Facts) -> Iterator[Finding]:
    """Yield problems: GPU Operators whose validator searches the wrong folder for the NVIDIA driver files.

    The correct folder is the folder to which the construct ``ValidationBridge`` in the app copies these files.
    """
    staged = [(index, offer.stages_driver_in) for index, offer in enumerate(facts.provided) if offer.stages_driver_in]
    for index, offer in enumerate(facts.provided):
        for bridge, folder in staged:
            # The folder is unknown for an operator that External declares.
            if "gpu-operator" in offer.components and offer.is_alone and offer.driver_install_dir != folder:
                yield Finding(
                    None,
                    f"its validator does not search {folder}, to which {{1}} copies the driver files. Pass the bridge: "
                    "GpuOperator(..., bridge=...)",
                    providers=(index, bridge),
                )


_RUNTIME_CLASS = ("node.k8s.io", "RuntimeClass")


def _has(nodes: GpuNodes, label: str) -> bool:
    """Check whether a node configuration, such as ``TalosGpuNode``, sets a node label, such as ``key=value``."""
    key, _, value = label.partition("=")
    return nodes.labels.get(key) == value


def wanted_node_labels_are_set(facts: Facts) -> Iterator[Finding]:
    """Yield problems: node labels that a construct needs and that no node configuration in the app sets."""
    # A declaration of the pattern nvidia.com/* does not imply a specific label.
    by_hand = [offer for offer in facts.provided if "gpu-operator" not in offer.components]
    declared = [label for offer in by_hand for label in offer.node_labels if label.rstrip("*") != "nvidia.com/"]
    declared += publishing.labels_of_rules(manifest for _, manifest in facts.of_kind(*publishing.KINDS))
    nodes = facts.gpu_nodes
    for index, offer in enumerate(facts.provided):
        for label, else_happens in offer.wants_node_labels.items():
            if is_among(label.partition("=")[0], declared):
                continue
            without = tuple(node for node, gpu_nodes in nodes if not _has(gpu_nodes, label))
            if without or not nodes:
                who = "{1} does not set" if without else "nothing in this app sets"
                yield Finding(
                    None,
                    f"needs the node label {label}, which {who}: {else_happens}",
                    providers=(index, *without[:1]),
                    is_warning=True,
                )


def unwanted_node_labels_are_not_set(facts: Facts) -> Iterator[Finding]:
    """Yield problems: node labels that a node configuration sets, but with which a construct does not work."""
    for index, offer in enumerate(facts.provided):
        for label, why in offer.unwanted_node_labels.items():
            for node, gpu_nodes in facts.gpu_nodes:
                if _has(gpu_nodes, label):
                    yield Finding(
                        None,
                        f"does not work with the node label {label}, which {{1}} sets: {why}",
                        providers=(index, node),
                        is_warning=True,
                    )


def labels_of_the_operator_are_left_to_it(facts: Facts) -> Iterator[Finding]:
    """Yield problems: node configurations in the app that set a node label that the GPU Operator manages."""
    operators = [index for index, offer in enumerate(facts.provided) if "gpu-operator" in offer.components]
    for node, gpu_nodes in facts.gpu_nodes:
        if operators and GPU_PRESENT in gpu_nodes.labels:
            yield Finding(
                None,
                f"sets the node label {GPU_PRESENT}, which {{1}} also sets and removes, so the two overwrite each "
                "other. Leave the label to the GPU Operator",
                providers=(node, operators[0]),
                is_warning=True,
            )


def objects_are_made_once(facts: Facts) -> Iterator[Finding]:
    """Yield problems: objects that the app emits twice, with the same kind, namespace and name.

    The function omits objects that the check ``charts_make_objects_of_their_own`` reports.
    """
    reported = Counter(identity for offer in facts.provided for identity in offer.makes)
    seen: dict[tuple[str, str, str, str], int] = {}
    for index, (manifest, (group, kind)) in enumerate(zip(facts.written, facts.kinds, strict=False)):
        namespace, name = manifest["metadata"].get("namespace"), manifest["metadata"].get("name", "")
        first = seen.setdefault((group, kind, namespace or "default", name), index)
        reported[group, kind, namespace or "", name] -= 1
        if first != index and reported[group, kind, namespace or "", name] < 0:
            where = f" in namespace {namespace!r}" if namespace else ""
            yield Finding(
                index,
                f"{kind} {name!r}{where} already exists in {{0}}. Create it once, and pass it to every "
                "construct that needs it",
                (first,),
            )


def namespaces_exist(facts: Facts) -> Iterator[Finding]:
    """Yield problems: namespaces that the app uses but neither creates nor declares with ``External``.

    An app uses the namespaces of its objects, and the namespaces in which the GPU Operator later creates pods.
    """
    known: set[object] = {*kinds.NAMESPACES_OF_EVERY_CLUSTER, *_names(facts, ("", "Namespace"))}
    known.update(name for offer in facts.provided for name in offer.namespaces)

    def is_new(namespace: object) -> bool:
        is_unknown = bool(namespace) and namespace not in known
        # Each namespace has one finding.
        known.add(namespace)
        return is_unknown

    for index, manifest in enumerate(facts.written):
        namespace = manifest["metadata"].get("namespace")
        if is_new(namespace):
            yield Finding(index, f"namespace {namespace!r} is {_missing_namespace(namespace)}")
    for provider, offer in enumerate(facts.provided):
        for namespace in filter(is_new, offer.privileged_namespaces):
            problem = f"namespace {namespace!r}, which its pods need, is {_missing_namespace(namespace)}"
            yield Finding(None, problem, providers=(provider,))


def _missing_namespace(name: str) -> str:
    """Return the end of the message about a namespace that the app neither creates nor declares."""
    return (
        f"not in this app. Add GpuNamespace(chart, 'namespace', name={name!r}) or declare it with "
        f"External(app, 'existing', namespaces=[{name!r}])"
    )


def runtime_classes_exist(facts: Facts) -> Iterator[Finding]:
    """Yield problems: pods with a missing RuntimeClass, and RuntimeClasses that both the app and other software create.

    A RuntimeClass is missing if the app neither creates it nor declares that other software creates it.
    """
    elsewhere = {name: index for index, offer in enumerate(facts.provided) for name in offer.runtime_classes}
    known = {*elsewhere, *_names(facts, _RUNTIME_CLASS)}
    for pod in facts.pods:
        wanted = pod.spec.get("runtimeClassName")
        if wanted and wanted not in known:
            yield Finding(
                pod.index,
                f"runtime_class {wanted!r} has no RuntimeClass object in this app. Add an "
                f"NvidiaRuntimeClass, declare it with External(app, 'existing', runtime_classes=[{wanted!r}]), or "
                "pass platform=Kubernetes() if the NVIDIA runtime is the default of the nodes",
            )
    for index, manifest in facts.of_kind(_RUNTIME_CLASS):
        name = manifest["metadata"].get("name")
        if name in elsewhere:
            yield Finding(
                index,
                f"RuntimeClass {name!r} already comes from {{0}}, and two owners overwrite each other. Remove one of "
                "them",
                providers=(elsewhere[name],),
            )


def _names(facts: Facts, kind: tuple[str, str]) -> Iterator[str]:
    """Yield the names of all objects of one kind in the app, with duplicates.

    Args:
        facts: Facts that the library derives from the objects of the app.
        kind: API group and kind of the objects.
    """
    return (manifest["metadata"].get("name") for _, manifest in facts.of_kind(kind))


def values_of_releases_are_readable(facts: Facts) -> Iterator[Finding]:
    """Yield problems: Helm releases whose values are not a YAML mapping."""
    for one in facts.releases:
        if one.release.problem:
            yield Finding(one.index, one.release.problem)

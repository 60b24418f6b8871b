"""Objects and components that must be there, and be there once; node labels that constructs need or refuse."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from gpu_constructs.facts.app import Facts
from gpu_constructs.facts.finding import Finding
from gpu_constructs.facts.provided import COMPONENTS, GpuNodes, is_among, listed
from gpu_constructs.kube import kinds
from gpu_constructs.kube.placement import GPU_PRESENT


def components_run_once(facts: Facts) -> Iterator[Finding]:
    """Find components that two constructs bring to every GPU node."""
    for index, offer in enumerate(facts.provided):
        if not offer.is_alone:
            continue
        for other, rival in enumerate(facts.provided):
            both = [component for component in offer.components if component in rival.components]
            if other != index and both and not (rival.is_alone and other < index):
                yield Finding(
                    None,
                    f"brings {listed(both)} to every GPU node, and so does {{1}}; keep one of the two, or switch the "
                    "component off in one of them",
                    providers=(index, other),
                )


def needed_components_are_there(facts: Facts) -> Iterator[Finding]:
    """Find constructs that lack a component beside them."""
    there = {component for offer in facts.provided for component in offer.components}
    for index, offer in enumerate(facts.provided):
        for component, way_out in offer.needs.items():
            if component not in there:
                yield Finding(None, f"needs {COMPONENTS[component]} beside it: {way_out}", providers=(index,))


def refused_components_are_not_there(facts: Facts) -> Iterator[Finding]:
    """Find components that do not go together."""
    for index, offer in enumerate(facts.provided):
        for component, why in offer.refuses.items():
            for other, rival in enumerate(facts.provided):
                if component in rival.components:
                    yield Finding(
                        None,
                        f"does not go with {COMPONENTS[component]}, which {{1}} is: {why}",
                        providers=(index, other),
                    )


def drivers_are_looked_for_where_they_are_staged(facts: Facts) -> Iterator[Finding]:
    """Find operators whose validator looks past the folder that a bridge fills."""
    staged = [(index, offer.stages_driver_in) for index, offer in enumerate(facts.provided) if offer.stages_driver_in]
    for index, offer in enumerate(facts.provided):
        for bridge, folder in staged:
            # Of one that only was declared nothing is known.
            if "gpu-operator" in offer.components and offer.is_alone and offer.driver_install_dir != folder:
                yield Finding(
                    None,
                    f"its validator does not look in {folder}, where {{1}} puts the driver's files; hand the bridge to "
                    "it: GpuOperator(..., bridge=...)",
                    providers=(index, bridge),
                )


_RUNTIME_CLASS = ("node.k8s.io", "RuntimeClass")


def _has(nodes: GpuNodes, label: str) -> bool:
    key, _, value = label.partition("=")
    return nodes.labels.get(key) == value


def wanted_node_labels_are_set(facts: Facts) -> Iterator[Finding]:
    """Find node labels that a construct wants and no node has."""
    # A pattern for all labels of NVIDIA says nothing about this one.
    by_hand = [offer for offer in facts.provided if "gpu-operator" not in offer.components]
    declared = [label for offer in by_hand for label in offer.node_labels if label.rstrip("*") != "nvidia.com/"]
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
                    f"wants the node label {label}, which {who}: {else_happens}",
                    providers=(index, *without[:1]),
                    is_warning=True,
                )


def unwanted_node_labels_are_not_set(facts: Facts) -> Iterator[Finding]:
    """Find node labels with which a construct cannot work."""
    for index, offer in enumerate(facts.provided):
        for label, why in offer.unwanted_node_labels.items():
            for node, gpu_nodes in facts.gpu_nodes:
                if _has(gpu_nodes, label):
                    yield Finding(
                        None,
                        f"cannot work with the node label {label}, which {{1}} sets: {why}",
                        providers=(index, node),
                        is_warning=True,
                    )


def labels_of_the_operator_are_left_to_it(facts: Facts) -> Iterator[Finding]:
    """Find nodes that are given a label which the operator sets itself."""
    operators = [index for index, offer in enumerate(facts.provided) if "gpu-operator" in offer.components]
    for node, gpu_nodes in facts.gpu_nodes:
        if operators and GPU_PRESENT in gpu_nodes.labels:
            yield Finding(
                None,
                f"gives nodes the label {GPU_PRESENT}, which {{1}} sets and removes by what it finds: the two undo "
                "each other's; leave it to the operator",
                providers=(node, operators[0]),
                is_warning=True,
            )


def objects_are_made_once(facts: Facts) -> Iterator[Finding]:
    """Find objects of one identity, but for those of which another check tells."""
    # Of what two charts of one sort both make, one sentence tells.
    told = Counter(identity for offer in facts.provided for identity in offer.makes)
    seen: dict[tuple[str, str, str, str], int] = {}
    for index, (manifest, (group, kind)) in enumerate(zip(facts.objects, facts.kinds, strict=True)):
        namespace, name = manifest["metadata"].get("namespace"), manifest["metadata"].get("name", "")
        first = seen.setdefault((group, kind, namespace or "default", name), index)
        told[group, kind, namespace or "", name] -= 1
        if first != index and told[group, kind, namespace or "", name] < 0:
            where = f" in namespace {namespace!r}" if namespace else ""
            yield Finding(
                index,
                f"{kind} {name!r}{where} is already made by {{0}}; make it once and hand it to the others",
                (first,),
            )


def namespaces_exist(facts: Facts) -> Iterator[Finding]:
    """Find namespaces that objects are in, or pods of constructs go to, and that nothing makes or declares."""
    known: set[object] = {*kinds.NAMESPACES_OF_EVERY_CLUSTER, *_names(facts, ("", "Namespace"))}
    known.update(name for offer in facts.provided for name in offer.namespaces)

    def is_new(namespace: object) -> bool:
        is_unknown = bool(namespace) and namespace not in known
        # One finding for each is enough.
        known.add(namespace)
        return is_unknown

    for index, manifest in enumerate(facts.objects):
        namespace = manifest["metadata"].get("namespace")
        if is_new(namespace):
            yield Finding(index, f"namespace {namespace!r} is {_missing_namespace(namespace)}")
    for provider, offer in enumerate(facts.provided):
        for namespace in filter(is_new, offer.privileged_namespaces):
            problem = f"namespace {namespace!r}, which its pods go to, is {_missing_namespace(namespace)}"
            yield Finding(None, problem, providers=(provider,))


def _missing_namespace(name: str) -> str:
    return (
        f"not in this app; add GpuNamespace(chart, 'namespace', name={name!r}) or declare it with "
        f"External(app, 'existing', namespaces=[{name!r}])"
    )


def runtime_classes_exist(facts: Facts) -> Iterator[Finding]:
    """Find runtime classes that pods name and nothing makes or declares, and those that two make."""
    elsewhere = {name: index for index, offer in enumerate(facts.provided) for name in offer.runtime_classes}
    known = {*elsewhere, *_names(facts, _RUNTIME_CLASS)}
    for pod in facts.pods:
        wanted = pod.spec.get("runtimeClassName")
        if wanted and wanted not in known:
            yield Finding(
                pod.index,
                f"runtime_class {wanted!r} is used but no RuntimeClass of that name is in this app; add an "
                f"NvidiaRuntimeClass, declare it with External(app, 'existing', runtime_classes=[{wanted!r}]), or "
                "pass platform=Kubernetes() where the nodes' default runtime knows NVIDIA devices",
            )
    for index, manifest in facts.of_kind(_RUNTIME_CLASS):
        name = manifest["metadata"].get("name")
        if name in elsewhere:
            yield Finding(
                index,
                f"RuntimeClass {name!r} comes from {{0}} already, and two owners undo each other's; leave one out",
                providers=(elsewhere[name],),
            )


def _names(facts: Facts, kind: tuple[str, str]) -> Iterator[str]:
    return (manifest["metadata"].get("name") for _, manifest in facts.of_kind(kind))

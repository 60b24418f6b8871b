"""Facts that only the whole app knows, checked over plain manifests of any origin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpu_constructs import _kinds, pod_security
from gpu_constructs._labels import is_ours
from gpu_constructs.annotations import SCRAPED_TWICE
from gpu_constructs.checks import conflicts
from gpu_constructs.checks.amounts import amounts_are_meant
from gpu_constructs.checks.quotas import quotas_fit_and_count
from gpu_constructs.checks.references import references_exist
from gpu_constructs.platforms import GPU_PRESENT
from gpu_constructs.pod_specs import containers, pod_specs
from gpu_constructs.provided import COMPONENTS, DeviceGuard, GpuNodes, Provided, listed
from gpu_constructs.rules.bounds import pods_fit_their_namespace
from gpu_constructs.rules.facts import Facts, Pod, amounts, annotations_of, is_among, is_gpu_name
from gpu_constructs.rules.finding import Finding as Finding
from gpu_constructs.rules.table import DEFAULT_SETTINGS, RuleSettings, broken_rules
from gpu_constructs.scrape_targets import scrape_targets

Manifest = Mapping[str, Any]


def check(
    manifests: Sequence[Manifest], provided: Sequence[Provided], settings: RuleSettings = DEFAULT_SETTINGS
) -> list[Finding]:
    """Run every check, the rules for objects with GPUs last.

    Args:
        manifests: All objects of one App.
        provided: What its constructs say they provide.
        settings: Which rules to leave out, and what the GPU nodes are.
    """
    facts = Facts(manifests, provided, settings.inventory)
    manifests = facts.objects
    found = [
        *_one_object_of_one_identity(manifests, provided),
        *_namespaces_exist(manifests, provided),
        *_runtime_classes_exist(manifests, provided),
        *_pods_satisfy_their_namespace(manifests, provided),
        *_targets_are_scraped_once(manifests),
        *_components_run_once(provided),
        *_needed_components_are_there(provided),
        *_refused_components_are_not_there(provided),
        *_drivers_are_looked_for_where_they_are_staged(provided),
        *_wanted_node_labels_are_set(provided),
        *_unwanted_node_labels_are_not_set(provided),
        *_labels_of_the_operator_are_left_to_it(provided),
        *_later_pods_find_a_privileged_namespace(manifests, provided),
        *_pods_pass_the_guards(facts),
        *_later_pods_pass_the_guards(manifests, provided),
        *pods_fit_their_namespace(facts),
        *conflicts.platforms_are_one(facts),
        *conflicts.gpu_clusters_are_not_on_talos(facts),
        *conflicts.one_priority_class_is_the_default(facts),
        *conflicts.nodes_have_one_device_plugin(facts),
        *conflicts.charts_make_objects_of_their_own(facts),
        *conflicts.gpus_are_profiled_by_one(facts),
        *conflicts.power_limits_are_kept_by_one(facts),
        *conflicts.katib_can_collect(facts),
        *conflicts.exporters_know_of_sharing(facts),
        *conflicts.sharing_is_stated_alike(facts),
        *conflicts.the_guard_sees_all_ways_to_gpus(facts),
        *amounts_are_meant(facts),
        *quotas_fit_and_count(facts),
        *references_exist(facts),
    ]
    return [*(finding.about(facts.origins) for finding in found), *broken_rules(facts, ignore=settings.ignore)]


def _identity(manifest: Manifest) -> tuple[str, str, str | None, str]:
    metadata = manifest["metadata"]
    group = _kinds.group_of(manifest["apiVersion"])
    return group, manifest["kind"], metadata.get("namespace"), metadata.get("name", "")


def _one_object_of_one_identity(manifests: Sequence[Manifest], provided: Sequence[Provided]) -> Iterator[Finding]:
    # Of what two charts of one sort both make, one sentence tells.
    told = Counter(identity for offer in provided for identity in offer.makes)
    seen: dict[tuple[str, str, str, str], int] = {}
    for index, manifest in enumerate(manifests):
        group, kind, namespace, name = _identity(manifest)
        first = seen.setdefault((group, kind, namespace or "default", name), index)
        told[group, kind, namespace or "", name] -= 1
        if first != index and told[group, kind, namespace or "", name] < 0:
            where = f" in namespace {namespace!r}" if namespace else ""
            yield Finding(
                index,
                f"{kind} {name!r}{where} is already made by {{0}}; make it once and hand it to the others",
                (first,),
            )


def _namespaces_exist(manifests: Sequence[Manifest], provided: Sequence[Provided]) -> Iterator[Finding]:
    known = set(_kinds.NAMESPACES_OF_EVERY_CLUSTER)
    known.update(m["metadata"].get("name") for m in manifests if _identity(m)[:2] == ("", "Namespace"))
    for offer in provided:
        known.update(offer.namespaces)
    reported: set[str] = set()
    for index, manifest in enumerate(manifests):
        namespace = manifest["metadata"].get("namespace")
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
    known = {m["metadata"].get("name") for m in manifests if _identity(m)[:2] == ("node.k8s.io", "RuntimeClass")}
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
            name = manifest["metadata"].get("name")
            if name in elsewhere:
                yield Finding(
                    index,
                    f"RuntimeClass {name!r} comes from {{0}} already, and two owners undo each other's; leave one out",
                    providers=(elsewhere[name],),
                )


def _pods_satisfy_their_namespace(manifests: Sequence[Manifest], provided: Sequence[Provided]) -> Iterator[Finding]:
    default = next((offer.pod_security_default for offer in provided if offer.pod_security_default), None)
    levels: dict[str, tuple[str | None, int]] = {}
    for index, manifest in enumerate(manifests):
        if _identity(manifest)[:2] == ("", "Namespace"):
            labels = manifest["metadata"].get("labels") or {}
            levels[manifest["metadata"].get("name")] = (labels.get("pod-security.kubernetes.io/enforce"), index)
    if default:
        levels.setdefault("default", (None, -1))
    for index, manifest in enumerate(manifests):
        namespace = manifest["metadata"].get("namespace", "default")
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
                    f"pods would be refused: namespace {namespace!r}{maker} {says}, and {'; '.join(violations)}; "
                    + _way_to_satisfy(manifest, spec, level),
                    (made_by,) if made_by >= 0 else (),
                )


def _way_to_satisfy(manifest: Manifest, spec: Manifest, level: str) -> str:
    if is_ours(manifest):
        return (
            "leave out the options that need these rights (run_as_user=... names a workload's user that is not root) "
            "or choose another GpuNamespace(pod_security=...)"
        )
    return (
        f"write {', '.join(pod_security.ways_out(spec, level))} in the pod, or give its namespace another "
        "pod-security.kubernetes.io/enforce"
    )


def _targets_are_scraped_once(manifests: Sequence[Manifest]) -> Iterator[Finding]:
    scraped = [
        (index, targets)
        for index, targets in scrape_targets(manifests).items()
        if annotations_of(manifests[index]).get(SCRAPED_TWICE) != "intended"
    ]
    for place, (index, targets) in enumerate(scraped):
        for other, others in scraped[:place]:
            both = sorted(targets & others)
            if both:
                yield Finding(
                    index,
                    f"scrapes port {both[0].port} of {{0}}, and so does {{1}}: every series would be there twice, also "
                    "where the VictoriaMetrics operator converts a Prometheus object; keep one of the two, or annotate "
                    f"one with {SCRAPED_TWICE}=intended where they are for two stores",
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
                    f"brings {listed(both)} to every GPU node, and so does {{1}}; keep one of the two, or switch the "
                    "component off in one of them",
                    providers=(index, other),
                )


def _needed_components_are_there(provided: Sequence[Provided]) -> Iterator[Finding]:
    there = {component for offer in provided for component in offer.components}
    for index, offer in enumerate(provided):
        for component, way_out in offer.needs.items():
            if component not in there:
                yield Finding(None, f"needs {COMPONENTS[component]} beside it: {way_out}", providers=(index,))


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
        if _identity(manifest)[:2] != ("", "Namespace") or manifest["metadata"].get("name") not in wanted:
            continue
        stated = (manifest["metadata"].get("labels") or {}).get("pod-security.kubernetes.io/enforce")
        level = stated or default
        if level not in (None, "privileged"):
            says = f"enforces {stated!r}" if stated else f"states no Pod Security level, so {default!r} holds"
            yield Finding(
                index,
                f"{says}, under which the pods that {{0}} brings would be refused, since they mount host paths; make "
                "it GpuNamespace(pod_security='privileged')",
                providers=(wanted[manifest["metadata"].get("name")],),
            )


def _guards(provided: Sequence[Provided]) -> list[tuple[int, DeviceGuard]]:
    return [(index, offer.device_guard) for index, offer in enumerate(provided) if offer.device_guard is not None]


def _left_alone(manifests: Sequence[Manifest], guard: DeviceGuard) -> set[str]:
    labelled = {
        str(m["metadata"].get("name"))
        for m in manifests
        if _identity(m)[:2] == ("", "Namespace")
        and (m["metadata"].get("labels") or {}).get(guard.allow_label) == "true"
    }
    return labelled | set(guard.excluded_namespaces)


def _pods_pass_the_guards(facts: Facts) -> Iterator[Finding]:
    for provider, guard in _guards(facts.provided):
        left_alone = _left_alone(facts.objects, guard)
        for pod in facts.pods:
            namespace = str(pod.manifest["metadata"].get("namespace") or "default")
            why = None if namespace in left_alone or facts.kinds[pod.index] in _NO_PODS else _refused(facts, pod, guard)
            if why:
                yield Finding(
                    pod.index,
                    f"pods would be refused by {{0}}: {why}; {_let_through(guard, namespace)}",
                    providers=(provider,),
                )


# What they say is completed by objects of other namespaces.
_NO_PODS = {
    ("serving.kserve.io", "ClusterServingRuntime"),
    ("serving.kserve.io", "ServingRuntime"),
    ("trainer.kubeflow.org", "ClusterTrainingRuntime"),
}


def _refused(facts: Facts, pod: Pod, guard: DeviceGuard) -> str | None:
    each = list(containers(pod.spec))
    for container in each:
        for variable in container.get("env") or ():
            shown = variable.get("valueFrom") or variable.get("value") or ""
            if variable.get("name") == guard.variable and shown not in guard.harmless_values:
                return f"container {container.get('name')!r} sets {guard.variable}"
    runtime_class = pod.spec.get("runtimeClassName")
    if runtime_class not in guard.runtime_classes:
        return None
    # A runtime of KServe, or one of Trainer, may add what is not written here.
    is_whole = facts.kinds[pod.index][0] not in ("serving.kserve.io", "trainer.kubeflow.org")
    if guard.requires_gpu and is_whole and not any(_has_gpu_limit(container) for container in each):
        return f"no container asks for a GPU under runtimeClassName {runtime_class!r}"
    if guard.requires_gpu and pod.spec.get("nodeName"):
        return f"it names its node under runtimeClassName {runtime_class!r}"
    if guard.forbids_env_from:
        for container in each:
            says = any(variable.get("name") == guard.variable for variable in container.get("env") or ())
            if container.get("envFrom") and not says:
                return f"container {container.get('name')!r} has envFrom under runtimeClassName {runtime_class!r}"
    return None


def _has_gpu_limit(container: Manifest) -> bool:
    return any(is_gpu_name(name) and str(count) != "0" for name, count in amounts(container, "limits").items())


def _let_through(guard: DeviceGuard, namespace: str) -> str:
    return (
        f"where they have to see every GPU, add {namespace!r} to its excluded_namespaces, or label the namespace with "
        f"GpuNamespace(..., labels={{{guard.allow_label!r}: 'true'}})"
    )


def _later_pods_pass_the_guards(manifests: Sequence[Manifest], provided: Sequence[Provided]) -> Iterator[Finding]:
    for provider, guard in _guards(provided):
        left_alone = _left_alone(manifests, guard)
        for index, offer in enumerate(provided):
            for namespace in offer.privileged_namespaces:
                if namespace not in left_alone:
                    yield Finding(
                        None,
                        f"brings pods to namespace {namespace!r} that see every GPU, and {{1}} would refuse them; "
                        f"{_let_through(guard, namespace)}",
                        providers=(index, provider),
                    )

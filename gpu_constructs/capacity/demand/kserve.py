"""The number of pods that KServe objects create. A serving runtime completes the pod spec of an InferenceService.

Source:
    kserve/kserve@v0.20.0:pkg/controller/v1beta1/inferenceservice/components/predictor.go,
    pkg/controller/v1beta1/inferenceservice/reconcilers/{deployment,hpa}, pkg/apis/serving/v1alpha2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from math import inf
from typing import Any

from gpu_constructs.capacity.consumer import Condition
from gpu_constructs.capacity.demand.app_objects import App
from gpu_constructs.capacity.demand.pod_group import PodGroup, asked, leader_and_workers, update
from gpu_constructs.facts.readable import Manifest, annotations_of, at, mapping, members, name_of, namespace_of, number
from gpu_constructs.kube.plain_data import merged
from gpu_constructs.kube.pod_specs import model_server

_NOTHING_MORE = Condition("the baseRefs of the object, which the plan cannot check, do not change where the pods run")
_GROUP = "serving.kserve.io"
_SERVING = "kserve-container"
_ALONE = "the plan reads only the fields of the object"
_NAMED = 5
_STANDARD = ("RawDeployment", "Standard")


def inference_service(manifest: Manifest, app: App) -> Iterator[PodGroup]:
    """Yield the pods of an InferenceService: the pods of its predictor, canary, transformer and explainer."""
    spec = at(manifest, "spec")
    predictor = mapping(spec.get("predictor"))
    runtime, remarks = _runtime(manifest, predictor, app)
    found: list[PodGroup] = []
    canaries = [(mapping(one.get("predictor")), one) for one in members(spec.get("canary"))]
    if isinstance(predictor.get("workerSpec"), Mapping):
        found.extend(_several_nodes(manifest, predictor, runtime, app))
    else:
        group = _component(manifest, "predictor", _with_runtime(predictor, runtime))
        taken = sum(_canary_pods(predictor, own, one) for own, one in canaries)
        if taken and "minReplicas" in predictor:
            least = max(group.least_copies - taken, 1)
            group = replace(group, least_copies=least, copies=max(least, number(predictor.get("maxReplicas"), 0)))
        found.append(group)
    for index, (own, one) in enumerate(canaries):
        pods = _canary_pods(predictor, own, one)
        # A canary inherits unset members from the predictor.
        group = _component(manifest, "canary", _with_runtime(merged(predictor, own), runtime))
        part = f"canary {own.get('name') or index}"
        surge = min(group.surge, pods)
        together = max(min(group.surge_together, surge), 1)
        found.append(replace(group, part=part, copies=pods, least_copies=pods, surge=surge, surge_together=together))
    others = [part for part in ("transformer", "explainer") if isinstance(spec.get(part), Mapping)]
    found += [_component(manifest, part, spec[part]) for part in others]
    for group in found:
        notes = group.notes if group.part in others else (*group.notes, *remarks)
        part = group.part if len(found) > 1 else ""
        yield replace(group, part=part, is_stopped=_is_stopped(manifest), notes=notes)


def _runtime(manifest: Manifest, predictor: Mapping[str, Any], app: App) -> tuple[Mapping[str, Any], Sequence[str]]:
    """Return the spec of the ServingRuntime for a predictor, and assumptions of the capacity plan as sentences.

    If the predictor names no ServingRuntime, KServe selects one that supports the model format. The spec is empty if
    the app does not contain the ServingRuntime.
    """
    server = model_server(predictor)
    if server is None:
        return {}, ()
    name = mapping(predictor[server]).get("runtime")
    if not name:
        return _of_format(manifest, predictor, server, app)
    own = app.named(_GROUP, "ServingRuntime", name, namespace_of(manifest))
    found = own or app.named(_GROUP, "ClusterServingRuntime", name)
    return at(found, "spec"), () if found else (f"the runtime {name} is not in this app: {_ALONE}",)


def _of_format(
    manifest: Manifest, predictor: Mapping[str, Any], server: str, app: App
) -> tuple[Mapping[str, Any], Sequence[str]]:
    """Return the spec of the ServingRuntime that KServe selects by the model format, and assumptions as sentences.

    The spec is empty if no ServingRuntime of the app supports the model format.

    Args:
        manifest: Object that contains the predictor.
        predictor: Predictor of an InferenceService.
        server: Field of the predictor that contains the model server, such as ``model``.
        app: Objects of the app.
    """
    # pkg/apis/serving/v1beta1/predictor_model.go: Runtimes of the namespace come first, then those with the highest
    # priority. Among equals KServe takes the newest, which is not known here.
    model = mapping(predictor[server])
    wanted = mapping(model.get("modelFormat")) if server == "model" else {"name": server}
    found: list[tuple[bool, float, str, Mapping[str, Any]]] = []
    for _, one in app.facts.of_kind((_GROUP, "ServingRuntime"), (_GROUP, "ClusterServingRuntime")):
        spec = at(one, "spec")
        formats = [each for each in members(spec.get("supportedModelFormats")) if _takes(each, wanted)]
        is_shared = one["kind"] == "ClusterServingRuntime"
        is_near = is_shared or namespace_of(one) == namespace_of(manifest)
        if formats and is_near and _may_serve(spec, predictor, model.get("protocolVersion", "v1")):
            order = -float(number(formats[0].get("priority"), -1)) if "priority" in formats[0] else inf
            found.append((is_shared, order, name_of(one), spec))
    if not found:
        return {}, (f"the object names no runtime, and no runtime of this app supports the model format: {_ALONE}",)
    found.sort(key=lambda each: each[:3])
    named = ", ".join(each[2] for each in found[:_NAMED]) + (" and others" if found[_NAMED:] else "")
    note = f"KServe chooses the runtime among {named}: the plan assumes {found[0][2]}"
    return found[0][3], (note,) if found[1:] else ()


def _may_serve(runtime: Mapping[str, Any], predictor: Mapping[str, Any], protocol: object) -> bool:
    """Check whether KServe can select a ServingRuntime for a predictor whose model uses ``protocol``."""
    protocols = runtime.get("protocolVersions")
    return (
        runtime.get("disabled") is not True
        and runtime.get("multiModel") is not True
        and (not isinstance(protocols, list) or not protocols or protocol in protocols)
        and isinstance(runtime.get("workerSpec"), Mapping) == isinstance(predictor.get("workerSpec"), Mapping)
    )


def _takes(supported: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Check whether ``supported``, a model format of a ServingRuntime, matches ``wanted``, the format of a model."""
    return (
        supported.get("autoSelect") is True
        and supported.get("name") == wanted.get("name")
        and wanted.get("version") in (None, supported.get("version"))
    )


def _with_runtime(component: Mapping[str, Any], runtime: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the pod spec of a predictor, with the fields that its ServingRuntime adds."""
    if not runtime:
        return component
    server = model_server(component)
    own = members(component.get("containers"))
    if server:
        own = [{**mapping(component[server]), "name": _SERVING}, *own]
    rest = {key: value for key, value in component.items() if key not in (server, "containers", "workerSpec")}
    base = {key: value for key, value in runtime.items() if key != "workerSpec"}
    return {**merged(base, rest), "containers": _merged_containers(members(runtime.get("containers")), own)}


def _merged_containers(base: list[Mapping[str, Any]], own: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return list(reduce(merged, ({str(one.get("name")): one} for one in (*base, *own)), {}).values())


def _component(manifest: Manifest, part: str, component: Mapping[str, Any]) -> PodGroup:
    # pkg/constants/constants.go: The default of minReplicas is 1.
    least = number(component.get("minReplicas"), 1)
    most = number(component.get("maxReplicas"), 0)
    strategy = mapping(component.get("deploymentStrategy"))
    # config/configmap/inferenceservice.yaml: The default mode is Knative.
    if annotations_of(manifest).get(f"{_GROUP}/deploymentMode") in _STANDARD:
        least = max(least, 1)
        copies = max(least, most)
        rolls = strategy.get("type", "RollingUpdate") == "RollingUpdate"
        rollout = update(mapping(strategy.get("rollingUpdate")), copies, least) if rolls else {}
    else:
        copies = max(least, most, 1)
        notes: tuple[str, ...] = ()
        if not most:
            notes = (f"the object sets no maxReplicas: the plan counts {copies}, but Knative may create more",)
        if number(component.get("canaryTrafficPercent"), 100) < 100:
            notes = (
                *notes,
                "canaryTrafficPercent keeps the pods of the last revision: the plan counts them as in an update",
            )
        surge = max(least, 1)
        rollout = {"surge": surge, "surge_is_needed": True, "surge_together": surge, "notes": notes}
    return PodGroup(
        spec=component,
        labels=mapping(component.get("labels")),
        annotations=mapping(component.get("annotations")),
        part=part,
        copies=copies,
        least_copies=least,
        **rollout,
    )


def _canary_pods(predictor: Mapping[str, Any], own: Mapping[str, Any], canary: Mapping[str, Any]) -> int:
    stable = number(predictor.get("minReplicas"), 1)
    return number(own.get("minReplicas"), -(-stable * number(canary.get("trafficPercent"), 0) // 100))


def _several_nodes(
    manifest: Manifest, predictor: Mapping[str, Any], runtime: Mapping[str, Any], app: App
) -> Iterator[PodGroup]:
    """Yield the head pod and the worker pods of a predictor that runs on several nodes.

    KServe computes how many GPUs the head pod and each worker pod request, from ``pipelineParallelSize`` and
    ``tensorParallelSize``.
    """
    head_spec = _with_runtime(predictor, runtime)
    base, own = mapping(runtime.get("workerSpec")), mapping(predictor.get("workerSpec"))
    containers = _merged_containers(members(base.get("containers")), members(own.get("containers")))
    worker_spec = {**merged(base, own), "containers": containers}
    stages = number(worker_spec.get("pipelineParallelSize"), 1) or 1
    each = number(worker_spec.get("tensorParallelSize"), 1) or 1
    resource, head_gpus, worker_gpus = _gpus(head_spec, worker_spec, app)
    if at(runtime, "annotations").get("multinode/executor-backend") == "mp":
        nodes, worker_gpus, head_gpus = stages, each, each
    else:
        nodes, worker_gpus, head_gpus = _ray_nodes(stages * each, head_gpus, worker_gpus)
    # An update creates a whole second set first.
    group = replace(
        _component(manifest, "predictor", head_spec),
        copies=1,
        least_copies=1,
        surge=1,
        surge_is_needed=True,
        surge_together=1,
        is_gang=True,
        notes=(),
    )
    yield replace(group, asks={resource: head_gpus})
    workers: dict[str, Any] = {"spec": worker_spec, "part": "worker", "pods_each": nodes - 1, "surge": nodes - 1}
    yield replace(group, **workers, asks={resource: worker_gpus})


def _gpus(head: Mapping[str, Any], worker: Mapping[str, Any], app: App) -> tuple[str, int, int]:
    """Return the name of the GPU resource, the number of GPUs of the head pod, and the number of GPUs of a worker pod.

    The numbers are the requests of the model server in each pod spec. Without a model server, they are the requests of
    the first container.
    """
    counts = []
    resource = "nvidia.com/gpu"
    for spec in (head, worker):
        first = next(iter(members(spec.get("containers"))), {})
        own = asked(mapping(spec.get(model_server(spec) or "")) or first, app.is_gpu)
        if own:
            resource = next(iter(own))
        counts.append(sum(own.values()))
    return resource, counts[0], counts[1]


def _ray_nodes(total: int, head: int, worker: int) -> tuple[int, int, int]:
    """Return how KServe distributes GPUs over Ray nodes: (number of nodes, GPUs of each worker, GPUs of the head).

    Args:
        total: Number of GPUs that the model needs.
        head: Number of GPUs that the head pod requests; 0 if its spec requests none.
        worker: Number of GPUs that each worker pod requests; 0 if its spec requests none.
    """
    if worker:
        nodes = 1 if head >= total else -(-total // worker)
        if nodes == 1:
            return 1, 0, total
        return nodes, worker, head or total - worker * (nodes - 1)
    if head:
        return max(total - head, 0) + 1, 1, head
    return total, 1, 1


def llm_inference_service(manifest: Manifest, app: App) -> Iterator[PodGroup]:
    """Yield the pods of an LLMInferenceService: model server pods, separate prefill pods, and pods of its scheduler."""
    spec, written = at(manifest, "spec"), at(app.as_written(manifest), "spec")
    found = list(_llm_pods(spec, "", _llm_size(written)))
    if at(spec, "prefill"):
        found.extend(_llm_pods(at(spec, "prefill"), "prefill", _llm_size(at(written, "prefill"))))
    scheduler = at(spec, "router.scheduler")
    if isinstance(scheduler.get("template"), Mapping):
        copies = number(scheduler.get("replicas"), 1)
        found.append(PodGroup(spec=scheduler["template"], part="scheduler", copies=copies, least_copies=copies))
    notes = (_NOTHING_MORE,) if members(spec.get("baseRefs")) else ()
    for group in found:
        yield replace(group, notes=(*group.notes, *notes), is_stopped=_is_stopped(manifest))


def _is_stopped(manifest: Manifest) -> bool:
    return str(annotations_of(manifest).get(f"{_GROUP}/stop")).lower() == "true"


def _llm_pods(spec: Mapping[str, Any], part: str, size: int) -> Iterator[PodGroup]:
    scaling = spec.get("scaling")
    copies = least = number(spec.get("replicas"), 1)
    if isinstance(scaling, Mapping):
        least = number(scaling.get("minReplicas"), 1)
        copies = max(least, number(scaling.get("maxReplicas"), least))
    known: dict[str, Any] = {"labels": mapping(spec.get("labels")), "annotations": mapping(spec.get("annotations"))}
    if not isinstance(spec.get("worker"), Mapping):
        rollout = update({}, copies, least)
        pods = mapping(spec.get("template"))
        yield PodGroup(spec=pods, **known, part=part, copies=copies, least_copies=least, **rollout)
        return
    leader = {"spec": spec["template"]} if isinstance(spec.get("template"), Mapping) else None
    for role, template, each in leader_and_workers(leader, {"spec": spec["worker"]}, size):
        yield PodGroup(
            spec=mapping(mapping(template).get("spec")),
            **known,
            part=" ".join(word for word in (part, role) if word),
            copies=copies,
            least_copies=least,
            pods_each=each,
            is_gang=True,
        )


def _llm_size(spec: Mapping[str, Any]) -> int:
    """Return the number of pods (leader and workers) for one replica, from the field ``parallelism`` of a spec."""
    # pkg/apis/serving/v1alpha2/llm_inference_service_types_func.go GetSize
    parallel = mapping(spec.get("parallelism"))
    data, local = number(parallel.get("data"), 0), number(parallel.get("dataLocal"), 0)
    if data or local:
        return max((data or 1) // (local or 1), 1)
    return number(parallel.get("pipeline"), 1) or 1

"""Rules for updates, restarts, scaling and evictions of GPU pods: R16, R17, R19, R20, R24, R26, R29, R30."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from decimal import Decimal

from gpu_constructs.facts.app import Facts, Pod
from gpu_constructs.facts.finding import Finding
from gpu_constructs.facts.readable import Manifest, amounts, at, name_of, namespace_of, quantity, share
from gpu_constructs.facts.selectors import selects

_DEPLOYMENT = ("apps", "Deployment")
_COPIED = (_DEPLOYMENT, ("apps", "ReplicaSet"), ("apps", "StatefulSet"))
_SINGLE = (("", "Pod"), ("kubeflow.org", "Notebook"))
_LONG_START = 600
_MEBIBYTE = 1024 * 1024


def _replicas(manifest: Manifest) -> int:
    """Return the number of replicas of an object; 1 if its spec does not set the number."""
    replicas = at(manifest, "spec").get("replicas")
    return replicas if isinstance(replicas, int) else 1


def _lasting_demand(facts: Facts) -> Mapping[str, int]:
    """Return the number of GPUs that all long-running pods of the app request together, by GPU resource.

    Long-running pods, such as those of a Deployment, run until someone deletes them. The result is empty if the app has
    no inventory.
    """
    sums: Counter[str] = Counter()
    for pod in facts.gpu_pods if facts.inventory is not None else ():
        pods = _lasting_pods(facts, pod)
        sums.update({resource: count * pods for resource, count in pod.counts().items()})
    return sums


def _lasting_pods(facts: Facts, pod: Pod) -> int:
    """Return the number of long-running pods that an object creates.

    The function counts the replicas of a Deployment, ReplicaSet or StatefulSet, and one pod for a Pod or a Notebook.
    The result is 0 for other kinds, even for a DaemonSet.
    """
    kind = facts.kinds[pod.index]
    if kind in _COPIED:
        return _replicas(pod.manifest)
    return 1 if kind in _SINGLE else 0


def _surge_before_any_goes(deployment: Manifest) -> int | None:
    """Return the number of new pods that an update of a Deployment starts before it deletes an old pod.

    Return None if the update can delete an old pod first, or if the Deployment has no pods.
    """
    strategy = at(deployment, "spec.strategy")
    replicas = _replicas(deployment)
    if strategy.get("type", "RollingUpdate") != "RollingUpdate" or not replicas:
        return None
    rolling = strategy.get("rollingUpdate") or {}
    unavailable = share(rolling.get("maxUnavailable", "25%"), replicas, up=False)
    return share(rolling.get("maxSurge", "25%"), replicas, up=True) if unavailable == 0 else None


def updates_find_a_free_gpu(facts: Facts) -> Iterator[Finding]:
    """Yield problems: updates of Deployments that never finish because no GPU is free for the new pod (R16).

    The new pod waits for the GPU of the old pod, and Kubernetes deletes the old pod only once the new pod runs.
    """
    deployed = [pod for pod in facts.gpu_pods if facts.kinds[pod.index] == _DEPLOYMENT]
    demand = _lasting_demand(facts)
    for pod in deployed:
        replicas, surge = _replicas(pod.manifest), _surge_before_any_goes(pod.manifest)
        if not surge:
            continue
        way_out = "Write strategy.type 'Recreate', or maxSurge 0 and maxUnavailable 1"
        needed = {resource: demand[resource] + count for resource, count in pod.counts().items()}
        slots = {resource: facts.slots(resource) for resource in needed}
        lacking = [(needed[one], most) for one, most in slots.items() if most is not None and needed[one] > most]
        if lacking:
            yield Finding(
                pod.index,
                "would never finish an update: its new pod needs a GPU before the old pod releases its own. The app "
                f"needs {lacking[-1][0]}, but the inventory has {lacking[-1][1]}. {way_out}",
            )
        elif None in slots.values():
            yield Finding(
                pod.index,
                "would never finish an update if no GPU is free: the new pod starts before the old pod ends "
                f"(maxSurge {surge}, maxUnavailable 0 of {replicas}). {way_out}",
                is_warning=True,
            )


def _pods_by_label(facts: Facts) -> Mapping[tuple[object, ...], list[Pod]]:
    """Return the pods that request GPUs, in groups by namespace and by label.

    The key of a group is a namespace, or a namespace with a label. For example, the group ``("ai",)`` contains all pods
    in the namespace ``ai``, and the group ``("ai", "app", "chat")`` contains those with the label ``app=chat``. The
    groups make the search for the pods of a PodDisruptionBudget fast.
    """
    pods: dict[tuple[object, ...], list[Pod]] = defaultdict(list)
    for pod in facts.gpu_pods:
        for key in ((), *_texts(pod.metadata.get("labels"))) if facts.kinds[pod.index] in _COPIED else ():
            pods[namespace_of(pod.manifest), *key].append(pod)
    return pods


def disruption_budgets_let_a_pod_go(facts: Facts) -> Iterator[Finding]:
    """Yield problems: PodDisruptionBudgets that allow no eviction of GPU pods (R17).

    A drain of a node never ends if such a PodDisruptionBudget selects a pod on this node.
    """
    pods = _pods_by_label(facts)
    for index, budget in facts.of_kind(("policy", "PodDisruptionBudget")):
        spec = budget.get("spec") or {}
        keys: list[tuple[str, ...]] = [(), *_texts((spec.get("selector") or {}).get("matchLabels"))]
        lists = [pods.get((namespace_of(budget), *key), []) for key in keys]
        for pod in min(lists, key=len):
            if not selects(spec.get("selector"), pod.metadata.get("labels") or {}):
                continue
            replicas = _replicas(pod.manifest)
            least = share(spec.get("minAvailable"), replicas, up=True)
            most = share(spec.get("maxUnavailable"), replicas, up=True)
            if replicas and ((least is not None and least >= replicas) or most == 0):
                says = f"minAvailable {spec['minAvailable']}" if most is None else f"maxUnavailable {most}"
                yield Finding(
                    index,
                    f"allows no eviction of pods of {{0}} ({says} of {replicas}), so a drain of the node never ends. "
                    "Write maxUnavailable 1, or remove the PodDisruptionBudget if there is only one pod",
                    (pod.index,),
                )


def _texts(labels: Mapping[str, object] | None) -> list[tuple[str, str]]:
    """Return the labels whose values are texts, as pairs of a key and a value."""
    return [(key, value) for key, value in (labels or {}).items() if isinstance(value, str)]


def memory_is_limited(facts: Facts) -> Iterator[Finding]:
    """Yield problems: GPU containers without a memory limit, or whose volumes in memory use the whole limit (R19).

    A container without a memory limit can exhaust the memory of the node.
    """
    limited = {
        namespace
        for namespace, limits in facts.limit_ranges.items()
        if any("memory" in at(limit, "default") for _, limit in limits)
    }
    for pod, container in facts.gpu_containers:
        limit = amounts(container, "limits").get("memory", amounts(pod.spec, "limits").get("memory"))
        if limit is None:
            if namespace_of(pod.manifest) not in limited:
                yield Finding(
                    pod.index,
                    f"container {container.get('name')!r} has a GPU but no memory limit, so a model that does not fit "
                    "can exhaust the memory of the node. Set limits.memory",
                )
            continue
        shared, total = _memory_volumes(pod.spec, container), quantity(limit)
        if total is not None and shared and shared >= total:
            yield Finding(
                pod.index,
                f"container {container.get('name')!r} has {int(shared / _MEBIBYTE)}Mi of volumes in memory, which "
                f"count against its memory limit of {limit}. Raise the limit above this sum, or make the volumes "
                "smaller",
            )


def _memory_volumes(spec: Manifest, container: Manifest) -> Decimal:
    """Return the sum of the size limits of the ``emptyDir`` volumes in memory that a container mounts, in bytes."""
    mounted = {str(mount.get("name")) for mount in container.get("volumeMounts") or ()}
    sizes = [
        quantity((volume.get("emptyDir") or {}).get("sizeLimit")) or Decimal(0)
        for volume in spec.get("volumes") or ()
        if str(volume.get("name")) in mounted and (volume.get("emptyDir") or {}).get("medium") == "Memory"
    ]
    return sum(sizes, Decimal(0))


def models_have_time_to_load(facts: Facts) -> Iterator[Finding]:
    """Yield problems: liveness probes that restart a container before it has loaded its model (R20)."""
    for pod, container in facts.gpu_containers:
        probe = container.get("livenessProbe")
        if not probe or container.get("startupProbe"):
            continue
        delay, failures, period = (
            given if isinstance(given := probe.get(key), int) and given else default
            for key, default in (("initialDelaySeconds", 0), ("failureThreshold", 3), ("periodSeconds", 10))
        )
        patience = delay + failures * period
        if patience < _LONG_START:
            yield Finding(
                pod.index,
                f"container {container.get('name')!r} has a livenessProbe but no startupProbe, so Kubernetes restarts "
                f"it if its model takes more than {patience} s to load. Add a startupProbe with enough time",
            )


def refused_pods_come_back(facts: Facts) -> Iterator[Finding]:
    """Yield problems: objects of the kind Pod with ``restartPolicy: Always`` that use shared GPUs (R24).

    If the kubelet cannot allocate a slot, it rejects the pod. Only a controller, such as a Deployment, then creates a
    new pod.
    """
    for pod in facts.gpu_pods:
        if facts.kinds[pod.index] != ("", "Pod") or pod.spec.get("restartPolicy", "Always") != "Always":
            continue
        shared = next((found for ask in pod.asks if (found := facts.sharing_of(ask.resource))), None)
        if shared is not None:
            yield Finding(
                pod.index,
                "is a Pod without a controller on GPUs that {0} shares: if the kubelet rejects it, nothing recreates "
                "it, whatever its restartPolicy. Use a Deployment or a Job",
                providers=(shared[0],),
            )


def images_are_pinned(facts: Facts) -> Iterator[Finding]:
    """Yield problems: images of GPU containers without a fixed tag (R26).

    Such an image can change to a newer CUDA release, which the NVIDIA driver of the node does not support.
    """
    for pod, container in facts.gpu_containers:
        image = str(container.get("image") or "")
        tag = image.rpartition("/")[2].partition(":")[2]
        if image and "$" not in image and tag in ("", "latest"):
            yield Finding(
                pod.index,
                f"container {container.get('name')!r} has a GPU and runs image {image!r}, which can change to a CUDA "
                "release that the driver does not support. Use a fixed tag or a digest",
            )


def runs_do_not_overlap(facts: Facts) -> Iterator[Finding]:
    """Yield problems: CronJobs for GPU pods whose runs can overlap, so that each run needs its own GPU (R29)."""
    for pod in facts.gpu_pods:
        if facts.kinds[pod.index] != ("batch", "CronJob"):
            continue
        if at(pod.manifest, "spec").get("concurrencyPolicy", "Allow") == "Allow":
            yield Finding(
                pod.index,
                "is a CronJob that can start while its previous run still holds the GPU (concurrencyPolicy 'Allow', "
                "the "
                "default). Write concurrencyPolicy 'Forbid'",
            )


def autoscaling_stays_within_the_gpus(facts: Facts) -> Iterator[Finding]:
    """Yield problems: autoscalers whose largest number of replicas needs more GPUs than the cluster has (R30).

    The replicas without a GPU stay pending.
    """
    if facts.inventory is None:
        return
    pods = {(namespace_of(pod.manifest), name_of(pod.manifest), pod.manifest["kind"]): pod for pod in facts.gpu_pods}
    for index, scaler in facts.of_kind(("autoscaling", "HorizontalPodAutoscaler"), ("keda.sh", "ScaledObject")):
        spec = scaler.get("spec") or {}
        target = spec.get("scaleTargetRef") or {}
        pod = pods.get((namespace_of(scaler), str(target.get("name")), str(target.get("kind") or "Deployment")))
        is_keda = scaler["kind"] == "ScaledObject"
        most = spec.get("maxReplicaCount", 100) if is_keda else spec.get("maxReplicas")
        if pod is None or not isinstance(most, int):
            continue
        for resource, count in pod.counts().items():
            slots = facts.slots(resource)
            if slots is not None and most * count > slots:
                field = "maxReplicaCount" if is_keda else "maxReplicas"
                yield Finding(
                    index,
                    f"scales {{0}} up to {field} {most} with {count} x {resource} each, {most * count} in total, but "
                    f"the inventory has {slots}. Write {field} {max(1, slots // count)} or less",
                    (pod.index,),
                )

"""How pods start, update, grow and end: R16, R17, R19, R20, R24, R26, R29, R30."""

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
    replicas = at(manifest, "spec").get("replicas")
    return replicas if isinstance(replicas, int) else 1


def _lasting_demand(facts: Facts) -> Mapping[str, int]:
    """Return how many of each resource the pods hold that run until they are stopped, where slots are known."""
    sums: Counter[str] = Counter()
    for pod in facts.gpu_pods if facts.inventory is not None else ():
        pods = _lasting_pods(facts, pod)
        sums.update({resource: count * pods for resource, count in pod.counts().items()})
    return sums


def _lasting_pods(facts: Facts, pod: Pod) -> int:
    kind = facts.kinds[pod.index]
    if kind in _COPIED:
        return _replicas(pod.manifest)
    return 1 if kind in _SINGLE else 0


def _surge_before_any_goes(deployment: Manifest) -> int | None:
    """Return the new pods that an update starts at first; None if an old pod may go first, which frees its GPU."""
    strategy = at(deployment, "spec.strategy")
    replicas = _replicas(deployment)
    if strategy.get("type", "RollingUpdate") != "RollingUpdate" or not replicas:
        return None
    rolling = strategy.get("rollingUpdate") or {}
    unavailable = share(rolling.get("maxUnavailable", "25%"), replicas, up=False)
    return share(rolling.get("maxSurge", "25%"), replicas, up=True) if unavailable == 0 else None


def updates_find_a_free_gpu(facts: Facts) -> Iterator[Finding]:
    """R16: a new pod that waits for the GPU of an old one, which waits for the new pod, waits forever."""
    deployed = [pod for pod in facts.gpu_pods if facts.kinds[pod.index] == _DEPLOYMENT]
    demand = _lasting_demand(facts)
    for pod in deployed:
        replicas, surge = _replicas(pod.manifest), _surge_before_any_goes(pod.manifest)
        if not surge:
            continue
        way_out = "write strategy.type 'Recreate', or maxSurge 0 and maxUnavailable 1"
        needed = {resource: demand[resource] + count for resource, count in pod.counts().items()}
        slots = {resource: facts.slots(resource) for resource in needed}
        lacking = [(needed[one], most) for one, most in slots.items() if most is not None and needed[one] > most]
        if lacking:
            yield Finding(
                pod.index,
                f"would wait forever at an update: its new pod needs a GPU before the old one gives its own back, "
                f"which makes {lacking[-1][0]} in the app, and the inventory has {lacking[-1][1]}; {way_out}",
            )
        elif None in slots.values():
            yield Finding(
                pod.index,
                "would wait forever at an update when all GPUs are taken: its new pod needs one before the old one "
                f"gives its own back (maxSurge {surge}, maxUnavailable 0 of {replicas}); {way_out}",
                is_warning=True,
            )


def _pods_by_label(facts: Facts) -> Mapping[tuple[object, ...], list[Pod]]:
    """Return the pods by namespace and by each label too, so that many budgets do not look at all pods."""
    pods: dict[tuple[object, ...], list[Pod]] = defaultdict(list)
    for pod in facts.gpu_pods:
        for key in ((), *_texts(pod.metadata.get("labels"))) if facts.kinds[pod.index] in _COPIED else ():
            pods[namespace_of(pod.manifest), *key].append(pod)
    return pods


def disruption_budgets_let_a_pod_go(facts: Facts) -> Iterator[Finding]:
    """R17: a node with a pod that may never be evicted cannot be drained."""
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
                    f"lets no pod of {{0}} go ({says} of {replicas}), so the node of its GPU can never be drained; "
                    "write maxUnavailable 1, or leave the budget out where there is one pod",
                    (pod.index,),
                )


def _texts(labels: Mapping[str, object] | None) -> list[tuple[str, str]]:
    return [(key, value) for key, value in (labels or {}).items() if isinstance(value, str)]


def memory_is_limited(facts: Facts) -> Iterator[Finding]:
    """R19: models are loaded through memory, and a pod without a limit takes the node's other pods with it."""
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
                    f"container {container.get('name')!r} holds a GPU and has no memory limit, so a model that does "
                    "not fit takes the node's other pods with it; write limits.memory",
                )
            continue
        shared, total = _memory_volumes(pod.spec, container), quantity(limit)
        if total is not None and shared and shared >= total:
            yield Finding(
                pod.index,
                f"container {container.get('name')!r} has {int(shared / _MEBIBYTE)}Mi of volumes in memory, which "
                f"count against its memory limit of {limit}; raise the limit above them, or make them smaller",
            )


def _memory_volumes(spec: Manifest, container: Manifest) -> Decimal:
    mounted = {str(mount.get("name")) for mount in container.get("volumeMounts") or ()}
    sizes = [
        quantity((volume.get("emptyDir") or {}).get("sizeLimit")) or Decimal(0)
        for volume in spec.get("volumes") or ()
        if str(volume.get("name")) in mounted and (volume.get("emptyDir") or {}).get("medium") == "Memory"
    ]
    return sum(sizes, Decimal(0))


def models_have_time_to_load(facts: Facts) -> Iterator[Finding]:
    """R20: a liveness probe restarts a container that still loads its model, which then loads it again."""
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
                f"container {container.get('name')!r} has a livenessProbe and no startupProbe, so it is restarted when "
                f"its model takes more than {patience} s to load; add a startupProbe with time for that",
            )


def refused_pods_come_back(facts: Facts) -> Iterator[Finding]:
    """R24: a pod that a node refuses when it hands out GPUs has failed, and nobody makes it anew."""
    for pod in facts.gpu_pods:
        if facts.kinds[pod.index] != ("", "Pod") or pod.spec.get("restartPolicy", "Always") != "Always":
            continue
        shared = next((found for ask in pod.asks if (found := facts.sharing_of(ask.resource))), None)
        if shared is not None:
            yield Finding(
                pod.index,
                "is a bare Pod on GPUs that {0} shares: when the node refuses it a slot it has failed for good, "
                "whatever restartPolicy says; make it a Deployment or a Job",
                providers=(shared[0],),
            )


def images_are_pinned(facts: Facts) -> Iterator[Finding]:
    """R26: an image that changes by itself brings a CUDA that the driver does not know."""
    for pod, container in facts.gpu_containers:
        image = str(container.get("image") or "")
        tag = image.rpartition("/")[2].partition(":")[2]
        if image and "$" not in image and tag in ("", "latest"):
            yield Finding(
                pod.index,
                f"container {container.get('name')!r} holds a GPU and runs image {image!r}, which may bring another "
                "CUDA than the driver knows tomorrow; pin a tag or a digest",
            )


def runs_do_not_overlap(facts: Facts) -> Iterator[Finding]:
    """R29: a run that starts before the last one has ended wants a GPU of its own."""
    for pod in facts.gpu_pods:
        if facts.kinds[pod.index] != ("batch", "CronJob"):
            continue
        if at(pod.manifest, "spec").get("concurrencyPolicy", "Allow") == "Allow":
            yield Finding(
                pod.index,
                "is a CronJob that starts while its last run still holds the GPU (concurrencyPolicy 'Allow', the "
                "default); write concurrencyPolicy 'Forbid'",
            )


def autoscaling_stays_within_the_gpus(facts: Facts) -> Iterator[Finding]:
    """R30: replicas beyond the last GPU only wait."""
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
                    f"scales {{0}} up to {field} {most} with {count} x {resource} each, {most * count} in all, and the "
                    f"inventory has {slots}; write {field} {max(1, slots // count)} or less",
                    (pod.index,),
                )

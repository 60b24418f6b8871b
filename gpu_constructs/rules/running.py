"""How pods start, update, grow and end: R16, R17, R19, R20, R24, R26, R28 to R30."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from decimal import Decimal

from gpu_constructs.annotations import VRAM, VRAM_TYPICAL
from gpu_constructs.rules.facts import Facts, Manifest, Pod, amounts, annotations_of, limits_of, namespace_of, quantity
from gpu_constructs.rules.finding import Finding
from gpu_constructs.rules.vram_units import slots_for, units_of

_DEPLOYMENT = ("apps", "Deployment")
_COPIED = (_DEPLOYMENT, ("apps", "ReplicaSet"), ("apps", "StatefulSet"))
_SINGLE = (("", "Pod"), ("kubeflow.org", "Notebook"))
_PERCENT = re.compile(r"([0-9]+)%\Z")
_LONG_START = 600
_MEBIBYTE = 1024 * 1024


def _resolved(given: object, total: int, *, up: bool) -> int | None:
    """Give a number or a percentage of pods as Kubernetes rounds it."""
    if isinstance(given, int) and not isinstance(given, bool):
        return given
    percent = _PERCENT.match(str(given))
    if percent is None:
        return None
    hundredths = int(percent[1]) * total
    return -(-hundredths // 100) if up else hundredths // 100


def _replicas(manifest: Manifest) -> int:
    replicas = (manifest.get("spec") or {}).get("replicas")
    return replicas if isinstance(replicas, int) else 1


def _lasting_demand(facts: Facts) -> dict[str, int]:
    """Give how many of each resource the pods hold that run until somebody stops them."""
    sums: dict[str, int] = {}
    for pod in facts.gpu_pods:
        pods = _lasting_pods(facts, pod)
        for resource, count in pod.counts().items():
            sums[resource] = sums.get(resource, 0) + count * pods
    return sums


def _lasting_pods(facts: Facts, pod: Pod) -> int:
    kind = facts.kinds[pod.index]
    if kind in _COPIED:
        return _replicas(pod.manifest)
    return 1 if kind in _SINGLE else 0


def updates_find_a_free_gpu(facts: Facts) -> Iterator[Finding]:
    """R16: a new pod that waits for the GPU of an old one, which waits for the new pod, waits for ever."""
    demand: dict[str, int] | None = None
    for pod in facts.gpu_pods:
        if facts.kinds[pod.index] != _DEPLOYMENT:
            continue
        spec = pod.manifest.get("spec") or {}
        strategy = spec.get("strategy") or {}
        replicas = _replicas(pod.manifest)
        if strategy.get("type", "RollingUpdate") != "RollingUpdate" or not replicas:
            continue
        rolling = strategy.get("rollingUpdate") or {}
        surge = _resolved(rolling.get("maxSurge", "25%"), replicas, up=True)
        unavailable = _resolved(rolling.get("maxUnavailable", "25%"), replicas, up=False)
        # Where an old pod may go first, its GPU comes free.
        if not surge or unavailable != 0:
            continue
        way_out = "write strategy.type 'Recreate', or maxSurge 0 and maxUnavailable 1"
        lacking: tuple[int, int] | None = None
        is_counted = True
        for resource, count in pod.counts().items():
            slots = facts.slots(resource)
            if slots is None:
                is_counted = False
                continue
            demand = _lasting_demand(facts) if demand is None else demand
            if demand[resource] + count > slots:
                lacking = (demand[resource] + count, slots)
        if lacking:
            yield Finding(
                pod.index,
                f"would wait for ever at an update: its new pod needs a GPU before the old one gives its own back, "
                f"which makes {lacking[0]} in the app, and the inventory has {lacking[1]}; {way_out}",
            )
        elif not is_counted:
            yield Finding(
                pod.index,
                "would wait for ever at an update when all GPUs are taken: its new pod needs one before the old one "
                f"gives its own back (maxSurge {surge}, maxUnavailable 0 of {replicas}); {way_out}",
                is_warning=True,
            )


def disruption_budgets_let_a_pod_go(facts: Facts) -> Iterator[Finding]:
    """R17: a node with a pod that may never be evicted cannot be drained."""
    # By each label too, so that many budgets of one namespace do not look at all its pods.
    pods: dict[tuple[object, ...], list[Pod]] = defaultdict(list)
    for pod in facts.gpu_pods:
        if facts.kinds[pod.index] in _COPIED:
            namespace = namespace_of(pod.manifest)
            for key in ((), *_texts(pod.metadata.get("labels"))):
                pods[namespace, *key].append(pod)
    for index, budget in facts.of_kind(("policy", "PodDisruptionBudget")):
        spec = budget.get("spec") or {}
        keys: list[tuple[str, ...]] = [(), *_texts((spec.get("selector") or {}).get("matchLabels"))]
        lists = [pods.get((namespace_of(budget), *key), []) for key in keys]
        for pod in min(lists, key=len):
            if not _selects(spec.get("selector"), pod.metadata.get("labels") or {}):
                continue
            replicas = _replicas(pod.manifest)
            least = _resolved(spec.get("minAvailable"), replicas, up=True)
            most = _resolved(spec.get("maxUnavailable"), replicas, up=True)
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


def _selects(selector: Manifest | None, labels: Mapping[str, object]) -> bool:
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_matches(expression, labels) for expression in selector.get("matchExpressions") or ())


def _matches(expression: Manifest, labels: Mapping[str, object]) -> bool:
    value, values = labels.get(expression.get("key", "")), expression.get("values") or ()
    answers = {
        "In": value in values,
        "NotIn": value not in values,
        "Exists": value is not None,
        "DoesNotExist": value is None,
    }
    return answers.get(str(expression.get("operator")), False)


def memory_is_limited(facts: Facts) -> Iterator[Finding]:
    """R19: models are loaded through memory, and a pod without a limit takes the node's other pods with it."""
    limited = {
        namespace_of(manifest)
        for _, manifest in facts.of_kind(("", "LimitRange"))
        if any("memory" in (one.get("default") or {}) for one in limits_of(manifest))
    }
    for pod, container in facts.gpu_containers:
        of_pod = ((pod.spec.get("resources") or {}).get("limits") or {}).get("memory")
        limit = amounts(container, "limits").get("memory", of_pod)
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


def budgets_fit_a_gpu(facts: Facts) -> Iterator[Finding]:
    """R28: what needs more memory than any GPU has never runs, and what takes more than it asked for harms others."""
    told: set[tuple[int, str]] = set()
    for pod in facts.gpu_pods:
        budget, typical = said(pod, VRAM), said(pod, VRAM_TYPICAL)
        key = pod.index, f"{budget!r} {typical!r}"
        if key in told:
            continue
        told.add(key)
        yield from _typical_exceeds_the_budget(pod, budget, typical)
        if budget is None:
            continue
        wanted = quantity(budget)
        if wanted is None or wanted < _MEBIBYTE:
            yield Finding(
                pod.index,
                f"annotation {VRAM} must be an amount of memory with its unit, like '12Gi'; got {budget!r}",
            )
        elif facts.inventory is not None:
            known = [node.vram_mib for node in facts.inventory.nodes]
            largest = facts.inventory.vram_mib
            if largest is not None and wanted > largest * _MEBIBYTE:
                yield Finding(
                    pod.index,
                    f"means to use {budget} of GPU memory ({VRAM}), and the inventory's largest GPU has "
                    f"{largest}Mi; take a smaller model or quantization, or a larger GPU",
                    is_warning=None in known,
                )
    yield from _asks_are_less_than_budgets(facts)


def said(pod: Pod, annotation: str) -> object:
    """Return what an object says about its pods, else what they say themselves."""
    return annotations_of(pod.manifest).get(annotation, (pod.metadata.get("annotations") or {}).get(annotation))


def _typical_exceeds_the_budget(pod: Pod, budget: object, typical: object) -> Iterator[Finding]:
    if typical is None:
        return
    amount, most = quantity(typical), quantity(budget)
    if amount is None or amount < 0 or 0 < amount < _MEBIBYTE:
        yield Finding(
            pod.index,
            f"annotation {VRAM_TYPICAL} must be an amount of memory with its unit, like '6Gi'; got {typical!r}",
        )
    elif budget is None:
        yield Finding(pod.index, f"annotation {VRAM_TYPICAL} needs {VRAM}, the most that is taken; write both")
    elif most is not None and amount > most:
        yield Finding(
            pod.index,
            f"annotation {VRAM_TYPICAL} must be at most {VRAM} of {budget!r}; got {typical!r}",
        )


def _asks_are_less_than_budgets(facts: Facts) -> Iterator[Finding]:
    """Find what the scheduler counts for less memory than it takes, where slots count memory."""
    counted_pods = [(pod, resource, count) for pod in facts.gpu_pods for resource, count in pod.counts().items()]
    for pod, resource, count in counted_pods:
        shared = facts.sharing_of(resource)
        if shared is None or units_of(facts, resource) != {shared[1].vram_unit} or shared[1].vram_unit is None:
            continue
        provider, sharing = shared
        counted = f"{count} x {resource}, which {{0}} counts in units of {sharing.vram_unit}"
        budget = said(pod, VRAM)
        wanted = quantity(budget)
        if budget is None and count == 1:
            yield Finding(
                pod.index,
                f"asks for {counted}, and does not say what it takes; annotate the object with {VRAM}, and ask for as "
                "many, which GpuRequest(vram=...) does with the sharing in its GpuProfile",
                providers=(provider,),
                is_warning=True,
            )
        elif wanted is not None and count < slots_for(wanted, sharing):
            yield Finding(
                pod.index,
                f"means to use {budget} of GPU memory ({VRAM}) and asks for {counted}; ask for "
                f"{slots_for(wanted, sharing)}, which GpuRequest(vram=...) does with the sharing in its GpuProfile",
                providers=(provider,),
            )


def runs_do_not_overlap(facts: Facts) -> Iterator[Finding]:
    """R29: a run that starts before the last one has ended wants a GPU of its own."""
    for pod in facts.gpu_pods:
        if facts.kinds[pod.index] != ("batch", "CronJob"):
            continue
        policy = (pod.manifest.get("spec") or {}).get("concurrencyPolicy", "Allow")
        if policy == "Allow":
            yield Finding(
                pod.index,
                "is a CronJob that starts while its last run still holds the GPU (concurrencyPolicy 'Allow', the "
                "default); write concurrencyPolicy 'Forbid'",
            )


def autoscaling_stays_within_the_gpus(facts: Facts) -> Iterator[Finding]:
    """R30: replicas beyond the last GPU only wait."""
    if facts.inventory is None:
        return
    pods = {(*_name(pod.manifest), pod.manifest["kind"]): pod for pod in facts.gpu_pods}
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


def _name(manifest: Manifest) -> tuple[str, str]:
    return namespace_of(manifest), str((manifest.get("metadata") or {}).get("name"))

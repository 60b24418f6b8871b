"""Strategies of hypothesis that draw small clusters and what is applied to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from hypothesis import strategies as st

from plan_cases import DEPLOYED, Case, Manifest

T = TypeVar("T")
Draw = Callable[[st.SearchStrategy[T]], T]

GPU, SHARED = "nvidia.com/gpu", "nvidia.com/gpu.shared"
HOST, ZONE, POOL = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "example.com/pool"
_TAINT = {"key": "dedicated", "value": "ai", "effect": "NoSchedule"}
_MOST_PODS = 10
_BOARD, _MIG_BOARD = "NVIDIA GeForce RTX 4090", "NVIDIA A100-SXM4-80GB"
_LAYOUTS: Sequence[dict[str, int]] = ({"1g.10gb": 3, "3g.40gb": 1}, {"1g.10gb": 2, "2g.20gb": 2}, {"3g.40gb": 2})
_PRIORITIES = {"high": (1000, None), "low": (-10, None), "patient": (500, "Never")}


def _chance(draw: Draw[Any], percent: int) -> bool:
    # The simplest case, which hypothesis draws first, is one in which no chance comes true.
    return bool(draw(st.integers(0, 99)) >= 100 - percent)


def _one_of(draw: Draw[Any], *choices: T) -> T:
    return draw(st.sampled_from(choices))


# --- nodes ----------------------------------------------------------------------------------------------------


def _boards(draw: Draw[Any]) -> Manifest:
    return {"gpu_model": _BOARD, "gpus": _one_of(draw, 2, 1, 3, 4)}


def _slots(draw: Draw[Any]) -> Manifest:
    # Otherwise a kubelet refuses what asks for two, and a controller makes the pod again without end.
    sharing = {
        "strategy": "time-slicing",
        "replicas": _one_of(draw, 2, 3),
        "fail_requests_greater_than_one": False,
    }
    return {"gpu_model": _BOARD, "gpus": _one_of(draw, 1, 2), "sharing": sharing}


def _renamed(draw: Draw[Any]) -> Manifest:
    node = _slots(draw)
    return {**node, "sharing": {**node["sharing"], "rename_by_default": True}}


def _divided(draw: Draw[Any]) -> Manifest:
    return {"gpu_model": _MIG_BOARD, "mig_layout": _one_of(draw, *_LAYOUTS), "mig_strategy": "mixed"}


def _divided_alike(draw: Draw[Any]) -> Manifest:
    return {"gpu_model": _MIG_BOARD, "mig_layout": {"2g.20gb": 3}, "mig_strategy": "single"}


_SORTS = (_boards, _boards, _slots, _renamed, _divided, _divided_alike)


@st.composite
def _nodes(draw: Draw[Any]) -> list[Manifest]:
    usual, nodes = _one_of(draw, *_SORTS), []
    for number in range(_one_of(draw, 1, 2, 2, 3, 3, 4)):
        sort = _one_of(draw, *_SORTS) if _chance(draw, 30) else usual
        node = {"name": f"n{number}", **sort(draw), "labels": {ZONE: _one_of(draw, "a", "b")}}
        if _chance(draw, 50):
            node["labels"][POOL] = _one_of(draw, "x", "y")
        if _chance(draw, 20):
            node["taints"] = [{**_TAINT, "effect": _one_of(draw, "NoSchedule", "NoExecute", "PreferNoSchedule")}]
        # Nodes that pods select by name are no pools.
        if number > 1 and _chance(draw, 20):
            node["count"] = 2
        nodes.append(node)
    return nodes


def _slots_of(nodes: Sequence[Manifest]) -> dict[str, int]:
    found: dict[str, int] = {}
    for node in nodes:
        layout, sharing = node.get("mig_layout"), node.get("sharing", {})
        many, gpus = node.get("count", 1), node.get("gpus", 1)
        if layout and node["mig_strategy"] == "mixed":
            offered = {f"nvidia.com/mig-{profile}": count for profile, count in layout.items()}
        elif layout:
            offered = {GPU: sum(layout.values())}
        else:
            name = SHARED if sharing.get("rename_by_default") else GPU
            offered = {name: gpus * sharing.get("replicas", 1)}
        for name, count in offered.items():
            found[name] = found.get(name, 0) + count * many
    return found


# --- pods -----------------------------------------------------------------------------------------------------


def _container(name: str, asks: dict[str, int], **more: Any) -> Manifest:
    limits = {resource: str(count) for resource, count in asks.items()}
    return {"name": name, "image": "e2e.invalid/one", **({"resources": {"limits": limits}} if limits else {}), **more}


def _pod_spec(draw: Draw[Any], resource: str, nodes: Sequence[Manifest], names: Sequence[str]) -> Manifest:
    most = max(_slots_of([{**node, "count": 1}]).get(resource, 0) for node in nodes)
    count = min(_one_of(draw, 1, 1, 1, 1, 2, 2, 3), most + _chance(draw, 5)) or 1
    spec: Manifest = {"containers": [_container("main", {resource: count})]}
    if _chance(draw, 12):
        spec["containers"].append(_container("second", {_one_of(draw, *_slots_of(nodes)): 1}))
    first = []
    if _chance(draw, 10):
        first.append(_container("prepare", {resource: _one_of(draw, *range(1, max(most, 1) + 1))}))
    if _chance(draw, 8):
        first.insert(_one_of(draw, 0, len(first)), _container("beside", {resource: 1}, restartPolicy="Always"))
    if first:
        spec["initContainers"] = first
    if any("taints" in node for node in nodes) and _chance(draw, 75):
        spec["tolerations"] = [{"key": "dedicated", **_one_of(draw, {"operator": "Exists"}, {"value": "ai"})}]
    if _chance(draw, 10):
        spec["nodeSelector"] = _one_of(draw, {ZONE: "a"}, {POOL: "x"}, {HOST: "n0"})
    affinity = {}
    if _chance(draw, 12):
        affinity["nodeAffinity"] = {_REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [_expression(draw)]}]}}
    if _chance(draw, 18):
        kind = _one_of(draw, "podAntiAffinity", "podAntiAffinity", "podAffinity")
        term = {"topologyKey": _one_of(draw, HOST, ZONE), "labelSelector": _about(_one_of(draw, *names))}
        affinity[kind] = {_REQUIRED: [term]}
    return {**spec, **({"affinity": affinity} if affinity else {})}


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def _about(name: str) -> Manifest:
    return {"matchLabels": {"app": name}}


def _expression(draw: Draw[Any]) -> Manifest:
    return _one_of(
        draw,
        {"key": ZONE, "operator": "In", "values": ["a"]},
        {"key": POOL, "operator": "NotIn", "values": ["x"]},
        {"key": POOL, "operator": "Exists"},
        {"key": POOL, "operator": "DoesNotExist"},
        {"key": "nvidia.com/gpu.count", "operator": "Gt", "values": ["1"]},
        {"key": HOST, "operator": "In", "values": ["n0", "n1"]},
    )


def _spread(draw: Draw[Any], name: str) -> Manifest:
    constraint = {
        "maxSkew": _one_of(draw, 1, 2),
        "topologyKey": _one_of(draw, HOST, ZONE),
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": _about(name),
    }
    more = _one_of(draw, {}, {}, {"nodeTaintsPolicy": "Honor"}, {"nodeAffinityPolicy": "Ignore"}, {"minDomains": 2})
    return {**constraint, **more}


# --- objects --------------------------------------------------------------------------------------------------


def _object(api_version: str, kind: str, name: str, spec: Manifest) -> Manifest:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def _workload(draw: Draw[Any], name: str, spec: Manifest, most: int) -> Manifest:
    kinds = ("Deployment",) * 4 + ("StatefulSet", "Job", "Job", "DaemonSet", "Pod")
    kind, pods = _one_of(draw, *kinds), _one_of(draw, *(1, 1, 2, 2, 3, 4)[: most + 2])
    labels = {"app": name}
    if kind in ("Job", "Pod"):
        spec = {**spec, "restartPolicy": "Never" if kind == "Job" or _chance(draw, 30) else "Always"}
    if kind == "Pod":
        pod = _object("v1", "Pod", name, spec)
        return {**pod, "metadata": {**pod["metadata"], "labels": labels}}
    template = {"metadata": {"labels": labels}, "spec": spec}
    if kind == "Job":
        counts = _one_of(draw, {"completions": pods}, {"completions": pods + 1}, {"completions": 1}, {})
        return _object("batch/v1", "Job", name, {"parallelism": pods, **counts, "template": template})
    held: Manifest = {"selector": {"matchLabels": labels}, "template": template}
    if kind == "DaemonSet":
        rolling = _one_of(draw, {}, {"maxSurge": 1, "maxUnavailable": 0})
        held |= {"updateStrategy": {"rollingUpdate": rolling}} if rolling else {}
        return _object("apps/v1", kind, name, held)
    held = {"replicas": pods, **held}
    if kind == "StatefulSet":
        policy = {"podManagementPolicy": _one_of(draw, "Parallel", "OrderedReady"), "serviceName": name}
        return _object("apps/v1", kind, name, {**held, **policy})
    strategy = _one_of(
        draw,
        {},
        {"type": "Recreate"},
        {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
        {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
        {"rollingUpdate": {"maxSurge": "50%", "maxUnavailable": "50%"}},
    )
    return _object("apps/v1", kind, name, {**held, **({"strategy": strategy} if strategy else {})})


def pod_spec_of(manifest: Manifest) -> Manifest:
    """Return the pod spec of an object."""
    spec: Manifest = manifest["spec"]["template"]["spec"] if manifest["kind"] != "Pod" else manifest["spec"]
    return spec


def priority_class(name: str) -> Manifest:
    """Return one of the priority classes that drawn pods have."""
    value, policy = _PRIORITIES[name]
    made = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
    return {**made, **({"preemptionPolicy": policy} if policy else {})}


@st.composite
def cases(draw: Draw[Any]) -> Case:
    """Draw a case: one to four nodes, and objects that want about what these have, some a little more."""
    nodes = draw(_nodes())
    left = {name: max(1, count * _one_of(draw, 70, 100, 120) // 100) for name, count in _slots_of(nodes).items()}
    names = [f"app-{letter}" for letter in "abcde"[: _one_of(draw, 1, 2, 2, 3, 3, 4, 4, 5)]]
    made, pods = [], 0
    for number, name in enumerate(names):
        wanted = [resource for resource, count in left.items() if count > 0] or list(left)
        resource = "nvidia.com/mig-7g.80gb" if _chance(draw, 1) else _one_of(draw, *wanted)
        spec = _pod_spec(draw, resource, nodes, names[: number + 1])
        one = _workload(draw, name, spec, max(1, _MOST_PODS - pods))
        if one["kind"] != "DaemonSet" and _chance(draw, 15):
            pod_spec_of(one)["topologySpreadConstraints"] = [_spread(draw, name)]
        count = one["spec"].get("replicas", one["spec"].get("parallelism", 1))
        pods += count
        for container in spec["containers"]:
            for asked, amount in container["resources"]["limits"].items():
                left[asked] = left.get(asked, 0) - int(amount) * count
        made.append(one)
        if pods >= _MOST_PODS or (max(left.values()) <= 0 and _chance(draw, 80)):
            break
    update = _one_of(draw, *_updated(made)) if _chance(draw, 60) and _updated(made) else ""
    return Case(nodes, [*_around(draw, made, nodes), *made], update)


def _updated(made: Sequence[Manifest]) -> list[str]:
    return [one["metadata"]["name"] for one in made if one["kind"] in DEPLOYED]


def _around(draw: Draw[Any], made: Sequence[Manifest], nodes: Sequence[Manifest]) -> list[Manifest]:
    """Draw what decides about the pods of others: priorities, quotas, limits, autoscalers, disruption budgets."""
    found: list[Manifest] = []
    if _chance(draw, 25):
        found += [priority_class(name) for name in _PRIORITIES]
        for one in made:
            name = _one_of(draw, "", *_PRIORITIES)
            pod_spec_of(one).update({"priorityClassName": name} if name else {})
    slots = _slots_of(nodes)
    if _chance(draw, 12):
        resource = _one_of(draw, *slots)
        hard = {f"requests.{resource}": str(_one_of(draw, 2, 1, 3, 4, 6))}
        found.append(_object("v1", "ResourceQuota", "gpus", {"hard": hard}))
    elif _chance(draw, 6):
        found.append(_object("v1", "ResourceQuota", "pods", {"hard": {"pods": str(_one_of(draw, 3, 5, 8))}}))
    if _chance(draw, 10):
        resource = _one_of(draw, *slots)
        limits = _one_of(draw, {"max": {resource: "2"}}, {"default": {resource: "1"}}, {"min": {resource: "1"}})
        found.append(_object("v1", "LimitRange", "gpus", {"limits": [{"type": "Container", **limits}]}))
    for one in made:
        name = one["metadata"]["name"]
        if one["kind"] == "Deployment" and _chance(draw, 15):
            bounds = {"minReplicas": 1, "maxReplicas": one["spec"]["replicas"] + _one_of(draw, 0, 1)}
            target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
            found.append(
                _object("autoscaling/v2", "HorizontalPodAutoscaler", name, {**bounds, "scaleTargetRef": target})
            )
        if _chance(draw, 8):
            budget = {"minAvailable": 1, "selector": _about(name)}
            found.append(_object("policy/v1", "PodDisruptionBudget", name, budget))
    return found

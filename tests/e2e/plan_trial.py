"""Applies a case to a cluster, and compares what becomes of it with the capacity plan.

What is compared, once all that always runs is there and again once everything is:

* The plan says that all fits: every pod is bound.
* It says how many pods wait: as many have no node, for each priority in each group of pods that compete.
* It says that pods have no place at all: none of them is ever bound.
* A DaemonSet has as many pods as the plan counts.
* An update ends, unless the plan says that it waits.

The plan is exact and kube-scheduler is not: it puts one pod after the other on a node and never moves one. So where
pods that compete differ in what they ask for, in the nodes that take them, or have rules for one another, what runs in
the end depends on the order in which pods come and on nodes that score the same. Only there is a difference accepted,
and only if the scheduler itself takes the placement of the plan, pod by pod:

* ``greedy``: the plan has a place for all, and the scheduler leaves some Pending.
* ``order``: some wait by the plan and in the cluster, but not equally many.
* ``update``: the plan has a place for the new pods of an update, and none is left as the old ones stand.

Besides, the plan takes pods of a DaemonSet as staying, and the scheduler evicts them for pods of a higher priority:

* ``evicted daemon``: so others run than the plan says.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cluster import ApiError, Cluster, Found, condition, eventually, is_bound, is_unschedulable
from gpu_constructs.capacity.plan import Plan
from gpu_constructs.capacity.planned import PlannedConsumer
from kubelet import Kubelets, Node, nodes_of
from limits import enforce
from plan_cases import DEPLOYED, Case, Manifest, ends

_NAMESPACE = "default"
_VERSIONS = {
    "Deployment": "apps/v1",
    "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1",
    "ReplicaSet": "apps/v1",
    "Job": "batch/v1",
    "Pod": "v1",
}
_OTHERS = (
    ("autoscaling/v2", "HorizontalPodAutoscaler"),
    ("policy/v1", "PodDisruptionBudget"),
    ("v1", "ResourceQuota"),
    ("v1", "LimitRange"),
)
# What a condition of the plan says about the cluster, and what is so in the clusters of these tests.
_TRUE_HERE = "the inventory lists all nodes"
_OF_ORDER = "which does not plan ahead"
_CALM, _CALM_WHERE_PODS_LACK, _CALM_BEFORE_A_VERDICT = 0.3, 1.2, 5
"""Seconds without a change after which a cluster has settled."""


class Disagreement(AssertionError):
    """What the plan says is not what happens."""


@dataclass(frozen=True)
class Seen:
    """The pods of a cluster that has settled, by the name of the object that made them.

    Attributes:
        bound: Those with a node that did not refuse them.
        pending: Those without a node.
        nodes: Names of the nodes of those that are bound.
        stuck: Objects whose update has not ended.
    """

    bound: Mapping[str, int]
    pending: Mapping[str, int]
    nodes: Mapping[str, Sequence[str]]
    stuck: frozenset[str]


@dataclass
class Outcome:
    """What a case has shown.

    Attributes:
        answers: How often the plan gave which answer.
        differences: How often an intended difference was seen, by its class.
        bound: Pods with a node in the end.
        update: Whether the update ``waits`` or ``ends``; empty without one.
    """

    answers: Counter[str] = field(default_factory=Counter)
    differences: Counter[str] = field(default_factory=Counter)
    bound: Mapping[str, int] = field(default_factory=dict)
    update: str = ""


class Trial:
    """Runs cases one after the other in the same cluster."""

    def __init__(self, cluster: Cluster, kubelets: Kubelets) -> None:
        self._cluster, self._kubelets = cluster, kubelets

    def run(self, case: Case) -> Outcome:
        """Apply a case, compare, and delete it.

        Raises:
            Disagreement: The plan is wrong.
        """
        outcome = Outcome()
        try:
            self._run(case, outcome)
        finally:
            self.clear()
        return outcome

    def _run(self, case: Case, outcome: Outcome) -> None:
        lasting, everything = case.stages()
        nodes = nodes_of(each.offer for each in _first_of_pools(case.plan(everything)))
        plan = case.plan(lasting)
        self._prepare(nodes, lasting)
        self._apply(lasting, case)
        self._compare(plan, lasting, nodes, outcome)
        if case.update and plan.always_fits in ("yes", "conditional") and not outcome.differences:
            self._update(case, plan, lasting, outcome)
            # What comes later must not take the update back.
            for one in everything:
                if one["kind"] in DEPLOYED and one["metadata"]["name"] == case.update:
                    _set_new_image(one)
        # The pods of an update that waits are in the way of others.
        if len(everything) > len(lasting) and not outcome.differences and outcome.update != "waits":
            self._apply(everything, case)
            self._compare(case.plan(everything), everything, nodes, outcome)

    # --- in the cluster ---------------------------------------------------------------------------------------

    def clear(self) -> None:
        """Delete all that cases leave."""
        end = time.monotonic() + 120
        for api_version, kind in _OTHERS:
            self._cluster.delete_all(api_version, kind, _NAMESPACE)
        while any(left := [self._cluster.list(version, kind, _NAMESPACE) for kind, version in _VERSIONS.items()]):
            if time.monotonic() > end:
                raise TimeoutError(f"not deleted after 120 s: {left}")
            for found, (kind, version) in zip(left, _VERSIONS.items(), strict=True):
                for pod in found if kind == "Pod" else ():
                    if pod["metadata"].get("finalizers"):
                        self._release(pod)
                if found:
                    self._cluster.delete_all(version, kind, _NAMESPACE)
            time.sleep(0.03)
        self._cluster.delete_all("v1", "Node")
        self._kubelets.forget()
        for one in self._cluster.list("scheduling.k8s.io/v1", "PriorityClass"):
            if not one["metadata"]["name"].startswith("system-"):
                self._cluster.delete(one)

    def _release(self, pod: Found) -> None:
        """Take the finalizer off that a Job puts on its pods."""
        try:
            self._cluster.patch(pod, {"metadata": {"finalizers": None}})
        except ApiError as error:
            if error.status != 404:
                raise

    def _prepare(self, nodes: Sequence[Node], manifests: Sequence[Manifest]) -> None:
        self._kubelets.register(*nodes)
        eventually(self._nodes_are_ready, "every node is ready", every=0.03)
        enforce(self._cluster, [one for one in manifests if one["kind"] not in _VERSIONS])

    def _nodes_are_ready(self) -> bool:
        found = self._cluster.list("v1", "Node")
        ours = [taint["key"] for node in found for taint in node["spec"].get("taints", ())]
        return not any(key.startswith("node.kubernetes.io/") for key in ours)

    def _apply(self, manifests: Sequence[Manifest], case: Case) -> None:
        """Apply what makes pods: what every node gets first, as the plan takes it, and in the end what ends."""
        those = [one for one in manifests if one["kind"] in _VERSIONS]
        for wave in (
            [one for one in those if one["kind"] == "DaemonSet"],
            [one for one in those if one["kind"] != "DaemonSet" and not ends(one)],
            [one for one in those if ends(one)],
        ):
            for one in wave:
                self._make(one)
                if case.one_by_one:
                    self.settled()
            if wave and wave[0]["kind"] == "DaemonSet" and len(wave) < len(those):
                self.settled()
        self._cluster.apply(*[one for one in manifests if one["kind"] == "HorizontalPodAutoscaler"])

    def _make(self, manifest: Manifest) -> None:
        """Apply an object; a pod over a quota or a limit is refused at once, as its controller would report later."""

        def is_judged() -> bool:
            try:
                self._cluster.apply(manifest)
            except ApiError as error:
                if manifest["kind"] != "Pod" or error.status != 403:
                    raise
                # Admission learns of a priority class a moment after it was stored.
                return "no PriorityClass with name" not in error.message
            return True

        eventually(is_judged, f"{manifest['metadata']['name']} is judged")

    def settled(self, calm: float = _CALM) -> Seen:
        """Wait until nothing changes, and return what is there then."""
        end, since, last = time.monotonic() + 120, time.monotonic(), object()
        while True:
            state = _State({kind: self._cluster.list(version, kind, _NAMESPACE) for kind, version in _VERSIONS.items()})
            now = time.monotonic()
            if state.key != last or state.moves:
                since, last = now, state.key
            if now - since >= (max(calm, _CALM_WHERE_PODS_LACK) if state.lacks else calm):
                return state.seen()
            if now > end:
                raise TimeoutError(f"still not settled after 120 s: {state.moves or 'it changes'}")
            time.sleep(0.1)

    # --- what is compared -------------------------------------------------------------------------------------

    def _compare(self, plan: Plan, manifests: Sequence[Manifest], nodes: Sequence[Node], outcome: Outcome) -> None:
        """Compare a plan with what is there. Wait longer before something counts as a difference."""
        verdict = Verdict(plan, manifests)
        outcome.answers[verdict.answer] += 1
        seen = self.settled()
        found = [*verdict.differences(seen)]
        if found:
            seen = self.settled(_CALM_BEFORE_A_VERDICT)
            found = [*verdict.differences(seen)]
        outcome.bound = seen.bound
        wrong = [text for kind, text in found if not kind]
        if wrong:
            raise Disagreement("; ".join(wrong) + f" ({seen})")
        if found:
            refused = self._replay(plan, manifests, nodes)
            if refused:
                shown = "; ".join(text for _, text in found)
                raise Disagreement(f"{shown}; and the scheduler does not take the plan's placement: {refused} ({seen})")
            outcome.differences.update({kind for kind, _ in found})

    def _update(self, case: Case, plan: Plan, manifests: Sequence[Manifest], outcome: Outcome) -> None:
        index, one = next(
            (index, each)
            for index, each in enumerate(manifests)
            if each["kind"] in DEPLOYED and each["metadata"]["name"] == case.update
        )
        waits = [one for one in plan.problems if one.kind == "rollout" and one.subject == index]
        _set_new_image(one)
        self._cluster.apply(one)
        seen = self.settled()
        if (case.update in seen.stuck) != bool(waits):
            seen = self.settled(_CALM_BEFORE_A_VERDICT)
        is_stuck = case.update in seen.stuck
        outcome.bound, outcome.update = seen.bound, "waits" if is_stuck else "ends"
        outcome.answers[f"update {outcome.update}"] += 1
        if is_stuck == bool(waits):
            return
        if waits or _is_determined(_group_of(case.update, _groups(plan))):
            raise Disagreement(
                f"the update of {case.update} {'waits' if is_stuck else 'ends'}, and the plan says "
                f"{waits[0].text if waits else 'nothing of it'} ({seen})"
            )
        outcome.differences["update"] += 1

    def _replay(self, plan: Plan, manifests: Sequence[Manifest], nodes: Sequence[Node]) -> list[str]:
        """Have the scheduler place each pod where the plan has it, and return those that it does not place there.

        A node offers no more than its pods take and the next one asks for, so that this pod can go nowhere else.
        """
        self.clear()
        around = [one for one in manifests if one["kind"] not in _VERSIONS]
        self._prepare(nodes, [one for one in around if one["kind"] != "HorizontalPodAutoscaler"])
        self._cluster.apply(*[one for one in manifests if one["kind"] == "DaemonSet"])
        daemons = self.settled().nodes
        asks = {one.consumer.name: one.consumer.asks for one in plan.consumers}
        held = {node.name: Counter[str]() for node in nodes}
        for name, places in daemons.items():
            for place in places:
                held[place].update(asks.get(name, {}))
        known = {node.name: node for node in nodes}
        for node in nodes:
            self._kubelets.update(replace(node, devices={**dict.fromkeys(node.devices, 0), **held[node.name]}))
        by_name = {one["metadata"]["name"]: one for one in manifests if one["kind"] in _VERSIONS}
        left = [(node, name) for node, name in _placement(plan) if by_name[name]["kind"] != "DaemonSet"]
        is_moving = True
        while left and is_moving:
            is_moving = False
            for number, (node, name) in enumerate([*left]):
                wanted = {**dict.fromkeys(known[node].devices, 0), **(held[node] + Counter(asks[name]))}
                self._kubelets.update(replace(known[node], devices=wanted))
                pod = _pod_of(by_name[name], f"{name}-replay-{len(left)}-{number}")
                if self._is_placed(pod):
                    held[node].update(asks[name])
                    left.remove((node, name))
                    is_moving = True
                else:
                    self._cluster.delete(pod)
                    now = {**dict.fromkeys(known[node].devices, 0), **held[node]}
                    self._kubelets.update(replace(known[node], devices=now))
        return [f"{name} on {node}" for node, name in left]

    def _is_placed(self, pod: Manifest) -> bool:
        self._cluster.create(pod)
        name, end = pod["metadata"]["name"], time.monotonic() + 3
        while True:
            found = self._cluster.get("v1", "Pod", name, _NAMESPACE)
            if is_bound(found):
                return True
            # It may have been tried before the scheduler knew what the node offers, and is tried again after a second.
            if is_unschedulable(found) and time.monotonic() > end:
                return False
            time.sleep(0.02)


def _set_new_image(workload: Manifest) -> None:
    for container in workload["spec"]["template"]["spec"]["containers"]:
        container["image"] = "e2e.invalid/two"


class Verdict:
    """What a plan says about the pods of a cluster that has settled."""

    def __init__(self, plan: Plan, manifests: Sequence[Manifest]) -> None:
        self._plan = plan
        self._kinds = {one["metadata"]["name"]: one["kind"] for one in manifests if one["kind"] in _VERSIONS}
        self._never = {
            each.consumer.name
            for each in plan.consumers
            for problem in plan.problems
            if problem.subject == each.consumer.subject
            and not each.consumer.is_for_each_node
            and (problem.kind == "placement" or (problem.kind == "slots" and ends(manifests[each.consumer.subject])))
        }
        # By intention the plan refuses one for which no node is meant, though no pod of it waits.
        self._has_empty_daemon_set = any(
            each.consumer.is_for_each_node and each.placed + each.waiting == 0 for each in plan.consumers
        )
        self._has_one_quota = any(one["kind"] == "ResourceQuota" for one in manifests)

    @property
    def answer(self) -> str:
        """Whether all fits, where conditions are true that hold in the clusters of these tests."""
        answer = self._plan.all_fits
        if self._is_open and answer == "no":
            return "no, under conditions"
        if self._is_open or answer != "conditional":
            return answer
        return "by order" if self._conditions else "yes"

    @property
    def _conditions(self) -> list[str]:
        return [one.what for one in self._plan.conditions if _TRUE_HERE not in one.what]

    @property
    def _is_open(self) -> bool:
        """Whether the plan rests on something else than the order of pods."""
        return any(_OF_ORDER not in what for what in self._conditions)

    def differences(self, seen: Seen) -> Iterator[tuple[str, str]]:
        """Yield each difference with the class of it; an empty one where the plan is wrong."""
        for each in self._plan.consumers:
            name = each.consumer.name
            if name in self._never and seen.bound.get(name):
                yield "", f"{name} never runs by the plan, and {seen.bound[name]} of its pods are bound"
            made = seen.bound.get(name, 0) + seen.pending.get(name, 0)
            is_limited = self._has_one_quota or each.consumer.refused
            if self._kinds[name] == "DaemonSet" and made != each.placed + each.waiting and not is_limited:
                yield "", f"{name} has {made} pods, and by the plan {each.placed + each.waiting}"
        waiting = {each.consumer.name: self._waiting(each, seen) for each in self._plan.consumers}
        answer = self.answer
        if answer.startswith("no") and not any(waiting.values()) and not self._has_empty_daemon_set:
            yield "", "not all fits by the plan, and every pod is bound"
        if self._is_open:
            return
        for group in _groups(self._plan, together=self._has_one_quota):
            yield from self._of_group(group, waiting, answer)

    def _of_group(
        self, group: Sequence[PlannedConsumer], waiting: Mapping[str, int], answer: str
    ) -> Iterator[tuple[str, str]]:
        planned, real = Counter[int](), Counter[int]()
        for each in group:
            planned[each.consumer.priority] += each.waiting if answer not in ("yes", "by order") else 0
            real[each.consumer.priority] += waiting[each.consumer.name]
        if {key: n for key, n in planned.items() if n} == {key: n for key, n in real.items() if n}:
            return
        who = ", ".join(each.consumer.name for each in group)
        text = f"of {who} {dict(real)} pods wait by priority, and by the plan {dict(planned)}"
        is_greedy = not sum(planned.values())
        if _evicts_daemons(group):
            yield "evicted daemon", text
        elif _is_determined(group) and answer != "undecided":
            yield "", text
        elif is_greedy:
            yield "by order" if answer == "by order" else "greedy", text
        else:
            yield "order", text

    def _waiting(self, each: PlannedConsumer, seen: Seen) -> int:
        return each.placed + each.waiting - seen.bound.get(each.consumer.name, 0)


def _first_of_pools(plan: Plan) -> list:
    return [each for each in plan.nodes if each.first == 0]


def _placement(plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield the node and the name of the object of each pod that has a place by the plan."""
    for each in plan.nodes:
        pods = Counter[int]()
        for planned in each.devices:
            for seat in planned.seats:
                asks = plan.consumers[seat.consumer].consumer.asks
                if planned.device.resource == min(asks):
                    pods[seat.consumer] += seat.slots
        for number in range(each.first, each.first + each.count):
            name = each.offer.name if each.offer.count == 1 else f"{each.offer.name}-{number + 1}"
            for index, slots in pods.items():
                one = plan.consumers[index].consumer
                yield from [(name, one.name)] * (slots // one.asks[min(one.asks)])


def _groups(plan: Plan, *, together: bool = False) -> list[list[PlannedConsumer]]:
    """Return consumers that compete: for a resource of a node, or for a quota."""
    groups: list[tuple[set[object], list[PlannedConsumer]]] = []
    for each in plan.consumers:
        keys: set[object] = {(node, resource) for node in each.nodes for resource in each.consumer.asks}
        keys |= {"quota"} if together else set()
        # A rule for other pods ties them together, too.
        keys |= {("app", value) for value in _meant_by(each)}
        members = [each]
        for group in [one for one in groups if one[0] & keys]:
            groups.remove(group)
            keys |= group[0]
            members = [*group[1], *members]
        groups.append((keys, members))
    return [members for _, members in groups]


def _group_of(name: str, groups: Iterable[Sequence[PlannedConsumer]]) -> Sequence[PlannedConsumer]:
    return next(group for group in groups if any(each.consumer.name == name for each in group))


def _meant_by(each: PlannedConsumer) -> set[str]:
    """Return the names of the objects whose pods a consumer has rules for, and its own where it has some."""
    spec, found = each.consumer.pod_spec, set()
    affinity = spec.get("affinity", {})
    terms = [
        term
        for kind in ("podAffinity", "podAntiAffinity")
        for term in affinity.get(kind, {}).get("requiredDuringSchedulingIgnoredDuringExecution", ())
    ]
    for term in (*terms, *spec.get("topologySpreadConstraints", ())):
        found |= {term["labelSelector"]["matchLabels"]["app"]}
    return {each.consumer.name, *found}


def _is_determined(group: Sequence[PlannedConsumer]) -> bool:
    """Check whether the number of pods that wait hangs on no order: all are alike and have no rules for one another."""
    others = [each for each in group if not each.consumer.is_for_each_node]
    sorts = {(tuple(sorted(each.consumer.asks.items())), tuple(each.nodes)) for each in others}
    return len(sorts) <= 1 and all(_meant_by(each) == {each.consumer.name} and not _rules(each) for each in group)


def _evicts_daemons(group: Sequence[PlannedConsumer]) -> bool:
    daemons = [each.consumer.priority for each in group if each.consumer.is_for_each_node]
    others = [each.consumer.priority for each in group if each.consumer.preempts]
    return bool(daemons) and max(others, default=min(daemons)) > min(daemons)


def _rules(each: PlannedConsumer) -> bool:
    spec = each.consumer.pod_spec
    return bool({"podAffinity", "podAntiAffinity"} & set(spec.get("affinity", {}))) or bool(
        spec.get("topologySpreadConstraints")
    )


def _pod_of(manifest: Manifest, name: str) -> Manifest:
    if manifest["kind"] == "Pod":
        return {**manifest, "metadata": {**manifest["metadata"], "name": name}}
    template = manifest["spec"]["template"]
    metadata = {"name": name, "namespace": _NAMESPACE, "labels": template["metadata"]["labels"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


class _State:
    """All objects of a moment."""

    def __init__(self, objects: Mapping[str, Sequence[Found]]) -> None:
        self._objects = objects
        self._pods = objects["Pod"]
        self.key = sorted(
            (pod["metadata"]["uid"], pod["spec"].get("nodeName", ""), pod["status"]["phase"]) for pod in self._pods
        )
        self.moves = next(self._moving(), "")
        self.lacks = any(self._lacking())

    def _moving(self) -> Iterator[str]:
        for pod in self._pods:
            name = pod["metadata"]["name"]
            if "deletionTimestamp" in pod["metadata"]:
                yield f"{name} is being deleted"
            elif not is_bound(pod) and not is_unschedulable(pod):
                yield f"{name} has not been tried"
            elif is_bound(pod) and pod["status"]["phase"] == "Pending":
                yield f"{name} has not been admitted"
        for kind in (*DEPLOYED, "ReplicaSet"):
            for one in self._objects[kind]:
                if one.get("status", {}).get("observedGeneration") != one["metadata"].get("generation"):
                    yield f"{one['metadata']['name']} has not been observed"

    def _lacking(self) -> Iterator[bool]:
        """Yield whether something is about to come that nothing shows yet, as a retry."""
        of = Counter(_owner(pod) for pod in self._pods)
        for kind in ("ReplicaSet", "StatefulSet"):
            for one in self._objects[kind]:
                yield of[one["metadata"]["uid"]] != one["spec"]["replicas"]
        for one in self._objects["Deployment"]:
            status = one.get("status", {})
            yield status.get("updatedReplicas", 0) != one["spec"]["replicas"]
            yield status.get("replicas", 0) != one["spec"]["replicas"]
        for one in self._objects["DaemonSet"]:
            status = one.get("status", {})
            yield of[one["metadata"]["uid"]] != status.get("desiredNumberScheduled", 0)
            yield status.get("updatedNumberScheduled", 0) != status.get("desiredNumberScheduled", 0)
        for one in self._objects["Job"]:
            spec = one["spec"]
            wanted = min(spec["parallelism"], spec.get("completions", spec["parallelism"]))
            yield of[one["metadata"]["uid"]] != (0 if spec.get("suspend") else wanted)
        yield any(pod["status"].get("nominatedNodeName") and not is_bound(pod) for pod in self._pods)

    def seen(self) -> Seen:
        bound, pending, nodes = Counter[str](), Counter[str](), dict[str, list[str]]()
        for pod in self._pods:
            name = pod["metadata"].get("labels", {}).get("app", pod["metadata"]["name"])
            if pod["status"]["phase"] == "Failed":
                continue
            if is_bound(pod):
                bound[name] += 1
                nodes.setdefault(name, []).append(pod["spec"]["nodeName"])
            else:
                pending[name] += 1
        stuck = {
            one["metadata"]["name"] for kind in DEPLOYED for one in self._objects[kind] if not _is_updated(one, kind)
        }
        return Seen(bound, pending, nodes, frozenset(stuck))


def _owner(pod: Found) -> str:
    return next((str(one["uid"]) for one in pod["metadata"].get("ownerReferences", ()) if one.get("controller")), "")


def _is_updated(one: Found, kind: str) -> bool:
    status = one.get("status", {})
    if kind == "DaemonSet":
        wanted = status.get("desiredNumberScheduled", 0)
        return status.get("updatedNumberScheduled", 0) == wanted == status.get("numberAvailable", 0)
    wanted = one["spec"]["replicas"]
    numbers = [status.get(key, 0) for key in ("updatedReplicas", "replicas", "availableReplicas")]
    return numbers == [wanted] * 3 and condition(one, "ReplicaFailure").get("status") != "True"

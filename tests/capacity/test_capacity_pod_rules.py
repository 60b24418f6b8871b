"""Rules between pods, by which kube-scheduler filters nodes. tables/plans.yaml has examples."""

from random import Random

from hypothesis import assume, given
from hypothesis import strategies as st

from app_tables import objects
from depth import at_depth
from gpu_constructs.capacity.planner import plan_capacity
from gpu_constructs.catalog.inventory import GpuInventory, GpuNode

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def node(name, gpus=1, zone=None, count=1, **given):
    labels = {"gpu": "yes", **({ZONE: zone} if zone else {})}
    return GpuNode(name=name, vram="24Gi", gpus=gpus, count=count, labels=labels, **given)


def spread(key=HOST, app="a", **given):
    constraint = {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": app}},
    }
    return {"topologySpreadConstraints": [{**constraint, **given}]}


def term(app, key=HOST, **given):
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **given}


def away(*terms):
    return {"affinity": {"podAntiAffinity": {REQUIRED: list(terms)}}}


def near(*terms):
    return {"affinity": {"podAffinity": {REQUIRED: list(terms)}}}


def pods(name="a", replicas=1, **spec):
    pod = {"containers": [{"limits": {"nvidia.com/gpu": 1}}], "nodeSelector": {"gpu": "yes"}, **spec}
    kind = {"kind": "Deployment", "spec": {"replicas": replicas, "strategy": {"type": "Recreate"}}}
    (made,) = objects([{**kind, "name": name, "pod_metadata": {"labels": {"app": name}}, "pod": pod}], "ml")
    return made


def planned(nodes, *manifests):
    return plan_capacity(list(manifests), GpuInventory(nodes=nodes))


def waiting(plan):
    return {one.consumer.name: one.waiting for one in plan.consumers if one.waiting}


def test_a_search_that_gives_up_is_a_condition(monkeypatch):
    monkeypatch.setattr("gpu_constructs.capacity.pod_rules_search._MOST_STATES", -1)
    plan = planned([node("x"), node("y")], pods("a", **away(term("b"))), pods("b", 1, **away(term("a"))))
    assert (plan.all_fits, "the search gave up" in plan.conditions[0].text) == ("conditional", True)


def test_rules_of_a_fleet_are_a_condition(monkeypatch):
    for limit in ["_MOST_PAIRS", "_MOST_WORK"]:
        monkeypatch.setattr(f"gpu_constructs.capacity.pod_rules_search.{limit}", 0)
        plan = planned([node("x", 4), node("y", 1)], pods("a", 4, **spread()))
        assert (plan.all_fits, plan.problems, waiting(plan)) == ("conditional", [], {})


def test_domains_that_are_too_small_need_no_search(monkeypatch):
    monkeypatch.setattr("gpu_constructs.capacity.pod_rules_search._MOST_STATES", 0)
    plan = planned([node("x", 8, "u", count=10), node("y", 8, "v", count=2)], pods("a", 60, **spread(ZONE)))
    assert (plan.all_fits, plan.conditions, waiting(plan)) == ("no", [], {"a": 27})


# Against a scheduler that tries every order


def labels_of(at, node):
    return {HOST: f"{node.name}-{at}", **node.labels}


def in_domain(placed, hosts, at, key, app):
    """Count pods of an app on nodes that have the value of a node's label."""
    value = hosts[at].get(key)
    return sum(count for (name, on), count in placed.items() if name == app and hosts[on].get(key) == value)


def admits(placed, hosts, rules, name, at):
    for owner, kind, key, app in rules:
        if kind == "away":
            met = (owner == name and in_domain(placed, hosts, at, key, app)) or (
                app == name and in_domain(placed, hosts, at, key, owner)
            )
            if key in hosts[at] and met:
                return False
        if kind == "near" and owner == name:
            anywhere = any(count for (other, _), count in placed.items() if other == app)
            if key not in hosts[at] or not (in_domain(placed, hosts, at, key, app) or (app == name and not anywhere)):
                return False
        if kind == "spread" and owner == name:
            if key not in hosts[at]:
                return False
            least = min(in_domain(placed, hosts, on, key, app) for on, labels in enumerate(hosts) if key in labels)
            if in_domain(placed, hosts, at, key, app) + (app == name) - least > 1:
                return False
    return True


def most_that_run(nodes, replicas, rules):
    hosts = [labels_of(at, node) for at, node in enumerate(nodes)]
    seen, queue, most = {frozenset()}, [{}], 0
    while queue:
        placed = queue.pop()
        most = max(most, sum(placed.values()))
        for name, wanted in replicas.items():
            if sum(count for (other, _), count in placed.items() if other == name) < wanted:
                for at, node in enumerate(nodes):
                    used = sum(count for (_, on), count in placed.items() if on == at)
                    if used < node.gpus and admits(placed, hosts, rules, name, at):
                        more = {**placed, (name, at): placed.get((name, at), 0) + 1}
                        if frozenset(more.items()) not in seen:
                            seen.add(frozenset(more.items()))
                            queue.append(more)
    return most


def with_rules(name, replicas, rules):
    spec = {}
    for owner, kind, key, app in rules:
        if owner == name:
            made = {"away": away(term(app, key)), "near": near(term(app, key)), "spread": spread(key, app)}[kind]
            spec = {**spec, **made, "affinity": {**spec.get("affinity", {}), **made.get("affinity", {})}}
    return pods(name, replicas, **spec)


def drawn(random):
    """Return nodes, replicas and rules, of which at least one has an effect."""
    nodes = [node(f"n{at}", random.randint(1, 3), random.choice("uv")) for at in range(random.randint(2, 3))]
    replicas = {name: random.randint(1, 4) for name in "abc" if random.random() < 0.6}
    rules = {}
    for owner in random.choices(sorted(replicas), k=random.randint(1, 3)) if replicas else ():
        kind = random.choice(["away", "near", "spread", "spread"])
        rules[owner, kind] = (owner, kind, random.choice([HOST, ZONE]), random.choice([*replicas, owner]))
    return nodes, replicas, list(rules.values())


@at_depth(900, quick=60)
@given(st.integers(0, 10**9))
def test_running_pods_match_some_order_of_scheduling(seed):
    nodes, replicas, rules = drawn(Random(seed))
    wanted = sum(replicas.values())
    assume(rules and sum(one.gpus for one in nodes) >= wanted)
    plan = planned(nodes, *(with_rules(name, count, rules) for name, count in replicas.items()))
    most = most_that_run(nodes, replicas, rules)
    found = plan.always_fits, sum(waiting(plan).values())
    assert found == ("yes" if most == wanted else "no", wanted - most), (nodes, replicas, rules)

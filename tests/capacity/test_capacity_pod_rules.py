"""Hard topology spread and required affinities between pods, as kube-scheduler filters nodes by them."""

from random import Random

from hypothesis import assume, given
from hypothesis import strategies as st

from capacity_manifests import gpu, manifest, template
from depth import at_depth
from gpu_constructs import Taint
from gpu_constructs.capacity.planner import plan_capacity
from gpu_constructs.catalog.inventory import GpuInventory, GpuNode

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
ON_GPUS = {"nodeSelector": {"gpu": "yes"}}


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


def pods(name="a", replicas=1, gpus=1, kind="apps/v1 Deployment", strategy=None, **spec):
    containers = [gpu(gpus)] if gpus else [{"name": "main"}]
    made = template(*containers, labels={"app": name}, **{**ON_GPUS, **spec})
    return manifest(
        kind,
        {"replicas": replicas, "parallelism": replicas, "strategy": strategy or {"type": "Recreate"}, "template": made},
        name,
    )


def planned(nodes, *manifests):
    return plan_capacity(list(manifests), GpuInventory(nodes=nodes))


def waiting(plan):
    return {one.consumer.name: one.waiting for one in plan.consumers if one.waiting}


def test_rules_between_pods_decide_what_has_a_place():
    for nodes, manifests, expected, _what in [
        ([node("x", 4), node("y", 1)], [pods("a", 4, **spread())], {"a": 1}, "a full domain"),
        ([node("x", 4), node("y", 1)], [pods("a", 4, **spread(maxSkew=2))], {}, "a larger skew"),
        ([node("x", 4), node("y", 1)], [pods("a", 4, **spread(whenUnsatisfiable="ScheduleAnyway"))], {}, "soft"),
        ([node("x", 4)], [pods("a", 4, **spread())], {}, "one domain"),
        ([node("x", 4)], [pods("a", 4, **spread(minDomains=2))], {"a": 3}, "fewer domains than wanted"),
        ([node("x", 2, "u"), node("y", 2, "u"), node("z", 1, "v")], [pods("a", 4, **spread(ZONE))], {"a": 1}, "zones"),
        ([node("x", 2), node("y", 2)], [pods("a", 4, **spread(app="other"))], {}, "counts no pods"),
        ([node("p", 2, count=3)], [pods("a", 6, **spread())], {}, "a pool"),
        (
            [node("x"), node("y", taints=[Taint(key="k")])],
            [pods("a", 1, **spread()), pods("b", 0)],
            {},
            "a tainted node is an empty domain",
        ),
        (
            [node("x", 2), node("y", 2, taints=[Taint(key="k")])],
            [pods("a", 2, **spread())],
            {"a": 1},
            "a tainted node stays an empty domain",
        ),
        (
            [node("x", 2), node("y", 2, taints=[Taint(key="k")])],
            [pods("a", 2, **spread(nodeTaintsPolicy="Honor"))],
            {},
            "taints that count",
        ),
        ([node("x", 2)], [pods("a"), pods("b", **away(term("a")))], {"b": 1}, "away from others"),
        ([node("x", 2)], [pods("a", **away(term("b"))), pods("b")], {"b": 1}, "others stay away"),
        ([node("x", 2), node("y")], [pods("a"), pods("b", **away(term("a")))], {}, "a node each"),
        ([node("x", 2), node("y", 2)], [pods("a", 2, **away(term("b"))), pods("b", 2)], {}, "together where they must"),
        ([node("x", 1, "u"), node("y", 1, "u")], [pods("a", 2, **away(term("a", ZONE)))], {"a": 1}, "a zone each"),
        ([node("x"), node("y", 2)], [pods("a"), pods("b", **near(term("a")))], {}, "near others"),
        ([node("x"), node("y")], [pods("a"), pods("b", **near(term("a")))], {"b": 1}, "no room near"),
        ([node("x", 2), node("y", 2)], [pods("a", 3, **near(term("a")))], {"a": 1}, "near its own"),
        ([node("x", 2)], [pods("a", **near(term("b"))), pods("b", **near(term("a")))], {"a": 1, "b": 1}, "a circle"),
        (
            [node("x", 1, "u"), node("y", 1, "v"), node("z", 1, "v")],
            [pods("a"), pods("b", **near(term("a", ZONE)))],
            {},
            "near by zone",
        ),
    ]:
        plan = planned(nodes, *manifests)
        assert plan.conditions == []
        assert waiting(plan) == expected
        assert (plan.always_fits, plan.all_fits) == (("no", "no") if expected else ("yes", "yes"))
        assert [problem.kind for problem in plan.problems] == (["slots"] if expected else [])
        assert all("there are GPUs enough, but topologySpreadConstraints" in one.text for one in plan.problems)


def test_work_that_finds_no_place_at_once_waits():
    plan = planned([node("x", 4), node("y", 1)], pods("a", 4, kind="batch/v1 Job", **spread()))
    assert (plan.always_fits, plan.all_fits, waiting(plan)) == ("yes", "no", {"a": 1})
    assert [problem.kind for problem in plan.problems] == ["waiting"]


def test_work_that_what_always_runs_keeps_off_never_starts():
    plan = planned([node("x", 2)], pods("a", **away(term("j"))), pods("j", kind="batch/v1 Job"))
    assert "it would never start" in plan.problems[0].text


def test_work_starts_beside_other_work_that_it_must_be_near():
    launcher, worker = pods("l", kind="batch/v1 Job"), pods("w", kind="batch/v1 Job", **near(term("l")))
    plan = planned([node("x", 2)], launcher, worker)
    assert (plan.problems, plan.all_fits) == ([], "yes")


def test_an_update_that_rules_leave_no_place_waits_for_ever():
    surge = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    plan = planned([node("x", 2, "u")], pods("a", strategy=surge, **away(term("a", ZONE))))
    assert [problem.kind for problem in plan.problems] == ["rollout"]


def test_what_cannot_be_placed_beside_others_is_a_condition():
    for nodes, manifests, condition, _what in [
        (
            [node("x", 2)],
            [pods("a", 2, nodeSelector={}, **spread())],
            "has no nodes beside those of the inventory",
            "nodes that are not declared are empty domains",
        ),
        ([node("x", 2)], [pods("a", **spread(ZONE))], f"the label {ZONE}", "a zone nobody declares"),
        ([node("x", 2)], [pods("a", **near(term("z")))], "of which this app has none", "near a stranger"),
        ([node("x", 2)], [pods("a", **near(term("z"))), pods("z", gpus=0)], "Deployment ml/z", "near no GPU"),
        ([node("x", 2)], [pods("a"), pods("z", gpus=0, **away(term("a")))], "Deployment ml/z", "kept off"),
        (
            [node("x", 2)],
            [pods("a", **away(term("b", namespaceSelector={"matchLabels": {"team": "x"}})))],
            "its podAntiAffinity allows",
            "namespaces by label",
        ),
    ]:
        plan = planned(nodes, *manifests)
        assert (plan.problems, plan.all_fits) == ([], "conditional")
        (found,) = plan.conditions
        assert condition in found.text


def test_a_search_that_gives_up_is_a_condition(monkeypatch):
    monkeypatch.setattr("gpu_constructs.capacity.pod_rules_search._MOST_STATES", -1)
    plan = planned([node("x"), node("y")], pods("a", **away(term("b"))), pods("b", 1, **away(term("a"))))
    assert (plan.all_fits, "not all were looked at" in plan.conditions[0].text) == ("conditional", True)


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
    """Return nodes, replicas and rules of which not all are without effect."""
    nodes = [node(f"n{at}", random.randint(1, 3), random.choice("uv")) for at in range(random.randint(2, 3))]
    replicas = {name: random.randint(1, 4) for name in "abc" if random.random() < 0.6}
    rules = {}
    for owner in random.choices(sorted(replicas), k=random.randint(1, 3)) if replicas else ():
        kind = random.choice(["away", "near", "spread", "spread"])
        rules[owner, kind] = (owner, kind, random.choice([HOST, ZONE]), random.choice([*replicas, owner]))
    return nodes, replicas, list(rules.values())


@at_depth(900, quick=60)
@given(st.integers(0, 10**9))
def test_what_runs_is_what_some_order_of_pods_leads_to(seed):
    nodes, replicas, rules = drawn(Random(seed))
    wanted = sum(replicas.values())
    assume(rules and sum(one.gpus for one in nodes) >= wanted)
    plan = planned(nodes, *(with_rules(name, count, rules) for name, count in replicas.items()))
    most = most_that_run(nodes, replicas, rules)
    found = plan.always_fits, sum(waiting(plan).values())
    assert found == ("yes" if most == wanted else "no", wanted - most), (nodes, replicas, rules)

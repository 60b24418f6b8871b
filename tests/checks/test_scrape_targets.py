import pytest

from gpu_constructs.checks.scrape_targets import Target, scrape_targets
from gpu_constructs.facts.app import Facts
from tables import beside

LABELS = {"app": "exporter"}
GROUPS = beside(__file__, "scrape_targets")["groups"]
OF_PODS = ("PodMonitor", "VMPodScrape")


def obj(kind, spec, *, api_version="v1", namespace="gpu", labels=None):
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": "x", "namespace": namespace, "labels": labels or {}},
        "spec": spec,
    }


def pods(*ports, kind="DaemonSet", namespace="gpu", labels=None):
    spec = {"containers": [{"name": "exporter", "ports": list(ports or [METRICS])}]}
    labels = LABELS if labels is None else labels
    if kind == "Pod":
        return obj("Pod", spec, namespace=namespace, labels=labels)
    template = {"metadata": {"labels": labels}, "spec": spec}
    api_version = "batch/v1" if kind == "Job" else "apps/v1"
    return obj(kind, {"template": template}, api_version=api_version, namespace=namespace)


def service(*ports, namespace="gpu", selector=None, labels=None):
    spec = {"ports": list(ports or [{"name": "metrics", "port": 80, "targetPort": "metrics"}])}
    return obj("Service", spec | {"selector": selector or LABELS}, namespace=namespace, labels=labels or LABELS)


def scrape(kind, *endpoints, namespace="gpu", **spec):
    endpoints = list(endpoints) or [{"port": "metrics"}]
    spec = {"selector": {"matchLabels": LABELS}} | spec
    return obj(
        kind,
        spec | {"podMetricsEndpoints" if kind in OF_PODS else "endpoints": endpoints},
        api_version=GROUPS[kind],
        namespace=namespace,
    )


METRICS = {"name": "metrics", "containerPort": 9400}
REACHED = {Target(0, "9400", "/metrics")}


def targets(manifests):
    return scrape_targets(Facts(manifests))


def reached(kind, *endpoints, made=None, behind=None, **given):
    """Return the targets of a scrape object among the pods at index 0 and the Service at index 1."""
    return targets([made or pods(), behind or service(), scrape(kind, *endpoints, **given)])[2]


@pytest.mark.parametrize("kind", list(GROUPS))
def test_a_scrape_object_has_the_targets_that_its_operator_scrapes(kind, rows):
    field, other_place = "relabelConfigs" if kind.startswith("VM") else "relabelings", {"namespace": "monitoring"}
    for given, is_reached in [
        *(({"made": pods(kind=made)}, True) for made in ("DaemonSet", "Deployment", "StatefulSet", "Job", "Pod")),
        ({"made": pods(kind="ReplicaSet")}, True),
        (other_place, False),
        ({**other_place, "namespaceSelector": None}, False),
        ({**other_place, "namespaceSelector": {"matchNames": []}}, False),
        ({**other_place, "namespaceSelector": {"matchNames": ["other"]}}, False),
        ({**other_place, "namespaceSelector": {"matchNames": ["other", "gpu"]}}, True),
        ({**other_place, "namespaceSelector": {"any": True}}, True),
        ({**other_place, "namespaceSelector": {"any": False}}, False),
        ({"selector": {"matchLabels": {"app": "other"}}}, False),
        ({"selector": {"matchLabels": {"app": "exporter", "team": "a"}}}, False),
        # The library does not evaluate selector expressions.
        ({"selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}}, False),
        ({"selector": {"matchLabels": LABELS, "matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}}, False),
        ({"selector": {}}, True),
        ({"selector": {"matchLabels": {}}}, True),
        ({"selector": None}, kind.startswith("VM")),
    ]:
        assert reached(kind, **given) == (REACHED if is_reached else set()), given
    for steps, is_reached in [
        *(([{"action": action, "sourceLabels": ["x"]}], False) for action in ("keep", "drop", "Keep", "DropEqual")),
        ([{"action": "labeldrop", "regex": "x"}], True),
        ([{"targetLabel": "x"}], True),
    ]:
        assert reached(kind, {"port": "metrics", field: steps}) == (REACHED if is_reached else set()), steps
    first, same, other = (reached(kind, {"port": "metrics", "params": {"target": [one]}}) for one in "aab")
    assert first == same
    assert first.isdisjoint(other)
    for (broken,) in rows:
        assert targets([pods(), service(), {**scrape(kind), **broken}])[2] == set(), broken
    bare = [{"apiVersion": "v1", "kind": other} for other in ("Service", "Pod", "DaemonSet", "ConfigMap")]
    assert targets([*bare, scrape(kind)]) == {4: set()}


def test_other_objects_scrape_nothing(rows):
    for api_version, kind in rows:
        made = {**scrape("ServiceMonitor"), "apiVersion": api_version, "kind": kind}
        assert targets([pods(), service(), made]) == {}, (api_version, kind)
    assert targets([scrape("ServiceMonitor"), scrape("PodMonitor"), service()]) == {0: set(), 1: set()}


def test_a_service_has_the_pods_of_its_namespace_that_it_selects():
    without, in_default = service(), scrape("ServiceMonitor")
    del without["spec"]["selector"], in_default["metadata"]["namespace"]
    for behind in [service(selector={"app": "other"}), service(selector={"app": "exporter", "team": "a"}), without]:
        assert reached("ServiceMonitor", behind=behind) == set(), behind
    assert reached("ServiceMonitor", made=pods(namespace="other"), namespaceSelector={"any": True}) == set()
    made, behind = pods(namespace="default"), service(namespace="default")
    assert targets([made, behind, in_default])[2] == REACHED


def test_a_port_is_the_same_by_name_and_by_number():
    for kind in OF_PODS:
        for endpoint in [{"port": "metrics"}, {"portNumber": 9400}, {"targetPort": "metrics"}, {"targetPort": 9400}]:
            assert reached(kind, endpoint) == REACHED, (kind, endpoint)
    web = {"name": "web", "port": 80, "targetPort": "metrics"}
    for kind in ["ServiceMonitor", "VMServiceScrape"]:
        for port, endpoint in [
            ({"name": "metrics", "port": 80, "targetPort": 9400}, {"port": "metrics"}),
            ({"name": "metrics", "port": 9400}, {"port": "metrics"}),
            (web, {"port": "web"}),
            (web, {"targetPort": 9400}),
            (web, {"targetPort": "metrics"}),
        ]:
            assert reached(kind, endpoint, behind=service(port)) == REACHED, (kind, port, endpoint)
    # Both operators prefer the port to the target port.
    endpoint = {"port": "metrics", "targetPort": 1}
    assert reached("ServiceMonitor", endpoint) == reached("PodMonitor", endpoint) == REACHED
    assert reached("ServiceMonitor", {"port": "other", "targetPort": 9400}) == set()
    assert reached("ServiceMonitor", {"port": "web"}) == set()


def test_each_port_and_path_is_a_separate_target():
    made = pods(METRICS, {"name": "more", "containerPort": 9401})
    behind = service(
        {"name": "metrics", "port": 9400},
        {"name": "more", "port": 80, "targetPort": "more"},
        {"name": "web", "port": 1},
    )
    endpoints = [{"port": "metrics"}, {"port": "metrics", "path": "/slow"}, {"port": "more"}]
    assert reached("ServiceMonitor", *endpoints, made=made, behind=behind) == {
        Target(0, "9400", "/metrics"),
        Target(0, "9400", "/slow"),
        Target(0, "9401", "/metrics"),
    }

import pytest

from gpu_constructs.scrape_targets import Target, scrape_targets

LABELS = {"app": "exporter"}
GROUPS = {
    "ServiceMonitor": "monitoring.coreos.com/v1",
    "PodMonitor": "monitoring.coreos.com/v1",
    "VMServiceScrape": "operator.victoriametrics.com/v1beta1",
    "VMPodScrape": "operator.victoriametrics.com/v1beta1",
}
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
    return obj(kind, {"template": template}, api_version="apps/v1", namespace=namespace)


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
EVERY_KIND = pytest.mark.parametrize("kind", list(GROUPS))


def reached(kind, *endpoints, made=None, behind=None, **given):
    """What a scrape object reaches of the pods at 0 and the Service at 1."""
    return scrape_targets([made or pods(), behind or service(), scrape(kind, *endpoints, **given)])[2]


@EVERY_KIND
def test_each_kind_reaches_the_same_port_of_the_same_pods(kind):
    assert reached(kind) == REACHED


@EVERY_KIND
@pytest.mark.parametrize("made", ["DaemonSet", "Deployment", "StatefulSet", "ReplicaSet", "Job", "Pod"])
def test_pods_of_every_kind_are_reached(kind, made):
    assert reached(kind, made=pods(kind=made)) == REACHED


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        ("example.com/v1", "ServiceMonitor"),
        ("monitoring.coreos.com/v1", "VMServiceScrape"),
        ("monitoring.coreos.com/v1", "Prometheus"),
        ("v1", "Service"),
    ],
)
def test_other_objects_scrape_nothing(api_version, kind):
    made = {**scrape("ServiceMonitor"), "apiVersion": api_version, "kind": kind}
    assert scrape_targets([pods(), service(), made]) == {}


def test_what_is_not_in_the_app_is_not_seen():
    assert scrape_targets([scrape("ServiceMonitor"), scrape("PodMonitor"), service()]) == {0: set(), 1: set()}


# Namespaces.


@EVERY_KIND
@pytest.mark.parametrize(
    ("places", "is_reached"),
    [
        ({}, False),
        ({"namespaceSelector": None}, False),
        ({"namespaceSelector": {"matchNames": []}}, False),
        ({"namespaceSelector": {"matchNames": ["other"]}}, False),
        ({"namespaceSelector": {"matchNames": ["other", "gpu"]}}, True),
        ({"namespaceSelector": {"any": True}}, True),
        ({"namespaceSelector": {"any": False}}, False),
    ],
    ids=str,
)
def test_from_another_namespace_it_reaches_those_that_it_names(kind, places, is_reached):
    assert reached(kind, namespace="monitoring", **places) == (REACHED if is_reached else set())


def test_an_object_without_a_namespace_is_in_default():
    made, behind, monitor = pods(namespace="default"), service(namespace="default"), scrape("ServiceMonitor")
    del monitor["metadata"]["namespace"]
    assert scrape_targets([made, behind, monitor])[2] == REACHED


def test_a_service_has_no_pods_in_another_namespace():
    assert reached("ServiceMonitor", made=pods(namespace="other"), namespaceSelector={"any": True}) == set()


# Selectors.


@EVERY_KIND
@pytest.mark.parametrize(
    "selector",
    [
        {"matchLabels": {"app": "other"}},
        {"matchLabels": {"app": "exporter", "team": "a"}},
        {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
        {"matchLabels": LABELS, "matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]},
    ],
    ids=str,
)
def test_a_selector_that_does_not_match_or_is_not_understood_reaches_nothing(kind, selector):
    assert reached(kind, selector=selector) == set()


@EVERY_KIND
@pytest.mark.parametrize("selector", [{}, {"matchLabels": {}}], ids=str)
def test_an_empty_selector_reaches_everything(kind, selector):
    assert reached(kind, selector=selector) == reached(kind)


@EVERY_KIND
def test_a_missing_selector_reaches_everything_where_the_operator_takes_it(kind):
    assert reached(kind, selector=None) == (reached(kind) if kind.startswith("VM") else set())


@pytest.mark.parametrize("selector", [{"app": "other"}, {"app": "exporter", "team": "a"}])
def test_pods_that_the_service_does_not_select_are_not_behind_it(selector):
    assert reached("ServiceMonitor", behind=service(selector=selector)) == set()


def test_a_service_without_a_selector_has_no_pods():
    behind = service()
    del behind["spec"]["selector"]
    assert reached("ServiceMonitor", behind=behind) == set()


# Ports and paths.


@pytest.mark.parametrize("kind", OF_PODS)
@pytest.mark.parametrize(
    "endpoint",
    [{"port": "metrics"}, {"portNumber": 9400}, {"targetPort": "metrics"}, {"targetPort": 9400}],
    ids=str,
)
def test_a_port_of_the_pods_is_the_same_by_name_and_number(kind, endpoint):
    assert reached(kind, endpoint) == REACHED


@pytest.mark.parametrize("kind", ["ServiceMonitor", "VMServiceScrape"])
@pytest.mark.parametrize(
    ("port", "endpoint"),
    [
        ({"name": "metrics", "port": 80, "targetPort": 9400}, {"port": "metrics"}),
        ({"name": "metrics", "port": 9400}, {"port": "metrics"}),
        ({"name": "web", "port": 80, "targetPort": "metrics"}, {"port": "web"}),
        ({"name": "web", "port": 80, "targetPort": "metrics"}, {"targetPort": 9400}),
        ({"name": "web", "port": 80, "targetPort": "metrics"}, {"targetPort": "metrics"}),
    ],
    ids=str,
)
def test_a_port_of_the_service_leads_to_one_of_the_pods(kind, port, endpoint):
    assert reached(kind, endpoint, behind=service(port)) == REACHED


def test_a_port_goes_before_a_target_port_as_for_both_operators():
    endpoint = {"port": "metrics", "targetPort": 1}
    assert reached("ServiceMonitor", endpoint) == reached("PodMonitor", endpoint) == REACHED
    assert reached("ServiceMonitor", {"port": "other", "targetPort": 9400}) == set()


def test_a_port_that_the_service_does_not_have_reaches_nothing():
    assert reached("ServiceMonitor", {"port": "web"}) == set()


def test_each_port_and_path_is_a_target_of_its_own():
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


@EVERY_KIND
def test_the_same_path_with_another_query_is_another_target(kind):
    first = reached(kind, {"port": "metrics", "params": {"target": ["a"]}})
    assert first.isdisjoint(reached(kind, {"port": "metrics", "params": {"target": ["b"]}}))
    assert first == reached(kind, {"port": "metrics", "params": {"target": ["a"]}})


@EVERY_KIND
@pytest.mark.parametrize("action", ["keep", "drop", "Keep", "DropEqual"])
def test_an_endpoint_that_keeps_only_some_targets_is_not_guessed_at(kind, action):
    field = "relabelConfigs" if kind.startswith("VM") else "relabelings"
    assert reached(kind, {"port": "metrics", field: [{"action": action, "sourceLabels": ["x"]}]}) == set()
    assert reached(kind, {"port": "metrics", field: [{"action": "labeldrop", "regex": "x"}]}) == REACHED
    assert reached(kind, {"port": "metrics", field: [{"targetLabel": "x"}]}) == REACHED


@pytest.mark.parametrize("kind", list(GROUPS))
@pytest.mark.parametrize(
    "broken",
    [
        {"spec": None},
        {"spec": {}},
        {"spec": {"endpoints": None, "podMetricsEndpoints": None}},
        {"metadata": None},
    ],
    ids=str,
)
def test_an_object_with_nothing_in_it_reaches_nothing(kind, broken):
    assert scrape_targets([pods(), service(), {**scrape(kind), **broken}])[2] == set()


@EVERY_KIND
def test_other_objects_with_nothing_in_them_are_passed_over(kind):
    bare = [{"apiVersion": "v1", "kind": other} for other in ("Service", "Pod", "DaemonSet", "ConfigMap")]
    assert scrape_targets([*bare, scrape(kind)]) == {4: set()}

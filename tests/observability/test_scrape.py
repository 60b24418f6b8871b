import re

from gpu_constructs.observability.scrape import SCRAPE_KINDS, Relabeling, Scrape, scrape_manifest
from refusals import refusal
from schemas import schema_errors
from tables import beside

METADATA = {"name": "dcgm-exporter", "namespace": "gpu", "labels": {"app.kubernetes.io/part-of": "gpu"}}
KINDS = ["ServiceMonitor", "PodMonitor", "VMServiceScrape", "VMPodScrape"]
SELECTOR = {"app.kubernetes.io/name": "dcgm-exporter", "app.kubernetes.io/instance": "dcgm-exporter"}


def made(kind, *, collect=30, access=None, path="/metrics", port="metrics", **options):
    return scrape_manifest(
        Scrape(kind=kind, **options),
        metadata=METADATA,
        selector_labels=SELECTOR,
        port=port,
        collect_interval_seconds=collect,
        access=access,
        path=path,
    )


def endpoint_of(manifest):
    of_pods = manifest["kind"] in ("PodMonitor", "VMPodScrape")
    (endpoint,) = manifest["spec"]["podMetricsEndpoints" if of_pods else "endpoints"]
    return endpoint


def steps_of(manifest, *, of_metrics=False):
    names = {True: ("relabelConfigs", "metricRelabelConfigs"), False: ("relabelings", "metricRelabelings")}
    return endpoint_of(manifest).get(names[manifest["kind"].startswith("VM")][of_metrics], [])


# Labels after relabeling in Prometheus.


def relabelled(labels, steps):
    """Apply relabeling steps as Prometheus does. Return None for a target or series that they drop."""
    labels = dict(labels)
    for step in steps:
        value = step.get("separator", ";").join(labels.get(name, "") for name in step.get("sourceLabels", []))
        found = re.fullmatch(step.get("regex", "(.*)"), value, re.DOTALL)
        match step["action"]:
            case "replace":
                if found:
                    written = re.sub(r"\$\{?(\w+)\}?", r"\\\1", step.get("replacement", "$1"))
                    labels[step["targetLabel"]] = found.expand(written)
                    if not labels[step["targetLabel"]]:
                        del labels[step["targetLabel"]]
            case "keep" | "drop" as action:
                if bool(found) != (action == "keep"):
                    return None
            case "labeldrop":
                labels = {name: text for name, text in labels.items() if not re.fullmatch(step["regex"], name)}
            case action:
                raise NotImplementedError(action)
    return labels


def stored(target, sample, manifest):
    """Return the labels with which Prometheus stores a sample of a target."""
    told = relabelled(target, steps_of(manifest))
    told = {name: value for name, value in told.items() if not name.startswith("__")}
    if endpoint_of(manifest)["honorLabels"]:
        labels = told | sample
    else:
        labels = {f"exported_{name}" if name in told else name: value for name, value in sample.items()} | told
    return relabelled(labels, steps_of(manifest, of_metrics=True))


def target_of(kind):
    """Return the labels of a target before the steps of the library: discovery, then those of both operators."""
    found = {
        "__meta_kubernetes_pod_node_name": "worker4",
        "instance": "10.0.0.7:9400",
        "namespace": "gpu",
        "pod": "dcgm-exporter-x7k2p",
        "container": "exporter",
    }
    if kind in ("PodMonitor", "VMPodScrape"):
        return {**found, "job": "gpu/dcgm-exporter", "endpoint": "metrics"}
    return {**found, "job": "dcgm-exporter", "service": "dcgm-exporter", "endpoint": "metrics"}


BUSY = {"gpu": "0", "pod": "ollama-0", "namespace": "ollama", "container": "ollama"}
TARGET = {"job": "dcgm-exporter", "instance": "10.0.0.7:9400", "exporter_pod": "dcgm-exporter-x7k2p", "node": "worker4"}


def test_a_busy_gpu_shows_its_workload_and_an_idle_one_no_pod():
    for kind in KINDS:
        assert stored(target_of(kind), BUSY, made(kind)) == TARGET | BUSY, kind
        assert stored(target_of(kind), {"gpu": "1"}, made(kind)) == TARGET | {"gpu": "1"}, kind


def test_without_honor_labels_the_labels_of_the_scraper_take_precedence():
    for kind in KINDS:
        labels = stored(target_of(kind), BUSY, made(kind, honor_labels=False))
        assert (labels["pod"], labels["exported_pod"]) == ("dcgm-exporter-x7k2p", "ollama-0"), kind
        assert (labels["job"], labels["node"]) == ("dcgm-exporter", "worker4"), kind
        assert "exporter_pod" not in labels, kind


def test_steps_of_the_user_come_after_those_of_the_library():
    of_target = [Relabeling(source_labels=["node"], regex="worker(.*)", target_label="number", replacement="no-$1")]
    of_series = [
        Relabeling(action="drop", source_labels=["gpu", "node"], regex="1;worker4"),
        Relabeling(action="labeldrop", regex="container"),
    ]
    for kind in KINDS:
        assert stored(target_of(kind), {}, made(kind, relabelings=of_target)) == TARGET | {"number": "no-4"}, kind
        manifest = made(kind, metric_relabelings=of_series)
        assert stored(target_of(kind), {"gpu": "1"}, manifest) is None, kind
        assert "container" not in stored(target_of(kind), BUSY, manifest), kind


# Validation by the operators.

EVERYTHING = beside(__file__, "scrape")["everything"]


def test_the_object_satisfies_its_crd_and_selects_the_exporter_in_its_own_namespace():
    for kind in KINDS:
        for options in ({}, EVERYTHING):
            assert schema_errors(made(kind, **options)) == [], (kind, options)
        manifest, endpoint = made(kind), endpoint_of(made(kind))
        group = "operator.victoriametrics.com/v1beta1" if kind.startswith("VM") else "monitoring.coreos.com/v1"
        assert (manifest["apiVersion"], manifest["kind"]) == (group, kind)
        assert manifest["metadata"] == METADATA
        assert manifest["spec"]["selector"] == {"matchLabels": SELECTOR}
        assert manifest["spec"]["namespaceSelector"] == {"matchNames": ["gpu"]}
        assert "sampleLimit" not in manifest["spec"]
        assert (endpoint["port"], endpoint["path"]) == ("metrics", "/metrics")
        labels = {"release": "stack", "app.kubernetes.io/part-of": "monitoring"}
        other = made(kind, port="gpu", path="/gpu", access={"scheme": "https"}, labels=labels, sample_limit=5)
        assert (other["metadata"]["labels"], other["spec"]["sampleLimit"]) == (labels, 5)
        told = endpoint_of(other)
        assert (told["port"], told["path"], told["scheme"]) == ("gpu", "/gpu", "https")


# Options of the user.


def test_a_kind_becomes_a_scrape_and_a_scrape_is_unchanged():
    for kind in SCRAPE_KINDS:
        scrape = Scrape.of(kind, None)
        assert scrape == Scrape(kind=kind) == Scrape.of(kind, {})
        assert (scrape.is_object, scrape.selects_pods) == (kind in KINDS, "Pod" in kind)
    assert Scrape.of("VMPodScrape", {"a": "b"}) == Scrape(kind="VMPodScrape", labels={"a": "b"})
    scrape = Scrape(labels={"a": "b"})
    assert Scrape.of(scrape, None) is Scrape.of(scrape, {}) is scrape


def test_an_invalid_kind_is_rejected(refused):
    refused(Scrape.of)


NOTHING_BUT = "scrape must have no other options with {!r}, which creates no object. Remove them"


def test_options_without_a_scrape_object_are_rejected():
    for kind in ("annotations", "none"):
        for option, value in EVERYTHING.items():
            assert refusal(Scrape, kind=kind, **{option: value}) == NOTHING_BUT.format(kind), option


def test_options_that_no_operator_would_take_are_refused(refused):
    refused(Scrape)


# Relabeling.


def test_a_step_is_written_as_both_operators_read_it(expected):
    given = {"target_label": "${1}_$2", "source_labels": ["a", "b"], "separator": "", "regex": "(.)(.)"}
    assert Relabeling(**given, replacement="").to_manifest() == expected
    hashed = {"action": "hashmod", "source_labels": ["a"], "target_label": "b", "modulus": 2}
    written = {"action": "hashmod", "sourceLabels": ["a"], "modulus": 2, "targetLabel": "b"}
    assert Relabeling(**hashed).to_manifest() == written
    assert len({Relabeling(source_labels=sources, target_label="x") for sources in (["a"], ["a"])}) == 1


def test_a_step_that_an_operator_would_refuse_or_ignore_is_refused(refused):
    refused(Relabeling, at="relabeling.")


def test_an_expression_that_re2_rejects_is_rejected(refused):
    refused(Relabeling, at="relabeling.")


def test_an_expression_that_re2_accepts_is_accepted():
    of_re2 = ["(.*)", "pod|container", "[(?=]+", r"[\]\[(?!]", r"\(?=a", r"\\1", r"[\\]", "[]a]", "[^]a]", "a(?i)b"]
    of_re2 += ["[[:alpha:]]+", r"\pL\p{Greek}", r"\Q(?=\E", r"\x{10FFFF}\z", "(?U)a+?", "(?P<x>a)(?<y>b)"]
    for expression in of_re2:
        Relabeling(action="labeldrop", regex=expression)

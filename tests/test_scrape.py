import dataclasses
import re

import pytest

from gpu_constructs import GpuConstructsError
from gpu_constructs.observability.scrape import Relabeling, Scrape, re2_problem, scrape_manifest
from schemas import schema_errors

KINDS = ["ServiceMonitor", "PodMonitor", "VMServiceScrape", "VMPodScrape"]
SELECTOR = {"app.kubernetes.io/name": "dcgm-exporter", "app.kubernetes.io/instance": "dcgm-exporter"}
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)


def refusal(make, *given, **options):
    with pytest.raises(GpuConstructsError) as refused:
        make(*given, **options)
    return str(refused.value)


def made(kind, *, collect=30, access=None, path="/metrics", port="metrics", **options):
    return scrape_manifest(
        Scrape(kind=kind, **options),
        name="dcgm-exporter",
        namespace="gpu",
        labels={"app.kubernetes.io/part-of": "gpu"},
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


# What Prometheus makes of it.


def relabelled(labels, steps):
    """Apply steps as Prometheus does; None for a target or series that they drop."""
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
    """The labels under which Prometheus stores a sample of a target."""
    told = relabelled(target, steps_of(manifest))
    told = {name: value for name, value in told.items() if not name.startswith("__")}
    if endpoint_of(manifest)["honorLabels"]:
        labels = told | sample
    else:
        labels = {f"exported_{name}" if name in told else name: value for name, value in sample.items()} | told
    return relabelled(labels, steps_of(manifest, of_metrics=True))


def target_of(kind):
    """The labels of a target before our steps: those of discovery, then those that both operators write."""
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


@EVERY_KIND
def test_a_busy_gpu_shows_its_workload(kind):
    assert stored(target_of(kind), BUSY, made(kind)) == TARGET | BUSY


@EVERY_KIND
def test_an_idle_gpu_shows_no_pod(kind):
    assert stored(target_of(kind), {"gpu": "1"}, made(kind)) == TARGET | {"gpu": "1"}


@EVERY_KIND
def test_without_honor_labels_the_scrapers_labels_stay_and_the_exporters_move_aside(kind):
    labels = stored(target_of(kind), BUSY, made(kind, honor_labels=False))
    assert (labels["pod"], labels["exported_pod"]) == ("dcgm-exporter-x7k2p", "ollama-0")
    assert (labels["job"], labels["node"]) == ("dcgm-exporter", "worker4")
    assert "exporter_pod" not in labels


@EVERY_KIND
def test_a_users_steps_come_after_ours(kind):
    steps = [Relabeling(source_labels=["node"], regex="worker(.*)", target_label="number", replacement="no-$1")]
    assert stored(target_of(kind), {}, made(kind, relabelings=steps)) == TARGET | {"number": "no-4"}


@EVERY_KIND
def test_a_users_steps_on_series_see_the_labels_of_both(kind):
    steps = [
        Relabeling(action="drop", source_labels=["gpu", "node"], regex="1;worker4"),
        Relabeling(action="labeldrop", regex="container"),
    ]
    manifest = made(kind, metric_relabelings=steps)
    assert stored(target_of(kind), {"gpu": "1"}, manifest) is None
    assert "container" not in stored(target_of(kind), BUSY, manifest)


# What the operators read.

EVERYTHING = {
    "labels": {"release": "kube-prometheus-stack"},
    "interval_seconds": 15,
    "scrape_timeout_seconds": 15,
    "honor_labels": False,
    "sample_limit": 5000,
    "relabelings": [
        Relabeling(action="hashmod", source_labels=["pod"], target_label="shard", modulus=4),
        Relabeling(action="keepequal", source_labels=["a"], target_label="b"),
        Relabeling(action="uppercase", source_labels=["a"], target_label="b"),
        Relabeling(action="labelmap", regex="__meta_(.+)", replacement="x_$1"),
        Relabeling(source_labels=["a", "b"], separator="/", regex="(.*)", target_label="x", replacement=""),
    ],
    "metric_relabelings": [Relabeling(action="labelkeep", regex=".*")],
}


@EVERY_KIND
@pytest.mark.parametrize("options", [{}, EVERYTHING], ids=["plain", "everything"])
def test_the_object_satisfies_its_crd(kind, options):
    assert schema_errors(made(kind, **options)) == []


@pytest.mark.parametrize(
    ("kind", "api_version"),
    [
        ("ServiceMonitor", "monitoring.coreos.com/v1"),
        ("PodMonitor", "monitoring.coreos.com/v1"),
        ("VMServiceScrape", "operator.victoriametrics.com/v1beta1"),
        ("VMPodScrape", "operator.victoriametrics.com/v1beta1"),
    ],
)
def test_the_object_selects_the_exporter_in_its_own_namespace(kind, api_version):
    manifest = made(kind)
    assert (manifest["apiVersion"], manifest["kind"]) == (api_version, kind)
    assert manifest["metadata"] == {
        "name": "dcgm-exporter",
        "namespace": "gpu",
        "labels": {"app.kubernetes.io/part-of": "gpu"},
    }
    assert manifest["spec"]["selector"] == {"matchLabels": SELECTOR}
    assert manifest["spec"]["namespaceSelector"] == {"matchNames": ["gpu"]}


@EVERY_KIND
def test_it_scrapes_as_often_as_the_gpus_are_read_and_waits_ten_seconds(kind):
    endpoint = endpoint_of(made(kind))
    assert (endpoint["port"], endpoint["path"]) == ("metrics", "/metrics")
    assert (endpoint["interval"], endpoint["scrapeTimeout"]) == ("30s", "10s")


@pytest.mark.parametrize(
    ("collect", "options", "interval", "timeout"),
    [
        (60, {}, "60s", "10s"),
        (5, {}, "5s", "5s"),
        (30, {"interval_seconds": 15}, "15s", "10s"),
        (30, {"interval_seconds": 60, "scrape_timeout_seconds": 60}, "60s", "60s"),
        (30, {"scrape_timeout_seconds": 20}, "30s", "20s"),
    ],
)
def test_the_timeout_never_exceeds_the_interval(collect, options, interval, timeout):
    endpoint = endpoint_of(made("ServiceMonitor", collect=collect, **options))
    assert (endpoint["interval"], endpoint["scrapeTimeout"]) == (interval, timeout)


def test_a_timeout_that_is_longer_than_the_exporters_own_interval_is_refused():
    with pytest.raises(GpuConstructsError) as refused:
        made("ServiceMonitor", collect=30, scrape_timeout_seconds=60)
    assert str(refused.value) == (
        "scrape.scrape_timeout_seconds must be at most the interval: the operators refuse such an object; got 60 with "
        "an interval of 30 seconds"
    )


@EVERY_KIND
def test_labels_of_the_stack_stand_beside_ours_and_win(kind):
    labels = {"release": "stack", "app.kubernetes.io/part-of": "monitoring"}
    assert made(kind, labels=labels)["metadata"]["labels"] == labels


@EVERY_KIND
def test_a_limit_of_series_is_the_whole_objects(kind):
    assert made(kind, sample_limit=5)["spec"]["sampleLimit"] == 5
    assert "sampleLimit" not in made(kind)["spec"]


@EVERY_KIND
def test_another_port_path_and_access_are_the_endpoints(kind):
    endpoint = endpoint_of(made(kind, port="gpu", path="/gpu", access={"scheme": "https"}))
    assert (endpoint["port"], endpoint["path"], endpoint["scheme"]) == ("gpu", "/gpu", "https")


def test_changing_one_manifest_leaves_the_next_one_alone():
    scrape = Scrape(relabelings=[Relabeling(source_labels=["a"], target_label="b")], labels={"a": "b"})
    given = {
        "name": "x",
        "namespace": "gpu",
        "labels": {},
        "selector_labels": SELECTOR,
        "port": "metrics",
        "collect_interval_seconds": 30,
    }
    first = scrape_manifest(scrape, **given)
    for step in steps_of(first):
        step.get("sourceLabels", []).append("x")
    first["metadata"]["labels"]["x"] = first["spec"]["selector"]["matchLabels"]["x"] = "y"
    again = scrape_manifest(scrape, **given)
    assert again["spec"]["selector"]["matchLabels"] == SELECTOR
    assert again["metadata"]["labels"] == {"a": "b"}
    assert all("x" not in step.get("sourceLabels", []) for step in steps_of(again))


# What a user says.


def test_lists_changed_afterwards_change_nothing():
    labels, steps, sources = {"a": "b"}, [Relabeling(target_label="x")], ["a"]
    scrape, step = (
        Scrape(labels=labels, relabelings=steps, metric_relabelings=steps),
        Relabeling(source_labels=sources, target_label="y"),
    )
    labels["c"] = "d"
    steps.append(step)
    sources.append("b")
    assert (scrape.labels, len(scrape.relabelings), len(scrape.metric_relabelings)) == ({"a": "b"}, 1, 1)
    assert step.source_labels == ("a",)


@pytest.mark.parametrize(
    ("kind", "is_object", "selects_pods"),
    [
        ("ServiceMonitor", True, False),
        ("PodMonitor", True, True),
        ("VMServiceScrape", True, False),
        ("VMPodScrape", True, True),
        ("annotations", False, False),
        ("none", False, False),
    ],
)
def test_a_word_is_a_scrape_of_that_kind(kind, is_object, selects_pods):
    scrape = Scrape.of(kind, None)
    assert scrape == Scrape(kind=kind) == Scrape.of(kind, {})
    assert (scrape.is_object, scrape.selects_pods) == (is_object, selects_pods)


def test_labels_beside_a_word_are_the_objects():
    assert Scrape.of("VMPodScrape", {"a": "b"}) == Scrape(kind="VMPodScrape", labels={"a": "b"})


def test_a_scrape_stays_what_it_is():
    scrape = Scrape(labels={"a": "b"})
    assert Scrape.of(scrape, None) is scrape
    assert Scrape.of(scrape, {}) is scrape


WORDS = "'ServiceMonitor', 'PodMonitor', 'VMServiceScrape', 'VMPodScrape', 'annotations', 'none'"


@pytest.mark.parametrize(
    ("given", "labels", "problem"),
    [
        (
            "ServiceMonitr",
            None,
            f"scrape must be one of {WORDS}; got 'ServiceMonitr' (did you mean 'ServiceMonitor'?)",
        ),
        (None, None, f"scrape must be one of {WORDS}; got None (did you mean 'none'?)"),
        (["none"], None, f"scrape must be one of {WORDS}; got ['none'] (did you mean 'none'?)"),
        (
            "none",
            {"a": "b"},
            "scrape_labels must be left out with scrape='none', which makes no object; got {'a': 'b'}",
        ),
        (
            "annotations",
            {"a": "b"},
            "scrape_labels must be left out with scrape='annotations', which makes no object; got {'a': 'b'}",
        ),
        (
            Scrape(),
            {"a": "b"},
            "scrape_labels must be left out beside scrape=Scrape(...), which has labels; got {'a': 'b'}",
        ),
        ("PodMonitor", {"a b": "c"}, "scrape_labels has a key that is no label key; got 'a b'"),
    ],
    ids=str,
)
def test_a_word_that_cannot_be_is_refused(given, labels, problem):
    assert refusal(Scrape.of, given, labels) == problem


NOTHING_BUT = "scrape must hold nothing but its kind with {!r}, which makes no object to hold it; choose another kind"


@pytest.mark.parametrize("kind", ["annotations", "none"])
@pytest.mark.parametrize("option", sorted({field.name for field in dataclasses.fields(Scrape)} - {"kind"}))
def test_without_an_object_nothing_holds_the_options(kind, option):
    assert refusal(Scrape, kind=kind, **{option: EVERYTHING[option]}) == NOTHING_BUT.format(kind)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (
            {"kind": "Servicemonitor"},
            f"scrape.kind must be one of {WORDS}; got 'Servicemonitor' (did you mean 'ServiceMonitor'?)",
        ),
        ({"labels": "release"}, "scrape.labels must be Mapping; got str: 'release'"),
        ({"labels": {"a b": "c"}}, "scrape.labels has a key that is no label key; got 'a b'"),
        ({"interval_seconds": 0}, "scrape.interval_seconds must be at least 1, got 0"),
        ({"interval_seconds": 3601}, "scrape.interval_seconds must be at most 3600, got 3601"),
        ({"interval_seconds": "30s"}, "scrape.interval_seconds must be one of (int, None); got str: '30s'"),
        (
            {"interval_seconds": 5, "scrape_timeout_seconds": 10},
            "scrape.scrape_timeout_seconds must be at most the interval: the operators refuse such an object; "
            "got 10 with an interval of 5 seconds",
        ),
        ({"scrape_timeout_seconds": 0}, "scrape.scrape_timeout_seconds must be at least 1, got 0"),
        ({"sample_limit": 0}, "scrape.sample_limit must be at least 1, got 0"),
        ({"honor_labels": "no"}, "scrape.honor_labels must be bool; got str: 'no'"),
        (
            {"relabelings": [{"action": "keep"}]},
            "scrape.relabelings[0] must be Relabeling; got dict: {'action': 'keep'}",
        ),
        ({"metric_relabelings": "drop"}, "scrape.metric_relabelings must be a list, got 'drop' (str)"),
        ({"interval": 15}, "interval is no member of Scrape (did you mean 'interval_seconds'?)"),
    ],
    ids=str,
)
def test_options_that_no_operator_would_take_are_refused(given, problem):
    assert refusal(Scrape, **given) == problem


# Relabeling.


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ({"target_label": "x", "replacement": ""}, {"action": "replace", "targetLabel": "x", "replacement": ""}),
        (
            {"target_label": "${1}_$2", "source_labels": ["a", "b"], "separator": "", "regex": "(.)(.)"},
            {
                "action": "replace",
                "sourceLabels": ["a", "b"],
                "separator": "",
                "regex": "(.)(.)",
                "targetLabel": "${1}_$2",
            },
        ),
        (
            {"action": "drop", "source_labels": ["__name__"], "regex": "DCGM_FI_PROF_.*"},
            {"action": "drop", "sourceLabels": ["__name__"], "regex": "DCGM_FI_PROF_.*"},
        ),
        ({"action": "labeldrop", "regex": "a"}, {"action": "labeldrop", "regex": "a"}),
        (
            {"action": "hashmod", "source_labels": ["a"], "target_label": "b", "modulus": 2},
            {"action": "hashmod", "sourceLabels": ["a"], "modulus": 2, "targetLabel": "b"},
        ),
    ],
)
def test_a_step_is_written_as_both_operators_read_it(given, written):
    assert Relabeling(**given).to_manifest() == written


ACTIONS = (
    "'replace', 'keep', 'drop', 'hashmod', 'labelmap', 'labeldrop', 'labelkeep', 'lowercase', 'uppercase', "
    "'keepequal', 'dropequal'"
)
LABEL = "target_label must be the name of a label"


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, "target_label is required with action 'replace'"),
        ({"action": "keep"}, "source_labels is required with action 'keep'"),
        ({"action": "labelmap"}, "regex is required with action 'labelmap'"),
        (
            {"action": "hashmod", "source_labels": ["a"], "target_label": "b"},
            "modulus is required with action 'hashmod'",
        ),
        ({"action": "lowercase", "source_labels": ["a"]}, "target_label is required with action 'lowercase'"),
        (
            {"action": "keep", "source_labels": ["a"], "target_label": "b"},
            "target_label must be left out with action 'keep', which ignores it; got 'b'",
        ),
        (
            {"action": "labeldrop", "regex": "a", "source_labels": ["b"]},
            "source_labels must be left out with action 'labeldrop', which ignores it; got ('b',)",
        ),
        (
            {"action": "keepequal", "source_labels": ["a"], "target_label": "b", "separator": ""},
            "separator must be left out with action 'keepequal', which ignores it; got ''",
        ),
        ({"action": "Keep"}, f"action must be one of {ACTIONS}; got 'Keep' (did you mean 'keep'?)"),
        ({"source_labels": "pod", "target_label": "x"}, "source_labels must be a list, got 'pod' (str)"),
        ({"source_labels": ["a-b"], "target_label": "x"}, "source_labels must be names of labels; got 'a-b'"),
        ({"target_label": "a b"}, f"{LABEL}; got 'a b'"),
        ({"target_label": ""}, f"{LABEL}; got ''"),
        ({"target_label": "${1"}, f"{LABEL}; got '${{1'"),
        ({"target_label": "$é"}, f"{LABEL}; got '$é'"),
        ({"action": "lowercase", "source_labels": ["a"], "target_label": "$1"}, f"{LABEL}; got '$1'"),
        (
            {"action": "hashmod", "source_labels": ["a"], "target_label": "b", "modulus": 0},
            "modulus must be at least 1, got 0",
        ),
        (
            {"action": "hashmod", "source_labels": ["a"], "target_label": "b", "modulus": True},
            "modulus must be an int, got True (bool)",
        ),
        ({"regex": 5, "target_label": "x"}, "regex must be one of (str, None); got int: 5"),
        (
            {"action": "labeldrop", "regex": "(?!gpu).*"},
            "regex must be a regular expression that RE2 reads; got '(?!gpu).*': RE2 has no '(?!'",
        ),
        (
            {"action": "labeldrop", "regex": "(a"},
            "regex must be a regular expression that RE2 reads; got '(a': missing ), unterminated subpattern",
        ),
    ],
    ids=str,
)
def test_a_step_that_an_operator_would_refuse_or_ignore_is_refused(given, problem):
    assert refusal(Relabeling, **given) == f"relabeling.{problem}"


def test_steps_of_the_same_options_are_equal_and_can_be_keys():
    assert len({Relabeling(source_labels=sources, target_label="x") for sources in (["a"], ["a"])}) == 1


@pytest.mark.parametrize(
    ("expression", "foreign"),
    [
        ("(?=a)", "(?="),
        ("(?!a)", "(?!"),
        ("(?<=a)b", "(?<="),
        ("(?<!a)b", "(?<!"),
        ("(?>a)", "(?>"),
        ("(?P<x>a)(?P=x)", "(?P="),
        ("(?#a)", "(?#"),
        (r"(a)\1", r"\1"),
        (r"\\(?=a)", "(?="),
        (r"a\Z", r"\Z"),
        ("a++", "++"),
    ],
)
def test_what_re2_does_not_have_is_named(expression, foreign):
    assert re2_problem(expression) == f"RE2 has no {foreign!r}"


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("(a", "missing ), unterminated subpattern"),
        ("a)", "unbalanced parenthesis"),
        ("[a", "unterminated character set"),
        ("*a", "nothing to repeat"),
        ("a**", "multiple repeat"),
        ("a\\", "bad escape (end of pattern)"),
    ],
)
def test_what_no_reader_takes_is_broken(expression, problem):
    assert re2_problem(expression) == problem


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "(.*)",
        "pod|container",
        "[(?=]+",
        r"[\]\[(?!]",
        r"\(?=a",
        r"\\1",
        r"[\\]",
        "[]a]",
        "[^]a]",
        "[[:alpha:]]+",
        r"\pL\p{Greek}",
        r"\Q(?=\E",
        r"\x{10FFFF}\z",
        "a(?i)b",
        "(?U)a+?",
        "(?P<x>a)(?<y>b)",
        "a{2,3}?",
    ],
)
def test_what_re2_reads_is_left_alone(expression):
    assert re2_problem(expression) is None

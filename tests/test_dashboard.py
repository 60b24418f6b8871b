import json
import re
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections import Counter

import promql_parser
import pytest
import yaml

import synthetic_exporter as synthetic
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.observability.dashboard import dashboard, json_text
from gpu_constructs.observability.gpu_series import dcgm_series, nvidia_smi_series
from gpu_constructs.observability.metrics import hostname_label, metric_set
from shell import PATIENCE, wait_until

FROM_OTHERS = {
    "up",
    "kube_node_status_capacity",
    "kube_node_status_allocatable",
    "kube_pod_container_resource_requests",
    "kube_pod_init_container_resource_requests",
    "kube_pod_status_phase",
    "kube_pod_status_scheduled",
    "kube_pod_status_unschedulable",
}


def fields_of(name, release):
    return [metric.field for metric in metric_set(name, release) if metric.prometheus_type != "label"]


def dcgm(name="profiling", release="4.8.3", pods="all", *, without=(), job=None):
    metrics = [field for field in fields_of(name, release) if field not in without]
    job = job or f"dcgm-{name}-{release}-{pods}"
    return dcgm_series(job=job, metrics=metrics, hostname_label=hostname_label(release), pods=pods)


def nvidia_smi(*, without=()):
    return nvidia_smi_series(job="nvidia-smi", metrics=synthetic.NVIDIA_SMI_METRICS - set(without))


DCGM = {
    series.job: series
    for series in (
        dcgm("seed"),
        dcgm("default"),
        dcgm("recommended"),
        dcgm("profiling"),
        dcgm("recommended", pods="one"),
        dcgm("profiling", "3.4.2", pods="one"),
        dcgm("recommended", "3.4.2", pods="one"),
        dcgm("recommended", pods="none"),
    )
}
VARIANTS = {**DCGM, "nvidia-smi": nvidia_smi()}
FULL = [dcgm("profiling"), nvidia_smi()]
every_variant = pytest.mark.parametrize("series", [pytest.param(one, id=name) for name, one in VARIANTS.items()])
both_dialects = pytest.mark.parametrize("series", [pytest.param(one, id=one.dialect) for one in FULL])


def panels_of(content):
    return {panel["id"]: panel for panel in content["panels"] if panel["type"] != "row"}


def queries_of(content):
    """Each query by the panel's id and its letter."""
    return {
        (panel["id"], target["refId"]): target["expr"]
        for panel in panels_of(content).values()
        for target in panel.get("targets", [])
    }


def rows_of(content):
    return [panel["title"] for panel in content["panels"] if panel["type"] == "row"]


def variables_of(content):
    return {variable["name"]: variable for variable in content["templating"]["list"]}


def selectors_in(text):
    return set(re.findall(r"\b([A-Za-z_]\w*)\{", text))


def promql(query, **chosen):
    """The query as Prometheus gets it from Grafana."""
    values = {"__rate_interval": "2m", "__range": "1h", **dict.fromkeys(("node", "gpu", "namespace", "pod"), ".*")}
    return re.sub(r"\$([a-z_]+)", lambda found: {**values, **chosen}[found[1]], query)


def test_each_query_says_how_often_is_scraped_for_the_rate_interval():
    series = dcgm_series(
        job="x",
        metrics=["DCGM_FI_DEV_POWER_VIOLATION"],
        hostname_label="hostname",
        pods="none",
        scrape_interval_seconds=60,
    )
    told = [target for panel in dashboard(series)["panels"] for target in panel.get("targets", [])]
    assert {target["interval"] for target in told} == {"60s"}
    assert any("$__rate_interval" in target["expr"] for target in told)


# --- what is asked ----------------------------------------------------------------------------------------------


@every_variant
def test_every_query_is_promql(series):
    for query in queries_of(dashboard(series)).values():
        promql_parser.parse(promql(query))


@every_variant
def test_only_what_is_exported_or_told_by_others_is_asked_for(series):
    content = dashboard(series)
    named = set().union(*map(selectors_in, queries_of(content).values()))
    assert named <= series.metrics | FROM_OTHERS
    variables = " ".join(one.get("definition", "") for one in variables_of(content).values())
    assert len(selectors_in(variables)) == 1
    assert selectors_in(variables) <= series.metrics


NEVER_SHOWN = {
    # For alerts, or not a number to draw.
    "DCGM_FI_DEV_SLOWDOWN_TEMP",
    "DCGM_FI_DEV_VGPU_LICENSE_STATUS",
    # A counter in one release, a rate in the next; profiling has the same by direction.
    "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL",
}


@both_dialects
def test_all_that_is_exported_is_shown(series):
    named = set().union(*map(selectors_in, queries_of(dashboard(series)).values()))
    assert series.metrics - named == series.metrics & NEVER_SHOWN - named


SUBSTITUTED = {
    # Total VRAM without what is reserved; GPUs are counted, and variables filled, by another metric.
    "DCGM_FI_DEV_FB_RESERVED": {14, 23},
    "nvidia_smi_memory_reserved_bytes": {14, 23},
    "DCGM_FI_DEV_GPU_TEMP": {11, 44},
}


@pytest.mark.parametrize("metric", sorted(dcgm().metrics | nvidia_smi().metrics - {"nvidia_smi_gpu_info"}))
def test_without_a_metric_its_queries_go_and_all_others_stay(metric):
    series, reduced = (
        (dcgm(), dcgm(without=[metric], job="dcgm-profiling-4.8.3-all"))
        if metric.startswith("DCGM")
        else (nvidia_smi(), nvidia_smi(without=[metric]))
    )
    all_queries, left = queries_of(dashboard(series)), queries_of(dashboard(reduced))
    others = {place: query for place, query in all_queries.items() if metric not in selectors_in(query)}
    substitutes = {place: query for place, query in left.items() if all_queries[place] != query}
    assert {place: query for place, query in left.items() if place not in substitutes} == others
    assert {panel for panel, _ in substitutes} == SUBSTITUTED.get(metric, set())
    assert metric not in json.dumps(dashboard(reduced)["templating"])


def test_the_seed_has_what_was_asked_for_first():
    titles = [panel["title"] for panel in panels_of(dashboard(dcgm("seed"), kube_state_metrics=False)).values()]
    assert titles == [
        "GPUs",
        "Exporters up",
        "Mean utilisation",
        "VRAM used",
        "Hottest GPU",
        "Power and limit",
        "Utilisation",
        "VRAM used",
        "Temperature",
        "SM clock",
        "Memory clock",
        "Power and limit",
        "Power limits",
        "What is per pod",
        "Pods with a GPU",
        "Utilisation by pod",
        "VRAM by pod",
        "Pods per GPU",
    ]


@pytest.mark.parametrize(("name", "series"), DCGM.items())
def test_every_query_first_takes_one_value_per_gpu(name, series):
    host = series.labels.node
    one_per_gpu = re.compile(
        rf"max by \({host}, gpu, UUID, modelName(, \w+)*\) "
        rf'\((rate\()?DCGM_\w+{{job="{re.escape(name)}",{host}=~"\$node",gpu=~"\$gpu"[^}}]*}}(\[\$__rate_interval\]\))?\)'
    )
    for place, query in queries_of(dashboard(series)).items():
        assert "DCGM" not in one_per_gpu.sub("X", query), place


@every_variant
def test_what_is_a_rate_already_is_never_derived(series):
    for query in queries_of(dashboard(series)).values():
        assert not re.search(r"(rate|increase|delta|deriv)\(\w*(PROF|throughput)", query)
        assert not re.search(r"(rate|increase)\(DCGM_(EXP|FI_DEV_XID)", query)


@pytest.mark.parametrize("series", DCGM.values(), ids=DCGM)
def test_node_label_variables_legends_and_columns_follow_the_release(series):
    other = {"Hostname": "hostname", "hostname": "Hostname"}[series.labels.node]
    text = json_text(dashboard(series))
    assert series.labels.node in text
    assert not re.search(rf"\b{other}\b", text)


@every_variant
def test_legends_of_gpus_say_node_and_gpu(series):
    node, gpu = (f"{{{{{label}}}}}" for label in series.labels[:2])
    for panel in panels_of(dashboard(series)).values():
        for target in panel.get("targets", []):
            is_per_gpu = panel["type"] in ("timeseries", "bargauge") and "kube_" not in target["expr"]
            assert not is_per_gpu or f"{node} / GPU {gpu}" in target["legendFormat"], panel["title"]


def test_series_of_one_graph_are_told_apart():
    for series in VARIANTS.values():
        for panel in panels_of(dashboard(series)).values():
            if panel["type"] == "timeseries":
                legends = [target["legendFormat"] for target in panel["targets"]]
                assert len(set(legends)) == len(legends), panel["title"]


@pytest.mark.parametrize(("pods", "says"), [("all", "each pod's own"), ("one", "only one of them is named")])
def test_a_text_says_what_is_per_pod(pods, says):
    (text,) = (panel for panel in panels_of(dashboard(dcgm(pods=pods))).values() if panel["type"] == "text")
    assert says in text["options"]["content"]
    assert text["options"]["mode"] == "markdown"


def test_pods_per_gpu_are_counted_only_where_every_pod_is_named():
    assert 44 in panels_of(dashboard(dcgm(pods="all")))
    assert 44 not in panels_of(dashboard(dcgm(pods="one")))


@pytest.mark.parametrize("series", [dcgm(pods="none"), nvidia_smi()], ids=["dcgm", "nvidia_smi"])
def test_an_exporter_that_knows_no_pods_has_no_row_and_no_variables_of_them(series):
    content = dashboard(series)
    assert "Pods" not in rows_of(content)
    assert set(variables_of(content)) == {"datasource", "node", "gpu"}
    assert "$pod" not in json_text(content)
    assert "$namespace" not in json_text(content)


def test_nothing_is_asked_of_kube_state_metrics_where_there_is_none():
    content = dashboard(dcgm(), kube_state_metrics=False)
    assert "Scheduling" not in rows_of(content)
    assert "kube_" not in json_text(content)


def test_without_a_known_job_no_exporter_is_counted_and_no_job_is_asked_for():
    series = dcgm()
    content = dashboard(dcgm_series(job=None, metrics=series.metrics, hostname_label="hostname", pods="all"))
    assert 10 not in panels_of(content)
    assert "job=" not in json_text(content)


# --- how it is shown --------------------------------------------------------------------------------------------


@every_variant
def test_panels_fill_the_width_and_never_overlap(series):
    taken = Counter()
    for panel in dashboard(series)["panels"]:
        place = panel["gridPos"]
        assert place["w"] > 0
        taken.update(
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        )
    assert set(taken.values()) == {1}
    lines = {y for _, y in taken}
    assert set(taken) == {(x, y) for x in range(24) for y in range(len(lines))}


@every_variant
def test_ids_are_unique_and_the_same_with_fewer_metrics(series):
    content = dashboard(series)
    ids = [panel["id"] for panel in content["panels"]]
    assert len(set(ids)) == len(ids)
    whole = panels_of(dashboard(FULL[series.dialect == "nvidia_smi"]))
    for number, panel in panels_of(content).items():
        assert (panel["title"], panel["type"]) == (whole[number]["title"], whole[number]["type"])


def test_rows_stand_in_this_order_profiling_last():
    rows = ["Fleet", "GPUs", "Power", "Pods", "Scheduling", "Errors", "Profiling (empty on GeForce before Blackwell)"]
    assert rows_of(dashboard(dcgm())) == rows
    assert rows_of(dashboard(nvidia_smi())) == ["Fleet", "GPUs", "MIG instances", "Power", "Scheduling", "Errors"]


def test_a_row_without_panels_is_left_out():
    assert rows_of(dashboard(dcgm("seed"), kube_state_metrics=False)) == ["Fleet", "GPUs", "Power", "Pods"]


@every_variant
def test_panels_are_of_kinds_that_grafana_still_has(series):
    content = dashboard(series)
    kinds = {panel["type"] for panel in content["panels"]}
    assert kinds <= {"row", "stat", "timeseries", "bargauge", "table", "text"}
    assert content["schemaVersion"] == 39
    assert "__inputs" not in content


@every_variant
def test_graphs_ask_for_ranges_and_everything_else_for_an_instant(series):
    for panel in panels_of(dashboard(series)).values():
        for target in panel.get("targets", []):
            assert target["range"] is (panel["type"] == "timeseries")
            assert target["instant"] is not target["range"]
            assert (target["format"] == "table") is (panel["type"] == "table")


@pytest.mark.parametrize("kind", ["prometheus", "victoriametrics-metrics-datasource"])
def test_each_part_reads_from_the_chosen_data_source(kind):
    content = dashboard(dcgm(), datasource_type=kind)
    source = variables_of(content).pop("datasource")
    assert (source["type"], source["query"]) == ("datasource", kind)
    reference = {"type": kind, "uid": "${datasource}"}
    for panel in panels_of(content).values():
        if panel["type"] != "text":
            assert [panel["datasource"], *(one["datasource"] for one in panel["targets"])] == [reference] * (
                1 + len(panel["targets"])
            )
    assert [variables_of(content)[name]["datasource"] for name in ("node", "gpu", "namespace", "pod")] == [
        reference
    ] * 4


def test_variables_take_several_values_or_all_and_narrow_each_other():
    variables = variables_of(dashboard(dcgm(job="dcgm")))
    for name in ("node", "gpu", "namespace", "pod"):
        assert (variables[name]["multi"], variables[name]["includeAll"], variables[name]["allValue"]) == (
            True,
            True,
            ".*",
        )
    chosen = 'job="dcgm",hostname=~"$node",gpu=~"$gpu",pod!="",namespace=~"$namespace"'
    assert variables["pod"]["definition"] == f"label_values(DCGM_FI_DEV_GPU_TEMP{{{chosen}}}, pod)"
    assert variables["node"]["definition"] == 'label_values(DCGM_FI_DEV_GPU_TEMP{job="dcgm"}, hostname)'


def test_the_two_dialects_can_live_in_one_grafana():
    first, second = map(dashboard, FULL)
    assert first["uid"] != second["uid"]
    assert first["title"] != second["title"]
    assert (first["uid"], first["title"]) == ("gpu-constructs-gpus", "NVIDIA GPUs")


def test_uid_title_and_refresh_can_be_chosen():
    content = dashboard(dcgm(), uid="mine", title="Mine", refresh="")
    assert (content["uid"], content["title"], content["refresh"]) == ("mine", "Mine", "")


def columns_of(series, number):
    (organize,) = [
        one["options"] for one in panels_of(dashboard(series))[number]["transformations"] if one["id"] == "organize"
    ]
    return organize


def test_the_pods_table_names_pod_slot_and_gpu_and_hides_the_rest():
    columns = columns_of(dcgm(), 41)
    titles = list(columns["renameByName"].values())
    assert titles[:8] == ["Namespace", "Pod", "Container", "Slot", "Node", "GPU", "Model", "MIG instance"]
    assert titles[8:] == ["Utilisation", "VRAM used", "Power of the GPU", "Temperature of the GPU"]
    assert {"Time", "UUID"} <= columns["excludeByName"].keys()
    assert list(columns_of(dcgm(pods="one"), 41)["renameByName"].values())[-4:-2] == [
        "Utilisation of the GPU",
        "VRAM used of the GPU",
    ]


def test_a_table_with_one_query_left_keeps_its_value():
    gone = [f"DCGM_FI_DEV_{name}" for name in ("GPU_UTIL", "POWER_USAGE", "GPU_TEMP")]
    columns = columns_of(dcgm(without=gone), 41)["renameByName"]
    assert columns["Value"] == "VRAM used"
    assert "Value #B" not in columns


def test_columns_keep_their_units_and_texts_without_the_others():
    panel = panels_of(dashboard(dcgm(without=["DCGM_FI_DEV_GPU_UTIL"])))[41]
    units = {one["matcher"]["options"]: one["properties"][0]["value"] for one in panel["fieldConfig"]["overrides"]}
    assert units == {"VRAM used": "mbytes", "Power of the GPU": "watt", "Temperature of the GPU": "celsius"}
    state = panels_of(dashboard(dcgm()))[55]["fieldConfig"]["overrides"][0]
    texts = state["properties"][1]["value"][0]["options"]
    assert (state["matcher"]["options"], texts["2"]["text"]) == ("Recovery", "node reboot")


@every_variant
def test_tables_show_every_label_that_tells_their_lines_apart(series):
    for panel in panels_of(dashboard(series)).values():
        if panel["type"] == "table":
            (organize,) = (one["options"] for one in panel["transformations"] if one["id"] == "organize")
            for target in panel["targets"]:
                (found,) = re.findall(r"^(?:label_replace\()?\(*(?:max|sum) by \(([\w, ]+)\)", target["expr"])
                labels = set(found.split(", ")) - set(organize["excludeByName"])
                assert labels <= organize["renameByName"].keys(), panel["title"]


@both_dialects
def test_limits_are_drawn_dashed(series):
    overrides = panels_of(dashboard(series))[31]["fieldConfig"]["overrides"]
    assert [one["matcher"]["options"] for one in overrides] == ["/ limit$/"]


def outline(content):
    """The dashboard as a reviewer would read it."""
    found = {}
    for panel in content["panels"]:
        if panel["type"] == "row":
            row = found.setdefault(f"{panel['id']} {panel['title']}", {})
            continue
        queries = {
            f"{target['refId']} {target.get('legendFormat', '')}".strip(): target["expr"]
            for target in panel.get("targets", [])
        }
        place = panel["gridPos"]
        row[f"{panel['id']} {panel['title']}"] = {
            "kind": f"{panel['type']} {place['w']}x{place['h']}",
            **({"queries": queries} if queries else {}),
        }
    return yaml.safe_dump(found, sort_keys=False, width=4000)


def test_the_whole_of_it_for_dcgm(snapshot):
    assert outline(dashboard(dcgm(job="dcgm-exporter"))) == snapshot


def test_the_whole_of_it_for_nvidia_smi(snapshot):
    assert outline(dashboard(nvidia_smi())) == snapshot


# --- as text ----------------------------------------------------------------------------------------------------


@every_variant
def test_the_text_is_the_same_for_the_same_metrics_in_any_order(series):
    text = json_text(dashboard(series))
    assert json.loads(text) == dashboard(series)
    again = series.__class__(**{**vars(series), "metrics": frozenset(sorted(series.metrics, reverse=True))})
    assert json_text(dashboard(again)) == text


@every_variant
def test_the_text_fits_into_a_config_map_that_kubectl_applies(series):
    text = json_text(dashboard(series))
    # kubectl keeps the whole object once more in an annotation, of which all together may hold 256 KiB.
    assert len(json.dumps(text)) < 150_000


def test_the_text_is_readable():
    text = json_text(dashboard(dcgm()))
    assert text.startswith('{\n  "uid": "gpu-constructs-gpus",\n  "title": "NVIDIA GPUs",\n')
    assert text.endswith("}\n")
    assert [line for line in text.splitlines() if line != line.rstrip()] == []
    assert max(map(len, text.splitlines())) < 1200


def test_parts_of_a_dashboard_are_nobody_elses():
    content = dashboard(dcgm())
    for panel in panels_of(content).values():
        panel.get("datasource", {})["uid"] = "mine"
    assert "${datasource}" in json_text(content)
    assert "mine" not in json_text(dashboard(dcgm()))


def test_without_any_known_metric_there_is_nothing_to_show():
    with pytest.raises(GpuConstructsError, match=r"^exporter must export metrics that are known here; got none;"):
        dashboard(dcgm_series(job="x", metrics=[], hostname_label="hostname", pods="one"))


# --- in a real Prometheus ---------------------------------------------------------------------------------------

SCRAPED = {
    series.job: (series, release, name)
    for series, release, name in (
        (dcgm("recommended"), "4.8.3", "recommended"),
        (dcgm("profiling"), "4.8.3", "profiling"),
        (dcgm("recommended", "3.4.2", pods="one"), "3.4.2", "recommended"),
        (dcgm("profiling", "3.4.2", pods="one"), "3.4.2", "profiling"),
        (nvidia_smi(), "", ""),
    )
}
in_prometheus = pytest.mark.parametrize("series", [pytest.param(one[0], id=job) for job, one in SCRAPED.items()])


def scrape_of(job, moment):
    series, release, name = SCRAPED[job]
    if series.dialect == "nvidia_smi":
        families = synthetic.nvidia_smi(moment=moment)
    else:
        families = synthetic.dcgm(metric_set(name, release), release, pods=series.pods, moment=moment)
    return [*synthetic.scraped(families, job), synthetic.up(job)]


def merged(scrapes):
    """Families of several jobs as one, each name once."""
    families = {}
    for family in scrapes:
        known = families.setdefault(family.name, family._replace(series=[]))
        known.series.extend(family.series)
    return list(families.values())


class Prometheus:
    def __init__(self, port):
        self.url = f"http://127.0.0.1:{port}"

    def get(self, path, **parameters):
        query = urllib.parse.urlencode(parameters, doseq=True)
        try:
            with urllib.request.urlopen(f"{self.url}{path}?{query}", timeout=PATIENCE) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from None

    def is_ready(self):
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=PATIENCE):
                return True
        except (urllib.error.URLError, ConnectionError):
            return False

    def instant(self, query):
        return self.get("/api/v1/query", query=query, time=synthetic.END)["result"]

    def range(self, query):
        start = synthetic.END - 600
        return self.get("/api/v1/query_range", query=query, start=start, end=synthetic.END, step=60)["result"]

    def number(self, query):
        (only,) = self.instant(query)
        return float(only["value"][1])


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prometheus")
    scrapes = {
        moment: merged([*synthetic.kube_state(), *(one for job in SCRAPED for one in scrape_of(job, moment))])
        for moment in synthetic.MOMENTS
    }
    history = folder / "history.txt"
    history.write_text("\n".join([*synthetic.history(scrapes), "# EOF"]) + "\n")
    create = ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(history), str(folder / "data")]
    subprocess.run(create, check=True, capture_output=True)
    (folder / "prometheus.yml").write_text("{}\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = (folder / "log").open("w")
    server = subprocess.Popen(
        [
            "prometheus",
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            "--storage.tsdb.retention.time=100y",
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        stdout=log,
        stderr=log,
    )
    try:
        running = Prometheus(port)
        wait_until(lambda: running.is_ready() or server.poll() is not None, "Prometheus", (folder / "log").read_text)
        assert server.poll() is None, (folder / "log").read_text()
        yield running
    finally:
        server.terminate()
        server.wait(timeout=PATIENCE)
        log.close()


@pytest.mark.system_tools
@in_prometheus
def test_every_query_returns_data(prometheus, series):
    empty = []
    for panel in panels_of(dashboard(series)).values():
        for target in panel.get("targets", []):
            ask = prometheus.range if target["range"] else prometheus.instant
            if not ask(promql(target["expr"])):
                empty.append((panel["title"], target["refId"], target["expr"]))
    assert empty == []


KNOWN_VALUES = {"node": ["node-a", "node-b"], "gpu": ["0", "1"], "namespace": ["ai"]}


@pytest.mark.system_tools
@in_prometheus
def test_every_variable_has_values(prometheus, series):
    for name, variable in variables_of(dashboard(series)).items():
        if name != "datasource":
            selector, label = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["definition"]).groups()
            during = {"start": synthetic.START, "end": synthetic.END}
            values = prometheus.get(f"/api/v1/label/{label}/values", **{"match[]": promql(selector)}, **during)
            assert values, name
            assert values == KNOWN_VALUES.get(name, values)


def total(member, *, where=lambda gpu: True):
    return sum(getattr(gpu, member) for gpu in synthetic.FLEET if where(gpu))


@pytest.mark.system_tools
@in_prometheus
def test_gpus_that_pods_share_count_once(prometheus, series):
    queries = queries_of(dashboard(series))

    def number(panel, letter="A", **chosen):
        return prometheus.number(promql(queries[panel, letter], **chosen))

    assert number(11) == 4
    assert number(16, "A") == total("watts") == 1120
    assert number(16, "B") == total("limit") == 1740
    assert number(19) == pytest.approx(1120 / 1740)
    # nvidia-smi tells VRAM of a split GPU as a whole; of DCGM it comes by instance.
    split = [instance for gpu in synthetic.FLEET for instance in gpu.instances]
    is_dcgm = series.dialect == "dcgm"
    used = total("used") + (sum(instance.used for instance in split) if is_dcgm else 0)
    whole = total("total", where=lambda gpu: not (is_dcgm and gpu.instances))
    whole += sum(instance.total for instance in split) if is_dcgm else 0
    # Of an exporter that does not tell what is reserved, the share is a little higher.
    is_told = not is_dcgm or series.has("DCGM_FI_DEV_FB_RESERVED")
    assert number(14) == pytest.approx(used / (whole - (0 if is_told else 3 * 500 + 2 * 100)))
    assert number(13) == used
    assert number(12) == pytest.approx((90 + 0 + 98) / 3)
    assert number(10, "A") == number(10, "B") == 2
    assert number(110) == (3 if is_dcgm else 1)
    assert number(11, node="node-a") == 2
    assert number(16, "A", node="node-a", gpu="1") == 20


@pytest.mark.system_tools
@in_prometheus
def test_energy_is_whole_also_where_pods_followed_one_another(prometheus, series):
    (energy,) = (query for place, query in queries_of(dashboard(series)).items() if place == (32, "A"))
    found = {
        one["metric"]["uuid" if series.dialect == "nvidia_smi" else "UUID"]: float(one["value"][1])
        for one in prometheus.instant(promql(energy))
    }
    assert found == pytest.approx({gpu.uuid: gpu.watts / 1000 for gpu in synthetic.FLEET}, rel=0.03)


@pytest.mark.system_tools
def test_pods_that_share_a_gpu_have_values_of_their_own(prometheus):
    queries = queries_of(dashboard(dcgm("recommended")))
    now = {one["metric"]["pod"]: float(one["value"][1]) for one in prometheus.instant(promql(queries[42, "A"]))}
    assert {name: now[name] for name in ("chat", "images", "speech")} == {"chat": 50, "images": 30, "speech": 10}
    vram = {one["metric"]["pod"]: float(one["value"][1]) for one in prometheus.instant(promql(queries[43, "A"]))}
    assert (vram["chat"], vram["notebook"]) == (9000, 4000)
    power = {one["metric"]["pod"]: float(one["value"][1]) for one in prometheus.instant(promql(queries[41, "C"]))}
    assert power["chat"] == power["images"] == 300
    sharing = {
        (one["metric"]["UUID"], one["metric"].get("GPU_I_ID")): float(one["value"][1])
        for one in prometheus.instant(promql(queries[44, "A"]))
    }
    assert sharing["GPU-node-a-0", None] == 3
    assert sharing["GPU-node-b-0", "7"] == 1
    only = prometheus.instant(promql(queries[42, "A"], pod="chat|images"))
    assert {one["metric"]["pod"] for one in only} == {"chat", "images"}


@pytest.mark.system_tools
def test_where_one_pod_is_named_it_shows_the_whole_gpu(prometheus):
    queries = queries_of(dashboard(dcgm("recommended", "3.4.2", pods="one")))
    (shared,) = prometheus.instant(promql(queries[42, "A"], node="node-a"))
    assert (shared["metric"]["pod"], shared["value"][1]) == ("speech", "90")


@pytest.mark.system_tools
def test_instances_of_a_split_gpu_are_kept_apart(prometheus):
    queries = queries_of(dashboard(dcgm("profiling")))
    for panel, letter in ((22, "A"), (61, "A"), (62, "A"), (63, "A"), (65, "A"), (65, "B"), (66, "C")):
        found = prometheus.instant(promql(queries[panel, letter], node="node-b", gpu="0"))
        assert sorted(one["metric"]["GPU_I_ID"] for one in found) == ["7", "8"], panel
    assert len(prometheus.instant(promql(queries[31, "A"], node="node-b", gpu="0"))) == 1


@pytest.mark.system_tools
def test_what_is_requested_leaves_out_pods_that_have_ended(prometheus):
    queries = queries_of(dashboard(dcgm("recommended")))

    def by(label, place):
        return {one["metric"][label]: float(one["value"][1]) for one in prometheus.instant(promql(queries[place]))}

    assert by("resource", (71, "A")) == {"nvidia_com_gpu": 5, "nvidia_com_mig_1g_10gb": 1}
    assert by("resource", (71, "B")) == {"nvidia_com_gpu": 5, "nvidia_com_mig_1g_10gb": 2}
    assert by("resource", (72, "A")) == {"nvidia_com_gpu": 1, "nvidia_com_mig_1g_10gb": 0.5}
    assert by("pod", (73, "A")) == {"waits": 1}
    assert by("node", (74, "C"))["node-a"] == 3


@pytest.mark.system_tools
def test_an_xid_is_one_line_with_its_count_and_its_meaning(prometheus):
    queries = queries_of(dashboard(dcgm("recommended")))
    counts = {one["metric"]["xid"]: one["value"][1] for one in prometheus.instant(promql(queries[51, "A"]))}
    (last,) = prometheus.instant(promql(queries[51, "B"]))
    assert counts == {"31": "2", "79": "1"}
    assert (last["metric"]["xid"], last["metric"]["err_msg"]) == ("79", "GPU has fallen off the bus")
    shared = set(last["metric"]) - {"err_code", "err_msg"}
    assert shared == set(prometheus.instant(promql(queries[51, "A"]))[0]["metric"])

import json
import re
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections import Counter
from dataclasses import replace

import promql_parser
import pytest
import yaml

import synthetic_exporter as synthetic
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


def panels_of(content):
    return {panel["id"]: panel for panel in content["panels"] if panel["type"] != "row"}


def queries_of(content):
    """Return each query by the ID of its panel and its letter."""
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
    """Return the query that Grafana sends to Prometheus."""
    values = {"__rate_interval": "2m", "__range": "1h", **dict.fromkeys(("node", "gpu", "namespace", "pod"), ".*")}
    return re.sub(r"\$([a-z_]+)", lambda found: {**values, **chosen}[found[1]], query)


def test_each_query_sets_the_scrape_interval_for_the_rate_interval(keywords):
    series = dcgm_series(**keywords)
    told = [target for panel in dashboard(series)["panels"] for target in panel.get("targets", [])]
    assert {target["interval"] for target in told} == {"60s"}
    assert any("$__rate_interval" in target["expr"] for target in told)


# --- queries ----------------------------------------------------------------------------------------------------


def test_every_query_is_promql():
    for series in VARIANTS.values():
        for query in queries_of(dashboard(series)).values():
            promql_parser.parse(promql(query))


def test_queries_use_only_metrics_of_the_exporter_and_of_kube_state_metrics():
    for series in VARIANTS.values():
        content = dashboard(series)
        named = set().union(*map(selectors_in, queries_of(content).values()))
        assert named <= series.metrics | FROM_OTHERS, series
        variables = " ".join(one.get("definition", "") for one in variables_of(content).values())
        assert len(selectors_in(variables)) == 1, series
        assert selectors_in(variables) <= series.metrics, series


NEVER_SHOWN = {
    # Metrics for alerts, or without a number to draw.
    "DCGM_FI_DEV_SLOWDOWN_TEMP",
    "DCGM_FI_DEV_VGPU_LICENSE_STATUS",
    # A counter in one release and a rate in the next. Profiling has the same metric by direction.
    "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL",
}


def test_the_dashboard_shows_every_exported_metric():
    for series in FULL:
        named = set().union(*map(selectors_in, queries_of(dashboard(series)).values()))
        assert series.metrics - named == series.metrics & NEVER_SHOWN - named, series


SUBSTITUTED = {
    # Total VRAM without the reserved part. Another metric counts GPUs and provides the variables.
    "DCGM_FI_DEV_FB_RESERVED": {14, 23},
    "nvidia_smi_memory_reserved_bytes": {14, 23},
    "DCGM_FI_DEV_GPU_TEMP": {11, 44},
}


def test_a_missing_metric_removes_only_its_own_queries():
    for series in (dcgm(job="dcgm"), nvidia_smi()):
        every = queries_of(dashboard(series))
        for metric in sorted(series.metrics - {"nvidia_smi_gpu_info"}):
            content = dashboard(replace(series, metrics=series.metrics - {metric}))
            left = queries_of(content)
            others = {place: query for place, query in every.items() if metric not in selectors_in(query)}
            substitutes = {place for place, query in left.items() if every[place] != query}
            assert {place: query for place, query in left.items() if place not in substitutes} == others, metric
            assert {panel for panel, _ in substitutes} == SUBSTITUTED.get(metric, set()), metric
            assert metric not in str(content["templating"]), metric


def test_every_query_first_takes_one_value_per_gpu():
    for name, series in DCGM.items():
        host = series.labels.node
        one_per_gpu = re.compile(
            rf"max by \({host}, gpu, UUID, modelName(, \w+)*\) "
            rf'\((rate\()?DCGM_\w+{{job="{re.escape(name)}",{host}=~"\$node",gpu=~"\$gpu"[^}}]*}}(\[\$__rate_interval\]\))?\)'
        )
        for place, query in queries_of(dashboard(series)).items():
            assert "DCGM" not in one_per_gpu.sub("X", query), place


def test_node_label_variables_legends_and_columns_follow_the_release():
    for name, series in DCGM.items():
        other = {"Hostname": "hostname", "hostname": "Hostname"}[series.labels.node]
        text = json_text(dashboard(series))
        assert series.labels.node in text, name
        assert not re.search(rf"\b{other}\b", text), name


def test_rows_panels_and_variables_depend_on_the_exported_metrics():
    seed = dashboard(dcgm("seed"), kube_state_metrics=False)
    assert rows_of(seed) == ["Fleet", "GPUs", "Power", "Pods"]
    assert "kube_" not in json_text(seed)
    texts = [panels_of(dashboard(dcgm(pods=pods)))[45]["options"] for pods in ("all", "one")]
    assert {text["mode"] for text in texts} == {"markdown"}
    assert "values of each pod" in texts[0]["content"]
    assert "shows only one of them" in texts[1]["content"]
    assert [44 in panels_of(dashboard(dcgm(pods=pods))) for pods in ("all", "one")] == [True, False]
    for series in (dcgm(pods="none"), nvidia_smi()):
        content = dashboard(series)
        assert "Pods" not in rows_of(content)
        assert set(variables_of(content)) == {"datasource", "node", "gpu"}
        assert not re.search(r"\$(pod|namespace)", json_text(content))
    unknown = dashboard(dcgm_series(job=None, metrics=dcgm().metrics, hostname_label="hostname", pods="all"))
    assert 10 not in panels_of(unknown)
    assert "job=" not in json_text(unknown)


# --- layout -----------------------------------------------------------------------------------------------------


def test_panels_fill_the_width_and_never_overlap():
    for series in VARIANTS.values():
        taken = Counter()
        for panel in dashboard(series)["panels"]:
            place = panel["gridPos"]
            assert place["w"] > 0, series
            taken.update(
                (x, y)
                for x in range(place["x"], place["x"] + place["w"])
                for y in range(place["y"], place["y"] + place["h"])
            )
        assert set(taken.values()) == {1}, series
        lines = {y for _, y in taken}
        assert set(taken) == {(x, y) for x in range(24) for y in range(len(lines))}, series


def test_ids_are_unique_and_the_same_with_fewer_metrics():
    for series in VARIANTS.values():
        content = dashboard(series)
        ids = [panel["id"] for panel in content["panels"]]
        assert len(set(ids)) == len(ids), series
        whole = panels_of(dashboard(FULL[series.dialect == "nvidia_smi"]))
        for number, panel in panels_of(content).items():
            assert (panel["title"], panel["type"]) == (whole[number]["title"], whole[number]["type"]), series


def test_each_part_reads_from_the_chosen_data_source():
    for kind in ["prometheus", "victoriametrics-metrics-datasource"]:
        content = dashboard(dcgm(), datasource_type=kind)
        source = variables_of(content).pop("datasource")
        assert (source["type"], source["query"]) == ("datasource", kind), kind
        reference = {"type": kind, "uid": "${datasource}"}
        for panel in panels_of(content).values():
            if panel["type"] != "text":
                assert [panel["datasource"], *(one["datasource"] for one in panel["targets"])] == [reference] * (
                    1 + len(panel["targets"])
                ), kind
        assert [variables_of(content)[name]["datasource"] for name in ("node", "gpu", "namespace", "pod")] == [
            reference
        ] * 4, kind


def test_variables_accept_several_values_or_all_and_filter_each_other():
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


def columns_of(series, number):
    (organize,) = [
        one["options"] for one in panels_of(dashboard(series))[number]["transformations"] if one["id"] == "organize"
    ]
    return organize


def test_tables_show_every_label_that_distinguishes_their_rows():
    for series in VARIANTS.values():
        for panel in panels_of(dashboard(series)).values():
            if panel["type"] == "table":
                (organize,) = (one["options"] for one in panel["transformations"] if one["id"] == "organize")
                for target in panel["targets"]:
                    (found,) = re.findall(r"^(?:label_replace\()?\(*(?:max|sum) by \(([\w, ]+)\)", target["expr"])
                    labels = set(found.split(", ")) - set(organize["excludeByName"])
                    assert labels <= organize["renameByName"].keys(), panel["title"]


def outline(content):
    """Return an outline of the dashboard for reviewers."""
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


def test_columns_keep_their_names_units_and_texts_if_others_are_missing():
    columns = columns_of(dcgm(), 41)
    titles = list(columns["renameByName"].values())
    assert titles[:8] == ["Namespace", "Pod", "Container", "Slot", "Node", "GPU", "Model", "MIG instance"]
    assert titles[8:] == ["Utilization", "VRAM used", "Power of the GPU", "Temperature of the GPU"]
    assert {"Time", "UUID"} <= columns["excludeByName"].keys()
    shared = list(columns_of(dcgm(pods="one"), 41)["renameByName"].values())
    assert shared[-4:-2] == ["Utilization of the GPU", "VRAM used of the GPU"]
    panel = panels_of(dashboard(dcgm(without=["DCGM_FI_DEV_GPU_UTIL"])))[41]
    units = {one["matcher"]["options"]: one["properties"][0]["value"] for one in panel["fieldConfig"]["overrides"]}
    assert units == {"VRAM used": "mbytes", "Power of the GPU": "watt", "Temperature of the GPU": "celsius"}
    gone = [f"DCGM_FI_DEV_{name}" for name in ("GPU_UTIL", "POWER_USAGE", "GPU_TEMP")]
    only = columns_of(dcgm(without=gone), 41)["renameByName"]
    assert (only["Value"], "Value #B" in only) == ("VRAM used", False)
    state = panels_of(dashboard(dcgm()))[55]["fieldConfig"]["overrides"][0]
    texts = state["properties"][1]["value"][0]["options"]
    assert (state["matcher"]["options"], texts["2"]["text"]) == ("Recovery", "node reboot")
    for series in FULL:
        dashed = panels_of(dashboard(series))[31]["fieldConfig"]["overrides"]
        assert [one["matcher"]["options"] for one in dashed] == ["/ limit$/"]


# --- as text ----------------------------------------------------------------------------------------------------


def test_the_text_is_the_same_for_the_same_metrics_in_any_order_and_readable():
    for series in VARIANTS.values():
        text = json_text(dashboard(series))
        assert json.loads(text) == dashboard(series)
        again = replace(series, metrics=frozenset(sorted(series.metrics, reverse=True)))
        assert json_text(dashboard(again)) == text
        # kubectl stores a copy of the object in an annotation, and all annotations together have a limit of 256 KiB.
        assert len(json.dumps(text)) < 150_000
        assert text.startswith('{\n  "uid": "gpu-constructs-gpus')
        assert text.endswith("}\n")
        assert [line for line in text.splitlines() if line != line.rstrip()] == []


def test_two_dashboards_share_no_mutable_parts():
    content = dashboard(dcgm())
    for panel in panels_of(content).values():
        panel.get("datasource", {})["uid"] = "mine"
    assert "${datasource}" in json_text(content)
    assert "mine" not in json_text(dashboard(dcgm()))


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
    """Merge the metric families of several jobs, with each name once."""
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
    # nvidia-smi reports the VRAM of the whole GPU in MIG mode, and DCGM that of each instance.
    split = [instance for gpu in synthetic.FLEET for instance in gpu.instances]
    is_dcgm = series.dialect == "dcgm"
    used = total("used") + (sum(instance.used for instance in split) if is_dcgm else 0)
    whole = total("total", where=lambda gpu: not (is_dcgm and gpu.instances))
    whole += sum(instance.total for instance in split) if is_dcgm else 0
    # Without the metric of reserved VRAM, the share is slightly higher.
    is_told = not is_dcgm or "DCGM_FI_DEV_FB_RESERVED" in series.metrics
    assert number(14) == pytest.approx(used / (whole - (0 if is_told else 3 * 500 + 2 * 100)))
    assert number(13) == used
    assert number(12) == pytest.approx((90 + 0 + 98) / 3)
    assert number(10, "A") == number(10, "B") == 2
    assert number(110) == (3 if is_dcgm else 1)
    assert number(11, node="node-a") == 2
    assert number(16, "A", node="node-a", gpu="1") == 20


@pytest.mark.system_tools
@in_prometheus
def test_energy_is_complete_if_one_pod_follows_another(prometheus, series):
    (energy,) = (query for place, query in queries_of(dashboard(series)).items() if place == (32, "A"))
    found = {
        one["metric"]["uuid" if series.dialect == "nvidia_smi" else "UUID"]: float(one["value"][1])
        for one in prometheus.instant(promql(energy))
    }
    assert found == pytest.approx({gpu.uuid: gpu.watts / 1000 for gpu in synthetic.FLEET}, rel=0.03)


@pytest.mark.system_tools
def test_pods_that_share_a_gpu_have_separate_values(prometheus):
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
def test_a_single_named_pod_shows_the_values_of_the_whole_gpu(prometheus):
    queries = queries_of(dashboard(dcgm("recommended", "3.4.2", pods="one")))
    (shared,) = prometheus.instant(promql(queries[42, "A"], node="node-a"))
    assert (shared["metric"]["pod"], shared["value"][1]) == ("speech", "90")


@pytest.mark.system_tools
def test_mig_instances_have_separate_values(prometheus):
    queries = queries_of(dashboard(dcgm("profiling")))
    for panel, letter in ((22, "A"), (61, "A"), (62, "A"), (63, "A"), (65, "A"), (65, "B"), (66, "C")):
        found = prometheus.instant(promql(queries[panel, letter], node="node-b", gpu="0"))
        assert sorted(one["metric"]["GPU_I_ID"] for one in found) == ["7", "8"], panel
    assert len(prometheus.instant(promql(queries[31, "A"], node="node-b", gpu="0"))) == 1


@pytest.mark.system_tools
def test_requests_do_not_count_pods_that_have_ended(prometheus):
    queries = queries_of(dashboard(dcgm("recommended")))

    def by(label, place):
        return {one["metric"][label]: float(one["value"][1]) for one in prometheus.instant(promql(queries[place]))}

    assert by("resource", (71, "A")) == {"nvidia_com_gpu": 5, "nvidia_com_mig_1g_10gb": 1}
    assert by("resource", (71, "B")) == {"nvidia_com_gpu": 5, "nvidia_com_mig_1g_10gb": 2}
    assert by("resource", (72, "A")) == {"nvidia_com_gpu": 1, "nvidia_com_mig_1g_10gb": 0.5}
    assert by("pod", (73, "A")) == {"waits": 1}
    assert by("node", (74, "C"))["node-a"] == 3


@pytest.mark.system_tools
def test_an_xid_is_one_row_with_its_count_and_its_meaning(prometheus):
    queries = queries_of(dashboard(dcgm("recommended")))
    counts = {one["metric"]["xid"]: one["value"][1] for one in prometheus.instant(promql(queries[51, "A"]))}
    (last,) = prometheus.instant(promql(queries[51, "B"]))
    assert counts == {"31": "2", "79": "1"}
    assert (last["metric"]["xid"], last["metric"]["err_msg"]) == ("79", "GPU has fallen off the bus")
    shared = set(last["metric"]) - {"err_code", "err_msg"}
    assert shared == set(prometheus.instant(promql(queries[51, "A"]))[0]["metric"])

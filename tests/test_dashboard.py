import json
import re
import subprocess

import pytest

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.observability.dashboard import dashboard, dashboard_json
from gpu_constructs.observability.metrics import Metric, default_metrics

RELEASES = {"3.4.2": "Hostname", "4.8.2": "Hostname", "4.8.3": "hostname"}
BASIC = [
    Metric(field=f"DCGM_FI_DEV_{name}", prometheus_type="gauge", help="")
    for name in ("GPU_UTIL", "FB_USED", "GPU_TEMP", "POWER_USAGE", "SM_CLOCK", "MEM_CLOCK")
]


def metrics_of(release="4.8.3", *, without=()):
    return [metric for metric in default_metrics(release) if metric.field not in without]


def board(release="4.8.3", *, without=()):
    return dashboard(metrics=metrics_of(release, without=without), release=release)


def panels_of(content):
    return {panel["id"]: panel for panel in content["panels"] if panel["type"] != "row"}


def queries_of(content):
    return [target["expr"] for panel in panels_of(content).values() for target in panel["targets"]]


def variables_of(content):
    return {variable["name"]: variable for variable in content["templating"]["list"]}


def named_in(text):
    return set(re.findall(r"DCGM_\w+", text))


def titles_of(content):
    return [panel["title"] for panel in panels_of(content).values()]


@pytest.mark.parametrize("release", RELEASES)
def test_every_query_and_variable_names_only_exported_metrics(release):
    content = board(release)
    exported = {metric.field for metric in metrics_of(release) if metric.prometheus_type != "label"}
    named = named_in(" ".join(queries_of(content))) | named_in(json.dumps(content["templating"]))
    assert named <= exported
    assert len(named) > 20


@pytest.mark.parametrize("field", [metric.field for metric in default_metrics("4.8.3")])
def test_a_metric_that_is_not_exported_is_named_nowhere_and_the_other_panels_stay(field):
    full, reduced = panels_of(board()), panels_of(board(without=[field]))
    assert field not in json.dumps(board(without=[field]))
    assert reduced.keys() <= full.keys()
    for number, panel in full.items():
        if any(field not in target["expr"] for target in panel["targets"]):
            assert reduced[number]["title"] == panel["title"]
        elif field == "DCGM_FI_DEV_GPU_TEMP" and panel["title"] == "GPUs":
            assert "DCGM_FI_DEV_GPU_UTIL" in reduced[number]["targets"][0]["expr"]
        elif field == "DCGM_FI_DEV_FB_RESERVED":
            assert "DCGM_FI_DEV_FB_FREE" in reduced[number]["targets"][0]["expr"]
        else:
            assert number not in reduced


def test_a_row_without_panels_is_left_out():
    profiling = [metric.field for metric in metrics_of() if metric.field.startswith("DCGM_FI_PROF_")]
    rows = [panel["title"] for panel in board(without=profiling)["panels"] if panel["type"] == "row"]
    assert rows == ["Overview", "GPUs", "Power", "Pods", "Errors"]


def test_the_basic_metrics_alone_give_their_panels():
    assert titles_of(dashboard(metrics=BASIC, release="4.8.3")) == [
        "GPUs",
        "Mean utilisation",
        "VRAM used",
        "Hottest GPU",
        "Power",
        "Utilisation",
        "VRAM used",
        "Temperature",
        "SM clock",
        "Memory clock",
        "Power",
        "Pods with a GPU",
    ]


def test_the_default_metrics_show_everything_an_operator_asks_for():
    assert set(titles_of(board())) >= {
        "Utilisation",
        "VRAM used",
        "VRAM share",
        "Temperature",
        "Power",
        "SM clock",
        "Memory clock",
        "Energy in time range",
        "Last XID",
        "Pods with a GPU",
    }


@pytest.mark.parametrize(("release", "host"), RELEASES.items())
def test_every_query_first_takes_one_value_per_gpu(release, host):
    one_per_gpu = re.compile(
        rf"max by \({host}, gpu, UUID, modelName(, \w+)*\) "
        rf'\((increase\()?DCGM_\w+{{{host}=~"\$node",gpu=~"\$gpu"(,pod!="")?}}(\[\$__\w+\]\))?\)'
    )
    for query in queries_of(board(release)):
        rest = one_per_gpu.sub("X", query)
        assert "X" in rest
        assert "DCGM" not in rest, query


@pytest.mark.parametrize(("release", "host"), RELEASES.items())
def test_node_label_variables_legends_and_columns_follow_the_release(release, host):
    content = board(release)
    variables = variables_of(content)
    assert variables["node"]["definition"] == f"label_values(DCGM_FI_DEV_GPU_TEMP, {host})"
    assert variables["gpu"]["definition"] == f'label_values(DCGM_FI_DEV_GPU_TEMP{{{host}=~"$node"}}, gpu)'
    other = {"Hostname": "hostname", "hostname": "Hostname"}[host]
    assert not re.search(rf"\b{other}\b", json.dumps(content))


def test_each_part_reads_from_the_chosen_data_source():
    content = board()
    assert variables_of(content)["datasource"]["type"] == "datasource"
    reference = {"type": "prometheus", "uid": "${datasource}"}
    for panel in panels_of(content).values():
        assert panel["datasource"] == reference
        assert all(target["datasource"] == reference for target in panel["targets"])
    assert all(variables_of(content)[name]["datasource"] == reference for name in ("node", "gpu"))


@pytest.mark.parametrize("without", [(), ("DCGM_FI_DEV_FB_FREE",), ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_GPU_TEMP")])
def test_no_two_panels_share_a_place(without):
    taken = {}
    for panel in board(without=without)["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        for cell in [
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        ]:
            assert cell not in taken, (panel["title"], taken[cell])
            taken[cell] = panel["title"]


def test_panels_are_of_kinds_that_grafana_still_has():
    content = board()
    assert {panel["type"] for panel in content["panels"]} == {"row", "stat", "timeseries", "table"}
    assert content["schemaVersion"] >= 39
    assert "__inputs" not in content


def test_ids_are_unique_and_the_uid_is_fixed():
    content = board()
    ids = [panel["id"] for panel in content["panels"]]
    assert len(set(ids)) == len(ids)
    assert content["uid"] == "gpu-constructs-gpus"
    assert dashboard(metrics=BASIC, release="4.8.3", uid="mine", title="Mine")["uid"] == "mine"


def test_graphs_ask_for_ranges_and_everything_else_for_an_instant():
    for panel in panels_of(board()).values():
        for target in panel["targets"]:
            assert target["range"] is (panel["type"] == "timeseries")
            assert target["instant"] is not target["range"]
            assert (target["format"] == "table") is (panel["type"] == "table")


def columns_of(content, title):
    (panel,) = [panel for panel in panels_of(content).values() if panel["title"] == title]
    (organize,) = [one["options"] for one in panel["transformations"] if one["id"] == "organize"]
    return organize


def test_the_pods_table_names_pod_and_gpu_and_hides_the_rest():
    columns = columns_of(board(), "Pods with a GPU")
    assert list(columns["renameByName"].values())[:5] == ["Namespace", "Pod", "Container", "Node", "GPU"]
    assert columns["renameByName"]["Value #A"] == "GPU utilisation"
    assert columns["excludeByName"] == {"Time": True, "UUID": True, "Value": True}


def test_a_table_with_one_query_left_keeps_its_value():
    columns = columns_of(board(without=["DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_POWER_USAGE"]), "Pods with a GPU")
    assert columns["renameByName"]["Value"] == "GPU memory used"
    assert "Value" not in columns["excludeByName"]


def test_the_xid_table_shows_code_and_meaning_but_not_the_bare_value():
    columns = columns_of(board(), "Last XID")
    assert list(columns["renameByName"].values()) == ["Node", "GPU", "Model", "XID", "Meaning"]
    assert columns["excludeByName"]["Value"] is True


def test_the_text_is_the_same_for_the_same_metrics_in_any_order():
    metrics = metrics_of()
    text = dashboard_json(metrics=metrics, release="4.8.3")
    assert dashboard_json(metrics=metrics[::-1], release="4.8.3") == text
    assert json.loads(text) == board()


def test_the_text_is_readable_and_fits_into_a_config_map_that_kubectl_applies():
    text = dashboard_json(metrics=metrics_of(), release="4.8.3")
    assert text.startswith('{\n  "uid": "gpu-constructs-gpus",\n  "title": "NVIDIA GPUs",\n')
    assert text.endswith("}\n")
    assert [line for line in text.splitlines() if line != line.rstrip()] == []
    assert len(text.encode()) < 200_000


def test_a_list_without_values_is_refused():
    with pytest.raises(GpuConstructsError, match=r"^metrics must hold at least one gauge or counter"):
        dashboard(metrics=[], release="4.8.3")


def promql(query):
    """The query as Prometheus gets it from Grafana."""
    values = {"$__rate_interval": "2m", "$__range": "6h", "$node": ".*", "$gpu": ".*"}
    for name, value in values.items():
        query = query.replace(name, value)
    return query


def promtool(folder, command, content):
    file = folder / f"{command}.yaml"
    file.write_text(json.dumps(content))
    return subprocess.run(["promtool", command, "rules", str(file)], capture_output=True, text=True, check=False)


def rules(queries):
    return {
        "groups": [
            {
                "name": "dashboard",
                "rules": [{"record": f"query:{n}", "expr": promql(query)} for n, query in enumerate(queries)],
            }
        ]
    }


@pytest.mark.system_tools
@pytest.mark.parametrize("release", RELEASES)
def test_prometheus_understands_every_query(release, tmp_path):
    done = promtool(tmp_path, "check", rules(queries_of(board(release))))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.system_tools
def test_a_gpu_shared_by_four_pods_counts_once(tmp_path):
    gpu = 'hostname="n1",gpu="0",UUID="GPU-1",modelName="NVIDIA GeForce RTX 3090"'
    idle = 'hostname="n2",gpu="0",UUID="GPU-2",modelName="NVIDIA GeForce RTX 3090"'
    values = {
        "DCGM_FI_DEV_GPU_UTIL": (80, 0),
        "DCGM_FI_DEV_FB_USED": (12000, 0),
        "DCGM_FI_DEV_FB_FREE": (11000, 23000),
        "DCGM_FI_DEV_FB_RESERVED": (1000, 1000),
        "DCGM_FI_DEV_GPU_TEMP": (70, 30),
        "DCGM_FI_DEV_POWER_USAGE": (300, 20),
        "DCGM_FI_DEV_XID_ERRORS": (31, 0),
    }
    series = [
        {"series": f'{name}{{{gpu},namespace="ai",pod="pod-{pod}",container="main"}}', "values": f"{busy}x10"}
        for name, (busy, _) in values.items()
        for pod in range(4)
    ] + [{"series": f"{name}{{{idle}}}", "values": f"{free}x10"} for name, (_, free) in values.items()]
    expected = {
        "GPUs": 2,
        "Mean utilisation": 40,
        "VRAM used": 12000,
        "VRAM share": 0.25,
        "Hottest GPU": 70,
        "Power": 320,
        "GPUs with an XID": 1,
    }
    overview = {
        panel["title"]: promql(panel["targets"][0]["expr"])
        for panel in panels_of(board()).values()
        if panel["type"] == "stat" and panel["title"] in expected
    }
    done = promtool(
        tmp_path,
        "test",
        {
            "rule_files": [],
            "tests": [
                {
                    "interval": "1m",
                    "input_series": series,
                    "promql_expr_test": [
                        {
                            "expr": overview[title],
                            "eval_time": "5m",
                            "exp_samples": [{"labels": "{}", "value": value}],
                        }
                        for title, value in expected.items()
                    ],
                }
            ],
        },
    )
    assert done.returncode == 0, done.stdout + done.stderr

"""The parity proof itself: what it compares, what it leaves out and what it prints of it."""

import json

import pytest
import yaml

import helm_like
import parity
import parity_smi_exporter
from helm_like import NEW
from parity_cases import load
from parity_chart import CHART
from tables import beside, cases

NAME, NFD = "r-nvidia-device-plugin", "r-node-feature-discovery"

VALUES = beside(__file__, "parity")["values"]
SMI_VALUES = {"prometheusRule": {"enabled": True}, "serviceMonitor": {"enabled": True}}
SMI = parity_smi_exporter.CHART


def write(folder, *, values=VALUES, version=NEW, render=None, chart=CHART):
    """Write a case as a user of Helm does."""
    folder.mkdir(parents=True, exist_ok=True)
    if render is None:
        render = helm_like.render(chart, values, version)
    (folder / "values.yaml").write_text(yaml.safe_dump(values))
    (folder / "render.yaml").write_text("".join(f"---\n{json.dumps(manifest)}\n" for manifest in render))
    release = helm_like.RELEASES.get(chart, "r")
    facts = {"chart": chart, "version": version, "release": release, "namespace": helm_like.NAMESPACE}
    index = {"one": {**facts, "values": "values.yaml", "render": "render.yaml"}}
    (folder / "cases.json").write_text(json.dumps(index))
    return folder


def run(capsys, *arguments):
    code = parity.main([str(argument) for argument in arguments])
    return code, capsys.readouterr().out


CHARTS = beside(__file__, "parity")["charts"]


@pytest.mark.parametrize(("case", "told"), CHARTS)
def test_a_case_whose_differences_are_all_intended_passes_and_names_them(tmp_path, capsys, case, told):
    code, printed = run(capsys, write(tmp_path / "a" / "b", **case).parent)
    first, *rows, last = printed.splitlines()
    assert code == 0
    assert first.startswith("a/b/one: ")
    assert first.endswith(" 0 unexplained differences")
    assert last == "1 cases compared: 1 explained, 0 not; 0 skipped"
    assert any(told in row for row in rows)


def find(render, kind, name):
    return next(m for m in render if (m["kind"], m["metadata"]["name"]) == (kind, name))


def pod_of(render, name):
    return find(render, "DaemonSet", name)["spec"]["template"]["spec"]


def main_of(render, name=NAME):
    containers = pod_of(render, name)["containers"]
    return next(container for container in containers if not container["name"].endswith("-sidecar"))


def setting(render):
    main_of(render)["env"].append({"name": "DEVICE_ID_STRATEGY", "value": "index"})


def verb(render):
    find(render, "ClusterRole", f"{NAME}-role")["rules"][0]["verbs"].append("delete")


def toleration(render):
    pod_of(render, f"{NFD}-worker")["tolerations"].append({"operator": "Exists"})


def mount(render):
    main_of(render)["volumeMounts"][0]["subPath"] = "etc"


def unheard_of(render):
    pod_of(render, NAME)["overhead"] = {"cpu": "1"}


def replicas(render):
    files = find(render, "ConfigMap", f"{NAME}-configs")["data"]
    files["default"] = files["default"].replace("4", "5")


def missing(render):
    render.remove(find(render, "ServiceAccount", f"{NFD}-worker"))


def unknown(render):
    render.append({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"{NAME}-token", "namespace": "gpu"}})


CHANGES = [
    (setting, "settings.flags.plugin.deviceIDStrategy: chart 'index', ours 'uuid'"),
    (verb, "rules[delete nodes]: chart True, ours nothing"),
    (toleration, 'pod.tolerations[{"operator":"Exists"}]: chart True, ours nothing'),
    (mount, "subPath: chart 'etc', ours nothing"),
    (unheard_of, "pod.overhead.cpu: chart '1', ours nothing"),
    (replicas, "settings.sharing.resources[nvidia.com/gpu]: chart 5, ours 4"),
    (missing, "nfd-worker ServiceAccount: apiVersion: chart nothing, ours 'v1'"),
    (unknown, f"{NAME}-token Secret: : chart 'an object of unknown role"),
]


@pytest.mark.parametrize(("change", "told"), CHANGES, ids=lambda value: getattr(value, "__name__", ""))
def test_a_changed_render_is_unexplained(tmp_path, capsys, change, told):
    render = helm_like.render(CHART, VALUES)
    change(render)
    code, printed = run(capsys, write(tmp_path, render=render))
    assert code == 1
    assert [line for line in printed.splitlines() if line.startswith("    UNEXPLAINED") and told in line]
    assert printed.splitlines()[-1] == "1 cases compared: 0 explained, 1 not; 0 skipped"


def test_a_chart_that_cannot_be_mapped_is_named_and_never_counted_as_passed(tmp_path, capsys):
    others = [("dcgm-exporter", "4.4.0"), ("nvidia-device-plugin", "0.19.3"), (SMI, "1.1.0"), ("another", NEW)]
    for chart, version in others:
        write(tmp_path / "b" / chart, chart=chart, version=version, render=[])
    code, printed = run(capsys, tmp_path)
    assert code == 1
    assert "NOTHING WAS COMPARED" in printed
    write(tmp_path / "a")
    code, printed = run(capsys, tmp_path)
    assert code == 0
    for chart, version in others:
        assert f"SKIPPED 1 of chart {chart} {version}: this command does not compare this chart" in printed
    assert "1 cases compared: 1 explained, 0 not; 4 skipped" in printed


@cases
def test_a_case_that_cannot_be_read_is_a_failure(tmp_path, capsys, file, text, told):
    (write(tmp_path) / file).write_text(text)
    code, printed = run(capsys, tmp_path)
    assert code == 1
    assert told in printed


def test_no_case_at_all_is_a_failure(tmp_path, capsys):
    for folder, told in ((tmp_path, "NOTHING WAS COMPARED"), (tmp_path / "none", "none: not a folder")):
        code, printed = run(capsys, folder)
        assert code == 1
        assert told in printed


def test_a_switch_of_the_wrong_type_is_compared_with_what_it_turns_on_in_the_chart(tmp_path, capsys):
    values = {**VALUES, "gfd": {"enabled": "false"}}
    # Text is true for a template, and Helm takes a condition that is no boolean for none at all.
    render = helm_like.render(CHART, {**VALUES, "gfd": {"enabled": True}})
    code, printed = run(capsys, "--verbose", write(tmp_path, values=values, render=render))
    command = "gfd DaemonSet: pod.containers[gpu-feature-discovery-ctr].command[0]"
    assert code == 0
    assert "values.gfd.enabled is dropped" in printed
    assert f"{command}: chart 'gpu-feature-discovery', ours nothing" in printed
    main_of(render, f"{NAME}-gpu-feature-discovery")["command"] = ["other"]
    code, printed = run(capsys, write(tmp_path, values=values, render=render))
    assert code == 1
    assert command in printed


def test_plain_words_are_read_as_kubernetes_reads_them():
    text = "[n, yes, ~, 017, 0o17, 0x1f, +1_000, 1e3, 1.5, 2024-01-02, 12:30, 1.2.3, 'n', 08]"
    read = [False, True, None, 15, 15, 31, 1000, 1000, 1.5, "2024-01-02", "12:30", "1.2.3", "n", 8]
    assert repr(load(text)) == repr(read)
    assert load("{1: x, yes: z, a: 1, a: 2}") == {"1": "x", "true": "z", "a": 2}

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import deviations
import dist
import exporter_deviations
import exporter_helm_like
import helm_like
import parity
import parity_compare
import parity_exporter
import parity_smi_exporter
import smi_deviations
import smi_helm_like
from helm_like import NAME, NEW, NFD, OLD

VALUES = {
    "runtimeClassName": "nvidia",
    "gfd": {"enabled": True, "noTimestamp": True},
    "config": {"map": {"default": "sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}"}},
}


def write(folder, *, name="one", values=None, version=NEW, render=None, **facts):
    """Write a case as whoever runs Helm would."""
    values = VALUES if values is None else values
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.values.yaml").write_text(yaml.safe_dump(values))
    made = helm_like.render(values, version) if render is None else render
    (folder / f"{name}.yaml").write_text("".join(f"---\n{json.dumps(manifest)}\n" for manifest in made))
    index = folder / "cases.json"
    cases = json.loads(index.read_text()) if index.exists() else {}
    cases[name] = {
        "chart": "nvidia-device-plugin",
        "version": version,
        "release": helm_like.RELEASE,
        "namespace": helm_like.NAMESPACE,
        "values": f"{name}.values.yaml",
        "render": f"{name}.yaml",
        **facts,
    }
    index.write_text(json.dumps(cases))
    return folder


def run(capsys, *arguments):
    code = parity.main([str(argument) for argument in arguments])
    return code, capsys.readouterr().out


@pytest.mark.parametrize("version", [OLD, NEW])
def test_a_case_whose_differences_are_all_intended_passes(tmp_path, capsys, version):
    code, printed = run(capsys, write(tmp_path / "a" / "b", version=version).parent)
    assert code == 0
    first, *rows, last = printed.splitlines()
    assert first.startswith("a/b/one: ")
    assert first.endswith(" 0 unexplained differences")
    assert last == "1 cases compared: 1 explained, 0 not; 0 skipped"
    (first_deviation, *_) = deviations.DEVIATIONS
    assert any(row.split()[0] == "D1" and first_deviation.what in row and first_deviation.why in row for row in rows)


def test_a_dropped_value_is_printed_with_its_deviation(tmp_path, capsys):
    _, printed = run(capsys, write(tmp_path))
    (line,) = (line for line in printed.splitlines() if "values.gfd.noTimestamp is dropped" in line)
    before = printed[: printed.index(line)].splitlines()
    assert before[-1].split()[:2] == ["D40", "1"]


def test_every_field_is_printed_on_request(tmp_path, capsys):
    folder = write(tmp_path)
    _, short = run(capsys, folder)
    code, long = run(capsys, "--verbose", folder)
    field = "plugin DaemonSet: metadata.labels[app.kubernetes.io/managed-by]: chart 'Helm', ours 'cdk8s'"
    assert field in long
    assert field not in short
    assert code == 0


def find(render, kind, name):
    return next(m for m in render if (m["kind"], m["metadata"]["name"]) == (kind, name))


def main_of(manifest):
    containers = manifest["spec"]["template"]["spec"]["containers"]
    return next(container for container in containers if not container["name"].endswith("-sidecar"))


def image(render):
    main_of(find(render, "DaemonSet", NAME))["image"] = "nvcr.io/nvidia/k8s-device-plugin:v0.20.1"


def variable(render):
    main_of(find(render, "DaemonSet", NAME))["env"].append({"name": "KUBELET_SOCKET", "value": "/x"})


def setting(render):
    main_of(find(render, "DaemonSet", NAME))["env"].append({"name": "DEVICE_ID_STRATEGY", "value": "index"})


def mount(render):
    main_of(find(render, "DaemonSet", NAME))["volumeMounts"][0]["mountPath"] = "/plugins"


def host_path(render):
    find(render, "DaemonSet", NAME)["spec"]["template"]["spec"]["volumes"][0]["hostPath"]["path"] = "/plugins"


def verb(render):
    find(render, "ClusterRole", f"{NAME}-role")["rules"][0]["verbs"].append("delete")


def verb_of_nfd(render):
    find(render, "ClusterRole", NFD)["rules"][0]["verbs"].append("delete")


def selector(render):
    find(render, "DaemonSet", NAME)["spec"]["selector"]["matchLabels"]["app.kubernetes.io/instance"] = "other"


def toleration(render):
    find(render, "DaemonSet", f"{NFD}-worker")["spec"]["template"]["spec"]["tolerations"].append({"operator": "Exists"})


def privileged(render):
    main_of(find(render, "DaemonSet", NAME))["securityContext"] = {"privileged": True}


def namespace_of_processes(render):
    find(render, "DaemonSet", NAME)["spec"]["template"]["spec"]["hostPID"] = True


def definition(render):
    made = find(render, "CustomResourceDefinition", "nodefeatures.nfd.k8s-sigs.io")
    made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["type"] = "string"


def replicas(render):
    files = find(render, "ConfigMap", f"{NAME}-configs")["data"]
    files["default"] = files["default"].replace("4", "5")


def another_file(render):
    find(render, "ConfigMap", f"{NAME}-configs")["data"]["more"] = "version: v1"


def setting_of_nfd(render):
    find(render, "ConfigMap", f"{NFD}-worker-conf")["data"]["nfd-worker.conf"] = '{"sources": {"pci": {}}}'


def hook(render):
    main_of(find(render, "Job", f"{NFD}-prune"))["args"] = ["-prune", "-v=9"]


def flag(render):
    main_of(find(render, "Deployment", f"{NFD}-master"))["args"].append("-enable-taints")


def probe(render):
    main_of(find(render, "Deployment", f"{NFD}-master"))["livenessProbe"]["periodSeconds"] = 3


def missing(render):
    render.remove(find(render, "ServiceAccount", f"{NFD}-worker"))


def unknown(render):
    render.append({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"{NAME}-token", "namespace": "gpu"}})


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (image, "nvidia-device-plugin-ctr].image: chart 'nvcr.io/nvidia/k8s-device-plugin:v0.20.1'"),
        (variable, "env[KUBELET_SOCKET]: chart '/x', ours nothing"),
        (setting, "settings.flags.plugin.deviceIDStrategy: chart 'index', ours 'uuid'"),
        (mount, "mounts[/plugins].hostPath.path"),
        (host_path, "hostPath.path: chart '/plugins', ours '/var/lib/kubelet/device-plugins'"),
        (verb, "rules[delete nodes]: chart True, ours nothing"),
        (verb_of_nfd, "rules[delete namespaces]: chart True, ours nothing"),
        (selector, "spec.selector.matchLabels[app.kubernetes.io/instance]: chart 'other', ours 'r'"),
        (toleration, 'pod.tolerations[{"operator":"Exists"}]: chart True, ours nothing'),
        (privileged, "securityContext.privileged: chart True, ours nothing"),
        (namespace_of_processes, "pod.hostPID: chart True, ours nothing"),
        (definition, "properties[spec].type: chart 'string', ours 'object'"),
        (replicas, "settings.sharing.resources[nvidia.com/gpu]: chart 5, ours 4"),
        (another_file, "data[more]: chart 'version: v1', ours nothing"),
        (setting_of_nfd, "sources.pci.deviceLabelFields[0]: chart nothing, ours 'vendor'"),
        (hook, "nfd-prune Job: pod.containers[nfd-master].args[-v]: chart '9', ours nothing"),
        (flag, "args[-enable-taints]: chart '', ours nothing"),
        (probe, "livenessProbe.periodSeconds: chart 3, ours nothing"),
        (missing, "nfd-worker ServiceAccount: apiVersion: chart nothing, ours 'v1'"),
        (unknown, f"{NAME}-token Secret: : chart 'an object of unknown role"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_changed_render_is_unexplained(tmp_path, capsys, change, told):
    render = helm_like.render(VALUES)
    change(render)
    code, printed = run(capsys, write(tmp_path, render=render))
    assert code == 1
    assert [line for line in printed.splitlines() if line.startswith("    UNEXPLAINED") and told in line]
    assert printed.splitlines()[-1] == "1 cases compared: 0 explained, 1 not; 0 skipped"


@pytest.mark.parametrize(
    ("chart", "version"),
    [
        ("dcgm-exporter", "4.4.0"),
        ("nvidia-device-plugin", "0.19.3"),
        ("nvidia-gpu-exporter", "1.1.0"),
        ("another", NEW),
    ],
)
def test_a_chart_that_cannot_be_mapped_is_named_and_never_counted_as_passed(tmp_path, capsys, chart, version):
    write(tmp_path / "b", chart=chart, version=version, render=[])
    skipped = f"SKIPPED 1 of chart {chart} {version}: this library does not read its values"
    code, printed = run(capsys, tmp_path)
    assert code == 1
    assert skipped in printed
    assert "NOTHING WAS COMPARED" in printed
    write(tmp_path / "a")
    code, printed = run(capsys, tmp_path)
    assert code == 0
    assert skipped in printed
    assert "1 cases compared: 1 explained, 0 not; 1 skipped" in printed


@pytest.mark.parametrize("version", parity_exporter.VERSIONS)
def test_cases_of_the_exporter_are_compared_with_deviations_of_their_own(tmp_path, capsys, version):
    where = {"release": exporter_helm_like.RELEASE, "namespace": exporter_helm_like.NAMESPACE}
    render = exporter_helm_like.render({}, version)
    write(tmp_path, chart="dcgm-exporter", version=version, values={}, render=render, **where)
    code, printed = run(capsys, tmp_path)
    assert code == 0
    assert "1 cases compared: 1 explained" in printed
    first = exporter_deviations.DEVIATIONS[0]
    assert any(row.split()[:1] == ["E1"] and first.what in row for row in printed.splitlines())
    find(render, "Service", "dcgm-exporter")["spec"]["ports"][0]["port"] = 1
    write(tmp_path, chart="dcgm-exporter", version=version, values={}, render=render, **where)
    code, printed = run(capsys, tmp_path)
    assert code == 1
    assert "UNEXPLAINED  exporter Service: spec.ports[metrics].port: chart 1, ours 9400" in printed


def test_cases_of_the_exporter_without_privileges_are_compared_with_deviations_of_their_own(tmp_path, capsys):
    facts = {"chart": parity_smi_exporter.CHART, "version": parity_smi_exporter.VERSION}
    where = {"release": smi_helm_like.RELEASE, "namespace": smi_helm_like.NAMESPACE}
    values = {"prometheusRule": {"enabled": True}, "serviceMonitor": {"enabled": True}}
    render = smi_helm_like.render(values)
    write(tmp_path, values=values, render=render, **facts, **where)
    code, printed = run(capsys, tmp_path)
    assert code == 0
    assert "1 cases compared: 1 explained" in printed
    first = smi_deviations.DEVIATIONS[0]
    assert any(row.split()[:1] == ["N1"] and first.what in row for row in printed.splitlines())
    assert "values.prometheusRule.enabled is dropped" in printed
    find(render, "Service", parity_smi_exporter.CHART)["spec"]["ports"][0]["port"] = 1
    write(tmp_path, values=values, render=render, **facts, **where)
    code, printed = run(capsys, tmp_path)
    assert code == 1
    assert "UNEXPLAINED  exporter Service: spec.ports[http].port: chart 1, ours 9835" in printed


def test_no_case_at_all_is_a_failure(tmp_path, capsys):
    code, printed = run(capsys, tmp_path)
    assert code == 1
    assert "NOTHING WAS COMPARED" in printed


def test_cases_of_several_folders_and_indexes_are_all_run(tmp_path, capsys):
    write(tmp_path / "a" / "deep" / "down")
    write(tmp_path / "a", name="two", version=OLD)
    write(tmp_path / "b", name="three", values={})
    code, printed = run(capsys, tmp_path / "a", tmp_path / "b")
    assert code == 0
    assert "3 cases compared: 3 explained" in printed
    code, printed = run(capsys, "--only", "three", tmp_path / "a", tmp_path / "b")
    assert "1 cases compared: 1 explained" in printed


def test_a_case_that_crashes_fails_and_the_others_still_run(tmp_path, capsys, monkeypatch):
    write(tmp_path, name="bad", values={"migStrategy": "none"})
    write(tmp_path, name="good")
    synthesize = parity_compare.synthesize

    def crash(release):
        if release.value("migStrategy"):
            raise RuntimeError("no way")
        return synthesize(release)

    monkeypatch.setattr(parity, "synthesize", crash)
    code, printed = run(capsys, tmp_path)
    assert code == 1
    assert "bad: CRASHED: RuntimeError: no way" in printed
    assert "2 cases compared: 1 explained, 1 not" in printed


@pytest.mark.parametrize(
    ("file", "text", "told"),
    [
        ("one.yaml", "kind: [", "CRASHED: UnreadableCase"),
        ("one.yaml", "- a", "holds a document that is no object"),
        ("one.values.yaml", "[]", "holds no mapping"),
        ("cases.json", "{", "UNREADABLE"),
        ("cases.json", '{"one": {"chart": "nvidia-device-plugin"}}', "UNREADABLE"),
    ],
)
def test_a_case_that_cannot_be_read_is_a_failure(tmp_path, capsys, file, text, told):
    (write(tmp_path) / file).write_text(text)
    code, printed = run(capsys, tmp_path)
    assert code == 1
    assert told in printed


def test_a_folder_that_is_not_there_is_a_failure(tmp_path, capsys):
    code, printed = run(capsys, tmp_path / "none")
    assert code == 1
    assert "none: not a folder" in printed


def test_the_name_of_a_case_decides_nothing(tmp_path, capsys):
    for name in ("one", "default", "talos-tainted", "x y"):
        write(tmp_path, name=name)
    _, printed = run(capsys, tmp_path)
    told = printed.split(f"{tmp_path.name}/")[1:]
    told[-1] = told[-1].rpartition("4 cases")[0]
    assert len({part.partition(": ")[2] for part in told}) == 1


def test_a_switch_of_the_wrong_type_is_compared_with_what_it_turns_on_in_the_chart(tmp_path, capsys):
    values = {**VALUES, "gfd": {"enabled": "false"}}
    # Text is true for a template, and Helm takes a condition that is no boolean for none at all.
    render = helm_like.render({**VALUES, "gfd": {"enabled": True}})
    code, printed = run(capsys, write(tmp_path, values=values, render=render))
    assert code == 0
    assert "values.gfd.enabled is dropped" in printed
    _, printed = run(capsys, "--verbose", tmp_path)
    in_chart = "gfd DaemonSet: pod.containers[gpu-feature-discovery-ctr].command[0]: chart 'gpu-feature-discovery', "
    assert f"{in_chart}ours nothing" in printed
    main_of(find(render, "DaemonSet", f"{NAME}-gpu-feature-discovery"))["command"] = ["other"]
    code, printed = run(capsys, write(tmp_path, values=values, render=render))
    assert code == 1
    assert "gfd DaemonSet: pod.containers[gpu-feature-discovery-ctr].command[0]" in printed


def test_it_runs_as_a_module_of_the_repository(tmp_path):
    command = [sys.executable, "-m", "tests.parity", str(tmp_path)]
    done = subprocess.run(command, cwd=dist.ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1].startswith("NOTHING WAS COMPARED")
    assert done.stderr == ""


def test_no_module_of_the_proof_knows_cases_but_the_two_that_read_and_print_them():
    tables = (deviations, exporter_deviations, smi_deviations)
    modules = [*Path(parity.__file__).parent.glob("parity_*.py"), *(Path(str(table.__file__)) for table in tables)]
    assert {path.stem for path in modules if re.search(r"\bCase\b", path.read_text())} == {"parity_cases"}

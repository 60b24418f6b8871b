import gzip
import io
import struct
import tarfile
from functools import partial
from pathlib import Path

import pytest
import yaml

import refusals
from gpu_constructs import Delivery
from gpu_constructs.operator import local_chart
from gpu_constructs.operator.manifests import Release
from tables import cases

RENDERED = (Path(__file__).parent / "rendered.yaml").read_text(encoding="utf-8")
HOOK = """
---
apiVersion: batch/v1
kind: Job
metadata: {name: gpu-operator-node-feature-discovery-prune, annotations: {helm.sh/hook: post-delete}}
"""
CHART_YAML = "apiVersion: v2\nname: gpu-operator\nversion: v26.7.0\n"
FAKE = """#!/bin/sh
printf '%s\\n' "$@" > {folder}/arguments
while [ $# -gt 0 ]; do
  if [ "$1" = --values ]; then cat > {folder}/values.yaml; fi
  shift
done
cat {folder}/said >&2
cat {folder}/rendered
exit {status}
"""


@pytest.fixture
def helm(tmp_path):
    """Create a helm program that records its arguments and prints a fixed text."""

    def make(*, rendered=RENDERED, said="", status=0, executable="helm"):
        (tmp_path / "rendered").write_text(rendered)
        (tmp_path / "said").write_text(said)
        program = tmp_path / executable
        program.write_text(FAKE.format(folder=tmp_path, status=status))
        program.chmod(0o755)
        return str(program)

    return make


@pytest.fixture
def folder(tmp_path):
    return chart_folder(tmp_path / "gpu-operator")


def chart_folder(path, text=CHART_YAML):
    path.mkdir()
    (path / "Chart.yaml").write_text(text)
    return str(path)


def archive(path, text=CHART_YAML, name="gpu-operator/Chart.yaml"):
    data = text.encode()
    with tarfile.open(path, "w:gz") as tar:
        for member in ("gpu-operator/charts/node-feature-discovery/Chart.yaml", name):
            info = tarfile.TarInfo(member)
            content = data if member == name else b"name: node-feature-discovery\nversion: 0.19.0\n"
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return str(path)


def manifests(chart, executable, *, kubernetes=None, **changed):
    release = {
        "name": "gpu-operator",
        "namespace": "gpu-system",
        "chart_version": "v26.7.0",
        "values": {"driver": {"enabled": False}},
        "labels": {},
    }
    delivery = Delivery.helm(chart=chart, executable=executable)
    return local_chart.manifests(delivery, Release(**{**release, **changed}), kubernetes=kubernetes)


refusal = partial(refusals.refusal, manifests)


def by_kind(found):
    return {manifest["kind"]: manifest for manifest in found}


def test_helm_renders_crds_and_no_hooks(helm, folder, tmp_path):
    manifests(folder, helm(), kubernetes="1.33")
    said = (tmp_path / "arguments").read_text().split()
    assert said[0] == "template"
    assert said[-2:] == ["gpu-operator", folder]
    assert {"--no-hooks", "--include-crds"} < set(said)
    assert said[said.index("--namespace") + 1] == "gpu-system"
    assert said[said.index("--kube-version") + 1] == "1.33.0"
    assert "--api-versions" not in said
    for kubernetes, version in (("1.34", "1.34.0"), ("1.37.2", "1.37.2")):
        manifests(folder, helm(), kubernetes=kubernetes)
        said = (tmp_path / "arguments").read_text().split()
        assert said[said.index("--kube-version") + 1] == version
        assert said[said.index("--api-versions") + 1] == "resource.k8s.io/v1/DeviceClass"


def test_helm_gets_the_values_without_settings_that_need_hooks(helm, folder, tmp_path, keywords):
    values = keywords
    manifests(folder, helm(), values=values)
    read = yaml.safe_load((tmp_path / "values.yaml").read_text())
    assert read == local_chart.without_hooks(values)
    assert read.pop("operator") == {"upgradeCRD": False, "cleanupCRD": False, "logging": {"develMode": True}}
    assert read == {key: value for key, value in values.items() if key != "operator"}


@pytest.mark.parametrize("key", ["upgradeCRD", "cleanupCRD"])
def test_settings_that_need_hooks_are_rejected(helm, folder, key):
    assert refusal(folder, helm(), values={"operator": {key: True}}) == (
        f"values.operator.{key} must be false with delivery.helm, which runs no hooks, got True. Remove it, or use "
        "Delivery.flux(), Delivery.argo_cd() or Delivery.values()"
    )
    assert manifests(folder, helm(), values={"operator": {key: False}})


def test_the_output_of_helm_is_unchanged(helm, folder, expected):
    found = by_kind(manifests(folder, helm()))
    assert found["ConfigMap"]["data"] == {"version": "1.10", "flag": "off", "day": "2026-01-02"}
    assert found["ClusterPolicy"]["spec"] == {"driver": {"enabled": False}}
    assert found["CustomResourceDefinition"]["metadata"] == {"name": "clusterpolicies.nvidia.com"}
    namespaces = {kind: one["metadata"].get("namespace") for kind, one in found.items()}
    assert namespaces == expected


def test_the_chart_can_be_an_archive_with_a_relative_path(helm, folder, tmp_path, monkeypatch):
    program = helm()
    assert len(manifests(archive(tmp_path / "chart.tgz"), program)) == 5
    monkeypatch.chdir(tmp_path)
    assert len(manifests("./gpu-operator", "./helm")) == 5
    assert (tmp_path / "arguments").read_text().split()[-1] == folder


def test_a_rendered_hook_is_rejected(helm, folder):
    assert refusal(folder, helm(rendered=RENDERED + HOOK)) == (
        "delivery.helm.chart must render without hooks, which would run at once as plain objects, got Job "
        f"gpu-operator-node-feature-discovery-prune from '{folder}'. Use a helm program that supports --no-hooks"
    )


def test_the_error_for_a_missing_helm_names_deliveries_without_it(folder):
    assert refusal(folder, "no-such-helm") == (
        "delivery.helm.executable must be the helm program, got 'no-such-helm', which does not exist. Install Helm, or "
        "use Delivery.flux(), Delivery.argo_cd() or Delivery.values()"
    )


def test_the_error_for_a_missing_chart_names_the_command_that_gets_it(helm, tmp_path):
    chart = str(tmp_path / "nowhere.tgz")
    assert refusal(chart, helm()) == (
        f"delivery.helm.chart must exist, got '{chart}', which resolves to {chart}. Get it with 'helm pull "
        "gpu-operator --repo https://helm.ngc.nvidia.com/nvidia --version v26.7.0'"
    )


@pytest.mark.parametrize("make", [chart_folder, archive])
def test_another_chart_or_one_of_another_release_is_rejected(helm, tmp_path, make):
    chart = make(tmp_path / "chart", CHART_YAML.replace("26.7.0", "1.0.0-devel"))
    assert refusal(chart, helm()).startswith(
        "delivery.helm.chart must be release '26.7.0', the version of the operator, got 'v1.0.0-devel' in "
    )
    others = ("name: nvidia-device-plugin\nversion: v26.7.0\n", "- 1\n", "a: [", "", "a: 2026-99-99")
    for number, text in enumerate(others):
        other = make(tmp_path / f"other-{number}", text)
        assert "delivery.helm.chart must be the chart 'gpu-operator', got " in refusal(other, helm()), text


def test_a_file_that_is_not_a_chart_is_rejected(helm, tmp_path):
    (tmp_path / "notes.tgz").write_text("notes")
    assert "delivery.helm.chart must be readable, got" in refusal(str(tmp_path / "notes.tgz"), helm())
    (tmp_path / "empty").mkdir()
    assert "delivery.helm.chart must contain a Chart.yaml, got" in refusal(str(tmp_path / "empty"), helm())
    misplaced = archive(tmp_path / "misplaced.tgz", name="Chart.yaml")
    assert "delivery.helm.chart must contain a Chart.yaml, got" in refusal(misplaced, helm())


def test_a_damaged_archive_is_rejected(helm, tmp_path):
    path = tmp_path / "chart.tgz"
    tar = gzip.decompress(Path(archive(path, CHART_YAML + "#" * 100_000)).read_bytes())
    half, no_such_block = tar[:50_000], b"\x07"
    stored = b"\0" + struct.pack("<HH", len(half), len(half) ^ 0xFFFF) + half
    path.write_bytes(gzip.compress(b"")[:10] + stored + no_such_block)
    assert "delivery.helm.chart must be readable, got" in refusal(str(path), helm())


def test_the_error_contains_the_message_of_helm_in_one_line(helm, folder, capfd):
    said = (
        "WARNING: Kubernetes configuration file is group-readable\nError: execution error at (validations.yaml:14:3):\n"
        "the NRI Plugin cannot be enabled\n"
    )
    assert refusal(folder, helm(said=said, status=1)) == (
        "delivery.helm.chart must render with these values, got this error of helm: "
        "execution error at (validations.yaml:14:3): "
        "the NRI Plugin cannot be enabled. Change that value, or use another copy of the chart"
    )
    assert capfd.readouterr() == ("", "")
    assert len(refusal(folder, helm(said="x" * 5000, status=1))) < 600
    assert refusal(folder, helm(rendered="a: [")).startswith("delivery.helm.chart must render with these values, got ")
    assert len(manifests(folder, helm(said="WARNING: something\n"))) == 5


def test_a_release_name_that_helm_would_reject_is_rejected(helm, folder):
    assert "release_name must have at most 53 characters" in refusal(folder, helm(), name="g" * 54)


def more(name, *, api_version="v1", kind="ConfigMap", **metadata):
    return "---\n" + yaml.safe_dump({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **metadata}})


@pytest.mark.parametrize("namespace", [{}, {"namespace": "gpu-system"}])
def test_an_object_rendered_twice_is_rejected(helm, folder, namespace):
    assert refusal(folder, helm(rendered=RENDERED + more("a", **namespace) + more("a"))) == (
        "delivery.helm.chart must render each object once, got ConfigMap a twice. Rename or remove the one in "
        "values.extraObjects"
    )


@cases
def test_an_object_without_a_name_is_rejected(helm, folder, metadata, got):
    job = f"---\napiVersion: batch/v1\nkind: Job\n{metadata}\n"
    assert refusal(folder, helm(rendered=RENDERED + job)) == (
        f"delivery.helm.chart must render objects with names, got {got}. Add its metadata.name, "
        "for example in values.extraObjects"
    )

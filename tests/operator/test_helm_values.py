import pytest
import yaml
from cdk8s import App

from gpu_constructs import GpuConstructsError, HelmValues, synthesize
from tables import beside

VALUES = beside(__file__, "helm_values")["values"]


def test_values_are_written_unchanged(app, tmp_path):
    HelmValues(app, "values", release="gpu-operator", values=VALUES)
    synthesize(app)
    written = (tmp_path / "dist" / "helm-values" / "gpu-operator.values.yaml").read_text()
    assert yaml.safe_load(written) == VALUES
    assert list(yaml.safe_load(written)) == list(VALUES)


def test_a_release_name_helm_would_reject_is_rejected(chart):
    with pytest.raises(GpuConstructsError, match=r"^gpu/values: release must be a DNS label .*, got '../escape'$"):
        HelmValues(chart, "values", release="../escape", values={})


@pytest.mark.parametrize("values", ["driver: {}", ["driver"], None])
def test_values_must_be_a_mapping(chart, values):
    with pytest.raises(GpuConstructsError, match=r"^gpu/values: values must be "):
        HelmValues(chart, "values", release="gpu-operator", values=values)


def test_values_of_several_clusters_are_in_their_folders(tmp_path):
    apps = [App(outdir=str(tmp_path / "dist" / name)) for name in ("east", "west")]
    for app in apps:
        HelmValues(app, "values", release="gpu-operator", values={})
    synthesize(*apps)
    files = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.yaml"))
    assert files == [f"dist/helm-values/{name}/gpu-operator.values.yaml" for name in ("east", "west")]

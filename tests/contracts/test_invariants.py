"""The invariants notice what is wrong: one field of a cluster of dist/ is changed at a time."""

import json
import shutil
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

import dist
import invariants
import schemas
from tables import beside

Manifest = dict[str, Any]

CLUSTER = "talos-rtx5070ti"
OLLAMA, EXPORTER = "Deployment ollama", "DaemonSet dcgm-exporter"
POD, CONTAINER = "spec/template/spec", "spec/template/spec/containers/0"
WORKER_CONFIG = "ConfigMap nvidia-device-plugin-node-feature-discovery-worker-conf"


def changed(manifests: list[Manifest], name: str, path: str, value: object) -> list[Manifest]:
    """Return the manifests with the field at a path of one of them set; None removes it."""
    made = deepcopy(manifests)
    (holder,) = [one for one in made if f"{one['kind']} {one['metadata']['name']}" == name]
    *parents, last = [int(step) if step.isdigit() else step.replace("~", "/") for step in path.split("/")]
    for step in parents:
        holder = holder[step]
    if value is None:
        del holder[last]
    else:
        holder[last] = value
    return made


BAD_OBJECTS = beside(__file__, "invariants")["bad_objects"]


def test_an_object_with_one_thing_wrong_is_refused() -> None:
    good = dist.objects(CLUSTER)
    for name, path, value, problem in BAD_OBJECTS:
        with pytest.raises(AssertionError, match=problem):
            invariants.hold_for(changed(good, name, path, value), releases=schemas.SUPPORTED_RELEASES[-1:])


def test_a_custom_resource_is_checked_against_the_crd_beside_it() -> None:
    spec = {"type": "object", "properties": {"size": {"type": "integer"}}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    names = {"kind": "Gadget", "plural": "gadgets"}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.example.com"},
        "spec": {"group": "example.com", "names": names, "scope": "Cluster", "versions": [version]},
    }
    gadget = {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "new"}, "spec": {"size": 1}}
    invariants.hold_for([crd, gadget])
    with pytest.raises(AssertionError, match=r"\('sise' was unexpected"):
        invariants.hold_for([crd, {**gadget, "spec": {"sise": 1}}])


# --- a whole cluster ------------------------------------------------------------------------------------------

BAD_CLUSTERS = beside(__file__, "invariants")["bad_clusters"]


def written(folder: Path, files: Mapping[Path, list[Manifest]]) -> Path:
    """Write files of the cluster below a folder; the others stay as they are."""
    cluster = folder / CLUSTER
    shutil.copytree(dist.DIST / CLUSTER, cluster, dirs_exist_ok=True)
    for path, documents in files.items():
        text = "---\n".join(json.dumps(document) + "\n" for document in documents)
        (cluster / path.relative_to(dist.DIST / CLUSTER)).write_text(text)
    return cluster


def files_of(name: str) -> dict[Path, list[Manifest]]:
    """Return the file that has an object, by its path."""
    folder = dist.DIST / CLUSTER
    every = {**dist.files(folder), **dist.files(folder / dist.NEEDS_CRDS)}
    named = {path: [f"{one['kind']} {one['metadata']['name']}" for one in found] for path, found in every.items()}
    return {path: found for path, found in every.items() if name in named[path]}


def test_a_cluster_with_one_thing_wrong_is_refused(tmp_path: Path) -> None:
    for row, (name, path, value, problem) in enumerate(BAD_CLUSTERS):
        files = {file: changed(found, name, path, value) for file, found in files_of(name).items()}
        with pytest.raises(AssertionError, match=problem):
            invariants.hold_for_cluster(written(tmp_path / str(row), files))


def test_an_object_in_a_file_that_kubectl_reads_too_early_or_too_late_is_refused(tmp_path: Path) -> None:
    first, last = "00-namespaces.k8s.yaml", "zz-namespaces.k8s.yaml"
    metrics = "gpu-cluster.k8s.yaml"
    for row, (old, new, problem) in enumerate(
        [
            (first, last, "is applied before Namespace"),
            (
                f"needs-crds/{metrics}",
                "zz-metrics.k8s.yaml",
                r"ServiceMonitor .* needs a CRD and belongs in needs-crds/",
            ),
            (metrics, f"needs-crds/zz-{metrics}", "needs no CRD and belongs one folder up"),
        ]
    ):
        folder = written(tmp_path / str(row), {})
        (folder / old).rename(folder / new)
        with pytest.raises(AssertionError, match=problem):
            invariants.hold_for_cluster(folder)


def test_a_file_that_is_no_manifest_is_refused_where_kubectl_reads(tmp_path: Path) -> None:
    folder = written(tmp_path, {})
    for name, text in {"values.yaml": "driver: {}\n", "a.json": "[]\n", "needs-crds/a.yml": "---\n---\na: b\n"}.items():
        (folder / name).write_text(text)
        with pytest.raises(AssertionError, match="kubectl would read a document that is no manifest"):
            invariants.hold_for_cluster(folder)
        (folder / name).unlink()
    (folder / "twice.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nkind: Secret\nmetadata: {}\n")
    with pytest.raises(yaml.YAMLError, match="duplicate key 'kind'"):
        invariants.hold_for_cluster(folder)

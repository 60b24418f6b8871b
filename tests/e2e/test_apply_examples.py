"""The apps of examples/, applied to a real API server, with the nodes of their capacity plans."""

from dataclasses import replace

import pytest

import dist
import example_clusters
from cluster import eventually, is_unschedulable
from kubelet import Node

FOLDERS = [path.parent for path in sorted(dist.ROOT.glob("examples/*/dist/**/00-namespaces.k8s.yaml"))]
# What a README requires beforehand.
ARGO_CD = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argocd"}}
# For an app without a plan.
GPU_NODE = Node("gpu-node", {"nvidia.com/gpu.present": "true"})


def nodes(folder):
    """Return the nodes of the plan of a cluster, which lies in reports/ or in the folder of that name there."""
    reports = folder / "reports" if folder.name == "dist" else folder.parent / "reports" / folder.name
    if not reports.is_dir():
        return [GPU_NODE]
    return [replace(node, name=node.name.replace(" ", "-")) for node in example_clusters.nodes(str(reports))]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.relative_to(dist.ROOT / "examples").as_posix())
def test_an_example_is_accepted_without_a_warning_and_all_its_pods_run(site, folder):
    cluster, manifests = site.cluster, dist.objects(str(folder))
    site.kubelets.register(*nodes(folder), Node("cpu"))
    cluster.apply(ARGO_CD)
    example_clusters.bring_definitions_of(cluster, manifests)
    for part in (folder, folder / dist.NEEDS_CRDS):
        if part.is_dir():
            done = cluster.kubectl("apply", "--server-side", "--validate=strict", "-f", f"{part}/")
            assert (done.status, done.stderr) == (0, "")
    example_clusters.wait_for_pods(cluster, manifests)
    assert example_clusters.refusals(cluster) == []
    eventually(lambda: not any(map(is_unschedulable, cluster.pods())), "no pod waits for a node")

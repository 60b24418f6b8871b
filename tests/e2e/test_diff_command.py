"""What ``gpu-constructs diff`` says before an apply, compared with what a real control plane does."""

import json
import time

import pytest
import yaml

from cli.changes import TABLE, changed, changes
from cluster import eventually
from control_plane import kubeconfig
from gpu_constructs.cli.main import main
from kubelet import Node

NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "changes"}}
WORKLOADS = ("Deployment", "DaemonSet", "StatefulSet")


@pytest.fixture(scope="module")
def place(sites, release):
    """A cluster with a node and the namespace of the changes."""
    site = sites.site(release, "plain")
    with site.cluster.keeping(NAMESPACE, Node("changes-1").manifest()):
        yield site


@pytest.fixture
def cluster(place, monkeypatch):
    """The cluster, which kubectl of this process reaches."""
    for name, value in place.cluster.environment.items():
        monkeypatch.setenv(name, value)
    place.kubelets.register(Node("changes-1"))
    yield place.cluster
    place.cluster.reset()


def written(path, *manifests):
    path.write_text(yaml.safe_dump_all(manifests, sort_keys=False))
    return str(path)


def said(capsys, *arguments):
    """Return the exit status and the topics of the consequences."""
    capsys.readouterr()
    status = main(["diff", *arguments, "--format", "json"])
    out, err = capsys.readouterr()
    assert not err
    result = json.loads(out)
    return status, {effect["topic"] for one in result["objects"] for effect in one["effects"]}, result


def is_settled(cluster, manifest):
    """Check whether the controller has seen the last change, and all pods run."""
    found = cluster.get(manifest["apiVersion"], manifest["kind"], manifest["metadata"]["name"], "changes")
    status = found.get("status", {})
    wanted = status.get("desiredNumberScheduled") or found["spec"].get("replicas", 1)
    ready = status.get("numberReady", status.get("readyReplicas", 0))
    return status.get("observedGeneration") == found["metadata"]["generation"] and ready == wanted


def uids(cluster):
    return {pod["metadata"]["uid"] for pod in cluster.pods("changes")}


def restarted(cluster, manifest, before, restarts):
    """Check whether the pods of a workload restart as the table says: all, some, or none."""
    kept = before & uids(cluster)
    wanted = {"all": not kept, "some": bool(kept) and kept < before}.get(restarts, kept == before)
    return wanted and is_settled(cluster, manifest)


@pytest.mark.parametrize(("row", "old", "new"), changes())
def test_an_apply_does_what_the_command_says(cluster, row, old, new, tmp_path, capsys):
    is_workload = old["kind"] in WORKLOADS
    files = [written(tmp_path / "old.yaml", old), written(tmp_path / "new.yaml", new)]
    if old.get("spec", {}).get("paused"):
        cluster.kubectl(
            "apply", "--server-side", "-f", written(tmp_path / "running.yaml", changed(old, {"spec.paused": False}))
        )
        eventually(lambda: is_settled(cluster, old), "the pods run before the pause")
    assert cluster.kubectl("apply", "--server-side", "-f", files[0]).status == 0
    if is_workload:
        eventually(lambda: is_settled(cluster, old), "the pods run")
    elif old["kind"] == "PersistentVolumeClaim":
        eventually(lambda: cluster.get("v1", old["kind"], "models", "changes")["status"]["phase"] == "Bound", "bound")
    before = uids(cluster)
    unchanged, _, _ = said(capsys, "--cluster", files[0])
    assert unchanged == 0
    status, topics, _ = said(capsys, "--cluster", files[1])
    _, by_files, _ = said(capsys, *files)
    answer = cluster.kubectl("apply", "--server-side", "-f", files[1])
    assert ("immutable" in topics) == bool(answer.status), answer.stderr
    assert ("immutable" in by_files) == (row.get("refused") is True)
    assert bool(answer.status) == bool(row.get("refused")), answer.stderr
    assert ("restart" in topics, "restart" in by_files) == ("restarts" in row, "restarts" in row)
    if is_workload:
        eventually(lambda: restarted(cluster, old, before, row.get("restarts")), "the pods restart as said")
        if "restarts" not in row:
            time.sleep(0.5)
            assert before <= uids(cluster)
    if not answer.status:
        assert said(capsys, "--cluster", files[1])[0] == 0
    else:
        assert status == 1


def test_a_user_who_may_only_read_gets_a_local_comparison(cluster, tmp_path, capsys):
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader", "namespace": "changes"}}
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "view", "namespace": "changes"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": "changes"}],
    }
    old = TABLE["objects"]["deployment"]
    new = changed(old, {"spec.template.spec.containers.0.image": "registry.example/web:2"})
    cluster.apply(account, binding, old)
    token = cluster.token_of("reader", "changes")
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump(kubeconfig(cluster.access.server, cluster.access.ca, token)))
    eventually(lambda: cluster.may("reader", "changes", "get", "deployments.apps"), "the account may read")
    file = written(tmp_path / "new.yaml", new)
    assert main(["diff", "--cluster", file, "--kubeconfig", str(config)]) == 1
    out = capsys.readouterr().out
    assert "compared locally" in out
    assert "pods restart: image of container main" in " ".join(out.split())
    assert main(["diff", "--cluster", written(tmp_path / "old.yaml", old), "--kubeconfig", str(config)]) == 0


def test_fields_of_another_manager_need_force(cluster, tmp_path, capsys):
    old = TABLE["objects"]["configmap"]
    cluster.apply(old)
    status, _, result = said(capsys, "--cluster", written(tmp_path / "a.yaml", changed(old, {"data": {"a": "2"}})))
    assert status == 1
    assert "kubectl apply needs --force-conflicts" in json.dumps(result)


def test_objects_in_a_namespace_that_does_not_exist_are_created(cluster, tmp_path, capsys):
    names = changed(NAMESPACE, {"metadata.name": "later"})
    config = changed(TABLE["objects"]["configmap"], {"metadata.namespace": "later"})
    thing = {"apiVersion": "changes.example/v1", "kind": "Thing", "metadata": {"name": "a", "namespace": "later"}}
    _, _, result = said(capsys, "--cluster", written(tmp_path / "a.yaml", names, config, thing))
    assert [one["action"] for one in result["objects"]] == ["created"] * 3


def test_a_cluster_that_does_not_answer_is_status_3(tmp_path, capsys):
    config = written(tmp_path / "config.yaml", kubeconfig("https://127.0.0.1:1", tmp_path / "ca.crt", "x"))
    file = written(tmp_path / "a.yaml", TABLE["objects"]["configmap"])
    assert main(["diff", "--cluster", file, "--kubeconfig", config]) == 3

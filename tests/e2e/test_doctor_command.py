"""The command ``doctor`` on a real control plane: it finds each fault of a table, and is quiet without one."""

import io
import json
import os
import shutil
from contextlib import ExitStack, redirect_stdout
from pathlib import Path

import pytest
import yaml

import dist
import example_clusters as examples
from cluster import eventually
from control_plane import kubeconfig
from gpu_constructs.cli.main import main
from kubelet import Node

NAME = "talos-rtx3090"
FAULTS = yaml.safe_load(Path(__file__).with_name("doctor_faults.yaml").read_text(encoding="utf-8"))
MODULES = "nonfree-kmod-nvidia-production"
LABELS = {
    f"extensions.talos.dev/{MODULES}": "570.211.01",
    "extensions.talos.dev/nvidia-container-toolkit-production": "1",
}
SYSTEM = {"status": {"nodeInfo": {"osImage": "Talos (v1.12.11)"}}}
CONTAINER = {"name": "a", "image": "a:1", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
TEAM = (
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}},
    {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "work", "namespace": "team"},
        "spec": {
            "selector": {"matchLabels": {"app": "work"}},
            "template": {
                "metadata": {"labels": {"app": "work"}},
                "spec": {"runtimeClassName": "nvidia", "containers": [CONTAINER]},
            },
        },
    },
)


def objects():
    """Return the objects of the cluster: all but the test, of which one pod waits on purpose."""
    return [one for one in dist.objects(NAME) if one["metadata"]["name"] != "gpu-test"]


class Clinic:
    """A cluster that runs dist/, and the command that looks at it."""

    def __init__(self, site, folder):
        self.cluster, self.kubelets = site
        self.folder = folder
        self.plan = folder / "dist" / NAME
        for beside in (NAME, f"reports/{NAME}", f"machine-config/{NAME}"):
            shutil.copytree(dist.DIST / beside, folder / "dist" / beside)
        (self.plan / "gpu-test.k8s.yaml").unlink()

    def start(self):
        (node,) = examples.nodes(NAME)
        self.kubelets.register(Node(node.name, {**node.labels, **LABELS}, (), node.devices, node.one_each), Node("cpu"))
        self.patch(
            {
                "object": {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node.name}},
                "patch": SYSTEM,
                "part": "status",
            }
        )
        examples.bring_definitions(self.cluster, NAME)
        self.cluster.apply(*objects(), *TEAM)
        examples.wait_for_pods(self.cluster, [*objects(), TEAM[1]])

    def look(self, *options, config=None, source=None):
        """Return the exit status of the command, and what it reports as data."""
        given = [
            "doctor",
            f"--from={source}" if source else f"--kubeconfig={config or self.cluster.access.kubeconfig}",
            f"--plan={self.plan}",
            "--format=json",
        ]
        text = io.StringIO()
        with redirect_stdout(text), pytest.MonkeyPatch.context() as patch:
            patch.setenv("PATH", f"{Path(self.cluster.access.kubectl).parent}:{os.environ['PATH']}")
            patch.setenv("HOME", str(self.cluster.access.home))
            status = main([*given, *options])
        return status, json.loads(text.getvalue())

    def found(self, status):
        """Return the first check with a status, and its first reason."""
        _, report = self.look()
        first = next((one["id"] for one in report["checks"] if one["status"] == status), None)
        if status == "warning" and any(one["status"] == "failed" for one in report["checks"]):
            return None, report
        return first, next((one["reason"] for one in report["findings"] if one["code"] == first), "")

    def patch(self, change):
        """Change an object, or the status of pods with a label, and return the changed objects as they were."""
        if "pods" in change:
            namespace, label = change["pods"]
            change = {**change, "part": "status"}
            targets = self.cluster.pods(namespace, labels=label)
        else:
            about = change["object"]["metadata"]
            kind = (change["object"]["apiVersion"], change["object"]["kind"])
            targets = [{**change["object"], **self.cluster.get(*kind, about["name"], about.get("namespace"))}]
        for one in targets:
            self.cluster.patch(one, change["patch"], part=change.get("part", ""))
        return targets

    def restore(self, one, part):
        """Bring back an object, or its status, as it was."""
        found = self.cluster.get(
            one["apiVersion"], one["kind"], one["metadata"]["name"], one["metadata"].get("namespace")
        )
        versioned = {**one, "metadata": {**one["metadata"], "resourceVersion": found["metadata"]["resourceVersion"]}}
        self.cluster.replace(versioned, part=part)


@pytest.fixture(scope="module")
def clinic(sites, release, tmp_path_factory):
    made = Clinic(sites.site(release, "talos"), tmp_path_factory.mktemp("clinic"))
    made.start()
    yield made
    made.cluster.reset()
    made.kubelets.forget()


def inflict(clinic, fault, stack):
    """Bring a fault to the cluster, and take it back when the stack closes."""
    cluster = clinic.cluster
    for one in fault.get("delete", ()):
        stored = next(each for each in objects() if examples.identity(each) == examples.identity(one))
        cluster.delete(one)
        stack.callback(cluster.apply, stored)
    for node in fault.get("register", ()):
        clinic.kubelets.register(Node(node["name"], node["labels"]))
        stack.callback(cluster.delete, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node["name"]}})
    for change in fault.get("change", ()):
        for one in clinic.patch(change):
            stack.callback(clinic.restore, one, "status" if "pods" in change else change.get("part", ""))
    for part in ("apply", "then"):
        for one in fault.get(part, ()):
            cluster.apply(one)
            stack.callback(cluster.delete, one)
        if "then" in fault:
            eventually(lambda: all(pod["spec"].get("nodeName") for pod in cluster.pods("team")), "the pods have nodes")
    plan = clinic.plan / "fault.json"
    plan.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": fault.get("plan", [])}))
    stack.callback(plan.unlink)
    machine = clinic.plan.parent / "machine-config" / NAME / "fault.yaml"
    machine.write_text(json.dumps({"machine": {"nodeLabels": fault.get("machine", {})}}))
    stack.callback(machine.unlink)


def name_of(fault):
    return " ".join(filter(None, (fault.get("fails") or fault["warns"], fault.get("about"))))


def test_the_command_is_quiet_about_a_cluster_that_works(clinic):
    assert clinic.look("--fail-on=warning")[1]["findings"] == []


def test_a_bundle_leads_to_the_same_results(clinic, tmp_path):
    live, copied = clinic.look(f"--bundle={tmp_path / 'bundle'}"), clinic.look(source=tmp_path / "bundle")
    states = [{one["id"]: one["status"] for one in report["checks"]} for _, report in (live, copied)]
    assert "ok" in states[0].values()
    # The bundle contains the logs of all programs, which the stand-in for the kubelets does not serve.
    assert states[0] == states[1]


def test_the_command_needs_no_other_rights_than_it_lists(clinic, tmp_path, capsys):
    cluster, api = clinic.cluster, "rbac.authorization.k8s.io"
    assert main(["doctor", "--rights"]) == 0
    role = yaml.safe_load(capsys.readouterr().out)
    account = {"kind": "ServiceAccount", "name": "doctor", "namespace": "team"}
    made = (
        role,
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "doctor", "namespace": "team"}},
        {
            "apiVersion": f"{api}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "doctor"},
            "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": role["metadata"]["name"]},
            "subjects": [account],
        },
    )
    cluster.apply(*made)
    token = cluster.token_of("doctor", "team")
    mine = tmp_path / "kubeconfig"
    mine.write_text(yaml.safe_dump(kubeconfig(cluster.access.server, cluster.access.ca, token)))

    def lacking():
        status, report = clinic.look("--fail-on=warning", config=mine)
        return status, sorted({one["because"] for one in report["checks"] if "no right" in one["because"]})

    eventually(lambda: lacking() == (0, []), "the rights are enough", timeout=30, every=1, state=lacking)
    cluster.delete(role)
    eventually(lambda: lacking()[0] == 3, "the rights are gone", timeout=30, every=1, state=lacking)
    assert "you have no right to list nodes" in lacking()[1]
    for one in made[1:]:
        cluster.delete(one)


@pytest.mark.parametrize("fault", FAULTS, ids=name_of)
def test_the_command_finds_a_fault_and_no_other_cause_before_it(clinic, fault):
    expected = fault.get("fails") or fault["warns"]
    status = "failed" if "fails" in fault else "warning"
    last = []

    def is_found():
        last[:] = clinic.found(status)
        return last[0] == expected and fault.get("says", "") in last[1]

    with ExitStack() as stack:
        stack.callback(clinic.cluster.delete_all, "v1", "Event", "team")
        inflict(clinic, fault, stack)
        eventually(is_found, f"{expected} fails", timeout=25, every=1, state=lambda: last)
    eventually(
        lambda: not clinic.look()[1]["findings"],
        "the cluster works again",
        timeout=60,
        every=1,
        state=lambda: clinic.look()[1]["findings"],
    )

"""The control plane that the suite starts, and the stand-in for its kubelets."""

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from cluster import eventually, is_unschedulable
from kubelet import Node
from processes import Program, ProgramError

GPU = "nvidia.com/gpu"


def pod(name, count=1, **spec):
    container = {"name": "main", "image": "e2e.invalid/none", "resources": {"limits": {GPU: str(count)}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container], **spec},
    }


def phase(cluster, name):
    return cluster.get("v1", "Pod", name, "default")["status"]["phase"]


def test_a_pod_runs_where_a_node_offers_its_gpu_and_the_next_one_waits(cluster, kubelets):
    kubelets.register(Node("one", devices={GPU: 1}))
    cluster.create(pod("first"))
    eventually(lambda: phase(cluster, "first") == "Running", "the first pod runs")
    cluster.create(pod("second"))
    eventually(lambda: is_unschedulable(cluster.get("v1", "Pod", "second", "default")), "the second pod waits")


def test_a_kubelet_refuses_what_its_node_has_no_longer(cluster, kubelets):
    kubelets.register(Node("one", devices={GPU: 1}))
    cluster.create(pod("bound", 2, nodeName="one"))
    eventually(lambda: phase(cluster, "bound") == "Failed", "the kubelet refuses the pod")
    assert cluster.get("v1", "Pod", "bound", "default")["status"]["reason"] == f"OutOf{GPU}"


def test_nothing_is_left_behind(cluster, kubelets):
    kubelets.register(Node("one", devices={GPU: 1}))
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gone"}})
    cluster.create(pod("gone"))
    cluster.reset()
    assert not cluster.leftovers()


def test_a_port_that_was_taken_is_one_line(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        server = Program([sys.executable, "-m", "http.server", port, "--bind", "127.0.0.1"], tmp_path / "log")
        with pytest.raises(ProgramError, match=r"took a port that python.* was to use. Run the tests again"):
            server.wait_until(lambda: False)


CRASHING = """
import os, sys
sys.path.insert(0, {folder!r})
from pathlib import Path
from processes import Program
program = Program(["/bin/sleep", "600"], Path({log!r}))
print(program.pid, flush=True)
os.kill(os.getpid(), 9)
"""


def test_programs_end_with_a_test_run_that_crashes(tmp_path):
    code = CRASHING.format(folder=str(Path(__file__).parent), log=str(tmp_path / "log"))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL
    eventually(lambda: not is_running(int(done.stdout)), "the program ends")


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0] != "Z"
    except OSError:
        return False

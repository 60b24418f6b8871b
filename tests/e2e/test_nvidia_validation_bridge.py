"""The validation bridge ends the waits of the GPU Operator's pods, as NVIDIA's real validator has them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml

from assets import Nvidia
from bridged_node import BridgedNode
from cluster import Cluster, Manifest, eventually
from container import Containers, Image, pod_of
from device_manager import DeviceManager
from gpu_constructs import App, Chart, GpuNamespace, GpuNode, Talos, TalosGpuNode, ValidationBridge
from gpu_host import gpu_host
from processes import Program

NAMESPACE, NODE, ACCOUNT = "nvidia-gpu-operator", "gpu-node", "nvidia-operator-validator"
GPU = "nvidia.com/gpu"
TALOS = Talos("1.12.11")
VALIDATIONS, STAGE = "/run/nvidia/validations", "/var/lib/gpu-constructs/driver"
STAGED = ("usr/bin/nvidia-smi", "usr/lib64/libnvidia-ml.so.1")
# The image of the bridge is busybox.
TOOLS = ("cat", "chmod", "cmp", "cp", "date", "head", "mkdir", "mv", "rm", "sh", "sleep", "test", "uname")
# Numbers of the device nodes, which the validator links in /dev/char.
PROC_DEVICES = "Character devices:\n195 nvidia-frontend\n236 nvidia-caps\n510 nvidia-uvm\n\nBlock devices:\n"

# What the operator's pods read. Source: NVIDIA/gpu-operator@v26.7.0:cmd/nvidia-validator/driver.go.
OF_A_HOST = {
    "IS_HOST_DRIVER": "true",
    "NVIDIA_DRIVER_ROOT": "/",
    "DRIVER_ROOT_CTR_PATH": "/host",
    "NVIDIA_DEV_ROOT": "/",
    "DEV_ROOT_CTR_PATH": "/host",
}
OF_A_STAGE = {
    **OF_A_HOST,
    "IS_HOST_DRIVER": "false",
    "NVIDIA_DRIVER_ROOT": STAGE,
    "DRIVER_ROOT_CTR_PATH": "/driver-root",
}
# How containers of the operator's pods wait: NVIDIA/gpu-operator@v26.7.0:assets/state-dcgm-exporter and
# assets/state-device-plugin.
OPERAND = f"until [ -f {VALIDATIONS}/toolkit-ready ]; do sleep 1; done"
PLUGIN = (
    f"until [ -f {VALIDATIONS}/driver-ready ]; do sleep 1; done; "
    f"set -a; . {VALIDATIONS}/driver-ready; set +a; exec nvidia-device-plugin"
)


class OperatorNode:
    """A Talos node with one GPU, where the operator's pods and the bridge run.

    Attributes:
        kernel: What its kernel shows of the driver.
        host: The node.
    """

    def __init__(self, folder: Path, nvidia: Nvidia) -> None:
        self._folder = folder
        (folder / "kernel").mkdir()
        self.kernel = BridgedNode(folder / "kernel", None, "")
        shown = {"/proc/driver": "proc/driver", "/sys/module": "sys/module", "/proc/devices": "proc/devices"}
        (self.kernel.root / "proc/driver").mkdir(parents=True)
        (self.kernel.root / "sys/module").mkdir(parents=True)
        (self.kernel.root / "proc/devices").write_text(PROC_DEVICES)
        files = {path: self.kernel.root / place for path, place in shown.items()}
        files |= {f"/usr/bin/{name}": nvidia.folder / name for name in ("nvidia-validator", "nvidia-device-plugin")}
        files |= {f"/busybox/{name}": Path(shutil.which("busybox") or shutil.which(name) or "") for name in TOOLS}
        gpu = GpuNode(name=NODE, gpu_model="NVIDIA GeForce RTX 5070 Ti")
        self.host = gpu_host(folder / "gpu", nvidia, Image(files), gpu, TALOS)
        (self.host.root / "dev/char").mkdir()

    def bridge(self, strategy: str) -> Containers:
        """Run the bridge as it is rendered, but for a turn each second."""
        app = App(outdir=str(self._folder / "dist"))
        chart = Chart(app, "bridge")
        TalosGpuNode(app, NODE, platform=TALOS, gpu_architecture="blackwell", operator_validator=strategy == "stage")
        where = GpuNamespace(chart, "namespace", name=NAMESPACE)
        ValidationBridge(chart, "bridge", platform=TALOS, namespace=where, strategy=strategy, interval_seconds=1)
        objects = list(yaml.load_all(app.synth_yaml(), yaml.CSafeLoader))
        daemon_set = next(one for one in objects if one["kind"] == "DaemonSet")
        return self.host.run(pod_of(daemon_set, NODE), objects)

    def start(self, script: str, *, cluster: Cluster | None = None, **env: str) -> Program:
        """Run a container of the operator's pods."""
        pod = pod_of(operand(script, env, needs_token=cluster is not None), NODE)
        return self.host.run(pod, cluster=cluster)["waits"]

    def file(self, name: str) -> Path:
        return self.host.root / VALIDATIONS.lstrip("/") / name

    @property
    def staged(self) -> list[Path]:
        return [path for name in STAGED if (path := self.host.root / STAGE.lstrip("/") / name).exists()]

    def unbind_gpu(self) -> None:
        shutil.rmtree(self.kernel.root / "proc/driver/nvidia/gpus")


def operand(script: str, env: Mapping[str, str], *, needs_token: bool) -> Manifest:
    """Return a pod with the mounts that the operator's pods have, after it was told the folder of the bridge."""
    mounts = {
        VALIDATIONS: VALIDATIONS,
        "/host": "/",
        STAGE: STAGE,
        "/driver-root": STAGE,
        "/host-dev-char": "/dev/char",
    }
    mounts["/var/lib/kubelet/device-plugins"] = "/var/lib/kubelet/device-plugins"
    names = {path: f"volume-{number}" for number, path in enumerate(mounts)}
    variables = [{"name": name, "value": value} for name, value in env.items()]
    container = {
        "name": "waits",
        "command": ["sh", "-c", script],
        "env": [*variables, {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}],
        "securityContext": {"privileged": True},
        "volumeMounts": [{"name": name, "mountPath": path} for path, name in names.items()],
    }
    spec = {
        "automountServiceAccountToken": needs_token,
        "serviceAccountName": ACCOUNT,
        "runtimeClassName": "nvidia",
        "containers": [container],
        "volumes": [{"name": names[path], "hostPath": {"path": place}} for path, place in mounts.items()],
    }
    return {
        "metadata": {"name": "nvidia-operator", "namespace": NAMESPACE},
        "spec": {"template": {"metadata": {}, "spec": spec}},
    }


@pytest.fixture
def node(nvidia, tmp_path) -> Iterator[OperatorNode]:
    node = OperatorNode(tmp_path, nvidia)
    with node.host:
        yield node


@pytest.fixture(scope="module")
def api(sites, release):
    """The cluster that the validator asks for daemon sets, with the rights that the operator's pods have."""
    cluster = sites.site(release, "talos").cluster
    named = {"name": ACCOUNT, "namespace": NAMESPACE}
    rbac = "rbac.authorization.k8s.io/v1"
    rules = [{"apiGroups": ["apps"], "resources": ["daemonsets"], "verbs": ["get", "list", "watch"]}]
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": ACCOUNT}
    cluster.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": named},
        {"apiVersion": rbac, "kind": "Role", "metadata": named, "rules": rules},
        {"apiVersion": rbac, "kind": "RoleBinding", "metadata": named, "roleRef": role}
        | {"subjects": [{"kind": "ServiceAccount", **named}]},
    )
    eventually(lambda: cluster.may(ACCOUNT, NAMESPACE, "list", "daemonsets.apps"), "the validator has its rights")
    yield cluster
    cluster.reset()


def validator(node: OperatorNode, component: str, *, api: Cluster | None = None) -> Program:
    driver = {"DRIVER_INSTALL_DIR": STAGE, "DRIVER_INSTALL_DIR_CTR_PATH": STAGE, "OPERATOR_NAMESPACE": NAMESPACE}
    waits = {"WITH_WAIT": str(component == "driver").lower(), "SLEEP_INTERVAL_SECONDS": "1"}
    return node.start("nvidia-validator", cluster=api, COMPONENT=component, **driver, **waits)


def variables(file: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in file.read_text().splitlines())


def test_the_validator_waits_until_the_bridge_has_staged_the_driver(node, api):
    driver = validator(node, "driver", api=api)
    driver.wait_until(lambda: driver.output().count("retrying") > 1)
    assert not node.file("driver-ready").exists()

    node.kernel.load_driver()
    node.bridge("stage")
    assert driver.wait() == 0, driver.output()
    assert variables(node.file("driver-ready")) == OF_A_STAGE
    assert validator(node, "toolkit").wait() == 0
    assert node.start(OPERAND).wait() == 0


def test_the_validator_waits_again_when_the_gpu_has_gone(node, api):
    node.kernel.load_driver()
    bridge = node.bridge("stage")
    bridge["bridge"].wait_until(lambda: len(node.staged) == 2)
    node.unbind_gpu()
    bridge["bridge"].wait_until(lambda: not node.staged)
    driver = validator(node, "driver", api=api)
    driver.wait_until(lambda: "retrying" in driver.output())
    assert not node.file("driver-ready").exists()


def test_markers_end_the_waits_of_the_pods(node):
    waiting = [node.start(OPERAND), node.start(OPERAND)]
    bridge = node.bridge("markers")
    bridge["bridge"].wait_until(lambda: "not ready" in bridge["bridge"].output())
    assert [program.exit_status for program in waiting] == [None, None]

    node.kernel.load_driver()
    assert [program.wait() for program in waiting] == [0, 0]
    assert variables(node.file("driver-ready")) == OF_A_HOST


def test_the_device_plugin_behind_the_markers_offers_the_gpu(node):
    node.kernel.load_driver()
    node.bridge("markers")
    assert_the_plugin_offers_the_gpu(node, OF_A_HOST)


def test_the_device_plugin_behind_the_staged_driver_offers_the_gpu(node, api):
    node.kernel.load_driver()
    node.bridge("stage")
    assert validator(node, "driver", api=api).wait() == 0
    assert_the_plugin_offers_the_gpu(node, OF_A_STAGE)


def assert_the_plugin_offers_the_gpu(node: OperatorNode, told: Mapping[str, str]) -> None:
    with DeviceManager(node.host.root) as manager:
        plugin = node.start(PLUGIN)
        eventually(lambda: manager.allocatable() == {GPU: 1}, "the node offers its GPU", state=plugin.output)
    assert f'"nvidiaDriverRoot": "{told["NVIDIA_DRIVER_ROOT"]}"' in plugin.output()
    assert f'"nvidiaDevRoot": "{told["NVIDIA_DEV_ROOT"]}"' in plugin.output()


def test_markers_that_the_validator_deletes_come_back(node):
    node.kernel.load_driver()
    bridge = node.bridge("markers")["bridge"]
    both = [node.file("driver-ready"), node.file("toolkit-ready")]
    bridge.wait_until(lambda: bridge.output().count("wrote") == 2)
    assert node.start(f"rm -f {VALIDATIONS}/*-ready").wait() == 0
    bridge.wait_until(lambda: bridge.output().count("wrote") == 4)
    assert all(file.exists() for file in both)


def test_markers_are_taken_back_when_the_gpu_goes(node):
    node.kernel.load_driver()
    bridge = node.bridge("markers")["bridge"]
    bridge.wait_until(lambda: node.file("toolkit-ready").exists())
    node.unbind_gpu()
    bridge.wait_until(lambda: not list(node.file("").iterdir()))

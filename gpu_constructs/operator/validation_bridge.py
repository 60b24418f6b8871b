"""`ValidationBridge`: the DaemonSet that lets the pods of the GPU Operator start on Talos 1.12 and earlier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from constructs import Construct

from gpu_constructs.catalog import versions
from gpu_constructs.catalog.platforms import DEFAULT_PLATFORM, Platform, require
from gpu_constructs.cluster.namespace import DEFAULT_NAMESPACE, component_namespace, require_privileged
from gpu_constructs.facts.provided import Provided, placement_of
from gpu_constructs.kube import fields, placement
from gpu_constructs.kube.placement import GPU_PRESENT, Toleration
from gpu_constructs.kube.references import NamedObject
from gpu_constructs.kube.resources import Resources, container_resources
from gpu_constructs.operator import bridge
from gpu_constructs.operator.bridge import Strategy
from gpu_constructs.tree.construct import GpuObject, checked
from gpu_constructs.tree.manifest import Manifest

# Each probe starts a process. On a busy node, it ends in time only if its container has a CPU request.
_RESOURCES: Resources = {"requests": {"cpu": "10m", "memory": "8Mi"}, "limits": {"memory": "64Mi"}}

_VALIDATOR_OFF = "nvidia.com/gpu.deploy.operator-validator=false"
_WANTED: Mapping[Strategy, Mapping[str, str]] = {
    "markers": {
        _VALIDATOR_OFF: (
            "the validator of the GPU Operator always fails on these nodes, and deletes the marker files of the "
            "bridge when it starts or stops. Add TalosGpuNode(app, 'gpu-node', platform=..., "
            "operator_validator=False), or declare the label with External(app, 'existing', "
            "node_labels=['nvidia.com/gpu.deploy.operator-validator'])"
        )
    },
    "stage": {},
}
_UNWANTED: Mapping[Strategy, Mapping[str, str]] = {
    "markers": {},
    "stage": {
        _VALIDATOR_OFF: (
            "the validator of the GPU Operator must run, because the device plugin and other pods of the operator wait "
            "for its marker files. Remove operator_validator=False"
        )
    },
}


class ValidationBridge(GpuObject):
    """A DaemonSet that lets the operands of the GPU Operator start on Talos if the NVIDIA driver works.

    The operands are the pods that the operator runs on GPU nodes: the device plugin, GPU Feature Discovery and the DCGM
    exporter. They wait until the operator's validator writes the marker files ``driver-ready`` and ``toolkit-ready``.
    The files are in ``/run/nvidia/validations`` on the node. Up to Talos 1.12, the validator never finds the driver: it
    expects ``libnvidia-ml.so.1`` and ``nvidia-smi`` below one folder, but Talos has them in two folders. The bridge
    checks whether the kernel loaded the required modules, and whether the driver uses a GPU. If so, it applies one of
    two strategies:

    - ``stage`` copies ``libnvidia-ml.so.1`` to ``<stage_dir>/usr/lib64`` and ``nvidia-smi`` to ``<stage_dir>/usr/bin``
      on the node. The Helm value ``hostPaths.driverInstallDir`` of the operator must be ``<stage_dir>``, which
      ``GpuOperator(bridge=...)`` sets. The validator then finds the copies and writes the marker files itself, and the
      ClusterPolicy can become ready. The validator must run, so the nodes must not have the label
      ``nvidia.com/gpu.deploy.operator-validator=false``. If the original of a copy changes, for example by an upgrade
      of Talos, the bridge copies it again. The bridge never runs ``nvidia-smi``.
    - ``markers`` writes the marker files in place of the validator. If something deletes them, the bridge writes them
      again. Set the node label ``nvidia.com/gpu.deploy.operator-validator=false``, which stops the validator.
      Otherwise, the validator deletes the marker files again and again, and its own pod never becomes ready.

    Both strategies need the operator's Helm values ``driver.enabled=false``, ``toolkit.enabled=false`` and
    ``cdi.enabled=false``. If the driver stops, the bridge removes the marker files or the copies that it wrote, and
    logs the reason.

    Emits a ConfigMap and a DaemonSet ``nvidia-validation-bridge``. The pods run as root, because root owns the
    directory to which they write: ``<stage_dir>`` or ``/run/nvidia/validations``. They have no Linux
    capabilities, no access to devices, and no ServiceAccount token. They can write to no other directory of the node.

    Attributes:
        api_object: The DaemonSet.
        strategy: Strategy of the bridge: ``stage`` or ``markers``.
        driver_install_dir: Required Helm value ``hostPaths.driverInstallDir`` of the operator. None for ``markers``,
            which does not need this Helm value.
        namespace: Name of the namespace of the DaemonSet.

    Source:
        NVIDIA/gpu-operator@v25.10.1, v26.3.3, v26.7.0: cmd/nvidia-validator/main.go, driver.go, find.go,
        internal/driver/root.go, assets/state-operator-validation, controllers/object_controls.go
        (transformForDriverInstallDir); siderolabs/extensions@v1.12.11:nvidia-gpu/nvidia-container-toolkit
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        namespace: str | NamedObject = DEFAULT_NAMESPACE,
        platform: Platform = DEFAULT_PLATFORM,
        strategy: Strategy = "markers",
        expected_driver_version: str | None = None,
        required_modules: Sequence[str] | None = None,
        required_devices: Sequence[str] = (),
        interval_seconds: int = 10,
        retract_on_exit: bool = True,
        stage_dir: str | None = None,
        source_lib_dir: str | None = None,
        source_bin_dir: str | None = None,
        tolerations: Sequence[Toleration] = (),
        node_selector: Mapping[str, str] | None = None,
        image: str = versions.BUSYBOX_IMAGE,
        resources: Resources | None = None,
    ) -> None:
        """Create the objects of the bridge.

        Args:
            scope: Chart, or construct in a chart.
            id: ID of the construct.
            namespace: Name or object of the operator's namespace. Its Pod Security level must be ``privileged``,
                because the pods mount a host path.
            platform: Platform of the cluster: Talos up to 1.12, or ``Kubernetes()`` if the driver of its nodes is in
                folders that the validator does not check. Later Talos releases need no bridge, and a bridge would hide
                problems there.
            strategy: ``markers`` writes the marker files for which the operands wait. ``stage`` copies
                ``libnvidia-ml.so.1`` and ``nvidia-smi`` to the folder that the validator of the operator checks.
            expected_driver_version: Version of the NVIDIA driver to wait for, such as ``570.211.01``. None: any
                version.
            required_modules: Names of the kernel modules that the bridge expects. None: ``nvidia`` and ``nvidia_uvm``.
            required_devices: Names below ``/dev`` that must be character devices, such as ``nvidiactl``. If the list is
                not empty, the pods mount ``/dev`` of the node read-only. They do not open the devices.
            interval_seconds: Time between two checks of the driver, in seconds.
            retract_on_exit: Whether the bridge removes its marker files or copies when it stops. Running operands do
                not need them. Operands that start later wait until the next pod of the bridge is ready.
            stage_dir: Directory on the node for the copies of ``stage``. The kubelet creates the directory. None:
                ``/var/lib/gpu-constructs/driver``. No other software must use the directory. It must be below ``/var``,
                the only writable part of a Talos node. ``/run`` does not work, because Talos mounts it with ``noexec``.
            source_lib_dir: Folder on the node with ``libnvidia-ml.so.1``, for ``stage``. None: the folder of the Talos
                release. Other platforms need a value.
            source_bin_dir: Folder on the node with ``nvidia-smi``, for ``stage``. None: ``/usr/local/bin`` on Talos.
                Other platforms need a value.
            tolerations: Taints of the GPU nodes to tolerate, besides ``nvidia.com/gpu``.
            node_selector: Node labels to select, besides the labels by which the bridge finds nodes with a driver.
            image: Image with a shell and common tools, such as BusyBox, the default.
            resources: Requests and limits of the container. The default is a request of 10m CPU and 8Mi, and a memory
                limit of 64Mi. The limit must be enough for the shell (about 4Mi) and the processes that check the
                driver.

        Raises:
            GpuConstructsError: The platform needs no bridge, a ``GpuNamespace`` is not privileged, ``markers`` has an
                option of ``stage``, or a value is not allowed.
        """
        fields.label_value("id", id)
        where = component_namespace(namespace)
        require_privileged("namespace", namespace, "the bridge mounts a host path")
        require(platform, "gpu-operator-bridge")
        fields.whole_number("interval_seconds", interval_seconds, minimum=1, maximum=86_400)
        fields.image("image", image)
        fields.labels("node_selector", node_selector or {})
        if expected_driver_version is not None:
            bridge.check_driver_version("expected_driver_version", expected_driver_version)
        variables = {
            "EXPECTED_DRIVER_VERSION": expected_driver_version,
            "REQUIRED_MODULES": bridge.modules(required_modules),
            "REQUIRED_DEVICES": bridge.devices(required_devices),
            "RETRACT_ON_EXIT": str(retract_on_exit).lower(),
        }
        folders = {"source_lib_dir": source_lib_dir, "source_bin_dir": source_bin_dir}
        directories = bridge.staging(strategy, platform, stage_dir, **folders)
        if required_devices:
            directories["DEV_ROOT"] = "/dev"
        labels = platform.driver_node_labels or (GPU_PRESENT,)
        placed = {
            "affinity": placement.required_node_affinity([[placement.label_exists(label)] for label in labels]),
            "nodeSelector": node_selector or None,
            "tolerations": placement.tolerations((placement.GPU_TAINT,), tolerations),
        }
        made = bridge.manifests(
            id,
            namespace=where,
            strategy=strategy,
            variables=variables,
            directories=directories,
            placed=placed,
            image=image,
            resources=container_resources(resources, default=_RESOURCES),
            interval_seconds=interval_seconds,
        )
        super().__init__(scope, id)
        self.strategy: Strategy = strategy
        self.driver_install_dir: str | None = directories.get("STAGE_DIR")
        self.namespace = where
        self.provides = Provided(
            platform=platform,
            runs_on=(placement_of(placed),),
            components=("validation-bridge",),
            stages_driver_in=self.driver_install_dir,
            wants_node_labels=_WANTED[strategy],
            unwanted_node_labels=_UNWANTED[strategy],
            privileged_namespaces=(where,),
        )
        for child, manifest in made.items():
            Manifest(self, child, manifest)

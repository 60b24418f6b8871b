"""The bridge between Talos and the validator of the GPU Operator."""

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
            "the operator's validator always fails here, and each time that it starts or stops, it deletes the files "
            "of the bridge. Add TalosGpuNode(app, 'gpu-node', platform=..., operator_validator=False), or declare it "
            "with External(app, 'existing', node_labels=['nvidia.com/gpu.deploy.operator-validator'])"
        )
    },
    "stage": {},
}
_UNWANTED: Mapping[Strategy, Mapping[str, str]] = {
    "markers": {},
    "stage": {
        _VALIDATOR_OFF: (
            "the validator of the operator must run, because operands wait for its files. Remove "
            "operator_validator=False"
        )
    },
}


class ValidationBridge(GpuObject):
    """A DaemonSet that lets the operands of the GPU Operator start on Talos if the NVIDIA driver works.

    The device plugin, GPU Feature Discovery and DCGM exporter of the operator wait for marker files of its validator.
    Up to Talos 1.12, the validator never finds the driver, because no folder contains both the library and
    ``nvidia-smi`` at the paths that it checks. The bridge checks whether the kernel modules run and the driver uses a
    GPU. It then helps in one of two ways:

    - ``stage`` copies ``libnvidia-ml.so.1`` and ``nvidia-smi`` to ``<stage_dir>/usr/lib64`` and
      ``<stage_dir>/usr/bin``. The operator needs ``hostPaths.driverInstallDir=<stage_dir>`` (``driver_install_dir``
      below). Its validator then validates the node and writes the files itself, and its ClusterPolicy can become ready.
      The validator must run, so do not set the node label ``nvidia.com/gpu.deploy.operator-validator``. The bridge
      copies the files of the node again when they change. It runs none of them.
    - ``markers`` writes the marker files in place of the validator, and again after something deletes them. Set the
      node label ``nvidia.com/gpu.deploy.operator-validator=false``. Otherwise, the validator deletes the files again
      and again, and never becomes ready.

    Both strategies need ``driver.enabled=false``, ``toolkit.enabled=false`` and ``cdi.enabled=false`` in the operator.
    If the driver stops, the bridge removes its files, and its log states the reason.

    Emits a ConfigMap and a DaemonSet ``nvidia-validation-bridge``. The pods run as root, because root owns the
    directory. They have no capability, no device, no token, and only one writable host path.

    Attributes:
        api_object: The DaemonSet.
        strategy: Strategy of the bridge.
        driver_install_dir: Value that ``hostPaths.driverInstallDir`` of the operator must have. None for ``markers``,
            which does not use it.
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
            platform: Platform of the cluster: Talos up to 1.12, or ``Kubernetes()`` if its nodes have the driver in
                other folders. Later Talos releases need no bridge, and a bridge would hide problems there.
            strategy: ``markers`` writes the files for which the operands wait. ``stage`` copies the driver files to the
                folder that the validator of the operator checks.
            expected_driver_version: Version of the driver to wait for, such as ``570.211.01``. None: any version.
            required_modules: Names of kernel modules that must run. None: ``nvidia`` and ``nvidia_uvm``.
            required_devices: Names below ``/dev`` that must be character devices, such as ``nvidiactl``. If you name
                any, the pods mount ``/dev`` of the node read-only, and open no device.
            interval_seconds: Time between two checks, in seconds.
            retract_on_exit: Whether the bridge removes its files when it stops. Running operands do not need them.
                Operands that start in that time wait for the next pod of the bridge.
            stage_dir: Directory on the node for the copies of ``stage``, which the kubelet creates. None:
                ``/var/lib/gpu-constructs/driver``. The bridge owns its two files there, so use a directory of its own.
                It must be below ``/var``, the only writable part of a Talos node. ``/run`` does not work, because Talos
                mounts it with ``noexec``.
            source_lib_dir: Folder on the node with ``libnvidia-ml.so.1``, for ``stage``. None: the folder of the
                platform. Only Talos has one.
            source_bin_dir: Folder on the node with ``nvidia-smi``, for ``stage``. None: the folder of the platform.
                Only Talos has one.
            tolerations: Taints of the GPU nodes to tolerate, besides ``nvidia.com/gpu``.
            node_selector: Node labels to select, besides those of the bridge.
            image: Image with a shell and common tools, such as BusyBox, the default.
            resources: Requests and limits of the container. The default is a request of 10m CPU and 8Mi, and a memory
                limit of 64Mi. The shell needs about 4Mi, and the container runtime starts each probe within the limit.
                A copy (3Mi) uses only page cache, which the kernel frees.

        Raises:
            GpuConstructsError: A platform that needs no bridge, a ``GpuNamespace`` that is not privileged, an option
                that the strategy does not have, or a value that is not allowed.
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

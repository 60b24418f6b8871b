"""The bridge between Talos and the GPU Operator's validation."""

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

# Each probe starts a process: on a busy node it ends in time only if its container has a share of the CPU.
_RESOURCES: Resources = {"requests": {"cpu": "10m", "memory": "8Mi"}, "limits": {"memory": "64Mi"}}

_VALIDATOR_OFF = "nvidia.com/gpu.deploy.operator-validator=false"
_WANTED: Mapping[Strategy, Mapping[str, str]] = {
    "markers": {
        _VALIDATOR_OFF: (
            "the operator's validator, which can never pass here, deletes what the bridge writes whenever it starts or "
            "stops; add TalosGpuNode(app, 'gpu-node', platform=..., operator_validator=False), or declare it with "
            "External(app, 'existing', node_labels=['nvidia.com/gpu.deploy.operator-validator'])"
        )
    },
    "stage": {},
}
_UNWANTED: Mapping[Strategy, Mapping[str, str]] = {
    "markers": {},
    "stage": {
        _VALIDATOR_OFF: (
            "the operator's validator must run to write the files that its operands wait for; leave "
            "operator_validator=False out"
        )
    },
}


class ValidationBridge(GpuObject):
    """Lets the GPU Operator's operands start where Talos brings driver and toolkit, as long as a driver is live.

    The operator's device plugin, GPU Feature Discovery and DCGM exporter wait for marker files that its
    validator writes, and until Talos 1.12 the validator never finds the driver: no folder holds both the
    library and nvidia-smi at the places it looks at. The bridge checks that the kernel modules are live and a
    GPU is bound to the driver, and then helps in one of two ways:

    - ``stage`` copies ``libnvidia-ml.so.1`` and ``nvidia-smi`` to ``<stage_dir>/usr/lib64`` and ``/usr/bin``.
      The operator, told ``hostPaths.driverInstallDir=<stage_dir>`` (``driver_install_dir`` below), then
      validates the node in earnest, writes the files itself, and its ClusterPolicy can become ready. The node
      label ``nvidia.com/gpu.deploy.operator-validator`` must not be set: the validator has to run. The copies
      are the bytes of the node, made anew when those change; nothing that is copied is run by the bridge.
    - ``markers`` writes the marker files in the validator's place, and again when they are deleted. The node
      label ``nvidia.com/gpu.deploy.operator-validator=false`` must be set: else the validator keeps deleting
      them, and never becomes ready.

    Both need ``driver.enabled=false``, ``toolkit.enabled=false`` and ``cdi.enabled=false`` of the operator.
    When the driver goes, the bridge takes back what it made, and its log says why.

    Emits ConfigMap and DaemonSet ``nvidia-validation-bridge``. The pods run as root, because the directory
    is root's, and hold nothing else: no capability, no device, no token, one writable host path.

    Attributes:
        api_object: The DaemonSet.
        strategy: Strategy of the bridge.
        driver_install_dir: Value that the operator's ``hostPaths.driverInstallDir`` must have; None with ``markers``,
            where it is not read.
        namespace: Name of the namespace it lives in.

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
        """Make the bridge.

        Args:
            scope: A chart, or a construct in one.
            id: Construct id.
            namespace: Namespace of the operator, by name or object; it must be privileged (host path).
            platform: Talos up to 1.12, or ``Kubernetes()`` where the nodes' driver lies apart. Later Talos
                needs no bridge: there the operator's own validator passes, and a bridge would hide what it
                finds.
            strategy: ``markers`` writes the files the operands wait for, ``stage`` puts the driver's files
                where the operator's validator looks for them.
            expected_driver_version: Version of the driver to wait for, like ``570.211.01``.
            required_modules: Kernel modules that must be live; by default ``nvidia`` and ``nvidia_uvm``.
            required_devices: Names below /dev that must be character devices, like ``nvidiactl``; none by
                default. With any, the pods mount the node's /dev read-only, and open nothing in it.
            interval_seconds: Seconds between two checks.
            retract_on_exit: Whether a stopped bridge takes its files with it. Running operands do not
                care; those that start meanwhile wait for the next bridge.
            stage_dir: With ``stage``: the directory of the node that gets the copies, made when missing; by
                default ``/var/lib/gpu-constructs/driver``. The bridge owns the two names in it, so pass one
                that nothing else uses. It must be below /var, the one part of a Talos node that can be
                written; not below /run, which is mounted noexec.
            source_lib_dir: With ``stage``: folder of the node with ``libnvidia-ml.so.1``. By default the platform's
                on Talos; elsewhere it is required.
            source_bin_dir: With ``stage``: folder of the node with ``nvidia-smi``; as above.
            tolerations: Taints of the GPU nodes, on top of ``nvidia.com/gpu``.
            node_selector: Additional node labels to select.
            image: Image with a shell and the common small tools.
            resources: Amounts of the container; by default requests of 10m CPU and 8Mi and a memory limit of 64Mi:
                the shell needs some 4Mi, the container runtime starts each probe within the limit, and of what is
                copied (3Mi) only page cache counts, which the kernel takes back.

        Raises:
            GpuConstructsError: The platform needs no bridge, the namespace is a ``GpuNamespace`` that is not
                privileged, an option belongs to the other strategy, or a value above is not allowed.
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

"""`PowerLimit`: a DaemonSet that sets the power limit of each GPU, and sets it again if it changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Unpack

from constructs import Construct

from gpu_constructs.catalog import versions
from gpu_constructs.catalog.platforms import DEFAULT_PLATFORM, Platform
from gpu_constructs.cluster.namespace import DEFAULT_NAMESPACE, component_namespace
from gpu_constructs.errors import GpuConstructsError, warn
from gpu_constructs.facts.provided import PowerCap, Provided, placement_of
from gpu_constructs.kube import fields, placement
from gpu_constructs.kube.pods import AgentOptions, Pods
from gpu_constructs.kube.references import NamedObject
from gpu_constructs.kube.update_strategy import UpdateStrategy
from gpu_constructs.power.boards import check_boards
from gpu_constructs.power.manifests import NAME, RESOURCES, power_limit
from gpu_constructs.power.options import AgentSettings, OutOfRange, PowerRequest, power_requests
from gpu_constructs.tree.construct import GpuObject, checked
from gpu_constructs.tree.manifest import Manifest


class PowerLimit(GpuObject):
    """A DaemonSet that sets a power limit on every GPU, checks it regularly, and sets it again if it changed.

    A GPU loses its limit when the driver reloads, when an administrator resets the GPU, or when the node reboots. A pod
    on each GPU node therefore checks the limit regularly. It uses ``nvidia-smi``, which the NVIDIA runtime mounts into
    the container. The pod requests no GPU.

    Emits a ConfigMap and a DaemonSet with the same name. The container runs as root with the capability SYS_ADMIN,
    because the NVIDIA driver requires this capability. The container is not privileged. The pod mounts no
    ServiceAccount token, and no host path except ``textfile_directory``.

    Attributes:
        name: Name of the ConfigMap and the DaemonSet.
        namespace: Namespace of the objects.
        watts: Limit of the GPUs that no key of ``limits`` selects, as the user specified it.
        requests: All requested limits in order of precedence: by UUID, PCI bus ID, index, name, and then ``watts``.
        interval_seconds: Time between two checks, in seconds.
        retry_seconds: Time from a check that found a problem until the next check, in seconds.
        out_of_range: Treatment of a limit that a board does not allow: ``clamp`` or ``refuse``.
        api_object: The DaemonSet.

    Source:
        nvidia-smi manual, "--power-limit"; NVIDIA/open-gpu-kernel-modules:kernel-open/common/inc/nv-linux.h,
        NV_IS_SUSER
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        namespace: str | NamedObject = DEFAULT_NAMESPACE,
        platform: Platform = DEFAULT_PLATFORM,
        name: str = NAME,
        watts: int | str | None = 300,
        limits: Mapping[str, int | str] | None = None,
        interval_seconds: int = 1800,
        retry_seconds: int = 15,
        start_timeout_seconds: int = 300,
        command_timeout_seconds: int = 20,
        out_of_range: OutOfRange = "clamp",
        gpu_models: Sequence[str] = (),
        persistence_mode: bool = True,
        restore_on_exit: bool = False,
        textfile_directory: str | None = None,
        **pods: Unpack[AgentOptions],
    ) -> None:
        """Create the ConfigMap and the DaemonSet.

        Args:
            scope: Chart, or a construct in a chart.
            id: ID of the construct.
            namespace: Name or object of the namespace. Its Pod Security level must be ``privileged``, because the
                container needs the capability SYS_ADMIN.
            platform: Platform of the cluster, for example ``Talos("1.12")`` or ``Kubernetes()``. It determines the
                runtime class of the pods.
            name: Name of the ConfigMap and the DaemonSet. If some nodes need other limits, create another PowerLimit
                with another name and another ``node_selector``. The pods of both DaemonSets have the same label
                ``app.kubernetes.io/name``.
            watts: Limit of each GPU that no key of ``limits`` selects: whole watts, a share of the board's default
                limit such as ``"80%"``, or ``"default"``. The default value is 300, at which an RTX 3090 (350 W) runs
                stably. If None, these GPUs keep their limit.
            limits: Limits of some GPUs, by a key that selects the GPUs: ``uuid:GPU-...``, ``pci:0000:01:00.0``,
                ``index:0``, or ``name:*RTX 3090`` with a shell pattern for the name that ``nvidia-smi`` prints. If
                several keys match a GPU, the order of precedence is UUID, PCI bus ID, index and name. If two ``name:``
                keys match, the first of the two in ``limits`` takes precedence.
            interval_seconds: Time between two checks, in seconds. At least 10; 1800 by default.
            retry_seconds: Time from a check that found a problem until the next check, in seconds. 15 by default. If
                ``interval_seconds`` is less, the pods use ``interval_seconds``.
            start_timeout_seconds: Time in seconds for which ``nvidia-smi`` may show no GPU, at the start of the
                container or later. After this time, the container exits, and the kubelet restarts it. 300 by default.
            command_timeout_seconds: Time limit of each call of ``nvidia-smi``, in seconds. 20 by default. The script
                treats a call that takes longer like a call that shows no GPU.
            out_of_range: Treatment of a limit that a board does not allow. ``clamp``, the default, sets the nearest
                limit that the board allows. With ``refuse``, the pods log an error and do not change the limit of the
                GPU.
            gpu_models: Names of the boards in the cluster, as ``nvidia-smi`` prints them. The constructor checks that
                these boards allow the limits. The pods do not use these names, because they read the allowed limits
                from the NVIDIA driver.
            persistence_mode: Whether the pods turn on the persistence mode of the NVIDIA driver. The driver then stays
                loaded while no process uses the GPU, so that the GPU keeps its limit. True by default.
            restore_on_exit: Whether a pod restores the default limit of each board when it stops. False by default,
                because otherwise every update of the DaemonSet would raise the limits for a moment.
            textfile_directory: Directory on the nodes whose ``*.prom`` files node_exporter reads. The pods write the
                requested and the actual limits to the file ``<name>.prom`` in this directory. None, the default: the
                pods write no metrics and mount no host path.
            pods: Options of the pods. For this construct:

                - ``image`` must contain glibc, a POSIX shell and ``timeout``, because ``nvidia-smi`` does not run on
                  musl.
                - ``resources`` by default request 10m CPU and 16Mi, with a memory limit of 128Mi.
                - ``priority_class_name`` has no default, because these pods must not evict workloads.
                - ``update_strategy`` must not set ``max_surge``, because the old pod must end before a new pod starts.

        Raises:
            GpuConstructsError: If a limit is invalid, if a board of ``gpu_models`` does not allow a limit and
                ``out_of_range`` is ``refuse``, or if another value is not allowed.
        """
        fields.label_value("id", id)
        where = component_namespace(namespace)
        fields.dns_label("name", name)
        requests = power_requests(watts, limits or {})
        _check_textfile_directory(textfile_directory, platform)
        settings = AgentSettings(
            interval_seconds=interval_seconds,
            retry_seconds=retry_seconds,
            start_timeout_seconds=start_timeout_seconds,
            command_timeout_seconds=command_timeout_seconds,
            out_of_range=out_of_range,
            persistence_mode=persistence_mode,
            restore_on_exit=restore_on_exit,
        )
        _check_update(pods.get("update_strategy"))
        agents = Pods(
            options=pods,
            image=versions.DEBIAN_IMAGE,
            resources=RESOURCES,
            runtime_class=platform.runtime_class,
            tolerations=(placement.CRITICAL_ADDONS, placement.GPU_TAINT),
            node_labels={placement.GPU_PRESENT: "true"},
        )
        for warning in check_boards(requests, gpu_models, out_of_range=out_of_range):
            warn(f"{scope.node.path}/{id}: {warning}".lstrip("/"))
        manifests = power_limit(
            agents,
            name=name,
            namespace=where,
            instance=id,
            requests=requests,
            settings=settings,
            textfile_directory=textfile_directory,
        )
        super().__init__(scope, id)
        self.name = name
        self.namespace = where
        self.watts = watts
        self.requests = requests
        self.interval_seconds = interval_seconds
        self.retry_seconds = retry_seconds
        self.out_of_range: OutOfRange = out_of_range
        self.provides = Provided(
            platform=platform,
            runs_on=(placement_of(manifests["Default"]["spec"]["template"]["spec"]),),
            power_caps=[PowerCap(limits=_by_board(requests), node_selector=pods.get("node_selector") or {})],
        )
        for child, manifest in manifests.items():
            Manifest(self, child, manifest)


def _by_board(requests: Sequence[PowerRequest]) -> dict[str, str]:
    """Return the requested limits by shell pattern of board names, for example ``{"*RTX 3090": "300"}``.

    The value of the pattern ``*`` is ``watts``. The result omits limits by UUID, PCI bus ID or index, because the
    library does not know which boards these limits select.
    """
    return {request.pattern or "*": request.limit for request in requests if request.target in (None, "name")}


def _check_update(strategy: UpdateStrategy | None) -> None:
    if strategy is not None and strategy.max_surge not in (None, 0, "0%"):
        raise GpuConstructsError(
            f"update_strategy must not set max_surge, got max_surge={strategy.max_surge!r}: two pods on a node would "
            "change each other's limits. Use max_unavailable"
        )


def _check_textfile_directory(given: str | None, platform: Platform) -> None:
    if given is None:
        return
    fields.absolute_path("textfile_directory", given)
    if platform.brings_driver and not given.startswith("/var/"):
        raise GpuConstructsError(
            "textfile_directory must be below /var, the only writable folder of a Talos node, got "
            f"{given!r}. Use the directory that --collector.textfile.directory of node_exporter reads"
        )

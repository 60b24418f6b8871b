"""The limit of what each GPU may draw, kept."""

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
from gpu_constructs.power.options import AgentSettings, OutOfRange, PowerWish, power_wishes
from gpu_constructs.tree.construct import GpuObject, checked
from gpu_constructs.tree.manifest import Manifest


class PowerLimit(GpuObject):
    """Sets a power limit on every GPU, reads it back, and sets it again when it drifts.

    A limit is lost when the driver is reloaded, a GPU is reset or the node reboots, so a pod on every GPU
    node looks again and again. It uses ``nvidia-smi``, which the nvidia runtime puts into the container; it
    takes no GPU slot.

    Emits a ConfigMap and a DaemonSet of one name. The container runs as root with SYS_ADMIN, which the driver
    asks for, and holds nothing else: not privileged, no token, and no host path but a ``textfile_directory``.

    Attributes:
        name: Name of the ConfigMap and the DaemonSet.
        namespace: Namespace of the objects.
        watts: The limit of GPUs that ``limits`` does not name, as given.
        wishes: All limits, in the order in which they win: by UUID, PCI bus id, index, name, then ``watts``.
        interval_seconds: Seconds between two looks.
        retry_seconds: Seconds until the next look after one that found a problem.
        out_of_range: What happens to a limit that a board does not take.
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
        """Make the power limit.

        Args:
            scope: A chart, or a construct in one.
            id: Construct id.
            namespace: By name or object; it must be privileged (SYS_ADMIN).
            platform: ``Talos("1.12")`` or ``Kubernetes()``; decides the runtime class.
            name: Name of the objects. Nodes with other limits get a PowerLimit of their own, with another name and
                another ``node_selector``; the pods' label ``app.kubernetes.io/name`` is the same for all.
            watts: Limit of each GPU: whole watts, a share of the board's default like ``"80%"``, or
                ``"default"``; 300 by default, what an RTX 3090 (350 W) runs stably at. None leaves GPUs alone
                that ``limits`` does not name.
            limits: Limits of some GPUs, by a key that chooses them: ``uuid:GPU-...``, ``pci:0000:01:00.0``,
                ``index:0`` or ``name:*RTX 3090``, a shell pattern for the name that ``nvidia-smi`` gives. Of
                several that fit, the first kind in that order wins; of two by name, the first.
            interval_seconds: Seconds between two looks, 10 or more; 1800 by default.
            retry_seconds: Seconds until the next look after one that found a problem, never more than
                ``interval_seconds``; 15 by default.
            start_timeout_seconds: Seconds without any GPU in the output of ``nvidia-smi``, at the start or later,
                after which the container ends and Kubernetes starts it again; 300 by default.
            command_timeout_seconds: Seconds after which a call of ``nvidia-smi`` that does not end is ended; 20 by
                default. Such a call counts as one that shows no GPU.
            out_of_range: ``clamp`` takes the nearest limit the board allows, ``refuse`` reports an error.
            gpu_models: Names of the boards, as ``nvidia-smi`` prints them, to compare the limits with what is
                known of those boards. The pods take nothing from it: they ask the driver.
            persistence_mode: Whether to keep the driver loaded without clients, which keeps the limit.
            restore_on_exit: Whether a stopped pod restores the board's default limit. False by default: an
                update of the DaemonSet would otherwise let power surge.
            textfile_directory: Directory of the nodes whose ``*.prom`` files their node_exporter reads; gets
                ``<name>.prom`` with the limits wanted and found. None: no such file, and no host path.
            pods: ``image`` takes any glibc image with a POSIX shell and ``timeout``, since ``nvidia-smi`` does
                not run on musl. ``resources`` are requests of 10m CPU and 16Mi and a memory limit of 128Mi by
                default. No ``priority_class_name`` by default: the agent must not evict workloads. ``update_strategy``
                must not surge.

        Raises:
            GpuConstructsError: A limit that is none, or that a board of ``gpu_models`` does not take under
                ``refuse``; an interval under 10 seconds; or another value that is not allowed.
        """
        fields.label_value("id", id)
        where = component_namespace(namespace)
        fields.dns_label("name", name)
        wishes = power_wishes(watts, limits or {})
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
        for warning in check_boards(wishes, gpu_models, out_of_range=out_of_range):
            warn(f"{scope.node.path}/{id}: {warning}".lstrip("/"))
        manifests = power_limit(
            agents,
            name=name,
            namespace=where,
            instance=id,
            wishes=wishes,
            settings=settings,
            textfile_directory=textfile_directory,
        )
        super().__init__(scope, id)
        self.name = name
        self.namespace = where
        self.watts = watts
        self.wishes = wishes
        self.interval_seconds = interval_seconds
        self.retry_seconds = retry_seconds
        self.out_of_range: OutOfRange = out_of_range
        self.provides = Provided(
            platform=platform,
            runs_on=(placement_of(manifests["Default"]["spec"]["template"]["spec"]),),
            power_caps=[PowerCap(limits=_by_board(wishes), node_selector=pods.get("node_selector") or {})],
        )
        for child, manifest in manifests.items():
            Manifest(self, child, manifest)


def _by_board(wishes: Sequence[PowerWish]) -> dict[str, str]:
    """Return the limits that a board's name decides; which board has an id is not known before it runs."""
    return {wish.pattern or "*": wish.limit for wish in wishes if wish.target in (None, "name")}


def _check_update(strategy: UpdateStrategy | None) -> None:
    if strategy is not None and strategy.max_surge not in (None, 0, "0%"):
        raise GpuConstructsError(
            "update_strategy must not surge: two agents of a node would undo each other's limits; got "
            f"max_surge={strategy.max_surge!r}; use max_unavailable"
        )


def _check_textfile_directory(given: str | None, platform: Platform) -> None:
    if given is None:
        return
    fields.absolute_path("textfile_directory", given)
    if platform.brings_driver and not given.startswith("/var/"):
        raise GpuConstructsError(
            "textfile_directory must be below /var, the one part of a Talos node that can be written; got "
            f"{given!r}; name the directory that node_exporter's --collector.textfile.directory mounts"
        )

"""`PodMapping`: options that make the DCGM exporter add the pod that uses a GPU to the metrics of that GPU."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, Literal

from gpu_constructs.catalog.sharing import GPU, Sharing
from gpu_constructs.catalog.versions import comparable
from gpu_constructs.errors import GpuConstructsError, short_errors
from gpu_constructs.kube import fields
from gpu_constructs.observability.scrape import check_re2
from gpu_constructs.records import dataclass

POD_RESOURCES = "/var/lib/kubelet/pod-resources"
"""Folder on the node with a socket of the kubelet. The socket reports which devices each pod uses."""

_SINCE = {
    "nvidia_resource_names": "3.5.0",
    "virtual_gpus": "4.0.3",
    "enable_pod_labels": "4.2.0",
    "enable_dra": "4.4.0",
    "enable_pod_uid": "4.5.0",
    "pod_label_allowlist_regex": "4.6.0",
    "host_pid": "4.8.2",
}


# Labels that the series already have. A pod label with the same name would replace them.
_OWN_LABELS = (
    "job instance node exporter_pod gpu device modelName hostname Hostname UUID pci_bus_id pod namespace container"
).split()


def _allowed(field: str, expressions: Sequence[str]) -> None:
    for expression in expressions:
        label = expression.strip("^$")
        is_own, is_several = label in _OWN_LABELS, "," in expression
        fields.refuse_first(
            [
                (
                    is_own,
                    f"{field} must not contain the label {label!r}, because it would replace the label of the series",
                ),
                (
                    is_several,
                    f"{field} must contain expressions without a comma, because the exporter splits its list there, "
                    "got "
                    f"{expression!r}. Use separate expressions",
                ),
            ]
        )
        check_re2(field, expression)


@dataclass(frozen=True, kw_only=True)
class PodMapping(fields.Options):
    """Options for pod mapping in the DCGM exporter: the labels that name the pod of each GPU.

    Pod mapping adds the labels ``pod``, ``namespace`` and ``container`` to the series of a GPU that a pod uses. The
    options add further labels, and they set how the exporter finds the pods of a GPU.

    The exporter sends its request to the kubelet through a socket that belongs to root. It mounts the folder of the
    socket from the node, so its namespace must allow privileged pods. ``DcgmExporter(pod_mapping=False)`` does not need
    this.

    Attributes:
        enable_pod_labels: Whether to add each label of a pod to the series of the pod's GPUs. The exporter then gets a
            token and the right to list pods at the API server. False by default, because each label multiplies the
            number of series.
        pod_label_allowlist_regex: Regular expressions (RE2) of the pod labels to add. Empty, the default, adds all
            labels. An expression must not contain a comma, because the exporter splits the list at commas.
        enable_pod_uid: Whether to add the label ``pod_uid``. The exporter then reads pods from the API server. False by
            default.
        virtual_gpus: Whether each pod on a shared GPU has its own series (``KUBERNETES_VIRTUAL_GPUS``). With False, the
            default, the series of a shared GPU have the labels of only one pod, the last one that the exporter finds.
            From release 4.8.2 on, True also needs ``host_pid`` and ``enable_pod_uid``. In each series,
            ``DCGM_FI_DEV_GPU_UTIL`` and ``DCGM_FI_DEV_FB_USED`` are then the values of the pod. All other metrics
            always contain the value of the whole GPU.
        host_pid: Whether the exporter sees the processes of the node. False by default.
        nvidia_resource_names: Names of further extended resources that are GPUs, besides ``nvidia.com/gpu`` and
            ``nvidia.com/mig-*``. An example is ``nvidia.com/gpu.shared``, if the device plugin renames shared
            resources.
        enable_dra: Whether to add labels for GPUs that pods get through resource claims (DRA). The exporter then reads
            ResourceSlices from the API server. For such GPUs, ``enable_pod_labels`` and ``enable_pod_uid`` have no
            effect. Up to release 4.8.2, the exporter starts only if the cluster serves
            ``resource.k8s.io/v1beta1``, which is off by default. Release 4.8.3 reads ``v1``. False by default.
        gpu_id_type: ID by which the device plugin names GPUs: ``uid``, the default, or ``device-name`` for the plugin
            of GKE.
        kubelet_path: Folder on the node that contains the socket of the kubelet. The default is the folder of standard
            kubelets and of Talos. k0s and MicroK8s use another folder.

    Raises:
        GpuConstructsError: If an expression contains a comma or is not valid, a resource name has no domain, an option
            has no effect without another one, or two options exclude each other.

    Source: NVIDIA/dcgm-exporter@4.5.3-4.8.2:pkg/cmd/app.go, internal/pkg/transformation/kubernetes.go.
    """

    enable_pod_labels: bool = False
    pod_label_allowlist_regex: Sequence[str] = ()
    enable_pod_uid: bool = False
    virtual_gpus: bool = False
    host_pid: bool = False
    nvidia_resource_names: Sequence[str] = ()
    enable_dra: bool = False
    gpu_id_type: Literal["uid", "device-name"] = "uid"
    kubelet_path: str = POD_RESOURCES

    _CHECKS: ClassVar[fields.Checks] = {
        "pod_label_allowlist_regex": _allowed,
        "nvidia_resource_names": fields.each_matching(
            r"[a-z0-9][-a-z0-9.]*\.[a-z]+/[A-Za-z0-9][-A-Za-z0-9_.]*\Z",
            "contain resources like 'nvidia.com/gpu.shared'",
        ),
        "kubelet_path": fields.absolute_path,
    }

    _KEPT: ClassVar[fields.Kept] = dict.fromkeys(("pod_label_allowlist_regex", "nvidia_resource_names"), tuple)

    def _conflicts(self) -> Iterable[fields.Conflict]:
        yield (
            self.pod_label_allowlist_regex and not self.enable_pod_labels,
            "pod_mapping.pod_label_allowlist_regex must be left out without enable_pod_labels=True, because the "
            f"exporter then adds no labels, got {list(self.pod_label_allowlist_regex)!r}",
        )
        yield (
            self.enable_dra and self.gpu_id_type != "uid",
            "pod_mapping.gpu_id_type must be 'uid' with enable_dra=True, because the exporter finds claims by the "
            f"UUIDs of GPUs, got {self.gpu_id_type!r}",
        )
        for name in ("enable_pod_labels", "enable_dra"):
            yield (
                self.virtual_gpus and getattr(self, name),
                f"pod_mapping.{name} must be left out with virtual_gpus=True, which disables it. Choose one of the two",
            )

    @classmethod
    @short_errors
    def time_slicing(
        cls, *, nvidia_resource_names: Sequence[str] = (), kubelet_path: str = POD_RESOURCES
    ) -> PodMapping:
        """Return the pod mapping options for GPUs that several pods share.

        The result sets ``virtual_gpus`` and the options that it needs, ``host_pid`` and ``enable_pod_uid``. Each pod
        then has its own series. From DCGM exporter 4.8.2 on, utilization and memory in a series are those of the pod.
        The exporter sees the processes of the node and reads pods from the API server.

        Args:
            nvidia_resource_names: Names of further extended resources that are GPUs, such as ``nvidia.com/gpu.shared``.
            kubelet_path: Folder on the node that contains the socket of the kubelet.
        """
        return cls(
            virtual_gpus=True,
            host_pid=True,
            enable_pod_uid=True,
            nvidia_resource_names=nvidia_resource_names,
            kubelet_path=kubelet_path,
        )

    @property
    def reads_pods(self) -> bool:
        """Whether the exporter reads the pods of its node from the API server."""
        return self.enable_pod_labels or self.enable_pod_uid

    def environment(self) -> dict[str, str]:
        """Return the environment variables that pass the options to the exporter."""
        switches = {
            "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS": self.enable_pod_labels,
            "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID": self.enable_pod_uid,
            "KUBERNETES_ENABLE_DRA": self.enable_dra,
            "KUBERNETES_VIRTUAL_GPUS": self.virtual_gpus,
        }
        texts = {
            "DCGM_EXPORTER_KUBERNETES_POD_LABEL_ALLOWLIST_REGEX": ",".join(self.pod_label_allowlist_regex),
            "DCGM_EXPORTER_KUBERNETES_GPU_ID_TYPE": "" if self.gpu_id_type == "uid" else self.gpu_id_type,
            "NVIDIA_RESOURCE_NAMES": ",".join(self.nvidia_resource_names),
        }
        return {name: "true" for name, is_on in switches.items() if is_on} | {n: t for n, t in texts.items() if t}

    def rules(self) -> list[dict[str, list[str]]]:
        """Return the RBAC rules of the exporter: one to read pods, and one to read ResourceSlices.

        Each rule is absent if the options do not need it. Labels and UIDs of pods need the first rule, and resource
        claims need the second. With only the second rule, the exporter repeatedly logs an error because it cannot read
        pods. The error has no other effect.
        """
        verbs = ["get", "list", "watch"]
        pods = {"apiGroups": [""], "resources": ["pods"], "verbs": verbs}
        slices = {"apiGroups": ["resource.k8s.io"], "resources": ["resourceslices"], "verbs": verbs}
        return [*([pods] if self.reads_pods else []), *([slices] if self.enable_dra else [])]


def pod_mapping(given: bool | PodMapping, sharing: Sharing | None, release: str) -> PodMapping | None:
    """Return the pod mapping options that a ``DcgmExporter`` uses. Return None if the user disables pod mapping.

    Args:
        given: Option ``pod_mapping`` of the user. True: the options that fit ``sharing``.
        sharing: Strategy with which the device plugin shares the GPUs. None: unknown.
        release: Release of the exporter.

    Raises:
        GpuConstructsError: If the release does not support an option, or the value has another type.
    """
    fields.of_type("pod_mapping", given, bool | PodMapping)
    fields.of_type("sharing", sharing, Sharing | None)
    if given is False:
        if sharing is not None and sharing.strategy != "none":
            raise GpuConstructsError(
                f"sharing must be left out with pod_mapping=False, which names no pod at all, got {sharing.strategy!r}"
            )
        return None
    mapping = _for_sharing(sharing, release) if given is True else given
    check_release(mapping, release)
    return mapping


def check_release(mapping: PodMapping, release: str) -> None:
    """Check that an exporter release supports the pod mapping options.

    Raises:
        GpuConstructsError: If the release does not support an option, or would report wrong values with it.
    """
    number = comparable(release)
    for name, since in _SINCE.items():
        if getattr(mapping, name) and number < comparable(since):
            raise GpuConstructsError(
                f"pod_mapping.{name} needs version {since!r} or later of the DCGM exporter, got {release!r}. Use a "
                f"later version, or leave {name} out"
            )
    if (
        mapping.virtual_gpus
        and number >= comparable(_SINCE["host_pid"])
        and not (mapping.host_pid and mapping.enable_pod_uid)
    ):
        raise GpuConstructsError(
            f"pod_mapping.virtual_gpus needs host_pid=True and enable_pod_uid=True with DCGM exporter {release!r}, "
            "which would otherwise report 0 for the utilization and VRAM of every pod. Set both, or use "
            "PodMapping.time_slicing(), which sets them"
        )


def _for_sharing(sharing: Sharing | None, release: str) -> PodMapping:
    """Return the pod mapping options for a sharing strategy, such as ``virtual_gpus`` for time-slicing.

    Raises:
        GpuConstructsError: If the exporter release cannot report several pods of a shared GPU.
    """
    if sharing is None or sharing.strategy == "none":
        return PodMapping()
    renamed = {sharing.resource_name(resource) for resource in sharing.resources}
    foreign = sorted(name for name in renamed if name != GPU and not name.startswith("nvidia.com/mig-"))
    if comparable(release) < comparable(_SINCE["virtual_gpus"]):
        raise GpuConstructsError(
            f"sharing must be left out with DCGM exporter {release!r}, which names only one of the pods that share a "
            f"GPU, got {sharing.strategy!r}. Use version '4.8.2' or later"
        )
    if comparable(release) < comparable(_SINCE["host_pid"]):
        return PodMapping(virtual_gpus=True, nvidia_resource_names=foreign)
    return PodMapping.time_slicing(nvidia_resource_names=foreign)

"""How the DCGM exporter learns which pod holds which GPU, and what of the pod it writes on the series."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from gpu_constructs.catalog.sharing import GPU, Sharing
from gpu_constructs.errors import GpuConstructsError, short_errors
from gpu_constructs.kube import fields
from gpu_constructs.observability.metrics import release_number
from gpu_constructs.observability.scrape import check_re2

POD_RESOURCES = "/var/lib/kubelet/pod-resources"
"""The kubelet's folder with the socket that tells which device went to which pod."""

_SINCE = {
    "nvidia_resource_names": (3, 5, 0),
    "virtual_gpus": (4, 0, 3),
    "enable_pod_labels": (4, 2, 0),
    "enable_dra": (4, 4, 0),
    "enable_pod_uid": (4, 5, 0),
    "pod_label_allowlist_regex": (4, 6, 0),
    "host_pid": (4, 8, 2),
}


# Labels that series have already: a pod's label of that name would take their place.
_OWN_LABELS = (
    "job instance node exporter_pod gpu device modelName hostname Hostname UUID pci_bus_id pod namespace container"
).split()


def _allowed(field: str, expressions: Sequence[str]) -> None:
    for expression in expressions:
        label = expression.strip("^$")
        is_own, is_several = label in _OWN_LABELS, "," in expression
        fields.refuse_first(
            [
                (is_own, f"{field} must not take the label {label!r}: it would take the place of the series' own"),
                (
                    is_several,
                    f"{field} must hold expressions without a comma, at which the exporter splits its list; got "
                    f"{expression!r}; write them apart",
                ),
            ]
        )
        check_re2(field, expression)


@dataclass(frozen=True, kw_only=True)
class PodMapping(fields.Options):
    """What the exporter writes on the series of a GPU that a pod holds, beside ``pod``, ``namespace``, ``container``.

    It asks the kubelet over a socket that belongs to root, for which it mounts a folder of the node: the pod
    needs a privileged namespace. ``DcgmExporter(pod_mapping=False)`` does without.

    Attributes:
        enable_pod_labels: Write the pod's labels on the series, one label each. The pods are read from the API
            server: the exporter gets a token and may list pods. False, since every label multiplies series.
        pod_label_allowlist_regex: Regular expressions (RE2) of the pod labels to take; empty takes all. A comma
            would end one: the exporter splits its list there.
        enable_pod_uid: Write ``pod_uid``; reads the pods too.
        virtual_gpus: A series for each pod of a shared GPU, instead of one that names only the last pod
            (``KUBERNETES_VIRTUAL_GPUS``). From release 4.8.2 on ``DCGM_FI_DEV_GPU_UTIL`` and
            ``DCGM_FI_DEV_FB_USED`` are each pod's own, for which it needs ``host_pid`` and ``enable_pod_uid``:
            without them it would write 0 for every pod. All other values are the whole GPU's.
        host_pid: See the processes of the node.
        nvidia_resource_names: Resources that are GPUs too, beside ``nvidia.com/gpu`` and ``nvidia.com/mig-*``;
            ``nvidia.com/gpu.shared`` where sharing renames.
        enable_dra: Find GPUs that were given by resource claims too; reads ResourceSlices from the API server.
            Their series carry the claim's labels, but neither pod labels nor ``pod_uid``. Up to release 4.8.2
            the exporter reads them as ``resource.k8s.io/v1beta1``, which a cluster serves only when told to, and
            never starts where it does not; 4.8.3 reads ``v1``.
        gpu_id_type: How the device plugin names GPUs: ``uid``, or ``device-name`` for GKE's own plugin.
        kubelet_path: Where the node has the folder of the socket. The default is that of kubelets and of
            Talos; k0s and MicroK8s have another.

    Raises:
        GpuConstructsError: An expression with a comma or no expression, a resource without a domain, an option
            that does nothing without another, or ``virtual_gpus`` with what it switches off.

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
            "hold resources like 'nvidia.com/gpu.shared'",
        ),
        "kubelet_path": fields.absolute_path,
    }

    _KEPT: ClassVar[fields.Kept] = dict.fromkeys(("pod_label_allowlist_regex", "nvidia_resource_names"), tuple)

    def _conflicts(self) -> Iterable[fields.Conflict]:
        yield (
            self.pod_label_allowlist_regex and not self.enable_pod_labels,
            "pod_mapping.pod_label_allowlist_regex must be left out without enable_pod_labels=True: no label is "
            f"taken then; got {list(self.pod_label_allowlist_regex)!r}",
        )
        yield (
            self.enable_dra and self.gpu_id_type != "uid",
            "pod_mapping.gpu_id_type must be 'uid' with enable_dra=True: claims are found by the GPUs' UUIDs; "
            f"got {self.gpu_id_type!r}",
        )
        for name in ("enable_pod_labels", "enable_dra"):
            yield (
                self.virtual_gpus and getattr(self, name),
                f"pod_mapping.{name} must be left out with virtual_gpus=True: the exporter then writes one series "
                "for each pod and stops before it; choose one of the two",
            )

    @classmethod
    @short_errors
    def time_slicing(
        cls, *, nvidia_resource_names: Sequence[str] = (), kubelet_path: str = POD_RESOURCES
    ) -> PodMapping:
        """Attribute a GPU that pods share: what must go together for it, switched on together.

        Each pod gets its own series, and from release 4.8.2 on utilisation and VRAM are its own. The exporter
        sees the processes of the node and reads pods from the API server.

        Args:
            nvidia_resource_names: See the class.
            kubelet_path: See the class.
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
        """Return the variables of the exporter."""
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
        """Return what the exporter must be allowed to read: pods for labels and UIDs of pods, slices for claims.

        With a token but without leave to read pods, as for claims alone, it says so in its log again and again;
        nothing else comes of it.
        """
        verbs = ["get", "list", "watch"]
        pods = {"apiGroups": [""], "resources": ["pods"], "verbs": verbs}
        slices = {"apiGroups": ["resource.k8s.io"], "resources": ["resourceslices"], "verbs": verbs}
        return [*([pods] if self.reads_pods else []), *([slices] if self.enable_dra else [])]


def pod_mapping(given: bool | PodMapping, sharing: Sharing | None, release: str) -> PodMapping | None:
    """Return the mapping that a user asks for, or None without one.

    Raises:
        GpuConstructsError: An option that the release does not have, or something else altogether.
    """
    fields.of_type("pod_mapping", given, bool | PodMapping)
    fields.of_type("sharing", sharing, Sharing | None)
    if given is False:
        if sharing is not None and sharing.strategy != "none":
            raise GpuConstructsError(
                f"sharing must be left out with pod_mapping=False, which names no pod at all; got {sharing.strategy!r}"
            )
        return None
    mapping = _for_sharing(sharing, release) if given is True else given
    check_release(mapping, release)
    return mapping


def check_release(mapping: PodMapping, release: str) -> None:
    """Check that a release has the options of a mapping.

    Raises:
        GpuConstructsError: It does not have one, or would misread one.
    """
    number = release_number(release)
    for name, since in _SINCE.items():
        if getattr(mapping, name) and number < since:
            first = ".".join(map(str, since))
            raise GpuConstructsError(
                f"pod_mapping.{name} must be left out with version {release!r}: it came with {first}; "
                "take a later version"
            )
    if mapping.virtual_gpus and number >= _SINCE["host_pid"] and not (mapping.host_pid and mapping.enable_pod_uid):
        raise GpuConstructsError(
            f"pod_mapping.virtual_gpus needs host_pid=True and enable_pod_uid=True with version {release!r}, which "
            "would else write 0 for every pod's utilisation and VRAM; use PodMapping.time_slicing()"
        )


def _for_sharing(sharing: Sharing | None, release: str) -> PodMapping:
    """Return the mapping that fits how GPUs are shared, as far as the release can."""
    if sharing is None or sharing.strategy == "none":
        return PodMapping()
    renamed = {sharing.resource_name(resource) for resource in sharing.resources}
    foreign = sorted(name for name in renamed if name != GPU and not name.startswith("nvidia.com/mig-"))
    if release_number(release) < _SINCE["virtual_gpus"]:
        raise GpuConstructsError(
            f"sharing must be left out with version {release!r}, which names one of the pods that share a GPU and "
            f"no other; got {sharing.strategy!r}; take version '4.8.2' or later"
        )
    if release_number(release) < _SINCE["host_pid"]:
        return PodMapping(virtual_gpus=True, nvidia_resource_names=foreign)
    return PodMapping.time_slicing(nvidia_resource_names=foreign)

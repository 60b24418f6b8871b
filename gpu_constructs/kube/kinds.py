"""Facts about built-in kinds of Kubernetes, and the canonical form in which the API server stores their objects.

If a manifest is not in this form, ``kubectl apply`` reports ``configured`` at each run, although nothing changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import ROUND_CEILING, Decimal
from typing import Any

from gpu_constructs.kube import fields
from gpu_constructs.kube.pod_specs import pod_specs

NAMESPACES_OF_EVERY_CLUSTER = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})
"""Namespaces that Kubernetes creates. An app must not emit a Namespace with one of these names."""

BUILT_IN_GROUPS = frozenset(
    {
        "",
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "apps",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "autoscaling",
        "batch",
        "certificates.k8s.io",
        "coordination.k8s.io",
        "discovery.k8s.io",
        "events.k8s.io",
        "flowcontrol.apiserver.k8s.io",
        "lifecycle.k8s.io",
        "networking.k8s.io",
        "node.k8s.io",
        "policy",
        "rbac.authorization.k8s.io",
        "resource.k8s.io",
        "scheduling.k8s.io",
        "storage.k8s.io",
        "storagemigration.k8s.io",
    }
)

_CLUSTER_SCOPED = frozenset(
    {
        ("", "Namespace"),
        ("", "Node"),
        ("", "PersistentVolume"),
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"),
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"),
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"),
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
        ("apiregistration.k8s.io", "APIService"),
        ("certificates.k8s.io", "CertificateSigningRequest"),
        ("certificates.k8s.io", "ClusterTrustBundle"),
        ("flowcontrol.apiserver.k8s.io", "FlowSchema"),
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"),
        ("networking.k8s.io", "IPAddress"),
        ("networking.k8s.io", "IngressClass"),
        ("networking.k8s.io", "ServiceCIDR"),
        ("node.k8s.io", "RuntimeClass"),
        ("rbac.authorization.k8s.io", "ClusterRole"),
        ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
        ("resource.k8s.io", "DeviceClass"),
        ("resource.k8s.io", "DeviceTaintRule"),
        ("resource.k8s.io", "ResourceSlice"),
        ("scheduling.k8s.io", "PriorityClass"),
        ("storage.k8s.io", "CSIDriver"),
        ("storage.k8s.io", "CSINode"),
        ("storage.k8s.io", "StorageClass"),
        ("storage.k8s.io", "VolumeAttachment"),
        ("storage.k8s.io", "VolumeAttributesClass"),
        ("storagemigration.k8s.io", "StorageVersionMigration"),
    }
)

# NVIDIA/gpu-operator@v26.7.0:deployments/gpu-operator/crds
_OF_THE_GPU_OPERATOR = frozenset(
    {("nvidia.com", "ClusterPolicy"), ("nvidia.com", "GPUCluster"), ("nvidia.com", "NVIDIADriver")}
)


def group_of(api_version: str) -> str:
    """Return the API group of an API version: ``apps`` for ``apps/v1``, empty for ``v1`` (the core group)."""
    return api_version.rpartition("/")[0]


def is_cluster_scoped(api_version: str, kind: str) -> bool:
    """Check whether a kind of Kubernetes or of the GPU Operator is cluster-scoped."""
    return (group_of(api_version), kind) in _CLUSTER_SCOPED | _OF_THE_GPU_OPERATOR


def identity_of(manifest: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """Return the API group, kind, namespace and name of an object, which together identify it in the API server."""
    metadata = manifest["metadata"]
    group = group_of(manifest["apiVersion"])
    return group, manifest["kind"], metadata.get("namespace") or "", metadata["name"]


Object = dict[str, Any]

_QUANTITY = fields.regex(r"(-?[0-9]+(?:\.[0-9]+)?)(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|)\Z")
_DECIMAL = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")

# These fields are not pointers in Go, so the API server omits them if they are false or 0. It also omits empty lists.
# kubernetes/api@v0.36.0:core/v1/types.go, and apps/v1/types.go for minReadySeconds
_LEFT_OUT_OF_POD = {"": ("hostIPC", "hostNetwork", "hostPID"), "volumes.persistentVolumeClaim": ("readOnly",)}
_LEFT_OUT_OF_CONTAINER = {
    "": ("stdin", "stdinOnce", "tty"),
    "volumeMounts": ("readOnly",),
    "ports": ("hostPort", "nodePort"),
    **dict.fromkeys(("livenessProbe", "readinessProbe", "startupProbe"), ("initialDelaySeconds",)),
}
_LEFT_OUT_OF_KIND: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "PriorityClass": {"": ("globalDefault",)},
    "Service": {"spec": (), "spec.ports": ("hostPort", "nodePort")},
}
_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
_AMOUNTS_OF_KIND = {
    "PersistentVolumeClaim": ("spec.resources.limits", "spec.resources.requests"),
    "ResourceQuota": ("spec.hard",),
    "LimitRange": tuple(f"spec.limits.{one}" for one in "default defaultRequest max maxLimitRequestRatio min".split()),
}
_AMOUNTS_OF_TEMPLATES = tuple(f"spec.volumeClaimTemplates.{path}" for path in _AMOUNTS_OF_KIND["PersistentVolumeClaim"])


def canonical_quantity(given: object) -> object:
    """Return a quantity in canonical form: ``"1"`` for 1 and ``1000m``, ``"1Gi"`` for ``1024Mi``.

    Args:
        given: Number or text. The function returns other values, and quantities with an exponent, unchanged.

    Source:
        kubernetes/apimachinery@v0.36.0:pkg/api/resource/quantity.go, CanonicalizeBytes
    """
    read = _QUANTITY.match(str(given)) if isinstance(given, int | float | str) and not isinstance(given, bool) else None
    if read is None:
        return given
    amount = Decimal(read[1]) * fields.FACTORS[read[2]]
    if read[2] in _BINARY[1:] and abs(amount) >= 1024:
        return _shortest(int(amount.to_integral_value(ROUND_CEILING)), 1024, _BINARY)
    return _shortest(int(amount.scaleb(9).to_integral_value(ROUND_CEILING)), 1000, _DECIMAL)


def _shortest(amount: int, step: int, units: tuple[str, ...]) -> str:
    if amount == 0:
        return "0"
    unit = 0
    while amount % step == 0 and unit < len(units) - 1:
        amount, unit = amount // step, unit + 1
    return f"{amount}{units[unit]}"


def make_canonical(manifest: Object) -> None:
    """Change the manifest of a built-in kind to the canonical form, in which the API server stores the object.

    Quantities get their canonical text. The function also removes fields that the server omits because they are false,
    0 or empty. It changes the given manifest and returns nothing.
    """
    if group_of(manifest["apiVersion"]) not in BUILT_IN_GROUPS:
        return
    for pod_spec in pod_specs(manifest):
        _make_pod_canonical(pod_spec)
    kind = manifest["kind"]
    _write_amounts(manifest, _AMOUNTS_OF_KIND.get(kind, _AMOUNTS_OF_TEMPLATES))
    _leave_out(manifest, _LEFT_OUT_OF_KIND.get(kind, {}))
    if manifest["apiVersion"] == "apps/v1":
        _leave_out(manifest, {"spec": ("minReadySeconds",)})


def _make_pod_canonical(spec: Any) -> None:
    _leave_out(spec, _LEFT_OUT_OF_POD)
    for container in (each for group in _CONTAINERS for each in _at(spec, group)):
        _leave_out(container, _LEFT_OUT_OF_CONTAINER)
        _write_amounts(container, ("resources.limits", "resources.requests"))
    for source in _at(spec, "volumes.emptyDir"):
        if "sizeLimit" in source:
            source["sizeLimit"] = canonical_quantity(source["sizeLimit"])


def _write_amounts(holder: Object, paths: Iterable[str]) -> None:
    for amounts in (each for path in paths for each in _at(holder, path)):
        for name, amount in amounts.items():
            amounts[name] = canonical_quantity(amount)


def _leave_out(holder: Object, names_at: Mapping[str, tuple[str, ...]]) -> None:
    """Remove fields that the API server does not store: empty lists, and certain fields that are false or 0.

    For example, ``{"volumeMounts": ("readOnly",)}`` removes ``readOnly: false`` and every empty list from each volume
    mount of a container.

    Args:
        holder: Manifest, or a pod spec or container in a manifest. The function changes it.
        names_at: Names of the fields to remove if they are false or 0, by dotted path of the mappings that contain the
            fields. The path begins in ``holder``. The empty path means ``holder`` itself.
    """
    for path, names in names_at.items():
        for members in _at(holder, path):
            empty = [key for key, value in members.items() if value == [] or (key in names and value in (False, 0))]
            for name in empty:
                del members[name]


def _at(holder: Object, path: str) -> Iterator[Object]:
    """Yield each mapping at a dotted path of a manifest. At a list, the path continues in each item."""
    if not path:
        yield holder
        return
    field, _, rest = path.partition(".")
    value = holder.get(field)
    for one in value if isinstance(value, list) else (value,):
        if isinstance(one, dict):
            yield from _at(one, rest)

"""Which labels a node may give itself."""

from __future__ import annotations

from collections.abc import Mapping

from gpu_constructs import _fields
from gpu_constructs.errors import GpuConstructsError

OPERATOR_VALIDATOR = "nvidia.com/gpu.deploy.operator-validator"
"""``false`` keeps the GPU Operator's validator off a node."""

_GUARDED_DOMAINS = ("kubernetes.io", "k8s.io")
_OPEN_DOMAINS = ("kubelet.kubernetes.io", "node.kubernetes.io")
# kubernetes/kubernetes:staging/src/k8s.io/kubelet/pkg/apis/well_known_labels.go
_KUBELETS_OWN = frozenset(
    (
        "beta.kubernetes.io/arch",
        "beta.kubernetes.io/instance-type",
        "beta.kubernetes.io/os",
        "failure-domain.beta.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "kubernetes.io/arch",
        "kubernetes.io/hostname",
        "kubernetes.io/os",
        "topology.kubernetes.io/region",
        "topology.kubernetes.io/zone",
    )
)


def may_label_itself(key: str) -> bool:
    """Whether the admission plugin NodeRestriction lets a node's own credentials set a label."""
    domain = key.rpartition("/")[0]
    return not _is_below(domain, _GUARDED_DOMAINS) or key in _KUBELETS_OWN or _is_below(domain, _OPEN_DOMAINS)


def _is_below(domain: str, others: tuple[str, ...]) -> bool:
    return any(domain == other or domain.endswith(f".{other}") for other in others)


def check_node_labels(field: str, labels: Mapping[str, str], *, is_worker: bool) -> None:
    """Refuse labels that would never reach the node.

    Talos sets the labels of a worker by the worker's own credentials; one refused label keeps off all others.
    """
    _fields.labels(field, labels)
    for key in labels:
        if is_worker and not may_label_itself(key):
            raise GpuConstructsError(
                f"{field} must not hold labels that NodeRestriction keeps a worker from setting; got {key!r}, and "
                f"none of the labels would be set; use kubectl label, or a key outside {' and '.join(_GUARDED_DOMAINS)}"
            )

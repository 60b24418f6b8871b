"""Domains of node labels that neither an app nor its administrators set."""

from __future__ import annotations

_ONCE_A_NODE_RUNS = (
    *("nvidia.com", "feature.node.kubernetes.io", "extensions.talos.dev"),
    *("topology.kubernetes.io", "failure-domain.beta.kubernetes.io", "beta.kubernetes.io"),
    *("amazonaws.com", "aws.com", "k8s.aws", "karpenter.sh", "eksctl.io", "cloud.google.com", "gke.io"),
    *("kubernetes.azure.com", "azure.com", "oraclecloud.com", "digitalocean.com", "scaleway.com", "hetzner.cloud"),
    *(
        "linode.com",
        "vultr.com",
        "ovh.net",
        "ibm.com",
        "alibabacloud.com",
        "aliyun.com",
        "tencent.com",
        "coreweave.com",
    ),
    *("coreweave.cloud", "nebius.com", "crusoe.ai", "cast.ai"),
    *(
        "cattle.io",
        "k3s.io",
        "openshift.io",
        "k8s.io",
        "x-k8s.io",
        "sidero.dev",
        "mirantis.com",
        "k0sproject.io",
        "microk8s.io",
    ),
    *("intel.com", "amd.com", "cilium.io", "projectcalico.org", "harvesterhci.io"),
)
"""Set by discoveries, operating systems and clouds once a node runs, each with its subdomains."""

_LABELS = frozenset(("kubernetes.io/arch", "node.kubernetes.io/instance-type"))
_DISCOVERED = ("nvidia.com", "feature.node.kubernetes.io")


def is_known_once_a_node_runs(label: str) -> bool:
    """Check whether a label is set by a discovery, an operating system or a cloud."""
    return label in _LABELS or _is_in(label, _ONCE_A_NODE_RUNS)


def is_set_by_others(label: str) -> bool:
    """Check whether Kubernetes, an operating system or a cloud sets a label; no discovery that an app may bring."""
    if label.partition("/")[0] in _DISCOVERED:
        return False
    return is_known_once_a_node_runs(label) or _is_in(label, ("kubernetes.io",))


def _is_in(label: str, domains: tuple[str, ...]) -> bool:
    domain = label.rpartition("/")[0]
    return any(domain == one or domain.endswith(f".{one}") for one in domains)

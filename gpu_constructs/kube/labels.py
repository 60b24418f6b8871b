"""Labels of the objects that this library emits, and domains of node labels that other software sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_WRITTEN_BY = {"app.kubernetes.io/managed-by": "cdk8s"}
COMPONENT = "app.kubernetes.io/component"


def selector_labels(*, name: str, instance: str, component: str) -> dict[str, str]:
    """Return the labels that identify the pods of one workload.

    The labels never change between releases of this library, because Kubernetes forbids a change of selectors.
    """
    return {
        "app.kubernetes.io/name": name,
        "app.kubernetes.io/instance": instance,
        COMPONENT: component,
    }


def object_labels(selector: dict[str, str], *, version: str | None = None) -> dict[str, str]:
    """Return the labels of an object: its selector labels, the version of its software, and ``managed-by: cdk8s``."""
    release = {"app.kubernetes.io/version": version} if version else {}
    return {**selector, **release, **_WRITTEN_BY}


def is_ours(manifest: Mapping[str, Any]) -> bool:
    """Check whether an object has the labels that this library adds to every object that it emits."""
    labels: dict[str, str] = (manifest.get("metadata") or {}).get("labels") or {}
    expected = object_labels(selector_labels(name="", instance="", component=""))
    return expected.keys() <= labels.keys() and _WRITTEN_BY.items() <= labels.items()


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
"""Domains of node labels that feature discovery, the operating system or the cloud provider sets on a running node.

The library treats subdomains of these domains in the same way.
"""

_LABELS = frozenset(("kubernetes.io/arch", "node.kubernetes.io/instance-type"))
_DISCOVERED = ("nvidia.com", "feature.node.kubernetes.io")
# ROCm/gpu-operator@v1.5.1:helm-charts-k8s/templates/gpu-nfd-default-rule.yaml, nic-nfd-default-rule.yaml
_OF_AMD = "feature.node.kubernetes.io/amd-"


def is_known_once_a_node_runs(label: str) -> bool:
    """Check whether a node label comes from feature discovery, the operating system or the cloud provider.

    For example, return True for labels of Node Feature Discovery, GPU Feature Discovery and AWS.
    """
    return label in _LABELS or _is_in(label, _ONCE_A_NODE_RUNS)


def is_set_by_others(label: str) -> bool:
    """Check whether a node label comes from Kubernetes, or from software that the user's app cannot install.

    For example, return True for labels of AWS and of the AMD GPU Operator. Return False for labels of Node Feature
    Discovery and GPU Feature Discovery, because the user's app can install both. Also return False for unknown labels.
    """
    if label.partition("/")[0] in _DISCOVERED:
        return label.startswith(_OF_AMD)
    return is_known_once_a_node_runs(label) or _is_in(label, ("kubernetes.io",))


def _is_in(label: str, domains: tuple[str, ...]) -> bool:
    domain = label.rpartition("/")[0]
    return any(domain == one or domain.endswith(f".{one}") for one in domains)

"""What each of NFD's programs may do to the API: what its options make it do, and nothing else.

Source: kubernetes-sigs/node-feature-discovery@v0.17.3 and @v0.19.0, pkg/nfd-master, pkg/nfd-worker, pkg/nfd-gc,
pkg/nfd-topology-updater and pkg/resourcemonitor: every call of an API client.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpu_constructs.feature_discovery.node_feature_discovery import (
    NfdComponent,
    NfdMaster,
    NfdTopologyUpdater,
    NfdWorker,
    NodeFeatureDiscovery,
)
from gpu_constructs.versions import NodeFeatureDiscoveryRelease

Rules = Sequence[Mapping[str, Any]]

_NFD = "nfd.k8s-sigs.io"
_TOPOLOGIES = "noderesourcetopologies"
_TOPOLOGY_GROUP = "topology.node.k8s.io"
_LEASE = "nfd-master.nfd.kubernetes.io"


@dataclass(frozen=True, kw_only=True)
class Rights:
    """Rules of a component.

    Attributes:
        cluster: Of the whole cluster.
        namespace: Of its own namespace.
    """

    cluster: Rules = ()
    namespace: Rules = ()


def _rule(group: str, resources: str, verbs: str, *names: str) -> dict[str, Any]:
    rule = {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split()}
    return {**rule, "resourceNames": list(names)} if names else rule


def rights(
    component: NfdComponent,
    installation: NodeFeatureDiscovery,
    release: NodeFeatureDiscoveryRelease,
    namespace: str,
) -> Rights:
    """Give what a component may do.

    Args:
        component: Its options.
        installation: Those of all components.
        release: What runs.
        namespace: Where it runs.
    """
    if isinstance(component, NfdMaster):
        return _master(component, has_groups=installation.has_gate("NodeFeatureGroupAPI"))
    if isinstance(component, NfdWorker):
        return _worker(component, release)
    if isinstance(component, NfdTopologyUpdater):
        return _topology_updater(component, release, namespace)
    return _garbage_collector()


def _master(master: NfdMaster, *, has_groups: bool) -> Rights:
    # Nodes are patched; only -prune, which we never run, would update them whole.
    cluster = [
        _rule("", "nodes", "get list patch"),
        _rule("", "nodes/status", "patch"),
        _rule(_NFD, "nodefeatures nodefeaturerules", "list watch"),
    ]
    namespace = []
    if master.document().get("restrictions", {}).get("nodeFeatureNamespaceSelector") is not None:
        cluster.append(_rule("", "namespaces", "list watch"))
    if has_groups:
        cluster.append(_rule(_NFD, "nodefeaturegroups", "list watch"))
        namespace += [_rule(_NFD, "nodefeaturegroups", "get"), _rule(_NFD, "nodefeaturegroups/status", "update")]
    if master.replica_count > 1:
        lease = "coordination.k8s.io"
        namespace += [_rule(lease, "leases", "create"), _rule(lease, "leases", "get update", _LEASE)]
    return Rights(cluster=cluster, namespace=namespace)


def owner_references(worker: NfdWorker, release: NodeFeatureDiscoveryRelease) -> tuple[str, ...]:
    """Give who owns what the worker publishes, in the order the worker lists them."""
    if not release.has_owner_refs:
        return () if worker.document().get("core", {}).get("noOwnerRefs") else ("pod", "ds")
    return ("pod", "ds") if worker.owner_refs is None else tuple(worker.owner_refs)


def _worker(worker: NfdWorker, release: NodeFeatureDiscoveryRelease) -> Rights:
    owners = owner_references(worker, release)
    # Some clusters let only those who may delete an object change its owners.
    namespace = [_rule(_NFD, "nodefeatures", "create delete get update")]
    if "ds" in owners:
        namespace.append(_rule("", "pods", "get"))
    return Rights(cluster=[_rule("", "nodes", "get")] if "node" in owners else [], namespace=namespace)


def _garbage_collector() -> Rights:
    # It looks for topologies whatever is installed: without the right to, it logs an error at every look and counts
    # every node that goes as a failure.
    return Rights(
        cluster=[
            _rule("", "nodes", "list watch"),
            _rule(_NFD, "nodefeatures", "delete list"),
            _rule(_TOPOLOGY_GROUP, _TOPOLOGIES, "delete list"),
        ]
    )


def _topology_updater(updater: NfdTopologyUpdater, release: NodeFeatureDiscoveryRelease, namespace: str) -> Rights:
    cluster = [
        _rule(_TOPOLOGY_GROUP, _TOPOLOGIES, "create get update"),
        _rule("", "pods", "get list watch" if release.watches_pods else "get"),
        _rule("", "namespaces", "get", namespace),
    ]
    if updater.kubelet_config_path is None:
        # Not nodes/proxy, which NFD's chart gave it before 0.19.0: who holds that runs commands in any pod.
        cluster.append(_rule("", "nodes/configz", "get"))
    if release.awaits_topology_definition:
        group = "apiextensions.k8s.io"
        cluster.append(_rule(group, "customresourcedefinitions", "get", f"{_TOPOLOGIES}.{_TOPOLOGY_GROUP}"))
    return Rights(cluster=cluster)

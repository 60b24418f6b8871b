"""The flags, environment variables, ports, probes, mounts and RBAC rules of each Node Feature Discovery component.

The table ``programs.yaml`` lists these settings. A row of the table can contain the name of a *fact*. A fact is a value
that the library computes from the options of the component, for example ``is_several`` (several pods).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

from gpu_constructs.catalog.versions import NodeFeatureDiscoveryRelease
from gpu_constructs.feature_discovery.components import NfdComponent, NfdTopologyUpdater
from gpu_constructs.feature_discovery.config import merged
from gpu_constructs.feature_discovery.node_feature_discovery import NodeFeatureDiscovery
from gpu_constructs.feature_discovery.options import duration_text, programs
from gpu_constructs.kube import env, resources
from gpu_constructs.kube.container_security import container_security

_CONFIG_FOLDER = "/etc/kubernetes/node-feature-discovery"
_SOCKET_FOLDER = "/host-var/lib/kubelet-podresources"
_PORT_FLAGS = {"http": "-port", "metrics": "-metrics", "health": "-grpc-health"}

Facts = Mapping[str, Any]


def facts_of(
    component: NfdComponent,
    given: NodeFeatureDiscovery,
    release: NodeFeatureDiscoveryRelease,
    namespace: str,
) -> Facts:
    """Return the values to which rows of the table ``programs.yaml`` refer, by name.

    These are the options of the component, such as ``port``, and values that the library computes, such as
    ``is_several`` (True if the component has several pods).

    Args:
        component: Options of the component.
        given: Options of Node Feature Discovery.
        release: Release of Node Feature Discovery.
        namespace: Namespace of the component.
    """
    options = {one.name: getattr(component, one.name) for one in dataclasses.fields(component)}
    texts = {name: duration_text(value) for name, value in options.items() if isinstance(value, timedelta)}
    document = component.document() or {}
    folder, _, socket = options.get("kubelet_pod_resources_sock_path", "").rpartition("/")
    owners = _owners(options, document, release)
    return {
        **options,
        **texts,
        "asks_kubelet": options.get("kubelet_config_path") is None,
        "awaits_definition": release.awaits_topology_definition,
        "deny_label_ns": ",".join(options.get("deny_label_ns", ())) or None,
        "extra_label_ns": ",".join(options.get("extra_label_ns", ())) or None,
        "fingerprint": "false" if options.get("pod_set_fingerprint") is False else None,
        "gates": [f"{gate}={str(is_on).lower()}" for gate, is_on in sorted(given.feature_gates.items())],
        "gets_pods": not release.watches_pods,
        "has_groups": given.has_gate("NodeFeatureGroupAPI"),
        "is_owned_by_daemonset": "ds" in owners,
        "is_owned_by_node": "node" in owners,
        "is_several": options.get("replica_count", 1) > 1,
        "kubelet_config_uri": "file:///host-var/kubelet-config" if options.get("kubelet_config_path") else None,
        "namespace": namespace,
        "no_state_dir": "" if options.get("kubelet_state_dir") == "" else None,
        "owners": ",".join(owners) if release.has_owner_refs else None,
        "selects_namespaces": document.get("restrictions", {}).get("nodeFeatureNamespaceSelector") is not None,
        "socket": f"{_SOCKET_FOLDER}/{socket}",
        "socket_folder": folder,
        "watches_pods": release.watches_pods,
    }


def _owners(options: Facts, document: Facts, release: NodeFeatureDiscoveryRelease) -> Sequence[str]:
    """Return the owners of the NodeFeature objects that the NFD worker creates: ``pod``, ``ds`` or ``node``.

    Before NFD 0.19.0, the result is empty if the configuration file disables owners.

    Args:
        options: Options of the worker by name. The option ``owner_refs`` contains the owners.
        document: Content of the configuration file of the worker.
        release: Release of Node Feature Discovery, which determines the default owners.
    """
    if not release.has_owner_refs and document.get("core", {}).get("noOwnerRefs"):
        return ()
    given = options.get("owner_refs")
    return (("pod", "ds") if release.reads_own_pod else ("pod",)) if given is None else tuple(given)


def rules(component: NfdComponent, facts: Facts, scope: str) -> list[dict[str, Any]]:
    """Return the RBAC rules that a component of NFD needs, as in a manifest.

    Args:
        component: Options of the component.
        facts: Values of the conditions and placeholders in ``programs.yaml``, as ``facts_of`` returns them.
        scope: ``cluster`` for the rules of the ClusterRole, or ``namespace`` for the rules of the Role.
    """
    return [
        {
            "apiGroups": [row["group"]],
            "resources": list(row["resources"]),
            "verbs": list(row["verbs"]),
            **({"resourceNames": [name.format_map(facts) for name in row["names"]]} if "names" in row else {}),
        }
        for row in _rows(component, "rights", facts)
        if row["in"] == scope
    ]


def ports(component: NfdComponent, release: NodeFeatureDiscoveryRelease) -> dict[str, int]:
    """Return the port numbers of a component of NFD by port name, for example ``{"metrics": 8081, "health": 8082}``.

    From NFD 0.18.0 on, there is one port ``http`` for metrics and health checks.
    """
    given = component.ports()
    if release.has_http_health:
        return {"http": given["port"] or 8080}
    listening = {"metrics": given["metrics_port"] or 8081}
    return {**listening, "health": given["health_port"] or 8082} if "health_port" in given else listening


def container(
    component: NfdComponent, given: NodeFeatureDiscovery, release: NodeFeatureDiscoveryRelease, facts: Facts
) -> dict[str, Any]:
    """Return the container of a component of NFD as in a manifest, without its volume mounts.

    Args:
        component: Options of the component.
        given: Options of Node Feature Discovery.
        release: Release of Node Feature Discovery.
        facts: Values of the conditions and placeholders in ``programs.yaml``, as ``facts_of`` returns them.
    """
    program, listening = programs()[component._NAME], ports(component, release)
    is_root = isinstance(component, NfdTopologyUpdater)
    security = {**container_security(non_root=not is_root), **({"runAsUser": 0} if is_root else {})}
    fields = [{"name": n, "valueFrom": {"fieldRef": {"fieldPath": path}}} for n, path in program["env"].items()]
    return {
        "name": component.container_name,
        "image": given.image or release.image,
        "imagePullPolicy": given.image_pull_policy,
        "command": [f"nfd-{component.container_name}"],
        "args": [
            *_arguments(program["arguments"], facts),
            *_port_arguments(component, release, listening),
            *component.extra_args,
        ],
        "env": [*fields, *env.environment(component.extra_envs, visible_devices_is_managed=False)],
        "ports": [{"name": port, "containerPort": number} for port, number in listening.items()],
        "resources": resources.container_resources(component.resources, default=program["resources"]),
        "securityContext": merged(security, component.security_context),
        **dict(_probes(component, program["probes"], listening)),
    }


def _rows(component: NfdComponent, name: str, facts: Facts) -> Iterator[Mapping[str, Any]]:
    for row in programs()[component._NAME][name]:
        if "when" not in row or facts[row["when"]]:
            yield row


def _arguments(flags: Mapping[str, str], facts: Facts) -> Iterator[str]:
    for flag, fact in flags.items():
        value = facts[fact]
        if value is True:
            yield flag
        elif isinstance(value, list):
            yield from (f"{flag}={one}" for one in value)
        elif value is not None and value is not False:
            yield f"{flag}={value}"


def _port_arguments(
    component: NfdComponent, release: NodeFeatureDiscoveryRelease, listening: Mapping[str, int]
) -> list[str]:
    if component._NAME == "gc" and not any(component.ports().values()):
        return []
    return [
        f"{_PORT_FLAGS[port]}={number}"
        for port, number in listening.items()
        if port != "health" or release.has_health_flag
    ]


def _probes(
    component: NfdComponent, probes: Mapping[str, Mapping[str, int]], listening: Mapping[str, int]
) -> Iterator[tuple[str, dict[str, Any]]]:
    if "http" in listening:
        check: dict[str, Any] = {"httpGet": {"path": "/healthz", "port": "http"}}
    elif "health" in listening:
        check = {"grpc": {"port": listening["health"]}}
    else:
        return
    for probe, ours in probes.items():
        numbers = getattr(component, f"{probe}_probe")
        yield f"{probe}Probe", {**check, **ours, **(numbers.to_manifest() if numbers else {})}


def volumes(
    component: NfdComponent, config_map: str, facts: Facts
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return two lists: the volumes of the pods of an NFD component, and the read-only mounts of its container.

    Args:
        component: Options of the component.
        config_map: Name of the ConfigMap with the configuration file. Unused if the component has no such file.
        facts: Values of the conditions and placeholders in ``programs.yaml``, as ``facts_of`` returns them.
    """
    has_file = component.document() is not None
    files = {"config": ({"configMap": {"name": config_map}}, _CONFIG_FOLDER)} if has_file else {}
    for row in _rows(component, "host_paths", facts):
        files[row["volume"]] = ({"hostPath": {"path": row["path"].format_map(facts)}}, row["inside"])
    return (
        [{"name": name, **source} for name, (source, _) in files.items()],
        [{"name": name, "mountPath": inside, "readOnly": True} for name, (_, inside) in files.items()],
    )

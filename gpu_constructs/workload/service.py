"""The ports of a workload and the Service in front of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpu_constructs import _fields
from gpu_constructs.errors import GpuConstructsError


def named_ports(given: Sequence[int] | Mapping[str, int]) -> dict[str, int]:
    """Give each port a name: the user's, or ``tcp-<number>``.

    Raises:
        GpuConstructsError: A name or number that Kubernetes would not take, or a number given twice.
    """
    ports = dict(given) if isinstance(given, Mapping) else {f"tcp-{port}": port for port in given}
    for name, port in ports.items():
        _fields.port_name("ports name", name)
        _fields.port_number(f"ports[{name!r}]", port)
    if len(set(ports.values())) < len(ports) or len(ports) < len(given):
        raise GpuConstructsError(f"ports must not repeat a number; got {given!r}")
    return ports


def url(name: str, namespace: str, ports: Mapping[str, int]) -> str | None:
    """Return the URL of a Service inside the cluster, if one of its ports is named after the scheme of a URL."""
    scheme = next((port for port in ports if port in ("http", "https")), None)
    return None if scheme is None else f"{scheme}://{name}.{namespace}.svc:{ports[scheme]}"


def service(
    metadata: Mapping[str, Any], *, selector: Mapping[str, str], ports: Mapping[str, int], headless: bool
) -> dict[str, Any]:
    """Give the Service; a headless one gives each pod a name instead of one address to all."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {
            "clusterIP": "None" if headless else None,
            "ports": [{"name": name, "port": port, "targetPort": name} for name, port in ports.items()] or None,
            "selector": dict(selector),
        },
    }

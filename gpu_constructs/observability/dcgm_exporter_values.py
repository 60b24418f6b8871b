"""Conversion of Helm values of the DCGM exporter into keyword arguments of ``DcgmExporter``.

This module converts the values that need Python code. The table ``migration/charts/dcgm-exporter.yaml`` describes the
conversion of all other values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields as members_of
from functools import partial
from typing import Any

from gpu_constructs.catalog import versions
from gpu_constructs.errors import GpuConstructsError, refuse_if
from gpu_constructs.kube import container_security, fields, placement
from gpu_constructs.kube.resources import container_resources
from gpu_constructs.kube.update_strategy import UpdateStrategy
from gpu_constructs.migration.chart import Reading, chart
from gpu_constructs.migration.chart_values import coalesced
from gpu_constructs.migration.converters import relabelings, resources
from gpu_constructs.migration.problems import Installation, Problems, reported_at_once
from gpu_constructs.migration.programs import Mount, entries, mounts_of, taken_over
from gpu_constructs.observability import daemonset as pods
from gpu_constructs.observability.dcgm_program_values import (
    CHART_MAP,
    CONVERTERS,
    FlagValues,
    chart_list,
    listed_metrics,
    of_chart,
    program,
)
from gpu_constructs.observability.exporter_options import DebugDump, ExporterService
from gpu_constructs.observability.metrics import COLLECTION_INTERVAL_SECONDS
from gpu_constructs.observability.pod_mapping import POD_RESOURCES, PodMapping, check_release
from gpu_constructs.observability.scrape import Relabeling, Scrape
from gpu_constructs.observability.web_config import Tls

CHART = "dcgm-exporter"
_MONITORING = "monitoring.coreos.com/v1"
_CONTROL_PLANE = placement.Toleration(
    key="node-role.kubernetes.io/control-plane", operator="Exists", effect="NoSchedule"
)


@reported_at_once
def exporter_options(values: Mapping[str, Any], installation: Installation, problems: Problems) -> dict[str, Any]:
    """Return the keyword arguments of ``DcgmExporter`` that have the same effect as the Helm values.

    Args:
        values: Helm values of the user.
        installation: Name and namespace of the Helm release, and release of the exporter.
        problems: Empty list to which the function adds the problems of the values. ``reported_at_once`` passes it.

    Raises:
        GpuConstructsError: The function adds a problem, such as a misspelled key, or a value that the chart, the
            exporter or this library would reject.
    """
    release = versions.release_of(versions.DCGM_EXPORTER, installation.version, "the DCGM exporter")
    read = Reading(
        chart(CHART),
        values,
        release=installation.behaves_like,
        strict=problems,
        converters=CONVERTERS,
        each={"relabelings": relabelings(Relabeling)},
    )
    flag_values, env = program(read)
    security = _security_context(read)
    tolerated = [_CONTROL_PLANE] if "tolerations" not in read and of_chart(read).chart_hardens else []
    options = {"namespace": installation.namespace, "tolerations": tolerated, **read.options()}
    is_dumping = read.said.get("debug_dump", ("", read.get("debugDump.enabled", False)))[1]
    given, unused = _mounts(read)
    exported, own_mount = listed_metrics(
        read,
        flag_values,
        given,
        options["namespace"],
        can_profile=security is None or pods.exporter_rights(is_profiled=True).are_in(security),
    )
    mapping = _pod_mapping(read)
    tls = _tls(read)
    options |= {
        "name": read.name(installation.release_name, CHART, 63 - len("-web-config"), fields.dns_label),
        "instance": installation.release_name,
        "metrics": exported,
        "pod_mapping": mapping,
        "port": _port(read, flag_values, options.get("port", 9400)),
        "tls": tls,
        "debug_dump": read.struct("debug_dump", DebugDump) if is_dumping else False,
        "security_context": security,
        "env": env,
        "volumes": taken_over(read, _kept(read, given, own_mount), unused),
        "service_account": _service_account(read, mapping),
        "dashboard": False,
        "resources": _resources(read),
        "update_strategy": _update_strategy(read),
        **_service_and_scrape(read, tls, options.get("collect_interval_seconds", COLLECTION_INTERVAL_SECONDS)),
    }
    if options.get("host_network") and options["port"] < 1024:
        read.refuse("hostNetwork", "must be false with a port below 1024, which the exporter has no right to bind")
        options["host_network"] = False
    if "image.tag" in read and not read.get("image.tag"):
        read.refuse(
            "image.tag",
            f"must not be empty, because the chart would then use the tag {read.release!r}, which no image has. Leave "
            "it out",
        )
    options["image"] = read.image(release.image.rpartition(":")[2])
    return options


# --- the exporter ---------------------------------------------------------------------------------------------


def _port(read: Reading, flag_values: FlagValues, port: int) -> int:
    path, address = flag_values.get("address", ("service.address", read.get("service.address", ":9400")))
    host, _, number = address.rpartition(":")
    if number != str(port):
        read.refuse(
            path if path in read or "address" in flag_values else "service.port",
            f"must be the same port in service.port and service.address: the exporter would listen on {address!r}, "
            f"but probes and the Service use port {port}. Set both",
        )
        is_dropped = "service.port" in read and "service.address" not in read and "address" not in flag_values
        return 9400 if is_dropped else port
    if host not in ("", "0.0.0.0", "[::]"):
        read.refuse(
            path,
            f"must not contain a host, got {address!r}, because the exporter would answer only there. Set ':{port}'",
        )
    return port


# Options that replace others come early, but after what they need. A conflict removes the later option.
_MAPPING = ("host_pid", "enable_pod_uid", "virtual_gpus", "nvidia_resource_names", "enable_pod_labels")


def _pod_mapping(read: Reading) -> bool | PodMapping:
    neutral = {member.name: member.default for member in members_of(PodMapping)}
    given = {name: at for name, at in read.members("pod_mapping").items() if at[1] != neutral[name]}
    if not read.said.get("pod_mapping", ("", True))[1]:
        for path, _ in given.values():
            read.refuse(path, "has no effect if the exporter does not map GPUs to pods. Leave it out")
        return False
    order = [*_MAPPING, *(name for name in neutral if name not in _MAPPING)]
    mapping = read.made_of(partial(_known, read.release), {name: given[name] for name in order if name in given})
    asks = mapping.reads_pods and not mapping.enable_dra
    if asks and not read.get("kubernetes.rbac.create", True):
        read.refuse(
            "kubernetes.rbac.create",
            "must be true with enablePodLabels or enablePodUID, because the chart otherwise removes the token of the "
            "service account and the exporter cannot read pods",
        )
    return mapping if given else True


def _known(release: str, **members: Any) -> PodMapping:
    mapping = PodMapping(**members)
    check_release(mapping, release)
    return mapping


# --- Service and scrape ---------------------------------------------------------------------------------------

_TARGET_LABELS = frozenset({"pod", "container", "namespace", "service", "endpoint"})


def _tls(read: Reading) -> Tls | None:
    if not read.get("tlsServerConfig.enabled", False):
        return None
    path = "tlsServerConfig.existingSecret"
    if not read.get(path):
        read.refuse(
            "tlsServerConfig.enabled",
            "needs existingSecret. Without it, the certificate would be in the manifest, and the chart would create a "
            "new one at each render. Name a Secret, such as one that cert-manager creates",
        )
        return None
    secret = read.converted(path, "dns subdomain", "secret", read.get(path))
    if secret is None:
        return None
    for word in ("cert", "key", "ca"):
        if read.get(f"tlsServerConfig.{word}"):
            read.refuse(f"tlsServerConfig.{word}", "has no effect with existingSecret. Leave it out")
    return read.struct("tls", partial(Tls, secret=secret))


def _service_and_scrape(read: Reading, tls: Tls | None, collected: int) -> dict[str, Any]:
    is_scraped = read.get("serviceMonitor.enabled", True)
    if is_scraped and read.get("serviceMonitor.apiVersion", _MONITORING) != _MONITORING:
        read.refuse("serviceMonitor.apiVersion", f"must be {_MONITORING!r}, because the library emits no other kind")
    if is_scraped and tls is not None and tls.requires_client_certificate:
        read.refuse(
            "serviceMonitor.enabled",
            f"must be false with clientAuthType {tls.client_auth_type}, because the values cannot name the "
            "certificate of the scraper. Pass tls=Tls(client_secret=...)",
        )
        is_scraped = False
    has_service = read.get("service.enable", True)
    if is_scraped and not has_service:
        read.refuse("service.enable", "must be true with serviceMonitor.enabled, which finds pods through the Service")
        has_service = True
    return {
        "service": read.struct("service", ExporterService) if has_service else False,
        "scrape": _scrape(read, collected) if is_scraped else "none",
    }


def _scrape(read: Reading, collected: int) -> Scrape:
    members = read.members("scrape")
    interval = members.get("interval_seconds", ("", collected))[1]
    path, timeout = members.get("scrape_timeout_seconds", ("", 0))
    if timeout > interval:
        read.refuse(
            path,
            f"must be at most the interval of {interval}s, because Prometheus Operator rejects a longer timeout, got "
            f"{timeout}s",
        )
        del members["scrape_timeout_seconds"]
    # The library drops these labels after its own steps, so a step that reads them needs the original labels.
    asked = {label for step in members.get("relabelings", ("", ()))[1] for label in step.source_labels}
    members.setdefault("honor_labels", ("serviceMonitor.honorLabels", not asked & _TARGET_LABELS))
    return read.made_of(Scrape, members)


# --- pods -----------------------------------------------------------------------------------------------------


def _mounts(read: Reading) -> tuple[list[Mount], dict[str, str]]:
    has_list = of_chart(read).chart_mounts_list
    volume, mount = chart_list(read)
    volumes = {
        **entries(read, "extraHostVolumes"),
        **entries(read, "extraConfigMapVolumes", [volume] if has_list else []),
    }
    mounted = entries(read, "extraVolumeMounts", [mount] if has_list else [])
    names = [entry.get("name") for entry in volumes.values() if isinstance(entry, Mapping)]
    if "extraVolumeMounts" not in read and has_list and volume["name"] not in names:
        read.refuse(
            "extraConfigMapVolumes",
            f"replaces the default list, and a default mount needs its volume {volume['name']!r}. Add this volume to "
            "your list",
        )
        mounted = {}
    found, unused = mounts_of(read, volumes, mounted)
    return found, {name: key for name, key in unused.items() if name != volume["name"]}


def _kept(read: Reading, given: Sequence[Mount], own_mount: str) -> Iterator[Mount]:
    """Yield the volume mounts in the Helm values that become volumes of ``DcgmExporter``.

    ``DcgmExporter`` mounts the list of metrics itself, so the function omits that mount. The function adds a problem
    for each mount that the library cannot convert.

    Args:
        read: Helm values.
        given: Mounts in the Helm values.
        own_mount: Path of the mount with the list of metrics. Empty if there is no such mount.
    """
    for mount in given:
        if mount.path in (POD_RESOURCES, "/tmp"):
            read.refuse(
                mount.key,
                f"must have another path, because the library mounts its own volume there, got {mount.path!r}",
            )
        elif mount.path == own_mount:
            continue
        elif (mount.source.get("configMap") or {}).get("name") != CHART_MAP:
            yield mount
        elif "extraVolumeMounts" in read:
            read.refuse(
                mount.key,
                "is not convertible, because this library gives the ConfigMap another name and mounts it itself",
            )


def _security_context(read: Reading) -> dict[str, Any] | None:
    """Return the security context that the Helm values set for the container.

    Return None if the values set none, if it equals the default of the chart, or if it is not valid.
    """
    path = "securityContext"
    if path not in read:
        return None
    default: dict[str, Any] = {"runAsNonRoot": False, "runAsUser": 0, "capabilities": {"add": ["SYS_ADMIN"]}}
    if of_chart(read).chart_hardens:
        default["capabilities"]["drop"] = ["ALL"]
        default["allowPrivilegeEscalation"] = False
    given = read.get(path)
    laid = {} if given is None else coalesced(default, given)
    if laid == default or not read.accepts(path, partial(_check_security, laid)):
        return None
    return dict(laid)


def _check_security(laid: Mapping[str, Any]) -> None:
    for key in laid:
        fields.one_of("security_context key", key, container_security.SECURITY_CONTEXT)
    capabilities = laid.get("capabilities", {})
    fields.of_type("capabilities", capabilities, Mapping[str, Sequence[str]])
    for key in capabilities:
        fields.one_of("capabilities key", key, ("add", "drop"))
    if laid.get("allowPrivilegeEscalation") is False and laid.get("privileged"):
        raise GpuConstructsError(
            "allowPrivilegeEscalation must be true with privileged. Set it to true, or leave out both"
        )


def _update_strategy(read: Reading) -> UpdateStrategy | None:
    numbers = {member: number for member, (_, number) in read.members("update_strategy").items()}
    # The values of the chart complete those of the user.
    strategy = partial(UpdateStrategy, type="RollingUpdate", **{"max_unavailable": 1, **numbers})
    return read.attempt("rollingUpdate", strategy) if numbers else None


def _resources(read: Reading) -> dict[str, Any] | None:
    """Return the requests and limits of the container from the Helm values.

    If the values do not set a request or the memory limit, the result contains the default of the chart, if any. The
    result contains a CPU limit only if the values set one. Return None if the values are not valid.
    """
    given = resources(read, "resources", read.get("resources", {}))
    if given is None:
        return None
    memory = of_chart(read).chart_memory_limit
    chart_own = {"limits": {"cpu": "200m", "memory": memory}, "requests": {"cpu": "100m", "memory": "128Mi"}}
    laid = coalesced(chart_own, given) if memory else given
    if "cpu" not in given.get("limits", {}) and laid.get("limits"):
        laid = {**laid, "limits": {name: amount for name, amount in laid["limits"].items() if name != "cpu"}}
    return dict(laid) if read.accepts("resources", partial(_check_resources, laid)) else None


def _check_resources(given: Any) -> None:
    memory = container_resources(given, default={}).get("limits", {}).get("memory", "1Gi")
    # The construct limits the Go runtime to three quarters of this, in MiB.
    refuse_if(fields.amount(memory) * 3 / 4 < 2**20, "limits.memory", "leave the exporter a few MiB of memory", memory)


def _service_account(read: Reading, mapping: bool | PodMapping) -> str | None:
    path = "serviceAccount.name"
    name: str | None = read.converted(path, "dns subdomain", path, read.get(path))
    if read.get("serviceAccount.create", True):
        return None
    return name or ("default" if isinstance(mapping, PodMapping) and mapping.rules() else None)

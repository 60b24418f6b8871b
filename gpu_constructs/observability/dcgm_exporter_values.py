"""What the values of the DCGM exporter's chart become: what its table of keys cannot say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields as members_of
from functools import partial
from typing import Any

from gpu_constructs.catalog import versions
from gpu_constructs.catalog.platforms import Platform
from gpu_constructs.errors import GpuConstructsError, refuse_if
from gpu_constructs.kube import container_security, fields, placement
from gpu_constructs.kube.resources import container_resources
from gpu_constructs.kube.update_strategy import UpdateStrategy
from gpu_constructs.migration.chart import Reading, chart, check_installation
from gpu_constructs.migration.chart_values import coalesced
from gpu_constructs.migration.converters import relabelings, resources
from gpu_constructs.migration.programs import Mount, entries, mounts_of, taken_over
from gpu_constructs.observability import daemonset as pods
from gpu_constructs.observability.dcgm_program_values import (
    CHART_MOUNT,
    CHART_VOLUME,
    CONVERTERS,
    OLD,
    Said,
    listed_metrics,
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


def exporter_options(
    values: Mapping[str, Any],
    *,
    release_name: str,
    namespace: str,
    version: str | versions.Unverified,
    platform: Platform,
    strict: bool,
) -> dict[str, Any]:
    """Return the keywords of ``DcgmExporter`` that say what the values say.

    Raises:
        GpuConstructsError: A key that the chart does not read, or a value that it, or the exporter, would refuse
            or ignore, or that this library cannot take over.
    """
    check_installation(release_name, namespace, version, platform, strict)
    release = versions.release_of(versions.DCGM_EXPORTER, version, "the DCGM exporter")
    read = Reading(
        chart(CHART),
        values,
        release=release.behaves_like,
        strict=strict,
        converters=CONVERTERS,
        each={"relabelings": relabelings(Relabeling)},
    )
    said, env = program(read)
    security = _security_context(read)
    tolerated = [] if "tolerations" in read or read.release in OLD else [_CONTROL_PLANE]
    options = {"namespace": namespace, "tolerations": tolerated, **read.options()}
    is_dumping = read.said.get("debug_dump", ("", read.get("debugDump.enabled", False)))[1]
    given, unused = _mounts(read)
    exported, own_mount = listed_metrics(
        read,
        said,
        given,
        options["namespace"],
        can_profile=security is None or pods.exporter_rights(is_profiled=True).are_in(security),
    )
    mapping = _pod_mapping(read)
    tls = _tls(read)
    options |= {
        "name": read.name(release_name, CHART, 63 - len("-web-config"), fields.dns_label),
        "instance": release_name,
        "metrics": exported,
        "pod_mapping": mapping,
        "port": _port(read, said, options.get("port", 9400)),
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
        read.refuse("hostNetwork", "must be false with a port below 1024, which the exporter holds no right to bind")
        options["host_network"] = False
    if "image.tag" in read and not read.get("image.tag"):
        read.refuse("image.tag", f"would make the tag {read.release!r}, which no image has; leave it out")
    options["image"] = read.image(release.image.rpartition(":")[2])
    return options


# --- the exporter ---------------------------------------------------------------------------------------------


def _port(read: Reading, said: Said, port: int) -> int:
    path, address = said.get("address", ("service.address", read.get("service.address", ":9400")))
    host, _, number = address.rpartition(":")
    if number != str(port):
        read.refuse(
            path if path in read or "address" in said else "service.port",
            f"must go with the other: the exporter would listen on {address!r}, where probes and the Service ask for "
            f"port {port}; say both service.port and service.address",
        )
        is_dropped = "service.port" in read and "service.address" not in read and "address" not in said
        return 9400 if is_dropped else port
    if host not in ("", "0.0.0.0", "[::]"):
        read.refuse(path, f"must name no host, got {address!r}: the exporter would answer there only; say ':{port}'")
    return port


# What takes the place of others comes early, after what it needs: what does not go with it is what is dropped.
_MAPPING = ("host_pid", "enable_pod_uid", "virtual_gpus", "nvidia_resource_names", "enable_pod_labels")


def _pod_mapping(read: Reading) -> bool | PodMapping:
    neutral = {member.name: member.default for member in members_of(PodMapping)}
    given = {name: at for name, at in read.members("pod_mapping").items() if at[1] != neutral[name]}
    if not read.said.get("pod_mapping", ("", True))[1]:
        for path, _ in given.values():
            read.refuse(path, "does nothing where the exporter is told not to look for pods; leave it out")
        return False
    order = [*_MAPPING, *(name for name in neutral if name not in _MAPPING)]
    mapping = read.made_of(partial(_known, read.release), {name: given[name] for name in order if name in given})
    asks = mapping.reads_pods and not mapping.enable_dra
    if asks and not read.get("kubernetes.rbac.create", True):
        read.refuse(
            "kubernetes.rbac.create",
            "must be true with enablePodLabels or enablePodUID: the chart takes the token away with the rights, and "
            "the exporter could not read pods",
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
            "must come with existingSecret: a certificate made or written down here would be in the manifest, the "
            "chart's own is another one at each render; name a Secret, such as one that cert-manager keeps",
        )
        return None
    secret = read.converted(path, "dns subdomain", "secret", read.get(path))
    if secret is None:
        return None
    for word in ("cert", "key", "ca"):
        if read.get(f"tlsServerConfig.{word}"):
            read.refuse(f"tlsServerConfig.{word}", "is not read beside existingSecret; leave it out")
    return read.struct("tls", partial(Tls, secret=secret))


def _service_and_scrape(read: Reading, tls: Tls | None, collected: int) -> dict[str, Any]:
    is_scraped = read.get("serviceMonitor.enabled", True)
    if is_scraped and read.get("serviceMonitor.apiVersion", _MONITORING) != _MONITORING:
        read.refuse("serviceMonitor.apiVersion", f"must be {_MONITORING!r}: nobody else's kind is made here")
    if is_scraped and tls is not None and tls.requires_client_certificate:
        read.refuse(
            "serviceMonitor.enabled",
            f"must be false with clientAuthType {tls.client_auth_type}: the scraper must show a certificate, which "
            "the values cannot name; pass tls=Tls(client_secret=...)",
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
        read.refuse(path, f"must be at most the interval of {interval}s, as the operator has it; got {timeout}s")
        del members["scrape_timeout_seconds"]
    # Ours drop these labels once they have done their work; who asks for them needs the target as it was.
    asked = {label for step in members.get("relabelings", ("", ()))[1] for label in step.source_labels}
    members.setdefault("honor_labels", ("serviceMonitor.honorLabels", not asked & _TARGET_LABELS))
    return read.made_of(Scrape, members)


# --- pods -----------------------------------------------------------------------------------------------------


def _mounts(read: Reading) -> tuple[list[Mount], dict[str, str]]:
    has_list = read.release not in OLD
    volumes = {
        **entries(read, "extraHostVolumes"),
        **entries(read, "extraConfigMapVolumes", [CHART_VOLUME] if has_list else []),
    }
    mounted = entries(read, "extraVolumeMounts", [CHART_MOUNT] if has_list else [])
    names = [entry.get("name") for entry in volumes.values() if isinstance(entry, Mapping)]
    if "extraVolumeMounts" not in read and has_list and CHART_VOLUME["name"] not in names:
        read.refuse("extraConfigMapVolumes", "takes away the volume that the chart's own mount names; say it too")
        mounted = {}
    found, unused = mounts_of(read, volumes, mounted)
    return found, {name: key for name, key in unused.items() if name != CHART_VOLUME["name"]}


def _kept(read: Reading, given: Sequence[Mount], own_mount: str) -> Iterator[Mount]:
    """Yield the mounts that hold something else than the list of metrics."""
    for mount in given:
        if mount.path in (POD_RESOURCES, "/tmp"):
            read.refuse(mount.key, f"must have a path of its own, got {mount.path!r}, where something else is mounted")
        elif mount.path == own_mount:
            continue
        elif (mount.source.get("configMap") or {}).get("name") != CHART_VOLUME["configMap"]["name"]:
            yield mount
        elif "extraVolumeMounts" in read:
            read.refuse(mount.key, "cannot be taken over: the ConfigMap has another name here, and its own mount")


def _security_context(read: Reading) -> dict[str, Any] | None:
    """Return the container's security context; None for the chart's own."""
    path = "securityContext"
    if path not in read:
        return None
    default: dict[str, Any] = {"runAsNonRoot": False, "runAsUser": 0, "capabilities": {"add": ["SYS_ADMIN"]}}
    if read.release not in OLD:
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
        raise GpuConstructsError("allowPrivilegeEscalation must be true with privileged; say so, or leave both out")


def _update_strategy(read: Reading) -> UpdateStrategy | None:
    numbers = {member: number for member, (_, number) in read.members("update_strategy").items()}
    # The chart's own beside the one that is said.
    strategy = partial(UpdateStrategy, type="RollingUpdate", **{"max_unavailable": 1, **numbers})
    return read.attempt("rollingUpdate", strategy) if numbers else None


def _resources(read: Reading) -> dict[str, Any] | None:
    """Return what was said over the chart's own, but for its CPU limit; None where nothing was."""
    given = resources(read, "resources", read.get("resources", {}))
    if given is None:
        return None
    chart_own = {"limits": {"cpu": "200m", "memory": "512Mi"}, "requests": {"cpu": "100m", "memory": "128Mi"}}
    laid = given if read.release in OLD else coalesced(chart_own, given)
    if "cpu" not in given.get("limits", {}) and laid.get("limits"):
        laid = {**laid, "limits": {name: amount for name, amount in laid["limits"].items() if name != "cpu"}}
    return dict(laid) if read.accepts("resources", partial(_check_resources, laid)) else None


def _check_resources(given: Any) -> None:
    memory = container_resources(given, default={}).get("limits", {}).get("memory", "1Gi")
    # The construct tells the Go runtime three quarters of it, in MiB.
    refuse_if(fields.amount(memory) * 3 / 4 < 2**20, "limits.memory", "leave the exporter a few MiB", memory)


def _service_account(read: Reading, mapping: bool | PodMapping) -> str | None:
    path = "serviceAccount.name"
    name: str | None = read.converted(path, "dns subdomain", path, read.get(path))
    if read.get("serviceAccount.create", True):
        return None
    return name or ("default" if isinstance(mapping, PodMapping) and mapping.rules() else None)

"""The values of nvidia_gpu_exporter's chart, key by key, and what becomes of each here.

Source: utkuozdemir/nvidia_gpu_exporter@v1.14.0, charts/nvidia-gpu-exporter/{values.yaml,values.schema.json,templates}.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from gpu_constructs import _fields, credentials, versions
from gpu_constructs._durations import from_go_duration
from gpu_constructs._helm import Key, Values, named, object_name, resources, secret_names, tolerations, update_strategy
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.observability.exporter_options import ExporterService
from gpu_constructs.observability.nvidia_gpu_exporter_pod import (
    CHECKS,
    LONGEST_NAME,
    NAME,
    SCRAPE_INTERVAL_SECONDS,
    WRITE_TIMEOUT_SECONDS,
    pod_image,
)
from gpu_constructs.observability.nvidia_smi_fields import AUTO, Backend, exported_metrics
from gpu_constructs.observability.scrape import Relabeling, Scrape
from gpu_constructs.platforms import Platform
from gpu_constructs.workload.env import EnvValue, environment
from gpu_constructs.workload.volume import Volume, mounts

_REPOSITORY = "docker.io/utkuozdemir/nvidia_gpu_exporter"
_INTERVAL = "15s"
_SCRAPE_TIMEOUT_SECONDS = 10
_OS = {"kubernetes.io/os": "linux"}
_UPDATE = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}}
_ALERTS = "makes alerts, which are GpuAlerts(scope, id, exporter=...) here; make one and leave this out"
_DASHBOARD = (
    "is an option of GpuDashboard(scope, id, exporter=...) here; make one and set grafanaDashboard.enabled: false"
)
_NO_TEST = "is for the pod of 'helm test', which is not made; leave it out"
_PROBE = "cannot be changed: the same endpoints are asked here, with more patience; patch the object if you must"
_ACCOUNT = "is for a ServiceAccount, and none is made, since nothing asks the API server"
_MONITOR = "is not taken over: the scrape object has what the web configuration asks"


def _probe(question: str) -> Key:
    default = {"httpGet": {"path": f"/-/{question}", "port": "http"}}
    return Key(type="map", why_not=_PROBE, default=default)


def _scraped(section: str) -> dict[str, Key]:
    return {
        f"{section}.enabled": Key(type="bool", to=f"scrape=Scrape(kind={section[0].upper() + section[1:]!r})"),
        f"{section}.interval": Key(type="text", to="scrape=Scrape(interval_seconds=)", default=_INTERVAL),
        f"{section}.scrapeTimeout": Key(type="text", to="scrape=Scrape(scrape_timeout_seconds=)"),
        f"{section}.additionalLabels": Key(type="map", to="scrape=Scrape(labels=)"),
        f"{section}.relabelings": Key(type="list", to="scrape=Scrape(relabelings=[Relabeling(...)])"),
        f"{section}.metricRelabelings": Key(type="list", to="scrape=Scrape(metric_relabelings=[Relabeling(...)])"),
    }


_ALERT_DEFAULTS: Mapping[str, Any] = {
    "enabled": False,
    "additionalLabels": {},
    **dict.fromkeys(
        (
            f"{alert}.enabled"
            for alert in (
                "collectionFailing collectionStale collectionSlow recoveryAction xidCritical xidWarning "
                "uncorrectableEcc rowRemapFailure rowRemapPending retiredPagesPending thermalSlowdown powerBrake"
            ).split()
        ),
        True,
    ),
    **dict.fromkeys(("swThermalSlowdown.enabled", "temperatureHigh.enabled", "gpuMissing.enabled"), False),
    "collectionFailing.for": "10m",
    "collectionFailing.severity": "warning",
    "collectionStale.thresholdSeconds": 300,
    "collectionStale.severity": "warning",
    "collectionSlow.thresholdSeconds": 5,
    "xidCritical.codes": [48, 62, 64, 74, 79, 95, 119, 120],
    "xidWarning.codes": [94],
    "temperatureHigh.thresholdCelsius": 85,
}

_TYPES = {bool: "bool", str: "text", int: "number", list: "list", dict: "map"}

KEYS: dict[str, Key] = {
    "image.repository": Key(type="text", to="image=", default=_REPOSITORY),
    "image.pullPolicy": Key(type="text", to="image_pull_policy=", default="IfNotPresent"),
    "image.tag": Key(type="text", to="image=; a tag that ends in -nvml: backend='nvml'", default=""),
    "runtimeClassName": Key(type="text", to="runtime_class="),
    "nvidiaVisibleDevices": Key(
        type="text", why_not="is always 'all' here: GPUs that nobody watches fail unseen; leave it out", default="all"
    ),
    "nvidiaDriverCapabilities": Key(
        type="text", why_not="is always 'utility' here, all that the exporter needs; leave it out", default="utility"
    ),
    "extraEnv": Key(type="list", to="env="),
    "port": Key(type="number", to="port=", default=9835),
    "telemetryPath": Key(type="text", to="telemetry_path=", default="/metrics"),
    "nvidiaSmiCommand": Key(type="text", to="nvidia_smi_command=", default="nvidia-smi"),
    "queryFieldNames": Key(type="list", to="query_field_names=", default=[AUTO]),
    "queryFieldNamesExclude": Key(type="list", to="query_field_names_exclude="),
    "computeApps.enabled": Key(type="bool", to="compute_apps=, together with hostPID"),
    "log.level": Key(type="text", to="log_level=", default="info"),
    "log.format": Key(type="text", to="log_format=", default="logfmt"),
    "livenessProbe": _probe("healthy"),
    "readinessProbe": _probe("ready"),
    "extraArgs": Key(
        type="list",
        to="backend=, collect_interval_seconds=, collect_timeout_seconds=, compute_apps_mig=, pcie_throughput=",
    ),
    "hostNetwork": Key(type="bool", to="host_network="),
    "hostPID": Key(type="bool", to="compute_apps=, together with computeApps.enabled"),
    "hostPort.enabled": Key(
        type="bool",
        why_not="opens the metrics to the node's network; set hostNetwork or use the Service",
        default=False,
    ),
    "hostPort.port": Key(type="number", why_not="goes with hostPort.enabled, which is refused", default=9835),
    "service.enabled": Key(type="bool", to="service=", default=True),
    "service.annotations": Key(type="map", to="service=ExporterService(annotations=)"),
    "service.type": Key(type="text", to="service=ExporterService(type=)", default="ClusterIP"),
    "service.port": Key(type="number", to="port=, the same for pod and Service"),
    "service.nodePort": Key(type="number or text", why_not="is left to the cluster; patch the Service", default=""),
    "serviceAccount.create": Key(type="bool", to="service_account=, where it is false", default=True),
    "serviceAccount.annotations": Key(type="map", why_not=f"{_ACCOUNT}; make your own and pass service_account="),
    "serviceAccount.name": Key(type="text", to="service_account=, where serviceAccount.create is false"),
    "automountServiceAccountToken": Key(
        type="bool", why_not="mounts a token that nothing uses; patch the object for what is injected", default=False
    ),
    **_scraped("serviceMonitor"),
    "serviceMonitor.scheme": Key(
        type="text", why_not=f"{_MONITOR}; pass tls=Tls(...), which serves https too", default="http"
    ),
    "serviceMonitor.bearerTokenFile": Key(type="text", why_not=f"{_MONITOR}, which knows no bearer tokens"),
    "serviceMonitor.tlsConfig": Key(type="map", why_not=f"{_MONITOR}; pass tls=Tls(...)"),
    **_scraped("podMonitor"),
    **{
        f"prometheusRule.{path}": Key(type=_TYPES[type(default)], why_not=_ALERTS, default=default)
        for path, default in _ALERT_DEFAULTS.items()
    },
    "grafanaDashboard.enabled": Key(type="bool", to="dashboard="),
    "grafanaDashboard.label": Key(type="text", why_not=_DASHBOARD, default="grafana_dashboard"),
    "grafanaDashboard.labelValue": Key(type="text", why_not=_DASHBOARD, default="1"),
    "grafanaDashboard.annotations": Key(type="map", why_not=_DASHBOARD),
    "podAnnotations": Key(type="map", to="pod_annotations="),
    "podLabels": Key(type="map", to="pod_labels="),
    "podSecurityContext": Key(type="map", to="pod_security_context="),
    "securityContext": Key(type="map", to="security_context="),
    "resources": Key(type="map", to="resources="),
    "volumes": Key(type="list", to="volumes="),
    "volumeMounts": Key(type="list", to="volumes="),
    "nodeSelector": Key(type="map", to="node_selector=", default=_OS),
    "tolerations": Key(type="list", to="tolerations="),
    "affinity": Key(type="map", to="affinity="),
    "priorityClassName": Key(type="text", to="priority_class_name="),
    "updateStrategy": Key(type="map", to="update_strategy=", default=_UPDATE),
    "revisionHistoryLimit": Key(
        type="number or text", why_not="is left to Kubernetes, which keeps 10; patch the object", default=""
    ),
    "imagePullSecrets": Key(type="list", to="image_pull_secrets="),
    "test.image.repository": Key(type="text", why_not=_NO_TEST, default="docker.io/library/busybox"),
    "test.image.tag": Key(type="text", why_not=_NO_TEST, default="1.38"),
    "test.image.pullPolicy": Key(type="text", why_not=_NO_TEST, default="IfNotPresent"),
    "nameOverride": Key(type="text", to="name="),
    "fullnameOverride": Key(type="text", to="name="),
    "global": Key(type="map", why_not="is never read by the chart; leave it out"),
}


def exporter_options(
    values: Mapping[str, Any],
    *,
    release_name: str,
    namespace: str,
    version: str | versions.Unverified,
    platform: Platform,
    strict: bool,
) -> dict[str, Any]:
    """Give the keywords of ``NvidiaGpuExporter`` that say what the values say.

    Raises:
        GpuConstructsError: A key that the chart does not read, or a value that it, or the exporter, would refuse
            or ignore.
    """
    for field, got, kind in (
        ("release_name", release_name, str),
        ("namespace", namespace, str),
        ("version", version, str | versions.Unverified),
        ("platform", platform, Platform),
        ("strict", strict, bool),
    ):
        _fields.of_type(field, got, kind)
    _fields.dns_subdomain("release_name", release_name)
    release = versions.release_of(versions.NVIDIA_GPU_EXPORTER, version, "nvidia_gpu_exporter")
    read = Values(values, KEYS, release=release.behaves_like, strict=strict)
    flags = _flags(read)
    backend: Backend = flags.pop("backend", "nvml" if read.get("image.tag", "").endswith("-nvml") else "nvidia-smi")
    scrape = _scrape(read, flags.get("collect_interval_seconds") or SCRAPE_INTERVAL_SECONDS)
    return {
        "name": object_name(
            read, "", release_name=release_name, default=NAME, longest=LONGEST_NAME, check=_fields.dns_label
        ),
        "instance": release_name,
        "namespace": namespace,
        "backend": backend,
        **_collection(read, backend, flags),
        **_image(read, release, backend, is_verified=isinstance(version, str)),
        **_pods(read),
        "port": _port(read),
        "host_network": read.get("hostNetwork", False),
        "log_level": _word(read, "log.level", ("debug", "info", "warn", "error"), "info"),
        "log_format": _word(read, "log.format", ("logfmt", "json"), "logfmt"),
        "env": _env(read),
        "volumes": _volumes(read),
        "runtime_class": named(read, "runtimeClassName", _fields.dns_subdomain),
        "service_account": _service_account(read),
        "service": _service(read, scrape),
        "scrape": scrape,
        "dashboard": read.get("grafanaDashboard.enabled", False),
    }


# --- what is collected ----------------------------------------------------------------------------------------

_DURATIONS = {"collect.interval": "collect_interval_seconds", "collect.timeout": "collect_timeout_seconds"}
_SWITCHES = {"collect.compute-apps-mig": "compute_apps_mig", "collect.pcie-throughput": "pcie_throughput"}
_OF_CHART = {
    "web.listen-address": "port",
    "web.telemetry-path": "telemetryPath",
    "nvidia-smi-command": "nvidiaSmiCommand",
    "query-field-names": "queryFieldNames",
    "query-field-names-exclude": "queryFieldNamesExclude",
    "collect.compute-apps": "computeApps.enabled",
    "log.level": "log.level",
    "log.format": "log.format",
}
_BACKENDS: Mapping[str, Backend] = {"exec": "nvidia-smi", "nvml": "nvml"}


def _flags(read: Values) -> dict[str, Any]:
    """Give what the exporter's flags say, by keyword."""
    found: dict[str, Any] = {}
    for path, flag, value in _said(read):
        if flag in _SWITCHES and value is None:
            found[_SWITCHES[flag]] = True
        elif flag.removeprefix("no-") in _SWITCHES and value is None:
            found[_SWITCHES[flag.removeprefix("no-")]] = False
        elif flag in _DURATIONS and value is not None:
            seconds = read.attempt(path, partial(_seconds, flag, value))
            if seconds is not None:
                found[_DURATIONS[flag]] = seconds
        elif flag == "collect.backend" and value in _BACKENDS:
            found["backend"] = _BACKENDS[str(value)]
        elif flag in _OF_CHART:
            read.refuse(path, f"says --{flag} a second time, at which the exporter ends; set values.{_OF_CHART[flag]}")
        elif flag == "web.config.file":
            read.refuse(
                path, "is tls=Tls(...) and basic_auth=BasicAuth(...) here; write NvidiaGpuExporter(...) with them"
            )
        else:
            said = f"--{flag}" if value is None else f"--{flag}={value}"
            read.refuse(path, f"says {said!r}, for which there is no keyword; patch the container's args")
    return found


def _said(read: Values) -> Iterator[tuple[str, str, str | None]]:
    """Give each flag with its value, which may stand behind it or be the next word."""
    words = list(enumerate(read.get("extraArgs", ())))
    while words:
        number, word = words.pop(0)
        path = f"extraArgs[{number}]"
        if not isinstance(word, str) or not word.startswith("--"):
            read.refuse(path, f"must be a flag, got {word!r}")
            continue
        flag, is_joined, value = word.removeprefix("--").partition("=")
        if is_joined:
            yield path, flag, value
        elif words and isinstance(words[0][1], str) and not words[0][1].startswith("--"):
            yield path, flag, words.pop(0)[1]
        else:
            yield path, flag, None


def _seconds(field: str, text: str) -> int:
    span = from_go_duration(field, text)
    if span % timedelta(seconds=1) or span < timedelta(0):
        raise GpuConstructsError(f"{field} must be whole seconds; got {text!r}")
    return span // timedelta(seconds=1)


def _collection(read: Values, backend: Backend, flags: dict[str, Any]) -> dict[str, Any]:
    options: dict[str, Any] = {
        "query_field_names": _names(read, backend),
        "query_field_names_exclude": _exclude(read, backend),
        "compute_apps": _compute_apps(read),
        "telemetry_path": "/metrics",
    }
    if read.accepts("telemetryPath", partial(CHECKS["telemetry_path"], "telemetryPath", _path(read))):
        options["telemetry_path"] = _path(read)
    command = read.get("nvidiaSmiCommand")
    if command and backend == "nvml":
        read.refuse("nvidiaSmiCommand", "is not for the NVML backend, which runs no command and would not start")
    elif command:
        options["nvidia_smi_command"] = command
    if flags.get("compute_apps_mig") and not options["compute_apps"]:
        read.refuse("extraArgs", "labels processes (--collect.compute-apps-mig) that are not exported")
        del flags["compute_apps_mig"]
    for keyword in ("compute_apps_mig", "pcie_throughput"):
        if flags.get(keyword) and backend != "nvml":
            read.refuse("extraArgs", f"asks for {keyword}, which needs the NVML backend: the exporter would not start")
            del flags[keyword]
    limits = {"collect_interval_seconds": (0, 3600), "collect_timeout_seconds": (1, 300)}
    for keyword, (least, most) in limits.items():
        if keyword in flags:
            check = partial(_fields.whole_number, keyword, flags[keyword], minimum=least, maximum=most)
            if not read.accepts("extraArgs", check):
                del flags[keyword]
    if flags.get("collect_timeout_seconds", 0) >= WRITE_TIMEOUT_SECONDS and not flags.get("collect_interval_seconds"):
        read.refuse("extraArgs", "lets a reading take longer than an answer may; add --collect.interval")
        del flags["collect_timeout_seconds"]
    return {**options, **flags}


def _path(read: Values) -> str:
    path: str = read.get("telemetryPath", "/metrics")
    return path


def _names(read: Values, backend: Backend) -> list[str]:
    # The chart joins the list with commas, so one entry may hold several.
    said = [name for entry in read.get("queryFieldNames", ()) for name in str(entry).split(",")]
    if AUTO in said and len(said) > 1:
        read.refuse("queryFieldNames", f"must be either {AUTO!r} or names, got {said!r}: the exporter would not start")
        return [AUTO]
    known = [name for name in said if read.accepts("queryFieldNames", partial(exported_metrics, backend, [name]))]
    return list(dict.fromkeys(known)) or [AUTO]


def _exclude(read: Values, backend: Backend) -> list[str]:
    path = "queryFieldNamesExclude"
    said = [pattern.strip() for entry in read.get(path, ()) for pattern in str(entry).split(",")]
    return [p for p in said if p and read.accepts(path, partial(exported_metrics, backend, exclude=[p]))]


def _compute_apps(read: Values) -> bool:
    is_on, sees_all = read.get("computeApps.enabled", False), read.get("hostPID", False)
    if is_on and not sees_all:
        read.refuse("computeApps.enabled", "shows no process but the exporter's own without hostPID; set both")
    if sees_all and not is_on:
        read.refuse("hostPID", "is a right that nothing uses without computeApps.enabled; leave it out")
    return bool(is_on and sees_all)


# --- pods -----------------------------------------------------------------------------------------------------


def _image(
    read: Values, release: versions.NvidiaGpuExporterRelease, backend: Backend, *, is_verified: bool
) -> dict[str, Any]:
    options: dict[str, Any] = {}
    policy = read.get("image.pullPolicy")
    if policy and read.accepts("image.pullPolicy", partial(CHECKS["image_pull_policy"], "image.pullPolicy", policy)):
        options["image_pull_policy"] = policy
    if "image.repository" in read or read.get("image.tag"):
        # What the chart would run, whatever the version here says.
        image = f"{read.get('image.repository', _REPOSITORY)}:{read.get('image.tag') or release.version}"
        own = pod_image(release, backend, is_verified=is_verified)
        if image != own and read.accepts("image", partial(CHECKS["image"], "image", image)):
            options["image"] = image
    return options


_OF_PODS: Mapping[str, tuple[str, Any]] = {
    "affinity": ("affinity", Mapping[str, Any]),
    "nodeSelector": ("node_selector", Mapping[str, str]),
    "podAnnotations": ("pod_annotations", Mapping[str, str]),
    "podLabels": ("pod_labels", Mapping[str, str]),
    "podSecurityContext": ("pod_security_context", Mapping[str, Any]),
    "priorityClassName": ("priority_class_name", str),
    "securityContext": ("security_context", Mapping[str, Any]),
}


def _pods(read: Values) -> dict[str, Any]:
    options: dict[str, Any] = {"tolerations": tolerations(read, "tolerations")}
    for path, (keyword, kind) in _OF_PODS.items():
        default = KEYS[path].default
        # Null takes the chart's own away; what is refused leaves it.
        value = read.get(path) if path in read else default
        is_good = not value or read.accepts(path, partial(_checked, keyword, value, kind))
        options[keyword] = (value if is_good else default) or None
    amounts = resources(read, "resources", read.get("resources", {}))
    if amounts is not None:
        options["resources"] = amounts
    made: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
        "imagePullSecrets": ("image_pull_secrets", secret_names),
        "updateStrategy": ("update_strategy", _update_strategy),
    }
    for path, (keyword, make) in made.items():
        value = read.attempt(path, partial(make, read.get(path))) if read.get(path) else None
        if value is not None:
            options[keyword] = value
    return options


def _checked(keyword: str, value: Any, kind: Any) -> None:
    _fields.of_type(keyword, value, kind)
    CHECKS[keyword](keyword, value)


def _update_strategy(given: Mapping[str, Any]) -> Any:
    # The chart's own numbers are laid under what is given, and Kubernetes skips them there.
    return update_strategy({"type": "OnDelete"} if given.get("type") == "OnDelete" else given)


def _word(read: Values, path: str, words: Sequence[str], default: str) -> str:
    word: str = read.get(path) or default
    return word if read.accepts(path, partial(_fields.one_of, path, word, words)) else default


def _port(read: Values) -> int:
    port: int = read.get("port", 9835)
    if not read.accepts("port", partial(_fields.port_number, "port", port)):
        port = 9835
    service = read.get("service.port", 9835)
    if service != port and read.get("service.enabled", True):
        read.refuse("service.port", f"must be the pods' port, {port}, as both are one here; got {service!r}")
    return port


def _env(read: Values) -> dict[str, object]:
    made = [read.attempt(f"extraEnv[{i}]", partial(_variable, one)) for i, one in enumerate(read.get("extraEnv", ()))]
    return dict(variable for variable in made if variable is not None)


def _variable(given: Any) -> tuple[str, object]:
    _fields.of_type("variable", given, Mapping)
    name = given.get("name")
    if not isinstance(name, str):
        raise GpuConstructsError(f"variable must have a name, got {dict(given)!r}")
    if "valueFrom" in given:
        _fields.of_type("valueFrom", given["valueFrom"], Mapping)
    elif not isinstance(given.get("value", ""), str):
        raise GpuConstructsError(f"value must be text, got {given['value']!r}; quote it")
    value: object = EnvValue(value_from=given["valueFrom"]) if "valueFrom" in given else given.get("value", "")
    CHECKS["env"]("variable", {name: value})
    credentials.refuse_variable(name, name, value, "use valueFrom.secretKeyRef")
    environment({name: value}, visible_devices_is_managed=False)
    return name, value


def _volumes(read: Values) -> dict[str, object]:
    given = [one for one in read.get("volumes", ()) if isinstance(one, Mapping) and isinstance(one.get("name"), str)]
    sources = {one["name"]: one for one in given}
    found: dict[str, object] = {}
    used: set[str] = set()
    for number, mount in enumerate(read.get("volumeMounts", ())):
        made = read.attempt(f"volumeMounts[{number}]", partial(_mounted, mount, sources))
        if made is not None:
            found[made[0]] = made[1]
            used.add(mount["name"])
    for number, one in enumerate(read.get("volumes", ())):
        if one not in [sources[name] for name in used]:
            read.refuse(f"volumes[{number}]", f"is mounted by none of volumeMounts, got {one!r}; leave it out")
    return found


def _mounted(mount: Any, sources: Mapping[str, Mapping[str, Any]]) -> tuple[str, Volume]:
    _fields.of_type("mount", mount, Mapping[str, Any])
    for key in mount:
        _fields.one_of("mount key", key, ("name", "mountPath", "readOnly"))
    if mount.get("name") not in list(sources) or not isinstance(mount.get("mountPath"), str):
        raise GpuConstructsError(f"mount must have a mountPath and the name of one of volumes; got {dict(mount)!r}")
    source = {key: value for key, value in sources[mount["name"]].items() if key != "name"}
    volume = Volume(source=source, read_only=bool(mount.get("readOnly")))
    mounts({mount["mountPath"]: volume}, shared_memory=None)
    return mount["mountPath"], volume


def _service_account(read: Values) -> str | None:
    name = named(read, "serviceAccount.name", _fields.dns_subdomain)
    if name and read.get("serviceAccount.create", True):
        read.refuse("serviceAccount.name", f"{_ACCOUNT}; make it yourself and set serviceAccount.create: false")
        return None
    return name


# --- how it is found ------------------------------------------------------------------------------------------


def _service(read: Values, scrape: Scrape) -> bool | ExporterService:
    if not read.get("service.enabled", True):
        if scrape.kind != "ServiceMonitor":
            return False
        read.refuse("service.enabled", "must be true with serviceMonitor.enabled, which finds pods through the Service")
    return read.made_of(
        ExporterService,
        {
            "type": ("service.type", read.get("service.type") or None),
            "annotations": ("service.annotations", read.get("service.annotations")),
        },
    )


def _scrape(read: Values, collect_interval: int) -> Scrape:
    section = "serviceMonitor" if read.get("serviceMonitor.enabled") else "podMonitor"
    if not read.get(f"{section}.enabled"):
        return Scrape(kind="none")
    if section == "serviceMonitor" and read.get("podMonitor.enabled"):
        read.refuse("podMonitor.enabled", "would have every GPU scraped twice beside serviceMonitor.enabled; keep one")
    interval = _duration(read, f"{section}.interval", _INTERVAL)
    timeout = _duration(read, f"{section}.scrapeTimeout", "")
    if timeout and interval is None and timeout > collect_interval:
        read.refuse(
            f"{section}.scrapeTimeout",
            f"must be at most {collect_interval}s, the interval where none is said; got {timeout}s",
        )
        timeout = None
    timeout = timeout or min(_SCRAPE_TIMEOUT_SECONDS, interval or collect_interval)
    return read.made_of(
        partial(Scrape, kind="ServiceMonitor" if section == "serviceMonitor" else "PodMonitor", honor_labels=False),
        {
            "interval_seconds": (f"{section}.interval", interval),
            "scrape_timeout_seconds": (f"{section}.scrapeTimeout", timeout),
            "labels": (f"{section}.additionalLabels", read.get(f"{section}.additionalLabels")),
            "relabelings": (f"{section}.relabelings", _steps(read, f"{section}.relabelings")),
            "metric_relabelings": (f"{section}.metricRelabelings", _steps(read, f"{section}.metricRelabelings")),
        },
    )


def _duration(read: Values, path: str, default: str) -> int | None:
    text = read.get(path, default)
    return read.attempt(path, partial(_seconds, path, text)) if text else None


_STEP = {
    "action": "action",
    "sourceLabels": "source_labels",
    "separator": "separator",
    "regex": "regex",
    "modulus": "modulus",
    "targetLabel": "target_label",
    "replacement": "replacement",
}


def _steps(read: Values, path: str) -> list[Relabeling]:
    made = [read.attempt(f"{path}[{i}]", partial(_step, one)) for i, one in enumerate(read.get(path, ()))]
    return [step for step in made if step is not None]


def _step(given: Any) -> Relabeling:
    _fields.of_type("relabeling", given, Mapping)
    for key in given:
        _fields.one_of("relabeling key", key, tuple(_STEP))
    members = {_STEP[key]: value for key, value in given.items()}
    # The operator takes LabelDrop for labeldrop.
    if isinstance(members.get("action"), str):
        members["action"] = members["action"].lower()
    return Relabeling(**members)

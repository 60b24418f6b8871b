"""The values of NVIDIA's chart of the exporter, key by key, and what becomes of each here.

Source: NVIDIA/dcgm-exporter@3.3.6-3.4.2 and @4.5.3-4.8.2: deployment/{values.yaml,templates}, pkg/cmd/app.go,
etc/*.csv; release 4.8.3 is taken to have the keys of 4.8.2.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from gpu_constructs import _fields, credentials, placement, versions
from gpu_constructs._container_security import POD_SECURITY_CONTEXT, SECURITY_CONTEXT
from gpu_constructs._durations import from_go_duration
from gpu_constructs._helm import Key, Values, coalesced, named, object_name, resources, secret_names, shown, tolerations
from gpu_constructs._labels import object_labels, selector_labels
from gpu_constructs._resources import container_resources
from gpu_constructs.errors import GpuConstructsError, did_you_mean, warn
from gpu_constructs.observability import daemonset as pods
from gpu_constructs.observability import dcgm_fields
from gpu_constructs.observability.exporter_options import DebugDump, ExporterService, MetricsConfigMap
from gpu_constructs.observability.metrics import (
    COLLECTION_INTERVAL_SECONDS,
    Metric,
    default_metrics,
    needs_profiling,
)
from gpu_constructs.observability.pod_mapping import POD_RESOURCES, PodMapping
from gpu_constructs.observability.scrape import Relabeling, Scrape
from gpu_constructs.observability.web_config import Tls
from gpu_constructs.placement import Toleration
from gpu_constructs.platforms import Platform
from gpu_constructs.update_strategy import UpdateStrategy
from gpu_constructs.workload.env import EnvValue
from gpu_constructs.workload.volume import Volume, mounts

CHART = "dcgm-exporter"
_OLD = ("3.4.2",)
_NEW = ("4.8.2", "4.8.3")
_REPOSITORY = "nvcr.io/nvidia/k8s/dcgm-exporter"
_METRICS_MAP = "exporter-metrics-config-map"
_IMAGE_FILES = "/etc/dcgm-exporter"
_DEFAULT_FILE = f"{_IMAGE_FILES}/default-counters.csv"
_PROFILING_FILE = f"{_IMAGE_FILES}/dcp-metrics-included.csv"
_MONITORING = "monitoring.coreos.com/v1"

# What the construct takes, so that the key can be named that says something else.
_ADDRESS = re.compile(
    r"(\[[0-9A-Fa-f:.]+\]|\$\([A-Za-z_][A-Za-z0-9_]*\)|[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?):[0-9]{1,5}\Z"
)

_PATCH = "patch api_object"
_NO_PROBE = f"cannot be taken over: a startup probe waits for the exporter, for as long as it needs; {_PATCH} for other"

KEYS: dict[str, Key] = {
    "image.repository": Key(type="text", to="image=", default=_REPOSITORY),
    "image.pullPolicy": Key(type="text", to="image_pull_policy="),
    "image.tag": Key(type="text", to="image="),
    "arguments": Key(type="list", to="each flag to its keyword, such as metrics=; others to env="),
    "imagePullSecrets": Key(type="list", to="image_pull_secrets="),
    "nameOverride": Key(type="text", to="name="),
    "fullnameOverride": Key(type="text", to="name="),
    "namespaceOverride": Key(type="text", to="namespace="),
    "hostPID": Key(type="bool", to="pod_mapping=PodMapping(host_pid=)", releases=_NEW),
    "runtimeClassName": Key(type="text", to="runtime_class="),
    "priorityClassName": Key(type="text", to="priority_class_name=; none unless said"),
    "hostNetwork": Key(type="bool", to="host_network="),
    "serviceAccount.create": Key(type="bool", to="nothing: an account is made where the API server is asked"),
    "serviceAccount.annotations": Key(
        type="map",
        why_not=f"cannot be taken over: the account, where there is one, asks the API server only; {_PATCH}",
    ),
    "serviceAccount.name": Key(type="text", to="service_account=, with create: false"),
    "rollingUpdate.maxUnavailable": Key(type="number or text", to="update_strategy=", default=1),
    "rollingUpdate.maxSurge": Key(type="number or text", to="update_strategy=", default=0),
    "podLabels": Key(type="map", to="pod_labels="),
    "podAnnotations": Key(type="map", to="pod_annotations="),
    "podSecurityContext": Key(type="map", to="pod_security_context="),
    "securityContext": Key(type="map", to="security_context=; without SYS_ADMIN also metrics= without profiling"),
    "service.enable": Key(type="bool", to="service=", default=True),
    "service.type": Key(type="text", to="service=ExporterService(type=)", default="ClusterIP"),
    "service.internalTrafficPolicy": Key(
        type="text",
        to="service=ExporterService(internal_traffic_policy=)",
        releases=_NEW,
        default="Cluster",
    ),
    "service.clusterIP": Key(type="text", to="service=ExporterService(cluster_ip=)", releases=_NEW),
    "service.port": Key(type="number", to="port=", default=9400),
    "service.address": Key(type="text", to="port=, which service.port says too", default=":9400"),
    "service.annotations": Key(type="map", to="service=ExporterService(annotations=)"),
    "resources": Key(type="map", to="resources="),
    "serviceMonitor.apiVersion": Key(type="text", to="nothing: it is this one", releases=_NEW, default=_MONITORING),
    "serviceMonitor.enabled": Key(type="bool", to="scrape=Scrape(), or 'none'", default=True),
    "serviceMonitor.interval": Key(type="text", to="scrape=Scrape(interval_seconds=)", default="15s"),
    "serviceMonitor.scrapeTimeout": Key(
        type="text", to="scrape=Scrape(scrape_timeout_seconds=)", releases=_NEW, default="10s"
    ),
    "serviceMonitor.honorLabels": Key(
        type="bool",
        to="scrape=Scrape(honor_labels=); unsaid: true unless relabelings need the other",
        default=False,
    ),
    "serviceMonitor.additionalLabels": Key(type="map", to="scrape=Scrape(labels=)"),
    "serviceMonitor.relabelings": Key(type="list", to="scrape=Scrape(relabelings=)"),
    "serviceMonitor.metricRelabelings": Key(type="list", to="scrape=Scrape(metric_relabelings=)", releases=_NEW),
    "nodeSelector": Key(type="map", to="node_selector=, beside nvidia.com/gpu.present"),
    "tolerations": Key(type="list", to="tolerations=, beside nvidia.com/gpu"),
    "affinity": Key(type="map", to="affinity="),
    "extraHostVolumes": Key(type="list", to="volumes={…: Volume.host_path(…)}"),
    "extraConfigMapVolumes": Key(type="list", to="metrics=MetricsConfigMap(…) for the file of -f; others to volumes="),
    "extraVolumeMounts": Key(type="list", to="volumes="),
    "extraEnv": Key(type="list", to="each variable to its keyword, as arguments; others to env="),
    "kubeletPath": Key(type="text", to="pod_mapping=PodMapping(kubelet_path=)", default=POD_RESOURCES),
    "customMetrics": Key(type="text", to="metrics=[Metric(…), …]", releases=_NEW),
    "tlsServerConfig.enabled": Key(type="bool", to="tls=, with existingSecret", releases=_NEW),
    "tlsServerConfig.autoGenerated": Key(
        type="bool", to="nothing: existingSecret must be named", releases=_NEW, default=True
    ),
    "tlsServerConfig.existingSecret": Key(type="text", to="tls=Tls(secret=)", releases=_NEW),
    "tlsServerConfig.certFilename": Key(type="text", to="tls=Tls(cert_filename=)", releases=_NEW, default="tls.crt"),
    "tlsServerConfig.keyFilename": Key(type="text", to="tls=Tls(key_filename=)", releases=_NEW, default="tls.key"),
    "tlsServerConfig.caFilename": Key(type="text", to="tls=Tls(ca_filename=)", releases=_NEW, default="ca.crt"),
    "tlsServerConfig.clientAuthType": Key(type="text", to="tls=Tls(client_auth_type=)", releases=_NEW),
    "tlsServerConfig.key": Key(type="text", to="nothing: existingSecret must be named", releases=_NEW),
    "tlsServerConfig.cert": Key(type="text", to="nothing: existingSecret must be named", releases=_NEW),
    "tlsServerConfig.ca": Key(type="text", to="nothing: existingSecret must be named", releases=_NEW),
    "basicAuth.users": Key(
        type="map",
        why_not="cannot be taken over: it holds passwords, where this library takes bcrypt hashes and the name of a "
        "Secret for the scraper; leave it out and pass basic_auth=BasicAuth(...)",
        releases=_NEW,
    ),
    "kubernetes.enablePodLabels": Key(type="bool", to="pod_mapping=PodMapping(enable_pod_labels=)", releases=_NEW),
    "kubernetes.enablePodUID": Key(type="bool", to="pod_mapping=PodMapping(enable_pod_uid=)", releases=_NEW),
    "kubernetes.podLabelAllowlistRegex": Key(
        type="list", to="pod_mapping=PodMapping(pod_label_allowlist_regex=)", releases=_NEW
    ),
    "kubernetes.rbac.create": Key(
        type="bool", to="nothing: rights are made where the API server is asked", releases=_NEW, default=True
    ),
    "kubernetesDRA.enabled": Key(type="bool", to="pod_mapping=PodMapping(enable_dra=)", releases=_NEW),
    "debugDump.enabled": Key(type="bool", to="debug_dump=", releases=_NEW),
    "debugDump.directory": Key(
        type="text",
        why_not="cannot be taken over: the files live in a volume of the pod, not on the node; leave it out",
        releases=_NEW,
        default="/tmp/dcgm-exporter-debug",
    ),
    "debugDump.retention": Key(type="number", to="debug_dump=DebugDump(retention=)", releases=_NEW, default=24),
    "debugDump.compression": Key(type="bool", to="debug_dump=DebugDump(compression=)", releases=_NEW, default=True),
    "initContainers": Key(type="list", why_not=f"cannot be taken over; {_PATCH}", releases=_NEW),
    "livenessProbe.initialDelaySeconds": Key(type="number", why_not=_NO_PROBE, releases=_NEW, default=45),
    "livenessProbe.periodSeconds": Key(type="number", why_not=_NO_PROBE, releases=_NEW, default=5),
    "readinessProbe.initialDelaySeconds": Key(type="number", why_not=_NO_PROBE, releases=_NEW, default=45),
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
    """Give the keywords of the exporter that say what the values say.

    Raises:
        GpuConstructsError: A key that the chart does not read, or a value that it, or the exporter, would
            refuse or ignore, or that this library cannot take over.
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
    release = versions.release_of(versions.DCGM_EXPORTER, version, "the DCGM exporter")
    known_as = release.behaves_like
    read = Values(values, KEYS, release=known_as, strict=strict)
    where = named(read, "namespaceOverride", _fields.dns_label) or namespace
    program = _program(read, known_as)
    security = _security_context(read, known_as)
    can_profile = security is None or pods.exporter_rights(is_profiled=True).are_in(security)
    volumes = _volumes(read, known_as)
    exported, own_mount = _metrics(read, program, volumes, known_as, where, can_profile=can_profile)
    mapping = _pod_mapping(read, program, known_as)
    tls = _tls(read)
    interval = _interval(read, program)
    options: dict[str, Any] = {
        "name": object_name(
            read,
            "",
            release_name=release_name,
            default=CHART,
            longest=63 - len("-web-config"),
            check=_fields.dns_label,
        ),
        "instance": release_name,
        "namespace": where,
        "metrics": exported,
        "pod_mapping": mapping,
        "port": _port(read, program),
        "tls": tls,
        "debug_dump": _debug_dump(read, program),
        "security_context": security,
        "env": program.env,
        "volumes": _mounted(read, volumes, own_mount),
        "runtime_class": named(read, "runtimeClassName", _fields.dns_subdomain),
        "service_account": _service_account(read, mapping),
        "tolerations": _tolerations(read, known_as),
        "host_network": read.get("hostNetwork", False),
        "dashboard": False,
        **_service_and_scrape(read, tls, interval or COLLECTION_INTERVAL_SECONDS),
        **_pods(read, known_as),
    }
    if options["host_network"] and options["port"] < 1024:
        read.refuse("hostNetwork", "must be false with a port below 1024, which the exporter holds no right to bind")
        options["host_network"] = False
    if interval is not None:
        options["collect_interval_seconds"] = interval
    hostengine = _hostengine(read, program)
    if hostengine is not None:
        options["remote_hostengine"] = hostengine
    if "image.repository" in read or "image.tag" in read:
        tag = read.get("image.tag")
        if "image.tag" in read and not tag:
            read.refuse("image.tag", f"would make the tag {known_as!r}, which no image has; leave it out")
        image = f"{read.get('image.repository', _REPOSITORY)}:{tag or release.image.rpartition(':')[2]}"
        if read.accepts("image", partial(_fields.image, "image", image)):
            options["image"] = image
    return options


# --- the program ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Flag:
    """A flag of the exporter.

    Attributes:
        variable: That says the same.
        short: Its short form.
        kind: How its value is read.
        has_keyword: Whether a keyword of the construct says it; else it becomes its variable.
        is_new: Whether the exporter of the old chart does not know it.
    """

    variable: str
    short: str = ""
    kind: Literal["text", "switch", "list"] = "text"
    has_keyword: bool = False
    is_new: bool = False


_E = "DCGM_EXPORTER_"
_FLAGS: Mapping[str, _Flag] = {
    "collectors": _Flag(f"{_E}COLLECTORS", "f", has_keyword=True),
    "address": _Flag(f"{_E}LISTEN", "a", has_keyword=True),
    "collect-interval": _Flag(f"{_E}INTERVAL", "c", has_keyword=True),
    "configmap-data": _Flag(f"{_E}CONFIGMAP_DATA", "m", has_keyword=True),
    "remote-hostengine-info": _Flag("DCGM_REMOTE_HOSTENGINE_INFO", "r", has_keyword=True),
    "kubernetes": _Flag(f"{_E}KUBERNETES", "k", "switch", has_keyword=True),
    "kubernetes-enable-pod-labels": _Flag(f"{_E}KUBERNETES_ENABLE_POD_LABELS", "", "switch", True, True),
    "kubernetes-enable-pod-uid": _Flag(f"{_E}KUBERNETES_ENABLE_POD_UID", "", "switch", True, True),
    "kubernetes-gpu-id-type": _Flag(f"{_E}KUBERNETES_GPU_ID_TYPE", has_keyword=True),
    "kubernetes-pod-label-allowlist-regex": _Flag(f"{_E}KUBERNETES_POD_LABEL_ALLOWLIST_REGEX", "", "list", True, True),
    "nvidia-resource-names": _Flag("NVIDIA_RESOURCE_NAMES", "", "list", True, True),
    "kubernetes-virtual-gpus": _Flag("KUBERNETES_VIRTUAL_GPUS", "", "switch", True, True),
    "kubernetes-enable-dra": _Flag("KUBERNETES_ENABLE_DRA", "", "switch", True, True),
    "pod-resources-kubelet-socket": _Flag("DCGM_POD_RESOURCES_KUBELET_SOCKET", has_keyword=True),
    "web-config-file": _Flag(f"{_E}WEB_CONFIG_FILE", has_keyword=True),
    "use-old-namespace": _Flag(f"{_E}USE_OLD_NAMESPACE", "o", "switch", True),
    "no-hostname": _Flag(f"{_E}NO_HOSTNAME", "n", "switch", True),
    "dump-enabled": _Flag(f"{_E}DUMP_ENABLED", "", "switch", True, True),
    "dump-directory": _Flag(f"{_E}DUMP_DIRECTORY", "", "text", True, True),
    "dump-retention": _Flag(f"{_E}DUMP_RETENTION", "", "text", True, True),
    "dump-compression": _Flag(f"{_E}DUMP_COMPRESSION", "", "switch", True, True),
    "devices": _Flag(f"{_E}DEVICES_STR", "d"),
    "switch-devices": _Flag(f"{_E}OTHER_DEVICES_STR", "s"),
    "cpu-devices": _Flag(f"{_E}CPU_DEVICES_STR", "p"),
    "fake-gpus": _Flag(f"{_E}USE_FAKE_GPUS", "", "switch"),
    "web-systemd-socket": _Flag(f"{_E}SYSTEMD_SOCKET", "", "switch"),
    "xid-count-window-size": _Flag(f"{_E}XID_COUNT_WINDOW_SIZE", "x"),
    "replace-blanks-in-model-name": _Flag(f"{_E}REPLACE_BLANKS_IN_MODEL_NAME", "rbmn", "switch"),
    "debug": _Flag(f"{_E}DEBUG", "", "switch"),
    "clock-events-count-window-size": _Flag(f"{_E}CLOCK_EVENTS_COUNT_WINDOW_SIZE"),
    "enable-dcgm-log": _Flag(f"{_E}ENABLE_DCGM_LOG", "", "switch"),
    "dcgm-log-level": _Flag(f"{_E}DCGM_LOG_LEVEL"),
    "hpc-job-mapping-dir": _Flag("DCGM_HPC_JOB_MAPPING_DIR"),
    "log-format": _Flag(f"{_E}LOG_FORMAT", is_new=True),
    "disable-startup-validate": _Flag("DISABLE_STARTUP_VALIDATE", "", "switch", is_new=True),
    "enable-gpu-bind-unbind-watch": _Flag(f"{_E}ENABLE_GPU_BIND_UNBIND_WATCH", "", "switch", is_new=True),
    "gpu-bind-unbind-poll-interval": _Flag(f"{_E}GPU_BIND_UNBIND_POLL_INTERVAL", is_new=True),
    "enable-pprof": _Flag(f"{_E}ENABLE_PPROF", "", "switch", is_new=True),
}
_BY_VARIABLE = {flag.variable: name for name, flag in _FLAGS.items()}
_BY_SHORT = {flag.short: name for name, flag in _FLAGS.items() if flag.short}
# What we set ourselves, where the user says the same.
_AS_OURS: Mapping[str, Sequence[Any]] = {
    "NODE_NAME": ({"fieldRef": {"fieldPath": "spec.nodeName"}},),
    "NO_SETCAP": ("true",),
    "NVIDIA_DRIVER_CAPABILITIES": ("compute,utility", "utility,compute"),
    "NVIDIA_VISIBLE_DEVICES": ("all",),
}
_BOOLEANS = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}


@dataclass(frozen=True)
class _Program:
    """What arguments and variables tell the exporter.

    Attributes:
        said: By flag: the key that says it, and its value.
        env: Variables without a keyword.
    """

    said: Mapping[str, tuple[str, str]]
    env: Mapping[str, object]

    def text(self, flag: str) -> str:
        """Give what is said; empty for nothing."""
        return self.said.get(flag, ("", ""))[1]

    def path(self, flag: str) -> str:
        """Give the key that says it."""
        return self.said.get(flag, ("", ""))[0]

    def switch(self, flag: str, path: str, value: Any) -> tuple[str, Any]:
        """Give the key and what is said, or another key of the values and its value."""
        return (self.path(flag), _BOOLEANS[self.text(flag)]) if flag in self.said else (path, value)


def _program(read: Values, release: str) -> _Program:
    said, env = _variables(read)
    for flag, (path, value) in _arguments(read, release).items():
        # A flag wins over its variable.
        if _FLAGS[flag].has_keyword:
            said[flag] = path, value
        else:
            env[_FLAGS[flag].variable] = value
    for flag, place in (("use-old-namespace", "labels of every series"), ("no-hostname", "the node off every series")):
        path, is_on = said.pop(flag, ("", ""))
        if _BOOLEANS.get(is_on):
            read.refuse(path, f"takes {place} that dashboards and alerts ask for; leave it out")
    for flag, way_out in (("web-config-file", "pass tls= or basic_auth="), ("dump-directory", "leave it out")):
        path, value = said.pop(flag, ("", ""))
        if value:
            read.refuse(path, f"cannot be taken over; {way_out}")
    return _Program(said, env)


def _variables(read: Values) -> tuple[dict[str, tuple[str, str]], dict[str, object]]:
    said: dict[str, tuple[str, str]] = {}
    env: dict[str, object] = {}
    for place, entry in enumerate(read.get("extraEnv", ())):
        path = f"extraEnv[{place}]"
        variable = read.attempt(path, partial(_variable, entry))
        if variable is None:
            continue
        name, value = variable
        flag = _BY_VARIABLE.get(name)
        if flag is not None and _FLAGS[flag].has_keyword:
            if not isinstance(value, str):
                read.refuse(path, f"must say {name} with a value, which decides more than the variable; got a source")
            elif read.accepts(path, partial(_readable, flag, value)):
                # The exporter takes an empty variable for none.
                said[flag] = path, value
                if not value:
                    del said[flag]
        elif name in pods.OWN_VARIABLES:
            if (value if isinstance(value, str) else value.value_from) not in _AS_OURS.get(name, ()):
                way_out = pods.OWN_VARIABLES[name]
                read.refuse(
                    path,
                    f"must not set {name}, which this library sets; "
                    + (f"set {way_out}" if way_out else "leave it out"),
                )
        else:
            env[name] = value
    return said, env


def _variable(entry: Any) -> tuple[str, str | EnvValue]:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
        raise GpuConstructsError(f"a variable must be a mapping with a name; got {shown(entry)}")
    for key in entry:
        _fields.one_of("variable key", key, ("name", "value", "valueFrom"))
    name, value, source = entry["name"], entry.get("value"), entry.get("valueFrom")
    _fields.environment_name("name", name)
    if source is not None:
        _fields.of_type(f"{name}.valueFrom", source, Mapping[str, Any])
        return name, EnvValue(value_from=source)
    if value is not None and not isinstance(value, str):
        raise GpuConstructsError(f"{name} must be text, got {shown(value)}; quote it")
    credentials.refuse_variable(name, name, value, "use valueFrom.secretKeyRef")
    return name, value or ""


def _readable(flag: str, value: str) -> None:
    if _FLAGS[flag].kind == "switch" and value and value not in _BOOLEANS:
        raise GpuConstructsError(f"{_FLAGS[flag].variable} must be true or false; got {value!r}")


def _arguments(read: Values, release: str) -> dict[str, tuple[str, str]]:
    default = ("-f", _PROFILING_FILE if release in _OLD else _DEFAULT_FILE)
    given = read.get("arguments", ()) if "arguments" in read else default
    said: dict[str, tuple[str, str]] = {}
    rest = iter(enumerate(given))
    for place, word in rest:
        path = f"arguments[{place}]"
        if not isinstance(word, str) or not word.startswith("-") or word.strip("-") == "":
            read.refuse(path, f"must be a flag, got {word!r}: the exporter stops reading there")
            break
        spelt, has_value, value = word.lstrip("-").partition("=")
        name = _BY_SHORT.get(spelt, spelt)
        flag = _FLAGS.get(name)
        if flag is None or (flag.is_new and release in _OLD):
            near = did_you_mean(spelt, [known for known, f in _FLAGS.items() if not (f.is_new and release in _OLD)])
            read.refuse(path, f"is no flag of the exporter, which would end at once{near}")
            continue
        if not has_value:
            value = "true" if flag.kind == "switch" else str(next(rest, (0, ""))[1])
        if not value:
            read.refuse(path, "must have a value: the exporter would end at once")
        elif read.accepts(path, partial(_readable, name, value)):
            earlier = said.get(name, ("", ""))[1] if flag.kind == "list" else ""
            said[name] = path, f"{earlier},{value}".strip(",")
    return said


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _hostengine(read: Values, program: _Program) -> str | None:
    address = program.text("remote-hostengine-info")
    if not address:
        return None
    if ":" not in address or address.endswith("]"):
        # The port that DCGM itself takes where none is said.
        address = f"{address}:5555"
    if not _ADDRESS.match(address):
        read.refuse(program.path("remote-hostengine-info"), f"must be 'host:port'; got {address!r}")
        return None
    return address


def _interval(read: Values, program: _Program) -> int | None:
    text, path = program.text("collect-interval"), program.path("collect-interval")
    if not text:
        return None
    if not text.isdecimal() or int(text) % 1000 or not 1000 <= int(text) <= 3_600_000:
        read.refuse(path, f"must be milliseconds that make whole seconds, 1000 to 3600000; got {text!r}")
        return None
    return int(text) // 1000


def _port(read: Values, program: _Program) -> int:
    port: int = read.get("service.port", 9400)
    if not read.accepts("service.port", partial(_fields.port_number, "port", port)):
        port = 9400
    address = program.text("address") or read.get("service.address", ":9400")
    host, _, number = address.rpartition(":")
    path = program.path("address") or "service.address"
    if number != str(port):
        read.refuse(
            path if path in read or program.path("address") else "service.port",
            f"must go with the other: the exporter would listen on {address!r}, where probes and the Service ask for "
            f"port {port}; say both service.port and service.address",
        )
        is_dropped = "service.port" in read and "service.address" not in read and not program.path("address")
        return 9400 if is_dropped else port
    if host not in ("", "0.0.0.0", "[::]"):
        read.refuse(path, f"must name no host, got {address!r}: the exporter would answer there only; say ':{port}'")
    return port


def _pod_mapping(read: Values, program: _Program, release: str) -> bool | PodMapping:
    switch = program.switch
    socket = program.text("pod-resources-kubelet-socket")
    if socket not in ("", f"{POD_RESOURCES}/kubelet.sock"):
        read.refuse(program.path("pod-resources-kubelet-socket"), "cannot be taken over; say kubeletPath")
    regex = program.text("kubernetes-pod-label-allowlist-regex")
    allowed = (
        (program.path("kubernetes-pod-label-allowlist-regex"), tuple(regex.split(",")))
        if regex
        else ("kubernetes.podLabelAllowlistRegex", tuple(read.get("kubernetes.podLabelAllowlistRegex", ())))
    )
    names = _words(program.text("nvidia-resource-names"))
    # What takes the place of others comes early, after what it needs: what does not go with it is what is dropped.
    members: dict[str, tuple[str, Any]] = {
        "host_pid": ("hostPID", read.get("hostPID", False)),
        "enable_pod_uid": switch("kubernetes-enable-pod-uid", *_at(read, "kubernetes.enablePodUID", False)),
        "virtual_gpus": switch("kubernetes-virtual-gpus", "", False),
        "nvidia_resource_names": (program.path("nvidia-resource-names"), tuple(names)),
        "enable_pod_labels": switch("kubernetes-enable-pod-labels", *_at(read, "kubernetes.enablePodLabels", False)),
        "pod_label_allowlist_regex": allowed,
        "enable_dra": switch("kubernetes-enable-dra", *_at(read, "kubernetesDRA.enabled", False)),
        "gpu_id_type": (program.path("kubernetes-gpu-id-type"), program.text("kubernetes-gpu-id-type") or "uid"),
        "kubelet_path": ("kubeletPath", read.get("kubeletPath") or POD_RESOURCES),
    }
    neutral = PodMapping()
    given = {name: at for name, at in members.items() if at[1] != getattr(neutral, name)}
    if not switch("kubernetes", "", True)[1]:
        for path, _ in given.values():
            read.refuse(path, "does nothing where the exporter is told not to look for pods; leave it out")
        return False
    mapping = read.made_of(lambda **chosen: _known(PodMapping(**chosen), release), given)
    asks = mapping.reads_pods and not mapping.enable_dra
    if asks and not read.get("kubernetes.rbac.create", True):
        read.refuse(
            "kubernetes.rbac.create",
            "must be true with enablePodLabels or enablePodUID: the chart takes the token away with the rights, and "
            "the exporter could not read pods",
        )
    return mapping if given else True


def _known(mapping: PodMapping, release: str) -> PodMapping:
    return PodMapping.of(mapping, None, release) or mapping


def _at(read: Values, path: str, default: Any = None) -> tuple[str, Any]:
    return path, read.get(path, default)


def _debug_dump(read: Values, program: _Program) -> bool | DebugDump:
    is_on = program.switch("dump-enabled", *_at(read, "debugDump.enabled", False))[1]
    if not is_on:
        return False
    hours = program.text("dump-retention")
    retention = (program.path("dump-retention"), int(hours)) if hours.isdecimal() else _at(read, "debugDump.retention")
    compression = program.switch("dump-compression", *_at(read, "debugDump.compression"))
    return read.made_of(DebugDump, {"retention": retention, "compression": compression})


# --- metrics --------------------------------------------------------------------------------------------------


def chart_metrics(release: str) -> tuple[Metric, ...]:
    """Give the list in the chart's own ConfigMap, which lags behind the image's.

    Source: NVIDIA/dcgm-exporter@3.3.6-3.4.2 and @4.5.3-4.8.2: deployment/templates/metrics-configmap.yaml.
    """
    left_out = ("DCGM_FI_DRIVER_VERSION", *(() if release in _OLD else ("DCGM_FI_DEV_FB_RESERVED",)))
    listed = [metric for metric in default_metrics(release) if metric.field not in left_out]
    if release in _OLD:
        rates = ("DCGM_FI_PROF_PCIE_TX_BYTES", "DCGM_FI_PROF_PCIE_RX_BYTES")
        return tuple(replace(m, prometheus_type="counter") if m.field in rates else m for m in listed)
    return tuple(
        replace(m, prometheus_type="counter") if m.field.endswith("NVLINK_BANDWIDTH_TOTAL") else m for m in listed
    )


def _image_metrics(file: str, release: str) -> tuple[Metric, ...] | None:
    """Give the list in a file of the image; None where there is no such file."""
    listed = default_metrics(release)
    if file == _PROFILING_FILE or (file == _DEFAULT_FILE and release not in _OLD):
        return listed
    if file != _DEFAULT_FILE:
        return None
    throughput = tuple(
        Metric(field=f"DCGM_FI_DEV_PCIE_{way}_THROUGHPUT", prometheus_type="counter", help=f"PCIe traffic {word} in KB")
        for way, word in (("TX", "sent"), ("RX", "received"))
    )
    return (*_without_profiling(listed), *throughput)


_Listed = tuple[Metric, ...] | MetricsConfigMap


def _metrics(
    read: Values, program: _Program, volumes: _Volumes, release: str, namespace: str, *, can_profile: bool
) -> tuple[str | list[Metric] | MetricsConfigMap, str]:
    """Give the list that the exporter really reads, and the path of the mount that only serves it."""
    from_api = program.text("configmap-data")
    own_mount = ""
    listed: _Listed | None = None
    is_chart_read = False
    if from_api not in ("", "none"):
        listed, is_chart_read = _from_api(read, program.path("configmap-data"), from_api, namespace, can_profile)
    if listed is None and not is_chart_read:
        file = program.text("collectors") or _DEFAULT_FILE
        listed, is_chart_read, own_mount = _from_file(read, program, volumes, file, release, can_profile)
    custom = read.get("customMetrics")
    if is_chart_read:
        listed = (_custom(read, custom, release) if custom else None) or chart_metrics(release)
    elif custom:
        read.refuse("customMetrics", "is read by nobody: arguments or mounts make the exporter read another list")
    if isinstance(listed, MetricsConfigMap):
        return listed, own_mount
    kept = tuple(listed or default_metrics(release))
    if needs_profiling(kept) and not can_profile:
        warn(
            "profiling metrics are left out: values.securityContext holds no SYS_ADMIN, without which the exporter "
            "of the chart leaves them out too"
        )
        kept = _without_profiling(kept)
        if not any(metric.prometheus_type != "label" for metric in kept):
            read.refuse("customMetrics", "holds only profiling metrics, which need SYS_ADMIN in securityContext")
            kept = _without_profiling(chart_metrics(release))
    return ("default" if kept == default_metrics(release) else list(kept)), own_mount


def _without_profiling(metrics: Sequence[Metric]) -> tuple[Metric, ...]:
    return tuple(metric for metric in metrics if not needs_profiling([metric]))


def _from_api(
    read: Values, path: str, reference: str, namespace: str, can_profile: bool
) -> tuple[MetricsConfigMap | None, bool]:
    where, _, name = reference.partition(":")
    if where != namespace:
        read.refuse(path, f"must name a ConfigMap of the exporter's namespace {namespace!r}; got {reference!r}")
        return None, True
    if name == _METRICS_MAP:
        return None, True
    made = read.attempt(path, partial(MetricsConfigMap, config_map=name, is_profiled=can_profile))
    return made, made is None


def _from_file(
    read: Values, program: _Program, volumes: _Volumes, file: str, release: str, can_profile: bool
) -> tuple[_Listed | None, bool, str]:
    path = program.path("collectors") or "arguments"
    mount = volumes.holding(file)
    if mount is None:
        listed = _image_metrics(file, release)
        if listed is None:
            read.refuse(path, f"must name a list of the image or of extraConfigMapVolumes; got {file!r}")
        return listed, False, ""
    found = volumes.key_of(file, mount)
    if found is None:
        read.refuse(path, f"must name a file of a ConfigMap that is mounted; got {file!r}")
        return None, False, ""
    name, key = found
    if (name, key) == (_METRICS_MAP, "metrics"):
        return None, True, mount["mountPath"]
    made = read.attempt(path, partial(MetricsConfigMap, config_map=name, key=key, is_profiled=can_profile))
    return made, False, mount["mountPath"]


def _custom(read: Values, text: str, release: str) -> tuple[Metric, ...]:
    """Read the lines of a CSV as the exporter does; one that it would end at is dropped."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    indent = first[: len(first) - len(first.lstrip(" "))]
    found: dict[str, Metric] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        row = line.removeprefix(indent)
        if not row.strip() or row.startswith("#"):
            continue
        metric = read.attempt("customMetrics", partial(_metric, row, number, release))
        if metric is not None and metric.field in found:
            read.refuse("customMetrics", f"has {metric.field} twice, again in line {number}; keep one")
        elif metric is not None:
            found[metric.field] = metric
    if any(metric.prometheus_type != "label" for metric in found.values()):
        return tuple(found.values())
    read.refuse("customMetrics", "holds no metric")
    return ()


def _metric(row: str, number: int, release: str) -> Metric:
    at = f"line {number}"
    cells = [cell.strip(" ") for cell in _cells(row, at)]
    if len(cells) != 3:
        raise GpuConstructsError(f"{at} must hold field, type and help, parted by commas; got {shown(row.strip())}")
    field, kind, text = cells
    try:
        # A comma can stand in quotes, where ours takes none.
        metric = Metric(field=field, prometheus_type=kind, help=text.replace(",", ";").replace('"', "'"))  # type: ignore[arg-type]
        dcgm_fields.require(field, kind, release, known_as=release)
    except GpuConstructsError as error:
        raise GpuConstructsError(f"{at}: {error.problem}") from None
    return metric


def _cells(row: str, at: str) -> list[str]:
    """Split a line as Go's encoding/csv does, whose quotes stand at the beginning and the end of a field only."""
    cells: list[str] = []
    rest: str | None = row
    while rest is not None:
        if rest.startswith('"'):
            closed = rest.replace('""', "\0\0").find('"', 1)
            after = rest[closed + 1 :]
            if closed < 0 or (after and not after.startswith(",")):
                raise GpuConstructsError(f"{at} must quote whole fields; got {shown(row.strip())}")
            cells.append(rest[1:closed].replace('""', '"'))
            rest = after[1:] if after else None
        else:
            cell, comma, after = rest.partition(",")
            if '"' in cell:
                raise GpuConstructsError(f"{at} must quote whole fields; got {shown(row.strip())}")
            cells.append(cell)
            rest = after if comma else None
    return cells


# --- volumes --------------------------------------------------------------------------------------------------

_SOURCES = ("configMap", "csi", "downwardAPI", "emptyDir", "hostPath", "persistentVolumeClaim", "projected", "secret")
_TAKEN = (POD_RESOURCES, "/tmp")


@dataclass(frozen=True)
class _Volumes:
    """The volumes that the values name and their mounts, each with the key that says it."""

    sources: Mapping[str, tuple[str, Mapping[str, Any]]]
    mounts: Sequence[tuple[str, Mapping[str, Any]]]

    def holding(self, file: str) -> Mapping[str, Any] | None:
        """Give the innermost mount that a file of the container lies in."""
        around = [mount for _, mount in self.mounts if f"{file}/".startswith(f"{mount['mountPath'].rstrip('/')}/")]
        return max(around, key=lambda mount: len(mount["mountPath"]), default=None)

    def key_of(self, file: str, mount: Mapping[str, Any]) -> tuple[str, str] | None:
        """Give ConfigMap and key of a file in a mount."""
        source = self.sources.get(mount["name"], ("", {}))[1].get("configMap")
        if not isinstance(source, Mapping) or not isinstance(source.get("name"), str):
            return None
        inner = posixpath.join(mount.get("subPath") or "", file[len(mount["mountPath"].rstrip("/")) + 1 :]).rstrip("/")
        items = source.get("items")
        if not items:
            return source["name"], inner
        keys = [item.get("key") for item in items if isinstance(item, Mapping) and item.get("path") == inner]
        return (source["name"], str(keys[0])) if keys else None


_CHART_VOLUME = {
    "name": "exporter-metrics-volume",
    "configMap": {"name": _METRICS_MAP, "items": [{"key": "metrics", "path": "default-counters.csv"}]},
}
_CHART_MOUNT = {"name": "exporter-metrics-volume", "mountPath": _DEFAULT_FILE, "subPath": "default-counters.csv"}


def _volumes(read: Values, release: str) -> _Volumes:
    def listed(path: str, default: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        said = read.get(path, ()) if path in read else [] if release in _OLD else [default]
        return ((f"{path}[{place}]", entry) for place, entry in enumerate(said))

    sources: dict[str, tuple[str, Mapping[str, Any]]] = {}
    for path, entry in (
        *((f"extraHostVolumes[{i}]", e) for i, e in enumerate(read.get("extraHostVolumes", ()))),
        *listed("extraConfigMapVolumes", _CHART_VOLUME),
    ):
        made = read.attempt(path, partial(_source, entry, is_host=path.startswith("extraHostVolumes")))
        if made is not None and made[0] in sources:
            read.refuse(path, f"must have a name of its own, got {made[0]!r} again")
        elif made is not None:
            sources[made[0]] = path, made[1]
    found: list[tuple[str, Mapping[str, Any]]] = []
    for path, entry in listed("extraVolumeMounts", _CHART_MOUNT):
        if "extraVolumeMounts" not in read and _CHART_VOLUME["name"] not in sources:
            read.refuse("extraConfigMapVolumes", "takes away the volume that the chart's own mount names; say it too")
            continue
        if read.accepts(path, partial(_check_mount, entry, sources)):
            found.append((path, entry))
    return _Volumes(sources, found)


def _source(entry: Any, *, is_host: bool) -> tuple[str, Mapping[str, Any]]:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
        raise GpuConstructsError(f"a volume must be a mapping with a name; got {shown(entry)}")
    if is_host:
        if set(entry) != {"name", "hostPath"} or not isinstance(entry["hostPath"], str):
            raise GpuConstructsError(f"a volume must hold name and hostPath, a path of the node; got {shown(entry)}")
        _fields.absolute_path("hostPath", entry["hostPath"])
        return entry["name"], {"hostPath": {"path": entry["hostPath"]}}
    source = {key: value for key, value in entry.items() if key != "name"}
    if len(source) != 1 or next(iter(source)) not in _SOURCES or not isinstance(next(iter(source.values())), Mapping):
        raise GpuConstructsError(f"a volume must hold one source that Kubernetes knows; got {shown(entry)}")
    return entry["name"], source


def _check_mount(entry: Any, sources: Mapping[str, Any]) -> None:
    if not isinstance(entry, Mapping) or not all(isinstance(entry.get(key), str) for key in ("name", "mountPath")):
        raise GpuConstructsError(f"a mount must be a mapping with name and mountPath; got {shown(entry)}")
    for key in entry:
        _fields.one_of("mount key", key, ("name", "mountPath", "readOnly", "subPath"))
    _fields.absolute_path("mountPath", entry["mountPath"])
    _fields.of_type("readOnly", entry.get("readOnly", False), bool)
    _fields.of_type("subPath", entry.get("subPath", ""), str)
    if entry["name"] not in sources:
        raise GpuConstructsError(f"a mount must name one of the extra volumes; got {entry['name']!r}")


def _mounted(read: Values, given: _Volumes, own_mount: str) -> dict[str, Volume]:
    """Give what is mounted beside the list of metrics."""
    found: dict[str, Volume] = {}
    used = set()
    for path, mount in given.mounts:
        where, name = mount["mountPath"], mount["name"]
        used.add(name)
        source = given.sources[name][1]
        if where == own_mount:
            continue
        if (source.get("configMap") or {}).get("name") == _METRICS_MAP:
            if path in read or "extraVolumeMounts" in read:
                read.refuse(path, "cannot be taken over: the ConfigMap has another name here, and its own mount")
        elif mount.get("subPath"):
            read.refuse(path, "cannot be taken over with subPath, which the kubelet never refreshes; mount the folder")
        elif where in found or where in _TAKEN:
            read.refuse(path, f"must have a path of its own, got {where!r}, where something else is mounted")
        else:
            volume = Volume(source=source, read_only=bool(mount.get("readOnly")))
            if read.accepts(path, partial(mounts, {where: volume}, shared_memory=None)):
                found[where] = volume
    for name, (path, _) in given.sources.items():
        if name not in used and name != _CHART_VOLUME["name"]:
            read.refuse(path, "is mounted nowhere; leave it out")
    return found


# --- Service and scrape ---------------------------------------------------------------------------------------

_TARGET_LABELS = frozenset({"pod", "container", "namespace", "service", "endpoint"})


def _tls(read: Values) -> Tls | None:
    if not read.get("tlsServerConfig.enabled", False):
        return None
    secret = read.get("tlsServerConfig.existingSecret")
    if not secret:
        read.refuse(
            "tlsServerConfig.enabled",
            "must come with existingSecret: a certificate made or written down here would be in the manifest, the "
            "chart's own is another one at each render; name a Secret, such as one that cert-manager keeps",
        )
        return None
    is_known = read.accepts("tlsServerConfig.existingSecret", partial(_fields.dns_subdomain, "secret", secret))
    if not is_known:
        return None
    for word in ("cert", "key", "ca"):
        if read.get(f"tlsServerConfig.{word}"):
            read.refuse(f"tlsServerConfig.{word}", "is not read beside existingSecret; leave it out")
    return read.made_of(
        partial(Tls, secret=secret),
        {
            "cert_filename": _at(read, "tlsServerConfig.certFilename"),
            "key_filename": _at(read, "tlsServerConfig.keyFilename"),
            "ca_filename": _at(read, "tlsServerConfig.caFilename"),
            "client_auth_type": ("tlsServerConfig.clientAuthType", read.get("tlsServerConfig.clientAuthType") or None),
        },
    )


def _service_and_scrape(read: Values, tls: Tls | None, collected: int) -> dict[str, Any]:
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
    service: bool | ExporterService = False
    if has_service:
        service = read.made_of(
            ExporterService,
            {
                "type": _at(read, "service.type"),
                "cluster_ip": ("service.clusterIP", read.get("service.clusterIP") or None),
                "internal_traffic_policy": _at(read, "service.internalTrafficPolicy"),
                "annotations": _texts(read, "service.annotations"),
            },
        )
    return {"service": service, "scrape": _scrape(read, collected) if is_scraped else "none"}


def _texts(read: Values, path: str) -> tuple[str, dict[str, str]]:
    given = read.get(path) or {}
    kept = {}
    for key, value in given.items():
        if read.accepts(path, partial(_check_text, key, value)):
            kept[key] = value
    return path, kept


def _check_text(key: Any, value: Any) -> None:
    for text in (key, value):
        if not isinstance(text, str):
            raise GpuConstructsError(f"it must hold text, got {text!r}; quote it")


def _scrape(read: Values, collected: int) -> Scrape:
    interval = _seconds(read, "serviceMonitor.interval")
    timeout = _seconds(read, "serviceMonitor.scrapeTimeout")
    if timeout is not None and timeout > (interval or collected):
        read.refuse(
            "serviceMonitor.scrapeTimeout",
            f"must be at most the interval of {interval or collected}s, as the operator has it; got {timeout}s",
        )
        timeout = None
    steps = {
        keyword: (path, tuple(_relabelings(read, path)))
        for keyword, path in (
            ("relabelings", "serviceMonitor.relabelings"),
            ("metric_relabelings", "serviceMonitor.metricRelabelings"),
        )
    }
    # Ours drop these labels once they have done their work; who asks for them needs the target as it was.
    asked = {label for step in steps["relabelings"][1] for label in step.source_labels}
    honors = read.get("serviceMonitor.honorLabels", not asked & _TARGET_LABELS)
    return read.made_of(
        Scrape,
        {
            "labels": _texts(read, "serviceMonitor.additionalLabels"),
            "interval_seconds": ("serviceMonitor.interval", interval),
            "scrape_timeout_seconds": ("serviceMonitor.scrapeTimeout", timeout),
            "honor_labels": ("serviceMonitor.honorLabels", honors),
            **steps,
        },
    )


def _seconds(read: Values, path: str) -> int | None:
    text = read.get(path)
    span = read.attempt(path, partial(from_go_duration, path.rpartition(".")[2], text)) if text else None
    if span is None:
        return None
    seconds = span.total_seconds()
    if seconds != int(seconds) or not 1 <= seconds <= 3600:
        read.refuse(path, f"must be whole seconds, 1s to 1h; got {text!r}")
        return None
    return int(seconds)


_STEP = {
    "action": "action",
    "sourceLabels": "source_labels",
    "separator": "separator",
    "regex": "regex",
    "modulus": "modulus",
    "targetLabel": "target_label",
    "replacement": "replacement",
}


def _relabelings(read: Values, path: str) -> Iterator[Relabeling]:
    for place, step in enumerate(read.get(path, ())):
        made = read.attempt(f"{path}[{place}]", partial(_relabeling, step))
        if made is not None:
            yield made


def _relabeling(given: Any) -> Relabeling:
    _fields.of_type("relabeling", given, Mapping[str, Any])
    for key in given:
        _fields.one_of("relabeling key", key, tuple(_STEP))
    members = {_STEP[key]: value for key, value in given.items() if value is not None}
    # The operator takes actions in any case.
    if isinstance(members.get("action"), str):
        members["action"] = members["action"].lower()
    return Relabeling(**members)


# --- pods -----------------------------------------------------------------------------------------------------

_CONTROL_PLANE = Toleration(key="node-role.kubernetes.io/control-plane", operator="Exists", effect="NoSchedule")
_OWN_LABELS = frozenset(object_labels(selector_labels(name="", instance="", component=""), version="v"))


def _tolerations(read: Values, release: str) -> list[Toleration]:
    if "tolerations" in read:
        return tolerations(read, "tolerations")
    return [] if release in _OLD else [_CONTROL_PLANE]


def _security_context(read: Values, release: str) -> dict[str, Any] | None:
    """Give the container's security context; None for the chart's own."""
    path = "securityContext"
    if path not in read:
        return None
    default: dict[str, Any] = {"runAsNonRoot": False, "runAsUser": 0, "capabilities": {"add": ["SYS_ADMIN"]}}
    if release not in _OLD:
        default["capabilities"]["drop"] = ["ALL"]
        default["allowPrivilegeEscalation"] = False
    given = read.get(path)
    laid = {} if given is None else coalesced(default, given)
    if laid == default or not read.accepts(path, partial(_check_security, laid)):
        return None
    return dict(laid)


def _check_security(laid: Mapping[str, Any]) -> None:
    for key in laid:
        _fields.one_of("security_context key", key, SECURITY_CONTEXT)
    capabilities = laid.get("capabilities", {})
    _fields.of_type("capabilities", capabilities, Mapping[str, Sequence[str]])
    for key in capabilities:
        _fields.one_of("capabilities key", key, ("add", "drop"))
    if laid.get("allowPrivilegeEscalation") is False and laid.get("privileged"):
        raise GpuConstructsError("allowPrivilegeEscalation must be true with privileged; say so, or leave both out")


def _labels(keyword: str, given: Any) -> None:
    for key, value in given.items():
        _check_text(key, value)
    _fields.labels(keyword, given)
    own = [key for key in given if keyword == "pod_labels" and key in _OWN_LABELS]
    if own:
        raise GpuConstructsError(f"{keyword} must not hold {own[0]!r}, which this library sets; leave it out")


def _annotations(keyword: str, given: Any) -> None:
    for key, value in given.items():
        _check_text(key, value)
    _fields.labels(keyword, dict.fromkeys(given, ""))
    if any(key.startswith("gpu-constructs/") for key in given):
        raise GpuConstructsError(f"{keyword} must not hold gpu-constructs/…, which this library sets; leave it out")


def _pod_security_context(keyword: str, given: Any) -> None:
    for key in given:
        _fields.one_of(f"{keyword} key", key, POD_SECURITY_CONTEXT)


def _pull_policy(keyword: str, given: Any) -> None:
    _fields.one_of(keyword, given, ("Always", "IfNotPresent", "Never"))


def _affinity(keyword: str, given: Any) -> None:
    placement.check_affinity(given)


_OF_PODS: Mapping[str, tuple[str, Callable[[str, Any], None]]] = {
    "nodeSelector": ("node_selector", _labels),
    "podLabels": ("pod_labels", _labels),
    "podAnnotations": ("pod_annotations", _annotations),
    "podSecurityContext": ("pod_security_context", _pod_security_context),
    "priorityClassName": ("priority_class_name", _fields.dns_subdomain),
    "image.pullPolicy": ("image_pull_policy", _pull_policy),
    "affinity": ("affinity", _affinity),
}


def _pods(read: Values, release: str) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for path, (keyword, accepted) in _OF_PODS.items():
        value = read.get(path)
        if value and read.accepts(path, partial(accepted, keyword, value)):
            options[keyword] = value
    secrets = read.get("imagePullSecrets")
    names = read.attempt("imagePullSecrets", partial(secret_names, secrets)) if secrets else None
    if names:
        options["image_pull_secrets"] = names
    resources = _resources(read, release)
    if resources is not None:
        options["resources"] = resources
    numbers = {name: read.get(f"rollingUpdate.{name}") for name in ("maxUnavailable", "maxSurge")}
    if any(number is not None for number in numbers.values()):
        strategy = read.attempt("rollingUpdate", partial(_update_strategy, numbers))
        if strategy is not None:
            options["update_strategy"] = strategy
    return options


def _update_strategy(numbers: Mapping[str, Any]) -> UpdateStrategy:
    # The chart's own beside the one that is said.
    unavailable, surge = numbers["maxUnavailable"], numbers["maxSurge"]
    return UpdateStrategy(
        type="RollingUpdate", max_unavailable=1 if unavailable is None else unavailable, max_surge=surge
    )


_CPU_LIMIT = "200m"


def _resources(read: Values, release: str) -> dict[str, Any] | None:
    """Give what was said over the chart's own, but for its CPU limit; None where nothing was."""
    given = resources(read, "resources", read.get("resources", {}))
    if given is None:
        return None
    chart: dict[str, Any] = {
        "limits": {"cpu": _CPU_LIMIT, "memory": "512Mi"},
        "requests": {"cpu": "100m", "memory": "128Mi"},
    }
    laid = given if release in _OLD else coalesced(chart, given)
    if "cpu" not in given.get("limits", {}) and laid.get("limits"):
        laid = {**laid, "limits": {name: amount for name, amount in laid["limits"].items() if name != "cpu"}}
    return dict(laid) if read.accepts("resources", partial(_check_resources, laid)) else None


def _check_resources(given: Any) -> None:
    memory = container_resources(given, default={}).get("limits", {}).get("memory", "1Gi")
    # The construct tells the Go runtime three quarters of it, in MiB.
    if _fields.amount(memory) * 3 / 4 < 2**20:
        raise GpuConstructsError(f"limits.memory must leave the exporter a few MiB; got {memory!r}")


def _service_account(read: Values, mapping: bool | PodMapping) -> str | None:
    name = named(read, "serviceAccount.name", _fields.dns_subdomain)
    if read.get("serviceAccount.create", True):
        return None
    return name or ("default" if isinstance(mapping, PodMapping) and mapping.rules() else None)

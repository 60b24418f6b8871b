"""What NVIDIA's chart of the DCGM exporter does, so that a render can be read, and both sides told in the same words.

The program's flags and variables become settings, the list of metrics and the web configuration what they say, a port
by name its number: what is left differs in truth.

Source: NVIDIA/dcgm-exporter@3.3.6-3.4.2 and @4.5.3-4.8.2: deployment, etc, pkg/cmd/app.go.
"""

import copy
import posixpath
from collections.abc import Mapping, Sequence
from typing import Any

from gpu_constructs.observability.dcgm_exporter import DcgmExporter
from parity_cases import UnreadableCase, facts, load
from parity_told import ExporterRelease, tell_monitor, tell_ports, tell_service

CHART = "dcgm-exporter"
VERSIONS = OLD, NEW = ("3.4.2", "4.8.2")
METRICS_MAP = "exporter-metrics-config-map"
MAIN = "exporter"

Manifest = dict[str, Any]

_FACTS = facts(CHART)
DEFAULTS: Mapping[str, Manifest] = _FACTS["values"]
"""The chart's values.yaml, as far as the proof reads values."""

IMAGE_LISTS: Mapping[str, Mapping[str, Mapping[str, str]]] = _FACTS["image_lists"]
"""The lists of metrics in the images."""

CHART_LIST: Mapping[str, Mapping[str, str]] = _FACTS["chart_list"]
"""The list in the chart's own ConfigMap."""

_FLAGS: Mapping[str, tuple[str, str, bool, str]] = _FACTS["flags"]
_NEW_FLAGS: Mapping[str, tuple[str, str, bool, str]] = _FACTS["new_flags"]
_LISTS = ("nvidia-resource-names", "kubernetes-pod-label-allowlist-regex")
_TRUE, _FALSE = ("1", "t", "T", "TRUE", "true", "True"), ("0", "f", "F", "FALSE", "false", "False")


class DcgmRelease(ExporterRelease):
    """One installation of the chart: its values, and the names that follow from them."""

    chart = CHART
    versions = VERSIONS
    defaults = DEFAULTS

    @property
    def namespace(self) -> str:
        return self.value("namespaceOverride") or self.release_namespace

    @property
    def our_fullname(self) -> str:
        return self.fullname[: 63 - len("-web-config")].rstrip("-.")

    @property
    def account(self) -> str:
        """The account of the chart's pods."""
        is_made = self.value("serviceAccount.create")
        return self.value("serviceAccount.name") or (self.fullname if is_made else "default")

    def labels(self) -> dict[str, str]:
        """The labels of the chart's objects."""
        return {
            "helm.sh/chart": f"{CHART}-{self.version}",
            "app.kubernetes.io/name": self.chart_name,
            "app.kubernetes.io/instance": self.release,
            "app.kubernetes.io/component": CHART if self.version == OLD else self.chart_name,
            "app.kubernetes.io/version": self.version,
            "app.kubernetes.io/managed-by": "Helm",
        }

    def chart_roles(self) -> dict[tuple[str, str], list[str]]:
        """Return what an object of the chart is, by kind and name."""
        full = self.fullname
        return {
            ("ServiceAccount", self.account): ["account"],
            ("ConfigMap", METRICS_MAP): ["metrics"],
            ("Role", "dcgm-exporter-read-cm"): ["read-cm"],
            ("RoleBinding", full): ["read-cm"],
            ("ClusterRole", f"{full}-read-pods"): ["read-pods"],
            ("ClusterRoleBinding", f"{full}-read-pods"): ["read-pods"],
            ("Secret", f"{full}-tls"): ["tls"],
            ("ConfigMap", f"{full}-web-config.yml"): ["web-config"],
            **{(kind, full): ["exporter"] for kind in ("DaemonSet", "Service", "ServiceMonitor")},
        }

    def our_roles(self) -> dict[tuple[str, str], list[str]]:
        """Return what an object of ours is, by kind and name."""
        full = self.our_fullname
        return {
            ("ServiceAccount", full): ["account"],
            ("ConfigMap", f"{full}-metrics"): ["metrics"],
            **{(kind, full): ["read-pods"] for kind in ("ClusterRole", "ClusterRoleBinding")},
            ("ConfigMap", f"{full}-web-config"): ["web-config"],
            **{(kind, full): ["exporter"] for kind in ("DaemonSet", "Service", "ServiceMonitor")},
        }

    def told(self, manifests: Sequence[Manifest], *, is_ours: bool) -> list[Manifest]:
        """Return the objects of one side with what they mean in the place of how they say it."""
        return told(manifests, self, is_ours=is_ours)

    def synthesize(self) -> tuple[list[Manifest], list[str]]:
        """Return the objects this library makes of the values, and what it warned of."""
        return self.made_in_a_chart(DcgmExporter.from_helm_values, version=self.version)


# --- a side in plain words ------------------------------------------------------------------------------------


def told(manifests: Sequence[Manifest], release: DcgmRelease, *, is_ours: bool) -> list[Manifest]:
    """Return the objects of one side with what they mean in the place of how they say it."""
    made = copy.deepcopy(list(manifests))
    files = {m["metadata"]["name"]: _data(m) for m in made if m.get("kind") in ("ConfigMap", "Secret")}
    ports: dict[str, Any] = {}
    for manifest in made:
        if manifest.get("kind") == "DaemonSet":
            _tell_program(manifest, files, ports, release)
    for manifest in made:
        match manifest.get("kind"):
            case "Service":
                tell_service(manifest, ports)
            case "ServiceMonitor":
                tell_monitor(manifest, OWN_STEPS if is_ours else ())
            case "ConfigMap":
                _tell_file(manifest)
    return made


def _data(manifest: Manifest) -> Mapping[str, str]:
    return manifest.get("data") or manifest.get("stringData") or {}


def _tell_file(manifest: Manifest) -> None:
    """Write the metrics of a list by name. Web configurations are compared with the pods that read them."""
    data = manifest.pop("data", None) or {}
    for key, text in data.items():
        if key == "web-config.yaml":
            continue
        manifest.setdefault("lists", {}).update(metrics_of(str(text)))


def metrics_of(text: str) -> dict[str, str]:
    found = {}
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            field, kind, *_ = [*(cell.strip(" ") for cell in line.split(",", 2)), ""]
            found[field] = kind
    return found


def _tell_program(
    manifest: Manifest, files: Mapping[str, Mapping[str, str]], ports: dict[str, Any], release: DcgmRelease
) -> None:
    spec = manifest["spec"]["template"]["spec"]
    main = next((c for c in spec.get("containers") or () if c.get("name") == MAIN), None)
    if main is None:
        return
    tell_ports(manifest, main, ports)
    settings = _settings(main, release.version)
    volumes = {volume["name"]: volume for volume in spec.get("volumes") or ()}
    mounts = main.get("volumeMounts") or []
    reads = _found(settings.pop("collectors"), mounts, volumes)
    from_api = settings.pop("configmap-data")
    manifest["reads"] = {
        "file": reads["file"],
        "mount": reads["mount"],
        "api": from_api if from_api != "none" else None,
    }
    manifest["exports"] = _exports(reads, from_api, files, release)
    web = settings.pop("web-config-file")
    if web:
        manifest["web"] = _web(_found(web, mounts, volumes), files, mounts, volumes)
    manifest["settings"] = settings


def _settings(main: Manifest, version: str) -> dict[str, str]:
    """Take what tells the program out of arguments and variables, and give what it runs with."""
    flags = {**_FLAGS, **(_NEW_FLAGS if version != OLD else {})}
    settings = {name: default for name, (_, _, _, default) in flags.items()}
    by_variable = {variable: name for name, (_, variable, _, _) in flags.items()}
    kept = []
    for variable in main.get("env") or ():
        name = by_variable.get(variable.get("name"))
        if name is None or "valueFrom" in variable:
            kept.append(variable)
        elif variable.get("value"):
            settings[name] = str(variable["value"])
    main["env"] = kept
    names = {**{name: name for name in flags}, **{short: name for name, (short, *_) in flags.items() if short}}
    rest: list[str] = []
    said: dict[str, str] = {}
    words = iter([str(word) for word in main.get("args") or ()])
    for word in words:
        spelt, has_value, value = word.lstrip("-").partition("=")
        name = names.get(spelt) if word.startswith("-") else None
        if name is None:
            rest.append(word)
            continue
        if not has_value:
            value = "true" if flags[name][2] else next(words, "")
        said[name] = f"{said[name]},{value}" if name in _LISTS and name in said else value
    main["args"] = rest
    settings.update(said)
    for name, (_, _, is_switch, _) in flags.items():
        if is_switch:
            settings[name] = "true" if settings[name] in _TRUE else "false" if settings[name] in _FALSE else "?"
        if name in _LISTS:
            settings[name] = ",".join(word.strip() for word in settings[name].split(",") if word.strip())
    if settings["remote-hostengine-info"] and ":" not in settings["remote-hostengine-info"]:
        settings["remote-hostengine-info"] += ":5555"
    if settings.get("dump-enabled") == "false":
        for name in ("dump-directory", "dump-retention", "dump-compression"):
            del settings[name]
    return settings


def _found(file: str, mounts: Sequence[Manifest], volumes: Mapping[str, Manifest]) -> dict[str, Any]:
    """Follow a file of the container through the mounts to the volume and the key."""
    around = [m for m in mounts if f"{file}/".startswith(f"{str(m.get('mountPath')).rstrip('/')}/")]
    mount = max(around, key=lambda m: len(m["mountPath"]), default=None)
    if mount is None:
        return {"file": file, "mount": None, "map": None, "secret": None, "key": None}
    inner = posixpath.join(mount.get("subPath") or "", file[len(mount["mountPath"].rstrip("/")) + 1 :]).rstrip("/")
    volume = volumes.get(mount["name"], {})
    source = volume.get("configMap") or volume.get("secret") or {}
    key: str | None = inner
    if source.get("items"):
        key = next((item["key"] for item in source["items"] if item.get("path") == inner), None)
    return {
        "file": file,
        "mount": mount["mountPath"],
        "map": (volume.get("configMap") or {}).get("name"),
        "secret": (volume.get("secret") or {}).get("secretName"),
        "key": key,
    }


def _exports(
    reads: Mapping[str, Any], from_api: str, files: Mapping[str, Mapping[str, str]], release: DcgmRelease
) -> dict[str, str]:
    """Return the metrics that the program is told to export, or where the list is that someone else keeps."""
    name, key = reads["map"], reads["key"]
    if from_api != "none":
        namespace, _, name = from_api.partition(":")
        key = "metrics"
        if namespace != release.namespace:
            return {"a list of another namespace": from_api}
    elif reads["mount"] is None:
        listed = IMAGE_LISTS[release.version].get(reads["file"])
        return {"no such list": reads["file"]} if listed is None else dict(listed)
    if name in files:
        text = files[name].get(str(key))
        return {"no such key": f"{name} {key}"} if text is None else metrics_of(text)
    return {"the list of": f"{name} {key}"}


def _web(
    reads: Mapping[str, Any],
    files: Mapping[str, Mapping[str, str]],
    mounts: Sequence[Manifest],
    volumes: Mapping[str, Manifest],
) -> dict[str, Any]:
    text = files.get(reads["map"] or reads["secret"], {}).get(str(reads["key"]), "")
    try:
        config = load(text)
    except UnreadableCase:
        config = None
    if not isinstance(config, Mapping):
        return {"unreadable": text}
    server = dict(config.get("tls_server_config") or {})
    for member in ("cert_file", "key_file", "client_ca_file"):
        if member in server:
            found = _found(server[member], mounts, volumes)
            server[member] = f"{found['secret']} {found['key']}"
    return {"server": server or None, "users": config.get("basic_auth_users")}


_NODE = {
    "action": "replace",
    "sourceLabels": ["__meta_kubernetes_pod_node_name"],
    "targetLabel": "node",
}
OWN_STEPS: Sequence[Sequence[Mapping[str, Any]]] = (
    (
        {"action": "replace", "sourceLabels": ["pod"], "targetLabel": "exporter_pod"},
        _NODE,
        {"action": "labeldrop", "regex": "pod|container|namespace|service|endpoint"},
    ),
    (_NODE,),
)

"""What NVIDIA's chart does with names, configurations and what we leave out, so that a render can be read.

Source: NVIDIA/k8s-device-plugin@v0.18.2 and @v0.20.0, deployments/helm/nvidia-device-plugin, and the charts of
node-feature-discovery 0.17.3 and 0.19.0 bundled with them.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from typing import Any

from cdk8s import App

from gpu_constructs import DevicePluginChart
from parity_cases import UnreadableCase, load
from parity_told import ChartRelease, cut

CHART = "nvidia-device-plugin"
NODE_LABEL = "nvidia.com/device-plugin.config"
UNLABELLED = "(no label)"
UNKNOWN = "(none of them)"
NFD_VERSIONS = {"0.18.2": "0.17.3", "0.20.0": "0.19.0"}
_SWITCH = re.compile(
    r"(gfd|devicePlugin)\.enabled|(devicePlugin|gfd|mps)\.enableHostNetwork|mps\.enableHostPID|nfd\.prometheus\.enable"
    r"|nfd\.\w+\.(enable|rbac\.create|serviceAccount\.create|networkPolicy\.enabled|podDisruptionBudget\.enable"
    r"|mountUsrSrc|enableTaints|podSetFingerprint|createCRDs)"
)
"""Values that the templates only ask whether they are true; of nfd.enabled Helm asks whether it is a boolean."""
_KEYS = {"topology-updater": "topologyUpdater"}
COMPONENTS = ("master", "worker", "gc", "topology-updater")

Manifest = dict[str, Any]

_DEFAULTS: Mapping[str, Any] = {
    "config": {"fallbackStrategies": ["named", "single"]},
    "nfd": {
        "nameOverride": "node-feature-discovery",
        "master": {"serviceAccount": {"name": "node-feature-discovery"}},
    },
}
"""The chart's values.yaml, as far as this module reads values."""


class Release(ChartRelease):
    """One installation of the chart: its values, and the names and configurations that follow from them."""

    chart = CHART
    versions = tuple(NFD_VERSIONS)
    defaults = dict.fromkeys(NFD_VERSIONS, _DEFAULTS)

    def synthesize(self) -> tuple[list[Manifest], list[str]]:
        """Return the objects this library makes of the values, and what it warned of."""
        return self.made_by(DevicePluginChart.from_helm_values, App(), CHART, version=self.version)

    def as_read(self, warned: Sequence[str]) -> Release | None:
        """Return the release with switches as the templates take them, or None where no dropped key is one.

        For a template every text is true, whatever it says.
        """
        dropped = [match[1] for match in (re.match(r"values\.(\S+) is dropped: ", text) for text in warned) if match]
        switches = [key for key in dropped if _SWITCH.fullmatch(key) and isinstance(self.given_value(key), str)]
        if not switches:
            return None
        values = copy.deepcopy(dict(self.given))
        for key in switches:
            *parents, last = key.split(".")
            section = values
            for parent in parents:
                section = section[parent]
            section[last] = bool(section[last])
        return Release(release=self.release, namespace=self.release_namespace, version=self.version, values=values)

    def facts(self) -> dict[str, str]:
        """What the rows of the deviations name in braces."""
        return {"version": self.version, "release": self.release, "nfd_namespace": self.nfd_namespace}

    @property
    def namespace(self) -> str:
        return self.value("namespaceOverride") or self.release_namespace

    @property
    def nfd_namespace(self) -> str:
        return self.value("nfd.namespaceOverride") or self.release_namespace

    @property
    def nfd_name(self) -> str:
        # The sub-chart goes by its alias.
        return self.value("nfd.nameOverride") or "nfd"

    @property
    def nfd_fullname(self) -> str:
        return cut(self.value("nfd.fullnameOverride") or self.name_with(self.nfd_name))

    @property
    def nfd_version(self) -> str:
        return NFD_VERSIONS[self.version]

    @property
    def configs(self) -> dict[str, str]:
        """The embedded configurations by name."""
        found = self.value("config.map", {})
        return {name: str(text) for name, text in found.items()} if isinstance(found, Mapping) else {}

    @property
    def external_config_map(self) -> str | None:
        return self.value("config.name") or None

    @property
    def uses_config_manager(self) -> bool:
        return bool(self.configs or self.external_config_map)

    @property
    def default_config(self) -> str | None:
        """The configuration of nodes without the label, as config-manager finds it; None is its empty one."""
        return str(self.value("config.default") or "") or self._fallback

    @property
    def our_default(self) -> str | None:
        """The one we take: a default that is no configuration is dropped."""
        return self.default_config if self.default_config in self.configs else self._fallback

    @property
    def _fallback(self) -> str | None:
        for strategy in self.value("config.fallbackStrategies", ()):
            if strategy == "named" and "default" in self.configs:
                return "default"
            if strategy == "single" and len(self.configs) == 1:
                return next(iter(self.configs))
            if strategy == "empty":
                return None
        return None

    @property
    def our_fullname(self) -> str:
        """The chart's, short enough for what stands behind it."""
        others = [config for config in self.configs if config != self.our_default]
        longest = max((len(f"-{object_suffix(config)}") for config in others), default=0)
        return self.fullname[: 63 - len("-gpu-feature-discovery") - longest].rstrip("-.")

    @property
    def our_nfd_fullname(self) -> str:
        return self.nfd_fullname[: 63 - len("-topology-updater")].rstrip("-.")

    def labels(self) -> dict[str, Any]:
        """The labels of the chart's own objects."""
        chart = cut(f"{self.value('nameOverride') or CHART}-{self.version}")
        return {
            "helm.sh/chart": chart,
            **self.pod_labels(),
            "app.kubernetes.io/version": self.version,
            "app.kubernetes.io/managed-by": "Helm",
        }

    def pod_labels(self) -> dict[str, Any]:
        name = {
            "app.kubernetes.io/name": unquoted(self.chart_name),
            "app.kubernetes.io/instance": unquoted(self.release),
        }
        return {**name, **(self.value("selectorLabelsOverride") or {})}

    def nfd_labels(self) -> dict[str, Any]:
        return {
            "helm.sh/chart": f"nfd-{self.nfd_version}",
            "app.kubernetes.io/name": unquoted(cut(self.nfd_name)),
            "app.kubernetes.io/instance": unquoted(self.release),
            "app.kubernetes.io/version": f"v{self.nfd_version}",
            "app.kubernetes.io/managed-by": "Helm",
        }

    def chart_roles(self) -> dict[tuple[str, str], list[str]]:
        """Return what an object of the chart is, by kind and name; long names can belong to several."""
        full, nfd = self.fullname, self.nfd_fullname
        rows = [
            ("ServiceAccount", f"{full}-service-account", "plugin"),
            ("ClusterRole", f"{full}-role", "plugin"),
            ("ClusterRoleBinding", f"{full}-role-binding", "plugin"),
            ("ConfigMap", f"{full}-configs", "configs"),
            ("DaemonSet", full, "plugin"),
            ("DaemonSet", cut(f"{full}-gpu-feature-discovery"), "gfd"),
            ("DaemonSet", cut(f"{full}-mps-control-daemon"), "mps"),
            *self._nfd_rows(nfd, self._service_account_of),
            ("ClusterRole", nfd, "nfd-master"),
            ("ClusterRoleBinding", nfd, "nfd-master"),
            *((kind, f"{nfd}-prune", "nfd-prune") for kind in _RIGHTS),
            ("Job", f"{nfd}-prune", "nfd-prune"),
        ]
        return _by_name(rows)

    def our_roles(self) -> dict[tuple[str, str], list[str]]:
        """Return what an object of ours is, by kind and name; of one configuration where it says so."""
        full, nfd = self.our_fullname, self.our_nfd_fullname
        gfd = f"{full}-gpu-feature-discovery"

        def account(component: str) -> str:
            path = f"nfd.{_KEYS.get(component, component)}.serviceAccount.name"
            return str(self.given_value(path) or f"{nfd}-{component}")

        rows = [
            ("Namespace", self.namespace, "namespace"),
            ("Namespace", self.nfd_namespace, "namespace" if self.nfd_namespace == self.namespace else "nfd"),
            ("RuntimeClass", str(self.value("runtimeClassName")), "runtime-class"),
            *((kind, full, "plugin") for kind in _RIGHTS),
            *((kind, gfd, "gfd") for kind in (*_RIGHTS, "Role", "RoleBinding")),
            *self._nfd_rows(nfd, account),
        ]
        for config in (None, *self.configs):
            is_default = config in (None, self.our_default)
            suffix, of = ("", "") if is_default else (f"-{object_suffix(str(config))}", f"@{config}")
            rows += [
                ("ConfigMap", f"{full}-config{suffix}", f"configs{of}"),
                ("DaemonSet", f"{full}{suffix}", f"plugin{of}"),
                ("DaemonSet", f"{gfd}{suffix}", f"gfd{of}"),
                ("DaemonSet", f"{full}-mps-control-daemon{suffix}", f"mps{of}"),
            ]
        return _by_name(list(dict.fromkeys(rows)))

    def _service_account_of(self, component: str) -> str:
        key = _KEYS.get(component, component)
        default = self.nfd_fullname if component == "master" else f"{self.nfd_fullname}-{component}"
        return str(self.value(f"nfd.{key}.serviceAccount.name") or default)

    def _nfd_rows(self, nfd: str, account: Any) -> list[tuple[str, str, str]]:
        rows = [
            ("PodMonitor", nfd, "nfd"),
            *(
                ("CustomResourceDefinition", f"{plural}.nfd.k8s-sigs.io", f"nfd-{plural}")
                for plural in ("nodefeatures", "nodefeaturegroups", "nodefeaturerules")
            ),
            ("CustomResourceDefinition", "noderesourcetopologies.topology.node.k8s.io", "nfd-topologies"),
        ]
        for component in COMPONENTS:
            name, role = f"{nfd}-{component}", f"nfd-{component}"
            rows += [
                ("ServiceAccount", account(component), role),
                ("ConfigMap", f"{name}-conf", role),
                ("DaemonSet" if component in ("worker", "topology-updater") else "Deployment", name, role),
                ("PodDisruptionBudget", name, role),
                ("NetworkPolicy", f"{name}-network-policy", role),
                *((kind, name, role) for kind in ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")),
            ]
        return rows


_RIGHTS = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding")


def unquoted(text: str) -> Any:
    """Return what YAML reads where a template writes text without quotes."""
    try:
        read = load(text)
    except UnreadableCase:
        return text
    return text if isinstance(read, list | dict) else read


def object_suffix(config: str) -> str:
    """Return a configuration's name as it stands in the names of our objects."""
    words = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in config.lower())
    return "-".join(word for word in words.split("-") if word)


def _by_name(rows: list[tuple[str, str, str]]) -> dict[tuple[str, str], list[str]]:
    found: dict[tuple[str, str], list[str]] = {}
    for kind, name, role in rows:
        if role not in found.setdefault((kind, name), []):
            found[kind, name].append(role)
    return found

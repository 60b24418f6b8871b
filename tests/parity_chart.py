"""What NVIDIA's chart does with names, configurations and what we leave out, so that a render can be read.

Source: NVIDIA/k8s-device-plugin@v0.18.2 and @v0.20.0, deployments/helm/nvidia-device-plugin, and the charts of
node-feature-discovery 0.17.3 and 0.19.0 bundled with them.
"""

from __future__ import annotations

import copy
import json
import posixpath
import re
from collections.abc import Mapping, Sequence
from typing import Any

from parity_cases import UnreadableCase, load
from parity_settings import PROGRAMS

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

_NFD_SECURITY = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
}
_ROLES_OF_NODES = {
    "0.18.2": ("node-role.kubernetes.io/master", "node-role.kubernetes.io/control-plane"),
    "0.20.0": ("node-role.kubernetes.io/control-plane",),
}


_EGRESS = [{"ports": [*({"protocol": "TCP", "port": n} for n in (80, 443, 53, 6443)), {"protocol": "UDP", "port": 53}]}]
_POLICY = {"enabled": False, "egress": _EGRESS, "ingress": [{"ports": [{"protocol": "TCP", "port": "http"}]}]}


def _defaults() -> Manifest:
    """The chart's values.yaml, as far as this module reads values."""
    return {
        "config": {"name": "", "map": {}, "default": "", "fallbackStrategies": ["named", "single"]},
        "mps": {"root": "/run/nvidia/mps", "enableHostPID": True},
        "gfd": {"enabled": False, "securityContext": {"privileged": True}},
        "devicePlugin": {"enabled": True},
        "nfd": {
            "nameOverride": "node-feature-discovery",
            "master": {"serviceAccount": {"create": True, "name": "node-feature-discovery"}},
            "worker": {
                "tolerations": [
                    {"key": "node-role.kubernetes.io/master", "operator": "Equal", "value": "", "effect": "NoSchedule"},
                    {"key": "nvidia.com/gpu", "operator": "Equal", "value": "present", "effect": "NoSchedule"},
                ]
            },
        },
    }


def _defaults_of_nfd(version: str) -> Manifest:
    """The bundled chart's values.yaml, likewise."""
    keys = _ROLES_OF_NODES[version]
    preferred = [
        {"weight": 1, "preference": {"matchExpressions": [{"key": key, "operator": "In", "values": [""]}]}}
        for key in keys
    ]
    component: Manifest = {"serviceAccount": {"create": True}, "networkPolicy": _POLICY}
    budget = {"enable": False, "minAvailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow"}
    return {
        "image": {"repository": "registry.k8s.io/nfd/node-feature-discovery", "pullPolicy": "IfNotPresent"},
        "postDeleteCleanup": True,
        "topologyUpdater": component,
        "worker": component,
        "gc": {**component, "podDisruptionBudget": budget},
        "master": {
            **component,
            "podDisruptionBudget": budget,
            "securityContext": _NFD_SECURITY,
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "4Gi"}},
            "tolerations": [{"key": key, "operator": "Equal", "value": "", "effect": "NoSchedule"} for key in keys],
            "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}},
        },
    }


def merged(defaults: Any, given: Any, *, keeps_null: bool = False) -> Any:
    """Lay values over defaults as Helm does: maps are merged, null deletes, everything else replaces.

    Args:
        defaults: The chart's values.
        given: The user's.
        keeps_null: Keep a null that has no default to delete, for the defaults of a chart inside this one.
    """
    if not isinstance(defaults, Mapping) or not isinstance(given, Mapping):
        return copy.deepcopy(given)
    result = {key: value for key, value in copy.deepcopy(dict(defaults)).items() if given.get(key, value) is not None}
    for key, value in given.items():
        if isinstance(value, Mapping):
            result[key] = merged(defaults.get(key), value, keeps_null=keeps_null)
        elif value is not None or (keeps_null and key not in defaults):
            result[key] = copy.deepcopy(value)
    return result


class Release:
    """One installation of the chart: its values, and the names and configurations that follow from them."""

    def __init__(self, *, release: str, namespace: str, version: str, values: Mapping[str, Any]) -> None:
        self.release = release
        self.release_namespace = namespace
        self.version = version
        self.given = values
        self.values = merged(_defaults(), values, keeps_null=True)
        # Whoever deletes the chart's values for the chart inside it is left with that chart's own.
        self.values["nfd"] = merged(_defaults_of_nfd(version), self.values.get("nfd") or {})

    def as_read(self, dropped: Sequence[str]) -> Release | None:
        """Give the release with switches as the templates take them, or None where none of these keys is one.

        For a template every text is true, whatever it says.
        """
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

    def value(self, path: str, default: Any = None) -> Any:
        """Give a value by its path, over the defaults."""
        return _at(self.values, path, default)

    def given_value(self, path: str, default: Any = None) -> Any:
        """Give a value by its path as the user wrote it; null counts as none."""
        return _at(self.given, path, default)

    @property
    def namespace(self) -> str:
        return self.value("namespaceOverride") or self.release_namespace

    @property
    def nfd_namespace(self) -> str:
        return self.value("nfd.namespaceOverride") or self.release_namespace

    @property
    def chart_name(self) -> str:
        return _cut(self.value("nameOverride") or CHART)

    @property
    def fullname(self) -> str:
        return self._fullname(self.value("fullnameOverride"), self.value("nameOverride") or CHART)

    @property
    def nfd_name(self) -> str:
        # The sub-chart goes by its alias.
        return self.value("nfd.nameOverride") or "nfd"

    @property
    def nfd_fullname(self) -> str:
        return self._fullname(self.value("nfd.fullnameOverride"), self.nfd_name)

    def _fullname(self, override: str | None, name: str) -> str:
        return _cut(override or (self.release if name in self.release else f"{self.release}-{name}"))

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

    def our_name_of(self, config: str | None) -> str:
        """Give the name that we call a configuration, the empty one too."""
        names = self.configs
        return config or self.our_default or ("empty" if "empty" not in names else "empty-fallback")

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
        chart = _cut(f"{self.value('nameOverride') or CHART}-{self.version}")
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
            "app.kubernetes.io/name": unquoted(_cut(self.nfd_name)),
            "app.kubernetes.io/instance": unquoted(self.release),
            "app.kubernetes.io/version": f"v{self.nfd_version}",
            "app.kubernetes.io/managed-by": "Helm",
        }

    def chart_roles(self) -> dict[tuple[str, str], list[str]]:
        """Give what an object of the chart is, by kind and name; long names can belong to several."""
        full, nfd = self.fullname, self.nfd_fullname
        rows = [
            ("ServiceAccount", f"{full}-service-account", "plugin"),
            ("ClusterRole", f"{full}-role", "plugin"),
            ("ClusterRoleBinding", f"{full}-role-binding", "plugin"),
            ("ConfigMap", f"{full}-configs", "configs"),
            ("DaemonSet", full, "plugin"),
            ("DaemonSet", _cut(f"{full}-gpu-feature-discovery"), "gfd"),
            ("DaemonSet", _cut(f"{full}-mps-control-daemon"), "mps"),
            *self._nfd_rows(nfd, self._service_account_of),
            ("ClusterRole", nfd, "nfd-master"),
            ("ClusterRoleBinding", nfd, "nfd-master"),
            *((kind, f"{nfd}-prune", "nfd-prune") for kind in _RIGHTS),
            ("Job", f"{nfd}-prune", "nfd-prune"),
        ]
        return _by_name(rows)

    def our_roles(self) -> dict[tuple[str, str], list[str]]:
        """Give what an object of ours is, by kind and name; of one configuration where it says so."""
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

    # What the chart holds and we leave out.

    def prune_hook(self) -> list[Manifest]:
        """Objects that strip the labels from all nodes when the release is deleted."""
        name = f"{self.nfd_fullname}-prune"
        hook = {
            "helm.sh/hook": "post-delete",
            "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded",
        }
        metadata = {"name": name, "namespace": self.nfd_namespace, "labels": self.nfd_labels(), "annotations": hook}
        cluster = {key: value for key, value in metadata.items() if key != "namespace"}
        rbac = "rbac.authorization.k8s.io"
        instance = self.value("nfd.master.instance")
        repository = self.value("nfd.image.repository")
        master = self.value("nfd.master")
        pod = {
            "serviceAccountName": name,
            "restartPolicy": "Never",
            "containers": [
                {
                    "name": "nfd-master",
                    "image": f"{repository}:{self.value('nfd.image.tag') or f'v{self.nfd_version}'}",
                    "imagePullPolicy": self.value("nfd.image.pullPolicy"),
                    "command": ["nfd-master"],
                    "args": ["-prune", *([f"-instance={instance}"] if instance else [])],
                    "securityContext": master.get("securityContext"),
                }
            ],
            **{key: master[key] for key in ("nodeSelector", "affinity", "tolerations") if master.get(key)},
        }
        spec: Manifest = {"template": {"metadata": {"labels": {**self.nfd_labels(), "role": "prune"}}, "spec": pod}}
        if self.version != "0.18.2":
            spec["ttlSecondsAfterFinished"] = 3600
            pod["containers"][0]["resources"] = master.get("resources")
            pod["imagePullSecrets"] = self.nfd_pull_secrets()
        return [
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
            {
                "apiVersion": f"{rbac}/v1",
                "kind": "ClusterRole",
                "metadata": cluster,
                "rules": [
                    {
                        "apiGroups": [""],
                        "resources": ["nodes", "nodes/status"],
                        "verbs": ["get", "patch", "update", "list"],
                    }
                ],
            },
            _binding("ClusterRole", cluster, name, name, self.nfd_namespace),
            {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec},
        ]

    def nfd_pull_secrets(self) -> list[Any]:
        return (
            self.value("nfd.imagePullSecrets")
            or self.value("nfd.global.imagePullSecrets")
            or self.value("global.imagePullSecrets", [])
        )

    def budget(self, component: str) -> Manifest:
        """The PodDisruptionBudget of a component of NFD."""
        given = self.value(f"nfd.{component}.podDisruptionBudget", {})
        return {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"namespace": self.nfd_namespace, "labels": self.nfd_labels()},
            "spec": {
                "selector": {"matchLabels": self._nfd_selector(component)},
                **{key: value for key, value in given.items() if key != "enable"},
            },
        }

    def network_policy(self, component: str) -> Manifest:
        """The NetworkPolicy of a component of NFD."""
        given = self.value(f"nfd.{_KEYS.get(component, component)}.networkPolicy", {})
        return {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {"namespace": self.nfd_namespace, "labels": {**self.nfd_labels(), "role": component}},
            "spec": {
                "egress": given.get("egress"),
                "ingress": given.get("ingress"),
                "podSelector": {"matchLabels": self._nfd_selector(component)},
                "policyTypes": ["Egress", "Ingress"],
            },
        }

    def _nfd_selector(self, component: str) -> dict[str, Any]:
        kept = ("app.kubernetes.io/name", "app.kubernetes.io/instance")
        return {**{key: value for key, value in self.nfd_labels().items() if key in kept}, "role": component}

    def plugin_rights(self) -> list[Manifest]:
        """The rights of the chart's plugin, GFD and MPS pods in the whole cluster."""
        name = self.fullname
        metadata = {"name": f"{name}-role", "labels": self.labels()}
        gfd = bool(self.value("gfd.enabled"))
        publishes = gfd and (self.version != "0.18.2" or bool(self.value("nfd.enableNodeFeatureApi")))
        rules = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}]
        if publishes:
            verbs = ["get", "list", "watch", "create", "update"]
            rules.append({"apiGroups": ["nfd.k8s-sigs.io"], "resources": ["nodefeatures"], "verbs": verbs})
        if publishes and self.version != "0.18.2":
            rules.append({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]})
        account = f"{name}-service-account"
        binding = {"name": f"{name}-role-binding", "labels": self.labels()}
        return [
            {
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {"name": account, "namespace": self.namespace, "labels": self.labels()},
            },
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRole",
                "metadata": metadata,
                "rules": rules,
            },
            _binding("ClusterRole", binding, f"{name}-role", account, self.namespace),
        ]

    def config_manager(self, program: str, image: str) -> Manifest:
        """What a pod holds for config-manager alone: two containers, their mounts and volumes."""
        mounts = [
            {"name": "available-configs", "mountPath": "/available-configs"},
            {"name": "config", "mountPath": "/config"},
        ]
        stem = PROGRAMS[program].removesuffix("-ctr")

        def manager(name: str, settings: dict[str, str]) -> Manifest:
            variables = {
                "KUBECONFIG": "",
                "NODE_LABEL": NODE_LABEL,
                "CONFIG_FILE_SRCDIR": "/available-configs",
                "CONFIG_FILE_DST": "/config/config.yaml",
                "DEFAULT_CONFIG": unquoted(str(self.value("config.default") or "")),
                "FALLBACK_STRATEGIES": ",".join(map(str, self.value("config.fallbackStrategies", ()))),
                **settings,
            }
            node = {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
            env = [node, *({"name": key, "value": value} for key, value in variables.items())]
            return {"name": name, "image": image, "command": ["config-manager"], "env": env, "volumeMounts": mounts}

        target = "/usr/bin/mps-control-daemon" if program == "mps" else stem
        first = {"ONESHOT": "true", "SEND_SIGNAL": "false", "SIGNAL": "", "PROCESS_TO_SIGNAL": ""}
        then = {"ONESHOT": "false", "SEND_SIGNAL": "true", "SIGNAL": "1", "PROCESS_TO_SIGNAL": target}
        return {
            "init": manager(f"{stem}-init", first),
            "sidecar": manager(f"{stem}-sidecar", then),
            "mounts": mounts,
            "volumes": [
                {
                    "name": "available-configs",
                    "configMap": {"name": self.external_config_map or f"{self.fullname}-configs"},
                },
                {"name": "config", "emptyDir": {}},
            ],
        }

    def config_manager_part(self, program: str, daemonset: Manifest) -> Manifest:
        """The part of a DaemonSet of the chart that is there for config-manager."""
        main = _main_container(daemonset, program)
        manager = self.config_manager(program, main.get("image", ""))
        # The sidecar signals the program, so it holds what the program holds; that of MPS holds nothing.
        rights = {} if program == "mps" else {"securityContext": main.get("securityContext")}
        earlier = [{"name": "mps-control-daemon-mounts"}] if program == "mps" else []
        return _pod_part(
            {
                **({} if program == "mps" else {"shareProcessNamespace": True}),
                "initContainers": [*earlier, manager["init"]],
                "containers": [
                    {**manager["sidecar"], **rights},
                    {"name": PROGRAMS[program], "volumeMounts": manager["mounts"]},
                ],
                "volumes": manager["volumes"],
            }
        )

    def mounts_part(self, program: str, mounts: Mapping[str, tuple[str, str | None]]) -> Manifest:
        """The part of a DaemonSet that mounts host paths: by path in the container, on the node, with its type."""
        volumes = {str(number): mount for number, mount in enumerate(mounts.items())}
        return _pod_part(
            {
                "containers": [
                    {
                        "name": PROGRAMS[program],
                        "volumeMounts": [{"name": name, "mountPath": inside} for name, (inside, _) in volumes.items()],
                    }
                ],
                "volumes": [
                    {"name": name, "hostPath": {"path": path, "type": kind}}
                    for name, (_, (path, kind)) in volumes.items()
                ],
            }
        )

    def gfd_host_paths(self) -> Manifest:
        """The part of GFD's DaemonSet with the node's files: two mounts and a volume that nothing mounts."""
        features = "/etc/kubernetes/node-feature-discovery/features.d"
        part = self.mounts_part("gfd", {features: (features, "DirectoryOrCreate"), "/sys": ("/sys", "Directory")})
        root = self.value("nvidiaDriverRoot")
        path = posixpath.normpath(f"/{_go_text(root)}").replace("//", "/")
        unused = {"name": "driver-root", "hostPath": {"path": path, "type": "Directory"}}
        part["spec"]["template"]["spec"]["volumes"].append(unused)
        return part

    def gfd_empty_config(self) -> Manifest:
        """The part of GFD's DaemonSet that mounts an empty directory for a file that is not there."""
        mounts = [{"name": "config", "mountPath": "/config"}]
        container = {"name": PROGRAMS["gfd"], "volumeMounts": mounts}
        return _pod_part({"containers": [container], "volumes": [{"name": "config", "emptyDir": {}}]})

    def mps_daemonset(self, plugin: Manifest) -> Manifest:
        """The chart's MPS control daemon: what it shares with the plugin's DaemonSet is taken from there."""
        manifest = copy.deepcopy(plugin)
        manifest["metadata"]["name"] = _cut(f"{self.fullname}-mps-control-daemon")
        spec = manifest["spec"]["template"]["spec"]
        main = _main_container(plugin, "plugin")
        for key in ("hostNetwork", "dnsPolicy", "shareProcessNamespace"):
            spec.pop(key, None)
        if self.version != "0.18.2" and self.value("mps.enableHostNetwork"):
            spec |= {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}
        if self.value("mps.enableHostPID"):
            spec["hostPID"] = True
        elif self.version != "0.18.2" or self.uses_config_manager:
            spec["shareProcessNamespace"] = True
        root = self.value("mps.root", "")
        resources = {"resources": main["resources"]} if main.get("resources") else {}
        shared = ("MIG_STRATEGY", "CONFIG_FILE", "NVIDIA_MIG_MONITOR_DEVICES")
        mounts = [{"name": "mps-shm", "mountPath": "/dev/shm"}, {"name": "mps-root", "mountPath": "/mps"}]
        privileged = {"securityContext": {"privileged": True}}
        init = {
            "name": "mps-control-daemon-mounts",
            "image": main.get("image"),
            "command": ["mps-control-daemon", "mount-shm"],
            "volumeMounts": [{"name": "mps-root", "mountPath": "/mps", "mountPropagation": "Bidirectional"}],
            **privileged,
            **resources,
        }
        daemon = {
            "name": PROGRAMS["mps"],
            "image": main.get("image"),
            "imagePullPolicy": main.get("imagePullPolicy"),
            "command": ["mps-control-daemon"],
            "env": [
                {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
                *(variable for variable in main.get("env") or () if variable["name"] in shared),
                {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"},
                {"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "compute,utility"},
            ],
            "volumeMounts": mounts,
            **privileged,
            **resources,
        }
        spec["initContainers"] = [init]
        spec["containers"] = [daemon]
        spec["volumes"] = [
            {"name": "mps-root", "hostPath": {"path": root or None, "type": "DirectoryOrCreate"}},
            {"name": "mps-shm", "hostPath": {"path": f"{root}/shm"}},
        ]
        if self.uses_config_manager:
            manager = self.config_manager("mps", str(main.get("image")))
            spec["initContainers"].append(manager["init"])
            spec["containers"].insert(0, manager["sidecar"])
            daemon["volumeMounts"] = [*mounts, *manager["mounts"]]
            spec["volumes"] += manager["volumes"]
        spec["nodeSelector"] = {"nvidia.com/mps.capable": "true", **(spec.get("nodeSelector") or {})}
        return manifest


_RIGHTS = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding")


def unquoted(text: str) -> Any:
    """Give what YAML reads where a template writes text without quotes."""
    try:
        read = load(text)
    except UnreadableCase:
        return text
    return text if isinstance(read, list | dict) else read


def _main_container(daemonset: Manifest, program: str) -> Manifest:
    containers = daemonset["spec"]["template"]["spec"]["containers"]
    return next((one for one in containers if one["name"] == PROGRAMS[program]), {})


def _pod_part(spec: Manifest) -> Manifest:
    return {"kind": "DaemonSet", "metadata": {}, "spec": {"template": {"spec": spec}}}


def _go_text(value: Any) -> str:
    """Write a value as Go's templates do."""
    return "" if value is None else json.dumps(value) if isinstance(value, bool) else str(value)


def object_suffix(config: str) -> str:
    """Give a configuration's name as it stands in the names of our objects."""
    words = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in config.lower())
    return "-".join(word for word in words.split("-") if word)


def _at(values: Any, path: str, default: Any) -> Any:
    for key in path.split("."):
        if not isinstance(values, Mapping) or values.get(key) is None:
            return default
        values = values[key]
    return values


def _cut(name: str) -> str:
    return name[:63].removesuffix("-")


def _by_name(rows: list[tuple[str, str, str]]) -> dict[tuple[str, str], list[str]]:
    found: dict[tuple[str, str], list[str]] = {}
    for kind, name, role in rows:
        if role not in found.setdefault((kind, name), []):
            found[kind, name].append(role)
    return found


def _binding(kind: str, metadata: Manifest, role: str, account: str, namespace: str) -> Manifest:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": f"{kind}Binding",
        "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
    }

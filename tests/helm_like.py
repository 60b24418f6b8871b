"""Renders like those of NVIDIA's chart, made of plain Python for the tests of the parity proof.

Only what the tests ask for: the plugin, GPU Feature Discovery, the MPS control daemon, and Node Feature Discovery.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

from gpu_constructs.feature_discovery.manifests import custom_resource_definitions

OLD, NEW = "0.18.2", "0.20.0"
RELEASE, NAMESPACE = "r", "gpu"
NAME = "r-nvidia-device-plugin"
NFD = "r-node-feature-discovery"
_NFD_VERSION = {OLD: "0.17.3", NEW: "0.19.0"}
_RBAC = "rbac.authorization.k8s.io"
Manifest = dict[str, Any]


def render(values: Mapping[str, Any], version: str = NEW) -> list[Manifest]:
    """Render the chart's objects."""
    chart = _Chart(values, version)
    return copy.deepcopy([*chart.gpu(), *(chart.nfd() if chart.has_nfd else [])])


class _Chart:
    def __init__(self, values: Mapping[str, Any], version: str) -> None:
        self.v = values
        self.version = version
        self.is_old = version == OLD
        self.config = values.get("config", {})
        self.gfd_values = values.get("gfd", {})
        self.nfd_values = values.get("nfd", {})
        self.has_nfd = self.nfd_values.get("enabled", self.gfd_values.get("enabled", False))
        self.has_files = bool(self.config.get("map") or self.config.get("name"))
        self.has_account = not self.is_old or self.has_files
        self.image = f"nvcr.io/nvidia/k8s-device-plugin:v{version}"
        pod_labels = {"app.kubernetes.io/name": "nvidia-device-plugin", "app.kubernetes.io/instance": RELEASE}
        self.pod_labels = {**pod_labels, **values.get("selectorLabelsOverride", {})}
        self.labels = {
            "helm.sh/chart": f"nvidia-device-plugin-{version}",
            **self.pod_labels,
            "app.kubernetes.io/version": version,
            "app.kubernetes.io/managed-by": "Helm",
        }

    # The chart's own objects.

    def gpu(self) -> list[Manifest]:
        programs = {"": self.plugin(), "-mps-control-daemon": self.mps()}
        if self.gfd_values.get("enabled"):
            programs["-gpu-feature-discovery"] = self.gfd()
        if self.v.get("devicePlugin", {}).get("enabled") is False:
            del programs[""], programs["-mps-control-daemon"]
        objects = [self.daemonset(f"{NAME}{suffix}", pod) for suffix, pod in programs.items()]
        if self.config.get("map"):
            metadata = self.metadata(f"{NAME}-configs")
            objects.append({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": self.config["map"]})
        return [*objects, *(self.rights() if self.has_account else [])]

    def metadata(self, name: str) -> Manifest:
        return {"name": name, "namespace": NAMESPACE, "labels": self.labels}

    def rights(self) -> list[Manifest]:
        account, role = f"{NAME}-service-account", f"{NAME}-role"
        rules = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}]
        if self.gfd_values.get("enabled") and not self.is_old:
            verbs = ["get", "list", "watch", "create", "update"]
            rules += [
                {"apiGroups": ["nfd.k8s-sigs.io"], "resources": ["nodefeatures"], "verbs": verbs},
                {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
            ]
        return [
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": self.metadata(account)},
            _cluster("ClusterRole", role, self.labels, rules=rules),
            _cluster("ClusterRoleBinding", f"{role}-binding", self.labels, role=role, account=account),
        ]

    def daemonset(self, name: str, pod: Manifest) -> Manifest:
        has_sum = bool(self.config.get("map"))
        selector = self.v.get("selectorLabelsOverride") or self.pod_labels
        annotations = {**self.v.get("podAnnotations", {}), **({"checksum/config": "0" * 64} if has_sum else {})}
        return {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": self.metadata(name),
            "spec": {
                "selector": {"matchLabels": selector},
                "updateStrategy": self.v.get("updateStrategy", {"type": "RollingUpdate"}),
                "template": {"metadata": {"labels": self.pod_labels, "annotations": annotations}, "spec": pod},
            },
        }

    def pod(self, **fields: Any) -> Manifest:
        tolerations = [
            {"key": "CriticalAddonsOnly", "operator": "Exists"},
            {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
        ]
        labels = {"pci-10de.present": "true", "cpu-model.vendor_id": "NVIDIA"}
        nodes = {**{f"feature.node.kubernetes.io/{k}": v for k, v in labels.items()}, "nvidia.com/gpu.present": "true"}
        terms = [{"matchExpressions": [{"key": k, "operator": "In", "values": [v]}]} for k, v in nodes.items()]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        optional = {
            "runtimeClassName": self.v.get("runtimeClassName"),
            "serviceAccountName": f"{NAME}-service-account" if self.has_account else None,
            "nodeSelector": self.v.get("nodeSelector"),
        }
        return {
            "priorityClassName": self.v.get("priorityClassName", "system-node-critical"),
            "securityContext": {},
            "affinity": {"nodeAffinity": required},
            "tolerations": self.v.get("tolerations", tolerations),
            **{key: value for key, value in optional.items() if value is not None},
            **fields,
        }

    def env(self, *keys: str) -> list[Manifest]:
        """The variables that values become, then those for a file and for MIG."""
        variables = {
            "migStrategy": "MIG_STRATEGY",
            "failOnInitError": "FAIL_ON_INIT_ERROR",
            "deviceListStrategy": "DEVICE_LIST_STRATEGY",
            "deviceDiscoveryStrategy": "DEVICE_DISCOVERY_STRATEGY",
            "nvidiaDriverRoot": "NVIDIA_DRIVER_ROOT",
            "sleepInterval": "GFD_SLEEP_INTERVAL",
        }
        given = [(variables[key], self.v[key]) for key in keys if isinstance(self.v.get(key), str | bool)]
        env = [{"name": k, "value": str(v).lower() if isinstance(v, bool) else v} for k, v in given]
        if self.has_files:
            env.append({"name": "CONFIG_FILE", "value": "/config/config.yaml"})
        if self.watches_mig:
            env.append({"name": "NVIDIA_MIG_MONITOR_DEVICES", "value": "all"})
        return env

    @property
    def watches_mig(self) -> bool:
        return bool(self.v["migStrategy"] != "none" if self.v.get("migStrategy") else self.has_files)

    def main(self, name: str, **fields: Any) -> Manifest:
        resources = {"resources": self.v["resources"]} if self.v.get("resources") else {}
        policy = self.v.get("image", {}).get("pullPolicy", "IfNotPresent")
        return {"name": name, "image": self.image, "imagePullPolicy": policy, **resources, **fields}

    def managers(self, stem: str, target: str, **fields: Any) -> tuple[list[Manifest], list[Manifest]]:
        """config-manager as init container and beside the program, where there are files."""
        if not self.has_files:
            return [], []
        default = self.config.get("default")
        common = {
            "KUBECONFIG": "",
            "NODE_LABEL": "nvidia.com/device-plugin.config",
            "CONFIG_FILE_SRCDIR": "/available-configs",
            "CONFIG_FILE_DST": "/config/config.yaml",
            "DEFAULT_CONFIG": default if default else None,
            "FALLBACK_STRATEGIES": ",".join(self.config.get("fallbackStrategies", ["named", "single"])),
        }
        first = {"ONESHOT": "true", "SEND_SIGNAL": "false", "SIGNAL": "", "PROCESS_TO_SIGNAL": ""}
        then = {"ONESHOT": "false", "SEND_SIGNAL": "true", "SIGNAL": "1", "PROCESS_TO_SIGNAL": target}

        def manager(name: str, variables: Mapping[str, str], **more: Any) -> Manifest:
            env = [{"name": key, "value": value} for key, value in {**common, **variables}.items()]
            env.append(_field("NODE_NAME", "spec.nodeName"))
            return {
                "name": name,
                "image": self.image,
                "command": ["config-manager"],
                "env": env,
                "volumeMounts": self.file_mounts,
                **more,
            }

        return [manager(f"{stem}-init", first)], [manager(f"{stem}-sidecar", then, **fields)]

    @property
    def file_mounts(self) -> list[Manifest]:
        mounts = {"available-configs": "/available-configs", "config": "/config"} if self.has_files else {}
        return [{"name": name, "mountPath": path} for name, path in mounts.items()]

    @property
    def file_volumes(self) -> list[Manifest]:
        name = self.config.get("name") or f"{NAME}-configs"
        files = [{"name": "available-configs", "configMap": {"name": name}}, {"name": "config", "emptyDir": {}}]
        return files if self.has_files else []

    def plugin(self) -> Manifest:
        root = self.v.get("mps", {}).get("root", "/run/nvidia/mps")
        adds = (
            self.watches_mig
            or "volume-mounts" in self.v.get("deviceListStrategy", "")
            or (self.has_files and not self.v.get("deviceListStrategy"))
        )
        nothing = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
        security = self.v.get("securityContext") or ({"capabilities": {"add": ["SYS_ADMIN"]}} if adds else nothing)
        keys = ("migStrategy", "failOnInitError", "deviceListStrategy", "nvidiaDriverRoot", "deviceDiscoveryStrategy")
        paths = {
            "/var/lib/kubelet/device-plugins": ("/var/lib/kubelet/device-plugins", "Directory"),
            "/dev/shm": (f"{root}/shm", None),
            "/mps": (root, "DirectoryOrCreate"),
            "/var/run/cdi": ("/var/run/cdi", "DirectoryOrCreate"),
        }
        env = [{"name": "MPS_ROOT", "value": root}, *self.env(*keys), *_visible()]
        flags = self.v.get("cdi", {}).get("featureFlags")
        env += [] if flags is None else [{"name": "CDI_FEATURE_FLAGS", "value": flags}]
        mounts, volumes = _host_paths(paths)
        if isinstance(self.v.get("nvidiaDriverRoot"), str):
            mounts.append({"name": "driver-root", "mountPath": "/driver-root", "readOnly": True})
            path = {"path": self.v["nvidiaDriverRoot"], "type": "Directory"}
            volumes.append({"name": "driver-root", "hostPath": path})
        init, sidecar = self.managers("nvidia-device-plugin", "nvidia-device-plugin", securityContext=security)
        main = self.main(
            "nvidia-device-plugin-ctr",
            command=["nvidia-device-plugin"],
            env=env,
            securityContext=security,
            volumeMounts=[*mounts, *self.file_mounts],
        )
        shares = {"shareProcessNamespace": True, "initContainers": init} if init else {}
        return self.pod(**shares, containers=[*sidecar, main], volumes=[*volumes, *self.file_volumes])

    def mps(self) -> Manifest:
        root = self.v.get("mps", {}).get("root", "/run/nvidia/mps")
        mounts, volumes = _host_paths({"/dev/shm": (f"{root}/shm", None), "/mps": (root, "DirectoryOrCreate")})
        privileged = {"securityContext": {"privileged": True}}
        mounted = next(mount["name"] for mount in mounts if mount["mountPath"] == "/mps")
        resources = {"resources": self.v["resources"]} if self.v.get("resources") else {}
        mount_shm = {
            "name": "mps-control-daemon-mounts",
            "image": self.image,
            "command": ["mps-control-daemon", "mount-shm"],
            "volumeMounts": [{"name": mounted, "mountPath": "/mps", "mountPropagation": "Bidirectional"}],
            **privileged,
            **resources,
        }
        init, sidecar = self.managers("mps-control-daemon", "/usr/bin/mps-control-daemon")
        main = self.main(
            "mps-control-daemon-ctr",
            command=["mps-control-daemon"],
            env=[_field("NODE_NAME", "spec.nodeName"), *self.env("migStrategy"), *_visible()],
            volumeMounts=[*mounts, *self.file_mounts],
            **privileged,
        )
        pod = self.pod(
            hostPID=True,
            initContainers=[mount_shm, *init],
            containers=[*sidecar, main],
            volumes=[*volumes, *self.file_volumes],
        )
        return {**pod, "nodeSelector": {"nvidia.com/mps.capable": "true", **pod.get("nodeSelector", {})}}

    def gfd(self) -> Manifest:
        features = "/etc/kubernetes/node-feature-discovery/features.d"
        mounts, volumes = _host_paths({features: (features, "DirectoryOrCreate"), "/sys": ("/sys", "Directory")})
        root = self.v.get("nvidiaDriverRoot") or "/"
        volumes.append({"name": "driver-root", "hostPath": {"path": root, "type": "Directory"}})
        security = {"privileged": True, **self.gfd_values.get("securityContext", {})}
        env = [_field("NODE_NAME", "spec.nodeName"), _field("NAMESPACE", "metadata.namespace")]
        if self.is_old:
            api = self.nfd_values.get("enableNodeFeatureApi", False)
            env.append({"name": "GFD_USE_NODE_FEATURE_API", "value": str(api).lower()})
        else:
            env.append(_field("POD_NAME", "metadata.name"))
        env += self.env("migStrategy", "failOnInitError", "sleepInterval", "deviceDiscoveryStrategy")
        config = [] if self.has_files else [{"name": "config", "mountPath": "/config"}]
        empty = [] if self.has_files else [{"name": "config", "emptyDir": {}}]
        init, sidecar = self.managers("gpu-feature-discovery", "gpu-feature-discovery", securityContext=security)
        main = self.main(
            "gpu-feature-discovery-ctr",
            command=["gpu-feature-discovery"],
            env=env,
            securityContext=security,
            volumeMounts=[*mounts, *self.file_mounts, *config],
        )
        shares = {"shareProcessNamespace": True} if init else {}
        return self.pod(
            **shares, initContainers=init, containers=[*sidecar, main], volumes=[*volumes, *self.file_volumes, *empty]
        )

    # The chart inside it.

    def nfd(self) -> list[Manifest]:
        version = _NFD_VERSION[self.version]
        labels = {
            "helm.sh/chart": f"nfd-{version}",
            "app.kubernetes.io/name": "node-feature-discovery",
            "app.kubernetes.io/instance": RELEASE,
            "app.kubernetes.io/version": f"v{version}",
            "app.kubernetes.io/managed-by": "Helm",
        }
        made = _Nfd(self.nfd_values, labels, is_old=self.is_old, version=version)
        return made.objects()


class _Nfd:
    def __init__(self, values: Mapping[str, Any], labels: dict[str, str], *, is_old: bool, version: str) -> None:
        self.v, self.labels, self.is_old, self.version = values, labels, is_old, version
        self.selector = {key: labels[f"app.kubernetes.io/{key.rpartition('/')[2]}"] for key in _SELECTOR}
        self.image = f"registry.k8s.io/nfd/node-feature-discovery:v{version}"

    def of(self, component: str, key: str, default: Any = None) -> Any:
        return self.v.get(component, {}).get(key, default)

    def objects(self) -> list[Manifest]:
        updater = self.of("topologyUpdater", "enable", False)
        accounts = {"master": self.account("master"), "gc": f"{NFD}-gc", "worker": f"{NFD}-worker"}
        accounts |= {"topology-updater": f"{NFD}-topology-updater"} if updater else {}
        found = [*self.definitions(), *self.cluster_rights(accounts), *self.worker_rights()]
        found += [self.object("v1", "ServiceAccount", name) for name in accounts.values()]
        found += [self.config("master", {"extraLabelNs": ["nvidia.com"]}), self.config("worker", {"sources": _PCI})]
        found += [self.master(), self.gc(), self.worker()]
        found += [self.config("topology-updater", None), self.topology_updater()] if updater else []
        found += [self.pod_monitor()] if self.v.get("prometheus", {}).get("enable") else []
        for component, key in {"gc": "gc", "topology-updater": "topologyUpdater"}.items():
            if self.of(key, "networkPolicy", {}).get("enabled"):
                found.append(self.network_policy(component))
        if self.of("gc", "podDisruptionBudget", {}).get("enable"):
            found.append(self.budget("gc"))
        return [*found, *self.hook()]

    def account(self, component: str) -> str:
        given = self.of(component, "serviceAccount", {}).get("name")
        return str(given or ("node-feature-discovery" if component == "master" else f"{NFD}-{component}"))

    def metadata(self, name: str, **labels: str) -> Manifest:
        return {"name": name, "namespace": NAMESPACE, "labels": {**self.labels, **labels}}

    def object(self, api: str, kind: str, name: str, **fields: Any) -> Manifest:
        return {"apiVersion": api, "kind": kind, "metadata": self.metadata(name), **fields}

    def definitions(self) -> list[Manifest]:
        definitions = copy.deepcopy(list(custom_resource_definitions(self.version)))
        for definition in definitions:
            schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
            schema["description"] = "What it is."
            definition["metadata"]["annotations"] = {"controller-gen.kubebuilder.io/version": "v0.16.3"}
        return definitions

    def cluster_rights(self, accounts: Mapping[str, str]) -> list[Manifest]:
        nfd, lease = "nfd.k8s-sigs.io", "nfd-master.nfd.kubernetes.io"
        topologies = "topology.node.k8s.io/noderesourcetopologies"
        proxy = {"/nodes/proxy": "get"} if self.is_old else {}
        rules = {
            "master": {
                "/namespaces": "watch list",
                "/nodes nodes/status": "get patch update list",
                f"{nfd}/nodefeatures nodefeaturerules nodefeaturegroups": "get list watch",
                f"{nfd}/nodefeaturegroups/status": "patch update",
                "coordination.k8s.io/leases": "create",
                f"coordination.k8s.io/leases={lease}": "get update",
            },
            "gc": {"/nodes": "list watch", topologies: "delete list", f"{nfd}/nodefeatures": "delete list", **proxy},
            "topology-updater": {
                "/nodes": "get list",
                "/namespaces": "get",
                "/nodes/proxy" if self.is_old else "/nodes/configz": "get",
                "/pods": "get" if self.is_old else "get list watch",
                topologies: "create get update",
                **({} if self.is_old else {"apiextensions.k8s.io/customresourcedefinitions": "get list watch"}),
            },
        }
        names = {"master": NFD, "gc": f"{NFD}-gc", "topology-updater": f"{NFD}-topology-updater"}
        found = []
        for component, name in names.items():
            if component in accounts:
                allowed = [_rule(what, verbs) for what, verbs in rules[component].items()]
                found.append(_cluster("ClusterRole", name, self.labels, rules=allowed))
                account = accounts[component]
                found.append(_cluster("ClusterRoleBinding", name, self.labels, role=name, account=account))
        return found

    def worker_rights(self) -> list[Manifest]:
        name = f"{NFD}-worker"
        rules = [_rule("nfd.k8s-sigs.io/nodefeatures", "create get update delete"), _rule("/pods", "get")]
        return [
            self.object(f"{_RBAC}/v1", "Role", name, rules=rules),
            self.object(f"{_RBAC}/v1", "RoleBinding", name, **_grant("Role", name, name)),
        ]

    def config(self, component: str, default: Any) -> Manifest:
        config = self.of(component, "config", default)
        name = f"nfd-{component}.conf"
        return self.object("v1", "ConfigMap", f"{NFD}-{component}-conf", data={name: json.dumps(config)})

    def workload(self, kind: str, component: str, container: Manifest, spec: Manifest, **pod: Any) -> Manifest:
        labels = {**self.selector, "role": component}
        conf = f"nfd-{component}.conf"
        has_file = component != "gc"
        mounts = [{"name": "conf", "mountPath": "/etc/kubernetes/node-feature-discovery", "readOnly": True}]
        files = {"name": f"{NFD}-{component}-conf", "items": [{"key": conf, "path": conf}]}
        key = "topologyUpdater" if component == "topology-updater" else component
        volumes = [*pod.pop("volumes", []), *([{"name": "conf", "configMap": files}] if has_file else [])]
        security = {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            **({"runAsUser": 0} if component == "topology-updater" else {"runAsNonRoot": True}),
        }
        main = {
            "name": component,
            "image": self.image,
            "imagePullPolicy": "IfNotPresent",
            "command": [f"nfd-{component}"],
            "securityContext": security,
            **container,
            "volumeMounts": [*container.get("volumeMounts", []), *(mounts if has_file else [])],
        }
        in_host_network = bool(self.of(key, "hostNetwork", False))
        dns = {} if self.is_old and component == "master" else {"dnsPolicy": "ClusterFirstWithHostNet"}
        account = self.account(component)
        annotations = {"checksum/config": "1" * 64} if has_file else {}
        return {
            "apiVersion": "apps/v1",
            "kind": kind,
            "metadata": self.metadata(f"{NFD}-{component}", role=component),
            "spec": {
                "revisionHistoryLimit": None,
                "selector": {"matchLabels": labels},
                **spec,
                "template": {
                    "metadata": {"labels": labels, "annotations": annotations},
                    "spec": {
                        **dns,
                        "serviceAccountName": account,
                        "securityContext": {},
                        "hostNetwork": in_host_network,
                        "containers": [main],
                        "volumes": volumes,
                        **pod,
                    },
                },
            },
        }

    def _ports(self, *names: str) -> list[Manifest]:
        numbers = {"metrics": 8081, "health": 8082} if self.is_old else {"http": 8080}
        return [{"name": name, "containerPort": number} for name, number in numbers.items() if name in names]

    def _port_args(self) -> list[str]:
        return ["-metrics=8081", "-grpc-health=8082"] if self.is_old else ["-port=8080"]

    def _probe(self, **numbers: int) -> Manifest:
        check = {"grpc": {"port": 8082}} if self.is_old else {"httpGet": {"path": "/healthz", "port": "http"}}
        return {**check, **numbers}

    def master(self) -> Manifest:
        roles = ("master", "control-plane") if self.is_old else ("control-plane",)
        keys = [f"node-role.kubernetes.io/{role}" for role in roles]
        terms = [[{"key": key, "operator": "In", "values": [""]}] for key in keys]
        preferred = [{"weight": 1, "preference": {"matchExpressions": term}} for term in terms]
        args = ["-feature-gates=NodeFeatureGroupAPI=false"] if self.is_old else []
        if self.is_old or self.of("master", "replicaCount", 1) > 1:
            args = ["-enable-leader-election", *args]
        controller = self.of("master", "featureRulesController")
        args += [f"-featurerules-controller={str(controller).lower()}"] if controller is not None else []
        container = {
            "args": [*args, *self._port_args()],
            "env": [_field("NODE_NAME", "spec.nodeName")],
            "ports": self._ports("metrics", "health", "http"),
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "4Gi"}},
            "startupProbe": self._probe(failureThreshold=30),
            "livenessProbe": self._probe(),
            "readinessProbe": self._probe(failureThreshold=10),
        }
        made = self.workload(
            "Deployment",
            "master",
            container,
            {"replicas": self.of("master", "replicaCount", 1)},
            enableServiceLinks=False,
            affinity=self.of(
                "master", "affinity", {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
            ),
            tolerations=[{"key": k, "operator": "Equal", "value": "", "effect": "NoSchedule"} for k in keys],
        )
        variables = self.of("master", "extraEnvs", [])
        if variables and self.is_old:
            # The indentation of the chart's template makes containers of them.
            spec = made["spec"]["template"]["spec"]
            (main,) = spec["containers"]
            torn = {key: main.pop(key) for key in ("command", "resources", "args", "volumeMounts")}
            spec["containers"] = [main, *variables[:-1], {**variables[-1], **torn}]
        return made

    def gc(self) -> Manifest:
        probes = {
            "livenessProbe": self._probe(initialDelaySeconds=10),
            "readinessProbe": self._probe(initialDelaySeconds=5),
        }
        ports = self._ports("metrics", "http")
        ports[0]["containerPort"] = self.of("gc", "metricsPort" if self.is_old else "port", ports[0]["containerPort"])
        interval = self.of("gc", "interval", "1h")
        container = {
            "args": [f"-gc-interval={interval}"] if interval else [],
            "env": [_field("NODE_NAME", "spec.nodeName")],
            "ports": ports,
            "resources": {"requests": {"cpu": "10m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}},
            **({} if self.is_old else probes),
        }
        return self.workload("Deployment", "gc", container, {"replicas": 1})

    def worker(self) -> Manifest:
        mounts, volumes = [], []
        for path, inside in {
            "/boot": "/host-boot",
            "/etc/os-release": "/host-etc/os-release",
            "/sys": "/host-sys",
            "/usr/lib": "/host-usr/lib",
            "/lib": "/host-lib",
            "/proc/swaps": "/host-proc/swaps",
            _FEATURES: _FEATURES,
        }.items():
            mounts.append({"name": f"at{inside}", "mountPath": inside, "readOnly": True})
            volumes.append({"name": f"at{inside}", "hostPath": {"path": path}})
        owners = ["-feature-gates=NodeFeatureGroupAPI=false"] if self.is_old else ["-owner-refs=pod,ds"]
        fields = {"NODE_NAME": "spec.nodeName", "POD_NAME": "metadata.name", "POD_UID": "metadata.uid"}
        container = {
            "args": [*owners, *self._port_args()],
            "env": [_field(name, path) for name, path in fields.items()],
            "ports": self._ports("metrics", "health", "http"),
            "resources": {"requests": {"cpu": "5m", "memory": "64Mi"}, "limits": {"memory": "512Mi"}},
            "livenessProbe": self._probe(initialDelaySeconds=10),
            "readinessProbe": self._probe(initialDelaySeconds=5, failureThreshold=10),
            "volumeMounts": mounts,
        }
        container |= (
            {"securityContext": self.of("worker", "securityContext")} if self.of("worker", "securityContext") else {}
        )
        tolerations = [
            {"key": "node-role.kubernetes.io/master", "operator": "Equal", "value": "", "effect": "NoSchedule"},
            {"key": "nvidia.com/gpu", "operator": "Equal", "value": "present", "effect": "NoSchedule"},
        ]
        strategy = {} if self.is_old else {"updateStrategy": {"rollingUpdate": {"maxUnavailable": "10%"}}}
        given = self.of("worker", "tolerations", tolerations)
        return self.workload("DaemonSet", "worker", container, strategy, volumes=volumes, tolerations=given)

    def topology_updater(self) -> Manifest:
        socket = "/var/lib/kubelet/pod-resources/kubelet.sock"
        inside = "/host-var/lib/kubelet-podresources/kubelet.sock"
        paths = {
            inside: (socket, None),
            "/host-sys": ("/sys", None),
            "/host-var/lib/kubelet": ("/var/lib/kubelet", None),
        }
        mounts, volumes = _host_paths(paths)
        mounts[-1]["readOnly"] = True
        interval = self.of("topologyUpdater", "updateInterval", "60s") or "3s"
        flags = [f"-podresources-socket={inside}", f"-sleep-interval={interval}", "-watch-namespace=*"]
        container = {
            "args": [*flags, *self._port_args()],
            "env": [_field("NODE_NAME", "spec.nodeName"), _field("NODE_ADDRESS", "status.hostIP")],
            "ports": self._ports("metrics", "health", "http"),
            "resources": {"requests": {"cpu": "50m", "memory": "40Mi"}, "limits": {"memory": "60Mi"}},
            "livenessProbe": self._probe(initialDelaySeconds=10),
            "readinessProbe": self._probe(initialDelaySeconds=5, failureThreshold=10),
            "volumeMounts": mounts,
        }
        return self.workload("DaemonSet", "topology-updater", container, {}, volumes=volumes)

    def pod_monitor(self) -> Manifest:
        expressions = [{"key": key, "operator": "In", "values": [value]} for key, value in self.selector.items()]
        port = "metrics" if self.is_old else "http"
        endpoint = {"honorLabels": True, "interval": "10s", "path": "/metrics", "port": port, "scheme": "http"}
        return {
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "PodMonitor",
            "metadata": {"name": NFD, "labels": self.selector},
            "spec": {
                "podMetricsEndpoints": [endpoint],
                "namespaceSelector": {"matchNames": [NAMESPACE]},
                "selector": {"matchExpressions": expressions},
            },
        }

    def network_policy(self, component: str) -> Manifest:
        ports = [("TCP", 80), ("TCP", 443), ("TCP", 53), ("UDP", 53), ("TCP", 6443)]
        made = self.object("networking.k8s.io/v1", "NetworkPolicy", f"{NFD}-{component}-network-policy")
        made["metadata"]["labels"]["role"] = component
        made["spec"] = {
            "egress": [{"ports": [{"protocol": protocol, "port": port} for protocol, port in ports]}],
            "ingress": [{"ports": [{"protocol": "TCP", "port": "http"}]}],
            "podSelector": {"matchLabels": {**self.selector, "role": component}},
            "policyTypes": ["Egress", "Ingress"],
        }
        return made

    def budget(self, component: str) -> Manifest:
        selector = {"matchLabels": {**self.selector, "role": component}}
        given = {k: v for k, v in self.of(component, "podDisruptionBudget").items() if k != "enable"}
        spec = {"selector": selector, "minAvailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow", **given}
        return self.object("policy/v1", "PodDisruptionBudget", f"{NFD}-{component}", spec=spec)

    def hook(self) -> list[Manifest]:
        name = f"{NFD}-prune"
        annotations = {
            "helm.sh/hook": "post-delete",
            "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded",
        }
        master = self.master()["spec"]["template"]["spec"]
        container = master["containers"][0]
        kept = {key: container[key] for key in ("image", "imagePullPolicy", "securityContext")}
        job = {"name": "nfd-master", **kept, "command": ["nfd-master"], "args": ["-prune"]}
        spec: Manifest = {
            "serviceAccountName": name,
            "restartPolicy": "Never",
            "containers": [job],
            "affinity": master["affinity"],
            "tolerations": master["tolerations"],
        }
        if not self.is_old:
            job["resources"] = container["resources"]
        template = {"metadata": {"labels": {**self.labels, "role": "prune"}}, "spec": spec}
        seconds = {} if self.is_old else {"ttlSecondsAfterFinished": 3600}
        rules = [_rule("/nodes nodes/status", "get patch update list")]
        found = [
            self.object("v1", "ServiceAccount", name),
            _cluster("ClusterRole", name, self.labels, rules=rules),
            _cluster("ClusterRoleBinding", name, self.labels, role=name, account=name),
            self.object("batch/v1", "Job", name, spec={**seconds, "template": template}),
        ]
        for manifest in found:
            manifest["metadata"]["annotations"] = annotations
        return found


_SELECTOR = ("app.kubernetes.io/name", "app.kubernetes.io/instance")
_PCI = {"pci": {"deviceClassWhitelist": ["02", "03"], "deviceLabelFields": ["vendor"]}}
_FEATURES = "/etc/kubernetes/node-feature-discovery/features.d/"


def _field(name: str, path: str) -> Manifest:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _visible() -> list[Manifest]:
    values = {"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "compute,utility"}
    return [{"name": name, "value": value} for name, value in values.items()]


def _host_paths(paths: Mapping[str, tuple[str, str | None]]) -> tuple[list[Manifest], list[Manifest]]:
    mounts, volumes = [], []
    for inside, (path, kind) in paths.items():
        mounts.append({"name": f"at{inside}", "mountPath": inside})
        volumes.append({"name": f"at{inside}", "hostPath": {"path": path, **({"type": kind} if kind else {})}})
    return mounts, volumes


def _rule(what: str, verbs: str) -> Manifest:
    group, _, rest = what.partition("/")
    resources, _, name = rest.partition("=")
    named = {"resourceNames": [name]} if name else {}
    return {"apiGroups": [group], "resources": resources.split(), **named, "verbs": verbs.split()}


def _grant(kind: str, role: str, account: str) -> Manifest:
    return {
        "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}],
    }


def _cluster(kind: str, name: str, labels: Mapping[str, str], **fields: Any) -> Manifest:
    metadata = {"name": name, "labels": dict(labels)}
    if "role" in fields:
        fields = _grant("ClusterRole", fields["role"], fields["account"])
    return {"apiVersion": f"{_RBAC}/v1", "kind": kind, "metadata": metadata, **fields}

"""Renders like those of NVIDIA's chart of the DCGM exporter, made of plain Python for the tests of the parity proof."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from parity_exporter import CHART_LIST, DEFAULTS, METRICS_MAP, NEW, OLD, DcgmRelease
from parity_told import merged

RELEASE, NAMESPACE = "dcgm-exporter", "gpu"
Manifest = dict[str, Any]

_TAGS = {OLD: "3.3.6-3.4.2-ubuntu22.04", NEW: "4.5.3-4.8.2-distroless"}
_NEW_KEYS = (
    "tlsServerConfig basicAuth kubernetes kubernetesDRA debugDump initContainers hostPID customMetrics livenessProbe "
    "readinessProbe"
).split()
_RBAC = "rbac.authorization.k8s.io"


def _defaults(version: str) -> Manifest:
    is_new = version == NEW
    list_file = "default-counters.csv" if is_new else "dcp-metrics-included.csv"
    control_plane = {"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"}
    return merged(
        {
            "image": {
                "repository": "nvcr.io/nvidia/k8s/dcgm-exporter",
                "pullPolicy": "IfNotPresent",
                "tag": _TAGS[version],
            },
            "arguments": ["-f", f"/etc/dcgm-exporter/{list_file}"],
            "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0},
            "service": {"type": "ClusterIP", "internalTrafficPolicy": "Cluster"},
            "serviceMonitor": {"apiVersion": "monitoring.coreos.com/v1"},
            "priorityClassName": "system-node-critical" if is_new else "",
            "tolerations": [control_plane] if is_new else [],
            "tlsServerConfig": {"caFilename": "ca.crt"},
            "livenessProbe": {"initialDelaySeconds": 45, "periodSeconds": 5},
            "readinessProbe": {"initialDelaySeconds": 45},
        },
        DEFAULTS[version],
    )


def render(values: Mapping[str, Any], version: str = NEW) -> list[Manifest]:
    """Render the chart's objects."""
    release = DcgmRelease(release=RELEASE, namespace=NAMESPACE, version=version, values=values)
    read = {key: value for key, value in values.items() if version == NEW or key not in _NEW_KEYS}
    return copy.deepcopy(list(_Chart(release, merged(_defaults(version), read)).objects()))


class _Chart:
    def __init__(self, release: DcgmRelease, values: Manifest) -> None:
        self.release, self.values = release, values
        self.is_new = release.version == NEW
        self.labels = release.labels()
        self.selector = {
            key: text
            for key, text in self.labels.items()
            if key.rpartition("/")[2] in ("name", "instance", "component")
        }

    def value(self, path: str, default: Any = None) -> Any:
        found: Any = self.values
        for word in path.split("."):
            found = found.get(word) if isinstance(found, Mapping) else None
        return default if found is None else found

    def metadata(self, name: str, **more: Any) -> Manifest:
        return {"name": name, "namespace": self.release.namespace, "labels": dict(self.labels), **more}

    @property
    def token(self) -> bool:
        asks = self.value("kubernetes.enablePodLabels") or self.value("kubernetes.enablePodUID")
        return bool((asks and self.value("kubernetes.rbac.create")) or self.value("kubernetesDRA.enabled"))

    @property
    def web(self) -> bool:
        return bool(self.value("tlsServerConfig.enabled") or self.value("basicAuth.users"))

    def objects(self) -> Any:
        full = self.release.fullname
        subject = {"kind": "ServiceAccount", "name": self.release.account, "namespace": self.release.namespace}
        if self.value("serviceAccount.create"):
            annotations = self.value("serviceAccount.annotations")
            metadata = self.metadata(self.release.account, **({"annotations": annotations} if annotations else {}))
            account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
            yield {**account, **({"automountServiceAccountToken": self.token} if self.is_new else {})}
        metrics = self.value("customMetrics") if self.is_new else None
        csv = metrics or "".join(f"{name}, {kind}, x\n" for name, kind in CHART_LIST[self.release.version].items())
        metadata = self.metadata(METRICS_MAP)
        if not self.is_new:
            del metadata["labels"]
        yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"metrics": csv}}
        rule = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [METRICS_MAP], "verbs": ["get"]}
        yield from self._granted("Role", "dcgm-exporter-read-cm", rule, subject, binding=full)
        if self.token:
            verbs = ["get", "list", "watch"]
            read = {"apiGroups": ["", "resource.k8s.io"], "resources": ["pods", "resourceslices"], "verbs": verbs}
            yield from self._granted("ClusterRole", f"{full}-read-pods", read, subject, binding=f"{full}-read-pods")
        if self.value("tlsServerConfig.enabled") and not self.value("tlsServerConfig.existingSecret"):
            data = {self.value(f"tlsServerConfig.{key}Filename"): "eA==" for key in ("cert", "key")}
            yield {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": self.metadata(f"{full}-tls"),
                "type": "Opaque",
                "data": data,
            }
        if self.web:
            yield {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": self.metadata(f"{full}-web-config.yml"),
                "data": {"web-config.yaml": self._web_config()},
            }
        if self.value("service.enable"):
            yield self._service()
        yield self._daemonset()
        if self.value("serviceMonitor.enabled"):
            yield self._monitor()

    def _granted(self, kind: str, name: str, rule: Manifest, subject: Manifest, *, binding: str) -> Any:
        head = {"apiVersion": f"{_RBAC}/v1"}
        of_cluster = kind == "ClusterRole"
        named, bound = self.metadata(name), self.metadata(binding)
        for metadata in (named, bound) if of_cluster else ():
            del metadata["namespace"]
        yield {**head, "kind": kind, "metadata": named, "rules": [rule]}
        role = {"kind": kind, "name": name, "apiGroup": _RBAC}
        yield {**head, "kind": f"{kind}Binding", "metadata": bound, "subjects": [subject], "roleRef": role}

    def _web_config(self) -> str:
        lines = []
        tls = "/etc/dcgm-exporter/tls"
        if self.value("tlsServerConfig.enabled"):
            lines += ["tls_server_config:"]
            lines += [f"  {key}_file: {tls}/{self.value(f'tlsServerConfig.{key}Filename')}" for key in ("cert", "key")]
            if self.value("tlsServerConfig.clientAuthType"):
                lines += [f"  client_auth_type: {self.value('tlsServerConfig.clientAuthType')}"]
                lines += [f"  client_ca_file: {tls}/{self.value('tlsServerConfig.caFilename')}"]
        if self.value("basicAuth.users"):
            lines += ["basic_auth_users:", *(f"  {user}: $2a$10$x" for user in self.value("basicAuth.users"))]
        return "\n".join(lines)

    def _service(self) -> Manifest:
        port = self.value("service.port")
        selector = {key: text for key, text in self.selector.items() if self.is_new or not key.endswith("component")}
        spec = {
            "type": self.value("service.type"),
            "ports": [{"name": "metrics", "port": port, "targetPort": port, "protocol": "TCP"}],
            "selector": selector,
        }
        if self.is_new:
            spec["internalTrafficPolicy"] = self.value("service.internalTrafficPolicy")
            spec.update({"clusterIP": self.value("service.clusterIP")} if self.value("service.clusterIP") else {})
        annotations = self.value("service.annotations")
        metadata = self.metadata(self.release.fullname, **({"annotations": annotations} if annotations else {}))
        return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}

    def _monitor(self) -> Manifest:
        given = self.values["serviceMonitor"]
        endpoint = {
            "port": "metrics",
            "path": "/metrics",
            "interval": given["interval"],
            "honorLabels": given["honorLabels"],
            "relabelings": given.get("relabelings") or [],
        }
        if self.is_new:
            endpoint["scrapeTimeout"] = given["scrapeTimeout"]
            endpoint["metricRelabelings"] = given.get("metricRelabelings") or []
        metadata = self.metadata(self.release.fullname)
        metadata["labels"].update(given.get("additionalLabels") or {})
        return {
            "apiVersion": given["apiVersion"] if self.is_new else "monitoring.coreos.com/v1",
            "kind": "ServiceMonitor",
            "metadata": metadata,
            "spec": {
                "selector": {"matchLabels": dict(self.selector)},
                "namespaceSelector": {"matchNames": [self.release.namespace]},
                "endpoints": [endpoint],
            },
        }

    def _daemonset(self) -> Manifest:
        metadata: Manifest = {"labels": {**self.selector, **(self.value("podLabels") or {})}}
        if self.value("podAnnotations"):
            metadata["annotations"] = self.value("podAnnotations")
        return {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": self.metadata(self.release.fullname),
            "spec": {
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": self.value("rollingUpdate")},
                "selector": {"matchLabels": dict(self.selector)},
                "template": {"metadata": metadata, "spec": self._pod()},
            },
        }

    def _pod(self) -> Manifest:
        pod: Manifest = {"serviceAccountName": self.release.account}
        if self.is_new:
            pod.update(automountServiceAccountToken=self.token, hostPID=self.value("hostPID", False))
        priority = self.value("priorityClassName") or ("" if self.is_new else "system-node-critical")
        pod.update({"priorityClassName": priority} if priority else {})
        if self.value("hostNetwork"):
            pod.update(hostNetwork=self.value("hostNetwork"), dnsPolicy="ClusterFirstWithHostNet")
        for key, member in (
            ("runtimeClassName", "runtimeClassName"),
            ("imagePullSecrets", "imagePullSecrets"),
            ("podSecurityContext", "securityContext"),
            ("affinity", "affinity"),
            ("nodeSelector", "nodeSelector"),
            ("tolerations", "tolerations"),
            ("initContainers", "initContainers"),
        ):
            if self.value(key):
                pod[member] = self.value(key)
        pod["volumes"] = [volume for volume, _ in self._mounted() if volume]
        pod["containers"] = [self._container()]
        return pod

    def _mounted(self) -> list[tuple[Manifest | None, Manifest | None]]:
        """Volumes and mounts in pairs; of the user's lists each alone."""
        pods = "/var/lib/kubelet/pod-resources"
        found: list[tuple[Manifest | None, Manifest | None]] = [
            (
                {"name": "pod-gpu-resources", "hostPath": {"path": self.value("kubeletPath")}},
                {"name": "pod-gpu-resources", "readOnly": True, "mountPath": pods},
            )
        ]
        if self.value("tlsServerConfig.enabled"):
            secret = self.value("tlsServerConfig.existingSecret") or f"{self.release.fullname}-tls"
            tls = {"name": "tls", "secret": {"secretName": secret, "defaultMode": 0o664}}
            found.append((tls, {"name": "tls", "mountPath": "/etc/dcgm-exporter/tls"}))
        if self.web:
            source = {"name": f"{self.release.fullname}-web-config.yml", "defaultMode": 0o664}
            file = {"mountPath": "/etc/dcgm-exporter/web-config.yaml", "subPath": "web-config.yaml"}
            found.append(({"name": "web-config-yaml", "configMap": source}, {"name": "web-config-yaml", **file}))
        for volume in self.value("extraHostVolumes") or ():
            found.append(({"name": volume["name"], "hostPath": {"path": volume["hostPath"]}}, None))
        found += [(volume, None) for volume in self.value("extraConfigMapVolumes") or ()]
        found += [(None, mount) for mount in self.value("extraVolumeMounts") or ()]
        if self.value("debugDump.enabled"):
            directory = self.value("debugDump.directory")
            host = {"path": directory, "type": "DirectoryOrCreate"}
            dumps = {"name": "debug-dumps", "mountPath": directory}
            found.append(({"name": "debug-dumps", "hostPath": host}, dumps))
        return found

    def _container(self) -> Manifest:
        image, port = self.values["image"], self.value("service.port")
        env: list[Manifest] = [{"name": "DCGM_EXPORTER_KUBERNETES", "value": "true"}]
        for key, variable in (
            ("kubernetes.enablePodLabels", "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS"),
            ("kubernetes.enablePodUID", "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID"),
            ("kubernetesDRA.enabled", "KUBERNETES_ENABLE_DRA"),
        ):
            env += [{"name": variable, "value": "true"}] if self.value(key) else []
        if self.value("kubernetes.podLabelAllowlistRegex"):
            allowed = ",".join(self.value("kubernetes.podLabelAllowlistRegex"))
            env.append({"name": "DCGM_EXPORTER_KUBERNETES_POD_LABEL_ALLOWLIST_REGEX", "value": allowed})
        env.append({"name": "DCGM_EXPORTER_LISTEN", "value": self.value("service.address")})
        env.append({"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}})
        if self.web:
            env.append({"name": "DCGM_EXPORTER_WEB_CONFIG_FILE", "value": "/etc/dcgm-exporter/web-config.yaml"})
        env += self.value("extraEnv") or []
        args = list(self.value("arguments") or ())
        if self.value("debugDump.enabled"):
            args += ["--dump-enabled", f"--dump-directory={self.value('debugDump.directory')}"]
            args += [f"--dump-retention={self.value('debugDump.retention')}"]
            args += ["--dump-compression"] if self.value("debugDump.compression") else []
        question = {"path": "/health", "port": port}
        if self.is_new:
            question["scheme"] = "HTTPS" if self.value("tlsServerConfig.enabled") else "HTTP"
        asked = {"tcpSocket": {"port": port}} if self.value("basicAuth.users") else {"httpGet": question}
        container: Manifest = {
            "name": "exporter",
            "securityContext": self.value("securityContext"),
            "image": f"{image['repository']}:{image['tag'] or self.release.version}",
            "imagePullPolicy": image["pullPolicy"],
            "args": args,
            "env": env,
            "ports": [{"name": "metrics", "containerPort": port}],
            "volumeMounts": [mount for _, mount in self._mounted() if mount],
            "livenessProbe": {**asked, **self.values["livenessProbe"]},
            "readinessProbe": {**asked, **self.values["readinessProbe"]},
        }
        if self.value("resources"):
            container["resources"] = self.value("resources")
        return container

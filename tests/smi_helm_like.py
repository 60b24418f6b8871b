"""A stand-in for Helm that renders the chart of nvidia_gpu_exporter, so that the proof can be tested without it.

Source: utkuozdemir/nvidia_gpu_exporter@v1.14.0:charts/nvidia-gpu-exporter/templates. The alerts and the dashboards are
not theirs: the proof looks at neither.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from typing import Any

from parity_smi_exporter import CHART, PROGRAM, VERSION, SmiRelease
from parity_told import Manifest

RELEASE, NAMESPACE = "nvidia-gpu-exporter", "gpu"
DASHBOARDS = ("nvidia-gpu-metrics.json", "nvidia-gpu-overview.json")
_MONITORING = "monitoring.coreos.com/v1"


def render(values: Mapping[str, Any], *, release: str = RELEASE, namespace: str = NAMESPACE) -> list[Manifest]:
    """Render the chart's objects."""
    made = SmiRelease(release=release, namespace=namespace, version=VERSION, values=values)
    return copy.deepcopy(list(_Chart(made).objects()))


def _said(**members: Any) -> Manifest:
    """What a template writes only where there is something."""
    return {name: member for name, member in members.items() if member}


class _Chart:
    def __init__(self, release: SmiRelease) -> None:
        self.release, self.value = release, release.value

    def metadata(self, name: str, labels: Mapping[str, str] | None = None, annotations: Any = None) -> Manifest:
        return {
            "name": name,
            "labels": {**self.release.labels(), **(labels or {})},
            **_said(annotations=annotations),
        }

    def objects(self) -> Iterator[Manifest]:
        full, value = self.release.fullname, self.value
        if value("serviceAccount.create"):
            metadata = self.metadata(self.release.account, annotations=value("serviceAccount.annotations"))
            yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
        if value("grafanaDashboard.enabled"):
            label = {value("grafanaDashboard.label"): value("grafanaDashboard.labelValue")}
            metadata = self.metadata(f"{full}-dashboard", label, value("grafanaDashboard.annotations"))
            data = dict.fromkeys(DASHBOARDS, json.dumps({"panels": [{}]}))
            yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
        if value("service.enabled"):
            yield self._service()
            yield self._test()
        yield self._daemonset()
        if self.release.has_alerts:
            metadata = self.metadata(full, value("prometheusRule.additionalLabels"))
            rules = [{"alert": "A", "expr": "nvidia_smi_last_collect_success == 0"}]
            spec = {"groups": [{"name": CHART, "rules": rules}]}
            yield {"apiVersion": _MONITORING, "kind": "PrometheusRule", "metadata": metadata, "spec": spec}
        for kind, endpoints in (("ServiceMonitor", "endpoints"), ("PodMonitor", "podMetricsEndpoints")):
            section = value(kind[0].lower() + kind[1:])
            if section["enabled"]:
                yield self._monitor(kind, endpoints, section)

    def _service(self) -> Manifest:
        port: Manifest = {"port": self.value("service.port"), "targetPort": "http", "protocol": "TCP", "name": "http"}
        if self.value("service.type") != "ClusterIP":
            port.update(_said(nodePort=self.value("service.nodePort")))
        spec = {"type": self.value("service.type"), "ports": [port], "selector": self.release.selector()}
        metadata = self.metadata(self.release.fullname, annotations=self.value("service.annotations"))
        return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}

    def _test(self) -> Manifest:
        full, value = self.release.fullname, self.value
        nobody = {"runAsNonRoot": True, "runAsUser": 65534, "allowPrivilegeEscalation": False}
        url = f"http://{full}:{value('service.port', '')}{value('telemetryPath', '')}"
        container = {
            "name": "wget",
            "image": f"{value('test.image.repository', 'docker.io/library/busybox')}:{value('test.image.tag', '1.37')}",
            "imagePullPolicy": value("test.image.pullPolicy", "IfNotPresent"),
            "securityContext": {
                **nobody,
                "capabilities": {"drop": ["ALL"]},
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "command": ["sh", "-c"],
            "args": [f"wget -qO- '{url}'"],
        }
        labels = {"helm.sh/chart": f"{CHART}-{VERSION}", "app.kubernetes.io/component": "test"}
        metadata = {"name": f"{full}-test-connection", "labels": labels, "annotations": {"helm.sh/hook": "test"}}
        spec = {
            **_said(imagePullSecrets=value("imagePullSecrets")),
            "automountServiceAccountToken": False,
            "containers": [container],
            "restartPolicy": "Never",
        }
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}

    def _monitor(self, kind: str, endpoints: str, section: Manifest) -> Manifest:
        endpoint = {
            "port": "http",
            "path": self.value("telemetryPath"),
            **({"scheme": section["scheme"]} if kind == "ServiceMonitor" else {}),
            **_said(
                bearerTokenFile=section.get("bearerTokenFile"),
                interval=section.get("interval"),
                scrapeTimeout=section.get("scrapeTimeout"),
                tlsConfig=section.get("tlsConfig"),
                relabelings=section.get("relabelings"),
                metricRelabelings=section.get("metricRelabelings"),
            ),
        }
        metadata = self.metadata(self.release.fullname, section.get("additionalLabels"))
        spec = {endpoints: [endpoint], "selector": {"matchLabels": self.release.selector()}}
        return {"apiVersion": _MONITORING, "kind": kind, "metadata": metadata, "spec": spec}

    def _daemonset(self) -> Manifest:
        value, selector = self.value, self.release.selector()
        limit = value("revisionHistoryLimit", "")
        template: Manifest = {
            **_said(annotations=value("podAnnotations")),
            "labels": {**(value("podLabels") or {}), **selector},
        }
        spec: Manifest = {
            **_said(updateStrategy=value("updateStrategy")),
            **({} if limit == "" else {"revisionHistoryLimit": limit}),
            "selector": {"matchLabels": selector},
            "template": {"metadata": template, "spec": self._pod()},
        }
        return {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": self.metadata(self.release.fullname),
            "spec": spec,
        }

    def _pod(self) -> Manifest:
        value = self.value
        return {
            **_said(imagePullSecrets=value("imagePullSecrets")),
            "serviceAccountName": self.release.account,
            "automountServiceAccountToken": value("automountServiceAccountToken", False),
            **_said(
                runtimeClassName=value("runtimeClassName"),
                priorityClassName=value("priorityClassName"),
                securityContext=value("podSecurityContext"),
            ),
            "containers": [self._container()],
            **_said(
                volumes=value("volumes"),
                nodeSelector=value("nodeSelector"),
                affinity=value("affinity"),
                tolerations=value("tolerations"),
            ),
            "hostNetwork": value("hostNetwork"),
            **({"dnsPolicy": "ClusterFirstWithHostNet"} if value("hostNetwork") else {}),
            "hostPID": value("hostPID"),
        }

    def _container(self) -> Manifest:
        value = self.value
        port: Manifest = {"name": "http", "containerPort": value("port"), "protocol": "TCP"}
        if value("hostPort.enabled"):
            port["hostPort"] = value("hostPort.port")
        env = [
            {"name": "NVIDIA_VISIBLE_DEVICES", "value": value("nvidiaVisibleDevices")},
            {"name": "NVIDIA_DRIVER_CAPABILITIES", "value": value("nvidiaDriverCapabilities")},
        ]
        exclude = value("queryFieldNamesExclude")
        args = [
            *("--web.listen-address", f":{value('port', '')}"),
            *("--web.telemetry-path", value("telemetryPath")),
            *("--nvidia-smi-command", value("nvidiaSmiCommand")),
            *("--query-field-names", ",".join(value("queryFieldNames") or ())),
            *(("--query-field-names-exclude", ",".join(exclude)) if exclude else ()),
            *(("--collect.compute-apps",) if value("computeApps.enabled") else ()),
            *("--log.level", value("log.level")),
            *("--log.format", value("log.format")),
        ]
        return {
            "name": CHART,
            "image": f"{value('image.repository')}:{value('image.tag') or PROGRAM}",
            "imagePullPolicy": value("image.pullPolicy"),
            "env": [*env, *(value("extraEnv") or ())],
            "args": [*args, *(value("extraArgs") or ())],
            "ports": [port],
            **_said(
                securityContext=value("securityContext"),
                livenessProbe=value("livenessProbe"),
                readinessProbe=value("readinessProbe"),
                volumeMounts=value("volumeMounts"),
                resources=value("resources"),
            ),
        }

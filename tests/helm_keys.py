"""The keys of both charts' values as facts, to hold ours against; and the page's table of what becomes of each.

``python tests/helm_keys.py`` writes this table, those of the exporters' keys, and those of the deviations, into
docs/coming-from-helm.md.

Source: NVIDIA/k8s-device-plugin@v0.18.2, @v0.19.3 and @v0.20.0, deployments/helm/nvidia-device-plugin, with the bundled
charts of node-feature-discovery 0.17.3 and 0.19.0: every leaf of values.yaml, and what only templates read.
"""

from __future__ import annotations

from pathlib import Path

import dist
from gpu_constructs.device_plugin.helm import KEYS

PAGE = dist.ROOT / "docs" / "coming-from-helm.md"
OLD, MIDDLE, NEW = RELEASES = ("0.18.2", "0.19.3", "0.20.0")

_IN_ALL_VALUES = """
    config.name config.map config.default config.fallbackStrategies compatWithCPUManager migStrategy failOnInitError
    deviceListStrategy deviceIDStrategy nvidiaDriverRoot gdrcopyEnabled gdsEnabled mofedEnabled deviceDiscoveryStrategy
    nameOverride fullnameOverride namespaceOverride selectorLabelsOverride allowDefaultNamespace imagePullSecrets
    image.repository image.pullPolicy image.tag updateStrategy.type podAnnotations podSecurityContext securityContext
    resources nodeSelector affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms
    tolerations priorityClassName runtimeClassName devicePlugin.enabled gfd.enabled gfd.nameOverride
    gfd.namespaceOverride gfd.noTimestamp gfd.sleepInterval gfd.securityContext.privileged nfd.image.repository
    nfd.image.pullPolicy nfd.imagePullSecrets nfd.nameOverride nfd.fullnameOverride nfd.namespaceOverride
    nfd.priorityClassName nfd.master.enable nfd.master.extraArgs nfd.master.extraEnvs nfd.master.hostNetwork
    nfd.master.config.extraLabelNs nfd.master.instance nfd.master.resyncPeriod nfd.master.denyLabelNs
    nfd.master.extraLabelNs nfd.master.enableTaints nfd.master.nfdApiParallelism nfd.master.deploymentAnnotations
    nfd.master.replicaCount nfd.master.podSecurityContext nfd.master.securityContext.allowPrivilegeEscalation
    nfd.master.securityContext.capabilities.drop nfd.master.securityContext.readOnlyRootFilesystem
    nfd.master.securityContext.runAsNonRoot nfd.master.serviceAccount.create nfd.master.serviceAccount.annotations
    nfd.master.serviceAccount.name nfd.master.revisionHistoryLimit nfd.master.rbac.create
    nfd.master.resources.limits.memory nfd.master.resources.requests.cpu nfd.master.resources.requests.memory
    nfd.master.nodeSelector nfd.master.tolerations nfd.master.annotations
    nfd.master.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution
    nfd.master.startupProbe.failureThreshold nfd.master.readinessProbe.failureThreshold nfd.worker.enable
    nfd.worker.extraArgs nfd.worker.extraEnvs nfd.worker.hostNetwork nfd.worker.config.sources.pci.deviceClassWhitelist
    nfd.worker.config.sources.pci.deviceLabelFields nfd.worker.daemonsetAnnotations nfd.worker.podSecurityContext
    nfd.worker.securityContext.allowPrivilegeEscalation nfd.worker.securityContext.capabilities.drop
    nfd.worker.securityContext.readOnlyRootFilesystem nfd.worker.securityContext.runAsNonRoot
    nfd.worker.livenessProbe.initialDelaySeconds nfd.worker.readinessProbe.initialDelaySeconds
    nfd.worker.readinessProbe.failureThreshold nfd.worker.serviceAccount.create nfd.worker.serviceAccount.annotations
    nfd.worker.serviceAccount.name nfd.worker.revisionHistoryLimit nfd.worker.rbac.create nfd.worker.mountUsrSrc
    nfd.worker.resources.limits.memory nfd.worker.resources.requests.cpu nfd.worker.resources.requests.memory
    nfd.worker.nodeSelector nfd.worker.tolerations nfd.worker.annotations nfd.worker.affinity
    nfd.worker.priorityClassName nfd.topologyUpdater.config nfd.topologyUpdater.enable nfd.topologyUpdater.createCRDs
    nfd.topologyUpdater.extraArgs nfd.topologyUpdater.extraEnvs nfd.topologyUpdater.hostNetwork
    nfd.topologyUpdater.serviceAccount.create nfd.topologyUpdater.serviceAccount.annotations
    nfd.topologyUpdater.serviceAccount.name nfd.topologyUpdater.revisionHistoryLimit nfd.topologyUpdater.rbac.create
    nfd.topologyUpdater.kubeletConfigPath nfd.topologyUpdater.kubeletPodResourcesSockPath
    nfd.topologyUpdater.updateInterval nfd.topologyUpdater.watchNamespace nfd.topologyUpdater.kubeletStateDir
    nfd.topologyUpdater.podSecurityContext nfd.topologyUpdater.securityContext.allowPrivilegeEscalation
    nfd.topologyUpdater.securityContext.capabilities.drop nfd.topologyUpdater.securityContext.readOnlyRootFilesystem
    nfd.topologyUpdater.securityContext.runAsUser nfd.topologyUpdater.livenessProbe.initialDelaySeconds
    nfd.topologyUpdater.readinessProbe.initialDelaySeconds nfd.topologyUpdater.readinessProbe.failureThreshold
    nfd.topologyUpdater.resources.limits.memory nfd.topologyUpdater.resources.requests.cpu
    nfd.topologyUpdater.resources.requests.memory nfd.topologyUpdater.nodeSelector nfd.topologyUpdater.tolerations
    nfd.topologyUpdater.annotations nfd.topologyUpdater.daemonsetAnnotations nfd.topologyUpdater.affinity
    nfd.topologyUpdater.podSetFingerprint nfd.gc.enable nfd.gc.extraArgs nfd.gc.extraEnvs nfd.gc.hostNetwork
    nfd.gc.replicaCount nfd.gc.serviceAccount.create nfd.gc.serviceAccount.annotations nfd.gc.serviceAccount.name
    nfd.gc.rbac.create nfd.gc.interval nfd.gc.podSecurityContext nfd.gc.resources.limits.memory
    nfd.gc.resources.requests.cpu nfd.gc.resources.requests.memory nfd.gc.nodeSelector nfd.gc.tolerations
    nfd.gc.annotations nfd.gc.deploymentAnnotations nfd.gc.affinity nfd.gc.revisionHistoryLimit nfd.prometheus.enable
    nfd.prometheus.scrapeInterval nfd.prometheus.labels mps.root mps.enableHostPID cdi.nvidiaHookPath cdi.featureFlags
""".split()
_IN_VALUES = {
    OLD: """
    nfd.featureGates.NodeFeatureGroupAPI nfd.master.metricsPort nfd.master.healthPort nfd.master.featureApi
    nfd.master.featureRulesController nfd.master.startupProbe.grpc.port nfd.master.livenessProbe.grpc.port
    nfd.master.readinessProbe.grpc.port nfd.worker.metricsPort nfd.worker.healthPort nfd.worker.livenessProbe.grpc.port
    nfd.worker.readinessProbe.grpc.port nfd.topologyUpdater.metricsPort nfd.topologyUpdater.healthPort
    nfd.topologyUpdater.livenessProbe.grpc.port nfd.topologyUpdater.readinessProbe.grpc.port nfd.gc.metricsPort
    nfd.enableNodeFeatureApi
    """.split(),
    NEW: """
    nfd.image.tag nfd.featureGates nfd.checksumValuesOnly nfd.postDeleteCleanup nfd.global.imagePullSecrets
    nfd.master.hostUsers nfd.master.dnsPolicy nfd.master.port nfd.master.initContainers
    nfd.master.podDisruptionBudget.enable nfd.master.podDisruptionBudget.minAvailable
    nfd.master.podDisruptionBudget.unhealthyPodEvictionPolicy nfd.master.networkPolicy.enabled
    nfd.master.networkPolicy.egress nfd.master.networkPolicy.ingress nfd.master.labels
    nfd.master.startupProbe.initialDelaySeconds nfd.master.startupProbe.timeoutSeconds
    nfd.master.startupProbe.periodSeconds nfd.master.livenessProbe.initialDelaySeconds
    nfd.master.livenessProbe.timeoutSeconds nfd.master.livenessProbe.periodSeconds
    nfd.master.livenessProbe.failureThreshold nfd.master.readinessProbe.initialDelaySeconds
    nfd.master.readinessProbe.timeoutSeconds nfd.master.readinessProbe.periodSeconds
    nfd.master.readinessProbe.successThreshold nfd.worker.ownerRefs nfd.worker.hostUsers nfd.worker.dnsPolicy
    nfd.worker.port nfd.worker.initContainers nfd.worker.livenessProbe.timeoutSeconds
    nfd.worker.livenessProbe.periodSeconds nfd.worker.livenessProbe.failureThreshold
    nfd.worker.readinessProbe.timeoutSeconds nfd.worker.readinessProbe.periodSeconds
    nfd.worker.readinessProbe.successThreshold nfd.worker.labels nfd.worker.updateStrategy.rollingUpdate.maxUnavailable
    nfd.worker.networkPolicy.enabled nfd.worker.networkPolicy.egress nfd.worker.networkPolicy.ingress
    nfd.topologyUpdater.hostUsers nfd.topologyUpdater.dnsPolicy nfd.topologyUpdater.port
    nfd.topologyUpdater.initContainers nfd.topologyUpdater.livenessProbe.timeoutSeconds
    nfd.topologyUpdater.livenessProbe.periodSeconds nfd.topologyUpdater.livenessProbe.failureThreshold
    nfd.topologyUpdater.readinessProbe.timeoutSeconds nfd.topologyUpdater.readinessProbe.periodSeconds
    nfd.topologyUpdater.readinessProbe.successThreshold nfd.topologyUpdater.labels
    nfd.topologyUpdater.networkPolicy.enabled nfd.topologyUpdater.networkPolicy.egress
    nfd.topologyUpdater.networkPolicy.ingress nfd.gc.hostUsers nfd.gc.dnsPolicy nfd.gc.initContainers
    nfd.gc.livenessProbe.initialDelaySeconds nfd.gc.livenessProbe.timeoutSeconds nfd.gc.livenessProbe.periodSeconds
    nfd.gc.livenessProbe.failureThreshold nfd.gc.readinessProbe.initialDelaySeconds nfd.gc.readinessProbe.timeoutSeconds
    nfd.gc.readinessProbe.periodSeconds nfd.gc.readinessProbe.successThreshold nfd.gc.readinessProbe.failureThreshold
    nfd.gc.port nfd.gc.labels nfd.gc.podDisruptionBudget.enable nfd.gc.podDisruptionBudget.minAvailable
    nfd.gc.podDisruptionBudget.unhealthyPodEvictionPolicy nfd.gc.networkPolicy.enabled nfd.gc.networkPolicy.egress
    nfd.gc.networkPolicy.ingress
    """.split(),
}
_IN_TEMPLATES_OF_ALL = "namespace nfd.enabled noTimestamp nvidiaDevRoot sleepInterval".split()
_IN_VALUES[MIDDLE] = [path for path in _IN_VALUES[OLD] if path != "nfd.enableNodeFeatureApi"]
_PROBES_OF_OLD = {
    "master.startupProbe": "initialDelaySeconds timeoutSeconds periodSeconds",
    "master.livenessProbe": "initialDelaySeconds timeoutSeconds periodSeconds failureThreshold",
    "master.readinessProbe": "initialDelaySeconds timeoutSeconds periodSeconds successThreshold",
    "worker.livenessProbe": "timeoutSeconds periodSeconds failureThreshold",
    "worker.readinessProbe": "timeoutSeconds periodSeconds successThreshold",
    "topologyUpdater.livenessProbe": "timeoutSeconds periodSeconds failureThreshold",
    "topologyUpdater.readinessProbe": "timeoutSeconds periodSeconds successThreshold",
}
_IN_TEMPLATES = {
    OLD: [
        "nfd.image.tag",
        *(f"nfd.{probe}.{number}" for probe, numbers in _PROBES_OF_OLD.items() for number in numbers.split()),
    ],
    NEW: """
    devicePlugin.enableHostNetwork gfd.enableHostNetwork mps.enableHostNetwork global.imagePullSecrets
    nfd.master.podDisruptionBudget.maxUnavailable nfd.gc.podDisruptionBudget.maxUnavailable
    """.split(),
}
_IN_TEMPLATES[MIDDLE] = _IN_TEMPLATES[OLD]


def in_values(release: str) -> list[str]:
    """Every leaf of the values.yaml of a release, the sub-chart's among them."""
    return [*_IN_ALL_VALUES, *_IN_VALUES[release]]


def in_templates_only(release: str) -> list[str]:
    """What the templates of a release read besides."""
    return [*_IN_TEMPLATES_OF_ALL, *_IN_TEMPLATES[release]]


def known(release: str) -> dict[str, str]:
    """Our keys of a release: where each goes, or why nowhere."""
    return {path: key.to or key.why_not for path, key in KEYS.items() if release in (key.releases or RELEASES)}


def markdown() -> str:
    """The table of the page."""
    rows = ["| key | chart | where it goes |", "|---|---|---|"]
    for path, key in KEYS.items():
        to = key.to or f"refused: it {key.why_not}"
        rows.append(f"| `{path}` | {', '.join(key.releases) or 'all'} | {to} |")
    return "\n".join(rows)


def between(text: str, name: str) -> tuple[int, int]:
    """Where the marked place of that name begins and ends in a page."""
    start, end = f"<!-- {name} -->\n", f"\n<!-- /{name} -->"
    return text.index(start) + len(start), text.index(end)


def write(page: Path = PAGE) -> None:
    """Put the tables into the page."""
    import deviations
    import exporter_deviations
    import exporter_keys
    import smi_deviations
    import smi_keys

    text = page.read_text(encoding="utf-8")
    for name, table in (
        ("keys", markdown()),
        ("deviations", deviations.markdown().rstrip("\n")),
        ("exporter-keys", exporter_keys.markdown()),
        ("exporter-deviations", exporter_deviations.markdown().rstrip("\n")),
        ("smi-keys", smi_keys.markdown()),
        ("smi-deviations", smi_deviations.markdown().rstrip("\n")),
    ):
        start, end = between(text, name)
        text = text[:start] + table + text[end:]
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()

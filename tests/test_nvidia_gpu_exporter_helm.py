"""The values of nvidia_gpu_exporter's chart: every key goes where it should, or is refused with the reason."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml
from cdk8s import App, Chart, Testing
from constructs import Construct

import invariants
from gpu_constructs import GpuConstructsError, GpuConstructsWarning, Talos, Unverified
from gpu_constructs.observability.nvidia_gpu_exporter import NvidiaGpuExporter
from gpu_constructs.observability.nvidia_gpu_exporter_helm import KEYS

NAME = "nvidia-gpu-exporter"
REPOSITORY = "docker.io/utkuozdemir/nvidia_gpu_exporter"

# utkuozdemir/nvidia_gpu_exporter@v1.14.0:charts/nvidia-gpu-exporter/values.yaml
DEFAULTS = yaml.safe_load("""
image: {repository: docker.io/utkuozdemir/nvidia_gpu_exporter, pullPolicy: IfNotPresent, tag: ''}
runtimeClassName: ''
nvidiaVisibleDevices: all
nvidiaDriverCapabilities: utility
extraEnv: []
port: 9835
telemetryPath: /metrics
nvidiaSmiCommand: nvidia-smi
queryFieldNames: [AUTO]
queryFieldNamesExclude: []
computeApps: {enabled: false}
log: {level: info, format: logfmt}
livenessProbe:
  httpGet: {path: /-/healthy, port: http}
readinessProbe:
  httpGet: {path: /-/ready, port: http}
extraArgs: []
hostNetwork: false
hostPID: false
hostPort: {enabled: false, port: 9835}
service:
  enabled: true
  annotations: {}
  type: ClusterIP
  port: 9835
  nodePort: ''
serviceAccount:
  create: true
  annotations: {}
  name: ''
automountServiceAccountToken: false
serviceMonitor:
  enabled: false
  interval: 15s
  scrapeTimeout: ''
  scheme: http
  bearerTokenFile: ''
  tlsConfig: {}
  additionalLabels: {}
  relabelings: []
  metricRelabelings: []
podMonitor:
  enabled: false
  interval: 15s
  scrapeTimeout: ''
  additionalLabels: {}
  relabelings: []
  metricRelabelings: []
prometheusRule:
  enabled: false
  additionalLabels: {}
  collectionFailing: {enabled: true, for: 10m, severity: warning}
  collectionStale: {enabled: true, thresholdSeconds: 300, severity: warning}
  collectionSlow: {enabled: true, thresholdSeconds: 5}
  recoveryAction: {enabled: true}
  xidCritical:
    enabled: true
    codes: [48, 62, 64, 74, 79, 95, 119, 120]
  xidWarning:
    enabled: true
    codes: [94]
  uncorrectableEcc: {enabled: true}
  rowRemapFailure: {enabled: true}
  rowRemapPending: {enabled: true}
  retiredPagesPending: {enabled: true}
  thermalSlowdown: {enabled: true}
  swThermalSlowdown: {enabled: false}
  powerBrake: {enabled: true}
  temperatureHigh: {enabled: false, thresholdCelsius: 85}
  gpuMissing: {enabled: false}
grafanaDashboard:
  enabled: false
  label: grafana_dashboard
  labelValue: '1'
  annotations: {}
podAnnotations: {}
podLabels: {}
podSecurityContext: {}
securityContext: {}
resources: {}
volumes: []
volumeMounts: []
nodeSelector: {kubernetes.io/os: linux}
tolerations: []
affinity: {}
priorityClassName: ''
updateStrategy:
  type: RollingUpdate
  rollingUpdate: {maxUnavailable: 1}
revisionHistoryLimit: ''
imagePullSecrets: []
test:
  image: {repository: docker.io/library/busybox, tag: '1.38', pullPolicy: IfNotPresent}
nameOverride: ''
fullnameOverride: ''
""")


def made(values, *, scope=None, strict=True, release=NAME, namespace="monitoring", **given):
    return NvidiaGpuExporter.from_helm_values(
        scope or Chart(App(), "gpu"),
        "exporter",
        values,
        release_name=release,
        namespace=namespace,
        strict=strict,
        **given,
    )


def rendered(values, **given):
    """The objects by kind."""
    manifests = Testing.synth(Chart.of(made(values, **given)))
    invariants.hold_for(manifests)
    kinds = [m["kind"] for m in manifests]
    assert len(kinds) == len(set(kinds))
    return dict(zip(kinds, manifests, strict=True))


def refusal(values, **given):
    with pytest.raises(GpuConstructsError) as refused:
        made(values, **given)
    (line,) = str(refused.value).splitlines()
    assert line.startswith("gpu/exporter: ")
    return line.removeprefix("gpu/exporter: ")


def dropped(values, **given):
    """What is warned of, and what is made all the same."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        objects = rendered(values, strict=False, **given)
    assert {warning.category for warning in caught} <= {GpuConstructsWarning}
    return [str(warning.message) for warning in caught], objects


def nested(path: str, value: Any) -> Any:
    for word in reversed(path.split(".")):
        value = {word: value}
    return value


def leaves(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        path = f"{prefix}{key}"
        if isinstance(value, Mapping) and path not in KEYS:
            yield from leaves(value, f"{path}.")
        else:
            yield path, value


def pod_of(values, **given):
    return rendered(values, **given)["DaemonSet"]["spec"]["template"]["spec"]


def container_of(values, **given):
    (only,) = pod_of(values, **given)["containers"]
    return only


def flags_of(values, **given):
    said: dict[str, Any] = {}
    words = container_of(values, **given)["args"]
    while words:
        flag, *words = words
        said[flag] = words.pop(0) if words and not words[0].startswith("--") else True
    return said


# --- every key ---------------------------------------------------------------------------------------------------


def test_the_keys_are_those_of_the_charts_values():
    # Helm itself gives a chart this one.
    assert {path for path, _ in leaves(DEFAULTS)} == set(KEYS) - {"global"}


def test_every_default_that_matters_is_the_charts():
    chart = dict(leaves(DEFAULTS))
    assert {path: key.default for path, key in KEYS.items() if key.default not in (None, {}, [])} == {
        path: chart[path] for path, key in KEYS.items() if key.default not in (None, {}, [])
    }


def test_the_charts_own_values_say_nothing():
    assert rendered(DEFAULTS) == rendered({})


@pytest.mark.parametrize("path", KEYS)
def test_a_key_goes_somewhere_or_says_why_not(path):
    key = KEYS[path]
    assert bool(key.to) != bool(key.why_not)


ODD: tuple[Any, ...] = (
    *(True, False, 7, -1, 1.5, "", "x", "Not A Name", "/x", "5s", None, [], ["x"], [1], {}, {"a": "b"}, {"a b": 1}),
    *([{}], [{"name": ["x"]}], [{"name": "x", "mountPath": 1}], [{"name": "A", "value": {}}], {"type": ["x"]}),
)


@pytest.mark.parametrize("path", KEYS)
def test_without_strictness_nothing_that_is_said_stops_it(path):
    section, _, key = path.partition(".")
    is_on = {section: {"enabled": True}} if section.endswith("Monitor") else {}
    chart = Chart(App(), "gpu")
    for number, odd in enumerate(ODD):
        values = {section: {**is_on.get(section, {}), key: odd}} if is_on else nested(path, odd)
        with warnings.catch_warnings(action="ignore"):
            made(values, strict=False, scope=Construct(chart, str(number)))


@pytest.mark.parametrize("odd", ODD)
def test_without_strictness_no_volume_stops_it(odd):
    with warnings.catch_warnings(action="ignore"):
        made({"volumes": [{"name": "x", "emptyDir": {}}], "volumeMounts": odd}, strict=False)
        made({"volumes": odd, "volumeMounts": [{"name": "x", "mountPath": "/x"}]}, strict=False)


def test_without_strictness_the_worst_file_still_gives_a_working_exporter():
    for odd in ("x", 7, ["x"], {"a": "b"}, True):
        values: dict[str, Any] = {}
        for path in KEYS:
            section = values
            *sections, last = path.split(".")
            for word in sections:
                section = section.setdefault(word, {})
            section[last] = odd
        _, objects = dropped(values)
        assert objects["DaemonSet"]["kind"] == "DaemonSet"


@pytest.mark.parametrize("path", [path for path, key in KEYS.items() if key.why_not])
def test_a_key_that_goes_nowhere_is_refused_with_the_reason(path):
    assert refusal(nested(path, "x")) == f"values.{path} {KEYS[path].why_not}; or pass strict=False to drop it"
    assert dropped(nested(path, "x"))[1] == rendered({})


def test_a_word_that_is_no_key_is_refused_with_the_nearest():
    assert "did you mean 'runtimeClassName'?" in refusal({"runtimeClass": "nvidia"})


# --- where they go -----------------------------------------------------------------------------------------------


def test_nothing_said_makes_what_the_chart_makes():
    assert set(rendered({})) == {"DaemonSet", "Service"}
    assert {m["metadata"]["name"] for m in rendered({}).values()} == {NAME}
    assert {m["metadata"]["namespace"] for m in rendered({}, namespace="default").values()} == {"default"}


def test_a_rich_file(objects, snapshot):
    values = yaml.safe_load("""
    image: {repository: registry.example/exporter, tag: 1.14.0-nvml, pullPolicy: Always}
    runtimeClassName: nvidia
    extraEnv: [{name: GOMEMLIMIT, value: 200MiB}, {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]
    port: 9900
    telemetryPath: /gpu
    queryFieldNames: ["power.draw,power.limit", utilization.gpu]
    queryFieldNamesExclude: [remapped_rows.histogram.*]
    computeApps: {enabled: true}
    hostPID: true
    log: {level: debug, format: json}
    extraArgs: [--collect.interval=30s, --collect.timeout, 20s, --collect.pcie-throughput, --collect.compute-apps-mig]
    service: {port: 9900, type: NodePort, annotations: {team: gpu}}
    serviceAccount: {create: false, name: puller}
    serviceMonitor:
      enabled: true
      interval: 1m
      scrapeTimeout: 20s
      additionalLabels: {release: kube-prometheus-stack}
      relabelings: [{sourceLabels: [__meta_kubernetes_pod_node_name], targetLabel: instance}]
      metricRelabelings: [{action: LabelDrop, regex: vbios_version}]
    grafanaDashboard: {enabled: false}
    podAnnotations: {note: x}
    podLabels: {team: gpu}
    podSecurityContext: {fsGroup: 1}
    securityContext: {runAsUser: 0}
    resources: {limits: {memory: 1Gi}}
    volumes: [{name: captures, configMap: {name: captures}}]
    volumeMounts: [{name: captures, mountPath: /captures, readOnly: true}]
    nodeSelector: {pool: gpu}
    tolerations: [{operator: Exists}]
    affinity: {nodeAffinity: {}}
    priorityClassName: high
    updateStrategy: {rollingUpdate: {maxUnavailable: 2}}
    imagePullSecrets: [{name: registry}]
    fullnameOverride: smi
    """)
    assert objects(Chart.of(made(values))) == snapshot


MONITORS = {
    "enabled": True,
    "interval": "1m",
    "scrapeTimeout": "3s",
    "additionalLabels": {"release": "x"},
    "relabelings": [{"action": "keep", "sourceLabels": ["a"]}],
    "metricRelabelings": [{"action": "keep", "sourceLabels": ["a"]}],
}
ANOTHER: dict[str, Any] = {
    "image.repository": "mirror.example/smi",
    "image.pullPolicy": "Never",
    "image.tag": "1.14.1",
    "runtimeClassName": "own",
    "extraEnv": [{"name": "A", "value": "b"}],
    "port": 9900,
    "telemetryPath": "/gpu",
    "nvidiaSmiCommand": "sudo nvidia-smi",
    "queryFieldNames": ["power.draw"],
    "queryFieldNamesExclude": ["fan.speed"],
    "computeApps.enabled": True,
    "log.level": "warn",
    "log.format": "json",
    "extraArgs": ["--collect.interval=20s"],
    "hostNetwork": True,
    "hostPID": True,
    "service.enabled": False,
    "service.annotations": {"a": "b"},
    "service.type": "LoadBalancer",
    "service.port": 9900,
    "serviceAccount.create": False,
    "serviceAccount.name": "puller",
    **{f"{section}.{key}": value for section in ("serviceMonitor", "podMonitor") for key, value in MONITORS.items()},
    "grafanaDashboard.enabled": True,
    "podAnnotations": {"a": "b"},
    "podLabels": {"a": "b"},
    "podSecurityContext": {"fsGroup": 1},
    "securityContext": {"runAsUser": 1},
    "resources": {"limits": {"memory": "1Gi"}},
    "volumes": [{"name": "x", "emptyDir": {}}],
    "volumeMounts": [{"name": "x", "mountPath": "/x"}],
    "nodeSelector": {"a": "b"},
    "tolerations": [{"operator": "Exists"}],
    "affinity": {"podAffinity": {}},
    "priorityClassName": "high",
    "updateStrategy": {"type": "OnDelete"},
    "imagePullSecrets": [{"name": "x"}],
    "nameOverride": "smi",
    "fullnameOverride": "smi",
}
# Keys that only say something together.
TOGETHER = (
    ("computeApps.enabled", "hostPID"),
    ("port", "service.port"),
    ("serviceAccount.create", "serviceAccount.name"),
    ("volumes", "volumeMounts"),
)


def test_another_value_is_known_for_every_key_that_goes_somewhere():
    assert set(ANOTHER) == {path for path, key in KEYS.items() if key.to}


@pytest.mark.parametrize("path", ANOTHER)
def test_a_key_that_goes_somewhere_changes_what_is_made(path):
    section = path.partition(".")[0]
    base = [f"{section}.enabled"] if section in ("serviceMonitor", "podMonitor") else []
    given = {path, *(other for both in TOGETHER if path in both for other in both)}
    told, without = {}, {}
    for values, paths in ((told, {*base, *given}), (without, {*base} - given)):
        for each in paths:
            *sections, last = each.split(".")
            inner = values
            for word in sections:
                inner = inner.setdefault(word, {})
            inner[last] = ANOTHER[each]
    assert rendered(told) != rendered(without)


def test_no_right_is_given_for_what_is_dropped():
    for values in ({"computeApps": {"enabled": True}}, {"hostPID": True}):
        assert dropped(values)[1] == rendered({})


@pytest.mark.parametrize(
    ("values", "release", "name"),
    [
        ({}, "nvidia-gpu-exporter", "nvidia-gpu-exporter"),
        ({}, "gpu", "gpu-nvidia-gpu-exporter"),
        ({"nameOverride": "smi"}, "gpu", "gpu-smi"),
        ({"nameOverride": "smi"}, "smi-1", "smi-1"),
        ({"fullnameOverride": "smi"}, "gpu", "smi"),
    ],
)
def test_names_are_made_as_the_chart_makes_them(values, release, name):
    assert {m["metadata"]["name"] for m in rendered(values, release=release).values()} == {name}


@pytest.mark.parametrize(
    ("image", "expected", "backend"),
    [
        ({}, f"{REPOSITORY}:1.14.0", "exec"),
        ({"tag": "1.14.0-nvml"}, f"{REPOSITORY}:1.14.0-nvml", "nvml"),
        ({"repository": "mirror.example/smi"}, "mirror.example/smi:1.14.0", "exec"),
        ({"repository": "mirror.example/smi", "tag": "2-nvml"}, "mirror.example/smi:2-nvml", "nvml"),
    ],
)
def test_the_image_says_the_backend(image, expected, backend):
    assert container_of({"image": image})["image"] == expected
    assert flags_of({"image": image})["--collect.backend"] == backend


def test_a_flag_says_the_backend_before_the_image_does():
    values = {"image": {"tag": "1.14.0-nvml"}, "extraArgs": ["--collect.backend", "exec"]}
    assert container_of(values)["image"] == f"{REPOSITORY}:1.14.0-nvml"
    assert flags_of(values)["--collect.backend"] == "exec"


def test_an_unverified_release_keeps_its_image():
    version = Unverified("1.15.0", like="1.14.0", image="registry.example/smi:1.15.0")
    assert container_of({}, version=version)["image"] == "registry.example/smi:1.15.0"


def test_the_platform_adds_what_the_values_leave_open():
    assert pod_of({}, platform=Talos("1.12"))["runtimeClassName"] == "nvidia"
    assert pod_of({"runtimeClassName": "own"}, platform=Talos("1.12"))["runtimeClassName"] == "own"
    assert "runtimeClassName" not in pod_of({})


def test_a_null_takes_the_charts_node_selector_away():
    assert pod_of({})["nodeSelector"] == {"kubernetes.io/os": "linux", "nvidia.com/gpu.present": "true"}
    assert pod_of({"nodeSelector": None})["nodeSelector"] == {"nvidia.com/gpu.present": "true"}


def test_pods_that_are_replaced_by_hand_carry_no_numbers():
    strategy = rendered({"updateStrategy": {"type": "OnDelete"}})["DaemonSet"]["spec"]["updateStrategy"]
    assert strategy == {"type": "OnDelete"}


@pytest.mark.parametrize("kind", ["ServiceMonitor", "PodMonitor"])
def test_a_monitor_keeps_the_labels_that_the_chart_leaves_and_says_the_node(kind):
    section = kind[0].lower() + kind[1:]
    spec = rendered({section: {"enabled": True}})[kind]["spec"]
    (endpoint,) = spec.get("endpoints") or spec["podMetricsEndpoints"]
    assert (endpoint["interval"], endpoint["scrapeTimeout"], endpoint["honorLabels"]) == ("15s", "10s", False)
    assert "labeldrop" not in [step["action"] for step in endpoint["relabelings"]]
    assert "node" in [step.get("targetLabel") for step in endpoint["relabelings"]]


@pytest.mark.parametrize(
    ("interval", "expected"), [("5s", ("5s", "5s")), ("2m", ("120s", "10s")), ("", ("30s", "10s"))]
)
def test_no_monitor_waits_longer_than_its_interval(interval, expected):
    values = {"serviceMonitor": {"enabled": True, "interval": interval}}
    (endpoint,) = rendered(values)["ServiceMonitor"]["spec"]["endpoints"]
    assert (endpoint["interval"], endpoint["scrapeTimeout"]) == expected


def test_the_dashboard_is_ours():
    assert rendered({"grafanaDashboard": {"enabled": True}})["ConfigMap"]["metadata"]["name"] == f"{NAME}-dashboard"


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        (
            {"computeApps": {"enabled": True}},
            "computeApps.enabled shows no process but the exporter's own without hostP",
        ),
        ({"hostPID": True}, "hostPID is a right that nothing uses without computeApps.enabled; leave it out"),
        ({"port": 9900}, "service.port must be the pods' port, 9900, as both are one here; got 9835"),
        ({"service": {"port": 80}}, "service.port must be the pods' port, 9835, as both are one here; got 80"),
        (
            {"service": {"enabled": False}, "serviceMonitor": {"enabled": True}},
            "service.enabled must be true with serviceMonitor.enabled",
        ),
        (
            {"serviceMonitor": {"enabled": True}, "podMonitor": {"enabled": True}},
            "podMonitor.enabled would have every GPU scraped twice",
        ),
        (
            {"serviceMonitor": {"enabled": True, "interval": "15"}},
            "serviceMonitor.interval cannot be taken over: serviceMo",
        ),
        (
            {"serviceMonitor": {"enabled": True, "interval": "15s", "scrapeTimeout": "20s"}},
            "serviceMonitor.scrapeTimeout cannot be taken over: scrape.scrape_timeout_seconds must be at most",
        ),
        (
            {"serviceMonitor": {"enabled": True, "relabelings": [{"action": "dropp"}]}},
            "serviceMonitor.relabelings[0] cannot be taken over: relabeling.action must be one of",
        ),
        ({"serviceAccount": {"name": "x"}}, "serviceAccount.name is for a ServiceAccount, and none is made"),
        (
            {"queryFieldNames": ["power.drawn"]},
            "queryFieldNames cannot be taken over: query_field_names[0] must be a fie",
        ),
        ({"queryFieldNames": ["AUTO", "power.draw"]}, "queryFieldNames must be either 'AUTO' or names"),
        (
            {"queryFieldNamesExclude": ["uuid"]},
            "queryFieldNamesExclude cannot be taken over: query_field_names_exclude[0]",
        ),
        (
            {"extraEnv": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "0"}]},
            "extraEnv[0] cannot be taken over: variable must",
        ),
        (
            {"extraEnv": [{"name": "A", "value": 1}]},
            "extraEnv[0] cannot be taken over: value must be text, got 1; quote it",
        ),
        (
            {"extraArgs": ["--log.level=debug"]},
            "extraArgs[0] says --log.level a second time, at which the exporter ends",
        ),
        ({"extraArgs": ["--web.config.file=/x"]}, "extraArgs[0] is tls=Tls(...) and basic_auth=BasicAuth(...) here"),
        (
            {"extraArgs": ["--web.max-requests=1"]},
            "extraArgs[0] says '--web.max-requests=1', for which there is no keyword",
        ),
        (
            {"extraArgs": ["--collect.backend=demo"]},
            "extraArgs[0] says '--collect.backend=demo', for which there is no",
        ),
        (
            {"extraArgs": ["--collect.pcie-throughput"]},
            "extraArgs asks for pcie_throughput, which needs the NVML backend",
        ),
        (
            {"extraArgs": ["--collect.interval=1500ms"]},
            "extraArgs[0] cannot be taken over: collect.interval must be whole",
        ),
        ({"extraArgs": ["--collect.timeout=20s"]}, "extraArgs lets a reading take longer than an answer may"),
        (
            {"extraArgs": ["--collect.timeout=0"]},
            "extraArgs cannot be taken over: collect_timeout_seconds must be at least 1",
        ),
        (
            {"image": {"tag": "1.14.0-nvml"}, "nvidiaSmiCommand": "sudo nvidia-smi"},
            "nvidiaSmiCommand is not for the NVML backend",
        ),
        ({"volumes": [{"name": "x", "emptyDir": {}}]}, "volumes[0] is mounted by none of volumeMounts"),
        (
            {
                "volumes": [{"name": "x", "emptyDir": {}}],
                "volumeMounts": [{"name": "x", "mountPath": "/x", "subPath": "y"}],
            },
            "volumeMounts[0] cannot be taken over: mount key must be one of 'name', 'mountPath', 'readOnly'; got 'sub",
        ),
        ({"telemetryPath": "/-/ready"}, "telemetryPath cannot be taken over: telemetryPath must be a path like"),
        ({"log": {"level": "trace"}}, "log.level cannot be taken over: log.level must be one of"),
        ({"image": {"tag": "latest"}}, "image cannot be taken over: image must be pinned"),
        (
            {"prometheusRule": {"enabled": True}},
            "prometheusRule.enabled makes alerts, which are GpuAlerts(scope, id, exp",
        ),
    ],
)
def test_what_the_exporter_would_refuse_or_ignore_is_refused(values, problem):
    assert refusal(values).startswith(f"values.{problem}")
    said, objects = dropped(values)
    assert any(message.startswith(f"values.{problem.split()[0]} is dropped: it ") for message in said)
    assert "DaemonSet" in objects


def test_what_the_dropped_rest_leaves_is_whole():
    _, objects = dropped({"serviceMonitor": {"enabled": True}, "service": {"enabled": False}})
    assert {"DaemonSet", "Service", "ServiceMonitor"} == set(objects)


@pytest.mark.parametrize("keyword", ["release_name", "namespace", "version", "strict"])
def test_arguments_of_another_type_are_refused(keyword):
    given: dict[str, Any] = {"release_name": "x", "namespace": "y", keyword: 3}
    with pytest.raises(GpuConstructsError, match=keyword):
        NvidiaGpuExporter.from_helm_values(Chart(App(), "gpu"), "exporter", {}, **given)

import copy
import inspect

import pytest

import parity_smi_conditions
import parity_smi_exporter
import smi_deviations
import smi_helm_like
from parity_compare import compare
from parity_smi_exporter import CHART, VERSION, SmiRelease, told

ALERTS = {"prometheusRule": {"enabled": True, "additionalLabels": {"release": "kps"}}}
MONITOR = {"serviceMonitor": {"enabled": True}}
PODS = {"podMonitor": {"enabled": True}}
DASHBOARD = {"grafanaDashboard": {"enabled": True}}
OTHER_LABEL = {"grafanaDashboard": {"enabled": True, "label": "dash", "annotations": {"folder": "GPU"}}}
NVML = {"image": {"tag": "1.14.0-nvml"}, "extraArgs": ["--collect.pcie-throughput", "--collect.interval=15s"]}
ON_DELETE = {"updateStrategy": {"type": "OnDelete", "rollingUpdate": {"maxUnavailable": 5}}}
LONG = {"fullnameOverride": "a" * 70}
ACCESS = {
    "serviceMonitor": {
        "enabled": True,
        "scheme": "https",
        "bearerTokenFile": "/var/token",
        "tlsConfig": {"insecureSkipVerify": True},
    }
}
BOTH = {**MONITOR, "podMonitor": {"enabled": True, "scrapeTimeout": "5s", "additionalLabels": {"release": "kps"}}}
NULLS = {
    "nvidiaVisibleDevices": None,
    "nvidiaDriverCapabilities": None,
    "nvidiaSmiCommand": None,
    "queryFieldNames": None,
    "log": {"level": None, "format": None},
    "service": {"port": None},
}
FIXED = {
    "nvidiaVisibleDevices": "0,1",
    "livenessProbe": {"httpGet": {"path": "/x", "port": "http"}, "periodSeconds": 7, "initialDelaySeconds": 4},
    "readinessProbe": {"tcpSocket": {"port": "http"}},
    "hostPort": {"enabled": True},
    "service": {"type": "NodePort", "nodePort": 30999},
    "automountServiceAccountToken": True,
    "revisionHistoryLimit": 3,
}
ANSWERED = {
    "extraEnv": [{"name": "FOO", "value": "bar"}],
    "extraArgs": ["--collect.timeout", "12s"],
    "podLabels": {"team": "ml"},
    "tolerations": [{"key": "dedicated", "operator": "Exists"}],
}
EVERYTHING = {
    **ANSWERED,
    **DASHBOARD,
    "image": {"repository": "registry.local/exporter", "tag": "1", "pullPolicy": "Always"},
    "runtimeClassName": "nvidia",
    "fullnameOverride": "gpu-smi",
    "port": 9900,
    "telemetryPath": "/gpu/metrics",
    "queryFieldNames": ["uuid", "name,index", "power.draw"],
    "queryFieldNamesExclude": ["remapped_rows.histogram.*", "clocks.max.*"],
    "computeApps": {"enabled": True},
    "hostPID": True,
    "hostNetwork": True,
    "log": {"level": "debug", "format": "json"},
    "extraArgs": ["--collect.interval=1m30s", "--collect.timeout", "20s"],
    "service": {"type": "NodePort", "port": 9900, "annotations": {"a/b": "c"}},
    "serviceMonitor": {
        "enabled": True,
        "interval": "2m",
        "scrapeTimeout": "20s",
        "additionalLabels": {"release": "kps"},
        "relabelings": [{"sourceLabels": ["__meta_kubernetes_pod_name"], "targetLabel": "exporter"}],
        "metricRelabelings": [{"action": "Drop", "sourceLabels": ["__name__"], "regex": "nvidia_smi_bar.*"}],
    },
    "podAnnotations": {"x/y": "z"},
    "podSecurityContext": {"fsGroup": 1},
    "securityContext": {"runAsNonRoot": True, "capabilities": {"drop": ["ALL"]}},
    "resources": {"limits": {"memory": "128Mi"}, "requests": {"cpu": 0.1}},
    "volumes": [{"name": "v", "emptyDir": {}}],
    "volumeMounts": [{"name": "v", "mountPath": "/v", "readOnly": True}],
    "nodeSelector": {"nvidia.com/gpu.present": "true", "pool": "gpu"},
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]
            }
        }
    },
    "priorityClassName": "high",
    "updateStrategy": {"rollingUpdate": {"maxUnavailable": "25%"}},
    "imagePullSecrets": [{"name": "registry"}],
}
REFUSED = {
    "image": {"repository": "Bad Repo"},
    "runtimeClassName": "Not A Name",
    "telemetryPath": "/-/healthy",
    "queryFieldNames": ["uuid", "no.such.field"],
    "queryFieldNamesExclude": ["index", "ecc.*"],
    "computeApps": {"enabled": True},
    "extraArgs": ["--web.max-requests=10", "--log.level=debug", "positional", "--collect.interval=1.5s"],
    "extraEnv": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "1"}, {"name": "N", "value": 7}, {"value": "x"}],
    "service": {"port": 80, "annotations": {"bad key": "x"}},
    "serviceMonitor": {
        "enabled": True,
        "interval": "500ms",
        "scrapeTimeout": "90s",
        "additionalLabels": {"a b": "c"},
        "relabelings": [{"action": "bad"}, {"sourceLabels": ["a"], "targetLabel": "b"}],
    },
    "podLabels": {"app.kubernetes.io/version": "x"},
    "podAnnotations": {"a b": "c"},
    "podSecurityContext": {"nope": 1},
    "securityContext": {"nope": 2},
    "resources": {"limits": {"memory": "lots"}},
    "volumes": [{"name": "a", "emptyDir": {}}],
    "volumeMounts": [{"name": "missing", "mountPath": "/m"}],
    "nodeSelector": {"bad key": "v"},
    "tolerations": [{"key": "a", "operator": "Never"}, {"key": "ok", "operator": "Exists"}],
    "affinity": {"nope": {}},
    "priorityClassName": "Bad Name",
    "updateStrategy": {"rollingUpdate": {"maxSurge": 1}},
    "imagePullSecrets": ["a"],
    "serviceAccount": {"create": False, "name": "Bad Name"},
}


def result_of(values, *, chart=None, ours=None, warned=None):
    """Compare a render with what this library makes of the values, each after a change."""
    release = SmiRelease(
        release=smi_helm_like.RELEASE, namespace=smi_helm_like.NAMESPACE, version=VERSION, values=values
    )
    made, warnings = release.synthesize()
    rendered, made = smi_helm_like.render(values), copy.deepcopy(made)
    for change, manifests in ((chart, rendered), (ours, made)):
        if change is not None:
            change(manifests)
    return compare(
        release,
        told(rendered, release, is_ours=False),
        told(made, release, is_ours=True),
        warnings if warned is None else warned,
        smi_deviations,
    )


USED = {
    "N1": {},
    "N2": {},
    "N3": {},
    "N4": {},
    "N5": {},
    "N6": {},
    "N7": {},
    "N8": {},
    "N9": {},
    "N10": MONITOR,
    "N11": DASHBOARD,
    "N12": ON_DELETE,
    "N13": NULLS,
    "N30": ALERTS,
    "N31": ACCESS,
    "N32": BOTH,
    "N33": FIXED,
    "N34": REFUSED,
    "N35": {"global": {"x": 1}},
}


def test_every_deviation_has_a_case_that_shows_it_and_is_numbered_once():
    assert list(USED) == [deviation.number for deviation in smi_deviations.DEVIATIONS]


@pytest.mark.parametrize("number", USED)
def test_a_deviation_shows_in_a_case_and_explains_it(number):
    result = result_of(USED[number])
    assert result.unexplained == []
    assert number in {found for found, _ in (*result.intended, *result.dropped)}


@pytest.mark.parametrize(
    "values",
    [
        EVERYTHING,
        NVML,
        {**NVML, **PODS, "service": {"enabled": False}},
        {**NVML, "nodeSelector": {"kubernetes.io/arch": "arm64", "nvidia.com/gpu.present": "false"}},
        {**NVML, "nvidiaSmiCommand": "ssh host nvidia-smi"},
        LONG | MONITOR | DASHBOARD,
        OTHER_LABEL,
        {"grafanaDashboard": {"enabled": True, "labelValue": "yes"}},
        {"fullnameOverride": "a.b", **PODS, **DASHBOARD},
        {"nameOverride": "smi", **MONITOR, **DASHBOARD, **ALERTS},
        {"nodeSelector": None, "tolerations": None, "updateStrategy": None, "test": None},
        {"livenessProbe": None, "readinessProbe": None},
        {"podMonitor": {"enabled": True, "interval": "", "scrapeTimeout": "40s"}},
        {"podMonitor": {"enabled": True, "interval": ""}, "extraArgs": ["--collect.interval=45s"]},
        {"serviceMonitor": {"enabled": True, "interval": "5s"}},
        {"serviceMonitor": {"enabled": True}, "service": {"enabled": False}},
        {"service": {"enabled": False}},
        {"serviceAccount": {"create": False}},
        {"serviceAccount": {"create": False, "name": "mine"}},
        {"serviceAccount": {"name": "own", "annotations": {"a": "b"}}},
        {"hostPID": True},
        {"port": 9900},
        {"queryFieldNames": ["AUTO", "uuid"], "queryFieldNamesExclude": [" power.* ,x*"]},
        {"extraArgs": ["--collect.backend=demo", "--collect.timeout=100ms", "--no-collect.pcie-throughput"]},
        {"extraEnv": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]},
        {"prometheusRule": {"enabled": True, **{name: {"enabled": False} for name in parity_smi_exporter.ALERTS_ON}}},
        {"podSecurityContext": {"seccompProfile": {"type": "Unconfined"}}, "securityContext": {"privileged": True}},
        {"resources": {"limits": {"nvidia.com/gpu": 1}}, "test": {"image": {"tag": "1"}}},
    ],
)
def test_values_leave_nothing_unexplained(values):
    assert result_of(values).unexplained == []


def test_nothing_is_dropped_of_values_that_can_all_be_said():
    assert result_of({**EVERYTHING, "nodeSelector": None}).dropped == []


def test_a_refused_node_selector_leaves_the_charts_own():
    result = result_of({"nodeSelector": {"bad key": "v"}})
    assert not [d for _, d in result.intended if d.path[-1] == "[kubernetes.io/os]"]


def test_a_timeout_above_the_interval_that_nobody_said_is_dropped():
    (told,) = result_of({"podMonitor": {"enabled": True, "interval": "", "scrapeTimeout": "40s"}}).dropped
    assert told[1].startswith("values.podMonitor.scrapeTimeout is dropped: it must be at most 30s")


def test_the_program_runs_with_the_same_settings_whatever_is_written():
    result = result_of(EVERYTHING)
    assert not [d for _, d in result.intended if d.path[0] == "settings"]


def test_a_render_without_hooks_is_compared_as_well():
    def without_hooks(manifests):
        manifests[:] = [m for m in manifests if m["kind"] != "Pod"]

    assert result_of({}, chart=without_hooks).unexplained == []


# --- changes that no deviation may explain -----------------------------------------------------------------------


def find(manifests, kind, name):
    return next(m for m in manifests if m["kind"] == kind and name in (None, m["metadata"]["name"]))


def set_in(kind, *path, name=None):
    """Set what stands at a path: the last two parts are the member and its new value."""
    *parents, member, value = path

    def change(manifests):
        place = find(manifests, kind, name)
        for parent in parents:
            place = place[parent]
        place[member] = value

    return change


def without(kind):
    def change(manifests):
        manifests.remove(find(manifests, kind, None))

    return change


POD = ("spec", "template", "spec")
MAIN = (*POD, "containers", 0)


def said(word, other):
    """Change a word of the arguments."""

    def change(manifests):
        args = find(manifests, "DaemonSet", None)["spec"]["template"]["spec"]["containers"][0]["args"]
        args[args.index(word)] = other

    return change


def and_said(*words):
    def change(manifests):
        find(manifests, "DaemonSet", None)["spec"]["template"]["spec"]["containers"][0]["args"].extend(words)

    return change


def without_toleration(manifests):
    pod = find(manifests, "DaemonSet", None)["spec"]["template"]["spec"]
    pod["tolerations"] = [one for one in pod["tolerations"] if one.get("key") != "dedicated"]


def without_variable(manifests):
    main = find(manifests, "DaemonSet", None)["spec"]["template"]["spec"]["containers"][0]
    main["env"] = [one for one in main["env"] if one["name"] != "FOO"]


def another_object(manifests):
    manifests.append({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "other", "namespace": "gpu"}})


ENDPOINT = ("spec", "endpoints", 0)
POD_ENDPOINT = ("spec", "podMetricsEndpoints", 0)
SERVICE_PORT = ("spec", "ports", 0)
OURS = f"{CHART}.json"


@pytest.mark.parametrize(
    ("values", "chart", "ours", "path"),
    [
        ({}, set_in("Service", *SERVICE_PORT, "port", 9836), None, "spec.ports[http].port"),
        ({}, None, set_in("Service", *SERVICE_PORT, "targetPort", "other"), "spec.ports[http].targetPort"),
        ({}, set_in("Service", "spec", "type", "NodePort"), None, "exporter Service: spec.type"),
        ({}, set_in("DaemonSet", *MAIN, "ports", 0, "containerPort", 1), None, "ports[http].containerPort"),
        ({}, set_in("DaemonSet", *MAIN, "ports", 0, "hostPort", 9835), None, "ports[http].hostPort"),
        ({}, set_in("DaemonSet", *MAIN, "livenessProbe", "httpGet", "port", 1), None, "livenessProbe.httpGet.port"),
        ({}, set_in("DaemonSet", *MAIN, "readinessProbe", "httpGet", "path", "/"), None, "readinessProbe.httpGet.path"),
        ({}, set_in("DaemonSet", *MAIN, "livenessProbe", "periodSeconds", 6), None, "livenessProbe.periodSeconds"),
        ({}, None, set_in("DaemonSet", *MAIN, "livenessProbe", "periodSeconds", 6), "livenessProbe.periodSeconds"),
        ({}, None, set_in("DaemonSet", *MAIN, "startupProbe", "failureThreshold", 1), "startupProbe.failureThreshold"),
        ({}, set_in("DaemonSet", *MAIN, "image", "x:1"), None, ".image"),
        ({}, set_in("DaemonSet", *MAIN, "imagePullPolicy", "Always"), None, ".imagePullPolicy"),
        ({}, set_in("DaemonSet", *MAIN, "env", 0, "value", "0"), None, "env[NVIDIA_VISIBLE_DEVICES]"),
        ({}, set_in("DaemonSet", *MAIN, "resources", {"limits": {"cpu": "1"}}), None, "resources.limits[cpu]"),
        ({}, None, set_in("DaemonSet", *MAIN, "resources", "limits", "memory", "1Gi"), "resources.limits[memory]"),
        ({}, None, set_in("DaemonSet", *MAIN, "securityContext", "runAsUser", 0), "securityContext.runAsUser"),
        ({}, None, set_in("DaemonSet", *MAIN, "securityContext", "privileged", True), "securityContext.privileged"),
        ({}, set_in("DaemonSet", *MAIN, "securityContext", {"runAsUser": 0}), None, "securityContext.runAsUser"),
        ({}, set_in("DaemonSet", *POD, "hostPID", True), None, "pod.hostPID"),
        ({}, set_in("DaemonSet", *POD, "hostNetwork", True), None, "pod.hostNetwork"),
        ({}, set_in("DaemonSet", *POD, "priorityClassName", "high"), None, "pod.priorityClassName"),
        ({}, set_in("DaemonSet", *POD, "serviceAccountName", "other"), None, "pod.serviceAccountName"),
        ({}, set_in("DaemonSet", *POD, "automountServiceAccountToken", True), None, "automountServiceAccountToken"),
        ({}, set_in("DaemonSet", *POD, "nodeSelector", "a", "b"), None, "pod.nodeSelector[a]"),
        ({}, None, set_in("DaemonSet", *POD, "nodeSelector", "kubernetes.io/arch", "amd64"), "[kubernetes.io/arch]"),
        ({}, set_in("DaemonSet", "spec", "revisionHistoryLimit", 3), None, "spec.revisionHistoryLimit"),
        ({}, set_in("DaemonSet", "spec", "updateStrategy", "rollingUpdate", "maxSurge", 1), None, "rollingUpdate"),
        ({}, said(":9835", ":9836"), None, "settings.web-listen-address"),
        ({}, None, said("exec", "nvml"), "settings.collect-backend"),
        ({}, None, said("10s", "11s"), "settings.collect-timeout"),
        ({}, said("nvidia-smi", "other"), None, "settings.nvidia-smi-command"),
        ({}, said("AUTO", "uuid"), None, "settings.query-field-names"),
        ({}, said("info", "debug"), None, "settings.log-level"),
        ({}, and_said("--collect.compute-apps"), None, "settings.collect-compute-apps"),
        ({}, and_said("--web.max-requests=1"), None, "settings.web-max-requests"),
        ({}, and_said("--log.level", "info"), None, "settings.log-level"),
        ({}, and_said("positional"), None, "args[0]"),
        ({}, without("Service"), None, "exporter Service"),
        ({}, None, without("Service"), "exporter Service"),
        ({}, None, without("DaemonSet"), "exporter DaemonSet"),
        ({}, without("ServiceAccount"), None, "account ServiceAccount"),
        ({}, set_in("ServiceAccount", "automountServiceAccountToken", True), None, "account ServiceAccount"),
        ({}, another_object, None, "other Secret"),
        ({}, set_in("Pod", "spec", "hostNetwork", True), None, "test Pod: spec.hostNetwork"),
        (
            {},
            set_in("Pod", "spec", "containers", 0, "args", ["rm -rf /"]),
            None,
            "test Pod: spec.containers[wget].args",
        ),
        ({}, set_in("DaemonSet", "metadata", "namespace", "other"), None, "exporter DaemonSet: metadata.namespace"),
        ({}, None, set_in("Service", "metadata", "namespace", "other"), "exporter Service: metadata.namespace"),
        (ANSWERED, without_toleration, None, 'pod.tolerations[{"key":"dedicated"'),
        (ANSWERED, None, without_toleration, 'pod.tolerations[{"key":"dedicated"'),
        (ANSWERED, without_variable, None, "env[FOO]"),
        (ANSWERED, None, without_variable, "env[FOO]"),
        (ANSWERED, None, said("12s", "10s"), "settings.collect-timeout"),
        (
            ANSWERED,
            set_in("DaemonSet", "spec", "template", "metadata", "labels", "team", "x"),
            None,
            "pod.labels[team]",
        ),
        (MONITOR, set_in("ServiceMonitor", *ENDPOINT, "path", "/m"), None, "endpoints[0].path"),
        (MONITOR, set_in("ServiceMonitor", *ENDPOINT, "port", "other"), None, "endpoints[0].port"),
        (MONITOR, set_in("ServiceMonitor", *ENDPOINT, "interval", "20s"), None, "endpoints[0].interval"),
        (MONITOR, set_in("ServiceMonitor", *ENDPOINT, "scheme", "https"), None, "endpoints[0].scheme"),
        (MONITOR, None, set_in("ServiceMonitor", *ENDPOINT, "honorLabels", True), "endpoints[0].honorLabels"),
        (MONITOR, None, set_in("ServiceMonitor", *ENDPOINT, "scrapeTimeout", "9s"), "endpoints[0].scrapeTimeout"),
        (MONITOR, None, set_in("ServiceMonitor", *ENDPOINT, "relabelings", 0, "targetLabel", "x"), "relabelings[0]"),
        (MONITOR, None, set_in("ServiceMonitor", "spec", "namespaceSelector", {"any": True}), "namespaceSelector.any"),
        (MONITOR, None, without("ServiceMonitor"), "exporter ServiceMonitor"),
        (PODS, set_in("PodMonitor", *POD_ENDPOINT, "port", "other"), None, "podMetricsEndpoints[0].port"),
        (PODS, None, set_in("PodMonitor", *POD_ENDPOINT, "relabelings", 1, "replacement", "x"), "relabelings[1]"),
        (
            BOTH,
            set_in("PodMonitor", *POD_ENDPOINT, "scrapeTimeout", "6s"),
            None,
            "podMetricsEndpoints[0].scrapeTimeout",
        ),
        (DASHBOARD, set_in("ConfigMap", "data", "more", "x"), None, "dashboard ConfigMap: data.more"),
        (DASHBOARD, None, set_in("ConfigMap", "data", OURS, "x"), f"dashboard ConfigMap: data.{OURS}"),
        (DASHBOARD, set_in("ConfigMap", "metadata", "labels", "grafana_dashboard", "2"), None, "[grafana_dashboard]"),
        (DASHBOARD, None, without("ConfigMap"), "dashboard ConfigMap"),
        (OTHER_LABEL, set_in("ConfigMap", "metadata", "labels", "dash", "2"), None, "labels[dash]"),
        (ALERTS, set_in("PrometheusRule", "metadata", "labels", "release", "x"), None, "alerts PrometheusRule"),
        (ALERTS, without("PrometheusRule"), None, "alerts PrometheusRule"),
        (FIXED, set_in("DaemonSet", *MAIN, "livenessProbe", "periodSeconds", 8), None, "livenessProbe.periodSeconds"),
        (FIXED, set_in("Service", *SERVICE_PORT, "nodePort", 31000), None, "spec.ports[http].nodePort"),
        (
            ON_DELETE,
            set_in("DaemonSet", "spec", "updateStrategy", "type", "RollingUpdate"),
            None,
            "updateStrategy.type",
        ),
        (FIXED, set_in("DaemonSet", *MAIN, "ports", 0, "hostPort", 9836), None, "ports[http].hostPort"),
        (REFUSED, said(":9835", ":9836"), None, "settings.web-listen-address"),
        (REFUSED, None, said("exec", "nvml"), "settings.collect-backend"),
        (REFUSED, set_in("Service", *SERVICE_PORT, "port", 81), None, "spec.ports[http].port"),
        (REFUSED, set_in("DaemonSet", *MAIN, "image", "other:1"), None, ".image"),
        (REFUSED, set_in("DaemonSet", *POD, "hostNetwork", True), None, "pod.hostNetwork"),
    ],
)
def test_a_real_difference_is_unexplained(values, chart, ours, path):
    result = result_of(values, chart=chart, ours=ours)
    assert [str(difference) for difference in result.unexplained if path in str(difference)]


def test_a_warning_that_no_deviation_is_about_is_unexplained():
    result = result_of({}, warned=["values.image is dropped: it is out of fashion"])
    assert [difference.object for difference in result.unexplained] == ["the values"]


def test_every_condition_is_used():
    text = inspect.getsource(smi_deviations) + inspect.getsource(parity_smi_conditions)
    functions = [name for name, _ in inspect.getmembers(parity_smi_conditions, inspect.isfunction)]
    own = [name for name in functions if getattr(parity_smi_conditions, name).__module__ == "parity_smi_conditions"]
    assert [name for name in own if len(text.split(name)) < 3] == []
    assert [name for name in parity_smi_conditions.__all__ if f"on.{name}" not in text] == []


@pytest.mark.parametrize(
    ("text", "told"), [("0", "0s"), ("1m30s", "90s"), ("90s", "90s"), ("1500ms", "1.5s"), ("1h", "3600s"), ("x", "x")]
)
def test_durations_are_told_in_seconds(text, told):
    assert parity_smi_exporter.duration(text) == told

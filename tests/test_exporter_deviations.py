import copy
import inspect

import pytest

import exporter_deviations
import exporter_helm_like
import parity_exporter
import parity_exporter_conditions
from parity_compare import compare
from parity_exporter import CHART, METRICS_MAP, NEW, OLD, ExporterRelease, told

LABELS = {"kubernetes": {"enablePodLabels": True}}
TLS = {"tlsServerConfig": {"enabled": True, "existingSecret": "s"}}
MTLS = {"tlsServerConfig": {**TLS["tlsServerConfig"], "clientAuthType": "RequireAndVerifyClientCert"}}
INLINE = {"tlsServerConfig": {"enabled": True}}
AUTH = {"basicAuth": {"users": {"admin": "secret"}}}
DUMP = {"debugDump": {"enabled": True}}
NON_ROOT = {"securityContext": {"runAsUser": 1000, "capabilities": {"add": None}}}
OWN_LIST = {
    "arguments": ["-f", "/etc/mine/a.csv"],
    "extraConfigMapVolumes": [{"name": "m", "configMap": {"name": "mine", "items": [{"key": "k", "path": "a.csv"}]}}],
    "extraVolumeMounts": [{"name": "m", "mountPath": "/etc/mine"}],
}
HPC = {
    "extraHostVolumes": [{"name": "hpc", "hostPath": "/run/hpc"}],
    "extraVolumeMounts": [{"name": "hpc", "mountPath": "/run/hpc"}],
    "extraEnv": [{"name": "DCGM_HPC_JOB_MAPPING_DIR", "value": "/run/hpc"}],
}
EVERYTHING = {
    "hostNetwork": True,
    "fullnameOverride": "gpu-metrics",
    "runtimeClassName": "nvidia",
    "priorityClassName": "high",
    "podLabels": {"team": "ml"},
    "podAnnotations": {"a/b": "c"},
    "podSecurityContext": {"fsGroup": 1},
    "nodeSelector": {"gpu": "yes"},
    "tolerations": [{"operator": "Exists"}],
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]
            }
        }
    },
    "resources": {"limits": {"memory": "2Gi"}},
    "imagePullSecrets": [{"name": "registry"}],
    "image": {"repository": "registry.local/exporter", "tag": "1", "pullPolicy": "Always"},
    "kubeletPath": "/var/lib/k0s/kubelet/pod-resources",
    "rollingUpdate": {"maxUnavailable": "25%"},
    "service": {"type": "NodePort", "port": 9500, "address": ":9500", "annotations": {"x": "y"}},
    "serviceMonitor": {
        "interval": "1m",
        "additionalLabels": {"release": "kps"},
        "relabelings": [{"sourceLabels": ["pod"], "targetLabel": "exporter"}],
    },
    "arguments": ["-f", "/etc/dcgm-exporter/default-counters.csv", "-r", "nvidia-dcgm:5555", "-c", "15000", "-d", "g"],
    **{key: value for key, value in HPC.items() if key != "arguments"},
}


def result_of(values, version=NEW, *, chart=None, ours=None, warned=None):
    """Compare a render with what this library makes of the values, each after a change."""
    release = ExporterRelease(
        release=exporter_helm_like.RELEASE, namespace=exporter_helm_like.NAMESPACE, version=version, values=values
    )
    made, warnings = release.synthesize()
    rendered, made = exporter_helm_like.render(values, version), copy.deepcopy(made)
    for change, manifests in ((chart, rendered), (ours, made)):
        if change is not None:
            change(manifests)
    return compare(
        release,
        told(rendered, release, is_ours=False),
        told(made, release, is_ours=True),
        warnings if warned is None else warned,
        exporter_deviations,
    )


def numbers_in(result):
    return {number for number, _ in (*result.intended, *result.dropped)}


USED = {
    "E1": ({}, NEW),
    "E2": ({}, NEW),
    "E3": ({}, OLD),
    "E4": (OWN_LIST, NEW),
    "E5": ({}, NEW),
    "E6": ({}, OLD),
    "E7": (LABELS, NEW),
    "E8": ({}, NEW),
    "E9": ({}, NEW),
    "E10": ({}, OLD),
    "E11": ({}, NEW),
    "E12": ({}, NEW),
    "E13": ({}, OLD),
    "E14": ({}, OLD),
    "E15": ({}, NEW),
    "E16": ({}, NEW),
    "E17": ({}, NEW),
    "E18": (NON_ROOT, NEW),
    "E19": (TLS, NEW),
    "E20": (MTLS, NEW),
    "E21": (DUMP, NEW),
    "E22": ({"service": {"address": "0.0.0.0:9400"}}, NEW),
    "E23": ({"kubernetes": {"enablePodLabels": True, "rbac": {"create": False}}}, NEW),
    "E30": ({"typo": 1, "serviceMonitor": {"typo": 2}}, NEW),
    "E31": ({"hostNetwork": "true"}, NEW),
    "E32": ({"tlsServerConfig": {"enabled": True}}, NEW),
    "E33": ({"basicAuth": {"users": {"admin": "secret"}}}, NEW),
    "E34": ({"arguments": ["-f", "/nowhere.csv"]}, NEW),
}


def test_every_deviation_has_a_case_that_shows_it_and_is_numbered_once():
    assert list(USED) == [deviation.number for deviation in exporter_deviations.DEVIATIONS]


@pytest.mark.parametrize("number", USED)
def test_a_deviation_shows_in_a_case_and_explains_it(number):
    result = result_of(*USED[number])
    assert result.unexplained == []
    assert number in numbers_in(result)


@pytest.mark.parametrize("version", [OLD, NEW])
@pytest.mark.parametrize(
    "values",
    [
        {},
        EVERYTHING,
        HPC,
        OWN_LIST,
        NON_ROOT,
        {"nameOverride": "gpu", "namespaceOverride": "monitoring"},
        {"fullnameOverride": "a" * 70},
        {"securityContext": None},
        {"resources": {"limits": {"cpu": "1"}}},
        {"arguments": ["-m", f"gpu:{METRICS_MAP}"]},
        {"arguments": ["-m", "gpu:mine"]},
        {"arguments": ["-m", "elsewhere:mine"]},
        {"arguments": ["--no-such-flag", "1"]},
        {"arguments": ["-f", "/etc/dcgm-exporter/default-counters.csv", "-r", "nvidia-dcgm:5555"]},
        {"serviceMonitor": {"interval": "5s"}},
        {"service": {"port": 9500}},
        {"service": {"enable": False}},
        {"service": {"enable": False}, "serviceMonitor": {"enabled": False}},
        {"serviceAccount": {"create": False, "name": "mine"}},
        {"extraEnv": [{"name": "DCGM_EXPORTER_KUBERNETES", "value": "false"}]},
        {"extraEnv": [{"name": "KUBERNETES_VIRTUAL_GPUS", "value": "true"}]},
        {"image": {"tag": ""}},
        {"podLabels": {"a": 1}},
        {"tolerations": [{"key": "a", "operator": "Never"}]},
        {"livenessProbe": {"initialDelaySeconds": 90}},
    ],
)
def test_values_leave_nothing_unexplained(values, version):
    assert result_of(values, version).unexplained == []


@pytest.mark.parametrize(
    "values",
    [
        MTLS,
        {**TLS, "basicAuth": {"users": {"admin": "secret"}}},
        {"tlsServerConfig": {"enabled": True, "autoGenerated": False, "cert": "C", "key": "K", "clientAuthType": "x"}},
        {"tlsServerConfig": {**TLS["tlsServerConfig"], "clientAuthType": "RequestClientCert"}},
        {"debugDump": {"enabled": True, "directory": "/var/dumps", "retention": 48, "compression": False}},
        {"kubernetesDRA": {"enabled": True}, "serviceAccount": {"create": False}},
        {**LABELS, "serviceAccount": {"create": False, "name": "mine"}},
        {**LABELS, "extraEnv": [{"name": "KUBERNETES_VIRTUAL_GPUS", "value": "true"}]},
        {"hostPID": True, "kubernetes": {"enablePodUID": True, "podLabelAllowlistRegex": ["a"]}},
        {"customMetrics": "DCGM_FI_DEV_GPU_UTIL, gauge, x\nDCGM_FI_NOPE, gauge, x\n"},
        {"customMetrics": "DCGM_FI_DEV_GPU_UTIL, gauge, x\n", "extraVolumeMounts": []},
        {"extraConfigMapVolumes": []},
        {"initContainers": [{"name": "wait", "image": "busybox"}]},
        {"serviceMonitor": {"apiVersion": "azmonitoring.coreos.com/v1"}},
        {"serviceMonitor": {"scrapeTimeout": "20s", "interval": "1m"}},
        {"service": {"clusterIP": "None", "internalTrafficPolicy": "Local"}},
        {"priorityClassName": "", "tolerations": []},
    ],
)
def test_values_of_the_new_chart_leave_nothing_unexplained(values):
    assert result_of(values, NEW).unexplained == []


def test_the_metrics_that_ours_exports_are_those_that_the_chart_exports():
    for version in (OLD, NEW):
        result = result_of({}, version)
        assert not [d for _, d in result.intended if d.path[0] == "exports"]


# --- changes that no deviation may explain -----------------------------------------------------------------------


def find(manifests, kind, name=CHART):
    return next(m for m in manifests if (m["kind"], m["metadata"]["name"]) == (kind, name))


def pod_of(manifests):
    return find(manifests, "DaemonSet")["spec"]["template"]["spec"]


def set_in(kind, *path, name=CHART):
    """Set what stands at a path: the last two parts are the member and its new value."""
    *parents, member, value = path

    def change(manifests):
        place = find(manifests, kind, name)
        for parent in parents:
            place = place[parent]
        place[member] = value

    return change


POD = ("spec", "template", "spec")
MAIN = (*POD, "containers", 0)
SERVICE_PORT = ("spec", "ports", 0, "port")
ENDPOINT = ("spec", "endpoints", 0)


def without_toleration(manifests):
    pod = pod_of(manifests)
    pod["tolerations"] = [one for one in pod["tolerations"] if one.get("key") != "dedicated"]


def without_variable(manifests):
    main = pod_of(manifests)["containers"][0]
    main["env"] = [one for one in main["env"] if one["name"] != "FOO"]


def with_variable(manifests):
    pod_of(manifests)["containers"][0]["env"].append({"name": "DCGM_EXPORTER_DEBUG", "value": "true"})


def with_argument(manifests):
    pod_of(manifests)["containers"][0]["args"].append("--fake-gpus")


def another_metric(manifests):
    data = find(manifests, "ConfigMap", METRICS_MAP)["data"]
    data["metrics"] += "DCGM_FI_DEV_FAN_SPEED, gauge, x\n"


def another_type(manifests):
    data = find(manifests, "ConfigMap", METRICS_MAP)["data"]
    data["metrics"] = data["metrics"].replace("DCGM_FI_DEV_GPU_TEMP, gauge", "DCGM_FI_DEV_GPU_TEMP, counter")


def fewer_metrics(manifests):
    data = find(manifests, "ConfigMap", "dcgm-exporter-metrics")["data"]
    data["metrics.csv"] = "\n".join(line for line in data["metrics.csv"].splitlines() if "GPU_TEMP" not in line)


def another_right(manifests):
    find(manifests, "ClusterRole", "dcgm-exporter-read-pods")["rules"][0]["verbs"].append("delete")


def fewer_rights(manifests):
    find(manifests, "ClusterRole")["rules"][0]["verbs"].remove("watch")


def without_service(manifests):
    manifests.remove(find(manifests, "Service"))


def another_object(manifests):
    manifests.append({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "other", "namespace": "gpu"}})


SAID = {
    "tolerations": [{"key": "dedicated", "operator": "Exists"}],
    "extraEnv": [{"name": "FOO", "value": "bar"}],
    "podLabels": {"team": "ml"},
}


@pytest.mark.parametrize(
    ("values", "chart", "ours", "path"),
    [
        ({}, set_in("Service", *SERVICE_PORT, 9401), None, "spec.ports[metrics].port"),
        ({}, set_in("DaemonSet", *MAIN, "ports", 0, "containerPort", 9401), None, "ports[metrics].containerPort"),
        ({}, set_in("DaemonSet", *MAIN, "livenessProbe", "httpGet", "port", 9401), None, "livenessProbe.httpGet.port"),
        ({}, set_in("DaemonSet", *MAIN, "livenessProbe", "httpGet", "path", "/"), None, "livenessProbe.httpGet.path"),
        ({}, set_in("DaemonSet", *MAIN, "livenessProbe", "periodSeconds", 6), None, "livenessProbe.periodSeconds"),
        ({}, set_in("DaemonSet", *MAIN, "image", "x:1"), None, "containers[exporter].image"),
        ({}, set_in("DaemonSet", *MAIN, "resources", "limits", "cpu", "1"), None, "resources.limits[cpu]"),
        ({}, set_in("DaemonSet", *MAIN, "securityContext", "privileged", True), None, "securityContext.privileged"),
        ({}, set_in("DaemonSet", *POD, "hostPID", True), None, "pod.hostPID"),
        ({}, set_in("DaemonSet", *POD, "hostNetwork", True), None, "pod.hostNetwork"),
        ({}, set_in("DaemonSet", *POD, "priorityClassName", "high"), None, "pod.priorityClassName"),
        ({}, set_in("DaemonSet", *POD, "serviceAccountName", "other"), None, "pod.serviceAccountName"),
        ({}, set_in("DaemonSet", *POD, "volumes", 0, "hostPath", "path", "/x"), None, "hostPath.path"),
        ({}, set_in("DaemonSet", *POD, "volumes", 1, "configMap", "name", "other"), None, "exports."),
        ({}, set_in("DaemonSet", *MAIN, "args", ["-f", "/etc/other.csv"]), None, "exports.no such list"),
        ({}, with_argument, None, "settings.fake-gpus"),
        ({}, with_variable, None, "settings.debug"),
        ({}, another_metric, None, "exports.DCGM_FI_DEV_FAN_SPEED"),
        ({}, another_type, None, "exports.DCGM_FI_DEV_GPU_TEMP"),
        ({}, None, fewer_metrics, "exports.DCGM_FI_DEV_GPU_TEMP"),
        ({}, set_in("ServiceMonitor", *ENDPOINT, "path", "/m"), None, "endpoints[0].path"),
        ({}, set_in("ServiceMonitor", *ENDPOINT, "interval", "20s"), None, "endpoints[0].interval"),
        ({}, set_in("ServiceMonitor", *ENDPOINT, "scheme", "https"), None, "endpoints[0].scheme"),
        ({}, None, set_in("ServiceMonitor", *ENDPOINT, "honorLabels", False), "own relabelings.0"),
        ({}, None, set_in("DaemonSet", *MAIN, "startupProbe", "failureThreshold", 1), "startupProbe.failureThreshold"),
        ({}, None, set_in("DaemonSet", *MAIN, "env", 3, "value", "1MiB"), "env[GOMEMLIMIT]"),
        ({}, None, set_in("DaemonSet", *MAIN, "securityContext", "capabilities", "add", []), "add[SYS_ADMIN]"),
        ({}, None, set_in("DaemonSet", *POD, "automountServiceAccountToken", True), "automountServiceAccountToken"),
        ({}, without_service, None, "exporter Service"),
        ({}, None, without_service, "exporter Service"),
        ({}, another_object, None, "other Secret"),
        (SAID, without_toleration, None, 'pod.tolerations[{"key":"dedicated"'),
        (SAID, None, without_toleration, 'pod.tolerations[{"key":"dedicated"'),
        (SAID, None, without_variable, "env[FOO]"),
        (SAID, without_variable, None, "env[FOO]"),
        (SAID, set_in("DaemonSet", "spec", "template", "metadata", "labels", "team", "x"), None, "pod.labels[team]"),
        (LABELS, another_right, None, "rules[delete pods]"),
        (LABELS, None, fewer_rights, "rules[watch pods]"),
        (TLS, set_in("DaemonSet", *POD, "volumes", 1, "secret", "secretName", "x"), None, "web.server.cert_file"),
        (TLS, None, set_in("ServiceMonitor", *ENDPOINT, "scheme", "http"), "endpoints[0].scheme"),
        (
            INLINE,
            set_in("DaemonSet", *MAIN, "readinessProbe", "httpGet", "port", 1),
            None,
            "readinessProbe.httpGet.port",
        ),
        (INLINE, set_in("Secret", "type", "Other", name="dcgm-exporter-tls"), None, "tls Secret: type"),
        (AUTH, set_in("DaemonSet", *MAIN, "readinessProbe", "tcpSocket", "port", 1), None, "tcpSocket.port"),
        (MTLS, set_in("ServiceMonitor", *ENDPOINT, "port", "other"), None, "endpoints[0].port"),
        (HPC, set_in("DaemonSet", *POD, "volumes", 1, "hostPath", "path", "/x"), None, "mounts[/run/hpc].hostPath"),
        (NON_ROOT, set_in("DaemonSet", *MAIN, "securityContext", "runAsUser", 7), None, "securityContext.runAsUser"),
        ({"typo": 1}, set_in("DaemonSet", *POD, "hostPID", True), None, "pod.hostPID"),
        (
            {"serviceMonitor": {"apiVersion": "azmonitoring.coreos.com/v1"}},
            set_in("ServiceMonitor", *ENDPOINT, "path", "/m"),
            None,
            "endpoints[0].path",
        ),
    ],
)
def test_a_real_difference_is_unexplained(values, chart, ours, path):
    result = result_of(values, chart=chart, ours=ours)
    assert [str(difference) for difference in result.unexplained if path in str(difference)]


def test_a_warning_that_no_deviation_is_about_is_unexplained():
    result = result_of({}, warned=["values.image wins: it says 1"])
    assert [difference.object for difference in result.unexplained] == ["the values"]


def test_the_lists_of_metrics_are_the_ones_that_the_library_knows():
    from gpu_constructs.observability.dcgm_helm import chart_metrics
    from gpu_constructs.observability.metrics import default_metrics

    for version in (OLD, NEW):
        assert {m.field: m.prometheus_type for m in chart_metrics(version)} == parity_exporter.CHART_LIST[version]
        listed = parity_exporter.IMAGE_LISTS[version]["/etc/dcgm-exporter/dcp-metrics-included.csv"]
        assert {m.field: m.prometheus_type for m in default_metrics(version)} == listed


def test_every_condition_is_used():
    text = inspect.getsource(exporter_deviations) + inspect.getsource(parity_exporter_conditions)
    functions = [name for name, _ in inspect.getmembers(parity_exporter_conditions, inspect.isfunction)]
    own = [n for n in functions if getattr(parity_exporter_conditions, n).__module__ == "parity_exporter_conditions"]
    assert [name for name in own if len(text.split(name)) < 3] == []

"""The intended differences between this library and the chart of nvidia_gpu_exporter, as ``deviations`` has them.

Each row is as narrow as its reason; what one side alone holds is written out whole.
"""

from __future__ import annotations

import parity_smi_conditions as on
from deviations import Deviation, Rule, Table
from parity_conditions import ABSENT, ANY, GIVEN
from parity_smi_exporter import A_DASHBOARD, MAIN

_KEYS = {key: f"[app.kubernetes.io/{key}]" for key in ("name", "instance", "component", "version", "managed-by")}
_NAME, _INSTANCE, _COMPONENT, _VERSION, _MANAGER = _KEYS.values()
_EXPORTER = "exporter DaemonSet|Service|ServiceMonitor|PodMonitor"
_POD = "exporter DaemonSet"
_C = f"pod.containers[{MAIN}]"
_MONITORS = "exporter ServiceMonitor|PodMonitor"
_AT = "spec.endpoints|podMetricsEndpoints[0]"
_SELECTORS = (
    (_POD, "spec.selector.matchLabels"),
    (_POD, "pod.labels"),
    ("exporter Service", "spec.selector"),
    (_MONITORS, "spec.selector.matchLabels"),
)
_DASHBOARD = "dashboard ConfigMap"

_ACCOUNT = r"is for a ServiceAccount, and none is made"
_TEST = r"is for the pod of 'helm test'"
_SIDECAR = r"is an option of GpuDashboard"
_ALERTS = r"makes alerts, which are GpuAlerts"
_ACCESS = r"is not taken over: the scrape object has"
_TWICE = r"would have every GPU scraped twice"
_FIXED = r"is always '|cannot be changed: |opens the metrics |goes with hostPort|is left to |mounts a token "
_NOT_READ = r"is never read by the chart"
_REFUSED = (
    r"cannot be taken over: |says |must |labels processes |asks for |lets a reading |shows no process |"
    r"is not for the NVML backend|is a right that nothing uses |is mounted by none |is tls="
)

DEVIATIONS: tuple[Deviation, ...] = (
    Deviation(
        "N1",
        "Labels: no `helm.sh/chart`, managed by cdk8s, component `exporter`, `app.kubernetes.io/name` whatever "
        "`nameOverride` says, the recommended labels on pods too, `podLabels` on the DaemonSet too",
        "Helm manages none of these objects; the component tells the pods from those of other parts",
        (
            Rule(_EXPORTER, "metadata.labels[helm.sh/chart]", on.chart_label, ABSENT),
            Rule(_EXPORTER, f"metadata.labels{_MANAGER}", "Helm", "cdk8s"),
            Rule(_EXPORTER, f"metadata.labels{_COMPONENT}", ABSENT, "exporter"),
            Rule(_EXPORTER, f"metadata.labels{_NAME}", on.chart_label, MAIN, on.has_another_name),
            Rule(_POD, f"pod.labels{_MANAGER}", ABSENT, "cdk8s"),
            Rule(_POD, f"pod.labels{_VERSION}", ABSENT, on.program),
            Rule(_POD, "metadata.labels[*]", ABSENT, on.pod_label),
            *(
                Rule(objects, f"{path}{last}", chart, ours, on.every(on.key_is(f"app.kubernetes.io/{key}"), *when))
                for objects, path in _SELECTORS
                for last in ("[*]", ".*")
                for key, chart, ours, when in (
                    ("component", ABSENT, "exporter", ()),
                    ("name", on.chart_label, MAIN, (on.has_another_name,)),
                )
            ),
        ),
    ),
    Deviation(
        "N2",
        "Every object names its namespace; long names are cut so that every object's name still tells it apart",
        "Manifests that are applied without a namespace land in whichever the user is in",
        (
            Rule(f"{_EXPORTER}", "metadata.namespace", ABSENT, on.namespace),
            Rule(_DASHBOARD, "metadata.namespace", ABSENT, on.namespace),
            Rule(_EXPORTER, "metadata.name", on.chart_named(""), on.named(""), on.is_cut),
            Rule(_DASHBOARD, "metadata.name", on.chart_named("-dashboard"), on.named("-dashboard"), on.is_cut),
        ),
    ),
    Deviation(
        "N3",
        "No ServiceAccount: pods run with the one of their namespace, or with your own "
        "(`serviceAccount.create: false` with a name)",
        "The exporter asks the API server nothing, and mounts no token",
        (Rule(_POD, "pod.serviceAccountName", "account", ABSENT),),
        left_out=on.account,
        dropped=_ACCOUNT,
    ),
    Deviation(
        "N4",
        "No pod for `helm test`",
        "Nothing here runs hooks",
        (Rule("test Pod", "spec.containers[wget].args[0]", GIVEN, ABSENT, on.asks_the_service),),
        left_out=on.test_pod,
        dropped=_TEST,
    ),
    Deviation(
        "N5",
        "A startup probe; liveness every 20 seconds; answers may take 5 seconds; probes also where the values take "
        "them away by null",
        "Before it listens the exporter asks nvidia-smi three times, which takes longer than liveness waits; under a "
        "busy CPU an answer takes longer than the default second",
        (
            Rule(_POD, f"{_C}.livenessProbe.periodSeconds", ABSENT, 20),
            Rule(_POD, f"{_C}.livenessProbe|readinessProbe|startupProbe.timeoutSeconds", ABSENT, 5),
            Rule(_POD, f"{_C}.startupProbe.periodSeconds", ABSENT, 5),
            Rule(_POD, f"{_C}.startupProbe.failureThreshold", ABSENT, on.startup_failures),
            Rule(_POD, f"{_C}.startupProbe.httpGet.path", ABSENT, "/-/ready"),
            Rule(_POD, f"{_C}.startupProbe.httpGet.port", ABSENT, on.port),
            Rule(_POD, f"{_C}.livenessProbe.httpGet.path", ABSENT, "/-/healthy", on.takes_no_probe),
            Rule(_POD, f"{_C}.readinessProbe.httpGet.path", ABSENT, "/-/ready", on.takes_no_probe),
            Rule(_POD, f"{_C}.livenessProbe|readinessProbe.httpGet.port", ABSENT, on.port, on.takes_no_probe),
        ),
    ),
    Deviation(
        "N6",
        "Requests of 50m CPU and 64Mi, a memory limit of 256Mi, unless `resources` says otherwise",
        "A pod without any is the first that a node under pressure takes away, and may take what workloads need",
        tuple(
            Rule(_POD, f"{_C}.resources.{path}", ABSENT, on.amount(ours), on.says_no_resources)
            for path, ours in (("requests[cpu]", "50m"), ("requests[memory]", "64Mi"), ("limits[memory]", "256Mi"))
        ),
    ),
    Deviation(
        "N7",
        "Pods hold nothing unless `securityContext` says otherwise: user 65534, no capability, a read-only root file "
        "system; seccomp profile `RuntimeDefault` unless `podSecurityContext` says otherwise; no variables of Services",
        "The chart's run as root; the exporter needs no more than the Pod Security level `restricted` allows",
        (
            *(
                Rule(_POD, f"{_C}.securityContext.{path}", ABSENT, ours, on.says_no_security_context)
                for path, ours in (
                    ("allowPrivilegeEscalation", False),
                    ("capabilities.drop[ALL]", True),
                    ("readOnlyRootFilesystem", True),
                    ("runAsNonRoot", True),
                    ("runAsUser", 65534),
                )
            ),
            Rule(_POD, "pod.securityContext.seccompProfile.type", ABSENT, "RuntimeDefault", on.says_no_seccomp_profile),
            Rule(_POD, "pod.enableServiceLinks", ABSENT, False),
        ),
    ),
    Deviation(
        "N8",
        "The pods run on nodes labelled `nvidia.com/gpu.present=true`, with the NVML image on amd64",
        "Elsewhere the exporter has nothing to read and says so forever; the NVML image is built for amd64 only",
        (
            Rule(
                _POD,
                "pod.nodeSelector[nvidia.com/gpu.present]",
                ABSENT,
                "true",
                on.says_nothing_of_nodes("nvidia.com/gpu.present"),
            ),
            Rule(
                _POD,
                "pod.nodeSelector[kubernetes.io/arch]",
                ABSENT,
                "amd64",
                on.every(on.reads_the_library, on.says_nothing_of_nodes("kubernetes.io/arch")),
            ),
        ),
    ),
    Deviation(
        "N9",
        "The taint `nvidia.com/gpu` is tolerated, beside what `tolerations` says",
        "GPU nodes carry it, and the chart's own list is empty",
        (Rule(_POD, "pod.tolerations[*]", ABSENT, True, on.key_is(on.GPU_TOLERATION)),),
    ),
    Deviation(
        "N10",
        "The scrape object labels each series with its `node`, and a PodMonitor's with the `job` that a ServiceMonitor "
        "has; it says what the operator does anyway: labels are not honoured, targets are in its own namespace, the "
        "scheme is http; how long to wait is written (10 seconds, or the interval), and the interval where the values "
        "take it away",
        "Without the label nobody knows which node a GPU is in, and alerts ask for it; Prometheus' own limits may be "
        "longer than the exporter's server takes to answer",
        (
            Rule(_MONITORS, f"{_AT}.own relabelings.*", ABSENT, on.our_step),
            Rule(_MONITORS, f"{_AT}.honorLabels", ABSENT, False),
            Rule(_MONITORS, "spec.namespaceSelector.matchNames[0]", ABSENT, on.namespace),
            Rule("exporter ServiceMonitor", f"{_AT}.scheme", "http", ABSENT),
            Rule(_MONITORS, f"{_AT}.scrapeTimeout", ABSENT, on.our_timeout, on.says_no_timeout),
            Rule(_MONITORS, f"{_AT}.interval", ABSENT, on.our_interval, on.says_no_interval),
        ),
    ),
    Deviation(
        "N11",
        'One dashboard, this library\'s, under labels of its own and the customary `grafana_dashboard: "1"`, in the '
        "place of the chart's two; another label, and annotations, are options of `GpuDashboard` and dropped with a "
        "warning",
        "It shows what this exporter, with these fields, exports",
        (
            Rule(
                _DASHBOARD,
                "data.*",
                A_DASHBOARD,
                ABSENT,
                on.key_is("nvidia-gpu-metrics.json", "nvidia-gpu-overview.json"),
            ),
            Rule(_DASHBOARD, "data.*", ABSENT, A_DASHBOARD, on.is_our_dashboard),
            Rule(_DASHBOARD, "metadata.labels[helm.sh/chart]", on.chart_label, ABSENT),
            Rule(_DASHBOARD, f"metadata.labels{_MANAGER}", "Helm", "cdk8s"),
            Rule(_DASHBOARD, f"metadata.labels{_NAME}", on.chart_label, "gpu-dashboard"),
            Rule(_DASHBOARD, f"metadata.labels{_INSTANCE}", on.instance, "dashboard"),
            Rule(_DASHBOARD, f"metadata.labels{_COMPONENT}", ABSENT, "dashboard"),
            Rule(_DASHBOARD, f"metadata.labels{_VERSION}", on.program, ABSENT),
            Rule(_DASHBOARD, "metadata.labels[*]", on.sidecar_label, ABSENT, on.says_another_sidecar_label),
            Rule(_DASHBOARD, "metadata.labels[grafana_dashboard]", ABSENT, "1", on.says_another_sidecar_label),
            Rule(
                _DASHBOARD, "metadata.labels[grafana_dashboard]", on.sidecar_label, "1", on.says_another_sidecar_label
            ),
            Rule(
                _DASHBOARD,
                "metadata.annotations[*]",
                on.dashboard_annotation,
                ABSENT,
                on.is_dropped("grafanaDashboard.annotations"),
            ),
        ),
        dropped=_SIDECAR,
    ),
    Deviation(
        "N12",
        "With `updateStrategy.type: OnDelete` there are no numbers for a rolling update",
        "Kubernetes skips them, those of the chart too",
        (Rule(_POD, "spec.updateStrategy.rollingUpdate.*", GIVEN, ABSENT, on.is_on_delete),),
    ),
    Deviation(
        "N13",
        "What null takes away in the chart has its default here",
        "The chart writes nothing in its place: the exporter ends or sees no GPU, the Service is refused",
        (
            *(
                Rule(_POD, f"{_C}.env[{variable}]", "", ours, on.is_null(key))
                for variable, ours, key in (
                    ("NVIDIA_VISIBLE_DEVICES", "all", "nvidiaVisibleDevices"),
                    ("NVIDIA_DRIVER_CAPABILITIES", "utility", "nvidiaDriverCapabilities"),
                )
            ),
            *(
                Rule(_POD, f"settings.{flag}", "", ours, on.is_null(key))
                for flag, ours, key in (
                    ("nvidia-smi-command", "nvidia-smi", "nvidiaSmiCommand"),
                    ("query-field-names", "AUTO", "queryFieldNames"),
                    ("log-level", "info", "log.level"),
                    ("log-format", "logfmt", "log.format"),
                )
            ),
            Rule("exporter Service", "spec.ports[http].port", ABSENT, on.port, on.is_null("service.port")),
        ),
    ),
    Deviation(
        "N30",
        "No PrometheusRule: `prometheusRule.*` is dropped with a warning",
        "`GpuAlerts` makes alerts of the same kinds, and knows which metrics this exporter has",
        (Rule("alerts PrometheusRule", "spec.**", GIVEN, ABSENT, on.is_dropped("prometheusRule.enabled")),),
        left_out=on.alerts,
        dropped=_ALERTS,
    ),
    Deviation(
        "N31",
        "What `serviceMonitor` says of access (`scheme: https`, `tlsConfig`, `bearerTokenFile`) is dropped with a "
        "warning",
        "The chart's exporter serves neither TLS nor passwords; `tls=` and `basic_auth=` give both sides theirs",
        (
            Rule("exporter ServiceMonitor", f"{_AT}.scheme", "https", ABSENT, on.is_dropped("serviceMonitor.scheme")),
            Rule(
                "exporter ServiceMonitor",
                f"{_AT}.bearerTokenFile",
                on.bearer_token_file,
                ABSENT,
                on.is_dropped("serviceMonitor.bearerTokenFile"),
            ),
            Rule(
                "exporter ServiceMonitor",
                f"{_AT}.tlsConfig.**",
                GIVEN,
                ABSENT,
                on.is_dropped("serviceMonitor.tlsConfig"),
            ),
        ),
        dropped=_ACCESS,
    ),
    Deviation(
        "N32",
        "No PodMonitor beside a ServiceMonitor, with a warning",
        "Both find the same pods: every series would be there twice",
        left_out=on.second_monitor,
        dropped=_TWICE,
    ),
    Deviation(
        "N33",
        "What is decided here, or left to Kubernetes, is dropped with a warning: `nvidiaVisibleDevices`, "
        "`nvidiaDriverCapabilities`, the numbers of probes, `hostPort`, `service.nodePort`, "
        "`automountServiceAccountToken`, `revisionHistoryLimit`",
        "The table of keys says of each why, and what to do instead",
        (
            Rule("* *", "**", GIVEN, ANY, on.is_decided_by_what_was_dropped(_FIXED)),
            Rule(_POD, f"{_C}.livenessProbe|readinessProbe.tcpSocket.port", on.port, ABSENT, on.is_probe_dropped),
            Rule(_POD, f"{_C}.ports[http].hostPort", on.host_port, ABSENT, on.is_dropped("hostPort.enabled")),
        ),
        dropped=_FIXED,
    ),
    Deviation(
        "N34",
        "A value that the exporter, Kubernetes or this library refuses is dropped with a warning",
        "The pods would fail, or quietly do something else than what was asked for",
        (
            Rule("* *", "**", ANY, ANY, on.is_decided_by_what_was_dropped(_REFUSED)),
            Rule(_POD, "settings.*", GIVEN, ANY, on.is_flag_of_dropped_arguments),
            Rule(_POD, f"{_C}.image", on.chart_image, GIVEN, on.is_dropped("image")),
            Rule("exporter Service", "spec.ports[http].port", on.service_port, on.port, on.is_dropped("service.port")),
        ),
        dropped=_REFUSED,
    ),
    Deviation(
        "N35",
        "`global` is dropped with a warning",
        "The chart never reads it, so the user believes in it",
        dropped=_NOT_READ,
    ),
)

TABLE = Table(DEVIATIONS)
explain, left_out, added = TABLE.explain, TABLE.left_out, TABLE.added
repaired, of_warning, markdown = TABLE.repaired, TABLE.of_warning, TABLE.markdown

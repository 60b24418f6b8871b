"""The intended differences between this library and NVIDIA's chart of the DCGM exporter, as ``deviations`` has them.

Each row is as narrow as its reason; what one side alone holds is written out whole.
"""

from __future__ import annotations

import parity_exporter_conditions as on
from deviations import Deviation, Rule, Table
from parity_conditions import ABSENT, ANY, GIVEN
from parity_exporter import MAIN

_NAME, _INSTANCE, _COMPONENT, _VERSION, _MANAGER = (
    f"[app.kubernetes.io/{key}]" for key in ("name", "instance", "component", "version", "managed-by")
)
_POD = "exporter DaemonSet"
_C = f"pod.containers[{MAIN}]"
_ENDPOINT = "exporter ServiceMonitor"
_AT = "spec.endpoints[0]"
_WEB_MOUNTS = "/etc/dcgm-exporter/tls|/etc/dcgm-exporter/web-config.yaml"
_SELECTORS = (
    (_POD, "spec.selector.matchLabels"),
    (_POD, "pod.labels"),
    ("exporter Service", "spec.selector"),
    (_ENDPOINT, "spec.selector.matchLabels"),
)

_WRONG_TYPE = r"must be (true or false|text|a whole number( or text)?|a list|a mapping), got "
_UNKNOWN = r"is no key of"
_TLS = r"must come with existingSecret"
_PASSWORDS = r"cannot be taken over: it holds passwords"
_NO_CERTIFICATE = r"must be false with clientAuthType"
_RIGHTS = r"must be true with enablePodLabels"
_NO_WEB = on.is_no_web_configuration_left
_RBAC = "kubernetes.rbac.create"
_REASONS = (
    r"cannot be taken over|must |has |holds |is no flag|is mounted nowhere|is read by nobody|is not read beside|takes |"
    r"does nothing|would make"
)
_REFUSED = rf"(?!{_WRONG_TYPE}|{_UNKNOWN}|{_TLS}|{_PASSWORDS}|{_NO_CERTIFICATE}|{_RIGHTS})({_REASONS})"

DEVIATIONS: tuple[Deviation, ...] = (
    Deviation(
        "E1",
        "Labels: no `helm.sh/chart`, managed by cdk8s, component `exporter`, `app.kubernetes.io/name` whatever "
        "`nameOverride` says, the recommended labels on every object and on pods, `podLabels` on the DaemonSet too",
        "Helm manages none of these objects; the chart labels some and not others",
        (
            Rule("* *", "metadata.labels[helm.sh/chart]", on.chart_label, ABSENT),
            Rule("* *", f"metadata.labels{_MANAGER}", "Helm", "cdk8s"),
            Rule("metrics ConfigMap", f"metadata.labels{_MANAGER}", ABSENT, "cdk8s", on.is_old),
            Rule("metrics ConfigMap", f"metadata.labels{_COMPONENT}", ABSENT, "exporter", on.is_old),
            Rule("metrics ConfigMap", f"metadata.labels{_NAME}", ABSENT, "dcgm-exporter", on.is_old),
            Rule("metrics ConfigMap", f"metadata.labels{_INSTANCE}", ABSENT, on.instance, on.is_old),
            Rule("metrics ConfigMap", f"metadata.labels{_VERSION}", ABSENT, on.version, on.is_old),
            Rule("* *", f"metadata.labels{_COMPONENT}", on.chart_label, "exporter"),
            Rule("* *", f"metadata.labels{_NAME}", on.chart_label, "dcgm-exporter", on.has_another_name),
            Rule(_POD, f"pod.labels{_MANAGER}", ABSENT, "cdk8s"),
            Rule(_POD, f"pod.labels{_VERSION}", ABSENT, on.version),
            Rule(_POD, "metadata.labels[*]", ABSENT, on.pod_label),
            *(
                Rule(objects, f"{path}{last}", chart, ours, on.every(on.key_is(f"app.kubernetes.io/{key}"), *when))
                for objects, path in _SELECTORS
                for last in ("[*]", ".*")
                for key, chart, ours, when in (
                    ("component", on.chart_label, "exporter", ()),
                    ("name", on.chart_label, "dcgm-exporter", (on.has_another_name,)),
                )
            ),
            Rule(
                "exporter Service",
                "spec.selector.*",
                ABSENT,
                "exporter",
                on.every(on.is_old, on.key_is("app.kubernetes.io/component")),
            ),
        ),
    ),
    Deviation(
        "E2",
        "Names: the list of metrics is `…-metrics`, the web configuration `…-web-config`, the rights have the name of "
        "the DaemonSet; long names are cut so that every object's name still tells it apart",
        "`exporter-metrics-config-map` and `dcgm-exporter-read-cm` collide between two releases in one namespace",
        (
            Rule("metrics ConfigMap", "metadata.name", "exporter-metrics-config-map", on.named("-metrics")),
            Rule("web-config ConfigMap", "metadata.name", on.chart_named("-web-config.yml"), on.named("-web-config")),
            Rule(
                "read-pods ClusterRole|ClusterRoleBinding",
                "metadata.name",
                on.chart_named("-read-pods"),
                on.named(""),
            ),
            Rule(
                "exporter DaemonSet|Service|ServiceMonitor",
                "metadata.name",
                on.chart_named(""),
                on.named(""),
                on.is_cut,
            ),
            Rule("account ServiceAccount", "metadata.name", on.chart_account, on.named(""), on.asks_the_api),
        ),
    ),
    Deviation(
        "E3",
        "The list of metrics is mounted as a directory of its own, wherever the exporter read it before: from its "
        "image, from a file mounted by `subPath`, from the API (`-m`)",
        "The kubelet never refreshes a `subPath`; a mount over a folder of the image hides the others in it; whoever "
        "gives mounts of their own loses the chart's; and the pods of 4.8.2 have no token for `-m`: the exporter ends",
        (
            Rule(_POD, "reads.file", GIVEN, on.our_file),
            Rule(_POD, "reads.mount", ANY, on.OWN_DIRECTORY),
            Rule(_POD, "reads.api", on.list_from_the_api, ABSENT),
            Rule(_POD, f"{_C}.mounts[*].configMap.**", GIVEN, ABSENT, on.is_the_mount_of_the_list),
            Rule(_POD, f"{_C}.mounts[*].subPath|readOnly", GIVEN, ABSENT, on.is_the_mount_of_the_list),
            Rule(_POD, "pod.volumes[*].configMap.**", GIVEN, ABSENT, on.is_unmounted_list),
            Rule(_POD, f"{_C}.mounts[{on.OWN_DIRECTORY}].configMap", ABSENT, on.our_map),
            Rule(_POD, f"{_C}.mounts[{on.OWN_DIRECTORY}].readOnly", ABSENT, True),
            Rule(_POD, f"{_C}.mounts[{on.OWN_DIRECTORY}].configMap.files[metrics.csv].key", ABSENT, "metrics.csv"),
        ),
    ),
    Deviation(
        "E4",
        "The ConfigMap holds the list that the exporter reads, or is not there where somebody else keeps the list",
        "The chart's is rendered in any case; unless it is mounted, or named by `-m`, nothing reads it",
        (Rule("metrics ConfigMap", "lists.*", ANY, on.listed_metric, on.is_not_read_by_the_chart),),
        left_out=on.unread_list,
    ),
    Deviation(
        "E5",
        "The pods carry checksums of what they read: `gpu-constructs/metrics-sha256`, `…/web-config-sha256`",
        "The chart's pods keep an old list until somebody restarts them",
        (
            Rule(
                _POD,
                "pod.annotations[gpu-constructs/metrics-sha256|gpu-constructs/web-config-sha256]",
                ABSENT,
                GIVEN,
                on.is_checksum,
            ),
        ),
    ),
    Deviation(
        "E6",
        "No Role and no RoleBinding for the ConfigMap; a ServiceAccount and a token only where pods or resource claims "
        "are read, the token in the pod alone",
        "A mounted list needs no rights; the exporter of 3.4.2 holds a token for nothing",
        (
            Rule(_POD, "pod.serviceAccountName", on.account_of_pods, ABSENT, on.asks_nobody),
            Rule(_POD, "pod.automountServiceAccountToken", ABSENT, False, on.is_old),
            Rule("account ServiceAccount", "automountServiceAccountToken", True, False),
            Rule("account ServiceAccount", "metadata.annotations[*]", GIVEN, ABSENT, on.asks_the_api),
        ),
        left_out=on.useless_rights,
    ),
    Deviation(
        "E7",
        "The exporter may read pods only for labels and UIDs of pods, ResourceSlices only for claims",
        "The chart grants both for either, and in both API groups",
        (Rule("read-pods ClusterRole", "rules[*]", True, ABSENT, on.is_not_asked_for),),
    ),
    Deviation(
        "E8",
        "A startup probe instead of 45 seconds of waiting; liveness every 20 seconds; answers may take 5 seconds",
        "Under a busy CPU an answer takes longer than the default second, and healthy pods are killed; an interval "
        "above 55 seconds kills the pods of 3.4.2 again and again",
        (
            Rule(_POD, f"{_C}.livenessProbe|readinessProbe.initialDelaySeconds", 45, ABSENT),
            Rule(_POD, f"{_C}.livenessProbe.periodSeconds", 5, 20),
            Rule(_POD, f"{_C}.livenessProbe|readinessProbe|startupProbe.timeoutSeconds", ABSENT, 5),
            Rule(_POD, f"{_C}.startupProbe.periodSeconds", ABSENT, 5),
            Rule(_POD, f"{_C}.startupProbe.failureThreshold", ABSENT, on.startup_failures),
            Rule(_POD, f"{_C}.startupProbe.httpGet.path", ABSENT, "/health"),
            Rule(_POD, f"{_C}.startupProbe.httpGet|tcpSocket.port", ABSENT, on.port),
            Rule(_POD, f"{_C}.startupProbe.httpGet.scheme", ABSENT, "HTTPS", on.has_tls),
        ),
    ),
    Deviation(
        "E9",
        "Requests of 100m CPU and 256Mi, a limit of 1Gi, unless `resources` says otherwise; no CPU limit of the chart",
        "With the names of pods the exporter takes 400 to 500 MiB; a throttled exporter fails its probes",
        (
            *(
                Rule(_POD, f"{_C}.resources.{path}", chart, on.amount(ours), on.says_no_resources)
                for path, olds, ours in (
                    ("requests[memory]", (ABSENT, on.amount("128Mi")), "256Mi"),
                    ("requests[cpu]", (ABSENT,), "100m"),
                    ("limits[memory]", (ABSENT, on.amount("512Mi")), "1Gi"),
                )
                for chart in olds
            ),
            Rule(_POD, f"{_C}.resources.limits[cpu]", on.amount("200m"), ABSENT, on.says_no_cpu_limit),
        ),
    ),
    Deviation(
        "E10",
        "No priority class unless `priorityClassName` says one",
        "With `system-node-critical` the exporter evicts workloads, and many namespaces may not use it",
        (Rule(_POD, "pod.priorityClassName", "system-node-critical", ABSENT, on.says_no_priority),),
    ),
    Deviation(
        "E11",
        "The pods run on nodes labelled `nvidia.com/gpu.present=true`",
        "Without a GPU the exporter ends again and again",
        (Rule(_POD, "pod.nodeSelector[nvidia.com/gpu.present]", ABSENT, "true"),),
    ),
    Deviation(
        "E12",
        "The taint `nvidia.com/gpu` is tolerated, beside what `tolerations` says",
        "GPU nodes carry it, and whoever replaces the list forgets it",
        (Rule(_POD, "pod.tolerations[*]", ABSENT, True, on.key_is(on.GPU_TOLERATION)),),
    ),
    Deviation(
        "E13",
        "Pods hold less where `securityContext` leaves it to the chart: seccomp profile `RuntimeDefault`, no capability"
        " but SYS_ADMIN, that only for profiling metrics and not with a remote hostengine, root only for that and for "
        "the kubelet's socket, a read-only "
        "root file system with a small `/tmp` from 4.x on, no variables of Services",
        "No metric is lost by it",
        (
            Rule(
                _POD,
                f"{_C}.securityContext.readOnlyRootFilesystem",
                ABSENT,
                on.root_is_read_only,
                on.has_own_security_context,
            ),
            Rule(
                _POD,
                f"{_C}.securityContext.allowPrivilegeEscalation",
                ABSENT,
                False,
                on.every(on.is_old, on.has_own_security_context),
            ),
            Rule(
                _POD,
                f"{_C}.securityContext.capabilities.drop[ALL]",
                ABSENT,
                True,
                on.every(on.is_old, on.has_own_security_context),
            ),
            Rule(
                _POD,
                f"{_C}.securityContext.capabilities.add[SYS_ADMIN]",
                True,
                ABSENT,
                on.every(on.profiles_nothing_itself, on.has_own_security_context),
            ),
            Rule(_POD, f"{_C}.securityContext.runAsUser", 0, 1000, on.needs_no_root),
            Rule(_POD, f"{_C}.securityContext.runAsNonRoot", False, True, on.needs_no_root),
            Rule(_POD, "pod.securityContext.fsGroup", ABSENT, 1000, on.needs_no_root_to_read),
            Rule(
                _POD,
                "pod.securityContext.seccompProfile.type",
                ABSENT,
                "RuntimeDefault",
                on.says_no_seccomp_profile,
            ),
            Rule(_POD, "pod.enableServiceLinks", ABSENT, False),
            Rule(_POD, f"{_C}.mounts[/tmp].emptyDir.sizeLimit", ABSENT, "64Mi", on.is_new),
            Rule(_POD, f"{_C}.mounts[/tmp].shared with", ABSENT, MAIN, on.is_new),
        ),
    ),
    Deviation(
        "E14",
        "Variables: what the image says of the GPUs stands in the manifest too, `GOMEMLIMIT` is three quarters of the "
        "memory limit, and 3.4.2 does not stamp its own file (`NO_SETCAP`)",
        "Whoever reviews the pod sees that it reads every GPU; the Go runtime keeps clear of the limit; root has its "
        "capabilities without the stamp, which asks for more",
        (
            Rule(_POD, f"{_C}.env[NVIDIA_VISIBLE_DEVICES]", ABSENT, "all"),
            Rule(_POD, f"{_C}.env[NVIDIA_DRIVER_CAPABILITIES]", ABSENT, "compute,utility"),
            Rule(_POD, f"{_C}.env[GOMEMLIMIT]", ABSENT, on.go_memory),
            Rule(_POD, f"{_C}.env[NO_SETCAP]", ABSENT, "true", on.is_old),
        ),
    ),
    Deviation(
        "E15",
        "The kubelet's folder must be there (`type: Directory`); it is not mounted where pods are not looked for",
        "A wrong `kubeletPath` is an event on the pod instead of a folder made on the node, and series without pods",
        (
            Rule(_POD, f"{_C}.mounts[/var/lib/kubelet/pod-resources].hostPath.type", ABSENT, "Directory"),
            Rule(
                _POD,
                f"{_C}.mounts[/var/lib/kubelet/pod-resources].hostPath.path",
                on.kubelet_path,
                ABSENT,
                on.maps_no_pods,
            ),
            Rule(_POD, f"{_C}.mounts[/var/lib/kubelet/pod-resources].readOnly", True, ABSENT, on.maps_no_pods),
        ),
    ),
    Deviation(
        "E16",
        "The scraper honours the exporter's labels and drops its own, unless `serviceMonitor.honorLabels` says "
        "otherwise or relabelings ask for those of the target; `exporter_pod` and `node` keep what tells targets apart",
        "In the chart `pod` and `namespace` of every series are the exporter's, and the workload's are `exported_pod`",
        (
            Rule(_ENDPOINT, f"{_AT}.honorLabels", False, True, on.says_nothing_of_labels),
            Rule(_ENDPOINT, f"{_AT}.own relabelings.*", ABSENT, on.our_step),
        ),
    ),
    Deviation(
        "E17",
        "One scrape for each reading of the GPUs, every 30 seconds unless `serviceMonitor.interval` or the exporter's "
        "interval say otherwise; the time to wait is written, and never longer",
        "Scraping twice as often repeats every point; the operator refuses a longer time to wait",
        (
            Rule(_ENDPOINT, f"{_AT}.interval", 15, on.our_interval, on.says_no_interval),
            Rule(_ENDPOINT, f"{_AT}.scrapeTimeout", ABSENT, on.our_timeout, on.is_old),
            Rule(_ENDPOINT, f"{_AT}.scrapeTimeout", 10, on.our_timeout, on.says_no_timeout),
        ),
    ),
    Deviation(
        "E18",
        "Profiling metrics are left out where `securityContext` holds no SYS_ADMIN",
        "The exporter leaves them out then, with a warning in its log",
        (
            Rule(_POD, "exports.*", GIVEN, ABSENT, on.cannot_profile),
            Rule("metrics ConfigMap", "lists.*", GIVEN, ABSENT, on.cannot_profile),
        ),
    ),
    Deviation(
        "E19",
        "With TLS the scraper asks by TLS; certificate and configuration have mounts of their own that only their "
        "users read; the authority is named only where clients are verified; where clients must show a certificate, "
        "probes only connect",
        "The chart's ServiceMonitor asks an encrypted port in the clear and gets nothing; the kubelet has no "
        "certificate, so the chart's pods never get ready",
        (
            Rule(_ENDPOINT, f"{_AT}.scheme", ABSENT, "https", on.has_tls_for_the_scraper),
            Rule(_ENDPOINT, f"{_AT}.tlsConfig.ca.secret.name", ABSENT, on.secret, on.has_tls_for_the_scraper),
            Rule(_ENDPOINT, f"{_AT}.tlsConfig.ca.secret.key", ABSENT, on.ca_key, on.has_tls_for_the_scraper),
            Rule(_ENDPOINT, f"{_AT}.tlsConfig.serverName", ABSENT, on.server_name, on.has_tls_for_the_scraper),
            Rule(_POD, "web.server.client_ca_file", GIVEN, ABSENT, on.verifies_nobody),
            Rule(_POD, "web.server.client_auth_type", "NoClientCert", ABSENT),
            *(
                Rule(_POD, f"{_C}.mounts[{mount}].{path}", *values, on.has_tls)
                for mount, path, *values in (
                    ("/etc/dcgm-exporter/tls", "secret.secretName", on.secret, ABSENT),
                    ("/etc/dcgm-exporter/tls", "secret.defaultMode", 0o664, ABSENT),
                    ("/etc/dcgm-exporter/web-config.yaml", "configMap", "web-config", ABSENT),
                    ("/etc/dcgm-exporter/web-config.yaml", "configMap.defaultMode", 0o664, ABSENT),
                    ("/etc/dcgm-exporter/web-config.yaml", "configMap.files[web-config.yaml].key", GIVEN, ABSENT),
                    ("/etc/dcgm-exporter/web-config.yaml", "subPath", "web-config.yaml", ABSENT),
                    ("/etc/gpu-constructs/tls", "secret.secretName", ABSENT, on.secret),
                    ("/etc/gpu-constructs/tls", "secret.defaultMode", ABSENT, 0o440),
                    ("/etc/gpu-constructs/tls", "readOnly", ABSENT, True),
                    ("/etc/gpu-constructs/web", "configMap", ABSENT, "web-config"),
                    ("/etc/gpu-constructs/web", "configMap.files[web-config.yaml].key", ABSENT, GIVEN),
                    ("/etc/gpu-constructs/web", "readOnly", ABSENT, True),
                )
            ),
            *(
                Rule(_POD, f"{_C}.livenessProbe|readinessProbe.{path}", *values, on.only_connects)
                for path, *values in (
                    ("httpGet.path", "/health", ABSENT),
                    ("httpGet.port", on.port, ABSENT),
                    ("httpGet.scheme", "HTTPS", ABSENT),
                    ("tcpSocket.port", ABSENT, on.port),
                )
            ),
        ),
    ),
    Deviation(
        "E20",
        "No ServiceMonitor where clients must show a certificate (`clientAuthType` `Require…`), with a warning",
        "The values cannot name one; the chart's gets no answer",
        left_out=on.monitor_that_finds_nothing,
        dropped=_NO_CERTIFICATE,
    ),
    Deviation(
        "E21",
        "Debug dumps live in a volume of the pod, at most 1Gi, and `debugDump.compression: false` is done",
        "The chart writes into a folder of the node and never cleans it up; the program compresses unless it is told "
        "not to, which the chart does not",
        (
            Rule(_POD, "settings.dump-directory", on.dump_directory, "/dcgm-exporter-debug"),
            Rule(_POD, "settings.dump-compression", "true", "false", on.keeps_dumps_as_said),
            Rule(_POD, f"{_C}.mounts[*].hostPath.path", on.dump_directory, ABSENT, on.is_dump_directory),
            Rule(_POD, f"{_C}.mounts[*].hostPath.type", "DirectoryOrCreate", ABSENT, on.is_dump_directory),
            Rule(_POD, f"{_C}.mounts[/dcgm-exporter-debug].emptyDir.sizeLimit", ABSENT, "1Gi", on.dumps),
            Rule(_POD, f"{_C}.mounts[/dcgm-exporter-debug].shared with", ABSENT, MAIN, on.dumps),
        ),
    ),
    Deviation(
        "E22",
        "The exporter listens on `:<port>` where `service.address` says `0.0.0.0` or `[::]`",
        "The same, and IPv6 with it",
        (Rule(_POD, "settings.address", GIVEN, on.hostname, on.listens_everywhere),),
    ),
    Deviation(
        "E23",
        "Rights are made where pods are read, whatever `kubernetes.rbac.create` says, with a warning",
        "The chart takes the token away with the rights, and no pod is read",
        (
            Rule("read-pods ClusterRole|ClusterRoleBinding", "**", ABSENT, GIVEN, on.is_dropped(_RBAC, _RIGHTS)),
            Rule(_POD, "pod.automountServiceAccountToken", False, True, on.is_dropped(_RBAC, _RIGHTS)),
        ),
        dropped=_RIGHTS,
    ),
    Deviation(
        "E30",
        "A key that the chart does not read, in this release or at all, is dropped with a warning",
        "The chart skips it without a word, so the user believes in it",
        (Rule(_POD, "**", ANY, ANY, on.is_decided_by_what_was_dropped(_UNKNOWN)),),
        dropped=_UNKNOWN,
    ),
    Deviation(
        "E31",
        "A value of the wrong type is dropped with a warning",
        "The chart takes any text for true, and renders the rest as objects that the API server refuses",
        (Rule("* *", "**", ANY, ANY, on.is_decided_by_what_was_dropped(_WRONG_TYPE)),),
        dropped=_WRONG_TYPE,
    ),
    Deviation(
        "E32",
        "TLS without `existingSecret` is dropped whole, with a warning",
        "A certificate in values would stand in the manifest, the chart's own is another one at each render",
        (
            Rule(_POD, "web.server.*", GIVEN, ABSENT, on.is_tls_dropped),
            Rule(
                _POD, f"{_C}.mounts[/etc/dcgm-exporter/tls].secret.secretName", on.tls_secret, ABSENT, on.is_tls_dropped
            ),
            Rule(_POD, f"{_C}.mounts[/etc/dcgm-exporter/tls].secret.defaultMode", 0o664, ABSENT, on.is_tls_dropped),
            Rule(_POD, f"{_C}.livenessProbe|readinessProbe.httpGet.scheme", "HTTPS", ABSENT, on.is_tls_dropped),
            Rule("tls Secret", "data.*", GIVEN, ABSENT, on.is_tls_dropped),
            *(
                Rule(_POD, f"{_C}.mounts[/etc/dcgm-exporter/web-config.yaml].{path}", value, ABSENT, _NO_WEB)
                for path, value in (
                    ("configMap", "web-config"),
                    ("configMap.defaultMode", 0o664),
                    ("subPath", "web-config.yaml"),
                )
            ),
        ),
        left_out=on.dropped_certificate,
        dropped=_TLS,
    ),
    Deviation(
        "E33",
        "`basicAuth.users` is dropped with a warning",
        "The chart hashes the passwords anew at each render and keeps the hashes in a ConfigMap; its ServiceMonitor "
        "has no password. `basic_auth=` takes hashes and a Secret for the scraper",
        (
            Rule(_POD, "web.users.*", GIVEN, ABSENT, on.are_passwords_dropped),
            *(
                Rule(_POD, f"{_C}.livenessProbe|readinessProbe.{path}", *values, on.asks_instead_of_connecting)
                for path, *values in (
                    ("tcpSocket.port", on.port, ABSENT),
                    ("httpGet.path", ABSENT, "/health"),
                    ("httpGet.port", ABSENT, on.port),
                    ("httpGet.scheme", ABSENT, "HTTPS"),
                )
            ),
        ),
        left_out=on.dropped_passwords,
        dropped=_PASSWORDS,
    ),
    Deviation(
        "E34",
        "A value that the exporter, Kubernetes or this library refuses is dropped with a warning",
        "The pods would fail, or quietly do something else than what was asked for",
        (
            Rule("* *", "**", ANY, ANY, on.is_decided_by_what_was_dropped(_REFUSED)),
            Rule(_POD, f"{_C}.image", on.image_without_tag, GIVEN, on.is_dropped("image.tag")),
            Rule(_POD, "pod.automountServiceAccountToken", True, False, on.is_any_reading_dropped),
        ),
        left_out=on.rights_that_were_dropped,
        dropped=_REFUSED,
    ),
)

TABLE = Table(DEVIATIONS)
explain, left_out, added = TABLE.explain, TABLE.left_out, TABLE.added
repaired, of_warning, markdown = TABLE.repaired, TABLE.of_warning, TABLE.markdown

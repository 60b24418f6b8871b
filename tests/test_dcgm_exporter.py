import json
import warnings

import pytest
from cdk8s import App, Chart, Testing

from gpu_constructs import (
    BasicAuth,
    DcgmExporter,
    ExporterService,
    External,
    GpuConstructsError,
    GpuConstructsWarning,
    GpuNamespace,
    Kubernetes,
    Metric,
    MetricsConfigMap,
    NvidiaRuntimeClass,
    PodMapping,
    Scrape,
    Sharing,
    SynthesisError,
    Tls,
    Toleration,
    Unverified,
    UpdateStrategy,
    Volume,
    synthesize,
)
from gpu_constructs._config_map import sha256
from gpu_constructs.observability.metrics import counters_csv, metric_set

NAME = "dcgm-exporter"
TAINT = Toleration(key="dedicated", value="ai", effect="NoSchedule")
IMAGES = {
    "3.4.2": "nvcr.io/nvidia/k8s/dcgm-exporter:3.3.6-3.4.2-ubuntu22.04",
    "4.8.2": "nvcr.io/nvidia/k8s/dcgm-exporter:4.5.3-4.8.2-distroless",
    "4.8.3": "nvcr.io/nvidia/k8s/dcgm-exporter:4.6.0-4.8.3-distroless",
}
SCRAPES = ["ServiceMonitor", "PodMonitor", "VMServiceScrape", "VMPodScrape"]
USERS = {"prometheus": "$2y$10$" + "a" * 53}
AUTH = BasicAuth(users=USERS, secret="scrape")
UTILISATION = Metric(field="DCGM_FI_DEV_GPU_UTIL", prometheus_type="gauge", help="Percent busy")
TENSOR = Metric(field="DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", prometheus_type="gauge", help="Tensor pipe busy")


def chart_with(**given):
    chart = Chart(App(), "gpu")
    DcgmExporter(chart, "exporter", **given)
    return chart


def rendered(**given):
    return Testing.synth(chart_with(**given))


def refusal(**given):
    with pytest.raises(GpuConstructsError) as refused:
        chart_with(**given)
    return str(refused.value)


def find(manifests, kind, name=NAME):
    (found,) = (m for m in manifests if m["kind"] == kind and m["metadata"]["name"] == name)
    return found


def daemonset(**given):
    return find(rendered(**{"scrape": "none", "dashboard": False, **given}), "DaemonSet")


def pod(**given):
    return daemonset(**given)["spec"]["template"]["spec"]


def container(**given):
    (only,) = pod(**given)["containers"]
    return only


def csv(**given):
    manifests = rendered(**{"scrape": "none", "dashboard": False, **given})
    return find(manifests, "ConfigMap", "dcgm-exporter-metrics")["data"]["metrics.csv"]


def brief(manifests):
    """The metrics and the dashboard have tests of their own; here only that they are there."""
    return [
        {**m, "data": dict.fromkeys(m["data"], f"({m['metadata']['name']})")} if m["kind"] == "ConfigMap" else m
        for m in manifests
    ]


@pytest.mark.parametrize("version", IMAGES)
def test_every_release_on_talos(version, objects, snapshot):
    assert brief(objects(chart_with(version=version))) == snapshot


@pytest.mark.parametrize("scrape", SCRAPES)
def test_every_scrape_object(scrape, objects, snapshot):
    manifests = objects(chart_with(scrape=scrape, scrape_labels={"release": "kube-prometheus-stack"}))
    assert [find(manifests, scrape)] == snapshot


def test_plain_kubernetes_with_own_metrics_and_without_extras(objects, snapshot):
    chart = chart_with(platform=Kubernetes(), metrics=[UTILISATION], scrape="none", dashboard=False)
    assert objects(chart) == snapshot


def test_its_objects_have_fixed_names():
    assert [(m["kind"], m["metadata"]["name"]) for m in rendered()] == [
        ("ConfigMap", "dcgm-exporter-metrics"),
        ("DaemonSet", "dcgm-exporter"),
        ("Service", "dcgm-exporter"),
        ("ServiceMonitor", "dcgm-exporter"),
        ("ConfigMap", "dcgm-exporter-dashboard"),
    ]


def test_the_daemonset_is_its_main_object(chart):
    exporter = DcgmExporter(chart, "exporter")
    assert (exporter.api_object.kind, exporter.api_object.name) == ("DaemonSet", NAME)


@pytest.mark.parametrize("version", IMAGES)
def test_a_release_is_an_image_and_a_list_of_metrics(version):
    assert container(version=version)["image"] == IMAGES[version]
    assert csv(version=version) == counters_csv(metric_set("recommended", version))
    for name in ("seed", "default", "recommended", "profiling"):
        assert csv(version=version, metrics=name) == counters_csv(metric_set(name, version))


def test_the_newest_release_that_works_is_the_default():
    assert rendered() == rendered(version="4.8.3")


def test_an_unverified_release_takes_the_image_it_is_given():
    image = "registry.example/dcgm-exporter:4.7.0-4.9.0"
    assert container(version=Unverified("4.9.0", like="4.8.3", image=image))["image"] == image


@pytest.mark.parametrize("like", IMAGES)
def test_an_unverified_release_differs_from_the_one_it_is_like_by_image_and_version_only(like):
    # 3.3.0 is older than the releases that 4.x rules are for, and 9.9.9 newer than those that 3.x rules are for.
    for version in ("3.3.0", "9.9.9"):
        image = f"registry.example/dcgm-exporter:{version}"
        text = json.dumps(rendered(version=Unverified(version, like=like, image=image)))
        assert json.loads(text.replace(image, IMAGES[like]).replace(version, like)) == rendered(version=like)


@pytest.mark.parametrize("version", IMAGES)
def test_utilisation_memory_temperature_power_and_clocks_are_always_there(version):
    text = csv(version=version)
    for field in ("GPU_UTIL", "FB_USED", "FB_FREE", "GPU_TEMP", "POWER_USAGE", "SM_CLOCK", "MEM_CLOCK"):
        assert f"\nDCGM_FI_DEV_{field}, gauge, " in text


def test_own_metrics_replace_the_list():
    assert csv(metrics=[UTILISATION]) == counters_csv([UTILISATION])


def test_the_pods_read_the_list_and_restart_when_it_changes():
    first, second = (daemonset(metrics=metrics) for metrics in ([UTILISATION], [UTILISATION, TENSOR]))
    checksums = [m["spec"]["template"]["metadata"]["annotations"] for m in (first, second)]
    assert checksums[0] == {"gpu-constructs/metrics-sha256": sha256(counters_csv([UTILISATION]))}
    assert checksums[0] != checksums[1]
    assert first["metadata"] == second["metadata"]
    assert {"name": "metrics", "configMap": {"name": "dcgm-exporter-metrics"}} in pod()["volumes"]


def test_sys_admin_comes_with_profiling_metrics_only():
    assert container(metrics=[TENSOR])["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["SYS_ADMIN"]}
    assert container(metrics=[UTILISATION])["securityContext"]["capabilities"] == {"drop": ["ALL"]}


@pytest.mark.parametrize("scrape", SCRAPES)
def test_one_scrape_object_of_the_wanted_kind(scrape):
    kinds = [m["kind"] for m in rendered(scrape=scrape)]
    assert [kind for kind in kinds if kind in SCRAPES] == [scrape]


def test_none_leaves_the_scrape_object_out():
    assert [m["kind"] for m in rendered(scrape="none")] == ["ConfigMap", "DaemonSet", "Service", "ConfigMap"]


@pytest.mark.parametrize("scrape", SCRAPES)
def test_scrape_labels_stand_on_the_scrape_object_and_nowhere_else(scrape):
    labelled = [
        m["kind"]
        for m in rendered(scrape=scrape, scrape_labels={"release": "prometheus"})
        if "release" in m["metadata"]["labels"]
    ]
    assert labelled == [scrape]


def test_the_dashboard_carries_the_label_of_the_sidecar_and_can_be_left_out():
    board = find(rendered(), "ConfigMap", "dcgm-exporter-dashboard")
    assert board["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert json.loads(board["data"]["dcgm-exporter.json"])["title"]
    assert "dcgm-exporter-dashboard" not in str(rendered(dashboard=False))


def test_the_service_selects_the_pods():
    labels = daemonset()["spec"]["template"]["metadata"]["labels"]
    assert find(rendered(), "Service")["spec"]["selector"].items() <= labels.items()
    assert daemonset()["spec"]["selector"]["matchLabels"].items() <= labels.items()


@pytest.mark.parametrize("scrape", ["PodMonitor", "VMPodScrape"])
def test_pods_are_scraped_without_a_service(scrape):
    kinds = [m["kind"] for m in rendered(scrape=scrape, service=False, dashboard=False)]
    assert kinds == ["ConfigMap", "DaemonSet", scrape]


def test_annotations_on_the_service_are_for_a_prometheus_that_looks_for_them():
    annotated = find(rendered(scrape="annotations", port=9500), "Service")["metadata"]["annotations"]
    assert annotated == {
        "prometheus.io/scrape": "true",
        "prometheus.io/port": "9500",
        "prometheus.io/path": "/metrics",
        "prometheus.io/scheme": "http",
    }


def test_the_scrape_object_gets_through_tls_and_password():
    tls = Tls(secret="certificate", client_auth_type="RequireAndVerifyClientCert", client_secret="prometheus-client")
    (endpoint,) = find(rendered(tls=tls, basic_auth=AUTH), "ServiceMonitor")["spec"]["endpoints"]
    assert endpoint["scheme"] == "https"
    assert endpoint["tlsConfig"] == {
        "ca": {"secret": {"name": "certificate", "key": "ca.crt"}},
        "cert": {"secret": {"name": "prometheus-client", "key": "tls.crt"}},
        "keySecret": {"name": "prometheus-client", "key": "tls.key"},
        "serverName": "dcgm-exporter.nvidia-gpu-operator.svc",
    }
    assert endpoint["basicAuth"] == {
        "username": {"name": "scrape", "key": "username"},
        "password": {"name": "scrape", "key": "password"},
    }


def test_hashes_of_passwords_are_in_a_secret_and_a_certificates_paths_in_a_config_map():
    secret = find(rendered(basic_auth=AUTH), "Secret", "dcgm-exporter-web-config")
    assert "$2y$10$" in secret["stringData"]["web-config.yaml"]
    paths = find(rendered(tls=Tls(secret="certificate")), "ConfigMap", "dcgm-exporter-web-config")
    assert "cert_file: /etc/gpu-constructs/tls/tls.crt" in paths["data"]["web-config.yaml"]


def test_another_password_restarts_the_pods():
    other = BasicAuth(users={"prometheus": "$2y$10$" + "b" * 53}, secret="scrape")
    checksums = [
        daemonset(basic_auth=auth)["spec"]["template"]["metadata"]["annotations"]["gpu-constructs/web-config-sha256"]
        for auth in (AUTH, other)
    ]
    assert checksums[0] != checksums[1]


def test_time_slicing_switches_on_together_what_attribution_needs():
    sharing = Sharing.time_slicing(replicas=4, rename_by_default=True)
    manifests = rendered(sharing=sharing)
    (only,) = find(manifests, "DaemonSet")["spec"]["template"]["spec"]["containers"]
    variables = {one["name"]: one.get("value") for one in only["env"]}
    assert variables["KUBERNETES_VIRTUAL_GPUS"] == "true"
    assert variables["DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID"] == "true"
    assert variables["NVIDIA_RESOURCE_NAMES"] == "nvidia.com/gpu.shared"
    assert find(manifests, "DaemonSet")["spec"]["template"]["spec"]["hostPID"] is True
    assert find(manifests, "ClusterRole")["rules"] == [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}
    ]
    assert find(manifests, "ServiceAccount")["automountServiceAccountToken"] is False
    assert "NVIDIA_RESOURCE_NAMES" not in str(rendered(sharing=Sharing.time_slicing(replicas=4), dashboard=False))


def test_claims_are_read_with_no_more_rights_than_that():
    manifests = rendered(pod_mapping=PodMapping(enable_dra=True))
    assert find(manifests, "ClusterRole")["rules"] == [
        {"apiGroups": ["resource.k8s.io"], "resources": ["resourceslices"], "verbs": ["get", "list", "watch"]}
    ]


def test_an_existing_service_account_gets_the_rights_and_is_not_made_again():
    manifests = rendered(pod_mapping=PodMapping(enable_pod_uid=True), service_account="monitoring")
    assert "ServiceAccount" not in [m["kind"] for m in manifests]
    (subject,) = find(manifests, "ClusterRoleBinding")["subjects"]
    assert subject["name"] == "monitoring"
    assert find(manifests, "DaemonSet")["spec"]["template"]["spec"]["serviceAccountName"] == "monitoring"


def test_rights_never_take_the_name_of_somebody_elses_role():
    manifests = rendered(pod_mapping=PodMapping(enable_pod_uid=True), service_account="admin")
    assert [m["metadata"]["name"] for m in manifests if m["kind"] == "ClusterRole"] == [NAME]


def test_a_remote_hostengine_does_the_profiling_itself_and_without_pods_hides_the_nodes_name():
    remote = {"remote_hostengine": "nvidia-dcgm:5555"}
    assert container(**remote)["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    made = DcgmExporter(Chart(App(), "gpu"), "exporter", pod_mapping=False, **remote)
    assert made.series.labels.node == "node"


def test_annotations_that_have_it_scraped_a_second_time_are_warned_of():
    with pytest.warns(GpuConstructsWarning) as warned:
        rendered(pod_annotations={"prometheus.io/scrape": "true"})
    assert [str(one.message) for one in warned] == [
        "pod_annotations holds 'prometheus.io/scrape' beside scrape='ServiceMonitor': a Prometheus that looks for it "
        "scrapes the same target again; leave it out, or pass scrape='annotations'"
    ]
    with warnings.catch_warnings(action="error"):
        rendered(pod_annotations={"prometheus.io/scrape": "true"}, scrape="annotations")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"metrics": "seed"}, "the kubelet's socket, so no pod is named"),
        ({"pod_mapping": False}, "SYS_ADMIN"),
    ],
)
def test_a_user_that_is_not_root_is_told_what_it_loses(options, told):
    own = {"runAsUser": 1000, "capabilities": {"add": ["SYS_ADMIN"]}}
    with pytest.warns(GpuConstructsWarning) as warned:
        container(security_context=own, **options)
    assert [str(one.message) for one in warned] == [f"security_context: only root gets {told}; got {own!r}"]


def test_series_tell_alerts_and_dashboards_what_they_can_ask_for():
    def series(**given):
        return DcgmExporter(Chart(App(), "gpu"), "exporter", **{"dashboard": False, **given}).series

    assert (series().job, series().pods, series().labels.node) == ("dcgm-exporter", "one", "hostname")
    assert series(version="4.8.2").labels.node == "Hostname"
    assert series(collect_interval_seconds=60).scrape_interval_seconds == 60
    assert series(scrape=Scrape(interval_seconds=90)).scrape_interval_seconds == 90
    assert series(name="gpus").job == "gpus"
    assert series(scrape="none").job is None
    assert series(sharing=Sharing.mps(replicas=2)).pods == "all"
    assert series(pod_mapping=False).pods == "none"
    assert series(scrape=Scrape(kind="PodMonitor", honor_labels=False)).pods == "none"
    assert series(metrics="seed").metrics == {metric.field for metric in metric_set("seed", "4.8.3")}
    assert "DCGM_FI_DRIVER_VERSION" not in series().metrics
    assert series(metrics=MetricsConfigMap(config_map="mine")).metrics == set()


def test_a_name_that_no_board_has_is_warned_of_with_the_nearest():
    said = r"gpu_models: 'RTX 4099' is not the name of a known board \(did you mean 'NVIDIA GeForce RTX 4090'"
    with pytest.warns(GpuConstructsWarning, match=said):
        csv(gpu_models=["RTX 4099"])


def test_models_that_cannot_be_profiled_take_sys_admin_away():
    models = ["NVIDIA GeForce RTX 3090"]
    assert "DCGM_FI_PROF" not in csv(gpu_models=models)
    assert container(gpu_models=models)["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    for others in (
        ["NVIDIA GeForce RTX 5070 Ti"],
        ["NVIDIA GeForce RTX 3090", "NVIDIA H200"],
        ["NVIDIA New One"],
        ["A16"],
    ):
        assert "DCGM_FI_PROF" in csv(gpu_models=others)


def test_without_pod_mapping_and_profiling_it_fits_a_restricted_namespace(tmp_path):
    app = App(outdir=str(tmp_path))
    chart = Chart(app, "gpu")
    namespace = GpuNamespace(chart, "namespace", name="monitoring", pod_security="restricted")
    External(chart, "nodes", node_labels=["nvidia.com/gpu.present"])
    NvidiaRuntimeClass(chart, "runtime-class")
    DcgmExporter(chart, "exporter", namespace=namespace, pod_mapping=False, metrics="seed")
    synthesize(app)
    assert "runAsNonRoot: true" in (tmp_path / "gpu.k8s.yaml").read_text()


def test_two_exporters_that_profile_the_same_nodes_are_refused_and_others_are_not(tmp_path):
    def app(**second):
        made = App(outdir=str(tmp_path))
        chart = Chart(made, "gpu")
        GpuNamespace(chart, "namespace")
        External(chart, "nodes", node_labels=["nvidia.com/gpu.present", "pool"])
        NvidiaRuntimeClass(chart, "runtime-class")
        DcgmExporter(chart, "one", node_selector={"pool": "a"})
        DcgmExporter(chart, "two", **{"name": "second", "dashboard": False, **second})
        return made

    with pytest.raises(SynthesisError) as refused:
        synthesize(app())
    assert refused.value.problems == [
        "gpu/one: exports profiling metrics (DCGM_FI_PROF_*) of nodes whose GPUs gpu/two profiles too, and only one "
        "can at a time: the other fails; leave them out of one's metrics, or select different nodes with node_selector"
    ]
    for apart in ({"node_selector": {"pool": "b"}}, {"metrics": "seed"}):
        synthesize(app(**apart))
        assert (tmp_path / "gpu.k8s.yaml").exists()


def test_another_name_is_another_instance_so_that_no_service_takes_the_other_exporters_pods():
    def instance(**given):
        return daemonset(**given)["spec"]["selector"]["matchLabels"]["app.kubernetes.io/instance"]

    made = find(rendered(name="second", dashboard=False), "DaemonSet", "second")
    assert made["spec"]["selector"]["matchLabels"]["app.kubernetes.io/instance"] == "second"
    assert (instance(), instance(instance="blue")) == ("exporter", "blue")


def test_further_options_reach_the_objects():
    manifests = rendered(
        name="gpu-metrics",
        instance="blue",
        port=9500,
        host_network=True,
        service=ExporterService(internal_traffic_policy="Local", annotations={"a/b": "c d"}),
        env={"DCGM_EXPORTER_LOG_FORMAT": "json"},
        volumes={"/jobs": Volume.host_path("/var/lib/jobs", type="Directory")},
        affinity={"podAntiAffinity": {}},
        image_pull_policy="Always",
        image_pull_secrets=["registry"],
        update_strategy=UpdateStrategy.on_delete(),
        pod_labels={"team": "ml"},
        pod_annotations={"note": "x y"},
        pod_security_context={"supplementalGroups": [7]},
        dashboard=False,
    )
    made = find(manifests, "DaemonSet", "gpu-metrics")
    spec = made["spec"]["template"]["spec"]
    (only,) = spec["containers"]
    assert made["spec"]["updateStrategy"] == {"type": "OnDelete"}
    assert made["spec"]["selector"]["matchLabels"]["app.kubernetes.io/instance"] == "blue"
    assert made["spec"]["template"]["metadata"]["labels"]["team"] == "ml"
    assert made["spec"]["template"]["metadata"]["annotations"]["note"] == "x y"
    assert (spec["hostNetwork"], spec["dnsPolicy"]) == (True, "ClusterFirstWithHostNet")
    assert spec["imagePullSecrets"] == [{"name": "registry"}]
    assert spec["securityContext"]["supplementalGroups"] == [7]
    assert spec["volumes"][-1] == {"name": "jobs", "hostPath": {"path": "/var/lib/jobs", "type": "Directory"}}
    assert only["volumeMounts"][-1] == {"name": "jobs", "mountPath": "/jobs", "readOnly": True}
    assert only["imagePullPolicy"] == "Always"
    assert {"name": "DCGM_EXPORTER_LOG_FORMAT", "value": "json"} in only["env"]
    service = find(manifests, "Service", "gpu-metrics")
    assert service["spec"]["internalTrafficPolicy"] == "Local"
    assert service["metadata"]["annotations"] == {"a/b": "c d"}
    assert service["spec"]["ports"][0]["port"] == 9500


def test_a_list_that_somebody_else_keeps_is_mounted():
    given = {"metrics": MetricsConfigMap(config_map="mine", key="gpu.csv"), "dashboard": False}
    manifests = rendered(**given)
    assert [m["kind"] for m in manifests] == ["DaemonSet", "Service", "ServiceMonitor"]
    assert container(**given)["args"] == ["-f", "/etc/gpu-constructs/metrics/gpu.csv"]
    assert {"name": "metrics", "configMap": {"name": "mine"}} in pod(**given)["volumes"]
    assert container(**given)["securityContext"]["capabilities"] == {"drop": ["ALL"]}


@pytest.mark.parametrize("scrape", ["ServiceMonitor", "VMServiceScrape"])
def test_the_scrape_object_selects_the_service_and_its_port(scrape):
    manifests = rendered(scrape=scrape)
    service, monitor = find(manifests, "Service"), find(manifests, scrape)
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    ports = [port["name"] for port in service["spec"]["ports"]]
    assert [endpoint["port"] for endpoint in monitor["spec"]["endpoints"]] == ports


def test_a_pod_monitor_selects_the_pods_and_their_port():
    manifests = rendered(scrape="PodMonitor")
    template, monitor = find(manifests, "DaemonSet")["spec"]["template"], find(manifests, "PodMonitor")
    assert monitor["spec"]["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert endpoint["port"] in [port["name"] for port in template["spec"]["containers"][0]["ports"]]


def test_it_runs_on_gpu_nodes_under_the_nvidia_runtime_and_takes_no_slot():
    assert pod()["nodeSelector"] == {"nvidia.com/gpu.present": "true"}
    assert pod()["runtimeClassName"] == "nvidia"
    assert "nvidia.com/gpu" not in str(container()["resources"])


def test_plain_kubernetes_gets_no_runtime_class_unless_one_is_named(chart):
    assert "runtimeClassName" not in pod(platform=Kubernetes())
    runtime_class = NvidiaRuntimeClass(chart, "runtime-class", name="gpu-runtime")
    assert pod(platform=Kubernetes(), runtime_class=runtime_class)["runtimeClassName"] == "gpu-runtime"


def test_it_has_no_rights_and_no_token():
    assert pod()["automountServiceAccountToken"] is False
    assert not any(m["kind"] in ("ServiceAccount", "Role", "ClusterRole") for m in rendered())


def test_placement_image_resources_and_priority_can_be_replaced():
    given = {
        "tolerations": [TAINT],
        "node_selector": {"pool": "gpu"},
        "image": "registry.example/dcgm@sha256:" + "0" * 64,
        "resources": {"limits": {"memory": "2Gi"}},
        "priority_class_name": "monitoring",
    }
    spec = pod(**given)
    (only,) = spec["containers"]
    assert spec["tolerations"] == [
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
        TAINT.to_manifest(),
    ]
    assert spec["nodeSelector"] == {"nvidia.com/gpu.present": "true", "pool": "gpu"}
    assert spec["priorityClassName"] == "monitoring"
    assert only["image"] == given["image"]
    assert only["resources"] == {"limits": {"memory": "2Gi"}}
    assert {"name": "GOMEMLIMIT", "value": "1536MiB"} in only["env"]


def test_losing_metrics_evicts_no_workload():
    assert "priorityClassName" not in pod()


def test_everything_lives_in_the_namespace_it_is_given(chart):
    DcgmExporter(chart, "exporter", namespace=GpuNamespace(chart, "namespace", name="monitoring-gpu"))
    namespaces = {m["metadata"].get("namespace") for m in Testing.synth(chart) if m["kind"] != "Namespace"}
    assert namespaces == {"monitoring-gpu"}


RELEASES = "'3.4.2', '4.8.2', '4.8.3'"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"scrape": "ServiceMonitr"},
            "scrape must be one of 'ServiceMonitor', 'PodMonitor', 'VMServiceScrape', 'VMPodScrape', 'annotations', "
            "'none'; got 'ServiceMonitr' (did you mean 'ServiceMonitor'?)",
        ),
        (
            {"version": "4.9.0"},
            f"version of the DCGM exporter must be one of {RELEASES}; got '4.9.0'; force it with "
            "Unverified('4.9.0', like='4.8.3', image='...')",
        ),
        (
            {"version": "v4.8.3"},
            f"version of the DCGM exporter must be one of {RELEASES}; got 'v4.8.3' (did you mean '4.8.3'?)",
        ),
        (
            {"version": Unverified("4.9.0", like="4.8.3")},
            "version.image of the DCGM exporter is required for a release we have not checked, since its tag names "
            "more than the release; got None, e.g. image='nvcr.io/nvidia/k8s/dcgm-exporter:4.6.0-4.8.3-distroless'",
        ),
        (
            {"version": "3.1.0"},
            f"version of the DCGM exporter must be one of {RELEASES}; got '3.1.0'; it is older than anything "
            "supported: move up to '3.4.2' or later",
        ),
        (
            {"namespace": "default"},
            "namespace must not be 'default': GPU components need a namespace whose Pod Security level is "
            "privileged; leave it out for 'nvidia-gpu-operator' or name one of your own",
        ),
        ({"metrics": []}, "metrics must hold at least one gauge or counter; got []"),
        (
            {"metrics": [UTILISATION, UTILISATION]},
            "metrics must name each field once; got 'DCGM_FI_DEV_GPU_UTIL' more than once",
        ),
        (
            {"metrics": ["DCGM_FI_DEV_GPU_UTILL"]},
            "metrics must name fields that the DCGM exporter 4.8.3 knows: it would end at an unknown one; got "
            "'DCGM_FI_DEV_GPU_UTILL' (did you mean 'DCGM_FI_DEV_GPU_UTIL'?)",
        ),
        (
            {"metrics": [Metric(field="DCGM_FI_DEV_GPU_UTILL", prometheus_type="gauge", help="")]},
            "metrics must name fields that the DCGM exporter 4.8.3 knows: it would end at an unknown one; got "
            "'DCGM_FI_DEV_GPU_UTILL' (did you mean 'DCGM_FI_DEV_GPU_UTIL'?)",
        ),
        (
            {"metrics": "recomended"},
            "metrics must be one of 'seed', 'default', 'recommended', 'profiling'; got 'recomended' "
            "(did you mean 'recommended'?)",
        ),
        (
            {"metrics": "profiling", "gpu_models": ["NVIDIA GeForce RTX 3090", "NVIDIA GeForce RTX 4090"]},
            "metrics must not hold profiling metrics for 'NVIDIA GeForce RTX 3090', 'NVIDIA GeForce RTX 4090': GeForce "
            "has none before Blackwell; got 'profiling'; take metrics='recommended', which leaves them out for such "
            "GPUs",
        ),
        (
            {"metrics": [UTILISATION, TENSOR], "gpu_models": ["NVIDIA GeForce RTX 3090"]},
            "metrics must not hold profiling metrics for 'NVIDIA GeForce RTX 3090': GeForce has none before Blackwell; "
            "got 'DCGM_FI_PROF_PIPE_TENSOR_ACTIVE'; take metrics='recommended', which leaves them out for such GPUs",
        ),
        (
            {"metrics": MetricsConfigMap(config_map="mine")},
            "dashboard must be False with metrics=MetricsConfigMap(...), whose metrics are not known here; got True; "
            "pass dashboard=False",
        ),
        (
            {"basic_auth": BasicAuth(users=USERS)},
            "basic_auth.secret is required for the scrape object, which must log in; got None; name a Secret with the "
            "keys 'username' and 'password', or pass scrape='none'",
        ),
        (
            {"tls": Tls(secret="certificate", client_auth_type="RequireAndVerifyClientCert")},
            "tls.client_secret is required with client_auth_type='RequireAndVerifyClientCert', since the scraper must "
            "show a certificate; got None; name a Secret, or pass scrape='none'",
        ),
        (
            {"tls": Tls(secret="certificate"), "version": "3.4.2"},
            "tls must be left out with version '3.4.2': it came with 4.0.0; take a later version",
        ),
        (
            {"basic_auth": AUTH, "version": "3.4.2"},
            "basic_auth must be left out with version '3.4.2': it came with 4.0.0; take a later version",
        ),
        (
            {"debug_dump": True, "version": "3.4.2"},
            "debug_dump must be left out with version '3.4.2': it came with 4.2.0; take a later version",
        ),
        (
            {"pod_mapping": PodMapping(enable_pod_labels=True), "version": "3.4.2"},
            "pod_mapping.enable_pod_labels must be left out with version '3.4.2': it came with 4.2.0; take a later "
            "version",
        ),
        (
            {"sharing": Sharing.time_slicing(replicas=4), "version": "3.4.2"},
            "sharing must be left out with version '3.4.2', which names one of the pods that share a GPU and no other; "
            "got 'time-slicing'; take version '4.8.2' or later",
        ),
        (
            {"sharing": Sharing.time_slicing(replicas=4), "pod_mapping": False},
            "sharing must be left out with pod_mapping=False, which names no pod at all; got 'time-slicing'",
        ),
        (
            {"service": False},
            "service must not be False with scrape='ServiceMonitor', which finds pods through the Service; use "
            "scrape='PodMonitor' or 'VMPodScrape'",
        ),
        (
            {"scrape": "annotations", "tls": Tls(secret="certificate")},
            "scrape must not be 'annotations' with tls or basic_auth, since annotations carry neither certificates nor "
            "passwords; take one of the kinds that are objects, or 'none'",
        ),
        ({"remote_hostengine": "nvidia-dcgm"}, "remote_hostengine must be 'host:port'; got 'nvidia-dcgm'"),
        ({"collect_interval_seconds": 0}, "collect_interval_seconds must be at least 1, got 0"),
        (
            {"port": 80, "host_network": True},
            "port must be at least 1024 with host_network=True: the exporter holds no right to bind others; got 80",
        ),
        (
            {"env": {"DCGM_EXPORTER_USE_OLD_NAMESPACE": "true"}},
            "env must not hold 'DCGM_EXPORTER_USE_OLD_NAMESPACE': it takes away labels that alerts and dashboard ask "
            "for; leave it out",
        ),
        (
            {"metrics": MetricsConfigMap(config_map="mine", is_profiled=True), "gpu_models": ["GeForce RTX 3090"]},
            "metrics.is_profiled must be False for 'GeForce RTX 3090': GeForce has no profiling metrics before "
            "Blackwell; got True",
        ),
        ({"port": 70000}, "port must be at most 65535, got 70000"),
        (
            {"name": "dcgm-exporter-with-a-name-that-is-longer-than-others-can-be"},
            "name must have at most 52 characters, since others follow; got "
            "'dcgm-exporter-with-a-name-that-is-longer-than-others-can-be'",
        ),
        (
            {"env": {"DCGM_EXPORTER_INTERVAL": "1000"}},
            "env must not hold 'DCGM_EXPORTER_INTERVAL': this library sets it; set collect_interval_seconds",
        ),
        (
            {"env": {"NODE_NAME": "x"}},
            "env must not hold 'NODE_NAME': this library sets it; leave it out",
        ),
        (
            {"pod_labels": {"app.kubernetes.io/name": "x"}},
            "pod_labels must not hold 'app.kubernetes.io/name': this library sets it; leave it out",
        ),
        (
            {"pod_annotations": {"gpu-constructs/metrics-sha256": "x"}},
            "pod_annotations must not hold 'gpu-constructs/metrics-sha256': this library sets it; leave it out",
        ),
        (
            {"security_context": {"runAsUser": 0}},
            "security_context must hold capabilities.add SYS_ADMIN for profiling metrics; got {'runAsUser': 0}; leave "
            "it out, or leave those metrics out",
        ),
        (
            {"affinity": {"nodeAfinity": {}}},
            "affinity key must be one of 'nodeAffinity', 'podAffinity', 'podAntiAffinity'; got 'nodeAfinity' "
            "(did you mean 'nodeAffinity'?)",
        ),
        ({"dashboard": "no"}, "dashboard must be bool; got str: 'no'"),
        (
            {"scrape_labels": {"release": ""}, "scrap": 1},
            "scrap is no keyword of DcgmExporter (did you mean 'scrape'?)",
        ),
        ({"scrape_labels": {"a b": "c"}}, "scrape_labels has a key that is no label key; got 'a b'"),
        (
            {"image": "dcgm-exporter"},
            "image must be pinned as 'repository:tag' or 'repository@sha256:...', never 'latest'; got 'dcgm-exporter'",
        ),
    ],
    ids=str,
)
def test_bad_input_gets_one_error(given, message):
    assert refusal(**given) == f"gpu/exporter: {message}"


def test_a_priority_class_that_cannot_exist_is_refused():
    assert refusal(priority_class_name="very high").startswith(
        "gpu/exporter: priority_class_name must be a DNS subdomain"
    )


@pytest.mark.parametrize(
    ("memory", "problem"),
    [
        ("900Ki", "must leave the exporter a few MiB"),
        ("lots", "must be a Kubernetes quantity like '500m' or '16Gi'"),
        ("1 GiB", "must be a Kubernetes quantity like '500m' or '16Gi'"),
        ("", "must be a Kubernetes quantity like '500m' or '16Gi'"),
    ],
)
def test_a_refused_memory_limit_leaves_the_chart_as_it_was(chart, memory, problem):
    with pytest.raises(GpuConstructsError) as refused:
        DcgmExporter(chart, "exporter", resources={"limits": {"memory": memory}})
    assert refused.value.problem == f"resources['limits']['memory'] {problem}; got {memory!r}"
    assert list(chart.node.children) == []

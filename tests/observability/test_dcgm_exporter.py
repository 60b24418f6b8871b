import json

import pytest
from cdk8s import App, Chart, Testing

from exporter_rendering import Rendering
from gpu_constructs import (
    BasicAuth,
    DcgmExporter,
    DebugDump,
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
    Unverified,
    synthesize,
)
from gpu_constructs.catalog import versions
from gpu_constructs.kube.config_map import sha256
from gpu_constructs.observability.metrics import counters_csv, metric_set
from schemas import schema_errors
from tables import beside

NAME = "dcgm-exporter"
DCGM = Rendering(DcgmExporter, NAME)
IMAGES = beside(__file__, "dcgm_exporter")["images"]
AUTH = BasicAuth(users={"prometheus": "$2y$10$" + "a" * 53}, secret="scrape")
TLS = Tls(secret="certificate")
UTILISATION = Metric(field="DCGM_FI_DEV_GPU_UTIL", prometheus_type="gauge", help="Percent busy")
TENSOR = Metric(field="DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", prometheus_type="gauge", help="Tensor pipe busy")
BARE = {"pod_mapping": False, "metrics": "seed"}
SLICED = Sharing.time_slicing(replicas=4)
EVERY_RELEASE = pytest.mark.parametrize("version", IMAGES)


def chart_with(**given):
    chart = Chart(App(), "gpu")
    DcgmExporter(chart, "exporter", **given)
    return chart


def rendered(**given):
    return Testing.synth(chart_with(**given))


def find(manifests, kind, name=NAME):
    (found,) = (m for m in manifests if m["kind"] == kind and m["metadata"]["name"] == name)
    return found


def csv(**given):
    return DCGM.find("ConfigMap", called="-metrics", **{"scrape": "none", **given})["data"]["metrics.csv"]


def brief(manifests):
    """Return the manifests without the metrics and the dashboard, which have their own tests."""
    return [
        {**m, "data": dict.fromkeys(m["data"], f"({m['metadata']['name']})")} if m["kind"] == "ConfigMap" else m
        for m in manifests
    ]


@EVERY_RELEASE
def test_every_release_on_talos(version, objects, snapshot):
    assert brief(objects(chart_with(version=version))) == snapshot


@pytest.mark.parametrize("scrape", ["ServiceMonitor", "PodMonitor", "VMServiceScrape", "VMPodScrape"])
def test_every_scrape_object(scrape, objects, snapshot):
    manifests = objects(chart_with(scrape=scrape, scrape_labels={"release": "kube-prometheus-stack"}))
    assert [find(manifests, scrape)] == snapshot


def test_plain_kubernetes_with_own_metrics_and_without_extras(objects, snapshot):
    chart = chart_with(platform=Kubernetes(), metrics=[UTILISATION], scrape="none", dashboard=False)
    assert objects(chart) == snapshot


@EVERY_RELEASE
def test_with_everything_it_is_valid_on_every_supported_kubernetes(version):
    later = {"tls": TLS, "basic_auth": AUTH, "debug_dump": True, "sharing": SLICED}
    for given in (
        BARE,
        {
            "service": ExporterService(cluster_ip="None", internal_traffic_policy="Local", annotations={"a/b": "c d"}),
            "remote_hostengine": "nvidia-dcgm:5555",
            "host_network": True,
            **(later if version != "3.4.2" else {}),
        },
    ):
        for manifest in DCGM.objects(version=version, **given):
            assert schema_errors(manifest) == [], given


# --- releases and metrics ----------------------------------------------------


@EVERY_RELEASE
def test_a_release_is_an_image_and_a_list_of_metrics(version):
    assert DCGM.container(version=version)["image"] == IMAGES[version]
    for name in ("seed", "default", "recommended", "profiling"):
        assert csv(version=version, metrics=name) == counters_csv(metric_set(name, version))
    for field in ("GPU_UTIL", "FB_USED", "FB_FREE", "GPU_TEMP", "POWER_USAGE", "SM_CLOCK", "MEM_CLOCK"):
        assert f"\nDCGM_FI_DEV_{field}, gauge, " in csv(version=version)


@EVERY_RELEASE
def test_an_unverified_release_differs_from_the_one_it_is_like_by_image_and_version_only(version):
    # 3.3.0 is older than all releases with rules for 4.x, and 9.9.9 is newer than those with rules for 3.x.
    for unknown in ("3.3.0", "9.9.9"):
        image = f"registry.example/dcgm-exporter:{unknown}"
        text = json.dumps(rendered(version=Unverified(unknown, like=version, image=image)))
        assert json.loads(text.replace(image, IMAGES[version]).replace(unknown, version)) == rendered(version=version)


def test_own_metrics_replace_the_list_and_a_change_restarts_the_pods():
    assert csv(metrics=[UTILISATION]) == counters_csv([UTILISATION])
    first, second = (DCGM.daemonset(metrics=metrics) for metrics in ([UTILISATION], [UTILISATION, TENSOR]))
    checksums = [m["spec"]["template"]["metadata"]["annotations"] for m in (first, second)]
    assert checksums[0] == {"gpu-constructs/metrics-sha256": sha256(counters_csv([UTILISATION]))}
    assert checksums[0] != checksums[1]
    source, mount = DCGM.volumes()["metrics"]
    assert (source, "subPath" in mount) == ({"configMap": {"name": "dcgm-exporter-metrics"}}, False)
    assert DCGM.container()["args"] == ["-f", f"{mount['mountPath']}/metrics.csv"]


def test_a_metrics_config_map_is_mounted():
    given = {"metrics": MetricsConfigMap(config_map="mine", key="gpu.csv")}
    assert [m["kind"] for m in DCGM.objects(**given)] == ["DaemonSet", "Service", "ServiceMonitor"]
    assert DCGM.container(**given)["args"] == ["-f", "/etc/gpu-constructs/metrics/gpu.csv"]
    assert DCGM.volumes(**given)["metrics"][0] == {"configMap": {"name": "mine"}}
    assert DCGM.container(**given)["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert DCGM.made(dashboard=False, **given).series.metrics == set()


def test_an_unknown_board_causes_a_warning_with_the_nearest_name():
    said = r"gpu_models: 'RTX 4099' is not the name of a known board \(did you mean 'NVIDIA GeForce RTX 4090'"
    with pytest.warns(GpuConstructsWarning, match=said):
        csv(gpu_models=["RTX 4099"])


def test_models_without_profiling_remove_sys_admin():
    models = ["NVIDIA GeForce RTX 3090"]
    assert "DCGM_FI_PROF" not in csv(gpu_models=models)
    assert DCGM.container(gpu_models=models)["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    for others in (["NVIDIA GeForce RTX 5070 Ti"], [*models, "NVIDIA H200"], ["NVIDIA New One"], ["A16"]):
        assert "DCGM_FI_PROF" in csv(gpu_models=others)


def test_series_describe_the_exported_metrics():
    def series(**given):
        return DCGM.made(**{"dashboard": False, **given}).series

    assert (series().job, series().pods, series().labels.node) == (NAME, "one", "hostname")
    assert series(version="4.8.2").labels.node == "Hostname"
    assert series(collect_interval_seconds=60).scrape_interval_seconds == 60
    assert series(scrape=Scrape(interval_seconds=90)).scrape_interval_seconds == 90
    assert series(sharing=Sharing.mps(replicas=2)).pods == "all"
    unnamed = ({"pod_mapping": False}, {"scrape": "annotations"}, {"scrape": Scrape(honor_labels=False)})
    assert [series(**given).pods for given in unnamed] == ["none"] * 3
    assert series(metrics="seed").metrics == {metric.field for metric in metric_set("seed", "4.8.3")}
    assert "DCGM_FI_DRIVER_VERSION" not in series().metrics


# --- rights of the pods ----------------------------------------------------


@EVERY_RELEASE
def test_rights_follow_from_the_options(version):
    profiled = DCGM.container(version=version, metrics=[TENSOR], pod_mapping=False)["securityContext"]
    assert profiled["capabilities"] == {"drop": ["ALL"], "add": ["SYS_ADMIN"]}
    assert (profiled["runAsUser"], profiled["allowPrivilegeEscalation"]) == (0, False)
    mapped = DCGM.container(version=version, metrics="seed")["securityContext"]
    assert (mapped["capabilities"], mapped["runAsUser"], mapped["runAsNonRoot"]) == ({"drop": ["ALL"]}, 0, False)
    assert mapped["readOnlyRootFilesystem"] is (version != "3.4.2")
    spec = DCGM.pod(version=version)
    assert not {"hostPID", "hostNetwork"} & spec.keys()
    assert spec["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}}
    paths = [volume["hostPath"] for volume in spec["volumes"] if "hostPath" in volume]
    assert paths == [{"path": "/var/lib/kubelet/pod-resources", "type": "Directory"}]


def test_without_pod_mapping_and_profiling_it_fits_a_restricted_namespace(tmp_path):
    app = App(outdir=str(tmp_path))
    chart = Chart(app, "gpu")
    namespace = GpuNamespace(chart, "namespace", name="monitoring", pod_security="restricted")
    External(chart, "nodes", node_labels=["nvidia.com/gpu.present"])
    NvidiaRuntimeClass(chart, "runtime-class")
    DcgmExporter(chart, "exporter", namespace=namespace, **BARE)
    synthesize(app)
    assert DCGM.container(**BARE)["securityContext"]["runAsUser"] == 1000
    assert DCGM.pod(**BARE)["securityContext"]["fsGroup"] == 1000
    assert DCGM.variables(**BARE)["DCGM_EXPORTER_KUBERNETES"] == "false"


def test_a_user_other_than_root_causes_a_warning(rows):
    own = {"runAsUser": 1000, "capabilities": {"add": ["SYS_ADMIN"]}}
    for options, told in rows:
        with pytest.warns(GpuConstructsWarning) as warned:
            DCGM.container(security_context=own, **options)
        assert [str(one.message) for one in warned] == [
            f"security_context must run the exporter as root for {told}, got {own!r}. Remove runAsUser and runAsNonRoot"
        ]


def test_a_remote_hostengine_does_the_profiling_itself_and_without_pods_hides_the_nodes_name():
    remote = {"remote_hostengine": "nvidia-dcgm:5555"}
    assert DCGM.container(**remote)["args"][2:] == ["-r", "nvidia-dcgm:5555"]
    assert DCGM.container(**remote)["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert DCGM.made(pod_mapping=False, **remote).series.labels.node == "node"


def test_two_exporters_that_profile_the_same_nodes_are_refused_and_others_are_not(tmp_path, expected):
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
    assert refused.value.problems == expected
    for apart in ({"node_selector": {"pool": "b"}}, {"metrics": "seed"}):
        synthesize(app(**apart))
        assert (tmp_path / "gpu.k8s.yaml").exists()


# --- pods of the cluster -----------------------------------------------------


def test_pod_mapping_mounts_the_kubelets_folder_at_the_path_the_exporter_knows():
    mapping = PodMapping(kubelet_path="/var/lib/k0s/kubelet/pod-resources")
    source, mount = DCGM.volumes(pod_mapping=mapping)["pod-resources"]
    assert source["hostPath"]["path"] == "/var/lib/k0s/kubelet/pod-resources"
    assert mount == {"mountPath": "/var/lib/kubelet/pod-resources", "readOnly": True}


def test_time_slicing_switches_on_together_what_attribution_needs():
    manifests = DCGM.objects(sharing=Sharing.time_slicing(replicas=4, rename_by_default=True))
    spec = find(manifests, "DaemonSet")["spec"]["template"]["spec"]
    variables = {one["name"]: one.get("value") for one in spec["containers"][0]["env"]}
    assert variables["KUBERNETES_VIRTUAL_GPUS"] == "true"
    assert variables["DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID"] == "true"
    assert variables["NVIDIA_RESOURCE_NAMES"] == "nvidia.com/gpu.shared"
    assert (spec["hostPID"], spec["automountServiceAccountToken"], spec["serviceAccountName"]) == (True, True, NAME)
    verbs = ["get", "list", "watch"]
    assert find(manifests, "ClusterRole")["rules"] == [{"apiGroups": [""], "resources": ["pods"], "verbs": verbs}]
    assert find(manifests, "ServiceAccount")["automountServiceAccountToken"] is False
    assert "NVIDIA_RESOURCE_NAMES" not in str(DCGM.objects(sharing=SLICED))


def test_an_existing_service_account_gets_the_rights_and_no_role_takes_its_name():
    manifests = DCGM.objects(pod_mapping=PodMapping(enable_pod_uid=True), service_account="admin")
    assert "ServiceAccount" not in [m["kind"] for m in manifests]
    (subject,) = find(manifests, "ClusterRoleBinding")["subjects"]
    assert subject["name"] == "admin"
    assert find(manifests, "DaemonSet")["spec"]["template"]["spec"]["serviceAccountName"] == "admin"
    assert [m["metadata"]["name"] for m in manifests if m["kind"] == "ClusterRole"] == [NAME]


# --- the container -----------------------------------------------------------


def test_the_interval_is_a_variable_and_the_startup_probe_waits_for_two_readings():
    for seconds, patience in ((30, 120), (300, 660)):
        startup = DCGM.container(collect_interval_seconds=seconds)["startupProbe"]
        assert startup["periodSeconds"] * startup["failureThreshold"] == patience
        assert DCGM.variables(collect_interval_seconds=seconds)["DCGM_EXPORTER_INTERVAL"] == f"{seconds}000"


def test_dumps_are_in_an_empty_dir_with_a_size_limit(expected):
    dumping = {"debug_dump": DebugDump(retention=48, compression=False, size_limit="2Gi")}
    assert DCGM.container(**dumping)["args"][2:] == expected
    assert DCGM.volumes(**dumping)["debug-dumps"] == (
        {"emptyDir": {"sizeLimit": "2Gi"}},
        {"mountPath": "/dcgm-exporter-debug"},
    )
    assert "--dump-retention=24" in DCGM.container(debug_dump=True)["args"]


def test_variables_that_it_sets_are_refused_with_the_keyword():
    given = {"tls": TLS, "pod_mapping": PodMapping(enable_dra=True)}
    full = {**DCGM.variables(version="3.4.2"), **DCGM.variables(sharing=SLICED), **DCGM.variables(**given)}
    for name in full:
        assert DCGM.refusal(env={name: "x"}).startswith(f"env must not contain {name!r}: this library sets it. "), name


def test_release_4_has_its_own_tmp_and_release_3_skips_setcap():
    assert DCGM.volumes()["tmp"] == ({"emptyDir": {"sizeLimit": "64Mi"}}, {"mountPath": "/tmp"})
    assert "NO_SETCAP" not in DCGM.variables()
    assert DCGM.variables(version="3.4.2")["NO_SETCAP"] == "true"
    assert "tmp" not in DCGM.volumes(version="3.4.2")


def test_the_go_runtime_stays_within_three_quarters_of_the_memory_limit():
    assert DCGM.variables()["GOMEMLIMIT"] == "768MiB"
    for limit, soft in (("512Mi", "384MiB"), ("1.5Gi", "1152MiB"), ("1G", "715MiB"), ("1073741824", "768MiB")):
        assert DCGM.variables(resources={"limits": {"memory": limit}})["GOMEMLIMIT"] == soft
    assert "GOMEMLIMIT" not in DCGM.variables(resources={"requests": {"cpu": "1"}})


def test_a_refused_memory_limit_leaves_the_chart_as_it_was(chart):
    quantity = "must be a Kubernetes quantity like '500m' or '16Gi'"
    few = "must leave the exporter a few MiB of memory"
    for memory, problem in {"900Ki": few, "1398101": few, "lots": quantity, "1 GiB": quantity, "": quantity}.items():
        with pytest.raises(GpuConstructsError) as refused:
            DcgmExporter(chart, "exporter", resources={"limits": {"memory": memory}})
        assert refused.value.problem == f"resources['limits']['memory'] {problem}, got {memory!r}"
        assert list(chart.node.children) == []


# --- errors ------------------------------------------------------------------


def test_invalid_options_are_rejected(refused):
    refused(DCGM.made, at="gpu/exporter: ")


def test_fields_and_options_come_with_their_release():
    recovery = "DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION"
    for version, release in versions.DCGM_EXPORTER.items():
        late = versions.comparable(version) < versions.comparable("4.8.0")
        exported = {metric.field for metric in metric_set("recommended", version)}
        assert (recovery in exported) is not late, version
        daemonset = find(rendered(version=version, metrics="recommended"), "DaemonSet")
        pod = daemonset["spec"]["template"]["spec"]
        has_root = pod["containers"][0]["securityContext"]["readOnlyRootFilesystem"] is False
        assert has_root is release.writes_to_image, version
    with pytest.raises(GpuConstructsError, match="later release"):
        rendered(version="4.7.1", metrics=[Metric(field=recovery, prometheus_type="gauge", help="Recovery")])
    # NVIDIA/go-dcgm had this name before and after, but not in between.
    renamed = [Metric(field="DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", prometheus_type="gauge", help="Reasons")]
    for version in ("4.6.0", "4.8.2"):
        assert rendered(version=version, metrics=renamed)
    with pytest.raises(GpuConstructsError, match="later release"):
        rendered(version="4.8.0", metrics=renamed)

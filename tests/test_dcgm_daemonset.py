import pytest

from gpu_constructs._daemonset import daemonset
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.observability.daemonset import (
    DEFAULT_RESOURCES,
    OWN_VARIABLES,
    exporter_pod,
)
from gpu_constructs.observability.exporter_options import DebugDump, ExporterService
from gpu_constructs.observability.pod_mapping import PodMapping
from gpu_constructs.observability.web_config import BasicAuth, Tls
from schemas import schema_errors

IMAGES = {
    "3.4.2": "nvcr.io/nvidia/k8s/dcgm-exporter:3.3.6-3.4.2-ubuntu22.04",
    "4.8.3": "nvcr.io/nvidia/k8s/dcgm-exporter:4.6.0-4.8.3-distroless",
}
SELECTOR = {"app.kubernetes.io/name": "dcgm-exporter", "app.kubernetes.io/instance": "dcgm-exporter"}
METADATA = {"name": "dcgm-exporter", "namespace": "nvidia-gpu-operator", "labels": SELECTOR}
AUTH = BasicAuth(users={"prometheus": "$2y$10$" + "a" * 53}, secret="scrape")


def pod(release="4.8.3", **more):
    given = {
        "image": IMAGES.get(release, "registry.example/dcgm-exporter:1"),
        "image_pull_policy": "IfNotPresent",
        "release": release,
        "metrics_config_map": "dcgm-exporter-metrics",
        "metrics_key": "metrics.csv",
        "is_profiled": True,
        "mapping": PodMapping(),
        "collect_interval_seconds": 30,
        "port": 9400,
        "resources": DEFAULT_RESOURCES,
        "runtime_class": "nvidia",
    }
    return exporter_pod(**{**given, **more})


def container(release="4.8.3", **more):
    (only,) = pod(release, **more)["containers"]
    return only


def variables(release="4.8.3", **more):
    return {entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in container(release, **more)["env"]}


def volumes(**more):
    return {volume["name"]: volume for volume in pod(**more)["volumes"]}


def mounts(**more):
    return {mount["name"]: mount for mount in container(**more)["volumeMounts"]}


FULL = {
    "service_account": "dcgm-exporter",
    "host_network": True,
    "remote_hostengine": "nvidia-dcgm:5555",
    "tls": Tls(secret="certificate"),
    "basic_auth": AUTH,
    "web_config": "dcgm-exporter-web-config",
    "debug_dump": DebugDump(retention=1, compression=False),
    "mapping": PodMapping.time_slicing(),
    "env": [{"name": "DCGM_EXPORTER_LOG_FORMAT", "value": "json"}],
}


@pytest.mark.parametrize("release", IMAGES)
@pytest.mark.parametrize("more", [{}, FULL, {"mapping": None, "is_profiled": False}], ids=["plain", "full", "bare"])
def test_it_is_valid_on_every_supported_kubernetes(release, more):
    spec = {name: value for name, value in pod(release, **more).items() if value is not None}
    manifest = daemonset(metadata=METADATA, selector=SELECTOR, annotations={"a": "b"}, pod_spec=spec, rolling_update={})
    assert schema_errors(manifest) == []


def test_the_service_is_valid_and_finds_the_port_by_name():
    manifest = ExporterService(cluster_ip="None").to_manifest(METADATA, SELECTOR, port=9500, port_name="metrics")
    assert schema_errors(manifest) == []
    (port,) = container(port=9500)["ports"]
    assert manifest["spec"]["ports"] == [
        {"name": "metrics", "port": 9500, "targetPort": port["name"], "protocol": "TCP"}
    ]


def test_it_listens_where_its_port_is():
    assert variables(port=9500)["DCGM_EXPORTER_LISTEN"] == ":9500"
    assert container(port=9500)["ports"] == [{"name": "metrics", "containerPort": 9500, "protocol": "TCP"}]


def test_the_metrics_are_a_mounted_directory_named_on_the_command_line():
    mount = mounts()["metrics"]
    assert "subPath" not in mount
    assert container()["args"] == ["-f", f"{mount['mountPath']}/metrics.csv"]
    assert volumes()["metrics"] == {"name": "metrics", "configMap": {"name": "dcgm-exporter-metrics"}}


def test_it_reads_the_gpus_as_often_as_it_is_told_and_has_two_rounds_to_start():
    assert variables(collect_interval_seconds=60)["DCGM_EXPORTER_INTERVAL"] == "60000"
    startup = container(collect_interval_seconds=300)["startupProbe"]
    assert startup["periodSeconds"] * startup["failureThreshold"] == 660


def test_a_remote_hostengine_reads_the_gpus_instead():
    assert container(remote_hostengine="nvidia-dcgm:5555")["args"][2:] == ["-r", "nvidia-dcgm:5555"]


def test_dumps_live_and_die_with_the_pod():
    dumping = {"debug_dump": DebugDump(retention=48, compression=False, size_limit="2Gi")}
    assert container(**dumping)["args"][2:] == [
        "--dump-enabled",
        "--dump-directory=/dcgm-exporter-debug",
        "--dump-retention=48",
        "--dump-compression=false",
    ]
    assert volumes(**dumping)["debug-dumps"]["emptyDir"] == {"sizeLimit": "2Gi"}
    assert mounts(**dumping)["debug-dumps"]["mountPath"] == "/dcgm-exporter-debug"


def test_a_certificate_is_mounted_for_root_alone_and_the_probes_use_it():
    guarded = {"tls": Tls(secret="certificate"), "web_config": "web"}
    assert volumes(**guarded)["tls"]["secret"] == {"secretName": "certificate", "defaultMode": 0o440}
    assert volumes(**guarded)["web-config"]["configMap"] == {"name": "web"}
    assert variables(**guarded)["DCGM_EXPORTER_WEB_CONFIG_FILE"] == (
        mounts(**guarded)["web-config"]["mountPath"] + "/web-config.yaml"
    )
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container(**guarded)[probe]["httpGet"]["scheme"] == "HTTPS"


@pytest.mark.parametrize(
    "guard",
    [
        {"basic_auth": AUTH},
        {"tls": Tls(secret="certificate", client_auth_type="RequireAndVerifyClientCert")},
        {"tls": Tls(secret="certificate", client_auth_type="RequireAnyClientCert")},
    ],
    ids=["password", "verified certificate", "any certificate"],
)
def test_probes_only_connect_where_the_kubelet_has_nothing_to_show(guard):
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        asked = container(web_config="web", **guard)[probe]
        assert (asked["tcpSocket"], "httpGet" in asked) == ({"port": "metrics"}, False)


def test_passwords_come_from_a_secret():
    assert volumes(basic_auth=AUTH, web_config="web")["web-config"]["secret"] == {
        "secretName": "web",
        "defaultMode": 0o440,
    }


def test_pod_mapping_mounts_the_kubelets_folder_at_the_path_the_exporter_knows():
    assert volumes(mapping=PodMapping(kubelet_path="/var/lib/k0s/kubelet/pod-resources"))["pod-resources"] == {
        "name": "pod-resources",
        "hostPath": {"path": "/var/lib/k0s/kubelet/pod-resources", "type": "Directory"},
    }
    assert mounts()["pod-resources"] == {
        "name": "pod-resources",
        "mountPath": "/var/lib/kubelet/pod-resources",
        "readOnly": True,
    }


def test_only_a_mapping_that_asks_the_api_server_brings_a_token_and_only_time_slicing_the_nodes_processes():
    assert (pod()["automountServiceAccountToken"], pod()["hostPID"]) == (False, None)
    assert pod(mapping=PodMapping(enable_dra=True))["automountServiceAccountToken"] is True
    sliced = pod(mapping=PodMapping.time_slicing())
    assert (sliced["automountServiceAccountToken"], sliced["hostPID"]) == (True, True)


def test_without_mapping_and_profiling_it_is_no_root_and_mounts_nothing_of_the_node():
    bare = {"mapping": None, "is_profiled": False}
    security = container(**bare)["securityContext"]
    assert (security["runAsUser"], security["runAsNonRoot"]) == (1000, True)
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert pod(**bare)["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}, "fsGroup": 1000}
    assert not [volume for volume in pod(**bare)["volumes"] if "hostPath" in volume]
    assert variables(**bare)["DCGM_EXPORTER_KUBERNETES"] == "false"


def test_profiling_alone_still_needs_root():
    assert container(mapping=None, is_profiled=True)["securityContext"]["runAsUser"] == 0


def test_variables_with_a_keyword_are_the_ones_it_sets():
    set_here = {*variables("3.4.2", **FULL), *variables(**{**FULL, "mapping": PodMapping(enable_dra=True)})}
    assert set_here - {"DCGM_EXPORTER_LOG_FORMAT"} <= set(OWN_VARIABLES)


def test_it_sees_every_gpu_and_takes_none():
    environment = variables()
    assert environment["NVIDIA_VISIBLE_DEVICES"] == "all"
    assert environment["NVIDIA_DRIVER_CAPABILITIES"] == "compute,utility"
    assert environment["NODE_NAME"] == {"fieldRef": {"fieldPath": "spec.nodeName"}}
    assert "nvidia.com/gpu" not in str(container()["resources"])


def test_only_profiling_metrics_bring_sys_admin():
    def capabilities(is_profiled):
        return container(is_profiled=is_profiled)["securityContext"]["capabilities"]

    assert capabilities(True) == {"drop": ["ALL"], "add": ["SYS_ADMIN"]}
    assert capabilities(False) == {"drop": ["ALL"]}


@pytest.mark.parametrize("release", IMAGES)
def test_privilege_is_what_reading_the_kubelets_socket_needs(release):
    security, spec = container(release)["securityContext"], pod(release)
    assert security["allowPrivilegeEscalation"] is False
    assert (security["runAsUser"], security["runAsNonRoot"]) == (0, False)
    assert spec["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}}
    assert spec["automountServiceAccountToken"] is False
    assert spec["enableServiceLinks"] is False
    assert not any(spec[name] for name in ("hostPID", "hostNetwork"))
    host_paths = [volume["hostPath"] for volume in spec["volumes"] if "hostPath" in volume]
    assert host_paths == [{"path": "/var/lib/kubelet/pod-resources", "type": "Directory"}]
    assert [mount.get("readOnly") for mount in container(release)["volumeMounts"]][:2] == [True, True]


def test_release_4_has_a_read_only_root_and_its_own_tmp():
    assert container()["securityContext"]["readOnlyRootFilesystem"] is True
    assert mounts()["tmp"] == {"name": "tmp", "mountPath": "/tmp"}
    assert volumes()["tmp"] == {"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}}
    assert "NO_SETCAP" not in variables()


def test_release_3_keeps_a_writable_root_and_skips_setcap():
    only = container("3.4.2")
    assert only["securityContext"]["readOnlyRootFilesystem"] is False
    assert variables("3.4.2")["NO_SETCAP"] == "true"
    assert only["securityContext"]["capabilities"]["add"] == ["SYS_ADMIN"]
    assert "tmp" not in volumes(release="3.4.2")


def test_probes_bear_a_busy_node_and_a_first_reading_after_thirty_seconds():
    only = container()
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert only[probe]["httpGet"] == {"path": "/health", "port": "metrics"}
        assert only[probe]["timeoutSeconds"] == 5
    startup = only["startupProbe"]
    assert startup["periodSeconds"] * startup["failureThreshold"] == 120
    assert only["livenessProbe"]["periodSeconds"] == 20


def test_memory_is_limited_and_cpu_is_not():
    only = container()
    assert only["resources"] == {
        "requests": {"cpu": "100m", "memory": "256Mi"},
        "limits": {"memory": "1Gi"},
    }
    assert variables()["GOMEMLIMIT"] == "768MiB"


@pytest.mark.parametrize(
    ("limit", "soft"),
    [("512Mi", "384MiB"), ("1.5Gi", "1152MiB"), ("1G", "715MiB"), ("1073741824", "768MiB"), ("1Pi", "805306368MiB")],
)
def test_the_go_runtime_follows_the_memory_limit(limit, soft):
    assert variables(resources={"limits": {"memory": limit}})["GOMEMLIMIT"] == soft


def test_without_a_memory_limit_the_go_runtime_has_none_either():
    resources = {"requests": {"cpu": "1"}}
    assert "GOMEMLIMIT" not in variables(resources=resources)
    assert container(resources=resources)["resources"] == resources


@pytest.mark.parametrize("limit", ["0", "1", "900m", "1Mi", "1398101"])
def test_a_memory_limit_that_leaves_less_than_a_mebibyte_is_refused(limit):
    with pytest.raises(GpuConstructsError) as refused:
        pod(resources={"limits": {"memory": limit}})
    assert str(refused.value) == f"resources['limits']['memory'] must leave the exporter a few MiB; got {limit!r}"


def test_an_unreadable_release_is_refused():
    with pytest.raises(GpuConstructsError, match=r"^release must be an exporter release such as '4\.8\.3'"):
        pod("latest")


def test_own_rights_replace_the_computed_ones():
    own = {"privileged": True}
    assert container(security_context=own)["securityContext"] == own
    assert pod(pod_security_context={"runAsGroup": 1})["securityContext"] == {
        "seccompProfile": {"type": "RuntimeDefault"},
        "runAsGroup": 1,
    }


def test_placement_and_further_volumes_are_taken_as_given():
    spec = pod(
        placement={"nodeSelector": {"gpu": "yes"}},
        mounts=[{"name": "jobs", "mountPath": "/jobs"}],
        volumes=[{"name": "jobs", "emptyDir": {}}],
    )
    assert spec["nodeSelector"] == {"gpu": "yes"}
    assert spec["volumes"][-1] == {"name": "jobs", "emptyDir": {}}
    assert spec["containers"][0]["volumeMounts"][-1] == {"name": "jobs", "mountPath": "/jobs"}

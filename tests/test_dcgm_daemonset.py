import pytest

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.observability.daemonset import (
    CHECKSUM_ANNOTATION,
    METRICS_KEY,
    exporter_daemonset,
    exporter_service,
)
from gpu_constructs.observability.scrape import scrape_manifest
from schemas import schema_errors

RELEASES = {
    "3.4.2": "nvcr.io/nvidia/k8s/dcgm-exporter:3.3.6-3.4.2-ubuntu22.04",
    "4.8.3": "nvcr.io/nvidia/k8s/dcgm-exporter:4.6.0-4.8.3-distroless",
}
SELECTOR = {"app.kubernetes.io/name": "dcgm-exporter", "app.kubernetes.io/instance": "dcgm-exporter"}
LABELS = {"app.kubernetes.io/version": "4.8.3"}
AFFINITY = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": "nvidia.com/gpu.present", "operator": "In", "values": ["true"]}]}
            ]
        }
    }
}


def daemonset(release="4.8.3", **more):
    given = {
        "name": "dcgm-exporter",
        "namespace": "nvidia-gpu-operator",
        "image": RELEASES.get(release, "registry.example/dcgm-exporter:1"),
        "release": release,
        "labels": LABELS,
        "selector_labels": SELECTOR,
        "metrics_config_map": "dcgm-exporter-metrics",
        "metrics_sha256": "0" * 64,
        "profiling": True,
    }
    return exporter_daemonset(**{**given, **more})


def pod_of(manifest):
    return manifest["spec"]["template"]["spec"]


def container_of(manifest):
    (container,) = pod_of(manifest)["containers"]
    return container


def environment_of(manifest):
    return {entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in container_of(manifest)["env"]}


def service():
    return exporter_service(
        name="dcgm-exporter", namespace="nvidia-gpu-operator", labels=LABELS, selector_labels=SELECTOR
    )


@pytest.mark.parametrize("release", RELEASES)
def test_it_is_valid_on_every_supported_kubernetes(release):
    full = daemonset(
        release,
        service_account="dcgm-exporter",
        node_selector={"nvidia.com/gpu.present": "true"},
        affinity=AFFINITY,
        tolerations=[{"key": "dedicated", "operator": "Equal", "value": "ai", "effect": "NoSchedule"}],
        priority_class="system-node-critical",
        image_pull_secrets=["registry"],
    )
    assert schema_errors(full) == []
    assert schema_errors(daemonset(release)) == []
    assert schema_errors(service()) == []


def test_the_selector_and_the_service_match_the_pods():
    manifest = daemonset()
    pod_labels = manifest["spec"]["template"]["metadata"]["labels"]
    assert pod_labels == {**LABELS, **SELECTOR}
    assert manifest["spec"]["selector"]["matchLabels"].items() <= pod_labels.items()
    assert service()["spec"]["selector"].items() <= pod_labels.items()


@pytest.mark.parametrize("kind", ["ServiceMonitor", "PodMonitor", "VMServiceScrape"])
def test_a_scrape_object_finds_the_port_by_name_and_the_interval_is_the_exporters(kind):
    manifest = scrape_manifest(kind=kind, name="x", namespace="x", labels={}, selector_labels=SELECTOR)
    spec = manifest["spec"]
    (endpoint,) = spec.get("endpoints") or spec["podMetricsEndpoints"]
    selected = daemonset()["spec"]["template"] if kind == "PodMonitor" else service()
    assert spec["selector"]["matchLabels"].items() <= selected["metadata"]["labels"].items()
    assert endpoint["port"] in [port["name"] for port in container_of(daemonset())["ports"]]
    assert endpoint["port"] in [port["name"] for port in service()["spec"]["ports"]]
    seconds = int(endpoint["interval"].removesuffix("s"))
    assert environment_of(daemonset())["DCGM_EXPORTER_INTERVAL"] == str(seconds * 1000)


def test_port_service_and_listen_address_agree():
    (port,) = container_of(daemonset())["ports"]
    (service_port,) = service()["spec"]["ports"]
    assert environment_of(daemonset())["DCGM_EXPORTER_LISTEN"] == f":{port['containerPort']}" == ":9400"
    assert service_port == {"name": "metrics", "port": 9400, "targetPort": port["name"], "protocol": "TCP"}


def test_the_metrics_are_a_mounted_directory_named_on_the_command_line():
    manifest = daemonset()
    (mount,) = [one for one in container_of(manifest)["volumeMounts"] if one["name"] == "metrics"]
    (volume,) = [one for one in pod_of(manifest)["volumes"] if one["name"] == "metrics"]
    assert "subPath" not in mount
    assert container_of(manifest)["args"] == ["-f", f"{mount['mountPath']}/{METRICS_KEY}"]
    assert volume == {"name": "metrics", "configMap": {"name": "dcgm-exporter-metrics"}}


def test_new_metrics_roll_the_pods():
    annotations = daemonset(metrics_sha256="abc")["spec"]["template"]["metadata"]["annotations"]
    assert annotations == {CHECKSUM_ANNOTATION: "abc"} == {"gpu-constructs/metrics-sha256": "abc"}


def test_it_sees_every_gpu_and_takes_none():
    environment = environment_of(daemonset())
    assert environment["NVIDIA_VISIBLE_DEVICES"] == "all"
    assert environment["NVIDIA_DRIVER_CAPABILITIES"] == "compute,utility"
    assert environment["NODE_NAME"] == {"fieldRef": {"fieldPath": "spec.nodeName"}}
    assert "nvidia.com/gpu" not in str(container_of(daemonset())["resources"])


def test_only_profiling_metrics_bring_sys_admin():
    def capabilities(profiling):
        return container_of(daemonset(profiling=profiling))["securityContext"]["capabilities"]

    assert capabilities(True) == {"drop": ["ALL"], "add": ["SYS_ADMIN"]}
    assert capabilities(False) == {"drop": ["ALL"]}


@pytest.mark.parametrize("release", RELEASES)
def test_privilege_is_what_reading_the_kubelets_socket_needs(release):
    manifest = daemonset(release)
    security = container_of(manifest)["securityContext"]
    assert security["allowPrivilegeEscalation"] is False
    assert (security["runAsUser"], security["runAsNonRoot"]) == (0, False)
    assert pod_of(manifest)["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}}
    assert pod_of(manifest)["automountServiceAccountToken"] is False
    assert pod_of(manifest)["enableServiceLinks"] is False
    assert pod_of(manifest).keys().isdisjoint({"hostPID", "hostNetwork", "hostIPC"})
    host_paths = [volume["hostPath"] for volume in pod_of(manifest)["volumes"] if "hostPath" in volume]
    assert host_paths == [{"path": "/var/lib/kubelet/pod-resources", "type": "Directory"}]
    assert [mount.get("readOnly") for mount in container_of(manifest)["volumeMounts"]][:2] == [True, True]


def test_release_4_has_a_read_only_root_and_its_own_tmp():
    manifest = daemonset("4.8.3")
    assert container_of(manifest)["securityContext"]["readOnlyRootFilesystem"] is True
    assert {"name": "tmp", "mountPath": "/tmp"} in container_of(manifest)["volumeMounts"]
    assert {"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}} in pod_of(manifest)["volumes"]
    assert "NO_SETCAP" not in environment_of(manifest)


def test_release_3_keeps_a_writable_root_and_skips_setcap():
    manifest = daemonset("3.4.2")
    assert container_of(manifest)["securityContext"]["readOnlyRootFilesystem"] is False
    assert environment_of(manifest)["NO_SETCAP"] == "true"
    assert container_of(manifest)["securityContext"]["capabilities"]["add"] == ["SYS_ADMIN"]
    assert "tmp" not in [volume["name"] for volume in pod_of(manifest)["volumes"]]


def test_probes_bear_a_busy_node_and_a_first_reading_after_thirty_seconds():
    container = container_of(daemonset())
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"] == {"path": "/health", "port": "metrics"}
        assert container[probe]["timeoutSeconds"] == 5
    startup = container["startupProbe"]
    assert startup["periodSeconds"] * startup["failureThreshold"] == 120
    assert container["livenessProbe"]["periodSeconds"] == 20


def test_memory_is_limited_and_cpu_is_not():
    container = container_of(daemonset())
    assert container["resources"] == {
        "requests": {"cpu": "100m", "memory": "256Mi"},
        "limits": {"memory": "1Gi"},
    }
    assert environment_of(daemonset())["GOMEMLIMIT"] == "768MiB"


@pytest.mark.parametrize(
    ("limit", "soft"),
    [("512Mi", "384MiB"), ("1.5Gi", "1152MiB"), ("1G", "715MiB"), ("1073741824", "768MiB"), ("1Pi", "805306368MiB")],
)
def test_the_go_runtime_follows_the_memory_limit(limit, soft):
    assert environment_of(daemonset(resources={"limits": {"memory": limit}}))["GOMEMLIMIT"] == soft


def test_without_a_memory_limit_the_go_runtime_has_none_either():
    manifest = daemonset(resources={"requests": {"cpu": "1"}})
    assert "GOMEMLIMIT" not in environment_of(manifest)
    assert container_of(manifest)["resources"] == {"requests": {"cpu": "1"}}


@pytest.mark.parametrize("limit", ["0", "1", "900m", "1Mi", "1398101"])
def test_a_memory_limit_that_leaves_less_than_a_mebibyte_is_refused(limit):
    with pytest.raises(GpuConstructsError) as refused:
        daemonset(resources={"limits": {"memory": limit}})
    assert str(refused.value) == f"resources['limits']['memory'] must leave the exporter a few MiB; got {limit!r}"


def test_an_unreadable_release_is_refused():
    with pytest.raises(GpuConstructsError, match=r"^release must be an exporter release such as '4\.8\.3'"):
        daemonset("latest")


def test_placement_is_taken_as_given():
    toleration = {"key": "dedicated", "operator": "Equal", "value": "ai", "effect": "NoSchedule"}
    pod = pod_of(
        daemonset(
            service_account="dcgm-exporter",
            node_selector={"gpu": "yes"},
            affinity=AFFINITY,
            tolerations=[toleration],
            priority_class="gpu-infra",
            image_pull_secrets=["registry"],
        )
    )
    assert pod["runtimeClassName"] == "nvidia"
    assert pod["serviceAccountName"] == "dcgm-exporter"
    assert pod["nodeSelector"] == {"gpu": "yes"}
    assert pod["affinity"] == AFFINITY
    assert pod["tolerations"] == [toleration]
    assert pod["priorityClassName"] == "gpu-infra"
    assert pod["imagePullSecrets"] == [{"name": "registry"}]


def test_what_is_not_asked_for_is_not_written():
    pod = pod_of(daemonset(runtime_class=None))
    assert pod.keys() == {
        "automountServiceAccountToken",
        "containers",
        "enableServiceLinks",
        "securityContext",
        "volumes",
    }

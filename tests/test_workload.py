import copy

import cdk8s_plus_27 as kplus
import pytest
from cdk8s import ApiObject, App, Chart, Size, Testing

import schemas
from gpu_constructs import (
    EnvValue,
    GpuConstructsError,
    GpuNamespace,
    GpuResourceClaim,
    GpuWorkload,
    Kubernetes,
    NvidiaRuntimeClass,
    Probe,
    Sharing,
    Talos,
    Toleration,
    Volume,
    pod_security,
)
from gpu_constructs.pod_specs import pod_specs
from gpu_constructs.workload.backend import Backend
from gpu_constructs.workload.container import Container
from gpu_constructs.workload.gpu_profile import GpuProfile
from gpu_constructs.workload.gpu_request import GpuRequest
from gpu_constructs.workload.scheduling import Scheduling
from gpu_constructs.workload.strategy import Strategy
from gpu_constructs.workload.volume_claim import VolumeClaim

IMAGE = "registry.example/app:1.2.3"
KINDS = ["Deployment", "StatefulSet", "Job", "CronJob", "Pod"]
SERVING = ["Deployment", "StatefulSet"]
ENDING = ["Job", "CronJob", "Pod"]
TAINT = Toleration(key="dedicated", value="ai", effect="NoSchedule")
GPU_TAINT = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}


def workload(chart, id="app", **given):
    given = {"image": IMAGE, **given}
    if given.get("kind") == "CronJob":
        given = {"schedule": "0 3 * * *", **given}
    return GpuWorkload(chart, id, **given)


def chart_with(**given):
    chart = Chart(App(), "gpu")
    workload(chart, **given)
    return chart


def rendered(**given):
    return Testing.synth(chart_with(**given))


def refusal(**given):
    with pytest.raises(GpuConstructsError) as refused:
        chart_with(**given)
    return str(refused.value)


def main(**given):
    """The object of the kind that was asked for: the last one."""
    return rendered(**given)[-1]


def pod(**given):
    (spec,) = pod_specs(main(**given))
    return spec


def container(**given):
    (only,) = pod(**given)["containers"]
    return only


def service(**given):
    (found,) = (manifest for manifest in rendered(**given) if manifest["kind"] == "Service")
    return found


def pod_labels(manifest):
    if manifest["kind"] == "Pod":
        return manifest["metadata"]["labels"]
    spec = manifest["spec"]["jobTemplate"]["spec"] if manifest["kind"] == "CronJob" else manifest["spec"]
    return spec["template"]["metadata"]["labels"]


# --- whole renderings ----------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_with_nothing_but_an_image(kind, objects, snapshot):
    assert objects(chart_with(kind=kind)) == snapshot


def test_a_server_with_everything_it_may_need(objects, snapshot):
    chart = chart_with(
        name="llm",
        namespace="llm",
        gpus=2,
        tolerations=[TAINT],
        node_selector={"pool": "gpu"},
        command=["serve"],
        args=["--model", "/models/a"],
        working_dir="/srv",
        env={"HOME": "/tmp", "TOKEN": EnvValue.secret("hugging-face", key="token")},
        ports={"http": 8000, "metrics": 9000},
        volumes={
            "/models": Volume.persistent_volume_claim("models", read_only=True),
            "/etc/app": Volume.config_map("settings"),
            "/tmp": Volume.empty_dir(size_limit="1Gi"),
        },
        shared_memory="2Gi",
        startup_probe=Probe.http_get("/health", port="http", failure_threshold=60),
        readiness_probe=Probe.http_get("/health", port="http"),
        liveness_probe=Probe.tcp_socket("http", period_seconds=30),
        resources={"requests": {"cpu": 2}, "limits": {"memory": "32Gi"}},
        replicas=2,
        run_as_user=1000,
        fs_group=1000,
        capabilities=["SYS_NICE"],
        read_only_root_filesystem=True,
        service_account="robot",
        image_pull_secrets=["registry"],
        priority_class_name="serving",
        termination_grace_period_seconds=120,
        labels={"team": "ml"},
    )
    assert objects(chart) == snapshot


def test_a_job_of_many_pods(objects, snapshot):
    chart = chart_with(
        kind="Job",
        completions=9,
        parallelism=3,
        backoff_limit=0,
        active_deadline_seconds=3600,
        ttl_seconds_after_finished=0,
        platform=Kubernetes(),
    )
    assert objects(chart) == snapshot


# --- the GPU -------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_gpu_is_a_limit_and_no_request(kind):
    resources = container(kind=kind, gpus=2)["resources"]
    assert resources["limits"]["nvidia.com/gpu"] == "2"
    assert "nvidia.com/gpu" not in resources["requests"]


def test_one_gpu_is_the_default():
    assert container()["resources"]["limits"] == {"memory": "16Gi", "nvidia.com/gpu": "1"}


@pytest.mark.parametrize("resource", ["nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb"])
def test_another_resource_can_be_asked_for(resource):
    limits = container(gpu_resource=resource)["resources"]["limits"]
    assert limits == {"memory": "16Gi", resource: "1"}


def test_own_resources_keep_the_gpu_beside_them():
    assert container(resources={"requests": {"cpu": "2"}})["resources"] == {
        "requests": {"cpu": "2"},
        "limits": {"nvidia.com/gpu": "1"},
    }


def test_no_cpu_limit_starves_the_gpu():
    assert "cpu" not in container()["resources"]["limits"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("platform", [Talos("1.10"), Talos("1.14"), Kubernetes()], ids=str)
def test_the_allocated_gpu_is_never_overridden(kind, platform):
    assert "NVIDIA_VISIBLE_DEVICES" not in str(rendered(kind=kind, platform=platform, env={"A": "b"}))


def test_only_unmanaged_lets_a_visible_devices_through():
    env = {"NVIDIA_VISIBLE_DEVICES": "0"}
    assert container(env=env, visible_devices="unmanaged")["env"] == [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "0"}]


@pytest.mark.parametrize("kind", KINDS)
def test_unmanaged_visible_devices_are_announced_on_the_object(kind):
    unmanaged = main(kind=kind, visible_devices="unmanaged")
    assert unmanaged["metadata"]["annotations"] == {"gpu-constructs/visible-devices": "unmanaged"}
    del unmanaged["metadata"]["annotations"]
    assert unmanaged == main(kind=kind)
    assert "annotations" not in unmanaged["metadata"]


# --- where it runs ---------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_talos_brings_the_runtime_class_and_the_node_label(kind):
    spec = pod(kind=kind)
    assert spec["runtimeClassName"] == "nvidia"
    assert spec["nodeSelector"] == {"nvidia.com/gpu.present": "true"}


def test_plain_kubernetes_brings_neither():
    assert pod(platform=Kubernetes()).keys().isdisjoint({"runtimeClassName", "nodeSelector"})


def test_a_runtime_class_can_be_named_or_handed_over(chart):
    assert pod(platform=Kubernetes(), runtime_class="nvidia")["runtimeClassName"] == "nvidia"
    runtime_class = NvidiaRuntimeClass(chart, "runtime-class", name="gpu-runtime")
    assert pod(runtime_class=runtime_class)["runtimeClassName"] == "gpu-runtime"


def test_it_makes_no_runtime_class_or_namespace_of_its_own():
    assert [m["kind"] for m in rendered(namespace="llm", runtime_class="nvidia")] == ["Deployment"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_gpu_taint_is_always_tolerated_and_the_taints_of_the_cluster_besides(kind):
    assert pod(kind=kind)["tolerations"] == [GPU_TAINT]
    assert pod(kind=kind, tolerations=[TAINT])["tolerations"] == [TAINT.to_manifest(), GPU_TAINT]


def test_a_users_label_wins_over_the_platforms():
    assert pod(node_selector={"nvidia.com/gpu.present": "maybe"})["nodeSelector"] == {"nvidia.com/gpu.present": "maybe"}


def test_a_node_selector_narrows_the_one_of_the_platform():
    expected = {"nvidia.com/gpu.present": "true", "nvidia.com/gpu.product": "NVIDIA-A10G"}
    assert pod(node_selector={"nvidia.com/gpu.product": "NVIDIA-A10G"})["nodeSelector"] == expected


def test_the_namespace_is_that_of_the_chart_else_default():
    chart = Chart(App(), "gpu", namespace="llm")
    workload(chart)
    assert Testing.synth(chart)[-1]["metadata"]["namespace"] == "llm"
    assert main()["metadata"]["namespace"] == "default"


def test_a_namespace_can_be_named_or_handed_over(chart):
    assert main(namespace="llm")["metadata"]["namespace"] == "llm"
    ours = GpuNamespace(chart, "ours", name="ours", pod_security="restricted")
    theirs = kplus.Namespace(chart, "theirs")
    assert main(namespace=ours)["metadata"]["namespace"] == "ours"
    assert main(namespace=theirs)["metadata"]["namespace"] == theirs.name


# --- every kind ------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_the_object_is_of_the_kind_and_named_after_the_construct(kind):
    manifest = main(kind=kind)
    assert (manifest["kind"], manifest["metadata"]["name"]) == (kind, "app")


@pytest.mark.parametrize("kind", KINDS)
def test_the_object_is_its_main_object(chart, kind):
    made = workload(chart, kind=kind, gpus=2)
    assert (made.api_object.kind, made.api_object.name) == (kind, "app")
    assert (made.name, made.gpus) == ("app", 2)


@pytest.mark.parametrize("kind", SERVING)
def test_the_selector_matches_the_pods(kind):
    spec = main(kind=kind, labels={"team": "ml"})["spec"]
    assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()


@pytest.mark.parametrize("kind", KINDS)
def test_labels_of_the_user_reach_object_and_pods_and_no_selector(kind):
    manifest = main(kind=kind, labels={"team": "ml"})
    assert manifest["metadata"]["labels"]["team"] == pod_labels(manifest)["team"] == "ml"
    assert "team" not in str(manifest["spec"].get("selector"))


def test_two_workloads_never_select_each_others_pods(chart):
    workload(chart, "one")
    workload(chart, "two")
    one, two = Testing.synth(chart)
    assert not one["spec"]["selector"]["matchLabels"].items() <= pod_labels(two).items()


def test_an_update_never_waits_for_a_gpu_that_its_predecessor_holds():
    assert main()["spec"]["strategy"] == {"type": "Recreate"}
    one_by_one = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
    assert main(replicas=3)["spec"]["strategy"] == one_by_one


def test_a_deployment_can_be_parked_without_pods():
    assert main(replicas=0)["spec"]["replicas"] == 0


@pytest.mark.parametrize(("kind", "policy"), [*((kind, None) for kind in SERVING), *((k, "Never") for k in ENDING)])
def test_what_ends_is_not_restarted_in_place(kind, policy):
    assert pod(kind=kind).get("restartPolicy") == policy


@pytest.mark.parametrize(("kind", "seconds"), [*((kind, 60) for kind in SERVING), *((kind, 30) for kind in ENDING)])
def test_what_serves_has_longer_to_finish_its_requests(kind, seconds):
    assert pod(kind=kind)["terminationGracePeriodSeconds"] == seconds
    assert pod(kind=kind, termination_grace_period_seconds=0)["terminationGracePeriodSeconds"] == 0


def test_the_pods_of_a_job_run_all_at_once_unless_told_otherwise():
    assert main(kind="Job", completions=9)["spec"]["parallelism"] == 9
    assert main(kind="Job", completions=9, parallelism=2)["spec"]["parallelism"] == 2


def test_a_cron_job_runs_the_job_it_was_given():
    spec = main(kind="CronJob", schedule="@daily", backoff_limit=0)["spec"]
    assert (spec["schedule"], spec["concurrencyPolicy"]) == ("@daily", "Forbid")
    assert spec["jobTemplate"]["spec"]["backoffLimit"] == 0


# --- Service and ServiceAccount ----------------------------------------------------


@pytest.mark.parametrize("kind", ["Deployment", "Pod"])
def test_a_service_is_there_only_with_ports(kind):
    assert "Service" not in [m["kind"] for m in rendered(kind=kind)]
    assert "clusterIP" not in service(kind=kind, ports=[80])["spec"]


def test_a_stateful_set_always_has_a_headless_service():
    assert service(kind="StatefulSet")["spec"]["clusterIP"] == "None"
    assert "ports" not in service(kind="StatefulSet")["spec"]
    assert service(kind="StatefulSet", ports=[80])["spec"]["ports"][0]["port"] == 80
    assert main(kind="StatefulSet")["spec"]["serviceName"] == service(kind="StatefulSet")["metadata"]["name"]


@pytest.mark.parametrize("kind", ["Job", "CronJob"])
def test_what_ends_has_no_service(kind):
    assert "Service" not in [m["kind"] for m in rendered(kind=kind, ports=[80])]


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "Pod"])
def test_the_service_selects_the_pods_and_their_ports(kind):
    ports = {"http": 8000, "metrics": 9000}
    spec = service(kind=kind, ports=ports)["spec"]
    assert spec["selector"].items() <= pod_labels(main(kind=kind, ports=ports)).items()
    assert spec["ports"] == [
        {"name": "http", "port": 8000, "targetPort": "http"},
        {"name": "metrics", "port": 9000, "targetPort": "metrics"},
    ]
    assert container(kind=kind, ports=ports)["ports"] == [
        {"name": "http", "containerPort": 8000},
        {"name": "metrics", "containerPort": 9000},
    ]


def test_ports_without_names_are_named_by_their_number():
    assert container(ports=[8000])["ports"] == [{"name": "tcp-8000", "containerPort": 8000}]


def test_a_bare_pod_brings_its_own_account_since_that_of_a_new_namespace_comes_late():
    account, manifest = rendered(kind="Pod")
    assert (account["kind"], account["metadata"]["name"]) == ("ServiceAccount", "app")
    assert account["automountServiceAccountToken"] is False
    assert manifest["spec"]["serviceAccountName"] == "app"
    assert manifest["spec"]["automountServiceAccountToken"] is False


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "Job", "CronJob"])
def test_controllers_wait_for_the_account_of_the_namespace(kind):
    assert "ServiceAccount" not in [m["kind"] for m in rendered(kind=kind)]
    assert "serviceAccountName" not in pod(kind=kind)


@pytest.mark.parametrize("kind", KINDS)
def test_a_token_is_mounted_only_with_an_account_of_the_user(kind):
    assert pod(kind=kind)["automountServiceAccountToken"] is False
    given = pod(kind=kind, service_account="robot")
    assert (given["automountServiceAccountToken"], given["serviceAccountName"]) == (True, "robot")
    assert "ServiceAccount" not in [m["kind"] for m in rendered(kind=kind, service_account="robot")]


# --- objects of cdk8s-plus ------------------------------------------------------------


def test_objects_of_cdk8s_plus_are_taken_where_a_user_has_them(app, objects):
    chart = Chart(app, "gpu", namespace="llm")
    claim = kplus.PersistentVolumeClaim(
        chart,
        "models",
        access_modes=[kplus.PersistentVolumeAccessMode.READ_WRITE_ONCE],
        storage=Size.gibibytes(1),
    )
    settings, token = kplus.ConfigMap(chart, "settings"), kplus.Secret(chart, "token")
    registry = kplus.DockerConfigSecret(chart, "registry", data={"auths": {}})
    account = kplus.ServiceAccount(chart, "robot")
    workload(
        chart,
        volumes={"/models": claim, "/etc/app": settings, "/secrets": token},
        service_account=account,
        image_pull_secrets=[registry],
        env={"TOKEN": kplus.EnvValue.from_secret_value(kplus.SecretValue(secret=token, key="hf"))},
    )
    (spec,) = pod_specs(objects(chart)[-1])
    assert spec["volumes"] == [
        {"name": "models", "persistentVolumeClaim": {"claimName": claim.name}},
        {"name": "etc-app", "configMap": {"name": settings.name}},
        {"name": "secrets", "secret": {"secretName": token.name}},
    ]
    assert spec["serviceAccountName"] == account.name
    assert spec["imagePullSecrets"] == [{"name": registry.name}]
    assert spec["containers"][0]["env"] == [
        {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": token.name, "key": "hf"}}}
    ]


# --- the container ----------------------------------------------------------------------


def test_command_arguments_and_directory_arrive():
    made = container(command=["python"], args=["-m", "train"], working_dir="/srv")
    assert (made["command"], made["args"], made["workingDir"]) == (["python"], ["-m", "train"], "/srv")


def test_what_is_not_given_is_left_to_the_image():
    left_out = {"command", "args", "workingDir", "env", "ports", "volumeMounts", "startupProbe", "livenessProbe"}
    assert container().keys().isdisjoint(left_out)


def test_every_probe_stands_where_it_was_given():
    made = container(
        startup_probe=Probe.exec(["a"]), readiness_probe=Probe.exec(["b"]), liveness_probe=Probe.exec(["c"])
    )
    assert [made[f"{name}Probe"]["exec"]["command"] for name in ("startup", "readiness", "liveness")] == [
        ["a"],
        ["b"],
        ["c"],
    ]


def test_shared_memory_is_a_sized_volume_in_memory():
    spec = pod(shared_memory="2Gi")
    assert spec["volumes"] == [{"name": "dev-shm", "emptyDir": {"medium": "Memory", "sizeLimit": "2Gi"}}]
    assert spec["containers"][0]["volumeMounts"] == [{"name": "dev-shm", "mountPath": "/dev/shm"}]


def test_volumes_are_named_after_their_paths():
    spec = pod(volumes=dict.fromkeys(["/data", "/Data", "/", "/a_b/c.d"], Volume.empty_dir()))
    assert [volume["name"] for volume in spec["volumes"]] == ["data", "data-1", "root", "a-b-c-d"]
    assert [mount["name"] for mount in spec["containers"][0]["volumeMounts"]] == ["data", "data-1", "root", "a-b-c-d"]


def test_a_volume_that_refuses_writing_is_mounted_read_only():
    mounts = container(volumes={"/a": Volume.secret("token"), "/b": Volume.empty_dir()})["volumeMounts"]
    assert mounts == [{"name": "a", "mountPath": "/a", "readOnly": True}, {"name": "b", "mountPath": "/b"}]


@pytest.mark.parametrize("kind", KINDS)
def test_it_holds_no_capability_and_links_no_services(kind):
    spec = pod(kind=kind)
    assert spec["containers"][0]["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": False,
    }
    assert spec["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}}
    assert spec["enableServiceLinks"] is False


@pytest.mark.parametrize("kind", KINDS)
def test_a_user_id_is_all_that_the_restricted_level_still_asks_for(kind):
    assert pod_security.violations(pod(kind=kind), "baseline") == []
    assert pod_security.violations(pod(kind=kind), "restricted") != []
    given = {"kind": kind, "run_as_user": 1000, "fs_group": 1000, "shared_memory": "1Gi"}
    assert pod_security.violations(pod(**given), "restricted") == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_group_is_given_a_volume_only_where_its_root_is_of_another(kind):
    security = pod(kind=kind, fs_group=1000)["securityContext"]
    assert (security["fsGroup"], security["fsGroupChangePolicy"]) == (1000, "OnRootMismatch")
    assert "fsGroupChangePolicy" not in pod(kind=kind, run_as_user=1000)["securityContext"]


def test_root_is_stated_as_root():
    assert pod(run_as_user=0)["securityContext"]["runAsUser"] == 0
    assert "runAsNonRoot" not in container(run_as_user=0)["securityContext"]


def test_capabilities_are_added_to_none():
    assert container(capabilities=["SYS_PTRACE"])["securityContext"]["capabilities"] == {
        "drop": ["ALL"],
        "add": ["SYS_PTRACE"],
    }


# --- refusals -----------------------------------------------------------------------------

LABEL = "a DNS label (a-z, 0-9 and '-', at most 63 characters, letter or digit at both ends)"
ALL_KINDS = "'Deployment', 'StatefulSet', 'Job', 'CronJob', 'Pod'"
NO_GPU = "a pod without a GPU asks for none"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"gpus": 0}, f"gpus must be at least 1, got 0; {NO_GPU}"),
        ({"gpus": -1}, f"gpus must be at least 1, got -1; {NO_GPU}"),
        ({"gpus": True}, f"gpus must be an int, got True (bool); {NO_GPU}"),
        (
            {"gpus": 0.5},
            "gpus must be an int, got 0.5 (float); a part of a GPU is a slot: share GPUs with "
            "DevicePluginChart(sharing=Sharing.time_slicing(replicas=...)) and ask for 1",
        ),
        (
            {"kind": "Deploymnet"},
            f"kind must be one of {ALL_KINDS}; got 'Deploymnet' (did you mean 'Deployment'?)",
        ),
        (
            {"env": {"NVIDIA_VISIBLE_DEVICES": "all"}},
            "env['NVIDIA_VISIBLE_DEVICES'] must not be set, got 'all': it overrides the GPU that was allocated, and "
            "'all' shows every GPU of the node; leave it out, or pass visible_devices='unmanaged'",
        ),
        (
            {"gpu_resource": "amd.com/gpu"},
            "gpu_resource must be 'nvidia.com/gpu', 'nvidia.com/gpu.shared' or a MIG resource like "
            "'nvidia.com/mig-1g.10gb'; got 'amd.com/gpu'",
        ),
        (
            {"image": "app"},
            "image must be pinned as 'repository:tag' or 'repository@sha256:...', never 'latest'; got 'app'",
        ),
        (
            {"image": "registry.example:5000/app:latest"},
            "image must be pinned as 'repository:tag' or 'repository@sha256:...', never 'latest'; "
            "got 'registry.example:5000/app:latest'",
        ),
        ({"name": "My App"}, f"name must be {LABEL}; got 'My App'"),
        ({"namespace": "My_Space"}, f"namespace must be {LABEL}; got 'My_Space'"),
        ({"kind": "CronJob", "name": "a" * 53}, "name of a CronJob must have at most 52 characters; got 53"),
        (
            {"kind": "CronJob", "schedule": None},
            "schedule is required with kind 'CronJob'; got None, e.g. '0 3 * * *'",
        ),
        (
            {"kind": "CronJob", "schedule": "0 3"},
            "schedule must have cron's five fields, or be '@daily' or its like; got '0 3'",
        ),
        ({"schedule": "0 3 * * *"}, "schedule needs kind 'CronJob'; got 'Deployment'"),
        ({"kind": "Job", "replicas": 2}, "replicas needs kind 'Deployment' or 'StatefulSet'; got 'Job'"),
        ({"completions": 2}, "completions needs kind 'Job' or 'CronJob'; got 'Deployment'"),
        ({"kind": "Pod", "backoff_limit": 0}, "backoff_limit needs kind 'Job' or 'CronJob'; got 'Pod'"),
        ({"replicas": -1}, "replicas must be at least 0, got -1"),
        ({"replicas": True}, "replicas must be an int, got True (bool)"),
        ({"run_as_user": True}, "run_as_user must be an int, got True (bool)"),
        ({"run_as_user": -1}, "run_as_user must be at least 0, got -1"),
        ({"ports": "80"}, "ports must be a list, got '80' (str)"),
        ({"ports": [80, 80]}, "ports must not repeat a number; got [80, 80]"),
        ({"ports": {"a": 80, "b": 80}}, "ports must not repeat a number; got {'a': 80, 'b': 80}"),
        ({"ports": [0]}, "ports['tcp-0'] must be at least 1, got 0"),
        ({"ports": {"http": 65536}}, "ports['http'] must be at most 65535, got 65536"),
        (
            {"ports": {"a" * 16: 80}},
            "ports name must be a port name (a-z, 0-9 and single '-', at most 15 characters, at least one letter); "
            f"got '{'a' * 16}'",
        ),
        (
            {"shared_memory": "1Gi", "volumes": {"/dev/shm": Volume.empty_dir()}},
            "shared_memory and volumes['/dev/shm'] must not both be given",
        ),
        (
            {"volumes": {"data": Volume.empty_dir()}},
            "volumes path must be an absolute path without '..'; got 'data'",
        ),
        (
            {"volumes": {"/data": "models"}},
            "volumes['/data'] must be a Volume, a VolumeClaim or a PersistentVolumeClaim, ConfigMap or Secret object; "
            "got str",
        ),
        ({"command": "python train.py"}, "command must be a list, got 'python train.py' (str)"),
        ({"args": [1]}, "args[0] must be str; got int: 1"),
        ({"env": {"A": 1}}, "env['A'] must be str or an EnvValue; got int"),
        (
            {"resources": {"limits": {"nvidia.com/gpu": 1}}},
            "resources['limits']['nvidia.com/gpu'] must not be set here; got 1; ask for GPUs with gpus=",
        ),
        (
            {"service_account": 5},
            "service_account must be the name of a ServiceAccount or a ServiceAccount object; got int",
        ),
        (
            {"image_pull_secrets": [5]},
            "image_pull_secrets[0] must be the name of a Secret or a Secret object; got int",
        ),
        (
            {"labels": {"app.kubernetes.io/name": "x"}},
            "labels must not hold 'app.kubernetes.io/name', which tells these pods from others",
        ),
        ({"replica": 2}, "replica is no keyword of GpuWorkload (did you mean 'replicas'?)"),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, dict) else "",
)
def test_bad_input_gets_one_error_that_names_the_way_out(given, message):
    assert refusal(**given) == f"gpu/app: {message}"


def test_an_image_is_required(chart):
    with pytest.raises(GpuConstructsError, match=r"^gpu/app: image is required$"):
        GpuWorkload(chart, "app")


def test_a_refused_workload_leaves_the_chart_as_it_was(chart):
    with pytest.raises(GpuConstructsError):
        workload(chart, gpus=0)
    assert list(chart.node.children) == []


def test_volume_names_stay_apart_even_when_one_looks_like_the_number_of_another():
    names = [v["name"] for v in pod(volumes=dict.fromkeys(["/a", "/a-2", "/A"], Volume.empty_dir()))["volumes"]]
    assert len(set(names)) == 3


@pytest.mark.parametrize("name", ["80", "a--b"])
def test_a_port_name_that_kubernetes_would_not_take_is_refused(name):
    assert refusal(ports={name: 80}).startswith("gpu/app: ports name must ")


def test_a_probe_of_a_port_that_is_not_there_is_refused():
    given = {"ports": {"http": 80}, "readiness_probe": Probe.http_get("/", port="htp")}
    assert refusal(**given).startswith("gpu/app: readiness_probe ")


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "Pod"])
def test_a_service_needs_a_name_that_starts_with_a_letter(kind):
    assert refusal(kind=kind, name="3d", ports=[80]).startswith("gpu/app: name ")


def test_a_stateful_set_keeps_room_in_its_name_for_the_revision_of_its_pods():
    assert refusal(kind="StatefulSet", name="a" * 53) == (
        "gpu/app: name of a StatefulSet must have at most 52 characters; got 53"
    )


@pytest.mark.parametrize("schedule", ["a b c d e", "@dayly"])
def test_a_schedule_that_cron_would_not_read_is_refused(schedule):
    assert refusal(kind="CronJob", schedule=schedule).startswith("gpu/app: schedule must ")


def test_a_job_that_would_end_at_once_is_refused():
    assert (
        refusal(kind="Job", active_deadline_seconds=0) == "gpu/app: active_deadline_seconds must be at least 1, got 0"
    )


@pytest.mark.parametrize("image", [":1", "a b:1", "a\nb:1", "App:1", "app@x", "app@sha256:0"])
def test_an_image_that_no_runtime_could_pull_is_refused(image):
    assert refusal(image=image).startswith("gpu/app: image must be pinned")


@pytest.mark.parametrize("capability", ["CAP_SYS_ADMIN", "sys ptrace", ""])
def test_a_capability_that_kubernetes_would_not_take_is_refused(capability):
    assert refusal(capabilities=[capability]).startswith("gpu/app: capabilities[0] must ")


def test_a_priority_class_that_cannot_exist_is_refused():
    assert refusal(priority_class_name="very high").startswith("gpu/app: priority_class_name must be a DNS subdomain")


def test_a_working_directory_is_an_absolute_path():
    assert refusal(working_dir="srv").startswith("gpu/app: working_dir must be an absolute path")


def test_a_request_above_its_limit_is_refused():
    resources = {"requests": {"memory": "20Gi"}, "limits": {"memory": "16Gi"}}
    assert refusal(resources=resources).startswith("gpu/app: resources['requests']['memory'] must ")


@pytest.mark.parametrize("name", ["cpus", ""])
def test_a_resource_that_kubernetes_does_not_know_is_refused(name):
    assert refusal(resources={"limits": {name: "1"}}).startswith("gpu/app: resources['limits'] ")


@pytest.mark.parametrize("field", ["gpus", "replicas", "run_as_user", "fs_group", "termination_grace_period_seconds"])
def test_a_number_that_kubernetes_could_not_hold_is_refused(field):
    assert refusal(**{field: 2**63}).startswith(f"gpu/app: {field} must be at most ")


def test_outside_a_chart_it_says_so():
    with pytest.raises(GpuConstructsError, match=r"^app: scope must be "):
        GpuWorkload(App(), "app", image=IMAGE)


def test_a_second_construct_of_one_id_is_refused_in_one_line(chart):
    workload(chart)
    with pytest.raises(GpuConstructsError, match=r"^gpu/app: id is already taken"):
        workload(chart)


# --- the usual server ---------------------------------------------------------------------

HELPER = Container(name="sidecar", image=IMAGE)
FIRST = Container(name="first", image=IMAGE)
VOID = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}
DISK = VolumeClaim(storage="10Gi")


def test_a_server_of_a_small_cluster_is_as_it_should_be():
    manifest = main(
        profile=GpuProfile(platform=Talos("1.12"), tolerations=[TAINT]),
        ports={"http": 8000},
        liveness_probe=Probe.http_get("/health", port="http"),
        sidecars=[HELPER],
        run_as_user=1000,
        fs_group=1000,
    )
    spec = manifest["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})
    (made,) = pod_specs(manifest)
    assert made["runtimeClassName"] == "nvidia"
    assert made["nodeSelector"] == {"nvidia.com/gpu.present": "true"}
    assert made["tolerations"] == [
        {"key": "dedicated", "operator": "Equal", "value": "ai", "effect": "NoSchedule"},
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
    ]
    assert made["automountServiceAccountToken"] is False
    assert made["terminationGracePeriodSeconds"] == 60
    security = {"runAsNonRoot": True, "fsGroup": 1000, "seccompProfile": {"type": "RuntimeDefault"}}
    assert security.items() <= made["securityContext"].items()
    (app,) = made["containers"]
    assert "env" not in app
    assert app["resources"] == {
        "requests": {"cpu": "1", "memory": "4Gi"},
        "limits": {"memory": "16Gi", "nvidia.com/gpu": "1"},
    }
    dropped = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    assert dropped.items() <= app["securityContext"].items()
    probe = {"httpGet": {"path": "/health", "port": "http"}, "periodSeconds": 10, "failureThreshold": 60}
    assert probe.items() <= app["startupProbe"].items()
    (sidecar,) = made["initContainers"]
    assert (sidecar["name"], sidecar["restartPolicy"], sidecar["env"]) == ("sidecar", "Always", [VOID])


def test_boards_and_memory_are_one_term():
    gpus = GpuRequest(products=["NVIDIA-GeForce-RTX-5070-Ti"], min_vram="12Gi")
    made = pod(gpus=gpus)
    board = "NVIDIA-GeForce-RTX-5070-Ti"
    (term,) = made["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [
        {"key": "nvidia.com/gpu.product", "operator": "In", "values": [board, f"{board}-SHARED"]},
        {"key": "nvidia.com/gpu.memory", "operator": "Gt", "values": ["12287"]},
    ]
    assert made["nodeSelector"] == {"nvidia.com/gpu.present": "true"}


def test_a_liveness_probe_gives_time_to_load_and_a_startup_probe_of_the_user_stays():
    asked = Probe.exec(["true"], period_seconds=30, initial_delay_seconds=5)
    made = container(liveness_probe=asked)
    assert made["startupProbe"] == {
        "exec": {"command": ["true"]},
        "periodSeconds": 10,
        "timeoutSeconds": 5,
        "failureThreshold": 60,
    }
    assert (made["livenessProbe"]["periodSeconds"], made["livenessProbe"]["initialDelaySeconds"]) == (30, 5)
    own = container(liveness_probe=asked, startup_probe=Probe.exec(["own"]))
    assert own["startupProbe"]["exec"]["command"] == ["own"]
    assert "startupProbe" not in container(readiness_probe=asked)


# --- backends -----------------------------------------------------------------------------

NEW = Kubernetes("1.37")
BACKENDS = {
    "device-plugin": Backend.device_plugin(),
    "dra-claims": Backend.dra_claims(),
    "dra-extended-resource": Backend.dra_extended_resource(),
}
FIRST_RELEASE = {"device-plugin": 29, "dra-claims": 34, "dra-extended-resource": 36}


def wishes(backend, **given):
    """Give a request; a DeviceClass says which boards behind an extended resource."""
    return GpuRequest(**({} if backend == "dra-extended-resource" else given), vram="8Gi")


def releases(backend):
    return [one for one in schemas.SUPPORTED_RELEASES if int(one.split(".")[1]) >= FIRST_RELEASE[backend]]


@pytest.mark.parametrize("backend", BACKENDS)
def test_one_workload_under_every_backend(backend, snapshot):
    manifests = rendered(
        profile=GpuProfile(platform=Talos("1.14"), backend=BACKENDS[backend]),
        gpus=wishes(backend, products=["NVIDIA GeForce RTX 5070 Ti"], min_vram="12Gi"),
        sidecars=[HELPER],
    )
    assert manifests == snapshot


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "helpers", [{}, {"init_containers": [FIRST]}, {"sidecars": [HELPER], "init_containers": [FIRST]}]
)
@pytest.mark.parametrize("more", [{}, {"ports": [80], "volumes": {"/models": DISK}}], ids=["bare", "disk-and-port"])
def test_every_kind_with_everything_is_valid_where_it_is_served(kind, backend, helpers, more):
    profile = GpuProfile(platform=NEW, backend=BACKENDS[backend])
    gpus = wishes(backend, min_compute_capability="8.6")
    manifests = rendered(kind=kind, profile=profile, gpus=gpus, run_as_user=1000, **helpers, **more)
    for manifest in manifests:
        assert schemas.schema_errors(manifest, releases(backend)) == []
    assert [m["kind"] for m in manifests].count("ResourceClaimTemplate") == (backend == "dra-claims")
    (spec,) = pod_specs(manifests[-1])
    assert pod_security.violations(spec, "restricted") == []
    for helper in spec.get("initContainers", ()):
        assert (helper.get("env") == [VOID]) is (backend == "device-plugin")
    disks = [m["metadata"]["name"] for m in manifests if m["kind"] == "PersistentVolumeClaim"]
    assert disks == (["app-models"] if more and kind != "StatefulSet" else [])


@pytest.mark.parametrize("kind", KINDS)
def test_a_claim_is_made_of_a_template_of_the_workloads_own(kind):
    manifests = rendered(kind=kind, gpus=2, profile=GpuProfile(platform=NEW, backend=Backend.dra_claims()))
    (template,) = (m for m in manifests if m["kind"] == "ResourceClaimTemplate")
    assert template["metadata"]["name"] == "app-gpu"
    assert template["spec"]["spec"]["devices"]["requests"][0]["exactly"]["count"] == 2
    (spec,) = pod_specs(manifests[-1])
    assert spec["resourceClaims"] == [{"name": "gpu", "resourceClaimTemplateName": "app-gpu"}]
    assert spec["containers"][0]["resources"]["claims"] == [{"name": "gpu", "request": "gpu"}]
    assert "nvidia.com/gpu" not in spec["containers"][0]["resources"]["limits"]


def test_a_claim_that_is_there_needs_no_template():
    profile = GpuProfile(platform=NEW, backend=Backend.dra_claims())
    manifests = rendered(gpus=GpuRequest(resource_claim="shared"), profile=profile)
    assert [m["kind"] for m in manifests] == ["Deployment"]
    (spec,) = pod_specs(manifests[0])
    assert spec["resourceClaims"] == [{"name": "gpu", "resourceClaimName": "shared"}]


@pytest.mark.parametrize(
    ("name", "path", "kind"),
    [("gpu", "/claim", "Deployment"), ("service", "/account", "Pod"), ("disruption", "/budget", "Deployment")],
)
def test_a_disk_may_be_called_as_another_object_of_the_workload_is(name, path, kind):
    profile = GpuProfile(platform=NEW, backend=Backend.dra_claims())
    disk = VolumeClaim(storage="1Gi", access_modes=["ReadWriteMany"])
    serving = {"replicas": 2} if kind == "Deployment" else {}
    kinds = [m["kind"] for m in rendered(name=name, kind=kind, profile=profile, volumes={path: disk}, **serving)]
    assert "PersistentVolumeClaim" in kinds


# --- helpers ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_the_restricted_level_is_reached_with_helpers_too(kind):
    given = {"kind": kind, "run_as_user": 1000, "init_containers": [FIRST], "sidecars": [HELPER]}
    assert pod_security.violations(pod(**given), "restricted") == []
    root = Container(name="root", image=IMAGE, run_as_user=0)
    made = pod(kind=kind, run_as_user=1000, init_containers=[root])
    assert made["initContainers"][0]["securityContext"]["runAsNonRoot"] is False


def test_a_job_with_a_sidecar_ends():
    made = pod(kind="Job", sidecars=[HELPER])
    assert made["restartPolicy"] == "Never"
    assert [one["name"] for one in made["containers"]] == ["app"]
    assert made["initContainers"][0]["restartPolicy"] == "Always"


def test_a_helper_sees_no_gpu_and_cannot_ask_to():
    made = Container(name="helper", image=IMAGE, env={"A": "b"})
    assert pod(sidecars=[made])["initContainers"][0]["env"] == [{"name": "A", "value": "b"}, VOID]
    with pytest.raises(
        GpuConstructsError, match=r"container\.env\['NVIDIA_VISIBLE_DEVICES'\] must be 'void' or left out"
    ):
        Container(name="monitor", image=IMAGE, env={"NVIDIA_VISIBLE_DEVICES": "all"})


def test_a_volume_shared_with_a_helper_is_one():
    cache = Volume.empty_dir()
    fetch = Container(name="fetch", image=IMAGE, volumes={"/models": cache})
    made = pod(volumes={"/models": cache}, init_containers=[fetch])
    assert [volume["name"] for volume in made["volumes"]] == ["models"]


# --- updates, disruption, spread -------------------------------------------------------------


@pytest.mark.parametrize(("replicas", "budgets"), [(0, 0), (1, 0), (2, 1), (3, 1)])
@pytest.mark.parametrize("kind", SERVING)
def test_a_budget_lets_one_of_several_pods_be_missing(kind, replicas, budgets):
    found = [m for m in rendered(kind=kind, replicas=replicas) if m["kind"] == "PodDisruptionBudget"]
    assert len(found) == budgets
    labels = pod_labels(main(kind=kind, replicas=replicas))
    for budget in found:
        assert budget["spec"]["maxUnavailable"] == 1
        assert budget["spec"]["selector"]["matchLabels"].items() <= labels.items()


@pytest.mark.parametrize("kind", SERVING)
def test_several_pods_are_spread_over_nodes(kind):
    assert "topologySpreadConstraints" not in pod(kind=kind)
    (spread,) = pod(kind=kind, replicas=2)["topologySpreadConstraints"]
    assert (spread["topologyKey"], spread["whenUnsatisfiable"]) == ("kubernetes.io/hostname", "ScheduleAnyway")
    labels = pod_labels(main(kind=kind, replicas=2))
    assert spread["labelSelector"]["matchLabels"].items() <= labels.items()


def test_an_affinity_of_the_user_is_narrowed_by_what_the_gpus_demand():
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]} for zone in "ab"]
    given = {"nodeAffinity": {required: {"nodeSelectorTerms": terms}}, "podAntiAffinity": {}}
    before = copy.deepcopy(given)
    made = pod(scheduling=Scheduling(affinity=given), gpus=GpuRequest(min_vram="1Gi"))["affinity"]
    rules = [t["matchExpressions"] for t in made["nodeAffinity"][required]["nodeSelectorTerms"]]
    assert [[rule["key"] for rule in term] for term in rules] == [["zone", "nvidia.com/gpu.memory"]] * 2
    assert given == before


# --- profile and request -------------------------------------------------------------------


def test_a_workload_adds_to_the_profile_of_the_cluster():
    profile = GpuProfile(platform=Talos("1.12"), tolerations=[TAINT], node_selector={"pool": "gpu"})
    more = Toleration(key="spot", operator="Exists")
    made = pod(profile=profile, tolerations=[more], node_selector={"disk": "ssd"}, runtime_class="mine")
    assert [one["key"] for one in made["tolerations"]] == ["dedicated", "spot", "nvidia.com/gpu"]
    assert made["nodeSelector"] == {"nvidia.com/gpu.present": "true", "pool": "gpu", "disk": "ssd"}
    assert made["runtimeClassName"] == "mine"


def test_the_memory_it_will_take_and_rules_to_ignore_stand_on_the_object():
    found = main(gpus=GpuRequest(vram="8Gi"), ignore_rules=["R13", "R20"])["metadata"]["annotations"]
    assert found == {"gpu-constructs/vram": "8Gi", "gpu-constructs/ignore-rules": "R13,R20"}


MPS = GpuProfile(sharing=Sharing.mps(replicas=4))
SLICED = GpuProfile(sharing=Sharing.time_slicing(replicas=4))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"profile": SLICED, "platform": Kubernetes()}, "platform and profile must not both be given; pass "),
        ({"gpus": GpuRequest(), "gpu_resource": "nvidia.com/gpu"}, "gpu_resource and a GpuRequest must not both be "),
        ({"gpus": "1"}, "gpus must be an int, got '1' (str)"),
        ({"profile": SLICED, "gpus": 2}, "gpus must be 1 where nvidia.com/gpu is shared with "),
        (
            {"profile": SLICED, "gpu_resource": "nvidia.com/gpu.shared"},
            "gpu_resource 'nvidia.com/gpu.shared' is advertised only by a sharing with rename_by_default; leave "
            "gpu_resource out, or ask for 'nvidia.com/gpu'",
        ),
        ({"profile": MPS, "shared_memory": "1Gi"}, "/dev/shm must not be mounted (shared_memory, volumes) where GPUs "),
        (
            {"profile": MPS, "volumes": {"/dev/shm": Volume.empty_dir()}},
            "/dev/shm must not be mounted (shared_memory, ",
        ),
        (
            {"shared_memory": "16Gi"},
            "shared_memory must be less than the memory limit of 16Gi, against which it counts",
        ),
        (
            {"profile": GpuProfile(platform=Kubernetes("1.28")), "sidecars": [HELPER]},
            "sidecars need Kubernetes 1.29 or later, got 1.28; before, such a container keeps a Job from ending",
        ),
        (
            {"replicas": 1, "pod_disruption_budget": True},
            "pod_disruption_budget=True needs two replicas or more, got 1",
        ),
        ({"kind": "Job", "strategy": Strategy.recreate()}, "strategy needs kind 'Deployment' or 'StatefulSet'; got "),
        ({"replicas": 2, "volumes": {"/models": DISK}}, "volumes: a VolumeClaim with access_modes ['ReadWriteOnce'] "),
        ({"host_users": False}, "host_users=False needs devices by CDI, which Talos 1.12 does not have; leave it out"),
        (
            {"gpus": GpuRequest(products=["NVIDIA L4"]), "node_selector": {"nvidia.com/gpu.product": "NVIDIA-H200"}},
            "the pod selects nodes with nvidia.com/gpu.product=NVIDIA-H200, where its GPU request wants NVIDIA-L4 or ",
        ),
        ({"sidecars": [Container(name="app", image=IMAGE)]}, "container.name 'app' is taken already; choose another"),
    ],
    ids=lambda value: str(value)[:50] if isinstance(value, dict) else "",
)
def test_what_the_cluster_would_refuse_is_refused_with_its_path_and_leaves_the_chart_alone(given, message, chart):
    with pytest.raises(GpuConstructsError) as refused:
        workload(chart, **given)
    assert str(refused.value).startswith(f"gpu/app: {message}")
    assert len(str(refused.value).splitlines()) == 1
    assert list(chart.node.children) == []


def test_user_namespaces_are_there_with_devices_by_cdi():
    assert pod(platform=Talos("1.14"), host_users=False)["hostUsers"] is False


# --- what is added later -----------------------------------------------------------------------


def test_what_is_added_later_is_as_if_it_were_given_at_once(app):
    chart = Chart(app, "gpu")
    settings = Volume.config_map("settings")
    made = workload(chart)
    made.attach_volume("/models", DISK)
    made.attach_volume("/etc/app", settings)
    made.add_env("A", "b")
    made.add_sidecar(HELPER)
    made.add_init_container(FIRST)
    at_once = chart_with(
        volumes={"/models": DISK, "/etc/app": settings},
        env={"A": "b"},
        init_containers=[FIRST],
        sidecars=[HELPER],
    )

    def by_kind(manifests):
        return sorted(manifests, key=lambda manifest: manifest["kind"])

    assert by_kind(Testing.synth(chart)) == by_kind(Testing.synth(at_once))


def test_the_service_is_at_hand(chart):
    made = workload(chart, ports=[80])
    assert (made.service.kind, made.service.name) == ("Service", "app")
    assert workload(chart, "other").service is None


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ({"ports": {"metrics": 9090, "http": 8080}}, "http://app.ai.svc:8080"),
        ({"ports": {"https": 8443}, "kind": "StatefulSet"}, "https://app.ai.svc:8443"),
        ({"ports": {"grpc": 9000}}, None),
        ({"ports": {"http": 8080}, "kind": "Job"}, None),
        ({}, None),
    ],
)
def test_the_url_of_a_port_that_is_named_after_its_scheme_is_at_hand(chart, given, url):
    assert workload(chart, namespace="ai", **given).url == url


LATER = {
    "a path twice": (lambda it: it.attach_volume("/a", Volume.empty_dir()), "volumes['/a'] is given already; leave "),
    "a disk for two": (lambda it: it.attach_volume("/b", DISK), "volumes: a VolumeClaim with access_modes "),
    "no volume": (lambda it: it.attach_volume("/b", 5), "volumes['/b'] must be a Volume, "),
    "no path": (lambda it: it.attach_volume("b", Volume.empty_dir()), "volumes path must be an absolute path"),
    "a variable twice": (lambda it: it.add_env("A", "c"), "env['A'] is set already; leave one of the two out"),
    "a managed variable": (
        lambda it: it.add_env("NVIDIA_VISIBLE_DEVICES", "all"),
        "env['NVIDIA_VISIBLE_DEVICES'] must",
    ),
    "a number": (lambda it: it.add_env("B", 1), "env['B'] must be str or an EnvValue; got int"),
    "no container": (lambda it: it.add_sidecar("x"), "container must be Container"),
    "a name twice": (lambda it: it.add_init_container(HELPER), "container.name 'sidecar' is taken already; choose "),
    "probes": (
        lambda it: it.add_init_container(Container(name="b", image=IMAGE, readiness_probe=Probe.exec(["a"]))),
        "container of init_containers must have no probes: it only runs to its end",
    ),
}


@pytest.mark.parametrize("name", LATER)
def test_what_is_refused_later_says_where_and_leaves_nothing_behind(name, chart):
    change, message = LATER[name]
    made = workload(chart, replicas=2, volumes={"/a": Volume.empty_dir()}, env={"A": "b"}, sidecars=[HELPER])
    before = Testing.synth(chart)
    with pytest.raises(GpuConstructsError) as refused:
        change(made)
    assert str(refused.value).startswith(f"gpu/app: {message}")
    assert len(str(refused.value).splitlines()) == 1
    assert Testing.synth(chart) == before
    made.add_env("Z", "z")
    (spec,) = pod_specs(Testing.synth(chart)[-1])
    assert [variable["name"] for variable in spec["containers"][0]["env"]] == ["A", "Z"]


def test_memory_of_mps_is_not_hidden_later_either(chart):
    made = workload(chart, profile=MPS)
    with pytest.raises(GpuConstructsError, match=r"^gpu/app: /dev/shm must not be mounted "):
        made.attach_volume("/dev/shm", Volume.empty_dir())


# --- ConfigMaps handed over as objects -----------------------------------------------------------

CHECKSUM = "gpu-constructs/config-checksum"


def checksum(chart, kind):
    (manifest,) = (m for m in Testing.synth(chart) if m["kind"] == kind)
    spec = manifest["spec"]["jobTemplate"]["spec"] if kind == "CronJob" else manifest["spec"]
    return spec["template"]["metadata"].get("annotations", {}).get(CHECKSUM)


@pytest.mark.parametrize("kind", SERVING)
def test_a_changed_config_map_of_cdk8s_plus_restarts_what_serves(chart, kind):
    settings = kplus.ConfigMap(chart, "settings")
    workload(chart, kind=kind, volumes={"/etc/app": settings})
    before = checksum(chart, kind)
    assert before is not None
    assert checksum(chart, kind) == before
    settings.add_data("a", "b")
    assert checksum(chart, kind) not in (None, before)


def test_a_changed_api_object_restarts_what_serves(chart):
    settings = ApiObject(chart, "settings", api_version="v1", kind="ConfigMap")
    made = workload(chart, env={"A": EnvValue.config_map(settings, key="a")})
    before = checksum(chart, "Deployment")
    assert before is not None
    made.add_sidecar(Container(name="reader", image=IMAGE, volumes={"/etc/app": Volume.config_map(settings)}))
    assert checksum(chart, "Deployment") == before
    settings.metadata.add_label("a", "b")
    assert checksum(chart, "Deployment") != before


@pytest.mark.parametrize("kind", ["Job", "CronJob"])
def test_what_ends_reads_the_changed_config_map_at_its_next_start(chart, kind):
    workload(chart, kind=kind, volumes={"/etc/app": kplus.ConfigMap(chart, "settings")})
    assert checksum(chart, kind) is None


def test_a_config_map_by_name_cannot_restart_anything(chart):
    workload(chart, volumes={"/etc/app": Volume.config_map("settings")})
    assert checksum(chart, "Deployment") is None


def test_a_user_who_is_not_root_may_write_to_a_disk():
    disk = {"/data": VolumeClaim(storage="1Gi")}
    context = pod(run_as_user=1000, volumes=disk)["securityContext"]
    assert (context["fsGroup"], context["fsGroupChangePolicy"]) == (1000, "OnRootMismatch")
    assert pod(run_as_user=1000, fs_group=5, volumes=disk)["securityContext"]["fsGroup"] == 5
    assert "fsGroup" not in pod(volumes=disk)["securityContext"]
    assert "fsGroup" not in pod(run_as_user=1000, volumes={"/tmp": Volume.empty_dir()})["securityContext"]


def test_a_claim_of_another_namespace_is_refused(chart):
    profile = GpuProfile(platform=Kubernetes("1.35"), backend=Backend.dra_claims())
    claim = GpuResourceClaim(chart, "shared", profile=profile, namespace="b")
    with pytest.raises(GpuConstructsError, match="is of namespace 'b', and pods of 'a' cannot hold it"):
        GpuWorkload(chart, "app", image=IMAGE, namespace="a", profile=profile, gpus=GpuRequest(resource_claim=claim))
    with pytest.raises(GpuConstructsError, match="ignore_rules"):
        GpuWorkload(chart, "other", image=IMAGE, ignore_rules=["R99"])

"""A workload with its options, and the objects that it emits."""

import copy

import cdk8s_plus_27 as kplus
import pytest
from cdk8s import ApiObject, App, Chart, Size, Testing

import schemas
from gpu_constructs import (
    Backend,
    Container,
    EnvValue,
    GpuConstructsError,
    GpuNamespace,
    GpuProfile,
    GpuRequest,
    GpuResourceClaim,
    GpuWorkload,
    Kubernetes,
    NvidiaRuntimeClass,
    Probe,
    Run,
    Scheduling,
    Sharing,
    Talos,
    Toleration,
    Volume,
    VolumeClaim,
)
from gpu_constructs.kube import pod_security
from gpu_constructs.kube.pod_specs import pod_specs
from refusals import check_refusals, refusal
from tables import beside, cases

IMAGE = "registry.example/app:1.2.3"
RUNS = beside(__file__, "workload")["runs"]
SERVING = [Run.deployment, Run.stateful_set]
TAINT = Toleration(key="dedicated", value="ai", effect="NoSchedule")
GPU_TAINT = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
FIRST = Container(name="first", image=IMAGE)
HELPER = Container(name="sidecar", image=IMAGE)
VOID = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}
DISK = VolumeClaim(storage="10Gi")
MPS = GpuProfile(sharing=Sharing.mps(replicas=4))
CLAIMS = GpuProfile(platform=Kubernetes("1.37"), backend=Backend.dra_claims())


def workload(chart, id="app", **given):
    return GpuWorkload(chart, id, **{"image": IMAGE, **given})


def chart_with(**given):
    chart = Chart(App(), "gpu")
    workload(chart, **given)
    return chart


def rendered(**given):
    return Testing.synth(chart_with(**given))


def kinds(**given):
    return [manifest["kind"] for manifest in rendered(**given)]


def main(**given):
    """Return the object of the requested kind, which is the last one."""
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


def pod_metadata(manifest):
    spec = manifest["spec"]["jobTemplate"]["spec"] if manifest["kind"] == "CronJob" else manifest["spec"]
    return manifest["metadata"] if manifest["kind"] == "Pod" else spec["template"]["metadata"]


# --- whole renderings ----------------------------------------------------------


@pytest.mark.parametrize("kind", RUNS)
def test_every_kind_with_only_an_image(kind, objects, snapshot):
    assert objects(chart_with(run=RUNS[kind])) == snapshot
    if kind != "CronJob":
        assert rendered(kind=kind) == rendered(run=RUNS[kind])


def test_a_server_with_all_options(objects, snapshot, keywords):
    chart = chart_with(**keywords)
    assert objects(chart) == snapshot


def test_a_job_of_many_pods(objects, snapshot):
    chart = chart_with(
        run=Run.job(
            completions=9, parallelism=3, backoff_limit=0, active_deadline_seconds=3600, ttl_seconds_after_finished=0
        ),
        platform=Kubernetes(),
    )
    assert objects(chart) == snapshot


# --- every kind ------------------------------------------------------------------


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_pods_of_every_kind_get_their_labels_taints_and_gpus(run, chart):
    made = workload(chart, run=run, gpus=2, labels={"team": "ml"}, tolerations=[TAINT])
    assert (made.api_object.kind, made.api_object.name) == (run.kind, "app")
    assert (made.name, made.kind, made.gpus, made.namespace) == ("app", run.kind, 2, "default")
    manifest = Testing.synth(chart)[-1]
    assert manifest["metadata"]["labels"]["team"] == pod_metadata(manifest)["labels"]["team"] == "ml"
    assert made.match_labels.items() <= pod_metadata(manifest)["labels"].items()
    assert "team" not in str(manifest["spec"].get("selector"))
    (spec,) = pod_specs(manifest)
    assert spec["tolerations"] == [TAINT.to_manifest(), GPU_TAINT]
    (holder,) = spec["containers"]
    assert holder["resources"]["limits"]["nvidia.com/gpu"] == "2"
    assert "nvidia.com/gpu" not in holder["resources"]["requests"]


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_with_a_user_id_the_pods_satisfy_the_level_restricted(run):
    assert pod_security.violations(pod(run=run), "baseline") == []
    assert pod_security.violations(pod(run=run), "restricted") != []
    helpers = {"init_containers": [FIRST], "sidecars": [HELPER]}
    given = {"run": run, "run_as_user": 1000, "fs_group": 1000, "shared_memory": "1Gi", **helpers}
    assert pod_security.violations(pod(**given), "restricted") == []


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_a_token_is_mounted_only_with_an_account_of_the_user(run):
    assert pod(run=run)["automountServiceAccountToken"] is False
    if run.kind == "Pod":
        # In a new Namespace, the default account appears too late for a bare Pod.
        assert pod(run=run)["serviceAccountName"] == "app"
    given = pod(run=run, service_account="robot")
    assert (given["automountServiceAccountToken"], given["serviceAccountName"]) == (True, "robot")
    assert "ServiceAccount" not in kinds(run=run, service_account="robot")
    assert ("ServiceAccount" in kinds(run=run)) is (run.kind == "Pod")


def test_settings_of_a_kind_are_keywords_of_run():
    assert (
        refusal(chart_with, replicas=2)
        == "replicas is not a keyword of GpuWorkload: pass run=Run.deployment(replicas=...)"
    )
    with pytest.raises(GpuConstructsError, match=r": pass run=Run\.job\(completions=\.\.\.\)$"):
        chart_with(completions=2)
    with pytest.raises(GpuConstructsError, match=r": pass run=Run\.cron_job\(schedule=\.\.\.\)$"):
        chart_with(schedule="@daily")


# --- the GPU and where it is --------------------------------------------------------


def test_resources_replace_the_whole_default(expected):
    given = {"gpu_resource": "nvidia.com/mig-1g.10gb", "resources": {"requests": {"cpu": "2"}}}
    assert container(**given)["resources"] == expected


def test_unmanaged_visible_devices_are_allowed_and_annotated():
    env = {"NVIDIA_VISIBLE_DEVICES": "0"}
    made = main(env=env, visible_devices="unmanaged")
    assert made["metadata"]["annotations"] == {"gpu-constructs/visible-devices": "unmanaged"}
    (spec,) = pod_specs(made)
    assert spec["containers"][0]["env"] == [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "0"}]
    assert "annotations" not in main()["metadata"]


def test_on_plain_kubernetes_pods_have_no_runtime_class_and_no_node_label(chart):
    assert pod(platform=Kubernetes()).keys().isdisjoint({"runtimeClassName", "nodeSelector"})
    assert pod(platform=Kubernetes(), runtime_class="nvidia")["runtimeClassName"] == "nvidia"
    runtime_class = NvidiaRuntimeClass(chart, "runtime-class", name="gpu-runtime")
    assert pod(runtime_class=runtime_class)["runtimeClassName"] == "gpu-runtime"


def test_a_node_label_of_the_user_overrides_that_of_the_platform():
    assert pod(node_selector={"nvidia.com/gpu.present": "maybe"})["nodeSelector"] == {"nvidia.com/gpu.present": "maybe"}


def test_the_namespace_is_that_of_the_chart_otherwise_default(chart):
    named = Chart(App(), "gpu", namespace="llm")
    assert workload(named).namespace == Testing.synth(named)[-1]["metadata"]["namespace"] == "llm"
    assert main(namespace="a")["metadata"]["namespace"] == "a"
    theirs = kplus.Namespace(chart, "theirs")
    for namespace in (GpuNamespace(chart, "ours", name="ours", pod_security="restricted"), theirs):
        assert main(namespace=namespace)["metadata"]["namespace"] == namespace.name


def test_options_of_a_workload_extend_the_profile():
    profile = GpuProfile(platform=Talos("1.12"), tolerations=[TAINT], node_selector={"pool": "gpu"})
    more = Toleration(key="spot", operator="Exists")
    made = pod(profile=profile, tolerations=[more], node_selector={"disk": "ssd"}, runtime_class="mine")
    assert [one["key"] for one in made["tolerations"]] == ["dedicated", "spot", "nvidia.com/gpu"]
    assert made["nodeSelector"] == {"nvidia.com/gpu.present": "true", "pool": "gpu", "disk": "ssd"}
    assert made["runtimeClassName"] == "mine"


def test_gpu_requirements_extend_the_users_affinity():
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]} for zone in "ab"]
    given = {"nodeAffinity": {required: {"nodeSelectorTerms": terms}}, "podAntiAffinity": {}}
    before = copy.deepcopy(given)
    made = pod(scheduling=Scheduling(affinity=given), gpus=GpuRequest(min_vram="1Gi"))["affinity"]
    rules = [t["matchExpressions"] for t in made["nodeAffinity"][required]["nodeSelectorTerms"]]
    assert [[rule["key"] for rule in term] for term in rules] == [["zone", "nvidia.com/gpu.memory"]] * 2
    assert given == before


def test_budget_and_ignored_rules_are_annotations_of_the_object():
    found = main(gpus=GpuRequest(vram="8Gi"), ignore_rules=["R13", "R20"])["metadata"]["annotations"]
    assert found == {"gpu-constructs/vram": "8Gi", "gpu-constructs/ignore-rules": "R13,R20"}


# --- backends -----------------------------------------------------------------------------

BACKENDS = beside(__file__, "workload")["backends"]


def wishes(backend, **given):
    """Return a request. For an extended resource, a DeviceClass selects the boards."""
    return GpuRequest(**({} if backend == "dra-extended-resource" else given), vram="8Gi")


@pytest.mark.parametrize("backend", BACKENDS)
def test_one_workload_under_every_backend(backend, snapshot):
    manifests = rendered(
        profile=GpuProfile(platform=Talos("1.14"), backend=BACKENDS[backend][0]),
        gpus=wishes(backend, products=["NVIDIA GeForce RTX 5070 Ti"], min_vram="12Gi"),
        sidecars=[HELPER],
    )
    assert manifests == snapshot


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_kind_with_all_options_is_valid(backend):
    found, first = BACKENDS[backend]
    releases = [one for one in schemas.SUPPORTED_RELEASES if int(one.split(".")[1]) >= first]
    profile = GpuProfile(platform=Kubernetes("1.37"), backend=found)
    for kind, run in RUNS.items():
        manifests = rendered(
            run=run,
            profile=profile,
            gpus=wishes(backend, min_compute_capability="8.6"),
            run_as_user=1000,
            sidecars=[HELPER],
            init_containers=[FIRST],
            ports=[80],
            volumes={"/models": DISK},
        )
        for manifest in manifests:
            assert schemas.schema_errors(manifest, [releases[0], releases[-1]]) == [], kind
        assert [m["kind"] for m in manifests].count("ResourceClaimTemplate") == (backend == "dra-claims")
        (spec,) = pod_specs(manifests[-1])
        for helper in spec["initContainers"]:
            assert (helper.get("env") == [VOID]) is (backend == "device-plugin")
        disks = [m["metadata"]["name"] for m in manifests if m["kind"] == "PersistentVolumeClaim"]
        assert disks == ([] if kind == "StatefulSet" else ["app-models"])


def test_an_existing_claim_needs_no_template_and_the_same_namespace(chart):
    (made,) = rendered(gpus=GpuRequest(resource_claim="shared"), profile=CLAIMS)
    (spec,) = pod_specs(made)
    assert spec["resourceClaims"] == [{"name": "gpu", "resourceClaimName": "shared"}]
    claim = GpuResourceClaim(chart, "shared", profile=CLAIMS, namespace="b")
    with pytest.raises(GpuConstructsError, match="is in the namespace 'b', and pods of 'a' cannot use it"):
        workload(chart, namespace="a", profile=CLAIMS, gpus=GpuRequest(resource_claim=claim))


@cases
def test_a_disk_can_have_the_name_of_another_object(name, path, run):
    disk = VolumeClaim(storage="1Gi", access_modes=["ReadWriteMany"])
    assert "PersistentVolumeClaim" in kinds(name=name, run=run, profile=CLAIMS, volumes={path: disk})


# --- beside the pods ------------------------------------------------------------------


@cases
def test_pods_with_ports_have_a_service(run, with_ports, without):
    ports = {"http": 8000, "metrics": 9000}
    assert ("Service" in kinds(run=run, ports=ports), "Service" in kinds(run=run)) == (with_ports, without)
    if with_ports:
        spec = service(run=run, ports=ports)["spec"]
        assert spec["selector"].items() <= pod_metadata(main(run=run))["labels"].items()
        assert spec["ports"][1] == {"name": "metrics", "port": 9000, "targetPort": "metrics"}
        assert spec.get("clusterIP") == ("None" if run.kind == "StatefulSet" else None)
    assert container(run=run, ports=[8000])["ports"] == [{"name": "tcp-8000", "containerPort": 8000}]


@cases
def test_service_and_url_are_attributes(chart, given, url):
    made = workload(chart, namespace="ai", **given)
    assert made.url == url
    has_service = "ports" in given and given.get("kind") != "Job"
    assert (made.service is not None and made.service.name == "app") is has_service


def test_several_pods_that_serve_have_a_disruption_budget_and_spread_over_nodes():
    for run in SERVING:
        assert "PodDisruptionBudget" not in kinds(run=run())
        assert "topologySpreadConstraints" not in pod(run=run())
        manifests = rendered(run=run(replicas=2))
        (budget,) = (m for m in manifests if m["kind"] == "PodDisruptionBudget")
        labels = pod_metadata(manifests[-1])["labels"]
        assert budget["spec"]["maxUnavailable"] == 1
        assert budget["spec"]["selector"]["matchLabels"].items() <= labels.items()
        (spread,) = pod(run=run(replicas=2))["topologySpreadConstraints"]
        assert (spread["topologyKey"], spread["whenUnsatisfiable"]) == ("kubernetes.io/hostname", "ScheduleAnyway")
        assert spread["labelSelector"]["matchLabels"].items() <= labels.items()


def test_the_name_of_a_disk_contains_workload_and_path():
    disk, made = rendered(run=Run.job(), namespace="llm", annotations={"a": "b"}, volumes={"/models": DISK})
    assert (disk["metadata"]["name"], disk["metadata"]["namespace"]) == ("app-models", "llm")
    assert "annotations" not in disk["metadata"]
    (spec,) = pod_specs(made)
    assert spec["volumes"] == [{"name": "models", "persistentVolumeClaim": {"claimName": "app-models"}}]
    stateful = main(run=Run.stateful_set(replicas=3), volumes={"/models": DISK})["spec"]
    assert stateful["volumeClaimTemplates"][0]["metadata"] == {"name": "models"}
    assert stateful["template"]["spec"]["containers"][0]["volumeMounts"] == [{"name": "models", "mountPath": "/models"}]


def test_a_non_root_user_can_write_to_a_disk():
    disk = {"/data": DISK}
    context = pod(run_as_user=1000, volumes=disk)["securityContext"]
    assert (context["fsGroup"], context["fsGroupChangePolicy"]) == (1000, "OnRootMismatch")
    assert pod(run_as_user=1000, fs_group=5, volumes=disk)["securityContext"]["fsGroup"] == 5
    assert "fsGroup" not in pod(volumes=disk)["securityContext"]
    assert "fsGroup" not in pod(run_as_user=1000, volumes={"/tmp": Volume.empty_dir()})["securityContext"]


# --- objects of cdk8s-plus ------------------------------------------------------------


def test_objects_of_cdk8s_plus_are_accepted(app, objects):
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


def test_by_default_a_liveness_probe_allows_ten_minutes_to_load(expected):
    asked = Probe.exec(["true"], period_seconds=30, initial_delay_seconds=5)
    made = container(liveness_probe=asked)
    assert made["startupProbe"] == expected
    assert (made["livenessProbe"]["periodSeconds"], made["livenessProbe"]["initialDelaySeconds"]) == (30, 5)
    assert "startupProbe" not in container(readiness_probe=asked)


def test_root_and_user_namespaces_are_written():
    assert pod(platform=Talos("1.14"), host_users=False)["hostUsers"] is False
    assert pod(run_as_user=0)["securityContext"]["runAsUser"] == 0
    assert "runAsNonRoot" not in container(run_as_user=0)["securityContext"]
    made = pod(run_as_user=1000, init_containers=[Container(name="root", image=IMAGE, run_as_user=0)])
    assert made["initContainers"][0]["securityContext"]["runAsNonRoot"] is False


# --- helpers ------------------------------------------------------------------------------


def test_sidecars_always_follow_the_init_containers(chart):
    made = workload(chart, run=Run.job())
    for name in ("side-a", "init-a", "side-b", "init-b"):
        add = made.add_sidecar if name.startswith("side") else made.add_init_container
        add(Container(name=name, image=IMAGE))
    (spec,) = pod_specs(Testing.synth(chart)[-1])
    # A Job ends, because its sidecars are native ones.
    assert [(one["name"], one.get("restartPolicy")) for one in spec["initContainers"]] == [
        ("init-a", None),
        ("init-b", None),
        ("side-a", "Always"),
        ("side-b", "Always"),
    ]
    assert all(VOID in one["env"] for one in spec["initContainers"])
    assert "env" not in spec["containers"][0]


def test_a_helper_container_shares_volumes_and_sees_no_gpu():
    cache = {"/models": Volume.empty_dir()}
    shared = pod(volumes=cache, init_containers=[Container(name="fetch", image=IMAGE, volumes=cache)])
    assert [volume["name"] for volume in shared["volumes"]] == ["models"]
    made = Container(name="helper", image=IMAGE, env={"A": "b"})
    assert pod(sidecars=[made])["initContainers"][0]["env"] == [{"name": "A", "value": "b"}, VOID]
    with pytest.raises(
        GpuConstructsError, match=r"container\.env\['NVIDIA_VISIBLE_DEVICES'\] must be 'void' or left out"
    ):
        Container(name="monitor", image=IMAGE, env={"NVIDIA_VISIBLE_DEVICES": "all"})


# --- refusals -----------------------------------------------------------------------------


def test_bad_input_raises_one_error_and_leaves_the_chart_unchanged(chart, rows):
    check_refusals(lambda **given: workload(chart, **given), rows, at="gpu/app: ")
    assert list(chart.node.children) == []


def test_a_scope_outside_a_chart_is_rejected(chart):
    with pytest.raises(GpuConstructsError, match=r"^gpu/app: image is required by GpuWorkload"):
        GpuWorkload(chart, "app")
    with pytest.raises(GpuConstructsError, match=r"^app: scope must be "):
        GpuWorkload(App(), "app", image=IMAGE)
    workload(chart)
    with pytest.raises(GpuConstructsError, match=r"^gpu/app: id must be unique"):
        workload(chart)


# --- what is added later -----------------------------------------------------------------------


def test_later_additions_give_the_same_output_as_keywords(app):
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


def test_the_error_of_a_later_addition_has_a_path_and_changes_nothing(chart, rows):
    made = workload(
        chart,
        run=Run.deployment(replicas=2),
        volumes={"/a": Volume.empty_dir()},
        env={"A": "b"},
        sidecars=[HELPER],
    )
    before = Testing.synth(chart)
    for change, given, says in rows:
        check_refusals(getattr(made, change), [(given, says)], at="gpu/app: ")
    assert Testing.synth(chart) == before
    made.add_env("Z", "z")
    (spec,) = pod_specs(Testing.synth(chart)[-1])
    assert [variable["name"] for variable in spec["containers"][0]["env"]] == ["A", "Z"]
    shared = workload(chart, "shared", profile=MPS)
    with pytest.raises(GpuConstructsError, match="gpu/shared: shared_memory "):
        shared.attach_volume("/dev/shm", Volume.empty_dir())


# --- ConfigMaps handed over as objects -----------------------------------------------------------

CHECKSUM = "gpu-constructs/config-checksum"


def checksum(chart):
    return pod_metadata(Testing.synth(chart)[-1]).get("annotations", {}).get(CHECKSUM)


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_a_changed_config_map_of_cdk8s_plus_restarts_pods_that_serve(chart, kind):
    settings = kplus.ConfigMap(chart, "settings")
    workload(chart, kind=kind, volumes={"/etc/app": settings})
    before = checksum(chart)
    assert before is not None
    assert checksum(chart) == before
    settings.add_data("a", "b")
    assert checksum(chart) not in (None, before)


def test_a_changed_api_object_restarts_pods_that_serve(chart):
    settings = ApiObject(chart, "settings", api_version="v1", kind="ConfigMap")
    made = workload(chart, env={"A": EnvValue.config_map(settings, key="a")})
    before = checksum(chart)
    assert before is not None
    made.add_sidecar(Container(name="reader", image=IMAGE, volumes={"/etc/app": Volume.config_map(settings)}))
    assert checksum(chart) == before
    settings.metadata.add_label("a", "b")
    assert checksum(chart) != before


def test_pods_that_end_or_name_a_config_map_do_not_restart(chart):
    for run in (Run.job(), RUNS["CronJob"]):
        workload(chart, run.kind.lower(), run=run, volumes={"/etc/app": kplus.ConfigMap(chart, f"for-{run.kind}")})
        assert checksum(chart) is None
    workload(chart, volumes={"/etc/app": Volume.config_map("settings")})
    assert checksum(chart) is None

"""The main variants of each construct: a control plane takes them without a warning and creates their pods."""

import cdk8s_plus_27 as kplus
import pytest
import yaml

import example_clusters as examples
from gpu_constructs import (
    ApiObject,
    App,
    Backend,
    BasicAuth,
    Chart,
    ComfyUI,
    Configs,
    ContainerLimits,
    CudaSmokeTest,
    DcgmExporter,
    Delivery,
    DevicePluginChart,
    External,
    FeatureExpression,
    FeatureMatch,
    FeatureRule,
    Flags,
    GpuAccess,
    GpuAlerts,
    GpuDashboard,
    GpuNamespace,
    GpuOperator,
    GpuPriorityClasses,
    GpuProfile,
    GpuRequest,
    GpuResourceClaim,
    GpuWorkload,
    Jellyfin,
    JsonPatch,
    KatibExperiment,
    KatibParameter,
    KubeflowNotebook,
    Kubernetes,
    NamespaceQuota,
    NodeFeatureDiscovery,
    NodeFeatureDiscoveryChart,
    NodeFeatureRule,
    NvidiaGpuExporter,
    NvidiaRuntimeClass,
    Ollama,
    Plex,
    PluginConfig,
    PowerLimit,
    PyTorchTraining,
    Run,
    Scheduling,
    Sharing,
    Strategy,
    Taint,
    Talos,
    Tls,
    TrainingPod,
    ValidationBridge,
    Vllm,
    Volume,
    VolumeClaim,
    synth,
)
from kubelet import Node

GPU = "nvidia.com/gpu"
LABELS = {
    "feature.node.kubernetes.io/pci-10de.present": "true",
    "nvidia.com/gpu.present": "true",
    "nvidia.com/mps.capable": "true",
    "extensions.talos.dev/nvidia-open-gpu-kernel-modules-production": "610.43.03-v1.12.11",
}
NODES = [
    Node(
        name,
        {**LABELS, **({"nvidia.com/device-plugin.config": name} if name != "plain" else {})},
        devices={GPU: 100, "nvidia.com/gpu.shared": 100, "nvidia.com/mig-1g.10gb": 100},
    )
    for name in ("plain", "whole", "shared")
]
TALOS = Talos("1.13.9")
SLICED, SPLIT = Sharing.time_slicing(replicas=4), Sharing.mps(replicas=4)
WHOLE_AND_SHARED = {"whole": PluginConfig(), "shared": PluginConfig(sharing=SLICED)}


def plugin(**options):
    return lambda app, name: DevicePluginChart(app, name, namespace=name, **options)


def beside(make, level="baseline", runtime_class=True, **namespace):
    """Return a maker of an app with a chart, its Namespace and the RuntimeClass."""

    def made(app, name):
        chart = Chart(app, name, namespace=name)
        own = GpuNamespace(chart, "namespace", name=name, pod_security=level, **namespace)
        if runtime_class:
            NvidiaRuntimeClass(chart, "runtime-class")
        make(chart, own)

    return made


def agent(construct, **options):
    return beside(lambda chart, own: construct(chart, chart.node.id, namespace=own, **options), "privileged")


def workload(level="baseline", **options):
    given = {"image": "docker.io/library/busybox:1.37.0", "platform": TALOS, **options}
    return beside(lambda chart, _: GpuWorkload(chart, "work", **given), level)


def discovering(app, name):
    NodeFeatureDiscoveryChart(app, name, namespace=name)
    gpu = FeatureMatch(feature="pci.device", match_expressions={"vendor": ["10de"]})
    new = FeatureMatch(
        feature="kernel.version",
        match_expressions={"full": FeatureExpression(op="Ge", value=["6.1"], type="version")},
        match_name=FeatureExpression(op="Exists"),
    )
    every = FeatureRule(
        name="every option",
        labels={"example.com/gpu": "true"},
        labels_template="{{ range .pci.device }}example.com/{{ .device }}=true\n{{ end }}",
        vars={"a": "b"},
        vars_template="c=d",
        annotations={"example.com/gpu": "any text"},
        extended_resources={"example.com/slots": 2},
        taints=[Taint(key="example.com/gpu", value="new", effect="NoExecute")],
        match_features=[gpu],
        match_any=[[gpu], [new]],
    )
    NodeFeatureRule(Chart(app, f"{name}-rules"), "rules", rules=[every])


def recipe(construct, level="restricted", **options):
    return beside(lambda chart, _: construct(chart, "work", **options), level)


def training(**options):
    pod = TrainingPod(script="print('loss=1')", platform=TALOS)
    return beside(lambda chart, _: PyTorchTraining(chart, "train", pod=pod, **options), "restricted")


def katib(**options):
    def make(chart, _):
        pod = TrainingPod(script="print('loss=1')", args=["${trialParameters.rate}"], platform=TALOS)
        rate = {"rate": KatibParameter.double(min=0.01, max=0.05)}
        KatibExperiment(chart, "tune", trial=pod, parameters=rate, objective_metric_name="loss", **options)

    labels = {"katib.kubeflow.org/metrics-collector-injection": "enabled"}
    return beside(make, "baseline", labels=labels)


def operator(platform=TALOS, bridge=None, **options):
    def make(chart, own):
        made = None if bridge is None else ValidationBridge(chart, "bridge", platform=platform, namespace=own, **bridge)
        GpuOperator(
            chart, "operator", platform=platform, namespace=own, bridge=made, release_name=chart.node.id, **options
        )

    return beside(make, "privileged", runtime_class=False)


def of_cdk8s_plus(kind, **options):
    def make(chart, _):
        container = kplus.ContainerProps(image="docker.io/library/busybox:1.37.0", port_number=8080)
        made = getattr(kplus, kind)(chart, "work", containers=[container], **options)
        made.with_(GpuAccess(count=1, platform=TALOS))

    return beside(make)


def raw_deployment(chart, _):
    pod = {"containers": [{"name": "main", "image": "docker.io/library/busybox:1.37.0"}]}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": pod}}
    made = ApiObject(chart, "raw", api_version="apps/v1", kind="Deployment")
    made.add_json_patch(JsonPatch.add("/spec", {"replicas": 1, **spec}))
    made.with_(GpuAccess(count=1, platform=TALOS))


def claiming_by_itself(chart, _):
    profile = GpuProfile(platform=TALOS, backend=Backend.dra_claims())
    GpuWorkload(chart, "work", image="docker.io/library/busybox:1.37.0", profile=profile)


def claiming(chart, _):
    profile = GpuProfile(platform=TALOS, backend=Backend.dra_claims())
    claim = GpuResourceClaim(chart, "one-gpu", profile=profile)
    GpuWorkload(
        chart, "work", image="docker.io/library/busybox:1.37.0", profile=profile, gpus=GpuRequest(resource_claim=claim)
    )


def watched(exporter, level, **options):
    def make(chart, own):
        made = exporter(chart, chart.node.id, namespace=own, dashboard=False, **options)
        GpuAlerts(chart, "alerts", exporter=made)
        GpuDashboard(chart, "dashboard", exporter=made, folder="GPUs")

    return beside(make, level)


def limited(chart, _):
    GpuPriorityClasses(chart, "priorities", prefix=chart.node.id)
    GpuWorkload(
        chart,
        "work",
        image="docker.io/library/busybox:1.37.0",
        platform=TALOS,
        priority_class_name=f"{chart.node.id}-serving",
        resources={"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}},
    )


IN_PLACE = Strategy(type="RollingUpdate", max_unavailable=1, max_surge=0)
MIXED = GpuProfile(platform=TALOS, mig_strategy="mixed")
QUOTA = NamespaceQuota(gpus={GPU: 4}, hard={"requests.memory": "256Gi"})
APPS = {
    "plugin": {
        "plugin-default": plugin(),
        "plugin-talos-1-10": plugin(platform=Talos("1.10.9"), version="0.18.2"),
        "plugin-elsewhere": plugin(platform=Kubernetes(), gpu_feature_discovery=False, node_feature_discovery=False),
        "plugin-alone": plugin(gpu_feature_discovery=False, node_feature_discovery=False),
        "plugin-sliced": plugin(sharing=SLICED, mig_strategy="mixed"),
        "plugin-mps": plugin(sharing=SPLIT),
        "plugin-cdi": plugin(platform=TALOS, device_list_strategy="cdi-cri"),
        "plugin-mounts": plugin(platform=Kubernetes(), device_list_strategy="volume-mounts"),
        "plugin-named": plugin(config=Configs.named(WHOLE_AND_SHARED, default="whole")),
        "plugin-managed": plugin(config=Configs.managed(WHOLE_AND_SHARED, default="whole")),
        "plugin-external": plugin(config=Configs.external("made-elsewhere", default="whole")),
        "plugin-single": plugin(config=PluginConfig(flags=Flags(mig_strategy="single"))),
        "plugin-nfd": plugin(node_feature_discovery=NodeFeatureDiscovery(topology_updater=None)),
        "discovery-rules": discovering,
        "bridge-markers": agent(ValidationBridge, platform=Talos("1.12.11")),
        "bridge-stage": agent(ValidationBridge, platform=Talos("1.12.11"), strategy="stage"),
    },
    "exporters": {
        "dcgm": agent(DcgmExporter),
        "dcgm-shared": agent(DcgmExporter, sharing=SLICED),
        "dcgm-bare": agent(DcgmExporter, pod_mapping=False, dashboard=False, service=False, scrape="PodMonitor"),
        "dcgm-vm": agent(DcgmExporter, scrape="VMServiceScrape"),
        "dcgm-secured": agent(
            DcgmExporter,
            tls=Tls(secret="tls"),
            basic_auth=BasicAuth(users={"prometheus": f"$2y$10${'a' * 53}"}, secret="login"),
        ),
        "dcgm-host": agent(DcgmExporter, host_network=True, port=9500),
        "dcgm-remote": agent(DcgmExporter, remote_hostengine="localhost:5555"),
        "dcgm-watched": watched(DcgmExporter, "privileged"),
        "smi": agent(NvidiaGpuExporter),
        "smi-watched": watched(NvidiaGpuExporter, "restricted"),
        "smi-nvml": agent(NvidiaGpuExporter, backend="nvml"),
        "power": agent(PowerLimit, watts=300),
        "power-share": agent(PowerLimit, watts="80%", restore_on_exit=True),
        "power-metrics": agent(PowerLimit, watts=250, textfile_directory="/var/lib/node_exporter"),
    },
    "workloads": {
        "deployment": workload(ports={"http": 8080}),
        "deployment-restricted": workload("restricted", run_as_user=1000, read_only_root_filesystem=True),
        "deployment-replicas": workload(
            run=Run.deployment(replicas=3, strategy=Strategy(type="RollingUpdate", max_unavailable=1, max_surge=0))
        ),
        "deployment-memory": workload(shared_memory="1Gi", volumes={"/scratch": Volume.empty_dir(size_limit="1Gi")}),
        "deployment-gated": workload(scheduling=Scheduling(scheduling_gates=["example.com/wait"])),
        "statefulset": workload(run=Run.stateful_set(replicas=2), volumes={"/data": VolumeClaim(storage="1Gi")}),
        "job": workload(kind="Job"),
        "job-indexed": workload(run=Run.job(completions=3, parallelism=3, completion_mode="Indexed")),
        "job-suspended": workload(run=Run.job(suspend=True)),
        "cronjob": workload(run=Run.cron_job(schedule="0 3 * * *")),
        "pod": workload(kind="Pod"),
        "mig": workload(
            gpus=GpuRequest(mig_profile="1g.10gb"), profile=GpuProfile(platform=TALOS, mig_strategy="mixed")
        ),
        "shared-name": workload(gpu_resource="nvidia.com/gpu.shared"),
        "selected": workload(gpus=GpuRequest(min_vram="16Gi", family="ampere")),
        "elsewhere": workload(platform=Kubernetes()),
        "claims": beside(claiming_by_itself),
        "claim-shared": beside(claiming),
        "access-deployment": of_cdk8s_plus("Deployment", replicas=1),
        "access-job": of_cdk8s_plus("Job"),
        "access-raw": beside(raw_deployment),
    },
    "recipes": {
        "ollama": recipe(Ollama, models=["llama3.2:3b"]),
        "ollama-plain": recipe(Ollama, platform=Kubernetes(), storage="10Gi"),
        "vllm": recipe(Vllm, model="Qwen/Qwen3-4B", gpus=GpuRequest(vram="20Gi"), gpu_memory="24Gi"),
        "comfyui": recipe(ComfyUI, "baseline", image="docker.io/yanwk/comfyui-boot:cu128-slim"),
        "jellyfin": recipe(Jellyfin),
        "plex": recipe(Plex, "baseline", transcode=Volume.empty_dir(medium="Memory", size_limit="4Gi")),
        "smoke-test": recipe(CudaSmokeTest, slots=4, profile=GpuProfile(platform=TALOS, sharing=SLICED)),
        "train-job": training(),
        "train-pytorchjob": training(api="PyTorchJob", num_nodes=2),
        "train-trainjob": training(api="TrainJob"),
        "notebook": recipe(KubeflowNotebook, "baseline", pod=TrainingPod(platform=TALOS)),
        "notebook-stopped": recipe(KubeflowNotebook, "baseline", pod=TrainingPod(platform=TALOS), stopped=True),
        "katib-job": katib(),
        "katib-pytorchjob": katib(api="PyTorchJob", algorithm_name="tpe", parallel_trial_count=2),
    },
    "platform": {
        "operator-flux": operator(delivery=Delivery.flux()),
        "operator-oci": operator(delivery=Delivery.flux(source="oci://nvcr.io/nvidia/cloud-native")),
        "operator-argo": operator(delivery=Delivery.argo_cd()),
        "operator-values": operator(delivery=Delivery.values()),
        "operator-markers": operator(Talos("1.12.11"), {}, delivery=Delivery.flux()),
        "operator-stage": operator(Talos("1.12.11"), {"strategy": "stage"}, delivery=Delivery.flux()),
        "level-privileged": beside(limited, "privileged"),
        "level-baseline": beside(limited, "baseline"),
        "level-quota": beside(limited, "baseline", resource_quota=QUOTA),
        "level-limits": beside(limited, "baseline", limit_range=ContainerLimits(max={"memory": "64Gi"})),
    },
}
FROM_ELSEWHERE = {
    "node_labels": ["nvidia.com/*", "feature.node.kubernetes.io/*", "extensions.talos.dev/*"],
    "namespaces": ["argocd"],
    "config_maps": ["*"],
    "secrets": ["*"],
}


@pytest.fixture
def synthesized(tmp_path):
    """Return a function that writes an app and reads all objects in it."""

    def written(name, make):
        app = App(outdir=str(tmp_path / name))
        make(app, name)
        External(app, "others", **FROM_ELSEWHERE)
        synth(app, quiet=True)
        paths = sorted((tmp_path / name).rglob("*.k8s.yaml"))
        return [one for path in paths for one in yaml.safe_load_all(path.read_text(encoding="utf-8"))]

    return written


@pytest.mark.filterwarnings("ignore::gpu_constructs.errors.GpuConstructsWarning")
@pytest.mark.parametrize("group", APPS)
def test_a_control_plane_takes_every_variant_without_a_warning(group, cluster, kubelets, synthesized):
    kubelets.register(*NODES)
    written = {name: synthesized(name, make) for name, make in APPS[group].items()}
    everything = [one for manifests in written.values() for one in manifests]
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argocd"}})
    examples.bring_definitions_of(cluster, everything)
    warned = {}
    for name, manifests in written.items():
        cluster.warnings.clear()
        cluster.apply(*manifests)
        if cluster.warnings:
            warned[name] = list(cluster.warnings)
    assert warned == {}
    examples.wait_for_pods(cluster, everything)
    assert examples.refusals(cluster) == []

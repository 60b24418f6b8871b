"""Four example clusters, one App each. Copy the one that is nearest to yours.

``uv run python app.py`` writes them to ``dist/``, or to the folder in the environment variable CDK8S_OUTDIR.
"""

import os
from dataclasses import replace
from pathlib import Path

from gpu_constructs import (
    ApiObject,
    App,
    CapacityPlan,
    Chart,
    ComfyUI,
    CudaSmokeTest,
    DcgmExporter,
    Delivery,
    DevicePluginChart,
    GpuAccess,
    GpuAlerts,
    GpuInventory,
    GpuNamespace,
    GpuNode,
    GpuOperator,
    GpuProfile,
    GpuRequest,
    GpuWorkload,
    JsonPatch,
    KatibExperiment,
    KatibParameter,
    KubeflowNotebook,
    Kubernetes,
    NvidiaGpuExporter,
    NvidiaRuntimeClass,
    Ollama,
    PowerLimit,
    PyTorchTraining,
    Sharing,
    Taint,
    Talos,
    TalosGpuNode,
    TrainingPod,
    ValidationBridge,
    Volume,
    synth,
)

BOARD, VRAM = "NVIDIA GeForce RTX 5070 Ti", "16303Mi"  # sold as 16 GB
RTX_3090 = "NVIDIA GeForce RTX 3090"
COMFYUI = "docker.io/yanwk/comfyui-boot:cu128-slim"
PYTORCH = "docker.io/pytorch/pytorch:2.7.1-cuda12.8-cudnn9-runtime"
TRAIN = """import sys, time, torch
rate, end = float(sys.argv[1]) if sys.argv[1:] else 0.02, time.time() + 30
weights = torch.ones(4096, device="cuda")
while time.time() < end:
    weights -= rate * 2 * weights  # the gradient of the loss below
print(f"loss={(weights**2).sum().item()}")
"""


def cluster(name: str) -> App:
    return App(outdir=str(Path(os.environ.get("CDK8S_OUTDIR", "dist")) / name))


def ollama(app: App, profile: GpuProfile, gpus: GpuRequest) -> None:
    chart = Chart(app, "ollama", namespace="ollama")
    GpuNamespace(chart, "namespace", name="ollama", pod_security="restricted")
    Ollama(chart, "ollama", profile=profile, gpus=gpus, gpu_memory=VRAM, models=["llama3.2:3b"], max_loaded_models=1)


def comfyui(app: App, profile: GpuProfile) -> None:
    """Add ComfyUI with Flux.1, which uses 12 GiB while it makes an image, and almost none before and after."""
    chart = Chart(app, "comfyui", namespace="comfyui")
    GpuNamespace(chart, "namespace", name="comfyui", pod_security="baseline")  # the image runs as root
    flux = GpuRequest(vram="12Gi", vram_typical="4Gi")
    ComfyUI(chart, "comfyui", image=COMFYUI, profile=profile, gpus=flux, gpu_memory=VRAM, args=["--disable-xformers"])


def comfyui_of_cdk8s_plus(app: App, profile: GpuProfile) -> None:
    """Add ComfyUI as a Deployment of cdk8s-plus, to which ``GpuAccess`` adds the GPU."""
    import cdk8s_plus_27 as kplus
    from cdk8s import ApiObjectMetadata, Duration, Size

    chart = Chart(app, "comfyui", namespace="comfyui")
    GpuNamespace(chart, "namespace", name="comfyui", pod_security="baseline")
    named = ApiObjectMetadata(name="comfyui")
    once = [kplus.PersistentVolumeAccessMode.READ_WRITE_ONCE]
    claim = kplus.PersistentVolumeClaim(chart, "disk", metadata=named, access_modes=once, storage=Size.gibibytes(100))
    container = kplus.ContainerProps(
        image=COMFYUI,
        port_number=8188,
        image_pull_policy=kplus.ImagePullPolicy.IF_NOT_PRESENT,
        env_variables={"CLI_ARGS": kplus.EnvValue.from_value("--disable-xformers --reserve-vram 8")},
        startup=kplus.Probe.from_http_get("/system_stats", period_seconds=Duration.seconds(10), failure_threshold=120),
        resources=kplus.ContainerResources(
            cpu=kplus.CpuResources(request=kplus.Cpu.units(2)),
            memory=kplus.MemoryResources(request=Size.gibibytes(8), limit=Size.gibibytes(32)),
        ),
        security_context=kplus.ContainerSecurityContextProps(ensure_non_root=False, read_only_root_filesystem=False),
        volume_mounts=[
            kplus.VolumeMount(path="/root", volume=kplus.Volume.from_persistent_volume_claim(chart, "root", claim))
        ],
    )
    pods = kplus.PodSecurityContextProps(ensure_non_root=False)
    deployment = kplus.Deployment(
        chart, "comfyui", metadata=named, replicas=1, containers=[container], security_context=pods
    )
    deployment.expose_via_service(name="comfyui")
    deployment.with_(GpuAccess(request=GpuRequest(vram="8Gi"), profile=profile))
    # Patches apply to plain data. They set fields that this release of cdk8s-plus does not have.
    pod = "/spec/template/spec"
    ApiObject.of(deployment).add_json_patch(
        JsonPatch.add(f"{pod}/securityContext/seccompProfile", {"type": "RuntimeDefault"}),
        JsonPatch.add(f"{pod}/containers/0/securityContext/capabilities", {"drop": ["ALL"]}),
    )


def kubeflow(app: App, profile: GpuProfile) -> None:
    """Add a notebook, a training job, and an experiment that runs the same training."""
    chart = Chart(app, "kubeflow", namespace="kubeflow-user")
    pod = TrainingPod(image=PYTORCH, script=TRAIN, profile=profile, gpus=GpuRequest(vram="1Gi"))
    katib = {"katib.kubeflow.org/metrics-collector-injection": "enabled"}
    GpuNamespace(chart, "namespace", name="kubeflow-user", pod_security="baseline", labels=katib)
    notebook = GpuRequest(vram="4Gi", vram_typical="1Gi")
    KubeflowNotebook(chart, "notebook", pod=TrainingPod(profile=profile, gpus=notebook))
    PyTorchTraining(chart, "gpu-training-job", pod=pod)
    KatibExperiment(
        chart,
        "learning-rate",
        trial=replace(pod, args=["${trialParameters.rate}"]),
        objective_metric_name="loss",
        max_trial_count=3,
        max_failed_trial_count=1,
        parameters={"rate": KatibParameter.double(min=0.01, max=0.05)},
    )


def device_plugin(app: App, chart: Chart, profile: GpuProfile) -> GpuNamespace:
    """Install the plugin, with the namespace that the exporter shares."""
    namespace, runtime_class = GpuNamespace(chart, "namespace"), NvidiaRuntimeClass(chart, "runtime-class")
    DevicePluginChart(
        app,
        "nvidia-device-plugin",
        platform=profile.platform,
        namespace=namespace,
        runtime_class=runtime_class,
        version="0.18.2",
        tolerations=profile.tolerations,
        sharing=profile.sharing,
    )
    return namespace


def dcgm_metrics(chart: Chart, profile: GpuProfile, namespace: GpuNamespace) -> None:
    exporter = DcgmExporter(
        chart,
        "dcgm-exporter",
        platform=profile.platform,
        namespace=namespace,
        tolerations=profile.tolerations,
        sharing=profile.sharing,
        gpu_models=[BOARD],
    )
    GpuAlerts(chart, "gpu-alerts", exporter=exporter)


def power_limit(app: App, platform: Talos, namespace: str) -> PowerLimit:
    return PowerLimit(
        Chart(app, "nvidia-powerlimit"),
        "nvidia-powerlimit",
        platform=platform,
        namespace=namespace,
        watts=300,
        gpu_models=[RTX_3090],
    )


def smi_metrics(app: App, platform: Talos, limit: PowerLimit) -> None:
    """Export metrics without any privilege, and raise alerts that know the power limit."""
    chart = Chart(app, "gpu-monitoring")
    namespace = GpuNamespace(chart, "namespace", name="gpu-monitoring", pod_security="restricted")
    exporter = NvidiaGpuExporter(chart, "nvidia-gpu-exporter", platform=platform, namespace=namespace)
    GpuAlerts(chart, "gpu-alerts", exporter=exporter, power_limit=limit)


def smoke_test(app: App, profile: GpuProfile, namespace: str) -> None:
    """Run nine pods at once, of which eight find a slot."""
    chart = Chart(app, "gpu-test")
    CudaSmokeTest(chart, "gpu-test", slots=8, namespace=namespace, profile=profile, gpus=GpuRequest(vram="512Mi"))


def gpu_operator(app: App, profile: GpuProfile) -> None:
    """Let Flux install the operator, with the bridge that it needs until Talos 1.12."""
    chart = Chart(app, "gpu-operator")
    namespace = GpuNamespace(chart, "namespace")
    bridge = ValidationBridge(chart, "validation-bridge", platform=profile.platform, namespace=namespace)
    GpuOperator(
        chart,
        "gpu-operator",
        platform=profile.platform,
        version="25.10.1",
        delivery=Delivery.flux(),
        namespace=namespace,
        bridge=bridge,
        device_list_strategy="envvar",
        sharing=profile.sharing,
    )


def training_job(app: App, platform: Kubernetes) -> None:
    chart = Chart(app, "gpu-training-job", namespace="training")
    GpuNamespace(chart, "namespace", name="training", pod_security="restricted")
    GpuWorkload(
        chart,
        "gpu-training-job",
        kind="Job",
        image=PYTORCH,
        platform=platform,
        command=["python", "-c", TRAIN],
        env={"HOME": "/tmp"},
        volumes={"/tmp": Volume.empty_dir(size_limit="10Gi")},
        shared_memory="2Gi",
        run_as_user=1000,
        read_only_root_filesystem=True,
    )


def talos_rtx5070ti() -> App:
    """Return a cluster with an RTX 5070 Ti (16 GB) for five pods, a tainted node, and VictoriaMetrics."""
    app, platform = cluster("talos-rtx5070ti"), Talos("1.12.11")
    taint = Taint(key="dedicated", value="ai", effect="NoSchedule")
    sharing = Sharing.time_slicing(replicas=5)
    profile = GpuProfile(platform=platform, sharing=sharing, tolerations=[taint.toleration])
    TalosGpuNode(app, "gpu-node", platform=platform, gpu_architecture="blackwell", taints=[taint])
    chart = Chart(app, "gpu-cluster")
    namespace = device_plugin(app, chart, profile)
    dcgm_metrics(chart, profile, namespace)
    ollama(app, profile, GpuRequest(vram="8Gi", vram_typical="4Gi"))
    comfyui(app, profile)
    kubeflow(app, profile)
    # Flux and Ollama do not fit on the board together. The app accepts this, and the report shows it.
    CapacityPlan(app, GpuInventory(nodes=[GpuNode(name="k8s-worker4", gpu_model=BOARD)]), vram="off")
    return app


def talos_rtx3090() -> App:
    """Return a cluster with two RTX 3090, four slots each, a power limit, alerts, and a test with nine pods."""
    app, platform, namespace = cluster("talos-rtx3090"), Talos("1.10.9"), "gpu-device-plugin"
    profile = GpuProfile(platform=platform, sharing=Sharing.time_slicing(replicas=4))
    TalosGpuNode(app, "gpu-node", platform=platform, kernel_module_type="proprietary", default_runtime=True)
    DevicePluginChart(app, "nvidia-device-plugin", platform=platform, namespace=namespace, sharing=profile.sharing)
    smi_metrics(app, platform, power_limit(app, platform, namespace))
    smoke_test(app, profile, namespace)
    nodes = [GpuNode(name="gpu-node", gpu_model=RTX_3090, gpus=2)]
    CapacityPlan(app, GpuInventory(nodes=nodes), waiting="off")  # the ninth pod must wait
    return app


def talos_gpu_operator() -> App:
    """Return a cluster with the GPU Operator from Flux, the bridge for Talos 1.12, and a GPU shared by GiB."""
    app, platform = cluster("talos-gpu-operator"), Talos("1.12.11")
    profile = GpuProfile(platform=platform, sharing=Sharing.vram_units(vram=VRAM))
    TalosGpuNode(app, "gpu-node", platform=platform, gpu_architecture="blackwell", operator_validator=False)
    gpu_operator(app, profile)
    ollama(app, profile, GpuRequest(vram="7Gi"))
    comfyui_of_cdk8s_plus(app, profile)
    CapacityPlan(app, GpuInventory(nodes=[GpuNode(name="k8s-worker4", gpu_model=BOARD)]))
    return app


def kubernetes_basic() -> App:
    """Return a cluster whose nodes have driver and toolkit: the device plugin alone, and a training job."""
    app, platform = cluster("kubernetes-basic"), Kubernetes()
    DevicePluginChart(
        app,
        "nvidia-device-plugin",
        platform=platform,
        namespace="nvidia-device-plugin",
        fail_on_init_error=False,
        node_feature_discovery=False,
        gpu_feature_discovery=False,
    )
    training_job(app, platform)
    CapacityPlan(app, GpuInventory(nodes=[GpuNode(name="gpu-node")]))
    return app


synth(talos_rtx5070ti(), talos_rtx3090(), talos_gpu_operator(), kubernetes_basic())

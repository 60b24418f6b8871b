"""Four clusters, one App each: copy the one that is nearest to yours.

``uv run python app.py`` writes them to dist/, or to the folder that CDK8S_OUTDIR names.
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
    Ollama(
        chart,
        "ollama",
        profile=profile,
        gpus=gpus,
        gpu_memory=VRAM,
        models=["llama3.2:3b"],
        max_loaded_models=1,
    )


def comfyui(app: App, profile: GpuProfile) -> None:
    """Flux.1 takes 12 GiB while it draws, and nearly nothing before and after."""
    chart = Chart(app, "comfyui", namespace="comfyui")
    GpuNamespace(chart, "namespace", name="comfyui", pod_security="baseline")  # the image runs as root
    flux = GpuRequest(vram="12Gi", vram_typical="4Gi")
    ComfyUI(
        chart,
        "comfyui",
        image=COMFYUI,
        profile=profile,
        gpus=flux,
        gpu_memory=VRAM,
        args=["--disable-xformers"],
    )


def comfyui_of_cdk8s_plus(app: App, profile: GpuProfile) -> None:
    """The same, made with cdk8s-plus alone; the GPU is added to what is there."""
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
    # What this release of cdk8s-plus has no word for: patches of what was given a GPU take plain data.
    pod = "/spec/template/spec"
    ApiObject.of(deployment).add_json_patch(
        JsonPatch.add(f"{pod}/securityContext/seccompProfile", {"type": "RuntimeDefault"}),
        JsonPatch.add(f"{pod}/containers/0/securityContext/capabilities", {"drop": ["ALL"]}),
    )


def kubeflow(app: App, profile: GpuProfile) -> None:
    """One pod, as notebook, as training job and as the trial of an experiment."""
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


def talos_rtx5070ti() -> App:
    """One RTX 5070 Ti with 16 GB, shared by five; tainted for AI; metrics scraped by VictoriaMetrics."""
    app, platform = cluster("talos-rtx5070ti"), Talos("1.12.11")
    taint = Taint(key="dedicated", value="ai", effect="NoSchedule")
    taints = [taint.toleration]
    TalosGpuNode(app, "gpu-node", platform=platform, gpu_architecture="blackwell", taints=[taint])
    chart = Chart(app, "gpu-cluster")
    namespace, runtime_class = GpuNamespace(chart, "namespace"), NvidiaRuntimeClass(chart, "runtime-class")
    sharing = Sharing.time_slicing(replicas=5)
    DevicePluginChart(
        app,
        "nvidia-device-plugin",
        platform=platform,
        namespace=namespace,
        runtime_class=runtime_class,
        version="0.18.2",
        tolerations=taints,
        sharing=sharing,
    )
    exporter = DcgmExporter(
        chart,
        "dcgm-exporter",
        platform=platform,
        namespace=namespace,
        tolerations=taints,
        sharing=sharing,
        gpu_models=[BOARD],
    )
    GpuAlerts(chart, "gpu-alerts", exporter=exporter)
    profile = GpuProfile(platform=platform, sharing=sharing, tolerations=taints)
    ollama(app, profile, GpuRequest(vram="8Gi", vram_typical="4Gi"))
    comfyui(app, profile)
    kubeflow(app, profile)
    # Flux and Ollama at once are too much for the board: that is known here, and the report shows it.
    CapacityPlan(app, GpuInventory(nodes=[GpuNode(name="k8s-worker4", gpu_model=BOARD)]), vram="off")
    return app


def talos_rtx3090() -> App:
    """Two RTX 3090, four slots each, held at 300 W and watched; a smoke test that needs nine slots, finds eight."""
    app, platform, namespace = cluster("talos-rtx3090"), Talos("1.10.9"), "gpu-device-plugin"
    sharing = Sharing.time_slicing(replicas=4)
    TalosGpuNode(app, "gpu-node", platform=platform, kernel_module_type="proprietary", default_runtime=True)
    DevicePluginChart(app, "nvidia-device-plugin", platform=platform, namespace=namespace, sharing=sharing)
    limit = PowerLimit(
        Chart(app, "nvidia-powerlimit"),
        "nvidia-powerlimit",
        platform=platform,
        namespace=namespace,
        watts=300,
        gpu_models=["NVIDIA GeForce RTX 3090"],
    )
    chart = Chart(app, "gpu-monitoring")
    monitoring = GpuNamespace(chart, "namespace", name="gpu-monitoring", pod_security="restricted")
    exporter = NvidiaGpuExporter(chart, "nvidia-gpu-exporter", platform=platform, namespace=monitoring)
    GpuAlerts(chart, "gpu-alerts", exporter=exporter, power_limit=limit)
    CudaSmokeTest(
        Chart(app, "gpu-test"),
        "gpu-test",
        slots=8,
        namespace=namespace,
        profile=GpuProfile(platform=platform, sharing=sharing),
        gpus=GpuRequest(vram="512Mi"),
    )
    nodes = [GpuNode(name="gpu-node", gpu_model="NVIDIA GeForce RTX 3090", gpus=2)]
    CapacityPlan(app, GpuInventory(nodes=nodes), waiting="off")  # the ninth pod is to wait
    return app


def talos_gpu_operator() -> App:
    """The GPU Operator, installed by Flux, the bridge it needs until Talos 1.12, and a GPU handed out by the GiB."""
    app, platform = cluster("talos-gpu-operator"), Talos("1.12.11")
    TalosGpuNode(app, "gpu-node", platform=platform, gpu_architecture="blackwell", operator_validator=False)
    chart = Chart(app, "gpu-operator")
    namespace, sharing = GpuNamespace(chart, "namespace"), Sharing.vram_units(vram=VRAM)
    bridge = ValidationBridge(chart, "validation-bridge", platform=platform, namespace=namespace)
    GpuOperator(
        chart,
        "gpu-operator",
        platform=platform,
        version="25.10.1",
        delivery=Delivery.flux(),
        namespace=namespace,
        bridge=bridge,
        device_list_strategy="envvar",
        sharing=sharing,
    )
    profile = GpuProfile(platform=platform, sharing=sharing)
    ollama(app, profile, GpuRequest(vram="7Gi"))
    comfyui_of_cdk8s_plus(app, profile)
    CapacityPlan(app, GpuInventory(nodes=[GpuNode(name="k8s-worker4", gpu_model=BOARD)]))
    return app


def kubernetes_basic() -> App:
    """Any Kubernetes whose nodes have driver and toolkit: the plugin alone, and one training job."""
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
    CapacityPlan(app, GpuInventory(nodes=[GpuNode(name="gpu-node")]))
    return app


synth(talos_rtx5070ti(), talos_rtx3090(), talos_gpu_operator(), kubernetes_basic())

"""cdk8s constructs that turn a Kubernetes cluster into one that runs NVIDIA GPU workloads.

The six constructs come first; what they take and give lives in the modules named after it. Each name is
imported when it is first used, so that importing the package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gpu_constructs import _node

if TYPE_CHECKING:
    from gpu_constructs.admission.runtime_injection import GpuRuntimeInjection
    from gpu_constructs.admission.visible_devices import DenyVisibleDevicesOverride
    from gpu_constructs.capacity.planner import plan_capacity
    from gpu_constructs.capacity.recommendation import SharingRecommendation, recommend_sharing
    from gpu_constructs.capacity_plan import CapacityPlan
    from gpu_constructs.credentials import not_a_secret
    from gpu_constructs.device_plugin.chart import DevicePluginChart
    from gpu_constructs.device_plugin.config import Flags, GfdFlags, Imex, PluginConfig, PluginFlags
    from gpu_constructs.device_plugin.configs import Configs
    from gpu_constructs.device_plugin.daemonset import DevicePlugin
    from gpu_constructs.device_plugin.mps_control_daemon import MpsControlDaemon
    from gpu_constructs.errors import GpuConstructsError, GpuConstructsWarning, SynthesisError
    from gpu_constructs.external import External
    from gpu_constructs.feature_discovery.gfd import GpuFeatureDiscovery
    from gpu_constructs.feature_discovery.node_feature_discovery import NodeFeatureDiscovery
    from gpu_constructs.helm_values import HelmValues
    from gpu_constructs.inventory import GpuInventory, GpuNode
    from gpu_constructs.namespace import GpuNamespace
    from gpu_constructs.namespace_limits import ContainerLimits, NamespaceQuota
    from gpu_constructs.observability.alert_thresholds import AlertThresholds
    from gpu_constructs.observability.dcgm_exporter import DcgmExporter
    from gpu_constructs.observability.exporter_options import DebugDump, ExporterService, MetricsConfigMap
    from gpu_constructs.observability.gpu_alerts import GpuAlerts
    from gpu_constructs.observability.gpu_dashboard import GpuDashboard
    from gpu_constructs.observability.metrics import Metric
    from gpu_constructs.observability.nvidia_gpu_exporter import NvidiaGpuExporter
    from gpu_constructs.observability.pod_mapping import PodMapping
    from gpu_constructs.observability.scrape import Relabeling, Scrape
    from gpu_constructs.observability.web_config import BasicAuth, Tls
    from gpu_constructs.operator.delivery import Delivery
    from gpu_constructs.operator.gpu_operator import GpuOperator
    from gpu_constructs.operator.validation_bridge import ValidationBridge
    from gpu_constructs.placement import Toleration
    from gpu_constructs.platforms import Kubernetes, Talos
    from gpu_constructs.power.power_limit import PowerLimit
    from gpu_constructs.priority_classes import GpuPriorityClasses
    from gpu_constructs.recipes.comfyui import ComfyUI, ComfyUILayout
    from gpu_constructs.recipes.cuda_smoke_test import CudaSmokeTest
    from gpu_constructs.recipes.katib_experiment import KatibExperiment
    from gpu_constructs.recipes.katib_parameter import KatibParameter
    from gpu_constructs.recipes.kubeflow_notebook import KubeflowNotebook
    from gpu_constructs.recipes.ollama import Ollama
    from gpu_constructs.recipes.pytorch_training import PyTorchTraining
    from gpu_constructs.recipes.training_pod import TrainingPod
    from gpu_constructs.recipes.vllm import Vllm
    from gpu_constructs.rules.gpu_rules import GpuRules
    from gpu_constructs.runtime_class import NvidiaRuntimeClass
    from gpu_constructs.sharing import Sharing
    from gpu_constructs.synthesis import synth, synthesize
    from gpu_constructs.taint import Taint
    from gpu_constructs.talos.gpu_node import TalosGpuNode
    from gpu_constructs.talos.kernel_module import KernelModule
    from gpu_constructs.talos.schematic import TalosSchematic
    from gpu_constructs.update_strategy import UpdateStrategy
    from gpu_constructs.versions import Unverified
    from gpu_constructs.workload.backend import Backend
    from gpu_constructs.workload.claim_sharing import ClaimSharing
    from gpu_constructs.workload.container import Container
    from gpu_constructs.workload.env import EnvValue
    from gpu_constructs.workload.gpu_access import GpuAccess
    from gpu_constructs.workload.gpu_device_class import GpuDeviceClass
    from gpu_constructs.workload.gpu_profile import GpuProfile
    from gpu_constructs.workload.gpu_request import GpuRequest
    from gpu_constructs.workload.gpu_resource_claim import GpuResourceClaim
    from gpu_constructs.workload.probe import Probe
    from gpu_constructs.workload.scheduling import Scheduling
    from gpu_constructs.workload.strategy import Strategy
    from gpu_constructs.workload.volume import Volume
    from gpu_constructs.workload.volume_claim import VolumeClaim
    from gpu_constructs.workload.workload import GpuWorkload

__all__ = [  # noqa: RUF022
    "GpuNamespace",
    "NvidiaRuntimeClass",
    "DevicePluginChart",
    "ValidationBridge",
    "DcgmExporter",
    "GpuWorkload",
    # And what goes with them.
    "AlertThresholds",
    "Backend",
    "BasicAuth",
    "CapacityPlan",
    "ClaimSharing",
    "ComfyUI",
    "ComfyUILayout",
    "Configs",
    "Container",
    "ContainerLimits",
    "CudaSmokeTest",
    "DebugDump",
    "Delivery",
    "DenyVisibleDevicesOverride",
    "DevicePlugin",
    "EnvValue",
    "ExporterService",
    "External",
    "Flags",
    "GfdFlags",
    "GpuAccess",
    "GpuAlerts",
    "GpuConstructsError",
    "GpuConstructsWarning",
    "GpuDashboard",
    "GpuDeviceClass",
    "GpuFeatureDiscovery",
    "GpuInventory",
    "GpuNode",
    "GpuOperator",
    "GpuPriorityClasses",
    "GpuProfile",
    "GpuRequest",
    "GpuResourceClaim",
    "GpuRules",
    "GpuRuntimeInjection",
    "HelmValues",
    "Imex",
    "KatibExperiment",
    "KatibParameter",
    "KernelModule",
    "KubeflowNotebook",
    "Kubernetes",
    "Metric",
    "MetricsConfigMap",
    "MpsControlDaemon",
    "NamespaceQuota",
    "NodeFeatureDiscovery",
    "NvidiaGpuExporter",
    "Ollama",
    "PluginConfig",
    "PluginFlags",
    "PodMapping",
    "PowerLimit",
    "Probe",
    "PyTorchTraining",
    "Relabeling",
    "Scheduling",
    "Scrape",
    "Sharing",
    "SharingRecommendation",
    "Strategy",
    "SynthesisError",
    "Taint",
    "Talos",
    "TalosGpuNode",
    "TalosSchematic",
    "Tls",
    "Toleration",
    "TrainingPod",
    "Unverified",
    "UpdateStrategy",
    "Vllm",
    "Volume",
    "VolumeClaim",
    "not_a_secret",
    "plan_capacity",
    "recommend_sharing",
    "synth",
    "synthesize",
]

_HOMES = {
    "admission.runtime_injection": ("GpuRuntimeInjection",),
    "admission.visible_devices": ("DenyVisibleDevicesOverride",),
    "capacity.planner": ("plan_capacity",),
    "capacity.recommendation": ("SharingRecommendation", "recommend_sharing"),
    "capacity_plan": ("CapacityPlan",),
    "credentials": ("not_a_secret",),
    "device_plugin.chart": ("DevicePluginChart",),
    "device_plugin.config": ("Flags", "GfdFlags", "Imex", "PluginConfig", "PluginFlags"),
    "device_plugin.configs": ("Configs",),
    "device_plugin.daemonset": ("DevicePlugin",),
    "device_plugin.mps_control_daemon": ("MpsControlDaemon",),
    "errors": ("GpuConstructsError", "GpuConstructsWarning", "SynthesisError"),
    "external": ("External",),
    "feature_discovery.gfd": ("GpuFeatureDiscovery",),
    "feature_discovery.node_feature_discovery": ("NodeFeatureDiscovery",),
    "helm_values": ("HelmValues",),
    "inventory": ("GpuInventory", "GpuNode"),
    "namespace": ("GpuNamespace",),
    "namespace_limits": ("ContainerLimits", "NamespaceQuota"),
    "observability.alert_thresholds": ("AlertThresholds",),
    "observability.dcgm_exporter": ("DcgmExporter",),
    "observability.exporter_options": ("DebugDump", "ExporterService", "MetricsConfigMap"),
    "observability.gpu_alerts": ("GpuAlerts",),
    "observability.gpu_dashboard": ("GpuDashboard",),
    "observability.metrics": ("Metric",),
    "observability.nvidia_gpu_exporter": ("NvidiaGpuExporter",),
    "observability.pod_mapping": ("PodMapping",),
    "observability.scrape": ("Relabeling", "Scrape"),
    "observability.web_config": ("BasicAuth", "Tls"),
    "operator.delivery": ("Delivery",),
    "operator.gpu_operator": ("GpuOperator",),
    "operator.validation_bridge": ("ValidationBridge",),
    "placement": ("Toleration",),
    "platforms": ("Kubernetes", "Talos"),
    "power.power_limit": ("PowerLimit",),
    "priority_classes": ("GpuPriorityClasses",),
    "recipes.comfyui": ("ComfyUI", "ComfyUILayout"),
    "recipes.cuda_smoke_test": ("CudaSmokeTest",),
    "recipes.katib_experiment": ("KatibExperiment",),
    "recipes.katib_parameter": ("KatibParameter",),
    "recipes.kubeflow_notebook": ("KubeflowNotebook",),
    "recipes.ollama": ("Ollama",),
    "recipes.pytorch_training": ("PyTorchTraining",),
    "recipes.training_pod": ("TrainingPod",),
    "recipes.vllm": ("Vllm",),
    "rules.gpu_rules": ("GpuRules",),
    "runtime_class": ("NvidiaRuntimeClass",),
    "sharing": ("Sharing",),
    "synthesis": ("synth", "synthesize"),
    "taint": ("Taint",),
    "talos.gpu_node": ("TalosGpuNode",),
    "talos.kernel_module": ("KernelModule",),
    "talos.schematic": ("TalosSchematic",),
    "update_strategy": ("UpdateStrategy",),
    "versions": ("Unverified",),
    "workload.backend": ("Backend",),
    "workload.claim_sharing": ("ClaimSharing",),
    "workload.container": ("Container",),
    "workload.env": ("EnvValue",),
    "workload.gpu_access": ("GpuAccess",),
    "workload.gpu_device_class": ("GpuDeviceClass",),
    "workload.gpu_profile": ("GpuProfile",),
    "workload.gpu_request": ("GpuRequest",),
    "workload.gpu_resource_claim": ("GpuResourceClaim",),
    "workload.probe": ("Probe",),
    "workload.scheduling": ("Scheduling",),
    "workload.strategy": ("Strategy",),
    "workload.volume": ("Volume",),
    "workload.volume_claim": ("VolumeClaim",),
    "workload.workload": ("GpuWorkload",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

_node.use_node_from_wheel()


def __getattr__(name: str) -> Any:
    """Import the module that a public name lives in."""
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]

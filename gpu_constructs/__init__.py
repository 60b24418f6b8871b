"""cdk8s constructs that turn a Kubernetes cluster into one that runs NVIDIA GPU workloads.

The names of cdk8s that most apps need (``App``, ``Chart``) are here too. Import them from here: then it does not matter
which import comes first. Each name is imported when it is first used, so that importing the package costs nothing.
"""

from typing import TYPE_CHECKING

from gpu_constructs import _node

if TYPE_CHECKING:
    from cdk8s import ApiObject as ApiObject
    from cdk8s import App as App
    from cdk8s import Chart as Chart
    from cdk8s import Include as Include
    from cdk8s import JsonPatch as JsonPatch
    from cdk8s import Testing as Testing

    from gpu_constructs.admission.runtime_injection import GpuRuntimeInjection as GpuRuntimeInjection
    from gpu_constructs.admission.visible_devices import DenyVisibleDevicesOverride as DenyVisibleDevicesOverride
    from gpu_constructs.capacity.planner import plan_capacity as plan_capacity
    from gpu_constructs.capacity.recommendation import SharingRecommendation as SharingRecommendation
    from gpu_constructs.capacity.recommendation import recommend_sharing as recommend_sharing
    from gpu_constructs.capacity_plan import CapacityPlan as CapacityPlan
    from gpu_constructs.credentials import not_a_secret as not_a_secret
    from gpu_constructs.device_plugin.chart import DevicePluginChart as DevicePluginChart
    from gpu_constructs.device_plugin.config import Flags as Flags
    from gpu_constructs.device_plugin.config import GfdFlags as GfdFlags
    from gpu_constructs.device_plugin.config import Imex as Imex
    from gpu_constructs.device_plugin.config import PluginConfig as PluginConfig
    from gpu_constructs.device_plugin.config import PluginFlags as PluginFlags
    from gpu_constructs.device_plugin.configs import Configs as Configs
    from gpu_constructs.device_plugin.daemonset import DevicePlugin as DevicePlugin
    from gpu_constructs.device_plugin.mps_control_daemon import MpsControlDaemon as MpsControlDaemon
    from gpu_constructs.errors import GpuConstructsError as GpuConstructsError
    from gpu_constructs.errors import GpuConstructsWarning as GpuConstructsWarning
    from gpu_constructs.errors import SynthesisError as SynthesisError
    from gpu_constructs.external import External as External
    from gpu_constructs.feature_discovery.gfd import GpuFeatureDiscovery as GpuFeatureDiscovery
    from gpu_constructs.feature_discovery.node_feature_discovery import NodeFeatureDiscovery as NodeFeatureDiscovery
    from gpu_constructs.helm_values import HelmValues as HelmValues
    from gpu_constructs.inventory import GpuInventory as GpuInventory
    from gpu_constructs.inventory import GpuNode as GpuNode
    from gpu_constructs.namespace import GpuNamespace as GpuNamespace
    from gpu_constructs.namespace_limits import ContainerLimits as ContainerLimits
    from gpu_constructs.namespace_limits import NamespaceQuota as NamespaceQuota
    from gpu_constructs.observability.alert_thresholds import AlertThresholds as AlertThresholds
    from gpu_constructs.observability.dcgm_exporter import DcgmExporter as DcgmExporter
    from gpu_constructs.observability.exporter_options import DebugDump as DebugDump
    from gpu_constructs.observability.exporter_options import ExporterService as ExporterService
    from gpu_constructs.observability.exporter_options import MetricsConfigMap as MetricsConfigMap
    from gpu_constructs.observability.gpu_alerts import GpuAlerts as GpuAlerts
    from gpu_constructs.observability.gpu_dashboard import GpuDashboard as GpuDashboard
    from gpu_constructs.observability.metrics import Metric as Metric
    from gpu_constructs.observability.nvidia_gpu_exporter import NvidiaGpuExporter as NvidiaGpuExporter
    from gpu_constructs.observability.pod_mapping import PodMapping as PodMapping
    from gpu_constructs.observability.scrape import Relabeling as Relabeling
    from gpu_constructs.observability.scrape import Scrape as Scrape
    from gpu_constructs.observability.web_config import BasicAuth as BasicAuth
    from gpu_constructs.observability.web_config import Tls as Tls
    from gpu_constructs.operator.delivery import Delivery as Delivery
    from gpu_constructs.operator.gpu_operator import GpuOperator as GpuOperator
    from gpu_constructs.operator.validation_bridge import ValidationBridge as ValidationBridge
    from gpu_constructs.placement import Toleration as Toleration
    from gpu_constructs.platforms import Kubernetes as Kubernetes
    from gpu_constructs.platforms import Talos as Talos
    from gpu_constructs.power.power_limit import PowerLimit as PowerLimit
    from gpu_constructs.priority_classes import GpuPriorityClasses as GpuPriorityClasses
    from gpu_constructs.recipes.comfyui import ComfyUI as ComfyUI
    from gpu_constructs.recipes.comfyui import ComfyUILayout as ComfyUILayout
    from gpu_constructs.recipes.cuda_smoke_test import CudaSmokeTest as CudaSmokeTest
    from gpu_constructs.recipes.katib_experiment import KatibExperiment as KatibExperiment
    from gpu_constructs.recipes.katib_parameter import KatibParameter as KatibParameter
    from gpu_constructs.recipes.kubeflow_notebook import KubeflowNotebook as KubeflowNotebook
    from gpu_constructs.recipes.ollama import Ollama as Ollama
    from gpu_constructs.recipes.pytorch_training import PyTorchTraining as PyTorchTraining
    from gpu_constructs.recipes.training_pod import TrainingPod as TrainingPod
    from gpu_constructs.recipes.vllm import Vllm as Vllm
    from gpu_constructs.rules.gpu_rules import GpuRules as GpuRules
    from gpu_constructs.runtime_class import NvidiaRuntimeClass as NvidiaRuntimeClass
    from gpu_constructs.sharing import Sharing as Sharing
    from gpu_constructs.synthesis import synth as synth
    from gpu_constructs.synthesis import synthesize as synthesize
    from gpu_constructs.taint import Taint as Taint
    from gpu_constructs.talos.gpu_node import TalosGpuNode as TalosGpuNode
    from gpu_constructs.talos.kernel_module import KernelModule as KernelModule
    from gpu_constructs.talos.schematic import TalosSchematic as TalosSchematic
    from gpu_constructs.update_strategy import UpdateStrategy as UpdateStrategy
    from gpu_constructs.versions import Unverified as Unverified
    from gpu_constructs.workload.backend import Backend as Backend
    from gpu_constructs.workload.claim_sharing import ClaimSharing as ClaimSharing
    from gpu_constructs.workload.container import Container as Container
    from gpu_constructs.workload.env import EnvValue as EnvValue
    from gpu_constructs.workload.gpu_access import GpuAccess as GpuAccess
    from gpu_constructs.workload.gpu_device_class import GpuDeviceClass as GpuDeviceClass
    from gpu_constructs.workload.gpu_profile import GpuProfile as GpuProfile
    from gpu_constructs.workload.gpu_request import GpuRequest as GpuRequest
    from gpu_constructs.workload.gpu_resource_claim import GpuResourceClaim as GpuResourceClaim
    from gpu_constructs.workload.probe import Probe as Probe
    from gpu_constructs.workload.scheduling import Scheduling as Scheduling
    from gpu_constructs.workload.strategy import Strategy as Strategy
    from gpu_constructs.workload.volume import Volume as Volume
    from gpu_constructs.workload.volume_claim import VolumeClaim as VolumeClaim
    from gpu_constructs.workload.workload import GpuWorkload as GpuWorkload

    __version__: str
else:
    # Type checkers do not read this part: a module with a ``__getattr__`` has every name for them.
    from importlib import import_module

    from gpu_constructs._garbage import collected_rarely

    # The six constructs come first.
    _HOMES = {
        ".namespace": ("GpuNamespace",),
        ".runtime_class": ("NvidiaRuntimeClass",),
        ".device_plugin.chart": ("DevicePluginChart",),
        ".operator.validation_bridge": ("ValidationBridge",),
        ".observability.dcgm_exporter": ("DcgmExporter",),
        ".workload.workload": ("GpuWorkload",),
        ".admission.runtime_injection": ("GpuRuntimeInjection",),
        ".admission.visible_devices": ("DenyVisibleDevicesOverride",),
        ".capacity.planner": ("plan_capacity",),
        ".capacity.recommendation": ("SharingRecommendation", "recommend_sharing"),
        ".capacity_plan": ("CapacityPlan",),
        ".credentials": ("not_a_secret",),
        ".device_plugin.config": ("Flags", "GfdFlags", "Imex", "PluginConfig", "PluginFlags"),
        ".device_plugin.configs": ("Configs",),
        ".device_plugin.daemonset": ("DevicePlugin",),
        ".device_plugin.mps_control_daemon": ("MpsControlDaemon",),
        ".errors": ("GpuConstructsError", "GpuConstructsWarning", "SynthesisError"),
        ".external": ("External",),
        ".feature_discovery.gfd": ("GpuFeatureDiscovery",),
        ".feature_discovery.node_feature_discovery": ("NodeFeatureDiscovery",),
        ".helm_values": ("HelmValues",),
        ".inventory": ("GpuInventory", "GpuNode"),
        ".namespace_limits": ("ContainerLimits", "NamespaceQuota"),
        ".observability.alert_thresholds": ("AlertThresholds",),
        ".observability.exporter_options": ("DebugDump", "ExporterService", "MetricsConfigMap"),
        ".observability.gpu_alerts": ("GpuAlerts",),
        ".observability.gpu_dashboard": ("GpuDashboard",),
        ".observability.metrics": ("Metric",),
        ".observability.nvidia_gpu_exporter": ("NvidiaGpuExporter",),
        ".observability.pod_mapping": ("PodMapping",),
        ".observability.scrape": ("Relabeling", "Scrape"),
        ".observability.web_config": ("BasicAuth", "Tls"),
        ".operator.delivery": ("Delivery",),
        ".operator.gpu_operator": ("GpuOperator",),
        ".placement": ("Toleration",),
        ".platforms": ("Kubernetes", "Talos"),
        ".power.power_limit": ("PowerLimit",),
        ".priority_classes": ("GpuPriorityClasses",),
        ".recipes.comfyui": ("ComfyUI", "ComfyUILayout"),
        ".recipes.cuda_smoke_test": ("CudaSmokeTest",),
        ".recipes.katib_experiment": ("KatibExperiment",),
        ".recipes.katib_parameter": ("KatibParameter",),
        ".recipes.kubeflow_notebook": ("KubeflowNotebook",),
        ".recipes.ollama": ("Ollama",),
        ".recipes.pytorch_training": ("PyTorchTraining",),
        ".recipes.training_pod": ("TrainingPod",),
        ".recipes.vllm": ("Vllm",),
        ".rules.gpu_rules": ("GpuRules",),
        ".sharing": ("Sharing",),
        ".synthesis": ("synth", "synthesize"),
        ".taint": ("Taint",),
        ".talos.gpu_node": ("TalosGpuNode",),
        ".talos.kernel_module": ("KernelModule",),
        ".talos.schematic": ("TalosSchematic",),
        ".update_strategy": ("UpdateStrategy",),
        ".versions": ("Unverified",),
        ".workload.backend": ("Backend",),
        ".workload.claim_sharing": ("ClaimSharing",),
        ".workload.container": ("Container",),
        ".workload.env": ("EnvValue",),
        ".workload.gpu_access": ("GpuAccess",),
        ".workload.gpu_device_class": ("GpuDeviceClass",),
        ".workload.gpu_profile": ("GpuProfile",),
        ".workload.gpu_request": ("GpuRequest",),
        ".workload.gpu_resource_claim": ("GpuResourceClaim",),
        ".workload.probe": ("Probe",),
        ".workload.scheduling": ("Scheduling",),
        ".workload.strategy": ("Strategy",),
        ".workload.volume": ("Volume",),
        ".workload.volume_claim": ("VolumeClaim",),
        "cdk8s": ("ApiObject", "App", "Chart", "Include", "JsonPatch", "Testing"),
    }
    _HOME_OF = {name: module for module, names in _HOMES.items() for name in names}
    __all__ = list(_HOME_OF)

    def __getattr__(name: str) -> object:
        """Import the module that a public name lives in."""
        if name == "__version__":
            from gpu_constructs._version import version

            return version()
        if name not in _HOME_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            with collected_rarely():
                globals()[name] = getattr(import_module(_HOME_OF[name], __name__), name)
        except _node.NodeMissing as error:
            raise error.with_traceback(None) from None
        return globals()[name]

    def __dir__() -> list[str]:
        return [*globals(), *__all__, "__version__"]


_node.use_node_from_wheel()

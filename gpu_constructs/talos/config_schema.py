"""What the machine configuration of each Talos release may hold: kinds of documents, keys, and who took over which.

Facts of siderolabs/talos@v1.10.9, v1.11.6, v1.12.11, v1.13.9, v1.14.0-rc.1:pkg/machinery/config/types, which knows a
little more than the JSON schemas beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gpu_constructs.platforms import Talos

_NEW_KINDS: Mapping[str, Sequence[str]] = {
    "1.10": (
        "EthernetConfig EventSinkConfig ExtensionServiceConfig KmsgLogConfig KubeSpanEndpointsConfig "
        "NetworkDefaultActionConfig NetworkRuleConfig PCIDriverRebindConfig SideroLinkConfig TrustedRootsConfig "
        "UserVolumeConfig VolumeConfig WatchdogTimerConfig"
    ).split(),
    "1.11": "ExistingVolumeConfig RawVolumeConfig SwapVolumeConfig ZswapConfig".split(),
    "1.12": (
        "BondConfig BridgeConfig DHCPv4Config DHCPv6Config DummyLinkConfig HCloudVIPConfig HostnameConfig "
        "Layer2VIPConfig LinkAliasConfig LinkConfig OOMConfig RegistryAuthConfig RegistryMirrorConfig "
        "RegistryTLSConfig ResolverConfig StaticHostConfig TimeSyncConfig VLANConfig WireguardConfig"
    ).split(),
    "1.13": (
        "BlackholeRouteConfig EnvironmentConfig ExternalVolumeConfig ImageVerificationConfig KubeSpanConfig "
        "RoutingRuleConfig TCPProbeConfig VRFConfig"
    ).split(),
    "1.14": (
        "BGPInstanceConfig CRIBaseRuntimeSpecConfig CRICustomizationConfig ContainerConfig DiscoveryIdentityConfig "
        "DiscoveryServiceConfig EtcFileConfig FilesystemScrubConfig FilesystemTrimConfig HTTPProbeConfig "
        "ImageCacheConfig KernelModuleConfig KubeAPIServerCAConfig KubeAPIServerConfig KubeAdmissionControlConfig "
        "KubeAggregatorCAConfig KubeAuditPolicyConfig KubeAuthenticationConfig KubeAuthorizerConfig KubeClusterConfig "
        "KubeControllerManagerConfig KubeCoreDNSConfig KubeCredentialProviderConfig KubeEtcdEncryptionConfig "
        "KubeExternalManifestConfig KubeFlannelCNIConfig KubeInlineManifestConfig KubeNetworkConfig KubeNodeConfig "
        "KubePrismConfig KubeProxyConfig KubeSchedulerConfig KubeServiceAccountConfig KubeStaticPodConfig "
        "KubeTalosAPIAccessConfig KubeletConfig LVMLogicalVolumeConfig LVMVolumeGroupConfig RAIDArrayConfig "
        "SecurityProfileConfig SysctlConfig SysfsConfig UdevRulesConfig UnattendedInstallConfig VethConfig"
    ).split(),
}
FIRST_LINE_OF: Mapping[str, str] = {kind: line for line, kinds in _NEW_KINDS.items() for kind in kinds}
"""The release line that brought a kind of document; none was given up since."""


def document_kinds(platform: Talos) -> list[str]:
    """Give the kinds of documents that a platform reads."""
    lines = list(_NEW_KINDS)
    return [kind for kind, first in FIRST_LINE_OF.items() if lines.index(first) <= lines.index(platform.line)]


MOVED: Mapping[str, Mapping[str, str]] = {
    "machine": {
        "baseRuntimeSpecOverrides": "CRIBaseRuntimeSpecConfig",
        "controlPlane": "KubeControllerManagerConfig and KubeSchedulerConfig",
        "disks": "UserVolumeConfig",
        "env": "EnvironmentConfig",
        "files": "CRICustomizationConfig and EtcFileConfig",
        "install": "UnattendedInstallConfig",
        "kernel": "KernelModuleConfig",
        "kubelet": "KubeletConfig",
        "network": "HostnameConfig, LinkConfig and the others of the network",
        "nodeAnnotations": "KubeNodeConfig",
        "nodeLabels": "KubeNodeConfig",
        "nodeTaints": "KubeNodeConfig",
        "pods": "KubeStaticPodConfig",
        "registries": "RegistryMirrorConfig, RegistryAuthConfig and RegistryTLSConfig",
        "sysctls": "SysctlConfig",
        "sysfs": "SysfsConfig",
        "systemDiskEncryption": "VolumeConfig",
        "time": "TimeSyncConfig",
        "udev": "UdevRulesConfig",
    },
    "cluster": {
        "acceptedCAs": "KubeAPIServerCAConfig",
        "aescbcEncryptionSecret": "KubeEtcdEncryptionConfig",
        "aggregatorCA": "KubeAggregatorCAConfig",
        "allowSchedulingOnControlPlanes": "KubeNodeConfig",
        "allowSchedulingOnMasters": "KubeNodeConfig",
        "apiServer": "KubeAPIServerConfig",
        "ca": "KubeAPIServerCAConfig",
        "clusterName": "KubeClusterConfig",
        "controlPlane": "KubeClusterConfig",
        "controllerManager": "KubeControllerManagerConfig",
        "coreDNS": "KubeCoreDNSConfig",
        "discovery": "DiscoveryServiceConfig",
        "extraManifestHeaders": "KubeExternalManifestConfig",
        "extraManifests": "KubeExternalManifestConfig",
        "id": "DiscoveryIdentityConfig",
        "inlineManifests": "KubeInlineManifestConfig",
        "network": "KubeNetworkConfig and KubeFlannelCNIConfig",
        "proxy": "KubeProxyConfig",
        "scheduler": "KubeSchedulerConfig",
        "secret": "DiscoveryIdentityConfig",
        "secretboxEncryptionSecret": "KubeEtcdEncryptionConfig",
        "serviceAccount": "KubeServiceAccountConfig",
    },
}
"""What the document without a kind gave to others in Talos 1.14."""

CONFIG_KEYS: Mapping[str, Sequence[str]] = {
    "": ("version", "debug", "persist", "machine", "cluster"),
    "machine": (*"acceptedCAs ca certSANs features logging seccompProfiles token type".split(), *MOVED["machine"]),
    "machine.install": (
        "bootloader disk diskSelector extensions extraKernelArgs grubUseUKICmdline image legacyBIOSSupport wipe"
    ).split(),
    "machine.kernel": ("modules",),
    "machine.kubelet": (
        "clusterDNS credentialProviderConfig defaultRuntimeSeccompProfileEnabled disableManifestsDirectory "
        "extraArgs extraConfig extraMounts image nodeIP registerWithFQDN skipNodeRegistration"
    ).split(),
    "cluster": (*"adminKubeconfig etcd externalCloudProvider token".split(), *MOVED["cluster"]),
}
"""What the document without a kind holds until Talos 1.13, at the levels where a GPU node's configuration lies."""

_META = ("apiVersion", "kind")
DOCUMENT_KEYS: Mapping[str, Sequence[str]] = {
    "CRICustomizationConfig": (*_META, "name", "content"),
    "KernelModuleConfig": (*_META, "name", "parameters"),
    "KubeNodeConfig": (
        *(*_META, "annotations", "labels", "nodeIP"),
        *("registerWithFQDN", "skipNodeRegistration", "taints"),
    ),
    "KubeletConfig": (
        *(*_META, "clusterDNS", "config", "defaultRuntimeSeccompProfileEnabled"),
        *("extraArgs", "image"),
    ),
    "SysctlConfig": (*_META, "params"),
}
"""The documents of Talos 1.14 that took over from the levels above."""

TEXT_MAPS: Mapping[str | None, Sequence[str]] = {
    None: tuple(f"machine.{name}" for name in ("nodeAnnotations", "nodeLabels", "nodeTaints", "sysctls", "sysfs")),
    "KubeNodeConfig": ("annotations", "labels", "taints"),
    "SysctlConfig": ("params",),
}
"""Mappings whose values are text, by kind."""

WORDS: Mapping[str, Sequence[str]] = {
    "op": ("create", "append", "overwrite"),
    "type": ("worker", "controlplane"),
    "version": ("v1alpha1",),
}
_TYPES: Mapping[str, tuple[Callable[[Any], bool], Sequence[str]]] = {
    "true or false": (
        lambda got: isinstance(got, bool),
        (
            *("bootloader", "debug", "defaultRuntimeSeccompProfileEnabled", "disableManifestsDirectory"),
            *("grubUseUKICmdline", "legacyBIOSSupport", "persist", "registerWithFQDN", "skipNodeRegistration", "wipe"),
        ),
    ),
    "text": (lambda got: isinstance(got, str), ("content", "disk", "image", "path", "token")),
    "a whole number": (lambda got: isinstance(got, int) and not isinstance(got, bool), ("permissions",)),
    "a list": (lambda got: isinstance(got, list), ("extraMounts", "pods", "seccompProfiles")),
    "a list of texts": (
        lambda got: isinstance(got, list) and all(isinstance(item, str) for item in got),
        ("certSANs", "clusterDNS", "extraKernelArgs", "parameters"),
    ),
    "a mapping": (
        lambda got: isinstance(got, Mapping),
        ("baseRuntimeSpecOverrides", "ca", "config", "credentialProviderConfig", "env", "extraArgs"),
    ),
}
TYPE_OF = {key: (what, is_it) for what, (is_it, keys) in _TYPES.items() for key in keys}
"""By key, at any of the levels and in any of the documents above; what is missing is checked where it is read."""

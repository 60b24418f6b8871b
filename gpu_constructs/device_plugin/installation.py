"""One installation of the device plugin: what its user wants, checked, its objects, and what it gives the cluster."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from gpu_constructs.catalog import versions
from gpu_constructs.catalog.platforms import Platform
from gpu_constructs.catalog.sharing import Sharing
from gpu_constructs.device_plugin.agent import DiscoveredBy, Installation
from gpu_constructs.device_plugin.config import Flags, PluginConfig, PluginFlags, device_list_strategies
from gpu_constructs.device_plugin.configs import (
    NODE_LABEL,
    Configs,
    advertised_resources,
    gpu_offers,
    plugin_configs,
    plugin_pods,
)
from gpu_constructs.device_plugin.delivery import CHECKSUM, DEFAULT_MPS_ROOT, deliveries
from gpu_constructs.device_plugin.manifests import GFD_LABELS, Manifests, gpu_manifests
from gpu_constructs.device_plugin.options import Component as ProgramOptions
from gpu_constructs.errors import warn
from gpu_constructs.facts.provided import Component, Provided, placement_of
from gpu_constructs.feature_discovery import manifests as nfd
from gpu_constructs.kube import fields, kinds, placement

_LONGEST_NAME = 63
_RDMA = ("gds_enabled", "gdrcopy_enabled", "mofed_enabled")

_NFD = "node-feature-discovery"
_HOMES = {"device_list_strategy": "flags.plugin.device_list_strategy", "sharing": "sharing"}


def configs_of(given: PluginConfig | Configs | None, shorthand: Mapping[str, Any]) -> Configs:
    """Return the configurations that the keywords of the chart say.

    Args:
        given: Keyword ``config``.
        shorthand: The keywords that say parts of it.

    Raises:
        GpuConstructsError: A setting has two places.
    """
    if given is None:
        flags = Flags(mig_strategy=shorthand["mig_strategy"] or "none")
        given = PluginConfig(flags=flags, sharing=shorthand["sharing"] or Sharing.none())
    else:
        fields.refuse_first(
            (
                value is not None,
                f"{keyword} must be left out beside config, got {value!r}: a setting has one place; set "
                f"{_HOMES.get(keyword, f'flags.{keyword}')} in config",
            )
            for keyword, value in shorthand.items()
        )
    return Configs.named({"default": given}, default="default") if isinstance(given, PluginConfig) else given


def defaults_of(shorthand: Mapping[str, Any], platform: Platform, mps_root: str) -> Flags:
    """Return the settings for configurations that do not state them.

    Args:
        shorthand: Keywords of the chart that say parts of a configuration.
        platform: Platform of the nodes.
        mps_root: Directory of the MPS control daemon on the node.

    Raises:
        GpuConstructsError: The keyword names no device list strategy, or one twice.
    """
    given, strategies = shorthand["device_list_strategy"], platform.device_list_strategy
    if given is not None:
        strategies = device_list_strategies("device_list_strategy", given)
    return Flags(
        device_discovery_strategy=shorthand["device_discovery_strategy"] or platform.device_discovery_strategy,
        fail_on_init_error=shorthand["fail_on_init_error"],
        mps_root=mps_root,
        plugin=PluginFlags(device_list_strategy=strategies or None),
    )


def chosen(given: Any, struct: Any) -> Any:
    """Return the options of a part that is installed, or None if it is not: True says the defaults."""
    return struct() if given is True else given if isinstance(given, struct) else None


def discovered_by(given: object) -> DiscoveredBy:
    """Return who runs Node Feature Discovery."""
    return "external" if given == "external" else "none" if given is False else "chart"


def check(given: Installation) -> None:
    """Check what several options together can get wrong, and warn of what works badly.

    Raises:
        GpuConstructsError: Options that are not allowed together.
    """
    fields.label_value("id", given.id)
    fields.dns_subdomain("name", given.name)
    fields.label_value("instance", given.instance)
    fields.refuse_first(_conflicts(given))
    if given.plugin is None and given.labeler is None:
        warn(f"{given.id}: device_plugin and gpu_feature_discovery are both False: nothing looks at a GPU")
    if given.plugin is not None:
        given.plugin.check_release(given.release)
    has_plugin = given.plugin is not None
    check_programs(
        given.configs,
        given.defaults,
        release=given.release,
        has_plugin=has_plugin,
        has_labeler=given.labeler is not None,
    )
    if given.configs.delivery != "daemonsets":
        warn(
            f"{given.id}: config-manager takes the default configuration first and corrects it by a signal afterwards, "
            "so a node may advertise nothing until its plugin pod is restarted (NVIDIA/k8s-device-plugin#1645); "
            "Configs.named has no such race"
        )
    if has_plugin:
        _warn_of_the_plugin(given)


def check_programs(
    configs: Configs, defaults: Flags, *, release: versions.DevicePluginRelease, has_plugin: bool, has_labeler: bool
) -> None:
    """Check that the installed programs can serve the configurations.

    Raises:
        GpuConstructsError: A setting that came with a later release, or that a program which is installed
            would refuse or ignore.
    """
    for config in plugin_configs(configs):
        config.check_release(release)
        fields.refuse_first(_of_the_plugin(config.flags, defaults) if has_plugin else ())
        fields.refuse_first(_of_gpu_feature_discovery(config.flags) if has_labeler else ())


def _conflicts(given: Installation) -> Iterable[fields.Conflict]:
    denies = given.discovery is not None and given.discovery.denies_features_of_others
    strategy = given.pods.get("update_strategy")
    surge = getattr(strategy, "max_surge", None)
    return [
        (
            given.labeler is not None and given.discovered_by == "none",
            "gpu_feature_discovery publishes through Node Feature Discovery, which is False; leave "
            "node_feature_discovery out to install it, pass node_feature_discovery='external' if the cluster runs "
            "one, or pass gpu_feature_discovery=False",
        ),
        (
            given.labeler is not None and denies,
            "node_feature_discovery.master.config.restrictions.denyNodeFeatureLabels must not be True beside "
            "gpu_feature_discovery, whose labels the master would drop silently; leave it out",
        ),
        (
            surge not in (None, 0, "0%"),
            "update_strategy must not surge: two plugins on a node would share one socket, which the old one "
            f"removes when it ends; got max_surge={surge!r}; use max_unavailable",
        ),
        *(
            (key.endswith(CHECKSUM), f"pod_annotations must not hold {key!r}: this library sets it; leave it out")
            for key in given.pods.get("pod_annotations") or ()
        ),
    ]


def warn_of_mps(configs: Configs, *, id: str, platform: Platform) -> None:
    """Warn of sharing by MPS on a platform where it is reported not to start."""
    shared_by = {config.sharing.strategy for config in plugin_configs(configs)}
    if "mps" in shared_by | set(configs.may_use) and platform.mps_is_doubtful:
        warn(
            f"{id}: MPS is reported not to start on {platform} (NVIDIA/k8s-device-plugin#1614); try it on one node, or "
            "use Sharing.time_slicing"
        )


def _warn_of_the_plugin(given: Installation) -> None:
    configs, version = plugin_configs(given.configs), given.release.version
    warn_of_mps(given.configs, id=given.id, platform=given.platform)
    of_chart = given.defaults.plugin.device_list_strategy or ()
    if any({"envvar", "volume-mounts"} <= {*(config.device_list_strategy or of_chart)} for config in configs):
        warn(f"{given.id}: device_list_strategy 'volume-mounts' overwrites what 'envvar' says; leave one of them out")
    rdma = [getattr(config.flags, name) for config in configs for name in _RDMA]
    if version in versions.RDMA_ON_BY_DEFAULT and None in rdma:
        warn(
            f"{given.id}: release {version} of the device plugin hands GDS, GDRCopy and MOFED devices to every "
            "container unless told not to (NVIDIA/k8s-device-plugin#1692); state flags.gds_enabled, "
            "flags.gdrcopy_enabled and flags.mofed_enabled, or use another release"
        )


def _of_the_plugin(flags: Flags, defaults: Flags) -> Iterable[fields.Conflict]:
    return [
        (
            flags.device_discovery_strategy == "vfio",
            "flags.device_discovery_strategy 'vfio' is for GPU Feature Discovery alone, the plugin refuses it; use "
            "'nvml' or pass device_plugin=False",
        ),
        (
            flags.mps_root not in (None, defaults.mps_root) and defaults.mps_root != DEFAULT_MPS_ROOT,
            f"mps_control_daemon.root must be flags.mps_root of the configuration, {flags.mps_root!r}; got "
            f"{defaults.mps_root!r}; say it in one place",
        ),
    ]


def _of_gpu_feature_discovery(flags: Flags) -> Iterable[fields.Conflict]:
    return [
        (
            flags.use_node_feature_api is False,
            "flags.use_node_feature_api must not be False: GPU Feature Discovery has no directory of the node to write "
            "to here, it publishes a NodeFeature; leave it out",
        ),
        (
            flags.gfd.output_file is not None,
            "flags.gfd.output_file would be ignored: GPU Feature Discovery publishes a NodeFeature instead of a file; "
            f"got {flags.gfd.output_file!r}; leave it out",
        ),
        (
            flags.gfd.oneshot,
            "flags.gfd.oneshot must not be True: a DaemonSet restarts a program that ends, forever; use "
            "sleep_interval='infinite' (from release 0.19.0) or leave it out",
        ),
    ]


def manifests_of(given: Installation) -> Manifests:
    """Return all objects by construct path, but for namespaces and the runtime class.

    Raises:
        GpuConstructsError: An option that does not fit the others.
    """
    served = deliveries(given.configs, name=given.name, platform=given.platform, defaults=given.defaults)
    given.affinity()
    given.pods_of(ProgramOptions())
    made = gpu_manifests(given, served)
    if given.discovery is not None:
        objects = nfd.node_feature_discovery(
            given.discovery,
            release=given.release.node_feature_discovery,
            namespace=given.namespace,
            default_prefix=f"{given.name}-{_NFD}",
            instance=given.instance,
            tolerations=placement.tolerations((placement.GPU_TAINT,), given.pods.get("tolerations", ())),
        )
        made |= {f"{_NFD}/{child}": manifest for child, manifest in objects.items()}
    _check_names(list(made.values()))
    return made


def _check_names(manifests: Sequence[Mapping[str, Any]]) -> None:
    """Check that labels of pods can hold the names of their objects, and that no two objects have one name.

    Raises:
        GpuConstructsError: A workload's name is longer than a label's value, or a configuration is called like a
            program.
    """
    made = [(m["kind"], m["metadata"].get("namespace"), m["metadata"]["name"]) for m in manifests]
    fields.refuse_first(
        (
            made.count((kind, namespace, name)) > 1,
            f"configs must have names that no program has: {kind} {name!r} would be made twice; call the "
            "configuration something else",
        )
        for kind, namespace, name in made
    )
    fields.refuse_first(
        (
            len(name) > _LONGEST_NAME,
            f"name must be shorter: {kind} {name!r} would have {len(name)} characters of "
            f"at most {_LONGEST_NAME}; shorten name= or the names of the configurations",
        )
        for kind, name in (_longest_name(manifest) for manifest in manifests)
        if kind in ("DaemonSet", "Deployment")
    )


def _longest_name(manifest: Mapping[str, Any]) -> tuple[str, str]:
    """Return the kind of an object and its name, or a longer label, which a configuration's name stands behind too."""
    metadata = manifest["metadata"]
    return manifest["kind"], max([metadata["name"], *metadata.get("labels", {}).values()], key=len)


def provided(given: Installation, manifests: Manifests, made: Collection[tuple[str, str, str, str]]) -> Provided:
    """Return what the installation gives the cluster.

    Args:
        given: The installation.
        manifests: Its objects.
        made: Objects of the chart beside the manifests.
    """
    has_plugin, configs = given.plugin is not None, given.configs
    installed: Mapping[Component, object] = {
        "device-plugin": given.plugin,
        "gpu-feature-discovery": given.labeler,
        "node-feature-discovery": given.discovery,
    }
    return Provided(
        node_labels=_published_labels(given),
        nfd_labels=None if given.discovery is None else nfd.published_labels(given.discovery),
        gpu_resources=advertised_resources(configs) if has_plugin else {},
        gpu_offers=gpu_offers(configs, plugin_pods(configs, manifests), given.release) if has_plugin else (),
        objects={"ConfigMap": (f"{given.namespace}/{configs.config_map}",)} if configs.config_map else {},
        mig_strategy=configs.flags.mig_strategy if has_plugin else None,
        platform=given.platform,
        # The nodes of the pods that look at GPUs: all DaemonSets but those of Node Feature Discovery.
        runs_on=tuple(
            placement_of(manifest["spec"]["template"]["spec"])
            for path, manifest in manifests.items()
            if manifest["kind"] == "DaemonSet" and not path.startswith(f"{_NFD}/")
        ),
        makes=frozenset([*map(kinds.identity_of, manifests.values()), *made]),
        components=tuple(component for component, options in installed.items() if options is not None),
    )


def _published_labels(given: Installation) -> tuple[str, ...]:
    hardware = (nfd.LABELS, placement.GPU_PRESENT) if given.discovered_by == "external" else ()
    selected = (NODE_LABEL,) if len(given.configs.configs) != 1 else ()  # set by hand, as its documentation says
    return (*hardware, *(GFD_LABELS if given.labeler is not None else ()), *selected)

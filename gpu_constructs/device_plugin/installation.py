"""Checks of the options of a `DevicePluginChart`, and its manifests.

The module also lists the node labels and extended resources that the chart publishes, for the checks of ``synth``.
"""

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
from gpu_constructs.device_plugin.manifests import GFD_LABELS, MPS_CAPABLE, Manifests, gpu_manifests
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
    """Return the configurations of the device plugin that the keywords of ``DevicePluginChart`` describe.

    Args:
        given: Value of the keyword ``config``.
        shorthand: Values of the keywords that set parts of a configuration, by keyword, such as ``sharing`` and
            ``mig_strategy``. None for a keyword that the user does not set.

    Raises:
        GpuConstructsError: The user sets both ``config`` and one of the keywords in ``shorthand``.
    """
    if given is None:
        flags = Flags(mig_strategy=shorthand["mig_strategy"] or "none")
        given = PluginConfig(flags=flags, sharing=shorthand["sharing"] or Sharing.none())
    else:
        fields.refuse_first(
            (
                value is not None,
                f"{keyword} must be absent with config, got {value!r}. Set "
                f"{_HOMES.get(keyword, f'flags.{keyword}')} in config",
            )
            for keyword, value in shorthand.items()
        )
    return Configs.named({"default": given}, default="default") if isinstance(given, PluginConfig) else given


def defaults_of(shorthand: Mapping[str, Any], platform: Platform, mps_root: str) -> Flags:
    """Return the default values of flags. They apply to each configuration that does not set the flag.

    Args:
        shorthand: Values of keywords of ``DevicePluginChart``, such as ``fail_on_init_error``, by keyword.
        platform: Platform of the nodes. It determines the strategies for device lists and device discovery if
            ``shorthand`` contains None for them.
        mps_root: Directory of the MPS control daemon on the node.

    Raises:
        GpuConstructsError: The list of device list strategies is empty, or contains a strategy twice.
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
    """Return the options of a component, or None if the chart does not install the component.

    Args:
        given: Value of the keyword of ``DevicePluginChart`` for the component: an instance of ``struct``, True for the
            default options, or False.
        struct: Class of the options, such as ``GpuFeatureDiscovery``.
    """
    return struct() if given is True else given if isinstance(given, struct) else None


def discovered_by(given: object) -> DiscoveredBy:
    """Return the installer of Node Feature Discovery: ``chart``, ``external`` or ``none``.

    ``chart`` means the ``DevicePluginChart``, ``external`` another installation in the cluster, and ``none`` that Node
    Feature Discovery does not run.

    Args:
        given: Value of the keyword ``node_feature_discovery``.
    """
    return "external" if given == "external" else "none" if given is False else "chart"


def check(given: Installation) -> None:
    """Check the options of a ``DevicePluginChart``. Warn about risky options, such as ``Configs.managed``.

    Raises:
        GpuConstructsError: An option is invalid, or two options contradict each other.
    """
    fields.label_value("id", given.id)
    fields.dns_subdomain("name", given.name)
    fields.label_value("instance", given.instance)
    fields.refuse_first(_conflicts(given))
    if given.plugin is None and given.labeler is None:
        warn(
            f"{given.id}: device_plugin and gpu_feature_discovery are both False, so the chart installs nothing for "
            "GPUs"
        )
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
            f"{given.id}: config-manager first selects the default configuration and later makes the plugin load "
            "the right one. A node may advertise no GPU until its plugin pod restarts (NVIDIA/k8s-device-plugin#1645). "
            "Use Configs.named, which has no such race"
        )
        if given.release.config_manager_needs_label:
            warn(
                f"{given.id}: config-manager of release {given.release.version} can wait forever on a node that has no "
                f"label {NODE_LABEL}. Label each GPU node, or use release 0.18.2 or later"
            )
    if has_plugin:
        _warn_of_the_plugin(given)


def check_programs(
    configs: Configs, defaults: Flags, *, release: versions.DevicePluginRelease, has_plugin: bool, has_labeler: bool
) -> None:
    """Raise if an installed component does not support a setting of the configurations.

    Args:
        configs: Configurations of the device plugin.
        defaults: Values of flags that a configuration does not set.
        release: Release of the device plugin.
        has_plugin: Whether the chart installs the device plugin.
        has_labeler: Whether the chart installs GPU Feature Discovery.

    Raises:
        GpuConstructsError: A setting needs a later release, or an installed component would reject or ignore it.
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
            "gpu_feature_discovery needs Node Feature Discovery, got node_feature_discovery=False. Remove this option "
            "to install it, set node_feature_discovery='external' if the cluster has one, or set "
            "gpu_feature_discovery=False",
        ),
        (
            given.labeler is not None and denies,
            "node_feature_discovery.master.config.restrictions.denyNodeFeatureLabels must not be True with "
            "gpu_feature_discovery, whose labels the master would silently drop. Remove it",
        ),
        (
            surge not in (None, 0, "0%"),
            f"update_strategy must not set max_surge, got max_surge={surge!r}: two plugins on a node use the same "
            "socket, which the old plugin removes when it ends. Use max_unavailable",
        ),
        *(
            (key.endswith(CHECKSUM), f"pod_annotations must not contain {key!r}: the library sets it. Remove it")
            for key in given.pods.get("pod_annotations") or ()
        ),
    ]


def warn_of_mps(configs: Configs, *, id: str, platform: Platform) -> None:
    """Warn if a configuration can use MPS on a platform for which users report that MPS does not start.

    Args:
        configs: Configurations of the device plugin.
        id: ID of the construct, for the warning.
        platform: Platform of the nodes.
    """
    shared_by = {config.sharing.strategy for config in plugin_configs(configs)}
    if "mps" in shared_by | set(configs.may_use) and platform.mps_is_doubtful:
        warn(
            f"{id}: users report that MPS does not start on {platform} (NVIDIA/k8s-device-plugin#1614). Try it on one "
            "node, or use Sharing.time_slicing"
        )


def _warn_of_the_plugin(given: Installation) -> None:
    configs, version = plugin_configs(given.configs), given.release.version
    warn_of_mps(given.configs, id=given.id, platform=given.platform)
    of_chart = given.defaults.plugin.device_list_strategy or ()
    if any({"envvar", "volume-mounts"} <= {*(config.device_list_strategy or of_chart)} for config in configs):
        warn(f"{given.id}: device_list_strategy 'volume-mounts' overrides 'envvar'. Remove one of them")
    rdma = [getattr(config.flags, name) for config in configs for name in _RDMA]
    if given.release.hands_out_rdma and None in rdma:
        warn(
            f"{given.id}: release {version} of the device plugin passes GDS, GDRCopy and MOFED devices to every "
            "container by default (NVIDIA/k8s-device-plugin#1692). Set flags.gds_enabled, "
            "flags.gdrcopy_enabled and flags.mofed_enabled, or use another release"
        )


def _of_the_plugin(flags: Flags, defaults: Flags) -> Iterable[fields.Conflict]:
    return [
        (
            flags.device_discovery_strategy == "vfio",
            "flags.device_discovery_strategy 'vfio' is for GPU Feature Discovery only. Use 'nvml', or set "
            "device_plugin=False",
        ),
        (
            flags.mps_root not in (None, defaults.mps_root) and defaults.mps_root != DEFAULT_MPS_ROOT,
            f"mps_control_daemon.root must equal flags.mps_root of the configuration ({flags.mps_root!r}), got "
            f"{defaults.mps_root!r}. Set only one of these options",
        ),
    ]


def _of_gpu_feature_discovery(flags: Flags) -> Iterable[fields.Conflict]:
    return [
        (
            flags.use_node_feature_api is False,
            "flags.use_node_feature_api must not be False, because GPU Feature Discovery publishes a NodeFeature. "
            "Remove it",
        ),
        (
            flags.gfd.output_file is not None,
            "flags.gfd.output_file must be absent, because GPU Feature Discovery publishes a NodeFeature, "
            f"got {flags.gfd.output_file!r}. Remove it",
        ),
        (
            flags.gfd.oneshot,
            "flags.gfd.oneshot must not be True, because a DaemonSet restarts a program that exits. Use "
            "sleep_interval='infinite' (from release 0.19.0), or remove it",
        ),
    ]


def manifests_of(given: Installation) -> Manifests:
    """Return the manifests of a ``DevicePluginChart`` by construct path, except Namespaces and the RuntimeClass.

    Raises:
        GpuConstructsError: Two options contradict each other, or a name is too long.
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
    """Raise if the name of an object is too long, or if two objects have the same name.

    Raises:
        GpuConstructsError: The name of a DaemonSet or Deployment is longer than a label value can be. Or two objects
            have the same name, because a configuration has the name of a component, such as ``mps-control-daemon``.
    """
    made = [(m["kind"], m["metadata"].get("namespace"), m["metadata"]["name"]) for m in manifests]
    fields.refuse_first(
        (
            made.count((kind, namespace, name)) > 1,
            f"configs must not have the name of a component: {kind} {name!r} would exist twice. Rename the "
            "configuration",
        )
        for kind, namespace, name in made
    )
    fields.refuse_first(
        (
            len(name) > _LONGEST_NAME,
            f"name must be shorter: {kind} {name!r} would have {len(name)} characters of "
            f"at most {_LONGEST_NAME}. Shorten name= or the names of the configurations",
        )
        for kind, name in (_longest_name(manifest) for manifest in manifests)
        if kind in ("DaemonSet", "Deployment")
    )


def _longest_name(manifest: Mapping[str, Any]) -> tuple[str, str]:
    """Return the kind of an object, and the longest text among its name and its label values."""
    metadata = manifest["metadata"]
    return manifest["kind"], max([metadata["name"], *metadata.get("labels", {}).values()], key=len)


def provided(given: Installation, manifests: Manifests, made: Collection[tuple[str, str, str, str]]) -> Provided:
    """Return the effects of a ``DevicePluginChart`` on the cluster, such as node labels and extended resources.

    ``synth`` checks other objects of the app against these effects.

    Args:
        given: Options of the ``DevicePluginChart``.
        manifests: Objects of the chart by construct path.
        made: API group, kind, namespace and name of each object of the chart that is not in ``manifests``, such as the
            RuntimeClass.
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
        # The nodes on which the pods of all DaemonSets except Node Feature Discovery run.
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
    selected = (NODE_LABEL,) if len(given.configs.configs) != 1 else ()  # The administrator sets this label.
    shared = {name: one.sharing.strategy for name, one in given.configs.configs.items()}
    may_share = "mps" in (*shared.values(), *given.configs.may_use)
    # If the default does not share by MPS, the administrator sets this label too.
    capable = (MPS_CAPABLE,) if may_share and shared.get(given.configs.default or "") != "mps" else ()
    return (*hardware, *(GFD_LABELS if given.labeler is not None else ()), *selected, *capable)

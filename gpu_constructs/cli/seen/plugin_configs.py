"""Configurations of NVIDIA device plugins in plain manifests, and the GPU resources that nodes advertise with them."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar, cast

from gpu_constructs.catalog import versions
from gpu_constructs.catalog.sharing import GPU, Sharing
from gpu_constructs.catalog.versions import DevicePluginRelease
from gpu_constructs.cli.seen.files import Files, settings
from gpu_constructs.device_plugin.config import MigStrategy, PluginConfig
from gpu_constructs.device_plugin.config_reader import read_without
from gpu_constructs.device_plugin.configs import NODE_LABEL, Configs, advertised_resources, gpu_offers
from gpu_constructs.device_plugin.manifests import MPS_CAPABLE
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.facts.provided import Provided
from gpu_constructs.facts.readable import Manifest, namespace_of
from gpu_constructs.kube.pod_specs import containers

_STRATEGIES = ("none", "single", "mixed")
_IGNORED_KEYS = ("rename", "devices")
_EMPTY = "empty"
_Row = TypeVar("_Row")


def configs_of(texts: Mapping[str, str], default: str | None, strategy: str | None = None) -> Configs | None:
    """Return the configurations that the device plugin reads from its configuration files.

    Return None if the device plugin would reject one of the files, or if the library cannot interpret the file.

    Args:
        texts: Contents of the configuration files by name of the file.
        default: Name of the configuration for nodes without the label ``nvidia.com/device-plugin.config``. If None or
            empty, the first of these applies: the file ``default``, the only file, an empty configuration.
        strategy: MIG strategy from a variable or a flag, which overrides the files. None: the files set it.
    """
    read = {name: config_of(text, strategy) for name, text in texts.items()}
    known = {name: config for name, config in read.items() if config is not None}
    alone = next(iter(read)) if len(read) == 1 else ""
    chosen = default or ("default" if "default" in read else alone)
    if not chosen and (empty := config_of("", strategy)) is not None:
        chosen, known[_EMPTY] = _EMPTY, empty
    try:
        return Configs.managed(known, default=chosen) if len(known) >= len(read) else None
    except GpuConstructsError:
        return None


def config_of(text: str, strategy: str | None = None) -> PluginConfig | None:
    """Return the configuration in a file of the device plugin, without the keys that the device plugin ignores.

    Return None if the device plugin would reject the file, or if the library cannot interpret the file.

    Args:
        text: Text of the configuration file; empty for a device plugin without a file.
        strategy: MIG strategy that overrides the file. None: the file sets it.
    """
    problems: list[str] = []
    try:
        read = read_without(text, PluginConfig, problems.append) if text.strip() else PluginConfig()
        if any(_decides(one.partition(": ")[0]) for one in problems) or strategy not in (None, *_STRATEGIES):
            return None
        if strategy is None:
            return read
        return replace(read, flags=replace(read.flags, mig_strategy=cast(MigStrategy, strategy)))
    except (GpuConstructsError, ValueError, RecursionError):
        return None


def _decides(path: str) -> bool:
    """Check whether a problem in a configuration file can change the resources that nodes advertise.

    Args:
        path: Start of the message about the problem: the path of a key, such as ``flags.migStrategy``, or a sentence
            about the whole file.
    """
    is_ignored = path.rpartition(".")[2] in _IGNORED_KEYS
    is_other = path.startswith(("resources", "imex", "flags")) and not path.endswith("migStrategy") and " " not in path
    return not is_ignored and not is_other


def of_plugin(container: Manifest, manifest: Manifest, files: Files) -> Provided:
    """Return a declaration of the effects of a DaemonSet with a device plugin, such as the GPU resources of nodes.

    Args:
        container: Container that runs the device plugin.
        manifest: DaemonSet.
        files: Manifests with the ConfigMaps.
    """
    pod = manifest["spec"]["template"]["spec"]
    given = settings(container)
    configs = None if container.get("envFrom") else _served(given, container, pod, namespace_of(manifest), files)
    found = of_configs(configs, pod, release_of(container.get("image")), given.get("MIG_STRATEGY"))
    manages = any("CONFIG_FILE_SRCDIR" in settings(one) for one in containers(pod))
    by_cdi = "cdi-" in (given.get("DEVICE_LIST_STRATEGY") or "")
    return replace(
        found,
        node_labels=(*found.node_labels, *((NODE_LABEL,) if manages else ())),
        gpu_runtime="cdi" if by_cdi else None,
    )


def of_configs(
    configs: Configs | None, pod: Manifest | None, release: DevicePluginRelease, strategy: str | None = None
) -> Provided:
    """Return a declaration of the effects of a device plugin on the cluster, such as the GPU resources of nodes.

    Args:
        configs: Configurations of the device plugin. None: the configurations are not known.
        pod: Pod spec of the device plugin. None: the nodes on which it runs are not known.
        release: Release of the device plugin.
        strategy: MIG strategy that a variable sets for all configurations. None: no variable sets it.
    """
    known = cast(MigStrategy, strategy) if strategy in _STRATEGIES else None
    if configs is None:
        may = dict.fromkeys((GPU, f"{GPU}.shared", "nvidia.com/mig-*"), Sharing.none())
        labels: Sequence[str] = (MPS_CAPABLE,)
        return Provided(components=("device-plugin",), gpu_resources=may, node_labels=labels, mig_strategy=known)
    offers = gpu_offers(configs, dict.fromkeys(configs.configs, pod or {}), release)
    has_mps = any(one.sharing.strategy == "mps" for one in offers)
    return Provided(
        components=("device-plugin",),
        gpu_resources=advertised_resources(configs),
        gpu_offers=offers if pod is not None else tuple(replace(one, pod_spec=None) for one in offers),
        node_labels=(MPS_CAPABLE,) if has_mps else (),
        mig_strategy=known,
    )


def _served(
    given: Mapping[str, str | None], container: Manifest, pod: Manifest, namespace: str, files: Files
) -> Configs | None:
    """Return the configurations of a device plugin. Return None if the manifests do not contain them.

    Args:
        given: Values of the environment variables and flags of the container, by name of the variable. A value that
            the manifests do not contain is None.
        container: Container that runs the device plugin.
        pod: Pod spec.
        namespace: Namespace of the pod.
        files: Manifests with the ConfigMaps.
    """
    strategy, path = given.get("MIG_STRATEGY"), given.get("CONFIG_FILE", "")
    if path is None or ("MIG_STRATEGY" in given and strategy is None):
        return None
    manager = next((one for one in containers(pod) if "CONFIG_FILE_SRCDIR" in settings(one)), None)
    if manager is not None:
        told = settings(manager)
        texts = files.folder(posixpath.normpath(told["CONFIG_FILE_SRCDIR"] or ""), manager, pod, namespace)
        return None if texts is None else configs_of(texts, told.get("DEFAULT_CONFIG") or None, strategy or None)
    text = files.text(path, container, pod, namespace) if path else ""
    return None if text is None else configs_of({"default": text}, "default", strategy or None)


def release_of(image: object) -> DevicePluginRelease:
    """Return what the library knows about the device plugin release that a container image contains.

    The tag of the image names the release. For an unknown tag, return the default release of the library.
    """
    version = str(image or "").partition("@")[0].rpartition(":")[2]
    return of_version(versions.DEVICE_PLUGIN, version, versions.DEFAULT_DEVICE_PLUGIN)


def of_version(releases: Mapping[str, _Row], version: object, default: str) -> _Row:
    """Return the entry of a release. If ``releases`` has no such entry, return the entry of the default release.

    Args:
        releases: Entries by release, such as ``0.17.1``.
        version: Release, with or without the prefix ``v``.
        default: Default release.
    """
    return releases.get(str(version).removeprefix("v"), releases[default])

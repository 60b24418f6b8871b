"""Effects of DaemonSets: the device plugin and other programs that run on GPU nodes. Images identify the programs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from gpu_constructs.catalog.nfd_labels import NfdLabels, nfd_labels
from gpu_constructs.cli.seen.files import Files, loaded, settings, words_of
from gpu_constructs.cli.seen.plugin_configs import of_plugin
from gpu_constructs.device_plugin.manifests import GFD_LABELS, MPS_CAPABLE
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.facts.provided import PowerCap, Provided, placement_of
from gpu_constructs.facts.readable import Manifest, kind_of, members, namespace_of
from gpu_constructs.feature_discovery import config as nfd_config
from gpu_constructs.feature_discovery.manifests import LABELS
from gpu_constructs.kube.kinds import identity_of
from gpu_constructs.kube.placement import GPU_PRESENT
from gpu_constructs.kube.pod_specs import containers, pod_specs

_HOME = "/etc/kubernetes/node-feature-discovery"
_ANY_LABEL = (LABELS, GPU_PRESENT)
# These flags replace parts of the configuration file: kubernetes-sigs/node-feature-discovery@v0.17.3:cmd/nfd-worker
_REPLACES = ("OPTIONS", "LABEL_SOURCES", "FEATURE_SOURCES", "SOURCES", "LABEL_WHITELIST", "NO_PUBLISH", "ONESHOT")
_LIMIT = re.compile(r"(?:[0-9]{1,4}%?|default)\Z", re.ASCII)
_POWER_SCRIPT = "/script/power-limit.sh"

_Effect = Callable[[Manifest, Manifest, Files], Provided]
GFD = Provided(components=("gpu-feature-discovery",), node_labels=GFD_LABELS)
"""Effects of GPU Feature Discovery."""
EXPORTER = Provided(components=("dcgm-exporter",))
"""Effects of the DCGM exporter."""


def provided(manifest: Manifest, files: Files) -> Iterator[Provided]:
    """Yield declarations of what the programs in a DaemonSet change in the cluster, such as the GPU resources of nodes.

    If the manifests also contain the ClusterPolicy that controls the DaemonSet, the declaration of the ClusterPolicy
    includes these programs.

    Args:
        manifest: DaemonSet.
        files: ConfigMaps among the manifests.
    """
    owners = members(manifest["metadata"].get("ownerReferences"))
    if any(files.named(str(one.get("kind")), "default", one.get("name")) for one in owners):
        return
    makes = frozenset([identity_of(manifest)])
    for pod in pod_specs(manifest):
        for container in pod.get("containers") or ():
            effect = _effect_of(container)
            if effect is not None:
                found = effect if isinstance(effect, Provided) else effect(container, manifest, files)
                yield replace(found, runs_on=(placement_of(pod),), makes=makes)
                # The object is that of the first program: a second one in the same pod is not another object.
                makes = frozenset()


def _effect_of(container: Manifest) -> Provided | _Effect | None:
    """Return a declaration of what the program in a container changes in the cluster.

    If the declaration depends on the manifests, return a function that creates it instead. The arguments of this
    function are the container, its DaemonSet and the ConfigMaps. Return None if the library does not know the program.
    """
    if _POWER_SCRIPT in words_of(container):
        return _power
    repository = str(container.get("image") or "").partition("@")[0].rpartition("/")[2].partition(":")[0]
    if repository != "k8s-device-plugin":
        return _BY_IMAGE.get(repository)
    # One image contains all programs of the device plugin. Its default program is the plugin. The operator starts the
    # programs with a script, so that only the name of the container shows which one it is.
    said = " ".join([*words_of(container), str(container.get("name"))])
    return next((effect for word, effect in _BY_WORD.items() if word in said), of_plugin)


def _power(container: Manifest, manifest: Manifest, files: Files) -> Provided:
    """Return a declaration of the power limits that a DaemonSet of the construct ``PowerLimit`` sets for GPUs.

    Args:
        container: Container whose variables state the limits.
        manifest: DaemonSet.
        files: ConfigMaps among the manifests, which this function does not need.
    """
    given = settings(container)
    rules = (line.rpartition("=") for line in (given.get("POWER_LIMITS") or "").splitlines())
    limits = {key.removeprefix("name:"): limit for key, _, limit in rules if key.startswith("name:")}
    limits |= {"*": given["POWER_LIMIT"] or ""} if given.get("POWER_LIMIT") else {}
    selector = manifest["spec"]["template"]["spec"].get("nodeSelector") or {}
    chosen = {key: str(value) for key, value in selector.items() if key != GPU_PRESENT}
    valid = {pattern: limit for pattern, limit in limits.items() if _LIMIT.match(limit)}
    return Provided(power_caps=[PowerCap(limits=valid, node_selector=chosen)])


def _of_nfd(container: Manifest, manifest: Manifest, files: Files) -> Provided:
    """Return a declaration of the node labels and other effects of Node Feature Discovery.

    Return an empty declaration if the container does not run its worker.

    Args:
        container: Container of a DaemonSet.
        manifest: DaemonSet.
        files: ConfigMaps among the manifests.
    """
    if not any("nfd-worker" in word for word in (*words_of(container), str(container.get("name")))):
        return Provided()
    worker = _document("worker", container, manifest, files)
    home = namespace_of(manifest)
    masters = [one for one in files.objects if kind_of(one) == ("apps", "Deployment") and namespace_of(one) == home]
    said = [
        _document("master", container, one, files)
        for one in masters
        for pod in pod_specs(one)
        for container in containers(pod)
        if any("nfd-master" in word for word in words_of(container))
    ]
    master = said[0] if len(said) == 1 else None if said else {}
    return of_nfd_files(worker, master)


def of_nfd_files(worker: Mapping[str, object] | None, master: Mapping[str, object] | None) -> Provided:
    """Return a declaration of the node labels that Node Feature Discovery sets with the given configuration files.

    Args:
        worker: Content of the file of the worker. None: it is not known.
        master: Content of the file of the master. None: it is not known.
    """
    labels = None if worker is None or master is None else _labels(worker, master)
    known = _ANY_LABEL if labels is None else ()
    return Provided(components=("node-feature-discovery",), nfd_labels=labels, node_labels=known)


def _labels(worker: Mapping[str, object], master: Mapping[str, object]) -> NfdLabels | None:
    try:
        return nfd_labels(nfd_config.document("worker", worker, {}), nfd_config.document("master", master, {}))
    except GpuConstructsError:
        return None


def _document(component: str, container: Manifest, manifest: Manifest, files: Files) -> Mapping[str, object] | None:
    """Return the content of the configuration file of Node Feature Discovery. Return None if it is not known.

    Without a mounted file, the program uses its defaults.
    """
    given = settings(container)
    if any(flag in given for flag in _REPLACES):
        return None
    path = given.get("CONFIG") or f"{_HOME}/nfd-{component}.conf"
    (pod,) = pod_specs(manifest)
    if not any(path.startswith(str(mount.get("mountPath"))) for mount in container.get("volumeMounts") or ()):
        return {}
    text = files.text(path, container, pod, namespace_of(manifest))
    return None if text is None else loaded(text)


_BY_WORD: Mapping[str, Provided | None] = {
    "config-manager": None,
    "gpu-feature-discovery": GFD,
    # GPU Feature Discovery or the administrator sets the label that the daemon selects.
    "mps-control-daemon": Provided(node_labels=(MPS_CAPABLE,)),
}
_BY_IMAGE: Mapping[str, Provided | _Effect] = {
    "dcgm-exporter": EXPORTER,
    "gpu-feature-discovery": GFD,
    "k8s-mig-manager": Provided(has_mig_manager=True),
    "node-feature-discovery": _of_nfd,
}

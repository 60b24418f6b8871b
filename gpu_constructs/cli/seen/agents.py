"""Effects of DaemonSets, such as device plugins, on GPU nodes. Container images identify what a DaemonSet runs."""

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
    """Yield declarations of the effects of the containers in a DaemonSet. Omit containers with an unknown image.

    Yield nothing if the ClusterPolicy that owns the DaemonSet is also among the manifests. The declaration of the
    ClusterPolicy then includes these effects.

    Args:
        manifest: DaemonSet.
        files: Manifests with the ConfigMaps and the ClusterPolicy.
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
                # Only the first declaration names the DaemonSet: a second container is not a second object.
                makes = frozenset()


def _effect_of(container: Manifest) -> Provided | _Effect | None:
    """Return a declaration of the effects of a container on the cluster, or a function that returns the declaration.

    The result is a function if the effects depend on other manifests. The function has three arguments: the container,
    its DaemonSet, and the manifests with the ConfigMaps. The result is None if the library does not know the image.
    """
    if _POWER_SCRIPT in words_of(container):
        return _power
    repository = str(container.get("image") or "").partition("@")[0].rpartition("/")[2].partition(":")[0]
    if repository != "k8s-device-plugin":
        return _BY_IMAGE.get(repository)
    # One image contains all programs of the device plugin. Its default program is the plugin. The GPU Operator starts
    # the programs with a script, so that only the name of the container shows which program runs.
    said = " ".join([*words_of(container), str(container.get("name"))])
    return next((effect for word, effect in _BY_WORD.items() if word in said), of_plugin)


def _power(container: Manifest, manifest: Manifest, files: Files) -> Provided:
    """Return a declaration of the power limits that a DaemonSet of the construct ``PowerLimit`` sets for GPUs.

    Args:
        container: Container whose environment variables state the limits.
        manifest: DaemonSet.
        files: Not used.
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

    Return an empty declaration if the container does not run ``nfd-worker``.

    Args:
        container: Container of the DaemonSet.
        manifest: DaemonSet.
        files: Manifests with the Deployment of ``nfd-master`` and the ConfigMaps.
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
        worker: Content of the configuration file of ``nfd-worker``. None: the content is not known.
        master: Content of the configuration file of ``nfd-master``. None: the content is not known.
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
    """Return the content of the configuration file of a Node Feature Discovery container.

    Return an empty mapping if the container does not mount such a file: it then uses its defaults. Return None if flags
    replace parts of the file, or if no ConfigMap among the manifests contains the file.

    Args:
        component: ``worker`` or ``master``.
        container: Container that runs the component.
        manifest: DaemonSet or Deployment of the container.
        files: Manifests with the ConfigMaps.
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

"""Checks of GPU components: device plugin, GPU Feature Discovery, GPU metrics exporters and DRA driver."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from gpu_constructs.cli.doctor.checking import NotLookedError, Problem, check, shortened
from gpu_constructs.cli.doctor.conditions import EXPORTERS
from gpu_constructs.cli.doctor.scheduling import cause_of, stopped
from gpu_constructs.cli.doctor.snapshot import TABLES, Manifest
from gpu_constructs.cli.doctor.view import (
    View,
    condition,
    is_ready,
    key,
    labels,
    metadata,
    program_of,
    spec,
    status,
    title,
    unmatched,
    untolerated,
)
from gpu_constructs.facts.selectors import selects
from gpu_constructs.kube.pod_specs import node_values_required, pod_specs

CONFIG_LABEL = "nvidia.com/device-plugin.config"
_ADVERTISES = ("device plugin", "DRA driver")
# GPU components that need not run on each node, or that have separate checks.
_OPTIONAL = ("driver", "MPS control daemon", "MIG manager", "operator validator", "container toolkit")
_ELSEWHERE = (*EXPORTERS, "PowerLimit", "operator validator", "driver")


@check
def plugin_found(view: View) -> Iterator[Problem]:
    """Yield a problem if the cluster has neither a device plugin, nor a DRA driver, nor the GPU Operator."""
    if not view.programs(*_ADVERTISES, "GPU Operator") and not view.program_pods(*_ADVERTISES):
        yield Problem("", "the cluster has neither a device plugin nor a DRA driver nor the GPU Operator")


def accepts(controller: Manifest, node: Manifest) -> bool:
    """Check whether the labels and taints of a node let the pods of a DaemonSet or Deployment run on it."""
    return all(
        unmatched(one, node) is None and not untolerated(one, node, is_daemon=True) for one in pod_specs(controller)
    )


@check
def plugin_single(view: View) -> Iterator[Problem]:
    """Yield a problem for each GPU node on which several DaemonSets with a device plugin or a DRA driver can run.

    If the GPU Operator installs a device plugin, also yield a problem for each device plugin from another source.
    """
    daemonsets = [one for one in view.programs(*_ADVERTISES) if one["kind"] == "DaemonSet"]
    for node in view.gpu_nodes:
        there = [title(one) for one in daemonsets if accepts(one, node)]
        if len(there) > 1:
            yield Problem(title(node), f"more than one program advertises its GPUs: {', '.join(there)}")
    policies = view.all("ClusterPolicy")
    if any((spec(policy).get("devicePlugin") or {}).get("enabled", True) for policy in policies):
        others = (one for one in view.programs("device plugin") if not _is_an_operand(one))
        reason = "it runs beside the GPU Operator, which installs another device plugin"
        yield from (Problem(title(one), reason) for one in others)


def _is_an_operand(manifest: Manifest) -> bool:
    owners = metadata(manifest).get("ownerReferences") or ()
    by_operator = any(owner.get("kind") == "ClusterPolicy" for owner in owners)
    return by_operator or metadata(manifest)["name"] == "nvidia-device-plugin-daemonset"


@check
def daemonset_desired(view: View) -> Iterator[Problem]:
    """Yield a problem for each DaemonSet of a GPU component, such as the device plugin, that runs on no node.

    The problem names the node label that the DaemonSet needs, or the taint that it does not tolerate.
    """
    empty = (one for one in view.programs() if status(one).get("desiredNumberScheduled") == 0)
    for one in (one for one in empty if program_of(one) not in _OPTIONAL):
        reasons = [_absence(one, node) for node in view.gpu_nodes or view.nodes.values()]
        if any(reasons) or not reasons:
            yield Problem(title(one), f"it runs on no node: {next(filter(None, reasons), 'the cluster has no node')}")


def _absence(daemonset: Manifest, node: Manifest) -> str:
    """Return the reason why a DaemonSet does not run on a node, such as a missing label.

    The text is empty if the DaemonSet can run on the node. It is also empty if a required label has the value ``false``
    on the node: the user then excludes the node on purpose.
    """
    pod_spec = next(pod_specs(daemonset), {})
    missing, taint = unmatched(pod_spec, node), untolerated(pod_spec, node, is_daemon=True)
    if missing:
        is_on_purpose = labels(node).get(missing.partition("=")[0]) == "false"
        return "" if is_on_purpose else f"{title(node)} has no label {missing}"
    return f"it does not tolerate the taint {taint} of {title(node)}" if taint else ""


@check
def program_pods(view: View) -> Iterator[Problem]:
    """Return a problem for each pod of a GPU component, such as the device plugin, that is not ready."""
    pods = (pod for pod in view.program_pods() if program_of(pod) not in _ELSEWHERE and not is_ready(pod))
    return (Problem(title(pod), state_of(view, pod)) for pod in pods if not metadata(pod).get("deletionTimestamp"))


def state_of(view: View, pod: Manifest) -> str:
    """Return the reason why a pod is not ready, in one sentence."""
    if cause := cause_of(view, pod):
        return cause[1]
    if found := next(stopped(pod), None):
        return f"the container {found[1]} does not run: {shortened(found[2])}"
    stated = status(pod).get("reason") or condition(pod, "Ready").get("message") or ""
    event = next(iter(view.messages(pod)), "")
    about = ": ".join(filter(None, (str(stated), event)))
    return f"the pod is {status(pod).get('phase', 'Pending')} and not ready" + (
        f": {shortened(about)}" if about else ""
    )


# --- configuration of the device plugin ---------------------------------------------------------------------------


def configurations(view: View) -> list[Manifest]:
    """Return the ConfigMaps that device plugins in the cluster mount."""
    named = ((name, key(one)[0]) for one in view.programs("device plugin") for name in config_maps(one))
    return [found for name, namespace in named if (found := view.find("ConfigMap", name, namespace))]


def config_maps(manifest: Manifest) -> list[str]:
    """Return the names of the ConfigMaps that the pods of an object, such as a DaemonSet, mount."""
    volumes = (one.get("configMap") or {} for each in pod_specs(manifest) for one in each.get("volumes") or ())
    return [str(one["name"]) for one in volumes if one.get("name")]


@check
def plugin_config(view: View) -> Iterator[Problem]:
    """Yield a problem for each GPU node whose label selects a device plugin configuration that does not exist.

    The label is ``nvidia.com/device-plugin.config``.
    """
    known = {name for config in configurations(view) for name in config.get("data") or {}}
    specs = [one for plugin in view.programs("device plugin") for one in pod_specs(plugin)]
    known |= {
        value
        for one in specs
        for label, values in node_values_required(one)
        for value in values
        if label == CONFIG_LABEL
    }
    for node in (node for node in view.gpu_nodes if labels(node).get(CONFIG_LABEL, "") not in {"", *known}):
        reason = f"the label {CONFIG_LABEL}={labels(node)[CONFIG_LABEL]} names no configuration"
        yield Problem(title(node), f"{reason}; the configurations are: {', '.join(sorted(known)) or 'none'}")


@check
def plugin_sharing(view: View) -> Iterator[Problem]:
    """Return a problem for each unknown key in the section ``sharing`` of device plugin configurations."""
    texts = ((config, *one) for config in configurations(view) for one in (config.get("data") or {}).items())
    unknown = ((config, name, path) for config, name, text in texts for path in _unknown_keys(text))
    reason = "which the device plugin ignores"
    return (Problem(title(config), f"{name} has the key {path}, {reason}") for config, name, path in unknown)


def _unknown_keys(text: object) -> list[str]:
    try:
        read: Any = yaml.safe_load(str(text))
    except yaml.YAMLError:
        return []
    sharing = read.get("sharing") if isinstance(read, Mapping) else None
    strategies = sharing if isinstance(sharing, Mapping) else {}
    known = {
        name: one for name, one in strategies.items() if name in TABLES["sharing_keys"] and isinstance(one, Mapping)
    }
    unknown = [f"sharing.{name}" for name in strategies if name not in TABLES["sharing_keys"]]
    members = ((name, member) for name, one in known.items() for member in one)
    return unknown + [f"sharing.{name}.{one}" for name, one in members if one not in TABLES["sharing_members"]]


# --- DRA driver ---------------------------------------------------------------------------------------------------


@check
def dra_class(view: View) -> Iterator[Problem]:
    """Yield a problem for each DeviceClass that a ResourceClaim names and that does not exist."""
    known = {metadata(one)["name"] for one in view.all("DeviceClass")}
    devices = ((claim, spec(claim).get("devices") or {}) for claim in view.all("ResourceClaim"))
    for claim, request in ((claim, one) for claim, given in devices for one in given.get("requests") or ()):
        choices = [request, request.get("exactly") or {}, *(request.get("firstAvailable") or ())]
        missing = {one["deviceClassName"] for one in choices if one.get("deviceClassName")} - known
        yield from (Problem(title(claim), f"it names the DeviceClass {one}, which does not exist") for one in missing)


@check
def dra_devices(view: View) -> Iterator[Problem]:
    """Return a problem for each GPU node for which the DRA driver publishes no device in a ResourceSlice."""
    slices = [spec(one) for one in view.all("ResourceSlice")]
    publishing = {one.get("nodeName") for one in slices if one.get("devices") and "nvidia" in str(one.get("driver"))}
    silent = (node for node in view.gpu_nodes if metadata(node)["name"] not in publishing)
    chosen = (node for node in silent if any(accepts(one, node) for one in view.programs("DRA driver")))
    return (Problem(title(node), "no ResourceSlice contains a device of the node") for node in chosen)


# --- metrics ------------------------------------------------------------------------------------------------------


@check
def exporter_pods(view: View) -> Iterator[Problem]:
    """Yield a problem for each GPU metrics exporter pod that is not ready, and for each GPU node without such a pod."""
    pods = view.program_pods(*EXPORTERS)
    yield from (Problem(title(pod), state_of(view, pod)) for pod in pods if not is_ready(pod))
    there = {spec(pod).get("nodeName") for pod in pods}
    bare = [node for node in view.gpu_nodes if metadata(node)["name"] not in there]
    daemonsets = (one for one in view.programs(*EXPORTERS) if one["kind"] == "DaemonSet")
    absent = [(one, node, reason) for one in daemonsets for node in bare if (reason := _absence(one, node))]
    if not pods and not absent:
        raise NotLookedError("no pod of the exporter exists")
    yield from (Problem(title(one), f"it does not run on {title(node)}: {reason}") for one, node, reason in absent)


@check
def exporter_monitor(view: View) -> Iterator[Problem]:
    """Yield a problem for each GPU metrics exporter that no ServiceMonitor, PodMonitor or scrape annotation covers."""
    monitors = [spec(one).get("selector") for one in view.all("ServiceMonitor", "PodMonitor")]
    if not monitors and not view.all("PrometheusRule"):
        raise NotLookedError("the cluster has no ServiceMonitor, so another program can collect the metrics")
    for one in view.programs(*EXPORTERS):
        template = metadata(spec(one).get("template") or {})
        has = {**labels(one), **(template.get("labels") or {})}
        is_announced = "prometheus.io/scrape" in (template.get("annotations") or {})
        if not is_announced and not any(selects(selector, has) for selector in monitors):
            yield Problem(title(one), "no ServiceMonitor or PodMonitor selects its labels")


@check
def alerts(view: View) -> Iterator[Problem]:
    """Return a problem for each PrometheusRule in the synthesized manifests (``--plan``) that the cluster lacks."""
    rules = view.planned_objects("PrometheusRule")
    missing = (one for one in rules if view.find("PrometheusRule", key(one)[1], key(one)[0]) is None)
    return (
        Problem(title(one), "the manifests of --plan contain this alert rule, but the cluster does not")
        for one in missing
    )

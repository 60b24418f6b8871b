"""Checks of the programs on GPU nodes: device plugin, discovery, exporters and DRA driver."""

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
from gpu_constructs.kube.pod_specs import pod_specs

CONFIG_LABEL = "nvidia.com/device-plugin.config"
_ADVERTISES = ("device plugin", "DRA driver")
# Programs that need not run on a node, or that have checks of their own.
_OPTIONAL = ("driver", "MPS control daemon", "MIG manager", "operator validator", "container toolkit")
_ELSEWHERE = (*EXPORTERS, "PowerLimit", "operator validator", "driver")


@check
def plugin_found(view: View) -> Iterator[Problem]:
    """Yield a problem if no program advertises GPUs."""
    if not view.programs(*_ADVERTISES, "GPU Operator") and not view.program_pods(*_ADVERTISES):
        yield Problem("", "the cluster has neither a device plugin nor a DRA driver nor the GPU Operator")


def accepts(controller: Manifest, node: Manifest) -> bool:
    """Check whether the pods of an object can run on a node, by its labels and taints."""
    return all(unmatched(one, node) is None and untolerated(one, node) is None for one in pod_specs(controller))


@check
def plugin_single(view: View) -> Iterator[Problem]:
    """Yield a problem for each GPU node on which two programs advertise GPUs."""
    for node in view.gpu_nodes:
        there = [title(one) for one in view.programs(*_ADVERTISES) if one["kind"] == "DaemonSet" and accepts(one, node)]
        if len(there) > 1:
            yield Problem(title(node), f"these programs advertise its GPUs: {', '.join(there)}")
    for policy in view.all("ClusterPolicy"):
        is_enabled = (spec(policy).get("devicePlugin") or {}).get("enabled", True)
        others = [one for one in view.programs("device plugin") if not _is_an_operand(one)]
        for one in others if is_enabled else ():
            yield Problem(title(one), "it runs beside the GPU Operator, which brings a device plugin of its own")


def _is_an_operand(manifest: Manifest) -> bool:
    owners = metadata(manifest).get("ownerReferences") or ()
    by_operator = any(owner.get("kind") == "ClusterPolicy" for owner in owners)
    return by_operator or metadata(manifest)["name"] == "nvidia-device-plugin-daemonset"


@check
def daemonset_desired(view: View) -> Iterator[Problem]:
    """Yield a problem for each DaemonSet of a program that selects no node, with the label or the taint."""
    for one in view.programs():
        is_empty = one["kind"] == "DaemonSet" and status(one).get("desiredNumberScheduled") == 0
        if is_empty and program_of(one) not in _OPTIONAL:
            reasons = [_absence(one, node) for node in view.gpu_nodes or view.nodes.values()]
            reason = next(filter(None, reasons), "")
            if reason or not reasons:
                yield Problem(title(one), f"it runs on no node: {reason or 'the cluster has no node'}")


def _absence(daemonset: Manifest, node: Manifest) -> str:
    """Return why a DaemonSet does not run on a node; empty if it does, or if a label of the node states false."""
    for pod_spec in pod_specs(daemonset):
        missing, taint = unmatched(pod_spec, node), untolerated(pod_spec, node)
        if missing and labels(node).get(missing.partition("=")[0]) == "false":
            return ""
        if missing:
            return f"{title(node)} has no label {missing}"
        if taint:
            return f"it does not tolerate the taint {taint} of {title(node)}"
    return ""


@check
def program_pods(view: View) -> Iterator[Problem]:
    """Yield a problem for each pod of a program that is not ready, with its state."""
    for pod in view.program_pods():
        if program_of(pod) not in _ELSEWHERE and not is_ready(pod) and not metadata(pod).get("deletionTimestamp"):
            yield Problem(title(pod), state_of(view, pod))


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


def configurations(view: View) -> Iterator[tuple[Manifest, Manifest]]:
    """Yield the device plugins, each with a ConfigMap that its pods mount."""
    for one in view.programs("device plugin"):
        for name in config_maps(one):
            found = view.find("ConfigMap", name, key(one)[0])
            if found is not None:
                yield one, found


def config_maps(manifest: Manifest) -> Iterator[str]:
    """Yield the names of the ConfigMaps that the pods of an object mount."""
    for pod_spec in pod_specs(manifest):
        for volume in pod_spec.get("volumes") or ():
            if name := (volume.get("configMap") or {}).get("name"):
                yield name


@check
def plugin_config(view: View) -> Iterator[Problem]:
    """Yield a problem for each GPU node whose label names a configuration that does not exist."""
    known = {name for _, config in configurations(view) for name in config.get("data") or {}}
    for node in view.gpu_nodes:
        wanted = labels(node).get(CONFIG_LABEL)
        is_known = (
            wanted is None or wanted in known or any(_selects(one, wanted) for one in view.programs("device plugin"))
        )
        if not is_known:
            names = ", ".join(sorted(known)) or "none"
            yield Problem(title(node), f"the label {CONFIG_LABEL}={wanted} names no configuration; there are: {names}")


def _selects(daemonset: Manifest, value: str) -> bool:
    """Check whether a DaemonSet selects nodes by a value of the label for the configuration."""
    return any(
        CONFIG_LABEL in str(one.get("affinity")) and repr(value) in str(one) for one in pod_specs(daemonset)
    ) or any((one.get("nodeSelector") or {}).get(CONFIG_LABEL) == value for one in pod_specs(daemonset))


@check
def plugin_sharing(view: View) -> Iterator[Problem]:
    """Yield a problem for each key of a sharing configuration that the device plugin ignores."""
    for _, config in configurations(view):
        for name, text in (config.get("data") or {}).items():
            for unknown in _unknown_keys(text):
                yield Problem(title(config), f"{name} has the key {unknown}, which the device plugin ignores")


def _unknown_keys(text: object) -> Iterator[str]:
    try:
        read: Any = yaml.safe_load(str(text))
    except yaml.YAMLError:
        return
    sharing = read.get("sharing") if isinstance(read, Mapping) else None
    for strategy, members in sharing.items() if isinstance(sharing, Mapping) else ():
        if strategy not in TABLES["sharing_keys"]:
            yield f"sharing.{strategy}"
        for member in members if isinstance(members, Mapping) else ():
            if strategy in TABLES["sharing_keys"] and member not in TABLES["sharing_members"]:
                yield f"sharing.{strategy}.{member}"


# --- DRA driver ---------------------------------------------------------------------------------------------------


@check
def dra_class(view: View) -> Iterator[Problem]:
    """Yield a problem for each resource claim that names a DeviceClass that does not exist."""
    known = {metadata(one)["name"] for one in view.all("DeviceClass")}
    for claim in view.all("ResourceClaim"):
        for request in (spec(claim).get("devices") or {}).get("requests") or ():
            choices = [request, request.get("exactly") or {}, *(request.get("firstAvailable") or ())]
            for name in (one.get("deviceClassName") for one in choices):
                if name and name not in known:
                    yield Problem(title(claim), f"it names the DeviceClass {name}, which does not exist")


@check
def dra_devices(view: View) -> Iterator[Problem]:
    """Yield a problem for each GPU node for which the DRA driver publishes no device."""
    slices = [spec(one) for one in view.all("ResourceSlice")]
    publishing = {one.get("nodeName") for one in slices if one.get("devices") and "nvidia" in str(one.get("driver"))}
    for node in view.gpu_nodes:
        if metadata(node)["name"] not in publishing and any(accepts(one, node) for one in view.programs("DRA driver")):
            yield Problem(title(node), "no ResourceSlice contains a device of the node")


# --- metrics ------------------------------------------------------------------------------------------------------


@check
def exporter_pods(view: View) -> Iterator[Problem]:
    """Yield a problem for each pod of an exporter that is not ready."""
    for pod in view.program_pods(*EXPORTERS):
        if not is_ready(pod):
            yield Problem(title(pod), state_of(view, pod))
    there = {spec(pod).get("nodeName") for pod in view.program_pods(*EXPORTERS)}
    for one in view.programs(*EXPORTERS):
        for node in view.gpu_nodes if one["kind"] == "DaemonSet" else ():
            if metadata(node)["name"] not in there and (reason := _absence(one, node)):
                yield Problem(title(one), f"it does not run on {title(node)}: {reason}")


@check
def exporter_monitor(view: View) -> Iterator[Problem]:
    """Yield a problem for each exporter that no monitor selects and no annotation announces."""
    monitors = view.all("ServiceMonitor", "PodMonitor")
    if not monitors and not view.all("PrometheusRule"):
        raise NotLookedError("the cluster has no monitors, so another program may collect the metrics")
    for one in view.programs(*EXPORTERS):
        template = metadata(spec(one).get("template") or {})
        has = {**labels(one), **(template.get("labels") or {})}
        is_announced = "prometheus.io/scrape" in (template.get("annotations") or {})
        if not is_announced and not any(selects(spec(monitor).get("selector"), has) for monitor in monitors):
            yield Problem(title(one), "no ServiceMonitor or PodMonitor selects its labels")


@check
def alerts(view: View) -> Iterator[Problem]:
    """Yield a problem for each PrometheusRule of the plan that the cluster does not have."""
    for one in view.plan.manifests if view.plan else ():
        if one["kind"] == "PrometheusRule" and view.find("PrometheusRule", key(one)[1], key(one)[0]) is None:
            yield Problem(title(one), "the plan has these alerts, and the cluster does not")

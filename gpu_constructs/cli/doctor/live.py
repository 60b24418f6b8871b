"""Reader of a live cluster. It runs kubectl for objects and logs, and talosctl for the services of Talos nodes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpu_constructs.cli.doctor.plugin_checks import config_maps
from gpu_constructs.cli.doctor.snapshot import KINDS, Manifest, Plan, Snapshot, by_kind, cleaned_log
from gpu_constructs.cli.doctor.view import View, is_ready, key, metadata, spec, status
from gpu_constructs.cli.kubectl import Kubectl, KubectlError
from gpu_constructs.records import dataclass, field

_AT_ONCE = 4
_MOST_LOGS = 40
_TIMEOUT = "--request-timeout=20s"


@dataclass
class _Reading:
    """The objects of a cluster that the command has read, by kind, and reasons why other objects are missing.

    Attributes:
        objects: Objects by kind.
        unread: Reasons why data is missing, by name of the data: a kind, ``logs`` or ``services``.
        partial: Reasons why only the objects of one namespace are present, by kind of these objects.
    """

    objects: dict[str, list[Manifest]] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)
    partial: dict[str, str] = field(default_factory=dict)


def read(kubectl: Kubectl, namespace: str, plan: Plan | None, *, all_logs: bool) -> Snapshot:
    """Return the state of a cluster. The function only reads from the cluster.

    Args:
        kubectl: The program kubectl, with the options that select the cluster.
        namespace: Namespace of the workloads; empty for all namespaces.
        plan: Expected state of the cluster from the option ``--plan``; None without this option.
        all_logs: Whether to read the logs of all GPU components. If False, read only the logs of components that do not
            work.

    Raises:
        KubectlError: The cluster does not answer.
    """
    where, found = kubectl.where(), _Reading()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(lambda kind: _read_kind(kubectl, kind[0], _resource(kind), namespace, found), KINDS))
    snapshot = Snapshot(where, found.objects, found.unread, found.partial, namespace=namespace, plan=plan)
    view = View(snapshot)
    _read_config_maps(kubectl, view, found)
    logs = _logs(kubectl, view, found, all_logs=all_logs)
    return replace(snapshot, logs=logs, services=_services(view, found))


def _resource(kind: Iterable[str]) -> str:
    _, group, resource, *_ = kind
    return f"{resource}.{group}" if group else resource


def _read_kind(kubectl: Kubectl, kind: str, resource: str, namespace: str, found: _Reading) -> None:
    """Read all objects of a kind, and add them to ``found``.

    If the user may list the kind only in ``namespace``, read only the objects of this namespace.

    Args:
        kubectl: The program kubectl, with the options that select the cluster.
        kind: Kind of the objects, such as ``Pod``.
        resource: Name of the kind for kubectl, such as ``pods``.
        namespace: Namespace from the option ``--namespace``; empty without this option.
        found: Result to which the function adds the objects, and the reason if objects are missing.
    """
    for scope in ("--all-namespaces", *([f"--namespace={namespace}"] if namespace else [])):
        try:
            found.objects[kind] = _get(kubectl, kind, resource, scope)
            break
        except KubectlError as error:
            if error.is_unknown:
                found.objects[kind] = []
                return
            if not error.is_forbidden:
                raise
            found.partial[kind] = f"you have the right to list {resource} only in the namespace {namespace}"
    else:
        del found.partial[kind]
        found.unread[kind] = f"you have no right to list {resource}"


def _get(kubectl: Kubectl, kind: str, resource: str, *arguments: str) -> list[Manifest]:
    """Return the objects of a kind, without secret data and other data that ``doctor`` does not need.

    For example, a CustomResourceDefinition keeps only its names and its API group.

    Args:
        kubectl: The program kubectl, with the options that select the cluster.
        kind: Kind of the objects, such as ``Pod``.
        resource: Name of the kind for kubectl, such as ``pods``.
        arguments: Further arguments of kubectl, such as ``--all-namespaces``.
    """
    items = json.loads(kubectl.run("get", resource, "--output=json", _TIMEOUT, *arguments)).get("items", [])
    if kind == "CustomResourceDefinition":
        items = [_names_of(one) for one in items]
    return by_kind(items).get(kind, [])


def _names_of(definition: Mapping[str, Any]) -> dict[str, Any]:
    about = {name: spec(definition).get(name) for name in ("group", "names")}
    named = {"name": metadata(definition)["name"]}
    return {"apiVersion": definition["apiVersion"], "kind": definition["kind"], "metadata": named, "spec": about}


def _read_config_maps(kubectl: Kubectl, view: View, found: _Reading) -> None:
    """Read the ConfigMaps that device plugins mount, and add them to ``found``.

    Args:
        kubectl: The program kubectl, with the options that select the cluster.
        view: Objects that the command has already read, such as the DaemonSets of device plugins.
        found: Result to which the function adds the ConfigMaps, and the reason if the user may not read one of them.
    """
    wanted = {(key(one)[0], name) for one in view.programs("device plugin") for name in config_maps(one)}
    made = []
    for namespace, name in sorted(wanted):
        try:
            text = kubectl.run("get", "configmap", name, f"--namespace={namespace}", "--output=json", _TIMEOUT)
            made.append(json.loads(text))
        except KubectlError as error:
            if error.is_forbidden:
                found.unread["ConfigMap"] = f"you have no right to get configmaps in the namespace {namespace}"
    found.objects["ConfigMap"] = by_kind(made).get("ConfigMap", [])


# --- logs --------------------------------------------------------------------------------------------------------


def _logs(kubectl: Kubectl, view: View, found: _Reading, *, all_logs: bool) -> dict[tuple[str, str], str]:
    """Return the last log lines of GPU components, such as device plugins, by pairs of namespace and pod name.

    The result omits pods without log lines. It contains the logs of at most 40 pods.

    Args:
        kubectl: The program kubectl, with the options that select the cluster.
        view: Objects of the cluster.
        found: Result of reading the cluster. If the function cannot read a log, it adds the reason.
        all_logs: Whether to read the logs of all GPU components. If False, read only the logs of components that do not
            work.
    """
    pods = [pod for pod in view.program_pods() if status(pod).get("containerStatuses") and spec(pod).get("nodeName")]
    chosen = sorted((pod for pod in pods if all_logs or view.is_suspicious(pod)), key=is_ready)
    if len(chosen) > _MOST_LOGS:
        found.unread["logs"] = f"the command reads the logs of at most {_MOST_LOGS} pods, not of all {len(chosen)}"
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        texts = pool.map(lambda pod: _log(kubectl, pod, found), chosen[:_MOST_LOGS])
        return {key(pod): text for pod, text in zip(chosen, texts, strict=False) if text}


def _log(kubectl: Kubectl, pod: Manifest, found: _Reading) -> str:
    namespace, name = key(pod)
    states = [one for part in ("initContainerStatuses", "containerStatuses") for one in status(pod).get(part) or ()]
    parts = []
    for one in states:
        state, flags = one.get("state") or {}, ["--tail=300"]
        if "waiting" in state and not one.get("restartCount"):
            continue
        if "waiting" in state:
            flags.append("--previous")
        try:
            parts.append(kubectl.run("logs", name, f"--namespace={namespace}", f"--container={one['name']}", *flags))
        except KubectlError as error:
            reason = "you have no right to get pods/log" if error.is_forbidden else "its node did not answer"
            found.unread.setdefault("logs", f"the log of Pod {namespace}/{name} is missing: {reason}")
    return cleaned_log("\n".join(parts))


# --- Talos -------------------------------------------------------------------------------------------------------


def _services(view: View, found: _Reading) -> dict[str, dict[str, str]]:
    """Return the states of the services on Talos nodes, such as ``Running``, by node name and then by service name.

    The dict is empty if talosctl is not installed or has no configuration.

    Args:
        view: Objects of the cluster.
        found: Result of reading the cluster. If the function cannot read the services, it adds the reason.
    """
    config = os.environ.get("TALOSCONFIG") or str(Path.home() / ".talos" / "config")
    if shutil.which("talosctl") is None or not Path(config).is_file():
        found.unread["services"] = "talosctl is not installed, or has no configuration"
        return {}
    made = {}
    for node in view.talos:
        name = metadata(node)["name"]
        command = ["talosctl", "--nodes", _address(node), "services"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
            made[name] = services_of(done.stdout)
        except (OSError, subprocess.SubprocessError):
            found.unread["services"] = f"talosctl could not read the services of Node {name}"
    return made


def _address(node: Manifest) -> str:
    found = (one["address"] for one in status(node).get("addresses") or () if one.get("type") == "InternalIP")
    return str(next(found, metadata(node)["name"]))


def services_of(text: str) -> dict[str, str]:
    """Return the state of each Talos service, by service name, from the output of ``talosctl services``."""
    rows = [line.split() for line in text.splitlines()[1:]]
    return {row[1]: row[2] for row in rows if len(row) > 2}

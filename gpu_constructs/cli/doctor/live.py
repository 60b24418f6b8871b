"""Reader of a live cluster: objects and logs by kubectl, and the services of Talos nodes by talosctl."""

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
    """The result of reading a cluster: objects by kind, and reasons why it does not contain others."""

    objects: dict[str, list[Manifest]] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)
    partial: dict[str, str] = field(default_factory=dict)


def read(kubectl: Kubectl, namespace: str, plan: Plan | None, *, all_logs: bool) -> Snapshot:
    """Return the state of a cluster. The function only reads from the cluster.

    Args:
        kubectl: Program with the options that select the cluster.
        namespace: Namespace of the workloads; empty for all.
        plan: Expected content of the cluster, which the result contains for the checks; None if the user passes none.
        all_logs: Whether to read the logs of all GPU programs. If False, read only those of programs that do not work.

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

    If the user has no right to read all, read those of one namespace.

    Args:
        kubectl: Program that reads the cluster.
        kind: Kind of the objects.
        resource: Name of the kind for kubectl, such as ``pods``.
        namespace: Namespace to read if the user has no right to all; empty if there is none.
        found: Objects by kind, and reasons why a kind is missing.
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
    """Return the objects of a kind, without the data that the command does not need.

    A custom resource definition keeps only its names and its API group.

    Args:
        kubectl: Program that reads the cluster.
        kind: Kind of the objects.
        resource: Name of the kind for kubectl, such as ``pods``.
        arguments: Further arguments of kubectl, such as a namespace.
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
        kubectl: Program that reads the cluster.
        view: Objects that the command has already read.
        found: Objects by kind, and reasons why a kind is missing.
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
    """Return the last log lines of GPU programs, such as device plugins, by pairs of namespace and pod name.

    The result omits pods without log lines. If there are too many pods, it also omits some of them.

    Args:
        kubectl: Program that reads the cluster.
        view: Objects of the cluster.
        found: Result of reading the cluster. If the function cannot read a log, it adds the reason.
        all_logs: Whether to read the logs of all programs. If False, read only those of programs that do not work.
    """
    pods = [pod for pod in view.program_pods() if status(pod).get("containerStatuses") and spec(pod).get("nodeName")]
    chosen = sorted((pod for pod in pods if all_logs or view.is_suspicious(pod)), key=is_ready)
    if len(chosen) > _MOST_LOGS:
        found.unread["logs"] = f"the command reads the logs of {_MOST_LOGS} pods, and {len(chosen)} pods matter"
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
    """Return the states of the services of Talos nodes as a nested dict: by node name, then by service name.

    The dict is empty if talosctl is not installed or has no configuration.

    Args:
        view: Objects of the cluster.
        found: Result of reading the cluster. If the function cannot read services, it adds the reason.
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
    """Return the states by service from the table that ``talosctl services`` prints."""
    rows = [line.split() for line in text.splitlines()[1:]]
    return {row[1]: row[2] for row in rows if len(row) > 2}

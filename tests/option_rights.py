"""What the pods of DevicePluginChart and ValidationBridge hold, option by option; docs/security.md says why."""

import warnings
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from cdk8s import App, Chart, Testing

import invariants
from gpu_constructs import (
    DevicePluginChart,
    Kubernetes,
    PluginConfig,
    Sharing,
    Talos,
    ValidationBridge,
)
from held import held, rights
from tables import beside

Manifest = dict[str, Any]
Rights = set[tuple[str, str]]

TWO = {"exclusive": PluginConfig(), "shared": PluginConfig(sharing=Sharing.time_slicing(replicas=4))}
OPTIONS = beside(__file__, "option_rights")["options"]

BRIDGES: Mapping[str, Mapping[str, Any]] = {
    'strategy="markers"': {},
    'strategy="stage"': {"strategy": "stage"},
    'required_devices=["nvidiactl", ...]': {"required_devices": ["nvidiactl"]},
}

PLUGIN, GFD, MPS = "device plugin", "GPU Feature Discovery", "MPS control daemon"
MASTER, WORKER, GC, UPDATER = "NFD master", "NFD worker", "NFD garbage collector", "NFD topology updater"
BRIDGE = "validation bridge"
_COMPONENTS = {
    "device-plugin": PLUGIN,
    "gpu-feature-discovery": GFD,
    "mps-control-daemon": MPS,
    "master": MASTER,
    "worker": WORKER,
    "gc": GC,
    "topology-updater": UPDATER,
    "validation-bridge": BRIDGE,
}


def _manifests(options: Mapping[str, Any]) -> list[Manifest]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        chart = DevicePluginChart(App(), "nvidia-device-plugin", **{"platform": Kubernetes(), **options})
        return list(Testing.synth(chart))


def _bridge(options: Mapping[str, Any]) -> list[Manifest]:
    chart = Chart(App(), "gpu-operator")
    ValidationBridge(chart, "bridge", platform=Talos("1.12"), **options)
    return list(Testing.synth(chart))


def held_by(manifests: list[Manifest]) -> Rights:
    """Component and right, pods' and roles' alike."""
    found: Rights = set()
    for manifest in manifests:
        label = manifest["metadata"].get("labels", {}).get("app.kubernetes.io/component", "")
        # The name of a configuration may stand behind the program's.
        component = next((name for program, name in _COMPONENTS.items() if label.startswith(program)), "")
        if invariants.pod_specs(manifest):
            found |= {(component, rule) for _, rule in held([manifest, *_accounts(manifests)])}
        for _, rule in rights([manifest]):
            scope = "in every namespace" if manifest["kind"] == "ClusterRole" else "in its namespace"
            found |= {(component, f"may {verb} {what} {scope}") for verb, what in _grants(rule)}
    return found


def _accounts(manifests: list[Manifest]) -> Iterator[Manifest]:
    return (manifest for manifest in manifests if manifest["kind"] == "ServiceAccount")


def _grants(rule: Manifest) -> Iterator[tuple[str, str]]:
    names = f" {', '.join(rule['resourceNames'])}" if "resourceNames" in rule else ""
    for group in rule["apiGroups"]:
        for resource in rule["resources"]:
            yield ", ".join(rule["verbs"]), f"{resource}.{group}".rstrip(".") + names


def _without_what_privileged_implies(found: Rights) -> Rights:
    privileged = {component for component, rule in found if rule == "privileged"}
    implied = ("keeps default capabilities", "may escalate privileges")
    return {(component, rule) for component, rule in found if component not in privileged or rule not in implied}


@cache
def held_by_default() -> Rights:
    """What the pods hold with nothing asked for."""
    return held_by(_manifests({}))


@cache
def added() -> Mapping[str, Rights]:
    """What each option adds to that."""
    return {
        option: _without_what_privileged_implies(held_by(_manifests(given)) - held_by_default())
        for option, given in OPTIONS.items()
    }


@cache
def held_by_bridge() -> Mapping[str, Rights]:
    """What the bridge holds with each option."""
    return {option: held_by(_bridge(given)) for option, given in BRIDGES.items()}

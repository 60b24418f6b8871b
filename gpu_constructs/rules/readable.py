"""Manifests of anybody made fit to be read: lists taken apart, members of the wrong type left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpu_constructs import _kinds
from gpu_constructs.pod_specs import holds_pods

Manifest = Mapping[str, Any]

# Each stands for one thing wherever the rules look.
_MAPPINGS = frozenset(
    {
        *(
            "affinity",
            "data",
            "default",
            "defaultRequest",
            "devices",
            "emptyDir",
            "exactly",
            "hard",
            "labels",
            "max",
            "min",
        ),
        *("annotations", "livenessProbe", "matchLabels", "metadata", "nodeAffinity", "nodeSelector", "resources"),
        *("resourcesPerNode", "rollingUpdate", "scaleTargetRef", "securityContext", "selector", "spec", "startupProbe"),
        *("strategy", "template", "trainer"),
    }
)
_LISTS = frozenset(
    {
        *(
            "containers",
            "env",
            "envFrom",
            "ephemeralContainers",
            "firstAvailable",
            "initContainers",
            "matchExpressions",
        ),
        *(
            "nodeSelectorTerms",
            "resourceClaims",
            "rules",
            "tolerations",
            "volumeMounts",
            "volumes",
            "volumeClaimTemplates",
        ),
    }
)
# A mapping in a container, a list in a LimitRange, a claim or an affinity to pods.
_EITHER = frozenset({"limits", "requests", "requiredDuringSchedulingIgnoredDuringExecution"})
_READ = frozenset(
    {
        ("", "LimitRange"),
        ("", "PersistentVolumeClaim"),
        ("", "ResourceQuota"),
        ("apps.kruise.io", "CloneSet"),
        ("apps.kruise.io", "StatefulSet"),
        ("autoscaling", "HorizontalPodAutoscaler"),
        ("keda.sh", "ScaledJob"),
        ("keda.sh", "ScaledObject"),
        ("nfd.k8s-sigs.io", "NodeFeature"),
        ("nfd.k8s-sigs.io", "NodeFeatureRule"),
        ("policy", "PodDisruptionBudget"),
        ("resource.k8s.io", "ResourceClaim"),
        ("resource.k8s.io", "ResourceClaimTemplate"),
        ("trainer.kubeflow.org", "TrainJob"),
    }
)


def readable(manifests: Sequence[Manifest]) -> tuple[list[Manifest], list[int]]:
    """Give every object, those of a List too, and for each the index of the manifest that it comes from."""
    found = [(_cleaned(one), index) for index, manifest in enumerate(manifests) for one in _apart(manifest)]
    return [manifest for manifest, _ in found], [index for _, index in found]


def _apart(manifest: Manifest) -> Iterator[Manifest]:
    items, of = manifest.get("items"), _kind_of_items(manifest)
    if of is None:
        yield manifest
        return
    for item in items if isinstance(items, list) else ():
        if isinstance(item, Mapping):
            # The API server leaves both out of what it lists by kind.
            whole = {**of, **item}
            if all(isinstance(whole.get(key), str) for key in ("apiVersion", "kind")):
                yield from _apart(whole)


def _kind_of_items(manifest: Manifest) -> Manifest | None:
    """Give what is known of the members of a list of objects; None where a manifest is no such list."""
    api_version, kind = manifest.get("apiVersion"), str(manifest.get("kind"))
    if api_version == "v1" and kind == "List":
        return {}
    metadata = manifest.get("metadata")
    # An object may have such a kind and items too, but a list has no name.
    is_named = isinstance(metadata, Mapping) and "name" in metadata
    if kind.endswith("List") and kind != "List" and isinstance(manifest.get("items"), list) and not is_named:
        return {"apiVersion": api_version, "kind": kind.removesuffix("List")}
    return None


def _cleaned(manifest: Manifest) -> Manifest:
    api_version, kind = manifest["apiVersion"], manifest["kind"]
    if holds_pods(api_version, kind) or (_kinds.group_of(api_version), kind) in _READ:
        made = {key: _part(key, value) for key, value in manifest.items()}
    else:
        made = dict(manifest)
    metadata = manifest.get("metadata")
    made["metadata"] = _part("metadata", metadata) if isinstance(metadata, Mapping) else {}
    return made


def _part(key: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        if key in _LISTS:
            return []
        return {name: _part(name, member) for name, member in value.items() if isinstance(name, str)}
    if isinstance(value, list):
        if key in _MAPPINGS:
            return {}
        if key not in _LISTS and key not in _EITHER:
            return [_part("", member) for member in value]
        kept = [_part("", member) for member in value if isinstance(member, Mapping)]
        return [one for one in kept if isinstance(one.get("key"), str)] if key == "matchExpressions" else kept
    if key in _MAPPINGS or key in _EITHER:
        return {}
    if key == "values" and value is not None:
        return [value]
    return [] if key in _LISTS else value

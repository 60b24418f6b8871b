"""Manifests of anybody made fit to be read, and what is read of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.kube import fields, kinds, pod_specs

Manifest = Mapping[str, Any]

_GPU = re.compile(r"nvidia\.com/(gpu|gpu\.shared|mig-.+)\Z")
_NUMBER = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:[eE]([+-]?)0*([0-9]+))?\Z")
# Kubernetes takes no more of anything.
_MOST = Decimal(2**63 - 1)
_PERCENT = re.compile(r"([0-9]{1,9})%\Z")
_LONGEST_SHOWN = 60

# Each stands for one thing wherever the rules look.
_MAPPINGS = frozenset(
    "affinity annotations data default defaultRequest devices emptyDir exactly hard labels livenessProbe matchLabels "
    "max metadata min nodeAffinity nodeSelector resources resourcesPerNode rollingUpdate scaleTargetRef "
    "securityContext selector spec startupProbe strategy template trainer".split()
)
_LISTS = frozenset(
    "containers env envFrom ephemeralContainers firstAvailable initContainers matchExpressions nodeSelectorTerms "
    "resourceClaims rules tolerations volumeMounts volumes volumeClaimTemplates".split()
)
# A mapping in a container, a list in a LimitRange, a claim or an affinity to pods.
_EITHER = frozenset({"limits", "requests", "requiredDuringSchedulingIgnoredDuringExecution"})
_TYPED = _MAPPINGS | _LISTS | _EITHER | {"values"}
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
    """Return every object, those of a List too, and for each the index of the manifest that it comes from."""
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
    """Return what is known of the members of a list of objects; None where a manifest is no such list."""
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
    if pod_specs.holds_pods(api_version, kind) or (kinds.group_of(api_version), kind) in _READ:
        made = {key: _part(key, value) for key, value in manifest.items()}
    else:
        made = dict(manifest)
    metadata = manifest.get("metadata")
    made["metadata"] = _part("metadata", metadata) if isinstance(metadata, Mapping) else {}
    return made


def _part(key: str, value: Any) -> Any:
    if key not in _TYPED and isinstance(value, str | int | None):
        return value
    if isinstance(value, Mapping) and key not in _LISTS:
        return {name: _part(name, member) for name, member in value.items() if isinstance(name, str)}
    if isinstance(value, list) and key not in _MAPPINGS:
        return _items(key, value)
    if key in _MAPPINGS or key in _EITHER:
        return {}
    if key == "values" and value is not None:
        return [value]
    return [] if key in _LISTS else value


def _items(key: str, items: list[Any]) -> list[Any]:
    if key not in _LISTS and key not in _EITHER:
        return [_part("", member) for member in items]
    kept = [_part("", member) for member in items if isinstance(member, Mapping)]
    return [one for one in kept if isinstance(one.get("key"), str)] if key == "matchExpressions" else kept


def mapping(value: object) -> Mapping[str, Any]:
    """Return a mapping as it is, anything else as an empty one."""
    return value if isinstance(value, Mapping) else {}


def at(value: object, path: str) -> Mapping[str, Any]:
    """Return the mapping at the end of keys that dots join; an empty one where there is none."""
    for step in path.split("."):
        value = mapping(value).get(step)
    return mapping(value)


def members(value: object) -> list[Mapping[str, Any]]:
    """Return the mappings of a list; of anything else none."""
    return [member for member in value if isinstance(member, Mapping)] if isinstance(value, list) else []


def number(value: object, default: int) -> int:
    """Return a whole number from 0 on; the default where it is none."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return max(value, 0) if isinstance(value, int) and not isinstance(value, bool) else default


def share(value: object, of: int, *, up: bool) -> int | None:
    """Return what a number or a percentage comes to; None where it is neither."""
    percent = _PERCENT.match(value) if isinstance(value, str) else None
    if percent is None:
        given = number(value, -1)
        return None if given < 0 else given
    hundredths = int(percent[1]) * of
    return -(-hundredths // 100) if up else hundredths // 100


def quantity(given: object) -> Decimal | None:
    """Return what an amount in a manifest says as a number; None where Kubernetes would not read it."""
    if isinstance(given, bool) or not isinstance(given, int | float | str):
        return None
    text = str(given)
    number = _NUMBER.match(text)
    if number:
        mantissa, sign, exponent = number.groups(default="")
        # Decimal takes no exponent of any length.
        found = Decimal(f"{mantissa}e{sign}{exponent if len(exponent) < 3 else 99}" if exponent else mantissa)
        return max(-_MOST, min(found, _MOST))
    try:
        fields.quantity("amount", text)
    except GpuConstructsError:
        return None
    return min(fields.amount(text), _MOST)


def annotations_of(manifest: Manifest) -> Mapping[str, Any]:
    """Return the annotations of an object or a pod template."""
    return (manifest.get("metadata") or {}).get("annotations") or {}


def kind_of(manifest: Manifest) -> tuple[str, str]:
    """Return the API group and the kind."""
    return kinds.group_of(manifest["apiVersion"]), manifest["kind"]


def namespace_of(manifest: Manifest) -> str:
    """Return the namespace an object is in where it is in one."""
    return str((manifest.get("metadata") or {}).get("namespace") or "default")


def name_of(manifest: Manifest) -> str:
    """Return the name of an object."""
    return str((manifest.get("metadata") or {}).get("name"))


def labels_of(manifest: Manifest) -> Mapping[str, Any]:
    """Return the labels of an object or a pod template."""
    return (manifest.get("metadata") or {}).get("labels") or {}


def is_gpu_name(resource: str) -> bool:
    """Check whether the plugin gives GPUs, slots of them or MIG devices this name by itself."""
    return bool(_GPU.match(resource))


def amounts(container: Manifest, section: str) -> Mapping[str, Any]:
    """Return the limits or requests of a container."""
    given = (container.get("resources") or {}).get(section)
    return given if isinstance(given, Mapping) else {}


def plain_manifests(field: str, given: object) -> list[dict[str, Any]]:
    """Return the objects; an empty document of YAML, which is None, is left out.

    Raises:
        GpuConstructsError: Not a list, or a member that is not an object.
    """
    if isinstance(given, Mapping):
        raise GpuConstructsError(f"{field} must be a list of objects; got one; put it in a list: {field}=[...]")
    if not isinstance(given, Iterable) or isinstance(given, str | bytes):
        raise GpuConstructsError(
            f"{field} must be a list of objects as plain data; got {_shown(given)}; read the file first, by "
            "yaml.safe_load_all(text)"
        )
    found = [(index, one) for index, one in enumerate(given) if one is not None]
    for index, one in found:
        if not isinstance(one, Mapping) or not all(isinstance(one.get(key), str) for key in ("apiVersion", "kind")):
            raise GpuConstructsError(
                f"{field}[{index}] must be an object of Kubernetes, a mapping with apiVersion and kind; got "
                f"{_shown(one)}; leave it out"
            )
    return [dict(one) for _, one in found]


def _shown(given: object) -> str:
    text = repr(given)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}… ({type(given).__name__})"

"""Functions that remove values of a wrong type from manifests, and that read values from manifests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.kube import fields, kinds, pod_specs

Manifest = Mapping[str, Any]

_GPU = fields.regex(r"nvidia\.com/(gpu|gpu\.shared|mig-.+)\Z")
_NUMBER = fields.regex(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:[eE]([+-]?)0*([0-9]+))?\Z")
# The largest amount in Kubernetes.
_MOST = Decimal(2**63 - 1)
_PERCENT = fields.regex(r"([0-9]{1,9})%\Z")
_LONGEST_SHOWN = 60

# Keys whose value has the same type in all objects that the rules read.
_MAPPINGS = frozenset(
    "affinity annotations data default defaultRequest devices emptyDir exactly hard labels livenessProbe matchLabels "
    "max metadata min nodeAffinity nodeSelector resources resourcesPerNode rollingUpdate scaleTargetRef "
    "securityContext selector spec startupProbe strategy template trainer".split()
)
_LISTS = frozenset(
    "containers env envFrom ephemeralContainers firstAvailable initContainers matchExpressions nodeSelectorTerms "
    "resourceClaims rules tolerations volumeMounts volumes volumeClaimTemplates".split()
)
# Keys whose value is a mapping in a container, and a list in a LimitRange, a claim or a pod affinity.
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
    """Return two lists: the objects in a list of manifests, and for each object the index of its manifest.

    Each item of a manifest of the kind ``List`` is a separate object. In the objects, values of a wrong type are absent
    or empty.
    """
    found = [(_cleaned(one), index) for index, manifest in enumerate(manifests) for one in _apart(manifest)]
    return [manifest for manifest, _ in found], [index for _, index in found]


def _apart(manifest: Manifest) -> Iterator[Manifest]:
    """Yield the items of a List as separate manifests. For any other object, yield its manifest unchanged."""
    items, of = manifest.get("items"), _kind_of_items(manifest)
    if of is None:
        yield manifest
        return
    for item in items if isinstance(items, list) else ():
        if isinstance(item, Mapping):
            # The items of a typed list, such as a PodList, have neither of these keys.
            whole = {**of, **item}
            if all(isinstance(whole.get(key), str) for key in ("apiVersion", "kind")):
                yield from _apart(whole)


def _kind_of_items(manifest: Manifest) -> Manifest | None:
    """Return the default ``apiVersion`` and ``kind`` of the items of a list object, such as a ``PodList``, as a dict.

    The dict is empty for the kind ``List``, whose items state their own kind. Return None if the manifest is not a list
    object.
    """
    api_version, kind = manifest.get("apiVersion"), str(manifest.get("kind"))
    if api_version == "v1" and kind == "List":
        return {}
    metadata = manifest.get("metadata")
    # A custom resource can have a kind that ends in List, but only a list has no name.
    is_named = isinstance(metadata, Mapping) and "name" in metadata
    if kind.endswith("List") and kind != "List" and isinstance(manifest.get("items"), list) and not is_named:
        return {"apiVersion": api_version, "kind": kind.removesuffix("List")}
    return None


def _cleaned(manifest: Manifest) -> Manifest:
    """Return a copy of a manifest in which an empty value replaces each value of a wrong type.

    For kinds of which the checks read only ``metadata``, the function changes only ``metadata``.
    """
    api_version, kind = manifest["apiVersion"], manifest["kind"]
    if pod_specs.holds_pods(api_version, kind) or (kinds.group_of(api_version), kind) in _READ:
        made = {key: _part(key, value) for key, value in manifest.items()}
    else:
        made = dict(manifest)
    metadata = manifest.get("metadata")
    made["metadata"] = _part("metadata", metadata) if isinstance(metadata, Mapping) else {}
    return made


def _part(key: str, value: Any) -> Any:
    """Return the value of a key in a manifest, without values of a wrong type at any depth.

    If the value itself has a wrong type for the key, return an empty mapping or list. For example, the value of
    ``containers`` must be a list.
    """
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
    """Return the items of a list in a manifest, without items of a wrong type.

    Args:
        key: Key of the list in the manifest.
        items: Items of the list.
    """
    if key not in _LISTS and key not in _EITHER:
        return [_part("", member) for member in items]
    kept = [_part("", member) for member in items if isinstance(member, Mapping)]
    return [one for one in kept if isinstance(one.get("key"), str)] if key == "matchExpressions" else kept


def mapping(value: object) -> Mapping[str, Any]:
    """Return a value unchanged if it is a mapping. Otherwise, return an empty mapping."""
    return value if isinstance(value, Mapping) else {}


def at(value: object, path: str) -> Mapping[str, Any]:
    """Return the mapping at a path of keys, such as ``spec.template``. Return an empty mapping if there is none."""
    for step in path.split("."):
        value = mapping(value).get(step)
    return mapping(value)


def members(value: object) -> list[Mapping[str, Any]]:
    """Return the items of a list that are mappings. Return an empty list if the value is not a list."""
    return [member for member in value if isinstance(member, Mapping)] if isinstance(value, list) else []


def texts(value: object) -> list[str]:
    """Return the items of a list, converted to texts. Return an empty list if the value is not a list."""
    return [str(member) for member in value] if isinstance(value, list) else []


def number(value: object, default: int) -> int:
    """Return a value if it is a whole number of at least 0. Return 0 for a negative whole number.

    Return the default for all other values.
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return max(value, 0) if isinstance(value, int) and not isinstance(value, bool) else default


def share(value: object, of: int, *, up: bool) -> int | None:
    """Return the pod count in a field such as ``maxSurge``, which contains a number or a percentage.

    Return None if the value is neither a whole number of at least 0 nor a percentage.

    Args:
        value: Number, which the function returns unchanged, or percentage, such as ``"25%"``.
        of: Total to which the percentage refers, such as the number of replicas.
        up: Whether to round a percentage of the total up. Otherwise, the function rounds it down.
    """
    percent = _PERCENT.match(value) if isinstance(value, str) else None
    if percent is None:
        given = number(value, -1)
        return None if given < 0 else given
    hundredths = int(percent[1]) * of
    return -(-hundredths // 100) if up else hundredths // 100


def quantity(given: object) -> Decimal | None:
    """Return an amount of a resource, such as ``500m``, as a number, such as 0.5.

    Return None if the amount is not valid.
    """
    if isinstance(given, bool) or not isinstance(given, int | float | str):
        return None
    text = str(given)
    number = _NUMBER.match(text)
    if number:
        mantissa, sign, exponent = number.groups(default="")
        # Decimal does not accept very long exponents.
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
    """Return the API group and the kind of an object, for example ``apps`` and ``Deployment``."""
    return kinds.group_of(manifest["apiVersion"]), manifest["kind"]


def namespace_of(manifest: Manifest) -> str:
    """Return the namespace of an object. Return ``default`` if the manifest does not set a namespace."""
    return str((manifest.get("metadata") or {}).get("namespace") or "default")


def name_of(manifest: Manifest) -> str:
    """Return the name of an object."""
    return str((manifest.get("metadata") or {}).get("name"))


def labels_of(manifest: Manifest) -> Mapping[str, Any]:
    """Return the labels of an object or a pod template."""
    return (manifest.get("metadata") or {}).get("labels") or {}


def is_gpu_name(resource: str) -> bool:
    """Check whether the NVIDIA device plugin uses a resource name for GPUs, slots of GPUs, or MIG devices."""
    return bool(_GPU.match(resource))


def amounts(container: Manifest, section: str) -> Mapping[str, Any]:
    """Return the limits or the requests of a container, as amounts by resource, such as ``{"nvidia.com/gpu": 1}``.

    Args:
        container: Container in a pod spec.
        section: ``limits`` or ``requests``.
    """
    given = (container.get("resources") or {}).get(section)
    return given if isinstance(given, Mapping) else {}


def plain_manifests(field: str, given: object) -> list[dict[str, Any]]:
    """Return the Kubernetes objects in a list that the user passes, as plain data.

    The result omits None, which stands for an empty YAML document.

    Args:
        field: Name of the user's argument, for messages, such as ``other_manifests``.
        given: Value of the argument.

    Raises:
        GpuConstructsError: The value is not a list, or an item is not a Kubernetes object.
    """
    if isinstance(given, Mapping):
        raise GpuConstructsError(f"{field} must be a list of objects, got one. Put it in a list: {field}=[...]")
    if not isinstance(given, Iterable) or isinstance(given, str | bytes):
        raise GpuConstructsError(
            f"{field} must be a list of objects as plain data, got {_shown(given)}. Read a file with "
            "yaml.safe_load_all(text)"
        )
    found = [(index, one) for index, one in enumerate(given) if one is not None]
    for index, one in found:
        if not isinstance(one, Mapping) or not all(isinstance(one.get(key), str) for key in ("apiVersion", "kind")):
            raise GpuConstructsError(
                f"{field}[{index}] must be a Kubernetes object with apiVersion and kind, got "
                f"{_shown(one)}. Leave it out"
            )
    return [dict(one) for _, one in found]


def _shown(given: object) -> str:
    """Return a short text that describes a wrong value in a message."""
    text = repr(given)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}… ({type(given).__name__})"

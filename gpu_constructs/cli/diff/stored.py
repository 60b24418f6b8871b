"""Objects in the form in which the API server stores them: with its defaults, but without fields such as ``uid``."""

from __future__ import annotations

import base64
import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpu_constructs.kube import kinds
from gpu_constructs.kube.plain_data import at
from gpu_constructs.kube.pod_specs import containers, pod_specs
from gpu_constructs.kube.tables import table

Object = dict[str, Any]

_OF_THE_SERVER = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid")
_ANNOTATIONS_OF_OTHERS = (
    "deployment.kubernetes.io/revision",
    "deprecated.daemonset.template.generation",
    "kubectl.kubernetes.io/last-applied-configuration",
)
# The keys that identify the items of a list, by the name of the list.
# kubernetes/api@v0.36.0:core/v1/types.go, the comments +listMapKey and +patchMergeKey
_NAME = ("name",)
KEYS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("containers", "initContainers", "ephemeralContainers", "volumes", "env", "imagePullSecrets"), _NAME
    ),
    **dict.fromkeys(
        ("webhooks", "resourceClaims", "volumeClaimTemplates", "validations", "variables", "versions"), _NAME
    ),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "ports": ("containerPort", "port", "protocol"),
    "hostAliases": ("ip",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
}


def mappings_at(holder: Any, path: str) -> Iterator[Object]:
    """Yield each mapping at a path of nested data.

    If a key on the path has a list as its value, the path continues in each item.

    Args:
        holder: Mapping or list at which the path starts.
        path: Keys with dots between them, such as ``spec.containers``.
    """
    for one in holder if isinstance(holder, list) else [holder]:
        if isinstance(one, dict) and not path:
            yield one
        elif isinstance(one, dict):
            key, _, rest = path.partition(".")
            yield from mappings_at(one.get(key), rest)


def stored(manifest: Mapping[str, Any]) -> Object:
    """Return a copy of an object in the form in which the API server stores it, so that code can compare two objects.

    The copy has the default values of built-in kinds, and quantities in canonical form, such as ``1`` for ``1000m``. It
    has no status and no other data that only the API server sets, such as ``uid``. Empty lists and null values are
    absent, because they mean the same as a field that is not set.
    """
    made: Object = _without_nothing(copy.deepcopy(dict(manifest)))
    made.pop("status", None)
    metadata = made["metadata"]
    for name in _OF_THE_SERVER:
        metadata.pop(name, None)
    for name in _ANNOTATIONS_OF_OTHERS:
        metadata.get("annotations", {}).pop(name, None)
    for name in ("annotations", "labels"):
        if metadata.get(name) == {}:
            del metadata[name]
    if made["kind"] == "Secret" and "stringData" in made:
        given = {key: base64.b64encode(str(one).encode()).decode() for key, one in made.pop("stringData").items()}
        made["data"] = {**made.get("data", {}), **given}
    if kinds.group_of(made["apiVersion"]) in kinds.BUILT_IN_GROUPS:
        _fill(made)
        kinds.make_canonical(made)
    return made


def _without_nothing(value: Any) -> Any:
    """Return a copy of nested data without the mapping entries whose value is None or an empty list."""
    if isinstance(value, Mapping):
        return {key: _without_nothing(one) for key, one in value.items() if one is not None and one != []}
    return [_without_nothing(one) for one in value] if isinstance(value, list) else value


def _fill(manifest: Object) -> None:
    """Add the default values of the API server to an object of a built-in kind. The function changes the object."""
    specs = list(pod_specs(manifest))
    for spec in specs:
        _fill_pod(spec, has_requests=manifest["kind"] == "Pod")
    for row in table("gpu_constructs.cli.diff", "defaults.yaml"):
        holders = specs if row.get("pod") else [manifest] * (manifest["kind"] in row["kinds"])
        for target in (one for holder in holders for one in mappings_at(holder, row["at"])):
            if all(target.get(key) == value for key, value in row.get("if", {}).items()):
                for key, value in row["set"].items():
                    target.setdefault(key, copy.deepcopy(value))
    if manifest["kind"] == "Service":
        for port in mappings_at(manifest, "spec.ports"):
            port.setdefault("targetPort", port.get("port"))


def _fill_pod(spec: Object, *, has_requests: bool) -> None:
    """Add the default values of a pod spec that depend on other values.

    Args:
        spec: Pod spec, which the function changes in place.
        has_requests: Whether to set missing requests to the limits. The API server does so for a Pod, but not for a pod
            template.
    """
    spec.pop("serviceAccount", None)
    for variable in mappings_at([spec], "containers.env"):
        if variable.get("value") == "":
            del variable["value"]
    for container in containers(spec):
        image = str(container.get("image", ""))
        tag = image.rpartition("/")[2].partition(":")[2]
        latest = "@" not in image and tag in ("", "latest")
        container.setdefault("imagePullPolicy", "Always" if latest else "IfNotPresent")
        limits = at(container, "resources.limits")
        if has_requests and isinstance(limits, dict) and limits:
            requests = container["resources"].setdefault("requests", {})
            container["resources"]["requests"] = {**limits, **requests}


def overlaid(live: Any, given: Any, name: str = "") -> Any:
    """Return the value of a field after ``kubectl apply`` of a new object to an object in the cluster.

    Mappings merge. Lists whose items have a key, such as the ``name`` of containers, merge by this key. Any other new
    value replaces the value in the cluster.

    Args:
        live: Value in the cluster.
        given: Value in the new object.
        name: Name of the field, such as ``containers``, which determines the key of list items. Empty for a whole
            object.
    """
    if isinstance(live, dict) and isinstance(given, dict):
        merged = {key: overlaid(live.get(key), one, key) for key, one in given.items()}
        return {**live, **merged}
    if isinstance(live, list) and isinstance(given, list):
        old, new = by_key(name, live), by_key(name, given)
        if old is not None and new is not None:
            kept = [one for key, one in old.items() if key not in new]
            return [*(overlaid(old.get(key), one) for key, one in new.items()), *kept]
    return given


def by_key(name: str, items: list[Any], guessed: Sequence[str] = ()) -> dict[str, Any] | None:
    """Return the items of a list by the value that identifies each item, such as the name of a container.

    Return None if the items do not have such a value, or if two items have the same value.

    Args:
        name: Name of the field with the list, such as ``containers``.
        items: Items of the list.
        guessed: Fields to try, such as ``name``, if the library does not know the fields that identify items of this
            list.
    """
    for keys in [KEYS[name]] if name in KEYS else [(key,) for key in guessed]:
        found: dict[str, Any] = {}
        for item in items if all(isinstance(item, dict) for item in items) else ():
            whole = {"protocol": "TCP", **item} if name == "ports" else item
            found["/".join(str(whole[key]) for key in keys if key in whole)] = item
        if len(found) == len(items) and "" not in found:
            return found
    return None

"""A manifest as flat fields, so that two manifests with the same meaning have the same fields.

The path of a field depends neither on the order of lists nor on names that a Helm chart chooses, such as the names of
volumes. If the caller knows the role of an object, such as ``plugin``, the role replaces the name of the object.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from gpu_constructs.facts import readable
from gpu_constructs.kube.tables import table

Path = tuple[str, ...]
Value = str | int | float | bool | None
Fields = dict[Path, Value]


class Names:
    """Replacements for the names of other objects in the fields of an object. This base class replaces no names."""

    def refer(self, kind: str, name: str) -> str:
        """Return the text that replaces the name of another object in a field. This base class returns the name."""
        return name

    def files(self, config_map: str) -> Sequence[str]:
        """Return the data keys of a ConfigMap. This base class returns an empty sequence."""
        return ()


AS_WRITTEN = Names()

POD_KINDS = ("DaemonSet", "Deployment", "Job", "StatefulSet", "ReplicaSet")

_KUBERNETES = table(__package__, "kubernetes.yaml")
DEFAULTS: tuple[tuple[str, Value], ...] = tuple(_KUBERNETES["defaults"].items())
"""Values that the API server adds, by pattern of the field. A field with such a value equals a missing field."""

_EMPTY_IS_ABSENT = frozenset(_KUBERNETES["empty_is_absent"])
"""Names of fields of pod specs and workloads for which an empty value means the same as no value."""

_FREE_KEYS = frozenset({"labels", "annotations", "matchLabels", "nodeSelector", "properties", "ports"})
"""Names of fields that are mappings with free keys. A path contains such a key in brackets: ``labels[app]``."""


def show(path: Path) -> str:
    """Return a path as text, such as ``pod.containers[ollama].image``."""
    return ".".join(path).replace(".[", "[")


_SEGMENT = re.compile(r"\[[^\]]*\]|[^.\[\]]+")


@lru_cache(maxsize=2**17)
def matches(pattern: str, path: Path) -> bool:
    """Check whether a path fits a pattern, in which ``[*]`` stands for any segment in brackets.

    ``[a|b]`` is ``[a]`` or ``[b]``, and ``*`` any segment without brackets. A final ``**`` is any number of segments.
    """
    segments = _segments(pattern)
    if segments and segments[-1] == "**":
        segments, path = segments[:-1], path[: len(segments) - 1]
    return len(segments) == len(path) and all(map(_fits, segments, path))


_SEGMENTS: dict[str, tuple[str, ...]] = {}


def _segments(pattern: str) -> tuple[str, ...]:
    if pattern not in _SEGMENTS:
        _SEGMENTS[pattern] = tuple(_SEGMENT.findall(pattern))
    return _SEGMENTS[pattern]


def _fits(pattern: str, segment: str) -> bool:
    if pattern == segment:
        return True
    if pattern.startswith("[") != segment.startswith("["):
        return False
    words = pattern.strip("[]").split("|")
    return "*" in words or segment.removeprefix("[").removesuffix("]") in words


def fields_of(manifest: Mapping[str, Any], names: Names = AS_WRITTEN) -> Fields:
    """Return the value of each field by path. Omit the name of the object, and values that the API server adds."""
    found: Fields = {}
    for path, value in _manifest(manifest, names):
        while path in found:
            path = (*path, "[again]")
        found[path] = value
    if found.get(("pod", "dnsPolicy")) == "ClusterFirstWithHostNet" and ("pod", "hostNetwork") not in found:
        # kubernetes/kubernetes@v1.33.0:pkg/kubelet/network/dns/dns.go: without the host's network it is ClusterFirst.
        del found["pod", "dnsPolicy"]
    return found


def _manifest(manifest: Mapping[str, Any], names: Names) -> Iterator[tuple[Path, Value]]:
    rest = dict(manifest)
    kind = rest.pop("kind", "")
    metadata = dict(rest.pop("metadata", None) or {})
    metadata.pop("name", None)
    yield from _members(metadata, ("metadata",))
    if kind in POD_KINDS:
        spec = dict(rest.pop("spec", None) or {})
        template = dict(spec.pop("template", None) or {})
        yield from _without_defaults(_members(spec, ("spec",)))
        yield from _without_defaults(_members(template.pop("metadata", None) or {}, ("pod",)))
        yield from _without_defaults(_pod(dict(template.pop("spec", None) or {}), names))
        yield from _members(template, ("template",))
    if kind == "NetworkPolicy" and rest.get("spec"):
        rest["spec"] = _network_policy(dict(rest["spec"]))
    if kind == "PodMonitor" and rest.get("spec"):
        rest["spec"] = {**rest["spec"], "selector": _selector(rest["spec"].get("selector") or {})}
    if kind in ("Role", "ClusterRole"):
        for rule in rest.pop("rules", None) or ():
            yield from _rights(rule)
    if kind in ("RoleBinding", "ClusterRoleBinding"):
        yield from _binding(rest.pop("roleRef", None) or {}, rest.pop("subjects", None) or (), names)
    yield from _members(rest, ())


def _network_policy(spec: dict[str, Any]) -> dict[str, Any]:
    """Return the spec of a NetworkPolicy without empty lists of rules, and with ports as the keys of a dict.

    Source: kubernetes/kubernetes@v1.33.0:staging/src/k8s.io/api/networking/v1/types.go, Ingress and Egress.
    """
    for direction in ("ingress", "egress"):
        rules = spec.pop(direction, None) or ()
        if rules:
            spec[direction] = [
                {**rule, "ports": {canonical({"protocol": "TCP", **port}): True for port in rule["ports"]}}
                if rule.get("ports")
                else rule
                for rule in rules
            ]
    return spec


def _selector(selector: Mapping[str, Any]) -> dict[str, Any]:
    """Return a label selector in which each ``In`` expression with only one value becomes a plain label."""
    labels = dict(selector.get("matchLabels") or {})
    others = []
    for expression in selector.get("matchExpressions") or ():
        values = list(expression.get("values") or ())
        if expression.get("operator") == "In" and len(values) == 1 and expression["key"] not in labels:
            labels[expression["key"]] = values[0]
        else:
            others.append(expression)
    return {**selector, "matchLabels": labels or None, "matchExpressions": others or None}


def _without_defaults(leaves: Iterator[tuple[Path, Value]]) -> Iterator[tuple[Path, Value]]:
    for path, value in leaves:
        last = path[-1] if path else ""
        if not any(value == default and matches(pattern, path) for pattern, default in _DEFAULTS[last]):
            yield path, value


class _ByLastSegment(dict[str, list[tuple[str, Value]]]):
    def __missing__(self, key: str) -> list[tuple[str, Value]]:
        return []


_DEFAULTS = _ByLastSegment()
for _pattern, _default in DEFAULTS:
    _DEFAULTS.setdefault(_segments(_pattern)[-1], []).append((_pattern, _default))


def _leaves(value: Any, path: Path) -> Iterator[tuple[Path, Value]]:
    """Yield a pair of path and value for each field in a value, at any depth. Omit fields that are null."""
    if value is None:
        return
    if isinstance(value, Mapping):
        if not value and path[-1] not in _EMPTY_IS_ABSENT:
            yield path, "{}"
        yield from _members(value, path)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        if not value and path[-1] not in _EMPTY_IS_ABSENT:
            yield path, "[]"
        for key, item in zip(_keys(value), value, strict=True):
            yield from _leaves(item, (*path, f"[{key}]"))
    else:
        yield path, value


def _members(mapping: Mapping[str, Any], path: Path) -> Iterator[tuple[Path, Value]]:
    is_free = bool(path) and path[-1] in _FREE_KEYS
    for key, member in mapping.items():
        yield from _leaves(member, (*path, f"[{key}]" if is_free else str(key)))


def _keys(items: Sequence[Any]) -> list[str]:
    names = [item.get("name") if isinstance(item, Mapping) else None for item in items]
    if None not in names and len(set(map(str, names))) == len(names):
        return [str(name) for name in names]
    return [str(place) for place in range(len(items))]


def _pod(spec: dict[str, Any], names: Names) -> Iterator[tuple[Path, Value]]:
    for key in _LISTS_OF_OBJECTS:
        if not _is_list_of_objects(spec.get(key)):
            # The API server would reject this manifest, but the difference must show.
            yield ("pod", key), canonical(spec.pop(key))
    volumes: dict[str, Any] = {}
    for volume in spec.pop("volumes", None) or ():
        if volume.get("name") in volumes:
            yield ("pod", "volumes", f"[{volume['name']}]"), "is there twice"
        volumes[str(volume.get("name"))] = volume
    shared = _shared_volumes(spec, volumes)
    for kind in ("initContainers", "containers"):
        before: list[str] = []
        for container in spec.pop(kind, None) or ():
            name = str(container.get("name"))
            if kind == "initContainers" and before:
                yield ("pod", kind, f"[{name}]", "after"), ", ".join(before)
            before.append(name)
            yield from _container(dict(container), ("pod", kind, f"[{name}]"), volumes, shared, names)
    for name, volume in volumes.items():
        if name not in shared:
            source = {key: member for key, member in volume.items() if key != "name"}
            yield from _members(source, ("pod", "volumes", f"[{canonical(source)}]"))
    for toleration in spec.pop("tolerations", None) or ():
        yield ("pod", "tolerations", f"[{canonical(toleration_of(toleration))}]"), True
    account = spec.pop("serviceAccountName", None)
    if account is not None:
        yield ("pod", "serviceAccountName"), names.refer("ServiceAccount", account)
    yield from _affinity(dict(spec.pop("affinity", None) or {}))
    yield from _members(spec, ("pod",))


_LISTS_OF_OBJECTS = ("volumes", "initContainers", "containers", "tolerations")


def _is_list_of_objects(value: Any) -> bool:
    return value is None or (isinstance(value, list | tuple) and all(isinstance(item, Mapping) for item in value))


def _shared_volumes(spec: Mapping[str, Any], volumes: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return a dict from the name of each volume to the names of the containers that mount it."""
    mounted: dict[str, list[str]] = {}
    for kind in ("initContainers", "containers"):
        for container in spec.get(kind) or ():
            for mount in container.get("volumeMounts") or ():
                mounted.setdefault(mount["name"], []).append(str(container.get("name")))
    return mounted


def _container(
    container: dict[str, Any], path: Path, volumes: Mapping[str, Any], shared: Mapping[str, list[str]], names: Names
) -> Iterator[tuple[Path, Value]]:
    container.pop("name", None)
    for variable in container.pop("env", None) or ():
        here = (*path, "env", f"[{variable.get('name')}]")
        rest = {key: member for key, member in variable.items() if key not in ("name", "value")}
        if not rest.get("valueFrom") or variable.get("value") is not None:
            # An empty value and none are the same empty variable.
            yield here, "" if variable.get("value") is None else variable["value"]
        yield from _members(rest, here)
    for mount in container.pop("volumeMounts", None) or ():
        here = (*path, "mounts", f"[{mount.get('mountPath')}]")
        volume = volumes.get(mount["name"])
        if volume is None:
            yield (*here, "volume"), f"{mount['name']} is not there"
            volume = {}
        yield from _source(volume, here, shared.get(mount["name"], ()), names)
        rest = {key: member for key, member in mount.items() if key not in ("name", "mountPath")}
        yield from _members(rest, here)
    for port in container.pop("ports", None) or ():
        yield from _leaves(port, (*path, "ports", f"[{port.get('name', port.get('containerPort'))}]"))
    resources = container.pop("resources", None) or {}
    if not isinstance(resources, Mapping):
        yield (*path, "resources"), canonical(resources)
        resources = {}
    for kind, amounts in resources.items():
        if kind in ("requests", "limits") and isinstance(amounts, Mapping | None):
            for resource, amount in (amounts or {}).items():
                yield (*path, "resources", kind, f"[{resource}]"), quantity(amount)
        else:
            yield from _leaves(amounts, (*path, "resources", kind))
    security = dict(container.pop("securityContext", None) or {})
    for kind, listed in (security.pop("capabilities", None) or {}).items():
        for name in listed or ():
            yield (*path, "securityContext", "capabilities", kind, f"[{name}]"), True
    yield from _members(security, (*path, "securityContext"))
    image = container.get("image")
    if "imagePullPolicy" not in container and isinstance(image, str):
        container["imagePullPolicy"] = _pull_policy(image)
    yield from _arguments(container.pop("args", None) or (), (*path, "args"))
    yield from _members(container, path)


def _pull_policy(image: str) -> str:
    """Return the pull policy that the API server sets for an image (pkg/apis/core/v1/defaults.go)."""
    tag = image.rpartition("/")[2].partition(":")[2]
    return "Always" if "@" not in image and tag in ("", "latest") else "IfNotPresent"


def _source(volume: Mapping[str, Any], path: Path, users: Sequence[str], names: Names) -> Iterator[tuple[Path, Value]]:
    source = {key: member for key, member in volume.items() if key != "name"}
    config_map = source.pop("configMap", None)
    if config_map is not None:
        yield (*path, "configMap"), names.refer("ConfigMap", str(config_map.get("name")))
        yield from _members({k: v for k, v in config_map.items() if k not in ("name", "items")}, (*path, "configMap"))
        every = [{"key": key, "path": key} for key in names.files(str(config_map.get("name")))]
        for item in config_map.get("items") or every:
            here = (*path, "configMap", "files", f"[{item.get('path')}]")
            yield from _members({key: member for key, member in item.items() if key != "path"}, here)
    if "emptyDir" in source:
        yield (*path, "shared with"), ", ".join(sorted(set(users)))
    yield from _members(source, path)


def _arguments(args: Sequence[Any], path: Path) -> Iterator[tuple[Path, Value]]:
    """Yield the path and value of each argument. Paths end with indices, or with flags if all arguments are flags."""
    words = [str(word) for word in args]
    if all(word.startswith("-") for word in words):
        flags: dict[str, list[str]] = {}
        for word in words:
            flags.setdefault(word.partition("=")[0], []).append(word.partition("=")[2])
        for flag, values in flags.items():
            # The program decides which of two equal flags counts.
            yield (*path, f"[{flag}]"), " then ".join(values)
    else:
        for place, word in enumerate(words):
            yield (*path, f"[{place}]"), word


def _affinity(affinity: dict[str, Any]) -> Iterator[tuple[Path, Value]]:
    node = dict(affinity.pop("nodeAffinity", None) or {})
    required = dict(node.pop("requiredDuringSchedulingIgnoredDuringExecution", None) or {})
    for term in required.pop("nodeSelectorTerms", None) or ():
        yield ("pod", "nodes", f"[{canonical(term_of(term))}]"), True
    yield from _members(required, ("pod", "nodes"))
    for preferred in node.pop("preferredDuringSchedulingIgnoredDuringExecution", None) or ():
        term = term_of(preferred.get("preference") or {})
        rest = {key: member for key, member in preferred.items() if key != "preference"}
        yield ("pod", "preferred nodes", f"[{canonical({'preference': term, **rest})}]"), True
    yield from _members(node, ("pod", "affinity", "nodeAffinity"))
    yield from _members(affinity, ("pod", "affinity"))


def term_of(term: Mapping[str, Any]) -> dict[str, Any]:
    """Return a node selector term with sorted expressions and sorted values."""
    return {
        kind: sorted(
            ({**e, **({"values": sorted(e["values"])} if e.get("values") else {})} for e in found), key=canonical
        )
        if isinstance(found, list)
        else found
        for kind, found in term.items()
        if found
    }


def node_term(segment: str) -> dict[str, Any]:
    """Parse a path segment that contains a node selector term as JSON in brackets."""
    return dict(json.loads(segment[1:-1]))


def toleration_of(toleration: Mapping[str, Any]) -> dict[str, Any]:
    """Return a toleration without empty fields. If it has no operator, add the default ``Equal``."""
    words = {key: value for key, value in toleration.items() if value not in (None, "")}
    return {"operator": "Equal", **words}


def _rights(rule: Mapping[str, Any]) -> Iterator[tuple[Path, Value]]:
    rest = {k: v for k, v in rule.items() if k not in ("apiGroups", "resources", "resourceNames", "verbs")}
    if rest:
        yield from _leaves(rest, ("rules", f"[{canonical(rule)}]"))
    for group in rule.get("apiGroups") or ("(no group)",):
        for resource in rule.get("resources") or ("(nothing)",):
            for name in rule.get("resourceNames") or ("",):
                for verb in rule.get("verbs") or ():
                    what = f"{resource}.{group}" if group else resource
                    yield ("rules", f"[{verb} {what}{' ' + name if name else ''}]"), True


def _binding(
    role: Mapping[str, Any], subjects: Sequence[Mapping[str, Any]], names: Names
) -> Iterator[tuple[Path, Value]]:
    if role:
        yield ("roleRef", "name"), names.refer(str(role.get("kind")), str(role.get("name")))
    yield from _members({key: member for key, member in role.items() if key != "name"}, ("roleRef",))
    for subject in subjects:
        who = names.refer(str(subject.get("kind")), str(subject.get("name")))
        rest = {key: member for key, member in subject.items() if key != "name"}
        yield from _members(rest, ("subjects", f"[{who}]"))


def canonical(value: Any) -> str:
    """Return a value as JSON text with sorted keys, so that equal values have equal texts."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def quantity(amount: Any) -> str:
    """Return a Kubernetes quantity as a plain number, so that 0.1 and 100m are equal."""
    value = readable.quantity(amount)
    return str(amount) if value is None else f"{value.normalize():f}"

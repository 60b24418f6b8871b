"""Strict schema checks: built-in kinds per Kubernetes release, custom resources against their CRD."""

import json
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from itertools import groupby
from pathlib import Path
from typing import Any

import jsonschema_rs
import referencing
import yaml
from jsonschema import Draft202012Validator

from gpu_constructs.kube.pod_specs import pod_spec_paths

Manifest = Mapping[str, Any]
SCHEMAS = Path(str(resources.files("kubernetes_validate"))) / "kubernetes-json-schema"
TRIED = ("spec", "trialTemplate", "trialSpec")
"""Where a Katib Experiment has the object that it tries; the CRD leaves that open, with all of the spec."""

CRD_FOLDER = Path(__file__).parents[1] / "imports" / "crds"

SUPPORTED_RELEASES: tuple[str, ...] = tuple(
    f"1.{minor}"
    for minor in sorted(int(folder.name.split(".")[1]) for folder in SCHEMAS.glob("v1.*-local-strict"))
    if minor >= 27
)


@dataclass(frozen=True, eq=False)
class Schema:
    """A JSON schema that may refer to the definitions of Kubernetes releases, such as ``k8s:1.37#/$defs/...``.

    A compiled validator decides first. The one in Python, which takes 200 times as long, finds the words for errors.
    """

    structure: Mapping[str, Any]
    release: str

    @cached_property
    def _compiled(self) -> jsonschema_rs.Validator:
        return jsonschema_rs.validator_for(dict(self.structure), registry=_compiled_definitions(self.release))

    def errors(self, value: Any, at: tuple[str | int, ...] = ()) -> list[str]:
        """Each error of a value that stands at a path of an object."""
        if self._compiled.is_valid(value):
            return []
        validator = Draft202012Validator(self.structure, registry=_definitions(self.release))
        found = [f"{_path((*at, *e.absolute_path))}: {e.message}" for e in validator.iter_errors(value)]
        assert found, f"the two validators disagree on {value}"
        return found


CustomResources = dict[tuple[str, str], Schema]
"""Schemas by (apiVersion, kind)."""


def schema_errors(
    manifest: Manifest,
    releases: Iterable[str] = SUPPORTED_RELEASES,
    app_crds: CustomResources | None = None,
) -> list[str]:
    """Every schema error of a manifest; a kind that nothing defines is one.

    A custom resource has to satisfy the committed CRD and, where the app brings its own, that one as well; its
    pods, moreover, every release, and the object that an Experiment tries is checked as any other.
    """
    kind = _kind(manifest)
    releases = tuple(releases)
    definitions = [crds for crds in (committed_crds(), app_crds or {}) if kind in crds]
    if definitions:
        found = [error for crds in definitions for error in custom_resource_errors(manifest, crds)]
        found += _by_release(lambda release: _pod_errors(manifest, release), releases, known=found)
        if kind[1] == "Experiment" and isinstance(tried := _value_at(manifest, TRIED), dict):
            found += [f"{_path(TRIED)}.{error}" for error in schema_errors(tried, releases, app_crds)]
        return list(dict.fromkeys(found))
    if not any(kind in _built_in_kinds(release) for release in releases):
        return [f"{kind[0]} {kind[1]}: neither a kind of Kubernetes {_span(releases)} nor of a known CRD"]
    return _by_release(lambda release: kubernetes_errors(manifest, release), releases)


def _by_release(check: Callable[[str], list[str]], releases: Iterable[str], known: Iterable[str] = ()) -> list[str]:
    """The errors of a check that differs by release, each with its releases; those known already left out."""
    releases_of: dict[str, list[str]] = {}
    for release in releases:
        for error in check(release):
            releases_of.setdefault(error, []).append(release)
    known = set(known)
    return [f"{e} (Kubernetes {_span(found_in)})" for e, found_in in releases_of.items() if e not in known]


def _pod_errors(manifest: Manifest, release: str) -> list[str]:
    """The errors of the pods in a custom resource; those of KServe have other fields, which its CRDs check."""
    if _kind(manifest)[0].startswith("serving.kserve.io/"):
        return []
    pod = _pod_spec(release)
    return [
        error
        for path in pod_spec_paths(manifest)
        if path[: len(TRIED)] != TRIED
        for error in pod.errors(_value_at(manifest, path), path)
    ]


def _value_at(value: Any, path: Iterable[str | int]) -> Any:
    """What stands at a path, None where nothing does."""
    for step in path:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int):
            value = value[step]
        else:
            return None
    return value


def kubernetes_errors(manifest: Manifest, release: str) -> list[str]:
    """The errors of a built-in object under the strict schema of one release, such as "1.27"."""
    api_version, kind = _kind(manifest)
    schema = _built_in_kinds(release).get((api_version, kind))
    return [f"{api_version} {kind}: not served"] if schema is None else schema.errors(manifest)


def custom_resource_errors(manifest: Manifest, crds: CustomResources) -> list[str]:
    """The errors of a custom resource under its CRD, with unknown fields refused as strict decoding does."""
    api_version, kind = _kind(manifest)
    schema = crds.get((api_version, kind))
    return [f"{api_version} {kind}: no CRD defines it"] if schema is None else schema.errors(manifest)


def custom_resources(definitions: Iterable[Manifest]) -> CustomResources:
    """The kinds that CustomResourceDefinition objects bring; other objects are passed over."""
    return {
        (f"{definition['spec']['group']}/{version['name']}", definition["spec"]["names"]["kind"]): (
            Schema(_json_schema(version["schema"]["openAPIV3Schema"], has_metadata=True), SUPPORTED_RELEASES[-1])
        )
        for definition in definitions
        if definition["kind"] == "CustomResourceDefinition"
        for version in definition["spec"]["versions"]
    }


@cache
def committed_crds() -> CustomResources:
    """The kinds of `imports/crds/`."""
    files = sorted(CRD_FOLDER.glob("*.yaml"))
    return custom_resources(crd for file in files for crd in load_yaml(file.read_text(encoding="utf-8")))


def load_yaml(text: str) -> list[Any]:
    """All documents of a text as Kubernetes reads them; a key given twice is a `yaml.YAMLError`."""
    return list(yaml.load_all(text, _KubernetesLoader))


class _KubernetesLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Reads dates and `=` as strings and refuses duplicate keys."""

    yaml_implicit_resolvers = {  # noqa: RUF012
        first: [
            (tag, pattern)
            for tag, pattern in resolvers
            if tag not in ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:value")
        ]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"duplicate key {key!r}", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


def _kind(manifest: Manifest) -> tuple[str, str]:
    return str(manifest.get("apiVersion")), str(manifest.get("kind"))


def _path(keys: Iterable[str | int]) -> str:
    steps = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys)
    return steps.lstrip(".") or "(object)"


def _span(releases: Iterable[str]) -> str:
    """Join releases, runs of successive ones shortened: "1.27 to 1.29, 1.31"."""
    minors = enumerate(sorted(int(release.split(".")[1]) for release in releases))
    runs = [[minor for _, minor in run] for _, run in groupby(minors, lambda pair: pair[1] - pair[0])]
    return ", ".join(f"1.{run[0]} to 1.{run[-1]}" if len(run) > 1 else f"1.{run[0]}" for run in runs)


@cache
def _document(release: str) -> dict[str, Any]:
    """The definitions of a release, as one JSON schema."""
    (folder,) = SCHEMAS.glob(f"v{release}.*-local-strict")
    document: dict[str, Any] = json.loads((folder / "_definitions.json").read_bytes())
    return document


@cache
def _definitions(release: str) -> referencing.Registry[Any]:
    resource = referencing.Resource.from_contents(_document(release))
    return referencing.Registry().with_resource(f"k8s:{release}", resource)


@cache
def _compiled_definitions(release: str) -> jsonschema_rs.Registry:
    return jsonschema_rs.Registry([(f"k8s:{release}", _document(release))])


@cache
def _definition(release: str, name: str) -> Schema:
    return Schema({"$ref": f"k8s:{release}#/$defs/{name}"}, release)


@cache
def _pod_spec(release: str) -> Schema:
    return _definition(release, "io.k8s.api.core.v1.PodSpec")


@cache
def _built_in_kinds(release: str) -> dict[tuple[str, str], Schema]:
    return {
        (f"{kind['group']}/{kind['version']}".lstrip("/"), kind["kind"]): _definition(release, name)
        for name, definition in _document(release)["$defs"].items()
        for kind in definition.get("x-kubernetes-group-version-kind", ())
    }


def _json_schema(structural: Mapping[str, Any], *, has_metadata: bool = False) -> dict[str, Any]:
    """Turn a structural schema into a JSON schema that refuses what the API server would drop.

    `allOf`, `anyOf`, `oneOf` and `not` stay as they are: they constrain values and never declare a field.
    """
    schema = dict(structural)
    properties = {name: _json_schema(value) for name, value in structural.get("properties", {}).items()}
    if has_metadata or structural.get("x-kubernetes-embedded-resource"):
        name = {"type": "string"}
        metadata = _definition(SUPPORTED_RELEASES[-1], "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta").structure
        properties |= {"apiVersion": name, "kind": name, "metadata": metadata}
        schema["required"] = sorted({"apiVersion", "kind", *structural.get("required", ())})
    if properties:
        schema["properties"] = properties
    if "items" in structural:
        schema["items"] = _json_schema(structural["items"])
    if isinstance(structural.get("additionalProperties"), Mapping):
        schema["additionalProperties"] = _json_schema(structural["additionalProperties"])
    elif structural.get("type") == "object" and not structural.get("x-kubernetes-preserve-unknown-fields"):
        schema.setdefault("additionalProperties", False)
    types = [schema["type"]] if "type" in schema else []
    if structural.get("x-kubernetes-int-or-string"):
        types = ["integer", "string"]
        schema.pop("anyOf", None)  # repeats the two types
    if types and structural.get("nullable"):
        types.append("null")
        if "enum" in schema:
            schema["enum"] = [*schema["enum"], None]
    if types:
        schema["type"] = types
    return schema

"""The comparison of one chart render with what this library makes of the same values, field by field."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

from gpu_constructs.cli.compare.fields import Fields, Names, Path, canonical, fields_of, node_term, show
from parity_cases import UnreadableCase, load
from parity_chart import NODE_LABEL, UNKNOWN, UNLABELLED, Manifest, Release
from parity_settings import PROGRAMS, effective, file_settings, variables

CHECKSUM: Path = ("pod", "annotations", "[checksum/config]")
A_CHECKSUM = "(a SHA-256)"
_HEX = re.compile(r"[0-9a-f]{64}\Z")


class _Absent:
    def __repr__(self) -> str:
        return "nothing"


ABSENT: Any = _Absent()
"""What stands where one side has no such field."""


@dataclass(frozen=True)
class Difference:
    """A field that is not the same: on which object, where, and what each side says.

    Attributes:
        object: ``<role> <kind>``; the role says what it is, whatever its name.
        config: The configuration of several whose nodes this is about.
        path: The field.
        chart: What the chart says.
        ours: What this library says.
        note: What else there is to say.
    """

    object: str
    config: str | None
    path: Path
    chart: Any
    ours: Any
    note: str = ""

    def __str__(self) -> str:
        where = f"{self.object}{f' of config {self.config!r}' if self.config else ''}: {show(self.path)}"
        note = f" ({self.note})" if self.note else ""
        return f"{where}: chart {_short(self.chart)}, ours {_short(self.ours)}{note}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 160 else f"{text[:157]}..."


@dataclass
class Side(Names):
    """The objects of one side by what they are."""

    objects: dict[tuple[str, str], Manifest] = field(default_factory=dict)
    strangers: list[Manifest] = field(default_factory=list)
    names: dict[tuple[str, str], str] = field(default_factory=dict)

    @classmethod
    def of(cls, manifests: Iterable[Manifest], roles: Mapping[tuple[str, str], Sequence[str]]) -> Side:
        side = cls()
        for manifest in manifests:
            kind, name = str(manifest.get("kind")), str((manifest.get("metadata") or {}).get("name"))
            candidates = roles.get((kind, name), ())
            role = _by_container(manifest, candidates) if len(candidates) > 1 else next(iter(candidates), None)
            if role is None or (role, kind) in side.objects:
                side.strangers.append(manifest)
            else:
                side.objects[role, kind] = manifest
                side.names[kind, name] = role.partition("@")[0]
        return side

    def refer(self, kind: str, name: str) -> str:
        """Return the role of an object that is there, or the name of one that someone else makes."""
        return self.names.get((kind, name), name)

    def files(self, config_map: str) -> Sequence[str]:
        """Return the keys of a ConfigMap that is there."""
        found = (
            m for (_, kind), m in self.objects.items() if kind == "ConfigMap" and m["metadata"]["name"] == config_map
        )
        return list(_data(next(found, None)))

    def get(self, role: str, kind: str) -> Manifest | None:
        return self.objects.get((role, kind))

    def has(self, role: str, kind: str) -> bool:
        """Whether there is an object of the role for any configuration."""
        return any(found.partition("@")[0] == role and of_kind == kind for found, of_kind in self.objects)


def _by_container(manifest: Manifest, roles: Sequence[str]) -> str | None:
    """Return the role of an object, by the program of its container, if several objects have one name."""
    spec = ((manifest.get("spec") or {}).get("template") or {}).get("spec") or {}
    names = {container.get("name") for container in spec.get("containers") or ()}
    return next((role for role in roles if PROGRAMS.get(role.partition("@")[0]) in names), None)


@dataclass
class Context:
    """What a deviation's condition may look at."""

    release: Release
    chart: Side
    ours: Side
    warnings: list[str]
    fields: defaultdict[tuple[str, str, str, str | None], Fields] = field(default_factory=lambda: defaultdict(dict))

    @property
    def version(self) -> str:
        return self.release.version

    def fields_of(self, side: str, difference: Difference) -> Fields:
        """Return all fields of the object that a difference is about, on one side."""
        role, _, kind = difference.object.partition(" ")
        return self.fields[side, role, kind, difference.config]

    def setting(self, side: str, program: str, config: str | None, path: str) -> Any:
        """Return what a program runs with on one side; nothing where it does not run."""
        return self.fields[side, program, "DaemonSet", config].get(("settings", *path.split(".")), ABSENT)

    def is_dropped(self, key: str) -> bool:
        """Whether the user was warned that this key of the values is dropped."""
        return any(dropped == key for dropped, _ in self.dropped)

    @cached_property
    def dropped(self) -> list[tuple[str, str]]:
        """The keys of the values that are dropped, each with why."""
        found = (re.match(r"values\.(\S+) is dropped: it (.*)", text, re.S) for text in self.warnings)
        return [(match[1], match[2]) for match in found if match]


@dataclass
class Result:
    """What came of one case."""

    matched: int = 0
    intended: list[tuple[str, Difference]] = field(default_factory=list)
    unexplained: list[Difference] = field(default_factory=list)
    dropped: list[tuple[str, str]] = field(default_factory=list)
    """What the user was warned of about a key of the values, each with the number of its deviation."""
    advice: list[str] = field(default_factory=list)
    """What else the user was warned of."""


class Judge(Protocol):
    """Says which differences are intended; ``deviations`` is the one for the chart."""

    def explain(self, difference: Difference, context: Context) -> str | None:
        """Return the number of the deviation that a difference is, or None."""

    def repaired(self, manifest: Manifest, release: Release) -> tuple[Manifest, str | None]:
        """Return an object of the chart as it was meant, and the number of the deviation that says so."""

    def of_warning(self, text: str) -> str | None:
        """Return the number of the deviation that a warning about a key of the values is about."""


def compare(
    release: Release,
    chart: Sequence[Manifest],
    ours: Sequence[Manifest],
    warned: Sequence[str],
    judge: Judge,
    phantoms: Mapping[tuple[str, str], str] | None = None,
) -> Result:
    """Compare every field of every object.

    Args:
        release: What was installed, with its values.
        chart: The chart's objects.
        ours: This library's.
        warned: What this library warned of.
        judge: Says which differences are intended.
        phantoms: Objects of ours that are here only to be compared, by kind and name: in truth we make none, for the
            reason that the deviation of that number gives.
    """
    result = Result()
    meant = [judge.repaired(manifest, release) for manifest in chart]
    chart = [manifest for manifest, _ in meant]
    context = Context(release, Side.of(chart, release.chart_roles()), Side.of(ours, release.our_roles()), list(warned))
    pairs = {(pair.role, pair.kind, pair.config): pair for pair in _pairs(context)}
    for key, pair in pairs.items():
        context.fields["chart", *key] = pair.chart or {}
        context.fields["ours", *key] = pair.ours or {}
    for manifest, number in meant:
        if number is not None:
            what = f"{manifest['metadata']['name']} {manifest['kind']}"
            result.intended.append((number, Difference(what, None, (), "a broken template", "what it was meant to be")))
    for text in warned:
        number = judge.of_warning(text)
        if number is not None:
            result.dropped.append((number, text))
        elif text.startswith("values."):
            result.unexplained.append(Difference("the values", None, (), ABSENT, text, "no deviation is about this"))
        else:
            result.advice.append(text)
    for pair in pairs.values():
        phantom = (phantoms or {}).get((pair.kind, str(pair.our_name)))
        _compare(pair, context, judge, result, phantom)
    for side, is_chart in ((context.chart, True), (context.ours, False)):
        for manifest in side.strangers:
            name = f"{(manifest.get('metadata') or {}).get('name')} {manifest.get('kind')}"
            what = "an object of unknown role, or one too many"
            result.unexplained.append(
                Difference(name, None, (), what if is_chart else ABSENT, ABSENT if is_chart else what)
            )
    return result


@dataclass(frozen=True)
class _Pair:
    role: str
    kind: str
    config: str | None
    chart: Fields | None
    ours: Fields | None
    chart_name: str | None = None
    our_name: str | None = None


def _pairs(context: Context) -> Iterator[_Pair]:
    """Put each object of one side beside its like; what serves several configurations once for each."""
    kinds = {(role.partition("@")[0], kind) for role, kind in (*context.chart.objects, *context.ours.objects)}
    for role, kind in sorted(kinds):
        is_per_config = (kind == "DaemonSet" and role in PROGRAMS) or (kind == "ConfigMap" and role == "configs")
        for config in configs_of(context.release) if is_per_config else (None,):
            yield _pair(context, role, kind, config)


def configs_of(release: Release) -> Sequence[str | None]:
    """The configurations that nodes can have: by name where there are several, None for the only or an empty one."""
    names = list(release.configs)
    if not names or names == [release.default_config]:
        return [None]
    return [*names, *([None] if release.default_config is None else [])]


def _pair(context: Context, role: str, kind: str, config: str | None) -> _Pair:
    theirs = context.chart.get(role, kind)
    ours = context.ours.get(role if config in (None, context.release.our_default) else f"{role}@{config}", kind)
    return _Pair(
        role,
        kind,
        config,
        None if theirs is None else _chart_fields(context, role, theirs, config),
        None if ours is None else _our_fields(context, role, ours),
        None if theirs is None else theirs["metadata"].get("name"),
        None if ours is None else ours["metadata"].get("name"),
    )


def _chart_fields(context: Context, role: str, manifest: Manifest, config: str | None) -> Fields:
    release = context.release
    if role == "configs" and manifest["kind"] == "ConfigMap":
        return _config_map_fields(context, manifest, _name_of_config(context, config), context.chart)
    if role.startswith("nfd-") and manifest["kind"] == "ConfigMap":
        return _with_parsed_data(manifest, context.chart)
    fields = fields_of(manifest, context.chart)
    if _HEX.match(str(fields.get(CHECKSUM))) and "checksum/config" not in (release.value("podAnnotations") or {}):
        # It is taken over text that only Helm knows.
        fields[CHECKSUM] = A_CHECKSUM
    if role in PROGRAMS and manifest["kind"] == "DaemonSet":
        file: Fields | None = {}
        if release.configs:
            name = _name_of_config(context, config)
            text = _data(context.chart.get("configs", "ConfigMap")).get(str(name)) if name is not None else ""
            file = {("missing",): str(name)} if text is None else file_settings(text, release.version)
        elif release.external_config_map:
            file = None
        fields = _with_settings(fields, role, file, release.version)
        fields.update(_chart_nodes(context, config))
    return fields


def _our_fields(context: Context, role: str, manifest: Manifest) -> Fields:
    if role == "configs" and manifest["kind"] == "ConfigMap":
        return _config_map_fields(context, manifest, "config.yaml", context.ours)
    if role.startswith("nfd-") and manifest["kind"] == "ConfigMap":
        return _with_parsed_data(manifest, context.ours)
    fields = fields_of(manifest, context.ours)
    if role in PROGRAMS and manifest["kind"] == "DaemonSet":
        fields = _with_settings(fields, role, _our_file(context, role, manifest), context.version)
        fields = _with_nodes(fields, context)
    return fields


def _name_of_config(context: Context, config: str | None) -> str | None:
    return config if config is not None else context.release.default_config


def _data(manifest: Manifest | None) -> Mapping[str, str]:
    return (manifest or {}).get("data") or {}


def _our_file(context: Context, role: str, manifest: Manifest) -> Fields | None:
    """Follow CONFIG_FILE through the mounts to the text of the file; None where config-manager links it."""
    spec = manifest["spec"]["template"]["spec"]
    main = next((c for c in spec.get("containers") or () if c.get("name") == PROGRAMS[role]), {})
    path = next((v.get("value") for v in main.get("env") or () if v.get("name") == "CONFIG_FILE"), None)
    if path is None:
        return {}
    folder, _, name = str(path).rpartition("/")
    sources = {volume["name"]: volume for volume in spec.get("volumes") or ()}
    mounts = {str(m.get("mountPath")).rstrip("/"): sources.get(m["name"], {}) for m in main.get("volumeMounts") or ()}
    source = mounts.get(folder, {})
    if "emptyDir" in source:
        return None
    config_map = (source.get("configMap") or {}).get("name")
    for (_, kind), found in context.ours.objects.items():
        if kind == "ConfigMap" and found["metadata"]["name"] == config_map and name in _data(found):
            return file_settings(_data(found)[name], context.version)
    return {("missing",): str(path)}


def _with_settings(fields: Fields, program: str, file: Fields | None, version: str) -> Fields:
    """Take the variables that are settings out of the fields, and put in what the program runs with."""
    env_path: Path = ("pod", "containers", f"[{PROGRAMS[program]}]", "env")
    names = {(*env_path, f"[{name}]"): name for name in variables(program, version)}
    env = {names[path]: value for path, value in fields.items() if path in names}
    settings = effective(program, env, file, version)
    kept = {path: value for path, value in fields.items() if path not in names}
    return {**kept, **{("settings", *path): value for path, value in settings.items()}}


def _config_map_fields(context: Context, manifest: Manifest, key: str | None, side: Side) -> Fields:
    """Return the file of one configuration by what it says; other keys only where they are no configuration."""
    rest = {name: member for name, member in manifest.items() if name != "data"}
    fields = fields_of(rest, side)
    for name, text in _data(manifest).items():
        if name == key:
            fields.update({("file", *path): value for path, value in file_settings(str(text), context.version).items()})
        elif name not in context.release.configs:
            fields["data", f"[{name}]"] = str(text)
    return fields


def _with_parsed_data(manifest: Manifest, side: Side) -> Fields:
    rest = {name: member for name, member in manifest.items() if name != "data"}
    fields = fields_of(rest, side)
    for name, text in _data(manifest).items():
        try:
            document = load(str(text))
        except UnreadableCase:
            document = text
        if isinstance(document, Mapping) and document:
            parsed = fields_of({"kind": "", "file": document})
            fields.update({("data", f"[{name}]", *path[1:]): value for path, value in parsed.items()})
        elif text and document not in (None, {}):
            fields["data", f"[{name}]"] = str(text)
    return fields


def _labels(context: Context) -> list[str]:
    return [UNLABELLED, *context.release.configs, UNKNOWN]


def _chart_nodes(context: Context, config: str | None) -> Fields:
    """Which nodes, by their label, run this configuration: the init container takes the default if in doubt."""
    release = context.release
    if release.external_config_map and not release.configs:
        return {}
    if not release.configs:
        return {("serves", f"[{label}]"): True for label in _labels(context)}
    name = _name_of_config(context, config)
    served = dict.fromkeys((UNLABELLED, UNKNOWN), name == release.default_config)
    return {("serves", f"[{label}]"): served.get(label, label == name) for label in _labels(context)}


def _with_nodes(fields: Fields, context: Context) -> Fields:
    """Take the expressions about the configuration's label out of the affinity, and say whom they let in."""
    release = context.release
    if release.external_config_map and not release.configs:
        return fields
    terms = {path: node_term(path[2]) for path in fields if path[:2] == ("pod", "nodes") and len(path) == 3}
    kept = {path: value for path, value in fields.items() if path not in terms}
    verdicts, named = set(), set()
    for term in terms.values():
        expressions = term.get("matchExpressions", [])
        about = [e for e in expressions if e.get("key") == NODE_LABEL]
        named |= {value for e in about for value in e.get("values") or ()}
        verdicts.add(tuple(all(_lets_in(e, label) for e in about) for label in _labels(context)))
        rest = {**term, "matchExpressions": [e for e in expressions if e.get("key") != NODE_LABEL]}
        rest = {key: value for key, value in rest.items() if value}
        if rest or len(terms) > 1:
            kept["pod", "nodes", f"[{canonical(rest)}]"] = True
    if len(verdicts) > 1 or not named <= {*release.configs}:
        return fields
    verdict = verdicts.pop() if verdicts else tuple(True for _ in _labels(context))
    return {**kept, **{("serves", f"[{label}]"): yes for label, yes in zip(_labels(context), verdict, strict=True)}}


def _lets_in(expression: Mapping[str, Any], label: str) -> bool:
    is_listed = label in (expression.get("values") or ())
    match expression.get("operator"):
        case "In":
            return is_listed
        case "NotIn":
            return not is_listed
        case "Exists":
            return label != UNLABELLED
        case "DoesNotExist":
            return label == UNLABELLED
    return False


def _compare(pair: _Pair, context: Context, judge: Judge, result: Result, phantom: str | None) -> None:
    chart, ours = dict(pair.chart or {}), dict(pair.ours or {})
    if pair.chart_name is not None and pair.our_name is not None:
        chart["metadata", "name"], ours["metadata", "name"] = pair.chart_name, pair.our_name
    for path in sorted({*chart, *ours}):
        theirs, mine = chart.get(path, ABSENT), ours.get(path, ABSENT)
        difference = Difference(f"{pair.role} {pair.kind}", pair.config, path, theirs, mine)
        if theirs is not ABSENT and same(theirs, mine):
            if phantom is None:
                result.matched += 1
            else:
                result.intended.append((phantom, replace(difference, ours=ABSENT)))
            continue
        number = judge.explain(difference, context)
        if number is None:
            result.unexplained.append(difference)
        else:
            result.intended.append((number, difference))


def same(one: Any, other: Any) -> bool:
    """Whether two leaves are the same; true is not 1, though Python thinks so."""
    return one is other or (type(one) is type(other) and one == other)

"""The command ``compare``: compares the objects of a Helm chart with those of this library for the same values."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from gpu_constructs.cli import documents, migrate
from gpu_constructs.cli.compare.deviations import ABSENT, ANCHORS, Deviation, deviations_of, explanation
from gpu_constructs.cli.compare.fields import Names, fields_of, show
from gpu_constructs.cli.exits import CommandError, Exit
from gpu_constructs.cli.findings import Finding, Report
from gpu_constructs.cli.reporting import add_fail_on, add_format, finish
from gpu_constructs.kube.tables import table
from gpu_constructs.records import replace

EXAMPLES = """\
  gpu-constructs compare values.yaml rendered.yaml
  gpu-constructs compare values.yaml rendered.yaml --from-version 0.14.5"""
_LONGEST = 120
_POSSIBLE = "Possible explanation: "


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    migrate.add_release(parser)
    parser.add_argument("rendered", metavar="rendered.yaml", help="output of helm template; - for standard input")
    parser.add_argument("--all", action="store_true", help="also list each difference that the documentation explains")
    add_format(parser)
    add_fail_on(parser, "warning")


def run(args: argparse.Namespace) -> Exit:
    """Compare the objects that a Helm chart rendered with the objects of this library for the same values.

    Print the report, and return the exit status. Without ``--fail-on``, the status is ``FOUND`` if a difference has no
    explanation in the documentation.
    """
    rendered = documents.read([args.rendered])
    args.release_name = args.release_name or _most_common(_instances(rendered.manifests))
    args.namespace = args.namespace or _most_common(one["metadata"].get("namespace") for one in rendered.manifests)
    migration = migrate.migration_of(args, is_strict=False)
    if migration.chart not in ANCHORS:
        raise CommandError(
            f"the Helm chart must be one of {', '.join(ANCHORS)}, got {migration.chart}. Use gpu-constructs diff"
        )
    text, notes = migrate.program(migration)
    found = list(_differences(migration.chart, rendered.objects, emitted(text)))
    explained = [one for one in found if one.severity == "note"]
    possible = [one for one in explained if one.way_out.startswith(_POSSIBLE)]
    others = [one for one in found if one.severity != "note"]
    numbers = ", ".join(f"{number} {count}" for number, count in Counter(one.code for one in explained).items())
    summary = (
        f"Compared objects of the chart: {len(rendered.objects)}. Differences without an explanation: {len(others)}, "
        f"with a possible one: {len(possible)}, with one in the documentation: {len(explained) - len(possible)}"
        f"{f' ({numbers})' if numbers else ''}"
    )
    changes = [Finding("", "note", "", note.removesuffix("."), args.values) for note in notes]
    shown = [*changes, *others, *(explained if args.all else possible)]
    listed = shown if args.all else list(_explained_once(shown))
    return finish(args, Report("compare", listed, summary), rendered.broken)


def _explained_once(findings: Sequence[Finding]) -> Iterator[Finding]:
    """Yield the findings sorted by file, line and object, without repeated explanations.

    The code of a finding, such as ``D12``, identifies its explanation. Findings with the same object and code become
    one finding, which states how many more fields differ. Only the first finding with a code keeps the text and the
    link of the explanation.
    """
    ordered = sorted(findings, key=lambda one: (one.file, one.line, one.object))
    counts = Counter((one.object, one.code) for one in ordered)
    codes: set[str] = set()
    seen: set[tuple[str, str]] = set()
    for one in ordered:
        key = (one.object, one.code)
        if one.code and key in seen:
            continue
        more = f"; {counts[key] - 1} more fields with this explanation" if one.code and counts[key] > 1 else ""
        is_known = bool(one.code) and one.code in codes
        explained = replace(one, way_out="", link="") if is_known else one
        yield replace(explained, reason=f"{one.reason}{more}")
        codes.add(one.code)
        seen.add(key)


def _instances(manifests: Sequence[Mapping[str, Any]]) -> Iterator[Any]:
    """Yield the Helm release of each object: the label ``app.kubernetes.io/instance``, or None without this label."""
    for manifest in manifests:
        labels = manifest["metadata"].get("labels")
        yield labels.get("app.kubernetes.io/instance") if isinstance(labels, Mapping) else None


def _most_common(values: Iterable[Any]) -> str | None:
    """Return the text that occurs most often among the values; None if no value is a text."""
    counts = Counter(value for value in values if isinstance(value, str))
    return counts.most_common(1)[0][0] if counts else None


def emitted(text: str) -> list[documents.Document]:
    """Run a Python app in a separate process, in an empty folder. Return the Kubernetes objects that the app writes.

    Args:
        text: Source text of the app.

    Raises:
        CommandError: The app fails. The message contains the error output of the app.
    """
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "app.py").write_text(text, encoding="utf-8")
        search = os.pathsep.join(filter(None, (str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH"))))
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "app.py"],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": search},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            problem = done.stderr.strip() or f"exit status {done.returncode}"
            raise CommandError(f"the values cannot become manifests: {problem}", Exit.COULD_NOT_LOOK)
        # The program removes its files before the user reads the report.
        return [replace(one, file="", line=0) for one in documents.read([folder]).objects]


def _differences(
    chart: str, theirs: Sequence[documents.Document], ours: Sequence[documents.Document]
) -> Iterator[Finding]:
    """Yield the differences between the objects of a Helm chart and those of this library, as findings.

    A difference that the documentation explains is a note. Any other difference is a warning.

    Args:
        chart: Name of the Helm chart.
        theirs: Objects that the Helm chart rendered.
        ours: Objects that this library emits for the same values.
    """
    deviations = deviations_of(chart)
    sides = [_by_role(chart, side) for side in (theirs, ours)]
    names = [_Roles(side) for side in sides]
    for role, kind in dict.fromkeys((*sides[0], *sides[1])):
        pair = [side.get((role, kind)) for side in sides]
        fields = [
            {} if one is None else fields_of(_plain(one.manifest), name) for one, name in zip(pair, names, strict=True)
        ]
        document = pair[0] or pair[1]
        found = []
        for path in dict.fromkeys((*fields[0], *fields[1])):
            old, new = (side.get(path, ABSENT) for side in fields)
            if str(old) != str(new):
                fit = explanation(deviations, role, kind, path, old, new) or _moved(chart, deviations, role, path)
                found.append((f"{show(path)}: chart {_short(old)}, here {_short(new)}", fit))
        if None in pair:
            # One line for a whole object. It needs an explanation if one of its fields does.
            side = "only the chart has this object" if pair[1] is None else "the chart does not have this object"
            fits = [fit for _, fit in found]
            found = [(side, fits[0] if fits and None not in fits else None)]
        for reason, fit in found:
            yield _finding(chart, document, reason, fit)


class _Roles(Names):
    """The roles of a group of objects, and the data keys of the ConfigMaps among these objects.

    The group contains either the objects of the Helm chart, or the objects of this library. A role is the function of
    an object in the Helm chart, such as ``plugin``. In fields that refer to an object, the role replaces the name of
    the object, because names differ between the groups.
    """

    def __init__(self, objects: Mapping[tuple[str, str], documents.Document]) -> None:
        self._roles = {(kind, one.manifest["metadata"]["name"]): role for (role, kind), one in objects.items()}
        self._files = {
            one.manifest["metadata"]["name"]: list(one.manifest.get("data") or ())
            for (_, kind), one in objects.items()
            if kind == "ConfigMap"
        }

    def refer(self, kind: str, name: str) -> str:
        """Return the function of an object, such as ``plugin``. For other objects, return the given name."""
        return self._roles.get((kind, name), name)

    def files(self, config_map: str) -> Sequence[str]:
        """Return the data keys of a ConfigMap; an empty sequence if the group does not contain the ConfigMap."""
        return self._files.get(config_map, ())


def _moved(
    chart: str, deviations: Sequence[Deviation], role: str, path: Sequence[str]
) -> tuple[Deviation, bool] | None:
    """Return the deviation for an environment variable that this library replaces by a configuration file, and False.

    False means that the explanation is uncertain, because the command does not compare the configuration file. Return
    None for any other field.

    Args:
        chart: Name of the Helm chart.
        deviations: Intended differences between the Helm chart and this library.
        role: Function of the object in the Helm chart, such as ``plugin``.
        path: Path of the field that differs.
    """
    for moved in table(__package__, "roles.yaml")["settings"].get(chart, ()):
        if role in moved["of"] and path[-2:-1] == ("env",) and path[-1].strip("[]") in moved["env"]:
            return next((one, False) for one in deviations if one.number == moved["number"])
    return None


def _plain(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object without its API version. For a ConfigMap, parse the YAML texts in its data.

    In the result, brackets enclose the data keys of a ConfigMap: ``[config.yaml]``. ``Rule.patterns`` needs this form.
    """
    made = {key: value for key, value in manifest.items() if key != "apiVersion"}
    if manifest["kind"] == "ConfigMap" and isinstance(manifest.get("data"), Mapping):
        made["data"] = {f"[{key}]": _parsed(value) for key, value in manifest["data"].items()}
    return made


def _parsed(text: Any) -> Any:
    """Return the mapping in a YAML text. Return any other value unchanged."""
    try:
        content = yaml.safe_load(text) if isinstance(text, str) else None
    except yaml.YAMLError:
        return text
    return content if isinstance(content, Mapping) else text


def _by_role(chart: str, objects: Sequence[documents.Document]) -> dict[tuple[str, str], documents.Document]:
    """Return the objects by role and kind.

    A role is the function of an object in the Helm chart, such as ``plugin``. The name of the object replaces a
    missing role. The name also replaces the role if an earlier object has the same role and kind.
    """
    roles: Mapping[str, str] = table(__package__, "roles.yaml")["roles"].get(chart, {})
    found: dict[tuple[str, str], documents.Document] = {}
    for one in objects:
        kind, name = one.manifest["kind"], one.manifest["metadata"]["name"]
        role = next((role for pattern, role in roles.items() if re.search(pattern, f"{kind} {name}")), name)
        found[(role, kind) if (role, kind) not in found else (name, kind)] = one
    return found


def _finding(
    chart: str, document: documents.Document | None, reason: str, fit: tuple[Deviation, bool] | None
) -> Finding:
    name, file, line = (document.name, document.file, document.line) if document is not None else ("", "", 0)
    if fit is None:
        return Finding("", "warning", name, reason, file, line)
    deviation, is_certain = fit
    way_out = f"{'' if is_certain else _POSSIBLE}{deviation.what}. Reason: {deviation.why}."
    link = f"docs/coming-from-helm.md#{ANCHORS[chart]}"
    return Finding(deviation.number, "note", name, reason, file, line, way_out, link)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"

"""From apps to dist/: render, check everything at once, then write; or say what is wrong and write nothing."""

from __future__ import annotations

import json
import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from cdk8s import ApiObject, App, Chart, DependencyGraph, JsonPatch, Names, YamlOutputType
from constructs import Construct, IConstruct, Node
from jsii.errors import JavaScriptError

from gpu_constructs import _kinds
from gpu_constructs._canonical import make_canonical
from gpu_constructs._garbage import collected_rarely
from gpu_constructs._manifest import GRANTS, Manifest
from gpu_constructs._yaml import manifest_text
from gpu_constructs.app_checks import left_to_synth
from gpu_constructs.cluster_checks import Finding, check
from gpu_constructs.errors import (
    GpuConstructsError,
    RenderingError,
    SynthesisError,
    is_ignored,
    short_errors,
    strict_by_environment,
    take_shown_warnings,
    warn,
)
from gpu_constructs.held_apps import expect_nothing_more, mark_rendered, warnings_of
from gpu_constructs.namespace import STATES_NO_NAMESPACE
from gpu_constructs.output_files import (
    METADATA_FILE,
    NEEDS_CRDS_FOLDER,
    SUFFIX,
    OutputFiles,
    PartlyWritten,
    program_name,
    running_program,
    shown,
)
from gpu_constructs.provided import providers_in
from gpu_constructs.rules.gpu_rules import settings_of
from gpu_constructs.side_files import first_line, marked

NAMESPACES_FILE = "00-namespaces"
CRDS_FILE = "01-crds"
CLASSES_FILE = "02-classes"
HEADER = first_line(SUFFIX)

_OUTDIR_VARIABLE = "CDK8S_OUTDIR"

_RESOLVERS = 3
"""How many resolvers an App has of itself."""

_PASSING = "gpu-constructs-validation"
"""Id of a chart that is gone before anything is written."""

_NO_NAMESPACE = (
    "states no namespace, so its workloads go to 'default'; pass namespace= to the Chart or to each workload, "
    "namespace='default' where that is meant"
)

_ERROR_NAMES = re.compile(r"\b[A-Za-z]*Error: ")


@dataclass(frozen=True, kw_only=True)
class SynthesisReport:
    """What a synth did; as ``str`` the line that ``synth`` prints.

    Attributes:
        folder: The folder, as the user names it.
        written: Files that are new or changed.
        unchanged: Files that were there with the same content.
        removed: Files of an earlier run that nothing writes any more.
        taken_over: Files among the written ones that this library had not written before.
        warnings: The warnings of this run, those of constructs included.
    """

    folder: str
    written: Sequence[Path] = ()
    unchanged: Sequence[Path] = ()
    removed: Sequence[Path] = ()
    taken_over: Sequence[Path] = ()
    warnings: Sequence[str] = ()

    def __str__(self) -> str:
        count = len(self.written) + len(self.unchanged)
        if not self.written and not self.removed:
            parts = [f"{self.folder} is unchanged ({_counted(count, 'file')})"]
        else:
            of_all = f"{len(self.written)} of " if self.unchanged else ""
            parts = [f"wrote {of_all}{_counted(count, 'file')} to {self.folder}"]
        if self.taken_over:
            listed = ", ".join(map(shown, self.taken_over))
            parts.append(f"replaced {len(self.taken_over)} that gpu_constructs had not written ({listed})")
        if self.removed:
            parts.append(f"removed {len(self.removed)}")
        if self.warnings:
            parts.append(_counted(len(self.warnings), "warning"))
        return ", ".join(parts)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


@short_errors
def synth(*apps: App, strict: bool = False, quiet: bool = False, program: str | None = None) -> None:
    """Write the manifests of all apps, one app a cluster; the last line of an ``app.py``.

    Each app goes to its own ``outdir``: all Namespaces to ``00-namespaces.k8s.yaml``, custom resource
    definitions to ``01-crds.k8s.yaml``, RuntimeClasses, PriorityClasses and their like to ``02-classes.k8s.yaml``,
    objects of kinds that Kubernetes does not define itself to ``needs-crds/``, to be applied second, the rest to one
    file a chart. ``kubectl apply -f`` reads the files of a folder in that order. Helm values go to
    ``helm-values/`` and machine configuration to ``machine-config/``, beside the clusters where there are several.

    Each file says in its first line that it is generated, and names the program that wrote it, unless that is
    ``app.py``. What this program wrote earlier and writes no longer is removed. Files without that line are never
    removed. Files of another program, or of another App of this program, stay and are named in a warning; to
    replace one is an error. Nothing is written or removed through a symbolic link.

    One line on stderr says what was done. When anything is wrong, every problem of every app is printed with its
    construct path, dist/ stays as it was and the program exits with status 1.

    Args:
        apps: The apps. Several must have their outdirs side by side (``dist/homelab``, ``dist/fleet``);
            what this program generated there for a cluster that is not given any more is removed too.
        strict: Whether warnings are errors, which the environment variable ``GPU_CONSTRUCTS_STRICT=1`` says too.
            A warning that a filter of Python's ``warnings`` ignores stays ignored.
        quiet: Whether to leave out the line that says what was done.
        program: Name for the first lines. By default it is the path of the script in its repository, and none for
            ``app.py``, a test, or a notebook. Set it where two programs of one name write into one folder.
    """
    try:
        report = synthesize(*apps, strict=strict, program=program)
    except SynthesisError as error:
        print(error, file=sys.stderr)
        expect_nothing_more()
        raise SystemExit(1) from None
    if not quiet:
        print(report, file=sys.stderr)


@short_errors
def synthesize(*apps: App, strict: bool = False, program: str | None = None) -> SynthesisReport:
    """Do what ``synth`` does, but raise instead of printing and exiting, and return what was done.

    Args:
        apps: As for ``synth``.
        strict: Likewise.
        program: Likewise.

    Raises:
        SynthesisError: With every problem found.
    """
    is_strict = _is_strict(strict)
    output = _output(apps, program)
    of_constructs = _warnings_of_constructs(apps)
    problems: list[str] = []
    warnings: list[str] = []
    for app in apps:
        mark_rendered(app)
        # Of several clusters each says whose problem it is.
        cluster = f"{Path(app.outdir).name}: " if len(apps) > 1 else ""
        with collected_rarely():
            checked = _checked(app)
            found = checked.problems or _add_files(checked, output)
        warnings += [cluster + warning for warning in checked.warnings]
        problems += [cluster + problem for problem in found]
    if not problems:
        problems = output.problems()
        warnings += output.warnings()
    _refuse([*problems, *(_heeded(of_constructs, warnings) if is_strict else ())])
    warnings = list(dict.fromkeys(warnings))
    for warning in warnings:
        warn(warning)
    take_shown_warnings()
    try:
        done = output.write()
    except PartlyWritten as error:
        outcome = "some files were changed" if error.details else "nothing was written"
        raise SynthesisError([error.reason], outcome=outcome, details=error.details) from None
    return SynthesisReport(
        folder=f"{shown(output.root)}/",
        written=done.written,
        unchanged=done.unchanged,
        removed=done.removed,
        taken_over=done.taken_over,
        warnings=[*of_constructs, *warnings],
    )


def check_before_cdk8s(app: App) -> None:
    """Check what ``synth`` checks before cdk8s' own ``app.synth()`` writes what it renders.

    Raises:
        RenderingError: With every problem found.
    """
    of_constructs = _warnings_of_constructs([app])
    checked = _checked(app)
    heeded = _heeded(of_constructs, checked.warnings) if _is_strict(False) else []
    problems = list(dict.fromkeys([*checked.problems, *heeded]))
    if problems:
        raise RenderingError(problems)
    for warning in checked.warnings:
        warn(warning)


def _is_strict(strict: bool) -> bool:
    if not isinstance(strict, bool):
        raise SynthesisError([f"strict must be True or False; got {strict!r}"], outcome="")
    try:
        return strict_by_environment() or strict
    except GpuConstructsError as error:
        raise SynthesisError([str(error)], outcome="") from None


def _warnings_of_constructs(apps: Sequence[App]) -> list[str]:
    """Return what constructs of the apps warned of, and what was printed meanwhile about values outside any app."""
    kept = [warning for app in apps for warning in warnings_of(app) if not is_ignored(warning)]
    return list(dict.fromkeys([*take_shown_warnings(), *kept]))


def _heeded(of_constructs: Sequence[str], warnings: Sequence[str]) -> list[str]:
    """Return the warnings that strictness makes errors."""
    return [*of_constructs, *(warning for warning in warnings if not is_ignored(warning))]


def _refuse(problems: Sequence[str]) -> None:
    if problems:
        raise SynthesisError(list(dict.fromkeys(problems)))


def _output(apps: Sequence[object], program: str | None) -> OutputFiles:
    """Return where the apps are written; what is wrong with the call is the only problem then.

    Raises:
        SynthesisError: Something is.
    """
    problem = next(_wrong_calls(apps), None)
    if problem is None and program is not None and (not isinstance(program, str) or program != program_name(program)):
        problem = f"program must be letters, digits and any of '._/-'; got {program!r}; leave it out for the script's"
    if problem is not None:
        raise SynthesisError([problem], outcome="")
    given = cast(Sequence[App], apps)
    outdirs = [Path(app.outdir).resolve() for app in given]
    parents = {outdir.parent for outdir in outdirs}
    root = outdirs[0] if len(given) == 1 else parents.pop()
    named = running_program() if program is None else program
    return OutputFiles(root, outdirs, named, frozenset(map(id, given)))


def _wrong_calls(apps: Sequence[object]) -> Iterator[str]:
    """Yield what is wrong with the arguments, in one line each."""
    if not apps:
        yield "synth must be given at least one App"
    for app in apps:
        if isinstance(app, list | tuple):
            yield f"synth takes each App by itself; got a {type(app).__name__}; write synth(*apps)"
        elif isinstance(app, str | Path):
            yield f"synth takes Apps only; got {str(app)!r}; the folder is that of App(outdir={str(app)!r})"
        elif isinstance(app, type):
            yield f"synth takes Apps only; got the class {app.__name__}; make one with App()"
        elif not isinstance(app, App):
            yield f"synth takes Apps only; got {_described(app)}; pass the App that it is made in"
    # What is not an App was reported.
    for app in cast(Sequence[App], apps):
        if os.environ.get(_OUTDIR_VARIABLE) == "":
            yield f"{_OUTDIR_VARIABLE} must name a folder; it is set and empty; unset it, or name one"
        if not app.outdir.strip():
            yield f"outdir must name a folder; got {app.outdir!r}; leave it out for dist/"
        if app.yaml_output_type is not YamlOutputType.FILE_PER_CHART:
            yield (
                "yaml_output_type must be FILE_PER_CHART for synth, which sorts objects into files itself; got "
                f"{app.yaml_output_type.name}; leave it out, or call app.synth()"
            )
        if app.output_file_extension != SUFFIX:
            yield (
                f"output_file_extension must be {SUFFIX!r} for synth; got {app.output_file_extension!r}; leave it out, "
                "or call app.synth()"
            )
    outdirs = [Path(app.outdir).resolve() for app in cast(Sequence[App], apps)]
    if len(set(outdirs)) < len(outdirs):
        yield "every App needs an outdir of its own; got the same one twice"
    if len({outdir.parent for outdir in outdirs}) > 1:
        listed = ", ".join(sorted(app.outdir for app in cast(Sequence[App], apps)))
        yield f"the outdirs of several Apps must lie side by side; got {listed}"


def _described(value: object) -> str:
    if isinstance(value, Construct):
        return f"the {type(value).__name__} {value.node.path!r}"
    return f"{value!r:.60} ({type(value).__name__})"


@dataclass(frozen=True)
class _Rendered:
    """All objects of an app, and which file each belongs to."""

    manifests: list[dict[str, Any]]
    charts: list[tuple[Chart, range]]
    paths: dict[Chart, dict[tuple[str, str, str], list[str]]] = field(default_factory=dict)

    def path_of(self, index: int) -> str:
        """Give the construct path of an object; only asked for when something is wrong."""
        chart, own = next((chart, own) for chart, own in self.charts if index in own)
        identity = _identity(self.manifests[index])
        earlier = sum(_identity(self.manifests[i]) == identity for i in own if i < index)
        same = self._paths(chart).get(identity)
        path = same[min(earlier, len(same) - 1)] if same else chart.node.path
        return path.removesuffix("/Default").removesuffix("/Resource")

    def _paths(self, chart: Chart) -> dict[tuple[str, str, str], list[str]]:
        """Ask each object of a chart once, for a mistake is often made in all of them."""
        if chart not in self.paths:
            paths = self.paths[chart] = defaultdict(list)
            for made in chart.node.find_all():
                if isinstance(made, ApiObject) and Chart.of(made) is chart:
                    paths[made.api_version, made.kind, made.name].append(made.node.path)
        return self.paths[chart]


def _identity(manifest: Mapping[str, Any]) -> tuple[str, str, str]:
    return manifest["apiVersion"], manifest["kind"], manifest.get("metadata", {}).get("name", "")


@dataclass(frozen=True)
class _Checked:
    """An app and what is wrong with it; nothing was rendered where a problem kept that from being done."""

    app: App
    constructs: Sequence[IConstruct] = ()
    rendered: _Rendered | None = None
    problems: Sequence[str] = ()
    warnings: Sequence[str] = ()


def _checked(app: App) -> _Checked:
    """Render an app and check it."""
    tree = app.node
    constructs = tree.find_all()
    grants = getattr(app, GRANTS, None)
    if grants is not None:
        grants.follow_dependencies()
    try:
        order = _order_without_dependencies(tree, constructs)
        # Sorts them, which takes dependencies without a circle.
        charts = app.charts if order is None else list(order)
    except RuntimeError as error:
        return _Checked(app, problems=_unwrapped(error))
    # Rendering a chart validates the whole app, but an app may have none.
    if not charts:
        nodes = [construct.node for construct in constructs]
        with left_to_synth(app):
            problems = [f"{node.path or 'app'}: {problem}" for node in nodes for problem in node.validate()]
        if problems:
            return _Checked(app, problems=problems)
    try:
        with left_to_synth(app):
            rendered = _rendered(charts, constructs, order or {}, asks_cdk8s=_changes_metadata(app))
    except GpuConstructsError as error:
        return _Checked(app, problems=[str(error)])
    except RuntimeError as error:
        return _Checked(app, problems=_unwrapped(error))
    providers, provided = providers_in(constructs)
    said = [("", finding) for finding in check(rendered.manifests, provided, settings_of(app))]
    said += [
        (chart.node.path, Finding(None, _NO_NAMESPACE, is_warning=True))
        for chart in charts
        if getattr(chart, STATES_NO_NAMESPACE, False)
    ]
    # What is wrong with the objects themselves is better known before anybody computes with them.
    if all(finding.is_warning for _, finding in said):
        for construct in constructs:
            if hasattr(construct, "examine"):
                try:
                    found = construct.examine(rendered.manifests, provided)
                except GpuConstructsError as error:
                    return _Checked(app, problems=[str(error)])
                said += [(construct.node.path, finding) for finding in found]
    sentences: dict[bool, list[str]] = {True: [], False: []}
    for who, finding in said:
        sentences[finding.is_warning].append(_sentence(finding, rendered, providers, who))
    return _Checked(app, constructs, rendered, sentences[False], sentences[True])


def _add_files(checked: _Checked, output: OutputFiles) -> list[str]:
    """Add an app's files and return why some cannot be."""
    app, rendered = checked.app, cast(_Rendered, checked.rendered)
    given_outdir = Path(app.outdir)
    outdir = given_outdir.resolve()
    files: dict[Path, list[dict[str, Any]]] = defaultdict(list)
    for chart, own in rendered.charts:
        name = Names.to_dns_label(chart)
        if name in (NAMESPACES_FILE, CRDS_FILE, CLASSES_FILE):
            return [f"{chart.node.path}: id must not be {name!r}, the file that {name[3:]} of all charts go to"]
        for index in own:
            manifest = rendered.manifests[index]
            # Behind the checks, which show amounts as the user wrote them.
            make_canonical(manifest)
            files[outdir / _file_of(manifest, name)].append(manifest)
    for path, manifests in files.items():
        try:
            text = "---\n".join(manifest_text(manifest) for manifest in manifests)
        except UnicodeEncodeError as error:
            held = error.object[error.start : error.end]
            return [f"{path.name}: objects must hold text that UTF-8 can write; got {held!r}; leave it out"]
        output.texts[path] = marked(path.name, text, output.program)
    if _records_metadata(app):
        path = outdir / METADATA_FILE
        output.texts[path] = marked(path.name, _metadata(checked.constructs), output.program)
    for construct in checked.constructs:
        if not hasattr(construct, "side_files"):
            continue
        for file in construct.side_files():
            path = output.folder(file.folder, given_outdir) / file.name
            if path in output.texts:
                return [
                    f"{construct.node.path}: {file.folder}/{path.name} is written by another construct already; "
                    "give one of them another name"
                ]
            output.texts[path] = marked(file.name, file.text, output.program)
    return []


def _records_metadata(app: App) -> bool:
    """Check whether ``App(record_construct_metadata=True)`` was said, which cdk8s shows in no other way."""

    def is_set_to(value: bool) -> bool:
        try:
            JsonPatch.apply(app, JsonPatch.test("/recordConstructMetadata", value))
        except RuntimeError:
            return False
        return True

    return not is_set_to(False) and is_set_to(True)


def _metadata(constructs: Sequence[IConstruct]) -> str:
    """Return the construct path of each object by its name, as cdk8s writes it."""
    made = [construct for construct in constructs if isinstance(construct, ApiObject)]
    resources = {one.name: {"path": one.node.path} for one in made}
    return json.dumps({"version": "1.0.0", "resources": resources}, indent=2) + "\n"


def _changes_metadata(app: App) -> bool:
    """Tell whether cdk8s was told to do more with metadata than to lay it over the chart's."""
    return len(app.resolvers) != _RESOLVERS or bool(os.environ.get("CDK8S_DISABLE_SORT"))


def _rendered(
    charts: Sequence[Chart],
    constructs: Sequence[IConstruct],
    order: Mapping[Chart, Sequence[ApiObject | Chart]],
    *,
    asks_cdk8s: bool,
) -> _Rendered:
    """Render every chart.

    For each ``Manifest`` cdk8s calls back, and then hands over what it was given. A chart of nothing else is rendered
    here, in the order of cdk8s, so that no body crosses the bridge only to come back. A chart that cdk8s renders goes
    first: that validates the whole app and settles the order of its objects.
    """
    held: dict[Chart, list[ApiObject]] = {}
    for construct in constructs:
        if isinstance(construct, Chart):
            latest = held[construct] = []
        elif isinstance(construct, ApiObject):
            latest.append(construct)
    by_cdk8s = [chart for chart in charts if not all(isinstance(made, Manifest) for made in held[chart])]
    if charts and not by_cdk8s:
        _validate(cast(Construct, constructs[0]))
    made = {chart: list(chart.to_json()) for chart in by_cdk8s}
    manifests: list[dict[str, Any]] = []
    spans: list[tuple[Chart, range]] = []
    for chart in charts:
        objects = made[chart] if chart in made else _objects(chart, order.get(chart), asks_cdk8s=asks_cdk8s)
        spans.append((chart, range(len(manifests), len(manifests) + len(objects))))
        manifests.extend(objects)
    return _Rendered(manifests, spans)


def _validate(app: Construct) -> None:
    """Have cdk8s render an empty chart, since it validates an app in no other way."""
    chart = Chart(app, _PASSING)
    try:
        chart.to_json()
    finally:
        app.node.try_remove_child(_PASSING)


def _order_without_dependencies(
    tree: Node, constructs: Sequence[IConstruct]
) -> Mapping[Chart, list[ApiObject | Chart]] | None:
    """Give what stands in each chart, in order, where no dependency changes that and no chart is in another.

    The graph of a whole app is asked for once, instead of one for each chart.
    """
    charts = [construct for construct in constructs if isinstance(construct, Chart)]
    if len([child for child in tree.children if isinstance(child, Chart)]) < len(charts):
        return None
    ordered = DependencyGraph(tree).topology()
    if len(ordered) != len(constructs) or any(a is not b for a, b in zip(ordered, constructs, strict=True)):
        return None
    below: dict[Chart, list[ApiObject | Chart]] = {}
    for construct in constructs:
        if isinstance(construct, Chart):
            latest = below[construct] = []
        if isinstance(construct, ApiObject | Chart):
            latest.append(construct)
    return below


def _objects(chart: Chart, below: Sequence[ApiObject | Chart] | None, *, asks_cdk8s: bool) -> list[dict[str, Any]]:
    """Render a chart here where it holds nothing but our objects and changes nothing in them."""
    if below is None:
        below = [made for made in DependencyGraph(chart.node).topology() if isinstance(made, ApiObject | Chart)]
    manifests = [made for made in below if isinstance(made, Manifest)]
    if type(chart).to_json is not Chart.to_json or len(manifests) + 1 < len(below):
        return list(chart.to_json())
    if asks_cdk8s:
        return [manifest.to_json() for manifest in manifests]
    namespace, labels = chart.namespace, chart.labels
    return [manifest.to_json_in(namespace, labels) for manifest in manifests]


def _file_of(manifest: Mapping[str, Any], chart: str) -> str:
    group = _kinds.group_of(manifest["apiVersion"])
    if (group, manifest["kind"]) == ("", "Namespace"):
        return NAMESPACES_FILE + SUFFIX
    if (group, manifest["kind"]) == ("apiextensions.k8s.io", "CustomResourceDefinition"):
        return CRDS_FILE + SUFFIX
    # A pod is refused, or waits, until its RuntimeClass, PriorityClass, DeviceClass or StorageClass is there.
    if manifest["kind"].endswith("Class") and _kinds.is_cluster_scoped(manifest["apiVersion"], manifest["kind"]):
        return CLASSES_FILE + SUFFIX
    # Even where this app brings the definition: kubectl looks all kinds up before it applies the first object.
    if group not in _kinds.BUILT_IN_GROUPS:
        return f"{NEEDS_CRDS_FOLDER}/{chart}{SUFFIX}"
    return chart + SUFFIX


def _sentence(finding: Finding, rendered: _Rendered, providers: Sequence[IConstruct], finder: str) -> str:
    return finding.sentence(rendered.path_of, lambda index: providers[index].node.path, finder)


def _unwrapped(error: RuntimeError) -> list[str]:
    """Give what a failed rendering says, without the layers of the JavaScript bridge.

    An exception of Python code that jsii called back is raised again as it was: its own traceback is the
    one that helps.
    """
    if not isinstance(error.__cause__, JavaScriptError):
        raise error
    original = error.__context__
    while original is not None and isinstance(original.__cause__, JavaScriptError):
        original = original.__context__
    if isinstance(original, GpuConstructsError):
        return [str(original)]
    if original is not None:
        raise original from None
    heading, _, listed = str(error).partition("following errors:\n")
    if listed:
        return [_line_of_validation(line.strip()) for line in listed.splitlines() if line.strip()]
    return [_ERROR_NAMES.sub("", heading.partition("\n")[0]).strip()]


def _line_of_validation(line: str) -> str:
    """Give ``[path] problem`` as we write it; who validates a whole app names the construct itself."""
    path, _, problem = line.removeprefix("[").partition("] ")
    return problem if not path and re.match(r"[\w./-]+: ", problem) else f"{path or 'app'}: {problem}"

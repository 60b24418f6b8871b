"""From apps to dist/: render, check everything at once, then write; or say what is wrong and write nothing."""

from __future__ import annotations

import errno
import os
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from cdk8s import ApiObject, App, Chart, DependencyGraph, Names
from constructs import Construct, IConstruct, Node
from jsii.errors import JavaScriptError

from gpu_constructs import _kinds
from gpu_constructs._manifest import GRANTS, Manifest
from gpu_constructs._yaml import manifest_text
from gpu_constructs.app_checks import ExaminesApp, left_to_synth
from gpu_constructs.cluster_checks import Finding, check
from gpu_constructs.errors import GpuConstructsError, SynthesisError, warn
from gpu_constructs.provided import providers_in
from gpu_constructs.rules.gpu_rules import settings_of
from gpu_constructs.side_files import FOLDERS, WritesSideFiles, first_line, marked

NAMESPACES_FILE = "00-namespaces"
CRDS_FILE = "01-crds"
NEEDS_CRDS_FOLDER = "needs-crds"
SUFFIX = ".k8s.yaml"
HEADER = first_line(SUFFIX)

_RESOLVERS = 3
"""How many resolvers an App has of itself."""

_PASSING = "gpu-constructs-validation"
"""Id of a chart that is gone before anything is written."""

_ERROR_NAMES = re.compile(r"\b[A-Za-z]*Error: ")


def synth(*apps: App) -> None:
    """Write the manifests of all apps, one app a cluster; the last line of an ``app.py``.

    Each app goes to its own ``outdir``: all Namespaces to ``00-namespaces.k8s.yaml``, custom resource
    definitions to ``01-crds.k8s.yaml``, objects of kinds that Kubernetes does not define itself to
    ``needs-crds/``, to be applied second, the rest to one file a chart. ``kubectl apply -f`` reads the files
    of a folder in that order. Helm values go to ``helm-values/`` and machine configuration to
    ``machine-config/``, beside the clusters where there are several.
    Each file says in its first line that it is generated.

    What no chart writes any more is removed: in an app's outdir every ``*.k8s.yaml``, beside it only files
    with that first line. Files of other names are left alone.

    When anything is wrong, every problem of every app is printed with its construct path, dist/ stays as it
    was and the program exits with status 1.

    Args:
        apps: The apps. Several must have their outdirs side by side (``dist/homelab``, ``dist/fleet``);
            what was generated there for a cluster that is not given any more is removed too, so programs
            that do not know of each other need folders of their own.
    """
    try:
        synthesize(*apps)
    except SynthesisError as error:
        print(error, file=sys.stderr)
        raise SystemExit(1) from None


def synthesize(*apps: App) -> None:
    """Do what ``synth`` does, but raise instead of printing and exiting.

    Raises:
        SynthesisError: With every problem found.
    """
    if not apps:
        raise SynthesisError(["synth must be given at least one App"])
    dist = _Dist.of(apps)
    problems: list[str] = []
    for app in apps:
        # Of several clusters each says whose problem it is.
        cluster = f"{Path(app.outdir).name}: " if len(apps) > 1 else ""
        problems.extend(cluster + problem for problem in _render(app, dist, cluster))
    if problems:
        raise SynthesisError(list(dict.fromkeys(problems)))
    try:
        dist.write()
    except OSError as error:
        raise SynthesisError([f"{error.filename}: cannot be written: {error.strerror}"]) from None


@dataclass
class _Dist:
    """The files that one run writes, and the folders it owns."""

    root: Path
    is_single: bool
    outdirs: list[Path]
    texts: dict[Path, str] = field(default_factory=dict)

    @classmethod
    def of(cls, apps: Sequence[App]) -> _Dist:
        outdirs = [Path(app.outdir).resolve() for app in apps]
        if len(set(outdirs)) < len(apps):
            raise SynthesisError(["every App needs an outdir of its own; got the same one twice"])
        if len(apps) == 1:
            return cls(outdirs[0], True, outdirs)
        parents = {outdir.parent for outdir in outdirs}
        if len(parents) > 1:
            listed = ", ".join(sorted(str(app.outdir) for app in apps))
            raise SynthesisError([f"the outdirs of several Apps must lie side by side; got {listed}"])
        return cls(parents.pop(), False, outdirs)

    def folder(self, name: str, outdir: Path) -> Path:
        """Give the folder for files of an app that kubectl must not read."""
        return self.root / name if self.is_single else self.root / name / outdir.name

    def write(self) -> None:
        stale = set(self._generated()) - self.texts.keys()
        staged: list[tuple[str, Path]] = []
        try:
            for path, text in self.texts.items():
                if path.is_dir():
                    raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
                if path.is_file() and path.read_bytes() == text.encode():
                    continue
                path.parent.mkdir(parents=True, exist_ok=True)
                handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".gpu-constructs-")
                staged.append((temporary, path))
                with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
                    file.write(text)
                os.chmod(temporary, 0o644)
        except OSError:
            for temporary, path in staged:
                os.unlink(temporary)
                _remove_empty_folders(path.parent, self.root)
            raise
        for temporary, path in staged:
            os.replace(temporary, path)
        for path in stale:
            path.unlink()
            _remove_empty_folders(path.parent, self.root)

    def _generated(self) -> Iterator[Path]:
        """Give the files that an earlier run may have written and this one may not leave behind.

        The folder of a cluster is for output alone; beside it only what says so itself is ours.
        """
        for outdir in self.outdirs:
            for pattern in (f"*{SUFFIX}", f"{NEEDS_CRDS_FOLDER}/*{SUFFIX}"):
                yield from (file for file in outdir.glob(pattern) if file.is_file())
        beside = [f"{folder}/*{ending}" for folder, endings in FOLDERS.items() for ending in endings]
        if not self.is_single:
            beside += [f"{folder}/*/*{ending}" for folder, endings in FOLDERS.items() for ending in endings]
            beside += [f"*{SUFFIX}", f"*/*{SUFFIX}", f"*/{NEEDS_CRDS_FOLDER}/*{SUFFIX}"]
        for pattern in beside:
            yield from (file for file in self.root.glob(pattern) if _is_ours(file))


def _is_ours(file: Path) -> bool:
    if not file.is_file():
        return False
    with file.open(encoding="utf-8", errors="replace") as lines:
        return lines.readline() == first_line(file.name)


def _remove_empty_folders(folder: Path, root: Path) -> None:
    while folder != root and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent


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


def _render(app: App, dist: _Dist, cluster: str) -> list[str]:
    """Add an app's files to dist and give its problems."""
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
        return _unwrapped(error)
    # Rendering a chart validates the whole app, but an app may have none.
    if not charts:
        nodes = [construct.node for construct in constructs]
        with left_to_synth(app):
            problems = [f"{node.path or 'app'}: {problem}" for node in nodes for problem in node.validate()]
        if problems:
            return problems
    try:
        with left_to_synth(app):
            rendered = _rendered(charts, constructs, order or {}, asks_cdk8s=_changes_metadata(app))
    except GpuConstructsError as error:
        return [str(error)]
    except RuntimeError as error:
        return _unwrapped(error)
    providers, provided = providers_in(constructs)
    said = [("", finding) for finding in check(rendered.manifests, provided, settings_of(app))]
    # What is wrong with the objects themselves is better known before anybody computes with them.
    if all(finding.is_warning for _, finding in said):
        for construct in constructs:
            if isinstance(construct, ExaminesApp):
                try:
                    found = construct.examine(rendered.manifests, provided)
                except GpuConstructsError as error:
                    return [str(error)]
                said += [(construct.node.path, finding) for finding in found]
    problems = [_sentence(finding, rendered, providers, who) for who, finding in said if not finding.is_warning]
    if problems:
        return problems
    for who, finding in said:
        warn(cluster + _sentence(finding, rendered, providers, who))
    given_outdir = Path(app.outdir)
    outdir = given_outdir.resolve()
    files: dict[Path, list[dict[str, Any]]] = defaultdict(list)
    for chart, own in rendered.charts:
        name = Names.to_dns_label(chart)
        if name in (NAMESPACES_FILE, CRDS_FILE):
            return [f"{chart.node.path}: id must not be {name!r}, the file that {name[3:]} of all charts go to"]
        for index in own:
            manifest = rendered.manifests[index]
            files[outdir / _file_of(manifest, name)].append(manifest)
    for path, manifests in files.items():
        dist.texts[path] = HEADER + "---\n".join(manifest_text(manifest) for manifest in manifests)
    for construct in constructs:
        if not isinstance(construct, WritesSideFiles):
            continue
        for file in construct.side_files():
            path = dist.folder(file.folder, given_outdir) / file.name
            if path in dist.texts:
                return [
                    f"{construct.node.path}: {file.folder}/{path.name} is written by another construct already; "
                    "give one of them another name"
                ]
            dist.texts[path] = marked(file.name, file.text)
    return []


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

"""The command ``migrate``: converts the values of a Helm chart into a Python app with constructs of this library."""

from __future__ import annotations

import argparse
import dataclasses
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gpu_constructs.cli.exits import CommandError, Exit
from gpu_constructs.cli.migrate.charts import CHARTS, HelmChart, chart_of
from gpu_constructs.cli.terminal import wrapped
from gpu_constructs.errors import GpuConstructsError, ValuesError, sentence
from gpu_constructs.kube.placement import GPU_PRESENT
from gpu_constructs.records import dataclass

EXAMPLES = """\
  gpu-constructs migrate values.yaml
  gpu-constructs migrate values.yaml --chart gpu-operator --platform talos:1.13
  gpu-constructs migrate values.yaml --from-version 0.14.5 --output app.py"""
_EXISTING = "# The cluster already has these. If the app creates one of them, remove it here."
_EMPTY_COUNTS = ("metrics", "priority_class_name")
"""Keyword arguments of constructs for which None or an empty list differs from the default."""
_MAPPINGS = ("env", "volumes")
"""Keyword arguments of constructs for which an empty mapping is the default."""
_OPTIONAL_OPTIONS = ("mps_control_daemon", "pod_mapping")
"""Keyword arguments whose value is a dataclass, and whose default, None, means the dataclass with its own defaults."""


@dataclass(frozen=True)
class Migration:
    """A Helm release that the command converts into a Python app.

    Attributes:
        chart: Name of the Helm chart.
        source: Path of the values file.
        values: Values of the Helm release.
        installation: Keyword arguments of ``HelmChart.convert``, by name: ``release_name``, ``namespace``, ``version``
            and ``platform``.
        from_version: Version of the Helm chart that the cluster runs now; None if the user does not state it.
        is_strict: Whether a value that the library cannot convert ends the command with an error.
    """

    chart: str
    source: str
    values: Mapping[str, Any]
    installation: Mapping[str, Any]
    from_version: str | None
    is_strict: bool

    @property
    def of(self) -> HelmChart:
        """Description of the Helm chart."""
        return CHARTS[self.chart]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    add_release(parser)
    parser.add_argument("--strict", action="store_true", help="fail if the command cannot convert a value")
    parser.add_argument("--output", metavar="FILE", help="write the program to a file (default: standard output)")


def add_release(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that describe a Helm release and the platform of its cluster."""
    parser.add_argument(
        "values",
        metavar="values.yaml",
        type=lambda path: "/dev/stdin" if path == "-" else path,
        help="values file of the Helm release; - for standard input",
    )
    parser.add_argument(
        "--chart", metavar="NAME", help=f"name of the chart: {', '.join(CHARTS)} (default: by the keys)"
    )
    parser.add_argument("--from-version", metavar="X.Y.Z", help="release of the chart that runs now")
    parser.add_argument("--version", metavar="X.Y.Z", help="release to install (default: --from-version or the newest)")
    parser.add_argument("--release-name", metavar="NAME", help="name of the Helm release (default: name of the chart)")
    parser.add_argument(
        "--namespace",
        metavar="NAME",
        help="namespace of the Helm release (default: that of the construct, such as nvidia-gpu-operator)",
    )
    parser.add_argument("--platform", default="kubernetes", metavar="PLATFORM", help="kubernetes or talos:1.13")


def run(args: argparse.Namespace) -> Exit:
    """Print the Python app for a Helm release, or write it to the file of ``--output``.

    Return ``FOUND`` if the app drops or changes a Helm value, or if the Helm chart has changes since
    ``--from-version``.
    """
    text, notes = program(migration_of(args, is_strict=args.strict))
    if args.output is None:
        sys.stdout.write(text)
        return Exit.FOUND if notes else Exit.NOTHING
    try:
        with Path(args.output).open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise CommandError(f"cannot write {args.output}: {error.strerror}. Pass another file") from None
    for note in notes:
        print(wrapped(note, indent=2, first=0), file=sys.stderr)
    return Exit.FOUND if notes else Exit.NOTHING


def migration_of(args: argparse.Namespace, *, is_strict: bool) -> Migration:
    """Return the ``Migration`` (a Helm release and its values) for the arguments of ``migrate`` or ``compare``.

    Args:
        args: Parsed arguments of the command.
        is_strict: Whether the conversion later raises an error for a value that the library cannot convert.

    Raises:
        CommandError: The values file is not readable, or an argument is wrong.
    """
    from gpu_constructs.migration.problems import ValuesFile

    try:
        values = ValuesFile.read(args.values)
    except GpuConstructsError as error:
        raise CommandError(str(error), Exit.COULD_NOT_LOOK) from None
    name = chart_of(args.chart, args.values, values)
    installation = {
        "release_name": args.release_name or name,
        "namespace": args.namespace or CHARTS[name].namespace,
        "version": _version(CHARTS[name], args.version, args.from_version),
        "platform": platform_of(args.platform),
    }
    return Migration(name, args.values, values, installation, args.from_version, is_strict)


def _version(chart: HelmChart, version: str | None, from_version: str | None) -> str:
    """Return the version for the construct that replaces a Helm chart.

    The result is the first of these: ``version``, a supported ``from_version``, the default version of the construct.

    Args:
        chart: Helm chart whose values the command converts.
        version: Version that the user chooses; None if the user chooses none.
        from_version: Version that the cluster runs now; None if it is not known.

    Raises:
        CommandError: The construct does not support ``version``.
    """
    chosen = version or from_version
    supported = chart.releases()
    bare = chosen and chosen.removeprefix("v")
    if version is None and bare not in supported:
        return chart.default_version
    if bare not in supported:
        raise CommandError(f"--version must be one of {', '.join(supported)}, got {version!r}. Pass one of them")
    return str(bare)


def platform_of(text: str) -> Any:
    """Return the platform that a command-line argument names, such as ``talos:1.13``.

    Raises:
        CommandError: The argument does not name a platform.
    """
    from gpu_constructs.catalog.platforms import Kubernetes, Talos

    kind, _, version = text.partition(":")
    classes = {"kubernetes": Kubernetes, "talos": Talos}
    if kind not in classes:
        raise CommandError(f"--platform must be kubernetes or talos, with a release as in talos:1.13, got {text!r}")
    return classes[kind](version) if version else classes[kind]()


def program(migration: Migration) -> tuple[str, Sequence[str]]:
    """Return the text of a Python app that replaces a Helm release, and notes as sentences.

    The notes state which Helm values the app drops or changes. They also state the changes of the Helm chart since the
    version that the cluster runs now.

    Raises:
        CommandError: The library cannot convert a value. The message lists all such values.
    """
    from gpu_constructs.cli.migrate.python_source import Writer

    options, notes = _converted(migration)
    notes = [*migration.of.changes(migration.from_version, migration.installation["version"]), *notes]
    writer = Writer()
    names = ["App", "synth", migration.of.class_name]
    keywords = _needed(migration, options)
    call = writer.call(migration.of.class_name, keywords)
    parent, existing = "app", list[str]()
    if not migration.of.is_chart:
        names += ["Chart", "External"]
        parent = f'Chart(app, "{migration.chart}")'
        external = writer.call("External", _existing(migration, keywords), first=["existing"])
        existing = [_EXISTING, external.after("app").laid_out()]
    if migration.chart == "gpu-operator":
        names.append("Delivery")
        call = dataclasses.replace(call, members=[("delivery=", "Delivery.values()"), *call.members])
    writer.imports.setdefault("gpu_constructs", set()).update(names)
    call = call.after(parent, f'"{migration.installation["release_name"]}"')
    docstring = f"The Helm release {migration.installation['release_name']} of the chart {migration.chart}."
    body = ["app = App()", *existing, *_comments(notes), call.laid_out(), "synth(app)"]
    return writer.program(docstring, body), notes


def _existing(migration: Migration, keywords: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return keyword arguments of ``External`` for the namespace, RuntimeClass and node labels that the app needs.

    Args:
        migration: Helm release.
        keywords: Keyword arguments of the construct in the app, by name.
    """
    needed = {"namespaces": [keywords.get("namespace", migration.installation["namespace"])]}
    if "exporter" in migration.chart:
        needed["node_labels"] = sorted({GPU_PRESENT, *keywords.get("node_selector", ())} - {"kubernetes.io/os"})
    if "runtime_class" in keywords:
        needed["runtime_classes"] = [keywords["runtime_class"]]
    return needed


def _converted(migration: Migration) -> tuple[dict[str, Any], list[str]]:
    """Convert the Helm values. Return keyword arguments of the construct by name, and warnings as sentences.

    Raises:
        CommandError: The library cannot convert a value. The message lists all such values.
    """
    from gpu_constructs.migration.problems import WAY_OUT

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            options = migration.of.convert(migration.values, strict=migration.is_strict, **migration.installation)
        except GpuConstructsError as error:
            found = error.problems if isinstance(error, ValuesError) else [error.problem]
            problems = [problem.replace(WAY_OUT, "Leave out --strict to drop it") for problem in found]
            raise CommandError(
                "\n  ".join([f"{migration.source} cannot be converted:", *problems]), Exit.FOUND
            ) from None
    return options, [f"{sentence(str(one.message))}." for one in caught]


def _needed(migration: Migration, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments of the construct in the app, without values that equal the defaults.

    Args:
        migration: Helm release.
        options: Keyword arguments, by name, into which the library converted the Helm values.
    """
    of, installation = migration.of, migration.installation
    given = {"version": installation["version"], **options}
    if of.has_platform:
        given["platform"] = installation["platform"]
    instance = installation["release_name"] if of.is_chart else options.get("name")
    defaults = {**of.defaults(), "version": of.default_version, "instance": instance}
    return {name: value for name, value in given.items() if not _is_default(name, value, defaults.get(name))}


def _is_default(name: str, value: Any, default: Any) -> bool:
    """Check whether a keyword argument has no effect, because its value means the same as the default.

    Args:
        name: Name of the keyword argument.
        value: Value of the keyword argument.
        default: Default of the keyword argument; None if the default is None or not a constant.
    """
    from gpu_constructs.cli.migrate.python_source import changed

    if value in (None, [], ()):
        return name not in _EMPTY_COUNTS
    if value == {}:
        return name in _MAPPINGS
    if dataclasses.is_dataclass(value):
        return (default is True or name in _OPTIONAL_OPTIONS) and not changed(value)
    return type(value) is type(default) and bool(value == default)


def _comments(notes: Sequence[str]) -> Iterator[str]:
    for note in notes:
        yield from (f"# {line.strip()}" for line in wrapped(note, indent=2).splitlines())

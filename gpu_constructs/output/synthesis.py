"""From apps to dist/: check the call, render, check everything at once, then write; or say what is wrong instead."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from cdk8s import App, YamlOutputType
from constructs import Construct

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
from gpu_constructs.kube import fields
from gpu_constructs.output.examination import examined
from gpu_constructs.output.files import SUFFIX, OutputFiles, PartlyWritten, program_name, running_program, shown
from gpu_constructs.output.layout import add_files
from gpu_constructs.tree.garbage import collected_rarely
from gpu_constructs.tree.held_apps import expect_nothing_more, mark_rendered, warnings_of


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
    output = output_files(apps, program)
    of_constructs = _warnings_of_constructs(apps)
    problems: list[str] = []
    warnings: list[str] = []
    for app in apps:
        mark_rendered(app)
        # Of several clusters each says whose problem it is.
        cluster = f"{Path(app.outdir).name}: " if len(apps) > 1 else ""
        with collected_rarely():
            checked = examined(app)
            found = list(checked.problems)
            if checked.rendered is not None and not found:
                found = add_files(checked, checked.rendered, output)
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
    return SynthesisReport(folder=f"{shown(output.root)}/", warnings=[*of_constructs, *warnings], **done)


def check_before_cdk8s(app: App) -> None:
    """Check what ``synth`` checks before cdk8s' own ``app.synth()`` writes what it renders.

    Raises:
        RenderingError: With every problem found.
    """
    of_constructs = _warnings_of_constructs([app])
    checked = examined(app)
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


_OUTDIR_VARIABLE = "CDK8S_OUTDIR"


def output_files(apps: Sequence[object], program: str | None) -> OutputFiles:
    """Return where the apps are written; what is wrong with the call is the only problem then.

    Raises:
        SynthesisError: Something is.
    """
    given = cast(Sequence[App], apps)
    try:
        fields.refuse_first(_wrong_arguments(apps))
        outdirs = [app.outdir for app in given]
        fields.refuse_first(_wrong_settings(given, outdirs, program))
    except GpuConstructsError as error:
        raise SynthesisError([error.problem], outcome="") from None
    resolved = [Path(outdir).resolve() for outdir in outdirs]
    root = resolved[0] if len(resolved) == 1 else resolved[0].parent
    named = running_program() if program is None else program
    return OutputFiles(root, resolved, named, frozenset(map(id, given)))


def _wrong_arguments(apps: Sequence[object]) -> Iterator[fields.Conflict]:
    yield not apps, "synth must be given at least one App"
    for app in apps:
        yield (
            isinstance(app, list | tuple),
            f"synth takes each App by itself; got a {type(app).__name__}; write synth(*apps)",
        )
        yield (
            isinstance(app, str | Path),
            f"synth takes Apps only; got {str(app)!r}; the folder is that of App(outdir={str(app)!r})",
        )
        name = getattr(app, "__name__", "")
        yield isinstance(app, type), f"synth takes Apps only; got the class {name}; make one with App()"
        yield (
            not isinstance(app, App),
            f"synth takes Apps only; got {_described(app)}; pass the App that it is made in",
        )


def _wrong_settings(apps: Sequence[App], outdirs: Sequence[str], program: object) -> Iterator[fields.Conflict]:
    yield (
        os.environ.get(_OUTDIR_VARIABLE) == "",
        f"{_OUTDIR_VARIABLE} must name a folder; it is set and empty; unset it, or name one",
    )
    for app, outdir in zip(apps, outdirs, strict=True):
        yield not outdir.strip(), f"outdir must name a folder; got {outdir!r}; leave it out for dist/"
        yield (
            app.yaml_output_type is not YamlOutputType.FILE_PER_CHART,
            "yaml_output_type must be FILE_PER_CHART for synth, which sorts objects into files itself; got "
            f"{app.yaml_output_type.name}; leave it out, or call app.synth()",
        )
        yield (
            app.output_file_extension != SUFFIX,
            f"output_file_extension must be {SUFFIX!r} for synth; got {app.output_file_extension!r}; leave it out, "
            "or call app.synth()",
        )
    resolved = {Path(outdir).resolve() for outdir in outdirs}
    yield len(resolved) < len(outdirs), "every App needs an outdir of its own; got the same one twice"
    yield (
        len({outdir.parent for outdir in resolved}) > 1,
        f"the outdirs of several Apps must lie side by side; got {', '.join(sorted(outdirs))}",
    )
    is_name = program is None or (isinstance(program, str) and program == program_name(program))
    yield (
        not is_name,
        f"program must be letters, digits and any of '._/-'; got {program!r}; leave it out for the script's",
    )


def _described(value: object) -> str:
    if isinstance(value, Construct):
        return f"the {type(value).__name__} {value.node.path!r}"
    return f"{value!r:.60} ({type(value).__name__})"

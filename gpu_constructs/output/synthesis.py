"""The functions ``synth`` and ``synthesize``, which check all objects of an app and write its output files.

If a check finds a problem, both functions report all problems and write nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
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
from gpu_constructs.records import dataclass
from gpu_constructs.tree.garbage import collected_rarely
from gpu_constructs.tree.held_apps import expect_nothing_more, mark_rendered, warnings_of


@dataclass(frozen=True, kw_only=True)
class SynthesisReport:
    """The result of ``synthesize``. Its ``str`` is the line that ``synth`` prints.

    Attributes:
        folder: Folder of the output files for messages, such as ``dist/``.
        written: Output files that are new or changed.
        unchanged: Output files whose content did not change.
        removed: Output files of an earlier run that ``synth`` removed, because the app no longer writes them.
        taken_over: Files in ``written`` that replaced a file which this library did not write.
        warnings: Messages of all warnings: from the checks, and from constructs of the app.
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
            parts.append(f"replaced {len(self.taken_over)} that gpu_constructs did not write ({listed})")
        if self.removed:
            parts.append(f"removed {len(self.removed)}")
        if self.warnings:
            parts.append(_counted(len(self.warnings), "warning"))
        return ", ".join(parts)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


@short_errors
def synth(*apps: App, strict: bool = False, quiet: bool = False, program: str | None = None) -> None:
    """Write the manifests of all apps, one app for each cluster. Call ``synth`` at the end of ``app.py``.

    Each app goes to its own ``outdir``:

    - ``00-namespaces.k8s.yaml``: all Namespaces.
    - ``01-crds.k8s.yaml``: all custom resource definitions.
    - ``02-classes.k8s.yaml``: RuntimeClasses, PriorityClasses and other cluster-scoped classes.
    - ``needs-crds/``: objects of kinds that Kubernetes does not define.
    - one file for each chart: all other objects.
    - ``helm-values/`` and ``machine-config/``: Helm values and machine configuration. With several apps, these folders
      are beside the output folders of the apps.

    ``kubectl apply -f`` reads the files of a folder by name, so it creates Namespaces first. Apply ``needs-crds/``
    after the folder that contains it.

    The first line of each output file states that this library generated the file. The line also contains the name of
    the script that called ``synth``, unless this is ``app.py``. ``synth`` removes files that the same script wrote
    earlier but does not write now. It never removes files without that line. Files of another script stay, and a
    warning names them. If an output file would replace a file of another script, ``synth`` reports an error. If a
    script calls ``synth`` several times with different Apps, each App counts as a separate script. ``synth`` never
    writes or removes a file through a symbolic link.

    One line on stderr summarizes the result. If there is a problem, ``synth`` prints every problem of every app with
    its construct path, does not change dist/, and exits with status 1.

    Args:
        apps: The apps. Several apps must have output folders with the same parent (``App(outdir="dist/homelab")``,
            ``"dist/fleet"``). In this parent folder, ``synth`` also removes files that the same script generated for a
            cluster that is no longer among ``apps``.
        strict: Whether warnings are errors. The environment variable ``GPU_CONSTRUCTS_STRICT=1`` has the same effect.
            Warnings that a filter of Python's ``warnings`` module ignores do not count.
        quiet: Whether to omit the line that summarizes the result.
        program: Name of the script for the first line of each output file. By default, it is the path of the script in
            its repository. For ``app.py``, a test, or a notebook, the name is empty. Set it if two scripts of the same
            name write to one folder.
    """
    print_result(lambda: synthesize(*apps, strict=strict, program=program), quiet=quiet)


def print_result(run: Callable[[], SynthesisReport], *, quiet: bool) -> None:
    """Call a function such as ``synthesize``, and print its report to stderr.

    If the function raises ``SynthesisError``, print the problems instead, and exit with status 1.

    Args:
        run: Function that returns the report, or raises ``SynthesisError``.
        quiet: Whether to omit the report.
    """
    try:
        report = run()
    except SynthesisError as error:
        print(error, file=sys.stderr)
        expect_nothing_more()
        raise SystemExit(1) from None
    if not quiet:
        print(report, file=sys.stderr)


@short_errors
def synthesize(*apps: App, strict: bool = False, program: str | None = None) -> SynthesisReport:
    """Write the files of all apps as ``synth`` does. Return a report, and raise an error instead of exiting.

    Args:
        apps: The apps, as for ``synth``.
        strict: Whether warnings are errors, as for ``synth``.
        program: Name of the script, as for ``synth``.

    Raises:
        SynthesisError: If there is a problem. The error lists all problems.
    """
    heeds_warnings = is_strict(strict)
    output = output_files(apps, program)
    of_constructs = _warnings_of_constructs(apps)
    problems: list[str] = []
    warnings: list[str] = []
    for app in apps:
        # If there are several clusters, each message begins with the name of its cluster.
        cluster = f"{Path(app.outdir).name}: " if len(apps) > 1 else ""
        found, of_checks = rendered_into(app, output)
        warnings += [cluster + warning for warning in of_checks]
        problems += [cluster + problem for problem in found]
    if not problems:
        problems = output.problems()
        warnings += output.warnings()
    _refuse([*problems, *(_heeded(of_constructs, warnings) if heeds_warnings else ())])
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


def rendered_into(app: App, output: OutputFiles) -> tuple[Sequence[str], Sequence[str]]:
    """Render and check an app, and add its files to ``output``. Return a pair: problems and warnings, as messages.

    Args:
        app: The cdk8s App.
        output: Output files that ``synth`` writes later.
    """
    mark_rendered(app)
    with collected_rarely():
        checked = examined(app)
        problems = checked.problems
        if checked.rendered is not None and not problems:
            problems = add_files(checked, checked.rendered, output)
    return problems, checked.warnings


def check_before_cdk8s(app: App) -> None:
    """Run the checks of ``synth`` on an app before ``app.synth()`` of cdk8s writes its manifest files.

    Raises:
        RenderingError: If a check finds a problem. The error lists all problems.
    """
    of_constructs = _warnings_of_constructs([app])
    checked = examined(app)
    heeded = _heeded(of_constructs, checked.warnings) if is_strict(False) else []
    problems = list(dict.fromkeys([*checked.problems, *heeded]))
    if problems:
        raise RenderingError(problems)
    for warning in checked.warnings:
        warn(warning)


def is_strict(strict: bool) -> bool:
    """Check whether warnings are errors, because of ``strict`` or the environment variable ``GPU_CONSTRUCTS_STRICT``.

    Raises:
        SynthesisError: The argument or the environment variable has an invalid value.
    """
    if not isinstance(strict, bool):
        raise SynthesisError([f"strict must be True or False, got {strict!r}"], outcome="")
    try:
        return strict_by_environment() or strict
    except GpuConstructsError as error:
        raise SynthesisError([str(error)], outcome="") from None


def _warnings_of_constructs(apps: Sequence[App]) -> list[str]:
    """Return the warnings that constructs of the apps issued, and those that the library issued outside of any app.

    The result omits warnings that a filter of Python's module ``warnings`` ignores.
    """
    kept = [warning for app in apps for warning in warnings_of(app) if not is_ignored(warning)]
    return list(dict.fromkeys([*take_shown_warnings(), *kept]))


def _heeded(of_constructs: Sequence[str], warnings: Sequence[str]) -> list[str]:
    """Return the warnings that count as errors in strict mode.

    Args:
        of_constructs: Warnings that constructs issued. The result contains all these warnings.
        warnings: Warnings of the checks. The result omits each of these warnings that a filter of Python's module
            ``warnings`` ignores.
    """
    return [*of_constructs, *(warning for warning in warnings if not is_ignored(warning))]


def _refuse(problems: Sequence[str]) -> None:
    if problems:
        raise SynthesisError(list(dict.fromkeys(problems)))


_OUTDIR_VARIABLE = "CDK8S_OUTDIR"


def output_files(apps: Sequence[object], program: str | None) -> OutputFiles:
    """Return an empty ``OutputFiles`` for some apps.

    Args:
        apps: The apps, as the user passes them to ``synth``.
        program: Name of the script for the first line of each file. None: the name of the running script.

    Raises:
        SynthesisError: An argument is invalid. The error contains only the first such problem.
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
    yield not apps, "synth needs at least one App"
    for app in apps:
        yield (
            isinstance(app, list | tuple),
            f"synth takes each App as a separate argument, got a {type(app).__name__}. Write synth(*apps)",
        )
        yield (
            isinstance(app, str | Path),
            f"synth takes Apps only, got {str(app)!r}. Set the folder with App(outdir={str(app)!r})",
        )
        name = getattr(app, "__name__", "")
        yield isinstance(app, type), f"synth takes Apps only, got the class {name}. Make one with App()"
        yield (
            not isinstance(app, App),
            f"synth takes Apps only, got {_described(app)}. Pass the App that contains it",
        )


def _wrong_settings(apps: Sequence[App], outdirs: Sequence[str], program: object) -> Iterator[fields.Conflict]:
    yield (
        os.environ.get(_OUTDIR_VARIABLE) == "",
        f"{_OUTDIR_VARIABLE} must name a folder, got an empty value. Unset it, or name a folder",
    )
    for app, outdir in zip(apps, outdirs, strict=True):
        yield not outdir.strip(), f"outdir must name a folder, got {outdir!r}. Leave it out to use dist/"
        yield (
            app.yaml_output_type is not YamlOutputType.FILE_PER_CHART,
            "yaml_output_type must be FILE_PER_CHART for synth, which sorts objects into files itself, got "
            f"{app.yaml_output_type.name}. Leave it out, or call app.synth()",
        )
        yield (
            app.output_file_extension != SUFFIX,
            f"output_file_extension must be {SUFFIX!r} for synth, got {app.output_file_extension!r}. Leave it out, "
            "or call app.synth()",
        )
    resolved = {Path(outdir).resolve() for outdir in outdirs}
    yield len(resolved) < len(outdirs), "every App needs its own outdir, got the same one twice"
    yield (
        len({outdir.parent for outdir in resolved}) > 1,
        f"the outdirs of several Apps must be in the same folder, got {', '.join(sorted(outdirs))}",
    )
    is_name = program is None or (isinstance(program, str) and program == program_name(program))
    yield (
        not is_name,
        f"program must consist of letters, digits and '._/-', got {program!r}. Leave it out to use the name of the "
        "script",
    )


def _described(value: object) -> str:
    if isinstance(value, Construct):
        return f"the {type(value).__name__} {value.node.path!r}"
    return f"{value!r:.60} ({type(value).__name__})"

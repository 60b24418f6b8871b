"""Functions that synthesize the clusters of a fleet, in this process or in several processes."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cdk8s import App

from gpu_constructs.errors import GpuConstructsError, GpuConstructsWarning, with_users_line
from gpu_constructs.fleet.cluster import Cluster, Fill
from gpu_constructs.fleet.totals import Capacity, of_cluster
from gpu_constructs.output.files import OutputFiles, PartlyWritten, StagedFiles
from gpu_constructs.output.synthesis import rendered_into
from gpu_constructs.tree.held_apps import mark_rendered

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

_SECONDS_WITHOUT_PROGRESS = 2


class Work(NamedTuple):
    """The settings of a run, which are the same for all clusters.

    Attributes:
        fill: Function of the user that adds the constructs of a cluster to its App.
        root: Output folder of the fleet.
        program: Name of the user's app in the first line of output files.
        fleet: Number that identifies the ``Fleet`` in this process.
    """

    fill: Fill
    root: Path
    program: str
    fleet: int


class Told(NamedTuple):
    """A warning of a construct, with the file and the line of the user's app to which the warning refers."""

    text: str
    filename: str
    line: int


class Outcome(NamedTuple):
    """The result of the synthesis of one cluster.

    Attributes:
        name: Name of the cluster.
        problems: Texts of the problems.
        told: Warnings of constructs.
        warnings: Warnings of the checks.
        staged: Output files of the cluster under temporary names; None if there is a problem.
        capacity: Capacity by name of the board, such as ``H100``. The key of the whole cluster is the empty text. None
            if the cluster has no capacity plan.
    """

    name: str
    problems: Sequence[str] = ()
    told: Sequence[Told] = ()
    warnings: Sequence[str] = ()
    staged: StagedFiles | None = None
    capacity: Mapping[str, Capacity] | None = None


def outcome_of(work: Work, cluster: Cluster) -> Outcome:
    """Synthesize the App of a cluster, write its output files under temporary names, and return the result."""
    outdir = work.root / cluster.name
    app = App(outdir=str(outdir))
    with warnings.catch_warnings(record=True) as caught:
        try:
            work.fill(app, cluster)
        except GpuConstructsError as error:
            return Outcome(cluster.name, problems=[with_users_line(error)])
        except Exception as error:
            error.add_note(f"This error is from the cluster {cluster.name!r} of the fleet.")
            raise
        finally:
            mark_rendered(app)
    told = list(dict.fromkeys(_told(caught)))
    output = OutputFiles(work.root, [outdir], work.program, frozenset({work.fleet}), removes_beside=False)
    problems, of_checks = rendered_into(app, output)
    problems = problems or output.problems()
    if problems:
        return Outcome(cluster.name, problems, told, of_checks)
    try:
        staged = output.stage()
    except PartlyWritten as error:
        return Outcome(cluster.name, [error.reason], told, of_checks)
    return Outcome(cluster.name, (), told, [*of_checks, *output.warnings()], staged, _capacity(output, outdir))


def _told(caught: Iterable[warnings.WarningMessage]) -> Iterator[Told]:
    for one in caught:
        if issubclass(one.category, GpuConstructsWarning):
            yield Told(str(one.message), one.filename, one.lineno)
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


def _capacity(output: OutputFiles, outdir: Path) -> Mapping[str, Capacity] | None:
    folder = output.folder("reports", outdir)
    reports = (text for path, text in output.texts.items() if path.parent == folder and path.suffix == ".json")
    return next(map(of_cluster, reports), None)


def outcomes(work: Work, clusters: Sequence[Cluster], jobs: int) -> Iterator[Outcome]:
    """Yield the result of the synthesis of each cluster, in the order of the clusters.

    Args:
        work: Settings of the run, which are the same for all clusters.
        clusters: Clusters of the run.
        jobs: Number of processes. With 1, no further process starts.

    Raises:
        GpuConstructsError: Another process cannot call the function of the user.
    """
    if min(jobs, len(clusters)) <= 1:
        for cluster in clusters:
            yield outcome_of(work, cluster)
        return
    # The imports of these modules are slow, and most runs use one process.
    import multiprocessing
    from concurrent.futures.process import BrokenProcessPool

    if getattr(multiprocessing.current_process(), "_inheriting", False):
        # This process imports a program that lacks "if __name__". The first process reports it.
        os._exit(1)
    with _processes(work, min(jobs, len(clusters))) as pool:
        started = [pool.submit(_in_process, cluster) for cluster in clusters]
        try:
            for one in started:
                yield one.result()
        except BrokenProcessPool:
            _discard(started)
            raise GpuConstructsError(
                "jobs must be 1 if other processes cannot import the program. Create the fleet at the top level, and "
                "call its synth or main below 'if __name__ == \"__main__\":'"
            ) from None
        except BaseException:
            _discard(started)
            raise


@contextmanager
def _processes(work: Work, jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Start a pool of Python processes for a ``with`` block. Each process imports the user's app again.

    The function does not fork this process, because the copies would share one Node.js process.

    Raises:
        GpuConstructsError: The function of the user is not at the top level of a module.
    """
    try:
        pickle.dumps(work)
    except (pickle.PicklingError, AttributeError, TypeError):
        name = getattr(work.fill, "__qualname__", repr(work.fill))
        raise GpuConstructsError(
            f"fill must be a function at the top level of a module if jobs is more than 1, got {name}. Move it there, "
            "or leave jobs out"
        ) from None
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    start = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=start, initializer=_start, initargs=(work,)) as pool:
        yield pool


_work: list[Work] = []


def _start(work: Work) -> None:
    # The first process ends the others after an interrupt.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _work[:] = [work]


def _in_process(cluster: Cluster) -> Outcome:
    return outcome_of(_work[0], cluster)


def _discard(started: Sequence[Future[Outcome]]) -> None:
    """Cancel each synthesis that has not started. Wait for each started one, and remove its temporary files."""
    for one in started:
        if not one.cancel() and one.exception() is None:
            discard([one.result()])


def discard(done: Iterable[Outcome]) -> None:
    """Remove the temporary files in the given results of clusters."""
    for one in done:
        if one.staged is not None:
            one.staged.discard()


def with_progress(found: Iterable[Outcome], count: int) -> Iterator[Outcome]:
    """Yield the given results of clusters, and show in a terminal how many clusters have a result, such as ``3 of 40``.

    Args:
        found: Results of the clusters, which the function reads one by one.
        count: Number of all clusters in the run.
    """
    start, is_shown = time.monotonic(), False
    try:
        for done, one in enumerate(found, 1):
            if sys.stderr.isatty() and time.monotonic() - start > _SECONDS_WITHOUT_PROGRESS:
                print(f"\r{done} of {count} clusters", end="", file=sys.stderr, flush=True)
                is_shown = True
            yield one
    finally:
        if is_shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)

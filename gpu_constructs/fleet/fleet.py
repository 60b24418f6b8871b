"""``Fleet``: many clusters for which one Python program writes the manifest files."""

from __future__ import annotations

import argparse
import os
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from gpu_constructs.capacity.wording import some
from gpu_constructs.errors import (
    GpuConstructsError,
    GpuConstructsWarning,
    ShortErrors,
    SynthesisError,
    is_ignored,
    short_errors,
    take_shown_warnings,
    warn,
)
from gpu_constructs.fleet.cluster import Cluster, ClusterGroup, Fill
from gpu_constructs.fleet.clusters_file import read
from gpu_constructs.fleet.delivery import FleetDelivery
from gpu_constructs.fleet.run import Outcome, Told, Work, discard, outcomes, with_progress
from gpu_constructs.fleet.selection import selected
from gpu_constructs.fleet.totals import STEM, Capacity, on_disk, totals
from gpu_constructs.kube import fields, side_files, yaml_text
from gpu_constructs.output.files import SUFFIX, OutputFiles, PartlyWritten, running_program, shown
from gpu_constructs.output.synthesis import SynthesisReport, is_strict, print_result

_NAMED = 3
"""Largest number of clusters that a message names."""

_OUTDIR_VARIABLE = "CDK8S_OUTDIR"


class Fleet(metaclass=ShortErrors):
    """Clusters whose constructs one Python function of the user creates.

    Attributes:
        clusters: Clusters, each with the platform and the values of its groups, in the order in which the user lists
            the clusters.
    """

    def __init__(
        self,
        fill: Fill,
        *,
        clusters: Sequence[Cluster],
        groups: Sequence[ClusterGroup] = (),
        delivery: FleetDelivery | None = None,
        totals_by: Sequence[str] = ("region", "owner"),
    ) -> None:
        """Create the fleet. Call ``synth`` to write its output files.

        Args:
            fill: Function that adds the constructs of a cluster to its App: ``fill(app, cluster)``. If ``synth`` uses
                several processes (``jobs``), the function must be at the top level of a module.
            clusters: Clusters with different names.
            groups: Settings for the clusters that have certain labels; none by default. A setting of a later group
                replaces that of an earlier group, and a setting of a cluster replaces that of its groups.
            delivery: Settings with which Argo CD or Flux deploys the manifest files to the clusters. With None (the
                default), you apply the manifest files yourself.
            totals_by: Labels of clusters for the capacity report; ``region`` and ``owner`` by default. For each value
                of such a label, the report adds up the capacity of all clusters with this value. It also adds up the
                capacity of all boards of the same name.

        Raises:
            GpuConstructsError: There is no cluster, two clusters have the same name, or a cluster has no platform.
        """
        fields.refuse_first(
            [
                (not callable(fill), f"fill must be a function that takes an App and a Cluster, got {fill!r:.60}"),
                (not clusters, "clusters must have at least one Cluster, got none"),
                *(
                    (not isinstance(one, kind), f"{field} must be {kind.__name__} objects, got {one!r:.60}")
                    for field, kind, given in (("clusters", Cluster, clusters), ("groups", ClusterGroup, groups))
                    for one in given
                ),
                (
                    delivery is not None and not isinstance(delivery, FleetDelivery),
                    f"delivery must come from FleetDelivery.argo_cd(...) or .flux(...), got {delivery!r:.60}",
                ),
            ]
        )
        for name, count in Counter(one.name for one in clusters).items():
            if count > 1:
                raise GpuConstructsError(f"clusters must have different names, got {name!r} twice. Rename one of them")
        self.clusters = tuple(one.in_groups(groups) for one in clusters)
        self._fill, self._delivery, self._totals_by = fill, delivery, tuple(totals_by)
        self._delivered = [] if delivery is None else delivery.manifests([one.name for one in clusters])

    @classmethod
    @short_errors
    def from_file(
        cls,
        path: str | Path,
        fill: Fill,
        *,
        delivery: FleetDelivery | None = None,
        totals_by: Sequence[str] = ("region", "owner"),
    ) -> Fleet:
        """Return the fleet that a YAML file declares.

        The keys of the file are ``clusters`` and ``groups``. The keys of their elements are the attributes of
        ``Cluster`` and ``ClusterGroup``. A platform is a mapping, such as ``{talos: "1.13"}`` or ``{kubernetes:
        "1.35"}``. Nodes have the format of ``GpuInventory.from_yaml``.

        Args:
            path: Path of the file.
            fill: Function that adds the constructs of a cluster to its App.
            delivery: Settings with which Argo CD or Flux deploys the manifest files to the clusters; None by default.
            totals_by: Labels of clusters. The capacity report adds up the capacity of the clusters with the same value.

        Raises:
            GpuConstructsError: The file is not readable, or its content is invalid. The message states the line.
        """
        fields.of_type("path", path, str | Path)
        try:
            text = Path(path).read_text(encoding="utf-8-sig")
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not a UTF-8 text file"
            raise GpuConstructsError(f"path must be a readable YAML file, got {str(path)!r}: {reason}") from None
        try:
            found = read(text)
            return cls(fill, clusters=found.clusters, groups=found.groups, delivery=delivery, totals_by=totals_by)
        except GpuConstructsError as error:
            raise GpuConstructsError(f"{Path(path).name} {error.problem}") from None

    @short_errors
    def synth(
        self,
        outdir: str | None = None,
        *,
        only: Sequence[str] = (),
        shard: str | None = None,
        jobs: int = 1,
        strict: bool = False,
        quiet: bool = False,
        program: str | None = None,
    ) -> None:
        """Write the output files of the clusters. If there is a problem, print all problems and exit with status 1.

        The manifest files of a cluster are in ``<outdir>/<cluster>/``. The folders ``helm-values``, ``machine-config``
        and ``reports`` in ``outdir`` contain a folder for each cluster too. ``fleet.k8s.yaml`` contains the
        ApplicationSet of Argo CD or the Kustomizations of Flux that deploy the manifest files. The reports
        ``fleet-capacity.txt`` and ``fleet-capacity.json`` add up the capacity plans of all clusters. For a cluster that
        this run does not write, the reports use the capacity plan from an earlier run. If one cluster has a problem,
        the method writes no file.

        A call for all clusters removes the output files of clusters that are no longer in the fleet. A call with
        ``only`` or ``shard`` removes outdated output files of the selected clusters only. A call with ``shard`` does
        not write the capacity reports of the fleet. Call ``finish`` after all shards to write these reports.

        Args:
            outdir: Output folder; by default the value of the environment variable ``CDK8S_OUTDIR``, or ``dist``.
            only: Names of clusters, or patterns such as ``eu-*``; all clusters by default.
            shard: Shard of the clusters, such as ``3/10`` for the third of ten; all by default. The shard of a cluster
                depends only on its name.
            jobs: Number of processes; 1 by default. If it is more than 1, each process imports the user's app again.
            strict: Whether warnings are errors, as for the function ``synth``.
            quiet: Whether to omit the progress and the line that summarizes the result.
            program: Name of the user's app in the first line of output files, as for the function ``synth``.
        """
        options: dict[str, Any] = {"only": only, "shard": shard, "jobs": jobs, "strict": strict, "program": program}
        print_result(lambda: self.synthesize(outdir, quiet=quiet, **options), quiet=quiet)

    @short_errors
    def synthesize(
        self,
        outdir: str | None = None,
        *,
        only: Sequence[str] = (),
        shard: str | None = None,
        jobs: int = 1,
        strict: bool = False,
        quiet: bool = True,
        program: str | None = None,
    ) -> SynthesisReport:
        """Write the output files of the clusters like ``synth``. Return a report, or raise an error with all problems.

        Args:
            outdir: Output folder, as for ``synth``.
            only: Names of clusters, or patterns such as ``eu-*``; all clusters by default.
            shard: Shard of the clusters, such as ``3/10``; all by default.
            jobs: Number of processes; 1 by default.
            strict: Whether warnings are errors.
            quiet: Whether to omit the progress; True by default.
            program: Name of the user's app in the first line of output files.

        Raises:
            SynthesisError: If there is a problem. The error lists all problems.
            GpuConstructsError: An argument is invalid.
        """
        fields.whole_number("jobs", jobs, minimum=1)
        only = [only] if isinstance(only, str) else only
        chosen = selected(self.clusters, only, shard)
        heeds_warnings = is_strict(strict)
        work = Work(self._fill, _root(outdir), running_program() if program is None else program, id(self))
        found, had_root = outcomes(work, chosen, jobs), work.root.exists()
        done: list[Outcome] = []
        try:
            done.extend(found if quiet else with_progress(found, len(chosen)))
            told, problems = _messages(done, heeds_warnings)
            output = self._own_files(work, done, is_whole=not only and shard is None, adds_up=shard is None)
            problems += [] if problems else output.problems()
            if problems:
                raise SynthesisError(problems)
            return self._written(work.root, done, output, told)
        finally:
            discard(done)
            if not had_root:
                with suppress(OSError):
                    work.root.rmdir()

    @short_errors
    def finish(self, outdir: str | None = None, *, program: str | None = None) -> SynthesisReport:
        """Write ``fleet.k8s.yaml`` and the capacity reports of the fleet, after ``synth`` has run for all shards.

        The method reads the capacity plans of the clusters from the output folder. It also removes the output files of
        clusters that are no longer in the fleet.

        Args:
            outdir: Output folder, as for ``synth``.
            program: Name of the user's app, as for ``synth``.

        Raises:
            SynthesisError: If one of the files belongs to another Python program, or if the method cannot write it.
        """
        work = Work(self._fill, _root(outdir), running_program() if program is None else program, id(self))
        output = self._own_files(work, (), is_whole=True, adds_up=True)
        problems = output.problems()
        if problems:
            raise SynthesisError(problems)
        return self._written(work.root, (), output, ())

    @short_errors
    def main(self, arguments: Sequence[str] | None = None) -> None:
        """Run ``synth`` or ``finish`` with the arguments of the command line.

        Args:
            arguments: Arguments; by default those of the process, such as ``--shard 3/10 --jobs 2``.
        """
        parser = argparse.ArgumentParser(description=f"Synthesize the {len(self.clusters)} clusters of the fleet.")
        parser.add_argument("--outdir", help="output folder; dist by default")
        parser.add_argument(
            "--only", metavar="CLUSTER", action="append", default=[], help="name or pattern; repeatable"
        )
        parser.add_argument("--shard", metavar="I/N", help="one of N parts of the fleet, such as 3/10")
        parser.add_argument("--jobs", metavar="N", type=int, default=1, help="number of processes; 1 by default")
        parser.add_argument("--strict", action="store_true", help="treat warnings as errors")
        parser.add_argument("--quiet", action="store_true", help="print problems and warnings only")
        parser.add_argument("--finish", action="store_true", help="write the files of the whole fleet after all shards")
        given = vars(parser.parse_args(arguments))
        try:
            if not given.pop("finish"):
                return self.synth(**given)
            print_result(lambda: self.finish(given["outdir"]), quiet=given["quiet"])
        except GpuConstructsError as error:
            parser.error(error.problem)

    def _own_files(self, work: Work, done: Sequence[Outcome], *, is_whole: bool, adds_up: bool) -> OutputFiles:
        """Return the output files of the whole fleet: ``fleet.k8s.yaml`` and the capacity reports.

        Args:
            work: Settings of the run, which are the same for all clusters.
            done: Results of the clusters in this run.
            is_whole: Whether the run contains all clusters of the fleet. If True, writing the files also removes the
                output files of clusters that are no longer in the fleet.
            adds_up: Whether to write the capacity reports of the fleet.
        """
        output = OutputFiles(
            work.root,
            [],
            work.program,
            frozenset({work.fleet}),
            removes_beside=is_whole,
            clusters=frozenset(one.name for one in self.clusters),
        )
        texts: dict[str, str] = {}
        if self._delivered:
            texts[f"fleet{SUFFIX}"] = "---\n".join(map(yaml_text.manifest_text, self._delivered))
        if adds_up:
            texts |= self._sums(work.root, done)
        for name, text in texts.items():
            path = work.root / name
            output.texts[path] = side_files.marked(path.name, text, work.program)
        return output

    def _sums(self, root: Path, done: Sequence[Outcome]) -> dict[str, str]:
        """Return the capacity reports of the fleet, as text by path; empty if no cluster has a capacity plan.

        Args:
            root: Output folder of the fleet.
            done: Results of the clusters in this run.
        """
        own: dict[str, Mapping[str, Capacity] | None] = {one.name: one.capacity for one in done}
        found = {
            one.name: own[one.name] if one.name in own else on_disk(root / "reports" / one.name)
            for one in self.clusters
        }
        if not any(found.values()):
            return {}
        sums = totals(self.clusters, found, self._totals_by)
        return {f"reports/{STEM}.json": sums.to_json(), f"reports/{STEM}.txt": sums.to_text()}

    def _written(
        self, root: Path, done: Sequence[Outcome], output: OutputFiles, told: Sequence[str]
    ) -> SynthesisReport:
        """Replace the old output files of the fleet and its clusters by the new output files, and return a report.

        Args:
            root: Output folder of the fleet.
            done: Results of the clusters, with their output files under temporary names.
            output: Output files of the whole fleet.
            told: Warnings for the report.
        """
        files: dict[str, list[Path]] = defaultdict(list)
        try:
            for staged in (*(one.staged for one in done if one.staged is not None), output.stage()):
                for what, paths in staged.commit().items():
                    files[what].extend(paths)
        except PartlyWritten as error:
            is_changed = bool(error.details or files["written"] or files["removed"])
            outcome = "some files were changed" if is_changed else "nothing was written"
            raise SynthesisError([error.reason], outcome=outcome, details=error.details) from None
        return SynthesisReport(folder=f"{shown(root)}/", warnings=told, **files)


def _root(outdir: str | None) -> Path:
    return Path(outdir or os.environ.get(_OUTDIR_VARIABLE) or "dist").resolve()


def _messages(done: Sequence[Outcome], heeds_warnings: bool) -> tuple[list[str], list[str]]:
    """Return two lists: the warnings and the problems of all clusters. Print the warnings if there is no problem.

    A message of several clusters occurs once, and begins with the names of these clusters.

    Args:
        done: Results of all clusters of the run.
        heeds_warnings: Whether warnings also count as problems.
    """
    told = [(f"{who}: {one.text}", one) for one, who in _grouped((one.name, one.told) for one in done)]
    checked = [f"{who}: {text}" for text, who in _grouped((one.name, one.warnings) for one in done)]
    problems = [f"{who}: {text}" for text, who in _grouped((one.name, one.problems) for one in done)]
    if heeds_warnings:
        problems += [text for text, _ in told]
        problems += [text for text in checked if not is_ignored(text)]
    if not problems:
        _print(told, checked)
    return [*(text for text, _ in told), *checked], problems


def _print(told: Iterable[tuple[str, Told]], checked: Iterable[str]) -> None:
    """Print warnings of constructs, each with its line of code in the user's app, and warnings of checks.

    Args:
        told: Warnings of constructs, as pairs: the text to print, and the warning with its line of code.
        checked: Texts of the warnings of checks.
    """
    for text, one in told:
        warnings.warn_explicit(text, GpuConstructsWarning, one.filename, one.line)
    for text in checked:
        warn(text)
    take_shown_warnings()


_Text = TypeVar("_Text", str, Told)


def _grouped(found: Iterable[tuple[str, Sequence[_Text]]]) -> list[tuple[_Text, str]]:
    """Return a pair for each different message: the message, and a text that names the clusters that have it.

    Args:
        found: Name of each cluster, with its messages.
    """
    names: dict[_Text, list[str]] = defaultdict(list)
    for name, texts in found:
        for text in texts:
            names[text].append(name)
    return [(text, some(of_text, _NAMED)) for text, of_text in names.items()]

"""The parity proof: what this library makes of Helm values, beside what their chart renders from them.

``python -m tests.parity DIR [DIR ...]`` reads every case below the folders and compares field by field. It exits with 1
when a difference is not explained by the chart's table of deviations, when a case crashes, or when there is none.
"""

import argparse
import sys
import traceback
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import deviations
from parity_cases import Case, UnreadableCase, find_cases
from parity_chart import Release
from parity_compare import Result, compare
from parity_exporter import DcgmRelease
from parity_smi_exporter import SmiRelease


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the proof and give the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.parity", description=__doc__.split("\n\n")[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR", help="searched for cases.json at any depth")
    parser.add_argument("-v", "--verbose", action="store_true", help="list every intended deviation of every field")
    parser.add_argument("--only", default="", metavar="TEXT", help="only cases whose name holds this text")
    options = parser.parse_args(arguments)
    try:
        found = [case for folder in options.folders for case in _cases(folder) if options.only in case.name]
    except UnreadableCase as error:
        print(f"UNREADABLE {error}")
        return 1
    mapped = [case for case in found if is_mapped(case)]
    unexplained = sum(not _run(case, is_verbose=options.verbose) for case in mapped)
    skipped = [case for case in found if case not in mapped]
    for (chart, version), count in sorted(Counter((case.chart, case.version) for case in skipped).items()):
        print(f"SKIPPED {count} of chart {chart} {version}: this command does not compare this chart")
    print(
        f"{len(mapped)} cases compared: {len(mapped) - unexplained} explained, {unexplained} not; "
        f"{len(skipped)} skipped"
    )
    if not mapped:
        print("NOTHING WAS COMPARED: no case of a chart that this library reads")
    return 1 if unexplained or not mapped else 0


def is_mapped(case: Case) -> bool:
    """Whether this library reads the values of the case's chart."""
    return case.chart in READERS and case.version in READERS[case.chart].release.versions


def _cases(folder: Path) -> list[Case]:
    if not folder.is_dir():
        raise UnreadableCase(f"{folder}: not a folder")
    return find_cases(folder)


def _run(case: Case, *, is_verbose: bool) -> bool:
    """Compare one case, print what came of it, and say whether all of it is explained."""
    try:
        result = check(case)
    except Exception as error:
        if not isinstance(error, UnreadableCase):
            traceback.print_exc(file=sys.stdout)
        print(f"{case.name}: CRASHED: {type(error).__name__}: {error}")
        return False
    intended = [*result.intended, *result.dropped]
    counts = Counter(number for number, _ in intended)
    print(
        f"{case.name}: {result.matched} fields equal, {len(intended)} intended deviations, "
        f"{len(result.unexplained)} unexplained differences"
    )
    for deviation in READERS[case.chart].table.deviations:
        if counts[deviation.number]:
            print(f"    {deviation.number:4}{counts[deviation.number]:5}  {deviation.what}: {deviation.why}")
            for number, what in intended if is_verbose else result.dropped:
                if number == deviation.number:
                    print(f"               {what}")
    for difference in result.unexplained:
        print(f"    UNEXPLAINED  {difference}")
    return not result.unexplained


def check(case: Case) -> Result:
    """Compare one case."""
    reader = READERS[case.chart]
    release = reader.release(
        release=case.release, namespace=case.namespace, version=case.version, values=case.read_values()
    )
    ours, warned = release.synthesize()
    phantoms = {}
    as_read = release.as_read(warned)
    if as_read is not None:
        # What a switch of the wrong type turns on in the chart is compared with what the right one turns on here.
        here = {(manifest["kind"], manifest["metadata"]["name"]) for manifest in ours}
        ours, _ = as_read.synthesize()
        names = ((manifest["kind"], manifest["metadata"]["name"]) for manifest in ours)
        phantoms = {name: deviations.WRONG_TYPE for name in names if name not in here}
    chart = release.told(case.read_objects(), is_ours=False)
    return compare(release, chart, release.told(ours, is_ours=True), warned, reader.table, phantoms)


@dataclass(frozen=True)
class Reader:
    """A chart whose values this library reads.

    Attributes:
        release: One installation of it.
        table: The intended differences.
    """

    release: type[Any]
    table: deviations.Table


READERS: Mapping[str, Reader] = {
    Release.chart: Reader(Release, deviations.PLUGIN),
    DcgmRelease.chart: Reader(DcgmRelease, deviations.EXPORTER),
    SmiRelease.chart: Reader(SmiRelease, deviations.SMI),
}


if __name__ == "__main__":
    raise SystemExit(main())

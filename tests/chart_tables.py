"""The tables of the charts' keys as the page shows them, and what the charts' values.yaml hold.

``python tests/chart_tables.py`` writes the tables of keys and of deviations into the page.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import yaml

from gpu_constructs.catalog import versions
from gpu_constructs.migration.chart import Chart, chart
from gpu_constructs.migration.chart_values import Key

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "coming-from-helm.md"
RELEASES = {"nvidia-device-plugin": "device_plugin", "dcgm-exporter": "dcgm_exporter"}
CHARTS = {"keys": "nvidia-device-plugin", "exporter-keys": "dcgm-exporter", "smi-keys": "nvidia-gpu-exporter"}


def leaves(name: str) -> dict[str, list[str]]:
    """Every key that a release of a chart has or reads, by release."""
    if name == "nvidia-gpu-exporter":
        text = (TESTS / "migration" / "values-nvidia-gpu-exporter.yaml").read_text(encoding="utf-8")
        return {"1.14.0": list(_leaves(yaml.safe_load(text), chart(name)))}
    listed = yaml.safe_load((TESTS / "migration" / "leaves.yaml").read_text(encoding="utf-8"))[name]
    found: dict[str, list[str]] = {row["version"]: listed["all"].split() for row in versions.rows(RELEASES[name])}
    for releases, more in listed.items():
        for release in versions.releases_in(RELEASES[name], releases) if releases != "all" else ():
            found[release] += more.split()
    return found


def _leaves(values: dict[str, Any], known: Chart, path: str = "") -> Iterator[str]:
    for key, value in values.items():
        if isinstance(value, dict) and f"{path}{key}" not in known.keys:
            yield from _leaves(value, known, f"{path}{key}.")
        else:
            yield f"{path}{key}"


def code(into: str, known: Chart) -> str:
    """The call that a key's value goes into: ``pod_mapping=PodMapping(host_pid=)``."""
    words = into.split(".")
    opened = [
        f"{word}={known.structs.get('.'.join(words[: place + 1]), known.structs.get(word))}("
        for place, word in enumerate(words[:-1])
    ]
    return f"{''.join(opened)}{words[-1]}={')' * len(opened)}"


def _with_code(text: str) -> str:
    """A text whose calls are marked as code."""
    return re.sub(r"\b(?:\w+=)?\w+\([^)]*\)", r"`\g<0>`", text)


def _goes(key: Key, known: Chart) -> str:
    if key.why_not:
        return f"refused: it {_with_code(key.why_not)}"
    if not key.into:
        return f"nothing: {_with_code(key.note)}"
    return f"`{code(key.into, known)}`{'; ' if key.note else ''}{_with_code(key.note)}"


def _range(name: str, releases: Sequence[str]) -> str:
    """The releases that read a key, which follow each other: ``all``, ``from 0.18.0`` or ``to 0.18.2``."""
    if not releases:
        return "all"
    known = [row["version"] for row in versions.rows(RELEASES[name])]
    start = known.index(releases[0])
    assert list(releases) == known[start : start + len(releases)], releases
    return f"to {releases[-1]}" if start == 0 else f"from {releases[0]}" if releases[-1] == known[-1] else "some"


def keys(name: str) -> str:
    """The table of a chart's keys; a section whose keys all go one way is one row."""
    known = chart(name)
    rows: list[tuple[str, str, str]] = []
    for section, paths in groupby(known.keys, key=lambda path: path.partition(".")[0]):
        said = [(f"`{p}`", _range(name, known.keys[p].releases), _goes(known.keys[p], known)) for p in paths]
        is_one = len(said) > 1 and len({row[1:] for row in said}) == 1
        rows += [(f"`{section}.*`", *said[0][1:])] if is_one else said
    return "\n".join(["| key | chart | where it goes |", "|---|---|---|", *(f"| {' | '.join(row)} |" for row in rows)])


def between(text: str, name: str) -> tuple[int, int]:
    """Where the marked place of that name begins and ends in a page."""
    start, end = f"<!-- {name} -->\n", f"\n<!-- /{name} -->"
    return text.index(start) + len(start), text.index(end)


def tables() -> dict[str, str]:
    """What the page holds at each marked place."""
    import deviations

    told = {
        "deviations": deviations.PLUGIN,
        "exporter-deviations": deviations.EXPORTER,
        "smi-deviations": deviations.SMI,
    }
    return {
        **{place: keys(name) for place, name in CHARTS.items()},
        **{place: table.markdown().rstrip("\n") for place, table in told.items()},
    }


def write(page: Path = PAGE) -> None:
    """Put the tables into the page."""
    text = page.read_text(encoding="utf-8")
    for name, table in tables().items():
        start, end = between(text, name)
        text = text[:start] + table + text[end:]
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()

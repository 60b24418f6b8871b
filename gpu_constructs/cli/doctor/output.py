"""The results of all checks of ``doctor`` as text, as findings and as plain data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from gpu_constructs.cli import terminal
from gpu_constructs.cli.doctor.checking import Problem, Result
from gpu_constructs.cli.doctor.snapshot import KINDS
from gpu_constructs.cli.findings import Finding, Report

_COLORS: Mapping[str, terminal.Color] = {"ok": "green", "warning": "yellow", "failed": "red"}
_MOST_SHOWN = 5
_INDENT = 11


def report_of(results: Sequence[Result], where: str, *, is_complete: bool, is_short: bool) -> Report:
    """Return the report of the command ``doctor``.

    Args:
        results: Results of all checks.
        where: Description of the source, as in ``Snapshot.where``.
        is_complete: Whether the command could read enough of the cluster. If False, ``success`` is False in the report.
        is_short: Whether the text omits checks that passed or do not apply.
    """
    findings = [_finding(result, one) for result in results for one in result.problems]
    checks = [_as_data(one) for one in results]
    details = {"where": where, "success": not _count(results, "failed") and is_complete, "checks": checks}
    rules = {one.row.id: one.row.title for one in results}
    summary = _summary(results)
    shown = [one for one in results if not is_short or one.status not in ("ok", "inapplicable")]
    files = {"text": lambda: f"{_text(shown, where)}\n\n{summary}\n"}
    return Report("doctor", findings, f"{summary} Looked at {where}.", details, rules=rules, files=files)


def _count(results: Sequence[Result], *statuses: str) -> int:
    return sum(one.status in statuses for one in results)


def _summary(results: Sequence[Result]) -> str:
    failed, warnings, passed = (_count(results, status) for status in ("failed", "warning", "ok"))
    left = _count(results, "unread", "blocked", "inapplicable")
    parts = [f"{failed} failed", f"{warnings} with a warning", f"{passed} ok", f"{left} not looked at"]
    return f"{len(results)} checks: {', '.join(parts)}."


def _finding(result: Result, problem: Problem) -> Finding:
    row = result.row
    way_out = problem.way_out or row.way_out
    return Finding(
        row.id,
        problem.severity or row.severity,
        problem.object,
        problem.reason,
        way_out=way_out and f"{way_out.removesuffix('.')}.",
        link=problem.link or row.link,
    )


def _as_data(result: Result) -> dict[str, Any]:
    row = result.row
    about = {"id": row.id, "category": row.category, "title": row.title, "link": row.link}
    return {**about, "status": result.status, "because": result.because, "problems": len(result.problems)}


def _text(results: Sequence[Result], where: str) -> str:
    parts = [terminal.wrapped(f"Looked at {where}")]
    for category, members in groupby(results, key=lambda one: one.row.category):
        parts.append("\n".join([terminal.painted(category, "bold"), *_lines(list(members))]))
    return "\n\n".join(parts)


def _lines(results: Sequence[Result]) -> Iterator[str]:
    """Yield the lines of text for the results of checks.

    Checks that did not run for the same reason share one line.
    """
    for one in results:
        if one.status in _COLORS:
            line = terminal.wrapped(f"{one.status.ljust(8)} {one.row.id}: {one.row.title}", _INDENT, 2)
            yield line.replace(one.status, terminal.painted(one.status, _COLORS[one.status]), 1)
            yield from _problems(one)
    reasons: dict[str, list[str]] = {}
    for one in results:
        if one.because:
            reasons.setdefault(one.because, []).append(one.row.id)
    for because, ids in reasons.items():
        text = f"-        not looked at, because {because}: {', '.join(ids)}"
        yield terminal.painted(terminal.wrapped(text, _INDENT, 2), "dim")


def _problems(result: Result) -> Iterator[str]:
    shown = result.problems[:_MOST_SHOWN]
    findings = [_finding(result, one) for one in shown]
    for one in findings:
        yield terminal.wrapped(f"{one.object}: {one.reason}" if one.object else one.reason, _INDENT + 2, _INDENT)
    if more := len(result.problems) - len(shown):
        yield terminal.wrapped(f"and {more} more", _INDENT)
    for way_out, link in dict.fromkeys((one.way_out, one.link) for one in findings):
        yield terminal.wrapped(f"{way_out}", _INDENT)
        yield f"{' ' * _INDENT}{link}"


def rights() -> str:
    """Return the ClusterRole with the rights that the command ``doctor`` needs, as YAML."""
    from gpu_constructs.kube import yaml_text

    groups: dict[str, list[str]] = {}
    for _, group, resource, *_ in KINDS:
        groups.setdefault(group, []).append(resource)
    rules: list[dict[str, Any]] = [
        {"apiGroups": [group], "resources": resources, "verbs": ["list"]} for group, resources in groups.items()
    ]
    rules.append({"apiGroups": [""], "resources": ["pods/log", "configmaps"], "verbs": ["get"]})
    named = {"name": "gpu-constructs-doctor"}
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": named, "rules": rules}
    return yaml_text.manifest_text(role)

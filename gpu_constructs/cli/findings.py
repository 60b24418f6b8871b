"""Findings of the commands, and the formats in which the commands print them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any, Literal

from gpu_constructs.cli import terminal
from gpu_constructs.cli.exits import Exit
from gpu_constructs.records import dataclass

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
"""Severities of findings. The most severe comes first."""


@dataclass(frozen=True)
class Finding:
    """A problem or a fact that a command reports.

    Attributes:
        code: Stable code, such as ``R12``.
        severity: ``error``: the object cannot work. ``warning``: the object can still work, for example if the cluster
            contains a ConfigMap that the manifests lack. ``note``: the finding is a fact, not a problem.
        object: Kind, namespace and name of the object; empty if the finding concerns no object.
        file: Path of the file with the object; empty if the object is not in a file.
        line: Number of the line on which the object begins; 0 if it is not known.
        reason: Description of the problem, without a period at the end.
        way_out: Sentences that state what the user can do; empty if the reason is enough.
        link: Page and section of the documentation, such as ``docs/rules.md#the-rules``.
    """

    code: str
    severity: Severity
    object: str
    reason: str
    file: str = ""
    line: int = 0
    way_out: str = ""
    link: str = ""

    @property
    def place(self) -> str:
        """File and line of the finding, such as ``dist/ollama.k8s.yaml:12``; empty if it has no file."""
        return f"{self.file}:{self.line}" if self.line else self.file


def reason_and_way_out(message: str) -> tuple[str, str]:
    """Return the two parts of a message: its first sentence without the period, and the sentences after it."""
    reason, _, way_out = message.partition(". ")
    return reason.removesuffix("."), way_out and f"{way_out.removesuffix('.')}."


def status_of(findings: Sequence[Finding], fail_on: Severity | Literal["never"]) -> Exit:
    """Return the exit status for findings.

    The result is ``FOUND`` if a finding has at least the severity ``fail_on``. Otherwise, it is ``NOTHING``. With
    ``never`` as ``fail_on``, it is always ``NOTHING``.
    """
    failing = () if fail_on == "never" else SEVERITIES[: SEVERITIES.index(fail_on) + 1]
    return Exit.FOUND if any(one.severity in failing for one in findings) else Exit.NOTHING


@dataclass(frozen=True)
class Report:
    """The result of a command in a form that all formats can show.

    Attributes:
        command: Name of the command.
        findings: Findings, in the order in which the command found them.
        summary: One line that states the result.
        details: Results besides the findings, as plain data for JSON; None by default.
        text: Text for a terminal before the findings; empty by default.
        rules: Titles of the codes that the command can report, by code, for SARIF; None by default.
        markdown: Result as Markdown before the table of findings; empty by default.
        files: Functions that return this report in a format, by name of the format, such as ``html``. For such a
            format, ``written`` does not use ``FORMATS``. None by default.
    """

    command: str
    findings: Sequence[Finding]
    summary: str
    details: Mapping[str, Any] | None = None
    text: str = ""
    rules: Mapping[str, str] | None = None
    markdown: str = ""
    files: Mapping[str, Callable[[], str]] | None = None

    def written(self, name: str) -> str:
        """Return the report as text in a format.

        Args:
            name: Name of the format, such as ``json``.
        """
        files = self.files or {}
        return files[name]() if name in files else FORMATS[name](self)


_COLORS: Mapping[Severity, terminal.Color] = {"error": "red", "warning": "yellow", "note": "blue"}


def as_text(report: Report) -> str:
    """Return a report as text for a terminal with 80 columns. Findings of one object follow each other."""
    parts = [report.text] if report.text else []
    ordered = sorted(report.findings, key=lambda one: (one.file, one.line, one.object))
    for (place, subject), group in groupby(ordered, key=lambda one: (one.place, one.object)):
        heading = terminal.painted(" ".join(filter(None, (subject, place and f"({place})"))), "bold")
        lines = [line for one in group for line in _lines(one)]
        parts.append("\n".join([heading, *lines] if subject or place else lines))
    return "\n\n".join([*parts, terminal.wrapped(report.summary)]) + "\n"


def _lines(finding: Finding) -> list[str]:
    label = f"{finding.severity} {finding.code}".rstrip()
    head = terminal.wrapped(f"{label}: {finding.reason}", indent=4, first=2)
    lines = [head.replace(label, terminal.painted(label, _COLORS[finding.severity]), 1)]
    if finding.way_out:
        lines.append(terminal.wrapped(finding.way_out, indent=4))
    return [*lines, *([f"    {finding.link}"] if finding.link else [])]


def as_json(report: Report) -> str:
    """Return a report as JSON. The key ``version`` is the version of this format."""
    made = {
        "version": 1,
        "command": report.command,
        "summary": report.summary,
        "findings": [_as_data(one) for one in report.findings],
        **(report.details or {}),
    }
    return json.dumps(made, indent=2, ensure_ascii=False) + "\n"


def _as_data(finding: Finding) -> dict[str, Any]:
    names = ("code", "severity", "object", "file", "line", "reason", "way_out", "link")
    return {name: getattr(finding, name) for name in names}


_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"


def as_sarif(report: Report) -> str:
    """Return a report in the format SARIF 2.1.0, which code hosts and editors read."""
    from gpu_constructs.version import version

    codes = report.rules or {one.code: one.code for one in report.findings}
    driver = {
        "name": "gpu-constructs",
        "version": version(),
        "rules": [{"id": code, "shortDescription": {"text": title}} for code, title in codes.items() if code],
    }
    results = [_sarif_result(one) for one in report.findings]
    made = {"$schema": _SARIF, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}
    return json.dumps(made, indent=2, ensure_ascii=False) + "\n"


def _sarif_result(finding: Finding) -> dict[str, Any]:
    from urllib.parse import quote

    made: dict[str, Any] = {"level": finding.severity, "message": {"text": _sentence(finding)}}
    if finding.code:
        made["ruleId"] = finding.code
    if finding.file:
        where: dict[str, Any] = {"artifactLocation": {"uri": quote(finding.file)}}
        made["locations"] = [{"physicalLocation": {**where, "region": {"startLine": max(finding.line, 1)}}}]
    return made


def _sentence(finding: Finding) -> str:
    reason = f"{finding.object}: {finding.reason}" if finding.object else finding.reason
    way_out = f". {finding.way_out.removesuffix('.')}" if finding.way_out else ""
    return f"{reason}{way_out}" + (f". See {finding.link}" if finding.link else "")


def as_github(report: Report) -> str:
    """Return a report as workflow commands of GitHub Actions, which annotate the lines of a pull request."""
    levels = {"error": "error", "warning": "warning", "note": "notice"}
    lines = []
    for one in report.findings:
        # actions/toolkit@main:packages/core/src/command.ts
        values = {"file": one.file, "line": str(one.line or ""), "title": one.code}
        given = ",".join(f"{key}={_escaped(value, ':,')}" for key, value in values.items() if value)
        lines.append(f"::{levels[one.severity]}{f' {given}' if given else ''}::{_escaped(_sentence(one))}")
    return "\n".join([*lines, report.summary]) + "\n"


def _escaped(text: str, also: str = "") -> str:
    for character in f"%\r\n{also}":
        text = text.replace(character, f"%{ord(character):02X}")
    return text


def as_markdown(report: Report) -> str:
    """Return a report as Markdown for a comment on a pull request."""
    parts = [f"**{report.summary}**", *([report.markdown] if report.markdown else [])]
    if report.findings:
        rows = [
            f"| {one.severity} {one.code} | {_cell(one.object)} | {_cell(one.reason)} | {_cell(_next(one))} |"
            for one in report.findings
        ]
        parts.append("\n".join(["| | object | problem | what to do |", "|---|---|---|---|", *rows]))
    elif report.text and not report.markdown:
        parts.append(f"```\n{report.text}\n```")
    return "\n\n".join(parts) + "\n"


def _next(finding: Finding) -> str:
    return " ".join(filter(None, (finding.way_out, finding.link and f"See {finding.link}.")))


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


FORMATS: Mapping[str, Callable[[Report], str]] = {
    "text": as_text,
    "json": as_json,
    "sarif": as_sarif,
    "github": as_github,
    "markdown": as_markdown,
}
"""Functions that return a report as text, by the name of the format."""

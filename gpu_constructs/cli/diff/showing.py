"""The result of the command ``diff`` as text for a terminal, as Markdown, as findings and as plain data."""

from __future__ import annotations

import difflib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from gpu_constructs.cli import terminal
from gpu_constructs.cli.diff.analysis import Comparison
from gpu_constructs.cli.diff.model import MISSING, Change, Difference, Effect, Topic
from gpu_constructs.cli.diff.steps import Step
from gpu_constructs.cli.findings import Finding, Severity

_PAGE = "docs/command-diff.md"
_MARKS = {"created": "+", "removed": "-", "replaced": "»", "changed": "~", "moved": "=", "same": " "}
_COLORS: dict[str, terminal.Color] = {"+": "green", "-": "red", "»": "yellow", "~": "yellow", "=": "dim", " ": "dim"}
_SEVERITIES: dict[Topic, Severity] = {
    "immutable": "error",
    "restart": "warning",
    "capacity": "warning",
    "broadening": "warning",
    "node": "warning",
}
_PLAIN = ("immutable", "restart", "note")
_URGENT: dict[Topic, terminal.Color] = {
    "immutable": "red",
    "restart": "yellow",
    "capacity": "yellow",
    "broadening": "red",
}
_LONGEST, _WIDEST, _KEPT = 56, 71, 10
_MOST_LINES, _MOST_FIELDS = 8, 12


def headline(difference: Difference) -> str:
    """Return one line about the change of an object: the action, the most important effect, or both.

    The line states the topic before the effect, except for the topics ``immutable``, ``restart`` and ``note``.
    """
    first = next(iter(difference.effects), None)
    text = "" if first is None else first.text if first.topic in _PLAIN else f"{first.topic}: {first.text}"
    words = {"created": "created", "removed": "removed, but kubectl apply does not delete it", "moved": "no change"}
    default = words.get(difference.action, "no pod restarts")
    if difference.action == "moved" and difference.old and difference.new:
        return f"moves from {difference.old.file} to {difference.new.file}: no change"
    if difference.action in ("created", "removed"):
        separator = ": " if first and first.topic in _PLAIN else "; "
        return separator.join(filter(None, [default, text]))
    return text or default


def details(change: Change, is_secret: bool) -> list[str]:
    """Return the lines that show the old and the new value of a changed field, without the values of Secrets.

    Args:
        change: Changed field.
        is_secret: Whether the object is a Secret.
    """
    if is_secret and change.path[0] in ("data", "stringData"):
        return [f"{change.place}: changes (value hidden)"]
    old, new = change.old, change.new
    if isinstance(old, str) and isinstance(new, str):
        if "\n" in old + new:
            return [f"{change.place}:", *_lines_of_texts(old, new)]
        old, new = _ends(old, new)
    elif isinstance(old, list) and isinstance(new, list) and change.path[-1] != "(order)":
        removed = [f"  - {_short(one)}" for one in old if one not in new]
        added = [f"  + {_short(one)}" for one in new if one not in old]
        return [f"{change.place}:", *(removed + added or ["  (other order)"])]
    return [f"{change.place}: {_short(old)} → {_short(new)}"]


def _lines_of_texts(old: str, new: str) -> Iterator[str]:
    """Yield the first lines that differ between two texts, with ``-`` before old lines and ``+`` before new lines."""
    compared = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=0)
    lines = [line for line in compared if not line.startswith(("---", "+++", "@@"))]
    yield from (f"  {_cut(line, _WIDEST)}" for line in lines[:_MOST_LINES])
    if len(lines) > _MOST_LINES:
        yield f"  … {len(lines) - _MOST_LINES} more lines"


def _ends(old: str, new: str) -> tuple[str, str]:
    """Return an old and a new value. If one of them has over 56 characters, shorten their common start.

    An ellipsis then replaces all but the last ten characters of the common start: ``… am/ollama:1``.
    """
    differs = (index for index, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1])
    same = next(differs, min(len(old), len(new))) - _KEPT
    if same <= 0 or max(len(old), len(new)) <= _LONGEST:
        return old, new
    return f"… {old[same:]}", f"… {new[same:]}"


def _short(value: Any) -> str:
    if value is MISSING:
        return "(not set)"
    text = value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False, default=str)
    return _cut(text, _LONGEST)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 2]} …"


def as_text(comparison: Comparison, steps: Sequence[Step], summary: str, how: str) -> str:
    """Return a comparison as text for a terminal.

    Args:
        comparison: Result of the comparison.
        steps: Commands with which the user applies the change.
        summary: One line that states the result.
        how: Sentence that states how the command compared a cluster with manifests; empty without a cluster.
    """
    parts = [terminal.wrapped(how)] if how else []
    parts += ["\n".join(_lines(one)) for one in comparison.differences]
    for file in comparison.files:
        body = _painted(_body(file.effects, file.changes))
        parts.append("\n".join([terminal.painted(f"~ {file.path}", "bold"), *body]))
    if comparison.effects:
        parts.append("\n".join([terminal.painted("cluster", "bold"), *_painted(_body(comparison.effects, ()))]))
    if steps:
        lines = [f"  {line}" for one in steps for line in str(one).splitlines()]
        parts.append("\n".join([terminal.painted("commands to run, in this order", "bold"), *lines]))
    return "\n\n".join([*parts, terminal.wrapped(summary)]) + "\n"


def _lines(difference: Difference) -> Iterator[str]:
    mark, effects = _MARKS[difference.action], difference.effects
    yield f"{terminal.painted(mark, _COLORS[mark])} {terminal.painted(difference.document.name, 'bold')}"
    text = terminal.wrapped(headline(difference), indent=4)
    body = _body(effects[1:], difference.changes, difference.kind == "Secret")
    yield from _painted([(text, _URGENT.get(effects[0].topic) if effects else None), *body])


def _painted(lines: Iterable[tuple[str, terminal.Color | None]]) -> Iterator[str]:
    return (terminal.painted(line, color) if color else line for line, color in lines)


def _body(
    effects: Sequence[Effect], changes: Sequence[Change], is_secret: bool = False
) -> Iterator[tuple[str, terminal.Color | None]]:
    """Yield the lines about effects and about changed fields of an object, each with its color (None: no color).

    Args:
        effects: Effects to show. The caller omits an effect that the headline of the object already states.
        changes: Changed fields to show.
        is_secret: Whether the object is a Secret, so that the lines must not show its values.
    """
    for effect in effects:
        yield terminal.wrapped(f"{effect.topic}: {effect.text}", indent=6, first=4), _URGENT.get(effect.topic)
    for line in (line for change in changes[:_MOST_FIELDS] for line in details(change, is_secret)):
        yield f"      {line}" if line.startswith(" ") else terminal.wrapped(line, indent=8, first=6), "dim"
    if len(changes) > _MOST_FIELDS:
        yield f"      … {len(changes) - _MOST_FIELDS} more fields, which --format json lists", "dim"


def as_markdown(comparison: Comparison, steps: Sequence[Step], summary: str, how: str) -> str:
    """Return a comparison as Markdown for a comment on a pull request: a table, and details that the reader unfolds."""
    parts = [f"**{summary}**", *([how] if how else [])]
    rows = [f"| {one.action} | `{one.document.name}` | {_cell(headline(one))} |" for one in comparison.differences]
    rows += [f"| changed | `{one.path}` | {_cell(one.effects[0].text)} |" for one in comparison.files]
    rows += [f"| | cluster | {_cell(one.text)} |" for one in comparison.effects]
    if rows:
        parts.append("\n".join(["| | object | consequence |", "|---|---|---|", *rows]))
    for one in comparison.differences:
        lines = [line for line, _ in _body(one.effects[1:], one.changes, one.kind == "Secret")]
        if lines:
            parts.append(_folded(f"<code>{_escaped(one.document.name)}</code>", "\n".join(lines)))
    if steps:
        parts.append(_folded("Commands to run, in this order", "\n".join(map(str, steps)), "bash"))
    return "\n\n".join(parts) + "\n"


def _folded(title: str, text: str, language: str = "") -> str:
    fence = "````" if "```" in text else "```"
    return f"<details><summary>{title}</summary>\n\n{fence}{language}\n{text}\n{fence}\n\n</details>"


def _cell(text: str) -> str:
    return _escaped(text).replace("|", "\\|").replace("\n", " ")


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def findings_of(comparison: Comparison) -> list[Finding]:
    """Return a finding (one entry of the report) for each effect of a change.

    A changed object without an effect gets a finding that states the change.
    """
    found = []
    for one in comparison.differences:
        document = one.document
        for effect in one.effects or [Effect("note", headline(one))]:
            found.append(_finding(effect, document.name, document.file, document.line))
    for file in comparison.files:
        found += [_finding(effect, file.path, file.path, 1) for effect in file.effects]
    return [*found, *(_finding(effect, "", "", 0) for effect in comparison.effects)]


def _finding(effect: Effect, name: str, file: str, line: int) -> Finding:
    severity = _SEVERITIES.get(effect.topic, "note")
    return Finding(effect.topic, severity, name, effect.text, file, line, link=f"{_PAGE}#{effect.topic}")


def as_data(comparison: Comparison, steps: Sequence[Step]) -> dict[str, Any]:
    """Return a comparison and the commands that apply the change as plain data for the JSON report."""
    return {
        "objects": [
            {
                "action": one.action,
                "object": one.document.name,
                "file": one.document.file,
                "line": one.document.line,
                "consequence": headline(one),
                "effects": [{"topic": effect.topic, "text": effect.text} for effect in one.effects],
                "changes": [line for change in one.changes for line in details(change, one.kind == "Secret")],
            }
            for one in comparison.differences
        ],
        "steps": [{"command": one.command, "comment": one.comment} for one in steps],
    }


def summary_of(comparison: Comparison) -> str:
    """Return one line with the number of objects for each action, and the number of effects for each topic."""
    actions = Counter(one.action for one in comparison.differences)
    del actions["same"]
    parts = [f"{count} {action}" for action, count in actions.items()]
    if comparison.files:
        parts.append(f"{len(comparison.files)} machine configuration or Helm values files changed")
    topics = Counter(effect.topic for effect in comparison.all_effects)
    counted = [f"{topics[one]} {one}" for one in _SEVERITIES if topics[one]]
    if counted:
        parts = [*filter(None, [", ".join(parts)]), f"consequences: {', '.join(counted)}"]
        return "; ".join(parts)
    return ", ".join(parts) or "no difference"

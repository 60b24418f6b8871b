"""Runner of all checks of ``doctor``. A check runs before the checks whose problems it can explain."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from itertools import chain
from typing import Any, Literal

from gpu_constructs.cli.doctor.view import View, title
from gpu_constructs.cli.findings import Severity
from gpu_constructs.kube.tables import table
from gpu_constructs.records import dataclass

Status = Literal["ok", "warning", "failed", "unread", "blocked", "inapplicable"]
_MODULES = ("node", "runtime", "plugin", "operator", "resource", "workload")
"""Modules with the functions of the checks, without ``_checks``."""
_MALFORMED = "an object has a field whose type differs from the Kubernetes API"
_ESSENTIAL = ("nodes", "plugin", "resources", "scheduling")


@dataclass(frozen=True)
class Problem:
    """A problem that a check of the command ``doctor`` found.

    Attributes:
        object: Kind, namespace and name of the object with the problem; empty if no single object has it.
        reason: Description of the problem, without a period at the end.
        way_out: Instruction that tells the user how to fix the problem. Empty: ``Row.way_out`` of the check applies.
        link: Page and section of the documentation about the problem. Empty: ``Row.link`` of the check applies.
        severity: Severity of the problem. Empty: ``Row.severity`` of the check applies.
    """

    object: str
    reason: str
    way_out: str = ""
    link: str = ""
    severity: Severity | Literal[""] = ""


class NotLookedError(Exception):
    """The error of a check that cannot decide whether there is a problem. The message of the error is the reason."""


@dataclass(frozen=True)
class Row:
    """A check of ``doctor``, as a row of the table ``checks.yaml``. A comment in the table explains the columns."""

    id: str
    category: str
    title: str
    link: str
    way_out: str = ""
    severity: Severity = "error"
    needs: Sequence[str] = ()
    whole: bool = False
    condition: str = ""
    after: Sequence[str] = ()
    log: str = ""


@dataclass(frozen=True)
class Result:
    """The result of a check.

    Attributes:
        row: Row of the check in the table ``checks.yaml``.
        status: ``ok``, ``warning`` or ``failed`` if the check ran. Otherwise: ``unread`` if the command could not read
            what the check needs, ``blocked`` if an earlier check failed, and ``inapplicable`` if the check does not
            apply to the cluster.
        problems: Problems that the check found.
        because: Reason why the check did not run; empty if it ran.
        cause: ID of the earlier check that blocked this check; empty for any status except ``blocked``.
    """

    row: Row
    status: Status
    problems: Sequence[Problem] = ()
    because: str = ""
    cause: str = ""


Check = Callable[[View], Iterator[Problem]]
CHECKS: dict[str, Check] = {}
"""Functions of the checks, by ID of the check. The decorator ``check`` adds most of the functions."""


def check(function: Check) -> Check:
    """Register a function as a check. The ID of the check is the name of the function with ``-`` in place of ``_``."""
    CHECKS[function.__name__.replace("_", "-")] = function
    return function


def rows() -> list[Row]:
    """Return the rows of the table ``checks.yaml``. A check precedes the checks whose problems it can explain."""
    made = []
    for group in table(__package__, "checks.yaml"):
        for given in group["checks"]:
            columns: dict[str, Any] = {("condition" if name == "if" else name): one for name, one in given.items()}
            columns["link"] = f"docs/{columns['link']}"
            made.append(Row(category=group["category"], **columns))
    return made


def run(view: View) -> list[Result]:
    """Run all checks, and return their results. A check precedes the checks whose problems it can explain."""
    for name in _MODULES:
        import_module(f"{__package__}.{name}_checks")
    done: dict[str, Result] = {}
    for row in rows():
        done[row.id] = _result(row, view, list(done.values()))
    return list(done.values())


def _result(row: Row, view: View, before: Sequence[Result]) -> Result:
    from gpu_constructs.cli.doctor.conditions import CONDITIONS

    if because := _unread(row, view):
        return Result(row, "unread", because=because)
    try:
        conditions = (CONDITIONS[name] for name in row.condition.split())
        if unmet := next((one for one in conditions if not one.holds(view)), None):
            return Result(row, "inapplicable", because=unmet.because)
        causes = (one for one in before if one.row.id in row.after or one.row.category in row.after)
        if cause := next((one.cause or one.row.id for one in causes if one.status in ("failed", "blocked")), ""):
            return Result(row, "blocked", because=f"{cause} failed", cause=cause)
        return _judged(row, list(_by_log(row, view) if row.log else CHECKS[row.id](view)), view)
    except NotLookedError as reason:
        return Result(row, "unread", because=str(reason))
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        return Result(row, "unread", because=_MALFORMED)


def _unread(row: Row, view: View) -> str:
    """Return the reason why the command could not read the objects that a check needs; empty if it could.

    Args:
        row: Row of the table ``checks.yaml``, which states what the check needs.
        view: Objects of the cluster that the command has read, and reasons why other objects are missing.
    """
    snapshot = view.snapshot
    missing = (snapshot.unread[one] for one in row.needs if one in snapshot.unread and one != "logs")
    partly = (snapshot.partial[one] for one in row.needs if row.whole and one in snapshot.partial)
    return next(chain(missing, partly), "")


def _judged(row: Row, problems: Sequence[Problem], view: View) -> Result:
    if not problems and "logs" in row.needs and "logs" in view.snapshot.unread:
        return Result(row, "unread", because=view.snapshot.unread["logs"])
    severities = {one.severity or row.severity for one in problems}
    status: Status = "failed" if "error" in severities else "warning" if problems else "ok"
    return Result(row, status, problems)


def _by_log(row: Row, view: View) -> Iterator[Problem]:
    """Yield a problem for each pod of a GPU component that probably fails and has a log line that fits ``row.log``."""
    for pod, line in view.log_lines(row.log):
        yield Problem(title(pod), f"its log says: {shortened(line)}")


def shortened(text: str, most: int = 160) -> str:
    """Return a text as one line without a period at the end.

    Args:
        text: Text, for example a message of an event.
        most: Number of characters after which the function cuts the text and adds an ellipsis.
    """
    line = " ".join(text.split()).removesuffix(".")
    return line if len(line) <= most else f"{line[:most]}…"


def could_look(results: Sequence[Result], view: View) -> bool:
    """Check whether the command could read enough of the cluster for a complete result.

    The result is False if the nodes or pods are not readable, or an object has an invalid form. It is also False if all
    applicable checks of one category are ``unread``. Only the categories ``nodes``, ``plugin``, ``resources`` and
    ``scheduling`` count.
    """
    if any(one.because == _MALFORMED for one in results) or not view.snapshot.unread.keys().isdisjoint(("Node", "Pod")):
        return False
    applicable = [one for one in results if one.status != "inapplicable"]
    states = [{one.status for one in applicable if one.row.category == category} for category in _ESSENTIAL]
    return {"unread"} not in states

"""The function of ``lint`` that runs all checks over manifests, which need not be from this library."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from gpu_constructs.catalog.inventory import GpuInventory
from gpu_constructs.checks.cluster_checks import CHECKS
from gpu_constructs.checks.rules.table import CODES, broken_rules
from gpu_constructs.cli import findings, seen
from gpu_constructs.cli.documents import Document
from gpu_constructs.cli.lint.advice import claims_absence, for_manifests
from gpu_constructs.cli.lint.codes import IGNORED_RULES, code_of, codes
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.facts.app import Facts
from gpu_constructs.facts.finding import Finding
from gpu_constructs.facts.provided import Provided
from gpu_constructs.records import dataclass, field

_MADE_TWICE = "objects-are-made-once"


@dataclass
class Examined:
    """The result of all checks over the manifests of one or several clusters.

    Attributes:
        found: Findings for the report.
        failed: Sentences about the checks that could not run.
        pods: Number of pod specs with GPU requests.
        gaps: Texts about what the checks could not compare, such as GPU memory, as keys in order. All values are None.
    """

    found: list[findings.Finding] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    pods: int = 0
    gaps: dict[str, None] = field(default_factory=dict)


_GAPS: Sequence[tuple[Callable[[Facts], Any], str]] = (
    (lambda facts: facts.inventory, "boards, GPU memory and numbers of nodes (pass --inventory)"),
    (lambda facts: facts.offered, "slots and sharing, because no device plugin is among the manifests"),
    (
        lambda facts: any(one.platform for one in facts.provided),
        "Pod Security level of namespaces without a label (pass --platform)",
    ),
)


def examine(
    documents: Sequence[Document],
    declared: Sequence[tuple[str, Provided]],
    inventory: GpuInventory | None,
    ignore: Collection[str],
    into: Examined,
) -> None:
    """Run all checks over the objects of one cluster, and add the result to ``into``.

    Args:
        documents: Objects of the cluster.
        declared: Pairs: a command-line option, such as ``--external``, and what the option declares about the cluster.
        inventory: GPU nodes of the cluster; None if the user does not declare them.
        ignore: Codes of findings to leave out.
        into: Result for all clusters, which the function extends.
    """
    manifests = [document.manifest for document in documents]
    effects = seen.effects(manifests)
    facts = Facts(manifests, [one for _, one in (*effects, *declared)], inventory)
    providers: list[Document | str] = [*(documents[index] for index, _ in effects), *(option for option, _ in declared)]
    for code, one in _run(facts, ignore, into.failed):
        into.found.append(_finding(code, one, documents, providers))
    gpu_pods = len(facts.gpu_pods)
    into.pods += gpu_pods
    if gpu_pods:
        into.gaps.update(dict.fromkeys(text for is_known, text in _GAPS if not is_known(facts)))


def _run(facts: Facts, ignore: Collection[str], failed: list[str]) -> Iterator[tuple[str, Finding]]:
    """Yield pairs: the code of a check, and a finding. For a check that raises an error, add a sentence to ``failed``.

    Args:
        facts: Facts that the library derives from the objects.
        ignore: Codes of findings to leave out.
        failed: List to which the function adds sentences.
    """
    for check in CHECKS:
        code = code_of(check)
        if code not in ignore:
            yield from ((code, one.about(facts.origins)) for one in _attempted(code, check, facts, failed))
    left_out = {*CODES} & {*ignore}
    rules = partial(broken_rules, ignore=left_out)
    problems: list[str] = []
    found = list(_attempted("", rules, facts, problems))
    if problems:
        # One rule failed: the others run alone.
        for code in (code for code in CODES if code not in left_out):
            found += _attempted(code, partial(broken_rules, ignore={*CODES} - {code}), facts, failed)
    for one in dict.fromkeys(found):
        if (one.code or IGNORED_RULES) not in ignore:
            yield one.code or IGNORED_RULES, one


def _attempted(
    code: str, check: Callable[[Facts], Iterable[Finding]], facts: Facts, failed: list[str]
) -> list[Finding]:
    """Return the findings of a check; none if the check raises an error.

    Args:
        code: Code of the check, such as ``R07``, which the sentence in ``failed`` contains.
        check: Function that returns the findings.
        facts: Facts that the library derives from the objects.
        failed: List to which the function adds a sentence if the check raises an error.
    """
    try:
        return list(check(facts))
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
        RecursionError,
        GpuConstructsError,
    ) as error:
        kind, text = type(error).__name__, str(error).partition("\n")[0]
        failed.append(f"check {code} could not look at these manifests ({kind}: {text}). Report this as a bug")
        return []


def _finding(
    code: str, one: Finding, documents: Sequence[Document], providers: Sequence[Document | str]
) -> findings.Finding:
    """Convert a finding of a check into a finding that commands print.

    The function replaces indices by the names of objects, and Python code in the message by terms of manifests.

    Args:
        code: Code of the check that reports the finding.
        one: Finding of the check. It refers by index to objects and providers.
        documents: Objects to which ``one.subject`` and ``one.others`` refer by index.
        providers: What ``one.providers`` refers to by index: objects that provide something, such as a RuntimeClass, or
            options such as ``--external``.
    """
    subject: Document | str = ""
    if one.subject is not None:
        subject = documents[one.subject]
    elif one.providers:
        subject = providers[one.providers[0]]
    message = one.problem
    mentioned = [*(documents[at] for at in one.others), *(providers[at] for at in one.providers)]
    for number, other in enumerate(mentioned):
        message = message.replace(f"{{{number}}}", _mention(other, subject))
    reason, way_out = findings.reason_and_way_out(for_manifests(message))
    if code == _MADE_TWICE:
        way_out += " If the folders contain different clusters, pass --each."
    severity: findings.Severity = "warning" if one.is_warning or claims_absence(message) else "error"
    link = codes()[code].link
    if isinstance(subject, str):
        return findings.Finding(code, severity, subject, reason, way_out=way_out, link=link)
    return findings.Finding(code, severity, subject.name, reason, subject.file, subject.line, way_out, link)


def _mention(one: Document | str, subject: Document | str) -> str:
    """Return the text by which a message mentions an object or an option, such as ``the declaration --external``.

    The text for an object is its name. If the subject is an object with the same name, the text is the file and line.

    Args:
        one: Object, or command-line option that declares something about the cluster, such as ``--external``.
        subject: Object or option that the message is about.
    """
    if isinstance(one, str):
        return f"the declaration {one}"
    return f"{one.file}:{one.line}" if isinstance(subject, Document) and subject.name == one.name else one.name

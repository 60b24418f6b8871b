"""The command ``plan``: checks whether the pods of manifests fit the GPU nodes of a cluster."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial, reduce
from pathlib import Path

from gpu_constructs.capacity.plan import Plan
from gpu_constructs.capacity.planned import Problem
from gpu_constructs.capacity.planner import plan
from gpu_constructs.capacity.report import words
from gpu_constructs.capacity.report.verdict import verdict
from gpu_constructs.cli import documents, inventory, reporting, terminal
from gpu_constructs.cli.exits import CommandError, Exit
from gpu_constructs.cli.findings import Finding, Report, Severity
from gpu_constructs.cli.plan import tables
from gpu_constructs.cli.plan.what_if import Situation, changed, form
from gpu_constructs.cli.plan.wording import for_manifests
from gpu_constructs.cli.seen import provided_by
from gpu_constructs.errors import sentence
from gpu_constructs.facts.app import Facts
from gpu_constructs.facts.readable import name_of, namespace_of

EXAMPLES = """\
  gpu-constructs plan dist/ --inventory gpus.yaml
  kubectl get nodes -o json | gpu-constructs plan dist/ --inventory /dev/stdin
  gpu-constructs plan dist/ --inventory gpus.yaml --what-if drain=gpu-2
  gpu-constructs plan dist/ --inventory gpus.yaml --what-if replicas=4
  gpu-constructs plan dist/ --inventory gpus.yaml --report html=plan.html"""
_FILES = ("html", "svg")
_SEVERITIES: Mapping[str, Severity] = {
    "placement": "error",
    "slots": "error",
    "rollout": "error",
    "waiting": "warning",
    "vram": "warning",
    "power": "warning",
    "unchecked": "note",
}
"""Severity by kind of the problem. The kind ``unchecked`` is a condition under which the pods fit."""
_LINK = "docs/capacity-plan.md#"
_TITLES = {
    "placement": "A node accepts each pod",
    "slots": "The nodes have enough slots",
    "rollout": "No update waits forever",
    "waiting": "All pods can run at the same time",
    "vram": "The memory of the GPUs suffices",
    "power": "The racks have enough power",
    "unchecked": "The answer depends on no condition",
    "assumption": "The plan makes no assumption",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    parser.add_argument(
        "paths", nargs="+", metavar="PATH", help="file or folder with manifests; - stands for standard input"
    )
    inventory.add_inventory(parser)
    parser.add_argument(
        "--what-if",
        metavar="CHANGE",
        action="append",
        default=[],
        type=form,
        help="also plan with a change, and show the difference; you can repeat the option. A change is "
        "one of: replicas=NUMBER (slots of each GPU), replicas=RESOURCE:NUMBER, KIND/NAMESPACE/NAME.replicas=NUMBER, "
        "add-node=NODE, drain=NODE",
    )
    reporting.add_format(parser, files=_FILES)
    reporting.add_fail_on(parser)


def run(args: argparse.Namespace) -> Exit:
    """Compute the capacity plan for the pods in the manifests, and print it.

    Raises:
        CommandError: An argument is wrong, a file is not readable, or no file contains a Kubernetes object.
        GpuConstructsError: The inventory contradicts the manifests.
    """
    found, now, remarks = situation_of(args)
    situation = reduce(changed, args.what_if, now)
    facts, made = planned(situation)
    changes = tables.changes(planned(now)[1], made) if args.what_if else []
    title = ", ".join(Path(one).resolve().name if one != documents.STDIN else "stdin" for one in args.paths)
    report = Report(
        "plan",
        [*_findings(made, facts, found.objects, situation), *map(_remark, remarks)],
        _summary(made),
        _details(made, title, args.what_if, changes),
        text=_text(made, args.what_if, changes),
        rules={f"plan-{kind}": text for kind, text in _TITLES.items()},
        markdown="\n\n".join(map(tables.as_markdown, _tables(made, changes))),
        files={"html": partial(made.to_html, title), "svg": partial(made.to_svg, title)},
    )
    status = reporting.finish(args, report, found.broken)
    # A search without an answer is not a green plan.
    return Exit.COULD_NOT_LOOK if status == Exit.NOTHING and made.always_fits == "undecided" else status


def situation_of(args: argparse.Namespace) -> tuple[documents.Documents, Situation, list[str]]:
    """Return three results: the content of the files, the input of the capacity plan, and warnings about the inventory.

    The input of the plan consists of the Kubernetes objects, the effects of the objects on the cluster, and the nodes
    of the inventory. An effect is, for example, a resource that a device plugin advertises.

    Args:
        args: Arguments of the command, with the attributes ``paths`` and ``inventory``.

    Raises:
        CommandError: A file is not readable, or no file contains a Kubernetes object.
    """
    nodes, remarks = inventory.read(args.inventory)
    found = documents.read(args.paths)
    if not found.objects and not found.broken:
        where = ", ".join(args.paths)
        raise CommandError(f"found no Kubernetes objects in {where}. Name files with manifests", Exit.COULD_NOT_LOOK)
    return found, Situation(found.manifests, provided_by(found.manifests), nodes), remarks


def planned(situation: Situation) -> tuple[Facts, Plan]:
    """Return a pair: the ``Facts`` that the library derives from the objects, and the capacity plan.

    Args:
        situation: Input of the plan: Kubernetes objects, what they provide in the cluster, and GPU nodes.
    """
    facts = Facts(situation.manifests, situation.provided, situation.inventory)
    return facts, plan(facts, situation.inventory)


def _summary(made: Plan) -> str:
    return " ".join(for_manifests(one.text) for one in verdict(made))


def _tables(made: Plan, changes: Sequence[tuple[str, ...]]) -> Iterator[Sequence[tuple[str, ...]]]:
    """Yield the tables of a capacity plan, as lists of rows. Omit tables that have only headings.

    The function removes control characters from the cells, because a terminal would interpret them.

    Args:
        made: Capacity plan.
        changes: Differences from the plan without ``--what-if``, as rows of a table.
    """
    shown = (changes, tables.resources(made), tables.nodes(made), tables.workloads(made))
    return ([tuple(map(words.readable, row)) for row in one] for one in shown if len(one) > 1)


def _text(made: Plan, what_if: Sequence[str], changes: Sequence[tuple[str, ...]]) -> str:
    parts = [terminal.table(one) for one in _tables(made, changes)]
    listed = ", ".join(what_if)
    head = f"With {listed}:" if changes[1:] else f"{listed}: no difference"
    return "\n\n".join([*([terminal.wrapped(head)] if what_if else []), *parts])


def _details(made: Plan, title: str, what_if: Sequence[str], changes: Sequence[tuple[str, ...]]) -> dict[str, object]:
    data = json.loads(made.to_json(title))
    rows = [dict(zip(("about", "before", "after"), row, strict=True)) for row in changes[1:]]
    return {"what_if": list(what_if), "changes": rows, "plan": {key: data[key] for key in data if key != "//"}}


def _findings(
    made: Plan, facts: Facts, objects: Sequence[documents.Document], situation: Situation
) -> Iterator[Finding]:
    """Yield a finding for each item in ``problems``, ``conditions`` and ``notes`` of a capacity plan.

    Args:
        made: Capacity plan.
        facts: Facts that the library derives from the objects.
        objects: Objects in the files, each with its file and line.
        situation: Input of the plan: objects and nodes.
    """
    # A change of the copies can leave out an autoscaler, so that the manifests differ from the documents in number.
    places = {(one["kind"], *_named(one)): document for document in objects for one in (document.manifest,)}
    for problem in (*made.problems, *made.conditions):
        manifest = None if problem.subject is None else situation.manifests[facts.origins[problem.subject]]
        document = None if manifest is None else places.get((manifest["kind"], *_named(manifest)))
        yield _finding(problem, document)
    for note in made.notes:
        yield _remark(for_manifests(note))


def _named(manifest: Mapping[str, object]) -> tuple[str, str]:
    return namespace_of(manifest), name_of(manifest)


def _finding(problem: Problem, document: documents.Document | None) -> Finding:
    way_out = for_manifests(sentence(problem.way_out))
    return Finding(
        f"plan-{problem.kind}",
        _SEVERITIES[problem.kind],
        document.name if document else "",
        for_manifests(problem.text),
        document.file if document else "",
        document.line if document else 0,
        way_out and f"{way_out.removesuffix('.')}.",
        _LINK + {"vram": "memory", "power": "power"}.get(problem.kind, "what-it-reports"),
    )


def _remark(text: str) -> Finding:
    return Finding("plan-assumption", "note", "", text)

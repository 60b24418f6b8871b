"""The capacity plan of an app: computed when it is synthesized, before anything is applied."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cdk8s import App

from gpu_constructs.catalog.inventory import GpuInventory
from gpu_constructs.cluster.gpu_rules import remember_inventory
from gpu_constructs.errors import GpuConstructsError, short_errors, wrapped
from gpu_constructs.facts.app import Facts
from gpu_constructs.facts.finding import Finding
from gpu_constructs.facts.provided import Provided
from gpu_constructs.facts.readable import namespace_of, plain_manifests
from gpu_constructs.kube import fields
from gpu_constructs.kube.side_files import FOLDERS, SideFile
from gpu_constructs.tree.construct import GpuConstruct
from gpu_constructs.tree.held_apps import AppChecks, hold

if TYPE_CHECKING:
    from gpu_constructs.capacity.plan import Plan
    from gpu_constructs.capacity.planned import Problem

Severity = Literal["warn", "error", "off"]

_PLANNED = "_gpu_capacity_plan"


class CapacityPlan(GpuConstruct):
    """Fails the synth of an app whose GPU demand its cluster cannot place, and writes a report.

    It counts every object of the app, whoever made it, against an inventory of GPU nodes: slots after sharing and MIG,
    node selectors, affinities and taints, new pods of updates, trials and replicas at once. What can never run is an
    error, with the reason node by node and a way out.

    Kubernetes counts slots and no memory: the plan adds up what pods say they take (``GpuRequest(vram=...)``), and
    tells which of them do not go together on one GPU.

    The report is one page, picture, text and JSON: ``reports/capacity-plan.html``, ``.svg``, ``.txt``, ``.json``, in a
    folder beside the manifests that ``kubectl apply -f`` does not read. ``app.synth()`` of cdk8s fails likewise, but
    writes no report. Where a synth fails, the report of the last one stays as all of dist/ does; ``plan`` has the new.

    Attributes:
        inventory: The nodes.
        provides: Nothing; it only looks.
    """

    @short_errors
    def __init__(
        self,
        app: App,
        inventory: GpuInventory,
        *,
        id: str = "capacity-plan",
        vram: Severity = "warn",
        waiting: Severity = "warn",
        power: Severity = "warn",
        unchecked: Severity = "warn",
        other_manifests: Iterable[Mapping[str, Any] | None] = (),
        title: str | None = None,
    ) -> None:
        """Plan the app.

        Args:
            app: The App, one cluster.
            inventory: Its GPU nodes. Rules that count GPUs look at it too, unless ``GpuRules.enforce`` names another.
            id: Construct id.
            vram: What to do where memory of a GPU may run out, or pods on a shared GPU state no budget: ``warn``, the
                default since budgets are estimates; ``error`` fails the synth; ``off`` says nothing. The report
                has it anyway.
            waiting: What to do where not all that may run has a place at once, so that some pods wait as Pending.
                ``off`` where jobs are meant to queue.
            power: What to do where the GPUs of a rack draw more than ``GpuInventory(rack_watts=...)`` at their power
                limits.
            unchecked: What to do where everything fits only if something holds that the plan cannot look at: another
                scheduler, a label that no node declares, a custom resource of a kind that is not known. ``error``
                makes a synth without errors mean that everything fits; ``off`` leaves it to the report, whose verdict
                is "fits, if ...".
            other_manifests: Objects of the cluster that the app does not make, as plain data: what
                ``yaml.safe_load_all`` reads of ``helm template``, or ``[json.loads(text)]`` of
                ``kubectl get deployments -A -o json``. Their GPUs count; what the app makes too counts once. Their
                updates, which are not the app's to change, only warn.
            title: Of the report. None: the name of the app's outdir.

        Raises:
            GpuConstructsError: No App, a second plan of one app, no inventory, or a word that is not allowed. At synth:
                demand that the nodes cannot place.
        """
        fields.refuse_first(
            (
                (
                    not isinstance(app, App),
                    f"app must be a cdk8s App; got {type(app).__name__}; pass the App of the charts",
                ),
                (
                    not isinstance(inventory, GpuInventory),
                    f"inventory must be a GpuInventory; got {type(inventory).__name__}; make one with "
                    "GpuInventory(nodes=[GpuNode(...)])",
                ),
            )
        )
        self._severities: dict[str, Severity] = {
            "vram": vram,
            "waiting": waiting,
            "power": power,
            "unchecked": unchecked,
        }
        fields.arguments(CapacityPlan.__init__, {"id": id, "title": title, **self._severities})
        # The report's files are named after it.
        fields.dns_label("id", id)
        self._others = plain_manifests("other_manifests", other_manifests)
        fields.refuse_first(
            (
                (
                    title is not None and not (title.strip() and title.isprintable()),
                    f"title must be a printable str that is not empty; got {title!r}; leave it out",
                ),
                # Kept on our side: what a tree holds is asked for across a bridge.
                (
                    hasattr(app, _PLANNED),
                    "app has a capacity plan already; one App is one cluster: leave one of them out",
                ),
            )
        )
        super().__init__(app, id)
        hold(app, self)
        setattr(app, _PLANNED, self)
        self.inventory = inventory
        self.provides = Provided()
        self._stem = id
        self._title = Path(app.outdir).resolve().name if title is None else title
        self._plan: Plan | None = None
        remember_inventory(app, inventory)
        AppChecks.of(app).checks[id] = self.examine

    @property
    def plan(self) -> Plan:
        """What it found, as plain data, once the app has been rendered.

        Raises:
            GpuConstructsError: It has not been.
        """
        if self._plan is None:
            raise GpuConstructsError(
                "plan is there once the app has been synthesized; call synth(app), or app.synth_yaml(), before it",
                path=self.node.path,
            )
        return self._plan

    def examine(self, manifests: Sequence[Mapping[str, Any]], provided: Sequence[Provided]) -> list[Finding]:
        """Plan the app as it is rendered."""
        # Asked for only where there is something to plan.
        from gpu_constructs.capacity.planner import plan

        facts = Facts([*manifests, *self._others], provided, self.inventory)
        try:
            self._plan = plan(facts, self.inventory)
        except GpuConstructsError as error:
            raise error.at(self.node.path) from None
        return [
            self._finding(problem, facts, own=len(manifests))
            for problem in (*self._plan.problems, *self._plan.conditions)
            if self._severities.get(problem.kind) != "off"
        ]

    def _finding(self, problem: Problem, facts: Facts, *, own: int) -> Finding:
        subject, whose = None if problem.subject is None else facts.origins[problem.subject], ""
        is_warning = self._severities.get(problem.kind, "error") == "warn"
        if subject is not None and subject >= own:
            other = facts.objects[problem.subject or 0]
            name = (other.get("metadata") or {}).get("name")
            subject, whose = None, f"{other['kind']} {namespace_of(other)}/{name}: "
            is_warning |= problem.kind == "rollout"
        # What is wrong and what to do come first, and the reasons below it.
        lines = [f"{whose}{problem.what}; {problem.way_out}", *problem.details]
        return Finding(subject, wrapped("\n  ".join(map(_shown, lines))), is_warning=is_warning)

    def side_files(self) -> list[SideFile]:
        """Return the report in each of its forms."""
        forms = {
            ".html": self.plan.to_html,
            ".json": self.plan.to_json,
            ".svg": self.plan.to_svg,
            ".txt": self.plan.to_text,
        }
        return [
            SideFile(folder="reports", stem=self._stem, ending=ending, text=forms[ending](self._title))
            for ending in FOLDERS["reports"]
        ]


def _shown(text: str) -> str:
    # Names of foreign objects go to a terminal, too.
    from gpu_constructs.capacity.report.words import readable

    return readable(text)

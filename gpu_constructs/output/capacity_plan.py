"""`CapacityPlan`: a check at synth whether the GPU nodes of a cluster can run all pods of an app."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cdk8s import App

from gpu_constructs.catalog.inventory import GpuInventory
from gpu_constructs.cluster.gpu_rules import remember_inventory
from gpu_constructs.errors import GpuConstructsError, short_errors, then, wrapped
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
    """A check at synth whether the GPU nodes of a cluster can run all pods of an app.

    The capacity plan compares the GPU requests of all objects of the app, including objects of other libraries, with an
    inventory of GPU nodes. It considers node selectors, affinities, taints, and the slots that nodes advertise. A slot
    is one unit of a GPU resource, such as a GPU, a MIG device, or a share of a GPU. The plan also counts the extra pods
    during updates, all replicas of a workload, and the parallel trials of a Katib experiment. Synth fails if a workload
    can never run, or if its update would wait forever. The error states the reason for each node and a solution.

    Kubernetes counts slots but not GPU memory. The plan adds up the memory that pods state in ``GpuRequest(vram=...)``,
    and reports pods that do not fit together on one GPU.

    Emits no Kubernetes object. ``synth`` writes a report as an HTML page, a picture, text and JSON:
    ``reports/capacity-plan.html``, ``.svg``, ``.txt`` and ``.json``. ``kubectl apply -f`` does not read the folder
    ``reports``. A failed synth writes no report and keeps the report files of an earlier synth. The attribute ``plan``
    then contains the new result. ``app.synth()`` of cdk8s makes the same check, but never writes a report.

    Attributes:
        inventory: The GPU nodes.
        provides: Effects of the construct on the cluster, such as node labels. A ``CapacityPlan`` has no effects.
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
        """Add the capacity plan to an app.

        Args:
            app: The cdk8s App, whose objects are for one cluster.
            inventory: GPU nodes of the cluster. ``GpuRules`` uses these nodes too, unless the user passes
                ``inventory`` to ``GpuRules.enforce``.
            id: Construct ID.
            vram: Severity of two problems: pods can exceed the memory of a GPU, or pods on a shared GPU state no memory
                budget. With ``warn``, synth prints a warning. This is the default, because budgets are estimates. With
                ``error``, synth fails. With ``off``, only the report shows the problem.
            waiting: Severity if some pods must wait (Pending) until pods of Jobs end; ``warn`` by default. Use ``off``
                if the pods can wait.
            power: Severity if the GPUs of a rack can draw more than ``GpuInventory(rack_watts=...)`` at their power
                limits; ``warn`` by default.
            unchecked: Severity if the pods fit only under a condition that the plan cannot check; ``warn`` by default.
                Examples are a scheduler other than kube-scheduler, a label that no node declares, and a custom resource
                of an unknown kind. With ``error``, a synth without errors means that all pods fit. With ``off``, only
                the report states the conditions, in its verdict "fits, if ...".
            other_manifests: Objects of the cluster that the app does not create, as plain data. For example, pass the
                result of ``yaml.safe_load_all`` for the output of ``helm template``, or ``[json.loads(text)]`` for the
                output of ``kubectl get deployments -A -o json``. The plan counts the GPUs of these objects. If the app
                creates one of them too, the plan counts the object once. A problem with an update of these objects is
                only a warning, because the app cannot change them.
            title: Title of the report. None (the default) uses the name of the folder in ``App(outdir=...)``.

        Raises:
            GpuConstructsError: If ``app`` is not an App or already has a capacity plan, the inventory is missing, or a
                severity is unknown. At synth: if the pods do not fit the nodes.
        """
        fields.refuse_first(
            (
                (
                    not isinstance(app, App),
                    f"app must be a cdk8s App, got {type(app).__name__}. Pass the App that contains the charts",
                ),
                (
                    not isinstance(inventory, GpuInventory),
                    f"inventory must be a GpuInventory, got {type(inventory).__name__}. Make one with "
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
        # The files of the report have this name.
        fields.dns_label("id", id)
        self._others = plain_manifests("other_manifests", other_manifests)
        fields.refuse_first(
            (
                (
                    title is not None and not (title.strip() and title.isprintable()),
                    f"title must be a printable str that is not empty, got {title!r}. Leave it out",
                ),
                # The plan is a Python attribute of the App, because a search in the construct tree calls JavaScript,
                # which is slow.
                (
                    hasattr(app, _PLANNED),
                    "app must have one capacity plan, because an App is one cluster. Remove the second plan",
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
        """The result of the capacity plan, available after a synth.

        Raises:
            GpuConstructsError: If neither ``synth(app)`` nor ``app.synth_yaml()`` has rendered the app yet.
        """
        if self._plan is None:
            raise GpuConstructsError(
                "plan is available after a synth. Call synth(app) or app.synth_yaml() first",
                path=self.node.path,
            )
        return self._plan

    def examine(self, manifests: Sequence[Mapping[str, Any]], provided: Sequence[Provided]) -> list[Finding]:
        """Compute the capacity plan of the rendered app. Return its findings, which are errors and warnings.

        Args:
            manifests: Rendered objects of the app.
            provided: Effects of the app's constructs on the cluster, such as node labels that they publish.
        """
        # Imported here because apps without a plan do not need it.
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
        # A message begins with the problem and the solution. The reasons for each node follow.
        lines = [f"{whose}{problem.what}{then(problem.way_out)}", *problem.details]
        return Finding(subject, wrapped("\n  ".join(map(_shown, lines))), is_warning=is_warning)

    def side_files(self) -> list[SideFile]:
        """Return the report files of the capacity plan: HTML page, JSON, SVG picture and text."""
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
    # A terminal prints the names of objects, so the text must not contain control characters.
    from gpu_constructs.capacity.report.words import readable

    return readable(text)

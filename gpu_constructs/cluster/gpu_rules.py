"""`GpuRules`: checks of an app's objects, which run each time cdk8s renders the app."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cdk8s import App

from gpu_constructs.catalog.inventory import GpuInventory
from gpu_constructs.checks.rules.table import DEFAULT_SETTINGS, RuleSettings, broken_rules, require_codes
from gpu_constructs.errors import GpuConstructsError, ShortErrors, short_errors
from gpu_constructs.facts.app import Facts
from gpu_constructs.facts.finding import Finding
from gpu_constructs.facts.provided import Provided
from gpu_constructs.kube import fields
from gpu_constructs.tree.held_apps import AppChecks

_SETTINGS, _INVENTORY = "_gpu_rules", "_gpu_inventory"


class GpuRules(metaclass=ShortErrors):
    """Rules for the GPU settings of Kubernetes objects, for example that a GPU pod has a runtime class.

    The rules apply to every object of an app, even if another library creates the object. ``gpu_constructs.synth``
    always checks the rules. If the app contains constructs of this library, ``app.synth()`` and ``app.synth_yaml()``
    also check the rules. Call ``GpuRules.enforce(app)`` for an app without constructs of this library, for
    ``Testing.synth(chart)``, or to ignore some rules.
    """

    @staticmethod
    @short_errors
    def enforce(app: App, *, ignore: Sequence[str] = (), inventory: GpuInventory | None = None) -> None:
        """Register the rules, so that cdk8s checks them each time it renders the app.

        Rendering then raises an error if an object breaks a rule. If the library cannot determine whether an object
        breaks a rule, it warns.

        Args:
            app: The App. A second call for the same App replaces the earlier settings.
            ignore: Codes of rules, such as ``R13``, to ignore in the whole app. To ignore rules for one object, use its
                annotation ``gpu-constructs/ignore-rules``.
            inventory: GPU nodes of the cluster. None, the default: the nodes of a ``CapacityPlan`` in the app. If the
                app has no ``CapacityPlan``, rules that compare objects with the nodes cannot report all problems.

        Raises:
            GpuConstructsError: If ``app`` is not an App, or ``ignore`` contains an unknown code.
        """
        if not isinstance(app, App):
            raise GpuConstructsError(
                f"app must be a cdk8s App, got {type(app).__name__}. Pass the App that contains the charts"
            )
        fields.arguments(GpuRules.enforce, {"ignore": ignore, "inventory": inventory})
        require_codes("ignore", ignore)
        setattr(app, _SETTINGS, RuleSettings(ignore=frozenset(ignore), inventory=inventory))

        def broken(manifests: Sequence[Mapping[str, Any]], provided: Sequence[Provided]) -> list[Finding]:
            settings = settings_of(app)
            return broken_rules(Facts(manifests, provided, settings.inventory), ignore=settings.ignore)

        AppChecks.of(app).checks[""] = broken


def remember_inventory(app: App, inventory: GpuInventory) -> None:
    """Store the GPU nodes of a ``CapacityPlan`` for the rules of an app.

    The rules use these nodes only if the user passes no ``inventory`` to ``GpuRules.enforce``.
    """
    setattr(app, _INVENTORY, inventory)


def settings_of(app: App) -> RuleSettings:
    """Return the ``RuleSettings`` of an app: the codes of rules to ignore, and the GPU nodes."""
    settings: RuleSettings = getattr(app, _SETTINGS, DEFAULT_SETTINGS)
    if settings.inventory is None:
        settings = settings._replace(inventory=getattr(app, _INVENTORY, None))
    return settings

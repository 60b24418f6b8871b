"""Hands the rules to an app, so that every way to render it runs them."""

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
    """The rules for objects with GPUs, on every object of an app, whoever wrote it.

    Our ``synth`` runs them anyway. So do ``app.synth()`` and ``app.synth_yaml()`` of an app that holds constructs of
    this library. ``GpuRules.enforce(app)`` has any app and ``Testing.synth(chart)`` run them, and says which to leave
    out.
    """

    @staticmethod
    @short_errors
    def enforce(app: App, *, ignore: Sequence[str] = (), inventory: GpuInventory | None = None) -> None:
        """Have every rendering of an app fail where a rule is broken, and warn where one may be.

        Args:
            app: The App. Called again for the same one, the later settings replace the earlier ones.
            ignore: Codes of rules to leave out for the whole app; one object leaves some out by the annotation
                ``gpu-constructs/ignore-rules``.
            inventory: The GPU nodes of the cluster; without it, that of a ``CapacityPlan``. With neither, rules that
                count GPUs or look at their model say less.

        Raises:
            GpuConstructsError: No App, or a code that no rule has.
        """
        if not isinstance(app, App):
            raise GpuConstructsError(f"app must be a cdk8s App; got {type(app).__name__}; pass the App of the charts")
        fields.arguments(GpuRules.enforce, {"ignore": ignore, "inventory": inventory})
        require_codes("ignore", ignore)
        setattr(app, _SETTINGS, RuleSettings(ignore=frozenset(ignore), inventory=inventory))

        def broken(manifests: Sequence[Mapping[str, Any]], provided: Sequence[Provided]) -> list[Finding]:
            settings = settings_of(app)
            return broken_rules(Facts(manifests, provided, settings.inventory), ignore=settings.ignore)

        AppChecks.of(app).checks[""] = broken


def remember_inventory(app: App, inventory: GpuInventory) -> None:
    """Have the rules look at an inventory where they are told of no other."""
    setattr(app, _INVENTORY, inventory)


def settings_of(app: App) -> RuleSettings:
    """Return how an app is to be checked."""
    settings: RuleSettings = getattr(app, _SETTINGS, DEFAULT_SETTINGS)
    if settings.inventory is None:
        settings = settings._replace(inventory=getattr(app, _INVENTORY, None))
    return settings

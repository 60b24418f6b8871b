"""Hands the rules to an app, so that every way to render it runs them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any

import constructs
import jsii
from cdk8s import ApiObject, App

from gpu_constructs import _fields
from gpu_constructs.errors import GpuConstructsError, ShortErrors, short_errors, warn
from gpu_constructs.inventory import GpuInventory
from gpu_constructs.provided import Provider
from gpu_constructs.rules.facts import Facts
from gpu_constructs.rules.table import DEFAULT_SETTINGS, RuleSettings, broken_rules, require_codes

_REMEMBERED = "_gpu_rules"


class GpuRules(metaclass=ShortErrors):
    """The rules for objects with GPUs, R01 to R30: on every object of an app, whoever wrote it.

    Our ``synth`` runs them anyway. ``GpuRules.enforce(app)`` has ``app.synth()``, ``app.synth_yaml()`` and
    ``Testing.synth(chart)`` run them too, and says which to leave out.
    """

    @staticmethod
    @short_errors
    def enforce(app: App, *, ignore: Sequence[str] = (), inventory: GpuInventory | None = None) -> None:
        """Have every rendering of an app fail where a rule is broken, and warn where one may be.

        Args:
            app: The App. Called again for the same one, the later settings replace the earlier ones.
            ignore: Codes of rules to leave out for the whole app; one object leaves some out by the annotation
                ``gpu-constructs/ignore-rules``.
            inventory: The GPU nodes of the cluster; without it, rules that count GPUs or look at their model say
                less.

        Raises:
            GpuConstructsError: No App, or a code that no rule has.
        """
        if not isinstance(app, App):
            raise GpuConstructsError(f"app must be a cdk8s App; got {type(app).__name__}; pass the App of the charts")
        _fields.arguments(GpuRules.enforce, {"ignore": ignore, "inventory": inventory})
        require_codes("ignore", ignore)
        settings = RuleSettings(ignore=frozenset(ignore), inventory=inventory)
        remembered = getattr(app, _REMEMBERED, None)
        if remembered is None:
            remembered = _Validation(app, settings)
            # Held by the app, since JavaScript does not keep what it calls back alive.
            setattr(app, _REMEMBERED, remembered)
            app.node.add_validation(remembered)
            for name in ("synth", "synth_yaml"):
                setattr(app, name, remembered.checked_once(getattr(app, name)))
        remembered.settings = settings


@jsii.implements(constructs.IValidation)
class _Validation:
    """Runs the rules when cdk8s validates the app."""

    def __init__(self, app: App, settings: RuleSettings) -> None:
        self.app = app
        self.settings = settings
        self.is_left_to_synth = False
        self._is_checked: bool | None = None
        self._told: set[str] = set()

    def checked_once(self, render: Callable[..., Any]) -> Callable[..., Any]:
        """Give a way to render all charts that has the rules run for the first of them only."""

        @wraps(render)
        def rendered(*args: Any, **kwargs: Any) -> Any:
            self._is_checked = False
            try:
                return render(*args, **kwargs)
            finally:
                self._is_checked = None

        return rendered

    def validate(self) -> list[str]:
        # cdk8s validates an app once for itself and once for each chart that it renders.
        if self.is_left_to_synth or self._is_checked:
            return []
        if self._is_checked is not None:
            self._is_checked = True
        found = self.app.node.find_all()
        # Each by itself: a chart validates the app again before it renders.
        objects = [construct for construct in found if isinstance(construct, ApiObject)]
        providers = [construct for construct in found if isinstance(construct, Provider)]
        try:
            manifests = [made.to_json() for made in objects]
        except GpuConstructsError as error:
            return [str(error)]
        facts = Facts(manifests, [provider.provides for provider in providers], self.settings.inventory)
        findings = broken_rules(facts, ignore=self.settings.ignore)

        def object_path(index: int) -> str:
            return objects[index].node.path.removesuffix("/Default").removesuffix("/Resource")

        sentences = [
            (finding.is_warning, finding.sentence(object_path, lambda i: providers[i].node.path))
            for finding in findings
        ]
        errors = [sentence for is_warning, sentence in sentences if not is_warning]
        if not errors:
            # A chart that is rendered by itself has the whole app validated.
            for sentence in dict.fromkeys(sentence for _, sentence in sentences if sentence not in self._told):
                self._told.add(sentence)
                warn(sentence)
        return errors


def settings_of(app: App) -> RuleSettings:
    """Give how an app is to be checked."""
    remembered = getattr(app, _REMEMBERED, None)
    return DEFAULT_SETTINGS if remembered is None else remembered.settings


@contextmanager
def left_to_synth(app: App) -> Iterator[None]:
    """Keep the rules from running while our ``synth`` renders, which runs them itself with all else it checks."""
    remembered = getattr(app, _REMEMBERED, None)
    if remembered is None:
        yield
        return
    remembered.is_left_to_synth = True
    try:
        yield
    finally:
        remembered.is_left_to_synth = False

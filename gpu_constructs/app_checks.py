"""Has what looks at a whole app look at it, whichever way the app is rendered."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, Protocol, runtime_checkable

import constructs
import jsii
from cdk8s import ApiObject, App

from gpu_constructs.errors import GpuConstructsError, warn
from gpu_constructs.provided import Provided, providers_in
from gpu_constructs.rules.finding import Finding

_REMEMBERED = "_gpu_checks"


@runtime_checkable
class ExaminesApp(Protocol):
    """A construct that looks at all that its app makes."""

    def examine(self, manifests: Sequence[Mapping[str, Any]], provided: Sequence[Provided]) -> Sequence[Finding]:
        """Give what is wrong with it; a finding without a subject is about the construct itself."""


@jsii.implements(constructs.IValidation)
class AppChecks:
    """What cdk8s runs when it validates an app.

    Attributes:
        checks: By the path of who looks.
        is_left_to_synth: Whether our ``synth`` renders, which runs them itself with all else it checks.
    """

    def __init__(self, app: App) -> None:
        self.app = app
        self.checks: dict[str, Callable[..., Sequence[Finding]]] = {}
        self.is_left_to_synth = False
        self._is_checked: bool | None = None
        self._told: set[str] = set()

    @classmethod
    def of(cls, app: App) -> AppChecks:
        """Give those of an app, which has them from then on."""
        remembered: AppChecks | None = getattr(app, _REMEMBERED, None)
        if remembered is None:
            remembered = cls(app)
            # Held by the app, since JavaScript does not keep what it calls back alive.
            setattr(app, _REMEMBERED, remembered)
            app.node.add_validation(remembered)
            for name in ("synth", "synth_yaml"):
                setattr(app, name, remembered._checked_once(getattr(app, name)))
        return remembered

    def _checked_once(self, render: Callable[..., Any]) -> Callable[..., Any]:
        """Give a way to render all charts that has the checks run for the first of them only."""

        @wraps(render)
        def rendered(*args: Any, **kwargs: Any) -> Any:
            self._is_checked = False
            try:
                return render(*args, **kwargs)
            finally:
                self._is_checked = None

        return rendered

    def validate(self) -> list[str]:
        """Run all checks; give the errors, and warn of the rest."""
        # cdk8s validates an app once for itself and once for each chart that it renders.
        if self.is_left_to_synth or self._is_checked:
            return []
        if self._is_checked is not None:
            self._is_checked = True
        found = self.app.node.find_all()
        # Each by itself: a chart validates the app again before it renders.
        objects = [construct for construct in found if isinstance(construct, ApiObject)]
        providers, provided = providers_in(found)

        def object_path(index: int) -> str:
            return objects[index].node.path.removesuffix("/Default").removesuffix("/Resource")

        def provider_path(index: int) -> str:
            return providers[index].node.path

        try:
            manifests = [made.to_json() for made in objects]
            sentences = [
                (finding.is_warning, finding.sentence(object_path, provider_path, path))
                for path, check in self.checks.items()
                for finding in check(manifests, provided)
            ]
        except GpuConstructsError as error:
            return [str(error)]
        errors = [sentence for is_warning, sentence in sentences if not is_warning]
        if not errors:
            # A chart that is rendered by itself has the whole app validated.
            for sentence in dict.fromkeys(sentence for _, sentence in sentences if sentence not in self._told):
                self._told.add(sentence)
                warn(sentence)
        return errors


@contextmanager
def left_to_synth(app: App) -> Iterator[None]:
    """Keep the checks from running while our ``synth`` renders."""
    remembered: AppChecks | None = getattr(app, _REMEMBERED, None)
    if remembered is None:
        yield
        return
    remembered.is_left_to_synth = True
    try:
        yield
    finally:
        remembered.is_left_to_synth = False

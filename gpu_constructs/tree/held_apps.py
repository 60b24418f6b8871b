"""Knows which Apps hold constructs of this library: all of them are checked when rendered, and none is forgotten."""

from __future__ import annotations

import atexit
import sys
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, wraps
from importlib import import_module
from pathlib import Path
from typing import Any

import constructs
import jsii
from cdk8s import ApiObject, App
from constructs import IConstruct

from gpu_constructs.errors import GpuConstructsError, GpuConstructsWarning, warn
from gpu_constructs.facts.finding import Finding
from gpu_constructs.facts.provided import providers_in

_REMEMBERED = "_gpu_checks"


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
        """Return those of an app, which has them from then on."""
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
        """Return a way to render all charts that has the checks run for the first of them only."""

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
        try:
            sentences = list(self._sentences())
        except GpuConstructsError as error:
            return [str(error)]
        errors = [sentence for is_warning, sentence in sentences if not is_warning]
        # A chart that is rendered by itself has the whole app validated.
        for sentence in () if errors else dict.fromkeys(sentence for _, sentence in sentences):
            if sentence not in self._told:
                self._told.add(sentence)
                warn(sentence)
        return errors

    def _sentences(self) -> Iterator[tuple[bool, str]]:
        """Yield what each check finds, and whether it is a warning."""
        found = self.app.node.find_all()
        # Each by itself: a chart validates the app again before it renders.
        objects = [construct for construct in found if isinstance(construct, ApiObject)]
        providers, provided = providers_in(found)

        def object_path(index: int) -> str:
            return objects[index].node.path.removesuffix("/Default").removesuffix("/Resource")

        def provider_path(index: int) -> str:
            return providers[index].node.path

        manifests = [made.to_json() for made in objects]
        for path, check in self.checks.items():
            for finding in check(manifests, provided):
                yield finding.is_warning, finding.sentence(object_path, provider_path, path)


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


_APP, _IS_RENDERED = "_gpu_constructs_app", "_gpu_constructs_is_rendered"
_WARNINGS = "_gpu_constructs_warnings"
_OUTDIR_OF_TESTING_APP = "cdk8s.outdir."

_held: list[App] = []


def hold(scope: IConstruct, made: IConstruct | None = None) -> list[str]:
    """Remember the App that a construct of ours is made in, and return its warnings, to be added to.

    Args:
        scope: Where it is made. The tree is across a bridge, so its root is asked for once a scope.
        made: The construct, which may be the scope of others.
    """
    known = scope.__dict__
    app = known.get(_APP)
    if app is None:
        app = known[_APP] = scope if isinstance(scope, App) else scope.node.root
        if isinstance(app, App) and _IS_RENDERED not in app.__dict__:
            _take(app)
    if made is not None:
        made.__dict__[_APP] = app
    return warnings_of(app)


def warnings_of(app: IConstruct) -> list[str]:
    """Return what constructs warned of while they were made in an App."""
    kept: list[str] = app.__dict__.setdefault(_WARNINGS, [])
    return kept


def mark_rendered(app: App) -> None:
    """Remember that an App was synthesized."""
    app.__dict__[_IS_RENDERED] = True


def running_script() -> Path | None:
    """Return the user's program; None in a test, a notebook or a shell, whose main module is not the user's."""
    given = getattr(sys.modules.get("__main__"), "__file__", None)
    if not given:
        return None
    script = Path(given).resolve()
    return None if any(script.is_relative_to(folder) for folder in _installed_folders()) else script


@cache
def _installed_folders() -> set[Path]:
    return {Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "purelib", "platlib", "scripts")}


def _take(app: App) -> None:
    app.__dict__[_IS_RENDERED] = False
    # Asked for now: Python forgets at exit which file it ran.
    if running_script() is not None:
        if not _held:
            # After JavaScript was started, and so before it is stopped.
            atexit.register(_warn_of_forgotten)
        _held.append(app)
    for name in ("synth", "synth_yaml"):
        setattr(app, name, _checked_first(app, getattr(app, name)))


def _checked_first(app: App, render: Callable[..., Any]) -> Callable[..., Any]:
    """Return cdk8s' way to render all charts, which first checks what ``synth(app)`` checks."""

    @wraps(render)
    def rendered(*args: Any, **kwargs: Any) -> Any:
        mark_rendered(app)
        # By name: what looks at the whole app stands above all constructs.
        import_module("gpu_constructs.output.synthesis").check_before_cdk8s(app)
        with left_to_synth(app):
            return render(*args, **kwargs)

    return rendered


def expect_nothing_more() -> None:
    """Remember that the program fails, so that no App is missed at its end."""
    _held.clear()


def _warn_of_forgotten() -> None:
    """Warn of each App that a user's program made and never synthesized, unless the program failed."""
    has_failed = hasattr(sys, "last_value") or hasattr(sys, "last_exc")
    for app in () if has_failed else _held:
        if app.__dict__[_IS_RENDERED] or _OUTDIR_OF_TESTING_APP in app.outdir or _has_rendered_object(app):
            continue
        try:
            warn(
                f"App(outdir={app.outdir!r}) was never synthesized, so nothing was written; end the program with "
                "synth(app)"
            )
        except GpuConstructsWarning as raised:
            # Nobody can catch it any more.
            print(f"error: {raised}", file=sys.stderr)


def _has_rendered_object(app: App) -> bool:
    """Check whether a chart was rendered by itself, as ``Testing.synth`` does."""
    made = (construct for construct in app.node.find_all() if isinstance(construct, ApiObject))
    return any(getattr(one, "is_rendered", False) for one in made)

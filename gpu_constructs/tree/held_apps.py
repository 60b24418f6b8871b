"""Registry of the Apps that contain constructs of this library.

The library checks each registered App when cdk8s validates the App. When the Python program ends, the library warns
about each App that the program never rendered, because a call of ``synth`` is probably missing.
"""

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
    """The checks of this library that cdk8s runs when it validates an app.

    Attributes:
        checks: Checks by the path of the construct that added them.
        is_left_to_synth: Whether the function ``synth`` of this library is rendering the app. If True, cdk8s skips the
            checks, because ``synth`` runs the checks itself.
    """

    def __init__(self, app: App) -> None:
        self.app = app
        self.checks: dict[str, Callable[..., Sequence[Finding]]] = {}
        self.is_left_to_synth = False
        self._is_checked: bool | None = None
        self._told: set[str] = set()

    @classmethod
    def of(cls, app: App) -> AppChecks:
        """Return the ``AppChecks`` of an app. The first call for each app creates the object."""
        remembered: AppChecks | None = getattr(app, _REMEMBERED, None)
        if remembered is None:
            remembered = cls(app)
            # The app holds a reference, because JavaScript does not keep the Python object of a callback alive.
            setattr(app, _REMEMBERED, remembered)
            app.node.add_validation(remembered)
            for name in ("synth", "synth_yaml"):
                setattr(app, name, remembered._checked_once(getattr(app, name)))
        return remembered

    def _checked_once(self, render: Callable[..., Any]) -> Callable[..., Any]:
        """Return a wrapper for ``App.synth`` or ``App.synth_yaml`` in which ``validate`` runs the checks only once.

        Without the wrapper, ``validate`` would run the checks again for each chart.
        """

        @wraps(render)
        def rendered(*args: Any, **kwargs: Any) -> Any:
            self._is_checked = False
            try:
                return render(*args, **kwargs)
            finally:
                self._is_checked = None

        return rendered

    def validate(self) -> list[str]:
        """Run all checks of the app, issue the warnings of the checks, and return the errors as texts."""
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
        # cdk8s validates the whole app even if it renders a single chart.
        for sentence in () if errors else dict.fromkeys(sentence for _, sentence in sentences):
            if sentence not in self._told:
                self._told.add(sentence)
                warn(sentence)
        return errors

    def _sentences(self) -> Iterator[tuple[bool, str]]:
        """Run the checks. Yield a pair for each problem: True for a warning (False for an error), and the text."""
        found = self.app.node.find_all()
        # The objects render one by one, because a chart would validate the app again first.
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
    """Make cdk8s skip the checks of ``AppChecks`` in the ``with`` block, because ``synth`` runs these checks itself."""
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
    """Register the App of a new construct, so that the library can warn if the Python program never renders the App.

    Return the list of the App's warnings, which the caller can extend.

    Args:
        scope: Scope of the construct. The function caches the App in an attribute of the scope, because a lookup of the
            App calls JavaScript.
        made: New construct. The function also caches the App in this construct. None: only in the scope.
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
    """Return the warnings of the constructs in an App."""
    kept: list[str] = app.__dict__.setdefault(_WARNINGS, [])
    return kept


def mark_rendered(app: App) -> None:
    """Mark an App as rendered. At exit, the library warns only about Apps without this mark.

    To render an App means to compute its manifests, for example with ``synth``.
    """
    app.__dict__[_IS_RENDERED] = True
    if app in _held:
        # A program with many Apps can then free the memory of each one.
        _held.remove(app)


def running_script() -> Path | None:
    """Return the path of the script that Python runs. Return None in a test, a notebook or a Python shell."""
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
    # At exit, Python no longer knows which file it ran.
    if running_script() is not None:
        _warn_at_exit()
        _held.append(app)
    for name in ("synth", "synth_yaml"):
        setattr(app, name, _checked_first(app, getattr(app, name)))


@cache
def _warn_at_exit() -> None:
    # JavaScript has already started. Exit handlers run in reverse order, so this one runs before it stops.
    atexit.register(_warn_of_forgotten)


def _checked_first(app: App, render: Callable[..., Any]) -> Callable[..., Any]:
    """Return a wrapper for ``app.synth`` or ``app.synth_yaml``, which first runs the same checks as ``synth(app)``.

    cdk8s then skips the checks of ``AppChecks``.
    """

    @wraps(render)
    def rendered(*args: Any, **kwargs: Any) -> Any:
        mark_rendered(app)
        # The import is dynamic, because modules of `tree` must not import modules of `output`.
        import_module("gpu_constructs.output.synthesis").check_before_cdk8s(app)
        with left_to_synth(app):
            return render(*args, **kwargs)

    return rendered


def expect_nothing_more() -> None:
    """Disable the warning about Apps that the Python program did not render. Call the function if the program fails."""
    _held.clear()


def _warn_of_forgotten() -> None:
    """Warn about each App that the Python program created but never rendered, unless the program failed."""
    has_failed = hasattr(sys, "last_value") or hasattr(sys, "last_exc")
    for app in () if has_failed else _held:
        if app.__dict__[_IS_RENDERED] or _OUTDIR_OF_TESTING_APP in app.outdir or _has_rendered_object(app):
            continue
        try:
            warn(
                f"App(outdir={app.outdir!r}) has no output, because the program never rendered it. End the program "
                "with synth(app)"
            )
        except GpuConstructsWarning as raised:
            # At exit, no caller can catch the exception.
            print(f"error: {raised}", file=sys.stderr)


def _has_rendered_object(app: App) -> bool:
    """Check whether the user rendered at least one object of the app, for example by ``Testing.synth`` of one chart."""
    made = (construct for construct in app.node.find_all() if isinstance(construct, ApiObject))
    return any(getattr(one, "is_rendered", False) for one in made)

"""Knows which Apps hold constructs of this library: all of them are checked when rendered, and none is forgotten."""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any

from cdk8s import ApiObject, App
from constructs import IConstruct

from gpu_constructs.app_checks import left_to_synth
from gpu_constructs.errors import GpuConstructsWarning, warn
from gpu_constructs.output_files import running_script

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
        import_module("gpu_constructs.synthesis").check_before_cdk8s(app)
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

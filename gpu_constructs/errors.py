"""The errors and warnings a user of the library sees."""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import os
import sys
import textwrap
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, wraps
from types import FrameType, MappingProxyType
from typing import Any, TypeVar, cast

from gpu_constructs import nested

# A terminal or a log shows a file and a line before it.
_LONGEST_LINE = 180
_Made = TypeVar("_Made")
_Factory = TypeVar("_Factory", bound=Callable[..., Any])


class GpuConstructsError(ValueError):
    """Input that cannot become a correct manifest.

    One line says where in the tree, which keyword, what is allowed, what came instead, and what to do.

    Attributes:
        problem: The message without the construct path.
        path: The construct path (``chart/child``), empty for values made outside a construct tree.
    """

    def __init__(self, problem: str, *, path: str = "") -> None:
        # What users gave is shown, and may be long; what it must be stands in front of it, the way out behind.
        problem = problem if type(self) is not GpuConstructsError else _cut(problem)
        self.problem = problem
        self.path = path
        super().__init__(f"{path}: {problem}" if path else problem)

    def at(self, path: str) -> GpuConstructsError:
        """Return the same error with a construct path, unless it already names one."""
        return self if self.path else GpuConstructsError(self.problem, path=path)


_NOTHING = object()


def refuse_if(wrong: object, what: str, must: str, got: object = _NOTHING, *, way_out: str = "") -> None:
    """Raise if a value is wrong, with the sentence that all such errors have.

    Args:
        wrong: Whether it is.
        what: The keyword or its member.
        must: What it must be or do, behind "must".
        got: The value, unless it is better not shown.
        way_out: What to do about it.

    Raises:
        GpuConstructsError: It is wrong.
    """
    if wrong:
        shown = "" if got is _NOTHING else f"; got {got!r}"
        raise GpuConstructsError(f"{what} must {must}{shown}" + (f"; {way_out}" if way_out else ""))


_LONGEST = 2000


def _cut(message: str) -> str:
    half = _LONGEST // 2 - 2
    return message if len(message) <= _LONGEST else f"{message[:half]} … {message[-half:]}"


def refuse_endless(given: Mapping[str, object]) -> None:
    """Raise if arguments hold themselves, more than fits into an object, or text that no file can hold."""
    for name, value in given.items():
        problem = nested.problem_of(name, value)
        if problem:
            raise GpuConstructsError(problem)


def did_you_mean(got: object, allowed: Iterable[str]) -> str:
    """Return `` (did you mean 'x'?)`` for the nearest allowed word, or nothing."""
    near = difflib.get_close_matches(str(got), list(allowed), n=1, cutoff=0.6)
    return f" (did you mean {near[0]!r}?)" if near else ""


def wrapped(message: str) -> str:
    """Return a message without long lines; what continues a line is indented."""
    lines: list[str] = []
    for line in message.split("\n"):
        further = " " * (len(line) - len(line.lstrip()) + 2)
        lines += textwrap.wrap(line, _LONGEST_LINE, subsequent_indent=further, break_on_hyphens=False) or [""]
    return "\n".join(lines)


class ShortErrors(type):
    """Ends the traceback of refused input at the caller's line: no frame of ours but this one.

    Option structs refuse members they do not have in the house style; ``_NOT_TAKEN`` says why for some.
    """

    _NOT_TAKEN: dict[str, str] = {}  # noqa: RUF012

    @property
    def __signature__(cls) -> inspect.Signature:
        """The signature of ``__init__`` for ``help`` and editors, which would see that of ``__call__`` below."""
        return _signature_of(cls)

    def __call__(cls: type[_Made], *args: Any, **kwargs: Any) -> _Made:
        """Make the object, or raise the error anew from here."""
        try:
            reasons: Mapping[str, str] = cls._NOT_TAKEN  # type: ignore[attr-defined]
            if dataclasses.is_dataclass(cls):
                refuse_other_arguments(cls.__name__, _signature_of(cls), args, kwargs, kind="member", reasons=reasons)
            for name in reasons.keys() & kwargs.keys():
                raise GpuConstructsError(f"{name} is not a keyword of {cls.__name__}: {reasons[name]}")
            return cast(_Made, super().__call__(*args, **kwargs))  # type: ignore[misc]
        except GpuConstructsError as error:
            problem = error
        raise problem.with_traceback(None) from None


@cache
def _signature_of(made: Any) -> inspect.Signature:
    """Return the signature of a class, which is that of its ``__init__`` without the object itself."""
    if made.__init__ is object.__init__:
        return inspect.Signature()
    signature = inspect.signature(made.__init__)
    return signature.replace(parameters=list(signature.parameters.values())[1:])


def short_errors(factory: _Factory) -> _Factory:
    """Do for a factory what ``ShortErrors`` does for a class, and refuse arguments it cannot be called with."""
    signature = inspect.signature(factory)

    @wraps(factory)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        try:
            refuse_other_arguments(factory.__qualname__.removesuffix(".__init__"), signature, args, kwargs)
            return factory(*args, **kwargs)
        except GpuConstructsError as error:
            problem = error
        raise problem.with_traceback(None) from None

    return cast(_Factory, wrapper)


def refuse_other_arguments(
    name: str,
    signature: inspect.Signature,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    *,
    kind: str = "keyword",
    reasons: Mapping[str, str] = MappingProxyType({}),
) -> inspect.BoundArguments:
    """Return the arguments of a function by name.

    Args:
        name: Name of the function or class, for messages.
        signature: Its signature.
        args: Arguments that are given by place.
        kwargs: Arguments that are given by name.
        kind: What messages call an argument that is given by name.
        reasons: Why some names are not taken.

    Raises:
        GpuConstructsError: It cannot be called with the arguments, or they hold more than fits into an object.
    """
    refuse_endless({**dict(zip(signature.parameters, args, strict=False)), **kwargs})
    try:
        return signature.bind(*args, **kwargs)
    except TypeError:
        # A method's own object has no name for its callers.
        of_user = {key: one for key, one in signature.parameters.items() if key not in ("cls", "self")}
        by_place = [key for key, one in signature.parameters.items() if one.kind is one.POSITIONAL_OR_KEYWORD]
    kinds = {parameter.kind for parameter in of_user.values()}
    placed, further = by_place[: len(args)], args[len(by_place) :]
    if further and inspect.Parameter.VAR_POSITIONAL not in kinds:
        has = ", ".join(of_user) or "none"
        raise GpuConstructsError(
            f"{name} takes {_taken(by_place, of_user)}; got {further[0]!r} without one; it has {has}"
        )
    for key in kwargs:
        if key not in of_user and inspect.Parameter.VAR_KEYWORD not in kinds:
            why = f": {reasons[key]}" if key in reasons else did_you_mean(key, of_user)
            raise GpuConstructsError(f"{key} is not a {kind} of {name}{why}")
        if key in placed:
            raise GpuConstructsError(f"{key} is given twice to {name}; leave one of them out")
    missing = _missing_argument(of_user, {*placed, *kwargs})
    raise GpuConstructsError(f"{missing} is required by {name}; pass {missing}=...")


def _taken(by_place: Sequence[str], of_user: Collection[str]) -> str:
    allowed = ", ".join(key for key in by_place if key in of_user)
    return f"only {allowed} without a keyword" if allowed else "everything by keyword"


def _missing_argument(parameters: Mapping[str, inspect.Parameter], given: Collection[str]) -> str:
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    required = (key for key, one in parameters.items() if one.default is one.empty and one.kind not in variadic)
    return next(key for key in required if key not in given)


class SynthesisError(GpuConstructsError):
    """Everything that is wrong with the apps given to ``synth``.

    Attributes:
        problems: One line for each problem, each with its construct path.
    """

    def __init__(
        self, problems: Sequence[str], *, outcome: str = "nothing was written", details: Sequence[str] = ()
    ) -> None:
        """Make the error.

        Args:
            problems: The lines.
            outcome: What that means for the files; empty where the call itself is wrong, and its one line is all.
            details: Further lines, about the outcome.
        """
        self.problems = list(problems)
        count = len(self.problems)
        heading = f"{count} problem{'s' if count > 1 else ''} found, {outcome}"
        listed = [textwrap.indent(wrapped(line), "  ") for line in (*self.problems, *details)]
        super().__init__("\n".join([heading, *listed]) if outcome else self.problems[0])


class RenderingError(SynthesisError, RuntimeError):
    """The same, raised by cdk8s' own ``app.synth()``, whose errors are ``RuntimeError``."""


class GpuConstructsWarning(UserWarning):
    """Input that works but is likely not what the user wants."""


STRICT_VARIABLE = "GPU_CONSTRUCTS_STRICT"
_SWITCH = {"": False, "0": False, "false": False, "1": True, "true": True}


def strict_by_environment() -> bool:
    """Check whether the environment has warnings be errors.

    Raises:
        GpuConstructsError: The variable is neither on nor off.
    """
    given = os.environ.get(STRICT_VARIABLE, "")
    try:
        return _SWITCH[given.strip().lower()]
    except KeyError:
        raise GpuConstructsError(
            f"{STRICT_VARIABLE} must be 1 or 0; got {given!r}; unset it to let warnings pass"
        ) from None


_format_warning, _show_warning = warnings.formatwarning, warnings.showwarning
_shown: list[str] = []


def _one_line(message: Any, category: type[Warning], filename: str, lineno: int, line: str | None = None) -> str:
    """Format a warning of ours as one line, which the source of the user's line does not follow."""
    if not issubclass(category, GpuConstructsWarning):
        return _format_warning(message, category, filename, lineno, line)
    of_library = filename.startswith(os.path.dirname(__file__) + os.sep)
    return f"warning: {message}" + ("\n" if of_library else f" ({os.path.basename(filename)}:{lineno})\n")


def _shown_and_counted(
    message: Any, category: type[Warning], filename: str, lineno: int, file: Any = None, line: str | None = None
) -> None:
    if issubclass(category, GpuConstructsWarning):
        _shown.append(str(message))
    _show_warning(message, category, filename, lineno, file, line)


warnings.formatwarning = _one_line
warnings.showwarning = _shown_and_counted


def take_shown_warnings() -> list[str]:
    """Return the warnings that were printed since the last call, without those that a filter ignored."""
    shown = list(dict.fromkeys(_shown))
    _shown.clear()
    return shown


_kept_in: list[list[str]] = []


@contextmanager
def warnings_kept_in(kept: list[str]) -> Iterator[None]:
    """Keep what ``warn`` says meanwhile, printed or not, for who makes it an error later."""
    _kept_in.append(kept)
    try:
        yield
    finally:
        _kept_in.pop()


def is_ignored(message: str) -> bool:
    """Check whether the user's filters let ``warn`` say nothing."""
    try:
        with warnings.catch_warnings(record=True) as heard:
            warn(message)
    except GpuConstructsWarning:
        return False
    return not heard


_NOT_THE_USERS = ("cdk8s", "constructs", "gpu_constructs", "jsii")


def warn(message: str) -> None:
    """Warn at the line of the user's code that called into this library."""
    _, level = _users_frame()
    # What is one line stays one, for filters; what has lines already gets no long one.
    shown = _cut(wrapped(message) if "\n" in message else message)
    warnings.warn(shown, GpuConstructsWarning, stacklevel=level)
    if _kept_in:
        _kept_in[-1].append(shown)


def users_line() -> str:
    """Return the line of the user's code that called into this library, as ``app.py:12``."""
    frame, _ = _users_frame()
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


def _users_frame() -> tuple[FrameType, int]:
    frame, level = sys._getframe(2), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _NOT_THE_USERS:
        frame, level = frame.f_back, level + 1
    return frame, level

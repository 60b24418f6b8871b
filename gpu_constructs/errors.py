"""The errors and warnings that users of the library see."""

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

# A terminal or a log shows a filename and a line number before the message.
_LONGEST_LINE = 180
_Made = TypeVar("_Made")
_Factory = TypeVar("_Factory", bound=Callable[..., Any])


class GpuConstructsError(ValueError):
    """The error for input that cannot become a correct manifest.

    Its message is one line: the construct path, the keyword, the allowed values, the given value and the solution.

    Attributes:
        problem: Message without the construct path.
        path: Construct path, such as ``chart/child``; empty for values outside of a construct tree.
    """

    def __init__(self, problem: str, *, path: str = "") -> None:
        # A message contains values of the user, which can be long. The cut removes the middle of the message.
        problem = problem if type(self) is not GpuConstructsError else _cut(problem)
        self.problem = problem
        self.path = path
        super().__init__(f"{path}: {problem}" if path else problem)

    def at(self, path: str) -> GpuConstructsError:
        """Return this error with a construct path added. If it already has a path, return it unchanged."""
        return self if self.path else GpuConstructsError(self.problem, path=path)


_NOTHING = object()


def refuse_if(wrong: object, what: str, must: str, got: object = _NOTHING, *, way_out: str = "") -> None:
    """Raise an error if a condition is true.

    The message has the form "<keyword> must …, got …. <Solution>".

    Args:
        wrong: Condition under which the function raises.
        what: Name of the keyword, or path of a value inside the keyword, such as ``limits['index:0']``.
        must: Text of the message after "must".
        got: Value that the user passed; by default the message shows no value.
        way_out: Sentence of the message that states what the user can do; empty by default.

    Raises:
        GpuConstructsError: The condition is true.
    """
    if wrong:
        shown = "" if got is _NOTHING else f", got {got!r}"
        raise GpuConstructsError(f"{what} must {must}{shown}{then(way_out)}")


def sentence(text: str) -> str:
    """Return a text with a capital first letter, or unchanged if the first word is a name such as ``a_b``."""
    first = text.split(" ", 1)[0]
    return text[:1].upper() + text[1:] if first.isascii() and first.isalpha() and first.islower() else text


def then(way_out: str) -> str:
    """Return the solution ``way_out`` as text to append to a message. Return an empty text if ``way_out`` is empty."""
    return f". {sentence(way_out)}" if way_out else ""


_LONGEST = 2000


def _cut(message: str) -> str:
    half = _LONGEST // 2 - 2
    return message if len(message) <= _LONGEST else f"{message[:half]} … {message[-half:]}"


def refuse_endless(given: Mapping[str, object]) -> None:
    """Raise if an argument in ``given`` contains itself, has too many values, or has text that UTF-8 cannot encode."""
    for name, value in given.items():
        problem = nested.problem_of(name, value)
        if problem:
            raise GpuConstructsError(problem)


def did_you_mean(got: object, allowed: Iterable[str]) -> str:
    """Return text that suggests the allowed word that ``got`` resembles most, such as `` (did you mean 'x'?)``.

    Return an empty text if no allowed word is similar.
    """
    near = difflib.get_close_matches(str(got), list(allowed), n=1, cutoff=0.6)
    return f" (did you mean {near[0]!r}?)" if near else ""


def wrapped(message: str) -> str:
    """Return a message whose lines have at most 180 characters. Continuation lines have a deeper indentation."""
    lines: list[str] = []
    for line in message.split("\n"):
        further = " " * (len(line) - len(line.lstrip()) + 2)
        lines += textwrap.wrap(line, _LONGEST_LINE, subsequent_indent=further, break_on_hyphens=False) or [""]
    return "\n".join(lines)


class ShortErrors(type):
    """A metaclass that shortens the traceback of an error to the line of the caller and one frame of this library.

    The metaclass also rejects unknown arguments of the constructor. The class attribute ``_NOT_TAKEN`` of a class can
    contain advice for the error message, by name of the argument.
    """

    _NOT_TAKEN: dict[str, str] = {}  # noqa: RUF012

    @property
    def __signature__(cls) -> inspect.Signature:
        """Signature of the ``__init__`` of the class, for ``help`` and editors."""
        return _signature_of(cls)

    def __call__(cls: type[_Made], *args: Any, **kwargs: Any) -> _Made:
        """Create and return an object of the class. If its ``__init__`` raises an error, shorten the traceback."""
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
    """Return the signature of the ``__init__`` of the class ``made``, without ``self``."""
    if made.__init__ is object.__init__:
        return inspect.Signature()
    signature = inspect.signature(made.__init__)
    return signature.replace(parameters=list(signature.parameters.values())[1:])


def short_errors(factory: _Factory) -> _Factory:
    """Decorate a function so that it shortens tracebacks and rejects calls with unknown arguments."""
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
    """Return the arguments of a call by name. Raise an error if they do not fit the signature of the function.

    Args:
        name: Name of the function or class, for messages.
        signature: Signature of the function or class.
        args: Positional arguments.
        kwargs: Keyword arguments.
        kind: Term for a keyword argument in messages; ``keyword`` by default.
        reasons: Reasons why the function does not accept certain arguments, by name; none by default.

    Raises:
        GpuConstructsError: The arguments do not fit the signature, or ``refuse_endless`` rejects an argument.
    """
    refuse_endless({**dict(zip(signature.parameters, args, strict=False)), **kwargs})
    try:
        return signature.bind(*args, **kwargs)
    except TypeError:
        # Users do not pass `cls` and `self`, so messages do not mention these two.
        of_user = {key: one for key, one in signature.parameters.items() if key not in ("cls", "self")}
        by_place = [key for key, one in signature.parameters.items() if one.kind is one.POSITIONAL_OR_KEYWORD]
    kinds = {parameter.kind for parameter in of_user.values()}
    placed, further = by_place[: len(args)], args[len(by_place) :]
    if further and inspect.Parameter.VAR_POSITIONAL not in kinds:
        has = ", ".join(of_user) or "none"
        raise GpuConstructsError(
            f"{name} takes {_taken(by_place, of_user)}, got {further[0]!r} without a keyword. Its keywords: {has}"
        )
    for key in kwargs:
        if key not in of_user and inspect.Parameter.VAR_KEYWORD not in kinds:
            why = f": {reasons[key]}" if key in reasons else did_you_mean(key, of_user)
            raise GpuConstructsError(f"{key} is not a {kind} of {name}{why}")
        if key in placed:
            raise GpuConstructsError(f"{key} is given twice to {name}. Pass it once")
    missing = _missing_argument(of_user, {*placed, *kwargs})
    raise GpuConstructsError(f"{missing} is required by {name}. Pass {missing}=...")


def _taken(by_place: Sequence[str], of_user: Collection[str]) -> str:
    allowed = ", ".join(key for key in by_place if key in of_user)
    return f"only {allowed} without a keyword" if allowed else "only keywords"


def _missing_argument(parameters: Mapping[str, inspect.Parameter], given: Collection[str]) -> str:
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    required = (key for key, one in parameters.items() if one.default is one.empty and one.kind not in variadic)
    return next(key for key in required if key not in given)


class ValuesError(GpuConstructsError):
    """The error of ``from_helm_values`` that lists all problems of the Helm values.

    Attributes:
        problems: Messages with one problem each, in the order of the keys in the Helm values.
    """

    def __init__(self, problems: Sequence[str], *, path: str = "") -> None:
        """Create the error.

        Args:
            problems: Messages with one problem each, at least one.
            path: Construct path; empty by default.
        """
        self.problems = list(problems)
        listed = [textwrap.indent(wrapped(_cut(problem)), "  ") for problem in self.problems]
        heading = f"{len(listed)} problems in the values"
        super().__init__("\n".join([heading, *listed]) if len(listed) > 1 else _cut(self.problems[0]), path=path)

    def at(self, path: str) -> GpuConstructsError:
        """Return this error with a construct path added. If it already has a path, return it unchanged."""
        return self if self.path else ValuesError(self.problems, path=path)


class SynthesisError(GpuConstructsError):
    """The error of ``synth`` that lists all problems of the user's apps.

    Attributes:
        problems: Messages with one problem each. Each message begins with the path of the construct.
    """

    def __init__(
        self, problems: Sequence[str], *, outcome: str = "nothing was written", details: Sequence[str] = ()
    ) -> None:
        """Create the error.

        Args:
            problems: Messages with one problem each.
            outcome: What happened to the output files, for the heading of the message; ``nothing was written`` by
                default. If empty, the message is only the first problem, without a heading.
            details: Lines that follow the problems, for example on the output files that changed; none by default.
        """
        self.problems = list(problems)
        count = len(self.problems)
        heading = f"{count} problem{'s' if count > 1 else ''} found, {outcome}"
        listed = [textwrap.indent(wrapped(line), "  ") for line in (*self.problems, *details)]
        super().__init__("\n".join([heading, *listed]) if outcome else self.problems[0])


class RenderingError(SynthesisError, RuntimeError):
    """The error of ``app.synth()`` of cdk8s that lists all problems of the user's app.

    Like other errors of cdk8s, this error is a ``RuntimeError``.
    """


class GpuConstructsWarning(UserWarning):
    """The category of warnings about input that works but is probably a mistake."""


STRICT_VARIABLE = "GPU_CONSTRUCTS_STRICT"
_SWITCH = {"": False, "0": False, "false": False, "1": True, "true": True}


def strict_by_environment() -> bool:
    """Check whether the environment variable ``GPU_CONSTRUCTS_STRICT`` turns warnings into errors.

    Raises:
        GpuConstructsError: The value of the variable is not ``1``, ``0``, ``true``, ``false`` or empty.
    """
    given = os.environ.get(STRICT_VARIABLE, "")
    try:
        return _SWITCH[given.strip().lower()]
    except KeyError:
        raise GpuConstructsError(
            f"{STRICT_VARIABLE} must be 1 or 0, got {given!r}. Unset it if warnings must not be errors"
        ) from None


_format_warning, _show_warning = warnings.formatwarning, warnings.showwarning
_shown: list[str] = []


def _one_line(message: Any, category: type[Warning], filename: str, lineno: int, line: str | None = None) -> str:
    """Return the text of a warning. For a warning of this library, the text contains no source code of the user."""
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
    """Return the warnings of this library that Python printed since the last call of this function.

    The result does not contain warnings that a filter ignores.
    """
    shown = list(dict.fromkeys(_shown))
    _shown.clear()
    return shown


_kept_in: list[list[str]] = []


@contextmanager
def warnings_kept_in(kept: list[str]) -> Iterator[None]:
    """Add the messages of all ``warn`` calls in the ``with`` block to the list ``kept``.

    The list also contains warnings that Python does not print, for example because of a warning filter.
    """
    _kept_in.append(kept)
    try:
        yield
    finally:
        _kept_in.pop()


def is_ignored(message: str) -> bool:
    """Check whether the warning filters of the user ignore a warning with the given message."""
    try:
        with warnings.catch_warnings(record=True) as heard:
            warn(message)
    except GpuConstructsWarning:
        return False
    return not heard


_NOT_THE_USERS = ("cdk8s", "constructs", "gpu_constructs", "jsii")


def warn(message: str) -> None:
    """Issue a ``GpuConstructsWarning`` that shows the line of user code that calls this library."""
    _, level = _users_frame()
    # A message of one line stays one line, so that filters match it. A message of several lines gets no long lines.
    shown = _cut(wrapped(message) if "\n" in message else message)
    warnings.warn(shown, GpuConstructsWarning, stacklevel=level)
    if _kept_in:
        _kept_in[-1].append(shown)


def users_line() -> str:
    """Return the filename and line number of the user code that calls this library, such as ``app.py:12``."""
    frame, _ = _users_frame()
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


def with_users_line(error: BaseException) -> str:
    """Return the message of an error and the line of user code that called this library: ``… (app.py:12)``."""
    line, step = "", error.__traceback__
    while step is not None:
        code = step.tb_frame
        if code.f_globals.get("__name__", "").partition(".")[0] not in _NOT_THE_USERS:
            line = f" ({os.path.basename(code.f_code.co_filename)}:{step.tb_lineno})"
        step = step.tb_next
    return f"{error}{line}"


def _users_frame() -> tuple[FrameType, int]:
    frame, level = sys._getframe(2), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _NOT_THE_USERS:
        frame, level = frame.f_back, level + 1
    return frame, level

"""Collection of the problems in Helm values, so that the library reports all problems in one error."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import yaml

from gpu_constructs.catalog.platforms import DEFAULT_PLATFORM, Platform
from gpu_constructs.catalog.versions import Unverified
from gpu_constructs.errors import GpuConstructsError, ValuesError, warn
from gpu_constructs.kube import fields
from gpu_constructs.kube.plain_data import below, shown

WAY_OUT = "Pass strict=False to drop it"


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML loader that reads dates as text, like Helm."""

    yaml_implicit_resolvers: ClassVar[Any] = {
        first: [one for one in resolvers if not one[0].endswith(":timestamp")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


class ValuesFile(dict[str, Any]):
    """The content of a Helm values file, with line numbers for messages.

    Attributes:
        lines: Line number of each key and each list item in the values file, by dotted path such as ``env[0].name``.
    """

    lines: Mapping[str, int]

    @classmethod
    def read(cls, path: str | Path) -> ValuesFile:
        """Return the Helm values in a values file. The file can be empty.

        Raises:
            GpuConstructsError: The values file does not exist, is not YAML, or does not contain a mapping.
        """
        try:
            # The first line of `helm get values` is a heading.
            text = Path(path).read_text(encoding="utf-8").replace("USER-SUPPLIED VALUES:\n", "#\n", 1)
            nodes = list(yaml.compose_all(text, Loader=_Loader))
            values = _Loader("").construct_document(nodes[0]) if nodes else None
            lines = dict(_lines("", nodes[0])) if nodes else {}
        except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
            problem = " ".join(str(error).split())
            raise GpuConstructsError(f"path must be a values file in YAML, got {str(path)!r}: {problem}") from None
        if not isinstance(values, Mapping | None):
            raise GpuConstructsError(f"path must be a file with a mapping, got {shown(values)} in {str(path)!r}")
        for other in nodes[1:]:
            if not other.tag.endswith(":null"):
                warn(f"line {other.start_mark.line + 1}: the document has no effect: Helm reads only the first one")
        made = cls(values or {})
        made.lines = lines
        return made


def _lines(path: str, node: yaml.Node) -> Iterator[tuple[str, int]]:
    """Yield the dotted path and the line number of each key and each list item in a YAML file.

    Args:
        path: Dotted path of ``node``; empty for the root.
        node: YAML node of the file.
    """
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            place = below(path, key.value) if path else key.value
            yield place, key.start_mark.line + 1
            yield from _lines(place, value)
    elif isinstance(node, yaml.SequenceNode):
        for index, entry in enumerate(node.value):
            yield f"{path}[{index}]", entry.start_mark.line + 1
            yield from _lines(f"{path}[{index}]", entry)


def _places(path: str, value: Any) -> Iterator[str]:
    """Yield the dotted path of each key and each list item, such as ``env[0].name``, in the order of the Helm values.

    Args:
        path: Path of ``value`` in the Helm values; empty for all values.
        value: Helm values or a part of them.
    """
    if isinstance(value, Mapping):
        for key, one in value.items():
            place = below(path, key) if path else str(key)
            yield place
            yield from _places(place, one)
    elif isinstance(value, list | tuple):
        for index, one in enumerate(value):
            yield f"{path}[{index}]"
            yield from _places(f"{path}[{index}]", one)


class Problems:
    """The problems in the Helm values of a user.

    Attributes:
        is_strict: Whether a key with a problem is an error. Otherwise, the library ignores the key and warns.
    """

    def __init__(self, values: object, *, strict: bool, is_first_raised: bool = False) -> None:
        """Create an empty list of problems.

        Args:
            values: Helm values of the user. The error from ``raised`` lists the problems in the order of their keys.
            strict: Whether a key with a problem is an error.
            is_first_raised: Whether ``add`` raises the first problem at once. False by default.
        """
        self.is_strict = strict
        self._lines: Mapping[str, int] = getattr(values, "lines", {})
        self._values = values
        self._is_first_raised = is_first_raised
        self._found: list[tuple[str, str]] = []
        self._section = ""

    def below(self, section: str) -> Problems:
        """Return a copy that removes ``section`` from paths and messages, and adds problems to the same list.

        For example, the library reads values of the Helm chart of NFD as if they were below the key ``nfd`` of a parent
        chart. The user's values do not contain this key, so messages must omit ``nfd.``.
        """
        inner = copy.copy(self)
        inner._section = f"{section}."
        return inner

    def add(self, path: str, problem: str, *, is_droppable: bool = True) -> None:
        """Add a problem of a key to the list.

        Args:
            path: Dotted path of the key.
            problem: Message about the key.
            is_droppable: Whether to add the advice to pass ``strict=False``, with which the library ignores the key.
                True by default.

        Raises:
            GpuConstructsError: The constructor of this object got ``is_first_raised=True``.
        """
        path, problem = path.removeprefix(self._section), self._as_given(problem)
        end = "" if problem.endswith("?") else "."
        message = f"{problem}{end} {WAY_OUT}" if is_droppable else problem
        if self._is_first_raised:
            raise GpuConstructsError(message)
        self._found.append((path, message))

    def refuse(self, path: str, message: str, *, is_ignored: bool = False) -> None:
        """In strict mode, add a problem of a key to the list. Otherwise, warn that the library ignores the key.

        Args:
            path: Dotted path of the key.
            message: Text that begins with the key, such as ``values.hostPID must be a bool``.
            is_ignored: Whether the Helm chart ignores the key too. If True, the method only warns, even in strict mode.
                False by default.
        """
        if self.is_strict and not is_ignored:
            self.add(path, message)
        else:
            key, _, rest = message.partition(" ")
            self.warn(path, f"{key} is dropped: it {rest}")

    def warn(self, path: str, message: str) -> None:
        """Warn about the Helm key ``path``. The message begins with the line number if the values come from a file."""
        warn(f"{self._at(path.removeprefix(self._section))}{self._as_given(message)}")

    def _as_given(self, message: str) -> str:
        """Return a message without the section, which was the argument of ``Problems.below``.

        For example, ``values.nfd.master`` becomes ``values.master`` for the section ``nfd``.
        """
        return message.replace(f"values.{self._section}", "values.").replace(f"'{self._section}", "'")

    @contextmanager
    def raised(self) -> Iterator[None]:
        """Collect the problems that the ``with`` block adds, and raise them as one error when the block ends.

        The error lists the problems in the order of the keys in the Helm values.

        Raises:
            ValuesError: The block adds a problem or raises a ``GpuConstructsError``, which counts as a problem.
        """
        try:
            yield
        except GpuConstructsError as error:
            key = re.match(r"values\.([^\s:]+)", error.problem)
            self._found.append((key[1] if key else "", error.problem))
        if self._found:
            order = {path: number for number, path in enumerate(_places("", self._values))}
            found = sorted(self._found, key=lambda one: order.get(_known(one[0], order), -1))
            raise ValuesError(list(dict.fromkeys(f"{self._at(path)}{message}" for path, message in found)))

    def _at(self, path: str) -> str:
        """Return the start of a message: the line number of a Helm key as text, such as ``"line 3: "``.

        Return an empty text if the Helm values do not come from a values file.
        """
        known = _known(path, self._lines)
        return f"line {self._lines[known]}: " if known else ""


def _known(path: str, paths: Mapping[str, int]) -> str:
    """Return ``path`` if it is a key of ``paths``. Otherwise, return its nearest parent that is a key of ``paths``.

    For example, ``a.b`` is a parent of ``a.b.c`` and of ``a.b[0]``. Return an empty text if no parent is a key.
    """
    around = (one for one in paths if path == one or path.startswith((f"{one}.", f"{one}[")))
    return max(around, key=len, default="")


class Installation(NamedTuple):
    """The arguments of ``from_helm_values`` that describe the Helm release.

    Attributes:
        release_name: Name of the Helm release.
        namespace: Namespace of the Helm release.
        version: Release of the component that the Helm chart installs, such as the device plugin.
        platform: Platform of the cluster.
    """

    release_name: str
    namespace: str
    version: str | Unverified
    platform: Platform = DEFAULT_PLATFORM

    @property
    def behaves_like(self) -> str:
        """The release whose Helm keys apply: ``version``, or ``version.like`` if ``version`` is an ``Unverified``."""
        return self.version.like if isinstance(self.version, Unverified) else self.version

    def check(self) -> None:
        """Raise if an argument has the wrong type, or if ``release_name`` is not valid in Kubernetes."""
        kinds = {"release_name": str, "namespace": str, "version": str | Unverified, "platform": Platform}
        for name, kind in kinds.items():
            fields.of_type(name, getattr(self, name), kind)
        fields.dns_subdomain("release_name", self.release_name)


def reported_at_once(
    options_of: Callable[[Any, Installation, Problems], dict[str, Any]],
) -> Callable[..., dict[str, Any]]:
    """Decorate a function that converts Helm values, so that it raises all problems of the values in one error.

    The decorated function has these parameters: the Helm values, and as keywords ``strict`` and the attributes of
    ``Installation``.

    Args:
        options_of: Function that converts Helm values into keyword arguments. It adds the problems of the values to
            its parameter of the type ``Problems``.
    """

    @wraps(options_of)
    def wrapper(values: Any, *, strict: bool, **given: Any) -> dict[str, Any]:
        fields.of_type("strict", strict, bool)
        problems = Problems(values, strict=strict)
        options: dict[str, Any] = {}
        with problems.raised():
            installation = Installation(**given)
            installation.check()
            options = options_of(values, installation, problems)
        return options

    return wrapper

"""The problems of the values of a chart, which the library reports all at once."""

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
    """Loader that reads dates as text, like Helm."""

    yaml_implicit_resolvers: ClassVar[Any] = {
        first: [one for one in resolvers if not one[0].endswith(":timestamp")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


class ValuesFile(dict[str, Any]):
    """The content of a file with Helm values.

    Attributes:
        lines: Line number of each key and each list entry, by its dotted path.
    """

    lines: Mapping[str, int]

    @classmethod
    def read(cls, path: str | Path) -> ValuesFile:
        """Return the Helm values in a YAML file. The file can be empty.

        Raises:
            GpuConstructsError: The file does not exist, is not YAML, or does not contain a mapping.
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
    """Yield a pair for each key and each list entry in a YAML file: its dotted path and its line number."""
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
    """Yield the path of each key and each list entry of Helm values, such as ``env[0].name``, in their order.

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
    """The problems of the Helm values for one chart.

    Attributes:
        is_strict: Whether a key with a problem is an error; otherwise the library drops it with a warning.
    """

    def __init__(self, values: object, *, strict: bool, is_first_raised: bool = False) -> None:
        """Create an empty list of problems.

        Args:
            values: Helm values of the user. The messages about the problems are in the order of the keys in these
                values.
            strict: Whether a key with a problem is an error.
            is_first_raised: Whether to raise the first problem at once. False by default.
        """
        self.is_strict = strict
        self._lines: Mapping[str, int] = getattr(values, "lines", {})
        self._values = values
        self._is_first_raised = is_first_raised
        self._found: list[tuple[str, str]] = []
        self._section = ""

    def below(self, section: str) -> Problems:
        """Return a copy that adds its problems to the same list, without ``section`` in paths and messages.

        Use it if the library puts the values of the user below the key ``section`` before it reads them.
        """
        inner = copy.copy(self)
        inner._section = f"{section}."
        return inner

    def add(self, path: str, problem: str, *, is_droppable: bool = True) -> None:
        """Add a problem of a key to the list.

        Args:
            path: Dotted path of the key.
            problem: Message about the key.
            is_droppable: Whether the message ends with the advice to pass ``strict=False``, which drops the key. True
                by default.

        Raises:
            GpuConstructsError: The problem, if the list raises the first problem at once.
        """
        path, problem = path.removeprefix(self._section), self._as_given(problem)
        end = "" if problem.endswith("?") else "."
        message = f"{problem}{end} {WAY_OUT}" if is_droppable else problem
        if self._is_first_raised:
            raise GpuConstructsError(message)
        self._found.append((path, message))

    def refuse(self, path: str, message: str, *, is_ignored: bool = False) -> None:
        """Add a problem of a key to the list in strict mode. Otherwise, warn that the library drops the key.

        Args:
            path: Dotted path of the key.
            message: Message about the key, which begins with the key.
            is_ignored: Whether the chart ignores the key too. Then the library drops it in both modes. False by
                default.
        """
        if self.is_strict and not is_ignored:
            self.add(path, message)
        else:
            key, _, rest = message.partition(" ")
            self.warn(path, f"{key} is dropped: it {rest}")

    def warn(self, path: str, message: str) -> None:
        """Warn about a key of the Helm values."""
        warn(f"{self._at(path.removeprefix(self._section))}{self._as_given(message)}")

    def _as_given(self, message: str) -> str:
        """Return a message whose keys do not begin with the section that the method ``below`` sets.

        For example, ``'nfd.master'`` becomes ``'master'`` for the section ``nfd``.
        """
        return message.replace(f"values.{self._section}", "values.").replace(f"'{self._section}", "'")

    @contextmanager
    def raised(self) -> Iterator[None]:
        """Collect the problems that the ``with`` block adds, and raise them as one error when the block ends.

        The error lists the problems in the order of the keys in the Helm values.

        Raises:
            ValuesError: The block adds a problem or raises an error.
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
        """Return the start of a message about a Helm key: ``line <number>:`` and a space, with the line of the key.

        Return an empty text if the values do not come from a file.
        """
        known = _known(path, self._lines)
        return f"line {self._lines[known]}: " if known else ""


def _known(path: str, paths: Mapping[str, int]) -> str:
    """Return ``path`` if it is in ``paths``. Otherwise, return the longest of ``paths`` that is a parent of ``path``.

    For example, ``a.b`` is a parent of ``a.b.c`` and of ``a.b[0]``. Return an empty text if there is no parent.
    """
    around = (one for one in paths if path == one or path.startswith((f"{one}.", f"{one}[")))
    return max(around, key=len, default="")


class Installation(NamedTuple):
    """The arguments of ``from_helm_values`` that describe the Helm release.

    Attributes:
        release_name: Name of the Helm release.
        namespace: Namespace of the Helm release.
        version: Release of the program that the chart installs.
        platform: Platform of the cluster.
    """

    release_name: str
    namespace: str
    version: str | Unverified
    platform: Platform = DEFAULT_PLATFORM

    @property
    def behaves_like(self) -> str:
        """Supported release whose Helm chart reads the values in the same way as the chart of ``version``."""
        return self.version.like if isinstance(self.version, Unverified) else self.version

    def check(self) -> None:
        """Raise if an argument has the wrong type, or if the name is not possible in Kubernetes."""
        kinds = {"release_name": str, "namespace": str, "version": str | Unverified, "platform": Platform}
        for name, kind in kinds.items():
            fields.of_type(name, getattr(self, name), kind)
        fields.dns_subdomain("release_name", self.release_name)


def reported_at_once(
    options_of: Callable[[Any, Installation, Problems], dict[str, Any]],
) -> Callable[..., dict[str, Any]]:
    """Return a function that calls ``options_of`` with Helm values, and raises all problems of the values at once.

    The returned function has the additional parameter ``strict``.

    Args:
        options_of: Function that converts Helm values. It adds their problems to its parameter ``problems``.
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

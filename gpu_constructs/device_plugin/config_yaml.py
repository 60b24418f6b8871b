"""The YAML that the plugin's reader reads, which is neither YAML 1.1 nor 1.2 nor what PyYAML makes of either.

Where readers differ, text is refused rather than read in one of the ways.

Source: NVIDIA/k8s-device-plugin@v0.20.0:vendor/go.yaml.in/yaml/v2 (resolve.go, scannerc.go)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar

import yaml

from gpu_constructs.errors import GpuConstructsError

_DEEPEST = 16
_INDENT = re.compile(r"^[ \t]+(?=[^\s#])", re.MULTILINE)
_DIRECTIVE = re.compile(r"^%", re.MULTILINE)
_GLUED_COLON = re.compile(r":[,\[\]{}]")
_ESCAPED_SLASH = re.compile(r"(?<!\\)(?:\\\\)*\\/")


class _Loader(yaml.SafeLoader):
    """Takes a plain scalar for what the plugin's reader takes it for: ``y`` is true, 1:30 and dates are text."""

    bool_values: ClassVar[dict[str, bool]] = {**yaml.SafeLoader.bool_values, "y": True, "n": False}


_Loader.yaml_implicit_resolvers = {}
for _kind, _pattern, _first in (
    ("bool", r"[yYnN]|yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF", "yYnNtTfFoO"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("int", r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0o?[0-7_]+|0|[1-9][0-9_]*)", "-+0123456789"),
    (
        "float",
        r"[-+]?(?:\.[0-9]+|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        "-+.0123456789",
    ),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_kind}", re.compile(rf"(?:{_pattern})\Z"), list(_first))


def compose(text: str) -> yaml.Node | None:
    """Give the text's one document; None for a text without any.

    Raises:
        GpuConstructsError: The text is no YAML, or the plugin would read it otherwise than it looks.
    """
    before, brace, json = text.partition("{")
    if brace and not before.strip():  # JSON may be indented with tabs, YAML may not.
        text = before + brace + _INDENT.sub(lambda indent: " " * len(indent[0]), json)
    try:
        for line, problem in _problems(text):
            raise GpuConstructsError(f"line {line}: text must {problem}")
        return yaml.compose(text, Loader=_Loader)
    except yaml.YAMLError as error:
        raise _no_yaml(text, error) from None


def scalar(node: yaml.ScalarNode) -> Any:
    """Give what a scalar means.

    Raises:
        ValueError: A number that cannot be read.
    """
    return _Loader("").construct_object(node)


def _problems(text: str) -> Iterator[tuple[int, str]]:
    directive = _DIRECTIVE.search(text)
    if directive:
        yield _line(text, directive.start()), "have no directives, the plugin refuses most; delete the line"
    documents, open_anchors = 0, []
    for event in yaml.parse(text, Loader=_Loader):
        start, end = event.start_mark.index, event.end_mark.index  # type: ignore[union-attr]
        line = event.start_mark.line + 1  # type: ignore[union-attr]
        documents += isinstance(event, yaml.DocumentStartEvent)
        if documents > 1:
            yield line, "be one document: the plugin would read the first alone; delete the others"
        tag = getattr(event, "tag", None)
        if tag is not None:
            yield line, f"have no tags; got {tag!r}; write the value alone"
        if isinstance(event, yaml.CollectionStartEvent):
            open_anchors.append(event.anchor)
        elif isinstance(event, yaml.CollectionEndEvent):
            open_anchors.pop()
        elif isinstance(event, yaml.AliasEvent) and event.anchor in open_anchors:
            yield line, f"not hold itself; got *{event.anchor}"
        elif isinstance(event, yaml.ScalarEvent):
            if event.implicit[0] and _GLUED_COLON.match(text, end):
                yield line, f"have a space after each colon; got {text[start : end + 2]!r}"
            if event.style == '"' and _ESCAPED_SLASH.search(text, start, end):
                yield line, r"not escape '/', which the plugin cannot read; got '\/'"
        if len(open_anchors) > _DEEPEST:
            yield line, "not be nested deeper than any key of the file"


def _no_yaml(text: str, error: yaml.YAMLError) -> GpuConstructsError:
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        problem = ", ".join(part for part in (error.context, error.problem) if part)
    else:
        line, problem = _line(text, getattr(error, "position", 0)), str(error).partition("\n")[0]
    way_out = "; use spaces" if "'\\t'" in problem else ""
    return GpuConstructsError(f"line {line}: text is no YAML: {problem}{way_out}")


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1

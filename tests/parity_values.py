"""What of a chart's render is made of a value that this library drops with a warning."""

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from gpu_constructs.cli.compare.fields import Path
from parity_cases import UnreadableCase, facts, load

SETTINGS_OF_VALUES: Mapping[str, Path] = {
    key: tuple(path.split(".")) for key, path in facts("settings of values").items()
}
"""The settings of the programs that values become variables for."""

_REPOSITORIES = ("nvcr.io/nvidia/k8s-device-plugin", "registry.k8s.io/nfd/node-feature-discovery", "")


def follows(chart: Any, last: str, given: Any) -> bool:
    """Whether a value of the chart, or the key it stands under, is made of what was given."""
    words = set(_words(given))
    key, text = last.strip("[]"), _text(chart)
    if key == "image":
        repository, _, tag = text.rpartition(":")
        return (repository in words and (tag in words or re.match(r"v[0-9]", tag) is not None)) or (
            repository in _REPOSITORIES and tag in words
        )
    if chart is True and key.startswith("{"):
        return set(_words(load(key))) <= words | {"operator", "Equal"}
    return (
        text in words
        or (chart is True and key in words)
        or (f"{key}={text}" in words or (text == "" and key in words))
        or set(re.split("[=,]", text)) <= words
        or any(text.endswith(f":{word}") or text.startswith(f"{word}:") for word in words)
        or _is_yaml_of(text, given)
        or any(_is_yaml_of(word, chart) for word in words)
    )


def _is_yaml_of(text: str, given: Any) -> bool:
    try:
        return bool(load(text) == given)
    except UnreadableCase:
        return False


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _words(given: Any) -> Iterator[str]:
    if isinstance(given, Mapping):
        for key, value in given.items():
            yield str(key)
            yield from _words(value)
    elif isinstance(given, list | tuple):
        for value in given:
            yield from _words(value)
    elif isinstance(given, int | float) and not isinstance(given, bool):
        yield str(given)
        # Go writes the numbers of a values file as floating point.
        mantissa, _, exponent = f"{Decimal(str(given)).normalize():e}".partition("e")
        yield f"{mantissa}e{int(exponent):+03}"
    elif given is not None:
        yield _text(given)

"""Builds the markup of reports element by element, so that no name can become markup."""

from __future__ import annotations

from xml.etree import ElementTree

from gpu_constructs.capacity.report.words import readable


def element(tag: str, text: str = "", /, **attributes: object) -> ElementTree.Element:
    """Make an element; a trailing underscore of an attribute's name goes, any other one is a hyphen."""
    made = ElementTree.Element(tag, _attributes(attributes))
    if text:
        made.text = readable(text)
    return made


def add(parent: ElementTree.Element, tag: str, text: str = "", /, **attributes: object) -> ElementTree.Element:
    """Make an element as the last one of another."""
    made = element(tag, text, **attributes)
    parent.append(made)
    return made


def _attributes(given: dict[str, object]) -> dict[str, str]:
    return {
        name if name == "viewBox" else name.rstrip("_").replace("_", "-"): readable(str(value))
        for name, value in given.items()
        if value is not None
    }

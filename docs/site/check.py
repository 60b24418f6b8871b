"""What holds for the built site: every link leads somewhere, every page is reachable, and nothing needs a network.

``python docs/site/check.py FOLDER`` prints what is wrong and fails if anything is.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

LOADED = {"script": "src", "link": "href", "img": "src", "iframe": "src"}
"""Attributes by which a page loads a file without a click."""


class Page(HTMLParser):
    """A page of the site: its anchors, its links and what it loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors = {"", "__top"}
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what one element adds."""
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.add(given["href"])
        elif given.get(LOADED.get(tag, "")) and given.get("rel") not in ("prev", "next", "canonical"):
            self.loaded.add(given[LOADED[tag]])


def problems(site: Path) -> Iterator[str]:
    """Return one line for each problem of a built site."""
    pages = {path: Page(path) for path in sorted(site.resolve().rglob("*.html")) if path.name != "404.html"}
    reached: set[Path] = set()
    for path, page in pages.items():
        name = path.relative_to(site.resolve())
        for target in sorted(page.links | page.loaded):
            if ":" in target or target.startswith("//"):
                if target in page.loaded and not target.startswith("data:"):
                    yield f"{name} loads {target}"
                continue
            file, anchor = urldefrag(unquote(target))
            to = (path.parent / file).resolve() if file else path
            to = to / "index.html" if to.is_dir() else to
            reached |= {to} if to != path else set()
            if not to.is_file():
                yield f"{name} links to {target}, which does not exist"
            elif to in pages and anchor not in pages[to].anchors:
                yield f"{name} links to {target}, which has no such anchor"
    for path in pages.keys() - reached:
        yield f"no page links to {path.relative_to(site.resolve())}"


if __name__ == "__main__":
    found = list(problems(Path(sys.argv[1])))
    print(*found, sep="\n", end="\n" * bool(found))
    sys.exit(bool(found))

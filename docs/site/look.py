"""What a browser shows of the built site: it needs no network, its search works, and its diagrams are drawn.

``PYTHONPATH=tests python docs/site/look.py SITE`` fails if that is not true. With a second folder, it also writes the
pictures of the site into that folder.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from chromium import Chromium, chromium

PAGES = {"index.html": "light", "reference/recipes.html": "dark", "repository/ARCHITECTURE.html": "dark"}
PICTURES = {"site-start.png": "index.html", "site-reference.png": "reference/recipes.html"}

_UNTIL = "new Promise(done => {{ const look = () => {0} ? done(true) : setTimeout(look, 50); look() }})"
"""A script that ends once a condition is true. The browser has its own limit of time."""

_SEARCH = """
document.querySelector("[data-md-toggle=search]").click()
const field = document.querySelector(".md-search__input")
field.focus()
field.value = "time-slicing"
field.dispatchEvent(new Event("keyup", {bubbles: true}))
field.dispatchEvent(new Event("input", {bubbles: true}))
"""


def show(browser: Chromium, file: Path, scheme: str) -> None:
    """Open a page, and check that it loads nothing from a network and that the browser reports no problem."""
    browser.open(file, scheme=scheme)
    browser.show(height=800, scheme=scheme)
    browser.run(_UNTIL.format("document.readyState === 'complete'"))
    assert [url for url in browser.requests if not url.startswith(("file:", "data:"))] == []
    assert browser.complaints == []


def look(browser: Chromium, site: Path, pictures: Path | None) -> None:
    """Look at each page of the tables."""
    for page, scheme in PAGES.items():
        show(browser, site / page, scheme)
        palette = browser.run("document.body.dataset.mdColorScheme")
        assert palette == {"light": "default", "dark": "slate"}[scheme], page
        for name in (name for name, of in PICTURES.items() if pictures and of == page):
            (pictures / name).write_bytes(browser.picture())
    assert browser.run(_UNTIL.format("document.querySelector('div.mermaid')"))
    browser.run(_SEARCH)
    assert browser.run(_UNTIL.format("document.querySelector('.md-search-result__item a[href*=sharing]')"))


if __name__ == "__main__":
    folders = [Path(folder).resolve() for folder in sys.argv[1:]]
    # A process of the browser can write into its profile while Python removes it.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile, chromium(Path(profile)) as browser:
        look(browser, folders[0], folders[1] if folders[1:] else None)

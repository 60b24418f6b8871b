"""The paragraphs of the documents that ``gpu-constructs explain`` prints: python -m tests.explanations writes them."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))

import documents
from dist import ROOT

DOCS = ROOT / "docs"
TARGET = ROOT / "gpu_constructs" / "cli" / "explain" / "explanations.json"
Entry = tuple[str, list[str]]


def anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def sections(page: str) -> Iterator[tuple[str, str]]:
    """The headings of the second level, with the text below each."""
    for part in re.split(r"^## ", (DOCS / page).read_text(encoding="utf-8"), flags=re.M)[1:]:
        heading, _, text = part.partition("\n")
        yield heading, text.strip()


def rules() -> Iterator[Entry]:
    for code, severity, title, reason, fix in documents.table(DOCS / "rules.md", "code"):
        yield code, ["rules", f"{title} ({severity})", f"{reason}\n\n**Fix.** {fix}", "docs/rules.md#the-rules"]


def deviations() -> Iterator[Entry]:
    heading = ""
    for line in (DOCS / "coming-from-helm.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ")
        elif re.match(r"\| [DEN]\d+ \|", line):
            number, what, why = (cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|")))
            link = f"docs/coming-from-helm.md#{anchor(heading)}"
            yield number, ["deviations from the Helm charts", what, f"**Why.** {why}.", link]


def alerts() -> Iterator[Entry]:
    page = DOCS / "runbook.md"
    names = {name: (severity, waits) for name, severity, waits in documents.table(page, "alert")}
    for heading, text in sections("runbook.md"):
        if (row := names.get(f"[{heading}](#{anchor(heading)})")) is not None:
            yield heading, ["alerts", f"Alert, {row[0]}, after {row[1]}", text, f"docs/runbook.md#{anchor(heading)}"]


def names() -> Iterator[Entry]:
    link = "docs/command-explain.md#resource-names-and-node-labels"
    for name, meaning, by in documents.table(DOCS / "command-explain.md", "name"):
        yield name.strip("`"), ["resource names and node labels", "", f"{meaning}\n\n**Set by.** {by}", link]


def terms() -> Iterator[Entry]:
    for heading, text in sections("glossary.md"):
        yield heading, ["terms", "", text, f"docs/glossary.md#{anchor(heading)}"]


def written() -> str:
    """The data file, an entry a line, so that its diffs show what changed."""
    entries = [*rules(), *deviations(), *alerts(), *names(), *terms()]
    assert len(entries) == len(dict(entries))
    lines = (f"  {json.dumps(key)}: {json.dumps(row, ensure_ascii=False)}" for key, row in entries)
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    TARGET.write_text(written(), encoding="utf-8")

"""The kubectl commands of the documents: those that run here, and why the others do not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import dist
import documents

PAGES = (
    documents.EXAMPLE_CLUSTERS,
    *(dist.ROOT / "docs" / f"{name}.md" for name in ("troubleshooting", "runbook", "power", "talos-gpu-node")),
    *(dist.ROOT / "docs" / f"{name}.md" for name in ("cuda-smoke-test", "dcgm-exporter", "nvidia-gpu-exporter")),
)
# What a stand-in for a kubelet does not have.
NEEDS_A_CONTAINER = {"attach", "debug", "exec", "logs", "port-forward", "run"}
# Inline code that is not for one of the clusters of dist/.
NOT_FOR_A_CLUSTER = {
    "kubectl delete -f dist/<cluster>/": "run for each cluster by test_deletion_leaves_nothing",
    "kubectl get node … --show-labels": "the beginning of a command that stands above it",
    "kubectl label": "the name of a command",
    "kubectl drain --ignore-daemonsets --delete-emptydir-data": "flags of a drain, run on the page of the runbook",
}

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
_INLINE = re.compile(r"`(kubectl [^`]+)`")
# The first rule that fits says on which of the clusters a command is run.
_CLUSTERS = (
    (
        r"dist/talos-gpu-operator|helmre|clusterpolic|validation-bridge|operator-validator|device-plugin-daemonset",
        "talos-gpu-operator",
    ),
    (r"gpu-device-plugin|gpu-monitoring|dist/talos-rtx3090", "talos-rtx3090"),
    (r"-n nvidia-device-plugin|-n training|dist/kubernetes-basic", "kubernetes-basic"),
    (r"", "talos-rtx5070ti"),
)


class Line(NamedTuple):
    """A line of a document that calls kubectl, and the heading above it."""

    page: Path
    number: int
    section: str
    text: str

    @property
    def where(self) -> str:
        """Page and line number."""
        return f"{self.page.stem}:{self.number}"

    @property
    def verb(self) -> str:
        """What the first kubectl of the line does."""
        return re.split(r"kubectl\s+", self.text, maxsplit=1)[1].split()[0]

    @property
    def reason(self) -> str | None:
        """Why it does not run here; None if it does."""
        if self.verb in NEEDS_A_CONTAINER:
            return "needs a container that runs"
        if " -f dist-" in self.text:
            return "the folder of an app of the page, of which the constructs have tests of their own"
        return NOT_FOR_A_CLUSTER.get(self.text)

    @property
    def cluster(self) -> str:
        """The cluster of dist/ that it is about."""
        by_rule = next(name for pattern, name in _CLUSTERS if re.search(pattern, self.text))
        name = self.section if self.section in dist.CLUSTERS else by_rule
        # The very object: pytest keeps a fixture as long as its parameter is the same one.
        return dist.CLUSTERS[dist.CLUSTERS.index(name)]


def lines(page: Path) -> list[Line]:
    """Return every line of a page's shell blocks that calls kubectl, and every such command in its prose."""
    return sorted((*_in_blocks(page), *_in_prose(page)), key=lambda line: line.number)


def _in_blocks(page: Path) -> Iterator[Line]:
    text = page.read_text(encoding="utf-8")
    for block in _FENCE.finditer(text):
        first = text.count("\n", 0, block.start(2)) + 1
        for number, line in enumerate(block[2].splitlines(), first):
            if block[1] == "bash" and re.search(r"(^|\()kubectl ", line):
                yield Line(page, number, _section(text[: block.start()]), line)


def _in_prose(page: Path) -> Iterator[Line]:
    # Without the blocks, and with the same line numbers.
    text = _FENCE.sub(lambda block: "\n" * block[0].count("\n"), page.read_text(encoding="utf-8"))
    for found in _INLINE.finditer(text):
        before = text[: found.start()]
        yield Line(page, before.count("\n") + 1, _section(before), " ".join(found[1].split()))


def _section(text: str) -> str:
    return re.findall(r"^#+ (.*)$", text, re.M)[-1]

"""What the commands conclude from plain manifests about device plugins, labels and runtime classes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from gpu_constructs.checks.cluster_checks import check
from gpu_constructs.cli.documents import read
from gpu_constructs.cli.seen import provided_by
from gpu_constructs.facts.provided import Provided
from tests.tables import cases

REPOSITORY = Path(__file__).parents[2]
CLUSTERS = sorted(
    path
    for pattern in ("dist/*", "examples/*/dist", "examples/*/dist/*")
    for path in REPOSITORY.glob(pattern)
    if any(path.glob("*.k8s.yaml")) and path.name != "needs-crds"
)
DECLARED_IN_THE_APP = {
    # The app sets ignore=["R07"].
    "dist/talos-gpu-operator": ("comfyui R07", "ollama R07"),
    # External and the inventory declare a Secret and a node label.
    "examples/04-company-cluster/dist": ("llm None",),
    "examples/08-plain-yaml/dist": ("chat R12", "device-plugin R12"),
}


def shown(provided: Provided) -> dict[str, Any]:
    """Return a declaration in the form of the table."""
    offers: object = [
        [one.config, one.is_default, one.sharing.strategy, dict(one.sharing.resources), one.mig_strategy]
        for one in provided.gpu_offers
    ]
    if provided.gpu_resources and not offers:
        offers = "unknown"
    found = {
        "components": list(provided.components),
        "offers": offers,
        "classes": list(provided.runtime_classes),
        "namespaces": list(provided.namespaces),
        "cdi": provided.gpu_runtime == "cdi",
    }
    return {key: value for key, value in found.items() if value or key == "components"}


@cases
def test_programs_are_seen_in_plain_manifests(
    manifests: Sequence[dict[str, Any]], provided: object, publishes: list[str] | None, withholds: list[str] | None
) -> None:
    found = provided_by(manifests)
    assert [shown(one) for one in found] == provided
    published = {label for label in (*(publishes or ()), *(withholds or ())) if any(p.publishes(label) for p in found)}
    assert published == set(publishes or ())


@pytest.mark.parametrize("folder", CLUSTERS, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_the_checks_find_nothing_in_what_this_library_writes(folder: Path) -> None:
    objects = read([str(folder)]).objects
    manifests = [dict(one.manifest) for one in objects]
    found = check(manifests, provided_by(manifests))
    names = [f"{manifests[one.subject]['metadata']['name']} {one.code}" for one in found if one.subject is not None]
    assert names == list(DECLARED_IN_THE_APP.get(str(folder.relative_to(REPOSITORY)), ()))
    assert len(names) == len(found)

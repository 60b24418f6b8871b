"""What a namespace says of GPUs: R18."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gpu_constructs.rules.facts import Facts, limits_of
from gpu_constructs.rules.finding import Finding

_COUNTED = "requests."
_NEVER_COUNTED = ("limits.nvidia.com/", "nvidia.com/")


def _is_gpu(facts: Facts, resource: str) -> bool:
    return resource.startswith("nvidia.com/") or facts.is_gpu(resource)


def _defaults(limit: Mapping[str, Any]) -> Mapping[str, Any]:
    return limit.get("default") or {}


def namespaces_give_no_gpus_away(facts: Facts) -> Iterator[Finding]:
    """R18: a default for GPUs holds for every container, and a quota counts requests only."""
    for index, manifest in facts.of_kind(("", "LimitRange")):
        for one in limits_of(manifest):
            for key in ("default", "defaultRequest"):
                for resource, amount in (one.get(key) or {}).items():
                    if _is_gpu(facts, resource) and str(amount) != "0":
                        yield Finding(
                            index,
                            f"{key}[{resource!r}] gives a GPU to every container of the namespace that asks for none; "
                            "write 0, and bound what is asked for with max",
                        )
            for resource in one.get("max") or {}:
                # Kubernetes takes max for default where that is not given (SetDefaults_LimitRangeItem).
                if _is_gpu(facts, resource) and one.get("type") == "Container" and resource not in _defaults(one):
                    yield Finding(
                        index,
                        f"max[{resource!r}] without a default is the default too, and gives a GPU to every container "
                        f"of the namespace that asks for none; add default[{resource!r}] = 0 beside it",
                    )
    for index, manifest in facts.of_kind(("", "ResourceQuota")):
        for key in (manifest.get("spec") or {}).get("hard") or {}:
            if key.startswith(_NEVER_COUNTED) or facts.is_gpu(key.removeprefix("limits.")):
                resource = key.removeprefix("limits.")
                yield Finding(
                    index,
                    f"hard[{key!r}] is taken and never counted: of an extended resource a quota counts requests only; "
                    f"write {_COUNTED + resource!r}",
                )

"""Functions that select the clusters of one run: all, some by name, or one shard."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.fleet.cluster import Cluster
from gpu_constructs.kube import fields

_SHARD = fields.regex(r"([0-9]{1,5})/([0-9]{1,5})\Z")


def selected(clusters: Sequence[Cluster], only: Sequence[str], shard: str | None) -> list[Cluster]:
    """Return the clusters that one run synthesizes, in the order of ``clusters``.

    Args:
        clusters: All clusters of the fleet.
        only: Names of clusters, or patterns such as ``eu-*``. If it is empty, the function selects all clusters.
        shard: Shard of the clusters, such as ``3/10`` for the third of ten. None selects all shards.

    Raises:
        GpuConstructsError: A name or a pattern matches no cluster, or the shard is invalid.
    """
    names = [cluster.name for cluster in clusters]
    for pattern in only:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise GpuConstructsError(
                f"only must be names or patterns of clusters of the fleet, got {pattern!r}"
                f"{fields.did_you_mean(pattern, names)}"
            )
    number, count = _shard(shard)
    return [
        cluster
        for cluster in clusters
        if (not only or any(fnmatchcase(cluster.name, pattern) for pattern in only))
        and _place(cluster.name) % count == number - 1
    ]


def _shard(shard: str | None) -> tuple[int, int]:
    """Return the number of a shard and the number of all shards: ``(3, 10)`` for ``3/10``, ``(1, 1)`` for None."""
    if shard is None:
        return 1, 1
    fields.of_type("shard", shard, str)
    match = _SHARD.match(shard)
    number, count = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= number <= count:
        raise GpuConstructsError(
            f"shard must be the number of a shard and the number of all shards, such as '3/10', got {shard!r}"
        )
    return number, count


def _place(name: str) -> int:
    """Return a number that depends only on the name of a cluster, and decides in which shard the cluster is.

    So a cluster stays in its shard if the user adds other clusters to the fleet.
    """
    import hashlib

    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8])

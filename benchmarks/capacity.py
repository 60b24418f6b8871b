"""Seconds and memory of a capacity plan of a fleet: 1,000 nodes and 5,000 consumers, on one core.

``uv run python benchmarks/capacity.py`` prints each case with the numbers to hold, and ends with status 1 beyond them.
"""

from __future__ import annotations

import random
import resource
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gpu_constructs.capacity.plan import Plan
from gpu_constructs.capacity.planner import plan
from gpu_constructs.catalog.inventory import GpuInventory, GpuNode
from gpu_constructs.catalog.sharing import Sharing
from gpu_constructs.facts.app import Facts

NODES, CONSUMERS, SECONDS, MEBIBYTES = 1_000, 5_000, 10, 500
BOARDS = ("NVIDIA A100-SXM4-40GB", "NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3", "NVIDIA L4")

Case = Callable[[random.Random], tuple[list[Mapping[str, Any]], GpuInventory]]


def deployment(
    number: int, gpus: int, selector: Mapping[str, str], vram: int | None, zones: Sequence[str] = ()
) -> Mapping[str, Any]:
    container = {"name": "c", "image": "a:1", "resources": {"limits": {"nvidia.com/gpu": gpus}}}
    pod: dict[str, Any] = {"nodeSelector": dict(selector), "containers": [container]}
    if zones:
        terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": list(zones)}]}]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        pod["affinity"] = {"nodeAffinity": required}
    said = {} if vram is None else {"annotations": {"gpu-constructs/vram": f"{vram}Mi"}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": f"w{number}", "namespace": f"team-{number % 50}", **said},
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "template": {"spec": pod},
        },
    }


def alike(rng: random.Random) -> tuple[list[Mapping[str, Any]], GpuInventory]:
    """Pools of equal nodes, workloads of a few shapes."""
    nodes = [GpuNode(name=f"pool-{i}", gpu_model=BOARDS[i % 4], gpus=8, count=NODES // 10) for i in range(10)]
    users = [deployment(i, rng.choice((1, 1, 1, 2)), {}, rng.choice((None, 8000))) for i in range(CONSUMERS)]
    return users, GpuInventory(nodes=nodes)


def different(rng: random.Random) -> tuple[list[Mapping[str, Any]], GpuInventory]:
    """Every node with labels of its own, every workload with a selector and a budget of its own."""
    nodes = [
        GpuNode(
            name=f"node-{i}",
            gpu_model=BOARDS[i % 4],
            gpus=8,
            labels={"zone": f"z{i % 20}", "rack": f"r{i % 125}", "disk": f"d{i % 7}"},
            sharing=Sharing.time_slicing(replicas=rng.randint(2, 6), fail_requests_greater_than_one=False),
        )
        for i in range(NODES)
    ]
    users = []
    for i in range(CONSUMERS):
        keys = rng.sample([("zone", 20), ("rack", 125), ("disk", 7)], rng.randint(0, 2))
        selector = {key: f"{key[0]}{rng.randrange(count)}" for key, count in keys}
        if len(selector) == 2 and "rack" in selector:
            selector.pop("rack")
        users.append(deployment(i, rng.randint(1, 8), selector, rng.randint(1000, 70000)))
    return users, GpuInventory(nodes=nodes)


def tight(rng: random.Random) -> tuple[list[Mapping[str, Any]], GpuInventory]:
    """Sizes that nearly fill nodes, so that a place is hard to find: 8 of 16 nodes' GPUs by threes and fives."""
    nodes = [GpuNode(name=f"node-{i}", gpus=16, vram="80Gi", labels={"zone": f"z{i % 10}"}) for i in range(NODES)]
    users = [
        deployment(i, rng.choice((3, 5, 6, 7)), {"zone": f"z{rng.randrange(10)}"} if i % 3 else {}, None)
        for i in range(CONSUMERS - 2_000)
    ]
    users += [deployment(CONSUMERS - i, 1, {}, None) for i in range(2_000)]
    return users, GpuInventory(nodes=nodes)


def pairs(rng: random.Random) -> tuple[list[Mapping[str, Any]], GpuInventory]:
    """Every workload with a budget of its own, and two nodes of all that it may go to."""
    shared = Sharing.time_slicing(replicas=2)
    nodes = [
        GpuNode(name=f"node-{i}", gpu_model=BOARDS[1], gpus=8, sharing=shared, labels={"zone": f"z{i}"})
        for i in range(NODES)
    ]
    users = [
        deployment(i, 1, {}, rng.randint(500, 60000), [f"z{i % NODES}", f"z{(i * 7 + 1) % NODES}"])
        for i in range(CONSUMERS)
    ]
    return users, GpuInventory(nodes=nodes)


def anywhere(rng: random.Random) -> tuple[list[Mapping[str, Any]], GpuInventory]:
    """Every workload with a budget of its own, and every node of a few that will do."""
    shared = Sharing.time_slicing(replicas=8)
    nodes = [GpuNode(name=f"node-{i}", gpu_model=BOARDS[1], gpus=8, sharing=shared) for i in range(50)]
    return [deployment(i, 1, {}, rng.randint(500, 40000)) for i in range(2_000)], GpuInventory(nodes=nodes)


def measured(case: Case) -> tuple[float, Plan]:
    manifests, inventory = case(random.Random(7))
    start = time.process_time()
    made = plan(Facts(manifests, (), inventory), inventory)
    for form in (made.to_text, made.to_json, made.to_svg, made.to_html):
        form("fleet")
    return time.process_time() - start, made


def main() -> int:
    is_held = True
    for case in (alike, different, tight, pairs, anywhere):
        seconds, made = measured(case)
        mebibytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        is_held &= seconds < SECONDS and mebibytes < MEBIBYTES
        print(
            f"{case.__name__:10} {seconds:6.2f} s (at most {SECONDS})  {mebibytes:4} MiB (at most {MEBIBYTES})  "
            f"all fits: {made.all_fits}, memory: {made.vram}, {len(made.problems)} problems",
            flush=True,
        )
    return 0 if is_held else 1


if __name__ == "__main__":
    sys.exit(main())

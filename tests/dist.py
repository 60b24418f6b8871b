"""What lies in dist/: clusters, their files in the order kubectl reads them, and the objects in each."""

import difflib
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import schemas

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
CLUSTERS = ("kubernetes-basic", "talos-gpu-operator", "talos-rtx3090", "talos-rtx5070ti")
NEEDS_CRDS = "needs-crds"
READ_BY_KUBECTL = (".json", ".yaml", ".yml")

Manifest = dict[str, Any]


class External(NamedTuple):
    """A thing that a cluster of dist/ relies on and does not bring."""

    cluster: str
    kind: str
    name: str
    reason: str


EXTERNALS = (
    External("talos-gpu-operator", "RuntimeClass", "nvidia", "the GPU Operator's chart makes it"),
    External("talos-gpu-operator", "node label", "nvidia.com/gpu.present", "the GPU Operator labels nodes with a GPU"),
    External(
        "talos-gpu-operator",
        "node label",
        "extensions.talos.dev/nvidia-open-gpu-kernel-modules-production",
        "Talos labels a node with each of its extensions",
    ),
)


def files(folder: Path) -> dict[Path, list[Any]]:
    """The documents of each file that `kubectl apply -f <folder>/` reads, in its order: by name, no subfolders."""
    paths = sorted(path for path in folder.glob("*") if path.suffix in READ_BY_KUBECTL)
    return {path: schemas.load_yaml(path.read_text(encoding="utf-8")) for path in paths}


@cache
def objects(cluster: str) -> list[Manifest]:
    """Every object of a cluster, those of `needs-crds/` last; read once, so no one may change them."""
    folder = DIST / cluster
    return [m for documents in (*files(folder).values(), *files(folder / NEEDS_CRDS).values()) for m in documents]


def find(cluster: str, kind: str, name: str) -> Manifest:
    """The one object of that kind and name."""
    (found,) = (m for m in objects(cluster) if (m["kind"], m["metadata"]["name"]) == (kind, name))
    return found


def all_texts(folder: Path) -> dict[str, str]:
    """Every file below a folder, by its path from there."""
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def differences(committed: dict[str, str], written: dict[str, str]) -> list[str]:
    """What a reviewer needs to see, file by file."""
    found = []
    for name in sorted(committed.keys() | written.keys()):
        if name not in written:
            found.append(f"dist/{name}: app.py does not write it any more")
        elif name not in committed:
            found.append(f"dist/{name}: app.py writes it, but it is not there")
        else:
            lines = (committed[name].splitlines(keepends=True), written[name].splitlines(keepends=True))
            found.append("".join(difflib.unified_diff(*lines, f"dist/{name}", f"app.py writes {name}")))
    return [difference for difference in found if difference]

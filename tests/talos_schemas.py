"""The machine configuration of ``TalosGpuNode`` beside the schemas of Talos itself.

``python -m tests.talos_schemas DIR`` takes a folder with ``schema-<line>.json`` for each release line (see
``talos_structure``) and ``driver-versions.json``. Each variant of a node must be valid for exactly the lines whose
shape it has, the committed structure must be the reduced schema, and the tables of keys, kinds and drivers must be
those of the releases. It prints a line for each check, and exits with 1 when one fails or cannot be made.
"""

import argparse
import json
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import cdk8s
import yaml
from jsonschema import Draft202012Validator

import gpu_constructs  # noqa: F401  (first: it finds Node.js before jsii looks for it)
import talos_structure
from gpu_constructs.catalog.platforms import Talos
from gpu_constructs.kube.placement import Taint
from gpu_constructs.talos.config_patches import document_kinds, table
from gpu_constructs.talos.gpu_node import TalosGpuNode
from gpu_constructs.talos.installer import driver_version
from gpu_constructs.talos.manifests import is_deletion
from tables import beside

LINES = tuple(talos_structure.SOURCES)
_TAINTS = [Taint(value="present"), Taint(key="dedicated", value="gpu", effect="NoExecute"), Taint(key="bare")]
_EVERYTHING = beside(__file__, "talos_schemas")["everything"]
_DELETED = {"$patch": "delete"}
_PATCHES = beside(__file__, "talos_schemas")["patches"]
# What the Go types beside the schemas have, of the tags in talos_structure.SOURCES: deprecated fields without
# documentation, a kind without a schema, and the names under which two kinds are registered.
_UNPUBLISHED_KEYS = {
    "": {"persist"},
    "machine": {"disks"},
    "machine.install": {"bootloader", "extensions"},
    "cluster": {"allowSchedulingOnMasters"},
}
_LEVELS = {
    "config": "",
    "machine": "machine",
    "install": "machine.install",
    "kernel": "machine.kernel",
    "kubelet": "machine.kubelet",
    "cluster": "cluster",
}
_UNPUBLISHED_KINDS = {"ImageVerificationConfig"}
_MISNAMED_KINDS = {
    "KubeSpanEndpoints": "KubeSpanEndpointsConfig",
    "UnattendedInstall": "UnattendedInstallConfig",
}
VARIANTS: Mapping[str, Callable[[Talos], dict[str, Any]]] = {
    "bare": lambda _: {},
    "everything": lambda _: _EVERYTHING,
    "control plane": lambda _: {**_EVERYTHING, "role": "controlplane"},
    "gdrdrv": lambda platform: {"gdrdrv": platform.has_gdrdrv},
    "patched": lambda platform: {"taints": _TAINTS, "config_patches": _PATCHES[platform.machine_config]},
}


def written(platform: Talos, variant: str) -> list[dict[str, Any]]:
    """Return the documents of a variant as they are read from the files it writes, without the schematic."""
    node = TalosGpuNode(cdk8s.App(), "gpu", platform=platform, **VARIANTS[variant](platform))
    return [document for file in node.side_files()[:-1] for document in yaml.safe_load_all(file.text)]


def platforms() -> list[Talos]:
    """Return each line, and a patch release of it."""
    return [Talos(version) for line in LINES for version in (line, f"{line}.1")]


def claimed(platform: Talos) -> set[str]:
    """Return the lines whose shape a platform's configuration has."""
    return {line for line in LINES if Talos(line).machine_config == platform.machine_config}


def _set_by(value: Any) -> Any:
    """Return what a patch sets, without what it deletes."""
    if isinstance(value, Mapping):
        return {key: _set_by(inner) for key, inner in value.items() if not is_deletion(inner)}
    return [_set_by(inner) for inner in value if not is_deletion(inner)] if isinstance(value, list) else value


def against(structures: Mapping[str, Mapping[str, Any]], platform: Talos, variant: str) -> Iterator[str]:
    """Return where a variant is invalid for a line it is for, or valid for another."""
    documents = [_set_by(document) for document in written(platform, variant)]
    for line in LINES:
        found = [problem for document in documents for problem in talos_structure.problems(structures[line], document)]
        if line in claimed(platform):
            yield from (f"invalid for {line}: {problem}" for problem in found)
        elif not found:
            yield f"valid for {line} too, whose shape it does not have"


def wrong_keys(structures: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Return which keys our checks of the user's patches refuse or take though the releases do not."""
    structs, moved = table()["structs"], table()["moved"]
    for line, kinds in structures.items():
        for kind in structs.keys() & kinds.keys():
            yield from _differing(f"{line} {kind}", structs[kind], kinds[kind].get("properties", ()))
    for shape in ("v1alpha1", "multi-document"):
        configs = [structures[line][talos_structure.CONFIG] for line in LINES if Talos(line).machine_config == shape]
        for struct, place in _LEVELS.items():
            known = {key for config in configs for key in _level(config, place)}
            gone = moved.get(place, ()) if shape == "multi-document" else ()
            if known:
                ours = set(structs[struct]).difference(gone, _UNPUBLISHED_KEYS.get(place, ()))
                yield from _differing(f"{shape} {struct}", ours, known)


def _level(config: Mapping[str, Any], place: str) -> Mapping[str, Any]:
    for name in filter(None, place.split(".")):
        config = config.get("properties", {}).get(name, {})
    return config.get("properties", {})


def _differing(where: str, ours: Iterable[str], known: Iterable[str]) -> Iterator[str]:
    yield from (f"{where}: {name} is refused" for name in sorted(set(known) - set(ours)))
    yield from (f"{where}: {name} is taken" for name in sorted(set(ours) - set(known)))


def wrong_kinds(listed: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Return which kinds of documents our table has wrong."""
    for line in LINES:
        known = {_MISNAMED_KINDS.get(kind, kind) for kind in listed[line]}
        ours = {kind for kind in document_kinds(Talos(line)) if kind not in _UNPUBLISHED_KINDS}
        yield from _differing(line, ours, known)


def wrong_drivers(releases: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Return which releases' drivers our table has wrong."""
    of_ours = {
        tag: facts for tag, facts in releases.items() if ".".join(tag[1:].split(".")[:2]) in LINES and "-" not in tag
    }
    if not of_ours:
        yield "no release of ours among them"
    for tag, facts in of_ours.items():
        for branch in ("lts", "production"):
            ours = driver_version(Talos(tag), branch)
            if ours != facts[branch]:
                yield f"{tag} {branch} is {facts[branch]}, not {ours}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the checks and give the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.talos_schemas", description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=Path, metavar="DIR")
    folder = parser.parse_args(arguments).folder
    try:
        schemas = {line: talos_structure.read_schema(folder, line) for line in LINES}
        releases = json.loads((folder / "driver-versions.json").read_text(encoding="utf-8"))
        for schema in schemas.values():
            Draft202012Validator.check_schema(schema)
    except (OSError, ValueError, KeyError) as error:
        print(f"UNREADABLE {error}")
        return 1
    structures = {line: talos_structure.whole(schema) for line, schema in schemas.items()}
    reduced = {line: talos_structure.reduced(schema) for line, schema in schemas.items()}
    checks: dict[str, Callable[[], Iterator[str]]] = {
        f"{platform}, {variant}: valid for {', '.join(sorted(claimed(platform)))} only": (
            lambda platform=platform, variant=variant: against(structures, platform, variant)
        )
        for platform in platforms()
        for variant in VARIANTS
    }
    for line in LINES:
        checks[f"committed structure of {line}"] = lambda line=line: (
            iter(()) if talos_structure.committed().get(line) == reduced[line] else iter(["is not the reduced schema"])
        )
    checks["keys that patches may hold"] = lambda: wrong_keys(reduced)
    checks["kinds of documents"] = lambda: wrong_kinds(
        {line: talos_structure.document_kinds(schema) for line, schema in schemas.items()}
    )
    checks["drivers by release"] = lambda: wrong_drivers(releases)
    failed = sum(not _holds(name, check) for name, check in checks.items())
    print(f"{len(checks)} checks: {len(checks) - failed} hold, {failed} do not")
    return 1 if failed else 0


def _holds(name: str, check: Callable[[], Iterator[str]]) -> bool:
    try:
        problems = list(check())
    except Exception as error:
        traceback.print_exc(file=sys.stdout)
        problems = [f"CRASHED: {type(error).__name__}: {error}"]
    print(f"{'FAILED' if problems else 'ok':6} {name}")
    for problem in problems:
        print(f"       {problem}")
    return not problems


if __name__ == "__main__":
    raise SystemExit(main())

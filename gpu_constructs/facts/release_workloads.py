"""The objects of an app, with the workloads that its Helm releases create."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from gpu_constructs.facts.charts import Workload, row_of, workloads
from gpu_constructs.facts.helm_releases import Release, releases
from gpu_constructs.facts.readable import Manifest, annotations_of, name_of, namespace_of, quantity, readable
from gpu_constructs.kube.plain_data import below
from gpu_constructs.kube.pod_specs import Path
from gpu_constructs.records import dataclass

IsGpu = Callable[[str], bool]
"""Function that checks whether an extended resource, such as ``nvidia.com/gpu``, stands for GPUs or slots of GPUs."""

_DEEPEST = 60
_AMOUNTS = (("limits",), ("requests",))
_WORDS = frozenset({"annotations", "labels", "matchLabels", "nodeSelector"})


@dataclass(frozen=True)
class ReleaseWorkloads:
    """A Helm release that an object of the app creates, with its workloads.

    Attributes:
        index: Index in ``Facts.objects`` of the object that creates the Helm release, such as a HelmRelease of Flux.
        release: Helm release.
        workloads: Workloads of the Helm release, including those that its values disable.
    """

    index: int
    release: Release
    workloads: Sequence[Workload]

    def uncounted(self, is_gpu: IsGpu) -> list[tuple[str, str]]:
        """Return the Helm values that request GPUs for pods that the library cannot count.

        Each result is a pair: the path of the Helm value in the manifest, such as ``spec.values.resources``, and the
        name of the GPU resource.

        Args:
            is_gpu: Function that checks whether an extended resource stands for GPUs.
        """
        row = row_of(self.release)
        if row is not None and not row["workloads"]:
            return []
        named = [
            (path, name)
            for path, name in gpus_named(self.release.values, is_gpu, in_texts=True)
            if not any(one.covers(path) for one in self.workloads)
        ]
        moved = [one for one in self.workloads if one.is_on and one.elsewhere]
        named += [(one.elsewhere or (), name) for one in moved for _, name in gpus_named(one.pod, is_gpu)]
        return [(shown((*self.release.place, *path)), name) for path, name in named]


def with_release_workloads(
    manifests: Sequence[Manifest],
) -> tuple[list[Manifest], list[int], list[ReleaseWorkloads], int]:
    """Return the objects of an app, including the workloads of its Helm releases.

    Returns:
        A tuple of four values:

        - The list of all objects. The workloads of Helm releases come last.
        - For each object, the index in ``manifests`` of the manifest that contains the object or creates its Helm
          release.
        - The Helm releases.
        - The number of objects without the workloads of Helm releases.
    """
    objects, origins = readable(manifests)

    def named(kind: str, namespace: str, name: object) -> Manifest | None:
        same = (one for one in objects if one["kind"] == kind and namespace_of(one) == namespace)
        return next((one for one in same if name_of(one) == name), None)

    found = [
        ReleaseWorkloads(index, release, workloads(release, annotations_of(manifest)))
        for index, manifest in enumerate(objects)
        for release in releases(manifest, named)
    ]
    number = len(objects)
    for one in found:
        made = [each for w in one.workloads if w.is_counted for each in (w.manifest, w.scaler) if each is not None]
        objects += readable(made)[0]
        origins += [origins[one.index]] * len(made)
    return objects, origins, found, number


def gpus_named(value: Any, is_gpu: IsGpu, path: Path = (), *, in_texts: bool = False) -> Iterator[tuple[Path, str]]:
    """Yield a pair for each request of GPUs in plain data, at any depth: its path, and the name of the resource.

    For example, the path is ``("resources", "limits", "nvidia.com/gpu")``, and the name is ``nvidia.com/gpu``.

    Args:
        value: Plain data, such as the spec of an object or Helm values.
        is_gpu: Function that checks whether an extended resource stands for GPUs.
        path: Path of ``value``, with which all paths in the result begin; empty by default.
        in_texts: Whether a text that is the name of a GPU resource also counts as a request; False by default.
    """
    # A SparkApplication requests GPUs for its executors with the keys "name" and "quantity".
    if isinstance(value, Mapping) and "quantity" in value and is_gpu(str(value.get("name"))):
        yield (*path, "name"), value["name"]
    for key, member in _items(value) if len(path) < _DEEPEST else ():
        if isinstance(member, Mapping | list):
            if key not in _WORDS:
                yield from gpus_named(member, is_gpu, (*path, key), in_texts=in_texts)
        elif isinstance(key, str) and is_gpu(key):
            amount = quantity(member)
            # An amount that is not a number is a parameter, but only in a section of amounts.
            if path[-1:] in _AMOUNTS if amount is None else amount > 0:
                yield (*path, key), key
        # The key of a toleration is a name too, but it requests nothing.
        elif in_texts and key != "key" and is_gpu(str(member)):
            yield (*path, key), str(member)


def _items(value: object) -> Iterable[tuple[Any, Any]]:
    """Return pairs: the keys and values of a mapping, or the indices and items of a list."""
    return value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()


def shown(path: Path) -> str:
    """Return a path of keys and indices as text for messages, such as ``spec.containers[0]``."""
    text = ""
    for step in path:
        text = f"{text}[{step}]" if isinstance(step, int) else below(text, step).lstrip(".")
    return text

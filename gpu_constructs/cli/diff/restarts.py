"""Effects on running pods, such as restarts, of changes to pod templates, replicas, ConfigMaps and Secrets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpu_constructs.cli.diff.comparing import Pair
from gpu_constructs.cli.diff.model import Change, Effect
from gpu_constructs.cli.diff.stored import mappings_at
from gpu_constructs.kube.plain_data import at
from gpu_constructs.kube.pod_specs import pod_spec_paths, pod_specs

_TEMPLATES = ("Deployment", "DaemonSet", "StatefulSet")
_CONFIG_KINDS = {
    "ConfigMap": ("configMap", "configMapRef", "configMapKeyRef", "name"),
    "Secret": ("secret", "secretRef", "secretKeyRef", "secretName"),
}
_MOST = 3
"""Largest number of reasons that a sentence lists."""


def reasons(changes: Sequence[Change], start: int) -> str:
    """Return the changed fields of a pod template as the end of a sentence, such as ``image of container ollama``.

    Args:
        changes: Changed fields, all inside the pod template.
        start: Number of keys in the path of the pod template, for example 2 for ``spec.template``.
    """
    found = list(dict.fromkeys(_reason(change, change.path[start:]) for change in changes))
    more = [f"and {len(found) - _MOST} more fields"] if len(found) > _MOST else []
    return ", ".join([*found[:_MOST], *more])


def _reason(change: Change, path: tuple[str, ...]) -> str:
    """Return one changed field of a pod template in words, such as ``image of container ollama``.

    Args:
        change: Changed field.
        path: Path of the field relative to the pod template.
    """
    names = [step.strip("[]") for step in path]
    if names[:2] == ["metadata", "annotations"] and len(names) > 2:
        is_checksum = "checksum" in names[2] or (isinstance(change.new, str) and len(change.new) == 64)
        return f"{'checksum' if is_checksum else 'annotation'} {names[2]}"
    if len(names) > 3 and names[1] in ("containers", "initContainers"):
        what = " ".join(names[3:5]) if names[3] == "env" else names[3]
        return f"{what} of container {names[2]}"
    return ".".join(names[1:4] if names[:1] == ["spec"] else names[:3])


def of_pods(pair: Pair, changes: Sequence[Change]) -> Iterator[Effect]:
    """Yield the effects of a changed object on the pods that it creates, such as a restart.

    Args:
        pair: Object before and after the change.
        changes: Fields that differ.
    """
    kind = pair.after["kind"]
    if kind == "CronJob" and (found := [one for one in changes if one.is_below("spec", "jobTemplate")]):
        yield Effect("note", f"the next run uses the new template ({reasons(found, 4)}). Running jobs continue")
    elif kind in _TEMPLATES:
        if found := [one for one in changes if one.is_below("spec", "template")]:
            yield _of_template(pair, reasons(found, 2))
        yield from _of_replicas(pair)
    else:
        yield from _of_other_kinds(kind, pair, changes)


def _of_other_kinds(kind: str, pair: Pair, changes: Sequence[Change]) -> Iterator[Effect]:
    """Yield the effects of a changed Pod, or of a custom resource whose controller decides which pods restart."""
    if kind == "Pod":
        if images := [one.path[2].strip("[]") for one in changes if one.path[-1] == "image" and len(one.path) > 3]:
            yield Effect("restart", f"the kubelet restarts the containers in place: {', '.join(images)}")
    elif kind not in ("Job", "ReplicaSet"):
        paths = [_steps(path) for path in pod_spec_paths(pair.after)]
        if found := [one for one in changes if any(one.is_below(*path) for path in paths)]:
            yield Effect("restart", f"the controller of {kind} decides whether its pods restart: {reasons(found, 1)}")


def _steps(path: Sequence[str | int]) -> tuple[str, ...]:
    """Return the keys of a path before its first list index: ``("spec", "jobs")`` for ``("spec", "jobs", 0)``."""
    keys = [isinstance(step, int) for step in path]
    return tuple(str(step) for step in path[: keys.index(True) if True in keys else None])


def _of_template(pair: Pair, why: str) -> Effect:
    """Return the effect of a changed pod template: which pods restart.

    Args:
        pair: Deployment, StatefulSet or DaemonSet before and after the change.
        why: Changed fields in words, for the end of the text, such as ``image of container ollama``.
    """
    spec, kind = pair.after["spec"], pair.after["kind"]
    strategy = spec.get("strategy" if kind == "Deployment" else "updateStrategy", {})
    if strategy.get("type") == "OnDelete":
        return Effect("note", f"pods do not restart until you delete them: {why}")
    if spec.get("paused") is True:
        return Effect("note", f"pods do not restart until you resume the rollout, because it is paused: {why}")
    if kind != "DaemonSet" and pair.before.get("spec", {}).get("replicas") == 0:
        return Effect("note", f"no pod restarts, because replicas is 0: {why}")
    first = at(strategy, "rollingUpdate.partition", 0)
    if kind == "StatefulSet" and first:
        if first >= spec.get("replicas", 1):
            return Effect("note", f"no pod restarts, because the partition is {first}: {why}")
        return Effect("restart", f"pods from number {first} restart, because of the partition: {why}")
    together = ", all at the same time" if strategy.get("type") == "Recreate" else ""
    on_nodes = " on all its nodes" if kind == "DaemonSet" else ""
    return Effect("restart", f"pods restart{on_nodes}{together}: {why}")


def _of_replicas(pair: Pair) -> Iterator[Effect]:
    """Yield the effect of a changed number of replicas: how many pods stop or start.

    Args:
        pair: Object before and after the change.
    """
    counts = [at(one, "spec.replicas") for one in (pair.before, pair.after)]
    if None in counts or counts[0] == counts[1]:
        return
    if counts[1] < counts[0]:
        yield Effect("restart", f"{counts[0] - counts[1]} of {counts[0]} pods stop: replicas {counts[0]} → {counts[1]}")
    else:
        yield Effect("note", f"{counts[1] - counts[0]} more pods start: replicas {counts[0]} → {counts[1]}")


def of_configuration(pair: Pair, changes: Sequence[Change], others: Sequence[Pair]) -> Iterator[Effect]:
    """Yield the effects of a changed ConfigMap or Secret on the pods that use it.

    Args:
        pair: ConfigMap or Secret before and after the change.
        changes: Fields that differ.
        others: Pairs of all objects, including the workloads that use the ConfigMap or Secret.
    """
    kind, name = pair.after["kind"], pair.before["metadata"]["name"]
    if kind not in _CONFIG_KINDS or not any(one.path[0] in ("data", "binaryData") for one in changes):
        return
    namespace = pair.after["metadata"].get("namespace")
    for other in others:
        manifest = other.after
        if not manifest or manifest["metadata"].get("namespace") != namespace or other.new is None:
            continue
        uses = {use for spec in pod_specs(dict(manifest)) for use in _uses(spec, kind, name)}
        if uses and other.before:
            yield from _of_user(other, other.new.name, uses)


def _of_user(user: Pair, name: str, uses: set[str]) -> Iterator[Effect]:
    """Yield the effect of a changed ConfigMap or Secret on the pods of one workload that uses it.

    Args:
        user: Workload before and after the change.
        name: Kind, namespace and name of the workload, such as ``Deployment ollama/ollama``.
        uses: Ways in which its pods use the ConfigMap or Secret: ``env``, ``envFrom``, ``subPath`` or ``files``.
    """
    if at(user.before, "spec.template") != at(user.after, "spec.template"):
        yield Effect("note", f"the pods of {name} read the new content, because they restart anyway")
    elif user.after["kind"] not in ("Job", "CronJob"):
        yield _of_use(name, uses)


def _of_use(user: str, uses: set[str]) -> Effect:
    """Return the effect of a changed ConfigMap or Secret on a workload whose pods do not restart.

    Args:
        user: Kind, namespace and name of the workload, such as ``Deployment ollama/ollama``.
        uses: Ways in which its pods use the ConfigMap or Secret: ``env``, ``envFrom``, ``subPath`` or ``files``.
    """
    if uses == {"files"}:
        return Effect(
            "note",
            f"the kubelet updates the files in the pods of {user} within a minute or so. No pod restarts, so a program "
            "that reads them only at its start keeps the old content",
        )
    return Effect(
        "note",
        f"the pods of {user} read the new content only after a restart ({' and '.join(sorted(uses - {'files'}))})",
    )


def _uses(spec: Mapping[str, Any], kind: str, name: str) -> Iterator[str]:
    """Yield the ways in which a pod uses a ConfigMap or Secret: ``env``, ``envFrom``, ``subPath`` or ``files``.

    The value ``files`` stands for a mounted volume without ``subPath``.

    Args:
        spec: Pod spec.
        kind: ``ConfigMap`` or ``Secret``.
        name: Name of the ConfigMap or Secret.
    """
    source, whole, key, field = _CONFIG_KINDS[kind]
    for group in ("containers", "initContainers"):
        if any(one.get("name") == name for one in mappings_at(spec, f"{group}.envFrom.{whole}")):
            yield "envFrom"
        if any(one.get("name") == name for one in mappings_at(spec, f"{group}.env.valueFrom.{key}")):
            yield "env"
    for volume in mappings_at(spec, "volumes"):
        direct = [one.get(field) for one in mappings_at(volume, source)]
        projected = [one.get("name") for one in mappings_at(volume, f"projected.sources.{source}")]
        mounts = [
            one for group in ("containers", "initContainers") for one in mappings_at(spec, f"{group}.volumeMounts")
        ]
        if name in (*direct, *projected):
            for mount in mounts:
                if mount.get("name") == volume.get("name"):
                    yield "subPath" if mount.get("subPath") else "files"

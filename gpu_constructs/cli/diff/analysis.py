"""Effects of a change from old objects to new objects: on each object, and on the cluster as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from gpu_constructs.cli.diff.capacity import Capacity, capacity_of
from gpu_constructs.cli.diff.comparing import Pair, changes_of, pairs_of
from gpu_constructs.cli.diff.immutable import STRATEGY, effect_of_deletion, is_growing, refused_fields
from gpu_constructs.cli.diff.model import TOPICS, Action, Change, Difference, Effect, Key, Side, Sides
from gpu_constructs.cli.diff.nodes import FileDifference, of_files
from gpu_constructs.cli.diff.restarts import of_configuration, of_pods
from gpu_constructs.cli.diff.security import of_security
from gpu_constructs.cli.documents import Broken
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.kube import kinds
from gpu_constructs.records import dataclass, replace

if TYPE_CHECKING:
    from gpu_constructs.catalog.inventory import GpuInventory

_ORDER = list(TOPICS)
_STOPPING = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "Pod", "CronJob")
_NEEDS_CRDS = "needs-crds"


@dataclass(frozen=True)
class Comparison:
    """The differences between old and new manifests, and their effects.

    Attributes:
        differences: Objects that differ, and unchanged objects on which the change has an effect.
        files: Machine configuration files of Talos nodes and Helm values files that differ.
        effects: Effects on the cluster as a whole, for example on its number of GPU slots.
        broken: Parts of the input that the command could not read or compare.
    """

    differences: Sequence[Difference]
    files: Sequence[FileDifference]
    effects: Sequence[Effect]
    broken: Sequence[Broken]

    @property
    def all_effects(self) -> list[Effect]:
        """All effects in one list: first those of objects, then those of files, then those on the whole cluster."""
        groups = [*(one.effects for one in self.differences), *(one.effects for one in self.files), self.effects]
        return [effect for group in groups for effect in group]

    @property
    def differs(self) -> bool:
        """Whether something changes in the cluster or on its nodes.

        False if objects only move from one manifest file to another.
        """
        acts = any(one.action not in ("moved", "same") for one in self.differences)
        return acts or bool(self.files) or bool(self.all_effects)


def only_security(found: Comparison) -> Comparison:
    """Return a copy of a comparison with only the effects on rights and access, and the objects with such effects."""
    kept = []
    for one in found.differences:
        effects = [effect for effect in one.effects if effect.topic in ("broadening", "narrowing")]
        if effects:
            kept.append(replace(one, effects=effects, changes=()))
    return replace(found, differences=kept, files=(), effects=())


def compared(sides: Sides, inventory: GpuInventory | None = None) -> Comparison:
    """Return the differences between old and new objects, with their effects.

    Args:
        sides: Old and new objects.
        inventory: GPU nodes of the cluster; None to compare without a capacity plan.

    Raises:
        GpuConstructsError: The folders contain several clusters, but the inventory describes one cluster.
    """
    old, new = sides.old, sides.new
    parts = _clusters(old, new)
    if inventory and len(parts) > 1:
        names = ", ".join(name for name, *_ in parts)
        raise GpuConstructsError(
            f"--inventory describes one cluster, but the folders contain {len(parts)}: {names}. Name one folder"
        )
    differences: list[Difference] = []
    effects: list[Effect] = []
    broken: list[Broken] = []
    for name, before, after in parts:
        pairs, unread = pairs_of(before, after)
        broken += unread
        capacity = _capacity(before, after, inventory, broken)
        found = [_difference(pair, pairs, capacity, sides, broken) for pair in pairs]
        differences += [one for one in found if one.action != "same" or one.effects]
        prefix = f"{name}: " if name else ""
        effects += [Effect(one.topic, prefix + one.text) for one in capacity.of_cluster]
    files, unread = of_files(old.texts, new.texts, new.root)
    return Comparison(differences, files, effects, [*broken, *unread])


def _clusters(old: Side, new: Side) -> list[tuple[str, Side, Side]]:
    """Return a triple for each cluster: name of its folder, old objects, and new objects.

    If the old or the new objects include the same object in several top-level folders, such as ``home`` and ``office``,
    each top-level folder is a cluster. Otherwise, all objects belong to one cluster, whose name is empty.
    """
    tops: dict[Key, set[tuple[bool, str]]] = {}
    for side in (old, new):
        for one in side.objects:
            tops.setdefault(kinds.identity_of(one.manifest), set()).add((side is new, _top(side, one.file)))
    if all(sum(is_new for is_new, _ in one) < 2 and sum(not is_new for is_new, _ in one) < 2 for one in tops.values()):
        return [("", old, new)]
    names = dict.fromkeys(_top(side, one.file) for side in (old, new) for one in side.objects)

    def part(side: Side, name: str) -> Side:
        return Side([one for one in side.objects if _top(side, one.file) == name], {}, side.root)

    return [(name, part(old, name), part(new, name)) for name in names]


def _top(side: Side, file: str) -> str:
    """Return the name of the top-level folder that contains a manifest file, such as ``home`` for ``home/ollama.yaml``.

    Return an empty text for a file that is in no such folder or in the folder ``needs-crds``. Also return an empty text
    for objects that do not come from a folder.

    Args:
        side: Old or new objects, with the path of their folder.
        file: Path of the manifest file.
    """
    parts = PurePosixPath(file.removeprefix(side.root).lstrip("/")).parts if side.root else ()
    return parts[0] if len(parts) > 1 and parts[0] != _NEEDS_CRDS else ""


def _capacity(old: Side, new: Side, inventory: GpuInventory | None, broken: list[Broken]) -> Capacity:
    """Return the effects of a change on GPU requests, on the GPU slots of nodes, and on the pods that fit on the nodes.

    If an object is not valid, add a problem to ``broken`` and return no effects.
    """
    try:
        return capacity_of(old.manifests(), new.manifests(), inventory)
    except GpuConstructsError as error:
        broken.append(Broken(new.root or old.root or "<input>", 1, f"the capacity plan cannot read it: {error}"))
    return Capacity((), {})


def _difference(
    pair: Pair,
    pairs: Sequence[Pair],
    capacity: Capacity,
    sides: Sides,
    broken: list[Broken],
) -> Difference:
    """Return the change of one object: its fields that differ, and the effects of the change.

    Args:
        pair: Object before and after the change.
        pairs: All objects before and after the change.
        capacity: Effects of the change on the GPU requests and slots.
        sides: All old and new objects, with the messages by which the API server refused objects in a dry run.
        broken: Problems with the input. The function adds a problem if it cannot compare the object.
    """
    document = pair.document
    changes: list[Change] = []
    effects: list[Effect] = []
    try:
        changes = list(changes_of(pair.before, pair.after)) if pair.before and pair.after else []
        effects = list(_effects(pair, changes, pairs, sides.refusals))
    except (AttributeError, KeyError, TypeError, ValueError, ArithmeticError) as error:
        problem = f"{document.name} has a value of a wrong type ({error}). Correct it"
        broken.append(Broken(document.file, document.line, problem))
    _, kind, namespace, name = kinds.identity_of(document.manifest)
    effects += capacity.of_objects.get((kind, namespace, name), ())
    if note := sides.notes.get(kinds.identity_of(document.manifest)):
        effects.append(Effect("note", note))
    effects.sort(key=lambda one: _ORDER.index(one.topic))
    return Difference(_action(pair, changes, sides), pair.old, pair.new, changes, effects)


def _action(pair: Pair, changes: Sequence[Change], sides: Sides) -> Action:
    if pair.old is None:
        return "created"
    if pair.new is None:
        return "removed"
    if kinds.identity_of(pair.old.manifest) != kinds.identity_of(pair.new.manifest):
        return "replaced"
    if changes or (sides.refusals and kinds.identity_of(pair.new.manifest) in sides.refusals):
        return "changed"
    paths = [sides.old.path_of(pair.old), sides.new.path_of(pair.new)]
    return "moved" if all(paths) and paths[0] != paths[1] else "same"


def _effects(
    pair: Pair, changes: Sequence[Change], pairs: Sequence[Pair], refusals: Mapping[Key, str] | None
) -> Iterator[Effect]:
    """Yield the effects of the change of one object, such as a restart of its pods. Omit effects on GPU requests.

    Args:
        pair: Object before and after the change.
        changes: Fields that differ.
        pairs: All objects before and after the change.
        refusals: Messages of the API server in a dry run, by API group, kind, namespace and name of the refused object.
            None without a dry run: the function then predicts refusals from the table ``immutable.yaml``.
    """
    if pair.old is None or pair.new is None:
        if pair.new is None and (text := effect_of_deletion(str(pair.before["kind"]))):
            is_stop = pair.before["kind"] in (*_STOPPING, "Namespace", "PersistentVolumeClaim")
            yield Effect("restart" if is_stop else "note", f"the deletion {text}")
        yield from of_security(pair)
        return
    former, identity = (kinds.identity_of(one.manifest) for one in (pair.old, pair.new))
    if former != identity:
        yield from _of_replacement(pair)
    elif refused := _refusal(pair, identity, refusals):
        yield Effect("immutable", refused)
    else:
        yield from of_pods(pair, changes)
        yield from of_configuration(pair, changes, pairs)
        if is_growing(pair):
            text = "the volume grows only if it is bound and its StorageClass has allowVolumeExpansion: true"
            yield Effect("note", f"{text}. Otherwise the API server refuses the change")
    yield from of_security(pair)


def _refusal(pair: Pair, identity: Key, refusals: Mapping[Key, str] | None) -> str:
    """Return the reason why the API server refuses the change of an object; empty if it accepts the change.

    Args:
        pair: Object before and after the change.
        identity: API group, kind, namespace and name of the object.
        refusals: Messages of the API server in a dry run, by API group, kind, namespace and name of the refused object.
            None without a dry run: the function then predicts refusals from the table ``immutable.yaml``.
    """
    if refusals is not None and identity not in refusals:
        return ""
    fields = refused_fields(pair)
    if fields == [STRATEGY]:
        return f"refused: {STRATEGY} cannot change to Recreate while rollingUpdate has its default. Patch it first"
    names = ", ".join(fields[:2]) + (f" and {len(fields) - 2} more fields" if len(fields) > 2 else "")
    if fields:
        return f"refused: {names} cannot change. Delete the object first; this {effect_of_deletion(identity[1])}"
    return f"refused by the API server: {refusals[identity]}" if refusals else ""


def _of_replacement(pair: Pair) -> Iterator[Effect]:
    """Yield the effect of a new object that replaces an old object with another name, such as a renamed Deployment.

    Args:
        pair: Old object, and the new object that replaces it.
    """
    assert pair.old is not None
    kind = pair.after["kind"]
    text = f"replaces {pair.old.name}, which kubectl apply does not delete"
    if kind in ("Deployment", "StatefulSet", "DaemonSet"):
        own = pair.before["spec"].get("selector") == pair.after["spec"].get("selector")
        more = ". Both have the same selector, so delete the old object first" if own else ""
        yield Effect("restart", f"{text}{more}: all pods restart under the new name")
    else:
        yield Effect("note", text)

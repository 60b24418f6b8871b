"""Commands with which the user applies a change to the cluster, in the order in which the user runs them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from gpu_constructs.cli import seen
from gpu_constructs.cli.diff.analysis import Comparison
from gpu_constructs.cli.diff.immutable import effect_of_deletion
from gpu_constructs.cli.diff.model import Difference, Side
from gpu_constructs.cli.documents import Document
from gpu_constructs.kube import kinds
from gpu_constructs.records import dataclass

_NEEDS_CRDS = "needs-crds"
_NO_NEW_GPU = "Running GPU pods keep their devices, but no new pod gets one until the new device plugin runs"


@dataclass(frozen=True)
class Step:
    """A command that the user runs to apply a change, such as ``kubectl apply``.

    Attributes:
        command: Command line.
        comment: Warning or explanation; empty if the command needs no comment.
    """

    command: str
    comment: str = ""

    def __str__(self) -> str:
        return f"# {self.comment}\n{self.command}" if self.comment else self.command


def steps_of(comparison: Comparison, new: Side, options: Sequence[str] = ()) -> list[Step]:
    """Return the commands that apply a change to the cluster, in the order in which the user runs them.

    Args:
        comparison: Result of the comparison.
        new: New objects, with the path of their folder.
        options: Options of kubectl that select the cluster; none by default.
    """
    kubectl = " ".join(["kubectl", *options])
    found = comparison.differences
    applied = [one.new for one in found if one.new and one.action in ("created", "changed", "replaced")]
    gone = [one for one in found if one.action in ("removed", "replaced")]
    plugins = [one for one in gone if one.old and one.kind == "DaemonSet" and _has_plugin([one.old.manifest])]
    plugins = plugins if plugins and _has_plugin(new.manifests()) else []
    # Two device plugins on a node replace each other's devices, so the old one goes first.
    steps = [_deletion(kubectl, one.old, more=_NO_NEW_GPU) for one in plugins if one.old]
    steps += [step for one in found if one not in plugins for step in _before(kubectl, one)]
    steps += [Step(f"{kubectl} apply --server-side -f {place}", note) for place, note in _places(applied, new)]
    steps += [Step(step) for file in comparison.files for step in file.steps]
    last = [one for one in reversed(gone) if one not in plugins and not _shares_selector(one)]
    return [*steps, *(_deletion(kubectl, one.old) for one in last if one.old)]


def _has_plugin(manifests: Sequence[Mapping[str, Any]]) -> bool:
    """Check whether objects install a device plugin, directly or through the GPU Operator or a Helm release."""
    return any("device-plugin" in one.components for one in seen.provided_by(manifests))


def _before(kubectl: str, difference: Difference) -> Iterator[Step]:
    """Yield the commands that the user must run before ``kubectl apply``, because the old object prevents the change.

    Such a command deletes or patches the old object. Yield nothing if ``kubectl apply`` alone can make the change.
    """
    document, why = difference.document, _first(difference)
    if _shares_selector(difference) and difference.old:
        yield _deletion(kubectl, difference.old)
    if not difference.has("immutable"):
        return
    if "Patch it first" in why:
        _, _, namespace, name = kinds.identity_of(document.manifest)
        inside = f" --namespace {namespace}" if namespace else ""
        patch = '{"spec":{"strategy":{"type":"Recreate","rollingUpdate":null}}}'
        yield Step(f"{kubectl} patch deployment.apps {name}{inside} --type merge --patch '{patch}'")
    elif "cannot change" in why:
        yield _deletion(kubectl, document, why)


def _first(difference: Difference) -> str:
    return difference.effects[0].text if difference.effects else ""


def _shares_selector(difference: Difference) -> bool:
    return difference.action == "replaced" and "same selector" in _first(difference)


def _deletion(kubectl: str, document: Document, why: str = "", more: str = "") -> Step:
    """Return the command that deletes an object, with a warning about the effect of the deletion.

    Args:
        kubectl: Command line of kubectl.
        document: Object to delete.
        why: Reason why the API server refuses to change the object; empty if the deletion has another reason.
        more: Sentence to add after the warning; empty for none.
    """
    group, kind, namespace, name = kinds.identity_of(document.manifest)
    resource = f"{kind.lower()}{f'.{group}' if group else ''}"
    comment = effect_of_deletion(kind)
    inside = f" --namespace {namespace}" if namespace else ""
    orphan = " --cascade=orphan" if kind == "StatefulSet" and why and ".selector" not in why else ""
    if orphan:
        comment = "keeps the pods running. The new StatefulSet adopts them"
    warning = ". ".join(filter(None, [f"Warning: this {comment}" if comment else "", more]))
    return Step(f"{kubectl} delete {resource} {name}{inside}{orphan}", warning)


def _places(documents: Sequence[Document], side: Side) -> Iterator[tuple[str, str]]:
    """Yield pairs: a folder or file for ``kubectl apply -f``, and a comment, which is usually empty.

    Folders with the name ``needs-crds`` come last. Their comment states that the cluster must have the
    CustomResourceDefinitions first.

    Args:
        documents: Objects that the user must apply.
        side: All new objects. The result contains folders if ``side.root`` is a folder, and files if it is empty.
    """
    places: dict[str, None] = {}
    for one in sorted(documents, key=lambda one: (_NEEDS_CRDS in one.file, one.file)):
        places[str(PurePosixPath(one.file).parent) if side.root else one.file] = None
    for place in places:
        needs = place.endswith(_NEEDS_CRDS)
        yield (
            place if place != "<stdin>" else "-",
            "once the cluster has the definitions of these kinds" if needs else "",
        )

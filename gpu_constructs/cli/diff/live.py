"""Old objects from a cluster, and new objects as a dry run of ``kubectl apply`` returns them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from gpu_constructs.cli.diff.model import Side, Sides
from gpu_constructs.cli.diff.sources import not_empty, side_of
from gpu_constructs.cli.diff.stored import overlaid
from gpu_constructs.cli.documents import Broken, Document
from gpu_constructs.cli.kubectl import Kubectl, KubectlError
from gpu_constructs.kube import kinds
from gpu_constructs.kube.plain_data import at
from gpu_constructs.records import replace

_GET = ("get", "--ignore-not-found", "--output=json", "--filename=-")
_APPLY = ("apply", "--server-side", "--dry-run=server", "--output=json", "--filename=-")
_OWNER = ("name", "namespace")
_FORCE = "--force-conflicts"


_BY_SERVER = "with the result of kubectl apply --server-side --dry-run=server"
_LOCALLY = (
    "locally, because you may not patch these objects. Fields that the new objects no longer set are not compared"
)


def of_cluster(kubectl: Kubectl, folder: str) -> Sides:
    """Return old objects, as the cluster has them, and new objects, as they would be after ``kubectl apply``.

    Args:
        kubectl: The program kubectl, with the options that select the cluster.
        folder: Folder or file with the new manifests.

    Raises:
        CommandError: The folder or file contains no Kubernetes objects.
        KubectlError: The cluster does not answer.
    """
    side, broken = not_empty(folder, *side_of(folder))
    given = side.objects
    where = kubectl.where()
    running, errors = _each(kubectl, _GET, given)
    # A kind without a definition in the cluster has no objects.
    unseen = {id(one): text for one, text in errors if "no matches for kind" not in text}
    results, refused, conflicts = _results(kubectl, [one for one in given if id(one) in running])
    is_local = any("cannot patch" in text for text in refused.values())
    old = [_named(one, running[id(one)], where.partition(",")[0]) for one in given if id(one) in running]
    new = [_after(one, running, results) for one in given if id(one) not in unseen]
    names = {id(one): kinds.identity_of(one.manifest) for one in given}
    unread = [Broken(one.file, one.line, f"{one.name}: {text}") for one, text in errors if id(one) in unseen]
    return Sides(
        Side(old),
        replace(side, objects=new, texts={}),
        [*broken, *unread],
        f"{where}; compared {_LOCALLY if is_local else _BY_SERVER}. Objects only in the cluster are not compared",
        None if is_local else {names[one]: text for one, text in refused.items()},
        {names[one]: text for one, text in (_notes(conflicts) | _owners(running)).items()},
    )


def _notes(conflicts: Mapping[int, str]) -> dict[int, str]:
    """Return a note for each new object that sets a field of another field manager, such as Helm.

    Args:
        conflicts: Messages of kubectl about the conflicts, by ``id()`` of the new object.

    Returns:
        Notes, by ``id()`` of the new object.
    """
    return {one: f"kubectl apply needs --force-conflicts, because of a {text}" for one, text in conflicts.items()}


def _owners(running: Mapping[int, Mapping[str, Any]]) -> dict[int, str]:
    """Return a note for each object that belongs to a Helm release in the cluster.

    Args:
        running: Objects in the cluster, by ``id()`` of the new object.

    Returns:
        Notes, by ``id()`` of the new object.
    """
    return {one: text for one, found in running.items() if (text := _of_helm(found))}


def _after(
    document: Document, running: Mapping[int, Mapping[str, Any]], results: Mapping[int, Mapping[str, Any]]
) -> Document:
    """Return a new object as it would be after ``kubectl apply``.

    If the dry run did not return the object, merge the new object into the object in the cluster. If the cluster does
    not have the object, return the new object unchanged.

    Args:
        document: New object.
        running: Objects in the cluster, by ``id()`` of the new object.
        results: Objects that the dry run returned, by ``id()`` of the new object.
    """
    if id(document) in results:
        return _named(document, results[id(document)])
    if id(document) in running:
        return _named(document, overlaid(dict(running[id(document)]), dict(document.manifest)))
    return document


def _results(
    kubectl: Kubectl, given: Sequence[Document]
) -> tuple[dict[int, Mapping[str, Any]], dict[int, str], dict[int, str]]:
    """Run ``kubectl apply`` as a dry run, and return the objects and errors from the API server.

    Returns:
        Three dicts, by ``id()`` of the given object. First, the objects that the API server returned; after a conflict,
        from a dry run with ``--force-conflicts``. Second, the messages about objects that the API server refused.
        Third, the messages about conflicts: another field manager owns a field of the object.
    """
    results, refusals = _each(kubectl, _APPLY, given)
    conflicts = [(one, text) for one, text in refusals if "conflict" in text]
    forced, still = _each(kubectl, (*_APPLY, _FORCE), [one for one, _ in conflicts])
    refused = {id(one): text for one, text in [*refusals, *still] if (one, text) not in conflicts}
    return results | forced, refused, {id(one): text for one, text in conflicts}


def _of_helm(manifest: Mapping[str, Any]) -> str:
    """Return a note that names the Helm release that owns an object; empty if no Helm release owns the object."""
    release, namespace = (at(manifest, ("metadata", "annotations", f"meta.helm.sh/release-{one}")) for one in _OWNER)
    if release is None:
        return ""
    return f"takes over an object of the Helm release {namespace}/{release}, whose next upgrade changes it back"


def _named(document: Document, manifest: Mapping[str, Any], context: str = "") -> Document:
    """Return an object as the API server returned it, but with the name and the namespace of the new manifest.

    If the new manifest has no namespace, the result has no namespace either.

    Args:
        document: New manifest.
        manifest: Object that the API server returned for this manifest.
        context: Name of the kubectl context, which messages state in place of a file. If empty, messages state the
            file and the line of the new manifest.
    """
    metadata = {**manifest["metadata"], "name": document.manifest["metadata"]["name"]}
    if "namespace" not in document.manifest["metadata"]:
        metadata.pop("namespace", None)
    file, line = (context, 0) if context else (document.file, document.line)
    return Document({**manifest, "metadata": metadata}, file, line)


def _each(
    kubectl: Kubectl, command: Sequence[str], given: Sequence[Document]
) -> tuple[dict[int, Mapping[str, Any]], list[tuple[Document, str]]]:
    """Run a kubectl command for the given objects. Return the objects that kubectl prints, and the error messages.

    If a run fails, the function runs kubectl for each half of the objects, down to single objects.

    Args:
        kubectl: The program kubectl, with the options that select the cluster.
        command: Arguments of kubectl, such as ``apply --filename=-``. kubectl must read the objects from standard
            input.
        given: Objects for kubectl.

    Returns:
        First, the objects that kubectl printed, by ``id()`` of the given object. Second, a pair for each given object
        for which kubectl failed: the object and the error message.

    Raises:
        KubectlError: kubectl cannot reach the cluster.
    """
    if not given:
        return {}, []
    items = {"apiVersion": "v1", "kind": "List", "items": [dict(one.manifest) for one in given]}
    try:
        text = kubectl.run(*command, stdin=json.dumps(items))
    except KubectlError as error:
        if len(given) == 1:
            if not error.is_forbidden and _is_unreachable(str(error)):
                raise
            return {}, [(given[0], str(error).partition(": ")[2])]
        half = len(given) // 2
        first, second = (_each(kubectl, command, part) for part in (given[:half], given[half:]))
        return first[0] | second[0], first[1] + second[1]
    printed = json.loads(text) if text.strip() else {}
    objects = printed.get("items", [printed] if printed else [])
    by_key = {(one["kind"], one["metadata"]["name"], one["metadata"].get("namespace")): one for one in objects}
    names = {key[:2]: one for key, one in by_key.items()}
    found: dict[int, Mapping[str, Any]] = {}
    for one in given:
        _, kind, namespace, name = kinds.identity_of(one.manifest)
        match = by_key.get((kind, name, namespace)) if namespace else names.get((kind, name))
        if match is not None:
            found[id(one)] = match
    return found, []


def _is_unreachable(message: str) -> bool:
    return any(
        text in message for text in ("was refused", "Unable to connect", "no such host", "Unauthorized", "i/o timeout")
    )

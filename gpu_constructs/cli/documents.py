"""Reader of Kubernetes manifests from files, folders and standard input, with the file and the line of each object."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from gpu_constructs import nested
from gpu_constructs.cli.exits import CommandError, Exit
from gpu_constructs.kube import kinds
from gpu_constructs.records import dataclass

Manifest = Mapping[str, Any]

STDIN = "-"
_SUFFIXES = (".yaml", ".yml", ".json")
_NEW_DOCUMENT = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_TEMPLATE = re.compile(r"\{\{")


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """A YAML loader that reads dates, such as ``2024-01-31``, as text, as the API server does."""


_Loader.yaml_implicit_resolvers = {
    first: [one for one in resolvers if one[0] != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in _Loader.yaml_implicit_resolvers.items()
}


@dataclass(frozen=True)
class Document:
    """A Kubernetes object, with the file and the line from which the command reads it.

    Attributes:
        manifest: Object as plain data.
        file: Path of the file as the user passed it, or ``<stdin>``. For an object from a cluster, the name of the
            kubeconfig context.
        line: Number of the line on which the object begins; 0 for an object from a cluster.
    """

    manifest: Manifest
    file: str
    line: int

    @property
    def name(self) -> str:
        """Kind, namespace and name of the object, such as ``Deployment ollama/ollama``."""
        _, kind, namespace, name = kinds.identity_of(self.manifest)
        return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


@dataclass(frozen=True)
class Broken:
    """A part of a file that is not a Kubernetes object, such as text that is not YAML.

    Attributes:
        file: Path of the file.
        line: Number of the line with the problem.
        problem: Reason why the reader could not read the part.
    """

    file: str
    line: int
    problem: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.problem}"


@dataclass(frozen=True)
class Documents:
    """All objects in the files that the user named, and the parts that are not objects.

    Attributes:
        objects: Objects in the order of the files. Each item of a List is a separate object.
        broken: Parts of the files that are not Kubernetes objects.
    """

    objects: Sequence[Document] = ()
    broken: Sequence[Broken] = ()

    @property
    def manifests(self) -> list[dict[str, Any]]:
        """Objects as plain data, in the order of ``objects``."""
        return [dict(document.manifest) for document in self.objects]


def read(paths: Sequence[str], *, with_owned: bool = False) -> Documents:
    """Return the Kubernetes objects in files and folders.

    The reader accepts YAML and JSON with any number of documents, including the output of ``helm template`` and
    ``kubectl get -o yaml|json``. By default, it skips each object whose controller is among the objects, such as a pod
    of a ReplicaSet.

    In a folder and its subfolders, the reader uses only the files with the suffixes .yaml, .yml and .json. It skips
    hidden files and folders, and YAML documents that are not Kubernetes objects, such as Helm values.

    Args:
        paths: Files and folders. ``-`` stands for standard input.
        with_owned: Whether to keep objects whose controller is among the objects.

    Raises:
        CommandError: A path does not exist, or the command has no permission to read it.
    """
    objects: list[Document] = []
    broken: list[Broken] = []
    for path in paths:
        for name, text, is_named in _texts(path):
            for part in _parts(name, text, is_named):
                (broken if isinstance(part, Broken) else objects).append(part)  # type: ignore[arg-type]
    return Documents(objects if with_owned else without_owned(objects), broken)


def _texts(path: str) -> Iterator[tuple[str, str, bool]]:
    """Yield a tuple for each file at a path: name, text, and a bool.

    The bool is True if the path names the file, and False if the path names a folder that contains the file.
    """
    if path == STDIN:
        yield "<stdin>", sys.stdin.buffer.read().decode("utf-8", "replace"), True
        return
    where = Path(path)
    try:
        if not where.is_dir():
            yield path, where.read_bytes().decode("utf-8", "replace"), True
            return
        for file in sorted(where.rglob("*")):
            is_hidden = any(part.startswith(".") for part in file.relative_to(where).parts)
            if file.suffix in _SUFFIXES and file.is_file() and not is_hidden:
                yield str(file), file.read_bytes().decode("utf-8", "replace"), False
    except OSError as error:
        problem = f"cannot read {error.filename or path}: {error.strerror}"
        raise CommandError(f"{problem}. Name a file or a folder with manifests", Exit.COULD_NOT_LOOK) from None


def parsed(name: str, text: str) -> Iterator[Document | Broken]:
    """Yield a ``Document`` for each Kubernetes object in a text, and a ``Broken`` for each part that is not an object.

    Args:
        name: Name of the file for messages.
        text: Text of the file, in YAML or JSON.
    """
    return _parts(name, text, is_named=True)


def _parts(name: str, text: str, is_named: bool) -> Iterator[Document | Broken]:
    starts = [0, *(match.end() for match in _NEW_DOCUMENT.finditer(text))]
    ends = [*(match.start() for match in _NEW_DOCUMENT.finditer(text)), len(text)]
    line = 1
    for number, (start, end) in enumerate(zip(starts, ends, strict=True)):
        line += text.count("\n", starts[number - 1] if number else 0, start)
        for one in _of_document(name, text[start:end], line):
            if isinstance(one, Document) or is_named or one.problem != _NO_OBJECT:
                yield one


# siderolabs/talos@v1.12.0:pkg/machinery/config/types: the documents of a machine configuration have this API version.
_TALOS = "v1alpha1"
_NO_OBJECT = "is not a Kubernetes object, because it has no apiVersion or no kind. Leave it out"


def _of_document(name: str, text: str, line: int) -> Iterator[Document | Broken]:
    """Yield the Kubernetes objects in one YAML document. Yield a ``Broken`` for content that is not an object.

    Args:
        name: Name of the file that contains the document.
        text: Text of the document.
        line: Number of the line in the file on which the document begins.
    """
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        value = None if node is None else loader.construct_document(node)
    except yaml.YAMLError as error:
        yield from _as_json(name, text, line, error)
        return
    except (RecursionError, ValueError, OverflowError) as error:
        yield Broken(name, line, f"is not readable: {type(error).__name__}. Correct this document")
        return
    if value is not None:
        yield from _objects(name, value, node, line)


def _as_json(name: str, text: str, line: int, error: yaml.YAMLError) -> Iterator[Document | Broken]:
    """Yield the objects in a text that is JSON but not YAML, for example because of tabs.

    If the text is not JSON either, yield a ``Broken`` with the error of the YAML parser.

    Args:
        name: Name of the file.
        text: Text of the document.
        line: Number of the line in the file at which the text starts.
        error: Error of the YAML parser.
    """
    try:
        yield from _objects(name, json.loads(text), None, line)
    except (ValueError, RecursionError):
        yield _not_yaml(name, text, line, error)


def _not_yaml(name: str, text: str, line: int, error: yaml.YAMLError) -> Broken:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
    way_out = ". Render the chart first: helm template" if _TEMPLATE.search(text) else ""
    return Broken(name, line + (mark.line if mark else 0), f"is not YAML: {problem}{way_out}")


def _objects(name: str, value: Any, node: yaml.Node | None, line: int) -> Iterator[Document | Broken]:
    """Yield the object that a YAML document contains, or the items of a List. Yield a ``Broken`` for anything else.

    Args:
        name: Name of the file.
        value: Document as plain data.
        node: Document as PyYAML parsed it, with line numbers; None if the line numbers are not known.
        line: Number of the line in the file at which the text of the document starts.
    """
    at = line + (node.start_mark.line if node is not None else 0)
    is_object = isinstance(value, Mapping) and all(isinstance(value.get(key), str) for key in ("apiVersion", "kind"))
    if not is_object or value["apiVersion"] == _TALOS:
        yield Broken(name, at, _NO_OBJECT)
        return
    if problem := nested.problem_of("the document", value):
        yield Broken(name, at, problem)
        return
    items, metadata = value.get("items"), value.get("metadata")
    known = metadata if isinstance(metadata, Mapping) else {}
    if not (value["kind"].endswith("List") and isinstance(items, list)) or "name" in known:
        yield _object(name, value, known, at)
        return
    stated = {} if value["kind"] == "List" else {"apiVersion": value["apiVersion"], "kind": value["kind"][:-4]}
    for item, member in zip(items, _items_of(node, len(items)), strict=True):
        yield from _objects(name, {**stated, **item} if isinstance(item, Mapping) else item, member, line)


def _object(name: str, value: Mapping[str, Any], metadata: Mapping[str, Any], at: int) -> Document | Broken:
    """Return a ``Document`` for an object, or a ``Broken`` if the object has no name or its namespace is not text.

    If the object has the field ``generateName`` instead of a name, the value of this field becomes its name.

    Args:
        name: Name of the file.
        value: Object as plain data.
        metadata: Metadata of the object.
        at: Number of the line at which the object starts.
    """
    called = metadata.get("name") or metadata.get("generateName")
    if called is None and kinds.group_of(value["apiVersion"]) in _READ_BY_PROGRAMS:
        return Broken(name, at, _NO_OBJECT)
    if not isinstance(called, str):
        return Broken(name, at, f"{value['kind']} has no metadata.name. Add it")
    if not isinstance(metadata.get("namespace"), str | None):
        return Broken(name, at, f"{value['kind']} {called} has a metadata.namespace that is not text. Quote it")
    return Document({**value, "metadata": {**metadata, "name": called}}, name, at)


# The API server never reads files of these groups: kustomize, the kubelet, kubeadm, kind and k3d read them.
_READ_BY_PROGRAMS = frozenset(
    ("kustomize.config.k8s.io", "kubelet.config.k8s.io", "kubeadm.k8s.io", "kind.x-k8s.io", "k3d.io", "audit.k8s.io")
)


def _items_of(node: yaml.Node | None, number: int) -> Sequence[yaml.Node | None]:
    """Return the YAML node of each item of a List.

    Args:
        node: YAML node of the List; None if it is not known.
        number: Number of the items. If the YAML node has another number of items, the result is None for each item.
    """
    pairs = node.value if isinstance(node, yaml.MappingNode) else ()
    found = next((value for key, value in pairs if key.value == "items"), None)
    same = isinstance(found, yaml.SequenceNode) and len(found.value) == number
    return found.value if same and found is not None else [None] * number


def without_owned(objects: Sequence[Document]) -> list[Document]:
    """Return the objects without those whose controller is also in the list. For example, omit pods of a ReplicaSet."""
    known = {_key(one.manifest["kind"], one.manifest.get("metadata")) for one in objects}
    return [one for one in objects if not _controllers(one.manifest) & known]


def _key(kind: object, metadata: object) -> tuple[str, str]:
    """Return the kind and UID of an object, or its kind and name if it has no UID.

    For a reference in ``ownerReferences``, the result describes the owner.

    Args:
        kind: Kind in the object or in the reference.
        metadata: Metadata of the object, or the whole reference.
    """
    known = metadata if isinstance(metadata, Mapping) else {}
    return str(kind), str(known.get("uid") or known.get("name"))


def _controllers(manifest: Manifest) -> set[tuple[str, str]]:
    metadata = manifest.get("metadata")
    owners = metadata.get("ownerReferences") if isinstance(metadata, Mapping) else None
    given = [one for one in owners if isinstance(one, Mapping)] if isinstance(owners, list) else []
    return {_key(one.get("kind"), one) for one in given if one.get("controller") is True}

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
    """A loader that reads dates as text, as the API server does."""


_Loader.yaml_implicit_resolvers = {
    first: [one for one in resolvers if one[0] != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in _Loader.yaml_implicit_resolvers.items()
}


@dataclass(frozen=True)
class Document:
    """A Kubernetes object, and where the user keeps it.

    Attributes:
        manifest: Object as plain data.
        file: Path of the file as the user passed it, or ``<stdin>``. For an object from a cluster, the name of the
            context.
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
    """A part of a file that is not a Kubernetes object.

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
        broken: Parts that the reader could not read.
    """

    objects: Sequence[Document] = ()
    broken: Sequence[Broken] = ()

    @property
    def manifests(self) -> list[dict[str, Any]]:
        """Objects as plain data, in the same order."""
        return [dict(document.manifest) for document in self.objects]


def read(paths: Sequence[str], *, with_owned: bool = False) -> Documents:
    """Return the Kubernetes objects in files and folders.

    The reader accepts YAML and JSON with any number of documents, the output of ``helm template`` and of ``kubectl
    get -o yaml|json``. In a folder, it reads the files with the suffixes .yaml, .yml and .json, also in folders below
    it, and skips documents that are not Kubernetes objects, such as Helm values. If an object has a controller that is
    among the objects, the reader leaves it out: a dump of a cluster contains the pods of each Deployment too.

    Args:
        paths: Files and folders. ``-`` stands for standard input.
        with_owned: Whether the result also contains the objects whose controller is among the objects.

    Raises:
        CommandError: A path does not exist, or the operating system does not let the program read it.
    """
    objects: list[Document] = []
    broken: list[Broken] = []
    for path in paths:
        for name, text, is_named in _texts(path):
            for part in _parts(name, text, is_named):
                (broken if isinstance(part, Broken) else objects).append(part)  # type: ignore[arg-type]
    return Documents(objects if with_owned else without_owned(objects), broken)


def _texts(path: str) -> Iterator[tuple[str, str, bool]]:
    """Yield the name and the text of each file at a path, and whether the user named the file itself."""
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
    """Yield the objects in a text, and the parts that are not objects.

    Args:
        name: Name of the file for messages.
        text: Text of the file.
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
    """Yield the objects in one YAML document that begins on a line of a file."""
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
    """Yield the objects in a text that YAML rejects and JSON allows, for example because of tabs.

    If the text is not JSON either, yield the problem instead.

    Args:
        name: Name of the file.
        text: Text.
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
    """Yield the object that a YAML document contains, or the items of a List. Yield a problem for anything else.

    Args:
        name: Name of the file.
        value: Document as plain data.
        node: Document as PyYAML parsed it, with line numbers; None if they are not known.
        line: Number of the line in the file at which the text starts.
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
    """Return the object in a YAML document, or a problem if it has no name.

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
        number: Number of the items. If the YAML node has another number of them, the result is None for each item.
    """
    pairs = node.value if isinstance(node, yaml.MappingNode) else ()
    found = next((value for key, value in pairs if key.value == "items"), None)
    same = isinstance(found, yaml.SequenceNode) and len(found.value) == number
    return found.value if same and found is not None else [None] * number


def without_owned(objects: Sequence[Document]) -> list[Document]:
    """Omit each object whose controller is also in the list, and return the others."""
    known = {_key(one.manifest["kind"], one.manifest.get("metadata")) for one in objects}
    return [one for one in objects if not _controllers(one.manifest) & known]


def _key(kind: object, metadata: object) -> tuple[str, str]:
    """Return a key that an object and a reference to its owner share: the kind, and the UID or otherwise the name."""
    known = metadata if isinstance(metadata, Mapping) else {}
    return str(kind), str(known.get("uid") or known.get("name"))


def _controllers(manifest: Manifest) -> set[tuple[str, str]]:
    metadata = manifest.get("metadata")
    owners = metadata.get("ownerReferences") if isinstance(metadata, Mapping) else None
    given = [one for one in owners if isinstance(one, Mapping)] if isinstance(owners, list) else []
    return {_key(one.get("kind"), one) for one in given if one.get("controller") is True}

"""Checks of the patches that a user passes to `TalosGpuNode` as ``config_patches``.

A patch is a partial YAML document of the machine configuration: of the main document (``v1alpha1``), or of a document
with a ``kind``. ``talosctl`` merges the patches into the machine configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NoReturn

from gpu_constructs.catalog.platforms import Talos
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.kube import fields, placement, tables
from gpu_constructs.kube.plain_data import Shapes, at, below, plain
from gpu_constructs.talos.installer import replacement
from gpu_constructs.talos.manifests import (
    CRI_CUSTOMIZATION_PATH,
    DEFAULT_RUNTIME_DOCUMENT,
    DIRECTIVE,
    Document,
    cleared,
    is_deletion,
    node_labels_of,
    node_taints_of,
    registered_taints_of,
)
from gpu_constructs.talos.options import KernelModule, Role, check_node_labels, module_key, node_taints_are_kept

Deletion = tuple[tuple[str, ...], tuple[str, str] | None]
"""A deletion in a patch: a pair of the path of a value, and None if the patch deletes this value.

If the patch deletes an item of a list, the path is that of the list. The second element is then a key and its value,
which identify the item.
"""

_KIND = fields.regex(r"[A-Z][A-Za-z0-9]*\Z")
_IMAGE = fields.regex(r"[!-~]+\Z")
_STOCK_INSTALLER = "ghcr.io/siderolabs/installer"
_FACTORY = "factory.talos.dev/"


def table() -> Any:
    """Return the table ``config_shapes.yaml``: document kinds of Talos, their keys, and the types of their values."""
    return tables.table(__package__, "config_shapes.yaml")


def document_kinds(platform: Talos) -> dict[str, str]:
    """Return the minor Talos release that introduced each document kind, for example ``{"KubeNodeConfig": "1.14"}``.

    The result contains only the document kinds that the Talos release of ``platform`` reads.
    """
    lines = list(table()["kinds"])
    known = lines[: lines.index(platform.line) + 1]
    return {kind: line for line in known for kind in table()["kinds"][line].split()}


def patched(
    documents: Sequence[Document],
    patches: Sequence[Mapping[str, Any]],
    *,
    platform: Talos,
    role: Role,
    schematic_id: str,
) -> list[Document]:
    """Check the user's patches. Return the documents of the library, followed by these patches.

    ``schematic_id`` is the ID of the node's schematic. A patch must not set the installer image of another schematic.

    Raises:
        GpuConstructsError: If Talos would reject or ignore a patch, or if a patch changes or deletes a setting of the
            library.
    """
    ours: list[Document] = [plain("machine_config", document) for document in documents]
    theirs: list[Document] = []
    for index, given in enumerate(patches):
        field = f"config_patches[{index}]"
        patch = plain(field, _without_none(plain(field, given, may_be_none=True)))
        if patch:
            _check(field, patch, platform, role, schematic_id)
            _check_ours_stays(field, ours, patch)
            theirs.append(patch)
    _check_once([*ours, *theirs])
    return [*ours, *theirs]


def _without_none(value: Any) -> Any:
    """Return a patch without the keys whose value is None. Talos ignores such keys."""
    if isinstance(value, Mapping):
        return {key: _without_none(inner) for key, inner in value.items() if inner is not None}
    return [_without_none(inner) for inner in value] if isinstance(value, list | tuple) else value


def _check(field: str, patch: Document, platform: Talos, role: Role, schematic_id: str) -> None:
    list(_deletions(field, patch))
    values = cleared({key: value for key, value in patch.items() if key != DIRECTIVE})
    if "kind" in patch:
        _check_document(field, values, platform, is_deletion=DIRECTIVE in patch)
    else:
        _check_config(field, values, platform, role)
    for place, check in _CHECKS.items():
        if at(values, place):
            check(f"{field}.{place}", at(values, place))
    for place in ("machine.install.image", "installer.image"):
        if at(values, place):
            _check_image(f"{field}.{place}", at(values, place), schematic_id)
    check_node_labels(f"{field}: node labels", node_labels_of([values]), role)
    for key, text in node_taints_of([values]).items():
        with _within(field):
            placement.taint_of_text(key, text)


def _check_config(field: str, values: Document, platform: Talos, role: Role) -> None:
    Shapes(table()["structs"]).check(field, values, "config")
    if platform.machine_config == "multi-document":
        _check_moved(field, values, platform)
    of_patch, taints = at(values, "machine.type"), at(values, "machine.nodeTaints")
    fields.refuse_first(
        [
            (
                of_patch not in (None, role),
                f"{field}.machine.type must be {role!r}, the node's role, got {of_patch!r}. Use role={of_patch!r}",
            ),
            (
                taints and not node_taints_are_kept(platform, role),
                f"{field}.machine.nodeTaints must be left out, got {taints!r}: on {platform}, NodeRestriction prevents "
                "a worker from setting its own taints. Use taints=[Taint(...)], which the kubelet sets when it "
                "registers the node",
            ),
        ]
    )


def _check_moved(field: str, values: Document, platform: Talos) -> None:
    moved = {
        f"{level}.{name}": document
        for level, documents in table()["moved"].items()
        for name, document in documents.items()
        if _sets(at(values, f"{level}.{name}"))
    }
    if moved:
        ways_out = ", ".join(f"{document} for {place}" for place, document in moved.items())
        raise GpuConstructsError(
            f"{field} must not contain settings that have their own documents on {platform}, got {', '.join(moved)}. "
            f"Use {ways_out}. For a node that you upgraded from 1.13, keep the patch of Talos('1.13')"
        )


def _sets(value: Any) -> bool:
    return any(_sets(inner) for inner in value.values()) if value and isinstance(value, Mapping) else value is not None


def _refuse_extensions(field: str, extensions: object) -> None:
    items = extensions if isinstance(extensions, list) else [extensions]
    images = [item.get("image", "") if isinstance(item, Mapping) else item for item in items]
    ways_out = ", ".join(f"{replacement(str(image))} for {image!r}" for image in images)
    raise GpuConstructsError(
        f"{field} must be left out, because Talos 1.10 and later ignore this list and use the extensions in the "
        f"installer image, got {len(images)} items. Use {ways_out}"
    )


def _check_files(field: str, files: Sequence[Mapping[str, Any]]) -> None:
    for index, file in enumerate(files):
        fields.one_of(f"{field}[{index}].op", file.get("op"), table()["structs"]["file"]["op"].split("|"))
        path = file.get("path") or ""
        is_allowed = path.startswith(("/var/", "/etc/kubernetes/manifests/")) or path == CRI_CUSTOMIZATION_PATH
        if file["op"] == "create" and not is_allowed:
            raise GpuConstructsError(
                f"{field}[{index}].path must be below /var, or {CRI_CUSTOMIZATION_PATH}, got {path!r}: Talos creates "
                "no other file"
            )


def _check_module(field: str, module: Mapping[str, Any]) -> None:
    with _within(field):
        KernelModule(name=module.get("name") or "", parameters=module.get("parameters") or ())


def _check_registered_taints(field: str, taints: Any) -> None:
    Shapes(table()["structs"]).check(field, taints, "[taint]")
    for index, taint in enumerate(taints):
        with _within(f"{field}[{index}]"):
            placement.Taint(key=taint.get("key") or "", value=taint.get("value", ""), effect=taint.get("effect", ""))


_CHECKS: Mapping[str, Callable[[str, Any], None]] = {
    "machine.install.extensions": _refuse_extensions,
    "machine.files": _check_files,
    "machine.kernel.modules": partial(fields.each, _check_module),
    "machine.kubelet.extraConfig.registerWithTaints": _check_registered_taints,
    "config.registerWithTaints": _check_registered_taints,
}
"""Functions that check a value in a patch, by dotted path of the value."""


def _check_image(field: str, image: object, schematic_id: str) -> None:
    text = str(image)
    fields.refuse_first(
        [
            (
                not isinstance(image, str) or not _IMAGE.match(image),
                f"{field} must be an image reference, got {image!r}",
            ),
            (
                text.startswith(_STOCK_INSTALLER) or (text.startswith(_FACTORY) and schematic_id not in text),
                f"{field} must be an installer with this node's extensions, schematic {schematic_id}, got {image!r}. "
                "Leave it out, or register the schematic and use its image",
            ),
        ]
    )


def _check_document(field: str, values: Document, platform: Talos, *, is_deletion: bool) -> None:
    kind, name = values["kind"], values.get("name")
    _check_kind(field, kind, platform)
    if values.get("apiVersion") != "v1alpha1":
        raise GpuConstructsError(f"{field}.apiVersion must be 'v1alpha1', got {values.get('apiVersion')!r}")
    if kind in table()["structs"]:
        Shapes(table()["structs"]).check(field, values, kind)
    if kind == "KernelModuleConfig" and not is_deletion:
        _check_module(field, values)
    is_taken = kind == "CRICustomizationConfig" and name in ("customization", DEFAULT_RUNTIME_DOCUMENT)
    if is_taken and not is_deletion:
        raise GpuConstructsError(
            f"{field}.name must not be {name!r}, which "
            f"{'Talos reserves' if name == 'customization' else 'default_runtime=True uses'}. Use another name"
        )


def _check_kind(field: str, kind: object, platform: Talos) -> None:
    if not isinstance(kind, str) or not _KIND.match(kind):
        raise GpuConstructsError(f"{field}.kind must be the kind of a document, like 'KubeNodeConfig', got {kind!r}")
    kinds, later = document_kinds(platform), document_kinds(Talos(list(table()["kinds"])[-1]))
    way_out = fields.did_you_mean(kind, kinds)
    if kind in later:
        way_out = (
            f", a document from Talos {later[kind]} on. If its fields exist in the document without a kind, set them "
            "there"
        )
    fields.refuse_first(
        [(kind not in kinds, f"{field}.kind must be a document kind of {platform}, got {kind!r}{way_out}")]
    )


def _deletions(field: str, value: Any, path: tuple[str, ...] = (), *, in_item: bool = False) -> Iterator[Deletion]:
    """Yield a ``Deletion`` for each value and each list item that a patch deletes with ``$patch: delete``.

    For example, the patch ``machine: {sysctls: {$patch: delete}}`` yields ``(("machine", "sysctls"), None)``.
    For a list item, the second element is a pair that identifies the item, such as ``("interface", "eth0")``.

    Args:
        field: Path of the value in messages.
        value: Patch, or a value inside the patch.
        path: Keys from the root of the patch to the value.
        in_item: Whether the value is inside a list item.

    Raises:
        GpuConstructsError: Talos would reject the ``$patch`` key, or would delete more than the patch states.
    """
    if isinstance(value, Mapping) and DIRECTIVE in value:
        is_document = not path and "kind" in value
        if in_item or not (path or is_document) or not _deletes_all(value, is_document=is_document):
            _refuse_directive(
                field,
                value,
                "in a separate document, which has no other keys than kind and name"
                if not path
                else "and the only key of its mapping, outside of list items",
            )
        yield path, None
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _deletions(below(field, key), inner, (*path, key), in_item=in_item)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            place = f"{field}[{index}]"
            if is_deletion(item) and not in_item:
                yield path, _deleted_item(place, item)
            else:
                yield from _deletions(place, item, path, in_item=True)


def _deletes_all(value: Mapping[str, Any], *, is_document: bool) -> bool:
    others = [key for key in value if not is_document or key not in ("apiVersion", "kind", "name")]
    return others == [DIRECTIVE] and is_deletion(value)


def _deleted_item(field: str, item: Mapping[str, Any]) -> tuple[str, str]:
    others = [(key, value) for key, value in item.items() if key != DIRECTIVE]
    if len(others) != 1 or not isinstance(others[0][1], str):
        _refuse_directive(field, item, "in a list item with one other key, whose text identifies the item")
    return others[0]


def _refuse_directive(field: str, got: Mapping[str, Any], place: str) -> NoReturn:
    raise GpuConstructsError(
        f"{field}.{DIRECTIVE} must be 'delete' {place}, got {dict(got)!r}. Delete the entries one by one, or apply the "
        "deletion with talosctl in an earlier patch"
    )


def _check_ours_stays(field: str, ours: Sequence[Document], patch: Document) -> None:
    own = next((document for document in ours if _identity(document) == _identity(patch)), {})
    for path, item in _deletions(field, patch):
        found = at(own, path) if item is None else [one for one in at(own, path) or () if one.get(item[0]) == item[1]]
        if found:
            place = ".".join(path)
            what = f"{place}[{item[0]}={item[1]}]" if item else place or "the document"
            raise GpuConstructsError(
                f"{field} must not delete {what}, because it contains settings of this construct. Change these with "
                "keywords, delete other settings by their own keys, or apply the deletion with talosctl in an earlier "
                "patch"
            )
    _check_agrees(field, own, cleared(patch), ())


def _identity(document: Mapping[str, Any]) -> tuple[Any, ...]:
    kind, name = document.get("kind"), document.get("name")
    if kind == "KernelModuleConfig" and isinstance(name, str) and not is_deletion(document):
        name = module_key(name)
    return kind, name


def _check_agrees(field: str, ours: Any, theirs: Any, path: tuple[str, ...]) -> None:
    if path == ("machine", "install", "image"):
        return
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        own = {_spelt(key, path): value for key, value in ours.items()}
        for key, value in theirs.items():
            if _spelt(key, path) in own and not (path == () and key == "name"):
                _check_agrees(below(field, key), own[_spelt(key, path)], value, (*path, key))
    elif theirs is not None and not (isinstance(ours, list) and isinstance(theirs, list)) and ours != theirs:
        raise GpuConstructsError(
            f"{field} must not contradict the configuration of the node, got {theirs!r}, but the configuration has "
            f"{ours!r}"
        )


def _spelt(key: str, path: tuple[str, ...]) -> str:
    """Return a key of the section at ``path``, with dots in place of slashes if the section has kernel parameters.

    For example, ``net/core/bpf_jit_harden`` becomes ``net.core.bpf_jit_harden``. Other keys stay unchanged.
    """
    return key.replace("/", ".") if path[-1:] in (("sysctls",), ("params",)) else key


@contextmanager
def _within(field: str) -> Iterator[None]:
    try:
        yield
    except GpuConstructsError as error:
        raise GpuConstructsError(f"{field}: {error.problem}") from None


def _check_once(documents: Sequence[Document]) -> None:
    """Raise if lists in several documents of a machine configuration contradict each other.

    Talos joins these lists and does not check the result. For example, two lists must not contain the same taint.
    """
    values = [cleared(document) or {} for document in documents]
    configs = [document for document in values if "kind" not in document]
    paths = [file.get("path") for file in _listed(configs, "machine.files")]
    if paths.count(CRI_CUSTOMIZATION_PATH) > 1:
        raise GpuConstructsError(
            f"config_patches must not contain a second file {CRI_CUSTOMIZATION_PATH}, because Talos accepts only one, "
            f"got {paths.count(CRI_CUSTOMIZATION_PATH)}. Combine the contents in one file, and leave out "
            "default_runtime if this file sets default_runtime_name"
        )
    of_kind = [document for document in values if document.get("kind") == "KernelModuleConfig"]
    _check_modules_once([*_listed(configs, "machine.kernel.modules"), *of_kind])
    taints = [(taint["key"], taint.get("effect")) for taint in registered_taints_of(documents)]
    fields.refuse_first(
        (
            taints.count(taint) > 1,
            f"config_patches must not register a taint twice, got {taint!r}. Leave one out",
        )
        for taint in taints
    )


def _listed(configs: Sequence[Document], place: str) -> list[Mapping[str, Any]]:
    return [item for config in configs for item in at(config, place) or ()]


def _check_modules_once(modules: Sequence[Mapping[str, Any]]) -> None:
    first: dict[str, Sequence[str]] = {}
    for module in modules:
        name, parameters = module["name"], module.get("parameters") or []
        other = first.setdefault(module_key(name), parameters)
        if other != parameters:
            raise GpuConstructsError(
                f"config_patches must not load a kernel module twice, got {name!r} with {other!r} and with "
                f"{parameters!r}. Use kernel_modules=[KernelModule(name={name!r}, parameters=...)]"
            )

"""The user's own machine configuration beside ours: checked, and merged as Talos merges patches."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from gpu_constructs import _fields
from gpu_constructs._plain_data import below, plain
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.platforms import Talos
from gpu_constructs.taint import Taint, taint_of_text
from gpu_constructs.talos.config_merge import DIRECTIVE, Deletion, deletions, is_deletion, merged, without_deletions
from gpu_constructs.talos.config_schema import (
    CONFIG_KEYS,
    DOCUMENT_KEYS,
    FIRST_LINE_OF,
    MOVED,
    TEXT_MAPS,
    TYPE_OF,
    WORDS,
    document_kinds,
)
from gpu_constructs.talos.extensions import replacement
from gpu_constructs.talos.kernel_module import KernelModule, module_key
from gpu_constructs.talos.machine_config import (
    CRI_CUSTOMIZATION_PATH,
    DEFAULT_RUNTIME_DOCUMENT,
    Document,
    Role,
    node_labels_of,
    node_taints_are_kept,
    node_taints_of,
)
from gpu_constructs.talos.node_labels import check_node_labels

_CAME_FROM_1_13 = "a node that came from 1.13 keeps the patch of Talos('1.13'), which its configuration goes on with"
_SYSCTLS = {None: "machine.sysctls", "SysctlConfig": "params"}
_KIND = re.compile(r"[A-Z][A-Za-z0-9]*\Z")
_IMAGE = re.compile(r"[!-~]+\Z")
_STOCK_INSTALLER = "ghcr.io/siderolabs/installer"
_FACTORY = "factory.talos.dev/"


def patched(
    documents: Sequence[Document],
    patches: Sequence[Mapping[str, Any]],
    *,
    platform: Talos,
    role: Role,
    schematic_id: str,
) -> list[Document]:
    """Give our documents with the user's merged into them, or behind them where they are about something else.

    The user's are merged in their order as Talos merges patches, so that a later one wins. None may contradict or
    delete what is ours.

    Raises:
        GpuConstructsError: A patch that Talos would refuse, ignore, or that contradicts the node's keywords.
    """
    ours: list[Document] = [plain("machine_config", document) for document in documents]
    given = {
        field: plain(field, _without_none(plain(field, patch, may_be_none=True)))
        for field, patch in ((f"config_patches[{index}]", patch) for index, patch in enumerate(patches))
    }
    if any("kind" not in patch and _at(without_deletions(patch), "machine.install.image") for patch in given.values()):
        for document in ours:
            (_at(document, "machine") or {}).pop("install", None)
    result = list(ours)
    for field, patch in given.items():
        if not patch:
            continue
        removed = deletions(field, patch)
        _check(field, patch, platform=platform, role=role, schematic_id=schematic_id)
        own = next((i for i, other in enumerate(result) if _is_same(other, patch)), None)
        if own is not None and own < len(ours):
            _check_ours_stays(field, ours[own], patch, removed)
        if own is None:
            result.append(patch)
        elif patch.get("kind") == "KernelModuleConfig" and not is_deletion(patch):
            _check_module(field, result[own], without_deletions(patch))
            result[own] = {**patch, **result[own]}
        else:
            result[own] = merged(field, patch.get("kind"), result[own], patch)
    for document in result:
        if "kind" not in document:
            _settle_lists(document)
    return result


def _without_none(value: Any) -> Any:
    """Drop the keys without a value, which Talos reads as if they were not there."""
    if isinstance(value, Mapping):
        return {key: _without_none(inner) for key, inner in value.items() if inner is not None}
    return [_without_none(inner) for inner in value] if isinstance(value, list | tuple) else value


def _is_same(document: Document, patch: Document) -> bool:
    """Whether a patch is about a document; one that deletes a whole document leaves room for a new one."""
    if is_deletion(document):
        return False
    if is_deletion(patch):
        return _name(document) == _name(patch)
    return _identity(document) == _identity(patch)


def _name(document: Mapping[str, Any]) -> tuple[Any, ...]:
    return (document.get("kind"), document.get("name"))


def _identity(document: Mapping[str, Any]) -> tuple[Any, ...]:
    kind, name = _name(document)
    return (kind, module_key(name) if kind == "KernelModuleConfig" and isinstance(name, str) else name)


def _at(document: Mapping[str, Any], place: str) -> Any:
    value: Any = document
    for key in filter(None, place.split(".")):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _check(field: str, patch: Document, *, platform: Talos, role: Role, schematic_id: str) -> None:
    values = without_deletions(patch)
    kind = patch.get("kind")
    if kind is None:
        _check_config(field, patch, values, platform=platform, role=role, schematic_id=schematic_id)
    else:
        _check_kind(field, kind, platform)
        _check_document(field, patch, values, schematic_id=schematic_id)
    for place in TEXT_MAPS.get(kind, ()):
        _check_text_map(f"{field}.{place}", _at(values, place))
    check_node_labels(f"{field}: node labels", node_labels_of([values]), is_worker=role == "worker")
    for key, text in node_taints_of([values]).items():
        with _within(field):
            taint_of_text(key, text)


def _check_config(
    field: str, patch: Document, values: Document, *, platform: Talos, role: Role, schematic_id: str
) -> None:
    for place, keys in CONFIG_KEYS.items():
        where = f"{field}.{place}".rstrip(".")
        _check_keys(where, _mapping(field, patch, place), keys)
        _check_values(where, _mapping(field, values, place))
    if platform.machine_config == "multi-document":
        _check_moved(field, values, platform)
    of_patch = _at(values, "machine.type")
    if of_patch not in (None, role):
        raise GpuConstructsError(
            f"{field}.machine.type must be {role!r}, the node's role; got {of_patch!r}; use role={of_patch!r}"
        )
    _mapping(field, values, "machine.kubelet.extraConfig")
    install = _mapping(field, values, "machine.install")
    if install.get("extensions"):
        _refuse_install_extensions(f"{field}.machine.install.extensions", install["extensions"])
    if install.get("image"):
        _check_image(f"{field}.machine.install.image", install["image"], schematic_id)
    if _at(values, "machine.nodeTaints") and not node_taints_are_kept(platform, role):
        raise GpuConstructsError(
            f"{field}.machine.nodeTaints must be left out: on {platform} NodeRestriction keeps a worker from setting "
            f"its own taints; got {_at(values, 'machine.nodeTaints')!r}; use taints=[Taint(...)], which the kubelet "
            "gives when it registers the node"
        )
    for where, file in _items(field, patch, "machine.files"):
        _check_keys(where, file, ("content", "op", "path", "permissions"))
        _check_values(where, {"op": None, **file})
        path = file.get("path", "")
        is_allowed = path.startswith(("/var/", "/etc/kubernetes/manifests/")) or path == CRI_CUSTOMIZATION_PATH
        if file["op"] == "create" and not is_allowed:
            raise GpuConstructsError(
                f"{where}.path must be below /var, or {CRI_CUSTOMIZATION_PATH}: Talos creates no other file; "
                f"got {path!r}"
            )
    _check_registered_taints(field, patch, "machine.kubelet.extraConfig.registerWithTaints")
    for where, module in _items(field, patch, "machine.kernel.modules"):
        _check_keys(where, module, ("name", "parameters"))
        _check_values(where, module)
        _check_kernel_module(where, module)


def _check_registered_taints(field: str, patch: Document, place: str) -> None:
    for where, taint in _items(field, patch, place):
        _check_keys(where, taint, ("effect", "key", "timeAdded", "value"))
        with _within(where):
            Taint(key=taint.get("key") or "", value=taint.get("value", ""), effect=taint.get("effect", ""))


def _check_moved(field: str, values: Document, platform: Talos) -> None:
    moved = [
        (f"{level}.{name}", document)
        for level, documents in MOVED.items()
        for name, document in documents.items()
        if name in (_at(values, level) or ())
    ]
    if moved:
        raise GpuConstructsError(
            f"{field} must not hold what {platform} has documents for; got {', '.join(place for place, _ in moved)}; "
            f"use {', '.join(f'{document} for {place}' for place, document in moved)}; {_CAME_FROM_1_13}"
        )


def _mapping(field: str, patch: Document, place: str) -> Mapping[str, Any]:
    level = _at(patch, place)
    if level is not None and not isinstance(level, Mapping):
        raise GpuConstructsError(f"{field}.{place} must be a mapping; got {level!r}")
    return level or {}


def _check_keys(field: str, given: Mapping[str, Any], known: Sequence[str]) -> None:
    for key in given:
        if key not in known and not (is_deletion(given) and key == DIRECTIVE):
            raise GpuConstructsError(
                f"{field} has a key that Talos does not know; got {key!r}{_fields.did_you_mean(key, known)}"
            )


def _check_values(field: str, given: Mapping[str, Any]) -> None:
    for key, value in given.items():
        if key in WORDS:
            _fields.one_of(f"{field}.{key}", value, WORDS[key])
        what, is_it = TYPE_OF.get(key, ("", None))
        if is_it is not None and not is_it(value):
            raise GpuConstructsError(f"{field}.{key} must be {what}; got {value!r}")


def _items(field: str, patch: Document, place: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    value = _at(patch, place)
    if is_deletion(value):
        return
    if value is not None and not isinstance(value, list):
        raise GpuConstructsError(f"{field}.{place} must be a list; got {value!r}")
    for index, item in enumerate(value or ()):
        where = f"{field}.{place}[{index}]"
        if not isinstance(item, Mapping):
            raise GpuConstructsError(f"{where} must be a mapping; got {item!r}")
        if not is_deletion(item):
            yield where, item


def _check_kernel_module(field: str, module: Mapping[str, Any]) -> None:
    with _within(field):
        KernelModule(name=module.get("name") or "", parameters=module.get("parameters") or ())


def _refuse_install_extensions(field: str, extensions: object) -> None:
    items = extensions if isinstance(extensions, list) else [extensions]
    images = [item.get("image", "") if isinstance(item, Mapping) else item for item in items]
    ways_out = "; ".join(f"for {image!r} use {replacement(str(image))}" for image in images)
    raise GpuConstructsError(
        f"{field} must be left out: Talos has ignored it since 1.10, extensions come in the installer image; "
        f"got {len(images)}; {ways_out}"
    )


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _check_image(field: str, image: object, schematic_id: str) -> None:
    if not isinstance(image, str) or not _IMAGE.match(image):
        raise GpuConstructsError(f"{field} must be an image's reference; got {image!r}")
    if image.startswith(_STOCK_INSTALLER) or (image.startswith(_FACTORY) and schematic_id not in image):
        raise GpuConstructsError(
            f"{field} must be an installer with this node's extensions, schematic {schematic_id}; got {image!r}; "
            "leave it out, or register the schematic and name the image made of it"
        )


def _check_kind(field: str, kind: object, platform: Talos) -> None:
    if not isinstance(kind, str) or not _KIND.match(kind):
        raise GpuConstructsError(f"{field}.kind must be a document's, like 'KubeNodeConfig'; got {kind!r}")
    kinds = document_kinds(platform)
    if kind in kinds:
        return
    problem = f"{field}.kind must be one that {platform} has; got {kind!r}"
    if kind not in FIRST_LINE_OF:
        raise GpuConstructsError(f"{problem}{_fields.did_you_mean(kind, kinds)}")
    raise GpuConstructsError(
        f"{problem}, a document from Talos {FIRST_LINE_OF[kind]} on; give its fields, where there are such, "
        "in a patch without a kind"
    )


def _check_document(field: str, patch: Document, values: Document, *, schematic_id: str) -> None:
    kind = patch["kind"]
    if patch.get("apiVersion") != "v1alpha1":
        raise GpuConstructsError(f"{field}.apiVersion must be 'v1alpha1'; got {patch.get('apiVersion')!r}")
    if kind == "UnattendedInstallConfig" and _at(values, "installer.image"):
        _check_image(f"{field}.installer.image", _at(values, "installer.image"), schematic_id)
    if kind not in DOCUMENT_KEYS:
        return
    _check_keys(field, patch, DOCUMENT_KEYS[kind])
    _check_values(field, values)
    if kind == "KubeletConfig":
        _check_registered_taints(field, values, "config.registerWithTaints")
    name = values.get("name")
    if "name" in DOCUMENT_KEYS[kind] and (not isinstance(name, str) or not name):
        raise GpuConstructsError(f"{field}.name is required by {kind}; got {name!r}")
    if is_deletion(patch):
        return
    if kind == "KernelModuleConfig":
        _check_kernel_module(field, values)
    if kind == "CRICustomizationConfig" and name in ("customization", DEFAULT_RUNTIME_DOCUMENT):
        raise GpuConstructsError(
            f"{field}.name must be the user's own; got {name!r}, which is "
            f"{'reserved by Talos' if name == 'customization' else 'what default_runtime=True writes'}; "
            "give it another name"
        )


def _check_text_map(field: str, given: object) -> None:
    if given is None:
        return
    if not isinstance(given, Mapping):
        raise GpuConstructsError(f"{field} must be a mapping; got {given!r}")
    for key, value in given.items():
        if not isinstance(value, str):
            text = str(value).lower() if isinstance(value, bool) else str(value)
            raise GpuConstructsError(
                f"{field}[{key!r}] must be text; got {value!r} ({type(value).__name__}); write {text!r}"
            )


def _check_ours_stays(field: str, ours: Document, patch: Document, removed: Sequence[Deletion]) -> None:
    lost = next((deletion for deletion in removed if deletion.hits(ours)), None)
    if lost is not None:
        raise GpuConstructsError(
            f"{field} must not delete {lost}, where this node's own configuration lies; leave it to the keywords, "
            "delete what else lies there by its own key, or give the deletion to talosctl in a patch before this one"
        )
    values = without_deletions(patch)
    place = _SYSCTLS.get(patch.get("kind"), "")
    for key, value in (_at(values, place) or {}).items() if place else ():
        for other, own in (_at(ours, place) or {}).items():
            if key.replace("/", ".") == other.replace("/", "."):
                _check_agrees(below(f"{field}.{place}", key), own, value)
    _check_agrees(field, ours, values)


def _check_agrees(field: str, ours: Any, theirs: Any) -> None:
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        for key, value in ours.items():
            if key in theirs:
                _check_agrees(below(field, key), value, theirs[key])
    elif not (isinstance(ours, list) and isinstance(theirs, list)) and (ours, type(ours)) != (theirs, type(theirs)):
        raise GpuConstructsError(f"{field} must not contradict what is set already; got {theirs!r} beside {ours!r}")


@contextmanager
def _within(field: str) -> Iterator[None]:
    try:
        yield
    except GpuConstructsError as error:
        raise GpuConstructsError(f"{field}: {error.problem}") from None


def _check_module(field: str, own: Document, given: Document) -> None:
    if own.get("parameters", []) != (given.get("parameters") or []):
        raise GpuConstructsError(_twice(field, given["name"], own.get("parameters", []), given.get("parameters") or []))


def _twice(field: str, name: str, first: Sequence[str], second: Sequence[str]) -> str:
    return (
        f"{field} must not load a kernel module a second time; got {name!r} with {list(first)!r} and with "
        f"{list(second)!r}; use kernel_modules=[KernelModule(name={name!r}, parameters=...)]"
    )


def _settle_lists(document: Document) -> None:
    """Refuse list items that exclude each other; Talos appends without a look."""
    files = _listed(_at(document, "machine.files"))
    parts = [file for file in files if not is_deletion(file) and file.get("path") == CRI_CUSTOMIZATION_PATH]
    if len(parts) > 1:
        raise GpuConstructsError(
            f"config_patches must not hold a second file {CRI_CUSTOMIZATION_PATH}: Talos takes one; got {len(parts)}; "
            "join their contents in one, and leave default_runtime out where yours sets default_runtime_name"
        )
    listed = _listed(_at(document, "machine.kernel.modules"))
    modules: dict[str, dict[str, Any]] = {}
    for module in listed:
        if is_deletion(module):
            continue
        first = modules.setdefault(module_key(module["name"]), module)
        if first.get("parameters", []) != (module.get("parameters") or []):
            both = (first.get("parameters", []), module.get("parameters") or [])
            raise GpuConstructsError(_twice("config_patches", module["name"], *both))
    if modules:
        machine = document["machine"]
        deleted = [module for module in listed if is_deletion(module)]
        machine["kernel"] = {**machine["kernel"], "modules": [*modules.values(), *deleted]}
    seen: set[tuple[str, str]] = set()
    for taint in _listed(_at(document, "machine.kubelet.extraConfig.registerWithTaints")):
        identity = (taint.get("key", ""), taint.get("effect", ""))
        if identity in seen:
            raise GpuConstructsError(
                f"config_patches must not register a taint a second time; got {taint!r}; leave one out"
            )
        seen.add(identity)

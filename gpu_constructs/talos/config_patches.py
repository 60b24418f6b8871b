"""The user's own machine configuration beside ours: checked, and merged as Talos merges patches."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpu_constructs import _fields
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.platforms import Talos
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
from gpu_constructs.talos.taint import Taint

_CONFIG_KEYS: Mapping[str, tuple[str, ...]] = {
    "": ("version", "debug", "persist", "machine", "cluster"),
    "machine": tuple(
        "acceptedCAs baseRuntimeSpecOverrides ca certSANs controlPlane disks env features files install kernel kubelet "
        "logging network nodeAnnotations nodeLabels nodeTaints pods registries seccompProfiles sysctls sysfs "
        "systemDiskEncryption time token type udev".split()
    ),
    "machine.install": tuple(
        "disk diskSelector extensions extraKernelArgs grubUseUKICmdline image legacyBIOSSupport wipe".split()
    ),
    "machine.kernel": ("modules",),
    "machine.kubelet": tuple(
        "clusterDNS credentialProviderConfig defaultRuntimeSeccompProfileEnabled disableManifestsDirectory extraArgs "
        "extraConfig extraMounts image nodeIP registerWithFQDN skipNodeRegistration".split()
    ),
}
"""What Talos 1.10 to 1.13 read at the levels where a GPU node's configuration lies."""

_META = ("apiVersion", "kind")
DOCUMENT_KEYS: Mapping[str, tuple[str, ...]] = {
    "CRICustomizationConfig": (*_META, "name", "content"),
    "KernelModuleConfig": (*_META, "name", "parameters"),
    "KubeNodeConfig": (
        *(*_META, "annotations", "labels", "nodeIP"),
        *("registerWithFQDN", "skipNodeRegistration", "taints"),
    ),
    "KubeletConfig": (
        *(*_META, "clusterDNS", "config", "defaultRuntimeSeccompProfileEnabled"),
        *("extraArgs", "image"),
    ),
    "SysctlConfig": (*_META, "params"),
}
"""The documents of Talos 1.14 that took over from the levels above."""

_MOVED = {
    "files": "CRICustomizationConfig and EtcFileConfig",
    "install": "the installer image, which goes to talosctl",
    "kernel": "KernelModuleConfig",
    "kubelet": "KubeletConfig",
    "nodeAnnotations": "KubeNodeConfig",
    "nodeLabels": "KubeNodeConfig",
    "nodeTaints": "KubeNodeConfig",
    "sysctls": "SysctlConfig",
}
_TEXT_MAPS = {
    None: tuple(f"machine.{name}" for name in ("nodeAnnotations", "nodeLabels", "nodeTaints", "sysctls", "sysfs")),
    "KubeNodeConfig": ("annotations", "labels", "taints"),
    "SysctlConfig": ("params",),
}
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

    Raises:
        GpuConstructsError: A patch that Talos would refuse, ignore, or that contradicts the node's keywords.
    """
    result = [_plain("machine_config", document) for document in documents]
    if any(_at(patch, "machine.install.image") for patch in patches):
        result[0].get("machine", {}).pop("install", None)
    for index, patch in enumerate(patches):
        field = f"config_patches[{index}]"
        given = _plain(field, patch)
        kind = given.get("kind")
        if not isinstance(kind, str | None):
            raise GpuConstructsError(f"{field}.kind must be text; got {kind!r}")
        if kind is None:
            _check_config(field, given, platform=platform, role=role, schematic_id=schematic_id)
        else:
            _check_document(field, given, platform=platform, schematic_id=schematic_id)
        for place in _TEXT_MAPS.get(kind, ()):
            _check_text_map(f"{field}.{place}", _at(given, place))
        check_node_labels(f"{field}: node labels", node_labels_of([given]), is_worker=role == "worker")
        _check_taints(field, node_taints_of([given]))
        own = next((i for i, other in enumerate(result) if _identity(other) == _identity(given)), None)
        if own is None:
            result.append(given)
        elif kind == "KernelModuleConfig":
            _check_module(field, result[own], given)
        else:
            result[own] = _merged(field, result[own], given)
    for document in result:
        if "kind" not in document:
            _settle_lists(document["machine"])
    return result


def _identity(document: Mapping[str, Any]) -> tuple[Any, ...]:
    kind, name = document.get("kind"), document.get("name")
    return (kind, module_key(name) if kind == "KernelModuleConfig" and isinstance(name, str) else name)


def _plain(field: str, value: object) -> Any:
    """Copy what YAML can hold, and refuse the rest."""
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise GpuConstructsError(f"{field} must have text for keys; got {key!r}")
        return {key: _plain(_below(field, key), item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(f"{field}[{index}]", item) for index, item in enumerate(value)]
    if isinstance(value, str | bool | int | float):
        return value
    if value is None:
        raise GpuConstructsError(f"{field} must have a value; got None; leave it out")
    raise GpuConstructsError(f"{field} must be what YAML can hold; got {value!r} ({type(value).__name__})")


def _below(field: str, key: str) -> str:
    return f"{field}.{key}" if re.fullmatch(r"\w+", key) else f"{field}[{key!r}]"


def _at(document: Mapping[str, Any], place: str) -> Any:
    value: Any = document
    for key in filter(None, place.split(".")):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _check_config(field: str, patch: Document, *, platform: Talos, role: Role, schematic_id: str) -> None:
    if platform.machine_config == "multi-document":
        given = _mapping(field, patch, "machine")
        listed = [f"{place} for machine.{name}" for name, place in _MOVED.items() if name in given]
        raise GpuConstructsError(
            f"{field} must be a document with a kind on {platform}, which has one for each matter; got one without; "
            f"use {', '.join(listed) or 'the document for it'}"
        )
    for place, keys in _CONFIG_KEYS.items():
        _check_keys(f"{field}.{place}".rstrip("."), _mapping(field, patch, place), keys)
    _mapping(field, patch, "machine.kubelet.extraConfig")
    install = _mapping(field, patch, "machine.install")
    if install.get("extensions"):
        _refuse_install_extensions(f"{field}.machine.install.extensions", install["extensions"])
    if install.get("image"):
        _check_image(f"{field}.machine.install.image", install["image"], schematic_id)
    if _at(patch, "machine.nodeTaints") and not node_taints_are_kept(platform, role):
        raise GpuConstructsError(
            f"{field}.machine.nodeTaints must be left out: on {platform} NodeRestriction keeps a worker from setting "
            f"its own taints; got {_at(patch, 'machine.nodeTaints')!r}; use taints=[Taint(...)], which the kubelet "
            "gives when it registers the node"
        )
    for where, file in _items(field, patch, "machine.files"):
        _check_keys(where, file, ("content", "op", "path", "permissions"))
        path = str(file.get("path", ""))
        is_allowed = path.startswith(("/var/", "/etc/kubernetes/manifests/")) or path == CRI_CUSTOMIZATION_PATH
        if file.get("op") == "create" and not is_allowed:
            raise GpuConstructsError(
                f"{where}.path must be below /var, or {CRI_CUSTOMIZATION_PATH}: Talos creates no other file; "
                f"got {path!r}"
            )
    for where, taint in _items(field, patch, "machine.kubelet.extraConfig.registerWithTaints"):
        _check_keys(where, taint, ("effect", "key", "timeAdded", "value"))
        _check_taint(where, taint.get("key"), taint.get("value", ""), taint.get("effect"))
    for where, module in _items(field, patch, "machine.kernel.modules"):
        _check_keys(where, module, ("name", "parameters"))
        _kernel_module(where, module)


def _mapping(field: str, patch: Document, place: str) -> Mapping[str, Any]:
    level = _at(patch, place)
    if level is not None and not isinstance(level, Mapping):
        raise GpuConstructsError(f"{field}.{place} must be a mapping; got {level!r}")
    return level or {}


def _check_keys(field: str, given: Mapping[str, Any], known: Sequence[str]) -> None:
    for key in given:
        # Talos' own directives, as $patch: delete.
        if key not in known and not key.startswith("$"):
            raise GpuConstructsError(
                f"{field} has a key that Talos does not know; got {key!r}{_fields.did_you_mean(key, known)}"
            )


def _items(field: str, patch: Document, place: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    value = _at(patch, place)
    if value is not None and not isinstance(value, list):
        raise GpuConstructsError(f"{field}.{place} must be a list; got {value!r}")
    for index, item in enumerate(value or ()):
        where = f"{field}.{place}[{index}]"
        if not isinstance(item, Mapping):
            raise GpuConstructsError(f"{where} must be a mapping; got {item!r}")
        yield where, item


def _kernel_module(field: str, module: Mapping[str, Any]) -> KernelModule:
    try:
        return KernelModule(name=module.get("name") or "", parameters=module.get("parameters") or ())
    except GpuConstructsError as error:
        raise GpuConstructsError(f"{field}: {error.problem}") from None


def _refuse_install_extensions(field: str, extensions: object) -> None:
    images = [item.get("image", "") if isinstance(item, Mapping) else item for item in _listed(extensions)]
    ways_out = "; ".join(f"for {image!r} use {replacement(str(image))}" for image in images)
    raise GpuConstructsError(
        f"{field} must be left out: Talos has ignored it since 1.10, extensions come in the installer image; "
        f"got {len(images)}; {ways_out}"
    )


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _check_image(field: str, image: object, schematic_id: str) -> None:
    text = str(image)
    if text.startswith(_STOCK_INSTALLER) or (text.startswith(_FACTORY) and schematic_id not in text):
        raise GpuConstructsError(
            f"{field} must be an installer with this node's extensions, schematic {schematic_id}; got {image!r}; "
            "leave it out, or register the schematic and name the image made of it"
        )


def _check_document(field: str, patch: Document, *, platform: Talos, schematic_id: str) -> None:
    kind = patch["kind"]
    if patch.get("apiVersion") != "v1alpha1":
        raise GpuConstructsError(f"{field}.apiVersion must be 'v1alpha1'; got {patch.get('apiVersion')!r}")
    if kind == "UnattendedInstallConfig" and _at(patch, "installer.image"):
        _check_image(f"{field}.installer.image", _at(patch, "installer.image"), schematic_id)
    if kind not in DOCUMENT_KEYS:
        return
    if platform.machine_config == "v1alpha1":
        raise GpuConstructsError(
            f"{field}.kind must be one that {platform} has; got {kind!r}, a document of Talos 1.14; give its fields "
            "below machine, in a patch without a kind"
        )
    _check_keys(field, patch, DOCUMENT_KEYS[kind])
    name = patch.get("name")
    if "name" in DOCUMENT_KEYS[kind] and (not isinstance(name, str) or not name):
        raise GpuConstructsError(f"{field}.name is required by {kind}; got {name!r}")
    if kind == "KubeletConfig" and not patch.get("image"):
        raise GpuConstructsError(
            f"{field}.image is required by KubeletConfig; got {patch.get('image')!r}; name the kubelet's image"
        )
    if kind == "KernelModuleConfig":
        _kernel_module(field, patch)
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


def _check_taints(field: str, taints: Mapping[str, str]) -> None:
    for key, text in taints.items():
        value, colon, effect = text.partition(":")
        value, effect = (value, effect) if colon else ("", value)
        _check_taint(field, key, value, effect)


def _check_taint(field: str, key: Any, value: Any, effect: Any) -> None:
    try:
        Taint(key=key, value=value, effect=effect)
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


def _merged(field: str, ours: Any, theirs: Any) -> Any:
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        both = {key: _merged(_below(field, key), value, theirs[key]) for key, value in ours.items() if key in theirs}
        return {**ours, **theirs, **both}
    if isinstance(ours, list) and isinstance(theirs, list):
        return [*ours, *theirs]
    if ours == theirs and type(ours) is type(theirs):
        return ours
    raise GpuConstructsError(f"{field} must not contradict what is set already; got {theirs!r} beside {ours!r}")


def _settle_lists(machine: dict[str, Any]) -> None:
    """Refuse list items that exclude each other; Talos appends without a look."""
    parts = [file for file in machine.get("files", ()) if file.get("path") == CRI_CUSTOMIZATION_PATH]
    if len(parts) > 1:
        raise GpuConstructsError(
            f"config_patches must not hold a second file {CRI_CUSTOMIZATION_PATH}: Talos takes one; got {len(parts)}; "
            "join their contents in one, and leave default_runtime out where yours sets default_runtime_name"
        )
    modules: dict[str, dict[str, Any]] = {}
    for module in machine.get("kernel", {}).get("modules", ()):
        first = modules.setdefault(module_key(module["name"]), module)
        if first.get("parameters", []) != (module.get("parameters") or []):
            listed = (first.get("parameters", []), module.get("parameters") or [])
            raise GpuConstructsError(_twice("config_patches", module["name"], *listed))
    if modules:
        machine["kernel"] = {**machine["kernel"], "modules": list(modules.values())}
    seen: set[tuple[str, str]] = set()
    for taint in _at(machine, "kubelet.extraConfig.registerWithTaints") or ():
        identity = (taint["key"], taint["effect"])
        if identity in seen:
            raise GpuConstructsError(
                f"config_patches must not register a taint a second time; got {taint!r}; leave one out"
            )
        seen.add(identity)

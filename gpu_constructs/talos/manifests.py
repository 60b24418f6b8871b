"""The documents of the machine configuration of a GPU node, in the format of its Talos release.

A document is a YAML document, as a dict. Up to Talos 1.13, the library writes one document (``v1alpha1``) without a
``kind``. From Talos 1.14 on, it writes several documents with a ``kind``, such as KubeNodeConfig.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpu_constructs.catalog.platforms import Talos
from gpu_constructs.kube.placement import Taint, taint_of_text
from gpu_constructs.kube.plain_data import at
from gpu_constructs.records import dataclass
from gpu_constructs.talos.options import KernelModule, Role, node_taints_are_kept

Document = dict[str, Any]

DIRECTIVE = "$patch"
CRI_CUSTOMIZATION_PATH = "/etc/cri/conf.d/20-customization.part"
DEFAULT_RUNTIME_DOCUMENT = "nvidia-default-runtime"
_DEFAULT_RUNTIME = """\
[plugins."io.containerd.cri.v1.runtime".containerd]
  default_runtime_name = "nvidia"
"""


@dataclass(frozen=True, kw_only=True)
class NodeSettings:
    """The settings for the machine configuration of a GPU node. They do not depend on the Talos release."""

    kernel_modules: Sequence[KernelModule]
    sysctls: Mapping[str, str]
    node_labels: Mapping[str, str]
    node_annotations: Mapping[str, str]
    taints: Sequence[Taint]
    default_runtime: bool
    installer_image: str | None


def machine_config(platform: Talos, role: Role, settings: NodeSettings) -> list[Document]:
    """Return the documents of the machine configuration for a Talos release, as dicts.

    Args:
        platform: Talos release of the node.
        role: Role of the node, which determines how Talos sets its taints.
        settings: Settings of the node.
    """
    if platform.machine_config == "multi-document":
        return _documents(settings)
    return [_v1alpha1(settings, keeps_node_taints=node_taints_are_kept(platform, role))]


def _v1alpha1(settings: NodeSettings, *, keeps_node_taints: bool) -> Document:
    taints = settings.taints
    node_taints = {taint.key: taint.to_text() for taint in taints} if keeps_node_taints else {}
    register = [] if keeps_node_taints else [taint.to_manifest() for taint in taints]
    modules = [module.to_dict() for module in settings.kernel_modules]
    customization = {"content": _DEFAULT_RUNTIME, "path": CRI_CUSTOMIZATION_PATH, "op": "create"}
    machine = {
        "install": {"image": settings.installer_image} if settings.installer_image else {},
        "kernel": {"modules": modules} if modules else {},
        "sysctls": dict(settings.sysctls),
        "nodeLabels": dict(settings.node_labels),
        "nodeAnnotations": dict(settings.node_annotations),
        "nodeTaints": node_taints,
        "kubelet": {"extraConfig": {"registerWithTaints": register}} if register else {},
        "files": [customization] if settings.default_runtime else [],
    }
    return {"machine": _filled(machine)}


def _documents(settings: NodeSettings) -> list[Document]:
    documents = [_document("KernelModuleConfig", module.to_dict()) for module in settings.kernel_modules]
    if settings.sysctls:
        documents.append(_document("SysctlConfig", {"params": dict(settings.sysctls)}))
    if settings.default_runtime:
        customization = {"name": DEFAULT_RUNTIME_DOCUMENT, "content": _DEFAULT_RUNTIME}
        documents.append(_document("CRICustomizationConfig", customization))
    node = _filled(
        {
            "labels": dict(settings.node_labels),
            "annotations": dict(settings.node_annotations),
            "taints": {taint.key: taint.to_text() for taint in settings.taints},
        }
    )
    return [*documents, _document("KubeNodeConfig", node)] if node else documents


def _document(kind: str, content: Mapping[str, Any]) -> Document:
    return {"apiVersion": "v1alpha1", "kind": kind, **content}


def _filled(sections: Mapping[str, Any]) -> Document:
    return {name: section for name, section in sections.items() if section}


def is_deletion(value: object) -> bool:
    """Check whether a mapping in a patch contains ``$patch: delete``, which deletes the setting at the same path."""
    return isinstance(value, Mapping) and value.get(DIRECTIVE) == "delete"


def cleared(value: Any) -> Any:
    """Return a copy of a patch without ``$patch: delete``.

    In the copy, a value that the patch deletes is None, and list items that the patch deletes are absent.
    """
    if isinstance(value, Mapping):
        return None if is_deletion(value) else {key: cleared(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [cleared(inner) for inner in value if not is_deletion(inner)]
    return value


def _places(documents: Sequence[Document], places: Mapping[str | None, str]) -> Iterator[Any]:
    for document in documents:
        if document.get("kind") in places:
            yield at(document, places[document.get("kind")])


def _mapping_at(documents: Sequence[Document], places: Mapping[str | None, str]) -> dict[str, str]:
    found: dict[str, Any] = {}
    for section in _places(documents, places):
        found = {} if is_deletion(section) else found | (section or {})
    return {key: value for key, value in found.items() if isinstance(value, str)}


def installer_image_of(documents: Sequence[Document]) -> str | None:
    """Return the installer image that the documents set. Return None if no document sets it.

    If several documents set an installer image, the last document takes precedence.
    """
    images = [image for image in _places(documents, {None: "machine.install.image"}) if isinstance(image, str)]
    return images[-1] if images else None


def node_labels_of(documents: Sequence[Document]) -> dict[str, str]:
    """Return the node labels that the documents of a machine configuration set. Later documents take precedence."""
    return _mapping_at(documents, {None: "machine.nodeLabels", "KubeNodeConfig": "labels"})


def node_taints_of(documents: Sequence[Document]) -> dict[str, str]:
    """Return the taints in ``machine.nodeTaints`` or, since Talos 1.14, in the document KubeNodeConfig.

    The keys of the result are the keys of the taints. The values are texts with the value and the effect of the taint,
    such as ``true:NoSchedule``.
    """
    return _mapping_at(documents, {None: "machine.nodeTaints", "KubeNodeConfig": "taints"})


def registered_taints_of(documents: Sequence[Document]) -> list[dict[str, str]]:
    """Return the taints that the kubelet sets when it registers the node, as dicts with ``key``, ``value``, ``effect``.

    They are in ``registerWithTaints`` of the documents.
    """
    places: Mapping[str | None, str] = {
        None: "machine.kubelet.extraConfig.registerWithTaints",
        "KubeletConfig": "config.registerWithTaints",
    }
    lists = [cleared(taints) or [] for taints in _places(documents, places)]
    return [_filled({m: taint.get(m) for m in ("key", "value", "effect")}) for taints in lists for taint in taints]


def taints_of(documents: Sequence[Document]) -> list[dict[str, str]]:
    """Return all taints that Talos or the kubelet sets on the node, as dicts with the fields of a Kubernetes taint."""
    node_taints = node_taints_of(documents).items()
    return registered_taints_of(documents) + [taint_of_text(key, text).to_manifest() for key, text in node_taints]

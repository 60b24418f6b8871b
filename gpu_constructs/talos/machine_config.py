"""The machine configuration of a GPU node, in the shape that its Talos release reads."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.platforms import Talos
from gpu_constructs.taint import Taint, taint_of_text
from gpu_constructs.talos.config_merge import without_deletions
from gpu_constructs.talos.kernel_module import KernelModule, module_key

Role = Literal["worker", "controlplane"]
Document = dict[str, Any]

BPF_JIT_HARDEN = "net.core.bpf_jit_harden"
CRI_CUSTOMIZATION_PATH = "/etc/cri/conf.d/20-customization.part"
DEFAULT_RUNTIME_DOCUMENT = "nvidia-default-runtime"
_SYSCTL = re.compile(r"[!-~]+\Z")
_DEFAULT_RUNTIME = """\
[plugins."io.containerd.cri.v1.runtime".containerd]
  default_runtime_name = "nvidia"
"""


@dataclass(frozen=True, kw_only=True)
class NodeSettings:
    """What a GPU node's machine configuration says, whatever its shape."""

    kernel_modules: Sequence[KernelModule]
    sysctls: Mapping[str, str]
    node_labels: Mapping[str, str]
    node_annotations: Mapping[str, str]
    taints: Sequence[Taint]
    default_runtime: bool
    installer_image: str | None


def merged_modules(defaults: Sequence[str], given: Sequence[KernelModule]) -> tuple[KernelModule, ...]:
    """Give the modules to load, those with parameters of the user's in the place of the bare ones.

    Raises:
        GpuConstructsError: A module is given twice with different parameters.
    """
    modules = {module_key(name): KernelModule(name=name) for name in defaults}
    named: dict[str, KernelModule] = {}
    for module in given:
        key = module_key(module.name)
        if key in named and list(named[key].parameters) != list(module.parameters):
            raise GpuConstructsError(
                f"kernel_modules must name a module once; got {module.name!r} with {list(named[key].parameters)!r} and "
                f"with {list(module.parameters)!r}"
            )
        named[key] = module
    return tuple((modules | named).values())


def merged_sysctls(platform: Talos, given: Mapping[str, str]) -> dict[str, str]:
    """Give the kernel parameters, those the release needs among them.

    Raises:
        GpuConstructsError: A value that contradicts what the release needs.
    """
    for key in given:
        if not key:
            raise GpuConstructsError("sysctls must not have an empty key; got ''")
        if not _SYSCTL.match(key):
            raise GpuConstructsError(
                f"sysctls must have kernel parameters like 'vm.nr_hugepages' for keys; got {key!r}"
            )
    needed = {BPF_JIT_HARDEN: "1"} if platform.needs_bpf_jit_harden else {}
    for key, other in given.items():
        value = needed.get(key.replace("/", "."), other)
        if other != value:
            raise GpuConstructsError(
                f"sysctls[{key!r}] must be {value!r} on {platform}, where nvidia-container-cli loads a BPF program; "
                f"got {other!r}; leave it out"
            )
    return dict(sorted({**needed, **given}.items()))


def node_taints_are_kept(platform: Talos, role: Role) -> bool:
    """Whether the node may set taints that the machine configuration lists as the node's.

    Elsewhere they are the kubelet's, which gives them when it registers the node.
    """
    return role == "controlplane" or platform.node_taints_reach_workers


def check_taints(platform: Talos, role: Role, taints: Sequence[Taint]) -> None:
    """Refuse two taints of which the configuration has room for one."""
    is_keyed = node_taints_are_kept(platform, role)
    seen: set[tuple[str, ...]] = set()
    for taint in taints:
        identity = (taint.key,) if is_keyed else (taint.key, taint.effect)
        if identity in seen:
            raise GpuConstructsError(f"taints must hold {' '.join(identity)!r} once; got it twice")
        seen.add(identity)


def machine_config(platform: Talos, role: Role, settings: NodeSettings) -> list[Document]:
    """Give the documents, in the shape that the platform reads."""
    if platform.machine_config == "multi-document":
        return _documents(settings)
    return [_v1alpha1(settings, keeps_node_taints=node_taints_are_kept(platform, role))]


def _v1alpha1(settings: NodeSettings, *, keeps_node_taints: bool) -> Document:
    taints = settings.taints
    node_taints = {taint.key: taint.to_text() for taint in taints} if keeps_node_taints else {}
    register = [] if keeps_node_taints else [taint.to_manifest() for taint in taints]
    modules = [module.to_dict() for module in settings.kernel_modules]
    customization = {"content": _DEFAULT_RUNTIME, "path": CRI_CUSTOMIZATION_PATH, "op": "create"}
    sections: dict[str, Any] = {
        "install": {"image": settings.installer_image} if settings.installer_image else {},
        "kernel": {"modules": modules} if modules else {},
        "sysctls": dict(settings.sysctls),
        "nodeLabels": dict(settings.node_labels),
        "nodeAnnotations": dict(settings.node_annotations),
        "nodeTaints": node_taints,
        "kubelet": {"extraConfig": {"registerWithTaints": register}} if register else {},
        "files": [customization] if settings.default_runtime else [],
    }
    return {"machine": {name: section for name, section in sections.items() if section}}


def _documents(settings: NodeSettings) -> list[Document]:
    documents = [_document("KernelModuleConfig", **module.to_dict()) for module in settings.kernel_modules]
    if settings.sysctls:
        documents.append(_document("SysctlConfig", params=dict(settings.sysctls)))
    if settings.default_runtime:
        documents.append(_document("CRICustomizationConfig", name=DEFAULT_RUNTIME_DOCUMENT, content=_DEFAULT_RUNTIME))
    node = {
        "labels": dict(settings.node_labels),
        "annotations": dict(settings.node_annotations),
        "taints": {taint.key: taint.to_text() for taint in settings.taints},
    }
    given = {name: section for name, section in node.items() if section}
    return [*documents, _document("KubeNodeConfig", **given)] if given else documents


def _document(kind: str, **fields: Any) -> Document:
    return {"apiVersion": "v1alpha1", "kind": kind, **fields}


def installer_image_of(documents: Sequence[Document]) -> str | None:
    """Give the installer that the documents name."""
    installs = (_part(document, "machine", "install") for document in documents if "kind" not in document)
    return next((install["image"] for install in installs if install.get("image")), None)


def node_labels_of(documents: Sequence[Document]) -> Mapping[str, str]:
    """Give the node labels that the documents set."""
    return _of_node(documents, "nodeLabels", "labels")


def node_taints_of(documents: Sequence[Document]) -> Mapping[str, str]:
    """Give the taints that the documents list as the node's."""
    return _of_node(documents, "nodeTaints", "taints")


def taints_of(documents: Sequence[Document]) -> list[dict[str, str]]:
    """Give all taints that the documents give to the node, as Kubernetes writes them."""
    found: list[dict[str, str]] = []
    for document in documents:
        place = {None: ("machine", "kubelet", "extraConfig"), "KubeletConfig": ("config",)}.get(document.get("kind"))
        config = _part(document, *place) if place else {}
        for taint in config.get("registerWithTaints", ()):
            found.append({member: taint[member] for member in ("key", "value", "effect") if taint.get(member)})
    return found + [taint_of_text(key, text).to_manifest() for key, text in node_taints_of(documents).items()]


def _of_node(documents: Sequence[Document], legacy: str, field: str) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for document in documents:
        kind = document.get("kind")
        if kind in (None, "KubeNodeConfig"):
            found |= _part(document, "machine", legacy) if kind is None else _part(document, field)
    return found


def _part(document: Document, *path: str) -> Mapping[str, Any]:
    part: Any = without_deletions(document)
    for key in path:
        part = part.get(key) or {}
    return part  # type: ignore[no-any-return]

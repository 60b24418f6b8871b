"""A Talos node with GPUs: its machine configuration and the schematic of its installer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from constructs import Construct

from gpu_constructs.catalog.platforms import MachineConfigShape, Platform, Talos
from gpu_constructs.errors import GpuConstructsError, short_errors
from gpu_constructs.facts.provided import GpuNodes, Provided
from gpu_constructs.kube import fields, plain_data
from gpu_constructs.kube.placement import Taint
from gpu_constructs.kube.side_files import SideFile
from gpu_constructs.kube.yaml_text import yaml_text
from gpu_constructs.talos.installer import (
    GDRDRV,
    OWNER,
    Branch,
    GpuArchitecture,
    KernelModuleType,
    TalosSchematic,
    driver_version,
    gpu_extensions,
    newest_known_release,
    patch_release,
)
from gpu_constructs.talos.manifests import (
    Document,
    NodeSettings,
    installer_image_of,
    machine_config,
    node_labels_of,
    taints_of,
)
from gpu_constructs.talos.options import (
    GDRDRV_MODULE,
    NVIDIA_MODULES,
    KernelModule,
    Role,
    check_node_labels,
    check_taints,
    labels_of_node,
    merged_modules,
    merged_sysctls,
    module_key,
)
from gpu_constructs.tree.construct import GpuConstruct, checked

_NOT_TALOS = "platform must be Talos(...), whose configuration this is; got {}; leave the TalosGpuNode out"
IMAGE_FACTORY = "factory.talos.dev"
_WHEN: Mapping[MachineConfigShape, str] = {
    "v1alpha1": (
        "For a node's first configuration. To change it later, apply the whole configuration anew: a second patch "
        "would append its lists to those of the first."
    ),
    "multi-document": (
        "May be applied to a node again: documents are known by kind and name. Only lists in them, as parameters of "
        "kernel modules, are appended."
    ),
}

InstallerPlatform = Literal[
    "akamai",
    "alibabacloud",
    "aws",
    "azure",
    "cloudstack",
    "digital-ocean",
    "equinixMetal",
    "exoscale",
    "gcp",
    "hcloud",
    "metal",
    "nocloud",
    "opennebula",
    "openstack",
    "oracle",
    "scaleway",
    "upcloud",
    "vmware",
    "vultr",
]


class TalosGpuNode(GpuConstruct):
    """The machine configuration of Talos nodes with GPUs, and the schematic of the installer they need.

    Emits no Kubernetes object. ``synth`` writes to ``dist/machine-config/``:

    - ``<name>.yaml``, a patch for ``talosctl``: one v1alpha1 document until Talos 1.13, from 1.14 on a
      document for each matter;
    - ``<name>.patch-1.yaml`` and so on, the user's own patches, for ``talosctl`` to merge behind it in this order;
    - ``<name>.schematic.yaml``, to be registered once with an Image Factory, which then builds the installer.

    Attributes:
        name: Name of the files.
        platform: The Talos release.
        extensions: The system extensions, sorted.
        schematic: The schematic, with its ``id``.
        machine_config: The documents of the machine configuration, the user's patches last.
        driver_version: The NVIDIA driver on the node; None for a platform without patch release, or an unknown one.

    Source:
        siderolabs/talos@v1.12.11, v1.14.0-rc.1:pkg/machinery/config/types; siderolabs/extensions@v1.12.11:nvidia-gpu
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        platform: Platform,
        name: str | None = None,
        role: Role = "worker",
        kernel_module_type: KernelModuleType = "open",
        branch: Branch = "production",
        gpu_architecture: GpuArchitecture | None = None,
        fabric_manager: bool = False,
        gdrdrv: bool = False,
        extensions: Sequence[str] = (),
        extra_kernel_args: Sequence[str] = (),
        kernel_modules: Sequence[KernelModule] = (),
        sysctls: Mapping[str, str] | None = None,
        default_runtime: bool = False,
        operator_validator: bool = True,
        node_labels: Mapping[str, str] | None = None,
        node_annotations: Mapping[str, str] | None = None,
        taints: Sequence[Taint] = (),
        installer_platform: InstallerPlatform = "metal",
        secureboot: bool = False,
        config_patches: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """Describe the node.

        Args:
            scope: The App, or anything in it.
            id: Construct id.
            platform: ``Talos("1.12.11")``; with the line alone (``Talos("1.12")``) no installer can be named.
            name: Name of the files; the id by default.
            role: ``worker`` or ``controlplane``: what a node may set of itself.
            kernel_module_type: ``open``, NVIDIA's choice since Turing, or ``proprietary``.
            branch: ``production`` or ``lts``, NVIDIA's driver branches.
            gpu_architecture: When given, the kernel modules and the branch are checked to drive it.
            fabric_manager: For NVSwitch systems (HGX).
            gdrdrv: GPUDirect RDMA copies (GDRCopy): extension and kernel module, from Talos 1.12 on. Its
                parameters: ``kernel_modules=[KernelModule(name="gdrdrv", parameters=[...])]``.
            extensions: Further official extensions, with or without ``siderolabs/``.
            extra_kernel_args: Kernel arguments of the installed system, one in each item.
            kernel_modules: Further kernel modules, or parameters for NVIDIA's own.
            sysctls: Kernel parameters.
            default_runtime: Whether every container of the node runs under the NVIDIA runtime. False by
                default: GPU pods name the runtime class.
            operator_validator: Whether the GPU Operator's validator runs on the node. False sets the label
                that ``ValidationBridge`` needs. A node that the operator has labelled keeps the operator's value,
                which Talos does not own; there first run
                ``kubectl label node <node> nvidia.com/gpu.deploy.operator-validator=false --overwrite``.
            node_labels: Labels of the node.
            node_annotations: Annotations of the node.
            taints: Taints of the node. A worker has them from its registration on; taint one that is
                registered already with ``kubectl taint`` first, or Talos 1.14 sets none of its labels either.
            installer_platform: Where the node runs, in Talos' words.
            secureboot: Whether the installer is signed for SecureBoot.
            config_patches: Further machine configuration: partial v1alpha1 documents and documents with a kind.
                Each is checked here and written to a file of its own, which ``talosctl`` merges behind the node's.
                From 1.14 on most of a v1alpha1 document has a document with a kind of its own.
                ``{"$patch": "delete"}`` deletes what is not this node's own.

        Raises:
            GpuConstructsError: What Talos would refuse, what it would silently ignore, and what contradicts
                itself.
        """
        if not isinstance(platform, Talos):
            raise GpuConstructsError(_NOT_TALOS.format(platform))
        name = id if name is None else name
        fields.dns_label("name", name)
        names = gpu_extensions(
            platform=platform,
            kernel_module_type=kernel_module_type,
            branch=branch,
            fabric_manager=fabric_manager,
            gdrdrv=gdrdrv,
            further=extensions,
            gpu_architecture=gpu_architecture,
        )
        schematic = TalosSchematic(official_extensions=names, extra_kernel_args=extra_kernel_args)
        labels = labels_of_node(node_labels or {}, operator_validator=operator_validator)
        check_node_labels("node_labels", labels, role)
        fields.labels("node_annotations", dict.fromkeys(node_annotations or {}, ""))
        check_taints(platform, role, taints)
        suffix = "-secureboot" if secureboot else ""
        image = _image(platform, f"{installer_platform}-installer{suffix}/{schematic.id}")
        settings = NodeSettings(
            kernel_modules=_modules(names, kernel_modules),
            sysctls=merged_sysctls(platform, sysctls or {}),
            node_labels=dict(sorted(labels.items())),
            node_annotations=dict(sorted((node_annotations or {}).items())),
            taints=taints,
            default_runtime=default_runtime,
            installer_image=image,
        )
        documents = [
            plain_data.plain("machine_config", document) for document in machine_config(platform, role, settings)
        ]
        own = len(documents)
        if config_patches:
            # What Talos knows is for those who patch.
            from gpu_constructs.talos.config_patches import patched

            documents = patched(documents, config_patches, platform=platform, role=role, schematic_id=schematic.id)
        super().__init__(scope, id)
        self._image, self._own = image, own
        self.name = name
        self.platform = platform
        self.extensions = names
        self.schematic = schematic
        self.machine_config: list[Document] = documents
        self.driver_version = driver_version(platform, branch)
        self.provides = Provided(
            gpu_nodes=GpuNodes(labels=node_labels_of(documents), taints=taints_of(documents)),
            platform=platform,
            gpu_runtime="default" if default_runtime else None,
        )

    @property
    def schematic_id(self) -> str:
        """The identifier of the schematic, computed without asking a factory."""
        return self.schematic.id

    @property
    @short_errors
    def installer_image(self) -> str:
        """The installer that an Image Factory builds from the schematic.

        Raises:
            GpuConstructsError: The platform is a line, of which no installer is made.
        """
        if self._image is None:
            raise GpuConstructsError(
                "installer_image needs a platform with its patch release, which is the installer's tag; got "
                f"Talos({self.platform.version!r}); give the one you run, like "
                f"Talos({newest_known_release(self.platform)!r})",
                path=self.node.path,
            )
        return self._image

    def side_files(self) -> list[SideFile]:
        """Return the node's own patch, the user's patches that go behind it, and the schematic."""
        own, further = self.machine_config[: self._own], self.machine_config[self._own :]
        comment, schematic = _comment(self, self._image, len(further)), f"# Schematic {self.schematic_id}\n"
        texts = {
            self.name: comment + "---\n".join(yaml_text(document) for document in own),
            **{f"{self.name}.patch-{number}": yaml_text(patch) for number, patch in enumerate(further, start=1)},
            f"{self.name}.schematic": schematic + self.schematic.to_yaml(),
        }
        return [SideFile(folder="machine-config", stem=stem, text=text) for stem, text in texts.items()]


def _comment(node: TalosGpuNode, image: str | None, further: int) -> str:
    """Return what the documents cannot state: which installer the node must run, and which patches follow."""
    image = (
        installer_image_of(node.machine_config)
        or image
        or f"none named, {node.platform} has no patch release: <platform>-installer/<schematic>:v<release>"
    )
    patches = ", ".join(f"{node.name}.patch-{number}.yaml" for number in range(1, further + 1))
    return (
        f"# For {node.platform}; the extensions come with the installer.\n"
        f"# {_WHEN[node.platform.machine_config]}\n"
        + (f"# Patches to apply after this one, in this order: {patches}\n" if further else "")
        + f"# Installer: {image}\n"
        f"# Schematic, to be registered once with {IMAGE_FACTORY}: {node.name}.schematic.yaml\n"
    )


def _modules(extensions: Sequence[str], given: Sequence[KernelModule]) -> tuple[KernelModule, ...]:
    has_gdrdrv = OWNER + GDRDRV in extensions
    if not has_gdrdrv and any(module_key(module.name) == GDRDRV_MODULE for module in given):
        raise GpuConstructsError("kernel_modules must not hold 'gdrdrv' without its extension; use gdrdrv=True")
    return merged_modules((*NVIDIA_MODULES, *[GDRDRV_MODULE] * has_gdrdrv), given)


def _image(platform: Talos, name: str) -> str | None:
    release = patch_release(platform)
    return None if release is None else f"{IMAGE_FACTORY}/{name}:v{release}"

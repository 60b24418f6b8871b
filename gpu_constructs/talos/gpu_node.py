"""A Talos node with GPUs: its machine configuration and the schematic of its installer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from constructs import Construct

from gpu_constructs import _fields
from gpu_constructs._construct import GpuConstruct, checked
from gpu_constructs._plain_data import plain
from gpu_constructs._yaml import yaml_text
from gpu_constructs.errors import GpuConstructsError, short_errors
from gpu_constructs.platforms import MachineConfigShape, Platform, Talos
from gpu_constructs.provided import GpuNodes, Provided
from gpu_constructs.side_files import SideFile
from gpu_constructs.taint import Taint
from gpu_constructs.talos.driver_versions import Branch, driver_version, newest_known_release, patch_release
from gpu_constructs.talos.extensions import GDRDRV, OWNER, GpuArchitecture, KernelModuleType, gpu_extensions
from gpu_constructs.talos.kernel_module import GDRDRV_MODULE, NVIDIA_MODULES, KernelModule, module_key
from gpu_constructs.talos.machine_config import (
    Document,
    NodeSettings,
    Role,
    check_taints,
    installer_image_of,
    machine_config,
    merged_modules,
    merged_sysctls,
    node_labels_of,
    taints_of,
)
from gpu_constructs.talos.node_labels import OPERATOR_VALIDATOR, check_node_labels
from gpu_constructs.talos.schematic import TalosSchematic

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
    - ``<name>.schematic.yaml``, to be registered once with an Image Factory, which then builds the installer.

    Attributes:
        name: Of the files.
        platform: The Talos release.
        extensions: The system extensions, sorted.
        schematic: The schematic, with its ``id``.
        machine_config: The documents of the machine configuration.

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
            name: Of the files; the id by default.
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
            config_patches: Further machine configuration: partial v1alpha1 documents and documents with a kind,
                merged in their order as Talos merges patches; from 1.14 on most of a v1alpha1 document has a
                document with a kind of its own. ``{"$patch": "delete"}`` deletes what is not this node's own.

        Raises:
            GpuConstructsError: What Talos would refuse, what it would silently ignore, and what contradicts
                itself.
        """
        if not isinstance(platform, Talos):
            raise GpuConstructsError(
                f"platform must be Talos(...), whose configuration this is; got {platform}; leave the TalosGpuNode out"
            )
        name = id if name is None else name
        _fields.dns_label("name", name)
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
        labels = _labels(operator_validator, node_labels or {})
        check_node_labels("node_labels", labels, is_worker=role == "worker")
        _fields.labels("node_annotations", dict.fromkeys(node_annotations or {}, ""))
        check_taints(platform, role, taints)
        has_gdrdrv = OWNER + GDRDRV in names
        if not has_gdrdrv and any(module_key(module.name) == GDRDRV_MODULE for module in kernel_modules):
            raise GpuConstructsError("kernel_modules must not hold 'gdrdrv' without its extension; use gdrdrv=True")
        image = _installer_image(platform, installer_platform, secureboot, schematic)
        settings = NodeSettings(
            kernel_modules=merged_modules((*NVIDIA_MODULES, *[GDRDRV_MODULE] * has_gdrdrv), kernel_modules),
            sysctls=merged_sysctls(platform, sysctls or {}),
            node_labels=dict(sorted(labels.items())),
            node_annotations=dict(sorted((node_annotations or {}).items())),
            taints=taints,
            default_runtime=default_runtime,
            installer_image=image,
        )
        documents = machine_config(platform, role, settings)
        if config_patches:
            # What Talos knows and how it merges is for those who patch.
            from gpu_constructs.talos.config_patches import patched

            documents = patched(documents, config_patches, platform=platform, role=role, schematic_id=schematic.id)
        else:
            documents = [plain("machine_config", document) for document in documents]
        super().__init__(scope, id)
        self.name = name
        self.platform = platform
        self.extensions = names
        self.schematic = schematic
        self.machine_config: list[Document] = documents
        self._branch: Branch = branch
        self._image = image
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

    @property
    def driver_version(self) -> str | None:
        """The NVIDIA driver on the node; None for a platform without patch release, or one we do not know."""
        return driver_version(self.platform, self._branch)

    def side_files(self) -> list[SideFile]:
        """Give the patch and the schematic."""
        patch = "---\n".join(yaml_text(document) for document in self.machine_config)
        schematic = f"# Schematic {self.schematic_id}\n{self.schematic.to_yaml()}"
        return [
            SideFile(folder="machine-config", stem=self.name, text=self._comment() + patch),
            SideFile(folder="machine-config", stem=f"{self.name}.schematic", text=schematic),
        ]

    def _comment(self) -> str:
        """Say what the documents cannot: which installer the node must run."""
        image = (
            installer_image_of(self.machine_config)
            or self._image
            or (f"none named, {self.platform} has no patch release: <platform>-installer/<schematic>:v<release>")
        )
        return (
            f"# For {self.platform}; the extensions come with the installer.\n"
            f"# {_WHEN[self.platform.machine_config]}\n"
            f"# Installer: {image}\n"
            f"# Schematic, to be registered once with {IMAGE_FACTORY}: {self.name}.schematic.yaml\n"
        )


def _labels(operator_validator: bool, given: Mapping[str, str]) -> dict[str, str]:
    if operator_validator:
        return dict(given)
    if given.get(OPERATOR_VALIDATOR, "false") != "false":
        raise GpuConstructsError(
            f"node_labels[{OPERATOR_VALIDATOR!r}] must be 'false' with operator_validator=False; "
            f"got {given[OPERATOR_VALIDATOR]!r}; leave it out"
        )
    return {**given, OPERATOR_VALIDATOR: "false"}


def _installer_image(
    platform: Talos, installer_platform: InstallerPlatform, secureboot: bool, schematic: TalosSchematic
) -> str | None:
    release = patch_release(platform)
    suffix = "-secureboot" if secureboot else ""
    if release is None:
        return None
    return f"{IMAGE_FACTORY}/{installer_platform}-installer{suffix}/{schematic.id}:v{release}"

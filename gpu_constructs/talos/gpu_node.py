"""`TalosGpuNode`: the machine configuration of Talos nodes with GPUs, and the schematic of their installer image."""

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

_NOT_TALOS = "platform must be Talos(...), got {}. Leave out the TalosGpuNode on other platforms"
IMAGE_FACTORY = "factory.talos.dev"
_WHEN: Mapping[MachineConfigShape, str] = {
    "v1alpha1": (
        "Apply this patch only to the first configuration of a node. To change it later, apply the whole configuration "
        "again, because a second patch would append its lists to those of the first."
    ),
    "multi-document": (
        "You can apply this patch again if it contains no lists, because Talos merges documents of the same kind and "
        "name. A list, such as parameters of a kernel module, would grow: Talos appends its items again. In that case, "
        "apply the whole configuration instead."
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
    """The machine configuration of Talos nodes with GPUs, and the schematic of the installer image that they need.

    A schematic is a list of system extensions and kernel arguments, from which an Image Factory builds the installer
    image.

    Emits no Kubernetes object. ``synth`` writes these files to ``dist/machine-config/``:

    - ``<name>.yaml``: a machine configuration patch for ``talosctl``. Up to Talos 1.13, it contains one v1alpha1
      document. From Talos 1.14 on, it contains several documents, such as KubeNodeConfig.
    - ``<name>.patch-1.yaml``, ``<name>.patch-2.yaml`` and so on: the patches in ``config_patches``. Pass them to
      ``talosctl`` in this order after ``<name>.yaml``.
    - ``<name>.schematic.yaml``: the schematic. Register it once with an Image Factory.

    Attributes:
        name: First part of the names of these files.
        platform: The Talos release of the nodes.
        extensions: Names of the system extensions of the installer image, sorted.
        schematic: The schematic, with its ``id``.
        machine_config: The documents of the machine configuration as dicts, followed by the patches in
            ``config_patches``.
        driver_version: Version of the NVIDIA driver on the nodes. None if ``platform`` has no patch number, such as
            ``Talos("1.12")``, or if the library does not know the Talos release.

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
        """Create the configuration of the nodes.

        Args:
            scope: The App, or a construct in the App.
            id: ID of the construct.
            platform: Talos release of the nodes, such as ``Talos("1.12.11")``. A release that has no patch number, such
                as ``Talos("1.12")``, has no installer image.
            name: First part of the names of the output files. None, the default: the construct ID.
            role: ``worker`` or ``controlplane``. It determines which labels and taints a node may set on itself.
            kernel_module_type: Variant of the NVIDIA kernel modules: ``open``, which NVIDIA recommends since Turing, or
                ``proprietary``.
            branch: NVIDIA driver branch: ``production`` or ``lts``.
            gpu_architecture: Architecture of the GPUs. If you set it, the library checks that the kernel modules and
                the driver branch support it.
            fabric_manager: Whether to add the Fabric Manager, which NVSwitch systems (HGX) need.
            gdrdrv: Whether to add GPUDirect RDMA copies (GDRCopy), as a system extension and a kernel module. Needs
                Talos 1.12 or later. To set parameters of the module, use ``kernel_modules=[KernelModule(name="gdrdrv",
                parameters=[...])]``.
            extensions: Names of other official system extensions to add. You can omit the prefix ``siderolabs/``.
            extra_kernel_args: Kernel arguments of the installed system, one in each item.
            kernel_modules: Further kernel modules. To set parameters of an NVIDIA module, add a ``KernelModule`` with
                the name of this module.
            sysctls: Kernel parameters (sysctls) by name.
            default_runtime: Whether every container of the node runs under the NVIDIA runtime. False by default,
                because GPU pods select this runtime by their runtime class.
            operator_validator: Whether the validator of the GPU Operator runs on the node. False sets the node label
                that ``ValidationBridge(strategy="markers")`` needs. If the GPU Operator has already labeled the node,
                Talos does not own the label and cannot change it. On such a node, first run ``kubectl label node <node>
                nvidia.com/gpu.deploy.operator-validator=false --overwrite``.
            node_labels: Labels of the node.
            node_annotations: Annotations of the node.
            taints: Taints of the node. The kubelet of a worker sets them when it registers the node. If a worker is
                already registered, first set the taints with ``kubectl taint``. Otherwise, the node does not get the
                taints and, from Talos 1.14 on, does not get new labels either.
            installer_platform: Machine or cloud on which the node runs, by its name in Talos, such as ``metal``.
            secureboot: Whether to use the signed installer image for SecureBoot.
            config_patches: Patches of the machine configuration that the nodes also need: partial v1alpha1 documents,
                and documents with a kind. The library checks each patch and writes it to its own file
                ``<name>.patch-<number>.yaml``. From Talos 1.14 on, most sections of a v1alpha1 document have their own
                document kind, which a patch must use. ``{"$patch": "delete"}`` must not delete settings of this
                construct.

        Raises:
            GpuConstructsError: If Talos would reject or silently ignore a setting, or if settings contradict each
                other.
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
            # The table of document kinds is large, so only nodes with patches load it.
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
        """The ID of the schematic. The library computes it without a request to an Image Factory."""
        return self.schematic.id

    @property
    @short_errors
    def installer_image(self) -> str:
        """The reference of the installer image that an Image Factory builds from the schematic.

        Raises:
            GpuConstructsError: If ``platform`` has no patch number. Only patch releases have an installer image.
        """
        if self._image is None:
            raise GpuConstructsError(
                "installer_image needs a platform with a patch release, because the image tag contains it, got "
                f"Talos({self.platform.version!r}). Use the release that you run, for example "
                f"Talos({newest_known_release(self.platform)!r})",
                path=self.node.path,
            )
        return self._image

    def side_files(self) -> list[SideFile]:
        """Return the files that ``synth`` writes: the generated patch, your ``config_patches``, and the schematic."""
        own, further = self.machine_config[: self._own], self.machine_config[self._own :]
        comment, schematic = _comment(self, self._image, len(further)), f"# Schematic {self.schematic_id}\n"
        texts = {
            self.name: comment + "---\n".join(yaml_text(document) for document in own),
            **{f"{self.name}.patch-{number}": yaml_text(patch) for number, patch in enumerate(further, start=1)},
            f"{self.name}.schematic": schematic + self.schematic.to_yaml(),
        }
        return [SideFile(folder="machine-config", stem=stem, text=text) for stem, text in texts.items()]


def _comment(node: TalosGpuNode, image: str | None, further: int) -> str:
    """Return the comment at the top of the file ``<name>.yaml`` with the machine configuration patch.

    The comment contains the installer image and the names of the other patch files.

    Args:
        node: Construct of the node.
        image: Installer image; None if the Talos release has no patch number.
        further: Number of patches in ``config_patches``, each of which has its own file.
    """
    image = (
        installer_image_of(node.machine_config)
        or image
        or f"<platform>-installer/<schematic>:v<release>, because {node.platform} has no patch release"
    )
    patches = ", ".join(f"{node.name}.patch-{number}.yaml" for number in range(1, further + 1))
    return (
        f"# For {node.platform}. The installer contains the extensions.\n"
        f"# {_WHEN[node.platform.machine_config]}\n"
        + (f"# Patches to apply after this one, in this order: {patches}\n" if further else "")
        + f"# Installer: {image}\n"
        f"# Schematic, which you must register once with {IMAGE_FACTORY}: {node.name}.schematic.yaml\n"
    )


def _modules(extensions: Sequence[str], given: Sequence[KernelModule]) -> tuple[KernelModule, ...]:
    has_gdrdrv = OWNER + GDRDRV in extensions
    if not has_gdrdrv and any(module_key(module.name) == GDRDRV_MODULE for module in given):
        raise GpuConstructsError("kernel_modules must not contain 'gdrdrv' without its extension. Use gdrdrv=True")
    return merged_modules((*NVIDIA_MODULES, *[GDRDRV_MODULE] * has_gdrdrv), given)


def _image(platform: Talos, name: str) -> str | None:
    release = patch_release(platform)
    return None if release is None else f"{IMAGE_FACTORY}/{name}:v{release}"

"""Kernel modules, labels, taints and kernel parameters that a user may set for a Talos node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from gpu_constructs.catalog.platforms import Talos
from gpu_constructs.errors import GpuConstructsError, refuse_if
from gpu_constructs.kube import fields
from gpu_constructs.kube.placement import Taint
from gpu_constructs.records import dataclass, regex

Role = Literal["worker", "controlplane"]

NVIDIA_MODULES = ("nvidia", "nvidia_uvm", "nvidia_drm", "nvidia_modeset")
"""NVIDIA modules that the node must load by name. The system extension prevents the kernel from loading them itself."""

GDRDRV_MODULE = "gdrdrv"
OPERATOR_VALIDATOR = "nvidia.com/gpu.deploy.operator-validator"
"""Node label with the value ``false`` if the validator of the GPU Operator must not run on the node."""

_BPF_JIT_HARDEN = "net.core.bpf_jit_harden"
_SYSCTL = regex(r"[!-~]+\Z")
_GUARDED = regex(r"(?:.*\.)?(?:kubernetes|k8s)\.io")
_OPEN = regex(r"(?:.*\.)?(?:kubelet|node)\.kubernetes\.io")
# kubernetes/kubernetes:staging/src/k8s.io/kubelet/pkg/apis/well_known_labels.go
_KUBELETS_OWN = frozenset(
    """beta.kubernetes.io/arch beta.kubernetes.io/instance-type beta.kubernetes.io/os
    failure-domain.beta.kubernetes.io/region failure-domain.beta.kubernetes.io/zone kubernetes.io/arch
    kubernetes.io/hostname kubernetes.io/os topology.kubernetes.io/region topology.kubernetes.io/zone""".split()
)


@dataclass(frozen=True, kw_only=True)
class KernelModule(fields.Options):
    """A kernel module that the node loads at boot.

    Attributes:
        name: Name of the module, for example ``nvidia_peermem``.
        parameters: Parameters of the module, one in each item, for example ``NVreg_EnableGpuFirmware=0``.

    Raises:
        GpuConstructsError: If the kernel would reject the name or a parameter.
    """

    name: str
    parameters: Sequence[str] = ()

    _CHECKS: ClassVar[fields.Checks] = {
        "name": fields.matching(r"[A-Za-z0-9_-]+\Z", "be a module's name (letters, digits, '_', '-')"),
        "parameters": fields.each_matching(
            r"[A-Za-z_][A-Za-z0-9_.-]*(=[!-~]*)?\Z", "contain one 'name=value' in each item, without spaces"
        ),
    }

    def to_dict(self) -> dict[str, Any]:
        """Return the kernel module as a dict with the field names of the Talos machine configuration."""
        return {"name": self.name, **({"parameters": list(self.parameters)} if self.parameters else {})}


def module_key(name: str) -> str:
    """Return the name by which the kernel knows a module, with underscores in place of dashes."""
    return name.replace("-", "_")


def merged_modules(defaults: Sequence[str], given: Sequence[KernelModule]) -> tuple[KernelModule, ...]:
    """Return the kernel modules to load. A module of the user replaces the default module with the same name.

    Raises:
        GpuConstructsError: If a module occurs twice with different parameters.
    """
    named: dict[str, KernelModule] = {}
    for module in given:
        first = named.setdefault(module_key(module.name), module)
        if list(first.parameters) != list(module.parameters):
            raise GpuConstructsError(
                f"kernel_modules must name a module once, got {module.name!r} with {list(first.parameters)!r} and "
                f"with {list(module.parameters)!r}"
            )
    return tuple(({module_key(name): KernelModule(name=name) for name in defaults} | named).values())


def merged_sysctls(platform: Talos, given: Mapping[str, str]) -> dict[str, str]:
    """Return the kernel parameters of the user together with those that the Talos release requires.

    Raises:
        GpuConstructsError: If a key is not a kernel parameter, or a value contradicts what the release requires.
    """
    needed = {_BPF_JIT_HARDEN: "1"} if platform.needs_bpf_jit_harden else {}
    for key, got in given.items():
        refuse_if(not _SYSCTL.match(key), "sysctls", "have kernel parameters like 'vm.nr_hugepages' as keys", key)
        value = needed.get(key.replace("/", "."), got)
        if got != value:
            raise GpuConstructsError(
                f"sysctls[{key!r}] must be {value!r} on {platform}, where nvidia-container-cli loads a BPF program, "
                f"got {got!r}. Leave it out"
            )
    return dict(sorted({**needed, **given}.items()))


def node_taints_are_kept(platform: Talos, role: Role) -> bool:
    """Check whether Talos itself may set the taints that the machine configuration lists for the node.

    If Talos may not set them, the kubelet sets them when it registers the node.
    """
    return role == "controlplane" or platform.node_taints_reach_workers


def check_taints(platform: Talos, role: Role, taints: Sequence[Taint]) -> None:
    """Raise an error if two taints would have the same key in the machine configuration."""
    is_keyed = node_taints_are_kept(platform, role)
    seen: set[tuple[str, ...]] = set()
    for taint in taints:
        identity = (taint.key,) if is_keyed else (taint.key, taint.effect)
        if identity in seen:
            raise GpuConstructsError(f"taints must contain {' '.join(identity)!r} once, got it twice")
        seen.add(identity)


def may_label_itself(key: str) -> bool:
    """Check whether the admission plugin NodeRestriction lets a node set the label with this key on itself."""
    domain = key.rpartition("/")[0]
    return not _GUARDED.fullmatch(domain) or key in _KUBELETS_OWN or _OPEN.fullmatch(domain) is not None


def check_node_labels(field: str, labels: Mapping[str, str], role: Role) -> None:
    """Raise an error if a label would never reach the node.

    Talos sets the labels of a worker with the credentials of that worker. If the API server rejects one label, Talos
    sets none of them.
    """
    fields.labels(field, labels)
    for key in labels:
        if role == "worker" and not may_label_itself(key):
            raise GpuConstructsError(
                f"{field} must not contain labels that NodeRestriction forbids to a worker, because Talos would then "
                f"set none of them, got {key!r}. Use kubectl label, or a key outside kubernetes.io and k8s.io"
            )


def labels_of_node(labels: Mapping[str, str], *, operator_validator: bool) -> dict[str, str]:
    """Return the labels of the node, as the user sets them.

    If ``operator_validator`` is False, the result also contains the label that keeps the validator of the GPU Operator
    off the node.
    """
    if operator_validator:
        return dict(labels)
    if labels.get(OPERATOR_VALIDATOR, "false") != "false":
        raise GpuConstructsError(
            f"node_labels[{OPERATOR_VALIDATOR!r}] must be 'false' with operator_validator=False, "
            f"got {labels[OPERATOR_VALIDATOR]!r}. Leave it out"
        )
    return {**labels, OPERATOR_VALIDATOR: "false"}

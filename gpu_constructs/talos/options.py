"""Options of `TalosGpuNode` and their checks: kernel modules, labels, taints and kernel parameters of a Talos node."""

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
"""NVIDIA kernel modules that the machine configuration must list.

The system extension prevents the kernel from loading these modules automatically.
"""

GDRDRV_MODULE = "gdrdrv"
OPERATOR_VALIDATOR = "nvidia.com/gpu.deploy.operator-validator"
"""Key of a node label. With the value ``false``, the validator of the GPU Operator does not run on the node."""

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
    """Return the name of a kernel module with underscores in place of dashes, because the kernel treats both alike."""
    return name.replace("-", "_")


def merged_modules(defaults: Sequence[str], given: Sequence[KernelModule]) -> tuple[KernelModule, ...]:
    """Return the kernel modules that the node loads. A module of the user replaces a default module of the same name.

    Args:
        defaults: Names of the default modules.
        given: Modules of the user.

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
    """Return the kernel parameters of the user, and the kernel parameters that the Talos release requires.

    Raises:
        GpuConstructsError: If a key is not a kernel parameter, or a value contradicts a value that the Talos release
            requires.
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
    """Check whether Talos itself can set taints on a node, from ``machine.nodeTaints`` or KubeNodeConfig.

    If not, the API server would reject these taints. The library then uses ``registerWithTaints``, with which the
    kubelet sets the taints when it registers the node.
    """
    return role == "controlplane" or platform.node_taints_reach_workers


def check_taints(platform: Talos, role: Role, taints: Sequence[Taint]) -> None:
    """Raise if the machine configuration cannot contain all taints, because two taints have the same key."""
    is_keyed = node_taints_are_kept(platform, role)
    seen: set[tuple[str, ...]] = set()
    for taint in taints:
        identity = (taint.key,) if is_keyed else (taint.key, taint.effect)
        if identity in seen:
            raise GpuConstructsError(f"taints must contain {' '.join(identity)!r} once, got it twice")
        seen.add(identity)


def may_label_itself(key: str) -> bool:
    """Check whether the admission plugin NodeRestriction allows a node to set a label with this key on itself."""
    domain = key.rpartition("/")[0]
    return not _GUARDED.fullmatch(domain) or key in _KUBELETS_OWN or _OPEN.fullmatch(domain) is not None


def check_node_labels(field: str, labels: Mapping[str, str], role: Role) -> None:
    """Raise if a label is invalid, or if the API server would reject a label that Talos sets on a worker.

    Talos sets the labels of a worker with the credentials of this worker. If the API server rejects one label, Talos
    sets no label at all.

    Args:
        field: Name of the option in messages.
        labels: Labels of the node.
        role: Role of the node.
    """
    fields.labels(field, labels)
    for key in labels:
        if role == "worker" and not may_label_itself(key):
            raise GpuConstructsError(
                f"{field} must not contain labels that NodeRestriction forbids to a worker, because Talos would then "
                f"set none of them, got {key!r}. Use kubectl label, or a key outside kubernetes.io and k8s.io"
            )


def labels_of_node(labels: Mapping[str, str], *, operator_validator: bool) -> dict[str, str]:
    """Return the labels of the node that the machine configuration sets.

    Args:
        labels: Labels of the user.
        operator_validator: Whether the validator of the GPU Operator runs on the node. If False, the result also
            contains the label ``nvidia.com/gpu.deploy.operator-validator=false``.
    """
    if operator_validator:
        return dict(labels)
    if labels.get(OPERATOR_VALIDATOR, "false") != "false":
        raise GpuConstructsError(
            f"node_labels[{OPERATOR_VALIDATOR!r}] must be 'false' with operator_validator=False, "
            f"got {labels[OPERATOR_VALIDATOR]!r}. Leave it out"
        )
    return {**labels, OPERATOR_VALIDATOR: "false"}

"""Kernel modules, labels, taints and kernel parameters that a user may state for a Talos node."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from gpu_constructs.catalog.platforms import Talos
from gpu_constructs.errors import GpuConstructsError, refuse_if
from gpu_constructs.kube import fields
from gpu_constructs.kube.placement import Taint

Role = Literal["worker", "controlplane"]

NVIDIA_MODULES = ("nvidia", "nvidia_uvm", "nvidia_drm", "nvidia_modeset")
"""Modules to name: the extension keeps the kernel from loading them by itself."""

GDRDRV_MODULE = "gdrdrv"
OPERATOR_VALIDATOR = "nvidia.com/gpu.deploy.operator-validator"
"""Node label whose value ``false`` keeps the GPU Operator's validator off a node."""

_BPF_JIT_HARDEN = "net.core.bpf_jit_harden"
_SYSCTL = re.compile(r"[!-~]+\Z")
_GUARDED = re.compile(r"(?:.*\.)?(?:kubernetes|k8s)\.io")
_OPEN = re.compile(r"(?:.*\.)?(?:kubelet|node)\.kubernetes\.io")
# kubernetes/kubernetes:staging/src/k8s.io/kubelet/pkg/apis/well_known_labels.go
_KUBELETS_OWN = frozenset(
    """beta.kubernetes.io/arch beta.kubernetes.io/instance-type beta.kubernetes.io/os
    failure-domain.beta.kubernetes.io/region failure-domain.beta.kubernetes.io/zone kubernetes.io/arch
    kubernetes.io/hostname kubernetes.io/os topology.kubernetes.io/region topology.kubernetes.io/zone""".split()
)


@dataclass(frozen=True, kw_only=True)
class KernelModule(fields.Options):
    """A kernel module to load; the words are those of Talos.

    Attributes:
        name: Name of the module, ``nvidia_peermem``.
        parameters: Parameters of the module, one in each item: ``NVreg_EnableGpuFirmware=0``.

    Raises:
        GpuConstructsError: A name or a parameter that the kernel would not take.
    """

    name: str
    parameters: Sequence[str] = ()

    _CHECKS: ClassVar[fields.Checks] = {
        "name": fields.matching(r"[A-Za-z0-9_-]+\Z", "be a module's name (letters, digits, '_', '-')"),
        "parameters": fields.each_matching(
            r"[A-Za-z_][A-Za-z0-9_.-]*(=[!-~]*)?\Z", "hold one 'name=value' in each item, without spaces"
        ),
    }

    def to_dict(self) -> dict[str, Any]:
        """Return the module as Talos writes it."""
        return {"name": self.name, **({"parameters": list(self.parameters)} if self.parameters else {})}


def module_key(name: str) -> str:
    """Return the name by which the kernel knows a module."""
    return name.replace("-", "_")


def merged_modules(defaults: Sequence[str], given: Sequence[KernelModule]) -> tuple[KernelModule, ...]:
    """Return the modules to load, the user's in place of the bare ones.

    Raises:
        GpuConstructsError: A module is given twice with different parameters.
    """
    named: dict[str, KernelModule] = {}
    for module in given:
        first = named.setdefault(module_key(module.name), module)
        if list(first.parameters) != list(module.parameters):
            raise GpuConstructsError(
                f"kernel_modules must name a module once; got {module.name!r} with {list(first.parameters)!r} and "
                f"with {list(module.parameters)!r}"
            )
    return tuple(({module_key(name): KernelModule(name=name) for name in defaults} | named).values())


def merged_sysctls(platform: Talos, given: Mapping[str, str]) -> dict[str, str]:
    """Return the kernel parameters, with those that the release needs.

    Raises:
        GpuConstructsError: A key that no kernel has, or a value that contradicts what the release needs.
    """
    needed = {_BPF_JIT_HARDEN: "1"} if platform.needs_bpf_jit_harden else {}
    for key, got in given.items():
        refuse_if(not _SYSCTL.match(key), "sysctls", "have kernel parameters like 'vm.nr_hugepages' for keys", key)
        value = needed.get(key.replace("/", "."), got)
        if got != value:
            raise GpuConstructsError(
                f"sysctls[{key!r}] must be {value!r} on {platform}, where nvidia-container-cli loads a BPF program; "
                f"got {got!r}; leave it out"
            )
    return dict(sorted({**needed, **given}.items()))


def node_taints_are_kept(platform: Talos, role: Role) -> bool:
    """Check whether the node may set taints that its machine configuration lists as the node's.

    If not, the kubelet sets them when it registers the node.
    """
    return role == "controlplane" or platform.node_taints_reach_workers


def check_taints(platform: Talos, role: Role, taints: Sequence[Taint]) -> None:
    """Raise for two taints if the configuration has room for one."""
    is_keyed = node_taints_are_kept(platform, role)
    seen: set[tuple[str, ...]] = set()
    for taint in taints:
        identity = (taint.key,) if is_keyed else (taint.key, taint.effect)
        if identity in seen:
            raise GpuConstructsError(f"taints must hold {' '.join(identity)!r} once; got it twice")
        seen.add(identity)


def may_label_itself(key: str) -> bool:
    """Check whether the admission plugin NodeRestriction lets a node's own credentials set a label."""
    domain = key.rpartition("/")[0]
    return not _GUARDED.fullmatch(domain) or key in _KUBELETS_OWN or _OPEN.fullmatch(domain) is not None


def check_node_labels(field: str, labels: Mapping[str, str], role: Role) -> None:
    """Raise for labels that would never reach the node.

    Talos sets the labels of a worker by the worker's own credentials; one refused label keeps off all others.
    """
    fields.labels(field, labels)
    for key in labels:
        if role == "worker" and not may_label_itself(key):
            raise GpuConstructsError(
                f"{field} must not hold labels that NodeRestriction keeps a worker from setting; got {key!r}, and "
                "none of the labels would be set; use kubectl label, or a key outside kubernetes.io and k8s.io"
            )


def labels_of_node(labels: Mapping[str, str], *, operator_validator: bool) -> dict[str, str]:
    """Return the labels, with the one that keeps the operator's validator off where it must not run."""
    if operator_validator:
        return dict(labels)
    if labels.get(OPERATOR_VALIDATOR, "false") != "false":
        raise GpuConstructsError(
            f"node_labels[{OPERATOR_VALIDATOR!r}] must be 'false' with operator_validator=False; "
            f"got {labels[OPERATOR_VALIDATOR]!r}; leave it out"
        )
    return {**labels, OPERATOR_VALIDATOR: "false"}

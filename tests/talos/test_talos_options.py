import pytest

from gpu_constructs import Talos
from gpu_constructs.kube.placement import Taint
from gpu_constructs.talos.options import KernelModule, check_node_labels, check_taints, merged_modules, merged_sysctls
from refusals import refusal
from tables import cases

LEGACY, NEW = Talos("1.12"), Talos("1.14")


@cases
def test_an_invalid_kernel_module_is_rejected(given, message):
    assert refusal(KernelModule, **given).startswith(message)


def test_a_modules_parameters_replace_the_bare_module():
    given = KernelModule(name="nvidia-uvm", parameters=["a=1"])
    assert merged_modules(["nvidia", "nvidia_uvm"], [given, given]) == (KernelModule(name="nvidia"), given)
    other = KernelModule(name="nvidia_uvm", parameters=["a=2"])
    assert refusal(merged_modules, [], [given, other]) == (
        "kernel_modules must name a module once, got 'nvidia_uvm' with ['a=1'] and with ['a=2']"
    )


def test_the_sysctl_of_the_legacy_runtime_is_text_and_set_where_something_needs_it():
    for line in ("1.10", "1.11", "1.12"):
        assert merged_sysctls(Talos(line), {"a": "b"}) == {"a": "b", "net.core.bpf_jit_harden": "1"}, line
    for line in ("1.13", "1.14"):
        assert merged_sysctls(Talos(line), {}) == {}, line
        assert merged_sysctls(Talos(line), {"net.core.bpf_jit_harden": "2"}) == {"net.core.bpf_jit_harden": "2"}, line


@pytest.mark.parametrize("before", [{}, {"net.core.bpf_jit_harden": "1"}])
@pytest.mark.parametrize("key", ["net.core.bpf_jit_harden", "net/core/bpf_jit_harden"])
def test_a_sysctl_that_contradicts_the_release_is_refused_in_both_spellings(before, key):
    assert refusal(merged_sysctls, LEGACY, {**before, key: "2"}) == (
        f"sysctls[{key!r}] must be '1' on Talos 1.12, where nvidia-container-cli loads a BPF program, got '2'. "
        "Leave it out"
    )


@pytest.mark.parametrize("key", ["", "a b", "vm.nr_hugepages\n", "ünïcödé"])
def test_an_invalid_sysctl_is_rejected(key):
    assert refusal(merged_sysctls, NEW, {key: "1"}) == (
        f"sysctls must have kernel parameters like 'vm.nr_hugepages' as keys, got {key!r}"
    )


def test_two_taints_with_the_same_key_are_rejected_if_only_one_fits():
    two = [Taint(value="present"), Taint(value="present", effect="NoExecute")]
    check_taints(LEGACY, "worker", two)
    for platform, role in ((NEW, "worker"), (LEGACY, "controlplane")):
        assert refusal(check_taints, platform, role, two) == "taints must contain 'nvidia.com/gpu' once, got it twice"
    same = [Taint(value="present"), Taint()]
    assert refusal(check_taints, LEGACY, "worker", same).startswith(
        "taints must contain 'nvidia.com/gpu NoSchedule' once"
    )


def test_a_worker_may_set_labels_of_others_and_of_the_kubelet():
    for key in """gpu nvidia.com/gpu.deploy.operator-validator feature.node.kubernetes.io/pci-10de.present
        node.kubernetes.io/instance-type kubelet.kubernetes.io/gpu topology.kubernetes.io/zone kubernetes.io/arch
        mykubernetes.io/gpu""".split():
        check_node_labels("node_labels", {key: "x"}, "worker")


@cases
def test_a_worker_may_not_set_the_labels_of_kubernetes(key):
    check_node_labels("node_labels", {key: ""}, "controlplane")
    assert refusal(check_node_labels, "node_labels", {key: ""}, "worker") == (
        "node_labels must not contain labels that NodeRestriction forbids to a worker, because Talos would then set "
        f"none of them, got {key!r}. Use kubectl label, or a key outside kubernetes.io and k8s.io"
    )

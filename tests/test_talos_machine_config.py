import pytest

import talos_schemas
import talos_structure
from gpu_constructs import GpuConstructsError, Talos
from gpu_constructs.taint import Taint
from gpu_constructs.talos.kernel_module import KernelModule
from gpu_constructs.talos.machine_config import (
    NodeSettings,
    check_taints,
    machine_config,
    merged_modules,
    merged_sysctls,
    node_labels_of,
    node_taints_of,
    taints_of,
)

LEGACY = Talos("1.12")
NEW = Talos("1.14")
PRESENT = Taint(value="present")


def settings(**given):
    defaults = {
        "kernel_modules": (),
        "sysctls": {},
        "node_labels": {},
        "node_annotations": {},
        "taints": (),
        "default_runtime": False,
        "installer_image": None,
    }
    return NodeSettings(**{**defaults, **given})


def machine(role="worker", **given):
    (document,) = machine_config(LEGACY, role, settings(**given))
    return document["machine"]


def documents(role="worker", **given):
    return machine_config(NEW, role, settings(**given))


@pytest.mark.parametrize("variant", talos_schemas.VARIANTS)
@pytest.mark.parametrize("platform", talos_schemas.platforms(), ids=str)
def test_a_configuration_is_valid_for_exactly_the_lines_of_its_shape(platform, variant):
    assert list(talos_schemas.against(talos_structure.committed(), platform, variant)) == []


def test_what_is_not_set_is_not_written():
    assert machine() == {}
    assert documents() == []


def test_modules_are_a_list_or_a_document_each():
    modules = [KernelModule(name="nvidia"), KernelModule(name="gdrdrv", parameters=["dbg_enabled=1"])]
    assert machine(kernel_modules=modules)["kernel"] == {
        "modules": [{"name": "nvidia"}, {"name": "gdrdrv", "parameters": ["dbg_enabled=1"]}]
    }
    head = {"apiVersion": "v1alpha1", "kind": "KernelModuleConfig"}
    assert documents(kernel_modules=modules) == [
        {**head, "name": "nvidia"},
        {**head, "name": "gdrdrv", "parameters": ["dbg_enabled=1"]},
    ]


def test_the_default_runtime_is_a_file_or_a_document():
    (file,) = machine(default_runtime=True)["files"]
    (document,) = documents(default_runtime=True)
    assert (file["op"], file["path"]) == ("create", "/etc/cri/conf.d/20-customization.part")
    assert (document["kind"], document["name"]) == ("CRICustomizationConfig", "nvidia-default-runtime")
    assert file["content"] == document["content"]
    assert 'default_runtime_name = "nvidia"' in file["content"]


def test_taints_of_a_worker_are_the_kubelets_until_talos_1_13():
    registered = [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]
    assert machine(taints=[PRESENT]) == {"kubelet": {"extraConfig": {"registerWithTaints": registered}}}
    assert machine("controlplane", taints=[PRESENT]) == {"nodeTaints": {"nvidia.com/gpu": "present:NoSchedule"}}


@pytest.mark.parametrize("role", ["worker", "controlplane"])
def test_taints_are_the_nodes_from_talos_1_14_on(role):
    (document,) = documents(role, taints=[PRESENT, Taint(key="bare")])
    assert document == {
        "apiVersion": "v1alpha1",
        "kind": "KubeNodeConfig",
        "taints": {"nvidia.com/gpu": "present:NoSchedule", "bare": ":NoSchedule"},
    }


def test_labels_and_taints_are_found_in_both_shapes():
    for platform in (LEGACY, NEW):
        made = machine_config(platform, "controlplane", settings(node_labels={"a": "b"}, taints=[PRESENT]))
        assert node_labels_of(made) == {"a": "b"}
        assert node_taints_of(made) == {"nvidia.com/gpu": "present:NoSchedule"}
    assert node_labels_of([{"kind": "Other", "labels": {"c": "d"}}]) == {}


def test_the_installer_image_has_a_place_only_in_the_old_shape():
    assert machine(installer_image="x:v1")["install"] == {"image": "x:v1"}
    assert documents(installer_image="x:v1") == []


@pytest.mark.parametrize("line", ["1.10", "1.11", "1.12"])
def test_the_sysctl_of_the_legacy_runtime_is_text(line):
    assert merged_sysctls(Talos(line), {"a": "b"}) == {"a": "b", "net.core.bpf_jit_harden": "1"}


@pytest.mark.parametrize("line", ["1.13", "1.14"])
def test_the_sysctl_is_left_to_the_user_where_nothing_needs_it(line):
    assert merged_sysctls(Talos(line), {}) == {}
    assert merged_sysctls(Talos(line), {"net.core.bpf_jit_harden": "2"}) == {"net.core.bpf_jit_harden": "2"}


@pytest.mark.parametrize("key", ["net.core.bpf_jit_harden", "net/core/bpf_jit_harden"])
def test_a_sysctl_that_contradicts_the_release_is_refused(key):
    with pytest.raises(GpuConstructsError) as refused:
        merged_sysctls(LEGACY, {key: "2"})
    assert str(refused.value) == (
        f"sysctls[{key!r}] must be '1' on Talos 1.12, where nvidia-container-cli loads a BPF program; got '2'; "
        "leave it out"
    )


def test_a_sysctl_that_is_given_in_both_spellings_is_still_checked():
    for keys in (("net.core.bpf_jit_harden", "net/core/bpf_jit_harden"), ("net/core/bpf_jit_harden",)):
        with pytest.raises(GpuConstructsError, match=r"^sysctls\['net/core/bpf_jit_harden'\] must be '1' on"):
            merged_sysctls(LEGACY, dict.fromkeys(keys, "1") | {"net/core/bpf_jit_harden": "2"})
    both = {"net/core/bpf_jit_harden": "2", "net.core.bpf_jit_harden": "1"}
    with pytest.raises(GpuConstructsError, match=r"^sysctls\['net/core/bpf_jit_harden'\] must be '1' on"):
        merged_sysctls(LEGACY, both)


def test_all_taints_are_found_as_kubernetes_writes_them():
    taints = [PRESENT, Taint(key="bare", effect="NoExecute")]
    for platform, role in ((LEGACY, "worker"), (LEGACY, "controlplane"), (NEW, "worker")):
        made = machine_config(platform, role, settings(taints=taints))
        assert taints_of(made) == [taint.to_manifest() for taint in taints]


@pytest.mark.parametrize("key", ["a b", "vm.nr_hugepages\n", "ünïcödé"])
def test_a_sysctl_that_no_kernel_has_is_refused(key):
    with pytest.raises(GpuConstructsError) as refused:
        merged_sysctls(NEW, {key: "1"})
    assert str(refused.value) == f"sysctls must have kernel parameters like 'vm.nr_hugepages' for keys; got {key!r}"


def test_a_modules_parameters_replace_the_bare_module():
    given = KernelModule(name="nvidia-uvm", parameters=["a=1"])
    assert merged_modules(["nvidia", "nvidia_uvm"], [given]) == (KernelModule(name="nvidia"), given)


def test_a_module_with_two_sets_of_parameters_is_refused():
    twice = [KernelModule(name="nvidia-uvm", parameters=["a=1"]), KernelModule(name="nvidia_uvm", parameters=["a=2"])]
    with pytest.raises(GpuConstructsError) as refused:
        merged_modules([], twice)
    assert str(refused.value) == (
        "kernel_modules must name a module once; got 'nvidia_uvm' with ['a=1'] and with ['a=2']"
    )
    assert len(merged_modules([], twice[:1] * 2)) == 1


def test_two_taints_of_a_key_are_refused_where_there_is_room_for_one():
    two = [PRESENT, Taint(value="present", effect="NoExecute")]
    check_taints(LEGACY, "worker", two)
    with pytest.raises(GpuConstructsError, match=r"^taints must hold 'nvidia.com/gpu' once; got it twice$"):
        check_taints(NEW, "worker", two)
    with pytest.raises(GpuConstructsError, match=r"^taints must hold 'nvidia.com/gpu' once; got it twice$"):
        check_taints(LEGACY, "controlplane", two)
    with pytest.raises(GpuConstructsError, match=r"^taints must hold 'nvidia.com/gpu NoSchedule' once; got it twice$"):
        check_taints(LEGACY, "worker", [PRESENT, Taint()])

import pytest

import talos_schemas
import talos_structure
from gpu_constructs import App, KernelModule, Taint, Talos, TalosGpuNode
from tables import cases

PRESENT = Taint(value="present")
MODULES = [KernelModule(name="gdrdrv", parameters=["dbg_enabled=1"])]
DELETED = {"$patch": "delete"}


def documents(version, **given):
    return TalosGpuNode(App(), "node", platform=Talos(version), **given).machine_config


def machine(**given):
    (document,) = documents("1.12", **given)
    return document["machine"]


def of_kind(kind, **given):
    return [document for document in documents("1.14", **given) if document["kind"] == kind]


@pytest.mark.parametrize("variant", talos_schemas.VARIANTS)
def test_a_configuration_is_valid_for_exactly_the_lines_of_its_shape(variant):
    for platform in talos_schemas.platforms():
        assert list(talos_schemas.against(talos_structure.committed(), platform, variant)) == [], platform


def test_what_is_not_set_is_not_written():
    assert set(machine()) == {"kernel", "sysctls"}
    assert {document["kind"] for document in documents("1.14")} == {"KernelModuleConfig"}


def test_modules_are_a_list_or_a_document_each():
    names = ["nvidia", "nvidia_uvm", "nvidia_drm", "nvidia_modeset"]
    expected = [*({"name": name} for name in names), {"name": "gdrdrv", "parameters": ["dbg_enabled=1"]}]
    given = {"gdrdrv": True, "kernel_modules": MODULES}
    assert machine(**given)["kernel"] == {"modules": expected}
    head = {"apiVersion": "v1alpha1", "kind": "KernelModuleConfig"}
    assert documents("1.14", **given) == [{**head, **module} for module in expected]


def test_taints_of_a_worker_are_the_kubelets_until_talos_1_13():
    registered = [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]
    assert machine(taints=[PRESENT])["kubelet"] == {"extraConfig": {"registerWithTaints": registered}}
    control_plane = machine(role="controlplane", taints=[PRESENT])
    assert control_plane["nodeTaints"] == {"nvidia.com/gpu": "present:NoSchedule"}
    for role in ("worker", "controlplane"):
        (node,) = of_kind("KubeNodeConfig", role=role, taints=[PRESENT, Taint(key="bare")])
        assert node["taints"] == {"nvidia.com/gpu": "present:NoSchedule", "bare": ":NoSchedule"}


def test_labels_and_taints_are_found_in_every_shape():
    taints = [PRESENT, Taint(key="bare", effect="NoExecute")]
    for version, role in (("1.12", "worker"), ("1.12", "controlplane"), ("1.14", "worker")):
        given = {"platform": Talos(version), "role": role, "node_labels": {"a": "b"}, "taints": taints}
        nodes = TalosGpuNode(App(), "node", **given).provides.gpu_nodes
        assert nodes.labels == {"a": "b"}
        assert nodes.taints == [taint.to_manifest() for taint in taints]


TAINT = {"key": "x", "effect": "NoExecute"}


@cases
def test_labels_and_taints_of_patches_are_provided(version, patch):
    given = {"role": "controlplane", "node_labels": {"a": "b"}, "config_patches": [patch]}
    nodes = TalosGpuNode(App(), "node", platform=Talos(version), **given).provides.gpu_nodes
    assert nodes.labels == {"a": "b", "c": "d"}
    assert nodes.taints == [TAINT]


def test_labels_that_a_later_patch_deletes_are_not_provided():
    set_first = {"machine": {"nodeLabels": {"a": "b", "c": "d"}, "nodeTaints": {"x": "NoExecute"}}}
    delete = {"machine": {"nodeLabels": {"a": DELETED}, "nodeTaints": DELETED}}
    given = {"role": "controlplane", "config_patches": [set_first, delete]}
    nodes = TalosGpuNode(App(), "node", platform=Talos("1.12"), **given).provides.gpu_nodes
    assert (nodes.labels, nodes.taints) == ({"c": "d"}, [])

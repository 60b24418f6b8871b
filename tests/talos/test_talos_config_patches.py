import copy

import pytest

import refusals
import talos_schemas
import talos_structure
from gpu_constructs import App, Talos, TalosGpuNode
from gpu_constructs.kube.placement import Taint
from gpu_constructs.talos.config_patches import document_kinds, table
from tables import cases

LEGACY = Talos("1.12.11")
NEW = Talos("1.14")
ID = "6698d6f136c5bb37ca8bb8482c9084305084da0a5ead1f4dcae760796f8ab3a2"
DELETED = {"$patch": "delete"}
OURS = {"taints": [Taint(key="gpu")], "default_runtime": True, "node_labels": {"a": "b"}}


def document(kind, **fields):
    return {"apiVersion": "v1alpha1", "kind": kind, **fields}


def node(*patches, platform=NEW, **given):
    return TalosGpuNode(App(), "node", platform=platform, **{**OURS, **given}, config_patches=patches)


def legacy(*machines, **given):
    return node(*({"machine": machine} for machine in machines), platform=LEGACY, **given)


def refusal(make, *given, **more):
    return refusals.refusal(make, *given, **more).removeprefix("node: ")


def test_each_patch_is_a_separate_file_after_that_of_the_node():
    patches = [document("KubeNodeConfig", labels={"c": "d"}), document("KubeNodeConfig", labels={"c": DELETED})]
    kept = copy.deepcopy(patches)
    made, bare = node(*patches), node()
    assert [file.stem for file in made.side_files()] == ["node", "node.patch-1", "node.patch-2", "node.schematic"]
    assert made.machine_config == [*bare.machine_config, *patches]
    own, first, *_ = made.side_files()
    named = "# Patches to apply after this one, in this order: node.patch-1.yaml, node.patch-2.yaml\n"
    assert own.text.replace(named, "") == bare.side_files()[0].text != own.text
    assert first.text == "apiVersion: v1alpha1\nkind: KubeNodeConfig\nlabels:\n  c: d\n"
    made.machine_config[-1]["labels"].clear()
    assert patches == kept


def test_a_key_without_a_value_counts_as_absent():
    assert legacy({"sysctls": None, "kubelet": {"image": None}}).machine_config[1:] == [{"machine": {"kubelet": {}}}]
    assert len(node({}, {"machine": None}).side_files()) == 2


def test_a_patch_that_talos_ignores_or_rejects_is_rejected(rows):
    for machine, says in rows:
        assert refusal(legacy, machine) == says
    assert (
        refusal(legacy, {"type": {1}})
        == "config_patches[0].machine.type must be a value that YAML supports, got {1} (set)"
    )


def test_a_control_plane_may_have_node_taints():
    taints = {"nodeTaints": {"gpu": "present:NoSchedule"}}
    legacy(taints, role="controlplane", taints=[])
    assert refusal(legacy, {"nodeTaints": {"gpu": "NoSchedul"}}, role="controlplane", taints=[]).startswith(
        "config_patches[0]: taint.effect must be one of"
    )


def test_install_extensions_are_refused_with_the_keywords_for_them():
    images = ("nvidia-container-toolkit:535.154.05-v1.14.6", "nonfree-kmod-nvidia:535.154.05-v1.7.6")
    extensions = [{"image": f"ghcr.io/siderolabs/{image}"} for image in images]
    assert refusal(legacy, {"install": {"extensions": extensions}}) == (
        "config_patches[0].machine.install.extensions must be left out, because Talos 1.10 and later ignore this list "
        "and use the extensions in the installer image, got 2 items. Use branch='lts' or branch='production' (which "
        "adds the "
        "toolkit) for 'ghcr.io/siderolabs/nvidia-container-toolkit:535.154.05-v1.14.6', "
        "kernel_module_type='proprietary' for 'ghcr.io/siderolabs/nonfree-kmod-nvidia:535.154.05-v1.7.6'"
    )


@cases
def test_an_installer_without_the_extensions_is_refused(image):
    expected = (
        f"must be an installer with this node's extensions, schematic {ID}, got {image!r}. Leave it out, or register "
        "the schematic and use its image"
    )
    assert refusal(legacy, {"install": {"image": image}}) == f"config_patches[0].machine.install.image {expected}"
    patch = document("UnattendedInstallConfig", installer={"image": image})
    assert refusal(node, patch) == f"config_patches[0].installer.image {expected}"


@pytest.mark.parametrize("image", [f"factory.example.com/metal-installer/{ID}:v1.12.11", "example.com/installer:v1"])
def test_an_installer_of_the_user_replaces_the_default(image):
    made = legacy({"install": {"image": image, "disk": "/dev/sda"}})
    assert f"# Installer: {image}\n" in made.side_files()[0].text


def test_a_document_that_talos_1_14_rejects_is_rejected(rows):
    for patch, says in rows:
        assert refusal(node, patch) == says


def test_a_document_of_a_later_talos_is_refused():
    for platform, kind, line in ((LEGACY, "SysctlConfig", "1.14"), (Talos("1.10"), "HostnameConfig", "1.12")):
        assert refusal(node, document(kind), platform=platform) == (
            f"config_patches[0].kind must be a document kind of {platform}, got {kind!r}, a document from Talos {line} "
            "on. If its fields exist in the document without a kind, set them there"
        )


def test_the_table_is_that_of_the_releases():
    assert list(talos_schemas.wrong_keys(talos_structure.committed())) == []
    assert list(talos_schemas.wrong_kinds(talos_structure.committed_kinds())) == []
    for level, documents in table()["moved"].items():
        assert set(documents) < set(table()["structs"][level])
        kinds = {word.rstrip(",") for text in documents.values() for word in text.split() if word[0].isupper()}
        assert kinds <= set(document_kinds(NEW))


@cases
def test_patches_besides_the_own_configuration_are_unchanged(platform, patch):
    assert node(patch, platform=platform).machine_config[-1] == patch


OURS_TO_KEEP = (
    "because it contains settings of this construct. Change these with keywords, delete other settings by their own "
    "keys, or apply the deletion with talosctl in an earlier patch"
)


@cases
def test_a_patch_cannot_delete_the_own_configuration(platform, place, patch):
    assert refusal(node, patch, platform=platform) == f"config_patches[0] must not delete {place}, {OURS_TO_KEEP}"


@cases
def test_a_patch_can_delete_other_configuration(platform, patch):
    assert node(patch, platform=platform).machine_config[-1] == patch


def test_a_directive_that_talos_does_not_support_is_rejected(rows):
    for machine, says in rows:
        assert refusal(legacy, {"network": machine}) == says


def test_the_whole_document_without_a_kind_cannot_be_deleted():
    assert refusal(node, DELETED).startswith(
        "config_patches[0].$patch must be 'delete' in a separate document, which has no other keys than kind and name"
    )

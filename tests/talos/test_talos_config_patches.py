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


def test_each_patch_is_a_file_for_talosctl_to_merge_behind_the_nodes_own():
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


def test_a_key_without_a_value_is_as_good_as_absent():
    assert legacy({"sysctls": None, "kubelet": {"image": None}}).machine_config[1:] == [{"machine": {"kubelet": {}}}]
    assert len(node({}, {"machine": None}).side_files()) == 2


def test_a_patch_that_would_not_do_what_it_says_is_refused(rows):
    for machine, says in rows:
        assert refusal(legacy, machine) == says
    assert refusal(legacy, {"type": {1}}) == "config_patches[0].machine.type must be what YAML can hold; got {1} (set)"


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
        "config_patches[0].machine.install.extensions must be left out: Talos has ignored it since 1.10, extensions "
        "come in the installer image; got 2; for 'ghcr.io/siderolabs/nvidia-container-toolkit:535.154.05-v1.14.6' use "
        "branch='lts' or branch='production' (which brings the toolkit too); for "
        "'ghcr.io/siderolabs/nonfree-kmod-nvidia:535.154.05-v1.7.6' use kernel_module_type='proprietary'"
    )


@pytest.mark.parametrize(
    "image", ["ghcr.io/siderolabs/installer:v1.12.11", f"factory.talos.dev/metal-installer/{'0' * 64}:v1.12.11"]
)
def test_an_installer_without_the_extensions_is_refused(image):
    expected = (
        f"must be an installer with this node's extensions, schematic {ID}; got {image!r}; leave it out, or register "
        "the schematic and name the image made of it"
    )
    assert refusal(legacy, {"install": {"image": image}}) == f"config_patches[0].machine.install.image {expected}"
    patch = document("UnattendedInstallConfig", installer={"image": image})
    assert refusal(node, patch) == f"config_patches[0].installer.image {expected}"


@pytest.mark.parametrize("image", [f"factory.example.com/metal-installer/{ID}:v1.12.11", "example.com/installer:v1"])
def test_an_installer_of_the_users_own_takes_the_place_of_ours(image):
    made = legacy({"install": {"image": image, "disk": "/dev/sda"}})
    assert f"# Installer: {image}\n" in made.side_files()[0].text


def test_a_document_that_talos_1_14_would_not_take_is_refused(rows):
    for patch, says in rows:
        assert refusal(node, patch) == says


def test_a_document_of_a_later_talos_is_refused():
    for platform, kind, line in ((LEGACY, "SysctlConfig", "1.14"), (Talos("1.10"), "HostnameConfig", "1.12")):
        assert refusal(node, document(kind), platform=platform) == (
            f"config_patches[0].kind must be one that {platform} has; got {kind!r}, a document from Talos {line} on; "
            "give its fields, where there are such, in a patch without a kind"
        )


def test_the_table_is_that_of_the_releases():
    assert list(talos_schemas.wrong_keys(talos_structure.committed())) == []
    assert list(talos_schemas.wrong_kinds(talos_structure.committed_kinds())) == []
    for level, documents in table()["moved"].items():
        assert set(documents) < set(table()["structs"][level])
        kinds = {word.rstrip(",") for text in documents.values() for word in text.split() if word[0].isupper()}
        assert kinds <= set(document_kinds(NEW))


@cases
def test_what_goes_beside_ours_is_taken_as_it_is(platform, patch):
    assert node(patch, platform=platform).machine_config[-1] == patch


OURS_TO_KEEP = (
    "where this node's own configuration lies; leave it to the keywords, delete what else lies there by its own key, "
    "or give the deletion to talosctl in a patch before this one"
)


@cases
def test_nothing_of_ours_can_be_deleted(platform, place, patch):
    assert refusal(node, patch, platform=platform) == f"config_patches[0] must not delete {place}, {OURS_TO_KEEP}"


@cases
def test_what_is_not_ours_can_be_deleted(platform, patch):
    assert node(patch, platform=platform).machine_config[-1] == patch


def test_a_directive_that_talos_would_not_follow_is_refused(rows):
    for machine, says in rows:
        assert refusal(legacy, {"network": machine}) == says


def test_the_whole_document_without_a_kind_cannot_be_deleted():
    assert refusal(node, DELETED).startswith(
        "config_patches[0].$patch must be 'delete' with nothing but kind and name beside it, for a document with a kind"
    )

import hashlib

import pytest
import yaml
from cdk8s import Testing

from gpu_constructs import GpuConstructsError, Kubernetes, Talos, synthesize
from gpu_constructs.taint import Taint
from gpu_constructs.talos.gpu_node import TalosGpuNode
from gpu_constructs.talos.kernel_module import KernelModule

VALIDATOR = "nvidia.com/gpu.deploy.operator-validator"
GIVEN = {
    "gpu_architecture": "ampere",
    "branch": "lts",
    "extensions": ["iscsi-tools"],
    "extra_kernel_args": ["console=ttyS0"],
    "default_runtime": True,
    "operator_validator": False,
    "node_labels": {"gpu-model": "rtx-3090"},
    "node_annotations": {"example.com/rack": "r1"},
    "taints": [Taint(value="present")],
    "kernel_modules": [KernelModule(name="nvidia", parameters=["NVreg_EnableGpuFirmware=0"])],
}


def refusal(app, **given):
    with pytest.raises(GpuConstructsError) as refused:
        TalosGpuNode(app, "node", **{"platform": Talos("1.12.11"), **given})
    return str(refused.value)


@pytest.mark.parametrize("version", ["1.12.11", "1.14.0"])
def test_the_files_of_a_node(app, tmp_path, snapshot, version):
    TalosGpuNode(app, "gpu-worker", platform=Talos(version), **GIVEN)
    synthesize(app)
    folder = tmp_path / "dist" / "machine-config"
    assert [path.name for path in sorted(folder.iterdir())] == ["gpu-worker.schematic.yaml", "gpu-worker.yaml"]
    for path in sorted(folder.iterdir()):
        assert path.read_text() == snapshot(name=path.stem)


def test_a_node_emits_no_object(chart):
    TalosGpuNode(chart, "gpu-worker", platform=Talos("1.12.11"))
    assert Testing.synth(chart) == []


def test_the_schematic_file_holds_what_the_identifier_is_the_checksum_of(app):
    node = TalosGpuNode(app, "node", platform=Talos("1.12.11"), **GIVEN)
    _, file = node.side_files()
    text = "".join(line for line in file.text.splitlines(keepends=True) if not line.startswith("#"))
    assert hashlib.sha256(text.encode()).hexdigest() == node.schematic_id
    assert file.stem == "node.schematic"
    assert yaml.safe_load(text) == node.schematic.to_dict()
    assert node.schematic.to_dict()["customization"]["extraKernelArgs"] == ["console=ttyS0"]


def test_the_patch_file_is_read_back_as_the_documents(app):
    for version in ("1.12.11", "1.14"):
        node = TalosGpuNode(app, f"node-{version[:4].replace('.', '-')}", platform=Talos(version), **GIVEN)
        assert list(yaml.safe_load_all(node.side_files()[0].text)) == node.machine_config


def test_the_name_is_the_id_unless_given(app):
    assert TalosGpuNode(app, "a", platform=Talos()).name == "a"
    assert TalosGpuNode(app, "B", platform=Talos(), name="c").side_files()[0].stem == "c"
    assert refusal(app, name="../c").startswith("node: name must be a DNS label")


@pytest.mark.parametrize(
    ("given", "image"),
    [
        ({}, "metal-installer"),
        ({"secureboot": True}, "metal-installer-secureboot"),
        ({"installer_platform": "aws"}, "aws-installer"),
    ],
)
def test_the_installer_is_the_factorys_image_of_the_schematic(app, given, image):
    node = TalosGpuNode(app, "node", platform=Talos("v1.12.11"), **given)
    expected = f"factory.talos.dev/{image}/6698d6f136c5bb37ca8bb8482c9084305084da0a5ead1f4dcae760796f8ab3a2:v1.12.11"
    assert node.installer_image == expected
    assert node.machine_config[0]["machine"]["install"] == {"image": expected}
    assert f"# Installer: {expected}\n" in node.side_files()[0].text


def test_no_tag_is_invented_for_a_line(app):
    node = TalosGpuNode(app, "node", platform=Talos("1.12"))
    with pytest.raises(GpuConstructsError) as refused:
        _ = node.installer_image
    assert str(refused.value) == (
        "node: installer_image needs a platform with its patch release, which is the installer's tag; got "
        "Talos('1.12'); give the one you run, like Talos('1.12.11')"
    )
    assert "install" not in node.machine_config[0]["machine"]
    assert "# Installer: none named, Talos 1.12 has no patch release" in node.side_files()[0].text
    assert node.driver_version is None


def test_the_installer_of_a_patch_is_the_one_named(app):
    patch = {"machine": {"install": {"image": "example.com/installer:v1"}}}
    node = TalosGpuNode(app, "node", platform=Talos("1.12.11"), config_patches=[patch])
    assert "# Installer: example.com/installer:v1\n" in node.side_files()[0].text


def test_the_driver_is_that_of_release_and_branch(app):
    assert TalosGpuNode(app, "a", platform=Talos("1.12.11")).driver_version == "570.211.01"
    assert TalosGpuNode(app, "b", platform=Talos("1.12.11"), branch="lts").driver_version == "580.126.20"


@pytest.mark.parametrize("line", ["1.10", "1.11", "1.12", "1.13", "1.14"])
def test_the_four_modules_are_loaded_and_the_sysctl_set_where_it_is_needed(app, line):
    documents = TalosGpuNode(app, "node", platform=Talos(line)).machine_config
    text = yaml.safe_dump_all(documents)
    modules = ["nvidia", "nvidia_uvm", "nvidia_drm", "nvidia_modeset"]
    if line == "1.14":
        assert [document["name"] for document in documents] == modules
    else:
        assert [module["name"] for module in documents[0]["machine"]["kernel"]["modules"]] == modules
    assert ("net.core.bpf_jit_harden: '1'" in text) == (line in ("1.10", "1.11", "1.12"))


def test_gdrdrv_is_an_extension_and_a_module(app):
    parameters = KernelModule(name="gdrdrv", parameters=["dbg_enabled=1"])
    for index, given in enumerate(({"gdrdrv": True}, {"extensions": ["nvidia-gdrdrv-device"]})):
        node = TalosGpuNode(app, f"node-{index}", platform=Talos("1.13"), kernel_modules=[parameters], **given)
        assert "siderolabs/nvidia-gdrdrv-device" in node.extensions
        modules = node.machine_config[0]["machine"]["kernel"]["modules"]
        assert modules[-1] == {"name": "gdrdrv", "parameters": ["dbg_enabled=1"]}
    assert refusal(app, kernel_modules=[parameters]) == (
        "node: kernel_modules must not hold 'gdrdrv' without its extension; use gdrdrv=True"
    )


@pytest.mark.parametrize("version", ["1.12", "1.14"])
@pytest.mark.parametrize(
    ("given", "is_provided"),
    [
        ({"operator_validator": False}, True),
        ({"node_labels": {VALIDATOR: "false"}}, True),
        ({"node_labels": {VALIDATOR: "true"}}, False),
        ({}, False),
    ],
)
def test_the_validators_label_is_provided_where_it_keeps_the_validator_off(app, version, given, is_provided):
    node = TalosGpuNode(app, "node", platform=Talos(version), **given)
    assert (node.provides.gpu_nodes.labels.get(VALIDATOR) == "false") == is_provided


def test_labels_of_patches_are_provided(app):
    patch = {"machine": {"nodeLabels": {VALIDATOR: "false", "a": "b"}}}
    node = TalosGpuNode(app, "node", platform=Talos("1.12"), node_labels={"c": "d"}, config_patches=[patch])
    assert node.provides.gpu_nodes.labels == {"c": "d", VALIDATOR: "false", "a": "b"}


REGISTERED = {"machine": {"kubelet": {"extraConfig": {"registerWithTaints": [{"key": "a", "effect": "NoExecute"}]}}}}
LISTED = {"machine": {"nodeTaints": {"a": "NoExecute"}}}
OF_KIND = {"apiVersion": "v1alpha1", "kind": "KubeNodeConfig", "taints": {"a": ":NoExecute"}}


@pytest.mark.parametrize(
    ("version", "role", "patch"),
    [("1.12", "worker", REGISTERED), ("1.12", "controlplane", LISTED), ("1.14", "worker", OF_KIND)],
)
def test_taints_of_patches_are_provided(app, version, role, patch):
    given = {"platform": Talos(version), "role": role, "taints": [Taint(value="present")], "config_patches": [patch]}
    assert TalosGpuNode(app, "node", **given).provides.gpu_nodes.taints == [
        {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"},
        {"key": "a", "effect": "NoExecute"},
    ]


def test_a_candidate_of_a_release_has_its_installer_and_driver(app):
    node = TalosGpuNode(app, "node", platform=Talos("1.14.0-rc.1"))
    assert node.installer_image.endswith(":v1.14.0-rc.1")
    assert node.driver_version == "595.91.07"


@pytest.mark.parametrize(
    ("version", "text"),
    [("1.12", "# For a node's first configuration. "), ("1.14", "# May be applied to a node again: ")],
)
def test_the_patch_says_whether_it_may_be_applied_again(app, version, text):
    lines = TalosGpuNode(app, "node", platform=Talos(version)).side_files()[0].text.splitlines()
    assert sum(line.startswith(text) for line in lines) == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"platform": Kubernetes("1.34")},
            "platform must be Talos(...), whose configuration this is; got Kubernetes 1.34; leave the TalosGpuNode out",
        ),
        ({"platform": "1.12"}, "platform must be one of (Talos, Kubernetes); got str: '1.12'"),
        (
            {"kernel_module_type": "nonfree"},
            "kernel_module_type must be one of 'open', 'proprietary'; got 'nonfree'",
        ),
        ({"branch": "prod"}, "branch must be one of 'production', 'lts'; got 'prod'"),
        (
            {"extensions": ["nonfree-kmod-nvidia-production"]},
            "extensions[0] would be the second extension with kernel modules; got 'nonfree-kmod-nvidia-production' "
            "beside 'nvidia-open-gpu-kernel-modules-production'; choose by kernel_module_type",
        ),
        ({"sysctls": {"a": 1}}, "sysctls['a'] must be str; got int: 1"),
        ({"sysctls": {"": "1"}}, "sysctls must not have an empty key; got ''"),
        ({"node_annotations": {"a b": "c"}}, "node_annotations has a key that is no label key; got 'a b'"),
        (
            {"operator_validator": False, "node_labels": {VALIDATOR: "true"}},
            f"node_labels[{VALIDATOR!r}] must be 'false' with operator_validator=False; got 'true'; leave it out",
        ),
        (
            {"installer_platform": "metall"},
            "installer_platform must be one of 'akamai', 'alibabacloud', 'aws', 'azure', 'cloudstack', "
            "'digital-ocean', 'equinixMetal', 'exoscale', 'gcp', 'hcloud', 'metal', 'nocloud', 'opennebula', "
            "'openstack', 'oracle', 'scaleway', 'upcloud', 'vmware', 'vultr'; got 'metall' (did you mean 'metal'?)",
        ),
        ({"config_patches": [[{"op": "add"}]]}, "config_patches[0] must be Mapping; got list: [{'op': 'add'}]"),
        ({"kmod": "open"}, "kmod is no keyword of TalosGpuNode"),
    ],
)
def test_what_talos_would_not_take_is_refused_in_one_line(app, given, message):
    assert refusal(app, **given) == f"node: {message}"


def test_a_refused_node_leaves_nothing_behind(app):
    refusal(app, kernel_module_type="nonfree")
    assert TalosGpuNode(app, "node", platform=Talos("1.12.11"))

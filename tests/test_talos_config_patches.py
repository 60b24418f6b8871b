import copy

import pytest

import talos_schemas
import talos_structure
from gpu_constructs import GpuConstructsError, Talos
from gpu_constructs.talos.config_patches import patched

LEGACY = Talos("1.12.11")
NEW = Talos("1.14")
ID = "6698d6f136c5bb37ca8bb8482c9084305084da0a5ead1f4dcae760796f8ab3a2"
OURS = {
    "machine": {
        "install": {"image": f"factory.talos.dev/metal-installer/{ID}:v1.12.11"},
        "kernel": {"modules": [{"name": "nvidia"}, {"name": "nvidia_uvm"}]},
        "sysctls": {"net.core.bpf_jit_harden": "1"},
        "kubelet": {"extraConfig": {"registerWithTaints": [{"key": "gpu", "effect": "NoSchedule"}]}},
        "files": [{"op": "create", "path": "/etc/cri/conf.d/20-customization.part", "content": "ours"}],
    }
}


def document(kind, **fields):
    return {"apiVersion": "v1alpha1", "kind": kind, **fields}


OURS_NEW = [
    document("KernelModuleConfig", name="nvidia"),
    document("CRICustomizationConfig", name="nvidia-default-runtime", content="ours"),
    document("KubeNodeConfig", labels={"a": "b"}),
]


def legacy(*machines, role="worker", ours=OURS):
    patches = [{"machine": machine} for machine in machines]
    (document,) = patched([ours], patches, platform=LEGACY, role=role, schematic_id=ID)
    return document["machine"]


def new(*patches):
    return patched(OURS_NEW, patches, platform=NEW, role="worker", schematic_id=ID)


def refusal(function, *given, **more):
    with pytest.raises(GpuConstructsError) as refused:
        function(*given, **more)
    return str(refused.value)


def test_maps_merge_and_lists_grow():
    machine = legacy(
        {"nodeLabels": {"a": "b"}, "kubelet": {"extraConfig": {"cpuManagerPolicy": "static"}}},
        {"nodeLabels": {"c": "d"}, "kernel": {"modules": [{"name": "nvidia_fs"}]}},
    )
    assert machine["nodeLabels"] == {"a": "b", "c": "d"}
    assert machine["kubelet"]["extraConfig"] == {
        "registerWithTaints": [{"key": "gpu", "effect": "NoSchedule"}],
        "cpuManagerPolicy": "static",
    }
    assert [module["name"] for module in machine["kernel"]["modules"]] == ["nvidia", "nvidia_uvm", "nvidia_fs"]


def test_what_is_given_stays_as_it_was():
    ours, patch = copy.deepcopy(OURS), {"machine": {"kernel": {"modules": [{"name": "a"}]}}}
    kept = copy.deepcopy(patch)
    (made,) = patched([ours], [patch], platform=LEGACY, role="worker", schematic_id=ID)
    made["machine"]["kernel"]["modules"].clear()
    assert ours == OURS
    assert patch == kept


def test_a_document_about_something_else_stands_behind_ours():
    hostname = document("HostnameConfig", hostname="gpu-1")
    made = patched([OURS], [hostname], platform=LEGACY, role="worker", schematic_id=ID)
    assert made == [OURS, hostname]
    assert new(hostname) == [*OURS_NEW, hostname]


def test_a_document_of_ours_is_merged():
    made = new(document("KubeNodeConfig", labels={"c": "d"}, nodeIP={"validSubnets": ["10.0.0.0/8"]}))
    assert len(made) == len(OURS_NEW)
    assert made[-1] == document("KubeNodeConfig", labels={"a": "b", "c": "d"}, nodeIP={"validSubnets": ["10.0.0.0/8"]})


def test_a_module_listed_again_is_listed_once():
    assert len(legacy({"kernel": {"modules": [{"name": "nvidia-uvm"}]}})["kernel"]["modules"]) == 2
    assert new(document("KernelModuleConfig", name="nvidia")) == OURS_NEW


@pytest.mark.parametrize(
    ("machine", "message"),
    [
        (
            {"sysctl": {"a": "b"}},
            "config_patches[0].machine has a key that Talos does not know; got 'sysctl' (did you mean 'sysctls'?)",
        ),
        (
            {"kubelet": {"extraconfig": {}}},
            "config_patches[0].machine.kubelet has a key that Talos does not know; got 'extraconfig' "
            "(did you mean 'extraConfig'?)",
        ),
        (
            {"sysctls": {"vm.nr_hugepages": 1024}},
            "config_patches[0].machine.sysctls['vm.nr_hugepages'] must be text; got 1024 (int); write '1024'",
        ),
        (
            {"nodeLabels": {"gpu": True}},
            "config_patches[0].machine.nodeLabels['gpu'] must be text; got True (bool); write 'true'",
        ),
        (
            {"sysctls": {"net.core.bpf_jit_harden": "0"}},
            "config_patches[0].machine.sysctls['net.core.bpf_jit_harden'] must not contradict what is set already; "
            "got '0' beside '1'",
        ),
        (
            {"nodeTaints": {"gpu": ":NoSchedule"}},
            "config_patches[0].machine.nodeTaints must be left out: on Talos 1.12.11 NodeRestriction keeps a worker "
            "from setting its own taints; got {'gpu': ':NoSchedule'}; use taints=[Taint(...)], which the kubelet gives "
            "when it registers the node",
        ),
        (
            {"nodeLabels": {"node-role.kubernetes.io/gpu": ""}},
            "config_patches[0]: node labels must not hold labels that NodeRestriction keeps a worker from setting; got "
            "'node-role.kubernetes.io/gpu', and none of the labels would be set; use kubectl label, or a key outside "
            "kubernetes.io and k8s.io",
        ),
        (
            {"kernel": {"modules": [{"name": "nvidia", "parameters": ["a=1"]}]}},
            "config_patches must not load a kernel module a second time; got 'nvidia' with [] and with ['a=1']; "
            "use kernel_modules=[KernelModule(name='nvidia', parameters=...)]",
        ),
        (
            {"files": [{"op": "create", "path": "/etc/cri/conf.d/20-customization.part", "content": "theirs"}]},
            "config_patches must not hold a second file /etc/cri/conf.d/20-customization.part: Talos takes one; got 2; "
            "join their contents in one, and leave default_runtime out where yours sets default_runtime_name",
        ),
        (
            {"files": [{"op": "create", "path": "/etc/modprobe.d/x.conf", "content": ""}]},
            "config_patches[0].machine.files[0].path must be below /var, or /etc/cri/conf.d/20-customization.part: "
            "Talos creates no other file; got '/etc/modprobe.d/x.conf'",
        ),
        (
            {"kubelet": {"extraConfig": {"registerWithTaints": [{"key": "gpu", "effect": "NoSchedule"}]}}},
            "config_patches must not register a taint a second time; got {'key': 'gpu', 'effect': 'NoSchedule'}; "
            "leave one out",
        ),
        (
            {"kubelet": {"extraConfig": {"registerWithTaints": [{"key": "a", "value": ["b"], "effect": "NoExecute"}]}}},
            "config_patches[0].machine.kubelet.extraConfig.registerWithTaints[0]: taint.value must be str; "
            "got list: ['b']",
        ),
        ({"sysctls": None}, "config_patches[0].machine.sysctls must have a value; got None; leave it out"),
        ({"sysctls": []}, "config_patches[0].machine.sysctls must be a mapping; got []"),
        ({"kernel": []}, "config_patches[0].machine.kernel must be a mapping; got []"),
        ({"files": {}}, "config_patches[0].machine.files must be a list; got {}"),
        ({"files": ["a"]}, "config_patches[0].machine.files[0] must be a mapping; got 'a'"),
        ({"type": {1}}, "config_patches[0].machine.type must be what YAML can hold; got {1} (set)"),
        ({1: 2}, "config_patches[0].machine must have text for keys; got 1"),
        (
            {"kernel": {"modules": [{"name": "a b"}]}},
            "config_patches[0].machine.kernel.modules[0]: kernel_module.name must be a module's name (letters, digits, "
            "'_', '-'); got 'a b'",
        ),
    ],
)
def test_a_patch_that_would_not_do_what_it_says_is_refused(machine, message):
    assert refusal(legacy, machine) == message


def test_a_control_plane_may_have_node_taints():
    taints = {"nodeTaints": {"gpu": "present:NoSchedule"}}
    assert legacy(taints, role="controlplane")["nodeTaints"] == taints["nodeTaints"]
    assert refusal(legacy, {"nodeTaints": {"gpu": "NoSchedul"}}, role="controlplane").startswith(
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
    assert refusal(new, patch) == f"config_patches[0].installer.image {expected}"


@pytest.mark.parametrize("image", [f"factory.example.com/metal-installer/{ID}:v1.12.11", "example.com/installer:v1"])
def test_an_installer_of_the_users_own_takes_the_place_of_ours(image):
    assert legacy({"install": {"image": image, "disk": "/dev/sda"}})["install"] == {"image": image, "disk": "/dev/sda"}
    assert refusal(legacy, {"install": {"image": image}}, {"install": {"image": "other:v1"}}) == (
        "config_patches[1].machine.install.image must not contradict what is set already; "
        f"got 'other:v1' beside {image!r}"
    )
    assert legacy({"install": {"disk": "/dev/sda"}})["install"] == {**OURS["machine"]["install"], "disk": "/dev/sda"}


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        (
            {"machine": {"sysctls": {"a": "b"}, "nodeLabels": {}}},
            "config_patches[0] must be a document with a kind on Talos 1.14, which has one for each matter; got one "
            "without; use KubeNodeConfig for machine.nodeLabels, SysctlConfig for machine.sysctls",
        ),
        (
            {"cluster": {}},
            "config_patches[0] must be a document with a kind on Talos 1.14, which has one for each matter; got one "
            "without; use the document for it",
        ),
        ({"machine": 1}, "config_patches[0].machine must be a mapping; got 1"),
        (
            {"kind": "KubeNodeConfig"},
            "config_patches[0].apiVersion must be 'v1alpha1'; got None",
        ),
        ({"kind": ["a"]}, "config_patches[0].kind must be text; got ['a']"),
        (
            document("KubeNodeConfig", label={}),
            "config_patches[0] has a key that Talos does not know; got 'label' (did you mean 'labels'?)",
        ),
        (
            document("KubeNodeConfig", labels={"a": "c"}),
            "config_patches[0].labels.a must not contradict what is set already; got 'c' beside 'b'",
        ),
        (
            document("KubeNodeConfig", taints={"a": "b:NoSchedule:x"}),
            "config_patches[0]: taint.effect must be one of 'NoSchedule', 'PreferNoSchedule', 'NoExecute'; got "
            "'NoSchedule:x' (did you mean 'NoSchedule'?)",
        ),
        (
            document("SysctlConfig", params={"a": 1}),
            "config_patches[0].params['a'] must be text; got 1 (int); write '1'",
        ),
        (
            document("KernelModuleConfig", name="nvidia", parameters=["a=1"]),
            "config_patches[0] must not load a kernel module a second time; got 'nvidia' with [] and with ['a=1']; "
            "use kernel_modules=[KernelModule(name='nvidia', parameters=...)]",
        ),
        (
            document("KernelModuleConfig"),
            "config_patches[0].name is required by KernelModuleConfig; got None",
        ),
        (
            document("KubeletConfig", config={}),
            "config_patches[0].image is required by KubeletConfig; got None; name the kubelet's image",
        ),
        (
            document("CRICustomizationConfig", name="customization", content=""),
            "config_patches[0].name must be the user's own; got 'customization', which is reserved by Talos; "
            "give it another name",
        ),
        (
            document("CRICustomizationConfig", name="nvidia-default-runtime", content=""),
            "config_patches[0].name must be the user's own; got 'nvidia-default-runtime', which is what "
            "default_runtime=True writes; give it another name",
        ),
    ],
)
def test_a_document_that_talos_1_14_would_not_take_is_refused(patch, message):
    assert refusal(new, patch) == message


def test_a_document_of_talos_1_14_is_refused_before_it():
    given = {"platform": LEGACY, "role": "worker", "schematic_id": ID}
    assert refusal(patched, [OURS], [document("SysctlConfig", params={})], **given) == (
        "config_patches[0].kind must be one that Talos 1.12.11 has; got 'SysctlConfig', a document of Talos 1.14; "
        "give its fields below machine, in a patch without a kind"
    )


def test_a_directive_of_talos_is_no_unknown_key():
    assert legacy({"install": {"$patch": "delete"}})["install"]["$patch"] == "delete"


def test_no_key_that_a_release_knows_is_refused():
    assert list(talos_schemas.unknown_keys(talos_structure.committed())) == []

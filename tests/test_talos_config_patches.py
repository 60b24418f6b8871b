import copy

import pytest
from cdk8s import App

import talos_schemas
import talos_structure
from gpu_constructs import GpuConstructsError, Talos, TalosGpuNode
from gpu_constructs.talos.config_merge import deletions, without_deletions
from gpu_constructs.talos.config_patches import patched
from gpu_constructs.talos.machine_config import installer_image_of, node_labels_of, taints_of

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


def _typed(place, what, got):
    return f"config_patches[0].machine.{place} must be {what}; got {got!r}"


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


def test_a_machine_of_another_document_is_none_of_ours():
    other = document("VolumeConfig", machine={"install": {"image": "other:v1"}})
    assert patched([OURS], [other], platform=LEGACY, role="worker", schematic_id=ID) == [OURS, other]
    assert installer_image_of([OURS, other]) == OURS["machine"]["install"]["image"]
    assert installer_image_of([document("VolumeConfig", machine=1)]) is None


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
        ({"kubelet": {"clusterDNS": "10.0.0.1"}}, _typed("kubelet.clusterDNS", "a list of texts", "10.0.0.1")),
        ({"kubelet": {"clusterDNS": [10]}}, _typed("kubelet.clusterDNS", "a list of texts", [10])),
        ({"kubelet": {"extraArgs": ["a"]}}, _typed("kubelet.extraArgs", "a mapping", ["a"])),
        ({"kubelet": {"extraMounts": {}}}, _typed("kubelet.extraMounts", "a list", {})),
        ({"kubelet": {"image": 1}}, _typed("kubelet.image", "text", 1)),
        ({"install": {"wipe": "true"}}, _typed("install.wipe", "true or false", "true")),
        ({"install": {"image": "a\nb"}}, _typed("install.image", "an image's reference", "a\nb")),
        (
            {"kernel": {"modules": [{"name": "a", "parameters": ""}]}},
            _typed("kernel.modules[0].parameters", "a list of texts", ""),
        ),
        (
            {"files": [{"path": "/var/a", "op": "create", "permissions": True}]},
            _typed("files[0].permissions", "a whole number", True),
        ),
        (
            {"files": [{"path": "/var/a", "op": "creat"}]},
            "config_patches[0].machine.files[0].op must be one of 'create', 'append', 'overwrite'; got 'creat' "
            "(did you mean 'create'?)",
        ),
        (
            {"files": [{"path": "/var/a", "content": ""}]},
            "config_patches[0].machine.files[0].op must be one of 'create', 'append', 'overwrite'; got None",
        ),
        (
            {"type": "controlplane"},
            "config_patches[0].machine.type must be 'worker', the node's role; got 'controlplane'; "
            "use role='controlplane'",
        ),
        (
            {"sysctls": {"net/core/bpf_jit_harden": "2"}},
            "config_patches[0].machine.sysctls['net/core/bpf_jit_harden'] must not contradict what is set already; "
            "got '2' beside '1'",
        ),
        ({"type": "master"}, "config_patches[0].machine.type must be one of 'worker', 'controlplane'; got 'master'"),
        (
            {"certSANs": [None]},
            "config_patches[0].machine.certSANs[0] must have a value; got None; leave it out",
        ),
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
    assert legacy({"install": {"image": image}}, {"install": {"image": "other:v1"}})["install"] == {"image": "other:v1"}
    assert legacy({"install": {"disk": "/dev/sda"}})["install"] == {**OURS["machine"]["install"], "disk": "/dev/sda"}


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        (
            {"machine": {"sysctls": {"a": "b"}, "nodeLabels": {}, "token": "x"}, "cluster": {"clusterName": "a"}},
            "config_patches[0] must not hold what Talos 1.14 has documents for; got machine.nodeLabels, "
            "machine.sysctls, cluster.clusterName; use KubeNodeConfig for machine.nodeLabels, SysctlConfig for "
            "machine.sysctls, KubeClusterConfig for cluster.clusterName",
        ),
        (
            {"machine": {"typ": "worker"}},
            "config_patches[0].machine has a key that Talos does not know; got 'typ' (did you mean 'type'?)",
        ),
        (
            document("HostnamConfig"),
            "config_patches[0].kind must be one that Talos 1.14 has; got 'HostnamConfig' (did you mean "
            "'HostnameConfig'?)",
        ),
        (
            {"machine": {"install": {"image": "other:v1"}}},
            "config_patches[0] must not hold what Talos 1.14 has documents for; got machine.install; use "
            "UnattendedInstallConfig for machine.install",
        ),
        ({"cluster": 5}, "config_patches[0].cluster must be a mapping; got 5"),
        ({"machine": 1}, "config_patches[0].machine must be a mapping; got 1"),
        (
            {"kind": "KubeNodeConfig"},
            "config_patches[0].apiVersion must be 'v1alpha1'; got None",
        ),
        ({"kind": ["a"]}, "config_patches[0].kind must be a document's, like 'KubeNodeConfig'; got ['a']"),
        ({"kind": ""}, "config_patches[0].kind must be a document's, like 'KubeNodeConfig'; got ''"),
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
            document("KernelModuleConfig", name="a", parameters=False),
            "config_patches[0].parameters must be a list of texts; got False",
        ),
        (
            document("UnattendedInstallConfig", installer={"image": 1}),
            "config_patches[0].installer.image must be an image's reference; got 1",
        ),
        (
            document("KernelModuleConfig"),
            "config_patches[0].name is required by KernelModuleConfig; got None",
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
    assert refusal(new, patch).removesuffix(f"; {CAME_FROM_1_13}") == message


@pytest.mark.parametrize(
    ("platform", "kind", "line"),
    [(LEGACY, "SysctlConfig", "1.14"), (Talos("1.10"), "HostnameConfig", "1.12")],
)
def test_a_document_of_a_later_talos_is_refused(platform, kind, line):
    given = {"platform": platform, "role": "worker", "schematic_id": ID}
    assert refusal(patched, [OURS], [document(kind)], **given) == (
        f"config_patches[0].kind must be one that {platform} has; got {kind!r}, a document from Talos {line} on; "
        "give its fields, where there are such, in a patch without a kind"
    )


def test_no_key_that_a_release_knows_is_refused_and_no_other_taken():
    assert list(talos_schemas.wrong_keys(talos_structure.committed())) == []


def test_each_release_has_its_kinds_of_documents():
    assert list(talos_schemas.wrong_kinds(talos_structure.committed_kinds())) == []


@pytest.mark.parametrize(("key", "value"), [("bootloader", True), ("grubUseUKICmdline", False)])
def test_keys_that_only_the_types_of_talos_have_are_taken(key, value):
    assert legacy({"install": {key: value}})["install"][key] is value


def test_a_key_without_a_value_is_as_good_as_absent():
    assert legacy({"sysctls": None, "kubelet": {"image": None}}) == legacy({"kubelet": {}}) == OURS["machine"]
    assert new({}, {"machine": None}) == OURS_NEW


def test_what_has_no_document_of_its_own_may_be_patched_without_a_kind():
    config = {"machine": {"certSANs": ["a"], "type": "worker"}, "cluster": {"externalCloudProvider": {"enabled": True}}}
    assert new(config) == [*OURS_NEW, config]
    assert new(config, {"machine": {"certSANs": ["b"]}})[-1]["machine"]["certSANs"] == ["a", "b"]
    assert installer_image_of(new(config)) is None
    assert installer_image_of([{"cluster": {}}]) is None


def test_a_patch_of_the_kubelet_is_partial():
    kubelet = document("KubeletConfig", config={"maxPods": 50})
    assert new(kubelet) == [*OURS_NEW, kubelet]


def test_a_later_patch_wins_over_an_earlier_one_but_not_over_ours():
    names = [{"network": {"hostname": name}, "kubelet": {"image": name}} for name in ("a", "b")]
    machine = legacy(*names)
    assert machine["network"] == {"hostname": "b"}
    assert machine["kubelet"]["image"] == "b"
    assert new(*(document("HostnameConfig", hostname=name) for name in ("a", "b")))[-1]["hostname"] == "b"
    labels = [document("KubeNodeConfig", labels={"c": value}) for value in ("1", "2")]
    assert new(*labels)[-1]["labels"] == {"a": "b", "c": "2"}
    assert refusal(legacy, {}, {"sysctls": {"net.core.bpf_jit_harden": "2"}}).startswith("config_patches[1].")


DELETED = {"$patch": "delete"}
LOAD_BALANCERS = "node.kubernetes.io/exclude-from-external-load-balancers"


@pytest.mark.parametrize(
    ("place", "machine"),
    [
        ("machine", DELETED),
        ("machine.kernel", {"kernel": DELETED}),
        ("machine.kernel.modules", {"kernel": {"modules": DELETED}}),
        ("machine.kernel.modules[name=nvidia]", {"kernel": {"modules": [{"name": "nvidia", **DELETED}]}}),
        ("machine.sysctls", {"sysctls": DELETED}),
        ("machine.sysctls.net.core.bpf_jit_harden", {"sysctls": {"net.core.bpf_jit_harden": DELETED}}),
        ("machine.kubelet", {"kubelet": DELETED}),
        ("machine.kubelet.extraConfig", {"kubelet": {"extraConfig": DELETED}}),
        ("machine.install.image", {"install": {"image": DELETED}}),
        ("machine.files", {"files": DELETED}),
    ],
)
def test_nothing_of_ours_can_be_deleted(place, machine):
    assert refusal(legacy, machine) == (
        f"config_patches[0] must not delete {place}, where this node's own configuration lies; leave it to the "
        "keywords, delete what else lies there by its own key, or give the deletion to talosctl in a patch before "
        "this one"
    )


@pytest.mark.parametrize(
    ("place", "patch"),
    [
        ("the document", document("KernelModuleConfig", name="nvidia", **DELETED)),
        ("the document", document("CRICustomizationConfig", name="nvidia-default-runtime", **DELETED)),
        ("the document", document("KubeNodeConfig", **DELETED)),
        ("labels", document("KubeNodeConfig", labels=DELETED)),
        ("labels.a", document("KubeNodeConfig", labels={"a": DELETED})),
    ],
)
def test_no_document_of_ours_can_be_deleted(place, patch):
    assert refusal(new, patch).startswith(f"config_patches[0] must not delete {place}, where this node's own")


@pytest.mark.parametrize(
    "machine",
    [
        {"nodeLabels": {LOAD_BALANCERS: DELETED}},
        {"nodeLabels": DELETED},
        {"nodeTaints": DELETED},
        {"sysctls": {"vm.nr_hugepages": DELETED}},
        {"sysctls": {"net/core/bpf_jit_harden": DELETED}},
        {"install": {"extensions": DELETED}},
        {"install": {"extensions": [{"image": "ghcr.io/siderolabs/gvisor:1", **DELETED}]}},
        {"kernel": {"modules": [{"name": "nvidia-uvm", **DELETED}]}},
        {"kubelet": {"extraArgs": DELETED, "extraConfig": {"cpuManagerPolicy": DELETED}}},
        {"network": {"interfaces": [{"interface": "eth0", **DELETED}, {"interface": "eth0", "dhcp": True}]}},
        {"files": [{"path": "/etc/x", **DELETED}]},
        {"token": DELETED},
    ],
)
@pytest.mark.parametrize("role", ["worker", "controlplane"])
def test_what_is_not_ours_can_be_deleted(machine, role):
    made = legacy(machine, role=role)
    assert without_deletions({"machine": made})["machine"] == {
        **OURS["machine"],
        **without_deletions({"machine": machine}).get("machine", {}),
    }
    assert set(deletions("", {"machine": made})) == set(deletions("", {"machine": machine})) != set()


@pytest.mark.parametrize(
    "patch",
    [
        document("KubeNodeConfig", labels={LOAD_BALANCERS: DELETED}),
        document("KubeNodeConfig", taints=DELETED),
        document("KernelModuleConfig", name="nvidia", parameters=DELETED),
    ],
)
def test_what_is_not_ours_can_be_deleted_from_a_document_of_ours(patch):
    made = new(patch)
    assert [without_deletions(one) for one in made] == OURS_NEW
    assert [found for one in made for found in deletions("", one)] == deletions("", patch) != []


@pytest.mark.parametrize(
    "patch",
    [
        document("KernelModuleConfig", name="nvidia-", **DELETED),
        document("CRICustomizationConfig", name="customization", **DELETED),
        document("SysctlConfig", **DELETED),
        document("HostnameConfig", hostname=DELETED),
        {"machine": {"nodeLabels": {LOAD_BALANCERS: DELETED}, "certSANs": DELETED}},
    ],
)
def test_a_document_that_is_not_ours_can_be_deleted(patch):
    assert new(patch) == [*OURS_NEW, patch]


def test_a_document_can_be_deleted_and_set_anew_but_not_the_other_way():
    delete, anew = document("HostnameConfig", **DELETED), document("HostnameConfig", hostname="a")
    assert new(delete, anew) == [*OURS_NEW, delete, anew]
    assert refusal(new, anew, delete).startswith(
        "config_patches[1] and the patches before it must not both set and delete the document: "
    )


def test_deletions_are_no_labels_and_no_taints():
    made = new(document("KubeNodeConfig", labels={LOAD_BALANCERS: DELETED}, taints=DELETED))
    assert node_labels_of(made) == {"a": "b"}
    assert taints_of(made) == []


def test_a_key_to_delete_that_talos_does_not_know_is_refused():
    assert refusal(legacy, {"nodeLabel": {"a": DELETED}}) == (
        "config_patches[0].machine has a key that Talos does not know; got 'nodeLabel' (did you mean 'nodeLabels'?)"
    )


def test_a_patch_that_holds_itself_is_refused_in_one_line():
    endless = {}
    endless["machine"] = {"kubelet": {"extraConfig": endless}}
    with pytest.raises(GpuConstructsError, match=r"config_patches\[0\]") as refused:
        TalosGpuNode(App(), "node", platform=Talos("1.12"), config_patches=[endless])
    assert "\n" not in str(refused.value)


CAME_FROM_1_13 = "a node that came from 1.13 keeps the patch of Talos('1.13'), which its configuration goes on with"


def kubelet(*taints):
    return {"apiVersion": "v1alpha1", "kind": "KubeletConfig", "config": {"registerWithTaints": list(taints)}}


def test_taints_of_the_kubelets_document_are_checked_and_known():
    taint = {"key": "pool", "value": "a", "effect": "NoSchedule"}
    node = TalosGpuNode(App(), "node", platform=Talos("1.14.0-rc.1"), config_patches=[kubelet(taint)])
    assert node.provides.gpu_nodes.taints == [taint]
    with pytest.raises(GpuConstructsError, match="registerWithTaints"):
        TalosGpuNode(App(), "node", platform=Talos("1.14"), config_patches=[kubelet({"key": "a b", "effect": "Foo"})])


def test_a_node_that_came_from_an_older_release_is_told_to_keep_its_patch():
    assert refusal(new, {"machine": {"install": {"disk": "/dev/sda"}}}).endswith(f"; {CAME_FROM_1_13}")

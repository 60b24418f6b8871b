import pytest

from gpu_constructs import (
    Backend,
    GpuConstructsError,
    GpuProfile,
    GpuRequest,
    Kubernetes,
    Sharing,
    Toleration,
    Volume,
    VolumeClaim,
    pod_security,
)
from gpu_constructs.recipes.training_pod import PYTORCH_IMAGE, TrainingPod, memory_fraction, require_name

RTX3090, RTX5070TI = "NVIDIA GeForce RTX 3090", "NVIDIA GeForce RTX 5070 Ti"
MPS = GpuProfile(sharing=Sharing.mps(replicas=4))


def rendered(**given):
    return TrainingPod(**given).render(name="run", namespace="team", component="training", container="main")


def container(**given):
    (only,) = rendered(**given).spec["containers"]
    return only


def env(**given):
    return {variable["name"]: variable["value"] for variable in container(**given)["env"] or ()}


def refusal(**given):
    with pytest.raises(GpuConstructsError) as refused:
        TrainingPod(**given)
    return str(refused.value)


def test_the_pod_reaches_the_level_restricted():
    spec = rendered(script="print()").spec
    assert pod_security.violations(spec, "restricted") == []


def test_the_gpu_comes_with_its_runtime_class_and_its_node():
    spec = rendered(gpus=2).spec
    assert spec["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == 2
    assert (spec["runtimeClassName"], spec["nodeSelector"]) == ("nvidia", {"nvidia.com/gpu.present": "true"})


def test_profile_and_placement_decide_as_for_any_workload():
    taint = Toleration(key="dedicated", value="ai", effect="NoSchedule")
    profile = GpuProfile(platform=Kubernetes(), node_selector={"pool": "gpu"})
    spec = rendered(profile=profile, tolerations=[taint], node_selector={"zone": "a"}).spec
    assert spec["nodeSelector"] == {"pool": "gpu", "zone": "a"}
    assert "runtimeClassName" not in spec
    assert {"key": "dedicated", "value": "ai", "effect": "NoSchedule", "operator": "Equal"} in spec["tolerations"]


# --- the script ------------------------------------------------------------------


def test_a_script_is_an_immutable_config_map_named_after_its_checksum():
    one, other = (rendered(script=text).beside["script"] for text in ("print(1)", "print(2)"))
    assert one["immutable"] is True
    assert one["data"] == {"train.py": "print(1)"}
    assert one["metadata"]["name"] != other["metadata"]["name"]
    assert one["metadata"]["namespace"] == "team"


def test_a_script_is_mounted_read_only():
    made = rendered(script="print(1)")
    name = made.beside["script"]["metadata"]["name"]
    assert {"name": "train", "configMap": {"name": name}} in made.spec["volumes"]
    assert {"name": "train", "mountPath": "/train", "readOnly": True, "subPath": None} in container(script="print(1)")[
        "volumeMounts"
    ]


@pytest.mark.parametrize(
    ("nproc", "nodes", "by_operator", "command"),
    [
        (1, 1, False, ["python", "/train/train.py"]),
        (1, 1, True, ["python", "/train/train.py"]),
        (2, 1, False, ["torchrun", "--standalone", "--nproc-per-node=2", "/train/train.py"]),
        (2, 1, True, ["torchrun", "/train/train.py"]),
        (1, 2, True, ["torchrun", "/train/train.py"]),
    ],
)
def test_torchrun_starts_what_runs_in_several_processes(nproc, nodes, by_operator, command):
    pod = TrainingPod(script="print()")
    assert pod.launched(nproc_per_node=nproc, num_nodes=nodes, by_operator=by_operator) == command


def test_a_command_is_left_as_it_is():
    pod = TrainingPod(command=["accelerate", "launch", "x.py"])
    assert pod.launched(nproc_per_node=4, num_nodes=2, by_operator=True) == ["accelerate", "launch", "x.py"]


@pytest.mark.parametrize(
    ("given", "processes"),
    [
        ({}, 1),
        ({"gpus": 3}, 3),
        ({"gpus": GpuRequest(count=2, mig_profile="1g.10gb")}, 1),
        ({"gpus": GpuRequest(count=2, resource="nvidia.com/mig-1g.10gb")}, 1),
    ],
)
def test_each_gpu_gets_a_process_and_mig_devices_one(given, processes):
    assert TrainingPod(**given).processes == processes


# --- memory ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("vram", "products", "fraction"),
    [
        ("8Gi", [RTX3090], "0.33"),
        ("8Gi", [RTX3090, RTX5070TI], "0.33"),
        ("8Gi", ["NVIDIA-GeForce-RTX-5070-Ti"], "0.50"),
        ("1Mi", [RTX3090], "0.01"),
        ("24Gi", [RTX3090], None),
        ("8Gi", [], None),
        ("8Gi", [RTX3090, "Tesla P4"], None),
        (None, [RTX3090], None),
    ],
)
def test_the_fraction_is_the_budget_of_the_largest_board_rounded_down(vram, products, fraction):
    assert memory_fraction(GpuRequest(vram=vram, products=products)) == fraction


@pytest.mark.parametrize("mig", [{"mig_profile": "3g.40gb"}, {"resource": "nvidia.com/mig-3g.40gb"}], ids=str)
def test_of_a_mig_device_its_own_memory_counts(mig):
    assert memory_fraction(GpuRequest(vram="20Gi", products=["NVIDIA A100-SXM4-80GB"], **mig)) == "0.50"


@pytest.mark.parametrize(
    ("image", "is_set"),
    [
        ("docker.io/pytorch/pytorch:2.10.0-cuda12.8-cudnn9-runtime", True),
        ("pytorch/pytorch:3.0.0-cuda13.0-cudnn9-runtime", True),
        ("docker.io/pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime", False),
        ("registry.example/train:2.10", False),
    ],
)
def test_the_fraction_is_told_only_to_a_pytorch_that_knows_it(image, is_set):
    gpus = GpuRequest(vram="8Gi", products=[RTX3090])
    told = env(image=image, gpus=gpus).get("PYTORCH_CUDA_ALLOC_CONF")
    assert told == ("per_process_memory_fraction:0.33" if is_set else None)


@pytest.mark.parametrize("name", ["PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"])
def test_the_user_s_allocator_settings_win(name):
    gpus = GpuRequest(vram="8Gi", products=[RTX3090])
    image = "docker.io/pytorch/pytorch:2.10.0-cuda12.8-cudnn9-runtime"
    assert env(image=image, gpus=gpus, env={name: "expandable_segments:True"}) == {name: "expandable_segments:True"}


def shared_memory(**given):
    return [v["emptyDir"] for v in rendered(**given).spec["volumes"] or () if v["name"] == "dev-shm"]


def test_two_gibibytes_of_shared_memory_are_the_default():
    assert shared_memory() == [{"medium": "Memory", "sizeLimit": "2Gi"}]
    assert shared_memory(shared_memory="4Gi") == [{"medium": "Memory", "sizeLimit": "4Gi"}]


def test_shared_memory_is_left_to_mps():
    assert shared_memory(profile=MPS) == []


def test_shared_memory_of_the_user_s_own_is_not_doubled():
    own = Volume.empty_dir(medium="Memory", size_limit="1Gi")
    assert shared_memory(volumes={"/dev/shm": own}) == [{"medium": "Memory", "sizeLimit": "1Gi"}]


# --- disks and claims --------------------------------------------------------------


def test_a_disk_of_its_own_is_made_beside():
    made = rendered(volumes={"/checkpoints": VolumeClaim(storage="50Gi")})
    assert made.beside["disk-checkpoints"]["metadata"]["name"] == "run-checkpoints"
    claim = {"name": "checkpoints", "persistentVolumeClaim": {"claimName": "run-checkpoints"}}
    assert claim in made.spec["volumes"]


def test_a_disk_of_one_node_is_refused_for_pods_on_several():
    pod = TrainingPod(volumes={"/checkpoints": VolumeClaim(storage="50Gi")})
    with pytest.raises(GpuConstructsError, match=r"2 pods run at once; use access_modes=\['ReadWriteMany'\]"):
        pod.render(name="a", namespace="b", component="c", container="d", pods_at_once=2)


def test_claims_come_with_their_template():
    made = rendered(profile=GpuProfile(platform=Kubernetes("1.35"), backend=Backend.dra_claims()))
    assert made.beside["gpu-claim"]["kind"] == "ResourceClaimTemplate"
    assert made.spec["resourceClaims"] == [{"name": "gpu", "resourceClaimTemplateName": "run-gpu"}]


# --- where slots count memory ------------------------------------------------------

UNITS = GpuProfile(sharing=Sharing.vram_units(vram="16303Mi"))


def test_the_pod_asks_for_as_many_units_as_it_takes_and_runs_one_process():
    pod = TrainingPod(gpus=GpuRequest(vram="7.5Gi"), profile=UNITS)
    made = pod.render(name="run", namespace="team", component="training", container="main")
    assert made.spec["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == 8
    assert pod.processes == 1


def test_the_object_says_what_is_taken_at_most_and_most_of_the_time():
    pod = TrainingPod(gpus=GpuRequest(vram="8Gi", vram_typical="6Gi"))
    assert pod.annotations({"note": "x"}, ["R13"]) == {
        "note": "x",
        "gpu-constructs/vram": "8Gi",
        "gpu-constructs/vram-typical": "6Gi",
        "gpu-constructs/ignore-rules": "R13",
    }


# --- what is refused ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"script": " "}, "training_pod.script must be the text of a Python file; got ' '"),
        (
            {"script": "print()", "command": ["a"]},
            "training_pod.script and command must not both be given; args go to either",
        ),
        ({"script": "#" * 1_000_001}, "training_pod.script must have at most 1000000 bytes"),
        (
            {"script": "print()", "volumes": {"/train": Volume.empty_dir()}},
            "training_pod.volumes['/train'] must be left out beside script, which is there",
        ),
        ({"image": "pytorch"}, "training_pod.image must be pinned"),
        ({"gpus": 0}, "training_pod.gpus must be at least 1"),
        ({"profile": UNITS}, "training_pod.request.vram is required where nvidia.com/gpu is shared in units of 1Gi"),
        ({"profile": UNITS, "gpus": 2}, "training_pod.gpus must be 1 where nvidia.com/gpu is shared in units of 1Gi"),
        ({"run_as_user": -1}, "training_pod.run_as_user must be at least 0"),
        ({"fs_group": -1}, "training_pod.fs_group must be at least 0"),
        ({"priority_class_name": "A"}, "training_pod.priority_class_name must be a DNS subdomain"),
        ({"shared_memory": "a lot"}, "training_pod.shared_memory must be a Kubernetes quantity"),
        ({"shared_memory": "16Gi"}, "training_pod.shared_memory must be less than the memory limit of 16Gi"),
        ({"shared_memory": "1Gi", "profile": MPS}, "training_pod.shared_memory must be left out where"),
        (
            {"volumes": {"/dev/shm": Volume.empty_dir()}, "profile": MPS},
            "training_pod.shared_memory must be left out where",
        ),
        ({"env": {"NVIDIA_VISIBLE_DEVICES": "all"}}, "training_pod.env['NVIDIA_VISIBLE_DEVICES'] must not be set"),
        ({"scripts": "x"}, "scripts is no member of TrainingPod (did you mean 'script'?)"),
    ],
)
def test_what_could_not_run_is_refused(given, says):
    assert refusal(**given).startswith(says)


OLD = "docker.io/pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime"
OLD_NGC = "nvcr.io/nvidia/pytorch:24.12-py3"


@pytest.mark.parametrize("image", [OLD, OLD_NGC, "registry.example/train:cu124"])
@pytest.mark.parametrize("wish", [{"products": [RTX5070TI]}, {"family": "blackwell"}], ids=["board", "family"])
def test_an_image_without_kernels_for_blackwell_is_refused(image, wish):
    assert "or later for a Blackwell board" in refusal(image=image, gpus=GpuRequest(**wish))


@pytest.mark.parametrize("image", [PYTORCH_IMAGE, "nvcr.io/nvidia/pytorch:25.01-py3", "registry.example/train:v1"])
def test_an_image_with_kernels_for_blackwell_and_one_nobody_knows_are_taken(image):
    assert TrainingPod(image=image, gpus=GpuRequest(family="blackwell"))


@pytest.mark.parametrize("image", [OLD, OLD_NGC])
def test_older_boards_take_older_images(image):
    assert TrainingPod(image=image, gpus=GpuRequest(products=[RTX3090]))


@pytest.mark.parametrize(
    ("name", "says"),
    [("a" * 53, "at most 52 characters"), ("1a", "start with a letter"), ("A", "a DNS label")],
)
def test_a_name_of_which_no_service_could_be_made_is_refused(name, says):
    with pytest.raises(GpuConstructsError, match=says):
        require_name(name)

import pytest

from gpu_constructs import (
    GpuConstructsError,
    GpuProfile,
    GpuRequest,
    Kubernetes,
    Sharing,
    Toleration,
    Volume,
    VolumeClaim,
)
from gpu_constructs.recipes.training_pod import PYTORCH_IMAGE, TrainingPod, launched, memory_fraction
from refusals import check_refusals

RTX3090, RTX5070TI = "NVIDIA GeForce RTX 3090", "NVIDIA GeForce RTX 5070 Ti"
MPS = GpuProfile(sharing=Sharing.mps(replicas=4))


def rendered(**given):
    return TrainingPod(**given).render(name="run", namespace="team", component="training", container="main")


def container(**given):
    (only,) = rendered(**given).spec["containers"]
    return only


def env(**given):
    return {variable["name"]: variable["value"] for variable in container(**given)["env"] or ()}


def test_profile_and_placement_apply_as_for_any_workload():
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


def test_torchrun_starts_several_processes(rows):
    pod = TrainingPod(script="print()")
    for nproc, nodes, by_operator, command in rows:
        assert launched(pod, nproc_per_node=nproc, num_nodes=nodes, by_operator=by_operator) == command
    own = ["accelerate", "launch", "x.py"]
    assert launched(TrainingPod(command=own), nproc_per_node=4, num_nodes=2, by_operator=True) == own


# --- memory ------------------------------------------------------------------------


def test_the_fraction_is_the_budget_of_the_largest_board_rounded_down(rows):
    for vram, products, fraction in rows:
        assert memory_fraction(GpuRequest(vram=vram, products=products)) == fraction
    for mig in ({"mig_profile": "3g.40gb"}, {"resource": "nvidia.com/mig-3g.40gb"}):
        assert memory_fraction(GpuRequest(vram="20Gi", products=["NVIDIA A100-SXM4-80GB"], **mig)) == "0.50"


def test_only_a_pytorch_that_supports_the_fraction_gets_it(rows):
    gpus = GpuRequest(vram="8Gi", products=[RTX3090])
    for image, fraction in rows:
        assert env(image=image, gpus=gpus).get("PYTORCH_CUDA_ALLOC_CONF") == fraction


@pytest.mark.parametrize("name", ["PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"])
def test_the_users_allocator_settings_have_priority(name):
    gpus = GpuRequest(vram="8Gi", products=[RTX3090])
    image = "docker.io/pytorch/pytorch:2.10.0-cuda12.8-cudnn9-runtime"
    assert env(image=image, gpus=gpus, env={name: "expandable_segments:True"}) == {name: "expandable_segments:True"}


def shared_memory(**given):
    return [v["emptyDir"] for v in rendered(**given).spec["volumes"] or () if v["name"] == "dev-shm"]


def test_the_default_of_shared_memory_is_2gi_unless_there_is_a_mount():
    own = Volume.empty_dir(medium="Memory", size_limit="1Gi")
    for given, size in (({}, "2Gi"), ({"shared_memory": "4Gi"}, "4Gi"), ({"volumes": {"/dev/shm": own}}, "1Gi")):
        assert shared_memory(**given) == [{"medium": "Memory", "sizeLimit": size}]
    assert shared_memory(profile=MPS) == []


# --- disks and claims --------------------------------------------------------------


def test_a_disk_for_one_node_is_rejected_for_pods_on_several():
    pod = TrainingPod(volumes={"/checkpoints": VolumeClaim(storage="50Gi")})
    with pytest.raises(GpuConstructsError, match=r"2 pods run at the same time. Use access_modes=\['ReadWriteMany'\]"):
        pod.render(name="a", namespace="b", component="c", container="d", pods_at_once=2)


# --- where slots count memory ------------------------------------------------------

UNITS = GpuProfile(sharing=Sharing.vram_units(vram="16303Mi"))


def test_the_pod_requests_the_units_of_its_budget():
    assert container(gpus=GpuRequest(vram="7.5Gi"), profile=UNITS)["resources"]["limits"]["nvidia.com/gpu"] == 8


# --- what is refused ---------------------------------------------------------------


def test_impossible_options_are_rejected(rows):
    too_long = {"script": "#" * 1_000_001}
    check_refusals(TrainingPod, [*rows, (too_long, "training_pod.script must have at most 1000000 bytes…")])


def test_an_image_without_kernels_for_blackwell_is_rejected():
    old = ("docker.io/pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime", "nvcr.io/nvidia/pytorch:24.12-py3", "a.b/c:cu124")
    blackwell = GpuRequest(family="blackwell")
    said = "training_pod.image must be of … or later for a Blackwell board…"
    for image in old:
        assert TrainingPod(image=image, gpus=GpuRequest(products=[RTX3090]))
        wanted = (GpuRequest(products=[RTX5070TI]), blackwell)
        check_refusals(TrainingPod, [({"image": image, "gpus": gpus}, said) for gpus in wanted])
    for image in (PYTORCH_IMAGE, "nvcr.io/nvidia/pytorch:25.01-py3", "registry.example/train:v1"):
        assert TrainingPod(image=image, gpus=blackwell)

import cdk8s_plus_27 as kplus
import pytest
from cdk8s import Size

from gpu_constructs import GpuConstructsError, Volume
from gpu_constructs.kube.volume import Mounts, VolumeClaim, mounts
from refusals import refusal
from tables import cases


@cases
def test_a_source_has_the_form_of_the_kubernetes_api(volume, source, read_only):
    assert (volume.source, volume.read_only) == (source, read_only)


def test_objects_of_cdk8s_plus_become_volumes(chart):
    claim = kplus.PersistentVolumeClaim(
        chart, "models", access_modes=[kplus.PersistentVolumeAccessMode.READ_WRITE_ONCE], storage=Size.gibibytes(1)
    )
    settings, token = kplus.ConfigMap(chart, "settings"), kplus.Secret(chart, "token")
    assert Volume.of("volumes", claim).source == {"persistentVolumeClaim": {"claimName": claim.name}}
    assert Volume.of("volumes", settings) == Volume.config_map(settings)
    assert Volume.of("volumes", token).source == {"secret": {"secretName": token.name}}


@pytest.mark.parametrize(("given", "got"), [("models", "str"), (None, "NoneType"), (5, "int")])
def test_a_value_that_pods_cannot_mount_is_rejected(given, got):
    assert refusal(Volume.of, "volumes['/data']", given) == (
        "volumes['/data'] must be a Volume, a VolumeClaim or a construct of a PersistentVolumeClaim, ConfigMap or "
        f"Secret, got {got}"
    )


@pytest.mark.parametrize("size", ["٣Gi", "²Mi"])
def test_digits_of_other_scripts_are_not_a_quantity(size):
    assert refusal(Volume.empty_dir, size_limit=size).startswith("size_limit must be a Kubernetes quantity")


@cases
def test_an_invalid_host_path_is_rejected(given, options, problem):
    assert refusal(Volume.host_path, *given, **options) == problem


@pytest.mark.parametrize("path", ["/a:b", "/a\nb"])
def test_an_invalid_mount_path_is_rejected(path):
    with pytest.raises(GpuConstructsError, match=r"^volumes path must "):
        mounts({path: Volume.empty_dir()}, shared_memory=None)


# --- sources of any kind, sub-paths of a volume -------------------------------------


@cases
def test_a_source_that_no_pod_has_is_rejected(source, problem):
    got = refusal(Volume.of_source, source)
    assert (
        got.replace('type of source["nfs"]', "source['nfs']")
        .replace("values of source", "source['nfs']")
        .startswith(problem)
    )
    assert len(got.splitlines()) == 1


@pytest.mark.parametrize("sub_path", ["", "/models", "a/../b", ".."])
def test_a_sub_path_is_a_relative_path(sub_path):
    assert refusal(Volume.empty_dir().at, sub_path) == (
        f"sub_path must be a relative path without '..', got {sub_path!r}"
    )


def test_sub_paths_of_one_volume_share_it():
    disk = Volume.persistent_volume_claim("disk")
    mounted, sources = mounts({"/models": disk.at("models"), "/cache": disk.at("cache")}, shared_memory=None)
    assert [(one["mountPath"], one["name"], one["subPath"]) for one in mounted] == [
        ("/models", "models", "models"),
        ("/cache", "models", "cache"),
    ]
    assert sources == [{"name": "models", **disk.source}]


# --- the volumes of several containers ------------------------------------------------


def names(mounted):
    return [one["name"] for one in mounted]


def test_equal_volumes_at_one_path_are_one_and_at_two_paths_are_two():
    pod = Mounts()
    assert names(pod.mounted({"/a": Volume.empty_dir()})) == ["a"]
    assert names(pod.mounted({"/a": Volume.empty_dir()})) == ["a"]
    assert names(pod.mounted({"/b": Volume.empty_dir()})) == ["b"]
    assert names(pod.mounted({"/a": Volume.empty_dir(medium="Memory")})) == ["a-1"]


def test_one_volume_at_two_paths_of_a_container_becomes_two_volumes():
    volume, pod = Volume.empty_dir(), Mounts()
    assert names(pod.mounted({"/a": volume, "/b": volume})) == ["a", "b"]


def test_a_volume_claim_is_not_a_source_yet():
    disk, pod = VolumeClaim(storage="1Gi"), Mounts()
    assert names(pod.mounted({"/models": disk})) == names(pod.mounted({"/elsewhere": disk})) == ["models"]
    assert (pod.sources, pod.claims) == ([], {"models": disk})


def test_only_a_workload_can_create_volume_claims():
    assert refusal(mounts, {"/a": VolumeClaim(storage="1Gi")}, shared_memory=None) == (
        "volumes must not contain a VolumeClaim: only a GpuWorkload creates claims"
    )


def test_objects_are_remembered_once(chart):
    settings, pod = kplus.ConfigMap(chart, "settings"), Mounts()
    pod.mounted({"/a": settings})
    pod.mounted({"/a": settings})
    assert pod.objects == [settings]

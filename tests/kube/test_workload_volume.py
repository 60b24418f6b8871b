import cdk8s_plus_27 as kplus
import pytest
from cdk8s import Size

from gpu_constructs import GpuConstructsError, Volume
from gpu_constructs.kube.volume import Mounts, VolumeClaim, mounts


def message(make):
    with pytest.raises(GpuConstructsError) as refused:
        make()
    return str(refused.value)


@pytest.mark.parametrize(
    ("volume", "source", "read_only"),
    [
        (Volume.persistent_volume_claim("models"), {"persistentVolumeClaim": {"claimName": "models"}}, False),
        (
            Volume.persistent_volume_claim("models", read_only=True),
            {"persistentVolumeClaim": {"claimName": "models"}},
            True,
        ),
        (Volume.config_map("settings"), {"configMap": {"name": "settings"}}, True),
        (Volume.secret("token"), {"secret": {"secretName": "token"}}, True),
        (Volume.empty_dir(), {"emptyDir": {}}, False),
        (
            Volume.empty_dir(medium="Memory", size_limit="2Gi"),
            {"emptyDir": {"medium": "Memory", "sizeLimit": "2Gi"}},
            False,
        ),
        (Volume.host_path("/dev/shm"), {"hostPath": {"path": "/dev/shm"}}, True),
        (
            Volume.host_path("/data", type="DirectoryOrCreate", read_only=False),
            {"hostPath": {"path": "/data", "type": "DirectoryOrCreate"}},
            False,
        ),
    ],
    ids=["claim", "claim-read-only", "config-map", "secret", "empty-dir", "memory", "host-path", "host-path-writable"],
)
def test_a_source_is_written_as_kubernetes_does(volume, source, read_only):
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
def test_what_cannot_be_mounted_is_refused(given, got):
    assert message(lambda: Volume.of("volumes['/data']", given)) == (
        "volumes['/data'] must be a Volume, a VolumeClaim or a PersistentVolumeClaim, ConfigMap or Secret object; "
        f"got {got}"
    )


@pytest.mark.parametrize("size", ["٣Gi", "²Mi"])
def test_digits_of_other_scripts_are_no_quantity(size):
    assert message(lambda: Volume.empty_dir(size_limit=size)).startswith("size_limit must be a Kubernetes quantity")


TYPES = "'', 'Directory', 'DirectoryOrCreate', 'File', 'FileOrCreate', 'Socket'"


@pytest.mark.parametrize(
    ("given", "options", "problem"),
    [
        ((), {}, "path is required by Volume.host_path; pass path=..."),
        ((5,), {}, "path must be str; got int: 5"),
        (("data",), {}, "path must be an absolute path without '..'; got 'data'"),
        (("/data/../etc",), {}, "path must be an absolute path without '..'; got '/data/../etc'"),
        (("/data",), {"type": "Dir"}, f"type must be one of {TYPES}; got 'Dir'"),
        (("/data",), {"type": None}, f"type must be one of {TYPES}; got None"),
        (("/data",), {"readonly": True}, "readonly is not a keyword of Volume.host_path (did you mean 'read_only'?)"),
        (
            ("/data", "File"),
            {},
            "Volume.host_path takes only path without a keyword; got 'File' without one; it has path, type, read_only",
        ),
    ],
    ids=str,
)
def test_a_path_that_no_node_has_is_refused(given, options, problem):
    assert message(lambda: Volume.host_path(*given, **options)) == problem


@pytest.mark.parametrize("path", ["/a:b", "/a\nb"])
def test_a_path_that_no_mount_takes_is_refused(path):
    with pytest.raises(GpuConstructsError, match=r"^volumes path must "):
        mounts({path: Volume.empty_dir()}, shared_memory=None)


# --- sources of any kind, parts of a volume -----------------------------------------

NFS = {"nfs": {"server": "nas.example", "path": "/models"}}


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ({}, "source must hold one source, like {'nfs': {...}}; got {}"),
        ({**NFS, "emptyDir": {}}, "source must hold one source, like {'nfs': {...}}; got "),
        ({"name": {}}, "source key must be one of "),
        ({"nsf": {}}, "source key must be one of "),
        ({"nfs": "nas"}, "source['nfs'] must be Mapping"),
        ("nfs", "source must be Mapping"),
    ],
    ids=str,
)
def test_a_source_that_no_pod_has_is_refused(source, problem):
    got = message(lambda: Volume.of_source(source))
    assert (
        got.replace('type of source["nfs"]', "source['nfs']")
        .replace("values of source", "source['nfs']")
        .startswith(problem)
    )
    assert len(got.splitlines()) == 1


@pytest.mark.parametrize("sub_path", ["", "/models", "a/../b", ".."])
def test_a_part_is_a_relative_path(sub_path):
    assert message(lambda: Volume.empty_dir().at(sub_path)) == (
        f"sub_path must be a relative path without '..'; got {sub_path!r}"
    )


def test_parts_of_one_volume_share_it():
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


def test_one_volume_at_two_paths_of_a_container_is_two_places():
    volume, pod = Volume.empty_dir(), Mounts()
    assert names(pod.mounted({"/a": volume, "/b": volume})) == ["a", "b"]


def test_a_disk_of_its_own_is_no_source_yet():
    disk, pod = VolumeClaim(storage="1Gi"), Mounts()
    assert names(pod.mounted({"/models": disk})) == names(pod.mounted({"/elsewhere": disk})) == ["models"]
    assert (pod.sources, pod.claims) == ([], {"models": disk})


def test_only_a_workload_brings_disks():
    assert message(lambda: mounts({"/a": VolumeClaim(storage="1Gi")}, shared_memory=None)) == (
        "volumes must not hold a VolumeClaim here: only a GpuWorkload brings disks of its own"
    )


def test_objects_are_remembered_once(chart):
    settings, pod = kplus.ConfigMap(chart, "settings"), Mounts()
    pod.mounted({"/a": settings})
    pod.mounted({"/a": settings})
    assert pod.objects == [settings]

import cdk8s_plus_27 as kplus
import pytest
from cdk8s import ApiObject, Size

from gpu_constructs import GpuConstructsError, Volume
from gpu_constructs.workload.volume import mounts


def message(make):
    with pytest.raises(GpuConstructsError) as refused:
        make()
    return str(refused.value)


@pytest.mark.parametrize(
    ("volume", "source", "read_only"),
    [
        (
            Volume.persistent_volume_claim("models"),
            {"persistentVolumeClaim": {"claimName": "models"}},
            False,
        ),
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
        chart,
        "models",
        access_modes=[kplus.PersistentVolumeAccessMode.READ_WRITE_ONCE],
        storage=Size.gibibytes(1),
    )
    settings, token = kplus.ConfigMap(chart, "settings"), kplus.Secret(chart, "token")
    assert Volume.of("volumes", claim).source == {"persistentVolumeClaim": {"claimName": claim.name}}
    assert Volume.of("volumes", settings) == Volume.config_map(settings)
    assert Volume.of("volumes", token).source == {"secret": {"secretName": token.name}}


def test_a_plain_api_object_becomes_a_volume(chart):
    claim = ApiObject(chart, "claim", api_version="v1", kind="PersistentVolumeClaim")
    assert Volume.of("volumes", claim) == Volume.persistent_volume_claim(claim.name)


def test_a_volume_stays_what_it_is():
    volume = Volume.empty_dir()
    assert Volume.of("volumes", volume) is volume


@pytest.mark.parametrize(("given", "got"), [("models", "str"), (None, "NoneType"), (5, "int")])
def test_what_cannot_be_mounted_is_refused(given, got):
    assert message(lambda: Volume.of("volumes['/data']", given)) == (
        f"volumes['/data'] must be a Volume or a PersistentVolumeClaim, ConfigMap or Secret object; got {got}"
    )


def test_a_volume_of_cdk8s_plus_is_told_apart_from_ours_by_its_module(chart):
    assert message(lambda: Volume.of("volumes['/data']", kplus.Volume.from_empty_dir(chart, "v", "v"))) == (
        "volumes['/data'] must be a Volume or a PersistentVolumeClaim, ConfigMap or Secret object; "
        "got cdk8s_plus_27.Volume"
    )


def test_an_object_that_cannot_be_mounted_is_refused(chart):
    assert message(lambda: Volume.of("volumes['/data']", kplus.ServiceAccount(chart, "robot"))) == (
        "volumes['/data'] must be a Volume or a PersistentVolumeClaim, ConfigMap or Secret object; got a ServiceAccount"
    )


def test_a_claim_is_no_secret(chart):
    assert message(lambda: Volume.secret(kplus.ConfigMap(chart, "settings"))) == (
        "secret must be the name of a Secret or a Secret object; got a ConfigMap"
    )


def test_a_name_that_no_object_can_have_is_refused():
    assert message(lambda: Volume.persistent_volume_claim("My_Claim")) == (
        "claim must be a DNS subdomain (DNS labels joined by '.', at most 253 characters); got 'My_Claim'"
    )


def test_a_misspelt_medium_is_refused():
    assert message(lambda: Volume.empty_dir(medium="memory")) == (
        "medium must be one of '', 'Memory'; got 'memory' (did you mean 'Memory'?)"
    )


def test_a_size_that_is_no_quantity_is_refused():
    assert message(lambda: Volume.empty_dir(size_limit="2GB")) == (
        "size_limit must be a Kubernetes quantity like '500m' or '16Gi'; got '2GB'"
    )


@pytest.mark.parametrize("size", [5, True, 1.5, b"1Gi"])
def test_a_size_of_another_type_is_refused(size):
    assert message(lambda: Volume.empty_dir(size_limit=size)).startswith("size_limit must be str")


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
        (("/data",), {"readonly": True}, "readonly is no keyword of Volume.host_path (did you mean 'read_only'?)"),
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

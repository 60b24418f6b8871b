import pytest

from gpu_constructs import GpuConstructsError
from gpu_constructs.kube.volume import VolumeClaim


def test_an_empty_class_asks_for_a_volume_without_one():
    assert VolumeClaim(storage="1Gi", storage_class_name="").spec()["storageClassName"] == ""


@pytest.mark.parametrize(
    ("modes", "several"),
    [
        (["ReadWriteOnce"], False),
        (["ReadWriteOncePod"], False),
        (["ReadOnlyMany"], True),
        (["ReadWriteOnce", "ReadWriteMany"], True),
    ],
)
def test_the_access_modes_say_whether_several_nodes_mount_it(modes, several):
    assert VolumeClaim(storage="1Gi", access_modes=modes).serves_several_nodes is several


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"storage": "100GB"}, "volume_claim.storage must be a Kubernetes quantity like '500m' or '16Gi'; got '100GB'"),
        ({"storage": 5}, "volume_claim.storage must be str"),
        ({}, "storage is required by VolumeClaim"),
        ({"storage": "1Gi", "access_modes": []}, "volume_claim.access_modes must name at least one; got none"),
        ({"storage": "1Gi", "access_modes": ["ReadWrite"]}, "volume_claim.access_modes[0] must be one of "),
        ({"storage": "1Gi", "access_modes": "ReadWriteOnce"}, "volume_claim.access_modes must be a list"),
        ({"storage": "1Gi", "storage_class_name": "Fast Disk"}, "volume_claim.storage_class_name must be a DNS "),
    ],
    ids=str,
)
def test_what_no_storage_could_serve_is_refused_in_one_line(given, message):
    with pytest.raises(GpuConstructsError) as refused:
        VolumeClaim(**given)
    assert str(refused.value).startswith(message)
    assert len(str(refused.value).splitlines()) == 1

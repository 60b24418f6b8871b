from gpu_constructs.kube.volume import VolumeClaim
from refusals import refusal
from tables import cases


def test_an_empty_class_requests_a_volume_without_a_class():
    assert VolumeClaim(storage="1Gi", storage_class_name="").spec()["storageClassName"] == ""


@cases
def test_the_access_modes_determine_whether_several_nodes_can_mount_it(modes, several):
    assert VolumeClaim(storage="1Gi", access_modes=modes).serves_several_nodes is several


@cases
def test_a_claim_that_no_storage_can_serve_is_rejected_in_one_line(given, message):
    assert refusal(VolumeClaim, **given).startswith(message)

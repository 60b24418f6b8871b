from gpu_constructs.kube.volume import VolumeClaim
from refusals import refusal
from tables import cases


def test_an_empty_class_asks_for_a_volume_without_one():
    assert VolumeClaim(storage="1Gi", storage_class_name="").spec()["storageClassName"] == ""


@cases
def test_the_access_modes_say_whether_several_nodes_mount_it(modes, several):
    assert VolumeClaim(storage="1Gi", access_modes=modes).serves_several_nodes is several


@cases
def test_what_no_storage_could_serve_is_refused_in_one_line(given, message):
    assert refusal(VolumeClaim, **given).startswith(message)

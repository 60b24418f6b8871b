import cdk8s_plus_27 as kplus
import pytest
from cdk8s import ApiObject, ApiObjectMetadata, Include

from gpu_constructs import GpuNamespace, NvidiaRuntimeClass
from gpu_constructs.kube.references import name_of
from refusals import refusal


@pytest.mark.parametrize("given", [5, None, True, ["team"], {"name": "team"}])
def test_a_value_that_is_not_an_object_is_rejected_with_its_python_type(given):
    assert refusal(name_of, "namespace", given, "Namespace") == (
        f"namespace must be the name of a Namespace or a Namespace object, got {type(given).__name__}"
    )


def test_an_object_of_any_library_is_accepted_by_its_kind(chart, tmp_path):
    file = tmp_path / "existing.yaml"
    file.write_text("apiVersion: v1\nkind: Secret\nmetadata: {name: mine}\n")
    (secret,) = Include(chart, "existing", url=str(file)).api_objects
    metadata = ApiObjectMetadata(name="mine")
    without_name = kplus.Secret(chart, "without-name")
    for given, kind, name in (
        ("team.example", "ServiceAccount", "team.example"),
        (kplus.ServiceAccount(chart, "account", metadata=metadata), "ServiceAccount", "mine"),
        (without_name, "Secret", ApiObject.of(without_name).name),
        (ApiObject(chart, "plain", api_version="v1", kind="Namespace", metadata=metadata), "Namespace", "mine"),
        (secret, "Secret", "mine"),
        (GpuNamespace(chart, "a", name="team"), "Namespace", "team"),
        (NvidiaRuntimeClass(chart, "b", name="nv"), "RuntimeClass", "nv"),
    ):
        assert name_of("field", given, kind) == name


def test_an_object_of_another_kind_is_rejected_with_its_kind(chart):
    for given, got in (
        (kplus.ConfigMap(chart, "object"), "a ConfigMap"),
        (NvidiaRuntimeClass(chart, "class"), "a RuntimeClass"),
        (chart, "Chart"),
    ):
        assert refusal(name_of, "namespace", given, "Namespace") == (
            f"namespace must be the name of a Namespace or a Namespace object, got {got}"
        )

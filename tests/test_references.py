import cdk8s_plus_27 as kplus
import pytest
from cdk8s import ApiObject, ApiObjectMetadata, Include

from gpu_constructs import GpuNamespace, NvidiaRuntimeClass
from gpu_constructs._references import name_of
from gpu_constructs.errors import GpuConstructsError


def refusal(*arguments):
    with pytest.raises(GpuConstructsError) as refused:
        name_of(*arguments)
    return str(refused.value)


def named(name):
    return ApiObjectMetadata(name=name)


@pytest.mark.parametrize("name", ["team", "team.example"])
def test_a_name_stands_for_itself(name):
    assert name_of("service_account", name, "ServiceAccount") == name


@pytest.mark.parametrize("name", ["", "Not A Name", "a..b"])
def test_a_name_kubernetes_refuses_is_refused(name):
    assert refusal("service_account", name, "ServiceAccount").startswith("service_account must be a DNS subdomain")


@pytest.mark.parametrize("kind", ["Namespace", "ServiceAccount", "Secret", "ConfigMap"])
def test_an_object_of_cdk8s_plus_is_taken_by_its_kind(chart, kind):
    made = getattr(kplus, kind)(chart, "object", metadata=named("mine"))
    assert name_of("field", made, kind) == "mine"


def test_an_object_of_cdk8s_plus_without_a_name_gives_the_one_it_will_have(chart):
    made = kplus.Secret(chart, "object")
    assert name_of("field", made, "Secret") == ApiObject.of(made).name


@pytest.mark.parametrize("kind", ["Namespace", "Secret"])
def test_a_plain_api_object_is_taken_by_its_kind(chart, kind):
    made = ApiObject(chart, "object", api_version="v1", kind=kind, metadata=named("mine"))
    assert name_of("field", made, kind) == "mine"


def test_an_object_of_an_included_file_is_taken(chart, tmp_path):
    file = tmp_path / "existing.yaml"
    file.write_text("apiVersion: v1\nkind: Secret\nmetadata: {name: mine}\n")
    (secret,) = Include(chart, "existing", url=str(file)).api_objects
    assert name_of("field", secret, "Secret") == "mine"


def test_a_construct_of_this_library_is_taken(chart):
    assert name_of("namespace", GpuNamespace(chart, "a", name="team"), "Namespace") == "team"
    assert name_of("runtime_class", NvidiaRuntimeClass(chart, "b", name="nv"), "RuntimeClass") == "nv"


@pytest.mark.parametrize("make", [kplus.ServiceAccount, kplus.ConfigMap])
def test_an_object_of_another_kind_is_refused_by_its_kind(chart, make):
    kind = make.__name__
    assert refusal("namespace", make(chart, "object"), "Namespace") == (
        f"namespace must be the name of a Namespace or a Namespace object; got a {kind}"
    )


def test_a_construct_of_this_library_of_another_kind_is_refused_by_its_kind(chart):
    assert refusal("runtime_class", GpuNamespace(chart, "a"), "RuntimeClass") == (
        "runtime_class must be the name of a RuntimeClass or a RuntimeClass object; got a Namespace"
    )


@pytest.mark.parametrize("given", [5, None, True, ["team"], {"name": "team"}])
def test_a_value_that_is_no_object_is_refused_by_its_python_type(given):
    assert refusal("namespace", given, "Namespace") == (
        f"namespace must be the name of a Namespace or a Namespace object; got {type(given).__name__}"
    )


def test_a_chart_is_no_object(chart):
    assert refusal("namespace", chart, "Namespace").endswith("; got Chart")

import cdk8s_plus_27 as kplus
import pytest

from gpu_constructs import EnvValue, GpuConstructsError
from gpu_constructs.kube.env import environment
from refusals import refusal
from tables import cases


def variables(given, managed=True):
    return environment(given, visible_devices_is_managed=managed)


@cases
def test_a_value_can_be_read_in_the_cluster(value, source):
    assert variables({"A": value}) == [{"name": "A", "valueFrom": source}]


def test_values_of_cdk8s_plus_are_accepted(chart):
    secret = kplus.Secret(chart, "token")
    given = {
        "TEXT": kplus.EnvValue.from_value("x"),
        "SECRET": kplus.EnvValue.from_secret_value(kplus.SecretValue(secret=secret, key="hf")),
        "FIELD": kplus.EnvValue.from_field_ref(kplus.EnvFieldPaths.POD_NAME),
    }
    assert variables(given) == [
        {"name": "TEXT", "value": "x"},
        {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": secret.name, "key": "hf"}}},
        {"name": "FIELD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
    ]


@pytest.mark.parametrize(("value", "kind"), [(5, "int"), (None, "NoneType"), (True, "bool"), (["a"], "list")])
def test_a_value_of_another_type_is_rejected(value, kind):
    assert refusal(variables, {"A": value}) == f"env['A'] must be str or an EnvValue, got {kind}"


@pytest.mark.parametrize("key", [5, None, "", "a b", "a/b"])
@pytest.mark.parametrize("factory", [EnvValue.secret, EnvValue.config_map])
def test_a_key_that_no_secret_or_config_map_can_have_is_rejected(factory, key):
    with pytest.raises(GpuConstructsError, match=r"^key must "):
        factory("name", key=key)


@pytest.mark.parametrize("path", [5, None, "", "metadata.nam"])
def test_a_field_that_no_pod_has_is_rejected(path):
    with pytest.raises(GpuConstructsError, match=r"^field_path must "):
        EnvValue.field(path)

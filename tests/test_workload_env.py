import cdk8s_plus_27 as kplus
import pytest

from gpu_constructs import EnvValue, GpuConstructsError
from gpu_constructs.workload.env import environment


def variables(given, managed=True):
    return environment(given, visible_devices_is_managed=managed)


def refusal(given):
    with pytest.raises(GpuConstructsError) as refused:
        variables(given)
    return str(refused.value)


def test_text_is_written_as_it_is_in_the_order_of_the_user():
    assert variables({"Z": "1", "A": ""}) == [{"name": "Z", "value": "1"}, {"name": "A", "value": ""}]


@pytest.mark.parametrize(
    ("value", "source"),
    [
        (EnvValue.secret("token", key="hf"), {"secretKeyRef": {"name": "token", "key": "hf"}}),
        (EnvValue.config_map("settings", key="url"), {"configMapKeyRef": {"name": "settings", "key": "url"}}),
        (EnvValue.field("metadata.name"), {"fieldRef": {"fieldPath": "metadata.name"}}),
    ],
    ids=["secret", "config-map", "field"],
)
def test_a_value_can_be_read_in_the_cluster(value, source):
    assert variables({"A": value}) == [{"name": "A", "valueFrom": source}]


def test_secrets_and_config_maps_are_taken_as_objects(chart):
    secret, settings = kplus.Secret(chart, "token"), kplus.ConfigMap(chart, "settings")
    given = {"A": EnvValue.secret(secret, key="hf"), "B": EnvValue.config_map(settings, key="url")}
    assert variables(given) == [
        {"name": "A", "valueFrom": {"secretKeyRef": {"name": secret.name, "key": "hf"}}},
        {"name": "B", "valueFrom": {"configMapKeyRef": {"name": settings.name, "key": "url"}}},
    ]


def test_values_of_cdk8s_plus_are_taken_as_well(chart):
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


def test_visible_devices_are_refused_with_the_reason_and_the_way_out():
    assert refusal({"NVIDIA_VISIBLE_DEVICES": "all"}) == (
        "env['NVIDIA_VISIBLE_DEVICES'] must not be set, got 'all': it overrides the GPU that was allocated, and 'all' "
        "shows every GPU of the node; leave it out, or pass visible_devices='unmanaged'"
    )


def test_unmanaged_visible_devices_pass():
    assert variables({"NVIDIA_VISIBLE_DEVICES": "all"}, managed=False) == [
        {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}
    ]


@pytest.mark.parametrize("name", ["", "a-b", "1A", "A B", "A=B", "Ä", "A\n"])
def test_a_name_no_shell_could_read_is_refused(name):
    assert refusal({name: "x"}) == f"env name must be a variable name (letters, digits, '_'); got {name!r}"


@pytest.mark.parametrize(("value", "kind"), [(5, "int"), (None, "NoneType"), (True, "bool"), (["a"], "list")])
def test_a_value_of_another_type_is_refused(value, kind):
    assert refusal({"A": value}) == f"env['A'] must be str or an EnvValue; got {kind}"


def test_a_refused_value_is_not_shown_since_it_may_be_a_secret(chart):
    assert "hunter2" not in refusal({"TOKEN": b"hunter2"})


def test_an_object_of_another_kind_is_no_secret(chart):
    with pytest.raises(GpuConstructsError, match=r"^secret must be the name of a Secret or a Secret object; got a C"):
        EnvValue.secret(kplus.ConfigMap(chart, "settings"), key="hf")


@pytest.mark.parametrize("key", [5, None, "", "a b", "a/b"])
@pytest.mark.parametrize("factory", [EnvValue.secret, EnvValue.config_map])
def test_a_key_that_no_secret_or_config_map_could_hold_is_refused(factory, key):
    with pytest.raises(GpuConstructsError, match=r"^key must "):
        factory("name", key=key)


@pytest.mark.parametrize("path", [5, None, "", "metadata.nam"])
def test_a_field_that_no_pod_has_is_refused(path):
    with pytest.raises(GpuConstructsError, match=r"^field_path must "):
        EnvValue.field(path)

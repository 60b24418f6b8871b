import cdk8s_plus_27 as kplus
import pytest

from gpu_constructs import (
    DevicePlugin,
    EnvValue,
    GpuConstructsError,
    GpuFeatureDiscovery,
    Kubernetes,
    MpsControlDaemon,
    Talos,
)
from gpu_constructs._container_security import Rights
from gpu_constructs.device_plugin.config import environment_variables

COMPONENTS = {
    "device_plugin": DevicePlugin,
    "gpu_feature_discovery": GpuFeatureDiscovery,
    "mps_control_daemon": MpsControlDaemon,
}
each_component = pytest.mark.parametrize("name", COMPONENTS)
SYS_ADMIN = Rights(add=("SYS_ADMIN",))
PRIVILEGED = Rights(add=("SYS_ADMIN",), privileged=True)


def refusal(name, **given):
    with pytest.raises(GpuConstructsError) as refused:
        COMPONENTS[name](**given)
    return str(refused.value)


@each_component
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"env": ["A=1"]}, "{}.env must be Mapping; got list: ['A=1']"),
        ({"env": {5: "1"}}, "{}.env key must be str; got int: 5"),
        ({"env": {"A": 5}}, "env['A'] must be str or an EnvValue; got int"),
        ({"env": {"1A": "5"}}, "env name must be a variable name (letters, digits, '_'); got '1A'"),
        ({"host_network": 1}, "{}.host_network must be bool; got int: 1"),
        ({"node_selector": {"a b": "c"}}, "{}.node_selector has a key that is no label key; got 'a b'"),
        ({"node_selector": {"a": True}}, "{}.node_selector['a'] must be str; got bool: True"),
        (
            {"resources": {"limit": {}}},
            "resources key must be one of 'requests', 'limits'; got 'limit' (did you mean 'limits'?)",
        ),
        ({"security_context": True}, "{}.security_context must be one of (Mapping[str, Any], None); got bool: True"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_a_value_that_kubernetes_would_not_take_is_refused(name, given, message):
    assert refusal(name, **given) == message.format(name)


@each_component
def test_a_misspelt_field_of_the_security_context_is_refused_with_the_one_that_was_meant(name):
    message = refusal(name, security_context={"privilege": True})
    assert message.startswith(f"{name}.security_context key must be one of 'allowPrivilegeEscalation', ")
    assert message.endswith("; got 'privilege' (did you mean 'privileged'?)")


@each_component
@pytest.mark.parametrize(
    ("context", "message"),
    [
        (
            {"capabilities": ["SYS_ADMIN"]},
            "['capabilities'] must be one of (Mapping[str, Sequence[str]], None); got list: ['SYS_ADMIN']",
        ),
        (
            {"capabilities": {"add": "SYS_ADMIN"}},
            "['capabilities']['add'] must be a list, got 'SYS_ADMIN' (str)",
        ),
        ({"privileged": "yes"}, "['privileged'] must be one of (bool, None); got str: 'yes'"),
    ],
    ids=str,
)
def test_what_is_read_of_a_security_context_must_have_its_type(name, context, message):
    assert refusal(name, security_context=context) == f"{name}.security_context{message}"


# --- variables ------------------------------------------------------------------------------------------------


@each_component
def test_every_variable_that_would_override_the_file_is_refused_with_its_place_there(name):
    overriding = environment_variables()
    assert len(overriding) > 25
    for variable, member in overriding.items():
        assert refusal(name, env={variable: "x"}) == (
            f"{name}.env[{variable!r}] must not be set: it would override {member} of the configuration without a "
            f"word; set {member} in config=PluginConfig(...)"
        )


@each_component
@pytest.mark.parametrize(
    "variable",
    ["CONFIG_FILE", "GFD_CONFIG_FILE", "NODE_NAME", "NAMESPACE", "POD_NAME", "NVIDIA_MIG_MONITOR_DEVICES"],
)
def test_a_variable_of_ours_is_refused(name, variable):
    assert refusal(name, env={variable: "x"}) == (
        f"{name}.env[{variable!r}] must not be set: this library sets it; leave it out"
    )


@pytest.mark.parametrize(
    "variable", ["CDI_FEATURE_FLAGS", "CDI_DISABLE_HOOKS", "DP_DISABLE_HEALTHCHECKS", "DP_ENABLE_HEALTHCHECKS"]
)
def test_a_variable_that_has_a_keyword_is_refused_where_it_has_one(variable):
    assert refusal("device_plugin", env={variable: "x"}) == (
        f"device_plugin.env[{variable!r}] must not be set: this library sets it; leave it out"
    )
    assert GpuFeatureDiscovery(env={variable: "x"}).env == {variable: "x"}


@each_component
@pytest.mark.parametrize("value", ["", kplus.EnvValue.from_value("")], ids=["str", "EnvValue of cdk8s-plus"])
def test_an_empty_variable_is_refused_since_the_programs_take_it_as_set(name, value):
    assert refusal(name, env={"A": "1", "B": value}) == (
        f"{name}.env['B'] must not be empty: an empty variable counts as set; leave it out"
    )


@each_component
def test_any_other_variable_is_taken_by_value_or_by_reference(name):
    given = {
        "KUBELET_SOCKET": "/run/kubelet.sock",
        "NVIDIA_VISIBLE_DEVICES": "0",
        "HTTPS_PROXY": EnvValue.secret("proxy", key="url"),
        "PLUS": kplus.EnvValue.from_value("5"),
    }
    assert COMPONENTS[name](env=given).environment() == [
        {"name": "KUBELET_SOCKET", "value": "/run/kubelet.sock"},
        {"name": "NVIDIA_VISIBLE_DEVICES", "value": "0"},
        {"name": "HTTPS_PROXY", "valueFrom": {"secretKeyRef": {"name": "proxy", "key": "url"}}},
        {"name": "PLUS", "value": "5"},
    ]


# --- rights ---------------------------------------------------------------------------------------------------

EVERY_USE = frozenset({"mig", "mps", "volume-mounts", "cdi", "cdi-cri", "pass-device-specs"})


@each_component
def test_a_program_needs_no_right_when_nothing_is_used(name):
    component = COMPONENTS[name]()
    assert component.rights(frozenset(), Talos("1.12")) == Rights()
    assert component.needs_rights_for(frozenset()) == []


@each_component
@pytest.mark.parametrize(
    ("platform", "rights"),
    [
        (Talos("1.10"), SYS_ADMIN),
        (Talos("1.11"), SYS_ADMIN),
        (Talos("1.12"), PRIVILEGED),
        (Talos("1.13"), PRIVILEGED),
        (Talos("1.14"), PRIVILEGED),
        (Kubernetes(), SYS_ADMIN),
    ],
    ids=str,
)
def test_watching_mig_takes_what_the_toolkit_of_the_platform_asks_for(name, platform, rights):
    assert COMPONENTS[name]().rights(frozenset({"mig"}), platform) == rights


@pytest.mark.parametrize("use", sorted(EVERY_USE - {"mig"}))
@pytest.mark.parametrize(
    ("name", "taking"),
    [
        ("device_plugin", {"volume-mounts": SYS_ADMIN, "pass-device-specs": Rights(privileged=True)}),
        ("gpu_feature_discovery", {}),
    ],
)
def test_of_everything_else_only_what_the_program_does_itself_takes_rights(name, taking, use):
    component, uses = COMPONENTS[name](), frozenset({use})
    assert component.rights(uses, Kubernetes()) == taking.get(use, Rights())
    assert component.needs_rights_for(uses) == ([use] if use in taking else [])


def test_a_plugin_that_does_everything_says_for_what_it_needs_rights():
    plugin = DevicePlugin()
    assert plugin.rights(EVERY_USE, Kubernetes()) == PRIVILEGED
    assert plugin.needs_rights_for(EVERY_USE) == ["mig", "pass-device-specs", "volume-mounts"]


def test_recognising_vgpus_takes_a_privileged_container():
    assert GpuFeatureDiscovery(vgpu=True).rights(frozenset(), Kubernetes()) == Rights(privileged=True)
    assert GpuFeatureDiscovery(vgpu=True).needs_rights_for(frozenset({"mig"})) == ["mig", "vgpu"]

import pytest
from cdk8s import App, Chart, Testing

import cel
import dist
import invariants
import schemas
from gpu_constructs import DevicePluginChart, GpuConstructsError, GpuNamespace, Kubernetes
from gpu_constructs.cluster.admission.visible_devices import ALLOW_LABEL, DenyVisibleDevicesOverride
from refusals import problem
from tables import beside, cases

OVERRIDE, NO_REQUEST = "NVIDIA_VISIBLE_DEVICES must", "runtimeClassName nvidia, nvidia-cdi or nvidia-legacy needs"
NAMES_NODE, ENV_FROM = "nodeName must be left out", "envFrom can set"
GPU = {"limits": {"nvidia.com/gpu": "1"}}


def visible(value=None, **more):
    entry = {"name": "NVIDIA_VISIBLE_DEVICES", **({} if value is None else {"value": value}), **more}
    return {"name": "main", "resources": GPU, "env": [{"name": "A", "value": "all"}, entry]}


def pod(*containers, **spec):
    return {"spec": {"containers": list(containers), **spec}}


def policy_of(chart, **given):
    DenyVisibleDevicesOverride(chart, "policy", **given)
    return Testing.synth(chart)[0]


def starts(messages):
    known = (OVERRIDE, NO_REQUEST, NAMES_NODE, ENV_FROM)
    return [next(start for start in known if message.startswith(start)) for message in messages]


def test_the_policy_and_its_binding_are_as_before(chart, snapshot):
    DenyVisibleDevicesOverride(chart, "policy", deny_env_from=True)
    assert Testing.synth(chart) == snapshot


@pytest.mark.parametrize("release", [f"1.{minor}" for minor in range(30, 38)])
def test_every_kubernetes_that_serves_the_policy_takes_it(chart, release):
    DenyVisibleDevicesOverride(chart, "policy", deny_env_from=True)
    for manifest in Testing.synth(chart):
        assert schemas.kubernetes_errors(manifest, release) == []


@pytest.mark.parametrize("value", ["all", "0", "0,1", "GPU-5e0c1a52", "MIG-1", "All", " void", "$(OTHER)"])
@pytest.mark.parametrize("kind", ["containers", "initContainers", "ephemeralContainers"])
def test_a_value_that_shows_devices_is_denied_in_every_container(chart, value, kind):
    given = pod({"name": "a", "resources": GPU})
    given["spec"].setdefault(kind, []).append(visible(value))
    assert starts(cel.denials(policy_of(chart), given)) == [OVERRIDE]


@pytest.mark.parametrize("value", [None, "", "void", "none"])
def test_a_value_that_shows_nothing_is_admitted(chart, value):
    assert cel.denials(policy_of(chart), pod(visible(value))) == []


@cases
def test_other_pods_are_admitted(chart, given):
    assert cel.denials(policy_of(chart), given) == []


@pytest.mark.parametrize(
    "resources",
    [{}, *({"limits": limits} for limits in ({"cpu": "1"}, {"nvidia.com/gpu": "0"}, {"nvidia.com/hostdev": "1"}))],
)
def test_the_runtime_class_without_a_gpu_is_denied(chart, resources):
    given = pod({"name": "a", "resources": resources}, runtimeClassName="nvidia")
    assert starts(cel.denials(policy_of(chart), given)) == [NO_REQUEST]


@pytest.mark.parametrize("runtime_class", ["nvidia", "nvidia-cdi", "nvidia-legacy"])
def test_the_policy_covers_all_runtime_classes_of_the_operator(chart, runtime_class):
    assert starts(cel.denials(policy_of(chart), pod({"name": "a"}, runtimeClassName=runtime_class))) == [NO_REQUEST]


@pytest.mark.parametrize("given", ["gpu", ["gpu", "gpu-cdi"]])
def test_the_policy_covers_runtime_classes_with_other_names(chart, given):
    policy = policy_of(chart, runtime_class=given)
    assert cel.denials(policy, pod({"name": "a"}, runtimeClassName="nvidia")) == []
    assert cel.denials(policy, pod({"name": "a"}, runtimeClassName="gpu"))
    assert bool(cel.denials(policy, pod({"name": "a"}, runtimeClassName="gpu-cdi"))) == isinstance(given, list)


def test_an_empty_list_of_runtime_classes_is_rejected(chart):
    with pytest.raises(GpuConstructsError, match="runtime_class must name at least one class"):
        DenyVisibleDevicesOverride(chart, "policy", runtime_class=[])


# The kubelet drops an extended resource that its node does not have from a pod that names the node, and starts the pod.
@pytest.mark.parametrize("runtime_class", ["nvidia", "nvidia-cdi"])
def test_a_pod_that_names_its_node_is_denied_with_the_runtime_class(chart, runtime_class):
    named = pod({"name": "a", "resources": GPU}, runtimeClassName=runtime_class, nodeName="gpu-0")
    assert starts(cel.denials(policy_of(chart), named)) == [NAMES_NODE]
    assert cel.denials(policy_of(Chart(App(), "other")), pod({"name": "a"}, nodeName="gpu-0")) == []
    # The policy checked running containers when the pod was new.
    assert cel.denials(policy_of(Chart(App(), "third")), named, operation="UPDATE") == []


@cases
def test_only_resources_that_the_app_s_device_plugin_advertises_count(app, given, asked, is_admitted):
    chart = Chart(app, "policies")
    DenyVisibleDevicesOverride(chart, "policy")
    # The plugin may come after the policy.
    if given is not None:
        DevicePluginChart(app, "plugin", platform=Kubernetes(), **given)
    policy = Testing.synth(chart)[0]
    asking = pod({"name": "a", "resources": {"limits": {asked: "1"}}}, runtimeClassName="nvidia")
    assert starts(cel.denials(policy, asking)) == ([] if is_admitted else [NO_REQUEST])


def test_the_policy_checks_only_the_new_debug_container(chart):
    policy = policy_of(chart)
    running = pod(visible("all"), runtimeClassName="nvidia", ephemeralContainers=[{"name": "debug"}])
    assert cel.denials(policy, running, operation="UPDATE") == []
    running["spec"]["ephemeralContainers"] = [visible("all")]
    assert starts(cel.denials(policy, running, operation="UPDATE")) == [OVERRIDE]


def test_env_from_is_denied_if_configured(chart):
    policy = policy_of(chart, deny_env_from=True)
    unseen = {"name": "a", "resources": GPU, "envFrom": [{"configMapRef": {"name": "b"}}]}
    assert starts(cel.denials(policy, pod(unseen, runtimeClassName="nvidia"))) == [ENV_FROM]
    assert cel.denials(policy, pod(unseen)) == []
    assert cel.denials(policy, pod({**unseen, **visible("void")}, runtimeClassName="nvidia")) == []
    assert starts(cel.denials(policy, pod({**unseen, "env": [{"name": "A"}]}, runtimeClassName="nvidia"))) == [ENV_FROM]


def test_every_message_states_how_to_exempt_a_namespace(chart):
    messages = cel.denials(policy_of(chart), pod({**visible("all"), "resources": {}}, runtimeClassName="nvidia"))
    assert starts(messages) == [OVERRIDE, NO_REQUEST]
    assert all(f"label {ALLOW_LABEL}=true" in message for message in messages)


def selector_of(chart, **given):
    DenyVisibleDevicesOverride(chart, "policy", **given)
    binding = next(m for m in Testing.synth(chart) if m["kind"].endswith("Binding"))
    return binding["spec"]["matchResources"]["namespaceSelector"]


def test_the_namespaces_of_the_system_and_the_plugin_are_exempt(chart, expected):
    selector = selector_of(chart)
    assert [cel.selects(selector, name) for name in ("team", "kube-system", "nvidia-gpu-operator")] == expected


def test_a_namespace_with_the_label_is_exempt(chart):
    selector = selector_of(chart)
    assert not cel.selects(selector, "monitoring", {ALLOW_LABEL: "true"})
    assert cel.selects(selector, "monitoring", {ALLOW_LABEL: "false"})
    GpuNamespace(chart, "n", name="monitoring", labels={ALLOW_LABEL: "true"})


AGENTS_IN = beside(__file__, "admission_visible_devices")["agents_in"]


def judged(policy, binding, cluster, labels):
    """Return the decision for the pods of a cluster in dist/, by their workload."""
    selector = binding["spec"]["matchResources"]["namespaceSelector"]
    namespaced = [m for m in dist.objects(cluster) if "namespace" in m["metadata"]]
    return {
        invariants.identity(m): starts(cel.denials(policy, {"spec": spec}))
        for m in namespaced
        for spec in invariants.pod_specs(m)
        if cel.selects(selector, m["metadata"]["namespace"], labels.get(m["metadata"]["namespace"]))
    }


@pytest.mark.parametrize("cluster", dist.CLUSTERS)
@pytest.mark.parametrize("by", ["name", "label"])
def test_objects_of_the_library_are_admitted_if_the_namespaces_of_agents_are_exempt(chart, cluster, by):
    excluded = AGENTS_IN[cluster] if by == "name" else []
    labels = {name: {ALLOW_LABEL: "true"} for name in AGENTS_IN[cluster]} if by == "label" else {}
    DenyVisibleDevicesOverride(chart, "policy", deny_env_from=True, excluded_namespaces=excluded)
    found = judged(*Testing.synth(chart), cluster, labels)
    assert {name: messages for name, messages in found.items() if messages} == {}


@pytest.mark.parametrize("cluster", ["kubernetes-basic", "talos-rtx3090", "talos-rtx5070ti"])
def test_only_agents_need_an_exemption(chart, cluster):
    DenyVisibleDevicesOverride(chart, "policy", excluded_namespaces=[])
    found = judged(*Testing.synth(chart), cluster, {})
    denied = {name.split()[-1].split("/")[0] for name, messages in found.items() if messages}
    assert denied == set(AGENTS_IN[cluster])


@pytest.mark.parametrize("actions", [[], ["Deny", "Warn"], ["Audit", "Audit"]])
def test_actions_that_kubernetes_refuses_are_refused(chart, actions):
    assert problem(DenyVisibleDevicesOverride, chart, "policy", validation_actions=actions) == (
        "validation_actions must contain at least one action, each once, and not both Deny and Warn, "
        f"got {actions!r}. Use ['Deny', 'Audit'] to reject and log"
    )


def test_an_older_kubernetes_is_refused(chart):
    assert problem(DenyVisibleDevicesOverride, chart, "policy", platform=Kubernetes("1.29")) == (
        "platform must have Kubernetes 1.30 or later, which serves ValidatingAdmissionPolicy, got Kubernetes 1.29 with "
        "Kubernetes 1.29. Leave out this policy"
    )

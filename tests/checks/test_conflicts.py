"""What two constructs of an app contradict each other in."""

from __future__ import annotations

import warnings

import pytest
from cdk8s import ApiObject, ApiObjectMetadata, App, Chart, JsonPatch

from gpu_constructs import (
    CapacityPlan,
    Configs,
    DcgmExporter,
    DenyVisibleDevicesOverride,
    DevicePluginChart,
    External,
    GpuInventory,
    GpuNamespace,
    GpuNode,
    GpuProfile,
    GpuWorkload,
    KatibExperiment,
    KatibParameter,
    Kubernetes,
    NvidiaGpuExporter,
    NvidiaRuntimeClass,
    PluginConfig,
    PodMapping,
    PowerLimit,
    Sharing,
    SynthesisError,
    Taint,
    Talos,
    TalosGpuNode,
    Toleration,
    TrainingPod,
    synthesize,
)
from gpu_constructs.errors import GpuConstructsWarning
from gpu_constructs.kube.annotations import COLLECTOR_INJECTION


@pytest.fixture
def app(tmp_path):
    made = App(outdir=str(tmp_path / "dist"))
    declared = ["nvidia.com/gpu.present", "pool", "zone"]
    External(made, "existing", node_labels=declared, config_maps=["nvidia-gpu-operator/theirs"])
    return made


def problems_of(app):
    """Return every problem that a synth finds; none where it succeeds."""
    try:
        synthesize(app)
    except SynthesisError as error:
        return error.problems
    return []


def told(app):
    """Return the warnings of a synth that finds no error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        synthesize(app)
    return [str(one.message) for one in caught]


OLD, NEW = Talos("1.12"), Talos("1.13")

# Power limits.

IN_TURN = (
    "a/limit: limits the power of GPUs on nodes that b/limit limits too, so they would set their limits in turn; "
    "join them with limits={...}, or select different nodes with node_selector"
)


def limits(app, one, other):
    External(app, "class", runtime_classes=["nvidia"])
    for number, (id, given) in enumerate({"a": one, "b": other}.items()):
        chart = Chart(app, id)
        namespace = GpuNamespace(chart, "namespace", name=f"power-{id}")
        PowerLimit(chart, "limit", name=id, namespace=namespace, watts=200 + number, **given)


def pool(*names, operator="In"):
    term = {"matchExpressions": [{"key": "pool", "operator": operator, "values": list(names)}]}
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    }


@pytest.mark.parametrize(
    ("one", "other", "is_found"),
    [
        ({}, {}, True),
        ({}, {"node_selector": {"pool": "a"}}, True),
        ({"node_selector": {"pool": "a"}}, {"node_selector": {"zone": "b"}}, True),
        (pool("a", "b"), pool("b", "c"), True),
        (pool("a", operator="NotIn"), {"node_selector": {"pool": "b"}}, True),
        ({"node_selector": {"pool": "a"}}, {"node_selector": {"pool": "b"}}, False),
        (pool("a", "b"), pool("c"), False),
        (pool("a", operator="NotIn"), {"node_selector": {"pool": "a"}}, False),
        ({"node_selector": {"pool": "a"}}, pool(operator="DoesNotExist"), False),
    ],
)
def test_two_power_limits_for_one_node_are_an_error(app, one, other, is_found):
    limits(app, one, other)
    assert problems_of(app) == ([IN_TURN] if is_found else [])


FAST, SLOW = ([Toleration(key="pool", value=value, effect="NoSchedule")] for value in ("fast", "slow"))


def test_power_limits_that_tolerate_different_taints_may_be_for_different_nodes(app):
    limits(app, {"tolerations": FAST}, {"tolerations": SLOW})
    with pytest.warns(GpuConstructsWarning, match="a/limit: limits the power of GPUs on nodes that b/limit"):
        synthesize(app)


def test_declared_nodes_show_that_power_limits_are_for_different_ones(app):
    limits(app, {"tolerations": FAST}, {"tolerations": SLOW})
    nodes = [
        GpuNode(
            name=name, gpu_model="NVIDIA GeForce RTX 3090", taints=[Taint(key="pool", value=name, effect="NoSchedule")]
        )
        for name in ("fast", "slow")
    ]
    CapacityPlan(app, GpuInventory(nodes=nodes))
    # That each keeps away from the other's node is told, by the rule on taints.
    with pytest.warns(GpuConstructsWarning, match=r"does not tolerate the taint pool=.* \[R25\]"):
        assert problems_of(app) == []


def test_configured_nodes_show_that_power_limits_are_for_different_ones(app):
    limits(app, {"node_selector": {"pool": "a"}}, {"node_selector": {"zone": "b"}})
    for name in ("a", "b"):
        TalosGpuNode(app, f"node-{name}", platform=Talos("1.12"), node_labels={"pool": name, "zone": name})
    assert problems_of(app) == []


def test_a_declared_node_that_takes_both_power_limits_is_an_error(app):
    limits(app, {"node_selector": {"pool": "a"}}, {"node_selector": {"zone": "b"}})
    CapacityPlan(
        app,
        GpuInventory(nodes=[GpuNode(name="n", gpu_model="NVIDIA GeForce RTX 3090", labels={"pool": "a", "zone": "b"})]),
    )
    assert problems_of(app) == [IN_TURN]


# Charts of the device plugin.


def charts(app, one, other, **both):
    DevicePluginChart(app, "one", **one, **both)
    DevicePluginChart(app, "two", **other, **both)


SAME_NODES = (
    "one: brings the device plugin and GPU Feature Discovery to nodes of two too, where they would replace each "
    "other's devices; leave one out, use Configs.named(...), or select different nodes with node_selector"
)


def test_two_plugin_charts_on_the_same_nodes_are_one_sentence(app):
    charts(app, {}, {})
    assert problems_of(app) == [SAME_NODES]


def test_what_a_chart_and_another_construct_both_make_is_still_found(app):
    GpuNamespace(Chart(app, "mine"), "namespace")
    charts(app, {}, {})
    assert [problem.split(";")[0] for problem in problems_of(app)] == [
        "two/namespace: Namespace 'nvidia-gpu-operator' is already made by mine/namespace",
        SAME_NODES.split(";")[0],
    ]


def handed_over(app):
    """What two charts must not both make."""
    chart = Chart(app, "shared")
    return {"namespace": GpuNamespace(chart, "namespace"), "runtime_class": NvidiaRuntimeClass(chart, "class")}


EXTERNAL = {"node_feature_discovery": "external"}
POOLS = {"node_selector": {"pool": "a"}}, {"node_selector": {"pool": "b"}}


def test_plugin_charts_for_different_nodes_are_told_in_one_sentence_what_to_share(app):
    charts(app, *POOLS)
    assert problems_of(app) == [
        "two: makes 25 objects that one makes too, ConfigMap 'nvidia-device-plugin-config' among them; pass one "
        "GpuNamespace to both, node_feature_discovery='external' to the second, one NvidiaRuntimeClass to both, "
        "another name= to the second"
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (POOLS[0], {**POOLS[1], "name": "other", **EXTERNAL}),
        ({"gpu_feature_discovery": False}, {"device_plugin": False, "name": "b", **EXTERNAL}),
        # Pools of different releases are an upgrade.
        ({**POOLS[0], "platform": OLD}, {**POOLS[1], **EXTERNAL, "name": "other", "platform": NEW}),
    ],
    ids=["pools", "programs", "releases"],
)
def test_plugin_charts_for_different_nodes_or_programs_stand_side_by_side(app, one, other):
    charts(app, one, other, **handed_over(app))
    assert told(app) == []


# Katib.


def experiment(app, namespace=None, collector=None):
    DevicePluginChart(app, "plugin")
    chart = Chart(app, "search", namespace="team")
    if namespace is not None:
        GpuNamespace(chart, "namespace", name="team", **namespace)
    KatibExperiment(
        chart,
        "search",
        trial=TrainingPod(script="print('loss=1')", args=["--lr=${trialParameters.lr}"], run_as_user=1000),
        parameters={"lr": KatibParameter.double(min=0.01, max=0.05)},
        objective_metric_name="loss",
        metrics_collector_spec=None if collector is None else {"collector": {"kind": collector}},
    )


COLLECTS = {"labels": COLLECTOR_INJECTION, "pod_security": "baseline"}


NOT_COLLECTED = (
    "search/search: its trials would end without metrics: Katib adds its collector only in a namespace with a label "
    "that search/namespace lacks; pass GpuNamespace(labels={'katib.kubeflow.org/metrics-collector-injection': "
    "'enabled'})"
)
DISABLED = {"katib.kubeflow.org/metrics-collector-injection": "disabled"}


@pytest.mark.parametrize(
    ("namespace", "collector", "problems"),
    [
        *(({"pod_security": "baseline"}, collector, [NOT_COLLECTED]) for collector in (None, "StdOut", "Custom")),
        ({"labels": DISABLED, "pod_security": "baseline"}, "File", [NOT_COLLECTED]),
        (COLLECTS, None, []),
        ({"pod_security": "baseline"}, "None", []),
        ({"pod_security": "restricted"}, "Push", []),
        # Of a namespace from elsewhere it is not known whether Katib collects there.
        (None, None, []),
    ],
)
def test_an_experiment_is_in_a_namespace_where_katib_can_collect(app, namespace, collector, problems):
    if namespace is None:
        External(app, "kubeflow", namespaces=["team"])
    experiment(app, namespace, collector)
    assert problems_of(app) == problems


def test_a_level_that_refuses_the_collector_of_katib_is_a_warning(app):
    experiment(app, {**COLLECTS, "pod_security": "restricted"})
    with pytest.warns(GpuConstructsWarning, match="its namespace, .* enforces 'restricted', which refuses"):
        synthesize(app)


# A policy on the devices that pods see.


def guard(app, **given):
    DenyVisibleDevicesOverride(Chart(app, "guard"), "guard", **given)


def by_default(app):
    TalosGpuNode(app, "node", platform=Talos("1.12"), default_runtime=True)


def test_a_default_runtime_goes_around_the_policy_on_visible_devices(app):
    guard(app)
    by_default(app)
    assert told(app) == [
        "guard/guard: judges pods with runtime class 'nvidia' or 'nvidia-cdi' or 'nvidia-legacy' alone, and node makes "
        "that runtime the default: an image with NVIDIA_VISIBLE_DEVICES=all sees every GPU; leave "
        "default_runtime=True out"
    ]


def test_a_runtime_class_of_another_name_goes_around_the_policy_on_visible_devices(app):
    guard(app, runtime_class="nvidia")
    NvidiaRuntimeClass(Chart(app, "class"), "class", name="nvidia-gpu")
    assert told(app) == [
        "guard/guard: judges pods with runtime class 'nvidia' alone, and RuntimeClass 'nvidia-gpu' of this app leads "
        "to NVIDIA's runtime too; pass runtime_class=['nvidia', 'nvidia-gpu']"
    ]
    DenyVisibleDevicesOverride(Chart(app, "second"), "guard", name="second", runtime_class="nvidia-gpu")
    assert told(app) == []


@pytest.mark.parametrize(
    "given", [{"require_gpu_request": False}, {"validation_actions": ["Warn"]}], ids=["envs alone", "warns alone"]
)
def test_a_policy_that_judges_no_images_has_nothing_to_go_around(app, given):
    guard(app, **given)
    by_default(app)
    assert told(app) == []


# How GPUs are shared.

FOUR, FIVE = Sharing.time_slicing(replicas=4), Sharing.time_slicing(replicas=5)


def exporter(app, plugin, **given):
    """A device plugin that is told something, and an exporter beside it."""
    DevicePluginChart(app, "plugin", **plugin)
    chart = Chart(app, "exporter")
    namespace = GpuNamespace(chart, "namespace", name="monitoring")
    DcgmExporter(chart, "dcgm", namespace=namespace, dashboard=False, **given)


ONE_POD = (
    "exporter/dcgm: names one of the pods that share a GPU, since it is not told that plugin shares GPUs; pass it the "
    "same sharing=, or a PodMapping of your own"
)


OF_ANOTHER = "exporter/dcgm: takes GPUs as {}, and plugin advertises them as time-slicing x 4; pass one Sharing to both"
ON_KUBERNETES = {"sharing": Sharing.mps(replicas=2), "platform": Kubernetes(), "runtime_class": "nvidia"}
RENAMED = Sharing.time_slicing(replicas=4, rename_by_default=True)
UNREFUSED = Sharing.time_slicing(replicas=4, fail_requests_greater_than_one=False)


@pytest.mark.parametrize(
    ("plugin", "given", "warning"),
    [
        ({"sharing": FOUR}, {}, ONE_POD),
        (ON_KUBERNETES, {"platform": Kubernetes()}, ONE_POD),
        ({"config": Configs.named({"a": PluginConfig(), "b": PluginConfig(sharing=FOUR)}, default="a")}, {}, ONE_POD),
        ({}, {}, None),
        ({"sharing": FOUR}, {"sharing": FOUR}, None),
        ({"sharing": FOUR}, {"sharing": UNREFUSED}, None),
        ({"sharing": FOUR}, {"pod_mapping": False}, None),
        ({"sharing": FOUR}, {"pod_mapping": PodMapping(enable_pod_labels=True)}, None),
        ({"sharing": FOUR, "node_selector": {"pool": "a"}}, {"node_selector": {"pool": "b"}}, None),
        ({"sharing": FOUR}, {"sharing": FIVE}, OF_ANOTHER.format("time-slicing x 5")),
        ({"sharing": FOUR}, {"sharing": Sharing.none()}, OF_ANOTHER.format("exclusive")),
        (
            {"sharing": FOUR},
            {"sharing": RENAMED},
            OF_ANOTHER.format("time-slicing x 4 with names that end in .shared"),
        ),
    ],
)
def test_an_exporter_knows_how_the_plugin_shares_gpus(app, plugin, given, warning):
    exporter(app, plugin, **given)
    assert told(app) == ([warning] if warning else [])


def test_of_a_plugin_whose_configuration_is_elsewhere_it_is_not_known_how_it_shares(app):
    config = Configs.external("theirs", default="a")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exporter(app, {"config": config, "node_feature_discovery": "external"}, sharing=FOUR)
    assert told(app) == []


# Platforms.

OTHER_PLATFORM = (
    "platform must be the same for all that is on a node; got {}, and {} has {}; pass {} here too, or select "
    "different nodes with node_selector"
)


def exporters(app, *platforms, **given):
    for number, platform in enumerate(platforms):
        chart = Chart(app, f"c{number}")
        namespace = GpuNamespace(chart, "namespace", name=f"monitoring-{number}", pod_security="restricted")
        NvidiaGpuExporter(
            chart, "exporter", namespace=namespace, platform=platform, name=f"e{number}", dashboard=False, **given
        )
    External(app, "class", runtime_classes=["nvidia"])


@pytest.mark.parametrize(
    ("nodes", "platforms", "is_error", "said"),
    [
        ([], (NEW, OLD, NEW), True, ("c1/exporter", "Talos 1.12", "c0/exporter", NEW)),
        ([], (Talos("1.10"), Talos("1.11")), False, ("c1/exporter", "Talos 1.11", "c0/exporter", Talos("1.10"))),
        ([], (OLD, Kubernetes("1.35")), False, ("c1/exporter", "Kubernetes 1.35", "c0/exporter", OLD)),
        ([Talos("1.12.11")], (NEW,), True, ("c0/exporter", "Talos 1.13", "node-0", Talos("1.12.11"))),
        # Nodes of two releases are an upgrade.
        ([Talos("1.12.11"), NEW], (OLD,), False, None),
        ([], (NEW, NEW), False, None),
        ([], (Talos("1.13.1"), Talos("1.13.4"), NEW), False, None),
        ([], (Kubernetes("1.34"), Kubernetes("1.36")), False, None),
    ],
)
def test_agents_are_for_the_platform_of_their_nodes(app, nodes, platforms, is_error, said):
    for number, platform in enumerate(nodes):
        TalosGpuNode(app, f"node-{number}", platform=platform)
    exporters(app, *platforms)
    expected = []
    if said is not None:
        who, got, whose, has = said
        expected = [f"{who}: {OTHER_PLATFORM.format(got, whose, has, f'Talos({has.version!r})')}"]
    assert (problems_of if is_error else told)(app) == expected


def test_a_workload_for_another_release_is_a_warning(app):
    DevicePluginChart(app, "plugin", platform=NEW)
    for id in ("a", "b"):
        GpuWorkload(Chart(app, id, namespace="default"), id, image="a:1", kind="Job", platform=OLD)
    expected = OTHER_PLATFORM.format("Talos 1.12", "plugin", "Talos 1.13", "Talos('1.13')")
    assert told(app) == [f"a/a: {expected}"]


def test_what_names_no_runtime_class_is_fine_where_none_is_needed(app):
    by_default(app)
    exporters(app, OLD, Kubernetes("1.35"))
    assert told(app) == []


def test_a_workload_whose_profile_shares_otherwise_than_the_plugin_is_a_warning(app):
    DevicePluginChart(app, "plugin", sharing=FOUR)
    for id in ("a", "b"):
        profile = GpuProfile(sharing=FIVE)
        GpuWorkload(Chart(app, id, namespace="default"), id, image="a:1", kind="Job", profile=profile)
    assert told(app) == [
        "a/a: takes GPUs as time-slicing x 5, and plugin advertises them as time-slicing x 4; pass one Sharing to both"
    ]


def test_a_workload_whose_profile_shares_as_the_plugin_does_somewhere_is_fine(app):
    config = Configs.named({"a": PluginConfig(), "b": PluginConfig(sharing=FOUR)}, default="a")
    DevicePluginChart(app, "plugin", config=config)
    profile = GpuProfile(sharing=FOUR)
    GpuWorkload(Chart(app, "a", namespace="default"), "a", image="a:1", kind="Job", profile=profile)
    assert told(app) == []


# Objects of any origin.


def plain(app, id, api_version, kind, **body):
    made = ApiObject(Chart(app, id), id, api_version=api_version, kind=kind, metadata=ApiObjectMetadata(name=id))
    made.add_json_patch(*(JsonPatch.add(f"/{key}", value) for key, value in body.items()))


@pytest.mark.parametrize(("platform", "is_refused"), [(OLD, True), (NEW, True), (Kubernetes(), False)])
def test_a_gpu_cluster_of_any_origin_is_refused_on_talos(app, platform, is_refused):
    DevicePluginChart(app, "plugin", platform=platform)
    plain(app, "gpu-cluster", "nvidia.com/v1alpha1", "GPUCluster")
    problems = [problem.partition(":")[2].partition(":")[0] for problem in problems_of(app)]
    assert problems == ([f" cannot work on {platform}"] if is_refused else [])


def test_two_priority_classes_for_all_pods_are_an_error(app):
    for id, is_default in {"a": True, "b": False, "c": True}.items():
        plain(app, id, "scheduling.k8s.io/v1", "PriorityClass", value=1, globalDefault=is_default)
    assert problems_of(app) == [
        "c/c: must not have globalDefault: true beside a/a, since a cluster has one default; set it on one of the two"
    ]

"""Contradictions between two constructs of an app."""

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
from tables import cases


@pytest.fixture
def app(tmp_path):
    made = App(outdir=str(tmp_path / "dist"))
    declared = ["nvidia.com/gpu.present", "pool", "zone"]
    External(made, "existing", node_labels=declared, config_maps=["nvidia-gpu-operator/theirs"])
    return made


def problems_of(app):
    """Return all problems that a synth finds; an empty list if it succeeds."""
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
    "a/limit: sets power limits on nodes of b/limit too, so each overwrites the limits of the other. Combine them with "
    "limits={...}, or select different nodes with node_selector"
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
    with pytest.warns(GpuConstructsWarning, match="a/limit: sets power limits on nodes of b/limit"):
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
    # The rule on taints warns that each does not run on the node of the other.
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
    "one: runs the device plugin and GPU Feature Discovery on nodes of two too, so the two overwrite each "
    "other. Remove one, use Configs.named(...), or select different nodes with node_selector"
)


def test_two_plugin_charts_on_the_same_nodes_are_one_finding(app):
    charts(app, {}, {})
    assert problems_of(app) == [SAME_NODES]


def test_a_duplicate_of_a_chart_and_another_construct_is_still_found(app):
    GpuNamespace(Chart(app, "mine"), "namespace")
    charts(app, {}, {})
    assert [problem.split(". ")[0] for problem in problems_of(app)] == [
        "two/namespace: Namespace 'nvidia-gpu-operator' already exists in mine/namespace",
        SAME_NODES.split(". ")[0],
    ]


def handed_over(app):
    """Return the finding about objects that two charts emit."""
    chart = Chart(app, "shared")
    return {"namespace": GpuNamespace(chart, "namespace"), "runtime_class": NvidiaRuntimeClass(chart, "class")}


EXTERNAL = {"node_feature_discovery": "external"}
POOLS = {"node_selector": {"pool": "a"}}, {"node_selector": {"pool": "b"}}


def test_plugin_charts_for_different_nodes_have_one_finding_about_shared_objects(app, expected):
    charts(app, *POOLS)
    assert problems_of(app) == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (POOLS[0], {**POOLS[1], "name": "other", **EXTERNAL}),
        ({"gpu_feature_discovery": False}, {"device_plugin": False, "name": "b", **EXTERNAL}),
        # Pools with different releases occur during an upgrade.
        ({**POOLS[0], "platform": OLD}, {**POOLS[1], **EXTERNAL, "name": "other", "platform": NEW}),
    ],
    ids=["pools", "programs", "releases"],
)
def test_plugin_charts_for_different_nodes_or_programs_work_together(app, one, other):
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
    "that search/namespace does not have. Pass GpuNamespace(labels={'katib.kubeflow.org/metrics-collector-injection': "
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
        # The labels of a namespace outside of the app are unknown.
        (None, None, []),
    ],
)
def test_an_experiment_needs_a_namespace_where_katib_can_collect(app, namespace, collector, problems):
    if namespace is None:
        External(app, "kubeflow", namespaces=["team"])
    experiment(app, namespace, collector)
    assert problems_of(app) == problems


def test_a_level_that_rejects_the_collector_of_katib_is_a_warning(app):
    experiment(app, {**COLLECTS, "pod_security": "restricted"})
    with pytest.warns(GpuConstructsWarning, match="its namespace, .* enforces 'restricted', which rejects"):
        synthesize(app)


# An admission policy on the visible devices of pods.


def guard(app, **given):
    DenyVisibleDevicesOverride(Chart(app, "guard"), "guard", **given)


def by_default(app):
    TalosGpuNode(app, "node", platform=Talos("1.12"), default_runtime=True)


def test_a_default_runtime_bypasses_the_policy_on_visible_devices(app, expected):
    guard(app)
    by_default(app)
    assert told(app) == expected


def test_a_runtime_class_of_another_name_bypasses_the_policy_on_visible_devices(app, expected):
    guard(app, runtime_class="nvidia")
    NvidiaRuntimeClass(Chart(app, "class"), "class", name="nvidia-gpu")
    assert told(app) == expected
    DenyVisibleDevicesOverride(Chart(app, "second"), "guard", name="second", runtime_class="nvidia-gpu")
    assert told(app) == []


@cases
def test_a_policy_that_checks_no_images_cannot_be_bypassed(app, given):
    guard(app, **given)
    by_default(app)
    assert told(app) == []


# Sharing of GPUs.

FOUR, FIVE = Sharing.time_slicing(replicas=4), Sharing.time_slicing(replicas=5)


def exporter(app, plugin, **given):
    """Add a device plugin with options, and an exporter."""
    DevicePluginChart(app, "plugin", **plugin)
    chart = Chart(app, "exporter")
    namespace = GpuNamespace(chart, "namespace", name="monitoring")
    DcgmExporter(chart, "dcgm", namespace=namespace, dashboard=False, **given)


ONE_POD = (
    "exporter/dcgm: names only one of the pods that share a GPU, because it has no sharing= but plugin shares GPUs. "
    "Pass the same sharing=, or a PodMapping"
)


OF_ANOTHER = (
    "exporter/dcgm: expects GPUs as {}, but plugin advertises them as time-slicing x 4. Pass one Sharing to both"
)
ON_KUBERNETES = {"sharing": Sharing.mps(replicas=2), "platform": Kubernetes(), "runtime_class": "nvidia"}
RENAMED = Sharing.time_slicing(replicas=4, rename_by_default=True)
UNREFUSED = Sharing.time_slicing(replicas=4, fail_requests_greater_than_one=False)


@cases
def test_an_exporter_needs_the_sharing_of_the_plugin(app, plugin, given, warning):
    exporter(app, plugin, **given)
    assert told(app) == ([warning] if warning else [])


def test_the_sharing_of_a_plugin_with_an_external_configuration_is_unknown(app):
    config = Configs.external("theirs", default="a")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exporter(app, {"config": config, "node_feature_discovery": "external"}, sharing=FOUR)
    assert told(app) == []


# Platforms.

OTHER_PLATFORM = (
    "platform must be the platform of the nodes, got {}, but {} has {}. Pass {} here too, or select "
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
        # Nodes with two releases occur during an upgrade.
        ([Talos("1.12.11"), NEW], (OLD,), False, None),
        ([], (NEW, NEW), False, None),
        ([], (Talos("1.13.1"), Talos("1.13.4"), NEW), False, None),
        ([], (Kubernetes("1.34"), Kubernetes("1.36")), False, None),
    ],
)
def test_daemonsets_need_the_platform_of_their_nodes(app, nodes, platforms, is_error, said):
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


def test_a_workload_without_a_runtime_class_is_valid_if_none_is_needed(app):
    by_default(app)
    exporters(app, OLD, Kubernetes("1.35"))
    assert told(app) == []


def test_a_workload_with_another_sharing_than_the_plugin_is_a_warning(app, expected):
    DevicePluginChart(app, "plugin", sharing=FOUR)
    for id in ("a", "b"):
        profile = GpuProfile(sharing=FIVE)
        GpuWorkload(Chart(app, id, namespace="default"), id, image="a:1", kind="Job", profile=profile)
    assert told(app) == expected


def test_a_workload_with_the_sharing_of_one_plugin_is_valid(app):
    config = Configs.named({"a": PluginConfig(), "b": PluginConfig(sharing=FOUR)}, default="a")
    DevicePluginChart(app, "plugin", config=config)
    profile = GpuProfile(sharing=FOUR)
    GpuWorkload(Chart(app, "a", namespace="default"), "a", image="a:1", kind="Job", profile=profile)
    assert told(app) == []


# Objects from any source.


def plain(app, id, api_version, kind, **body):
    made = ApiObject(Chart(app, id), id, api_version=api_version, kind=kind, metadata=ApiObjectMetadata(name=id))
    made.add_json_patch(*(JsonPatch.add(f"/{key}", value) for key, value in body.items()))


@pytest.mark.parametrize(("platform", "is_refused"), [(OLD, True), (NEW, True), (Kubernetes(), False)])
def test_a_gpu_cluster_from_any_source_is_rejected_on_talos(app, platform, is_refused):
    DevicePluginChart(app, "plugin", platform=platform)
    plain(app, "gpu-cluster", "nvidia.com/v1alpha1", "GPUCluster")
    problems = [problem.partition(":")[2].partition(":")[0] for problem in problems_of(app)]
    assert problems == ([f" does not work on {platform}"] if is_refused else [])


def test_two_priority_classes_for_all_pods_are_an_error(app, expected):
    for id, is_default in {"a": True, "b": False, "c": True}.items():
        plain(app, id, "scheduling.k8s.io/v1", "PriorityClass", value=1, globalDefault=is_default)
    assert problems_of(app) == expected

"""Exactly one plugin pod runs on every GPU node, for all configurations and node labels."""

import functools
import re
import warnings

import pytest
from cdk8s import App, Testing
from hypothesis import given
from hypothesis import strategies as st

from depth import at_depth
from gpu_constructs import (
    Configs,
    DevicePluginChart,
    GpuFeatureDiscovery,
    Kubernetes,
    PluginConfig,
    Sharing,
    Toleration,
)
from gpu_constructs.device_plugin.configs import object_suffix
from scheduling import Node, fits
from tables import beside, cases

CONFIG = "nvidia.com/device-plugin.config"
CAPABLE = "nvidia.com/mps.capable"
TAINT = Toleration(key="dedicated", value="ai", effect="NoSchedule")


# --- the matcher itself ---------------------------------------------------------------------------------------


def affinity(*terms):
    terms = [{"matchExpressions": term} if term else {} for term in terms]
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    }


def expression(operator, *values, key="a"):
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


@pytest.mark.parametrize(
    ("pod", "fitting", "unfit"),
    [
        ({}, [{}, {"a": "1"}], []),
        ({"nodeSelector": {"a": "1", "b": "2"}}, [{"a": "1", "b": "2", "c": "3"}], [{"a": "1"}, {}]),
        (affinity([expression("In", "1", "2")]), [{"a": "1"}, {"a": "2"}], [{"a": "3"}, {}]),
        (affinity([expression("NotIn", "1", "2")]), [{"a": "3"}, {}], [{"a": "1"}]),
        (affinity([expression("Exists")]), [{"a": ""}], [{}]),
        (affinity([expression("DoesNotExist")]), [{}], [{"a": ""}]),
        (affinity([expression("In", "1"), expression("Exists", key="b")]), [{"a": "1", "b": ""}], [{"a": "1"}]),
        (affinity([expression("In", "1")], [expression("Exists", key="b")]), [{"a": "1"}, {"b": ""}], [{"a": "2"}]),
        (affinity([]), [], [{}, {"a": "1"}]),
        (affinity(), [], [{}]),
    ],
)
def test_node_labels_have_the_effect_that_they_have_in_the_scheduler(pod, fitting, unfit):
    assert [labels for labels in fitting if not fits(pod, Node(labels))] == []
    assert [labels for labels in unfit if fits(pod, Node(labels))] == []


@cases
def test_taints_have_the_effect_that_they_have_in_the_scheduler(tolerations, fitting):
    taint = {"key": "dedicated", "value": "ai", "effect": "NoSchedule"}
    assert fits({"tolerations": tolerations}, Node({}, (taint,))) is fitting
    assert fits({"tolerations": tolerations}, Node({}, ({**taint, "effect": "PreferNoSchedule"},)))


def test_the_matcher_raises_for_unknown_fields():
    with pytest.raises(AssertionError, match="Gt"):
        fits(affinity([expression("Gt", "1")]), Node({}))
    with pytest.raises(AssertionError, match="matchFields"):
        fits({"affinity": {"nodeAffinity": {**_required([{"matchFields": []}])}}}, Node({}))


def _required(terms):
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}


# --- the chart ------------------------------------------------------------------------------------------------

TALOS_LABEL = "extensions.talos.dev/nonfree-kmod-nvidia-production"
FINDS = beside(__file__, "scheduling")["finds"]
WITHOUT_GPU = beside(__file__, "scheduling")["without_gpu"]
NAMES = st.lists(
    st.from_regex(r"\A[A-Za-z]([-_.A-Za-z0-9]{0,6}[A-Za-z0-9])?\Z"),
    min_size=2,
    max_size=5,
    unique_by=lambda name: re.sub(r"[^a-z0-9]+", "-", name.lower()),
).filter(lambda names: {name.lower() for name in names}.isdisjoint({"gpu-feature-discovery", "mps-control-daemon"}))


def daemonsets(**options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        manifests = Testing.synth(DevicePluginChart(App(), "plugin", **options))
    found = {"device-plugin": [], "gpu-feature-discovery": [], "mps-control-daemon": []}
    configs = getattr(options.get("config"), "configs", {})
    components = {(program, ""): getattr(options.get("config"), "default", None) for program in found}
    components |= {(program, f"-{object_suffix(name)}"): name for program in found for name in configs}
    of = {program + suffix: (program, name) for (program, suffix), name in components.items()}
    for manifest in manifests:
        component = manifest["metadata"].get("labels", {}).get("app.kubernetes.io/component")
        if manifest["kind"] == "DaemonSet" and component in of:
            program, name = of[component]
            found[program].append((name, manifest["spec"]["template"]["spec"]))
    return found


def running(pods, node):
    return [config for config, spec in pods if fits(spec, node)]


@pytest.mark.parametrize("way", FINDS)
@at_depth(40, quick=5)
@given(names=NAMES, data=st.data())
def test_exactly_one_plugin_pod_runs_on_every_gpu_node_and_none_elsewhere(way, names, data):
    options, gpu_nodes = FINDS[way]
    default = data.draw(st.sampled_from(names))
    by_mps = data.draw(st.sets(st.sampled_from(names)))
    mps, plain = PluginConfig(sharing=Sharing.mps(replicas=2)), PluginConfig()
    configs = {name: mps if name in by_mps else plain for name in names}
    pods = daemonsets(config=Configs.named(configs, default=default), **options)
    has_labeler = options.get("gpu_feature_discovery", True)
    others = st.from_regex(r"\A[A-Za-z0-9]{1,4}\Z")
    chosen = [None, *names, *(name.swapcase() for name in names), data.draw(others)]
    for label in chosen:
        mark = {} if label is None else {CONFIG: label}
        serving = label if label in names else default
        for gpu in gpu_nodes:
            for capable in (None, "true", "false"):
                node = Node({**gpu, **mark, **({CAPABLE: capable} if capable else {})})
                assert running(pods["device-plugin"], node) == [serving]
                assert running(pods["gpu-feature-discovery"], node) == ([serving] if has_labeler else [])
                daemon = [serving] if serving in by_mps and capable == "true" else []
                assert running(pods["mps-control-daemon"], node) == daemon
        for labels in WITHOUT_GPU:
            node = Node({**labels, **mark, CAPABLE: "true"})
            assert [running(of_one, node) for of_one in pods.values()] == [[], [], []]


@functools.cache
def _with_and_without_toleration():
    return daemonsets(sharing=Sharing.mps(replicas=2), tolerations=[TAINT]), daemonsets(sharing=Sharing.mps(replicas=2))


@pytest.mark.parametrize("component", ["device-plugin", "gpu-feature-discovery", "mps-control-daemon"])
@cases
def test_a_tainted_gpu_node_runs_the_pods_that_tolerate_it(component, taint, with_ours):
    node = Node({"nvidia.com/gpu.present": "true", CAPABLE: "true"}, (taint,))
    told, untold = _with_and_without_toleration()
    assert running(told[component], node) == [None]
    assert running(untold[component], node) == ([None] if with_ours else [])


def test_plain_kubernetes_without_any_discovery_runs_one_plugin_pod_on_every_node():
    configs = Configs.named({"a": PluginConfig(), "b": PluginConfig()}, default="a")
    alone = {"platform": Kubernetes(), "node_feature_discovery": False, "gpu_feature_discovery": False}
    pods = daemonsets(config=configs, **alone)["device-plugin"]
    for labels, serving in (({}, "a"), ({CONFIG: "b"}, "b"), ({CONFIG: "B"}, "a")):
        assert running(pods, Node(labels)) == [serving]


def test_node_selectors_of_the_chart_and_of_a_component_both_apply():
    pods = daemonsets(
        node_selector={"pool": "a"}, gpu_feature_discovery=GpuFeatureDiscovery(node_selector={"disk": "ssd"})
    )
    gpu = {"nvidia.com/gpu.present": "true", "pool": "a"}
    assert running(pods["device-plugin"], Node(gpu)) == [None]
    assert running(pods["gpu-feature-discovery"], Node(gpu)) == []
    assert running(pods["gpu-feature-discovery"], Node({**gpu, "disk": "ssd"})) == [None]

"""Recommendations how to share boards. Most cases are in tables/recommendations.yaml."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from depth import at_depth
from gpu_constructs.capacity.consumer import Consumer
from gpu_constructs.capacity.recommendation import recommend_sharing
from gpu_constructs.capacity.vram import worst_mib
from gpu_constructs.catalog.inventory import GpuInventory, GpuNode
from gpu_constructs.errors import GpuConstructsError
from tables import beside

GIB = 1024


def pods(name, gib=None, *, copies=1, ends=False, gpus=1, resource="nvidia.com/gpu", **more):
    return Consumer(
        subject=0,
        kind="Job" if ends else "Deployment",
        namespace="ai",
        name=name,
        asks={resource: gpus},
        pod_spec=more.pop("pod_spec", {}),
        copies=copies,
        least_copies=0 if ends else copies,
        vram_mib=None if gib is None else int(gib * GIB),
        **more,
    )


def deployment(name, *, vram=None, replicas=1, gpus=1, **spec):
    annotations = {} if vram is None else {"annotations": {"gpu-constructs/vram": vram}}
    container = {"name": "app", "image": "app:1", "resources": {"limits": {"nvidia.com/gpu": gpus}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "ai", **annotations},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container], **spec}},
        },
    }


def only(inventory, workloads, **keywords):
    (found,) = recommend_sharing(inventory, workloads, **keywords)
    return found


def said(found, words):
    return any(words in reason for reason in found.reasons)


def shares(found):
    """Return the sharing in a few words, or the MIG layout of the boards."""
    sharing = found.sharing
    if found.mode == "exclusive":
        return "alone"
    if found.mode == "mig":
        return str(found.mig_layout)
    unit = f" of {sharing.vram_unit}" if sharing.vram_unit else ""
    return f"{sharing.strategy} x {sharing.replicas}{unit}{' renamed' if sharing.rename_by_default else ''}"


TABLE = beside(__file__, "recommendations")
GROUPS = {name: [pods(**one) for one in group] for name, group in TABLE["groups"].items()}
SEED, ONE_5070_TI = GROUPS["SEED"], TABLE["boards"]["5070"]
WORD = re.compile(r"(?P<name>[a-z]+)(:(?P<gib>[0-9.]+))?([*](?P<copies>[0-9]+))?(@(?P<gpus>[0-9]+))?(?P<more>[~^%]*)")


def consumers_of(words):
    for word in words.split():
        if word in GROUPS:
            yield from GROUPS[word]
            continue
        one = WORD.fullmatch(word)
        given = {key: int(one[key]) for key in ("copies", "gpus") if one[key]}
        if "^" in one["more"]:
            given |= {"surge": 1, "surge_is_needed": True}
        if "%" in one["more"]:
            given["resource"] = "nvidia.com/gpu.shared"
        yield pods(one["name"], one["gib"] and float(one["gib"]), ends="~" in one["more"], **given)


@pytest.mark.parametrize("sentence", TABLE["rows"])
def test_boards_are_shared_as_their_pods_need(sentence):
    for row in TABLE["rows"][sentence]:
        keywords = TABLE["keywords"].get(row.get("keywords"), {})
        found = only(TABLE["boards"][row["boards"]], list(consumers_of(row["pods"])), **keywords)
        assert shares(found) == row["shares"], row
        assert all(said(found, words) for words in row.get("says", ())), (row, found.reasons)
        assert not any(said(found, words) for words in row.get("says_not", ())), (row, found.reasons)


def described(found):
    """Return a recommendation in the form of the table."""
    layout = {} if found.mig_layout is None else {"layout": found.mig_layout}
    return {
        "node": found.node,
        "mode": found.mode,
        "sharing": found.sharing,
        **{name: list(value) if isinstance(value, tuple) else value for name, value in layout.items()},
        "workloads": list(found.workloads),
        "pods_at_once": found.pods_at_once,
        "reasons": list(found.reasons),
    }


@pytest.mark.parametrize("sentence", TABLE["recommended"])
def test_a_recommendation_states_the_mode_and_the_reasons(sentence):
    for row in TABLE["recommended"][sentence]:
        asked = {name: value for name, value in row.items() if name not in ("nodes", "pods", "recommended")}
        found = recommend_sharing(GpuInventory(nodes=row["nodes"]), [pods(**one) for one in row["pods"]], **asked)
        assert [described(one) for one in found] == row["recommended"]


def test_small_demands_do_not_take_a_device_of_every_node():
    inventory = GpuInventory(nodes=[GpuNode(name="rack", gpu_model="NVIDIA A100-SXM4-40GB", gpus=2, count=10)])
    workloads = [*(pods(f"big{number}", 30) for number in range(10)), *(pods(f"b{number}", 4) for number in range(50))]
    found = only(inventory, workloads, isolation=True)
    assert found.mig_layout == ({}, {"1g.5gb": 5})
    assert not said(found, "lacks")


def test_manifests_and_consumers_give_the_same_recommendation():
    manifests = [
        deployment("ollama", vram="8Gi"),
        deployment("comfyui", vram="12Gi"),
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "ollama"}},
    ]
    found = only(ONE_5070_TI, manifests)
    assert found.mode == "exclusive"
    assert found.workloads == ("ai/ollama", "ai/comfyui")
    found = only(ONE_5070_TI, [*manifests, pods("small", 2)])
    assert found.mode == "vram-units"


def test_the_scheduling_of_a_runtime_class_counts(keywords):
    runtime_class = keywords
    workload = deployment("a", runtimeClassName="nvidia", replicas=3)
    assert only(ONE_5070_TI, [workload, runtime_class]).workloads == ()
    assert only(ONE_5070_TI, [workload]).workloads == ("ai/a",)


def test_each_kind_of_node_is_examined_once():
    nodes = [GpuNode(name=f"n{number}", gpu_model="RTX 3090", gpus=1 + number % 4, count=3) for number in range(100)]
    workloads = [pods(f"w{number}", 1 + number % 20, copies=1 + number % 5) for number in range(500)]
    found = recommend_sharing(GpuInventory(nodes=nodes), workloads)
    assert [one.node for one in found] == [node.name for node in nodes]
    assert len({one.reasons for one in found}) <= 4


@pytest.mark.parametrize(
    ("inventory", "workloads", "keywords", "message"),
    [
        (None, SEED, {}, "inventory must be a GpuInventory, got None. Pass GpuInventory(nodes="),
        (ONE_5070_TI, [], {}, "workloads must contain at least one manifest, got none"),
        (
            ONE_5070_TI,
            "a.yaml",
            {},
            "workloads must be a list, got str. Pass a list of manifests, for example Testing.synth(chart)",
        ),
        (ONE_5070_TI, {"kind": "Pod"}, {}, "workloads must be a list"),
        (ONE_5070_TI, [SEED[0], 7], {}, "workloads[1] must be a manifest (a mapping with apiVersion and kind)"),
        (ONE_5070_TI, [{"kind": "Pod"}], {}, "got a mapping with ['kind']"),
        (
            ONE_5070_TI,
            [{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}}],
            {},
            "without a GPU request. Set a GPU limit",
        ),
        (ONE_5070_TI, [pods("a", copies=0)], {}, "workloads must contain a workload that requests GPUs"),
        (ONE_5070_TI, SEED, {"isolation": "yes"}, "isolation must be"),
        (ONE_5070_TI, SEED, {"platform": "talos"}, "platform must be Talos(...) or Kubernetes(...), got 'talos'"),
        (
            ONE_5070_TI,
            SEED,
            {"isolation": True, "trusted_cuda_services": True},
            "isolation must be False with trusted_cuda_services",
        ),
        (ONE_5070_TI, SEED, {"mps": True}, "mps is not a keyword of recommend_sharing"),
    ],
)
def test_invalid_questions_are_rejected(inventory, workloads, keywords, message):
    with pytest.raises(GpuConstructsError) as refused:
        recommend_sharing(inventory, workloads, **keywords)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


WORKLOADS = st.lists(
    st.builds(
        pods,
        st.sampled_from("abcdef"),
        st.one_of(st.none(), st.sampled_from([0.1, 1, 4, 11, 20, 39, 79])),
        copies=st.integers(1, 6),
        ends=st.booleans(),
        gpus=st.integers(1, 3),
        resource=st.sampled_from(["nvidia.com/gpu", "nvidia.com/gpu", "nvidia.com/mig-1g.5gb"]),
    ),
    min_size=1,
    max_size=6,
)
NODES = st.builds(
    GpuNode,
    name=st.just("node"),
    gpu_model=st.sampled_from([None, "RTX 3090", "NVIDIA A100-SXM4-40GB", "NVIDIA A30"]),
    gpus=st.integers(1, 3),
    count=st.integers(1, 2),
)


@at_depth(400, quick=40)
@given(NODES, WORKLOADS, st.sampled_from([{}, {"isolation": True}, {"trusted_cuda_services": True}]))
def test_the_board_and_the_plugin_accept_each_recommendation(node, workloads, keywords):
    found = only(GpuInventory(nodes=[node]), workloads, **keywords)
    assert (found.mode == "mig") == (found.mig_layout is not None)
    GpuNode(
        name="as-told", gpu_model=node.gpu_model, gpus=node.gpus, sharing=found.sharing, mig_layout=found.mig_layout
    )
    assert found.reasons
    assert all(reason and not reason.endswith(".") for reason in found.reasons)
    assert found.pods_at_once <= sum(one.copies for one in workloads)
    if "isolation" in keywords:
        assert found.mode in ("exclusive", "mig")
    if found.mode == "vram-units":
        assert node.gpus == 1
        assert found.pods_at_once >= 2
    sizes = [(one.vram_mib, one.copies, 1) for one in workloads if one.vram_mib]
    if found.mode in ("time-slicing", "mps") and said(found, ", together"):
        held = [size for size in sizes if node.vram_mib is None or size[0] <= node.vram_mib]
        assert worst_mib(found.sharing.replicas, held) <= node.vram_mib

from dataclasses import replace

import pytest

from gpu_constructs import Configs, DevicePluginChart, Flags, GpuConstructsWarning, Kubernetes, plan_capacity
from gpu_constructs.capacity.planned import Device
from gpu_constructs.capacity.supply import node_offers
from gpu_constructs.catalog.inventory import GpuInventory, GpuNode
from gpu_constructs.catalog.sharing import Sharing
from gpu_constructs.facts.provided import GpuNodes, GpuOffer, PowerCap, Provided
from gpu_constructs.kube.placement import Taint, required_node_affinity

GPU = "nvidia.com/gpu"
A100 = "NVIDIA A100-SXM4-40GB"
RTX = "NVIDIA GeForce RTX 5070 Ti"
CONFIG = "nvidia.com/device-plugin.config"
NO_PLUGIN = (
    "no device plugin of the app says how GPUs are shared: taken as exclusive; declare it with sharing= of the node"
)
IN_SEVERAL_WAYS = (
    "this app shares GPUs in more than one way, and nothing says which holds here: taken as time-slicing x 5; declare "
    "it with sharing= of the node"
)
UNSEEN = (
    "the configuration of this app's device plugin is not seen: taken as exclusive; declare it with sharing= of the "
    "node"
)
NO_STRATEGY = (
    "nothing in this app says by which strategy MIG devices are called here: taken as mixed; declare it with "
    "mig_strategy= of the node"
)
SLICED = Sharing.time_slicing(replicas=5)


def the_offer(node, *provided, device_classes=()):
    [offer] = node_offers(GpuInventory(nodes=[node]), provided, device_classes)
    return offer


def rtx(**members):
    return GpuNode(name="talos-1", gpu_model=RTX, **members)


def a100(layout, **members):
    return GpuNode(name="a100", gpu_model=A100, mig_layout=layout, **members)


def plugin(sharing=None, mig_strategy="none", **members):
    return Provided(gpu_offers=[GpuOffer(sharing=sharing or Sharing.none(), mig_strategy=mig_strategy, **members)])


def devices(offer):
    return [(one.resource, one.slots, one.gpu, one.profile) for one in offer.devices]


def test_without_a_plugin_gpus_are_taken_as_exclusive():
    offer = the_offer(rtx(gpus=2))
    assert offer.devices == (Device(GPU, 1, 16303, 0), Device(GPU, 1, 16303, 1))
    assert offer.notes == (NO_PLUGIN,)
    assert offer.sharing == ""


def test_sharing_is_the_nodes_own_or_the_apps():
    for node, provided, resource, slots, notes in [
        (rtx(sharing=SLICED), (), GPU, 5, ()),
        (rtx(sharing=Sharing.none()), (plugin(SLICED),), GPU, 1, ()),
        (rtx(), (plugin(SLICED),), GPU, 5, ()),
        (rtx(), (plugin(Sharing.time_slicing(replicas=5, rename_by_default=True)),), f"{GPU}.shared", 5, ()),
        (rtx(), (plugin(SLICED), plugin(SLICED)), GPU, 5, ()),
        (rtx(), (plugin(SLICED), plugin()), GPU, 5, (IN_SEVERAL_WAYS,)),
        (rtx(sharing=SLICED), (plugin(SLICED), plugin()), GPU, 5, ()),
        # Told by resource only.
        (rtx(), (Provided(gpu_resources={GPU: SLICED}),), GPU, 5, ()),
        (rtx(), (Provided(gpu_resources={GPU: Sharing.none()}),), GPU, 1, ()),
        (
            rtx(),
            (Provided(gpu_resources={f"{GPU}.shared": Sharing.time_slicing(replicas=3, rename_by_default=True)}),),
            f"{GPU}.shared",
            3,
            (),
        ),
        (
            rtx(),
            (
                Provided(
                    gpu_resources={
                        GPU: Sharing.none(),
                        f"{GPU}.shared": Sharing.time_slicing(replicas=3, rename_by_default=True),
                    }
                ),
            ),
            f"{GPU}.shared",
            3,
            (IN_SEVERAL_WAYS.replace("x 5", "x 3 with names that end in .shared"),),
        ),
        (
            rtx(),
            (Provided(gpu_resources=dict.fromkeys((GPU, f"{GPU}.shared", "nvidia.com/mig-*"), Sharing.none())),),
            GPU,
            1,
            (UNSEEN,),
        ),
        # What is known by configuration counts more.
        (rtx(), (Provided(gpu_resources={GPU: Sharing.none()}, gpu_offers=plugin(SLICED).gpu_offers),), GPU, 5, ()),
    ]:
        offer = the_offer(node, *provided)
        assert offer.allocatable == {resource: slots}
        assert offer.notes == notes
        # All holders have the whole memory together.
        assert [(one.vram_mib, one.vram_each_mib) for one in offer.devices] == [(16303, None)]


MISLABELLED = (
    "nvidia.com/device-plugin.config=other names no configuration of this app's device plugin, which starts with "
    "'exclusive' while its config-manager restarts again and again"
)
NAMED = Provided(
    gpu_offers=[
        GpuOffer(sharing=Sharing.none(), config="exclusive"),
        GpuOffer(sharing=SLICED, config="shared", is_default=False),
    ]
)


def test_a_label_of_the_node_chooses_the_configuration():
    for labels, slots, notes in [
        ({}, 1, ()),
        ({CONFIG: "shared"}, 5, ()),
        ({CONFIG: "exclusive"}, 1, ()),
        ({CONFIG: "other"}, 1, (MISLABELLED,)),
    ]:
        offer = the_offer(rtx(labels=labels), NAMED)
        assert offer.allocatable.get(GPU, 0) == slots
        assert offer.notes == notes


def test_the_label_may_come_from_the_apps_node_configuration():
    assert the_offer(rtx(), NAMED, Provided(gpu_nodes=GpuNodes(labels={CONFIG: "shared"}))).allocatable == {GPU: 5}


def test_mps_gives_each_holder_its_part_of_the_whole_board():
    offer = the_offer(rtx(sharing=Sharing.mps(replicas=4), vram_reserved="1Gi"))
    assert offer.devices == (Device(GPU, 4, 15279, 0, vram_each_mib=4075, most_each=1),)
    assert offer.sharing == "mps x 4"


def test_memory_that_no_pod_gets_is_left_out():
    assert the_offer(rtx(vram_reserved="303Mi")).devices[0].vram_mib == 16000


# MIG


def test_mixed_advertises_each_profile_and_the_boards_that_are_not_divided():
    offer = the_offer(a100([{"1g.5gb+me": 1, "2g.10gb": 2}, {}], gpus=2), plugin(mig_strategy="mixed"))
    assert devices(offer) == [
        ("nvidia.com/mig-1g.5gb.me", 1, 0, "1g.5gb+me"),
        ("nvidia.com/mig-2g.10gb", 1, 0, "2g.10gb"),
        ("nvidia.com/mig-2g.10gb", 1, 0, "2g.10gb"),
        (GPU, 1, 1, ""),
    ]
    assert [one.vram_mib for one in offer.devices] == [4864, 9856, 9856, 40960]
    assert offer.notes == ()
    assert offer.labels["nvidia.com/mig.strategy"] == "mixed"


def test_single_advertises_mig_devices_as_gpus():
    offer = the_offer(a100({"3g.20gb": 2}, gpus=2), plugin(SLICED, mig_strategy="single"))
    assert devices(offer) == [(GPU, 5, gpu, "3g.20gb") for gpu in (0, 0, 1, 1)]
    assert offer.allocatable == {GPU: 20}
    assert offer.labels["nvidia.com/gpu.product"] == "NVIDIA-A100-SXM4-40GB-MIG-3g.20gb-SHARED"


def test_single_with_devices_of_several_kinds_offers_nothing():
    for layout, why in [
        ([{"3g.20gb": 2}, {}], "not every GPU is divided"),
        ([{"3g.20gb": 2}, {"1g.5gb": 7}], "there is more than one MIG profile"),
        ([{"3g.20gb": 1, "1g.5gb": 1}] * 2, "there is more than one MIG profile"),
    ]:
        offer = the_offer(a100(layout, gpus=2), plugin(mig_strategy="single"))
        assert offer.devices == ()
        assert offer.notes == (
            f"{why}, with which the MIG strategy single does not work: the device plugin offers nothing",
        )


def test_none_hands_out_divided_boards_whole():
    offer = the_offer(a100([{"3g.20gb": 1, "1g.5gb": 1}, {}], gpus=2), plugin())
    assert offer.devices == (Device(GPU, 1, 4864, 0), Device(GPU, 1, 40960, 1))
    [note] = offer.notes
    assert note.startswith("the device plugin's MIG strategy is none: ")


def test_the_strategy_is_the_apps_or_taken_as_mixed():
    for provided, resource, notes in [
        ((), "nvidia.com/mig-3g.20gb", (NO_PLUGIN, NO_STRATEGY)),
        ((Provided(gpu_resources={GPU: Sharing.none()}),), "nvidia.com/mig-3g.20gb", (NO_STRATEGY,)),
        (
            (Provided(gpu_resources={GPU: Sharing.none(), "nvidia.com/mig-*": Sharing.none()}),),
            "nvidia.com/mig-3g.20gb",
            (),
        ),
        ((plugin(mig_strategy="single"), plugin(mig_strategy="mixed")), "nvidia.com/mig-3g.20gb", (NO_STRATEGY,)),
        ((plugin(mig_strategy="single"),), GPU, ()),
    ]:
        offer = the_offer(a100({"3g.20gb": 2}), *provided)
        assert offer.allocatable == {resource: 2}
        assert offer.notes == notes


# NVIDIA/k8s-device-plugin#1807: patterns of MIG profiles were not anchored before 0.20.0.
def test_mig_devices_with_attributes_are_named_as_the_release_names_them(app):
    for version, allocatable, is_noted in [
        ("0.18.2", {"nvidia.com/mig-1g.10gb": 4, "nvidia.com/mig-1g.20gb": 4}, True),
        ("0.19.3", {"nvidia.com/mig-1g.10gb": 4, "nvidia.com/mig-1g.20gb": 4}, True),
        ("0.20.0", {"nvidia.com/mig-1g.10gb": 3, "nvidia.com/mig-1g.10gb.me": 1, "nvidia.com/mig-1g.20gb": 4}, False),
    ]:
        chart = DevicePluginChart(app, f"p{version[2:4]}", platform=Kubernetes(), version=version, mig_strategy="mixed")
        board = "NVIDIA H100 80GB HBM3"
        layout = [{"1g.10gb+me": 1, "1g.10gb": 3}, {"1g.20gb": 4}]
        offer = the_offer(GpuNode(name="n", gpus=2, gpu_model=board, mig_layout=layout), chart.provides)
        assert offer.allocatable == allocatable
        assert any("leaves the attributes of 1g.10gb+me out" in note for note in offer.notes) is is_noted


def test_a_strategy_stated_beside_an_external_file_wins_over_it(app):
    for strategy, allocatable in [
        ("single", {GPU: 14}),
        ("mixed", {"nvidia.com/mig-1g.5gb": 14}),
        ("none", {GPU: 2}),
        (None, {"nvidia.com/mig-1g.5gb": 14}),
    ]:
        flags = Flags(mig_strategy=strategy) if strategy else None
        with pytest.warns(GpuConstructsWarning, match="config-manager"):
            chart = DevicePluginChart(
                app,
                f"of-{strategy or 'a-file'}",
                platform=Kubernetes(),
                config=Configs.external("theirs", default="a", flags=flags),
            )
        assert the_offer(a100({"1g.5gb": 7}, gpus=2), chart.provides).allocatable == allocatable
        assert ("nvidia.com/mig-*" in chart.provides.gpu_resources) is (strategy in (None, "mixed"))


def test_a_sharing_of_mig_devices_alone_is_that_of_the_node():
    sharing = Sharing.time_slicing(resources={"nvidia.com/mig-3g.20gb": 2})
    told = Provided(gpu_resources={GPU: Sharing.none(), "nvidia.com/mig-3g.20gb": sharing})
    offer = the_offer(a100([{"3g.20gb": 2}, {}], gpus=2), told)
    assert offer.allocatable == {"nvidia.com/mig-3g.20gb": 4, GPU: 1}
    assert offer.notes == ()


def test_slots_are_counted_by_resource():
    sharing = Sharing.time_slicing(resources={"nvidia.com/mig-1g.5gb": 3, GPU: 2}, rename_by_default=True)
    offer = the_offer(a100([{"1g.5gb": 2, "3g.20gb": 1}, {}], gpus=2, sharing=sharing, mig_strategy="mixed"))
    assert offer.allocatable == {
        "nvidia.com/mig-1g.5gb.shared": 6,
        "nvidia.com/mig-3g.20gb": 1,
        "nvidia.com/gpu.shared": 2,
    }
    assert offer.sharing == "time-slicing x 3 of nvidia.com/mig-1g.5gb, time-slicing x 2"


def test_mps_and_mig_do_not_go_together():
    offer = the_offer(a100({"3g.20gb": 2}), plugin(Sharing.mps(replicas=2), mig_strategy="mixed"))
    assert offer.devices == ()
    assert offer.notes == ("MPS does not share GPUs of a node with MIG: its device plugin offers nothing",)


def test_more_clients_of_mps_than_an_old_gpu_serves_count_only_for_newer_boards():
    for node, replicas, is_noted in [
        (rtx(), 48, False),
        (GpuNode(name="n", vram="24Gi"), 16, False),
        (GpuNode(name="n", vram="24Gi"), 17, True),
    ]:
        offer = the_offer(node, plugin(Sharing.mps(replicas=replicas)))
        assert offer.allocatable == {GPU: replicas}
        assert any("its GPUs have compute capability 7.5 or more" in note for note in offer.notes) is is_noted
        web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}
        limits = {"containers": [{"name": "web", "resources": {"limits": {GPU: "1"}}}]}
        web["spec"] = {"strategy": {"type": "Recreate"}, "template": {"spec": limits}}
        stated = replace(node, sharing=Sharing.mps(replicas=replicas))
        assert (plan_capacity([web], GpuInventory(nodes=[stated])).all_fits == "conditional") is is_noted


# Which plugin reaches a node

TAINTED = Taint(key="dedicated", value="ai")


def reaching(sharing=None, *, selector=None, rules=(), tolerations=(), **members):
    spec = {"nodeSelector": selector or {}, "tolerations": list(tolerations)}
    if rules:
        spec["affinity"] = required_node_affinity([rules])
    return plugin(sharing, pod_spec=spec, **members)


def test_a_node_that_the_plugins_pods_do_not_reach_offers_nothing():
    for node, provided, why in [
        (rtx(taints=[TAINTED]), reaching(), "has the taint dedicated=ai:NoSchedule, which its pods do not tolerate"),
        (rtx(), reaching(selector={"pool": "gpu"}), "has no label pool, where its pods want gpu"),
        (rtx(labels={"pool": "b"}), reaching(selector={"pool": "a"}), "has pool=b, where its pods want a"),
        (
            rtx(),
            reaching(selector={"nvidia.com/gpu.product": "Tesla-T4"}),
            "has nvidia.com/gpu.product=NVIDIA-GeForce-RTX-5070-Ti, where its pods want Tesla-T4",
        ),
    ]:
        offer = the_offer(node, provided)
        assert (offer.devices, offer.sharing, offer.vram_unit_mib) == ((), "", None)
        assert offer.notes == (f"this app's device plugin does not run there: {why}",)


def test_a_node_that_they_reach_is_served():
    for node, provided in [
        (rtx(taints=[TAINTED]), reaching(SLICED, tolerations=[{"key": "dedicated", "operator": "Exists"}])),
        (rtx(taints=[TAINTED]), plugin(SLICED)),
        (rtx(taints=[Taint(key="node.kubernetes.io/unschedulable")]), reaching(SLICED)),
        (rtx(labels={"pool": "a"}), reaching(SLICED, selector={"pool": "a"})),
        (rtx(), reaching(SLICED, selector={"nvidia.com/gpu.product": "NVIDIA-GeForce-RTX-5070-Ti"})),
        (rtx(), reaching(SLICED, selector={"nvidia.com/gpu.product": "NVIDIA-GeForce-RTX-5070-Ti-SHARED"})),
        (rtx(), reaching(SLICED, selector={"nvidia.com/gpu.present": "true"})),
    ]:
        offer = the_offer(node, provided)
        assert offer.allocatable == {GPU: 5}
        assert offer.notes == ()


def test_labels_that_nobody_declares_are_taken_as_right_with_a_note():
    by_cloud = reaching(SLICED, selector={"cloud.google.com/gke-accelerator": "a"})
    assert the_offer(rtx(), by_cloud).notes == (
        "this app's device plugin is taken to run there, though nobody declares cloud.google.com/gke-accelerator",
    )
    assert the_offer(rtx(), by_cloud, Provided(node_labels=("cloud.google.com/*",))).notes == ()
    # One that surely runs there counts alone.
    offer = the_offer(rtx(), by_cloud, reaching(Sharing.time_slicing(replicas=2)))
    assert (offer.allocatable, offer.notes) == ({GPU: 2}, ())


def test_of_several_plugins_the_one_that_reaches_a_node_serves_it():
    both = (reaching(SLICED, selector={"pool": "a"}), reaching(selector={"pool": "b"}))
    for pool, slots in (("a", 5), ("b", 1)):
        offer = the_offer(rtx(labels={"pool": pool}), *both)
        assert (offer.allocatable, offer.notes) == ({GPU: slots}, ())
    assert the_offer(rtx(), *both).allocatable == {}


def test_configurations_with_pods_of_their_own_serve_the_nodes_that_these_reach():
    for labels, slots in [({}, 1), ({CONFIG: "other"}, 1), ({CONFIG: "shared"}, 5)]:
        own = {"key": CONFIG, "operator": "In", "values": ["shared"]}
        named = Provided(
            gpu_offers=[
                *reaching(config="exclusive", rules=[{**own, "operator": "NotIn"}]).gpu_offers,
                *reaching(SLICED, config="shared", is_default=False, rules=[own]).gpu_offers,
            ]
        )
        offer = the_offer(rtx(labels=labels), named)
        assert (offer.allocatable, offer.notes) == ({GPU: slots}, ())


def test_a_sharing_that_is_declared_is_that_of_another_plugin():
    offer = the_offer(rtx(taints=[TAINTED], sharing=SLICED), reaching())
    assert offer.allocatable == {GPU: 5}
    assert offer.notes == (
        "this app's device plugin does not run there: has the taint dedicated=ai:NoSchedule, which its pods do not "
        "tolerate: taken to be served by another, as sharing= of the node says",
    )


def test_a_plugin_of_somebody_else_may_serve_what_the_apps_does_not_reach():
    offer = the_offer(rtx(taints=[TAINTED]), reaching(), Provided(gpu_resources={GPU: SLICED}))
    assert (offer.allocatable, offer.notes) == ({GPU: 5}, ())


def test_nodes_that_no_plugin_reaches_offer_the_device_classes_that_pods_ask_for():
    provided = reaching(SLICED, selector={"pool": "a"})
    dra = the_offer(rtx(labels={"pool": "b"}), provided, device_classes=["gpu.nvidia.com"])
    assert dra.allocatable == {"gpu.nvidia.com": 1}
    assert dra.notes[-1] == "no device plugin here: its GPUs are taken to come by DRA, as gpu.nvidia.com"
    served = the_offer(rtx(labels={"pool": "a"}), provided, device_classes=["gpu.nvidia.com"])
    assert served.allocatable == {GPU: 5}
    assert served.notes == (
        "a device plugin serves its GPUs, so there is nothing for gpu.nvidia.com; keep the plugin's pods off nodes for "
        "DRA, by node_selector= or a taint",
    )


# What was only seen


def seen(sharing, **members):
    labels = {"nvidia.com/gpu.product": "NVIDIA-GeForce-RTX-5070-Ti-SHARED", "nvidia.com/gpu.replicas": "4", "a": "b"}
    return rtx(sharing=sharing, labels=labels, is_observed=True, **members)


FOUR = Sharing.time_slicing(replicas=4)


def test_what_the_app_makes_of_a_node_goes_before_what_was_seen():
    for sharing, words, product in [
        (Sharing.time_slicing(replicas=2), "time-slicing x 2", "NVIDIA-GeForce-RTX-5070-Ti-SHARED"),
        (Sharing.none(), "exclusive", "NVIDIA-GeForce-RTX-5070-Ti"),
        (
            Sharing.time_slicing(replicas=4, rename_by_default=True),
            "time-slicing x 4 with names that end in .shared",
            "NVIDIA-GeForce-RTX-5070-Ti",
        ),
    ]:
        offer = the_offer(seen(FOUR), plugin(sharing))
        assert offer.allocatable == {sharing.gpu_resource: sharing.replicas}
        assert offer.notes == (
            f"its GPUs were seen as time-slicing x 4, and this app makes them {words}, which counts",
        )
        assert offer.labels["nvidia.com/gpu.product"] == product
        assert offer.labels["nvidia.com/gpu.replicas"] == str(sharing.replicas)
        assert offer.labels["a"] == "b"


def test_what_was_seen_and_is_what_the_app_makes_needs_no_note():
    node = GpuNode(name="n", sharing=FOUR, labels={"nvidia.com/gpu.product": "Other-SHARED"}, is_observed=True)
    offer = the_offer(node, plugin(FOUR))
    assert (offer.allocatable, offer.notes) == ({GPU: 4}, ())
    assert offer.labels["nvidia.com/gpu.product"] == "Other-SHARED"
    assert [one.most_each for one in offer.devices] == [1]


def test_what_was_seen_holds_where_the_app_has_no_plugin_for_it():
    for provided in [(), (reaching(selector={"pool": "a"}),)]:
        offer = the_offer(seen(FOUR), *provided)
        # Whether a container may ask for more no label tells.
        assert offer.devices == (Device(GPU, 4, 16303, 0),)
        assert offer.notes == tuple(
            "this app's device plugin does not run there: has no label pool, where its pods want a: taken to be served "
            "by another, as it was seen to be"
            for _ in provided
        )


def test_the_strategy_of_the_app_goes_before_that_which_was_seen():
    node = a100({"3g.20gb": 2}, mig_strategy="mixed", sharing=Sharing.none(), is_observed=True)
    offer = the_offer(node, plugin(mig_strategy="single"))
    assert offer.allocatable == {GPU: 2}
    assert offer.notes == ("its MIG strategy was seen as mixed, and this app makes it single, which counts",)


# How much a container may ask for, and what a slot stands for


def test_a_container_gets_one_slot_where_the_sharing_refuses_more():
    for sharing, most in [
        (Sharing.none(), None),
        (FOUR, 1),
        (Sharing.mps(replicas=4), 1),
        (Sharing.time_slicing(replicas=4, fail_requests_greater_than_one=False), None),
        (Sharing.vram_units(vram="8Gi"), None),
    ]:
        assert [one.most_each for one in the_offer(rtx(), plugin(sharing)).devices] == [most]


def test_a_guess_refuses_nobody():
    assert [one.most_each for one in the_offer(rtx(), plugin(SLICED), plugin()).devices] == [None]


# DRA


def test_without_a_plugin_gpus_come_by_the_classes_that_pods_ask_for():
    node = a100([{"3g.20gb": 2}, {}], gpus=2)
    offer = the_offer(node, device_classes=["mig.nvidia.com", "gpu.nvidia.com"])
    assert devices(offer) == [
        ("mig.nvidia.com", 1, 0, "3g.20gb"),
        ("mig.nvidia.com", 1, 0, "3g.20gb"),
        ("gpu.nvidia.com", 1, 1, ""),
    ]
    assert offer.notes == ("no device plugin in this app: its GPUs are taken to come by DRA, as gpu.nvidia.com",)


def test_a_board_counts_for_one_class_only():
    for classes, resource, left_out in [
        (["big-gpu"], "big-gpu", ""),
        (["mig.nvidia.com"], "gpu.nvidia.com", ""),
        (["big-gpu", "gpu.nvidia.com"], "gpu.nvidia.com", "big-gpu"),
        (["c", "b"], "b", "c"),
    ]:
        offer = the_offer(rtx(), device_classes=classes)
        assert offer.allocatable == {resource: 1}
        said = [note for note in offer.notes if note.startswith("a GPU counts for one device class only")]
        assert said == (
            [f"a GPU counts for one device class only, so there is nothing for {left_out}"] if left_out else []
        )


def test_beside_a_plugin_there_are_no_classes():
    assert the_offer(rtx(), plugin(), device_classes=["gpu.nvidia.com"]).allocatable == {GPU: 1}
    assert the_offer(rtx(sharing=SLICED), device_classes=["gpu.nvidia.com"]).allocatable == {GPU: 5}


# Labels and taints


def test_labels_and_taints_of_the_apps_nodes_are_the_nodes():
    gpu_nodes = GpuNodes(
        labels={"pool": "gpu", "zone": "a"},
        taints=[{"key": GPU, "effect": "NoSchedule"}, {"key": "dedicated", "value": "ai", "effect": "NoSchedule"}],
    )
    node = rtx(labels={"pool": "mine"}, taints=[Taint(key="dedicated", value="web")])
    offer = the_offer(node, plugin(), Provided(gpu_nodes=gpu_nodes), Provided(gpu_nodes=gpu_nodes))
    assert (offer.labels["pool"], offer.labels["zone"]) == ("mine", "a")
    assert list(offer.taints) == [
        {"key": "dedicated", "value": "web", "effect": "NoSchedule"},
        {"key": GPU, "effect": "NoSchedule"},
    ]
    assert offer.notes == ()


def test_node_configurations_that_differ_leave_labels_and_taints_open():
    one = GpuNodes(labels={"pool": "a"}, taints=[{"key": "dedicated", "value": "ai", "effect": "NoSchedule"}])
    other = GpuNodes(labels={"pool": "b"})
    configured = (plugin(), Provided(gpu_nodes=one), Provided(gpu_nodes=other))
    offer = the_offer(rtx(), *configured)
    assert "pool" not in offer.labels
    assert offer.taints == ()
    assert offer.notes == (
        "the app configures nodes in different ways, and nothing says which is this one: none of their labels is "
        "counted (pool=a, pool=b); declare them with labels= of the node",
        "the app configures nodes in different ways, and nothing says which is this one: none of their taints is "
        "counted (dedicated=ai:NoSchedule); declare them with taints= of the node",
    )
    declared = rtx(labels={"pool": "b"}, taints=[Taint(key="dedicated", value="x")])
    assert the_offer(declared, *configured).notes == ()


# Power


def test_watts_are_those_that_something_holds_boards_at():
    for node, caps, watts in [
        (rtx(), (), 300),
        (rtx(power_limit=250), ({"*": "200"},), 250),
        (rtx(), ({"*": "200"},), 200),
        (rtx(), ({"*": "80%"},), 240),
        (rtx(), ({"*": "default"},), 300),
        (rtx(), ({"*A100*": "250", "*5070*": "260", "*": "200"},), 260),
        (rtx(), ({"*a100*": "250"}, {"*5070*": "260"}), 260),
        (rtx(), ({"*rtx*": "250"},), 300),
        (GpuNode(name="n"), (), None),
        (GpuNode(name="n"), ({"*": "200"},), 200),
        (GpuNode(name="n"), ({"*": "80%"},), None),
        (GpuNode(name="n"), ({"*A100*": "250", "*": "200"},), None),
    ]:
        offer = the_offer(node, Provided(power_caps=[PowerCap(limits=limits) for limits in caps]))
        assert list(offer.gpu_watts) == [watts]


def test_a_power_cap_is_for_the_nodes_it_selects():
    cap = Provided(
        power_caps=[PowerCap(limits={"*": "200"}, node_selector={"nvidia.com/gpu.present": "true", "p": "1"})]
    )
    assert list(the_offer(rtx(gpus=2, labels={"p": "1"}), cap).gpu_watts) == [200, 200]
    assert list(the_offer(rtx(gpus=2, labels={"p": "2"}), cap).gpu_watts) == [300, 300]
    assert list(the_offer(rtx(gpus=2), cap).gpu_watts) == [300, 300]

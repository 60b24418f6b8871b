from gpu_constructs.capacity.supply import node_offers
from gpu_constructs.catalog.inventory import GpuInventory, GpuNode
from gpu_constructs.catalog.sharing import Sharing
from gpu_constructs.facts.provided import GpuOffer, Provided

LABEL = "nvidia.com/mig.config"
H100 = "NVIDIA H100 80GB HBM3"
A100 = "NVIDIA A100-SXM4-40GB"


def operator(*, has_mig_manager=True):
    offer = GpuOffer(sharing=Sharing.none(), mig_strategy="mixed")
    return Provided(gpu_offers=[offer], has_mig_manager=has_mig_manager)


def the_offer(config, provided, **members):
    labels = {} if config is None else {LABEL: config}
    [offer] = node_offers(GpuInventory(nodes=[GpuNode(name="n", labels=labels, **members)]), [provided])
    return offer


def counts(offer):
    return {resource.removeprefix("nvidia.com/"): number for resource, number in offer.allocatable.items()}


def test_the_label_says_how_the_operator_divides_gpus():
    for board, config, offered in [
        (H100, "all-1g.10gb", {"mig-1g.10gb": 7}),
        (A100, "all-1g.10gb", {"mig-1g.10gb": 4}),
        (A100, "all-1g.5gb.me", {"mig-1g.5gb.me": 1}),
        (A100, "all-3g.20gb", {"mig-3g.20gb": 2}),
        (A100, "all-balanced", {"mig-1g.5gb": 2, "mig-2g.10gb": 1, "mig-3g.20gb": 1}),
        ("NVIDIA A30", "all-balanced", {"mig-1g.6gb": 2, "mig-2g.12gb": 1}),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "all-1g.24gb-me", {"mig-1g.24gb-me": 4}),
        (None, "all-1g.10gb", {"mig-1g.10gb": 7}),
    ]:
        offer = the_offer(config, operator(), gpu_model=board)
        assert counts(offer) == offered
        listed = " and ".join(f"{number} x {name[4:].replace('gb.', 'gb+')}" for name, number in offered.items())
        assert f"each of its GPUs is divided into {listed}, as {LABEL}={config} says" in offer.notes


def test_without_a_configuration_gpus_are_whole():
    for config in [None, "", "all-disabled"]:
        offer = the_offer(config, operator(), gpu_model=A100)
        assert (counts(offer), offer.notes) == ({"gpu": 1}, ())


def test_a_configuration_that_is_not_known_is_noted():
    for config in ["custom", "all-enabled", "all-9g.1gb", "all-1g.18gb", "1g.5gb"]:
        offer = the_offer(config, operator(), gpu_model=A100)
        assert counts(offer) == {"gpu": 1}
        assert offer.notes == (
            f"{LABEL}={config} names a configuration that is not known here: taken as whole; declare it with "
            "mig_layout= of the node",
        )


def test_without_a_mig_manager_the_label_divides_nothing():
    offer = the_offer("all-1g.5gb", operator(has_mig_manager=False), gpu_model=A100)
    assert counts(offer) == {"gpu": 1}
    assert offer.notes == (
        f"nothing in this app divides GPUs by {LABEL}=all-1g.5gb: taken as whole; declare it with mig_layout= of the "
        "node",
    )


def test_what_the_inventory_says_counts_more_than_the_label():
    offer = the_offer("all-1g.5gb", operator(), gpu_model=A100, mig_layout={"7g.40gb": 1})
    assert (counts(offer), offer.notes) == ({"mig-7g.40gb": 1}, ())


def test_boards_without_mig_have_nothing_to_divide():
    offer = the_offer("all-1g.5gb", operator(), gpu_model="RTX 4090")
    assert (counts(offer), offer.notes) == ({"gpu": 1}, ())


def test_a_layout_that_the_node_cannot_have_is_noted():
    offer = the_offer("all-1g.5gb", operator(), gpu_model=A100, sharing=Sharing.mps(replicas=2))
    assert counts(offer) == {"gpu": 2}
    assert offer.notes[0].startswith(f"{LABEL}=all-1g.5gb does not go with the node, which is taken as whole: ")

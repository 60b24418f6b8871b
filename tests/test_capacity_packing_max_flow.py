from __future__ import annotations

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_constructs.capacity.packing.max_flow import max_flow
from gpu_constructs.capacity.packing.part import bits

SINKS = 3


@st.composite
def networks(draw):
    sources = draw(st.integers(1, 7))
    supplies = draw(st.lists(st.integers(0, 9), min_size=sources, max_size=sources))
    masks = draw(st.lists(st.integers(0, 2**SINKS - 1), min_size=sources, max_size=sources))
    capacities = draw(st.lists(st.integers(0, 9), min_size=SINKS, max_size=SINKS))
    limits = draw(
        st.lists(st.lists(st.integers(1, 4), min_size=SINKS, max_size=SINKS), min_size=sources, max_size=sources)
    )
    return supplies, masks, capacities, limits if draw(st.booleans()) else None


def least_cut(supplies, masks, capacities, limits):
    """Compute the largest flow as the least cut, over all sets of sources and sinks."""
    sources = range(len(supplies))
    cuts = []
    for size in range(len(supplies) + 1):
        for cut_off in combinations(sources, size):
            kept = [i for i in sources if i not in cut_off]
            through = 0
            for k in range(SINKS):
                users = [i for i in kept if masks[i] >> k & 1]
                through += (
                    min(capacities[k], sum(limits[i][k] for i in users)) if limits else capacities[k] * bool(users)
                )
            cuts.append(sum(supplies[i] for i in cut_off) + through)
    return min(cuts)


@given(networks())
@settings(max_examples=300)
def test_the_flow_is_as_large_as_the_least_cut(network):
    supplies, masks, capacities, limits = network
    flow = max_flow(supplies, masks, capacities, limit=(lambda i, k: limits[i][k]) if limits else None, most_work=10**6)
    for i, sent in enumerate(flow.sent):
        assert sum(sent.values()) + flow.unmet[i] == supplies[i]
        assert all(masks[i] >> k & 1 and amount > 0 for k, amount in sent.items())
        assert not limits or all(amount <= limits[i][k] for k, amount in sent.items())
    for k, has in enumerate(capacities):
        assert sum(sent.get(k, 0) for sent in flow.sent) <= has
    assert sum(supplies) - sum(flow.unmet) == least_cut(supplies, masks, capacities, limits)


@given(networks())
@settings(max_examples=300)
def test_what_is_blocked_has_more_than_its_sinks_take(network):
    supplies, masks, capacities, limits = network
    flow = max_flow(supplies, masks, capacities, limit=(lambda i, k: limits[i][k]) if limits else None, most_work=10**6)
    assert bool(flow.blocked) == any(flow.unmet)
    for blocked in flow.blocked:
        cut = least_cut([supplies[i] if i in blocked else 0 for i in range(len(supplies))], masks, capacities, limits)
        assert sum(supplies[i] for i in blocked) > cut
        if not limits:
            union = 0
            for i in blocked:
                union |= masks[i]
            assert sum(supplies[i] for i in blocked) > sum(capacities[k] for k in bits(union))


@given(networks())
@settings(max_examples=100)
def test_a_later_source_takes_nothing_from_an_earlier(network):
    supplies, masks, capacities, _ = network
    whole = max_flow(supplies, masks, capacities, most_work=10**6)
    for count in range(len(supplies)):
        assert max_flow(supplies[:count], masks[:count], capacities, most_work=10**6).unmet == whole.unmet[:count]


def test_what_was_sent_up_to_a_limit_and_taken_back_may_be_sent_again():
    limits = [[1, 2, 2], [2, 2, 1], [1, 2, 2]]
    flow = max_flow([3, 2, 3], [7, 5, 3], [3, 1, 4], limit=lambda i, k: limits[i][k], most_work=10**6)
    assert sum(flow.unmet) == 8 - least_cut([3, 2, 3], [7, 5, 3], [3, 1, 4], limits)


def test_it_gives_up_where_it_is_too_much_work():
    assert max_flow([1] * 9, [1] * 9, [9], most_work=5) is None

"""How many pods of a consumer there are: to start with, at an update, and at most."""

from __future__ import annotations

from dataclasses import replace

from gpu_constructs.capacity.consumer import Consumer


def as_it_runs(consumer: Consumer) -> Consumer:
    """Give it without pods where somebody stopped it."""
    if not consumer.is_stopped:
        return consumer
    return replace(consumer, copies=0, least_copies=0, surge=0, is_for_each_node=False)


def starting(consumer: Consumer) -> int:
    """Give how many pods must have a place before any of them gets on: of a gang several."""
    if not consumer.is_gang:
        return 1
    return consumer.pods_each if consumer.starts_with is None else min(consumer.starts_with, consumer.pods_each)


def updating(consumer: Consumer) -> int:
    """Give how many new pods an update must find a place for at once, before any old one goes."""
    return consumer.surge_together * starting(consumer) if consumer.surge and consumer.surge_is_needed else 0


def most_on_node(consumer: Consumer) -> int:
    """Give how many there may be on a node, those that an update adds among them."""
    if consumer.is_for_each_node:
        return 1 + consumer.surge
    pods = consumer.pods + consumer.surge if consumer.pods else 0
    return pods if consumer.most_per_node is None else min(pods, consumer.most_per_node)

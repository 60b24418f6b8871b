"""A bin-packing solver: it decides whether items, such as pods, fit into bins, such as nodes.

An item goes into a bin as a whole. Bins can have different sizes. The answers ``yes`` and ``no`` are certain. The
answer ``undecided`` means that the search gave up.
"""

from gpu_constructs.capacity.packing.pack import pack
from gpu_constructs.capacity.packing.problem import Bin, Group, Item, Load, Packing, Shortage, overlaid

__all__ = ["Bin", "Group", "Item", "Load", "Packing", "Shortage", "overlaid", "pack"]

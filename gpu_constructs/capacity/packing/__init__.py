"""Whether things go whole into bins of several kinds: exact where it says yes or no."""

from gpu_constructs.capacity.packing.pack import pack
from gpu_constructs.capacity.packing.problem import Bin, Group, Item, Load, Packing, Shortage, overlaid

__all__ = ["Bin", "Group", "Item", "Load", "Packing", "Shortage", "overlaid", "pack"]

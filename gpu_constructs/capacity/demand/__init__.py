"""Who asks for GPUs in an app, and how many pods of each there are at once."""

from gpu_constructs.capacity.demand.consumers import consumers
from gpu_constructs.capacity.demand.uncounted import uncounted

__all__ = ["consumers", "uncounted"]

"""A node pool of GKE as it is asked for: what the rules of its machine and its capacity type look at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from capacity.catalog.capacity_type import CapacityType
    from capacity.catalog.machines import Machine
    from capacity.settings.pools import GkeNodeOptions


@dataclass(frozen=True)
class AskedPool:
    """What of a pool its machine and capacity type decide on; `zones` is how many it is in."""

    capacity_type: CapacityType
    machine: Machine
    min_nodes: int
    max_nodes: int
    max_run_seconds: int | None
    options: GkeNodeOptions
    zones: int

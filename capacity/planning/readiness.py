"""How long an admitted job may wait for its nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.capacity_type import CapacityType
from capacity.kueue_configuration import ONE_BOOT, PodsReady

if TYPE_CHECKING:
    from capacity.planning.ground import Ground

IN_LINE = PodsReady(timeout_seconds=6 * 3600, recovery_seconds=ONE_BOOT.recovery_seconds, requeues=3)
"""With flex-start a pod stands in DWS's line until there is capacity, for hours as a rule: whoever takes it out gives up its place.

Fewer requeues, so that what can never start (an image that cannot be pulled holds its node all the while) still ends within about a day.
"""


def pods_ready(ground: Ground) -> PodsReady:
    """The times of the whole cluster's Kueue, which has one setting for all queues: those of the slowest capacity that a queue gives away.

    Queued capacity is not slow here: Kueue admits such a job when its nodes are there, and the time begins then.
    """
    types = {pool.settings.capacity_type for pool in ground.queued_pools.values()}
    return IN_LINE if CapacityType.FLEX_START in types else ONE_BOOT

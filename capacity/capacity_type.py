"""How capacity is bought."""

from enum import StrEnum


class CapacityType(StrEnum):
    """The way a machine is provisioned; the word that pools, flavors, prices and reports all use.

    SPOT is spare capacity that the cloud takes back at short notice; it is not preemption by Kueue, which is about quota.
    ON_DEMAND is capacity at list price until it is given back; it is not guaranteed to exist when asked for.
    """

    SPOT = "spot"
    ON_DEMAND = "on-demand"

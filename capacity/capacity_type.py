"""How capacity is bought."""

from enum import StrEnum


class CapacityType(StrEnum):
    """The way a machine is provisioned; the word that pools, flavors, prices and reports all use.

    RESERVED is capacity paid for in advance: a GCP reservation, an AWS capacity reservation or capacity block.
    FLEX_START is capacity that GCP's Dynamic Workload Scheduler gives when it has some, for seven days at most, and does not take back
    earlier; it is not Spot. QUEUED is the same, all nodes of a request at once, through a ProvisioningRequest.
    SPOT is spare capacity that the cloud takes back at short notice; it is not preemption by Kueue, which is about quota.
    ON_DEMAND is capacity at list price until it is given back; it is not guaranteed to exist when asked for.
    """

    RESERVED = "reserved"
    FLEX_START = "flex-start"
    QUEUED = "queued"
    SPOT = "spot"
    ON_DEMAND = "on-demand"

"""What the clouds bill besides machines, and by which measure."""

from __future__ import annotations

from enum import StrEnum


class Measure(StrEnum):
    """By what an item is billed. HOUR: for each hour that it is there. MONTH: for a month of it. The others: for each unit and month.

    GIB is data that moves, once; GIB_MONTH is data or disk that is kept.
    """

    HOUR = "hour"
    MONTH = "month"
    GIB = "GiB"
    GIB_MONTH = "GiB-month"
    IOPS_MONTH = "IOPS-month"
    MIBPS_MONTH = "MiB/s-month"


class ServiceItem(StrEnum):
    """One thing that a cloud bills.

    CLUSTER is the control plane; EXTENDED_SUPPORT is what EKS adds once the version's standard support has ended; AUTOPILOT is what
    Autopilot bills for pods beyond the price of machines. NAT_GATEWAY is a gateway of AWS, NAT_NODE a node that uses Cloud NAT (of 32 nodes
    at most). PUBLIC_ADDRESS and INTERFACE_ENDPOINT (in one zone) are there, used or not. GP3_IOPS and GP3_MIBPS are what a gp3 volume
    has above 3,000 operations and 125 MiB a second. INTERNET_TRAFFIC leaves the cloud, NAT_TRAFFIC goes through a NAT either way.
    """

    CLUSTER = "cluster"
    EXTENDED_SUPPORT = "extended-support"
    AUTOPILOT = "autopilot"
    NAT_GATEWAY = "nat-gateway"
    NAT_NODE = "nat-node"
    PUBLIC_ADDRESS = "public-address"
    INTERFACE_ENDPOINT = "interface-endpoint"
    KMS_KEY = "kms-key"
    LOAD_BALANCER = "load-balancer"
    GP3_STORAGE = "gp3-storage"
    GP3_IOPS = "gp3-iops"
    GP3_MIBPS = "gp3-mibps"
    PD_BALANCED = "pd-balanced"
    HYPERDISK_BALANCED = "hyperdisk-balanced"
    LOCAL_SSD = "local-ssd"
    BUCKET_STORAGE = "bucket-storage"
    INTERNET_TRAFFIC = "internet-traffic"
    NAT_TRAFFIC = "nat-traffic"

    @property
    def measure(self) -> Measure:
        """By what it is billed."""
        return _MEASURES.get(self, Measure.HOUR)


_MEASURES = {
    ServiceItem.KMS_KEY: Measure.MONTH,
    ServiceItem.GP3_STORAGE: Measure.GIB_MONTH,
    ServiceItem.GP3_IOPS: Measure.IOPS_MONTH,
    ServiceItem.GP3_MIBPS: Measure.MIBPS_MONTH,
    ServiceItem.PD_BALANCED: Measure.GIB_MONTH,
    ServiceItem.HYPERDISK_BALANCED: Measure.GIB_MONTH,
    ServiceItem.LOCAL_SSD: Measure.GIB_MONTH,
    ServiceItem.BUCKET_STORAGE: Measure.GIB_MONTH,
    ServiceItem.INTERNET_TRAFFIC: Measure.GIB,
    ServiceItem.NAT_TRAFFIC: Measure.GIB,
}

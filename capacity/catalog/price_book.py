"""The price book: what one machine costs an hour in which region and capacity type, what else is billed, and since when."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from capacity.catalog.capacity_type import CapacityType
from capacity.catalog.data_files import DataFileError, Record, Source, read_records, unsourced
from capacity.catalog.machines import Cloud


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
    has above 3,000 operations and 125 MiB a second. EFS_MIBPS is provisioned throughput; EFS_READ and EFS_WRITTEN go through a file system
    with elastic throughput. LUSTRE_SCRATCH is the size of a file system of SCRATCH_2, LUSTRE_125 to LUSTRE_1000 that of one of PERSISTENT_2
    with so many MB/s for each TiB. INTERNET_TRAFFIC leaves the cloud, NAT_TRAFFIC goes through a NAT either way.
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
    EFS_STORAGE = "efs-storage"
    EFS_MIBPS = "efs-mibps"
    EFS_READ = "efs-read"
    EFS_WRITTEN = "efs-written"
    LUSTRE_SCRATCH = "lustre-scratch"
    LUSTRE_125 = "lustre-125"
    LUSTRE_250 = "lustre-250"
    LUSTRE_500 = "lustre-500"
    LUSTRE_1000 = "lustre-1000"
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
    ServiceItem.EFS_STORAGE: Measure.GIB_MONTH,
    ServiceItem.EFS_MIBPS: Measure.MIBPS_MONTH,
    ServiceItem.EFS_READ: Measure.GIB,
    ServiceItem.EFS_WRITTEN: Measure.GIB,
    ServiceItem.LUSTRE_SCRATCH: Measure.GIB_MONTH,
    ServiceItem.LUSTRE_125: Measure.GIB_MONTH,
    ServiceItem.LUSTRE_250: Measure.GIB_MONTH,
    ServiceItem.LUSTRE_500: Measure.GIB_MONTH,
    ServiceItem.LUSTRE_1000: Measure.GIB_MONTH,
    ServiceItem.INTERNET_TRAFFIC: Measure.GIB,
    ServiceItem.NAT_TRAFFIC: Measure.GIB,
}


_PRICES = Path(__file__).parent / "prices"

PriceKey = tuple[str, str, CapacityType]
"""Machine name, region, capacity type."""

ServiceKey = tuple[ServiceItem, str | None]
"""What is billed, and in which region (None: in every region that has no price of its own)."""

HOURS_OF_A_MONTH = 730
"""Hours in an average month; what cloud price lists use."""


def priced_as(capacity_type: CapacityType) -> CapacityType:
    """The capacity type whose price counts: a reservation is billed at the on-demand price, used or not."""
    return CapacityType.ON_DEMAND if capacity_type is CapacityType.RESERVED else capacity_type


class Price(Record):
    """The price of one machine, GPUs included, for one hour in US dollars; `source` names an entry of the file's sources."""

    machine: str
    region: str
    capacity_type: CapacityType
    usd_per_hour: Annotated[Decimal, Field(gt=Decimal(0))]
    source: str


class ServicePrice(Record):
    """The price of something besides machines, in US dollars by the item's measure. Without a region it is that of all others."""

    item: ServiceItem
    region: str | None = None
    usd: Annotated[Decimal, Field(gt=Decimal(0))]
    source: str


class NodeFee(Record):
    """What EKS Auto Mode bills for running a node: a part, in percent, of its machine's on-demand price.

    Of machines of some categories, such as g and gr; without categories, of all that no row before it is of.
    """

    categories: tuple[str, ...] = ()
    percent: Annotated[Decimal, Field(gt=Decimal(0), lt=Decimal(100))]
    source: str

    def is_of(self, machine: str) -> bool:
        """Whether it is the fee of a machine such as g6e.xlarge."""
        category = re.match("[a-z]*", machine)
        return not self.categories or (category is not None and category[0] in self.categories)


class PriceFile(Record):
    """A price file: the prices of one cloud, each with a source."""

    cloud: Cloud
    sources: dict[str, Source]
    services: list[ServicePrice] = Field(default_factory=list[ServicePrice])
    node_fees: tuple[NodeFee, ...] = ()
    prices: list[Price] = Field(default_factory=list[Price])

    @model_validator(mode="after")
    def _every_price_has_a_source_and_stands_once(self) -> PriceFile:
        if problem := unsourced(((price.machine, price.source) for price in self.prices), self.sources):
            raise ValueError(problem)
        seen: set[PriceKey] = set()
        for price in self.prices:
            key = (price.machine, price.region, price.capacity_type)
            if key in seen:
                raise ValueError(f"{' '.join(key)} has two prices")
            seen.add(key)
        return self

    @model_validator(mode="after")
    def _every_service_has_a_source_and_stands_once(self) -> PriceFile:
        if problem := unsourced(((each.item, each.source) for each in self.services), self.sources):
            raise ValueError(problem)
        if problem := unsourced((("node_fees", each.source) for each in self.node_fees), self.sources):
            raise ValueError(problem)
        keys = [(each.item, each.region) for each in self.services]
        if twice := sorted(f"{item} in {region or 'all regions'}" for item, region in keys if keys.count((item, region)) > 1):
            raise ValueError(f"{twice[0]} has two prices")
        return self


@dataclass(frozen=True)
class PriceBook:
    """The prices of one cloud. `sources` are those of the rows, by the name that a row gives."""

    cloud: Cloud
    prices: dict[PriceKey, Price]
    sources: dict[str, Source]
    services: dict[ServiceKey, ServicePrice] = field(default_factory=dict["ServiceKey", ServicePrice])
    node_fees: tuple[NodeFee, ...] = ()

    def find(self, machine: str, region: str, capacity_type: CapacityType) -> Price | None:
        """The price, or None: nothing is known, which is not the same as nothing to pay."""
        return self.prices.get((machine, region, capacity_type))

    def find_service(self, item: ServiceItem, region: str) -> ServicePrice | None:
        """Likewise for what is no machine: the region's own price, or that of all regions."""
        return self.services.get((item, region)) or self.services.get((item, None))

    def node_fee(self, machine: str, region: str) -> tuple[NodeFee, Decimal] | None:
        """The row of what EKS Auto Mode bills for a node, and that in US dollars an hour; None where one of the prices is not known."""
        fee = next((each for each in self.node_fees if each.is_of(machine)), None)
        price = self.find(machine, region, CapacityType.ON_DEMAND)
        return None if fee is None or price is None else (fee, price.usd_per_hour * fee.percent / 100)

    def source_of(self, price: Price | ServicePrice | NodeFee) -> Source:
        """Where a price is from."""
        return self.sources[price.source]

    def overridden_by(self, path: Path) -> PriceBook:
        """The book with the rows of a file of one's own before its own. Raises DataFileError for a file of another cloud or schema."""
        return self.with_rows_of(read_records(path, PriceFile), path.name)

    def with_rows_of(self, file: PriceFile, name: str) -> PriceBook:
        """The same for a file that has been read; its sources get its `name`, because both may call a source the same."""
        if file.cloud is not self.cloud:
            raise DataFileError(f"{name} has prices of {file.cloud}, but those of {self.cloud} are needed")
        sources = {f"{name}: {key}": source for key, source in file.sources.items()}
        rows = [price.model_copy(update={"source": f"{name}: {price.source}"}) for price in file.prices]
        services = [price.model_copy(update={"source": f"{name}: {price.source}"}) for price in file.services]
        fees = tuple(fee.model_copy(update={"source": f"{name}: {fee.source}"}) for fee in file.node_fees)
        return PriceBook(
            self.cloud,
            self.prices | _by_key(rows),
            self.sources | sources,
            self.services | _by_item(services),
            (*fees, *self.node_fees),
        )


def _by_key(prices: list[Price]) -> dict[PriceKey, Price]:
    return {(price.machine, price.region, price.capacity_type): price for price in prices}


def _by_item(services: list[ServicePrice]) -> dict[ServiceKey, ServicePrice]:
    return {(price.item, price.region): price for price in services}


def read_prices(path: Path) -> PriceBook:
    """The prices of a file. Raises DataFileError when the file breaks its schema."""
    file = read_records(path, PriceFile)
    return PriceBook(file.cloud, _by_key(file.prices), file.sources, _by_item(file.services), file.node_fees)


@cache
def prices_of(cloud: Cloud) -> PriceBook:
    """The shipped prices of `cloud`."""
    return read_prices(_PRICES / f"{cloud}.yaml")

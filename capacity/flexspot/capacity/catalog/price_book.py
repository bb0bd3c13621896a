"""The price book: hourly prices of machines by region and capacity type, prices of other items, and their dates."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, model_validator

from flexspot.capacity.catalog.capacity_type import CapacityType, facts_of
from flexspot.capacity.catalog.contract import Commitment, Discount, FamilyPrice, NodeFee, SpendCommitment, order_problem, valid_at
from flexspot.capacity.catalog.data_files import DataFileError, Record, Source, SourcedFile, read_records
from flexspot.capacity.catalog.machines import Vendor, machines_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class Measure(StrEnum):
    """The unit that an item is billed in. HOUR and MONTH: for the time it exists. The others: for each unit and month.

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

    CLUSTER is the control plane. EXTENDED_SUPPORT is what EKS adds after the version's standard support has ended. AUTOPILOT is what
    Autopilot bills for pods beyond the price of machines. NAT_GATEWAY is a gateway of AWS. NAT_NODE is a node that uses Cloud NAT (of 32
    nodes at most). LOAD_BALANCER is a network load balancer of AWS, a forwarding rule of Google Cloud. PUBLIC_ADDRESS and
    INTERFACE_ENDPOINT (in one zone) are billed used or not. GP3_IOPS and GP3_MIBPS are what a gp3 volume has above 3,000 operations and 125
    MiB a second. EFS_MIBPS is provisioned throughput; EFS_READ and EFS_WRITTEN go through a file system with elastic throughput.
    LUSTRE_SCRATCH is the size of a file system of SCRATCH_2, LUSTRE_125 to LUSTRE_1000 that of one of PERSISTENT_2 with this many MB/s for
    each TiB. INTERNET_TRAFFIC leaves the cloud, NAT_TRAFFIC goes through a NAT in either direction.
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
    APPLICATION_LOAD_BALANCER = "application-load-balancer"
    GP2_STORAGE = "gp2-storage"
    GP3_STORAGE = "gp3-storage"
    GP3_IOPS = "gp3-iops"
    GP3_MIBPS = "gp3-mibps"
    PD_STANDARD = "pd-standard"
    PD_BALANCED = "pd-balanced"
    PD_SSD = "pd-ssd"
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
        """Unit of its price."""
        return _MEASURES.get(self, Measure.HOUR)


_MEASURES = {
    ServiceItem.KMS_KEY: Measure.MONTH,
    ServiceItem.GP3_IOPS: Measure.IOPS_MONTH,
    **dict.fromkeys((ServiceItem.GP3_MIBPS, ServiceItem.EFS_MIBPS), Measure.MIBPS_MONTH),
    **{item: Measure.GIB_MONTH for item in ServiceItem if item.endswith("-storage") or item.startswith(("lustre-", "pd-"))},
    **dict.fromkeys((ServiceItem.LOCAL_SSD, ServiceItem.HYPERDISK_BALANCED), Measure.GIB_MONTH),
    **dict.fromkeys((ServiceItem.EFS_READ, ServiceItem.EFS_WRITTEN), Measure.GIB),
    **dict.fromkeys((ServiceItem.INTERNET_TRAFFIC, ServiceItem.NAT_TRAFFIC), Measure.GIB),
}


_PRICES = Path(__file__).parent / "prices"

PriceKey = tuple[str, str, CapacityType]
"""Machine name, region, capacity type."""

PoolPriceKey = tuple[str, str, CapacityType, str]
"""The same with the name of the pool whose nodes alone have the price."""

ServiceKey = tuple[ServiceItem, str | None]
"""Item and region. None: every region without a price for itself."""

HOURS_OF_A_MONTH = 730
"""Hours in an average month, as in cloud price lists."""

HOURS_OF_A_LONG_MONTH = 744
"""Hours in a month of 31 days, the most that is billed: AWS bills in UTC, Google in Pacific time, whose clocks go back in November."""

SPOT_PRICE_DAYS, LIST_PRICE_DAYS = 30, 180
"""Days for which a price counts as current. Older prices cause a warning: Spot changes hourly, lists a few times a year."""


def priced_as(capacity_type: CapacityType) -> CapacityType:
    """Return the capacity type to price by if the book has no row for this one: a reservation is billed at the on-demand price."""
    return CapacityType.ON_DEMAND if capacity_type is CapacityType.RESERVED else capacity_type


_SAME_PRICE = {
    CapacityType.RESERVED: (CapacityType.RESERVED, CapacityType.ON_DEMAND),
    CapacityType.FLEX_START: (CapacityType.FLEX_START, CapacityType.QUEUED),
    CapacityType.QUEUED: (CapacityType.QUEUED, CapacityType.FLEX_START),
}
"""Capacity types with the same price, in order of precedence.

Queued capacity is flex-start with all nodes at once: Google has one price (SKU) for both.
"""

FACTS_OF_CLOUD = {Vendor.AWS: "eks", Vendor.GCP: "gke"}
"""Name of each cloud's capacity type facts, for `facts_of`."""


class Price(Record):
    """The price of one machine, GPUs included, for one hour in US dollars."""

    machine: str
    region: str
    capacity_type: CapacityType
    pool: str | None = None
    """Pool whose nodes alone have this price, by its name in the plan, which is the label of its nodes. None for any."""
    start: datetime | None = None
    """First moment of validity, until the next row with the same key. Before the first one, the book's rows without a start apply."""
    usd_per_hour: Annotated[Decimal, Field(gt=Decimal(0))]
    source: str
    """Name of an entry of the file's sources."""

    @property
    def what(self) -> str:
        """Key of the rows that follow each other in time, also used in messages."""
        return f"{self.machine} {self.region} {self.capacity_type}" + (f" pool {self.pool}" if self.pool else "")


class ServicePrice(Record):
    """The price of an item other than machines, in US dollars per unit of its measure. Without a region it is that of all others."""

    item: ServiceItem
    region: str | None = None
    usd: Annotated[Decimal, Field(gt=Decimal(0))]
    source: str


class PriceFile(SourcedFile):
    """A price file: the prices of one cloud, each with a source. Discounts and commitments are for files of users."""

    cloud: Vendor
    services: list[ServicePrice] = Field(default_factory=list[ServicePrice])
    node_fees: tuple[NodeFee, ...] = ()
    prices: list[Price] = Field(default_factory=list[Price])
    families: list[FamilyPrice] = Field(default_factory=list[FamilyPrice])
    discounts: list[Discount] = Field(default_factory=list[Discount])
    commitments: list[Commitment] = Field(default_factory=list[Commitment])
    spend_commitments: list[SpendCommitment] = Field(default_factory=list[SpendCommitment])

    @model_validator(mode="after")
    def _every_price_stands_once(self) -> PriceFile:
        if problem := order_problem([(each.what, each.start) for each in self.prices]):
            raise ValueError(problem)
        for what, defect in (
            ([f"{each.item} in {each.region or 'all regions'}" for each in self.services], "has two prices"),
            ([f"{each.family} in {each.region}" for each in self.families], "has two prices"),
            ([each.what for each in self.discounts], "has two discounts"),
            ([each.name for each in self.spend_commitments], "is the name of two commitments"),
        ):
            if twice := sorted(each for each in set(what) if what.count(each) > 1):
                raise ValueError(f"{twice[0]} {defect}")
        return self

    @model_validator(mode="after")
    def _commitments_are_the_clouds(self) -> PriceFile:
        for each in self.spend_commitments:
            if each.kind.cloud is not self.cloud:
                raise ValueError(f"{each.what}: {self.cloud} has no {each.kind}")
        return self

    @model_validator(mode="after")
    def _the_cloud_sells_each_capacity_type(self) -> PriceFile:
        sold = tuple(facts_of(FACTS_OF_CLOUD[self.cloud]))
        for each in (*self.prices, *self.discounts):
            if each.capacity_type not in sold:
                raise ValueError(f"{each.what}: {self.cloud} sells no {each.capacity_type} capacity; it sells {', '.join(sold)}")
        return self


@dataclass(frozen=True)
class PriceBook:
    """The prices of one cloud."""

    cloud: Vendor
    prices: dict[PriceKey, Price]
    sources: dict[str, Source]
    """Sources of the rows, by the name that a row gives."""
    services: dict[ServiceKey, ServicePrice] = field(default_factory=dict["ServiceKey", ServicePrice])
    listed: dict[PriceKey, Price] = field(default_factory=dict["PriceKey", Price])
    """List prices that discounts are subtracted from: those of the shipped file."""
    of_pools: dict[PoolPriceKey, Price] = field(default_factory=dict["PoolPriceKey", Price])
    """Prices that apply only to the nodes of one pool."""
    commitments: tuple[Commitment, ...] = ()
    """Machines that are paid for whether they run or not, as far as a file says."""
    families: dict[tuple[str, str], FamilyPrice] = field(default_factory=dict[tuple[str, str], FamilyPrice])
    node_fees: tuple[NodeFee, ...] = ()
    family_regions: frozenset[str] = frozenset()
    """Regions for which the shipped file has families. A user's file says nothing about the families it omits."""
    undiscounted: dict[PriceKey, Price] = field(default_factory=dict["PriceKey", Price])
    """Prices of every file before its discounts."""
    spend_commitments: tuple[SpendCommitment, ...] = ()
    """Spend that is paid for whatever runs, as far as a file says."""

    @property
    def family_names(self) -> list[str]:
        """Families without GPUs that have a price in some region."""
        return sorted({family for family, _ in self.families})

    def unpriced_families(self, region: str) -> list[str]:
        """Return the families that may be created in a region but have no price there.

        Google's list has each family where it is sold, AWS's one region.
        """
        if self.cloud is Vendor.GCP and region in self.family_regions:
            return []
        return [each for each in self.family_names if (each, region) not in self.families]

    def find(self, machine: str, region: str, capacity_type: CapacityType) -> Price | None:
        """Return the exact row. None if the price is not known, which does not mean free."""
        return self.prices.get((machine, region, capacity_type))

    def paid(self, machine: str, region: str, capacity_type: CapacityType, pool: str | None = None) -> Price | None:
        """Return the price of a node: of its pool, else of its capacity type, else of one with the same price."""
        for each in _SAME_PRICE.get(capacity_type, (capacity_type,)):
            price = self.of_pools.get((machine, region, each, pool)) if pool else None
            if price is not None or (price := self.find(machine, region, each)) is not None:
                return price
        return None

    def paid_at_most(self, machine: str, region: str, capacity_type: CapacityType, pool: str | None = None) -> Price | None:
        """Return the price, or the on-demand price as an upper bound. None if neither is known.

        EC2 caps Spot prices at the on-demand price; Google sells Spot and flex-start at a discount on it.
        """
        return self.paid(machine, region, capacity_type, pool) or self.paid(machine, region, CapacityType.ON_DEMAND, pool)

    def find_service(self, item: ServiceItem, region: str) -> ServicePrice | None:
        """Return the price of an item that is not a machine: the region's price, or that of all regions."""
        return self.services.get((item, region)) or self.services.get((item, None))

    def fee_of(self, machine: str) -> NodeFee | None:
        """Return the EKS Auto Mode fee for a node of a machine, or of a family such as m6i."""
        return next((each for each in self.node_fees if each.is_of(machine)), None)

    def node_fee(self, machine: str, region: str) -> tuple[NodeFee, Decimal] | None:
        """Return the EKS Auto Mode fee for a node, and its amount in US dollars an hour. None if one of the prices is not known."""
        fee = self.fee_of(machine)
        price = self.find(machine, region, CapacityType.ON_DEMAND)
        return None if fee is None or price is None else (fee, price.usd_per_hour * fee.percent / 100)

    def source_of(self, price: Price | ServicePrice | FamilyPrice | NodeFee | SpendCommitment) -> Source:
        """Return the source of a price."""
        return self.sources[price.source]

    def overridden_by(self, path: Path) -> PriceBook:
        """Return the book with the rows of a user's file first. Raises DataFileError for a file of another cloud or schema."""
        return self.with_rows_of(read_records(path, PriceFile), path.name)

    def with_rows_of(self, file: PriceFile, name: str, at: datetime | None = None) -> PriceBook:
        """Return the same for a file that has been read. Its sources are prefixed with `name`, because both may use one source name.

        at: moment at which changing prices must be valid. Default: now, as plans are about today.

        Discounts become separate rows that name their list. If the file has commitments, they replace the book's. Raises DataFileError for
        a file of another cloud, and for a discount without a matching list price.
        """
        if file.cloud is not self.cloud:
            raise DataFileError(f"{name} has prices of {file.cloud}, but those of {self.cloud} are needed")
        sources = {f"{name}: {key}": source for key, source in file.sources.items()}
        rows = [price.model_copy(update={"source": f"{name}: {price.source}"}) for price in valid_at(file.prices, at)]
        discounted = list(self._discounted(file, name, sources))
        return PriceBook(
            self.cloud,
            self.prices | _by_key(discounted) | _by_key(rows),
            self.sources | sources,
            self.services | _by_item([price.model_copy(update={"source": f"{name}: {price.source}"}) for price in file.services]),
            self.listed,
            self.of_pools | _by_pool(discounted) | _by_pool(rows),
            tuple(file.commitments) or self.commitments,
            self.families | _by_family(each.model_copy(update={"source": f"{name}: {each.source}"}) for each in file.families),
            (*(each.model_copy(update={"source": f"{name}: {each.source}"}) for each in file.node_fees), *self.node_fees),
            self.family_regions,
            self.undiscounted | _by_key(rows),
            tuple(each.model_copy(update={"source": f"{name}: {each.source}"}) for each in file.spend_commitments)
            or self.spend_commitments,
        )

    def _discounted(self, file: PriceFile, name: str, sources: dict[str, Source]) -> Iterator[Price]:
        """Yield the rows from the file's discounts on list prices, the widest discount first. Adds their sources to `sources`."""
        for discount in sorted(file.discounts, key=lambda each: each.narrowness):
            given, kind = file.sources[discount.source], priced_as(discount.capacity_type)
            of_list = {key: price for key, price in self.listed.items() if key[2] is kind and discount.holds(*key[:2])}
            if not of_list:
                raise DataFileError(
                    f"{name}: the discount on {discount.what} is off nothing: the book lists no {kind} price of it; give the price itself"
                )
            for (machine, region, _), price in of_list.items():
                listed = self.sources[price.source]
                source = f"{name}: {discount.source}, {discount.percent} % off {price.source}"
                sources[source] = Source(
                    citation=f"{given.citation}: {discount.percent} % off {listed.citation}",
                    as_of=min(given.as_of, listed.as_of),
                    verified=given.verified and listed.verified,
                )
                yield Price(
                    machine=machine,
                    region=region,
                    capacity_type=discount.capacity_type,
                    pool=discount.pool,
                    usd_per_hour=price.usd_per_hour * (1 - discount.percent / 100),
                    source=source,
                )


def _by_key(prices: Iterable[Price]) -> dict[PriceKey, Price]:
    return {(price.machine, price.region, price.capacity_type): price for price in prices if price.pool is None}


def _by_pool(prices: Iterable[Price]) -> dict[PoolPriceKey, Price]:
    return {(price.machine, price.region, price.capacity_type, price.pool): price for price in prices if price.pool is not None}


def _by_family(families: Iterable[FamilyPrice]) -> dict[tuple[str, str], FamilyPrice]:
    return {(each.family, each.region): each for each in families}


def _by_item(services: list[ServicePrice]) -> dict[ServiceKey, ServicePrice]:
    return {(price.item, price.region): price for price in services}


def read_prices(path: Path) -> PriceBook:
    """Return the prices of a file. Raises DataFileError if the file breaks its schema."""
    file = read_records(path, PriceFile)
    listed = _by_key(file.prices)
    return PriceBook(
        cloud=file.cloud,
        prices=listed,
        sources=file.sources,
        services=_by_item(file.services),
        listed=listed,
        of_pools=_by_pool(file.prices),
        commitments=tuple(file.commitments),
        families=_by_family(file.families),
        node_fees=file.node_fees,
        family_regions=frozenset(each.region for each in file.families),
        undiscounted=listed,
    )


@cache
def prices_of(cloud: Vendor) -> PriceBook:
    """Return the shipped prices of `cloud`."""
    return read_prices(_PRICES / f"{cloud}.yaml")


_LISTS = Path(__file__).parent / "prices"
_NONE = "-"


class MachineList(Record):
    """A column of prices for each region; `source` is one of the shipped price book of the cloud."""

    cloud: Vendor
    source: str
    regions: tuple[str, ...]
    machines: dict[str, str]

    @model_validator(mode="after")
    def _each_machine_has_a_column_for_each_region(self) -> MachineList:
        for name, row in self.machines.items():
            columns = row.split()
            if len(columns) != len(self.regions) or not all(each == _NONE or Decimal(each) > 0 for each in columns):
                raise ValueError(f"{name} must have {len(self.regions)} prices above 0, or {_NONE}")
        return self


@cache
def machine_list(cloud: Vendor) -> MachineList:
    """Return the shipped list of `cloud`."""
    return read_records(_LISTS / f"machines-{cloud}.yaml", MachineList)


def listed_price(book: PriceBook, machine: str, region: str, capacity_type: CapacityType) -> Price | None:
    """Return the hourly price of a machine: the book's, else for on-demand and reserved nodes the list price. None if neither is known."""
    if (known := book.paid(machine, region, capacity_type)) is not None:
        return known
    if capacity_type not in {CapacityType.ON_DEMAND, CapacityType.RESERVED}:
        return None
    found = machine_list(book.cloud)
    row = found.machines.get(machine)
    if row is None or region not in found.regions or (column := row.split()[found.regions.index(region)]) == _NONE:
        return None
    return Price(machine=machine, region=region, capacity_type=CapacityType.ON_DEMAND, usd_per_hour=Decimal(column), source=found.source)


_SIZES = {"nano": 2, "micro": 2, "small": 2, "medium": 2, "large": 2, "xlarge": 4}
_MODERN = re.compile(r"(?:t3a?|t4g|[cmr][5-9][a-z-]*)\.([a-z0-9]+)")


def vcpu_of(cloud: Vendor, machine: str) -> int | None:
    """Return the vCPU of a machine from the catalog, or from its size for EC2's t3, t4g and the c, m and r families from the fifth on.

    None if it is not known.
    """
    if (known := machines_of(cloud).get(machine)) is not None:
        return known.vcpu
    if cloud is Vendor.GCP:
        found = re.fullmatch(r"(?:c2|c2d|c3|c3d|c4|c4a|e2|n1|n2|n2d|n4|t2a|t2d)-[a-z]+-(\d+)(?:-lssd)?", machine)
        return int(found[1]) if found else None
    found = _MODERN.fullmatch(machine)
    if found is None:
        return None
    size = found[1]
    if (several := re.fullmatch(r"(\d+)xlarge", size)) is not None:
        return 4 * int(several[1])
    if size == "medium" and not machine.startswith("t"):
        return 1
    return _SIZES.get(size)

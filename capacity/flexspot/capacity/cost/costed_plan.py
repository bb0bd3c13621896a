"""A plan as far as its cost depends on it, the prices of its machines, and what a month of it is expected to be like."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError, model_validator

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.data_files import DataFileError, Record, Source, read_records
from flexspot.capacity.catalog.platform import VOCABULARIES, Platform
from flexspot.capacity.catalog.price_book import HOURS_OF_A_MONTH, PriceBook, PriceFile, prices_of
from flexspot.capacity.cost.figures import PriceUsed, price_used
from flexspot.capacity.plan.billed import SpendingPlan
from flexspot.capacity.plan.model import plan_data
from flexspot.capacity.values.errors import ExitCode, ExplainedError, nearest
from flexspot.capacity.values.names import Name

if TYPE_CHECKING:
    from flexspot.capacity.plan.model import Plan


@dataclass(frozen=True)
class MachinePrices:
    """US dollars an hour of one machine, GPUs included. None: not known, which is not the same as nothing to pay.

    `used` says of the prices that are the book's from where and of which day they are; a price that somebody gave is not in it.
    """

    on_demand_usd_per_hour: Decimal
    spot_usd_per_hour: Decimal | None = None
    flex_start_usd_per_hour: Decimal | None = None
    reserved_usd_per_hour: Decimal | None = None
    used: dict[CapacityType, PriceUsed] = field(default_factory=dict["CapacityType", "PriceUsed"], compare=False)

    @property
    def of_reservations_usd_per_hour(self) -> Decimal:
        """What a reserved machine is billed at: its own price, or where no contract gives it one, the on-demand price."""
        return self.reserved_usd_per_hour or self.on_demand_usd_per_hour


def machine_prices(book: PriceBook, machine: str, region: str) -> MachinePrices:
    """What the book knows of a machine.

    Raises ExplainedError when it has no on-demand price, which is what everything else is measured against.
    """
    found = {each: book.paid(machine, region, each) for each in CapacityType}
    on_demand = found[CapacityType.ON_DEMAND]
    if on_demand is None:
        machines = sorted({name for name, place, each in book.prices if place == region and each is CapacityType.ON_DEMAND})
        regions = sorted({place for name, place, each in book.prices if name == machine and each is CapacityType.ON_DEMAND})
        known = f"{machine} has one in {', '.join(regions)}" if regions else f"in {region}, {nearest(machine, machines)}"
        raise ExplainedError(
            f"the price book has no on-demand price of {machine} in {region} ({book.cloud}).",
            f"{known}; or give the prices with --on-demand-usd and --spot-usd, or in a file with --prices.",
            exit_code=ExitCode.BAD_USAGE,
        )
    usd = {each: price.usd_per_hour if price else None for each, price in found.items()}
    reserved = book.find(machine, region, CapacityType.RESERVED)
    return MachinePrices(
        on_demand_usd_per_hour=on_demand.usd_per_hour,
        spot_usd_per_hour=usd[CapacityType.SPOT],
        flex_start_usd_per_hour=usd[CapacityType.FLEX_START],
        reserved_usd_per_hour=None if reserved is None else reserved.usd_per_hour,
        used={price.capacity_type: price_used(book, price) for price in (*found.values(), reserved) if price is not None},
    )


class _PlanPart(BaseModel):
    """Frozen; the rest of what a plan or its file says is not looked at."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class CostedCeiling(_PlanPart):
    """The most of a pool, in GPUs, with the vCPU and memory (MiB) that belong to them."""

    gpus: int = Field(ge=1)
    vcpu: int = Field(default=0, ge=0)
    memory_mib: int = Field(default=0, ge=0)


class CostedPool(_PlanPart):
    """A pool: `machines` begins with the one asked for; nodes and GPUs as in PoolPlan."""

    name: str
    machines: tuple[str, ...] = Field(min_length=1)
    capacity_type: CapacityType
    accelerator: str = ""
    min_nodes: int = Field(ge=0)
    max_nodes: int = Field(ge=1)
    ceiling: CostedCeiling
    serves: tuple[str, ...] = Field(min_length=1)


class CostedRoutePool(_PlanPart):
    """A pool that a class may use."""

    pool: str
    capacity_type: CapacityType


class CostedRoute(_PlanPart):
    """The pools of a class in the order in which they are tried."""

    workload_class: str
    # Files written before the name changed say "rungs".
    pools: tuple[CostedRoutePool, ...] = Field(validation_alias=AliasChoices("pools", "rungs"))


class CostedTeam(_PlanPart):
    """A team, its budget in US dollars a month, and the most GPUs that it may hold at once, borrowed ones among them."""

    name: str
    budget: int | None = Field(alias="monthly_budget_usd")
    max_gpus: int | None = None


class CostedPlan(_PlanPart):
    """The plan."""

    cloud: Platform
    environment: str
    region: str
    pools: tuple[CostedPool, ...]
    routes: tuple[CostedRoute, ...]
    teams: tuple[CostedTeam, ...]
    spending: SpendingPlan

    @model_validator(mode="after")
    def _shares_are_of_its_teams(self) -> CostedPlan:
        teams = {each.name for each in self.teams}
        for share in self.spending.shares:
            if share.team not in teams or share.gpus < 0:
                raise ValueError(f"spending.shares has {share.gpus} GPUs of {share.pool} for {share.team}; it is of teams, and 0 or more")
        return self


def costed(plan: Plan) -> CostedPlan:
    """What its cost depends on, of a plan; the same as of the file in which it is written down."""
    return CostedPlan.model_validate(plan_data(plan))


VERSION = 1
"""The form of the file. It changes when a program that reads the old form would misread the new one."""

_REMEDY = (
    "give what one of these writes: `flexspot preview --offline --stack NAME --plan-out FILE`, `pulumi preview --json --show-sames`, "
    "`pulumi stack export`."
)
_TOLD = 8


class _Cost(_PlanPart):
    """What of the cost is needed to work it out anew: the prices of the stack's own file."""

    own_prices: PriceFile | None = None


class PlanFile(_PlanPart):
    """A plan, the name of its stack, and the prices that it was made with besides the shipped ones."""

    version: Literal[1]
    stack: str
    plan: CostedPlan
    cost: _Cost | None

    def prices(self) -> PriceBook:
        """The shipped prices of its cloud, with those of the stack's own file before them."""
        book = prices_of(VOCABULARIES[self.plan.cloud].catalog)
        own = self.cost.own_prices if self.cost is not None else None
        return book if own is None else book.with_rows_of(own, "prices_file")


def read_json(path: Path, text: bytes | None = None) -> Any:
    """The JSON of a file, or of `text`, with what a command line may have printed before it. Raises ExplainedError for what is none."""
    try:
        content = path.read_bytes() if text is None else text
        return json.loads(content[max(content.find(b"{"), 0) :])
    except OSError as error:
        raise not_costable(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise not_costable(f"{path} is not JSON, or was cut off.", str(error)) from error


def read_plan_file(path: Path) -> PlanFile:
    """The plan of a file. Raises what `read_json` and `plan_of` do."""
    return plan_of(read_json(path), path)


def plan_of(written: Any, path: Path) -> PlanFile:
    """The plan that the JSON of a file is. Raises ExplainedError for what has another version, or is no plan."""
    fields = cast("dict[str, Any]", written) if isinstance(written, dict) else {}
    if "plan" not in fields or "stack" not in fields:
        raise not_costable(f"{path} is not a plan: it has no stack and plan.")
    if fields.get("version") != VERSION:
        raise not_costable(f"{path} is a plan of version {fields.get('version')!r}, and this program reads version {VERSION}.")
    try:
        return PlanFile.model_validate(fields)
    except ValidationError as error:
        told = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()]
        raise not_costable(f"{path} is not a plan: {len(told)} of its fields are not what they must be.", *told[:_TOLD]) from error


def not_costable(problem: str, *evidence: str) -> ExplainedError:
    """Why a file has no cost, with what to give instead."""
    return ExplainedError(problem, _REMEDY, exit_code=ExitCode.BAD_USAGE, evidence=evidence)


_SHIPPED = Path(__file__).with_name("expected_use.yaml")

Percent = Annotated[Decimal, Field(ge=0, le=100)]
Hours = Annotated[Decimal, Field(ge=0, le=HOURS_OF_A_MONTH)]
Gib = Annotated[int, Field(ge=0, le=1_000_000_000)]
LoadBalancers = Annotated[int, Field(ge=0, le=10_000)]


class ClassUse(Record):
    """How much of its pools a class uses, in percent of their ceilings, in `hours_per_month` hours of a month.

    `used_percent` is of the pools of the capacity type that stands first in its route, `later_percent` of those after it, and
    `by_capacity_type` of a type wherever it stands. Where classes share a pool, each is given an equal part of it.
    """

    used_percent: Percent
    later_percent: Percent
    by_capacity_type: dict[CapacityType, Percent] = Field(default_factory=dict)
    hours_per_month: Hours
    source: str = "given"

    def share(self, capacity_type: CapacityType, *, first: bool) -> Decimal:
        """The part of a ceiling that is used on average over the whole month, 0 to 1."""
        percent = self.by_capacity_type.get(capacity_type, self.used_percent if first else self.later_percent)
        return percent / 100 * self.hours_per_month / HOURS_OF_A_MONTH


class ExpectedUse(Record):
    """A whole month. `system_nodes_percent` is of the way from least to most, `other_work_percent` of the room; GiB and counts as named."""

    as_of: date
    sources: dict[str, Source]
    classes: dict[Name, ClassUse]
    other_classes: ClassUse
    system_nodes_percent: Percent
    other_work_percent: Percent
    bucket_gib: Gib
    efs_gib: Gib
    efs_read_gib: Gib
    efs_written_gib: Gib
    internet_gib: Gib
    nat_gib: Gib
    load_balancers: LoadBalancers

    @property
    def shipped_classes(self) -> frozenset[str]:
        """The classes of which something is expected where nobody says anything."""
        return frozenset(shipped_use().classes)

    def of_class(self, name: str) -> ClassUse:
        """The use of a class, or of any class of one's own."""
        return self.classes.get(name, self.other_classes)


@cache
def shipped_use() -> ExpectedUse:
    """What is expected where nobody says otherwise."""
    return read_records(_SHIPPED, ExpectedUse)


class OwnClassUse(Record):
    """What a file of one's own says of a class; the fields of ClassUse, each of which may be left out."""

    used_percent: Percent | None = None
    later_percent: Percent | None = None
    by_capacity_type: dict[CapacityType, Percent] | None = None
    hours_per_month: Hours | None = None


class OwnUse(Record):
    """A file of one's own; the fields of ExpectedUse, each of which may be left out."""

    classes: dict[Name, OwnClassUse] = Field(default_factory=dict)
    other_classes: OwnClassUse = OwnClassUse()
    system_nodes_percent: Percent | None = None
    other_work_percent: Percent | None = None
    bucket_gib: Gib | None = None
    efs_gib: Gib | None = None
    efs_read_gib: Gib | None = None
    efs_written_gib: Gib | None = None
    internet_gib: Gib | None = None
    nat_gib: Gib | None = None
    load_balancers: LoadBalancers | None = None


def read_use_file(path: Path) -> ExpectedUse:
    """The shipped expectations, with what a file of one's own says in their place, field by field.

    Raises ExplainedError for what is no such file, naming each field that is not understood.
    """
    try:
        own = read_records(path, OwnUse)
    except (DataFileError, OSError, UnicodeDecodeError) as error:
        remedy = "write it as flexspot/capacity/cost/expected_use.yaml is written, with only the fields that differ."
        raise ExplainedError(f"{path} cannot be used.", remedy, exit_code=ExitCode.BAD_USAGE, evidence=(str(error),)) from error
    shipped = shipped_use()
    changes = {name: value for name in own.model_fields_set - {"classes", "other_classes"} if (value := getattr(own, name)) is not None}
    other = _with(shipped.other_classes, own.other_classes)
    classes = shipped.classes | {name: _with(shipped.classes.get(name, other), each) for name, each in own.classes.items()}
    return shipped.model_copy(update={**changes, "classes": classes, "other_classes": other})


def _with(use: ClassUse, own: OwnClassUse) -> ClassUse:
    changes = {name: value for name in own.model_fields_set if (value := getattr(own, name)) is not None}
    return use.model_copy(update={**changes, "source": "given"}) if changes else use


NEAR_PERCENT = 80
"""The percentage of a budget from which a warning is sent; a budget may set its own."""


class BudgetStanding(StrEnum):
    """How an amount stands to a budget.

    EXCEEDED: above it, whatever has no known price. UNKNOWN: within it as far as prices are known, but what has none could take it above,
    at on-demand or at a price that has no bound. NEAR: within it whatever missing prices are, in its last part. WITHIN: below that.
    """

    EXCEEDED = "exceeded"
    UNKNOWN = "unknown"
    NEAR = "near"
    WITHIN = "within"


@dataclass(frozen=True)
class BudgetCheck:
    """One budget of `owner` (the environment's or a team's name), the amount held against it, and the prices missing in that.

    `at_most_usd` is what it may come to with those prices; None where one of them has no bound.
    """

    owner: str
    budget_usd: Decimal
    spent_usd: Decimal
    unknown: tuple[str, ...] = ()
    near_percent: int = NEAR_PERCENT
    at_most_usd: Decimal | None = None

    @property
    def spent_percent(self) -> Decimal:
        """How much of the budget that is."""
        return self.spent_usd * 100 / self.budget_usd

    @property
    def uncertain(self) -> bool:
        """Whether missing prices decide if the budget is kept."""
        return bool(self.unknown) and (self.at_most_usd is None or self.at_most_usd > self.budget_usd) and self.spent_usd <= self.budget_usd

    @property
    def near(self) -> bool:
        """Whether at least `near_percent` of the budget may be spent, or more than all of it."""
        return max(self.spent_usd, self.at_most_usd or self.spent_usd) * 100 >= self.budget_usd * self.near_percent

    @property
    def standing(self) -> BudgetStanding:
        """See Standing; a budget that is spent to the last cent is kept."""
        if self.spent_usd > self.budget_usd:
            return BudgetStanding.EXCEEDED
        if self.uncertain:
            return BudgetStanding.UNKNOWN
        return BudgetStanding.NEAR if self.near else BudgetStanding.WITHIN

"""The parts of a plan that determine its cost, the prices of its machines, and the expected use in a month."""

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
    """US dollars an hour of one machine, GPUs included. None means not known, which does not mean free."""

    on_demand_usd_per_hour: Decimal
    spot_usd_per_hour: Decimal | None = None
    flex_start_usd_per_hour: Decimal | None = None
    reserved_usd_per_hour: Decimal | None = None
    used: dict[CapacityType, PriceUsed] = field(default_factory=dict["CapacityType", "PriceUsed"], compare=False)
    """Source and day of each price from the book. Prices from the user are not in it."""

    @property
    def of_reservations_usd_per_hour(self) -> Decimal:
        """Price of a reserved machine: the contract's, or the on-demand price."""
        return self.reserved_usd_per_hour or self.on_demand_usd_per_hour


def machine_prices(book: PriceBook, machine: str, region: str) -> MachinePrices:
    """Return the book's prices of a machine.

    Raises ExplainedError if it has no on-demand price, which everything else is compared with.
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
    """A frozen part of a plan. Other fields of the plan or its file are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class CostedCeiling(_PlanPart):
    """The most of a pool, in GPUs, with the vCPU and memory (MiB) that belong to them."""

    gpus: int = Field(ge=1)
    vcpu: int = Field(default=0, ge=0)
    memory_mib: int = Field(default=0, ge=0)


class CostedPool(_PlanPart):
    """A pool. `machines` begins with the requested one; nodes and GPUs as in PoolPlan."""

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
    # Files from before the name change have "rungs".
    pools: tuple[CostedRoutePool, ...] = Field(validation_alias=AliasChoices("pools", "rungs"))


class CostedTeam(_PlanPart):
    """A team, its budget in US dollars a month, and the most GPUs that it may hold at once, including borrowed ones."""

    name: str
    budget: int | None = Field(alias="monthly_budget_usd")
    max_gpus: int | None = None


class CostedPlan(_PlanPart):
    """The parts of a plan that determine its cost."""

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
    """Return the parts of a plan that determine its cost, as they would be read from its file."""
    return CostedPlan.model_validate(plan_data(plan))


VERSION = 1
"""Version of the file's form. It changes when a program for the old form would misread the new one."""

_REMEDY = (
    "give what one of these writes: `flexspot preview --offline --stack NAME --plan-out FILE`, `pulumi preview --json --show-sames`, "
    "`pulumi stack export`."
)
_MOST_ERRORS = 8


class _Cost(_PlanPart):
    """The part of the cost that is needed to recalculate it: the prices of the stack's own file."""

    own_prices: PriceFile | None = None


class PlanFile(_PlanPart):
    """A plan, the name of its stack, and its prices other than the shipped ones."""

    version: Literal[1]
    stack: str
    plan: CostedPlan
    cost: _Cost | None

    def prices(self) -> PriceBook:
        """Return the shipped prices of its cloud, overridden by those of the stack's own file."""
        book = prices_of(VOCABULARIES[self.plan.cloud].catalog)
        own = self.cost.own_prices if self.cost is not None else None
        return book if own is None else book.with_rows_of(own, "prices_file")


def read_json(path: Path, text: bytes | None = None) -> Any:
    """Return the JSON of a file, or of `text`, after any printed lines. Raises ExplainedError for invalid JSON."""
    try:
        content = path.read_bytes() if text is None else text
        return json.loads(content[max(content.find(b"{"), 0) :])
    except OSError as error:
        raise not_costable(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise not_costable(f"{path} is not JSON, or was cut off.", str(error)) from error


def read_plan_file(path: Path) -> PlanFile:
    """Return the plan of a file. Raises what `read_json` and `plan_of` do."""
    return plan_of(read_json(path), path)


def plan_of(written: Any, path: Path) -> PlanFile:
    """Return the plan in a file's JSON. Raises ExplainedError for another version, and for JSON that is not a plan."""
    fields = cast("dict[str, Any]", written) if isinstance(written, dict) else {}
    if "plan" not in fields or "stack" not in fields:
        raise not_costable(f"{path} is not a plan: it has no stack and plan.")
    if fields.get("version") != VERSION:
        raise not_costable(f"{path} is a plan of version {fields.get('version')!r}, and this program reads version {VERSION}.")
    try:
        return PlanFile.model_validate(fields)
    except ValidationError as error:
        errors = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()]
        raise not_costable(
            f"{path} is not a plan: {len(errors)} of its fields are not what they must be.", *errors[:_MOST_ERRORS]
        ) from error


def not_costable(problem: str, *evidence: str) -> ExplainedError:
    """Return the error for a file without a cost, with the commands that write one."""
    return ExplainedError(problem, _REMEDY, exit_code=ExitCode.BAD_USAGE, evidence=evidence)


_SHIPPED = Path(__file__).with_name("expected_use.yaml")

Percent = Annotated[Decimal, Field(ge=0, le=100)]
Hours = Annotated[Decimal, Field(ge=0, le=HOURS_OF_A_MONTH)]
Gib = Annotated[int, Field(ge=0, le=1_000_000_000)]
LoadBalancers = Annotated[int, Field(ge=0, le=10_000)]


class ClassUse(Record):
    """Share of its pools that a class uses, in percent of their ceilings, in `hours_per_month` hours of a month.

    Classes that share a pool get equal parts of it.
    """

    used_percent: Percent
    """Of the pools with the first capacity type of its route."""
    later_percent: Percent
    """Of the pools with later capacity types."""
    by_capacity_type: dict[CapacityType, Percent] = Field(default_factory=dict)
    """Of the pools with a capacity type, wherever it is in the route."""
    hours_per_month: Hours
    source: str = "given"

    def share(self, capacity_type: CapacityType, *, first: bool) -> Decimal:
        """Return the share of a ceiling that is used on average over the whole month, 0 to 1."""
        percent = self.by_capacity_type.get(capacity_type, self.used_percent if first else self.later_percent)
        return percent / 100 * self.hours_per_month / HOURS_OF_A_MONTH


class ExpectedUse(Record):
    """The expected use of a whole month; amounts in GiB and counts as named."""

    as_of: date
    sources: dict[str, Source]
    classes: dict[Name, ClassUse]
    other_classes: ClassUse
    system_nodes_percent: Percent
    """Percent of the way from the least to the most nodes."""
    other_work_percent: Percent
    """Percent of the room for other work."""
    bucket_gib: Gib
    efs_gib: Gib
    efs_read_gib: Gib
    efs_written_gib: Gib
    internet_gib: Gib
    nat_gib: Gib
    load_balancers: LoadBalancers

    @property
    def shipped_classes(self) -> frozenset[str]:
        """Classes with an expected use by default."""
        return frozenset(shipped_use().classes)

    def of_class(self, name: str) -> ClassUse:
        """Return the use of a class; user-defined classes share one."""
        return self.classes.get(name, self.other_classes)


@cache
def shipped_use() -> ExpectedUse:
    """Return the default expected use."""
    return read_records(_SHIPPED, ExpectedUse)


class OwnClassUse(Record):
    """The use of a class in a user's file: the fields of ClassUse, all optional."""

    used_percent: Percent | None = None
    later_percent: Percent | None = None
    by_capacity_type: dict[CapacityType, Percent] | None = None
    hours_per_month: Hours | None = None


class OwnUse(Record):
    """A user's file: the fields of ExpectedUse, all optional."""

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
    """Return the shipped expectations, overridden field by field by a user's file.

    Raises ExplainedError for an invalid file, naming each unknown field.
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
    """Relation of an amount to a budget.

    EXCEEDED: above it, whatever is missing. UNKNOWN: within it by known prices, but unknown ones could exceed it, at on-demand or at a
    price without a bound. NEAR: in its last part, whatever is missing. WITHIN: below that.
    """

    EXCEEDED = "exceeded"
    UNKNOWN = "unknown"
    NEAR = "near"
    WITHIN = "within"


@dataclass(frozen=True)
class BudgetCheck:
    """One budget of `owner` (the environment's or a team's name), the amount compared with it, and the missing prices.

    `at_most_usd` is the upper bound of the amount with those prices; None if one of them has no bound.
    """

    owner: str
    budget_usd: Decimal
    spent_usd: Decimal
    unknown: tuple[str, ...] = ()
    near_percent: int = NEAR_PERCENT
    at_most_usd: Decimal | None = None

    @property
    def spent_percent(self) -> Decimal:
        """Spent part of the budget in percent."""
        return self.spent_usd * 100 / self.budget_usd

    @property
    def uncertain(self) -> bool:
        """True if missing prices decide whether the budget is kept."""
        return bool(self.unknown) and (self.at_most_usd is None or self.at_most_usd > self.budget_usd) and self.spent_usd <= self.budget_usd

    @property
    def near(self) -> bool:
        """True if at least `near_percent` of the budget may be spent."""
        return max(self.spent_usd, self.at_most_usd or self.spent_usd) * 100 >= self.budget_usd * self.near_percent

    @property
    def standing(self) -> BudgetStanding:
        """Standing of the amount; a budget that is spent to the last cent is kept."""
        if self.spent_usd > self.budget_usd:
            return BudgetStanding.EXCEEDED
        if self.uncertain:
            return BudgetStanding.UNKNOWN
        return BudgetStanding.NEAR if self.near else BudgetStanding.WITHIN

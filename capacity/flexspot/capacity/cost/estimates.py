"""Estimates for each method of getting capacity for a job: cost, end and risk, with the rules that exclude methods."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, model_validator

from flexspot.capacity.catalog.capacity_type import CapacityType, facts_of
from flexspot.capacity.catalog.data_files import Record, SourcedFile, read_records
from flexspot.capacity.catalog.machines import Vendor, machines_of
from flexspot.capacity.cost.spot_arithmetic import (
    SpotConditions,
    SpotRun,
    best_spot_run,
    gang_interruptions_per_hour,
    late_share,
    on_demand_hours,
    played_runs,
    runs_worth_playing,
    spot_run,
)
from flexspot.capacity.values.quantities import SECONDS_OF_AN_HOUR, exact, usd_of_hours

if TYPE_CHECKING:
    from flexspot.capacity.cost.costed_plan import MachinePrices


class Fact(StrEnum):
    """A condition on a job. The owner states the first group, the second is calculated.

    RESUMES: it continues from a checkpoint, or consists of pieces that can be repeated. GANG: it needs several nodes at once. DEADLINE: it
    has one. STEADY: it runs around the clock for a year. DATA_ELSEWHERE: its data is in another region.

    SPOT_PAYS: a run on Spot, overhead included, costs less than on-demand. It is unknown without a Spot price, and then decides nothing.
    LATE_ON_SPOT: more runs on Spot would be late than is allowed. SLACK_FOR_HYBRID: there is time before the deadline in which Spot can be
    tried. FLEX_START_OFFERED: DWS offers this machine. FITS_FLEX_START: the work is no longer than DWS lets a node run.
    CAN_WAIT_FOR_FLEX_START, CAN_WAIT_FOR_SPOT: the expected wait violates neither start nor deadline.
    """

    USER_FACING = "user_facing"
    INTERACTIVE = "interactive"
    INTERRUPTIBLE = "interruptible"
    RESUMES = "resumes"
    GANG = "gang"
    DEADLINE = "deadline"
    STEADY = "steady"
    SHARED = "shared"
    GUARANTEED = "guaranteed"
    DATA_ELSEWHERE = "data_elsewhere"
    SPOT_PAYS = "spot_pays"
    LATE_ON_SPOT = "late_on_spot"
    SLACK_FOR_HYBRID = "slack_for_hybrid"
    FLEX_START_OFFERED = "flex_start_offered"
    FITS_FLEX_START = "fits_flex_start"
    CAN_WAIT_FOR_FLEX_START = "can_wait_for_flex_start"
    CAN_WAIT_FOR_SPOT = "can_wait_for_spot"


class Method(StrEnum):
    """Method of getting capacity for a job: the capacity types, and HYBRID, which is Spot until on-demand is needed to end in time."""

    SPOT = "spot"
    HYBRID = "hybrid"
    FLEX_START = "flex-start"
    QUEUED = "queued"
    RESERVED = "reserved"
    ON_DEMAND = "on-demand"


class AdviceRule(Record):
    """If all facts in `when` hold, the methods in `excludes` are out, `advises` is recommended, and `because` is the reason."""

    name: str
    when: dict[Fact, bool]
    excludes: tuple[Method, ...] = ()
    advises: str | None = None
    because: str
    source: str

    def holds(self, facts: dict[Fact, bool | None]) -> bool:
        """Return whether every required fact has the required value. An unknown fact (None) matches no requirement."""
        return all(facts[fact] is value for fact, value in self.when.items())


class Assumption(Record):
    """A default figure."""

    value: Decimal
    source: str


class Assumptions(Record):
    """The assumed values; durations in the units of their names."""

    interruptions_per_node_hour: Assumption
    gang_share_taken: Assumption
    restart_minutes: Assumption
    spot_wait_hours: Assumption
    flex_start_wait_hours: Assumption
    flex_start_discount_percent_at_most: Assumption
    usd_per_gib_between_regions: Assumption


class AdviceRules(SourcedFile):
    """The file of the rules. On-demand is never excluded: it remains when nothing else does."""

    as_of: date
    assumptions: Assumptions
    rules: tuple[AdviceRule, ...]

    @model_validator(mode="after")
    def _names_differ_and_on_demand_stays(self) -> AdviceRules:
        names = [rule.name for rule in self.rules]
        if len(set(names)) < len(names):
            raise ValueError("two rules have the same name")
        if wrong := [rule.name for rule in self.rules if Method.ON_DEMAND in rule.excludes]:
            raise ValueError(f"{', '.join(wrong)}: on-demand is never excluded")
        return self


@cache
def shipped_rules() -> AdviceRules:
    """Return the rules of the package."""
    return read_records(Path(__file__).with_name("advice_rules.yaml"), AdviceRules)


Hours = Annotated[float, Field(gt=0, le=100_000, allow_inf_nan=False)]
Wait = Annotated[float, Field(ge=0, le=100_000, allow_inf_nan=False)]
Usd = Annotated[Decimal, Field(gt=0)]


class JobNeeds(Record):
    """One job. None means the value of the rules' assumptions, or not applicable.

    Prices are for one machine and hour.
    """

    cloud: Vendor
    region: str
    machine: str
    work_hours: Hours
    """Length on `nodes` machines without interruptions."""
    nodes: Annotated[int, Field(ge=1, le=100_000)] = 1
    interruptible: bool = True
    """True if it may be stopped at any time and started again."""
    checkpoint_minutes: Wait | None = None
    """Pause of the work for a checkpoint; None if it saves none."""
    piece_hours: Hours | None = None
    """Longest piece of work that can be repeated alone (a trial of a sweep, a batch), which needs no checkpoint."""
    user_facing: bool = False
    """True if users wait for its answers."""
    interactive: bool = False
    """True if a user works in it from time to time, as in a notebook."""
    start_within_hours: Wait | None = None
    """Latest start, from now."""
    deadline_hours: Hours | None = None
    """Latest end, from now."""
    late_share_allowed: Annotated[float, Field(ge=0, lt=1)] = 0.05
    steady: bool = False
    """True if it runs around the clock for a year."""
    shared: bool = False
    """True if several teams want the capacity."""
    guaranteed: bool = False
    """True if the team must be sure of its share."""
    data_region: str | None = None
    """Region of its data."""
    data_gib: Annotated[int, Field(ge=0)] = 0
    """Amount of data that each start reads."""
    interruptions_per_node_hour: Annotated[float, Field(ge=0, le=60, allow_inf_nan=False)] | None = None
    """Rate of one node. The rate of a gang follows from it by `gang_share_taken`."""
    gang_share_taken: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = None
    """Share of a gang that an interruption takes (see spot_arithmetic; 0: nodes are lost one by one)."""
    gang_interruptions_per_hour: Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False)] | None = None
    """Measured rate of all nodes together; overrides the two fields above."""
    restart_minutes: Wait | None = None
    spot_wait_hours: Wait | None = None
    """Expected wait."""
    flex_start_wait_hours: Wait | None = None
    """Expected wait."""
    on_demand_usd_per_hour: Usd | None = None
    spot_usd_per_hour: Usd | None = None
    flex_start_usd_per_hour: Usd | None = None

    @model_validator(mode="after")
    def _the_deadline_leaves_room_for_the_work(self) -> JobNeeds:
        if self.deadline_hours is not None and self.deadline_hours < self.work_hours:
            raise ValueError(
                f"deadline_hours {self.deadline_hours} is before the {self.work_hours} hours of work are done; "
                "move the deadline, or use more nodes and give the shorter work_hours"
            )
        return self


_MINUTES = 60
_HYBRID_RUNS = 1000


@dataclass(frozen=True)
class Unpriced:
    """The part of a method without a known price: `node_hours` on Spot. `other_usd` is the rest of its cost."""

    node_hours: Decimal
    other_usd: Decimal

    def at(self, usd_per_hour: Decimal) -> Decimal:
        """Return the cost of the method at this price of a node and hour."""
        return usd_per_hour * self.node_hours + self.other_usd

    def break_even_usd_per_hour(self, usd: Decimal) -> Decimal:
        """Return the price of a node and hour at which the method costs `usd`. 0 or less if it costs more at any price."""
        return (usd - self.other_usd) / self.node_hours


@dataclass(frozen=True)
class Estimate:
    """The figures of one method.

    `usd_least` and `usd_most` differ where a price is known only within bounds. Both are None without a known price, or without an end.
    `wait_hours` is the time until the first start, `finish_hours` until the expected end, both from now. `late_share` is the share of runs
    that would miss the deadline; None without one. `unpriced` exists where a price would complete the cost.
    """

    method: Method
    usd_least: Decimal | None
    usd_most: Decimal | None
    wait_hours: float
    finish_hours: float
    late_share: float | None = None
    unpriced: Unpriced | None = None


@dataclass(frozen=True)
class SpotPlan:
    """The job on Spot: conditions, interval of work between durable states, and expected run."""

    conditions: SpotConditions
    interval_hours: float
    run: SpotRun


@dataclass(frozen=True)
class Estimates:
    """The estimates of all methods for one job.

    A hybrid requires a deadline and possible Spot, flex-start requires DWS. Spot is included even without a price: its end and lateness do
    not depend on one. `moving_usd` is the cost per start of reading data from another region.
    """

    spot_plan: SpotPlan
    by_method: dict[Method, Estimate]
    moving_usd: Decimal
    slack_for_hybrid: bool
    flex_start_limit_hours: float | None


def spot_plan(needs: JobNeeds) -> SpotPlan:
    """Return the job's best option on Spot: checkpoints at the best interval, its own pieces, or a new start after each interruption."""
    assumed = shipped_rules().assumptions

    def or_assumed(given: float | None, value: Decimal) -> float:
        return float(value) if given is None else given

    gang = is_gang(needs)
    of_node = or_assumed(needs.interruptions_per_node_hour, assumed.interruptions_per_node_hour.value)
    taken = or_assumed(needs.gang_share_taken, assumed.gang_share_taken.value)
    if gang and needs.gang_interruptions_per_hour is not None:
        of_node = needs.gang_interruptions_per_hour / gang_interruptions_per_hour(1, needs.nodes, taken)
    conditions = SpotConditions(
        of_node,
        nodes=needs.nodes if gang else 1,
        checkpoint_hours=(needs.checkpoint_minutes or 0) / _MINUTES,
        restart_hours=or_assumed(needs.restart_minutes, assumed.restart_minutes.value) / _MINUTES,
        wait_hours=or_assumed(needs.spot_wait_hours, assumed.spot_wait_hours.value),
        share_taken=taken,
    )
    if needs.checkpoint_minutes is not None:
        return SpotPlan(conditions, *best_spot_run(needs.work_hours, conditions))
    interval = min(needs.piece_hours or needs.work_hours, needs.work_hours)
    return SpotPlan(conditions, interval, spot_run(needs.work_hours, interval, conditions))


def is_gang(needs: JobNeeds) -> bool:
    """Return whether all nodes are needed at once. Pieces that can be repeated alone need only their own nodes."""
    return needs.nodes > 1 and needs.piece_hours is None


def estimates(needs: JobNeeds, prices: MachinePrices) -> Estimates:
    """Return the estimates of all methods for this job at these prices."""
    assumed = shipped_rules().assumptions
    plan = spot_plan(needs)
    elsewhere = needs.data_region is not None and needs.data_region != needs.region
    moving = needs.data_gib * assumed.usd_per_gib_between_regions.value if elsewhere else Decimal(0)
    late = None if needs.deadline_hours is None else 0.0
    stays = {Method.ON_DEMAND: prices.on_demand_usd_per_hour, Method.RESERVED: prices.of_reservations_usd_per_hour}
    usd = {each: usd_of_hours(price, needs.work_hours, needs.nodes) + moving for each, price in stays.items()}
    found = {each: Estimate(each, usd[each], usd[each], 0.0, needs.work_hours, late) for each in stays}
    found[Method.SPOT] = _spot(needs, plan, prices.spot_usd_per_hour, moving)
    slack = needs.deadline_hours is not None and _has_slack(needs.deadline_hours, needs.work_hours, plan)
    if needs.deadline_hours is not None and slack and needs.interruptible and plan.run.ends:
        found[Method.HYBRID] = _hybrid(needs, plan, prices, needs.deadline_hours, moving)
    limit = flex_start_limit_hours(needs)
    if limit is not None:
        flex_start = _flex_start(needs, prices, limit, moving)
        found |= {each: Estimate(each, *flex_start) for each in (Method.FLEX_START, Method.QUEUED)}
    return Estimates(plan, found, moving, slack, limit)


def flex_start_limit_hours(needs: JobNeeds) -> float | None:
    """Return the most hours that DWS runs this machine. None if DWS does not offer it."""
    machine = machines_of(needs.cloud).get(needs.machine)
    facts = facts_of("gke").get(CapacityType.FLEX_START) if needs.cloud is Vendor.GCP else None
    if machine is None or not machine.flex_start or facts is None or facts.max_run_seconds is None:
        return None
    return facts.max_run_seconds / SECONDS_OF_AN_HOUR


def _spot(needs: JobNeeds, plan: SpotPlan, usd_per_hour: Decimal | None, moving: Decimal) -> Estimate:
    run, wait = plan.run, plan.conditions.wait_hours
    if not run.ends:
        return Estimate(Method.SPOT, None, None, wait, math.inf, None if needs.deadline_hours is None else 1.0)
    cost = Unpriced(exact(run.billed_hours) * needs.nodes, moving * (1 + exact(run.interruptions)))
    late = None
    if needs.deadline_hours is not None:
        late = late_share(needs.work_hours, plan.interval_hours, plan.conditions, needs.deadline_hours - wait)
    return _priced(Method.SPOT, cost, usd_per_hour, wait, wait + run.wall_hours, late)


def _priced(  # noqa: PLR0913, PLR0917 -- the fields of an estimate
    method: Method, cost: Unpriced, usd_per_hour: Decimal | None, wait_hours: float, finish_hours: float, late: float | None
) -> Estimate:
    if usd_per_hour is None and cost.node_hours:
        return Estimate(method, None, None, wait_hours, finish_hours, late, cost)
    usd = cost.at(usd_per_hour or Decimal(0))
    return Estimate(method, usd, usd, wait_hours, finish_hours, late)


def _has_slack(deadline_hours: float, work_hours: float, plan: SpotPlan) -> bool:
    # Enough to try one segment on Spot, lose it all, and still do everything on on-demand.
    segment = min(plan.interval_hours, work_hours) + plan.conditions.checkpoint_hours
    after = plan.conditions.wait_hours + segment + on_demand_hours(work_hours, plan.interval_hours, plan.conditions)
    return after <= deadline_hours


def _hybrid(needs: JobNeeds, plan: SpotPlan, prices: MachinePrices, deadline_hours: float, moving: Decimal) -> Estimate:
    wait = plan.conditions.wait_hours
    count = runs_worth_playing(plan.run, plan.interval_hours, _HYBRID_RUNS)
    runs = played_runs(needs.work_hours, plan.interval_hours, plan.conditions, runs=count, deadline_hours=deadline_hours - wait)

    def mean(total: float) -> float:
        return total / len(runs)

    starts = exact(1 + mean(sum(run.interruptions for run in runs)))
    on_demand_hours = mean(math.fsum(run.on_demand_hours for run in runs))
    cost = Unpriced(
        node_hours=exact(mean(math.fsum(run.spot_hours for run in runs))) * needs.nodes,
        other_usd=usd_of_hours(prices.on_demand_usd_per_hour, on_demand_hours, needs.nodes) + moving * starts,
    )
    finish = wait + mean(math.fsum(run.wall_hours for run in runs))
    late = mean(sum(run.wall_hours > deadline_hours - wait + 1e-9 for run in runs))
    return _priced(Method.HYBRID, cost, prices.spot_usd_per_hour, wait, finish, late)


def _flex_start(
    needs: JobNeeds, prices: MachinePrices, limit_hours: float, moving: Decimal
) -> tuple[Decimal, Decimal, float, float, float | None]:
    """Return least and most cost, wait, finish and the share of late runs. The wait is the expected one, without its spread."""
    assumed = shipped_rules().assumptions
    wait = float(assumed.flex_start_wait_hours.value) if needs.flex_start_wait_hours is None else needs.flex_start_wait_hours
    turns = math.ceil(needs.work_hours / limit_hours - 1e-9)
    finish = turns * wait + needs.work_hours
    if prices.flex_start_usd_per_hour is None:
        off = assumed.flex_start_discount_percent_at_most.value / 100
        least, most = prices.on_demand_usd_per_hour * (1 - off), prices.on_demand_usd_per_hour
    else:
        least = most = prices.flex_start_usd_per_hour
    late = None if needs.deadline_hours is None else float(finish > needs.deadline_hours)
    bounds = [usd_of_hours(each, needs.work_hours, needs.nodes) + moving * turns for each in (least, most)]
    return bounds[0], bounds[1], wait, finish, late

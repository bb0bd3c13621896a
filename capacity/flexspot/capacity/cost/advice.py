"""Advice on getting capacity for one job or several: rules exclude what cannot work, cost decides among the rest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR, Decimal
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from flexspot.capacity.catalog.data_files import Record
from flexspot.capacity.catalog.price_book import HOURS_OF_A_MONTH
from flexspot.capacity.cost.estimates import AdviceRule, Estimate, Estimates, Fact, JobNeeds, Method, estimates, is_gang, shipped_rules
from flexspot.capacity.cost.spot_arithmetic import (
    break_even_interruptions_per_node_hour,
    break_even_usd_per_hour,
    gang_interruptions_per_hour,
    usd_per_useful_hour,
    value_of_an_hour_sooner,
)
from flexspot.capacity.values.names import Name  # noqa: TC001 -- pydantic reads it at run time, of a class that is no direct child of Record
from flexspot.capacity.values.quantities import SECONDS_OF_AN_HOUR, cents, exact, saved_percent, usd_of_hours

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flexspot.capacity.cost.costed_plan import MachinePrices


_PRICE_STEP = Decimal("0.0001")
"""Clouds list prices an hour to four decimals."""

# Tie-breakers by reliability: a reservation exists, and DWS does not take its capacity back. On-demand comes last.
_PREFERENCE = (Method.RESERVED, Method.QUEUED, Method.FLEX_START, Method.SPOT, Method.HYBRID, Method.ON_DEMAND)


@dataclass(frozen=True)
class Option:
    """A method with its figures, and the rules that exclude it. Empty if it is possible."""

    estimate: Estimate
    excluded_by: tuple[AdviceRule, ...]


@dataclass(frozen=True)
class Undecided:
    """A possible method without a known price. Below `usd_per_hour` for a node it costs less than the chosen one."""

    method: Method
    usd_per_hour: Decimal


@dataclass(frozen=True)
class Advice:
    """The answer for one job.

    A method without a known price is neither chosen nor excluded for that: it is `undecided`. The answer holds only as far as prices are
    known.
    """

    method: Method
    options: tuple[Option, ...]
    """The chosen method first, then the other possible ones by cost, then the excluded."""
    reasons: tuple[str, ...]
    """Reasons for the choice."""
    practices: tuple[str, ...]
    """Practices that go with it."""
    arithmetic: tuple[str, ...]
    """Figures behind it."""
    facts: dict[Fact, bool | None]
    undecided: tuple[Undecided, ...] = ()

    @property
    def chosen(self) -> Estimate:
        """Figures of the chosen method."""
        return self.options[0].estimate


def advise(needs: JobNeeds, prices: MachinePrices) -> Advice:
    """Return the advice for a job at these prices. Prices in the job itself take precedence."""
    prices = replace(
        prices,
        on_demand_usd_per_hour=needs.on_demand_usd_per_hour or prices.on_demand_usd_per_hour,
        spot_usd_per_hour=needs.spot_usd_per_hour or prices.spot_usd_per_hour,
        flex_start_usd_per_hour=needs.flex_start_usd_per_hour or prices.flex_start_usd_per_hour,
    )
    found = estimates(needs, prices)
    facts = facts_of_job(needs, found)
    rules = [rule for rule in shipped_rules().rules if rule.holds(facts)]
    options = [Option(each, tuple(rule for rule in rules if method in rule.excludes)) for method, each in found.by_method.items()]
    options.sort(key=_rank)
    chosen = options[0].estimate
    reasons = [*_exclusions(rules), *(rule.because for rule in rules if rule.advises is None and not rule.excludes)]
    reasons.append(_why(chosen, options))
    undecided = tuple(_undecided(chosen, options))
    reasons += [_open_question(needs, chosen, each) for each in undecided]
    practices = tuple(f"{rule.advises}: {rule.because}" for rule in rules if rule.advises)
    arithmetic = tuple(_arithmetic(needs, prices, found, chosen))
    return Advice(chosen.method, tuple(options), tuple(reasons), practices, arithmetic, facts, undecided)


def _undecided(chosen: Estimate, options: list[Option]) -> Iterator[Undecided]:
    for option in options:
        unpriced = option.estimate.unpriced
        if unpriced is not None and not option.excluded_by:
            # Rounded down, so that the statement is true at every lower price.
            limit = unpriced.break_even_usd_per_hour(_usd(chosen)).quantize(_PRICE_STEP, ROUND_FLOOR)
            if limit > 0:
                yield Undecided(option.estimate.method, limit)


def _open_question(needs: JobNeeds, chosen: Estimate, question: Undecided) -> str:
    return (
        f"{question.method} is not decided: no Spot price of {needs.machine} in {needs.region} is known; below "
        f"{question.usd_per_hour} USD an hour for a Spot node it costs less than {chosen.method}"
    )


def facts_of_job(needs: JobNeeds, found: Estimates) -> dict[Fact, bool | None]:
    """Return this job's facts, which rules test. A fact is None if a missing price leaves it undecided."""
    spot, on_demand = found.by_method[Method.SPOT], found.by_method[Method.ON_DEMAND]
    flex_start = found.by_method.get(Method.FLEX_START)
    limit, start = found.flex_start_limit_hours, needs.start_within_hours
    late = spot.late_share is not None and spot.late_share > needs.late_share_allowed
    return {
        Fact.USER_FACING: needs.user_facing,
        Fact.INTERACTIVE: needs.interactive,
        Fact.INTERRUPTIBLE: needs.interruptible,
        Fact.RESUMES: needs.checkpoint_minutes is not None or needs.piece_hours is not None,
        Fact.GANG: is_gang(needs),
        Fact.DEADLINE: needs.deadline_hours is not None,
        Fact.STEADY: needs.steady,
        Fact.SHARED: needs.shared,
        Fact.GUARANTEED: needs.guaranteed,
        Fact.DATA_ELSEWHERE: bool(found.moving_usd),
        Fact.SPOT_PAYS: _spot_pays(spot, on_demand),
        Fact.LATE_ON_SPOT: late,
        Fact.SLACK_FOR_HYBRID: found.slack_for_hybrid or needs.deadline_hours is None,
        Fact.FLEX_START_OFFERED: limit is not None,
        Fact.FITS_FLEX_START: limit is None or needs.work_hours <= limit,
        Fact.CAN_WAIT_FOR_FLEX_START: flex_start is None
        or (not flex_start.late_share and (start is None or flex_start.wait_hours <= start)),
        Fact.CAN_WAIT_FOR_SPOT: start is None or found.spot_plan.conditions.wait_hours <= start,
    }


def _spot_pays(spot: Estimate, on_demand: Estimate) -> bool | None:
    if spot.unpriced is None:
        return _usd(spot) < _usd(on_demand)
    # The costs other than Spot's price can decide alone: then no price makes Spot pay.
    return False if spot.unpriced.break_even_usd_per_hour(_usd(on_demand)) <= 0 else None


def _usd(estimate: Estimate) -> Decimal:
    """Return the most that it can cost, which decisions use."""
    return Decimal("Infinity") if estimate.usd_most is None else estimate.usd_most


def _rank(option: Option) -> tuple[bool, Decimal, int]:
    return bool(option.excluded_by), _usd(option.estimate), _PREFERENCE.index(option.estimate.method)


def _and(methods: tuple[Method, ...]) -> str:
    return " and ".join(", ".join(methods).rsplit(", ", 1))


def _exclusions(rules: list[AdviceRule]) -> list[str]:
    """Return each excluded method with its first excluding rule. Rules are in the order of their weight."""
    listed: set[Method] = set()
    lines: list[str] = []
    for rule in rules:
        if methods := tuple(each for each in rule.excludes if each not in listed):
            lines.append(f"{_and(methods)} {'is' if len(methods) == 1 else 'are'} out: {rule.because}")
            listed |= set(methods)
    return lines


def _why(chosen: Estimate, options: list[Option]) -> str:
    left = [each.estimate for each in options[1:] if not each.excluded_by]
    others = [each for each in left if each.unpriced is None]
    if not others:
        return f"{chosen.method} is the one that is left whose price is known" if left else f"{chosen.method} is what is left"
    on_demand = next((each for each in others if each.method is Method.ON_DEMAND), None)
    if on_demand is None:
        return f"{chosen.method} costs least of what is left"
    if chosen.usd_least == _usd(on_demand):
        return f"{chosen.method} costs what on-demand costs, and is surer to be there"
    if chosen.usd_least != chosen.usd_most:
        most = saved_percent(chosen.usd_least or Decimal(0), _usd(on_demand))
        return f"{chosen.method} costs no more than on-demand, and up to {most:.0f} % less; its price is not known here"
    return f"{chosen.method} costs least of what is left: {saved_percent(_usd(chosen), _usd(on_demand)):.0f} % less than on-demand"


def _arithmetic(needs: JobNeeds, prices: MachinePrices, found: Estimates, chosen: Estimate) -> list[str]:
    lines = _spot_arithmetic(needs, prices, found) if needs.interruptible and not needs.user_facing else []
    list_price = found.by_method[Method.ON_DEMAND]
    later = chosen.finish_hours - list_price.finish_hours
    value = value_of_an_hour_sooner(_usd(chosen), _usd(list_price), later) if chosen.usd_most is not None else None
    if value is not None and value > 0:
        lines.append(f"on-demand would end {later:.1f} h sooner; it is the better one if an hour is worth more than {cents(value)} USD")
    if found.moving_usd:
        lines.append(f"each start moves {needs.data_gib} GiB between regions: {cents(found.moving_usd)} USD")
    return lines


def _spot_arithmetic(needs: JobNeeds, prices: MachinePrices, found: Estimates) -> list[str]:
    plan, price, on_demand = found.spot_plan, prices.spot_usd_per_hour, prices.on_demand_usd_per_hour
    run, rate = plan.run, plan.conditions.interruptions_per_hour
    if not run.ends:
        return [f"on Spot an interruption is expected every {1 / rate:.1f} h: as it is, it would practically never end"]
    lines = [f"on Spot: an interruption every {1 / rate:.1f} h, {run.interruptions:.1f} in all" if rate else "on Spot: no interruptions"]
    if needs.checkpoint_minutes is not None:
        lines.append(f"checkpoint every {plan.interval_hours * 60:.0f} minutes of work, the best interval for that")
    more = f"{run.overhead_share * 100:.1f} % more billed hours"
    effective = None if price is None else usd_per_useful_hour(price, run)
    if price is None or effective is None:
        worth = cents(break_even_usd_per_hour(on_demand, run))
        return [*lines, f"{more}: Spot is cheaper than on-demand below {worth} USD an hour; no price is known: give it with --spot-usd"]
    lines.append(f"{more}: {cents(effective)} USD for a useful hour of a node, not {cents(price)}")
    if needs.checkpoint_minutes is not None:
        of_gang = gang_interruptions_per_hour(1, plan.conditions.nodes, plan.conditions.share_taken)
        limit = of_gang * break_even_interruptions_per_node_hour(needs.work_hours, plan.conditions, price, on_demand)
        whose = f"the {plan.conditions.nodes} nodes together" if plan.conditions.nodes > 1 else "a node"
        rate_limit = f"up to {limit:.2f} interruptions of {whose} an hour" if limit else "at no rate of interruptions"
        lines.append(f"Spot is cheaper than on-demand {rate_limit}; {rate:.2f} are expected")
    unknown = found.flex_start_limit_hours is not None and prices.flex_start_usd_per_hour is None
    if unknown and effective < on_demand:
        off = saved_percent(effective, on_demand)
        lines.append(
            f"flex-start, whose price is not known here, would be cheaper than that from {off:.0f} % off on, {cents(effective)} USD"
        )
    return lines


class NamedJob(JobNeeds):
    """A job of a mixture; `runs` is the number of its runs in the period."""

    name: Name
    runs: Annotated[int, Field(ge=1)] = 1


class JobMix(Record):
    """The file of `flexspot advise job --jobs`."""

    jobs: Annotated[tuple[NamedJob, ...], Field(min_length=1)]


@dataclass(frozen=True)
class MixAdvice:
    """Advice for several jobs; `method` is HYBRID if they need more than one. The sums count each run at the most that it can cost."""

    method: Method
    advice: dict[str, Advice]
    usd: Decimal
    on_demand_usd: Decimal

    @property
    def saved_percent(self) -> Decimal:
        """Savings against on-demand for all jobs, in percent."""
        return saved_percent(self.usd, self.on_demand_usd)


def advise_mix(jobs: JobMix, prices_of: Callable[[JobNeeds], MachinePrices]) -> MixAdvice:
    """Return the advice for each job. Raises what `prices_of` raises for a machine without a known price."""
    found = {job.name: advise(job, prices_of(job)) for job in jobs.jobs}
    methods = {each.method for each in found.values()}
    usd = on_demand = Decimal(0)
    for job in jobs.jobs:
        by_method = {each.estimate.method: each.estimate.usd_most for each in found[job.name].options}
        list_price = by_method[Method.ON_DEMAND] or Decimal(0)
        on_demand += list_price * job.runs
        usd += (found[job.name].chosen.usd_most or list_price) * job.runs
    return MixAdvice(methods.pop() if len(methods) == 1 else Method.HYBRID, found, usd, on_demand)


_REQUESTS = 1000


def gpu_hours_per_1000_requests(requests_per_gpu_second: float) -> float:
    """Return the GPU hours of 1000 requests, from the measured requests per second of one GPU at its intended load."""
    return _REQUESTS / requests_per_gpu_second / SECONDS_OF_AN_HOUR


def usd_per_1000_requests(gpu_hour_usd: Decimal, gpu_hours_per_1000: float, busy_share: float = 1.0) -> Decimal:
    """Return the cost of 1000 requests of a service whose GPUs are busy for `busy_share` of the paid time: idle replicas cost the full
    price.
    """
    return gpu_hour_usd * exact(gpu_hours_per_1000) / exact(busy_share)


_HOURS_OF_A_DAY = 24
_MINUTES_OF_AN_HOUR = 60


@dataclass(frozen=True)
class DevelopmentUse:
    """Usage of a pool on a day. Raises ValueError for values that do not fit into a day."""

    nodes: int
    active_hours_per_day: float
    """Hours of a day with work."""
    sessions_per_day: float = 1.0
    """Number of separate stretches of work."""
    start_minutes: float = 0.0
    """Billed minutes until a new node is useful."""
    idle_minutes: float = 0.0
    """Billed minutes until an idle node is removed."""

    def __post_init__(self) -> None:
        if self.nodes < 1 or min(self.sessions_per_day, self.start_minutes, self.idle_minutes) < 0:
            raise ValueError(f"nodes must be 1 or more, sessions and minutes not negative: {self}")
        if not 0 <= self.active_hours_per_day <= _HOURS_OF_A_DAY:
            raise ValueError(f"active_hours_per_day is {self.active_hours_per_day}; it is between 0 and 24")

    @property
    def billed_hours_per_day(self) -> float:
        """Billed hours of one node, at most 24 where sessions are so close that the node stays."""
        around = self.sessions_per_day * (self.start_minutes + self.idle_minutes) / _MINUTES_OF_AN_HOUR
        return min(_HOURS_OF_A_DAY, self.active_hours_per_day + around)


@dataclass(frozen=True)
class Savings:
    """Cost of a pool in a month, always on and scaled to zero. `hours` are the billed hours of one node."""

    always_on_usd: Decimal
    hours: float
    usd: Decimal

    @property
    def saved_usd(self) -> Decimal:
        """Savings in US dollars."""
        return self.always_on_usd - self.usd

    @property
    def saved_percent(self) -> Decimal:
        """Savings in percent."""
        return saved_percent(self.usd, self.always_on_usd)


def scaled_to_zero(use: DevelopmentUse, on_demand_usd_per_hour: Decimal, usd_per_hour: Decimal | None = None) -> Savings:
    """Return the monthly cost of the pool at `usd_per_hour` (default: on-demand), and of the same nodes always on at on-demand."""
    hours = use.billed_hours_per_day * HOURS_OF_A_MONTH / _HOURS_OF_A_DAY
    price = on_demand_usd_per_hour if usd_per_hour is None else usd_per_hour
    always_on = usd_of_hours(on_demand_usd_per_hour, HOURS_OF_A_MONTH, use.nodes)
    return Savings(always_on, hours, usd_of_hours(price, hours, use.nodes))

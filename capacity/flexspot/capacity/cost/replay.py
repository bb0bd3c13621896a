"""Records of Spot availability over time, and a job played through one with a strategy that decides at each tick where it runs.

The records are in the public format of github.com/skypilot-org/spot-traces:

    {"metadata": {"gap_seconds": 300}, "data": [0, 4, 4, 2]}

A data point is how many nodes could be had, or were alive, in that gap. Collected for Z. Wu and others, "Can't Be Late: Optimizing Spot
Instance Savings under Deadlines", NSDI 2024.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from flexspot.capacity.values.errors import ExitCode, ExplainedError
from flexspot.capacity.values.quantities import SECONDS_OF_AN_HOUR, saved_percent, usd_of_seconds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


class _Metadata(BaseModel):
    # Collectors add their own notes next to the gap.
    model_config = ConfigDict(frozen=True, extra="ignore")
    gap_seconds: Annotated[int, Field(ge=1)]


class _TraceFile(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")
    metadata: _Metadata
    data: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=2)]


@dataclass(frozen=True)
class Trace:
    """One zone's record: `available` has a number of nodes for each gap of `gap_seconds`."""

    name: str
    gap_seconds: int
    available: tuple[int, ...]

    def available_share(self, nodes: int) -> float:
        """Return the share of the time with at least this many nodes together."""
        return sum(each >= nodes for each in self.available) / len(self.available)

    def since(self, tick: int) -> Trace:
        """Return the same record from a later tick on."""
        return Trace(self.name, self.gap_seconds, self.available[tick:])


def read_trace(path: Path, name: str | None = None) -> Trace:
    """Return the trace of a file. Its default name is the file's. Raises ExplainedError for an invalid file."""
    try:
        file = _TraceFile.model_validate_json(path.read_bytes())
    except OSError as error:
        remedy = "name a file that can be read."
        raise ExplainedError(f"the trace {path} cannot be read: {error.strerror}.", remedy, exit_code=ExitCode.BAD_USAGE) from error
    except ValidationError as error:
        errors = tuple(f"{'.'.join(map(str, each['loc'])) or '(whole file)'}: {each['msg']}" for each in error.errors()[:5])
        raise ExplainedError(
            f"{path} is not a trace of Spot availability.",
            'give JSON of the form {"metadata": {"gap_seconds": 300}, "data": [0, 4, 4, 2]}, whole numbers of nodes.',
            exit_code=ExitCode.BAD_USAGE,
            evidence=errors,
        ) from error
    return Trace(name or path.stem, file.metadata.gap_seconds, tuple(file.data))


def read_traces(folder: Path) -> list[list[Trace]]:
    """Return the traces under a folder, in groups: those of one folder with the same gap and machine are zones at the same time.

    The machine is the text behind the first `_` of a file's name, as in us-west-2a_v100_8.json; files without one are of one machine. A
    group is as long as its shortest trace. Raises ExplainedError for a folder without traces, or with an invalid file.
    """
    paths = sorted(folder.rglob("*.json")) if folder.is_dir() else []
    if not paths:
        remedy = "name a folder with .json files in the format of github.com/skypilot-org/spot-traces."
        raise ExplainedError(f"there are no traces under {folder}.", remedy, exit_code=ExitCode.BAD_USAGE)
    groups: dict[tuple[str, str, int], list[Trace]] = {}
    for path in paths:
        trace = read_trace(path, str(path.relative_to(folder).with_suffix("")))
        _, _, machine = path.stem.partition("_")
        groups.setdefault((str(path.parent), machine, trace.gap_seconds), []).append(trace)
    return [_aligned(each) for each in groups.values()]


def _aligned(traces: list[Trace]) -> list[Trace]:
    shortest = min(len(each.available) for each in traces)
    return [Trace(each.name, each.gap_seconds, each.available[:shortest]) for each in traces]


@dataclass(frozen=True)
class Job:
    """A job to be placed. All durations are whole seconds.

    `work_seconds` of work on `nodes` at once; after every `checkpoint_interval_seconds` of it the work pauses for `checkpoint_seconds`.
    Each start of machines takes `restart_seconds`, billed, before there is progress. A job that saves on notice is warned `notice_seconds`
    before it loses its Spot machines: it saves all work until then at once. With 0 it does not save. Raises ValueError for impossible
    values.
    """

    work_seconds: int
    deadline_seconds: int
    checkpoint_interval_seconds: int
    nodes: int = 1
    checkpoint_seconds: int = 0
    restart_seconds: int = 0
    notice_seconds: int = 0

    def __post_init__(self) -> None:
        if min(self.work_seconds, self.deadline_seconds, self.checkpoint_interval_seconds, self.nodes) < 1:
            raise ValueError(f"work, deadline, interval and nodes must be 1 or more: {self}")
        if min(self.checkpoint_seconds, self.restart_seconds, self.notice_seconds) < 0:
            raise ValueError(f"checkpoint_seconds, restart_seconds and notice_seconds must not be negative: {self}")
        if 0 < self.notice_seconds < self.checkpoint_seconds:
            raise ValueError(f"a checkpoint must fit into the notice: {self}")

    @property
    def on_demand_seconds(self) -> int:
        """Seconds that the job takes on on-demand nodes alone, its start included."""
        return JobProgress().started(self).to_finish_seconds(self)

    @property
    def feasible(self) -> bool:
        """True if on-demand capacity, taken at once, ends before the deadline."""
        return self.on_demand_seconds <= self.deadline_seconds


@dataclass(frozen=True, slots=True)
class JobProgress:
    """The progress of a job.

    `saved_seconds` of work are durable; `cycle_seconds` of the present cycle of work and checkpoint are done and would be lost;
    `restart_seconds` of a restart remain.
    """

    saved_seconds: int = 0
    cycle_seconds: int = 0
    restart_seconds: int = 0

    def work_done_seconds(self, job: Job) -> int:
        """Return the work done so far, durable or not."""
        return self.saved_seconds + min(self.cycle_seconds, job.checkpoint_interval_seconds)

    def to_finish_seconds(self, job: Job) -> int:
        """Return the seconds until the end without interruptions. There is no checkpoint after the end of the work."""
        left = job.work_seconds - self.saved_seconds
        checkpoints = max(0, -(-left // job.checkpoint_interval_seconds) - 1)
        return self.restart_seconds + left + checkpoints * job.checkpoint_seconds - self.cycle_seconds

    def after(self, seconds: int, job: Job) -> JobProgress:
        """Return the progress after this time on a machine, which must be less than is needed to finish."""
        restarting = min(seconds, self.restart_seconds)
        ran = self.cycle_seconds + seconds - restarting
        cycles, rest = divmod(ran, job.checkpoint_interval_seconds + job.checkpoint_seconds)
        return JobProgress(self.saved_seconds + cycles * job.checkpoint_interval_seconds, rest, self.restart_seconds - restarting)

    def started(self, job: Job) -> JobProgress:
        """Return the progress on a machine that has just been requested."""
        return JobProgress(self.saved_seconds, self.cycle_seconds, self.restart_seconds + job.restart_seconds)

    def lost(self, job: Job) -> JobProgress:
        """Return the progress after losing the machine: the durable part, and with a save on notice the work until the notice."""
        if not job.notice_seconds:
            return JobProgress(self.saved_seconds)
        return JobProgress(self.saved_seconds + min(max(0, self.cycle_seconds - job.notice_seconds), job.checkpoint_interval_seconds))

    def left(self, job: Job) -> JobProgress:
        """Return the progress after giving up a machine: the durable part, or all of it with a checkpoint first, whichever ends sooner.

        The time of that checkpoint is counted at the next start.
        """
        saved_first = JobProgress(self.work_done_seconds(job), 0, job.checkpoint_seconds)
        return min(JobProgress(self.saved_seconds), saved_first, key=lambda each: each.to_finish_seconds(job))


@dataclass(frozen=True)
class Rates:
    """Prices of one node in US dollars an hour."""

    spot_usd_per_hour: Decimal
    on_demand_usd_per_hour: Decimal


ON_DEMAND = -1
"""A job's place is the number of the zone on whose Spot capacity it runs, or this."""


@dataclass(frozen=True, slots=True)
class TickView:
    """The knowledge of a strategy at the start of a tick, without the future.

    `place` is the job's place until now, where it could stay; None when it waits, or was just interrupted. `spot` are the zones with
    capacity in this tick.
    """

    job: Job
    gap_seconds: int
    elapsed_seconds: int
    progress: JobProgress
    place: int | None
    spot: tuple[int, ...]

    @property
    def spot_place(self) -> int | None:
        """Current zone of the job, else the first with Spot; None without any."""
        return self.place if self.place in self.spot else next(iter(self.spot), None)

    def at(self, place: int | None) -> JobProgress:
        """Return the progress at the start of this tick if the job is there from now on."""
        if place == self.place:
            return self.progress
        kept = self.progress.left(self.job) if self.place is not None else self.progress
        return kept if place is None else kept.started(self.job)

    def is_safe(self, place: int | None) -> bool:
        """Return whether a tick at `place` leaves time for on-demand even if the job is interrupted right after it."""
        started = self.at(place)
        needed = started.to_finish_seconds(self.job)
        if place is not None and needed <= self.gap_seconds:
            return self.elapsed_seconds + needed <= self.job.deadline_seconds
        after = started if place is None else started.after(self.gap_seconds, self.job).lost(self.job)
        on_demand = after.started(self.job).to_finish_seconds(self.job)
        return self.elapsed_seconds + self.gap_seconds + on_demand <= self.job.deadline_seconds


Strategy = Callable[[TickView], int | None]
"""Returns the place for the tick that begins: on-demand, a zone of the view's, or None to wait."""


@dataclass(frozen=True)
class ReplayOutcome:
    """Result of one replayed job. Seconds on Spot and on-demand are of one node; `usd` is of all nodes."""

    finish_seconds: int
    spot_seconds: int
    on_demand_seconds: int
    interruptions: int
    usd: Decimal


def replay(zones: Sequence[Trace], job: Job, rates: Rates, strategy: Strategy) -> ReplayOutcome:
    """Play the job from the start of the traces until it ends.

    `zones` have the same gap. Spot exists only where a trace records it; on-demand always exists. A strategy that waits forever never ends.
    """
    gap, tick = zones[0].gap_seconds, 0
    progress, place = JobProgress(), None
    spot_seconds = on_demand_seconds = interruptions = 0
    while True:
        spot = tuple(number for number, each in enumerate(zones) if tick < len(each.available) and each.available[tick] >= job.nodes)
        if place not in {None, ON_DEMAND, *spot}:
            progress, place, interruptions = progress.lost(job), None, interruptions + 1
        view = TickView(job, gap, tick * gap, progress, place, spot)
        place = strategy(view)
        progress = view.at(place)
        if place is not None:
            needed = progress.to_finish_seconds(job)
            if place == ON_DEMAND:
                on_demand_seconds += min(needed, gap)
            else:
                spot_seconds += min(needed, gap)
            if needed <= gap:
                on_spot = usd_of_seconds(rates.spot_usd_per_hour, spot_seconds, job.nodes)
                usd = on_spot + usd_of_seconds(rates.on_demand_usd_per_hour, on_demand_seconds, job.nodes)
                return ReplayOutcome(tick * gap + needed, spot_seconds, on_demand_seconds, interruptions, usd)
            progress = progress.after(gap, job)
        tick += 1


def greedy(view: TickView) -> int | None:
    """Use Spot while there is some and wait without it, until on-demand from now on only just ends in time; then stay on on-demand.

    A promise is kept at each tick: if all were lost now, on-demand would end before the deadline. So every deadline that on-demand can
    meet from the start is met.
    """
    place = view.spot_place
    return place if view.place != ON_DEMAND and view.is_safe(place) else ON_DEMAND


def uniform_progress(view: TickView) -> int | None:
    """Use Spot whenever there is some; without it use on-demand while behind an even pace to the deadline, else wait.

    The policy Uniform Progress of Z. Wu and others, "Can't Be Late", NSDI 2024, with the promise of `greedy`. On-demand is kept until the
    job is ahead of the pace by two restarts, so that it does not come and go.
    """
    place = view.spot_place
    if place is not None and view.is_safe(place):
        return place
    margin = 2 * view.job.restart_seconds if view.place == ON_DEMAND else 0
    due = view.job.work_seconds * (view.elapsed_seconds + margin)
    behind = view.progress.work_done_seconds(view.job) * view.job.deadline_seconds < due
    return ON_DEMAND if behind or not view.is_safe(None) else None


STRATEGIES: Mapping[str, Strategy] = {
    "on-demand": lambda _: ON_DEMAND,
    "Spot, then on-demand": greedy,
    "uniform progress": uniform_progress,
}
"""On-demand is always there in this model; the clouds do not promise that."""


_MILLION = 1_000_000


def omniscient_usd(zones: Sequence[Trace], job: Job, rates: Rates, finish_seconds: int) -> Decimal:
    """Return an upper bound on the cost of any way to do the job's work in this time, in any of the zones or on-demand."""
    gap, work_seconds = zones[0].gap_seconds, job.work_seconds
    places = _places(zones, job, rates, -(-finish_seconds // gap))
    # The least cost, as a function of the worth of a second of work, is concave and linear between changes of the path. So the intersection
    # of the lines of a worth that is too low and one that is too high is nearer than their midpoint.
    low, high = 0, 4 * max(price for price, _ in places)
    below, above = _cheapest(places, low, gap, job.restart_seconds), _cheapest(places, high, gap, job.restart_seconds)
    best = max(net + value * work_seconds for value, (net, _) in ((low, below), (high, above)))
    while high - low > 1 and below[1] < work_seconds <= above[1]:
        value = min(max((above[0] + high * above[1] - below[0] - low * below[1]) // (above[1] - below[1]), low + 1), high - 1)
        found = _cheapest(places, value, gap, job.restart_seconds)
        best = max(best, found[0] + value * work_seconds)
        # The path does too little work: a second of it must be worth more.
        if found[1] < work_seconds:
            low, below = value, found
        else:
            high, above = value, found
    return Decimal(best) * job.nodes / (_MILLION * SECONDS_OF_AN_HOUR)


def _places(zones: Sequence[Trace], job: Job, rates: Rates, ticks: int) -> list[tuple[int, list[bool]]]:
    """Return each place's price in millionths of a dollar an hour and node, and the ticks in which it can be used."""

    def millionths(usd_per_hour: Decimal) -> int:
        return int((usd_per_hour * _MILLION).to_integral_value(ROUND_FLOOR))

    known = min(ticks, len(zones[0].available))
    spot = millionths(rates.spot_usd_per_hour)
    places = [(spot, [each >= job.nodes for each in zone.available[:known]] + [False] * (ticks - known)) for zone in zones]
    places.append((millionths(rates.on_demand_usd_per_hour), [True] * ticks))
    return places


def _cheapest(places: list[tuple[int, list[bool]]], value: int, gap: int, restart: int) -> tuple[int, int]:
    """Return the least cost minus the value of the work done, over all paths, and the work of that path."""
    # The cost of a run that ends within its first tick is between that of its restart alone and that of the whole tick. The net cost is
    # linear between the two, so the end points suffice. Any work includes one start, so doing nothing is not a path.
    touched: tuple[float, int] = (min(price for price, _ in places) * restart, 0)
    idle: tuple[float, int] = (math.inf, 0)
    running: list[tuple[float, int]] = [(math.inf, 0)] * len(places)
    start = value * restart
    for tick in range(len(places[0][1])):
        idle = min(idle, *running)
        first_start = min((idle[0] + start, idle[1] - restart), (start, -restart))
        for number, (price, there) in enumerate(places):
            if not there[tick]:
                running[number] = (math.inf, 0)
                continue
            before = min(running[number], first_start)
            running[number] = (before[0] + (price - value) * gap, before[1] + gap)
    net, work = min(touched, idle, *running)
    return int(net), work


@dataclass(frozen=True)
class StrategyResult:
    """The results of a strategy over all starts in one record: number of late ends, and means."""

    missed: int
    mean_usd: Decimal
    saved_percent: Decimal
    """Savings against on-demand."""
    mean_finish_hours: float
    mean_interruptions: float


@dataclass(frozen=True)
class Comparison:
    """The strategies' results in one record, by name."""

    name: str
    zones: int
    available_share: float
    """Availability in the first zone."""
    starts: int
    bound_usd: Decimal
    """Mean of the lowest possible cost, with the future known, of ending by the deadline, or with on-demand where that is late."""
    results: dict[str, StrategyResult]


def start_ticks(zones: Sequence[Trace], job: Job, starts: int) -> list[int]:
    """Return evenly spread ticks from which the record reaches the deadline. Only the first tick if the record is too short."""
    latest = len(zones[0].available) - -(-job.deadline_seconds // zones[0].gap_seconds)
    if latest <= 0 or starts == 1:
        return [0]
    return sorted({latest * each // (starts - 1) for each in range(starts)})


def compare(zones: Sequence[Trace], job: Job, rates: Rates, *, starts: int) -> Comparison:
    """Return the results of all strategies from `starts` ticks of the traces, which are zones of the same time."""
    traces_by_start = [[each.since(tick) for each in zones] for tick in start_ticks(zones, job, starts)]
    end = max(job.deadline_seconds, job.on_demand_seconds)
    bounds = [omniscient_usd(each, job, rates, end) for each in traces_by_start]
    outcomes = {name: [replay(each, job, rates, strategy) for each in traces_by_start] for name, strategy in STRATEGIES.items()}
    on_demand_usd = outcomes["on-demand"][0].usd
    results = {name: _result(each, job, on_demand_usd) for name, each in outcomes.items()}
    name = zones[0].name if len(zones) == 1 else f"{zones[0].name} and {len(zones) - 1} more"
    return Comparison(name, len(zones), zones[0].available_share(job.nodes), len(traces_by_start), _mean(bounds), results)


def _result(found: list[ReplayOutcome], job: Job, on_demand_usd: Decimal) -> StrategyResult:
    usd = _mean([each.usd for each in found])
    return StrategyResult(
        missed=sum(each.finish_seconds > job.deadline_seconds for each in found),
        mean_usd=usd,
        saved_percent=saved_percent(usd, on_demand_usd),
        mean_finish_hours=sum(each.finish_seconds for each in found) / len(found) / SECONDS_OF_AN_HOUR,
        mean_interruptions=sum(each.interruptions for each in found) / len(found),
    )


def _mean(amounts: list[Decimal]) -> Decimal:
    return sum(amounts, start=Decimal(0)) / len(amounts)

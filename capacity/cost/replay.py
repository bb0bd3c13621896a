"""Records of Spot availability over time, and a job played through one with a strategy that decides at each tick where it runs.

The records are in the public format of github.com/skypilot-org/spot-traces:

    {"metadata": {"gap_seconds": 300}, "data": [0, 4, 4, 2]}

A data point is how many nodes could be had, or were alive, in that gap. Collected for Z. Wu and others, "Can't Be Late: Optimizing Spot
Instance Savings under Deadlines", NSDI 2024.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from capacity.catalog.capacity_type import CapacityType
from capacity.values.errors import ExitCode, ExplainedError
from capacity.values.quantities import SECONDS_OF_AN_HOUR, usd_of_seconds

if TYPE_CHECKING:
    from collections.abc import Sequence
    from decimal import Decimal
    from pathlib import Path


class _Metadata(BaseModel):
    # Collectors add notes of their own beside the gap.
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

    @property
    def hours(self) -> float:
        """How long the record is."""
        return len(self.available) * self.gap_seconds / SECONDS_OF_AN_HOUR

    def available_share(self, nodes: int) -> float:
        """The share of the time in which that many nodes could be had together."""
        return sum(each >= nodes for each in self.available) / len(self.available)

    def interruptions_per_hour(self, nodes: int) -> float:
        """How often a gang of that many nodes, running whenever it could, lost its capacity in an hour of running; 0 if it never ran."""
        up = [each >= nodes for each in self.available]
        lost = sum(before and not after for before, after in pairwise(up))
        hours = sum(up) * self.gap_seconds / SECONDS_OF_AN_HOUR
        return lost / hours if hours else 0.0

    def mean_wait_hours(self, nodes: int) -> float:
        """How long such a gang had to wait on average until it could run again; 0 if it never lost its capacity."""
        up = [each >= nodes for each in self.available]
        lost = sum(before and not after for before, after in pairwise(up))
        if not lost:
            return 0.0
        first_up = up.index(True)
        return sum(not each for each in up[first_up:]) * self.gap_seconds / SECONDS_OF_AN_HOUR / lost

    def since(self, tick: int) -> Trace:
        """The same record from a later tick on."""
        return Trace(self.name, self.gap_seconds, self.available[tick:])


def read_trace(path: Path, name: str | None = None) -> Trace:
    """The trace of a file, called as the file when it is given no name. Raises ExplainedError when it cannot be read as one."""
    try:
        file = _TraceFile.model_validate_json(path.read_bytes())
    except OSError as error:
        remedy = "name a file that can be read."
        raise ExplainedError(f"the trace {path} cannot be read: {error.strerror}.", remedy, exit_code=ExitCode.BAD_USAGE) from error
    except ValidationError as error:
        told = tuple(f"{'.'.join(map(str, each['loc'])) or '(whole file)'}: {each['msg']}" for each in error.errors()[:5])
        raise ExplainedError(
            f"{path} is not a trace of Spot availability.",
            'give JSON of the form {"metadata": {"gap_seconds": 300}, "data": [0, 4, 4, 2]}, whole numbers of nodes.',
            exit_code=ExitCode.BAD_USAGE,
            evidence=told,
        ) from error
    return Trace(name or path.stem, file.metadata.gap_seconds, tuple(file.data))


def read_traces(folder: Path) -> list[list[Trace]]:
    """The traces under a folder, in groups: those of one folder with the same gap and machine are zones at the same time.

    The machine is what stands behind the first `_` of a file's name, as in us-west-2a_v100_8.json; files without one are of one machine. A
    group is as long as its shortest. Raises ExplainedError for a folder without traces, or with a file that is none.
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

    `work_seconds` of work on `nodes` at once; after every `checkpoint_interval_seconds` of it the work stands still for
    `checkpoint_seconds`. Each start of machines takes `restart_seconds`, billed, before there is progress. A job that saves on notice is
    told `notice_seconds` before its Spot machines go: it saves at once, and what it did until then is kept. With 0 it does not. Raises
    ValueError for what cannot be.
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
    def feasible(self) -> bool:
        """True when on-demand capacity, taken at once, ends before the deadline."""
        return Progress().started(self).to_finish_seconds(self) <= self.deadline_seconds


@dataclass(frozen=True, slots=True)
class Progress:
    """`saved_seconds` of work are durable; `cycle_seconds` of the present cycle of work and checkpoint are done and would be lost;
    `restart_seconds` of a restart are still ahead.
    """

    saved_seconds: int = 0
    cycle_seconds: int = 0
    restart_seconds: int = 0

    def work_done_seconds(self, job: Job) -> int:
        """Work done so far, durable or not."""
        return self.saved_seconds + min(self.cycle_seconds, job.checkpoint_interval_seconds)

    def to_finish_seconds(self, job: Job) -> int:
        """How long the rest takes if nothing interrupts it. There is no checkpoint after the end of the work."""
        left = job.work_seconds - self.saved_seconds
        checkpoints = max(0, -(-left // job.checkpoint_interval_seconds) - 1)
        return self.restart_seconds + left + checkpoints * job.checkpoint_seconds - self.cycle_seconds

    def after(self, seconds: int, job: Job) -> Progress:
        """The progress after so long on a machine, which must be less than what is needed to finish."""
        restarting = min(seconds, self.restart_seconds)
        ran = self.cycle_seconds + seconds - restarting
        cycles, rest = divmod(ran, job.checkpoint_interval_seconds + job.checkpoint_seconds)
        return Progress(self.saved_seconds + cycles * job.checkpoint_interval_seconds, rest, self.restart_seconds - restarting)

    def started(self, job: Job) -> Progress:
        """The same on a machine that has just been asked for."""
        return Progress(self.saved_seconds, self.cycle_seconds, self.restart_seconds + job.restart_seconds)

    def lost(self, job: Job) -> Progress:
        """What is left when the machine is taken away: what is durable, and with a save on notice what was done until the notice."""
        if not job.notice_seconds:
            return Progress(self.saved_seconds)
        return Progress(self.saved_seconds + min(max(0, self.cycle_seconds - job.notice_seconds), job.checkpoint_interval_seconds))

    def left(self, job: Job) -> Progress:
        """What is kept when a machine is given up: what is durable, or all of it with a checkpoint first, whichever ends sooner.

        The time of that checkpoint is counted at the next start.
        """
        saved_first = Progress(self.work_done_seconds(job), 0, job.checkpoint_seconds)
        return min(Progress(self.saved_seconds), saved_first, key=lambda each: each.to_finish_seconds(job))


@dataclass(frozen=True)
class Rates:
    """Prices of one node in US dollars an hour, and how long flex-start makes wait. Without its price there is no flex-start."""

    spot_usd_per_hour: Decimal
    on_demand_usd_per_hour: Decimal
    flex_start_usd_per_hour: Decimal | None = None
    flex_start_wait_seconds: int = 0
    flex_start_limit_seconds: int = 7 * 24 * SECONDS_OF_AN_HOUR


@dataclass(frozen=True)
class Place:
    """Where a job runs: a capacity type and, for Spot, the zone by its number."""

    capacity_type: CapacityType
    zone: int = 0


ON_DEMAND = Place(CapacityType.ON_DEMAND)
FLEX_START = Place(CapacityType.FLEX_START)


@dataclass(frozen=True, slots=True)
class Seen:
    """What was to be seen of Spot since the job began, whole ticks that are over.

    `spot_seconds` with capacity in any zone and `outage_seconds` with none, `outages` and `returns` the changes between the two;
    `zone_seconds` with capacity, summed over the zones, and `losses` how often a zone lost it.
    """

    spot_seconds: int = 0
    outage_seconds: int = 0
    outages: int = 0
    returns: int = 0
    zone_seconds: int = 0
    losses: int = 0

    def after(self, gap_seconds: int, before: frozenset[int], now: frozenset[int]) -> Seen:
        """With a tick more, in which the zones `before` had capacity, and the change to those that have it `now`."""
        return Seen(
            self.spot_seconds + (gap_seconds if before else 0),
            self.outage_seconds + (0 if before else gap_seconds),
            self.outages + bool(before and not now),
            self.returns + bool(now and not before),
            self.zone_seconds + gap_seconds * len(before),
            self.losses + len(before - now),
        )


@dataclass(frozen=True, slots=True)
class View:
    """What a strategy knows at the begin of a tick: nothing of the future.

    `place` is where the job has been until now and could stay; None when it waits, or was just interrupted. `spot` are the zones with
    capacity in this tick, `seen` is what there was before it.
    """

    job: Job
    rates: Rates
    gap_seconds: int
    elapsed_seconds: int
    progress: Progress
    place: Place | None
    spot: tuple[Place, ...]
    seen: Seen = Seen()

    def at(self, place: Place | None) -> Progress:
        """The progress at the begin of this tick if the job is there from now on."""
        if place == self.place:
            return self.progress
        kept = self.progress.left(self.job) if self.place is not None else self.progress
        return kept if place is None else kept.started(self.job)

    def is_safe(self, place: Place | None) -> bool:
        """True when a tick spent there leaves time for on-demand even if the job is interrupted right after it."""
        begun = self.at(place)
        needed = begun.to_finish_seconds(self.job)
        if place is not None and needed <= self.gap_seconds:
            return self.elapsed_seconds + needed <= self.job.deadline_seconds
        after = begun if place is None else begun.after(self.gap_seconds, self.job).lost(self.job)
        on_demand = after.started(self.job).to_finish_seconds(self.job)
        return self.elapsed_seconds + self.gap_seconds + on_demand <= self.job.deadline_seconds


class Strategy(Protocol):
    """Decides where a job runs in the next tick; None is waiting. It may choose a Spot place only from the view's."""

    @property
    def name(self) -> str:
        """What tables call it."""
        ...

    def choose(self, view: View) -> Place | None:
        """The place for the tick that begins."""
        ...


@dataclass(frozen=True)
class Outcome:
    """How a job went. `finish_seconds` is None for a job that did not end before its record did; `work_seconds` is what it then had saved.

    `played_seconds` is how long the job was followed. `billed_seconds` are of one node. `restarts` counts starts after the first.
    """

    strategy: str
    finish_seconds: int | None
    played_seconds: int
    work_seconds: int
    billed_seconds: dict[CapacityType, int]
    interruptions: int
    restarts: int
    usd: Decimal

    def meets(self, deadline_seconds: int) -> bool:
        """True when the job ended in time."""
        return self.finish_seconds is not None and self.finish_seconds <= deadline_seconds


def replay(zones: Sequence[Trace], job: Job, rates: Rates, strategy: Strategy) -> Outcome:
    """The job from the traces' begin on, until it ends or nothing more is known of Spot.

    Spot that no trace tells of is not there; on-demand and flex-start go on for as long as the deadline and an on-demand run need. `zones`
    have the same gap. Raises ValueError when a strategy chooses a place that is not there.
    """
    gap = zones[0].gap_seconds
    known = len(zones[0].available)
    on_demand_ticks = -(-Progress().started(job).to_finish_seconds(job) // gap)
    last = max(known, -(-job.deadline_seconds // gap) + on_demand_ticks)
    progress, place = Progress(), None
    billed: dict[CapacityType, int] = {}
    interruptions = starts = 0
    finish: int | None = None
    seen, before = Seen(), frozenset[int]()
    for tick in range(last):
        now = frozenset(number for number, each in enumerate(zones) if tick < known and each.available[tick] >= job.nodes)
        seen, before = seen.after(gap, before, now) if tick else seen, now
        spot = tuple(Place(CapacityType.SPOT, number) for number in sorted(now))
        if place is not None and place.capacity_type is CapacityType.SPOT and place not in spot:
            progress, place, interruptions = progress.lost(job), None, interruptions + 1
        view = View(job, rates, gap, tick * gap, progress, place, spot, seen)
        chosen = strategy.choose(view)
        if chosen is not None and chosen.capacity_type is CapacityType.SPOT and chosen not in spot:
            raise ValueError(f"{strategy.name} chose {chosen} at tick {tick}, where there is no capacity")
        progress = view.at(chosen)
        starts += chosen is not None and chosen != place
        place = chosen
        if place is None:
            continue
        needed = progress.to_finish_seconds(job)
        billed[place.capacity_type] = billed.get(place.capacity_type, 0) + min(needed, gap)
        if needed <= gap:
            finish = tick * gap + needed
            break
        progress = progress.after(gap, job)
    work = job.work_seconds if finish is not None else progress.saved_seconds
    played = last * gap if finish is None else finish
    return Outcome(strategy.name, finish, played, work, billed, interruptions, max(0, starts - 1), _usd(billed, rates, job.nodes))


def _usd(billed: dict[CapacityType, int], rates: Rates, nodes: int) -> Decimal:
    prices = {
        CapacityType.SPOT: rates.spot_usd_per_hour,
        CapacityType.ON_DEMAND: rates.on_demand_usd_per_hour,
        CapacityType.FLEX_START: rates.flex_start_usd_per_hour or rates.on_demand_usd_per_hour,
    }
    return sum((usd_of_seconds(prices[each], seconds, nodes) for each, seconds in billed.items()), start=rates.spot_usd_per_hour * 0)

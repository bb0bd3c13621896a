"""Records of Spot availability over time, and a job played through one with a strategy that decides at each tick where it runs.

The records are in the public format of github.com/skypilot-org/spot-traces:

    {"metadata": {"gap_seconds": 300}, "data": [0, 4, 4, 2]}

A data point is how many nodes could be had, or were alive, in that gap. Collected for Z. Wu and others, "Can't Be Late: Optimizing Spot
Instance Savings under Deadlines", NSDI 2024.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from flexspot.capacity.values.errors import ExitCode, ExplainedError
from flexspot.capacity.values.quantities import usd_of_seconds

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

    def available_share(self, nodes: int) -> float:
        """The share of the time in which that many nodes could be had together."""
        return sum(each >= nodes for each in self.available) / len(self.available)

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
    def on_demand_seconds(self) -> int:
        """Seconds that the job takes on on-demand nodes alone, its start included."""
        return JobProgress().started(self).to_finish_seconds(self)

    @property
    def feasible(self) -> bool:
        """True when on-demand capacity, taken at once, ends before the deadline."""
        return self.on_demand_seconds <= self.deadline_seconds


@dataclass(frozen=True, slots=True)
class JobProgress:
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

    def after(self, seconds: int, job: Job) -> JobProgress:
        """The progress after so long on a machine, which must be less than what is needed to finish."""
        restarting = min(seconds, self.restart_seconds)
        ran = self.cycle_seconds + seconds - restarting
        cycles, rest = divmod(ran, job.checkpoint_interval_seconds + job.checkpoint_seconds)
        return JobProgress(self.saved_seconds + cycles * job.checkpoint_interval_seconds, rest, self.restart_seconds - restarting)

    def started(self, job: Job) -> JobProgress:
        """The same on a machine that has just been asked for."""
        return JobProgress(self.saved_seconds, self.cycle_seconds, self.restart_seconds + job.restart_seconds)

    def lost(self, job: Job) -> JobProgress:
        """What is left when the machine is taken away: what is durable, and with a save on notice what was done until the notice."""
        if not job.notice_seconds:
            return JobProgress(self.saved_seconds)
        return JobProgress(self.saved_seconds + min(max(0, self.cycle_seconds - job.notice_seconds), job.checkpoint_interval_seconds))

    def left(self, job: Job) -> JobProgress:
        """What is kept when a machine is given up: what is durable, or all of it with a checkpoint first, whichever ends sooner.

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
    """What a strategy knows at the begin of a tick: nothing of the future.

    `place` is where the job has been until now and could stay; None when it waits, or was just interrupted. `spot` are the zones with
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
        """The zone where the job is already, else the first that has Spot; None without any."""
        return self.place if self.place in self.spot else next(iter(self.spot), None)

    def at(self, place: int | None) -> JobProgress:
        """The progress at the begin of this tick if the job is there from now on."""
        if place == self.place:
            return self.progress
        kept = self.progress.left(self.job) if self.place is not None else self.progress
        return kept if place is None else kept.started(self.job)

    def is_safe(self, place: int | None) -> bool:
        """True when a tick spent there leaves time for on-demand even if the job is interrupted right after it."""
        begun = self.at(place)
        needed = begun.to_finish_seconds(self.job)
        if place is not None and needed <= self.gap_seconds:
            return self.elapsed_seconds + needed <= self.job.deadline_seconds
        after = begun if place is None else begun.after(self.gap_seconds, self.job).lost(self.job)
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
    """Play the job from the traces' begin on, until it ends. `zones` have the same gap.

    Spot that no trace tells of is not there; on-demand always is. A strategy that waits for good is never done.
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

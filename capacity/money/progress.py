"""How far a job is, in whole seconds: what is durable, what would be lost, and how long the rest takes if nothing happens."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Job:
    """A job to be placed. All durations are whole seconds.

    `work_seconds` of work on `nodes` at once; after every `checkpoint_interval_seconds` of it the work stands still for
    `checkpoint_seconds`. Each start of machines takes `restart_seconds`, billed, before there is progress. With `saves_on_warning` the
    grace period suffices to save, so that an interruption loses nothing. Raises ValueError for what cannot be.
    """

    work_seconds: int
    deadline_seconds: int
    checkpoint_interval_seconds: int
    nodes: int = 1
    checkpoint_seconds: int = 0
    restart_seconds: int = 0
    saves_on_warning: bool = False

    def __post_init__(self) -> None:
        if min(self.work_seconds, self.deadline_seconds, self.checkpoint_interval_seconds, self.nodes) < 1:
            raise ValueError(f"work, deadline, interval and nodes must be 1 or more: {self}")
        if min(self.checkpoint_seconds, self.restart_seconds) < 0:
            raise ValueError(f"checkpoint_seconds and restart_seconds must not be negative: {self}")

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
        """What is left when the machine is taken away."""
        return Progress(self.work_done_seconds(job) if job.saves_on_warning else self.saved_seconds)

    def left(self, job: Job) -> Progress:
        """What is kept when a machine is given up: as after an interruption, or with a checkpoint first, whichever ends sooner.

        The time of that checkpoint is counted at the next start.
        """
        saved_first = Progress(self.work_done_seconds(job), 0, job.checkpoint_seconds)
        return min(self.lost(job), saved_first, key=lambda each: each.to_finish_seconds(job))

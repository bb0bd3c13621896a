"""The loop around training steps: resume, save when due (inline or in the background), stop in time."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from flexspot_runtime.group import Action, Agreement, CheckpointFailedError
from flexspot_runtime.interruption import Interrupted
from flexspot_runtime.schedule import History, Schedule, Timed
from flexspot_runtime.status import Phase, RunStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flexspot_runtime.checkpointer import Checkpointer
    from flexspot_runtime.contents import CheckpointReader, CheckpointWriter
    from flexspot_runtime.interruption import Interruption, Notice
    from flexspot_runtime.schedule import Clock
    from flexspot_runtime.status import ProgressFile

    _Write = Callable[[CheckpointWriter], None]

_LOG = logging.getLogger("flexspot_runtime")


def _either(save: _Write | None, snapshot: Callable[[], _Write] | None) -> Callable[[], _Write]:
    if save and not snapshot:
        return lambda: save
    if snapshot and not save:
        return snapshot
    raise ValueError("give either save, which writes, or snapshot, which copies and returns a function that writes the copy")


class TrainingRun:
    """Steps that survive the machine they run on.

        with Interruption() as interruption:
            run = TrainingRun(Checkpointer(LocalFolder()), interruption, save=save, load=load)
            for step in run.steps(10_000):
                train(step)

    `save` gets a CheckpointWriter and writes all state that the next step depends on: weights, optimizer, learning-rate schedule, the state
    of every random generator, the position in the data. `load` gets a CheckpointReader and restores it. It is called at most once, before
    the first step. State that they omit is lost at an interruption, and changes the result.

    Between two steps a checkpoint is saved when `schedule` decides so (default: Daly's interval, estimated again at every save), and when
    `request_checkpoint` was called. After a warning one is saved, too, and the run ends with Interrupted: exit code 143, never 0, so that
    no Job counts it as done. A failed save is logged, counted and tried again later, and training continues. Only the last one, when all
    steps are done, must succeed.

    Training pauses while `save` runs. With `snapshot` instead, it pauses only for a copy: `snapshot` copies all state that the next step
    depends on and returns a function, which then hashes and writes the copy in a separate thread. Training waits for the last save, and for
    the one after a warning. There is one save at a time: if writing takes longer than the interval, the next one waits.

    In a group all ranks call `save`, or `snapshot`, at the same step, so it may contain collective operations such as gathering a full
    state. Where rank 0 writes for all, the data of the others is discarded. The function that `snapshot` returns must contain none: the
    ranks' threads are independent. Ranks agree at most every `agree_seconds`, so they save and stop up to that much later than one process.

    Raises ValueError unless exactly one of `save` and `snapshot` is given.
    """

    def __init__(  # noqa: PLR0913 -- given by name
        self,
        checkpointer: Checkpointer,
        interruption: Interruption,
        *,
        save: _Write | None = None,
        snapshot: Callable[[], _Write] | None = None,
        load: Callable[[CheckpointReader], None],
        schedule: Schedule | None = None,
        progress: ProgressFile | None = None,
        agree_seconds: float = 1.0,
    ) -> None:
        self.checkpointer = checkpointer
        self.interruption = interruption
        self.schedule: Schedule = schedule or Timed()
        self.progress = progress
        self.status = RunStatus(started_at=checkpointer.clock.monotonic())
        self._take = _either(save, snapshot)
        self._in_background = snapshot is not None
        self._read = load
        self._clock = checkpointer.clock
        self._agreement = Agreement(checkpointer.group, self._clock, agree_seconds)
        self._history = History()
        self._requested = False
        self._due = False
        self._tried_step = -1
        self._saving: BackgroundSave | None = None

    def request_checkpoint(self) -> None:
        """Request a checkpoint after the current step. May be called from any thread, or from a handler of another signal."""
        self._requested = True

    def steps(self, total: int) -> Iterator[int]:
        """Yield the numbers of the remaining steps, of `total` numbered from 0. Call it once.

        Raises Interrupted after a warning, CheckpointFailedError when the result cannot be saved, CorruptCheckpointError when all
        checkpoints are damaged, and OSError when the storage does not answer at the start.
        """
        status, group = self.status, self.checkpointer.group
        status.total_steps = total
        self.interruption.on_notice(self._note)
        done = self._resume()
        while done < total:
            action = self._agreement.action(done, self._wanted(done), self.schedule.steps_to_due(done))
            if action == Action.STOP:
                self._stop(done)
            if action == Action.SAVE:
                self._save_in_background(done) if self._in_background else self._save_and_agree(done)
                # A warning may have come in the meantime: check before the next step.
                continue
            if self.progress and self.progress.due(self._clock.monotonic()):
                self.progress.write(status, self._clock)
            yield done
            done += 1
            status.step = done
            if self._saving and self._saving.ended:
                self._finish_saving()
        self._finish_saving()
        if group.agree(int(status.saved_step < done)) and not self._save_and_agree(done, completed=True):
            self._enter(Phase.TRAINING)
            raise CheckpointFailedError(f"all {total} steps are done but could not be saved: {status.last_failure}")
        self._enter(Phase.COMPLETED)

    def _wanted(self, done: int) -> Action:
        due = self.schedule.due(done, self._clock.monotonic())
        if self.interruption.noticed:
            return Action.STOP
        if done == self._tried_step:
            # One attempt per step, even if it failed.
            return Action.GO_ON
        # Remembered until all ranks are asked.
        self._due = due or self._due
        return Action.SAVE if self._due or self._requested else Action.GO_ON

    def _resume(self) -> int:
        status = self.status
        reported = self.progress.last_step() if self.progress else None
        marker = self.checkpointer.newest_valid()
        if marker:
            self._read(self.checkpointer.reader(marker))
            self._history = marker.history.started_again()
            status.step = status.saved_step = self._tried_step = marker.step
            status.saved_at = self._clock.monotonic()
            status.lost_steps = max(0, (reported or 0) - marker.step)
            status.interruptions = self._history.interruptions
            _LOG.info("resumed from %s; %d steps are repeated", marker.group, status.lost_steps)
        self.schedule.begin(status.step, self._clock.monotonic(), self._history_so_far)
        status.interval_seconds = self.schedule.interval_seconds
        self._enter(Phase.TRAINING)
        return status.step

    def _stop(self, done: int) -> None:
        self._finish_saving()
        cost, remaining = self.status.checkpoint_seconds, self.interruption.remaining_seconds()
        if self.checkpointer.group.agree(int(self.status.saved_step < done)):
            if cost is not None and cost > remaining:
                # Try anyway: a torn checkpoint does not count, and the previous one stays.
                _LOG.warning("a checkpoint takes %.1f s and %.1f s are left: it may not be finished in time", cost, remaining)
            self._save(done)
        self._enter(Phase.INTERRUPTED)
        notice = self.interruption.notice
        raise Interrupted(notice.source if notice else "another rank", done)

    def _save_and_agree(self, done: int, *, completed: bool = False) -> bool:
        failed = self._save(done, completed=completed)
        if self.checkpointer.group.agree(int(failed)) and not failed:
            # It may count or not. A failure in another rank is reason enough to save again.
            self._failed("another rank could not save")
            return False
        return not failed

    def _save(self, done: int, *, completed: bool = False) -> bool:
        """Save now. Return whether it failed."""
        started = self._begin_saving(done)
        saving = self._saver(done, self._take(), completed=completed)
        saving.run()
        if saving.failure:
            self._failed(str(saving.failure))
            return True
        ended = self._clock.monotonic()
        self._saved(done, ended, ended - started)
        self.schedule.saved(done, ended, ended - started)
        self.status.interval_seconds = self.schedule.interval_seconds
        return False

    def _save_in_background(self, done: int) -> None:
        """Copy the state, and write the copy while training continues."""
        started = self._begin_saving(done)
        self._finish_saving()
        self._saving = self._saver(done, self._take())
        self._saving.start()
        ended = self._clock.monotonic()
        self.schedule.saved(done, ended, ended - started)
        self.status.interval_seconds = self.schedule.interval_seconds

    def _finish_saving(self) -> None:
        """Wait for a background save, if there is one."""
        if not self._saving:
            return
        saving, self._saving = self._saving, None
        saving.join()
        if saving.failure:
            self._failed(str(saving.failure))
        else:
            self._saved(saving.step, saving.ended_at, saving.ended_at - saving.started_at)

    def _begin_saving(self, done: int) -> float:
        self._requested, self._due, self._tried_step = False, False, done
        return self._clock.monotonic()

    def _saver(self, done: int, write: _Write, *, completed: bool = False) -> BackgroundSave:
        history = self._history_so_far()

        def save() -> None:
            self.checkpointer.save(done, write, completed=completed, history=history, deadline=self.interruption.deadline)

        return BackgroundSave(done, save, self._clock)

    def _saved(self, step: int, ended: float, seconds: float) -> None:
        """Record a checkpoint that took `seconds`."""
        self.status.saves += 1
        self.status.saved_step, self.status.saved_at, self.status.checkpoint_seconds = step, ended, seconds

    def _failed(self, failure: str) -> None:
        _LOG.error("%s; training continues", failure)
        self.schedule.failed(self._clock.monotonic())
        self.status.failed_saves += 1
        self.status.last_failure = failure

    def _history_so_far(self) -> History:
        return self._history.ran(self._clock.monotonic() - self.status.started_at)

    def _note(self, notice: Notice) -> None:
        # In the listening thread: the main thread may be in a long step, and the file should be written now.
        self.status.notice = notice
        if self.progress:
            self.progress.write(self.status, self._clock)

    def _enter(self, phase: Phase) -> None:
        self.status.phase = phase
        if self.progress:
            self.progress.write(self.status, self._clock)


class BackgroundSave:
    """A save of one step, inline with `run` or in a thread with `start`.

    The thread ends with the process; a torn checkpoint does not count.

    Hashing and writing release the GIL; converting tensors to bytes (pickle) does so only for large ones.
    """

    def __init__(self, step: int, save: Callable[[], None], clock: Clock) -> None:
        self.step = step
        self.failure: CheckpointFailedError | None = None
        self.started_at = clock.monotonic()
        self.ended_at = self.started_at
        self._save = save
        self._clock = clock
        self._thread = threading.Thread(target=self._run_in_thread, name="flexspot-save", daemon=True)
        self._error: BaseException | None = None

    def run(self) -> None:
        """Save. Exceptions other than CheckpointFailedError are raised."""
        try:
            self._save()
        except CheckpointFailedError as error:
            self.failure = error
        finally:
            self.ended_at = self._clock.monotonic()

    def start(self) -> None:
        """Save in a thread."""
        self._thread.start()

    @property
    def ended(self) -> bool:
        """True once the thread has ended."""
        return not self._thread.is_alive()

    def join(self) -> None:
        """Wait for the thread. Raises what `run` would raise."""
        self._thread.join()
        if self._error:
            raise self._error

    def _run_in_thread(self) -> None:
        try:
            self.run()
        except BaseException as error:  # noqa: BLE001 -- raised where the training is
            self._error = error

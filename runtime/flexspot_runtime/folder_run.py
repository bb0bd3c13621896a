"""When to save and stop, for trainers with their own loop that write checkpoints as folders."""

from __future__ import annotations

import logging
import os
import shutil
from typing import TYPE_CHECKING

from flexspot_runtime.group import Action, Agreement, CheckpointFailedError
from flexspot_runtime.schedule import History, Schedule, Timed

if TYPE_CHECKING:
    from pathlib import Path

    from flexspot_runtime.checkpointer import Checkpointer
    from flexspot_runtime.contents import CheckpointWriter
    from flexspot_runtime.interruption import Interruption

_LOG = logging.getLogger("flexspot_runtime")


class FolderRun:
    """Answers a trainer's callbacks, in all ranks at the same steps.

    The trainer writes to a scratch folder of each machine. The first rank of each machine copies it into its part of a checkpoint, so a
    Checkpointer of several ranks needs `sharded=True`.
    """

    def __init__(self, checkpointer: Checkpointer, interruption: Interruption, schedule: Schedule | None, agree_seconds: float) -> None:
        self.checkpointer = checkpointer
        self.stopped_at: int | None = None
        """The step after which all ranks stop."""

        self._interruption = interruption
        self._schedule: Schedule = schedule or Timed()
        self._clock = checkpointer.clock
        self._agreement = Agreement(checkpointer.group, self._clock, agree_seconds)
        self._history = History()
        self._started_at = self._clock.monotonic()
        self._due = False
        self._first_of_machine = os.environ.get("LOCAL_RANK", "0") == "0"

    def fetch(self, folder: Path) -> int | None:
        """Create the folder with the newest checkpoint and return the steps done.

        Return None, and create no folder, if there is no checkpoint.
        """
        marker = self.checkpointer.newest_valid()
        if marker:
            self._history = marker.history.started_again()
            reader = self.checkpointer.reader(marker)
            if self._first_of_machine:
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir(parents=True)
                # Rank 0 may have written files that all ranks need.
                if reader.rank:
                    reader.of_rank(0).fetch(folder)
                reader.fetch(folder)
            self._meet()
        step = marker.step if marker else 0
        self._schedule.begin(step, self._clock.monotonic(), self._history_so_far)
        return step if marker else None

    def action(self, done: int) -> Action:
        """Return what all ranks do after `done` steps. For STOP and for SAVE the trainer must write its folder."""
        self._due = self._schedule.due(done, self._clock.monotonic()) or self._due
        wanted = Action.STOP if self._interruption.noticed else Action.SAVE if self._due else Action.GO_ON
        action = self._agreement.action(done, wanted, self._schedule.steps_to_due(done))
        if action is Action.STOP:
            self.stopped_at = done
        return action

    def empty(self, folder: Path) -> None:
        """Empty the folder before any rank writes to it: a late rank would otherwise delete what another has written."""
        if self._first_of_machine:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        self._meet()

    def save(self, done: int, folder: Path, *, completed: bool = False) -> bool:
        """Save the folder that the trainer has written, in all ranks. Return whether the checkpoint counts."""
        started, self._due = self._clock.monotonic(), False
        self._meet()

        def write(writer: CheckpointWriter) -> None:
            if self._first_of_machine:
                writer.put_folder(folder)

        failed = False
        try:
            self.checkpointer.save(done, write, completed=completed, history=self._history_so_far(), deadline=self._interruption.deadline)
        except CheckpointFailedError as error:
            _LOG.error("%s; training continues", error)
            failed = True
        now = self._clock.monotonic()
        if self.checkpointer.group.agree(int(failed)):
            self._schedule.failed(now)
            return False
        self._schedule.saved(done, now, now - started)
        return True

    def _meet(self) -> None:
        """Wait for all ranks: ranks of one machine write into one folder."""
        self.checkpointer.group.agree(0)

    def _history_so_far(self) -> History:
        return self._history.ran(self._clock.monotonic() - self._started_at)

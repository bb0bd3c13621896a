"""Lightning integration that fits, resumes automatically, and stops in time. Extra: `lightning`.

    trainer = lightning.Trainer(max_steps=100_000, enable_checkpointing=False)
    with Interruption() as interruption:
        fit(trainer, module, interruption, train_dataloaders=loader)  # a flexspot_runtime.torch_data.ResumableLoader

In addition to what Lightning saves, each rank's random generators are saved. The position in the data is the loader's: with a
ResumableLoader, or another one with a `state_dict`, a resume is exact. With any other, Lightning restarts an epoch's data, and warns. A
validation that was due at the step of an interruption is skipped. Tried with 2.6 on CPUs.
"""

from __future__ import annotations

import pickle
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch.distributed as dist
from lightning.pytorch import Callback
from lightning.pytorch.utilities import CombinedLoader
from lightning.pytorch.utilities.exceptions import SIGTERMException

from flexspot_runtime.checkpointer import Checkpointer
from flexspot_runtime.folder_run import FolderRun
from flexspot_runtime.group import Action, Group
from flexspot_runtime.interruption import Interrupted
from flexspot_runtime.storage import LocalFolder
from flexspot_runtime.torch import group_of_all, random_state, set_random_state
from flexspot_runtime.torch_data import ResumableLoader

if TYPE_CHECKING:
    from lightning.pytorch import LightningModule, Trainer

    from flexspot_runtime.interruption import Interruption
    from flexspot_runtime.schedule import Schedule
    from flexspot_runtime.storage import Storage

_FILE = "lightning.ckpt"


def fit(  # noqa: PLR0913 -- given by name
    trainer: Trainer,
    module: LightningModule,
    interruption: Interruption,
    *,
    storage: Storage | None = None,
    schedule: Schedule | None = None,
    agree_seconds: float = 1.0,
    scratch: Path | None = None,
    **options: Any,
) -> None:
    """Run `trainer.fit` from the newest checkpoint on.

    storage: default LocalFolder(), which is CHECKPOINT_DIR.

    schedule: default Daly's interval.

    scratch: a local folder of the machine for Lightning's files, the same for its ranks. Default: one among the temporary files.

    options: those of `fit`, such as train_dataloaders.

    Raises Interrupted (143) after a warning, once a checkpoint is saved.
    """
    folder = scratch or Path(tempfile.gettempdir(), "flexspot-lightning")
    # Lightning would create the process group only when it fits, and ranks agree on what to resume from before that.
    trainer.strategy.setup_environment()
    saving = Saving(storage or LocalFolder(), interruption, schedule, agree_seconds, folder)
    trainer.callbacks.append(saving)
    resumed = saving.begin()
    try:
        trainer.fit(module, ckpt_path=None if resumed is None else folder / _FILE, weights_only=False, **options)
    except SIGTERMException as error:
        # Lightning's reaction to a warning that came before training started: it exits with 0, which a Job counts as done.
        raise Interrupted("SIGTERM", resumed) from error
    saving.end(trainer)


class Saving(Callback):
    """Makes Lightning save and stop when the run decides so."""

    def __init__(self, storage: Storage, interruption: Interruption, schedule: Schedule | None, agree_seconds: float, folder: Path) -> None:
        group = group_of_all() if dist.is_initialized() else Group()
        checkpointer = Checkpointer(storage, group=group, sharded=True)
        self._run = FolderRun(checkpointer, interruption, schedule, agree_seconds)
        self._interruption = interruption
        self._folder = folder
        self._random = folder / f"random-{group.rank}.pickle"
        self._handler = signal.getsignal(signal.SIGTERM)
        self._resumed = False
        self._step = 0

    def begin(self) -> int | None:
        """Fetch the newest checkpoint. Return the steps done, or None."""
        done = self._run.fetch(self._folder)
        self._resumed = done is not None
        return done

    def on_train_start(self, trainer: Trainer, *_: Any) -> None:
        """Replace Lightning's signal handler, which ends the process after the batch, unsaved and with 0, by the Interruption's."""
        signal.signal(signal.SIGTERM, self._handler)
        self._step = trainer.global_step
        if self._resumed:
            self._end_epoch(trainer)
            if self._random.exists():
                set_random_state(pickle.loads(self._random.read_bytes()))  # noqa: S301 -- written by this program, and verified

    def on_train_batch_end(self, trainer: Trainer, *_: Any) -> None:
        """Act after each step of the optimizer: gradients that are still being accumulated are in no checkpoint."""
        if trainer.global_step == self._step:
            return
        self._step = trainer.global_step
        action = self._run.action(self._step)
        if action is not Action.GO_ON:
            self._save(trainer)
        if action is Action.STOP:
            # Not by `should_stop`: Lightning would validate first, or continue if a minimum number of steps or epochs is set.
            raise self._interrupted(self._step)

    def end(self, trainer: Trainer) -> None:
        """Save the final state."""
        self._save(trainer, completed=True)

    def _interrupted(self, step: int) -> Interrupted:
        return Interrupted("SIGTERM" if self._interruption.noticed else "another rank", step)

    def _end_epoch(self, trainer: Trainer) -> None:
        """Start the next epoch if the checkpoint was saved after the last batch of an epoch.

        Lightning 2.6 counts that one as processed and not as started (fit_loop.py, reset and on_advance_start). From the second such resume
        on it would give one epoch's number, and with it the order of its data, to two epochs.
        """
        loop = trainer.fit_loop
        if loop.epoch_progress.current.processed < loop.epoch_progress.current.started:
            return
        loop.reset_restart_stage()
        for loader in CombinedLoader(trainer.train_dataloader).flattened:
            if isinstance(loader, ResumableLoader):
                loader.end_epoch()

    def _save(self, trainer: Trainer, *, completed: bool = False) -> None:
        self._run.empty(self._folder)
        self._random.write_bytes(pickle.dumps(random_state()))
        trainer.save_checkpoint(self._folder / _FILE)
        self._run.save(trainer.global_step, self._folder, completed=completed)

"""For Lightning: fits, resumes by itself, and stops in time. The extra `lightning`.

    trainer = lightning.Trainer(max_steps=100_000, enable_checkpointing=False)
    with Interruption() as interruption:
        fit(trainer, module, interruption, train_dataloaders=loader)

Lightning keeps no states of random generators and, unless the data loader has a `state_dict`, begins an epoch's data anew: what is exact is
up to these. Tried with 2.6 on CPUs.
"""

from __future__ import annotations

import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch.distributed as dist
from lightning.pytorch import Callback
from lightning.pytorch.utilities.exceptions import SIGTERMException

from flexspot_runtime.agreement import Action
from flexspot_runtime.checkpointer import Checkpointer
from flexspot_runtime.folder_run import FolderRun
from flexspot_runtime.group import Group
from flexspot_runtime.interruption import Interrupted
from flexspot_runtime.storage import LocalFolder
from flexspot_runtime.torch import group_of_all

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
    """`trainer.fit` from the newest checkpoint on; raises Interrupted (143) after a warning, with a checkpoint made.

    `storage`: default LocalFolder(), which is CHECKPOINT_DIR. `schedule`: default Daly's interval. `scratch`: a folder of the machine's own
    for Lightning's files, the same for its ranks; default: one among the temporary files. `options` are those of `fit`, such as
    train_dataloaders.
    """
    folder = scratch or Path(tempfile.gettempdir(), "flexspot-lightning")
    # Lightning would make the process group only when it fits, and ranks agree on what to resume from before that.
    trainer.strategy.setup_environment()
    saving = Saving(storage or LocalFolder(), interruption, schedule, agree_seconds, folder)
    trainer.callbacks.append(saving)
    resumed = saving.begin()
    try:
        trainer.fit(module, ckpt_path=None if resumed is None else folder / _FILE, weights_only=False, **options)
    except SIGTERMException as error:
        # Lightning's own end after a warning that came before training began: with exit code 0, which a Job takes for done.
        raise Interrupted("SIGTERM", resumed) from error
    saving.end(trainer)


class Saving(Callback):
    """Has Lightning save and stop when the run says so."""

    def __init__(self, storage: Storage, interruption: Interruption, schedule: Schedule | None, agree_seconds: float, folder: Path) -> None:
        group = group_of_all() if dist.is_initialized() else Group()
        checkpointer = Checkpointer(storage, group=group, sharded=True)
        self._run = FolderRun(checkpointer, interruption, schedule, agree_seconds)
        self._interruption = interruption
        self._folder = folder
        self._handler = signal.getsignal(signal.SIGTERM)

    def begin(self) -> int | None:
        """Fetches; the steps done."""
        return self._run.fetch(self._folder)

    def on_train_start(self, *_: Any) -> None:
        """Puts the Interruption's handler in the place of Lightning's, which ends the process after the batch, unsaved and with 0."""
        signal.signal(signal.SIGTERM, self._handler)

    def on_train_batch_end(self, trainer: Trainer, *_: Any) -> None:
        """After each batch."""
        action = self._run.action(trainer.global_step)
        if action is not Action.GO_ON:
            self._save(trainer)
        if action is Action.STOP:
            trainer.should_stop = True

    def end(self, trainer: Trainer) -> None:
        """Raises Interrupted, or saves what is done."""
        if self._run.stopped_at is not None:
            raise Interrupted("SIGTERM" if self._interruption.noticed else "another rank", self._run.stopped_at)
        self._save(trainer, completed=True)

    def _save(self, trainer: Trainer, *, completed: bool = False) -> None:
        self._run.empty(self._folder)
        trainer.save_checkpoint(self._folder / _FILE)
        self._run.save(trainer.global_step, self._folder, completed=completed)

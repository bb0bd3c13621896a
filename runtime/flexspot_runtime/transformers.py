"""Integration of Hugging Face's Trainer: trains, resumes automatically, and stops in time. Extra: `transformers`.

    trainer = Trainer(model=model, args=TrainingArguments(scratch, save_strategy="no", ...), train_dataset=dataset)
    with Interruption() as interruption:
        train(trainer, interruption)

Trainer writes to its `output_dir`, on a scratch disk; checkpoints are copied from there to CHECKPOINT_DIR. Tried with 5.24 on CPUs.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch.distributed as dist
from transformers import TrainerCallback
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from flexspot_runtime.checkpointer import Checkpointer
from flexspot_runtime.folder_run import FolderRun
from flexspot_runtime.group import Action, Group
from flexspot_runtime.interruption import Interrupted
from flexspot_runtime.storage import LocalFolder
from flexspot_runtime.torch import group_of_all

if TYPE_CHECKING:
    from transformers import Trainer, TrainerControl, TrainerState, TrainingArguments
    from transformers.trainer_utils import TrainOutput

    from flexspot_runtime.interruption import Interruption
    from flexspot_runtime.schedule import Schedule
    from flexspot_runtime.storage import Storage


def train(
    trainer: Trainer,
    interruption: Interruption,
    *,
    storage: Storage | None = None,
    schedule: Schedule | None = None,
    agree_seconds: float = 1.0,
) -> TrainOutput:
    """Run `trainer.train` from the newest checkpoint on.

    storage: default LocalFolder(), which is CHECKPOINT_DIR.
    schedule: default Daly's interval. Trainer's own `save_steps` apply, too.

    Raises Interrupted (143) after a warning, once a checkpoint is saved.
    """
    group = group_of_all() if dist.is_initialized() else Group()
    checkpointer = Checkpointer(storage or LocalFolder(), group=group, sharded=True)
    run = FolderRun(checkpointer, interruption, schedule, agree_seconds)
    fetched = Path(trainer.args.output_dir or ".", f"{PREFIX_CHECKPOINT_DIR}-flexspot")
    resumed = run.fetch(fetched)
    trainer.add_callback(Saving(run))
    output = trainer.train(resume_from_checkpoint=None if resumed is None else str(fetched))
    if run.stopped_at is not None:
        raise Interrupted("SIGTERM" if interruption.noticed else "another rank", run.stopped_at)
    return output


class Saving(TrainerCallback):
    """Makes Trainer save and stop when the run decides so, and stores each folder that it saves as a checkpoint."""

    def __init__(self, run: FolderRun) -> None:
        self._run = run

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> TrainerControl:
        """Act after each step of the optimizer."""
        del args, kwargs
        action = self._run.action(state.global_step)
        last = state.global_step >= state.max_steps
        control.should_save = control.should_save or action is not Action.GO_ON or last
        control.should_training_stop = control.should_training_stop or action is Action.STOP
        return control

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Act after Trainer has written its folder."""
        del control, kwargs
        folder = Path(args.output_dir or ".", f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}")
        counts = self._run.save(state.global_step, folder, completed=state.global_step >= state.max_steps)
        if counts and state.is_local_process_zero and not args.load_best_model_at_end:
            # The scratch disk is small, and the checkpoint is stored elsewhere.
            shutil.rmtree(folder, ignore_errors=True)

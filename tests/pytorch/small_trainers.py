"""A small model in Hugging Face's Trainer and one in Lightning: `python small_trainers.py transformers|lightning STEPS SCRATCH RESULT`.

Kill it at any time and start it again with the same CHECKPOINT_DIR. At the end, RESULT has a checksum of the weights, and the number of
epochs. Rank 0 appends the number of steps done to the file TRIAL_STEPS.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from pathlib import Path
from typing import Any

import torch
from flexspot_runtime import EverySteps, Interruption
from torch import nn
from torch.utils.data import TensorDataset

EVERY_STEPS = 10
BATCH = 4
STEP_SECONDS = 0.02
STEPS_VARIABLE = "TRIAL_STEPS"
DEVICE = os.environ.get("TRIAL_DEVICE", "cpu")


def report(step: int) -> None:
    """Append the step, so that the trial knows when to kill."""
    if os.environ.get("RANK", "0") == "0":
        with Path(os.environ[STEPS_VARIABLE]).open("a") as file:
            file.write(f"{step}\n")


def with_transformers(steps: int, scratch: Path, interruption: Interruption) -> tuple[nn.Module, float]:
    """Train a tiny GPT-2 with random weights on random tokens."""
    from flexspot_runtime.transformers import train  # noqa: PLC0415 -- likewise
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments  # noqa: PLC0415 -- one of the two

    class Slow(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            del args, control
            report(state.global_step)
            time.sleep(STEP_SECONDS)

    torch.manual_seed(0)
    # Several epochs, which end anywhere.
    tokens = torch.randint(100, (97, 8))
    rows = [{"input_ids": row, "labels": row} for row in tokens]
    model = GPT2LMHeadModel(GPT2Config(vocab_size=100, n_positions=8, n_embd=16, n_layer=1, n_head=2))
    arguments = TrainingArguments(
        str(scratch),
        max_steps=steps,
        per_device_train_batch_size=BATCH,
        save_strategy="no",
        report_to=[],
        use_cpu=DEVICE == "cpu",
        full_determinism=DEVICE != "cpu",
        disable_tqdm=True,
    )
    trainer = Trainer(model=model, args=arguments, train_dataset=rows, callbacks=[Slow()])
    train(trainer, interruption, schedule=EverySteps(EVERY_STEPS), agree_seconds=0.05)
    assert trainer.state.epoch is not None
    return model, trainer.state.epoch


def with_lightning(steps: int, scratch: Path, interruption: Interruption) -> tuple[nn.Module, float]:
    """Train a regression: shuffled data in several epochs, dropout, gradients of two batches for a step, and a decreasing learning rate."""
    import lightning  # noqa: PLC0415 -- one of the two
    from flexspot_runtime.lightning import fit  # noqa: PLC0415 -- likewise
    from flexspot_runtime.torch_data import ResumableLoader  # noqa: PLC0415 -- likewise

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.2), nn.ReLU(), nn.Linear(16, 1))

        def training_step(self, batch: list[torch.Tensor], _: int) -> torch.Tensor:
            report(self.trainer.global_step)
            time.sleep(STEP_SECONDS / 2)
            return (self.layers(batch[0]) - batch[1]).square().mean()

        def configure_optimizers(self) -> Any:
            optimizer = torch.optim.Adam(self.parameters(), lr=0.01)
            schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=3, gamma=0.9)
            return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "epoch"}}

    torch.manual_seed(0)
    # Seven batches on one rank, four on two ranks: an epoch's last step has one.
    inputs = torch.randn(26, 8)
    loader = ResumableLoader(TensorDataset(inputs, inputs.sum(1, keepdim=True)), batch_size=BATCH, shuffle=True, seed=3)
    module = Module()
    trainer = lightning.Trainer(
        max_steps=steps,
        max_epochs=-1,
        accumulate_grad_batches=2,
        accelerator=DEVICE,
        deterministic=True,
        devices=int(os.environ.get("LOCAL_WORLD_SIZE", "1")),
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=scratch,
    )
    torch.manual_seed(int(os.environ.get("RANK", "0")))
    fit(
        trainer,
        module,
        interruption,
        schedule=EverySteps(EVERY_STEPS),
        agree_seconds=0.05,
        scratch=scratch / "checkpoint",
        train_dataloaders=loader,
    )
    # The number of started epochs: a run whose last step was done before this start ends none.
    return module, trainer.fit_loop.epoch_progress.total.ready


def main() -> None:
    """Train."""
    kind, steps, scratch, result = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4])
    torch.set_num_threads(1)
    with Interruption() as interruption:
        model, epochs = (with_transformers if kind == "transformers" else with_lightning)(steps, scratch, interruption)
    weights = b"".join(parameter.detach().cpu().numpy().tobytes() for parameter in model.parameters())
    if os.environ.get("RANK", "0") == "0":
        result.write_text(f"{hashlib.sha256(weights).hexdigest()} after {epochs} epochs")


if __name__ == "__main__":
    main()

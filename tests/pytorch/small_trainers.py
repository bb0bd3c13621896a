"""The same small model in Hugging Face's Trainer and in Lightning: `python small_trainers.py transformers|lightning STEPS SCRATCH RESULT`.

Kill it as you like and start it again with the same CHECKPOINT_DIR. In the end RESULT has a checksum of the weights.
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
from torch.utils.data import DataLoader, TensorDataset

EVERY_STEPS = 10
BATCH = 4
STEP_SECONDS = 0.02


def with_transformers(steps: int, scratch: Path, interruption: Interruption) -> nn.Module:
    """A tiny GPT-2 of random weights on random tokens."""
    from flexspot_runtime.transformers import train  # noqa: PLC0415 -- likewise
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments  # noqa: PLC0415 -- one of the two

    class Slow(TrainerCallback):
        def on_step_end(self, *_: Any, **__: Any) -> None:
            print("step", flush=True)  # noqa: T201 -- so that the trial knows when to kill
            time.sleep(STEP_SECONDS)

    torch.manual_seed(0)
    tokens = torch.randint(100, (steps * BATCH * 2, 8))
    rows = [{"input_ids": row, "labels": row} for row in tokens]
    model = GPT2LMHeadModel(GPT2Config(vocab_size=100, n_positions=8, n_embd=16, n_layer=1, n_head=2))
    arguments = TrainingArguments(
        str(scratch), max_steps=steps, per_device_train_batch_size=BATCH, save_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True
    )
    trainer = Trainer(model=model, args=arguments, train_dataset=rows, callbacks=[Slow()])
    train(trainer, interruption, schedule=EverySteps(EVERY_STEPS), agree_seconds=0.05)
    return model


def with_lightning(steps: int, scratch: Path, interruption: Interruption) -> nn.Module:
    """A regression; an epoch has one batch, so that each is the same wherever it begins."""
    import lightning  # noqa: PLC0415 -- one of the two
    from flexspot_runtime.lightning import fit  # noqa: PLC0415 -- likewise

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(8, 1)

        def training_step(self, batch: list[torch.Tensor], _: int) -> torch.Tensor:
            print("step", flush=True)  # noqa: T201 -- so that the trial knows when to kill
            time.sleep(STEP_SECONDS)
            return (self.layer(batch[0]) - batch[1]).square().mean()

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.Adam(self.parameters(), lr=0.01)

    torch.manual_seed(0)
    inputs = torch.randn(BATCH, 8)
    loader = DataLoader(TensorDataset(inputs, inputs.sum(1, keepdim=True)), batch_size=BATCH)
    module = Module()
    trainer = lightning.Trainer(
        max_steps=steps,
        max_epochs=-1,
        accelerator="cpu",
        devices=int(os.environ.get("LOCAL_WORLD_SIZE", "1")),
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=scratch,
    )
    fit(
        trainer,
        module,
        interruption,
        schedule=EverySteps(EVERY_STEPS),
        agree_seconds=0.05,
        scratch=scratch / "checkpoint",
        train_dataloaders=loader,
    )
    return module


def main() -> None:
    """Trains."""
    kind, steps, scratch, result = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4])
    torch.set_num_threads(1)
    with Interruption() as interruption:
        model = (with_transformers if kind == "transformers" else with_lightning)(steps, scratch, interruption)
    weights = b"".join(parameter.detach().numpy().tobytes() for parameter in model.parameters())
    if os.environ.get("RANK", "0") == "0":
        result.write_text(hashlib.sha256(weights).hexdigest())


if __name__ == "__main__":
    main()

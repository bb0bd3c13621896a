"""A small model under DDP or FSDP2: `python small_trainer.py ddp|fsdp STEPS LOSSES`, with RANK and similar variables and CHECKPOINT_DIR.

Rank 0 appends each step and its loss to the file LOSSES, in full precision. Dropout and the batches use each rank's random generator, and
on a GPU (TRIAL_DEVICE=cuda) dropout uses the GPU's.
"""

from __future__ import annotations

import os
import random
import sys
import time
from datetime import timedelta
from pathlib import Path

import torch
from flexspot_runtime import Checkpointer, EverySteps, Interruption, LocalFolder, TrainingRun
from flexspot_runtime.torch import TorchState, in_world
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

EVERY_STEPS = 10
STEP_SECONDS = 0.01
DEVICE = os.environ.get("TRIAL_DEVICE", "cpu")


def main() -> None:
    """Train."""
    kind, total, losses = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(mode=True)
    with Interruption() as interruption, in_world(timeout=timedelta(seconds=60)) as group:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(32, 64), nn.Dropout(0.1), nn.ReLU(), nn.Linear(64, 1)).to(DEVICE)
        if kind == "ddp":
            # Otherwise DDP reorders its buckets after the first step of each start, and sums in another order differ in the last bit.
            model = DistributedDataParallel(model, find_unused_parameters=True)
        else:
            fully_shard(model, mesh=init_device_mesh(DEVICE, (group.world_size,)))
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=total)
        torch.manual_seed(1 + group.rank)
        random.seed(group.rank)
        state = TorchState(model, optimizer, scheduler=scheduler)
        checkpointer = Checkpointer(LocalFolder(), group=group, sharded=True, barrier_seconds=30)
        run = TrainingRun(
            checkpointer, interruption, snapshot=state.snapshot, load=state.load, schedule=EverySteps(EVERY_STEPS), agree_seconds=0.05
        )
        for step in run.steps(total):
            inputs = torch.randn(16, 32).to(DEVICE) * random.uniform(0.9, 1.1)  # noqa: S311 -- not secret
            loss = (model(inputs) - inputs.sum(1, keepdim=True)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            time.sleep(STEP_SECONDS)
            if group.rank == 0:
                with losses.open("a") as file:
                    file.write(f"{step} {float(loss.detach()).hex()}\n")


if __name__ == "__main__":
    main()

"""Time between steps of a transformer on a GPU, with and without a save: `gpu_steps.py RESULT`. It has some hundred million weights."""

from __future__ import annotations

import statistics
import sys
import time
from datetime import timedelta
from pathlib import Path

import torch
from flexspot_runtime import Checkpointer, EverySteps, Interruption, LocalFolder, TrainingRun
from flexspot_runtime.torch import TorchState, in_world
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS, EVERY_STEPS = 120, 30
WARM_UP = 20
WIDTH, LAYERS, LENGTH, BATCH = 1024, 24, 512, 64
"""Some 300 million weights in 32 bits; with AdamW's two moments 3.6 GB."""

INTERVAL_SECONDS = 300
"""Seconds between two saves. Daly's interval is longer for such a model, unless nodes live for minutes only."""


def main(result: Path) -> None:
    """Train, and write the medians in seconds of a step, of the time between two and of a save, and the state's gigabytes."""
    with Interruption() as interruption, in_world(timeout=timedelta(seconds=120)) as group:
        torch.manual_seed(0)
        layer = nn.TransformerEncoderLayer(WIDTH, 16, 4 * WIDTH, batch_first=True, dropout=0.1)
        model = DistributedDataParallel(nn.TransformerEncoder(layer, LAYERS).cuda(), device_ids=[0])
        optimizer = torch.optim.AdamW(model.parameters(), fused=True)
        state = TorchState(model, optimizer)
        checkpointer = Checkpointer(LocalFolder(), group=group, sharded=True)
        run = TrainingRun(checkpointer, interruption, snapshot=state.snapshot, load=state.load, schedule=EverySteps(EVERY_STEPS))
        inputs = torch.randn(BATCH, LENGTH, WIDTH, device="cuda")
        between, steps, saves = list[float](), list[float](), list[float]()
        ended: float | None = None
        for step in run.steps(STEPS):
            started = time.perf_counter()
            if ended is not None:
                (saves if step % EVERY_STEPS == 0 else between).append(started - ended)
            with torch.autocast("cuda", torch.bfloat16):
                loss = model(inputs).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            torch.cuda.synchronize()
            ended = time.perf_counter()
            steps.append(ended - started)
        tensors = list(model.parameters())
    size = 3 * sum(each.numel() * each.element_size() for each in tensors) / 1e9
    # The first save allocates the copy.
    measured = (statistics.median(steps[WARM_UP:]), statistics.median(between[WARM_UP:]), statistics.median(saves[1:]), size)
    print(f"saves took {[round(each, 3) for each in saves]} s", file=sys.stderr)  # noqa: T201 -- the figures
    result.write_text(" ".join(map(str, measured)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""A training program of several ranks on one machine: `python group_trainer.py FOLDER SOCKET` with RANK and WORLD_SIZE.

An all-reduce keeps its ranks in step, as with torch.distributed. Each has a part of the state that depends on all other parts.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from typing import Any, cast

from flexspot_runtime import (
    Checkpointer,
    CheckpointReader,
    CheckpointWriter,
    EverySteps,
    Group,
    Interruption,
    LocalFolder,
    ProgressFile,
    TrainingRun,
)

TOTAL_STEPS = 60
EVERY_STEPS = 5
MODULUS = (1 << 61) - 1


class Star:
    """An all-gather through rank 0."""

    def __init__(self, path: str, rank: int, size: int) -> None:
        if rank == 0:
            server = socket.socket(socket.AF_UNIX)
            server.bind(path)
            server.listen(size)
            peers = [server.accept()[0].makefile("rw") for _ in range(size - 1)]
            # In the order of ranks, not of arrival.
            self._peers = [peer for _, peer in sorted((_receive(peer), peer) for peer in peers)]
        else:
            self._peers = [_connected(path).makefile("rw")]
            _send(self._peers[0], rank)
        self._rank = rank

    def gather(self, value: Any) -> list[Any]:
        """Return all ranks' values, rank 0's first."""
        if self._rank:
            _send(self._peers[0], value)
            return cast("list[Any]", _receive(self._peers[0]))
        values = [value, *(_receive(peer) for peer in self._peers)]
        for peer in self._peers:
            _send(peer, values)
        return values


def _connected(path: str) -> socket.socket:
    while True:
        peer = socket.socket(socket.AF_UNIX)
        try:
            peer.connect(path)
        except (FileNotFoundError, ConnectionRefusedError):
            peer.close()
            continue
        return peer


def _send(peer: Any, value: Any) -> None:
    peer.write(json.dumps(value) + "\n")
    peer.flush()


def _receive(peer: Any) -> Any:
    line = peer.readline()
    if not line:
        # The other rank is dead: end as an all-reduce would.
        sys.exit(1)
    return json.loads(line)


def step_of_all(parts: list[int]) -> int:
    """Return what a rank adds to its part. It depends on all parts, so that mixing checkpoints gives another result."""
    return sum((index + 1) * part * part for index, part in enumerate(parts)) % MODULUS


def main() -> None:
    folder, path = sys.argv[1:]
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    star = Star(path, rank, size)
    group = Group(rank, size, largest=lambda wanted: max(star.gather(wanted)), broadcast=lambda text: cast("str", star.gather(text)[0]))
    part = [rank + 1]

    def save(writer: CheckpointWriter) -> None:
        writer.put("part", str(part[0]).encode())
        writer.put("ballast", bytes(1 << 16))

    def load(reader: CheckpointReader) -> None:
        part[0] = int(reader.get("part"))

    with Interruption(15.0) as interruption:
        storage = LocalFolder(folder)
        checkpointer = Checkpointer(storage, group=group, sharded=True, barrier_seconds=20)
        progress = ProgressFile(storage, f"progress-{rank}.json")
        run = TrainingRun(checkpointer, interruption, save=save, load=load, schedule=EverySteps(EVERY_STEPS), progress=progress)
        for _ in run.steps(TOTAL_STEPS):
            print("training", flush=True)  # noqa: T201 -- so that the trial knows when to kill
            part[0] = (part[0] + step_of_all(star.gather(part[0]))) % MODULUS


if __name__ == "__main__":
    main()

"""A double of torchrun of torch 2.15 for signals and exit codes: `python torchrun_double.py RANKS COMMAND...`.

On SIGTERM it sends SIGTERM to its workers, kills them after TORCH_ELASTIC_SHUTDOWN_TIMEOUT or 30 seconds, and ends with 1, by an exception.
When a worker fails it stops the others in the same way, and ends with 1 whatever the worker's code was. `make test-torch` compares it with
the real one.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress


class SignalError(Exception):
    """SignalException of torch.distributed.elastic.multiprocessing.api."""


def _raise(number: int, _: object) -> None:
    raise SignalError(number)


def main() -> int:
    ranks, command = int(sys.argv[1]), sys.argv[2:]
    signal.signal(signal.SIGTERM, _raise)
    first, node = int(os.environ.get("NODE_RANK", "0")) * ranks, int(os.environ.get("NNODES", "1"))
    workers = [
        subprocess.Popen(
            command,
            env={
                **os.environ,
                "RANK": str(first + rank),
                "LOCAL_RANK": str(rank),
                "WORLD_SIZE": str(node * ranks),
                "LOCAL_WORLD_SIZE": str(ranks),
            },
            start_new_session=True,
        )
        for rank in range(ranks)
    ]
    try:
        while True:
            codes = [worker.poll() for worker in workers]
            if all(code == 0 for code in codes):
                return 0
            if any(codes):
                return 1
            time.sleep(0.01)
    except SignalError:
        return 1
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _close(workers, float(os.environ.get("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "30")))


def _close(workers: list[subprocess.Popen[bytes]], seconds: float) -> None:
    for worker in workers:
        worker.terminate()
    end = time.monotonic() + seconds
    for worker in workers:
        with suppress(subprocess.TimeoutExpired):
            worker.wait(max(0.0, end - time.monotonic()))
        worker.kill()
        worker.wait()


if __name__ == "__main__":
    sys.exit(main())

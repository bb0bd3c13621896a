"""A worker that the kill tests start and kill: `python queue_worker.py QUEUE FOLDER`. It squares numbers."""

from __future__ import annotations

import sys

from flexspot_runtime import Interruption, LocalFolder, Results, Task, Worker
from flexspot_runtime.sqs_queue import SqsQueue

LEASE_SECONDS = 4
POISON = b"poison"


def square(task: Task) -> bytes:
    if task.body == POISON:
        raise RuntimeError("this task fails whenever it is tried")
    return b"%d" % int(task.body) ** 2


def key(body: bytes) -> str:
    return f"square-of-{body.decode()}"


def main() -> None:
    name, folder = sys.argv[1:]
    with Interruption(5.0) as interruption:
        worker = Worker(
            SqsQueue(name, lease_seconds=LEASE_SECONDS),
            Results(LocalFolder(folder)),
            square,
            interruption,
            key=key,
            batch=10,
            wait_seconds=1.0,
            empty_receives=None,
            retry_seconds=0.0,
            reserve_seconds=1.0,
        )
        print("ready", flush=True)  # noqa: T201 -- so that the trial knows when to kill
        worker.run()


if __name__ == "__main__":
    main()

"""A worker that the kill tests start and kill: `python queue_worker.py sqs|pubsub QUEUE FOLDER`. It squares numbers."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from flexspot_runtime import Interruption, LocalFolder, Results, Task, Worker

if TYPE_CHECKING:
    from flexspot_runtime.worker import WorkQueue

LEASE_SECONDS = 4
POISON = b"poison"


def square(task: Task) -> bytes:
    if task.body == POISON:
        raise RuntimeError("this task fails whenever it is tried")
    return b"%d" % int(task.body) ** 2


def key(body: bytes) -> str:
    return f"square-of-{body.decode()}"


def queue(kind: str, name: str) -> WorkQueue:
    # Each brings a client that takes a second to load, so only the one that is asked for.
    if kind == "sqs":
        from flexspot_runtime.sqs_queue import SqsQueue  # noqa: PLC0415 -- as above

        return SqsQueue(name, lease_seconds=LEASE_SECONDS)
    from flexspot_runtime.pubsub_queue import PubsubQueue  # noqa: PLC0415 -- as above

    return PubsubQueue(name, lease_seconds=LEASE_SECONDS)


def main() -> None:
    kind, name, folder = sys.argv[1:]
    with Interruption(5.0) as interruption:
        worker = Worker(
            queue(kind, name),
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

"""Scores texts from a queue, one result each: `python score_batch.py QUEUE_URL FOLDER`, an SQS queue.

Start as many as you like and stop any of them at any time: a text whose worker is gone comes again to another one, and its result, an
object named after the text, is there once. An interrupted worker ends with 0: the queue knows what is left. Needs the extra `sqs`; for
Pub/Sub take PubsubQueue, for a bucket without a mount FsspecStorage.
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

from flexspot_runtime import Interruption, LocalFolder, Results, Task, Worker
from flexspot_runtime.sqs_queue import SqsQueue

GOOD, BAD = {"good", "great", "fine"}, {"bad", "poor", "broken"}


def score(task: Task) -> bytes:
    """Stands for a model: good words less bad ones."""
    words = task.body.decode().lower().split()
    return json.dumps(
        {"text": task.body.decode(), "score": sum(word in GOOD for word in words) - sum(word in BAD for word in words)}
    ).encode()


def main() -> None:
    """Works until the queue is empty or the machine goes."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    queue_url, folder = sys.argv[1:]
    Path(folder).mkdir(parents=True, exist_ok=True)
    with Interruption() as interruption:
        report = Worker(SqsQueue(queue_url), Results(LocalFolder(folder)), score, interruption, batch=10, wait_seconds=1.0).run()
    print(report)  # noqa: T201 -- the result


if __name__ == "__main__":
    main()

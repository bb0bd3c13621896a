"""Scores texts from a queue, one result each: `python score_batch.py QUEUE_URL FOLDER`, an SQS queue.

Start any number of workers and stop any of them at any time. A text whose worker is gone is delivered to another one. Its result, an object
named after the text, exists once. An interrupted worker ends with 0: the queue knows the remaining texts. Needs the extra `sqs`. For
Pub/Sub use PubsubQueue, for a bucket without a mount FsspecStorage.
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
    """Return the number of good words less bad ones, in place of a model."""
    words = task.body.decode().lower().split()
    return json.dumps(
        {"text": task.body.decode(), "score": sum(word in GOOD for word in words) - sum(word in BAD for word in words)}
    ).encode()


def main() -> None:
    """Work until the queue is empty or the machine is taken."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    queue_url, folder = sys.argv[1:]
    Path(folder).mkdir(parents=True, exist_ok=True)
    with Interruption() as interruption:
        report = Worker(SqsQueue(queue_url), Results(LocalFolder(folder)), score, interruption, batch=10, wait_seconds=1.0).run()
    print(report)  # noqa: T201 -- the result


if __name__ == "__main__":
    main()

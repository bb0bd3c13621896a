"""Workers that share an SQS queue are killed, and every task is done."""

from __future__ import annotations

import json
import os
import random
from itertools import islice
from typing import TYPE_CHECKING

import pytest
from flexspot_runtime import LocalFolder, Results
from flexspot_runtime.sqs_queue import SqsQueue
from memory_folder import folder_in_memory
from queue_worker import POISON
from sqs_server import sqs_server
from worker_kills import KILLS, MESSAGES, Workers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import MessageTypeDef

pytestmark = pytest.mark.slow

AT_ONCE = 100
"""Number of waiting messages: moto scans all of them at each request."""

ATTEMPTS = 8
"""Attempts of each task: a task must not become a dead letter because of killed workers."""


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[SQSClient]:
    with sqs_server(monkeypatch) as client:
        yield client


def queues(client: SQSClient) -> tuple[str, str]:
    dead = client.create_queue(QueueName="work-dead-letters")["QueueUrl"]
    arn = client.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    redrive = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": ATTEMPTS})
    return client.create_queue(QueueName="work", Attributes={"RedrivePolicy": redrive})["QueueUrl"], dead


def waiting(client: SQSClient, queue: str) -> tuple[int, int]:
    """Return the numbers of waiting messages and of leased messages."""
    attributes = client.get_queue_attributes(
        QueueUrl=queue, AttributeNames=["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    )["Attributes"]
    return int(attributes["ApproximateNumberOfMessages"]), int(attributes["ApproximateNumberOfMessagesNotVisible"])


def received(client: SQSClient, queue: str) -> list[MessageTypeDef]:
    return client.receive_message(QueueUrl=queue, MaxNumberOfMessages=10).get("Messages", [])


@pytest.fixture
def results_folder() -> Iterator[Path]:
    with folder_in_memory() as folder:
        yield folder


@pytest.mark.kills
def test_every_task_has_one_result_whoever_is_killed(client: SQSClient, results_folder: Path) -> None:
    queue, dead = queues(client)
    client.send_message(QueueUrl=queue, MessageBody=POISON.decode())
    numbers = iter(range(MESSAGES))

    def is_done() -> bool:
        while sum(waiting(client, queue)) < AT_ONCE and (batch := list(islice(numbers, 10))):
            client.send_message_batch(QueueUrl=queue, Entries=[{"Id": str(number), "MessageBody": str(number)} for number in batch])
        return waiting(client, queue) == (0, 0)

    results = Results(LocalFolder(results_folder))
    workers = Workers(queue, results_folder, dict(os.environ))

    workers.kill_until(is_done, KILLS, random.Random(1))  # noqa: S311 -- repeatable, not secret

    assert workers.events["SIGKILL"] >= 1
    assert {key: int(results.get(key)) for key in results.keys()} == {  # noqa: SIM118 -- no mapping
        f"square-of-{number}": number**2 for number in range(MESSAGES)
    }
    [given_up] = received(client, dead)
    assert given_up.get("Body") == POISON.decode()


@pytest.mark.parametrize("lease_seconds", [0.0, 43_201.0])
def test_a_lease_that_sqs_refuses_is_refused(lease_seconds: float) -> None:
    with pytest.raises(ValueError, match="SQS takes 1 to 43200"):
        SqsQueue("https://sqs.example/queue", lease_seconds=lease_seconds)


def test_a_delivery_is_leased_counted_extended_given_back_and_finished(client: SQSClient) -> None:
    url, _ = queues(client)
    client.send_message(QueueUrl=url, MessageBody="tile-7")
    queue = SqsQueue(url, lease_seconds=60)

    [first] = queue.receive(10, 0)
    queue.extend(first)
    assert queue.receive(10, 0) == []
    queue.give_back(first)
    [second] = queue.receive(10, 0)
    assert (second.body, first.attempt, second.attempt) == (b"tile-7", 1, 2)
    queue.finish(second)

    assert waiting(client, url) == (0, 0)


def test_a_refusal_by_sqs_is_an_oserror(client: SQSClient) -> None:
    url, _ = queues(client)

    with pytest.raises(OSError, match="SQS: An error occurred"):
        SqsQueue(f"{url}-absent").receive(1, 0)

"""The queues that SqsWorkQueue declares, made from its own inputs in moto: what becomes of a task that nobody finishes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import boto3
import moto.sqs.models
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws
from sqs_queue_args import REGION, work_queue_args

from components.storage.sqs_work_queue import SqsWorkQueue

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.literals import QueueAttributeNameType
    from mypy_boto3_sqs.type_defs import MessageTypeDef

pytestmark = pytest.mark.thorough

QUEUE = "aws:sqs/queue:Queue"
QUEUE_POLICY = "aws:sqs/queuePolicy:QueuePolicy"

# What the provider sends to SQS for each input.
ATTRIBUTES: dict[str, QueueAttributeNameType] = {
    "visibilityTimeoutSeconds": "VisibilityTimeout",
    "messageRetentionSeconds": "MessageRetentionPeriod",
    "receiveWaitTimeSeconds": "ReceiveMessageWaitTimeSeconds",
    "sqsManagedSseEnabled": "SqsManagedSseEnabled",
    "redrivePolicy": "RedrivePolicy",
}

ATTEMPTS = 3
LEASE_SECONDS = 200

Register = Callable[[Callable[[], object]], Any]


@dataclass
class Clock:
    """Moto's time, which goes on when a test says so."""

    seconds: float = 1_800_000_000.0

    def milliseconds(self) -> float:
        return self.seconds * 1000


@dataclass(frozen=True)
class Queues:
    """The pair as SQS has it, as a worker and whoever sends tasks see it."""

    client: SQSClient
    queue: str
    dead_letters: str

    def send(self, task: str) -> None:
        self.client.send_message(QueueUrl=self.queue, MessageBody=task)

    def receive(self, queue: str | None = None) -> list[MessageTypeDef]:
        # 0: the queues' own waiting time would make the test wait, too.
        return self.client.receive_message(QueueUrl=queue or self.queue, WaitTimeSeconds=0).get("Messages", [])

    def attributes(self, queue: str) -> dict[QueueAttributeNameType, str]:
        return self.client.get_queue_attributes(QueueUrl=queue, AttributeNames=["All"])["Attributes"]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(moto.sqs.models, "unix_time_millis", clock.milliseconds)
    monkeypatch.setattr(moto.sqs.models, "unix_time", lambda: clock.seconds)
    return clock


@pytest.fixture
def queues(register: Register, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Iterator[Queues]:
    assert clock.seconds
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    changes = {"max_attempts": ATTEMPTS, "lease_seconds": LEASE_SECONDS}
    registered = register(lambda: SqsWorkQueue("images", work_queue_args(**changes)))
    with mock_aws():
        # The overloads of services whose stubs are not installed are unknown.
        client = boto3.client("sqs", region_name=REGION)
        urls: dict[str, str] = {}
        # In the order of registration, which is the one that the engine keeps to where one depends on another.
        for kind, name, inputs in registered.resources:
            if kind == QUEUE:
                attributes: dict[QueueAttributeNameType, str] = {
                    sent: _text(inputs[key]) for key, sent in ATTRIBUTES.items() if key in inputs
                }
                urls[f"{name}-id"] = client.create_queue(QueueName=inputs["name"], Attributes=attributes, tags=inputs["tags"])["QueueUrl"]
            elif kind == QUEUE_POLICY:
                client.set_queue_attributes(QueueUrl=urls[inputs["queueUrl"]], Attributes={"Policy": inputs["policy"]})
        # The redrive allow policy is not sent: moto 5.2 does not know it, and forgets a queue's policy with it.
        yield Queues(client, urls["images-queue-id"], urls["images-dead-letters-id"])


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value if isinstance(value, str) else int(value))


def test_sqs_takes_what_the_component_declares(queues: Queues) -> None:
    queue, dead_letters = queues.attributes(queues.queue), queues.attributes(queues.dead_letters)

    assert (queue["VisibilityTimeout"], queue["MessageRetentionPeriod"]) == ("200", "604800")
    assert queue["ReceiveMessageWaitTimeSeconds"] == dead_letters["ReceiveMessageWaitTimeSeconds"] == "20"
    assert queue["SqsManagedSseEnabled"] == dead_letters["SqsManagedSseEnabled"] == "true"
    assert dead_letters["QueueArn"] in queue["RedrivePolicy"]
    assert queue["QueueArn"] in queue["Policy"]
    assert dead_letters["QueueArn"] in dead_letters["Policy"]


def test_a_task_is_one_workers_until_its_lease_ends(queues: Queues, clock: Clock) -> None:
    queues.send("tile-7")

    [received] = queues.receive()
    assert queues.receive() == [], "a second worker gets nothing"
    clock.seconds += LEASE_SECONDS - 1
    assert queues.receive() == []
    clock.seconds += 2
    [again] = queues.receive()

    assert (received.get("Body"), again.get("Body")) == ("tile-7", "tile-7")


def test_a_worker_that_needs_longer_keeps_its_task_by_extending_the_lease(queues: Queues, clock: Clock) -> None:
    queues.send("tile-7")
    [received] = queues.receive()

    clock.seconds += LEASE_SECONDS - 1
    queues.client.change_message_visibility(
        QueueUrl=queues.queue, ReceiptHandle=received.get("ReceiptHandle", ""), VisibilityTimeout=LEASE_SECONDS
    )
    clock.seconds += LEASE_SECONDS - 1

    assert queues.receive() == []


def test_a_worker_that_is_told_to_stop_gives_its_task_back_at_once(queues: Queues, clock: Clock) -> None:
    queues.send("tile-7")
    [received] = queues.receive()

    queues.client.change_message_visibility(QueueUrl=queues.queue, ReceiptHandle=received.get("ReceiptHandle", ""), VisibilityTimeout=0)
    clock.seconds += 0.1

    [again] = queues.receive()
    assert again.get("Body") == "tile-7"


def test_a_task_that_is_finished_does_not_come_again(queues: Queues, clock: Clock) -> None:
    queues.send("tile-7")
    [received] = queues.receive()

    queues.client.delete_message(QueueUrl=queues.queue, ReceiptHandle=received.get("ReceiptHandle", ""))
    clock.seconds += LEASE_SECONDS + 1

    assert queues.receive() == queues.receive(queues.dead_letters) == []


def test_a_task_that_nobody_finishes_is_given_up_after_its_attempts(queues: Queues, clock: Clock) -> None:
    queues.send("tile-13")
    for attempt in range(ATTEMPTS):
        [received] = queues.receive()
        assert received.get("Body") == "tile-13", f"attempt {attempt}"
        assert queues.receive(queues.dead_letters) == [], "not given up before"
        clock.seconds += LEASE_SECONDS + 1

    assert queues.receive() == [], "the queue goes on without it"

    [given_up] = queues.receive(queues.dead_letters)
    assert given_up.get("Body") == "tile-13"


def test_a_dead_letter_queue_that_is_not_there_would_be_refused(queues: Queues) -> None:
    """So that the test above could fail: moto reads the redrive policy."""
    redrive = '{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:123456789012:nowhere","maxReceiveCount":3}'

    with pytest.raises(ClientError, match="Could not find DLQ for arn:aws:sqs:us-east-1:123456789012:nowhere"):
        queues.client.create_queue(QueueName="other", Attributes={"RedrivePolicy": redrive})

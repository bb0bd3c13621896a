"""The queues of SqsWorkQueue, created in moto from its own inputs: an unfinished task becomes a dead letter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import boto3
from moto import mock_aws
from sqs_queue_args import REGION, work_queue_args

from flexspot.components.storage.sqs_work_queue import SqsWorkQueue

if TYPE_CHECKING:
    from component_types import Register
    from mypy_boto3_sqs.literals import QueueAttributeNameType

QUEUE = "aws:sqs/queue:Queue"
QUEUE_POLICY = "aws:sqs/queuePolicy:QueuePolicy"

# SQS attribute that the provider sends for each input.
ATTRIBUTES: dict[str, QueueAttributeNameType] = {
    "visibilityTimeoutSeconds": "VisibilityTimeout",
    "messageRetentionSeconds": "MessageRetentionPeriod",
    "receiveWaitTimeSeconds": "ReceiveMessageWaitTimeSeconds",
    "sqsManagedSseEnabled": "SqsManagedSseEnabled",
    "redrivePolicy": "RedrivePolicy",
}

ATTEMPTS = 3


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value if isinstance(value, str) else int(value))


@mock_aws
def test_sqs_accepts_both_queues_and_an_unfinished_task_becomes_a_dead_letter_after_its_attempts(register: Register) -> None:
    client = boto3.client("sqs", region_name=REGION)
    urls: dict[str, str] = {}
    # In the order of registration, which the engine also uses for dependencies.
    for kind, name, inputs in register(lambda: SqsWorkQueue("images", work_queue_args(max_attempts=ATTEMPTS))).resources:
        if kind == QUEUE:
            sent: dict[QueueAttributeNameType, str] = {ATTRIBUTES[key]: _text(inputs[key]) for key in inputs if key in ATTRIBUTES}
            urls[f"{name}-id"] = client.create_queue(QueueName=inputs["name"], Attributes=sent, tags=inputs["tags"])["QueueUrl"]
        elif kind == QUEUE_POLICY:
            client.set_queue_attributes(QueueUrl=urls[inputs["queueUrl"]], Attributes={"Policy": inputs["policy"]})
    # The redrive allow policy is not sent: moto 5.2 does not support it, and forgets a queue's policy with it.

    def receive(queue: str) -> list[str]:
        """Return a task that a worker receives and returns at once."""
        answer = client.receive_message(QueueUrl=urls[queue], WaitTimeSeconds=0, VisibilityTimeout=0)
        return [each.get("Body", "") for each in answer.get("Messages", [])]

    client.send_message(QueueUrl=urls["images-queue-id"], MessageBody="tile-13")
    for attempt in range(ATTEMPTS):
        assert receive("images-queue-id") == ["tile-13"], f"attempt {attempt}"
        assert receive("images-dead-letters-id") == [], "not given up before"

    assert receive("images-queue-id") == [], "the queue goes on without it"
    assert receive("images-dead-letters-id") == ["tile-13"]

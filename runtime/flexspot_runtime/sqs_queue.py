"""An SQS queue for workers. Extra: `sqs`."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from flexspot_runtime.worker import Delivery

if TYPE_CHECKING:
    from collections.abc import Generator

    from mypy_boto3_sqs import SQSClient

_MOST_PER_RECEIVE = 10
_MOST_WAIT_SECONDS = 20
_MOST_LEASE_SECONDS = 43_200
"""Also the limit of the total time since a message was received, extensions included: a task cannot take longer than 12 hours."""


class SqsQueue:
    """A standard queue. The worker's role needs sqs:ReceiveMessage, sqs:DeleteMessage and sqs:ChangeMessageVisibility.

    `lease_seconds` is requested with each message, whatever the queue's own visibility timeout is. Raises ValueError for a value that SQS
    rejects.

    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-visibility-timeout.html
    """

    def __init__(self, queue_url: str, *, lease_seconds: float = 60.0, client: SQSClient | None = None) -> None:
        if not 1 <= lease_seconds <= _MOST_LEASE_SECONDS:
            raise ValueError(f"lease_seconds is {lease_seconds}; SQS takes 1 to {_MOST_LEASE_SECONDS}")
        self.queue_url = queue_url
        self.lease_seconds = lease_seconds
        # The stubs declare boto3.client for installed services only.
        self._client: SQSClient = client or boto3.client("sqs")

    def receive(self, most: int, wait_seconds: float) -> list[Delivery]:
        """See WorkQueue."""
        with _as_oserror():
            answer = self._client.receive_message(
                QueueUrl=self.queue_url,
                MaxNumberOfMessages=min(most, _MOST_PER_RECEIVE),
                WaitTimeSeconds=min(round(wait_seconds), _MOST_WAIT_SECONDS),
                VisibilityTimeout=round(self.lease_seconds),
                MessageSystemAttributeNames=["ApproximateReceiveCount"],
            )
        return [
            Delivery(
                body=message.get("Body", "").encode(),
                receipt=message.get("ReceiptHandle", ""),
                attempt=int(message.get("Attributes", {}).get("ApproximateReceiveCount", "0")),
            )
            for message in answer.get("Messages", [])
        ]

    def extend(self, delivery: Delivery) -> None:
        """See WorkQueue."""
        self._change(delivery, self.lease_seconds)

    def finish(self, delivery: Delivery) -> None:
        """See WorkQueue."""
        with _as_oserror():
            self._client.delete_message(QueueUrl=self.queue_url, ReceiptHandle=delivery.receipt)

    def give_back(self, delivery: Delivery, after_seconds: float = 0.0) -> None:
        """See WorkQueue."""
        self._change(delivery, after_seconds)

    def _change(self, delivery: Delivery, seconds: float) -> None:
        with _as_oserror():
            self._client.change_message_visibility(
                QueueUrl=self.queue_url, ReceiptHandle=delivery.receipt, VisibilityTimeout=round(seconds)
            )


@contextmanager
def _as_oserror() -> Generator[None]:
    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise OSError(f"SQS: {error}") from error

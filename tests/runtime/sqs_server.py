"""A moto SQS server in this process, so that it outlives the workers. Its queues are safe with threads."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import boto3
from moto.sqs.models import Queue
from moto_server import moto_server

if TYPE_CHECKING:
    from collections.abc import Generator

    import pytest
    from mypy_boto3_sqs import SQSClient


def delete_in_place(queue: Queue, receipt_handle: str) -> None:
    """Delete a message from the list to which others append.

    Moto 5.2.5 writes a new list without the message. When two threads delete, the last one overwrites messages that a third has sent since
    the first began: a task is lost that no worker has received.
    """
    for message in tuple(queue._messages):  # noqa: SLF001 -- moto offers no other way
        if message.had_receipt_handle(receipt_handle):
            queue.pending_messages.discard(message)
            queue.deleted_messages.update(handle for handle in message.all_receipt_handles if handle)
            queue._messages.remove(message)  # noqa: SLF001 -- as above


@contextmanager
def sqs_server(monkeypatch: pytest.MonkeyPatch) -> Generator[SQSClient]:
    """Yield a client of the server. The environment is also that of its workers."""
    monkeypatch.setattr(Queue, "delete_message", delete_in_place)
    for name, value in {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_DEFAULT_REGION": "us-east-1"}.items():
        monkeypatch.setenv(name, value)
    with moto_server() as address:
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        # The stubs declare boto3.client for installed services only.
        yield boto3.client("sqs")

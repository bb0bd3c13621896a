"""What a worker asks of a queue that leases its messages: SQS, Pub/Sub."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message that is this worker's until its lease ends."""

    body: bytes
    receipt: str
    """Names the delivery, not the message, to the queue."""

    attempt: int
    """The how manieth delivery it is, from 1, as far as the queue counts; 0 when it does not."""


class WorkQueue(Protocol):
    """Delivers each message at least once. Methods raise OSError when the queue refuses or does not answer."""

    @property
    def lease_seconds(self) -> float:
        """How long a message is a worker's after it was received or extended."""
        ...

    def receive(self, most: int, wait_seconds: float) -> list[Delivery]:
        """Up to `most` messages; none when the wait ends without one."""
        ...

    def extend(self, delivery: Delivery) -> None:
        """Renews the lease."""
        ...

    def finish(self, delivery: Delivery) -> None:
        """The message is done with and does not come again."""
        ...

    def give_back(self, delivery: Delivery, after_seconds: float = 0.0) -> None:
        """Returns it to the queue, now or after a delay. The queue counts a failed attempt."""
        ...

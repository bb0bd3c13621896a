"""A queue in memory that leases messages, counts deliveries and moves messages to dead letters, by a test's clock."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

from flexspot_runtime.worker import Delivery

if TYPE_CHECKING:
    from manual_clock import ManualClock


@dataclass
class Message:
    body: bytes
    visible_at: float = 0.0
    receipt: str = ""
    attempts: int = 0


@dataclass
class MemoryQueue:
    clock: ManualClock
    lease_seconds: float = 30.0
    most_attempts: int = 3
    messages: list[Message] = field(default_factory=list[Message])
    dead_letters: list[bytes] = field(default_factory=list[bytes])
    calls: list[str] = field(default_factory=list[str])
    refuses: set[str] = field(default_factory=set[str])
    """Calls that fail."""

    def __post_init__(self) -> None:
        self._receipts = count(1)

    def send(self, *bodies: bytes) -> None:
        self.messages += [Message(body) for body in bodies]

    def receive(self, most: int, wait_seconds: float) -> list[Delivery]:
        self._call("receive", "")
        deliveries: list[Delivery] = []
        for message in list(self.messages):
            if message.visible_at > self.clock.seconds or len(deliveries) == most:
                continue
            if message.attempts == self.most_attempts:
                self.messages.remove(message)
                self.dead_letters.append(message.body)
                continue
            message.attempts += 1
            message.visible_at = self.clock.seconds + self.lease_seconds
            message.receipt = str(next(self._receipts))
            deliveries.append(Delivery(message.body, message.receipt, message.attempts))
        if not deliveries:
            self.clock.seconds += wait_seconds
        return deliveries

    def extend(self, delivery: Delivery) -> None:
        self._call("extend", delivery.body.decode())
        self._held(delivery).visible_at = self.clock.seconds + self.lease_seconds

    def finish(self, delivery: Delivery) -> None:
        self._call("finish", delivery.body.decode())
        self.messages.remove(self._held(delivery))

    def give_back(self, delivery: Delivery, after_seconds: float = 0.0) -> None:
        self._call("give back", delivery.body.decode())
        self._held(delivery).visible_at = self.clock.seconds + after_seconds

    def _held(self, delivery: Delivery) -> Message:
        for message in self.messages:
            if message.receipt == delivery.receipt:
                return message
        raise OSError("the lease has ended")

    def _call(self, call: str, body: str) -> None:
        self.calls.append(f"{call} {body}".strip())
        if call in self.refuses:
            raise OSError(f"{call} refused")

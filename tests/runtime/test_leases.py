from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from flexspot_runtime import Interruption
from flexspot_runtime.worker import LeaseKeeper
from manual_clock import ManualClock
from memory_queue import MemoryQueue

if TYPE_CHECKING:
    import pytest
    from flexspot_runtime.worker import Delivery

LONG_SECONDS = 30
"""Limit for a thread that is certain to come."""


class WatchedQueue(MemoryQueue):
    """Signals each call, and leases for so short a time that extensions follow each other at once."""

    def __init__(self, lease_seconds: float = 0.003) -> None:
        super().__init__(ManualClock(), lease_seconds)
        self.extended = threading.Semaphore(0)
        self.given_back = threading.Semaphore(0)

    def extend(self, delivery: Delivery) -> None:
        try:
            super().extend(delivery)
        finally:
            self.extended.release()

    def give_back(self, delivery: Delivery, after_seconds: float = 0.0) -> None:
        super().give_back(delivery, after_seconds)
        self.given_back.release()


def test_leases_are_extended_repeatedly() -> None:
    queue = WatchedQueue()
    queue.send(b"a")
    with LeaseKeeper(queue, Interruption(15.0, clock=queue.clock), reserve_seconds=3) as leases:
        leases.hold(queue.receive(1, 0))
        assert all(queue.extended.acquire(timeout=LONG_SECONDS) for _ in range(5))


def test_a_failed_extension_is_logged_and_retried(caplog: pytest.LogCaptureFixture) -> None:
    queue = WatchedQueue()
    queue.send(b"a")
    queue.refuses.add("extend")
    with LeaseKeeper(queue, Interruption(15.0, clock=queue.clock), reserve_seconds=3) as leases:
        leases.hold(queue.receive(1, 0))
        assert all(queue.extended.acquire(timeout=LONG_SECONDS) for _ in range(2))

    assert "a lease could not be extended" in caplog.text


def test_a_task_in_progress_goes_back_before_the_kill() -> None:
    queue = WatchedQueue()
    queue.send(b"a")
    interruption = Interruption(15.0, clock=queue.clock)
    with LeaseKeeper(queue, interruption, reserve_seconds=3) as leases:
        [delivery] = queue.receive(1, 0)
        leases.hold([delivery])
        assert leases.begin(delivery)
        interruption.notify("SIGTERM")
        assert all(queue.extended.acquire(timeout=LONG_SECONDS) for _ in range(2)), "the warning alone takes nothing away"

        queue.clock.seconds += 12

        assert queue.given_back.acquire(timeout=LONG_SECONDS)
        assert not leases.release(delivery)


def test_leased_tasks_go_back_at_the_end() -> None:
    queue = WatchedQueue(lease_seconds=1000)
    queue.send(b"a")
    with LeaseKeeper(queue, Interruption(15.0, clock=queue.clock), reserve_seconds=3) as leases:
        leases.hold(queue.receive(1, 0))

    assert queue.calls == ["receive", "give back a"]

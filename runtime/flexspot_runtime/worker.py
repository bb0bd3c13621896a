"""The loop of a queue worker: receive, work, store, acknowledge, in this order."""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flexspot_runtime.leases import LeaseKeeper

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexspot_runtime.interruption import Interruption
    from flexspot_runtime.results import Results
    from flexspot_runtime.work_queue import Delivery, WorkQueue

_LOG = logging.getLogger("flexspot_runtime")


class GiveBack(Exception):  # noqa: N818 -- it asks for something; nothing is wrong
    """A handler raises this when it will not finish its task, for example after a warning; another worker gets the task at once."""


@dataclass(frozen=True, slots=True)
class Task:
    """What a handler gets."""

    body: bytes
    key: str
    """The name of its result."""

    attempt: int
    """The how manieth delivery it is; 0 when the queue does not count."""

    interruption: Interruption
    """Long handlers look at `noticed` from time to time and raise GiveBack."""


@dataclass
class WorkerReport:
    """What a worker did."""

    stored: int = 0
    """Tasks that it did."""

    found_done: int = 0
    """Tasks whose result was there already."""

    given_back: int = 0
    """Tasks that it left to others, for a warning or at the handler's wish."""

    failed: int = 0
    """Tasks whose handler, or whose result's storage, raised."""


def key_of_body(body: bytes) -> str:
    """A key that equal tasks share: the SHA-256 of the body."""
    return hashlib.sha256(body).hexdigest()


@dataclass(frozen=True)
class Worker:
    """Does tasks until a warning comes or the queue is empty.

    A task is acknowledged only when its result is stored, and the result's name comes from the task, so a kill at any moment costs at most
    the work on one task and leaves one result. A task that fails goes back and comes again after `retry_seconds`; the queue's own
    limit of deliveries moves it to the dead letters in the end. The queue remembers what is left to do, so unlike a trainer an interrupted
    worker may exit with 0.
    """

    queue: WorkQueue
    results: Results
    handle: Callable[[Task], bytes]
    interruption: Interruption
    key: Callable[[bytes], str] = key_of_body
    """From the task's body alone, so that every attempt has the same."""

    batch: int = 1
    """Messages received at once. More saves requests where tasks are short; all are leased and given back like one."""

    wait_seconds: float = 5.0
    """How long to wait for a message; a warning is heeded after as much at most, so keep it below the grace period."""

    empty_receives: int | None = 3
    """Ends after so many in a row that brought nothing. None: works until a warning."""

    retry_seconds: float = 10.0
    reserve_seconds: float = 3.0
    """What is left of the grace period when a task that is still being worked on goes back."""

    def run(self) -> WorkerReport:
        """Raises OSError when the queue does not answer; what a handler raises is logged, and its task goes back."""
        report = WorkerReport()
        empty = 0
        with LeaseKeeper(self.queue, self.interruption, self.reserve_seconds) as leases:
            while not self.interruption.noticed and (self.empty_receives is None or empty < self.empty_receives):
                deliveries = self.queue.receive(self.batch, self.wait_seconds)
                empty = 0 if deliveries else empty + 1
                leases.hold(deliveries)
                for delivery in deliveries:
                    if leases.begin(delivery):
                        self._do(delivery, leases, report)
                    else:
                        report.given_back += 1
        return report

    def _do(self, delivery: Delivery, leases: LeaseKeeper, report: WorkerReport) -> None:
        try:
            key = self.key(delivery.body)
            if self.results.has(key):
                report.found_done += 1
            else:
                self.results.put(key, self.handle(Task(delivery.body, key, delivery.attempt, self.interruption)))
                report.stored += 1
        except GiveBack:
            report.given_back += 1
            self._give_back(delivery, leases, 0.0)
            return
        except Exception:  # noqa: BLE001 -- whatever a handler raises is one task's failure, not the worker's
            _LOG.exception("a task failed; it comes again")
            report.failed += 1
            self._give_back(delivery, leases, self.retry_seconds)
            return
        leases.release(delivery)
        try:
            self.queue.finish(delivery)
        except OSError as error:
            # It comes again and its result is found.
            _LOG.warning("a finished task could not be acknowledged: %s", error)

    def _give_back(self, delivery: Delivery, leases: LeaseKeeper, after_seconds: float) -> None:
        if not leases.release(delivery):
            return
        try:
            self.queue.give_back(delivery, after_seconds)
        except OSError as error:
            _LOG.warning("a task could not be given back; it comes again when its lease ends: %s", error)

"""The loop of a queue worker: receive, work, store, acknowledge, in this order, while extending the messages' leases."""

from __future__ import annotations

import hashlib
import logging
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self

from flexspot_runtime.names import check_name
from flexspot_runtime.storage import is_there, read_whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexspot_runtime.interruption import Interruption, Notice
    from flexspot_runtime.storage import Storage


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message that this worker has until its lease ends."""

    body: bytes
    receipt: str
    """Identifies the delivery, not the message, for the queue."""

    attempt: int
    """The number of this delivery, from 1, as far as the queue counts them; 0 if it does not."""


class WorkQueue(Protocol):
    """Delivers each message at least once. Methods raise OSError when the queue refuses or does not answer."""

    @property
    def lease_seconds(self) -> float:
        """Seconds that a worker has a message after it was received or extended."""
        ...

    def receive(self, most: int, wait_seconds: float) -> list[Delivery]:
        """Return up to `most` messages, none if the wait ends without one."""
        ...

    def extend(self, delivery: Delivery) -> None:
        """Renew the lease."""
        ...

    def finish(self, delivery: Delivery) -> None:
        """Acknowledge the message: it is done and is not delivered again."""
        ...

    def give_back(self, delivery: Delivery, after_seconds: float = 0.0) -> None:
        """Return the message to the queue, now or after a delay. The queue counts a failed attempt."""
        ...


class Results:
    """One object per key. Storing a key again replaces the whole object: readers never see a part of one. Methods raise OSError.

    A key consists of letters, digits, `. _ = + -` and slashes; others raise ValueError.
    """

    def __init__(self, storage: Storage, folder: str = "results") -> None:
        self.storage = storage
        self.folder = check_name(folder)

    def has(self, key: str) -> bool:
        """Return whether there is a result."""
        return is_there(self.storage, self._name(key))

    def put(self, key: str, content: bytes) -> None:
        """Store a result. It is durable when this returns."""
        self.storage.publish(self._name(key), content)

    def get(self, key: str) -> bytes:
        """Return the result. Raises FileNotFoundError."""
        return read_whole(self.storage, self._name(key))

    def keys(self) -> list[str]:
        """Return the keys of all results, sorted."""
        return [name.removeprefix(f"{self.folder}/") for name in self.storage.names(self.folder)]

    def _name(self, key: str) -> str:
        return f"{self.folder}/{check_name(key)}"


_LOG = logging.getLogger("flexspot_runtime")

_EXTENSIONS_PER_LEASE = 3
"""So that one may fail."""


class LeaseKeeper:
    """A thread that extends the leases of the messages, whatever the main thread does.

    After a warning, tasks that have not started go back at once. The task in progress continues until `reserve_seconds` before the kill.
    Then it goes back as well, so that another worker need not wait for the lease to end. If it is finished after all, its result is stored
    under the same name.
    """

    def __init__(self, queue: WorkQueue, interruption: Interruption, reserve_seconds: float) -> None:
        self._queue = queue
        self._interruption = interruption
        self._reserve_seconds = reserve_seconds
        self._held: dict[str, Delivery] = {}
        self._started: str | None = None
        self._lock = threading.Lock()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="flexspot-leases", daemon=True)

    def __enter__(self) -> Self:
        self._interruption.on_notice(self._give_back_waiting)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()
        self.give_back(list(self._held.values()))

    def hold(self, deliveries: list[Delivery]) -> None:
        """Extend the leases of these from now on. Give them back if a warning came while they were received."""
        with self._lock:
            self._held.update({each.receipt: each for each in deliveries})
        if self._interruption.noticed:
            self.give_back(deliveries)

    def begin(self, delivery: Delivery) -> bool:
        """Mark a delivery as in progress. Return False if it was given back in the meantime."""
        with self._lock:
            if delivery.receipt not in self._held:
                return False
            self._started = delivery.receipt
            return True

    def release(self, delivery: Delivery) -> bool:
        """Stop extending the lease. Return False if the delivery was given back in the meantime."""
        with self._lock:
            self._started = None
            return self._held.pop(delivery.receipt, None) is not None

    def _keep(self) -> None:
        pause = self._queue.lease_seconds / _EXTENSIONS_PER_LEASE
        while not self._end.wait(self._pause_seconds(pause)):
            if self._interruption.remaining_seconds() <= self._reserve_seconds:
                self.give_back(list(self._held.values()))
                return
            with self._lock:
                held = list(self._held.values())
            for delivery in held:
                try:
                    self._queue.extend(delivery)
                except OSError as error:
                    _LOG.warning("a lease could not be extended, another worker may get the task, too: %s", error)

    def _pause_seconds(self, longest: float) -> float:
        return max(0.0, min(longest, self._interruption.remaining_seconds() - self._reserve_seconds))

    def _give_back_waiting(self, _notice: Notice) -> None:
        with self._lock:
            waiting = [each for receipt, each in self._held.items() if receipt != self._started]
        self.give_back(waiting)

    def give_back(self, deliveries: list[Delivery], after_seconds: float = 0.0) -> None:
        """Return deliveries to the queue, now or after a delay. Skips those that were already given back or released."""
        for delivery in deliveries:
            with self._lock:
                if self._held.pop(delivery.receipt, None) is None:
                    continue
            try:
                self._queue.give_back(delivery, after_seconds)
            except OSError as error:
                _LOG.warning("a task could not be given back; another worker gets it when its lease ends: %s", error)


class GiveBack(Exception):  # noqa: N818 -- it asks for something; nothing is wrong
    """A handler raises this when it will not finish its task, for example after a warning. Another worker gets the task at once."""


@dataclass(frozen=True, slots=True)
class Task:
    """Argument of a handler."""

    body: bytes
    key: str
    """Name of its result."""

    attempt: int
    """Number of this delivery; 0 if the queue does not count them."""

    interruption: Interruption
    """Long handlers check `noticed` from time to time and raise GiveBack."""


@dataclass
class WorkerReport:
    """Counts of a worker's tasks."""

    stored: int = 0
    """Tasks done and stored."""

    found_done: int = 0
    """Tasks whose result existed already."""

    given_back: int = 0
    """Tasks returned to the queue, after a warning or on the handler's request."""

    failed: int = 0
    """Tasks for which the handler, or storing the result, raised."""


def key_of_body(body: bytes) -> str:
    """Return a key that equal tasks share: the SHA-256 of the body."""
    return hashlib.sha256(body).hexdigest()


@dataclass(frozen=True)
class Worker:
    """Does tasks until a warning comes or the queue is empty.

    A task is acknowledged only when its result is stored, and the result's name derives from the task. So a kill at any moment costs at
    most the work on one task and leaves one result. A failed task goes back and is delivered again after `retry_seconds`; the queue's own
    limit of deliveries finally moves it to the dead letters. The queue knows the remaining tasks, so unlike a trainer an interrupted worker
    may exit with 0.
    """

    queue: WorkQueue
    results: Results
    handle: Callable[[Task], bytes]
    interruption: Interruption
    key: Callable[[bytes], str] = key_of_body
    """Depends on the task's body alone, so that every attempt has the same key."""

    batch: int = 1
    """Messages received at once. More saves requests where tasks are short. All are leased and given back like one."""

    wait_seconds: float = 5.0
    """Longest wait for a message, and for the reaction to a warning. Keep it below the grace period."""

    empty_receives: int | None = 3
    """Number of empty receives in a row after which the worker ends. None: it runs until a warning."""

    retry_seconds: float = 10.0
    reserve_seconds: float = 3.0
    """Seconds left of the grace period when a task in progress goes back."""

    def run(self) -> WorkerReport:
        """Work until a warning or the end of the queue.

        Raises OSError when the queue does not answer. A handler's exception is logged, and its task goes back.
        """
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
            leases.give_back([delivery])
            return
        except Exception:  # noqa: BLE001 -- whatever a handler raises is one task's failure, not the worker's
            _LOG.exception("a task failed; it will be delivered again")
            report.failed += 1
            leases.give_back([delivery], self.retry_seconds)
            return
        leases.release(delivery)
        try:
            self.queue.finish(delivery)
        except OSError as error:
            # It is delivered again, and its result is found.
            _LOG.warning("a finished task could not be acknowledged: %s", error)

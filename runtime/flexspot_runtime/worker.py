"""The loop of a queue worker: receive, work, store, acknowledge, in this order, while its messages stay its own."""

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
    """A message that is this worker's until its lease ends."""

    body: bytes
    receipt: str
    """Names the delivery, not the message, to the queue."""

    attempt: int
    """The number of this delivery, from 1, as far as the queue counts them; 0 if it does not."""


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


class Results:
    """One object for each key. Putting one again replaces it, whole: readers never see a part of one. Methods raise OSError.

    A key is a name with letters, digits, `. _ = + -` and slashes; others raise ValueError.
    """

    def __init__(self, storage: Storage, folder: str = "results") -> None:
        self.storage = storage
        self.folder = check_name(folder)

    def has(self, key: str) -> bool:
        """Whether there is a result."""
        return is_there(self.storage, self._name(key))

    def put(self, key: str, content: bytes) -> None:
        """Stores a result; durable when it returns."""
        self.storage.publish(self._name(key), content)

    def get(self, key: str) -> bytes:
        """The result. Raises FileNotFoundError."""
        return read_whole(self.storage, self._name(key))

    def keys(self) -> list[str]:
        """Of all results, sorted."""
        return [name.removeprefix(f"{self.folder}/") for name in self.storage.names(self.folder)]

    def _name(self, key: str) -> str:
        return f"{self.folder}/{check_name(key)}"


_LOG = logging.getLogger("flexspot_runtime")

_EXTENSIONS_PER_LEASE = 3
"""So that one may fail."""


class LeaseKeeper:
    """A thread that extends the leases of what is held, whatever the main thread does.

    After a warning what has not been begun goes back at once, and what is being worked on goes on until `reserve_seconds` before the kill;
    then it goes back as well, so that another worker need not wait for the lease to end. If it is finished after all, its result
    is stored under the same name.
    """

    def __init__(self, queue: WorkQueue, interruption: Interruption, reserve_seconds: float) -> None:
        self._queue = queue
        self._interruption = interruption
        self._reserve_seconds = reserve_seconds
        self._held: dict[str, Delivery] = {}
        self._begun: str | None = None
        self._lock = threading.Lock()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="flexspot-leases", daemon=True)

    def __enter__(self) -> Self:
        self._interruption.on_notice(self._give_back_what_waits)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()
        self.give_back(list(self._held.values()))

    def hold(self, deliveries: list[Delivery]) -> None:
        """Keeps these from now on; gives them back if a warning came while they were received."""
        with self._lock:
            self._held.update({each.receipt: each for each in deliveries})
        if self._interruption.noticed:
            self.give_back(deliveries)

    def begin(self, delivery: Delivery) -> bool:
        """Marks it as being worked on; False when it was given back meanwhile."""
        with self._lock:
            if delivery.receipt not in self._held:
                return False
            self._begun = delivery.receipt
            return True

    def release(self, delivery: Delivery) -> bool:
        """Keeps it no longer; False when it was given back meanwhile."""
        with self._lock:
            self._begun = None
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

    def _give_back_what_waits(self, _notice: Notice) -> None:
        with self._lock:
            waiting = [each for receipt, each in self._held.items() if receipt != self._begun]
        self.give_back(waiting)

    def give_back(self, deliveries: list[Delivery], after_seconds: float = 0.0) -> None:
        """Returns those that are still held to the queue, now or after a delay."""
        for delivery in deliveries:
            with self._lock:
                if self._held.pop(delivery.receipt, None) is None:
                    continue
            try:
                self._queue.give_back(delivery, after_seconds)
            except OSError as error:
                _LOG.warning("a task could not be given back; another worker gets it when its lease ends: %s", error)


class GiveBack(Exception):  # noqa: N818 -- it asks for something; nothing is wrong
    """A handler raises this when it will not finish its task, for example after a warning; another worker gets the task at once."""


@dataclass(frozen=True, slots=True)
class Task:
    """What a handler gets."""

    body: bytes
    key: str
    """The name of its result."""

    attempt: int
    """The number of this delivery; 0 if the queue does not count them."""

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
            leases.give_back([delivery])
            return
        except Exception:  # noqa: BLE001 -- whatever a handler raises is one task's failure, not the worker's
            _LOG.exception("a task failed; it comes again")
            report.failed += 1
            leases.give_back([delivery], self.retry_seconds)
            return
        leases.release(delivery)
        try:
            self.queue.finish(delivery)
        except OSError as error:
            # It comes again and its result is found.
            _LOG.warning("a finished task could not be acknowledged: %s", error)

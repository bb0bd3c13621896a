"""Keeps what a worker has received its own, and gives it back in time."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from flexspot_runtime.interruption import Interruption, Notice
    from flexspot_runtime.work_queue import Delivery, WorkQueue

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
        self._give_back(list(self._held.values()))

    def hold(self, deliveries: list[Delivery]) -> None:
        """Keeps these from now on; gives them back if a warning came while they were received."""
        with self._lock:
            self._held.update({each.receipt: each for each in deliveries})
        if self._interruption.noticed:
            self._give_back(deliveries)

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
                self._give_back(list(self._held.values()))
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
        self._give_back(waiting)

    def _give_back(self, deliveries: list[Delivery]) -> None:
        for delivery in deliveries:
            with self._lock:
                if self._held.pop(delivery.receipt, None) is None:
                    continue
            try:
                self._queue.give_back(delivery)
            except OSError as error:
                _LOG.warning("a task could not be given back; another worker gets it when its lease ends: %s", error)

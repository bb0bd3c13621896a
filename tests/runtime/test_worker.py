from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from flexspot_runtime import GiveBack, Interruption, Results, Task, Worker, WorkerReport
from manual_clock import ManualClock
from memory_queue import MemoryQueue
from memory_storage import MemoryStorage

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass
class Bench:
    """A worker with its queue and its results."""

    tasks: tuple[bytes, ...] = ()
    clock: ManualClock = field(default_factory=ManualClock)
    storage: MemoryStorage = field(default_factory=MemoryStorage)
    done: list[bytes] = field(default_factory=list[bytes])

    def __post_init__(self) -> None:
        self.queue = MemoryQueue(self.clock)
        self.queue.send(*self.tasks)
        self.interruption = Interruption(15.0, clock=self.clock)
        self.results = Results(self.storage)

    def work(self, handle: Callable[[Task], bytes] | None = None, batch: int = 1) -> WorkerReport:
        return Worker(
            self.queue,
            self.results,
            handle or self.double,
            self.interruption,
            key=lambda body: body.decode(),
            batch=batch,
            retry_seconds=1.0,
        ).run()

    def double(self, task: Task) -> bytes:
        self.done.append(task.body)
        return task.body * 2


def test_every_task_is_done_stored_and_acknowledged() -> None:
    bench = Bench((b"a", b"b", b"c"))

    assert bench.work() == WorkerReport(stored=3)
    assert {key: bench.results.get(key) for key in bench.results.keys()} == {"a": b"aa", "b": b"bb", "c": b"cc"}  # noqa: SIM118 -- no mapping
    assert bench.queue.messages == []


def test_a_task_is_acknowledged_only_when_its_result_is_stored() -> None:
    bench = Bench((b"a",))
    bench.storage.fails_at, bench.storage.fails_for = 2, 1

    assert bench.work() == WorkerReport(stored=1, failed=1)
    assert bench.queue.calls.index("give back a") < bench.queue.calls.index("finish a")


def test_a_task_whose_result_is_there_is_not_done_again() -> None:
    """Its worker was killed between the result and the acknowledgement."""
    bench = Bench((b"a",))
    bench.results.put("a", b"of before")

    assert bench.work() == WorkerReport(found_done=1)
    assert (bench.done, bench.results.get("a"), bench.queue.messages) == ([], b"of before", [])


def test_a_task_that_comes_twice_has_one_result() -> None:
    bench = Bench((b"a", b"a"))

    assert bench.work() == WorkerReport(stored=1, found_done=1)
    assert bench.results.keys() == ["a"]


def test_a_task_that_always_fails_becomes_a_dead_letter_and_blocks_no_other() -> None:
    bench = Bench((b"poison", b"b"))

    attempts: list[int] = []

    def handle(task: Task) -> bytes:
        if task.body == b"poison":
            attempts.append(task.attempt)
            raise RuntimeError("planted")
        return b""

    report = bench.work(handle)

    assert attempts == [1, 2, 3]
    assert (report.stored, report.failed) == (1, bench.queue.most_attempts)
    assert bench.queue.dead_letters == [b"poison"]


def test_after_a_warning_the_task_at_hand_is_finished_and_the_others_go_back() -> None:
    bench = Bench((b"a", b"b", b"c", b"d"))

    def handle(task: Task) -> bytes:
        bench.interruption.notify("SIGTERM")
        return bench.double(task)

    report = bench.work(handle, batch=3)

    assert report == WorkerReport(stored=1, given_back=2)
    assert bench.queue.calls == ["receive", "give back b", "give back c", "finish a"]
    assert [message.visible_at <= bench.clock.seconds for message in bench.queue.messages] == [True, True, True]


def test_a_handler_may_give_its_task_back() -> None:
    bench = Bench((b"a",))

    def handle(task: Task) -> bytes:
        bench.interruption.notify("SIGTERM")
        assert task.interruption.noticed
        raise GiveBack

    assert bench.work(handle) == WorkerReport(given_back=1)
    assert bench.queue.calls == ["receive", "give back a"]


def test_tasks_received_during_a_warning_go_back() -> None:
    bench = Bench((b"a",))
    receive = bench.queue.receive

    def warned(most: int, wait_seconds: float) -> list[object]:
        bench.interruption.notify("SIGTERM")
        return list(receive(most, wait_seconds))

    bench.queue.receive = warned  # pyrefly: ignore[bad-assignment, method-assign] -- the same, with a warning

    assert bench.work() == WorkerReport(given_back=1)
    assert bench.queue.calls == ["receive", "give back a"]


def test_a_worker_with_nothing_to_do_ends() -> None:
    bench = Bench()

    assert bench.work() == WorkerReport()
    assert bench.queue.calls == ["receive"] * 3


@pytest.mark.parametrize("refused", ["finish", "give back"])
def test_a_queue_that_takes_no_answer_delivers_again(refused: str, caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench((b"a",))
    bench.queue.refuses.add(refused)

    def handle(task: Task) -> bytes:
        if refused == "give back":
            raise GiveBack
        return task.body

    bench.work(handle)

    assert "could not be" in caplog.text
    assert len(bench.queue.messages) == 1


def test_a_queue_that_does_not_deliver_is_an_error() -> None:
    bench = Bench()
    bench.queue.refuses.add("receive")

    with pytest.raises(OSError, match="receive refused"):
        bench.work()


def test_equal_bodies_have_equal_keys_by_default() -> None:
    bench = Bench((b"a", b"a", b"b"))
    Worker(bench.queue, bench.results, bench.double, bench.interruption).run()

    assert len(bench.results.keys()) == 2

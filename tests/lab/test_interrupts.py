from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING

import pytest

from flexspot.lab.progress import interrupts_wait

if TYPE_CHECKING:
    from collections.abc import Iterator


class CutOffError(BaseException):
    pass


@pytest.fixture(params=[signal.SIGINT, signal.SIGTERM])
def interrupt(request: pytest.FixtureRequest) -> Iterator[signal.Signals]:
    """Yield a signal whose handler raises, as the command line's does."""

    def cut_off(_number: int, _frame: object) -> None:
        raise CutOffError

    number: signal.Signals = request.param
    before = signal.signal(number, cut_off)
    yield number
    signal.signal(number, before)


def test_an_interrupt_waits_for_the_end_of_the_block(interrupt: signal.Signals) -> None:
    done: list[str] = []

    def start_and_note() -> None:
        with interrupts_wait():
            signal.raise_signal(interrupt)
            done.append("noted")

    with pytest.raises(CutOffError):
        start_and_note()

    assert done == ["noted"]


def test_the_previous_handler_is_restored_after_the_block(interrupt: signal.Signals) -> None:
    before = signal.getsignal(interrupt)

    with interrupts_wait():
        pass

    assert signal.getsignal(interrupt) is before


def test_an_error_in_the_block_is_raised_unchanged(interrupt: signal.Signals) -> None:
    def start_what_is_not_there() -> None:
        with interrupts_wait():
            signal.raise_signal(interrupt)
            raise OSError("no such program")

    with pytest.raises(OSError, match="no such program"):
        start_what_is_not_there()


def test_other_threads_are_left_alone() -> None:
    done: list[str] = []

    def work() -> None:
        with interrupts_wait():
            done.append("noted")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

    assert done == ["noted"]

from __future__ import annotations

import asyncio
import math
import os
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from flexspot_runtime import Interruption, Notice
from manual_clock import ManualClock

pytestmark = pytest.mark.slow

# The main thread is in a native call that signals do not end. The thread that hears the warning ends it.
NATIVE = """
import ctypes
from flexspot_runtime import Interruption

native = ctypes.CDLL(None)
barrier = ctypes.create_string_buffer(64)
native.pthread_barrier_init(barrier, None, 2)

with Interruption(15) as interruption:
    interruption.on_notice(lambda notice: native.pthread_barrier_wait(barrier))
    print("started", flush=True)
    native.pthread_barrier_wait(barrier)
    print("ended")
"""

FORKED = """
import os, signal
from flexspot_runtime import Interruption

with Interruption(15) as interruption:
    child = os.fork()
    if child == 0:
        signal.pause()
    os.kill(child, signal.SIGTERM)
    _, status = os.waitpid(child, 0)
    print("child ended by", os.waitstatus_to_exitcode(status))
    print("parent noticed:", interruption.wait(0.2))
    os.kill(os.getpid(), signal.SIGTERM)
    print("parent noticed:", interruption.wait(5))
"""


def test_the_warning_is_heard_while_native_code_runs() -> None:
    with subprocess.Popen([sys.executable, "-c", NATIVE], stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout
        assert program.stdout.readline() == "started\n"
        program.send_signal(signal.SIGTERM)
        output, _ = program.communicate(timeout=60)

    assert (output, program.returncode) == ("ended\n", 0)


def test_the_end_of_a_forked_child_is_no_warning_to_its_parent() -> None:
    ended = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, check=True)

    assert ended.stdout.splitlines() == ["child ended by -15", "parent noticed: False", "parent noticed: True"]


def test_sigterm_starts_the_grace_period() -> None:
    clock = ManualClock()
    with Interruption(15.0, clock=clock) as interruption:
        assert (interruption.noticed, interruption.remaining_seconds()) == (False, math.inf)
        signal.raise_signal(signal.SIGTERM)
        assert interruption.wait(5)
        assert interruption.notice == Notice("SIGTERM", received_at=1000.0, deadline=1015.0)
        clock.seconds += 12
        assert interruption.remaining_seconds() == 3
        clock.seconds += 12
        assert interruption.remaining_seconds() == 0


@pytest.mark.parametrize("later,deadline", [(5.0, 1005.0), (120.0, 1030.0)])
def test_of_several_warnings_the_earliest_deadline_counts(later: float, deadline: float) -> None:
    interruption = Interruption(15.0, clock=ManualClock())
    interruption.notify("gce-metadata", 30.0)
    interruption.notify("SIGTERM", later)

    assert interruption.notice == Notice("gce-metadata", received_at=1000.0, deadline=deadline)


def test_callbacks_are_called_once_and_one_that_fails_stops_no_other() -> None:
    interruption, called = Interruption(15.0), list[str]()

    def fail(_notice: Notice) -> None:
        raise RuntimeError("planted")

    interruption.on_notice(fail)
    interruption.on_notice(lambda notice: called.append(f"before {notice.source}"))
    interruption.notify("SIGTERM")
    interruption.notify("SIGTERM")
    interruption.on_notice(lambda notice: called.append(f"after {notice.source}"))

    assert called == ["before SIGTERM", "after SIGTERM"]


def test_a_handler_that_a_library_sets_inside_does_not_end_the_process() -> None:
    """`ray.init` sets one, for example."""

    def end(*_: object) -> None:
        raise SystemExit(15)

    before = signal.getsignal(signal.SIGTERM)
    with Interruption(15) as interruption:
        signal.signal(signal.SIGTERM, end)
        assert not interruption.noticed
        signal.raise_signal(signal.SIGTERM)
        assert interruption.wait(5)
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_forked_child_keeps_the_handler_that_it_sets() -> None:
    with Interruption(15) as interruption:
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGTERM, lambda *_: os._exit(7))
            _ = interruption.noticed
            signal.raise_signal(signal.SIGTERM)
            os._exit(1)
        _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7


def test_a_wakeup_descriptor_of_before_that_was_closed_meanwhile_is_not_missed() -> None:
    before = signal.set_wakeup_fd(-1)
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    signal.set_wakeup_fd(theirs.fileno())

    with Interruption(15.0):
        ours.close()
        theirs.close()

    assert signal.set_wakeup_fd(before) == -1


def open_descriptors() -> list[str]:
    return sorted(descriptor.name for descriptor in Path("/proc/self/fd").iterdir() if descriptor.exists())


def test_afterwards_the_handlers_of_before_are_back_and_nothing_is_left_open_or_running() -> None:
    def state() -> tuple[object, ...]:
        descriptor = signal.set_wakeup_fd(-1)
        signal.set_wakeup_fd(descriptor)
        return signal.getsignal(signal.SIGTERM), descriptor, open_descriptors(), threading.active_count()

    before = state()
    with Interruption(15.0):
        assert signal.getsignal(signal.SIGTERM) is not before[0]

    assert state() == before


def test_an_event_loop_still_learns_of_its_own_signals() -> None:
    async def both() -> bool:
        loop, heard = asyncio.get_running_loop(), asyncio.Event()
        loop.add_signal_handler(signal.SIGUSR1, heard.set)
        with Interruption(15.0) as interruption:
            os.kill(os.getpid(), signal.SIGUSR1)
            await asyncio.wait_for(heard.wait(), 10)
            return interruption.noticed

    # Not asyncio.run, which leaves the thread without a loop: Pulumi's tests need one.
    loop = asyncio.new_event_loop()
    try:
        assert loop.run_until_complete(both()) is False
    finally:
        loop.close()


def test_a_warning_is_heard_while_an_event_loop_inside_handles_signals_and_after_it() -> None:
    async def handled(interruption: Interruption) -> None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR2, lambda: None)
        signal.raise_signal(signal.SIGTERM)
        await asyncio.to_thread(interruption.wait, 10)

    loop = asyncio.new_event_loop()
    try:
        with Interruption(60) as during:
            loop.run_until_complete(handled(during))
        assert during.noticed
        # The loop has restored what was there before, which is nothing: the Interruption is notified at once again.
        with Interruption(60) as after:
            loop.add_signal_handler(signal.SIGUSR2, lambda: None)
            loop.remove_signal_handler(signal.SIGUSR2)
            assert not after.noticed
            taken = signal.set_wakeup_fd(-1)
            signal.set_wakeup_fd(taken)
            assert taken >= 0
    finally:
        loop.close()


def test_leaving_it_takes_nothing_from_an_event_loop_that_was_started_inside() -> None:
    async def heard() -> bool:
        loop, event = asyncio.get_running_loop(), asyncio.Event()
        with Interruption(60):
            loop.add_signal_handler(signal.SIGUSR2, event.set)
        signal.raise_signal(signal.SIGUSR2)
        return await asyncio.wait_for(event.wait(), 10)

    loop = asyncio.new_event_loop()
    try:
        assert loop.run_until_complete(heard())
    finally:
        loop.close()


def test_several_signals_can_be_warnings() -> None:
    with Interruption(15.0, signals=(signal.SIGTERM, signal.SIGUSR2)) as interruption:
        signal.raise_signal(signal.SIGUSR2)
        assert interruption.wait(5)
        assert interruption.notice
        assert interruption.notice.source == "SIGUSR2"


def test_it_is_entered_in_the_main_thread() -> None:
    with (
        ThreadPoolExecutor(1) as other,
        pytest.raises(RuntimeError, match="must be entered in the main thread; enter it where the program"),
    ):
        other.submit(Interruption(15.0).__enter__).result()


def test_it_is_entered_once() -> None:
    with Interruption(15.0) as interruption, pytest.raises(RuntimeError, match="was entered already"):
        interruption.__enter__()


def test_the_grace_period_comes_from_the_environment_or_is_the_least_that_a_cloud_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FLEXSPOT_GRACE_SECONDS", raising=False)
    assert Interruption().grace_seconds == 15

    monkeypatch.setenv("FLEXSPOT_GRACE_SECONDS", "105")
    assert Interruption().grace_seconds == 105

    monkeypatch.setenv("FLEXSPOT_GRACE_SECONDS", "2m")
    with pytest.raises(ValueError, match="FLEXSPOT_GRACE_SECONDS is '2m'; it must be a number of seconds"):
        Interruption()


@pytest.mark.parametrize("grace_seconds", [0.0, -1.0, math.nan])
def test_a_grace_period_is_positive(grace_seconds: float) -> None:
    with pytest.raises(ValueError, match="above 0"):
        Interruption(grace_seconds)

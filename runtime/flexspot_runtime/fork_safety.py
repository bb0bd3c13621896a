"""Keeps what listens for signals from listening in forked children, where it would speak to the parent's pipe."""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection


class Listening(Protocol):
    """What has set handlers of signals in this process."""

    @property
    def signals(self) -> Collection[signal.Signals]:
        """Those that it handles."""
        ...

    def put_handlers_back(self) -> None:
        """Restores the handlers of before."""
        ...


_listening: list[Listening] = []
_mask_before = threading.local()


def listen_only_in_this_process(listener: Listening) -> None:
    """Has the listener's handlers put back in every child that is forked from now on."""
    _listening.append(listener)


def stop_listening(listener: Listening) -> None:
    """Forgets the listener."""
    _listening.remove(listener)


def _hold_signals() -> None:
    # A signal between the fork and the hook in the child would be written to the pipe that child and parent share.
    held = {number for listener in _listening for number in listener.signals}
    _mask_before.signals = signal.pthread_sigmask(signal.SIG_BLOCK, held)


def _release_signals() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _mask_before.signals)


def _put_handlers_back() -> None:
    while _listening:
        _listening.pop().put_handlers_back()
    _release_signals()


os.register_at_fork(before=_hold_signals, after_in_parent=_release_signals, after_in_child=_put_handlers_back)

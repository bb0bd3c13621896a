"""The warning that the machine is about to go, heard at once, and how a process that was interrupted ends.

In forked children nothing listens: it would speak to the parent's pipe. What processes leave behind for the launcher above them are marks,
as a launcher in between, such as torchrun, keeps their exit codes to itself.
"""

from __future__ import annotations

import logging
import math
import os
import signal
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

from flexspot_runtime.schedule import SYSTEM_CLOCK, Clock

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from types import FrameType


INTERRUPTED_EXIT_CODE = 143
"""128 and the number of SIGTERM, which is what a shell reports of a process that the signal ended.

Never 0 for a trainer: a Job with podFailurePolicy counts a pod that exits 0 as done, and is Complete with the work unfinished.
"""


class Interrupted(SystemExit):
    """Ends the process with 143 unless it is caught. A SystemExit, so `finally` blocks run and nothing is printed.

    `flexspot_runtime.launch`, when it is above, is told at once: a launcher in between may keep the exit code to itself.
    """

    def __init__(self, source: str, step: int | None) -> None:
        super().__init__(INTERRUPTED_EXIT_CODE)
        mark_interrupted(source)
        self.source = source
        """What told of the interruption: SIGTERM, the name of a notice, or another rank."""
        self.step = step
        """Steps done, whether or not they could be saved; None where it is not known."""


_LOG = logging.getLogger("flexspot_runtime")

GRACE_VARIABLE = "FLEXSPOT_GRACE_SECONDS"
LEAST_GRACE_SECONDS = 15.0
"""What GKE Spot leaves to a pod of a user unless the node pool is told otherwise, whatever the pod asks for."""

_END = 0
"""No signal has this number: it tells the listener to end."""


@dataclass(frozen=True, slots=True)
class Notice:
    """A warning that came. Times are of the clock's `monotonic`."""

    source: str
    """SIGTERM, or the name of what asked the cloud."""

    received_at: float
    deadline: float
    """When the process is killed, as far as is known."""


class Interruption:
    """Listens for SIGTERM while it is entered, and says how much of the grace period is left.

    A Python signal handler runs between two bytecodes of the main thread, so one long step of native code can eat the whole grace period.
    Here the interpreter's C handler writes the signal's number to a pipe and a thread reads it: the notice, its time and the callbacks do
    not wait for the main thread. (A native call that keeps the GIL keeps this thread waiting, too; numpy's and torch's large ones do not.
    While an event loop inside handles signals, they wait until the main thread runs Python.)
    The step itself cannot be cut short: keep steps shorter than the grace period less the time of a checkpoint.

    Children that are forked (data loaders, worker pools) get back the handlers of before: stopping one of them is no notice to the parent.
    Children that are started by `exec` never had them.

    Inside, the previous handlers of `signals` are not called; they are back afterwards. A handler that something else sets inside gives way
    when the main thread next asks `noticed` or `wait`, which is logged: `ray.init` sets one that ends the process unsaved. Raises
    ValueError for a grace period that is not positive or a variable that is no number, RuntimeError when it is entered in another thread
    than the main one, which Python forbids.
    """

    def __init__(
        self,
        grace_seconds: float | None = None,
        *,
        signals: Collection[signal.Signals] = (signal.SIGTERM,),
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """`grace_seconds`: from the signal to the kill, the pod's terminationGracePeriodSeconds less its preStop, and no more than the
        machine gives. Default: the variable FLEXSPOT_GRACE_SECONDS, or 15.
        """
        self.grace_seconds = _grace_of_environment() if grace_seconds is None else grace_seconds
        if not self.grace_seconds > 0:
            raise ValueError(f"grace_seconds is {self.grace_seconds}; it is the time from the signal to the kill, above 0")
        self.signals = frozenset(signals)
        self.clock = clock
        self._notice: Notice | None = None
        self._noticed = threading.Event()
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[Notice], None]] = []
        self._before: dict[signal.Signals, object] = {}
        self._fd_before = -1
        self._listener: threading.Thread | None = None
        self._write_fd = -1
        self._handler = _TellTheListener(-1)
        self._process = 0

    def __enter__(self) -> Self:
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("Interruption must be entered in the main thread; enter it where the program starts")
        if self._listener:
            raise RuntimeError("this Interruption is entered already; make one for each `with`")
        self._process = os.getpid()
        read_fd, self._write_fd = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._write_fd, False)
        self._fd_before = signal.set_wakeup_fd(self._write_fd, warn_on_full_buffer=False)
        self._handler = _TellTheListener(self._write_fd)
        self._before = {number: signal.signal(number, self._handler) for number in self.signals}
        _listen_only_in_this_process(self)
        self._listener = threading.Thread(target=self._listen, args=(read_fd,), name="flexspot-interruption", daemon=True)
        self._listener.start()
        return self

    def __exit__(self, *_: object) -> None:
        if os.getpid() != self._process:
            # A forked child that leaves the block: the pipe is the parent's, and the handlers were put back at the fork.
            return
        self.put_handlers_back()
        _stop_listening(self)
        os.write(self._write_fd, bytes([_END]))
        if self._listener:
            self._listener.join()
        os.close(self._write_fd)
        self._listener = None

    @property
    def notice(self) -> Notice | None:
        """The warning, once one came."""
        return self._notice

    @property
    def noticed(self) -> bool:
        """Whether a warning came."""
        self._hold_signals()
        return self._noticed.is_set()

    def wait(self, seconds: float | None = None) -> bool:
        """Waits for a warning, at most so long; whether one came."""
        self._hold_signals()
        return self._noticed.wait(seconds)

    def deadline(self) -> float:
        """When the process will be killed, of the clock's `monotonic`; infinite before a warning."""
        return self._notice.deadline if self._notice else math.inf

    def remaining_seconds(self) -> float:
        """What is left of the grace period, 0 when it is over; infinite before a warning."""
        return max(0.0, self.deadline() - self.clock.monotonic())

    def on_notice(self, callback: Callable[[Notice], None]) -> None:
        """Calls back once, from the listening thread, when a warning comes or if one has come; its exceptions are logged only."""
        with self._lock:
            if self._notice is None:
                self._callbacks.append(callback)
                return
        _call(callback, self._notice)

    def notify(self, source: str, grace_seconds: float | None = None) -> None:
        """Gives the warning as if the signal had come; from any thread. Of several warnings the earliest deadline counts."""
        now = self.clock.monotonic()
        deadline = now + (self.grace_seconds if grace_seconds is None else grace_seconds)
        with self._lock:
            if self._notice:
                if deadline < self._notice.deadline:
                    self._notice = Notice(self._notice.source, self._notice.received_at, deadline)
                return
            notice = self._notice = Notice(source, now, deadline)
            callbacks = self._callbacks
            self._callbacks = []
        self._noticed.set()
        _LOG.warning("%s: this process will be killed in %.0f s", source, deadline - now)
        for callback in callbacks:
            _call(callback, notice)

    def put_handlers_back(self) -> None:
        """Restores what handled the signals before; for leaving, and for children."""
        for number, handler in self._before.items():
            # None: the handler of before was not set from Python, and Python cannot set it again.
            signal.signal(number, handler if callable(handler) or isinstance(handler, signal.Handlers) else signal.SIG_DFL)
        _take_wakeup_from({self._write_fd, -1}, self._fd_before)

    def _hold_signals(self) -> None:
        # Python allows it to the main thread alone; and the handlers of a forked child are its own.
        if self._listener is None or threading.current_thread() is not threading.main_thread() or os.getpid() != self._process:
            return
        for number in self.signals:
            if not isinstance(other := signal.getsignal(number), _TellTheListener):
                signal.signal(number, self._handler)
                _LOG.warning("a handler of %s was set inside of the Interruption and gives way to it: %s", number.name, other)
        _take_wakeup_from({-1}, self._write_fd)

    def _listen(self, read_fd: int) -> None:
        try:
            while content := os.read(read_fd, 64):
                for number in content:
                    if number == _END:
                        return
                    if number in self.signals:
                        self.notify(signal.Signals(number).name)
                    elif self._fd_before >= 0:
                        # Whoever set the wake-up descriptor before (an event loop) still learns of the other signals.
                        os.write(self._fd_before, bytes([number]))
        finally:
            os.close(read_fd)


@dataclass(frozen=True, slots=True)
class _TellTheListener:
    """The handler in Python, without which the signal would end the process.

    It tells the listener as well, later than the interpreter does, but also where an event loop that was started inside has taken the
    wake-up descriptor: asyncio's takes it with its first `add_signal_handler`, and leaves none behind with its last.
    """

    write_fd: int

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        with suppress(BlockingIOError):
            os.write(self.write_fd, bytes([number]))


def _take_wakeup_from(others: Collection[int], descriptor: int) -> None:
    """Sets the wake-up descriptor if it is one of `others`; leaves it to anybody else."""
    before = _set_wakeup(descriptor)
    if before not in others:
        _set_wakeup(before)


def _set_wakeup(descriptor: int) -> int:
    """Sets the wake-up descriptor and returns the one before; none for one that was closed meanwhile, which Python refuses."""
    try:
        return signal.set_wakeup_fd(descriptor, warn_on_full_buffer=False)
    except OSError:
        return signal.set_wakeup_fd(-1)


def _call(callback: Callable[[Notice], None], notice: Notice) -> None:
    try:
        callback(notice)
    except Exception:  # noqa: BLE001 -- whatever a callback raises, the warning must reach the others
        _LOG.exception("a callback for the interruption failed")


def _grace_of_environment() -> float:
    text = os.environ.get(GRACE_VARIABLE, "")
    try:
        return float(text) if text else LEAST_GRACE_SECONDS
    except ValueError:
        raise ValueError(f"{GRACE_VARIABLE} is {text!r}; it must be a number of seconds") from None


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


def _listen_only_in_this_process(listener: Listening) -> None:
    """Has the listener's handlers put back in every child that is forked from now on."""
    _listening.append(listener)


def _stop_listening(listener: Listening) -> None:
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


MARKS_VARIABLE = "FLEXSPOT_MARKS"
"""A folder of the launcher's, for its processes and theirs."""


def mark_interrupted(source: str) -> None:
    """Says that this process ends because of an interruption, here or elsewhere. Without a launcher there is nobody to tell."""
    folder = os.environ.get(MARKS_VARIABLE)
    if not folder:
        return
    ranks = os.environ.get("LOCAL_WORLD_SIZE") or "1"
    rank = os.environ.get("LOCAL_RANK") or "0"
    try:
        Path(folder, f"{rank}-of-{ranks}").write_text(source)
    except OSError as error:
        _LOG.warning("the launcher cannot be told of the interruption: %s", error)


def all_were_interrupted(folder: Path) -> bool:
    """Whether every rank of this machine said so.

    One that crashed said nothing, and what the others then say, because they lost it or were told to stop, is a consequence.
    """
    marks = {path.name for path in folder.glob("*-of-*")}
    sizes = {int(name.partition("-of-")[2]) for name in marks}
    return any(marks >= {f"{rank}-of-{size}" for rank in range(size)} for size in sizes)

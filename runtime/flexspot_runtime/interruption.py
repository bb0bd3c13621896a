"""The warning that the machine is about to go away, noticed at once, and how an interrupted process ends.

Forked children do not listen: they would write to the parent's pipe. Processes leave marks for the launcher, because a launcher in between,
such as torchrun, does not pass on their exit codes.
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
"""128 plus the number of SIGTERM, which a shell reports for a process that the signal ended.

Never 0 for a trainer: a Job with podFailurePolicy counts a pod that exits 0 as done, and is Complete with the work unfinished.
"""


class Interrupted(SystemExit):
    """Ends the process with 143 unless it is caught. A SystemExit, so `finally` blocks run and nothing is printed.

    A mark informs `flexspot_runtime.launch`, if it runs above, at once: a launcher in between may not pass on the exit code.
    """

    def __init__(self, source: str, step: int | None) -> None:
        super().__init__(INTERRUPTED_EXIT_CODE)
        mark_interrupted(source)
        self.source = source
        """Source of the warning: SIGTERM, the name of a notice, or another rank."""
        self.step = step
        """Steps done, saved or not; None if unknown."""


_LOG = logging.getLogger("flexspot_runtime")

GRACE_VARIABLE = "FLEXSPOT_GRACE_SECONDS"
LEAST_GRACE_SECONDS = 15.0
"""Grace that GKE Spot gives a user's pod by default, whatever the pod requests."""

_END = 0
"""No signal has this number: it ends the listener."""


@dataclass(frozen=True, slots=True)
class Notice:
    """A warning. Times are of the clock's `monotonic`."""

    source: str
    """SIGTERM, or the name of the source that polls the cloud."""

    received_at: float
    deadline: float
    """When the process is killed, as far as known."""


class Interruption:
    """Listens for SIGTERM inside its `with` block, and reports how much of the grace period is left.

    A Python signal handler runs between two bytecodes of the main thread, so one long step of native code can use up the whole grace
    period. Here the interpreter's C handler writes the signal's number to a pipe and a thread reads it: the notice, its time and the
    callbacks do not wait for the main thread. (A native call that keeps the GIL blocks this thread, too; numpy's and torch's large ones
    release it. While an event loop inside handles signals, they wait until the main thread runs Python.) A step cannot be cut short: keep
    steps shorter than the grace period less the time of a checkpoint.

    Forked children (data loaders, worker pools) get the previous handlers back: stopping a child is no notice to the parent. Children
    started by `exec` never had the new ones.

    Inside the block, the previous handlers of `signals` are not called; they are restored afterwards. A handler that other code sets inside
    is replaced when the main thread next reads `noticed` or calls `wait`, with a warning: `ray.init` sets one that ends the process
    unsaved.

    Raises ValueError for a grace period that is not positive or a variable that is not a number. Raises RuntimeError when entered outside
    the main thread, which Python forbids.
    """

    def __init__(
        self,
        grace_seconds: float | None = None,
        *,
        signals: Collection[signal.Signals] = (signal.SIGTERM,),
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """Create a listener.

        grace_seconds: from the signal to the kill: the pod's terminationGracePeriodSeconds less its preStop, and no more than the machine
        gives. Default: the variable FLEXSPOT_GRACE_SECONDS, or 15.
        """
        self.grace_seconds = _grace_of_environment() if grace_seconds is None else grace_seconds
        if not self.grace_seconds > 0:
            raise ValueError(f"grace_seconds must be above 0, got {self.grace_seconds}: it is the time from the signal to the kill")
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
        self._handler = _NotifyListener(-1)
        self._process = 0

    def __enter__(self) -> Self:
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("Interruption must be entered in the main thread; enter it where the program starts")
        if self._listener:
            raise RuntimeError("this Interruption was entered already; create one for each `with`")
        self._process = os.getpid()
        read_fd, self._write_fd = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._write_fd, False)
        self._fd_before = signal.set_wakeup_fd(self._write_fd, warn_on_full_buffer=False)
        self._handler = _NotifyListener(self._write_fd)
        self._before = {number: signal.signal(number, self._handler) for number in self.signals}
        _listen_only_in_this_process(self)
        self._listener = threading.Thread(target=self._listen, args=(read_fd,), name="flexspot-interruption", daemon=True)
        self._listener.start()
        return self

    def __exit__(self, *_: object) -> None:
        if os.getpid() != self._process:
            # A forked child leaves the block: the pipe is the parent's, and the handlers were restored at the fork.
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
        """True once a warning came."""
        self._hold_signals()
        return self._noticed.is_set()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for a warning, for at most `seconds`. Return whether one came."""
        self._hold_signals()
        return self._noticed.wait(seconds)

    def deadline(self) -> float:
        """Return when the process will be killed, by the clock's `monotonic`; infinite before a warning."""
        return self._notice.deadline if self._notice else math.inf

    def remaining_seconds(self) -> float:
        """Return the rest of the grace period, 0 when it is over; infinite before a warning."""
        return max(0.0, self.deadline() - self.clock.monotonic())

    def on_notice(self, callback: Callable[[Notice], None]) -> None:
        """Register a callback, called once from the listening thread when a warning comes, or now if one came.

        Its exceptions are only logged.
        """
        with self._lock:
            if self._notice is None:
                self._callbacks.append(callback)
                return
        _call(callback, self._notice)

    def notify(self, source: str, grace_seconds: float | None = None) -> None:
        """Give the warning as if the signal had come; from any thread. Of several warnings the earliest deadline counts."""
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
        """Restore the previous signal handlers, on exit and in children."""
        for number, handler in self._before.items():
            # None: the previous handler was not set from Python, and Python cannot set it again.
            signal.signal(number, handler if callable(handler) or isinstance(handler, signal.Handlers) else signal.SIG_DFL)
        _take_wakeup_from({self._write_fd, -1}, self._fd_before)

    def _hold_signals(self) -> None:
        # Python allows this only in the main thread; and a forked child has its own handlers.
        if self._listener is None or threading.current_thread() is not threading.main_thread() or os.getpid() != self._process:
            return
        for number in self.signals:
            if not isinstance(other := signal.getsignal(number), _NotifyListener):
                signal.signal(number, self._handler)
                _LOG.warning("a handler of %s was set inside the Interruption and is replaced: %s", number.name, other)
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
                        # The previous owner of the wake-up descriptor (an event loop) still gets the other signals.
                        os.write(self._fd_before, bytes([number]))
        finally:
            os.close(read_fd)


@dataclass(frozen=True, slots=True)
class _NotifyListener:
    """The handler in Python, without which the signal would end the process.

    It notifies the listener as well, later than the interpreter does. It also works where an event loop started inside has taken the
    wake-up descriptor: asyncio takes it with its first `add_signal_handler`, and clears it with its last removal.
    """

    write_fd: int

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        with suppress(BlockingIOError):
            os.write(self.write_fd, bytes([number]))


def _take_wakeup_from(others: Collection[int], descriptor: int) -> None:
    """Set the wake-up descriptor if it is one of `others`; otherwise leave it unchanged."""
    before = _set_wakeup(descriptor)
    if before not in others:
        _set_wakeup(before)


def _set_wakeup(descriptor: int) -> int:
    """Set the wake-up descriptor and return the previous one. Set none if `descriptor` was closed in the meantime, which Python rejects."""
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
    """An object that has set signal handlers in this process."""

    @property
    def signals(self) -> Collection[signal.Signals]:
        """Signals that it handles."""
        ...

    def put_handlers_back(self) -> None:
        """Restore the previous handlers."""
        ...


_listening: list[Listening] = []
_mask_before = threading.local()


def _listen_only_in_this_process(listener: Listening) -> None:
    """Restore the listener's previous handlers in every child that is forked from now on."""
    _listening.append(listener)


def _stop_listening(listener: Listening) -> None:
    """Forget the listener."""
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
"""Names a folder that the launcher creates for its processes and their children."""


def mark_interrupted(source: str) -> None:
    """Mark this process as ending because of an interruption, here or elsewhere. Does nothing without a launcher."""
    folder = os.environ.get(MARKS_VARIABLE)
    if not folder:
        return
    ranks = os.environ.get("LOCAL_WORLD_SIZE") or "1"
    rank = os.environ.get("LOCAL_RANK") or "0"
    try:
        Path(folder, f"{rank}-of-{ranks}").write_text(source)
    except OSError as error:
        _LOG.warning("the launcher cannot be notified of the interruption: %s", error)


def all_were_interrupted(folder: Path) -> bool:
    """Return whether every rank of this machine left a mark.

    A rank that crashed leaves none. Marks that the other ranks then leave, because they lost it or were stopped, are a consequence.
    """
    marks = {path.name for path in folder.glob("*-of-*")}
    sizes = {int(name.partition("-of-")[2]) for name in marks}
    return any(marks >= {f"{rank}-of-{size}" for rank in range(size)} for size in sizes)

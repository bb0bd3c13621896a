"""`python -m flexspot_runtime.ray -- python main.py`: the pods of a job as one Ray cluster, in which the first pod runs the program.

Each pod starts Ray with its GPUs. Once all others have joined, the first starts the program with RAY_ADDRESS set, by which `ray.init()`
finds the cluster. The other pods wait for the program's end, which the first reports on a separate port, MASTER_PORT + 1.

All pods end together. They exit with 0 if the program did, even if pods were warned in the meantime. They exit with 143 if a pod was lost
or warned; the program then gets SIGTERM and the grace period. If the program failed, only the first pod exits with the program's code. The
others exit with 143, as a consequence, so that a failure counts once. A pod is lost when its connection ends, or when nothing is received
from it for a minute: a node that loses its power or its network closes no connection.

Ray's state is in memory. A job that starts again starts a new cluster, and resumes from what its program has saved below CHECKPOINT_DIR.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import signal
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from flexspot_runtime.interruption import INTERRUPTED_EXIT_CODE, Interruption
from flexspot_runtime.launch import World, parser_of

if TYPE_CHECKING:
    from collections.abc import Sequence

_LOG = logging.getLogger("flexspot_runtime")

_POLL_SECONDS = 0.1
_CONNECT_SECONDS = 5.0
_JOIN_SECONDS = 1800.0
"""Longest time that pods wait for each other: the nodes of a gang boot, and pull their image, at different times."""

_CALM_SECONDS = 1.0
"""Seconds left of the grace period when the program is killed, for Ray to end."""

_HERE, _WARNED, _ALIVE, _ENDED = b"h", b"w", b"a", b"e"
"""Messages between pods, one byte each.

A pod reports to the first that its Ray runs (h), and that it was warned (w). All report that they are alive (a). The first reports that the
program has ended (e), followed by one byte with its exit code.
"""

_ALIVE_SECONDS = 5.0
"""Seconds between two reports of a pod that it is alive."""

_SILENT_SECONDS = 60.0
"""Seconds without a message after which a pod is lost. Longer than host maintenance that pauses a machine's processes."""


def run(command: Sequence[str], grace_seconds: float | None = None) -> int:
    """Run the program on all pods of the world that the environment describes. Return this pod's exit code."""
    world = World.of(os.environ)
    with Interruption(grace_seconds) as interruption:
        try:
            return _first(command, world, interruption) if world.node_rank == 0 else _other(world, interruption)
        finally:
            with contextlib.suppress(OSError, subprocess.SubprocessError):
                _ray("stop", "--force")


def _ray(*arguments: str) -> None:
    subprocess.run(["ray", *arguments], check=True, stdout=sys.stderr)  # noqa: S603, S607 -- the image's own


def _start(*arguments: str) -> None:
    gpus = os.environ.get("NPROC_PER_NODE")
    _ray("start", *arguments, "--disable-usage-stats", *([f"--num-gpus={gpus}"] if gpus else []))


class _Link:
    """A connection to another pod. It is lost when it ends, or when nothing is received for too long."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        connection.settimeout(_CONNECT_SECONDS)
        self._heard_at = self._reported_at = time.monotonic()
        self.heard = b""
        """All bytes received, without heartbeats."""
        self.lost = False

    def fileno(self) -> int:
        return self._connection.fileno()

    def send(self, content: bytes) -> None:
        try:
            self._connection.sendall(content)
        except OSError:
            self.lost = True

    def wait(self) -> None:
        """Return when something was received, or after a moment."""
        _ = select.select([self._connection], [], [], _POLL_SECONDS)[0]

    def look(self) -> None:
        """Read what was received, and report that this pod is alive, without waiting."""
        now = time.monotonic()
        while not self.lost and select.select([self._connection], [], [], 0)[0]:
            try:
                came = self._connection.recv(64)
            except OSError:
                came = b""
            self.lost = not came
            self.heard += came.replace(_ALIVE, b"") if _ENDED not in self.heard + came else came
            self._heard_at = now
        if now - self._heard_at > _SILENT_SECONDS:
            _LOG.error("no message from a pod for %.0f s", _SILENT_SECONDS)
            self.lost = True
        if not self.lost and now - self._reported_at > _ALIVE_SECONDS:
            self.send(_ALIVE)
            self._reported_at = now

    @property
    def code(self) -> int | None:
        """The program's exit code, once the first pod has reported it."""
        _, ended, code = self.heard.partition(_ENDED)
        return code[0] if ended and code else None


def _first(command: Sequence[str], world: World, interruption: Interruption) -> int:
    _start("--head", f"--port={world.port}", "--include-dashboard=false")
    with socket.create_server(("", int(world.port) + 1)) as server, contextlib.ExitStack() as stack:
        others = _gathered(server, world.nodes - 1, interruption, stack)
        code = INTERRUPTED_EXIT_CODE if others is None else _program(command, world, interruption, others)
        for each in others or ():
            # Read first: closing a connection with unread data resets it, and loses the data that was sent.
            each.look()
            each.send(_ENDED + bytes([code]))
        return code


def _gathered(server: socket.socket, count: int, interruption: Interruption, stack: contextlib.ExitStack) -> list[_Link] | None:
    """Return the connections of the other pods once each runs Ray, or None after a warning. Raises TimeoutError if pods are missing."""
    end, seen = time.monotonic() + _JOIN_SECONDS, list[_Link]()
    while len(here := [each for each in seen if each.heard == _HERE]) < count:
        if interruption.noticed:
            return None
        if time.monotonic() > end:
            raise TimeoutError(f"{count - len(here)} of {count + 1} pods did not join in {_JOIN_SECONDS:.0f} s")
        if server in select.select([server, *seen], [], [], _POLL_SECONDS)[0]:
            seen.append(_Link(stack.enter_context(server.accept()[0])))
        for each in seen:
            each.look()
        # Drop those that only probed this pod, and those that were warned or lost: another pod replaces them.
        seen = [each for each in seen if not each.lost and _WARNED not in each.heard]
    return here


def _program(command: Sequence[str], world: World, interruption: Interruption, others: Sequence[_Link]) -> int:
    """Run the program to its end, or until a pod is warned or lost. Return its exit code, 143 if it was stopped."""
    process = subprocess.Popen(command, env={**os.environ, "RAY_ADDRESS": f"127.0.0.1:{world.port}"})  # noqa: S603 -- the user's command
    stopped_at: float | None = None
    while (code := process.poll()) is None:
        for each in others:
            each.look()
        if stopped_at is None and (interruption.noticed or any(each.lost or _WARNED in each.heard for each in others)):
            process.send_signal(signal.SIGTERM)
            stopped_at = time.monotonic()
        elif stopped_at is not None and time.monotonic() > stopped_at + interruption.grace_seconds - _CALM_SECONDS:
            _LOG.error("the program did not stop in %.0f s and is killed", interruption.grace_seconds)
            process.kill()
        time.sleep(_POLL_SECONDS)
    if code != 0 and stopped_at is not None:
        return INTERRUPTED_EXIT_CODE
    return code if code >= 0 else _SIGNALLED - code


_SIGNALLED = 128


def _other(world: World, interruption: Interruption) -> int:
    place, end = (world.address, int(world.port) + 1), time.monotonic() + _JOIN_SECONDS
    # The first pod listens as soon as its Ray runs.
    while not _listens(place):
        if interruption.noticed:
            return INTERRUPTED_EXIT_CODE
        if time.monotonic() > end:
            raise TimeoutError(f"the first pod, {world.address}, was not there in {_JOIN_SECONDS:.0f} s")
        interruption.wait(1.0)
    try:
        _start(f"--address={world.address}:{world.port}")
        connection = socket.create_connection(place, timeout=_CONNECT_SECONDS)
    except (OSError, subprocess.SubprocessError):
        if _listens(place):
            raise
        # The first pod ended in the meantime, and reports the reason itself.
        return INTERRUPTED_EXIT_CODE
    with connection:
        return _wait_for_end(_Link(connection), interruption)


def _listens(place: tuple[str, int]) -> bool:
    try:
        socket.create_connection(place, timeout=_CONNECT_SECONDS).close()
    except OSError:
        return False
    return True


def _wait_for_end(first: _Link, interruption: Interruption) -> int:
    """Wait for the end of the program. Report a warning to the first pod and keep this pod's Ray running while the program saves."""
    first.send(_HERE)
    warned = False
    while first.code is None and not first.lost:
        if interruption.noticed and not warned:
            first.send(_WARNED)
            warned = True
        if interruption.noticed and interruption.remaining_seconds() < _CALM_SECONDS:
            return INTERRUPTED_EXIT_CODE
        first.wait()
        first.look()
    # The first pod reports why the program failed. Here that, and the loss of the first pod, is a consequence.
    return 0 if first.code == 0 else INTERRUPTED_EXIT_CODE


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. Return the exit code."""
    chosen = parser_of("flexspot_runtime.ray", "Runs a program on a Ray cluster of a job's pods.").parse_args(arguments)
    return run(chosen.command, chosen.grace_seconds)


if __name__ == "__main__":
    sys.exit(main())

"""`python -m flexspot_runtime.ray -- python main.py`: the pods of a job as one Ray cluster, in which the first runs the program.

Each pod starts Ray with its GPUs; the first, once all others have joined, starts the program with RAY_ADDRESS set, by which `ray.init()`
finds the cluster. The other pods wait for its end, which the first tells them at a port of its own, MASTER_PORT + 1.

All pods end together. With 0 where the program did. With 143 where any pod was warned, the program having had SIGTERM and the grace period,
and where one was lost without a word. With its own code where the program failed, in the first pod alone: in the others that is a
consequence, and 143.

Ray's state is in memory: a job that begins anew begins a new cluster, and resumes from what its program has saved below CHECKPOINT_DIR.
"""

from __future__ import annotations

import argparse
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
from flexspot_runtime.launch import World

if TYPE_CHECKING:
    from collections.abc import Sequence

_LOG = logging.getLogger("flexspot_runtime")

_POLL_SECONDS = 0.1
_CONNECT_SECONDS = 5.0
_JOIN_SECONDS = 1800.0
"""How long pods wait for each other: nodes of a gang boot, and pull their image, one later than the other."""

_CALM_SECONDS = 1.0
"""Left of the grace period when the program is killed, for Ray to end."""

_HERE, _WARNED = b"h", b"w"
"""What another pod tells the first: that its Ray runs, and that it was warned."""


def run(command: Sequence[str], grace_seconds: float | None = None) -> int:
    """Runs the program on all pods of the world that the environment names; the exit code of this one."""
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


def _first(command: Sequence[str], world: World, interruption: Interruption) -> int:
    _start("--head", f"--port={world.port}", "--include-dashboard=false")
    with socket.create_server(("", int(world.port) + 1)) as server, contextlib.ExitStack() as stack:
        others = _gathered(server, world.nodes - 1, interruption, stack)
        code = INTERRUPTED_EXIT_CODE if others is None else _program(command, world, interruption, others)
        for each in others or ():
            with contextlib.suppress(OSError):
                each.sendall(bytes([code]))
        return code


def _gathered(server: socket.socket, count: int, interruption: Interruption, stack: contextlib.ExitStack) -> list[socket.socket] | None:
    """The connections of the other pods once the Ray of each runs; None after a warning. Raises TimeoutError where some do not come."""
    end, seen, here = time.monotonic() + _JOIN_SECONDS, list[socket.socket](), list[socket.socket]()
    while len(here) < count:
        if interruption.noticed:
            return None
        if time.monotonic() > end:
            raise TimeoutError(f"{count - len(here)} of {count + 1} pods did not join in {_JOIN_SECONDS:.0f} s")
        for each in select.select([server, *seen], [], [], _POLL_SECONDS)[0]:
            if each is server:
                seen.append(stack.enter_context(server.accept()[0]))
                continue
            # One that only looked whether this pod is there says nothing, and goes.
            seen.remove(each)
            if each.recv(1) == _HERE:
                here.append(each)
    return here


def _program(command: Sequence[str], world: World, interruption: Interruption, others: Sequence[socket.socket]) -> int:
    """Runs the program to its end, or until a pod is warned or lost."""
    process = subprocess.Popen(command, env={**os.environ, "RAY_ADDRESS": f"127.0.0.1:{world.port}"})  # noqa: S603 -- what was asked for
    told_at: float | None = None
    while (code := process.poll()) is None:
        # The others say nothing while they are well.
        if told_at is None and (interruption.noticed or select.select(others, [], [], 0)[0]):
            process.send_signal(signal.SIGTERM)
            told_at = time.monotonic()
        elif told_at is not None and time.monotonic() > told_at + interruption.grace_seconds - _CALM_SECONDS:
            _LOG.error("the program did not stop in %.0f s and is killed", interruption.grace_seconds)
            process.kill()
        time.sleep(_POLL_SECONDS)
    if code != 0 and told_at is not None:
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
    _start(f"--address={world.address}:{world.port}")
    with socket.create_connection(place) as first:
        first.sendall(_HERE)
        return _told(first, interruption)


def _listens(place: tuple[str, int]) -> bool:
    try:
        socket.create_connection(place, timeout=_CONNECT_SECONDS).close()
    except OSError:
        return False
    return True


def _told(first: socket.socket, interruption: Interruption) -> int:
    """Waits for the end of the program. After a warning the first pod is told, and this one's Ray stays while the program saves."""
    warned = False
    while not select.select([first], [], [], _POLL_SECONDS)[0]:
        if interruption.noticed and not warned:
            first.sendall(_WARNED)
            warned = True
        if interruption.noticed and interruption.remaining_seconds() < _CALM_SECONDS:
            return INTERRUPTED_EXIT_CODE
    try:
        code = first.recv(1)
    except OSError:
        code = b""
    # What the program failed of is the first pod's to say; here it is a consequence, as is the loss of that pod.
    return 0 if code == b"\0" and not warned else INTERRUPTED_EXIT_CODE


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m flexspot_runtime.ray", description="Runs a program on a Ray cluster of a job's pods.")
    parser.add_argument(
        "--grace-seconds", type=float, default=None, help="from SIGTERM to the kill (default: $FLEXSPOT_GRACE_SECONDS or 15)"
    )
    parser.add_argument("command", nargs="+", help="what to run, after --")
    chosen = parser.parse_args(arguments)
    return run(chosen.command, chosen.grace_seconds)


if __name__ == "__main__":
    sys.exit(main())

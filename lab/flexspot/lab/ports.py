"""Free ports on loopback, kept from every other lab of this user until the programs that they are for listen there."""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack

import platformdirs
import psutil
from filelock import FileLock, Timeout

HOST = "127.0.0.1"

# Below the range from which operating systems take the local ports of outgoing connections (32768 on Linux, 49152 on macOS),
# so that a port that is free now is not taken by somebody's connection before its server starts.
_RANGE = range(21000, 32000)


class Reservations(ExitStack):
    """Ports that this process gives out, each to nobody else while the reservations are open.

    Programs listen many seconds after their ports were chosen; without this two labs that start side by side would choose the same one
    now and then, and the second would take the first's program for its own. Labs of other users, and programs that are no lab, reserve
    nothing: what they are quicker to take is found when a part ends for it. So it is where the user's cache cannot be written to.
    """

    def __init__(self) -> None:
        super().__init__()
        self._given: set[int] = set()

    def take(self, port: int) -> bool:
        """Reserves a port; False when somebody listens there or has reserved it."""
        if port in self._given:
            return False
        with ExitStack() as held:
            if not _announce(port, held) or not is_free(port):
                return False
            self.push(held.pop_all())
        self._given.add(port)
        return True

    def choose(self) -> int:
        """Reserves a free port, a random one. Raises OSError when there is none."""
        for port in random.sample(_RANGE, len(_RANGE)):
            if self.take(port):
                return port
        raise OSError(f"no free port on {HOST} between {_RANGE.start} and {_RANGE.stop - 1}")


def _announce(port: int, held: ExitStack) -> bool:
    """Tells other labs of a port until `held` is closed; False when one of them has it. A cache that cannot be written to tells nobody."""
    folder = platformdirs.user_cache_path("flexspot") / "ports"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        held.enter_context(FileLock(folder / str(port), blocking=False))
    except Timeout:
        return False
    except OSError:
        return True
    return True


def is_free(port: int) -> bool:
    """Whether a server could listen on `port` of loopback now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def owner_of(port: int) -> str:
    """The process that listens on `port`, for an error message, as far as the operating system says."""
    try:
        connections = psutil.net_connections(kind="tcp")
    except psutil.AccessDenied:
        return "another program"
    for connection in connections:
        if connection.status == psutil.CONN_LISTEN and connection.laddr[1:2] == (port,) and connection.pid:
            try:
                return f"{psutil.Process(connection.pid).name()} (process {connection.pid})"
            except psutil.Error:
                break
    return "another program"

"""Free ports on loopback, reserved for this lab until its programs listen there."""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack

import platformdirs
import psutil
from filelock import FileLock, Timeout

HOST = "127.0.0.1"

# Below the range from which operating systems take the local ports of outgoing connections (32768 on Linux, 49152 on macOS). So a free port
# is not taken by another program's connection before the server starts.
_RANGE = range(21000, 32000)


class Reservations(ExitStack):
    """Ports reserved by this process, unavailable to other labs while the reservations are open.

    Programs listen many seconds after their ports were chosen. Without reservations, two labs starting at once would now and then choose
    the same port, and the second would use the first's program. Labs of other users, and other programs, reserve nothing: if they take a
    port first, a part ends and that is detected. The same applies where the user's cache is not writable.
    """

    def __init__(self) -> None:
        super().__init__()
        self._given: set[int] = set()

    def take(self, port: int) -> bool:
        """Reserve a port. Return False if another program listens there or has reserved it."""
        if port in self._given:
            return False
        with ExitStack() as held:
            if not _announce(port, held) or not is_free(port):
                return False
            self.push(held.pop_all())
        self._given.add(port)
        return True

    def choose(self) -> int:
        """Reserve a random free port. Raises OSError if there is none."""
        for port in random.sample(_RANGE, len(_RANGE)):
            if self.take(port):
                return port
        raise OSError(f"no free port on {HOST} between {_RANGE.start} and {_RANGE.stop - 1}")


def _announce(port: int, held: ExitStack) -> bool:
    """Announce a port to other labs until `held` is closed. Return False if one of them has it, True also if the cache is not writable."""
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
    """Return whether a server could listen on `port` of loopback now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def owner_of(port: int) -> str:
    """Return the name of the process that listens on `port`, for an error message, as far as the operating system reports it."""
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

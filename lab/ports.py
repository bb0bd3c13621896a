"""Free ports on loopback."""

from __future__ import annotations

import random
import socket

import psutil

HOST = "127.0.0.1"

# Below the range from which operating systems take the local ports of outgoing connections (32768 on Linux, 49152 on macOS),
# so that a port that is free now is not taken by somebody's connection before its server starts.
_RANGE = range(21000, 32000)


def is_free(port: int) -> bool:
    """Whether a server could listen on `port` of loopback now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def free_port(taken: set[int]) -> int:
    """A free port that is not in `taken`; random, so that two labs starting at once rarely pick the same.

    Raises OSError when there is none.
    """
    candidates = list(_RANGE)
    random.shuffle(candidates)
    for port in candidates:
        if port not in taken and is_free(port):
            return port
    raise OSError(f"no free port on {HOST} between {_RANGE.start} and {_RANGE.stop - 1}")


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

"""Provider plugins that start with their libraries loaded. Each run of the engine starts each plugin, and loading takes most of its time.

The engine starts CLIENT, a program of a few lines. It passes its output to a process forked here, which serves the provider and prints its
port there. That process ends with the program, and so with the engine, or when it is killed.
"""

from __future__ import annotations

import atexit
import faulthandler
import gc
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

CLIENT = """
import json, os, signal, socket, sys, time

def abort(*_):
    nursery.send(b"?")
    time.sleep(1)
    os._exit(134)

engine = os.getppid()
nursery = socket.socket(socket.AF_UNIX)
nursery.connect(sys.argv[1])
signal.signal(signal.SIGABRT, abort)
socket.send_fds(nursery, [b"+"], [1, 2])
nursery.sendall(json.dumps([sys.argv[2], sys.argv[3], dict(os.environ)]).encode() + b"\\n")
while os.getppid() == engine:
    time.sleep(0.2)
"""


@cache
def nursery() -> str:
    """Return the address of this process's nursery, which ends with it."""
    address = Path(tempfile.mkdtemp(prefix="plugins-")) / "socket"
    command = [sys.executable, "-c", f"import sys; sys.path[:0] = {sys.path!r}; from plugin_nursery import serve; serve({str(address)!r})"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    atexit.register(shutil.rmtree, address.parent, ignore_errors=True)
    atexit.register(process.kill)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n", "the plugins' nursery did not start"
    return str(address)


def serve(address: str) -> None:
    """Fork a plugin for each program that connects, until standard input ends."""
    # These are the libraries. A caller that only needs the address does not load them.
    from cloud_folder import HOME_VARIABLE, CloudFolder  # noqa: PLC0415 -- as above
    from cloud_provider import CloudProvider  # noqa: PLC0415 -- as above
    from programs_cluster import ProgramsCluster  # noqa: PLC0415 -- as above

    from flexspot.lab.providers.serving import serve as serving  # noqa: PLC0415 -- as above

    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen(64)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while sys.stdin not in select.select([listening, sys.stdin], [], [])[0]:
            client, _ = listening.accept()
            with client:
                if os.fork() == 0:
                    listening.close()
                    _become_plugin(client)
                    name, version = _read_request(client)
                    cloud = CloudFolder(Path(os.environ[HOME_VARIABLE]))
                    provider = ProgramsCluster(cloud) if name == "kubernetes" else CloudProvider(name, version, cloud)
                    with serving(provider) as port:
                        sys.stdout.write(f"{port}\n")
                        sys.stdout.flush()
                        if client.recv(1):
                            faulthandler.dump_traceback(all_threads=True)
                        # A call that still waits for the control plane would keep the process alive.
                        os._exit(0)


def _become_plugin(client: socket.socket) -> None:
    """Become the plugin, writing where the client writes."""
    _, outputs, _, _ = socket.recv_fds(client, 1, 2)
    for number, output in enumerate(outputs, start=1):
        os.dup2(output, number)
        os.close(output)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    faulthandler.enable()


def _read_request(client: socket.socket) -> tuple[str, str]:
    """Return the provider's name and version. The environment becomes the client's."""
    written = b""
    while not written.endswith(b"\n"):
        part = client.recv(65536)
        if not part:
            os._exit(1)
        written += part
    name, version, environment = json.loads(written)
    os.environ.clear()
    os.environ.update(environment)
    return name, version

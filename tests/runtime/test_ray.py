"""The pods of a job as one Ray cluster: they begin together, end together, and an interruption of one is a failure of none.

`ray` itself is a double here, which notes what it is told: tried by hand with Ray 2.60 on 2026-11-26.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.kills

RUNTIME = Path(__file__).parents[2] / "runtime"
PATIENT_SECONDS = 60

PROGRAM = """import os, sys
sys.path.insert(0, sys.argv[2])
from flexspot_runtime import Interrupted, Interruption

with Interruption() as interruption:
    os.write(1, ("begun at " + os.environ["RAY_ADDRESS"] + "\\n").encode())
    if sys.argv[1] == "crash":
        sys.exit(3)
    if sys.argv[1] == "wait":
        interruption.wait()
        os.write(1, b"saved\\n")
        raise Interrupted("SIGTERM", 7)
"""


@dataclass
class Pods:
    """Two pods on one machine; `told` is what the double of ray has noted."""

    processes: list[subprocess.Popen[str]]
    port: int
    notes: Path

    def codes(self) -> list[int]:
        return [each.wait(PATIENT_SECONDS) for each in self.processes]

    def wait_for_begin(self) -> None:
        output = self.processes[0].stdout
        assert output
        assert output.readline() == f"begun at 127.0.0.1:{self.port}\n"

    def told(self) -> list[str]:
        return self.notes.read_text().splitlines()


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Callable[[str], Pods]]:
    ray = tmp_path / "ray"
    ray.write_text(f'#!/bin/sh\necho "$NODE_RANK: $*" >> {tmp_path}/notes\n')
    ray.chmod(0o755)
    (tmp_path / "main.py").write_text(PROGRAM)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = int(server.getsockname()[1]) - 1

    with ExitStack() as stack:

        def start(does: str) -> Pods:
            command = [sys.executable, "-m", "flexspot_runtime.ray", "--", sys.executable, str(tmp_path / "main.py"), does, str(RUNTIME)]
            known = {"NNODES": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
            known |= {"NPROC_PER_NODE": "8", "FLEXSPOT_GRACE_SECONDS": "20"}
            path = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(RUNTIME)}
            pods = [
                stack.enter_context(
                    subprocess.Popen(
                        command, env={**known, **path, "NODE_RANK": str(rank)}, stdout=subprocess.PIPE, text=True, start_new_session=True
                    )
                )
                for rank in range(2)
            ]
            stack.callback(end, pods)
            return Pods(pods, port, tmp_path / "notes")

        yield start


def end(pods: list[subprocess.Popen[str]]) -> None:
    """Kills what is left of them, the program of a pod that was lost included."""
    for each in pods:
        with suppress(ProcessLookupError):
            os.killpg(each.pid, signal.SIGKILL)


def test_all_join_before_the_program_begins_and_end_with_it(started: Callable[[str], Pods]) -> None:
    pods = started("work")

    assert pods.codes() == [0, 0]
    first, other = (f"start --head --port={pods.port}", f"start --address=127.0.0.1:{pods.port}")
    begun = [each for each in pods.told() if " start " in each]
    assert [each.partition(": ")[2].startswith(text) for each, text in zip(begun, (first, other), strict=True)] == [True, True]
    assert all("--num-gpus=8" in each for each in begun)
    assert sorted(each for each in pods.told() if "stop" in each) == ["0: stop --force", "1: stop --force"]


def test_a_program_that_fails_is_a_failure_of_the_first_pod_alone(started: Callable[[str], Pods]) -> None:
    pods = started("crash")

    assert pods.codes() == [3, 143]


@pytest.mark.parametrize("pod", [0, 1])
def test_a_warning_to_one_pod_lets_the_program_save_and_ends_all_with_143(pod: int, started: Callable[[str], Pods]) -> None:
    pods = started("wait")
    pods.wait_for_begin()

    pods.processes[pod].send_signal(signal.SIGTERM)

    output = pods.processes[0].stdout
    assert output
    assert (pods.codes(), output.read()) == ([143, 143], "saved\n")


@pytest.mark.parametrize("pod", [0, 1])
def test_a_pod_that_is_lost_is_no_failure_of_the_other(pod: int, started: Callable[[str], Pods]) -> None:
    pods = started("wait")
    pods.wait_for_begin()

    pods.processes[pod].kill()

    codes = pods.codes()
    assert codes[1 - pod] == 143
    assert codes[pod] == -signal.SIGKILL


def test_a_pod_that_is_warned_while_it_waits_for_the_others_ends_with_143(started: Callable[[str], Pods]) -> None:
    pods = started("wait")
    pods.processes[1].send_signal(signal.SIGSTOP)
    time.sleep(1)

    pods.processes[0].send_signal(signal.SIGTERM)

    assert pods.processes[0].wait(PATIENT_SECONDS) == 143
    pods.processes[1].send_signal(signal.SIGCONT)

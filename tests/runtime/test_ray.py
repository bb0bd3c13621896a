"""The pods of a job as one Ray cluster: they start together, end together, and an interruption of one is no failure of any.

`ray` itself is a double, which records its arguments. Tried by hand with Ray 2.60 on 2026-11-26.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.slow

RUNTIME = Path(__file__).parents[2] / "runtime"
PATIENT_SECONDS = 60
SILENT_SECONDS = 5.0
"""Instead of a minute."""

RUN = f"""import sys
from flexspot_runtime import ray
ray._SILENT_SECONDS = {SILENT_SECONDS}
ray._ALIVE_SECONDS = 1.0
sys.exit(ray.main())
"""

PROGRAM = """import os, sys
sys.path.insert(0, sys.argv[2])
from flexspot_runtime import Interrupted, Interruption

with Interruption() as interruption:
    os.write(1, ("started at " + os.environ["RAY_ADDRESS"] + "\\n").encode())
    if sys.argv[1] == "crash":
        sys.exit(3)
    if sys.argv[1] == "finish":
        interruption.wait()
    if sys.argv[1] == "wait":
        interruption.wait()
        os.write(1, b"saved\\n")
        raise Interrupted("SIGTERM", 7)
"""


@dataclass
class Pods:
    """Pods on one machine. `lines` returns the calls that the double of ray has recorded."""

    port: int
    notes: Path
    start: Callable[[int], subprocess.Popen[str]]
    processes: list[subprocess.Popen[str]] = field(default_factory=list["subprocess.Popen[str]"])

    def add(self, rank: int) -> None:
        """Add a pod, or replace one."""
        self.processes[rank : rank + 1] = [self.start(rank)]

    def codes(self) -> list[int]:
        return [each.wait(PATIENT_SECONDS) for each in self.processes]

    def wait_for_begin(self) -> None:
        output = self.processes[0].stdout
        assert output
        assert output.readline() == f"started at 127.0.0.1:{self.port}\n"

    def lines(self) -> list[str]:
        return self.notes.read_text().splitlines() if self.notes.exists() else []

    def wait_for_head(self) -> None:
        self.wait_for_note("0: start ")

    def wait_for_note(self, begin: str) -> None:
        end = time.monotonic() + PATIENT_SECONDS
        while not any(each.startswith(begin) for each in self.lines()):
            assert time.monotonic() < end
            time.sleep(0.1)
        # Written by a pod that waits for the others, or for its Ray.
        time.sleep(1)


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Callable[..., Pods]]:
    (tmp_path / "main.py").write_text(PROGRAM)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = int(server.getsockname()[1]) - 1

    with ExitStack() as stack:

        def start(does: str, pods: int = 2, *, slow_join: bool = False) -> Pods:
            ray = tmp_path / "ray"
            # Like the real one, which does not join a cluster that is gone.
            joins = 'case "$*" in *--address*) sleep 5; exit 1;; esac\n' if slow_join else ""
            ray.write_text(f'#!/bin/sh\necho "$NODE_RANK: $*" >> {tmp_path}/notes\n{joins}')
            ray.chmod(0o755)
            command = [sys.executable, "-c", RUN, "--", sys.executable, str(tmp_path / "main.py"), does, str(RUNTIME)]
            known = {"NNODES": str(pods), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
            known |= {"NPROC_PER_NODE": "8", "FLEXSPOT_GRACE_SECONDS": "20"}
            path = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(RUNTIME)}

            def pod(rank: int) -> subprocess.Popen[str]:
                environment = {**known, **path, "NODE_RANK": str(rank)}
                process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True)
                stack.enter_context(process)
                stack.callback(end, process)
                return process

            made = Pods(port, tmp_path / "notes", pod)
            for rank in range(pods):
                made.add(rank)
            return made

        yield start


def end(pod: subprocess.Popen[str]) -> None:
    """Kill the rest of a pod, including the program of a lost pod."""
    with suppress(ProcessLookupError):
        os.killpg(pod.pid, signal.SIGKILL)


def test_all_join_before_the_program_begins_and_end_with_it(started: Callable[..., Pods]) -> None:
    pods = started("work")

    assert pods.codes() == [0, 0]
    first, other = (f"start --head --port={pods.port}", f"start --address=127.0.0.1:{pods.port}")
    starts = [each for each in pods.lines() if " start " in each]
    assert [each.partition(": ")[2].startswith(text) for each, text in zip(starts, (first, other), strict=True)] == [True, True]
    assert all("--num-gpus=8" in each for each in starts)
    assert sorted(each for each in pods.lines() if "stop" in each) == ["0: stop --force", "1: stop --force"]


def test_a_program_that_fails_is_a_failure_of_the_first_pod_alone(started: Callable[..., Pods]) -> None:
    pods = started("crash")

    assert pods.codes() == [3, 143]


FIRST = pytest.mark.nightly(tested_by="test_the_loss_of_one_pod_ends_the_other_with_143_after_the_program_saved")


@pytest.mark.parametrize(
    "number,pod",
    [
        (signal.SIGTERM, 0),
        (signal.SIGTERM, 1),
        pytest.param(signal.SIGKILL, 0, marks=FIRST),
        (signal.SIGKILL, 1),
        pytest.param(signal.SIGSTOP, 0, marks=FIRST),
        (signal.SIGSTOP, 1),
    ],
)
def test_the_loss_of_one_pod_ends_the_other_with_143_after_the_program_saved(
    number: signal.Signals, pod: int, started: Callable[..., Pods]
) -> None:
    """A warning, a loss, and silence, as of a node that loses its power or its network: no connection ends."""
    pods = started("wait")
    pods.wait_for_begin()

    pods.processes[pod].send_signal(number)

    assert pods.processes[1 - pod].wait(PATIENT_SECONDS) == 143
    if number == signal.SIGTERM or pod == 1:
        output = pods.processes[0].stdout
        assert output
        assert (pods.processes[0].wait(PATIENT_SECONDS), output.read()) == (143, "saved\n")


def test_a_pod_that_is_warned_while_it_waits_for_the_others_ends_with_143(started: Callable[..., Pods]) -> None:
    pods = started("wait")
    pods.processes[1].send_signal(signal.SIGSTOP)
    pods.wait_for_head()

    pods.processes[0].send_signal(signal.SIGTERM)

    assert pods.processes[0].wait(PATIENT_SECONDS) == 143
    pods.processes[1].send_signal(signal.SIGCONT)


def test_a_pod_that_was_warned_ends_with_0_where_the_program_did(started: Callable[..., Pods]) -> None:
    # Otherwise the Job would start it again, and it would wait for a first pod that has finished.
    pods = started("finish")
    pods.wait_for_begin()

    pods.processes[1].send_signal(signal.SIGTERM)

    assert pods.codes() == [0, 0]


def test_a_waiting_pod_reports_that_it_is_alive(started: Callable[..., Pods]) -> None:
    pods = started("wait")
    pods.wait_for_begin()

    time.sleep(SILENT_SECONDS + 2)

    assert [each.poll() for each in pods.processes] == [None, None]


def test_one_that_went_while_the_others_joined_is_replaced_and_the_program_begins_once(started: Callable[..., Pods]) -> None:
    pods = started("work", pods=3)
    # Two pods of three are here, and one of these goes and comes again.
    pods.processes[2].send_signal(signal.SIGSTOP)
    pods.wait_for_note("1: start ")
    pods.processes[1].send_signal(signal.SIGTERM)
    assert pods.processes[1].wait(PATIENT_SECONDS) == 143

    pods.add(1)
    pods.processes[2].send_signal(signal.SIGCONT)

    assert pods.codes() == [0, 0, 0]
    output = pods.processes[0].stdout
    assert output
    assert output.read().count("started at") == 1


def test_the_first_pod_that_goes_while_another_starts_its_ray_is_no_failure_of_that_one(started: Callable[..., Pods]) -> None:
    pods = started("wait", slow_join=True)
    pods.wait_for_note("1: start ")

    pods.processes[0].kill()

    assert pods.processes[1].wait(PATIENT_SECONDS) == 143

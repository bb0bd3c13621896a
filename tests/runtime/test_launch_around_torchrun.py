"""The launcher around another one that hides exit codes, and in a world of several machines."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from flexspot_runtime.interruption import all_were_interrupted, mark_interrupted
from flexspot_runtime.launch import TORCHRUN_WAIT_VARIABLE, World

pytestmark = pytest.mark.slow

PATIENT_SECONDS = 60
TORCHRUN = Path(__file__).with_name("torchrun_double.py")

# Reports that it runs, then follows its rank's argument: waits for SIGTERM, ends as interrupted by another machine, or crashes.
WORKER = """
import os, sys, time
from flexspot_runtime import Interrupted, Interruption

with Interruption() as interruption:
    os.write(1, b"ready\\n")
    # Ranks that train together are all there when one of them ends.
    if meeting := os.environ.get("MEETING"):
        open(meeting + "/" + os.environ["RANK"], "w").close()
        while len(os.listdir(meeting)) < 2:
            time.sleep(0.01)
    does = sys.argv[1 + int(os.environ["LOCAL_RANK"]) % (len(sys.argv) - 1)]
    if does == "interrupted":
        raise Interrupted("another rank", 7)
    if does == "crash":
        time.sleep(0.3)
        sys.exit(3)
    if does == "done":
        sys.exit()
    interruption.wait()
    if does == "lost":
        raise Interrupted("SIGTERM", 7)
    time.sleep(float(does))
    os.write(1, b"saved\\n")
    raise Interrupted("SIGTERM", 7)
"""


def torchrun(*does: str, ranks: int = 2) -> list[str]:
    return [sys.executable, str(TORCHRUN), str(ranks), sys.executable, "-c", WORKER, *does]


@pytest.fixture(autouse=True)
def meeting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Create the folder where workers wait for each other."""
    (tmp_path / "meeting").mkdir()
    monkeypatch.setenv("MEETING", str(tmp_path / "meeting"))


def launched(*does: str, grace_seconds: float = 15.0) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "flexspot_runtime.launch", "--grace-seconds", str(grace_seconds), "--", *torchrun(*does)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def ended(started: subprocess.Popen[str], *, warned: bool) -> tuple[str, int]:
    with started:
        assert started.stdout
        if warned:
            assert [started.stdout.readline() for _ in range(2)] == ["ready\n"] * 2
            started.send_signal(signal.SIGTERM)
        output, _ = started.communicate(timeout=PATIENT_SECONDS)
    return output, started.returncode


def test_a_warning_is_143_whatever_the_launcher_below_makes_of_it() -> None:
    assert ended(launched("0.0"), warned=True) == ("saved\nsaved\n", 143)


def test_workers_that_stop_because_another_machine_was_interrupted_are_143() -> None:
    assert ended(launched("interrupted"), warned=False)[1] == 143


@pytest.mark.parametrize("does", [("crash", "lost"), ("lost", "crash"), ("crash", "interrupted"), ("crash",)])
def test_a_worker_that_crashed_is_a_failure_whatever_the_others_say(does: tuple[str, ...]) -> None:
    """The others were stopped, or lost it: that is a consequence."""
    assert ended(launched(*does), warned=False)[1] == 1


def test_workers_have_the_pods_grace_period_not_torchruns(monkeypatch: pytest.MonkeyPatch) -> None:
    says = [sys.executable, "-c", f"import os; print(os.environ[{TORCHRUN_WAIT_VARIABLE!r}])"]
    command = [sys.executable, "-m", "flexspot_runtime.launch", "--grace-seconds", "105.5", "--", *says]

    assert subprocess.check_output(command, text=True) == "103\n", "two seconds to end itself"
    monkeypatch.setenv(TORCHRUN_WAIT_VARIABLE, "7")
    assert subprocess.check_output(command, text=True) == "7\n", "a person's own stays"


def test_workers_that_do_not_stop_are_killed_when_the_grace_period_is_over() -> None:
    assert ended(launched("30", grace_seconds=5.0), warned=True) == ("", 143)


def test_all_done_is_0() -> None:
    assert ended(launched("done"), warned=False)[1] == 0


def test_ranks_of_several_machines_are_one_world() -> None:
    environment = {"NNODES": "3", "NODE_RANK": "2", "MASTER_ADDR": "bert-0.flexspot-gang", "MASTER_PORT": "12345"}

    assert World.of(environment).variables(1, ranks=8) == {
        "RANK": "17",
        "LOCAL_RANK": "1",
        "GROUP_RANK": "2",
        "WORLD_SIZE": "24",
        "LOCAL_WORLD_SIZE": "8",
        "MASTER_ADDR": "bert-0.flexspot-gang",
        "MASTER_PORT": "12345",
    }


@pytest.mark.parametrize("environment", [{}, {"NNODES": "", "NODE_RANK": "", "MASTER_PORT": ""}])
def test_one_machine_alone_meets_itself(environment: dict[str, str]) -> None:
    found = World.of(environment).variables(0, ranks=2)

    assert (found["MASTER_ADDR"], found["MASTER_PORT"], found["RANK"], found["WORLD_SIZE"]) == ("127.0.0.1", "29500", "0", "2")


@pytest.mark.parametrize(
    "environment,message",
    [
        ({"NNODES": "2"}, "NNODES is 2 and MASTER_ADDR is not set; set it to the address at which every node reaches the first one"),
        ({"NNODES": "2", "NODE_RANK": "2", "MASTER_ADDR": "a"}, "NODE_RANK is 2 and NNODES is 2; ranks of machines go from 0"),
        ({"NNODES": "1:4"}, "NNODES is '1:4'; it must be a whole number from 0"),
        ({"NNODES": "0"}, "NODE_RANK is 0 and NNODES is 0"),
    ],
)
def test_a_world_that_cannot_meet_is_refused(environment: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        World.of(environment)


def test_marks_count_when_all_ranks_of_the_machine_left_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLEXSPOT_MARKS", str(tmp_path))
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert not all_were_interrupted(tmp_path)
    for rank in range(2):
        monkeypatch.setenv("LOCAL_RANK", str(rank))
        mark_interrupted("SIGTERM")
        assert all_were_interrupted(tmp_path) == (rank == 1)


def test_a_mark_that_cannot_be_left_ends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLEXSPOT_MARKS", str(tmp_path / "gone"))

    mark_interrupted("SIGTERM")

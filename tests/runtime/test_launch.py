"""Real processes, whose output shows what reached them."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from flexspot_runtime.launch import Ranks, main

if TYPE_CHECKING:
    from pathlib import Path

PATIENT_SECONDS = 60

# Prints its rank, then waits for SIGTERM and ends with 143 as a trainer does. Each line is one write, so that lines do not mix.
TRAINER = """
import os
from flexspot_runtime import Interrupted, Interruption

with Interruption() as interruption:
    os.write(1, " ".join(os.environ[name] for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE")).encode() + b"\\n")
    interruption.wait()
    os.write(1, b"warned\\n")
    raise Interrupted("SIGTERM", 7)
"""

DEAF = "import os, signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); os.write(1, b'deaf\\n'); signal.pause()"


def launcher(code: str, *, ranks: int, grace_seconds: float = 15.0) -> subprocess.Popen[str]:
    options = ["--ranks", str(ranks), "--grace-seconds", str(grace_seconds)]
    command = [sys.executable, "-m", "flexspot_runtime.launch", *options, "--", sys.executable, "-c", code]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_sigterm_reaches_every_rank_and_the_exit_code_is_that_of_an_interruption() -> None:
    with launcher(TRAINER, ranks=3) as started:
        assert started.stdout
        assert sorted(started.stdout.readline() for _ in range(3)) == ["0 0 3\n", "1 1 3\n", "2 2 3\n"]
        started.send_signal(signal.SIGTERM)
        output, _ = started.communicate(timeout=PATIENT_SECONDS)

    assert (output, started.returncode) == ("warned\n" * 3, 143)


@pytest.mark.slow
def test_a_rank_that_does_not_stop_is_killed_after_the_grace_period() -> None:
    with launcher(DEAF, ranks=2, grace_seconds=0.3) as started:
        assert started.stdout
        assert [started.stdout.readline() for _ in range(2)] == ["deaf\n"] * 2
        started.send_signal(signal.SIGTERM)
        _, complaint = started.communicate(timeout=PATIENT_SECONDS)

    assert started.returncode == 143
    assert "ranks that did not stop in 0 s are killed" in complaint


def test_when_one_rank_fails_the_others_are_stopped_and_its_code_is_the_answer() -> None:
    code = "import os, sys, time; sys.exit(3) if os.environ['RANK'] == '1' else time.sleep(600)"

    assert main(["--ranks", "3", "--", sys.executable, "-c", code]) == 3


# One rank loses the other, and ends as interrupted before the one that crashes is gone.
LOSES_THE_OTHER = """
import os, signal, sys, time
crashing = sys.argv[1]
if os.environ["RANK"] == "0":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    open(crashing, "w").close()
    time.sleep(0.3)
    sys.exit(3)
while not os.path.exists(crashing):
    time.sleep(0.01)
sys.exit(143)
"""


@pytest.mark.slow
def test_a_rank_that_crashed_is_the_answer_also_when_another_ended_first_because_of_it(tmp_path: Path) -> None:
    assert main(["--ranks", "2", "--", sys.executable, "-c", LOSES_THE_OTHER, str(tmp_path / "crashing")]) == 3


def test_a_rank_ended_by_a_signal_has_a_shells_exit_code() -> None:
    assert main(["--", sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"]) == 137


def test_orphans_are_collected() -> None:
    """The first process inherits the children of processes that have ended, and must collect them."""
    code = "import os, time; os.fork() or time.sleep(0.2)"

    assert main(["--", sys.executable, "-c", code]) == 0


@pytest.mark.parametrize("command,ranks", [([], 1), (["true"], 0)])
def test_there_is_something_to_start(command: list[str], ranks: int) -> None:
    with pytest.raises(ValueError, match="a command and at least one rank are needed"):
        Ranks(command, ranks)

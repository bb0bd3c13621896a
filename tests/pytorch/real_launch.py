"""Real torchrun, alone and under the launcher: exit codes, and the order of kills."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import rank_pods
from torchrun_ends import ALONE, CRASH, UNDER_THE_LAUNCHER

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENT_SECONDS = 300
RANKS = 2
DOUBLE = Path(__file__).parents[1] / "runtime" / "torchrun_double.py"

WORKER = """
import os, sys, time
from flexspot_runtime import Interrupted, Interruption

with Interruption() as interruption:
    os.write(1, b"ready\\n")
    meeting = sys.argv[2]
    open(meeting + "/" + os.environ["RANK"], "w").close()
    while len(os.listdir(meeting)) < 2:
        time.sleep(0.01)
    if sys.argv[1] == "interrupted":
        raise Interrupted("another rank", 7)
    if sys.argv[1] == "crash" and os.environ["RANK"] == "0":
        sys.exit(3)
    interruption.wait()
    time.sleep(float(sys.argv[3]))
    os.write(1, b"saved\\n")
    raise Interrupted("SIGTERM", 7)
"""

LAUNCHER = [sys.executable, "-m", "flexspot_runtime.launch", "--grace-seconds", "60", "--"]


def torchrun(script: Path) -> list[str]:
    return rank_pods.torchrun(0, rank_pods.free_port(), [str(script)], pods=1, ranks=RANKS)


def double(script: Path) -> list[str]:
    return [sys.executable, str(DOUBLE), str(RANKS), sys.executable, str(script)]


@pytest.mark.parametrize(
    "does,seconds,warned,alone,launched,saved",
    [
        ("wait", 0.0, True, ALONE, UNDER_THE_LAUNCHER, True),
        ("interrupted", 0.0, False, ALONE, UNDER_THE_LAUNCHER, False),
        ("crash", 0.0, False, CRASH, CRASH, True),
    ],
)
@pytest.mark.parametrize("command", [torchrun, double])
def test_how_it_ends(  # noqa: PLR0913 -- the table's columns
    tmp_path: Path, command: Callable[[Path], list[str]], does: str, seconds: float, *, warned: bool, alone: int, launched: int, saved: bool
) -> None:
    for prefix, expected in [(list[str](), alone), (LAUNCHER, launched)]:
        code, output = run([*prefix, *command(written(tmp_path))], tmp_path, does, seconds, warned=warned)
        assert code == expected, (prefix, output)
        assert ("saved" in output) == saved


def test_workers_that_need_longer_than_torchruns_30_s_have_the_pods_grace_period(tmp_path: Path) -> None:
    assert run(torchrun(written(tmp_path)), tmp_path, "wait", 35.0, warned=True) == (ALONE, "ready\nready\n")
    code, output = run([*LAUNCHER, *torchrun(written(tmp_path))], tmp_path, "wait", 35.0, warned=True)
    assert (code, output.count("saved")) == (UNDER_THE_LAUNCHER, RANKS)


def written(folder: Path) -> Path:
    script = folder / "worker.py"
    script.write_text(WORKER)
    return script


def run(command: list[str], folder: Path, does: str, seconds: float, *, warned: bool) -> tuple[int, str]:
    meeting = folder / "meeting"
    meeting.mkdir(exist_ok=True)
    for path in meeting.iterdir():
        path.unlink()
    with subprocess.Popen([*command, does, str(meeting), str(seconds)], stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout
        seen = ""
        if warned:
            seen = "".join(started.stdout.readline() for _ in range(RANKS))
            started.send_signal(signal.SIGTERM)
        output, _ = started.communicate(timeout=PATIENT_SECONDS)
    return started.returncode, seen + output

"""Two pods of torchrun with two ranks each, under the launcher: one is interrupted, and neither counts as failed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
import rank_pods
from torchrun_ends import KILLED, UNDER_THE_LAUNCHER

TRAINER = Path(__file__).with_name("small_trainer.py")
PODS, RANKS = 2, 2
STEPS = 10_000
PATIENT_SECONDS = 300
POD_VARIABLE = "TRIAL_POD"
"""By which the processes of a pod are found when it is killed: torchrun's workers are in sessions of their own."""


@pytest.mark.parametrize("pod", range(PODS), ids=["the pod with torch's store", "the other pod"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_gang_ends_with_143(number: signal.Signals, pod: int, tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    losses, port = tmp_path / "losses", rank_pods.free_port()
    pods = [started(tmp_path, each, port) for each in range(PODS)]
    try:
        end = time.monotonic() + PATIENT_SECONDS
        while not (losses.exists() and len(losses.read_text().splitlines()) > 25):
            assert time.monotonic() < end
            assert [each.poll() for each in pods] == [None] * PODS
            time.sleep(0.1)
        if number == signal.SIGTERM:
            pods[pod].send_signal(number)
        else:
            kill(f"{tmp_path}-{pod}")
        codes = [each.wait(PATIENT_SECONDS) for each in pods]
    finally:
        for each in range(PODS):
            kill(f"{tmp_path}-{each}")
    saved = max(int(path.name.split("-")[0]) for path in tmp_path.glob("checkpoints/markers/*"))
    done = len(losses.read_text().splitlines())

    assert codes[1 - pod] == UNDER_THE_LAUNCHER
    assert codes[pod] == (UNDER_THE_LAUNCHER if number == signal.SIGTERM else 128 - KILLED)
    assert done - saved == 0 if number == signal.SIGTERM else done - saved <= 20


def started(folder: Path, pod: int, port: str) -> subprocess.Popen[bytes]:
    options = [f"--nnodes={PODS}", f"--nproc-per-node={RANKS}", f"--node-rank={pod}", "--master-addr=127.0.0.1", f"--master-port={port}"]
    torchrun = [sys.executable, "-m", "torch.distributed.run", *options, str(TRAINER), "ddp", str(STEPS), str(folder / "losses")]
    return subprocess.Popen(
        [sys.executable, "-m", "flexspot_runtime.launch", "--grace-seconds", "30", "--", *torchrun],
        env={**os.environ, "CHECKPOINT_DIR": str(folder / "checkpoints"), POD_VARIABLE: f"{folder}-{pod}"},
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def kill(pod: str) -> None:
    """All processes of a pod at once, as its control group goes."""
    told = f"{POD_VARIABLE}={pod}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if told in (folder / "environ").read_bytes().split(b"\0"):
                os.kill(int(folder.name), signal.SIGKILL)

"""Two pods of torchrun with two ranks each, under the launcher: one is interrupted, and neither counts as failed."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest
from rank_pods import LIFE_SECONDS, PODS, LaunchedPod, free_port, lived, torchrun
from torchrun_ends import KILLED, UNDER_THE_LAUNCHER

TRAINER = Path(__file__).with_name("small_trainer.py")
STEPS = 10_000


@pytest.mark.parametrize("pod", range(PODS), ids=["the pod with torch's store", "the other pod"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_gang_ends_with_143(number: signal.Signals, pod: int, tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    losses, port = tmp_path / "losses", free_port()
    program = [str(TRAINER), "ddp", str(STEPS), str(losses)]
    told = {"CHECKPOINT_DIR": str(tmp_path / "checkpoints")}
    pods = [LaunchedPod(f"{tmp_path}-{each}", torchrun(each, port, program), told, tmp_path / "output") for each in range(PODS)]

    def strike(_: object) -> None:
        end = time.monotonic() + LIFE_SECONDS
        while not (losses.exists() and len(losses.read_text().splitlines()) > 25):
            assert time.monotonic() < end
            for each in pods:
                each.collect()
                assert each.whole, (tmp_path / "output").read_text()[-2000:]
            time.sleep(0.1)
        pods[pod].signal(number)

    codes = lived(pods, strike)
    saved = max(int(path.name.split("-")[0]) for path in tmp_path.glob("checkpoints/markers/*"))
    done = len(losses.read_text().splitlines())

    assert codes[1 - pod] == [UNDER_THE_LAUNCHER]
    assert codes[pod] == [UNDER_THE_LAUNCHER if number == signal.SIGTERM else 128 - KILLED]
    assert done - saved == 0 if number == signal.SIGTERM else done - saved <= 20

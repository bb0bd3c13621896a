"""A disk that is full, as far as a limit on the size of files can be one: no root is needed."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

# Checkpoints fit for steps up to 10, then the limit is below their size, and from step 30 they fit again.
PROGRAM = """
import resource, sys
from flexspot_runtime import Checkpointer, EverySteps, Interruption, LocalFolder, ProgressFile, TrainingRun

LARGE, SMALL, STEP = 1 << 20, 1 << 12, int(sys.argv[2])
folder = LocalFolder(sys.argv[1])
with Interruption(15) as interruption:
    run = TrainingRun(
        Checkpointer(folder),
        interruption,
        save=lambda writer: writer.put("weights", b"%d" % run.status.step * 20_000),
        load=lambda reader: reader.get("weights"),
        schedule=EverySteps(5),
        progress=ProgressFile(folder, every_seconds=0),
    )
    for step in run.steps(STEP):
        resource.setrlimit(resource.RLIMIT_FSIZE, (SMALL if 10 <= step < 30 else LARGE, LARGE))
"""


def run(folder: Path, total: int) -> tuple[int, str, dict[str, object]]:
    ended = subprocess.run([sys.executable, "-c", PROGRAM, str(folder), str(total)], capture_output=True, text=True, check=False)
    return ended.returncode, ended.stderr, json.loads((folder / "progress.json").read_text())


def test_training_goes_on_the_last_checkpoint_stays_and_the_failure_is_told(tmp_path: Path) -> None:
    code, log, progress = run(tmp_path, 25)

    assert code == 1, "the result could not be saved"
    assert "could not be written: [Errno 27] File too large; training goes on" in log
    assert progress["step"] == 25
    assert progress["checkpoint_step"] == 10
    assert progress["checkpoint_failures_total"] == 3
    assert "File too large" in str(progress["last_failure"])
    assert [path.name[:12] for path in sorted((tmp_path / "markers").iterdir())] == ["000000000005", "000000000010"]
    assert [path.name[:12] for path in sorted((tmp_path / "data").iterdir())] == ["000000000005", "000000000010"], (
        "no remains fill the disk"
    )


def test_with_room_again_checkpoints_are_made_again(tmp_path: Path) -> None:
    code, _, progress = run(tmp_path, 40)

    assert (code, progress["phase"], progress["checkpoint_step"]) == (0, "completed", 40)

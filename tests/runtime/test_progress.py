from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from flexspot_runtime import LocalFolder, Notice, ProgressFile
from flexspot_runtime.status import Phase, RunStatus
from manual_clock import ManualClock
from memory_storage import MemoryStorage

if TYPE_CHECKING:
    from pathlib import Path


def status() -> RunStatus:
    return RunStatus(
        started_at=900.0,
        phase=Phase.TRAINING,
        step=42,
        total_steps=100,
        saved_step=40,
        saved_at=980.0,
        saves=4,
        checkpoint_seconds=2.5,
        notice=Notice("SIGTERM", 995.0, 1010.0),
    )


def test_the_file_reports_progress_and_unsaved_work(tmp_path: Path) -> None:
    ProgressFile(LocalFolder(tmp_path)).write(status(), ManualClock())

    written = json.loads((tmp_path / "progress.json").read_text())
    assert written == {
        "phase": "training",
        "written_at_unix_seconds": 1_800_000_000.0,
        "notice": "SIGTERM",
        "last_failure": None,
        "step": 42,
        "total_steps": 100,
        "checkpoint_step": 40,
        "checkpoint_age_seconds": 20,
        "unsaved_steps": 2,
        "unsaved_seconds": 20,
        "checkpoints_total": 4,
        "checkpoint_failures_total": 0,
        "checkpoint_duration_seconds": 2.5,
        "lost_steps": 0,
        "interruptions_total": 0,
        "notice_received": 1,
        "notice_remaining_seconds": 10,
    }


def test_before_the_first_checkpoint_all_work_is_at_risk() -> None:
    gauges = RunStatus(started_at=900.0, step=3).gauges(1000.0)

    assert gauges["unsaved_seconds"] == 100
    assert "checkpoint_age_seconds" not in gauges


def test_it_is_written_now_and_then() -> None:
    progress, clock = ProgressFile(MemoryStorage(), every_seconds=10), ManualClock()
    assert progress.due(clock.seconds)

    progress.write(status(), clock)

    assert not progress.due(clock.seconds + 9)
    assert progress.due(clock.seconds + 10)


def test_a_file_that_cannot_be_written_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    ProgressFile(MemoryStorage(fails_at=1)).write(status(), ManualClock())

    assert "progress.json could not be written: planted" in caplog.text


@pytest.mark.parametrize("content,step", [(b'{"step": 42.0}', 42), (b"{", None), (b"[]", None), (b'{"step": "x"}', None), (None, None)])
def test_an_unreadable_file_reports_no_step(content: bytes | None, step: int | None) -> None:
    storage = MemoryStorage()
    if content is not None:
        storage.objects["progress.json"] = content

    assert ProgressFile(storage).last_step() == step

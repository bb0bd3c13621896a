"""A kill, or an error, at each operation of several saves: nothing saved is lost, nothing torn is found."""

from __future__ import annotations

import pytest
from flexspot_runtime import Checkpointer, CheckpointFailedError, CheckpointWriter
from memory_storage import KilledError, MemoryStorage

SAVES = 4
KEEP = 2


def content_of(step: int) -> bytes:
    return f"weights after {step}".encode() * 3


def save(checkpointer: Checkpointer, step: int) -> None:
    def write(writer: CheckpointWriter) -> None:
        writer.put("weights", content_of(step))
        writer.put("optimizer/state", content_of(-step))

    checkpointer.save(step, write)


def operations_of_all_saves() -> int:
    storage = MemoryStorage()
    checkpointer = Checkpointer(storage, keep=KEEP)
    for step in range(1, SAVES + 1):
        save(checkpointer, step)
    return storage.operations


def found(storage: MemoryStorage) -> int:
    """Return the step of the newest valid checkpoint, whose contents are checked; 0 without one."""
    checkpointer = Checkpointer(storage)
    marker = checkpointer.newest_valid()
    if marker is None:
        return 0
    reader = checkpointer.reader(marker)
    assert reader.get("weights") == content_of(marker.step)
    assert reader.get("optimizer/state") == content_of(-marker.step)
    return marker.step


OPERATIONS = range(1, operations_of_all_saves() + 1)


@pytest.mark.parametrize("like_a_bucket", [False, True], ids=["disk", "bucket"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_kill_at_any_operation_loses_no_checkpoint(operation: int, *, like_a_bucket: bool) -> None:
    storage = MemoryStorage(like_a_bucket, fails_at=operation, failure=KilledError)
    checkpointer = Checkpointer(storage, keep=KEEP)
    saved = 0

    def live() -> None:
        nonlocal saved
        for step in range(1, SAVES + 1):
            save(checkpointer, step)
            saved = step

    with pytest.raises(KilledError):
        live()

    assert saved <= found(storage.survivor()) <= saved + 1


@pytest.mark.parametrize("fails_for", [1, 2, 1000])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_error_at_any_operation_leaves_the_checkpoints_of_before(operation: int, fails_for: int) -> None:
    """1000 consecutive errors: a disk that stays full, or a bucket that is gone."""
    storage = MemoryStorage(fails_at=operation, fails_for=fails_for)
    checkpointer = Checkpointer(storage, keep=KEEP)
    saved = 0
    for step in range(1, SAVES + 1):
        try:
            save(checkpointer, step)
            saved = step
        except CheckpointFailedError:
            continue

    assert saved <= found(storage.survivor()) <= SAVES


@pytest.mark.parametrize("operation", OPERATIONS)
def test_after_an_error_the_next_save_succeeds_and_old_ones_go(operation: int) -> None:
    storage = MemoryStorage(fails_at=operation)
    checkpointer = Checkpointer(storage, keep=KEEP)
    for step in range(1, SAVES + 1):
        try:
            save(checkpointer, step)
        except CheckpointFailedError:
            continue

    for step in (SAVES + 1, SAVES + 2):
        save(checkpointer, step)

    assert found(storage.survivor()) == SAVES + 2
    assert len(storage.survivor().names("markers")) == KEEP
    assert len(storage.survivor().names("data")) == 2 * KEEP

"""Each job has its own folder, and rejects another job's checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from flexspot_runtime import Checkpointer, ForeignCheckpointError, Group, LocalFolder
from flexspot_runtime.marker import Marker, decode_record, encode_record
from memory_storage import MemoryStorage
from rank_threads import in_ranks

if TYPE_CHECKING:
    from pathlib import Path


def saved(storage: MemoryStorage, step: int, job: str) -> Marker:
    return Checkpointer(storage, job=job).save(step, lambda writer: writer.put("weights", b""))


def test_the_jobs_folder_comes_from_the_environment_and_is_created(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHECKPOINT_DIR", str(tmp_path / "bert" / "0"))

    storage = LocalFolder()

    assert storage.folder == tmp_path / "bert" / "0"
    assert storage.folder.is_dir()
    assert LocalFolder().folder == storage.folder, "a second start finds it"


def test_an_unmounted_volume_is_not_created(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHECKPOINT_DIR", "/not-mounted-anywhere/bert")

    with pytest.raises(FileNotFoundError, match="CHECKPOINT_DIR is /not-mounted-anywhere/bert, and /not-mounted-anywhere does not exist"):
        LocalFolder()


def test_without_a_folder_and_the_variable_the_error_has_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CHECKPOINT_DIR", raising=False)

    with pytest.raises(ValueError, match="CHECKPOINT_DIR is not set: set it to the job's folder for checkpoints"):
        LocalFolder()


def test_a_job_does_not_resume_from_anothers_checkpoint() -> None:
    storage = MemoryStorage()
    saved(storage, 100, "nlp/bert")

    with pytest.raises(ForeignCheckpointError, match=r"belongs to job nlp/bert, and this is job nlp/llama: .* job='nlp/bert'"):
        Checkpointer(storage, job="nlp/llama").newest_valid()
    assert len(storage.names("markers")) == 1, "and keeps it"


def test_the_job_that_a_checkpoint_belongs_to_goes_on_under_the_same_name(monkeypatch: pytest.MonkeyPatch) -> None:
    storage = MemoryStorage()
    marker = saved(storage, 100, "nlp/bert")
    monkeypatch.setenv("FLEXSPOT_JOB", "nlp/bert")

    assert Checkpointer(storage).newest_valid() == marker
    assert marker.job == "nlp/bert"


def test_all_ranks_refuse_together() -> None:
    storage = MemoryStorage()
    saved(storage, 100, "nlp/bert")

    ended = in_ranks(3, lambda group: Checkpointer(storage, group=group, job="nlp/llama").newest_valid())

    assert [type(each) for each in ended] == [ForeignCheckpointError] * 3


@pytest.mark.parametrize("job", ["", "nlp/bert"])
def test_checkpoints_without_a_job_name_belong_to_any_job(job: str) -> None:
    storage = MemoryStorage()
    marker = saved(storage, 100, "")
    body = decode_record("checkpoint-1", storage.objects[marker.name])
    del body["job"]
    storage.objects[marker.name] = encode_record("checkpoint-1", body)

    assert Checkpointer(storage, job=job).newest_valid() == marker


def test_a_program_without_a_job_name_reads_any_checkpoint() -> None:
    storage = MemoryStorage()
    marker = saved(storage, 100, "nlp/bert")

    assert Checkpointer(storage, group=Group(), job="").newest_valid() == marker

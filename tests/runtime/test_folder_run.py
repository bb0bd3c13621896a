"""Trainers with their own loop, replaced by a double: its callbacks save folders, resume from them and stop together."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from flexspot_runtime import Checkpointer, EverySteps, Group, Interruption, LocalFolder
from flexspot_runtime.folder_run import FolderRun
from flexspot_runtime.group import Action
from memory_storage import MemoryStorage
from rank_threads import in_ranks

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from flexspot_runtime.storage import Storage


@dataclass
class Trainer:
    """Counts its steps in a file, as Transformers and Lightning do with larger files. Each rank is a separate machine."""

    storage: Storage
    scratch: Path
    group: Group = field(default_factory=Group)
    step: int = 0

    def __post_init__(self) -> None:
        self.interruption = Interruption(60.0)
        checkpointer = Checkpointer(self.storage, group=self.group, sharded=True)
        self.run = FolderRun(checkpointer, self.interruption, EverySteps(5), agree_seconds=0)
        self.folder = self.scratch / f"rank-{self.group.rank}"

    def train(self, total: int, at: dict[int, Callable[[], object]] | None = None) -> int:
        """Return the steps done when it stops."""
        resumed = self.run.fetch(self.folder)
        if resumed is not None:
            self.step = int((self.folder / "state" / "step").read_text())
            assert self.step == resumed
        while self.step < total:
            self.step += 1
            if at and self.step in at:
                at[self.step]()
            action = self.run.action(self.step)
            if action is not Action.GO_ON or self.step == total:
                self.save(completed=self.step == total)
            if action is Action.STOP:
                break
        return self.step

    def save(self, *, completed: bool) -> None:
        (self.folder / "state").mkdir(parents=True, exist_ok=True)
        (self.folder / "state" / "step").write_text(str(self.step))
        self.run.save(self.step, self.folder, completed=completed)


def saved(storage: Storage) -> list[int]:
    return [int(name.split("/")[1].split("-")[0]) for name in storage.names("markers")]


def test_it_saves_when_due_and_a_second_start_has_nothing_to_do(tmp_path: Path) -> None:
    storage = MemoryStorage()

    assert Trainer(storage, tmp_path / "a").train(12) == 12
    assert saved(storage) == [5, 10, 12]
    marker = Checkpointer(storage).newest_valid()
    assert marker
    assert marker.completed
    again = Trainer(storage, tmp_path / "b")
    assert again.train(12) == 12
    assert (again.run.stopped_at, saved(storage)) == (None, [5, 10, 12])


def test_a_warning_to_one_rank_has_all_save_and_stop_and_all_resume_there(tmp_path: Path) -> None:
    (tmp_path / "storage").mkdir()
    storage = LocalFolder(tmp_path / "storage")

    def live(group: Group) -> tuple[int, int | None]:
        trainer = Trainer(storage, tmp_path / "first", group)
        return trainer.train(100, {7: lambda: trainer.interruption.notify("SIGTERM")} if group.rank == 1 else {}), trainer.run.stopped_at

    assert in_ranks(3, live) == [(7, 7)] * 3
    assert saved(storage) == [5, 7]
    assert in_ranks(3, lambda group: Trainer(storage, tmp_path / "second", group).train(20)) == [20] * 3


def test_what_rank_0_alone_wrote_is_there_for_the_other_machines(tmp_path: Path) -> None:
    """Transformers writes the weights on the first machine only, and reads them on each."""
    (tmp_path / "storage").mkdir()
    storage = LocalFolder(tmp_path / "storage")

    def save(group: Group) -> None:
        trainer = Trainer(storage, tmp_path / "first", group)
        trainer.run.fetch(trainer.folder)
        trainer.folder.mkdir(parents=True)
        (trainer.folder / f"random-{group.rank}").write_text("own")
        if group.rank == 0:
            (trainer.folder / "weights").write_text("all")
        assert trainer.run.save(3, trainer.folder)

    def resume(group: Group) -> list[str]:
        trainer = Trainer(storage, tmp_path / "second", group)
        assert trainer.run.fetch(trainer.folder) == 3
        return sorted(path.name for path in trainer.folder.iterdir())

    assert in_ranks(2, save) == [None, None]
    assert in_ranks(2, resume) == [["random-0", "weights"], ["random-0", "random-1", "weights"]]


@pytest.mark.slow
def test_a_rank_that_comes_late_takes_nothing_away_that_another_of_its_machine_has_written(tmp_path: Path) -> None:
    """Two ranks of one machine have one folder. Earlier, rank 1 emptied the folder after Lightning's rank 0 had written its file."""
    storage, folder = MemoryStorage(), tmp_path / "of-the-machine"
    folder.mkdir()
    (folder / "of an earlier save").touch()

    def work(group: Group) -> list[str]:
        run = FolderRun(Checkpointer(storage, group=group, sharded=True), Interruption(60.0), EverySteps(5), agree_seconds=0)
        run._first_of_machine = group.rank == 0  # noqa: SLF001 -- both ranks are in this process, which has one LOCAL_RANK
        if group.rank:
            time.sleep(0.2)
        run.empty(folder)
        if group.rank == 0:
            (folder / "lightning.ckpt").touch()
        group.agree(0)
        return sorted(path.name for path in folder.iterdir())

    assert in_ranks(2, work) == [["lightning.ckpt"]] * 2

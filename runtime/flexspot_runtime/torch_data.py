"""PyTorch data loader that saves its position in the data. Extra: `torch`.

    loader = ResumableLoader(dataset, batch_size=32, shuffle=True, seed=1)

With Lightning, `fit` and a checkpoint keep its place; with a TrainingRun, `TorchState(model, optimizer, loader=loader)` does.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data import DataLoader, IterableDataset

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator


class ResumableLoader(DataLoader[Any]):
    """A DataLoader that continues, after a resume, after the last batch it gave, in the same epoch and order.

    An epoch's order depends only on `seed` and the epoch's number, whatever else draws random numbers. Earlier batches are skipped by their
    indices: none of their data is read. What a dataset draws at random in a worker process starts over there, so derive it from the index
    where it must be exact. Each iteration is an epoch, or the rest of one. Options are those of DataLoader, by name, except `generator`.

    Raises TypeError for an IterableDataset, which alone knows its position: use a loader with its own `state_dict` for that one.
    """

    def __init__(self, dataset: Any, *, seed: int = 0, **options: Any) -> None:
        if isinstance(dataset, IterableDataset):
            raise TypeError("an IterableDataset has no indices by which batches could be skipped; give it a loader with a state_dict")
        self.seed = seed
        self._epoch = 0
        self._given = 0
        """Batches given in this epoch."""
        self._started = False
        """True if the next iteration is a new epoch."""
        self._skipped = 0
        # Draws of an epoch's order use this generator, never the one of the training.
        super().__init__(dataset, **{**options, "generator": torch.Generator()})

    @property
    def _index_sampler(self) -> _Rest:
        return _Rest(self, super()._index_sampler)

    def __iter__(self) -> Iterator[Any]:
        """Yield the batches. Nothing is decided before the first one: Lightning creates iterators before it has loaded a checkpoint."""
        if self._started or self._given >= len(self):
            self._epoch, self._given = self._epoch + 1, 0
        self._started = True
        for each in (self.sampler, getattr(self.batch_sampler, "sampler", None)):
            if set_epoch := getattr(each, "set_epoch", None):
                set_epoch(self._epoch)
        # The seeds of the workers are drawn from it, too.
        self._seed_order()
        self._skipped = self._given
        try:
            batches = super().__iter__()
        finally:
            self._skipped = 0
        for batch in batches:
            self._given += 1
            yield batch

    def _seed_order(self) -> None:
        assert self.generator is not None, "created in __init__"  # noqa: S101 -- tells the type checker
        self.generator.manual_seed(self.seed + self._epoch)

    def end_epoch(self) -> None:
        """End this epoch although batches are left, for trainers that limit them. The next iteration is a new epoch."""
        self._started = True

    def state_dict(self) -> dict[str, int]:
        """Return the position: number of completed epochs, and of batches given in this epoch."""
        return {"epoch": self._epoch, "batches": self._given}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Restore the position, from the next iteration on."""
        self._epoch, self._given, self._started = state["epoch"], state["batches"], False


class _Rest:
    """Indices of batches without those that the loader skips. One object for all epochs, as persistent workers keep it."""

    def __init__(self, loader: ResumableLoader, indices: Any) -> None:
        self._loader = loader
        self._indices: Collection[Any] = indices

    def __iter__(self) -> Iterator[Any]:
        return islice(self._all(), self._loader._skipped, None)  # noqa: SLF001 -- a part of it

    def _all(self) -> Iterator[Any]:
        # Seed again: persistent workers are not reseeded, and an epoch's order must be the same with them and with new ones.
        self._loader._seed_order()  # noqa: SLF001 -- likewise
        yield from self._indices

    def __len__(self) -> int:
        return len(self._indices)

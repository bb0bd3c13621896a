"""A data loader of PyTorch whose place in the data is part of a checkpoint. The extra `torch`.

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
    """A DataLoader that goes on, after a resume, with the batch after the last one that it gave, of the same epoch in the same order.

    An epoch's order is that of `seed` and of the epoch's number alone, whatever else takes random numbers. Batches that were given before
    are skipped by their indices: none of their data is read. What a dataset draws at random within a worker process begins anew there,
    so make it of the index where it shall be exact. Each iteration is an epoch, or the rest of one. Options are those of DataLoader, by
    name; a `generator` is not taken.

    Raises TypeError for an IterableDataset, which alone knows where it is: give that one a loader with a `state_dict` of its own.
    """

    def __init__(self, dataset: Any, *, seed: int = 0, **options: Any) -> None:
        if isinstance(dataset, IterableDataset):
            raise TypeError("an IterableDataset has no indices by which batches could be skipped; give it a loader with a state_dict")
        self.seed = seed
        self._epoch = 0
        self._given = 0
        """Batches of this epoch."""
        self._begun = False
        """Whether what comes next is another epoch."""
        self._skipped = 0
        # What draws an epoch's order takes it from here, and never from the random numbers of the training.
        super().__init__(dataset, **{**options, "generator": torch.Generator()})

    @property
    def _index_sampler(self) -> _Rest:
        return _Rest(self, super()._index_sampler)

    def __iter__(self) -> Iterator[Any]:
        """The batches; nothing is decided before the first one is asked for, as Lightning makes iterators before it has loaded."""
        if self._begun or self._given >= len(self):
            self._epoch, self._given = self._epoch + 1, 0
        self._begun = True
        for each in (self.sampler, getattr(self.batch_sampler, "sampler", None)):
            if set_epoch := getattr(each, "set_epoch", None):
                set_epoch(self._epoch)
        # What workers are seeded with is drawn of it, too.
        self._begin_order()
        self._skipped = self._given
        try:
            batches = super().__iter__()
        finally:
            self._skipped = 0
        for batch in batches:
            self._given += 1
            yield batch

    def _begin_order(self) -> None:
        assert self.generator is not None, "made in __init__"  # noqa: S101 -- tells the type checker
        self.generator.manual_seed(self.seed + self._epoch)

    def end_epoch(self) -> None:
        """Has the next iteration be another epoch, though batches of this one are left, as where a trainer limits them."""
        self._begun = True

    def state_dict(self) -> dict[str, int]:
        """Its place: how many epochs it has ended, and how many batches of this one it has given."""
        return {"epoch": self._epoch, "batches": self._given}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """The reverse; counts from the next iteration on."""
        self._epoch, self._given, self._begun = state["epoch"], state["batches"], False


class _Rest:
    """Indices of batches but for those that the loader skips now; one object for all epochs, as workers that stay keep it."""

    def __init__(self, loader: ResumableLoader, indices: Any) -> None:
        self._loader = loader
        self._indices: Collection[Any] = indices

    def __iter__(self) -> Iterator[Any]:
        return islice(self._all(), self._loader._skipped, None)  # noqa: SLF001 -- a part of it

    def _all(self) -> Iterator[Any]:
        # Anew: workers that stay are not seeded again, and an epoch's order must be the same with them and with new ones.
        self._loader._begin_order()  # noqa: SLF001 -- likewise
        yield from self._indices

    def __len__(self) -> int:
        return len(self._indices)

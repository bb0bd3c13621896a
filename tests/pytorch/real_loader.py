"""ResumableLoader gives after a resume at any batch what an undisturbed one would have given."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import pytest
import torch
from flexspot_runtime.torch_data import ResumableLoader
from torch.utils.data import BatchSampler, DataLoader, DistributedSampler, IterableDataset, TensorDataset

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

EPOCHS = 3
ROWS = TensorDataset(torch.arange(11))


def shuffled(**options: Any) -> ResumableLoader:
    return ResumableLoader(ROWS, batch_size=2, shuffle=True, seed=5, **options)


def distributed(**options: Any) -> ResumableLoader:
    return ResumableLoader(ROWS, batch_size=2, sampler=DistributedSampler(ROWS, num_replicas=2, rank=1), **options)


def batched(**options: Any) -> ResumableLoader:
    sampler = BatchSampler(DistributedSampler(ROWS, num_replicas=2, rank=0), batch_size=2, drop_last=True)
    return ResumableLoader(ROWS, batch_sampler=sampler, **options)


def batches(loader: ResumableLoader) -> Generator[list[int]]:
    for each in chain.from_iterable([loader] * EPOCHS):
        yield each[0].tolist()


@pytest.mark.parametrize("options", [{}, {"num_workers": 1}, {"num_workers": 1, "persistent_workers": True}], ids=str)
@pytest.mark.parametrize("made", [shuffled, distributed, batched])
def test_it_resumes_at_its_position(made: Callable[..., ResumableLoader], options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    expected = list(batches(made(**options)))
    length = len(made())
    # A loader with workers is slow: test only the middle of an epoch, and its end.
    for done in range(1, len(expected)) if not options else (1, length):
        first = made(**options)
        taken = batches(first)
        before = [next(taken) for _ in range(done)]
        state = first.state_dict()
        taken.close()
        torch.manual_seed(done)
        second = made(**options)
        second.load_state_dict(state)

        assert before + list(batches(second))[: len(expected) - done] == expected
        assert len(second) == length


def test_epochs_differ_and_each_has_all() -> None:
    loader = shuffled()
    epochs = [[row for batch in loader for row in batch[0].tolist()] for _ in range(EPOCHS)]

    assert len({tuple(each) for each in epochs}) == EPOCHS
    assert all(sorted(each) == list(range(len(ROWS))) for each in epochs)


def test_an_epoch_that_is_ended_early_is_followed_by_the_next() -> None:
    loader, other = shuffled(), shuffled()
    list(loader)
    other.load_state_dict({"epoch": 0, "batches": 2})
    other.end_epoch()

    assert [each[0].tolist() for each in other] == [each[0].tolist() for each in loader]


def test_earlier_batches_are_not_read_again() -> None:
    class Counting(TensorDataset):
        read = 0

        def __getitem__(self, index: int) -> Any:
            Counting.read += 1
            return super().__getitem__(index)

    loader = ResumableLoader(Counting(torch.arange(100)), batch_size=10)
    loader.load_state_dict({"epoch": 4, "batches": 9})

    assert [each[0].tolist() for each in loader] == [list(range(90, 100))]
    assert Counting.read == 10


def test_the_training_s_random_numbers_are_left_alone() -> None:
    state = torch.get_rng_state()
    list(shuffled())

    assert torch.equal(torch.get_rng_state(), state)


def test_it_is_a_data_loader_and_rejects_datasets_without_indices() -> None:
    class Stream(IterableDataset[int]):
        def __iter__(self) -> Iterator[int]:
            return iter(range(3))

    assert isinstance(shuffled(), DataLoader)
    with pytest.raises(TypeError, match="give it a loader with a state_dict"):
        ResumableLoader(Stream())

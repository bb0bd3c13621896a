"""Ranks as threads, with the collective operations of a trainer's library."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from flexspot_runtime import Group

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class Collective:
    """Gathers one value of each rank. All ranks continue with all values."""

    def __init__(self, size: int) -> None:
        self._values: dict[int, object] = {}
        self._barrier = threading.Barrier(size, timeout=60)

    def gather(self, rank: int, value: T) -> dict[int, T]:
        self._values[rank] = value
        self._barrier.wait()
        gathered = dict(self._values)
        self._barrier.wait()
        return gathered  # pyrefly: ignore[bad-return] -- all ranks put in values of one type


def in_ranks(size: int, work: Callable[[Group], T]) -> list[T | BaseException]:
    """Run the same work in each rank. Return the result or the exception of each."""
    collective = Collective(size)

    def group(rank: int) -> Group:
        return Group(
            rank,
            size,
            largest=lambda wanted: max(collective.gather(rank, wanted).values()),
            broadcast=lambda text: collective.gather(rank, text)[0],
        )

    with ThreadPoolExecutor(size) as pool:
        futures: list[Future[T]] = [pool.submit(work, group(rank)) for rank in range(size)]
        return [future.exception() or future.result() for future in futures]

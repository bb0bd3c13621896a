"""The processes that train together, and how they agree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Group:
    """One process, unless told otherwise.

    Processes that train together save at the same step and resume from the same checkpoint, so they must agree on both. Trainers have
    what that needs: with torch.distributed `largest` is an all_reduce with MAX of a one-element tensor, and `broadcast` is
    broadcast_object_list from rank 0. `largest` is called once after every step, by all ranks.

    Raises ValueError for a rank outside of the group, and for several ranks without both functions.
    """

    rank: int = 0
    world_size: int = 1
    largest: Callable[[int], int] | None = None
    """Takes this rank's number and returns the largest of all ranks'. Default, alone: the number itself."""

    broadcast: Callable[[str], str] | None = None
    """Takes any text and returns rank 0's. Default, alone: the text itself."""

    def __post_init__(self) -> None:
        if not 0 <= self.rank < self.world_size:
            raise ValueError(f"rank {self.rank} is outside of a group of {self.world_size}: ranks go from 0 to {self.world_size - 1}")
        if self.world_size > 1 and not (self.largest and self.broadcast):
            raise ValueError(
                f"a group of {self.world_size} processes must agree on when to save and what to resume from: give `largest` (an all-reduce "
                "of the maximum) and `broadcast` (from rank 0), both of which your trainer's library has"
            )

    def agree(self, wanted: int) -> int:
        """The largest of what all ranks want."""
        return self.largest(wanted) if self.largest else wanted

    def told_by_first(self, text: str) -> str:
        """Rank 0's text."""
        return self.broadcast(text) if self.broadcast else text


ALONE = Group()

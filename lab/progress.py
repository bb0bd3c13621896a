"""How long work tells what it is doing, so that builds, starts and plays are shown alike."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Told of each step by name. A step begins once, may advance, and ends once; steps may overlap."""

    def begin(self, step: str, doing: str) -> None:
        """`step` starts; `doing` says what, in a few words."""

    def advance(self, step: str, doing: str, done: int, total: int) -> None:
        """`done` of `total` units of `step` are finished; a total of 0 is one that is not known yet."""

    def end(self, step: str, outcome: str) -> None:
        """`step` is over; `outcome` says how, in a few words."""


class Silence:
    """Progress that nobody watches."""

    def begin(self, step: str, doing: str) -> None:
        """See Progress."""

    def advance(self, step: str, doing: str, done: int, total: int) -> None:
        """See Progress."""

    def end(self, step: str, outcome: str) -> None:
        """See Progress."""

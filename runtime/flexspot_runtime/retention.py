"""Which checkpoints and which remains may be deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexspot_runtime.names import step_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

LEAST_KEPT = 2
"""One to resume from, and one in case that one turns out to be damaged."""


def surplus(groups: Sequence[str], good: Collection[str], keep: int) -> list[str]:
    """The groups older than the newest `keep` good ones, newest first: so that a kill half-way leaves no gap.

    `groups` have a marker or only remains of a save that was killed; both go the same way. `good` are those that this process has written
    or verified itself: what nobody has looked at counts for nothing, so as long as there are fewer good ones than `keep`, nothing goes.
    """
    ordered = sorted(groups, reverse=True)
    kept = [group for group in ordered if group in good][:keep]
    if len(kept) < keep:
        return []
    oldest = step_of(kept[-1])
    return [group for group in ordered if (step := step_of(group)) is not None and oldest is not None and step < oldest]

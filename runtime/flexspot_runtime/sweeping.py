"""Which checkpoints and which remains of killed saves may be deleted, and deleting them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from flexspot_runtime.names import DATA, MARKERS, marker_name, step_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from flexspot_runtime.storage import Storage


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


_LOG = logging.getLogger("flexspot_runtime")


def sweep(storage: Storage, good: set[str], keep: int) -> None:
    """Keeps the newest `keep` of the groups in `good`, and all that is newer than the oldest of these; forgets what it deletes.

    What cannot be deleted stays, with a warning: a storage that is full is reported by the save that fails.
    """
    names: dict[str, list[str]] = {}
    # Markers first: without one, the data is nobody's.
    for name in [*_names(storage, MARKERS), *_names(storage, DATA)]:
        group = name.split("/")[1].removesuffix(".json")
        if step_of(group) is not None:
            names.setdefault(group, []).append(name)
    for group in surplus(list(names), good, keep):
        _delete(storage, names[group])
        good.discard(group)


def discard(storage: Storage, group: str) -> None:
    """Deletes what a save that failed has written, to make room. Its marker first: it may be there although writing it failed."""
    _delete(storage, [marker_name(group), *_names(storage, f"{DATA}/{group}")])


def _delete(storage: Storage, names: Iterable[str]) -> None:
    for name in names:
        try:
            storage.delete(name)
        except FileNotFoundError:
            continue
        except OSError as error:
            # The rest stays, too: a marker that is still there must not lose its data.
            _LOG.warning("%s could not be deleted: %s", name, error)
            return


def _names(storage: Storage, folder: str) -> list[str]:
    try:
        return storage.names(folder)
    except OSError as error:
        _LOG.warning("%s could not be listed: %s", folder, error)
        return []

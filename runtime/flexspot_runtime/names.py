"""Names of objects and groups of objects, and this pod's share of the work."""

from __future__ import annotations

import os
import re
import secrets
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._=+-]*(/[A-Za-z0-9_][A-Za-z0-9._=+-]*)*")
_NAME_CHARACTERS = 500
"""GCS and S3 take 1,024 bytes, prefix included."""

MARKERS = "markers"
DATA = "data"

_GROUP = re.compile(r"(?P<step>\d{12,})-(?P<attempt>[0-9a-f]+)-(?P<serial>\d{6,})")


def check_name(name: str) -> str:
    """Return the name. Raises ValueError if some storage would refuse it, or if it leads out of the folder."""
    if not _NAME.fullmatch(name) or len(name) > _NAME_CHARACTERS:
        raise ValueError(
            f"the name {name!r} cannot be used: take parts of letters, digits and . _ = + - that begin with a letter, a digit or _, with "
            f"slashes between them, at most {_NAME_CHARACTERS} characters"
        )
    return name


def new_attempt() -> str:
    """Return a unique name for one start of a program."""
    return secrets.token_hex(6)


def group_name(step: int, attempt: str, serial: int) -> str:
    """Return the name of a save: steps done, the start that saved it, and its number in that start. Sorting by name sorts by step."""
    return f"{step:012d}-{attempt}-{serial:06d}"


def step_of(group: str) -> int | None:
    """Return the steps done at the save, or None if the name is not a save's."""
    matched = _GROUP.fullmatch(group)
    return int(matched["step"]) if matched else None


def marker_name(group: str) -> str:
    """Return the name of the marker, which makes the save count."""
    return f"{MARKERS}/{group}.json"


def shard_folder(group: str, rank: int) -> str:
    """Return the folder of a rank's objects."""
    return f"{DATA}/{group}/rank-{rank:05d}"


def shard_name(group: str, rank: int) -> str:
    """Return the name of the record that a rank writes once its shard is complete."""
    return f"{DATA}/{group}/rank-{rank:05d}.shard.json"


def failure_name(group: str, rank: int) -> str:
    """Return the name of the record that a rank writes when it could not write its shard."""
    return f"{DATA}/{group}/rank-{rank:05d}.failed.json"


JOB_VARIABLE = "FLEXSPOT_JOB"
"""Owner of the checkpoints: the team and the workload's folder within the team's, in a pod that Flexspot rendered."""

CHECKPOINT_VARIABLE = "CHECKPOINT_DIR"
"""The workload's folder, below the mount of the team's folder."""

INDEX_VARIABLE = "JOB_COMPLETION_INDEX"
"""Set by the Job controller in every container of a pod of a Job with completionMode Indexed."""

T = TypeVar("T")


def completion_index(environment: Mapping[str, str] = os.environ) -> int:
    """Return the pod's index, 0 outside of an Indexed Job. Raises ValueError if the variable is not a whole number."""
    text = environment.get(INDEX_VARIABLE, "0")
    if not text.isdecimal():
        raise ValueError(f"{INDEX_VARIABLE} is {text!r}; it must be a whole number from 0")
    return int(text)


def share_of(items: Sequence[T], index: int, completions: int) -> Sequence[T]:
    """Return every `completions`-th item, starting at `index`.

    Each item belongs to one index, and a pod that replaces another gets the same items. Raises ValueError for an index that is not below
    `completions`.
    """
    if not 0 <= index < completions:
        raise ValueError(f"index {index} is outside of {completions} completions; give the Job's spec.completions")
    return items[index::completions]

"""The names of objects, of what belongs together, and of the part of the work that is this pod's."""

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
    """The name itself. Raises ValueError for one that some storage would refuse, or that leads out of the folder."""
    if not _NAME.fullmatch(name) or len(name) > _NAME_CHARACTERS:
        raise ValueError(
            f"the name {name!r} cannot be used: take parts of letters, digits and . _ = + - that begin with a letter, a digit or _, with "
            f"slashes between them, at most {_NAME_CHARACTERS} characters"
        )
    return name


def new_attempt() -> str:
    """A name for one start of a program, which no other start has."""
    return secrets.token_hex(6)


def group_name(step: int, attempt: str, serial: int) -> str:
    """The name of a save: steps done, the start that saved it, and its number in that start. Sorted by name is sorted by step."""
    return f"{step:012d}-{attempt}-{serial:06d}"


def step_of(group: str) -> int | None:
    """The steps done at the save; None for a name that is not a save's."""
    matched = _GROUP.fullmatch(group)
    return int(matched["step"]) if matched else None


def marker_name(group: str) -> str:
    """Where the record is that makes the save count."""
    return f"{MARKERS}/{group}.json"


def shard_folder(group: str, rank: int) -> str:
    """Where a rank puts its objects."""
    return f"{DATA}/{group}/rank-{rank:05d}"


def shard_name(group: str, rank: int) -> str:
    """Where a rank says that its shard is whole."""
    return f"{DATA}/{group}/rank-{rank:05d}.shard.json"


def failure_name(group: str, rank: int) -> str:
    """Where a rank says that it could not write."""
    return f"{DATA}/{group}/rank-{rank:05d}.failed.json"


JOB_VARIABLE = "FLEXSPOT_JOB"
"""Whose checkpoints these are: the team and the workload's part of the team's folder, in a pod that Flexspot rendered."""

CHECKPOINT_VARIABLE = "CHECKPOINT_DIR"
"""Where they are: that part, below the mount of the team's folder."""

INDEX_VARIABLE = "JOB_COMPLETION_INDEX"
"""Set by the Job controller in every container of a pod of a Job with completionMode Indexed."""

T = TypeVar("T")


def completion_index(environment: Mapping[str, str] = os.environ) -> int:
    """The pod's index, 0 outside of an Indexed Job. Raises ValueError for a variable that holds none."""
    text = environment.get(INDEX_VARIABLE, "0")
    if not text.isdecimal():
        raise ValueError(f"{INDEX_VARIABLE} is {text!r}; it must be a whole number from 0")
    return int(text)


def share_of(items: Sequence[T], index: int, completions: int) -> Sequence[T]:
    """Every item is one index's; a pod that replaces another gets the same ones. Raises ValueError for an index beyond `completions`."""
    if not 0 <= index < completions:
        raise ValueError(f"index {index} is outside of {completions} completions; give the Job's spec.completions")
    return items[index::completions]

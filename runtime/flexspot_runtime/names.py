"""The names of objects, and of what belongs together."""

from __future__ import annotations

import re
import secrets

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
    """The name of one save: steps done, the start that saved it, and its how manieth save it was. Sorted by name is sorted by step."""
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

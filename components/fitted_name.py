"""How a name that is too long for a cloud is made to fit."""

from __future__ import annotations

import hashlib

_HASH_LENGTH = 8


def fitted(name: str, limit: int) -> str:
    """`name` where it has at most `limit` characters; else its beginning, a hyphen and eight digits of its hash.

    The result depends on nothing but the two arguments, so a name does not change from one `up` to the next; two long names that begin
    alike stay apart. What begins with a letter and holds lower-case letters, digits and hyphens alone still does, and ends with none.
    Raises ValueError for a limit that leaves no room for a letter before the hash.
    """
    if limit < _HASH_LENGTH + 2:
        raise ValueError(f"{name!r} cannot be fitted into {limit} characters: {_HASH_LENGTH + 2} are the least")
    if len(name) <= limit:
        return name
    digits = hashlib.sha256(name.encode()).hexdigest()[:_HASH_LENGTH]
    return f"{name[: limit - _HASH_LENGTH - 1].rstrip('-._')}-{digits}"

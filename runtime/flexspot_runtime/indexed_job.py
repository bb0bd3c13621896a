"""Which part of the work is this pod's, in an Indexed Job of Kubernetes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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

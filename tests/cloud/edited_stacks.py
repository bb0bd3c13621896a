"""A hypothesis strategy for a shipped stack with several edits at once. Every setting has an edit, so none is left out."""

from __future__ import annotations

import copy
from functools import cache
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st
from program_declarations import shipped
from setting_edits import STACKS_OF, Edit, edits_of, refusal_of, settings_of, write

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn

MOST = 8
"""Most edits at once."""


@st.composite
def edited_stacks(draw: DrawFn, cloud: str) -> dict[str, Any]:
    """Return production's settings with two to eight edits, each of another setting, as far as they fit together."""
    stack = STACKS_OF[cloud][0]
    chosen = draw(st.lists(st.sampled_from(edits_of_stack(cloud)), min_size=2, max_size=MOST, unique_by=lambda edit: edit.setting))
    settings = shipped(stack)
    for edit in chosen:
        changed = _with(settings, edit)
        if changed is not None and not refusal_of(stack, changed):
            settings = changed
    return settings


@cache
def edits_of_stack(cloud: str) -> tuple[Edit, ...]:
    """Return every edit of production's stack that `settings check` accepts alone."""
    return tuple(edit for setting in settings_of(cloud) for edit in edits_of(cloud, setting.path) if edit.stack == STACKS_OF[cloud][0])


def _with(settings: dict[str, Any], edit: Edit) -> dict[str, Any] | None:
    """Apply an edit. None if an earlier edit removed its place."""
    changed = copy.deepcopy(settings)
    try:
        for place, value in (*edit.base, *edit.writes):
            write(changed, place, value)
    except (KeyError, IndexError, TypeError):
        return None
    return changed

"""A hypothesis strategy for a shipped stack after several edits at once: as every setting has its edit, none is left out."""

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
"""So many edits at once."""


@st.composite
def edited_stacks(draw: DrawFn, cloud: str) -> dict[str, Any]:
    """The settings of production's stack with two to eight edits, each of another setting, as far as they go together."""
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
    """Every edit of production's stack that `settings check` takes alone."""
    return tuple(edit for setting in settings_of(cloud) for edit in edits_of(cloud, setting.path) if edit.stack == STACKS_OF[cloud][0])


def _with(settings: dict[str, Any], edit: Edit) -> dict[str, Any] | None:
    """None where the place that it means is gone by an edit before it."""
    changed = copy.deepcopy(settings)
    try:
        for place, value in (*edit.base, *edit.writes):
            write(changed, place, value)
    except (KeyError, IndexError, TypeError):
        return None
    return changed

"""Minimal settings of each cloud as in a stack file, and changes of them."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

LEFT_OUT = object()
"""Change that removes a setting."""

LEAST: dict[str, dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "capacity" / "least_settings.yaml").read_text(encoding="utf-8"))
"""Valid settings by cloud: a pool of L4 on Spot for training, and a team with a share of it."""


def changed(cloud: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the minimal settings of `cloud`, with the value at each path of `changes` replaced, appended to a list or removed."""
    document = deepcopy(LEAST[cloud])
    for path, written in changes.items():
        *way, last = path.split(".")
        at: Any = document
        for step in way:
            at = at[int(step)] if step.isdigit() else at.setdefault(step, {})
        if last.isdigit():
            at[int(last) : int(last) + 1] = [deepcopy(written)]
        elif written is LEFT_OUT:
            del at[last]
        else:
            at[last] = deepcopy(written)
    return document

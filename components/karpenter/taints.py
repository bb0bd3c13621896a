"""Taints as Karpenter's NodePool takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from components.node_taint import NodeTaint


def written_taint(taint: NodeTaint) -> dict[str, str]:
    """A taint without its value where that is empty: NodePool's definition has a pattern for values that an empty one does not match."""
    named = {"key": taint["key"], "effect": taint["effect"]}
    return {"key": taint["key"], "value": taint["value"], "effect": taint["effect"]} if taint["value"] else named


def startup_taints(taints: Iterable[NodeTaint]) -> dict[str, list[dict[str, str]]]:
    """The field of a node template; none where there are no taints, as the server drops an empty list."""
    written = [written_taint(taint) for taint in taints]
    return {"startupTaints": written} if written else {}

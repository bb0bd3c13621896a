"""Taints of the plan as components take them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from capacity.plan.model import Taint
    from components.node_taint import NodeTaint


def node_taint(taint: Taint) -> NodeTaint:
    """A taint of nodes."""
    return {"key": taint.key, "value": taint.value, "effect": taint.effect.value}


def toleration(taint: Taint) -> dict[str, str]:
    """The toleration of exactly this taint."""
    return {"key": taint.key, "operator": "Equal", "value": taint.value, "effect": taint.effect.value}

"""What a pool of the plan puts on its nodes and their bill: taints, and a label or tag that says which work it is for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from capacity.plan.model import PoolPlan, Taint
    from components.shared_args import NodeTaint


def node_taint(taint: Taint) -> NodeTaint:
    """A taint of nodes."""
    return {"key": taint.key, "value": taint.value, "effect": taint.effect.value}


def toleration(taint: Taint) -> dict[str, str]:
    """The toleration of exactly this taint."""
    return {"key": taint.key, "operator": "Equal", "value": taint.value, "effect": taint.effect.value}


def billing_label(pool: PoolPlan) -> dict[str, str]:
    """The class of a pool that serves one alone; empty for a pool of several, which a bill cannot tell apart."""
    return {"workload-class": pool.serves[0]} if len(pool.serves) == 1 else {}

"""What tells a bill which work a pool is for, as a label on Google Cloud and a tag on AWS."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from capacity.plan.model import PoolPlan


def billing_label(pool: PoolPlan) -> dict[str, str]:
    """The class of a pool that serves one alone; empty for a pool of several, which a bill cannot tell apart."""
    return {"workload-class": pool.serves[0]} if len(pool.serves) == 1 else {}

"""Arguments of Queues for tests: one team and one flavor, with changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flexspot.components.kueue.queues import AmountArgs, FlavorArgs, QueueArgs, QueuesArgs, QuotaArgs

LABELS = {"flexspot.dev/environment": "dev", "flexspot.dev/owner": "ml-platform"}


def quota_args(gpus: int, borrowing_limit: int | None = None, lending_limit: int | None = None, flavor: str = "l4-spot") -> QuotaArgs:
    def amount(count: int) -> AmountArgs:
        return {"gpus": count, "cpu": str(count * 4), "memory": f"{count * 16}Gi"}

    return {
        "flavor": flavor,
        "nominal": amount(gpus),
        "borrowing_limit": None if borrowing_limit is None else amount(borrowing_limit),
        "lending_limit": None if lending_limit is None else amount(lending_limit),
    }


def flavor_args(name: str = "l4-spot", **changes: Any) -> FlavorArgs:
    flavor: FlavorArgs = {
        "name": name,
        "node_labels": {"karpenter.sh/capacity-type": "spot"},
        "node_taints": [],
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Equal", "value": "present", "effect": "NoSchedule"}],
    }
    return flavor | changes  # pyrefly: ignore[bad-return] -- some arguments are invalid on purpose


def queue_args(**changes: Any) -> QueueArgs:
    queue: QueueArgs = {
        "name": "red",
        "cohort": "ai-platform",
        "namespace": "red",
        "local_queue": "default",
        "labels": {"flexspot.dev/team": "red"},
        "quotas": [quota_args(2)],
    }
    return queue | changes  # pyrefly: ignore[bad-return] -- some arguments are invalid on purpose


def queues_args(**changes: Any) -> QueuesArgs:
    arguments: QueuesArgs = {
        "cohorts": [{"name": "ai-platform", "parent": None, "quotas": []}],
        "labels": LABELS,
        "flavors": [flavor_args()],
        "queues": [queue_args()],
    }
    return arguments | changes  # pyrefly: ignore[bad-return] -- some arguments are invalid on purpose

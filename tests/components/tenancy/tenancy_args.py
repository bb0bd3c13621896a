"""Arguments of Team and of the priorities for most tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flexspot.components.tenancy.priorities import PriorityArgs
    from flexspot.components.tenancy.team import TeamArgs

LABELS = {"flexspot.dev/environment": "test", "flexspot.dev/owner": "ann", "flexspot.dev/team": "red"}

CLASSES: list[PriorityArgs] = [
    {"name": "gpu-best-effort", "value": 1000, "preempts": False, "description": "Waits for free room."},
    {"name": "gpu-training", "value": 100_000, "preempts": True, "description": "Trains."},
]


def team_args(**changes: Any) -> TeamArgs:
    """Return the required arguments of a team, with `changes`, which may be invalid on purpose."""
    arguments: dict[str, Any] = {"namespace": "red", "labels": LABELS, "hard": {"requests.nvidia.com/gpu": "6", "pods": "200"}, **changes}
    return arguments  # pyrefly: ignore[bad-return] -- some arguments are invalid on purpose

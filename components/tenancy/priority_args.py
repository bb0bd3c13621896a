"""A priority as components take it, and which are refused."""

from typing import TypedDict

from capacity.catalog.workload_classes import HIGHEST_PRIORITY, SCALE_UP_CUTOFF


class PriorityArgs(TypedDict):
    """One PriorityClass. With `preempts` false its pods wait for free room and take nothing from others."""

    name: str
    value: int
    preempts: bool
    description: str


def check_priorities(owner: str, classes: list[PriorityArgs]) -> None:
    """Raises ValueError, in the name of `owner`, for priorities that Kubernetes refuses or for which no node is ever made."""
    seen: set[str] = set()
    for each in classes:
        place = f"{owner}: class {each['name']}"
        if each["value"] < SCALE_UP_CUTOFF:
            problem = f"has value {each['value']}; below {SCALE_UP_CUTOFF} Cluster Autoscaler makes no node for a pod"
            raise ValueError(f"{place} {problem}; use {SCALE_UP_CUTOFF} to {HIGHEST_PRIORITY}")
        if each["value"] > HIGHEST_PRIORITY:
            problem = f"has value {each['value']}; Kubernetes keeps what is above {HIGHEST_PRIORITY} for its own"
            raise ValueError(f"{place} {problem}; use {SCALE_UP_CUTOFF} to {HIGHEST_PRIORITY}")
        if each["name"].startswith("system-"):
            raise ValueError(f"{place} has a name of the cluster's own; choose one that does not begin with system-")
        if each["name"] in seen:
            raise ValueError(f"{place} stands twice; give each a name of its own")
        seen.add(each["name"])

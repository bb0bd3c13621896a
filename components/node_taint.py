"""A taint as components take it."""

from typing import TypedDict


class NodeTaint(TypedDict):
    """A taint of nodes; `effect` as Kubernetes spells it, such as NoSchedule."""

    key: str
    value: str
    effect: str

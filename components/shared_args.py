"""Arguments that several components take: ranges of addresses, taints of nodes."""

from ipaddress import IPv4Network
from typing import TypedDict


def ipv4_range(where: str, written: str) -> IPv4Network:
    """`written` as an IPv4 range. Raises ValueError, beginning with `where`, if it is none or has host bits."""
    try:
        return IPv4Network(written)
    except ValueError as error:
        raise ValueError(
            f"{where} is {written!r}; allowed is an IPv4 range without host bits, such as 10.0.0.0/20; correct it ({error})"
        ) from error


class NodeTaint(TypedDict):
    """A taint of nodes; `effect` as Kubernetes spells it, such as NoSchedule."""

    key: str
    value: str
    effect: str

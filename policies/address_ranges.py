"""Ranges of addresses from which something may be reached."""

from __future__ import annotations

from ipaddress import IPv4Network, ip_network
from typing import TYPE_CHECKING

from policies.unknown import UNKNOWN

if TYPE_CHECKING:
    from policies.field import Field
    from policies.unknown import Tri

_SHORTEST_PREFIX = {4: 8, 6: 19}
"""By version, the largest range of one owner: a private network of IPv4 (stacks take no larger), the largest grant of IPv6."""


def lets_in_everybody(written: Field) -> Tri:
    """Whether a range in CIDR notation is so large that it keeps nobody out. What is no range is not."""
    text = written.text()
    if text is UNKNOWN:
        return UNKNOWN
    try:
        network = ip_network(str(text), strict=False)
    except ValueError:
        return False
    return network.prefixlen < _SHORTEST_PREFIX[4 if isinstance(network, IPv4Network) else 6]

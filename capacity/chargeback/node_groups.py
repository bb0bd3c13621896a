"""The nodes of a report by what a cloud's bill tells apart, so that the two can be held against each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from decimal import Decimal

    from capacity.chargeback.samples import Seconds

AUTO_MODE = "eks-auto-mode"
"""Stands in place of a capacity type for the fee of EKS Auto Mode, which a bill has in a line of its own."""


@dataclass(frozen=True)
class NodeGroup:
    """Nodes of one machine, bought in one way.

    `nodes` is how many there were. Of their `node_seconds` the price of `unpriced_seconds` is not known. `unused_seconds` are those of
    commitments of which no node was there, and no part of `node_seconds`. `usd` is what all of them cost, in cents.
    """

    cloud: str
    region: str
    machine: str
    capacity_type: str
    nodes: int
    node_seconds: Seconds
    unpriced_seconds: Seconds
    unused_seconds: Seconds
    usd: Decimal

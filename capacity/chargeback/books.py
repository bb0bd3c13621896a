"""What a period's samples add up to, before any price: seconds of nodes, of GPUs allocated on them, and of GPUs used."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from capacity.chargeback.labels import Owner

if TYPE_CHECKING:
    from decimal import Decimal

    from capacity.chargeback.nodes import NodeFacts
    from capacity.chargeback.period import Period
    from capacity.chargeback.samples import Gap, Seconds


@dataclass
class Use:
    """What one owner had on one node, in GPU seconds.

    `measured` are those of the allocated ones at which utilisation was measured, `used` how much of these was.
    """

    allocated: Fraction = Fraction(0)
    measured: Fraction = Fraction(0)
    used: float = 0.0


@dataclass
class NodeBook:
    """One node, for as long as it was the same: `seconds` there, its GPUs times seconds, and who had them.

    `opencost_usd` is what OpenCost says that it cost; None where OpenCost says nothing.
    """

    seconds: Seconds = 0
    gpu_seconds: Fraction = Fraction(0)
    uses: dict[Owner, Use] = field(default_factory=dict[Owner, Use])
    opencost_usd: Decimal | None = None

    @property
    def allocated(self) -> Fraction:
        """All GPU seconds that somebody had."""
        return sum((each.allocated for each in self.uses.values()), Fraction(0))


@dataclass
class Lost:
    """What interruptions took from one owner. `gpu_seconds` is known only of runs whose pace is."""

    interruptions: float = 0.0
    steps: float = 0.0
    gpu_seconds: float = 0.0
    of_unknown_pace: float = 0.0
    """Steps of which it is not known how long they took."""


NodeKey = tuple[str, "NodeFacts"]
"""A node's name and what it is: a name may be given twice, to another machine."""


@dataclass
class Books:
    """Everything that was counted in a period. `notes` are what a reader must know of how."""

    period: Period
    step: Seconds
    nodes: dict[NodeKey, NodeBook] = field(default_factory=dict[NodeKey, NodeBook])
    lost: dict[Owner, Lost] = field(default_factory=dict[Owner, Lost])
    evictions: dict[tuple[str, str], float] = field(default_factory=dict[tuple[str, str], float])
    homeless: dict[Owner, Fraction] = field(default_factory=dict[Owner, Fraction])
    """GPU seconds that pods had on nodes of which nothing was seen."""

    gaps: list[Gap] = field(default_factory=list["Gap"])
    notes: list[str] = field(default_factory=list[str])

"""How often a gang of nodes is interrupted: nodes of one machine type and zone are mostly taken back together, not one by one.

The binomial failure rate model of common-cause failures (W. E. Vesely, "Estimating Common Cause Failure Probabilities in Reliability and
Risk Analyses", 1977; C. L. Atwood, "The Binomial Failure Rate Common Cause Model", Technometrics 28, 1986), without its independent part:
the cloud takes capacity back in strikes, and each strike takes each node with the chance `share_taken`. A node that is interrupted `r`
times an hour then sees `r / share_taken` strikes, and a gang of `n` nodes meets those that take any of its nodes:

    r / share_taken * (1 - (1 - share_taken) ** n)

With a share near 0 that is `n * r`, nodes that are lost one by one; with 1 it is `r`, nodes that are always lost together. A gang of any
size meets `r / share_taken` at most.
"""

from __future__ import annotations

import math

_ONE_BY_ONE = 1e-12
"""Below it a share is 0, as far as floats can tell."""


def gang_interruptions_per_hour(node_interruptions_per_hour: float, nodes: int, share_taken: float) -> float:
    """Of `nodes` that are needed at once. `share_taken` is that of the model, from 0 (one by one) to 1 (always together)."""
    if share_taken < _ONE_BY_ONE:
        return node_interruptions_per_hour * nodes
    met = 1.0 if share_taken == 1 else -math.expm1(nodes * math.log1p(-share_taken))
    return node_interruptions_per_hour * met / share_taken

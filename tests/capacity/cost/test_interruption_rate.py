"""One figure of how often Spot is taken away where nobody has measured it: the advice and the runtime library assume the same."""

from __future__ import annotations

from decimal import Decimal

from flexspot_runtime import InterruptionRate

from capacity.cost.estimates import shipped_rules

ASSUMED = shipped_rules().assumptions.interruptions_per_node_hour


def test_the_runtime_library_begins_with_the_rate_that_advice_assumes() -> None:
    assert Decimal(str(InterruptionRate().per_hour)) == ASSUMED.value

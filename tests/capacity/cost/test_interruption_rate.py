"""One figure of how often Spot is taken away where nobody has measured it: the advice and the runtime library assume the same."""

from __future__ import annotations

from decimal import Decimal

from flexspot_runtime import InterruptionRate, daly_seconds

from capacity.cost.estimates import shipped_rules
from capacity.cost.spot_arithmetic import daly_interval_hours

ASSUMED = shipped_rules().assumptions.interruptions_per_node_hour


def test_the_runtime_library_begins_with_the_rate_that_advice_assumes() -> None:
    assert Decimal(str(InterruptionRate().per_hour)) == ASSUMED.value


def test_both_derive_the_same_interval_from_it() -> None:
    from_money = daly_interval_hours(1 / 60, float(ASSUMED.value)) * 3600

    assert abs(from_money - daly_seconds(60, 3600 / InterruptionRate().per_hour)) < 1e-6

"""Nodes of a gang are not independent: the model compared with its limits and with simulation."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexspot.capacity.cost.estimates import shipped_rules
from flexspot.capacity.cost.spot_arithmetic import SpotConditions, best_spot_run, gang_interruptions_per_hour

SHIPPED = float(shipped_rules().assumptions.gang_share_taken.value)
GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "costs.md"

rates, sizes, shares = st.floats(0, 60), st.integers(1, 1000), st.floats(0, 1)


@given(rates, sizes)
def test_a_share_of_nothing_is_nodes_lost_one_by_one_and_of_all_is_one_node(rate: float, nodes: int) -> None:
    assert gang_interruptions_per_hour(rate, nodes, 0) == rate * nodes
    assert gang_interruptions_per_hour(rate, nodes, 1e-9) == pytest.approx(rate * nodes, rel=1e-5)
    assert gang_interruptions_per_hour(rate, nodes, 1) == rate


@given(rates, sizes, shares)
def test_a_gang_meets_no_less_than_a_node_and_no_more_than_independent_ones(rate: float, nodes: int, share: float) -> None:
    found = gang_interruptions_per_hour(rate, nodes, share)

    assert rate * (1 - 1e-9) <= found <= rate * nodes * (1 + 1e-9)
    assert found <= gang_interruptions_per_hour(rate, nodes + 1, share) * (1 + 1e-9)


@pytest.mark.parametrize("nodes,share", [(2, 0.5), (4, 0.3), (16, 0.77)])
def test_the_model_agrees_with_simulated_interruptions(nodes: int, share: float) -> None:
    """Each of 50,000 interruptions takes every node or not. Counts those that hit the gang, per interruption of its first node."""
    chance = random.Random(7)  # noqa: S311 -- repeatable, not secret
    strikes = [[chance.random() < share for _ in range(nodes)] for _ in range(50_000)]

    seen = sum(any(each) for each in strikes) / sum(each[0] for each in strikes)

    assert seen == pytest.approx(gang_interruptions_per_hour(1, nodes, share), rel=0.02)


@pytest.mark.parametrize("nodes,least,most", [(4, 0.12, 0.57), (16, 0.49, 0.60)])
def test_the_shipped_share_puts_the_courses_rate_where_records_of_gangs_are(nodes: int, least: float, most: float) -> None:
    """The range over three public records each of four and of sixteen nodes, as counted by a review of this project."""
    rate = float(shipped_rules().assumptions.interruptions_per_node_hour.value)

    assert least <= gang_interruptions_per_hour(rate, nodes, SHIPPED) <= most


@pytest.mark.parametrize("nodes", [1, 2, 4, 8, 16])
def test_the_guide_says_what_gangs_cost(nodes: int) -> None:
    alone = SpotConditions(0.25, nodes, checkpoint_hours=2 / 60, restart_hours=10 / 60, wait_hours=0.5)
    together = replace(alone, share_taken=SHIPPED)
    (interval, run), (_, apart) = best_spot_run(72, together), best_spot_run(72, alone)
    usd, usd_apart = (f"{12.50 * each.billed_hours / 72:.2f}" for each in (run, apart))

    row = f"| {nodes} | {interval * 60:.0f} minutes | {run.overhead_share * 100:.0f} % | {usd} | {usd_apart} |"
    assert row in GUIDE.read_text(encoding="utf-8")


def test_an_invalid_share_is_refused() -> None:
    with pytest.raises(ValueError, match=r"share_taken is 1\.5"):
        SpotConditions(0.25, share_taken=1.5)

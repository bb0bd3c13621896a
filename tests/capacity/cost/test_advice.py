"""Advice: every leaf of the guide's decision matrix and of the course's tree and tables, reproduced or refuted with figures."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from money_jobs import COURSE_A2, COURSE_P4D, on_aws, on_gcp

from flexspot.capacity.catalog.machines import Vendor
from flexspot.capacity.catalog.price_book import prices_of
from flexspot.capacity.cost.advice import JobMix, advise, advise_mix
from flexspot.capacity.cost.costed_plan import MachinePrices, machine_prices
from flexspot.capacity.cost.estimates import Fact, Method

A2_LISTED = machine_prices(prices_of(Vendor.GCP), "a2-highgpu-8g", "us-central1")
A2_TODAY = replace(A2_LISTED, flex_start_usd_per_hour=None)
"""Prices of a region without a known price of flex-start."""

SWEEP: dict[str, Any] = {"nodes": 20, "piece_hours": 1}
CHECKPOINTED: dict[str, Any] = {"checkpoint_minutes": 2}


def practices(text: str, lines: tuple[str, ...]) -> list[str]:
    return [line for line in lines if text in line]


class TestDecisionMatrixOfTheGuide:
    """The four rows of the matrix. The fourth, mixed workloads, is at the end of this file."""

    @pytest.mark.parametrize("job", [SWEEP, {"work_hours": 0.5}, {"work_hours": 24, **CHECKPOINTED}])
    def test_sweeps_ci_and_fault_tolerant_batches_go_on_spot(self, job: dict[str, Any]) -> None:
        assert advise(on_gcp(**job), COURSE_A2).method is Method.SPOT
        assert advise(on_aws(**job), COURSE_P4D).method is Method.SPOT

    def test_training_for_days_that_nothing_may_interrupt_goes_on_flex_start(self) -> None:
        advice = advise(on_gcp(interruptible=False), A2_TODAY)

        assert advice.method is Method.FLEX_START
        assert (advice.chosen.usd_least, advice.chosen.usd_most) == (Decimal("29.38708") * 72 * Decimal("0.47"), Decimal("29.38708") * 72)

    def test_a_known_price_of_flex_start_is_used(self) -> None:
        advice = advise(on_gcp(interruptible=False), A2_LISTED)

        assert advice.method is Method.FLEX_START
        assert advice.chosen.usd_least == advice.chosen.usd_most == Decimal("16.16304") * 72

    def test_on_several_nodes_at_once_flex_start_is_the_queued_mode(self) -> None:
        """The guide has four pods on plain flex-start, which provides nodes one by one."""
        assert advise(on_gcp(interruptible=False, nodes=4), A2_TODAY).method is Method.QUEUED

    def test_at_todays_spot_price_flex_start_beats_spot_at_its_best_discount(self) -> None:
        """Spot of this machine is 40 % off today, not 90. Flex-start at 53 % off without interruptions costs less, also for sweeps."""
        best = Decimal("29.38708") * Decimal("0.47")

        assert advise(on_gcp(**SWEEP, flex_start_usd_per_hour=best), A2_TODAY).method is Method.FLEX_START
        assert practices("29 % off", advise(on_gcp(**SWEEP), A2_TODAY).arithmetic)

    def test_production_inference_goes_on_demand_at_the_full_price(self) -> None:
        advice = advise(on_gcp(user_facing=True, work_hours=730), COURSE_A2)

        assert advice.method is Method.ON_DEMAND
        assert advice.chosen.usd_most == Decimal("29.39") * 730


class TestDecisionTreeOfTheCourse:
    """Can it be interrupted? Can it be restored? Does it need fair sharing?"""

    def test_work_that_cannot_be_interrupted_is_on_demand_or_reserved(self) -> None:
        assert advise(on_aws(interruptible=False), COURSE_P4D).method is Method.ON_DEMAND
        assert advise(on_aws(interruptible=False, steady=True), COURSE_P4D).method is Method.RESERVED

    def test_work_that_cannot_be_restored_needs_checkpoints_first(self) -> None:
        advice = advise(on_aws(), COURSE_P4D)

        assert advice.method is Method.ON_DEMAND
        assert practices("make it resume from durable checkpoints", advice.practices)

    def test_short_work_that_cannot_be_restored_still_pays_on_spot(self) -> None:
        """Two hours of work at one interruption in four hours: 4 (e^(1/2) - 1) = 2.59 h, with restarts 2.71, at 38 % of the price."""
        advice = advise(on_aws(work_hours=2), COURSE_P4D)

        assert advice.method is Method.SPOT
        assert advice.chosen.usd_most is not None
        assert float(advice.chosen.usd_most) == pytest.approx(12.5 * 2.7052, rel=1e-3)

    def test_where_that_ends(self) -> None:
        """It pays while e^(1/24) (e^x - 1) / x is below 32.77 / 12.50 = 2.62, where x is a quarter of the hours: up to 6.5 hours."""
        pays = {hours: advise(on_aws(work_hours=hours), COURSE_P4D).facts[Fact.SPOT_PAYS] for hours in (6.0, 6.5, 6.6, 7.0)}

        assert pays == {6.0: True, 6.5: True, 6.6: False, 7.0: False}

    def test_teams_that_compete_need_kueue_and_quotas(self) -> None:
        advice = advise(on_aws(**CHECKPOINTED, shared=True), COURSE_P4D)

        assert advice.method is Method.SPOT
        assert practices("Kueue queue with quotas", advice.practices)
        assert not practices("the autoscaler alone", advice.practices)

    def test_a_large_gang_meets_twice_what_one_node_meets_and_pays_on_spot(self) -> None:
        """The tree ignores the size. Records show that nodes are lost together: sixteen have an interruption every two hours."""
        advice = advise(on_aws(**CHECKPOINTED, nodes=16), COURSE_P4D)

        assert advice.method is Method.SPOT
        assert practices("an interruption every 2.0 h", advice.arithmetic)
        assert practices("interruptions of the 16 nodes together an hour; 0.50 are expected", advice.arithmetic)

    def test_a_large_gang_that_loses_nodes_one_by_one_does_not_suit_spot(self) -> None:
        advice = advise(on_aws(**CHECKPOINTED, nodes=16, gang_share_taken=0), COURSE_P4D)

        assert advice.method is Method.ON_DEMAND
        assert practices("any node's interruption is everyone's", advice.reasons)
        assert practices("an interruption every 0.2 h", advice.arithmetic)

    def test_the_gangs_own_rate_overrides_that_of_its_nodes(self) -> None:
        gang = {**CHECKPOINTED, "nodes": 16}
        measured = advise(on_aws(**gang, gang_interruptions_per_hour=0.55), COURSE_P4D)
        # Equal to nodes that are each lost so rarely that their sum is this rate.
        independent = advise(on_aws(**gang, interruptions_per_node_hour=0.55 / 16, gang_share_taken=0), COURSE_P4D)

        assert measured.method is Method.SPOT
        assert measured.chosen == independent.chosen
        assert practices("an interruption every 1.8 h", measured.arithmetic)
        assert advise(on_aws(**gang, gang_interruptions_per_hour=4.0), COURSE_P4D).method is Method.ON_DEMAND

    def test_of_pieces_that_need_no_other_nodes_a_gangs_rate_says_nothing(self) -> None:
        with_rate, without = (advise(on_aws(**SWEEP, **rate), COURSE_P4D) for rate in ({"gang_interruptions_per_hour": 9.0}, {}))

        assert with_rate.chosen == without.chosen


class TestTablesOfTheCourse:
    """Its decision questions, and its list of Spot-friendly work."""

    def test_user_facing_with_strict_latency(self) -> None:
        for steady, method in ((False, Method.ON_DEMAND), (True, Method.RESERVED)):
            assert advise(on_aws(user_facing=True, steady=steady, work_hours=8760), COURSE_P4D).method is method

    def test_preprocessing_is_spot_friendly_and_a_notebook_is_not(self) -> None:
        assert advise(on_aws(piece_hours=0.1, nodes=8), COURSE_P4D).method is Method.SPOT
        assert advise(on_aws(interactive=True, work_hours=8), COURSE_P4D).method is Method.ON_DEMAND


@pytest.mark.slow
def test_a_deadline_that_spot_alone_would_miss_makes_a_hybrid() -> None:
    advice = advise(on_aws(**CHECKPOINTED, deadline_hours=95), COURSE_P4D)

    assert advice.method is Method.HYBRID
    assert advice.chosen.late_share == 0
    assert advice.chosen.finish_hours <= 95


@pytest.mark.slow
def test_a_deadline_without_slack_is_met_on_demand() -> None:
    assert advise(on_aws(**CHECKPOINTED, deadline_hours=73), COURSE_P4D).method is Method.ON_DEMAND


def test_a_start_that_cannot_wait_rules_out_methods_with_a_wait() -> None:
    advice = advise(on_gcp(interruptible=False, start_within_hours=1), A2_TODAY)

    assert advice.method is Method.ON_DEMAND
    assert advise(on_gcp(**CHECKPOINTED, start_within_hours=0.1), COURSE_A2).method is Method.ON_DEMAND


def test_longer_than_seven_days_needs_checkpoints_on_flex_start() -> None:
    assert advise(on_gcp(work_hours=200, interruptible=False), A2_TODAY).method is Method.ON_DEMAND
    assert advise(on_gcp(work_hours=200, interruptible=False, checkpoint_minutes=5), A2_TODAY).method is Method.FLEX_START


def test_data_elsewhere_is_paid_for_at_every_start() -> None:
    near, far = (advise(on_aws(**CHECKPOINTED, data_region=region, data_gib=5000), COURSE_P4D) for region in ("us-east-1", "us-west-2"))

    assert near.method is Method.SPOT
    assert far.method is Method.ON_DEMAND, "5,000 GiB moved twenty times cost more than Spot saves"
    assert practices("copy the data once", far.practices)


class TestNoSpotPriceIsKnown:
    """A missing price does not exclude Spot: known facts are reported, the rest stays open, with the price that would decide it."""

    UNKNOWN = MachinePrices(Decimal("32.77"))

    def test_spot_is_neither_chosen_nor_excluded(self) -> None:
        advice = advise(on_aws(**CHECKPOINTED), self.UNKNOWN)
        spot = next(each for each in advice.options if each.estimate.method is Method.SPOT)

        assert advice.method is Method.ON_DEMAND
        assert (advice.facts[Fact.SPOT_PAYS], spot.excluded_by, spot.estimate.usd_most) == (None, (), None)
        assert [each.method for each in advice.undecided] == [Method.SPOT]
        assert not practices("interruptions cost more than Spot saves", advice.reasons)
        assert practices("no Spot price of p4d.24xlarge in us-east-1 is known", advice.reasons)

    @pytest.mark.parametrize(
        "job",
        [
            CHECKPOINTED,
            {**CHECKPOINTED, "deadline_hours": 90},
            {**SWEEP, "deadline_hours": 200},
            {**CHECKPOINTED, "data_region": "us-west-2", "data_gib": 100},
        ],
    )
    def test_the_reported_price_is_the_one_at_which_the_answer_changes(self, job: dict[str, Any]) -> None:
        """With a price on either side of it, advice decides as announced."""
        [question] = advise(on_aws(**job), self.UNKNOWN).undecided
        below, above = (
            advise(on_aws(**job), MachinePrices(Decimal("32.77"), question.usd_per_hour + more))
            for more in (Decimal("-0.001"), Decimal("0.001"))
        )

        assert (below.method, above.method) == (question.method, Method.ON_DEMAND)
        assert not below.undecided
        assert not above.undecided

    def test_what_no_price_could_make_cheaper_is_decided(self) -> None:
        """Moving the data at every start costs more than on-demand. Runs of 720 hours without checkpoints never end."""
        for job in ({**CHECKPOINTED, "data_region": "us-west-2", "data_gib": 50_000}, {"work_hours": 720}):
            advice = advise(on_aws(**job), self.UNKNOWN)

            assert advice.facts[Fact.SPOT_PAYS] is False
            assert not advice.undecided

    def test_what_rules_exclude_for_other_reasons_stays_excluded(self) -> None:
        for job in ({"interruptible": False}, {"user_facing": True}, {**CHECKPOINTED, "start_within_hours": 0.1}):
            assert not advise(on_aws(**job), self.UNKNOWN).undecided


def test_a_flex_start_that_is_dearer_than_the_list_price_is_not_advised() -> None:
    advice = advise(on_gcp(interruptible=False, flex_start_usd_per_hour=Decimal(40)), A2_TODAY)

    assert advice.method is Method.ON_DEMAND
    assert practices("costs least of what is left", advice.reasons)


jobs = st.fixed_dictionaries(
    {"work_hours": st.floats(0.1, 300), "nodes": st.integers(1, 8), "interruptible": st.booleans(), "steady": st.booleans()},
    optional={
        "checkpoint_minutes": st.floats(0.5, 10),
        "piece_hours": st.floats(0.1, 5),
        "user_facing": st.booleans(),
        "interactive": st.booleans(),
        "start_within_hours": st.floats(0, 24),
        "shared": st.booleans(),
    },
)


@given(jobs)
def test_what_is_advised_is_never_excluded_and_never_dearer_than_on_demand(job: dict[str, Any]) -> None:
    for needs, prices in ((on_aws(**job), COURSE_P4D), (on_gcp(**job), A2_TODAY)):
        advice = advise(needs, prices)
        by_method = {option.estimate.method: option for option in advice.options}

        assert advice.options[0].excluded_by == ()
        assert not by_method[Method.ON_DEMAND].excluded_by, "at least one method remains"
        assert advice.chosen.usd_most is not None
        assert advice.chosen.usd_most <= (by_method[Method.ON_DEMAND].estimate.usd_most or 0)


@given(jobs, st.decimals("1", "30", places=2), st.decimals("0.01", "5", places=2))
def test_a_dearer_spot_price_never_makes_advice_cheaper(job: dict[str, Any], spot: Decimal, more: Decimal) -> None:
    cheap, dear = (
        advise(on_aws(**job), MachinePrices(Decimal("32.77"), price)).chosen.usd_most or Decimal(0) for price in (spot, spot + more)
    )

    assert cheap <= dear


PLACE = {"cloud": "gcp", "region": "us-central1", "machine": "a2-highgpu-8g"}
MIXED_SWEEP = {**PLACE, "name": "sweep", "work_hours": 24, "nodes": 4, "piece_hours": 1, "runs": 10}
TRAINING = {**PLACE, "name": "training", "work_hours": 72, "nodes": 4, "interruptible": False}
SERVING = {**PLACE, "name": "serving", "work_hours": 730, "user_facing": True}


def test_a_cluster_of_mixed_work_is_a_hybrid_of_spot_dws_and_on_demand() -> None:
    found = advise_mix(JobMix.model_validate({"jobs": [MIXED_SWEEP, TRAINING, SERVING]}), lambda _: COURSE_A2)

    assert found.method is Method.HYBRID
    assert [each.method for each in found.advice.values()] == [Method.SPOT, Method.QUEUED, Method.ON_DEMAND]


def test_the_blended_cost_counts_every_run_at_the_most_that_it_can_cost() -> None:
    found = advise_mix(JobMix.model_validate({"jobs": [MIXED_SWEEP, SERVING]}), lambda _: COURSE_A2)

    sweep = found.advice["sweep"].chosen.usd_most or Decimal(0)
    assert found.usd == 10 * sweep + Decimal("29.39") * 730
    assert found.on_demand_usd == Decimal("29.39") * (10 * 24 * 4 + 730)
    assert 30 < found.saved_percent < 40
